/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/bringup/bare/admin.h"

#include <string.h>

#include "hal/base/cpu.h"
#include "hal/hw/regs.h"

#define TAG 0x7e550000u

uint64_t bringup_read64(struct bringup *b, uint32_t offset)
{
	return hal_bare_read(b->bare, offset) | (uint64_t)hal_bare_read(b->bare, offset + 4) << 32;
}

static void write64(struct bringup *b, uint32_t offset, uint64_t value)
{
	hal_bare_write(b->bare, offset, (uint32_t)value);
	hal_bare_write(b->bare, offset + 4, (uint32_t)(value >> 32));
}

uint32_t bringup_settle(struct bringup *b, uint32_t offset, uint32_t bits)
{
	int64_t deadline = SOON;
	uint32_t value;

	do
		value = hal_bare_read(b->bare, offset);
	while (value & bits && clock_ns() < deadline);
	return value & bits;
}

void bringup_admin_rings(struct bringup *b, uint64_t sq_iova, uint64_t cq_iova, uint32_t entries)
{
	write64(b, HW_REG_ASQ, sq_iova);
	write64(b, HW_REG_ACQ, cq_iova);
	hal_bare_write(b->bare, HW_REG_AQSIZE, entries);
}

enum bringup_result bringup_admin_enable(struct bringup *b, struct admin *a, uint32_t vector)
{
	memset(a->cq, 0, HW_PAGE);
	a->tail = 0;
	hal_bare_write(b->bare, HW_REG_AVECTOR, vector);
	hal_bare_write(b->bare, HW_REG_CTRL, HW_CTRL_ENABLE);
	if (hal_bare_read(b->bare, HW_REG_STATUS) != HW_STATUS_READY)
		return bringup_fail(b, "queue 0 does not come up: STATUS reads 0x%x, BADACC %u",
				    hal_bare_read(b->bare, HW_REG_STATUS),
				    hal_bare_read(b->bare, HW_REG_BADACC));
	return BRINGUP_PASS;
}

enum bringup_result bringup_admin_disable(struct bringup *b)
{
	uint32_t left;

	hal_bare_write(b->bare, HW_REG_CTRL, 0);
	left = bringup_settle(b, HW_REG_STATUS, HW_STATUS_READY | HW_STATUS_RESETTING);
	return left ? bringup_fail(b, "20 s after the device was disabled STATUS has 0x%x", left) :
		      BRINGUP_PASS;
}

enum bringup_result bringup_admin_start(struct bringup *b, struct admin *a, uint32_t vector)
{
	uint64_t iova;
	void *memory;

	/* Closed and opened, so that the memory is given back. */
	bringup_close(b);
	STEP_TRY(bringup_need_bare(b));
	TRY(b, hal_bare_pages(b->bare, 3 * HW_PAGE, &memory, &iova, &b->err));
	*a = (struct admin){ .sq = memory, .cq = (void *)((char *)memory + HW_PAGE),
			     .args = (uint8_t *)memory + 2 * HW_PAGE,
			     .args_iova = iova + 2 * HW_PAGE };
	bringup_admin_rings(b, iova, iova + HW_PAGE, BRINGUP_ENTRIES);
	return bringup_admin_enable(b, a, vector);
}

bool bringup_ring_badly(struct bringup *b, unsigned queue, uint32_t tail)
{
	uint32_t before = hal_bare_read(b->bare, HW_REG_BADACC), after;
	int64_t deadline = clock_after(2 * SECOND);	/* a read comes behind the store */

	hal_bare_write(b->bare, hw_doorbell(queue), tail);
	do
		after = hal_bare_read(b->bare, HW_REG_BADACC);
	while (after == before && clock_ns() < deadline);
	return after == before + 1;
}

bool bringup_take(const struct hw_cqe *ring, uint32_t n, uint32_t entries, struct hw_cqe *out)
{
	const struct hw_cqe *cqe = &ring[n % entries];
	uint16_t phase = (n / entries + 1) & 1;
	int64_t deadline = SOON;
	uint64_t word;

	do {
		cpu_relax();
		word = __atomic_load_n((const uint64_t *)(const void *)cqe, __ATOMIC_ACQUIRE);
	} while ((word >> 48 & 1) != phase && clock_ns() < deadline);
	*out = *cqe;
	return (word >> 48 & 1) == phase;
}

enum bringup_result bringup_admin_request(struct bringup *b, struct admin *a, struct hw_sqe sqe,
					  struct hw_cqe *out)
{
	sqe.tag = TAG + a->tail;
	a->sq[a->tail % BRINGUP_ENTRIES] = sqe;
	a->tail++;
	hal_bare_write(b->bare, hw_doorbell(0), a->tail);
	if (!bringup_take(a->cq, a->tail - 1, BRINGUP_ENTRIES, out))
		return bringup_fail(b, "request 0x%02x has no completion after 20 s", sqe.op);
	if (out->tag != sqe.tag || out->sq_head != a->tail)
		return bringup_fail(b, "request 0x%02x: completion has tag 0x%x (0x%x), status %s, "
				    "head %u (%u)", sqe.op, out->tag, sqe.tag,
				    hw_status_name(out->status), out->sq_head, a->tail);
	return BRINGUP_PASS;
}

enum bringup_result bringup_admin_grant(struct bringup *b, struct admin *a, struct hw_sqe sqe,
					uint64_t *value)
{
	struct hw_cqe cqe;

	sqe.u.admin.addr = a->args_iova;
	STEP_TRY(bringup_admin_request(b, a, sqe, &cqe));
	if (cqe.status)
		return bringup_fail(b, "request 0x%02x is refused: status %s", sqe.op,
				    hw_status_name(cqe.status));
	if (value)
		*value = cqe.value;
	return BRINGUP_PASS;
}

enum bringup_result bringup_admin_ask(struct bringup *b, struct admin *a, uint8_t op,
				      uint8_t flags)
{
	return bringup_admin_grant(b, a, (struct hw_sqe){ .op = op, .flags = flags }, NULL);
}
