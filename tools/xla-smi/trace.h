/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMI_TRACE_H
#define SMI_TRACE_H
/*
 * Processes that tell what their devices do, and that as a file. What a process tells is
 * anybody's word: it is checked before it is believed, and takes bounded memory and time.
 */
#include <sys/types.h>

#include "hal/trace_wire.h"
#include "tools/xla-smi/smi.h"

/* ---- peer.c ---- */

/* A process with a page. */
struct smi_peer {
	char path[SMI_PATH];	/* the page */
	uint32_t socket;	/* as it says */
	uid_t uid;		/* whose the page is */
	uint64_t pid;		/* as it says */
	struct smi_num holder;	/* as it is called here */
	char command[64];
	const char *root;
	int fd;			/* -1: not connected, or no more */
	int status;		/* SMI_OK, or why there is no more of it; that was printed */
	int64_t base_ns;	/* its STARTED, CLOCK_MONOTONIC of here */
	unsigned n_devices;	/* that were traced from there on */
	uint8_t *buffer;	/* the body of a message, with room for a NUL */
};

struct smi_peers {
	struct smi_peer *peer;
	unsigned n;
};

/* Those that `which` means, a number or "all". NO_DEVICE, REFUSED, FAILED. */
int smi_find_peers(const char *root, const char *which, struct smi_peers *out);
void smi_free_peers(struct smi_peers *peers);
/* As it is called here, where that can be seen. */
uint64_t smi_peer_pid(const struct smi_peer *p);
/* Connects, makes sure of who is there, and waits until all answer or were dropped. */
void smi_greet(struct smi_peers *peers);
/* Sends a step to all, and waits for what answers START and STOP. */
void smi_start(struct smi_peers *peers, uint32_t limit_ms);
void smi_stop(struct smi_peers *peers);
/* Waits until that time, or a signal, or none is left. Drops whoever hangs up. */
void smi_record_until(struct smi_peers *peers, int64_t deadline);
/* On: SIGINT, SIGTERM or SIGHUP ends smi_record_until, whenever it comes; a second one gives up:
 * from then on whoever is waited for is dropped. Off: they do what they do. */
void smi_watch_signals(bool on);

/* What one process tells of one device; the texts are clean. */
struct smi_told {
	const struct smi_peer *peer;
	struct hal_wire_device device;
	struct hal_wire_trace trace;
	char **words;		/* [n_words]; number n is words[n - 1] */
	uint32_t n_words, room;
	size_t word_bytes;
};
/* Reads all that a peer recorded; `take` gets the records of each device in their order, and after
 * them NULL. False from it ends the reading. True: that was all, and whole. */
typedef bool smi_take_fn(void *arg, const struct smi_told *told,
			 const struct hal_wire_record *records, unsigned n);
bool smi_fetch(struct smi_peer *p, smi_take_fn *take, void *arg);

/* ---- trace_file.c ---- */

struct smi_trace_file;
/* To `path`, or "-". NULL after a line on standard error. Nothing of it is seen under its name
 * until it is whole, unless that is of a device, a pipe or the like. */
struct smi_trace_file *smi_open_trace(const char *path, const struct smi_peers *peers);
bool smi_write_trace(void *file, const struct smi_told *told,
		     const struct hal_wire_record *records, unsigned n);
/* Begins it, once all were started. False: that failed, and was said, here and below. */
bool smi_begin_trace(struct smi_trace_file *f);
/* What is written after the mark can be taken back. */
void smi_mark_trace(struct smi_trace_file *f);
bool smi_take_back(struct smi_trace_file *f);
/* How many events it has, and of how many devices. */
uint64_t smi_trace_events(const struct smi_trace_file *f);
unsigned smi_trace_devices(const struct smi_trace_file *f);
/* Ends it and frees f. Not is_wanted: nothing is left of it. */
int smi_close_trace(struct smi_trace_file *f, bool is_wanted);

#endif
