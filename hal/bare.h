/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HAL_BARE_H
#define HAL_BARE_H
/*
 * A device before it has a driver: registers, memory for DMA, interrupts, and nothing above.
 * For a tool that brings up a card: who uses a device opens it by hal.h, which does all of
 * DEVICE.md#bringing-it-up. Not part of libtessera.
 *
 *	struct hal_bare *bare;
 *	hal_bare_open(hal, 0, &bare, err);
 *	if (hal_bare_read(bare, HW_REG_ID) != 0x7e551234)
 *		...
 *	hal_bare_close(bare);
 *
 * Threads: one at a time for each bare device. Nothing blocks but where said.
 */
#include <stdint.h>

#include "hal/hal.h"

struct hal_bare;

/* Takes the device as hal_device_open does, and resets the function, so that it is as after
 * power on. OUT_OF_RANGE; FAILED_PRECONDITION: it is open, bare or not, here or elsewhere;
 * UNIMPLEMENTED: the kernel driver owns it. Owned by the caller; blocks. */
int hal_bare_open(struct hal *hal, unsigned index, struct hal_bare **out, struct err *err);
/* Resets the function, frees its memory and gives the device back. Blocks. NULL is fine. */
void hal_bare_close(struct hal_bare *bare);
/* A 32-bit access of BAR0, at a multiple of 4 below HW_BAR0_BYTES; others are not made: they
 * read as all ones. All ones is also what a device that is gone reads as. */
uint32_t hal_bare_read(struct hal_bare *bare, uint32_t offset);
void hal_bare_write(struct hal_bare *bare, uint32_t offset, uint32_t value);
/* Whole pages of zeroed host memory for DMA, in one piece to the device, which knows them as
 * *iova. Freed by hal_bare_close. RESOURCE_EXHAUSTED, also after eight of them. */
int hal_bare_pages(struct hal_bare *bare, uint64_t bytes, void **host, uint64_t *iova,
		   struct err *err);
/* Has interrupts of a vector counted by an eventfd, which stays the caller's; -1: no more. */
int hal_bare_irq(struct hal_bare *bare, unsigned vector, int fd, struct err *err);
/* Function reset, done when it returns. Blocks. */
int hal_bare_reset(struct hal_bare *bare, struct err *err);

#endif
