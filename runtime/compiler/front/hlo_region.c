/* SPDX-License-Identifier: Apache-2.0 */
/* Computations of HLO modules, and the instructions that name some; custom calls too, of which
 * others know what they are (hlo.h). */
#include <inttypes.h>
#include <string.h>

#include "runtime/compiler/front/hlo.h"
#include "runtime/compiler/front/processor.h"

#define MAX_DEPTH 200u		/* of computations in computations */
#define MAX_READ 4000000u	/* instructions; a computation's count at each call of it */

#define READ(name) static struct hlo_value read_##name(struct hlo *r, struct tc_block *b, \
	const struct hlo_insn *i, enum tc_opcode code)

static struct hlo_value read_insn(struct hlo *r, struct tc_block *b, const struct hlo_insn *i);

/* ---- computations ---- */

static struct hlo_value take_parameter(struct hlo *r, const struct hlo_insn *i,
				       const struct hlo_value *args)
{
	const struct hlo_value *v = &args[i->p->parameter_number];

	if (hlo_type(r, i->p->shape) != v->type)
		hlo_bad(r, "parameter %" PRId64 " is not of the type of what is given for it",
			i->p->parameter_number);
	return *v;
}

struct hlo_value hlo_read_computation(struct hlo *r, uint32_t computation, struct tc_block *b,
				      const struct hlo_value *args)
{
	struct hlo_computation *k = &r->computations[computation];
	const struct hlo_insn *around = r->now;
	const struct hlo_slot *root = hlo_find(&r->insn_ids, k->p->root_id);
	struct hlo_insn *all = r->insns + k->first;

	if (k->is_open)
		hlo_bad(r, "computation %.100s calls itself", k->p->name ? k->p->name : "");
	if (++r->depth > MAX_DEPTH)
		hlo_refuse(r, "the program's loops, branches and calls nest more than %u deep",
			   MAX_DEPTH);
	r->n_read += k->p->n_instructions;
	if (r->n_read > MAX_READ)
		tc_fail(r->c, ERR_RESOURCE_EXHAUSTED, NULL, "the program has more than %u "
			"instructions, those of a computation counted at each call", MAX_READ);
	if (!root || r->insns[root->at].computation != computation)
		hlo_bad(r, "computation %.100s has no instruction %" PRId64 ", which is to be "
			"its root", k->p->name ? k->p->name : "", k->p->root_id);
	k->is_open = true;
	for (size_t i = 0; i < k->p->n_instructions; i++)
		all[i].is_defined = false;
	for (size_t i = 0; i < k->p->n_instructions; i++) {
		r->now = &all[i];
		if (all[i].p->opcode && !strcmp(all[i].p->opcode, "parameter"))
			all[i].value = take_parameter(r, &all[i], args);
		else
			all[i].value = read_insn(r, b, &all[i]);
		hlo_give_bounds(r, all[i].p->shape, &all[i].value);
		all[i].is_defined = true;
	}
	k->is_open = false;
	r->depth--;
	r->now = around;
	return r->insns[root->at].value;
}

/* Arguments of b for every array of the type. */
static struct hlo_value new_arguments(struct hlo *r, struct tc_block *b,
				      const struct tc_type *t)
{
	struct hlo_value v = { t, hlo_get(r, hlo_count(t), sizeof(*v.leaf)) };
	unsigned n = 0;

	if (!t->is_tuple) {
		v.leaf[0] = tc_new_arg(r->c, b, t);
		return v;
	}
	for (unsigned i = 0; i < t->n_parts; i++) {
		struct hlo_value part = new_arguments(r, b, t->parts[i]);
		unsigned m = hlo_count(part.type);

		if (m)
			memcpy(v.leaf + n, part.leaf, m * sizeof(*v.leaf));
		n += m;
	}
	return v;
}

void hlo_end_block(struct hlo *r, struct tc_block *b, const struct hlo_value *v)
{
	tc_append(b, tc_new(r->c, TC_RETURN, hlo_count(v->type), v->leaf, 0, NULL, 0));
}

struct hlo_value *hlo_arguments(struct hlo *r, uint32_t computation, struct tc_block *b)
{
	const struct hlo_computation *k = hlo_parameters(r, computation);
	struct hlo_value *args = hlo_get(r, k->n_params, sizeof(*args));

	for (uint32_t i = 0; i < k->n_params; i++)
		args[i] = new_arguments(r, b, hlo_type(r, r->insns[k->params[i]].p->shape));
	return args;
}

static void read_region(struct hlo *r, uint32_t computation, struct tc_region *region)
{
	struct tc_block *b = tc_new_block(r->c, region);
	struct hlo_value *args = hlo_arguments(r, computation, b), result;

	result = hlo_read_computation(r, computation, b, args);
	hlo_end_block(r, b, &result);
}

/* ---- scalar functions on arrays ---- */

READ(reduce)
{
	struct tc_op *op = hlo_op(r, b, i, code, 1);

	hlo_give_dims(r, i, op, "dimensions");
	read_region(r, hlo_callee(r, i, 0), &op->regions[0]);
	return hlo_results(r, i, op);
}

READ(map)
{
	return read_reduce(r, b, i, code);
}

READ(reduce_window)
{
	struct tc_op *op = hlo_op(r, b, i, code, 1);

	hlo_give_window(r, i, op);
	read_region(r, hlo_callee(r, i, 0), &op->regions[0]);
	return hlo_results(r, i, op);
}

READ(select_and_scatter)
{
	struct tc_op *op = hlo_op(r, b, i, code, 2);

	hlo_give_window(r, i, op);
	read_region(r, hlo_callee(r, i, 0), &op->regions[0]);
	read_region(r, hlo_callee(r, i, 1), &op->regions[1]);
	return hlo_results(r, i, op);
}

READ(sort)
{
	struct tc_op *op = hlo_op(r, b, i, code, 1);

	if (i->p->n_dimensions != 1)
		hlo_bad(r, "it names %zu dimensions, not one", i->p->n_dimensions);
	tc_set_int(r->c, op, "dimension", TC_ATTR_INT, i->p->dimensions[0]);
	tc_set_int(r->c, op, "is_stable", TC_ATTR_BOOL, i->p->is_stable != 0);
	read_region(r, hlo_callee(r, i, 0), &op->regions[0]);
	return hlo_results(r, i, op);
}

READ(top_k)
{
	struct tc_build to = { .c = r->c, .block = b, .where = hlo_where(r, i) };
	struct tc_value *x = hlo_array(r, i, 0);
	const struct tc_type *out = hlo_type(r, i->p->shape);
	struct hlo_value v = { out, hlo_get(r, 2, sizeof(*v.leaf)) };

	(void)code;
	if (!tc_build_top_k(&to, x, i->p->k, i->p->largest, v.leaf))
		hlo_bad(r, "%" PRId64 " of an array of rank %u", i->p->k, x->type->rank);
	if (!out->is_tuple || out->n_parts != 2 || out->parts[0] != v.leaf[0]->type ||
	    out->parts[1] != v.leaf[1]->type)
		hlo_bad(r, "its shape is not that of %" PRId64 " values and their places",
			i->p->k);
	return v;
}

READ(scatter)
{
	static const Hlo__ScatterDims none = HLO__SCATTER_DIMS__INIT;
	const Hlo__ScatterDims *s = i->p->scatter_dims ? i->p->scatter_dims : &none;
	struct tc_op *op = hlo_op(r, b, i, code, 1);

	hlo_give_ints(r, op, "update_window_dims", s->n_update_window_dims,
		      s->update_window_dims);
	hlo_give_ints(r, op, "inserted_window_dims", s->n_inserted_window_dims,
		      s->inserted_window_dims);
	hlo_give_ints(r, op, "input_batching_dims", s->n_input_batching_dims,
		      s->input_batching_dims);
	hlo_give_ints(r, op, "scatter_indices_batching_dims",
		      s->n_scatter_indices_batching_dims, s->scatter_indices_batching_dims);
	hlo_give_ints(r, op, "scatter_dims_to_operand_dims",
		      s->n_scatter_dims_to_operand_dims, s->scatter_dims_to_operand_dims);
	tc_set_int(r->c, op, "index_vector_dim", TC_ATTR_INT, s->index_vector_dim);
	tc_set_int(r->c, op, "indices_are_sorted", TC_ATTR_BOOL, i->p->indices_are_sorted != 0);
	tc_set_int(r->c, op, "unique_indices", TC_ATTR_BOOL, i->p->unique_indices != 0);
	read_region(r, hlo_callee(r, i, 0), &op->regions[0]);
	return hlo_results(r, i, op);
}

/* ---- control flow ---- */

/* HLO names the body first, the IR's regions are condition and body. */
READ(while)
{
	struct tc_op *op = hlo_op(r, b, i, code, 2);

	read_region(r, hlo_callee(r, i, 1), &op->regions[0]);
	read_region(r, hlo_callee(r, i, 0), &op->regions[1]);
	return hlo_results(r, i, op);
}

/* A branch sees its operand where it stands: regions of branches take no arguments. */
static void read_branch(struct hlo *r, const struct hlo_insn *i, size_t n,
			struct tc_region *region)
{
	uint32_t computation = hlo_callee(r, i, n);
	struct tc_block *b = tc_new_block(r->c, region);
	struct hlo_value result;

	if (hlo_parameters(r, computation)->n_params != 1)
		hlo_bad(r, "branch %zu takes %u parameters, not one", n,
			hlo_parameters(r, computation)->n_params);
	result = hlo_read_computation(r, computation, b, hlo_operand(r, i, n + 1));
	hlo_end_block(r, b, &result);
}

READ(conditional)
{
	size_t n = i->p->n_called_computation_ids;
	struct tc_value *index = hlo_array(r, i, 0);
	bool is_if = index->type->elem == ELEM_PRED;
	struct tc_op *op;

	(void)code;
	if (!n || i->p->n_operand_ids != n + 1 || (is_if && n != 2))
		hlo_bad(r, "%zu branches with %zu operands", n, i->p->n_operand_ids);
	op = hlo_op(r, b, i, is_if ? TC_IF : TC_CASE, (unsigned)n);
	tc_set_operands(r->c, op, 1, &index);
	for (size_t k = 0; k < n; k++)
		read_branch(r, i, k, &op->regions[k]);
	return hlo_results(r, i, op);
}

/* What the instruction calls, in its place. */
static struct hlo_value read_called(struct hlo *r, struct tc_block *b, const struct hlo_insn *i)
{
	uint32_t computation = hlo_callee(r, i, 0);
	size_t n = i->p->n_operand_ids;
	struct hlo_value *args = hlo_get(r, n, sizeof(*args));

	if (hlo_parameters(r, computation)->n_params != n)
		hlo_bad(r, "%zu operands for %u parameters", n,
			hlo_parameters(r, computation)->n_params);
	for (size_t k = 0; k < n; k++)
		args[k] = *hlo_operand(r, i, k);
	return hlo_read_computation(r, computation, b, args);
}

READ(call)
{
	struct hlo_value v = read_called(r, b, i);

	(void)code;
	if (hlo_type(r, i->p->shape) != v.type)
		hlo_bad(r, "its shape is not that of what it calls");
	return v;
}

/* ---- custom calls ---- */

READ(custom_call)
{
	struct tc_op *op = hlo_op(r, b, i, code, 0);
	const ProtobufCBinaryData *config = &i->p->backend_config;

	if (!i->p->custom_call_target)
		hlo_bad(r, "it names no target");
	tc_set_str(r->c, op, "call_target_name", i->p->custom_call_target);
	tc_set_int(r->c, op, "has_side_effect", TC_ATTR_BOOL,
		   i->p->custom_call_has_side_effect != 0);
	tc_set_str(r->c, op, "backend_config", config->len ?
		   arena_text(&r->c->arena, (const char *)config->data, config->len) : "");
	if (i->p->sharding && !hlo_type(r, i->p->shape)->is_tuple)
		tc_set_str(r->c, op, "sharding", hlo_sharding(r, i->p->sharding));
	return hlo_results(r, i, op);
}

/* ---- collectives ---- */

READ(collective)
{
	struct tc_op **ops;
	struct hlo_value v = hlo_read_collective(r, b, i, code, &ops);

	for (; *ops; ops++)
		if ((*ops)->n_regions)
			read_region(r, hlo_callee(r, i, 0), &(*ops)->regions[0]);
	return v;
}

READ(ragged)
{
	(void)code;
	return hlo_read_ragged(r, b, i);
}

/* What is begun is done at once. */
READ(async)
{
	struct hlo_value v = read_called(r, b, i);

	(void)code;
	return hlo_begun(r, b, i, &v);
}

/* ---- any instruction ---- */

static void check_processor(struct hlo *r, const struct hlo_insn *i)
{
	const Hlo__FrontendAttributes *all = i->p->frontend_attributes;

	for (size_t k = 0; all && k < all->n_map; k++) {
		const Hlo__FrontendAttribute *a = all->map[k];
		const char *why = NULL;

		if (a->key && a->value && !strcmp(a->key, PROCESSOR_KEY))
			why = processor_refused(a->value, strlen(a->value));
		if (why)
			hlo_refuse(r, "%s", why);
	}
}

static struct hlo_value read_insn(struct hlo *r, struct tc_block *b, const struct hlo_insn *i)
{
	static const struct {
		const char *name;
		enum tc_opcode op;
		struct hlo_value (*read)(struct hlo *r, struct tc_block *b,
					 const struct hlo_insn *i, enum tc_opcode code);
	} rules[] = {
#define HLO(name, op, fn)
#define REGION(name, op, fn) { name, TC_##op, fn },
#include "runtime/compiler/front/hlo.def"
#undef HLO
#undef REGION
	};
	struct hlo_value v;

	check_processor(r, i);
	if (hlo_read_op(r, b, i, &v))
		return v;
	for (size_t k = 0; i->p->opcode && k < sizeof(rules) / sizeof(*rules); k++)
		if (!strcmp(i->p->opcode, rules[k].name))
			return rules[k].read(r, b, i, rules[k].op);
	hlo_refuse(r, "this instruction does not run yet");
}
