/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_FAKE_ACCEL_FAKE_PEERS_H
#define TESTS_FAKE_ACCEL_FAKE_PEERS_H
/* Cards that reach each other's HBM, until it is taken back, and resets, of queues too; included
 * by accel_fake.h. */
#include "tests/fake/accel_fake.h"

/* ---- other cards' memory ---- */

/* Has its card reach the memory of another one. */
static int fake_reach(struct fake_bo *bo)
{
	uint64_t bytes;
	uint8_t *hbm = sim_hbm(bo->of->card->dev, &bytes);

	if (fake.is_resetting || !bo->of->card->is_usable)
		return fake.is_resetting ? EBUSY : ENODEV;
	if (bo->is_reached)
		return 0;
	bo->pa = (uintptr_t)hbm + bo->of->pa;
	if (sim_dma_map(bo->card->dev, bo->pa, hbm + bo->of->pa, bo->bytes, true, NULL))
		return EFAULT;
	bo->is_reached = true;
	return 0;
}

static int fake_export(struct fake_file *f, struct drm_prime_handle *a)
{
	struct fake_bo *bo = fake_bo(f, a->handle);
	unsigned i = 0;

	if (a->flags != (DRM_CLOEXEC | DRM_RDWR))
		return EINVAL;
	if (!bo || bo->kind != FAKE_HBM)
		return ENOENT;
	while (i < FAKE_BUFS && fake.buf[i].fd)
		i++;
	a->fd = i < FAKE_BUFS ? memfd_create("dma-buf", MFD_CLOEXEC) : -1;
	if (a->fd < 0)
		return EMFILE;
	fake.buf[i].fd = a->fd;
	fake.buf[i].bo = bo;
	bo->refs++;
	return 0;
}

/* False: it is none. */
static bool fake_close_buf(int fd)
{
	unsigned i = 0;

	while (i < FAKE_BUFS && (fd <= 0 || fake.buf[i].fd != fd))
		i++;
	if (i == FAKE_BUFS)
		return false;
	fake_bo_put(fake.buf[i].bo);
	fake.buf[i].fd = 0;
	return true;
}

static int fake_import(struct fake_file *f, struct drm_prime_handle *a)
{
	struct fake_bo *bo, *of = NULL;

	for (unsigned i = 0; i < FAKE_BUFS; i++)
		if (a->fd > 0 && fake.buf[i].fd == a->fd)
			of = fake.buf[i].bo;
	if (!of)
		return EBADF;
	if (fake.has_no_way || of->card == f->card)
		return EOPNOTSUPP;
	bo = fake_bo_new(FAKE_PEER, of->bytes);
	bo->of = of;
	of->refs++;
	a->handle = fake_handle(f, bo);
	return 0;
}

/* Work that runs is stopped, as the driver does. */
static void fake_cut(struct fake_file *f, struct fake_ctx *c, struct fake_mapping *map)
{
	struct hw_map m = { .va = map->va, .bytes = map->bo->bytes };

	while (!fake_is_lost(c) &&
	       fake_request((struct hw_sqe){ .op = HW_UNMAP, .id = c->hw_id }, &m, sizeof(m),
			    NULL) == EBUSY)
		for (unsigned k = 0; k < FAKE_QUEUES; k++)
			if (f->queue[k].is_used && &f->ctx[f->queue[k].ctx - 1] == c)
				fake_request((struct hw_sqe){ .op = HW_QUEUE_RESET,
					.id = (uint16_t)f->queue[k].hw_id }, NULL, 0, NULL);
	map->is_hole = true;
}

/* What others have of the card's memory. */
static void fake_take_all_back(struct fake_card *card)
{
	for (struct fake_bo *b = fake.bos; b; b = b->next) {
		if (b->kind != FAKE_PEER || b->of->card != card || !b->is_reached)
			continue;
		fake.now = b->card;
		for (unsigned i = 0; i < FAKE_FILES; i++)
			for (unsigned k = 0; fake.file[i].fd && k < FAKE_CTXS * FAKE_BOS; k++) {
				struct fake_ctx *c = &fake.file[i].ctx[k / FAKE_BOS];

				if (c->is_used && c->map[k % FAKE_BOS].bo == b)
					fake_cut(&fake.file[i], c, &c->map[k % FAKE_BOS]);
			}
		sim_dma_unmap(b->card->dev, b->pa, NULL);
		b->is_reached = false;
	}
	fake.now = card;
}

/* ---- resets ---- */

static struct fake_queue *fake_queue(struct fake_file *f, uint32_t id)
{
	return id && id <= FAKE_QUEUES && f->queue[id - 1].is_used ? &f->queue[id - 1] : NULL;
}

static int fake_queue_reset(struct fake_file *f, struct drm_tessera_queue_id *a)
{
	struct fake_queue *q = fake_queue(f, a->id);

	if (!q)
		return ENOENT;
	if (q->generation != fake.now->generation)
		return ECANCELED;
	return fake_request((struct hw_sqe){ .op = HW_QUEUE_RESET, .id = (uint16_t)q->hw_id },
			    NULL, 0, NULL);
}

/* What the driver does when the device is lost, whoever asked. */
static inline void fake_function_reset(void)
{
	uint64_t one = 1;

	fake_take_all_back(fake.now);
	fake.now->generation++;
	fake.n_resets++;
	sim_flr(fake.now->dev);
	if (fake_bring_up())
		fake.now->is_usable = 0;
	for (unsigned i = 0; i < FAKE_FILES; i++)
		for (unsigned k = 0; k < FAKE_QUEUES; k++)
			if (fake.file[i].card == fake.now && fake.file[i].queue[k].is_used &&
			    write(fake.file[i].queue[k].event, &one, sizeof(one)) < 0)
				abort();
}

#include "tests/fake/accel_fake_calls.h"

#endif
