/* SPDX-License-Identifier: Apache-2.0 */
/* Pictures: what was measured by size, and where memory was bad. */
#include <math.h>
#include <string.h>

#include "hal/base/markup.h"
#include "tools/bringup/page.h"

/* ---- plots ---- */

/* The picture and the part of it that is plotted on. */
enum { WIDTH = 640, HEIGHT = 240, LEFT = 60, RIGHT = 620, TOP = 20, BOTTOM = 200 };

/* Points of one series, and the scales: sizes by their logarithm, rates from 0. */
struct plot {
	const struct bringup_point *points;
	unsigned n;
	double least, most, top;
};

static double x_of(const struct plot *p, uint64_t bytes)
{
	double span = p->most - p->least;

	return LEFT + (span > 0 ? (log2((double)bytes) - p->least) / span : 0.5) * (RIGHT - LEFT);
}

/* What is no number lies on the ground. */
static double y_of(const struct plot *p, double rate)
{
	return BOTTOM - (rate > 0 && rate <= p->top ? rate / p->top : 0) * (BOTTOM - TOP);
}

static struct plot scale(const struct bringup_point *points, unsigned n)
{
	struct plot p = { .points = points, .n = n, .least = HUGE_VAL, .most = -HUGE_VAL };

	for (unsigned i = 0; i < n; i++) {
		double at = log2((double)points[i].bytes);

		p.least = fmin(p.least, at);
		p.most = fmax(p.most, at);
		if (isfinite(points[i].measured))
			p.top = fmax(p.top, points[i].measured);
		if (isfinite(points[i].expected))
			p.top = fmax(p.top, points[i].expected);
	}
	p.top = p.top > 0 ? p.top * 1.1 : 1;
	return p;
}

static void put_size(uint64_t bytes, FILE *to)
{
	static const char *const units[] = { "B", "KiB", "MiB", "GiB" };
	unsigned unit = 0;

	for (; unit < 3 && bytes >= 1024 && !(bytes % 1024); unit++)
		bytes /= 1024;
	fprintf(to, "%llu %s", (unsigned long long)bytes, units[unit]);
}

static void put_line(const struct plot *p, bool is_expected, FILE *to)
{
	fprintf(to, "<polyline class=\"%s\" fill=\"none\" stroke=\"%s\" stroke-width=\"2\"%s "
		"points=\"", is_expected ? "expected" : "measured",
		is_expected ? "#333" : "#5b8fd0", is_expected ? " stroke-dasharray=\"5 4\"" : "");
	for (unsigned i = 0; i < p->n; i++)
		fprintf(to, "%s%.1f,%.1f", i ? " " : "", x_of(p, p->points[i].bytes),
			y_of(p, is_expected ? p->points[i].expected : p->points[i].measured));
	fputs("\"/>\n", to);
}

static void put_axes(const struct plot *p, FILE *to)
{
	fprintf(to, "<path d=\"M%d %dV%dH%d\" fill=\"none\" stroke=\"#999\"/>\n", LEFT, TOP, BOTTOM,
		RIGHT);
	for (unsigned i = 0; i <= 4; i++) {
		double rate = p->top * i / 4;

		fprintf(to, "<text class=\"rate\" x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%.3g"
			"</text>\n", LEFT - 6, y_of(p, rate) + 4, rate);
	}
	for (unsigned i = 0; i < p->n; i++) {
		fprintf(to, "<text class=\"size\" x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">",
			x_of(p, p->points[i].bytes), BOTTOM + 18);
		put_size(p->points[i].bytes, to);
		fputs("</text>\n", to);
	}
}

static void put_plot(const struct plot *p, FILE *to)
{
	bool has_expected = true;

	fputs("<h3>", to);
	markup_put(p->points->series, to);
	fprintf(to, ", GB/s by size</h3>\n<svg class=\"curve\" data-series=\"");
	markup_put(p->points->series, to);
	fprintf(to, "\" width=\"%d\" height=\"%d\" role=\"img\" font-size=\"11\">\n", WIDTH,
		HEIGHT);
	put_axes(p, to);
	for (unsigned i = 0; i < p->n; i++)
		has_expected = has_expected && p->points[i].expected > 0;
	if (has_expected)
		put_line(p, true, to);
	put_line(p, false, to);
	for (unsigned i = 0; i < p->n; i++) {
		const struct bringup_point *at = &p->points[i];

		fprintf(to, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"4\" fill=\"#5b8fd0\"><title>",
			x_of(p, at->bytes), y_of(p, at->measured));
		put_size(at->bytes, to);
		fprintf(to, ": %.4g GB/s", at->measured);
		if (at->expected > 0)
			fprintf(to, ", %.4g expected", at->expected);
		fputs("</title></circle>\n", to);
	}
	fputs("</svg>\n", to);
}

void bringup_put_curves(const struct bringup_report *r, FILE *to)
{
	bool any = false;

	for (unsigned i = 0; i < r->n_rows; i++) {
		const struct bringup_row *row = &r->rows[i];

		for (unsigned k = 0, n; k < row->n_points; k += n) {
			struct plot p;

			for (n = 1; k + n < row->n_points && !strcmp(row->points[k + n].series,
								     row->points[k].series); n++)
				;
			if (!any)
				fputs("<h2>By size</h2>\n<p>The dashed line is what is expected: a "
				      "round trip, and the bytes at the rate of large copies. Only "
				      "the figures above are judged.</p>\n", to);
			any = true;
			p = scale(&row->points[k], n);
			put_plot(&p, to);
		}
	}
}

/* ---- maps ---- */

enum { MAP = 640, STRIP = 18 };

/* A part of HBM as a strip: what was tested, and a line at each word that was read wrong. */
static void put_strip(const struct bringup_map *m, uint64_t from, uint64_t bytes,
		      const char *class, FILE *to)
{
	double per_byte = (double)MAP / (double)bytes;

	fprintf(to, "<svg class=\"%s\" data-offset=\"%llu\" data-bytes=\"%llu\" width=\"%d\" "
		"height=\"%d\" role=\"img\"><rect width=\"%d\" height=\"%d\" fill=\"#eee\"/>\n",
		class, (unsigned long long)from, (unsigned long long)bytes, MAP, STRIP, MAP, STRIP);
	for (unsigned i = 0; i < m->n_areas; i++) {
		uint64_t at = m->areas[i].offset, n = m->areas[i].bytes;

		if (at < from || at - from >= bytes)
			continue;
		/* An area that is a millionth of HBM is seen all the same. */
		fprintf(to, "<rect class=\"tested\" x=\"%.2f\" width=\"%.2f\" height=\"%d\" "
			"fill=\"#9cc99f\"/>\n", fmin((double)(at - from) * per_byte, MAP - 2),
			fmax((double)n * per_byte, 2), STRIP);
	}
	for (unsigned i = 0; i < m->n_told; i++) {
		uint64_t at = m->bad[i].offset;
		double x = at < from || at - from >= bytes ? -1 : (double)(at - from) * per_byte;

		if (x >= 0)
			fprintf(to, "<line class=\"bad\" x1=\"%.2f\" x2=\"%.2f\" y2=\"%d\" "
				"stroke=\"#b00020\"><title>0x%llx: 0x%llx instead of 0x%llx</title>"
				"</line>\n", x, x, STRIP, (unsigned long long)at,
				(unsigned long long)m->bad[i].got,
				(unsigned long long)m->bad[i].want);
	}
	fputs("</svg>\n", to);
}

static void put_map(const struct bringup_row *row, uint64_t hbm_bytes, FILE *to)
{
	const struct bringup_map *m = &row->memory;

	fprintf(to, "<h3>%s: ", row->step->name);
	if (m->n_bad)
		fprintf(to, "%llu wrong reads, the first %u shown</h3>\n",
			(unsigned long long)m->n_bad, m->n_told);
	else
		fputs("no wrong reads</h3>\n", to);
	if (hbm_bytes) {
		fputs("<div>all of HBM, ", to);
		put_size(hbm_bytes, to);
		fputs("<br/>\n", to);
		put_strip(m, 0, hbm_bytes, "hbm", to);
		fputs("</div>\n", to);
	}
	/* From near, where there is something to see. */
	for (unsigned i = 0; m->n_bad && i < m->n_areas; i++) {
		fprintf(to, "<div>from 0x%llx, ", (unsigned long long)m->areas[i].offset);
		put_size(m->areas[i].bytes, to);
		fputs("<br/>\n", to);
		if (m->areas[i].bytes)
			put_strip(m, m->areas[i].offset, m->areas[i].bytes, "area", to);
		fputs("</div>\n", to);
	}
}

void bringup_put_maps(const struct bringup_report *r, FILE *to)
{
	bool any = false;

	for (unsigned i = 0; i < r->n_rows; i++) {
		if (!r->rows[i].memory.n_areas)
			continue;
		if (!any)
			fputs("<h2>Memory</h2>\n<p>Green is what was tested, a red line a word "
			      "that was read wrong.</p>\n", to);
		any = true;
		put_map(&r->rows[i], r->hbm_bytes, to);
	}
}
