/* SPDX-License-Identifier: Apache-2.0 */
/* Steps of queues, semaphores and RAS. */
#include <string.h>

#include "hal/hw/image.h"
#include "hal/hw/regs.h"
#include "tools/bringup/context.h"
#include "tools/bringup/program.h"

/* ---- RAS ---- */

static int read_ras(struct bringup *b, struct hw_ras *out)
{
	uint64_t got;
	int code = hal_device_log(b->dev, HW_LOG_RAS, out, sizeof(*out), &got, &b->err);

	if (!code && got < sizeof(*out))
		code = err_set(&b->err, ERR_INTERNAL, "log page RAS has %llu bytes instead of %zu",
			       (unsigned long long)got, sizeof(*out));
	return code;
}

/* A copy of `bytes` from `at` of HBM, which must read `want` (an error code). */
static enum bringup_result reads_as(struct bringup *b, struct hal_mem *host, struct hal_mem *all,
				    uint64_t at, uint64_t bytes, int want, const char *what)
{
	uint64_t value;
	int code;

	TRY(b, hal_queue_copy(b->dma, host, 0, all, at, bytes, NULL, 0, &value, &b->err));
	code = hal_queue_wait(b->dma, value, SOON, &b->err);
	return code == want ? BRINGUP_PASS :
		bringup_fail(b, "page 5 is poisoned: a copy from %s ends with %s instead of %s",
			     what, code ? err_name(code) : "success",
			     want ? err_name(want) : "success");
}

/* All the memory that there is, so that its first byte is HBM's: pages have a known place. */
static enum bringup_result poison_and_heal(struct bringup *b, struct hal_mem *all)
{
	struct hal_mem *host = bringup_mem(b, HAL_MEM_HOST, 2 * HW_PAGE);
	const uint64_t at = 5 * HW_PAGE;
	struct hw_ras before, after;
	uint64_t value;

	NEED(b, host);
	TRY(b, hal_queue_fill(b->dma, all, at, 2 * HW_PAGE, 9, &value, &b->err));
	TRY(b, hal_queue_wait(b->dma, value, SOON, &b->err));
	TRY(b, read_ras(b, &before));
	TRY(b, hal_device_inject(b->dev, HW_INJECT_POISON, at, &b->err));
	STEP_TRY(reads_as(b, host, all, at, 8, ERR_DATA_LOSS, "it"));
	STEP_TRY(reads_as(b, host, all, at - HW_PAGE, HW_PAGE, 0, "the page before it"));
	STEP_TRY(reads_as(b, host, all, at + HW_PAGE, HW_PAGE, 0, "the page behind it"));
	/* All of the page but a word heals nothing. */
	TRY(b, hal_queue_fill(b->dma, all, at, HW_PAGE - 8, 7, &value, &b->err));
	STEP_TRY(reads_as(b, host, all, at + HW_PAGE - 8, 8, ERR_DATA_LOSS,
			  "it, overwritten in part,"));
	TRY(b, hal_queue_fill(b->dma, all, at, HW_PAGE, 7, &value, &b->err));
	STEP_TRY(reads_as(b, host, all, at, HW_PAGE, 0, "it, overwritten,"));
	TRY(b, read_ras(b, &after));
	if (after.ecc_uncorrected != before.ecc_uncorrected + 2 ||
	    after.poisoned_pages != before.poisoned_pages + 1)
		return bringup_fail(b, "one page was poisoned and read twice; counted are %llu and "
				    "%llu", (unsigned long long)(after.poisoned_pages -
				    before.poisoned_pages), (unsigned long long)
				    (after.ecc_uncorrected - before.ecc_uncorrected));
	return BRINGUP_PASS;
}

enum bringup_result step_ecc(struct bringup *b)
{
	struct hw_ras before, after;
	struct hal_mem_stats s;
	struct hal_mem *all;
	int code;

	STEP_TRY(bringup_need_device(b));
	TRY(b, read_ras(b, &before));
	code = hal_device_inject(b->dev, HW_INJECT_ECC_CORRECTED, 3, &b->err);
	if (code == ERR_UNIMPLEMENTED)
		return bringup_skip(b, "counted: %llu corrected, %llu uncorrected. %s",
				    (unsigned long long)before.ecc_corrected,
				    (unsigned long long)before.ecc_uncorrected, b->err.msg);
	TRY(b, code);
	TRY(b, read_ras(b, &after));
	if (after.ecc_corrected != before.ecc_corrected + 3)
		return bringup_fail(b, "3 corrected errors were injected, %llu counted",
				    (unsigned long long)(after.ecc_corrected -
							 before.ecc_corrected));
	hal_mem_stats(b->dev, HAL_MEM_HBM, &s);
	if (s.bytes_in_use)
		return bringup_fail(b, "%llu bytes of HBM are taken where none should be",
				    (unsigned long long)s.bytes_in_use);
	all = bringup_mem(b, HAL_MEM_HBM, s.largest_free_bytes);
	NEED(b, all);
	STEP_TRY(poison_and_heal(b, all));
	return bringup_pass(b, "before: %llu corrected, %llu uncorrected; what was injected was "
			    "counted, reported and healed",
			    (unsigned long long)before.ecc_corrected,
			    (unsigned long long)before.ecc_uncorrected);
}

/* ---- queues ---- */

/* Adds 1 to a word, so often and in order. */
static const struct isa_scalar count_code[] = {
	{ INSN(LD), .rd = 1, .elem = ELEM_S64, .binding = 2 },
	{ INSN(ALUI), .fn = ISA_ALU_ADD, .rd = 1, .ra = 1, .imm = 1 },
	{ INSN(ST), .rb = 1, .elem = ELEM_S64, .binding = 2 },
	{ INSN(HALT) },
};
/* Stores where it may not. */
static const struct isa_scalar stray_code[] = {
	{ INSN(LI), .rd = 1, .imm = 1ll << 40 },
	{ INSN(ST), .rb = 1, .ra = 1, .elem = ELEM_S64, .binding = 2 },
	{ INSN(HALT) },
};
/* Goes round for ever. */
static const struct isa_scalar spin_code[] = {
	{ INSN(JMP), .imm = 0 },
	{ INSN(HALT) },
};

static enum bringup_result many_laps(struct bringup *b, struct hal_exe *count, struct hal_mem *m)
{
	enum { RUNS = 3000 };	/* more than two rings full */
	uint64_t value, last = 0, got;

	TRY(b, hal_queue_fill(b->compute, m, 0, 8, 0, &value, &b->err));
	for (unsigned i = 0; i < RUNS; i++) {
		TRY(b, bringup_launch(b, count, m, NULL, 0, &value));
		if (value <= last)
			return bringup_fail(b, "submission %llu came after %llu",
					    (unsigned long long)value, (unsigned long long)last);
		last = value;
	}
	TRY(b, hal_queue_wait(b->compute, last, SOON, &b->err));
	TRY(b, hal_copy_out(&got, m, 0, 8, SOON, &b->err));
	return got == RUNS ? BRINGUP_PASS :
		bringup_fail(b, "%d runs that add 1 each give %llu", RUNS, (unsigned long long)got);
}

/* A fault costs what it was in and what was queued behind it, and no more. */
static enum bringup_result after_fault(struct bringup *b, struct hal_exe *count,
				       struct hal_exe *stray, struct hal_mem *m)
{
	uint64_t value, got = 0;
	int code;

	TRY(b, bringup_launch(b, stray, m, NULL, 0, &value));
	code = hal_queue_wait(b->compute, value, SOON, &b->err);
	if (code != ERR_INVALID_ARGUMENT || !strstr(b->err.msg, "BOUNDS"))
		return bringup_fail(b, "a store outside its binding ends with: %s",
				    code ? b->err.msg : "success");
	TRY(b, hal_queue_fill(b->compute, m, 0, 8, 41, &value, &b->err));
	TRY(b, bringup_launch(b, count, m, NULL, 0, &value));
	TRY(b, hal_queue_wait(b->compute, value, SOON, &b->err));
	TRY(b, hal_copy_out(&got, m, 0, 8, SOON, &b->err));
	return got == 42 ? BRINGUP_PASS :
		bringup_fail(b, "after a fault 41 + 1 gives %llu", (unsigned long long)got);
}

enum bringup_result step_queues(struct bringup *b)
{
	struct hal_exe *count, *stray;
	struct hal_mem *m;

	STEP_TRY(bringup_need_device(b));
	m = bringup_mem(b, HAL_MEM_HBM, 8);
	NEED(b, m);
	count = bringup_scalar(b, count_code, COUNT(count_code), 8);
	NEED(b, count);
	stray = bringup_scalar(b, stray_code, COUNT(stray_code), 8);
	NEED(b, stray);
	STEP_TRY(many_laps(b, count, m));
	STEP_TRY(after_fault(b, count, stray, m));
	return bringup_pass(b, "3000 submissions in order, and work after a fault");
}

/* ---- semaphores ---- */

/* Each queue waits for what the other did last. */
static enum bringup_result ping_pong(struct bringup *b, struct hal_exe *count, struct hal_mem *m)
{
	enum { TURNS = 200 };
	struct hal_mem *back = bringup_mem(b, HAL_MEM_HBM, 8 * TURNS);
	struct hal_after after = { .queue = b->dma };
	uint64_t got[TURNS];

	NEED(b, back);
	TRY(b, hal_queue_fill(b->dma, m, 0, 8, 0, &after.value, &b->err));
	for (unsigned i = 0; i < TURNS; i++) {
		after.queue = b->dma;
		TRY(b, bringup_launch(b, count, m, &after, 1, &after.value));
		after.queue = b->compute;
		TRY(b, hal_queue_copy(b->dma, back, 8 * i, m, 0, 8, &after, 1, &after.value,
				      &b->err));
	}
	TRY(b, hal_queue_wait(b->dma, after.value, SOON, &b->err));
	TRY(b, hal_copy_out(got, back, 0, sizeof(got), SOON, &b->err));
	for (unsigned i = 0; i < TURNS; i++)
		if (got[i] != i + 1)
			return bringup_fail(b, "copy %u of what the other queue counts is %llu "
					    "instead of %u", i, (unsigned long long)got[i], i + 1);
	return BRINGUP_PASS;
}

/* What waits for a program that does not end has not begun until that is stopped. */
static enum bringup_result hold_back(struct bringup *b, struct hal_exe *spin, struct hal_mem *m)
{
	struct hal_after after = { .queue = b->compute };
	uint64_t value, other, got;
	int code;

	TRY(b, hal_queue_fill(b->dma, m, 0, 8, 1, &value, &b->err));
	TRY(b, hal_queue_wait(b->dma, value, SOON, &b->err));
	TRY(b, bringup_launch(b, spin, m, NULL, 0, &after.value));
	TRY(b, hal_queue_fill(b->dma, m, 0, 8, 2, &other, &b->err));
	TRY(b, hal_queue_wait(b->dma, other, SOON, &b->err));
	TRY(b, hal_queue_copy(b->dma, m, 8, m, 0, 8, &after, 1, &value, &b->err));
	code = hal_queue_wait(b->dma, value, clock_after(SECOND / 50), &b->err);
	if (code != ERR_DEADLINE_EXCEEDED)
		return bringup_fail(b, "what waits for a program that does not end, ended: %s",
				    code ? b->err.msg : "well");
	TRY(b, hal_queue_reset(b->compute, "bring-up stops it", &b->err));
	code = hal_queue_wait(b->compute, after.value, SOON, &b->err);
	if (code != ERR_ABORTED)
		return bringup_fail(b, "a program that was stopped ends with: %s",
				    code ? b->err.msg : "success");
	TRY(b, hal_queue_wait(b->dma, value, SOON, &b->err));
	TRY(b, hal_copy_out(&got, m, 8, 8, SOON, &b->err));
	return got == 2 ? BRINGUP_PASS :
		bringup_fail(b, "what waited copied %llu instead of 2", (unsigned long long)got);
}

enum bringup_result step_semaphores(struct bringup *b)
{
	struct hal_exe *count, *spin;
	struct hal_mem *m;

	STEP_TRY(bringup_need_device(b));
	m = bringup_mem(b, HAL_MEM_HBM, 16);
	NEED(b, m);
	count = bringup_scalar(b, count_code, COUNT(count_code), 8);
	NEED(b, count);
	spin = bringup_scalar(b, spin_code, COUNT(spin_code), 8);
	NEED(b, spin);
	STEP_TRY(ping_pong(b, count, m));
	STEP_TRY(hold_back(b, spin, m));
	return bringup_pass(b, "200 turns, and one that waits as long as it must");
}
