/* SPDX-License-Identifier: Apache-2.0 */
/* The model in our own process as a bus: an iova is the host address itself. */
#include <stdlib.h>

#include "hal/bus.h"
#include "hal/sim/sim.h"

struct sim_bus {
	struct hal_bus bus;
	struct sim_device *dev;
};

static struct sim_device *device(struct hal_bus *bus)
{
	return ((struct sim_bus *)bus)->dev;
}

static int open_bus(void *host, const char *where, struct hal_bus **out, struct err *err)
{
	struct sim_bus *b = calloc(1, sizeof(*b));

	if (!b)
		return err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory");
	b->bus.ops = &hal_bus_sim;
	b->dev = sim_device(host, (unsigned)strtoul(where, NULL, 10));
	*out = &b->bus;
	return 0;
}

static void close_bus(struct hal_bus *bus)
{
	free(bus);
}

static uint32_t read_register(struct hal_bus *bus, uint32_t offset)
{
	return (uint32_t)sim_mmio_read(device(bus), offset, 4);
}

static void write_register(struct hal_bus *bus, uint32_t offset, uint32_t value)
{
	sim_mmio_write(device(bus), offset, 4, value);
}

static void *map_hbm(struct hal_bus *bus, uint64_t *bytes)
{
	/* A model that checks has to see what the host writes. */
	return sim_is_checked(device(bus)) ? NULL : sim_hbm(device(bus), bytes);
}

static void discard(struct hal_bus *bus, uint64_t offset, uint64_t bytes)
{
	sim_discard(device(bus), offset, bytes);
}

static int dma_map(struct hal_bus *bus, void *host, uint64_t bytes, uint64_t *iova,
		   struct err *err)
{
	*iova = (uintptr_t)host;
	return sim_dma_map(device(bus), *iova, host, bytes, true, err);
}

static int dma_unmap(struct hal_bus *bus, uint64_t iova, struct err *err)
{
	return sim_dma_unmap(device(bus), iova, err);
}

static int irq_fd(struct hal_bus *bus, unsigned vector, int fd, struct err *err)
{
	return sim_irq_fd(device(bus), vector, fd, err);
}

static int reset(struct hal_bus *bus, struct err *err)
{
	(void)err;
	sim_flr(device(bus));
	return 0;
}

const struct hal_bus_ops hal_bus_sim = {
	.open = open_bus, .close = close_bus, .read = read_register,
	.write = write_register, .hbm = map_hbm, .discard = discard, .dma_map = dma_map,
	.dma_unmap = dma_unmap, .irq_fd = irq_fd, .reset = reset,
};
