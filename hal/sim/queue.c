/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Work queues: picking the next descriptor, running it on an engine, completing it.
 *
 * Rings are host memory that a hostile driver can change at any time, so a
 * descriptor is read once, into sim_queue.sqe, and judged there. A descriptor that
 * waits for a semaphore stays there until the semaphore arrives. Each engine (compute,
 * copy) has a thread; small work may also run on the thread that rings the doorbell,
 * if the engine is idle and nothing is queued before it (HW_INLINE).
 */
#include <immintrin.h>
#include <string.h>
#include <unistd.h>

#include "hal/sim/sim_internal.h"

#define INLINE_COPY_BYTES 65536u

void sim_kick(struct sim_device *dev)
{
	atomic_fetch_add_explicit(&dev->kick, 1, memory_order_release);
	pthread_cond_broadcast(&dev->work);
}

void sim_irq(struct sim_device *dev, uint32_t vector)
{
	struct sim_vector *v;
	uint64_t one = 1;

	if (vector >= HW_MAX_VECTORS)
		return;
	v = &dev->vectors[vector];
	if (dev->drop_irqs) {
		dev->drop_irqs--;
		return;
	}
	if (v->masked) {
		v->pending = true;
		return;
	}
	/* A full eventfd counter means that the host has not looked yet: the
	 * interrupt is not lost. */
	if (v->fd >= 0 && write(v->fd, &one, sizeof(one)) < 0)
		v->pending = false;
}

void sim_record_fault(struct sim_device *dev, struct hw_fault *f)
{
	f->number = ++dev->n_faults;
	f->time_ns = (uint64_t)(clock_ns() - dev->power_on);
	dev->faults[(f->number - 1) % SIM_FAULTS] = *f;
	dev->total.n_fault++;
}

static void complete(struct sim_device *dev, struct sim_queue *q, const struct hw_sqe *sqe,
		     unsigned status, uint64_t value, uint64_t detail)
{
	uint32_t at = q->cq_tail % q->info.n_entries;
	struct hw_cqe *cqe = (void *)sim_iova(dev, q->info.cq_iova + at * sizeof(*cqe),
					      sizeof(*cqe), true, NULL);
	uint16_t phase = (q->cq_tail / q->info.n_entries + 1) & 1;

	q->cq_tail++;
	if (!cqe)
		return;
	cqe->tag = sqe->tag;
	cqe->status = (uint16_t)status;
	cqe->sq_head = q->head;
	cqe->zero = 0;
	cqe->value = value;
	cqe->detail = detail;
	__atomic_store_n(&cqe->phase, phase, __ATOMIC_RELEASE);
	if (sqe->flags & HW_IRQ || status)
		sim_irq(dev, q->info.vector);
}

static uint64_t *semaphore(struct sim_device *dev, const struct sim_queue *q, uint64_t va,
			   bool write)
{
	struct sim_dma *dma;

	if (va % 8)
		return NULL;
	return (void *)sim_va(dev, q->info.ctx, va, 8, write, &dma, NULL);
}

/* Brings the next descriptor into q->sqe. False: there is none. */
static bool fetch(struct sim_device *dev, struct sim_queue *q)
{
	uint32_t at = q->head % q->info.n_entries;
	const uint8_t *p;

	if (q->has_sqe)
		return true;
	if (q->head == q->tail)
		return false;
	p = sim_iova(dev, q->info.sq_iova + at * sizeof(q->sqe), sizeof(q->sqe), false, NULL);
	if (p)
		memcpy(&q->sqe, p, sizeof(q->sqe));
	else
		q->sqe = (struct hw_sqe){ .op = 0xff };
	q->has_sqe = true;
	return true;
}

/* Whether the head of q can begin. A bad wait address can: it faults then. */
static bool is_runnable(struct sim_device *dev, struct sim_queue *q)
{
	const uint64_t *sem;

	if (q->state != SIM_QUEUE_READY || q->is_running || !fetch(dev, q))
		return false;
	if (!(q->sqe.flags & HW_WAIT))
		return true;
	sem = semaphore(dev, q, q->sqe.wait_va, false);
	return !sem || __atomic_load_n(sem, __ATOMIC_ACQUIRE) >= q->sqe.wait_value;
}

static struct sim_queue *pick(struct sim_device *dev, struct sim_engine *e)
{
	if (!(dev->status & HW_STATUS_READY) || dev->fatal)
		return NULL;
	for (int priority = 3; priority >= 0; priority--)
		for (unsigned i = 0; i < dev->n_queues; i++) {
			unsigned id = (e->next + i) % dev->n_queues;
			struct sim_queue *q = &dev->queues[id];

			if (q->state != SIM_QUEUE_READY || q->info.cls != e->cls ||
			    q->info.priority != priority || !is_runnable(dev, q))
				continue;
			e->next = id + 1;
			return q;
		}
	return NULL;
}

/* ---- EXECUTE ---- */

static int refuse(struct hw_fault *f, int status, uint64_t va, uint64_t bytes)
{
	f->status = (uint16_t)status;
	f->va = va;
	f->bytes = bytes;
	return status;
}

static void hold(struct sim_core *core, struct sim_dma *dma)
{
	if (!dma)
		return;
	dma->users++;
	core->held[core->n_held++] = dma;
}

static void release(struct sim_core *core)
{
	while (core->n_held)
		core->held[--core->n_held]->users--;
}

static int bind(struct sim_device *dev, const struct sim_queue *q, struct sim_core *core,
		const struct sim_program *p, unsigned i, const struct hw_binding *from,
		struct hw_fault *f)
{
	const struct hw_program_binding *want = &p->bindings[i];
	struct hw_binding b;
	struct sim_dma *dma = NULL;
	bool poison = false;

	memcpy(&b, from, sizeof(b));
	f->binding = i;
	if (b.bytes < want->bytes)
		return refuse(f, HW_ST_BINDING, b.va, b.bytes);
	core->bytes[i] = b.bytes;
	core->base[i] = dev->hbm;
	if (!b.bytes)
		return 0;
	if (b.va % 64)
		return refuse(f, HW_ST_ALIGNMENT, b.va, b.bytes);
	core->base[i] = sim_va(dev, q->info.ctx, b.va, b.bytes,
			       want->access & HW_BIND_WRITE, &dma, &poison);
	if (!core->base[i])
		return refuse(f, HW_ST_MAP, b.va, b.bytes);
	if (poison) {
		dev->ras.ecc_uncorrected++;
		return refuse(f, HW_ST_POISON, b.va, b.bytes);
	}
	hold(core, dma);
	return 0;
}

static struct sim_program *find_program(struct sim_device *dev, const struct sim_queue *q,
					uint32_t id)
{
	struct sim_program *p = id < dev->room_programs ? dev->programs[id] : NULL;

	return p && p->ctx == q->info.ctx ? p : NULL;
}

static int bind_all(struct sim_device *dev, const struct sim_queue *q,
		    struct sim_core *core, const struct sim_program *p, struct hw_fault *f)
{
	uint64_t va = q->sqe.u.execute.bindings;
	const struct hw_binding *table;
	struct sim_dma *dma;
	int status;

	if (q->sqe.u.execute.n_bindings != p->n_bindings)
		return refuse(f, HW_ST_BINDING, va, q->sqe.u.execute.n_bindings);
	table = (void *)sim_va(dev, q->info.ctx, va, p->n_bindings * sizeof(*table), false,
			       &dma, NULL);
	if (p->n_bindings && !table)
		return refuse(f, HW_ST_MAP, va, p->n_bindings * sizeof(*table));
	for (unsigned i = 0; i < p->n_bindings; i++) {
		status = bind(dev, q, core, p, i, &table[i], f);
		if (status)
			return status;
	}
	f->binding = 0xffffffffu;
	return 0;
}

static void count_run(struct sim_device *dev, const struct sim_run *run, int64_t ns)
{
	struct hw_telemetry *t = &dev->total;

	t->n_execute++;
	t->busy_compute_ns += (uint64_t)ns;
	t->matrix_ops += run->matrix_ops;
	t->vector_ops += run->vector_ops;
	t->hbm_read_bytes += run->read_bytes;
	t->hbm_write_bytes += run->write_bytes;
}

/* Called with the lock, which it drops while the program runs. */
static int execute(struct sim_device *dev, struct sim_queue *q, struct sim_engine *e,
		   struct hw_fault *f, int64_t *ns)
{
	struct sim_program *p = find_program(dev, q, q->sqe.u.execute.program);
	struct sim_run run = { .fault = *f };
	int64_t began;
	int status;

	if (!p)
		return refuse(f, HW_ST_BAD_DESCRIPTOR, q->sqe.u.execute.program, 0);
	f->program = q->sqe.u.execute.program;
	status = bind_all(dev, q, &e->core, p, f);
	if (status) {
		release(&e->core);
		return status;
	}
	run.fault = *f;
	p->refs++;
	pthread_mutex_unlock(&dev->lock);
	began = clock_ns();
	status = sim_core_run(&e->core, p, &q->stop, &run);
	*ns = clock_ns() - began;
	pthread_mutex_lock(&dev->lock);
	release(&e->core);
	if (!--p->refs)
		sim_program_free(p);
	count_run(dev, &run, *ns);
	if (status)
		*f = run.fault;
	return status;
}

/* ---- one descriptor ---- */

static bool is_known(const struct sim_queue *q)
{
	switch (q->sqe.op) {
	case HW_EXECUTE:
		return q->info.cls == HW_CLASS_COMPUTE;
	case HW_NOP: case HW_COPY: case HW_COPY_2D: case HW_FILL: case HW_SEMAPHORE:
	case HW_TIMESTAMP:
		return true;
	default:
		return false;
	}
}

static int run_descriptor(struct sim_device *dev, struct sim_queue *q,
			  struct sim_engine *e, struct hw_fault *f, int64_t *ns)
{
	const struct hw_sqe *sqe = &q->sqe;
	uint64_t *sem;
	int status;

	if (!is_known(q) || sqe->id ||
	    sqe->flags & ~(HW_WAIT | HW_SIGNAL | HW_IRQ | HW_INLINE))
		return refuse(f, HW_ST_BAD_DESCRIPTOR, sqe->op, 0);
	if (sqe->flags & HW_WAIT && !semaphore(dev, q, sqe->wait_va, false))
		return refuse(f, HW_ST_MAP, sqe->wait_va, 8);
	if (sqe->flags & HW_SIGNAL && !semaphore(dev, q, sqe->signal_va, true))
		return refuse(f, HW_ST_MAP, sqe->signal_va, 8);
	if (sqe->op == HW_EXECUTE) {
		status = execute(dev, q, e, f, ns);
	} else {
		pthread_mutex_unlock(&dev->lock);
		status = sim_dma_run(dev, q, &e->core, sqe, &q->stop, f);
		pthread_mutex_lock(&dev->lock);
		while (e->core.n_held)
			e->core.held[--e->core.n_held]->users--;
	}
	if (status || !(sqe->flags & HW_SIGNAL))
		return status;
	if (dev->fatal || q->stop_status)
		return refuse(f, HW_ST_RESET, 0, 0);
	sem = semaphore(dev, q, sqe->signal_va, true);
	if (!sem)
		return refuse(f, HW_ST_MAP, sqe->signal_va, 8);
	if (__atomic_load_n(sem, __ATOMIC_RELAXED) < sqe->signal_value)
		__atomic_store_n(sem, sqe->signal_value, __ATOMIC_RELEASE);
	sim_kick(dev);
	return 0;
}

static int64_t limit_of(const struct sim_device *dev, const struct sim_queue *q)
{
	uint64_t limit = q->sqe.op == HW_EXECUTE ? q->sqe.u.execute.limit_ns : 0;

	if (!limit)
		limit = q->info.limit_ns;
	if (!limit)
		limit = dev->default_limit_ns;
	return limit ? clock_after(limit > INT64_MAX ? INT64_MAX : (int64_t)limit) :
		       CLOCK_FOREVER;
}

/* Runs the descriptor in q->sqe to its end. Called and left with the lock. */
static void step(struct sim_device *dev, struct sim_queue *q, struct sim_engine *e)
{
	struct hw_fault f = { .queue = (uint16_t)(q - dev->queues), .ctx = q->info.ctx,
			      .operand = 0xffff, .tag = q->sqe.tag,
			      .binding = 0xffffffffu };
	int64_t ns = 0;
	int status;

	e->is_busy = true;
	q->is_running = true;
	q->stop_status = 0;
	atomic_store(&q->stop, false);
	q->run_deadline = limit_of(dev, q);
	if (q->run_deadline != CLOCK_FOREVER)
		pthread_cond_signal(&dev->timer);
	q->head++;
	status = run_descriptor(dev, q, e, &f, &ns);
	if (status && q->stop_status)
		f.status = (uint16_t)(status = q->stop_status);
	q->has_sqe = false;
	q->is_running = false;
	e->is_busy = false;
	if (status == HW_ST_WATCHDOG)
		dev->ras.watchdog_fires++;
	if (dev->fatal)
		return (void)pthread_cond_broadcast(&dev->idle);
	if (status) {
		sim_record_fault(dev, &f);
		q->state = SIM_QUEUE_FAULTED;
	}
	complete(dev, q, &q->sqe, (unsigned)status, (uint64_t)ns, status ? f.number : 0);
	pthread_cond_broadcast(&dev->idle);
}

/* ---- engines ---- */

/* Waits, without the lock, until something may have changed since `seen`. */
static void spin(struct sim_device *dev, unsigned seen)
{
	int64_t until = clock_ns() + SIM_SPIN_NS;

	do {
		for (int i = 0; i < 64; i++) {
			if (atomic_load_explicit(&dev->kick, memory_order_acquire) != seen)
				return;
			_mm_pause();
		}
	} while (clock_ns() < until);
}

static void *engine(void *arg)
{
	struct sim_engine *e = arg;
	struct sim_device *dev = e->dev;

	pthread_mutex_lock(&dev->lock);
	while (!dev->quit) {
		unsigned seen = atomic_load(&dev->kick);
		struct sim_queue *q = e->is_busy ? NULL : pick(dev, e);

		e->was_missed = e->is_busy;
		if (q) {
			step(dev, q, e);
			continue;
		}
		if (dev->sim->cpu.lanes > 1) {
			pthread_mutex_unlock(&dev->lock);
			spin(dev, seen);
			pthread_mutex_lock(&dev->lock);
		}
		while (atomic_load(&dev->kick) == seen && !dev->quit)
			pthread_cond_wait(&dev->work, &dev->lock);
	}
	pthread_mutex_unlock(&dev->lock);
	return NULL;
}

int sim_engine_start(struct sim_device *dev, struct sim_engine *e, uint8_t cls)
{
	e->dev = dev;
	e->cls = cls;
	if (sim_core_init(&e->core, dev, dev->sim->cpu.lanes) ||
	    pthread_create(&e->thread, NULL, engine, e))
		return -1;
	e->has_thread = true;
	return 0;
}

void sim_engine_stop(struct sim_engine *e)
{
	if (e->has_thread)
		pthread_join(e->thread, NULL);
	e->has_thread = false;
	sim_core_free(&e->core);
}

/* Whether the descriptor in q->sqe is small enough for the caller's thread. */
static bool is_small(struct sim_device *dev, const struct sim_queue *q)
{
	const struct sim_program *p;

	if (!(q->sqe.flags & HW_INLINE) || !dev->inline_ns)
		return false;
	if (q->sqe.op == HW_COPY || q->sqe.op == HW_FILL)
		return q->sqe.u.copy.bytes <= INLINE_COPY_BYTES;
	if (q->sqe.op != HW_EXECUTE)
		return q->sqe.op != HW_COPY_2D;
	p = find_program(dev, q, q->sqe.u.execute.program);
	return p && p->is_straight;
}

void sim_queue_ring(struct sim_device *dev, unsigned queue, uint32_t tail)
{
	struct sim_queue *q = &dev->queues[queue];
	struct sim_engine *e;

	pthread_mutex_lock(&dev->lock);
	if (q->state == SIM_QUEUE_NONE || tail - q->head > q->info.n_entries ||
	    tail - q->head < q->tail - q->head) {
		dev->bad_access++;
		pthread_mutex_unlock(&dev->lock);
		return;
	}
	q->tail = tail;
	e = q->info.cls == HW_CLASS_COMPUTE ? &dev->compute : &dev->copy;
	if (!e->is_busy && !dev->fatal && dev->status & HW_STATUS_READY &&
	    q->head + 1 == q->tail && is_runnable(dev, q) && is_small(dev, q)) {
		step(dev, q, e);
		/* The engine's thread may have been sent away meanwhile. */
		if (q->head == q->tail && !e->was_missed) {
			pthread_mutex_unlock(&dev->lock);
			return;
		}
	}
	sim_kick(dev);
	pthread_mutex_unlock(&dev->lock);
}

void sim_queue_clear(struct sim_device *dev, struct sim_queue *q, bool with_completions)
{
	if (q->is_running) {
		q->stop_status = dev->fatal ? HW_ST_DEVICE_FATAL : HW_ST_RESET;
		atomic_store(&q->stop, true);
	}
	while (q->is_running)
		pthread_cond_wait(&dev->idle, &dev->lock);
	if (!with_completions || dev->fatal)
		q->head = q->tail;
	while (q->head != q->tail) {
		if (!fetch(dev, q))
			break;
		q->head++;
		complete(dev, q, &q->sqe, HW_ST_DROPPED, 0, 0);
		q->has_sqe = false;
	}
	q->has_sqe = false;
	if (q->state == SIM_QUEUE_FAULTED)
		q->state = SIM_QUEUE_READY;
}
