/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A run that goes on where another one ended: the report so far is in a file, which is written anew
 * before and after each step, whole or not at all. A step may take the machine with it; then it is
 * the one in the file that began and has no result.
 */
#include <errno.h>
#include <fcntl.h>
#include <json-c/json.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/bringup/context.h"
#include "tools/bringup/resume.h"

#define MOST_BYTES (16u << 20)	/* of a report, by far */

static const char *text_of(struct json_object *o, const char *key)
{
	struct json_object *v;

	return json_object_object_get_ex(o, key, &v) && json_object_is_type(v, json_type_string) ?
	       json_object_get_string(v) : "";
}

static double number_of(struct json_object *o, const char *key)
{
	struct json_object *v;

	return json_object_object_get_ex(o, key, &v) &&
	       (json_object_is_type(v, json_type_double) || json_object_is_type(v, json_type_int)) ?
	       json_object_get_double(v) : 0;
}

/* ---- reading ---- */

static void read_numbers(struct json_object *o, struct bringup_row *row)
{
	struct json_object *list;

	if (!json_object_object_get_ex(o, "numbers", &list) ||
	    !json_object_is_type(list, json_type_array))
		return;
	for (size_t i = 0; i < json_object_array_length(list) && i < BRINGUP_NUMBERS; i++) {
		struct json_object *n = json_object_array_get_idx(list, i);
		struct bringup_number *to = &row->numbers[row->n_numbers++];
		double ratio = number_of(n, "ratio");

		snprintf(to->name, sizeof(to->name), "%s", text_of(n, "name"));
		snprintf(to->unit, sizeof(to->unit), "%s", text_of(n, "unit"));
		to->measured = number_of(n, "measured");
		to->expected = number_of(n, "expected");
		/* The report tells the ratio and not which way round it is. */
		to->is_less_better = to->expected > 0 && to->measured > 0 &&
			(ratio > 1) != (to->measured > to->expected);
	}
}

static struct json_object *list_of(struct json_object *o, const char *key)
{
	struct json_object *list;

	return json_object_object_get_ex(o, key, &list) &&
	       json_object_is_type(list, json_type_array) ? list : NULL;
}

static uint64_t whole_of(struct json_object *o, const char *key)
{
	struct json_object *v;
	int64_t n;

	if (!json_object_object_get_ex(o, key, &v))
		return 0;
	if (json_object_is_type(v, json_type_string))
		return strtoull(json_object_get_string(v), NULL, 0);
	n = json_object_is_type(v, json_type_int) ? json_object_get_int64(v) : 0;
	return n > 0 ? (uint64_t)n : 0;
}

static void read_series(const char *name, struct json_object *list, struct bringup_row *row)
{
	for (size_t i = 0; i < json_object_array_length(list); i++) {
		struct json_object *p = json_object_array_get_idx(list, i);
		struct bringup_point *to = &row->points[row->n_points];

		if (row->n_points == BRINGUP_POINTS || !whole_of(p, "bytes"))
			return;
		snprintf(to->series, sizeof(to->series), "%s", name);
		to->bytes = whole_of(p, "bytes");
		to->measured = number_of(p, "measured");
		to->expected = number_of(p, "expected");
		row->n_points++;
	}
}

static void read_points(struct json_object *o, struct bringup_row *row)
{
	struct json_object *curves;

	if (!json_object_object_get_ex(o, "curves", &curves) ||
	    !json_object_is_type(curves, json_type_object))
		return;
	json_object_object_foreach(curves, name, list)
		if (json_object_is_type(list, json_type_array))
			read_series(name, list, row);
}

static void read_memory(struct json_object *o, struct bringup_map *m)
{
	struct json_object *memory, *list;

	if (!json_object_object_get_ex(o, "memory", &memory))
		return;
	m->n_bad = whole_of(memory, "bad_reads");
	list = list_of(memory, "areas");
	for (size_t i = 0; list && i < json_object_array_length(list) && i < BRINGUP_AREAS; i++) {
		struct json_object *a = json_object_array_get_idx(list, i);

		m->areas[m->n_areas].offset = whole_of(a, "offset");
		m->areas[m->n_areas++].bytes = whole_of(a, "bytes");
	}
	list = list_of(memory, "bad");
	for (size_t i = 0; list && i < json_object_array_length(list) && i < BRINGUP_BAD; i++) {
		struct json_object *w = json_object_array_get_idx(list, i);

		m->bad[m->n_told].offset = whole_of(w, "offset");
		m->bad[m->n_told].want = whole_of(w, "want");
		m->bad[m->n_told++].got = whole_of(w, "got");
	}
}

static void read_step(struct json_object *o, struct bringup_row *rows)
{
	const char *name = text_of(o, "name"), *result = text_of(o, "result");

	for (unsigned i = 0; i < bringup_n_steps; i++) {
		struct bringup_row *row = &rows[i];

		if (strcmp(bringup_steps[i].name, name) || row->step)
			continue;
		if (!strcmp(result, "pass")) {
			row->step = &bringup_steps[i];
			row->result = BRINGUP_PASS;
			row->seconds = number_of(o, "seconds");
			snprintf(row->text, sizeof(row->text), "%s", text_of(o, "text"));
			read_numbers(o, row);
			read_points(o, row);
			read_memory(o, &row->memory);
		} else if (!strcmp(result, "begun")) {
			row->step = &bringup_steps[i];
			row->result = BRINGUP_FAIL;
			snprintf(row->text, sizeof(row->text), "the run before this one ended in "
				 "this step, perhaps with the machine; --only %s runs it again",
				 bringup_steps[i].name);
		}
	}
}

static int read_report(struct json_object *o, const char *path, const char *bus_id,
		       struct bringup_row *rows, struct err *err)
{
	struct json_object *device = NULL, *steps;

	if (number_of(o, "schema") != 1 || !json_object_object_get_ex(o, "device", &device) ||
	    !json_object_object_get_ex(o, "steps", &steps) ||
	    !json_object_is_type(steps, json_type_array))
		return err_set(err, ERR_INVALID_ARGUMENT, "%s is no report of tessera-bringup's",
			       path);
	if (strcmp(text_of(device, "bus_id"), bus_id))
		return err_set(err, ERR_INVALID_ARGUMENT, "%s is of the device %s, and this is %s",
			       path, text_of(device, "bus_id"), bus_id);
	for (size_t i = 0; i < json_object_array_length(steps); i++)
		read_step(json_object_array_get_idx(steps, i), rows);
	return 0;
}

int bringup_resume_read(const char *path, const char *bus_id, struct bringup_row *rows,
			struct err *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), code;
	struct json_object *o;
	char *text;
	ssize_t n = 0, got;

	if (fd < 0)
		return errno == ENOENT ? 0 : err_sys(err, errno, "%s", path);
	text = malloc(MOST_BYTES + 1);
	while (text && n < MOST_BYTES && (got = read(fd, text + n, (size_t)(MOST_BYTES - n))) > 0)
		n += got;
	close(fd);
	if (!text)
		return err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory");
	text[n] = 0;
	o = json_tokener_parse(text);
	free(text);
	code = read_report(o, path, bus_id, rows, err);
	json_object_put(o);
	return code;
}

/* ---- writing ---- */

int bringup_resume_write(const char *path, const struct bringup_report *r, struct err *err)
{
	char part[PATH_MAX];
	bool good;
	FILE *to;

	if (snprintf(part, sizeof(part), "%s.part", path) >= (int)sizeof(part))
		return err_set(err, ERR_INVALID_ARGUMENT, "%s is too long a path", path);
	to = fopen(part, "we");
	if (!to)
		return err_sys(err, errno, "%s", part);
	bringup_write_json(r, to);
	/* The next step may end the machine: it is on the disk before that. */
	good = !fflush(to) && !ferror(to) && !fsync(fileno(to));
	if (fclose(to) || !good || rename(part, path)) {
		int sysno = errno;

		unlink(part);
		return err_sys(err, sysno, "%s", path);
	}
	return 0;
}
