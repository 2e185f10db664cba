/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of what goes wrong: lost interrupts, hangs, resets, killed processes, a device
 * that is unplugged or dies. kmod_test.c runs them.
 */
#define _GNU_SOURCE	/* memmem */
#include "tests/kmod/kmod.h"

#include <fcntl.h>
#include <glob.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/netlink.h>

void a_lost_interrupt_is_made_up_for(void)
{
	struct drm_tessera_ctx_create ctx = ctx_create();
	uint32_t q = queue_create(ctx.id, HW_CLASS_DMA, 0, -1).id;
	struct hw_sqe nop = { .op = HW_NOP };
	struct drm_tessera_device before, after;

	query_all(DRM_TESSERA_QUERY_DEVICE, 0, &before, sizeof(before));
	/* One of them is that of the injection itself. */
	inject(HW_INJECT_DROP_IRQ, 2);
	SAME(run(q, &nop, 1), 0);
	query_all(DRM_TESSERA_QUERY_DEVICE, 0, &after, sizeof(after));
	CHECK(after.lost_interrupts > before.lost_interrupts);
	CHECK(!ctx_destroy(ctx.id));
}

void a_queue_that_hangs_is_reset_alone(void)
{
	struct drm_tessera_ctx_create ctx = ctx_create(), innocent = ctx_create();
	struct drm_tessera_bo_create b = bo_create(PAGE, DRM_TESSERA_BO_HBM, ctx.id);
	uint32_t q = queue_create(ctx.id, HW_CLASS_DMA, 0, -1).id;
	uint32_t quiet = queue_create(innocent.id, HW_CLASS_DMA, 0, -1).id;
	struct hw_sqe stuck = endless(&b);
	struct hw_sqe nop = { .op = HW_NOP };
	struct drm_tessera_error e;

	write_file("/sys/module/tessera/parameters/hang_ms", "1500");
	SAME(run(q, &stuck, 1), ETIME);
	write_file("/sys/module/tessera/parameters/hang_ms", "120000");
	SAME(run(q, &nop, 1), 0);
	SAME(run(quiet, &nop, 1), 0);
	query_all(DRM_TESSERA_QUERY_ERROR, ctx.id, &e, sizeof(e));
	SAME(e.n_hangs, 1);
	query_all(DRM_TESSERA_QUERY_ERROR, innocent.id, &e, sizeof(e));
	SAME(e.n_hangs + e.n_faults + e.state, 0);
	CHECK(!ctx_destroy(ctx.id) && !ctx_destroy(innocent.id));
	CHECK(!bo_close(b.handle));
}

/*
 * Submits what never ends and waits until the device is at it: what has not begun by a reset ends
 * with ECANCELED. The word at 64 of memory, in HBM, says so.
 */
static void run_endless(uint32_t q, const struct drm_tessera_bo_create *memory,
			struct drm_tessera_sync *out)
{
	struct hw_sqe d[2] = { fill(memory->va + 64, 8, 1), endless(memory) };
	volatile uint64_t *p = map_at(memory->mmap_offset, PAGE);

	p[8] = 0;
	CHECK(!submit_full(q, d, 2, NULL, 0, out, 1, NULL));
	for (int64_t end = now_ns() + 30 * SECOND; !p[8] && now_ns() < end;)
		usleep(1000);
	SAME(p[8], 1);
	munmap((void *)p, PAGE);
}

/* After a function reset of any cause: the context is lost, memory and node stay. */
static void expect_reset(struct drm_tessera_ctx_create ctx, uint32_t q, uint64_t resets)
{
	struct hw_sqe nop = { .op = HW_NOP };
	struct drm_tessera_device d = { 0 };
	struct drm_tessera_error e;
	uint64_t va = 0;

	for (int64_t end = now_ns() + 120 * SECOND; d.function_resets != resets &&
	     now_ns() < end; usleep(10000))
		query_all(DRM_TESSERA_QUERY_DEVICE, 0, &d, sizeof(d));
	SAME(d.function_resets, resets);
	SAME(d.is_usable, 1);
	query_all(DRM_TESSERA_QUERY_ERROR, ctx.id, &e, sizeof(e));
	SAME(e.state, DRM_TESSERA_CTX_LOST);
	REFUSES(submit_full(q, &nop, 1, NULL, 0, NULL, 0, NULL), ECANCELED);
	REFUSES(map(ctx.id, 4242, &va, 0), ENOENT);
	CHECK(!ctx_destroy(ctx.id));
	ctx = ctx_create();
	q = queue_create(ctx.id, HW_CLASS_DMA, 0, -1).id;
	SAME(run(q, &nop, 1), 0);
	CHECK(!ctx_destroy(ctx.id));
}

void a_function_reset_ends_contexts_and_keeps_memory(void)
{
	struct drm_tessera_ctx_create ctx = ctx_create();
	struct drm_tessera_bo_create b = bo_create(PAGE, DRM_TESSERA_BO_HBM, ctx.id);
	uint32_t q = queue_create(ctx.id, HW_CLASS_DMA, 0, -1).id;
	struct drm_tessera_sync out = { .handle = syncobj_create() };
	volatile uint64_t *p = map_at(b.mmap_offset, PAGE);
	struct drm_tessera_device d;
	struct ring r;

	p[0] = 31337;
	ring_open(&r, ctx.id, HW_CLASS_DMA);
	query_all(DRM_TESSERA_QUERY_DEVICE, 0, &d, sizeof(d));
	run_endless(q, &b, &out);
	reset_function();
	CHECK(!wait_point(out.handle, 0, SECOND));
	SAME(fence_errno(out.handle), ENODEV);
	*r.bell = 1;	/* of a queue that is no more: nothing happens */
	ring_close(&r);
	expect_reset(ctx, q, d.function_resets + 1);
	SAME(p[0], 31337);
	munmap((void *)p, PAGE);
	CHECK(!bo_close(b.handle));
}

void a_fatal_device_comes_back(void)
{
	struct drm_tessera_ctx_create ctx = ctx_create();
	uint32_t q = queue_create(ctx.id, HW_CLASS_DMA, 0, -1).id;
	struct drm_tessera_device d;

	query_all(DRM_TESSERA_QUERY_DEVICE, 0, &d, sizeof(d));
	inject(HW_INJECT_FATAL, 0);
	expect_reset(ctx, q, d.function_resets + 1);
}

/* A reset that begins before the one before it has quite returned is no failure of that one. */
void resets_follow_at_once(void)
{
	struct drm_tessera_device before, after;
	char path[512];

	debug_path(path, sizeof(path), "reset");
	query_all(DRM_TESSERA_QUERY_DEVICE, 0, &before, sizeof(before));
	for (unsigned i = 0; i < 20; i++)
		write_file(path, "1");
	query_all(DRM_TESSERA_QUERY_DEVICE, 0, &after, sizeof(after));
	SAME(after.function_resets, before.function_resets + 20);
	SAME(after.is_usable, 1);
}

/* The kernel keeps one device dump of a device. false: there is none by then. */
static bool find_dump(char path[128], int64_t ns)
{
	int64_t end = now_ns() + ns;
	glob_t found = { 0 };
	bool is_there;

	do {
		is_there = !glob("/sys/class/devcoredump/devcd*/data", 0, NULL, &found);
		if (is_there)
			snprintf(path, 128, "%s", found.gl_pathv[0]);
		globfree(&found);
	} while (!is_there && now_ns() < end && !usleep(10000));
	return is_there;
}

static void drop_dump(void)
{
	char path[128];

	if (!find_dump(path, 0))
		return;
	write_file(path, "1");
	for (unsigned i = 0; i < 500 && find_dump(path, 0); i++)
		usleep(10000);
	CHECK(!find_dump(path, 0));
}

/* Sixty queues that have all that a dump shows of one, in lines as long as there can be. */
void a_dump_that_does_not_fit_says_so(void)
{
	static const char cut[] = "the rest does not fit\n", limit[] =
		"/sys/module/tessera/parameters/file_queues";
	struct drm_tessera_ctx_create ctx = ctx_create();
	struct drm_tessera_bo_create b = bo_create(PAGE, DRM_TESSERA_BO_HBM, ctx.id);
	struct hw_sqe work[9] = { endless(&b) };
	char path[128];

	for (unsigned i = 1; i < 9; i++)
		work[i] = (struct hw_sqe){
			.op = HW_COPY, .wait_va = ~0ull, .wait_value = ~0ull, .signal_va = ~0ull,
			.signal_value = ~0ull,
			.u.copy = { .src = ~0ull, .dst = ~0ull, .bytes = ~0ull },
		};
	drop_dump();
	write_file(limit, "0");
	for (unsigned i = 0; i < 60; i++)
		submit(queue_create(ctx.id, HW_CLASS_DMA, 0, -1).id, work, 9);
	write_file(limit, "32");
	reset_function();
	CHECK(find_dump(path, 30 * SECOND));
	CHECK(!strcmp(read_from(path, cut), cut));
	CHECK(!strncmp(read_from(path, "tessera"), "tessera device dump 1\n", 22));
	CHECK(*read_from(path, "reason: asked for in debugfs\n"));
	drop_dump();
	CHECK(!ctx_destroy(ctx.id));
	CHECK(!bo_close(b.handle));
}

/* The device dies, and the driver finds out in a second at the latest. */
static void die_unheard(void)
{
	inject(HW_INJECT_DROP_IRQ, 100);
	inject(HW_INJECT_FATAL, 0);
}

/* After one function reset or two, as who was first had it. */
static void expect_back(uint64_t resets)
{
	struct hw_sqe nop = { .op = HW_NOP };
	struct drm_tessera_device d = { .is_usable = 1 };
	struct drm_tessera_ctx_create ctx;

	for (int64_t end = now_ns() + 120 * SECOND; d.is_usable && d.function_resets <= resets &&
	     now_ns() < end; usleep(10000))
		query_all(DRM_TESSERA_QUERY_DEVICE, 0, &d, sizeof(d));
	usleep(3000000);
	query_all(DRM_TESSERA_QUERY_DEVICE, 0, &d, sizeof(d));
	SAME(d.is_usable, 1);
	CHECK(d.function_resets > resets);
	ctx = ctx_create();
	SAME(run(queue_create(ctx.id, HW_CLASS_DMA, 0, -1).id, &nop, 1), 0);
	CHECK(!ctx_destroy(ctx.id));
}

/* The kernel's own rehearsal of sleep: devices go down and come up, nothing else. */
void sleep_ends_contexts(void)
{
	struct drm_tessera_ctx_create ctx = ctx_create();
	uint32_t q = queue_create(ctx.id, HW_CLASS_DMA, 0, -1).id;
	struct drm_tessera_device d;
	char dump[128];

	query_all(DRM_TESSERA_QUERY_DEVICE, 0, &d, sizeof(d));
	if (access("/sys/power/pm_test", W_OK)) {
		printf("# skipped: this kernel has no /sys/power/pm_test\n");
		CHECK(!ctx_destroy(ctx.id));
		return;
	}
	drop_dump();
	write_file("/sys/power/pm_test", "devices");
	write_file("/sys/power/state", "freeze");
	write_file("/sys/power/pm_test", "none");
	expect_reset(ctx, q, d.function_resets + 1);
	/* Nothing was wrong. */
	CHECK(!find_dump(dump, SECOND));
}

/* Nobody has switched its power off: what it was it is still. */
void sleep_finds_a_fatal_device(void)
{
	struct drm_tessera_device d;

	if (access("/sys/power/pm_test", W_OK)) {
		printf("# skipped: this kernel has no /sys/power/pm_test\n");
		return;
	}
	write_file("/sys/power/pm_test", "devices");
	for (unsigned i = 0; i < 2; i++) {
		query_all(DRM_TESSERA_QUERY_DEVICE, 0, &d, sizeof(d));
		die_unheard();
		write_file("/sys/power/state", "freeze");
		expect_back(d.function_resets);
	}
	write_file("/sys/power/pm_test", "none");
}

void only_root_resets(void)
{
	char path[512];
	pid_t child;
	int status = -1;

	debug_path(path, sizeof(path), "reset");
	child = fork();
	CHECK(child >= 0);
	if (!child) {
		_exit(setuid(65534) || open(path, O_WRONLY) >= 0 || errno != EACCES ||
		      open("/sys/class/accel/accel0/device/reset", O_WRONLY) >= 0 ||
		      errno != EACCES);
	}
	CHECK(waitpid(child, &status, 0) == child);
	SAME(status, 0);
}

void a_killed_process_leaves_nothing(void)
{
	struct drm_tessera_memory before, after;
	pid_t child;

	query_all(DRM_TESSERA_QUERY_MEMORY, 0, &before, sizeof(before));
	for (unsigned i = 0; i < 70; i++) {	/* more than there are contexts */
		int pipes[2];
		char c;

		CHECK(!pipe(pipes));
		child = fork();
		CHECK(child >= 0);
		if (!child) {
			fd = open(NODE, O_RDWR);
			if (setjmp(test_end))
				_exit(1);
			struct drm_tessera_ctx_create ctx = ctx_create();
			struct drm_tessera_bo_create b = bo_create(1 << 20,
				DRM_TESSERA_BO_HBM, ctx.id);
			uint32_t q = queue_create(ctx.id, HW_CLASS_DMA, 0, -1).id;
			struct hw_sqe stuck = endless(&b);

			submit(q, &stuck, 1);
			if (write(pipes[1], "x", 1) == 1)
				pause();
			_exit(1);
		}
		close(pipes[1]);
		CHECK(read(pipes[0], &c, 1) == 1);
		close(pipes[0]);
		kill(child, SIGKILL);
		CHECK(waitpid(child, NULL, 0) == child);
	}
	query_all(DRM_TESSERA_QUERY_MEMORY, 0, &after, sizeof(after));
	SAME(after.hbm_used, before.hbm_used);
	SAME(after.system_used, before.system_used);
}

static sigjmp_buf bus_error;

static void on_bus_error(int sig)
{
	(void)sig;
	siglongjmp(bus_error, 1);
}

/* Last but for itself: takes the device away under an open file and brings it back. */
void unplugging_under_an_open_file(void)
{
	struct drm_tessera_ctx_create ctx = ctx_create();
	struct drm_tessera_bo_create b = bo_create(PAGE, DRM_TESSERA_BO_HBM, ctx.id);
	struct drm_tessera_bo_create sys = bo_create(PAGE, DRM_TESSERA_BO_SYSTEM, ctx.id);
	uint32_t q = queue_create(ctx.id, HW_CLASS_DMA, 0, -1).id;
	struct drm_tessera_sync out = { .handle = syncobj_create() };
	struct hw_sqe stuck = endless(&b);
	volatile uint64_t *p = map_at(b.mmap_offset, PAGE);
	struct drm_tessera_ctx_create other = { 0 };
	struct ring r;
	bool is_gone = false;
	int old = fd;

	p[1] = 1;
	ring_open(&r, ctx.id, HW_CLASS_DMA);
	*r.bell = 0;
	CHECK(!submit_full(q, &stuck, 1, NULL, 0, &out, 1, NULL));
	write_file("/sys/class/accel/accel0/device/remove", "1");
	SAME(access(NODE, F_OK), (uint64_t)-1);
	REFUSES(ioctl(fd, DRM_IOCTL_TESSERA_CTX_CREATE, &other), ENODEV);
	REFUSES(ctx_destroy(ctx.id), ENODEV);
	signal(SIGBUS, on_bus_error);
	if (!sigsetjmp(bus_error, 1))
		p[1] = 2;
	else
		is_gone = true;
	CHECK(is_gone);
	*r.bell = 77;
	SAME(*r.bell, 77);
	munmap((void *)p, PAGE);
	ring_close(&r);
	close(old);
	write_file("/sys/bus/pci/rescan", "1");
	for (unsigned i = 0; i < 500 && access(NODE, F_OK); i++)
		usleep(10000);
	fd = open(NODE, O_RDWR);
	CHECK(fd >= 0);
	ctx = ctx_create();
	q = queue_create(ctx.id, HW_CLASS_DMA, 0, -1).id;
	SAME(run(q, &(struct hw_sqe){ .op = HW_NOP }, 1), 0);
	(void)sys;
	CHECK(!ctx_destroy(ctx.id));
}

/* A socket on which the kernel tells of what becomes of devices. */
static int hear_uevents(void)
{
	struct sockaddr_nl from = { .nl_family = AF_NETLINK, .nl_groups = 1 };
	int s = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK,
		       NETLINK_KOBJECT_UEVENT);

	CHECK(s >= 0 && !bind(s, (void *)&from, sizeof(from)));
	return s;
}

static bool is_told(int s, const char *path, const char *word)
{
	char text[8192];
	ssize_t n;

	while ((n = recv(s, text, sizeof(text) - 1, 0)) > 0) {
		text[n] = 0;
		if (strstr(text, path) && memmem(text, (size_t)n, word, strlen(word) + 1))
			return true;
	}
	return false;
}

/* The device is out of use until the driver is bound again, and user space is told so. */
static void expect_wedged(int uevents, struct drm_tessera_ctx_create ctx, int64_t ns)
{
	struct drm_tessera_bo_create more = { .size = PAGE, .flags = DRM_TESSERA_BO_HBM };
	struct drm_tessera_ctx_create again = { 0 };
	struct drm_tessera_device d = { .is_usable = 1 };
	struct drm_tessera_error e;
	struct hw_telemetry t;
	uint32_t n = sizeof(t);
	bool told = false;

	for (int64_t end = now_ns() + ns; (d.is_usable || !told) && now_ns() < end;
	     usleep(100000)) {
		query_all(DRM_TESSERA_QUERY_DEVICE, 0, &d, sizeof(d));
		told = told || is_told(uevents, "change@/devices/", "WEDGED=rebind");
	}
	SAME(d.is_usable, 0);
	SAME(told, true);
	query_all(DRM_TESSERA_QUERY_ERROR, ctx.id, &e, sizeof(e));
	SAME(e.state, DRM_TESSERA_CTX_LOST);
	REFUSES(ioctl(fd, DRM_IOCTL_TESSERA_CTX_CREATE, &again), ENODEV);
	REFUSES(query(DRM_TESSERA_QUERY_TELEMETRY, 0, &t, &n), ENODEV);
	/* Memory that nobody can clear is not given out. */
	REFUSES(ioctl(fd, DRM_IOCTL_TESSERA_BO_CREATE, &more), ENODEV);
	close(uevents);
}

/* Under work that never ends; `says` is the line that has somebody bring that about. */
static void expect_end_of_device(const char *says, int64_t ns)
{
	struct drm_tessera_ctx_create ctx = ctx_create();
	struct drm_tessera_bo_create b = bo_create(PAGE, DRM_TESSERA_BO_HBM, ctx.id);
	uint32_t q = queue_create(ctx.id, HW_CLASS_DMA, 0, -1).id;
	struct drm_tessera_sync out = { .handle = syncobj_create() };
	int uevents = hear_uevents();

	run_endless(q, &b, &out);
	printf("# %s\n", says);
	CHECK(!wait_point(out.handle, 0, 60 * SECOND));
	SAME(fence_errno(out.handle), ENODEV);
	expect_wedged(uevents, ctx, ns);
	CHECK(!ctx_destroy(ctx.id));
	CHECK(!bo_close(b.handle));
}

/* Run by name alone: guest.sh KILL=1 ends the server when it reads the line. */
void dying_for_good(void)
{
	expect_end_of_device("kill the server now", 150 * SECOND);
}

/*
 * Run by name alone: guest.sh PORT puts the device below a root port, into which it injects the
 * error that it reads here, as one that the port found on its link.
 */
static void expect_link_error(const char *name)
{
	struct drm_tessera_ctx_create ctx = ctx_create();
	struct drm_tessera_bo_create b = bo_create(PAGE, DRM_TESSERA_BO_HBM, ctx.id);
	uint32_t q = queue_create(ctx.id, HW_CLASS_DMA, 0, -1).id;
	struct drm_tessera_sync out = { .handle = syncobj_create() };
	volatile uint64_t *p = map_at(b.mmap_offset, PAGE);
	struct drm_tessera_device d;
	struct ring r;

	p[0] = 31337;
	ring_open(&r, ctx.id, HW_CLASS_DMA);
	query_all(DRM_TESSERA_QUERY_DEVICE, 0, &d, sizeof(d));
	run_endless(q, &b, &out);
	printf("# inject %s\n", name);
	CHECK(!wait_point(out.handle, 0, 60 * SECOND));
	SAME(fence_errno(out.handle), ENODEV);
	*r.bell = 1;
	expect_reset(ctx, q, d.function_resets + 1);
	ring_close(&r);
	SAME(p[0], 31337);
	munmap((void *)p, PAGE);
	CHECK(!bo_close(b.handle));
}

void link_errors_end_contexts(void)
{
	expect_link_error("COMP_TIME");
	expect_link_error("POISON_TLP");
}

/* 6.12 resets no link for an error that is not fatal. */
void link_errors_find_a_fatal_device(void)
{
	struct drm_tessera_device d;

	for (unsigned i = 0; i < 4; i++) {
		query_all(DRM_TESSERA_QUERY_DEVICE, 0, &d, sizeof(d));
		die_unheard();
		printf("# inject COMP_TIME\n");
		expect_back(d.function_resets);
	}
}

void fatal_link_errors_reset_the_link(void)
{
	expect_link_error("DLP");
	expect_link_error("MALF_TLP");
}

/* On a port that the PCI core can't reset. */
void a_link_that_stays_down_is_given_up(void)
{
	expect_link_error("DLP");
}

/* The same where the PCI core says that it has given the link up, as 7.2 does. */
void a_link_that_is_given_up_wedges(void)
{
	expect_end_of_device("inject DLP", 60 * SECOND);
}
