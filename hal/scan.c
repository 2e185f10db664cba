/* SPDX-License-Identifier: Apache-2.0 */
/* What hardware there is, as sysfs, libpci and the kernel driver's nodes tell (scan.h). */
#define LOG_TAG "hal/scan"
#include "hal/scan.h"

#include <dirent.h>
#include <errno.h>
#include <pci/pci.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hal/base/files.h"
#include "hal/base/log.h"
#include "hal/hw/regs.h"
#include "hal/transport/ioctl.h"

struct list {
	struct hal_found *found;
	unsigned n, room;
	bool is_short;	/* memory ran out */
};

static void add(struct list *list, const struct hal_found *one)
{
	struct hal_found *grown;

	if (list->n == list->room) {
		grown = realloc(list->found, (list->room + 16) * sizeof(*grown));
		if (!grown) {
			list->is_short = true;
			return;
		}
		list->found = grown;
		list->room += 16;
	}
	list->found[list->n++] = *one;
}

void hal_found_init(struct hal_found *out, enum hal_kind kind, const char *bus_id)
{
	memset(out, 0, sizeof(*out));
	out->info.kind = kind;
	out->info.numa_node = -1;
	snprintf(out->info.name, sizeof(out->info.name), "Tessera T1");
	snprintf(out->info.bus_id, sizeof(out->info.bus_id), "%s", bus_id);
}

/* ---- PCI functions ---- */

/*
 * libpci's own handler of errors ends the process; ours leaves the call by longjmp. What
 * libpci holds at that moment is lost unless it is known here: so it never scans the bus
 * (it would hold the folder), it looks at one function at a time, and what it needs for
 * that is freed by whoever asked.
 */
static __thread jmp_buf pci_failed;

static __attribute__((noreturn)) void leave_pci(char *fmt, ...)
{
	(void)fmt;
	longjmp(pci_failed, 1);
}

static void say_nothing(char *fmt, ...)
{
	(void)fmt;
}

void hal_scan_function(const char *bdf, enum vfio_way way, struct hal_found *out)
{
	struct vfio_place p;
	struct err why;
	int code = vfio_find(bdf, &p, &why);

	hal_found_init(out, HAL_KIND_VFIO, bdf);
	snprintf(out->where, sizeof(out->where), "%s%s", way == VFIO_WITH_IOMMU ? "" : "noiommu:",
		 bdf);
	if (!code) {
		out->info.numa_node = p.numa_node;
		snprintf(out->info.driver, sizeof(out->info.driver), "%s",
			 *p.driver ? p.driver : "none");
		code = vfio_check(&p, way, &why);
	}
	out->info.can_open = !code;
	snprintf(out->info.state, sizeof(out->info.state), "%.95s", code ? why.msg : "ready");
}

/* Whether a driver made a node for the function: then it is listed by that. */
static bool has_node(const char *bdf)
{
	char path[300];

	snprintf(path, sizeof(path), "%s/sys/bus/pci/devices/%s/accel", accel_sys->root, bdf);
	return !access(path, F_OK);
}

static void add_function(struct list *list, struct pci_dev *p)
{
	struct hal_found found;
	const char *driver;
	char id[32];

	pci_fill_info(p, PCI_FILL_DRIVER | PCI_FILL_SIZES);
	driver = pci_get_string_property(p, PCI_FILL_DRIVER);
	/* Listed as its accel node instead. */
	if (driver && !strcmp(driver, "tessera"))
		return;
	snprintf(id, sizeof(id), "%04x:%02x:%02x.%d", p->domain, p->bus, p->dev, p->func);
	if (has_node(id))
		return;
	hal_scan_function(id, VFIO_WITH_IOMMU, &found);
	found.info.hbm_bytes = p->size[2];
	add(list, &found);
}

static bool start_pci(struct pci_access *access, char *path)
{
	access->error = leave_pci;
	access->warning = access->debug = say_nothing;
	if (setjmp(pci_failed))
		return false;
	/* Nothing but sysfs: as root libpci would go on to the machine's I/O ports. */
	access->method = PCI_ACCESS_SYS_BUS_PCI;
	pci_set_param(access, "sysfs.path", path);
	pci_init(access);
	return true;
}

/* A function that is unplugged meanwhile is passed over; the others are found. */
static void look_at(struct list *list, struct pci_access *access, const char *bdf)
{
	struct pci_dev *volatile p = NULL;
	unsigned domain, bus, slot, function;
	int n = 0;

	if (sscanf(bdf, "%x:%2x:%2x.%1o%n", &domain, &bus, &slot, &function, &n) != 4 || bdf[n])
		return;
	if (!setjmp(pci_failed)) {
		p = pci_get_dev(access, (int)domain, (int)bus, (int)slot, (int)function);
		pci_fill_info(p, PCI_FILL_IDENT);
		if (p->vendor_id == HW_PCI_VENDOR && p->device_id == HW_PCI_DEVICE)
			add_function(list, p);
	} else {
		log_info("libpci could not look at the PCI function %s", bdf);
	}
	if (p)
		pci_free_dev(p);
}

static int no_dots(const struct dirent *e)
{
	return *e->d_name != '.';
}

static void scan_pci(struct list *list)
{
	struct pci_access *access;
	struct dirent **names;
	char path[512];
	int n;

	snprintf(path, sizeof(path), "%s/sys/bus/pci/devices", vfio_sys->root);
	n = scandir(path, &names, no_dots, alphasort);
	if (n < 0) {
		log_info("no PCI here: %s: %s", path, strerror(errno));
		return;
	}
	*strrchr(path, '/') = 0;
	access = pci_alloc();
	if (start_pci(access, path))
		for (int i = 0; i < n; i++)
			look_at(list, access, names[i]->d_name);
	else
		log_info("libpci can't use %s", path);
	pci_cleanup(access);
	for (int i = 0; i < n; i++)
		free(names[i]);
	free(names);
}

/* ---- nodes of the kernel driver ---- */

void hal_scan_node(const char *path, struct hal_found *out)
{
	const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
	struct hw_identify identity;
	struct files_own own = { 0 };
	struct err why;
	char text[300], id[64];
	FILE *f;
	int fd;

	snprintf(id, sizeof(id), "accel:%.57s", name);
	hal_found_init(out, HAL_KIND_ACCEL, id);
	snprintf(out->where, sizeof(out->where), "%s", path);
	snprintf(out->info.driver, sizeof(out->info.driver), "tessera");
	snprintf(text, sizeof(text), "%s/sys/class/accel/%.100s/device/numa_node",
		 accel_sys->root, name);
	f = fopen(text, "re");
	if (f && fscanf(f, "%d", &out->info.numa_node) != 1)
		out->info.numa_node = -1;
	if (f)
		fclose(f);
	if (accel_open_owned(path, &own, &fd, &identity, &why)) {
		snprintf(out->info.state, sizeof(out->info.state), "%.95s", why.msg);
		return;
	}
	files_close(&own, &fd, accel_sys->close);
	out->info.can_open = true;
	snprintf(out->info.state, sizeof(out->info.state), "ready");
	out->info.hbm_bytes = identity.hbm_bytes;
	out->info.cores = identity.cores;
	out->info.is_model = identity.is_model != 0;
	memcpy(out->info.serial, identity.serial, sizeof(out->info.serial) - 1);
	memcpy(out->info.firmware, identity.firmware, sizeof(out->info.firmware) - 1);
}

/* Whether accelN is a T1's. */
static bool is_ours(const char *name)
{
	char path[300], link[300];
	ssize_t n;

	snprintf(path, sizeof(path), "%s/sys/class/accel/%.100s/device/driver",
		 accel_sys->root, name);
	n = readlink(path, link, sizeof(link) - 1);
	if (n <= 0)
		return false;
	link[n] = 0;
	return strrchr(link, '/') && !strcmp(strrchr(link, '/') + 1, "tessera");
}

static int is_node(const struct dirent *d)
{
	return !strncmp(d->d_name, "accel", 5);
}

static void scan_accel(struct list *list)
{
	char path[300];
	struct dirent **found;
	int n;

	snprintf(path, sizeof(path), "%s/sys/class/accel", accel_sys->root);
	n = scandir(path, &found, is_node, versionsort);
	for (int i = 0; i < n; i++) {
		if (is_ours(found[i]->d_name)) {
			struct hal_found one;

			snprintf(path, sizeof(path), "/dev/accel/%.100s", found[i]->d_name);
			hal_scan_node(path, &one);
			add(list, &one);
		}
		free(found[i]);
	}
	if (n >= 0)
		free(found);
}

int hal_scan(struct hal_found **out, unsigned *n, struct err *err)
{
	struct list list = { 0 };

	scan_accel(&list);
	scan_pci(&list);
	if (list.is_short) {
		free(list.found);
		return err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory after %u devices",
			       list.n);
	}
	*out = list.found;
	*n = list.n;
	return 0;
}
