/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HAL_TELEMETRY_H
#define HAL_TELEMETRY_H
/*
 * The telemetry page: what a process tells of its use of devices, for xla-smi.
 *
 * A file of one struct hal_page in TESSERA_TELEMETRY_DIR, else /dev/shm, named
 * tessera-UID-PID, and tessera-UID-PID.1, .2, ... for later HALs of the process,
 * mapped shared. The process holds an exclusive flock on it for life: a page that can
 * be locked is of a process that is gone. The writer stores plain
 * numbers; `sequence` is odd while a group of them changes (a seqlock). Readers open
 * nothing else and wake nobody.
 */
#include <stdint.h>

#include "hal/base/err.h"

#define HAL_PAGE_MAGIC 0x314d535354455354ull
#define HAL_PAGE_VERSION 1u
#define HAL_PAGE_DEVICES 64u

struct hal_page_device {
	char bus_id[64], name[32], serial[32], driver[32], state[96];
	char running[64];	/* the executable launched last */
	uint32_t is_model, kind;	/* enum hal_kind */
	uint64_t hbm_bytes;
	uint64_t used_bytes, peak_bytes;
	uint64_t n_execute;
	/* Device time busy between two readings of its clock. */
	uint64_t busy_ns, window_ns, read_at_ns;	/* read_at: CLOCK_MONOTONIC */
	uint32_t temperature_mc, power_mw;
	uint64_t n_fault;
};

struct hal_page {
	uint64_t magic;
	uint32_t version, bytes;
	uint32_t sequence;
	uint32_t pid;
	uint64_t start_ns;	/* CLOCK_MONOTONIC */
	char command[64];
	uint32_t n_devices, zero;
	struct hal_page_device devices[HAL_PAGE_DEVICES];
};

#pragma GCC visibility push(default)
#ifdef __cplusplus
extern "C" {
#endif

/* The folder that pages are in. */
const char *hal_page_dir(void);
/* Makes this process's page. Failure is not fatal: the process works unwatched. */
int hal_page_open(struct hal_page **out, int *fd, char path[128], struct err *err);
void hal_page_close(struct hal_page *page, int fd, const char *path);
/* A consistent copy of a page file, its texts made of printable UTF-8. NOT_FOUND if its
 * process is gone (the page is then removed where permitted); INVALID_ARGUMENT if the file
 * is none, which is then left alone, whatever it is; else why it can't be opened. Does not
 * block. */
int hal_page_read(const char *path, struct hal_page *out, struct err *err);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop
#endif
