/* SPDX-License-Identifier: Apache-2.0 */
/*
 * In a guest: a T1 through the kernel's VFIO (type 1), as a driver in user space would use
 * it. Static, needs nothing but the kernel.
 *
 *	vfio GROUP ADDRESS	for instance: vfio 3 0000:01:00.0
 *
 * Prints what it finds and "vfio: PASSED" at the end.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/vfio.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "hal/hw/desc.h"
#include "hal/hw/regs.h"

#define IOVA 0x10000000ull
#define BYTES (2u << 20)
#define MANY ((size_t)16 << 20)	/* in pages of 4 KiB, each its own mapping */
#define VECTOR 5u

struct function {
	int container, group, device, irq;
	uint8_t *dma;
	volatile uint8_t *bar0;
	uint8_t *hbm;
	uint64_t hbm_bytes, config;
	uint32_t tail;
};

static void check(int ok, const char *what)
{
	if (ok)
		return;
	printf("vfio: FAILED: %s: %s\n", what, strerror(errno));
	exit(1);
}

static uint32_t get(const struct function *f, uint32_t offset)
{
	return *(volatile uint32_t *)(f->bar0 + offset);
}

static void set(const struct function *f, uint32_t offset, uint32_t value)
{
	*(volatile uint32_t *)(f->bar0 + offset) = value;
}

static void *map_region(struct function *f, unsigned index, uint64_t *bytes,
			uint64_t *offset)
{
	struct vfio_region_info r = { .argsz = sizeof(r), .index = index };
	void *p = NULL;

	check(!ioctl(f->device, VFIO_DEVICE_GET_REGION_INFO, &r), "region info");
	*bytes = r.size;
	*offset = r.offset;
	if (index != VFIO_PCI_CONFIG_REGION_INDEX)
		p = mmap(NULL, r.size, PROT_READ | PROT_WRITE, MAP_SHARED, f->device,
			 (off_t)r.offset);
	check(p != MAP_FAILED, "mapping a BAR");
	return p;
}

static void open_function(struct function *f, const char *group, const char *address)
{
	uint64_t bytes, offset;
	uint16_t command = 6;	/* memory and bus master */
	char path[64];

	snprintf(path, sizeof(path), "/dev/vfio/%s", group);
	f->container = open("/dev/vfio/vfio", O_RDWR);
	f->group = open(path, O_RDWR);
	check(f->container >= 0 && f->group >= 0, path);
	check(!ioctl(f->group, VFIO_GROUP_SET_CONTAINER, &f->container), "container");
	check(!ioctl(f->container, VFIO_SET_IOMMU, VFIO_TYPE1v2_IOMMU), "type 1");
	f->device = ioctl(f->group, VFIO_GROUP_GET_DEVICE_FD, address);
	check(f->device >= 0, address);
	f->bar0 = map_region(f, 0, &bytes, &offset);
	check(bytes == HW_BAR0_BYTES, "the size of BAR0");
	f->hbm = map_region(f, 2, &f->hbm_bytes, &offset);
	map_region(f, VFIO_PCI_CONFIG_REGION_INDEX, &bytes, &f->config);
	check(pwrite(f->device, &command, 2, (off_t)f->config + 4) == 2, "command register");
}

static void *map_dma(struct function *f, uint64_t iova, size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct vfio_iommu_type1_dma_map m = { .argsz = sizeof(m), .iova = iova, .size = bytes,
		.flags = VFIO_DMA_MAP_FLAG_READ | VFIO_DMA_MAP_FLAG_WRITE,
		.vaddr = (uintptr_t)p };

	check(p != MAP_FAILED, "memory");
	madvise(p, bytes, MADV_NOHUGEPAGE);
	memset(p, 0, bytes);
	check(!ioctl(f->container, VFIO_IOMMU_MAP_DMA, &m), "DMA map");
	return p;
}

static void unmap_dma(struct function *f, uint64_t iova, size_t bytes)
{
	struct vfio_iommu_type1_dma_unmap u = { .argsz = sizeof(u), .iova = iova,
						.size = bytes };

	check(!ioctl(f->container, VFIO_IOMMU_UNMAP_DMA, &u), "DMA unmap");
	check(u.size == bytes, "all of it was unmapped");
}

/* One vector more each time, as drivers that grow do; the one that counts is VECTOR. */
static void take_interrupts(struct function *f)
{
	union {
		struct vfio_irq_set set;
		char bytes[sizeof(struct vfio_irq_set) + sizeof(int)];
	} u;

	for (unsigned i = 0; i <= VECTOR; i++) {
		int fd = eventfd(0, EFD_NONBLOCK);

		u.set = (struct vfio_irq_set){ .argsz = sizeof(u.bytes), .start = i, .count = 1,
			.index = VFIO_PCI_MSIX_IRQ_INDEX,
			.flags = VFIO_IRQ_SET_DATA_EVENTFD | VFIO_IRQ_SET_ACTION_TRIGGER };
		memcpy(u.set.data, &fd, sizeof(fd));
		check(fd >= 0 && !ioctl(f->device, VFIO_DEVICE_SET_IRQS, &u.set), "MSI-X");
		f->irq = fd;
	}
}

static void bring_up(struct function *f)
{
	check(get(f, HW_REG_ID) == (HW_PCI_VENDOR | (uint32_t)HW_PCI_DEVICE << 16), "ID");
	memset(f->dma, 0, BYTES);
	f->tail = 0;
	set(f, HW_REG_ASQ, (uint32_t)IOVA);
	set(f, HW_REG_ACQ, (uint32_t)IOVA + 4096);
	set(f, HW_REG_AQSIZE, 16);
	set(f, HW_REG_AVECTOR, VECTOR);
	set(f, HW_REG_CTRL, HW_CTRL_ENABLE);
	check(get(f, HW_REG_STATUS) == HW_STATUS_READY, "READY");
}

static void identify(struct function *f)
{
	struct pollfd p = { .fd = f->irq, .events = POLLIN };
	struct hw_identify *id = (void *)(f->dma + 8192);
	uint64_t count;

	memset(id, 0, sizeof(*id));
	((struct hw_sqe *)f->dma)[f->tail++ % 16] = (struct hw_sqe){ .op = HW_IDENTIFY,
		.flags = HW_IRQ, .u.admin = { IOVA + 8192, 0, 4096 } };
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	set(f, hw_doorbell(0), f->tail);
	check(poll(&p, 1, 20000) == 1 && read(f->irq, &count, 8) == 8, "an interrupt");
	check(id->magic == HW_IDENTIFY_MAGIC && id->hbm_bytes == f->hbm_bytes, "IDENTIFY");
}

int main(int argc, char **argv)
{
	struct function f = { 0 };

	if (argc != 3) {
		fputs("usage: vfio GROUP ADDRESS\n", stderr);
		return 2;
	}
	setvbuf(stdout, NULL, _IONBF, 0);
	open_function(&f, argv[1], argv[2]);
	map_dma(&f, IOVA << 4, MANY);
	f.dma = map_dma(&f, IOVA, BYTES);
	take_interrupts(&f);
	for (int round = 0; round < 3; round++) {
		bring_up(&f);
		for (int i = 0; i < 20; i++)
			identify(&f);
		check(!ioctl(f.device, VFIO_DEVICE_RESET), "function reset");
		check(get(&f, HW_REG_STATUS) == 0 && get(&f, HW_REG_ASQ) == 0, "reset state");
	}
	memset(f.hbm + f.hbm_bytes - 8192, 0x5a, 8192);
	check(f.hbm[f.hbm_bytes - 1] == 0x5a, "HBM");
	unmap_dma(&f, IOVA << 4, MANY);
	unmap_dma(&f, IOVA, BYTES);
	/* Without its memory the device refuses to start. */
	set(&f, HW_REG_CTRL, HW_CTRL_ENABLE);
	check(get(&f, HW_REG_STATUS) == 0, "rings that are gone");
	printf("vfio: PASSED\n");
	return 0;
}
