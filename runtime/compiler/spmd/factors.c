/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One op: shardings of dims to shardings of factors, what all tensors agree on for a factor,
 * and back.
 */
#include <string.h>

#include "runtime/compiler/spmd/propagate.h"

static struct cell *cell_at(const struct node *n, const struct desk *desk, uint32_t t, uint32_t f)
{
	return &desk->cell[(size_t)t * n->rule->n_factors + f];
}

/* The first `size` devices' part of a piece, which divides it. */
static struct spmd_piece head(struct spmd_piece p, uint32_t size)
{
	return (struct spmd_piece){ p.axis, p.pre, size };
}

static struct spmd_piece tail(struct spmd_piece p, uint32_t size)
{
	return (struct spmd_piece){ p.axis, p.pre * size, p.size / size };
}

/* ---- dims to factors ---- */

/* Takes as much of the list for a factor as it has place for; *at: the list's rest. */
static int64_t fill_factor(struct cell *c, int64_t room, struct spmd_axes *list, uint32_t *at)
{
	while (*at < list->n) {
		struct spmd_piece p = list->at[*at];
		uint32_t g = spmd_gcd((uint64_t)room, p.size);

		if (g <= 1)
			break;
		spmd_push(&c->axes, head(p, g));
		room /= g;
		if (g < p.size)
			list->at[*at] = tail(p, g);
		else
			++*at;
	}
	return room;
}

static void project_dim(const struct node *n, struct desk *desk, uint32_t t, uint32_t d)
{
	const struct spmd_split *s = &n->rule->tensor[t][d];
	const struct spmd_dim *dim = &n->tensor[t]->dim[d];
	struct spmd_axes list = dim->axes;
	bool is_full = false;
	uint32_t at = 0;

	for (uint32_t i = 0; i < s->n; i++) {
		struct cell *c = cell_at(n, desk, t, s->factor[i]);
		int64_t room = n->rule->factor[s->factor[i]].size;

		*c = (struct cell){ .is_there = true, .is_minor = i + 1 == s->n,
				    .is_closed = !dim->is_open || is_full };
		if (is_full)
			continue;
		if (!c->is_minor)
			room = fill_factor(c, room, &list, &at);
		if ((c->is_minor || room > 1) && at < list.n) {
			struct spmd_axes *to = c->is_minor ? &c->axes : &c->rest;

			while (at < list.n)
				spmd_push(to, list.at[at++]);
			is_full = true;
		}
	}
}

void spmd_project(const struct node *n, struct desk *desk)
{
	size_t cells = (size_t)n->rule->n_tensors * n->rule->n_factors;

	if (cells)
		memset(desk->cell, 0, cells * sizeof(*desk->cell));
	for (uint32_t t = 0; t < n->rule->n_tensors; t++)
		for (uint32_t d = 0; n->tensor[t] && d < n->rule->rank[t]; d++)
			project_dim(n, desk, t, d);
}

/* ---- what all tensors agree on ---- */

/* Joins another list to *all; `grows` says whether that may make it longer, from now on too. */
static bool join(struct spmd_axes *all, const struct spmd_axes *more, bool grows)
{
	for (uint32_t i = 0; i < more->n; i++) {
		struct spmd_piece a, b = more->at[i];
		bool is_last_a = i + 1 >= all->n, is_last_b = i + 1 == more->n;

		if (i >= all->n) {
			if (!grows)
				return false;
			all->at[all->n++] = b;
			continue;
		}
		a = all->at[i];
		if (!memcmp(&a, &b, sizeof(a)))
			continue;
		if (a.axis != b.axis || a.pre != b.pre ||
		    (a.size > b.size ? a.size % b.size : b.size % a.size)) {
			all->n = i;
			return false;
		}
		/* One begins as the other. */
		if (a.size < b.size && grows && is_last_a) {
			all->at[i] = b;
			continue;
		}
		if (a.size > b.size && is_last_b)
			return grows;
		all->at[i] = a.size < b.size ? a : b;
		all->n = i + 1;
		return false;
	}
	return grows;
}

static void agree(const struct node *n, struct desk *desk, uint32_t f)
{
	uint32_t n_in = n->rule->n_operands, n_all = n->rule->n_tensors;
	uint8_t way = desk->way[f];
	bool grows = true, from_results = way == TO_OPERANDS;

	desk->found[f] = (struct spmd_axes){ 0 };
	for (uint32_t turn = 0; turn < 2; turn++) {
		bool results = (turn == 0) == from_results;

		for (uint32_t t = results ? n_in : 0; t < (results ? n_all : n_in); t++)
			if (cell_at(n, desk, t, f)->is_there)
				grows = join(&desk->found[f], &cell_at(n, desk, t, f)->axes,
					     grows);
		if (way != BOTH_WAYS)
			grows = false;
	}
}

/* ---- which factor goes first ---- */

/* The tensor that a factor's axes are from: with the most of them, then the largest. */
static uint32_t source_of(const struct node *n, const struct desk *desk, uint32_t f)
{
	uint32_t best = UINT32_MAX, most = 1;

	for (uint32_t t = 0; t < n->rule->n_tensors; t++) {
		const struct cell *c = cell_at(n, desk, t, f);
		uint32_t size = c->is_there ? spmd_size(&c->axes) : 1;

		if (size > most || (size == most && size > 1 && best != UINT32_MAX &&
				    n->count[t] > n->count[best])) {
			most = size;
			best = t;
		}
	}
	return best;
}

static bool goes_before(const struct node *n, const struct desk *desk, uint32_t f, uint32_t g)
{
	uint32_t a = source_of(n, desk, f), b = source_of(n, desk, g);

	if (a == UINT32_MAX || b == UINT32_MAX)
		return a != UINT32_MAX;
	if (n->count[a] != n->count[b])
		return n->count[a] > n->count[b];
	if (n->is_elementwise &&
	    spmd_size(&desk->found[f]) != spmd_size(&desk->found[g]))
		return spmd_size(&desk->found[f]) > spmd_size(&desk->found[g]);
	return a < b;
}

static void sort_factors(const struct node *n, struct desk *desk)
{
	for (uint32_t i = 0; i < n->rule->n_factors; i++) {
		uint32_t at = i;

		for (; at > 0 && goes_before(n, desk, i, desk->order[at - 1]); at--)
			desk->order[at] = desk->order[at - 1];
		desk->order[at] = (uint16_t)i;
	}
}

/* ---- giving axes to a tensor ---- */

/* How much of the front of a piece is free of another one. */
static uint32_t free_of(struct spmd_piece p, const struct spmd_axes *taken)
{
	uint32_t size = p.size;

	for (uint32_t i = 0; i < taken->n; i++)
		if (spmd_overlap(head(p, size), taken->at[i]))
			size = taken->at[i].pre > p.pre && taken->at[i].pre % p.pre == 0 ?
			       spmd_gcd(size, taken->at[i].pre / p.pre) : 1;
	return size;
}

static uint32_t may_have(const struct node *n, const struct desk *desk, uint32_t t, uint32_t f,
			 struct spmd_piece p, uint32_t so_far)
{
	const struct spmd_sharding *h = n->tensor[t];
	uint32_t size = free_of(p, &h->replicated);

	size = free_of(head(p, size), &h->unreduced);
	size = free_of(head(p, size), &h->manual);
	for (uint32_t g = 0; g < n->rule->n_factors && size > 1; g++) {
		const struct cell *c = cell_at(n, desk, t, g);

		if (c->is_there && g != f)
			size = free_of(head(p, size), &c->axes);
		if (c->is_there)
			size = free_of(head(p, size), &c->rest);
	}
	if (!cell_at(n, desk, t, f)->is_minor)
		size = spmd_gcd(size, (uint64_t)n->rule->factor[f].size / so_far);
	return size;
}

static bool is_prefix(const struct spmd_axes *a, const struct spmd_axes *b)
{
	for (uint32_t i = 0; i < a->n; i++) {
		if (i >= b->n)
			return false;
		if (!memcmp(&a->at[i], &b->at[i], sizeof(*a->at)))
			continue;
		return i + 1 == a->n && a->at[i].axis == b->at[i].axis &&
		       a->at[i].pre == b->at[i].pre && b->at[i].size % a->at[i].size == 0;
	}
	return true;
}

/* As much of what was found as the tensor can have for the factor. */
static struct spmd_axes allowed(const struct node *n, const struct desk *desk, uint32_t t,
				uint32_t f)
{
	const struct cell *c = cell_at(n, desk, t, f);
	struct spmd_axes to = { 0 };

	for (uint32_t i = 0; i < desk->found[f].n; i++) {
		struct spmd_piece p = desk->found[f].at[i];
		uint32_t size = may_have(n, desk, t, f, p, spmd_size(&to));

		if (size > 1)
			spmd_push(&to, head(p, size));
		if (size < p.size)
			break;
	}
	return is_prefix(&c->axes, &to) && !c->is_closed ? to : c->axes;
}

/* An operand of an elementwise op gets nothing that its result can't have. */
static void hold_to_result(const struct node *n, const struct desk *desk, uint32_t f,
			   struct spmd_axes *to)
{
	const struct cell *out = cell_at(n, desk, n->rule->n_operands, f);

	if (!out->is_there)
		return;
	for (uint32_t i = 0; i < to->n; i++) {
		const struct spmd_piece *p = i < out->axes.n ? &out->axes.at[i] : NULL;

		if (p && !memcmp(&to->at[i], p, sizeof(*p)))
			continue;
		to->n = i;
		if (!p || to->at[i].axis != p->axis || to->at[i].pre != p->pre ||
		    to->at[i].size % p->size)
			return;
		to->at[i] = *p;
		to->n = i + 1;
	}
}

static bool update(const struct node *n, struct desk *desk, uint32_t t, uint32_t f)
{
	struct cell *c = cell_at(n, desk, t, f);
	struct spmd_axes to;

	if (!c->is_there || c->rest.n || !n->tensor[t])
		return false;
	to = allowed(n, desk, t, f);
	if (n->is_elementwise && t < n->rule->n_operands)
		hold_to_result(n, desk, f, &to);
	if (spmd_size(&to) <= spmd_size(&c->axes) || !is_prefix(&c->axes, &to))
		return false;
	c->axes = to;
	return true;
}

/* ---- factors to dims ---- */

static bool write_dim(const struct node *n, struct desk *desk, uint32_t t, uint32_t d)
{
	const struct spmd_split *s = &n->rule->tensor[t][d];
	struct spmd_axes list = { 0 };
	struct spmd_dim *dim = &n->tensor[t]->dim[d];

	for (uint32_t i = 0; i < s->n; i++) {
		const struct cell *c = cell_at(n, desk, t, s->factor[i]);

		for (uint32_t k = 0; k < c->axes.n; k++)
			spmd_push(&list, c->axes.at[k]);
		for (uint32_t k = 0; k < c->rest.n; k++)
			spmd_push(&list, c->rest.at[k]);
		if ((int64_t)spmd_size(&c->axes) != n->rule->factor[s->factor[i]].size)
			break;
	}
	if (spmd_size(&list) <= spmd_size(&dim->axes))
		return false;
	dim->axes = list;
	return true;
}

static bool update_tensor(const struct node *n, struct desk *desk, uint32_t t)
{
	bool is_other = false;

	for (uint32_t i = 0; i < n->rule->n_factors; i++)
		if (desk->way[desk->order[i]])
			is_other |= update(n, desk, t, desk->order[i]);
	return is_other;
}

bool spmd_step(const struct node *n, struct desk *desk)
{
	uint32_t n_in = n->rule->n_operands, n_all = n->rule->n_tensors;
	bool is_other = false;

	spmd_project(n, desk);
	for (uint32_t f = 0; f < n->rule->n_factors; f++)
		agree(n, desk, f);
	sort_factors(n, desk);
	for (uint32_t i = 0; i < n_all; i++) {
		/* Results first. */
		uint32_t t = i < n_all - n_in ? n_in + i : i - (n_all - n_in);

		desk->is_other[t] = false;
		if (!n->tensor[t])
			continue;
		/* It may be the same value as one before, which has axes more by now. */
		for (uint32_t d = 0; is_other && d < n->rule->rank[t]; d++)
			project_dim(n, desk, t, d);
		if (!update_tensor(n, desk, t))
			continue;
		for (uint32_t d = 0; d < n->rule->rank[t]; d++)
			desk->is_other[t] |= write_dim(n, desk, t, d);
		is_other |= desk->is_other[t];
	}
	return is_other;
}
