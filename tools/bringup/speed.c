/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How fast: bandwidth and latency, the best of several rounds, against expected values. The best,
 * because what else the machine does only ever makes a round slower.
 */
#include "tools/bringup/speed.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum better { MORE, LESS };
static const struct metric {
	const char *name, *unit;
	enum better better;
} metrics[] = {
#define METRIC(name, unit, better) { #name, unit, better },
#define EXPECTED(...)
#include "tools/bringup/expected.def"
#undef METRIC
#undef EXPECTED
};
static const struct {
	const char *device, *name;
	bool is_model;
	double value;
} built_in[] = {
#define METRIC(...)
#define EXPECTED(device, is_model, name, value) { device, #name, is_model, value },
#include "tools/bringup/expected.def"
#undef METRIC
#undef EXPECTED
};

static const struct metric *find(const char *name)
{
	for (unsigned i = 0; i < COUNT(metrics); i++)
		if (!strcmp(metrics[i].name, name))
			return &metrics[i];
	return NULL;
}

/* Reads the file; *value is that of `name`, and 0 where it has none. */
static int read_file(const char *path, const char *name, double *value, struct err *err)
{
	FILE *f = fopen(path, "re");
	char line[256], word[64], more[2];
	unsigned n = 0;
	int code = 0;

	*value = 0;
	if (!f)
		return err_set(err, ERR_INVALID_ARGUMENT, "expected values: %s: %s", path,
			       strerror(errno));
	while (!code && fgets(line, sizeof(line), f)) {
		double x = 0;
		int got;

		n++;
		line[strcspn(line, "#\n")] = 0;
		got = sscanf(line, "%63s %lf %1s", word, &x, more);
		if (got == EOF || got == 0)
			continue;
		if (got != 2 || !find(word) || !(x > 0 && x < 1e15))
			code = err_set(err, ERR_INVALID_ARGUMENT, "expected values: %s:%u: say "
				       "NAME VALUE, as \"host_to_device 12.5\", more than 0",
				       path, n);
		else if (!strcmp(word, name))
			*value = x;
	}
	if (!code && ferror(f))
		code = err_set(err, ERR_INVALID_ARGUMENT, "expected values: %s can't be read",
			       path);
	fclose(f);
	return code;
}

int bringup_check_expected(const char *path, struct err *err)
{
	double value;

	return path ? read_file(path, "", &value, err) : 0;
}

/* What is expected of a metric here, 0: nothing known. */
static int expected_of(struct bringup *b, const char *name, double *out)
{
	*out = 0;
	if (b->options->expected)
		return read_file(b->options->expected, name, out, &b->err);
	for (unsigned i = 0; i < COUNT(built_in); i++)
		if (!strcmp(built_in[i].name, name) && built_in[i].is_model == b->info.is_model &&
		    !strcmp(built_in[i].device, b->info.name))
			*out = built_in[i].value;
	return 0;
}


static enum bringup_result judge(struct bringup *b, const char *name, double measured)
{
	const struct metric *m = find(name);
	double expected;

	if (!m)
		return bringup_fail(b, "\"%s\" is no row of expected.def", name);
	TRY(b, expected_of(b, name, &expected));
	return bringup_number(b, name, m->unit, measured, expected, m->better == LESS);
}

/* Of all figures the first that is too low decides, but all are taken. */
static void keep_worst(struct bringup *b, enum bringup_result r, char text[BRINGUP_TEXT],
		       enum bringup_result *worst)
{
	if (*worst != BRINGUP_PASS || r == BRINGUP_PASS)
		return;
	*worst = r;
	memcpy(text, b->row->text, BRINGUP_TEXT);
}

/* ---- bandwidth ---- */

enum { ROUNDS = 9 };
#define MOVED ((uint64_t)16 << 20)
#define LEAST ((uint64_t)4 << 10)	/* of sizes up to that, each four times the last */

enum way { MEMCPY, IN, OUT, ACROSS, FILL, N_WAYS };
static const char *const ways[] = { "host_memcpy", "host_to_device", "device_to_host",
				    "device_to_device", "fill" };
static const char *const shares[] = { NULL, "host_to_device_share", "device_to_host_share",
				      "device_to_device_share", NULL };

struct blocks {
	struct hal_mem *host[2], *hbm[2];
};

/* Seconds that one way takes for so many bytes. */
static int time_way(struct bringup *b, const struct blocks *k, enum way way, uint64_t bytes,
		    double *seconds)
{
	struct hal_mem *dst = way == OUT ? k->host[1] : k->hbm[way == ACROSS];
	struct hal_mem *src = way == IN ? k->host[0] : k->hbm[0];
	int64_t begin = clock_ns();
	uint64_t value;
	int code = 0;

	if (way == MEMCPY) {
		memcpy(hal_mem_host(k->host[1]), hal_mem_host(k->host[0]), bytes);
	} else {
		code = way == FILL ?
			hal_queue_fill(b->dma, dst, 0, bytes, 0x5a5a5a5a5a5a5a5a, &value,
				       &b->err) :
			hal_queue_copy(b->dma, dst, 0, src, 0, bytes, NULL, 0, &value, &b->err);
		if (!code)
			code = hal_queue_wait(b->dma, value, SOON, &b->err);
	}
	*seconds = (double)(clock_ns() - begin) / SECOND;
	return code;
}

/* ---- by size ---- */

static void add_point(struct bringup *b, const char *series, uint64_t bytes, double measured,
		      double expected)
{
	struct bringup_point *p = &b->row->points[b->row->n_points];

	if (b->row->n_points == BRINGUP_POINTS)
		return;
	snprintf(p->series, sizeof(p->series), "%s", series);
	p->bytes = bytes;
	p->measured = measured;
	p->expected = expected;
	b->row->n_points++;
}

/* GB/s at most, expected of large copies; 0: nothing known. */
static int peak_of(struct bringup *b, enum way way, double memcpy_rate, double *out)
{
	int code = expected_of(b, ways[way], out);

	if (code || *out > 0 || !shares[way])
		return code;
	code = expected_of(b, shares[way], out);
	*out *= memcpy_rate;
	return code;
}

/* Copies of growing sizes, each way. A copy of n bytes is expected to take the round trip that is
 * expected of an empty one, and n at the rate that is expected of large ones. */
static int sweep(struct bringup *b, const struct blocks *k, double memcpy_rate)
{
	double peak, latency, seconds;
	int code = expected_of(b, "round_trip", &latency);

	for (enum way w = IN; !code && w <= ACROSS; w++) {
		code = peak_of(b, w, memcpy_rate, &peak);
		for (uint64_t bytes = LEAST; !code && bytes <= MOVED; bytes *= 4) {
			double best = 0, n = (double)bytes;

			for (unsigned i = 0; !code && i < ROUNDS; i++) {
				code = time_way(b, k, w, bytes, &seconds);
				if (!code && seconds > 0 && n / seconds > best)
					best = n / seconds;
			}
			if (!code)
				add_point(b, ways[w], bytes, best / 1e9, peak > 0 ?
					  n / (latency * 1e3 + n / peak) : 0);
		}
	}
	return code;
}

enum bringup_result step_bandwidth(struct bringup *b)
{
	double best[N_WAYS] = { 0 }, seconds;
	enum bringup_result worst = BRINGUP_PASS;
	char text[BRINGUP_TEXT];
	struct blocks k;

	STEP_TRY(bringup_need_device(b));
	for (unsigned i = 0; i < 2; i++) {
		k.host[i] = bringup_mem(b, HAL_MEM_HOST, MOVED);
		NEED(b, k.host[i]);
		k.hbm[i] = bringup_mem(b, HAL_MEM_HBM, MOVED);
		NEED(b, k.hbm[i]);
		memset(hal_mem_host(k.host[i]), (int)i + 1, MOVED);
	}
	/* Side by side, so that all see the same machine; the first round makes pages. */
	for (unsigned round = 0; round <= ROUNDS; round++)
		for (unsigned w = 0; w < N_WAYS; w++) {
			TRY(b, time_way(b, &k, (enum way)w, MOVED, &seconds));
			if (round && seconds > 0 && (double)MOVED / seconds > best[w])
				best[w] = (double)MOVED / seconds;
		}
	TRY(b, sweep(b, &k, best[MEMCPY] / 1e9));
	for (unsigned w = 0; w < N_WAYS; w++) {
		keep_worst(b, judge(b, ways[w], best[w] / 1e9), text, &worst);
		if (shares[w])
			keep_worst(b, judge(b, shares[w], best[w] / best[MEMCPY]), text, &worst);
	}
	return worst == BRINGUP_PASS ?
		bringup_pass(b, "the best of %d rounds of %llu MiB", ROUNDS,
			     (unsigned long long)MOVED >> 20) : bringup_fail(b, "%.600s", text);
}

/* ---- latency ---- */

enum bringup_result step_latency(struct bringup *b)
{
	enum { TURNS = 2000 };
	int64_t round_trip = CLOCK_FOREVER, submission = CLOCK_FOREVER;
	enum bringup_result worst = BRINGUP_PASS;
	char text[BRINGUP_TEXT];
	struct hal_mem *m;
	uint64_t value;

	STEP_TRY(bringup_need_device(b));
	m = bringup_mem(b, HAL_MEM_HBM, 64);
	NEED(b, m);
	for (unsigned i = 0; i < TURNS; i++) {
		int64_t begin = clock_ns(), submitted, done;

		TRY(b, hal_queue_copy(b->dma, m, 8, m, 0, 8, NULL, 0, &value, &b->err));
		submitted = clock_ns();
		TRY(b, hal_queue_wait(b->dma, value, SOON, &b->err));
		done = clock_ns();
		submission = submitted - begin < submission ? submitted - begin : submission;
		round_trip = done - begin < round_trip ? done - begin : round_trip;
	}
	keep_worst(b, judge(b, "round_trip", (double)round_trip / 1e3), text, &worst);
	keep_worst(b, judge(b, "submission", (double)submission / 1e3), text, &worst);
	return worst == BRINGUP_PASS ? bringup_pass(b, "the best of %d copies of 8 bytes", TURNS) :
		bringup_fail(b, "%.600s", text);
}
