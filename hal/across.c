/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Submissions that wait for work of other devices. A device sees no other's semaphores, so the
 * host raises one of its own for it: each such wait is an empty submission ahead of the one that
 * was asked for, whose number the word after the queue's semaphore must reach. Notices of the
 * other queues count what is missing; as a queue runs in order, so do the numbers that the word
 * takes. The other devices' waiter threads do that, and the own one has the device look.
 */
#include <stdlib.h>

#include "hal/hal_internal.h"

/* Freed with its last notice and its owner: who made it, then the queue's list. All under
 * hal.across_lock. */
struct hal_across {
	struct hal *hal;
	struct hal_queue *queue;	/* with value: whose list it is in; else NULL */
	uint64_t value;		/* the submission that waits */
	unsigned n_left;	/* notices that are still to come */
	bool is_owned;
	struct hal_across *next;	/* ascending by value */
};

static void free_unused(struct hal_across *w)
{
	if (!w->n_left && !w->is_owned)
		free(w);
}

/* As many as wait for nothing more, from the oldest on. Whether there were any. */
static bool let_go(struct hal_queue *q)
{
	struct hal_across *w;
	uint64_t value = 0;

	while ((w = q->across) && !w->n_left) {
		value = w->value;
		q->across = w->next;
		free(w);
	}
	if (value)
		__atomic_store_n((uint64_t *)(void *)(q->semaphore->host + HAL_ACROSS_AT), value,
				 __ATOMIC_RELEASE);
	return value != 0;
}

void hal_across_ended(void *arg, const struct err *err)
{
	struct hal_across *w = arg;
	struct hal *hal = w->hal;

	(void)err;
	pthread_mutex_lock(&hal->across_lock);
	w->n_left--;
	if (w->queue) {
		struct hal_device *dev = w->queue->dev;

		if (let_go(w->queue)) {
			atomic_store(&dev->must_wake, true);
			hal_wake_waiter(dev);
		}
	} else {
		free_unused(w);
	}
	pthread_mutex_unlock(&hal->across_lock);
}

struct hal_across *hal_across_new(struct hal *hal)
{
	struct hal_across *w = calloc(1, sizeof(*w));

	if (w)
		*w = (struct hal_across){ .hal = hal, .is_owned = true };
	return w;
}

void hal_across_expect(struct hal_across *w)
{
	pthread_mutex_lock(&w->hal->across_lock);
	w->n_left++;
	pthread_mutex_unlock(&w->hal->across_lock);
}

void hal_across_begin(struct hal_across *w, struct hal_queue *q, uint64_t value)
{
	struct hal_across **end = &q->across;

	pthread_mutex_lock(&w->hal->across_lock);
	w->queue = q;
	w->value = value;
	while (*end)
		end = &(*end)->next;
	*end = w;
	let_go(q);
	pthread_mutex_unlock(&q->dev->hal->across_lock);
}

bool hal_across_waits(struct hal_queue *q, uint64_t value)
{
	bool waits = false;

	pthread_mutex_lock(&q->dev->hal->across_lock);
	for (const struct hal_across *w = q->across; w; w = w->next)
		waits |= w->value == value;
	pthread_mutex_unlock(&q->dev->hal->across_lock);
	return waits;
}

void hal_across_drop(struct hal_across *w)
{
	struct hal *hal = w ? w->hal : NULL;

	if (!w)
		return;
	pthread_mutex_lock(&hal->across_lock);
	w->is_owned = false;
	free_unused(w);
	pthread_mutex_unlock(&hal->across_lock);
}

void hal_across_end(struct hal_queue *q)
{
	struct hal_across *w;

	pthread_mutex_lock(&q->dev->hal->across_lock);
	while ((w = q->across)) {
		q->across = w->next;
		w->queue = NULL;
		w->is_owned = false;
		free_unused(w);
	}
	pthread_mutex_unlock(&q->dev->hal->across_lock);
}
