/* SPDX-License-Identifier: Apache-2.0 */
/* The report as one page of HTML that needs nothing else: no script, no font, no address. */
#include <string.h>

#include "hal/base/markup.h"
#include "tools/bringup/page.h"

#define BAR 120.0	/* of a figure that is as expected; the scale ends at twice that */

static const char head[] =
	"<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
	"<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
	"style-src 'unsafe-inline'\">\n<title>bring-up</title>\n<style>\n"
	"body{font:14px/1.4 system-ui,sans-serif;margin:2em;color:#1a1a1a;background:#fff}\n"
	"h1{font-size:1.5em}h3{font-size:1em;margin:1em 0 .3em}\n"
	"h2{font-size:1.15em;margin-top:2em;border-bottom:1px solid #bbb}\n"
	"table{border-collapse:collapse}th,td{padding:.2em .7em;text-align:left;"
	"border-bottom:1px solid #ddd;vertical-align:top;unicode-bidi:isolate}\n"
	"td.n{text-align:right;font-variant-numeric:tabular-nums}pre{background:#f4f4f4;"
	"padding:.7em;overflow-x:auto}\n"
	"td.pass{background:#d9efdb}td.fail{background:#b00020;color:#fff}"
	"td.skip{background:#eee}\n"
	"</style>\n</head>\n<body>\n";

static void put_steps(const struct bringup_report *r, FILE *to)
{
	fputs("<h2>Steps</h2>\n<table>\n<tr><th>N</th><th>Step</th><th>Result</th><th>Seconds</th>"
	      "<th>Found</th><th>Proves</th></tr>\n", to);
	for (unsigned i = 0; i < r->n_rows; i++) {
		const struct bringup_row *row = &r->rows[i];
		const char *result = row->seconds < 0 ? "begun" : bringup_result_name(row->result);

		fprintf(to, "<tr><td class=\"n\">%u</td><td>%s</td><td class=\"%s\">%s</td>"
			"<td class=\"n\">%.2f</td><td>", row->step->number, row->step->name, result,
			result, row->seconds < 0 ? 0 : row->seconds);
		markup_put(row->text, to);
		fputs("</td><td>", to);
		markup_put(row->step->proves, to);
		fputs("</td></tr>\n", to);
	}
	fputs("</table>\n", to);
}

/* A bar as long as the ratio, with lines where it passes and where it is as expected. */
static void put_bar(const struct bringup_number *n, FILE *to)
{
	double ratio = bringup_ratio(n), length = ratio * BAR;

	/* No number is no bar. */
	length = length > 0 ? length < 2 * BAR ? length : 2 * BAR : 0;
	fprintf(to, "<svg width=\"%.0f\" height=\"16\" role=\"img\" aria-label=\"ratio %.2f\">"
		"<rect width=\"%.1f\" height=\"12\" y=\"2\" fill=\"%s\"/>"
		"<line x1=\"%.1f\" x2=\"%.1f\" y2=\"16\" stroke=\"#b00020\"/>"
		"<line x1=\"%.1f\" x2=\"%.1f\" y2=\"16\" stroke=\"#333\"/></svg>", 2 * BAR, ratio,
		length, ratio >= BRINGUP_LEAST ? "#5b8fd0" : "#b00020", BRINGUP_LEAST * BAR,
		BRINGUP_LEAST * BAR, BAR, BAR);
}

static void put_figures_head(FILE *to)
{
	fprintf(to, "<h2>Figures</h2>\n<p>A bar is the ratio to what is expected, at the dark "
		"line; left of the red one, at %.2f, a step fails.</p>\n<table>\n<tr><th>Step</th>"
		"<th>Figure</th><th>Measured</th><th>Expected</th><th>Ratio</th></tr>\n",
		BRINGUP_LEAST);
}

static void put_numbers(const struct bringup_report *r, FILE *to)
{
	bool any = false;

	for (unsigned i = 0; i < r->n_rows; i++)
		for (unsigned k = 0; k < r->rows[i].n_numbers; k++) {
			const struct bringup_number *n = &r->rows[i].numbers[k];

			if (!any)
				put_figures_head(to);
			any = true;
			fprintf(to, "<tr><td>%s</td><td>", r->rows[i].step->name);
			markup_put(n->name, to);
			fprintf(to, "</td><td class=\"n\">%.4g ", n->measured);
			markup_put(n->unit, to);
			if (n->expected > 0) {
				fprintf(to, "</td><td class=\"n\">%.4g</td><td>%.2f ", n->expected,
					bringup_ratio(n));
				put_bar(n, to);
			} else {
				fputs("</td><td class=\"n\">-</td><td>", to);
			}
			fputs("</td></tr>\n", to);
		}
	if (any)
		fputs("</table>\n", to);
}

static void put_states(const struct bringup_report *r, FILE *to)
{
	for (unsigned i = 0; i < r->n_rows; i++)
		if (*r->rows[i].state) {
			fprintf(to, "<h2>The device after %s failed</h2>\n<pre>",
				r->rows[i].step->name);
			markup_put(r->rows[i].state, to);
			fputs("</pre>\n", to);
		}
}

void bringup_write_html(const struct bringup_report *r, FILE *to)
{
	fputs(head, to);
	fputs("<h1>Bring-up of ", to);
	markup_put(*r->bus_id ? r->bus_id : "a device that was not found", to);
	fputs("</h1>\n<p>", to);
	markup_put(r->name, to);
	fputs(r->is_model ? " (the model), serial " : ", serial ", to);
	markup_put(*r->serial ? r->serial : "unknown", to);
	fputs(", firmware ", to);
	markup_put(*r->firmware ? r->firmware : "unknown", to);
	fprintf(to, "; level %u: %u passed, %u failed, %u skipped, %.1f s.</p>\n", r->level,
		r->n_pass, r->n_fail, r->n_skip, r->seconds);
	put_steps(r, to);
	put_numbers(r, to);
	bringup_put_curves(r, to);
	bringup_put_maps(r, to);
	put_states(r, to);
	fputs("</body>\n</html>\n", to);
}
