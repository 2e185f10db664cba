/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes a program with dims of bounded size one of static dims: arrays are padded to the bounds,
 * and the sizes are values beside them.
 *
 * Requires: main is the only function; tc_value.bounded says which dims of which values may be
 * shorter than their types. Ensures: no set_dimension_size and no op that is given shapes is
 * left, every value is as long as its type. Main has more arguments and results behind those it
 * had: for each of these with a bounded dim an s32[rank] of all its sizes, in their order;
 * tc_arg_info.bounded says which have one. No result depends on what lies past an argument's
 * sizes; zeros lie past a result's.
 * Fails: UNIMPLEMENTED where an op has no rule for a dim that is shorter, by op, place and dim.
 */
#include <string.h>

#include "runtime/compiler/dynamic/dynamic.h"
#include "runtime/compiler/passes.h"

struct kept { struct tc_op *op; struct kept *next; };

struct pass {
	struct tc_ctx *c;
	struct kept *sets;		/* set_dimension_size, to go at the end */
	bool has_plain;
};

static void *get(struct tc_ctx *c, size_t count, size_t size)
{
	void *p = arena_array(&c->arena, count + 1, size);

	if (!p)
		tc_fail(c, ERR_RESOURCE_EXHAUSTED, NULL, "out of memory");
	return p;
}

static void walk_block(struct pass *p, struct tc_block *b);

/* ---- sizes asked for and set ---- */

static void get_size(struct tc_ctx *c, struct tc_op *op)
{
	struct tc_build b = tc_build_at(c, op);
	unsigned dim = (unsigned)tc_attr_int(op, "dimension", 0);
	struct tc_value *size = dyn_any_size(&b, tc_in(op, 0), dim);

	size = tc_build_convert(&b, size, (enum elem)tc_out(op, 0)->type->elem);
	tc_replace(op, size);
}

/* Numbers below 0 and above the bound count as these. */
static void set_size(struct pass *p, struct tc_op *op)
{
	struct tc_build b = tc_build_at(p->c, op);
	unsigned dim = (unsigned)tc_attr_int(op, "dimension", 0);
	struct tc_value *x = tc_in(op, 0), *size = dyn_narrowed(&b, tc_in(op, 1));
	struct kept *k = get(p->c, 1, sizeof(*k));

	dyn_copy(p->c, tc_out(op, 0), x);
	dyn_set(p->c, tc_out(op, 0), dim, dyn_held(&b, size, x->type->dim[dim]));
	*k = (struct kept){ op, p->sets };
	p->sets = k;
}

/* ---- loops and branches ---- */

/* What of a list of values is dynamic: sizes of which dims of which, in this order. */
struct carried {
	uint32_t *dims;		/* of each value */
	unsigned n, n_sizes;
};

static struct carried carry(struct tc_ctx *c, unsigned n)
{
	return (struct carried){ .dims = get(c, n, sizeof(uint32_t)), .n = n };
}

static void count(struct carried *k)
{
	k->n_sizes = 0;
	for (unsigned i = 0; i < k->n; i++)
		k->n_sizes += (unsigned)__builtin_popcount(k->dims[i]);
}

static uint32_t dynamic_dims(const struct tc_value *v)
{
	uint32_t dims = 0;

	for (unsigned d = 0; d < v->type->rank; d++)
		dims |= dyn_size_of(v, d) ? (uint32_t)1 << d : 0;
	return dims;
}

/* Of values like those that are carried, the sizes, each value[i] being operand `first` + i. */
static void take_sizes(const struct tc_build *b, const struct carried *k, const struct tc_op *op,
		       unsigned first, struct tc_value **to)
{
	for (unsigned i = 0; i < k->n; i++)
		for (unsigned d = 0; d < tc_in(op, first + i)->type->rank; d++)
			if (k->dims[i] >> d & 1)
				*to++ = dyn_any_size(b, tc_in(op, first + i), d);
}

static void give_sizes(struct tc_ctx *c, const struct carried *k, unsigned i, struct tc_value *v,
		       struct tc_value *const *sizes, unsigned *at)
{
	for (unsigned d = 0; d < v->type->rank; d++)
		if (k->dims[i] >> d & 1)
			dyn_set(c, v, d, sizes[(*at)++]);
}

/* The op with more operands, and results for the sizes, before it; its regions go over. */
static struct tc_op *grown(struct tc_ctx *c, struct tc_op *op, const struct carried *k,
			   unsigned n_more, struct tc_value *const *more)
{
	unsigned n_in = op->n_operands + n_more, n_out = op->n_results + k->n_sizes, at = 0;
	struct tc_value **in = get(c, n_in, sizeof(*in)), **sizes = get(c, n_out, sizeof(*sizes));
	const struct tc_type **types = get(c, n_out, sizeof(*types));
	struct tc_build b = tc_build_at(c, op);
	struct tc_op *to;

	for (unsigned i = 0; i < n_in; i++)
		in[i] = i < op->n_operands ? tc_in(op, i) : more[i - op->n_operands];
	for (unsigned i = 0; i < n_out; i++)
		types[i] = i < op->n_results ? tc_out(op, i)->type :
			   tc_tensor(c, ELEM_S32, 0, NULL);
	to = tc_build_place(&b, tc_new(c, (enum tc_opcode)op->op, n_in, in, n_out, types,
				       op->n_regions));
	for (unsigned i = 0; i < op->n_attrs; i++)
		tc_set_attr(c, to, op->attrs[i]);
	for (unsigned r = 0; r < op->n_regions; r++) {
		to->regions[r].block = op->regions[r].block;
		to->regions[r].block->region = &to->regions[r];
		op->regions[r].block = NULL;
	}
	for (unsigned i = 0; i < k->n_sizes; i++)
		sizes[i] = tc_out(to, op->n_results + i);
	for (unsigned i = 0; i < op->n_results; i++) {
		give_sizes(c, k, i, tc_out(to, i), sizes, &at);
		tc_replace_uses(tc_out(op, i), tc_out(to, i));
	}
	tc_erase(op);
	return to;
}

/* A region's results are followed by their sizes. */
static void return_sizes(struct tc_ctx *c, const struct carried *k, const struct tc_op *op,
			 struct tc_block *b)
{
	struct tc_build at = tc_build_at(c, b->last);
	struct tc_value **out = get(c, k->n + k->n_sizes, sizeof(*out));

	at.where = op->where;
	for (unsigned i = 0; i < k->n; i++) {
		out[i] = tc_in(b->last, i);
		if (dynamic_dims(out[i]) & ~k->dims[i])
			tc_fail(c, ERR_UNIMPLEMENTED, op, "value %u of the loop gets a dim %d of "
				"a size that is known only when it runs, which its type does not "
				"say: give the dim a bound there", i,
				__builtin_ctz(dynamic_dims(out[i]) & ~k->dims[i]));
	}
	take_sizes(&at, k, b->last, 0, out + k->n);
	tc_set_operands(c, b->last, k->n + k->n_sizes, out);
}

static void walk_while(struct pass *p, struct tc_op *op)
{
	struct carried k = carry(p->c, op->n_results);
	struct tc_build b = tc_build_at(p->c, op);
	struct tc_value **sizes;

	for (unsigned i = 0; i < k.n; i++)
		k.dims[i] = tc_out(op, i)->bounded | dynamic_dims(tc_in(op, i)) |
			    op->regions[1].block->args[i]->bounded;
	count(&k);
	sizes = get(p->c, k.n_sizes, sizeof(*sizes));
	take_sizes(&b, &k, op, 0, sizes);
	if (k.n_sizes)
		op = grown(p->c, op, &k, k.n_sizes, sizes);
	for (unsigned r = 0; r < 2; r++) {
		struct tc_block *block = op->regions[r].block;
		unsigned at = 0;

		for (unsigned i = 0; i < k.n_sizes; i++)
			sizes[i] = tc_new_arg(p->c, block, tc_tensor(p->c, ELEM_S32, 0, NULL));
		for (unsigned i = 0; i < k.n; i++)
			give_sizes(p->c, &k, i, block->args[i], sizes, &at);
		walk_block(p, block);
	}
	return_sizes(p->c, &k, op, op->regions[1].block);
}

static void walk_branches(struct pass *p, struct tc_op *op)
{
	struct carried k = carry(p->c, op->n_results);

	for (unsigned r = 0; r < op->n_regions; r++)
		walk_block(p, op->regions[r].block);
	for (unsigned r = 0; r < op->n_regions; r++)
		for (unsigned i = 0; i < k.n; i++)
			k.dims[i] |= dynamic_dims(tc_in(op->regions[r].block->last, i));
	count(&k);
	if (!k.n_sizes)
		return;
	op = grown(p->c, op, &k, 0, NULL);
	for (unsigned r = 0; r < op->n_regions; r++)
		return_sizes(p->c, &k, op, op->regions[r].block);
}

/* ---- every op ---- */

static void pass_on(struct tc_ctx *c, struct tc_op *op)
{
	for (unsigned i = 0; i < op->n_results; i++)
		dyn_copy(c, tc_out(op, i), tc_in(op, i));
}

static bool is_alone(const struct tc_ctx *c)
{
	return c->options->replicas <= 1 && c->options->partitions <= 1;
}

/* Each of many: what the op does happens in n dims from `first` on. */
static void keep_others(struct tc_ctx *c, struct tc_op *op, unsigned first, unsigned n)
{
	struct tc_build b = tc_build_at(c, op);

	for (unsigned i = 0; i < op->n_operands; i++)
		for (unsigned d = 0; d < tc_in(op, i)->type->rank; d++) {
			if (d >= first && d < first + n && dyn_size_of(tc_in(op, i), d))
				dyn_refuse(c, op, i, d, "what it does along it takes all of it");
			dyn_meet(&b, tc_out(op, 0), d, dyn_size_of(tc_in(op, i), d));
		}
}

/* No rule. */
static void refuse_dynamic(struct tc_ctx *c, struct tc_op *op)
{
	for (unsigned i = 0; i < op->n_operands; i++)
		if (dynamic_dims(tc_in(op, i)))
			dyn_refuse(c, op, i, (unsigned)__builtin_ctz(dynamic_dims(tc_in(op, i))),
				   "there is no rule for it");
	for (unsigned i = 0; i < op->n_results; i++)
		if (tc_out(op, i)->bounded)
			tc_fail(c, ERR_UNIMPLEMENTED, op, "dim %d of its result %u has a bound, "
				"and nothing says its size: give the dim a static size, and set "
				"another by set_dimension_size",
				__builtin_ctz(tc_out(op, i)->bounded), i);
}

/* Random numbers, as many as operand 2 says. */
static void draw(struct tc_ctx *c, struct tc_op *op)
{
	struct tc_build b = tc_build_at(c, op);
	struct tc_value *v = tc_out(op, 0);
	unsigned kind = elem_class(tc_in(op, 2)->type->elem);

	if (kind != ELEM_CLASS_SINT && kind != ELEM_CLASS_UINT)
		tc_fail(c, ERR_INVALID_ARGUMENT, op, "its shape is no list of integers");
	for (unsigned d = 0; d < v->type->rank; d++)
		if (v->bounded >> d & 1)
			dyn_set(c, v, d, dyn_held(&b, dyn_element(&b, tc_in(op, 2), d),
						  v->type->dim[d]));
}

/* Whether op stays. */
static bool apply(struct tc_ctx *c, struct tc_op *op)
{
	unsigned n;

	if (tc_has_trait(op, 'e') || op->op == TC_MAP) {
		dyn_elementwise(c, op);
		return true;
	}
	switch (op->op) {
	case TC_BROADCAST_IN_DIM: dyn_broadcast(c, op); return true;
	case TC_TRANSPOSE: dyn_transpose(c, op); return true;
	case TC_OPTIMIZATION_BARRIER:
	case TC_SHARDING_CONSTRAINT:
	case TC_COPY: pass_on(c, op); return true;
	case TC_REVERSE: return dyn_reverse(c, op);
	case TC_SLICE: return dyn_slice(c, op);
	case TC_PAD: return dyn_pad(c, op);
	case TC_CONCATENATE: return dyn_concatenate(c, op);
	case TC_BITCAST_CONVERT: return dyn_bitcast(c, op);
	case TC_RESHAPE:
		tc_replace_uses(tc_out(op, 0),
				dyn_reshaped(c, op, tc_in(op, 0), tc_out(op, 0), NULL));
		return false;
	case TC_REDUCE: return dyn_reduce(c, op);
	case TC_REDUCE_WINDOW: return dyn_reduce_window(c, op);
	case TC_DOT_GENERAL: return dyn_dot(c, op);
	case TC_CONVOLUTION: return dyn_convolution(c, op);
	case TC_BATCH_NORM_TRAINING:
	case TC_BATCH_NORM_INFERENCE:
	case TC_BATCH_NORM_GRAD: return dyn_batch_norm(c, op);
	case TC_SELECT_AND_SCATTER: return dyn_select_and_scatter(c, op);
	case TC_SORT: return dyn_sort(c, op);
	case TC_GATHER: return dyn_gather(c, op);
	case TC_SCATTER: return dyn_scatter(c, op);
	case TC_DYNAMIC_SLICE: return dyn_dynamic_slice(c, op);
	case TC_DYNAMIC_UPDATE_SLICE: return dyn_update(c, op);
	case TC_FFT:
		tc_attr_ints(op, "fft_length", &n);
		keep_others(c, op, tc_fft_first(op), n);
		return true;
	case TC_RNG: draw(c, op); return true;
	case TC_CHOLESKY:
	case TC_TRIANGULAR_SOLVE: keep_others(c, op, tc_in(op, 0)->type->rank - 2u, 2); return true;
	case TC_ALL_REDUCE:
		/* the sum of one */
		if (is_alone(c)) {
			pass_on(c, op);
			return true;
		}
		return dyn_meeting(c, op);
	case TC_REDUCE_SCATTER:
	case TC_ALL_GATHER:
	case TC_ALL_TO_ALL:
	case TC_COLLECTIVE_PERMUTE:
	case TC_COLLECTIVE_BROADCAST: return dyn_meeting(c, op);
	default: refuse_dynamic(c, op); return true;
	}
}

static bool is_touched(struct tc_op *op)
{
	bool is = false;

	for (unsigned i = 0; i < op->n_operands; i++)
		is |= dynamic_dims(tc_in(op, i)) != 0;
	/* of these the rules know what a bound of the result is of */
	for (unsigned i = 0; i < op->n_results && !op->n_operands; i++)
		is |= tc_out(op, i)->bounded != 0;
	return is || ((op->op == TC_CUSTOM_CALL || op->op == TC_RNG) && op->n_results &&
		      tc_out(op, 0)->bounded);
}

static void walk_op(struct pass *p, struct tc_op *op)
{
	switch (op->op) {
	case TC_RETURN: return;
	case TC_GET_DIMENSION_SIZE: get_size(p->c, op); return;
	case TC_SET_DIMENSION_SIZE: set_size(p, op); return;
	case TC_WHILE: walk_while(p, op); return;
	case TC_IF:
	case TC_CASE: walk_branches(p, op); return;
	default: break;
	}
	for (unsigned r = 0; r < op->n_regions; r++)
		if (op->regions[r].block)
			walk_block(p, op->regions[r].block);
	if (dyn_is_shaped(op) ? !dyn_shaped(p->c, op) : is_touched(op) && !apply(p->c, op))
		tc_erase(op);
}

static void walk_block(struct pass *p, struct tc_block *b)
{
	for (struct tc_op *op = b->first, *next; op; op = next) {
		next = op->next;
		walk_op(p, op);
	}
}

/* ---- main ---- */

static struct tc_arg_info *more_info(struct tc_ctx *c, const struct tc_arg_info *has, unsigned n,
				     unsigned n_more)
{
	struct tc_arg_info *info = get(c, n + n_more, sizeof(*info));

	for (unsigned i = 0; i < n + n_more; i++) {
		info[i] = has && i < n ? has[i] : (struct tc_arg_info){ .alias = -1 };
		info[i].bounded = 0;
	}
	return info;
}

/* Each replica has arrays of its own; partitions have parts of one. */
static void refuse_shared(struct tc_ctx *c, const struct tc_op *func, const char *what,
			  unsigned i)
{
	if (c->options->partitions > 1)
		tc_fail(c, ERR_UNIMPLEMENTED, func, "%s %u of main has a dim with a bound, in a "
			"program for several partitions: give it static dims, and set sizes within",
			what, i);
}

static void take_arguments(struct tc_ctx *c, struct tc_op *func, struct tc_block *main)
{
	struct tc_build b = { .c = c, .before = main->first, .where = func->where };
	unsigned n = main->n_args, n_more = 0;

	for (unsigned i = 0; i < n; i++)
		n_more += main->args[i]->bounded != 0;
	if (!n_more)
		return;
	func->arg_info = more_info(c, func->arg_info, n, n_more);
	for (unsigned i = 0; i < n; i++) {
		struct tc_value *v = main->args[i], *sizes;
		int64_t rank = v->type->rank;

		if (!v->bounded)
			continue;
		refuse_shared(c, func, "argument", i);
		func->arg_info[i].bounded = v->bounded;
		sizes = tc_new_arg(c, main, tc_tensor(c, ELEM_S32, 1, &rank));
		for (unsigned d = 0; d < v->type->rank; d++)
			if (v->bounded >> d & 1)
				dyn_set(c, v, d, dyn_element(&b, sizes, d));
	}
}

/* bounded: what main's results said when they were read. */
static void give_results(struct tc_ctx *c, struct tc_op *func, struct tc_block *main,
			 const uint32_t *bounded)
{
	struct tc_build b = tc_build_at(c, main->last);
	unsigned n = main->last->n_operands, n_more = 0, at = n;
	struct tc_value **out = get(c, 2 * (size_t)n, sizeof(*out));

	for (unsigned i = 0; i < n; i++)
		n_more += bounded[i] != 0;
	if (n_more)
		func->res_info = more_info(c, func->res_info, n, n_more);
	for (unsigned i = 0; i < n; i++) {
		struct tc_value *v = tc_in(main->last, i), *sizes[TC_MAX_RANK];
		uint32_t other = dynamic_dims(v) & ~bounded[i];

		if (other)
			tc_fail(c, ERR_UNIMPLEMENTED, func, "result %u of main has a dim %d of a "
				"size that is known only when it runs, and a type that does not "
				"say so: give the dim a bound there", i, __builtin_ctz(other));
		out[i] = v->type->rank ? dyn_zeroed(&b, v, ~(uint64_t)0, 0) : v;
		if (!bounded[i])
			continue;
		refuse_shared(c, func, "result", i);
		func->res_info[i].bounded = bounded[i];
		for (unsigned d = 0; d < v->type->rank; d++)
			sizes[d] = dyn_any_size(&b, v, d);
		out[at++] = dyn_joined(&b, v->type->rank, sizes);
	}
	if (n_more)
		tc_set_operands(c, main->last, at, out);
}

/* ---- the pass ---- */

static void look_at(struct pass *p, struct tc_op *op, struct tc_value *v)
{
	v->side = NULL;
	for (unsigned d = 0; d < v->type->rank; d++)
		if (v->bounded >> d & 1 && v->type->dim[d] > INT32_MAX)
			tc_fail(p->c, ERR_UNIMPLEMENTED, op, "a dim with a bound of %lld: at most "
				"2^31 - 1", (long long)v->type->dim[d]);
}

static void look(struct tc_op *op, void *arg)
{
	struct pass *p = arg;

	for (unsigned i = 0; i < op->n_results; i++)
		look_at(p, op, tc_out(op, i));
	for (unsigned r = 0; r < op->n_regions; r++)
		for (unsigned i = 0; op->regions[r].block && i < op->regions[r].block->n_args; i++)
			look_at(p, op, op->regions[r].block->args[i]);
	if (op->op == TC_SET_DIMENSION_SIZE && tc_in(op, 0)->type->dim[tc_attr_int(op,
	    "dimension", 0)] > INT32_MAX)
		tc_fail(p->c, ERR_UNIMPLEMENTED, op, "of a dim of more than 2^31 - 1");
	if (dyn_is_shaped(op) && dyn_make_plain(p->c, op)) {
		tc_erase(op);
		p->has_plain = true;
	}
}

static void ask(struct tc_op *op, void *arg)
{
	bool *is = arg;

	*is |= op->op == TC_SET_DIMENSION_SIZE || dyn_is_shaped(op);
	for (unsigned i = 0; i < op->n_results; i++)
		*is |= tc_out(op, i)->bounded != 0;
	for (unsigned r = 0; r < op->n_regions; r++)
		for (unsigned i = 0; op->regions[r].block && i < op->regions[r].block->n_args; i++)
			*is |= op->regions[r].block->args[i]->bounded != 0;
}

bool tc_is_dynamic(struct tc_ctx *c)
{
	bool is = false;

	tc_walk(c->module, ask, &is);
	return is;
}

static void forget(struct tc_op *op, void *arg)
{
	(void)arg;
	for (unsigned i = 0; i < op->n_results; i++)
		tc_out(op, i)->bounded = 0;
	for (unsigned r = 0; r < op->n_regions; r++)
		for (unsigned i = 0; op->regions[r].block && i < op->regions[r].block->n_args; i++)
			op->regions[r].block->args[i]->bounded = 0;
}

void tc_pass_dynamic(struct tc_ctx *c)
{
	struct tc_block *main = tc_main(c);
	struct tc_op *func = main->region->parent;
	struct pass p = { .c = c };
	uint32_t *bounded;

	if (!tc_is_dynamic(c))
		return;
	tc_walk(func, look, &p);
	if (p.has_plain)
		tc_ir_verify(c, NULL, true);
	bounded = get(c, main->last->n_operands, sizeof(*bounded));
	for (unsigned i = 0; i < main->last->n_operands; i++)
		bounded[i] = tc_in(main->last, i)->bounded;
	take_arguments(c, func, main);
	walk_block(&p, main);
	give_results(c, func, main, bounded);
	for (struct kept *k = p.sets; k; k = k->next) {
		tc_replace(k->op, tc_in(k->op, 0));
	}
	tc_walk(func, forget, NULL);
}
