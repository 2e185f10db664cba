/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What sysfs says of a PCI function, and what to tell people whose function can't be
 * reached yet: each text names what was found and the command that mends it.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hal/base/files.h"
#include "hal/bus/vfio.h"

#define BIND "sudo tessera-vfio-bind"
#define MODE "/sys/module/vfio/parameters/enable_unsafe_noiommu_mode"

static int no_room(const char *what, struct err *err)
{
	return err_set(err, ERR_INVALID_ARGUMENT, "%s: a path that is too long", what);
}

/* The last word of a link's target; "" if there is none. */
static void read_link(const char *path, char *out, size_t bytes)
{
	char target[4096];
	ssize_t n = readlink(path, target, sizeof(target) - 1);
	const char *last;

	target[n > 0 ? n : 0] = 0;
	last = strrchr(target, '/');
	last = last ? last + 1 : target;
	*out = 0;
	if (strlen(last) < bytes)
		strcpy(out, last);
}

static void find_cdev(const char *dir, struct vfio_place *p)
{
	char path[512];
	struct dirent *e;
	DIR *d;

	if (snprintf(path, sizeof(path), "%s/vfio-dev", dir) >= (int)sizeof(path))
		return;
	d = opendir(path);
	while (d && (e = readdir(d)))
		if (!strncmp(e->d_name, "vfio", 4))
			snprintf(p->cdev, sizeof(p->cdev), "/dev/vfio/devices/%s", e->d_name);
	if (d)
		closedir(d);
}

int vfio_find(const char *bdf, struct vfio_place *out, struct err *err)
{
	const char *root = vfio_sys->root;
	struct vfio_place p = { .group = -1 };
	unsigned domain, bus, slot, fn;
	char dir[400], path[512], word[64];
	int n = 0;

	if (sscanf(bdf, "%4x:%2x:%2x.%1o%n", &domain, &bus, &slot, &fn, &n) != 4 || bdf[n])
		return err_set(err, ERR_INVALID_ARGUMENT, "\"%s\" is no PCI address: write it "
			       "like 0000:01:00.0 (lspci -D -d 1234:7e55 lists them)", bdf);
	snprintf(p.bdf, sizeof(p.bdf), "%04x:%02x:%02x.%o", domain & 0xffff, bus & 0xff,
		 slot & 0x1f, fn & 7);
	if (snprintf(dir, sizeof(dir), "%s/sys/bus/pci/devices/%s", root, p.bdf) >=
	    (int)sizeof(dir))
		return no_room(root, err);
	snprintf(path, sizeof(path), "%s/vendor", dir);
	if (!files_read_line(path, word, sizeof(word)))
		return err_set(err, ERR_NOT_FOUND, "there is no PCI function %s: lspci -D -d "
			       "1234:7e55 lists those of this machine", p.bdf);
	p.vendor = (unsigned)strtoul(word, NULL, 16);
	snprintf(path, sizeof(path), "%s/device", dir);
	files_read_line(path, word, sizeof(word));
	p.device = (unsigned)strtoul(word, NULL, 16);
	snprintf(path, sizeof(path), "%s/numa_node", dir);
	p.numa_node = files_read_line(path, word, sizeof(word)) ? atoi(word) : -1;
	snprintf(path, sizeof(path), "%s/driver", dir);
	read_link(path, p.driver, sizeof(p.driver));
	snprintf(path, sizeof(path), "%s/iommu_group", dir);
	read_link(path, word, sizeof(word));
	if (*word) {
		p.group = atoi(word);
		snprintf(path, sizeof(path), "%s/sys/kernel/iommu_groups/%d/name", root,
			 p.group);
		files_read_line(path, word, sizeof(word));
		p.no_iommu = !strcmp(word, "vfio-noiommu");
		snprintf(p.node, sizeof(p.node), "/dev/vfio/%s%d",
			 p.no_iommu ? "noiommu-" : "", p.group);
	}
	find_cdev(dir, &p);
	*out = p;
	return 0;
}

static bool is_there(const char *below_root)
{
	char path[600];

	snprintf(path, sizeof(path), "%s%s", vfio_sys->root, below_root);
	return !access(path, F_OK);
}

static int not_bound(const struct vfio_place *p, struct err *err)
{
	if (!is_there("/sys/bus/pci/drivers/vfio-pci"))
		return err_set(err, ERR_FAILED_PRECONDITION, "%s can't be reached: the kernel has "
			       "no VFIO driver loaded. sudo modprobe vfio-pci loads it "
			       "(CONFIG_VFIO_PCI); then " BIND " %s gives it the device",
			       p->bdf, p->bdf);
	if (*p->driver)
		return err_set(err, ERR_FAILED_PRECONDITION, "%s belongs to the driver %s, not to "
			       "vfio-pci: " BIND " %s takes it from there", p->bdf, p->driver,
			       p->bdf);
	return err_set(err, ERR_FAILED_PRECONDITION, "%s is bound to no driver: " BIND " %s gives "
		       "it to vfio-pci", p->bdf, p->bdf);
}

static bool is_mode_on(void)
{
	char path[600], word[8];

	snprintf(path, sizeof(path), "%s" MODE, vfio_sys->root);
	return files_read_line(path, word, sizeof(word)) && (*word == 'Y' || *word == '1');
}

int vfio_mode_off(const struct vfio_place *p, struct err *err)
{
	if (!is_there(MODE))
		return err_set(err, ERR_FAILED_PRECONDITION, "vfio-noiommu:%s: this kernel is "
			       "built without CONFIG_VFIO_NOIOMMU. Turn on VT-d or AMD-Vi and name "
			       "vfio:%s, or use the kernel driver", p->bdf, p->bdf);
	return err_set(err, ERR_FAILED_PRECONDITION, "vfio-noiommu:%s: the kernel allows no device "
		       "without an IOMMU, because it could write all memory. If you trust it with "
		       "that: echo 1 | sudo tee " MODE " and then " BIND " %s", p->bdf, p->bdf);
}

int vfio_not_root(const struct vfio_place *p, struct err *err)
{
	return err_set(err, ERR_PERMISSION_DENIED, "vfio-noiommu:%s is for root alone (it needs "
		       "CAP_SYS_RAWIO, and CAP_SYS_ADMIN to learn where memory is): run as root, "
		       "or turn on VT-d or AMD-Vi and name vfio:%s", p->bdf, p->bdf);
}

int vfio_check(const struct vfio_place *p, enum vfio_way way, struct err *err)
{
	if (way == VFIO_WITHOUT_IOMMU && p->group >= 0 && !p->no_iommu)
		return err_set(err, ERR_FAILED_PRECONDITION, "%s has an IOMMU: name it vfio:%s "
			       "instead of vfio-noiommu:%s", p->bdf, p->bdf, p->bdf);
	/* While it is not allowed, vfio-pci takes no device without an IOMMU. */
	if (way == VFIO_WITHOUT_IOMMU && p->group < 0 && is_there("/sys/module/vfio") &&
	    !is_mode_on())
		return vfio_mode_off(p, err);
	/* Variants of the driver for one device are called *-vfio-pci, *_vfio_pci. */
	if (!strstr(p->driver, "vfio"))
		return not_bound(p, err);
	if (way == VFIO_WITH_IOMMU && (p->group < 0 || p->no_iommu))
		return err_set(err, ERR_FAILED_PRECONDITION, "%s has no IOMMU in front of it, so "
			       "it could write all memory. Turn on VT-d or AMD-Vi in the firmware "
			       "and boot with intel_iommu=on or amd_iommu=on (or, trusting it with "
			       "all memory, name it vfio-noiommu:%s)", p->bdf, p->bdf);
	if (way == VFIO_WITHOUT_IOMMU && p->group < 0)
		return err_set(err, ERR_FAILED_PRECONDITION, "%s is with %s, but has no group: "
			       BIND " --unbind %s, then " BIND " %s", p->bdf, p->driver, p->bdf,
			       p->bdf);
	return 0;
}

/* ---- who has it ---- */

static bool has_open(const char *pid, const char *node)
{
	char dir[300], path[600], target[600];
	bool found = false;
	struct dirent *e;
	DIR *d;

	snprintf(dir, sizeof(dir), "%s/proc/%s/fd", vfio_sys->root, pid);
	d = opendir(dir);
	while (d && !found && (e = readdir(d))) {
		ssize_t n;

		snprintf(path, sizeof(path), "%s/%s", dir, e->d_name);
		n = readlink(path, target, sizeof(target) - 1);
		target[n > 0 ? n : 0] = 0;
		found = !strcmp(target, node);
	}
	if (d)
		closedir(d);
	return found;
}

/* The process that has `node` open, with its name; false if none can be seen. */
static bool find_holder(const char *node, int *pid, char *name, size_t bytes)
{
	char path[400];
	struct dirent *e;
	bool found = false;
	DIR *d;

	snprintf(path, sizeof(path), "%s/proc", vfio_sys->root);
	d = opendir(path);
	while (d && !found && (e = readdir(d))) {
		if (e->d_name[0] < '1' || e->d_name[0] > '9' || !has_open(e->d_name, node))
			continue;
		found = true;
		*pid = atoi(e->d_name);
		snprintf(path, sizeof(path), "%s/proc/%s/comm", vfio_sys->root, e->d_name);
		files_read_line(path, name, bytes);
	}
	if (d)
		closedir(d);
	return found;
}

int vfio_busy(const struct vfio_place *p, const char *path, struct err *err)
{
	char name[64] = "", node[600], cdev[600];
	int pid = 0;

	/* Whichever way the other one came in. */
	snprintf(node, sizeof(node), "%s%s", vfio_sys->root, p->node);
	snprintf(cdev, sizeof(cdev), "%s%s", vfio_sys->root, p->cdev);
	if (!find_holder(node, &pid, name, sizeof(name)) &&
	    (!*p->cdev || !find_holder(cdev, &pid, name, sizeof(name))))
		return err_set(err, ERR_FAILED_PRECONDITION, "another process has %s: sudo fuser "
			       "-v %s names it; end it, or choose another device", p->bdf, path);
	if (pid == getpid())
		return err_set(err, ERR_FAILED_PRECONDITION, "this process has %s already, or "
			       "another device of its IOMMU group %d: one of a group at a time "
			       "(or use a kernel with CONFIG_IOMMUFD)", p->bdf, p->group);
	return err_set(err, ERR_FAILED_PRECONDITION, "process %d (%s) has %s: end it (kill %d), or "
		       "choose another device", pid, name, p->bdf, pid);
}

static int refused(const struct vfio_place *p, const char *path, int sysno, struct err *err)
{
	if ((sysno == EACCES || sysno == EPERM) && p->no_iommu)
		return vfio_not_root(p, err);
	if (sysno == EACCES || sysno == EPERM)
		return err_set(err, ERR_PERMISSION_DENIED, "no permission for %s, which is %s: "
			       "install udev/70-tessera.rules and sudo usermod -aG render $USER "
			       "(then log in again), or for now sudo chown $USER %s", path, p->bdf,
			       path);
	if (sysno == EBUSY)
		return vfio_busy(p, path, err);
	if (sysno == ENOENT || sysno == ENODEV || sysno == ENXIO)
		return err_set(err, ERR_FAILED_PRECONDITION, "%s is missing, though %s is bound to "
			       "%s: sudo modprobe -a vfio vfio-pci vfio_iommu_type1 makes it; a "
			       "container needs --device %s", path, p->bdf, p->driver, path);
	return err_sys(err, sysno, "opening %s for %s", path, p->bdf);
}

int vfio_open_node(const struct vfio_place *p, const char *node, struct files_own *own, int *out,
		   struct err *err)
{
	char path[600];
	int sysno;

	snprintf(path, sizeof(path), "%s%s", vfio_sys->root, node);
	files_own_begin();
	*out = vfio_sys->open(path, O_RDWR | O_CLOEXEC);
	sysno = errno;
	files_own_end(own, out);
	return *out < 0 ? refused(p, path, sysno, err) : 0;
}

int vfio_unsafe(const struct vfio_place *p, const char *module, struct err *err)
{
	return err_set(err, ERR_FAILED_PRECONDITION, "the kernel refuses %s because this machine "
		       "does not remap interrupts: turn that on in the firmware (or, trusting the "
		       "device: echo 1 | sudo tee /sys/module/%s/parameters/"
		       "allow_unsafe_interrupts)", p->bdf, module);
}

int vfio_not_viable(const struct vfio_place *p, struct err *err)
{
	char dir[300], path[600], driver[64], others[200] = "", first[32] = "";
	struct dirent *e;
	size_t n = 0;
	DIR *d;

	snprintf(dir, sizeof(dir), "%s/sys/kernel/iommu_groups/%d/devices", vfio_sys->root,
		 p->group);
	d = opendir(dir);
	while (d && (e = readdir(d))) {
		if (e->d_name[0] == '.' || !strcmp(e->d_name, p->bdf))
			continue;
		snprintf(path, sizeof(path), "%s/%s/driver", dir, e->d_name);
		read_link(path, driver, sizeof(driver));
		if (!*driver || strstr(driver, "vfio") || !strcmp(driver, "pcieport"))
			continue;
		if (!*first)
			snprintf(first, sizeof(first), "%.31s", e->d_name);
		if (n < sizeof(others))
			n += (size_t)snprintf(others + n, sizeof(others) - n, "%s%s of %s",
					      n ? ", " : "", e->d_name, driver);
	}
	if (d)
		closedir(d);
	if (!*first)
		return err_set(err, ERR_FAILED_PRECONDITION, "IOMMU group %d of %s is not viable: "
			       "look at its other functions (ls /sys/kernel/iommu_groups/%d/"
			       "devices) and " BIND " them, too", p->group, p->bdf, p->group);
	return err_set(err, ERR_FAILED_PRECONDITION, "IOMMU group %d of %s is not viable: drivers "
		       "of the host have %s. " BIND " %s gives the group to vfio-pci as a whole, "
		       "or move the card to a slot with a group of its own", p->group, p->bdf,
		       others, first);
}
