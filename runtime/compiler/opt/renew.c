/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ops that StableHLO has given up, or has taken in since, as those that the IR has: broadcast,
 * einsum, unary_einsum, torch_index_select and, among one device, collective_reduce. And a sort
 * along a dim that is counted from the end, along the same one as all others count it.
 *
 * Requires: a judged module. The ops come as tc.opaque, in which nothing else is: attributes and
 * types are not believed here. Ensures: none of these is left, and what is made is judged again.
 * Fails: INVALID_ARGUMENT where one contradicts itself, UNIMPLEMENTED for a collective_reduce
 * among several members.
 */
#include <string.h>

#include "runtime/compiler/opt/build.h"
#include "runtime/compiler/passes.h"

#define MAX_LABELS (2 * TC_MAX_RANK)	/* of two operands */

static _Noreturn void bad(struct tc_ctx *c, const struct tc_op *op, const char *what)
{
	tc_fail(c, ERR_INVALID_ARGUMENT, op, "%s", what);
}

/* Arrays in, an array out, and no regions. */
static void want_arrays(struct tc_ctx *c, struct tc_op *op, unsigned n)
{
	if (op->n_operands != n || op->n_results != 1 || op->n_regions)
		tc_fail(c, ERR_INVALID_ARGUMENT, op, "it has %u operands, %u results and %u "
			"regions", op->n_operands, op->n_results, op->n_regions);
	for (unsigned i = 0; i < n; i++)
		if (tc_in(op, i)->type->is_tuple || !elem_bytes(tc_in(op, i)->type->elem))
			tc_fail(c, ERR_INVALID_ARGUMENT, op, "operand %u is no array", i);
	if (tc_out(op, 0)->type->is_tuple || !elem_bytes(tc_out(op, 0)->type->elem))
		bad(c, op, "its result is no array");
}

static void replace(struct tc_ctx *c, struct tc_op *op, struct tc_value *by)
{
	if (by->type != tc_out(op, 0)->type)
		bad(c, op, "its result has another type than its operands make");
	by->bounded |= tc_out(op, 0)->bounded;
	tc_replace(op, by);
}

/* ---- broadcast: more dims in front ---- */

static void broadcast(struct tc_ctx *c, struct tc_op *op)
{
	struct tc_build b = tc_build_at(c, op);
	const struct tc_attr *sizes = tc_attr(op, "broadcast_sizes");
	const struct tc_type *from, *to;
	int64_t dims[TC_MAX_RANK];

	want_arrays(c, op, 1);
	from = tc_in(op, 0)->type;
	to = tc_out(op, 0)->type;
	if (!sizes || sizes->kind != TC_ATTR_INTS || sizes->n + from->rank != to->rank ||
	    from->elem != to->elem)
		bad(c, op, "its broadcast_sizes and its operand do not make its result");
	for (unsigned d = 0; d < to->rank; d++)
		if (to->dim[d] != (d < sizes->n ? sizes->ints[d] : from->dim[d - sizes->n]))
			tc_fail(c, ERR_INVALID_ARGUMENT, op, "dim %u of its result is %lld", d,
				(long long)to->dim[d]);
	for (unsigned d = 0; d < from->rank; d++)
		dims[d] = sizes->n + d;
	replace(c, op, tc_build_broadcast(&b, tc_in(op, 0), to, dims));
}

/* ---- torch_index_select: parts of one dim, by their numbers ---- */

/* A number of the op's, of 0 to `most`; below 0 it counts from `from` down. */
static unsigned dim_of(struct tc_ctx *c, const struct tc_op *op, const char *name, int64_t from,
		       int64_t most)
{
	const struct tc_attr *a = tc_attr(op, name);
	int64_t at = a && a->kind == TC_ATTR_INT ? a->i : INT64_MIN;

	if (at < 0 && at >= -from)
		at += from;
	if (at < 0 || at > most)
		tc_fail(c, ERR_INVALID_ARGUMENT, op, "its %s is %s", name,
			a ? "none of its operands'" : "missing");
	return (unsigned)at;
}

/*
 * Batches are the first dims of both. The result has them, the operand's dims before `dim`, the
 * other dims of the index, the operand's dims behind `dim`.
 */
static void select_index(struct tc_ctx *c, struct tc_op *op)
{
	struct tc_build b = tc_build_at(c, op);
	int64_t offsets[TC_MAX_RANK], batches[TC_MAX_RANK], sizes[TC_MAX_RANK], at;
	unsigned dim, batch, n_offsets = 0, n_index;
	const struct tc_type *x, *index;
	struct tc_value *in[2];
	struct tc_op *to;

	want_arrays(c, op, 2);
	x = tc_in(op, 0)->type;
	index = tc_in(op, 1)->type;
	dim = dim_of(c, op, "dim", x->rank, (int64_t)x->rank - 1);
	batch = dim_of(c, op, "batch_dims", index->rank, index->rank);
	if (batch > dim)
		bad(c, op, "its dim is one of its batch_dims");
	n_index = index->rank - batch;
	for (unsigned d = 0; d < x->rank; d++) {
		bool is_taken = d >= batch && d != dim;

		sizes[d] = is_taken ? x->dim[d] : x->dim[d] ? 1 : 0;
		if (is_taken)
			offsets[n_offsets++] = d < dim ? d : d + n_index - 1;
		if (d < batch)
			batches[d] = d;
	}
	in[0] = tc_in(op, 0);
	in[1] = tc_in(op, 1);
	at = dim;
	to = tc_build(&b, TC_GATHER, tc_out(op, 0)->type, 2, in)->def;
	tc_set_ints(c, to, "offset_dims", offsets, n_offsets);
	tc_set_ints(c, to, "collapsed_slice_dims", &at, 1);
	tc_set_ints(c, to, "operand_batching_dims", batches, batch);
	tc_set_ints(c, to, "start_indices_batching_dims", batches, batch);
	tc_set_ints(c, to, "start_index_map", &at, 1);
	tc_set_int(c, to, "index_vector_dim", TC_ATTR_INT, index->rank);
	tc_set_ints(c, to, "slice_sizes", sizes, x->rank);
	replace(c, op, tc_out(to, 0));
}

/* ---- einsum: dims by letters ---- */

/* An array whose dims have labels: letters, or numbers from 0 on for those that "..." stands
 * for, counted from the innermost one. */
struct labelled {
	struct tc_value *v;
	unsigned n;
	int label[MAX_LABELS];
};

static int find(const struct labelled *x, int label)
{
	for (unsigned i = 0; i < x->n; i++)
		if (x->label[i] == label)
			return (int)i;
	return -1;
}

static bool is_letter(char s)
{
	return (s >= 'a' && s <= 'z') || (s >= 'A' && s <= 'Z');
}

/* The labels of n characters of text, for `dots` dims where "..." stands. */
static void read_labels(struct tc_ctx *c, const struct tc_op *op, const char *s, size_t n,
			unsigned dots, struct labelled *to)
{
	bool has_dots = false;

	to->n = 0;
	for (size_t i = 0; i < n; i++) {
		unsigned more = is_letter(s[i]) ? 1 : dots;

		if (s[i] == ' ')
			continue;
		if (!is_letter(s[i]) && (has_dots || n - i < 3 || memcmp(s + i, "...", 3)))
			tc_fail(c, ERR_INVALID_ARGUMENT, op, "its einsum_config has \"%.*s\" where "
				"a letter or ... belongs", (int)(n - i > 8 ? 8 : n - i), s + i);
		if (to->n + more > MAX_LABELS)
			bad(c, op, "its einsum_config has more letters than arrays have dims");
		if (is_letter(s[i])) {
			to->label[to->n++] = s[i];
			continue;
		}
		for (unsigned d = dots; d-- > 0;)
			to->label[to->n++] = (int)d;
		has_dots = true;
		i += 2;
	}
}

static unsigned count_letters(const char *s, size_t n)
{
	unsigned letters = 0;

	for (size_t i = 0; i < n; i++)
		letters += is_letter(s[i]);
	return letters;
}

/* An operand; as many of its dims as have no letter belong to "...". */
static void read_operand(struct tc_ctx *c, const struct tc_op *op, unsigned i, const char *s,
			 size_t n, struct labelled *to)
{
	unsigned letters = count_letters(s, n), rank = tc_in(op, i)->type->rank;

	read_labels(c, op, s, n, rank > letters ? rank - letters : 0, to);
	if (to->n != rank)
		tc_fail(c, ERR_INVALID_ARGUMENT, op, "its einsum_config has %u dims for operand %u "
			"of %u", to->n, i, rank);
	to->v = tc_in(op, i);
}

/* Sums over dims (bits). */
static void sum_over(const struct tc_build *b, struct labelled *x, uint64_t dims)
{
	unsigned n = 0;

	if (!dims)
		return;
	x->v = tc_build_sum(b, x->v, dims);
	for (unsigned d = 0; d < x->n; d++)
		if (!(dims >> d & 1))
			x->label[n++] = x->label[d];
	x->n = n;
}

/* Of dims with one label the diagonal: zeros beside it, and the sum. */
static void take_diagonals(const struct tc_build *b, const struct tc_op *op, struct labelled *x)
{
	uint64_t gone = 0;

	for (unsigned d = 0; d < x->n; d++) {
		const struct tc_type *t = x->v->type, *counts;
		unsigned first = (unsigned)find(x, x->label[d]);
		struct tc_value *is_on;

		if (first == d)
			continue;
		if (t->dim[first] != t->dim[d])
			tc_fail(b->c, ERR_INVALID_ARGUMENT, op, "dims of %lld and %lld have one "
				"letter", (long long)t->dim[first], (long long)t->dim[d]);
		counts = tc_with_elem(b->c, t, ELEM_S64);
		is_on = tc_build_compare(b, TC_CMP_EQ, tc_build_iota(b, counts, first),
					 tc_build_iota(b, counts, d));
		x->v = tc_build_select(b, is_on, x->v, tc_build_number(b, t, 0));
		gone |= (uint64_t)1 << d;
	}
	sum_over(b, x, gone);
}

/* Dims of "..." that one operand has once only are the other's. */
static void drop_ones(const struct tc_build *b, struct labelled *x, const struct labelled *other)
{
	int64_t dim[TC_MAX_RANK];
	unsigned n = 0;

	for (unsigned d = 0; d < x->n; d++) {
		int64_t size = x->v->type->dim[d];
		int at = x->label[d] < TC_MAX_RANK ? find(other, x->label[d]) : -1;

		if (at >= 0 && size == 1 && other->v->type->dim[at] != 1)
			continue;
		dim[n] = size;
		x->label[n++] = x->label[d];
	}
	if (n != x->n)
		x->v = tc_build_reshape(b, x->v, n, dim);
	x->n = n;
}

/* Sums over what neither the result nor the other operand has. */
static void sum_alone(const struct tc_build *b, struct labelled *x, const struct labelled *other,
		      const struct labelled *result)
{
	uint64_t dims = 0;

	for (unsigned d = 0; d < x->n; d++)
		if (find(result, x->label[d]) < 0 && (!other || find(other, x->label[d]) < 0))
			dims |= (uint64_t)1 << d;
	sum_over(b, x, dims);
}

/* The product of two, summed over what the result has not; labels as dot_general has dims. */
static struct labelled product(const struct tc_build *b, struct tc_op *op,
			       const struct labelled *x, const struct labelled *y,
			       const struct labelled *result)
{
	int64_t at[4][MAX_LABELS], dim[MAX_LABELS];
	unsigned n_batch = 0, n_sums = 0;
	struct tc_value *in[] = { x->v, y->v };
	struct labelled z = { .n = 0 };
	struct tc_op *dot;

	for (unsigned d = 0; d < x->n; d++) {
		int other = find(y, x->label[d]);
		bool is_kept = find(result, x->label[d]) >= 0;

		if (other < 0)
			continue;
		if (x->v->type->dim[d] != y->v->type->dim[other])
			tc_fail(b->c, ERR_INVALID_ARGUMENT, op, "dims of %lld and %lld have one "
				"letter", (long long)x->v->type->dim[d],
				(long long)y->v->type->dim[other]);
		at[is_kept ? 0 : 2][is_kept ? n_batch : n_sums] = d;
		at[is_kept ? 1 : 3][is_kept ? n_batch++ : n_sums++] = other;
		if (is_kept) {
			dim[z.n] = x->v->type->dim[d];
			z.label[z.n++] = x->label[d];
		}
	}
	for (unsigned k = 0; k < 2; k++) {
		const struct labelled *own = k ? y : x, *other = k ? x : y;

		for (unsigned d = 0; d < own->n; d++)
			if (find(other, own->label[d]) < 0) {
				dim[z.n] = own->v->type->dim[d];
				z.label[z.n++] = own->label[d];
			}
	}
	dot = tc_build(b, TC_DOT_GENERAL, tc_tensor(b->c, (enum elem)tc_out(op, 0)->type->elem,
						    z.n, dim), 2, in)->def;
	tc_set_ints(b->c, dot, "lhs_batching_dimensions", at[0], n_batch);
	tc_set_ints(b->c, dot, "rhs_batching_dimensions", at[1], n_batch);
	tc_set_ints(b->c, dot, "lhs_contracting_dimensions", at[2], n_sums);
	tc_set_ints(b->c, dot, "rhs_contracting_dimensions", at[3], n_sums);
	z.v = tc_out(dot, 0);
	return z;
}

/* The dims in the order of `result`, which has the same labels. */
static struct tc_value *in_order(struct tc_ctx *c, const struct tc_build *b,
				 const struct tc_op *op, const struct labelled *x,
				 const struct labelled *result)
{
	int64_t permutation[TC_MAX_RANK];
	bool is_moved = false;

	for (unsigned d = 0; d < result->n; d++) {
		if ((unsigned)find(result, result->label[d]) != d)
			bad(c, op, "its einsum_config gives the result a letter twice");
		if (find(x, result->label[d]) < 0)
			bad(c, op, "its einsum_config gives the result a dim that no operand has");
		permutation[d] = find(x, result->label[d]);
		is_moved |= permutation[d] != d;
	}
	return is_moved ? tc_build_transpose(b, x->v, permutation) : x->v;
}

static void einsum(struct tc_ctx *c, struct tc_op *op, unsigned n)
{
	struct tc_build b = tc_build_at(c, op);
	const struct tc_attr *config = tc_attr(op, "einsum_config");
	const char *text, *arrow, *comma;
	struct labelled in[2], result;
	size_t first;
	unsigned dots = 0;

	want_arrays(c, op, n);
	text = config && config->kind == TC_ATTR_STR ? config->text : "";
	arrow = strstr(text, "->");
	comma = strchr(text, ',');
	if (!arrow || (n == 2) != (comma && comma < arrow))
		tc_fail(c, ERR_INVALID_ARGUMENT, op, "its einsum_config is \"%.60s\": letters for "
			"the dims of %u operands, -> and those of the result belong there", text,
			n);
	first = (size_t)((n == 2 ? comma : arrow) - text);
	read_operand(c, op, 0, text, first, &in[0]);
	if (n == 2)
		read_operand(c, op, 1, comma + 1, (size_t)(arrow - comma) - 1, &in[1]);
	for (unsigned i = 0; i < n; i++)
		for (unsigned d = 0; d < in[i].n; d++)
			if (in[i].label[d] < TC_MAX_RANK && (unsigned)in[i].label[d] >= dots)
				dots = (unsigned)in[i].label[d] + 1;
	read_labels(c, op, arrow + 2, strlen(arrow + 2), dots, &result);
	for (unsigned i = 0; i < n; i++)
		take_diagonals(&b, op, &in[i]);
	if (n == 2) {
		drop_ones(&b, &in[0], &in[1]);
		drop_ones(&b, &in[1], &in[0]);
		sum_alone(&b, &in[0], &in[1], &result);
		sum_alone(&b, &in[1], &in[0], &result);
		in[0] = product(&b, op, &in[0], &in[1], &result);
	} else {
		sum_alone(&b, &in[0], NULL, &result);
	}
	replace(c, op, in_order(c, &b, op, &in[0], &result));
}

/* ---- collective_reduce: what the first of a group gets is made of all its members' ---- */

static void reduce_alone(struct tc_ctx *c, struct tc_op *op)
{
	const struct tc_attr *groups = tc_attr(op, "replica_groups");
	const struct tc_options *o = c->options;

	if (o->replicas > 1 || o->partitions > 1)
		tc_fail(c, ERR_UNIMPLEMENTED, op, "among several members it does not run: use an "
			"all_reduce, of which each has the result");
	if (tc_attr_int(op, "has_dynamic_root", 0))
		tc_fail(c, ERR_UNIMPLEMENTED, op, "a root that is computed does not run yet");
	if (!groups || groups->kind != TC_ATTR_INTS || groups->n != 1 || *groups->ints)
		bad(c, op, "among one device, its replica_groups are not [[0]]");
	if (op->n_operands != op->n_results)
		tc_fail(c, ERR_INVALID_ARGUMENT, op, "it has %u operands and %u results",
			op->n_operands, op->n_results);
	for (unsigned i = 0; i < op->n_results; i++) {
		if (tc_in(op, i)->type != tc_out(op, i)->type)
			tc_fail(c, ERR_INVALID_ARGUMENT, op, "among one device, result %u has "
				"another type than operand %u", i, i);
		tc_replace_uses(tc_out(op, i), tc_in(op, i));
	}
	tc_erase(op);
}

/* ---- all ---- */

static void renew(struct tc_op *op, void *arg)
{
	struct tc_ctx *c = arg;
	const char *name = op->op == TC_OPAQUE ? tc_attr_str(op, "name") : NULL;

	if (!name)
		return;
	if (!strcmp(name, "broadcast_v1"))
		broadcast(c, op);
	else if (!strcmp(name, "torch_index_select_v1"))
		select_index(c, op);
	else if (!strcmp(name, "einsum_v1"))
		einsum(c, op, 2);
	else if (!strcmp(name, "unary_einsum_v1"))
		einsum(c, op, 1);
	else if (!strcmp(name, "collective_reduce_v1"))
		reduce_alone(c, op);
}

static void count_from_first(struct tc_op *op, struct tc_ctx *c)
{
	int64_t d = tc_attr_int(op, "dimension", 0);

	if (d < 0)
		tc_set_int(c, op, "dimension", TC_ATTR_INT, d + tc_in(op, 0)->type->rank);
}

struct asking { struct tc_ctx *c; bool is_any; };

static void ask(struct tc_op *op, void *arg)
{
	struct asking *a = arg;

	a->is_any |= op->op == TC_OPAQUE;
	if (op->op == TC_SORT)
		count_from_first(op, a->c);
}

void tc_renew(struct tc_ctx *c)
{
	struct asking a = { .c = c };

	tc_walk(c->module, ask, &a);
	if (!a.is_any)
		return;
	tc_walk(c->module, renew, c);
	tc_ir_verify(c, NULL, true);
}
