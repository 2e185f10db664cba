/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PCI configuration space of the function: a type 0 header, then power management,
 * MSI-X and PCI Express with function-level reset. Writes go through a mask for each byte.
 * A monitor such as QEMU keeps addresses and the vector table itself and tells us
 * of its writes all the same; only the command register and the reset bit mean
 * something here.
 */
#include <string.h>

#include "tools/tessera-sim/server.h"

enum { COMMAND = 0x04, STATUS = 0x06, BAR0 = 0x10, BAR2 = 0x18, CAP_POINTER = 0x34 };
enum { PM = 0x40, MSIX = 0x50, PCIE = 0x60 };
enum { COMMAND_MASTER = 1 << 2, STATUS_HAS_CAPS = 1 << 4 };
enum { DEVCTL = PCIE + 8, DEVCTL_FLR = 1 << 15 };

static void set(struct config *c, unsigned at, unsigned bytes, uint64_t value,
		uint64_t writable)
{
	for (unsigned i = 0; i < bytes; i++) {
		c->bytes[at + i] = (uint8_t)(value >> 8 * i);
		c->writable[at + i] = (uint8_t)(writable >> 8 * i);
	}
}

static void set_express(struct config *c)
{
	set(c, PCIE, 2, 0x10, 0);			/* id; the last capability */
	set(c, PCIE + 0x02, 2, 0x0002, 0);		/* version 2, endpoint */
	set(c, PCIE + 0x04, 4, 1u << 28 | 1u << 15 | 1u << 5 | 1, 0); /* FLR, RBE */
	set(c, DEVCTL, 2, 0x2810, 0x7fff);
	c->cleared[PCIE + 0x0a] = 0x0f;			/* device status */
	set(c, PCIE + 0x0c, 4, 4 | 16 << 4, 0);		/* 16 GT/s, 16 lanes */
	set(c, PCIE + 0x10, 2, 0, 0x03eb);
	set(c, PCIE + 0x12, 2, 4 | 16 << 4, 0);
	set(c, PCIE + 0x28, 2, 0, 0x041f);
	set(c, PCIE + 0x2c, 4, 0x1e, 0);		/* speeds up to 16 GT/s */
	set(c, PCIE + 0x30, 2, 4, 0x0f);
}

void config_reset(struct config *c, uint64_t hbm_bytes)
{
	memset(c, 0, sizeof(*c));
	set(c, 0x00, 2, HW_PCI_VENDOR, 0);
	set(c, 0x02, 2, HW_PCI_DEVICE, 0);
	set(c, COMMAND, 2, 0, 0x0546);		/* memory, master, parity, SERR, no INTx */
	set(c, STATUS, 2, STATUS_HAS_CAPS, 0);
	c->cleared[STATUS + 1] = 0xf9;
	set(c, 0x08, 4, (uint32_t)HW_PCI_CLASS << 8 | 1, 0);
	set(c, 0x0c, 1, 0, 0xff);
	set(c, BAR0, 4, 0, ~(uint64_t)(HW_BAR0_BYTES - 1));
	set(c, BAR2, 8, 0xc, ~(hbm_bytes - 1));	/* 64 bit, prefetchable */
	set(c, 0x2c, 2, HW_PCI_VENDOR, 0);
	set(c, 0x2e, 2, HW_PCI_DEVICE, 0);
	set(c, CAP_POINTER, 1, PM, 0);
	set(c, 0x3c, 1, 0, 0xff);		/* line; the pin stays 0: no INTx */
	set(c, PM, 2, 0x01 | MSIX << 8, 0);
	set(c, PM + 2, 2, 0x0003, 0);
	set(c, PM + 4, 2, 1 << 3, 0x0003);	/* D3 to D0 does not reset */
	set(c, MSIX, 2, 0x11 | PCIE << 8, 0);
	set(c, MSIX + 2, 2, HW_MAX_VECTORS - 1, 0xc000);
	set(c, MSIX + 4, 4, HW_MSIX_TABLE, 0);	/* in BAR0 */
	set(c, MSIX + 8, 4, HW_MSIX_PBA, 0);
	set_express(c);
}

void config_read(const struct config *c, uint32_t offset, void *to, uint32_t n)
{
	uint8_t *p = to;

	for (uint32_t i = 0; i < n; i++)
		p[i] = offset + i < sizeof(c->bytes) ? c->bytes[offset + i] : 0;
}

unsigned config_write(struct config *c, uint32_t offset, const void *from, uint32_t n)
{
	const uint8_t *p = from;
	unsigned asks = 0;

	for (uint32_t i = 0; i < n && offset + i < sizeof(c->bytes); i++) {
		uint32_t at = offset + i;
		uint8_t mask = c->writable[at];

		c->bytes[at] = (uint8_t)((c->bytes[at] & ~mask) | (p[i] & mask));
		c->bytes[at] &= (uint8_t)~(p[i] & c->cleared[at]);
		if (at == DEVCTL + 1 && p[i] & DEVCTL_FLR >> 8)
			asks |= CONFIG_FLR;
	}
	return asks;
}

bool config_is_master(const struct config *c)
{
	return c->bytes[COMMAND] & COMMAND_MASTER;
}
