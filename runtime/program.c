/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs: compiled or taken from the cache, for a kind of device but on none. Their
 * serialized form carries the framework's own program and options with the image, so
 * that whoever loads it can show and place it.
 */
#include <stdlib.h>
#include <string.h>

#include "runtime/compiler/tc.h"
#include "runtime/rt_internal.h"

#define DIRECT_BYTES (16 << 10)	/* less is not worth waiting until there is room for it */

void rt_program_ref(struct rt_program *p)
{
	atomic_fetch_add(&p->refs, 1);
}

void rt_program_unref(struct rt_program *p)
{
	if (!p || atomic_fetch_sub(&p->refs, 1) != 1)
		return;
	image_free(p->image);
	free(p->bytes);
	free(p->source);
	free(p->options);
	free(p->shown);
	pthread_mutex_destroy(&p->shown_lock);
	free(p);
}

static void *copy_of(const void *p, size_t n)
{
	void *copy = malloc(n + 1);

	if (copy && n)
		memcpy(copy, p, n);
	return copy;
}

/* Takes `image` (malloc'd), whose hash is known, also on failure. */
static int make(const char hash[65], void *image, size_t n, const struct tc_source *source,
		const void *options, size_t options_bytes, struct rt_program **out,
		struct err *err)
{
	struct rt_program *p = calloc(1, sizeof(*p));
	int code;

	if (!p) {
		free(image);
		return err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory");
	}
	atomic_init(&p->refs, 1);
	pthread_mutex_init(&p->shown_lock, NULL);
	p->members = rt_count_members(options, options_bytes);
	p->bytes = image;
	p->n_bytes = n;
	memcpy(p->fingerprint, hash, sizeof(p->fingerprint));
	p->options = copy_of(options, options_bytes);
	p->options_bytes = options_bytes;
	p->source = copy_of(source->code, source->bytes);
	p->source_bytes = source->bytes;
	strncpy(p->format, source->format, sizeof(p->format) - 1);
	if (!p->options || !p->source)
		code = err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory");
	else
		code = image_view(image, n, &p->image, err);
	if (code) {
		rt_program_unref(p);
		return code;
	}
	*out = p;
	return 0;
}

/* Everything that decides what is compiled, hashed. */
static void make_key(const struct tc_source *s, const struct tc_options *o, char hex[65])
{
	struct {
		char version[16], format[16], build[64], code[65];
		uint32_t isa, image;
		struct tc_options o;
	} head;

	memset(&head, 0, sizeof(head));
	strncpy(head.version, TC_VERSION, sizeof(head.version) - 1);
	strncpy(head.format, s->format, sizeof(head.format) - 1);
	rt_build_id(head.build, sizeof(head.build));
	rt_hash(s->code, s->bytes, head.code);
	head.isa = ISA_VERSION;
	head.image = IMAGE_VERSION;
	head.o.memory_limit = o->memory_limit;
	head.o.level = o->level;
	head.o.replicas = o->replicas;
	head.o.partitions = o->partitions;
	head.o.direct_bytes = o->direct_bytes;
	rt_hash(&head, sizeof(head), hex);
}

/* Whether members know where each other's data is: replicas may be launched one by one. */
static bool can_reach(const struct rt_target *target, struct rt_counts members)
{
	return target->has_all && members.replicas <= 1;
}

/* What members do in calls that a framework's function shares out is part of the program from here
 * on: it can be kept, shown and compiled again where the framework is not. *text is freed by the
 * caller; NULL: there is no such call. */
static int ask(const struct rt_target *target, const struct tc_options *o,
	       struct tc_source *source, char **text, struct err *err)
{
	size_t bytes;
	int code;

	*text = NULL;
	/* Who reads a program in XLA's words back gets it as it came. */
	if (!target->partitioners || strcmp(source->format, "mlir"))
		return 0;
	code = tc_ask_partitioners(source, o, target->partitioners, text, &bytes, err);
	if (!code && *text)
		*source = (struct tc_source){ *text, bytes, "mlir" };
	return code;
}

static int make_of(struct tc_source source, const struct tc_options *o, const void *options,
		   size_t options_bytes, bool *was_cached, struct rt_program **out,
		   struct err *err)
{
	struct tc_result r;
	char key[65], hash[65];
	int status;

	make_key(&source, o, key);
	if (!*was_cached && !rt_cache_get(key, &r.image, &r.image_bytes, hash) &&
	    !make(hash, r.image, r.image_bytes, &source, options, options_bytes, out, NULL)) {
		*was_cached = true;
		return 0;
	}
	*was_cached = false;
	status = tc_compile(&source, o, &r, err);
	if (status)
		return status;
	rt_hash(r.image, r.image_bytes, hash);
	rt_cache_put(key, r.image, r.image_bytes, hash);
	return make(hash, r.image, r.image_bytes, &source, options, options_bytes, out, err);
}

int rt_program_make(const struct rt_target *target, const void *code, size_t code_bytes,
		    const char *format, const void *options, size_t options_bytes,
		    bool *was_cached, struct rt_program **out, struct err *err)
{
	const struct rt_counts members = rt_count_members(options, options_bytes);
	struct tc_source source = { code, code_bytes, format };
	struct tc_options o = { .level = 1, .memory_limit = target->memory_bytes,
				.replicas = members.replicas,
				.partitions = members.partitions,
				.direct_bytes = can_reach(target, members) ? DIRECT_BYTES : 0 };
	char *text;
	int status = ask(target, &o, &source, &text, err);

	if (!status)
		status = make_of(source, &o, options, options_bytes, was_cached, out, err);
	free(text);
	return status;
}

int rt_program_compile(const struct rt_target *target, const void *code, size_t code_bytes,
		       const char *format, const void *options, size_t options_bytes,
		       struct rt_program **out, struct err *err)
{
	bool was_cached = false;

	return rt_program_make(target, code, code_bytes, format, options, options_bytes,
			       &was_cached, out, err);
}

/* ---- the serialized form: head, image, source, options ---- */

static const char magic[16] = "TESSERA-EXE-2\n";

struct head {
	char magic[16], format[16];
	uint64_t image, source, options;	/* bytes of each */
	char hash[64];		/* of all that follows */
};

int rt_program_serialize(const struct rt_program *p, void **out, size_t *bytes,
			 struct err *err)
{
	struct head h = { .image = p->n_bytes, .source = p->source_bytes,
			  .options = p->options_bytes };
	size_t n = p->n_bytes + p->source_bytes + p->options_bytes;
	char *all = malloc(sizeof(h) + n), *at = all + sizeof(h), hex[65];

	if (!all)
		return err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory");
	memcpy(at, p->bytes, p->n_bytes);
	memcpy(at + p->n_bytes, p->source, p->source_bytes);
	memcpy(at + p->n_bytes + p->source_bytes, p->options, p->options_bytes);
	memcpy(h.magic, magic, sizeof(magic));
	memcpy(h.format, p->format, sizeof(h.format));
	rt_hash(at, n, hex);
	memcpy(h.hash, hex, sizeof(h.hash));
	memcpy(all, &h, sizeof(h));
	*out = all;
	*bytes = sizeof(h) + n;
	return 0;
}

int rt_program_deserialize(const void *p, size_t n, struct rt_program **out, struct err *err)
{
	const char *at = (const char *)p + sizeof(struct head);
	struct tc_source source;
	struct head h;
	uint64_t sum;
	char hex[65];
	void *image;

	if (n < sizeof(h) || memcmp(p, magic, sizeof(magic)))
		return err_set(err, ERR_INVALID_ARGUMENT, "not an executable that this "
			       "runtime serialized: compile the program again");
	memcpy(&h, p, sizeof(h));
	n -= sizeof(h);
	if (__builtin_add_overflow(h.image, h.source, &sum) ||
	    __builtin_add_overflow(sum, h.options, &sum) || sum != n || h.format[15])
		return err_set(err, ERR_INVALID_ARGUMENT, "a serialized executable of %zu "
			       "bytes was cut or changed: compile the program again",
			       n + sizeof(h));
	rt_hash(at, n, hex);
	if (memcmp(hex, h.hash, sizeof(h.hash)))
		return err_set(err, ERR_INVALID_ARGUMENT, "a serialized executable is damaged: "
			       "compile the program again");
	image = copy_of(at, h.image);
	if (!image)
		return err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory");
	rt_hash(image, h.image, hex);
	source = (struct tc_source){ at + h.image, h.source, h.format };
	return make(hex, image, h.image, &source, at + h.image + h.source, h.options, out, err);
}

/* ---- asking ---- */

const struct image *rt_program_image(const struct rt_program *p)
{
	return p->image;
}

const void *rt_program_options(const struct rt_program *p, size_t *bytes)
{
	*bytes = p->options_bytes;
	return p->options;
}

const char *rt_program_fingerprint(const struct rt_program *p)
{
	return p->fingerprint;
}

struct rt_counts rt_program_members(const struct rt_program *p)
{
	return p->members;
}

int rt_program_show(struct rt_program *p, const void **out, size_t *bytes, const char **format,
		    struct err *err)
{
	struct tc_options o = { .level = 1, .replicas = p->members.replicas,
				.partitions = p->members.partitions };
	struct tc_source source = { p->source, p->source_bytes, p->format };
	bool is_mlir = !strcmp(p->format, "mlir");
	int code = 0;

	*out = p->source;
	*bytes = p->source_bytes;
	*format = is_mlir ? "mlir" : "hlo_with_config";
	if (is_mlir && p->members.partitions <= 1)
		return 0;
	pthread_mutex_lock(&p->shown_lock);
	if (!p->shown)
		code = is_mlir ? tc_member_program(&source, &o, (char **)&p->shown,
						   &p->shown_bytes, err) :
		       tc_hlo_with_config(&source, &o, p->image, &p->shown, &p->shown_bytes, err);
	pthread_mutex_unlock(&p->shown_lock);
	*out = p->shown;
	*bytes = p->shown_bytes;
	return code;
}
