/* SPDX-License-Identifier: Apache-2.0 */
/* A device before it has a driver: a bus, and memory that is mapped for it. */
#include "hal/bare.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "hal/bus.h"
#include "hal/hal_internal.h"
#include "hal/hw/regs.h"

#define MAX_PAGES 8u

struct hal_bare {
	struct hal *hal;
	struct hal_entry *entry;
	struct hal_bus *bus;	/* NULL: not open yet */
	struct bare_pages {
		void *host;
		uint64_t bytes, iova;
	} pages[MAX_PAGES];
	unsigned n_pages;
};

static int take(struct hal *hal, struct hal_bare *b, struct err *err)
{
	struct hal_entry *e = b->entry;
	int code;

	if (e->transport != &hal_transport_direct)
		return err_set(err, ERR_UNIMPLEMENTED, "%s is the kernel driver's: its registers "
			       "are not for programs. Unbind it: tessera-vfio-bind ADDRESS",
			       e->info.bus_id);
	if (e->open || e->is_bare)
		return err_set(err, ERR_FAILED_PRECONDITION, "%s is open already in this process",
			       e->info.bus_id);
	if (e->info.kind == HAL_KIND_SIM) {
		code = hal_sim_start(hal, err);
		if (code)
			return code;
		e->host.host = hal->sim;
	}
	code = e->host.bus->open(e->host.host, e->where, &b->bus, err);
	if (!code)
		code = b->bus->ops->reset(b->bus, err);
	if (!code)
		e->is_bare = true;
	return code;
}

int hal_bare_open(struct hal *hal, unsigned index, struct hal_bare **out, struct err *err)
{
	struct hal_bare *b;
	int code;

	if (hal_is_inherited(hal))
		return hal_refuse_child(err);
	if (index >= hal->n_entries)
		return err_set(err, ERR_OUT_OF_RANGE, "device %u of %u", index, hal->n_entries);
	b = calloc(1, sizeof(*b));
	if (!b)
		return err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory");
	b->hal = hal;
	b->entry = &hal->entries[index];
	pthread_mutex_lock(&hal->lock);
	code = take(hal, b, err);
	if (code && b->bus)
		b->bus->ops->close(b->bus);
	pthread_mutex_unlock(&hal->lock);
	if (code) {
		free(b);
		return code;
	}
	*out = b;
	return 0;
}

static void put_pages(struct hal_bare *b, struct bare_pages *p)
{
	if (p->iova)
		b->bus->ops->dma_unmap(b->bus, p->iova, NULL);
	if (p->host && b->bus->ops->free_pages)
		b->bus->ops->free_pages(b->bus, p->host, p->bytes);
	else if (p->host)
		munmap(p->host, p->bytes);
}

void hal_bare_close(struct hal_bare *b)
{
	if (!b)
		return;
	/* A device that did not stop must not reach memory that is somebody else's soon. */
	if (b->bus->ops->reset(b->bus, NULL) && b->bus->ops->cut)
		b->bus->ops->cut(b->bus);
	for (unsigned i = 0; i < b->n_pages; i++)
		put_pages(b, &b->pages[i]);
	pthread_mutex_lock(&b->hal->lock);
	b->bus->ops->close(b->bus);
	b->entry->is_bare = false;
	pthread_mutex_unlock(&b->hal->lock);
	free(b);
}

static bool is_register(uint32_t offset)
{
	return offset % 4 == 0 && offset < HW_BAR0_BYTES;
}

uint32_t hal_bare_read(struct hal_bare *b, uint32_t offset)
{
	return is_register(offset) ? b->bus->ops->read(b->bus, offset) : 0xffffffffu;
}

void hal_bare_write(struct hal_bare *b, uint32_t offset, uint32_t value)
{
	/* What was written to memory is there before what tells of it. */
	__atomic_thread_fence(__ATOMIC_RELEASE);
	if (is_register(offset))
		b->bus->ops->write(b->bus, offset, value);
}

static int get_pages(struct hal_bare *b, struct bare_pages *p, struct err *err)
{
	if (b->bus->ops->pages)
		return b->bus->ops->pages(b->bus, &p->bytes, &p->host, err);
	p->host = mmap(NULL, p->bytes, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (p->host == MAP_FAILED) {
		p->host = NULL;
		return err_sys(err, errno, "%llu bytes for DMA", (unsigned long long)p->bytes);
	}
	madvise(p->host, p->bytes, MADV_DONTFORK);
	return 0;
}

int hal_bare_pages(struct hal_bare *b, uint64_t bytes, void **host, uint64_t *iova,
		   struct err *err)
{
	struct bare_pages p = { .bytes = (bytes + HW_PAGE - 1) / HW_PAGE * HW_PAGE };
	uint64_t at, n = bytes;
	int code;

	if (b->n_pages == MAX_PAGES || !bytes || p.bytes < bytes)
		return err_set(err, ERR_RESOURCE_EXHAUSTED, "%llu bytes for DMA: a bare device has "
			       "%u ranges at most, none of them empty", (unsigned long long)bytes,
			       MAX_PAGES);
	code = get_pages(b, &p, err);
	if (!code)
		code = b->bus->ops->dma_map(b->bus, p.host, p.bytes, &p.iova, err);
	at = p.iova;
	if (!code && b->bus->ops->address)
		at = b->bus->ops->address(b->bus, p.iova, 0, &n);
	if (!code && n < bytes)
		code = err_set(err, ERR_RESOURCE_EXHAUSTED, "%llu bytes for DMA are not in one "
			       "piece without an IOMMU", (unsigned long long)bytes);
	if (code) {
		put_pages(b, &p);
		return code;
	}
	memset(p.host, 0, p.bytes);
	b->pages[b->n_pages++] = p;
	*host = p.host;
	*iova = at;
	return 0;
}

int hal_bare_irq(struct hal_bare *b, unsigned vector, int fd, struct err *err)
{
	return b->bus->ops->irq_fd(b->bus, vector, fd, err);
}

int hal_bare_reset(struct hal_bare *b, struct err *err)
{
	return b->bus->ops->reset(b->bus, err);
}
