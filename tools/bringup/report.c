/* SPDX-License-Identifier: Apache-2.0 */
/* Reports for other programs: JSON (its schema's number is in it) and JUnit. */
#include <json-c/json.h>
#include <string.h>

#include "hal/base/markup.h"
#include "tools/bringup/bringup.h"

static void add(struct json_object *to, const char *key, struct json_object *value)
{
	json_object_object_add(to, key, value);
}

static void add_text(struct json_object *to, const char *key, const char *text)
{
	add(to, key, json_object_new_string(text));
}

static struct json_object *number(const struct bringup_number *n)
{
	struct json_object *o = json_object_new_object();

	add_text(o, "name", n->name);
	add_text(o, "unit", n->unit);
	add(o, "measured", json_object_new_double(n->measured));
	add(o, "expected", n->expected > 0 ? json_object_new_double(n->expected) : NULL);
	add(o, "ratio", n->expected > 0 ? json_object_new_double(bringup_ratio(n)) : NULL);
	return o;
}

/* A list for each series of points. */
static struct json_object *curves(const struct bringup_row *row)
{
	struct json_object *all = json_object_new_object(), *series = NULL;

	for (unsigned i = 0; i < row->n_points; i++) {
		const struct bringup_point *p = &row->points[i];
		struct json_object *o = json_object_new_object();

		if (!json_object_object_get_ex(all, p->series, &series)) {
			series = json_object_new_array();
			add(all, p->series, series);
		}
		add(o, "bytes", json_object_new_int64((int64_t)p->bytes));
		add(o, "measured", json_object_new_double(p->measured));
		add(o, "expected", p->expected > 0 ? json_object_new_double(p->expected) : NULL);
		json_object_array_add(series, o);
	}
	return all;
}

static void add_hex(struct json_object *to, const char *key, uint64_t value)
{
	char text[24];

	/* A number of JSON's readers may be a double. */
	snprintf(text, sizeof(text), "0x%llx", (unsigned long long)value);
	add_text(to, key, text);
}

static struct json_object *memory(const struct bringup_map *m)
{
	struct json_object *o = json_object_new_object(), *areas = json_object_new_array();
	struct json_object *bad = json_object_new_array();

	for (unsigned i = 0; i < m->n_areas; i++) {
		struct json_object *a = json_object_new_object();

		add(a, "offset", json_object_new_int64((int64_t)m->areas[i].offset));
		add(a, "bytes", json_object_new_int64((int64_t)m->areas[i].bytes));
		json_object_array_add(areas, a);
	}
	for (unsigned i = 0; i < m->n_told; i++) {
		struct json_object *w = json_object_new_object();

		add(w, "offset", json_object_new_int64((int64_t)m->bad[i].offset));
		add_hex(w, "want", m->bad[i].want);
		add_hex(w, "got", m->bad[i].got);
		json_object_array_add(bad, w);
	}
	add(o, "areas", areas);
	add(o, "bad_reads", json_object_new_int64((int64_t)m->n_bad));
	add(o, "bad", bad);
	return o;
}

static struct json_object *step(const struct bringup_row *row)
{
	struct json_object *o = json_object_new_object(), *numbers = json_object_new_array();

	add(o, "number", json_object_new_int((int)row->step->number));
	add_text(o, "name", row->step->name);
	add(o, "level", json_object_new_int((int)row->step->level));
	add_text(o, "proves", row->step->proves);
	/* "begun": of a report that is written while the step runs. */
	add_text(o, "result", row->seconds < 0 ? "begun" : bringup_result_name(row->result));
	add(o, "seconds", json_object_new_double(row->seconds < 0 ? 0 : row->seconds));
	add_text(o, "text", row->text);
	for (unsigned i = 0; i < row->n_numbers; i++)
		json_object_array_add(numbers, number(&row->numbers[i]));
	add(o, "numbers", numbers);
	if (row->n_points)
		add(o, "curves", curves(row));
	if (row->memory.n_areas)
		add(o, "memory", memory(&row->memory));
	if (*row->state)
		add_text(o, "state", row->state);
	return o;
}

void bringup_write_json(const struct bringup_report *r, FILE *to)
{
	struct json_object *o = json_object_new_object(), *device = json_object_new_object();
	struct json_object *steps = json_object_new_array();

	add(o, "schema", json_object_new_int(1));
	add_text(device, "bus_id", r->bus_id);
	add_text(device, "name", r->name);
	add_text(device, "serial", r->serial);
	add_text(device, "firmware", r->firmware);
	add(device, "is_model", json_object_new_boolean(r->is_model));
	add(device, "hbm_bytes", json_object_new_int64((int64_t)r->hbm_bytes));
	add(o, "device", device);
	add(o, "level", json_object_new_int((int)r->level));
	add(o, "passed", json_object_new_int((int)r->n_pass));
	add(o, "failed", json_object_new_int((int)r->n_fail));
	add(o, "skipped", json_object_new_int((int)r->n_skip));
	add(o, "seconds", json_object_new_double(r->seconds));
	for (unsigned i = 0; i < r->n_rows; i++)
		json_object_array_add(steps, step(&r->rows[i]));
	add(o, "steps", steps);
	fprintf(to, "%s\n", json_object_to_json_string_ext(o, JSON_C_TO_STRING_PRETTY |
							   JSON_C_TO_STRING_NOSLASHESCAPE));
	json_object_put(o);
}

static void put_attribute(const char *name, const char *text, FILE *to)
{
	fprintf(to, " %s=\"", name);
	markup_put(text, to);
	fputc('"', to);
}

static void put_case(const struct bringup_report *r, const struct bringup_row *row, FILE *to)
{
	char name[96];

	snprintf(name, sizeof(name), "%02u %s", row->step->number, row->step->name);
	fputs("  <testcase", to);
	put_attribute("classname", *r->bus_id ? r->bus_id : "bring-up", to);
	put_attribute("name", name, to);
	fprintf(to, " time=\"%.3f\">", row->seconds);
	if (row->result != BRINGUP_PASS) {
		fprintf(to, "<%s", row->result == BRINGUP_FAIL ? "failure" : "skipped");
		put_attribute("message", row->text, to);
		fputs("/>", to);
	} else {
		fputs("<system-out>", to);
		markup_put(row->text, to);
		fputs("</system-out>", to);
	}
	if (*row->state) {
		fputs("<system-err>", to);
		markup_put(row->state, to);
		fputs("</system-err>", to);
	}
	fputs("</testcase>\n", to);
}

void bringup_write_junit(const struct bringup_report *r, FILE *to)
{
	fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"bring-up\"", to);
	fprintf(to, " tests=\"%u\" failures=\"%u\" errors=\"0\" skipped=\"%u\" time=\"%.3f\">\n",
		r->n_rows, r->n_fail, r->n_skip, r->seconds);
	for (unsigned i = 0; i < r->n_rows; i++)
		put_case(r, &r->rows[i], to);
	fputs("</testsuite>\n", to);
}
