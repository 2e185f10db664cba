/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Launches whose members are in several processes: in one order in all of these.
 *
 * Nobody can lock several processes. Frameworks promise that all of them ask for the same such
 * launches in the same order, so each puts its members into its queues in the order in which
 * they were asked for, and is done; what waits on a device waits for something that is before
 * it everywhere. That the promise is kept is checked beside it: each process writes what it
 * was asked for into a log, a file that the others read, and a thread compares. Where two logs
 * differ, a process could not launch what another did, or has ended, all that is queued of
 * such launches fails, and no other begins.
 *
 * A log has a file of its own, which only its process writes and which the others open by the
 * name that its card tells. They read it and never map it: a file can be cut. Its process
 * holds a lock on it, by which the others see that it lives.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hal/base/clock.h"
#include "hal/base/files.h"
#include "hal/telemetry.h"
#include "runtime/rt_internal.h"
#include "runtime/world/order.h"

#define LOOK_NS 20000000	/* while launches are under way, others' logs are read so often */
#define SELDOM_NS 200000000	/* where nothing changes */
#define LEAVE_NS 5000000000ll	/* whoever leaves waits so long for what others still do */
#define ASK_NS 300000000	/* so long for another process to say why its device stopped, */
#define ASK_AGAIN_NS 1000000	/* whose log is read so often meanwhile */

static unsigned n_own(const struct rt_order *o)
{
	return o->world->client->n_devices;
}

/* ---- entries ---- */

static uint64_t sum(const struct entry *e)
{
	return rt_order_sum(e, offsetof(struct entry, check));
}

static struct entry *own_entry(struct rt_order *o, uint64_t number)
{
	return &o->log[(number - 1) % LOG];
}

static off_t place_of(uint64_t number)
{
	return (off_t)(HEAD + (number - 1) % LOG * sizeof(struct entry));
}

static int write_entry(struct rt_order *o, struct entry *e, struct err *err)
{
	e->check = sum(e);
	if (pwrite(o->fd, e, sizeof(*e), place_of(e->number)) == sizeof(*e))
		return 0;
	return err_sys(err, errno, "writing this process's log of launches");
}

/* Under lock. why NULL: it has not left, or is back. */
static int write_left(struct rt_order *o, const struct err *why, struct err *err)
{
	struct head *h = &o->head;
	off_t at = offsetof(struct head, has_left);

	if (!why && !h->has_left)
		return 0;
	h->has_left = why ? ++o->n_left : 0;
	if (why)
		snprintf(h->why, sizeof(h->why), "%.*s", (int)sizeof(h->why) - 1, why->msg);
	if ((!why || pwrite(o->fd, h->why, sizeof(h->why), offsetof(struct head, why)) ==
	     sizeof(h->why)) &&
	    pwrite(o->fd, &h->has_left, sizeof(h->has_left), at) == sizeof(h->has_left))
		return 0;
	return err_sys(err, errno, "writing this process's log of launches");
}

/* Whether the fellow has left, and why. */
static bool read_left(const struct fellow *f, struct head *h)
{
	if (pread(f->fd, h, sizeof(*h), 0) != sizeof(*h) || !h->has_left ||
	    h->has_left == f->passed)
		return false;
	h->why[sizeof(h->why) - 1] = 0;
	return true;
}

bool rt_order_has_left(const struct rt_order *o, unsigned p, struct err *why)
{
	struct head head;

	if (p == o->world->process || !read_left(&o->fellows[p], &head))
		return false;
	err_set(why, ERR_CANCELLED, "process %u (pid %d) takes no part any more: %s", p,
		o->world->processes[p].pid, head.why);
	return true;
}

/* Entry `number` of a fellow's log; false: it is not there yet. *lost: nor will it be. */
static bool read_entry(const struct fellow *f, uint64_t number, struct entry *e, bool *lost)
{
	*lost = false;
	if (pread(f->fd, e, sizeof(*e), place_of(number)) != sizeof(*e) || e->check != sum(e) ||
	    e->number < number)
		return false;
	*lost = e->number != number;
	e->name[sizeof(e->name) - 1] = e->why[sizeof(e->why) - 1] = 0;
	return !*lost;
}

/* ---- the end of it ---- */

void rt_order_break(struct rt_order *o, const struct err *why)
{
	if (o->is_broken)
		return;
	o->broken = *why;
	o->is_broken = o->must_reset = true;
	pthread_cond_broadcast(&o->cond);
}

/* Writes into its log why what this process has queued fails, once. Any thread, under any lock. */
static void tell_cause(struct rt_order *o, const char *why)
{
	struct head h;

	if (atomic_exchange(&o->has_told, true))
		return;
	snprintf(h.cause, sizeof(h.cause), "%.*s", (int)sizeof(h.cause) - 1, why);
	h.has_failed = atomic_fetch_add(&o->n_failed, 1) + 1;
	/* Where it can't be written others ask in vain, and say what they saw. */
	if (pwrite(o->fd, h.cause, sizeof(h.cause), offsetof(struct head, cause)) ==
	    sizeof(h.cause))
		(void)!pwrite(o->fd, &h.has_failed, sizeof(h.has_failed),
			      offsetof(struct head, has_failed));
}

void rt_order_forget(struct rt_order *o)
{
	static const uint64_t none;
	struct head head;

	for (unsigned p = 0; p < o->world->n_processes; p++)
		if (p != o->world->process &&
		    pread(o->fellows[p].fd, &head, sizeof(head), 0) == sizeof(head) &&
		    head.has_failed)
			atomic_store(&o->fellows[p].past, head.has_failed);
	(void)!pwrite(o->fd, &none, sizeof(none), offsetof(struct head, has_failed));
	atomic_store(&o->asks_until, 0);
	atomic_store(&o->has_told, false);
}

/* Why process p's devices stopped, if it says so by now. */
static bool has_said(const struct rt_order *o, unsigned p, char *text, size_t bytes)
{
	/* Before its log is read: what it wrote is there then. */
	bool is_alive = rt_order_is_alive(o->world, p);
	struct head h;

	if (pread(o->fellows[p].fd, &h, sizeof(h), 0) == sizeof(h) && h.has_failed &&
	    h.has_failed != atomic_load(&o->fellows[p].past)) {
		h.cause[sizeof(h.cause) - 1] = 0;
		snprintf(text, bytes, "process %u (pid %d) stopped what it had queued: %s", p,
			 o->world->processes[p].pid, h.cause);
		return true;
	}
	if (!is_alive)
		snprintf(text, bytes, "process %u (pid %d) has ended", p,
			 o->world->processes[p].pid);
	return !is_alive;
}

/* Why the device of another process that is called so stopped (hal_on_stopped): that process is
 * about to find out itself, or has. All that ask at a time wait until the same moment. */
static bool ask(void *arg, const char *owner, char *text, size_t bytes)
{
	struct rt_order *o = arg;
	const struct rt_world *w = o->world;
	int64_t none = 0, until = clock_after(ASK_NS);
	unsigned d = 0;
	bool is_known;

	while (d < w->n_devices && (w->devices[d].device.process == w->process ||
				    strcmp(w->devices[d].name, owner)))
		d++;
	if (d == w->n_devices)
		return false;
	if (!atomic_compare_exchange_strong(&o->asks_until, &none, until))
		until = none;
	while (!(is_known = has_said(o, w->devices[d].device.process, text, bytes)) &&
	       clock_ns() < until)
		nanosleep(&(struct timespec){ .tv_nsec = ASK_AGAIN_NS }, NULL);
	if (is_known)
		tell_cause(o, text);
	return is_known;
}

void rt_order_reset(struct rt_order *o, const struct err *why)
{
	struct rt_client *c = o->world->client;

	tell_cause(o, why->msg);

	/* A launch that is on its way to the devices may reach one after its neighbour's stop. */
	for (unsigned i = 0; i < c->n_devices; i++)
		hal_queue_set_reason(c->devices[i].queue, why->msg);
	for (unsigned i = 0; i < c->n_devices; i++) {
		uint64_t newest = 0;

		pthread_mutex_lock(&o->lock);
		for (uint64_t k = o->n_done; k < o->n; k++) {
			uint64_t v = o->values[k % LOG * n_own(o) + i];

			newest = v > newest ? v : newest;
		}
		pthread_mutex_unlock(&o->lock);
		/* What began after a failure that came by the device is none of it. */
		hal_queue_stop(c->devices[i].queue, newest, why->msg, NULL);
		hal_take_back(c->devices[i].hal, NULL);
	}
}

bool rt_order_is_alive(const struct rt_world *w, unsigned process)
{
	struct flock l = { .l_type = F_RDLCK, .l_whence = SEEK_SET };
	int fd = w->order ? w->order->fellows[process].fd : -1;

	return process == w->process || fd < 0 || fcntl(fd, F_OFD_GETLK, &l) ||
	       l.l_type != F_UNLCK;
}

int rt_order_error(struct rt_world *w, struct err *err)
{
	struct rt_order *o = w->order;
	int code = 0;

	pthread_mutex_lock(&o->lock);
	if (o->is_broken) {
		if (err)
			*err = o->broken;
		code = o->broken.code;
	}
	pthread_mutex_unlock(&o->lock);
	return code;
}

/* Why what others were lent of a device does not hold any more. */
static void say_why(struct rt_order *o, unsigned i, struct err *why)
{
	struct rt_client *c = o->world->client;
	uint64_t newest = 0;

	if (hal_device_error(c->devices[i].hal, why))
		return;
	if (!o->world->devices[o->world->processes[o->world->process].first + i].lent.key) {
		err_set(why, ERR_ABORTED, "%s works again, after a reset",
			c->devices[i].info.bus_id);
		return;
	}
	for (uint64_t k = o->n > LOG ? o->n - LOG : 0; k < o->n; k++) {
		uint64_t v = o->values[k % LOG * n_own(o) + i];

		newest = v > newest ? v : newest;
		if (v && hal_queue_error(c->devices[i].queue, v, why))
			return;
	}
	err_set(why, ERR_ABORTED, "work on %s failed that others rely on",
		c->devices[i].info.bus_id);
}

int rt_order_check(struct rt_world *w, uint64_t number, struct err *err)
{
	struct rt_order *o = w->order;
	struct rt_client *c = w->client;
	unsigned first = w->processes[w->process].first;
	int code = rt_order_error(w, err);

	pthread_mutex_lock(&o->lock);
	if (!code && number && number <= o->n_void)
		code = err_set(err, ERR_ABORTED, "it was asked for before this process began "
			       "anew: %.200s", o->state.why);
	pthread_mutex_unlock(&o->lock);
	for (unsigned i = 0; !code && i < c->n_devices; i++) {
		const struct hal_lent *lent = &w->devices[first + i].lent;
		struct err why;

		/* One that was dead when this process began anew is lent to nobody. */
		if (lent->key ? hal_is_lent(c->devices[i].hal, lent) :
		    hal_device_error(c->devices[i].hal, NULL))
			continue;
		pthread_mutex_lock(&o->lock);
		say_why(o, i, &why);
		rt_order_break(o, &why);
		*err = o->broken;
		code = err->code;
		pthread_mutex_unlock(&o->lock);
	}
	return code;
}

/* ---- asking for a launch ---- */

/* Under lock: the oldest launch that somebody has not compared. */
static uint64_t oldest(const struct rt_order *o)
{
	uint64_t at = o->n_done;

	for (unsigned p = 0; p < o->world->n_processes; p++)
		if (p != o->world->process && o->fellows[p].mine < at)
			at = o->fellows[p].mine;
	return at;
}

int rt_order_ask(struct rt_meeting *g, const char *name, struct rt_ticket *t, struct err *err)
{
	struct rt_order *o = g->world->order;
	struct rt_event *after = rt_event_new();
	struct entry *e;
	int code = 0;

	*t = (struct rt_ticket){ 0 };
	if (!after)
		return err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory");
	pthread_mutex_lock(&o->lock);
	if (o->n - oldest(o) >= LOG)
		code = err_set(err, ERR_RESOURCE_EXHAUSTED, "%u launches with other processes are "
			       "under way: wait for some", LOG);
	if (!code)
		code = write_left(o, NULL, err);
	if (!code) {
		o->n++;
		e = own_entry(o, o->n);
		*e = (struct entry){ .number = o->n, .id = g->id, .party = g->party,
				     .state = ASKED };
		snprintf(e->name, sizeof(e->name), "%s", name);
		memset(&o->values[(o->n - 1) % LOG * n_own(o)], 0, n_own(o) * sizeof(*o->values));
		code = write_entry(o, e, err);
		*t = (struct rt_ticket){ .of = g, .number = o->n, .before = o->last,
					 .after = after };
		rt_event_ref(after);
		o->last = after;
		pthread_cond_broadcast(&o->cond);
	}
	pthread_mutex_unlock(&o->lock);
	if (code) {
		if (t->after)
			rt_order_end(t, err);
		else
			rt_event_unref(after);
	}
	return code;
}

/* Those behind a launch that failed at once still wait for what was before it. */
struct later { struct rt_callback callback; struct rt_event *before, *after; };

static void set_after(void *arg, const struct err *err)
{
	struct later *l = arg;

	(void)err;
	rt_event_set(l->after, NULL);
	rt_event_unref(l->after);
	rt_event_unref(l->before);
	free(l);
}

static void pass_on(const struct rt_ticket *t)
{
	struct later *l = t->before ? malloc(sizeof(*l)) : NULL;

	if (l) {
		*l = (struct later){ .before = t->before, .after = t->after };
		rt_event_on_ready(t->before, &l->callback, set_after, l);
		return;
	}
	rt_event_set(t->after, NULL);
	rt_event_unref(t->after);
	rt_event_unref(t->before);
}

void rt_order_end(struct rt_ticket *t, const struct err *why)
{
	struct rt_order *o = t->of->world->order;
	struct entry *e;

	pthread_mutex_lock(&o->lock);
	e = own_entry(o, t->number);
	e->state = why ? FAILED : LAUNCHED;
	if (why)
		snprintf(e->why, sizeof(e->why), "%.*s", (int)sizeof(e->why) - 1, why->msg);
	for (unsigned m = 0; !why && m < t->of->n; m++) {
		const struct rt_place *p = &t->of->at[m];

		if (p->device != RT_ELSEWHERE)
			o->values[(t->number - 1) % LOG * n_own(o) + p->device] = p->last_use;
	}
	write_entry(o, e, NULL);
	o->n_ended++;
	pthread_cond_broadcast(&o->cond);
	pthread_mutex_unlock(&o->lock);
	pass_on(t);
	*t = (struct rt_ticket){ 0 };
}

/* ---- comparing; on our thread, under lock ---- */

static int differ(const struct rt_order *o, unsigned p, const struct entry *a,
		  const struct entry *b, struct err *why)
{
	if (strcmp(a->name, b->name))
		return err_set(why, ERR_FAILED_PRECONDITION, "launch %" PRIu64 " of process %u is "
			       "of %s, where process %u (pid %d) has launch %" PRIu64 " of %s: all "
			       "processes have to launch the same programs in the same order",
			       a->number, o->world->process, a->name, p,
			       o->world->processes[p].pid, b->number, b->name);
	return err_set(why, ERR_FAILED_PRECONDITION, "processes %u and %u (pid %d) both launch %s, "
		       "but as different programs, or on different devices: what they compile has "
		       "to be the same", o->world->process, p, o->world->processes[p].pid, a->name);
}

/* Two entries of one launch. 0: nothing is wrong with them so far; *is_over: nor will be. */
static int compare(const struct rt_order *o, unsigned p, const struct entry *a,
		   const struct entry *b, bool *is_over, struct err *why)
{
	*is_over = a->state != ASKED && b->state != ASKED;
	if (a->id != b->id || a->party != b->party)
		return differ(o, p, a, b, why);
	if (!*is_over || a->state == b->state)
		return 0;
	if (a->state == FAILED)
		return err_set(why, ERR_ABORTED, "process %u launched %s, which failed here: %s", p,
			       a->name, a->why);
	return err_set(why, ERR_ABORTED, "process %u (pid %d) could not launch %s: %s", p,
		       o->world->processes[p].pid, a->name, b->why);
}

/* Goes on in our log to what p takes part in too; false: there is no more. */
static bool find_mine(struct rt_order *o, unsigned p)
{
	struct fellow *f = &o->fellows[p];

	while (f->mine < o->n && !(own_entry(o, f->mine + 1)->party >> p & 1))
		f->mine++;
	return f->mine < o->n;
}

bool rt_order_has_more(struct rt_order *o, unsigned p)
{
	return find_mine(o, p);
}

/* The same in theirs. */
static bool find_theirs(struct rt_order *o, unsigned p, struct entry *e, bool *lost)
{
	struct fellow *f = &o->fellows[p];

	while (read_entry(f, f->theirs + 1, e, lost)) {
		if (e->party >> o->world->process & 1)
			return true;
		f->theirs++;
	}
	return false;
}

/* One that has not taken note that this process began anew, and maybe never will. */
static int end_apart(struct rt_order *o, unsigned p, bool is_alive, bool has_left,
		     const struct head *head, struct err *why)
{
	const char *name = own_entry(o, o->fellows[p].mine + 1)->name;
	int pid = o->world->processes[p].pid;

	if (has_left)
		return err_set(why, ERR_CANCELLED, "process %u (pid %d) takes no part in %s, where "
			       "others wait for it: %s", p, pid, name, head->why);
	return is_alive ? 0 : err_set(why, ERR_UNAVAILABLE, "process %u (pid %d) has ended", p,
				      pid);
}

static int compare_with(struct rt_order *o, unsigned p, struct err *why)
{
	struct fellow *f = &o->fellows[p];
	bool is_over = true, lost = false;
	int pid = o->world->processes[p].pid;
	struct head head;
	struct entry e;

	if (find_mine(o, p) && rt_era_has_begun(o, p, why))
		return why->code;
	if (f->is_apart) {
		/* Before it is asked whether it took note: it may have done so first. */
		bool is_alive = rt_order_is_alive(o->world, p), has_left = read_left(f, &head);

		if (!rt_era_is_level(o, p))
			return find_mine(o, p) ? end_apart(o, p, is_alive, has_left, &head, why) :
						 0;
	}
	while (is_over && find_mine(o, p)) {
		/* Before its log is read: what it wrote is there then. */
		bool is_alive = rt_order_is_alive(o->world, p), has_left = read_left(f, &head);
		int code;

		if (!find_theirs(o, p, &e, &lost)) {
			if (lost)
				return err_set(why, ERR_ABORTED, "process %u (pid %d) is more than "
					       "%u launches ahead", p, pid, LOG);
			if (has_left)
				return err_set(why, ERR_CANCELLED, "process %u (pid %d) takes no "
					       "part in %s, where others wait for it: %s", p, pid,
					       own_entry(o, f->mine + 1)->name, head.why);
			if (!is_alive)
				return err_set(why, ERR_UNAVAILABLE, "process %u (pid %d) has "
					       "ended and takes no part in %s", p, pid,
					       own_entry(o, f->mine + 1)->name);
			return 0;
		}
		code = compare(o, p, own_entry(o, f->mine + 1), &e, &is_over, why);
		if (!code && !is_over && !is_alive && e.state == ASKED)
			code = err_set(why, ERR_UNAVAILABLE, "process %u (pid %d) has ended before "
				       "it launched %s", p, pid, e.name);
		if (code)
			return code;
		f->mine += is_over;
		f->theirs += is_over;
		f->last = is_over ? f->theirs : f->last;
	}
	return 0;
}

/* Which launches are over; tells the others. */
static void sweep(struct rt_order *o)
{
	struct rt_client *c = o->world->client;
	uint64_t before = o->n_done;

	for (bool is_done = true; is_done && o->n_done < o->n; o->n_done += is_done) {
		is_done = own_entry(o, o->n_done + 1)->state != ASKED;
		for (unsigned i = 0; is_done && i < c->n_devices; i++)
			is_done = hal_queue_done(c->devices[i].queue) >=
				  o->values[o->n_done % LOG * n_own(o) + i];
	}
	o->head.n_done = o->n_done;
	if (o->n_done != before && pwrite(o->fd, &o->head.n_done, sizeof(o->head.n_done), 0) < 0)
		rt_order_break(o, &(struct err){ .code = ERR_INTERNAL, .msg = "this process's log "
			       "of launches can't be written" });
}

static bool is_compared(struct rt_order *o)
{
	for (unsigned p = 0; p < o->world->n_processes; p++)
		if (p != o->world->process && find_mine(o, p))
			return false;
	return true;
}

/* Under lock: until something is to be done, or for `ns`. */
static void rest(struct rt_order *o, int64_t ns)
{
	struct timespec t = clock_spec(clock_after(ns));

	pthread_cond_timedwait(&o->cond, &o->lock, &t);
}

static void *watch(void *arg)
{
	struct rt_order *o = arg;
	int64_t pause = LOOK_NS;
	uint64_t seen = 0;

	pthread_mutex_lock(&o->lock);
	while (!o->quit) {
		struct err why;
		int code = 0;

		if (!o->must_reset && o->n_done == o->n && (o->is_broken || is_compared(o))) {
			pthread_cond_wait(&o->cond, &o->lock);
			continue;
		}
		for (unsigned p = 0; !o->is_broken && !code && p < o->world->n_processes; p++)
			if (p != o->world->process)
				code = compare_with(o, p, &why);
		if (code)
			rt_order_break(o, &why);
		if (o->must_reset) {
			why = o->broken;
			o->must_reset = false;
			o->is_resetting = true;
			pthread_mutex_unlock(&o->lock);
			rt_order_reset(o, &why);
			pthread_mutex_lock(&o->lock);
			o->is_resetting = false;
			pthread_cond_broadcast(&o->cond);
		}
		sweep(o);
		pause = o->n_ended + o->n_done != seen ? LOOK_NS : pause * 5 / 4;
		seen = o->n_ended + o->n_done;
		rest(o, pause < SELDOM_NS ? pause : SELDOM_NS);
	}
	pthread_mutex_unlock(&o->lock);
	return NULL;
}

/* ---- life ---- */

/* Opens its own log. Its lock goes with the last descriptor of its file, so no child of fork has
 * one: its parent would seem to live as long as it does. */
static int open_log(struct rt_order *o)
{
	files_own_begin();
	o->fd = open(o->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	files_own_end(&o->own, &o->fd);
	return o->fd;
}

static void close_log(struct rt_order *o)
{
	files_close(&o->own, &o->fd, close);
}

int rt_order_open(struct rt_world *w, char name[RT_LOG_NAME], struct err *err)
{
	struct flock l = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	struct rt_order *o = calloc(1, sizeof(*o));
	pthread_condattr_t attr;
	uint64_t word[2];

	if (!o)
		return err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory");
	w->order = o;
	o->world = w;
	o->fd = -1;
	for (unsigned p = 0; p < RT_PROCESSES; p++)
		o->fellows[p].fd = -1;
	pthread_mutex_init(&o->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&o->cond, &attr);
	pthread_condattr_destroy(&attr);
	o->log = calloc(LOG, sizeof(*o->log));
	o->values = calloc((size_t)LOG * n_own(o), sizeof(*o->values));
	if (!o->log || !o->values)
		return err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory");
	if (getrandom(word, sizeof(word), 0) != sizeof(word))
		return err_sys(err, errno, "getrandom for the name of a file");
	snprintf(name, RT_LOG_NAME, "tessera-log-%016" PRIx64 "%016" PRIx64, word[0], word[1]);
	snprintf(o->path, sizeof(o->path), "%.100s/%s", hal_page_dir(), name);
	if (open_log(o) < 0 || ftruncate(o->fd, place_of(LOG) + (off_t)sizeof(struct entry)) ||
	    fcntl(o->fd, F_OFD_SETLK, &l))
		return err_sys(err, errno, "%s", o->path);
	return 0;
}

int rt_order_read(struct rt_world *w, unsigned process, const char *name, struct err *err)
{
	char path[160];
	struct stat s;
	int fd;

	if (process == w->process)
		return 0;
	if (strncmp(name, "tessera-log-", 12) || strchr(name, '/'))
		return err_set(err, ERR_INVALID_ARGUMENT, "process %u calls its log of launches "
			       "\"%.50s\"", process, name);
	snprintf(path, sizeof(path), "%.100s/%s", hal_page_dir(), name);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	w->order->fellows[process].fd = fd;
	if (fd < 0 || fstat(fd, &s))
		return err_sys(err, errno, "the log of launches of process %u, %s (all processes "
			       "of a job need the same user and TESSERA_TELEMETRY_DIR)", process,
			       path);
	if (!S_ISREG(s.st_mode) || s.st_uid != geteuid())
		return err_set(err, ERR_PERMISSION_DENIED, "%s, said to be the log of launches of "
			       "process %u, is no file of this user", path, process);
	return 0;
}

int rt_order_start(struct rt_world *w, struct err *err)
{
	struct rt_order *o = w->order;

	unlink(o->path);
	o->path[0] = 0;
	hal_on_stopped(w->client->hal, ask, o);
	o->has_thread = !pthread_create(&o->thread, NULL, watch, o);
	return o->has_thread ? 0 : err_set(err, ERR_RESOURCE_EXHAUSTED, "could not start a thread");
}

/* Under lock: whether nobody needs this process's devices for what was launched. */
static bool may_leave(struct rt_order *o)
{
	struct head head;

	if (o->is_broken)
		return true;
	if (o->n_done < o->n)
		return false;
	for (unsigned p = 0; p < o->world->n_processes; p++) {
		const struct fellow *f = &o->fellows[p];

		if (p == o->world->process || !rt_order_is_alive(o->world, p))
			continue;
		if (find_mine(o, p))
			return false;
		if (pread(f->fd, &head, sizeof(head), 0) == sizeof(head) && head.n_done < f->last)
			return false;
	}
	return true;
}

void rt_order_leave(struct rt_world *w, const struct err *why)
{
	struct rt_order *o = w->order;

	pthread_mutex_lock(&o->lock);
	write_left(o, why, NULL);
	pthread_mutex_unlock(&o->lock);
}

void rt_order_return(struct rt_world *w)
{
	struct rt_order *o = w->order;
	struct head head;

	pthread_mutex_lock(&o->lock);
	for (unsigned p = 0; p < w->n_processes; p++)
		if (p != w->process && read_left(&o->fellows[p], &head))
			o->fellows[p].passed = head.has_left;
	pthread_mutex_unlock(&o->lock);
}

void rt_order_settle(struct rt_world *w)
{
	struct rt_order *o = w->order;
	int64_t deadline = clock_after(LEAVE_NS);

	pthread_mutex_lock(&o->lock);
	while (o->has_thread && !may_leave(o) && clock_ns() < deadline)
		rest(o, LOOK_NS);
	pthread_mutex_unlock(&o->lock);
}

void rt_order_outlast(struct rt_world *w)
{
	struct rt_order *o = w->order;
	int64_t deadline = clock_after(LEAVE_NS);
	unsigned p = 0;

	pthread_mutex_lock(&o->lock);
	while (o->has_thread && p < w->n_processes && clock_ns() < deadline) {
		if (p == w->process || !rt_order_is_alive(w, p))
			p++;
		else
			rest(o, LOOK_NS);
	}
	pthread_mutex_unlock(&o->lock);
}

void rt_order_close(struct rt_world *w)
{
	struct rt_order *o = w->order;

	if (!o)
		return;
	rt_order_settle(w);
	hal_on_stopped(w->client->hal, NULL, NULL);
	pthread_mutex_lock(&o->lock);
	o->quit = true;
	pthread_cond_broadcast(&o->cond);
	pthread_mutex_unlock(&o->lock);
	if (o->has_thread)
		pthread_join(o->thread, NULL);
	rt_event_unref(o->last);
	if (o->path[0])
		unlink(o->path);
	close_log(o);
	for (unsigned p = 0; p < RT_PROCESSES; p++)
		if (o->fellows[p].fd >= 0)
			close(o->fellows[p].fd);
	pthread_mutex_destroy(&o->lock);
	pthread_cond_destroy(&o->cond);
	free(o->log);
	free(o->values);
	free(o);
	w->order = NULL;
}
