/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BRINGUP_BRINGUP_H
#define BRINGUP_BRINGUP_H
/*
 * Bring-up: numbered steps from "it is listed" to "it works for hours", over the HAL's doors
 * alone, so they run whatever the way to the device. The door of tools/bringup.
 *
 *	struct bringup_report report;
 *	bringup_run(&(struct bringup_options){ .level = 2 }, &report, err);
 *	bringup_write_json(&report, stdout);
 *	bringup_report_free(&report);
 *
 * A step passes, fails, or is skipped, with the reason: where a device has no links, say, or the
 * kernel driver keeps the registers. A skipped step proves nothing and is counted apart.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "hal/base/err.h"

struct bringup_step {
	unsigned number, level;
	const char *name, *proves;
};
/* steps.def, ascending by number. */
extern const struct bringup_step bringup_steps[];
extern const unsigned bringup_n_steps;

enum bringup_result { BRINGUP_PASS, BRINGUP_FAIL, BRINGUP_SKIP };
const char *bringup_result_name(enum bringup_result r);	/* "pass" */

#define BRINGUP_NUMBERS 24u	/* that a step tells, most */
#define BRINGUP_TEXT 640u
#define BRINGUP_STATE 8192u

/* A figure that a step took. expected 0: none is known, and it was not judged. */
struct bringup_number {
	char name[48], unit[16];
	double measured, expected;
	bool is_less_better;	/* a time */
};
/* measured over expected, or the other way round where less is better: 1 is as expected. */
double bringup_ratio(const struct bringup_number *n);
#define BRINGUP_LEAST 0.75	/* a ratio below it is a failure */

/* A figure at one size of transfer; points of a series follow each other, ascending by size. */
struct bringup_point {
	char series[24];	/* "host_to_device", in GB/s */
	uint64_t bytes;
	double measured, expected;	/* expected 0: nothing known; it is shown, not judged */
};
#define BRINGUP_POINTS 32u

/* HBM that a step tested, and where it was bad. Offsets are HBM's own; where a kernel driver deals
 * it out, those that this process sees. */
#define BRINGUP_AREAS 4u
#define BRINGUP_BAD 64u
struct bringup_map {
	struct { uint64_t offset, bytes; } areas[BRINGUP_AREAS];
	/* Of n_bad reads that were wrong the first ones. */
	struct { uint64_t offset, want, got; } bad[BRINGUP_BAD];
	unsigned n_areas, n_told;
	uint64_t n_bad;
};

/* A step that was run. */
struct bringup_row {
	const struct bringup_step *step;
	enum bringup_result result;
	double seconds;
	char text[BRINGUP_TEXT];	/* what was seen, or why it failed or was skipped */
	/* Of a failure: registers and queues, a line each; else "". */
	char state[BRINGUP_STATE];
	struct bringup_number numbers[BRINGUP_NUMBERS];
	unsigned n_numbers;
	struct bringup_point points[BRINGUP_POINTS];
	unsigned n_points;
	struct bringup_map memory;	/* of steps that test HBM; no areas: none was */
};

struct bringup_report {
	char bus_id[64], name[32], serial[32], firmware[32];	/* of the device, as far as known */
	bool is_model;
	uint64_t hbm_bytes;	/* 0: unknown */
	unsigned level;
	struct bringup_row *rows;	/* owned */
	unsigned n_rows, n_pass, n_fail, n_skip;
	double seconds;
};

/* How far a run is. */
struct bringup_progress {
	const struct bringup_row *row;	/* of the step that runs */
	unsigned n, of;		/* it is the nth of so many */
	double done;		/* of the run, from 0 to 1, as steps of their levels usually take */
	/* What the step has done in so many seconds, for a rate; unit NULL: it does not count. */
	const char *unit;
	double amount, seconds;
};

struct bringup_options {
	const char *devices;	/* as TESSERA_DEVICES; NULL: the environment */
	unsigned index;		/* which of them */
	unsigned level;		/* 1 to 4; 0: 1 */
	/* Names or numbers of steps by commas, of any level; NULL: all up to the level. */
	const char *only;
	bool keep_going;	/* after a failure, too */
	double soak_seconds;	/* of the soak step; 0: 60 */
	uint64_t hbm_bytes;	/* tested by each test of HBM; 0: as the level says */
	const char *expected;	/* a file of expected values; NULL: those built in */
	/* A file that keeps the report as it grows: what passed there stays and is not run again,
	 * unless `only` names it, and a step that began there and did not end has failed. Made if
	 * it is not there; NULL: none. */
	const char *resume;
	/* Called before each step (row->seconds < 0) and after it. NULL: nobody wants to know. */
	void (*tell)(void *arg, const struct bringup_row *row);
	/* Called as steps begin and end, and in long ones, ten times a second at most, on the
	 * thread of bringup_run. It must not block. `done` never goes down. NULL: likewise. */
	void (*progress)(void *arg, const struct bringup_progress *p);
	void *arg;	/* of both */
};

/*
 * Runs the steps. 0, whatever they found: that is in *out, which is the caller's to free in any
 * case. INVALID_ARGUMENT: `only` names no step, the file of expected values or the selection of
 * devices is malformed, `resume` is another device's; an errno's code: it can't be read or written.
 * Blocks for as long as the steps take; each wait in them is bounded.
 */
int bringup_run(const struct bringup_options *o, struct bringup_report *out, struct err *err);
void bringup_report_free(struct bringup_report *r);

/* The report in a form for other programs. Errors are the stream's (ferror). */
void bringup_write_json(const struct bringup_report *r, FILE *to);
void bringup_write_junit(const struct bringup_report *r, FILE *to);
/* One page that opens offline: a bar for each figure that something is expected of, a plot for each
 * series of points, a map of each step's memory. The JSON report has the same figures. */
void bringup_write_html(const struct bringup_report *r, FILE *to);

#endif
