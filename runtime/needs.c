/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which pending buffers wait for which: what makes some, a copy, a launch that is put off, an
 * alias that was given its content, keeps what it waits for, and they where that stands. What is
 * new waits for what was there before it. So only two can close a ring, whose buffers would wait
 * for each other for ever, and there alone is it asked: an alias, which is older than what it is
 * given, and members that come one by one, of which the first waits for arguments of the last.
 * Nothing here waits.
 */
#include "runtime/rt_internal.h"

/* Over rt_buffer.needs of all buffers and what they point to, which stays as long as any does: who
 * goes along these finds each of them. Nothing else is locked under it. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t n_walks;
static bool has_given;		/* an alias was given something younger than itself */
static atomic_uint_fast64_t n_born;

void rt_needs_begin(struct rt_needs *needs, struct rt_buffer *const *outs, size_t n)
{
	needs->born = atomic_fetch_add(&n_born, 1) + 1;
	for (size_t i = 0; i < n; i++)
		outs[i]->needs = needs;
}

/* To those that this walk is still to look at, once; what was born before `since` leads nowhere. */
static void push(struct rt_needs *needs, uint64_t since, struct rt_needs **todo)
{
	if (!needs || needs->seen == n_walks || needs->born < since)
		return;
	needs->seen = n_walks;
	needs->next = *todo;
	*todo = needs;
}

/* Whether who waits for `of` waits for `b`, or for what those make that this walk meets. */
static bool leads_to(struct rt_needs *of, const struct rt_buffer *b, uint64_t since)
{
	struct rt_needs *todo = NULL, *at, *next;
	bool found = false;

	push(of, since, &todo);
	while (!found && (at = todo)) {
		todo = at->next;
		push(at->also, since, &todo);
		for (size_t i = 0; !found && i < at->n; i++) {
			next = at->of[i]->needs;
			found = at->of[i] == b;
			found |= next && next->meets == n_walks;
			push(next, since, &todo);
		}
	}
	return found;
}

bool rt_needs_give(struct rt_needs *needs, struct rt_buffer *to)
{
	bool is_ring;

	pthread_mutex_lock(&lock);
	n_walks++;
	is_ring = leads_to(needs, to, 0);
	if (!is_ring) {
		needs->born = atomic_fetch_add(&n_born, 1) + 1;
		to->needs = needs;
		has_given = true;
	}
	pthread_mutex_unlock(&lock);
	return !is_ring;
}

void rt_needs_also(struct rt_needs *needs, struct rt_needs *also)
{
	pthread_mutex_lock(&lock);
	needs->also = also;
	pthread_mutex_unlock(&lock);
}

bool rt_needs_meet(struct rt_needs *first)
{
	uint64_t since = UINT64_MAX, until = 0;
	struct rt_needs *m = first;
	bool is_ring;

	pthread_mutex_lock(&lock);
	n_walks++;
	do {
		m->meets = n_walks;
		since = m->born < since ? m->born : since;
		until = m->born > until ? m->born : until;
		m = m->also;
	} while (m != first);
	is_ring = leads_to(first, NULL, has_given ? 0 : since);
	/* Each waits for what came before the last. */
	do {
		m->born = until;
		m = m->also;
	} while (m != first);
	pthread_mutex_unlock(&lock);
	return !is_ring;
}

void rt_needs_end(struct rt_buffer *const *outs, size_t n)
{
	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < n; i++)
		outs[i]->needs = NULL;
	pthread_mutex_unlock(&lock);
}
