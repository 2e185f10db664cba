/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel driver's other door: SUBMIT, for a queue whose ring the kernel writes, with
 * fences. The HAL rings user queues and never comes here, so this calls the driver by
 * itself, with the wrappers of the driver's tests.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/bench/transport_bench.h"
#include "tests/kmod/kmod.h"

enum { MOST_DESCS = 16, CALLS = 8, VERSIONS = 20 };

struct door {
	struct drm_tessera_ctx_create ctx;
	struct drm_tessera_bo_create bo;
	volatile uint64_t *seen;
	uint32_t queue;
	uint64_t pattern;
};

static void empty_ioctl(void)
{
	struct figure f;

	figure_begin(&f, "ioctl, DRM_IOCTL_VERSION", SYSTEM_CALL, 0);
	while (figure_more(&f)) {
		int64_t began = clock_ns();

		for (int i = 0; i < VERSIONS; i++) {
			struct drm_version v = { 0 };

			CHECK(!ioctl(fd, DRM_IOCTL_VERSION, &v) && v.name_len);
		}
		figure_add(&f, (double)(clock_ns() - began) / VERSIONS);
	}
	figure_end(&f);
}

/* One call; each descriptor fills a word of its own with another pattern. */
static uint64_t call(struct door *d, unsigned n)
{
	struct hw_sqe descs[MOST_DESCS];

	d->pattern++;
	for (unsigned i = 0; i < n; i++)
		descs[i] = fill(d->bo.va + 8 * i, 8, d->pattern + i);
	return submit(d->queue, descs, n);
}

static void await(struct door *d, uint64_t point, unsigned n)
{
	CHECK(!wait_point(d->ctx.syncobj, point, 20 * SECOND));
	for (unsigned i = 0; i < n; i++)
		SAME(d->seen[i], d->pattern + i);
}

static void submits(struct door *d, unsigned n, const char *name)
{
	struct figure f;

	figure_begin(&f, name, SYSTEM_CALL, 0);
	while (figure_more(&f)) {
		int64_t began = clock_ns();
		uint64_t point = 0;

		for (int i = 0; i < CALLS; i++)
			point = call(d, n);
		figure_add(&f, (double)(clock_ns() - began) / CALLS);
		await(d, point, n);
	}
	figure_end(&f);
}

static void trips(struct door *d)
{
	struct figure f;

	figure_begin(&f, "round trip by interrupt, SUBMIT and its fence", EVENTFD, 0);
	while (figure_more(&f)) {
		int64_t began = clock_ns();
		uint64_t point = call(d, 1);

		CHECK(!wait_point(d->ctx.syncobj, point, 20 * SECOND));
		figure_add(&f, (double)(clock_ns() - began));
		await(d, point, 1);
	}
	figure_end(&f);
}

static void ring_of_the_same(struct door *d)
{
	struct figure f;
	struct hw_cqe cqe;
	struct ring r;

	ring_open(&r, d->ctx.id, HW_CLASS_DMA);
	figure_begin(&f, "submit by ring, without the HAL", SYSTEM_CALL, 0);
	while (figure_more(&f)) {
		int64_t began = clock_ns();

		d->pattern++;
		for (int i = 0; i < CALLS; i++)
			ring_put(&r, fill(d->bo.va, 8, d->pattern));
		figure_add(&f, (double)(clock_ns() - began) / CALLS);
		for (int i = 0; i < CALLS; i++)
			CHECK(!ring_get(&r, &cqe, 20 * SECOND) && !cqe.status);
		SAME(d->seen[0], d->pattern);
	}
	figure_end(&f);
	ring_close(&r);
}

void bench_ioctl(const char *node)
{
	static struct door d;

	test_name = "bench_ioctl";
	if (setjmp(test_end))
		bench_die("%s: the failure is above", node);
	fd = open(node, O_RDWR | O_CLOEXEC);
	CHECK(fd >= 0);
	empty_ioctl();
	d.ctx = ctx_create();
	d.bo = bo_create(PAGE, DRM_TESSERA_BO_SYSTEM, d.ctx.id);
	d.seen = map_at(d.bo.mmap_offset, PAGE);
	d.queue = queue_create(d.ctx.id, HW_CLASS_DMA, 0, -1).id;
	submits(&d, 1, "submit by ioctl");
	submits(&d, MOST_DESCS, "submit by ioctl, 16 descriptors");
	trips(&d);
	ring_of_the_same(&d);
	munmap((void *)(uintptr_t)d.seen, PAGE);
	CHECK(!ctx_destroy(d.ctx.id) && !bo_close(d.bo.handle));
	close(fd);
}
