/* SPDX-License-Identifier: Apache-2.0 */
/* Links: what is sent to each neighbour arrives there, and the link that it went by counts it. */
#include <string.h>

#include "tools/bringup/context.h"

#define SENT (((uint64_t)1 << 20) + 13)

/* The other end of a link, opened for the step. */
struct neighbour {
	struct hal_device *dev;
	struct hal_mem *mem;
};

static void leave(struct neighbour *n)
{
	hal_mem_free(n->mem);
	hal_device_close(n->dev);
	*n = (struct neighbour){ 0 };
}

/* Opens the device that is chip `chip` of the same fabric. NOT_FOUND. */
static int open_chip(struct bringup *b, unsigned chip, struct neighbour *out)
{
	struct hal_position own, p;

	hal_device_position(b->dev, &own);
	for (unsigned i = 0; i < hal_device_count(b->hal); i++) {
		struct hal_device *dev;

		if (i == b->options->index || hal_device_open(b->hal, i, &dev, &b->err))
			continue;
		hal_device_position(dev, &p);
		if (p.fabric == own.fabric && p.chip == chip) {
			out->dev = dev;
			return hal_mem_alloc(dev, HAL_MEM_HBM, SENT, "bring-up", &out->mem,
					     &b->err);
		}
		hal_device_close(dev);
	}
	return err_set(&b->err, ERR_NOT_FOUND, "chip %u is none of the devices here", chip);
}

static int find_link(struct bringup *b, unsigned chip, struct hw_link *out)
{
	struct hw_link links[HW_MAX_LINKS];
	unsigned n;
	int code = hal_device_links(b->dev, links, &n, &b->err);

	for (unsigned i = 0; !code && i < n; i++)
		if (links[i].peer == chip) {
			*out = links[i];
			return 0;
		}
	return code ? code : err_set(&b->err, ERR_NOT_FOUND, "no link to chip %u any more", chip);
}

static enum bringup_result send(struct bringup *b, unsigned chip, const struct neighbour *to,
				struct hal_mem *from, const uint8_t *want, uint8_t *got)
{
	struct hw_link before, after;
	uint64_t value;
	size_t at;

	TRY(b, find_link(b, chip, &before));
	if (before.is != HW_LINK_UP)
		return bringup_fail(b, "the link to chip %u is not up (%u)", chip, before.is);
	TRY(b, hal_queue_copy(b->dma, to->mem, 0, from, 0, SENT, NULL, 0, &value, &b->err));
	TRY(b, hal_queue_wait(b->dma, value, SOON, &b->err));
	TRY(b, hal_copy_out(got, to->mem, 0, SENT, SOON, &b->err));
	at = bringup_differ(got, want, SENT);
	if (at < SENT)
		return bringup_fail(b, "byte %zu at chip %u is 0x%02x instead of 0x%02x", at, chip,
				    got[at], want[at]);
	TRY(b, find_link(b, chip, &after));
	if (after.tx_bytes - before.tx_bytes != SENT || after.n_errors != before.n_errors)
		return bringup_fail(b, "the link to chip %u counts %llu bytes of %llu, %llu "
				    "refused",
				    chip, (unsigned long long)(after.tx_bytes - before.tx_bytes),
				    (unsigned long long)SENT,
				    (unsigned long long)(after.n_errors - before.n_errors));
	return BRINGUP_PASS;
}

enum bringup_result step_links(struct bringup *b)
{
	struct hw_link links[HW_MAX_LINKS];
	uint8_t *want, *got;
	struct hal_mem *from;
	unsigned n;

	STEP_TRY(bringup_need_device(b));
	TRY(b, hal_device_links(b->dev, links, &n, &b->err));
	if (!n)
		return bringup_skip(b, "the device has no links");
	from = bringup_mem(b, HAL_MEM_HBM, SENT);
	NEED(b, from);
	want = bringup_room(b, SENT);
	NEED(b, want);
	got = bringup_room(b, SENT);
	NEED(b, got);
	for (unsigned i = 0; i < n; i++) {
		struct neighbour to = { 0 };
		enum bringup_result r;
		int code = open_chip(b, links[i].peer, &to);

		bringup_fill_random(want, SENT, i + 100);
		if (!code)
			code = hal_copy_in(from, 0, want, SENT, SOON, &b->err);
		r = code == ERR_NOT_FOUND ? bringup_skip(b, "%s", b->err.msg) :
		    code ? bringup_fail(b, "%s", b->err.msg) :
		    send(b, links[i].peer, &to, from, want, got);
		leave(&to);
		STEP_TRY(r);
	}
	return bringup_pass(b, "%u neighbours, %llu bytes each", n, (unsigned long long)SENT);
}
