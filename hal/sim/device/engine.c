/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Engines (DEVICE.md#queues): running a descriptor, to its end or until it is parked, and
 * completing it. queue.c says which is next.
 *
 * A thread of the crew (crew.c) runs an engine, compute or DMA; small work may also run on the
 * thread that rings the doorbell, if the engine is idle and nothing is queued before it
 * (HW_INLINE): an engine runs one descriptor at a time, whoever lends it the thread. A doorbell
 * of a busy engine is a store and no more, as it is of a real device.
 */
#include <stdlib.h>
#include <string.h>

#include "hal/sim/sim_internal.h"

#define INLINE_COPY_BYTES 65536u
#define RETRY_TIMES 4	/* INLINE_NS, up to which members of a launch are tried again */
#define LENT_NS 200000	/* of a doorbell, to other engines; what they began is ended */
/* Instructions of a program with a loop on a thread that is not the crew's: times those of its last
 * run, and how many in any case. */
#define LOAN_TIMES 4
#define LOAN_LEAST 256

/* ---- completions ---- */

static void complete(struct sim_device *dev, struct sim_queue *q, unsigned status,
		     uint64_t value, uint64_t detail)
{
	uint32_t n = q->info.n_entries, at = q->cq_tail & (n - 1);
	struct hw_cqe cqe = { .tag = q->sqe.tag, .status = (uint16_t)status,
			      .phase = (q->cq_tail / n + 1) & 1, .sq_head = q->head,
			      .value = value, .detail = detail };
	uint8_t *to = sim_iova(dev, NULL, q->info.cq_iova + at * sizeof(cqe), sizeof(cqe),
			       true);

	q->cq_tail++;
	if (!to)
		return;
	sim_cqe_write(to, &cqe);
	if (q->sqe.flags & HW_IRQ || status)
		sim_irq(dev, q->info.vector);
}

/* ---- EXECUTE ---- */

static int bind(struct sim_device *dev, struct sim_engine *e, const struct sim_program *p,
		unsigned i, const struct hw_binding *b, struct hw_fault *f)
{
	const struct hw_program_binding *want = &p->bindings[i];
	struct sim_core *core = &e->core;
	bool write = want->access & HW_BIND_WRITE;

	e->uses[e->n_uses++] = (struct sim_use){ b->bytes ? b->va : 0, b->bytes };
	if (b->bytes < want->bytes || b->bytes > INT64_MAX)
		return sim_fail(f, HW_ST_BINDING, b->va, b->bytes, write);
	core->bytes[i] = b->bytes;
	core->base[i] = dev->hbm;
	if (!b->bytes)
		return 0;
	if (b->va % 64)
		return sim_fail(f, HW_ST_ALIGNMENT, b->va, b->bytes, write);
	if (want->access & HW_BIND_PEER)
		return sim_bind_peer(dev, e, i, b, write, f);
	core->base[i] = sim_va(dev, e, e->queue->info.ctx, b->va, b->bytes, write, NULL, NULL);
	if (!core->base[i])
		return sim_fail(f, HW_ST_MAP, b->va, b->bytes, write);
	if (want->access & HW_BIND_READ && sim_is_poisoned(dev, core->base[i], b->bytes))
		return sim_fail(f, HW_ST_POISON, b->va, b->bytes, false);
	return 0;
}

static struct sim_program *find_program(const struct sim_device *dev, const struct sim_queue *q)
{
	uint32_t id = q->sqe.u.execute.program;
	struct sim_program *p = id < dev->room_programs ? dev->programs[id] : NULL;

	return p && p->ctx == q->info.ctx ? p : NULL;
}

/* A table of bindings, as far as its memory follows one another. */
struct table {
	uint64_t va, left;	/* of what was not read yet */
	const uint8_t *piece;
	uint64_t room;		/* of the piece */
};

/* The next word; 0, or the status of a fault at t->va. The host may write meanwhile. */
static int read_table(struct sim_device *dev, const struct sim_engine *e, struct table *t,
		      uint64_t *word)
{
	if (!t->room) {
		t->piece = sim_va(dev, NULL, e->queue->info.ctx, t->va, t->left, false,
				  &t->room, NULL);
		if (!t->piece)
			return HW_ST_MAP;
		if (sim_is_poisoned(dev, t->piece, t->room))
			return HW_ST_POISON;
	}
	/* Pieces end where pages do. */
	*word = __atomic_load_n((const uint64_t *)t->piece, __ATOMIC_RELAXED);
	t->piece += sizeof(*word);
	t->room -= sizeof(*word);
	t->va += sizeof(*word);
	t->left -= sizeof(*word);
	return 0;
}

static int bind_all(struct sim_device *dev, struct sim_engine *e,
		    const struct sim_program *p, struct hw_fault *f)
{
	const struct hw_sqe *sqe = &e->queue->sqe;
	uint64_t va = sqe->u.execute.bindings, bytes = p->n_bindings * sizeof(struct hw_binding);
	struct table t = { .va = va, .left = bytes };
	struct hw_binding b;
	int status;

	if (sqe->u.execute.n_bindings != p->n_bindings)
		return sim_fail(f, HW_ST_BINDING, va, sqe->u.execute.n_bindings, false);
	if (!p->n_bindings)
		return 0;
	if (va % 8)
		return sim_fail(f, HW_ST_ALIGNMENT, va, bytes, false);
	for (unsigned i = 0; i < p->n_bindings; i++) {
		status = read_table(dev, e, &t, &b.va);
		if (!status)
			status = read_table(dev, e, &t, &b.bytes);
		if (status) {
			f->binding = 0xffffffffu;
			return sim_fail(f, status, t.va, t.left, false);
		}
		f->binding = i;
		status = bind(dev, e, p, i, &b, f);
		if (status)
			return status;
	}
	f->binding = 0xffffffffu;
	return 0;
}

/* What a run did since it began or went on. */
static void count_run(struct sim_device *dev, struct sim_run *run)
{
	struct hw_telemetry *t = &dev->total;

	t->n_insn += run->core->n_insns;
	t->matrix_ops += run->matrix_ops;
	t->vector_ops += run->vector_ops;
	t->hbm_read_bytes += run->read_bytes;
	t->hbm_write_bytes += run->write_bytes;
	run->matrix_ops = run->vector_ops = run->read_bytes = run->write_bytes = 0;
}

/* NULL is fine. */
static void release_program(struct sim_program *p)
{
	if (p && !--p->refs)
		sim_program_free(p);
}

/* A run leaves its engine, until its semaphore is raised or it is its turn again. p, run: of a
 * program, else NULL. `status`, or NO_MEMORY. */
static int park(struct sim_engine *e, struct sim_program *p, const struct sim_run *run, int status)
{
	struct sim_queue *q = e->queue;
	struct sim_parked *k = q->parked;

	if (!k)
		k = q->parked = calloc(1, sizeof(*k));
	if (k && k->room < e->n_uses) {
		free(k->uses);
		k->uses = malloc(e->n_uses * sizeof(*k->uses));
		k->room = k->uses ? e->n_uses : 0;
	}
	if (!k || k->room < e->n_uses)
		return HW_ST_NO_MEMORY;
	if (run)
		k->run = *run;
	else
		k->run.fault = (struct hw_fault){ 0 };
	k->program = p;
	k->n_uses = e->n_uses;
	memcpy(k->uses, e->uses, e->n_uses * sizeof(*k->uses));
	memcpy(k->peers, e->peers, e->n_peers * sizeof(*k->peers));
	k->n_peers = e->n_peers;
	k->began = e->began;
	k->ns = 0;
	k->stop_status = 0;
	return status;
}

static bool is_off(int status)
{
	return status == SIM_PARKED || status == SIM_YIELDED;
}

/*
 * The run has ended, which took ns before it was parked last. Members of one launch that run side
 * by side on the crew take longer than one after the other, so of those that may be small what they
 * took last counts less and less, until they are tried there again.
 */
static void note_run(struct sim_engine *e, struct sim_program *p, uint64_t ns)
{
	uint64_t before = p->last_ns - p->last_ns / 8;

	p->last_ns = ns + sim_engine_ran(e, clock_ns());
	p->last_insns = e->core.n_insns;
	if (p->is_joint && !e->is_lent && before && before < p->last_ns &&
	    p->last_ns <= RETRY_TIMES * e->dev->inline_ns)
		p->last_ns = before;
}

/* Called with the lock, which it drops while the program runs. */
static int execute(struct sim_device *dev, struct sim_engine *e, struct hw_fault *f)
{
	struct sim_program *p = find_program(dev, e->queue);
	struct sim_run run;
	int status;

	f->program = e->queue->sqe.u.execute.program;
	if (!p)
		return sim_fail(f, HW_ST_BAD_DESCRIPTOR, f->program, 0, false);
	status = bind_all(dev, e, p, f);
	if (status)
		return status;
	run.fault = *f;
	run.matrix_ops = run.vector_ops = run.read_bytes = run.write_bytes = 0;
	p->refs++;
	e->core.most_insns = e->is_lent && !p->is_straight ?
		LOAN_LEAST + LOAN_TIMES * p->last_insns : UINT64_MAX;
	pthread_mutex_unlock(&dev->lock);
	status = sim_core_run(&e->core, p, &e->stop, &run);
	pthread_mutex_lock(&dev->lock);
	count_run(dev, &run);
	dev->total.n_execute++;
	if (is_off(status) && is_off(status = park(e, p, &run, status)))
		return status;
	note_run(e, p, 0);
	release_program(p);
	if (status) {
		*f = run.fault;
		f->status = (uint16_t)status;
	}
	return status;
}

/* The engine has the run's bindings no more, or they may not be there any more. */
static int bind_again(struct sim_device *dev, struct sim_engine *e, struct sim_parked *k,
		      struct hw_fault *f)
{
	const struct sim_program *p = k->program;
	int status = 0;

	e->run++;
	e->n_uses = e->n_peers = 0;
	for (unsigned i = 0; i < p->n_bindings && !status; i++) {
		const struct hw_binding b = { k->uses[i].va, k->uses[i].bytes };

		f->binding = i;
		status = bind(dev, e, p, i, &b, f);
	}
	if (!status)
		f->binding = 0xffffffffu;
	return status;
}

/* A copy, from its beginning or from where it was. With the lock, as execute(). */
static int transfer(struct sim_device *dev, struct sim_engine *e, struct hw_fault *f)
{
	int status;

	if (dev->bus_errors) {
		dev->bus_errors--;
		return sim_fail(f, HW_ST_BUS, e->queue->sqe.u.copy.dst,
				e->queue->sqe.u.copy.bytes, true);
	}
	pthread_mutex_unlock(&dev->lock);
	status = sim_dma_run(e, e->queue, f);
	pthread_mutex_lock(&dev->lock);
	return status;
}

/* Goes on with the run that q has parked; with the lock, as execute(). */
static int resume(struct sim_device *dev, struct sim_engine *e, struct sim_queue *q,
		  struct hw_fault *f)
{
	struct sim_parked *k = q->parked;
	struct sim_program *p = k->program;
	int status = k->stop_status;

	if (!p && !status) {
		e->run++;
		e->n_uses = e->n_peers = 0;
		return transfer(dev, e, f);
	}
	f->program = k->run.fault.program;
	if (!status && (e->run != k->number || dev->n_unmaps != k->n_unmaps))
		status = bind_again(dev, e, k, f);
	else if (status)
		sim_fail(f, status, 0, 0, false);
	if (status) {
		f->pc = k->run.fault.pc;
		release_program(p);
		return status;
	}
	e->core.most_insns = UINT64_MAX;
	pthread_mutex_unlock(&dev->lock);
	status = sim_core_resume(&e->core, p, &e->stop, &k->run);
	pthread_mutex_lock(&dev->lock);
	count_run(dev, &k->run);
	if (is_off(status))
		return status;
	note_run(e, p, k->ns);
	release_program(p);
	if (status)
		*f = k->run.fault;
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

/* In the run of e; releases the lock where storing may block. */
static int signal(struct sim_device *dev, struct sim_engine *e, const struct sim_queue *q,
		  struct hw_fault *f)
{
	uint64_t *sem = sim_semaphore(dev, e, q, q->sqe.signal_va, true), old;
	bool is_far = sem && sim_is_far(dev, sem);

	if (!sem)
		return sim_fail(f, HW_ST_MAP, q->sqe.signal_va, 8, true);
	if (is_far)
		pthread_mutex_unlock(&dev->lock);
	old = __atomic_load_n(sem, __ATOMIC_RELAXED);
	while (old < q->sqe.signal_value &&
	       !__atomic_compare_exchange_n(sem, &old, q->sqe.signal_value, true,
					    __ATOMIC_RELEASE, __ATOMIC_RELAXED))
		;
	sim_watch_write(&dev->watch, (const uint8_t *)sem, sizeof(*sem));
	sim_cells_wrote(&dev->cells, sem, sizeof(*sem));
	if (is_far)
		pthread_mutex_lock(&dev->lock);
	sim_look_at_waiting(dev, 0);
	return 0;
}

/* Injected: nothing moves until somebody stops it, whose status it is then. */
static int hang(struct sim_device *dev, struct sim_engine *e, struct hw_fault *f,
		bool was_parked)
{
	e->hangs = false;
	while (!atomic_load(&e->stop))
		pthread_cond_wait(&dev->idle, &dev->lock);
	if (was_parked)
		release_program(e->queue->parked->program);
	else if (e->queue->sqe.op == HW_EXECUTE)
		f->program = e->queue->sqe.u.execute.program;
	return sim_fail(f, HW_ST_RESET, 0, 0, false);
}

/* What takes a while, in the engine's turn. Called with the lock, which it drops. */
static int work(struct sim_device *dev, struct sim_engine *e, struct hw_fault *f,
		bool was_parked)
{
	struct sim_queue *q = e->queue;
	bool has_turn = true;
	int status;

	if (e->hangs)
		return hang(dev, e, f, was_parked);
	if (e->turn.all) {
		pthread_mutex_unlock(&dev->lock);
		has_turn = sim_turn_take(&e->turn, &e->stop);
		pthread_mutex_lock(&dev->lock);
	}
	if (!has_turn && was_parked)
		release_program(q->parked->program);
	if (!has_turn)
		return sim_fail(f, HW_ST_RESET, 0, 0, false);
	if (was_parked) {
		status = resume(dev, e, q, f);
	} else if (q->sqe.op == HW_EXECUTE) {
		status = execute(dev, e, f);
	} else {
		e->progress = (struct sim_progress){ 0 };
		status = transfer(dev, e, f);
		if (is_off(status) && !is_off(status = park(e, NULL, NULL, status)))
			sim_fail(f, status, 0, 0, false);
	}
	sim_turn_end(&e->turn);
	return status;
}

static int run_descriptor(struct sim_device *dev, struct sim_engine *e, struct hw_fault *f)
{
	const struct sim_queue *q = e->queue;
	const struct hw_sqe *sqe = &q->sqe;

	if (q->is_lost)
		return sim_fail(f, HW_ST_MAP, q->info.sq_iova, 64, false);
	if (!is_known(q) || sqe->id ||
	    sqe->flags & ~(HW_WAIT | HW_SIGNAL | HW_IRQ | HW_INLINE))
		return sim_fail(f, HW_ST_BAD_DESCRIPTOR, sqe->op, 0, false);
	if (sqe->flags & HW_WAIT && !sim_semaphore(dev, NULL, q, sqe->wait_va, false))
		return sim_fail(f, HW_ST_MAP, sqe->wait_va, 8, false);
	if (sqe->flags & HW_SIGNAL && !sim_semaphore(dev, NULL, q, sqe->signal_va, true))
		return sim_fail(f, HW_ST_MAP, sqe->signal_va, 8, true);
	return sqe->op == HW_NOP || sqe->op == HW_SEMAPHORE ? 0 :
		work(dev, e, f, false);
}

static int64_t limit_of(const struct sim_device *dev, const struct sim_queue *q)
{
	uint64_t limit = q->sqe.op == HW_EXECUTE ? q->sqe.u.execute.limit_ns : 0;

	if (!limit)
		limit = q->info.limit_ns;
	if (!limit)
		limit = dev->default_limit_ns;
	if (dev->max_limit_ns && !(q->info.flags & HW_QUEUE_UNCAPPED) &&
	    (!limit || limit > dev->max_limit_ns))
		limit = dev->max_limit_ns;
	return limit && limit < INT64_MAX ? (int64_t)limit : CLOCK_FOREVER;
}

/* `from` and then `ns` more, which may be CLOCK_FOREVER. */
static int64_t later(int64_t from, int64_t ns)
{
	return ns > CLOCK_FOREVER - from ? CLOCK_FOREVER : from + ns;
}

/* Whether other chips may wait for what q->sqe does, however it ends; of a program that is gone,
 * and of what could not be read, nobody knows. */
static bool may_be_awaited(const struct sim_device *dev, const struct sim_queue *q)
{
	const struct sim_program *p = find_program(dev, q);

	return q->is_lost || (q->sqe.op == HW_EXECUTE && (!p || p->is_joint));
}

/* The engine is q's from now on. */
static void take(struct sim_engine *e, struct sim_queue *q)
{
	e->queue = q;
	q->running = e;
	e->stop_status = 0;
	atomic_store_explicit(&e->stop, false, memory_order_relaxed);
	atomic_store_explicit(&e->core.yield, false, memory_order_relaxed);
	sim_turn_begin(&e->turn);
	e->began = clock_ns();
	e->look_at = e->is_shared ? e->began + SIM_TURN_GRAIN_NS : CLOCK_FOREVER;
}

static void begin(struct sim_device *dev, struct sim_engine *e, struct sim_queue *q)
{
	take(e, q);
	e->run++;
	e->n_uses = e->n_peers = 0;
	e->is_joint = may_be_awaited(dev, q);
	e->ran_before = 0;
	e->deadline = later(e->began, limit_of(dev, q));
	sim_watch(dev, e);
	q->head++;
	sim_trace_begin(dev, e);
}

/* A parked run has an engine again. */
static void begin_again(struct sim_device *dev, struct sim_engine *e, struct sim_queue *q)
{
	const struct sim_parked *k = q->parked;

	q->is_parked = false;
	dev->n_parked--;
	take(e, q);
	e->is_joint = k->program && k->program->is_joint;
	e->ran_before = k->ns;
	e->progress = k->progress;
	e->deadline = k->is_ready ? later(e->began, k->deadline) : k->deadline;
	sim_watch(dev, e);
	sim_trace_resume(dev, e);
}

/* The engine is free. */
static uint64_t leave(struct sim_device *dev, struct sim_engine *e)
{
	uint64_t ns = sim_engine_ran(e, clock_ns());

	dev->contexts[e->queue->info.ctx].used_ns[e - dev->engines] += ns;
	*(e->cls == HW_CLASS_DMA ? &dev->total.busy_dma_ns : &dev->total.busy_compute_ns) += ns;
	e->queue->running = NULL;
	e->queue = NULL;
	pthread_cond_broadcast(&dev->idle);
	return ns;
}

/* The descriptor in q->sqe has ended. */
static void finish(struct sim_device *dev, struct sim_queue *q, struct hw_fault *f, int status,
		   uint64_t ns, bool is_joint)
{
	uint32_t why = status == HW_ST_PEER ?
		1u << 31 | (uint32_t)f->va << 16 | (uint32_t)f->bytes :
		sim_break_why(dev, (unsigned)status);

	q->has_sqe = false;
	if (status && is_joint)
		sim_break(dev, q->info.ctx, why);
	if (q->is_silent || dev->fatal)
		return;
	if (status) {
		sim_fault_record(dev, f);
		q->state = SIM_QUEUE_FAULTED;
	}
	complete(dev, q, (unsigned)status, ns, status ? f->number : 0);
}

static struct hw_fault fault_of(const struct sim_device *dev, const struct sim_queue *q)
{
	return (struct hw_fault){ .queue = (uint16_t)(q - dev->queues), .ctx = q->info.ctx,
				  .operand = 0xffff, .tag = q->sqe.tag,
				  .binding = 0xffffffffu };
}

/* The engine is free, and its run goes on later. */
static void leave_parked(struct sim_device *dev, struct sim_engine *e, bool is_ready)
{
	struct sim_queue *q = e->queue;
	struct sim_parked *k = q->parked;
	int64_t now = clock_ns();

	k->is_ready = is_ready;
	k->progress = e->progress;
	k->deadline = later(e->deadline, sim_turn_waited(&e->turn));
	/* It does not wait for anything of its own. */
	if (is_ready && k->deadline != CLOCK_FOREVER)
		k->deadline = k->deadline > now ? k->deadline - now : 0;
	k->number = e->run;
	k->n_unmaps = dev->n_unmaps;
	k->stop_status = e->stop_status;
	sim_trace_park(e, k);
	k->ns += leave(dev, e);
	q->is_parked = true;
	dev->n_parked++;
}

/* Runs the descriptor in q->sqe to its end, or until it is parked. Called and left with the
 * lock. */
static void step(struct sim_device *dev, struct sim_engine *e, struct sim_queue *q)
{
	struct hw_fault f = fault_of(dev, q);
	bool was_parked = q->is_parked;
	unsigned n_failed;
	uint64_t ns;
	int status;

	if (was_parked)
		begin_again(dev, e, q);
	else
		begin(dev, e, q);
	n_failed = sim_far_failures(dev);
	/* Whoever raised its semaphore has stored something before. */
	if (q->sqe.flags & HW_WAIT || sim_far_is_bad(dev))
		sim_forget_first(dev);
	status = was_parked ? work(dev, e, &f, true) : run_descriptor(dev, e, &f);
	/* A run that ended badly has stored something, too, and does not later. */
	sim_send_first(dev);
	/* It may have read zeros, or what it stored is lost. */
	if (sim_far_failures(dev) != n_failed) {
		if (is_off(status))
			e->stop_status = HW_ST_MAP;
		else if (!status)
			status = sim_fail(&f, HW_ST_MAP, 0, 0, false);
	}
	if (is_off(status)) {
		leave_parked(dev, e, status == SIM_YIELDED);
		return;
	}
	/* The run may have passed its last look at `stop` and still be good. */
	if (status == HW_ST_RESET && e->stop_status)
		f.status = (uint16_t)(status = e->stop_status);
	sim_trace_end(dev, e, was_parked, status);
	if (!status && q->sqe.flags & HW_SIGNAL && !q->is_silent)
		status = signal(dev, e, q, &f);
	/* The semaphore, and records. */
	sim_send_first(dev);
	ns = leave(dev, e) + (was_parked ? q->parked->ns : 0);
	finish(dev, q, &f, status, ns, e->is_joint);
}

/* A parked run ends without another turn. */
static void end_parked(struct sim_device *dev, struct sim_queue *q, int status)
{
	struct hw_fault f = fault_of(dev, q);
	bool is_joint = q->parked->program && q->parked->program->is_joint;

	f.program = q->parked->run.fault.program;
	f.pc = q->parked->run.fault.pc;
	sim_fail(&f, status, 0, 0, false);
	sim_trace_drop(dev, q, status);
	q->is_parked = false;
	dev->n_parked--;
	release_program(q->parked->program);
	finish(dev, q, &f, status, q->parked->ns, is_joint);
}

static void look_at_parked(struct sim_device *dev, int64_t now, int64_t *next)
{
	for (unsigned i = 1; dev->n_parked && i < HW_MAX_QUEUES; i++) {
		struct sim_parked *k = dev->queues[i].parked;

		if (!dev->queues[i].is_parked || k->is_ready || k->stop_status)
			continue;
		if (k->deadline <= now) {
			k->stop_status = HW_ST_WATCHDOG;
			sim_kick(&dev->engines[0]);
		} else if (k->deadline < *next) {
			*next = k->deadline;
		}
	}
}

static void look_at_run(struct sim_engine *e, int64_t now, int64_t *next)
{
	/* Time in which it waited for its turn does not count. */
	int64_t deadline = later(e->deadline, sim_turn_waited(&e->turn));

	if (deadline <= now) {
		sim_engine_halt(e, HW_ST_WATCHDOG);
		return;
	}
	if (e->look_at <= now)
		sim_queue_look(e, now);
	*next = deadline < *next ? deadline : *next;
	*next = e->look_at < *next ? e->look_at : *next;
}

void sim_runs_look(struct sim_device *dev, int64_t now, int64_t *next)
{
	for (unsigned i = 0; i < 2; i++)
		if (dev->engines[i].queue && !dev->engines[i].stop_status)
			look_at_run(&dev->engines[i], now, next);
	look_at_parked(dev, now, next);
}

/* ---- engines ---- */

void sim_engine_serve(struct sim_engine *e)
{
	struct sim_device *dev = e->dev;
	struct sim_queue *q;

	pthread_mutex_lock(&dev->lock);
	if (e->is_served) {
		pthread_mutex_unlock(&dev->lock);
		return;
	}
	e->is_served = true;
	do {
		atomic_store_explicit(&e->is_idle, false, memory_order_relaxed);
		do {
			sim_queue_hear(dev);
			e->seen = atomic_load(&e->kick);
			e->was_missed = e->queue;
			q = e->queue ? NULL : sim_queue_pick(dev, e);
			if (q)
				step(dev, e, q);
		} while (q);
		atomic_store(&e->is_idle, true);
	} while (atomic_load(&dev->rung));
	e->is_served = false;
	pthread_mutex_unlock(&dev->lock);
}

int sim_engine_init(struct sim_device *dev, struct sim_engine *e, uint8_t cls,
		    struct sim_turns *turns)
{
	e->dev = dev;
	e->cls = cls;
	e->turn.all = turns;
	e->uses = calloc(ISA_MAX_BINDINGS, sizeof(*e->uses));
	if (sim_core_init(&e->core, &dev->sim->cpu, dev->sim->pool, &dev->watch) || !e->uses)
		return -1;
	e->core.turn = turns ? &e->turn : NULL;
	e->core.links = &sim_links;
	e->core.link = e;
	e->core.cells = &dev->cells;
	e->core.hbm = dev->hbm;
	e->core.hbm_bytes = dev->hbm_bytes;
	atomic_store(&e->is_idle, true);
	return 0;
}

void sim_engine_free(struct sim_engine *e)
{
	sim_core_free(&e->core);
	free(e->uses);
	e->uses = NULL;
}

/* ---- on the thread that rings ---- */

/* Whether what is next of q, in q->sqe or parked, is small enough for a thread that is not the
 * crew's, and nothing keeps that waiting: not other functions of the card either. */
static bool is_small(struct sim_device *dev, struct sim_engine *e, const struct sim_queue *q)
{
	const struct sim_program *p;

	if (!(q->sqe.flags & HW_INLINE) || !dev->inline_ns || e->hangs ||
	    !sim_turn_is_free(&e->turn))
		return false;
	if (q->sqe.op == HW_COPY || q->sqe.op == HW_FILL)
		return q->sqe.u.copy.bytes <= INLINE_COPY_BYTES;
	if (q->sqe.op != HW_EXECUTE)
		return q->sqe.op != HW_COPY_2D;
	p = q->is_parked ? q->parked->program : find_program(dev, q);
	/* A loop that was parked had its turn. Members of one launch run one after the other here,
	 * and side by side on the crew, which takes longer to wake than short ones run. */
	return p && p->last_ns <= dev->inline_ns - (p->is_joint ? dev->inline_ns / 3 : 0) &&
	       (p->is_straight || (p->last_ns && !q->is_parked));
}

/* A step. What it makes ready elsewhere is added to `ready`. */
static void step_lent(struct sim_device *dev, struct sim_engine *e, struct sim_queue *q,
		      uint64_t ready[2])
{
	e->is_lent = true;
	step(dev, e, q);
	e->is_lent = false;
	for (unsigned cls = 0; cls < 2; cls++) {
		ready[cls] |= e->made_ready[cls];
		e->made_ready[cls] = 0;
	}
}

/* Runs what the doorbell announced, as long as it is small and nothing else wants
 * the engine. Whether nothing is left to do for a thread of the crew. */
static bool run_inline(struct sim_device *dev, struct sim_engine *e, struct sim_queue *q,
		       uint64_t ready[2])
{
	while (sim_is_alive(dev) && !e->queue && e->seen == atomic_load(&e->kick)) {
		if (!sim_queue_can_begin(dev, e, q))
			return !e->was_missed;
		if (!is_small(dev, e, q))
			return false;
		step_lent(dev, e, q, ready);
	}
	return false;
}

/* As sim_engine_serve(), while that is small and it is not `until` yet. Whether nothing is left to
 * do for a thread of the crew. */
static bool serve_lent(struct sim_engine *e, uint64_t ready[2], int64_t until)
{
	struct sim_device *dev = e->dev;
	struct sim_queue *q = NULL;

	pthread_mutex_lock(&dev->lock);
	while (!e->is_served) {
		sim_queue_hear(dev);
		e->seen = atomic_load(&e->kick);
		e->was_missed = e->queue;
		q = e->queue ? NULL : sim_queue_pick(dev, e);
		if (!q || clock_ns() >= until || !is_small(dev, e, q))
			break;
		step_lent(dev, e, q, ready);
		q = NULL;
	}
	pthread_mutex_unlock(&dev->lock);
	return !q;
}

/* Members of a program that meet wait for one another. Whoever rings for the last one goes on with
 * those that its run made ready: to wake another thread would take longer. */
static void go_on_with(struct sim *sim, uint64_t ready[2])
{
	int64_t until = clock_ns() + LENT_NS;

	for (unsigned cls = 0; ready[0] | ready[1]; cls ^= 1) {
		while (ready[cls]) {
			unsigned i = (unsigned)__builtin_ctzll(ready[cls]);

			ready[cls] &= ready[cls] - 1;
			if (sim_take_kick(sim, cls, i) &&
			    !serve_lent(&sim->devices[i].engines[cls], ready, until))
				sim_kick(&sim->devices[i].engines[cls]);
		}
	}
}

void sim_queue_ring(struct sim_device *dev, unsigned queue, uint32_t tail)
{
	struct sim_queue *q = &dev->queues[queue];
	uint64_t bit = sim_queue_bit(dev, q);
	bool is_dma = atomic_load_explicit(&dev->of_dma, memory_order_relaxed) & bit;
	struct sim_engine *e = &dev->engines[is_dma];
	uint64_t ready[2] = { 0, 0 };
	bool is_done;

	atomic_store_explicit(&dev->bell[queue], tail, memory_order_relaxed);
	atomic_fetch_or(&dev->rung, bit);
	/* A thread that is up looks at `rung` once more after it says that it is idle. */
	if (!atomic_load(&e->is_idle)) {
		if (atomic_load_explicit(&e->is_shared, memory_order_relaxed) &&
		    !atomic_load_explicit(&e->core.yield, memory_order_relaxed)) {
			pthread_mutex_lock(&dev->lock);
			sim_queue_look(e, clock_ns());
			pthread_mutex_unlock(&dev->lock);
		}
		return;
	}
	pthread_mutex_lock(&dev->lock);
	sim_queue_hear(dev);
	is_done = run_inline(dev, e, q, ready);
	pthread_mutex_unlock(&dev->lock);
	/* Whoever serves it wants the lock first thing. */
	if (!is_done)
		sim_kick(e);
	if (ready[0] | ready[1])
		go_on_with(dev->sim, ready);
}

static void drop_all(struct sim_device *dev, struct sim_queue *q)
{
	while (sim_queue_fetch(dev, q)) {
		if (may_be_awaited(dev, q))
			sim_break(dev, q->info.ctx, sim_break_why(dev, HW_ST_DROPPED));
		q->head++;
		complete(dev, q, HW_ST_DROPPED, 0, 0);
		q->has_sqe = false;
	}
}

void sim_queue_clear(struct sim_device *dev, struct sim_queue *q, bool with_completions)
{
	sim_queue_hear(dev);
	q->is_clearing = true;
	q->is_silent = !with_completions;
	while (q->running) {
		sim_engine_halt(q->running, HW_ST_RESET);
		pthread_cond_wait(&dev->idle, &dev->lock);
	}
	if (q->is_parked)
		end_parked(dev, q, HW_ST_RESET);
	/* While that waits, without the lock, a doorbell may be heard. */
	do {
		if (with_completions)
			drop_all(dev, q);
		sim_break_wait(dev);
	} while (with_completions && q->head != q->tail);
	q->head = q->tail;
	q->has_sqe = false;
	q->is_clearing = q->is_silent = false;
	q->waits_since = 0;
	if (q->state == SIM_QUEUE_FAULTED)
		q->state = SIM_QUEUE_READY;
}
