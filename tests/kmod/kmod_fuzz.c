/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random calls: every ioctl of the driver and the core's that work on its objects, with
 * right and wrong sizes, flags, ids, addresses and descriptors. Nothing is expected of
 * a call but that it returns; what counts is what the kernel says afterwards, and that a
 * fresh context works.
 *
 *     kmod_fuzz [CALLS [SEED [PROCESSES]]]	1,000,000 of 4 processes at a time
 */
#include "tests/kmod/kmod.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define ARENA ((size_t)1 << 20)
#define POOL 16
#define ROOM 512

static uint64_t state;
static struct drm_tessera_map_op ops[4];	/* of MAP */
static uint8_t *arena;		/* what calls may read, write and pin */
static uint32_t ids[POOL];	/* of contexts, queues, buffers, syncobjs: anything */
static uint64_t vas[POOL];
static unsigned n_ids, n_vas, n_calls, n_good;

static uint32_t pick(uint32_t n)
{
	state = state * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(state >> 33) % n;
}

static void note_id(uint32_t id)
{
	ids[n_ids++ % POOL] = id;
}

static uint32_t some_id(void)
{
	return pick(8) ? ids[pick(POOL)] : pick(4) ? pick(8) : (uint32_t)state;
}

/* Never memory of the program's own that a call could spoil. */
static uint64_t some_address(void)
{
	switch (pick(8)) {
	case 0: return 0;
	case 1: return 0xffff888000000000ull + pick(1 << 30);
	case 2: return 0x7ffffffff000ull;
	case 3: return (uint64_t)pick(64) * 4096;
	default: return P(arena) + (pick(2) ? pick(128) * PAGE : pick(ARENA - ROOM));
	}
}

static uint64_t some_number(void)
{
	switch (pick(8)) {
	case 0: return 0;
	case 1: return UINT64_MAX - pick(5000);
	case 2: return (uint64_t)pick(1 << 20) << 30;
	case 3: return 1ull << pick(64);
	case 4: return vas[pick(POOL)];
	case 5: return pick(32) * PAGE;
	default: return pick(70);
	}
}

static const struct { unsigned nr, size; } calls[] = {
	{ DRM_TESSERA_QUERY, sizeof(struct drm_tessera_query) },
	{ DRM_TESSERA_CTX_CREATE, sizeof(struct drm_tessera_ctx_create) },
	{ DRM_TESSERA_CTX_DESTROY, sizeof(struct drm_tessera_ctx_destroy) },
	{ DRM_TESSERA_BO_CREATE, sizeof(struct drm_tessera_bo_create) },
	{ DRM_TESSERA_BO_USERPTR, sizeof(struct drm_tessera_bo_userptr) },
	{ DRM_TESSERA_BO_INFO, sizeof(struct drm_tessera_bo_info) },
	{ DRM_TESSERA_MAP, sizeof(struct drm_tessera_map) },
	{ DRM_TESSERA_UNMAP, sizeof(struct drm_tessera_unmap) },
	{ DRM_TESSERA_QUEUE_CREATE, sizeof(struct drm_tessera_queue_create) },
	{ DRM_TESSERA_QUEUE_DESTROY, sizeof(struct drm_tessera_queue_id) },
	{ DRM_TESSERA_QUEUE_RESET, sizeof(struct drm_tessera_queue_id) },
	{ DRM_TESSERA_PROGRAM_CREATE, sizeof(struct drm_tessera_program_create) },
	{ DRM_TESSERA_PROGRAM_DESTROY, sizeof(struct drm_tessera_program_destroy) },
	{ DRM_TESSERA_SUBMIT, sizeof(struct drm_tessera_submit) },
	{ DRM_TESSERA_TRACE_START, sizeof(struct drm_tessera_trace_start) },
	{ DRM_TESSERA_TRACE_STOP, sizeof(struct drm_tessera_trace_stop) },
};

/* Arguments that are right as far as they go; most of them are spoiled a little. */
static void make_right(unsigned nr, void *args)
{
	switch (nr) {
	case DRM_TESSERA_QUERY:
		*(struct drm_tessera_query *)args = (struct drm_tessera_query){
			.type = pick(11), .ctx = pick(2) ? some_id() : 0,
			.data = some_address(), .size = pick(600),
			.record_bytes = pick(4) ? 0 : pick(40) * 8 };
		break;
	case DRM_TESSERA_BO_CREATE:
		*(struct drm_tessera_bo_create *)args = (struct drm_tessera_bo_create){
			.size = pick(20) * PAGE, .flags = 1u << pick(3),
			.ctx = pick(2) ? some_id() : 0 };
		break;
	case DRM_TESSERA_BO_USERPTR:
		*(struct drm_tessera_bo_userptr *)args = (struct drm_tessera_bo_userptr){
			.address = some_address(), .size = pick(20) * PAGE };
		break;
	case DRM_TESSERA_MAP:
		*(struct drm_tessera_map *)args = (struct drm_tessera_map){
			.ctx = some_id(), .n_ops = 1 + pick(4), .ops = P(ops),
			.op_bytes = sizeof(*ops) };
		for (unsigned i = 0; i < 4; i++)
			ops[i] = (struct drm_tessera_map_op){
				.handle = some_id(), .flags = pick(2),
				.offset = pick(3) ? 0 : some_number(),
				.bytes = pick(3) ? 0 : some_number(),
				.va = pick(2) ? 0 : some_number() };
		break;
	case DRM_TESSERA_UNMAP:
		*(struct drm_tessera_unmap *)args = (struct drm_tessera_unmap){
			.ctx = some_id(), .va = vas[pick(POOL)] };
		break;
	case DRM_TESSERA_QUEUE_CREATE:
		*(struct drm_tessera_queue_create *)args = (struct drm_tessera_queue_create){
			.ctx = some_id(), .flags = pick(2), .n_entries = 1u << pick(12),
			.cls = (uint8_t)pick(3), .priority = (uint8_t)pick(4),
			.limit_ns = 1000000, .eventfd = -1 };
		break;
	case DRM_TESSERA_PROGRAM_CREATE:
		*(struct drm_tessera_program_create *)args = (struct drm_tessera_program_create){
			.ctx = some_id(), .n_bindings = pick(6), .code_va = vas[pick(POOL)],
			.code_bytes = pick(512), .bindings = some_address(),
			.binding_bytes = 8 + pick(4) * 8 };
		break;
	case DRM_TESSERA_TRACE_START:
		*(struct drm_tessera_trace_start *)args = (struct drm_tessera_trace_start){
			.ctx = some_id(), .va = vas[pick(POOL)], .n_records = 64u << pick(4),
			.first = 1 + pick(1000), .eventfd = -1 };
		break;
	case DRM_TESSERA_SUBMIT:
		*(struct drm_tessera_submit *)args = (struct drm_tessera_submit){
			.queue = some_id(), .n_descs = pick(6), .desc_bytes = 64,
			.descs = P(arena) + pick(64) * 64, .n_in = pick(8) ? 0 : pick(3),
			.n_out = pick(4) ? 0 : pick(3), .sync_bytes = 8 + pick(3) * 8,
			.in_syncs = some_address(),
			.out_syncs = some_address() };
		for (unsigned i = 0; i < 64; i++) {
			struct hw_sqe *d = (struct hw_sqe *)(void *)arena + i;

			*d = pick(3) ? fill(vas[pick(POOL)], pick(9000), state) :
				       copy(vas[pick(POOL)], vas[pick(POOL)], pick(9000));
			if (!pick(4))
				((uint8_t *)d)[pick(64)] = (uint8_t)state;
		}
		break;
	default:
		memset(args, 0, ROOM);
		((uint32_t *)args)[0] = nr == DRM_TESSERA_CTX_CREATE ? 0 : some_id();
		((uint32_t *)args)[1] = nr == DRM_TESSERA_PROGRAM_DESTROY ? some_id() : 0;
	}
}

static void spoil(void *args, unsigned size)
{
	for (unsigned n = pick(3); n-- && size >= 8;) {
		uint64_t x = pick(2) ? some_number() : some_address();

		memcpy((uint8_t *)args + pick(size / 8) * 8, &x, 1u << pick(4));
	}
}

/* The kernel gives what there is and kills who asked for more: that is not tested here. */
static void bound_memory(struct drm_tessera_bo_create *c)
{
	if (c->size > 4u << 20 && c->size < 1ull << 50)
		c->size = c->size % (4u << 20);
}

static void harvest(unsigned nr, const void *args)
{
	switch (nr) {
	case DRM_TESSERA_CTX_CREATE:
		note_id(((const struct drm_tessera_ctx_create *)args)->id);
		note_id(((const struct drm_tessera_ctx_create *)args)->syncobj);
		break;
	case DRM_TESSERA_BO_CREATE:
		note_id(((const struct drm_tessera_bo_create *)args)->handle);
		vas[n_vas++ % POOL] = ((const struct drm_tessera_bo_create *)args)->va;
		break;
	case DRM_TESSERA_BO_USERPTR:
		note_id(((const struct drm_tessera_bo_userptr *)args)->handle);
		break;
	case DRM_TESSERA_MAP:
		vas[n_vas++ % POOL] = ops[0].va;
		break;
	case DRM_TESSERA_QUEUE_CREATE:
		note_id(((const struct drm_tessera_queue_create *)args)->id);
		break;
	default:
		break;
	}
}

static void call_driver(void)
{
	static uint64_t args[ROOM / 8];
	unsigned k = pick(sizeof(calls) / sizeof(*calls)), nr = calls[k].nr;
	unsigned size = calls[k].size, dir = _IOC_READ | _IOC_WRITE;

	/* A reset takes long and ends everything: some of them will do. */
	if (!pick(40000))
		reset_function();
	make_right(nr, args);
	if (!pick(3))
		spoil(args, size);
	if (nr == DRM_TESSERA_BO_CREATE)
		bound_memory((void *)args);
	if (!pick(30))
		size = pick(ROOM);
	if (!pick(30))
		dir = pick(4);
	if (!pick(200))
		nr = pick(96);
	n_calls++;
	if (!ioctl(fd, _IOC(dir, DRM_IOCTL_BASE, DRM_COMMAND_BASE + nr, size), args)) {
		n_good++;
		harvest(nr, args);
	}
}

static void call_core(void)
{
	struct drm_gem_close end = { .handle = some_id() };
	struct drm_prime_handle prime = { .handle = some_id(), .flags = DRM_CLOEXEC | DRM_RDWR };
	struct drm_syncobj_destroy destroy = { .handle = some_id() };
	uint32_t handle = some_id();
	uint64_t bytes;
	struct drm_syncobj_wait wait = { .handles = P(&handle), .count_handles = 1 };
	void *p;

	n_calls++;
	switch (pick(5)) {
	case 0: ioctl(fd, DRM_IOCTL_GEM_CLOSE, &end); break;
	case 1: ioctl(fd, DRM_IOCTL_SYNCOBJ_DESTROY, &destroy); break;
	case 2: ioctl(fd, DRM_IOCTL_SYNCOBJ_WAIT, &wait); break;
	case 3:
		if (!ioctl(fd, DRM_IOCTL_PRIME_HANDLE_TO_FD, &prime)) {
			if (!ioctl(fd, DRM_IOCTL_PRIME_FD_TO_HANDLE, &prime))
				note_id(prime.handle);
			close(prime.fd);
		}
		break;
	default:
		bytes = pick(8) * PAGE;
		p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
			 (off_t)(some_number() & ~(PAGE - 1)));
		if (p != MAP_FAILED)
			munmap(p, bytes);
	}
}

static void reopen(void)
{
	if (fd >= 0)
		close(fd);
	fd = open(NODE, O_RDWR | O_CLOEXEC);
	CHECK(fd >= 0);
	memset(ids, 0, sizeof(ids));
	memset(vas, 0, sizeof(vas));
}

/* A fresh context fills memory and sees it. */
static void check_fresh(void)
{
	struct drm_tessera_ctx_create c;
	struct drm_tessera_queue_create q;
	struct drm_tessera_bo_create b;
	struct hw_sqe d;
	uint64_t *p;

	reopen();
	c = ctx_create();
	q = queue_create(c.id, HW_CLASS_DMA, 0, -1);
	b = bo_create(PAGE, DRM_TESSERA_BO_HBM, c.id);
	d = fill(b.va, PAGE, 0x0123456789abcdefull);
	SAME(run(q.id, &d, 1), 0);
	p = map_at(b.mmap_offset, PAGE);
	SAME(p[511], 0x0123456789abcdefull);
	munmap(p, PAGE);
}

/* One of several processes that fuzz at the same time; does not return. */
static void fuzz(unsigned wanted, uint64_t seed, unsigned *calls, unsigned *good)
{
	state = seed;
	if (setjmp(test_end))
		_exit(1);
	reopen();
	while (n_calls < wanted) {
		if (n_calls % 25000 == 0)
			printf("# process %d: %u of %u\n", (int)getpid(), n_calls, wanted);
		if (!pick(500))
			reopen();
		if (pick(6))
			call_driver();
		else
			call_core();
	}
	*calls = n_calls;
	*good = n_good;
	_exit(n_failed != 0);
}

int main(int argc, char **argv)
{
	unsigned wanted = argc > 1 ? (unsigned)atoi(argv[1]) : 1000000;
	uint64_t seed = argc > 2 ? (uint64_t)atoll(argv[2]) : 1;
	unsigned n = argc > 3 ? (unsigned)atoi(argv[3]) : 4;
	/* static: what longjmp must not spoil */
	static unsigned total, total_good;
	unsigned (*told)[2] = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
				   -1, 0);
	int64_t began = now_ns(), ns;

	setvbuf(stdout, NULL, _IOLBF, 0);
	test_name = "fuzz";
	if (setjmp(test_end))
		return 1;
	CHECK(n && n <= 64 && told != MAP_FAILED);
	write_file("/sys/module/tessera/parameters/hang_ms", "1000");
	arena = mmap(NULL, ARENA, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(arena != MAP_FAILED);
	for (unsigned i = 0; i < n; i++) {
		pid_t child = fork();

		CHECK(child >= 0);
		if (!child)
			fuzz(wanted / n, seed + i, &told[i][0], &told[i][1]);
	}
	for (unsigned i = 0; i < n; i++) {
		int status = -1;

		CHECK(wait(&status) > 0);
		SAME(status, 0);
	}
	ns = now_ns() - began;
	for (unsigned i = 0; i < n; i++) {
		CHECK(told[i][1] > told[i][0] / 100);
		total += told[i][0];
		total_good += told[i][1];
	}
	check_fresh();
	printf("# %u calls, %u of the driver's succeeded, of %u processes at a time: %lld a "
	       "second\n", total, total_good, n, (long long)(total * SECOND / (uint64_t)ns));
	write_file("/sys/module/tessera/parameters/hang_ms", "120000");
	printf("%s\n", n_failed ? "FAILED" : "PASSED");
	return n_failed != 0;
}
