/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HAL_BUS_H
#define HAL_BUS_H
/*
 * How registers and memory are touched: one table for each way to reach a device
 * that we own ourselves (transport/direct.c drives it). Private to hal/.
 *
 * A bus knows nothing of queues or programs. Calls come from any thread; close comes
 * last and alone.
 */
#include <stdbool.h>
#include <stdint.h>

#include "hal/base/err.h"

struct hal_bus;

struct hal_bus_ops {
	/* Opens the device that `where` names, exclusively. FAILED_PRECONDITION if
	 * somebody else holds it (and says who, where that can be known). */
	int (*open)(void *host, const char *where, struct hal_bus **out, struct err *err);
	void (*close)(struct hal_bus *bus);
	/* A 32-bit register or doorbell of BAR0, ordered after earlier stores. */
	uint32_t (*read)(struct hal_bus *bus, uint32_t offset);
	void (*write)(struct hal_bus *bus, uint32_t offset, uint32_t value);
	/* BAR2 in our address space, or NULL where it is not worth using: then copies
	 * go through staging memory. */
	void *(*hbm)(struct hal_bus *bus, uint64_t *bytes);
	/* This part of HBM was allocated anew: what it holds is nobody's. For a model that
	 * checks; NULL: nobody wants to know. */
	void (*discard)(struct hal_bus *bus, uint64_t offset, uint64_t bytes);
	/* Lets the device reach page-aligned host memory; gives its iova. With `address`
	 * (below), the iova names the mapping and stands in no request. */
	int (*dma_map)(struct hal_bus *bus, void *host, uint64_t bytes, uint64_t *iova,
		       struct err *err);
	int (*dma_unmap)(struct hal_bus *bus, uint64_t iova, struct err *err);
	/* An eventfd that counts interrupts of `vector`; -1 detaches. */
	int (*irq_fd)(struct hal_bus *bus, unsigned vector, int fd, struct err *err);
	/* Function reset, done when it returns. */
	int (*reset)(struct hal_bus *bus, struct err *err);
	/* Without an IOMMU, else NULL: dma_map takes these pages only (and such like them)
	 * and can't keep the device from them after dma_unmap.
	 *
	 * pages: *bytes is rounded up to whole pages; back by free_pages. */
	int (*pages)(struct hal_bus *bus, uint64_t *bytes, void **out, struct err *err);
	void (*free_pages)(struct hal_bus *bus, void *pages, uint64_t bytes);
	/* Where byte `offset` of a mapping is to the device, and how many bytes are in one
	 * piece from there on (0: no such mapping). */
	uint64_t (*address)(struct hal_bus *bus, uint64_t iova, uint64_t offset,
			    uint64_t *bytes);
	/* Ends the device's access to all memory, until a reset; health says so. For a
	 * device that does not let go of memory. */
	void (*cut)(struct hal_bus *bus);
	/* 0, or why the device can't be reached any more (reads give all ones then). Does
	 * not block. NULL: the bus alone does not know. */
	int (*health)(struct hal_bus *bus, struct err *err);
};

struct hal_bus {
	const struct hal_bus_ops *ops;
};

extern const struct hal_bus_ops hal_bus_sim;	/* host: struct sim; where: its index */
extern const struct hal_bus_ops hal_bus_vfio_user;	/* host: NULL; where: a socket's path */
/* host: struct vfio_domain **, a list that all functions of a HAL share (bus/vfio.h); where: a PCI
 * address, after "noiommu:" to do without an IOMMU. Opened and closed one at a time. */
extern const struct hal_bus_ops hal_bus_vfio;

#endif
