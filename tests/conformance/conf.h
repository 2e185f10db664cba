/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_CONFORMANCE_CONF_H
#define TESTS_CONFORMANCE_CONF_H
/*
 * The conformance suite: what every device must do, whatever the way to it, through
 * the HAL's doors alone. checks.def lists the checks; each is a function
 *
 *	void check_NAME(struct conf *c)
 *
 * that leaves by returning (passed), EXPECT and its kin (failed) or not_applicable.
 * All run on one open device. After each the runner wants it as it was: alive, its
 * memory given back. A failed check costs the next ones nothing: the device is
 * closed and opened anew.
 *
 * What a callback writes to is from conf_room, because a failed check's stack is gone
 * when the callback comes at last.
 *
 * A check shows bytes that it got from the device to see(); their digest must be the
 * one that checks.def says, on every device of every size.
 */
#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hal/hal.h"
#include "hal/hw/image.h"
#include "hal/telemetry.h"

#define MS 1000000ll
#define SECOND 1000000000ll
/* No check waits longer for what must come. */
#define SOON clock_after(20 * SECOND)

struct conf {
	const char *devices;	/* as TESSERA_DEVICES */
	struct hal *hal;
	struct hal_device *dev;
	struct hal_device_info info;
	struct hal_queue *compute, *dma;
	struct err err;
	uint64_t digest, n_seen;
	bool is_not_applicable;
	char why[ERR_MSG_BYTES + 200];
	jmp_buf end;
};

__attribute__((noreturn, format(printf, 2, 3)))
void conf_fail(struct conf *c, const char *format, ...);
/* The check does not fit this device, and why. */
__attribute__((noreturn, format(printf, 2, 3)))
void not_applicable(struct conf *c, const char *format, ...);
void see(struct conf *c, const void *bytes, size_t n);

#define EXPECT(c, what) \
	do { \
		if (!(what)) \
			conf_fail(c, "%s:%d: not so: %s", __FILE__, __LINE__, #what); \
	} while (0)
/* A call of the HAL that takes &c->err and must work. */
#define OK(c, call) \
	do { \
		if (call) \
			conf_fail(c, "%s:%d: %s", __FILE__, __LINE__, (c)->err.msg); \
	} while (0)
/* One that must be refused with this code and a text that holds `part`. */
#define REFUSED(c, wanted, part, call) \
	do { \
		int code_ = (call); \
		if (code_ != (int)(wanted)) \
			conf_fail(c, "%s:%d: code %d instead of %s%s%s", __FILE__, \
				  __LINE__, code_, #wanted, code_ ? ": " : "", \
				  code_ ? (c)->err.msg : ""); \
		if (!strstr((c)->err.msg, part)) \
			conf_fail(c, "%s:%d: the text lacks \"%s\": %s", __FILE__, \
				  __LINE__, part, (c)->err.msg); \
	} while (0)

/* Opens device 0 of c->devices, and closes it. */
int conf_open(struct conf *c);
void conf_close(struct conf *c);
/* Opens device `index` beside it in the same HAL; not applicable if there is none. */
struct hal_device *conf_open_other(struct conf *c, unsigned index);

struct hal_mem *conf_get(struct conf *c, uint64_t bytes);
struct hal_mem *conf_get_of(struct conf *c, struct hal_device *dev, enum hal_mem_kind kind,
			    uint64_t bytes);
/* malloc'd bytes that depend on `seed` and nothing else. */
uint8_t *conf_bytes(struct conf *c, size_t n, uint64_t seed);
uint64_t conf_random(uint64_t *state);
void *conf_room(struct conf *c, size_t n);
/* As hal_device_inject with c->err; where the kernel driver owns the device by its debugfs,
 * and not applicable for who is not root. */
int conf_inject(struct conf *c, unsigned what, uint64_t value);
/* The device's counters as of now, not of a moment ago. */
void conf_telemetry(struct conf *c, struct hw_telemetry *t);

/* ---- programs (programs.c) ---- */

#define INSN(code) .insn = { .op = ISA_##code, .bytes = sizeof(struct isa_scalar) }
#define COUNT(array) (sizeof(array) / sizeof(*(array)))

/* An image of scalar instructions, whose binding 2 is a result of `bytes` (a multiple
 * of 8). flags: IMAGE_*. *image is malloc'd. */
void conf_image(struct conf *c, const struct isa_scalar *code, size_t n, uint32_t flags,
		uint64_t bytes, void **image, size_t *image_bytes);
struct hal_exe *conf_load(struct conf *c, const struct isa_scalar *code, size_t n,
			  uint32_t flags, uint64_t bytes);
struct hal_exe *conf_load_on(struct conf *c, struct hal_device *dev,
			     const struct isa_scalar *code, size_t n, uint32_t flags,
			     uint64_t bytes);
/* Submits a run of such an image on `out`. */
uint64_t conf_run(struct conf *c, struct hal_exe *exe, struct hal_mem *out,
		  uint64_t limit_ns);
uint64_t conf_run_after(struct conf *c, struct hal_exe *exe, struct hal_mem *out,
			uint64_t limit_ns, const struct hal_after *after, unsigned n);
uint64_t conf_run_on(struct conf *c, struct hal_device *dev, struct hal_exe *exe,
		     struct hal_mem *out, uint64_t limit_ns);
/* Programs that several checks need. */
struct hal_exe *conf_load_store(struct conf *c);	/* 42 to its 8 bytes */
struct hal_exe *conf_load_count(struct conf *c);	/* adds 1 to its 8 bytes */
struct hal_exe *conf_load_count_on(struct conf *c, struct hal_device *dev);
struct hal_exe *conf_load_spin(struct conf *c);		/* for ever */
struct hal_exe *conf_load_stray(struct conf *c);	/* stores past its 8 bytes */

/* Compiles IR text (runtime/compiler/README.md). *image is malloc'd. */
void conf_compile(struct conf *c, const char *text, void **image, size_t *image_bytes);
/* Runs text's main on the device with these arguments and lets see() its results, after
 * holding them against the evaluator's, byte for byte. */
void conf_program(struct conf *c, const char *text, const void *const *args,
		  const size_t *arg_bytes, unsigned n_args);

/* Works for so many rounds (0: for ever), a line with a digest for each; 1: failed. */
int conf_busy(struct conf *c, unsigned long rounds);

/* Each injected error so many times: lines of its name, what was reset, and the ns from the
 * injection to the error and to the first good result, tabs between; or its name, n.a. or FAIL,
 * and why. 1: one failed. */
int conf_recovery(struct conf *c, unsigned long rounds);
/* The link between the two devices goes down and is mended; ns as in such a line. */
void conf_cut_link(struct conf *c, int64_t ns[2]);

/* ---- the list ---- */

enum { CHECK_SLOW = 1u << 0 };	/* left out by --quick */

#define CHECK(area, name, flags, digest) void check_##name(struct conf *c);
#include "tests/conformance/checks.def"
#undef CHECK

#endif
