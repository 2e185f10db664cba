/* SPDX-License-Identifier: Apache-2.0 */
/* The wrappers: each fills a structure and calls. */
#include "tests/kmod/kmod.h"

#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <linux/sync_file.h>

int fd = -1;
const char *test_name;
jmp_buf test_end;
unsigned n_failed;

void fail(int line, const char *format, ...)
{
	va_list ap;

	printf("FAIL %s:%d: ", test_name, line);
	va_start(ap, format);
	vprintf(format, ap);
	va_end(ap);
	printf("\n");
	n_failed++;
	longjmp(test_end, 1);
}

int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * SECOND + t.tv_nsec;
}

int query(uint32_t type, uint32_t ctx, void *data, uint32_t *size)
{
	struct drm_tessera_query q = { .type = type, .ctx = ctx, .data = P(data),
				       .size = *size };
	int r = ioctl(fd, DRM_IOCTL_TESSERA_QUERY, &q);

	*size = q.size;
	return r;
}

void query_all(uint32_t type, uint32_t ctx, void *data, uint32_t size)
{
	uint32_t n = size;

	CHECK(!query(type, ctx, data, &n));
	SAME(n, size);
}

struct drm_tessera_ctx_create ctx_create(void)
{
	struct drm_tessera_ctx_create c = { 0 };

	CHECK(!ioctl(fd, DRM_IOCTL_TESSERA_CTX_CREATE, &c));
	CHECK(c.id && c.syncobj);
	return c;
}

struct drm_tessera_ctx_create ctx_create_wake(volatile uint32_t **page)
{
	struct drm_tessera_ctx_create c = { .flags = DRM_TESSERA_CTX_WAKE };

	CHECK(!ioctl(fd, DRM_IOCTL_TESSERA_CTX_CREATE, &c));
	CHECK(c.id && c.syncobj && c.wake_handle && c.wake_offset);
	*page = (void *)map_at(c.wake_offset, PAGE);
	return c;
}

int ctx_destroy(uint32_t id)
{
	struct drm_tessera_ctx_destroy c = { .id = id };

	return ioctl(fd, DRM_IOCTL_TESSERA_CTX_DESTROY, &c);
}

struct drm_tessera_bo_create bo_create(uint64_t size, uint32_t flags, uint32_t ctx)
{
	struct drm_tessera_bo_create b = { .size = size, .flags = flags, .ctx = ctx };

	CHECK(!ioctl(fd, DRM_IOCTL_TESSERA_BO_CREATE, &b));
	CHECK(b.handle && b.mmap_offset && (!ctx || b.va));
	return b;
}

int bo_close(uint32_t handle)
{
	struct drm_gem_close c = { .handle = handle };

	return ioctl(fd, DRM_IOCTL_GEM_CLOSE, &c);
}

uint64_t *map_at(uint64_t offset, uint64_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)offset);

	CHECK(p != MAP_FAILED);
	return p;
}

int map(uint32_t ctx, uint32_t handle, uint64_t *va, uint32_t flags)
{
	struct drm_tessera_map_op op = { .handle = handle, .va = *va, .flags = flags };
	int r = map_op(ctx, &op);

	*va = op.va;
	return r;
}

int map_op(uint32_t ctx, struct drm_tessera_map_op *op)
{
	struct drm_tessera_map m = { .ctx = ctx, .n_ops = 1, .op_bytes = sizeof(*op),
				     .ops = P(op) };
	int r = ioctl(fd, DRM_IOCTL_TESSERA_MAP, &m);

	if (m.n_done != !r)
		fail(__LINE__, "MAP did %u of 1 and says %d", m.n_done, r);
	return r;
}

void reset_function(void)
{
	char path[512];

	debug_path(path, sizeof(path), "reset");
	write_file(path, "1");
}

int unmap(uint32_t ctx, uint64_t va)
{
	struct drm_tessera_unmap u = { .ctx = ctx, .va = va };

	return ioctl(fd, DRM_IOCTL_TESSERA_UNMAP, &u);
}

struct drm_tessera_queue_create queue_create(uint32_t ctx, uint8_t cls, uint32_t flags,
					     int event)
{
	struct drm_tessera_queue_create q = { .ctx = ctx, .cls = cls, .flags = flags,
					      .n_entries = 64, .priority = 1,
					      .eventfd = event };

	CHECK(!ioctl(fd, DRM_IOCTL_TESSERA_QUEUE_CREATE, &q));
	CHECK(q.id);
	return q;
}

int trace_start(uint32_t ctx, uint64_t va, uint32_t n_records, uint64_t first, int event)
{
	struct drm_tessera_trace_start t = { .ctx = ctx, .va = va, .n_records = n_records,
					     .first = first, .eventfd = event };

	return ioctl(fd, DRM_IOCTL_TESSERA_TRACE_START, &t);
}

int trace_stop(uint32_t ctx, uint64_t *last)
{
	struct drm_tessera_trace_stop t = { .ctx = ctx };
	int r = ioctl(fd, DRM_IOCTL_TESSERA_TRACE_STOP, &t);

	if (last)
		*last = t.last;
	return r;
}

int queue_call(unsigned long request, uint32_t id)
{
	struct drm_tessera_queue_id q = { .id = id };

	return ioctl(fd, request, &q);
}

int submit_full(uint32_t queue, const struct hw_sqe *descs, uint32_t n,
		const struct drm_tessera_sync *in, uint32_t n_in,
		const struct drm_tessera_sync *out, uint32_t n_out, uint64_t *point)
{
	struct drm_tessera_submit s = {
		.queue = queue, .n_descs = n, .desc_bytes = sizeof(*descs),
		.descs = P(descs), .in_syncs = P(in), .n_in = n_in, .out_syncs = P(out),
		.sync_bytes = sizeof(*in),
		.n_out = n_out,
	};
	int r = ioctl(fd, DRM_IOCTL_TESSERA_SUBMIT, &s);

	if (point)
		*point = s.point;
	return r;
}

uint64_t submit(uint32_t queue, const struct hw_sqe *descs, uint32_t n)
{
	uint64_t point = 0;

	CHECK(!submit_full(queue, descs, n, NULL, 0, NULL, 0, &point));
	CHECK(point);
	return point;
}

int wait_point(uint32_t syncobj, uint64_t point, int64_t ns)
{
	struct drm_syncobj_timeline_wait w = {
		.handles = P(&syncobj), .points = P(&point), .count_handles = 1,
		.timeout_nsec = now_ns() + ns,
	};

	return ioctl(fd, DRM_IOCTL_SYNCOBJ_TIMELINE_WAIT, &w);
}

uint32_t syncobj_create(void)
{
	struct drm_syncobj_create c = { 0 };

	CHECK(!ioctl(fd, DRM_IOCTL_SYNCOBJ_CREATE, &c));
	return c.handle;
}

int fence_errno(uint32_t syncobj)
{
	struct drm_syncobj_handle h = {
		.handle = syncobj, .fd = -1,
		.flags = DRM_SYNCOBJ_HANDLE_TO_FD_FLAGS_EXPORT_SYNC_FILE,
	};
	struct sync_file_info info = { 0 };

	CHECK(!ioctl(fd, DRM_IOCTL_SYNCOBJ_HANDLE_TO_FD, &h));
	CHECK(!ioctl(h.fd, SYNC_IOC_FILE_INFO, &info));
	close(h.fd);
	return info.status < 0 ? -info.status : !info.status;
}

int run(uint32_t queue, const struct hw_sqe *descs, uint32_t n)
{
	struct drm_tessera_sync out = { .handle = syncobj_create() };

	CHECK(!submit_full(queue, descs, n, NULL, 0, &out, 1, NULL));
	CHECK(!wait_point(out.handle, 0, 20 * SECOND));
	return fence_errno(out.handle);
}

struct hw_sqe fill(uint64_t va, uint64_t bytes, uint64_t pattern)
{
	return (struct hw_sqe){ .op = HW_FILL, .u.copy = { .src = pattern, .dst = va,
							   .bytes = bytes } };
}

struct hw_sqe copy(uint64_t to, uint64_t from, uint64_t bytes)
{
	return (struct hw_sqe){ .op = HW_COPY, .u.copy = { .src = from, .dst = to,
							   .bytes = bytes } };
}

struct hw_sqe endless(const struct drm_tessera_bo_create *b)
{
	struct hw_copy_2d rows = { .src = b->va + PAGE / 2 + 128, .dst = b->va + PAGE / 2 + 192,
				   .row_bytes = 8, .rows = 1ull << 50, .planes = 1 };
	uint8_t *p = (void *)map_at(b->mmap_offset, PAGE);

	memcpy(p + PAGE / 2, &rows, sizeof(rows));
	munmap(p, PAGE);
	return (struct hw_sqe){ .op = HW_COPY_2D, .u.copy.src = b->va + PAGE / 2 };
}

void write_file(const char *path, const char *text)
{
	int f = open(path, O_WRONLY);

	if (f < 0 || write(f, text, strlen(text)) != (ssize_t)strlen(text))
		fail(__LINE__, "%s: errno %d", path, errno);
	close(f);
}

const char *read_from(const char *path, const char *word)
{
	static char text[65536];
	int f = open(path, O_RDONLY);
	ssize_t n = f < 0 ? -1 : 0, got;

	while (f >= 0 && (got = read(f, text + n, sizeof(text) - 1 - (size_t)n)) > 0)
		n += got;
	if (f >= 0)
		close(f);
	text[n < 0 ? 0 : n] = 0;
	return strstr(text, word) ? strstr(text, word) : "";
}

static const char debug_dir[] = "/sys/kernel/debug/accel/";

void debug_path(char *out, size_t n, const char *name)
{
	char link[256], *base;
	ssize_t got = readlink("/sys/class/accel/accel0/device", link, sizeof(link) - 1);

	CHECK(got > 0);
	link[got] = 0;
	base = strrchr(link, '/');
	snprintf(out, n, "%s%s/%s", debug_dir, base ? base + 1 : link, name);
}

void inject(unsigned kind, unsigned value)
{
	char path[512], text[64];

	debug_path(path, sizeof(path), "inject");
	snprintf(text, sizeof(text), "%u %u", kind, value);
	write_file(path, text);
}

void ring_open(struct ring *r, uint32_t ctx, uint8_t cls)
{
	r->event = eventfd(0, EFD_NONBLOCK);
	r->q = queue_create(ctx, cls, DRM_TESSERA_QUEUE_USER, r->event);
	r->sq = (void *)map_at(r->q.sq_offset, PAGE);
	r->cq = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, (off_t)r->q.cq_offset);
	CHECK(r->cq != MAP_FAILED);
	r->bell = (void *)map_at(r->q.doorbell_offset, PAGE);
	r->tail = r->head = 0;
}

void ring_put(struct ring *r, struct hw_sqe d)
{
	r->sq[r->tail % r->q.n_entries] = d;
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	*r->bell = ++r->tail;
}

int ring_get(struct ring *r, struct hw_cqe *out, int64_t ns)
{
	volatile struct hw_cqe *c = &r->cq[r->head % r->q.n_entries];
	int64_t deadline = now_ns() + ns;

	while ((c->phase & 1) != ((r->head / r->q.n_entries + 1) & 1)) {
		struct pollfd p = { .fd = r->event, .events = POLLIN };
		uint64_t n;

		if (now_ns() > deadline)
			return -1;
		if (poll(&p, 1, 100) == 1 && read(r->event, &n, 8) != 8)
			return -1;
	}
	memcpy(out, (void *)(uintptr_t)c, sizeof(*out));
	r->head++;
	return 0;
}

void ring_close(struct ring *r)
{
	munmap(r->sq, PAGE);
	munmap((void *)(uintptr_t)r->cq, PAGE);
	munmap((void *)(uintptr_t)r->bell, PAGE);
	close(r->event);
}
