/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HAL_TELEMETRY_H
#define HAL_TELEMETRY_H
/*
 * The telemetry page: what a process tells of its use of devices, for xla-smi.
 *
 * A file of one struct hal_page in TESSERA_TELEMETRY_DIR, else /dev/shm, named
 * tessera-UID-PID-RANDOM, one for each HAL, mapped shared. RANDOM is 16 hex digits:
 * processes of several PID namespaces that share the folder have the same ids, and no
 * stranger can take a name first. The process holds an exclusive flock on it for life,
 * from before `magic` is there: a page that can be locked is of a process that is gone.
 * The writer stores plain numbers; `sequence` is odd while a group of them changes (a
 * seqlock). Readers open nothing else and wake nobody. They read and never map: a page
 * is its writer's to truncate, and a mapping of it would end them. A layout that
 * changes is another HAL_PAGE_VERSION.
 *
 * Beside a page may be a unix socket of the same owner, at which its process tells what its
 * devices do (trace_wire.h): HAL_PAGE_SOCKET, then the page's name from UID on, and 8 hex
 * digits that the page tells. They are chosen anew until nothing has the name, so that a
 * stranger who reads the page can't have taken it. Only the owner and root may connect. It goes
 * before its page does, whoever removes that.
 */
#include <stddef.h>
#include <stdint.h>

#include "hal/base/err.h"
#include "hal/hw/desc.h"

#define HAL_PAGE_MAGIC 0x314d535354455354ull
#define HAL_PAGE_VERSION 3u
#define HAL_PAGE_DEVICES 64u
#define HAL_PAGE_OWNERS 16u
#define HAL_PAGE_CELLS 64u
#define HAL_PAGE_EVENTS 32u
#define HAL_PAGE_SOCKET "tessera-trace-"

/* Blocks of one tag. */
struct hal_page_owner {
	char tag[48];
	uint64_t bytes, n_blocks;
};

/* The heap over a device's memory, as it was at read_at_ns. */
struct hal_page_heap {
	uint64_t bytes, in_use, largest_free_bytes;
	uint64_t n_blocks, n_holes;	/* in use, free */
	uint64_t changes;	/* hal_page_device.heap_changes then */
	uint64_t read_at_ns;	/* CLOCK_MONOTONIC; 0: it was not looked at yet */
	/* 0: so many blocks that only in_use, largest_free_bytes and n_blocks were read. */
	uint32_t is_whole;
	uint32_t n_owners;
	/* How full each part of an equal size is, ascending: 0 is empty, 255 full, and
	 * what holds anything is at least 1. */
	uint8_t cells[HAL_PAGE_CELLS];
	/* Most bytes first; what has no room here is missing. */
	struct hal_page_owner owners[HAL_PAGE_OWNERS];
};

/* Something that went wrong, or a reset. Event n is at events[(n - 1) % HAL_PAGE_EVENTS]. */
struct hal_page_event {
	uint64_t number;	/* 1, 2, ... in this page; 0: none */
	uint64_t time_ns;	/* CLOCK_REALTIME */
	uint32_t device;	/* index in the page */
	uint32_t code;		/* of err.def; 0: nothing failed */
	char text[240];
};

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
	/* As the device told at read_at_ns; of the whole device, whoever uses it. */
	struct hw_telemetry counters;
	struct hw_ras ras;
	uint64_t heap_changes;	/* allocations and releases ever */
	struct hal_page_heap heap;
	/* Where it is among the chips that it is linked with, as hal_position; fabric 0: it has no
	 * links. */
	uint64_t fabric;
	uint32_t chip, n_chips, coords[3], shape[3];
	/* The chip's links as it told at read_at_ns. 0 of a linked chip that was read: the kernel
	 * driver is too old to tell. */
	uint32_t n_links, zero;
	struct hw_link links[HW_MAX_LINKS];
};

struct hal_page {
	uint64_t magic;
	uint32_t version, bytes;
	uint32_t sequence;
	uint32_t pid;
	uint64_t start_ns;	/* CLOCK_MONOTONIC */
	char command[64];
	uint32_t n_devices;
	uint32_t socket;	/* the digits of its name; 0: there is none */
	uint64_t n_events;	/* ever; the newest HAL_PAGE_EVENTS are here */
	struct hal_page_event events[HAL_PAGE_EVENTS];
	struct hal_page_device devices[HAL_PAGE_DEVICES];
};

#pragma GCC visibility push(default)
#ifdef __cplusplus
extern "C" {
#endif

/* The folder that pages are in. */
const char *hal_page_dir(void);
/* Makes this process's page, and removes those that dead processes of its user left.
 * Failure is not fatal: the process works unwatched. */
int hal_page_open(struct hal_page **out, int *fd, char path[128], struct err *err);
void hal_page_close(struct hal_page *page, int fd, const char *path);
/* Makes the page's socket, listening, which never blocks and is closed by exec. Failure is not
 * fatal, either. */
int hal_page_listen(struct hal_page *page, const char *path, int *out, struct err *err);
/* Connects to the socket that a page tells of, and gives it as it does not block. NOT_FOUND: there
 * is no such file; UNAVAILABLE: nobody listens; PERMISSION_DENIED; DEADLINE_EXCEEDED: more wait
 * there already than its process lets in, for limit_ns. Who is there is for the caller to ask. */
int hal_page_connect(const char *path, uint32_t number, int64_t limit_ns, int *out,
		     struct err *err);
/* A consistent copy of a page file, its texts made of printable UTF-8. NOT_FOUND if its
 * process is gone (the page is then removed where permitted); INVALID_ARGUMENT if the file
 * is none, which is then left alone, whatever it is; else why it can't be opened. Does not
 * block. */
int hal_page_read(const char *path, struct hal_page *out, struct err *err);
/* Makes printable UTF-8 of a stranger's text of n > 0 bytes, and ends it: each byte that is of no
 * character, or of one that controls a terminal, becomes '?'. */
void hal_text_clean(char *text, size_t n);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop
#endif
