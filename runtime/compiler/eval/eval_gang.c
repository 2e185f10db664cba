/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collectives of the reference evaluator (passes.h): each is a function over what the members of
 * a group bring.
 *
 * Every member runs its own reading of the program in its own thread, so the only things
 * shared are the seats. To meet, a member lays copies of its operands on its seat and waits
 * until all of its group sit before the same op (ARRIVED). Then all read each other's
 * (READING), each makes its own results, and nobody leaves before all have read (HAS_READ).
 * The lock guards everything of a seat but the copies, which change only before ARRIVED and
 * after HAS_READ.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/compiler/eval/eval.h"
#include "runtime/compiler/passes.h"

enum state { RUNS, ARRIVED, READING, HAS_READ, ENDED };

struct tc_seat {
	struct tc_gang *gang;
	unsigned member;
	enum state state;
	uint32_t op;			/* its id, from ARRIVED on */
	const char *name, *where;	/* of it, for messages: the member's arena holds them */
	unsigned n;
	void **data;			/* operands' bytes */
};

struct tc_gang {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	unsigned n, partitions;
	bool has_failed;
	struct err err;			/* what failed first */
	struct tc_seat seat[];
};

/* ---- the gang ---- */

int tc_gang_create(unsigned n, unsigned partitions, struct tc_gang **out, struct err *err)
{
	struct tc_gang *g = calloc(1, sizeof(*g) + n * sizeof(*g->seat));

	if (!g)
		return err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory for %u members", n);
	pthread_mutex_init(&g->lock, NULL);
	pthread_cond_init(&g->changed, NULL);
	g->n = n;
	g->partitions = partitions;
	for (unsigned m = 0; m < n; m++)
		g->seat[m] = (struct tc_seat){ .gang = g, .member = m };
	*out = g;
	return 0;
}

static void clear(struct tc_seat *s)
{
	for (unsigned i = 0; s->data && i < s->n; i++)
		free(s->data[i]);
	free(s->data);
	s->data = NULL;
	s->n = 0;
}

void tc_gang_destroy(struct tc_gang *g)
{
	if (!g)
		return;
	for (unsigned m = 0; m < g->n; m++)
		clear(&g->seat[m]);
	pthread_cond_destroy(&g->changed);
	pthread_mutex_destroy(&g->lock);
	free(g);
}

struct tc_seat *tc_gang_seat(struct tc_gang *g, unsigned member)
{
	return &g->seat[member];
}

static void fail(struct tc_gang *g, int code, const char *text)
{
	if (!g->has_failed)
		err_set(&g->err, code, "%s", text);
	g->has_failed = true;
	pthread_cond_broadcast(&g->changed);
}

/* If all who have not ended wait for each other, they would for ever. */
static void check_progress(struct tc_gang *g)
{
	const struct tc_seat *waits = NULL, *other = NULL;
	char text[ERR_MSG_BYTES];

	for (unsigned m = 0; m < g->n; m++) {
		const struct tc_seat *s = &g->seat[m];

		if (s->state != ARRIVED && s->state != ENDED)
			return;
		if (s->state == ARRIVED && !waits)
			waits = s;
		else if (waits && (s->state == ENDED || s->op != waits->op) && !other)
			other = s;
		else if (s->state == ENDED && !other)
			other = s;
	}
	if (!waits)
		return;
	if (other && other->state == ARRIVED)
		snprintf(text, sizeof(text), "members disagree about what they meet in: member "
			 "%u waits in %s%s%.60s, member %u in %s%s%.60s", waits->member,
			 waits->name, *waits->where ? " at " : "", waits->where, other->member,
			 other->name, *other->where ? " at " : "", other->where);
	else
		snprintf(text, sizeof(text), "member %u waits in %s%s%.60s for others, and "
			 "member %u has ended", waits->member, waits->name,
			 *waits->where ? " at " : "", waits->where, other ? other->member : 0);
	fail(g, ERR_INVALID_ARGUMENT, text);
}

void tc_gang_leave(struct tc_seat *s, int code, const struct err *err)
{
	struct tc_gang *g = s->gang;
	char text[ERR_MSG_BYTES + 32];

	pthread_mutex_lock(&g->lock);
	s->state = ENDED;
	if (code) {
		snprintf(text, sizeof(text), "member %u: %s", s->member, err->msg);
		fail(g, code, text);
	} else {
		check_progress(g);
	}
	pthread_mutex_unlock(&g->lock);
}

int tc_gang_result(const struct tc_gang *g, struct err *err)
{
	return g->has_failed ? err_set(err, g->err.code, "%s", g->err.msg) : 0;
}

/* ---- meeting ---- */

/* The members that a member meets, itself among them, and its place. */
struct group {
	const int64_t *member;		/* by place; -1: nobody */
	int64_t n, place;
};

static bool all_are(const struct tc_gang *g, const struct group *with, enum state state,
		    uint32_t op)
{
	for (int64_t i = 0; i < with->n; i++)
		if (with->member[i] >= 0 && (g->seat[with->member[i]].state != state ||
					     g->seat[with->member[i]].op != op))
			return false;
	return true;
}

static void move_on(struct tc_gang *g, const struct group *with, enum state state)
{
	for (int64_t i = 0; i < with->n; i++)
		if (with->member[i] >= 0)
			g->seat[with->member[i]].state = state;
	pthread_cond_broadcast(&g->changed);
}

/* Comes to `state` and waits until all of the group have, which then are in the next one. */
static void wait_for_all(struct eval *e, const struct group *with, enum state state,
			 enum state next)
{
	struct tc_seat *own = e->c->seat;
	struct tc_gang *g = own->gang;
	struct err err;
	bool has_failed;

	pthread_mutex_lock(&g->lock);
	own->state = state;
	own->op = e->op->id;
	if (all_are(g, with, state, own->op))
		move_on(g, with, next);
	else
		check_progress(g);
	while (own->state == state && !g->has_failed)
		pthread_cond_wait(&g->changed, &g->lock);
	has_failed = g->has_failed;
	err = g->err;
	pthread_mutex_unlock(&g->lock);
	if (has_failed)
		tc_fail(e->c, err.code, NULL, "%s", err.msg);
}

static void lay_out(struct eval *e, const struct tc_op *op)
{
	struct tc_seat *s = e->c->seat;

	s->name = tc_op_info(op->op)->text;
	s->where = op->where ? op->where : "";
	s->data = calloc(op->n_operands + 1u, sizeof(*s->data));
	for (unsigned i = 0; s->data && i < op->n_operands; i++) {
		const struct eval_array *a = tc_eval_in(e, op, i);

		s->data[i] = malloc(a->bytes + 1);
		s->n = i + 1;
		if (!s->data[i])
			break;
		memcpy(s->data[i], a->data, a->bytes);
	}
	if (!s->data || (s->n && !s->data[s->n - 1]))
		tc_fail(e->c, ERR_RESOURCE_EXHAUSTED, op, "the host has no memory for copies of "
			"its operands");
}

static void begin_meeting(struct eval *e, const struct tc_op *op, const struct group *with)
{
	lay_out(e, op);
	wait_for_all(e, with, ARRIVED, READING);
}

static void end_meeting(struct eval *e, const struct group *with)
{
	wait_for_all(e, with, HAS_READ, RUNS);
	clear(e->c->seat);
}

/* Operand i of the member at a place of the group, who is there. */
static const unsigned char *brought(struct eval *e, const struct group *g, int64_t place,
				    unsigned i)
{
	return e->c->seat->gang->seat[g->member[place]].data[i];
}

static struct group find_group(struct eval *e, const struct tc_op *op)
{
	struct group g = { .n = tc_attr_int(op, "group_size", 0), .place = -1 };
	unsigned n;
	const int64_t *ids = tc_attr_ints(op, "replica_groups", &n);

	for (unsigned i = 0; i < n; i++)
		if (ids[i] == e->c->seat->member) {
			g.place = i % g.n;
			g.member = ids + i - g.place;
		}
	for (unsigned i = 0; i < n; i++)
		if (ids[i] >= e->c->seat->gang->n)
			EVAL_BAD(e, "it names member %" PRId64 " of %u", ids[i],
				 e->c->seat->gang->n);
	return g;
}

static int64_t count_present(const struct group *g)
{
	int64_t n = 0;

	for (int64_t i = 0; i < g->n; i++)
		n += g->member[i] >= 0;
	return n;
}

/* ---- the ops ---- */

/* A sum of floats narrower than f32 is made in f32 and rounded once, as XLA does. */
static bool is_wide_sum(const struct tc_op *op, unsigned elem)
{
	const struct tc_block *b = op->regions[0].block;
	const struct tc_op *f = b->first;

	return elem_class(elem) == ELEM_CLASS_FLOAT && elem_bits(elem) < 32 && f != b->last &&
	       (f->op == TC_ADD || f->op == TC_MULTIPLY) && f->next == b->last &&
	       tc_in(b->last, 0)->def == f &&
	       ((tc_in(f, 0) == b->args[0] && tc_in(f, 1) == b->args[1]) ||
		(tc_in(f, 0) == b->args[1] && tc_in(f, 1) == b->args[0]));
}

static void fold_wide(struct eval *e, const struct group *g, unsigned i, unsigned elem,
		      size_t at, void *out)
{
	bool adds = e->op->regions[0].block->first->op == TC_ADD;
	float acc = 0;

	for (int64_t p = 0; p < g->n; p++) {
		float x;

		if (g->member[p] < 0)
			continue;
		x = (float)tc_num_load(elem, brought(e, g, p, i) + at).re;
		acc = !p ? x : adds ? acc + x : acc * x;
	}
	tc_num_store(elem, out, (struct num){ .re = acc });
}

/* The byte `at` of operand i, of all members in the order of their places. */
static void fold(struct eval *e, const struct group *g, unsigned i, unsigned elem, size_t at,
		 void *out)
{
	const struct tc_block *b = e->op->regions[0].block;

	if (is_wide_sum(e->op, elem)) {
		fold_wide(e, g, i, elem, at, out);
		return;
	}
	memcpy(out, brought(e, g, 0, i) + at, elem_bytes(elem));
	for (int64_t p = 1; p < g->n; p++) {
		const void *in[2] = { out, NULL };

		if (g->member[p] < 0)
			continue;
		in[1] = brought(e, g, p, i) + at;
		tc_eval_apply(e, b, in, &out);
	}
}

static void all_reduce(struct eval *e, const struct tc_op *op, const struct group *g)
{
	for (unsigned i = 0; i < op->n_results; i++) {
		struct eval_array *out = tc_eval_out(e, op, i);
		size_t each = elem_bytes(out->type->elem);

		for (int64_t k = 0; k < out->type->count; k++)
			fold(e, g, i, out->type->elem, (size_t)k * each, tc_eval_at(out, k));
	}
}

static void reduce_scatter(struct eval *e, const struct tc_op *op, const struct group *g)
{
	struct eval_array *out = tc_eval_out(e, op, 0);
	const struct tc_type *in = tc_in(op, 0)->type, *t = out->type;
	int64_t d = tc_attr_int(op, "scatter_dimension", 0), idx[TC_MAX_RANK] = { 0 };
	int64_t from[TC_MAX_RANK];

	for (int64_t k = 0; k < t->count; k++) {
		memcpy(from, idx, sizeof(from));
		from[d] += g->place * t->dim[d];
		fold(e, g, 0, t->elem, (size_t)tc_eval_linear(in, from) * elem_bytes(t->elem),
		     tc_eval_at(out, k));
		tc_eval_step(t->rank, t->dim, idx);
	}
}

static void all_gather(struct eval *e, const struct tc_op *op, const struct group *g)
{
	int64_t d = tc_attr_int(op, "all_gather_dim", 0);

	for (unsigned i = 0; i < op->n_results; i++) {
		struct eval_array *out = tc_eval_out(e, op, i);
		const struct tc_type *in = tc_in(op, i)->type, *t = out->type;
		int64_t idx[TC_MAX_RANK] = { 0 }, from[TC_MAX_RANK];
		size_t each = elem_bytes(t->elem);

		for (int64_t k = 0; k < t->count; k++) {
			memcpy(from, idx, sizeof(from));
			from[d] %= in->dim[d];
			memcpy(tc_eval_at(out, k), brought(e, g, idx[d] / in->dim[d], i) +
			       (size_t)tc_eval_linear(in, from) * each, each);
			tc_eval_step(t->rank, t->dim, idx);
		}
	}
}

static void all_to_all(struct eval *e, const struct tc_op *op, const struct group *g)
{
	int64_t split = tc_attr_int(op, "split_dimension", 0);
	int64_t join = tc_attr_int(op, "concat_dimension", 0);

	for (unsigned i = 0; i < op->n_results; i++) {
		struct eval_array *out = tc_eval_out(e, op, i);
		const struct tc_type *in = tc_in(op, i)->type, *t = out->type;
		int64_t idx[TC_MAX_RANK] = { 0 }, from[TC_MAX_RANK];
		/* Of one part, in the dim along which parts are joined. */
		int64_t wide = split == join ? in->dim[join] / g->n : in->dim[join];
		size_t each = elem_bytes(t->elem);

		for (int64_t k = 0; k < t->count; k++) {
			memcpy(from, idx, sizeof(from));
			from[join] %= wide;
			from[split] += g->place * (in->dim[split] / g->n);
			memcpy(tc_eval_at(out, k), brought(e, g, idx[join] / wide, i) +
			       (size_t)tc_eval_linear(in, from) * each, each);
			tc_eval_step(t->rank, t->dim, idx);
		}
	}
}

static void exchange(struct eval *e, const struct tc_op *op, const struct group *g)
{
	struct eval_array *out = tc_eval_out(e, op, 0);
	bool is_same = tc_attr_int(op, "is_same", 0);
	size_t part = out->bytes / (size_t)g->n;

	for (int64_t p = 0; p < g->n; p++)
		if (g->member[p] >= 0)
			memcpy(out->data + (size_t)p * part, brought(e, g, p, 0) +
			       (is_same ? 0 : (size_t)g->place * part), part);
}

static void broadcast(struct eval *e, const struct tc_op *op, const struct group *g)
{
	for (unsigned i = 0; i < op->n_results; i++) {
		struct eval_array *out = tc_eval_out(e, op, i);

		memcpy(out->data, brought(e, g, 0, i), out->bytes);
	}
}

/* Who sends and who is sent to, as far as one waits for the other: all whose pairs hang
 * together with the member's own. */
static struct group find_partners(struct eval *e, const struct tc_op *op, int64_t *source)
{
	struct tc_seat *own = e->c->seat;
	unsigned n;
	const int64_t *pair = tc_attr_ints(op, "source_target_pairs", &n);
	bool *in = tc_eval_scratch(e, own->gang->n, sizeof(*in)), grows = true;
	int64_t *list = tc_eval_scratch(e, own->gang->n, sizeof(*list));
	struct group g = { .member = list };

	*source = -1;
	in[own->member] = true;
	for (unsigned i = 0; i < n; i++)
		if (pair[i] >= own->gang->n)
			EVAL_BAD(e, "it names member %" PRId64 " of %u", pair[i], own->gang->n);
	for (; grows;) {
		grows = false;
		for (unsigned i = 0; i < n; i += 2)
			if (in[pair[i]] != in[pair[i + 1]])
				grows = in[pair[i]] = in[pair[i + 1]] = true;
	}
	for (unsigned m = 0; m < own->gang->n; m++)
		if (in[m])
			list[g.n++] = m;
	for (unsigned i = 0; i < n; i += 2)
		if (pair[i + 1] == own->member)
			*source = pair[i];
	tc_eval_release(e, in);
	return g;
}

static void permute(struct eval *e, const struct tc_op *op)
{
	int64_t source;
	struct group g = find_partners(e, op, &source);

	begin_meeting(e, op, &g);
	for (unsigned i = 0; i < op->n_results; i++) {
		struct eval_array *out = tc_eval_out(e, op, i);

		/* Else it is 0, which f8E8M0FNU has as NaN alone. */
		if (source >= 0)
			memcpy(out->data, e->c->seat->gang->seat[source].data[i], out->bytes);
		else if (tc_out(op, i)->type->elem == ELEM_F8E8M0FNU)
			memset(out->data, 0xff, out->bytes);
	}
	end_meeting(e, &g);
	tc_eval_release(e, (void *)(uintptr_t)g.member);
}

/* In none of the groups: zeros. */
static void stay_out(struct eval *e, const struct tc_op *op)
{
	if (op->op != TC_COLLECTIVE_BROADCAST)
		EVAL_BAD(e, "member %u is in none of its groups", e->c->seat->member);
	for (unsigned i = 0; i < op->n_results; i++)
		tc_eval_out(e, op, i);
}

void tc_eval_collective(struct eval *e, const struct tc_op *op)
{
	struct group g;

	if (!e->c->seat)
		tc_fail(e->c, ERR_UNIMPLEMENTED, op, "several devices meet in it: it is evaluated "
			"for all of them together only");
	if (op->op == TC_COLLECTIVE_PERMUTE) {
		permute(e, op);
		return;
	}
	g = find_group(e, op);
	if (g.place < 0) {
		stay_out(e, op);
		return;
	}
	if (op->op != TC_ALL_REDUCE && op->op != TC_COLLECTIVE_BROADCAST &&
	    op->op != TC_EXCHANGE && count_present(&g) != g.n)
		EVAL_BAD(e, "its groups are of different sizes");
	begin_meeting(e, op, &g);
	switch (op->op) {
	case TC_ALL_REDUCE: all_reduce(e, op, &g); break;
	case TC_ALL_GATHER: all_gather(e, op, &g); break;
	case TC_REDUCE_SCATTER: reduce_scatter(e, op, &g); break;
	case TC_ALL_TO_ALL: all_to_all(e, op, &g); break;
	case TC_EXCHANGE: exchange(e, op, &g); break;
	default: broadcast(e, op, &g); break;
	}
	end_meeting(e, &g);
}

void tc_eval_own_number(struct eval *e, const struct tc_op *op)
{
	const struct tc_seat *s = e->c->seat;
	struct eval_array *out = tc_eval_out(e, op, 0);
	struct num x = { 0 };

	if (s)
		x.i = op->op == TC_REPLICA_ID ? s->member / s->gang->partitions :
		      s->member % s->gang->partitions;
	tc_num_store(out->type->elem, out->data, x);
}
