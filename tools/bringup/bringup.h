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
};

struct bringup_report {
	char bus_id[64], name[32], serial[32], firmware[32];	/* of the device, as far as known */
	bool is_model;
	unsigned level;
	struct bringup_row *rows;	/* owned */
	unsigned n_rows, n_pass, n_fail, n_skip;
	double seconds;
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
	/* Called before each step (row->seconds < 0) and after it. NULL: nobody wants to know. */
	void (*tell)(void *arg, const struct bringup_row *row);
	void *arg;
};

/*
 * Runs the steps. 0, whatever they found: that is in *out, which is the caller's to free in any
 * case. INVALID_ARGUMENT: `only` names no step, the file of expected
 * values or the selection of devices is malformed. Blocks for as long as the steps take; each wait
 * in them is bounded.
 */
int bringup_run(const struct bringup_options *o, struct bringup_report *out, struct err *err);
void bringup_report_free(struct bringup_report *r);

/* The report in a form for other programs. Errors are the stream's (ferror). */
void bringup_write_json(const struct bringup_report *r, FILE *to);
void bringup_write_junit(const struct bringup_report *r, FILE *to);

#endif
