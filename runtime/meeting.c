/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Meetings: what members of a program need to meet each other on several devices (mailboxes of
 * hal/hw/image.h), and the numbers that each is given.
 *
 * A mailbox is written by others until the runs of all members are over, so mailboxes go when
 * the last member's executable does. They hold counts that go on from run to run, and have
 * to be zeros again when a launch failed. Whether one did is told by how often a device's memory
 * was lent: work that fails takes its device's window along, so as long as none was lent anew
 * all went well, or what is launched now fails itself. What is under way of a launch
 * that failed ends soon, since its peers hear of it; nothing is cleared before that.
 */
#include <stdlib.h>

#include "runtime/rt_internal.h"

static struct hal_device *hal_of(const struct rt_meeting *g, unsigned member)
{
	return g->client->devices[g->at[member].device].hal;
}

void rt_meeting_unref(struct rt_meeting *g)
{
	if (!g || atomic_fetch_sub(&g->refs, 1) != 1)
		return;
	for (unsigned m = 0; m < g->n; m++) {
		hal_mem_free(g->at[m].mailbox);
		hal_mem_free(g->at[m].row);
	}
	free(g->va);
	free(g);
}

/* A fill behind a copy to a device that fails is dropped with that (hal.h): again, then. */
static int zero(struct rt_meeting *g, unsigned member, struct err *err)
{
	struct hal_queue *q = hal_device_queue(hal_of(g, member), HAL_QUEUE_DMA);
	struct hal_mem *m = g->at[member].mailbox;
	uint64_t value;
	int code;

	do {
		code = hal_queue_fill(q, m, 0, hal_mem_bytes(m), 0, &value, err);
		if (!code)
			code = hal_queue_wait(q, value, CLOCK_FOREVER, err);
	} while (code == ERR_ABORTED && !hal_device_error(hal_of(g, member), NULL));
	return code;
}

/* Mailboxes are zeros, and rows are there, when it returns. Nothing that is queued uses them. */
static int clear(struct rt_meeting *g, struct err *err)
{
	const struct image *im = g->image;
	uint64_t row = im->n_words * sizeof(*im->members);
	int code = 0;

	for (unsigned m = 0; !code && m < g->n; m++) {
		if (g->at[m].mailbox)
			code = zero(g, m, err);
		if (!code && g->at[m].row)
			code = hal_copy_in(g->at[m].row, 0, im->members + m * im->n_words, row,
					   CLOCK_FOREVER, err);
	}
	return code;
}

/* The bytes of the mailbox binding; 0: there is none. */
static uint64_t mailbox_bytes(const struct image *im)
{
	for (size_t i = 0; i < im->n_bindings; i++)
		if (im->bindings[i].kind == IMAGE_MAILBOX)
			return im->bindings[i].bytes;
	return 0;
}

static int allocate(struct rt_meeting *g, struct err *err)
{
	const struct image *im = g->image;
	uint64_t box = mailbox_bytes(im), row = im->n_words * sizeof(*im->members);
	int code = 0;

	for (unsigned m = 0; !code && m < g->n; m++) {
		struct rt_place *p = &g->at[m];

		if (box)
			code = rt_alloc(g->client, p->device, RT_DEVICE, box, "mailbox",
					&p->mailbox, err);
		if (!code && row)
			code = rt_alloc(g->client, p->device, RT_DEVICE, row, "member's numbers",
					&p->row, err);
	}
	return code ? code : clear(g, err);
}

bool rt_meeting_is_needed(const struct image *im)
{
	return im->n_slots || im->n_words;
}

int rt_meeting_new(struct rt_client *c, const struct image *im, const unsigned *devices,
		   struct rt_meeting **out, struct err *err)
{
	unsigned n = image_n_members(im);
	struct rt_meeting *g;
	int code;

	g = calloc(1, sizeof(*g) + n * sizeof(*g->at));
	if (g)
		g->va = calloc(n * im->n_slots + 1, sizeof(*g->va));
	if (!g || !g->va) {
		free(g);
		return err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory");
	}
	atomic_init(&g->refs, 1);
	g->client = c;
	g->image = im;
	g->n = n;
	for (unsigned m = 0; m < n; m++)
		g->at[m].device = devices[m];
	code = allocate(g, err);
	if (code)
		rt_meeting_unref(g);
	else
		*out = g;
	return code;
}

static int ask_all(struct rt_meeting *g, struct err *err)
{
	const struct image *im = g->image;
	int code = 0;

	for (unsigned m = 0; m < g->n; m++)
		for (size_t s = 0; !code && s < im->n_slots; s++) {
			size_t i = m * im->n_slots + s;

			code = hal_peer_va(hal_of(g, m), g->at[im->peers[i]].mailbox, &g->va[i],
					   err);
		}
	return code;
}

/* Notes how often all memory was lent; whether that is as it was. */
static bool note_lent(struct rt_meeting *g)
{
	bool same = true;

	for (unsigned m = 0; m < g->n; m++) {
		uint64_t lent = hal_times_lent(hal_of(g, m));

		same &= lent == g->at[m].lent;
		g->at[m].lent = lent;
	}
	return same;
}

int rt_meeting_begin(struct rt_meeting *g, struct err *err)
{
	bool is_asked = false;
	int code = 0;

	if (!g->image->n_slots)
		return 0;
	/* Until nothing was lent anew while we asked. */
	for (;;) {
		bool same = note_lent(g);

		g->is_spoilt |= !same && g->was_launched;
		if (same && is_asked)
			break;
		code = ask_all(g, err);
		if (code)
			return code;
		is_asked = true;
	}
	if (!g->is_spoilt)
		return 0;
	for (unsigned m = 0; m < g->n; m++)
		hal_queue_wait(g->client->devices[g->at[m].device].queue, g->at[m].last_use,
			       CLOCK_FOREVER, NULL);
	code = clear(g, err);
	g->is_spoilt = code != 0;
	return code;
}

void rt_meeting_note(struct rt_meeting *g, unsigned member, uint64_t value)
{
	g->at[member].last_use = value;
	g->was_launched = true;
}

void rt_meeting_spoil(struct rt_meeting *g)
{
	g->is_spoilt = true;
}

int rt_meeting_abandon(struct rt_meeting *g, unsigned missing)
{
	rt_meeting_spoil(g);
	return g->image->n_slots ? hal_take_back(hal_of(g, missing), NULL) : 0;
}
