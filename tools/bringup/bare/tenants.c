/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two contexts with work queues, by hand: what one has, the other can't reach, and what work that
 * fails costs and tells (DEVICE.md#addresses, #queues, #statuses-and-faults).
 */
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "hal/hw/regs.h"
#include "tools/bringup/bare/admin.h"
#include "tools/bringup/program.h"

#define VA (1ull << 40)		/* of a context's own page of the host */
#define READ_ONLY_VA (2ull << 40)	/* the same page, not to be written */
#define HBM_VA (3ull << 40)	/* a page of HBM */
#define RING 4u
#define VECTOR 3u

enum { CODE = 0, TABLE = 256, DATA = 512, MORE = 1024 };	/* in a context's page */

struct work {
	uint8_t *sq, *cq;	/* RING entries of each */
	uint64_t sq_iova;
	uint32_t tail;
	uint16_t id;
};

struct tenant {
	uint8_t *page;
	uint64_t iova;
	uint16_t ctx;
	uint32_t spin, keep;	/* programs: for ever; one that ends */
	struct work low, mid, high;	/* queues of priority 0, 1 and 3 */
};

struct scene {
	struct admin a;
	struct tenant t[2];
	int fd;			/* counts interrupts of VECTOR */
};

/* One request that must be granted. */
static enum bringup_result grant(struct bringup *b, struct scene *s, struct hw_sqe sqe,
				 const void *args, size_t bytes, uint64_t *value)
{
	if (bytes)
		memcpy(s->a.args, args, bytes);
	return bringup_admin_grant(b, &s->a, sqe, value);
}

static enum bringup_result unmap(struct bringup *b, struct scene *s, unsigned ctx, uint64_t va,
				 unsigned want)
{
	struct hw_map m = { .va = va };
	struct hw_cqe cqe;

	memcpy(s->a.args, &m, sizeof(m));
	STEP_TRY(bringup_admin_request(b, &s->a, (struct hw_sqe){
				       .op = HW_UNMAP, .id = (uint16_t)ctx,
				       .u.admin.addr = s->a.args_iova }, &cqe));
	return cqe.status == want ? BRINGUP_PASS :
		bringup_fail(b, "UNMAP has status %s instead of %s", hw_status_name(cqe.status),
			     hw_status_name(want));
}

static enum bringup_result reset(struct bringup *b, struct scene *s, const struct work *w)
{
	return grant(b, s, (struct hw_sqe){ .op = HW_QUEUE_RESET, .id = w->id }, NULL, 0, NULL);
}

static enum bringup_result make_queue(struct bringup *b, struct scene *s, struct work *w,
				      unsigned ctx, unsigned priority, uint64_t limit_ns)
{
	struct hw_queue q = { .n_entries = RING, .ctx = (uint16_t)ctx, .cls = HW_CLASS_COMPUTE,
			      .priority = (uint8_t)priority, .vector = VECTOR,
			      .sq_iova = w->sq_iova, .cq_iova = w->sq_iova + 512,
			      .limit_ns = limit_ns };
	uint64_t id;

	memset(w->cq, 0, RING * sizeof(struct hw_cqe));
	STEP_TRY(grant(b, s, (struct hw_sqe){ .op = HW_QUEUE_CREATE }, &q, sizeof(q), &id));
	w->id = (uint16_t)id;
	return BRINGUP_PASS;
}

static enum bringup_result make_program(struct bringup *b, struct scene *s, struct tenant *t,
					const struct isa_scalar *code, size_t bytes, uint32_t *id)
{
	struct {
		struct hw_program p;
		struct hw_program_binding binding;
	} in = {
		{ .code_va = VA + CODE, .code_bytes = bytes, .n_bindings = 1, .ctx = t->ctx,
		  .bindings_iova = s->a.args_iova + sizeof(struct hw_program) },
		{ .bytes = 64, .access = HW_BIND_READ | HW_BIND_WRITE },
	};
	uint64_t value;

	memcpy(t->page + CODE, code, bytes);
	STEP_TRY(grant(b, s, (struct hw_sqe){ .op = HW_PROGRAM_CREATE }, &in, sizeof(in), &value));
	*id = (uint32_t)value;
	return BRINGUP_PASS;
}

/* In the page behind the tenant's own, which its map does not have. */
static struct work rings_at(const struct tenant *t, unsigned at)
{
	uint8_t *sq = t->page + HW_PAGE + at;

	return (struct work){ .sq = sq, .cq = sq + 512, .sq_iova = t->iova + HW_PAGE + at };
}

static enum bringup_result make_tenant(struct bringup *b, struct scene *s, struct tenant *t)
{
	static const struct isa_scalar spin[] = { { INSN(JMP), .imm = 0 }, { INSN(HALT) } };
	static const struct isa_scalar keep[] = {
		{ INSN(LI), .rd = 1, .imm = 77 },
		{ INSN(ST), .rb = 1, .elem = ELEM_S64 }, { INSN(HALT) },
	};
	unsigned n = (unsigned)(t - s->t);
	struct hw_map m = { .va = VA, .bytes = HW_PAGE, .flags = HW_MAP_HOST | HW_MAP_WRITE };
	uint64_t value;
	void *memory;

	TRY(b, hal_bare_pages(b->bare, 2 * HW_PAGE, &memory, &t->iova, &b->err));
	t->page = memory;
	t->low = rings_at(t, 0);
	t->mid = rings_at(t, 1024);
	t->high = rings_at(t, 2048);
	STEP_TRY(grant(b, s, (struct hw_sqe){ .op = HW_CTX_CREATE }, NULL, 0, &value));
	t->ctx = (uint16_t)value;
	m.pa = t->iova;
	STEP_TRY(grant(b, s, (struct hw_sqe){ .op = HW_MAP, .id = t->ctx }, &m, sizeof(m), NULL));
	m.va = READ_ONLY_VA;
	m.flags = HW_MAP_HOST;
	STEP_TRY(grant(b, s, (struct hw_sqe){ .op = HW_MAP, .id = t->ctx }, &m, sizeof(m), NULL));
	/* The first one's is the first page, the other's the second, elsewhere in its map. */
	m = (struct hw_map){ .va = HBM_VA + n * HW_PAGE, .pa = n * HW_PAGE, .bytes = HW_PAGE,
			     .flags = HW_MAP_WRITE };
	STEP_TRY(grant(b, s, (struct hw_sqe){ .op = HW_MAP, .id = t->ctx }, &m, sizeof(m), NULL));
	STEP_TRY(make_queue(b, s, &t->low, t->ctx, 0, 0));
	STEP_TRY(make_queue(b, s, &t->mid, t->ctx, 1, 0));
	/* The first one's is for what never ends; what the other's runs may take its time. */
	STEP_TRY(make_queue(b, s, &t->high, t->ctx, 3, n ? 0 : 2000000));
	STEP_TRY(make_program(b, s, t, spin, sizeof(spin), &t->spin));
	return make_program(b, s, t, keep, sizeof(keep), &t->keep);
}

/* ---- work ---- */

static void submit(struct bringup *b, struct work *w, struct hw_sqe sqe)
{
	sqe.tag = 0x100u * w->id + w->tail;
	memcpy(w->sq + w->tail % RING * sizeof(sqe), &sqe, sizeof(sqe));
	w->tail++;
	hal_bare_write(b->bare, hw_doorbell(w->id), w->tail);
}

/* The completion of submission n. */
static enum bringup_result ended(struct bringup *b, const struct work *w, uint32_t n,
				 const char *what, unsigned want, struct hw_cqe *out)
{
	if (!bringup_take((const struct hw_cqe *)(const void *)w->cq, n, RING, out))
		return bringup_fail(b, "%s has no completion after 20 s", what);
	if (out->status != want || out->tag != 0x100u * w->id + n || out->sq_head != n + 1)
		return bringup_fail(b, "%s ends with %s instead of %s, tag 0x%x (0x%x), head %u "
				    "(%u)", what, hw_status_name(out->status), hw_status_name(want),
				    out->tag, 0x100u * w->id + n, out->sq_head, n + 1);
	return BRINGUP_PASS;
}

static enum bringup_result do_one(struct bringup *b, struct work *w, const char *what,
				  struct hw_sqe sqe, unsigned want, struct hw_cqe *out)
{
	submit(b, w, sqe);
	return ended(b, w, w->tail - 1, what, want, out);
}

static struct hw_sqe copy(uint64_t dst, uint64_t src, uint64_t bytes)
{
	return (struct hw_sqe){ .op = HW_COPY, .u.copy = { src, dst, bytes } };
}

/* Of a program on 64 bytes at `va`, or fewer. */
static struct hw_sqe run(struct tenant *t, uint32_t program, uint64_t va, uint64_t bytes)
{
	struct hw_binding binding = { va, bytes };

	memcpy(t->page + TABLE, &binding, sizeof(binding));
	return (struct hw_sqe){ .op = HW_EXECUTE, .u.execute = { VA + TABLE, program, 1, 0 } };
}

static uint64_t word(const struct tenant *t, unsigned at)
{
	uint64_t value;

	memcpy(&value, t->page + at, sizeof(value));
	return value;
}

static void set_word(struct tenant *t, unsigned at, uint64_t value)
{
	memcpy(t->page + at, &value, sizeof(value));
}

/* ---- what is tried ---- */

/* Work that fails stops its queue, raises its vector though nobody asked, and leaves a record;
 * records come the newest first. QUEUE_RESET drops what was behind it. */
static enum bringup_result fails(struct bringup *b, struct scene *s, struct tenant *t,
				 const char *what, struct hw_sqe sqe, unsigned want)
{
	struct work *w = &t->low;
	struct hw_fault f[2];
	struct hw_cqe cqe, behind;
	struct pollfd p = { .fd = s->fd, .events = POLLIN };
	uint64_t n, bytes;

	while (read(s->fd, &n, sizeof(n)) == sizeof(n))
		;
	STEP_TRY(do_one(b, w, what, sqe, want, &cqe));
	if (poll(&p, 1, 20000) != 1)
		return bringup_fail(b, "%s raises no interrupt", what);
	submit(b, w, (struct hw_sqe){ .op = HW_NOP });
	STEP_TRY(grant(b, s, (struct hw_sqe){ .op = HW_LOG_PAGE, .id = HW_LOG_FAULT,
					      .u.admin.bytes = sizeof(f) }, NULL, 0, &bytes));
	memcpy(f, s->a.args, sizeof(f));
	if (bytes < sizeof(*f) || f->number != cqe.detail || f->status != want ||
	    f->queue != w->id || f->ctx != t->ctx || f->tag != cqe.tag)
		return bringup_fail(b, "the newest fault is number %llu (%llu) of queue %u (%u), "
				    "context %u (%u), status %s (%s)",
				    (unsigned long long)f->number, (unsigned long long)cqe.detail,
				    f->queue, w->id, f->ctx, t->ctx, hw_status_name(f->status),
				    hw_status_name(want));
	if (bytes == sizeof(f) && f[1].number != f->number - 1)
		return bringup_fail(b, "behind fault %llu comes %llu",
				    (unsigned long long)f->number, (unsigned long long)f[1].number);
	STEP_TRY(reset(b, s, w));
	STEP_TRY(ended(b, w, w->tail - 1, "what was behind a fault", HW_ST_DROPPED, &behind));
	return do_one(b, w, "work after a fault", (struct hw_sqe){ .op = HW_NOP }, HW_ST_OK, &cqe);
}

static enum bringup_result memory(struct bringup *b, struct scene *s)
{
	struct tenant *t = &s->t[0], *other = &s->t[1];
	struct hw_cqe cqe;

	/* Each has a page of HBM of its own, and its own page of the host at the same address. */
	for (unsigned i = 0; i < 2; i++) {
		set_word(&s->t[i], DATA, 0x1111 * (i + 1));
		STEP_TRY(do_one(b, &s->t[i].low, "a copy to HBM",
				copy(HBM_VA + i * HW_PAGE, VA + DATA, 8), HW_ST_OK, &cqe));
	}
	for (unsigned i = 0; i < 2; i++) {
		STEP_TRY(do_one(b, &s->t[i].low, "a copy from HBM",
				copy(VA + MORE, HBM_VA + i * HW_PAGE, 8), HW_ST_OK, &cqe));
		if (word(&s->t[i], MORE) != 0x1111 * (i + 1))
			return bringup_fail(b, "context %u reads 0x%llx where it wrote 0x%x",
					    s->t[i].ctx, (unsigned long long)
					    word(&s->t[i], MORE), 0x1111 * (i + 1));
	}
	STEP_TRY(fails(b, s, other, "a copy from where another context has memory",
		       copy(VA + MORE, HBM_VA, 8), HW_ST_MAP));
	STEP_TRY(fails(b, s, t, "a copy to where another context has memory",
		       copy(HBM_VA + HW_PAGE, VA + DATA, 8), HW_ST_MAP));
	STEP_TRY(fails(b, s, t, "a copy past the end of a mapping",
		       copy(HBM_VA + HW_PAGE - 8, VA + DATA, 16), HW_ST_MAP));
	STEP_TRY(do_one(b, &t->low, "a copy from memory that is read only",
			copy(VA + MORE, READ_ONLY_VA + DATA, 8), HW_ST_OK, &cqe));
	STEP_TRY(fails(b, s, t, "a copy to memory that is read only",
		       copy(READ_ONLY_VA + DATA, VA + MORE + 8, 8), HW_ST_MAP));
	if (word(t, DATA) != 0x1111)
		return bringup_fail(b, "memory that is read only was written");
	return BRINGUP_PASS;
}

static enum bringup_result own_program(struct bringup *b, struct tenant *t)
{
	struct hw_cqe cqe;

	set_word(t, DATA, 0);
	STEP_TRY(do_one(b, &t->low, "a program", run(t, t->keep, VA + DATA, 64), HW_ST_OK, &cqe));
	return word(t, DATA) == 77 ? BRINGUP_PASS :
		bringup_fail(b, "a program stores %llu instead of 77",
			     (unsigned long long)word(t, DATA));
}

static enum bringup_result programs(struct bringup *b, struct scene *s)
{
	struct tenant *t = &s->t[0], *other = &s->t[1];

	set_word(other, DATA, 0);
	STEP_TRY(own_program(b, t));
	STEP_TRY(fails(b, s, other, "another context's program",
		       run(other, t->keep, VA + DATA, 64), HW_ST_BAD_DESCRIPTOR));
	if (word(other, DATA))
		return bringup_fail(b, "another context's program was run");
	STEP_TRY(fails(b, s, t, "a binding that is too small", run(t, t->keep, VA + DATA, 56),
		       HW_ST_BINDING));
	STEP_TRY(fails(b, s, t, "a binding that is not at 64", run(t, t->keep, VA + DATA + 8, 64),
		       HW_ST_ALIGNMENT));
	STEP_TRY(fails(b, s, t, "a binding that may not be written",
		       run(t, t->keep, READ_ONLY_VA + DATA, 64), HW_ST_MAP));
	STEP_TRY(fails(b, s, t, "an admin request on a work queue",
		       (struct hw_sqe){ .op = HW_CTX_DESTROY, .id = other->ctx },
		       HW_ST_BAD_DESCRIPTOR));
	return fails(b, s, t, "a reserved field", (struct hw_sqe){ .op = HW_NOP, .id = 1 },
		     HW_ST_BAD_DESCRIPTOR);
}

static enum bringup_result ras(struct bringup *b, struct scene *s, struct hw_ras *out)
{
	STEP_TRY(grant(b, s, (struct hw_sqe){ .op = HW_LOG_PAGE, .id = HW_LOG_RAS,
					      .u.admin.bytes = sizeof(*out) }, NULL, 0, NULL));
	memcpy(out, s->a.args, sizeof(*out));
	return BRINGUP_PASS;
}

/* The queue is soon `want`, with so many descriptors announced and begun. */
static enum bringup_result is_so(struct bringup *b, struct scene *s, const struct work *w,
				 unsigned want, uint32_t tail, uint32_t head)
{
	struct hw_queue_state states[HW_MAX_QUEUES], *q = states;
	int64_t deadline = SOON;
	uint64_t bytes;

	do {
		STEP_TRY(grant(b, s, (struct hw_sqe){ .op = HW_LOG_PAGE, .id = HW_LOG_QUEUES,
						      .u.admin.bytes = sizeof(states) }, NULL, 0,
			       &bytes));
		if (bytes > sizeof(states))
			return bringup_fail(b, "page QUEUES has %llu bytes instead of at most %zu",
					    (unsigned long long)bytes, sizeof(states));
		memcpy(states, s->a.args, sizeof(states));
		for (q = states; q < states + bytes / sizeof(*q) && q->queue != w->id; q++)
			;
		if (q == states + bytes / sizeof(*q))
			return bringup_fail(b, "page QUEUES does not have queue %u", w->id);
	} while (q->is != want && clock_ns() < deadline);
	if (q->is != want)
		return bringup_fail(b, "queue %u is %u instead of %u", w->id, q->is, want);
	return q->tail == tail && q->head == head ? BRINGUP_PASS :
		bringup_fail(b, "page QUEUES: of queue %u %u are announced and %u begun instead of "
			     "%u and %u", w->id, q->tail, q->head, tail, head);
}

/* What runs keeps its memory; what has waited longest does not go before a higher priority. */
static enum bringup_result turns(struct bringup *b, struct scene *s)
{
	struct tenant *t = &s->t[0];
	struct hw_ras before, after;
	struct hw_cqe cqe;
	uint32_t spinning;

	STEP_TRY(ras(b, s, &before));
	submit(b, &t->low, run(t, t->spin, HBM_VA, 64));
	spinning = t->low.tail - 1;
	STEP_TRY(is_so(b, s, &t->low, HW_QUEUE_RUNNING, spinning + 1, spinning + 1));
	STEP_TRY(unmap(b, s, t->ctx, HBM_VA, HW_ST_BUSY));
	submit(b, &t->low, (struct hw_sqe){ .op = HW_TIMESTAMP, .u.copy.dst = VA + DATA });
	STEP_TRY(is_so(b, s, &t->low, HW_QUEUE_RUNNING, spinning + 2, spinning + 1));
	/* What was announced is not taken back. */
	if (!bringup_ring_badly(b, t->low.id, spinning + 1))
		return bringup_fail(b, "a doorbell that goes back is not counted once by BADACC");
	STEP_TRY(is_so(b, s, &t->low, HW_QUEUE_RUNNING, spinning + 2, spinning + 1));
	STEP_TRY(reset(b, s, &t->low));
	STEP_TRY(ended(b, &t->low, spinning, "a program that is stopped", HW_ST_RESET, &cqe));
	STEP_TRY(ended(b, &t->low, spinning + 1, "what waits behind it", HW_ST_DROPPED, &cqe));
	/* The queue of the higher priority gives all that it runs 2 ms. */
	STEP_TRY(do_one(b, &t->high, "a program past its queue's limit",
			run(t, t->spin, HBM_VA, 64), HW_ST_WATCHDOG, &cqe));
	STEP_TRY(reset(b, s, &t->high));
	STEP_TRY(unmap(b, s, t->ctx, HBM_VA, HW_ST_OK));
	STEP_TRY(ras(b, s, &after));
	if (after.queue_resets != before.queue_resets + 2 ||
	    after.watchdog_fires != before.watchdog_fires + 1)
		return bringup_fail(b, "of 2 resets of queues and 1 watchdog page RAS counts %llu "
				    "and %llu", (unsigned long long)
				    (after.queue_resets - before.queue_resets), (unsigned long long)
				    (after.watchdog_fires - before.watchdog_fires));
	return BRINGUP_PASS;
}

/* Of two that wait for the engine, in one context, the higher priority goes first. */
static enum bringup_result priorities(struct bringup *b, struct scene *s)
{
	struct tenant *t = &s->t[1];
	struct hw_sqe stamp = { .op = HW_TIMESTAMP, .u.copy.dst = VA + DATA };
	struct hw_cqe cqe;

	submit(b, &t->mid, run(t, t->spin, VA + MORE, 64));
	STEP_TRY(is_so(b, s, &t->mid, HW_QUEUE_RUNNING, t->mid.tail, t->mid.tail));
	submit(b, &t->low, stamp);
	stamp.u.copy.dst += 8;
	submit(b, &t->high, stamp);
	STEP_TRY(reset(b, s, &t->mid));
	STEP_TRY(ended(b, &t->mid, t->mid.tail - 1, "a program that is stopped", HW_ST_RESET,
		       &cqe));
	STEP_TRY(ended(b, &t->low, t->low.tail - 1, "a time stamp", HW_ST_OK, &cqe));
	STEP_TRY(ended(b, &t->high, t->high.tail - 1, "a time stamp", HW_ST_OK, &cqe));
	if (!word(t, DATA) || !word(t, DATA + 8))
		return bringup_fail(b, "a time stamp is 0");
	return word(t, DATA + 8) <= word(t, DATA) ? BRINGUP_PASS :
		bringup_fail(b, "priority 0 went before priority 3, %llu ns", (unsigned long long)
			     (word(t, DATA + 8) - word(t, DATA)));
}

/* Reads a log page to `out`. */
static enum bringup_result read_log(struct bringup *b, struct scene *s, unsigned id, void *out,
				    size_t bytes, uint64_t *got)
{
	STEP_TRY(grant(b, s, (struct hw_sqe){ .op = HW_LOG_PAGE, .id = (uint16_t)id,
					      .u.admin.bytes = bytes }, NULL, 0, got));
	memcpy(out, s->a.args, bytes);
	return BRINGUP_PASS;
}

/* Whether page 0 of HBM, the first one's, was poisoned; false, too, if the device can't. */
static enum bringup_result poison(struct bringup *b, struct scene *s, bool *is_poisoned)
{
	struct hw_sqe sqe = { .op = HW_INJECT, .id = HW_INJECT_POISON };
	struct hw_cqe cqe;

	STEP_TRY(bringup_admin_request(b, &s->a, sqe, &cqe));
	*is_poisoned = cqe.status == HW_ST_OK;
	return *is_poisoned || cqe.status == HW_ST_NOT_BUILT ? BRINGUP_PASS :
		bringup_fail(b, "poisoning a page has status %s", hw_status_name(cqe.status));
}

/* What disabling and a function reset keep and end (DEVICE.md#resets). */
static enum bringup_result after_resets(struct bringup *b, struct scene *s)
{
	struct tenant *t = &s->t[0];
	struct hw_telemetry before, now;
	struct hw_fault f[2];
	struct hw_ras ras_before, ras_now;
	bool is_poisoned;
	uint64_t n_faults;
	struct hw_cqe cqe;

	STEP_TRY(poison(b, s, &is_poisoned));
	STEP_TRY(read_log(b, s, HW_LOG_TELEMETRY, &before, sizeof(before), NULL));
	STEP_TRY(ras(b, s, &ras_before));
	STEP_TRY(bringup_admin_disable(b));
	STEP_TRY(bringup_admin_enable(b, &s->a, HW_NO_VECTOR));
	STEP_TRY(read_log(b, s, HW_LOG_TELEMETRY, &now, sizeof(now), NULL));
	STEP_TRY(read_log(b, s, HW_LOG_FAULT, f, sizeof(f), &n_faults));
	if (!now.n_execute || now.n_execute != before.n_execute || now.n_fault != before.n_fault ||
	    !n_faults)
		return bringup_fail(b, "telemetry or faults are lost when the device is disabled");
	/* Its map is gone; its memory is the process's until the device is closed. */
	STEP_TRY(make_tenant(b, s, t));
	if (is_poisoned)
		STEP_TRY(fails(b, s, t, "a copy from a page that was poisoned before the device "
			       "was disabled", copy(VA + MORE, HBM_VA, 8), HW_ST_POISON));
	STEP_TRY(bringup_admin_start(b, &s->a, HW_NO_VECTOR));
	STEP_TRY(read_log(b, s, HW_LOG_TELEMETRY, &now, sizeof(now), NULL));
	STEP_TRY(read_log(b, s, HW_LOG_FAULT, f, sizeof(f), &n_faults));
	STEP_TRY(ras(b, s, &ras_now));
	if (now.n_execute || now.n_copy || now.n_fault || now.busy_compute_ns || n_faults)
		return bringup_fail(b, "after a function reset there are %llu programs, %llu "
				    "copies, %llu faults, %llu bytes of fault records",
				    (unsigned long long)now.n_execute,
				    (unsigned long long)now.n_copy,
				    (unsigned long long)now.n_fault, (unsigned long long)n_faults);
	if (ras_now.queue_resets < ras_before.queue_resets ||
	    ras_now.function_resets <= ras_before.function_resets)
		return bringup_fail(b, "page RAS counts %llu resets of queues (%llu), %llu of the "
				    "function (%llu)", (unsigned long long)ras_now.queue_resets,
				    (unsigned long long)ras_before.queue_resets,
				    (unsigned long long)ras_now.function_resets,
				    (unsigned long long)ras_before.function_resets);
	STEP_TRY(make_tenant(b, s, t));
	return do_one(b, &t->low, "a copy from HBM after a function reset",
		      copy(VA + MORE, HBM_VA, 8), HW_ST_OK, &cqe);
}

static enum bringup_result all(struct bringup *b, struct scene *s)
{
	for (unsigned i = 0; i < COUNT(s->t); i++)
		STEP_TRY(make_tenant(b, s, &s->t[i]));
	STEP_TRY(memory(b, s));
	STEP_TRY(programs(b, s));
	STEP_TRY(turns(b, s));
	STEP_TRY(priorities(b, s));
	/* A context that ends takes nothing of the other's along. */
	STEP_TRY(grant(b, s, (struct hw_sqe){ .op = HW_CTX_DESTROY, .id = s->t[0].ctx }, NULL, 0,
		       NULL));
	STEP_TRY(unmap(b, s, s->t[0].ctx, VA, HW_ST_NO_SUCH_ID));
	STEP_TRY(own_program(b, &s->t[1]));
	return after_resets(b, s);
}

enum bringup_result step_contexts(struct bringup *b)
{
	struct scene s = { .fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK) };
	enum bringup_result r = BRINGUP_PASS;

	if (s.fd < 0)
		return bringup_fail(b, "no eventfd for vector %u", VECTOR);
	r = bringup_admin_start(b, &s.a, HW_NO_VECTOR);
	if (r == BRINGUP_PASS && hal_bare_irq(b->bare, VECTOR, s.fd, &b->err))
		r = bringup_fail(b, "%s", b->err.msg);
	if (r == BRINGUP_PASS) {
		hal_bare_write(b->bare, HW_MSIX_TABLE + 16 * VECTOR + 12, 0);
		r = all(b, &s);
	}
	if (b->bare)
		hal_bare_irq(b->bare, VECTOR, -1, NULL);
	close(s.fd);
	return r == BRINGUP_PASS ? bringup_pass(b, "memory, programs, faults, limits, priorities") :
				   r;
}
