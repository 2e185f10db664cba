/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_TURN_H
#define SIM_TURN_H
/*
 * Turns: a card that shows several functions has one engine of a class, and each function an
 * engine of its own that works only while it has the turn. Private to hal/sim.
 *
 * Who used the least time has the turn next. A run keeps it until it ends, or until another
 * waits that has used SIM_TURN_GRAIN_NS less; it looks between instructions, and between
 * blocks of a copy; while its own host holds it up it has lent the turn. Who was away for
 * longer than SIM_TURN_AWAY_NS comes back with as much time used as the others: nobody saves
 * turns up. Threads: one at a time uses a turn, any
 * may wake it. The lock is a leaf.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define SIM_TURN_GRAIN_NS 2000000
#define SIM_TURN_AWAY_NS 100000000
/* Who used less than those who wait, and ends a run, is expected back for so long. */
#define SIM_TURN_EXPECTED_NS 100000

struct sim_turn;

/* What the turns of one class of a card have in common. */
struct sim_turns {
	pthread_mutex_t lock;
	pthread_cond_t moved;
	struct sim_turn *holder, *waiting;	/* NULL: nobody; a list, who came first first */
	atomic_uint n_waiting;
	struct sim_turn *expected;	/* nobody else takes the turn until then */
	int64_t expected_until;
};

/* An engine's. All zeros: it shares with nobody, and nothing below does anything. */
struct sim_turn {
	struct sim_turns *all;
	struct sim_turn *next;		/* of those that wait */
	uint64_t used_ns;
	int64_t since, left_at;		/* clock_ns(): took it, gave it back; 0: never */
	int64_t had_ns;			/* of this run, up to `since` or left_at */
	atomic_bool is_lent;		/* others may have it; for the run to take again */
	/* Of this run; waits_since is 0 if it does not wait. */
	_Atomic int64_t waited_ns, waits_since;
};

void sim_turns_init(struct sim_turns *all);
void sim_turns_destroy(struct sim_turns *all);

/* A run begins, that has had no turn yet and waited for none. */
void sim_turn_begin(struct sim_turn *t);
/* Blocks until the turn is there or *stop becomes true: then false. */
bool sim_turn_take(struct sim_turn *t, const atomic_bool *stop);
/* In a run: lets another go first whose turn it is. As sim_turn_take. */
bool sim_turn_pass(struct sim_turn *t, const atomic_bool *stop);
static inline bool sim_turn_is_wanted(const struct sim_turn *t)
{
	return t->all && (atomic_load_explicit(&t->all->n_waiting, memory_order_relaxed) ||
			  atomic_load_explicit(&t->is_lent, memory_order_relaxed));
}
/* Ends a run, with the turn or without. */
void sim_turn_end(struct sim_turn *t);
/* Whether sim_turn_take would not block now. */
bool sim_turn_is_free(struct sim_turn *t);
/* The run may wait for something else than the engine, for as long as that likes: others have the
 * turn until it looks. From any thread. */
void sim_turn_lend(struct sim_turn *t);
/* After *stop was set. */
void sim_turn_wake(struct sim_turn *t);
/* For how long this run has waited; from any thread. */
int64_t sim_turn_waited(const struct sim_turn *t);
/* For how long a run that began at `began` ran until `now`: while it had the turn. No two
 * have it at a time, so the sum of all is at most what the clock shows. From any thread. */
int64_t sim_turn_ran(struct sim_turn *t, int64_t began, int64_t now);

#endif
