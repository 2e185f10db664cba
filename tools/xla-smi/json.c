/* SPDX-License-Identifier: Apache-2.0 */
/* A node as JSON and back, and the schema of it. */
#include <errno.h>
#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

#include "hal/telemetry.h"
#include "tools/xla-smi/smi.h"

#define MAX_BYTES ((size_t)64 << 20)	/* of what is replayed */

static void add(struct json_object *to, const char *key, struct json_object *value)
{
	json_object_object_add(to, key, value);
}

static struct json_object *text_or_null(const char *text)
{
	return *text ? json_object_new_string(text) : NULL;
}

static struct json_object *real(double value)
{
	char text[40];

	snprintf(text, sizeof(text), "%.6g", value);
	return json_object_new_double_s(value, text);
}

static struct json_object *value_of(const struct smi_field *f, const char *row)
{
	const struct smi_num *num = (const void *)(row + f->offset);
	double number;

	switch (f->type) {
	case SMI_TEXT:
		return json_object_new_string(row + f->offset);
	case SMI_NUM:
		return num->is_known ? json_object_new_uint64(num->n) : NULL;
	case SMI_REAL:
		memcpy(&number, row + f->offset, sizeof(number));
		return isnan(number) ? NULL : real(number);
	default:
		return json_object_new_boolean(*(const bool *)(row + f->offset));
	}
}

static struct json_object *table(const struct smi_node *node, enum smi_table_id id)
{
	const struct smi_table *t = &smi_tables[id];
	struct json_object *rows = json_object_new_array();

	for (unsigned i = 0; i < node->tables[id].n; i++) {
		const char *row = (const char *)node->tables[id].rows + i * t->row_bytes;
		struct json_object *o = json_object_new_object();

		for (unsigned k = 0; k < t->n_fields; k++)
			add(o, t->fields[k].name, value_of(&t->fields[k], row));
		json_object_array_add(rows, o);
	}
	return rows;
}

void smi_write_json(const struct smi_node *node, const char *command,
		    const struct smi_view *views, unsigned n, bool is_line, FILE *to)
{
	struct json_object *o = json_object_new_object();

	add(o, "schema", json_object_new_string(SMI_SCHEMA));
	add(o, "command", json_object_new_string(command));
	add(o, "time", json_object_new_string(node->time));
	add(o, "host", json_object_new_string(node->host));
	for (unsigned i = 0; i < n; i++)	/* a table of two views is there once */
		if (!json_object_object_get_ex(o, smi_tables[views[i].table].name, NULL))
			add(o, smi_tables[views[i].table].name,
			    table(node, views[i].table));
	add(o, "looked_for", json_object_new_string(node->looked));
	add(o, "unreadable_pages", json_object_new_int64(node->n_unreadable));
	add(o, "problem", text_or_null(node->problem));
	fprintf(to, "%s\n", json_object_to_json_string_ext(o, JSON_C_TO_STRING_NOSLASHESCAPE |
		(is_line ? JSON_C_TO_STRING_PLAIN : JSON_C_TO_STRING_PRETTY)));
	json_object_put(o);
}

/* ---- reading ---- */

static void copy_text(struct json_object *o, const char *key, char *out, size_t bytes)
{
	struct json_object *value;

	if (json_object_object_get_ex(o, key, &value) &&
	    json_object_is_type(value, json_type_string))
		snprintf(out, bytes, "%s", json_object_get_string(value));
	/* Text of strangers, on somebody's terminal. */
	hal_text_clean(out, bytes);
}

static void read_value(const struct smi_field *f, struct json_object *o, char *row)
{
	struct smi_num *num = (void *)(row + f->offset);
	struct json_object *value;
	double number;

	if (f->type == SMI_TEXT) {
		copy_text(o, f->name, row + f->offset, f->bytes);
		return;
	}
	if (!json_object_object_get_ex(o, f->name, &value) || !value)
		return;
	if (f->type == SMI_NUM && json_object_is_type(value, json_type_int)) {
		*num = smi_known(json_object_get_uint64(value));
	} else if (f->type == SMI_REAL) {
		number = json_object_get_double(value);
		/* NaN, or an infinity as 1e999 is, can't be written as JSON again: unknown. */
		if (isfinite(number))
			memcpy(row + f->offset, &number, sizeof(number));
	} else if (f->type == SMI_FLAG) {
		*(bool *)(row + f->offset) = json_object_get_boolean(value);
	}
}

static void read_table(struct json_object *from, struct smi_node *node, enum smi_table_id id)
{
	const struct smi_table *t = &smi_tables[id];
	struct json_object *rows;

	if (!json_object_object_get_ex(from, t->name, &rows) ||
	    !json_object_is_type(rows, json_type_array))
		return;
	for (size_t i = 0; i < json_object_array_length(rows); i++) {
		struct json_object *o = json_object_array_get_idx(rows, i);
		char *row = json_object_is_type(o, json_type_object) ? smi_add(node, id) : NULL;

		for (unsigned k = 0; row && k < t->n_fields; k++)
			read_value(&t->fields[k], o, row);
	}
}

static int complain(const char *path, const char *what)
{
	fprintf(stderr, "xla-smi: %s: %s\n", path, what);
	return SMI_FAILED;
}

/* The whole file, with a NUL; NULL after a line on standard error. */
static char *read_file(const char *path)
{
	FILE *f = fopen(path, "re");
	char *text = NULL, *grown;
	size_t n = 0, room = 0, got = 1;

	if (!f) {
		complain(path, strerror(errno));
		return NULL;
	}
	while (got && n <= MAX_BYTES) {
		if (n + 1 >= room) {
			room = 2 * room + 65536;
			grown = realloc(text, room);
			if (!grown)
				break;
			text = grown;
		}
		got = fread(text + n, 1, room - n - 1, f);
		n += got;
	}
	if (got || ferror(f)) {
		complain(path, ferror(f) ? strerror(errno) : "larger than 64 MiB");
		free(text);
		text = NULL;
	} else {
		text[n] = 0;
	}
	fclose(f);
	return text;
}

int smi_read_json(const char *path, struct smi_node *node)
{
	struct json_object *o, *count;
	char *text = read_file(path), schema[32] = "";

	if (!text)
		return SMI_FAILED;
	o = json_tokener_parse(text);
	free(text);
	if (json_object_is_type(o, json_type_object))
		copy_text(o, "schema", schema, sizeof(schema));
	if (strcmp(schema, SMI_SCHEMA)) {
		json_object_put(o);
		return complain(path, "is no record of schema " SMI_SCHEMA ": xla-smi record "
				"writes one");
	}
	node->n_unreadable = 0;
	if (json_object_object_get_ex(o, "unreadable_pages", &count))
		node->n_unreadable = (unsigned)json_object_get_int(count);
	copy_text(o, "time", node->time, sizeof(node->time));
	copy_text(o, "host", node->host, sizeof(node->host));
	copy_text(o, "looked_for", node->looked, sizeof(node->looked));
	copy_text(o, "problem", node->problem, sizeof(node->problem));
	for (unsigned i = 0; i < SMI_TABLES; i++)
		read_table(o, node, (enum smi_table_id)i);
	json_object_put(o);
	return SMI_OK;
}

/* ---- the schema ---- */

static struct json_object *types(const char *one, bool may_be_null)
{
	struct json_object *both;

	if (!may_be_null)
		return json_object_new_string(one);
	both = json_object_new_array();
	json_object_array_add(both, json_object_new_string(one));
	json_object_array_add(both, json_object_new_string("null"));
	return both;
}

static struct json_object *describe(struct json_object *type, const char *meaning)
{
	struct json_object *o = json_object_new_object();

	add(o, "type", type);
	if (meaning)
		add(o, "description", json_object_new_string(meaning));
	return o;
}

static struct json_object *row_schema(const struct smi_table *t)
{
	static const char *const names[] = { "string", "integer", "number", "boolean" };
	struct json_object *o = describe(types("object", false), NULL);
	struct json_object *fields = json_object_new_object(), *required = json_object_new_array();

	for (unsigned i = 0; i < t->n_fields; i++) {
		const struct smi_field *f = &t->fields[i];

		add(fields, f->name, describe(types(names[f->type], f->type == SMI_NUM ||
						    f->type == SMI_REAL), f->meaning));
		json_object_array_add(required, json_object_new_string(f->name));
	}
	add(o, "properties", fields);
	add(o, "required", required);
	add(o, "additionalProperties", json_object_new_boolean(false));
	return o;
}

void smi_write_schema(FILE *to)
{
	static const struct { const char *name, *type, *meaning; bool may_be_null; } heads[] = {
		{ "schema", "string", "name and version of this schema", false },
		{ "command", "string", "what was asked for, which says which tables are here",
		  false },
		{ "time", "string", "when, UTC", false },
		{ "host", "string", "where", false },
		{ "looked_for", "string", "for what, and where", false },
		{ "unreadable_pages", "integer", "processes whose page may not be read", false },
		{ "problem", "string", "why this is not all there is", true },
	};
	struct json_object *o = json_object_new_object(), *all = json_object_new_object();
	struct json_object *required = json_object_new_array();

	add(o, "$schema", json_object_new_string("https://json-schema.org/draft/2020-12/schema"));
	add(o, "title", json_object_new_string(SMI_SCHEMA));
	add(o, "type", json_object_new_string("object"));
	for (unsigned i = 0; i < sizeof(heads) / sizeof(*heads); i++) {
		add(all, heads[i].name, describe(types(heads[i].type, heads[i].may_be_null),
						 heads[i].meaning));
		json_object_array_add(required, json_object_new_string(heads[i].name));
	}
	for (unsigned i = 0; i < SMI_TABLES; i++) {
		struct json_object *t = describe(types("array", false), smi_tables[i].meaning);

		add(t, "items", row_schema(&smi_tables[i]));
		add(all, smi_tables[i].name, t);
	}
	add(o, "properties", all);
	add(o, "required", required);
	add(o, "additionalProperties", json_object_new_boolean(false));
	fprintf(to, "%s\n", json_object_to_json_string_ext(o, JSON_C_TO_STRING_PRETTY |
							   JSON_C_TO_STRING_NOSLASHESCAPE));
	json_object_put(o);
}
