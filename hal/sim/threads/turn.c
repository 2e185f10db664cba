/* SPDX-License-Identifier: Apache-2.0 */
/* Turns of the engines that are one to the world (turn.h). */
#include "hal/sim/threads/turn.h"

#include <stddef.h>

#include "hal/base/clock.h"

void sim_turns_init(struct sim_turns *all)
{
	pthread_condattr_t attr;

	*all = (struct sim_turns){ .holder = NULL };
	pthread_mutex_init(&all->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&all->moved, &attr);
	pthread_condattr_destroy(&attr);
}

void sim_turns_destroy(struct sim_turns *all)
{
	pthread_mutex_destroy(&all->lock);
	pthread_cond_destroy(&all->moved);
}

/* ---- under the lock ---- */

/* Of those that wait, who used the least; NULL: none waits. */
static struct sim_turn *least(const struct sim_turns *all)
{
	struct sim_turn *best = all->waiting;

	for (struct sim_turn *t = best; t; t = t->next)
		if (t->used_ns < best->used_ns)
			best = t;
	return best;
}

static void join(struct sim_turn *t, int64_t now)
{
	struct sim_turn **end = &t->all->waiting;

	while (*end)
		end = &(*end)->next;
	t->next = NULL;
	*end = t;
	atomic_fetch_add(&t->all->n_waiting, 1);
	atomic_store(&t->waits_since, now);
}

static void part(struct sim_turn *t, int64_t now)
{
	struct sim_turn **link = &t->all->waiting;

	while (*link != t)
		link = &(*link)->next;
	*link = t->next;
	atomic_fetch_sub(&t->all->n_waiting, 1);
	/* In this order: the watchdog may count it twice for a moment, and never less. */
	atomic_fetch_add(&t->waited_ns, now - atomic_load(&t->waits_since));
	atomic_store(&t->waits_since, 0);
}

/* The rest of a run's time is counted; what there is to decide is decided by the others. */
static void give_back(struct sim_turn *t, int64_t now)
{
	t->used_ns += (uint64_t)(now - t->since);
	t->had_ns += now - t->since;
	t->left_at = now;
	t->all->holder = NULL;
	pthread_cond_broadcast(&t->all->moved);
}

static bool may_take(const struct sim_turn *t, int64_t now)
{
	const struct sim_turns *all = t->all;

	if (all->holder || (all->expected && all->expected != t && now < all->expected_until))
		return false;
	return all->expected == t || least(all) == t;
}

static void sleep_until_moved(struct sim_turns *all)
{
	struct timespec until = clock_spec(all->expected_until);

	/* Whoever holds the turn tells when it gives it back. */
	if (!all->holder && all->expected)
		pthread_cond_timedwait(&all->moved, &all->lock, &until);
	else
		pthread_cond_wait(&all->moved, &all->lock);
}

static bool wait_for(struct sim_turn *t, const atomic_bool *stop, int64_t now)
{
	struct sim_turns *all = t->all;

	join(t, now);
	while (!may_take(t, now) && !atomic_load(stop)) {
		sleep_until_moved(all);
		now = clock_ns();
	}
	part(t, now);
	if (all->expected == t || now >= all->expected_until)
		all->expected = NULL;
	if (atomic_load(stop)) {
		/* What was meant for it is another's. */
		pthread_cond_broadcast(&all->moved);
		return false;
	}
	all->holder = t;
	t->since = now;
	return true;
}

/* Who comes back after a while has used as much as the one who used the least. */
static void forget_absence(struct sim_turn *t, int64_t now)
{
	const struct sim_turn *other = least(t->all);

	if (t->all->holder && (!other || t->all->holder->used_ns < other->used_ns))
		other = t->all->holder;
	if (other && (!t->left_at || now - t->left_at > SIM_TURN_AWAY_NS) &&
	    t->used_ns < other->used_ns)
		t->used_ns = other->used_ns;
}

/* ---- by an engine ---- */

void sim_turn_begin(struct sim_turn *t)
{
	atomic_store_explicit(&t->waited_ns, 0, memory_order_relaxed);
	if (!t->all)
		return;
	pthread_mutex_lock(&t->all->lock);
	t->had_ns = 0;
	pthread_mutex_unlock(&t->all->lock);
}

bool sim_turn_take(struct sim_turn *t, const atomic_bool *stop)
{
	int64_t now;
	bool has;

	if (!t->all)
		return true;
	pthread_mutex_lock(&t->all->lock);
	now = clock_ns();
	forget_absence(t, now);
	has = wait_for(t, stop, now);
	pthread_mutex_unlock(&t->all->lock);
	return has;
}

bool sim_turn_pass(struct sim_turn *t, const atomic_bool *stop)
{
	const struct sim_turn *other;
	bool has = true;
	int64_t now;

	pthread_mutex_lock(&t->all->lock);
	now = clock_ns();
	other = least(t->all);
	if (atomic_exchange(&t->is_lent, false)) {
		has = wait_for(t, stop, now);
		other = NULL;
	}
	if (other && t->used_ns + (uint64_t)(now - t->since) >
		     other->used_ns + SIM_TURN_GRAIN_NS) {
		give_back(t, now);
		has = wait_for(t, stop, now);
	}
	pthread_mutex_unlock(&t->all->lock);
	return has;
}

void sim_turn_end(struct sim_turn *t)
{
	const struct sim_turn *other;
	int64_t now;

	if (!t->all)
		return;
	pthread_mutex_lock(&t->all->lock);
	atomic_store(&t->is_lent, false);
	if (t->all->holder == t) {
		now = clock_ns();
		give_back(t, now);
		other = least(t->all);
		if (other && t->used_ns + SIM_TURN_GRAIN_NS < other->used_ns) {
			t->all->expected = t;
			t->all->expected_until = now + SIM_TURN_EXPECTED_NS;
		}
	}
	pthread_mutex_unlock(&t->all->lock);
}

/* ---- by others ---- */

bool sim_turn_is_free(struct sim_turn *t)
{
	bool is_free;

	if (!t->all)
		return true;
	pthread_mutex_lock(&t->all->lock);
	is_free = !t->all->holder && !t->all->waiting;
	pthread_mutex_unlock(&t->all->lock);
	return is_free;
}

void sim_turn_lend(struct sim_turn *t)
{
	if (!t->all)
		return;
	pthread_mutex_lock(&t->all->lock);
	if (t->all->holder == t) {
		give_back(t, clock_ns());
		atomic_store(&t->is_lent, true);
	}
	pthread_mutex_unlock(&t->all->lock);
}

void sim_turn_wake(struct sim_turn *t)
{
	if (!t->all)
		return;
	pthread_mutex_lock(&t->all->lock);
	pthread_cond_broadcast(&t->all->moved);
	pthread_mutex_unlock(&t->all->lock);
}

int64_t sim_turn_waited(const struct sim_turn *t)
{
	int64_t since, now;

	if (!t->all)
		return 0;
	since = atomic_load(&t->waits_since);
	now = clock_ns();
	return atomic_load(&t->waited_ns) + (since && now > since ? now - since : 0);
}

int64_t sim_turn_ran(struct sim_turn *t, int64_t began, int64_t now)
{
	int64_t ns;

	if (!t->all)
		return now - began;
	pthread_mutex_lock(&t->all->lock);
	ns = t->had_ns + (t->all->holder == t && now > t->since ? now - t->since : 0);
	pthread_mutex_unlock(&t->all->lock);
	return ns;
}
