/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Traces: what a device ran, and when (DEVICE.md#traces).
 *
 * The device writes records into a ring in pinned memory and waits for nobody; with each half
 * of it the waiter thread comes and takes them away, into memory that grows. What programs
 * were is kept with them: numbers of programs come again, and executables go.
 */
#include <stdlib.h>
#include <string.h>

#include "hal/hal_internal.h"
#include "hal/hw/image.h"
#include "hal/trace_wire.h"

#define RING_RECORDS 65536u
#define TRIES 8

/* A program of the trace. It had its number from `since` on, CLOCK_MONOTONIC, until another has. */
struct hal_trace_exe {
	uint32_t program;
	int64_t since;
	char name[64];
	struct image image;	/* debug and strings only; owned */
};

/* A moment, as the device's clock and CLOCK_MONOTONIC have it. */
struct moment { int64_t device, host; };

/* What hal_trace_stop gives away. */
struct trace {
	struct hal_trace public;
	struct hal_trace_exe *exes;	/* [n_exes], those that went first */
	size_t n_exes, room_exes;
	struct moment begin, end;
};

/* A device's trace while it runs. Under device.trace_lock. */
struct hal_tracing {
	struct trace *trace;
	struct hw_trace_record *records;	/* trace->public.records, of `room` */
	size_t room;
	struct hal_mem *ring;
	uint64_t next;		/* number of the record that is read next */
	uint64_t done;		/* of the compute queue when it began */
};

/* ---- reading ---- */

/* Room for one record more; false: there is none. */
static bool grow(struct hal_tracing *t)
{
	size_t room = t->room ? t->room * 2 : 4096;
	struct hw_trace_record *grown;

	if (t->trace->public.n_records < t->room)
		return true;
	grown = room > HAL_WIRE_MOST ? NULL : realloc(t->records, room * sizeof(*grown));
	if (!grown)
		return false;
	t->trace->public.records = t->records = grown;
	t->room = room;
	return true;
}

/* The record that has `next`, or a newer one in its place. False: neither is there yet. */
static bool read_record(const struct hal_tracing *t, struct hw_trace_record *out)
{
	const struct hw_trace_record *ring = hal_mem_host(t->ring);
	const uint64_t *at = (const void *)&ring[(t->next - 1) % RING_RECORDS];
	uint64_t word[sizeof(*out) / 8], number;

	do {
		number = __atomic_load_n(at, __ATOMIC_ACQUIRE);
		/* A lap ahead is the least that a newer one can be. */
		if (number != t->next && number < t->next + RING_RECORDS)
			return false;
		for (unsigned i = 1; i < sizeof(*out) / 8; i++)
			word[i] = __atomic_load_n(at + i, __ATOMIC_RELAXED);
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
	} while (__atomic_load_n(at, __ATOMIC_RELAXED) != number);
	word[0] = number;
	memcpy(out, word, sizeof(word));
	return true;
}

static void drain(struct hal_tracing *t)
{
	struct hal_trace *p = &t->trace->public;
	struct hw_trace_record r;

	/* A device that lies about numbers does not hold us: a lap is all it gets. */
	for (unsigned n = 0; n < RING_RECORDS && read_record(t, &r); n++) {
		if (r.number != t->next) {
			/* It is a lap ahead. Half a ring leaves room to be slow in. */
			p->n_lost += r.number - RING_RECORDS / 2 - t->next;
			t->next = r.number - RING_RECORDS / 2;
			continue;
		}
		t->next++;
		if (grow(t))
			t->records[p->n_records++] = r;
		else
			p->n_lost++;
	}
}

void hal_trace_drain(struct hal_device *dev)
{
	if (!atomic_load_explicit(&dev->is_traced, memory_order_relaxed))
		return;
	pthread_mutex_lock(&dev->trace_lock);
	if (dev->tracing)
		drain(dev->tracing);
	pthread_mutex_unlock(&dev->trace_lock);
}

/* ---- programs ---- */

static bool copy_debug(const struct image *from, struct image *to)
{
	void *debug = malloc(from->n_debug * sizeof(*from->debug) + 1);
	char *strings = malloc(from->strings_bytes + 1);

	if (!debug || !strings) {
		free(debug);
		free(strings);
		return false;
	}
	if (from->n_debug)
		memcpy(debug, from->debug, from->n_debug * sizeof(*from->debug));
	if (from->strings_bytes)
		memcpy(strings, from->strings, from->strings_bytes);
	strings[from->strings_bytes] = 0;
	*to = (struct image){ .debug = debug, .n_debug = from->n_debug, .strings = strings,
			      .strings_bytes = from->strings_bytes };
	return true;
}

/* Under trace_lock. What there is no memory for has no name. */
static void keep(struct hal_tracing *t, struct hal_exe *exe)
{
	struct trace *trace = t->trace;
	size_t room = trace->room_exes ? trace->room_exes * 2 : 16;
	struct hal_trace_exe *x, *grown;

	if (!exe->program || atomic_load(&exe->last_use) <= t->done)
		return;
	if (trace->n_exes == trace->room_exes) {
		grown = realloc(trace->exes, room * sizeof(*grown));
		if (!grown)
			return;
		trace->exes = grown;
		trace->room_exes = room;
	}
	x = &trace->exes[trace->n_exes];
	*x = (struct hal_trace_exe){ .program = exe->program, .since = exe->since };
	memcpy(x->name, exe->name, sizeof(x->name));
	trace->n_exes += copy_debug(exe->image, &x->image);
}

void hal_trace_forget(struct hal_exe *exe)
{
	pthread_mutex_lock(&exe->dev->trace_lock);
	if (exe->dev->tracing)
		keep(exe->dev->tracing, exe);
	pthread_mutex_unlock(&exe->dev->trace_lock);
}

/* ---- the host's clock ---- */

/* The best of several looks; false: none was possible. */
static bool look(struct hal_device *dev, struct moment *out)
{
	int64_t best = INT64_MAX;

	for (unsigned i = 0; i < TRIES; i++) {
		int64_t before, after;
		uint64_t ns;

		if (!dev->t->ops->clock(dev->t, &ns, &before, &after) || after - before >= best)
			continue;
		best = after - before;
		*out = (struct moment){ (int64_t)ns, before + best / 2 };
	}
	return best != INT64_MAX;
}

int64_t hal_trace_time(const struct hal_trace *public, uint64_t device_ns)
{
	const struct trace *t = (const struct trace *)public;
	int64_t past = (int64_t)(device_ns - (uint64_t)t->begin.device);
	int64_t of_device = t->end.device - t->begin.device, of_host = t->end.host - t->begin.host;

	/* Clocks drift apart; but a look is not exact, so that a short trace tells nothing. */
	if (of_device < 1000000000)
		return t->begin.host + past;
	return t->begin.host + (int64_t)((__int128)past * of_host / of_device);
}

/* ---- life ---- */

static int start(struct hal_device *dev, const struct hal_tracing *t, struct err *err)
{
	return dev->t->ops->trace_start(dev->t, (struct hw_trace){
		.va = t->ring->va, .first = t->next, .n_records = RING_RECORDS }, err);
}

static int begin(struct hal_device *dev, struct hal_tracing *t, struct err *err)
{
	const uint64_t bytes = RING_RECORDS * sizeof(struct hw_trace_record);
	int code = hal_mem_alloc(dev, HAL_MEM_HOST, bytes, "trace", &t->ring, err);

	if (code)
		return code;
	memset(hal_mem_host(t->ring), 0, bytes);
	t->next = 1;
	t->done = atomic_load(&dev->queues[HAL_QUEUE_COMPUTE]->done);
	if (!look(dev, &t->trace->begin))
		code = err_set(err, ERR_INTERNAL, "the clock of %s can't be read",
			       dev->entry->info.bus_id);
	t->trace->public.began = clock_ns();
	return code ? code : start(dev, t, err);
}

static void free_tracing(struct hal_tracing *t)
{
	hal_trace_free(t->trace ? &t->trace->public : NULL);
	free(t);
}

int hal_trace_start(struct hal_device *dev, struct err *err)
{
	struct hal_tracing *t;
	int code = hal_check(dev, err);

	if (code)
		return code;
	t = calloc(1, sizeof(*t));
	if (t)
		t->trace = calloc(1, sizeof(*t->trace));
	if (!t || !t->trace) {
		free(t);
		return err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory");
	}
	pthread_mutex_lock(&dev->trace_lock);
	code = dev->tracing ? err_set(err, ERR_ALREADY_EXISTS, "%s is traced already, by a "
				      "profiler of this process or by xla-smi trace: end that "
				      "first", dev->entry->info.bus_id) : begin(dev, t, err);
	if (!code) {
		dev->tracing = t;
		atomic_store(&dev->is_traced, true);
	}
	pthread_mutex_unlock(&dev->trace_lock);
	if (code) {
		hal_mem_free(t->ring);
		free_tracing(t);
	}
	return code;
}

int hal_trace_renew(struct hal_device *dev, struct err *err)
{
	if (!dev->tracing)
		return 0;
	drain(dev->tracing);
	return start(dev, dev->tracing, err);
}

void hal_trace_reset(struct hal_device *dev)
{
	if (dev->tracing)
		for (struct hal_exe *x = dev->exes; x; x = x->next)
			keep(dev->tracing, x);
}

int hal_trace_stop(struct hal_device *dev, struct hal_trace **out, struct err *err)
{
	struct hal_tracing *t;
	bool is_over;

	if (hal_is_orphan(dev))
		return hal_refuse_child(err);
	pthread_mutex_lock(&dev->exes_lock);
	pthread_mutex_lock(&dev->trace_lock);
	t = dev->tracing;
	dev->tracing = NULL;
	atomic_store(&dev->is_traced, false);
	if (t) {
		/* A device that can't be asked may write on: its ring stays until it is closed. */
		is_over = !dev->t->ops->trace_stop(dev->t, NULL);
		drain(t);
		if (is_over)
			hal_mem_free(t->ring);
		t->trace->public.ended = clock_ns();
		if (!look(dev, &t->trace->end))
			t->trace->end = t->trace->begin;
		for (struct hal_exe *x = dev->exes; x; x = x->next)
			keep(t, x);
		*out = &t->trace->public;
		free(t);
	}
	pthread_mutex_unlock(&dev->trace_lock);
	pthread_mutex_unlock(&dev->exes_lock);
	return t ? 0 : err_set(err, ERR_FAILED_PRECONDITION, "%s is not traced",
			       dev->entry->info.bus_id);
}

void hal_trace_free(struct hal_trace *public)
{
	struct trace *t = (struct trace *)public;

	if (!t)
		return;
	for (size_t i = 0; i < t->n_exes; i++) {
		free((void *)(uintptr_t)t->exes[i].image.debug);
		free((void *)(uintptr_t)t->exes[i].image.strings);
	}
	free(t->exes);
	free((void *)(uintptr_t)t->public.records);
	free(t);
}

void hal_trace_tell(const struct hal_trace *public, const struct hw_trace_record *r,
		    struct hal_trace_words *out)
{
	const struct trace *t = (const struct trace *)public;
	int64_t when = hal_trace_time(public, r->end_ns);
	const struct hal_trace_exe *x = NULL;
	const struct image_debug *d;

	*out = (struct hal_trace_words){ "", "", "" };
	if (r->op != HW_EXECUTE && r->kind != HW_TRACE_GROUP && r->kind != HW_TRACE_PARKED)
		return;
	for (size_t i = 0; i < t->n_exes; i++) {
		const struct hal_trace_exe *e = &t->exes[i];

		/* The last one that had the number then; looks at clocks are not exact. */
		if (e->program == r->program && e->since <= when && (!x || e->since > x->since))
			x = e;
	}
	if (!x)
		return;
	out->program = x->name;
	d = r->kind == HW_TRACE_PROGRAM || r->kind == HW_TRACE_WAIT ? NULL :
		image_where(&x->image, r->pc);
	if (d) {
		out->op = image_string(&x->image, d->op);
		out->where = image_string(&x->image, d->where);
	}
}
