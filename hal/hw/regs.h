/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
#ifndef HW_REGS_H
#define HW_REGS_H
/* BAR0 of the T1, from regs.def (DEVICE.md#registers is the manual). */
#include <stdint.h>

enum hw_reg {
#define REG(name, offset, bytes, access, reset, meaning) \
	HW_REG_##name = offset,
#include "hal/hw/regs.def"
#undef REG
};

enum {
	HW_CTRL_ENABLE = 1u << 0, HW_CTRL_RESET = 1u << 1,
	HW_STATUS_READY = 1u << 0, HW_STATUS_FATAL = 1u << 1,
	HW_STATUS_RESETTING = 1u << 2,
};

#define HW_PCI_VENDOR 0x1234
#define HW_PCI_DEVICE 0x7e55
#define HW_PCI_CLASS 0x120000
#define HW_BAR0_BYTES 0x100000u		/* registers, MSI-X, doorbells, wake pages */
#define HW_DOORBELL_BASE 0x10000u	/* one page a queue: tail, 32 bits, at +0 */
#define HW_DOORBELL_STRIDE 0x1000u
#define HW_WAKE_BASE 0x80000u		/* one page a context: any store wakes its queues */
#define HW_WAKE_STRIDE 0x1000u
#define HW_MAX_QUEUES 64u		/* queue 0 (admin) included */
#define HW_MSIX_TABLE 0x8000u
#define HW_MSIX_PBA 0xc000u
#define HW_MAX_VECTORS 32u
#define HW_MAX_CONTEXTS 64u
#define HW_PAGE 4096u

/* What register FATAL reads; other values are for silicon. INJECT FATAL makes those from 4 on. */
enum hw_fatal {
	HW_FATAL_RINGS = 1,	/* queue 0's rings could not be reached */
	HW_FATAL_INJECTED = 3,
	HW_FATAL_THERMAL = 4,	/* the thermal trip: too hot to go on */
	HW_FATAL_FIRMWARE = 5,	/* the firmware died: its own watchdog fired */
	HW_FATAL_PCIE = 6,	/* the link to the host had an uncorrectable error */
};

static inline uint32_t hw_doorbell(unsigned queue)
{
	return HW_DOORBELL_BASE + queue * HW_DOORBELL_STRIDE;
}

static inline uint32_t hw_wake(unsigned ctx)
{
	return HW_WAKE_BASE + ctx * HW_WAKE_STRIDE;
}

/* The context in whose wake page all of a store of `bytes` at `offset` is; 0: in none. */
static inline unsigned hw_woken(uint32_t offset, uint32_t bytes)
{
	unsigned ctx = (offset - HW_WAKE_BASE) / HW_WAKE_STRIDE;

	if (offset < HW_WAKE_BASE || ctx >= HW_MAX_CONTEXTS || !bytes ||
	    bytes > HW_WAKE_STRIDE - offset % HW_WAKE_STRIDE)
		return 0;
	return ctx;
}

#endif
