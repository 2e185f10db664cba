/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A T1 through the kernel's VFIO, as a bus. A register is a load or store of mapped BAR0,
 * or where the kernel does not map it a read or write of the device file. The MSI-X table
 * is the kernel's: what the driver would write there is dropped.
 */
#define LOG_TAG "hal/vfio"
#include <stdlib.h>
#include <string.h>

#include "hal/base/log.h"
#include "hal/bus.h"
#include "hal/bus/vfio.h"
#include "hal/hw/regs.h"

#define MSIX_ENTRY 16u
#define CAP_IS_MODEL (1u << 16)	/* in the upper half */

static const struct hal_bus_ops bare_ops;

struct vfio_bus {
	struct hal_bus bus;
	struct vfio *v;
	uint8_t *bar0, *hbm;	/* NULL: not mapped */
	uint64_t bar0_bytes, bar0_offset, hbm_bytes, hbm_offset;
};

static struct vfio_bus *of(struct hal_bus *bus)
{
	return (struct vfio_bus *)bus;
}

static uint32_t read_register(struct hal_bus *bus, uint32_t offset)
{
	struct vfio_bus *b = of(bus);
	uint32_t value;

	if (b->bar0)
		return *(volatile uint32_t *)(b->bar0 + offset);
	/* All ones is what a bus gives for a device that is gone. */
	return b->v->sys->pread(b->v->device, &value, sizeof(value),
				(off_t)(b->bar0_offset + offset)) == sizeof(value) ?
		value : 0xffffffffu;
}

static void write_register(struct hal_bus *bus, uint32_t offset, uint32_t value)
{
	struct vfio_bus *b = of(bus);

	if (offset >= HW_MSIX_TABLE && offset < HW_MSIX_TABLE + HW_MAX_VECTORS * MSIX_ENTRY)
		return;
	/* Uncached stores stay behind all earlier ones; the compiler must, too. */
	atomic_thread_fence(memory_order_release);
	if (b->bar0)
		*(volatile uint32_t *)(b->bar0 + offset) = value;
	else if (b->v->sys->pwrite(b->v->device, &value, sizeof(value),
				   (off_t)(b->bar0_offset + offset)) != sizeof(value))
		vfio_lose(b->v, false, "the kernel did not write a register (dmesg may say "
			  "why): reset the device");
}

static void close_bus(struct hal_bus *bus)
{
	struct vfio_bus *b = of(bus);

	if (b->bar0)
		b->v->sys->munmap(b->bar0, b->bar0_bytes);
	if (b->hbm)
		b->v->sys->munmap(b->hbm, b->hbm_bytes);
	vfio_close(b->v);
	free(b);
}

static int check_identity(struct vfio_bus *b, struct err *err)
{
	uint32_t id = 0;
	int code = vfio_config_read(b->v, 0, &id, sizeof(id), err);

	if (!code && id != (HW_PCI_VENDOR | (uint32_t)HW_PCI_DEVICE << 16))
		code = err_set(err, ERR_FAILED_PRECONDITION, "%s is %04x:%04x, not a T1 "
			       "(%04x:%04x)", b->v->place.bdf, id & 0xffff, id >> 16,
			       HW_PCI_VENDOR, HW_PCI_DEVICE);
	if (!code && !b->v->can_reset)
		code = err_set(err, ERR_FAILED_PRECONDITION, "the kernel knows no way to reset "
			       "%s: its function-level reset is off (cat /sys/bus/pci/devices/%s/"
			       "reset_method)", b->v->place.bdf, b->v->place.bdf);
	return code;
}

static int map_bars(struct vfio_bus *b, struct err *err)
{
	void *p;
	int code = vfio_map_bar(b->v, VFIO_BAR0, &p, &b->bar0_bytes, &b->bar0_offset, err);

	if (code)
		return code;
	b->bar0 = p;
	if (b->bar0_bytes < HW_BAR0_BYTES)
		return err_set(err, ERR_FAILED_PRECONDITION, "BAR0 of %s has %llu bytes, a T1's "
			       "%u: did the firmware give it its place? (dmesg, \"BAR 0\"; "
			       "pci=realloc)", b->v->place.bdf,
			       (unsigned long long)b->bar0_bytes, HW_BAR0_BYTES);
	if (!b->bar0)
		log_info("%s: registers go by system calls", b->v->place.bdf);
	/* The CPU's view is uncached: good for a model's memory, too slow for copies to a
	 * real device, which fetches them itself. */
	if (!(read_register(&b->bus, HW_REG_CAP + 4) & CAP_IS_MODEL))
		return 0;
	code = vfio_map_bar(b->v, VFIO_BAR2, &p, &b->hbm_bytes, &b->hbm_offset, err);
	if (!code)
		b->hbm = p;
	return code;
}

static int open_bus(void *host, const char *where, struct hal_bus **out, struct err *err)
{
	struct vfio_bus *b = calloc(1, sizeof(*b));
	bool bare = !strncmp(where, "noiommu:", 8);
	int code;

	if (!b)
		return err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory");
	b->bus.ops = bare ? &bare_ops : &hal_bus_vfio;
	code = vfio_open(host, bare ? where + 8 : where,
			 bare ? VFIO_WITHOUT_IOMMU : VFIO_WITH_IOMMU, &b->v, err);
	if (code) {
		free(b);
		return code;
	}
	code = check_identity(b, err);
	if (!code)
		code = vfio_enable(b->v, err);
	if (!code)
		code = map_bars(b, err);
	if (code) {
		close_bus(&b->bus);
		return code;
	}
	*out = &b->bus;
	return 0;
}

static void *hbm(struct hal_bus *bus, uint64_t *bytes)
{
	*bytes = of(bus)->hbm_bytes;
	return of(bus)->hbm;
}

static int dma_map(struct hal_bus *bus, void *host, uint64_t bytes, uint64_t *iova,
		   struct err *err)
{
	return vfio_dma_map(of(bus)->v, host, bytes, iova, err);
}

static int dma_unmap(struct hal_bus *bus, uint64_t iova, struct err *err)
{
	return vfio_dma_unmap(of(bus)->v, iova, err);
}

static int pages(struct hal_bus *bus, uint64_t *bytes, void **out, struct err *err)
{
	return vfio_bare_pages(of(bus)->v, bytes, out, err);
}

static void free_pages(struct hal_bus *bus, void *p, uint64_t bytes)
{
	vfio_bare_free(of(bus)->v, p, bytes);
}

static uint64_t address(struct hal_bus *bus, uint64_t iova, uint64_t offset, uint64_t *bytes)
{
	return vfio_bare_address(of(bus)->v, iova, offset, bytes);
}

static void cut(struct hal_bus *bus)
{
	vfio_cut(of(bus)->v, "nobody can say that it has let go of memory that is freed, so it was "
		 "cut off from all: reset the device");
}

static int irq_fd(struct hal_bus *bus, unsigned vector, int fd, struct err *err)
{
	return vfio_irq_fd(of(bus)->v, VFIO_MSIX, vector, fd, err);
}

static int reset(struct hal_bus *bus, struct err *err)
{
	return vfio_reset(of(bus)->v, err);
}

static int health(struct hal_bus *bus, struct err *err)
{
	return vfio_health(of(bus)->v, err);
}

const struct hal_bus_ops hal_bus_vfio = {
	.open = open_bus, .close = close_bus, .read = read_register,
	.write = write_register, .hbm = hbm, .dma_map = dma_map,
	.dma_unmap = dma_unmap, .irq_fd = irq_fd, .reset = reset, .health = health,
};

static const struct hal_bus_ops bare_ops = {
	.open = open_bus, .close = close_bus, .read = read_register,
	.write = write_register, .hbm = hbm, .dma_map = dma_map,
	.dma_unmap = dma_unmap, .irq_fd = irq_fd, .reset = reset, .health = health,
	.pages = pages, .free_pages = free_pages, .address = address, .cut = cut,
};
