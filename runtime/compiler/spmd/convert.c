/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From one sharding to another, in the cheapest way that is found: cutting off what others
 * have too, exchanging parts (all_to_all), passing them on (collective_permute), collecting
 * them (all_gather). Parts of a sum are added up where that costs least: reduce_scatter where
 * they are cut along the sum's axes anyway.
 *
 * Both shardings' pieces are cut into *atoms*: any two are the same or have nothing in common, or
 * are of different grids, and then no member's place along both is looked at.
 *
 * What a loop does not change is converted before it, and not in each turn anew: a captured value,
 * or one that the loop carries and gives on as it was, as far out as that is so. Such copies stay
 * for as long as the loop runs, and there may be many of them. Together they may take a part of
 * the memory that main's arguments leave; others are made in each turn.
 */
#include <string.h>

#include "runtime/compiler/loop/loop.h"
#include "runtime/compiler/spmd/shard_internal.h"
#include "runtime/compiler/tc.h"

#define AHEAD_PARTS 8		/* of the memory that is left: one is for copies before loops */
#define MOST_TURNS ((int64_t)1 << 40)	/* they are counted up to that */
#define LEAST_GATHERED (1 << 16)	/* bytes: of less the meetings take the time */

/* A tensor on its way; lists of atoms for each dim. */
struct move {
	struct shard *s;
	const struct tc_build *b;
	struct tc_value *v;
	uint32_t rank;
	struct spmd_axes *is, *want;
	struct spmd_axes sum;		/* atoms along which v is a part of a sum */
	struct spmd_axes own;		/* along which v is each member's own, to the end */
	enum tc_opcode op;
};

const struct tc_type *shard_local_type(struct shard *s, const struct tc_type *t,
				       const struct spmd_sharding *h)
{
	int64_t dim[TC_MAX_RANK];

	for (unsigned d = 0; d < t->rank; d++) {
		int64_t n = spmd_size(&h->dim[d].axes);

		dim[d] = t->dim[d] / n + (t->dim[d] % n != 0);
	}
	return tc_tensor(s->c, (enum elem)t->elem, t->rank, dim);
}

static bool has_same_dims(const struct spmd_sharding *a, const struct spmd_sharding *b)
{
	for (uint32_t d = 0; d < a->rank; d++)
		if (!spmd_same_axes(&a->dim[d].axes, &b->dim[d].axes))
			return false;
	return true;
}

bool shard_is_same(const struct spmd_sharding *a, const struct spmd_sharding *b)
{
	return has_same_dims(a, b) && spmd_same_axes(&a->unreduced, &b->unreduced);
}

/* ---- atoms ---- */

/* The first place behind p.pre where another piece of the same axis begins or ends. */
static uint32_t next_cut(struct spmd_piece p, const struct spmd_axes *all)
{
	uint32_t cut = p.pre * p.size;

	for (uint32_t i = 0; i < all->n; i++) {
		uint32_t ends[2] = { all->at[i].pre, all->at[i].pre * all->at[i].size };

		for (unsigned k = 0; k < 2; k++)
			if (all->at[i].axis == p.axis && ends[k] > p.pre && ends[k] < cut)
				cut = ends[k];
	}
	return cut;
}

/* Cuts each piece of a list where a piece of `all` begins or ends; false: that is no grid. */
static bool to_atoms(const struct spmd_axes *list, const struct spmd_axes *all,
		     struct spmd_axes *out)
{
	out->n = 0;
	for (uint32_t i = 0; i < list->n; i++) {
		struct spmd_piece p = list->at[i];

		while (p.size > 1) {
			uint32_t cut = next_cut(p, all), size = cut / p.pre;

			if (cut % p.pre || p.size % size || out->n == SPMD_MAX_PIECES)
				return false;
			out->at[out->n++] = (struct spmd_piece){ p.axis, p.pre, size };
			p = (struct spmd_piece){ p.axis, cut, p.size / size };
		}
	}
	return true;
}

static bool make_atoms(struct move *m, const struct spmd_sharding *from,
		       const struct spmd_sharding *to, const struct spmd_axes *sum)
{
	struct spmd_axes all = { 0 };
	bool fits = true;

	for (uint32_t d = 0; d < 2 * m->rank; d++) {
		const struct spmd_axes *a = d < m->rank ? &from->dim[d].axes :
					    &to->dim[d - m->rank].axes;

		for (uint32_t i = 0; i < a->n; i++)
			if (all.n == SPMD_MAX_PIECES)
				return false;
			else if (!all.n || memcmp(&all.at[all.n - 1], &a->at[i], sizeof(*a->at)))
				all.at[all.n++] = a->at[i];
	}
	for (uint32_t i = 0; i < sum->n; i++)
		if (all.n == SPMD_MAX_PIECES)
			return false;
		else
			all.at[all.n++] = sum->at[i];
	for (uint32_t d = 0; d < m->rank; d++) {
		fits &= to_atoms(&from->dim[d].axes, &all, &m->is[d]);
		fits &= to_atoms(&to->dim[d].axes, &all, &m->want[d]);
	}
	return fits && to_atoms(sum, &all, &m->sum);
}

static bool is_atom(struct spmd_piece a, struct spmd_piece b)
{
	return !memcmp(&a, &b, sizeof(a));
}

static bool is_among(const struct spmd_axes *list, struct spmd_piece p)
{
	for (uint32_t i = 0; i < list->n; i++)
		if (is_atom(list->at[i], p))
			return true;
	return false;
}

static bool is_front(const struct spmd_axes *a, const struct spmd_axes *of)
{
	return a->n <= of->n && !memcmp(a->at, of->at, a->n * sizeof(*a->at));
}

/* The last n atoms of a list. */
static struct spmd_axes end_of(const struct spmd_axes *a, uint32_t n)
{
	struct spmd_axes end = { .n = n };

	memcpy(end.at, a->at + a->n - n, n * sizeof(*a->at));
	return end;
}

static void append(struct spmd_axes *to, const struct spmd_axes *more)
{
	for (uint32_t i = 0; i < more->n && to->n < SPMD_MAX_PIECES; i++)
		to->at[to->n++] = more->at[i];
}

static bool is_used(const struct move *m, struct spmd_piece p)
{
	for (uint32_t d = 0; d < m->rank; d++)
		if (spmd_has(&m->is[d], p))
			return true;
	return false;
}

/* The same axes with pieces joined that are one. */
static struct spmd_axes joined(const struct spmd_axes *a)
{
	struct spmd_axes to = { 0 };

	for (uint32_t i = 0; i < a->n; i++)
		spmd_push(&to, a->at[i]);
	return to;
}

/* ---- ops ---- */

/* One operand to a type with dim d as said. */
static struct tc_op *new_op(struct move *m, enum tc_opcode op, const struct tc_type *type,
			    unsigned n_regions)
{
	struct tc_op *o = tc_new(m->s->c, op, 1, &m->v, 1, &type, n_regions);

	tc_build_place(m->b, o);
	m->v = tc_out(o, 0);
	return o;
}

/* The region of a reduction of scalars. */
static void put_body(struct move *m, struct tc_op *op)
{
	const struct tc_type *t = tc_tensor(m->s->c, (enum elem)m->v->type->elem, 0, NULL);
	struct tc_build inner = { .c = m->s->c, .where = m->b->where };
	struct tc_value *x;

	inner.block = tc_new_block(m->s->c, &op->regions[0]);
	x = tc_new_arg(m->s->c, inner.block, t);
	x = tc_build2(&inner, m->op, x, tc_new_arg(m->s->c, inner.block, t));
	tc_build_return(&inner, 1, &x);
}

static void all_reduce(struct move *m, const struct spmd_axes *a)
{
	struct spmd_axes list = joined(a);
	struct tc_op *op = new_op(m, TC_ALL_REDUCE, m->v->type, 1);

	put_body(m, op);
	shard_set_groups(m->s, op, &list);
}

static void reduce_scatter(struct move *m, unsigned d, const struct spmd_axes *a)
{
	struct spmd_axes list = joined(a);
	const struct tc_type *t = m->v->type;
	struct tc_op *op = new_op(m, TC_REDUCE_SCATTER,
				  tc_with_dim(m->s->c, t, d, t->dim[d] / spmd_size(a)), 1);

	put_body(m, op);
	tc_set_int(m->s->c, op, "scatter_dimension", TC_ATTR_INT, d);
	shard_set_groups(m->s, op, &list);
	append(&m->is[d], a);
}

/* Collects the parts along the last n atoms of a dim. */
static void gather(struct move *m, unsigned d, uint32_t n)
{
	struct spmd_axes end = end_of(&m->is[d], n), list = joined(&end);
	const struct tc_type *t = m->v->type;
	struct tc_op *op = new_op(m, TC_ALL_GATHER,
				  tc_with_dim(m->s->c, t, d, t->dim[d] * spmd_size(&end)), 0);

	tc_set_int(m->s->c, op, "all_gather_dim", TC_ATTR_INT, d);
	shard_set_groups(m->s, op, &list);
	m->is[d].n -= n;
}

/* The last n atoms of dim d go to the end of dim e. */
static void exchange(struct move *m, unsigned d, uint32_t n, unsigned e)
{
	struct spmd_axes end = end_of(&m->is[d], n), list = joined(&end);
	const struct tc_type *t = tc_with_dim(m->s->c, m->v->type, d,
					      m->v->type->dim[d] * spmd_size(&end));
	struct tc_op *op = new_op(m, TC_ALL_TO_ALL,
				  tc_with_dim(m->s->c, t, e, t->dim[e] / spmd_size(&end)), 0);

	tc_set_int(m->s->c, op, "split_dimension", TC_ATTR_INT, e);
	tc_set_int(m->s->c, op, "concat_dimension", TC_ATTR_INT, d);
	tc_set_int(m->s->c, op, "split_count", TC_ATTR_INT, spmd_size(&end));
	shard_set_groups(m->s, op, &list);
	m->is[d].n -= n;
	append(&m->is[e], &end);
}

/* Of each dim the part that its `more` atoms say. */
static void cut(struct move *m, const struct spmd_axes *more)
{
	const struct tc_type *s32 = tc_tensor(m->s->c, ELEM_S32, 0, NULL), *t = m->v->type;
	struct tc_value *in[TC_MAX_RANK + 1] = { m->v };
	enum elem elem = ELEM_S32;
	int64_t size[TC_MAX_RANK];
	struct tc_value *v;

	for (unsigned d = 0; d < m->rank; d++) {
		struct spmd_axes list = joined(&more[d]);

		size[d] = t->dim[d] / spmd_size(&list);
		in[d + 1] = list.n ? shard_start_of(m->s, m->b, &list, size[d]) :
			    tc_build_number(m->b, s32, 0);
		if (in[d + 1]->type->elem != ELEM_S32)
			elem = ELEM_S64;
		append(&m->is[d], &more[d]);
	}
	for (unsigned d = 0; d < m->rank; d++)
		in[d + 1] = tc_build_convert(m->b, in[d + 1], elem);
	v = tc_build(m->b, TC_DYNAMIC_SLICE, tc_tensor(m->s->c, (enum elem)t->elem, m->rank,
						       size), m->rank + 1, in);
	tc_set_ints(m->s->c, v->def, "slice_sizes", size, m->rank);
	m->v = v;
}

/* ---- who passes on to whom ---- */

/* A number for the part that a partition has by the lists, of what is its own. */
static uint32_t part_of(const struct move *m, const struct spmd_axes *list, uint32_t partition)
{
	uint32_t part = shard_place(m->s, partition, &m->own);

	for (uint32_t d = 0; d < m->rank; d++)
		part = part * spmd_size(&list[d]) + shard_place(m->s, partition, &list[d]);
	return part;
}

/* Each partition's source: who has what it is to have, itself if it can be; each is one's. */
static void find_sources(const struct move *m, const struct spmd_axes *want, uint32_t *source)
{
	uint32_t n = m->s->partitions;
	uint32_t *has = arena_array(&m->s->c->arena, n, sizeof(*has));
	uint8_t *is_taken = arena_array(&m->s->c->arena, n, 1);

	for (uint32_t p = 0; p < n; p++) {
		has[p] = part_of(m, m->is, p);
		source[p] = UINT32_MAX;
	}
	for (uint32_t p = 0; p < n; p++)
		if (has[p] == part_of(m, want, p)) {
			source[p] = p;
			is_taken[p] = 1;
		}
	for (uint32_t p = 0; p < n; p++) {
		uint32_t part = part_of(m, want, p);

		for (uint32_t q = 0; source[p] == UINT32_MAX && q < n; q++)
			if (!is_taken[q] && has[q] == part) {
				source[p] = q;
				is_taken[q] = 1;
			}
	}
}

/* v of each partition from its source. */
static struct tc_value *take_from(struct shard *s, const struct tc_build *b, struct tc_value *v,
				  const uint32_t *source)
{
	uint32_t n = s->partitions, k = 0;
	int64_t *pairs = arena_array(&s->c->arena, 2 * (size_t)n * s->replicas, sizeof(*pairs));

	for (uint32_t r = 0; r < s->replicas; r++)
		for (uint32_t p = 0; p < n; p++) {
			pairs[k++] = (int64_t)r * n + source[p];
			pairs[k++] = (int64_t)r * n + p;
		}
	v = tc_build(b, TC_COLLECTIVE_PERMUTE, v->type, 1, &v);
	tc_set_ints(s->c, v->def, "source_target_pairs", pairs, k);
	tc_set_int(s->c, v->def, "channel_id", TC_ATTR_INT, 1);
	tc_set_int(s->c, v->def, "use_global_device_ids", TC_ATTR_BOOL, 1);
	return v;
}

/* Dims are to be cut into as many parts as they are. */
static void permute(struct move *m, const struct spmd_axes *want)
{
	uint32_t *source = arena_array(&m->s->c->arena, m->s->partitions, sizeof(*source));

	find_sources(m, want, source);
	m->v = take_from(m->s, m->b, m->v, source);
	for (uint32_t d = 0; d < m->rank; d++)
		m->is[d] = want[d];
}

struct tc_value *shard_reorder(struct shard *s, const struct tc_build *b, struct tc_value *v,
			       const struct spmd_mesh *from, const struct spmd_mesh *to)
{
	uint32_t *source = arena_array(&s->c->arena, s->partitions, sizeof(*source));

	for (uint32_t place = 0; place < s->partitions; place++)
		source[to->ids ? to->ids[place] : place] = from->ids ? from->ids[place] : place;
	return take_from(s, b, v, source);
}

/* ---- the way ---- */

static bool is_arrived(const struct move *m)
{
	for (uint32_t d = 0; d < m->rank; d++)
		if (m->is[d].n != m->want[d].n || !is_front(&m->is[d], &m->want[d]))
			return false;
	return true;
}

enum { MOST_STEPS = 4 * SPMD_MAX_PIECES };

/* Cuts off what is wanted behind what is there, along axes that nothing lies on. */
static void cut_wanted(struct move *m)
{
	struct spmd_axes more[TC_MAX_RANK];
	bool any = false;

	for (uint32_t d = 0; d < m->rank; d++) {
		more[d].n = 0;
		for (uint32_t i = m->is[d].n; is_front(&m->is[d], &m->want[d]) &&
		     i < m->want[d].n; i++) {
			struct spmd_piece p = m->want[d].at[i];

			if (is_used(m, p) || spmd_has(&m->sum, p))
				break;
			more[d].at[more[d].n++] = p;
		}
		any |= more[d].n;
	}
	if (any)
		cut(m, more);
}

/* Adds up; where a dim is wanted cut along the sum's axes next, each gets the part that it wants
 * of the sum. */
static void add_up(struct move *m)
{
	for (uint32_t d = 0; d < m->rank; d++) {
		struct spmd_axes list = { 0 }, rest = { 0 };

		for (uint32_t i = m->is[d].n; is_front(&m->is[d], &m->want[d]) &&
		     i < m->want[d].n && is_among(&m->sum, m->want[d].at[i]); i++)
			list.at[list.n++] = m->want[d].at[i];
		if (!list.n)
			continue;
		for (uint32_t i = 0; i < m->sum.n; i++)
			if (!is_among(&list, m->sum.at[i]))
				rest.at[rest.n++] = m->sum.at[i];
		m->sum = rest;
		reduce_scatter(m, d, &list);
	}
	if (m->sum.n)
		all_reduce(m, &m->sum);
	m->sum.n = 0;
}

static bool has_sizes(const struct move *m)
{
	for (uint32_t d = 0; d < m->rank; d++)
		if (spmd_size(&m->is[d]) != spmd_size(&m->want[d]))
			return false;
	return true;
}

/* How many of the last atoms of dim d may go to dim e, as they are wanted there next; or, if
 * `by_size`, so that both dims have as many parts as they are to have. 0: none. */
static uint32_t fits(const struct move *m, uint32_t d, uint32_t e, bool by_size)
{
	uint32_t least = 0;

	while (least < m->is[d].n && least < m->want[d].n &&
	       is_atom(m->is[d].at[least], m->want[d].at[least]))
		least++;
	for (uint32_t n = m->is[d].n - least; n > 0; n--) {
		struct spmd_axes end = end_of(&m->is[d], n), to = m->is[e];
		uint32_t size = spmd_size(&end);

		append(&to, &end);
		if (by_size ? spmd_size(&m->is[d]) / size == spmd_size(&m->want[d]) &&
			      spmd_size(&to) == spmd_size(&m->want[e]) :
		    is_front(&to, &m->want[e]))
			return n;
	}
	return 0;
}

static bool exchange_any(struct move *m, bool by_size)
{
	for (uint32_t d = 0; d < m->rank; d++)
		for (uint32_t e = 0; e < m->rank; e++) {
			uint32_t n = d == e ? 0 : fits(m, d, e, by_size);

			if (n) {
				exchange(m, d, n, e);
				return true;
			}
		}
	return false;
}

/* Of a dim that has all atoms that are wanted, `same` of them as they are, but others between them,
 * puts those behind, so that they alone are to be collected; false: that moves no less. */
static bool put_behind(struct move *m, unsigned d, uint32_t same)
{
	struct spmd_axes *to = arena_copy(&m->s->c->arena, m->is, m->rank * sizeof(*to));
	const struct spmd_axes *is = &m->is[d], *want = &m->want[d];
	int64_t all = 1, others = 1;

	to[d] = *want;
	for (uint32_t i = 0; i < want->n; i++)
		if (!is_among(is, want->at[i]))
			return false;
	for (uint32_t i = same; i < is->n; i++) {
		all *= is->at[i].size;
		if (is_among(want, is->at[i]))
			continue;
		others *= is->at[i].size;
		to[d].at[to[d].n++] = is->at[i];
	}
	if (m->v->type->bytes * (all - others - 1) < SHARD_LEAST_SAVED)
		return false;
	permute(m, to);
	return true;
}

/* Of a dim that has other atoms than are wanted the last ones: as many as make it as many parts
 * as it is to have, or all that are not wanted there. */
static void gather_one(struct move *m)
{
	for (uint32_t d = 0; d < m->rank; d++) {
		const struct spmd_axes *is = &m->is[d], *want = &m->want[d];
		uint32_t same = 0;

		if (is_front(is, want))
			continue;
		while (same < want->n && is_atom(is->at[same], want->at[same]))
			same++;
		if (put_behind(m, d, same))
			return;
		for (uint32_t n = 1; n <= is->n - same; n++) {
			struct spmd_axes end = end_of(is, n);

			if (n == is->n - same ||
			    spmd_size(is) / spmd_size(&end) == spmd_size(want)) {
				gather(m, d, n);
				return;
			}
		}
	}
}

static void go(struct move *m)
{
	unsigned steps = 0;

	cut_wanted(m);
	add_up(m);
	while (!is_arrived(m)) {
		cut_wanted(m);
		if (is_arrived(m))
			return;
		/* Each step leaves less to do, unless an axis is in two dims. */
		if (++steps > MOST_STEPS)
			tc_fail(m->s->c, ERR_INTERNAL, NULL, "no way was found between two "
				"shardings of a tensor of rank %u: report the program", m->rank);
		if (has_sizes(m))
			permute(m, m->want);
		else if (!exchange_any(m, false) && !exchange_any(m, true))
			gather_one(m);
	}
}

/* Where pieces are of no common grid: all is collected, then cut. */
static void go_whole(struct move *m, const struct spmd_sharding *from,
		     const struct spmd_sharding *to, const struct spmd_axes *sum)
{
	struct spmd_axes want[TC_MAX_RANK];

	if (sum->n)
		all_reduce(m, sum);
	m->sum.n = 0;
	for (uint32_t d = 0; d < m->rank; d++) {
		m->is[d] = from->dim[d].axes;
		if (m->is[d].n)
			gather(m, d, m->is[d].n);
		want[d] = to->dim[d].axes;
	}
	cut(m, want);
}

/* Bits of real numbers, and the real numbers that complex ones are of. */
static struct tc_value *convert_bits(struct shard *s, const struct tc_build *b,
				     struct tc_value *v, const struct tc_type *global,
				     const struct spmd_sharding *from,
				     const struct spmd_sharding *to, const struct shard_sum *sum)
{
	enum elem is = (enum elem)v->type->elem, as = tc_real_of(is);
	struct tc_value *part[2] = { v };
	struct shard_sum bits = *sum;

	if (as != is) {
		part[0] = tc_build_real(b, v);
		part[1] = tc_build(b, TC_IMAG, part[0]->type, 1, &v);
		for (unsigned i = 0; i < 2; i++)
			part[i] = shard_convert(s, b, part[i], global, from, to, sum);
		return tc_build(b, TC_COMPLEX, tc_with_elem(s->c, part[0]->type, is), 2, part);
	}
	/* No two members have a bit: the sum of integers is the same, which XLA's CPU backend
	 * knows, too. */
	bits.op = TC_ADD;
	as = shard_bits_of(is);
	v = tc_build(b, TC_BITCAST_CONVERT, tc_with_elem(s->c, v->type, as), 1, part);
	v = shard_convert(s, b, v, global, from, to, &bits);
	return tc_build(b, TC_BITCAST_CONVERT, tc_with_elem(s->c, v->type, is), 1, &v);
}

static bool is_of_bits(const struct shard_sum *sum, const struct tc_value *v)
{
	unsigned cls = elem_class(v->type->elem);

	return sum && sum->axes.n && sum->op == TC_OR &&
	       (cls == ELEM_CLASS_FLOAT || cls == ELEM_CLASS_COMPLEX);
}

/* All but what is unreduced; along `stay` it is left so. */
static struct tc_value *convert(struct shard *s, const struct tc_build *b, struct tc_value *v,
				const struct tc_type *global, const struct spmd_sharding *from,
				const struct spmd_sharding *to, const struct shard_sum *sum,
				const struct spmd_axes *stay)
{
	struct move m = { .s = s, .b = b, .v = v, .rank = global->rank };

	if (is_of_bits(sum, v))
		return convert_bits(s, b, v, global, from, to, sum);
	m.op = sum->op;
	m.own = from->manual;
	append(&m.own, stay);
	if (!sum->axes.n && has_same_dims(from, to))
		return v;
	m.is = arena_array(&s->c->arena, m.rank, sizeof(*m.is));
	m.want = arena_array(&s->c->arena, m.rank, sizeof(*m.want));
	if (make_atoms(&m, from, to, &sum->axes))
		go(&m);
	else
		go_whole(&m, from, to, &sum->axes);
	return m.v;
}

/* ---- sums that are left ---- */

/* v at the first place along the axes, and zeros at the others: parts whose sum is v. */
static struct tc_value *at_first(struct shard *s, const struct tc_build *b, struct tc_value *v,
				 const struct spmd_axes *a)
{
	const struct tc_type *s32 = tc_tensor(s->c, ELEM_S32, 0, NULL);
	struct tc_value *is = tc_build_compare(b, TC_CMP_EQ, shard_index_of(s, a),
					       tc_build_number(b, s32, 0));

	is = tc_build_broadcast(b, is, tc_with_elem(s->c, v->type, ELEM_PRED), NULL);
	return tc_build_select(b, is, v, tc_build_number(b, v->type, 0));
}

/* Of a sum's axes those that are not to be left, into *due, the others into *stay, and of those to
 * be left those that it does not have, into *fresh. Where pieces overlap nothing of the sum is
 * left. */
static void part_axes(const struct spmd_axes *sum, const struct spmd_axes *left,
		      struct spmd_axes *due, struct spmd_axes *stay, struct spmd_axes *fresh)
{
	*due = *stay = *fresh = (struct spmd_axes){ 0 };
	for (uint32_t i = 0; i < sum->n; i++) {
		spmd_push(is_among(left, sum->at[i]) ? stay : due, sum->at[i]);
	}
	for (uint32_t k = 0; k < left->n; k++) {
		if (spmd_has(due, left->at[k])) {
			*due = *sum;
			*stay = (struct spmd_axes){ 0 };
			*fresh = *left;
			return;
		}
		if (!spmd_has(stay, left->at[k]))
			spmd_push(fresh, left->at[k]);
	}
}

struct tc_value *shard_convert(struct shard *s, const struct tc_build *b, struct tc_value *v,
			       const struct tc_type *global, const struct spmd_sharding *from,
			       const struct spmd_sharding *to, const struct shard_sum *sum)
{
	struct shard_sum due = { .op = TC_ADD };
	struct spmd_axes all, fresh, stay = { 0 };

	if (sum)
		due = *sum;
	if (!from->unreduced.n && !to->unreduced.n)
		return convert(s, b, v, global, from, to, &due, &stay);
	if (due.axes.n && (due.op != TC_ADD || is_of_bits(&due, v))) {
		v = convert(s, b, v, global, from, from, &due, &from->unreduced);
		due.axes.n = 0;
	}
	all = due.axes;
	append(&all, &from->unreduced);
	due.op = TC_ADD;
	part_axes(&all, &to->unreduced, &due.axes, &stay, &fresh);
	v = convert(s, b, v, global, from, to, &due, &stay);
	return fresh.n ? at_first(s, b, v, &fresh) : v;
}

/* ---- before loops ---- */

void shard_count_memory(struct shard *s, const struct tc_block *main)
{
	uint64_t limit = s->c->options->memory_limit, taken = 0;

	for (unsigned i = 0; i < main->n_args; i++)
		taken += (uint64_t)main->args[i]->type->bytes;
	s->ahead_left = !limit ? UINT64_MAX : limit > taken ? (limit - taken) / AHEAD_PARTS : 0;
	if (s->c->ahead && s->c->ahead->is_off)
		s->ahead_left = 0;
}

void shard_note_loop(struct shard *s, const struct tc_op *loop)
{
	const struct tc_block *body = loop->regions[1].block;
	int64_t turns = tc_turns_of(loop);

	for (unsigned i = 0; i < loop->n_operands; i++)
		for (unsigned k = 0; k < loop->n_regions; k++) {
			struct shard_value *is = &s->of[loop->regions[k].block->args[i]->id];

			is->turns = turns;
			if (tc_in(body->last, i) == body->args[i])
				is->source = tc_in(loop, i);
		}
}

bool shard_is_around(const struct tc_block *outer, const struct tc_block *b)
{
	while (b && b != outer)
		b = b->region->parent->block;
	return b;
}

/* Where a value is still the same: in a block, before a loop of it, `at` (NULL: where it was). How
 * often what is in the loop runs, 0: not known. */
struct home {
	const struct tc_value *value;
	const struct tc_block *block;
	struct tc_op *at;
	int64_t turns;
};

/* Out of the loop in which it is; false: of that it is no longer the same. */
static bool go_out(const struct shard *s, struct home *h)
{
	const struct tc_block *b = h->block;
	struct tc_op *loop = b->region->parent;
	const struct tc_value *v = h->value;
	int64_t turns;

	if (loop->op != TC_WHILE)
		return false;
	if (!v->def && v->block == b) {
		v = s->of[v->id].source;
		if (!v || !s->of[v->id].h || !spmd_same_axes(&s->of[v->id].h->manual,
							     &s->of[h->value->id].h->manual))
			return false;
	} else if (!shard_is_around(v->def ? v->def->block : v->block, loop->block)) {
		return false;
	}
	turns = b->n_args ? s->of[b->args[0]->id].turns : 0;
	h->value = v;
	h->at = loop;
	h->block = loop->block;
	h->turns = turns && h->turns < MOST_TURNS / turns ? h->turns * turns : 0;
	return true;
}

static struct home home_of(const struct shard *s, const struct tc_value *v,
			   const struct tc_block *block)
{
	struct home h = { v, block, NULL, 1 };

	while (go_out(s, &h))
		;
	return h;
}

static const struct shard_copy *find_copy(const struct shard *s, const struct home *at,
					  const struct spmd_sharding *h)
{
	const struct shard_copy *copy = s->of[at->value->id].copies;

	while (copy && (!shard_is_same(copy->h, h) ||
			!shard_is_around(copy->block, at->block)))
		copy = copy->next;
	return copy;
}

const struct tc_value *shard_go_ahead(struct shard *s, struct tc_build *b,
				      const struct tc_value *v, const struct spmd_sharding *h)
{
	struct home home;
	uint64_t bytes;

	if (s->is_whole)
		return v;
	home = home_of(s, v, b->before->block);
	if (!home.at)
		return v;
	if (!shard_is_same(s->of[home.value->id].h, h) && !find_copy(s, &home, h)) {
		bytes = (uint64_t)shard_local_type(s, s->of[v->id].type, h)->bytes;
		if (bytes > s->ahead_left)
			return v;
		s->ahead_left -= bytes;
		if (s->c->ahead)
			s->c->ahead->is_any = true;
	}
	b->before = home.at;
	return home.value;
}

bool shard_is_ahead(struct shard *s, const struct tc_op *op, const struct spmd_sharding *h,
		    const struct tc_type *part, bool takes_all)
{
	const struct tc_value *v = tc_in(op, 0);
	struct home home = home_of(s, v, op->block);
	int64_t bytes, turns;

	if (s->is_whole || !home.at)
		return false;
	if (shard_is_same(s->of[home.value->id].h, h) || find_copy(s, &home, h))
		return true;
	bytes = shard_local_type(s, s->of[v->id].type, h)->bytes;
	turns = home.turns ? home.turns : takes_all ? MOST_TURNS : 1;
	return (uint64_t)bytes <= s->ahead_left && part->bytes &&
	       (bytes <= LEAST_GATHERED || (bytes - 1) / (2 * part->bytes) < turns);
}
