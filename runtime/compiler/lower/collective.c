/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collectives, as exchanges of equal parts and local work.
 *
 * Requires: collectives are settled (ir/ops.def), types are each member's own. Ensures: of
 * collectives only tc.exchange and collective_permute of one operand are left; none moves an
 * empty array, or one within groups of one.
 * Fails: UNIMPLEMENTED for a reduction whose region does more than elementwise work.
 *
 * A reduction takes its members' values in the order of their places, the same on all of
 * them, so that all have the same bits. Floats narrower than f32 are added and multiplied
 * in f32 and rounded once. What is small goes whole to everyone; what is large in parts, each
 * reduced by one member, which then hands it to all. Operands that are not large are one array.
 */
#include <string.h>

#include "runtime/compiler/opt/build.h"
#include "runtime/compiler/passes.h"

#define SMALL_BYTES 65536	/* that each member receives whole: one exchange, not two */
#define JOINED_BYTES 65536	/* of an operand that goes together with others */

/* A collective being taken apart. */
struct meeting {
	struct tc_build b;
	struct tc_op *op;
	const int64_t *ids;
	unsigned n_ids;
	int64_t n;		/* places of a row */
	int64_t n_members;
	bool is_ragged;		/* some rows are short */
	struct tc_value *present;	/* members of the own row; NULL: not asked for yet */
};

/* ---- members ---- */

static int64_t partitions(const struct tc_ctx *c)
{
	return c->options->partitions ? c->options->partitions : 1;
}

static struct tc_value *number_of(const struct tc_build *b, enum tc_opcode op)
{
	const struct tc_type *u32 = tc_tensor(b->c, ELEM_U32, 0, NULL);

	return tc_build_convert(b, tc_build(b, op, u32, 0, NULL), ELEM_S32);
}

/* The member's own number, s32. */
static struct tc_value *own_number(const struct meeting *m)
{
	const struct tc_build *b = &m->b;
	int64_t p = partitions(b->c);
	struct tc_value *v;

	if (m->n_members == p)
		return number_of(b, TC_PARTITION_ID);
	v = number_of(b, TC_REPLICA_ID);
	if (p == 1)
		return v;
	v = tc_build2(b, TC_MULTIPLY, v, tc_build_number(b, v->type, (double)p));
	return tc_build2(b, TC_ADD, v, number_of(b, TC_PARTITION_ID));
}

/* How many members the own row has: 0 for who is in none. */
static struct tc_value *present(struct meeting *m)
{
	const struct tc_type *t = tc_tensor(m->b.c, ELEM_S32, 1, &m->n_members);
	int32_t *count = arena_array(&m->b.c->arena, (size_t)m->n_members, sizeof(*count));
	struct tc_value *v;

	if (m->present)
		return m->present;
	if (!count)
		tc_fail(m->b.c, ERR_RESOURCE_EXHAUSTED, m->op, "out of memory");
	for (unsigned i = 0; i < m->n_ids; i += (unsigned)m->n) {
		int32_t n = 0;

		for (unsigned k = i; k < i + m->n; k++)
			n += m->ids[k] >= 0;
		for (unsigned k = i; k < i + m->n; k++)
			if (m->ids[k] >= 0)
				count[m->ids[k]] = n;
	}
	v = tc_build_data(&m->b, t, count);
	v = tc_build_take(&m->b, v, 0, own_number(m), 1);
	m->present = tc_build_reshape(&m->b, v, 0, NULL);
	return m->present;
}

/* x where at least `least` members are in the own row, else y. */
static struct tc_value *if_present(struct meeting *m, int64_t least, struct tc_value *x,
				   struct tc_value *y)
{
	const struct tc_type *t = tc_with_elem(m->b.c, x->type, ELEM_PRED);
	struct tc_value *n = present(m), *is;

	is = tc_build_compare(&m->b, TC_CMP_GE, n,
			      tc_build_number(&m->b, n->type, (double)least));
	return tc_build_select(&m->b, t->rank ? tc_build_broadcast(&m->b, is, t, NULL) : is, x, y);
}

/* ---- exchanges ---- */

/* is_same: x of [rest] goes to all; else of [n, rest], part k to place k. */
static struct tc_value *exchange(const struct meeting *m, struct tc_value *x, bool is_same)
{
	const struct tc_type *t = x->type;
	int64_t dim[TC_MAX_RANK + 1] = { m->n };
	struct tc_value *v;

	memcpy(dim + 1, t->dim, t->rank * sizeof(*dim));
	v = tc_build(&m->b, TC_EXCHANGE, is_same ?
		     tc_tensor(m->b.c, (enum elem)t->elem, t->rank + 1u, dim) : t, 1, &x);
	tc_set_ints(m->b.c, v->def, "replica_groups", m->ids, m->n_ids);
	tc_set_int(m->b.c, v->def, "group_size", TC_ATTR_INT, m->n);
	tc_set_int(m->b.c, v->def, "is_same", TC_ATTR_BOOL, is_same);
	return v;
}

/* Part k of [n, rest], as [rest]. */
static struct tc_value *part_of(const struct meeting *m, struct tc_value *parts, int64_t k)
{
	const struct tc_type *t = parts->type;

	return tc_build_reshape(&m->b, tc_build_part(&m->b, parts, 0, k, 1), t->rank - 1u,
				t->dim + 1);
}

/* The product of dims [from, to). */
static int64_t product(const struct tc_type *t, unsigned from, unsigned to)
{
	int64_t n = 1;

	for (unsigned d = from; d < to; d++)
		n *= t->dim[d];
	return n;
}

/* ---- reductions ---- */

/* The op, if the region adds or multiplies its two arguments; else -1. */
static int simple_op(const struct tc_block *b)
{
	const struct tc_op *f = b->first;

	if (f == b->last || f->next != b->last || tc_in(b->last, 0)->def != f ||
	    (f->op != TC_ADD && f->op != TC_MULTIPLY))
		return -1;
	return (tc_in(f, 0) == b->args[0] && tc_in(f, 1) == b->args[1]) ||
	       (tc_in(f, 0) == b->args[1] && tc_in(f, 1) == b->args[0]) ? f->op : -1;
}

/* [n, rest] to [rest], place by place. */
static struct tc_value *fold(struct meeting *m, struct tc_value *parts)
{
	const struct tc_block *body = m->op->regions[0].block;
	enum elem elem = (enum elem)parts->type->elem;
	int simple = simple_op(body);
	bool is_wide = simple >= 0 && elem_class(elem) == ELEM_CLASS_FLOAT &&
		       elem_bits(elem) < 32;
	struct tc_value *acc, *next, *in[2];

	acc = part_of(m, parts, 0);
	if (is_wide)
		acc = tc_build_convert(&m->b, acc, ELEM_F32);
	for (int64_t k = 1; k < m->n; k++) {
		in[0] = acc;
		in[1] = part_of(m, parts, k);
		if (is_wide)
			in[1] = tc_build_convert(&m->b, in[1], ELEM_F32);
		if (is_wide)
			next = tc_build2(&m->b, (enum tc_opcode)simple, in[0], in[1]);
		else
			tc_build_on_arrays(&m->b, body, in, acc->type, &next);
		acc = m->is_ragged ? if_present(m, k + 1, next, acc) : next;
	}
	return is_wide ? tc_build_convert(&m->b, acc, elem) : acc;
}

static struct tc_value *reduce_small(struct meeting *m, struct tc_value *x)
{
	return fold(m, exchange(m, x, true));
}

/* x filled up with zeros to a multiple of n, as [n, part]. */
static struct tc_value *in_parts(const struct meeting *m, struct tc_value *x)
{
	int64_t n = x->type->count, more = (m->n - n % m->n) % m->n, none = 0;
	const struct tc_type *scalar = tc_tensor(m->b.c, (enum elem)x->type->elem, 0, NULL);
	int64_t dim[2] = { m->n, (n + more) / m->n };
	struct tc_value *v = tc_build_reshape(&m->b, x, 1, &n);

	if (more)
		v = tc_build_pad(&m->b, v, tc_build_number(&m->b, scalar, 0), &none, &more, &none);
	return tc_build_reshape(&m->b, v, 2, dim);
}

/* The other way: of the shape of `like`. */
static struct tc_value *whole(const struct meeting *m, struct tc_value *parts,
			      const struct tc_type *like)
{
	int64_t n = parts->type->count;
	struct tc_value *v = tc_build_reshape(&m->b, parts, 1, &n);

	if (n != like->count)
		v = tc_build_part(&m->b, v, 0, 0, like->count);
	return tc_build_reshape(&m->b, v, like->rank, like->dim);
}

static struct tc_value *reduce_large(struct meeting *m, struct tc_value *x)
{
	struct tc_value *own = fold(m, exchange(m, in_parts(m, x), false));

	return whole(m, exchange(m, own, true), x->type);
}

static bool is_small(const struct meeting *m, const struct tc_type *t)
{
	return t->bytes <= SMALL_BYTES / m->n || m->is_ragged;
}

static bool is_joined(const struct meeting *m, const struct tc_type *t)
{
	return is_small(m, t) || t->bytes <= JOINED_BYTES;
}

/* Those that are not large go together: all have the region's elements. */
static void lower_all_reduce(struct meeting *m, struct tc_value **out)
{
	unsigned n = m->op->n_operands, n_joined = 0;
	struct tc_value **flat = arena_array(&m->b.c->arena, n, sizeof(*flat)), *all = NULL;
	int64_t at = 0;

	if (!flat)
		tc_fail(m->b.c, ERR_RESOURCE_EXHAUSTED, m->op, "out of memory");
	for (unsigned i = 0; i < n; i++) {
		struct tc_value *x = tc_in(m->op, i);

		if (x->type->count && is_joined(m, x->type))
			flat[n_joined++] = tc_build_reshape(&m->b, x, 1, &x->type->count);
	}
	if (n_joined) {
		all = n_joined > 1 ? tc_build_join(&m->b, n_joined, flat, 0) : flat[0];
		all = is_small(m, all->type) ? reduce_small(m, all) : reduce_large(m, all);
	}
	for (unsigned i = 0; i < n; i++) {
		struct tc_value *x = tc_in(m->op, i);
		const struct tc_type *t = x->type;

		if (!t->count) {
			out[i] = x;
		} else if (!is_joined(m, t)) {
			out[i] = reduce_large(m, x);
		} else {
			out[i] = tc_build_reshape(&m->b, tc_build_part(&m->b, all, 0, at,
						  t->count), t->rank, t->dim);
			at += t->count;
		}
	}
}

static void lower_reduce_scatter(struct meeting *m, struct tc_value **out)
{
	struct tc_value *x = tc_in(m->op, 0);
	const struct tc_type *t = x->type, *to = m->op->results[0].type;
	unsigned d = (unsigned)tc_attr_int(m->op, "scatter_dimension", 0);
	int64_t dim[] = { product(t, 0, d), m->n, to->dim[d] * product(t, d + 1, t->rank) };

	x = tc_build_reshape(&m->b, x, 3, dim);
	x = tc_build_transpose(&m->b, x, (const int64_t[]){ 1, 0, 2 });
	x = fold(m, exchange(m, x, false));
	out[0] = tc_build_reshape(&m->b, x, to->rank, to->dim);
}

/* ---- moves ---- */

static void lower_all_gather(struct meeting *m, struct tc_value **out)
{
	unsigned d = (unsigned)tc_attr_int(m->op, "all_gather_dim", 0);

	for (unsigned i = 0; i < m->op->n_operands; i++) {
		struct tc_value *x = tc_in(m->op, i);
		const struct tc_type *t = x->type, *to = m->op->results[i].type;
		int64_t dim[] = { product(t, 0, d), product(t, d, t->rank) };

		if (!t->count) {
			out[i] = tc_build_number(&m->b, to, 0);
			continue;
		}
		x = exchange(m, tc_build_reshape(&m->b, x, 2, dim), true);
		if (dim[0] > 1)
			x = tc_build_transpose(&m->b, x, (const int64_t[]){ 1, 0, 2 });
		out[i] = tc_build_reshape(&m->b, x, to->rank, to->dim);
	}
}

/* With the two dims lo and hi between A, B and C: the split one comes apart as [n, part], n goes
 * to the front, where parts change hands, and from there before the other one. */
static void lower_all_to_all(struct meeting *m, struct tc_value **out)
{
	unsigned s = (unsigned)tc_attr_int(m->op, "split_dimension", 0);
	unsigned j = (unsigned)tc_attr_int(m->op, "concat_dimension", 0);
	unsigned lo = s < j ? s : j, hi = s < j ? j : s;

	for (unsigned i = 0; i < m->op->n_operands; i++) {
		struct tc_value *x = tc_in(m->op, i);
		const struct tc_type *t = x->type, *to = m->op->results[i].type;
		int64_t a = product(t, 0, lo), b = lo == hi ? 1 : product(t, lo + 1, hi);
		int64_t c = product(t, hi + 1, t->rank), part = t->dim[s] / m->n;
		const int64_t up[] = { a, m->n, part * b, lo == hi ? 1 : t->dim[hi], c };
		const int64_t down[] = { a, t->dim[lo] * b, m->n, part, c };
		const int64_t from_1[] = { 1, 0, 2, 3, 4 }, from_2[] = { 2, 0, 1, 3, 4 };
		const int64_t to_1[] = { 1, 0, 2, 3, 4 }, to_2[] = { 1, 2, 0, 3, 4 };

		if (!t->count) {
			out[i] = tc_build_number(&m->b, to, 0);
			continue;
		}
		x = tc_build_reshape(&m->b, x, 5, s <= j ? up : down);
		x = tc_build_transpose(&m->b, x, s <= j ? from_1 : from_2);
		x = exchange(m, x, false);
		x = tc_build_transpose(&m->b, x, s < j ? to_2 : to_1);
		out[i] = tc_build_reshape(&m->b, x, to->rank, to->dim);
	}
}

/* The bits of x, each the other way, as another type of that width. */
static struct tc_value *other_bits(const struct tc_build *b, struct tc_value *x, bool is_before,
				   enum elem elem)
{
	const struct tc_type *t = tc_with_elem(b->c, x->type, elem);

	if (is_before)
		x = tc_build(b, TC_NOT, x->type, 1, &x);
	x = tc_build(b, TC_BITCAST_CONVERT, t, 1, &x);
	return is_before ? x : tc_build(b, TC_NOT, t, 1, &x);
}

/* To whom nobody sends, zeros come. f8E8M0FNU has none, 0 converts to its NaN: all bits set. */
static void lower_permute(struct meeting *m, struct tc_value **out)
{
	unsigned n;
	const int64_t *pairs = tc_attr_ints(m->op, "source_target_pairs", &n);

	for (unsigned i = 0; i < m->op->n_operands; i++) {
		struct tc_value *x = tc_in(m->op, i);
		bool has_zero = x->type->elem != ELEM_F8E8M0FNU;

		if (!n || !x->type->count) {
			out[i] = tc_build_number(&m->b, x->type, 0);
			continue;
		}
		if (!has_zero)
			x = other_bits(&m->b, x, false, ELEM_U8);
		out[i] = tc_build(&m->b, TC_COLLECTIVE_PERMUTE, x->type, 1, &x);
		tc_set_ints(m->b.c, out[i]->def, "source_target_pairs", pairs, n);
		tc_set_int(m->b.c, out[i]->def, "use_global_device_ids", TC_ATTR_BOOL, 1);
		if (!has_zero)
			out[i] = other_bits(&m->b, out[i], true, ELEM_F8E8M0FNU);
	}
}

/* Rows for those who are in none, each alone: then all take part in the exchange. Says whether
 * there are such. */
static bool complete_rows(struct meeting *m)
{
	struct arena *a = &m->b.c->arena;
	uint8_t *is_in = arena_array(a, (size_t)m->n_members + 1, 1);
	int64_t *rows;
	unsigned missing = 0, at = m->n_ids;

	if (!is_in)
		tc_fail(m->b.c, ERR_RESOURCE_EXHAUSTED, m->op, "out of memory");
	for (unsigned i = 0; i < m->n_ids; i++)
		if (m->ids[i] >= 0)
			is_in[m->ids[i]] = 1;
	for (int64_t k = 0; k < m->n_members; k++)
		missing += !is_in[k];
	rows = arena_array(a, m->n_ids + missing * (size_t)m->n + 1, sizeof(*rows));
	if (!rows)
		tc_fail(m->b.c, ERR_RESOURCE_EXHAUSTED, m->op, "out of memory");
	memcpy(rows, m->ids, m->n_ids * sizeof(*rows));
	for (int64_t k = 0; k < m->n_members; k++) {
		if (is_in[k])
			continue;
		rows[at++] = k;
		for (int64_t i = 1; i < m->n; i++)
			rows[at++] = -1;
	}
	m->ids = rows;
	m->n_ids = at;
	m->is_ragged |= missing && m->n > 1;
	return missing;
}

/* What is large goes in parts: from the first of a row one to each, and from each to all. */
static void lower_broadcast(struct meeting *m, struct tc_value **out)
{
	struct meeting all = *m;
	bool some_miss = complete_rows(&all);

	for (unsigned i = 0; i < m->op->n_operands; i++) {
		struct tc_value *x = tc_in(m->op, i);
		const struct tc_type *t = x->type;

		if (!t->count || !m->n) {
			out[i] = tc_build_number(&m->b, t, 0);
			continue;
		}
		if (all.n == 1)
			out[i] = x;
		else if (is_small(&all, t))
			out[i] = part_of(m, exchange(&all, x, true), 0);
		else
			out[i] = whole(m, exchange(&all, part_of(m, exchange(&all,
				       in_parts(&all, x), false), 0), true), t);
		if (some_miss)
			out[i] = if_present(m, 1, out[i], tc_build_number(&m->b, t, 0));
	}
}

/* ---- the pass ---- */

static void check_region(struct tc_ctx *c, const struct tc_op *op)
{
	const struct tc_op *scalar = op->n_regions ?
		tc_only_for_scalars(op->regions[0].block) : NULL;

	if (scalar)
		tc_fail(c, ERR_UNIMPLEMENTED, scalar, "it does not run in the region of a "
			"reduction among devices yet; elementwise operations and constants do");
}

static void lower(struct tc_ctx *c, struct tc_op *op)
{
	struct meeting m = { .b = tc_build_at(c, op), .op = op };
	struct tc_value **out = arena_array(&c->arena, op->n_results, sizeof(*out));

	if (!out)
		tc_fail(c, ERR_RESOURCE_EXHAUSTED, op, "out of memory");
	m.ids = tc_attr_ints(op, "replica_groups", &m.n_ids);
	m.n = tc_attr_int(op, "group_size", 0);
	m.n_members = partitions(c) * (c->options->replicas ? c->options->replicas : 1);
	for (unsigned i = 0; i < m.n_ids; i++)
		m.is_ragged |= m.ids[i] < 0;
	check_region(c, op);
	if (op->op == TC_COLLECTIVE_PERMUTE)
		lower_permute(&m, out);
	else if (op->op == TC_COLLECTIVE_BROADCAST)
		lower_broadcast(&m, out);
	else if (m.n == 1)
		for (unsigned i = 0; i < op->n_results; i++)
			out[i] = tc_in(op, i);
	else if (op->op == TC_ALL_REDUCE)
		lower_all_reduce(&m, out);
	else if (op->op == TC_ALL_GATHER)
		lower_all_gather(&m, out);
	else if (op->op == TC_ALL_TO_ALL)
		lower_all_to_all(&m, out);
	else if (tc_in(op, 0)->type->count)
		lower_reduce_scatter(&m, out);
	else
		out[0] = tc_build_number(&m.b, op->results[0].type, 0);
	for (unsigned i = 0; i < op->n_results; i++)
		tc_replace_uses(tc_out(op, i), out[i]);
	tc_erase(op);
}

/* Products that are turned around behind their sum, as gradients of weights are, are turned before
 * it, where that needs no move. All partitions do so; replicas may run programs of their own. */
static void turn_first(struct tc_ctx *c, struct tc_op *op)
{
	struct tc_build b = tc_build_at(c, op);

	if (op->op != TC_ALL_REDUCE || c->options->replicas > 1)
		return;
	for (unsigned i = 0, n; i < op->n_operands; i++) {
		struct tc_value *sum = tc_out(op, i);
		struct tc_op *turn = tc_is_used_once(sum) ? sum->uses->user : op;

		if (!tc_product_to_turn(turn, tc_in(op, i)))
			continue;
		tc_set_operand(op, i, tc_build_transpose(&b, tc_in(op, i),
							 tc_attr_ints(turn, "permutation", &n)));
		sum->type = turn->results[0].type;
		tc_replace(turn, sum);
	}
}

static void lower_block(struct tc_ctx *c, struct tc_block *b)
{
	struct tc_op *next;

	for (struct tc_op *op = b->first; op; op = next) {
		turn_first(c, op);
		next = op->next;
		if (tc_is_collective(op) && op->op != TC_EXCHANGE) {
			lower(c, op);
			continue;
		}
		for (unsigned r = 0; r < op->n_regions; r++)
			if (op->regions[r].block)
				lower_block(c, op->regions[r].block);
	}
}

void tc_pass_collectives(struct tc_ctx *c)
{
	lower_block(c, tc_main(c));
}
