/* SPDX-License-Identifier: Apache-2.0 */
/* An executable as JSON, schema tessera-objdump/1: its keys are an interface. */
#include <json-c/json.h>
#include <math.h>
#include <string.h>

#include "hal/hw/isa_print.h"
#include "tools/tessera-objdump/objdump.h"

static void add(struct json_object *to, const char *key, struct json_object *value)
{
	json_object_object_add(to, key, value);
}

static struct json_object *number(uint64_t v)
{
	return json_object_new_uint64(v);
}

/* JSON has no number that is not finite: null. */
static struct json_object *real(double v)
{
	return isfinite(v) ? json_object_new_double(v) : NULL;
}

/* A text, freed here; NULL if it could not be made. */
static struct json_object *text(struct str *s)
{
	struct json_object *o = s->failed ? NULL :
		json_object_new_string_len(s->text ? s->text : "", (int)s->len);

	str_free(s);
	return o;
}

static struct json_object *clean(const char *of)
{
	struct str s = { 0 };

	objdump_clean(of, &s);
	return text(&s);
}

static struct json_object *type_of(const struct image_shape *shape)
{
	struct str s = { 0 };

	objdump_type(shape, &s);
	return text(&s);
}

static struct json_object *bindings(const struct image *im)
{
	struct json_object *list = json_object_new_array();

	for (size_t i = 0; i < im->n_bindings; i++) {
		const struct image_binding *b = &im->bindings[i];
		struct json_object *o = json_object_new_object();

		add(o, "holds", json_object_new_string(objdump_binding_kind(b)));
		add(o, "index", objdump_shape_of(im, b) || b->kind == IMAGE_PEER ||
		    b->kind == IMAGE_PEER_DATA ?
		    number(b->index) : NULL);
		add(o, "access", json_object_new_string(objdump_access(b)));
		add(o, "bytes", number(b->bytes));
		json_object_array_add(list, o);
	}
	return list;
}

static struct json_object *transfers(const struct image *im)
{
	struct json_object *list = json_object_new_array();

	for (size_t i = 0; i < im->n_transfers; i++) {
		const struct image_transfer *t = &im->transfers[i];
		struct json_object *o = json_object_new_object();

		add(o, "call", number(t->call));
		add(o, "is_from_host", json_object_new_boolean(t->way != IMAGE_TO_HOST));
		add(o, "channel", json_object_new_int64(t->channel));
		add(o, "binding", number(t->binding));
		add(o, "offset", number(t->offset));
		add(o, "bytes", number(t->bytes));
		json_object_array_add(list, o);
	}
	return list;
}

/* Whom each member meets, and its row. */
static struct json_object *members(const struct image *im)
{
	struct json_object *list = json_object_new_array();

	for (size_t m = 0; m < image_n_members(im); m++) {
		struct json_object *o = json_object_new_object();
		struct json_object *peers = json_object_new_array();
		struct json_object *row = json_object_new_array();

		for (size_t k = 0; k < im->n_slots; k++)
			json_object_array_add(peers, number(im->peers[m * im->n_slots + k]));
		for (size_t k = 0; k < im->n_words; k++)
			json_object_array_add(row, number(im->members[m * im->n_words + k]));
		add(o, "peers", peers);
		add(o, "row", row);
		json_object_array_add(list, o);
	}
	return list;
}

static struct json_object *meetings(const struct image *im)
{
	struct json_object *list = json_object_new_array();

	for (size_t i = 0; i < im->n_meetings; i++) {
		const struct image_meeting *m = &im->meetings[i];
		struct json_object *o = json_object_new_object();

		add(o, "kind", json_object_new_string(image_meeting_kind_text(m)));
		add(o, "type", json_object_new_string(elem_text(m->elem)));
		add(o, "bytes", number(m->bytes));
		add(o, "depth", number(m->depth));
		add(o, "groups", clean(image_string(im, m->groups)));
		add(o, "where", clean(image_string(im, m->where)));
		json_object_array_add(list, o);
	}
	return list;
}

static void add_headers(struct json_object *o, const struct objdump_file *f)
{
	const struct image *im = f->image;
	const struct image_info *in = &im->info;
	struct str hex = { 0 }, signature = { 0 };

	for (size_t i = 0; i < sizeof(in->fingerprint); i++)
		str_printf(&hex, "%02x", in->fingerprint[i]);
	objdump_signature(im, &signature);
	add(o, "program", clean(image_string(im, in->name)));
	add(o, "note", clean(im->note));
	add(o, "signature", text(&signature));
	add(o, "fingerprint", text(&hex));
	add(o, "file_bytes", number(f->bytes));
	add(o, "format", number(in->version));
	add(o, "isa", number(in->isa));
	add(o, "code_bytes", number(im->text_bytes));
	add(o, "instructions", number(objdump_count(im)));
	add(o, "is_straight", json_object_new_boolean(in->flags & IMAGE_STRAIGHT));
	add(o, "constants_bytes", number(im->rodata_bytes));
	add(o, "temporaries_bytes", number(in->temp_bytes));
	add(o, "replicas", number(in->n_replicas));
	add(o, "partitions", number(in->n_partitions));
	add(o, "debug_rows", number(im->n_debug));
	add(o, "estimated_ns", number(in->cost_ns));
	add(o, "operations", real(in->flops));
	add(o, "bytes_moved", real(in->bytes_accessed));
	add(o, "transcendentals", real(in->transcendentals));
	add(o, "bindings", bindings(im));
	add(o, "host_transfers", transfers(im));
	add(o, "members", members(im));
	add(o, "meetings", meetings(im));
}

static struct json_object *shapes(const struct image_shape *s, uint32_t n, bool of_results)
{
	struct json_object *list = json_object_new_array();

	for (uint32_t i = 0; i < n; i++, s++) {
		struct json_object *o = json_object_new_object();

		add(o, "type", type_of(s));
		add(o, "bytes", number(image_shape_bytes(s)));
		add(o, "memory_kind", json_object_new_string(objdump_memory_kind(s)));
		if (!of_results)
			add(o, "is_donated", json_object_new_boolean(s->is_donated));
		add(o, of_results ? "argument" : "result",
		    s->alias < 0 ? NULL : json_object_new_int(s->alias));
		json_object_array_add(list, o);
	}
	return list;
}

/* The instruction's first line, and its other lines as a list. */
static void add_lines(struct json_object *o, const char *printed)
{
	struct json_object *list = json_object_new_array();
	const char *end = strchrnul(printed, '\n');

	add(o, "text", json_object_new_string_len(printed, (int)(end - printed)));
	while (*end) {
		const char *from = end + 1 + strspn(end + 1, " ");

		end = strchrnul(from, '\n');
		json_object_array_add(list, json_object_new_string_len(from,
								       (int)(end - from)));
	}
	add(o, "parts", list);
}

static struct json_object *code(const struct image *im)
{
	struct json_object *list = json_object_new_array();
	struct str printed = { 0 };
	size_t step;

	for (size_t at = 0; at < im->text_bytes; at += step) {
		const struct image_debug *row = image_where(im, at);
		struct json_object *o = json_object_new_object();

		printed.len = 0;
		step = isa_print_insn((const char *)im->text + at, im->text_bytes - at, at,
				      &printed);
		add(o, "offset", number(at));
		add(o, "bytes", number(step));
		add_lines(o, printed.failed ? "" : printed.text);
		add(o, "op", row ? clean(image_string(im, row->op)) : NULL);
		add(o, "where", row ? clean(image_string(im, row->where)) : NULL);
		json_object_array_add(list, o);
		if (printed.failed)
			break;
	}
	if (printed.failed) {
		json_object_put(list);
		list = NULL;
	}
	str_free(&printed);
	return list;
}

/* null: nothing was found. */
static struct json_object *refusal(const struct objdump_file *f)
{
	const struct image_debug *row = image_where(f->image, f->verdict.offset);
	struct json_object *o;

	if (!f->is_refused)
		return NULL;
	o = json_object_new_object();
	add(o, "offset", number(f->verdict.offset));
	add(o, "why", clean(f->verdict.why));
	add(o, "op", row ? clean(image_string(f->image, row->op)) : NULL);
	add(o, "where", row ? clean(image_string(f->image, row->where)) : NULL);
	return o;
}

struct json_object *objdump_json(const struct objdump_file *f, unsigned parts)
{
	const struct image *im = f->image;
	struct json_object *o = json_object_new_object(), *instructions;

	add(o, "path", clean(f->path));
	if (parts & OBJDUMP_HEADERS)
		add_headers(o, f);
	if (parts & OBJDUMP_SIGNATURE) {
		add(o, "arguments", shapes(im->shapes, im->info.n_args, false));
		add(o, "results", shapes(im->shapes + im->info.n_args, im->info.n_results,
					 true));
	}
	if (parts & OBJDUMP_CODE) {
		instructions = code(im);
		if (!instructions) {
			json_object_put(o);
			return NULL;
		}
		add(o, "code", instructions);
	}
	if (parts & OBJDUMP_VERIFY)
		add(o, "refused", refusal(f));
	return o;
}
