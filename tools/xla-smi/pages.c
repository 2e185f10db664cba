/* SPDX-License-Identifier: Apache-2.0 */
/* What the telemetry pages of processes tell. A page is its user's word: what the kernel
 * driver or sysfs tell of a device stands before it. */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "hal/base/clock.h"
#include "hal/dump.h"
#include "hal/hal.h"
#include "hal/telemetry.h"
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

static const char *kind_name(unsigned kind)
{
	static const char *const names[] = { [HAL_KIND_SIM] = "sim", [HAL_KIND_VFIO] = "vfio",
					     [HAL_KIND_VFIO_USER] = "vfio-user",
					     [HAL_KIND_ACCEL] = "accel" };

	return kind < sizeof(names) / sizeof(*names) ? names[kind] : "";
}

/* ---- devices ---- */

/* The row of a device that others told of, too; a model in a process is that process's, and so is
 * the function that a server gives each of its clients. */
static struct smi_device *device_of(struct smi_node *node, const struct hal_page_device *d,
				    bool *is_new)
{
	struct smi_device *s;

	*is_new = false;
	for (unsigned i = 0; !smi_is_of_process(kind_name(d->kind)) &&
	     i < SMI_COUNT(node, devices); i++) {
		s = &SMI_GET(node, devices, smi_device)[i];
		if (!strcmp(s->bus_id, d->bus_id) && !strcmp(s->kind, kind_name(d->kind)))
			return s;
	}
	*is_new = true;
	return smi_add(node, SMI_devices);
}

void smi_take_telemetry(struct smi_device *s, const struct hw_telemetry *t)
{
	s->temperature_c = t->temperature_mc / 1000.0;
	s->power_w = t->power_mw / 1000.0;
	s->clock_mhz = t->clock_khz / 1000.0;
	s->throttle = smi_known(t->throttle);
	s->up_ns = smi_known(t->time_ns);
	s->busy_compute_ns = smi_known(t->busy_compute_ns);
	s->busy_dma_ns = smi_known(t->busy_dma_ns);
	s->n_execute = smi_known(t->n_execute);
	s->n_insn = smi_known(t->n_insn);
	s->n_copy = smi_known(t->n_copy);
	s->n_fault = smi_known(t->n_fault);
	s->hbm_read_bytes = smi_known(t->hbm_read_bytes);
	s->hbm_write_bytes = smi_known(t->hbm_write_bytes);
	s->dma_in_bytes = smi_known(t->dma_in_bytes);
	s->dma_out_bytes = smi_known(t->dma_out_bytes);
	s->matrix_ops = smi_known(t->matrix_ops);
	s->vector_ops = smi_known(t->vector_ops);
}

void smi_take_ras(struct smi_device *s, const struct hw_ras *r)
{
	s->ecc_corrected = smi_known(r->ecc_corrected);
	s->ecc_uncorrected = smi_known(r->ecc_uncorrected);
	s->poisoned_pages = smi_known(r->poisoned_pages);
	s->watchdog_fires = smi_known(r->watchdog_fires);
	s->queue_resets = smi_known(r->queue_resets);
	s->function_resets = smi_known(r->function_resets);
	s->fatal = smi_known(r->fatal);
}

static void place(struct smi_device *s, uint64_t fabric, const unsigned chip[2],
		  const unsigned coords[3], const unsigned shape[3])
{
	if (!fabric) {
		snprintf(s->links, sizeof(s->links), "none");
		return;
	}
	snprintf(s->fabric, sizeof(s->fabric), "%016" PRIx64, fabric);
	s->chip = smi_known(chip[0]);
	s->n_chips = smi_known(chip[1]);
	snprintf(s->coords, sizeof(s->coords), "%u,%u,%u", coords[0], coords[1], coords[2]);
	snprintf(s->shape, sizeof(s->shape), "%ux%ux%u", shape[0], shape[1], shape[2]);
}

void smi_take_position(struct smi_device *s, const struct hw_identify *id)
{
	const unsigned chip[] = { id->chip, id->n_chips };
	const unsigned coords[] = { id->coords[0], id->coords[1], id->coords[2] };
	const unsigned shape[] = { id->shape[0], id->shape[1], id->shape[2] };

	place(s, id->fabric, chip, coords, shape);
}

static const char *link_state(unsigned is, char other[32])
{
	static const char *const names[] = { [HW_LINK_UP] = "up",
		[HW_LINK_PEER_FATAL] = "neighbour fatal", [HW_LINK_PEER_OFF] = "neighbour off",
		[HW_LINK_DOWN] = "down" };

	if (is < sizeof(names) / sizeof(*names) && names[is])
		return names[is];
	snprintf(other, 32, "unknown (%u)", is);
	return other;
}

static struct smi_link *take_link(struct smi_node *node, const struct smi_device *s,
				  const struct hw_link *from)
{
	struct smi_link *l = smi_add(node, SMI_links);
	char other[32];

	if (!l)
		return NULL;
	snprintf(l->bus_id, sizeof(l->bus_id), "%s", s->bus_id);
	snprintf(l->fabric, sizeof(l->fabric), "%s", s->fabric);
	l->chip = s->chip;
	if (from->dim < 3)
		snprintf(l->port, sizeof(l->port), "%c%c", 'x' + from->dim,
			 from->is_down ? '-' : '+');
	else
		snprintf(l->port, sizeof(l->port), "%u%c", from->dim, from->is_down ? '-' : '+');
	l->peer_chip = smi_known(from->peer);
	snprintf(l->state, sizeof(l->state), "%s", link_state(from->is, other));
	l->up = smi_known(from->is == HW_LINK_UP);
	l->tx_bytes = smi_known(from->tx_bytes);
	l->rx_bytes = smi_known(from->rx_bytes);
	l->n_packets = smi_known(from->n_packets);
	l->n_refused = smi_known(from->n_errors);
	return l;
}

void smi_take_links(struct smi_node *node, const struct smi_device *s,
		    const struct hw_link *links, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		struct smi_link *l = take_link(node, s, &links[i]);

		if (!l)
			return;
		l->age_ns = smi_known(0);
	}
}

static void add_links(struct smi_node *node, const struct hal_page *page,
		      const struct hal_page_device *d, const struct smi_device *s)
{
	for (unsigned i = 0; d->fabric && d->read_at_ns && i < d->n_links; i++) {
		struct smi_link *l = take_link(node, s, &d->links[i]);
		uint64_t now = (uint64_t)clock_ns();

		if (!l)
			return;
		l->pid = smi_known(page->pid);
		l->age_ns = smi_known(now > d->read_at_ns ? now - d->read_at_ns : 0);
	}
}

static void add_device(struct smi_node *node, const struct hal_page *page,
		       const struct hal_page_device *d)
{
	bool is_new, is_driver = d->kind == HAL_KIND_ACCEL;
	struct smi_device *s = device_of(node, d, &is_new);

	if (!s)
		return;
	if (is_new) {
		snprintf(s->bus_id, sizeof(s->bus_id), "%s", d->bus_id);
		snprintf(s->kind, sizeof(s->kind), "%s", kind_name(d->kind));
		snprintf(s->name, sizeof(s->name), "%s", d->name);
		snprintf(s->driver, sizeof(s->driver), "%s", d->driver);
		s->is_model = d->is_model;
	}
	if (!*s->serial && *d->serial) {
		snprintf(s->serial, sizeof(s->serial), "%s", d->serial);
		snprintf(s->uuid, sizeof(s->uuid), "tessera-%s", d->serial);
	}
	s->n_processes = smi_known(s->n_processes.n + 1);
	if (d->read_at_ns && isnan(s->utilisation_percent))
		s->utilisation_percent = utilisation(d);
	/* The kernel driver told of its device itself, but for what it does not keep. */
	if (is_driver && !is_new)
		return;
	snprintf(s->state, sizeof(s->state), "%s", d->state);
	s->is_model = d->is_model;
	s->pid = smi_known(page->pid);
	s->memory_total_bytes = smi_known(d->hbm_bytes);
	s->memory_used_bytes = smi_known(s->memory_used_bytes.n + d->used_bytes);
	if (d->heap.read_at_ns)
		s->memory_largest_free_bytes = smi_known(d->heap.largest_free_bytes);
	/* Of a device that two tell of, the first one's word stands. */
	if (!*s->fabric && !*s->links) {
		const unsigned chip[] = { d->chip, d->n_chips };

		place(s, d->fabric, chip, d->coords, d->shape);
		add_links(node, page, d, s);
	}
	if (d->read_at_ns) {
		smi_take_telemetry(s, &d->counters);
		smi_take_ras(s, &d->ras);
	}
}

/* ---- its process's part ---- */

static void add_client(struct smi_node *node, const struct hal_page *page,
		       const struct hal_page_device *d)
{
	struct smi_client *c = smi_add(node, SMI_clients);

	if (!c)
		return;
	c->pid = smi_known(page->pid);
	snprintf(c->bus_id, sizeof(c->bus_id), "%s", d->bus_id);
	c->memory_used_bytes = smi_known(d->used_bytes);
	c->memory_peak_bytes = smi_known(d->peak_bytes);
	c->n_execute = smi_known(d->n_execute);
	snprintf(c->running, sizeof(c->running), "%s", d->running);
}

static void add_owners(struct smi_node *node, const struct hal_page *page,
		       const struct hal_page_device *d)
{
	for (unsigned i = 0; i < d->heap.n_owners; i++) {
		const struct hal_page_owner *from = &d->heap.owners[i];
		struct smi_owner *o = smi_add(node, SMI_owners);

		if (!o)
			return;
		o->pid = smi_known(page->pid);
		snprintf(o->bus_id, sizeof(o->bus_id), "%s", d->bus_id);
		snprintf(o->tag, sizeof(o->tag), "%s", *from->tag ? from->tag : "(untagged)");
		o->bytes = smi_known(from->bytes);
		o->n_blocks = smi_known(from->n_blocks);
		if (d->heap.in_use)
			o->percent = 100.0 * (double)from->bytes / (double)d->heap.in_use;
	}
}

static void add_heap(struct smi_node *node, const struct hal_page *page,
		     const struct hal_page_device *d)
{
	const struct hal_page_heap *from = &d->heap;
	struct smi_heap *h;
	uint64_t unused = from->bytes - from->in_use;

	if (!from->read_at_ns)
		return;
	h = smi_add(node, SMI_heaps);
	if (!h)
		return;
	h->pid = smi_known(page->pid);
	snprintf(h->bus_id, sizeof(h->bus_id), "%s", d->bus_id);
	h->total_bytes = smi_known(from->bytes);
	h->used_bytes = smi_known(from->in_use);
	h->largest_free_bytes = smi_known(from->largest_free_bytes);
	h->n_blocks = smi_known(from->n_blocks);
	h->changes_since = smi_known(d->heap_changes - from->changes);
	/* A stranger's numbers need not fit each other. */
	if (from->in_use < from->bytes && from->largest_free_bytes <= unused)
		h->fragmentation_percent = 100.0 - 100.0 * (double)from->largest_free_bytes /
						   (double)unused;
	if (!from->is_whole)
		return;
	h->n_holes = smi_known(from->n_holes);
	for (unsigned i = 0; i < HAL_PAGE_CELLS; i++)
		h->map[i] = (char)(!from->cells[i] ? '0' : from->cells[i] == 255 ? '9' :
				   '1' + from->cells[i] * 8 / 255);
	add_owners(node, page, d);
}

static void write_time(uint64_t ns, char *out, size_t bytes)
{
	time_t seconds = (time_t)(ns / 1000000000);
	struct tm utc;
	char text[24];

	*out = 0;
	if (gmtime_r(&seconds, &utc) && strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &utc))
		snprintf(out, bytes, "%s.%03uZ", text, (unsigned)(ns / 1000000 % 1000));
}

static void add_events(struct smi_node *node, const struct hal_page *page)
{
	uint64_t n = page->n_events < HAL_PAGE_EVENTS ? page->n_events : HAL_PAGE_EVENTS;

	for (uint64_t k = page->n_events - n; k < page->n_events; k++) {
		const struct hal_page_event *from = &page->events[k % HAL_PAGE_EVENTS];
		struct smi_event *e;

		if (from->device >= page->n_devices)
			continue;
		e = smi_add(node, SMI_events);
		if (!e)
			return;
		write_time(from->time_ns, e->time, sizeof(e->time));
		e->pid = smi_known(page->pid);
		snprintf(e->bus_id, sizeof(e->bus_id), "%s",
			 page->devices[from->device].bus_id);
		e->number = smi_known(from->number);
		snprintf(e->code, sizeof(e->code), "%s", err_name((int)from->code));
		snprintf(e->text, sizeof(e->text), "%s", from->text);
		snprintf(e->severity, sizeof(e->severity), "%s", err_severity((int)from->code));
		snprintf(e->next, sizeof(e->next), "%s", err_next((int)from->code));
	}
}

static void join(char *list, size_t bytes, const char *word)
{
	size_t n = strlen(list);

	/* A word is there whole or not: half of one could be half a character. */
	if (n + strlen(word) + 6 < bytes)
		snprintf(list + n, bytes - n, "%s%s", n ? " " : "", word);
	else if (n < 4 || strcmp(list + n - 4, " ..."))
		snprintf(list + n, bytes - n, " ...");
}

static void add_process(struct smi_node *node, const struct hal_page *page,
			const struct stat *st, struct smi_num holder)
{
	struct smi_process *p = smi_add(node, SMI_processes);

	if (!p)
		return;
	p->pid = smi_known(page->pid);
	p->holder_pid = holder;
	p->memory_used_bytes = smi_known(0);
	snprintf(p->command, sizeof(p->command), "%s", page->command);
	smi_user_name(st->st_uid, p->user, sizeof(p->user));
	snprintf(p->source, sizeof(p->source), "page");
	for (unsigned i = 0; i < page->n_devices; i++) {
		const struct hal_page_device *d = &page->devices[i];

		if (!*d->bus_id)
			continue;
		p->memory_used_bytes.n += d->used_bytes;
		if (*d->running)
			snprintf(p->running, sizeof(p->running), "%s", d->running);
		join(p->devices, sizeof(p->devices), d->bus_id);
		add_device(node, page, d);
		add_client(node, page, d);
		add_heap(node, page, d);
	}
	add_events(node, page);
}

static void read_one(void *arg, const char *path, const struct smi_locks *locks,
		     struct hal_page *page)
{
	struct smi_node *node = arg;
	struct stat st;
	struct err err;

	switch (hal_page_read(path, page, &err)) {
	case 0:
		if (!stat(path, &st))
			add_process(node, page, &st,
				    smi_lock_holder(locks, st.st_dev, st.st_ino));
		break;
	case ERR_PERMISSION_DENIED:
		node->n_unreadable++;
		break;
	default:
		break;	/* gone, or no page */
	}
}

static int by_time(const void *a, const void *b)
{
	const struct smi_event *x = a, *y = b;

	return strcmp(x->time, y->time);
}

void smi_each_page(const char *root, struct smi_node *node, smi_page_fn *fn, void *arg)
{
	struct hal_page *page = malloc(sizeof(*page));
	char path[SMI_PATH], where[SMI_PATH];
	struct smi_locks locks;
	struct dirent *e;
	DIR *dir;

	snprintf(where, sizeof(where), "%s%s", getenv("TESSERA_TELEMETRY_DIR") ? "" : root,
		 hal_page_dir());
	dir = opendir(where);
	if (!page)
		smi_note(node, "out of memory");
	if (!dir)
		smi_note(node, "the folder of telemetry pages, %s, can't be read: %s", where,
			 strerror(errno));
	smi_read_locks(root, &locks);
	while (page && dir) {
		errno = 0;
		e = readdir(dir);
		if (!e && errno)
			smi_note(node, "reading %s: %s", where, strerror(errno));
		if (!e)
			break;
		if (!strncmp(e->d_name, "tessera-", 8) &&
		    strncmp(e->d_name, HAL_DUMP_PREFIX, strlen(HAL_DUMP_PREFIX)) &&
		    strncmp(e->d_name, HAL_PAGE_SOCKET, strlen(HAL_PAGE_SOCKET)) &&
		    snprintf(path, sizeof(path), "%s/%s", where, e->d_name) < (int)sizeof(path))
			fn(arg, path, &locks, page);
	}
	if (dir)
		closedir(dir);
	free(locks.lock);
	free(page);
}

void smi_add_pages(const char *root, struct smi_node *node)
{
	smi_each_page(root, node, read_one, node);
	if (SMI_COUNT(node, events))
		qsort(node->tables[SMI_events].rows, SMI_COUNT(node, events),
		      sizeof(struct smi_event), by_time);
}
