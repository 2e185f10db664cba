/* SPDX-License-Identifier: Apache-2.0 */
/* What all steps call: how they end, the device, memory, figures. */
#include "tools/bringup/context.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static void say(struct bringup *b, const char *format, va_list ap)
{
	vsnprintf(b->row->text, sizeof(b->row->text), format, ap);
}

enum bringup_result bringup_pass(struct bringup *b, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	say(b, format, ap);
	va_end(ap);
	return BRINGUP_PASS;
}

enum bringup_result bringup_fail(struct bringup *b, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	say(b, format, ap);
	va_end(ap);
	return BRINGUP_FAIL;
}

enum bringup_result bringup_skip(struct bringup *b, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	say(b, format, ap);
	va_end(ap);
	return BRINGUP_SKIP;
}

/* ---- the device ---- */

void bringup_close(struct bringup *b)
{
	bringup_give_back(b);
	hal_bare_close(b->bare);
	hal_device_close(b->dev);
	b->bare = NULL;
	b->dev = NULL;
}

enum bringup_result bringup_need_bare(struct bringup *b)
{
	int code;

	if (b->bare)
		return BRINGUP_PASS;
	bringup_close(b);
	code = hal_bare_open(b->hal, b->options->index, &b->bare, &b->err);
	if (code == ERR_UNIMPLEMENTED)
		return bringup_skip(b, "%s", b->err.msg);
	return code ? bringup_fail(b, "%s", b->err.msg) : BRINGUP_PASS;
}

enum bringup_result bringup_need_device(struct bringup *b)
{
	if (b->dev && hal_device_error(b->dev, &b->err))
		return bringup_fail(b, "the device died before: %s", b->err.msg);
	if (b->dev)
		return BRINGUP_PASS;
	bringup_close(b);
	TRY(b, hal_device_open(b->hal, b->options->index, &b->dev, &b->err));
	b->compute = hal_device_queue(b->dev, HAL_QUEUE_COMPUTE);
	b->dma = hal_device_queue(b->dev, HAL_QUEUE_DMA);
	TRY(b, hal_device_info(b->hal, b->options->index, &b->info, &b->err));
	return BRINGUP_PASS;
}

/* ---- what a step takes ---- */

struct hal_mem *bringup_mem(struct bringup *b, enum hal_mem_kind kind, uint64_t bytes)
{
	struct hal_mem *m;

	if (b->n_mems == COUNT(b->mems)) {
		err_set(&b->err, ERR_RESOURCE_EXHAUSTED, "a step takes too many blocks");
		return NULL;
	}
	if (hal_mem_alloc(b->dev, kind, bytes, "bring-up", &m, &b->err))
		return NULL;
	b->mems[b->n_mems++] = m;
	return m;
}

void *bringup_room(struct bringup *b, size_t bytes)
{
	void *p = b->n_rooms < COUNT(b->rooms) ? calloc(bytes ? bytes : 1, 1) : NULL;

	if (p)
		b->rooms[b->n_rooms++] = p;
	else
		err_set(&b->err, ERR_RESOURCE_EXHAUSTED, "no %zu bytes of the host's memory",
			bytes);
	return p;
}

struct hal_exe *bringup_load(struct bringup *b, void *image, size_t bytes)
{
	struct hal_exe *exe;
	int code = b->n_exes == COUNT(b->exes) ?
		err_set(&b->err, ERR_RESOURCE_EXHAUSTED, "a step loads too many programs") :
		hal_exe_load(b->dev, image, bytes, &exe, &b->err);

	free(image);
	if (code)
		return NULL;
	b->exes[b->n_exes++] = exe;
	return exe;
}

void bringup_give_back(struct bringup *b)
{
	/* Unloading waits for runs, which use the memory. */
	while (b->n_exes)
		hal_exe_unload(b->exes[--b->n_exes]);
	while (b->n_mems)
		hal_mem_free(b->mems[--b->n_mems]);
	while (b->n_rooms)
		free(b->rooms[--b->n_rooms]);
}

/* ---- figures ---- */

double bringup_ratio(const struct bringup_number *n)
{
	return n->is_less_better ? n->expected / n->measured : n->measured / n->expected;
}

enum bringup_result bringup_number(struct bringup *b, const char *name, const char *unit,
				   double measured, double expected, bool is_less_better)
{
	struct bringup_number n = { .measured = measured, .expected = expected,
				    .is_less_better = is_less_better };

	snprintf(n.name, sizeof(n.name), "%s", name);
	snprintf(n.unit, sizeof(n.unit), "%s", unit);
	if (b->row->n_numbers < BRINGUP_NUMBERS)
		b->row->numbers[b->row->n_numbers++] = n;
	/* Not below covers what is no number. */
	if (!(expected > 0) || bringup_ratio(&n) >= BRINGUP_LEAST)
		return BRINGUP_PASS;
	return bringup_fail(b, "%s: %.4g %s measured, %.4g expected, ratio %.2f, at least %.2f",
			    name, measured, unit, expected, bringup_ratio(&n), BRINGUP_LEAST);
}

/* ---- progress ---- */

void bringup_part(struct bringup *b, unsigned i, unsigned n)
{
	b->part_from = (double)i / n;
	b->part_size = 1.0 / n;
}

void bringup_hold(struct bringup *b, double share)
{
	b->part_from = share;
	b->part_size = 0;
}

void bringup_progress(struct bringup *b, double share, double amount, const char *unit)
{
	struct bringup_progress *p = &b->progress;
	int64_t now = clock_ns();
	double done;

	if (!b->options->progress || now - b->told < SECOND / 10)
		return;
	b->told = now;
	share = share > 0 ? share < 1 ? share : 1 : 0;
	done = b->done_before + (b->done_after - b->done_before) *
	       (b->part_from + b->part_size * share);
	/* Two parts may not be as long as each other after all. */
	p->done = done > p->done ? done : p->done;
	p->unit = unit;
	p->amount = amount;
	p->seconds = (double)(now - b->step_began) / SECOND;
	b->options->progress(b->options->arg, p);
}

/* ---- bytes ---- */

/* splitmix64 */
uint64_t bringup_random(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

void bringup_fill_random(void *to, size_t bytes, uint64_t seed)
{
	uint8_t *p = to;

	for (size_t i = 0; i < bytes; i += 8) {
		uint64_t word = bringup_random(&seed);

		memcpy(p + i, &word, bytes - i < 8 ? bytes - i : 8);
	}
}

size_t bringup_differ(const void *a, const void *b, size_t n)
{
	const uint8_t *x = a, *y = b;
	size_t i = 0;

	if (!memcmp(x, y, n))
		return n;
	while (i < n && x[i] == y[i])
		i++;
	return i;
}
