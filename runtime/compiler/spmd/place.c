/* SPDX-License-Identifier: Apache-2.0 */
/* Who has which part: places of members in the mesh, and groups of those that meet. */
#include <inttypes.h>

#include "runtime/compiler/spmd/shard_internal.h"
#include "runtime/compiler/tc.h"

void shard_places(struct shard *s)
{
	const struct tc_options *o = s->c->options;
	uint32_t *place;

	s->replicas = o->replicas ? o->replicas : 1;
	s->partitions = o->partitions;
	if (s->mesh->devices != s->partitions)
		tc_fail(s->c, ERR_INVALID_ARGUMENT, NULL, "the program's mesh%s%s is of %" PRIu32
			" devices, but it is compiled for %" PRIu32 " partitions: say in the "
			"compile options as many as the mesh has", *s->mesh->name ? " " : "",
			s->mesh->name, s->mesh->devices, s->partitions);
	place = arena_array(&s->c->arena, s->partitions, sizeof(*place));
	for (uint32_t i = 0; i < s->partitions; i++)
		place[s->mesh->ids ? s->mesh->ids[i] : i] = i;
	s->place = place;
}

/* How many places neighbours along a piece are apart. */
static uint32_t stride_of(const struct spmd_mesh *m, struct spmd_piece p)
{
	uint32_t n = m->axis[p.axis].size / (p.pre * p.size);

	for (uint32_t k = p.axis + 1; k < m->n_axes; k++)
		n *= m->axis[k].size;
	return n;
}

static uint32_t index_at(const struct spmd_mesh *m, uint32_t place, const struct spmd_axes *a)
{
	uint32_t index = 0;

	for (uint32_t i = 0; i < a->n; i++)
		index = index * a->at[i].size + place / stride_of(m, a->at[i]) % a->at[i].size;
	return index;
}

/* The place that differs from one at index 0 by another index. */
static uint32_t place_at(const struct spmd_mesh *m, uint32_t place, const struct spmd_axes *a,
			 uint32_t index)
{
	for (uint32_t i = a->n; i-- > 0; index /= a->at[i].size)
		place += index % a->at[i].size * stride_of(m, a->at[i]);
	return place;
}

uint32_t shard_place(const struct shard *s, uint32_t partition, const struct spmd_axes *a)
{
	return index_at(s->mesh, s->place[partition], a);
}

uint32_t shard_other(const struct shard *s, uint32_t partition, const struct spmd_axes *a,
		     uint32_t place)
{
	const struct spmd_mesh *m = s->mesh;
	uint32_t first = s->place[partition] - place_at(m, 0, a, index_at(m, s->place[partition],
									  a));
	uint32_t to = place_at(m, first, a, place);

	return m->ids ? m->ids[to] : to;
}

void shard_set_groups(struct shard *s, struct tc_op *op, const struct spmd_axes *a)
{
	uint32_t size = spmd_size(a), n = 0;
	int64_t *list = arena_array(&s->c->arena, (size_t)s->replicas * s->partitions,
				    sizeof(*list));

	for (uint32_t r = 0; r < s->replicas; r++)
		for (uint32_t place = 0; place < s->partitions; place++) {
			if (index_at(s->mesh, place, a))
				continue;
			for (uint32_t i = 0; i < size; i++) {
				uint32_t to = place_at(s->mesh, place, a, i);

				list[n++] = (int64_t)r * s->partitions +
					    (s->mesh->ids ? s->mesh->ids[to] : to);
			}
		}
	tc_set_ints(s->c, op, "replica_groups", list, n);
	tc_set_int(s->c, op, "group_size", TC_ATTR_INT, size);
	tc_set_int(s->c, op, "channel_id", TC_ATTR_INT, 1);
	tc_set_int(s->c, op, "use_global_device_ids", TC_ATTR_BOOL, 1);
}

/* The partition's number as an s32 scalar. */
static struct tc_value *own_number(struct shard *s, const struct tc_build *b)
{
	if (!s->number)
		s->number = tc_build_convert(b, tc_build(b, TC_PARTITION_ID,
							 tc_tensor(s->c, ELEM_U32, 0, NULL),
							 0, NULL), ELEM_S32);
	return s->number;
}

struct tc_value *shard_index_of(struct shard *s, const struct spmd_axes *a)
{
	struct tc_build b = { .c = s->c, .before = s->top, .where = "" };
	int64_t n = s->partitions;
	struct shard_index *x;
	struct tc_value *v;
	int32_t *list;

	for (x = s->indices; x; x = x->next)
		if (spmd_same_axes(&x->axes, a))
			return x->value;
	list = arena_array(&s->c->arena, s->partitions, sizeof(*list));
	for (uint32_t i = 0; i < s->partitions; i++)
		list[i] = (int32_t)shard_place(s, i, a);
	v = tc_build_data(&b, tc_tensor(s->c, ELEM_S32, 1, &n), list);
	v = tc_build_take(&b, v, 0, own_number(s, &b), 1);
	x = arena_alloc(&s->c->arena, sizeof(*x));
	*x = (struct shard_index){ *a, tc_build_reshape(&b, v, 0, NULL), s->indices };
	s->indices = x;
	return x->value;
}

struct tc_value *shard_start_of(struct shard *s, const struct tc_build *b,
				const struct spmd_axes *a, int64_t size)
{
	enum elem elem = spmd_size(a) * size > INT32_MAX ? ELEM_S64 : ELEM_S32;
	struct tc_value *v = tc_build_convert(b, shard_index_of(s, a), elem);

	return tc_build2(b, TC_MULTIPLY, v, tc_build_number(b, v->type, (double)size));
}

bool shard_are_free(const struct shard_plan *plan, const struct spmd_axes *a)
{
	for (uint32_t f = 0; f < plan->rule->n_factors; f++)
		for (uint32_t i = 0; i < plan->factor[f].n; i++)
			if (spmd_has(a, plan->factor[f].at[i]))
				return false;
	return true;
}

/* ---- main's arguments and results ---- */

const struct tc_type *shard_padded(struct shard *s, const struct tc_type *t,
				   const struct spmd_sharding *h)
{
	int64_t dim[TC_MAX_RANK];

	for (unsigned d = 0; d < t->rank; d++) {
		int64_t n = spmd_size(&h->dim[d].axes);

		dim[d] = (t->dim[d] + n - 1) / n * n;
	}
	return tc_tensor(s->c, (enum elem)t->elem, t->rank, dim);
}

struct spmd_sharding *shard_even_dims(struct shard *s, const struct spmd_sharding *h,
				       const struct tc_type *t)
{
	struct spmd_sharding *to = spmd_copy(s->p->s, h);

	for (uint32_t d = 0; d < h->rank; d++)
		if (t->dim[d] % spmd_size(&h->dim[d].axes))
			to->dim[d].axes.n = 0;
	return to;
}

struct spmd_sharding *shard_at_border(struct shard *s, const struct spmd_sharding *h,
				       const char *what, unsigned i)
{
	struct spmd_sharding *to = spmd_new(s->p->s, s->mesh, h->rank);

	if (h->kind == SPMD_MAXIMAL)
		tc_fail(s->c, ERR_UNIMPLEMENTED, NULL, "%s %u of the program is on device %" PRIu32
			" alone, of %" PRIu32 ": this does not run yet; replicate it", what, i,
			h->device, s->partitions);
	for (uint32_t d = 0; d < h->rank; d++) {
		to->dim[d].is_open = false;
		if (h->kind == SPMD_TILED)
			to->dim[d].axes = h->dim[d].axes;
	}
	if (h->kind == SPMD_TILED)
		to->unreduced = h->unreduced;
	return to;
}
