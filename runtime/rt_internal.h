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

#include "runtime/rt.h"

struct rt_garbage {
	struct hal_mem *mem;	/* owned */
	uint64_t value;		/* free when this submission is done */
	struct rt_garbage *next;
};

/* A launch that calls the host, waiting for its turn (turns.c). Its maker's, who sets it before
 * it is queued; in the list until fn runs, and not looked at from then on. */
struct rt_turn {
	void (*fn)(void *arg);
	void *arg;
	bool is_nested;		/* made by a function of the host: waits for nobody */
	struct rt_turn *next;
};

/* Of a device; all under the lock. Threads are made when they are needed and stay until the
 * end. One of them is without work, or will soon look, whenever the list is not empty. */
struct rt_turns {
	pthread_mutex_t lock;
	pthread_cond_t cond;	/* a turn came, or ended, or entered a function; or quit */
	struct rt_turn *first, **last;	/* in the order in which they came */
	struct rt_running *running;	/* on the stacks of their threads */
	struct rt_turn_thread *threads;	/* owned */
	unsigned n_idle;	/* threads that wait */
	bool quit;		/* they end when they find nothing to do */
};

/* A part of its client. What comes before the lock does not change once it is open. */
struct rt_device {
	struct hal_device *hal;
	struct hal_queue *queue;
	struct hal_device_info info;
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
};

/* Work for the client's thread; owned by the list, then by the thread. */
struct rt_job {
	struct rt_client *client;	/* no reference: what fn works on has one */
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
	uint64_t seed;		/* each device counts from (seed, 0, its number) on */
	/* The client's thread takes jobs first in, first out; job_lock is over the list. */
	pthread_mutex_t job_lock;
	pthread_cond_t job_cond;
	struct rt_job *jobs, **last_job;
	pthread_t worker;
	bool has_worker, quit;	/* quit: ends when the list is empty */
	pthread_mutex_t map_lock;
	struct rt_mapping *mappings;
	pthread_mutex_t gang_lock;	/* one launch of members that meet at a time; README.md */
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
	unsigned external_refs, uses;
	bool is_deleted;
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

/* Of one load, by member. */
struct rt_place {
	unsigned device;
	struct hal_mem *mailbox, *row;	/* owned; NULL: the program has none */
	uint64_t lent;		/* hal_times_lent of its device when addresses were asked */
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
	unsigned n;
	struct rt_place at[];
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
/* Any thread, at any depth of locks. */
void rt_client_ref(struct rt_client *c);
/* Whether this is a child of fork: locks may be held by threads that are not here. */
bool rt_is_orphan(const struct rt_client *c);
/* Runs fn on the client's thread; it may wait for the device, never for a buffer to be
 * resolved. On failure fn is not called. */
int rt_later(struct rt_client *c, void (*fn)(void *arg), void *arg, struct err *err);
/* The same once the buffer, which the caller keeps until then, is resolved. */
int rt_after(struct rt_buffer *b, void (*fn)(void *arg), void *arg, struct err *err);

/* ---- turns.c: takes rt_turns.lock ---- */
void rt_turns_start(struct rt_turns *t);
/* Nothing is in its list, nor runs. Waits for its threads. */
void rt_turns_end(struct rt_turns *t);
/* Runs turn->fn when it is its turn, on one of its threads, where it may wait for anything but
 * another turn. On failure fn is not called. */
int rt_turn_queue(struct rt_turns *t, struct rt_turn *turn, struct err *err);
/* On the thread of a turn: around each function of the framework. */
void rt_turn_begin_function(void);
void rt_turn_end_function(void);
/* Whether this thread is in such a function. */
bool rt_turn_is_nested(void);
/* Runs fn here, as a part of a launch whose turn it is already, perhaps on another device. */
void rt_turn_beside(struct rt_turns *t, void (*fn)(void *arg), void *arg);

/* ---- calls.c: takes rt_device.lock ---- */
struct rt_calls {
	struct rt_exe *x;
	const struct hw_binding *bindings;
	struct hal_mem *const *mems;	/* of each binding */
	const struct rt_host *host;
	const atomic_bool *stop;	/* ERR_ABORTED at the next stop once it is true; or NULL */
};
/* INVALID_ARGUMENT: a channel of the member has no function. host: NULL: none. */
int rt_check_host(const struct rt_exe *x, const struct rt_host *host, struct err *err);
/* From submission *value, the first run, to the last one, whose number *value is then. On the
 * thread of a turn. What failed is no longer running. */
int rt_run_calls(const struct rt_calls *k, uint64_t *value, struct err *err);

/* ---- gang.c: takes client.gang_lock, then each device's lock ---- */
/* What to launch: a program's executable on each of n devices. */
struct rt_run {
	unsigned n;
	struct rt_exe *const *x;	/* [n] */
	struct rt_buffer *const *const *args;	/* [n][n_args] */
	size_t n_args;
	const bool *keep;	/* [n_args], the same of all; NULL: none */
	bool was_deferred;	/* the arguments are in use once, deleted or not */
	const struct rt_host *hosts;	/* [n], of a program that calls them; else NULL */
	/* Where nothing was launched since a device is held: until when, a reference. */
	struct rt_event **held;	/* NULL: members don't meet */
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
int rt_launch_take(struct rt_launch *l, struct rt_launch_room *few, size_t n_args,
		   struct err *err);
/* What keeps an argument's content from being what its program computes: an error in its place,
 * or a submission that has failed; 0 if nothing has by now. */
int rt_launch_argument_error(const struct rt_launch *l, struct err *why);
/* Results and *done of a launch that is not made: this error. */
int rt_launch_spread(struct rt_launch *l, const struct err *why, struct err *err);
/* Memory for results, or the donated argument's. */
int rt_launch_make_results(struct rt_launch *l, struct err *err);
/* Takes the device's lock, with temporaries; not on failure. Who takes several does so in the
 * devices' order. */
int rt_launch_lock(struct rt_launch *l, struct err *err);
void rt_launch_unlock(struct rt_launch *l);
/* Under the lock: what is to come before the submission, and the submission. */
int rt_launch_bind(struct rt_launch *l, struct err *err);
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
/* Whether this thread is in a function of the host whose launch holds a device of the gang. */
bool rt_is_held_by_caller(const struct rt_gang *g);
/* Under client.gang_lock: what holds one of their devices, a reference; NULL: nothing does. */
struct rt_event *rt_find_hold(const struct rt_launch *l, unsigned n);
/* Under client.gang_lock: holds all their devices, which nothing does. */
void rt_hold(const struct rt_launch *l, unsigned n, struct rt_event *hold);
/* Takes client.gang_lock; sets the event. */
void rt_end_hold(const struct rt_launch *l, unsigned n, struct rt_event *hold);
/* All members, which are submitted, to their ends; the first error. On the thread of a turn. */
int rt_run_all_calls(struct rt_launch *l, unsigned n, const struct rt_event *hold,
		     struct err *err);

/* ---- meeting.c: allocates; launches call it under client.gang_lock ---- */
/* Whether members of the program need one. */
bool rt_meeting_is_needed(const struct image *im);
/* Mailboxes and rows on the device of each member; a reference. Blocks. */
int rt_meeting_new(struct rt_client *c, const struct image *im, const unsigned *devices,
		   struct rt_meeting **out, struct err *err);
void rt_meeting_unref(struct rt_meeting *g);	/* what used it is done */
/* All addresses anew, and mailboxes that are fit for a launch: if one has failed, waits for what
 * is under way, clears them. */
int rt_meeting_begin(struct rt_meeting *g, struct err *err);
/* A member was launched. */
void rt_meeting_note(struct rt_meeting *g, unsigned member, uint64_t value);
/* A launch ended in its middle: mailboxes are not fit for another. */
void rt_meeting_spoil(struct rt_meeting *g);
/* Member `missing` could not be launched, though others were: they fail. Not 0: nobody could tell
 * them. */
int rt_meeting_abandon(struct rt_meeting *g, unsigned missing);

/* ---- allocation.c: takes rt_device.lock; not to be called with it held ---- */
/* Frees `mem` (NULL: nothing) once submission `value` is done; does not wait for it. */
void rt_discard(struct rt_client *c, unsigned device, struct hal_mem *mem, uint64_t value);
/* Allocates; when memory is short, waits for queued work, gives scratch up too, and tries
 * again. RESOURCE_EXHAUSTED in hal_mem_alloc's words. */
int rt_alloc(struct rt_client *c, unsigned device, enum rt_memory_kind kind,
	     uint64_t bytes, const char *tag, struct hal_mem **out, struct err *err);
/* Waits for queued work and frees what it held, and scratch. Blocks, up to a minute. */
void rt_make_room(struct rt_client *c, unsigned device);
/* Takes device.lock with scratch of so many bytes there until it is let go; not on failure.
 * May wait as rt_alloc does, then under grow_lock. */
int rt_lock_with_scratch(struct rt_client *c, unsigned device, uint64_t bytes,
			 struct err *err);
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

/* ---- buffer.c: takes rt_buffer.lock, calls others without it ---- */
/* A buffer with fresh storage (without memory if it has no bytes) and undefined content. */
int rt_buffer_new(struct rt_client *c, unsigned device, enum rt_memory_kind kind,
		  const struct rt_shape *shape, const char *tag, struct rt_buffer **out,
		  struct err *err);
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
/* Another buffer on the same storage, value and error; of `b` resolved. NULL: out of
 * memory. */
struct rt_buffer *rt_buffer_share(struct rt_buffer *b, const struct rt_shape *shape);

/* ---- cache.c: no lock; safe with other threads and processes ---- */
/* 0: found, *out malloc'd. `hash`: rt_hash of the image, in hex. Blocks for the disk. */
int rt_cache_get(const char *key, void **out, size_t *bytes, char hash[65]);
/* Never fails: what can't be written is compiled again. */
void rt_cache_put(const char *key, const void *p, size_t n, const char *hash);

/* What tells this build of the compiler from others: its object's build id as hex digits,
 * or "" if the linker left none. */
void rt_build_id(char *out, size_t room);
/* The devices that CompileOptionsProto bytes name, of n_devices: of each member, all different;
 * room for n_devices. Errors as rt_check_options. */
int rt_parse_options(unsigned n_devices, const void *p, size_t n, unsigned *devices,
		     struct rt_counts *counts, struct err *err);
/* How many members they ask for, whatever devices there are; 1: they do not say. */
struct rt_counts rt_count_members(const void *p, size_t n);
/* As rt_program_compile; *was_cached tells where it came from, and bypasses the cache
 * if it is set on the way in. */
int rt_program_make(const struct rt_target *target, const void *code, size_t code_bytes,
		    const char *format, const void *options, size_t options_bytes,
		    bool *was_cached, struct rt_program **out, struct err *err);

#endif
