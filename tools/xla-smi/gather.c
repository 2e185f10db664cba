/* SPDX-License-Identifier: Apache-2.0 */
/* All there is now: hardware as sysfs, libpci and the kernel driver tell of it, what processes
 * tell of themselves, and who else has a device open. */
#include <stdlib.h>
#include <string.h>

#include "hal/scan.h"
#include "hal/telemetry.h"
#include "hal/transport/ioctl.h"
#include "kernel-uapi/include/tessera_drm.h"
#include "tools/xla-smi/smi.h"

/* What the kernel driver keeps anyway, at most 50 ms old. */
static void ask_driver(struct smi_node *node, struct smi_device *d)
{
	struct drm_tessera_memory m = { 0 };
	struct hw_identify identity;
	struct hw_telemetry t;
	struct hw_link links[HW_MAX_LINKS];
	struct hw_ras r;
	uint64_t bytes = sizeof(m);
	int fd;

	if (accel_open(d->node, &fd, &identity, NULL))
		return;
	smi_take_position(d, &identity);
	if (!accel_query(fd, DRM_TESSERA_QUERY_MEMORY, 0, &m, &bytes)) {
		d->memory_total_bytes = smi_known(m.hbm_total);
		d->memory_used_bytes = smi_known(m.hbm_used);
		d->memory_largest_free_bytes = smi_known(m.hbm_largest_free);
	}
	bytes = sizeof(t);
	if (!accel_query(fd, DRM_TESSERA_QUERY_TELEMETRY, 0, &t, &bytes))
		smi_take_telemetry(d, &t);
	bytes = sizeof(r);
	if (!accel_query(fd, DRM_TESSERA_QUERY_RAS, 0, &r, &bytes))
		smi_take_ras(d, &r);
	bytes = sizeof(links);
	if (*d->fabric && !accel_query_records(fd, DRM_TESSERA_QUERY_LINKS, 0, links, &bytes,
					       sizeof(*links)))
		smi_take_links(node, d, links, (unsigned)(bytes / sizeof(*links)));
	accel_sys->close(fd);
}

static void name_vfio_node(const char *bdf, struct smi_device *d)
{
	struct vfio_place p;

	if (!vfio_find(bdf, &p, NULL))
		snprintf(d->node, sizeof(d->node), "%.95s", *p.cdev ? p.cdev : p.node);
}

static void add_found(const char *root, struct smi_node *node, const struct hal_found *f)
{
	const struct hal_device_info *info = &f->info;
	struct smi_device *d = smi_add(node, SMI_devices);

	if (!d)
		return;
	memcpy(d->bus_id, info->bus_id, sizeof(d->bus_id));
	memcpy(d->name, info->name, sizeof(d->name));
	memcpy(d->driver, info->driver, sizeof(d->driver));
	memcpy(d->state, info->state, sizeof(d->state));
	memcpy(d->serial, info->serial, sizeof(d->serial));
	memcpy(d->firmware, info->firmware, sizeof(d->firmware));
	d->is_model = info->is_model;
	d->n_processes = smi_known(0);
	if (*d->serial)
		snprintf(d->uuid, sizeof(d->uuid), "tessera-%s", d->serial);
	if (info->hbm_bytes)
		d->memory_total_bytes = smi_known(info->hbm_bytes);
	if (info->kind == HAL_KIND_ACCEL) {
		snprintf(d->kind, sizeof(d->kind), "accel");
		snprintf(d->node, sizeof(d->node), "%.95s", f->where);
		smi_place_of_node(root, strrchr(f->where, '/') + 1, d->pci);
		ask_driver(node, d);
	} else {
		snprintf(d->kind, sizeof(d->kind), "vfio");
		snprintf(d->pci, sizeof(d->pci), "%.15s", info->bus_id);
		name_vfio_node(info->bus_id, d);
	}
	smi_place(root, d);
}

static void add_hardware(const char *root, struct smi_node *node)
{
	struct hal_found *found;
	struct err err;
	unsigned n;

	if (hal_scan(&found, &n, &err)) {
		smi_note(node, "looking for hardware: %s", err.msg);
		return;
	}
	for (unsigned i = 0; i < n; i++)
		add_found(root, node, &found[i]);
	free(found);
}

/* Cards before models, then as people count. */
static int by_name(const void *a, const void *b)
{
	const struct smi_device *x = a, *y = b;
	int order = (!strcmp(x->kind, "sim")) - (!strcmp(y->kind, "sim"));
	if (!order)
		order = strverscmp(x->bus_id, y->bus_id);
	return order ? order : x->pid.n < y->pid.n ? -1 : x->pid.n > y->pid.n;
}

static void count_processes(struct smi_node *node)
{
	for (unsigned i = 0; i < SMI_COUNT(node, devices); i++) {
		struct smi_device *d = &SMI_GET(node, devices, smi_device)[i];

		d->index = smi_known(i);
		if (smi_is_of_process(d->kind))
			continue;
		d->n_processes = smi_known(0);
		for (unsigned k = 0; k < SMI_COUNT(node, clients); k++)
			d->n_processes.n += !strcmp(SMI_GET(node, clients, smi_client)[k].bus_id,
						    d->bus_id);
	}
}

void smi_gather(const struct smi_options *o, struct smi_node *node)
{
	static struct vfio_sys vfio;
	static struct accel_sys accel;

	smi_node_init(node);
	vfio = *vfio_sys;
	accel = *accel_sys;
	vfio.root = accel.root = o->root;
	vfio_sys = &vfio;
	accel_sys = &accel;
	snprintf(node->looked, sizeof(node->looked), "telemetry pages %.100s/tessera-*, PCI "
		 "functions 1234:7e55, nodes of /sys/class/accel", hal_page_dir());
	add_hardware(o->root, node);
	smi_add_pages(o->root, node);
	smi_add_holders(o->root, node);
	if (SMI_COUNT(node, devices))
		qsort(node->tables[SMI_devices].rows, SMI_COUNT(node, devices),
		      sizeof(struct smi_device), by_name);
	count_processes(node);
	smi_join_links(node);
}
