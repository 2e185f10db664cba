/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tenants against each other: processes of users without capabilities on two devices, and
 * devices that lie. What one does, or a device says, never reaches another's memory, work
 * or time.
 *
 *	kmod_tenants [NAME]		the tests, or those whose name contains NAME
 *
 * The module is loaded with limit_ms=3000.
 */
#define _GNU_SOURCE	/* RUSAGE_THREAD */
#include "tests/kmod/kmod_tenants.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hal/hw/isa.h"
#include "hal/hw/regs.h"

#define MiB (1ull << 20)

/* ---- doorbells ---- */

struct bells {
	atomic_bool stop;
	volatile uint32_t *_Atomic bell;
	unsigned n;
};

static void *ring_on(void *arg)
{
	struct bells *b = arg;

	while (!b->stop) {
		volatile uint32_t *bell = b->bell;

		if (bell)
			*bell = 1;
	}
	return NULL;
}

/* Stores to a doorbell without pause while its queue ends. */
static int ring_after_the_end(void *arg)
{
	struct bells *b = arg;
	struct drm_tessera_ctx_create ctx = ctx_create();
	volatile uint32_t *old[64] = { NULL };	/* the thread may still store to the last few */
	pthread_t thread;

	CHECK(!pthread_create(&thread, NULL, ring_on, b));
	while (!b->stop) {
		struct drm_tessera_queue_create q = queue_create(ctx.id, HW_CLASS_DMA,
								 DRM_TESSERA_QUEUE_USER, -1);
		volatile uint32_t *bell = (void *)map_at(q.doorbell_offset, PAGE);

		*bell = 0;
		b->bell = bell;
		if (old[b->n % 64])
			munmap((void *)(uintptr_t)old[b->n % 64], PAGE);
		old[b->n % 64] = bell;
		CHECK(!queue_call(DRM_IOCTL_TESSERA_QUEUE_DESTROY, q.id));
		bo_close(q.sq_handle);
		bo_close(q.cq_handle);
		bo_close(q.doorbell_handle);
		b->n++;
	}
	pthread_join(thread, NULL);
	return 0;
}

/* A new queue takes the number that ended last: its work must be done by its own doorbell. */
static void a_doorbell_is_never_a_strangers(void)
{
	struct bells *b = shared(sizeof(*b));
	struct drm_tessera_ctx_create ctx = ctx_create();
	struct drm_tessera_bo_create mem = bo_create(PAGE, DRM_TESSERA_BO_SYSTEM, ctx.id);
	volatile uint64_t *p = map_at(mem.mmap_offset, PAGE);
	uint64_t resets = function_resets();
	pid_t attacker = tenant(1, ring_after_the_end, b);
	unsigned n = 0, undone = 0, failed = 0;
	int64_t began = now_ns();

	/* Longer where a kernel checks much. */
	while (now_ns() < began + 5 * SECOND ||
	       ((n <= 50 || b->n <= 50) && now_ns() < began + 60 * SECOND)) {
		uint32_t q = queue_create(ctx.id, HW_CLASS_DMA, 0, -1).id;
		struct hw_sqe d = fill(mem.va, 8, n + 1);
		int error;

		if (n % 2)
			usleep(200);
		error = run(q, &d, 1);
		failed += error != 0;
		undone += !error && p[0] != n + 1;
		CHECK(!queue_call(DRM_IOCTL_TESSERA_QUEUE_DESTROY, q));
		n++;
	}
	b->stop = true;
	SAME(end_of(attacker, 10 * SECOND), 0);
	printf("# %u submissions beside %u queues that ended: %u done and not done, %u failed\n",
	       n, b->n, undone, failed);
	CHECK(n > 50 && b->n > 50);
	SAME(undone, 0);
	SAME(failed, 0);
	SAME(function_resets(), resets);
}

/* The number that the device has given a queue. */
static unsigned hw_queue_of(const char *name)
{
	char path[512];
	const char *line, *found = "";

	debug_path(path, sizeof(path), "queues");
	for (line = read_from(path, "queue "); *line; line = strstr(line + 1, "\nqueue ") ?: "")
		if (strstr(line, name) && strstr(line, name) < (strchr(line + 1, '\n') ?: line))
			found = line;
	CHECK(*found);
	return (unsigned)strtoul(strchr(found, ' '), NULL, 10);
}

/* Memory where nothing was written yet reads as a NOP with tag 0. */
static void what_nobody_submitted_is_nobodys_completion(void)
{
	struct drm_tessera_ctx_create ctx = ctx_create();
	struct drm_tessera_bo_create mem = bo_create(PAGE, DRM_TESSERA_BO_SYSTEM, ctx.id);
	volatile uint64_t *p = map_at(mem.mmap_offset, PAGE);
	uint32_t q = queue_create(ctx.id, HW_CLASS_DMA, 0, -1).id;
	struct hw_sqe d = fill(mem.va, 8, 99);
	uint64_t resets = function_resets(), value = hw_queue_of("kernel") | 1ull << 32;
	char path[512], text[64];
	int error;

	debug_path(path, sizeof(path), "inject");
	snprintf(text, sizeof(text), "%u %llu", HW_INJECT_DOORBELL, (unsigned long long)value);
	write_file(path, text);
	usleep(50000);
	error = run(q, &d, 1);
	if (!error && p[0] != 99)
		fail(__LINE__, "done, says the fence, and it was not");
	/* Not ours: the device is not to be trusted any more. */
	SAME(error, ENODEV);
	await_reset(resets + 1);
}

/* ---- memory ---- */

/* Takes memory of the kernel's and writes to it. */
static void churn_pages(void)
{
	uint8_t *p = mmap(NULL, 64 * MiB, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	CHECK(p != MAP_FAILED);
	memset(p, 0xee, 64 * MiB);
	munmap(p, 64 * MiB);
}

static void check_outlives(uint32_t flags)
{
	int other = open(OTHER_NODE, O_RDWR | O_CLOEXEC);
	struct drm_prime_handle prime = { .fd = -1, .flags = DRM_CLOEXEC | DRM_RDWR };
	struct drm_tessera_bo_create b = bo_create(4 * MiB, flags, 0), to;
	uint64_t *p = map_at(b.mmap_offset, 4 * MiB), va = 0, wrong = 0;
	struct drm_tessera_ctx_create ctx;
	struct hw_sqe d;
	uint32_t q;

	CHECK(other >= 0);
	for (uint64_t i = 0; i < 4 * MiB / 8; i++)
		p[i] = i ^ 0x5a5a;
	munmap(p, 4 * MiB);
	prime.handle = b.handle;
	CHECK(!ioctl(fd, DRM_IOCTL_PRIME_HANDLE_TO_FD, &prime));
	close(fd);
	fd = other;
	CHECK(!ioctl(fd, DRM_IOCTL_PRIME_FD_TO_HANDLE, &prime));
	ctx = ctx_create();
	to = bo_create(4 * MiB, DRM_TESSERA_BO_SYSTEM, ctx.id);
	q = queue_create(ctx.id, HW_CLASS_DMA, 0, -1).id;
	CHECK(!map(ctx.id, prime.handle, &va, DRM_TESSERA_MAP_WRITE));
	bind_driver(0, false);
	churn_pages();
	d = copy(to.va, va, 4 * MiB);
	SAME(run(q, &d, 1), 0);
	p = map_at(to.mmap_offset, 4 * MiB);
	for (uint64_t i = 0; i < 4 * MiB / 8; i++)
		wrong += p[i] != (i ^ 0x5a5a);
	munmap(p, 4 * MiB);
	d = fill(va, 4 * MiB, ~0ull);
	SAME(run(q, &d, 1), 0);
	churn_pages();
	SAME(wrong, 0);
}

/* A dma-buf of one device that another reaches stays memory when the first is unbound. */
static void shared_memory_outlives_its_device(void)
{
	check_outlives(DRM_TESSERA_BO_SYSTEM);
}

static void shared_contiguous_memory_outlives_its_device(void)
{
	check_outlives(DRM_TESSERA_BO_SYSTEM | DRM_TESSERA_BO_CONTIGUOUS);
}

/* Whether a load of *p took a page fault: the kernel tells nobody of mapped device memory. */
static bool faults(volatile uint32_t *p)
{
	struct rusage before, after;

	getrusage(RUSAGE_THREAD, &before);
	(void)*p;
	getrusage(RUSAGE_THREAD, &after);
	return after.ru_minflt != before.ru_minflt;
}

/* What unbinding takes away is what faults have mapped: nothing else may be mapped. */
static void a_page_comes_with_its_first_touch(void)
{
	struct drm_tessera_ctx_create ctx = ctx_create();
	uint32_t kinds[] = { DRM_TESSERA_BO_HBM, DRM_TESSERA_BO_SYSTEM,
			     DRM_TESSERA_BO_SYSTEM | DRM_TESSERA_BO_CONTIGUOUS };
	struct ring r;

	for (unsigned i = 0; i < 3; i++) {
		struct drm_tessera_bo_create b = bo_create(PAGE, kinds[i], 0);
		volatile uint64_t *p = map_at(b.mmap_offset, PAGE);

		CHECK(faults((void *)(uintptr_t)p));
		CHECK(!faults((void *)(uintptr_t)p));
		munmap((void *)(uintptr_t)p, PAGE);
		bo_close(b.handle);
	}
	ring_open(&r, ctx.id, HW_CLASS_DMA);
	CHECK(faults((void *)r.sq) && faults((void *)(uintptr_t)r.cq) && faults(r.bell));
	ring_close(&r);
	CHECK(!ctx_destroy(ctx.id));
}

/* A child that stores to its parent's doorbell would be a second driver of the queue. */
static void a_child_has_no_queues(void)
{
	struct drm_tessera_ctx_create ctx = ctx_create();
	struct ring r;
	pid_t child;

	ring_open(&r, ctx.id, HW_CLASS_DMA);
	*r.bell = 0;
	child = fork();
	CHECK(child >= 0);
	if (!child) {
		int there = 0;

		there |= msync((void *)(uintptr_t)r.bell, PAGE, MS_ASYNC) ? 0 : 1;
		there |= msync(r.sq, PAGE, MS_ASYNC) ? 0 : 2;
		there |= msync((void *)(uintptr_t)r.cq, PAGE, MS_ASYNC) ? 0 : 4;
		_exit(there);
	}
	SAME(end_of(child, 5 * SECOND), 0);
	ring_close(&r);
	CHECK(!ctx_destroy(ctx.id));
}

struct handles {
	atomic_bool stop;
	atomic_uint n_lost, n;
};

/* Guesses the handle that another thread's call is about to get, and takes its place. */
static void *take_handles(void *arg)
{
	struct handles *h = arg;

	while (!h->stop) {
		struct drm_tessera_bo_create b = { .size = PAGE, .flags = DRM_TESSERA_BO_SYSTEM };
		struct drm_tessera_bo_info info = { 0 };

		for (uint32_t guess = 1; guess < 8; guess++) {
			info.handle = guess;
			if (!ioctl(fd, DRM_IOCTL_TESSERA_BO_INFO, &info) && info.size == 2 * PAGE)
				bo_close(guess);
		}
		if (ioctl(fd, DRM_IOCTL_TESSERA_BO_CREATE, &b))
			continue;
		usleep(300);
		info.handle = b.handle;
		if (ioctl(fd, DRM_IOCTL_TESSERA_BO_INFO, &info) || info.size != PAGE)
			h->n_lost++;
		h->n++;
		bo_close(b.handle);
	}
	return NULL;
}

/* Makes calls that hold the context for a while. */
static void *hold_context(void *arg)
{
	struct handles *h = arg;
	struct drm_tessera_bo_create b = bo_create(MiB, DRM_TESSERA_BO_HBM, 0);
	uint32_t ctx = h->n_lost;
	uint64_t va;

	h->n_lost = 0;
	while (!h->stop) {
		va = 0;
		if (!map(ctx, b.handle, &va, 0))
			unmap(ctx, va);
	}
	return NULL;
}

/* A call that fails has given nothing that it would have to take back. */
static void a_handle_is_given_last(void)
{
	struct drm_tessera_ctx_create ctx = ctx_create();
	struct drm_tessera_bo_create first = bo_create(PAGE, DRM_TESSERA_BO_SYSTEM, ctx.id);
	struct handles h = { .n_lost = ctx.id };
	pthread_t a, c;

	CHECK(!pthread_create(&c, NULL, hold_context, &h));
	CHECK(!pthread_create(&a, NULL, take_handles, &h));
	for (int64_t end = now_ns() + 3 * SECOND; now_ns() < end;) {
		struct drm_tessera_bo_create b = { .size = 2 * PAGE, .ctx = ctx.id,
						   .flags = DRM_TESSERA_BO_SYSTEM,
						   .va = first.va };

		REFUSES(ioctl(fd, DRM_IOCTL_TESSERA_BO_CREATE, &b), EEXIST);
	}
	h.stop = true;
	pthread_join(a, NULL);
	pthread_join(c, NULL);
	printf("# %u buffers made meanwhile, %u lost\n", h.n, h.n_lost);
	CHECK(h.n > 20);
	SAME(h.n_lost, 0);
}

/* ---- devices that lie ---- */

static void lie(unsigned what, unsigned value)
{
	inject(what, value);
}

static void expect_no_queue(unsigned number)
{
	struct drm_tessera_ctx_create ctx = ctx_create();
	struct drm_tessera_queue_create q = { .ctx = ctx.id, .cls = HW_CLASS_DMA,
					      .flags = DRM_TESSERA_QUEUE_USER,
					      .n_entries = 64, .eventfd = -1 };
	uint64_t resets = function_resets();
	int r;

	lie(HW_INJECT_WRONG_VALUE, number);
	r = ioctl(fd, DRM_IOCTL_TESSERA_QUEUE_CREATE, &q);
	if (!r)
		fail(__LINE__, "queue number %u was believed", number);
	SAME(errno, ECANCELED);
	await_reset(resets + 1);
}

static void numbers_of_queues_are_checked(void)
{
	struct drm_tessera_ctx_create ctx;
	struct ring r;

	expect_no_queue(0);
	expect_no_queue(HW_MAX_QUEUES);
	expect_no_queue(100000);
	/* One that is somebody's: the newcomer would have its doorbell. */
	ctx = ctx_create();
	ring_open(&r, ctx.id, HW_CLASS_DMA);
	expect_no_queue(hw_queue_of("user"));
	ring_close(&r);
}

static void expect_no_context(unsigned number)
{
	struct drm_tessera_ctx_create c = { 0 };
	uint64_t resets = function_resets();

	lie(HW_INJECT_WRONG_VALUE, number);
	/* It is asked again after the reset, and says the truth. */
	CHECK(!ioctl(fd, DRM_IOCTL_TESSERA_CTX_CREATE, &c));
	SAME(function_resets(), resets + 1);
	CHECK(!ctx_destroy(c.id));
}

static void numbers_of_contexts_are_checked(void)
{
	expect_no_context(0);
	expect_no_context(HW_MAX_CONTEXTS);
	expect_no_context(70000);
	ctx_create();
	expect_no_context(1);
}

/* A program that does nothing; says: the number that the device gives, if it lies. */
static int program_create(uint32_t ctx, const unsigned *says, uint32_t *id)
{
	struct isa_scalar code = { .insn = { .op = ISA_HALT, .bytes = sizeof(code) } };
	struct drm_tessera_bo_create b = bo_create(PAGE, DRM_TESSERA_BO_SYSTEM, ctx);
	struct drm_tessera_program_create p = { .ctx = ctx, .code_va = b.va,
						.code_bytes = sizeof(code) };
	struct isa_scalar *at = (void *)map_at(b.mmap_offset, PAGE);
	int r;

	*at = code;
	munmap(at, PAGE);
	if (says)
		lie(HW_INJECT_WRONG_VALUE, *says);
	r = ioctl(fd, DRM_IOCTL_TESSERA_PROGRAM_CREATE, &p);
	*id = p.id;
	return r;
}

static void expect_no_program(uint32_t ctx, unsigned number)
{
	uint64_t resets = function_resets();
	uint32_t id;

	if (!program_create(ctx, &number, &id))
		fail(__LINE__, "program number %u was believed", number);
	SAME(errno, ECANCELED);
	await_reset(resets + 1);
}

static void numbers_of_programs_are_checked(void)
{
	struct drm_tessera_program_destroy d = { 0 };
	struct drm_tessera_ctx_create ctx, other;
	int own = open(NODE, O_RDWR | O_CLOEXEC), first = fd;
	uint64_t resets;
	uint32_t id, again;

	CHECK(own >= 0);
	/* One that is another's, who would lose it to the newcomer. */
	other = ctx_create();
	CHECK(!program_create(other.id, NULL, &id));
	fd = own;
	expect_no_program(ctx_create().id, id);
	expect_no_program(ctx_create().id, 0);
	expect_no_program(ctx_create().id, 65536);
	/* One that was somebody's is anybody's. */
	fd = first;
	resets = function_resets();
	other = ctx_create();
	CHECK(!program_create(other.id, NULL, &id));
	fd = own;
	ctx = ctx_create();
	fd = first;
	CHECK(!ctx_destroy(other.id));
	fd = own;
	CHECK(!program_create(ctx.id, NULL, &again));
	SAME(again, id);
	d.ctx = ctx.id;
	d.id = again;
	CHECK(!ioctl(fd, DRM_IOCTL_TESSERA_PROGRAM_DESTROY, &d));
	CHECK(!program_create(ctx.id, NULL, &again));
	SAME(again, id);
	SAME(function_resets(), resets);
	close(first);
}

static void a_page_that_is_too_short_is_none(void)
{
	uint64_t resets = function_resets();
	struct hw_ras ras;
	uint32_t n = sizeof(ras);

	usleep(100000);		/* until the driver asks again */
	lie(HW_INJECT_WRONG_VALUE, 8);
	REFUSES(query(DRM_TESSERA_QUERY_RAS, 0, &ras, &n), ECANCELED);
	await_reset(resets + 1);
}

static void an_answer_to_another_is_none(void)
{
	struct drm_tessera_ctx_create c = { 0 };
	uint64_t resets = function_resets();

	lie(HW_INJECT_WRONG_TAG, 1);
	CHECK(!ioctl(fd, DRM_IOCTL_TESSERA_CTX_CREATE, &c));
	SAME(function_resets(), resets + 1);
	CHECK(!ctx_destroy(c.id));
}

/* That a context is lost is what the driver says, and then it has seen to it: from the device that
 * is an answer to no request. */
static void statuses_of_answers_are_checked(void)
{
	static const unsigned statuses[] = { HW_ST_DROPPED, HW_ST_LINK, HW_ST_RESET,
					     HW_ST_DEVICE_FATAL, HW_ST_PEER };

	for (unsigned i = 0; i < sizeof(statuses) / sizeof(*statuses); i++) {
		struct drm_tessera_ctx_create ctx = ctx_create();
		struct drm_tessera_bo_create b = bo_create(PAGE, DRM_TESSERA_BO_SYSTEM, ctx.id);
		uint64_t resets = function_resets();

		lie(HW_INJECT_WRONG_STATUS, statuses[i]);
		if (i % 2) {
			REFUSES(unmap(ctx.id, b.va), ECANCELED);
			await_reset(resets + 1);
		}
		CHECK(!ctx_destroy(ctx.id));
		/* The call has waited for it: memory is free now. */
		SAME(function_resets(), resets + 1);
	}
}

/* ---- links ---- */

static int ask_links(void *out, uint32_t *bytes, uint32_t *record)
{
	struct drm_tessera_query q = { .type = DRM_TESSERA_QUERY_LINKS, .data = P(out),
				       .size = *bytes, .record_bytes = *record };
	int r = ioctl(fd, DRM_IOCTL_TESSERA_QUERY, &q);

	*bytes = q.size;
	*record = q.record_bytes;
	return r;
}

/* The only link of the device, which leads to the other. */
static struct drm_tessera_link link_of(unsigned chip)
{
	struct drm_tessera_link l[HW_MAX_LINKS];
	uint32_t bytes = sizeof(l), record = sizeof(*l);

	CHECK(!ask_links(l, &bytes, &record));
	SAME(bytes, sizeof(*l));
	SAME(record, sizeof(*l));
	SAME(l[0].peer, !chip);
	return l[0];
}

static void await_link(unsigned chip, unsigned is)
{
	int64_t deadline = now_ns() + 10 * SECOND;

	/* The answer may be 50 ms old. */
	while (link_of(chip).is != is && now_ns() < deadline)
		usleep(10000);
	SAME(link_of(chip).is, is);
}

static void links_are_told(void)
{
	struct { struct drm_tessera_link link; uint64_t more; } longer = { .more = 7 };
	struct drm_tessera_identity id;
	struct drm_tessera_link l;
	struct { uint16_t peer; uint8_t dim, is_down, is, zero[3]; } shorter;
	uint32_t bytes = 0, record = 0;
	int other = open(OTHER_NODE, O_RDWR | O_CLOEXEC), own = fd;

	CHECK(other >= 0);
	query_all(DRM_TESSERA_QUERY_IDENTIFY, 0, &id, sizeof(id));
	CHECK(id.fabric);
	SAME(id.n_chips, 2);
	CHECK(!ask_links(NULL, &bytes, &record));
	SAME(bytes, sizeof(l));
	SAME(record, sizeof(l));
	l = link_of(id.chip);
	SAME(l.is, DRM_TESSERA_LINK_UP);
	SAME(l.tx_bytes + l.rx_bytes + l.n_packets + l.n_errors, 0);
	fd = other;
	await_link(!id.chip, DRM_TESSERA_LINK_UP);
	fd = own;
	/* Records of other sizes, and what is none. */
	bytes = record = sizeof(longer);
	CHECK(!ask_links(&longer, &bytes, &record));
	SAME(bytes, sizeof(longer));
	SAME(longer.link.peer, !id.chip);
	SAME(longer.more, 0);
	bytes = record = sizeof(shorter);
	CHECK(!ask_links(&shorter, &bytes, &record));
	SAME(shorter.peer, !id.chip);
	SAME(shorter.is, DRM_TESSERA_LINK_UP);
	bytes = sizeof(l);
	record = 12;
	REFUSES(ask_links(&l, &bytes, &record), EINVAL);
	REFUSES(query(DRM_TESSERA_QUERY_LINKS, 1, &l, &bytes), EINVAL);
	/* It goes down at both ends, and a reset brings it up. */
	inject(HW_INJECT_LINK_DOWN, 0);
	await_link(id.chip, DRM_TESSERA_LINK_DOWN);
	fd = other;
	await_link(!id.chip, DRM_TESSERA_LINK_DOWN);
	fd = own;
	reset_function();
	await_link(id.chip, DRM_TESSERA_LINK_UP);
	/* The other end without a driver. */
	close(other);
	bind_driver(1, false);
	await_link(id.chip, DRM_TESSERA_LINK_PEER_OFF);
	bind_driver(1, true);
	await_node(OTHER_NODE);
	await_link(id.chip, DRM_TESSERA_LINK_UP);
}

/* By name alone, where the kernel bounces DMA: there must be no node, and a reason. */
static void bounced_dma_is_refused(void)
{
	static char log[1 << 20];
	long n = syscall(SYS_syslog, 3, log, sizeof(log) - 1);

	close(fd);
	CHECK(access(NODE, F_OK));
	CHECK(n > 0 && strstr(log, "bounce"));
}

#define TEST(name) { #name, name, false }
#define NAMED(name) { #name, name, true }
static const struct {
	const char *name;
	void (*run)(void);
	bool is_named_only;
} tests[] = {
	NAMED(bounced_dma_is_refused),
	NAMED(peer_memory_is_read_and_written),
	NAMED(peer_memory_is_mapped_in_parts),
	NAMED(peer_memory_goes_with_its_driver),
	NAMED(peer_memory_comes_back_after_a_reset),
	NAMED(peer_memory_comes_back_after_a_death),
	NAMED(peers_that_are_killed_leave_nothing),
	NAMED(peers_that_are_reset_together_come_back),
	TEST(a_doorbell_is_never_a_strangers),
	TEST(a_wake_page_wakes_its_context_alone),
	TEST(wakes_too_many_harm_nobody),
	TEST(a_wake_page_ends_with_its_context),
	TEST(a_wake_page_ends_with_a_reset),
	TEST(a_wake_page_ends_with_its_driver),
	TEST(a_wake_page_is_never_a_strangers),
	TEST(a_wake_page_is_its_owners_alone),
	TEST(what_nobody_submitted_is_nobodys_completion),
	TEST(shared_memory_outlives_its_device),
	TEST(shared_contiguous_memory_outlives_its_device),
	TEST(hbm_without_a_way_is_refused),
	TEST(a_page_comes_with_its_first_touch),
	TEST(a_child_has_no_queues),
	TEST(a_handle_is_given_last),
	TEST(numbers_of_queues_are_checked),
	TEST(numbers_of_contexts_are_checked),
	TEST(numbers_of_programs_are_checked),
	TEST(statuses_of_answers_are_checked),
	TEST(a_page_that_is_too_short_is_none),
	TEST(an_answer_to_another_is_none),
	TEST(links_are_told),
	TEST(fdinfo_answers_while_the_device_does_not),
	TEST(more_than_normal_priority_takes_a_capability),
	TEST(the_hog_is_stopped_and_nobody_waits_for_it),
	TEST(long_work_beside_others_goes_on),
	TEST(the_one_that_keeps_an_engine_is_reset),
	TEST(what_waits_is_bounded),
	TEST(who_asks_to_wait_for_room_does),
	TEST(no_fence_waits_for_memory),
	TEST(long_programs_keep_nobody_long),
	TEST(unbinding_waits_for_no_user),
};

/* In a process of its own, with whose end all that it opened ends. */
static bool runs(unsigned i)
{
	pid_t child = fork();
	int status = -1;

	if (child)
		return child > 0 && waitpid(child, &status, 0) == child && !status;
	fd = open(NODE, O_RDWR | O_CLOEXEC);
	if (!setjmp(test_end)) {
		CHECK(fd >= 0 || tests[i].is_named_only);
		tests[i].run();
	}
	_exit(n_failed != 0);
}

/* A test that failed may have left a device without its driver. */
static void restore(void)
{
	static const char *const nodes[] = { NODE, OTHER_NODE };

	for (unsigned i = 0; i < 2; i++) {
		char path[256];

		if (!*pci[i])
			continue;
		snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/driver", pci[i]);
		if (access(path, F_OK))
			bind_driver(i, true);
		await_node(nodes[i]);
	}
	write_file("/sys/module/tessera/parameters/hang_ms", "120000");
}

int main(int argc, char **argv)
{
	static unsigned failed;

	setvbuf(stdout, NULL, _IOLBF, 0);
	find_devices();
	for (unsigned i = 0; i < sizeof(tests) / sizeof(*tests); i++) {
		int64_t t = now_ns();
		bool is_ok;

		test_name = tests[i].name;
		if (argc > 1 ? !strstr(test_name, argv[1]) : tests[i].is_named_only)
			continue;
		if (setjmp(test_end))
			return 1;
		restore();
		is_ok = runs(i);
		failed += !is_ok;
		printf("%s %s (%lld ms)\n", is_ok ? "ok" : "not ok", test_name,
		       (long long)(now_ns() - t) / 1000000);
	}
	printf("%s: %u failed\n", failed ? "FAILED" : "PASSED", failed);
	return failed != 0;
}
