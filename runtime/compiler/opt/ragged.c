/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JAX's call ragged_all_to_all as other ops: each member sends any number of rows to each other
 * one, which puts them where the sender says.
 *
 * Operands: what is sent; where it is received, which is the result but for the rows that come;
 * and lists of whole numbers with u entries for each member of the group: the first row
 * to send, how many, and the row of the receiver where they go; and how many come, which
 * the senders know. An all-to-all tells each member what the others send it, a gather brings it
 * everything that is sent; then the result's rows look for where they come from. What leaves either
 * array is not sent; of two rows for one place the last sender's counts.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/compiler/opt/build.h"
#include "runtime/compiler/opt/devices.h"

enum { SENT, RESULT, FROM, SIZES, TO, COMING, OPERANDS };

struct ragged {
	struct tc_ctx *c;
	struct tc_op *op;
	struct tc_build b;
	int64_t n, entries;	/* members of a group; of a list */
	int64_t rows, sent;	/* of the result, of what one member sends */
};

static const struct tc_type *in_type(const struct ragged *r, unsigned i)
{
	return tc_in(r->op, i)->type;
}

bool tc_is_ragged(const struct tc_op *op)
{
	const char *target = tc_attr_str(op, "call_target_name");

	return op->op == TC_CUSTOM_CALL && target && !strcmp(target, "ragged_all_to_all");
}

static bool is_list(const struct tc_type *t, const struct tc_type *like)
{
	return !t->is_tuple && t->rank == 1 && t->dim[0] == like->dim[0] &&
	       tc_is_integer(t);
}

static void check(const struct ragged *r)
{
	const struct tc_op *op = r->op;
	const struct tc_type *a, *b;

	if (op->n_operands != OPERANDS || op->n_results != 1)
		tc_fail(r->c, ERR_INVALID_ARGUMENT, op, "it has %u operands and %u results, not 6 "
			"and 1", op->n_operands, op->n_results);
	a = in_type(r, SENT);
	b = in_type(r, RESULT);
	if (a->is_tuple || b->is_tuple || !a->rank || a->rank != b->rank || a->elem != b->elem ||
	    memcmp(a->dim + 1, b->dim + 1, (a->rank - 1u) * sizeof(*a->dim)) ||
	    tc_out(op, 0)->type != b)
		tc_fail(r->c, ERR_INVALID_ARGUMENT, op, "what it sends and what it gives have "
			"other rows");
	for (unsigned i = FROM; i < OPERANDS; i++)
		if (!in_type(r, FROM)->rank || !is_list(in_type(r, i), in_type(r, FROM)))
			tc_fail(r->c, ERR_INVALID_ARGUMENT, op, "operand %u is no list of whole "
				"numbers as long as operand 2", i);
}

/* An entry of the call's dictionary. */
static const struct tc_attr *said(const struct tc_op *op, const char *name)
{
	const struct tc_attr *all = tc_attr(op, "attributes");

	for (uint32_t i = 0; all && i < all->n; i++)
		if (!strcmp(all->attrs[i].key, name))
			return &all->attrs[i];
	return NULL;
}

/* Who meets, as a matrix in the dictionary says, for an op that settling reads. */
static void give_groups(const struct ragged *r, struct tc_op *to)
{
	const struct tc_attr *groups = said(r->op, "replica_groups");
	const struct tc_attr *channel = said(r->op, "channel_id");
	const struct tc_type *t = groups ? groups->type : NULL;
	int64_t *ids;

	if (groups && (groups->kind != TC_ATTR_DENSE || t->rank != 2 || t->elem != ELEM_S64))
		tc_fail(r->c, ERR_INVALID_ARGUMENT, r->op, "replica_groups: not a matrix of "
			"numbers");
	ids = arena_array(&r->c->arena, t ? (size_t)t->count : 1, sizeof(*ids));
	/* Where it lies in the program's bytes is not aligned. */
	for (int64_t i = 0; t && i < t->count; i++)
		memcpy(&ids[i], (const char *)groups->data + (groups->is_splat ? 0 : 8 * i), 8);
	tc_set_ints(r->c, to, "replica_groups", ids, t ? (unsigned)t->count : 0);
	tc_set_int(r->c, to, "group_size", TC_ATTR_INT, t ? t->dim[1] : 0);
	tc_set_int(r->c, to, "channel_id", TC_ATTR_INT,
		   channel && channel->kind == TC_ATTR_INT ? channel->i : 0);
}

/* [3, entries]: from, sizes, to; of what this member sends, then of what it is sent. */
static struct tc_value *exchange_lists(struct ragged *r, struct tc_members of)
{
	const int64_t row[2] = { 1, r->entries };
	struct tc_value *part[3], *all;
	struct tc_op *op;

	for (unsigned i = 0; i < 3; i++)
		part[i] = tc_build_reshape(&r->b, tc_build_convert(&r->b, tc_in(r->op, FROM + i),
								  ELEM_S32), 2, row);
	all = tc_build_join(&r->b, 3, part, 0);
	op = tc_build(&r->b, TC_ALL_TO_ALL, all->type, 1, &all)->def;
	give_groups(r, op);
	tc_settle_members(r->c, op, of);
	r->n = tc_attr_int(op, "group_size", 1);
	if (!r->n || !r->entries || r->entries % r->n)
		tc_fail(r->c, ERR_INVALID_ARGUMENT, r->op, "its lists have %" PRId64 " entries "
			"for %" PRId64 " members", r->entries, r->n);
	tc_set_int(r->c, op, "split_dimension", TC_ATTR_INT, 1);
	tc_set_int(r->c, op, "concat_dimension", TC_ATTR_INT, 1);
	tc_set_int(r->c, op, "split_count", TC_ATTR_INT, r->n);
	return tc_out(op, 0);
}

/* All members' rows behind each other; `like` says who they are. */
static struct tc_value *gather_rows(const struct ragged *r, const struct tc_op *like)
{
	struct tc_value *x = tc_in(r->op, SENT);
	int64_t dim[TC_MAX_RANK];
	struct tc_op *op;
	unsigned n;
	const int64_t *ids = tc_attr_ints(like, "replica_groups", &n);

	memcpy(dim, x->type->dim, x->type->rank * sizeof(*dim));
	dim[0] *= r->n;
	op = tc_build(&r->b, TC_ALL_GATHER, tc_tensor(r->c, (enum elem)x->type->elem,
						      x->type->rank, dim), 1, &x)->def;
	tc_set_ints(r->c, op, "replica_groups", ids, n);
	tc_set_int(r->c, op, "group_size", TC_ATTR_INT, r->n);
	tc_set_int(r->c, op, "channel_id", TC_ATTR_INT, 1);
	tc_set_int(r->c, op, "use_global_device_ids", TC_ATTR_BOOL, 1);
	tc_set_int(r->c, op, "all_gather_dim", TC_ATTR_INT, 0);
	return tc_out(op, 0);
}

/* Row `which` of the lists for each place of the result: [entries, rows]. */
static struct tc_value *spread(const struct ragged *r, struct tc_value *lists, unsigned which,
			       const struct tc_type *grid)
{
	const int64_t first = 0;
	struct tc_value *x = tc_build_part(&r->b, lists, 0, which, 1);

	return tc_build_broadcast(&r->b, tc_build_reshape(&r->b, x, 1, &r->entries), grid, &first);
}

/* Where each entry's sender begins among the gathered rows. */
static struct tc_value *senders(const struct ragged *r, const struct tc_type *grid)
{
	int32_t *begin = arena_array(&r->c->arena, (size_t)r->entries, sizeof(*begin));
	const struct tc_type *list = tc_tensor(r->c, ELEM_S32, 1, &r->entries);
	const int64_t first = 0;

	for (int64_t e = 0; e < r->entries; e++)
		begin[e] = (int32_t)(e / (r->entries / r->n) * r->sent);
	return tc_build_broadcast(&r->b, tc_build_data(&r->b, list, begin), grid, &first);
}

static struct tc_value *both(const struct ragged *r, struct tc_value *x, struct tc_value *low,
			     struct tc_value *high)
{
	return tc_build2(&r->b, TC_AND, tc_build_compare(&r->b, TC_CMP_GE, x, low),
			 tc_build_compare(&r->b, TC_CMP_LT, x, high));
}

/* For each row of the result the gathered one that it is, -1: it stays. */
static struct tc_value *find_rows(const struct ragged *r, struct tc_value *lists)
{
	const int64_t dim[2] = { r->entries, r->rows };
	const struct tc_type *grid = tc_tensor(r->c, ELEM_S32, 2, dim);
	const struct tc_build *b = &r->b;
	struct tc_value *zero = tc_build_number(b, grid, 0);
	struct tc_value *at = tc_build2(b, TC_SUBTRACT, tc_build_iota(b, grid, 1),
					spread(r, lists, 2, grid));
	struct tc_value *from = tc_build2(b, TC_ADD, at, spread(r, lists, 0, grid));
	struct tc_value *comes = tc_build2(b, TC_AND,
		both(r, at, zero, spread(r, lists, 1, grid)),
		both(r, from, zero, tc_build_number(b, grid, (double)r->sent)));
	struct tc_value *row = tc_build_select(b, comes,
		tc_build2(b, TC_ADD, from, senders(r, grid)), tc_build_number(b, grid, -1));

	return tc_build_fold(b, TC_MAXIMUM, row, INT32_MIN, 1);
}

static struct tc_value *take_rows(const struct ragged *r, struct tc_value *all,
				  struct tc_value *row)
{
	const struct tc_type *t = in_type(r, RESULT);
	const int64_t x_dim[3] = { 1, all->type->dim[0], all->type->count / all->type->dim[0] };
	const int64_t row_dim[2] = { 1, r->rows }, first = 0;
	const struct tc_build *b = &r->b;
	struct tc_value *none = tc_build_number(b, row->type, 0), *comes, *rows;

	comes = tc_build_compare(b, TC_CMP_GE, row, none);
	row = tc_build_reshape(b, tc_build2(b, TC_MAXIMUM, row, none), 2, row_dim);
	rows = tc_build_rows(b, tc_build_reshape(b, all, 3, x_dim), row);
	return tc_build_select(b, tc_build_broadcast(b, comes, tc_with_elem(r->c, t, ELEM_PRED),
						     &first),
			       tc_build_reshape(b, rows, t->rank, t->dim),
			       tc_in(r->op, RESULT));
}

/* Of one member: what it gives is what it takes. */
static struct tc_value *alone(struct tc_value *v)
{
	struct tc_op *op = v->def;
	struct tc_value *in = tc_in(op, 0);

	tc_erase(op);
	return in;
}

bool tc_settle_ragged(struct tc_ctx *c, struct tc_op *op, struct tc_members of)
{
	struct ragged r = { .c = c, .op = op, .b = tc_build_at(c, op) };
	struct tc_value *lists, *all;

	check(&r);
	r.entries = in_type(&r, FROM)->dim[0];
	r.rows = in_type(&r, RESULT)->dim[0];
	r.sent = in_type(&r, SENT)->dim[0];
	lists = exchange_lists(&r, of);
	if (r.sent > INT32_MAX / r.n || r.rows > INT32_MAX)
		tc_fail(c, ERR_UNIMPLEMENTED, op, "more than 2^31 rows do not run yet");
	if (!in_type(&r, RESULT)->count || !r.sent) {
		tc_erase(lists->def);
		tc_replace(op, tc_in(op, RESULT));
		return false;
	}
	all = r.n > 1 ? gather_rows(&r, lists->def) : tc_in(op, SENT);
	lists = r.n > 1 ? lists : alone(lists);
	tc_replace(op, take_rows(&r, all, find_rows(&r, lists)));
	return r.n > 1;
}
