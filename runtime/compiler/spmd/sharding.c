/* SPDX-License-Identifier: Apache-2.0 */
/* Shardings as text in Shardy's form: read, checked, printed. */
#include <inttypes.h>
#include <string.h>

#include "runtime/compiler/spmd/text.h"

/* ---- reading ---- */

static uint32_t find_axis(struct spmd_text *r, const struct spmd_mesh *m)
{
	const char *called = spmd_name(r);

	for (uint32_t k = 0; k < m->n_axes; k++)
		if (m->axis[k].name == called || !strcmp(m->axis[k].name, called))
			return k;
	spmd_bad(r, "axis of the mesh");
}

/* Adds a piece to the list, unless it is of one device; *used: all there are so far. */
static void piece(struct spmd_text *r, const struct spmd_mesh *m, struct spmd_axes *to,
		  struct spmd_axes *used)
{
	struct spmd_piece p = { .axis = find_axis(r, m), .pre = 1 };

	p.size = m->axis[p.axis].size;
	if (spmd_take(r, ":(")) {
		p.pre = spmd_number(r);
		spmd_expect(r, ")");
		p.size = spmd_number(r);
		if (!p.pre || p.size < 2 || p.pre > m->axis[p.axis].size ||
		    p.size > m->axis[p.axis].size / p.pre ||
		    m->axis[p.axis].size % (p.pre * p.size))
			spmd_bad(r, "part of the axis");
	}
	if (p.size == 1)
		return;
	if (spmd_has(used, p))
		spmd_bad(r, "axis that is not there yet");
	spmd_push(to, p);
	used->at[used->n++] = p;
}

/* What stands between braces; the first one is read. Gives whether it ended in `?`. */
static bool axes(struct spmd_text *r, const struct spmd_mesh *m, struct spmd_axes *to,
		 struct spmd_axes *used)
{
	bool is_first = true;

	while (!spmd_take(r, "}")) {
		if (!is_first)
			spmd_expect(r, ",");
		is_first = false;
		if (spmd_take(r, "?")) {
			spmd_expect(r, "}");
			return true;
		}
		piece(r, m, to, used);
	}
	return false;
}

static const struct spmd_mesh *mesh_of(struct spmd_text *r)
{
	const struct spmd_mesh *m;

	if (!spmd_take(r, "@"))
		return spmd_intern_mesh(r->s, spmd_mesh_text(r, ""));
	m = spmd_find_mesh(r->s, spmd_name(r));
	if (!m)
		spmd_bad(r, "mesh of the module");
	return m;
}

/* A mesh of one device by its number: the tensor is on it alone. */
static struct spmd_sharding *on_one(struct spmd_text *r, const struct spmd_mesh *m, uint32_t rank)
{
	struct spmd_sharding *h = spmd_new(r->s, m, rank);

	spmd_expect(r, "[");
	while (*r->p && !spmd_take(r, "]"))
		r->p++;
	h->kind = SPMD_MAXIMAL;
	h->device = *m->ids;
	return h;
}

static void read_dims(struct spmd_text *r, struct spmd_sharding *h, struct spmd_axes *used)
{
	spmd_expect(r, "[");
	for (uint32_t d = 0; d < h->rank; d++) {
		if (d)
			spmd_expect(r, ",");
		spmd_expect(r, "{");
		h->dim[d].is_open = axes(r, h->mesh, &h->dim[d].axes, used);
		if (spmd_take(r, "p"))
			h->dim[d].priority = (int32_t)spmd_number(r);
	}
	spmd_expect(r, "]");
}

struct spmd_sharding *spmd_read(struct spmd *s, const struct tc_op *op, const char *text,
				uint32_t rank)
{
	struct spmd_text r = { s, op, text, text };
	struct spmd_axes used = { 0 };
	struct spmd_sharding *h;

	if (*text == '{')
		return spmd_read_gspmd(s, op, text, rank);
	h = spmd_new(s, mesh_of(&r), rank);
	if (!h->mesh->n_axes && h->mesh->ids)
		return on_one(&r, h->mesh, rank);
	read_dims(&r, h, &used);
	if (spmd_take(&r, "replicated{") && axes(&r, h->mesh, &h->replicated, &used))
		spmd_bad(&r, "list that ends");
	if (spmd_take(&r, "unreduced{") && axes(&r, h->mesh, &h->unreduced, &used))
		spmd_bad(&r, "list that ends");
	if (spmd_take(&r, "manual{") && axes(&r, h->mesh, &h->manual, &used))
		spmd_bad(&r, "list that ends");
	if (*r.p)
		spmd_bad(&r, "end");
	return h;
}

struct spmd_axes spmd_read_names(struct spmd *s, const struct tc_op *op, const char *text,
				 const struct spmd_mesh *m)
{
	struct spmd_text r = { s, op, text, text };
	struct spmd_axes list = { 0 }, used = { 0 };

	spmd_expect(&r, "{");
	if (axes(&r, m, &list, &used) || *r.p)
		spmd_bad(&r, "end");
	return list;
}

/* ---- printing ---- */

static void print_name(const char *text, struct str *out)
{
	if (spmd_is_word(text)) {
		str_printf(out, "%s", text);
		return;
	}
	str_printf(out, "\"");
	for (const unsigned char *p = (const unsigned char *)text; *p; p++)
		str_printf(out, *p < 0x20 || *p >= 0x7f || *p == '"' || *p == '\\' ? "\\%02x" :
			   "%c", *p);
	str_printf(out, "\"");
}

static void print_axes(const struct spmd_mesh *m, const struct spmd_axes *a, struct str *out)
{
	for (uint32_t i = 0; i < a->n; i++) {
		const struct spmd_axis *axis = &m->axis[a->at[i].axis];

		str_printf(out, "%s", i ? "," : "");
		print_name(axis->name, out);
		if (a->at[i].size != axis->size)
			str_printf(out, ":(%" PRIu32 ")%" PRIu32, a->at[i].pre, a->at[i].size);
	}
}

static void print_mesh(const struct spmd_mesh *m, struct str *out)
{
	if (*m->name) {
		str_printf(out, "@");
		print_name(m->name, out);
		return;
	}
	for (uint32_t k = 0; k < m->n_axes; k++) {
		str_printf(out, k ? "," : "[");
		print_name(m->axis[k].name, out);
		str_printf(out, "=%" PRIu32, m->axis[k].size);
	}
	str_printf(out, m->n_axes ? "]" : "[]");
	for (uint32_t i = 0; m->ids && i < m->devices; i++)
		str_printf(out, i ? ",%" PRIu32 : "ids[%" PRIu32, m->ids[i]);
	str_printf(out, m->ids ? "]" : "");
}

static void print_list(const struct spmd_mesh *m, const char *what, const struct spmd_axes *a,
		       struct str *out)
{
	if (!a->n)
		return;
	str_printf(out, "%s{", what);
	print_axes(m, a, out);
	str_printf(out, "}");
}

static void print_dim(const struct spmd_mesh *m, const struct spmd_dim *d, struct str *out)
{
	str_printf(out, "{");
	print_axes(m, &d->axes, out);
	str_printf(out, "%s}", !d->is_open ? "" : d->axes.n ? ",?" : "?");
	if (d->priority >= 0)
		str_printf(out, "p%" PRId32, d->priority);
}

void spmd_print(const struct spmd_sharding *h, struct str *out)
{
	switch (h->kind) {
	case SPMD_MANUAL: str_printf(out, "{manual}"); return;
	case SPMD_MAXIMAL: str_printf(out, "{maximal device=%" PRIu32 "}", h->device); return;
	case SPMD_UNKNOWN:
		str_printf(out, h->group < 0 ? "{unknown}" : "{unknown shard_as %" PRId32 "}",
			   h->group);
		return;
	default: break;
	}
	print_mesh(h->mesh, out);
	str_printf(out, "[");
	for (uint32_t d = 0; d < h->rank; d++) {
		str_printf(out, d ? "," : "");
		print_dim(h->mesh, &h->dim[d], out);
	}
	str_printf(out, "]");
	print_list(h->mesh, "replicated", &h->replicated, out);
	print_list(h->mesh, "unreduced", &h->unreduced, out);
	print_list(h->mesh, "manual", &h->manual, out);
}

static void free_text(struct tc_ctx *c)
{
	str_free(c->held);
}

/* A text that the compile frees if it fails, until its copy in the arena is made. */
static struct str *new_text(struct spmd *s)
{
	struct str *text = arena_alloc(&s->c->arena, sizeof(*text));

	s->c->held = text;
	s->c->free_held = free_text;
	return text;
}

static const char *end_text(struct spmd *s, struct str *text)
{
	const char *copy;

	if (text->failed || !text->text)
		tc_fail(s->c, ERR_RESOURCE_EXHAUSTED, NULL, "out of memory");
	copy = arena_text(&s->c->arena, text->text, text->len);
	tc_free_held(s->c);
	return copy;
}

const char *spmd_text(struct spmd *s, const struct spmd_sharding *h)
{
	struct str *text = new_text(s);

	spmd_print(h, text);
	return end_text(s, text);
}

const char *spmd_names_text(struct spmd *s, const struct spmd_mesh *m, const struct spmd_axes *a)
{
	struct str *text = new_text(s);

	str_printf(text, "{");
	print_axes(m, a, text);
	str_printf(text, "}");
	return end_text(s, text);
}
