/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Propagation over a program.
 *
 * Data that flows between values without an op (into and out of loops, branches, barriers and
 * manual computations) is a node of its own, with the sources as operands and what they flow
 * into as result; all names of that have one sharding.
 */
#include <stdlib.h>
#include <string.h>

#include "runtime/compiler/spmd/propagate.h"

/* ---- before it ---- */

static bool is_cheap(const struct tc_op *op)
{
	return op->op == TC_CONSTANT || op->op == TC_IOTA ||
	       (op->op == TC_BROADCAST_IN_DIM && !tc_in(op, 0)->type->rank);
}

/* Each user but one gets a copy. */
static void copy_for_users(struct tc_ctx *c, struct tc_op *op)
{
	struct tc_use *next;

	for (struct tc_use *u = tc_out(op, 0)->uses; u && u->next; u = next) {
		struct tc_op *copy = tc_clone(c, op, tc_map_new(c));

		next = u->next;
		tc_insert_before(op, copy);
		tc_set_operand(u->user, (unsigned)(u - u->user->operands), tc_out(copy, 0));
	}
}

/* Dims that a call's settings name are open, `unspecified_dims=[0,1]`. */
static void open_dims(struct spmd_sharding *h, const char *settings)
{
	const char *p = settings ? strstr(settings, "unspecified_dims=[") : NULL;

	if (!p)
		return;
	for (p = strchr(p, '['); *p == '[' || *p == ','; p += strspn(p, "0123456789")) {
		unsigned long d = strtoul(++p, NULL, 10);

		if (d < h->rank)
			h->dim[d].is_open = true;
	}
}

static void make_constraint(struct spmd *s, struct tc_op *op)
{
	struct tc_value *in = tc_in(op, 0);
	const struct tc_type *type = tc_out(op, 0)->type;
	const char *text = tc_attr_str(op, "sharding");
	struct spmd_sharding *h = spmd_read(s, op, text, type->rank);
	struct tc_op *made = tc_new(s->c, TC_SHARDING_CONSTRAINT, 1, &in, 1, &type, 0);

	open_dims(h, tc_attr_str(op, "backend_config"));
	made->where = op->where;
	tc_set_str(s->c, made, "sharding", spmd_text(s, h));
	tc_insert_before(op, made);
	tc_replace(op, tc_out(made, 0));
}

static bool is_gspmd(const struct tc_op *op)
{
	const char *target = op->op == TC_CUSTOM_CALL ? tc_attr_str(op, "call_target_name") :
			     NULL;

	return target && !strcmp(target, "Sharding") && tc_attr_str(op, "sharding") &&
	       op->n_operands == 1 && op->n_results == 1 &&
	       tc_in(op, 0)->type == tc_out(op, 0)->type;
}

static void prepare_block(struct spmd *s, struct tc_block *b)
{
	struct tc_op *before;

	/* From the end: copies of what spreads a number make users of the number. */
	for (struct tc_op *op = b->last; op; op = before) {
		for (unsigned k = 0; k < op->n_regions; k++)
			if (op->regions[k].block)
				prepare_block(s, op->regions[k].block);
		before = op->prev;
		if (is_cheap(op))
			copy_for_users(s->c, op);
		else if (is_gspmd(op))
			make_constraint(s, op);
	}
}

/* From a verified program after `inline`. Then a constant, an iota or a number spread over dims has
 * one user, so that what one does with it says nothing to another. */
void spmd_prepare(struct spmd *s)
{
	prepare_block(s, tc_main(s->c));
}

/* ---- propagation ---- */

struct group {
	int64_t id;
	struct spmd_sharding *first;	/* member */
	struct group *next;
};

/* A node that has the sharding among its tensors. */
struct user { const struct spmd_sharding *h; uint32_t node; };

struct run {
	struct spmd *s;
	struct spmd_shardings *p;
	struct node *node;
	uint32_t n_nodes, room;
	uint32_t most_factors, most_tensors;
	size_t most_cells;
	struct group *groups;
	struct user *user;		/* by sharding, then by node */
	size_t n_users;
};

static void add_block(struct run *r, const struct tc_block *b);

static struct spmd_sharding *of(const struct run *r, const struct tc_value *v)
{
	return r->p->of[v->id];
}

/* ---- shardings to begin with ---- */

/* By places: as if both meshes had the devices in one order. */
static bool by_place(struct run *r, const struct spmd_sharding *h, struct spmd_sharding *to)
{
	struct arena *a = &r->s->c->arena;
	struct spmd_mesh *from = arena_copy(a, h->mesh, sizeof(*from));
	struct spmd_mesh *mesh = arena_copy(a, r->p->mesh, sizeof(*mesh));
	struct spmd_sharding said = *h;

	from->ids = mesh->ids = NULL;
	said.mesh = from;
	if (!spmd_to_mesh(r->s, &said, mesh, to))
		return false;
	to->mesh = r->p->mesh;
	r->p->has_orders = true;
	return true;
}

/* Over the program's mesh, whichever the text names. NULL: in an order that is no part of that. */
static struct spmd_sharding *find_on_mesh(struct run *r, const struct tc_op *op,
					  const char *text, uint32_t rank)
{
	struct spmd_sharding *h = spmd_read(r->s, op, text, rank), *to;

	if (h->kind != SPMD_TILED) {
		to = spmd_new(r->s, r->p->mesh, rank);
		to->kind = h->kind;
		to->device = h->device;
		return to;
	}
	to = spmd_new(r->s, r->p->mesh, rank);
	/* An exported program of one device says nothing to several. */
	if (h->mesh->devices == 1) {
		for (uint32_t d = 0; d < rank; d++)
			to->dim[d].is_open = h->dim[d].is_open;
		return to;
	}
	return spmd_to_mesh(r->s, h, r->p->mesh, to) || by_place(r, h, to) ? to : NULL;
}

/* The same, but for what has to be as it says. */
static struct spmd_sharding *read_on_mesh(struct run *r, const struct tc_op *op,
					  const char *text, uint32_t rank)
{
	struct spmd_sharding *h = find_on_mesh(r, op, text, rank);

	if (!h)
		tc_fail(r->s->c, ERR_UNIMPLEMENTED, op, "the sharding %.100s is over another "
			"mesh than the program's other ones, in an order that is no part of "
			"theirs", text);
	return h;
}

static void start_value(struct run *r, const struct tc_value *v)
{
	r->p->of[v->id] = v->type->is_tuple || v->type->elem == ELEM_TOKEN ? NULL :
			  spmd_new(r->s, r->p->mesh, v->type->rank);
}

/* What a loop gives on as it was is one value, outside and inside. */
static bool is_given_on(const struct tc_op *loop, unsigned i)
{
	const struct tc_block *body = loop->regions[1].block;

	return tc_in(body->last, i) == body->args[i];
}

/* All names of a value that goes around in a loop have one sharding. */
static void start_while(struct run *r, const struct tc_op *op)
{
	for (unsigned i = 0; i < op->n_results; i++) {
		if (is_given_on(op, i))
			r->p->of[tc_out(op, i)->id] = of(r, tc_in(op, i));
		for (unsigned k = 0; k < op->n_regions; k++)
			r->p->of[op->regions[k].block->args[i]->id] = of(r, tc_out(op, i));
	}
}

static void start_args(struct run *r, const struct tc_block *b)
{
	for (unsigned i = 0; b && i < b->n_args; i++)
		start_value(r, b->args[i]);
}

static void start_block(struct run *r, const struct tc_block *b)
{
	for (const struct tc_op *op = b->first; op; op = op->next) {
		for (unsigned i = 0; i < op->n_results; i++)
			start_value(r, tc_out(op, i));
		for (unsigned k = 0; k < op->n_regions; k++)
			start_args(r, op->regions[k].block);
		if (op->op == TC_WHILE)
			start_while(r, op);
		for (unsigned k = 0; k < op->n_regions; k++)
			if (op->regions[k].block)
				start_block(r, op->regions[k].block);
	}
}

/* What is wanted of a value, all dims said, it has from the start, if an op makes it, nothing
 * else is said of it and nobody else, as far as `user` can see, wants it otherwise. */
static void start_wanted(struct run *r, const struct tc_value *v, const struct spmd_sharding *h,
			 const struct tc_op *user)
{
	struct spmd_sharding *source = of(r, v);

	if (!v->def || v->def->n_regions || h->kind != SPMD_TILED)
		return;
	for (uint32_t d = 0; d < h->rank; d++)
		if (h->dim[d].is_open || !source->dim[d].is_open || source->dim[d].axes.n)
			return;
	for (const struct tc_use *u = v->uses; u; u = u->next)
		if (u->user->op == TC_SHARDING_CONSTRAINT && u->user != user)
			return;
	for (uint32_t d = 0; d < h->rank; d++)
		source->dim[d] = h->dim[d];
	source->unreduced = h->unreduced;
}

/* A remark that can't be followed says nothing: what the program gives is the same. */
static void start_constraint(struct run *r, const struct tc_op *op)
{
	struct spmd_sharding *h = find_on_mesh(r, op, tc_attr_str(op, "sharding"),
					       tc_in(op, 0)->type->rank);

	if (!h)
		return;
	*of(r, tc_out(op, 0)) = *h;
	start_wanted(r, tc_in(op, 0), h, op);
}

/* ---- manual computations ---- */

/* Of a sharding outside the one inside: without the manual axes, which no dim may take. */
static struct spmd_sharding *inside(struct run *r, const struct spmd_sharding *h,
				    const struct spmd_axes *manual)
{
	struct spmd_sharding *to = spmd_copy(r->s, h);

	for (uint32_t d = 0; d < h->rank; d++) {
		to->dim[d].axes.n = 0;
		for (uint32_t i = 0; i < h->dim[d].axes.n; i++)
			if (!spmd_has(manual, h->dim[d].axes.at[i]))
				spmd_push(&to->dim[d].axes, h->dim[d].axes.at[i]);
	}
	for (uint32_t i = 0; i < manual->n; i++)
		if (!spmd_has(&to->manual, manual->at[i]))
			spmd_push(&to->manual, manual->at[i]);
	return to;
}

/* Whether anything that a sharding says, but for its dim d, has some of the piece. */
static bool is_elsewhere(const struct spmd_sharding *h, uint32_t d, struct spmd_piece p)
{
	bool is = spmd_has(&h->replicated, p) || spmd_has(&h->unreduced, p) ||
		  spmd_has(&h->manual, p);

	for (uint32_t e = 0; e < h->rank && !is; e++)
		is = e != d && spmd_has(&h->dim[e].axes, p);
	return is;
}

/* Makes dim d `first` and behind that of `more` what it can have, if that is more than it has. */
static bool give_side(struct spmd_sharding *to, uint32_t d, struct spmd_axes first,
		      const struct spmd_axes *more)
{
	for (uint32_t i = 0; i < more->n && !is_elsewhere(to, d, more->at[i]); i++)
		spmd_push(&first, more->at[i]);
	if (spmd_size(&first) <= spmd_size(&to->dim[d].axes))
		return false;
	to->dim[d].axes = first;
	return true;
}

/* Lets the side that has more axes give them to the other: outside they stand after the manual
 * ones. Since the last round both may have got the same axis, in different dims: each keeps it
 * where it is. */
static bool sync_side(const struct node *n)
{
	const struct spmd_axes none = { 0 };
	struct spmd_sharding *outer = n->tensor[0], *inner = n->tensor[1];
	bool is_other = false;

	for (uint32_t d = 0; d < outer->rank; d++) {
		const struct spmd_axes *out = &outer->dim[d].axes;
		const struct spmd_axes *in = &inner->dim[d].axes;
		struct spmd_axes manual = { 0 }, rest = { 0 };

		for (uint32_t i = 0; i < out->n; i++)
			spmd_push(spmd_has(&n->manual, out->at[i]) ? &manual : &rest,
				  out->at[i]);
		is_other |= spmd_size(&rest) > spmd_size(in) ?
			    give_side(inner, d, none, &rest) :
			    give_side(outer, d, manual, in);
	}
	return is_other;
}

/* ---- nodes ---- */

static void keep_node(struct run *r, const struct node *n)
{
	uint32_t room = r->room ? 2 * r->room : 256;
	size_t cells = (size_t)n->rule->n_tensors * n->rule->n_factors;
	struct node *grown;

	if (r->n_nodes == r->room) {
		grown = arena_array(&r->s->c->arena, room, sizeof(*grown));
		if (r->n_nodes)
			memcpy(grown, r->node, r->n_nodes * sizeof(*grown));
		r->node = grown;
		r->room = room;
	}
	r->node[r->n_nodes++] = *n;
	if (n->rule->n_factors > r->most_factors)
		r->most_factors = n->rule->n_factors;
	if (n->rule->n_tensors > r->most_tensors)
		r->most_tensors = n->rule->n_tensors;
	if (cells > r->most_cells)
		r->most_cells = cells;
}

/* What is said of a value outside a body and inside it. */
static void link_sides(struct run *r, struct spmd_sharding *outer, struct spmd_sharding *inner,
		       const struct spmd_axes *manual)
{
	static const struct spmd_rule rule = { .n_tensors = 2 };
	struct spmd_sharding *sides[2] = { outer, inner };
	struct node n = { .rule = &rule, .is_side = true, .manual = *manual };

	n.tensor = arena_copy(&r->s->c->arena, sides, sizeof(sides));
	keep_node(r, &n);
}

static bool has_other_uses(const struct tc_value *v)
{
	return v->uses && v->uses->next;
}

static void add_op(struct run *r, const struct tc_op *op)
{
	struct node n = { .is_elementwise = tc_has_trait(op, 'e') };
	struct tc_ctx *c = r->s->c;

	n.rule = spmd_rule(c, op, &n.when);
	if (!n.rule)
		return;
	n.tensor = arena_array(&c->arena, n.rule->n_tensors, sizeof(*n.tensor));
	n.count = arena_array(&c->arena, n.rule->n_tensors, sizeof(*n.count));
	for (uint32_t t = 0; t < n.rule->n_tensors; t++) {
		const struct tc_value *v = t < op->n_operands ? tc_in(op, t) :
					   tc_out(op, t - op->n_operands);

		n.tensor[t] = of(r, v);
		n.count[t] = v->type->count;
		n.has_shared_operand |= t < op->n_operands && has_other_uses(v);
	}
	keep_node(r, &n);
}

/* Data flows from n values into one sharding. */
static void add_flow(struct run *r, struct spmd_sharding *to, const struct tc_type *type,
		     uint32_t n_from, struct spmd_sharding *const *from)
{
	struct node n = { .when = SPMD_ALL };
	struct arena *a = &r->s->c->arena;
	struct spmd_rule *rule;

	if (!to)
		return;
	rule = arena_alloc(a, sizeof(*rule));
	rule->n_factors = rule->room = type->rank;
	rule->factor = arena_array(a, type->rank, sizeof(*rule->factor));
	rule->n_operands = n_from;
	rule->n_tensors = n_from + 1;
	rule->rank = arena_array(a, rule->n_tensors, 1);
	rule->tensor = arena_array(a, rule->n_tensors, sizeof(*rule->tensor));
	n.tensor = arena_array(a, rule->n_tensors, sizeof(*n.tensor));
	n.count = arena_array(a, rule->n_tensors, sizeof(*n.count));
	for (uint32_t t = 0; t < rule->n_tensors; t++) {
		rule->rank[t] = type->rank;
		rule->tensor[t] = arena_array(a, type->rank, sizeof(**rule->tensor));
		n.tensor[t] = t < n_from ? from[t] : to;
		n.count[t] = type->count;
		for (uint32_t d = 0; d < type->rank; d++) {
			rule->tensor[t][d] = (struct spmd_split){ 1, { (uint16_t)d } };
			rule->factor[d].size = type->dim[d];
		}
	}
	n.rule = rule;
	keep_node(r, &n);
}

static struct spmd_sharding *returned(const struct run *r, const struct tc_op *op, unsigned k,
				      unsigned i)
{
	return of(r, tc_in(op->regions[k].block->last, i));
}

static void add_regions(struct run *r, const struct tc_op *op)
{
	for (unsigned k = 0; k < op->n_regions; k++)
		add_block(r, op->regions[k].block);
}

static void flow_while(struct run *r, const struct tc_op *op)
{
	add_regions(r, op);
	for (unsigned i = 0; i < op->n_results; i++) {
		struct spmd_sharding *from[2] = { of(r, tc_in(op, i)), returned(r, op, 1, i) };

		if (!is_given_on(op, i))
			add_flow(r, of(r, tc_out(op, i)), tc_out(op, i)->type, 2, from);
	}
}

static void flow_case(struct run *r, const struct tc_op *op)
{
	struct spmd_sharding **from = arena_array(&r->s->c->arena, op->n_regions,
						  sizeof(*from));

	add_regions(r, op);
	for (unsigned i = 0; i < op->n_results; i++) {
		for (unsigned k = 0; k < op->n_regions; k++)
			from[k] = returned(r, op, k, i);
		add_flow(r, of(r, tc_out(op, i)), tc_out(op, i)->type, op->n_regions, from);
	}
}

static void flow_barrier(struct run *r, const struct tc_op *op)
{
	for (unsigned i = 0; i < op->n_results; i++) {
		struct spmd_sharding *from = of(r, tc_in(op, i));

		add_flow(r, of(r, tc_out(op, i)), tc_out(op, i)->type, 1, &from);
	}
}

/* Into the body: from the operand to what in_shardings say, on the other side of which is the
 * body's argument. Out of it in the same way. */
static void flow_manual(struct run *r, const struct tc_op *op)
{
	const struct tc_attr *in = tc_attr(op, "in_shardings");
	const struct tc_attr *out = tc_attr(op, "out_shardings");
	const struct tc_block *b = op->regions[0].block;
	struct spmd_axes manual = spmd_read_names(r->s, op, tc_attr_str(op, "manual_axes"),
						  r->p->mesh);

	for (unsigned i = 0; i < op->n_operands; i++) {
		struct spmd_sharding *from = of(r, tc_in(op, i)), *to;

		if (!from)
			continue;
		to = read_on_mesh(r, op, in->attrs[i].text, from->rank);
		*of(r, b->args[i]) = *inside(r, to, &manual);
		link_sides(r, to, of(r, b->args[i]), &manual);
		add_flow(r, to, tc_in(op, i)->type, 1, &from);
	}
	add_block(r, b);
	for (unsigned i = 0; i < op->n_results; i++) {
		struct spmd_sharding *from = returned(r, op, 0, i), *outer, *to;

		if (!from)
			continue;
		outer = of(r, tc_out(op, i));
		*outer = *read_on_mesh(r, op, out->attrs[i].text, from->rank);
		to = inside(r, outer, &manual);
		link_sides(r, outer, to, &manual);
		add_flow(r, to, tc_in(b->last, i)->type, 1, &from);
	}
}

/* All members of a group are alike. */
static void flow_group(struct run *r, const struct tc_op *op)
{
	struct group *g = r->groups;
	struct spmd_sharding *from = of(r, tc_in(op, 0));
	int64_t id = tc_attr_int(op, "group_id", 0);

	while (g && g->id != id)
		g = g->next;
	if (g && from && g->first->rank == from->rank) {
		add_flow(r, g->first, tc_in(op, 0)->type, 1, &from);
	} else if (!g && from) {
		g = arena_alloc(&r->s->c->arena, sizeof(*g));
		*g = (struct group){ id, from, r->groups };
		r->groups = g;
	}
}

static void add_block(struct run *r, const struct tc_block *b)
{
	for (const struct tc_op *op = b->first; op; op = op->next) {
		switch (op->op) {
		case TC_WHILE: flow_while(r, op); break;
		case TC_CASE:
		case TC_IF: flow_case(r, op); break;
		case TC_OPTIMIZATION_BARRIER: flow_barrier(r, op); break;
		case TC_MANUAL_COMPUTATION: flow_manual(r, op); break;
		case TC_SHARDING_GROUP: flow_group(r, op); break;
		default: add_op(r, op); break;
		}
	}
}

/* ---- the rounds ---- */

/* How far a round goes: later ones let more through. */
enum round { PLAIN_ALONE, PLAIN, PASSING, ALL_FACTORS, EVERYTHING, N_ROUNDS };

static uint8_t ways_of(const struct node *n, const struct spmd_factor *f, enum round round)
{
	uint8_t way = 0;

	if (f->is_blocked)
		return 0;
	if (round >= (n->has_shared_operand ? PLAIN : PLAIN_ALONE))
		way |= n->when == SPMD_ALL ? BOTH_WAYS : n->when == SPMD_FORWARD ? TO_RESULTS : 0;
	if (round >= PASSING && f->kind == SPMD_PASS)
		way |= n->when == SPMD_BROADCAST ? TO_OPERANDS : BOTH_WAYS;
	if (round >= ALL_FACTORS)
		way |= n->when == SPMD_BROADCAST ? TO_OPERANDS : BOTH_WAYS;
	if (round == EVERYTHING)
		way |= BOTH_WAYS;
	return way;
}

static bool visit(struct desk *desk, const struct node *n, enum round round)
{
	uint8_t any = 0;

	if (n->is_side)
		return desk->is_other[0] = desk->is_other[1] = sync_side(n);
	for (uint32_t f = 0; f < n->rule->n_factors; f++)
		any |= desk->way[f] = ways_of(n, &n->rule->factor[f], round);
	return any && spmd_step(n, desk);
}

static int compare_users(const void *a, const void *b)
{
	const struct user *x = a, *y = b;

	if (x->h != y->h)
		return (uintptr_t)x->h < (uintptr_t)y->h ? -1 : 1;
	return x->node < y->node ? -1 : x->node > y->node;
}

static void find_users(struct run *r)
{
	size_t n = 0;

	for (uint32_t i = 0; i < r->n_nodes; i++)
		n += r->node[i].rule->n_tensors;
	r->user = arena_array(&r->s->c->arena, n, sizeof(*r->user));
	for (uint32_t i = 0; i < r->n_nodes; i++)
		for (uint32_t t = 0; t < r->node[i].rule->n_tensors; t++)
			if (r->node[i].tensor[t])
				r->user[r->n_users++] = (struct user){ r->node[i].tensor[t], i };
	if (r->n_users)
		qsort(r->user, r->n_users, sizeof(*r->user), compare_users);
}

/* The nodes to visit, the next one last; each is there once. */
struct due { uint32_t *node, n; bool *is_there; };

static void push_due(struct due *due, uint32_t node)
{
	if (!due->is_there[node])
		due->node[due->n++] = node;
	due->is_there[node] = true;
}

/* Whoever has that sharding is to look at it again: those who come first in the program first. */
static void push_users(const struct run *r, struct due *due, const struct spmd_sharding *h)
{
	size_t low = 0, high = r->n_users;

	/* Behind the last of them. */
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if ((uintptr_t)r->user[middle].h <= (uintptr_t)h)
			low = middle + 1;
		else
			high = middle;
	}
	while (low > 0 && r->user[low - 1].h == h)
		push_due(due, r->user[--low].node);
}

/* Goes over the program in its order. What a node changes goes back to those before it, and from
 * them as far as it gets, before the next one has its turn: whoever is met first decides, and
 * programs come out as Shardy has them. */
static void run_round(const struct run *r, struct desk *desk, struct due *due, enum round round)
{
	for (uint32_t i = r->n_nodes; i > 0; i--)
		push_due(due, i - 1);
	while (due->n) {
		uint32_t at = due->node[--due->n];
		const struct node *n = &r->node[at];

		due->is_there[at] = false;
		if (!visit(desk, n, round))
			continue;
		for (uint32_t t = 0; t < n->rule->n_tensors; t++)
			if (n->tensor[t] && desk->is_other[t])
				push_users(r, due, n->tensor[t]);
	}
}

static void run_rounds(struct run *r)
{
	struct arena *a = &r->s->c->arena;
	struct desk desk = {
		.cell = arena_array(a, r->most_cells, sizeof(*desk.cell)),
		.found = arena_array(a, r->most_factors, sizeof(*desk.found)),
		.order = arena_array(a, r->most_factors, sizeof(*desk.order)),
		.way = arena_array(a, r->most_factors, 1),
		.is_other = arena_array(a, r->most_tensors, 1),
	};
	struct due due = {
		.node = arena_array(a, r->n_nodes, sizeof(*due.node)),
		.is_there = arena_array(a, r->n_nodes, 1),
	};

	find_users(r);
	for (enum round round = 0; round < N_ROUNDS; round++)
		run_round(r, &desk, &due, round);
}

/* ---- before and after ---- */

/* The mesh of the program: the first of several devices. */
static const struct spmd_mesh *main_mesh(struct spmd *s)
{
	for (uint32_t i = 0; i < s->n_meshes; i++)
		if (s->mesh[i]->devices > 1)
			return s->mesh[i];
	return spmd_flat_mesh(s, s->devices);
}

/* Of a list the longest front of whole axes that divides the dim. Where axes have no names of
 * the user's, their pieces will do. */
static void cut_evenly(const struct spmd_mesh *m, struct spmd_axes *a, int64_t dim)
{
	uint32_t kept = 0, size = 1;

	for (; kept < a->n; kept++) {
		const struct spmd_piece *p = &a->at[kept];

		if ((*m->name && p->size != m->axis[p->axis].size) ||
		    dim % ((int64_t)size * p->size))
			break;
		size *= p->size;
	}
	a->n = kept;
}

static void cut_all_evenly(struct spmd_sharding *h, const struct tc_type *t)
{
	for (uint32_t d = 0; h && d < h->rank; d++)
		cut_evenly(h->mesh, &h->dim[d].axes, t->dim[d]);
}

/* What is said at main's border: its device order counts. */
static struct spmd_sharding *read_border(struct run *r, const char *text, uint32_t rank, uint32_t i)
{
	struct spmd_sharding *to = read_on_mesh(r, NULL, text, rank), *said, strict;

	said = spmd_read(r->s, NULL, text, rank);
	if (said->kind == SPMD_TILED && !spmd_to_mesh(r->s, said, r->p->mesh, &strict))
		r->p->ordered[i] = said;
	return to;
}

static void start_main(struct run *r, const struct tc_block *b)
{
	const struct tc_op *f = b->region->parent;

	r->p->n_results = b->last->n_operands;
	r->p->ordered = arena_array(&r->s->c->arena, b->n_args + r->p->n_results,
				    sizeof(*r->p->ordered));
	for (unsigned i = 0; f->arg_info && i < b->n_args; i++)
		if (f->arg_info[i].sharding && of(r, b->args[i]))
			*of(r, b->args[i]) = *read_border(r, f->arg_info[i].sharding,
							  b->args[i]->type->rank, i);
	r->p->result = arena_array(&r->s->c->arena, r->p->n_results, sizeof(*r->p->result));
	for (unsigned i = 0; i < r->p->n_results; i++) {
		const struct tc_type *t = tc_in(b->last, i)->type;

		if (!of(r, tc_in(b->last, i)))
			continue;
		r->p->result[i] = f->res_info && f->res_info[i].sharding ?
			read_border(r, f->res_info[i].sharding, t->rank, b->n_args + i) :
			spmd_new(r->s, r->p->mesh, t->rank);
	}
}

/* GSPMD's way out of what each device does by itself: the whole lies as it says. */
static void start_way_out(struct run *r, const struct tc_op *op)
{
	const char *target = tc_attr_str(op, "call_target_name");
	const char *text = tc_attr_str(op, "sharding");

	if (!strcmp(target, "SPMDShardToFullShape") && text && op->n_results == 1 &&
	    of(r, tc_out(op, 0)))
		*of(r, tc_out(op, 0)) = *read_on_mesh(r, op, text, tc_out(op, 0)->type->rank);
}

/* A call whose results lie as who shares it out says. */
static void start_results(struct run *r, const struct tc_op *op)
{
	const struct tc_attr *list = tc_attr(op, "result_shardings");

	for (unsigned i = 0; list && i < list->n && i < op->n_results; i++)
		if (of(r, tc_out(op, i)) && list->attrs[i].kind == TC_ATTR_STR)
			*of(r, tc_out(op, i)) = *read_on_mesh(r, op, list->attrs[i].text,
							      tc_out(op, i)->type->rank);
}

static void start_ops(struct tc_op *op, void *arg)
{
	if (op->op == TC_SHARDING_CONSTRAINT) {
		start_constraint(arg, op);
	} else if (op->op == TC_CUSTOM_CALL) {
		start_way_out(arg, op);
		start_results(arg, op);
	}
}

/* What is wanted of main's results goes first. */
static void flow_results(struct run *r, const struct tc_block *b)
{
	for (unsigned i = 0; i < r->p->n_results; i++) {
		struct spmd_sharding *from = of(r, tc_in(b->last, i));

		if (from)
			add_flow(r, r->p->result[i], tc_in(b->last, i)->type, 1, &from);
	}
}

static void finish(struct run *r, const struct tc_block *b)
{
	const struct tc_op *f = b->region->parent;

	for (unsigned i = 0; i < b->n_args; i++)
		if (!f->arg_info || !f->arg_info[i].sharding)
			cut_all_evenly(of(r, b->args[i]), b->args[i]->type);
	for (unsigned i = 0; i < r->p->n_results; i++)
		if (r->p->result[i] && (!f->res_info || !f->res_info[i].sharding))
			cut_all_evenly(r->p->result[i], tc_in(b->last, i)->type);
}

struct spmd_shardings *spmd_propagate(struct spmd *s)
{
	struct run r = { .s = s };
	struct tc_block *b = tc_main(s->c);

	r.p = arena_alloc(&s->c->arena, sizeof(*r.p));
	r.p->s = s;
	r.p->mesh = main_mesh(s);
	r.p->of = arena_array(&s->c->arena, s->c->next_id, sizeof(*r.p->of));
	start_args(&r, b);
	start_block(&r, b);
	start_main(&r, b);
	tc_walk(b->region->parent, start_ops, &r);
	flow_results(&r, b);
	add_block(&r, b);
	run_rounds(&r);
	finish(&r, b);
	return r.p;
}
