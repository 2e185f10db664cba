/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Along which axes an op's factors are shared out.
 *
 * Each tensor's sharding says something of its factors; of what can be had together, that is
 * taken first which the most elements lie by already. A factor that an op can't be run in
 * parts of is whole, and so is one whose size the axes do not divide.
 */
#include <string.h>

#include "runtime/compiler/spmd/shard_internal.h"

#define LEAST_EXCHANGED (1 << 16)	/* bytes of a tensor: of less the meetings take the time */

/* The front of a list that divides `size`, and of which nothing is among `taken`. */
static struct spmd_axes front(const struct spmd_axes *a, int64_t size,
			      const struct spmd_axes *taken)
{
	struct spmd_axes to = { 0 };

	for (uint32_t i = 0; i < a->n; i++) {
		struct spmd_piece p = a->at[i];

		p.size = spmd_gcd((uint64_t)size, p.size);
		if (p.size < 2 || a->at[i].size % p.size || spmd_has(taken, p))
			break;
		spmd_push(&to, p);
		size /= p.size;
		if (p.size < a->at[i].size)
			break;
	}
	return to;
}

struct spmd_sharding *shard_plain(struct shard *s, const struct spmd_sharding *h,
				  const struct tc_type *t, const struct spmd_axes *manual)
{
	struct spmd_sharding *to = spmd_new(s->p->s, s->mesh, t->rank);

	to->manual = *manual;
	for (uint32_t d = 0; d < t->rank; d++) {
		to->dim[d].is_open = false;
		if (h && h->kind == SPMD_TILED)
			to->dim[d].axes = front(&h->dim[d].axes, t->dim[d], manual);
	}
	return to;
}

/* ---- what can be shared out ---- */

static bool has_int(const struct tc_op *op, const char *name, int64_t x)
{
	unsigned n;
	const int64_t *list = tc_attr_ints(op, name, &n);

	return tc_is_listed(list, n, x);
}

static bool is_in_dim(const struct spmd_rule *r, uint32_t t, uint32_t d, uint32_t f)
{
	for (uint32_t i = 0; i < r->tensor[t][d].n; i++)
		if (r->tensor[t][d].factor[i] == f)
			return true;
	return false;
}

static const struct tc_type *type_of(const struct shard *s, const struct tc_op *op, uint32_t t)
{
	const struct tc_value *v = t < op->n_operands ? tc_in(op, t) :
				   tc_out(op, t - op->n_operands);

	return s->of[v->id].type;
}

/* Of a gather's operand: whether a slice has one element of the dim, by an index. */
static bool is_reduced_dim(const struct tc_op *op, int64_t d)
{
	unsigned n;

	return tc_attr_ints(op, "slice_sizes", &n)[d] == 1 &&
	       !has_int(op, "operand_batching_dims", d);
}

/* Of a dim that has the factor: whether the op runs on a part of it as on the whole. */
static bool runs_on_part(const struct shard *s, const struct tc_op *op, uint32_t t, uint32_t d)
{
	unsigned n;

	switch (op->op) {
	case TC_PAD:
		return !tc_attr_ints(op, "edge_padding_low", &n)[d] &&
		       !tc_attr_ints(op, "edge_padding_high", &n)[d] &&
		       !tc_attr_ints(op, "interior_padding", &n)[d];
	case TC_SLICE:
		return type_of(s, op, 0)->dim[d] == type_of(s, op, 1)->dim[d];
	case TC_DYNAMIC_UPDATE_SLICE:
		return type_of(s, op, 0)->dim[d] == type_of(s, op, 1)->dim[d];
	case TC_SCATTER:
		return (t >= op->n_results && t <= 2 * op->n_results) ||
		       !has_int(op, "inserted_window_dims", d) ||
		       (op->n_results == 1 && has_int(op, "scatter_dims_to_operand_dims", d));
	case TC_GATHER:
		return t || !is_reduced_dim(op, d) || has_int(op, "start_index_map", d);
	case TC_CONVOLUTION:
		return !has_int(op, t == 0 ? "input_spatial_dimensions" :
				t == 1 ? "kernel_spatial_dimensions" :
				"output_spatial_dimensions", d);
	default:
		return true;
	}
}

/* Whether a dim's factors make it up. */
static bool is_made_up(const struct spmd_rule *r, uint32_t t, uint32_t d, int64_t size)
{
	int64_t n = 1;

	for (uint32_t i = 0; i < r->tensor[t][d].n; i++)
		n *= r->factor[r->tensor[t][d].factor[i]].size;
	return n == size;
}

/* What only operands have would be lost, and only what is spread over dims comes from nowhere. */
static bool is_carried(const struct tc_op *op, const struct spmd_rule *r, uint32_t f)
{
	bool in = false, out = false;

	for (uint32_t t = 0; t < r->n_tensors; t++)
		for (uint32_t d = 0; d < r->rank[t]; d++)
			*(t < r->n_operands ? &in : &out) |= is_in_dim(r, t, d, f);
	if (r->factor[f].kind == SPMD_REDUCTION)
		return in && !out;
	return out && (in || op->op == TC_BROADCAST_IN_DIM);
}

bool shard_may_share(const struct shard *s, const struct tc_op *op, const struct spmd_rule *r,
		     uint32_t f)
{
	uint8_t kind = r->factor[f].kind;

	if (op->op == TC_RNG_BIT_GENERATOR || r->factor[f].size < 2 ||
	    kind == SPMD_REPLICATE || kind == SPMD_PERMUTATION ||
	    (kind == SPMD_REDUCTION && shard_sum_of(op) == TC_OP_COUNT && !shard_may_fold(op)) ||
	    !is_carried(op, r, f))
		return false;
	for (uint32_t t = 0; t < r->n_tensors; t++)
		for (uint32_t d = 0; d < r->rank[t]; d++)
			if (is_in_dim(r, t, d, f) &&
			    (!is_made_up(r, t, d, type_of(s, op, t)->dim[d]) ||
			     !runs_on_part(s, op, t, d)))
				return false;
	return true;
}

/* ---- choosing ---- */

struct choice {
	struct shard *s;
	const struct node *n;
	struct desk desk;
	bool *may;		/* by factor: be shared out */
	struct spmd_axes *factor;	/* chosen */
	const struct spmd_axes *manual;
};

static const struct cell *cell_at(const struct choice *k, uint32_t t, uint32_t f)
{
	return &k->desk.cell[(size_t)t * k->n->rule->n_factors + f];
}

static bool is_front(const struct spmd_axes *a, const struct spmd_axes *of)
{
	struct spmd_axes same = *of;

	if (a->n > of->n)
		return false;
	same.n = a->n;
	if (a->n && a->at[a->n - 1].axis == of->at[a->n - 1].axis &&
	    a->at[a->n - 1].pre == of->at[a->n - 1].pre &&
	    of->at[a->n - 1].size % a->at[a->n - 1].size == 0)
		same.at[a->n - 1].size = a->at[a->n - 1].size;
	return spmd_same_axes(a, &same);
}

/* What a factor may have of the tensor's wish for it. */
static struct spmd_axes offer(const struct choice *k, uint32_t t, uint32_t f)
{
	struct spmd_axes taken = *k->manual;

	for (uint32_t g = 0; g < k->n->rule->n_factors; g++)
		for (uint32_t i = 0; g != f && i < k->factor[g].n; i++)
			if (taken.n < SPMD_MAX_PIECES)
				taken.at[taken.n++] = k->factor[g].at[i];
	return front(&cell_at(k, t, f)->axes, k->n->rule->factor[f].size, &taken);
}

/* How many elements lie so already. */
static int64_t weight_of(const struct choice *k, uint32_t f, const struct spmd_axes *a)
{
	int64_t sum = 0;

	for (uint32_t t = 0; t < k->n->rule->n_tensors; t++)
		if (k->n->tensor[t] && cell_at(k, t, f)->is_there &&
		    is_front(a, &cell_at(k, t, f)->axes))
			sum += k->n->count[t];
	return sum;
}

struct best { struct spmd_axes axes; uint32_t f; int64_t weight; bool is_pass; };

static bool is_better(const struct best *a, const struct best *b)
{
	if (a->weight != b->weight)
		return a->weight > b->weight;
	if (a->is_pass != b->is_pass)
		return a->is_pass;
	return spmd_size(&a->axes) > spmd_size(&b->axes);
}

/* Adds the best of what is left to have; false: nothing is. */
static bool choose_one(struct choice *k)
{
	const struct spmd_rule *r = k->n->rule;
	struct best best = { .weight = -1 };

	for (uint32_t f = 0; f < r->n_factors; f++)
		for (uint32_t t = 0; k->may[f] && t < r->n_tensors; t++) {
			struct best b = { .f = f, .is_pass = r->factor[f].kind == SPMD_PASS };

			if (!k->n->tensor[t] || !cell_at(k, t, f)->is_there)
				continue;
			b.axes = offer(k, t, f);
			if (spmd_size(&b.axes) <= spmd_size(&k->factor[f]) ||
			    !is_front(&k->factor[f], &b.axes))
				continue;
			b.weight = weight_of(k, f, &b.axes);
			if (is_better(&b, &best))
				best = b;
		}
	if (best.weight < 0)
		return false;
	k->factor[best.f] = best.axes;
	return true;
}

/* In a dim of several factors one has axes only if those before it are used up. */
static bool drop_strided(struct choice *k)
{
	const struct spmd_rule *r = k->n->rule;
	bool any = false;

	for (uint32_t t = 0; t < r->n_tensors; t++)
		for (uint32_t d = 0; d < r->rank[t]; d++) {
			bool is_full = true;

			for (uint32_t i = 0; i < r->tensor[t][d].n; i++) {
				uint32_t f = r->tensor[t][d].factor[i];

				if (!is_full && k->factor[f].n) {
					k->factor[f].n = 0;
					k->may[f] = false;
					any = true;
				}
				is_full &= (int64_t)spmd_size(&k->factor[f]) ==
					   r->factor[f].size;
			}
		}
	return any;
}

static void *room(struct shard *s, size_t n, size_t size)
{
	return arena_array(&s->c->arena, n, size);
}

/* They are large, and one op's are of no use to the next. */
static struct cell *cells_for(struct shard *s, size_t n)
{
	if (n > s->n_cells) {
		s->cells = room(s, n, sizeof(*s->cells));
		s->n_cells = n;
	}
	return s->cells;
}

/* ---- a plan ---- */

static void plan_tensor(struct shard *s, const struct tc_op *op, struct shard_plan *plan,
			uint32_t t, const struct spmd_axes *manual)
{
	const struct tc_type *type = type_of(s, op, t);
	struct spmd_sharding *h;

	if (type->is_tuple || type->elem == ELEM_TOKEN)
		return;
	h = plan->tensor[t] = shard_plain(s, NULL, type, manual);
	for (uint32_t d = 0; plan->rule && d < type->rank; d++) {
		const struct spmd_split *split = &plan->rule->tensor[t][d];

		for (uint32_t i = 0; i < split->n; i++)
			for (uint32_t k = 0; k < plan->factor[split->factor[i]].n; k++)
				spmd_push(&h->dim[d].axes,
					  plan->factor[split->factor[i]].at[k]);
	}
}

static void plan_sum(const struct tc_op *op, struct shard_plan *plan)
{
	enum tc_opcode by = shard_sum_of(op);
	struct spmd_axes *axes = by == TC_OP_COUNT ? &plan->fold : &plan->sum.axes;

	for (uint32_t f = 0; f < plan->rule->n_factors; f++)
		for (uint32_t i = 0; plan->rule->factor[f].kind == SPMD_REDUCTION &&
		     i < plan->factor[f].n; i++)
			spmd_push(axes, plan->factor[f].at[i]);
	if (plan->sum.axes.n)
		plan->sum.op = by;
}

static void start_node(struct shard *s, const struct tc_op *op, struct node *n,
		       struct spmd_sharding *const *wish)
{
	uint32_t all = n->rule->n_tensors;

	n->tensor = room(s, all, sizeof(*n->tensor));
	n->count = room(s, all, sizeof(*n->count));
	for (uint32_t t = 0; t < all; t++) {
		/* Only read. */
		n->tensor[t] = t >= op->n_operands ? wish[t - op->n_operands] :
			       (struct spmd_sharding *)(uintptr_t)s->of[tc_in(op, t)->id].h;
		n->count[t] = type_of(s, op, t)->count;
	}
}

/* Whether all of a sort's results are to be cut along dim d as its operand is, and nobody takes
 * a few of their elements, who would need them whole. */
static bool is_sorted_as_it_lies(const struct choice *k, const struct tc_op *op, unsigned d,
				 const struct spmd_axes *a)
{
	for (unsigned i = 0; i < op->n_results; i++) {
		const struct spmd_sharding *wish = k->n->tensor[op->n_operands + i];

		if (!wish || !spmd_same_axes(a, &wish->dim[d].axes))
			return false;
		for (const struct tc_use *u = tc_out(op, i)->uses; u; u = u->next)
			if (u->user->op == TC_SLICE || u->user->op == TC_DYNAMIC_SLICE ||
			    u->user->op == TC_GATHER)
				return false;
	}
	return a->n;
}

/* Much that is sorted along a dim that is cut goes to another dim's parts, where that is even, and
 * back; little is collected, in one meeting. */
static void choose_other_dim(struct choice *k, const struct tc_op *op, struct shard_plan *plan)
{
	const struct tc_type *t = plan->type[0];
	unsigned d = (unsigned)tc_attr_int(op, "dimension", 0);
	const struct spmd_axes *a = &k->n->tensor[0]->dim[d].axes;

	if (t->bytes < LEAST_EXCHANGED || !is_sorted_as_it_lies(k, op, d, a) ||
	    !shard_are_free(plan, a))
		return;
	for (unsigned e = 0; e < t->rank; e++) {
		uint32_t f = plan->rule->tensor[0][e].factor[0];
		uint32_t parts = spmd_size(&k->factor[f]) * spmd_size(a);

		if (e == d || !k->may[f] || t->dim[e] % parts)
			continue;
		for (uint32_t i = 0; i < a->n; i++)
			spmd_push(&k->factor[f], a->at[i]);
		return;
	}
}

static void choose(struct shard *s, const struct tc_op *op, const struct spmd_axes *manual,
		   struct spmd_sharding *const *wish, struct shard_plan *plan)
{
	struct node n = { .rule = plan->rule };
	struct choice k = { .s = s, .n = &n, .manual = manual };
	uint32_t all = n.rule->n_factors;

	start_node(s, op, &n, wish);
	k.desk.cell = cells_for(s, (size_t)n.rule->n_tensors * all);
	k.may = room(s, all, sizeof(*k.may));
	k.factor = plan->factor = room(s, all, sizeof(*k.factor));
	for (uint32_t f = 0; f < all; f++)
		k.may[f] = shard_may_share(s, op, n.rule, f);
	spmd_project(&n, &k.desk);
	do {
		while (choose_one(&k))
			;
	} while (drop_strided(&k));
	if (op->op == TC_SORT)
		choose_other_dim(&k, op, plan);
	plan_sum(op, plan);
}

/* A source of elements is made where it is wanted; whole, where parts of a sum are. */
static bool is_made_in_place(const struct tc_op *op)
{
	return op->op == TC_IOTA || (op->op == TC_CONSTANT && tc_attr(op, "value")->is_splat);
}

/* A gather in a loop that has its operand whole, along the dims by which it takes elements, from
 * before the loop. One element by one the loop may take them all. */
static void gather_ahead(struct shard *s, const struct tc_op *op, struct shard_plan *plan)
{
	const struct tc_type *part = shard_local_type(s, plan->type[2], plan->tensor[2]);
	struct spmd_sharding *h = spmd_copy(s->p->s, plan->tensor[0]);
	unsigned n;

	tc_attr_ints(op, "start_index_map", &n);
	for (uint32_t d = 0; d < h->rank; d++) {
		const struct spmd_split *split = &plan->rule->tensor[0][d];

		for (uint32_t i = 0; i < split->n; i++)
			if (plan->rule->factor[split->factor[i]].kind == SPMD_REDUCTION)
				h->dim[d].axes.n = 0;
	}
	if (!shard_is_ahead(s, op, h, part, plan->type[1]->count == n))
		return;
	plan->tensor[0] = h;
	plan->sum.axes.n = 0;
	for (uint32_t f = 0; f < plan->rule->n_factors; f++)
		if (plan->rule->factor[f].kind == SPMD_REDUCTION)
			plan->factor[f].n = 0;
}

/* Ops that take rows of neighbours, or pieces, of a dim that is cut. */
static bool is_of_rows(const struct tc_op *op)
{
	switch (op->op) {
	case TC_SLICE: case TC_PAD: case TC_REVERSE: case TC_CONCATENATE: case TC_REDUCE_WINDOW:
	case TC_CONVOLUTION: case TC_SELECT_AND_SCATTER:
		return true;
	default:
		return false;
	}
}

/* Whether anyone who uses op's result may do so with a part of dim d, as far as is known. */
static bool is_used_in_parts(const struct shard *s, const struct tc_op *op, unsigned d)
{
	for (const struct tc_use *u = tc_out(op, 0)->uses; u; u = u->next) {
		uint32_t id = u->user->id;
		const struct spmd_rule *r = id < s->n_values ? s->rule[id] : NULL;
		const struct spmd_split *split;

		if (!r || is_of_rows(u->user))
			return true;
		split = &r->tensor[u - u->user->operands][d];
		if (split->n && shard_may_share(s, u->user, r, split->factor[0]))
			return true;
	}
	return false;
}

struct shard_plan shard_choose(struct shard *s, const struct tc_op *op,
			       const struct spmd_axes *manual,
			       struct spmd_sharding *const *wish)
{
	struct shard_plan plan = { 0 };
	uint32_t all = op->n_operands + op->n_results;

	plan.tensor = room(s, all, sizeof(*plan.tensor));
	plan.type = room(s, all, sizeof(*plan.type));
	for (uint32_t t = 0; t < all; t++)
		plan.type[t] = type_of(s, op, t);
	if (is_made_in_place(op)) {
		plan.tensor[0] = spmd_copy(s->p->s, wish[0]);
		plan.tensor[0]->unreduced.n = 0;
		return plan;
	}
	if (!s->is_whole)
		plan.rule = s->rule[op->id];
	if (plan.rule)
		choose(s, op, manual, wish, &plan);
	for (uint32_t t = 0; t < all; t++)
		plan_tensor(s, op, &plan, t, manual);
	if (op->op == TC_GATHER && plan.sum.axes.n)
		gather_ahead(s, op, &plan);
	shard_plan_windows(s, op, &plan, wish);
	if (op->op == TC_CONCATENATE &&
	    is_used_in_parts(s, op, (unsigned)tc_attr_int(op, "dimension", 0)))
		shard_plan_join(s, op, &plan, wish);
	shard_plan_dynamic(s, op, &plan, wish);
	return plan;
}
