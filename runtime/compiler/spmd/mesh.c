/* SPDX-License-Identifier: Apache-2.0 */
/* Meshes, and pieces of their axes. */
#include <string.h>

#include "runtime/compiler/spmd/text.h"

/* ---- meshes ---- */

static const uint32_t *mesh_ids(struct spmd_text *r, uint32_t devices)
{
	uint32_t *ids = arena_array(&r->s->c->arena, devices, sizeof(*ids));
	uint8_t *is_there = arena_array(&r->s->c->arena, devices, 1);
	bool is_iota = true;

	for (uint32_t i = 0; i < devices; i++) {
		if (i)
			spmd_expect(r, ",");
		ids[i] = spmd_number(r);
		if (ids[i] >= devices || is_there[ids[i]]++)
			spmd_bad(r, "permutation of the devices");
		is_iota &= ids[i] == i;
	}
	spmd_expect(r, "]");
	return is_iota ? NULL : ids;
}

/* A mesh without axes has one device at most, `ids[3]`: all of a tensor is there. */
const struct spmd_mesh *spmd_mesh_text(struct spmd_text *r, const char *called)
{
	struct spmd_mesh *m = arena_alloc(&r->s->c->arena, sizeof(*m));

	m->name = called;
	m->devices = 1;
	spmd_expect(r, "[");
	while (!spmd_take(r, "]")) {
		struct spmd_axis *a = &m->axis[m->n_axes];

		if (m->n_axes)
			spmd_expect(r, ",");
		if (m->n_axes == SPMD_MAX_AXES)
			spmd_bad(r, "mesh of fewer axes");
		a->name = spmd_name(r);
		spmd_expect(r, "=");
		a->size = spmd_number(r);
		for (uint32_t i = 0; i < m->n_axes; i++)
			if (m->axis[i].name == a->name)
				spmd_bad(r, "mesh whose axes have different names");
		if (!a->size || a->size > SPMD_MAX_DEVICES / m->devices)
			spmd_bad(r, "mesh of 1 to 65536 devices");
		m->devices *= a->size;
		m->n_axes++;
	}
	if (!m->n_axes && spmd_take(r, "ids[")) {
		uint32_t *one = arena_alloc(&r->s->c->arena, sizeof(*one));

		*one = spmd_number(r);
		m->ids = one;
		spmd_expect(r, "]");
	} else if (spmd_take(r, "ids[")) {
		m->ids = mesh_ids(r, m->devices);
	}
	return m;
}

/* A mesh as in `[x=4,y=2]ids[...]`, under that name. */
static const struct spmd_mesh *read_mesh(struct spmd *s, const char *called, const char *text)
{
	struct spmd_text r = { s, NULL, text, text };
	const struct spmd_mesh *m = spmd_mesh_text(&r, called);

	if (*r.p)
		spmd_bad(&r, "end");
	return m;
}

static void keep_mesh(struct spmd *s, const struct spmd_mesh *m)
{
	uint32_t room = s->room ? 2 * s->room : 4;
	const struct spmd_mesh **grown;

	if (s->n_meshes == s->room) {
		grown = arena_array(&s->c->arena, room, sizeof(*grown));
		if (s->n_meshes)
			memcpy(grown, s->mesh, s->n_meshes * sizeof(*grown));
		s->mesh = grown;
		s->room = room;
	}
	s->mesh[s->n_meshes++] = m;
}

struct spmd *spmd_open(struct tc_ctx *c)
{
	const struct tc_attr *all = tc_attr(c->module, "meshes");
	int64_t partitions = tc_attr_int(c->module, "num_partitions", 1);
	struct spmd *s = arena_alloc(&c->arena, sizeof(*s));

	s->c = c;
	s->devices = (uint32_t)(partitions < 1 ? 1 : partitions > SPMD_MAX_DEVICES ?
				SPMD_MAX_DEVICES : partitions);
	for (uint32_t i = 0; all && i < all->n; i++) {
		if (all->attrs[i].kind != TC_ATTR_STR)
			tc_fail(c, ERR_INVALID_ARGUMENT, c->module, "mesh %.60s is no text",
				all->attrs[i].key);
		if (spmd_find_mesh(s, all->attrs[i].key))
			tc_fail(c, ERR_INVALID_ARGUMENT, c->module, "two meshes are called "
				"%.60s", all->attrs[i].key);
		keep_mesh(s, read_mesh(s, all->attrs[i].key, all->attrs[i].text));
	}
	return s;
}

const struct spmd_mesh *spmd_find_mesh(const struct spmd *s, const char *name)
{
	for (uint32_t i = 0; i < s->n_meshes; i++)
		if (*name && !strcmp(s->mesh[i]->name, name))
			return s->mesh[i];
	return NULL;
}

static bool same_mesh(const struct spmd_mesh *a, const struct spmd_mesh *b)
{
	if (a->n_axes != b->n_axes || a->devices != b->devices || !a->ids != !b->ids)
		return false;
	for (uint32_t i = 0; i < a->n_axes; i++)
		if (a->axis[i].size != b->axis[i].size ||
		    strcmp(a->axis[i].name, b->axis[i].name))
			return false;
	return !a->ids || !memcmp(a->ids, b->ids, a->devices * sizeof(*a->ids));
}

const struct spmd_mesh *spmd_intern_mesh(struct spmd *s, const struct spmd_mesh *m)
{
	struct spmd_mesh *copy;

	for (uint32_t i = 0; i < s->n_meshes; i++)
		if (same_mesh(s->mesh[i], m))
			return s->mesh[i];
	copy = arena_copy(&s->c->arena, m, sizeof(*m));
	copy->name = "";
	keep_mesh(s, copy);
	return copy;
}

const struct spmd_mesh *spmd_flat_mesh(struct spmd *s, uint32_t devices)
{
	const struct spmd_mesh m = { .name = "", .n_axes = 1, .axis = { { "d", devices } },
				     .devices = devices };

	if (!s->flat || s->flat->devices != devices)
		s->flat = spmd_intern_mesh(s, &m);
	return s->flat;
}

struct spmd_sharding *spmd_new(struct spmd *s, const struct spmd_mesh *m, uint32_t rank)
{
	struct spmd_sharding *h = arena_alloc(&s->c->arena, sizeof(*h));

	h->mesh = m;
	h->rank = rank;
	h->dim = arena_array(&s->c->arena, rank, sizeof(*h->dim));
	h->group = -1;
	for (uint32_t d = 0; d < rank; d++) {
		h->dim[d].is_open = true;
		h->dim[d].priority = -1;
	}
	return h;
}

struct spmd_sharding *spmd_copy(struct spmd *s, const struct spmd_sharding *h)
{
	struct spmd_sharding *copy = arena_copy(&s->c->arena, h, sizeof(*h));

	copy->dim = arena_array(&s->c->arena, h->rank, sizeof(*h->dim));
	if (h->rank)
		memcpy(copy->dim, h->dim, h->rank * sizeof(*h->dim));
	return copy;
}

/* ---- pieces ---- */

uint32_t spmd_size(const struct spmd_axes *a)
{
	uint32_t size = 1;

	for (uint32_t i = 0; i < a->n; i++)
		size *= a->at[i].size;
	return size;
}

/* Whether b is of what is left of the axis behind a. */
static bool is_behind(struct spmd_piece a, struct spmd_piece b)
{
	return b.pre % ((uint64_t)a.pre * a.size) == 0;
}

bool spmd_overlap(struct spmd_piece a, struct spmd_piece b)
{
	return a.axis == b.axis && !is_behind(a, b) && !is_behind(b, a);
}

bool spmd_has(const struct spmd_axes *a, struct spmd_piece p)
{
	for (uint32_t i = 0; i < a->n; i++)
		if (spmd_overlap(a->at[i], p))
			return true;
	return false;
}

bool spmd_same_axes(const struct spmd_axes *a, const struct spmd_axes *b)
{
	return a->n == b->n && !memcmp(a->at, b->at, a->n * sizeof(*a->at));
}

void spmd_push(struct spmd_axes *a, struct spmd_piece p)
{
	struct spmd_piece *last = a->n ? &a->at[a->n - 1] : NULL;

	if (last && last->axis == p.axis && last->pre * last->size == p.pre)
		last->size *= p.size;
	else if (a->n < SPMD_MAX_PIECES)
		a->at[a->n++] = p;
}

/* Of the pieces of one axis the first that begins at or after `from`. */
static const struct spmd_piece *next_piece(const struct spmd_axes *a, uint32_t axis,
					   uint32_t from)
{
	const struct spmd_piece *best = NULL;

	for (uint32_t i = 0; i < a->n; i++)
		if (a->at[i].axis == axis && a->at[i].pre >= from &&
		    (!best || a->at[i].pre < best->pre))
			best = &a->at[i];
	return best;
}

struct spmd_axes spmd_rest(const struct spmd_mesh *m, const struct spmd_axes *uses)
{
	struct spmd_axes rest = { 0 };

	for (uint32_t k = 0; k < m->n_axes; k++) {
		uint32_t from = 1, all = m->axis[k].size;

		while (from < all) {
			const struct spmd_piece *p = next_piece(uses, k, from);
			uint32_t to = p ? p->pre : all;

			if (to > from)
				spmd_push(&rest, (struct spmd_piece){ k, from, to / from });
			from = p ? p->pre * p->size : all;
		}
	}
	return rest;
}

/* ---- from mesh to mesh ---- */

/* The product of the axes before axis k. */
static uint32_t before(const struct spmd_mesh *m, uint32_t k)
{
	uint32_t n = 1;

	for (uint32_t i = 0; i < k; i++)
		n *= m->axis[i].size;
	return n;
}

uint32_t spmd_gcd(uint64_t a, uint64_t b)
{
	while (b) {
		uint64_t r = a % b;

		a = b;
		b = r;
	}
	return (uint32_t)a;
}

/* Of all devices as [pre, size, rest] the middle, in pieces of m. */
static bool cut(const struct spmd_mesh *m, uint32_t pre, uint32_t size, struct spmd_axes *out)
{
	for (uint32_t k = 0; k < m->n_axes && size > 1; k++) {
		uint32_t first = before(m, k), end = first * m->axis[k].size, part;

		if (pre >= end)
			continue;
		if (pre % first || end % pre)
			return false;
		part = spmd_gcd(end / pre, size);
		if (part != size && part != end / pre)
			return false;
		if (part > 1)
			spmd_push(out, (struct spmd_piece){ k, pre / first, part });
		pre *= part;
		size /= part;
	}
	return size == 1;
}

static bool cut_all(const struct spmd_mesh *from, const struct spmd_axes *a,
		    const struct spmd_mesh *m, struct spmd_axes *out)
{
	*out = (struct spmd_axes){ 0 };
	for (uint32_t i = 0; i < a->n; i++)
		if (!cut(m, before(from, a->at[i].axis) * a->at[i].pre, a->at[i].size, out))
			return false;
	return true;
}

bool spmd_to_mesh(struct spmd *s, const struct spmd_sharding *from, const struct spmd_mesh *m,
		  struct spmd_sharding *to)
{
	const struct spmd_mesh *of = from->mesh;
	bool fits = true;

	*to = *spmd_copy(s, from);
	if (of == m || from->kind != SPMD_TILED)
		return true;
	/* JAX's @empty_mesh: whole on every device, whatever the mesh. */
	if (!of->n_axes && !of->ids) {
		to->mesh = m;
		return true;
	}
	if (of->devices != m->devices || of->ids || m->ids)
		return false;
	to->mesh = m;
	for (uint32_t d = 0; d < from->rank; d++)
		fits &= cut_all(of, &from->dim[d].axes, m, &to->dim[d].axes);
	return fits && cut_all(of, &from->replicated, m, &to->replicated) &&
	       cut_all(of, &from->unreduced, m, &to->unreduced) &&
	       cut_all(of, &from->manual, m, &to->manual);
}
