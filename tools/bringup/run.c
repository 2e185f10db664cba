/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the steps that were asked for, in their order, and keeps what they found. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "hal/hw/regs.h"
#include "tools/bringup/context.h"
#include "tools/bringup/resume.h"
#include "tools/bringup/speed.h"

static enum bringup_result (*const functions[])(struct bringup *b) = {
#define STEP(number, name, level, proves) step_##name,
#include "tools/bringup/steps.def"
#undef STEP
};

/* ---- which ---- */

/* Whether a list by commas has this step's name or number. */
static bool names(const char *list, const struct bringup_step *s)
{
	char number[12];

	snprintf(number, sizeof(number), "%u", s->number);
	for (const char *p = list; ; p++) {
		size_t n = strcspn(p, ",");

		if ((n == strlen(s->name) && !strncmp(p, s->name, n)) ||
		    (n == strlen(number) && !strncmp(p, number, n)))
			return true;
		p += n;
		if (!*p)
			return false;
	}
}

/* Every word of the list must be a step's. */
static int check_list(const char *list, struct err *err)
{
	for (const char *p = list; ; p++) {
		size_t n = strcspn(p, ",");
		bool known = false;
		char word[64];

		snprintf(word, sizeof(word), "%.*s", n < 63 ? (int)n : 63, p);
		for (unsigned i = 0; i < bringup_n_steps && n < 63; i++)
			known = known || names(word, &bringup_steps[i]);
		if (!known)
			return err_set(err, ERR_INVALID_ARGUMENT, "\"%s\" is no step: --list has "
				       "their names and numbers", word);
		p += n;
		if (!*p)
			return 0;
	}
}

static bool is_wanted(const struct bringup_options *o, const struct bringup_step *s)
{
	return o->only ? names(o->only, s) : s->level <= (o->level ? o->level : 1);
}

/* ---- the state of a failure ---- */

static const struct { const char *name; uint32_t offset; unsigned bytes; } regs[] = {
#define REG(name, offset, bytes, access, reset, meaning) { #name, offset, bytes },
#include "hal/hw/regs.def"
#undef REG
};

__attribute__((format(printf, 2, 3)))
static void note(struct bringup_row *row, const char *format, ...)
{
	size_t n = strlen(row->state);
	va_list ap;

	va_start(ap, format);
	vsnprintf(row->state + n, sizeof(row->state) - n, format, ap);
	va_end(ap);
}

static int read_register(struct bringup *b, uint32_t offset, uint32_t *value)
{
	if (b->dev)
		return hal_device_register(b->dev, offset, value, &b->err);
	if (!b->bare)
		return err_set(&b->err, ERR_FAILED_PRECONDITION, "the device is not open");
	*value = hal_bare_read(b->bare, offset);
	return 0;
}

static void note_registers(struct bringup *b)
{
	for (unsigned i = 0; i < COUNT(regs); i++) {
		uint32_t low = 0, high = 0;

		if (read_register(b, regs[i].offset, &low) ||
		    (regs[i].bytes == 8 && read_register(b, regs[i].offset + 4, &high))) {
			note(b->row, "registers: %s\n", b->err.msg);
			return;
		}
		note(b->row, "%s 0x%llx\n", regs[i].name,
		     (unsigned long long)high << 32 | low);
	}
}

static void note_queues(struct bringup *b)
{
	static const char *const is[] = { "idle", "ready", "waiting", "running", "faulted",
					  "parked" };
	struct hw_queue_state q[HW_MAX_QUEUES];
	uint64_t bytes = 0;

	if (!b->dev)
		return;
	if (hal_device_log(b->dev, HW_LOG_QUEUES, q, sizeof(q), &bytes, &b->err))
		note(b->row, "queues: %s\n", b->err.msg);
	for (unsigned i = 0; i < bytes / sizeof(*q); i++)
		note(b->row, "queue %u: %s, %s, tail %u, head %u, runs for %llu ns\n", q[i].queue,
		     q[i].cls == HW_CLASS_DMA ? "DMA" : "compute",
		     q[i].is < COUNT(is) ? is[q[i].is] : "in no known state", q[i].tail, q[i].head,
		     (unsigned long long)q[i].run_ns);
}

/* ---- running ---- */

static void tell(const struct bringup *b)
{
	if (b->options->tell)
		b->options->tell(b->options->arg, b->row);
}

/* Seconds that a step usually takes. */
static double usual(const struct bringup *b, const struct bringup_step *s)
{
	static const double by_level[] = { 0.1, 0.1, 0.3, 3, 60 };

	if (s->level == 4 && b->options->soak_seconds > 0)
		return b->options->soak_seconds;
	return by_level[s->level];
}

/* A step begins, or, with what is done after it, has ended. */
static void progress_step(struct bringup *b, double done)
{
	struct bringup_progress *p = &b->progress;

	p->row = b->row;
	p->done = done;
	p->unit = NULL;
	p->amount = p->seconds = 0;
	if (b->options->progress)
		b->options->progress(b->options->arg, p);
}

static void count(struct bringup_report *r, enum bringup_result result)
{
	r->n_pass += result == BRINGUP_PASS;
	r->n_fail += result == BRINGUP_FAIL;
	r->n_skip += result == BRINGUP_SKIP;
}

/* Steps of this run go to the file; what that told of the others stays. */
static int keep(const struct bringup *b, const struct bringup_report *r, struct err *err)
{
	struct bringup_report all = *r;
	unsigned k = 0;
	int code;

	if (!b->options->resume)
		return 0;
	all.n_rows = all.n_pass = all.n_fail = all.n_skip = 0;
	all.rows = calloc(bringup_n_steps, sizeof(*all.rows));
	if (!all.rows)
		return err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory");
	for (unsigned i = 0; i < bringup_n_steps; i++) {
		const struct bringup_row *row = &b->before[i];

		if (k < r->n_rows && r->rows[k].step == &bringup_steps[i])
			row = &r->rows[k++];
		if (!row->step)
			continue;
		all.rows[all.n_rows++] = *row;
		if (row->seconds >= 0)
			count(&all, row->result);
	}
	code = bringup_resume_write(b->options->resume, &all, err);
	free(all.rows);
	return code;
}

static int run_step(struct bringup *b, struct bringup_report *r, unsigned i, struct err *err)
{
	int64_t begin = clock_ns();
	int code;

	b->row = &r->rows[r->n_rows++];
	b->row->step = &bringup_steps[i];
	b->row->seconds = -1;
	code = keep(b, r, err);
	if (code)
		return code;
	tell(b);
	progress_step(b, b->done_before);
	b->step_began = b->told = begin;
	b->part_from = 0;
	b->part_size = 1;
	b->row->result = functions[i](b);
	b->row->seconds = (double)(clock_ns() - begin) / SECOND;
	if (b->row->result == BRINGUP_FAIL) {
		note_registers(b);
		note_queues(b);
	}
	count(r, b->row->result);
	tell(b);
	progress_step(b, b->done_after);
	/* After a failure the next step begins with a device that was opened anew. */
	if (b->row->result == BRINGUP_FAIL)
		bringup_close(b);
	bringup_give_back(b);
	return keep(b, r, err);
}

/* A step that a run before this one knows of. */
static void take_row(struct bringup *b, struct bringup_report *r, const struct bringup_row *before)
{
	b->row = &r->rows[r->n_rows++];
	b->row->step = before->step;
	b->row->seconds = -1;
	tell(b);
	*b->row = *before;
	count(r, b->row->result);
	tell(b);
	progress_step(b, b->done_after);
}

static void describe(const struct bringup *b, struct bringup_report *r)
{
	struct hal_device_info info;

	if (hal_device_info(b->hal, b->options->index, &info, NULL))
		return;
	memcpy(r->bus_id, info.bus_id, sizeof(r->bus_id));
	memcpy(r->name, info.name, sizeof(r->name));
	memcpy(r->serial, info.serial, sizeof(r->serial));
	memcpy(r->firmware, info.firmware, sizeof(r->firmware));
	r->is_model = info.is_model;
	r->hbm_bytes = info.hbm_bytes;
}

static int run_steps(struct bringup *b, struct bringup_report *out, struct err *err)
{
	const struct bringup_options *o = b->options;
	struct bringup_row *before = calloc(bringup_n_steps, sizeof(*before));
	double all = 0, so_far = 0;
	int code = before ? 0 : err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory");

	b->before = before;
	if (!code && o->resume)
		code = bringup_resume_read(o->resume, out->bus_id, before, err);
	for (unsigned i = 0; i < bringup_n_steps; i++) {
		b->progress.of += is_wanted(o, &bringup_steps[i]);
		all += is_wanted(o, &bringup_steps[i]) ? usual(b, &bringup_steps[i]) : 0;
	}
	for (unsigned i = 0; !code && i < bringup_n_steps; i++) {
		if (!is_wanted(o, &bringup_steps[i]))
			continue;
		b->progress.n++;
		b->done_before = so_far / all;
		so_far += usual(b, &bringup_steps[i]);
		b->done_after = b->progress.n == b->progress.of ? 1 : so_far / all;
		/* What is asked for by name is run in any case. */
		if (!o->only && before[i].step)
			take_row(b, out, &before[i]);
		else
			code = run_step(b, out, i, err);
		if (out->n_fail && !o->keep_going)
			break;
	}
	b->before = NULL;
	free(before);
	return code;
}

int bringup_run(const struct bringup_options *o, struct bringup_report *out, struct err *err)
{
	struct hal_options h = { .devices = o->devices };
	struct bringup b = { .options = o };
	int64_t begin = clock_ns();
	int code = o->only ? check_list(o->only, err) : 0;

	*out = (struct bringup_report){ .level = o->level ? o->level : 1 };
	if (!code)
		code = bringup_check_expected(o->expected, err);
	if (!code)
		code = hal_create(&h, &b.hal, err);
	if (code)
		return code;
	out->rows = calloc(bringup_n_steps, sizeof(*out->rows));
	if (!out->rows)
		code = err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory");
	describe(&b, out);
	if (!code)
		code = run_steps(&b, out, err);
	describe(&b, out);
	bringup_close(&b);
	hal_destroy(b.hal);
	out->seconds = (double)(clock_ns() - begin) / SECOND;
	return code;
}

void bringup_report_free(struct bringup_report *r)
{
	free(r->rows);
	*r = (struct bringup_report){ 0 };
}
