/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel driver from a program's side, without the HAL: every ioctl on
 * /dev/accel/accel0, what it gives and what it refuses. guest.sh runs it in a
 * virtual machine; it needs root for faults that are injected.
 *
 *     kmod_test [NAME]        all tests, or those whose name has NAME in it
 */
#include "tests/kmod/kmod.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static void the_node_is_tessera_and_refuses_masters(void)
{
	char name[32] = "";
	struct drm_version v = { .name = name, .name_len = sizeof(name) - 1 };
	struct drm_auth auth = { 0 };
	struct drm_unique unique = { 0 };

	CHECK(!ioctl(fd, DRM_IOCTL_VERSION, &v));
	CHECK(!strcmp(name, "tessera"));
	REFUSES(ioctl(fd, DRM_IOCTL_GET_MAGIC, &auth), EACCES);
	REFUSES(ioctl(fd, DRM_IOCTL_GET_UNIQUE, &unique), EACCES);
	REFUSES(ioctl(fd, DRM_IOCTL_SET_MASTER, 0), EACCES);
}

static void queries_negotiate_their_size(void)
{
	struct drm_tessera_device d = { 0 };
	struct hw_identify id = { 0 };
	struct drm_tessera_query bad = { .type = DRM_TESSERA_QUERY_DEVICE,
					 .record_bytes = 64 };
	unsigned char part[16];
	uint32_t n = 0;

	CHECK(!query(DRM_TESSERA_QUERY_DEVICE, 0, NULL, &n));
	SAME(n, sizeof(d));
	query_all(DRM_TESSERA_QUERY_DEVICE, 0, &d, sizeof(d));
	SAME(d.abi, DRM_TESSERA_ABI);
	SAME(d.is_usable, 1);
	SAME(d.page_bytes, PAGE);
	CHECK(d.hbm_bytes >= 1 << 20);
	query_all(DRM_TESSERA_QUERY_IDENTIFY, 0, &id, sizeof(id));
	SAME(id.magic, HW_IDENTIFY_MAGIC);
	SAME(id.hbm_bytes, d.hbm_bytes);
	memset(part, 0xee, sizeof(part));
	n = 4;
	CHECK(!query(DRM_TESSERA_QUERY_DEVICE, 0, part, &n));
	SAME(n, sizeof(d));
	CHECK(!memcmp(part, &d, 4) && part[4] == 0xee);
	REFUSES(ioctl(fd, DRM_IOCTL_TESSERA_QUERY, &bad), EINVAL);
	n = 4;
	REFUSES(query(99, 0, part, &n), EINVAL);
	REFUSES(query(DRM_TESSERA_QUERY_DEVICE, 1, part, &n), EINVAL);
	REFUSES(query(DRM_TESSERA_QUERY_ERROR, 999, part, &n), ENOENT);
	REFUSES(query(DRM_TESSERA_QUERY_DEVICE, 0, (void *)8, &n), EFAULT);
}

static void buffers_are_zero_and_keep_what_is_written(void)
{
	static const uint32_t kinds[] = {
		DRM_TESSERA_BO_HBM, DRM_TESSERA_BO_SYSTEM,
		DRM_TESSERA_BO_SYSTEM | DRM_TESSERA_BO_CONTIGUOUS,
	};
	const uint64_t size = 3 << 20;
	struct drm_tessera_memory before, during, after;
	struct drm_tessera_bo_info info;

	for (unsigned k = 0; k < 3; k++) {
		struct drm_tessera_bo_create b;
		uint64_t *p;

		query_all(DRM_TESSERA_QUERY_MEMORY, 0, &before, sizeof(before));
		b = bo_create(size - 100, kinds[k], 0);
		SAME(b.size, size);
		query_all(DRM_TESSERA_QUERY_MEMORY, 0, &during, sizeof(during));
		SAME(k ? during.system_used - before.system_used :
		     during.hbm_used - before.hbm_used, size);
		SAME(k ? during.system_used_by_file : during.hbm_used_by_file, size);
		p = map_at(b.mmap_offset, size);
		for (uint64_t i = 0; i < size / 8; i++)
			if (p[i])
				fail(__LINE__, "word %u of kind %u is not 0", (unsigned)i, k);
		for (uint64_t i = 0; i < size / 8; i += 512)
			p[i] = i * 3 + k;
		munmap(p, size);
		/* The middle alone, through a mapping that is split. */
		p = map_at(b.mmap_offset, size);
		munmap(p, 1 << 20);
		p += 1 << 17;
		SAME(*p, (1 << 17) * 3 + k);
		munmap(p, 2 << 20);
		info = (struct drm_tessera_bo_info){ .handle = b.handle };
		CHECK(!ioctl(fd, DRM_IOCTL_TESSERA_BO_INFO, &info));
		SAME(info.size, size);
		SAME(info.mmap_offset, b.mmap_offset);
		CHECK(info.flags & kinds[k] && info.segments >= 1);
		p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd,
			 (off_t)b.mmap_offset);
		CHECK(p == MAP_FAILED);
		CHECK(!bo_close(b.handle));
		REFUSES(bo_close(b.handle), EINVAL);
		query_all(DRM_TESSERA_QUERY_MEMORY, 0, &after, sizeof(after));
		SAME(after.system_used + after.hbm_used,
		     before.system_used + before.hbm_used);
	}
}

static void bad_buffers_are_refused(void)
{
	struct drm_tessera_bo_create b = { .size = 0, .flags = DRM_TESSERA_BO_HBM };
	struct drm_tessera_bo_userptr u = { .address = PAGE + 1, .size = PAGE };
	struct drm_tessera_memory m;

	REFUSES(ioctl(fd, DRM_IOCTL_TESSERA_BO_CREATE, &b), EINVAL);
	b.size = ~0ull;
	REFUSES(ioctl(fd, DRM_IOCTL_TESSERA_BO_CREATE, &b), EINVAL);
	b.size = PAGE;
	b.flags = DRM_TESSERA_BO_HBM | DRM_TESSERA_BO_SYSTEM;
	REFUSES(ioctl(fd, DRM_IOCTL_TESSERA_BO_CREATE, &b), EINVAL);
	b.flags = 0;
	REFUSES(ioctl(fd, DRM_IOCTL_TESSERA_BO_CREATE, &b), EINVAL);
	b.flags = DRM_TESSERA_BO_HBM;
	b.ctx = 77;
	REFUSES(ioctl(fd, DRM_IOCTL_TESSERA_BO_CREATE, &b), ENOENT);
	b.ctx = 0;
	query_all(DRM_TESSERA_QUERY_MEMORY, 0, &m, sizeof(m));
	b.size = m.hbm_largest_free + PAGE;
	REFUSES(ioctl(fd, DRM_IOCTL_TESSERA_BO_CREATE, &b), ENOSPC);
	b.size = 1ull << 40;
	b.flags = DRM_TESSERA_BO_SYSTEM;
	CHECK(ioctl(fd, DRM_IOCTL_TESSERA_BO_CREATE, &b) && (errno == ENOMEM ||
							     errno == EINVAL));
	REFUSES(ioctl(fd, DRM_IOCTL_TESSERA_BO_USERPTR, &u), EINVAL);
	u.address = PAGE;
	REFUSES(ioctl(fd, DRM_IOCTL_TESSERA_BO_USERPTR, &u), EFAULT);
}

static void maps_hold_what_they_promise(void)
{
	uint32_t ctx = ctx_create().id;
	struct drm_tessera_bo_create b = bo_create(4 * PAGE, DRM_TESSERA_BO_HBM, 0);
	struct drm_tessera_map_op part = { .handle = b.handle, .offset = PAGE,
					.bytes = 2 * PAGE };
	uint64_t va = 0, fixed = 1ull << 48, other;

	CHECK(!map(ctx, b.handle, &va, DRM_TESSERA_MAP_WRITE));
	CHECK(!map(ctx, b.handle, &fixed, 0));
	SAME(fixed, 1ull << 48);
	other = fixed + PAGE;
	REFUSES(map(ctx, b.handle, &other, 0), EEXIST);
	other = 17;
	REFUSES(map(ctx, b.handle, &other, 0), EINVAL);
	other = ~0xfffull;
	REFUSES(map(ctx, b.handle, &other, 0), EINVAL);
	other = 0;
	REFUSES(map(ctx, 4242, &other, 0), ENOENT);
	REFUSES(map(4242, b.handle, &other, 0), ENOENT);
	REFUSES(map(ctx, b.handle, &other, 8), EINVAL);
	CHECK(!map_op(ctx, &part));
	part.bytes = 4 * PAGE;
	REFUSES(map_op(ctx, &part), EINVAL);
	CHECK(!unmap(ctx, part.va));
	REFUSES(unmap(ctx, part.va), ENOENT);
	REFUSES(unmap(ctx, fixed + PAGE), ENOENT);
	REFUSES(unmap(ctx, 0x7fffffffffffffffull), EINVAL);
	REFUSES(unmap(ctx, ~0xfffull), ENOENT);
	REFUSES(unmap(ctx, 0x7ffffffffffff000ull), ENOENT);
	CHECK(!unmap(ctx, fixed));
	CHECK(!bo_close(b.handle));
	CHECK(!unmap(ctx, va));
	CHECK(!ctx_destroy(ctx));
	REFUSES(ctx_destroy(ctx), ENOENT);
}

static void a_queue_fills_and_copies(void)
{
	struct drm_tessera_ctx_create ctx = ctx_create();
	struct drm_tessera_bo_create hbm = bo_create(1 << 20, DRM_TESSERA_BO_HBM, ctx.id);
	struct drm_tessera_bo_create sys = bo_create(1 << 20, DRM_TESSERA_BO_SYSTEM, ctx.id);
	uint32_t q = queue_create(ctx.id, HW_CLASS_DMA, 0, -1).id;
	uint64_t *p = map_at(sys.mmap_offset, 1 << 20), point = 0;
	struct hw_sqe d[3] = {
		fill(hbm.va, 1 << 20, 0x1122334455667788ull),
		copy(sys.va, hbm.va, 1 << 20),
		{ .op = HW_NOP },
	};

	SAME(submit(q, d, 3), 1);
	CHECK(!wait_point(ctx.syncobj, 1, 10 * SECOND));
	for (unsigned i = 0; i < 1 << 17; i++)
		if (p[i] != 0x1122334455667788ull)
			fail(__LINE__, "word %u is 0x%llx", i, (unsigned long long)p[i]);
	/* More than the ring holds. */
	for (unsigned i = 0; i < 200; i++) {
		d[0] = fill(sys.va + i * 8, 8, i);
		point = submit(q, d, 1);
	}
	SAME(point, 201);
	CHECK(!wait_point(ctx.syncobj, point, 10 * SECOND));
	for (unsigned i = 0; i < 200; i++)
		SAME(p[i], i);
	munmap(p, 1 << 20);
	CHECK(!ctx_destroy(ctx.id));
	/* The timeline outlives its context. */
	CHECK(!wait_point(ctx.syncobj, 1, 0));
}

static void bad_submissions_are_refused(void)
{
	struct drm_tessera_ctx_create ctx = ctx_create();
	struct drm_tessera_queue_create q = { .ctx = ctx.id, .cls = HW_CLASS_DMA,
					      .n_entries = 3, .eventfd = -1 };
	uint32_t id = queue_create(ctx.id, HW_CLASS_DMA, 0, -1).id;
	struct hw_sqe d = { .op = HW_CTX_DESTROY };
	struct drm_tessera_sync sync = { .handle = 4242 };
	struct drm_tessera_submit s = { .queue = id, .n_descs = 1, .desc_bytes = 64,
					.descs = P(&d) };

	REFUSES(ioctl(fd, DRM_IOCTL_TESSERA_SUBMIT, &s), EINVAL);
	d = (struct hw_sqe){ .op = HW_NOP, .flags = 0x80 };
	REFUSES(ioctl(fd, DRM_IOCTL_TESSERA_SUBMIT, &s), EINVAL);
	d.flags = 0;
	s.n_descs = 65;
	REFUSES(ioctl(fd, DRM_IOCTL_TESSERA_SUBMIT, &s), EINVAL);
	s.n_descs = 0;
	REFUSES(ioctl(fd, DRM_IOCTL_TESSERA_SUBMIT, &s), EINVAL);
	s.n_descs = 1;
	s.desc_bytes = 32;
	REFUSES(ioctl(fd, DRM_IOCTL_TESSERA_SUBMIT, &s), EINVAL);
	s.desc_bytes = 64;
	s.descs = 8;
	REFUSES(ioctl(fd, DRM_IOCTL_TESSERA_SUBMIT, &s), EFAULT);
	s.descs = P(&d);
	s.queue = 4242;
	REFUSES(ioctl(fd, DRM_IOCTL_TESSERA_SUBMIT, &s), ENOENT);
	REFUSES(submit_full(id, &d, 1, &sync, 1, NULL, 0, NULL), ENOENT);
	REFUSES(submit_full(id, &d, 1, NULL, 0, &sync, 1, NULL), ENOENT);
	sync.handle = ctx.syncobj;
	sync.point = 9;
	REFUSES(submit_full(id, &d, 1, &sync, 1, NULL, 0, NULL), EINVAL);
	SAME(submit(id, &d, 1), 1);
	REFUSES(ioctl(fd, DRM_IOCTL_TESSERA_QUEUE_CREATE, &q), EINVAL);
	q.n_entries = 4;
	q.cls = 9;
	REFUSES(ioctl(fd, DRM_IOCTL_TESSERA_QUEUE_CREATE, &q), EINVAL);
	q.cls = HW_CLASS_DMA;
	q.eventfd = 4242;
	REFUSES(ioctl(fd, DRM_IOCTL_TESSERA_QUEUE_CREATE, &q), EINVAL);
	q.flags = DRM_TESSERA_QUEUE_USER;
	REFUSES(ioctl(fd, DRM_IOCTL_TESSERA_QUEUE_CREATE, &q), EBADF);
	CHECK(!queue_call(DRM_IOCTL_TESSERA_QUEUE_DESTROY, id));
	REFUSES(queue_call(DRM_IOCTL_TESSERA_QUEUE_DESTROY, id), ENOENT);
	CHECK(!ctx_destroy(ctx.id));
}

static void fences_order_queues(void)
{
	struct drm_tessera_ctx_create ctx = ctx_create();
	struct drm_tessera_bo_create b = bo_create(PAGE, DRM_TESSERA_BO_SYSTEM, ctx.id);
	uint32_t q1 = queue_create(ctx.id, HW_CLASS_DMA, 0, -1).id;
	uint32_t q2 = queue_create(ctx.id, HW_CLASS_COMPUTE, 0, -1).id;
	uint32_t gate = syncobj_create();
	struct drm_tessera_sync in = { .handle = gate, .point = 5 };
	struct drm_tessera_sync mid = { .handle = syncobj_create() };
	struct drm_syncobj_timeline_array signal = { .handles = P(&gate),
						     .points = P(&in.point),
						     .count_handles = 1 };
	volatile uint64_t *p = map_at(b.mmap_offset, PAGE);
	struct hw_sqe first = fill(b.va, 16, 1), second = copy(b.va + 8, b.va, 8);
	struct drm_syncobj_create pending = { 0 };
	struct drm_tessera_sync late = { .handle = 0 };
	uint64_t point;

	/* q2 runs after q1, which is submitted with a fence of its own. */
	CHECK(!submit_full(q1, &first, 1, NULL, 0, &mid, 1, NULL));
	CHECK(!submit_full(q2, &second, 1, &mid, 1, NULL, 0, &point));
	CHECK(!wait_point(ctx.syncobj, point, 10 * SECOND));
	SAME(p[1], 1);
	/* A point that nobody has submitted yet is refused, not awaited. */
	REFUSES(submit_full(q1, &first, 1, &in, 1, NULL, 0, NULL), EINVAL);
	CHECK(!ioctl(fd, DRM_IOCTL_SYNCOBJ_TIMELINE_SIGNAL, &signal));
	first = fill(b.va, 8, 2);
	CHECK(!submit_full(q1, &first, 1, &in, 1, NULL, 0, &point));
	CHECK(!wait_point(ctx.syncobj, point, 10 * SECOND));
	SAME(p[0], 2);
	/* What waits in a queue that ends fails, and the fences behind it. */
	first = endless(&b);
	CHECK(!ioctl(fd, DRM_IOCTL_SYNCOBJ_CREATE, &pending));
	late.handle = pending.handle;
	CHECK(!submit_full(q1, &first, 1, NULL, 0, &mid, 1, &point));
	CHECK(!submit_full(q2, &second, 1, &mid, 1, &late, 1, NULL));
	REFUSES(wait_point(late.handle, 0, SECOND / 10), ETIME);
	CHECK(!queue_call(DRM_IOCTL_TESSERA_QUEUE_DESTROY, q1));
	CHECK(!wait_point(late.handle, 0, 5 * SECOND));
	SAME(fence_errno(mid.handle), ECANCELED);
	SAME(fence_errno(late.handle), ECANCELED);
	/* Also by a point of the timeline that is still to come. */
	q1 = queue_create(ctx.id, HW_CLASS_DMA, 0, -1).id;
	in.handle = ctx.syncobj;
	in.point = submit(q1, &first, 1);
	CHECK(!submit_full(q2, &second, 1, &in, 1, &late, 1, NULL));
	CHECK(!queue_call(DRM_IOCTL_TESSERA_QUEUE_DESTROY, q1));
	CHECK(!wait_point(late.handle, 0, 5 * SECOND));
	SAME(fence_errno(late.handle), ECANCELED);
	munmap((void *)p, PAGE);
	CHECK(!ctx_destroy(ctx.id));
}

static void a_mapped_queue_works_without_ioctls(void)
{
	struct drm_tessera_ctx_create ctx = ctx_create();
	struct drm_tessera_bo_create b = bo_create(PAGE, DRM_TESSERA_BO_SYSTEM, ctx.id);
	volatile uint64_t *p = map_at(b.mmap_offset, PAGE);
	struct drm_prime_handle prime = { .fd = -1 };
	struct drm_tessera_map_op m = { 0 };
	struct hw_cqe c = { 0 };
	struct ring r;
	uint64_t n;

	ring_open(&r, ctx.id, HW_CLASS_DMA);
	for (unsigned i = 0; i < 150; i++) {
		struct hw_sqe d = fill(b.va, 8, i);

		d.flags = i % 50 == 49 ? HW_IRQ : 0;
		d.tag = i;
		ring_put(&r, d);
		if (i % 50 != 49)
			continue;
		for (unsigned k = i - 49; k <= i; k++) {
			CHECK(!ring_get(&r, &c, 5 * SECOND));
			SAME(c.tag, k);
			SAME(c.status, 0);
		}
		SAME(p[0], i);
	}
	/* The completions are the device's alone. */
	CHECK(mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
		   (off_t)r.q.cq_offset) == MAP_FAILED);
	CHECK(mprotect((void *)(uintptr_t)r.cq, PAGE, PROT_READ | PROT_WRITE));
	prime.handle = r.q.doorbell_handle;
	REFUSES(ioctl(fd, DRM_IOCTL_PRIME_HANDLE_TO_FD, &prime), EPERM);
	m.handle = r.q.sq_handle;
	REFUSES(map_op(ctx.id, &m), EINVAL);
	REFUSES(submit_full(r.q.id, &(struct hw_sqe){ 0 }, 1, NULL, 0, NULL, 0, NULL),
		ENOTTY);
	/* A fault stops it until it is reset. */
	r.sq[r.tail++ % r.q.n_entries] = copy(b.va, 0x1000, 8);
	ring_put(&r, fill(b.va, 8, 7777));
	CHECK(!ring_get(&r, &c, 5 * SECOND));
	SAME(c.status, HW_ST_MAP);
	CHECK(!queue_call(DRM_IOCTL_TESSERA_QUEUE_RESET, r.q.id));
	CHECK(!ring_get(&r, &c, 5 * SECOND));
	SAME(c.status, HW_ST_DROPPED);
	ring_put(&r, fill(b.va, 8, 8888));
	CHECK(!ring_get(&r, &c, 5 * SECOND));
	SAME(c.status, 0);
	SAME(p[0], 8888);
	CHECK(read(r.event, &n, 8) == 8 || errno == EAGAIN);
	/* After its end the doorbell leads nowhere, and nothing breaks. */
	CHECK(!queue_call(DRM_IOCTL_TESSERA_QUEUE_DESTROY, r.q.id));
	*r.bell = 12345;
	SAME(*r.bell, 12345);
	ring_close(&r);
	munmap((void *)p, PAGE);
	CHECK(!ctx_destroy(ctx.id));
}

static void user_memory_is_reached(void)
{
	struct drm_tessera_ctx_create ctx = ctx_create();
	uint32_t q = queue_create(ctx.id, HW_CLASS_DMA, 0, -1).id;
	uint64_t bytes = 256 * PAGE, va = 0, ro_va = 0;
	uint64_t *mine = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t *ro = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct drm_tessera_bo_userptr u = { .address = P(mine), .size = bytes };
	struct drm_tessera_bo_userptr r = { .address = P(ro), .size = PAGE,
					    .flags = DRM_TESSERA_BO_READ_ONLY };
	struct drm_tessera_bo_userptr bad = r;
	struct hw_sqe d[2];

	CHECK(mine != MAP_FAILED && ro != MAP_FAILED);
	ro[0] = 0xabcdef;
	CHECK(!mprotect(ro, PAGE, PROT_READ));
	CHECK(!ioctl(fd, DRM_IOCTL_TESSERA_BO_USERPTR, &u));
	CHECK(!ioctl(fd, DRM_IOCTL_TESSERA_BO_USERPTR, &r));
	bad.flags = 0;
	REFUSES(ioctl(fd, DRM_IOCTL_TESSERA_BO_USERPTR, &bad), EFAULT);
	CHECK(!map(ctx.id, u.handle, &va, DRM_TESSERA_MAP_WRITE));
	REFUSES(map(ctx.id, r.handle, &ro_va, DRM_TESSERA_MAP_WRITE), EACCES);
	CHECK(!map(ctx.id, r.handle, &ro_va, 0));
	d[0] = fill(va, bytes, 0x5555);
	d[1] = copy(va, ro_va, 8);
	SAME(run(q, d, 2), 0);
	SAME(mine[0], 0xabcdef);
	SAME(mine[1], 0x5555);
	SAME(mine[bytes / 8 - 1], 0x5555);
	d[0] = fill(ro_va, 8, 1);
	SAME(run(q, d, 1), EINVAL);
	SAME(ro[0], 0xabcdef);
	CHECK(!ctx_destroy(ctx.id));
	CHECK(!bo_close(u.handle) && !bo_close(r.handle));
	munmap(mine, bytes);
	munmap(ro, PAGE);
}

static void buffers_travel_between_files(void)
{
	static const uint32_t kinds[] = { DRM_TESSERA_BO_HBM, DRM_TESSERA_BO_SYSTEM };

	for (unsigned k = 0; k < 2; k++) {
		struct drm_tessera_bo_create b = bo_create(PAGE, kinds[k], 0);
		struct drm_prime_handle out = { .handle = b.handle, .fd = -1,
						.flags = DRM_CLOEXEC | DRM_RDWR };
		struct drm_prime_handle in = { 0 };
		struct drm_tessera_bo_info info = { 0 };
		volatile uint64_t *p = map_at(b.mmap_offset, PAGE), *q, *s;
		int other = open(NODE, O_RDWR);

		CHECK(other >= 0);
		CHECK(!ioctl(fd, DRM_IOCTL_PRIME_HANDLE_TO_FD, &out));
		in.fd = out.fd;
		CHECK(!ioctl(other, DRM_IOCTL_PRIME_FD_TO_HANDLE, &in));
		info.handle = in.handle;
		CHECK(!ioctl(other, DRM_IOCTL_TESSERA_BO_INFO, &info));
		SAME(info.size, PAGE);
		q = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, other, (off_t)info.mmap_offset);
		s = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, out.fd, 0);
		CHECK(q != MAP_FAILED && s != MAP_FAILED);
		p[3] = 99 + k;
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
		SAME(q[3], 99 + k);
		SAME(s[3], 99 + k);
		munmap((void *)q, PAGE);
		munmap((void *)s, PAGE);
		munmap((void *)p, PAGE);
		close(out.fd);
		close(other);
		CHECK(!bo_close(b.handle));
	}
}

static void files_do_not_see_each_other(void)
{
	struct drm_tessera_ctx_create ctx = ctx_create(), mine;
	struct drm_tessera_bo_create b = bo_create(PAGE, DRM_TESSERA_BO_HBM, ctx.id);
	uint32_t q = queue_create(ctx.id, HW_CLASS_DMA, 0, -1).id, mine_q;
	struct hw_sqe d = fill(b.va, PAGE, 1);
	int first = fd;

	fd = open(NODE, O_RDWR);
	CHECK(fd >= 0);
	REFUSES(ctx_destroy(ctx.id), ENOENT);
	REFUSES(submit_full(q, &d, 1, NULL, 0, NULL, 0, NULL), ENOENT);
	CHECK(mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, (off_t)b.mmap_offset) ==
	      MAP_FAILED);
	/* The other's addresses are nothing here. */
	mine = ctx_create();
	mine_q = queue_create(mine.id, HW_CLASS_DMA, 0, -1).id;
	SAME(run(mine_q, &d, 1), EINVAL);
	close(fd);
	fd = first;
	SAME(run(q, &d, 1), 0);
	CHECK(!ctx_destroy(ctx.id));
	CHECK(!bo_close(b.handle));
}

static void a_fault_fails_its_fence_and_no_other(void)
{
	struct drm_tessera_ctx_create ctx = ctx_create(), innocent = ctx_create();
	struct drm_tessera_bo_create b = bo_create(PAGE, DRM_TESSERA_BO_HBM, ctx.id);
	uint32_t q = queue_create(ctx.id, HW_CLASS_DMA, 0, -1).id;
	uint32_t quiet = queue_create(innocent.id, HW_CLASS_DMA, 0, -1).id;
	struct hw_sqe bad[2] = { fill(b.va, 8, 1), copy(b.va, 0x123000, 24) };
	struct hw_sqe good = fill(b.va, 8, 2), nop = { .op = HW_NOP };
	struct hw_fault faults[64];
	struct drm_tessera_error e;
	uint32_t n = sizeof(faults);

	SAME(run(q, bad, 2), EINVAL);
	SAME(run(quiet, &nop, 1), 0);
	SAME(run(q, &good, 1), 0);
	query_all(DRM_TESSERA_QUERY_ERROR, ctx.id, &e, sizeof(e));
	SAME(e.state, DRM_TESSERA_CTX_OK);
	SAME(e.n_faults, 1);
	SAME(e.last_status, HW_ST_MAP);
	CHECK(!query(DRM_TESSERA_QUERY_FAULTS, ctx.id, faults, &n));
	SAME(n, sizeof(*faults));
	SAME(faults[0].status, HW_ST_MAP);
	SAME(faults[0].va, 0x123000);
	SAME(faults[0].number, e.last_record);
	n = sizeof(faults);
	CHECK(!query(DRM_TESSERA_QUERY_FAULTS, innocent.id, faults, &n));
	SAME(n, 0);
	query_all(DRM_TESSERA_QUERY_ERROR, innocent.id, &e, sizeof(e));
	SAME(e.n_faults, 0);
	CHECK(!ctx_destroy(ctx.id) && !ctx_destroy(innocent.id));
	CHECK(!bo_close(b.handle));
}

struct program {
	struct isa_scalar insn[3];
};

static struct isa_scalar scalar(uint16_t op)
{
	return (struct isa_scalar){ .insn = { .op = op, .bytes = sizeof(struct isa_scalar) } };
}

static int program_create(uint32_t ctx, uint64_t va, uint64_t bytes,
			  struct drm_tessera_program_create *out)
{
	static const struct hw_program_binding binding = { .bytes = 64,
							   .access = HW_BIND_WRITE };

	*out = (struct drm_tessera_program_create){ .ctx = ctx, .code_va = va,
		.code_bytes = bytes, .bindings = P(&binding), .n_bindings = 1,
		.binding_bytes = sizeof(binding) };
	return ioctl(fd, DRM_IOCTL_TESSERA_PROGRAM_CREATE, out);
}

static void programs_run_and_bad_ones_are_refused(void)
{
	struct drm_tessera_ctx_create ctx = ctx_create();
	struct drm_tessera_bo_create b = bo_create(PAGE, DRM_TESSERA_BO_HBM, ctx.id);
	struct drm_tessera_bo_create sys = bo_create(PAGE, DRM_TESSERA_BO_SYSTEM |
						     DRM_TESSERA_BO_CONTIGUOUS, ctx.id);
	uint32_t q = queue_create(ctx.id, HW_CLASS_COMPUTE, 0, -1).id;
	uint8_t *hbm = (void *)map_at(b.mmap_offset, PAGE);
	volatile uint64_t *result = map_at(sys.mmap_offset, PAGE);
	struct program code = { { scalar(ISA_LI), scalar(ISA_ST), scalar(ISA_HALT) } };
	struct hw_binding binding = { .va = sys.va, .bytes = 64 };
	struct drm_tessera_program_create p;
	struct drm_tessera_program_destroy destroy;
	struct hw_sqe d = { .op = HW_EXECUTE };

	code.insn[0].rd = 1;
	code.insn[0].imm = 4711;
	code.insn[1].rb = 1;
	code.insn[1].elem = ELEM_U64;
	code.insn[1].imm = 8;
	memcpy(hbm, &code, sizeof(code));
	memcpy(hbm + 512, &binding, sizeof(binding));
	CHECK(!program_create(ctx.id, b.va, sizeof(code), &p));
	d.u.execute.bindings = b.va + 512;
	d.u.execute.program = p.id;
	d.u.execute.n_bindings = 1;
	SAME(run(q, &d, 1), 0);
	SAME(result[1], 4711);
	destroy = (struct drm_tessera_program_destroy){ .ctx = ctx.id, .id = p.id };
	CHECK(!ioctl(fd, DRM_IOCTL_TESSERA_PROGRAM_DESTROY, &destroy));
	REFUSES(ioctl(fd, DRM_IOCTL_TESSERA_PROGRAM_DESTROY, &destroy), ENOENT);
	code.insn[1].insn.op = 0x7777;
	memcpy(hbm, &code, sizeof(code));
	REFUSES(program_create(ctx.id, b.va, sizeof(code), &p), EINVAL);
	SAME(p.status, HW_ST_BAD_PROGRAM);
	SAME(p.detail, sizeof(struct isa_scalar));
	/* One that never ends meets its limit, and the queue goes on. */
	code.insn[0] = scalar(ISA_JMP);
	code.insn[1] = code.insn[2];
	memcpy(hbm, &code, sizeof(code));
	CHECK(!program_create(ctx.id, b.va, 2 * sizeof(struct isa_scalar), &p));
	d.u.execute.program = p.id;
	d.u.execute.limit_ns = 50000000;
	SAME(run(q, &d, 1), ETIME);
	d = (struct hw_sqe){ .op = HW_NOP };
	SAME(run(q, &d, 1), 0);
	munmap(hbm, PAGE);
	munmap((void *)result, PAGE);
	CHECK(!ctx_destroy(ctx.id));
}

static void telemetry_is_everywhere(void)
{
	struct drm_tessera_ctx_create ctx = ctx_create();
	struct drm_tessera_bo_create b = bo_create(1 << 20, DRM_TESSERA_BO_HBM, ctx.id);
	uint32_t q = queue_create(ctx.id, HW_CLASS_DMA, 0, -1).id;
	struct hw_sqe d = fill(b.va, 1 << 20, 3);
	struct hw_telemetry t = { 0 }, u = { 0 };
	struct hw_ras ras;
	char path[512];
	const char *text;

	query_all(DRM_TESSERA_QUERY_TELEMETRY, 0, &t, sizeof(t));
	for (unsigned i = 0; i < 20; i++)
		SAME(run(q, &d, 1), 0);
	usleep(100000);
	query_all(DRM_TESSERA_QUERY_TELEMETRY, 0, &u, sizeof(u));
	SAME(u.n_copy - t.n_copy, 20);
	CHECK(u.busy_dma_ns > t.busy_dma_ns && u.temperature_mc >= 35000);
	query_all(DRM_TESSERA_QUERY_RAS, 0, &ras, sizeof(ras));
	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	text = read_from(path, "drm-driver:");
	CHECK(strstr(text, "drm-driver:\ttessera"));
	text = read_from(path, "drm-engine-dma:");
	CHECK(strtoull(text + strlen("drm-engine-dma:"), NULL, 10) > 0);
	CHECK(*read_from(path, "drm-resident-hbm:"));
	debug_path(path, sizeof(path), "telemetry");
	CHECK(*read_from(path, "power_mw"));
	debug_path(path, sizeof(path), "registers");
	CHECK(*read_from(path, "HBM_BYTES"));
	debug_path(path, sizeof(path), "queues");
	CHECK(*read_from(path, "dma/"));
	debug_path(path, sizeof(path), "faults");
	read_from(path, "");
	debug_path(path, sizeof(path), "hbm");
	CHECK(*read_from(path, "total"));
	CHECK(strtoul(read_from("/sys/class/accel/accel0/device/hwmon/hwmon0/temp1_input",
				""), NULL, 10) >= 35000);
	CHECK(strtoul(read_from("/sys/class/accel/accel0/device/hwmon/hwmon0/power1_input",
				""), NULL, 10) >= 60000000);
	CHECK(!ctx_destroy(ctx.id));
	CHECK(!bo_close(b.handle));
}

/* For names that stay: udev reads it of the PCI function. */
static void the_serial_number_is_in_sysfs(void)
{
	static const char path[] = "/sys/class/accel/accel0/device/serial";
	struct hw_identify id;
	char want[40];

	query_all(DRM_TESSERA_QUERY_IDENTIFY, 0, &id, sizeof(id));
	CHECK(id.serial[0]);
	snprintf(want, sizeof(want), "%.32s\n", id.serial);
	CHECK(!strcmp(read_from(path, ""), want));
}

static void speed(void)
{
	struct drm_tessera_ctx_create ctx = ctx_create();
	struct drm_tessera_bo_create b = bo_create(PAGE, DRM_TESSERA_BO_SYSTEM, ctx.id);
	uint32_t q = queue_create(ctx.id, HW_CLASS_DMA, 0, -1).id;
	struct hw_sqe nop = { .op = HW_NOP };
	struct hw_sqe loud = { .op = HW_NOP, .flags = HW_IRQ };
	struct hw_cqe c;
	struct ring r;
	int64_t t, best[3] = { INT64_MAX, INT64_MAX, INT64_MAX };
	uint64_t point = 0;

	ring_open(&r, ctx.id, HW_CLASS_DMA);
	for (unsigned i = 0; i < 200; i++) {
		t = now_ns();
		point = submit(q, &nop, 1);
		if (now_ns() - t < best[0])
			best[0] = now_ns() - t;
		CHECK(!wait_point(ctx.syncobj, point, 5 * SECOND));
		if (now_ns() - t < best[1])
			best[1] = now_ns() - t;
		t = now_ns();
		ring_put(&r, loud);
		CHECK(!ring_get(&r, &c, 5 * SECOND));
		if (now_ns() - t < best[2])
			best[2] = now_ns() - t;
	}
	printf("# best of 200: submit %lld us, submit and wait %lld us, mapped ring %lld us\n",
	       (long long)best[0] / 1000, (long long)best[1] / 1000,
	       (long long)best[2] / 1000);
	ring_close(&r);
	CHECK(!ctx_destroy(ctx.id));
	CHECK(!bo_close(b.handle));
}

#define TEST(name) { #name, name, false }
#define NAMED(name) { #name, name, true }	/* only by its name */
static const struct {
	const char *name;
	void (*run)(void);
	bool is_named_only;
} tests[] = {
	NAMED(dying_for_good),
	NAMED(link_errors_end_contexts),
	NAMED(link_errors_find_a_fatal_device),
	NAMED(fatal_link_errors_reset_the_link),
	NAMED(a_link_that_stays_down_is_given_up),
	NAMED(a_link_that_is_given_up_wedges),
	NAMED(a_cgroup_has_only_so_much_hbm),
	NAMED(a_cgroup_outlives_its_cards_driver),
	TEST(the_node_is_tessera_and_refuses_masters),
	TEST(queries_negotiate_their_size),
	TEST(buffers_are_zero_and_keep_what_is_written),
	TEST(bad_buffers_are_refused),
	TEST(the_device_clears_large_buffers),
	TEST(a_busy_engine_leaves_clearing_to_the_cpu),
	TEST(maps_hold_what_they_promise),
	TEST(a_queue_fills_and_copies),
	TEST(bad_submissions_are_refused),
	TEST(fences_order_queues),
	TEST(a_mapped_queue_works_without_ioctls),
	TEST(user_memory_is_reached),
	TEST(buffers_travel_between_files),
	TEST(files_do_not_see_each_other),
	TEST(a_fault_fails_its_fence_and_no_other),
	TEST(programs_run_and_bad_ones_are_refused),
	TEST(a_bindings_table_may_lie_in_pieces),
	TEST(the_driver_tells_its_version),
	TEST(many_mappings_are_one_call),
	TEST(records_may_be_of_other_sizes),
	TEST(what_a_context_runs_is_recorded),
	TEST(who_reads_a_trace_looks_once_a_second),
	TEST(bad_traces_are_refused),
	TEST(a_traces_memory_stays),
	TEST(a_file_has_only_so_many_of_each),
	TEST(a_device_that_is_used_up_says_so),
	TEST(a_file_has_only_so_much_hbm),
	TEST(memory_that_stays_counts_as_locked),
	TEST(a_lost_interrupt_is_made_up_for),
	TEST(a_queue_that_hangs_is_reset_alone),
	TEST(telemetry_is_everywhere),
	TEST(the_serial_number_is_in_sysfs),
	TEST(speed),
	TEST(only_root_resets),
	TEST(a_client_is_reset_alone),
	TEST(a_reset_client_has_its_limits),
	TEST(only_root_resets_clients),
	TEST(a_killed_process_leaves_nothing),
	TEST(killing_who_waits_for_memory_leaves_nothing),
	TEST(a_reset_while_memory_is_cleared_leaves_it_clear),
	TEST(stores_that_a_reset_swallows_are_made_again),
	TEST(a_function_reset_ends_contexts_and_keeps_memory),
	TEST(a_reset_ends_traces),
	TEST(a_fatal_device_comes_back),
	TEST(resets_follow_at_once),
	TEST(a_dump_that_does_not_fit_says_so),
	TEST(sleep_ends_contexts),
	TEST(sleep_finds_a_fatal_device),
	TEST(unplugging_under_an_open_file),
};

int main(int argc, char **argv)
{
	/* static: what longjmp must not spoil */
	static unsigned i, before;
	static int64_t t;

	setvbuf(stdout, NULL, _IOLBF, 0);
	for (; i < sizeof(tests) / sizeof(*tests); i++) {
		before = n_failed;
		t = now_ns();
		test_name = tests[i].name;
		if (argc > 1 ? !strstr(test_name, argv[1]) : tests[i].is_named_only)
			continue;
		fd = open(NODE, O_RDWR | O_CLOEXEC);
		if (!setjmp(test_end)) {
			CHECK(fd >= 0);
			tests[i].run();
		}
		close(fd);
		printf("%s %s (%lld ms)\n", n_failed == before ? "ok" : "not ok", test_name,
		       (long long)(now_ns() - t) / 1000000);
	}
	printf("%s: %u failed\n", n_failed ? "FAILED" : "PASSED", n_failed);
	return n_failed != 0;
}
