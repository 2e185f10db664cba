/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What queue 0 and the doorbells refuse (DEVICE.md#requests): each request that makes no sense has
 * the status that says why, and changes nothing.
 */
#include <string.h>

#include "hal/hw/regs.h"
#include "tools/bringup/bare/admin.h"
#include "tools/bringup/program.h"

#define VA (1ull << 40)		/* where the context has a page of the host's, for code */
#define NOWHERE (1ull << 52)	/* an iova that leads nowhere */

struct about {
	struct admin a;
	uint64_t ring_iova;	/* a page for submissions, one for completions */
	uint16_t ctx;
};

static struct hw_queue good_queue(const struct about *x)
{
	return (struct hw_queue){ .sq_iova = x->ring_iova, .cq_iova = x->ring_iova + HW_PAGE,
				  .n_entries = 16, .ctx = x->ctx, .cls = HW_CLASS_COMPUTE,
				  .vector = HW_NO_VECTOR };
}

static struct hw_program good_program(const struct about *x)
{
	return (struct hw_program){ .code_va = VA, .code_bytes = sizeof(struct isa_scalar),
				    .ctx = x->ctx };
}

/* One request that must have `want`. */
static enum bringup_result expect(struct bringup *b, struct about *x, const char *what,
				  struct hw_sqe sqe, unsigned want)
{
	struct hw_cqe cqe;

	STEP_TRY(bringup_admin_request(b, &x->a, sqe, &cqe));
	return cqe.status == want ? BRINGUP_PASS :
		bringup_fail(b, "request 0x%02x with %s has status %s instead of %s", sqe.op, what,
			     hw_status_name(cqe.status), hw_status_name(want));
}

/* About x->a.args, of context id. */
static struct hw_sqe request(const struct about *x, uint8_t op, unsigned id)
{
	return (struct hw_sqe){ .op = op, .id = (uint16_t)id, .u.admin.addr = x->a.args_iova };
}

static enum bringup_result bad_fields(struct bringup *b, struct about *x)
{
	static const struct {
		const char *what;
		struct hw_sqe sqe;
		unsigned want;
	} rows[] = {
		{ "an unknown opcode", { .op = 0x7f }, HW_ST_BAD_OPCODE },
		{ "what is for work queues", { .op = HW_EXECUTE }, HW_ST_BAD_OPCODE },
		{ "what is for later", { .op = HW_CTX_RESET }, HW_ST_NOT_BUILT },
		{ "what is for later", { .op = HW_FIRMWARE }, HW_ST_NOT_BUILT },
		{ "flag WAIT", { .op = HW_NOP, .flags = HW_WAIT }, HW_ST_BAD_FIELD },
		{ "flag INLINE", { .op = HW_NOP, .flags = HW_INLINE }, HW_ST_BAD_FIELD },
		{ "a va to wait at", { .op = HW_NOP, .wait_va = 8 }, HW_ST_BAD_FIELD },
		{ "a value to wait for", { .op = HW_NOP, .wait_value = 1 }, HW_ST_BAD_FIELD },
		{ "a va to signal", { .op = HW_NOP, .signal_va = 8 }, HW_ST_BAD_FIELD },
		{ "a value to signal", { .op = HW_NOP, .signal_value = 1 }, HW_ST_BAD_FIELD },
		{ "an address that is nowhere",
		  { .op = HW_IDENTIFY, .u.admin.addr = NOWHERE }, HW_ST_BAD_ADDRESS },
		{ "context 0", { .op = HW_CTX_DESTROY }, HW_ST_NO_SUCH_ID },
		{ "a context that is not there", { .op = HW_CTX_DESTROY, .id = 63 },
		  HW_ST_NO_SUCH_ID },
		{ "a context past all", { .op = HW_CTX_DESTROY, .id = 0xffff }, HW_ST_NO_SUCH_ID },
		{ "queue 0", { .op = HW_QUEUE_DESTROY }, HW_ST_NO_SUCH_ID },
		{ "a queue that is not there", { .op = HW_QUEUE_RESET, .id = 63 },
		  HW_ST_NO_SUCH_ID },
		{ "a program that is not there", { .op = HW_PROGRAM_DESTROY, .u.admin.value = 9 },
		  HW_ST_NO_SUCH_ID },
		{ "program 0", { .op = HW_PROGRAM_DESTROY }, HW_ST_NO_SUCH_ID },
		{ "page 0", { .op = HW_LOG_PAGE, .u.admin.bytes = 64 }, HW_ST_BAD_FIELD },
		{ "a page that is not there", { .op = HW_LOG_PAGE, .id = 99,
		  .u.admin.bytes = 64 }, HW_ST_BAD_FIELD },
		{ "feature 0", { .op = HW_SET_FEATURE, .u.admin.value = 1 }, HW_ST_BAD_FIELD },
		{ "feature 99", { .op = HW_GET_FEATURE, .id = 99 }, HW_ST_BAD_FIELD },
	};

	for (unsigned i = 0; i < COUNT(rows); i++)
		STEP_TRY(expect(b, x, rows[i].what, rows[i].sqe, rows[i].want));
	return BRINGUP_PASS;
}

/* A request about args that must have `want`. */
static enum bringup_result expect_of(struct bringup *b, struct about *x, const char *what,
				     const void *args, size_t bytes, struct hw_sqe sqe,
				     unsigned want)
{
	memcpy(x->a.args, args, bytes);
	return expect(b, x, what, sqe, want);
}

/* The request `sqe` about `bad`, which is `good` but for one field. */
#define BAD(what, change, want) \
	do { \
		bad = good; \
		bad.change; \
		STEP_TRY(expect_of(b, x, what, &bad, sizeof(bad), sqe, want)); \
	} while (0)

static enum bringup_result bad_maps(struct bringup *b, struct about *x, uint64_t hbm)
{
	const struct hw_map good = { .va = VA + HW_PAGE, .pa = HW_PAGE, .bytes = HW_PAGE };
	const struct hw_sqe sqe = request(x, HW_MAP, x->ctx);
	struct hw_map bad;

	BAD("a va between pages", va += 64, HW_ST_BAD_FIELD);
	BAD("a place between pages", pa += 64, HW_ST_BAD_FIELD);
	BAD("half a page", bytes = HW_PAGE / 2, HW_ST_BAD_FIELD);
	BAD("no pages", bytes = 0, HW_ST_BAD_FIELD);
	BAD("an end past all vas", va = 0ull - HW_PAGE, HW_ST_BAD_FIELD);
	BAD("the page behind HBM", pa = hbm, HW_ST_BAD_FIELD);
	BAD("an unknown flag", flags = 1u << 7, HW_ST_BAD_FIELD);
	BAD("a reserved field", zero = 1, HW_ST_BAD_FIELD);
	BAD("what is mapped", va = VA, HW_ST_OVERLAP);
	bad = good;
	bad.va = VA - HW_PAGE;
	bad.bytes = 2 * HW_PAGE;
	STEP_TRY(expect_of(b, x, "what ends in what is mapped", &bad, sizeof(bad), sqe,
			   HW_ST_OVERLAP));
	STEP_TRY(expect_of(b, x, "no such context", &good, sizeof(good), request(x, HW_MAP, 63),
			   HW_ST_NO_SUCH_ID));
	/* None of them left anything. */
	STEP_TRY(expect(b, x, "what was never mapped", request(x, HW_UNMAP, x->ctx),
			HW_ST_NO_SUCH_ID));
	STEP_TRY(expect(b, x, "a page of HBM", sqe, HW_ST_OK));
	STEP_TRY(expect(b, x, "what is mapped", request(x, HW_UNMAP, x->ctx), HW_ST_OK));
	return expect(b, x, "what was unmapped", request(x, HW_UNMAP, x->ctx), HW_ST_NO_SUCH_ID);
}

static enum bringup_result bad_queues(struct bringup *b, struct about *x)
{
	const struct hw_sqe sqe = request(x, HW_QUEUE_CREATE, 0);
	struct hw_queue good = good_queue(x), bad;

	BAD("a ring of 1", n_entries = 1, HW_ST_BAD_FIELD);
	BAD("a ring of 3", n_entries = 3, HW_ST_BAD_FIELD);
	BAD("a ring of 12", n_entries = 12, HW_ST_BAD_FIELD);
	BAD("a ring of 2^17", n_entries = 1u << 17, HW_ST_BAD_FIELD);
	BAD("submissions not at 64", sq_iova += 8, HW_ST_BAD_FIELD);
	BAD("completions not at 64", cq_iova += 32, HW_ST_BAD_FIELD);
	BAD("engine 0", cls = 0, HW_ST_BAD_FIELD);
	BAD("engine 3", cls = 3, HW_ST_BAD_FIELD);
	BAD("priority 4", priority = 4, HW_ST_BAD_FIELD);
	BAD("vector 32", vector = HW_MAX_VECTORS, HW_ST_BAD_FIELD);
	BAD("an unknown flag", flags = 1u << 5, HW_ST_BAD_FIELD);
	BAD("submissions nowhere", sq_iova = NOWHERE, HW_ST_BAD_ADDRESS);
	BAD("completions nowhere", cq_iova = NOWHERE, HW_ST_BAD_ADDRESS);
	BAD("context 0", ctx = 0, HW_ST_NO_SUCH_ID);
	BAD("a context that is not there", ctx = 63, HW_ST_NO_SUCH_ID);
	return BRINGUP_PASS;
}

/* Of a program whose first instruction is good: the second one is told to be at fault. */
static enum bringup_result bad_code(struct bringup *b, struct about *x, void *code,
				    struct isa_scalar second, const char *what, unsigned want)
{
	struct isa_scalar insns[] = { { INSN(LI), .rd = 1 }, second };
	struct hw_program p = good_program(x);
	struct hw_cqe cqe;

	memcpy(code, insns, sizeof(insns));
	p.code_bytes = sizeof(insns);
	memcpy(x->a.args, &p, sizeof(p));
	STEP_TRY(bringup_admin_request(b, &x->a, request(x, HW_PROGRAM_CREATE, 0), &cqe));
	if (cqe.status != want || cqe.detail != sizeof(*insns))
		return bringup_fail(b, "a program with %s at 24 has status %s at %llu instead of "
				    "%s", what, hw_status_name(cqe.status),
				    (unsigned long long)cqe.detail, hw_status_name(want));
	return BRINGUP_PASS;
}

static enum bringup_result bad_programs(struct bringup *b, struct about *x, void *code)
{
	const struct hw_sqe sqe = request(x, HW_PROGRAM_CREATE, 0);
	struct hw_program good = good_program(x), bad;

	BAD("no code", code_bytes = 0, HW_ST_BAD_FIELD);
	BAD("code of 23 bytes", code_bytes = 23, HW_ST_BAD_FIELD);
	BAD("code not at 8", code_va += 4, HW_ST_BAD_FIELD);
	BAD("a reserved field", zero = 1, HW_ST_BAD_FIELD);
	BAD("4097 bindings", n_bindings = ISA_MAX_BINDINGS + 1, HW_ST_BAD_FIELD);
	BAD("code that is not mapped", code_va += 1ull << 30, HW_ST_BAD_ADDRESS);
	BAD("a context that is not there", ctx = 63, HW_ST_NO_SUCH_ID);
	STEP_TRY(bad_code(b, x, code, (struct isa_scalar){ INSN(JMP), .imm = 8 },
			  "a branch into itself", HW_ST_BAD_PROGRAM));
	STEP_TRY(bad_code(b, x, code, (struct isa_scalar){ INSN(LI), .rd = ISA_N_REG },
			  "register 64", HW_ST_BAD_PROGRAM));
	STEP_TRY(bad_code(b, x, code, (struct isa_scalar){
			  .insn = { .op = 0xff, .bytes = sizeof(struct isa_scalar) } },
			  "an opcode that is not there", HW_ST_BAD_PROGRAM));
	return bad_code(b, x, code, (struct isa_scalar){ INSN(CHOL) }, "what is for later",
			HW_ST_NOT_BUILT);
}

/* All contexts that IDENTIFY promises, in order, and no more; what was refused took none. */
static enum bringup_result all_contexts(struct bringup *b, struct about *x)
{
	struct hw_identify id;
	struct hw_cqe cqe;

	STEP_TRY(bringup_admin_ask(b, &x->a, HW_IDENTIFY, 0));
	memcpy(&id, x->a.args, sizeof(id));
	for (unsigned i = 2; i <= id.max_contexts; i++) {
		STEP_TRY(bringup_admin_request(b, &x->a, request(x, HW_CTX_CREATE, 0), &cqe));
		if (cqe.status || cqe.value != i)
			return bringup_fail(b, "context %u of %u: status %s, number %llu", i,
					    id.max_contexts, hw_status_name(cqe.status),
					    (unsigned long long)cqe.value);
	}
	return expect(b, x, "one context too many", request(x, HW_CTX_CREATE, 0), HW_ST_NO_ROOM);
}

/* Each is counted, and not heard. */
static enum bringup_result bad_doorbells(struct bringup *b, struct about *x)
{
	struct hw_queue q = good_queue(x);
	const struct { unsigned queue; uint32_t tail; } rows[] = {
		{ 63, 1 }, { 1, q.n_entries + 1 }, { 1, 0xffffffffu },
		{ 0, x->a.tail + 1 + BRINGUP_ENTRIES + 1 }, { 0, x->a.tail },
	};
	struct hw_cqe cqe;

	memcpy(x->a.args, &q, sizeof(q));
	STEP_TRY(bringup_admin_request(b, &x->a, request(x, HW_QUEUE_CREATE, 0), &cqe));
	if (cqe.status || cqe.value != 1)
		return bringup_fail(b, "the first queue: status %s, number %llu",
				    hw_status_name(cqe.status), (unsigned long long)cqe.value);
	for (unsigned i = 0; i < COUNT(rows); i++)
		if (!bringup_ring_badly(b, rows[i].queue, rows[i].tail))
			return bringup_fail(b, "doorbell %u with tail 0x%x makes no sense, and "
					    "BADACC does not count it once", rows[i].queue,
					    rows[i].tail);
	return bringup_admin_ask(b, &x->a, HW_NOP, 0);
}

/* A feature is what it was set to, until the device is disabled. */
static enum bringup_result features(struct bringup *b, struct about *x)
{
	static const uint16_t ids[] = { HW_FEATURE_INLINE_NS, HW_FEATURE_DEFAULT_LIMIT_NS,
					HW_FEATURE_MAX_LIMIT_NS };
	uint64_t at_first[COUNT(ids)];
	struct hw_sqe sqe = { 0 };
	struct hw_cqe cqe;

	/* Read, set, and, after it was disabled, read. */
	for (unsigned round = 0; round < 3; round++) {
		if (round == 2) {
			STEP_TRY(bringup_admin_disable(b));
			STEP_TRY(bringup_admin_enable(b, &x->a, HW_NO_VECTOR));
		}
		for (unsigned i = 0; i < COUNT(ids); i++) {
			uint64_t other = 0x123456789000 + i, want;

			sqe.op = round == 1 ? HW_SET_FEATURE : HW_GET_FEATURE;
			sqe.id = ids[i];
			sqe.u.admin.value = other;
			STEP_TRY(bringup_admin_request(b, &x->a, sqe, &cqe));
			if (!round)
				at_first[i] = cqe.value;
			want = round == 1 ? other : at_first[i];
			if (cqe.status || cqe.value != want)
				return bringup_fail(b, "feature %u: status %s, %llu instead of "
						    "%llu", ids[i], hw_status_name(cqe.status),
						    (unsigned long long)cqe.value,
						    (unsigned long long)want);
		}
	}
	return BRINGUP_PASS;
}

/* Queue 0 does not come up on rings that make no sense, and BADACC says so. */
static enum bringup_result bad_rings(struct bringup *b, struct about *x)
{
	const uint64_t sq = x->a.args_iova - 2 * HW_PAGE, cq = sq + HW_PAGE;
	const struct { uint64_t sq, cq; uint32_t n; } rows[] = {
		{ sq, cq, 0 }, { sq, cq, 1 }, { sq, cq, 12 }, { sq, cq, 1u << 17 },
		{ sq + 8, cq, 16 }, { sq, cq + 32, 16 }, { NOWHERE, cq, 16 }, { sq, NOWHERE, 16 },
		{ sq, cq, BRINGUP_ENTRIES },
	};

	STEP_TRY(bringup_admin_disable(b));
	for (unsigned i = 0; i < COUNT(rows); i++) {
		uint32_t before = hal_bare_read(b->bare, HW_REG_BADACC), after;
		bool is_good = i + 1 == COUNT(rows);

		bringup_admin_rings(b, rows[i].sq, rows[i].cq, rows[i].n);
		if (is_good)
			break;
		hal_bare_write(b->bare, HW_REG_CTRL, HW_CTRL_ENABLE);
		after = hal_bare_read(b->bare, HW_REG_BADACC);
		if (hal_bare_read(b->bare, HW_REG_CTRL) || hal_bare_read(b->bare, HW_REG_STATUS) ||
		    after != before + 1)
			return bringup_fail(b, "queue 0 comes up with rings of %u entries at "
					    "0x%llx and 0x%llx, or BADACC counts %u instead of 1",
					    rows[i].n, (unsigned long long)rows[i].sq,
					    (unsigned long long)rows[i].cq, after - before);
	}
	STEP_TRY(bringup_admin_enable(b, &x->a, HW_NO_VECTOR));
	return bringup_admin_ask(b, &x->a, HW_NOP, 0);
}

enum bringup_result step_refusals(struct bringup *b)
{
	struct about x = { .ctx = 1 };
	struct hw_map code = { .va = VA, .bytes = HW_PAGE, .flags = HW_MAP_HOST | HW_MAP_WRITE };
	void *rings, *text;
	struct hw_cqe cqe;
	uint64_t hbm;

	STEP_TRY(bringup_admin_start(b, &x.a, HW_NO_VECTOR));
	TRY(b, hal_bare_pages(b->bare, 2 * HW_PAGE, &rings, &x.ring_iova, &b->err));
	TRY(b, hal_bare_pages(b->bare, HW_PAGE, &text, &code.pa, &b->err));
	hbm = bringup_read64(b, HW_REG_HBM_BYTES);
	STEP_TRY(bringup_admin_request(b, &x.a, request(&x, HW_CTX_CREATE, 0), &cqe));
	if (cqe.status || cqe.value != 1)
		return bringup_fail(b, "the first context: status %s, number %llu",
				    hw_status_name(cqe.status), (unsigned long long)cqe.value);
	STEP_TRY(expect_of(b, &x, "a page of the host's", &code, sizeof(code),
			   request(&x, HW_MAP, x.ctx), HW_ST_OK));
	STEP_TRY(bad_fields(b, &x));
	STEP_TRY(bad_maps(b, &x, hbm));
	STEP_TRY(bad_queues(b, &x));
	STEP_TRY(bad_programs(b, &x, text));
	STEP_TRY(bad_doorbells(b, &x));
	STEP_TRY(all_contexts(b, &x));
	STEP_TRY(features(b, &x));
	STEP_TRY(bad_rings(b, &x));
	TRY(b, hal_bare_reset(b->bare, &b->err));
	if (hal_bare_read(b->bare, HW_REG_BADACC))
		return bringup_fail(b, "BADACC outlives a function reset");
	return bringup_pass(b, "requests, programs, rings and doorbells");
}
