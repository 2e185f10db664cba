/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of a device: allocation, what waits to be freed, scratch, and random state.
 *
 * All programs of a device share one block of scratch, because they run in order: as
 * large as the neediest that ran needs, at the high end of HBM. It goes with the last
 * executable that needs so much, and whenever memory is short; the next launch that
 * needs it makes it again.
 */
#include <stdlib.h>
#include <string.h>

#include "runtime/rt_internal.h"

#define DRAIN_NS 60000000000ll	/* how long allocation waits for queued work */
#define MOST_LOOKED_AT 16	/* notes of garbage, for memory to use again */

/* ---- memory that waits to be freed ---- */

/* Under d->lock. */
static void sweep(struct rt_device *d)
{
	struct rt_garbage **p = &d->garbage, *g;
	uint64_t done;

	if (!*p)
		return;
	done = hal_queue_done(d->queue);
	while ((g = *p)) {
		if (g->value > done) {
			p = &g->next;
			continue;
		}
		hal_mem_free(g->mem);
		*p = g->next;
		g->next = d->spare;
		d->spare = g;
	}
}

/* Under d->lock. False: there is no memory for the note. */
static bool throw_away(struct rt_device *d, struct hal_mem *mem, uint64_t value)
{
	struct rt_garbage *g;

	if (!value || hal_queue_done(d->queue) >= value) {
		hal_mem_free(mem);
		return true;
	}
	sweep(d);
	g = d->spare;
	if (g)
		d->spare = g->next;
	else
		g = malloc(sizeof(*g));
	if (!g)
		return false;
	*g = (struct rt_garbage){ mem, value, d->garbage };
	d->garbage = g;
	return true;
}

void rt_discard(struct rt_client *c, unsigned device, struct hal_mem *mem, uint64_t value)
{
	struct rt_device *d = &c->devices[device];
	bool is_noted;

	if (!mem)
		return;
	if (!value || hal_queue_done(d->queue) >= value) {
		hal_mem_free(mem);
		return;
	}
	pthread_mutex_lock(&d->lock);
	is_noted = throw_away(d, mem, value);
	pthread_mutex_unlock(&d->lock);
	if (is_noted)
		return;
	hal_queue_wait(d->queue, value, clock_after(DRAIN_NS), NULL);
	hal_mem_free(mem);
}

/* Under d->lock. Without memory for a note, the scratch stays. */
static void drop_scratch(struct rt_device *d)
{
	if (d->scratch && throw_away(d, d->scratch, d->scratch_use)) {
		d->scratch = NULL;
		d->scratch_use = 0;
	}
}

/* Frees what running work holds, once that is done; with `all` scratch too. */
static void make_room(struct rt_device *d, bool all)
{
	uint64_t newest = 0;

	pthread_mutex_lock(&d->lock);
	if (all)
		drop_scratch(d);
	for (struct rt_garbage *g = d->garbage; g; g = g->next)
		if (g->value > newest)
			newest = g->value;
	pthread_mutex_unlock(&d->lock);
	if (!newest)
		return;
	hal_queue_wait(d->queue, newest, clock_after(DRAIN_NS), NULL);
	pthread_mutex_lock(&d->lock);
	sweep(d);
	pthread_mutex_unlock(&d->lock);
}

void rt_make_room(struct rt_client *c, unsigned device)
{
	make_room(&c->devices[device], true);
}

/* Memory of that size which waits to be freed, of those that were thrown away last, which are in
 * caches; NULL: none. The queue is in order, so what is submitted from now on may write there.
 * Under d->lock. */
static struct hal_mem *find_garbage(struct rt_device *d, enum hal_mem_kind kind, uint64_t bytes,
				    uint64_t *value)
{
	struct rt_garbage **p = &d->garbage, *g;

	for (unsigned n = 0; (g = *p) && n < MOST_LOOKED_AT; p = &g->next, n++) {
		if (hal_mem_bytes(g->mem) != bytes || hal_mem_kind(g->mem) != kind)
			continue;
		*value = g->value;
		*p = g->next;
		g->next = d->spare;
		d->spare = g;
		return g->mem;
	}
	*value = 0;
	return NULL;
}

int rt_alloc(struct rt_client *c, unsigned device, enum rt_memory_kind kind, uint64_t bytes,
	     const char *tag, uint64_t *value, struct hal_mem **out, struct err *err)
{
	struct rt_device *d = &c->devices[device];
	enum hal_mem_kind k = kind == RT_DEVICE ? HAL_MEM_HBM : HAL_MEM_HOST;
	int code;

	pthread_mutex_lock(&d->lock);
	*out = value ? find_garbage(d, k, bytes, value) : NULL;
	if (!*out)
		sweep(d);
	pthread_mutex_unlock(&d->lock);
	if (*out) {
		hal_mem_tag(*out, tag);
		return 0;
	}
	code = hal_mem_alloc(d->hal, k, bytes, tag, out, err);
	/* Again in any case: another thread may have made the room. */
	for (int all = 0; all < 2 && code == ERR_RESOURCE_EXHAUSTED; all++) {
		make_room(d, all && k == HAL_MEM_HBM);
		code = hal_mem_alloc(d->hal, k, bytes, tag, out, err);
	}
	return code;
}

/* ---- scratch ---- */

bool rt_has_scratch(const struct rt_device *d, uint64_t bytes)
{
	return !bytes || (d->scratch && hal_mem_bytes(d->scratch) >= bytes);
}

/* Under grow_lock and d->lock, which is let go and taken again. */
static int grow(struct rt_device *d, uint64_t bytes, struct err *err)
{
	struct hal_mem *grown;
	int code;

	/* First the smaller one goes: both at a time may be too much. */
	drop_scratch(d);
	sweep(d);
	pthread_mutex_unlock(&d->lock);
	code = hal_mem_alloc_high(d->hal, bytes, "temporaries", &grown, err);
	if (code == ERR_RESOURCE_EXHAUSTED) {
		make_room(d, true);
		code = hal_mem_alloc_high(d->hal, bytes, "temporaries", &grown, err);
	}
	pthread_mutex_lock(&d->lock);
	if (code)
		return code;
	if (d->scratch) {
		hal_mem_free(grown);
		return err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory");
	}
	d->scratch = grown;
	return 0;
}

int rt_need_scratch(struct rt_client *c, unsigned device, uint64_t bytes, struct err *err)
{
	struct rt_device *d = &c->devices[device];
	int code = 0;

	/* One at a time: two that want room for theirs would take it from each other. */
	pthread_mutex_lock(&d->grow_lock);
	pthread_mutex_lock(&d->lock);
	if (!rt_has_scratch(d, bytes))
		code = grow(d, bytes, err);
	pthread_mutex_unlock(&d->lock);
	pthread_mutex_unlock(&d->grow_lock);
	return code;
}

void rt_scratch_join(struct rt_exe *x)
{
	struct rt_device *d = &x->client->devices[x->device];

	/* One that calls the host has temporaries of its own. */
	if (!x->image->info.temp_bytes || x->image->n_transfers)
		return;
	pthread_mutex_lock(&d->lock);
	x->next = d->scratch_users;
	x->link = &d->scratch_users;
	if (x->next)
		x->next->link = &x->next;
	d->scratch_users = x;
	pthread_mutex_unlock(&d->lock);
}

void rt_scratch_leave(struct rt_exe *x)
{
	struct rt_device *d = &x->client->devices[x->device];
	uint64_t most = 0;

	if (!x->image->info.temp_bytes || x->image->n_transfers)
		return;
	pthread_mutex_lock(&d->lock);
	if (x->link)
		*x->link = x->next;
	if (x->link && x->next)
		x->next->link = x->link;
	x->link = NULL;
	/* Only the neediest can have left more than the others need. */
	if (d->scratch && x->image->info.temp_bytes >= hal_mem_bytes(d->scratch)) {
		for (const struct rt_exe *o = d->scratch_users; o; o = o->next)
			if (o->image->info.temp_bytes > most)
				most = o->image->info.temp_bytes;
		if (most < hal_mem_bytes(d->scratch))
			drop_scratch(d);
	}
	pthread_mutex_unlock(&d->lock);
}

/* ---- random state ---- */

/* Programs advance it in the queue's order, so it goes with the device only. */
int rt_need_random(struct rt_client *c, unsigned device, struct err *err)
{
	struct rt_device *d = &c->devices[device];
	const uint64_t start[IMAGE_RANDOM_WORDS] = { c->seed, 0, rt_first_id(c) + device };
	struct hal_mem *mem;
	int code = 0;

	pthread_mutex_lock(&d->grow_lock);
	if (!d->random) {
		code = rt_alloc(c, device, RT_DEVICE, sizeof(start), "random state", NULL, &mem,
				err);
		if (!code && (code = hal_copy_in(mem, 0, start, sizeof(start), CLOCK_FOREVER,
						err)))
			hal_mem_free(mem);
		if (!code)
			d->random = mem;
	}
	pthread_mutex_unlock(&d->grow_lock);
	return code;
}

/* ---- figures ---- */

void rt_memory_stats(struct rt_client *c, unsigned device, struct hal_mem_stats *out)
{
	struct rt_device *d = &c->devices[device];

	pthread_mutex_lock(&d->lock);
	sweep(d);
	pthread_mutex_unlock(&d->lock);
	hal_mem_stats(d->hal, HAL_MEM_HBM, out);
}

void rt_clear_memory_stats(struct rt_client *c, unsigned device)
{
	hal_mem_clear_peak(c->devices[device].hal);
}
