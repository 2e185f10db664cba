/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which devices there are: those that a selection names, else the hardware that is
 * there, else the model. What is found or named and can't be reached is listed with
 * the reason; nothing turns into the model silently.
 */
#define LOG_TAG "hal/enumerate"
#include <dirent.h>
#include <errno.h>
#include <pci/pci.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "hal/base/log.h"
#include "hal/bus.h"
#include "hal/bus/vfio.h"
#include "hal/hal_internal.h"
#include "hal/hw/regs.h"
#include "hal/sim/sim.h"
#include "hal/transport/ioctl.h"

#define MAX_DEVICES 64u

static struct hal_entry *add_entry(struct hal *hal, enum hal_kind kind, const char *bus_id,
				   struct err *err)
{
	struct hal_entry *e, *grown;

	if (hal->n_entries == hal->room) {
		grown = realloc(hal->entries, (hal->room + 16) * sizeof(*grown));
		if (!grown) {
			err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory");
			return NULL;
		}
		hal->entries = grown;
		hal->room += 16;
	}
	e = &hal->entries[hal->n_entries++];
	memset(e, 0, sizeof(*e));
	e->info.kind = kind;
	e->info.numa_node = -1;
	snprintf(e->info.name, sizeof(e->info.name), "Tessera T1");
	snprintf(e->info.bus_id, sizeof(e->info.bus_id), "%s", bus_id);
	return e;
}

static int add_sims(struct hal *hal, const char *options, struct err *err)
{
	struct sim_options o;
	int code;

	if (options != hal->sim_options)
		snprintf(hal->sim_options, sizeof(hal->sim_options), "%s", options);
	code = sim_options_parse(options, &o, err);
	if (code)
		return err_add(err, "the model's options \"%s\"", options);
	for (unsigned i = 0; i < (o.n_devices ? o.n_devices : 1); i++) {
		char id[32];
		struct hal_entry *e;

		snprintf(id, sizeof(id), "sim:%u", i);
		e = add_entry(hal, HAL_KIND_SIM, id, err);
		if (!e)
			return ERR_RESOURCE_EXHAUSTED;
		snprintf(e->where, sizeof(e->where), "%u", i);
		snprintf(e->info.driver, sizeof(e->info.driver), "in-process");
		snprintf(e->info.state, sizeof(e->info.state), "ready");
		e->info.is_model = e->info.can_open = true;
		e->info.hbm_bytes = o.hbm_bytes ? o.hbm_bytes : (uint64_t)4 << 30;
		e->transport = &hal_transport_direct;
		e->host.bus = &hal_bus_sim;
	}
	return 0;
}

int hal_sim_start(struct hal *hal, struct err *err)
{
	struct sim_options o;
	int code;

	if (hal->sim)
		return 0;
	code = sim_options_parse(hal->sim_options, &o, err);
	return code ? code : sim_create(&o, &hal->sim, err);
}

/* ---- hardware ---- */

/* libpci's own handler ends the process. */
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

/* What can't be opened is listed with the reason, which opening it gives in full. */
static void judge_function(struct hal_entry *e, const char *bdf, enum vfio_way way)
{
	struct vfio_place p;
	struct err why;
	int code = vfio_find(bdf, &p, &why);

	snprintf(e->where, sizeof(e->where), "%s%s", way == VFIO_WITH_IOMMU ? "" : "noiommu:",
		 bdf);
	e->transport = &hal_transport_direct;
	e->host.bus = &hal_bus_vfio;
	if (!code) {
		e->info.numa_node = p.numa_node;
		snprintf(e->info.driver, sizeof(e->info.driver), "%s",
			 *p.driver ? p.driver : "none");
		code = vfio_check(&p, way, &why);
	}
	e->info.can_open = !code;
	snprintf(e->info.state, sizeof(e->info.state), "%.95s", code ? why.msg : "ready");
}

/* Whether a driver made a node for the function: then it is listed by that. */
static bool has_node(const char *bdf)
{
	char path[300];

	snprintf(path, sizeof(path), "%s/sys/bus/pci/devices/%s/accel", accel_sys->root, bdf);
	return !access(path, F_OK);
}

static void add_function(struct hal *hal, struct pci_dev *p)
{
	const char *driver;
	struct hal_entry *e;
	char id[32];

	pci_fill_info(p, PCI_FILL_DRIVER | PCI_FILL_SIZES);
	driver = pci_get_string_property(p, PCI_FILL_DRIVER);
	/* Listed as its accel node instead. */
	if (driver && !strcmp(driver, "tessera"))
		return;
	snprintf(id, sizeof(id), "%04x:%02x:%02x.%d", p->domain, p->bus, p->dev, p->func);
	if (has_node(id))
		return;
	e = add_entry(hal, HAL_KIND_VFIO, id, NULL);
	if (!e)
		return;
	e->info.hbm_bytes = p->size[2];
	judge_function(e, id, VFIO_WITH_IOMMU);
}

static void scan_pci(struct hal *hal)
{
	struct pci_access *volatile access = pci_alloc();
	char path[512];

	snprintf(path, sizeof(path), "%s/sys/bus/pci", vfio_sys->root);
	pci_set_param(access, "sysfs.path", path);
	access->error = leave_pci;
	access->warning = access->debug = say_nothing;
	if (!setjmp(pci_failed)) {
		pci_init(access);
		pci_scan_bus(access);
		for (struct pci_dev *p = access->devices; p; p = p->next) {
			pci_fill_info(p, PCI_FILL_IDENT);
			if (p->vendor_id == HW_PCI_VENDOR && p->device_id == HW_PCI_DEVICE)
				add_function(hal, p);
		}
		pci_cleanup(access);
	} else {
		/* No PCI here, or no access to it: there is nothing to find. What
		 * libpci had allocated is lost, once in the life of a HAL. */
		log_info("libpci could not look at the PCI bus");
	}
}

/* Lists a node of the kernel driver with what it tells without being disturbed. */
static struct hal_entry *add_accel(struct hal *hal, const char *path, struct err *err)
{
	const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
	struct hw_identify identity;
	struct hal_entry *e;
	struct err why;
	char text[300];
	FILE *f;
	int fd;

	snprintf(text, sizeof(text), "accel:%.57s", name);
	e = add_entry(hal, HAL_KIND_ACCEL, text, err);
	if (!e)
		return NULL;
	e->transport = &hal_transport_ioctl;
	snprintf(e->where, sizeof(e->where), "%s", path);
	snprintf(e->info.driver, sizeof(e->info.driver), "tessera");
	snprintf(text, sizeof(text), "%s/sys/class/accel/%.100s/device/numa_node",
		 accel_sys->root, name);
	f = fopen(text, "re");
	if (f && fscanf(f, "%d", &e->info.numa_node) != 1)
		e->info.numa_node = -1;
	if (f)
		fclose(f);
	if (accel_open(path, &fd, &identity, &why)) {
		snprintf(e->info.state, sizeof(e->info.state), "%.95s", why.msg);
		return e;
	}
	accel_sys->close(fd);
	e->info.can_open = true;
	snprintf(e->info.state, sizeof(e->info.state), "ready");
	e->info.hbm_bytes = identity.hbm_bytes;
	e->info.cores = identity.cores;
	e->info.is_model = identity.is_model != 0;
	memcpy(e->info.serial, identity.serial, sizeof(e->info.serial) - 1);
	memcpy(e->info.firmware, identity.firmware, sizeof(e->info.firmware) - 1);
	return e;
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

static void scan_accel(struct hal *hal)
{
	char path[300];
	struct dirent **found;
	int n;

	snprintf(path, sizeof(path), "%s/sys/class/accel", accel_sys->root);
	n = scandir(path, &found, is_node, versionsort);
	for (int i = 0; i < n; i++) {
		if (is_ours(found[i]->d_name)) {
			snprintf(path, sizeof(path), "/dev/accel/%.100s", found[i]->d_name);
			add_accel(hal, path, NULL);
		}
		free(found[i]);
	}
	if (n >= 0)
		free(found);
}

/* "/dev/accel/accel0", or "0" for short. */
static int add_named_accel(struct hal *hal, const char *where, struct err *err)
{
	char path[300], full[400];
	struct stat st;

	snprintf(path, sizeof(path), "%s%s", where[strspn(where, "0123456789")] || !*where ? "" :
		 "/dev/accel/accel", where);
	if (*path != '/' || strlen(path) >= sizeof(((struct hal_entry *)0)->where))
		return err_set(err, ERR_INVALID_ARGUMENT, "TESSERA_DEVICES: \"accel:%s\" needs the "
			       "path of a node, as accel:/dev/accel/accel0, or its number", where);
	snprintf(full, sizeof(full), "%s%s", accel_sys->root, path);
	if (stat(full, &st))
		return errno == ENOENT || errno == ENOTDIR ? accel_missing(path, err) :
		       err_sys(err, errno, "TESSERA_DEVICES names the node %s", path);
	return add_accel(hal, path, err) ? 0 : ERR_RESOURCE_EXHAUSTED;
}

/* ---- other processes ---- */

static int add_server(struct hal *hal, const char *path, struct err *err)
{
	size_t n = strlen(path), room = sizeof(((struct hal_device_info *)0)->bus_id) - 11;
	struct hal_entry *e;
	struct stat st;
	char id[64];

	if (!n || n >= sizeof(((struct sockaddr_un *)0)->sun_path))
		return err_set(err, ERR_INVALID_ARGUMENT, "TESSERA_DEVICES: \"vfio-user:%s\" "
			       "needs the path of a socket, at most 107 characters", path);
	if (stat(path, &st))
		return err_sys(err, errno, "TESSERA_DEVICES names the socket %s; start its "
			       "server (tessera-sim --socket-dir DIR) or correct the name", path);
	if (!S_ISSOCK(st.st_mode))
		return err_set(err, ERR_INVALID_ARGUMENT, "TESSERA_DEVICES: %s is no socket; "
			       "tessera-sim makes DIR/0.sock, DIR/1.sock, ...", path);
	/* A long path is known by its end. */
	snprintf(id, sizeof(id), "vfio-user:%s", path + (n > room ? n - room : 0));
	e = add_entry(hal, HAL_KIND_VFIO_USER, id, err);
	if (!e)
		return ERR_RESOURCE_EXHAUSTED;
	snprintf(e->where, sizeof(e->where), "%s", path);
	snprintf(e->info.driver, sizeof(e->info.driver), "vfio-user");
	snprintf(e->info.state, sizeof(e->info.state), "ready");
	e->info.can_open = true;
	e->transport = &hal_transport_direct;
	e->host.bus = &hal_bus_vfio_user;
	return 0;
}

static int add_named_function(struct hal *hal, const char *name, enum vfio_way way,
			      struct err *err)
{
	struct vfio_place p;
	struct hal_entry *e;
	int code = vfio_find(name, &p, err);

	if (code)
		return err_add(err, "TESSERA_DEVICES");
	if (p.vendor != HW_PCI_VENDOR || p.device != HW_PCI_DEVICE)
		return err_set(err, ERR_INVALID_ARGUMENT, "TESSERA_DEVICES: %s is %04x:%04x, not a "
			       "T1 (%04x:%04x): lspci -D -d 1234:7e55 lists those of this machine",
			       p.bdf, p.vendor, p.device, HW_PCI_VENDOR, HW_PCI_DEVICE);
	e = add_entry(hal, HAL_KIND_VFIO, p.bdf, err);
	if (!e)
		return ERR_RESOURCE_EXHAUSTED;
	judge_function(e, p.bdf, way);
	return 0;
}

/* "vfio-user:PATH,vfio-user:PATH", "vfio:ADDRESS,ADDRESS": a kind holds for the words
 * behind it, up to the next. */
static int add_named(struct hal *hal, const char *devices, struct err *err)
{
	char *copy = strdup(devices), *save = NULL, kind = 0;
	int code = 0;

	if (!copy)
		return err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory");
	for (char *w = strtok_r(copy, ",", &save); w && !code; w = strtok_r(NULL, ",", &save)) {
		if (!strncmp(w, "vfio-user:", 10)) {
			kind = 'u';
			code = add_server(hal, w + 10, err);
		} else if (!strncmp(w, "vfio:", 5)) {
			kind = 'v';
			code = add_named_function(hal, w + 5, VFIO_WITH_IOMMU, err);
		} else if (!strncmp(w, "vfio-noiommu:", 13)) {
			kind = 'n';
			code = add_named_function(hal, w + 13, VFIO_WITHOUT_IOMMU, err);
		} else if (!strncmp(w, "accel:", 6)) {
			kind = 'a';
			code = add_named_accel(hal, w + 6, err);
		} else if (kind == 'u' || kind == 'a') {
			code = err_set(err, ERR_INVALID_ARGUMENT, "TESSERA_DEVICES: \"%s\" after a "
				       "%s device: say %s again", w, kind == 'u' ? "vfio-user" :
				       "accel", kind == 'u' ? "vfio-user:" : "accel:");
		} else {
			code = add_named_function(hal, w, kind == 'v' ? VFIO_WITH_IOMMU :
						  VFIO_WITHOUT_IOMMU, err);
		}
	}
	free(copy);
	return code;
}

/* ---- the selection ---- */

int hal_enumerate(struct hal *hal, const char *devices, struct err *err)
{
	if (!strcmp(devices, "sim"))
		return add_sims(hal, hal->sim_options, err);
	if (!strncmp(devices, "sim:", 4))
		return add_sims(hal, devices + 4, err);
	if (!strncmp(devices, "vfio-user:", 10) || !strncmp(devices, "vfio:", 5) ||
	    !strncmp(devices, "vfio-noiommu:", 13) || !strncmp(devices, "accel:", 6))
		return add_named(hal, devices, err);
	if (*devices)
		return err_set(err, ERR_INVALID_ARGUMENT, "TESSERA_DEVICES=\"%s\": say sim, "
			       "sim:devices=N,hbm=SIZE, vfio:ADDRESS, vfio-noiommu:ADDRESS, "
			       "vfio-user:SOCKET or accel:NODE", devices);
	scan_accel(hal);
	scan_pci(hal);
	return hal->n_entries ? 0 : add_sims(hal, hal->sim_options, err);
}

void hal_destroy(struct hal *hal)
{
	if (!hal)
		return;
	for (unsigned i = 0; i < hal->n_entries; i++)
		hal_device_close(hal->entries[i].open);
	if (hal->generation == hal_generation())
		sim_destroy(hal->sim);
	hal_page_close(hal->page, hal->page_fd, hal->page_path);
	pthread_mutex_destroy(&hal->lock);
	free(hal->entries);
	free(hal);
}
