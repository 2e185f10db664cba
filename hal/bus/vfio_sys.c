/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel, as VFIO's files call it; tests put another table in its place. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "hal/bus/vfio.h"

#define CAP_IPC_LOCK 14

static int sys_open(const char *path, int flags)
{
	return open(path, flags);
}

static int sys_ioctl(int fd, unsigned long request, void *arg)
{
	return ioctl(fd, request, arg);
}

static bool may_pin_anything(void)
{
	FILE *f = fopen("/proc/self/status", "re");
	unsigned long long caps = 0;
	char line[256];

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "CapEff: %llx", &caps) == 1)
			break;
	if (f)
		fclose(f);
	return caps >> CAP_IPC_LOCK & 1;
}

static uint64_t sys_memlock(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_MEMLOCK, &limit) || limit.rlim_cur == RLIM_INFINITY ||
	    may_pin_anything())
		return UINT64_MAX;
	return limit.rlim_cur;
}

static const struct vfio_sys kernel = {
	.root = "", .open = sys_open, .close = close, .ioctl = sys_ioctl, .mmap = mmap,
	.munmap = munmap, .pread = pread, .pwrite = pwrite, .memlock = sys_memlock,
};
const struct vfio_sys *vfio_sys = &kernel;
