/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Work queues (DEVICE.md#queues): doorbells, reading descriptors, and which is next.
 *
 * Rings are host memory that a hostile driver can change at any time, so a
 * descriptor is read once, into sim_queue.sqe, and judged there. One that waits for a
 * semaphore stays there, and its queue is looked at again when a semaphore of the
 * device is signalled, its own doorbell rings or its context is woken.
 */
#include <stdlib.h>
#include <string.h>

#include "hal/sim/sim_internal.h"

/* By how much less a context has used an engine than another that lets it go first, and by how much
 * less than all one that was idle: nobody saves turns up. */
#define LEAD_NS (SIM_TURN_GRAIN_NS / 2)
#define LEAST_TURN_NS 100000	/* others may come as often as they like */

/* ---- rings ---- */

void sim_sqe_read(const uint8_t *from, struct hw_sqe *sqe)
{
	uint64_t word[sizeof(*sqe) / 8];

	for (unsigned i = 0; i < sizeof(*sqe) / 8; i++)
		word[i] = __atomic_load_n((const uint64_t *)from + i, __ATOMIC_RELAXED);
	memcpy(sqe, word, sizeof(*sqe));
}

void sim_cqe_write(uint8_t *to, const struct hw_cqe *cqe)
{
	uint64_t word[sizeof(*cqe) / 8];

	memcpy(word, cqe, sizeof(*cqe));
	for (unsigned i = 1; i < sizeof(*cqe) / 8; i++)
		__atomic_store_n((uint64_t *)to + i, word[i], __ATOMIC_RELAXED);
	/* The driver polls the phase, so its word comes last. */
	__atomic_store_n((uint64_t *)to, word[0], __ATOMIC_RELEASE);
}

bool sim_queue_fetch(struct sim_device *dev, struct sim_queue *q)
{
	uint32_t at = q->head & (q->info.n_entries - 1);
	unsigned n_failed;
	const uint8_t *p;

	if (q->has_sqe)
		return true;
	if (q->head == q->tail)
		return false;
	n_failed = sim_far_failures(dev);
	p = sim_iova(dev, NULL, q->info.sq_iova + at * sizeof(q->sqe), sizeof(q->sqe), false);
	if (p)
		sim_sqe_read(p, &q->sqe);
	q->is_lost = !p || sim_far_failures(dev) != n_failed;
	if (q->is_lost)
		q->sqe = (struct hw_sqe){ 0 };
	q->has_sqe = true;
	return true;
}

/* ---- which is next ---- */

static void set_waiting(struct sim_device *dev, struct sim_engine *e,
			const struct sim_queue *q, bool waits)
{
	uint64_t old = atomic_load_explicit(&e->waiting, memory_order_relaxed);
	uint64_t new = waits ? old | sim_queue_bit(dev, q) : old & ~sim_queue_bit(dev, q);

	if (new != old)
		atomic_store_explicit(&e->waiting, new, memory_order_release);
}

/* Who raises the semaphore from now on looks here afterwards: the caller has to look at it
 * once more. */
static void begin_waiting(struct sim_device *dev, struct sim_engine *e, struct sim_queue *q,
			  const uint64_t *sem, uint64_t until)
{
	atomic_store_explicit(&q->sem, sem, memory_order_relaxed);
	atomic_store_explicit(&q->until, until, memory_order_relaxed);
	set_waiting(dev, e, q, true);
	atomic_thread_fence(memory_order_seq_cst);
}

/* Whether the engine's queues are of several contexts. */
static void see_sharing(const struct sim_device *dev, struct sim_engine *e)
{
	uint64_t all = e->of_priority[0] | e->of_priority[1] | e->of_priority[2] |
		       e->of_priority[3];
	unsigned first = all ? dev->queues[__builtin_ctzll(all)].info.ctx : 0;
	bool is_shared = false;

	for (; all; all &= all - 1)
		is_shared |= dev->queues[__builtin_ctzll(all)].info.ctx != first;
	atomic_store_explicit(&e->is_shared, is_shared, memory_order_relaxed);
}

void sim_queue_join(struct sim_device *dev, struct sim_queue *q)
{
	struct sim_engine *e = sim_engine_of(dev, q->info.cls);

	if (e->cls == HW_CLASS_DMA)
		atomic_fetch_or(&dev->of_dma, sim_queue_bit(dev, q));
	e->of_priority[q->info.priority] |= sim_queue_bit(dev, q);
	see_sharing(dev, e);
	/* What runs has kept nobody waiting so far. */
	if (e->is_shared)
		sim_queue_look(e, clock_ns());
}

void sim_queue_part(struct sim_device *dev, struct sim_queue *q)
{
	struct sim_engine *e = sim_engine_of(dev, q->info.cls);

	atomic_fetch_and(&dev->of_dma, ~sim_queue_bit(dev, q));
	e->of_priority[q->info.priority] &= ~sim_queue_bit(dev, q);
	e->active &= ~sim_queue_bit(dev, q);
	see_sharing(dev, e);
	set_waiting(dev, e, q, false);
	if (q->parked)
		free(q->parked->uses);
	free(q->parked);
	q->parked = NULL;
}

uint64_t *sim_semaphore(struct sim_device *dev, struct sim_engine *e, const struct sim_queue *q,
			uint64_t va, bool write)
{
	return va % 8 ? NULL : (void *)sim_va(dev, e, q->info.ctx, va, 8, write, NULL, NULL);
}

/* Whether a parked run has something to do: its semaphore was raised, or it waited for its turn
 * alone, or it is to end. */
static bool is_due(struct sim_device *dev, const struct sim_parked *k)
{
	if (k->stop_status || k->is_ready ||
	    __atomic_load_n(k->run.sem, __ATOMIC_ACQUIRE) >= k->run.until)
		return true;
	for (unsigned i = 0; i < k->n_peers; i++)
		if (sim_window_why(dev, k->peers[i]))
			return true;
	return false;
}

static bool can_resume(struct sim_device *dev, struct sim_engine *e, struct sim_queue *q)
{
	if (is_due(dev, q->parked))
		return true;
	begin_waiting(dev, e, q, q->parked->run.sem, q->parked->run.until);
	if (!is_due(dev, q->parked))
		return false;
	set_waiting(dev, e, q, false);
	return true;
}

bool sim_queue_can_begin(struct sim_device *dev, struct sim_engine *e, struct sim_queue *q)
{
	const uint64_t *sem;

	set_waiting(dev, e, q, false);
	if (q->state != SIM_QUEUE_READY || q->is_clearing || q->running ||
	    !sim_queue_fetch(dev, q)) {
		if (!q->running)
			e->active &= ~sim_queue_bit(dev, q);
		return false;
	}
	if (q->is_parked)
		return can_resume(dev, e, q);
	if (!(q->sqe.flags & HW_WAIT))
		return true;
	sem = sim_semaphore(dev, NULL, q, q->sqe.wait_va, false);
	if (!sem || __atomic_load_n(sem, __ATOMIC_ACQUIRE) >= q->sqe.wait_value)
		return true;
	begin_waiting(dev, e, q, sem, q->sqe.wait_value);
	if (__atomic_load_n(sem, __ATOMIC_ACQUIRE) < q->sqe.wait_value) {
		sim_trace_wait(dev, q);
		return false;
	}
	set_waiting(dev, e, q, false);
	return true;
}

void sim_look_at_waiting(struct sim_device *dev, unsigned ctx)
{
	for (unsigned i = 0; i < 2; i++) {
		struct sim_engine *e = &dev->engines[i];

		for (uint64_t w = atomic_load(&e->waiting); w; w &= w - 1) {
			struct sim_queue *q = &dev->queues[__builtin_ctzll(w)];

			if ((!ctx || q->info.ctx == ctx) && sim_queue_can_begin(dev, e, q)) {
				sim_kick(e);
				if (e->is_shared)
					sim_queue_look(e, clock_ns());
				break;
			}
		}
	}
}

void sim_wake(struct sim_device *dev, unsigned ctx)
{
	/* Whoever is about to wait says so before its last look: either we see that, or it
	 * sees what was written before us. */
	atomic_thread_fence(memory_order_seq_cst);
	if (!(atomic_load(&dev->engines[0].waiting) | atomic_load(&dev->engines[1].waiting)))
		return;
	pthread_mutex_lock(&dev->lock);
	sim_look_at_waiting(dev, ctx);
	pthread_mutex_unlock(&dev->lock);
}

/* What a context counts as having used of an engine. */
static uint64_t used_of(struct sim_device *dev, const struct sim_engine *e, unsigned ctx)
{
	uint64_t *used = &dev->contexts[ctx].used_ns[e - dev->engines];

	if (*used + LEAD_NS < e->least_ns)
		*used = e->least_ns - LEAD_NS;
	return *used;
}

static void set_least(struct sim_engine *e, uint64_t used)
{
	e->least_ns = used > e->least_ns ? used : e->least_ns;
}

/* How many places behind the engine's last run a queue is: contexts take turns, and in one of them
 * its queues. */
static unsigned place_of(const struct sim_device *dev, const struct sim_engine *e, unsigned id)
{
	unsigned ctx = dev->queues[id].info.ctx;
	unsigned of_ctx = (ctx + HW_MAX_CONTEXTS - 1 - e->last_ctx) % HW_MAX_CONTEXTS;
	unsigned next = dev->contexts[ctx].next_queue[e - dev->engines];

	return of_ctx * HW_MAX_QUEUES + (id + HW_MAX_QUEUES - next) % HW_MAX_QUEUES;
}

static bool is_before(struct sim_device *dev, const struct sim_engine *e, unsigned a, unsigned b)
{
	uint64_t of_a = used_of(dev, e, dev->queues[a].info.ctx);
	uint64_t of_b = used_of(dev, e, dev->queues[b].info.ctx);

	return of_a != of_b ? of_a < of_b : place_of(dev, e, a) < place_of(dev, e, b);
}

/* The first of some queues that can begin. */
static struct sim_queue *pick_of(struct sim_device *dev, struct sim_engine *e, uint64_t some)
{
	while (some) {
		unsigned best = (unsigned)__builtin_ctzll(some);

		for (uint64_t more = some & (some - 1); more; more &= more - 1) {
			unsigned id = (unsigned)__builtin_ctzll(more);

			if (is_before(dev, e, id, best))
				best = id;
		}
		if (sim_queue_can_begin(dev, e, &dev->queues[best]))
			return &dev->queues[best];
		some &= ~(1ull << best);
	}
	return NULL;
}

struct sim_queue *sim_queue_pick(struct sim_device *dev, struct sim_engine *e)
{
	struct sim_queue *q = NULL;

	if (!sim_is_alive(dev))
		return NULL;
	for (int priority = 3; priority >= 0 && !q; priority--)
		q = pick_of(dev, e, e->active & e->of_priority[priority]);
	if (q) {
		e->last_ctx = q->info.ctx;
		set_least(e, used_of(dev, e, e->last_ctx));
		dev->contexts[e->last_ctx].next_queue[e - dev->engines] =
			(uint8_t)((q - dev->queues + 1) % HW_MAX_QUEUES);
	}
	return q;
}

/* ---- doorbells ---- */

static void hear(struct sim_device *dev, unsigned id)
{
	uint32_t tail = atomic_load_explicit(&dev->bell[id], memory_order_acquire);
	struct sim_queue *q = &dev->queues[id];

	if (q->state == SIM_QUEUE_NONE || tail - q->head > q->info.n_entries ||
	    tail - q->head < q->tail - q->head) {
		dev->bad_access++;
		return;
	}
	q->tail = tail;
	sim_engine_of(dev, q->info.cls)->active |= sim_queue_bit(dev, q);
}

void sim_queue_hear(struct sim_device *dev)
{
	uint64_t rung;

	if (!atomic_load_explicit(&dev->rung, memory_order_relaxed))
		return;
	for (rung = atomic_exchange(&dev->rung, 0); rung; rung &= rung - 1)
		hear(dev, (unsigned)__builtin_ctzll(rung));
}

void sim_queue_ring_by_itself(struct sim_device *dev, unsigned queue, uint32_t tail)
{
	atomic_store(&dev->bell[queue], tail);
	atomic_fetch_or(&dev->rung, sim_queue_bit(dev, &dev->queues[queue]));
	sim_queue_hear(dev);
	sim_kick(sim_engine_of(dev, dev->queues[queue].info.cls));
}

/* ---- turns ---- */

void sim_watch(struct sim_device *dev, const struct sim_engine *e)
{
	if (e->deadline < dev->watch_until || e->look_at < dev->watch_until)
		pthread_cond_signal(&dev->timer);
}

/* Whether the engine's run, which has had `ran` ns of this turn, should let another context's queue
 * go first. */
static bool others_want(struct sim_device *dev, struct sim_engine *e, uint64_t ran)
{
	const struct hw_queue *own = &e->queue->info;
	uint64_t used = dev->contexts[own->ctx].used_ns[e - dev->engines] + ran, least = used;
	bool is_wanted = false;

	for (unsigned priority = own->priority; priority < 4; priority++) {
		uint64_t some = e->active & e->of_priority[priority];

		for (; some; some &= some - 1) {
			struct sim_queue *q = &dev->queues[__builtin_ctzll(some)];
			uint64_t of_q;

			if (q->info.ctx == own->ctx || !sim_queue_can_begin(dev, e, q))
				continue;
			of_q = used_of(dev, e, q->info.ctx);
			least = of_q < least ? of_q : least;
			is_wanted |= priority > own->priority || of_q + LEAD_NS <= used;
		}
	}
	set_least(e, least);
	return is_wanted;
}

void sim_queue_look(struct sim_engine *e, int64_t now)
{
	uint64_t ran;
	bool is_wanted;

	if (!e->queue || atomic_load_explicit(&e->core.yield, memory_order_relaxed))
		return;
	/* It may have waited for the card's engine, in which it has had nothing of its turn. */
	ran = sim_engine_ran(e, now);
	if (ran < LEAST_TURN_NS) {
		e->look_at = now + LEAST_TURN_NS - (int64_t)ran;
	} else {
		sim_queue_hear(e->dev);
		is_wanted = others_want(e->dev, e, ran);
		atomic_store_explicit(&e->core.yield, is_wanted, memory_order_relaxed);
		e->look_at = !e->is_shared || is_wanted ? CLOCK_FOREVER :
			     now + SIM_TURN_GRAIN_NS / 2;
	}
	sim_watch(e->dev, e);
}

/* ---- what queues do ---- */

static enum hw_queue_is state_of(struct sim_device *dev, const struct sim_queue *q)
{
	if (q->state == SIM_QUEUE_FAULTED)
		return HW_QUEUE_FAULTED;
	if (q->running)
		return HW_QUEUE_RUNNING;
	if (q->is_parked)
		return q->parked->is_ready ? HW_QUEUE_READY : HW_QUEUE_PARKED;
	if (atomic_load(&sim_engine_of(dev, q->info.cls)->waiting) & sim_queue_bit(dev, q))
		return HW_QUEUE_WAITING;
	return q->head == q->tail ? HW_QUEUE_IDLE : HW_QUEUE_READY;
}

/* Time in which it let others go first does not count. */
static uint64_t run_ns(const struct sim_queue *q)
{
	if (q->running)
		return q->running->ran_before + sim_engine_ran(q->running, clock_ns());
	return q->is_parked && !q->parked->is_ready ?
	       (uint64_t)(clock_ns() - q->parked->began) : 0;
}

unsigned sim_queue_states(struct sim_device *dev, struct hw_queue_state *out)
{
	unsigned n = 0;

	for (unsigned i = 1; i < HW_MAX_QUEUES; i++) {
		const struct sim_queue *q = &dev->queues[i];

		if (q->state == SIM_QUEUE_NONE)
			continue;
		out[n++] = (struct hw_queue_state){
			.queue = (uint16_t)i, .ctx = q->info.ctx, .cls = q->info.cls,
			.is = (uint8_t)state_of(dev, q), .tail = q->tail, .head = q->head,
			.run_ns = run_ns(q),
		};
	}
	return n;
}
