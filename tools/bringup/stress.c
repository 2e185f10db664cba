/* SPDX-License-Identifier: Apache-2.0 */
/* Everything at once, in the middle of it, and for long. */
#include <pthread.h>
#include <string.h>

#include "tools/bringup/context.h"
#include "tools/bringup/program.h"

/* ---- at once ---- */

enum { THREADS = 4, TURNS = 100 };
#define BLOCK ((uint64_t)64 << 10)

/* A thread's own memory, and what it found. */
struct worker {
	struct bringup *b;
	struct hal_mem *mem[3];	/* host, HBM, HBM */
	uint64_t seed;
	int code;		/* not 0: err; */
	struct err err;
	bool is_wrong;		/* what came back is not what went */
	uint8_t want[BLOCK];
};

static int turn(struct worker *w, unsigned i)
{
	struct hal_queue *there = i & 1 ? w->b->dma : w->b->compute;
	struct hal_queue *back = i & 2 ? w->b->dma : w->b->compute;
	struct hal_after after = { .queue = there };
	uint64_t value;
	int code;

	bringup_fill_random(w->want, BLOCK, w->seed + i);
	memcpy(hal_mem_host(w->mem[0]), w->want, BLOCK);
	code = hal_queue_copy(there, w->mem[1], 0, w->mem[0], 0, BLOCK, NULL, 0, &after.value,
			      &w->err);
	if (!code)
		code = hal_queue_copy(back, w->mem[2], 0, w->mem[1], 0, BLOCK, &after, 1,
				      &after.value, &w->err);
	after.queue = back;
	if (!code)
		code = hal_queue_wait(back, after.value, SOON, &w->err);
	if (!code)
		code = hal_queue_fill(there, w->mem[0], 0, BLOCK, 0, &value, &w->err);
	after = (struct hal_after){ there, value };
	if (!code)
		code = hal_queue_copy(back, w->mem[0], 0, w->mem[2], 0, BLOCK, &after, 1, &value,
				      &w->err);
	if (!code)
		code = hal_queue_wait(back, value, SOON, &w->err);
	w->is_wrong = !code && memcmp(hal_mem_host(w->mem[0]), w->want, BLOCK);
	return code;
}

static void *work(void *arg)
{
	struct worker *w = arg;

	for (unsigned i = 0; i < TURNS && !w->code && !w->is_wrong; i++)
		w->code = turn(w, i);
	return NULL;
}

enum bringup_result step_concurrency(struct bringup *b)
{
	struct worker *w;
	pthread_t thread[THREADS];
	unsigned n = 0;

	STEP_TRY(bringup_need_device(b));
	w = bringup_room(b, THREADS * sizeof(*w));
	NEED(b, w);
	for (unsigned i = 0; i < THREADS; i++) {
		w[i].b = b;
		w[i].seed = 1000 * i;
		for (unsigned k = 0; k < 3; k++) {
			w[i].mem[k] = bringup_mem(b, k ? HAL_MEM_HBM : HAL_MEM_HOST, BLOCK);
			NEED(b, w[i].mem[k]);
		}
	}
	while (n < THREADS && !pthread_create(&thread[n], NULL, work, &w[n]))
		n++;
	for (unsigned i = 0; i < n; i++)
		pthread_join(thread[i], NULL);
	if (n < THREADS)
		return bringup_fail(b, "only %u of %d threads could be started", n, THREADS);
	for (unsigned i = 0; i < THREADS; i++) {
		if (w[i].code)
			return bringup_fail(b, "thread %u: %s", i, w[i].err.msg);
		if (w[i].is_wrong)
			return bringup_fail(b, "thread %u got other bytes than it sent", i);
	}
	return bringup_pass(b, "%d threads, %d round trips each over both engines", THREADS, TURNS);
}

/* ---- resets ---- */

static const struct isa_scalar spin_code[] = { { INSN(JMP), .imm = 0 }, { INSN(HALT) } };

/* Pending work of both queues, one reset, and work after it. */
static enum bringup_result reset_once(struct bringup *b, struct hal_exe *spin, struct hal_mem *m)
{
	struct hal_after after = { .queue = b->compute };
	uint64_t value[32], got = 0;
	int code;

	TRY(b, bringup_launch(b, spin, m, NULL, 0, &after.value));
	for (unsigned i = 0; i < COUNT(value); i++)
		TRY(b, hal_queue_copy(b->dma, m, 64 * i, m, 8, 8, &after, 1, &value[i], &b->err));
	TRY(b, hal_device_reset(b->dev, &b->err));
	code = hal_queue_error(b->compute, after.value, &b->err);
	if (code != ERR_ABORTED)
		return bringup_fail(b, "a program that a reset ended has %s instead of ABORTED",
				    code ? err_name(code) : "no error");
	for (unsigned i = 0; i < COUNT(value); i++) {
		code = hal_queue_wait(b->dma, value[i], SOON, &b->err);
		if (code != ERR_ABORTED)
			return bringup_fail(b, "a copy that a reset ended has %s instead of "
					    "ABORTED",
					    code ? err_name(code) : "no error");
	}
	TRY(b, hal_queue_fill(b->dma, m, 0, 8, 0x1234, value, &b->err));
	TRY(b, hal_queue_wait(b->dma, value[0], SOON, &b->err));
	TRY(b, hal_copy_out(&got, m, 0, 8, SOON, &b->err));
	return got == 0x1234 ? BRINGUP_PASS :
		bringup_fail(b, "after a reset a word is 0x%llx instead of 0x1234",
			     (unsigned long long)got);
}

enum bringup_result step_reset_under_load(struct bringup *b)
{
	enum { RESETS = 10 };
	struct hal_exe *spin;
	struct hal_mem *m;

	STEP_TRY(bringup_need_device(b));
	m = bringup_mem(b, HAL_MEM_HBM, 4096);
	NEED(b, m);
	spin = bringup_scalar(b, spin_code, COUNT(spin_code), 8);
	NEED(b, spin);
	for (unsigned i = 0; i < RESETS; i++)
		STEP_TRY(reset_once(b, spin, m));
	return bringup_pass(b, "%d resets, each with a program and 32 copies under way", RESETS);
}

/* ---- for long ---- */

static const struct { const char *name; enum bringup_result (*step)(struct bringup *b); } laps[] = {
	{ "dma_directions", step_dma_directions }, { "hbm_march_c", step_hbm_march_c },
	{ "elementwise", step_elementwise }, { "hbm_addresses", step_hbm_addresses },
	{ "product", step_product }, { "hbm_random", step_hbm_random },
	{ "queues", step_queues }, { "concurrency", step_concurrency },
};

static int read_ras(struct bringup *b, struct hw_ras *out)
{
	uint64_t got;

	return hal_device_log(b->dev, HW_LOG_RAS, out, sizeof(*out), &got, &b->err);
}

enum bringup_result step_soak(struct bringup *b)
{
	double seconds = b->options->soak_seconds > 0 ? b->options->soak_seconds : 60;
	int64_t end = clock_after((int64_t)(seconds * SECOND));
	struct hw_ras before, after;
	unsigned n = 0;

	STEP_TRY(bringup_need_device(b));
	TRY(b, read_ras(b, &before));
	do {
		char text[BRINGUP_TEXT];
		double share = 1 - (double)(end - clock_ns()) / SECOND / seconds;

		bringup_hold(b, share);
		bringup_progress(b, 0, n, "steps");
		if (laps[n % COUNT(laps)].step(b) == BRINGUP_FAIL) {
			memcpy(text, b->row->text, sizeof(text));
			return bringup_fail(b, "%s, as number %u: %.500s",
					    laps[n % COUNT(laps)].name, n + 1, text);
		}
		bringup_give_back(b);
		n++;
	} while (clock_ns() < end);
	TRY(b, read_ras(b, &after));
	if (after.ecc_uncorrected != before.ecc_uncorrected)
		return bringup_fail(b, "%llu uncorrectable errors of memory came meanwhile",
				    (unsigned long long)(after.ecc_uncorrected -
							 before.ecc_uncorrected));
	return bringup_pass(b, "%u steps in %.1f s, %llu corrected errors of memory", n, seconds,
			    (unsigned long long)(after.ecc_corrected - before.ecc_corrected));
}
