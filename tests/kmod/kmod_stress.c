/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Everything at once: processes that open, submit, fault, map, unmap, share, get
 * killed, while the device is reset under them in every way there is, and in the end
 * taken away. Nothing is expected of a call but that it returns, and of memory that it
 * is zero; what counts is what the kernel says afterwards, and that a fresh context works.
 *
 *     kmod_stress [SECONDS [SEED [RESETS [BINDS]]]]
 *
 * It goes on for so many seconds, resets, and unbindings of the driver that uses the device.
 */
#include "tests/kmod/kmod.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define WORKERS 5
#define SLOTS 6

struct slot {
	uint32_t ctx, syncobj, queue, bo, userptr, wake_handle;
	uint64_t va;
	uint64_t *p, *user;
	volatile uint32_t *bell, *wake;
	struct hw_sqe *sq;
};

static int event;	/* an eventfd that nobody reads */

static unsigned pick(unsigned *state, unsigned n)
{
	*state = *state * 1664525u + 1013904223u;
	return (*state >> 8) % n;
}

static void *try_map(uint64_t offset)
{
	void *p = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)offset);

	return p == MAP_FAILED ? NULL : p;
}

/* Of all processes. */
static struct counts {
	unsigned long looked, stale;	/* pages */
} *counts;

/* New memory is zero; it is given back full of something else. */
static void look_at(const struct drm_tessera_bo_create *b)
{
	uint64_t *p = mmap(NULL, b->size, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
			   (off_t)b->mmap_offset);

	if (p == MAP_FAILED)
		return;
	for (uint64_t i = 0; i < b->size / 8; i += PAGE / 8) {
		__atomic_fetch_add(&counts->looked, 1, __ATOMIC_RELAXED);
		if (p[i + 1] || p[i + PAGE / 8 - 1])
			__atomic_fetch_add(&counts->stale, 1, __ATOMIC_RELAXED);
		p[i + 1] = p[i + PAGE / 8 - 1] = 0x5ca1ab1e;
	}
	munmap(p, b->size);
}

static void begin(struct slot *s, unsigned *rng)
{
	struct drm_tessera_ctx_create c = { .flags = pick(rng, 2) ? DRM_TESSERA_CTX_WAKE : 0 };
	struct drm_tessera_bo_create b = { .size = PAGE << pick(rng, 5) };
	struct drm_tessera_queue_create q = { .n_entries = 2u << pick(rng, 5),
					      .eventfd = -1 };

	memset(s, 0, sizeof(*s));
	if (ioctl(fd, DRM_IOCTL_TESSERA_CTX_CREATE, &c))
		return;
	s->ctx = b.ctx = q.ctx = c.id;
	s->syncobj = c.syncobj;
	s->wake_handle = c.wake_handle;
	s->wake = c.wake_handle ? try_map(c.wake_offset) : NULL;
	b.flags = pick(rng, 2) ? DRM_TESSERA_BO_HBM : DRM_TESSERA_BO_SYSTEM;
	/* Large enough for the device to clear it. */
	if (b.flags == DRM_TESSERA_BO_HBM && !pick(rng, 3))
		b.size = 256 * PAGE << pick(rng, 4);
	if (!ioctl(fd, DRM_IOCTL_TESSERA_BO_CREATE, &b)) {
		look_at(&b);
		s->bo = b.handle;
		s->va = b.va;
		s->p = try_map(b.mmap_offset);
	}
	q.cls = pick(rng, 2) ? HW_CLASS_DMA : HW_CLASS_COMPUTE;
	q.flags = pick(rng, 3) ? 0 : DRM_TESSERA_QUEUE_USER;
	if (q.flags)
		q.eventfd = eventfd(0, EFD_NONBLOCK);
	if (!ioctl(fd, DRM_IOCTL_TESSERA_QUEUE_CREATE, &q)) {
		s->queue = q.id;
		if (q.flags) {
			s->sq = try_map(q.sq_offset);
			s->bell = try_map(q.doorbell_offset);
		}
	}
	if (q.eventfd >= 0)
		close(q.eventfd);
}

static void end(struct slot *s, unsigned *rng)
{
	struct drm_syncobj_destroy d = { .handle = s->syncobj };

	if (s->queue && pick(rng, 2))
		queue_call(DRM_IOCTL_TESSERA_QUEUE_DESTROY, s->queue);
	if (s->ctx)
		ctx_destroy(s->ctx);
	if (s->syncobj)
		ioctl(fd, DRM_IOCTL_SYNCOBJ_DESTROY, &d);
	if (s->wake)
		*s->wake = 1;
	if (s->wake_handle)
		bo_close(s->wake_handle);
	if (s->bo)
		bo_close(s->bo);
	if (s->userptr)
		bo_close(s->userptr);
	if (s->p)
		munmap(s->p, PAGE);
	if (s->user)
		munmap(s->user, 2 * PAGE);
	if (s->sq)
		munmap(s->sq, PAGE);
	if (s->bell)
		munmap((void *)(uintptr_t)s->bell, PAGE);
	if (s->wake)
		munmap((void *)(uintptr_t)s->wake, PAGE);
	memset(s, 0, sizeof(*s));
}

static void work(struct slot *s, struct slot *other, unsigned *rng)
{
	struct hw_sqe d[4];
	struct drm_tessera_sync in = { .handle = other->syncobj, .point = 1 };
	struct drm_tessera_sync out = { 0 };
	struct drm_syncobj_create c = { 0 };
	unsigned n = 1 + pick(rng, 4);
	uint64_t point = 0;

	for (unsigned i = 0; i < n; i++) {
		switch (pick(rng, 12)) {
		case 0:
			d[i] = copy(s->va, pick(rng, 1 << 20), 64);	/* faults */
			break;
		case 1:
			/* Only a queue of the caller's own takes it. */
			d[i] = (struct hw_sqe){ .op = HW_SEMAPHORE, .wait_va = s->va,
						.flags = s->sq && s->bell ? HW_WAIT : 0,
						.wait_value = 1 };
			break;
		case 2:
			for (unsigned k = 0; k < sizeof(d[i]); k++)
				((uint8_t *)&d[i])[k] = (uint8_t)pick(rng, 256);
			d[i].op = HW_EXECUTE + pick(rng, 6);
			d[i].flags &= 0xb;
			break;
		case 3:
			d[i] = (struct hw_sqe){ .op = HW_NOP };
			break;
		default:
			d[i] = fill(s->va, 1 + pick(rng, PAGE), 0);
		}
	}
	if (s->sq && s->bell) {
		memcpy(s->sq, d, n * sizeof(*d));
		*s->bell = pick(rng, 8);
		if (s->wake)
			*s->wake = 0;
		return;
	}
	if (!ioctl(fd, DRM_IOCTL_SYNCOBJ_CREATE, &c))
		out.handle = c.handle;
	submit_full(s->queue, d, n, &in, !pick(rng, 3), &out, 1, &point);
	if (!pick(rng, 4))
		wait_point(s->syncobj, point, (int64_t)pick(rng, 20) * 1000000);
	if (out.handle) {
		struct drm_syncobj_destroy gone = { .handle = out.handle };

		ioctl(fd, DRM_IOCTL_SYNCOBJ_DESTROY, &gone);
	}
}

static void pin(struct slot *s, unsigned *rng)
{
	struct drm_tessera_bo_userptr u = { .size = 2 * PAGE };
	uint64_t va = 0;

	if (s->userptr) {
		bo_close(s->userptr);
		munmap(s->user, 2 * PAGE);
	}
	s->userptr = 0;
	s->user = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		       -1, 0);
	if (s->user == MAP_FAILED) {
		s->user = NULL;
		return;
	}
	u.address = P(s->user);
	if (!ioctl(fd, DRM_IOCTL_TESSERA_BO_USERPTR, &u))
		s->userptr = u.handle;
	map(s->ctx, s->userptr, &va, DRM_TESSERA_MAP_WRITE);
	if (va && pick(rng, 2))
		unmap(s->ctx, va);
}

static void step(struct slot *slots, unsigned *rng)
{
	struct slot *s = &slots[pick(rng, SLOTS)];
	uint32_t n = 0;

	switch (pick(rng, 18)) {
	case 0:
		end(s, rng);
		begin(s, rng);
		break;
	case 1:
		queue_call(DRM_IOCTL_TESSERA_QUEUE_RESET, s->queue);
		break;
	case 2:
		unmap(s->ctx, s->va);
		break;
	case 3:
		map(s->ctx, s->bo, &s->va, DRM_TESSERA_MAP_WRITE);
		break;
	case 4:
		pin(s, rng);
		break;
	case 5:
		query(DRM_TESSERA_QUERY_FAULTS, s->ctx, NULL, &n);
		break;
	case 6:
		query(DRM_TESSERA_QUERY_TELEMETRY, 0, NULL, &n);
		break;
	case 7:
		trace_start(s->ctx, s->va, 64, 1 + pick(rng, 1000), pick(rng, 2) ? -1 : event);
		break;
	case 8:
		trace_stop(s->ctx, NULL);
		break;
	case 9:
		if (s->p)
			s->p[pick(rng, 512)] = pick(rng, 2);
		break;
	default:
		work(s, &slots[pick(rng, SLOTS)], rng);
	}
}

/* Two threads share the slots: what one ends the other uses. */
static struct slot shared[SLOTS];

static void *thread(void *arg)
{
	unsigned rng = *(unsigned *)arg ^ 0x5555;

	for (;;) {
		struct slot copy = shared[pick(&rng, SLOTS)];

		switch (pick(&rng, 6)) {
		case 2:
			trace_start(copy.ctx, copy.va, 64, 1, event);
			break;
		case 3:
			trace_stop(copy.ctx, NULL);
			break;
		case 0:
			queue_call(DRM_IOCTL_TESSERA_QUEUE_RESET, copy.queue);
			break;
		case 1:
			ctx_destroy(copy.ctx);
			break;
		default:
			submit_full(copy.queue, &(struct hw_sqe){ .op = HW_NOP }, 1, NULL, 0,
				    NULL, 0, NULL);
		}
	}
	return NULL;
}

static void worker(unsigned seed)
{
	pthread_t t;

	event = eventfd(0, EFD_NONBLOCK);
	fd = open(NODE, O_RDWR | O_CLOEXEC);
	if (fd < 0 || event < 0 || pthread_create(&t, NULL, thread, &seed))
		_exit(1);
	for (;;)
		step(shared, &seed);
}

static pid_t start(unsigned seed)
{
	pid_t p = fork();

	if (!p)
		worker(seed);
	return p;
}

/* A fresh context does what it should. */
static int is_well(void)
{
	struct drm_tessera_ctx_create ctx;
	struct drm_tessera_bo_create b;
	struct hw_sqe d;
	uint32_t q;

	test_name = "afterwards";
	fd = open(NODE, O_RDWR | O_CLOEXEC);
	if (setjmp(test_end))
		return 0;
	CHECK(fd >= 0);
	ctx = ctx_create();
	b = bo_create(PAGE, DRM_TESSERA_BO_HBM, ctx.id);
	q = queue_create(ctx.id, HW_CLASS_DMA, 0, -1).id;
	d = fill(b.va, PAGE, 5);
	SAME(run(q, &d, 1), 0);
	SAME(map_at(b.mmap_offset, PAGE)[5], 5);
	close(fd);
	return 1;
}

#define SYSFS "/sys/class/accel/accel0/device/"

/* May fail: another reset may be under way. */
static void poke(const char *path, const char *text)
{
	int f = open(path, O_WRONLY);

	if (f >= 0 && write(f, text, strlen(text)) < 0)
		errno = 0;
	close(f);
}

/* Resets the function by one way or another. */
static void reset_somehow(unsigned *rng)
{
	char path[512];

	switch (pick(rng, 3)) {
	case 0:
		debug_path(path, sizeof(path), "reset");
		poke(path, "1");
		break;
	case 1:
		poke(SYSFS "reset", "1");
		break;
	default:
		debug_path(path, sizeof(path), "inject");
		poke(path, "3 0");	/* HW_INJECT_FATAL */
	}
}

/* What one process has on the device, by one of its files. */
static void reset_client_of(pid_t pid, unsigned *rng)
{
	char path[64], text[16];
	unsigned id;

	snprintf(path, sizeof(path), "/proc/%d/fdinfo/%u", (int)pid, 3 + pick(rng, 4));
	if (sscanf(read_from(path, "drm-client-id:"), "drm-client-id: %u", &id) != 1)
		return;
	snprintf(text, sizeof(text), "%u", id);
	poke(SYSFS "reset_client", text);
}

static char link_text[512];

static void stop_all(pid_t *pids)
{
	for (unsigned i = 0; i < WORKERS; i++) {
		kill(pids[i], SIGKILL);
		waitpid(pids[i], NULL, 0);
	}
}

/* Takes the device away from processes that use it, then brings it back. */
static void replug(pid_t *pids)
{
	close(fd);
	write_file(SYSFS "remove", "1");
	usleep(300000);
	stop_all(pids);
	write_file("/sys/bus/pci/rescan", "1");
	for (unsigned i = 0; i < 1000 && access(NODE, F_OK); i++)
		usleep(10000);
}

/* The driver lets go of the device under those who use it, and takes it again. */
static void rebind(pid_t *pids, unsigned seed)
{
	char address[512] = "";
	ssize_t n = readlink("/sys/class/accel/accel0/device", link_text, sizeof(link_text) - 1);
	char *base;

	CHECK(n > 0);
	link_text[n] = 0;
	base = strrchr(link_text, '/');
	snprintf(address, sizeof(address), "%s", base ? base + 1 : link_text);
	close(fd);
	write_file("/sys/bus/pci/drivers/tessera/unbind", address);
	CHECK(access(NODE, F_OK));
	stop_all(pids);
	write_file("/sys/bus/pci/drivers/tessera/bind", address);
	for (unsigned i = 0; i < 1000 && access(NODE, F_OK); i++)
		usleep(10000);
	for (unsigned i = 0; i < WORKERS; i++)
		pids[i] = start(seed * 100 + i);
	fd = open(NODE, O_RDWR | O_CLOEXEC);
	CHECK(fd >= 0);
}

int main(int argc, char **argv)
{
	int64_t end_ns = now_ns() + (argc > 1 ? atoi(argv[1]) : 20) * SECOND;
	unsigned seed = argc > 2 ? (unsigned)atoi(argv[2]) : 1, n_resets = 0, n_kills = 0;
	unsigned least_resets = argc > 3 ? (unsigned)atoi(argv[3]) : 0;
	unsigned least_binds = argc > 4 ? (unsigned)atoi(argv[4]) : 0, n_binds = 0;
	unsigned long long function_resets = 0, queue_resets = 0, lost = 0;
	struct drm_tessera_device device = { 0 };
	uint32_t bytes = sizeof(device);
	pid_t pids[WORKERS];

	setvbuf(stdout, NULL, _IOLBF, 0);
	test_name = "stress";
	if (setjmp(test_end))
		return 1;
	counts = mmap(NULL, sizeof(*counts), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		      -1, 0);
	CHECK(counts != MAP_FAILED);
	write_file("/sys/module/tessera/parameters/hang_ms", "1000");
	for (unsigned i = 0; i < WORKERS; i++)
		pids[i] = start(seed * 100 + i);
	fd = open(NODE, O_RDWR | O_CLOEXEC);
	while (now_ns() < end_ns || n_resets < least_resets || n_binds < least_binds) {
		unsigned i = pick(&seed, WORKERS);

		usleep(pick(&seed, 300000));
		if (!pick(&seed, least_resets ? 2 : 4)) {
			reset_somehow(&seed);
			n_resets++;
			continue;
		}
		if (least_binds && pick(&seed, 2)) {
			/* The counts end with the binding. */
			query(DRM_TESSERA_QUERY_DEVICE, 0, &device, &bytes);
			function_resets += device.function_resets;
			queue_resets += device.queue_resets;
			lost += device.lost_interrupts;
			rebind(pids, seed);
			n_binds++;
			continue;
		}
		for (unsigned k = pick(&seed, 4); k--;)
			reset_client_of(pids[pick(&seed, WORKERS)], &seed);
		kill(pids[i], SIGKILL);
		waitpid(pids[i], NULL, 0);
		n_kills++;
		pids[i] = start(seed + i);
	}
	query(DRM_TESSERA_QUERY_DEVICE, 0, &device, &bytes);
	function_resets += device.function_resets;
	queue_resets += device.queue_resets;
	lost += device.lost_interrupts;
	replug(pids);
	printf("# %u processes killed, %u unbound, %u resets: %llu function and %llu queue resets, "
	       "%llu lost\n", n_kills, n_binds, n_resets, function_resets, queue_resets, lost);
	printf("# %lu new pages looked at, %lu were not zero\n", counts->looked, counts->stale);
	write_file("/sys/module/tessera/parameters/hang_ms", "120000");
	n_failed += counts->stale || !counts->looked;
	n_failed += !is_well() || !device.is_usable || !function_resets;
	printf("%s\n", n_failed ? "FAILED" : "PASSED");
	return n_failed != 0;
}
