/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HBM of one device that another reaches by itself: every word comes across, both ways, and what
 * becomes of it when either device is reset or loses its driver, or a user dies.
 *
 * fd is the importer's node, as the wrappers want it; the exporter's is named.
 */
#include "tests/kmod/kmod_tenants.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define MiB (1ull << 20)

/* HBM of device `owner`, and a context of the other one that has it mapped. */
struct pair {
	int owner_fd, dma_buf;
	struct drm_tessera_bo_create lent, own;	/* own: the importer's, in system memory */
	volatile uint64_t *words, *seen;	/* as the CPU sees the two */
	uint32_t handle, queue;
	struct drm_tessera_ctx_create ctx;
	uint64_t va;				/* where the context sees what is lent */
};

static uint64_t word(uint64_t i, uint64_t seed)
{
	return (i + 1) * 0x9e3779b97f4a7c15 ^ seed << 40;
}

static int open_node(unsigned device)
{
	int node = open(device ? OTHER_NODE : NODE, O_RDWR | O_CLOEXEC);

	CHECK(node >= 0);
	return node;
}

static int export_from(int node, uint32_t handle)
{
	struct drm_prime_handle prime = { .handle = handle, .fd = -1,
					  .flags = DRM_CLOEXEC | DRM_RDWR };

	CHECK(!ioctl(node, DRM_IOCTL_PRIME_HANDLE_TO_FD, &prime));
	return prime.fd;
}

/* Into fd's device. */
static int import(int dma_buf, uint32_t *handle)
{
	struct drm_prime_handle prime = { .fd = dma_buf };
	int r = ioctl(fd, DRM_IOCTL_PRIME_FD_TO_HANDLE, &prime);

	*handle = prime.handle;
	return r;
}

/* Leaves fd at the importer's node. */
static void pair_open(struct pair *p, unsigned owner, uint64_t bytes)
{
	memset(p, 0, sizeof(*p));
	fd = p->owner_fd = open_node(owner);
	p->lent = bo_create(bytes, DRM_TESSERA_BO_HBM, 0);
	p->words = map_at(p->lent.mmap_offset, bytes);
	p->dma_buf = export_from(fd, p->lent.handle);
	fd = open_node(!owner);
	CHECK(!import(p->dma_buf, &p->handle));
	p->ctx = ctx_create();
	p->own = bo_create(bytes, DRM_TESSERA_BO_SYSTEM, p->ctx.id);
	p->seen = map_at(p->own.mmap_offset, bytes);
	p->queue = queue_create(p->ctx.id, HW_CLASS_DMA, 0, -1).id;
	CHECK(!map(p->ctx.id, p->handle, &p->va, DRM_TESSERA_MAP_WRITE));
}

static void pair_close(struct pair *p)
{
	munmap((void *)(uintptr_t)p->words, p->lent.size);
	munmap((void *)(uintptr_t)p->seen, p->own.size);
	close(p->dma_buf);
	close(p->owner_fd);
	close(fd);
}

static uint64_t count_wrong(volatile uint64_t *p, uint64_t bytes, uint64_t seed)
{
	uint64_t wrong = 0;

	for (uint64_t i = 0; i < bytes / 8; i++)
		wrong += p[i] != word(i, seed);
	return wrong;
}

static void put_words(volatile uint64_t *p, uint64_t bytes, uint64_t seed)
{
	for (uint64_t i = 0; i < bytes / 8; i++)
		p[i] = word(i, seed);
}

/* All of what is lent, both ways. */
static void check_pair(struct pair *p, uint64_t seed)
{
	uint64_t bytes = p->lent.size;
	struct hw_sqe d = copy(p->own.va, p->va, bytes);

	put_words(p->words, bytes, seed);
	memset((void *)(uintptr_t)p->seen, 0, bytes);
	SAME(run(p->queue, &d, 1), 0);
	SAME(count_wrong(p->seen, bytes, seed), 0);
	put_words(p->seen, bytes, ~seed);
	d = copy(p->va, p->own.va, bytes);
	SAME(run(p->queue, &d, 1), 0);
	SAME(count_wrong(p->words, bytes, ~seed), 0);
}

/* In the log of the kernel. */
static bool is_logged(const char *text)
{
	static char log[1 << 20];
	long n = syscall(SYS_syslog, 3, log, sizeof(log) - 1);

	CHECK(n > 0);
	log[n] = 0;
	return strstr(log, text);
}

void a_peer_without_a_way_is_refused(void)
{
	struct drm_tessera_bo_create b = bo_create(PAGE, DRM_TESSERA_BO_HBM, 0);
	int dma_buf = export_from(fd, b.handle), own = fd;
	uint32_t handle, again;

	fd = open_node(1);
	REFUSES(import(dma_buf, &handle), EOPNOTSUPP);
	CHECK(is_logged("cannot reach HBM: "));
	/* Within the device there is nothing to cross. */
	close(fd);
	fd = open_node(0);
	CHECK(!import(dma_buf, &again));
	close(fd);
	fd = own;
	close(dma_buf);
}

void peer_memory_is_read_and_written(void)
{
	uint64_t sizes[] = { PAGE, 3 * PAGE, 4 * MiB, 9 * MiB + PAGE };
	struct pair p;

	for (unsigned i = 0; i < 8; i++) {
		pair_open(&p, i % 2, sizes[i / 2]);
		check_pair(&p, i);
		pair_close(&p);
	}
}

/* A mapping of some pages within, where the va is the caller's choice. */
void peer_memory_is_mapped_in_parts(void)
{
	struct drm_tessera_map_op op = { .offset = 5 * PAGE, .bytes = 2 * PAGE,
					 .va = 1ull << 40 };
	struct drm_tessera_bo_info info = { 0 };
	struct pair p;
	struct hw_sqe d;

	pair_open(&p, 0, 16 * PAGE);
	put_words(p.words, 16 * PAGE, 7);
	info.handle = op.handle = p.handle;
	CHECK(!ioctl(fd, DRM_IOCTL_TESSERA_BO_INFO, &info));
	SAME(info.flags, DRM_TESSERA_BO_IMPORTED);
	SAME(info.size, 16 * PAGE);
	CHECK(!map_op(p.ctx.id, &op));
	d = copy(p.own.va, op.va, 2 * PAGE);
	SAME(run(p.queue, &d, 1), 0);
	for (uint64_t i = 0; i < 2 * PAGE / 8; i++)
		SAME(p.seen[i], word(i + 5 * PAGE / 8, 7));
	/* Not written where WRITE is missing, nor past the end. */
	d = copy(op.va, p.own.va, PAGE);
	SAME(run(p.queue, &d, 1), EFAULT);
	d = copy(p.own.va, op.va + PAGE, 2 * PAGE);
	SAME(run(p.queue, &d, 1), EFAULT);
	SAME(count_wrong(p.words, 16 * PAGE, 7), 0);
	op.va = 0;
	op.bytes = 12 * PAGE;
	REFUSES(map_op(p.ctx.id, &op), EINVAL);
	REFUSES(trace_start(p.ctx.id, p.va, 64, 1, -1), EINVAL);
	pair_close(&p);
}
