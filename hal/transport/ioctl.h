/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HAL_TRANSPORT_IOCTL_H
#define HAL_TRANSPORT_IOCTL_H
/*
 * The kernel driver's node /dev/accel/accelN: opening it, asking it, and what to tell
 * people when it refuses. ioctl.c makes a transport of it. Private to hal/.
 *
 * Nothing here keeps state; any thread may call. An open node is an fd.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "hal/base/err.h"
#include "hal/hw/desc.h"

struct _drmVersion;
struct files_own;

/* The kernel and the device, as they are called. Tests put their own in its place. */
struct accel_sys {
	const char *root;	/* in front of /sys and /dev; "" */
	int (*open)(const char *path, int flags);
	int (*close)(int fd);
	int (*ioctl)(int fd, unsigned long request, void *arg);
	struct _drmVersion *(*version)(int fd);
	void (*free_version)(struct _drmVersion *v);
	void *(*mmap)(void *at, size_t bytes, int prot, int flags, int fd, off_t offset);
	int (*munmap)(void *at, size_t bytes);
	/* A store to a doorbell or a wake page, after all that was stored before. */
	void (*store)(volatile uint32_t *at, uint32_t value);
};
extern const struct accel_sys *accel_sys;

/*
 * Opens the node `path` if it is a T1's and its driver and device fit this build.
 * NOT_FOUND: no such node; PERMISSION_DENIED; FAILED_PRECONDITION: another driver's, or
 * versions that do not fit; UNAVAILABLE: the driver gave the device up. The text says
 * what to do; *fd is -1 then. *identity is as the device gave it.
 */
int accel_open(const char *path, int *fd, struct hw_identify *identity, struct err *err);
/* And no child of fork keeps it; files_close ends it. */
int accel_open_owned(const char *path, struct files_own *own, int *fd,
		     struct hw_identify *identity, struct err *err);
/* QUERY of `type`; *bytes is the room, then what there is. 0, or an errno. */
int accel_query(int fd, uint32_t type, uint32_t ctx, void *data, uint64_t *bytes);
/* The same of an array, whose records are of record_bytes here. */
int accel_query_records(int fd, uint32_t type, uint32_t ctx, void *data, uint64_t *bytes,
			uint32_t record_bytes);
/* UNIMPLEMENTED, with what to do, if the driver's interface is older than `least`, which `who`
 * ("traces need") wants. */
int accel_check_abi(const char *path, int fd, uint32_t least, const char *who, struct err *err);
/* What `sysno` means of any call on an open node; `what` was asked for. */
int accel_refused(const char *path, int fd, int sysno, const char *what, struct err *err);
/* Why there is no node at `path`. */
int accel_missing(const char *path, struct err *err);
/* Maps a buffer into our address space, not into that of children. */
int accel_map_cpu(const char *path, int fd, uint64_t offset, uint64_t bytes, int prot,
		  const char *what, void **out, struct err *err);

/* Maps a whole buffer, writable, in a context. 0, or an errno. */
int accel_map(int fd, uint32_t ctx, uint32_t handle, uint64_t va);

/* ---- ioctl_hbm.c: the HBM of one open node, as hal_transport_ops has it ---- */

struct accel_block;
struct hal_room;
struct str;

struct accel_hbm {
	const char *path;	/* of the node; fd is open on it */
	int fd;
	bool is_seen;		/* by the CPU */
	uint64_t most;		/* that this process wants to have: TESSERA_HBM_BYTES */
	struct accel_block *blocks;
};

/* Reads what this process may have, which becomes identity->hbm_bytes. Takes nothing.
 * INVALID_ARGUMENT, RESOURCE_EXHAUSTED: TESSERA_HBM_BYTES can't be. */
int accel_hbm_start(struct accel_hbm *h, const char *path, int fd, struct hw_identify *identity,
		    struct err *err);
/* Unmaps and closes all blocks; the context has ended. One that never started is fine. */
void accel_hbm_end(struct accel_hbm *h);
/* Puts all blocks into a new context. */
int accel_hbm_map_all(struct accel_hbm *h, uint32_t ctx, struct err *err);
int accel_hbm_take(struct accel_hbm *h, uint32_t ctx, uint64_t offset, uint64_t least,
		   uint64_t wanted, uint64_t *bytes, void **host, struct err *err);
int accel_hbm_give(struct accel_hbm *h, uint32_t ctx, uint64_t offset, struct err *err);
void accel_hbm_room(struct accel_hbm *h, struct hal_room *out);
void accel_hbm_holders(struct accel_hbm *h, uint64_t others, struct str *out);
/* Has the context `ctx` of `by` see all of h's blocks in [offset, + bytes), each at base + where it
 * begins. UNIMPLEMENTED: there is no way between the two; ABORTED: h's card is being reset. */
int accel_hbm_show(struct accel_hbm *h, uint64_t offset, uint64_t bytes, struct accel_hbm *by,
		   uint32_t ctx, uint64_t base, struct err *err);

/* ---- ioctl_peer.c: blocks that contexts of other cards see ---- */

/* The block `handle` of owner's at `va` in by's context, unless it is there already. */
int accel_peer_map(const struct accel_hbm *owner, uint32_t handle, const struct accel_hbm *by,
		   uint32_t ctx, uint64_t va, struct err *err);
/* Nobody sees the block any more: 0, or the errno of who sees it still. */
int accel_peer_drop(const struct accel_hbm *owner, uint32_t handle);
/* All that h's context sees of others, and others of h. */
void accel_peer_forget(const struct accel_hbm *h);

#endif
