/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HLO's instructions in which several devices meet, as StableHLO's ops (hlo.h). What their
 * numbers mean on this many devices opt/devices.c says.
 *
 * HLO's forms that StableHLO has not: one that is begun here and done there, which is done
 * where it begins; an all-to-all of one array for each member; a reduce-scatter of several; an
 * all-to-all of any number of rows each, for which JAX has a call.
 */
#include <inttypes.h>
#include <string.h>

#include "runtime/compiler/front/hlo.h"
#include "runtime/compiler/passes.h"

/* ---- what it says of members ---- */

static void give_groups(struct hlo *r, const struct hlo_insn *i, struct tc_op *op)
{
	struct hlo_groups g = hlo_groups(r, i);

	tc_set_ints(r->c, op, "replica_groups", g.ids, (unsigned)g.n);
	tc_set_int(r->c, op, "group_size", TC_ATTR_INT, (int64_t)g.size);
}

static void give_pairs(struct hlo *r, const struct hlo_insn *i, struct tc_op *op)
{
	size_t n = i->p->n_source_target_pairs;
	int64_t *list = hlo_get(r, n, 2 * sizeof(*list));

	for (size_t k = 0; k < n; k++) {
		list[2 * k] = i->p->source_target_pairs[k]->source;
		list[2 * k + 1] = i->p->source_target_pairs[k]->target;
	}
	tc_set_ints(r->c, op, "source_target_pairs", list, (unsigned)(2 * n));
}

static void give_members(struct hlo *r, const struct hlo_insn *i, struct tc_op *op)
{
	tc_set_int(r->c, op, "channel_id", TC_ATTR_INT, i->p->channel_id);
	tc_set_int(r->c, op, "use_global_device_ids", TC_ATTR_BOOL,
		   i->p->use_global_device_ids != 0);
	if (op->op == TC_COLLECTIVE_PERMUTE)
		give_pairs(r, i, op);
	else
		give_groups(r, i, op);
}

/* How many meet: without groups, all that its numbers count. */
static int64_t group_size(struct hlo *r, const struct hlo_insn *i)
{
	struct hlo_groups g = hlo_groups(r, i);
	const struct tc_options *o = r->c->options;
	unsigned all = i->p->channel_id > 0 ? o->partitions : o->replicas;

	return g.n ? (int64_t)g.size : all ? all : 1;
}

/* ---- ops ---- */

static int64_t only_dim(struct hlo *r, const struct hlo_insn *i)
{
	if (i->p->n_dimensions != 1)
		hlo_bad(r, "it names %zu dimensions, not one", i->p->n_dimensions);
	return i->p->dimensions[0];
}

static void give_dims(struct hlo *r, const struct hlo_insn *i, struct tc_op *op)
{
	switch (op->op) {
	case TC_ALL_GATHER:
		tc_set_int(r->c, op, "all_gather_dim", TC_ATTR_INT, only_dim(r, i));
		break;
	case TC_REDUCE_SCATTER:
		tc_set_int(r->c, op, "scatter_dimension", TC_ATTR_INT, only_dim(r, i));
		break;
	case TC_ALL_TO_ALL:
		tc_set_int(r->c, op, "split_dimension", TC_ATTR_INT, only_dim(r, i));
		tc_set_int(r->c, op, "concat_dimension", TC_ATTR_INT, only_dim(r, i));
		tc_set_int(r->c, op, "split_count", TC_ATTR_INT, group_size(r, i));
		break;
	default:
		break;
	}
}

static struct tc_op *make(struct hlo *r, struct tc_block *b, const struct hlo_insn *i,
			  enum tc_opcode code, unsigned n, struct tc_value *const *in,
			  const struct tc_type *const *types)
{
	bool has_region = code == TC_ALL_REDUCE || code == TC_REDUCE_SCATTER;
	struct tc_op *op = tc_new(r->c, code, n, in, n, types, has_region);

	op->where = hlo_where(r, i);
	tc_append(b, op);
	give_members(r, i, op);
	give_dims(r, i, op);
	return op;
}

/* Operand k goes to member k, result k comes from it: one array of them all. */
static struct tc_op *exchange_operands(struct hlo *r, struct tc_block *b,
				       const struct hlo_insn *i, unsigned n,
				       struct tc_value *const *in, struct tc_value **out)
{
	struct tc_build to = { .c = r->c, .block = b, .where = hlo_where(r, i) };
	struct tc_value **rows = hlo_get(r, n, sizeof(*rows)), *all;
	const struct tc_type *t = in[0]->type;
	int64_t dim[TC_MAX_RANK + 1] = { 1 };
	struct tc_op *op;

	if (t->is_tuple || t->rank == TC_MAX_RANK)
		hlo_refuse(r, "its operands have too many dims");
	memcpy(dim + 1, t->dim, t->rank * sizeof(*dim));
	for (unsigned k = 0; k < n; k++) {
		if (in[k]->type != t)
			hlo_bad(r, "operand %u is of another type than operand 0", k);
		rows[k] = tc_build_reshape(&to, in[k], t->rank + 1u, dim);
	}
	all = tc_build_join(&to, n, rows, 0);
	op = tc_new(r->c, TC_ALL_TO_ALL, 1, &all, 1, &all->type, 0);
	tc_build_place(&to, op);
	give_members(r, i, op);
	tc_set_int(r->c, op, "split_dimension", TC_ATTR_INT, 0);
	tc_set_int(r->c, op, "concat_dimension", TC_ATTR_INT, 0);
	tc_set_int(r->c, op, "split_count", TC_ATTR_INT, n);
	for (unsigned k = 0; k < n; k++)
		out[k] = tc_build_reshape(&to, tc_build_part(&to, tc_out(op, 0), 0, k, 1),
					  t->rank, t->dim);
	return op;
}

/* The arrays of t, in order. */
static unsigned list_types(const struct tc_type *t, const struct tc_type **out)
{
	unsigned n = 0;

	if (!t->is_tuple) {
		*out = t;
		return 1;
	}
	for (unsigned k = 0; k < t->n_parts; k++)
		n += list_types(t->parts[k], out + n);
	return n;
}

struct hlo_value hlo_begun(struct hlo *r, struct tc_block *b, const struct hlo_insn *i,
			   const struct hlo_value *results)
{
	const struct tc_type *t = hlo_type(r, i->p->shape), **types;
	struct tc_build to = { .c = r->c, .block = b, .where = hlo_where(r, i) };
	struct hlo_value v = { t, hlo_get(r, hlo_count(t), sizeof(*v.leaf)) };
	struct tc_value **in;
	unsigned n_in = hlo_leaves(r, i, 0, &in), n_out = hlo_count(results->type);

	if (!t->is_tuple || t->n_parts < 2 || hlo_count(t->parts[0]) != n_in ||
	    t->parts[1] != results->type)
		hlo_bad(r, "its shape is not that of its operands and results");
	types = hlo_get(r, hlo_count(t), sizeof(*types));
	list_types(t, types);
	for (unsigned k = 0; k < hlo_count(t); k++) {
		v.leaf[k] = k < n_in ? in[k] : k < n_in + n_out ? results->leaf[k - n_in] :
			    NULL;
		if (v.leaf[k] && v.leaf[k]->type != types[k])
			hlo_bad(r, "array %u of its shape is of another type", k);
		if (!v.leaf[k] && !elem_bytes(types[k]->elem))
			hlo_bad(r, "array %u of its shape is none", k);
		if (!v.leaf[k])
			v.leaf[k] = tc_build_number(&to, types[k], 0);
	}
	return v;
}

struct hlo_value hlo_read_collective(struct hlo *r, struct tc_block *b, const struct hlo_insn *i,
				     enum tc_opcode code, struct tc_op ***ops)
{
	bool begins = code != TC_ALL_REDUCE && strstr(i->p->opcode, "-start");
	const struct tc_type *t = hlo_type(r, i->p->shape), **types;
	struct hlo_value v;
	struct tc_value **in;
	unsigned n = hlo_leaves(r, i, 0, &in);

	if (begins && (!t->is_tuple || t->n_parts < 2))
		hlo_bad(r, "its shape is not that of its operands and results");
	v = (struct hlo_value){ begins ? t->parts[1] : t, hlo_get(r, n, sizeof(*v.leaf)) };
	if (!n || hlo_count(v.type) != n)
		hlo_bad(r, "it has %u operands and %u results", n, hlo_count(v.type));
	types = hlo_get(r, n, sizeof(*types));
	list_types(v.type, types);
	*ops = hlo_get(r, n + 1, sizeof(**ops));
	if (code == TC_ALL_TO_ALL && !i->p->n_dimensions) {
		(*ops)[0] = exchange_operands(r, b, i, n, in, v.leaf);
	} else {
		unsigned each = code == TC_REDUCE_SCATTER ? 1 : n;

		for (unsigned k = 0; k < n; k++) {
			if (k % each == 0)
				(*ops)[k / each] = make(r, b, i, code, each, in + k, types + k);
			v.leaf[k] = tc_out((*ops)[k / each], k % each);
		}
	}
	for (unsigned k = 0; k < n; k++)
		if (v.leaf[k]->type != types[k])
			hlo_bad(r, "result %u is of another type than what it gives", k);
	return begins ? hlo_begun(r, b, i, &v) : v;
}

struct hlo_value hlo_read_ragged(struct hlo *r, struct tc_block *b, const struct hlo_insn *i)
{
	struct tc_op *op = hlo_op(r, b, i, TC_CUSTOM_CALL, 0);
	struct tc_attr *said = hlo_get(r, 2, sizeof(*said));
	struct hlo_groups g = hlo_groups(r, i);
	const int64_t dim[2] = { g.size ? (int64_t)(g.n / g.size) : 0, (int64_t)g.size };

	said[0] = (struct tc_attr){ .key = TC_KEY(r->c, "channel_id"), .kind = TC_ATTR_INT,
				    .i = i->p->channel_id };
	said[1] = (struct tc_attr){ .key = TC_KEY(r->c, "replica_groups"), .data = g.ids,
				    .kind = TC_ATTR_DENSE,
				    .type = tc_tensor(r->c, ELEM_S64, 2, dim) };
	tc_set_str(r->c, op, "call_target_name", "ragged_all_to_all");
	tc_set_attr(r->c, op, (struct tc_attr){ .key = TC_KEY(r->c, "attributes"), .n = 2,
						.kind = TC_ATTR_ATTRS, .attrs = said });
	return hlo_results(r, i, op);
}
