/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RT_RT_INTERNAL_H
#define RT_RT_INTERNAL_H
/*
 * The runtime's structures. Private to runtime/. Locks and threads: README.md.
 *
 * Device memory that queued work may use is not freed but noted as garbage of its device,
 * with the number of the last submission that uses it, and swept when that is done. Numbers
 * of submissions (value, last_use) are those of the device's one compute queue; 0: none.
 */
#include <pthread.h>
#include <stdatomic.h>

#include "hal/base/arena.h"
#include "runtime/rt.h"
#include "runtime/turns/turns.h"
#include "runtime/world/world.h"

struct rt_garbage {
	struct hal_mem *mem;	/* owned */
	uint64_t value;		/* free when this submission is done */
	struct rt_garbage *next;
};

/* A part of its client. What comes before the lock does not change once it is open. */
struct rt_device {
	struct hal_device *hal;
	struct hal_queue *queue;
	struct hal_device_info info;
	bool is_traced;		/* by the trace that runs; under the lock of trace/trace.c */
	pthread_mutex_t lock;	/* over all that follows but grow_lock and what says so */
	struct rt_garbage *garbage, *spare;	/* spare: notes without memory */
	pthread_mutex_t grow_lock;	/* held while scratch is made; see allocation.c */
	struct hal_mem *scratch;	/* of all launches: they run in order */
	uint64_t scratch_use;	/* newest submission that uses it */
	struct rt_exe *scratch_users;	/* executables that need any; no references */
	struct hal_mem *random;		/* IMAGE_RANDOM; made under grow_lock, then stays */
	bool is_poisoned;
	struct err poison;	/* what launches fail with then */
	struct rt_turns turns;	/* has a lock of its own */
	/* Under client.gang_lock: ready when a launch is over whose members meet and call the
	 * host (gang_calls.c), of which one is on this device; NULL: no such. A reference. */
	struct rt_event *held;
	/* Under client.join_lock: who launches on it by itself does not come again (join.c). */
	bool has_left;
	struct err left;	/* why, then */
};

/* Work for the client's thread; owned by the list, then by the thread. */
struct rt_job {
	struct rt_client *client;	/* no reference: what fn works on has one */
	struct rt_buffer *buffer;	/* whose content it waits for, kept by who asked; or NULL */
	void (*fn)(void *arg);
	void *arg;
	struct rt_job *next;
	struct rt_callback callback;	/* of the event that it waits for */
};

/* The caller's memory, mapped for every device. Under client.map_lock. */
struct rt_mapping {
	uint8_t *host;		/* whole pages */
	uint64_t bytes;
	void *asked;		/* as rt_dma_map was called; NULL: for a view */
	unsigned refs;		/* the caller's, and one for each view */
	struct rt_mapping *next;
	struct hal_mem *mems[];	/* one a device, owned */
};

struct rt_client {
	atomic_uint refs;	/* the caller's, and one for each object */
	struct hal *hal;	/* owned */
	struct rt_device *devices;
	unsigned n_devices;
	struct rt_world *world;	/* owned; NULL: this process is alone */
	const struct rt_functions *functions;	/* static; NULL: none */
	const struct tc_partitioners *partitioners;	/* NULL: none */
	uint64_t seed;		/* each device counts from (seed, 0, its id) on */
	/* The client's thread takes jobs first in, first out; job_lock is over the list. */
	pthread_mutex_t job_lock;
	pthread_cond_t job_cond;
	struct rt_job *jobs, **last_job;
	pthread_t worker;
	bool has_worker, quit;	/* quit: ends when the list is empty */
	pthread_mutex_t map_lock;
	struct rt_mapping *mappings;
	pthread_mutex_t gang_lock;	/* one launch of members that meet at a time; README.md */
	struct rt_wait *waits;		/* under gang_lock; see gang_calls.c */
	pthread_mutex_t join_lock;	/* over circles and what they list (join.c) */
	struct rt_circle *circles;	/* owned; freed by: */
	void (*free_circles)(struct rt_client *c);	/* NULL: there are none */
	bool is_closed;			/* under join_lock: its owner is gone */
	struct rt_client *traced_next;	/* of the process's clients; under trace/trace.c's lock */
	unsigned traced_as;	/* its number in the trace that runs; as traced_next */
};

/* What a device did during a trace. */
struct rt_traced {
	struct hal_trace *trace;	/* owned */
	unsigned device, client;	/* its id; of the clients of the trace, from 0 on */
	int64_t epoch;		/* CLOCK_REALTIME less CLOCK_MONOTONIC */
	char type[32];		/* "Tessera T1" */
};

/* Memory that buffers share (aliases, bitcasts). Only refs and last_use change. */
struct rt_storage {
	atomic_uint refs;
	struct rt_client *client;	/* a reference if it is a view's */
	unsigned device;
	struct hal_mem *mem;	/* owned; NULL: no bytes */
	_Atomic uint64_t last_use;	/* only grows */
	/* Of a view: called when no device work uses the memory any more. */
	void (*on_free)(void *pointer, void *arg);
	void *pointer, *arg;	/* pointer NULL: no view */
	struct rt_mapping *mapping;	/* a reference, or NULL */
};

/* What waits for buffers to make others, a part of that: needs.c. */
struct rt_needs {
	struct rt_buffer *const *of;	/* [n], in use until rt_needs_end */
	size_t n;
	struct rt_needs *also, *next;	/* also: it waits for what that waits for; next: a walk's */
	uint64_t seen, meets;	/* by the walk of this number; meets: a part of what that is for */
	uint64_t born;		/* when; what it waits for came before, but for has_given */
};

/*
 * A buffer with an event `resolved` is pending until that is set: its content comes from
 * elsewhere (an alias, a transfer, a launch that waits). Storage, value and error are final
 * from then on, and before not looked at by anyone but who resolves it. That its result is
 * known does not mean that the device has computed it: `value` says when. Uses keep the
 * content for work that waits, even when the buffer is deleted meanwhile.
 */
struct rt_buffer {
	atomic_uint refs;
	struct rt_client *client;	/* a reference */
	unsigned device;
	enum rt_memory_kind kind;
	struct rt_shape shape;
	pthread_mutex_t lock;	/* over storage, external_refs, uses, is_deleted */
	struct rt_storage *storage;	/* a reference; NULL: deleted, or not there yet */
	uint64_t value;		/* the submission that makes the content; 0: there */
	struct err *error;	/* owned: the content is this error; no storage is looked at */
	struct err *spare_error;	/* room for it while pending */
	struct rt_event *resolved;	/* a reference; NULL: never was pending */
	struct rt_needs *needs;	/* what it waits for, if other buffers; its maker's; needs.c */
	unsigned external_refs, uses;
	bool is_deleted, is_unpadded_known;
	/* Of a shape with bounds: a reference, given before anyone else has the buffer; and what
	 * they say, once they were asked for, under the lock. */
	struct rt_buffer *sizes;
	int64_t unpadded[IMAGE_MAX_RANK];
};

/* Does not change but for refs and what is shown; all pointers are owned. */
struct rt_program {
	atomic_uint refs;
	struct image *image;	/* a view of bytes */
	void *bytes;		/* the ELF image */
	size_t n_bytes;
	void *source;		/* the framework's program */
	size_t source_bytes;
	char format[16];
	void *options;		/* CompileOptionsProto */
	size_t options_bytes;
	char fingerprint[65];	/* rt_hash of bytes */
	struct rt_counts members;
	pthread_mutex_t shown_lock;	/* held while it is made */
	void *shown;		/* what OptimizedProgram shows, once it was asked for */
	size_t shown_bytes;
};

#define RT_ELSEWHERE UINT32_MAX
/* Of one load, by member. */
struct rt_place {
	unsigned device;	/* RT_ELSEWHERE: another process's, of which we have no memory */
	unsigned id;		/* of the device */
	uint64_t offset;	/* elsewhere: of the mailbox, in what is lent of the device */
	struct hal_mem *mailbox, *row;	/* owned; NULL: the program has none */
	uint64_t lent;		/* hal_times_lent of its device when addresses were asked */
	uint64_t row_lent;	/* as lent, when the row was written */
	uint64_t last_use;	/* newest submission of its executable */
};

/* What the members of a load share, see meeting.c. But for refs all that changes is under
 * client.gang_lock. */
struct rt_meeting {
	atomic_uint refs;	/* of each member's executable */
	struct rt_client *client;	/* no reference */
	const struct image *image;	/* the program's, which executables keep */
	bool was_launched, is_spoilt;	/* spoilt: to be cleared before the next launch */
	uint64_t *va;		/* owned: [n][image.n_slots], where members see mailboxes */
	uint64_t box_bytes;	/* of a mailbox */
	/* Of several processes: constant but for is_paired, under pair_lock, and is_asked. */
	struct rt_world *world;	/* NULL: all are here */
	struct rt_meeting *next;	/* of world.meetings */
	struct rt_program *program;	/* a reference: the first that meets so; NULL with world */
	char how[68];		/* they meet, or which program it is: told to others */
	uint64_t id, party;	/* the same in all processes; a bit for each that takes part */
	pthread_mutex_t pair_lock;
	bool is_paired, is_asked;
	uint64_t level_at;	/* rt_order's changes, and 1, when all were level */
	unsigned n, n_here;
	struct rt_place at[];
};

/* What programs call by name, of one load: its members share it. Does not change but for refs. */
struct rt_called {
	atomic_uint refs;
	struct arena arena;	/* of what functions are shown */
	const struct rt_functions *by;
	unsigned n;
	struct rt_called_function {
		uint32_t call;	/* its number in the image */
		bool is_loaded;
		struct rt_function function;
		void *state;
	} calls[];
};

struct rt_exe {
	atomic_uint refs;
	struct rt_client *client;	/* a reference */
	unsigned device;
	struct hal_exe *hal;	/* owned */
	struct rt_program *program;	/* a reference */
	const struct image *image;	/* the program's */
	unsigned member;	/* of the program's */
	struct rt_meeting *meeting;	/* a reference; NULL: the program needs none */
	struct rt_meeting *across;	/* a reference: mailboxes, with other processes; or NULL */
	struct rt_called *called;	/* a reference; NULL: it calls nothing by name */
	atomic_bool is_deleted;
	_Atomic uint64_t last_use;	/* newest submission that runs it */
	/* Of device.scratch_users, under its lock; link NULL: not there. */
	struct rt_exe *next, **link;
};

/* ---- event.c ---- */
/* Not 0 on threads where the client can't be freed: it would wait for itself. Counted up
 * around whatever may drop a last reference in a callback. */
extern _Thread_local unsigned rt_in_callback;
/* Set when a submission is done, with its error if it failed. NULL: out of memory. */
struct rt_event *rt_event_of_submission(struct hal_queue *q, uint64_t value);
/* Sets an event of which it takes the reference; for callbacks. */
void rt_event_pass(void *event, const struct err *err);

/* ---- client.c ---- */
/* Whether this is a child of fork: locks may be held by threads that are not here. */
bool rt_is_orphan(const struct rt_client *c);
/* Runs fn on the client's thread; it may wait for the device, never for a buffer to be
 * resolved. On failure fn is not called. */
int rt_later(struct rt_client *c, void (*fn)(void *arg), void *arg, struct err *err);
/* The same once the buffer's content, which the caller keeps until then, is there or has failed. */
int rt_after(struct rt_buffer *b, void (*fn)(void *arg), void *arg, struct err *err);

/* ---- functions.c ---- */
/* *out: a reference, or NULL where the program calls nothing by name. INVALID_ARGUMENT: what
 * a function is shown is broken; NOT_FOUND and errors of functions. */
int rt_called_new(struct rt_client *c, const struct image *im, struct rt_called **out,
		  struct err *err);
void rt_called_unref(struct rt_called *k);	/* NULL: nothing */
/* Which of k's a call is; -1: none. */
int rt_called_find(const struct rt_called *k, uint64_t call);
/* Around a launch; *out has an entry for each of k's. NULL may be ended. */
int rt_called_begin(const struct rt_called *k, const struct rt_host *host, unsigned device,
		    void ***out, struct err *err);
void rt_called_end(const struct rt_called *k, void **runs);

/* ---- calls.c: takes rt_device.lock ---- */
struct rt_calls {
	struct rt_exe *x;
	const struct hw_binding *bindings;
	struct hal_mem *const *mems;	/* of each binding */
	const struct rt_host *host;
	const atomic_bool *stop;	/* ERR_ABORTED at the next stop once it is true; or NULL */
	void **runs;	/* of what the program calls by name; made by rt_run_calls */
};
/* INVALID_ARGUMENT: a channel of the member has no function. host: NULL: none. */
int rt_check_host(const struct rt_exe *x, const struct rt_host *host, struct err *err);
/* From submission *value, the first run, to the last one, whose number *value is then. On the
 * thread of a turn. What failed is no longer running. */
int rt_run_calls(const struct rt_calls *k, uint64_t *value, struct err *err);

/* ---- deferred.c: launches that are put off ---- */
/* The end of a member's run. */
struct rt_end {
	struct rt_deferred *of;
	struct rt_event *done;
	struct rt_callback callback;
};
struct rt_deferred {
	unsigned n;		/* members */
	struct rt_exe **x;	/* [n], references */
	size_t n_args, n_outs;	/* of a member */
	size_t n_used, n_made;	/* of args and outs, so many are there */
	struct rt_buffer **args;	/* [n * n_args], in use */
	struct rt_buffer **outs;	/* [n * n_outs], references */
	struct rt_needs needs;	/* of outs: args */
	struct rt_buffer **real;	/* room for the launch's own results */
	struct rt_buffer *const **args_of;	/* [n], into args */
	struct rt_buffer ***real_of;	/* [n], into real */
	struct rt_callback *callbacks;	/* one an argument */
	bool *keep;
	struct rt_end *ends;	/* [n] */
	struct rt_event **done;	/* [n], room for the launch's own */
	atomic_size_t waits, running;	/* running: members */
	struct rt_host *hosts;	/* [n], ours; NULL: it calls none */
	struct rt_callback after;	/* of what holds a device */
	struct rt_turn turn;
	struct rt_ticket ticket;	/* with other processes; of: NULL otherwise */
	/* join.c's, of one that waits for others; n is 1. */
	struct rt_gathering *gathering;
	void (*is_over)(struct rt_gathering *g);	/* called at the end; NULL: no such */
	struct rt_deferred *next_failing;
};
struct rt_run;
/* As rt_execute_gang, when the arguments are there; held: and when that is set. Takes the hosts, if
 * it succeeds. */
int rt_launch_later(const struct rt_run *r, struct rt_buffer **const *outs,
		    struct rt_event **done, struct rt_event *held, struct err *err);
/* In steps: arguments in use and results pending; given to the caller, donated arguments gone;
 * what it waits for counted up, each of which calls fn then. */
int rt_defer(const struct rt_run *r, struct rt_deferred **out, struct err *err);
void rt_deferred_hand_out(struct rt_deferred *d, struct rt_buffer **const *outs,
			  struct rt_event **done);
void rt_deferred_wait(struct rt_deferred *d, void (*fn)(void *arg, const struct err *err),
		      void *arg, atomic_size_t *waits);
/* Results wait for nothing any more: before the end of any of those that wait for each other's
 * arguments (rt_needs_also); otherwise the end itself sees to it. */
void rt_deferred_settle(struct rt_deferred *d);
/* Exactly one of these ends it: launched, with what rt_launch_now gave in `real` and `done`, or
 * not. It is gone when its last run is over, perhaps at once. */
void rt_deferred_finish(struct rt_deferred *d);
void rt_deferred_fail(struct rt_deferred *d, const struct err *why);

/* ---- join.c: takes client.join_lock ---- */
/* The launch of one member, r->n is 1, that waits for the others to come. code: it was refused, by
 * *err, which is its result; the others get an error, too. */
int rt_join(const struct rt_run *r, int code, struct rt_buffer **outs, struct rt_event **done,
	    struct err *err);

/* ---- gang.c: takes client.gang_lock, then each device's lock ---- */
/* What to launch: a program's executable on each of n devices. */
struct rt_run {
	unsigned n;
	struct rt_exe *const *x;	/* [n] */
	struct rt_buffer *const *const *args;	/* [n][n_args] */
	size_t n_args;
	const bool *keep;	/* [n_args], the same of all; NULL: none */
	/* Of members with programs of their own [n], which differ in their arguments: n_args and
	 * keep say nothing then; and the meeting of all. NULL: as of one program. */
	const bool *const *keep_of;
	struct rt_meeting *meeting;
	bool was_deferred;	/* the arguments are in use once, deleted or not */
	const struct rt_host *hosts;	/* [n], of a program that calls them; else NULL */
	/* Where nothing was launched since a device is held, or its queue full and this deferred:
	 * until when, a reference. */
	struct rt_event **held;	/* NULL: members don't meet */
	struct rt_ticket *ticket;	/* with others; rt_launch_later takes it on success */
	/* Or NULL; set where nothing is launched, for an argument's error. */
	struct err *unmade;
};
/* Launches, checked, with arguments that are resolved. As rt_execute_gang; ERR_ABORTED with
 * *held set: later. */
int rt_launch_now(const struct rt_run *r, struct rt_buffer **const *outs,
		  struct rt_event **done, struct err *err);

/* ---- launch.c: a launch by one member ---- */
enum { RT_LAUNCH_FEW = 128 };
/* Room for the lists of a program with few arguments and bindings. */
struct rt_launch_room {
	struct rt_storage *storages[RT_LAUNCH_FEW];
	struct hw_binding bindings[RT_LAUNCH_FEW];
	bool donated[RT_LAUNCH_FEW];
};
struct rt_launch {
	struct rt_exe *x;
	struct rt_buffer *const *args;
	struct rt_buffer **outs;
	struct rt_event **done;
	const bool *keep;
	bool was_deferred;	/* as in struct rt_run */
	const struct rt_host *host;	/* of this member, or NULL */
	struct rt_meeting *meeting;	/* of all members, or NULL */
	uint64_t number;	/* of its ticket, or 0 */
	uint64_t n_failures;	/* with other processes: of its queue, before arguments were seen */
	/* What follows is zero at first. */
	uint64_t value;		/* its submission; 0: there is none yet */
	struct rt_storage **storages;	/* of the arguments, with references */
	struct hw_binding *bindings;
	bool *donated, is_few;
	struct hal_mem **mems;	/* of each binding; with a host only, as what follows */
	struct hal_mem *temp;	/* its own */
	uint64_t temp_use;	/* newest submission that uses it */
};
/* Whether these may be the arguments; *wait: one is still pending. */
int rt_launch_check(struct rt_exe *x, struct rt_buffer *const *args, size_t n_args,
		    const bool *keep, bool *wait, struct err *err);
/* References to the arguments' storages, and which of them nobody else has: those are
 * deleted from here on, so that nobody else gets one. After this, failed or not,
 * rt_launch_end is due. few: NULL: there is none. */
int rt_launch_take(struct rt_launch *l, struct rt_launch_room *few, struct err *err);
/* What keeps an argument's content from being what its program computes: an error in its place,
 * or a submission that has failed; 0 if nothing has by now. */
int rt_launch_argument_error(const struct rt_launch *l, struct err *why);
/* Results and *done of a launch that is not made: this error. */
int rt_launch_spread(struct rt_launch *l, const struct err *why, struct err *err);
/* Memory for results, or the donated argument's; temporaries, if they are the launch's own. */
int rt_launch_make_results(struct rt_launch *l, struct err *err);
/* Takes the device's lock; not on failure. Who takes several does so in the devices' order. */
int rt_launch_lock(struct rt_launch *l, struct err *err);
void rt_launch_unlock(struct rt_launch *l);
/* Under the lock: whether what follows waits for nothing, neither temporaries nor room in the
 * queue. A launch that is stopped for the host may need the lock before there is any. */
bool rt_launch_is_ready(const struct rt_launch *l);
/* Under no lock: waits for that, which may be gone again by the time that it is locked. later, or
 * NULL: is set and ERR_ABORTED where it would wait for room; a reference, ready when there is. */
int rt_launch_get_ready(const struct rt_launch *l, struct rt_event **later, struct err *err);
/* Under the lock: what is to come before the submission, and the submission. */
int rt_launch_bind(struct rt_launch *l, struct err *err);
/* Behind that, of all n: where peers' data is. INTERNAL: a peer is none of them. */
int rt_launch_bind_peers(struct rt_launch *l, const struct rt_launch *all, unsigned n,
			 struct err *err);
int rt_launch_submit(struct rt_launch *l, struct err *err);
/* Of a program that calls the host: to its end, however often it stops. */
int rt_launch_run_calls(struct rt_launch *l, const atomic_bool *stop, struct err *err);
/* Notes what the submission uses; results are its own from then on, donated arguments gone. */
void rt_launch_finish(struct rt_launch *l);
/* *done: the end of the submission; or results and *done of one that read what was never
 * written: that error. */
int rt_launch_tell(struct rt_launch *l, struct err *err);
int rt_launch_spoil(struct rt_launch *l, const struct err *why, struct err *err);
/* Lets go. A launch that failed loses its results and, if nothing was submitted, gives back
 * what it took, unless its owner deleted it since. */
void rt_launch_end(struct rt_launch *l, bool is_failed);

/* ---- gang_calls.c: what members that meet and call the host hold ---- */
/* Whether a function of the host that this thread is in may keep the members x[n] waiting, or one
 * that waits for it: it launched the program that calls this one. */
bool rt_is_held_by_caller(struct rt_exe *const *x, unsigned n);
/* How a launch ended of which that was asked, by members; none: it was not made. */
void rt_caller_launched(struct rt_client *c, struct rt_event *const *done, unsigned n);
/* Under client.gang_lock: what holds one of their devices, a reference; NULL: nothing does. */
struct rt_event *rt_find_hold(const struct rt_launch *l, unsigned n);
/* Under client.gang_lock: holds all their devices, which nothing does. */
void rt_hold(const struct rt_launch *l, unsigned n, struct rt_event *hold);
/* Takes client.gang_lock; sets the event. */
void rt_end_hold(const struct rt_launch *l, unsigned n, struct rt_event *hold);
/* All members, which are submitted, to their ends; the first error. On the thread of a turn. */
int rt_run_all_calls(struct rt_launch *l, unsigned n, struct rt_event *hold, struct err *err);

/* ---- meeting.c: allocates; launches call it under client.gang_lock ---- */
/* Whether members of the program need one. */
bool rt_meeting_is_needed(const struct image *im);
enum { RT_BOXES = 1, RT_ROWS = 2 };	/* of each member */
/* What is asked of these, on the device of each member; a reference. Blocks. */
int rt_meeting_new(struct rt_client *c, const struct image *im, const unsigned *ids,
		   unsigned parts, struct rt_meeting **out, struct err *err);
void rt_meeting_unref(struct rt_meeting *g);	/* what used it is done */
/* All addresses anew, and mailboxes that are fit for a launch: if one has failed, waits for what
 * is under way, clears them. number: of the ticket, with other processes. */
int rt_meeting_begin(struct rt_meeting *g, uint64_t number, struct err *err);
/* The row of a member, whose mailbox is another meeting's: written again if its memory was lent
 * anew. */
int rt_meeting_renew_row(struct rt_meeting *g, unsigned member, struct err *err);
/* Waits until all members' runs are over: of a launch of which only some were submitted. */
void rt_meeting_settle(struct rt_meeting *g);
/* A member was launched. */
void rt_meeting_note(struct rt_meeting *g, unsigned member, uint64_t value);
/* A launch ended in its middle: mailboxes are not fit for another. */
void rt_meeting_spoil(struct rt_meeting *g);
/* Member `missing` could not be launched, though others were: they fail. Not 0: nobody could tell
 * them. */
int rt_meeting_abandon(struct rt_meeting *g, unsigned missing);

/* With other processes: not under gang_lock; take world.lock, or a meeting's pair_lock. */
/* A reference, after the others were told. UNIMPLEMENTED: the program calls the host. */
int rt_across_join(struct rt_client *c, struct rt_program *p, const unsigned *ids,
		   struct rt_meeting **out, struct err *err);
/* Blocks until the others have loaded what meets alike. FAILED_PRECONDITION: it does not. */
int rt_across_pair(struct rt_meeting *g, struct err *err);

/* ---- allocation.c: takes rt_device.lock; not to be called with it held ---- */
/* Frees `mem` (NULL: nothing) once submission `value` is done; does not wait for it. */
void rt_discard(struct rt_client *c, unsigned device, struct hal_mem *mem, uint64_t value);
/* Allocates; when memory is short, waits for queued work, gives scratch up too, and tries
 * again. RESOURCE_EXHAUSTED in hal_mem_alloc's words. `value` if only submissions to come will
 * write there, else NULL: then memory serves that those up to *value (0: none) still use. */
int rt_alloc(struct rt_client *c, unsigned device, enum rt_memory_kind kind, uint64_t bytes,
	     const char *tag, uint64_t *value, struct hal_mem **out, struct err *err);
/* Waits for queued work and frees what it held, and scratch. Blocks, up to a minute. */
void rt_make_room(struct rt_client *c, unsigned device);
/* Whether the device has scratch of so many bytes; under its lock. */
bool rt_has_scratch(const struct rt_device *d, uint64_t bytes);
/* Sees to it, until memory is short again. May wait as rt_alloc does, under grow_lock. */
int rt_need_scratch(struct rt_client *c, unsigned device, uint64_t bytes, struct err *err);
/* The device's random state is there from then on. May wait as rt_alloc does. */
int rt_need_random(struct rt_client *c, unsigned device, struct err *err);
/* From when an executable may need scratch; when it no longer does, once or more. */
void rt_scratch_join(struct rt_exe *x);
void rt_scratch_leave(struct rt_exe *x);

/* ---- mapping.c: takes client.map_lock, across the HAL's mapping ---- */
void rt_mapping_unref(struct rt_client *c, struct rt_mapping *m);
/* Gives a view's storage its memory, and the mapping that it needs. Errors as
 * rt_buffer_view; nobody looks at the storage then. */
int rt_mapping_reach(struct rt_client *c, unsigned device, enum rt_memory_kind kind,
		     void *pointer, uint64_t bytes, struct rt_storage *s, struct err *err);

/* ---- shape.c ---- */
/* The dims from the outermost in memory to the innermost, with their strides of another array. */
void rt_memory_order(const struct rt_shape *s, const int64_t *strides, int64_t *dim,
		     int64_t *stride);
bool rt_is_row_major(const struct rt_shape *s);

/* ---- buffer_copy.c ---- */
/* Integers of eight bits as truth values: of each whether it is not 0. Pending while they are. */
int rt_buffer_as_truth(struct rt_buffer *b, struct rt_buffer **out, struct err *err);
/* An array that is shorter than `want`, of as many dims, as one that is as long. Blocks until it is
 * there. */
int rt_buffer_padded(struct rt_buffer *b, const struct rt_shape *want, struct rt_buffer **out,
		     struct err *err);

/* ---- needs.c: takes a lock of its own, and none under it ---- */
/* Of outs that are new, which nobody else has. */
void rt_needs_begin(struct rt_needs *needs, struct rt_buffer *const *outs, size_t n);
/* Of a buffer that others may wait for. false: what it needs waits for it, and it is as it was.
 * Takes as long as there are arguments of what is waited for. */
bool rt_needs_give(struct rt_needs *needs, struct rt_buffer *to);
void rt_needs_also(struct rt_needs *needs, struct rt_needs *also);
/* Of members that wait for what all of them wait for, in a circle by rt_needs_also. false: they
 * wait for what one of them makes. Takes as long as there are arguments of what came since the
 * first of them. */
bool rt_needs_meet(struct rt_needs *first);
/* Before what they wait for may go, and before they are resolved. */
void rt_needs_end(struct rt_buffer *const *outs, size_t n);

/* ---- buffer.c: takes rt_buffer.lock, calls others without it ---- */
/* Sizes of a new buffer whose dims have bounds; NULL: none. Takes a reference. */
void rt_buffer_give_sizes(struct rt_buffer *b, struct rt_buffer *sizes);
/* Without memory if it has no bytes; content undefined. in_order: as rt_alloc's `value`. */
int rt_buffer_new(struct rt_client *c, unsigned device, enum rt_memory_kind kind,
		  const struct rt_shape *shape, const char *tag, bool in_order,
		  struct rt_buffer **out, struct err *err);
/* The last one discards the memory; a view's on_free is called then or later. */
void rt_storage_unref(struct rt_storage *s);
/* A pending buffer; with storage if `tag` is given. */
int rt_buffer_new_pending(struct rt_client *c, unsigned device, enum rt_memory_kind kind,
			  const struct rt_shape *shape, const char *tag,
			  struct rt_buffer **out, struct err *err);
/* A buffer that is not pending never is again. */
bool rt_buffer_is_pending(const struct rt_buffer *b);
/* Ends pending: the content is there (NULL), or it is this error. Once. Runs what waits
 * for it before it returns; never fails. */
void rt_buffer_resolve(struct rt_buffer *b, const struct err *why);
/* The content of `b` is that of `from`, which is resolved. Sizes agree. */
void rt_buffer_resolve_from(struct rt_buffer *b, struct rt_buffer *from);
/* Takes a reference and counts a use; INVALID_ARGUMENT: deleted. */
int rt_buffer_begin_use(struct rt_buffer *b, struct err *err);
void rt_buffer_end_use(struct rt_buffer *b);
/* Another buffer on the same storage, value and error; of `b` resolved. The caller holds the
 * storage, as the buffer itself may be deleted meanwhile. NULL: out of memory. */
struct rt_buffer *rt_buffer_share(struct rt_buffer *b, struct rt_storage *storage,
				  const struct rt_shape *shape);

/* ---- trace/trace.c: takes a lock of its own, across the HAL's traces ---- */
/* A client's devices are there, and until the other call that returns. */
void rt_trace_join(struct rt_client *c);
void rt_trace_leave(struct rt_client *c);

/* ---- trace/xspace.c ---- */
struct str;
/* Appends a plane, or a warning of NUL-terminated text, to a serialized XSpace. */
int rt_xspace_add_plane(const struct rt_traced *d, struct str *space, struct err *err);
int rt_xspace_add_warning(const char *text, struct str *space, struct err *err);

/* ---- cache.c: no lock; safe with other threads and processes ---- */
/* 0: found, *out malloc'd. `hash`: rt_hash of the image, in hex. Blocks for the disk. */
int rt_cache_get(const char *key, void **out, size_t *bytes, char hash[65]);
/* Never fails: what can't be written is compiled again. */
void rt_cache_put(const char *key, const void *p, size_t n, const char *hash);

/* What tells this build of the compiler from others: its object's build id as hex digits,
 * or "" if the linker left none. */
void rt_build_id(char *out, size_t room);
/* Ids 0 to n - 1; options that name none mean the caller's own, where these are enough. */
struct rt_ids { unsigned n, first, n_own; };
/* The devices that CompileOptionsProto bytes name: the id of each member, all different;
 * room for ids.n. Errors as rt_check_options. */
int rt_parse_options(struct rt_ids ids, const void *p, size_t n, unsigned *devices,
		     struct rt_counts *counts, struct err *err);
/* How many members they ask for, whatever devices there are; 1: they do not say. */
struct rt_counts rt_count_members(const void *p, size_t n);
/* As rt_program_compile; *was_cached tells where it came from, and bypasses the cache
 * if it is set on the way in. */
int rt_program_make(const struct rt_target *target, const void *code, size_t code_bytes,
		    const char *format, const void *options, size_t options_bytes,
		    bool *was_cached, struct rt_program **out, struct err *err);

#endif
