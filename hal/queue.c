/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Queues: numbering submissions, learning that they are done, telling who waits.
 *
 * Completions come in order, so `done` is one number. Whoever holds the queue's lock
 * reaps; callbacks run on the device's waiter thread alone. Interrupts cost the
 * device a system call, so a submission that is expected to end before its doorbell
 * returns asks for none: when somebody wants to sleep for it after all, an empty
 * submission with an interrupt is sent behind it.
 *
 * Bindings of a submission lie in a ring of pinned memory until it is done.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hal/base/cpu.h"
#include "hal/hal_internal.h"
#include "hal/hw/regs.h"

#define BOUND_ALIGN 64u
#define PAGE_LAUNCHES 64u	/* so often the page's numbers may be due */
#define LOOK_NS 1000000ll	/* between looks at a queue that fails, as no interrupt may tell */
#define REAP_EVERY 16u		/* submissions: to look for completions costs a cache miss */

struct hal_queue *hal_device_queue(struct hal_device *dev, enum hal_queue_class cls)
{
	return dev->queues[cls];
}

/* ---- failures ---- */

/* The device's record of fault `number`; false and why if it is gone. */
static bool read_fault(struct hal_device *dev, uint64_t number, struct hw_fault *out,
		       struct err *gone)
{
	struct hw_fault *page = calloc(64, sizeof(*page));
	uint64_t bytes = 0;
	bool found = false;

	err_set(gone, ERR_NOT_FOUND, "it is not in the log");
	if (page && !dev->t->ops->ask(dev->t, (struct hw_sqe){ .op = HW_LOG_PAGE,
				      .id = HW_LOG_FAULT }, page, 64 * sizeof(*page),
				      &bytes, gone))
		for (uint64_t i = 0; i < bytes / sizeof(*page) && !found; i++)
			if (page[i].number == number) {
				*out = page[i];
				found = true;
			}
	free(page);
	return found;
}

static const char *mnemonic_at(const struct image *im, uint64_t pc)
{
	const struct isa_insn *insn;
	const char *name;

	if (pc > im->text_bytes || im->text_bytes - pc < sizeof(*insn))
		return "?";
	insn = (const void *)((const char *)im->text + pc);
	name = isa_insn_info(insn->op)->mnemonic;
	return name ? name : "?";
}

/* A device that this one met failed: which, and how. */
static void describe_peer(struct hal_queue *q, const struct hw_fault *f, const char *what,
			  struct err *err)
{
	const char *name = hal_chip_name(q->dev, f->va);
	char chip[32], stopped[HAL_STOPPED] = "";

	snprintf(chip, sizeof(chip), "chip %llu", (unsigned long long)f->va);
	if (f->bytes == HW_ST_LINK) {
		err_set(err, hw_status_code(f->status), "%s on %s: a link on the way to peer %s "
			"is down (LINK): xla-smi topo shows which; resetting the device at either "
			"end brings it up", what, q->dev->entry->info.bus_id, name ? name : chip);
		return;
	}
	if (f->bytes == HW_ST_RESET || f->bytes == HW_ST_DROPPED)
		hal_why_stopped(q->dev->hal, name, f->bytes == HW_ST_RESET, stopped);
	err_set(err, hw_status_code(f->status), "%s on %s: peer %s failed: %s (%s)%s%s", what,
		q->dev->entry->info.bus_id, name ? name : chip, hw_status_text((unsigned)f->bytes),
		hw_status_name((unsigned)f->bytes), *stopped ? ": " : "", stopped);
}

/* A copy to another card's memory, which the kernel took back: where it is gone the copy
 * faults, and what runs on it meanwhile is stopped. False: it ended for another reason. */
static bool describe_taken(struct hal_queue *q, const struct hw_fault *f, uint64_t dst,
			   struct err *err)
{
	const char *here = q->dev->entry->info.bus_id;
	const char *peer = hal_peer_name(q->dev, f->status == HW_ST_MAP ? f->va : dst);

	if (!peer || (f->status != HW_ST_MAP && f->status != HW_ST_RESET))
		return false;
	if (f->status == HW_ST_MAP)
		err_set(err, ERR_UNAVAILABLE, "copy on %s: peer %s took its memory back at address "
			"0x%llx: it was reset, or lost its driver (MAP)", here, peer,
			(unsigned long long)f->va);
	else
		err_set(err, ERR_UNAVAILABLE, "copy on %s: the queue was reset while this wrote to "
			"peer %s, as the kernel does when that is reset, or loses its driver "
			"(RESET)", here, peer);
	return true;
}

/* A fault of which only its status is known, though the device wrote a record: it may have died. */
static void describe_unknown(struct hal_queue *q, const struct hw_cqe *cqe, const char *what,
			     const struct err *gone, struct err *err)
{
	char more[256] = "";

	if (cqe->detail)
		snprintf(more, sizeof(more), "; the record on %.60s that tells more is gone: "
			 "%.140s", q->dev->entry->info.bus_id, gone->msg);
	err_set(err, hw_status_code(cqe->status), "%s: %s (%s)%s", what,
		hw_status_text(cqe->status), hw_status_name(cqe->status), more);
}

/* `record` may be NULL: the device has none. */
static void describe_fault(struct hal_queue *q, const struct hw_cqe *cqe,
			   const struct hw_fault *record, const struct err *gone,
			   const struct hal_slot *slot, struct err *err)
{
	const struct hal_exe *exe = slot->exe;
	const struct image_debug *where;
	struct hw_fault f;
	char on[48];

	if (!record) {
		describe_unknown(q, cqe, exe ? exe->name : "copy", gone, err);
		return;
	}
	f = *record;
	if (f.status == HW_ST_PEER) {
		describe_peer(q, &f, exe ? exe->name : "copy", err);
		return;
	}
	if (!exe && describe_taken(q, &f, slot->dst, err))
		return;
	if (!exe) {
		err_set(err, hw_status_code(f.status), "copy: %s (%s) at address 0x%llx, "
			"%llu bytes", hw_status_text(f.status), hw_status_name(f.status),
			(unsigned long long)f.va, (unsigned long long)f.bytes);
		return;
	}
	where = image_where(exe->image, f.pc);
	if (f.status == HW_ST_OPERANDS)
		snprintf(on, sizeof(on), "on operand %llu", (unsigned long long)f.bytes);
	else
		snprintf(on, sizeof(on), "%llu bytes", (unsigned long long)f.bytes);
	err_set(err, hw_status_code(f.status),
		"%s: %s (%s) in instruction %s at 0x%llx, op %s%s%s, operand %d, binding %d, "
		"address 0x%llx, %s", exe->name, hw_status_text(f.status),
		hw_status_name(f.status), mnemonic_at(exe->image, f.pc),
		(unsigned long long)f.pc, where ? image_string(exe->image, where->op) : "?",
		where && *image_string(exe->image, where->where) ? " from " : "",
		where ? image_string(exe->image, where->where) : "",
		f.operand == 0xffff ? -1 : f.operand, (int)f.binding,
		(unsigned long long)f.va, on);
}

/* ---- completions; under q->lock ---- */

static void set_done(struct hal_queue *q, uint64_t value)
{
	atomic_store_explicit(&q->done, value, memory_order_release);
	q->args_tail = q->slots[value % HAL_RING].args_end;
	if (q->sleepers)
		pthread_cond_broadcast(&q->moved);
}

/* Everything up to `last` failed: `why` for value, ABORTED for those behind it. The ring was reset:
 * lent before that, a window would break once more, with what the reset drops. Whoever knows how
 * often work has failed knows that the window is stale. */
static void fail_pending(struct hal_queue *q, uint64_t value, uint64_t last,
			 const struct err *why)
{
	struct err behind;

	for (uint64_t v = value; v <= last; v++)
		if (q->slots[v % HAL_RING].exe && q->slots[v % HAL_RING].exe->is_joint)
			atomic_store(&q->dev->is_window_stale, true);
	hal_failures_add(&q->failures, value, value, why);
	if (last > value) {
		err_set(&behind, ERR_ABORTED, "dropped: it was queued behind work that "
			"failed: %s", why->msg);
		hal_failures_add(&q->failures, value + 1, last, &behind);
	}
	hal_across_end(q);
	/* Other queues may wait for our semaphore. */
	__atomic_store_n((uint64_t *)(void *)q->semaphore->host, last, __ATOMIC_RELEASE);
	atomic_store(&q->dev->must_wake, true);
}

/* Writes down what there is to be seen. What a peer's fault is due to is in the peer's dump, and
 * who has a queue reset knows why. */
static void keep_evidence(struct hal_queue *q, uint64_t value, unsigned status,
			  const struct hw_fault *record, struct err *why)
{
	struct hal_crash *crash;

	if (status == HW_ST_PEER || status == HW_ST_RESET)
		return;
	crash = hal_crash_begin(q->dev, q, value, record);
	pthread_mutex_lock(&q->dev->lock);
	hal_crash_end(crash, why);
	pthread_mutex_unlock(&q->dev->lock);
}

static void say_stopped(struct err *text, const char *why)
{
	err_set(text, ERR_ABORTED, "the queue was reset: %s", why);
}

/* What `value` fails with, since the work of a device that it met was dropped, or its queue reset:
 * for the reason that is known, or that the process whose device it is tells. */
static void find_reason(struct hal_queue *q, uint64_t value, uint64_t chip, struct err *why)
{
	char text[HAL_STOPPED];

	if (q->reason.code)
		*why = q->reason;
	else if (value <= q->n_blamed)
		*why = q->blamed;
	else if (hal_ask_stopped(q->dev->hal, hal_chip_name(q->dev, chip), text))
		say_stopped(why, text);
}

static void handle_fault(struct hal_queue *q, uint64_t value, const struct hw_cqe *cqe)
{
	struct hw_cqe dropped;
	struct hw_fault record;
	struct err why, reset_err, gone;
	bool has_record = read_fault(q->dev, cqe->detail, &record, &gone);

	describe_fault(q, cqe, has_record ? &record : NULL, &gone, &q->slots[value % HAL_RING],
		       &why);
	if (cqe->status == HW_ST_PEER && has_record &&
	    (record.bytes == HW_ST_RESET || record.bytes == HW_ST_DROPPED))
		find_reason(q, value, record.va, &why);
	keep_evidence(q, value, cqe->status, has_record ? &record : NULL, &why);
	hal_say_stopped(q->dev, false, why.msg);
	if (q->dev->t->ops->ring_reset(q->ring, &reset_err)) {
		hal_die(q->dev, &reset_err);
	} else {
		while (q->ring->head != q->ring->tail &&
		       q->dev->t->ops->reap(q->ring, &dropped))
			;
	}
	fail_pending(q, value, q->submitted, &why);
	hal_page_tell(q->dev, why.code, why.msg);
	set_done(q, q->submitted);
	hal_wake_waiter(q->dev);
}

static void reap(struct hal_queue *q)
{
	uint64_t done = atomic_load_explicit(&q->done, memory_order_relaxed);
	struct hw_cqe cqe;

	if (atomic_load_explicit(&q->dev->is_dead, memory_order_relaxed))
		return;
	while (done < q->submitted && q->dev->t->ops->reap(q->ring, &cqe)) {
		done++;
		if (cqe.status) {
			handle_fault(q, done, &cqe);
			return;
		}
		set_done(q, done);
	}
}

/* Due notices, taken off the list. */
static struct hal_notice *take_due(struct hal_queue *q)
{
	uint64_t done = atomic_load_explicit(&q->done, memory_order_relaxed);
	struct hal_notice *first = q->notices, **end = &q->notices;

	while (*end && (*end)->value <= done)
		end = &(*end)->next;
	if (end == &q->notices)
		return NULL;
	q->notices = *end;
	*end = NULL;
	if (!q->notices)
		q->last_notice = NULL;
	return first;
}

void hal_queue_reap(struct hal_queue *q)
{
	struct hal_notice *n, *next;

	pthread_mutex_lock(&q->lock);
	reap(q);
	n = take_due(q);
	pthread_mutex_unlock(&q->lock);
	for (; n; n = next) {
		struct err why;
		int code = hal_queue_error(q, n->value, &why);

		next = n->next;
		n->fn(n->arg, code ? &why : NULL);
		free(n);
	}
}

/* The failure of no submission: whoever asked for addresses before learns that they are void. */
void hal_queue_note_reset(struct hal_queue *q, const struct err *why)
{
	hal_failures_add(&q->failures, q->submitted + 1, q->submitted, why);
}

void hal_queue_fail_all(struct hal_queue *q, const struct err *why)
{
	uint64_t done;

	pthread_mutex_lock(&q->lock);
	done = atomic_load(&q->done);
	if (done < q->submitted) {
		hal_failures_add(&q->failures, done + 1, q->submitted, why);
		hal_across_end(q);
		set_done(q, q->submitted);
	}
	if (q->sleepers)
		pthread_cond_broadcast(&q->moved);
	pthread_mutex_unlock(&q->lock);
}

/* ---- submission ---- */

/* Whether n more descriptors, with `args` bytes of bindings, overwrite nothing that the
 * device may yet read. One entry of the ring stays free: ask_for_irq fills it. */
static bool has_room(struct hal_queue *q, unsigned n, uint64_t args)
{
	return q->submitted - atomic_load(&q->done) + n < HAL_RING &&
	       q->args_head + args - q->args_tail <= HAL_ARGS;
}

/* Waits, under the lock, until the ring and the arguments have room. */
static int await_room(struct hal_queue *q, unsigned n, uint64_t args, struct err *err)
{
	/* Under the lock: hal_queue_fail_all fails what comes before it, and what
	 * would come after it is refused here. */
	int code = hal_check(q->dev, err);

	for (unsigned spins = 0; !code && !has_room(q, n, args); spins++) {
		reap(q);
		if (has_room(q, n, args))
			break;
		pthread_mutex_unlock(&q->lock);
		if (spins > 1000)
			sched_yield();
		else
			cpu_relax();
		if (spins % 1024 == 1023)
			hal_check_alive(q->dev, NULL);
		pthread_mutex_lock(&q->lock);
		code = hal_check(q->dev, err);
	}
	return code;
}

/* Puts one descriptor in the ring and rings. Numbers it. */
static uint64_t push(struct hal_queue *q, struct hw_sqe *sqe, struct hal_exe *exe)
{
	uint64_t value = q->submitted + 1;

	/* Not an increment: that would cost a locked instruction. */
	atomic_store_explicit(&q->submitted, value, memory_order_relaxed);
	sqe->tag = (uint32_t)value;
	sqe->flags |= HW_SIGNAL;
	sqe->signal_va = q->semaphore->va;
	sqe->signal_value = value;
	if (sqe->flags & HW_IRQ)
		q->last_irq = value;
	q->slots[value % HAL_RING] = (struct hal_slot){
		exe, q->args_head, sqe->op == HW_COPY ? sqe->u.copy.dst : 0 };
	if (exe)
		atomic_store_explicit(&exe->last_use, value, memory_order_relaxed);
	q->ring->sq[q->ring->tail % q->ring->n_entries] = *sqe;
	q->dev->t->ops->ring(q->ring);
	return value;
}

/* Whether all of that can be waited for, without waiting for itself. What is of another device
 * must have been submitted: so what waits for it came later, and there is no circle. */
static int check_after(const struct hal_queue *q, const struct hal_after *after, unsigned n,
		       struct err *err)
{
	for (unsigned i = 0; i < n; i++) {
		const struct hal_queue *other = after[i].queue;

		if (!other || other->dev->hal != q->dev->hal)
			return err_set(err, ERR_INVALID_ARGUMENT, "a submission may wait for those "
				       "of queues of its HAL's devices; number %u of its %u waits "
				       "is for no such queue", i, n);
		if ((other == q || other->dev != q->dev) &&
		    after[i].value > atomic_load(&other->submitted))
			return err_set(err, ERR_INVALID_ARGUMENT, "a submission on %s can't wait "
				       "for number %llu of %s, which was not submitted yet: submit "
				       "it first", q->dev->entry->info.bus_id,
				       (unsigned long long)after[i].value, other == q ?
				       "its own queue" : other->dev->entry->info.bus_id);
	}
	return 0;
}

/* Has what is to end on other devices counted; *out is NULL if all of it has. */
static int await_others(struct hal_queue *q, const struct hal_after *after, unsigned n,
			struct hal_across **out, struct err *err)
{
	struct hal_across *w = NULL;
	int code = 0;

	for (unsigned i = 0; !code && i < n; i++) {
		struct hal_queue *other = after[i].queue;

		if (other->dev == q->dev || hal_queue_done(other) >= after[i].value)
			continue;
		if (!w)
			w = hal_across_new(q->dev->hal);
		if (!w)
			return err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory");
		hal_across_expect(w);
		code = hal_queue_notify(other, after[i].value, hal_across_ended, w, err);
		if (code)
			hal_across_ended(w, err);
		/* What a dead device had is over. */
		if (code && atomic_load(&other->dev->is_dead))
			code = 0;
	}
	if (code) {
		hal_across_drop(w);
		w = NULL;
	}
	*out = w;
	return code;
}

/* Both of the above. */
static int take_after(struct hal_queue *q, const struct hal_after *after, unsigned n,
		      struct hal_across **out, struct err *err)
{
	int code = check_after(q, after, n, err);

	*out = NULL;
	return code ? code : await_others(q, after, n, out, err);
}

/* Puts the wait for other devices into the queue, for which there is room. NULL: there is none. */
static void push_across(struct hal_queue *q, struct hal_across *w)
{
	struct hw_sqe sqe = { .op = HW_SEMAPHORE, .flags = HW_WAIT,
			      .wait_va = q->semaphore->va + HAL_ACROSS_AT,
			      .wait_value = q->submitted + 1 };

	if (!w)
		return;
	hal_across_begin(w, q, sqe.wait_value);
	push(q, &sqe, NULL);
}

/* Adds a wait for the device's own work to a descriptor. It has one queue besides q, and its
 * submissions are done in order, so of all those named the newest counts. */
static void add_wait(struct hal_queue *q, struct hw_sqe *sqe, const struct hal_after *after,
		     unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		/* What is before it in its own queue is done first anyway. */
		if (after[i].queue == q || after[i].queue->dev != q->dev ||
		    (sqe->flags & HW_WAIT && after[i].value <= sqe->wait_value))
			continue;
		sqe->flags |= HW_WAIT;
		sqe->wait_va = after[i].queue->semaphore->va;
		sqe->wait_value = after[i].value;
	}
}

/* Room for `bytes` of bindings in the ring of arguments, in one piece: also behind the
 * map, where without an IOMMU only a page is one. */
static struct hw_binding *take_args(struct hal_queue *q, uint64_t bytes, uint64_t *va)
{
	uint64_t at = q->args_head % HAL_ARGS, unit = bytes <= HW_PAGE ? HW_PAGE : HAL_ARGS;

	if (at % unit + bytes > unit) {
		q->args_head += unit - at % unit;
		at = q->args_head % HAL_ARGS;
	}
	q->args_head += bytes;
	*va = q->args->va + at;
	return (void *)(q->args->host + at);
}

static uint64_t bound_bytes(size_t n_bindings)
{
	return (n_bindings * sizeof(struct hw_binding) + BOUND_ALIGN - 1) / BOUND_ALIGN *
	       BOUND_ALIGN;
}

bool hal_queue_has_room(struct hal_queue *q, unsigned n, size_t n_bindings)
{
	uint64_t args = 2 * bound_bytes(n_bindings);
	bool is_there;

	pthread_mutex_lock(&q->lock);
	is_there = has_room(q, n, args);
	if (!is_there) {
		reap(q);
		/* More than ever fits does not wait for it. */
		is_there = has_room(q, n, args) || q->submitted == atomic_load(&q->done);
	}
	pthread_mutex_unlock(&q->lock);
	return is_there;
}

uint64_t hal_queue_room_at(struct hal_queue *q)
{
	uint64_t done = hal_queue_done(q), pending = atomic_load(&q->submitted) - done;

	return done + (pending + 7) / 8;
}

int hal_queue_await_room(struct hal_queue *q, struct err *err)
{
	/* Its own error is that of who submitted it. */
	hal_queue_wait(q, hal_queue_room_at(q), CLOCK_FOREVER, NULL);
	return hal_check(q->dev, err);
}

static int check_launch(const struct hal_launch *l, struct err *err)
{
	const struct image *im = l->exe->image;

	for (size_t i = 0; i < im->n_bindings; i++) {
		const struct hw_binding *b = &l->bindings[i];

		if (b->bytes < im->bindings[i].bytes || (b->bytes && b->va % HAL_MEM_ALIGN))
			return err_set(err, ERR_INVALID_ARGUMENT, "%s: binding %zu is of %llu "
				       "bytes at 0x%llx; it needs %llu bytes at a multiple of %u",
				       l->exe->name, i, (unsigned long long)b->bytes,
				       (unsigned long long)b->va,
				       (unsigned long long)im->bindings[i].bytes, HAL_MEM_ALIGN);
	}
	return 0;
}

/* Takes completions along, seldom: who waits for one looks itself. */
static void reap_in_passing(struct hal_queue *q)
{
	if (q->submitted % REAP_EVERY == 0)
		reap(q);
}

int hal_queue_execute(struct hal_queue *q, const struct hal_launch *l, uint64_t *value,
		      struct err *err)
{
	const struct image *im = l->exe->image;
	uint64_t bytes = bound_bytes(im->n_bindings);
	struct hw_sqe sqe = { .op = HW_EXECUTE };
	struct hw_binding *args;
	struct hal_across *across = NULL;
	bool is_due;
	int code = hal_check(q->dev, err);

	if (!code)
		code = check_launch(l, err);
	if (!code)
		code = take_after(q, l->after, l->n_after, &across, err);
	if (code)
		return code;
	sqe.flags = (uint8_t)(l->exe->flags ? l->exe->flags : HW_IRQ);
	sqe.u.execute.n_bindings = (uint32_t)im->n_bindings;
	sqe.u.execute.limit_ns = l->limit_ns ? l->limit_ns : q->dev->default_limit_ns;
	pthread_mutex_lock(&q->lock);
	/* The jump to a page's or the ring's start may cost as much again. */
	code = await_room(q, 1 + !!across, 2 * bytes, err);
	sqe.u.execute.program = l->exe->program;
	/* What fails now, and is not seen yet, halts the queue, and drops this with it. */
	if (!code && l->n_failures && *l->n_failures != q->failures.n)
		code = err_set(err, ERR_ABORTED, "work on %s failed before %s was launched, which "
			       "may read what it was to write: %.300s", q->dev->entry->info.bus_id,
			       l->exe->name, hal_failures_last(&q->failures));
	if (!code && !sqe.u.execute.program)
		code = err_set(err, ERR_ABORTED, "%s is being loaded again after a reset of %s",
			       l->exe->name, q->dev->entry->info.bus_id);
	if (code) {
		pthread_mutex_unlock(&q->lock);
		hal_across_drop(across);
		return code;
	}
	push_across(q, across);
	args = take_args(q, bytes, &sqe.u.execute.bindings);
	memcpy(args, l->bindings, im->n_bindings * sizeof(*args));
	add_wait(q, &sqe, l->after, l->n_after);
	*value = push(q, &sqe, l->exe);
	if (sqe.flags & HW_INLINE)
		reap(q);
	else
		reap_in_passing(q);
	/* Reading the clock takes a twentieth of a launch: not at each. */
	is_due = q->dev->page && q->dev->page->n_execute++ % PAGE_LAUNCHES == 0;
	pthread_mutex_unlock(&q->lock);
	if (is_due)
		hal_page_update(q->dev, true);
	return 0;
}

uint64_t hal_queue_failures(const struct hal_queue *q)
{
	return __atomic_load_n(&q->failures.n, __ATOMIC_ACQUIRE);
}

int hal_queue_submit(struct hal_queue *q, struct hw_sqe *sqe, const struct hw_copy_2d *args,
		     const struct hal_after *after, unsigned n_after, uint64_t *value,
		     struct err *err)
{
	struct hal_across *across = NULL;
	int code = hal_check(q->dev, err);

	if (!code)
		code = take_after(q, after, n_after, &across, err);
	if (code)
		return code;
	pthread_mutex_lock(&q->lock);
	code = await_room(q, 1 + !!across, args ? 4 * BOUND_ALIGN : 0, err);
	if (!code) {
		push_across(q, across);
		if (args)
			memcpy(take_args(q, 2 * BOUND_ALIGN, &sqe->u.copy.src), args,
			       sizeof(*args));
		add_wait(q, sqe, after, n_after);
		*value = push(q, sqe, NULL);
		reap_in_passing(q);
	}
	pthread_mutex_unlock(&q->lock);
	if (code)
		hal_across_drop(across);
	return code;
}

/* ---- waiting ---- */

uint64_t hal_queue_done(struct hal_queue *q)
{
	uint64_t done = atomic_load_explicit(&q->done, memory_order_acquire);

	if (done < atomic_load_explicit(&q->submitted, memory_order_relaxed) &&
	    !hal_is_orphan(q->dev) && !pthread_mutex_trylock(&q->lock)) {
		reap(q);
		done = atomic_load_explicit(&q->done, memory_order_relaxed);
		if (q->notices && q->notices->value <= done)
			hal_wake_waiter(q->dev);
		pthread_mutex_unlock(&q->lock);
	}
	return done;
}

/* Sees to it, under the lock, that an interrupt follows `value`. Does not wait: has_room left
 * an entry free, and a second such descriptor is asked for only behind an ordinary one. */
static int ask_for_irq(struct hal_queue *q, uint64_t value, struct err *err)
{
	struct hw_sqe sqe = { .op = HW_NOP, .flags = HW_IRQ };
	int code;

	if (q->last_irq >= value || atomic_load(&q->done) >= value)
		return 0;
	/* Under the lock, as in await_room. */
	code = hal_check(q->dev, err);
	if (!code)
		push(q, &sqe, NULL);
	return code;
}

int hal_queue_error(struct hal_queue *q, uint64_t value, struct err *err)
{
	int code = 0;

	if (hal_is_orphan(q->dev))
		return hal_check(q->dev, err);
	if (__atomic_load_n(&q->failures.n, __ATOMIC_RELAXED)) {
		pthread_mutex_lock(&q->lock);
		code = hal_failures_find(&q->failures, value, err);
		pthread_mutex_unlock(&q->lock);
	}
	return code;
}

int hal_queue_await_failure(struct hal_queue *q, int64_t deadline, struct err *err)
{
	uint64_t before;
	int code;

	pthread_mutex_lock(&q->lock);
	before = q->failures.n;
	q->sleepers++;
	for (;;) {
		int64_t until = clock_after(LOOK_NS);
		struct timespec t = clock_spec(until < deadline ? until : deadline);

		pthread_mutex_unlock(&q->lock);
		code = hal_check_alive(q->dev, err);
		pthread_mutex_lock(&q->lock);
		reap(q);
		if (code || q->failures.n != before || atomic_load(&q->dev->is_window_stale) ||
		    atomic_load(&q->done) == q->submitted || clock_ns() >= deadline)
			break;
		pthread_cond_timedwait(&q->moved, &q->lock, &t);
	}
	q->sleepers--;
	/* What was taken here others may wait for. */
	if (q->notices && q->notices->value <= atomic_load(&q->done))
		hal_wake_waiter(q->dev);
	pthread_mutex_unlock(&q->lock);
	return code;
}

static int report_late(struct hal_queue *q, uint64_t value, struct err *err)
{
	uint64_t runs = atomic_load(&q->done) + 1;
	const struct hal_exe *exe = q->slots[runs % HAL_RING].exe;

	if (hal_across_waits(q, runs))
		return err_set(err, ERR_DEADLINE_EXCEEDED, "submission %llu is not done; "
			       "submission %llu waits for work of another device. Wait longer, "
			       "or see to that device", (unsigned long long)value,
			       (unsigned long long)runs);
	return err_set(err, ERR_DEADLINE_EXCEEDED, "submission %llu is not done; submission "
		       "%llu runs: %s. Wait longer, or reset the queue",
		       (unsigned long long)value, (unsigned long long)runs,
		       exe ? exe->name : "a copy");
}

int hal_queue_wait(struct hal_queue *q, uint64_t value, int64_t deadline, struct err *err)
{
	int64_t spin = clock_ns() + HAL_SPIN_NS;
	int code = 0;

	if (hal_is_orphan(q->dev))
		return hal_check(q->dev, err);
	if (value > q->submitted)
		return err_set(err, ERR_INVALID_ARGUMENT, "submission %llu was never made",
			       (unsigned long long)value);
	while (hal_queue_done(q) < value && clock_ns() < spin)
		cpu_relax();
	if (hal_queue_done(q) >= value)
		return hal_queue_error(q, value, err);
	pthread_mutex_lock(&q->lock);
	code = ask_for_irq(q, value, err);
	q->sleepers++;
	while (!code && atomic_load(&q->done) < value) {
		/* Look at the device itself now and then: an interrupt may be lost,
		 * and a dead device sends none. */
		int64_t until = clock_after(100000000);
		struct timespec t;

		if (until > deadline)
			until = deadline;
		t = clock_spec(until);
		pthread_cond_timedwait(&q->moved, &q->lock, &t);
		reap(q);
		if (atomic_load(&q->done) >= value)
			break;
		if (clock_ns() >= deadline) {
			code = report_late(q, value, err);
			break;
		}
		pthread_mutex_unlock(&q->lock);
		code = hal_check_alive(q->dev, err);
		pthread_mutex_lock(&q->lock);
	}
	q->sleepers--;
	pthread_mutex_unlock(&q->lock);
	return code ? code : hal_queue_error(q, value, err);
}

int hal_queue_notify(struct hal_queue *q, uint64_t value,
		     void (*fn)(void *arg, const struct err *err), void *arg,
		     struct err *err)
{
	struct hal_notice *n;
	struct err why;
	int code;

	if (hal_is_orphan(q->dev))
		return hal_check(q->dev, err);
	if (value > q->submitted)
		return err_set(err, ERR_INVALID_ARGUMENT, "submission %llu was never made",
			       (unsigned long long)value);
	if (hal_queue_done(q) >= value) {
		code = hal_queue_error(q, value, &why);
		fn(arg, code ? &why : NULL);
		return 0;
	}
	n = malloc(sizeof(*n));
	if (!n)
		return err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory");
	*n = (struct hal_notice){ value, fn, arg, NULL };
	pthread_mutex_lock(&q->lock);
	reap(q);
	code = ask_for_irq(q, value, err);
	if (code && atomic_load(&q->done) < value) {
		pthread_mutex_unlock(&q->lock);
		free(n);
		return code;
	}
	if (!q->last_notice || q->last_notice->value <= value) {
		*(q->last_notice ? &q->last_notice->next : &q->notices) = n;
		q->last_notice = n;
	} else {
		struct hal_notice **at = &q->notices;

		while ((*at)->value <= value)
			at = &(*at)->next;
		n->next = *at;
		*at = n;
	}
	if (atomic_load(&q->done) >= value)
		hal_wake_waiter(q->dev);
	pthread_mutex_unlock(&q->lock);
	return 0;
}

int hal_queue_reset(struct hal_queue *q, const char *why, struct err *err)
{
	return hal_queue_stop(q, UINT64_MAX, why, err);
}

void hal_queue_set_reason(struct hal_queue *q, const char *why)
{
	pthread_mutex_lock(&q->lock);
	q->reason.code = 0;
	if (why)
		say_stopped(&q->reason, why);
	pthread_mutex_unlock(&q->lock);
}

void hal_queue_blame(struct hal_queue *q, const char *why)
{
	pthread_mutex_lock(&q->lock);
	say_stopped(&q->blamed, why);
	q->n_blamed = q->submitted;
	pthread_mutex_unlock(&q->lock);
}

int hal_queue_stop(struct hal_queue *q, uint64_t value, const char *why, struct err *err)
{
	struct hw_cqe cqe;
	struct err text;
	uint64_t done;
	int code = hal_check(q->dev, err);

	if (code)
		return code;
	pthread_mutex_lock(&q->lock);
	reap(q);
	done = atomic_load(&q->done);
	if (value <= done) {
		pthread_mutex_unlock(&q->lock);
		return 0;
	}
	hal_say_stopped(q->dev, true, why);
	code = q->dev->t->ops->ring_reset(q->ring, err);
	while (!code && q->ring->head != q->ring->tail && q->dev->t->ops->reap(q->ring, &cqe))
		;
	if (!code && done < q->submitted) {
		say_stopped(&text, why);
		fail_pending(q, done + 1, q->submitted, &text);
		hal_page_tell(q->dev, text.code, text.msg);
		set_done(q, q->submitted);
	}
	pthread_mutex_unlock(&q->lock);
	hal_wake_waiter(q->dev);
	return code;
}

/* ---- life ---- */

int hal_queue_open(struct hal_device *dev, enum hal_queue_class cls, struct err *err)
{
	struct hal_queue *q = calloc(1, sizeof(*q));
	pthread_condattr_t attr;
	int code;

	if (!q)
		return err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory");
	dev->queues[cls] = q;
	q->dev = dev;
	q->cls = cls;
	pthread_mutex_init(&q->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&q->moved, &attr);
	pthread_condattr_destroy(&attr);
	code = hal_failures_init(&q->failures, err);
	if (!code)
		code = hal_mem_alloc(dev, HAL_MEM_HOST, HAL_ARGS, "bindings", &q->args, err);
	if (!code)
		code = hal_mem_alloc(dev, HAL_MEM_HOST, 64, "semaphore", &q->semaphore, err);
	if (!code)
		code = hal_queue_reopen(q, err);
	return code;
}

int hal_queue_reopen(struct hal_queue *q, struct err *err)
{
	enum hw_class cls = q->cls == HAL_QUEUE_COMPUTE ? HW_CLASS_COMPUTE : HW_CLASS_DMA;

	if (q->ring)
		q->dev->t->ops->ring_destroy(q->ring);
	q->ring = NULL;
	hal_across_end(q);
	memset(q->semaphore->host, 0, 64);
	__atomic_store_n((uint64_t *)(void *)q->semaphore->host, q->submitted,
			 __ATOMIC_RELEASE);
	return q->dev->t->ops->ring_create(q->dev->t, cls, HAL_RING, &q->ring, err);
}

void hal_queue_close(struct hal_queue *q)
{
	struct hal_notice *next;

	if (!q)
		return;
	if (q->ring)
		q->dev->t->ops->ring_destroy(q->ring);
	for (struct hal_notice *n = q->notices; n; n = next) {
		next = n->next;
		free(n);
	}
	hal_across_end(q);
	hal_mem_free(q->args);
	hal_mem_free(q->semaphore);
	pthread_mutex_destroy(&q->lock);
	pthread_cond_destroy(&q->moved);
	hal_failures_free(&q->failures);
	free(q);
}
