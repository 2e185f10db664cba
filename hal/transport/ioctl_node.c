/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nodes of the kernel driver: which file is one, whether it fits, and the texts for
 * everything that people meet before work runs. Each text ends with what to do.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xf86drm.h>

#include "hal/base/files.h"
#include "hal/transport/ioctl.h"
#include "kernel-uapi/include/tessera_drm.h"

#define DRIVER "tessera"
#define LEAST_ABI 4u	/* the oldest driver that work runs with; accel_check_abi for more */

static int open_path(const char *path, int flags)
{
	return open(path, flags);
}

static void store(volatile uint32_t *at, uint32_t value)
{
	*at = value;
}

static const struct accel_sys kernel = {
	.root = "", .open = open_path, .close = close, .ioctl = drmIoctl,
	.version = drmGetVersion, .free_version = drmFreeVersion, .mmap = mmap,
	.munmap = munmap, .store = store,
};
const struct accel_sys *accel_sys = &kernel;

int accel_query(int fd, uint32_t type, uint32_t ctx, void *data, uint64_t *bytes)
{
	return accel_query_records(fd, type, ctx, data, bytes, 0);
}

int accel_query_records(int fd, uint32_t type, uint32_t ctx, void *data, uint64_t *bytes,
			uint32_t record_bytes)
{
	struct drm_tessera_query q = { .type = type, .ctx = ctx, .data = (uintptr_t)data,
				       .size = *bytes > UINT32_MAX ? UINT32_MAX :
					       (uint32_t)*bytes, .record_bytes = record_bytes };

	if (accel_sys->ioctl(fd, DRM_IOCTL_TESSERA_QUERY, &q))
		return errno;
	*bytes = q.size;
	return 0;
}

int accel_map(int fd, uint32_t ctx, uint32_t handle, uint64_t va)
{
	struct drm_tessera_map_op op = { .handle = handle, .va = va,
					 .flags = DRM_TESSERA_MAP_WRITE };
	struct drm_tessera_map m = { .ctx = ctx, .n_ops = 1, .op_bytes = sizeof(op),
				     .ops = (uintptr_t)&op };

	return accel_sys->ioctl(fd, DRM_IOCTL_TESSERA_MAP, &m) ? errno : 0;
}

/* ---- what to tell ---- */

int accel_missing(const char *path, struct err *err)
{
	char module[300];

	snprintf(module, sizeof(module), "%s/sys/module/" DRIVER, accel_sys->root);
	if (access(module, F_OK))
		return err_set(err, ERR_NOT_FOUND, "there is no node %s: the kernel driver is not "
			       "loaded. Load it: sudo modprobe tessera (kernel-uapi/README.md says "
			       "how it is installed)", path);
	return err_set(err, ERR_NOT_FOUND, "there is no node %s, though the kernel driver is "
		       "loaded. See which there are: ls /dev/accel; which cards, and whose "
		       "they are: lspci -k -d 1234:7e55; what the driver said: sudo dmesg | "
		       "grep tessera", path);
}

static int report_denied(const char *path, struct err *err)
{
	char full[300];
	struct passwd *me = getpwuid(geteuid());
	const char *name = me ? me->pw_name : "$USER";
	struct group *group;
	struct stat st;

	snprintf(full, sizeof(full), "%s%s", accel_sys->root, path);
	if (stat(full, &st) || !st.st_gid)
		return err_set(err, ERR_PERMISSION_DENIED, "%s may be opened by root alone. Give "
			       "it to the group render by our udev rule: sudo install -m 644 "
			       "udev/70-tessera.rules /etc/udev/rules.d/; sudo udevadm control "
			       "--reload; sudo udevadm trigger -s accel; sudo usermod -aG render "
			       "%s; then log in again", path, name);
	group = getgrgid(st.st_gid);
	return err_set(err, ERR_PERMISSION_DENIED, "%s may be opened by its group %s, and %s is "
		       "not in it: sudo usermod -aG %s %s, then log in again", path,
		       group ? group->gr_name : "(without a name)", name,
		       group ? group->gr_name : "render", name);
}

static int report_open(const char *path, int sysno, struct err *err)
{
	switch (sysno) {
	case ENOENT:
	case ENXIO:
		return accel_missing(path, err);
	case EACCES:
	case EPERM:
		return report_denied(path, err);
	case ENODEV:
		return err_set(err, ERR_UNAVAILABLE, "the device of %s is gone (unplugged, or its "
			       "driver was unbound). Look for it: lspci -k -d 1234:7e55", path);
	default:
		return err_sys(err, sysno, "opening %s", path);
	}
}

/* The driver is there and the device is not. */
static int report_given_up(const char *path, struct err *err)
{
	return err_set(err, ERR_UNAVAILABLE, "the kernel driver gave the device of %s up: it did "
		       "not come back from a reset, or was unplugged. See why: sudo dmesg | grep "
		       "tessera. Bind it again: echo ADDRESS | sudo tee "
		       "/sys/bus/pci/drivers/tessera/unbind, then the same to .../bind, with "
		       "ADDRESS from lspci -D -d 1234:7e55", path);
}

static bool is_given_up(int fd)
{
	struct drm_tessera_device d = { .is_usable = 1 };
	uint64_t bytes = sizeof(d);

	return accel_query(fd, DRM_TESSERA_QUERY_DEVICE, 0, &d, &bytes) == ENODEV ||
	       !d.is_usable;
}

int accel_refused(const char *path, int fd, int sysno, const char *what, struct err *err)
{
	switch (sysno) {
	case ENODEV:
		return report_given_up(path, err);
	case ECANCELED:
		if (is_given_up(fd))
			return report_given_up(path, err);
		return err_set(err, ERR_UNAVAILABLE, "a reset of %s ended this process's context "
			       "and all work in it (the device failed, or root asked for a reset, "
			       "of the function or of what this process has on it; sudo dmesg | "
			       "grep tessera tells which). Device memory kept its contents. Reset "
			       "the device in this process or start it again", path);
	case ETIMEDOUT:
		return err_set(err, ERR_UNAVAILABLE, "%s did not answer within 10 s: %s. The "
			       "kernel driver is resetting it; sudo dmesg | grep tessera tells "
			       "more. Then reset the device in this process or start it again",
			       path, what);
	case EMFILE:
		return err_set(err, ERR_RESOURCE_EXHAUSTED, "%s: %s: this process has as much of "
			       "the device as one may have. See the limits: grep . "
			       "/sys/module/tessera/parameters/file_*; root may write them", path,
			       what);
	default:
		return err_sys(err, sysno, "%s: %s", path, what);
	}
}

int accel_map_cpu(const char *path, int fd, uint64_t offset, uint64_t bytes, int prot,
		  const char *what, void **out, struct err *err)
{
	int sysno;
	void *p;

	/* In a child of fork it would keep the file open. */
	files_hold_forks();
	p = accel_sys->mmap(NULL, bytes, prot, MAP_SHARED, fd, (off_t)offset);
	sysno = errno;
	if (p != MAP_FAILED)
		madvise(p, bytes, MADV_DONTFORK);
	files_let_forks();
	if (p == MAP_FAILED)
		return accel_refused(path, fd, sysno, what, err);
	*out = p;
	return 0;
}

/* ---- opening ---- */

static int check_driver(const char *path, int fd, struct err *err)
{
	drmVersionPtr v = accel_sys->version(fd);
	char name[32] = "";

	if (!v)
		return err_set(err, ERR_FAILED_PRECONDITION, "%s is no accelerator's node. See "
			       "which there are: ls /dev/accel", path);
	if (v->name && v->name_len > 0)
		snprintf(name, sizeof(name), "%.*s", v->name_len, v->name);
	accel_sys->free_version(v);
	if (strcmp(name, DRIVER))
		return err_set(err, ERR_FAILED_PRECONDITION, "%s is an accelerator of the driver "
			       "\"%s\", no Tessera. See whose the others are: ls -l "
			       "/sys/class/accel/*/device/driver", path, name);
	return 0;
}

static int ask_abi(const char *path, int fd, uint32_t least, int code, const char *who,
		   struct drm_tessera_device *d, struct err *err)
{
	uint64_t bytes = sizeof(*d);
	int sysno = accel_query(fd, DRM_TESSERA_QUERY_DEVICE, 0, d, &bytes);

	if (sysno == ENOTTY || sysno == EINVAL || (!sysno && d->abi < least))
		return err_set(err, code, "the kernel driver of %s is too old: its interface is "
			       "version %u, %s %u. Install the driver of this release: sudo make "
			       "-C kernel-uapi dkms-tree && sudo dkms install tessera/0.1 && sudo "
			       "modprobe -r tessera && sudo modprobe tessera", path,
			       sysno ? 0 : d->abi, who, least);
	return sysno ? accel_refused(path, fd, sysno, "asking for the device's facts", err) : 0;
}

int accel_check_abi(const char *path, int fd, uint32_t least, const char *who, struct err *err)
{
	struct drm_tessera_device d = { 0 };

	return ask_abi(path, fd, least, ERR_UNIMPLEMENTED, who, &d, err);
}

static int check_device(const char *path, int fd, struct err *err)
{
	struct drm_tessera_device d = { 0 };
	int code = ask_abi(path, fd, LEAST_ABI, ERR_FAILED_PRECONDITION, "this build needs", &d,
			   err);

	return code || d.is_usable ? code : report_given_up(path, err);
}

static int check_identity(const char *path, int fd, struct hw_identify *id, struct err *err)
{
	uint64_t bytes = sizeof(*id);
	int sysno;

	memset(id, 0, sizeof(*id));
	sysno = accel_query(fd, DRM_TESSERA_QUERY_IDENTIFY, 0, id, &bytes);
	if (sysno)
		return accel_refused(path, fd, sysno, "asking who the device is", err);
	if (id->magic != HW_IDENTIFY_MAGIC || id->isa != ISA_VERSION)
		return err_set(err, ERR_FAILED_PRECONDITION, "the device of %s runs programs of "
			       "version %u, this build makes version %u: %s", path, id->isa,
			       ISA_VERSION, id->isa > ISA_VERSION ? "install a newer release of "
			       "Tessera" : "update the card's firmware, or install an older "
			       "release of Tessera");
	id->name[sizeof(id->name) - 1] = id->serial[sizeof(id->serial) - 1] = 0;
	id->firmware[sizeof(id->firmware) - 1] = 0;
	return 0;
}

int accel_open_owned(const char *path, struct files_own *own, int *fd,
		     struct hw_identify *identity, struct err *err)
{
	char full[300];
	int code, sysno;

	snprintf(full, sizeof(full), "%s%s", accel_sys->root, path);
	files_own_begin();
	*fd = accel_sys->open(full, O_RDWR | O_CLOEXEC);
	sysno = errno;
	files_own_end(own, fd);
	if (*fd < 0)
		return report_open(path, sysno, err);
	code = check_driver(path, *fd, err);
	if (!code)
		code = check_device(path, *fd, err);
	if (!code)
		code = check_identity(path, *fd, identity, err);
	if (code)
		files_close(own, fd, accel_sys->close);
	return code;
}

int accel_open(const char *path, int *fd, struct hw_identify *identity, struct err *err)
{
	struct files_own own = { 0 };
	int code = accel_open_owned(path, &own, fd, identity, err);

	files_disown(&own);
	return code;
}
