/* SPDX-License-Identifier: Apache-2.0 */
/* Sharding messages of HLO as the texts that spmd/gspmd.c reads. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "runtime/compiler/front/hlo.h"
#include "runtime/compiler/passes.h"

#define MAX_DEVICES (1u << 16)
#define DIGITS 21u		/* of a number, with its comma */

/* Numbers with commas between them; the arena's. */
static const char *numbers(struct hlo *r, size_t n, const int64_t *v)
{
	char *text, *p;

	if (n > MAX_DEVICES)
		hlo_refuse(r, "a sharding over more than %u devices", MAX_DEVICES);
	p = text = hlo_get(r, n + 1, DIGITS);
	for (size_t i = 0; i < n; i++)
		p += sprintf(p, "%s%" PRId64, i ? "," : "", v[i]);
	return text;
}

static const char *order(struct hlo *r, const Hlo__Sharding *s)
{
	int64_t *perm = hlo_get(r, s->n_iota_transpose_perm, sizeof(*perm));
	const char *grid;

	if (!s->n_iota_reshape_dims)
		return numbers(r, s->n_tile_assignment_devices, s->tile_assignment_devices);
	for (size_t i = 0; i < s->n_iota_transpose_perm; i++)
		perm[i] = s->iota_transpose_perm[i];
	grid = numbers(r, s->n_iota_reshape_dims, s->iota_reshape_dims);
	return arena_printf(&r->c->arena, "<=[%s]T(%s)", grid,
			    numbers(r, s->n_iota_transpose_perm, perm));
}

static const char *last_dims(struct hlo *r, const Hlo__Sharding *s)
{
	const char *text = "";

	if (s->replicate_on_last_tile_dim)
		return " last_tile_dim_replicate";
	for (size_t i = 0; i < s->n_last_tile_dims; i++) {
		if (i == 8 || (s->last_tile_dims[i] != HLO_REPLICATED &&
			       s->last_tile_dims[i] != HLO_MANUAL))
			hlo_refuse(r, "a sharding whose last dims are more than replicated and "
				   "manual ones");
		text = arena_printf(&r->c->arena, "%s%s%s", text,
				    i ? "," : " last_tile_dims={",
				    s->last_tile_dims[i] == HLO_MANUAL ? "manual" : "replicated");
	}
	return *text ? arena_printf(&r->c->arena, "%s}", text) : text;
}

static const char *tiles(struct hlo *r, const Hlo__Sharding *s)
{
	const char *dims = numbers(r, s->n_tile_assignment_dimensions,
				   s->tile_assignment_dimensions);

	return arena_printf(&r->c->arena, "devices=[%s]%s%s", dims, order(r, s),
			    last_dims(r, s));
}

const char *hlo_sharding(struct hlo *r, const Hlo__Sharding *s)
{
	const char *what = "replicated", *group = "";

	if (!s)
		return NULL;
	switch (s->type) {
	case HLO_REPLICATED: break;
	case HLO_MAXIMAL:
		if (s->n_tile_assignment_devices != 1)
			hlo_bad(r, "its sharding names %zu devices for one",
				s->n_tile_assignment_devices);
		what = arena_printf(&r->c->arena, "maximal device=%" PRId64,
				    s->tile_assignment_devices[0]);
		break;
	case HLO_OTHER: what = tiles(r, s); break;
	case HLO_MANUAL: what = "manual"; break;
	case HLO_UNKNOWN: what = "unknown"; break;
	case HLO_TUPLE: hlo_bad(r, "an array has a sharding of a tuple");
	default: hlo_refuse(r, "a sharding of type %" PRId32, s->type);
	}
	if (s->is_shard_group)
		group = arena_printf(&r->c->arena, " shard_as %" PRId64, s->shard_group_id);
	return arena_printf(&r->c->arena, "{%s%s}", what, group);
}

void hlo_shardings(struct hlo *r, const Hlo__Sharding *s, const struct tc_type *t,
		   const char **leaf)
{
	unsigned n = hlo_count(t);
	bool is_tuple = s && s->type == HLO_TUPLE;

	/* An empty tuple has one sharding. */
	if (is_tuple && s->n_tuple_shardings != n && n)
		hlo_bad(r, "its sharding has %zu parts for %u arrays", s->n_tuple_shardings, n);
	for (unsigned i = 0; i < n; i++)
		leaf[i] = hlo_sharding(r, is_tuple ? s->tuple_shardings[i] : s);
}

void tc_read_shardings(struct tc_ctx *c, const void *p, size_t bytes, unsigned n,
		       const char **text)
{
	struct hlo r = { .c = c };
	const Hlo__Sharding *s = hlo_unpack(&r, &hlo__sharding__descriptor, p, bytes,
					    "OpSharding");
	bool is_tuple = s->type == HLO_TUPLE;

	if (is_tuple && s->n_tuple_shardings != n && n)
		hlo_bad(&r, "a sharding of %zu arrays for %u", s->n_tuple_shardings, n);
	for (unsigned i = 0; i < n; i++)
		text[i] = hlo_sharding(&r, is_tuple ? s->tuple_shardings[i] : s);
}
