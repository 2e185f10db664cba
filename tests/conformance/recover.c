/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every error that can be injected: it is told as what it is, what had to be reset works again,
 * and who has nothing to do with it sees the bytes that it sees without it: the other queue
 * of the device, where the device lives on, and both queues of another device. Half of their
 * work is queued when the error comes, half comes after it was mended.
 *
 * conf_recovery() measures the same, for tests/bench/recovery.py.
 */
#include <sched.h>
#include <setjmp.h>

#include "hal/hw/regs.h"
#include "tests/conformance/conf.h"

enum {
	WORDS = 16, WORD = 64, STEPS = 60, BYTES = 100000,
	/* Places in a block, all of whose device's HBM it is: places are the device's. */
	MINE = 0, COPIES = 1 << 20, COUNTS = 2 << 20, BAD = 3 << 20, FROM = 4 << 20, TO = 5 << 20,
	LARGE = 8 << 20, NEEDED = 32 << 20,
	LIMIT_MS = 50,		/* of the run that hangs */
};

/* Work on one queue that must come out the same whatever happens elsewhere. */
struct witness {
	struct hal_device *dev;
	struct hal_queue *q;
	struct hal_mem *block, *word[WORDS];	/* words: of one that computes */
	struct hal_exe *count;
	uint8_t *expected, *got;
	uint64_t first, last;
};

enum { NOTHING, COMPUTE, DMA, FUNCTION };	/* what has to be reset */
static const char *const resets[] = { "nothing", "compute queue", "DMA queue", "function" };

struct scene {
	struct hal_device *other;
	struct hal_exe *count, *spin, *count_there;
	struct hal_mem *all, *there, *mine;
	struct witness w[3];
	unsigned n;
	int64_t injected, told, good;
};

struct error {
	const char *name;
	unsigned what;
	uint64_t value;
	unsigned reset;
	const char *text;	/* that its error must hold, where the function is ours */
	void (*harm)(struct conf *c, struct scene *s, const struct error *e);
};

/* ---- witnesses ---- */

static void begin(struct conf *c, struct witness *w)
{
	static const uint8_t zeros[WORDS * WORD];

	if (w->count)
		OK(c, hal_copy_in(w->block, COUNTS, zeros, sizeof(zeros), SOON, &c->err));
	else
		OK(c, hal_queue_fill(w->q, w->block, COPIES, BYTES, 1, &w->last, &c->err));
	w->first = 0;
}

/* Its half of the steps. One that computes has no copies in its queue, which would be others'
 * to fail. */
static void work(struct conf *c, struct witness *w, unsigned half)
{
	for (uint64_t i = half * STEPS / 2; i < (half + 1) * STEPS / 2; i++) {
		if (w->count) {
			w->last = conf_run_on(c, w->dev, w->count, w->word[i * i % WORDS], 0);
		} else {
			OK(c, hal_queue_fill(w->q, w->block, COPIES + i * 500, 60000, i * i,
					     &w->last, &c->err));
			OK(c, hal_queue_copy(w->q, w->block, COPIES + 70000, w->block,
					     COPIES + i * 500, 20000, NULL, 0, &w->last,
					     &c->err));
		}
		w->first = w->first ? w->first : w->last;
	}
}

static size_t bytes_of(const struct witness *w)
{
	return w->count ? WORDS * WORD : BYTES;
}

static void end(struct conf *c, struct witness *w, uint8_t *into)
{
	OK(c, hal_queue_wait(w->q, w->last, SOON, &c->err));
	for (uint64_t v = w->first; v <= w->last; v++)
		OK(c, hal_queue_error(w->q, v, &c->err));
	OK(c, hal_copy_out(into, w->block, w->count ? COUNTS : COPIES, bytes_of(w), SOON,
			   &c->err));
	OK(c, hal_device_error(w->dev, &c->err));
}

static void add(struct conf *c, struct scene *s, struct hal_device *dev, struct hal_mem *block,
		struct hal_exe *count)
{
	struct witness *w = &s->w[s->n++];

	*w = (struct witness){ .dev = dev, .block = block, .count = count,
		.q = hal_device_queue(dev, count ? HAL_QUEUE_COMPUTE : HAL_QUEUE_DMA) };
	for (unsigned i = 0; count && i < WORDS; i++)
		OK(c, hal_mem_view(dev, hal_mem_va(block) + COUNTS + i * WORD, WORD,
				   &w->word[i], &c->err));
	w->expected = conf_room(c, bytes_of(w));
	w->got = conf_room(c, bytes_of(w));
	begin(c, w);
	work(c, w, 0);
	work(c, w, 1);
	end(c, w, w->expected);
}

/* ---- the scene ---- */

static struct scene *set(struct conf *c, const struct error *e)
{
	struct scene *s = conf_room(c, sizeof(*s));
	struct hal_mem_stats stats;

	s->other = conf_open_other(c, 1);
	s->count = conf_load_count(c);
	s->spin = conf_load_spin(c);
	s->count_there = conf_load_count_on(c, s->other);
	hal_mem_stats(c->dev, HAL_MEM_HBM, &stats);
	EXPECT(c, stats.largest_free_bytes >= NEEDED);
	s->all = conf_get(c, stats.largest_free_bytes);
	s->there = conf_get_of(c, s->other, HAL_MEM_HBM, COUNTS + WORDS * WORD);
	OK(c, hal_mem_view(c->dev, hal_mem_va(s->all) + MINE, WORD, &s->mine, &c->err));
	if (e->reset == COMPUTE || e->reset == NOTHING)
		add(c, s, c->dev, s->all, NULL);
	else if (e->reset == DMA)
		add(c, s, c->dev, s->all, s->count);
	add(c, s, s->other, s->there, NULL);
	add(c, s, s->other, s->there, s->count_there);
	return s;
}

static void strike(struct conf *c, struct scene *s, const struct error *e)
{
	OK(c, hal_queue_fill(c->dma, s->all, MINE, WORD, 0, &s->w[0].last, &c->err));
	OK(c, hal_queue_wait(c->dma, s->w[0].last, SOON, &c->err));
	for (unsigned i = 0; i < s->n; i++) {
		begin(c, &s->w[i]);
		work(c, &s->w[i], 0);
	}
	e->harm(c, s, e);
	for (unsigned i = 0; i < s->n; i++)
		work(c, &s->w[i], 1);
	for (unsigned i = 0; i < s->n; i++) {
		struct witness *w = &s->w[i];

		end(c, w, w->got);
		EXPECT(c, !memcmp(w->got, w->expected, bytes_of(w)));
		see(c, w->got, bytes_of(w));
	}
}

static void clear(struct scene *s)
{
	for (unsigned i = 0; i < s->n; i++) {
		for (unsigned k = 0; s->w[i].count && k < WORDS; k++)
			hal_mem_free(s->w[i].word[k]);
		free(s->w[i].expected);
		free(s->w[i].got);
	}
	hal_exe_unload(s->count);
	hal_exe_unload(s->spin);
	hal_mem_free(s->mine);
	hal_mem_free(s->all);
	hal_device_close(s->other);
	free(s);
}

/* ---- errors ---- */

static void inject(struct conf *c, struct scene *s, const struct error *e)
{
	s->injected = clock_ns();
	OK(c, conf_inject(c, e->what, e->value));
}

/* The queues work, with no error of before: computing, then copying what was computed. */
static void good(struct conf *c, struct scene *s)
{
	static const uint64_t from = 41;
	uint64_t x = 0, value;

	OK(c, hal_copy_in(s->all, MINE, &from, 8, SOON, &c->err));
	value = conf_run(c, s->count, s->mine, 0);
	OK(c, hal_queue_copy(c->dma, s->all, TO, s->all, MINE, 8,
			     &(struct hal_after){ c->compute, value }, 1, &value, &c->err));
	OK(c, hal_queue_wait(c->dma, value, SOON, &c->err));
	OK(c, hal_copy_out(&x, s->all, TO, 8, SOON, &c->err));
	EXPECT(c, x == 42);
	s->good = clock_ns();
}

static struct hw_ras ras_of(struct conf *c)
{
	struct hw_ras ras = { 0 };
	uint64_t got;

	OK(c, hal_device_log(c->dev, HW_LOG_RAS, &ras, sizeof(ras), &got, &c->err));
	return ras;
}

static void correct(struct conf *c, struct scene *s, const struct error *e)
{
	uint64_t before = ras_of(c).ecc_corrected, now = before;
	int64_t until = SOON;

	inject(c, s, e);
	/* The kernel driver may have looked a moment ago. */
	while (now == before && clock_ns() < until)
		now = ras_of(c).ecc_corrected;
	EXPECT(c, now == before + e->value);
	s->told = clock_ns();
	good(c, s);
}

static void poison(struct conf *c, struct scene *s, const struct error *e)
{
	uint64_t value;

	inject(c, s, e);
	OK(c, hal_queue_copy(c->dma, s->all, TO, s->all, BAD, 4096, NULL, 0, &value, &c->err));
	REFUSED(c, ERR_DATA_LOSS, e->text, hal_queue_wait(c->dma, value, SOON, &c->err));
	s->told = clock_ns();
	/* New content heals the page. */
	OK(c, hal_queue_fill(c->dma, s->all, BAD, 4096, 5, &value, &c->err));
	OK(c, hal_queue_copy(c->dma, s->all, TO, s->all, BAD, 4096, NULL, 0, &value, &c->err));
	OK(c, hal_queue_wait(c->dma, value, SOON, &c->err));
	good(c, s);
}

static void hang(struct conf *c, struct scene *s, const struct error *e)
{
	uint64_t value;

	inject(c, s, e);
	value = conf_run(c, s->count, s->mine, LIMIT_MS * MS);
	REFUSED(c, ERR_DEADLINE_EXCEEDED, e->text,
		hal_queue_wait(c->compute, value, SOON, &c->err));
	s->told = clock_ns();
	EXPECT(c, s->told - s->injected >= LIMIT_MS * MS);
	EXPECT(c, s->told - s->injected < 5 * SECOND);
	good(c, s);
}

static void fail_copy(struct conf *c, struct scene *s, const struct error *e)
{
	uint64_t value, behind;

	inject(c, s, e);
	OK(c, hal_queue_copy(c->dma, s->all, TO, s->all, FROM, 4096, NULL, 0, &value, &c->err));
	OK(c, hal_queue_copy(c->dma, s->all, TO, s->all, FROM, 4096, NULL, 0, &behind, &c->err));
	REFUSED(c, ERR_DATA_LOSS, e->text, hal_queue_wait(c->dma, value, SOON, &c->err));
	s->told = clock_ns();
	/* It was behind the one that failed, or came when that was over. */
	if (hal_queue_wait(c->dma, behind, SOON, &c->err))
		EXPECT(c, c->err.code == ERR_ABORTED);
	good(c, s);
}

static void note(void *arg, const struct err *err)
{
	(void)err;
	__atomic_store_n((int *)arg, 1, __ATOMIC_RELEASE);
}

/* Nothing fails; who sleeps until an interrupt comes hears later. */
static void lose_irq(struct conf *c, struct scene *s, const struct error *e)
{
	int64_t until = SOON;
	int *is_told = conf_room(c, sizeof(*is_told));
	uint64_t value;

	inject(c, s, e);
	OK(c, hal_queue_fill(c->compute, s->all, LARGE, 2 * LARGE, 3, &value, &c->err));
	OK(c, hal_queue_notify(c->compute, value, note, is_told, &c->err));
	while (!__atomic_load_n(is_told, __ATOMIC_ACQUIRE) && clock_ns() < until)
		sched_yield();
	EXPECT(c, __atomic_load_n(is_told, __ATOMIC_ACQUIRE));
	s->told = clock_ns();
	OK(c, hal_queue_error(c->compute, value, &c->err));
	good(c, s);
	free(is_told);
}

static void die(struct conf *c, struct scene *s, const struct error *e)
{
	uint64_t value = conf_run(c, s->spin, s->mine, 0);

	inject(c, s, e);
	/* The kernel driver has reset it already, and does not tell programs why. */
	REFUSED(c, ERR_UNAVAILABLE, c->info.kind == HAL_KIND_ACCEL ? "the device failed" : e->text,
		hal_queue_wait(c->compute, value, SOON, &c->err));
	s->told = clock_ns();
	OK(c, hal_device_reset(c->dev, &c->err));
	good(c, s);
}

static void fall_silent(struct conf *c, struct scene *s, const struct error *e)
{
	struct hw_telemetry t;
	int64_t until = SOON;

	if (c->info.kind == HAL_KIND_ACCEL)
		not_applicable(c, "the kernel driver asks the requests, and resets by itself");
	inject(c, s, e);
	/* The page for xla-smi asks, too: it may be that one that is not answered. */
	while (!hal_device_telemetry(c->dev, &t, &c->err))
		EXPECT(c, clock_ns() < until);
	EXPECT(c, strstr(c->err.msg, e->text));
	s->told = clock_ns();
	OK(c, hal_device_reset(c->dev, &c->err));
	good(c, s);
}

static const struct error corrected = { "memory error, corrected", HW_INJECT_ECC_CORRECTED, 3,
	NOTHING, "", correct };
static const struct error uncorrected = { "memory error, uncorrectable", HW_INJECT_POISON, BAD,
	DMA, "POISON", poison };
static const struct error hung = { "hang, limit 50 ms", HW_INJECT_HANG, HW_CLASS_COMPUTE,
	COMPUTE, "WATCHDOG", hang };
static const struct error bus = { "DMA error", HW_INJECT_BUS, 1, DMA, "BUS", fail_copy };
static const struct error lost_irq = { "lost interrupt", HW_INJECT_DROP_IRQ, 1, NOTHING, "",
	lose_irq };
static const struct error fatal = { "fatal state", HW_INJECT_FATAL, 0, FUNCTION, "injected",
	die };
static const struct error thermal = { "thermal trip", HW_INJECT_FATAL, HW_FATAL_THERMAL, FUNCTION,
	"too hot", die };
static const struct error firmware = { "firmware death", HW_INJECT_FATAL, HW_FATAL_FIRMWARE,
	FUNCTION, "firmware", die };
static const struct error pcie = { "PCIe error", HW_INJECT_FATAL, HW_FATAL_PCIE, FUNCTION, "PCIe",
	die };
static const struct error silence = { "firmware without an answer", HW_INJECT_NO_ANSWER, 1,
	FUNCTION, "reset it", fall_silent };

static void check(struct conf *c, const struct error *e)
{
	struct scene *s = set(c, e);

	strike(c, s, e);
	clear(s);
}

void check_corrected_errors_cost_nothing(struct conf *c)
{
	check(c, &corrected);
}

void check_an_uncorrectable_error_costs_one_queue(struct conf *c)
{
	check(c, &uncorrected);
}

void check_a_hang_costs_one_queue(struct conf *c)
{
	check(c, &hung);
}

void check_a_dma_error_costs_one_queue(struct conf *c)
{
	check(c, &bus);
}

void check_a_lost_interrupt_costs_time_only(struct conf *c)
{
	check(c, &lost_irq);
}

void check_a_thermal_trip_costs_one_device(struct conf *c)
{
	check(c, &thermal);
}

void check_dead_firmware_costs_one_device(struct conf *c)
{
	check(c, &firmware);
}

void check_a_pcie_error_costs_one_device(struct conf *c)
{
	check(c, &pcie);
}

void check_a_request_without_answer_costs_one_device(struct conf *c)
{
	check(c, &silence);
}

/* ---- measured ---- */

static int failed;

/* After a longjmp to c->end. */
static void give_up(struct conf *c, const char *name)
{
	failed |= !c->is_not_applicable;
	printf("%s\t%s\t%s\n", name, c->is_not_applicable ? "n.a." : "FAIL", c->why);
	c->is_not_applicable = false;
	conf_close(c);
	if (conf_open(c)) {
		fprintf(stderr, "conformance: opening %s again: %s\n", c->devices, c->err.msg);
		exit(1);
	}
}

static void tell(const char *name, const char *reset, const int64_t ns[2])
{
	printf("%s\t%s\t%lld\t%lld\n", name, reset, (long long)ns[0], (long long)ns[1]);
}

static void measure(struct conf *c, const struct error *e, unsigned long rounds)
{
	struct scene *s;

	if (setjmp(c->end)) {
		give_up(c, e->name);
		return;
	}
	s = set(c, e);
	for (unsigned long i = 0; i < rounds; i++) {
		strike(c, s, e);
		tell(e->name, resets[e->reset], (int64_t[]){ s->told - s->injected,
							      s->good - s->injected });
	}
	clear(s);
}

static void measure_link(struct conf *c, unsigned long rounds)
{
	static const char name[] = "link down";
	int64_t ns[2];

	if (setjmp(c->end)) {
		give_up(c, name);
		return;
	}
	for (unsigned long i = 0; i < rounds; i++) {
		conf_cut_link(c, ns);
		tell(name, resets[FUNCTION], ns);
	}
}

int conf_recovery(struct conf *c, unsigned long rounds)
{
	static const struct error *const errors[] = { &corrected, &uncorrected, &bus, &hung,
		&lost_irq, &fatal, &thermal, &firmware, &pcie };

	for (size_t i = 0; i < COUNT(errors); i++)
		measure(c, errors[i], rounds);
	measure_link(c, rounds);
	measure(c, &silence, 1);	/* 10 s each */
	conf_close(c);
	return failed;
}
