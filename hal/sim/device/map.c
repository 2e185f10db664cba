/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Addresses (DEVICE.md#addresses): what the IOMMU lets the device reach (iova to host
 * memory), and each context's map (va to HBM or to an iova). Both are sorted arrays.
 *
 * Memory must not go while a run uses it. A run marks the DMA mappings that it
 * resolved with its number and notes its ranges of va: UNMAP refuses a range that is
 * in use, and taking a DMA mapping away stops the run, as an IOMMU would.
 */
#include <stdlib.h>
#include <string.h>

#include "hal/sim/sim_internal.h"

/* First mapping that ends after iova. */
static unsigned find_dma(const struct sim_device *dev, uint64_t iova)
{
	unsigned lo = 0, hi = dev->n_dma;

	while (lo < hi) {
		unsigned mid = (lo + hi) / 2;

		if (dev->dma[mid]->iova + dev->dma[mid]->bytes <= iova)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* As sim_iova, but for the longest run of host memory that starts there. */
static uint8_t *reach_iova(struct sim_device *dev, struct sim_engine *e, uint64_t iova,
			   uint64_t bytes, bool write, uint64_t *got)
{
	uint8_t *first = NULL;

	*got = 0;
	for (unsigned i = find_dma(dev, iova); i < dev->n_dma && *got < bytes; i++) {
		struct sim_dma *d = dev->dma[i];
		uint64_t at = iova + *got, rest = bytes - *got, here;

		if (at < d->iova || d->dying || (write && !d->writable))
			break;
		if (!first)
			first = d->host + (at - d->iova);
		else if (first + *got != d->host)
			break;
		here = d->bytes - (at - d->iova);
		*got += here < rest ? here : rest;
		if (e)
			d->used_by[e != dev->engines] = e->run;
	}
	return first;
}

uint8_t *sim_iova(struct sim_device *dev, struct sim_engine *e, uint64_t iova,
		  uint64_t bytes, bool write)
{
	uint64_t got;
	uint8_t *p = reach_iova(dev, e, iova, bytes, write, &got);

	return got == bytes ? p : NULL;
}

bool sim_iova_reaches(struct sim_device *dev, uint64_t iova, uint64_t bytes, bool write)
{
	uint64_t got, at = 0;

	if (bytes > UINT64_MAX - iova)
		return false;
	while (at < bytes && reach_iova(dev, NULL, iova + at, bytes - at, write, &got))
		at += got;
	return at == bytes;
}

static int add_dma(struct sim_device *dev, struct sim_dma *d)
{
	unsigned i = find_dma(dev, d->iova);

	if (i < dev->n_dma && dev->dma[i]->iova < d->iova + d->bytes)
		return HW_ST_OVERLAP;
	if (dev->n_dma == dev->room_dma) {
		unsigned room = dev->room_dma ? dev->room_dma * 2 : 64;
		struct sim_dma **grown = room > SIM_MAX_MAPS ? NULL :
			realloc(dev->dma, room * sizeof(*grown));

		if (!grown)
			return HW_ST_NO_ROOM;
		dev->dma = grown;
		dev->room_dma = room;
	}
	memmove(&dev->dma[i + 1], &dev->dma[i], (dev->n_dma - i) * sizeof(*dev->dma));
	dev->dma[i] = d;
	dev->n_dma++;
	return 0;
}

int sim_dma_map(struct sim_device *dev, uint64_t iova, void *host, uint64_t bytes,
		bool writable, struct err *err)
{
	struct sim_dma *d;
	int status;

	if (iova % HW_PAGE || bytes % HW_PAGE || !bytes || iova + bytes < iova ||
	    (uintptr_t)host % 64)
		return err_set(err, ERR_INVALID_ARGUMENT, "DMA mapping of 0x%llx bytes at "
			       "0x%llx to host memory at %p: give multiples of %u, host "
			       "memory aligned to 64", (unsigned long long)bytes,
			       (unsigned long long)iova, host, HW_PAGE);
	d = malloc(sizeof(*d));
	if (!d)
		return err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory");
	*d = (struct sim_dma){ .iova = iova, .bytes = bytes, .host = host,
			       .writable = writable };
	pthread_mutex_lock(&dev->lock);
	status = add_dma(dev, d);
	pthread_mutex_unlock(&dev->lock);
	if (!status)
		return 0;
	free(d);
	if (status == HW_ST_OVERLAP)
		return err_set(err, ERR_ALREADY_EXISTS,
			       "a DMA mapping meets [0x%llx, +0x%llx): unmap it first",
			       (unsigned long long)iova, (unsigned long long)bytes);
	return err_set(err, ERR_RESOURCE_EXHAUSTED, "all %u DMA mappings are in use",
		       SIM_MAX_MAPS);
}

/* Stops the runs that use d; whether there are any. */
static bool is_used(struct sim_device *dev, const struct sim_dma *d)
{
	bool any = false;

	for (unsigned i = 0; i < 2; i++) {
		struct sim_engine *e = &dev->engines[i];

		if (!e->queue || d->used_by[i] != e->run)
			continue;
		sim_engine_halt(e, HW_ST_MAP);
		any = true;
	}
	return any;
}

/* The mapping that starts at iova and that nobody waits to free; NULL: none. */
static struct sim_dma *find_start(struct sim_device *dev, uint64_t iova)
{
	unsigned i = find_dma(dev, iova);

	return i < dev->n_dma && dev->dma[i]->iova == iova && !dev->dma[i]->is_taken ?
	       dev->dma[i] : NULL;
}

bool sim_dma_cut(struct sim_device *dev, uint64_t iova)
{
	struct sim_dma *d;
	bool any;

	pthread_mutex_lock(&dev->lock);
	d = find_start(dev, iova);
	if (d)
		d->dying = true;
	any = d && is_used(dev, d);
	pthread_mutex_unlock(&dev->lock);
	return any;
}

int sim_dma_unmap(struct sim_device *dev, uint64_t iova, struct err *err)
{
	struct sim_dma *d;
	unsigned i;

	pthread_mutex_lock(&dev->lock);
	d = find_start(dev, iova);
	if (!d) {
		pthread_mutex_unlock(&dev->lock);
		return err_set(err, ERR_NOT_FOUND, "no DMA mapping starts at 0x%llx",
			       (unsigned long long)iova);
	}
	d->dying = d->is_taken = true;
	dev->n_unmaps++;
	while (is_used(dev, d))
		pthread_cond_wait(&dev->idle, &dev->lock);
	i = find_dma(dev, iova);
	memmove(&dev->dma[i], &dev->dma[i + 1],
		(dev->n_dma - i - 1) * sizeof(*dev->dma));
	dev->n_dma--;
	pthread_mutex_unlock(&dev->lock);
	free(d);
	return 0;
}

void sim_dma_free(struct sim_device *dev)
{
	for (unsigned i = 0; i < dev->n_dma; i++)
		free(dev->dma[i]);
	free(dev->dma);
	dev->dma = NULL;
	dev->n_dma = dev->room_dma = 0;
}

/* ---- contexts ---- */

/* First mapping of ctx that ends after va. */
static unsigned find_map(const struct sim_ctx *ctx, uint64_t va)
{
	unsigned lo = 0, hi = ctx->n_maps;

	while (lo < hi) {
		unsigned mid = (lo + hi) / 2;

		if (ctx->maps[mid].va + ctx->maps[mid].bytes <= va)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* `rest` bytes from `in` bytes into m, as far as they follow one another. */
static uint8_t *reach_map(struct sim_device *dev, struct sim_engine *e,
			  const struct sim_map *m, uint64_t in, uint64_t rest, bool write,
			  uint64_t *got)
{
	if (rest > m->bytes - in)
		rest = m->bytes - in;
	*got = rest;
	if (m->flags & HW_MAP_HOST)
		return reach_iova(dev, e, m->pa + in, rest, write, got);
	return dev->hbm + m->pa + in;
}

uint8_t *sim_va(struct sim_device *dev, struct sim_engine *e, unsigned ctx, uint64_t va,
		uint64_t bytes, bool write, uint64_t *got, bool *is_host)
{
	const struct sim_ctx *c = &dev->contexts[ctx];
	uint8_t *first = NULL;
	uint64_t so_far = 0;

	if (bytes > UINT64_MAX - va)
		return NULL;
	for (unsigned i = find_map(c, va); i < c->n_maps && so_far < bytes; i++) {
		const struct sim_map *m = &c->maps[i];
		uint64_t at = va + so_far, here, want;
		uint8_t *p;

		if (at < m->va || m->window || (write && !(m->flags & HW_MAP_WRITE)))
			break;
		want = m->bytes - (at - m->va);
		p = reach_map(dev, e, m, at - m->va, bytes - so_far, write, &here);
		if (!p || (first && p != first + so_far))
			break;
		first = first ? first : p;
		if (is_host && !so_far)
			*is_host = m->flags & HW_MAP_HOST;
		so_far += here;
		if (here < want)
			break;
	}
	if (got)
		*got = so_far;
	return so_far == bytes || (got && so_far) ? first : NULL;
}

uint8_t *sim_peer_va(struct sim_device *dev, unsigned ctx, uint64_t va, uint64_t bytes,
		     struct sim_window **w)
{
	const struct sim_ctx *c = &dev->contexts[ctx];
	unsigned i = c->n_peers ? find_map(c, va) : c->n_maps;
	const struct sim_map *m = &c->maps[i];

	if (i == c->n_maps || !m->window || va < m->va || bytes > m->bytes - (va - m->va))
		return NULL;
	*w = m->window;
	return m->window->memory + m->pa + (va - m->va);
}

static bool is_sane(const struct sim_device *dev, const struct hw_map *m)
{
	if (m->va % HW_PAGE || m->pa % HW_PAGE || m->bytes % HW_PAGE || !m->bytes ||
	    m->va + m->bytes < m->va || m->pa + m->bytes < m->pa || m->zero ||
	    m->flags & ~(uint32_t)(HW_MAP_WRITE | HW_MAP_HOST))
		return false;
	return m->flags & HW_MAP_HOST || m->pa + m->bytes <= dev->hbm_bytes;
}

int sim_ctx_map(struct sim_device *dev, unsigned ctx, const struct hw_map *m)
{
	if (!is_sane(dev, m))
		return HW_ST_BAD_FIELD;
	return sim_ctx_add(dev, ctx, &(struct sim_map){ .va = m->va, .pa = m->pa,
							.bytes = m->bytes, .flags = m->flags });
}

int sim_ctx_add(struct sim_device *dev, unsigned ctx, const struct sim_map *m)
{
	struct sim_ctx *c = &dev->contexts[ctx];
	unsigned i = find_map(c, m->va);

	if (i < c->n_maps && c->maps[i].va < m->va + m->bytes)
		return HW_ST_OVERLAP;
	if (c->n_maps == c->room) {
		unsigned room = c->room ? c->room * 2 : 16;
		struct sim_map *grown = room > SIM_MAX_MAPS ? NULL :
			realloc(c->maps, room * sizeof(*grown));

		if (!grown)
			return HW_ST_NO_ROOM;
		c->maps = grown;
		c->room = room;
	}
	memmove(&c->maps[i + 1], &c->maps[i], (c->n_maps - i) * sizeof(*c->maps));
	c->maps[i] = *m;
	c->n_maps++;
	c->n_peers += m->window != NULL;
	return 0;
}

void sim_ctx_free(struct sim_ctx *c)
{
	for (unsigned i = 0; i < c->n_maps && c->n_peers; i++)
		if (c->maps[i].window)
			sim_window_put(c->maps[i].window);
	free(c->maps);
	*c = (struct sim_ctx){ 0 };
}

static bool is_any_in(const struct sim_use *uses, unsigned n, uint64_t va, uint64_t bytes)
{
	for (unsigned i = 0; i < n; i++)
		if (uses[i].va < va + bytes && va < uses[i].va + uses[i].bytes)
			return true;
	return false;
}

/* Whether a run of ctx uses any of [va, va + bytes). */
static bool is_range_used(const struct sim_device *dev, unsigned ctx, uint64_t va,
			  uint64_t bytes)
{
	for (unsigned n = 0; n < 2; n++) {
		const struct sim_engine *e = &dev->engines[n];

		if (e->queue && e->queue->info.ctx == ctx &&
		    is_any_in(e->uses, e->n_uses, va, bytes))
			return true;
	}
	for (unsigned i = 1; dev->n_parked && i < HW_MAX_QUEUES; i++) {
		const struct sim_queue *q = &dev->queues[i];

		if (q->is_parked && q->info.ctx == ctx &&
		    is_any_in(q->parked->uses, q->parked->n_uses, va, bytes))
			return true;
	}
	return false;
}

int sim_ctx_unmap(struct sim_device *dev, unsigned ctx, uint64_t va)
{
	struct sim_ctx *c = &dev->contexts[ctx];
	unsigned i = find_map(c, va);

	if (i == c->n_maps || c->maps[i].va != va)
		return HW_ST_NO_SUCH_ID;
	if (is_range_used(dev, ctx, va, c->maps[i].bytes) ||
	    sim_is_lent(dev, ctx, va, c->maps[i].bytes))
		return HW_ST_BUSY;
	if (c->maps[i].window) {
		sim_window_put(c->maps[i].window);
		c->n_peers--;
	}
	memmove(&c->maps[i], &c->maps[i + 1], (c->n_maps - i - 1) * sizeof(*c->maps));
	c->n_maps--;
	return 0;
}
