/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_FAKE_ACCEL_FAKE_H
#define TESTS_FAKE_ACCEL_FAKE_H
/*
 * The kernel driver in this process, as far as the HAL calls it: struct accel_sys over
 * a model of the sim library. It does on the device what the driver does, refuses what
 * the driver refuses, and counts what callers leave behind. One program: a test includes this
 * file once. SUBMIT and BO_INFO are not here: ENOTTY.
 *
 *	fake_open_card(64 << 20);	installs itself as accel_sys; or fake_open_cards(2, ...)
 *	...
 *	fake_close_card();
 *
 * Cards reach each other's HBM (PRIME), unless fake.has_no_way. Card n is /dev/accel/acceln.
 *
 * Any call may be made to fail: fake.fail_at = n lets the n-th call from now that could
 * fail in a kernel do so with fake.fail_errno, fake.fail_request one kind of ioctl. What
 * takes back never fails.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xf86drm.h>

#include "hal/hw/regs.h"
#include "hal/sim/sim.h"
#include "hal/transport/ioctl.h"
#include "kernel-uapi/include/tessera_drm.h"
#include "tests/fake/fork_at.h"

#define FAKE_PAGE ((uint64_t)HW_PAGE)
#define FAKE_CARDS 2u
#define FAKE_FILES 8u
#define FAKE_BUFS 8u
#define FAKE_BOS 128u
#define FAKE_CTXS 8u
#define FAKE_QUEUES 16u
#define FAKE_ADMIN_ENTRIES 16u
#define FAKE_ADMIN_BYTES ((uint64_t)64 << 10)

enum fake_kind { FAKE_HBM, FAKE_USER, FAKE_RING, FAKE_RING_READ_ONLY, FAKE_BELL, FAKE_PEER };

struct fake_card {
	struct sim_device *dev;
	uint8_t *admin;
	uint32_t tail, head;
	struct hw_identify identity;
	unsigned generation;
	uint32_t is_usable;
};

struct fake_bo {
	enum fake_kind kind;
	struct fake_card *card;	/* that has it, or reaches it */
	struct fake_bo *of;	/* PEER: the other card's HBM */
	bool is_reached;	/* PEER: by the card */
	unsigned refs;		/* handle, mappings, queue */
	uint64_t bytes;
	uint64_t pa;		/* in HBM, or the iova */
	int fd;			/* RING, BELL (or a wake page): a memfd */
	void *at;		/* RING, BELL: as the driver sees it */
	uint64_t offset;	/* for mmap; 0: cannot be */
	struct fake_bo *next;	/* of all */
};

struct fake_mapping {
	uint64_t va;
	struct fake_bo *bo;	/* NULL: unused */
	bool is_hole;		/* it was taken back */
};

struct fake_ctx {
	bool is_used;
	struct fake_card *card;
	uint16_t hw_id;
	unsigned generation;
	struct fake_mapping map[FAKE_BOS];
	struct fake_bo *wake;	/* NULL: it was not asked for */
	int trace_event;	/* of its vector; 0: it is not traced */
	uint64_t trace_va;
};

struct fake_queue {
	bool is_used;
	unsigned ctx, hw_id, generation;
	int event;
	struct fake_bo *sq, *cq, *bell;
};

struct fake_file {
	int fd;			/* 0: unused */
	struct fake_card *card;
	struct fake_bo *handle[FAKE_BOS];	/* handle - 1 */
	struct fake_ctx ctx[FAKE_CTXS];		/* id - 1 */
	struct fake_queue queue[FAKE_QUEUES];	/* id - 1; vector - 1 */
	unsigned n_syncobj;
};

struct fake_view {		/* a buffer in the caller's address space */
	void *at;
	uint64_t bytes;
	struct fake_bo *bo;
	struct fake_view *next;
};

static struct {
	pthread_mutex_t lock;
	struct sim *sim[FAKE_CARDS];
	struct fake_card card[FAKE_CARDS], *now;	/* now: whose call it is; else the first */
	unsigned n_cards;
	struct { int fd; struct fake_bo *bo; } buf[FAKE_BUFS];	/* dma-bufs; fd 0: unused */
	struct fake_file file[FAKE_FILES];
	struct fake_bo *bos;
	struct fake_view *views;
	uint64_t serial;	/* of offsets */
	char root[64];
	/* What the driver and the system say. */
	const char *driver;	/* NULL: no DRM device */
	uint32_t abi;
	bool has_no_way;	/* between cards */
	bool is_resetting;	/* the card whose memory is asked for */
	struct hw_link links[HW_MAX_LINKS];
	unsigned n_links;
	bool is_silicon;	/* the device does not call itself a model */
	bool is_busy;		/* running work uses whatever is to be unmapped */
	uint64_t pin_limit, pinned, hbm_limit;	/* 0: none */
	int open_errno;
	/* What went on. */
	long fail_at, n_calls;
	unsigned long fail_request;	/* this one fails as long as it is named */
	int fail_errno;
	unsigned n_opens, n_left_behind, n_resets, n_wakes;
} fake = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* Whether this call shall fail; errno is why. */
static bool fake_fails(unsigned long request)
{
	fake.n_calls++;
	if ((!request || request != fake.fail_request) && (!fake.fail_at || --fake.fail_at))
		return false;
	errno = fake.fail_errno;
	return true;
}

/* ---- queue 0 ---- */

static int fake_errno_of(const struct hw_cqe *cqe)
{
	switch (hw_status_code(cqe->status)) {
	case ERR_OK: return 0;
	case ERR_INVALID_ARGUMENT: return EINVAL;
	case ERR_NOT_FOUND: return ENOENT;
	case ERR_RESOURCE_EXHAUSTED: return ENOSPC;
	case ERR_ALREADY_EXISTS: return EEXIST;
	case ERR_FAILED_PRECONDITION: return EBUSY;
	case ERR_UNIMPLEMENTED: return EOPNOTSUPP;
	case ERR_ABORTED: return ECANCELED;
	default: return EIO;
	}
}

/* One request, with arguments at admin page 2; an errno. */
static int fake_request(struct hw_sqe sqe, const void *args, size_t bytes,
			struct hw_cqe *out)
{
	struct hw_cqe *cqe = (struct hw_cqe *)(fake.now->admin + FAKE_PAGE) +
			     fake.now->head % FAKE_ADMIN_ENTRIES;
	uint16_t phase = (fake.now->head / FAKE_ADMIN_ENTRIES + 1) & 1;

	if (args)
		memcpy(fake.now->admin + 2 * FAKE_PAGE, args, bytes);
	sqe.u.admin.addr = (uintptr_t)fake.now->admin + 2 * FAKE_PAGE;
	((struct hw_sqe *)fake.now->admin)[fake.now->tail++ % FAKE_ADMIN_ENTRIES] = sqe;
	sim_mmio_write(fake.now->dev, hw_doorbell(0), 4, fake.now->tail);
	/* The model answers queue 0 before the store returns, or is in its fatal state. */
	if ((__atomic_load_n(&cqe->phase, __ATOMIC_ACQUIRE) & 1) != phase)
		return EIO;
	fake.now->head++;
	if (out)
		*out = *cqe;
	return fake_errno_of(cqe);
}

static int fake_bring_up(void)
{
	const uint64_t rings[2] = { (uintptr_t)fake.now->admin,
				    (uintptr_t)fake.now->admin + FAKE_PAGE };
	int sysno;

	memset(fake.now->admin, 0, FAKE_ADMIN_BYTES);
	fake.now->tail = fake.now->head = 0;
	sim_mmio_write(fake.now->dev, HW_REG_ASQ, 8, rings[0]);
	sim_mmio_write(fake.now->dev, HW_REG_ACQ, 8, rings[1]);
	sim_mmio_write(fake.now->dev, HW_REG_AQSIZE, 4, FAKE_ADMIN_ENTRIES);
	sim_mmio_write(fake.now->dev, HW_REG_CTRL, 4, HW_CTRL_ENABLE);
	sysno = fake_request((struct hw_sqe){ .op = HW_IDENTIFY }, NULL, 0, NULL);
	memcpy(&fake.now->identity, fake.now->admin + 2 * FAKE_PAGE, sizeof(fake.now->identity));
	if (fake.is_silicon)
		fake.now->identity.is_model = 0;
	for (unsigned v = 0; v < HW_MAX_VECTORS; v++)
		sim_mmio_write(fake.now->dev, HW_MSIX_TABLE + v * 16 + 12, 4, 0);
	return sysno;
}

/* ---- buffers ---- */

static struct fake_bo *fake_bo_new(enum fake_kind kind, uint64_t bytes)
{
	struct fake_bo *bo = calloc(1, sizeof(*bo));

	*bo = (struct fake_bo){ .kind = kind, .card = fake.now, .refs = 1, .bytes = bytes,
				.fd = -1, .next = fake.bos };
	if (kind != FAKE_USER && kind != FAKE_PEER)
		bo->offset = ++fake.serial << 40;
	fake.bos = bo;
	return bo;
}

static void fake_bo_put(struct fake_bo *bo)
{
	struct fake_bo **link = &fake.bos;

	if (!bo || --bo->refs)
		return;
	while (*link != bo)
		link = &(*link)->next;
	*link = bo->next;
	if (bo->kind == FAKE_PEER) {
		if (bo->is_reached)
			sim_dma_unmap(bo->card->dev, bo->pa, NULL);
		fake_bo_put(bo->of);
	} else if (bo->kind == FAKE_USER) {
		sim_dma_unmap(bo->card->dev, bo->pa, NULL);
		fake.pinned -= bo->bytes;
	} else if (bo->kind != FAKE_HBM) {
		if (bo->kind != FAKE_BELL)
			sim_dma_unmap(bo->card->dev, bo->pa, NULL);
		munmap(bo->at, bo->bytes);
		close(bo->fd);
	}
	free(bo);
}

/* Whether [at, + bytes) of HBM is free; *next is behind what is in the way. */
static bool fake_is_free(uint64_t at, uint64_t bytes, uint64_t *next)
{
	for (struct fake_bo *b = fake.bos; b; b = b->next)
		if (b->kind == FAKE_HBM && b->card == fake.now && at < b->pa + b->bytes &&
		    b->pa < at + bytes) {
			*next = b->pa + b->bytes;
			return false;
		}
	return true;
}

static uint64_t fake_hbm_of(const struct fake_file *f)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < FAKE_BOS; i++)
		sum += f->handle[i] && f->handle[i]->kind == FAKE_HBM ? f->handle[i]->bytes : 0;
	return sum;
}

static struct drm_tessera_memory fake_memory(const struct fake_file *f)
{
	struct drm_tessera_memory m = { .hbm_total = fake.now->identity.hbm_bytes,
					.hbm_used_by_file = fake_hbm_of(f),
					.hbm_limit_of_file = fake.hbm_limit };
	uint64_t run = 0, next = 0;

	for (struct fake_bo *b = fake.bos; b; b = b->next)
		if (b->card == fake.now && b->kind != FAKE_PEER)
			*(b->kind == FAKE_HBM ? &m.hbm_used : &m.system_used) += b->bytes;
	for (uint64_t at = 0; at < m.hbm_total;) {
		if (fake_is_free(at, FAKE_PAGE, &next)) {
			run += FAKE_PAGE;
			at += FAKE_PAGE;
		} else {
			run = 0;
			at = next;
		}
		if (run > m.hbm_largest_free)
			m.hbm_largest_free = run;
	}
	return m;
}

static uint32_t fake_handle(struct fake_file *f, struct fake_bo *bo)
{
	for (uint32_t i = 0; i < FAKE_BOS; i++)
		if (!f->handle[i]) {
			f->handle[i] = bo;
			return i + 1;
		}
	abort();
}

static struct fake_bo *fake_bo(struct fake_file *f, uint32_t handle)
{
	return handle && handle <= FAKE_BOS ? f->handle[handle - 1] : NULL;
}

static int fake_bo_create(struct fake_file *f, struct drm_tessera_bo_create *a)
{
	uint64_t bytes = (a->size + FAKE_PAGE - 1) & ~(FAKE_PAGE - 1), at = 0, total;
	struct fake_bo *bo;

	if (!a->size || bytes < a->size || a->flags != DRM_TESSERA_BO_HBM || a->ctx || a->zero)
		return EINVAL;
	if (fake.hbm_limit && bytes + fake_hbm_of(f) > fake.hbm_limit)
		return EMFILE;
	total = fake.now->identity.hbm_bytes;
	while (at <= total && bytes <= total - at && !fake_is_free(at, bytes, &at))
		;
	if (at > total || bytes > total - at)
		return ENOSPC;
	if (fallocate(sim_hbm_fd(fake.now->dev), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
		      (off_t)at, (off_t)bytes))
		return errno;
	bo = fake_bo_new(FAKE_HBM, bytes);
	bo->pa = at;
	a->size = bytes;
	a->mmap_offset = bo->offset;
	a->handle = fake_handle(f, bo);
	return 0;
}

static int fake_userptr(struct fake_file *f, struct drm_tessera_bo_userptr *a)
{
	struct fake_bo *bo;

	if (!a->size || a->address % FAKE_PAGE || a->size % FAKE_PAGE || a->flags)
		return EINVAL;
	if (msync((void *)(uintptr_t)a->address, a->size, MS_ASYNC))
		return EFAULT;
	if (fake.pin_limit && fake.pinned + a->size > fake.pin_limit)
		return ENOMEM;
	if (sim_dma_map(fake.now->dev, a->address, (void *)(uintptr_t)a->address, a->size, true,
			NULL))
		return EFAULT;
	bo = fake_bo_new(FAKE_USER, a->size);
	bo->pa = a->address;
	fake.pinned += a->size;
	a->handle = fake_handle(f, bo);
	return 0;
}

static int fake_gem_close(struct fake_file *f, struct drm_gem_close *a)
{
	struct fake_bo *bo = fake_bo(f, a->handle);

	if (!bo)
		return EINVAL;
	f->handle[a->handle - 1] = NULL;
	fake_bo_put(bo);
	return 0;
}

/* ---- contexts ---- */

static struct fake_ctx *fake_ctx(struct fake_file *f, uint32_t id)
{
	return id && id <= FAKE_CTXS && f->ctx[id - 1].is_used ? &f->ctx[id - 1] : NULL;
}

static bool fake_is_lost(const struct fake_ctx *c)
{
	return c->generation != c->card->generation || !c->card->is_usable;
}

/* 0, ENOENT or ECANCELED. */
static int fake_find(struct fake_file *f, uint32_t id, struct fake_ctx **out)
{
	*out = fake_ctx(f, id);
	return !*out ? ENOENT : fake_is_lost(*out) ? ECANCELED : 0;
}

static struct fake_bo *fake_memory_bo(enum fake_kind kind, uint64_t bytes)
{
	struct fake_bo *bo = fake_bo_new(kind, (bytes + FAKE_PAGE - 1) & ~(FAKE_PAGE - 1));

	bo->fd = memfd_create("ring", MFD_CLOEXEC);
	if (bo->fd < 0 || ftruncate(bo->fd, (off_t)bo->bytes))
		abort();
	bo->at = mmap(NULL, bo->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, bo->fd, 0);
	bo->pa = (uintptr_t)bo->at;
	if (bo->at == MAP_FAILED || (kind != FAKE_BELL &&
				     sim_dma_map(fake.now->dev, bo->pa, bo->at, bo->bytes, true,
						 NULL)))
		abort();
	return bo;
}

static int fake_ctx_create(struct fake_file *f, struct drm_tessera_ctx_create *a)
{
	struct hw_cqe cqe = { 0 };
	uint32_t i = 0;
	int sysno;

	if (a->flags & ~(fake.abi < 6 ? 0 : DRM_TESSERA_CTX_WAKE) || a->zero || a->zero2)
		return EINVAL;
	if (!fake.now->is_usable)
		return ENODEV;
	while (i < FAKE_CTXS && f->ctx[i].is_used)
		i++;
	sysno = i == FAKE_CTXS ? ENOSPC :
		fake_request((struct hw_sqe){ .op = HW_CTX_CREATE }, NULL, 0, &cqe);
	if (sysno)
		return sysno;
	f->ctx[i] = (struct fake_ctx){ .is_used = true, .card = fake.now,
				       .hw_id = (uint16_t)cqe.value,
				       .generation = fake.now->generation };
	f->n_syncobj++;
	a->id = i + 1;
	a->syncobj = 77;
	if (a->flags) {
		f->ctx[i].wake = fake_memory_bo(FAKE_BELL, FAKE_PAGE);
		f->ctx[i].wake->refs++;
		a->wake_handle = fake_handle(f, f->ctx[i].wake);
		a->wake_offset = f->ctx[i].wake->offset;
	}
	return 0;
}

static int fake_reach(struct fake_bo *bo);

static int fake_map(struct fake_file *f, struct drm_tessera_map *all)
{
	struct drm_tessera_map_op *a = (void *)(uintptr_t)all->ops;
	struct fake_bo *bo = fake_bo(f, a->handle);
	struct fake_ctx *c;
	struct hw_map m;
	unsigned i = 0;
	int sysno = fake_find(f, all->ctx, &c);

	if (all->n_ops != 1 || all->op_bytes != sizeof(*a) || all->n_done ||
	    a->flags & ~DRM_TESSERA_MAP_WRITE || !a->va || a->va % FAKE_PAGE ||
	    a->offset || a->bytes)
		return EINVAL;
	if (sysno || !bo)
		return sysno ? sysno : ENOENT;
	while (i < FAKE_BOS && c->map[i].bo)
		i++;
	if (i == FAKE_BOS)
		return ENOSPC;
	sysno = bo->kind == FAKE_PEER ? fake_reach(bo) : 0;
	if (sysno)
		return sysno;
	m = (struct hw_map){ .va = a->va, .pa = bo->pa, .bytes = bo->bytes,
			     .flags = (a->flags ? HW_MAP_WRITE : 0) |
				      (bo->kind == FAKE_HBM ? 0 : HW_MAP_HOST) };
	sysno = fake_request((struct hw_sqe){ .op = HW_MAP, .id = c->hw_id }, &m, sizeof(m),
			     NULL);
	if (!sysno) {
		c->map[i] = (struct fake_mapping){ .va = a->va, .bo = bo };
		bo->refs++;
		all->n_done = 1;
	}
	return sysno;
}

/* A vector of its own, behind those of queues. */
static unsigned fake_trace_vector(struct fake_file *f, const struct fake_ctx *c)
{
	return FAKE_QUEUES + 1 + (unsigned)(c - f->ctx);
}

static void fake_trace_forget(struct fake_file *f, struct fake_ctx *c)
{
	if (!c->trace_event)
		return;
	sim_irq_fd(fake.now->dev, fake_trace_vector(f, c), -1, NULL);
	close(c->trace_event);
	c->trace_event = 0;
}

static int fake_unmap(struct fake_file *f, struct drm_tessera_unmap *a)
{
	struct fake_ctx *c;
	struct hw_map m = { .va = a->va };
	unsigned i = 0;
	int sysno = fake_find(f, a->ctx, &c);

	if (sysno)
		return sysno;
	while (i < FAKE_BOS && (!c->map[i].bo || c->map[i].va != a->va))
		i++;
	if (i == FAKE_BOS)
		return ENOENT;
	if (fake.is_busy || (c->trace_event && c->trace_va == a->va))
		return EBUSY;
	m.bytes = c->map[i].bo->bytes;
	sysno = c->map[i].is_hole ? 0 :
		fake_request((struct hw_sqe){ .op = HW_UNMAP, .id = c->hw_id }, &m, sizeof(m),
			     NULL);
	if (!sysno) {
		fake_bo_put(c->map[i].bo);
		c->map[i] = (struct fake_mapping){ 0 };
	}
	return sysno;
}

static void fake_queue_end(struct fake_queue *q, unsigned vector)
{
	if (!q->is_used)
		return;
	if (q->generation == fake.now->generation)
		fake_request((struct hw_sqe){ .op = HW_QUEUE_DESTROY, .id = (uint16_t)q->hw_id },
			     NULL, 0, NULL);
	sim_irq_fd(fake.now->dev, vector, -1, NULL);
	if (q->event >= 0)
		close(q->event);
	fake_bo_put(q->sq);
	fake_bo_put(q->cq);
	fake_bo_put(q->bell);
	q->is_used = false;
}

static void fake_ctx_end(struct fake_file *f, uint32_t id)
{
	struct fake_ctx *c = fake_ctx(f, id);

	for (unsigned i = 0; i < FAKE_QUEUES; i++)
		if (f->queue[i].ctx == id)
			fake_queue_end(&f->queue[i], i + 1);
	if (!fake_is_lost(c))
		fake_request((struct hw_sqe){ .op = HW_CTX_DESTROY, .id = c->hw_id }, NULL, 0,
			     NULL);
	fake_trace_forget(f, c);
	for (unsigned i = 0; i < FAKE_BOS; i++)
		fake_bo_put(c->map[i].bo);
	fake_bo_put(c->wake);
	*c = (struct fake_ctx){ 0 };
}

/* ---- queues ---- */

static int fake_queue_create(struct fake_file *f, struct drm_tessera_queue_create *a)
{
	struct hw_queue hw = { .n_entries = a->n_entries, .cls = a->cls,
			       .priority = a->priority, .limit_ns = a->limit_ns };
	struct hw_cqe cqe = { 0 };
	struct fake_queue *q;
	struct fake_ctx *c;
	unsigned i = 0;
	int sysno = fake_find(f, a->ctx, &c);

	if (a->flags != DRM_TESSERA_QUEUE_USER || a->zero || a->zero2 || a->eventfd < -1)
		return EINVAL;
	while (i < FAKE_QUEUES && f->queue[i].is_used)
		i++;
	if (sysno || i == FAKE_QUEUES)
		return sysno ? sysno : ENOSPC;
	q = &f->queue[i];
	*q = (struct fake_queue){ .is_used = true, .ctx = a->ctx, .event = -1 };
	if (a->eventfd >= 0 && (q->event = dup(a->eventfd)) < 0) {
		q->is_used = false;
		return EBADF;
	}
	q->sq = fake_memory_bo(FAKE_RING, a->n_entries * sizeof(struct hw_sqe));
	q->cq = fake_memory_bo(FAKE_RING_READ_ONLY, a->n_entries * sizeof(struct hw_cqe));
	q->bell = fake_memory_bo(FAKE_BELL, FAKE_PAGE);
	hw.sq_iova = q->sq->pa;
	hw.cq_iova = q->cq->pa;
	hw.ctx = c->hw_id;
	hw.vector = i + 1;
	sim_irq_fd(fake.now->dev, i + 1, q->event, NULL);
	sysno = fake_request((struct hw_sqe){ .op = HW_QUEUE_CREATE }, &hw, sizeof(hw), &cqe);
	if (sysno) {
		fake_queue_end(q, i + 1);
		return sysno;
	}
	q->hw_id = (unsigned)cqe.value;
	q->generation = fake.now->generation;
	a->id = i + 1;
	a->sq_offset = q->sq->offset;
	a->cq_offset = q->cq->offset;
	a->doorbell_offset = q->bell->offset;
	a->sq_handle = fake_handle(f, q->sq);
	a->cq_handle = fake_handle(f, q->cq);
	a->doorbell_handle = fake_handle(f, q->bell);
	q->sq->refs++;
	q->cq->refs++;
	q->bell->refs++;
	return 0;
}

#include "tests/fake/accel_fake_peers.h"

#endif
