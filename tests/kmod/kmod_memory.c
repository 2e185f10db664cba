/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of memory as it is given out: always zero, whoever clears it and whatever comes
 * between. kmod_test.c runs them.
 */
#include "tests/kmod/kmod.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define MiB (1ull << 20)

/* Bytes of HBM that were cleared so far. */
struct cleared {
	uint64_t by_device, by_cpu;
};

static struct cleared cleared(void)
{
	struct cleared c;
	char path[512];

	debug_path(path, sizeof(path), "hbm");
	c.by_device = strtoull(read_from(path, "by the device: ") + 15, NULL, 10);
	c.by_cpu = strtoull(read_from(path, "by the CPU: ") + 12, NULL, 10);
	return c;
}

static uint64_t largest_free(void)
{
	struct drm_tessera_memory m;

	query_all(DRM_TESSERA_QUERY_MEMORY, 0, &m, sizeof(m));
	return m.hbm_largest_free;
}

/* Writes to all of HBM that is free, and gives it back. */
static void dirty_hbm(void)
{
	struct drm_tessera_ctx_create ctx = ctx_create();
	uint32_t q = queue_create(ctx.id, HW_CLASS_DMA, 0, -1).id;
	struct drm_tessera_bo_create b = bo_create(largest_free(), DRM_TESSERA_BO_HBM, ctx.id);
	struct hw_sqe d = fill(b.va, b.size, 0xd1d2d3d4d5d6d7d8);

	SAME(run(q, &d, 1), 0);
	CHECK(!ctx_destroy(ctx.id));
	CHECK(!bo_close(b.handle));
}

/* Every 256th byte and the last page. */
static void expect_zeros(struct drm_tessera_bo_create b)
{
	uint64_t *p = map_at(b.mmap_offset, b.size), n = b.size / 8;

	for (uint64_t i = 0; i < n; i += i < n - 512 ? 32 : 1)
		if (p[i])
			fail(__LINE__, "word %llu of %llu is 0x%llx", (unsigned long long)i,
			     (unsigned long long)n, (unsigned long long)p[i]);
	munmap(p, b.size);
}

/* A descriptor that keeps the DMA engine until it is stopped: of a higher priority than what
 * clears memory, which has no turn before it ends. */
struct endless {
	struct drm_tessera_ctx_create ctx;
	struct drm_tessera_bo_create b;
};

static struct endless endless_begin(void)
{
	struct endless e = { .ctx = ctx_create() };
	struct drm_tessera_queue_create q = { .ctx = e.ctx.id, .cls = HW_CLASS_DMA,
					      .n_entries = 64, .priority = 3, .eventfd = -1 };
	struct hw_sqe d = { .op = HW_COPY_2D };
	volatile uint64_t *p;

	CHECK(!ioctl(fd, DRM_IOCTL_TESSERA_QUEUE_CREATE, &q));
	e.b = bo_create(PAGE, DRM_TESSERA_BO_SYSTEM, e.ctx.id);
	p = map_at(e.b.mmap_offset, PAGE);
	memcpy((void *)(uintptr_t)&p[64], &(struct hw_copy_2d){
		.src = e.b.va, .dst = e.b.va + 64, .row_bytes = 8, .rows = 1ull << 50,
		.planes = 1 }, sizeof(struct hw_copy_2d));
	p[0] = 1;
	d.u.copy.src = e.b.va + 512;
	submit(q.id, &d, 1);
	for (int64_t end = now_ns() + 10 * SECOND; !p[8] && now_ns() < end; usleep(1000))
		;
	SAME(p[8], 1);
	munmap((void *)(uintptr_t)p, PAGE);
	return e;
}

static void endless_end(struct endless e)
{
	CHECK(!ctx_destroy(e.ctx.id));
	CHECK(!bo_close(e.b.handle));
}

void the_device_clears_large_buffers(void)
{
	struct cleared before, after;
	struct drm_tessera_bo_create b;

	dirty_hbm();
	before = cleared();
	b = bo_create(largest_free(), DRM_TESSERA_BO_HBM, 0);
	after = cleared();
	SAME(after.by_device - before.by_device, b.size);
	SAME(after.by_cpu, before.by_cpu);
	expect_zeros(b);
	CHECK(!bo_close(b.handle));
	/* Little is the CPU's. */
	b = bo_create(8 * PAGE, DRM_TESSERA_BO_HBM, 0);
	expect_zeros(b);
	before = cleared();
	SAME(after.by_device, before.by_device);
	SAME(before.by_cpu - after.by_cpu, b.size);
	CHECK(!bo_close(b.handle));
}

void a_busy_engine_leaves_clearing_to_the_cpu(void)
{
	struct cleared before, after;
	struct drm_tessera_bo_create b;
	struct endless e;

	dirty_hbm();
	e = endless_begin();
	before = cleared();
	b = bo_create(20 * MiB, DRM_TESSERA_BO_HBM, 0);
	after = cleared();
	SAME(after.by_cpu - before.by_cpu, b.size);
	SAME(after.by_device, before.by_device);
	expect_zeros(b);
	CHECK(!bo_close(b.handle));
	endless_end(e);
	/* And the device is asked again. */
	b = bo_create(4 * MiB, DRM_TESSERA_BO_HBM, 0);
	SAME(cleared().by_device - after.by_device, b.size);
	expect_zeros(b);
	CHECK(!bo_close(b.handle));
}

struct creation {
	uint64_t bytes;
	struct drm_tessera_bo_create b;
	int error;
};

static void *create(void *arg)
{
	struct creation *c = arg;

	c->b = (struct drm_tessera_bo_create){ .size = c->bytes, .flags = DRM_TESSERA_BO_HBM };
	c->error = ioctl(fd, DRM_IOCTL_TESSERA_BO_CREATE, &c->b) ? errno : 0;
	return NULL;
}

void a_reset_while_memory_is_cleared_leaves_it_clear(void)
{
	for (unsigned i = 0; i < 3; i++) {
		struct creation c = { .bytes = 32 * MiB };
		struct endless e;
		pthread_t thread;

		dirty_hbm();
		e = endless_begin();
		CHECK(!pthread_create(&thread, NULL, create, &c));
		usleep(50000 * i);
		reset_function();
		pthread_join(thread, NULL);
		SAME(c.error, 0);
		expect_zeros(c.b);
		endless_end(e);
		CHECK(!bo_close(c.b.handle));
	}
}

/* While the function is reset its BAR is off, and what the CPU stores there is lost. */
void stores_that_a_reset_swallows_are_made_again(void)
{
	struct creation c = { .bytes = 192 * MiB };
	uint64_t before;
	struct endless e;
	pthread_t thread;

	dirty_hbm();
	e = endless_begin();
	before = cleared().by_cpu;
	CHECK(!pthread_create(&thread, NULL, create, &c));
	for (int64_t end = now_ns() + 20 * SECOND; cleared().by_cpu == before &&
	     now_ns() < end; usleep(1000))
		;
	reset_function();
	pthread_join(thread, NULL);
	SAME(c.error, 0);
	/* By whomever: after the reset the engine is idle. */
	CHECK(cleared().by_cpu > before);
	expect_zeros(c.b);
	endless_end(e);
	CHECK(!bo_close(c.b.handle));
}

/*
 * As many bindings as a program may have, their table in user memory whose pages lie
 * wherever they came from: without an IOMMU the device sees it in pieces.
 */
void a_bindings_table_may_lie_in_pieces(void)
{
	enum { N = ISA_MAX_BINDINGS };
	const uint64_t bytes = N * sizeof(struct hw_binding), half = bytes / 2;
	struct drm_tessera_ctx_create ctx = ctx_create();
	struct drm_tessera_bo_create b = bo_create(PAGE, DRM_TESSERA_BO_HBM, ctx.id);
	uint32_t q = queue_create(ctx.id, HW_CLASS_COMPUTE, 0, -1).id;
	uint64_t *hbm = map_at(b.mmap_offset, PAGE), va = 0;
	struct hw_binding *table = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
					MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct hw_program_binding *want = calloc(N, sizeof(*want));
	struct drm_tessera_bo_userptr u = { .address = P(table), .size = bytes };
	struct isa_scalar code[3] = {
		{ .insn = { .op = ISA_LI, .bytes = sizeof(*code) }, .rd = 1, .imm = 4711 },
		{ .insn = { .op = ISA_ST, .bytes = sizeof(*code) }, .rb = 1,
		  .elem = ELEM_U64, .binding = N - 1, .imm = 8 },
		{ .insn = { .op = ISA_HALT, .bytes = sizeof(*code) } },
	};
	struct drm_tessera_program_create p = {
		.ctx = ctx.id, .code_va = b.va, .code_bytes = sizeof(code),
		.bindings = P(want), .n_bindings = N,
		.binding_bytes = sizeof(*want),
	};
	struct drm_tessera_bo_info info = { 0 };
	struct hw_sqe d = { .op = HW_EXECUTE };

	/* From the end: pages that come one after the other do not follow one another. */
	for (unsigned i = N; i--;) {
		table[i] = (struct hw_binding){ b.va + 1024 + i % 16 * 64, 64 };
		want[i] = (struct hw_program_binding){ 64, HW_BIND_WRITE, 0 };
	}
	memcpy(hbm, code, sizeof(code));
	CHECK(!ioctl(fd, DRM_IOCTL_TESSERA_PROGRAM_CREATE, &p));
	free(want);
	CHECK(!ioctl(fd, DRM_IOCTL_TESSERA_BO_USERPTR, &u));
	info.handle = u.handle;
	CHECK(!ioctl(fd, DRM_IOCTL_TESSERA_BO_INFO, &info));
	printf("# the device sees the table in %u pieces\n", info.segments);
	CHECK(!map(ctx.id, u.handle, &va, 0));
	d.u.execute.bindings = va;
	d.u.execute.program = p.id;
	d.u.execute.n_bindings = N;
	SAME(run(q, &d, 1), 0);
	SAME(hbm[(1024 + (N - 1) % 16 * 64 + 8) / 8], 4711);
	/* Behind an IOMMU too, if its halves are mapped the other way round. */
	CHECK(!unmap(ctx.id, va));
	for (unsigned i = 0; i < 2; i++) {
		struct drm_tessera_map_op op = { .handle = u.handle, .offset = i * half,
						 .bytes = half, .va = va + (1 - i) * half };

		CHECK(!map_op(ctx.id, &op));
	}
	SAME(run(q, &d, 1), 0);
	/* A table that is not all there is a fault. */
	CHECK(!unmap(ctx.id, va + half));
	SAME(run(q, &d, 1), EINVAL);
	munmap(hbm, PAGE);
	munmap(table, bytes);
	CHECK(!ctx_destroy(ctx.id));
}

void killing_who_waits_for_memory_leaves_nothing(void)
{
	struct drm_tessera_memory before, after;
	struct cleared c;
	struct endless e;
	struct drm_tessera_bo_create b;

	e = endless_begin();
	query_all(DRM_TESSERA_QUERY_MEMORY, 0, &before, sizeof(before));
	for (unsigned i = 0; i < 5; i++) {
		pid_t child = fork();

		CHECK(child >= 0);
		if (!child) {
			struct creation doomed = { .bytes = 32 * MiB };

			fd = open(NODE, O_RDWR);
			create(&doomed);
			pause();
		}
		usleep(100000);
		kill(child, SIGKILL);
		CHECK(waitpid(child, NULL, 0) == child);
	}
	query_all(DRM_TESSERA_QUERY_MEMORY, 0, &after, sizeof(after));
	SAME(after.hbm_used, before.hbm_used);
	endless_end(e);
	c = cleared();
	b = bo_create(32 * MiB, DRM_TESSERA_BO_HBM, 0);
	SAME(cleared().by_device - c.by_device, b.size);
	expect_zeros(b);
	CHECK(!bo_close(b.handle));
}
