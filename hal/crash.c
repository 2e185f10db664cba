/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is written down when a submission fails by a fault, or a device dies: all that this process
 * knows of it, copied while nothing changes. It asks a device that answers for its queues' states,
 * and one that dies for nothing but registers. dump.h is the form, dump_file.c writes it.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "hal/hal_internal.h"
#include "hal/hw/regs.h"

#define OPS_BEFORE 24u		/* of the op at fault, so many are shown */
#define CODE_BEFORE 3072u	/* bytes, at most */
#define HOST_BLOCKS 256u	/* rows of the memory map that pinned memory may take */

/* Owned by whoever is between begin and end. */
struct hal_crash {
	struct hal_device *dev;
	struct hal_dump dump;
	uint64_t centre;	/* address around which the memory map is kept */
	/* The tables, as long as they may be. */
#define DUMP(name, number, row, field, most, meaning) row field[most];
	struct {
#include "hal/dump.def"
	} rows;
#undef DUMP
};

enum {
#define DUMP(name, number, row, field, most, meaning) MOST_##name = most,
#include "hal/dump.def"
#undef DUMP
};

/* ---- the device ---- */

static void take_registers(struct hal_crash *c)
{
	static const struct { uint32_t offset, bytes; } regs[] = {
#define REG(name, offset, bytes, access, reset, meaning) { offset, bytes },
#include "hal/hw/regs.def"
#undef REG
	};
	struct hal_transport *t = c->dev->t;

	if (!t->ops->reg)
		return;
	for (unsigned i = 0; i < sizeof(regs) / sizeof(*regs); i++)
		for (uint32_t at = 0; at < regs[i].bytes; at += 4)
			if (c->dump.n_registers < MOST_REGISTERS)
				c->rows.registers[c->dump.n_registers++] =
					(struct hal_dump_register){ regs[i].offset + at,
						t->ops->reg(t, regs[i].offset + at) };
}

static void take_queues(struct hal_crash *c)
{
	uint64_t bytes = 0;

	if (!c->dev->t->ops->ask(c->dev->t, (struct hw_sqe){ .op = HW_LOG_PAGE,
				 .id = HW_LOG_QUEUES }, c->rows.queues, sizeof(c->rows.queues),
				 &bytes, NULL))
		c->dump.n_queues = (bytes < sizeof(c->rows.queues) ? bytes :
				    sizeof(c->rows.queues)) / sizeof(*c->rows.queues);
}

/* ---- the HAL's queues ---- */

/* What is pending of a queue, the oldest first. Under its lock. */
static void take_work(struct hal_crash *c, struct hal_queue *q)
{
	uint64_t first = atomic_load(&q->done) + 1, last = atomic_load(&q->submitted);

	for (uint64_t v = first; v <= last && c->dump.n_work < MOST_SUBMISSIONS; v++) {
		const struct hal_exe *exe = q->slots[v % HAL_RING].exe;
		struct hal_dump_work *w = &c->rows.work[c->dump.n_work++];

		w->number = v;
		w->cls = q->cls;
		w->is_program = exe != NULL;
		if (exe)
			memcpy(w->name, exe->name, sizeof(w->name));
	}
}

/* `held` is the queue whose lock the caller has, if any; others' may be anybody's, whom this must
 * not wait for. */
static void take_rings(struct hal_crash *c, struct hal_queue *held)
{
	for (unsigned i = 0; i < MOST_RINGS; i++) {
		struct hal_queue *q = c->dev->queues[held ? (held->cls + i) % 2 : i];
		struct hal_dump_ring *r = &c->rows.rings[c->dump.n_rings];
		bool is_locked;

		if (!q)
			continue;
		c->dump.n_rings++;
		r->cls = q->cls;
		r->submitted = atomic_load(&q->submitted);
		r->done = atomic_load(&q->done);
		r->n_failures = __atomic_load_n(&q->failures.n, __ATOMIC_RELAXED);
		is_locked = q != held && !pthread_mutex_trylock(&q->lock);
		if (q != held && !is_locked)
			continue;
		r->id = q->ring ? q->ring->id : 0;
		take_work(c, q);
		if (is_locked)
			pthread_mutex_unlock(&q->lock);
	}
}

/* ---- the submission at fault; under its queue's lock ---- */

/* Its bindings, where they still lie: nothing of the ring is used again before it is done. */
static void take_bindings(struct hal_crash *c, const struct hal_queue *q, const struct image *im)
{
	const struct hw_sqe *sqe = c->rows.descriptor;
	uint64_t at = sqe->u.execute.bindings - q->args->va, n = sqe->u.execute.n_bindings;

	/* The ring is memory that the device could have written to. */
	if (sqe->op != HW_EXECUTE || n > im->n_bindings || at > HAL_ARGS || at % 8 ||
	    n > (HAL_ARGS - at) / sizeof(struct hw_binding))
		return;
	for (uint64_t i = 0; i < n && i < MOST_BINDINGS; i++) {
		const struct hw_binding *b = (const void *)(q->args->host + at + i * sizeof(*b));
		const struct image_binding *d = &im->bindings[i];

		c->rows.bindings[c->dump.n_bindings++] = (struct hal_dump_binding){
			.va = b->va, .bytes = b->bytes, .least = d->bytes, .kind = d->kind,
			.index = d->index, .access = d->access };
	}
}

/* Which rows of the debug map are shown: first to end, about the one of pc. False: none is. */
static bool find_ops(const struct image *im, uint64_t pc, size_t *first, size_t *end)
{
	const struct image_debug *row = image_where(im, pc);
	size_t at = row ? (size_t)(row - im->debug) : 0;

	if (!row || row->offset > pc)
		return false;
	*first = at;
	while (*first && at - *first < OPS_BEFORE &&
	       im->debug[*first - 1].offset <= pc &&
	       pc - im->debug[*first - 1].offset <= CODE_BEFORE)
		(*first)--;
	*end = at + 1;
	while (*end < im->n_debug && *end - *first < MOST_OPS &&
	       im->debug[*end].offset > pc &&
	       im->debug[*end].offset - im->debug[*first].offset <= MOST_CODE)
		(*end)++;
	return true;
}

static void take_code(struct hal_crash *c, const struct image *im, uint64_t pc)
{
	uint64_t from = pc, to = im->text_bytes;
	size_t first, end;

	if (pc >= im->text_bytes)
		return;
	if (find_ops(im, pc, &first, &end)) {
		from = im->debug[first].offset;
		/* The last row's instructions end where the next row's begin. */
		to = end < im->n_debug && im->debug[end].offset > pc &&
		     im->debug[end].offset <= to ? im->debug[end].offset : to;
		for (size_t i = first; i < end; i++) {
			struct hal_dump_op *o = &c->rows.ops[c->dump.n_ops++];

			o->offset = im->debug[i].offset;
			snprintf(o->op, sizeof(o->op), "%s", image_string(im, im->debug[i].op));
			snprintf(o->where, sizeof(o->where), "%s",
				 image_string(im, im->debug[i].where));
		}
	}
	c->dump.n_code = to - from < MOST_CODE ? to - from : MOST_CODE;
	memcpy(c->rows.code, (const char *)im->text + from, c->dump.n_code);
	c->rows.place->code_from = from;
}

static void take_place(struct hal_crash *c, const struct hal_exe *exe, uint64_t pc)
{
	const struct image *im = exe->image;
	struct hal_dump_place *p = c->rows.place;

	c->dump.n_place = 1;
	p->pc = p->code_from = pc;
	p->text_bytes = im->text_bytes;
	memcpy(p->fingerprint, im->info.fingerprint, sizeof(p->fingerprint));
	memcpy(p->program, exe->name, sizeof(p->program));
	snprintf(p->made_by, sizeof(p->made_by), "%s", im->note ? im->note : "");
	take_code(c, im, pc);
}

static void take_submission(struct hal_crash *c, struct hal_queue *q, uint64_t value,
			    const struct hw_fault *fault)
{
	const struct hal_exe *exe = q->slots[value % HAL_RING].exe;
	uint32_t at = q->ring->tail - (uint32_t)(q->submitted - value) - 1;

	c->dump.n_descriptor = 1;
	c->rows.descriptor[0] = q->ring->sq[at % q->ring->n_entries];
	if (exe)
		take_bindings(c, q, exe->image);
	if (!fault)
		return;
	c->dump.n_faults = 1;
	c->rows.faults[0] = *fault;
	c->centre = fault->binding < c->dump.n_bindings ? c->rows.bindings[fault->binding].va :
		    fault->va;
	if (exe)
		take_place(c, exe, fault->pc);
}

/* ---- memory; under device.lock ---- */

static void add_block(struct hal_crash *c, uint64_t base, const struct hal_block *b, bool is_host)
{
	struct hal_dump_block *m = &c->rows.memory[c->dump.n_memory++];

	m->va = base + b->offset;
	m->bytes = b->bytes;
	m->is_host = is_host;
	memcpy(m->owner, b->tag, sizeof(m->owner));
}

/* Of more blocks than there is room for, those about the centre. */
static void take_heap(struct hal_crash *c, const struct hal_heap *heap, uint64_t base,
		      bool is_host, uint64_t most)
{
	uint64_t n = 0, below = 0, first;

	for (const struct hal_block *b = hal_heap_lowest(heap); b; b = b->after) {
		n += !b->is_free;
		below += !b->is_free && base + b->offset < c->centre;
	}
	first = n <= most || below < most / 2 ? 0 : below - most / 2;
	if (n > most && n - first < most)
		first = n - most;
	n = 0;
	for (const struct hal_block *b = hal_heap_lowest(heap); b; b = b->after) {
		if (!b->is_free && n >= first && n - first < most)
			add_block(c, base, b, is_host);
		n += !b->is_free;
	}
}

static int by_address(const void *a, const void *b)
{
	const struct hal_dump_block *x = a, *y = b;

	return x->va < y->va ? -1 : x->va > y->va;
}

static void take_memory(struct hal_crash *c)
{
	for (const struct hal_host_chunk *h = c->dev->chunks; h; h = h->next) {
		const struct hal_block whole = { .bytes = h->bytes, .tag = "the caller's own" };

		if (c->dump.n_memory >= HOST_BLOCKS)
			break;
		if (h->heap)
			take_heap(c, h->heap, h->va, true, HOST_BLOCKS - c->dump.n_memory);
		else
			add_block(c, h->va, &whole, true);
		if (!h->heap)
			c->rows.memory[c->dump.n_memory - 1].is_mapped = 1;
	}
	if (c->dev->heap)
		take_heap(c, c->dev->heap, HAL_HBM_VA, false, MOST_MEMORY - c->dump.n_memory);
	qsort(c->rows.memory, c->dump.n_memory, sizeof(*c->rows.memory), by_address);
}

/* ---- what was told before ---- */

static void take_page(struct hal_crash *c)
{
	struct hal_device *dev = c->dev;
	const struct hal_page *page = dev->page_head;

	if (!dev->page)
		return;
	pthread_mutex_lock(&dev->hal->page_lock);
	c->rows.counters[0] = dev->page->counters;
	c->rows.ras[0] = dev->page->ras;
	for (uint64_t i = 0; i < page->n_events && i < HAL_PAGE_EVENTS; i++) {
		const struct hal_page_event *e =
			&page->events[(page->n_events - 1 - i) % HAL_PAGE_EVENTS];

		if (e->device == (uint32_t)(dev->page - page->devices) &&
		    c->dump.n_events < MOST_EVENTS)
			c->rows.events[c->dump.n_events++] = *e;
	}
	pthread_mutex_unlock(&dev->hal->page_lock);
	c->dump.n_counters = c->dump.n_ras = dev->page->read_at_ns != 0;
}

static void take_about(struct hal_crash *c, const struct err *why)
{
	const struct hw_identify *id = &c->dev->identity;
	const struct hal_device_info *info = &c->dev->entry->info;
	struct hal_dump_about *a = c->rows.about;
	struct utsname system;

	c->dump.n_about = 1;
	a->time_ns = (uint64_t)clock_date_ns();
	a->reason = c->dump.n_descriptor ? HAL_DUMP_FAULT : HAL_DUMP_DEATH;
	a->code = (uint32_t)why->code;
	a->pid = (uint32_t)getpid();
	a->kind = info->kind;
	a->contract = id->contract;
	a->isa = id->isa;
	a->image_version = IMAGE_VERSION;
	a->is_model = id->is_model != 0;
	a->hbm_bytes = id->hbm_bytes;
	snprintf(a->command, sizeof(a->command), "%s", program_invocation_short_name);
	if (!uname(&system))
		snprintf(a->system, sizeof(a->system), "%.20s %.42s", system.sysname,
			 system.release);
	snprintf(a->bus_id, sizeof(a->bus_id), "%s", info->bus_id);
	snprintf(a->name, sizeof(a->name), "%s", info->name);
	snprintf(a->serial, sizeof(a->serial), "%s", info->serial);
	snprintf(a->firmware, sizeof(a->firmware), "%s", info->firmware);
	snprintf(a->driver, sizeof(a->driver), "%s", info->driver);
	snprintf(a->text, sizeof(a->text), "%s", why->msg);
}

/* ---- begin and end ---- */

struct hal_crash *hal_crash_begin(struct hal_device *dev, struct hal_queue *q, uint64_t value,
				  const struct hw_fault *fault)
{
	struct hal_crash *c;

	if (!hal_dumps_want(&dev->hal->dumps))
		return NULL;
	c = calloc(1, sizeof(*c));
	if (!c)
		return NULL;
	c->dev = dev;
	take_registers(c);
	take_rings(c, q);
	if (q)
		take_submission(c, q, value, fault);
	if (fault)
		take_queues(c);
	return c;
}

/* Says at the end of a text, which is cut for it if need be, where the dump is. */
static void name_file(struct err *why, const char *path)
{
	char more[HAL_DUMP_PATH + 64];
	int n = snprintf(more, sizeof(more), HAL_DUMP_SAYS "%s", path);
	size_t at = strlen(why->msg);

	if (n < 0 || (size_t)n >= sizeof(why->msg) / 2 + 64)
		return;
	if (at > sizeof(why->msg) - 1 - (size_t)n)
		at = sizeof(why->msg) - 1 - (size_t)n;
	memcpy(why->msg + at, more, (size_t)n + 1);
}

void hal_crash_end(struct hal_crash *c, struct err *why)
{
	char path[HAL_DUMP_PATH];
	void *bytes;
	size_t n;

	if (!c)
		return;
	take_about(c, why);
	take_memory(c);
	take_page(c);
#define DUMP(name, number, row, field, most, meaning) c->dump.field = c->rows.field;
#include "hal/dump.def"
#undef DUMP
	if (!hal_dump_write(&c->dump, &bytes, &n, NULL) &&
	    hal_dumps_put(&c->dev->hal->dumps, bytes, n, path))
		name_file(why, path);
	free(c);
}

void hal_crash_drop(struct hal_crash *c)
{
	free(c);
}
