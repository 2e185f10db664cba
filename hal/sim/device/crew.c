/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The threads that run engines: as many as there are engines, of all devices together, and none
 * is any engine's own. Who has nothing left to do on one goes on with another that was kicked, so
 * that chips that meet go on without a change of threads at each meeting.
 *
 * An engine that was kicked is *ready*. Whenever one is, a thread looks for it, or is woken to: who
 * makes one ready wakes a thread if none looks, and a thread that finds one wakes another if more
 * are ready and nobody else looks. Who gives up looking says so before its last look. As no engine
 * has more than one thread, there is always one to wake.
 */
#include <limits.h>
#include <stdlib.h>

#include "hal/sim/sim_internal.h"

/* One that was ready, which it is no more; NULL. They come by turns. */
static struct sim_engine *take(struct sim *sim)
{
	struct sim_crew *crew = &sim->crew;

	for (unsigned cls = 0; cls < 2; cls++) {
		uint64_t ready, next;

		while ((ready = atomic_load(&crew->ready[cls]))) {
			unsigned i;

			next = ready & ~0ull << atomic_load(&crew->next) % 64;
			i = (unsigned)__builtin_ctzll(next ? next : ready);
			if (!sim_take_kick(sim, cls, i))
				continue;
			atomic_store(&crew->next, i + 1);
			return &sim->devices[i].engines[cls];
		}
	}
	return NULL;
}

/* For a thread that counts as looking; it does not any more. NULL: there was none for a while. */
static struct sim_engine *look(struct sim *sim)
{
	struct sim_crew *crew = &sim->crew;
	struct sim_engine *e;
	unsigned seen;

	do {
		seen = atomic_load(&crew->n_kicks);
		e = take(sim);
	} while (!e && sim->spins && sim_spin(&crew->n_kicks, seen));
	atomic_fetch_sub(&crew->n_looking, 1);
	if (!e)
		e = take(sim);
	if (e)
		sim_rouse(sim);
	return e;
}

/* Whether the thread may look for a while unasked; then it counts as looking. */
static bool may_look(struct sim_crew *crew)
{
	unsigned n = atomic_load(&crew->n_looking);

	while (n < crew->most)
		if (atomic_compare_exchange_weak(&crew->n_looking, &n, n + 1))
			return true;
	return false;
}

static void sleep_until_woken(struct sim_crew *crew)
{
	unsigned n = atomic_load(&crew->n_woken);

	for (;;) {
		while (n)
			if (atomic_compare_exchange_weak(&crew->n_woken, &n, n - 1))
				return;
		sim_futex_wait_here(&crew->n_woken, 0);
		n = atomic_load(&crew->n_woken);
	}
}

static void *work(void *arg)
{
	struct sim *sim = arg;
	struct sim_crew *crew = &sim->crew;
	struct sim_engine *e;

	for (;;) {
		sleep_until_woken(crew);
		if (atomic_load(&crew->quit))
			return NULL;
		while ((e = look(sim))) {
			do
				sim_engine_serve(e);
			while ((e = take(sim)));
			if (!may_look(crew))
				break;
		}
	}
}

int sim_crew_start(struct sim *sim)
{
	struct sim_crew *crew = &sim->crew;
	unsigned n = 2 * sim->n_devices;

	crew->threads = calloc(n, sizeof(*crew->threads));
	while (crew->threads && crew->n_threads < n &&
	       !pthread_create(&crew->threads[crew->n_threads], NULL, work, sim))
		crew->n_threads++;
	return crew->n_threads == n ? 0 : -1;
}

void sim_crew_stop(struct sim *sim)
{
	struct sim_crew *crew = &sim->crew;

	atomic_store(&crew->quit, true);
	atomic_fetch_add(&crew->n_woken, crew->n_threads);
	sim_futex_wake(&crew->n_woken, INT_MAX);
	for (unsigned i = 0; i < crew->n_threads; i++)
		pthread_join(crew->threads[i], NULL);
	free(crew->threads);
}
