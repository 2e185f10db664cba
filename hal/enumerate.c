/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which devices there are: those that a selection names, else the hardware that is
 * there, else the model. What is found or named and can't be reached is listed with
 * the reason; nothing turns into the model silently.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "hal/bus.h"
#include "hal/bus/vfio.h"
#include "hal/hal_internal.h"
#include "hal/hw/regs.h"
#include "hal/scan.h"
#include "hal/sim/sim.h"
#include "hal/transport/ioctl.h"

static int add_entry(struct hal *hal, const struct hal_found *found, struct err *err)
{
	struct hal_entry *e, *grown;

	if (hal->n_entries == hal->room) {
		grown = realloc(hal->entries, (hal->room + 16) * sizeof(*grown));
		if (!grown)
			return err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory");
		hal->entries = grown;
		hal->room += 16;
	}
	e = &hal->entries[hal->n_entries++];
	*e = (struct hal_entry){ .info = found->info, .transport = &hal_transport_direct };
	snprintf(e->where, sizeof(e->where), "%s", found->where);
	switch (found->info.kind) {
	case HAL_KIND_SIM: e->host.bus = &hal_bus_sim; break;
	case HAL_KIND_VFIO:
		e->host.bus = &hal_bus_vfio;
		e->host.host = &hal->domains;
		break;
	case HAL_KIND_VFIO_USER: e->host.bus = &hal_bus_vfio_user; break;
	case HAL_KIND_ACCEL: e->transport = &hal_transport_ioctl; break;
	}
	return 0;
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
		struct hal_found f;
		char id[32];

		snprintf(id, sizeof(id), "sim:%u", i);
		hal_found_init(&f, HAL_KIND_SIM, id);
		snprintf(f.where, sizeof(f.where), "%u", i);
		snprintf(f.info.driver, sizeof(f.info.driver), "in-process");
		snprintf(f.info.state, sizeof(f.info.state), "ready");
		f.info.is_model = f.info.can_open = true;
		f.info.hbm_bytes = o.hbm_bytes ? o.hbm_bytes : (uint64_t)4 << 30;
		if (add_entry(hal, &f, err))
			return ERR_RESOURCE_EXHAUSTED;
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

/* "/dev/accel/accel0", or "0" for short. */
static int add_named_accel(struct hal *hal, const char *where, struct err *err)
{
	char path[300], full[400];
	struct hal_found f;
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
	hal_scan_node(path, &f);
	return add_entry(hal, &f, err);
}

/* ---- other processes ---- */

static int add_server(struct hal *hal, const char *path, struct err *err)
{
	size_t n = strlen(path), room = sizeof(((struct hal_device_info *)0)->bus_id) - 11;
	struct hal_found f;
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
	hal_found_init(&f, HAL_KIND_VFIO_USER, id);
	snprintf(f.where, sizeof(f.where), "%s", path);
	snprintf(f.info.driver, sizeof(f.info.driver), "vfio-user");
	snprintf(f.info.state, sizeof(f.info.state), "ready");
	f.info.can_open = true;
	return add_entry(hal, &f, err);
}

static int add_named_function(struct hal *hal, const char *name, enum vfio_way way,
			      struct err *err)
{
	struct vfio_place p;
	struct hal_found f;
	int code = vfio_find(name, &p, err);

	if (code)
		return err_add(err, "TESSERA_DEVICES");
	if (p.vendor != HW_PCI_VENDOR || p.device != HW_PCI_DEVICE)
		return err_set(err, ERR_INVALID_ARGUMENT, "TESSERA_DEVICES: %s is %04x:%04x, not a "
			       "T1 (%04x:%04x): lspci -D -d 1234:7e55 lists those of this machine",
			       p.bdf, p.vendor, p.device, HW_PCI_VENDOR, HW_PCI_DEVICE);
	hal_scan_function(p.bdf, way, &f);
	return add_entry(hal, &f, err);
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

static int add_hardware(struct hal *hal, struct err *err)
{
	struct hal_found *found;
	unsigned n;
	int code = hal_scan(&found, &n, err);

	if (code)
		return code;
	for (unsigned i = 0; !code && i < n; i++)
		code = add_entry(hal, &found[i], err);
	free(found);
	return code;
}

int hal_enumerate(struct hal *hal, const char *devices, struct err *err)
{
	int code;

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
	code = add_hardware(hal, err);
	if (code)
		return code;
	return hal->n_entries ? 0 : add_sims(hal, hal->sim_options, err);
}
