/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RT_ORDER_H
#define RT_ORDER_H
/* What order.c, meeting.c and world/era.c know of launches with other processes. */
#include <stdatomic.h>

#include "hal/base/files.h"
#include "hal/hal.h"
#include "runtime/world/world.h"

#define LOG 2048u		/* launches that a process remembers */

enum { ASKED = 1, LAUNCHED, FAILED };

/* As it lies in the file, at HEAD + (number - 1) % LOG entries. */
struct entry {
	uint64_t number;	/* from 1 on, of this process's */
	uint64_t id;		/* which program on which devices */
	uint64_t party;		/* a bit for each process that takes part */
	uint64_t state;
	char name[56];		/* the program's */
	char why[280];		/* FAILED */
	uint64_t check;		/* over all before it: one that is being written is none */
};

struct head {
	uint64_t n_done;	/* launches that are over, with all before them */
	uint64_t has_left;	/* it asks for no more: so often it has by then; why is
				 * written before. 0: it may ask */
	char why[280];
	uint64_t has_failed;	/* what it has queued fails: so often it did by then; cause is
				 * written before. 0: it does not, or began anew since */
	char cause[280];
};

/* How a process began anew, the newest time, as it lies at STATE. */
struct state {
	uint64_t era;		/* so often it did */
	/* Of each other process: the era of it that this one has taken note of, and how many of
	 * this one's launches were before that, which are void between the two. */
	uint64_t seen[RT_PROCESSES], start[RT_PROCESSES];
	char why[280];
	struct hal_lent lent[128];	/* of its devices, since then */
	uint64_t check;
};

enum { STATE = 1024, HEAD = 8192 };
_Static_assert(sizeof(struct head) <= STATE, "heads fit before states");
_Static_assert(STATE + sizeof(struct state) <= HEAD, "states fit before the log");

/* Another process, as its log says. */
struct fellow {
	int fd;
	uint64_t mine, theirs;	/* so many launches of each log were compared */
	uint64_t last;		/* the newest of theirs that is one of ours */
	uint64_t passed;	/* its head's has_left that says nothing any more */
	bool has_left;		/* all that it was asked for with us is done, and it has ended */
	bool is_apart;		/* one of us began anew, and the other has not taken note */
	_Atomic uint64_t past;	/* its head's has_failed before this process began anew */
};

struct rt_order {
	struct rt_world *world;
	char path[160];		/* "": the file has no name any more */
	int fd;			/* -1: none, as in a child of fork */
	struct files_own own;	/* fd */
	struct fellow fellows[RT_PROCESSES];
	pthread_mutex_t lock;	/* over what follows, and fellows */
	pthread_cond_t cond;
	pthread_t thread;
	bool has_thread, quit;
	struct entry *log;	/* owned: [LOG] */
	uint64_t *values;	/* owned: [LOG][n_own], submissions of each */
	uint64_t n, n_done, n_ended;	/* asked for; over; launched or failed */
	uint64_t n_left;	/* so often this process left */
	_Atomic uint64_t n_failed;	/* so often it told why what it had queued failed */
	atomic_bool has_told;	/* since it began anew */
	_Atomic int64_t asks_until;	/* by then who is asked why has told; 0: nobody was asked */
	struct head head;	/* as it lies in the file */
	struct rt_event *last;	/* a reference: the newest is in the queues, or never will be */
	bool is_broken;
	bool must_reset, is_resetting;	/* the thread, what is queued; not begun anew meanwhile */
	struct err broken;
	struct state state;	/* as it lies in the file */
	uint64_t n_void;	/* launches before this process began anew: none of them begins */
	uint64_t changes;	/* of what was taken note of, by whomever */
};

/* ---- order.c ---- */
/* Under lock: no launch begins from now on. */
void rt_order_break(struct rt_order *o, const struct err *why);
/* What is queued fails, and tells the devices that it would meet; others may ask why before. */
void rt_order_reset(struct rt_order *o, const struct err *why);
/* Under lock: it begins anew, so what failed is past. */
void rt_order_forget(struct rt_order *o);
/* Under lock: whether what p takes part in is not compared yet. */
bool rt_order_has_more(struct rt_order *o, unsigned p);

/* Whether p asks for no more launches, and why. */
bool rt_order_has_left(const struct rt_order *o, unsigned p, struct err *why);

/* ---- world/era.c; under rt_order's lock ---- */
uint64_t rt_order_sum(const void *bytes, size_t n);
int rt_era_write(struct rt_order *o, struct err *err);
/* false: it is being written. One that never began anew has none. */
bool rt_era_read(const struct rt_order *o, unsigned p, struct state *s);
uint64_t rt_era_of(const struct rt_order *o, unsigned p);
/* Whether both go on from the same: positions are in its fellow then. */
bool rt_era_is_level(struct rt_order *o, unsigned p);
/* Whether p began anew since this process took note, and why. */
bool rt_era_has_begun(struct rt_order *o, unsigned p, struct err *why);

#endif
