/* SPDX-License-Identifier: Apache-2.0 */
/* Facts from two places: the telemetry pages of running processes, and the hardware
 * that the HAL lists without opening it. */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
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

/* What is found first stands: it tells why the rest may be missing. */
static __attribute__((format(printf, 2, 3))) void note(struct smi_facts *f, const char *fmt, ...)
{
	va_list ap;

	if (*f->problem)
		return;
	va_start(ap, fmt);
	vsnprintf(f->problem, sizeof(f->problem), fmt, ap);
	va_end(ap);
}

/* An array of n with room for one more. */
static void *grow(struct smi_facts *f, void *array, unsigned n, size_t bytes)
{
	void *grown = realloc(array, (n + 1) * bytes);

	if (!grown)
		note(f, "out of memory");
	return grown;
}

static struct smi_device *add_device(struct smi_facts *f, const struct hal_page_device *d,
				     unsigned pid)
{
	struct smi_device *s = grow(f, f->devices, f->n_devices, sizeof(*s));

	if (!s)
		return NULL;
	f->devices = s;
	s += f->n_devices++;
	memset(s, 0, sizeof(*s));
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
	return s;
}

static void add_process(struct smi_facts *f, const struct hal_page *page)
{
	struct smi_process *p = grow(f, f->processes, f->n_processes, sizeof(*p));
	size_t n = 0;

	if (!p)
		return;
	f->processes = p;
	p += f->n_processes++;
	memset(p, 0, sizeof(*p));
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

static void read_one(struct smi_facts *f, const char *path, struct hal_page *page)
{
	struct err err;

	switch (hal_page_read(path, page, &err)) {
	case 0:
		add_process(f, page);
		break;
	case ERR_PERMISSION_DENIED:
		f->n_unreadable++;
		break;
	default:
		break;	/* gone, or no page */
	}
}

static void read_pages(struct smi_facts *f)
{
	const char *where = hal_page_dir();
	struct hal_page *page = malloc(sizeof(*page));
	DIR *dir = opendir(where);
	struct dirent *d;
	char path[PATH_MAX];

	if (!page)
		note(f, "out of memory");
	if (!dir)
		note(f, "the folder of telemetry pages, %s, can't be read: %s", where,
		     strerror(errno));
	while (page && dir) {
		errno = 0;
		d = readdir(dir);
		if (!d && errno)
			note(f, "reading %s: %s", where, strerror(errno));
		if (!d)
			break;
		if (!strncmp(d->d_name, "tessera-", 8) &&
		    snprintf(path, sizeof(path), "%s/%s", where, d->d_name) < (int)sizeof(path))
			read_one(f, path, page);
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
	struct smi_device *added;
	struct hal *hal;
	struct err err;

	if (hal_create(&o, &hal, &err)) {
		note(f, "looking for hardware: %s", err.msg);
		return;
	}
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
		added = add_device(f, &d, 0);
		if (added)
			added->utilisation = -1;
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

void smi_free(struct smi_facts *f)
{
	free(f->devices);
	free(f->processes);
}
