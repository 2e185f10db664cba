/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes of crash dumps: made, and read back from strangers. crash.c says what is in one,
 * dump_file.c where it goes. */
#include "hal/dump.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "hal/hw/image.h"

/* What the largest file takes, all tables full. */
enum {
	MOST = sizeof(struct hal_dump_header)
#define DUMP(name, number, row, field, most, meaning) \
	+ sizeof(struct hal_dump_section) + sizeof(row) * most + 7
#include "hal/dump.def"
#undef DUMP
};
static_assert(MOST <= HAL_DUMP_BYTES, "a dump's size is bounded");
static_assert(sizeof(struct hal_dump_about) == 848, "about");
static_assert(sizeof(struct hal_dump_place) == 248, "place");
static_assert(sizeof(struct hal_dump_op) == 256, "op");
static_assert(sizeof(struct hal_dump_block) == 72, "block");
static_assert(sizeof(struct hal_dump_binding) == 40, "binding");

/* A table, whatever its rows. */
struct table {
	uint32_t kind, row_bytes;
	uint64_t most;
	size_t at, count_at;	/* of pointer and count in struct hal_dump */
};

static const struct table tables[] = {
#define DUMP(name, number, row, field, most, meaning) \
	{ number, sizeof(row), most, offsetof(struct hal_dump, field), \
	  offsetof(struct hal_dump, n_##field) },
#include "hal/dump.def"
#undef DUMP
};
#define N_TABLES (sizeof(tables) / sizeof(*tables))

static size_t padded(uint64_t bytes)
{
	return (size_t)(bytes + 7) & ~(size_t)7;
}

/* ---- writing ---- */

static uint64_t count_of(const struct hal_dump *dump, const struct table *t)
{
	size_t n;

	memcpy(&n, (const char *)dump + t->count_at, sizeof(n));
	return n;
}

static uint8_t *put(uint8_t *p, const void *what, size_t bytes)
{
	if (bytes)
		memcpy(p, what, bytes);
	return p + padded(bytes);
}

int hal_dump_write(const struct hal_dump *dump, void **out, size_t *n, struct err *err)
{
	struct hal_dump_header h = { HAL_DUMP_MAGIC, HAL_DUMP_VERSION, N_TABLES, sizeof(h) };
	uint8_t *bytes, *p;

	for (unsigned i = 0; i < N_TABLES; i++) {
		uint64_t rows = count_of(dump, &tables[i]);

		if (rows > tables[i].most)
			return err_set(err, ERR_INVALID_ARGUMENT, "a crash dump: section %u has "
				       "%llu rows; at most %llu are taken", tables[i].kind,
				       (unsigned long long)rows,
				       (unsigned long long)tables[i].most);
		h.bytes += sizeof(struct hal_dump_section) + padded(rows * tables[i].row_bytes);
	}
	p = bytes = calloc(1, h.bytes);
	if (!bytes)
		return err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory for a crash dump");
	p = put(p, &h, sizeof(h));
	for (unsigned i = 0; i < N_TABLES; i++) {
		const struct table *t = &tables[i];
		struct hal_dump_section s = { t->kind, t->row_bytes, count_of(dump, t) };
		const void *rows;

		memcpy(&rows, (const char *)dump + t->at, sizeof(rows));
		p = put(p, &s, sizeof(s));
		p = put(p, rows, (size_t)(s.n_rows * s.row_bytes));
	}
	*out = bytes;
	*n = h.bytes;
	return 0;
}

/* ---- reading ---- */

static int refuse(struct err *err, const char *what)
{
	return err_set(err, ERR_INVALID_ARGUMENT, "no crash dump of this version: %s", what);
}

/* Texts become printable, and end. */
static void clean(struct hal_dump *d)
{
	struct hal_dump_about *a = (void *)(uintptr_t)d->about;
	struct hal_dump_work *w = (void *)(uintptr_t)d->work;
	struct hal_dump_place *p = (void *)(uintptr_t)d->place;
	struct hal_dump_op *o = (void *)(uintptr_t)d->ops;
	struct hal_dump_block *m = (void *)(uintptr_t)d->memory;
	struct hal_page_event *e = (void *)(uintptr_t)d->events;

#define CLEAN(text) hal_text_clean(text, sizeof(text))
	CLEAN(a->command);
	CLEAN(a->system);
	CLEAN(a->bus_id);
	CLEAN(a->name);
	CLEAN(a->serial);
	CLEAN(a->firmware);
	CLEAN(a->driver);
	CLEAN(a->text);
	for (size_t i = 0; i < d->n_work; i++)
		CLEAN(w[i].name);
	if (p) {
		CLEAN(p->program);
		CLEAN(p->made_by);
	}
	for (size_t i = 0; i < d->n_ops; i++) {
		CLEAN(o[i].op);
		CLEAN(o[i].where);
	}
	for (size_t i = 0; i < d->n_memory; i++)
		CLEAN(m[i].owner);
	for (size_t i = 0; i < d->n_events; i++)
		CLEAN(e[i].text);
#undef CLEAN
}

/* Hangs `rows` of a section in, unless it is of a kind that is not known. */
static int take(struct hal_dump *d, const struct hal_dump_section *s, const uint8_t *rows,
		struct err *err)
{
	for (unsigned i = 0; i < N_TABLES; i++) {
		const struct table *t = &tables[i];
		size_t n = (size_t)s->n_rows;
		const void *p = n ? rows : NULL;

		if (t->kind != s->kind)
			continue;
		if (t->row_bytes != s->row_bytes || s->n_rows > t->most)
			return refuse(err, "a section has rows of another size, or too many");
		if (count_of(d, t))
			return refuse(err, "a section is there twice");
		memcpy((char *)d + t->at, &p, sizeof(p));
		memcpy((char *)d + t->count_at, &n, sizeof(n));
		return 0;
	}
	return 0;
}

static int read_sections(struct hal_dump *d, const uint8_t *bytes, size_t n, struct err *err)
{
	struct hal_dump_header h;
	struct hal_dump_section s;
	size_t at = sizeof(h);
	int code;

	memcpy(&h, bytes, sizeof(h));
	if (h.magic != HAL_DUMP_MAGIC || h.version != HAL_DUMP_VERSION)
		return refuse(err, "it begins otherwise");
	if (h.bytes != n)
		return refuse(err, "a part of it is missing, or there is more");
	for (uint32_t i = 0; i < h.n_sections; i++) {
		if (n - at < sizeof(s))
			return refuse(err, "a section lies outside");
		memcpy(&s, bytes + at, sizeof(s));
		at += sizeof(s);
		if (!s.row_bytes || s.n_rows > (n - at) / s.row_bytes ||
		    padded(s.n_rows * s.row_bytes) > n - at)
			return refuse(err, "a section's rows lie outside");
		code = take(d, &s, bytes + at, err);
		if (code)
			return code;
		at += padded(s.n_rows * s.row_bytes);
	}
	if (!d->about)
		return refuse(err, "it does not say what it is about");
	clean(d);
	return 0;
}

int hal_dump_parse(const void *bytes, size_t n, struct hal_dump **out, struct err *err)
{
	struct hal_dump *d;
	int code;

	if (n < sizeof(struct hal_dump_header) || n > HAL_DUMP_BYTES)
		return refuse(err, "it is too short or too long for one");
	d = calloc(1, sizeof(*d));
	if (d)
		d->owned = malloc(n);
	if (!d || !d->owned) {
		free(d);
		return err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory");
	}
	memcpy(d->owned, bytes, n);
	code = read_sections(d, d->owned, n, err);
	if (code)
		hal_dump_free(d);
	else
		*out = d;
	return code;
}

void hal_dump_free(struct hal_dump *dump)
{
	if (!dump)
		return;
	free(dump->owned);
	free(dump);
}
