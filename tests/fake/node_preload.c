/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A node of the kernel driver that is a plain file, for a program that this library is
 * preloaded into: FAKE_OPEN is the errno that opening /dev/accel/accel0 gives, FAKE_ABI and
 * FAKE_USABLE are what the driver says of itself, FAKE_FABRIC is the number of a fabric
 * of two chips that it is in, FAKE_RESET is the errno of a reset by sysfs, after
 * which FAKE_DIES says that the device is no more.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <xf86drm.h>

#include "hal/hw/desc.h"
#include "kernel-uapi/include/tessera_drm.h"

static int is_dead;

static int number(const char *name, int otherwise)
{
	const char *text = getenv(name);

	return text ? atoi(text) : otherwise;
}

static void give(struct drm_tessera_query *q, const void *what, size_t bytes)
{
	memcpy((void *)(uintptr_t)q->data, what, bytes < q->size ? bytes : q->size);
	q->size = (uint32_t)bytes;
}

static int query(struct drm_tessera_query *q)
{
	struct drm_tessera_device d = { .abi = (uint32_t)number("FAKE_ABI", DRM_TESSERA_ABI),
		.is_usable = (uint32_t)(number("FAKE_USABLE", 1) && !is_dead) };
	struct hw_identify id = { .magic = HW_IDENTIFY_MAGIC, .isa = ISA_VERSION,
		.name = "Tessera T1", .serial = "T1-7", .firmware = "1.2", .hbm_bytes = 1 << 30 };
	uint64_t fabric = (uint64_t)number("FAKE_FABRIC", 0);
	struct drm_tessera_memory m = { .hbm_total = 1 << 30, .hbm_used = 3 << 20,
					.hbm_largest_free = 5 << 20 };
	struct hw_telemetry t = { .time_ns = 1000, .busy_compute_ns = 250, .n_execute = 9,
				  .temperature_mc = 51500, .clock_khz = 1000000 };
	struct hw_ras r = { .ecc_corrected = 2 };

	struct hw_link link = { .is_down = 1, .is = (uint8_t)number("FAKE_LINK", 0), .tx_bytes = 5,
				.rx_bytes = 6, .n_packets = 7,
				.n_errors = (uint64_t)number("FAKE_REFUSED", 0) };

	if (fabric) {	/* two chips in a row, of which it is the second */
		id.fabric = fabric;
		id.chip = id.coords[0] = 1;
		id.n_chips = id.shape[0] = 2;
		id.shape[1] = id.shape[2] = 1;
	}
	if (q->type == DRM_TESSERA_QUERY_LINKS && link.is &&
	    q->record_bytes == sizeof(link)) {
		give(q, &link, sizeof(link));
		return 0;
	}
	switch (q->type) {
	case DRM_TESSERA_QUERY_DEVICE: give(q, &d, sizeof(d)); return 0;
	case DRM_TESSERA_QUERY_IDENTIFY: give(q, &id, sizeof(id)); return 0;
	case DRM_TESSERA_QUERY_MEMORY: give(q, &m, sizeof(m)); return 0;
	case DRM_TESSERA_QUERY_TELEMETRY: give(q, &t, sizeof(t)); return 0;
	case DRM_TESSERA_QUERY_RAS: give(q, &r, sizeof(r)); return 0;
	default: errno = EINVAL; return -1;
	}
}

static int version(struct drm_version *v)
{
	static const char name[] = "tessera";

	if (v->name)
		memcpy(v->name, name, v->name_len < 7 ? v->name_len : 7);
	v->name_len = 7;
	/* libdrm reads what it asked for, and copies it. */
	if (v->date)
		*v->date = '1';
	if (v->desc)
		*v->desc = '1';
	v->date_len = v->desc_len = 1;
	return 0;
}

__attribute__((visibility("default"))) int ioctl(int fd, unsigned long request, ...)
{
	int (*next)(int, unsigned long, ...) = (int (*)(int, unsigned long, ...))
		(uintptr_t)dlsym(RTLD_NEXT, "ioctl");
	va_list ap;
	void *arg;

	va_start(ap, request);
	arg = va_arg(ap, void *);
	va_end(ap);
	switch (request) {
	case DRM_IOCTL_VERSION:
		return version(arg);
	case DRM_IOCTL_TESSERA_CTX_CREATE:
		errno = number("FAKE_CTX", 0);
		return errno ? -1 : 0;
	case DRM_IOCTL_TESSERA_QUERY:
		return query(arg);
	default:
		return next(fd, request, arg);
	}
}

__attribute__((visibility("default"))) int open(const char *path, int flags, ...)
{
	int (*next)(const char *, int, ...) = (int (*)(const char *, int, ...))
		(uintptr_t)dlsym(RTLD_NEXT, "open");
	va_list ap;
	int mode;

	va_start(ap, flags);
	mode = flags & O_CREAT ? va_arg(ap, int) : 0;
	va_end(ap);
	errno = strstr(path, "/dev/accel/accel0") ? number("FAKE_OPEN", 0) : 0;
	if (strstr(path, "/reset") && flags & O_WRONLY) {
		errno = number("FAKE_RESET", 0);
		is_dead = number("FAKE_DIES", 0);
	}
	return errno ? -1 : next(path, flags, mode);
}
