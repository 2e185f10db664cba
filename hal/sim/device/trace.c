/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Traces (DEVICE.md#traces): what a context ran when, as records in a ring of the host's.
 *
 * An engine collects the records of its run in its own memory, without the lock, and has them
 * written when there is no room and when the run ends. The ring is looked up for each record,
 * so whoever takes its memory away waits for nobody; what has no place then is lost, and its
 * number with it. Without a trace all this costs a run one comparison a tensor instruction.
 */
#include <string.h>

#include "hal/sim/sim_internal.h"

/* All of it is memory of the host's that the context may write. */
static bool is_writable(struct sim_device *dev, unsigned ctx, uint64_t va, uint64_t bytes)
{
	bool is_host = false;
	uint64_t got;

	for (uint64_t at = 0; at < bytes; at += got)
		if (!sim_va(dev, NULL, ctx, va + at, bytes - at, true, &got, &is_host) || !is_host)
			return false;
	return true;
}

int sim_trace_start(struct sim_device *dev, unsigned ctx, const struct hw_trace *in)
{
	struct sim_trace *t = &dev->contexts[ctx].trace;
	uint64_t bytes = in->n_records * sizeof(struct hw_trace_record);

	if (in->n_records < 2 || in->n_records > HW_TRACE_MAX_RECORDS ||
	    in->n_records & (in->n_records - 1) || in->va % sizeof(struct hw_trace_record) ||
	    in->va > UINT64_MAX - bytes || !in->first ||
	    (in->vector != HW_NO_VECTOR && in->vector >= HW_MAX_VECTORS))
		return HW_ST_BAD_FIELD;
	if (t->id)
		return HW_ST_BUSY;
	if (!is_writable(dev, ctx, in->va, bytes))
		return HW_ST_BAD_ADDRESS;
	*t = (struct sim_trace){ .id = ++dev->n_traces, .in = *in, .next = in->first,
				.began = clock_ns() };
	return 0;
}

int sim_trace_stop(struct sim_device *dev, unsigned ctx, uint64_t *last)
{
	struct sim_trace *t = &dev->contexts[ctx].trace;

	if (!t->id)
		return HW_ST_NO_SUCH_ID;
	*last = t->next - 1;
	*t = (struct sim_trace){ 0 };
	return 0;
}

/* Writes a record; the number comes last, and is 0 meanwhile. */
static void store(uint8_t *to, const struct hw_trace_record *r)
{
	uint64_t word[sizeof(*r) / 8];

	memcpy(word, r, sizeof(*r));
	__atomic_store_n((uint64_t *)to, 0, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_RELEASE);
	for (unsigned i = 1; i < sizeof(*r) / 8; i++)
		__atomic_store_n((uint64_t *)to + i, word[i], __ATOMIC_RELAXED);
	__atomic_store_n((uint64_t *)to, word[0], __ATOMIC_RELEASE);
}

/* Under lock. Nothing if the trace is another one, or over. */
static void put(struct sim_device *dev, unsigned ctx, uint64_t id, struct hw_trace_record *r)
{
	struct sim_trace *t = &dev->contexts[ctx].trace;
	bool is_host = false;
	uint64_t at;
	uint8_t *to;

	if (!id || t->id != id)
		return;
	at = t->in.va + (t->next - 1) % t->in.n_records * sizeof(*r);
	r->number = t->next++;
	to = sim_va(dev, NULL, ctx, at, sizeof(*r), true, NULL, &is_host);
	if (to && is_host)
		store(to, r);
	if (!(r->number % (t->in.n_records / 2)))
		sim_irq(dev, t->in.vector);
}

static void put_groups(struct sim_engine *e)
{
	struct sim_tracer *t = &e->tracer;

	for (unsigned i = 0; i < t->n; i++)
		put(e->dev, e->queue->info.ctx, e->trace, &t->records[i]);
	t->n = 0;
}

static void take(struct sim_tracer *t)
{
	struct sim_engine *e = t->owner;

	pthread_mutex_lock(&e->dev->lock);
	put_groups(e);
	pthread_mutex_unlock(&e->dev->lock);
}

static struct hw_trace_record about(const struct sim_device *dev, const struct sim_queue *q,
				    unsigned kind, int64_t begin, int64_t end)
{
	return (struct hw_trace_record){
		.kind = (uint8_t)kind, .cls = q->info.cls, .queue = (uint16_t)(q - dev->queues),
		.program = q->sqe.op == HW_EXECUTE ? q->sqe.u.execute.program : 0,
		.tag = q->sqe.tag, .op = q->sqe.op,
		.begin_ns = (uint64_t)(begin - dev->power_on),
		.end_ns = (uint64_t)(end - dev->power_on),
	};
}

void sim_trace_wait(struct sim_device *dev, struct sim_queue *q)
{
	if (dev->contexts[q->info.ctx].trace.id && !q->waits_since)
		q->waits_since = clock_ns();
}

/* The engine records its run, which begins or goes on, if `id` is a trace. */
static void arm(struct sim_engine *e, uint64_t id)
{
	e->trace = id;
	e->core.tracer = id ? &e->tracer : NULL;
	if (!id)
		return;
	e->tracer.take = take;
	e->tracer.owner = e;
	e->tracer.epoch = e->dev->power_on;
	e->tracer.like = about(e->dev, e->queue, 0, 0, 0);
}

void sim_trace_begin(struct sim_device *dev, struct sim_engine *e)
{
	struct sim_queue *q = e->queue;
	const struct sim_trace *t = &dev->contexts[q->info.ctx].trace;
	int64_t since = q->waits_since;
	struct hw_trace_record r;

	arm(e, t->id);
	e->moved = 0;
	q->waits_since = 0;
	if (!e->trace || !since)
		return;
	/* It may have waited before there was a trace. */
	r = about(dev, q, HW_TRACE_WAIT, since < t->began ? t->began : since, e->began);
	put(dev, q->info.ctx, e->trace, &r);
}

void sim_trace_park(struct sim_engine *e, struct sim_parked *k)
{
	put_groups(e);
	k->trace = e->trace;
	k->since = clock_ns();
}

static void put_parked(struct sim_device *dev, struct sim_queue *q, int64_t now)
{
	struct hw_trace_record r = about(dev, q, HW_TRACE_PARKED, q->parked->since, now);

	if (!q->parked->program)
		return;
	r.pc = (uint32_t)q->parked->run.fault.pc;
	r.op = q->parked->is_ready ? 0 : ISA_RWAIT;
	put(dev, q->info.ctx, q->parked->trace, &r);
}

void sim_trace_resume(struct sim_device *dev, struct sim_engine *e)
{
	arm(e, e->queue->parked->trace);
	if (e->trace)
		put_parked(dev, e->queue, e->began);
}

/* Whether a descriptor has a record of its own when it ends. */
static bool is_work(unsigned op)
{
	return op == HW_EXECUTE || op == HW_COPY || op == HW_COPY_2D || op == HW_FILL ||
		op == HW_TIMESTAMP;
}

static void put_end(struct sim_device *dev, struct sim_queue *q, uint64_t id, int64_t began,
		    uint64_t moved, int status)
{
	struct hw_trace_record r = about(dev, q, q->sqe.op == HW_EXECUTE ? HW_TRACE_PROGRAM :
					 HW_TRACE_COPY, began, clock_ns());

	r.status = (uint16_t)status;
	r.bytes = moved;
	put(dev, q->info.ctx, id, &r);
}

void sim_trace_end(struct sim_device *dev, struct sim_engine *e, bool was_parked, int status)
{
	struct sim_queue *q = e->queue;

	if (!e->trace)
		return;
	put_groups(e);
	if (is_work(q->sqe.op))
		put_end(dev, q, e->trace, was_parked ? q->parked->began : e->began, e->moved,
			status);
}

void sim_trace_drop(struct sim_device *dev, struct sim_queue *q, int status)
{
	if (!q->parked->trace)
		return;
	put_parked(dev, q, clock_ns());
	put_end(dev, q, q->parked->trace, q->parked->began, 0, status);
}
