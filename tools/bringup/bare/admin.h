/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BRINGUP_ADMIN_H
#define BRINGUP_ADMIN_H
/* Queue 0 by hand, on a device that has no driver (DEVICE.md#bringing-it-up). Private to
 * tools/bringup. */
#include "hal/hw/desc.h"
#include "tools/bringup/context.h"

#define BRINGUP_ENTRIES 16u	/* of its rings */

struct admin {
	struct hw_sqe *sq;
	struct hw_cqe *cq;
	uint8_t *args;		/* a page for what requests point to */
	uint64_t args_iova;
	uint32_t tail;
};

uint64_t bringup_read64(struct bringup *b, uint32_t offset);
/* Waits until a register has none of the bits, 20 s at most; gives those that it has then. */
uint32_t bringup_settle(struct bringup *b, uint32_t offset, uint32_t bits);
/* Tells a disabled device where queue 0's rings are. */
void bringup_admin_rings(struct bringup *b, uint64_t sq_iova, uint64_t cq_iova, uint32_t entries);
/* Opens the device anew, with empty rings for queue 0, and enables it. The memory is the
 * device's until it is closed. */
enum bringup_result bringup_admin_start(struct bringup *b, struct admin *a, uint32_t vector);
/* Clears enable, and waits until what ran has stopped: a device may take its time (RESETTING). */
enum bringup_result bringup_admin_disable(struct bringup *b);
/* As bringup_admin_start, for a device that was disabled, with the rings that it has. */
enum bringup_result bringup_admin_enable(struct bringup *b, struct admin *a, uint32_t vector);
/* One request and its completion, whatever its status. The tag is filled in here. Fails where
 * none comes in time, or one with another's tag or head. */
enum bringup_result bringup_admin_request(struct bringup *b, struct admin *a, struct hw_sqe sqe,
					  struct hw_cqe *out);
/* One that must be granted, about args; value, unless NULL, gets the completion's. */
enum bringup_result bringup_admin_grant(struct bringup *b, struct admin *a, struct hw_sqe sqe,
					uint64_t *value);
/* The same of an op and flags alone. */
enum bringup_result bringup_admin_ask(struct bringup *b, struct admin *a, uint8_t op,
				      uint8_t flags);
/* A doorbell that makes no sense. False: BADACC does not count it, and it alone, in time. */
bool bringup_ring_badly(struct bringup *b, unsigned queue, uint32_t tail);
/* The completion number n, from 0, of a ring, in `out`. False: it does not come in time. */
bool bringup_take(const struct hw_cqe *ring, uint32_t n, uint32_t entries, struct hw_cqe *out);

#endif
