/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Addresses: what the IOMMU lets the device reach (iova to host memory), and each
 * context's map (va to HBM or to an iova). Both are sorted arrays. A run that uses
 * host memory counts as a user of its mapping, and unmapping waits for it.
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

uint8_t *sim_iova(struct sim_device *dev, uint64_t iova, uint64_t bytes, bool write,
		  struct sim_dma **dma)
{
	unsigned i = find_dma(dev, iova);
	struct sim_dma *d;

	if (i == dev->n_dma)
		return NULL;
	d = dev->dma[i];
	if (iova < d->iova || d->dying || (write && !d->writable) ||
	    bytes > d->bytes - (iova - d->iova))
		return NULL;
	if (dma)
		*dma = d;
	return d->host + (iova - d->iova);
}

int sim_dma_map(struct sim_device *dev, uint64_t iova, void *host, uint64_t bytes,
		bool writable, struct err *err)
{
	struct sim_dma *d;
	unsigned i;

	if (iova % HW_PAGE || bytes % HW_PAGE || !bytes || iova + bytes < iova)
		return err_set(err, ERR_INVALID_ARGUMENT, "DMA mapping of 0x%llx bytes at "
			       "0x%llx: both must be multiples of %u",
			       (unsigned long long)bytes, (unsigned long long)iova, HW_PAGE);
	d = malloc(sizeof(*d));
	if (!d)
		return err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory");
	*d = (struct sim_dma){ .iova = iova, .bytes = bytes, .host = host,
			       .writable = writable };
	pthread_mutex_lock(&dev->lock);
	i = find_dma(dev, iova);
	if (dev->n_dma == SIM_MAX_MAPS ||
	    (i < dev->n_dma && dev->dma[i]->iova < iova + bytes)) {
		int full = dev->n_dma == SIM_MAX_MAPS;

		pthread_mutex_unlock(&dev->lock);
		free(d);
		return full ? err_set(err, ERR_RESOURCE_EXHAUSTED,
				      "all %u DMA mappings are in use", SIM_MAX_MAPS) :
			      err_set(err, ERR_ALREADY_EXISTS,
				      "a DMA mapping meets [0x%llx, +0x%llx)",
				      (unsigned long long)iova, (unsigned long long)bytes);
	}
	memmove(&dev->dma[i + 1], &dev->dma[i], (dev->n_dma - i) * sizeof(*dev->dma));
	dev->dma[i] = d;
	dev->n_dma++;
	pthread_mutex_unlock(&dev->lock);
	return 0;
}

int sim_dma_unmap(struct sim_device *dev, uint64_t iova, struct err *err)
{
	struct sim_dma *d;
	unsigned i;

	pthread_mutex_lock(&dev->lock);
	i = find_dma(dev, iova);
	if (i == dev->n_dma || dev->dma[i]->iova != iova || dev->dma[i]->dying) {
		pthread_mutex_unlock(&dev->lock);
		return err_set(err, ERR_NOT_FOUND, "no DMA mapping starts at 0x%llx",
			       (unsigned long long)iova);
	}
	d = dev->dma[i];
	d->dying = true;
	while (d->users)
		pthread_cond_wait(&dev->idle, &dev->lock);
	i = find_dma(dev, iova);
	memmove(&dev->dma[i], &dev->dma[i + 1],
		(dev->n_dma - i - 1) * sizeof(*dev->dma));
	dev->n_dma--;
	pthread_mutex_unlock(&dev->lock);
	free(d);
	return 0;
}

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

static bool is_poisoned(const struct sim_device *dev, uint64_t offset, uint64_t bytes)
{
	for (unsigned i = 0; i < dev->n_poisoned; i++)
		if (dev->poisoned[i] < offset + bytes &&
		    offset < dev->poisoned[i] + HW_PAGE)
			return true;
	return false;
}

uint8_t *sim_va(struct sim_device *dev, unsigned ctx, uint64_t va, uint64_t bytes,
		bool write, struct sim_dma **dma, bool *poison)
{
	const struct sim_ctx *c = &dev->contexts[ctx];
	unsigned i = find_map(c, va);
	const struct sim_map *m;
	uint64_t in, need = bytes;

	*dma = NULL;
	if (i == c->n_maps || va < c->maps[i].va)
		return NULL;
	m = &c->maps[i];
	in = va - m->va;
	/* Neighbours that continue each other in HBM count as one. */
	for (unsigned j = i; need > c->maps[j].bytes - (j == i ? in : 0); j++) {
		const struct sim_map *a = &c->maps[j], *b = a + 1;

		need -= a->bytes - (j == i ? in : 0);
		if (j + 1 == c->n_maps || a->va + a->bytes != b->va ||
		    (a->flags | b->flags) & HW_MAP_HOST || a->pa + a->bytes != b->pa ||
		    (write && !(b->flags & HW_MAP_WRITE)))
			return NULL;
	}
	if (write && !(m->flags & HW_MAP_WRITE))
		return NULL;
	if (m->flags & HW_MAP_HOST)
		return sim_iova(dev, m->pa + in, bytes, write, dma);
	if (poison && dev->n_poisoned && is_poisoned(dev, m->pa + in, bytes))
		*poison = true;
	return dev->hbm + m->pa + in;
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
	struct sim_ctx *c = &dev->contexts[ctx];
	unsigned i;

	if (!is_sane(dev, m))
		return HW_ST_BAD_FIELD;
	i = find_map(c, m->va);
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
	c->maps[i] = (struct sim_map){ m->va, m->pa, m->bytes, m->flags };
	c->n_maps++;
	return 0;
}

int sim_ctx_unmap(struct sim_device *dev, unsigned ctx, uint64_t va)
{
	struct sim_ctx *c = &dev->contexts[ctx];
	unsigned i = find_map(c, va);

	if (i == c->n_maps || c->maps[i].va != va)
		return HW_ST_NO_SUCH_ID;
	memmove(&c->maps[i], &c->maps[i + 1], (c->n_maps - i - 1) * sizeof(*c->maps));
	c->n_maps--;
	return 0;
}
