/* SPDX-License-Identifier: Apache-2.0 */
/* What keeps programs and kernels of different years together: versions, records that grow, and
 * arrays of them. */
#include "tests/kmod/kmod.h"

#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

void the_driver_tells_its_version(void)
{
	char name[16] = "";
	struct drm_version v = { .name = name, .name_len = sizeof(name) - 1 };
	struct drm_tessera_device d;
	uint32_t reset[2] = { 0, 0 }, bytes = 0;

	CHECK(!ioctl(fd, DRM_IOCTL_VERSION, &v));
	CHECK(!strcmp(name, "tessera"));
	SAME(v.version_major, DRM_TESSERA_MAJOR);
	SAME(v.version_minor, DRM_TESSERA_ABI);
	query_all(DRM_TESSERA_QUERY_DEVICE, 0, &d, sizeof(d));
	SAME(d.abi, v.version_minor);
	SAME(d.page_bytes, PAGE);
	CHECK(d.maps_max >= 16);
	/* A chip alone has none. */
	CHECK(!query(DRM_TESSERA_QUERY_LINKS, 0, NULL, &bytes));
	SAME(bytes, 0);
	/* A reset is root's, through sysfs; the call that there was is none. */
	REFUSES(ioctl(fd, DRM_IOW(DRM_COMMAND_BASE + 0x0e, uint64_t), reset), EINVAL);
}

static int map_many(uint32_t ctx, void *ops, uint32_t bytes, uint32_t n, uint32_t *n_done)
{
	struct drm_tessera_map m = { .ctx = ctx, .n_ops = n, .op_bytes = bytes, .ops = P(ops) };
	int r = ioctl(fd, DRM_IOCTL_TESSERA_MAP, &m);

	*n_done = m.n_done;
	return r;
}

/* An op of a later kernel. */
struct longer {
	struct drm_tessera_map_op op;
	uint64_t more;
};

void many_mappings_are_one_call(void)
{
	struct drm_tessera_ctx_create ctx = ctx_create();
	uint32_t q = queue_create(ctx.id, HW_CLASS_DMA, 0, -1).id, n;
	struct drm_tessera_bo_create b = bo_create(4 * PAGE, DRM_TESSERA_BO_HBM, 0);
	volatile uint64_t *p = map_at(b.mmap_offset, 4 * PAGE);
	struct drm_tessera_map_op ops[4];
	struct drm_tessera_map bad = { .ctx = ctx.id, .n_ops = 1, .op_bytes = sizeof(*ops),
				       .ops = P(ops), .n_done = 1 };
	struct longer longer[2] = { 0 };
	struct drm_tessera_device d;
	struct hw_sqe work;

	query_all(DRM_TESSERA_QUERY_DEVICE, 0, &d, sizeof(d));
	for (unsigned i = 0; i < 4; i++)
		ops[i] = (struct drm_tessera_map_op){ .handle = b.handle, .bytes = PAGE,
			.flags = DRM_TESSERA_MAP_WRITE, .offset = (3 - i) * PAGE };
	CHECK(!map_many(ctx.id, ops, sizeof(*ops), 4, &n));
	SAME(n, 4);
	for (unsigned i = 0; i < 4; i++) {
		work = fill(ops[i].va, PAGE, 0x4400 + i);
		SAME(run(q, &work, 1), 0);
		SAME(p[(3 - i) * PAGE / 8 + 511], 0x4400 + i);
	}
	/* The third can't be: two are there, and the fourth was not tried. */
	for (unsigned i = 0; i < 4; i++)
		ops[i].va = (1ull << 49) + (i == 2 ? 0 : i) * PAGE;
	REFUSES(map_many(ctx.id, ops, sizeof(*ops), 4, &n), EEXIST);
	SAME(n, 2);
	CHECK(!unmap(ctx.id, ops[0].va));
	CHECK(!unmap(ctx.id, ops[1].va));
	REFUSES(unmap(ctx.id, ops[3].va), ENOENT);
	/* Records that are longer than the kernel knows. */
	for (unsigned i = 0; i < 2; i++)
		longer[i].op = (struct drm_tessera_map_op){ .handle = b.handle };
	CHECK(!map_many(ctx.id, longer, sizeof(*longer), 2, &n));
	SAME(n, 2);
	CHECK(longer[0].op.va && longer[1].op.va && longer[0].op.va != longer[1].op.va);
	CHECK(!longer[0].more && !longer[1].more);
	longer[1].more = 1;
	REFUSES(map_many(ctx.id, longer, sizeof(*longer), 2, &n), E2BIG);
	SAME(n, 0);
	/* What no array is. */
	REFUSES(map_many(ctx.id, ops, sizeof(*ops) - 8, 1, &n), EINVAL);
	REFUSES(map_many(ctx.id, ops, sizeof(*ops) + 4, 1, &n), EINVAL);
	REFUSES(map_many(ctx.id, ops, 264, 1, &n), EINVAL);
	REFUSES(map_many(ctx.id, ops, sizeof(*ops), 0, &n), EINVAL);
	REFUSES(map_many(ctx.id, ops, sizeof(*ops), d.maps_max + 1, &n), EINVAL);
	REFUSES(map_many(ctx.id, ops, sizeof(*ops), UINT32_MAX, &n), EINVAL);
	REFUSES(map_many(ctx.id, (void *)8, sizeof(*ops), 1, &n), EFAULT);
	REFUSES(map_many(4242, ops, sizeof(*ops), 1, &n), ENOENT);
	REFUSES(ioctl(fd, DRM_IOCTL_TESSERA_MAP, &bad), EINVAL);
	munmap((void *)(uintptr_t)p, 4 * PAGE);
	CHECK(!ctx_destroy(ctx.id));
	CHECK(!bo_close(b.handle));
}

static int faults(uint32_t ctx, void *data, uint32_t *size, uint32_t *record)
{
	struct drm_tessera_query q = { .type = DRM_TESSERA_QUERY_FAULTS, .ctx = ctx,
				       .data = P(data), .size = *size, .record_bytes = *record };
	int r = ioctl(fd, DRM_IOCTL_TESSERA_QUERY, &q);

	*size = q.size;
	*record = q.record_bytes;
	return r;
}

void records_may_be_of_other_sizes(void)
{
	struct drm_tessera_ctx_create ctx = ctx_create();
	uint32_t q = queue_create(ctx.id, HW_CLASS_DMA, 0, -1).id, size, record;
	struct hw_sqe bad = copy(0x10000, 0x20000, 8), nop = { .op = HW_NOP };
	struct { struct drm_tessera_sync sync; uint64_t more; } longer[2] = {
		{ { .handle = syncobj_create() }, 0 }, { { .handle = syncobj_create() }, 0 } };
	struct { uint32_t handle, zero; } shorter[2] = {
		{ syncobj_create(), 0 }, { syncobj_create(), 0 } };
	struct drm_tessera_submit s = { .queue = q, .n_descs = 1, .desc_bytes = 64,
					.descs = P(&nop), .n_out = 2, .out_syncs = P(longer),
					.sync_bytes = sizeof(*longer) };
	uint64_t wide[24], narrow[6];
	struct drm_tessera_fault f[3];

	CHECK(!ioctl(fd, DRM_IOCTL_TESSERA_SUBMIT, &s));
	CHECK(!wait_point(longer[0].sync.handle, 0, 5 * SECOND));
	CHECK(!wait_point(longer[1].sync.handle, 0, 5 * SECOND));
	s.out_syncs = P(shorter);
	s.sync_bytes = sizeof(*shorter);
	CHECK(!ioctl(fd, DRM_IOCTL_TESSERA_SUBMIT, &s));
	CHECK(!wait_point(shorter[1].handle, 0, 5 * SECOND));
	s.out_syncs = P(longer);
	s.sync_bytes = sizeof(*longer);
	longer[1].more = 1;
	REFUSES(ioctl(fd, DRM_IOCTL_TESSERA_SUBMIT, &s), E2BIG);
	s.sync_bytes = 0;
	REFUSES(ioctl(fd, DRM_IOCTL_TESSERA_SUBMIT, &s), EINVAL);
	s.sync_bytes = 12;
	REFUSES(ioctl(fd, DRM_IOCTL_TESSERA_SUBMIT, &s), EINVAL);
	/* Records of faults, as the kernel has them, longer and shorter. */
	for (unsigned i = 0; i < 2; i++)
		SAME(run(q, &bad, 1), EINVAL);
	size = sizeof(f);
	record = 0;
	CHECK(!faults(ctx.id, f, &size, &record));
	SAME(size, 2 * sizeof(*f));
	SAME(record, sizeof(*f));
	CHECK(f[0].number > f[1].number && f[0].status == DRM_TESSERA_STATUS_MAP);
	memset(wide, 0xee, sizeof(wide));
	size = sizeof(wide);
	record = 80;
	CHECK(!faults(ctx.id, wide, &size, &record));
	SAME(size, 2 * 80);
	SAME(record, sizeof(*f));
	for (unsigned i = 0; i < 2; i++) {
		CHECK(!memcmp(&wide[i * 10], &f[i], sizeof(*f)));
		CHECK(!wide[i * 10 + 8] && !wide[i * 10 + 9]);
	}
	SAME(wide[20], 0xeeeeeeeeeeeeeeee);
	memset(narrow, 0xee, sizeof(narrow));
	size = 20;	/* one of 16 and a bit */
	record = 16;
	CHECK(!faults(ctx.id, narrow, &size, &record));
	SAME(size, 2 * 16);
	SAME(narrow[0], f[0].number);
	SAME(narrow[2], 0xeeeeeeeeeeeeeeee);
	record = 12;
	REFUSES(faults(ctx.id, narrow, &size, &record), EINVAL);
	CHECK(!ctx_destroy(ctx.id));
}
