/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A device's trace as a plane of XSpace, which profilers of the XLA family read: a line for the
 * compute queue (programs, waits), one for the core (operations), one for the DMA queue.
 *
 * Millions of records are common, so that events are serialized one by one.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hal/base/str.h"
#include "hal/hw/image.h"
#include "runtime/rt_internal.h"
#include "runtime/xspace.pb-c.h"

/* What stats are called, by metadata id from 1 on; the names that readers look for. */
enum stat {
	STAT_OP = 1, STAT_MODULE, STAT_FRAMEWORK_OP, STAT_SOURCE, STAT_PROGRAM, STAT_RUN,
	STAT_BYTES, STAT_FLOPS, STAT_INSNS, STAT_STATUS, STAT_DEVICE, STAT_LOST, STAT_END,
};
static const char *const stat_names[STAT_END] = {
	[STAT_OP] = "hlo_op", [STAT_MODULE] = "hlo_module", [STAT_FRAMEWORK_OP] = "tf_op",
	[STAT_SOURCE] = "source", [STAT_PROGRAM] = "program_id", [STAT_RUN] = "run_id",
	[STAT_BYTES] = "bytes_accessed", [STAT_FLOPS] = "flops",
	[STAT_INSNS] = "instructions", [STAT_STATUS] = "status",
	[STAT_DEVICE] = "device_type_string", [STAT_LOST] = "records_lost",
};

/* A kind of event. The words are the trace's. */
struct kind {
	const char *name;	/* of what no program names; NULL */
	bool is_wait;
	uint8_t has;		/* a bit for each text that is not empty; once it has an id */
	struct hal_trace_words words;
};

struct writer {
	const struct rt_traced *d;
	struct kind *kinds;	/* [n]: metadata id is the index plus 1 */
	size_t n, room;
	uint32_t *table;	/* [slots] of ids, open addressing; 0: empty */
	size_t slots;
	bool is_full;		/* out of memory */
};

/* ---- texts ---- */

/* Texts of a kind: what its events are called, and what its stats refer to. */
enum { TEXT_OP, TEXT_MODULE, TEXT_FRAMEWORK_OP, TEXT_SOURCE, TEXTS };
static const uint8_t stat_of_text[TEXTS] = {
	STAT_OP, STAT_MODULE, STAT_FRAMEWORK_OP, STAT_SOURCE,
};
struct texts {
	char name[168], text[TEXTS][160];
};

/* The metadata id under which a text of a kind is. */
static int64_t id_of_text(uint32_t kind, unsigned text)
{
	return STAT_END + (int64_t)(kind - 1) * TEXTS + text;
}

/* Readers take UTF-8 only, and a text that was cut may end, or begin, within a character. */
static void copy_text(char *to, size_t room, const char *from, size_t n)
{
	size_t at = 0;

	for (size_t i = 0; i < n && at + 1 < room;) {
		unsigned char c = (unsigned char)from[i];
		size_t more = c < 0x80 ? 0 : c >= 0xc2 && c < 0xe0 ? 1 :
			      c >= 0xe0 && c < 0xf0 ? 2 : c >= 0xf0 && c < 0xf5 ? 3 : 9, k = 1;

		while (k <= more && i + k < n && ((unsigned char)from[i + k] & 0xc0) == 0x80)
			k++;
		if (k <= more || at + k >= room) {
			to[at++] = '?';
			i++;
			continue;
		}
		memcpy(to + at, from + i, k);
		at += k;
		i += k;
	}
	to[at] = 0;
}

static void find_texts(const struct kind *k, struct texts *out)
{
	const struct hal_trace_words *w = &k->words;
	const char *of = k->name ? k->name : *w->op ? w->op : w->program;
	size_t n = k->is_wait ? strlen("wait: ") : 0, name_bytes, source_bytes;
	const char *source;

	memcpy(out->name, "wait: ", n);
	copy_text(out->name + n, sizeof(out->name) - n, of, strlen(of));
	copy_text(out->text[TEXT_OP], sizeof(*out->text), w->op, strlen(w->op));
	copy_text(out->text[TEXT_MODULE], sizeof(*out->text), w->program, strlen(w->program));
	image_split(w->where, &name_bytes, &source, &source_bytes);
	copy_text(out->text[TEXT_FRAMEWORK_OP], sizeof(*out->text), w->where, name_bytes);
	copy_text(out->text[TEXT_SOURCE], sizeof(*out->text), source, source_bytes);
}

/* Which of them are there. */
static uint8_t texts_of(const struct kind *k)
{
	struct texts texts;
	uint8_t has = 0;

	find_texts(k, &texts);
	for (unsigned i = 0; i < TEXTS; i++)
		has |= (uint8_t)(*texts.text[i] ? 1u << i : 0);
	return has;
}

/* ---- kinds ---- */

static size_t hash(const struct kind *k)
{
	uint64_t h = (uintptr_t)k->name + 3 * k->is_wait;

	h = h * 0x9e3779b97f4a7c15u + (uintptr_t)k->words.program;
	h = h * 0x9e3779b97f4a7c15u + (uintptr_t)k->words.op;
	h = h * 0x9e3779b97f4a7c15u + (uintptr_t)k->words.where;
	return (size_t)(h ^ h >> 29);
}

static bool is_same(const struct kind *a, const struct kind *b)
{
	return a->name == b->name && a->is_wait == b->is_wait &&
		a->words.program == b->words.program && a->words.op == b->words.op &&
		a->words.where == b->words.where;
}

static void enter(struct writer *w, uint32_t id)
{
	size_t at = hash(&w->kinds[id - 1]) & (w->slots - 1);

	while (w->table[at])
		at = (at + 1) & (w->slots - 1);
	w->table[at] = id;
}

static bool grow(struct writer *w)
{
	size_t room = w->room ? w->room * 2 : 64;
	struct kind *kinds = realloc(w->kinds, room * sizeof(*kinds));
	uint32_t *table = calloc(room * 2, sizeof(*table));

	if (kinds)
		w->kinds = kinds;
	if (!kinds || !table) {
		free(table);
		return false;
	}
	free(w->table);
	w->table = table;
	w->room = room;
	w->slots = room * 2;
	for (uint32_t i = 1; i <= w->n; i++)
		enter(w, i);
	return true;
}

/* The kind's metadata id; 0: out of memory. */
static uint32_t id_of(struct writer *w, const struct kind *k)
{
	if (w->n == w->room && !grow(w)) {
		w->is_full = true;
		return 0;
	}
	for (size_t at = hash(k) & (w->slots - 1); w->table[at]; at = (at + 1) & (w->slots - 1))
		if (is_same(&w->kinds[w->table[at] - 1], k))
			return w->table[at];
	w->kinds[w->n] = *k;
	w->kinds[w->n++].has = texts_of(k);
	enter(w, (uint32_t)w->n);
	return (uint32_t)w->n;
}

static struct kind kind_of(const struct hal_trace *t, const struct hw_trace_record *r)
{
	struct kind k = { .is_wait = r->kind == HW_TRACE_WAIT || r->kind == HW_TRACE_PARKED };

	hal_trace_tell(t, r, &k.words);
	if (!*k.words.program)
		k.name = hw_work_name(r->kind == HW_TRACE_GROUP || r->kind == HW_TRACE_PARKED ?
				      HW_EXECUTE : r->op);
	return k;
}

/* ---- parts ---- */

static void add(struct writer *w, struct str *out, const void *p, size_t n)
{
	str_add(out, p, n);
	w->is_full |= out->failed;
}

static void put_number(Xspace__Stat *s, Xspace__Stat **list, size_t *n, enum stat id,
		       uint64_t value)
{
	xspace__stat__init(s);
	s->has_metadata_id = s->has_uint64_value = true;
	s->metadata_id = id;
	s->uint64_value = value;
	list[(*n)++] = s;
}

/* Nothing for an empty text. */
static void put_text(Xspace__Stat *s, Xspace__Stat **list, size_t *n, enum stat id, char *text)
{
	if (!*text)
		return;
	xspace__stat__init(s);
	s->has_metadata_id = true;
	s->metadata_id = id;
	s->str_value = text;
	list[(*n)++] = s;
}

static void put_reference(Xspace__Stat *s, Xspace__Stat **list, size_t *n, enum stat id,
			  int64_t to)
{
	xspace__stat__init(s);
	s->has_metadata_id = s->has_ref_value = true;
	s->metadata_id = id;
	s->ref_value = (uint64_t)to;
	list[(*n)++] = s;
}

static void add_event(struct writer *w, struct str *line, const struct hw_trace_record *r,
		      uint32_t kind)
{
	const struct hal_trace *t = w->d->trace;
	int64_t begin = hal_trace_time(t, r->begin_ns) - t->began;
	int64_t end = hal_trace_time(t, r->end_ns) - t->began;
	Xspace__Stat stats[6 + TEXTS], *list[6 + TEXTS];
	Xspace__Event e = XSPACE__EVENT__INIT, *events[] = { &e };
	Xspace__Line one = XSPACE__LINE__INIT;
	uint8_t bytes[320];

	/* A look at a clock far away is not exact to the microsecond. */
	begin = begin < 0 ? 0 : begin;
	end = end < begin ? begin : end;
	e.has_metadata_id = e.has_offset_ps = e.has_duration_ps = true;
	e.metadata_id = kind;
	e.offset_ps = begin * 1000;
	e.duration_ps = (end - begin) * 1000;
	e.stats = list;
	put_number(&stats[0], list, &e.n_stats, STAT_RUN, r->tag);
	if (r->kind == HW_TRACE_PROGRAM)
		put_number(&stats[1], list, &e.n_stats, STAT_PROGRAM, r->program);
	if (r->bytes)
		put_number(&stats[2], list, &e.n_stats, STAT_BYTES, r->bytes);
	if (r->ops)
		put_number(&stats[3], list, &e.n_stats, STAT_FLOPS, r->ops);
	if (r->n_insns)
		put_number(&stats[4], list, &e.n_stats, STAT_INSNS, r->n_insns);
	if (r->status)
		put_text(&stats[5], list, &e.n_stats, STAT_STATUS,
			 (char *)(uintptr_t)hw_status_name(r->status));
	for (unsigned i = 0; i < TEXTS; i++)
		if (w->kinds[kind - 1].has & 1u << i)
			put_reference(&stats[6 + i], list, &e.n_stats, stat_of_text[i],
				      id_of_text(kind, i));
	one.n_events = 1;
	one.events = events;
	if (xspace__line__get_packed_size(&one) <= sizeof(bytes))
		add(w, line, bytes, xspace__line__pack(&one, bytes));
}

/* ---- lines ---- */

enum { LINE_COMPUTE, LINE_CORE, LINE_DMA, LINES };

static unsigned line_of(const struct hw_trace_record *r)
{
	if (r->kind == HW_TRACE_GROUP || r->kind == HW_TRACE_PARKED)
		return LINE_CORE;
	return r->cls == HW_CLASS_DMA ? LINE_DMA : LINE_COMPUTE;
}

static void begin_line(struct writer *w, struct str *out, unsigned line)
{
	static const struct { const char *name, *shown; } is[LINES] = {
		{ "XLA Modules", "compute queue" }, { "XLA Ops", "core" },
		{ "DMA queue", "DMA queue" },
	};
	Xspace__Line l = XSPACE__LINE__INIT;
	uint8_t bytes[128];

	l.has_id = l.has_timestamp_ns = l.has_duration_ps = true;
	l.id = line + 1;
	l.name = (char *)(uintptr_t)is[line].name;
	l.display_name = (char *)(uintptr_t)is[line].shown;
	l.timestamp_ns = w->d->trace->began + w->d->epoch;
	l.duration_ps = (w->d->trace->ended - w->d->trace->began) * 1000;
	add(w, out, bytes, xspace__line__pack(&l, bytes));
}

/* Groups of one operation that follow one another are one event. */
static void add_events(struct writer *w, struct str lines[LINES])
{
	const struct hal_trace *t = w->d->trace;
	struct hw_trace_record group = { 0 };
	uint32_t group_kind = 0;

	for (size_t i = 0; i < t->n_records; i++) {
		const struct hw_trace_record *r = &t->records[i];
		struct kind k = kind_of(t, r);
		uint32_t id = id_of(w, &k);

		if (!id)
			return;
		if (r->kind != HW_TRACE_GROUP) {
			add_event(w, &lines[line_of(r)], r, id);
			continue;
		}
		if (group_kind == id && group.tag == r->tag && group.end_ns == r->begin_ns) {
			group.end_ns = r->end_ns;
			group.bytes += r->bytes;
			group.ops += r->ops;
			group.n_insns += r->n_insns;
			continue;
		}
		if (group_kind)
			add_event(w, &lines[LINE_CORE], &group, group_kind);
		group = *r;
		group_kind = id;
	}
	if (group_kind)
		add_event(w, &lines[LINE_CORE], &group, group_kind);
}

/* ---- metadata ---- */

/* Each entry as a plane that holds nothing else: serialized one after the other they are one. */
static void add_name(struct writer *w, struct str *out, int64_t id, char *text)
{
	Xspace__StatMetadata m = XSPACE__STAT_METADATA__INIT;
	Xspace__StatEntry e = XSPACE__STAT_ENTRY__INIT, *entries[] = { &e };
	Xspace__Plane p = XSPACE__PLANE__INIT;
	uint8_t bytes[256];

	m.has_id = e.has_key = true;
	m.id = e.key = id;
	m.name = text;
	e.value = &m;
	p.n_stat_metadata = 1;
	p.stat_metadata = entries;
	add(w, out, bytes, xspace__plane__pack(&p, bytes));
}

static void add_kind(struct writer *w, struct str *out, uint32_t id)
{
	const struct kind *k = &w->kinds[id - 1];
	struct texts texts;
	Xspace__EventMetadata m = XSPACE__EVENT_METADATA__INIT;
	Xspace__EventEntry e = XSPACE__EVENT_ENTRY__INIT, *entries[] = { &e };
	Xspace__Plane p = XSPACE__PLANE__INIT;
	uint8_t bytes[256];

	find_texts(k, &texts);
	m.has_id = e.has_key = true;
	m.id = e.key = id;
	m.name = texts.name;
	e.value = &m;
	p.n_event_metadata = 1;
	p.event_metadata = entries;
	add(w, out, bytes, xspace__plane__pack(&p, bytes));
	for (unsigned i = 0; i < TEXTS; i++)
		if (k->has & 1u << i)
			add_name(w, out, id_of_text(id, i), texts.text[i]);
}

/* ---- the plane ---- */

/* Bytes as field `number` of a message. */
static void add_field(struct writer *w, struct str *out, unsigned number, const struct str *part)
{
	uint8_t head[11];
	size_t n = 0;

	head[n++] = (uint8_t)(number << 3 | 2);
	for (uint64_t left = part->len; left || n == 1; left >>= 7)
		head[n++] = (uint8_t)((left & 0x7f) | (left > 0x7f ? 0x80 : 0));
	add(w, out, head, n);
	if (part->len)
		add(w, out, part->text, part->len);
}

static void begin_plane(struct writer *w, struct str *out)
{
	const struct rt_traced *d = w->d;
	Xspace__Stat stats[2], *list[2];
	Xspace__Plane p = XSPACE__PLANE__INIT;
	char text[64], type[32];
	uint8_t bytes[256];

	snprintf(text, sizeof(text), d->client ? "/device:CUSTOM:TESSERA:%u (client %u)" :
		 "/device:CUSTOM:TESSERA:%u", d->device, d->client + 1);
	copy_text(type, sizeof(type), d->type, strlen(d->type));
	p.has_id = true;
	p.id = (int64_t)d->client << 16 | d->device;
	p.name = text;
	p.stats = list;
	put_text(&stats[0], list, &p.n_stats, STAT_DEVICE, type);
	put_number(&stats[1], list, &p.n_stats, STAT_LOST, d->trace->n_lost);
	add(w, out, bytes, xspace__plane__pack(&p, bytes));
}

int rt_xspace_add_plane(const struct rt_traced *d, struct str *space, struct err *err)
{
	struct writer w = { .d = d };
	struct str plane = { 0 }, lines[LINES] = { { 0 } };

	begin_plane(&w, &plane);
	for (unsigned i = 0; i < LINES; i++)
		begin_line(&w, &lines[i], i);
	add_events(&w, lines);
	for (unsigned i = 0; i < LINES; i++) {
		add_field(&w, &plane, 3, &lines[i]);
		str_free(&lines[i]);
	}
	for (uint32_t id = 1; id <= w.n; id++)
		add_kind(&w, &plane, id);
	for (unsigned id = 1; id < STAT_END; id++)
		add_name(&w, &plane, id, (char *)(uintptr_t)stat_names[id]);
	add_field(&w, space, 1, &plane);
	str_free(&plane);
	free(w.kinds);
	free(w.table);
	return w.is_full ? err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory for a profile of "
				   "%zu records", d->trace->n_records) : 0;
}

int rt_xspace_add_warning(const char *text, struct str *space, struct err *err)
{
	Xspace__Space s = XSPACE__SPACE__INIT;
	char clean[512], *list[] = { clean };
	uint8_t bytes[600];

	copy_text(clean, sizeof(clean), text, strlen(text));
	s.n_warnings = 1;
	s.warnings = list;
	str_add(space, (const char *)bytes, xspace__space__pack(&s, bytes));
	return space->failed ? err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory") : 0;
}
