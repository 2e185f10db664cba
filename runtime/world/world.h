/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RT_WORLD_H
#define RT_WORLD_H
/* The processes of a job, and their launches in one order. Private to runtime/; README.md there. */
#include <pthread.h>

#include "runtime/rt.h"

struct rt_meeting;
struct rt_order;

/* A device of some process of the job. */
struct rt_far {
	struct rt_global device;
	struct hal_lent lent;	/* what its process told; not trusted */
	char name[96];		/* for errors */
};
struct rt_process { unsigned first, n_devices; int pid; };	/* first: id */
/* The job that this process is in. Does not change before the lock. */
struct rt_world {
	struct rt_client *client;	/* no reference: it owns this */
	unsigned process, n_processes;
	struct rt_exchange exchange;
	int64_t limit_ms;	/* how long another process is waited for */
	struct rt_process processes[RT_PROCESSES];
	struct rt_far *devices;	/* owned; of all, by id */
	unsigned n_devices;
	struct rt_order *order;	/* owned */
	pthread_mutex_t lock;	/* over meetings */
	struct rt_meeting *meetings;	/* a reference each: those with other processes */
	void (*forget)(struct rt_world *w);	/* lets them go; NULL: there are none */
};

/* One launch with other processes: a value; whoever asked for it ends it, once. */
struct rt_ticket {
	struct rt_meeting *of;
	uint64_t number;
	struct rt_event *before, *after;	/* references; before: NULL, or when it may begin */
};

/* ---- order.c: takes rt_order's lock ---- */
enum { RT_LOG_NAME = 48 };	/* bytes */
/* This process's log and its name, the others', what compares them; rt_order_close ends all. */
int rt_order_open(struct rt_world *w, char name[RT_LOG_NAME], struct err *err);
int rt_order_read(struct rt_world *w, unsigned process, const char *name, struct err *err);
int rt_order_start(struct rt_world *w, struct err *err);
void rt_order_settle(struct rt_world *w);	/* waits, 5 s, for what others need of us */
void rt_order_outlast(struct rt_world *w);	/* waits, 5 s, until the others have ended */
void rt_order_close(struct rt_world *w);	/* settles before */
/* From when it asks for no more launches, whatever others wait for; why NULL: it may again. */
void rt_order_leave(struct rt_world *w, const struct err *why);
/* That others have left by now says nothing any more. */
void rt_order_return(struct rt_world *w);
bool rt_order_is_alive(const struct rt_world *w, unsigned process);	/* as far as is known */
/* Why no launch may begin any more; the same, after a look at what the others were lent. */
int rt_order_error(struct rt_world *w, struct err *err);
/* number: a ticket's, or 0 */
int rt_order_check(struct rt_world *w, uint64_t number, struct err *err);
int rt_order_ask(struct rt_meeting *g, const char *name, struct rt_ticket *t, struct err *err);
/* Its members are submitted, or (why) never will be. Sets events. */
void rt_order_end(struct rt_ticket *t, const struct err *why);

/* ---- meeting.c: takes world.lock, client.gang_lock, rt_order's lock ---- */
/* Why a launch may not be asked for; the process begins anew then, if it has to. Blocks, while what
 * it has queued fails. */
int rt_anew_ask(struct rt_meeting *g, struct err *err);
/* Blocks until all that take part have taken note of who began anew. */
int rt_anew_wait(struct rt_meeting *g, struct err *err);

/* ---- world.c: no lock ---- */
int rt_world_join(struct rt_client *c, const struct rt_world_options *o, struct err *err);
void rt_world_leave(struct rt_client *c);
/* The store. Getting blocks until it is told, or the process has ended. */
int rt_world_put(struct rt_world *w, const char *key, const void *value, size_t bytes,
		 struct err *err);
int rt_world_get(struct rt_world *w, const char *key, unsigned process, void **value,
		 size_t *bytes, struct err *err);

#endif
