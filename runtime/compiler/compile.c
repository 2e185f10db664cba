/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The compiler's one boundary and its list of passes.
 *
 * Everything below runs inside tc_enter(): a failure anywhere is one longjmp back to it,
 * and the arena takes all memory with it.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "hal/base/cpu.h"
#include "runtime/compiler/passes.h"

#define ARENA_FACTOR 256u	/* memory that a program may make us take, to its size */
#define ARENA_LEAST ((size_t)256 << 20)
#define EVAL_BYTES ((uint64_t)8 << 30)	/* of all arrays that an evaluation holds */
#define MOST_EVALUATED 1024u	/* members of a gang: each is a thread */

#ifndef TC_VERIFY_ALWAYS
#define TC_VERIFY_ALWAYS 0
#endif

struct pass {
	const char *name;
	void (*run)(struct tc_ctx *c);
	bool is_needed;		/* at level 0, too: emission takes what it makes */
};

/* In this order. */
static const struct pass passes[] = {
	{ "inline", tc_pass_inline, true },
	{ "branches", tc_pass_branches, true },
	{ "dynamic", tc_pass_dynamic, true },
	{ "layout", tc_pass_layout, false },
	{ "shard", tc_pass_shard, true },
	{ "host", tc_pass_host, true },
	{ "combine-sums", tc_pass_combine_sums, false },
	{ "collectives", tc_pass_collectives, true },
	{ "decompose", tc_pass_decompose, true },
	{ "simplify", tc_pass_simplify, false },
	{ "cse", tc_pass_cse, false },
	{ "hoist", tc_pass_hoist, false },
	{ "combine", tc_pass_combine, false },
	{ "empty", tc_pass_empty, true },
	{ "unroll", tc_pass_unroll, false },
	{ "simplify-again", tc_pass_simplify, false },
	{ "indexed", tc_pass_indexed, false },
	{ "fuse", tc_pass_fuse, true },
	{ "boxes", tc_pass_boxes, false },
	{ "strip", tc_pass_strip, false },
	{ "alternate", tc_pass_alternate, false },
	{ "lend", tc_pass_lend, true },
};
#define N_PASSES (sizeof(passes) / sizeof(*passes))

static void leave(void *arg)
{
	struct tc_ctx *c = arg;

	if (c->ahead)
		c->ahead->is_short = true;
	tc_fail(c, ERR_RESOURCE_EXHAUSTED, NULL, "compiling takes more than %zu bytes of "
		"memory", c->arena.limit);
}

/* Bytecode starts with its magic, whose third byte is no character. */
static bool is_text(const struct tc_source *s)
{
	const unsigned char *p = s->code;

	/* The beginning of the magic is bytecode that was cut off. */
	if (!memcmp(p, "ML\xefR", s->bytes < 4 ? s->bytes : 4))
		return false;
	return (*p >= ' ' && *p < 0x7f) || strchr("\n\r\t", *p);
}

static void read_source(struct tc_ctx *c, const struct tc_source *s)
{
	if (!strcmp(s->format, "hlo"))
		tc_read_hlo(c, s->code, s->bytes);
	else if (!strcmp(s->format, "hlo_with_config"))
		tc_read_hlo_with_config(c, s->code, s->bytes);
	else if (strcmp(s->format, "mlir"))
		tc_fail(c, ERR_INVALID_ARGUMENT, NULL, "Unknown program format '%.40s'.",
			s->format);
	else if (is_text(s))
		tc_ir_parse(c, s->code, s->bytes);
	else
		tc_read_bytecode(c, s->code, s->bytes);
}

/* What is behind the readers sees a judged program of ops that there are, on its own devices. */
static void take_source(struct tc_ctx *c, const struct tc_source *s)
{
	read_source(c, s);
	tc_ir_verify(c, NULL, true);
	tc_renew(c);
	tc_settle_devices(c);
}

int tc_enter(const struct tc_source *source, const struct tc_options *options,
	     struct err *err, void (*body)(struct tc_ctx *c, void *arg), void *arg)
{
	static const struct tc_options defaults = { .level = 1 };
	struct tc_ctx c = { .options = options ? options : &defaults, .err = err };
	struct err own;
	jmp_buf boundary;
	volatile int code = 0;

	if (!err)
		c.err = &own;
	c.boundary = &boundary;
	c.arena.limit = source->bytes > SIZE_MAX / ARENA_FACTOR ? SIZE_MAX :
			source->bytes * ARENA_FACTOR + ARENA_LEAST;
	c.arena.on_fail = leave;
	c.arena.on_fail_arg = &c;
	if (!setjmp(boundary)) {
		take_source(&c, source);
		body(&c, arg);
	} else {
		code = c.err->code;
	}
	tc_free_held(&c);
	arena_free(&c.arena);
	return code;
}

/* ---- dumps ---- */

struct dump {
	char dir[512];
	char only[32];
	unsigned n;
};

static bool start_dump(struct tc_ctx *c, struct dump *d)
{
	static unsigned serial;
	const char *text = getenv("TESSERA_DUMP"), *comma, *name;
	int n;

	*d = (struct dump){ .n = 0 };
	if (!text || !*text)
		return false;
	comma = strchr(text, ',');
	n = comma ? (int)(comma - text) : (int)strlen(text);
	if (comma && !strncmp(comma, ",pass=", 6))
		snprintf(d->only, sizeof(d->only), "%s", comma + 6);
	name = tc_attr_str(c->module, "sym_name");
	snprintf(d->dir, sizeof(d->dir), "%.*s", n > 300 ? 300 : n, text);
	mkdir(d->dir, 0777);
	snprintf(d->dir, sizeof(d->dir), "%.*s/%.60s.%u", n > 300 ? 300 : n, text,
		 name && *name && !strchr(name, '/') ? name : "main",
		 __atomic_fetch_add(&serial, 1, __ATOMIC_RELAXED));
	mkdir(d->dir, 0777);
	return true;
}

static void dump_bytes(struct dump *d, const char *name, const void *p, size_t n)
{
	char path[640];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", d->dir, name);
	f = fopen(path, "w");
	if (!f)
		return;
	fwrite(p, 1, n, f);
	fclose(f);
}

static void dump_ir(struct tc_ctx *c, struct dump *d, const char *pass)
{
	struct str s = { 0 };
	char name[64];

	snprintf(name, sizeof(name), "%02u-%s.ir", d->n++, pass);
	if (*d->only && strcmp(d->only, pass))
		return;
	tc_ir_print(c->module, &s);
	if (s.text)
		dump_bytes(d, name, s.text, s.len);
	str_free(&s);
}

/* ---- the doors ---- */

/* All, or those up to the one named `last`. */
static void run_passes(struct tc_ctx *c, struct dump *d, bool dumping, const char *last)
{
	if (dumping)
		dump_ir(c, d, "read");
	for (unsigned i = 0; i < N_PASSES; i++) {
		if (!passes[i].is_needed && !c->options->level)
			continue;
		passes[i].run(c);
		if (dumping)
			dump_ir(c, d, passes[i].name);
		tc_ir_verify(c, passes[i].name, TC_VERIFY_ALWAYS || c->options->verify);
		if (last && !strcmp(passes[i].name, last))
			break;
	}
}

struct compilation {
	struct tc_result out;
	struct tc_ahead ahead;
};

static void compile(struct tc_ctx *c, void *arg)
{
	struct compilation *job = arg;
	struct tc_result *out = &job->out;
	struct dump d;
	bool dumping = start_dump(c, &d);

	c->ahead = &job->ahead;
	c->dump_dir = dumping ? d.dir : NULL;
	run_passes(c, &d, dumping, NULL);
	tc_emit(c, &out->image, &out->image_bytes);
	if (dumping)
		dump_bytes(&d, "image.elf", out->image, out->image_bytes);
}

int tc_compile(const struct tc_source *source, const struct tc_options *options,
	       struct tc_result *out, struct err *err)
{
	struct compilation job = { .out = { 0 } };
	int code = tc_enter(source, options, err, compile, &job);

	if (code && job.ahead.is_apart && !job.ahead.is_joined) {
		job.ahead = (struct tc_ahead){ .is_joined = true };
		code = tc_enter(source, options, err, compile, &job);
	}
	/* What goes ahead of loops is guessed by the arguments: it must not be what is too much.
	 * Nor must what was to be sooner done. */
	if (code && job.ahead.is_short && job.ahead.is_any) {
		job.ahead = (struct tc_ahead){ .is_off = true,
						.is_joined = job.ahead.is_joined };
		code = tc_enter(source, options, err, compile, &job);
	}
	if (!code)
		*out = job.out;
	return code;
}

void tc_result_free(struct tc_result *r)
{
	free(r->image);
	*r = (struct tc_result){ 0 };
}

/* ---- calls that their framework shares out ---- */

/* Leaves with what was wrong with a program within the program. */
static struct tc_op *read_within(struct tc_ctx *c, const struct tc_op *op, const void *p, size_t n)
{
	const struct tc_source source = { p, n, "mlir" };
	struct tc_op *outer = c->module, *made;
	const uint32_t ids = c->next_id;
	jmp_buf *boundary = c->boundary, within;
	char why[ERR_MSG_BYTES];
	volatile int code = 0;

	c->boundary = &within;
	if (!setjmp(within)) {
		c->module = NULL;
		if (!n)
			tc_fail(c, ERR_INVALID_ARGUMENT, NULL, "it has no bytes");
		take_source(c, &source);
		tc_pass_inline(c);
	} else {
		code = c->err->code;
		snprintf(why, sizeof(why), "%s", c->err->msg);
	}
	c->boundary = boundary;
	if (code)
		tc_fail(c, code, op, "the program that its partitioner gave: %.300s", why);
	made = c->module;
	c->module = outer;
	/* A text has ids of its own. */
	if (c->next_id < ids)
		c->next_id = ids;
	return made;
}

struct asking {
	const struct tc_partitioners *by;
	struct str text;
	bool is_any;
};

static void share_calls(struct tc_ctx *c, void *arg)
{
	struct asking *a = arg;
	const struct tc_asking how = { a->by, read_within, tc_read_shardings };

	tc_pass_inline(c);
	tc_ir_verify(c, "inline", true);
	a->is_any = tc_share_calls(c, &how);
	if (!a->is_any)
		return;
	tc_ir_verify(c, "partition", true);
	tc_ir_print(c->module, &a->text);
}

int tc_ask_partitioners(const struct tc_source *source, const struct tc_options *options,
			const struct tc_partitioners *by, char **text, size_t *bytes,
			struct err *err)
{
	struct asking a = { .by = by };
	int code;

	*text = NULL;
	if (!options || options->partitions <= 1 ||
	    !by->may_be_in(by->arg, source->code, source->bytes))
		return 0;
	code = tc_enter(source, options, err, share_calls, &a);
	if (!code && a.text.failed)
		code = err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory");
	if (code || !a.is_any) {
		str_free(&a.text);
		return code;
	}
	*text = a.text.text;
	*bytes = a.text.len;
	return 0;
}

struct print {
	const char *stage;
	struct str text;
};

static void print(struct tc_ctx *c, void *arg)
{
	struct print *p = arg;
	struct dump d;

	if (strcmp(p->stage, "read"))
		run_passes(c, &d, false, p->stage);
	tc_ir_print(c->module, &p->text);
}

int tc_print(const struct tc_source *source, const struct tc_options *options,
	     const char *stage, char **text, struct err *err)
{
	struct print p = { .stage = stage };
	int code = tc_enter(source, options, err, print, &p);

	if (code || p.text.failed) {
		str_free(&p.text);
		return code ? code : err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory");
	}
	*text = p.text.text;
	return 0;
}

static void write_member(struct tc_ctx *c, void *arg)
{
	struct str *out = arg;
	struct dump d;

	run_passes(c, &d, false, "shard");
	tc_write_stablehlo(c, out);
}

int tc_member_program(const struct tc_source *source, const struct tc_options *options,
		      char **text, size_t *bytes, struct err *err)
{
	struct str s = { 0 };
	int code = tc_enter(source, options, err, write_member, &s);

	if (!code && s.failed)
		code = err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory");
	if (code) {
		str_free(&s);
		return code;
	}
	*text = s.text;
	*bytes = s.len;
	return 0;
}

struct evaluation {
	const struct tc_array *args;
	size_t n_args;
	struct tc_array *outs;
	size_t n_outs;
};

static void evaluate(struct tc_ctx *c, void *arg)
{
	struct evaluation *v = arg;
	struct dump d;

	if (tc_is_dynamic(c))
		run_passes(c, &d, false, "dynamic");
	tc_eval_run(c, v->args, v->n_args, &v->outs, &v->n_outs);
}

int tc_eval(const struct tc_source *source, const struct tc_array *args, size_t n_args,
	    struct tc_array **outs, size_t *n_outs, struct err *err)
{
	const struct tc_options options = { .memory_limit = EVAL_BYTES };
	struct evaluation v = { .args = args, .n_args = n_args };
	unsigned long saved = cpu_enter_arithmetic();
	int code = tc_enter(source, &options, err, evaluate, &v);

	cpu_leave_arithmetic(saved);
	if (code)
		return code;
	*outs = v.outs;
	*n_outs = v.n_outs;
	return 0;
}

/* A member of a gang, in its thread. */
struct member {
	pthread_t thread;
	const struct tc_source *source;
	struct tc_options options;
	struct tc_seat *seat;
	struct evaluation v;
};

static void evaluate_member(struct tc_ctx *c, void *arg)
{
	struct member *m = arg;
	struct dump d;

	run_passes(c, &d, false, m->options.evaluate_after);
	c->seat = m->seat;
	tc_eval_run(c, m->v.args, m->v.n_args, &m->v.outs, &m->v.n_outs);
}

static void *run_member(void *arg)
{
	struct member *m = arg;
	struct err err;

	cpu_enter_arithmetic();
	tc_gang_leave(m->seat, tc_enter(m->source, &m->options, &err, evaluate_member, m), &err);
	return NULL;
}

/* One after the other's results. */
static int join_results(struct member *m, unsigned n, struct tc_array **outs, size_t *n_outs,
			struct err *err)
{
	size_t each = m[0].v.n_outs;
	struct tc_array *all = calloc(n * each + 1, sizeof(*all));

	if (!all)
		return err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory for results");
	for (unsigned i = 0; i < n; i++)
		for (size_t k = 0; k < each; k++) {
			all[i * each + k] = m[i].v.outs[k];
			m[i].v.outs[k].data = NULL;
		}
	*outs = all;
	*n_outs = each;
	return 0;
}

/* All members, each in a thread, to their ends. */
static int run_gang(struct tc_gang *g, struct member *m, unsigned n, struct err *err)
{
	const struct err failed = { .msg = "the host has no thread for it" };
	unsigned n_started = 0;

	for (; n_started < n; n_started++)
		if (pthread_create(&m[n_started].thread, NULL, run_member, &m[n_started]))
			break;
	for (unsigned i = n_started; i < n; i++)
		tc_gang_leave(m[i].seat, ERR_RESOURCE_EXHAUSTED, &failed);
	for (unsigned i = 0; i < n_started; i++)
		pthread_join(m[i].thread, NULL);
	return tc_gang_result(g, err);
}

int tc_eval_gang(const struct tc_source *source, const struct tc_options *options,
		 const struct tc_array *args, size_t n_args, struct tc_array **outs,
		 size_t *n_outs, struct err *err)
{
	static const struct tc_options defaults = { .level = 1 };
	struct tc_options o = options ? *options : defaults;
	uint64_t n = (uint64_t)(o.replicas ? o.replicas : 1) * (o.partitions ? o.partitions : 1);
	struct member *m;
	struct tc_gang *g = NULL;
	int code;

	if (n > MOST_EVALUATED)
		return err_set(err, ERR_RESOURCE_EXHAUSTED, "a program for %u replicas and %u "
			       "partitions: at most %u members are evaluated", o.replicas,
			       o.partitions, MOST_EVALUATED);
	o.memory_limit = EVAL_BYTES / n;
	if (!o.evaluate_after)
		o.evaluate_after = "host";
	m = calloc(n, sizeof(*m));
	code = m ? tc_gang_create((unsigned)n, o.partitions ? o.partitions : 1, &g, err) :
	       err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory");
	for (uint64_t i = 0; !code && i < n; i++)
		m[i] = (struct member){ .source = source, .options = o,
					.seat = tc_gang_seat(g, (unsigned)i),
					.v = { .args = args + i * n_args, .n_args = n_args } };
	if (!code)
		code = run_gang(g, m, (unsigned)n, err);
	if (!code)
		code = join_results(m, (unsigned)n, outs, n_outs, err);
	for (uint64_t i = 0; m && i < n; i++)
		tc_array_free(m[i].v.outs, m[i].v.n_outs);
	tc_gang_destroy(g);
	free(m);
	return code;
}

struct config {
	const struct tc_source *source;
	const struct image *image;
	void *bytes;
	size_t n;
};

static void write_config(struct tc_ctx *c, void *arg)
{
	struct config *w = arg;

	tc_write_hlo_config(c, w->source, w->image, &w->bytes, &w->n);
}

int tc_hlo_with_config(const struct tc_source *source, const struct tc_options *options,
		       const struct image *image, void **out, size_t *bytes, struct err *err)
{
	struct config w = { .source = source, .image = image };
	int code = tc_enter(source, options, err, write_config, &w);

	if (code)
		return code;
	*out = w.bytes;
	*bytes = w.n;
	return 0;
}
