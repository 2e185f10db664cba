/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of a dim that is cut, given to the members that need them and to no others: halves of a
 * dim, what is joined along it, windows whose parts are of another length than the operand's.
 *
 * Members meet in *rounds*, each a collective_permute in which a member gives one *piece* to one
 * other at most, and gets one at most; a round is as long as its longest piece. Pieces are edges of
 * a graph between those that give and those that get; it has no more rounds than the busiest member
 * has pieces, on either side (Kőnig). Where that is too many, as of a dim that is split into as
 * many parts as there are members, they meet once, in an all_to_all: each gives each other as many
 * rows. Behind its own rows a member puts what it got, and takes from
 * there by *runs*, which begin and end for all members at the same rows of what is needed.
 */
#include <stdlib.h>
#include <string.h>

#include "runtime/compiler/spmd/shard_internal.h"

#define MOST_PARTS 128
#define MOST_PIECES(parts) (2 * (size_t)(parts) + 8)	/* that a member gets */
#define MOST_RUNS 24
#define MOST_ROUNDS 4
#define MOST_JOINED 16u		/* by a join of joins */
#define MOST_ROWS ((int64_t)1 << 30)	/* counted in s32 */

/* Rows at .. at + rows of what member `from` has, for `to`. */
struct piece { int64_t from, to, at, rows; unsigned round; };

struct shard_exchange {
	int64_t parts;
	const struct shard_source *source;
	const struct shard_need *need;
	unsigned n_sources, n_needs;
	struct piece *piece;
	size_t n_pieces, *first;	/* by member: of those that it gets */
	bool is_all;		/* what would be rounds are parts of what each gives each other */
	unsigned n_rounds;
	int64_t size[MOST_ROUNDS];	/* of a round */
	int64_t cut[SHARD_MOST_NEEDS][MOST_RUNS + 1];	/* where runs begin */
	unsigned n_runs[SHARD_MOST_NEEDS];
	bool is_possible;
	struct shard_exchange *next;	/* planned before it */
};

/* ---- who has what ---- */

/* Rows up to `end` that are next to each other where they are: of member `from`, from row `at` of
 * all that it has; from -1: of none. */
struct run { int64_t end, from, at; };

/* Of the rows row .. end that member p needs the first ones. */
static struct run run_at(const struct shard_exchange *e, int64_t p, int64_t row, int64_t end)
{
	struct run r = { end, -1, 0 };
	int64_t before = 0;

	for (unsigned i = 0; i < e->n_sources; i++) {
		const struct shard_source *x = &e->source[i];
		int64_t in = row - x->first, at = in + x->skip, last;

		if (in < 0) {
			r.end = end < x->first ? end : x->first;
			return r;
		}
		if (in < x->rows) {
			r.from = x->is_cut ? at / x->part : p;
			r.at = before + (x->is_cut ? at % x->part : at);
			last = x->first + x->rows;
			if (x->is_cut && x->first - x->skip + (r.from + 1) * x->part < last)
				last = x->first - x->skip + (r.from + 1) * x->part;
			r.end = end < last ? end : last;
			return r;
		}
		before += x->part;
	}
	return r;
}

static int64_t own_rows(const struct shard_exchange *e)
{
	int64_t n = 0;

	for (unsigned i = 0; i < e->n_sources; i++)
		n += e->source[i].part;
	return n;
}

/* ---- pieces ---- */

/* Adds rows to what `to` gets, joined with those that they touch; false: they are too many. */
static bool add_piece(struct shard_exchange *e, int64_t from, int64_t to, int64_t at, int64_t rows)
{
	int64_t end = at + rows;

	for (size_t i = e->first[to]; i < e->n_pieces; i++) {
		struct piece *x = &e->piece[i];

		if (x->from != from || at > x->at + x->rows || end < x->at)
			continue;
		at = x->at < at ? x->at : at;
		end = x->at + x->rows > end ? x->at + x->rows : end;
		*x = e->piece[--e->n_pieces];
		i = e->first[to] - 1;
	}
	if (e->n_pieces - e->first[to] == MOST_PIECES(e->parts))
		return false;
	e->piece[e->n_pieces++] = (struct piece){ from, to, at, end - at, 0 };
	return true;
}

/* Adds a place where runs of a need begin, in order. */
static bool add_cut(struct shard_exchange *e, unsigned t, int64_t at)
{
	int64_t *cut = e->cut[t];
	unsigned i = 0, n = e->n_runs[t];

	while (i < n && cut[i] < at)
		i++;
	if (i < n && cut[i] == at)
		return true;
	if (n == MOST_RUNS)
		return false;
	memmove(cut + i + 1, cut + i, (n - i) * sizeof(*cut));
	cut[i] = at;
	e->n_runs[t]++;
	return true;
}

static bool find_pieces(struct shard_exchange *e)
{
	for (int64_t p = 0; p < e->parts; p++) {
		e->first[p] = e->n_pieces;
		for (unsigned t = 0; t < e->n_needs; t++) {
			int64_t row = e->need[t].start + p * e->need[t].step;
			int64_t begin = row, end = row + e->need[t].span;

			while (row < end) {
				struct run r = run_at(e, p, row, end);

				if (!add_cut(e, t, row - begin) ||
				    (r.from >= 0 && r.from != p &&
				     !add_piece(e, r.from, p, r.at, r.end - row)))
					return false;
				row = r.end;
			}
		}
	}
	e->first[e->parts] = e->n_pieces;
	for (unsigned t = 0; t < e->n_needs; t++)
		e->cut[t][e->n_runs[t]] = e->need[t].span;
	return true;
}

/* ---- rounds ---- */

/* Who gives and gets which piece in a round; NULL: none. */
struct rounds {
	int64_t parts;
	struct piece **gives, **gets;	/* [round][member] */
	struct piece **way;
};

static struct piece **giver(const struct rounds *k, unsigned round, int64_t p)
{
	return &k->gives[round * k->parts + p];
}

static struct piece **getter(const struct rounds *k, unsigned round, int64_t p)
{
	return &k->gets[round * k->parts + p];
}

static void place(const struct rounds *k, struct piece *x, unsigned round)
{
	x->round = round;
	*giver(k, round, x->from) = x;
	*getter(k, round, x->to) = x;
}

/* Makes round a, in which `to` gets something, one in which it does not, by b, in which it gets
 * nothing: all who are joined to it by pieces of both change rounds. */
static void make_free(const struct rounds *k, int64_t to, unsigned a, unsigned b)
{
	struct piece *x = *getter(k, a, to);
	size_t n = 0;

	while (x) {
		k->way[n++] = x;
		x = n % 2 ? *giver(k, b, x->from) : *getter(k, a, x->to);
	}
	for (size_t i = 0; i < n; i++) {
		*giver(k, k->way[i]->round, k->way[i]->from) = NULL;
		*getter(k, k->way[i]->round, k->way[i]->to) = NULL;
	}
	for (size_t i = 0; i < n; i++)
		place(k, k->way[i], k->way[i]->round == a ? b : a);
}

static void find_round(const struct rounds *k, struct piece *x, unsigned n)
{
	unsigned a = 0, b = 0;

	while (a < n && (*giver(k, a, x->from) || *getter(k, a, x->to)))
		a++;
	if (a == n) {
		for (a = 0; *giver(k, a, x->from); a++)
			;
		while (*getter(k, b, x->to))
			b++;
		make_free(k, x->to, a, b);
	}
	place(k, x, a);
}

/* Long ones first. */
static int by_rows(const void *a, const void *b)
{
	const struct piece *x = *(struct piece *const *)a, *y = *(struct piece *const *)b;

	if (x->rows != y->rows)
		return x->rows > y->rows ? -1 : 1;
	return x < y ? -1 : x > y;
}

/* How many rounds it takes. */
static unsigned count_rounds(struct arena *arena, const struct shard_exchange *e)
{
	unsigned *gives = arena_array(arena, (size_t)e->parts, sizeof(*gives)), n = 0;

	for (size_t i = 0; i < e->n_pieces; i++) {
		unsigned gets = (unsigned)(e->first[e->piece[i].to + 1] -
					   e->first[e->piece[i].to]);
		unsigned given = ++gives[e->piece[i].from];

		n = given > n ? given : n;
		n = gets > n ? gets : n;
	}
	return n;
}

static void find_rounds(struct arena *arena, struct shard_exchange *e)
{
	size_t n = (size_t)e->parts * e->n_rounds;
	struct piece **order = arena_array(arena, e->n_pieces, sizeof(*order));
	struct rounds k = { .parts = e->parts };

	for (size_t i = 0; i < e->n_pieces; i++)
		order[i] = &e->piece[i];
	k.gives = arena_array(arena, n, sizeof(*k.gives));
	k.gets = arena_array(arena, n, sizeof(*k.gets));
	k.way = arena_array(arena, e->n_pieces, sizeof(*k.way));
	qsort(order, e->n_pieces, sizeof(*order), by_rows);
	for (size_t i = 0; i < e->n_pieces; i++)
		find_round(&k, order[i], e->n_rounds);
}

/* The pieces that one gives another one in order, in as many rounds; false: they are too many. */
static bool number_pieces(struct shard_exchange *e)
{
	e->is_all = true;
	e->n_rounds = 0;
	for (size_t i = 0; i < e->n_pieces; i++) {
		struct piece *x = &e->piece[i];

		for (size_t j = e->first[x->to]; j < e->first[x->to + 1]; j++)
			x->round += e->piece[j].from == x->from && e->piece[j].at < x->at;
		if (x->round >= MOST_ROUNDS)
			return false;
		e->n_rounds = x->round >= e->n_rounds ? x->round + 1 : e->n_rounds;
	}
	return true;
}

static bool plan_rounds(struct arena *arena, struct shard_exchange *e)
{
	e->n_rounds = count_rounds(arena, e);
	if (e->n_rounds <= MOST_ROUNDS)
		find_rounds(arena, e);
	else if (!number_pieces(e))
		return false;
	for (size_t i = 0; i < e->n_pieces; i++)
		if (e->piece[i].rows > e->size[e->piece[i].round])
			e->size[e->piece[i].round] = e->piece[i].rows;
	return true;
}

/* ---- plans ---- */

static bool is_planned(const struct shard_exchange *e, const struct shard_exchange *for_what)
{
	if (e->parts != for_what->parts || e->n_sources != for_what->n_sources ||
	    e->n_needs != for_what->n_needs)
		return false;
	for (unsigned i = 0; i < e->n_sources; i++) {
		const struct shard_source *x = &e->source[i], *y = &for_what->source[i];

		if (x->first != y->first || x->rows != y->rows || x->skip != y->skip ||
		    x->part != y->part || x->is_cut != y->is_cut)
			return false;
	}
	for (unsigned i = 0; i < e->n_needs; i++) {
		const struct shard_need *x = &e->need[i], *y = &for_what->need[i];

		if (x->start != y->start || x->step != y->step || x->span != y->span)
			return false;
	}
	return true;
}

/* Pieces are found where there is room for the most, and kept as many as there are. */
static bool plan(struct shard *s, struct shard_exchange *e)
{
	struct arena *arena = &s->c->arena;
	size_t most = (size_t)e->parts * MOST_PIECES(e->parts);

	if (most > s->n_pieces) {
		s->pieces = arena_array(arena, most, sizeof(*s->pieces));
		s->n_pieces = most;
	}
	e->piece = s->pieces;
	e->first = arena_array(arena, (size_t)e->parts + 1, sizeof(*e->first));
	if (!find_pieces(e))
		return false;
	e->piece = arena_copy(arena, e->piece, e->n_pieces * sizeof(*e->piece));
	return plan_rounds(arena, e);
}

struct shard_exchange *shard_plan_exchange(struct shard *s, int64_t parts,
					   const struct shard_source *source, unsigned n_sources,
					   const struct shard_need *need, unsigned n_needs)
{
	struct arena *arena = &s->c->arena;
	struct shard_exchange is = {
		.parts = parts, .n_sources = n_sources, .n_needs = n_needs,
		.source = source, .need = need,
	}, *e;

	if (parts > MOST_PARTS || n_needs > SHARD_MOST_NEEDS)
		return NULL;
	for (e = s->exchanges; e; e = e->next)
		if (is_planned(e, &is))
			return e->is_possible ? e : NULL;
	e = arena_alloc(arena, sizeof(*e));
	*e = is;
	e->source = arena_copy(arena, source, n_sources * sizeof(*source));
	e->need = arena_copy(arena, need, n_needs * sizeof(*need));
	e->next = s->exchanges;
	s->exchanges = e;
	e->is_possible = plan(s, e);
	return e->is_possible ? e : NULL;
}

int64_t shard_row_of(const struct tc_type *t, unsigned d)
{
	return t->dim[d] ? t->bytes / t->dim[d] : 0;
}

unsigned shard_rounds(const struct shard_exchange *e)
{
	return e->is_all ? 1 : e->n_rounds;
}

/* The rows of all rounds. */
static int64_t rows_of(const struct shard_exchange *e)
{
	int64_t n = 0;

	for (unsigned i = 0; i < e->n_rounds; i++)
		n += e->size[i];
	return n;
}

int64_t shard_moved(const struct shard_exchange *e)
{
	return rows_of(e) * (e->is_all ? e->parts - 1 : 1);
}

bool shard_is_worth(const struct shard_exchange *e, int64_t row, int64_t meetings, int64_t moved)
{
	int64_t more = (int64_t)shard_rounds(e) - meetings, less = moved - shard_moved(e);

	if (less < 0 || (!less && more >= 0))
		return false;
	return more <= 0 || less * row >= more * SHARD_LEAST_SAVED;
}

struct shard_exchange *shard_plan_shared(struct shard *s, int64_t parts, int64_t rows,
					 const struct shard_need *need, unsigned n,
					 int64_t meetings, int64_t moved)
{
	const struct shard_source all = { 0, rows, 0, rows / parts, true };
	struct shard_exchange *e = n > 1 && meetings ?
		shard_plan_exchange(s, parts, &all, 1, need, n) : NULL;

	return e && shard_rounds(e) <= meetings && shard_moved(e) <= moved &&
	       shard_rounds(e) + shard_moved(e) < meetings + moved ? e : NULL;
}

/* ---- what rows are moved by ---- */

struct tc_value *shard_pad_zeros(struct shard *s, const struct tc_build *b, struct tc_value *x,
				 unsigned d, int64_t low, int64_t high)
{
	const struct tc_type *scalar;
	int64_t edge[2][TC_MAX_RANK] = { { 0 } }, none[TC_MAX_RANK] = { 0 };
	enum elem elem = (enum elem)x->type->elem;

	if (!low && !high)
		return x;
	edge[0][d] = low;
	edge[1][d] = high;
	/* It has no 0, but bits that are. */
	if (elem == ELEM_F8E8M0FNU)
		x = tc_build(b, TC_BITCAST_CONVERT, tc_with_elem(s->c, x->type, ELEM_U8), 1, &x);
	scalar = tc_tensor(s->c, (enum elem)x->type->elem, 0, NULL);
	x = tc_build_pad(b, x, tc_build_number(b, scalar, 0), edge[0], edge[1], none);
	if (elem == ELEM_F8E8M0FNU)
		x = tc_build(b, TC_BITCAST_CONVERT, tc_with_elem(s->c, x->type, elem), 1, &x);
	return x;
}

struct tc_value *shard_at_place(struct shard *s, const struct tc_build *b,
				const struct spmd_axes *a, int64_t step, int64_t first)
{
	const struct tc_type *s32 = tc_tensor(s->c, ELEM_S32, 0, NULL);
	struct tc_value *v = tc_build2(b, TC_MULTIPLY, shard_index_of(s, a),
				       tc_build_number(b, s32, (double)step));

	return tc_build2(b, TC_ADD, v, tc_build_number(b, s32, (double)first));
}

/* v of the member at place from[place] along the axes; -1: zeros. */
static struct tc_value *pass(struct shard *s, const struct tc_build *b, struct tc_value *v,
			     const struct spmd_axes *a, const int64_t *from)
{
	int64_t n = s->partitions;
	int64_t *pairs = arena_array(&s->c->arena, 2 * (size_t)n * s->replicas, sizeof(*pairs));
	unsigned k = 0;

	for (uint32_t r = 0; r < s->replicas; r++)
		for (uint32_t p = 0; p < n; p++) {
			int64_t at = from[shard_place(s, p, a)];

			if (at < 0)
				continue;
			pairs[k++] = r * n + shard_other(s, p, a, (uint32_t)at);
			pairs[k++] = r * n + p;
		}
	v = tc_build(b, TC_COLLECTIVE_PERMUTE, v->type, 1, &v);
	tc_set_ints(s->c, v->def, "source_target_pairs", pairs, k);
	tc_set_int(s->c, v->def, "channel_id", TC_ATTR_INT, 1);
	tc_set_int(s->c, v->def, "use_global_device_ids", TC_ATTR_BOOL, 1);
	return v;
}

struct tc_value *shard_pass_on(struct shard *s, const struct tc_build *b, struct tc_value *v,
			       const struct spmd_axes *a, int64_t by, enum shard_way way)
{
	int64_t parts = spmd_size(a);
	int64_t *from = arena_array(&s->c->arena, (size_t)parts, sizeof(*from));

	for (int64_t p = 0; p < parts; p++) {
		from[p] = way == SHARD_TURNED ? parts - 1 - p : p + by;
		if (way == SHARD_ROUND)
			from[p] %= parts;
		if (from[p] >= parts)
			from[p] = -1;
	}
	return pass(s, b, v, a, from);
}

/* ---- the ops ---- */

/* What is being built. */
struct work {
	struct shard *s;
	const struct tc_build *b;
	const struct shard_exchange *e;
	const struct spmd_axes *a;
	unsigned d;
	int64_t low, high;	/* of the own rows those that are needed */
	int64_t *start;		/* by member */
};

/* Rows of dim d of v from where start says for each member. */
static struct tc_value *rows_at(const struct work *k, struct tc_value *v, int64_t size)
{
	int64_t n = k->e->parts;
	struct tc_build top = { .c = k->s->c, .before = k->s->top, .where = "" };
	struct tc_value *at;
	int32_t *list;
	bool is_same = true;

	for (int64_t p = 0; p < n; p++)
		is_same &= k->start[p] == k->start[0];
	if (is_same)
		return v->type->dim[k->d] == size ? v :
		       tc_build_part(k->b, v, k->d, k->start[0], size);
	list = arena_array(&k->s->c->arena, (size_t)n, sizeof(*list));
	for (int64_t p = 0; p < n; p++)
		list[p] = (int32_t)k->start[p];
	at = shard_index_of(k->s, k->a);
	at = tc_build_take(&top, tc_build_data(&top, tc_tensor(k->s->c, ELEM_S32, 1, &n), list),
			   0, at, 1);
	return tc_build_take(k->b, v, k->d, tc_build_reshape(&top, at, 0, NULL), size);
}

/* Where a piece begins in what is sent in its round, which is longer and not to end behind what
 * there is. */
static int64_t sent_from(const struct shard_exchange *e, const struct piece *x)
{
	int64_t most = own_rows(e) - e->size[x->round];

	return x->at < most ? x->at : most;
}

/* Where what members send in a round begins, `to` one of them or, -1, to whom they do; who sends
 * nothing sends what another one does. */
static void set_starts(const struct work *k, int64_t to, unsigned round)
{
	const struct shard_exchange *e = k->e;
	int64_t any = 0;

	for (int64_t p = 0; p < e->parts; p++)
		k->start[p] = -1;
	for (size_t i = 0; i < e->n_pieces; i++)
		if (e->piece[i].round == round && (to < 0 || e->piece[i].to == to))
			any = k->start[e->piece[i].from] = sent_from(e, &e->piece[i]);
	for (int64_t p = 0; p < e->parts; p++)
		if (k->start[p] < 0)
			k->start[p] = any;
}

static struct tc_value *do_round(struct work *k, struct tc_value *own, unsigned round)
{
	const struct shard_exchange *e = k->e;
	int64_t *from;

	from = arena_array(&k->s->c->arena, (size_t)e->parts, sizeof(*from));
	set_starts(k, -1, round);
	for (int64_t p = 0; p < e->parts; p++)
		from[p] = -1;
	for (size_t i = 0; i < e->n_pieces; i++)
		if (e->piece[i].round == round)
			from[e->piece[i].to] = e->piece[i].from;
	return pass(k->s, k->b, rows_at(k, own, e->size[round]), k->a, from);
}

/* What each gives each other, in its place. */
static struct tc_value *do_all(struct work *k, struct tc_value *own)
{
	const struct shard_exchange *e = k->e;
	struct tc_value **part = arena_array(&k->s->c->arena, (size_t)e->parts * e->n_rounds,
					     sizeof(*part)), *v;
	unsigned n = 0;

	for (int64_t to = 0; to < e->parts; to++)
		for (unsigned c = 0; c < e->n_rounds; c++) {
			set_starts(k, to, c);
			part[n++] = rows_at(k, own, e->size[c]);
		}
	v = tc_build_join(k->b, n, part, k->d);
	v = tc_build(k->b, TC_ALL_TO_ALL, v->type, 1, &v);
	tc_set_int(k->s->c, v->def, "split_dimension", TC_ATTR_INT, k->d);
	tc_set_int(k->s->c, v->def, "concat_dimension", TC_ATTR_INT, k->d);
	tc_set_int(k->s->c, v->def, "split_count", TC_ATTR_INT, e->parts);
	shard_set_groups(k->s, v->def, k->a);
	return v;
}

/* A run of member p, the i-th of a need. */
static struct run nth_run(const struct shard_exchange *e, int64_t p, unsigned t, unsigned i)
{
	int64_t row = e->need[t].start + p * e->need[t].step;

	return run_at(e, p, row + e->cut[t][i], row + e->cut[t][i + 1]);
}

/* Of the own rows those that any member needs itself; gives how many that nobody has are most. */
static int64_t find_own(struct work *k)
{
	const struct shard_exchange *e = k->e;
	int64_t none = 0;

	k->low = own_rows(e);
	k->high = 0;
	for (int64_t p = 0; p < e->parts; p++)
		for (unsigned t = 0; t < e->n_needs; t++)
			for (unsigned i = 0; i < e->n_runs[t]; i++) {
				struct run r = nth_run(e, p, t, i);
				int64_t rows = e->cut[t][i + 1] - e->cut[t][i];

				if (r.from < 0 && rows > none)
					none = rows;
				if (r.from != p)
					continue;
				k->low = r.at < k->low ? r.at : k->low;
				k->high = r.at + rows > k->high ? r.at + rows : k->high;
			}
	if (k->low > k->high)
		k->low = k->high;
	return none;
}

/* Where a run of member p is in its own rows and behind them those that it got, round by round. */
static int64_t find_run(const struct work *k, int64_t p, struct run r)
{
	const struct shard_exchange *e = k->e;
	int64_t at = k->high - k->low;
	size_t i;

	if (r.from == p)
		return r.at - k->low;
	if (r.from < 0)
		return at + rows_of(e) * (e->is_all ? e->parts : 1);
	for (i = e->first[p]; e->piece[i].from != r.from || r.at < e->piece[i].at ||
	     r.at >= e->piece[i].at + e->piece[i].rows; i++)
		;
	at += e->is_all ? r.from * rows_of(e) : 0;
	for (unsigned c = 0; c < e->piece[i].round; c++)
		at += e->size[c];
	return at + r.at - sent_from(e, &e->piece[i]);
}

static struct tc_value *take_need(struct work *k, struct tc_value *all, unsigned t)
{
	const struct shard_exchange *e = k->e;
	struct tc_value *run[MOST_RUNS];

	for (unsigned i = 0; i < e->n_runs[t]; i++) {
		for (int64_t p = 0; p < e->parts; p++)
			k->start[p] = find_run(k, p, nth_run(e, p, t, i));
		run[i] = rows_at(k, all, e->cut[t][i + 1] - e->cut[t][i]);
	}
	return e->n_runs[t] > 1 ? tc_build_join(k->b, e->n_runs[t], run, k->d) : run[0];
}

/* v with so many rows behind it that are the number, NULL: zeros. */
static struct tc_value *fill_up(const struct work *k, struct tc_value *v, struct tc_value *fill,
				int64_t rows)
{
	struct tc_value *part[2] = { v };

	if (!rows || !fill)
		return shard_pad_zeros(k->s, k->b, v, k->d, 0, rows);
	part[1] = tc_build_broadcast(k->b, fill, tc_with_dim(k->s->c, v->type, k->d, rows), NULL);
	return tc_build_join(k->b, 2, part, k->d);
}

void shard_exchange(struct shard *s, const struct tc_build *b, const struct shard_exchange *e,
		    unsigned d, const struct spmd_axes *a, struct tc_value *const *v,
		    struct tc_value *fill, struct tc_value **out)
{
	struct work k = { .s = s, .b = b, .e = e, .a = a, .d = d };
	struct tc_value *own = e->n_sources > 1 ? tc_build_join(b, e->n_sources, v, d) : v[0];
	struct tc_value *part[MOST_ROUNDS + 1], *all;
	int64_t none = find_own(&k);
	unsigned n = 0;

	k.start = arena_array(&s->c->arena, (size_t)e->parts, sizeof(*k.start));
	if (k.high > k.low)
		part[n++] = k.high - k.low == own->type->dim[d] ? own :
			    tc_build_part(b, own, d, k.low, k.high - k.low);
	if (e->is_all)
		part[n++] = do_all(&k, own);
	for (unsigned c = 0; !e->is_all && c < e->n_rounds; c++)
		part[n++] = do_round(&k, own, c);
	all = n > 1 ? tc_build_join(b, n, part, d) : n ? part[0] : tc_build_part(b, own, d, 0, 0);
	all = fill_up(&k, all, fill, none);
	for (unsigned t = 0; t < e->n_needs; t++)
		out[t] = take_need(&k, all, t);
}

/* ---- what is joined ---- */

/* Nobody needs v any more, nor what it was made of by moving elements, each from one value. */
static void erase_unused(struct tc_value *v)
{
	while (tc_is_unused(v) && v->def && v->def->block) {
		struct tc_op *op = v->def;

		switch (op->op) {
		case TC_CONCATENATE: case TC_SLICE: case TC_RESHAPE: case TC_BROADCAST_IN_DIM:
		case TC_TRANSPOSE: case TC_REVERSE:
			break;
		default:
			return;
		}
		v = tc_in(op, 0);
		tc_erase(op);
	}
}

/* Whether it gives a value anew, whose rows have moved: halo.c makes one op of it. */
static bool is_moved(const struct tc_op *join)
{
	for (unsigned i = 0; i < join->n_operands; i++) {
		const struct tc_op *slice = tc_in(join, i)->def;

		if (slice && slice->op == TC_SLICE &&
		    tc_in(slice, 0)->type == tc_out(join, 0)->type)
			return true;
	}
	return false;
}

/* Puts what op joins in the list; gives how many, 0: they are too many. */
static unsigned find_parts(struct shard *s, const struct tc_op *op, struct tc_value **part)
{
	int64_t d = tc_attr_int(op, "dimension", 0);
	unsigned n = 0;

	for (unsigned i = 0; i < op->n_operands; i++) {
		struct tc_value *v = tc_in(op, i);
		const struct tc_op *inner = v->def;
		bool opens = inner && inner->op == TC_CONCATENATE &&
			     tc_attr_int(inner, "dimension", 0) == d && s->p->of[v->id] &&
			     s->p->of[v->id]->dim[d].axes.n && !is_moved(inner);

		for (unsigned k = 0; k < (opens ? inner->n_operands : 1); k++) {
			struct tc_value *x = opens ? tc_in(inner, k) : v;

			if (!x->type->dim[d])
				continue;
			if (n == MOST_JOINED)
				return 0;
			part[n++] = x;
		}
	}
	return n;
}

void shard_tidy_join(struct tc_op *op, void *shard)
{
	struct shard *s = shard;
	struct tc_value *part[MOST_JOINED], **was, *v;
	unsigned n, n_was = op->n_operands;

	if (op->op == TC_SLICE) {
		v = tc_in(op, 0);
		while (tc_slice_of_part(s->c, op))
			;
		erase_unused(v);
	}
	n = op->op == TC_CONCATENATE ? find_parts(s, op, part) : 0;
	if (!n)
		return;
	was = arena_array(&s->c->arena, n_was, sizeof(*was));
	for (unsigned i = 0; i < n_was; i++)
		was[i] = tc_in(op, i);
	if (n > 1) {
		tc_set_operands(s->c, op, n, part);
	} else {
		tc_replace(op, part[0]);
	}
	for (unsigned i = 0; i < n_was; i++)
		erase_unused(was[i]);
}

bool shard_is_piece(const struct shard *s, const struct tc_op *op, unsigned i)
{
	const struct tc_op *slice = tc_in(op, i)->def;
	unsigned d = (unsigned)tc_attr_int(op, "dimension", 0);
	const struct tc_type *from, *to = tc_in(op, i)->type;

	if (!slice || slice->op != TC_SLICE || !s->p->of[tc_in(slice, 0)->id]->dim[d].axes.n)
		return false;
	from = tc_in(slice, 0)->type;
	for (unsigned k = 0; k < from->rank; k++)
		if (tc_attr_nth(slice, "strides", k) != 1 ||
		    (k != d && from->dim[k] != to->dim[k]))
			return false;
	for (const struct tc_use *u = tc_in(slice, 0)->uses; u; u = u->next) {
		const struct tc_value *x = u->user->op == TC_SLICE ? tc_out(u->user, 0) : NULL;

		if (x && !(tc_is_used_once(x) && x->uses->user == op))
			return false;
	}
	return true;
}

struct shard_exchange *shard_plan_pieces(struct shard *s, int64_t parts,
					 const struct shard_source *source, unsigned n,
					 int64_t part, int64_t row)
{
	struct shard_need need = { 0, part, part };
	struct shard_exchange *e;
	int64_t collected = 0;

	for (unsigned i = 0; i < n; i++)
		collected += source[i].is_cut ? source[i].part * (parts - 1) : 0;
	/* What is whole is joined so, for those who want it so. */
	if (!collected)
		return NULL;
	e = shard_plan_exchange(s, parts, source, n, &need, 1);
	return e && shard_is_worth(e, row, 1, collected) ? e : NULL;
}

static struct shard_exchange *plan_join(struct shard *s, const struct tc_op *op,
					const struct shard_plan *plan, unsigned d,
					const struct spmd_axes *a)
{
	int64_t n = spmd_size(a), first = 0;
	struct shard_source *source = arena_array(&s->c->arena, op->n_operands, sizeof(*source));

	for (unsigned i = 0; i < op->n_operands; i++) {
		const struct tc_op *slice = s->slices ? s->slices[i] : NULL;
		int64_t all = plan->type[i]->dim[d];
		bool is_cut = plan->tensor[i]->dim[d].axes.n;

		source[i] = (struct shard_source){
			.first = first, .rows = all, .part = is_cut ? all / n : all,
			.is_cut = is_cut,
		};
		if (slice) {
			source[i].rows = s->of[tc_out(slice, 0)->id].type->dim[d];
			source[i].skip = tc_attr_nth(slice, "start_indices", d);
		}
		first += source[i].rows;
	}
	return shard_plan_pieces(s, n, source, op->n_operands,
				 plan->type[op->n_operands]->dim[d] / n,
				 shard_row_of(plan->type[op->n_operands], d));
}

void shard_plan_join(struct shard *s, const struct tc_op *op, struct shard_plan *plan,
		     struct spmd_sharding *const *wish)
{
	unsigned d = (unsigned)tc_attr_int(op, "dimension", 0);
	struct spmd_sharding **h = plan->tensor;
	const struct spmd_axes *a = plan->rule ? &wish[0]->dim[d].axes : NULL;

	if (!a || !a->n || h[op->n_operands]->dim[d].axes.n || !shard_are_free(plan, a) ||
	    plan->type[op->n_operands]->dim[d] >= MOST_ROWS)
		return;
	for (unsigned i = 0; i < op->n_operands; i++)
		if (spmd_same_axes(&s->of[tc_in(op, i)->id].h->dim[d].axes, a))
			h[i]->dim[d].axes = *a;
	if (plan_join(s, op, plan, d, a)) {
		h[op->n_operands]->dim[d].axes = *a;
		plan->windows |= 1ull << d;
		return;
	}
	for (unsigned i = 0; i < op->n_operands; i++)
		h[i]->dim[d].axes.n = 0;
}

struct tc_value *shard_join(struct shard *s, struct tc_op *op, const struct shard_plan *plan)
{
	struct tc_value **v = arena_array(&s->c->arena, op->n_operands, sizeof(*v)), *out;
	unsigned d = (unsigned)tc_attr_int(op, "dimension", 0);
	const struct spmd_axes *a = &plan->tensor[op->n_operands]->dim[d].axes;
	struct tc_build b = tc_build_at(s->c, op);

	for (unsigned i = 0; i < op->n_operands; i++)
		v[i] = tc_in(op, i);
	shard_exchange(s, &b, plan_join(s, op, plan, d, a), d, a, v, NULL, &out);
	return out;
}
