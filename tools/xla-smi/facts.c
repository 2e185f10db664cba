/* SPDX-License-Identifier: Apache-2.0 */
/* Facts from two places: the telemetry pages of running processes, and the hardware
 * that the HAL lists without opening it. */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "hal/base/clock.h"
#include "hal/hal.h"
#include "tools/xla-smi/smi.h"

#define STALE_NS 1000000000	/* counters older than this tell of an idle device */

static double utilisation(const struct hal_page_device *d)
{
	if (!d->read_at_ns || !d->window_ns)
		return 0;
	if ((uint64_t)clock_ns() - d->read_at_ns > STALE_NS + d->window_ns)
		return 0;
	return d->busy_ns >= d->window_ns ? 100 : 100.0 * (double)d->busy_ns /
						  (double)d->window_ns;
}

static void add_device(struct smi_facts *f, const struct hal_page_device *d, unsigned pid)
{
	struct smi_device *s;

	if (f->n_devices == SMI_MAX_DEVICES)
		return;
	s = &f->devices[f->n_devices++];
	snprintf(s->bus_id, sizeof(s->bus_id), "%s", d->bus_id);
	snprintf(s->name, sizeof(s->name), "%s", d->name);
	snprintf(s->driver, sizeof(s->driver), "%s", d->driver);
	snprintf(s->state, sizeof(s->state), "%s", d->state);
	s->is_model = d->is_model;
	s->pid = pid;
	s->memory_total = d->hbm_bytes;
	s->memory_used = d->used_bytes;
	s->utilisation = utilisation(d);
	s->temperature_c = d->temperature_mc / 1000;
	s->power_w = d->power_mw / 1000;
}

static void add_process(struct smi_facts *f, const struct hal_page *page)
{
	struct smi_process *p;
	size_t n = 0;

	if (f->n_processes == SMI_MAX_PROCESSES)
		return;
	p = &f->processes[f->n_processes++];
	p->pid = page->pid;
	snprintf(p->command, sizeof(p->command), "%s", page->command);
	for (unsigned i = 0; i < page->n_devices; i++) {
		const struct hal_page_device *d = &page->devices[i];

		if (!*d->bus_id)
			continue;
		add_device(f, d, page->pid);
		p->memory_used += d->used_bytes;
		if (*d->running)
			snprintf(p->running, sizeof(p->running), "%s", d->running);
		if (n < sizeof(p->devices))
			n += (size_t)snprintf(p->devices + n, sizeof(p->devices) - n, "%s%s",
					      n ? " " : "", d->bus_id);
	}
}

static void read_pages(struct smi_facts *f)
{
	const char *where = hal_page_dir();
	struct hal_page *page = malloc(sizeof(*page));
	struct dirent *d;
	DIR *dir = opendir(where);
	char path[512];

	while (page && dir && (d = readdir(dir))) {
		if (strncmp(d->d_name, "tessera-", 8))
			continue;
		snprintf(path, sizeof(path), "%s/%s", where, d->d_name);
		if (!hal_page_read(path, page, NULL))
			add_process(f, page);
	}
	if (dir)
		closedir(dir);
	free(page);
}

/* Hardware that nobody's page told of. The model is in a process or nowhere. */
static void read_hardware(struct smi_facts *f)
{
	struct hal_options o = { .devices = "", .sim = "" };
	struct hal_device_info info;
	struct hal *hal;

	if (hal_create(&o, &hal, NULL))
		return;
	for (unsigned i = 0; i < hal_device_count(hal); i++) {
		struct hal_page_device d = { 0 };
		bool is_known = false;

		if (hal_device_info(hal, i, &info, NULL) || info.kind == HAL_KIND_SIM)
			continue;
		for (unsigned k = 0; k < f->n_devices; k++)
			is_known |= !strcmp(f->devices[k].bus_id, info.bus_id);
		if (is_known)
			continue;
		memcpy(d.bus_id, info.bus_id, sizeof(d.bus_id));
		memcpy(d.name, info.name, sizeof(d.name));
		memcpy(d.driver, info.driver, sizeof(d.driver));
		memcpy(d.state, info.state, sizeof(d.state));
		d.hbm_bytes = info.hbm_bytes;
		d.is_model = info.is_model;
		add_device(f, &d, 0);
		f->devices[f->n_devices - 1].utilisation = -1;
	}
	hal_destroy(hal);
}

void smi_gather(struct smi_facts *out)
{
	memset(out, 0, sizeof(*out));
	snprintf(out->looked, sizeof(out->looked), "telemetry pages %.100s/tessera-*, PCI "
		 "functions 1234:7e55, nodes of /sys/class/accel", hal_page_dir());
	read_pages(out);
	read_hardware(out);
}
