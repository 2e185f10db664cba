/* SPDX-License-Identifier: Apache-2.0 */
/*
 * In a guest: QEMU's teaching device, which nobody here wrote, through the HAL's VFIO
 * layer: identity, registers, DMA both ways, interrupts, errors.
 *
 *	edu ADDRESS
 *
 * Prints a line for each check; exit status 0 if all hold.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "hal/bus/vfio.h"

enum {
	ID = 0x00, LIVENESS = 0x04, FACTORIAL = 0x08, STATUS = 0x20, IRQ_STATUS = 0x24,
	IRQ_RAISE = 0x60, IRQ_ACK = 0x64, DMA_FROM = 0x80, DMA_TO = 0x88, DMA_BYTES = 0x90,
	DMA_COMMAND = 0x98,
	BUSY = 1, RAISE_WHEN_DONE = 0x80,
	START = 1, TO_MEMORY = 2, DMA_IRQ = 4, DMA_DONE = 0x100,
};

#define BUFFER 0x40000u		/* the device's own memory, 4096 bytes */
#define WAIT_MS 20000

static struct vfio *v;
static struct vfio_domain *domains;
static uint8_t *bar, *page;
static uint64_t iova;
static int irq;

static void check(int ok, const char *what)
{
	printf("edu: %s: %s\n", what, ok ? "ok" : "WRONG");
	if (!ok)
		exit(1);
}

static void must(int code, const struct err *err, const char *what)
{
	if (!code)
		return;
	printf("edu: %s: %s: %s\n", what, err_name(code), err->msg);
	exit(1);
}

static uint32_t get(unsigned at)
{
	return *(volatile uint32_t *)(bar + at);
}

static void put(unsigned at, uint32_t value)
{
	*(volatile uint32_t *)(bar + at) = value;
}

static void put64(unsigned at, uint64_t value)
{
	*(volatile uint64_t *)(bar + at) = value;
}

/* One interrupt, acknowledged; its status. */
static uint32_t take_irq(void)
{
	struct pollfd p = { .fd = irq, .events = POLLIN };
	uint64_t count = 0;
	uint32_t status;

	check(poll(&p, 1, WAIT_MS) == 1 && read(irq, &count, sizeof(count)) == sizeof(count),
	      "an interrupt comes");
	status = get(IRQ_STATUS);
	put(IRQ_ACK, status);
	return status;
}

static void transfer(uint64_t from, uint64_t to, uint32_t bytes, uint32_t direction)
{
	put64(DMA_FROM, from);
	put64(DMA_TO, to);
	put64(DMA_BYTES, bytes);
	put64(DMA_COMMAND, START | direction | DMA_IRQ);
	check(take_irq() == DMA_DONE, direction ? "DMA to memory is done" :
						  "DMA from memory is done");
}

static void check_dma(void)
{
	enum { N = 2048 };	/* what every version of the device can do at once */

	for (unsigned i = 0; i < N; i++)
		page[i] = (uint8_t)(i * 13 + i / 256);
	memset(page + N, 0xee, VFIO_PAGE - N);
	transfer(iova, BUFFER, N, 0);
	transfer(BUFFER, iova + N, N, TO_MEMORY);
	check(!memcmp(page, page + N, N), "bytes come back as they went");
	transfer(BUFFER + 1024, iova + VFIO_PAGE, N / 2, TO_MEMORY);
	check(!memcmp(page + 1024, page + VFIO_PAGE, N / 2), "from the middle to the next page");
}

static void check_errors(void)
{
	struct vfio *second;
	uint64_t other;
	struct err err;

	check(vfio_dma_map(v, page + 1, VFIO_PAGE, &other, &err) == ERR_INVALID_ARGUMENT,
	      "half pages are refused");
	check(vfio_dma_unmap(v, iova + VFIO_PAGE, &err) == ERR_NOT_FOUND,
	      "the middle of a mapping is refused");
	check(vfio_reset(v, &err) == ERR_FAILED_PRECONDITION && strstr(err.msg, "reset_method"),
	      "a device without reset says so");
	check(vfio_irq_fd(v, VFIO_MSI, 1, irq, &err) == ERR_OUT_OF_RANGE, "vector 1 of 1");
	check(vfio_open(&domains, v->place.bdf, VFIO_WITH_IOMMU, &second, &err) ==
	      ERR_FAILED_PRECONDITION, "a second opening is refused");
	printf("edu: it says: %s\n", err.msg);
	check(strstr(err.msg, "this process") != NULL, "and names this process");
	check(vfio_open(&domains, "ffff:1f:1f.7", VFIO_WITH_IOMMU, &second, &err) == ERR_NOT_FOUND,
	      "no such function");
}

int main(int argc, char **argv)
{
	uint64_t bytes, offset;
	uint32_t config = 0;
	struct err err;
	void *p;

	if (argc != 2) {
		fputs("usage: edu ADDRESS\n", stderr);
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	must(vfio_open(&domains, argv[1], VFIO_WITH_IOMMU, &v, &err), &err, "open");
	printf("edu: by %s\n", v->iommu->name);
	must(vfio_config_read(v, 0, &config, 4, &err), &err, "configuration space");
	check(config == 0x11e81234, "it is the device");
	must(vfio_enable(v, &err), &err, "bus mastering");
	must(vfio_map_bar(v, VFIO_BAR0, &p, &bytes, &offset, &err), &err, "BAR0");
	check(p && bytes == 1 << 20, "BAR0 is mapped");
	bar = p;
	check(get(ID) == 0x010000ed, "identity");
	put(LIVENESS, 0x12345678);
	check(get(LIVENESS) == ~0x12345678u, "liveness");
	irq = eventfd(0, EFD_CLOEXEC);
	must(vfio_irq_fd(v, VFIO_MSI, 0, irq, &err), &err, "MSI");
	put(IRQ_RAISE, 0x55);
	check(take_irq() == 0x55, "a raised interrupt");
	put(STATUS, RAISE_WHEN_DONE);
	put(FACTORIAL, 12);
	check(take_irq() == 1 && !(get(STATUS) & BUSY), "the factorial is done");
	check(get(FACTORIAL) == 479001600, "12!");
	page = mmap(NULL, 4 * VFIO_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		    -1, 0);
	check(page != MAP_FAILED, "memory");
	must(vfio_dma_map(v, page, 4 * VFIO_PAGE, &iova, &err), &err, "DMA map");
	check(iova + 4 * VFIO_PAGE < 1 << 28, "an address in the reach of the device");
	check_dma();
	check_errors();
	must(vfio_dma_unmap(v, iova, &err), &err, "DMA unmap");
	must(vfio_irq_fd(v, VFIO_MSI, 0, -1, &err), &err, "detaching MSI");
	put(IRQ_RAISE, 1);
	put(IRQ_ACK, 1);
	check(poll(&(struct pollfd){ .fd = irq, .events = POLLIN }, 1, 200) == 0,
	      "a detached interrupt stays away");
	v->sys->munmap(bar, bytes);
	vfio_close(v);
	must(vfio_open(&domains, argv[1], VFIO_WITH_IOMMU, &v, &err), &err, "opening again");
	vfio_close(v);
	puts("edu: PASSED");
	return 0;
}
