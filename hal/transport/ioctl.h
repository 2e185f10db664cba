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
	/* A store to a doorbell, after all that was stored before. */
	void (*store)(volatile uint32_t *at, uint32_t value);
};
extern const struct accel_sys *accel_sys;

/*
 * Opens the node `path` if it is a T1's and its driver and device fit this build.
 * NOT_FOUND: no such node; PERMISSION_DENIED; FAILED_PRECONDITION: another driver's, or
 * versions that do not fit; UNAVAILABLE: the driver gave the device up. The text says
 * what to do. *identity is as the device gave it.
 */
int accel_open(const char *path, int *fd, struct hw_identify *identity, struct err *err);
/* QUERY of `type`; *bytes is the room, then what there is. 0, or an errno. */
int accel_query(int fd, uint32_t type, uint32_t ctx, void *data, uint64_t *bytes);
/* What `sysno` means of any call on an open node; `what` was asked for. */
int accel_refused(const char *path, int fd, int sysno, const char *what, struct err *err);
/* Why there is no node at `path`. */
int accel_missing(const char *path, struct err *err);

#endif
