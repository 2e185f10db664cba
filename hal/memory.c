/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Allocation: HBM from its heap (hbm.c), host memory from chunks that are
 * pinned, placed near the device and mapped for it once. Records of blocks are
 * outside of the memory itself.
 */
#define LOG_TAG "hal/memory"
#include <errno.h>
#include <numa.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "hal/base/log.h"
#include "hal/hal_internal.h"
#include "hal/hw/regs.h"

#define CHUNK ((uint64_t)2 << 20)

static const char *const kind_names[] = { "HBM", "pinned host memory" };

static void free_chunk(struct hal_device *dev, struct hal_host_chunk *c)
{
	if (c->va)
		dev->t->ops->host_unmap(dev->t, c->va, c->bytes, NULL);
	if (c->is_granted)
		dev->t->ops->host_free(dev->t, c->host, c->bytes);
	else if (c->host && !c->is_foreign)
		munmap(c->host, c->bytes);
	hal_heap_destroy(c->heap);
	free(c);
}

void hal_memory_close(struct hal_device *dev)
{
	struct hal_host_chunk *c, *next;
	struct hal_mem *m;

	for (c = dev->chunks; c; c = next) {
		next = c->next;
		free_chunk(dev, c);
	}
	dev->chunks = NULL;
	/* What its user did not free goes with the device. */
	while ((m = dev->mems)) {
		dev->mems = m->next;
		free(m);
	}
	while ((m = dev->spare_mems)) {
		dev->spare_mems = m->next_spare;
		free(m);
	}
	hal_hbm_close(dev);
}

/* From a multiple of CHUNK, where huge pages can be: they take fewer calls to pin and fewer
 * entries of the IOMMU. MAP_FAILED if there is none. */
static void *map_aligned(uint64_t bytes)
{
	uint8_t *p = mmap(NULL, bytes + CHUNK, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t before, after;

	if (p == MAP_FAILED)
		return p;
	before = -(uintptr_t)p % CHUNK;
	after = CHUNK - before;
	if (before)
		munmap(p, before);
	if (after)
		munmap(p + before + bytes, after);
	madvise(p + before, bytes, MADV_HUGEPAGE);
	return p + before;
}

/* Memory of at least c->bytes that can be mapped. */
static int get_host(struct hal_device *dev, struct hal_host_chunk *c, struct err *err)
{
	int code = dev->t->ops->host_pages ?
		dev->t->ops->host_pages(dev->t, &c->bytes, &c->host, err) : 0;

	c->is_granted = !code && c->host;
	if (code || c->host)
		return code;
	c->host = map_aligned(c->bytes);
	if (c->host != MAP_FAILED)
		return 0;
	c->host = NULL;
	return err_sys(err, ENOMEM, "%llu bytes of pinned host memory",
		       (unsigned long long)c->bytes);
}

static int make_chunk(struct hal_device *dev, uint64_t bytes, struct hal_host_chunk **out,
		      struct err *err)
{
	struct hal_host_chunk *c = calloc(1, sizeof(*c));
	int code;

	if (!c)
		return err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory");
	c->bytes = bytes;
	code = get_host(dev, c, err);
	if (!code) {
		c->heap = hal_heap_create(c->bytes);
		code = c->heap ? 0 : err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory");
	}
	if (!code) {
		if (dev->entry->info.numa_node >= 0 && numa_available() >= 0)
			numa_tonode_memory(c->host, c->bytes, dev->entry->info.numa_node);
		/* The device writes here: a child of fork must not make it copy-on-write. */
		madvise(c->host, c->bytes, MADV_DONTFORK);
		code = dev->t->ops->host_map(dev->t, c->host, c->bytes, &c->va, err);
	}
	if (code) {
		free_chunk(dev, c);
		return code;
	}
	c->next = dev->chunks;
	dev->chunks = c;
	*out = c;
	return 0;
}

static struct hal_mem *new_mem(struct hal_device *dev)
{
	struct hal_mem *m = dev->spare_mems;

	if (m)
		dev->spare_mems = m->next_spare;
	else
		m = malloc(sizeof(*m));
	if (m)
		memset(m, 0, sizeof(*m));
	return m;
}

static void drop_mem(struct hal_device *dev, struct hal_mem *m)
{
	m->next_spare = dev->spare_mems;
	dev->spare_mems = m;
}

static int report_exhausted(struct hal_device *dev, uint64_t bytes, const char *tag,
			    struct err *err)
{
	struct str owners = { 0 }, others = { 0 };
	uint64_t in_use = hal_heap_in_use(dev->heap);
	struct hal_room room;
	struct err why;

	hal_hbm_room(dev, &room);
	hal_heap_owners(dev->heap, &owners);
	if (room.others) {
		str_printf(&others, ". Others hold %llu bytes of the card: ",
			   (unsigned long long)room.others);
		dev->t->ops->hbm_holders(dev->t, room.others, &others);
	}
	err_set(&why, ERR_RESOURCE_EXHAUSTED,
		       "%s: %s asks for %llu bytes (%.2f GiB) of HBM for \"%s\"; free are %llu of "
		       "%llu, the largest free block is %llu%s. Largest owners: %s. Free arrays, "
		       "or make the batch or the model smaller",
		       "out of memory", dev->entry->info.bus_id, (unsigned long long)bytes,
		       (double)bytes / (1 << 30), tag ? tag : "",
		       (unsigned long long)(room.limit - in_use),
		       (unsigned long long)dev->identity.hbm_bytes,
		       (unsigned long long)room.largest,
		       others.text ? others.text : "", owners.text ? owners.text : "unknown");
	str_free(&owners);
	str_free(&others);
	hal_page_tell(dev, why.code, why.msg);
	if (err)
		*err = why;
	return why.code;
}

static int alloc_host(struct hal_device *dev, struct hal_mem *m, const char *tag,
		      struct err *err)
{
	struct hal_host_chunk *c;
	int code;

	if (m->bytes > ((uint64_t)1 << 46))
		return err_set(err, ERR_RESOURCE_EXHAUSTED, "%llu bytes of pinned host "
			       "memory are more than any host has", (unsigned long long)m->bytes);
	for (c = dev->chunks; c; c = c->next) {
		/* What fits in one granted page must not end up across two: to the device
		 * they may be no neighbours, and a binding is in one piece. */
		if (c->is_foreign || (c->is_granted && c->bytes > CHUNK && m->bytes <= CHUNK))
			continue;
		m->block = hal_heap_alloc(c->heap, m->bytes, tag);
		if (m->block)
			break;
	}
	if (!c) {
		uint64_t need = (m->bytes + HW_PAGE - 1) / HW_PAGE * HW_PAGE;

		code = make_chunk(dev, need > CHUNK ? need : CHUNK, &c, err);
		if (code)
			return code;
		m->block = hal_heap_alloc(c->heap, m->bytes, tag);
		if (!m->block)
			return err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory");
	}
	m->chunk = c;
	m->va = c->va + m->block->offset;
	m->host = (uint8_t *)c->host + m->block->offset;
	return 0;
}

/* Under dev->lock. */
static void add_mem(struct hal_device *dev, struct hal_mem *m)
{
	m->next = dev->mems;
	m->pprev = &dev->mems;
	if (m->next)
		m->next->pprev = &m->next;
	dev->mems = m;
}

static void drop_foreign(struct hal_device *dev, struct hal_host_chunk *c)
{
	struct hal_host_chunk **link = &dev->chunks;

	while (*link != c)
		link = &(*link)->next;
	*link = c->next;
	free_chunk(dev, c);
}

int hal_mem_map(struct hal_device *dev, void *host, uint64_t bytes, struct hal_mem **out,
		struct err *err)
{
	uintptr_t at = (uintptr_t)host;
	struct hal_host_chunk *c;
	struct hal_mem *m;
	int code = hal_check(dev, err);

	if (code)
		return code;
	if (!host || !bytes || at % HW_PAGE || bytes % HW_PAGE || bytes > UINT64_MAX - at)
		return err_set(err, ERR_INVALID_ARGUMENT, "host memory at %p of %llu bytes to "
			       "map: whole pages of %u bytes are taken", host,
			       (unsigned long long)bytes, HW_PAGE);
	pthread_mutex_lock(&dev->lock);
	for (c = dev->chunks; c; c = c->next)
		if (at < (uintptr_t)c->host + c->bytes && (uintptr_t)c->host < at + bytes) {
			pthread_mutex_unlock(&dev->lock);
			return err_set(err, ERR_ALREADY_EXISTS, "host memory at %p of %llu "
				       "bytes: %llu bytes at %p are mapped already", host,
				       (unsigned long long)bytes,
				       (unsigned long long)c->bytes, c->host);
		}
	c = calloc(1, sizeof(*c));
	m = new_mem(dev);
	if (!c || !m) {
		code = err_set(err, ERR_RESOURCE_EXHAUSTED, "out of host memory");
	} else {
		*c = (struct hal_host_chunk){ .next = dev->chunks, .host = host,
						.bytes = bytes, .is_foreign = true };
		code = dev->t->ops->host_map(dev->t, host, bytes, &c->va, err);
	}
	if (code) {
		free(c);
		if (m)
			drop_mem(dev, m);
	} else {
		dev->chunks = c;
		*m = (struct hal_mem){ .dev = dev, .kind = HAL_MEM_HOST, .va = c->va,
				       .bytes = bytes, .host = host, .chunk = c };
		add_mem(dev, m);
		*out = m;
	}
	pthread_mutex_unlock(&dev->lock);
	return code;
}

int hal_mem_view(struct hal_device *dev, uint64_t address, uint64_t bytes,
		 struct hal_mem **out, struct err *err)
{
	struct hal_mem *m, v = { .dev = dev, .bytes = bytes };
	uint64_t at;
	bool found;
	int code = hal_check(dev, err);

	if (code)
		return code;
	pthread_mutex_lock(&dev->lock);
	found = hal_hbm_view(dev, address, bytes, &v);
	for (struct hal_host_chunk *c = dev->chunks; c && !found; c = c->next) {
		found = hal_is_within(address, bytes, (uintptr_t)c->host, c->bytes, &at) ||
			hal_is_within(address, bytes, c->va, c->bytes, &at);
		if (!found)
			continue;
		v.kind = HAL_MEM_HOST;
		v.va = c->va + at;
		v.host = (uint8_t *)c->host + at;
	}
	m = found && bytes ? new_mem(dev) : NULL;
	if (m) {
		*m = v;
		if (m->range)
			hal_hbm_hold(m->range);
		add_mem(dev, m);
		*out = m;
	}
	pthread_mutex_unlock(&dev->lock);
	if (m)
		return 0;
	if (found && bytes)
		return err_set(err, ERR_RESOURCE_EXHAUSTED, "out of host memory");
	return err_set(err, ERR_NOT_FOUND, "%llu bytes at 0x%llx: neither HBM of %s nor host "
		       "memory that it reaches", (unsigned long long)bytes,
		       (unsigned long long)address, dev->entry->info.bus_id);
}

static void count(struct hal_device *dev, const struct hal_mem *m)
{
	unsigned k = m->kind;

	dev->used[k] += m->block->bytes;
	dev->total[k]++;
	if (dev->used[k] > dev->peak[k])
		dev->peak[k] = dev->used[k];
	if (m->bytes > dev->largest[k])
		dev->largest[k] = m->bytes;
	if (dev->page && k == HAL_MEM_HBM) {
		dev->page->heap_changes++;
		dev->page->used_bytes = dev->used[k];
		dev->page->peak_bytes = dev->peak[k];
	}
}

static int alloc(struct hal_device *dev, enum hal_mem_kind kind, bool is_high, uint64_t bytes,
		 const char *tag, struct hal_mem **out, struct err *err)
{
	struct hal_mem *m;
	int code = hal_check(dev, err);

	if (code)
		return code;
	if (!bytes || kind > HAL_MEM_HOST)
		return err_set(err, ERR_INVALID_ARGUMENT, "an allocation of %llu bytes of "
			       "kind %d", (unsigned long long)bytes, kind);
	pthread_mutex_lock(&dev->lock);
	m = new_mem(dev);
	if (!m) {
		pthread_mutex_unlock(&dev->lock);
		return err_set(err, ERR_RESOURCE_EXHAUSTED, "out of host memory");
	}
	m->dev = dev;
	m->kind = kind;
	m->bytes = bytes;
	code = kind == HAL_MEM_HBM ? hal_hbm_alloc(dev, m, is_high, tag, err) :
				     alloc_host(dev, m, tag, err);
	if (code == ERR_RESOURCE_EXHAUSTED && kind == HAL_MEM_HBM)
		code = report_exhausted(dev, bytes, tag, err);
	if (code) {
		drop_mem(dev, m);
	} else {
		add_mem(dev, m);
		count(dev, m);
	}
	pthread_mutex_unlock(&dev->lock);
	if (code)
		return code;
	log_debug("alloc %llu bytes of %s at 0x%llx: %s", (unsigned long long)bytes,
		  kind_names[kind], (unsigned long long)m->va, tag ? tag : "");
	*out = m;
	return 0;
}

int hal_mem_alloc(struct hal_device *dev, enum hal_mem_kind kind, uint64_t bytes,
		  const char *tag, struct hal_mem **out, struct err *err)
{
	return alloc(dev, kind, false, bytes, tag, out, err);
}

int hal_mem_alloc_high(struct hal_device *dev, uint64_t bytes, const char *tag,
		       struct hal_mem **out, struct err *err)
{
	return alloc(dev, HAL_MEM_HBM, true, bytes, tag, out, err);
}

void hal_mem_free(struct hal_mem *m)
{
	struct hal_device *dev;

	if (!m || hal_is_orphan(m->dev))
		return;
	dev = m->dev;
	pthread_mutex_lock(&dev->lock);
	if (m->block) {
		dev->used[m->kind] -= m->block->bytes;
		if (dev->page && m->kind == HAL_MEM_HBM) {
			dev->page->heap_changes++;
			dev->page->used_bytes = dev->used[m->kind];
		}
		if (m->chunk)
			hal_heap_free(m->chunk->heap, m->block);
		else
			hal_hbm_free(dev, m->block);
	} else if (m->range) {
		hal_hbm_let_go(dev, m->range);
	} else if (m->chunk) {
		drop_foreign(dev, m->chunk);
	}
	*m->pprev = m->next;
	if (m->next)
		m->next->pprev = m->pprev;
	drop_mem(dev, m);
	pthread_mutex_unlock(&dev->lock);
}

void hal_mem_tag(struct hal_mem *m, const char *tag)
{
	struct hal_device *dev = m->dev;

	if (!m->block || hal_is_orphan(dev))
		return;
	pthread_mutex_lock(&dev->lock);
	hal_heap_tag(m->block, tag);
	pthread_mutex_unlock(&dev->lock);
}

uint64_t hal_mem_va(const struct hal_mem *m)
{
	return m->va;
}

uint64_t hal_mem_bytes(const struct hal_mem *m)
{
	return m->bytes;
}

enum hal_mem_kind hal_mem_kind(const struct hal_mem *m)
{
	return m->kind;
}

void *hal_mem_host(const struct hal_mem *m)
{
	return m->host;
}

void hal_mem_stats(struct hal_device *dev, enum hal_mem_kind kind, struct hal_mem_stats *out)
{
	uint64_t blocks = 0, largest = 0;
	struct hal_room room = { 0 };

	*out = (struct hal_mem_stats){ 0 };
	if (hal_is_orphan(dev))
		return;
	pthread_mutex_lock(&dev->lock);
	if (kind == HAL_MEM_HBM) {
		blocks = hal_heap_blocks(dev->heap);
		hal_hbm_room(dev, &room);
		largest = room.largest;
	}
	for (struct hal_host_chunk *c = dev->chunks; c && kind == HAL_MEM_HOST; c = c->next) {
		if (c->is_foreign)
			continue;
		blocks += hal_heap_blocks(c->heap);
		if (hal_heap_largest(c->heap) > largest)
			largest = hal_heap_largest(c->heap);
	}
	*out = (struct hal_mem_stats){
		.bytes_in_use = dev->used[kind], .peak_bytes = dev->peak[kind],
		.limit_bytes = room.limit,
		.largest_free_bytes = largest, .largest_alloc_bytes = dev->largest[kind],
		.n_allocs = blocks, .total_allocs = dev->total[kind],
	};
	pthread_mutex_unlock(&dev->lock);
}

void hal_mem_clear_peak(struct hal_device *dev)
{
	if (hal_is_orphan(dev))
		return;
	pthread_mutex_lock(&dev->lock);
	for (unsigned k = 0; k < 2; k++) {
		dev->peak[k] = dev->used[k];
		dev->largest[k] = 0;
	}
	pthread_mutex_unlock(&dev->lock);
}
