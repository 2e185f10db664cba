/* SPDX-License-Identifier: Apache-2.0 */
/* Tables and their rows; which devices a name means. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tools/xla-smi/smi.h"

#define COLUMN(structure, name, type, bytes, unit, heading, metric, meaning) \
	{ #name, heading, meaning, SMI_##type, SMI_##unit, SMI_##metric, \
	  offsetof(struct structure, name), bytes },

#define DEVICES(...) COLUMN(smi_device, __VA_ARGS__)
static const struct smi_field devices_fields[] = {
#include "tools/xla-smi/fields.def"
};
#define PROCESSES(...) COLUMN(smi_process, __VA_ARGS__)
static const struct smi_field processes_fields[] = {
#include "tools/xla-smi/fields.def"
};
#define CLIENTS(...) COLUMN(smi_client, __VA_ARGS__)
static const struct smi_field clients_fields[] = {
#include "tools/xla-smi/fields.def"
};
#define HEAPS(...) COLUMN(smi_heap, __VA_ARGS__)
static const struct smi_field heaps_fields[] = {
#include "tools/xla-smi/fields.def"
};
#define OWNERS(...) COLUMN(smi_owner, __VA_ARGS__)
static const struct smi_field owners_fields[] = {
#include "tools/xla-smi/fields.def"
};
#define EVENTS(...) COLUMN(smi_event, __VA_ARGS__)
static const struct smi_field events_fields[] = {
#include "tools/xla-smi/fields.def"
};
#define PATHS(...) COLUMN(smi_path, __VA_ARGS__)
static const struct smi_field paths_fields[] = {
#include "tools/xla-smi/fields.def"
};
#define LINKS(...) COLUMN(smi_link, __VA_ARGS__)
static const struct smi_field links_fields[] = {
#include "tools/xla-smi/fields.def"
};
#define HOPS(...) COLUMN(smi_hop, __VA_ARGS__)
static const struct smi_field hops_fields[] = {
#include "tools/xla-smi/fields.def"
};
#define REGISTERS(...) COLUMN(smi_register, __VA_ARGS__)
static const struct smi_field registers_fields[] = {
#include "tools/xla-smi/fields.def"
};
#define FINDINGS(...) COLUMN(smi_finding, __VA_ARGS__)
static const struct smi_field findings_fields[] = {
#include "tools/xla-smi/fields.def"
};

#define TABLE(name, structure, meaning) { #name, &#structure[4], meaning, name##_fields, \
	sizeof(name##_fields) / sizeof(*name##_fields), sizeof(struct structure) },
const struct smi_table smi_tables[SMI_TABLES] = {
#include "tools/xla-smi/fields.def"
};

const struct smi_field *smi_field(const struct smi_table *t, const char *name, size_t n)
{
	for (unsigned i = 0; i < t->n_fields; i++)
		if (strlen(t->fields[i].name) == n && !strncmp(t->fields[i].name, name, n))
			return &t->fields[i];
	return NULL;
}

/* ---- rows ---- */

void smi_note(struct smi_node *node, const char *fmt, ...)
{
	va_list ap;

	if (*node->problem)
		return;
	va_start(ap, fmt);
	vsnprintf(node->problem, sizeof(node->problem), fmt, ap);
	va_end(ap);
}

void *smi_add(struct smi_node *node, enum smi_table_id id)
{
	const struct smi_table *t = &smi_tables[id];
	unsigned n = node->tables[id].n, room = node->tables[id].room;
	char *row;

	if (n == room) {
		void *grown = realloc(node->tables[id].rows, (2 * room + 8) * t->row_bytes);

		if (!grown) {
			smi_note(node, "out of memory");
			return NULL;
		}
		node->tables[id].rows = grown;
		node->tables[id].room = 2 * room + 8;
	}
	row = (char *)node->tables[id].rows + n * t->row_bytes;
	memset(row, 0, t->row_bytes);
	for (unsigned i = 0; i < t->n_fields; i++)
		if (t->fields[i].type == SMI_REAL)
			*(double *)(void *)(row + t->fields[i].offset) = NAN;
	node->tables[id].n++;
	return row;
}

void smi_node_init(struct smi_node *node)
{
	time_t now = time(NULL);
	struct tm utc;

	memset(node, 0, sizeof(*node));
	if (gethostname(node->host, sizeof(node->host) - 1))
		*node->host = 0;
	if (gmtime_r(&now, &utc))
		strftime(node->time, sizeof(node->time), "%Y-%m-%dT%H:%M:%SZ", &utc);
}

void smi_node_free(struct smi_node *node)
{
	for (unsigned i = 0; i < SMI_TABLES; i++)
		free(node->tables[i].rows);
	memset(node, 0, sizeof(*node));
}

/* ---- which devices are meant ---- */

static bool is_meant(const struct smi_device *d, const char *name)
{
	char number[24];

	snprintf(number, sizeof(number), "%llu", (unsigned long long)d->index.n);
	return !strcmp(name, number) || !strcmp(name, d->bus_id) ||
	       (*d->uuid && !strcmp(name, d->uuid)) || (*d->pci && !strcmp(name, d->pci)) ||
	       (*d->node && !strcmp(name, d->node)) || (*d->serial && !strcmp(name, d->serial));
}

const struct smi_device *smi_find(const struct smi_node *node, const char *name)
{
	for (unsigned i = 0; i < SMI_COUNT(node, devices); i++)
		if (is_meant(&SMI_GET(node, devices, smi_device)[i], name))
			return &SMI_GET(node, devices, smi_device)[i];
	return NULL;
}

static bool is_selected(const struct smi_device *d, const char *const *names, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (is_meant(d, names[i]))
			return true;
	return false;
}

/* Whether a device that is left is the one of `bus_id`, which process `pid` tells of. */
static bool is_left(const struct smi_node *node, const char *bus_id, struct smi_num pid)
{
	for (unsigned i = 0; i < SMI_COUNT(node, devices); i++) {
		const struct smi_device *d = &SMI_GET(node, devices, smi_device)[i];

		if (!strcmp(d->bus_id, bus_id) && (!smi_is_of_process(d->kind) || !pid.is_known ||
						   d->pid.n == pid.n))
			return true;
	}
	return false;
}

/* Keeps the rows for which keep() holds. */
static void filter(struct smi_node *node, enum smi_table_id id,
		   bool (*keep)(const struct smi_node *node, const void *row))
{
	size_t bytes = smi_tables[id].row_bytes;
	char *rows = node->tables[id].rows;
	unsigned left = 0;

	for (unsigned i = 0; i < node->tables[id].n; i++)
		if (keep(node, rows + i * bytes))
			memmove(rows + left++ * bytes, rows + i * bytes, bytes);
	node->tables[id].n = left;
}

static bool keep_client(const struct smi_node *node, const void *row)
{
	const struct smi_client *c = row;

	return is_left(node, c->bus_id, c->pid);
}

static bool keep_heap(const struct smi_node *node, const void *row)
{
	const struct smi_heap *h = row;

	return is_left(node, h->bus_id, h->pid);
}

static bool keep_owner(const struct smi_node *node, const void *row)
{
	const struct smi_owner *o = row;

	return is_left(node, o->bus_id, o->pid);
}

static bool keep_event(const struct smi_node *node, const void *row)
{
	const struct smi_event *e = row;

	return is_left(node, e->bus_id, e->pid);
}

static bool keep_path(const struct smi_node *node, const void *row)
{
	const struct smi_path *p = row;

	return is_left(node, p->from, (struct smi_num){ 0 }) &&
	       is_left(node, p->to, (struct smi_num){ 0 });
}

static bool keep_link(const struct smi_node *node, const void *row)
{
	const struct smi_link *l = row;

	return is_left(node, l->bus_id, l->pid);
}

static bool is_chip_left(const struct smi_node *node, const char *fabric, struct smi_num chip)
{
	for (unsigned i = 0; i < SMI_COUNT(node, devices); i++) {
		const struct smi_device *d = &SMI_GET(node, devices, smi_device)[i];

		if (!strcmp(d->fabric, fabric) && d->chip.n == chip.n)
			return true;
	}
	return false;
}

static bool keep_hop(const struct smi_node *node, const void *row)
{
	const struct smi_hop *h = row;

	return is_chip_left(node, h->fabric, h->from_chip) &&
	       is_chip_left(node, h->fabric, h->to_chip);
}

static bool keep_process(const struct smi_node *node, const void *row)
{
	const struct smi_process *p = row;

	for (unsigned i = 0; i < SMI_COUNT(node, clients); i++)
		if (SMI_GET(node, clients, smi_client)[i].pid.n == p->pid.n)
			return true;
	return false;
}

int smi_select(struct smi_node *node, const char *const *names, unsigned n)
{
	struct smi_device *d = SMI_GET(node, devices, smi_device);
	unsigned left = 0;

	if (!n)
		return SMI_OK;
	for (unsigned i = 0; i < n; i++) {
		if (smi_find(node, names[i]))
			continue;
		fprintf(stderr, "xla-smi: there is no device \"%s\": xla-smi list shows those that "
			"there are\n", names[i]);
		return SMI_NO_DEVICE;
	}
	for (unsigned i = 0; i < SMI_COUNT(node, devices); i++)
		if (is_selected(&d[i], names, n))
			d[left++] = d[i];
	SMI_COUNT(node, devices) = left;
	filter(node, SMI_clients, keep_client);
	filter(node, SMI_heaps, keep_heap);
	filter(node, SMI_owners, keep_owner);
	filter(node, SMI_events, keep_event);
	filter(node, SMI_paths, keep_path);
	filter(node, SMI_links, keep_link);
	filter(node, SMI_hops, keep_hop);
	filter(node, SMI_processes, keep_process);
	return SMI_OK;
}
