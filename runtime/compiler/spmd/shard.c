/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pass that shares a program out among its partitions.
 *
 * Requires: a verified program after `inline`, for several partitions. Ensures: the program is
 * one member's: types are those of its parts, members meet in collectives in settled form
 * (ir/ops.def), and nothing speaks of shardings any more; tc_ctx.shardings says how main's
 * arguments and results lie. At level 0 ops run whole, but what the program has each device do.
 * Fails: INVALID_ARGUMENT for shardings that don't fit; UNIMPLEMENTED for calls of a framework's
 * own partitioner, and arguments on one device alone.
 */
#include <inttypes.h>
#include <string.h>

#include "runtime/compiler/passes.h"
#include "runtime/compiler/spmd/shard_internal.h"

static void share_block(struct shard *s, struct tc_op *first);

static struct shard_value *value_of(const struct shard *s, const struct tc_value *v)
{
	return &s->of[v->id];
}

static struct tc_build behind(struct shard *s, struct tc_op *op)
{
	return (struct tc_build){ .c = s->c, .before = op->next, .where = op->where };
}

static void bury(struct shard *s, struct tc_op *op)
{
	uint32_t room = s->room_dead ? 2 * s->room_dead : 64;
	struct tc_op **grown;

	if (s->n_dead == s->room_dead) {
		grown = arena_array(&s->c->arena, room, sizeof(*grown));
		if (s->n_dead)
			memcpy(grown, s->dead, s->n_dead * sizeof(*grown));
		s->dead = grown;
		s->room_dead = room;
	}
	s->dead[s->n_dead++] = op;
}

/* ---- values ---- */

static void keep_copy(struct shard *s, const struct tc_value *v, struct tc_value *local,
		      const struct spmd_sharding *h, const struct tc_block *block)
{
	struct shard_value *is = value_of(s, v);
	struct shard_copy *copy = arena_alloc(&s->c->arena, sizeof(*copy));

	*copy = (struct shard_copy){ local, h, block, is->copies };
	is->copies = copy;
}

/* The value as it is to lie where `b` puts ops. */
static struct tc_value *get_as(struct shard *s, const struct tc_build *b, const struct tc_value *v,
			       const struct spmd_sharding *h)
{
	struct shard_value *is = value_of(s, v);
	const struct tc_block *here = b->before->block;
	struct tc_build ahead = *b;
	const struct tc_value *from;
	struct tc_value *local;
	struct shard_copy *copy;

	if (!is->h || !h || shard_is_same(is->h, h))
		return is->local;
	for (copy = is->copies; copy; copy = copy->next)
		if (shard_is_same(copy->h, h) && shard_is_around(copy->block, here))
			return copy->local;
	local = shard_make_again(s, b, v, is->type, h);
	if (!local) {
		from = shard_go_ahead(s, &ahead, v, h);
		local = ahead.before != b->before ? get_as(s, &ahead, from, h) :
			shard_convert(s, b, is->local, is->type, is->h, h, NULL);
	}
	keep_copy(s, v, local, h, here);
	return local;
}

static void put(struct shard *s, const struct tc_value *v, struct tc_value *local,
		const struct spmd_sharding *h)
{
	struct shard_value *is = value_of(s, v);

	is->local = local;
	is->h = h;
}

static bool has_sharding(const struct tc_type *t)
{
	return !t->is_tuple && t->elem != ELEM_TOKEN;
}

/* What is said to be left as parts of a sum, but along axes that are manual. */
static void leave_sums(struct spmd_sharding *h, const struct spmd_sharding *said,
		       const struct spmd_axes *manual)
{
	for (uint32_t i = 0; said->kind == SPMD_TILED && i < said->unreduced.n; i++)
		if (!spmd_has(manual, said->unreduced.at[i]))
			spmd_push(&h->unreduced, said->unreduced.at[i]);
}

/* How a value should lie; NULL: it is no tensor. */
static struct spmd_sharding *wish_of(struct shard *s, const struct tc_value *v,
				     const struct spmd_axes *manual)
{
	const struct tc_type *t = value_of(s, v)->type;
	struct spmd_sharding *h;

	if (!has_sharding(t))
		return NULL;
	h = shard_plain(s, s->is_whole ? NULL : s->p->of[v->id], t, manual);
	if (!s->is_whole)
		leave_sums(h, s->p->of[v->id], manual);
	return h;
}

static void add_axes(struct spmd_axes *to, const struct spmd_axes *more)
{
	for (uint32_t i = 0; i < more->n; i++)
		if (!spmd_has(to, more->at[i]))
			spmd_push(to, more->at[i]);
}

/* The axes along which what an op takes is one device's own. */
static struct spmd_axes manual_of(const struct shard *s, const struct tc_op *op)
{
	struct spmd_axes all = s->manual;

	for (unsigned i = 0; i < op->n_operands; i++)
		if (value_of(s, tc_in(op, i))->h)
			add_axes(&all, &value_of(s, tc_in(op, i))->h->manual);
	return all;
}

/* ---- an op ---- */

static void take_operands(struct shard *s, struct tc_op *op, struct spmd_sharding *const *h)
{
	struct tc_build b = tc_build_at(s->c, op);

	for (unsigned i = 0; i < op->n_operands; i++)
		tc_set_operand(op, i, get_as(s, &b, tc_in(op, i), h[i]));
}

/* In the body of a reduction, of scalars, nothing is to say where they lie. */
static void drop_remark(struct tc_op *op, void *arg)
{
	(void)arg;
	if (op->op == TC_SHARDING_CONSTRAINT) {
		tc_replace(op, tc_in(op, 0));
	} else if (op->op == TC_SHARDING_GROUP) {
		tc_erase(op);
	}
}

/* In regions that stay as they are: what they take from around them, whole. */
struct capture { struct shard *s; struct tc_build at; const struct spmd_axes *manual; };

static void take_captured(struct tc_op *inner, void *arg)
{
	const struct capture *k = arg;

	for (unsigned i = 0; i < inner->n_operands; i++) {
		const struct tc_value *v = tc_in(inner, i);
		const struct shard_value *is = value_of(k->s, v);
		struct spmd_axes own = *k->manual;

		if (is->h)
			add_axes(&own, &is->h->manual);
		/* What the regions define themselves lies nowhere. */
		if (is->local)
			tc_set_operand(inner, i, get_as(k->s, &k->at, v, !is->h ? NULL :
				shard_plain(k->s, NULL, is->type, &own)));
	}
}

static void take_regions(struct shard *s, struct tc_op *op, const struct spmd_axes *manual)
{
	struct capture k = { s, tc_build_at(s->c, op), manual };

	tc_walk(op, drop_remark, NULL);
	for (unsigned r = 0; r < op->n_regions; r++) {
		struct tc_block *b = op->regions[r].block;

		for (struct tc_op *o = b ? b->first : NULL; o; o = o->next)
			tc_walk(o, take_captured, &k);
	}
}

/* Operands that are parts of sums, all along the axes along which the result is to be left so, need
 * not be put together for a sum or a difference of them. */
static void keep_sums(struct shard *s, const struct tc_op *op, const struct shard_plan *plan,
		      struct spmd_sharding *const *wish)
{
	if ((op->op != TC_ADD && op->op != TC_SUBTRACT && op->op != TC_NEGATE) ||
	    !wish[0] || !wish[0]->unreduced.n)
		return;
	for (unsigned i = 0; i < op->n_operands; i++)
		if (!spmd_same_axes(&value_of(s, tc_in(op, i))->h->unreduced, &wish[0]->unreduced))
			return;
	for (unsigned t = 0; t <= op->n_operands; t++)
		plan->tensor[t]->unreduced = wish[0]->unreduced;
}

/* Whether it has yet to be shared out, in the block of another, of whose operand it takes rows. */
static bool may_take_with(const struct shard *s, const struct tc_op *op, const struct tc_op *other)
{
	return op != other && op->block == other->block && op->id < s->n_values &&
	       !s->is_late[op->id] && (op->op == TC_SLICE || op->op == TC_PAD) &&
	       tc_in(op, 0) == tc_in(other, 0) && !value_of(s, tc_out(op, 0))->local &&
	       !s->taken[op->id].is_asked;
}

/* What is needed of a value along a dim by more than one op is got together, where that is less. */
struct together {
	struct tc_op *op[SHARD_MOST_NEEDS];
	struct shard_need need[SHARD_MOST_NEEDS];
	unsigned n, d;
	int64_t rounds, moved;	/* of each by itself */
};

static void add_need(struct shard *s, struct together *all, struct tc_op *op,
		     const struct shard_plan *plan)
{
	struct spmd_axes manual = manual_of(s, op);
	struct spmd_sharding *wish = wish_of(s, tc_out(op, 0), &manual);
	struct shard_plan own = shard_choose(s, op, &manual, &wish);
	struct together more = *all;

	if (!shard_is_same(own.tensor[0], plan->tensor[0]) ||
	    !shard_need_of(s, op, &own, &more.d, &more.need[more.n], &more.rounds, &more.moved) ||
	    more.d != all->d)
		return;
	more.op[more.n++] = op;
	*all = more;
}

/* What those need, and as many more as were not `tried`. false: to collect the whole is less. */
static bool get_needs(struct shard *s, const struct together *all, unsigned tried,
		      const struct shard_plan *plan, struct tc_value **rows)
{
	const struct spmd_axes *axes = &plan->tensor[0]->dim[all->d].axes;
	int64_t parts = spmd_size(axes), whole = plan->type[0]->dim[all->d];
	const struct shard_exchange *e = shard_plan_shared(s, parts, whole, all->need, all->n,
							   all->rounds, all->moved);
	int64_t moved = e ? shard_moved(e) : all->moved;
	int64_t n = all->n + (tried > SHARD_MOST_NEEDS ? tried - SHARD_MOST_NEEDS : 0);
	struct tc_build b = tc_build_at(s->c, all->op[0]);
	struct tc_value *v = tc_in(all->op[0], 0);

	value_of(s, v)->is_collected = n > 1 && moved * n > whole / parts * (parts - 1) * all->n;
	if (!e || value_of(s, v)->is_collected)
		return !value_of(s, v)->is_collected;
	v = get_as(s, &b, v, plan->tensor[0]);
	shard_exchange(s, &b, e, all->d, axes, &v, NULL, rows);
	return true;
}

/* false: op is to be planned anew, with all of its operand. */
static bool take_together(struct shard *s, struct tc_op *op, const struct shard_plan *plan)
{
	struct together all = { .op = { op } };
	struct tc_value *rows[SHARD_MOST_NEEDS] = { NULL };
	unsigned tried = 1;

	if (s->taken[op->id].is_asked ||
	    !shard_need_of(s, op, plan, &all.d, &all.need[all.n++], &all.rounds, &all.moved))
		return true;
	for (struct tc_use *u = tc_in(op, 0)->uses; u; u = u->next)
		if (may_take_with(s, u->user, op) && tried++ < SHARD_MOST_NEEDS)
			add_need(s, &all, u->user, plan);
	if (!get_needs(s, &all, tried, plan, rows))
		return false;
	for (unsigned i = 0; i < all.n; i++)
		s->taken[all.op[i]->id] = (struct shard_taken){ true, rows[i] };
	return true;
}

static void share_op(struct shard *s, struct tc_op *op)
{
	struct spmd_axes manual = manual_of(s, op);
	struct spmd_sharding **wish = arena_array(&s->c->arena, op->n_results, sizeof(*wish));
	struct tc_value **made = arena_array(&s->c->arena, op->n_results, sizeof(*made));
	struct shard_plan plan;
	struct tc_value *first;
	struct tc_build b;

	for (unsigned i = 0; i < op->n_results; i++)
		wish[i] = wish_of(s, tc_out(op, i), &manual);
	plan = shard_choose(s, op, &manual, wish);
	if (op->n_operands && plan.windows && !plan.picked && !take_together(s, op, &plan))
		plan = shard_choose(s, op, &manual, wish);
	keep_sums(s, op, &plan, wish);
	take_operands(s, op, plan.tensor);
	if (op->n_regions)
		take_regions(s, op, &manual);
	b = behind(s, op);
	first = shard_localize(s, op, &plan);
	for (unsigned i = 0; i < op->n_results; i++)
		made[i] = i ? tc_out(op, i) : first;
	if (plan.fold.n)
		shard_fold(s, &b, op, &plan, made);
	for (unsigned i = 0; i < op->n_results; i++) {
		struct tc_value *v = made[i];
		const struct spmd_sharding *h = plan.tensor[op->n_operands + i];

		if (h)
			v = shard_convert(s, &b, v, value_of(s, tc_out(op, i))->type, h, wish[i],
					  &plan.sum);
		put(s, tc_out(op, i), v, wish[i]);
		/* Who needs it as the op made it takes that. */
		if (v != made[i] && !h->unreduced.n && !plan.sum.axes.n)
			keep_copy(s, tc_out(op, i), made[i], h, op->block);
	}
	if ((op->op == TC_SELECT_AND_SCATTER || op->op == TC_CONCATENATE) && plan.windows)
		bury(s, op);
}

/* false: it runs as other ops do. */
static bool share_roll(struct shard *s, struct tc_op *op)
{
	const struct shard_roll *r = s->roll[op->id];
	struct spmd_axes manual = manual_of(s, op);
	struct tc_build b = tc_build_at(s->c, op);
	struct tc_value *v, *rest = NULL;
	struct spmd_sharding *wish, *h;

	add_axes(&manual, &value_of(s, r->of)->h->manual);
	wish = wish_of(s, tc_out(op, 0), &manual);
	if (!shard_may_roll(s, r, wish))
		return false;
	if (r->rest) {
		h = spmd_copy(s->p->s, value_of(s, r->of)->h);
		h->dim[r->dim].axes.n = 0;
		rest = get_as(s, &b, r->rest, h);
	}
	v = shard_roll(s, &b, r, rest);
	put(s, tc_out(op, 0), shard_convert(s, &b, v, value_of(s, tc_out(op, 0))->type,
					    value_of(s, r->of)->h, wish, NULL), wish);
	return true;
}

/* Whether it is a slice that waits for what joins it. */
static bool is_late(const struct shard *s, const struct tc_op *op)
{
	return op && op->id < s->n_values && s->is_late[op->id];
}

/* Joins slices without making them, where that runs in parts. */
static bool share_pieces(struct shard *s, struct tc_op *op)
{
	struct tc_op **slice = arena_array(&s->c->arena, op->n_operands, sizeof(*slice));
	struct spmd_axes manual;
	struct spmd_sharding *wish;
	bool any = false, done;

	for (unsigned i = 0; i < op->n_operands; i++) {
		if (!is_late(s, tc_in(op, i)->def))
			continue;
		slice[i] = tc_in(op, i)->def;
		tc_set_operand(op, i, tc_in(slice[i], 0));
		any = true;
	}
	if (!any)
		return false;
	s->slices = slice;
	manual = manual_of(s, op);
	wish = wish_of(s, tc_out(op, 0), &manual);
	done = shard_choose(s, op, &manual, &wish).windows;
	if (done)
		share_op(s, op);
	s->slices = NULL;
	for (unsigned i = 0; i < op->n_operands; i++) {
		if (!slice[i])
			continue;
		if (done) {
			bury(s, slice[i]);
			continue;
		}
		tc_set_operand(op, i, tc_out(slice[i], 0));
		s->is_late[slice[i]->id] = false;
	}
	/* They may be got together. */
	for (unsigned i = 0; !done && i < op->n_operands; i++)
		if (slice[i])
			share_op(s, slice[i]);
	return done;
}

static void share_join(struct shard *s, struct tc_op *op)
{
	bool is_roll = op->id < s->n_values && s->roll[op->id] && share_roll(s, op);

	if (!is_roll && share_pieces(s, op))
		return;
	for (unsigned i = 0; i < op->n_operands; i++) {
		struct tc_op *slice = tc_in(op, i)->def;

		if (is_late(s, slice))
			is_roll ? bury(s, slice) : share_op(s, slice);
	}
	is_roll ? bury(s, op) : share_op(s, op);
}

/* All axes, or those that are said to be one device's own. */
static struct spmd_axes manual_said(struct shard *s, const struct spmd_sharding *said)
{
	struct spmd_axes none = { 0 };

	return said->kind == SPMD_MANUAL ? spmd_rest(s->mesh, &none) : said->manual;
}

static void share_constraint(struct shard *s, struct tc_op *op)
{
	const struct spmd_sharding *said = s->p->of[tc_out(op, 0)->id];
	struct tc_build b = tc_build_at(s->c, op);
	struct spmd_axes manual = manual_of(s, op), own = manual_said(s, said);
	struct spmd_sharding *wish;

	add_axes(&manual, &own);
	wish = wish_of(s, tc_out(op, 0), &manual);
	put(s, tc_out(op, 0), get_as(s, &b, tc_in(op, 0), wish), wish);
	bury(s, op);
}

/* ---- data that flows ---- */

/* What a region ends in, as op's results are to lie. */
static void share_return(struct shard *s, struct tc_block *b, struct spmd_sharding *const *h)
{
	take_operands(s, b->last, h);
}

static void share_args(struct shard *s, struct tc_block *b, struct spmd_sharding *const *h)
{
	for (unsigned i = 0; i < b->n_args; i++) {
		if (h[i])
			b->args[i]->type = shard_local_type(s, value_of(s, b->args[i])->type,
							    h[i]);
		put(s, b->args[i], b->args[i], h[i]);
	}
}

/* What a device decides by itself it does by itself: in GSPMD's way only operands tell. */
static void share_flow(struct shard *s, struct tc_op *op)
{
	struct spmd_axes manual = manual_of(s, op), before = s->manual;
	uint32_t most = op->n_results > op->n_operands ? op->n_results : op->n_operands;
	struct spmd_sharding **h = arena_array(&s->c->arena, most + 1, sizeof(*h));
	struct spmd_sharding **whole = arena_array(&s->c->arena, most + 1, sizeof(*whole));
	bool is_branch = op->op == TC_CASE || op->op == TC_IF;

	for (unsigned i = 0; i < op->n_results; i++)
		h[i] = wish_of(s, tc_out(op, i), &manual);
	if (is_branch || op->op == TC_WHILE)
		whole[0] = shard_plain(s, NULL, tc_tensor(s->c, ELEM_PRED, 0, NULL), &manual);
	if (op->op == TC_WHILE)
		shard_note_loop(s, op);
	take_operands(s, op, is_branch ? whole : h);
	s->manual = manual;
	for (unsigned k = 0; k < op->n_regions; k++) {
		struct tc_block *b = op->regions[k].block;

		if (op->op == TC_WHILE)
			share_args(s, b, h);
		share_block(s, b->first);
		share_return(s, b, op->op == TC_WHILE && !k ? whole : h);
	}
	s->manual = before;
	for (unsigned i = 0; i < op->n_results; i++) {
		if (h[i])
			tc_out(op, i)->type = shard_local_type(s, value_of(s, tc_out(op, i))->type,
							       h[i]);
		put(s, tc_out(op, i), tc_out(op, i), h[i]);
	}
}

/* ---- what each device does by itself ---- */

/* How a tensor lies outside of a manual computation: of what is said the manual axes, which the
 * body's is without, and behind them how it lies inside. */
static struct spmd_sharding *outside(struct shard *s, const struct tc_op *op, const char *text,
				     const struct tc_type *t, const struct spmd_axes *manual,
				     const struct spmd_sharding *inner)
{
	struct spmd_sharding *said = spmd_read(s->p->s, op, text, t->rank), h;
	struct spmd_sharding *to = shard_plain(s, NULL, t, &s->manual);

	if (said->kind != SPMD_TILED || !spmd_to_mesh(s->p->s, said, s->mesh, &h))
		tc_fail(s->c, ERR_UNIMPLEMENTED, op, "a manual computation takes or gives a value "
			"as %.100s, which is over another mesh than the program's", text);
	for (uint32_t d = 0; d < t->rank; d++) {
		for (uint32_t i = 0; i < h.dim[d].axes.n; i++)
			if (spmd_has(manual, h.dim[d].axes.at[i]))
				spmd_push(&to->dim[d].axes, h.dim[d].axes.at[i]);
		for (uint32_t i = 0; i < inner->dim[d].axes.n; i++)
			spmd_push(&to->dim[d].axes, inner->dim[d].axes.at[i]);
	}
	for (uint32_t i = 0; i < h.unreduced.n; i++)
		if (spmd_has(manual, h.unreduced.at[i]))
			spmd_push(&to->unreduced, h.unreduced.at[i]);
	return to;
}

/* A side of a body: a tensor, and how it lies. */
struct side { const struct tc_type *type; const struct spmd_sharding *h; };

/* Of a value outside and inside of a body: whether they are the same to a member. */
static void check_sides(struct shard *s, const struct tc_op *op, const char *what, unsigned i,
			struct side outer, struct side inner)
{
	for (uint32_t d = 0; d < outer.type->rank; d++) {
		int64_t size = outer.type->dim[d], n = spmd_size(&outer.h->dim[d].axes);

		/* Shardy knows no such program; GSPMD fills up the last part. */
		if (size % n)
			tc_fail(s->c, op->op == TC_CUSTOM_CALL ? ERR_UNIMPLEMENTED :
				ERR_INVALID_ARGUMENT, op, "%s %u of the body: %" PRId64
				" parts of %" PRId64 " elements of dim %" PRIu32 ": make them "
				"even", what, i, n, size, d);
	}
	if (shard_local_type(s, outer.type, outer.h) != shard_local_type(s, inner.type, inner.h))
		tc_fail(s->c, ERR_INVALID_ARGUMENT, op, "%s %u of the body is no part of what is "
			"outside as its sharding says", what, i);
}

static void open_body(struct tc_op *op, struct tc_block *b)
{
	struct tc_op *next;

	for (struct tc_op *o = b->first; o != b->last; o = next) {
		next = o->next;
		tc_unlink(o);
		tc_insert_before(op, o);
	}
}

static void enter_body(struct shard *s, struct tc_op *op, const struct spmd_axes *manual,
		       const struct spmd_axes *all)
{
	const struct tc_attr *in = tc_attr(op, "in_shardings");
	struct tc_block *b = op->regions[0].block;
	struct tc_build at = tc_build_at(s->c, op);

	for (unsigned i = 0; i < op->n_operands; i++) {
		const struct tc_type *t = value_of(s, tc_in(op, i))->type;
		struct spmd_sharding *inner = wish_of(s, b->args[i], all), *outer;

		if (!inner) {
			put(s, b->args[i], value_of(s, tc_in(op, i))->local, NULL);
			continue;
		}
		outer = outside(s, op, in->attrs[i].text, t, manual, inner);
		check_sides(s, op, "argument", i, (struct side){ t, outer },
			    (struct side){ value_of(s, b->args[i])->type, inner });
		put(s, b->args[i], get_as(s, &at, tc_in(op, i), outer), inner);
	}
}

static void leave_body(struct shard *s, struct tc_op *op, const struct spmd_axes *manual,
		       const struct spmd_axes *all)
{
	const struct tc_attr *out = tc_attr(op, "out_shardings");
	struct tc_op *last = op->regions[0].block->last;
	struct tc_build inside = tc_build_at(s->c, last), after = behind(s, op);

	for (unsigned i = 0; i < op->n_results; i++) {
		const struct tc_type *t = value_of(s, tc_out(op, i))->type;
		const struct tc_type *part = value_of(s, tc_in(last, i))->type;
		struct spmd_sharding *wish = wish_of(s, tc_out(op, i), &s->manual);
		struct spmd_sharding *inner, *outer;
		struct tc_value *v;

		if (!wish) {
			put(s, tc_out(op, i), value_of(s, tc_in(last, i))->local, NULL);
			continue;
		}
		/* As the body's value lies; along free axes that is so outside, too. */
		inner = shard_plain(s, value_of(s, tc_in(last, i))->h, part, all);
		outer = outside(s, op, out->attrs[i].text, t, manual, inner);
		check_sides(s, op, "result", i, (struct side){ t, outer },
			    (struct side){ part, inner });
		v = get_as(s, &inside, tc_in(last, i), inner);
		put(s, tc_out(op, i), shard_convert(s, &after, v, t, outer, wish, NULL), wish);
	}
}

static void refuse_orders(struct shard *s, const struct tc_op *op)
{
	if (s->p->has_orders)
		tc_fail(s->c, ERR_UNIMPLEMENTED, op, "a manual computation in a program whose "
			"shardings have the devices in several orders does not run yet: use one "
			"mesh");
}

static void share_manual(struct shard *s, struct tc_op *op)
{
	struct spmd_axes before = s->manual, all = before;
	struct spmd_axes manual = spmd_read_names(s->p->s, op, tc_attr_str(op, "manual_axes"),
						  s->mesh);

	refuse_orders(s, op);
	add_axes(&all, &manual);
	enter_body(s, op, &manual, &all);
	s->manual = all;
	share_block(s, op->regions[0].block->first);
	s->manual = before;
	leave_body(s, op, &manual, &all);
	open_body(op, op->regions[0].block);
	bury(s, op);
}

/* ---- GSPMD's way of saying the same ---- */

static struct spmd_sharding *read_text(struct shard *s, const struct tc_op *op, const char *text,
				       uint32_t rank)
{
	struct spmd_sharding *said = spmd_read(s->p->s, op, text, rank);
	struct spmd_sharding *to = spmd_new(s->p->s, s->mesh, rank);

	if (said->kind != SPMD_TILED) {
		to->kind = said->kind;
		return to;
	}
	if (!spmd_to_mesh(s->p->s, said, s->mesh, to))
		tc_fail(s->c, ERR_UNIMPLEMENTED, op, "%.100s is over another mesh than the "
			"program's", text);
	return to;
}

/* From how the operand of a way in is said to lie: its manual axes, then the rest. */
static void share_way_in(struct shard *s, struct tc_op *op, const char *text)
{
	const struct tc_value *in = tc_in(op, 0), *out = tc_out(op, 0);
	const struct tc_type *t = value_of(s, in)->type, *part = value_of(s, out)->type;
	struct spmd_sharding *said = read_text(s, op, text, part->rank), *h, *outer;
	struct spmd_axes manual = manual_said(s, said);
	struct tc_build b = tc_build_at(s->c, op);

	refuse_orders(s, op);
	h = shard_plain(s, NULL, part, &manual);
	outer = shard_plain(s, NULL, t, &s->manual);
	for (uint32_t d = 0; d < t->rank; d++)
		for (uint32_t i = 0; i < s->p->of[in->id]->dim[d].axes.n; i++)
			if (spmd_has(&manual, s->p->of[in->id]->dim[d].axes.at[i]))
				spmd_push(&outer->dim[d].axes,
					  s->p->of[in->id]->dim[d].axes.at[i]);
	check_sides(s, op, "result", 0, (struct side){ t, outer }, (struct side){ part, h });
	put(s, out, get_as(s, &b, in, outer), h);
	bury(s, op);
}

static void share_way_out(struct shard *s, struct tc_op *op, const char *text)
{
	const struct tc_value *in = tc_in(op, 0), *out = tc_out(op, 0);
	const struct tc_type *t = value_of(s, out)->type, *part = value_of(s, in)->type;
	struct spmd_sharding *said = read_text(s, op, text, t->rank), *outer, *inner;
	const struct spmd_axes *manual = &value_of(s, in)->h->manual;
	struct spmd_sharding *wish = wish_of(s, out, &said->manual);
	struct tc_build b = tc_build_at(s->c, op);
	struct tc_value *v;

	inner = shard_plain(s, NULL, part, manual);
	outer = shard_plain(s, NULL, t, &said->manual);
	for (uint32_t d = 0; said->kind == SPMD_TILED && d < t->rank; d++)
		for (uint32_t i = 0; i < said->dim[d].axes.n; i++)
			if (!manual->n || spmd_has(manual, said->dim[d].axes.at[i]))
				spmd_push(&outer->dim[d].axes, said->dim[d].axes.at[i]);
	check_sides(s, op, "operand", 0, (struct side){ t, outer }, (struct side){ part, inner });
	v = get_as(s, &b, in, inner);
	put(s, out, shard_convert(s, &b, v, t, outer, wish, NULL), wish);
	bury(s, op);
}

static void share_call(struct shard *s, struct tc_op *op)
{
	const char *target = tc_attr_str(op, "call_target_name");
	const char *text = tc_attr_str(op, "sharding");
	bool is_one = op->n_operands == 1 && op->n_results == 1 &&
		      has_sharding(value_of(s, tc_in(op, 0))->type) &&
		      has_sharding(value_of(s, tc_out(op, 0))->type);

	if (is_one && text && !strcmp(target, "SPMDFullToShardShape"))
		share_way_in(s, op, text);
	else if (is_one && text && !strcmp(target, "SPMDShardToFullShape"))
		share_way_out(s, op, text);
	else if (!strcmp(target, "CustomSPMDPartitioning"))
		tc_fail(s->c, ERR_UNIMPLEMENTED, op, "a function of the framework's process is to "
			"share it out (custom_partitioning), and none is registered: call it in a "
			"shard_map, or compile where the framework is");
	else if (!strcmp(target, "InspectSharding"))
		bury(s, op);
	else
		share_op(s, op);
}

/* ---- transfers to and from the host ---- */

/* What partition `from` has, given to all. */
static struct tc_value *broadcast(struct shard *s, const struct tc_build *b, struct tc_value *v,
				  uint32_t from)
{
	uint32_t n = s->replicas * s->partitions;
	int64_t *rows = arena_array(&s->c->arena, n, sizeof(*rows));
	struct tc_op *op;

	v = tc_build(b, TC_COLLECTIVE_BROADCAST, v->type, 1, &v);
	op = v->def;
	for (uint32_t m = 0; m < n; m++) {
		uint32_t first = m / s->partitions * s->partitions, at = m - first;

		/* The others keep their order behind it. */
		rows[m] = (int64_t)first + (!at ? from : at <= from ? at - 1 : at);
	}
	tc_set_ints(s->c, op, "replica_groups", rows, n);
	tc_set_int(s->c, op, "group_size", TC_ATTR_INT, s->partitions);
	tc_set_int(s->c, op, "use_global_device_ids", TC_ATTR_BOOL, 1);
	return v;
}

/* The whole array is one device's to send or receive; others get what it received. */
static void share_with_one(struct shard *s, struct tc_op *op, const struct spmd_axes *manual,
			   uint32_t device)
{
	struct tc_build b;

	if (device >= s->partitions)
		tc_fail(s->c, ERR_INVALID_ARGUMENT, op, "it is on device %" PRIu32 ", the program "
			"is for %" PRIu32, device, s->partitions);
	if (manual->n)
		tc_fail(s->c, ERR_UNIMPLEMENTED, op, "it is on one device alone, within what each "
			"device does by itself: this does not run yet; do it on each");
	share_op(s, op);
	tc_set_int(s->c, op, "partition", TC_ATTR_INT, device);
	b = behind(s, op);
	if (op->op == TC_RECV && op->n_results > 1 && s->partitions > 1) {
		struct spmd_sharding *whole = shard_plain(s, NULL, value_of(s, tc_out(op, 0))->type,
							  manual);

		put(s, tc_out(op, 0), broadcast(s, &b, tc_out(op, 0), device), whole);
	}
}

static void share_transfer(struct shard *s, struct tc_op *op)
{
	const char *text = tc_attr_str(op, "sharding");
	struct spmd_axes manual = manual_of(s, op);
	struct spmd_sharding *said = text ? spmd_read(s->p->s, op, text, op->op == TC_SEND ? 0 :
						      value_of(s, tc_out(op, 0))->type->rank) :
					    NULL;

	if (said && said->kind == SPMD_MAXIMAL)
		share_with_one(s, op, &manual, said->device);
	else
		share_op(s, op);
}

/* ---- blocks ---- */

/* From an op to its block's end; what is put in is not met. */
static void share_block(struct shard *s, struct tc_op *first)
{
	struct tc_op *next;

	for (struct tc_op *op = first; op->op != TC_RETURN; op = next) {
		next = op->next;
		if (is_late(s, op))
			continue;
		switch (op->op) {
		case TC_WHILE:
		case TC_CASE:
		case TC_IF:
		case TC_OPTIMIZATION_BARRIER: share_flow(s, op); break;
		case TC_MANUAL_COMPUTATION: share_manual(s, op); break;
		case TC_SHARDING_CONSTRAINT: share_constraint(s, op); break;
		case TC_SHARDING_GROUP: bury(s, op); break;
		case TC_CUSTOM_CALL: share_call(s, op); break;
		case TC_SEND:
		case TC_RECV: share_transfer(s, op); break;
		case TC_CONCATENATE: share_join(s, op); break;
		default: share_op(s, op); break;
		}
	}
}

/* ---- main ---- */

/* The part that came is of a tensor with dims rounded up: those are collected and cut off. */
static void share_argument(struct shard *s, struct tc_value *v, unsigned i)
{
	const struct tc_type *t = value_of(s, v)->type, *wide;
	const struct spmd_axes none = { 0 };
	struct tc_build b = { .c = s->c, .before = s->top, .where = "" };
	int64_t zero[TC_MAX_RANK] = { 0 };
	struct spmd_sharding *h, *even;
	struct tc_value *local = v;

	if (!has_sharding(t)) {
		put(s, v, v, NULL);
		return;
	}
	h = shard_at_border(s, s->p->of[v->id], "argument", i);
	even = shard_even_dims(s, h, t);
	v->type = shard_local_type(s, t, h);
	if (s->p->ordered[i])
		local = shard_reorder(s, &b, v, s->p->ordered[i]->mesh, s->mesh);
	if (!shard_is_same(h, even)) {
		wide = shard_padded(s, t, h);
		local = shard_convert(s, &b, local, wide, h, even, NULL);
		local = tc_build_slice(&b, local, zero, shard_local_type(s, t, even));
	}
	if (s->is_whole) {
		h = shard_plain(s, NULL, t, &none);
		local = shard_convert(s, &b, local, t, even, h, NULL);
		even = h;
	}
	put(s, v, local, even);
}

static struct tc_value *pad_end(struct shard *s, const struct tc_build *b, struct tc_value *x,
				const struct tc_type *type)
{
	const struct tc_type *scalar = tc_tensor(s->c, (enum elem)type->elem, 0, NULL);
	int64_t zero[TC_MAX_RANK] = { 0 }, high[TC_MAX_RANK];

	for (unsigned d = 0; d < type->rank; d++)
		high[d] = type->dim[d] - x->type->dim[d];
	return tc_build_pad(b, x, tc_build_number(b, scalar, 0), zero, high, zero);
}

static struct tc_value *share_result(struct shard *s, const struct tc_build *b,
				     const struct tc_value *v, unsigned i)
{
	const struct tc_type *t = value_of(s, v)->type, *wide;
	struct spmd_sharding *h, *even, *said;
	struct tc_value *local;

	if (!has_sharding(t))
		return value_of(s, v)->local;
	h = shard_at_border(s, s->p->result[i], "result", i);
	even = shard_even_dims(s, h, t);
	local = get_as(s, b, v, even);
	if (!shard_is_same(h, even)) {
		wide = shard_padded(s, t, h);
		local = pad_end(s, b, local, shard_local_type(s, wide, even));
		local = shard_convert(s, b, local, wide, even, h, NULL);
	}
	said = s->p->ordered[tc_main(s->c)->n_args + i];
	return said ? shard_reorder(s, b, local, s->mesh, said->mesh) : local;
}

/* What frameworks are told: as they said it, or as was found. */
static void write_shardings(struct shard *s, const struct tc_block *main)
{
	uint32_t n = main->n_args + main->last->n_operands;
	struct tc_sharding *list = arena_array(&s->c->arena, n, sizeof(*list));

	for (uint32_t i = 0; i < n; i++) {
		const struct spmd_sharding *h = i < main->n_args ?
			s->p->of[main->args[i]->id] : s->p->result[i - main->n_args];

		if (s->p->ordered[i])
			h = s->p->ordered[i];
		if (h)
			list[i].bytes = spmd_write_proto(s->p->s, h, &list[i].n);
	}
	s->c->shardings = list;
	s->c->n_shardings = n;
}

/* A result can't be in the memory of an argument that is larger or smaller to a member. */
static void settle_info(struct tc_op *func, const struct tc_block *main)
{
	for (uint32_t i = 0; func->arg_info && i < main->n_args; i++) {
		int32_t to = func->arg_info[i].alias;

		func->arg_info[i].sharding = NULL;
		if (to >= 0 && ((uint32_t)to >= main->last->n_operands ||
				tc_in(main->last, (unsigned)to)->type != main->args[i]->type))
			func->arg_info[i].alias = -1;
	}
	for (uint32_t i = 0; func->res_info && i < main->last->n_operands; i++)
		func->res_info[i].sharding = NULL;
}

static void share_main(struct shard *s, struct tc_block *main)
{
	struct tc_build b = tc_build_at(s->c, main->last);

	write_shardings(s, main);
	s->top = main->first;
	for (unsigned i = 0; i < main->n_args; i++)
		share_argument(s, main->args[i], i);
	shard_count_memory(s, main);
	share_block(s, s->top);
	for (unsigned i = 0; i < main->last->n_operands; i++)
		tc_set_operand(main->last, i, share_result(s, &b, tc_in(main->last, i), i));
	/* Later ones use earlier ones. */
	while (s->n_dead)
		tc_erase(s->dead[--s->n_dead]);
	settle_info(main->region->parent, main);
}

/* ---- the pass ---- */

/* A join that moves a value's rows, or is of slices; those that nothing else needs go in front of
 * it. */
static void note_join(struct shard *s, struct tc_op *op)
{
	const struct shard_roll *r = s->roll[op->id] = shard_find_roll(s, op);

	for (unsigned i = 0; i < op->n_operands; i++) {
		struct tc_op *slice = tc_in(op, i)->def;

		if ((r ? tc_in(op, i) == r->rest : !shard_is_piece(s, op, i)) ||
		    slice->block != op->block || !tc_is_used_once(tc_in(op, i)))
			continue;
		tc_unlink(slice);
		tc_insert_before(op, slice);
		s->is_late[slice->id] = true;
	}
}

/* Padding, or a convolution, that is sliced lies as the slice, which is of all of it then. */
static void note_slice(struct shard *s, struct tc_op *op)
{
	struct tc_op *pad = shard_pad_trimmed(s, op);
	enum spmd_when when;

	if (!pad)
		return;
	for (unsigned d = 0; d < tc_out(op, 0)->type->rank; d++) {
		tc_set_nth(s->c, op, op->op == TC_PAD ? "edge_padding_low" : "start_indices", d, 0);
		tc_set_nth(s->c, op, op->op == TC_PAD ? "edge_padding_high" : "limit_indices", d,
			   op->op == TC_PAD ? 0 : tc_out(op, 0)->type->dim[d]);
	}
	s->p->of[tc_out(pad, 0)->id] = s->p->of[tc_out(op, 0)->id];
	value_of(s, tc_out(pad, 0))->type = tc_out(pad, 0)->type;
	s->rule[pad->id] = spmd_rule(s->c, pad, &when);
}

/* Types and rules while they are the whole's. */
static void note_op(struct tc_op *op, void *arg)
{
	struct shard *s = arg;
	enum spmd_when when;

	for (unsigned i = 0; i < op->n_results; i++)
		value_of(s, tc_out(op, i))->type = tc_out(op, i)->type;
	for (unsigned r = 0; r < op->n_regions; r++)
		for (unsigned i = 0; op->regions[r].block && i < op->regions[r].block->n_args; i++)
			value_of(s, op->regions[r].block->args[i])->type =
				op->regions[r].block->args[i]->type;
	if (!s->is_whole && op->op == TC_CONCATENATE)
		note_join(s, op);
	else if (!s->is_whole && op->op == TC_CONVOLUTION)
		shard_take_padding(s, op);
	else if (!s->is_whole && op->op == TC_PAD) {
		shard_pad_uncut(s, op);
		note_slice(s, op);
	} else if (!s->is_whole && op->op == TC_SLICE)
		note_slice(s, op);
	/* A call's own rule says how shardings go through it, not that it can run on parts. */
	if (!s->is_whole && !tc_attr(op, "sharding_rule"))
		s->rule[op->id] = spmd_rule(s->c, op, &when);
}

void tc_pass_shard(struct tc_ctx *c)
{
	struct shard s = { .c = c, .is_whole = !c->options->level };
	struct spmd *spmd;

	if (c->options->partitions <= 1)
		return;
	tc_set_int(c, c->module, "num_partitions", TC_ATTR_INT, c->options->partitions);
	spmd = spmd_open(c);
	spmd_prepare(spmd);
	s.p = spmd_propagate(spmd);
	s.mesh = s.p->mesh;
	shard_places(&s);
	s.n_values = s.room = c->next_id;
	s.of = arena_array(&c->arena, s.n_values, sizeof(*s.of));
	s.rule = arena_array(&c->arena, s.n_values, sizeof(*s.rule));
	s.roll = arena_array(&c->arena, s.n_values, sizeof(*s.roll));
	s.is_late = arena_array(&c->arena, s.n_values, sizeof(*s.is_late));
	s.taken = arena_array(&c->arena, s.n_values, sizeof(*s.taken));
	if (!s.is_whole)
		tc_walk(c->module, shard_tidy_join, &s);
	tc_walk(c->module, note_op, &s);
	if (shard_even(&s))
		tc_walk(c->module, note_op, &s);
	share_main(&s, tc_main(c));
	shard_add_first(&s, tc_main(c));
}
