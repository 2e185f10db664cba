/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether a device may be used, and what this process tells of it in its telemetry
 * page. The lowest file of the HAL: all others ask here, and it calls none of them.
 *
 * What failed on a queue is written down here, too: which submissions of all, what was wrong of the
 * newest alone, since buffers of any age ask. Numbers ascend, so both lists are sorted.
 *
 * Death is for good until a reset: the first error is kept, every pending submission
 * fails with it, every later call returns it.
 */
#define LOG_TAG "hal/state"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hal/base/log.h"
#include "hal/hal_internal.h"

#define FIRST_ROOM 64u	/* of older failures */

/* ---- fork ---- */

static atomic_uint generation;
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;

static void count_fork(void)
{
	atomic_fetch_add(&generation, 1);
}

static void watch_forks(void)
{
	pthread_atfork(NULL, NULL, count_fork);
}

unsigned hal_generation(void)
{
	pthread_once(&fork_once, watch_forks);
	return atomic_load_explicit(&generation, memory_order_relaxed);
}

bool hal_is_inherited(const struct hal *hal)
{
	return hal->generation != hal_generation();
}

int hal_refuse_child(struct err *err)
{
	return err_set(err, ERR_FAILED_PRECONDITION, "this process was forked from one that had "
		       "the device open: devices do not survive fork; start processes by spawn, "
		       "or open devices in the child");
}

int hal_check(struct hal_device *dev, struct err *err)
{
	if (hal_is_orphan(dev))
		return hal_refuse_child(err);
	if (atomic_load_explicit(&dev->is_dead, memory_order_acquire)) {
		int code;

		pthread_mutex_lock(&dev->death_lock);
		code = dev->death.code;
		if (err)
			*err = dev->death;
		pthread_mutex_unlock(&dev->death_lock);
		return code;
	}
	return 0;
}

/* ---- names ---- */

const char *hal_chip_name(struct hal_device *dev, uint64_t chip)
{
	return chip == dev->identity.chip ? dev->entry->info.bus_id :
	       chip < HAL_CHIPS ? atomic_load(&dev->chips[chip]) : NULL;
}

const char *hal_peer_name(const struct hal_device *dev, uint64_t va)
{
	uint64_t index = (va - HAL_PEER_VA) >> 48;

	return va >= HAL_PEER_VA && dev->t->ops->hbm_show && index < dev->hal->n_entries ?
	       dev->hal->entries[index].info.bus_id : NULL;
}

/* ---- death ---- */

void hal_wake_waiter(struct hal_device *dev)
{
	uint64_t one = 1;

	/* EAGAIN: the counter is full, so the waiter will look anyway. */
	if (write(dev->irq_fd, &one, sizeof(one)) < 0 && errno != EAGAIN)
		log_error("waking the waiter: %s", strerror(errno));
}

void hal_die(struct hal_device *dev, const struct err *why)
{
	struct hal_crash *crash = NULL;
	struct err death;
	bool is_first;

	/* A reset is no crash, and says what for. */
	if (why->code != ERR_ABORTED && !atomic_load(&dev->is_dead)) {
		crash = hal_crash_begin(dev, NULL, 0, NULL);
		hal_say_stopped(dev, true, why->msg);
	}
	pthread_mutex_lock(&dev->lock);
	is_first = !atomic_load(&dev->is_dead);
	if (is_first) {
		death = *why;
		err_add(&death, "%s died", dev->entry->info.bus_id);
		hal_crash_end(crash, &death);
		crash = NULL;
		pthread_mutex_lock(&dev->death_lock);
		dev->death = death;
		pthread_mutex_unlock(&dev->death_lock);
		if (dev->page)
			snprintf(dev->page->state, sizeof(dev->page->state), "dead: %.80s",
				 why->msg);
		/* A reset tells of itself. */
		if (why->code != ERR_ABORTED)
			hal_page_tell(dev, why->code, dev->death.msg);
		atomic_store_explicit(&dev->is_dead, true, memory_order_release);
		atomic_store(&dev->must_tell, true);
	}
	pthread_mutex_unlock(&dev->lock);
	hal_crash_drop(crash);
	/* The waiter fails what is pending: our caller may hold a queue's lock. */
	if (is_first)
		hal_wake_waiter(dev);
}

void hal_say_stopped(struct hal_device *dev, bool is_reset, const char *why)
{
	pthread_mutex_lock(&dev->hal->stopped_lock);
	if (is_reset)
		snprintf(dev->entry->reset, HAL_STOPPED, "%.*s", HAL_STOPPED - 1, why);
	snprintf(dev->entry->dropped, HAL_STOPPED, "%.*s", HAL_STOPPED - 1, why);
	pthread_mutex_unlock(&dev->hal->stopped_lock);
}

void hal_why_stopped(struct hal *hal, const char *name, bool is_reset, char out[HAL_STOPPED])
{
	for (unsigned i = 0; i < hal->n_entries; i++) {
		struct hal_entry *e = &hal->entries[i];

		if (name != e->info.bus_id)
			continue;
		pthread_mutex_lock(&hal->stopped_lock);
		memcpy(out, is_reset ? e->reset : e->dropped, HAL_STOPPED);
		pthread_mutex_unlock(&hal->stopped_lock);
	}
}

void hal_on_stopped(struct hal *hal, bool (*fn)(void *arg, const char *owner, char *text,
						size_t bytes), void *arg)
{
	pthread_mutex_lock(&hal->ask_lock);
	hal->on_stopped = fn;
	hal->on_stopped_arg = arg;
	pthread_mutex_unlock(&hal->ask_lock);
}

bool hal_ask_stopped(struct hal *hal, const char *name, char out[HAL_STOPPED])
{
	bool is_known;

	if (!name)
		return false;
	pthread_mutex_lock(&hal->ask_lock);
	is_known = hal->on_stopped &&
		   hal->on_stopped(hal->on_stopped_arg, name, out, HAL_STOPPED);
	pthread_mutex_unlock(&hal->ask_lock);
	return is_known;
}

void hal_device_on_death(struct hal_device *dev,
			 void (*fn)(void *arg, unsigned index, const struct err *why), void *arg)
{
	pthread_mutex_lock(&dev->death_lock);
	dev->on_death = fn;
	dev->on_death_arg = arg;
	pthread_mutex_unlock(&dev->death_lock);
}

void hal_tell_of_death(struct hal_device *dev)
{
	void (*fn)(void *arg, unsigned index, const struct err *why);
	struct err why;
	void *arg;

	if (!atomic_exchange(&dev->must_tell, false) || !hal_check(dev, &why))
		return;
	pthread_mutex_lock(&dev->death_lock);
	fn = dev->on_death;
	arg = dev->on_death_arg;
	pthread_mutex_unlock(&dev->death_lock);
	if (fn)
		fn(arg, dev->index, &why);
}

int hal_check_alive(struct hal_device *dev, struct err *err)
{
	struct err why;
	int code = hal_check(dev, err);

	if (code)
		return code;
	/* What is seen before a reset must not kill the device after it. */
	pthread_mutex_lock(&dev->life);
	code = hal_check(dev, err);
	if (!code && dev->t->ops->alive(dev->t, &why)) {
		/* A reset that nobody here asked for. */
		if (why.code == ERR_ABORTED)
			hal_say_stopped(dev, true, why.msg);
		hal_die(dev, &why);
		code = hal_check(dev, &why);
		if (code == ERR_ABORTED)
			hal_page_tell(dev, code, why.msg);
		if (err)
			*err = why;
	}
	pthread_mutex_unlock(&dev->life);
	return code;
}

int hal_device_error(struct hal_device *dev, struct err *err)
{
	return hal_check(dev, err);
}

/* ---- the telemetry page ---- */

int hal_device_telemetry(struct hal_device *dev, struct hw_telemetry *out, struct err *err)
{
	int code = hal_check(dev, err);

	return code ? code : dev->t->ops->ask(dev->t, (struct hw_sqe){ .op = HW_LOG_PAGE,
		.id = HW_LOG_TELEMETRY }, out, sizeof(*out), NULL, err);
}

int hal_device_links(struct hal_device *dev, struct hw_link out[HW_MAX_LINKS], unsigned *n,
		     struct err *err)
{
	uint64_t bytes = 0;
	int code = hal_check(dev, err);

	*n = 0;
	if (code || !dev->identity.fabric)
		return code;
	code = dev->t->ops->ask(dev->t, (struct hw_sqe){ .op = HW_LOG_PAGE, .id = HW_LOG_LINKS },
				out, HW_MAX_LINKS * sizeof(*out), &bytes, err);
	*n = (unsigned)(bytes / sizeof(*out));
	return code;
}

/* Between these two a group of numbers changes; readers see all of it or nothing. */
static void begin_group(struct hal_device *dev)
{
	pthread_mutex_lock(&dev->hal->page_lock);
	__atomic_fetch_add(&dev->page_head->sequence, 1, __ATOMIC_ACQ_REL);
}

static void end_group(struct hal_device *dev)
{
	__atomic_fetch_add(&dev->page_head->sequence, 1, __ATOMIC_ACQ_REL);
	pthread_mutex_unlock(&dev->hal->page_lock);
}

/* A text that is too long is cut before the name of its crash dump. */
static void fit(char out[], size_t n, const char *text)
{
	const char *file = strstr(text, HAL_DUMP_SAYS);

	if (strlen(text) < n || !file || strlen(file) > n / 2)
		snprintf(out, n, "%s", text);
	else
		snprintf(out, n, "%.*s%s", (int)(n - 1 - strlen(file)), text, file);
}

void hal_page_tell(struct hal_device *dev, int code, const char *text)
{
	struct hal_page *page = dev->page_head;
	struct hal_page_event *e;

	if (!dev->page)
		return;
	begin_group(dev);
	/* Who tries again and again for memory must not push out what else went wrong. */
	e = &page->events[(page->n_events - 1) % HAL_PAGE_EVENTS];
	if (!page->n_events || code != ERR_RESOURCE_EXHAUSTED || e->code != (uint32_t)code ||
	    e->device != dev->page - page->devices)
		e = &page->events[page->n_events++ % HAL_PAGE_EVENTS];
	e->number = page->n_events;
	e->time_ns = (uint64_t)clock_date_ns();
	e->device = (uint32_t)(dev->page - page->devices);
	e->code = (uint32_t)code;
	fit(e->text, sizeof(e->text), text);
	end_group(dev);
}

/* A look may take as long as there are blocks: the next is a hundred times that later. */
static void write_heap(struct hal_device *dev, int64_t now)
{
	struct hal_page_heap heap;

	if (now < dev->heap_due)
		return;
	pthread_mutex_lock(&dev->lock);
	if (dev->page->heap_changes == dev->page->heap.changes && dev->page->heap.read_at_ns) {
		pthread_mutex_unlock(&dev->lock);
		return;
	}
	hal_heap_show(dev->heap, &heap);
	heap.changes = dev->page->heap_changes;
	pthread_mutex_unlock(&dev->lock);
	heap.read_at_ns = (uint64_t)now;
	begin_group(dev);
	dev->page->heap = heap;
	end_group(dev);
	dev->heap_due = now + 100 * (clock_ns() - now);
}

/* What the device answered, all of one moment. */
struct answers {
	struct hw_telemetry counters;
	struct hw_ras ras;
	struct hw_link links[HW_MAX_LINKS];
	unsigned n_links;
};

static bool ask_counters(struct hal_device *dev, struct answers *out)
{
	if (hal_device_telemetry(dev, &out->counters, NULL) ||
	    dev->t->ops->ask(dev->t, (struct hw_sqe){ .op = HW_LOG_PAGE, .id = HW_LOG_RAS },
			     &out->ras, sizeof(out->ras), NULL, NULL))
		return false;
	/* A kernel driver that is too old can't be asked: then the page tells of no links. */
	if (hal_device_links(dev, out->links, &out->n_links, NULL))
		out->n_links = 0;
	return true;
}

static void write_counters(struct hal_device *dev, const struct answers *a, int64_t now)
{
	struct hal_page_device *p = dev->page;
	const struct hw_telemetry *t = &a->counters;

	/* A reset of the function starts the count anew. */
	if (t->busy_compute_ns < dev->last_busy_ns)
		dev->last_busy_ns = 0;
	begin_group(dev);
	p->busy_ns = t->busy_compute_ns - dev->last_busy_ns;
	p->window_ns = t->time_ns - dev->last_time_ns;
	p->read_at_ns = (uint64_t)now;
	p->temperature_mc = t->temperature_mc;
	p->power_mw = t->power_mw;
	p->n_fault = t->n_fault;
	p->counters = *t;
	p->ras = a->ras;
	p->n_links = a->n_links;
	memcpy(p->links, a->links, a->n_links * sizeof(*a->links));
	end_group(dev);
	dev->last_busy_ns = t->busy_compute_ns;
	dev->last_time_ns = t->time_ns;
}

static uint64_t count_submitted(const struct hal_device *dev)
{
	return atomic_load_explicit(&dev->queues[0]->submitted, memory_order_relaxed) +
	       atomic_load_explicit(&dev->queues[1]->submitted, memory_order_relaxed);
}

/* One that is opened after this one makes a link work, which no interrupt tells. Those that
 * failed are looked at again until they do. */
static bool has_link_down(const struct hal_page_device *p)
{
	for (unsigned i = 0; i < p->n_links; i++)
		if (p->links[i].is != HW_LINK_UP)
			return true;
	return false;
}

void hal_page_update(struct hal_device *dev, bool may_ask)
{
	uint64_t submitted = count_submitted(dev);
	int64_t now = clock_ns(), due = atomic_load_explicit(&dev->page_due,
							     memory_order_relaxed);
	struct answers a;

	/* One thread at a time: until it is done, it is not due. */
	if (now < due || !atomic_compare_exchange_strong(&dev->page_due, &due, CLOCK_FOREVER))
		return;
	/* The last of what was done is told once, though nobody works any more. */
	if ((may_ask || submitted != dev->told_submitted || has_link_down(dev->page)) &&
	    ask_counters(dev, &a)) {
		write_counters(dev, &a, now);
		dev->told_submitted = submitted;
	}
	write_heap(dev, now);
	atomic_store(&dev->page_due, now + HAL_PAGE_NS);
}

void hal_note_executable(struct hal_device *dev, const char *what)
{
	if (dev->page && !hal_is_orphan(dev))
		snprintf(dev->page->running, sizeof(dev->page->running), "%s", what);
}

/* ---- failures of a queue ---- */

int hal_failures_init(struct hal_failures *f, struct err *err)
{
	f->recent = calloc(HAL_FAILURES, sizeof(*f->recent));
	return f->recent ? 0 : err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory");
}

void hal_failures_free(struct hal_failures *f)
{
	free(f->recent);
	free(f->old);
}

/* Neighbours of one code become one. Without memory for another, the last becomes longer: better
 * that work in between counts as failed than that failed work counts as good. */
static void keep_old(struct hal_failures *f, const struct hal_failure *gone)
{
	struct hal_old_failure *last = f->n_old ? &f->old[f->n_old - 1] : NULL, *grown;
	size_t room = f->room_old ? 2 * f->room_old : FIRST_ROOM;

	if (last && last->code == gone->err.code && last->last + 1 == gone->first) {
		last->last = gone->last;
		return;
	}
	if (f->n_old == f->room_old) {
		grown = realloc(f->old, room * sizeof(*grown));
		if (!grown && last)
			last->last = gone->last;
		if (!grown)
			return;
		f->old = grown;
		f->room_old = room;
	}
	f->old[f->n_old++] = (struct hal_old_failure){ gone->first, gone->last, gone->err.code };
}

void hal_failures_add(struct hal_failures *f, uint64_t first, uint64_t last,
		      const struct err *why)
{
	struct hal_failure *slot = &f->recent[f->n % HAL_FAILURES];

	/* A reset when nothing was pending is the failure of none. */
	if (f->n >= HAL_FAILURES && slot->first <= slot->last)
		keep_old(f, slot);
	*slot = (struct hal_failure){ first, last, *why };
	/* Who has no lock asks whether there is any. */
	__atomic_store_n(&f->n, f->n + 1, __ATOMIC_RELEASE);
}

const char *hal_failures_last(const struct hal_failures *f)
{
	return f->n ? f->recent[(f->n - 1) % HAL_FAILURES].err.msg : "";
}

static int find_old(const struct hal_failures *f, uint64_t value, struct err *err)
{
	size_t low = 0, high = f->n_old;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (f->old[mid].last < value)
			low = mid + 1;
		else
			high = mid;
	}
	if (low == f->n_old || value < f->old[low].first)
		return 0;
	return err_set(err, f->old[low].code, "submission %llu failed, before %u others did: "
		       "what was wrong with it is no longer known. Look at results sooner",
		       (unsigned long long)value, HAL_FAILURES);
}

int hal_failures_find(const struct hal_failures *f, uint64_t value, struct err *err)
{
	uint64_t n = f->n < HAL_FAILURES ? f->n : HAL_FAILURES;

	for (uint64_t i = 0; i < n; i++) {
		const struct hal_failure *at = &f->recent[(f->n - 1 - i) % HAL_FAILURES];

		if (value > at->last)
			return 0;
		if (value >= at->first) {
			if (err)
				*err = at->err;
			return at->err.code;
		}
	}
	return find_old(f, value, err);
}
