/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shardy's attributes as text: what spmd/sharding.c reads, whoever wrote the program.
 *
 * Codes are those of the dialect's bytecode. Each kind of attribute holds only kinds below it,
 * so nothing recurses; lists are short or refused, so no input makes a text long.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "runtime/compiler/front/reader.h"

enum { MANUAL_AXES = 0, MESH_AXIS = 1, MESH = 2, SUB_AXIS = 3, AXIS_REF = 4, DIM = 5,
       SHARDING = 6, PER_VALUE = 7, DIM_MAPPING = 8, TENSOR_MAPPING = 9, RULE = 10,
       SHARDING_UNREDUCED = 15, PER_VALUE_UNREDUCED = 16 };

#define MAX_LIST 64u		/* axes of a mesh or dim, dims of a sharding */
#define MAX_NAME 64u		/* bytes of an axis' or a mesh's name */
#define MAX_DEVICES (1u << 16)
#define MAX_FACTORS 256u	/* of a rule */
#define MAX_RULE (1u << 20)	/* bytes of its text */

/* A text that grows; it fits by the limits above, and what does not is an error. */
struct text {
	struct bc *r;
	char *p;
	size_t n, room;
};

static void add(struct text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void grow(struct text *t, size_t need)
{
	size_t room = t->room ? t->room : 64;
	char *p;

	while (room < need)
		room *= 2;
	if (room == t->room)
		return;
	p = bc_get(t->r, room, 1);
	if (t->n)
		memcpy(p, t->p, t->n);
	t->p = p;
	t->room = room;
}

static void add_text(struct text *t, const char *p, size_t n)
{
	grow(t, t->n + n + 1);
	memcpy(t->p + t->n, p, n + 1);
	t->n += n;
}

static void add(struct text *t, const char *fmt, ...)
{
	char piece[MAX_NAME * 4];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(piece, sizeof(piece), fmt, ap);
	va_end(ap);
	add_text(t, piece, (size_t)n);
}

/* A word as it is, anything else in quotes, with \HH for what is not plain. */
static void add_name(struct text *t, struct bc_text name, const uint8_t *at)
{
	bool is_word = name.n && !(*name.p >= '0' && *name.p <= '9');

	if (name.n > MAX_NAME)
		bc_bad(t->r, at, "an axis or mesh whose name has %u bytes", name.n);
	for (uint32_t i = 0; i < name.n; i++)
		is_word &= name.p[i] == '_' || (name.p[i] >= '0' && name.p[i] <= '9') ||
			   (name.p[i] >= 'a' && name.p[i] <= 'z') ||
			   (name.p[i] >= 'A' && name.p[i] <= 'Z');
	if (is_word) {
		add(t, "%.*s", (int)name.n, name.p);
		return;
	}
	add(t, "\"");
	for (uint32_t i = 0; i < name.n; i++) {
		unsigned char b = (unsigned char)name.p[i];

		if (b < 0x20 || b >= 0x7f || b == '"' || b == '\\')
			add(t, "\\%02x", b);
		else
			add(t, "%c", b);
	}
	add(t, "\"");
}

/* What is in an attribute after its code. */
static struct bc_cursor open_any(struct bc *r, const struct bc_attr *a, uint64_t *code,
				 const uint8_t *at)
{
	struct bc_cursor c;

	/* Others have no text. */
	if (a->kind != BC_SHARDING)
		bc_bad(r, at, "no attribute of shardings where one should be");
	c = (struct bc_cursor){ (const uint8_t *)a->text.p,
				(const uint8_t *)a->text.p + a->text.n };
	*code = bc_varint(r, &c);
	return c;
}

static struct bc_cursor open_as(struct bc *r, const struct bc_attr *a, unsigned code,
				const uint8_t *at)
{
	uint64_t is;
	struct bc_cursor c = open_any(r, a, &is, at);

	if (is != code)
		bc_bad(r, at, "an attribute of shardings of kind %" PRIu64 " where kind %u "
		       "should be", is, code);
	return c;
}

static const struct bc_attr *next_attr(struct bc *r, struct bc_cursor *c)
{
	return bc_attribute(r, bc_index(r, c, r->n_attrs, "attribute"));
}

static uint64_t short_count(struct bc *r, struct bc_cursor *c)
{
	uint64_t n = bc_count(r, c);

	if (n > MAX_LIST)
		bc_bad(r, c->p, "a list of %" PRIu64 " axes or dims; at most %u", n, MAX_LIST);
	return n;
}

static struct bc_text string_ref(struct bc *r, uint64_t i, const uint8_t *at)
{
	if (i >= r->n_strings)
		bc_bad(r, at, "string %" PRIu64 " of %" PRIu64, i, r->n_strings);
	return r->strings[i];
}

/* NAME, or NAME:(PRE)SIZE for a part of the axis. */
static void add_axis(struct text *t, const struct bc_attr *a, const uint8_t *at)
{
	struct bc_cursor c = open_as(t->r, a, AXIS_REF, at), sub;
	uint64_t name = bc_varint(t->r, &c), flag;
	const uint8_t *here = c.p;
	int64_t pre;

	add_name(t, string_ref(t->r, name, here), here);
	flag = bc_varint(t->r, &c);
	if (!(flag & 1))
		return;
	if (flag >> 1 >= t->r->n_attrs)
		bc_bad(t->r, here, "attribute %" PRIu64, flag >> 1);
	sub = open_as(t->r, bc_attribute(t->r, flag >> 1), SUB_AXIS, here);
	pre = bc_svarint(t->r, &sub);
	add(t, ":(%" PRId64 ")%" PRId64, pre, bc_svarint(t->r, &sub));
}

static uint64_t add_axes(struct text *t, struct bc_cursor *c)
{
	uint64_t n = short_count(t->r, c);

	for (uint64_t i = 0; i < n; i++) {
		const uint8_t *at = c->p;

		add(t, "%s", i ? "," : "");
		add_axis(t, next_attr(t->r, c), at);
	}
	return n;
}

static void add_dim(struct text *t, const struct bc_attr *a, const uint8_t *at)
{
	struct bc_cursor c = open_as(t->r, a, DIM, at);
	uint64_t n, priority;

	add(t, "{");
	n = add_axes(t, &c);
	if (!bc_byte(t->r, &c))
		add(t, "%s?", n ? "," : "");
	add(t, "}");
	priority = bc_varint(t->r, &c);
	if (priority & 1)
		add(t, "p%" PRIu64, priority >> 1);
}

static void add_mesh(struct text *t, const struct bc_attr *a, const uint8_t *at)
{
	struct bc_cursor c = open_as(t->r, a, MESH, at);
	uint64_t n = short_count(t->r, &c);

	add(t, "[");
	for (uint64_t i = 0; i < n; i++) {
		struct bc_cursor axis = open_as(t->r, next_attr(t->r, &c), MESH_AXIS, c.p);
		uint64_t name = bc_varint(t->r, &axis);

		add(t, "%s", i ? "," : "");
		add_name(t, string_ref(t->r, name, c.p), c.p);
		add(t, "=%" PRId64, bc_svarint(t->r, &axis));
	}
	add(t, "]");
	n = bc_count(t->r, &c);
	if (n > MAX_DEVICES)
		bc_bad(t->r, c.p, "a mesh of %" PRIu64 " devices", n);
	for (uint64_t i = 0; i < n; i++)
		add(t, "%s%" PRId64, i ? "," : "ids[", bc_svarint(t->r, &c));
	add(t, "%s", n ? "]" : "");
}

static void add_optional(struct text *t, const char *what, struct bc_cursor *c)
{
	size_t before = t->n;

	add(t, "%s{", what);
	if (add_axes(t, c)) {
		add(t, "}");
		return;
	}
	t->n = before;
	t->p[before] = 0;
}

static void add_sharding(struct text *t, const struct bc_attr *a, const uint8_t *at)
{
	uint64_t n, code;
	struct bc_cursor c = open_any(t->r, a, &code, at);
	const struct bc_attr *mesh = next_attr(t->r, &c);

	if (code != SHARDING && code != SHARDING_UNREDUCED)
		bc_bad(t->r, at, "an attribute of kind %" PRIu64 " where a sharding should be",
		       code);
	if (mesh->kind == BC_STR) {
		add(t, "@");
		add_name(t, mesh->text, c.p);
	} else {
		add_mesh(t, mesh, c.p);
	}
	add(t, "[");
	n = short_count(t->r, &c);
	for (uint64_t i = 0; i < n; i++) {
		add(t, "%s", i ? "," : "");
		add_dim(t, next_attr(t->r, &c), c.p);
	}
	add(t, "]");
	add_optional(t, "replicated", &c);
	if (code == SHARDING_UNREDUCED)
		add_optional(t, "unreduced", &c);
}

static void add_manual_axes(struct text *t, struct bc_cursor *c)
{
	uint64_t n = short_count(t->r, c);

	add(t, "{");
	for (uint64_t i = 0; i < n; i++) {
		const struct bc_attr *name = next_attr(t->r, c);

		if (name->kind != BC_STR)
			bc_bad(t->r, c->p, "a manual axis that is no name");
		add(t, "%s", i ? "," : "");
		add_name(t, name->text, c->p);
	}
	add(t, "}");
}

/* A sharding, or a list of manual axes. */
static const char *sdy_text(struct bc *r, const struct bc_attr *a)
{
	const uint8_t *at = (const uint8_t *)a->text.p;
	struct text t = { .r = r };
	uint64_t code;
	struct bc_cursor c = open_any(r, a, &code, at);

	if (code == MANUAL_AXES)
		add_manual_axes(&t, &c);
	else
		add_sharding(&t, a, at);
	return t.p;
}

const char *bc_sdy_first(struct bc *r, const struct bc_attr *a)
{
	struct bc_cursor c;
	uint64_t code;

	if (a->kind != BC_SHARDING)
		return sdy_text(r, a);
	c = open_any(r, a, &code, (const uint8_t *)a->text.p);
	if (code != PER_VALUE && code != PER_VALUE_UNREDUCED)
		return sdy_text(r, a);
	return bc_count(r, &c) ? sdy_text(r, next_attr(r, &c)) : NULL;
}

/* ---- rules ---- */

/* Numbers between `open` and behind the last; nothing if there are none. */
static void add_numbers(struct text *t, const char *open, const char *between,
			struct bc_cursor *c)
{
	uint64_t n = bc_count(t->r, c);

	if (n > MAX_FACTORS)
		bc_bad(t->r, c->p, "a list of %" PRIu64 " factors; at most %u", n, MAX_FACTORS);
	for (uint64_t i = 0; i < n; i++)
		add(t, "%s%" PRId64, i ? between : open, bc_svarint(t->r, c));
}

static void add_mapping(struct text *t, struct bc_cursor *c)
{
	struct bc_cursor in = open_as(t->r, next_attr(t->r, c), TENSOR_MAPPING, c->p);
	uint64_t n = short_count(t->r, &in);

	add(t, "[");
	for (uint64_t d = 0; d < n; d++) {
		struct bc_cursor dim = open_as(t->r, next_attr(t->r, &in), DIM_MAPPING, in.p);

		add(t, "%s", d ? "," : "");
		add_numbers(t, "", ".", &dim);
	}
	add(t, "]");
}

const char *bc_sdy_rule(struct bc *r, const struct bc_attr *a)
{
	static const char *const kinds[] = { " r", " n", " p", " b" };
	const uint8_t *at = (const uint8_t *)a->text.p;
	struct text t = { .r = r }, sizes = { .r = r };
	struct bc_cursor c = open_as(r, a, RULE, at);

	add(&sizes, " ");
	add_numbers(&sizes, "", ",", &c);
	for (unsigned side = 0; side < 2; side++) {
		uint64_t n = bc_count(r, &c);

		for (uint64_t i = 0; i < n; i++) {
			add_mapping(&t, &c);
			/* Mappings may be one, named again and again. */
			if (t.n > MAX_RULE)
				bc_bad(r, c.p, "a rule of more than %u characters", MAX_RULE);
		}
		if (!side)
			add(&t, "->");
	}
	add_text(&t, sizes.p, sizes.n);
	for (unsigned i = 0; i < 4; i++)
		add_numbers(&t, kinds[i], ",", &c);
	return t.p;
}

/* An attribute of this text. */
static struct tc_attr text_attr(const char *key, const char *text)
{
	return (struct tc_attr){ .key = key, .kind = TC_ATTR_STR, .text = text,
				 .n = (uint32_t)strlen(text) };
}

void bc_sdy_give(struct bc *r, struct tc_op *op, const char *key, size_t key_n,
		 const struct bc_attr *a)
{
	struct tc_attr out = { .key = tc_key(r->c, key, key_n), .kind = TC_ATTR_ATTRS };
	const char *empty = tc_key(r->c, "", 0);
	struct bc_cursor c;
	struct tc_attr *items;
	uint64_t code;

	if (a->kind != BC_SHARDING) {
		bc_give(r, op, key, key_n, a, false);
		return;
	}
	c = open_any(r, a, &code, (const uint8_t *)a->text.p);
	if (code != PER_VALUE && code != PER_VALUE_UNREDUCED) {
		tc_set_attr(r->c, op, text_attr(out.key, sdy_text(r, a)));
		return;
	}
	out.n = (uint32_t)bc_count(r, &c);
	out.attrs = items = bc_get(r, out.n, sizeof(*items));
	for (uint32_t i = 0; i < out.n; i++)
		items[i] = text_attr(empty, sdy_text(r, next_attr(r, &c)));
	tc_set_attr(r->c, op, out);
}

void bc_sdy_mesh(struct bc *r, struct bc_cursor *properties)
{
	const struct bc_attr *mesh = next_attr(r, properties);
	const struct bc_attr *name = next_attr(r, properties);
	uint32_t room = r->room_meshes ? 2 * r->room_meshes : 4;
	struct text t = { .r = r };
	struct tc_attr *grown;

	if (name->kind != BC_STR)
		bc_bad(r, properties->p, "a mesh without a name");
	add_mesh(&t, mesh, properties->p);
	if (r->n_meshes == r->room_meshes) {
		grown = bc_get(r, room, sizeof(*grown));
		if (r->n_meshes)
			memcpy(grown, r->meshes, r->n_meshes * sizeof(*grown));
		r->meshes = grown;
		r->room_meshes = room;
	}
	r->meshes[r->n_meshes++] = text_attr(tc_key(r->c, name->text.p, name->text.n), t.p);
}
