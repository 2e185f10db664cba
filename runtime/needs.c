/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which pending buffers wait for which: what makes some, a copy, a launch that is put off, an
 * alias that was given its content, keeps what it waits for, and they where that stands. What is
 * new waits for what was there before it, so only what an alias is given, which is older than
 * what it is given, can close a ring, whose buffers would wait for each other for ever. There
 * alone is it asked. Nothing here waits.
 */
#include "runtime/rt_internal.h"

/* Over rt_buffer.needs of all buffers and what they point to, which stays as long as any does: who
 * goes along these finds each of them. Nothing else is locked under it. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t n_walks;

void rt_needs_begin(struct rt_needs *needs, struct rt_buffer *const *outs, size_t n)
{
	for (size_t i = 0; i < n; i++)
		outs[i]->needs = needs;
}

/* To those that this walk is still to look at, once. */
static void push(struct rt_needs *needs, struct rt_needs **todo)
{
	if (!needs || needs->seen == n_walks)
		return;
	needs->seen = n_walks;
	needs->next = *todo;
	*todo = needs;
}

/* Whether who waits for `of` waits for `b`. */
static bool leads_to(struct rt_needs *of, const struct rt_buffer *b)
{
	struct rt_needs *todo = NULL, *at;
	bool found = false;

	n_walks++;
	push(of, &todo);
	while (!found && (at = todo)) {
		todo = at->next;
		push(at->also, &todo);
		for (size_t i = 0; !found && i < at->n; i++) {
			found = at->of[i] == b;
			push(at->of[i]->needs, &todo);
		}
	}
	return found;
}

bool rt_needs_give(struct rt_needs *needs, struct rt_buffer *to)
{
	bool is_ring;

	pthread_mutex_lock(&lock);
	is_ring = leads_to(needs, to);
	if (!is_ring)
		to->needs = needs;
	pthread_mutex_unlock(&lock);
	return !is_ring;
}

void rt_needs_also(struct rt_needs *needs, struct rt_needs *also)
{
	pthread_mutex_lock(&lock);
	needs->also = also;
	pthread_mutex_unlock(&lock);
}

void rt_needs_end(struct rt_buffer *const *outs, size_t n)
{
	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < n; i++)
		outs[i]->needs = NULL;
	pthread_mutex_unlock(&lock);
}
