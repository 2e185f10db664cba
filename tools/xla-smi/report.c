/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A node as one page of HTML that needs nothing else: no script, no font, no address. All text
 * is escaped, whoever wrote it, and set apart from what is around it, so that neither markup
 * nor the direction of a script gets out of its cell.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "hal/base/markup.h"
#include "runtime/compiler/tc.h"
#include "tools/xla-smi/smi.h"

#define CELL_W 150	/* of a chip in the drawing */
#define CELL_H 84
#define MAX_DRAWN 16u	/* chips along a dimension; more are in the tables alone */

static const char style[] =
	"body{font:14px/1.4 system-ui,sans-serif;margin:2em;color:#1a1a1a;background:#fff}\n"
	"h1{font-size:1.5em}h2{font-size:1.15em;margin-top:2em;border-bottom:1px solid #bbb}\n"
	"div.wide{overflow-x:auto}table{border-collapse:collapse}\n"
	"th,td{padding:.2em .7em;text-align:left;border-bottom:1px solid #ddd;vertical-align:top;"
	"unicode-bidi:isolate}\n"
	"th.n{text-align:right}"
	"th{font-size:.8em;color:#555;white-space:nowrap}td.n{text-align:right;"
	"white-space:nowrap;font-variant-numeric:tabular-nums}\n"
	"tr.error td:first-child{color:#fff;background:#b00020}\n"
	"tr.warning td:first-child{background:#ffd76a}tr.note td:first-child{background:#dfe7f2}\n"
	"td.bad{color:#b00020;font-weight:600}p.none{color:#666}svg{max-width:100%;height:auto}\n"
	"nav a{margin-right:1em}@media print{nav{display:none}}\n";

/* Of each view of the command, in its order. */
static const struct { const char *id, *title; } sections[] = {
	{ "doctor", "What stands in the way" },
	{ "devices", "Devices" },
	{ "processes", "Processes" },
	{ "fabric", "Linked chips" },
	{ "links", "Links" },
	{ "hops", "Hops between chips" },
	{ "memory", "Memory map" },
	{ "owners", "Whose memory" },
	{ "work", "Counters: work" },
	{ "errors", "Counters: errors and resets" },
	{ "pci", "Where devices are on PCI" },
	{ "paths", "Paths on PCI" },
	{ "log", "Fault history" },
};

#define N_SECTIONS (sizeof(sections) / sizeof(*sections))

/* ---- text ---- */

static void put_line(const char *what, const char *text, FILE *to)
{
	if (!*text)
		return;
	fprintf(to, "<tr><th>%s</th><td>", what);
	markup_put(text, to);
	fputs("</td></tr>\n", to);
}

/* ---- tables ---- */

/* A heap's parts, each as dark as it is full. */
static void draw_map(const char *map, FILE *to)
{
	fprintf(to, "<svg viewBox=\"0 0 %d 14\" width=\"%d\" height=\"14\" role=\"img\" "
		"aria-label=\"memory map\">", 64 * 5, 64 * 5);
	for (int i = 0; i < 64 && map[i]; i++) {
		int full = map[i] >= '0' && map[i] <= '9' ? map[i] - '0' : 0;

		fprintf(to, "<rect x=\"%d\" y=\"0\" width=\"5\" height=\"14\" fill=\"hsl(215,60%%,"
			"%d%%)\"/>", i * 5, 95 - full * 7);
	}
	fputs("</svg>", to);
}

/* What strikes the eye: a link that does not work or refuses, a device that is dead. */
static bool is_bad(const struct smi_view *v, const struct smi_field *f, const char *row)
{
	const struct smi_link *l = (const void *)row;
	const struct smi_device *d = (const void *)row;

	if (v->table == SMI_links)
		return (!strcmp(f->name, "state") && l->up.is_known && !l->up.n) ||
		       (!strcmp(f->name, "n_refused") && l->n_refused.n);
	return v->table == SMI_devices && !strcmp(f->name, "state") &&
	       !strncmp(d->state, "dead", 4);
}

static void put_value(const struct smi_view *v, const struct smi_field *f, const char *row,
		      FILE *to)
{
	bool is_map = v->table == SMI_heaps && !strcmp(f->name, "map") && row[f->offset];
	char value[512];

	fprintf(to, "<td class=\"%s%s\">", f->type != SMI_TEXT ? "n" : "t",
		is_bad(v, f, row) ? " bad" : "");
	smi_show_value(f, row, value, sizeof(value));
	if (is_map)
		draw_map(row + f->offset, to);
	else
		markup_put(value, to);
	fputs("</td>", to);
}

static void put_table(const struct smi_node *node, const struct smi_view *v, FILE *to)
{
	const struct smi_table *t = &smi_tables[v->table];
	const struct smi_field *f[SMI_COLUMNS];
	unsigned n = smi_fields_of(v, f);

	fputs("<div class=\"wide\"><table>\n<thead><tr>", to);
	for (unsigned k = 0; k < n; k++) {
		fprintf(to, "<th class=\"%s\" title=\"", f[k]->type != SMI_TEXT ? "n" : "t");
		markup_put(f[k]->meaning, to);
		fputs("\">", to);
		markup_put(f[k]->heading, to);
		fputs("</th>", to);
	}
	fputs("</tr></thead>\n<tbody>\n", to);
	for (unsigned i = 0; i < node->tables[v->table].n; i++) {
		const char *row = (const char *)node->tables[v->table].rows + i * t->row_bytes;
		const struct smi_finding *finding = (const void *)row;

		fputs("<tr", to);
		if (v->table == SMI_findings) {
			fputs(" class=\"", to);
			markup_put(finding->severity, to);
			fputc('"', to);
		}
		fputc('>', to);
		for (unsigned k = 0; k < n; k++)
			put_value(v, f[k], row, to);
		fputs("</tr>\n", to);
	}
	fputs("</tbody>\n</table></div>\n", to);
}

static void put_none(const struct smi_node *node, enum smi_table_id table, FILE *to)
{
	char *text = NULL;
	size_t n = 0;
	FILE *say = open_memstream(&text, &n);

	if (say)
		smi_say_none(node, table, say);
	fputs("<p class=\"none\">", to);
	if (say && !fclose(say))
		markup_put(text, to);
	fputs("</p>\n", to);
	free(text);
}

/* ---- matrices ---- */

static void put_matrix(const struct smi_node *node, const struct smi_device *const *d, unsigned n,
		       bool is_pci, FILE *to)
{
	char text[24];

	fputs("<div class=\"wide\"><table>\n<thead><tr><th></th>", to);
	for (unsigned k = 0; k < n; k++) {
		fputs("<th>", to);
		markup_put(d[k]->bus_id, to);
		fputs("</th>", to);
	}
	fputs("</tr></thead>\n<tbody>\n", to);
	for (unsigned i = 0; i < n; i++) {
		fputs("<tr><th>", to);
		markup_put(d[i]->bus_id, to);
		fputs("</th>", to);
		for (unsigned k = 0; k < n; k++) {
			if (is_pci)
				snprintf(text, sizeof(text), "%s",
					 smi_show_path(node, d[i]->bus_id, d[k]->bus_id));
			else
				smi_show_hops(node, d[i], d[k], text, sizeof(text));
			fputs("<td class=\"n\">", to);
			markup_put(text, to);
			fputs("</td>", to);
		}
		fputs("</tr>\n", to);
	}
	fputs("</tbody>\n</table></div>\n", to);
}

static void put_paths(const struct smi_node *node, FILE *to)
{
	const struct smi_device *d[SMI_COLUMNS];
	unsigned n = 0;

	for (unsigned i = 0; i < SMI_COUNT(node, devices) && n < SMI_COLUMNS; i++)
		if (*SMI_GET(node, devices, smi_device)[i].pci)
			d[n++] = &SMI_GET(node, devices, smi_device)[i];
	if (n)
		put_matrix(node, d, n, true, to);
	else
		fputs("<p class=\"none\">no device is on PCI</p>\n", to);
}

/* ---- the drawing of a fabric ---- */

static bool place_of(const struct smi_device *d, unsigned at[3], unsigned shape[3])
{
	if (sscanf(d->coords, "%u,%u,%u", &at[0], &at[1], &at[2]) != 3 ||
	    sscanf(d->shape, "%ux%ux%u", &shape[0], &shape[1], &shape[2]) != 3)
		return false;
	for (unsigned i = 0; i < 3; i++)
		if (at[i] >= shape[i] || shape[i] > MAX_DRAWN)
			return false;
	return true;
}

static void middle_of(const unsigned at[3], const unsigned shape[3], int *x, int *y)
{
	*x = (int)at[0] * CELL_W + CELL_W / 2;
	*y = (int)(at[2] * shape[1] + at[1]) * CELL_H + CELL_H / 2;
}

/* One line a link; one that goes round is a stub at each end. */
static void draw_link(const struct smi_link *l, const struct smi_device *d, FILE *to)
{
	unsigned at[3], shape[3], other[3];
	int x, y, u, v;
	int dim = *l->port == 'x' ? 0 : *l->port == 'y' ? 1 : *l->port == 'z' ? 2 : -1;
	bool is_down = l->port[0] && l->port[1] == '-';

	if (dim < 0 || !place_of(d, at, shape))
		return;
	memcpy(other, at, sizeof(at));
	/* Between two chips there is one link, and both its ends are called +. */
	other[dim] = shape[dim] == 2 ? 1 - at[dim] : is_down ? at[dim] - 1 : at[dim] + 1;
	middle_of(at, shape, &x, &y);
	if (other[dim] < shape[dim]) {
		middle_of(other, shape, &u, &v);
		/* To the middle of the way: the other half is the neighbour's word. */
		u = (x + u) / 2;
		v = (y + v) / 2;
	} else {
		u = x + (dim ? 0 : is_down ? -CELL_W / 2 : CELL_W / 2);
		v = y + (dim ? is_down ? -CELL_H / 2 : CELL_H / 2 : 0);
	}
	fprintf(to, "<line x1=\"%d\" y1=\"%d\" x2=\"%d\" y2=\"%d\" stroke=\"%s\" "
		"stroke-width=\"4\"%s><title>", x, y, u, v, !l->up.n ? "#b00020" :
		l->n_refused.n ? "#d98c00" : "#2e7d32", l->up.n ? "" :
		" stroke-dasharray=\"6 5\"");
	markup_put(l->bus_id, to);
	fputc(' ', to);
	markup_put(l->port, to);
	fputs(": ", to);
	markup_put(l->state, to);
	fputs("</title></line>\n", to);
}

static void draw_chip(const struct smi_device *d, FILE *to)
{
	unsigned at[3], shape[3];
	int x, y;

	if (!place_of(d, at, shape))
		return;
	middle_of(at, shape, &x, &y);
	fprintf(to, "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"5\" fill=\"%s\" "
		"stroke=\"#456\"/>\n<text x=\"%d\" y=\"%d\" text-anchor=\"middle\" "
		"font-size=\"12\"><title>", x - 48, y - 20, 96, 40, strncmp(d->state, "dead", 4) ?
		"#eef3fa" : "#f7c6cc", x, y - 3);
	markup_put(d->bus_id, to);
	fputs("</title>chip ", to);
	fprintf(to, "%" PRIu64 "</text>\n<text x=\"%d\" y=\"%d\" text-anchor=\"middle\" "
		"font-size=\"10\" fill=\"#555\">", d->chip.n, x, y + 12);
	markup_put(d->coords, to);
	fputs("</text>\n", to);
}

static void draw_fabric(const struct smi_node *node, const struct smi_device *const *d, unsigned n,
			FILE *to)
{
	unsigned at[3], shape[3];

	if (!place_of(d[0], at, shape))
		return;
	fprintf(to, "<p>Fabric ");
	markup_put(d[0]->fabric, to);
	fprintf(to, ": green links work, orange ones refused writes, red ones do not work; a half "
		"without a line nobody told of.</p>\n<svg viewBox=\"0 0 %u %u\" width=\"%u\" "
		"role=\"img\" aria-label=\"fabric\">\n", shape[0] * CELL_W,
		shape[1] * shape[2] * CELL_H, shape[0] * CELL_W);
	for (unsigned i = 0; i < SMI_COUNT(node, links); i++) {
		const struct smi_link *l = &SMI_GET(node, links, smi_link)[i];

		for (unsigned k = 0; k < n && !strcmp(l->fabric, d[0]->fabric); k++)
			if (d[k]->chip.n == l->chip.n)
				draw_link(l, d[k], to);
	}
	for (unsigned k = 0; k < n; k++)
		draw_chip(d[k], to);
	fputs("</svg>\n", to);
}

static void put_fabrics(const struct smi_node *node, bool is_drawing, FILE *to)
{
	const struct smi_device *d[SMI_COLUMNS];
	bool any = false;

	for (unsigned i = 0; i < SMI_COUNT(node, devices); i++) {
		unsigned n = smi_chips(node, i, d);

		any |= n > 0;
		if (n && is_drawing)
			draw_fabric(node, d, n, to);
		else if (n)
			put_matrix(node, d, n, false, to);
	}
	if (!any && !is_drawing)
		put_none(node, SMI_hops, to);
}

/* ---- the page ---- */

/* refresh: seconds after which a browser asks again; 0: never. */
static void put_head(const struct smi_node *node, unsigned refresh, FILE *to)
{
	char count[24] = "";

	fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
	      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
	      "style-src 'unsafe-inline'\">\n", to);
	if (refresh)
		fprintf(to, "<meta http-equiv=\"refresh\" content=\"%u\">\n", refresh);
	fputs("<title>xla-smi: ", to);
	markup_put(node->host, to);
	fprintf(to, "</title>\n<style>\n%s</style>\n</head>\n<body>\n<h1>xla-smi report</h1>\n"
		"<table>\n", style);
	if (node->n_unreadable)
		snprintf(count, sizeof(count), "%u", node->n_unreadable);
	put_line("host", node->host, to);
	put_line("time", node->time, to);
	put_line("by", "xla-smi " TC_VERSION ", " SMI_SCHEMA, to);
	put_line("looked for", node->looked, to);
	put_line("pages that may not be read", count, to);
	put_line("not all of it", node->problem, to);
	fputs("</table>\n<nav>", to);
	for (unsigned i = refresh ? 1 : 0; i < N_SECTIONS; i++)
		fprintf(to, "<a href=\"#%s\">%s</a>\n", sections[i].id, sections[i].title);
	fputs("</nav>\n", to);
}

static void put_section(const struct smi_node *node, const struct smi_view *v, unsigned i,
			FILE *to)
{
	bool is_fabric = !strcmp(sections[i].id, "fabric");

	fprintf(to, "<section id=\"%s\">\n<h2>%s</h2>\n", sections[i].id, sections[i].title);
	if (v->shape == SMI_AS_MATRIX && v->table == SMI_paths)
		put_paths(node, to);
	else if (v->shape == SMI_AS_MATRIX)
		put_fabrics(node, false, to);
	else if (node->tables[v->table].n)
		put_table(node, v, to);
	else
		put_none(node, v->table, to);
	if (is_fabric)
		put_fabrics(node, true, to);
	fputs("</section>\n", to);
}

/* The doctor is the first section, and not for a page that lives: it tries devices' files. */
static void write_report(const struct smi_node *node, unsigned refresh, FILE *to)
{
	const struct smi_view *v = NULL;
	unsigned n = smi_views("report", &v);

	put_head(node, refresh, to);
	for (unsigned i = refresh ? 1 : 0; i < n && i < N_SECTIONS; i++)
		put_section(node, &v[i], i, to);
	fputs("</body>\n</html>\n", to);
}

void smi_write_page(const struct smi_options *o, struct smi_node *node, FILE *to)
{
	smi_add_paths(o->root, node);
	smi_add_hops(node);
	write_report(node, o->interval > 1 ? (unsigned)(o->interval + 0.5) : 1, to);
}

static int write_file(const char *path, const struct smi_node *node)
{
	bool is_stdout = !strcmp(path, "-");
	FILE *to = is_stdout ? stdout : fopen(path, "we");
	int status = SMI_OK;

	if (to)
		write_report(node, 0, to);
	if (!to || fflush(to) || ferror(to)) {
		fprintf(stderr, "xla-smi: %s could not be written: %s\n", path, strerror(errno));
		status = SMI_FAILED;
	}
	if (to && !is_stdout && fclose(to))
		status = SMI_FAILED;
	return status;
}

int smi_report(const struct smi_options *o, int argc, char **argv)
{
	struct smi_node node;
	int status;

	if (argc > 2) {
		smi_node_init(&node);
		status = smi_read_json(argv[2], &node);
	} else {
		smi_gather(o, &node);
		smi_complete(o, argv[0], &node);
		status = SMI_OK;
	}
	if (!status)
		status = smi_select(&node, o->device, o->n_devices);
	if (!status)
		status = write_file(argv[1], &node);
	if (!status && *node.problem) {
		fprintf(stderr, "xla-smi: %s\n", node.problem);
		status = SMI_FAILED;
	}
	smi_node_free(&node);
	return status;
}
