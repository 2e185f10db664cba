/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GSPMD's shardings: tiles given to devices by a list of numbers.
 *
 * A tiling is a grid of tiles, a dim for each of the tensor's and then dims of a meaning of
 * their own (replicated, manual), and for each tile the device that has it. A list of devices
 * that is all devices counted in another order of mixed radix becomes pieces of one axis; any
 * other becomes a mesh with ids whose axes are the grid's dims.
 */
#include <inttypes.h>
#include <string.h>

#include "runtime/compiler/spmd/text.h"

#define MAX_DIMS (TC_MAX_RANK + 4u)

/* xla.OpSharding.Type. */
enum { REPLICATED, MAXIMAL, TUPLE, OTHER, MANUAL, UNKNOWN, UNREDUCED };

struct tiling {
	uint32_t n;		/* dims of the grid */
	uint32_t dim[MAX_DIMS];
	uint32_t n_last;	/* of these the last ones, which are none of the tensor's */
	uint8_t last[MAX_DIMS];	/* REPLICATED or MANUAL */
	uint32_t devices;
	uint32_t *id;		/* by tile, row-major */
};

/* ---- reading ---- */

/* Numbers between brackets, of which the first is read; gives how many. */
static uint32_t numbers(struct spmd_text *r, uint32_t *to, uint32_t most)
{
	uint32_t n = 0;

	do {
		if (n == most)
			spmd_bad(r, "end of the list");
		to[n++] = spmd_number(r);
	} while (spmd_take(r, ","));
	spmd_expect(r, "]");
	return n;
}

static uint32_t product(struct spmd_text *r, const uint32_t *dim, uint32_t n)
{
	uint32_t all = 1;

	for (uint32_t i = 0; i < n; i++) {
		if (!dim[i] || dim[i] > SPMD_MAX_DEVICES / all)
			spmd_bad(r, "grid of 1 to 65536 devices");
		all *= dim[i];
	}
	return all;
}

/* Devices counted along a grid whose dims are taken in another order. */
static void count_devices(struct spmd_text *r, struct tiling *t)
{
	uint32_t size[MAX_DIMS], perm[MAX_DIMS], stride[MAX_DIMS], at[MAX_DIMS] = { 0 };
	uint32_t n = numbers(r, size, MAX_DIMS);
	uint64_t seen = 0;

	if (product(r, size, n) != t->devices)
		spmd_bad(r, "grid of as many devices");
	for (uint32_t i = 0; i < n; i++)
		perm[i] = i;
	if (spmd_take(r, "T(")) {
		for (uint32_t i = 0; i < n; i++) {
			if (i)
				spmd_expect(r, ",");
			perm[i] = spmd_number(r);
			if (perm[i] >= n || seen >> perm[i] & 1)
				spmd_bad(r, "permutation");
			seen |= (uint64_t)1 << perm[i];
		}
		spmd_expect(r, ")");
	}
	for (uint32_t i = n, step = 1; i-- > 0; step *= size[i])
		stride[i] = step;
	for (uint32_t tile = 0; tile < t->devices; tile++) {
		t->id[tile] = 0;
		for (uint32_t i = 0; i < n; i++)
			t->id[tile] += at[i] * stride[perm[i]];
		for (uint32_t i = n; i-- > 0 && ++at[i] == size[perm[i]];)
			at[i] = 0;
	}
}

static void list_devices(struct spmd_text *r, struct tiling *t)
{
	uint8_t *is_there = arena_array(&r->s->c->arena, t->devices, 1);

	for (uint32_t i = 0; i < t->devices; i++) {
		if (i)
			spmd_expect(r, ",");
		t->id[i] = spmd_number(r);
		if (t->id[i] >= t->devices || is_there[t->id[i]]++)
			spmd_bad(r, "permutation of the devices");
	}
}

static void last_dims(struct spmd_text *r, struct tiling *t)
{
	if (spmd_take(r, "last_tile_dim_replicate")) {
		t->last[t->n_last++] = REPLICATED;
		return;
	}
	if (!spmd_take(r, "last_tile_dims={"))
		return;
	do {
		if (t->n_last == t->n)
			spmd_bad(r, "end of the list");
		if (spmd_take(r, "replicated"))
			t->last[t->n_last++] = REPLICATED;
		else if (spmd_take(r, "manual"))
			t->last[t->n_last++] = MANUAL;
		else
			spmd_bad(r, "`replicated` or `manual`");
	} while (spmd_take(r, ","));
	spmd_expect(r, "}");
}

/* ---- tiles to pieces ---- */

/* Along one dim, whose neighbours are `step` tiles apart: the pieces of all devices that it
 * counts through, if it counts through any grid. */
static bool dim_pieces(const struct tiling *t, uint32_t size, uint32_t step,
		       struct spmd_axes *out)
{
	struct spmd_piece found[SPMD_MAX_PIECES];
	uint32_t n = 0;

	*out = (struct spmd_axes){ 0 };
	for (uint32_t done = 1; done < size;) {
		uint32_t stride = t->id[done * step], run = 1;

		while (run * done < size && t->id[run * done * step] == run * stride)
			run++;
		while (size % (run * done))
			run--;
		if (run == 1 || !stride || stride > t->devices / run ||
		    t->devices % (stride * run) || n == SPMD_MAX_PIECES)
			return false;
		found[n++] = (struct spmd_piece){ 0, t->devices / (stride * run), run };
		done *= run;
	}
	while (n)
		spmd_push(out, found[--n]);
	return true;
}

/* Whether the pieces of all dims give every tile its device. */
static bool is_so(const struct tiling *t, const struct spmd_axes *list)
{
	for (uint32_t tile = 0; tile < t->devices; tile++) {
		uint32_t rest = tile, id = 0;

		for (uint32_t d = t->n; d-- > 0;) {
			uint32_t at = rest % t->dim[d];

			rest /= t->dim[d];
			for (uint32_t i = list[d].n; i-- > 0;) {
				const struct spmd_piece *p = &list[d].at[i];

				id += at % p->size * (t->devices / (p->pre * p->size));
				at /= p->size;
			}
		}
		if (id != t->id[tile])
			return false;
	}
	return true;
}

static bool as_pieces(const struct tiling *t, struct spmd_axes *list)
{
	uint32_t step = t->devices;

	if (t->id[0])
		return false;
	for (uint32_t d = 0; d < t->n; d++) {
		step /= t->dim[d];
		if (!dim_pieces(t, t->dim[d], step, &list[d]))
			return false;
	}
	return is_so(t, list);
}

/* A mesh whose axes are the grid's dims. */
static const struct spmd_mesh *own_mesh(struct spmd *s, const struct tiling *t,
					struct spmd_axes *list)
{
	struct spmd_mesh m = { .name = "", .devices = t->devices, .ids = t->id };

	for (uint32_t d = 0; d < t->n; d++) {
		list[d] = (struct spmd_axes){ 0 };
		if (t->dim[d] == 1)
			continue;
		list[d].n = 1;
		list[d].at[0] = (struct spmd_piece){ m.n_axes, 1, t->dim[d] };
		m.axis[m.n_axes].name = arena_printf(&s->c->arena, "d%" PRIu32, d);
		m.axis[m.n_axes++].size = t->dim[d];
	}
	return spmd_intern_mesh(s, &m);
}

static struct spmd_sharding *from_tiling(struct spmd_text *r, struct tiling *t, uint32_t rank)
{
	struct spmd_axes *list = arena_array(&r->s->c->arena, t->n, sizeof(*list));
	struct spmd_sharding *h = spmd_new(r->s, NULL, rank);

	if (t->n != rank + t->n_last)
		spmd_bad(r, "tiling of a tensor of that rank");
	h->mesh = as_pieces(t, list) ? spmd_flat_mesh(r->s, t->devices) :
		  own_mesh(r->s, t, list);
	for (uint32_t d = 0; d < rank; d++) {
		h->dim[d].axes = list[d];
		h->dim[d].is_open = false;
	}
	for (uint32_t i = 0; i < t->n_last; i++)
		for (uint32_t k = 0; t->last[i] == MANUAL && k < list[rank + i].n; k++)
			spmd_push(&h->manual, list[rank + i].at[k]);
	return h;
}

static struct spmd_sharding *read_tiles(struct spmd_text *r, uint32_t rank)
{
	struct tiling t = { 0 };

	t.n = numbers(r, t.dim, MAX_DIMS);
	t.devices = product(r, t.dim, t.n);
	t.id = arena_array(&r->s->c->arena, t.devices, sizeof(*t.id));
	if (spmd_take(r, "<=["))
		count_devices(r, &t);
	else
		list_devices(r, &t);
	last_dims(r, &t);
	return from_tiling(r, &t, rank);
}

struct spmd_sharding *spmd_read_gspmd(struct spmd *s, const struct tc_op *op, const char *text,
				      uint32_t rank)
{
	struct spmd_text r = { s, op, text, text };
	struct spmd_sharding *h;

	spmd_expect(&r, "{");
	if (spmd_take(&r, "devices=[")) {
		h = read_tiles(&r, rank);
	} else {
		h = spmd_new(s, spmd_flat_mesh(s, s->devices), rank);
		if (spmd_take(&r, "manual"))
			h->kind = SPMD_MANUAL;
		else if (spmd_take(&r, "unknown"))
			h->kind = SPMD_UNKNOWN;
		else if (spmd_take(&r, "maximal device="))
			h->kind = SPMD_MAXIMAL;
		else
			spmd_expect(&r, "replicated");
		if (h->kind == SPMD_MAXIMAL)
			h->device = spmd_number(&r);
		for (uint32_t d = 0; d < rank; d++)
			h->dim[d].is_open = h->kind == SPMD_UNKNOWN;
	}
	if (spmd_take(&r, "shard_as"))
		h->group = (int32_t)spmd_number(&r);
	spmd_expect(&r, "}");
	if (*r.p)
		spmd_bad(&r, "end");
	return h;
}

/* ---- writing ---- */

struct bytes {
	uint8_t *p;
	size_t n;
};

static void put(struct bytes *b, uint64_t v)
{
	for (; v >= 0x80; v >>= 7)
		b->p[b->n++] = (uint8_t)(v | 0x80);
	b->p[b->n++] = (uint8_t)v;
}

static size_t varint_bytes(uint64_t v)
{
	size_t n = 1;

	while (v >>= 7)
		n++;
	return n;
}

static void put_list(struct bytes *b, unsigned field, const uint32_t *list, uint32_t n)
{
	size_t bytes = 0;

	for (uint32_t i = 0; i < n; i++)
		bytes += varint_bytes(list[i]);
	put(b, field << 3 | 2);
	put(b, bytes);
	for (uint32_t i = 0; i < n; i++)
		put(b, list[i]);
}

static void put_number(struct bytes *b, unsigned field, uint64_t v)
{
	put(b, field << 3);
	put(b, v);
}

/* The tiles' order as a grid of all devices taken in another order: its pieces sorted are the
 * grid, their places in it the order. What stays together is one dim. */
static uint32_t as_iota(const struct spmd_axes *order, uint32_t *size, uint32_t *perm)
{
	struct spmd_piece group[SPMD_MAX_PIECES];
	uint32_t n = 0;

	for (uint32_t i = 0; i < order->n; i++) {
		const struct spmd_piece p = order->at[i];
		uint32_t place = 0;

		for (uint32_t k = 0; k < order->n; k++)
			place += order->at[k].axis < p.axis ||
				 (order->at[k].axis == p.axis && order->at[k].pre < p.pre);
		if (n && group[n - 1].axis + 1 == place) {
			group[n - 1].axis = place;	/* of its last piece */
			group[n - 1].size *= p.size;
		} else {
			group[n++] = (struct spmd_piece){ place, 0, p.size };
		}
	}
	for (uint32_t i = 0; i < n; i++) {
		perm[i] = 0;
		for (uint32_t k = 0; k < n; k++)
			perm[i] += group[k].axis < group[i].axis;
		size[perm[i]] = group[i].size;
	}
	return n;
}

/* The device at each tile, of a mesh with ids. */
static uint32_t *device_list(struct spmd *s, const struct spmd_mesh *m,
			     const struct spmd_axes *order)
{
	uint32_t *list = arena_array(&s->c->arena, m->devices, sizeof(*list));

	for (uint32_t tile = 0; tile < m->devices; tile++) {
		uint32_t rest = tile, place = 0;

		for (uint32_t i = order->n; i-- > 0;) {
			const struct spmd_piece *p = &order->at[i];
			uint32_t below = m->axis[p->axis].size / (p->pre * p->size);

			for (uint32_t k = p->axis + 1; k < m->n_axes; k++)
				below *= m->axis[k].size;
			place += rest % p->size * below;
			rest /= p->size;
		}
		list[tile] = m->ids[place];
	}
	return list;
}

static void append(struct spmd_axes *to, const struct spmd_axes *from)
{
	for (uint32_t i = 0; i < from->n; i++)
		to->at[to->n++] = from->at[i];
}

static void put_tiles(struct spmd *s, const struct spmd_sharding *h, struct bytes *b)
{
	uint32_t dim[MAX_DIMS], last[3], n = 0, n_last = 0, n_iota;
	uint32_t size[SPMD_MAX_PIECES + 1], perm[SPMD_MAX_PIECES + 1];
	struct spmd_axes order = { 0 }, rest;

	for (uint32_t d = 0; d < h->rank; d++) {
		dim[n++] = spmd_size(&h->dim[d].axes);
		append(&order, &h->dim[d].axes);
	}
	if (h->manual.n) {
		dim[n++] = spmd_size(&h->manual);
		last[n_last++] = MANUAL;
		append(&order, &h->manual);
	}
	if (h->unreduced.n) {
		dim[n++] = spmd_size(&h->unreduced);
		last[n_last++] = UNREDUCED;
		append(&order, &h->unreduced);
	}
	rest = spmd_rest(h->mesh, &order);
	if (rest.n) {
		dim[n++] = spmd_size(&rest);
		last[n_last++] = REPLICATED;
		append(&order, &rest);
	}
	put_number(b, 1, OTHER);
	put_list(b, 3, dim, n);
	if (h->mesh->ids)
		put_list(b, 4, device_list(s, h->mesh, &order), h->mesh->devices);
	if (rest.n && n_last == 1)
		put_number(b, 6, 1);
	else if (n_last)
		put_list(b, 8, last, n_last);
	if (h->mesh->ids)
		return;
	n_iota = as_iota(&order, size, perm);
	put_list(b, 9, size, n_iota);
	put_list(b, 10, perm, n_iota);
}

static bool is_tiled(const struct spmd_sharding *h)
{
	uint32_t n = h->manual.n + h->unreduced.n;

	for (uint32_t d = 0; d < h->rank; d++)
		n += h->dim[d].axes.n;
	return n > 0;
}

const uint8_t *spmd_write_proto(struct spmd *s, const struct spmd_sharding *h, size_t *n)
{
	const uint32_t one = 1;
	struct bytes b = { arena_alloc(&s->c->arena, 512 + 5 * (size_t)h->mesh->devices), 0 };

	if (spmd_size(&h->unreduced) == h->mesh->devices && h->unreduced.n) {
		put_number(&b, 1, UNREDUCED);
		*n = b.n;
		return b.p;
	}
	switch (h->kind) {
	case SPMD_MANUAL:
		put_number(&b, 1, MANUAL);
		break;
	case SPMD_UNKNOWN:
		put_number(&b, 1, UNKNOWN);
		break;
	case SPMD_MAXIMAL:
		put_number(&b, 1, MAXIMAL);
		put_list(&b, 3, &one, 1);
		put_list(&b, 4, &h->device, 1);
		break;
	default:
		if (is_tiled(h))
			put_tiles(s, h, &b);
		break;
	}
	*n = b.n;
	return b.p;
}
