/* SPDX-License-Identifier: Apache-2.0 */
/* A node as tables for people, as CSV, and as text for Prometheus. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tools/xla-smi/smi.h"

static struct smi_num num_of(const struct smi_field *f, const char *row)
{
	struct smi_num n;

	memcpy(&n, row + f->offset, sizeof(n));
	return n;
}

static double real_of(const struct smi_field *f, const char *row)
{
	double value;

	memcpy(&value, row + f->offset, sizeof(value));
	return value;
}

static bool is_known(const struct smi_field *f, const char *row)
{
	return f->type == SMI_TEXT ? row[f->offset] : f->type == SMI_NUM ? num_of(f, row).is_known :
	       f->type == SMI_REAL ? !isnan(real_of(f, row)) : true;
}

/* The value as it is; false: unknown, and nothing is written. */
static bool plain(const struct smi_field *f, const char *row, char *out, size_t bytes)
{
	*out = 0;
	if (!is_known(f, row))
		return false;
	if (f->type == SMI_TEXT)
		snprintf(out, bytes, "%s", row + f->offset);
	else if (f->type == SMI_NUM)
		snprintf(out, bytes, "%" PRIu64, num_of(f, row).n);
	else if (f->type == SMI_REAL)
		snprintf(out, bytes, "%.6g", real_of(f, row));
	else
		snprintf(out, bytes, "%s", *(const bool *)(row + f->offset) ? "true" : "false");
	return true;
}

/* ---- CSV ---- */

static void put_csv(const char *text, FILE *to)
{
	if (!text[strcspn(text, ",\"\r\n")]) {
		fputs(text, to);
		return;
	}
	fputc('"', to);
	for (; *text; text++) {
		if (*text == '"')
			fputc('"', to);
		fputc(*text, to);
	}
	fputc('"', to);
}

void smi_write_csv(const struct smi_node *node, enum smi_table_id id, bool with_heading,
		   FILE *to)
{
	const struct smi_table *t = &smi_tables[id];
	char value[512];

	for (unsigned k = 0; with_heading && k < t->n_fields; k++)
		fprintf(to, "%s%s", t->fields[k].name, k + 1 < t->n_fields ? "," : "\r\n");
	for (unsigned i = 0; i < node->tables[id].n; i++) {
		const char *row = (const char *)node->tables[id].rows + i * t->row_bytes;

		for (unsigned k = 0; k < t->n_fields; k++) {
			plain(&t->fields[k], row, value, sizeof(value));
			put_csv(value, to);
			fputs(k + 1 < t->n_fields ? "," : "\r\n", to);
		}
	}
}

/* ---- Prometheus ---- */

static void put_label(const char *text, FILE *to)
{
	for (; *text; text++) {
		if (*text == '\\' || *text == '"')
			fputc('\\', to);
		fputc(*text, to);
	}
}

static bool is_same_label(const struct smi_table *t, const char *a, const char *b)
{
	char x[512], y[512];

	for (unsigned k = 0; k < t->n_fields; k++) {
		if (t->fields[k].metric != SMI_LABEL)
			continue;
		plain(&t->fields[k], a, x, sizeof(x));
		plain(&t->fields[k], b, y, sizeof(y));
		if (strcmp(x, y))
			return false;
	}
	return true;
}

/* A process that has a device twice is two rows of one name, of which a metric is one. */
static bool is_named_before(const struct smi_table *t, const char *rows, unsigned i)
{
	for (unsigned k = 0; k < i; k++)
		if (is_same_label(t, rows + k * t->row_bytes, rows + i * t->row_bytes))
			return true;
	return false;
}

static void put_sample(const struct smi_table *t, const struct smi_field *f, const char *row,
		       FILE *to)
{
	const char *suffix = f->metric == SMI_COUNTER ? "_total" : "";
	char value[512];
	bool first = true;

	fprintf(to, "tessera_%s_%s%s{", t->one, f->name, suffix);
	for (unsigned k = 0; k < t->n_fields; k++) {
		if (t->fields[k].metric != SMI_LABEL ||
		    !plain(&t->fields[k], row, value, sizeof(value)))
			continue;
		fprintf(to, "%s%s=\"", first ? "" : ",", t->fields[k].name);
		put_label(value, to);
		fputc('"', to);
		first = false;
	}
	plain(f, row, value, sizeof(value));
	fprintf(to, "} %s\n", value);
}

static void put_metric(const struct smi_node *node, enum smi_table_id id,
		       const struct smi_field *f, const bool *is_row_named, FILE *to)
{
	const struct smi_table *t = &smi_tables[id];
	const char *rows = node->tables[id].rows;
	const char *suffix = f->metric == SMI_COUNTER ? "_total" : "";
	bool has_head = false;

	for (unsigned i = 0; i < node->tables[id].n; i++) {
		const char *row = rows + i * t->row_bytes;

		if (!is_known(f, row) || !is_row_named[i])
			continue;
		if (!has_head)
			fprintf(to, "# HELP tessera_%s_%s%s %s\n"
				"# TYPE tessera_%s_%s%s %s\n", t->one, f->name, suffix, f->meaning,
				t->one, f->name, suffix, *suffix ? "counter" : "gauge");
		has_head = true;
		put_sample(t, f, row, to);
	}
}

void smi_write_prometheus(const struct smi_node *node, FILE *to)
{
	for (unsigned id = 0; id < SMI_TABLES; id++) {
		const struct smi_table *t = &smi_tables[id];
		bool *is_row_named = calloc(node->tables[id].n + 1, sizeof(*is_row_named));

		for (unsigned i = 0; is_row_named && i < node->tables[id].n; i++)
			is_row_named[i] = !is_named_before(t, node->tables[id].rows, i);
		for (unsigned k = 0; is_row_named && k < t->n_fields; k++)
			if (t->fields[k].metric >= SMI_GAUGE)
				put_metric(node, (enum smi_table_id)id, &t->fields[k],
					   is_row_named, to);
		free(is_row_named);
	}
	fprintf(to, "# HELP tessera_smi_unreadable_pages processes whose page may not be read\n"
		"# TYPE tessera_smi_unreadable_pages gauge\ntessera_smi_unreadable_pages %u\n"
		"# HELP tessera_smi_incomplete 1 where not all could be read\n"
		"# TYPE tessera_smi_incomplete gauge\ntessera_smi_incomplete %d\n",
		node->n_unreadable, *node->problem != 0);
}

/* ---- tables for people ---- */

static const char *scale(double value, double step, const char *const *units, unsigned n,
			 char *out, size_t bytes)
{
	unsigned i = 0;

	while (i + 1 < n && value >= step) {
		value /= step;
		i++;
	}
	snprintf(out, bytes, value < 10 && i ? "%.1f %s" : "%.0f %s", value, units[i]);
	return out;
}

static void show_num(const struct smi_field *f, uint64_t n, char *out, size_t bytes)
{
	static const char *const sizes[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
	static const char *const times[] = { "ns", "us", "ms", "s" };

	if (f->unit == SMI_BYTES)
		scale((double)n, 1024, sizes, 7, out, bytes);
	else if (f->unit == SMI_NS)
		scale((double)n, 1000, times, 4, out, bytes);
	else
		snprintf(out, bytes, "%" PRIu64, n);
}

static void show_real(const struct smi_field *f, double value, char *out, size_t bytes)
{
	static const char *const units[] = { [SMI_PERCENT] = "%", [SMI_C] = " C", [SMI_W] = " W",
					     [SMI_MHZ] = " MHz", [SMI_GTS] = " GT/s" };

	snprintf(out, bytes, f->unit == SMI_GTS ? "%.1f%s" : "%.0f%s", value,
		 f->unit < sizeof(units) / sizeof(*units) && units[f->unit] ? units[f->unit] : "");
}

/* A heap's parts: what is empty and what is full strike the eye. */
static void draw(char *map)
{
	for (; *map; map++)
		*map = *map == '0' ? '.' : *map == '9' ? '#' : *map;
}

void smi_show_value(const struct smi_field *f, const char *row, char *out, size_t bytes)
{
	if (!is_known(f, row))
		snprintf(out, bytes, "-");
	else if (f->type == SMI_NUM)
		show_num(f, num_of(f, row).n, out, bytes);
	else if (f->type == SMI_REAL)
		show_real(f, real_of(f, row), out, bytes);
	else if (f->type == SMI_FLAG)
		snprintf(out, bytes, "%s", *(const bool *)(row + f->offset) ? "yes" : "no");
	else
		snprintf(out, bytes, "%s", row + f->offset);
	if (f->type == SMI_TEXT && !strcmp(f->name, "map"))
		draw(out);
}

/* Characters of UTF-8, each of which takes one column. */
static unsigned width_of(const char *text)
{
	unsigned n = 0;

	for (; *text; text++)
		n += (*text & 0xc0) != 0x80;
	return n;
}

static void put_cell(const char *text, unsigned width, bool is_right, bool is_last, FILE *to)
{
	unsigned pad = width - width_of(text);

	fprintf(to, "%*s%s%*s%s", is_right ? (int)pad : 0, "", text,
		is_right || is_last ? 0 : (int)pad, "", is_last ? "\n" : "  ");
}

unsigned smi_fields_of(const struct smi_view *v, const struct smi_field **out)
{
	const struct smi_table *t = &smi_tables[v->table];
	unsigned n = 0;

	if (!*v->fields)
		for (; n < t->n_fields && n < SMI_COLUMNS; n++)
			out[n] = &t->fields[n];
	for (const char *p = v->fields; *p && n < SMI_COLUMNS; p += strspn(p, " ")) {
		const struct smi_field *f = smi_field(t, p, strcspn(p, " "));

		if (f)
			out[n++] = f;
		p += strcspn(p, " ");
	}
	return n;
}

static void put_rows(const struct smi_node *node, const struct smi_view *v, FILE *to)
{
	const struct smi_table *t = &smi_tables[v->table];
	const struct smi_field *f[SMI_COLUMNS];
	unsigned n = smi_fields_of(v, f), width[SMI_COLUMNS];
	const char *rows = node->tables[v->table].rows;
	char value[512];

	for (unsigned k = 0; k < n; k++) {
		width[k] = width_of(f[k]->heading);
		for (unsigned i = 0; i < node->tables[v->table].n; i++) {
			smi_show_value(f[k], rows + i * t->row_bytes, value, sizeof(value));
			if (width_of(value) > width[k])
				width[k] = width_of(value);
		}
	}
	for (unsigned k = 0; k < n; k++)
		put_cell(f[k]->heading, width[k], f[k]->type != SMI_TEXT, k + 1 == n, to);
	for (unsigned i = 0; i < node->tables[v->table].n; i++)
		for (unsigned k = 0; k < n; k++) {
			smi_show_value(f[k], rows + i * t->row_bytes, value, sizeof(value));
			put_cell(value, width[k], f[k]->type != SMI_TEXT, k + 1 == n, to);
		}
}

static void put_pairs(const struct smi_node *node, const struct smi_view *v, FILE *to)
{
	const struct smi_table *t = &smi_tables[v->table];
	const struct smi_field *f[SMI_COLUMNS];
	unsigned n = smi_fields_of(v, f), width = 0;
	char value[512];

	for (unsigned k = 0; k < n; k++)
		if (width_of(f[k]->heading) > width)
			width = width_of(f[k]->heading);
	for (unsigned i = 0; i < node->tables[v->table].n; i++) {
		const char *row = (const char *)node->tables[v->table].rows + i * t->row_bytes;

		fputs(i ? "\n" : "", to);
		for (unsigned k = 0; k < n; k++) {
			if (!is_known(f[k], row))
				continue;
			smi_show_value(f[k], row, value, sizeof(value));
			put_cell(f[k]->heading, width, false, false, to);
			fprintf(to, "%s\n", value);
		}
	}
}

const char *smi_show_path(const struct smi_node *node, const char *from, const char *to)
{
	for (unsigned i = 0; i < SMI_COUNT(node, paths); i++) {
		const struct smi_path *p = &SMI_GET(node, paths, smi_path)[i];

		if (!strcmp(p->from, from) && !strcmp(p->to, to))
			return p->relation;
	}
	return strcmp(from, to) ? "-" : "X";
}

static void put_paths(const struct smi_node *node, FILE *to)
{
	const struct smi_device *d[SMI_COLUMNS];
	unsigned n = 0, width = 4;
	char number[24];

	for (unsigned i = 0; i < SMI_COUNT(node, devices) && n < SMI_COLUMNS; i++) {
		const struct smi_device *one = &SMI_GET(node, devices, smi_device)[i];

		if (!*one->pci)
			continue;
		d[n++] = one;
		if (width_of(one->bus_id) > width)
			width = width_of(one->bus_id);
	}
	if (!n) {
		fputs("no device is on PCI\n", to);
		return;
	}
	put_cell("", width, false, false, to);
	for (unsigned k = 0; k < n; k++) {
		snprintf(number, sizeof(number), "%" PRIu64, d[k]->index.n);
		put_cell(number, 4, false, k + 1 == n, to);
	}
	for (unsigned i = 0; i < n; i++) {
		put_cell(d[i]->bus_id, width, false, false, to);
		for (unsigned k = 0; k < n; k++)
			put_cell(smi_show_path(node, d[i]->bus_id, d[k]->bus_id), 4, false,
				 k + 1 == n, to);
	}
}

/* With a problem, nobody knows whether there is none. */
void smi_say_none(const struct smi_node *node, enum smi_table_id id, FILE *to)
{
	if (*node->problem)
		fprintf(to, "%s could not all be looked for\n", smi_tables[id].name);
	else if (id == SMI_devices)
		fprintf(to, "No device. Looked for: %s.\n", node->looked);
	else if (id == SMI_processes)
		fputs("no process uses a device\n", to);
	else if (id == SMI_events)
		fputs("nothing went wrong in the processes that run\n", to);
	else if (id == SMI_findings)
		fputs("nothing stands in the way\n", to);
	else if (id == SMI_hops)
		fputs("no chips are linked\n", to);
	else
		fprintf(to, "no process tells of %s\n", smi_tables[id].name);
}

/* ---- chips of a fabric ---- */

void smi_show_hops(const struct smi_node *node, const struct smi_device *from,
		   const struct smi_device *to, char *out, size_t bytes)
{
	snprintf(out, bytes, from == to ? "0" : "-");
	for (unsigned i = 0; i < SMI_COUNT(node, hops); i++) {
		const struct smi_hop *h = &SMI_GET(node, hops, smi_hop)[i];

		if (h->from_chip.n != from->chip.n || h->to_chip.n != to->chip.n ||
		    strcmp(h->fabric, from->fabric) || !h->hops.is_known)
			continue;
		snprintf(out, bytes, "%" PRIu64, h->hops.n);
		return;
	}
}

unsigned smi_chips(const struct smi_node *node, unsigned first, const struct smi_device **out)
{
	const struct smi_device *d = SMI_GET(node, devices, smi_device);
	unsigned n = 0;

	for (unsigned i = 0; i < SMI_COUNT(node, devices) && n < SMI_COLUMNS; i++) {
		if (!*d[first].fabric || strcmp(d[i].fabric, d[first].fabric))
			continue;
		if (i < first)
			return 0;
		out[n++] = &d[i];
	}
	return n;
}

static void put_fabric(const struct smi_node *node, const struct smi_device *const *d, unsigned n,
		       FILE *to)
{
	unsigned width = 0;
	char text[24];

	fprintf(to, "hops in fabric %s, %s\n", d[0]->fabric, d[0]->shape);
	for (unsigned i = 0; i < n; i++)
		if (width_of(d[i]->bus_id) > width)
			width = width_of(d[i]->bus_id);
	put_cell("", width, false, false, to);
	for (unsigned k = 0; k < n; k++) {
		snprintf(text, sizeof(text), "%" PRIu64, d[k]->chip.n);
		put_cell(text, 4, true, k + 1 == n, to);
	}
	for (unsigned i = 0; i < n; i++) {
		put_cell(d[i]->bus_id, width, false, false, to);
		for (unsigned k = 0; k < n; k++) {
			smi_show_hops(node, d[i], d[k], text, sizeof(text));
			put_cell(text, 4, true, k + 1 == n, to);
		}
	}
}

static void put_fabrics(const struct smi_node *node, FILE *to)
{
	const struct smi_device *d[SMI_COLUMNS];
	bool is_first = true;

	for (unsigned i = 0; i < SMI_COUNT(node, devices); i++) {
		unsigned n = smi_chips(node, i, d);

		if (!n)
			continue;
		fputs(is_first ? "" : "\n", to);
		put_fabric(node, d, n, to);
		is_first = false;
	}
	if (is_first)
		smi_say_none(node, SMI_hops, to);
}

void smi_write_text(const struct smi_node *node, const struct smi_view *views, unsigned n,
		    FILE *to)
{
	for (unsigned i = 0; i < n; i++) {
		fputs(i ? "\n" : "", to);
		if (views[i].shape == SMI_AS_MATRIX && views[i].table == SMI_paths)
			put_paths(node, to);
		else if (views[i].shape == SMI_AS_MATRIX)
			put_fabrics(node, to);
		else if (!node->tables[views[i].table].n)
			smi_say_none(node, views[i].table, to);
		else if (views[i].shape == SMI_AS_PAIRS)
			put_pairs(node, &views[i], to);
		else
			put_rows(node, &views[i], to);
	}
}
