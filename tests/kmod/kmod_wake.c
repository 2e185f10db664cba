/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Wake pages: a tenant's wakes what waits in its own context, and nobody else's, whatever it
 * stores there, and whatever became of the context.
 *
 * That a queue was not woken is known without waiting: nothing but its context's wake page makes
 * the model look at the compute engine's queues here, and work that the DMA engine has done
 * since came behind all stores before it.
 */
#include "tests/kmod/kmod_tenants.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* A context whose compute queue waits for semaphores in memory of the system. */
struct waiter {
	struct drm_tessera_ctx_create ctx;
	struct drm_tessera_bo_create mem;
	volatile uint64_t *sem;
	volatile uint32_t *wake;
	struct ring compute, dma;
	uint64_t n;		/* what the queue waited for */
};

static void waiter_open(struct waiter *w)
{
	w->n = 0;
	w->ctx = ctx_create_wake(&w->wake);
	w->mem = bo_create(PAGE, DRM_TESSERA_BO_SYSTEM, w->ctx.id);
	w->sem = map_at(w->mem.mmap_offset, PAGE);
	ring_open(&w->compute, w->ctx.id, HW_CLASS_COMPUTE);
	ring_open(&w->dma, w->ctx.id, HW_CLASS_DMA);
}

static void waiter_close(struct waiter *w)
{
	ring_close(&w->compute);
	ring_close(&w->dma);
	munmap((void *)(uintptr_t)w->sem, PAGE);
	munmap((void *)(uintptr_t)w->wake, PAGE);
	bo_close(w->mem.handle);
	bo_close(w->ctx.wake_handle);
	CHECK(!ctx_destroy(w->ctx.id));
}

static bool is_done(struct ring *r)
{
	return (r->cq[r->head % r->q.n_entries].phase & 1) ==
	       ((r->head / r->q.n_entries + 1) & 1);
}

/* Work on the DMA engine, behind which all stores to the device are that came before. */
static void pass(struct waiter *w)
{
	struct hw_cqe c;

	ring_put(&w->dma, (struct hw_sqe){ .op = HW_NOP, .flags = HW_IRQ });
	CHECK(!ring_get(&w->dma, &c, 10 * SECOND));
	SAME(c.status, 0);
}

/* The compute queue waits, and what it waits for is there, but nobody has said so. */
static void raise_unsaid(struct waiter *w)
{
	struct hw_cqe c;

	for (unsigned tries = 0; tries < 100; tries++) {
		w->n++;
		ring_put(&w->compute, (struct hw_sqe){ .op = HW_SEMAPHORE,
			.flags = HW_WAIT | HW_IRQ, .wait_va = w->mem.va, .wait_value = w->n });
		pass(w);
		__atomic_store_n(w->sem, w->n, __ATOMIC_SEQ_CST);
		pass(w);
		if (!is_done(&w->compute))
			return;
		/* Its engine was still up, and came to it after the store. */
		CHECK(!ring_get(&w->compute, &c, 10 * SECOND));
	}
	fail(__LINE__, "the queue never waits");
}

static void wake_up(struct waiter *w)
{
	struct hw_cqe c;

	*w->wake = 0;
	CHECK(!ring_get(&w->compute, &c, 10 * SECOND));
	SAME(c.status, 0);
}

/* Stores of each size the CPU has, all over the page. */
static void store_all_over(volatile void *page, unsigned i)
{
	volatile uint8_t *p = (volatile uint8_t *)page + i * 72 % (PAGE - 8);

	switch (i % 5) {
	case 0: *p = (uint8_t)i; break;
	case 1: *(volatile uint16_t *)p = (uint16_t)i; break;
	case 2: *(volatile uint32_t *)p = i; break;
	case 3: *(volatile uint64_t *)p = i; break;
	default: *(volatile uint32_t *)(p + 1) = i; break;	/* misaligned */
	}
}

struct peer {
	atomic_bool stop, is_storing;
	unsigned n;		/* stores, or contexts that ended */
};

/* Keeps to the DMA engine. Its first store wakes a queue of its own; the others are too many. */
static int store_to_its_own(void *arg)
{
	struct peer *peer = arg;
	struct waiter w;
	struct hw_cqe c;

	waiter_open(&w);
	ring_put(&w.dma, (struct hw_sqe){ .op = HW_SEMAPHORE, .flags = HW_WAIT | HW_IRQ,
		.wait_va = w.mem.va, .wait_value = 1 });
	__atomic_store_n(w.sem, 1, __ATOMIC_SEQ_CST);
	*w.wake = 0;
	if (ring_get(&w.dma, &c, 10 * SECOND) || c.status)
		return 10;
	for (; !peer->stop; peer->n++) {
		store_all_over(w.wake, peer->n);
		peer->is_storing = true;
	}
	pass(&w);
	return *w.wake ? 11 : 0;
}

void a_wake_page_wakes_its_context_alone(void)
{
	struct peer *peer = shared(sizeof(*peer));
	struct waiter w;
	pid_t child;

	waiter_open(&w);
	raise_unsaid(&w);
	child = tenant(1, store_to_its_own, peer);
	while (peer->n < 2000 && !is_done(&w.compute) && !waitpid(child, NULL, WNOHANG))
		usleep(1000);
	peer->stop = true;
	SAME(end_of(child, 10 * SECOND), 0);
	CHECK(peer->n >= 2000);
	pass(&w);
	CHECK(!is_done(&w.compute));
	wake_up(&w);
	waiter_close(&w);
}

static uint64_t refused_accesses(void)
{
	char path[512];

	debug_path(path, sizeof(path), "registers");
	return strtoull(read_from(path, "BADACC") + strlen("BADACC"), NULL, 0);
}

void wakes_too_many_harm_nobody(void)
{
	struct peer *peer = shared(sizeof(*peer));
	uint64_t resets = function_resets(), refused = refused_accesses(), wrong = 0;
	struct waiter w;
	pid_t child;

	child = tenant(1, store_to_its_own, peer);
	while (!peer->is_storing)
		usleep(1000);
	waiter_open(&w);
	for (uint64_t i = 1; i <= 200; i++) {
		struct hw_sqe d = fill(w.mem.va + 64, 8, i ^ 0x5a5a);
		struct hw_cqe c;

		w.n++;
		d.flags = HW_WAIT | HW_IRQ;
		d.wait_va = w.mem.va;
		d.wait_value = i;
		ring_put(&w.compute, (struct hw_sqe){ .op = HW_SEMAPHORE, .wait_va = w.mem.va,
			.flags = HW_WAIT | HW_IRQ, .wait_value = i });
		ring_put(&w.dma, d);
		store_all_over(w.wake, (unsigned)i);
		wrong += w.sem[8] == (i ^ 0x5a5a) || is_done(&w.compute);
		__atomic_store_n(w.sem, i, __ATOMIC_SEQ_CST);
		wake_up(&w);
		CHECK(!ring_get(&w.dma, &c, 10 * SECOND));
		SAME(c.status, 0);
		wrong += w.sem[8] != (i ^ 0x5a5a);
	}
	peer->stop = true;
	SAME(end_of(child, 10 * SECOND), 0);
	printf("# beside %u stores of another's\n", peer->n);
	SAME(wrong, 0);
	SAME(function_resets(), resets);
	SAME(refused_accesses(), refused);
	waiter_close(&w);
}

/* The device gives numbers of contexts again. */
static void expect_dead(volatile uint32_t *old)
{
	struct waiter w;

	waiter_open(&w);
	raise_unsaid(&w);
	for (unsigned i = 0; i < 100; i++)
		store_all_over(old, i);
	*old = 77;
	/* It is memory now. */
	SAME(*old, 77);
	pass(&w);
	CHECK(!is_done(&w.compute));
	wake_up(&w);
	waiter_close(&w);
}

void a_wake_page_ends_with_its_context(void)
{
	volatile uint32_t *touched, *untouched;
	struct drm_tessera_ctx_create c = ctx_create_wake(&touched);

	untouched = (void *)map_at(c.wake_offset, PAGE);
	*touched = 1;
	/* Registers: what was stored is not there. */
	SAME(*touched, 0);
	CHECK(!ctx_destroy(c.id));
	expect_dead(touched);
	expect_dead(untouched);
	expect_dead((void *)map_at(c.wake_offset, PAGE));
	bo_close(c.wake_handle);
	expect_dead(touched);
}

void a_wake_page_ends_with_a_reset(void)
{
	volatile uint32_t *touched, *untouched;
	struct drm_tessera_ctx_create c = ctx_create_wake(&touched);

	untouched = (void *)map_at(c.wake_offset, PAGE);
	*touched = 1;
	reset_function();
	expect_dead(touched);
	expect_dead(untouched);
	CHECK(!ctx_destroy(c.id));
	expect_dead(touched);
}

void a_wake_page_ends_with_its_driver(void)
{
	int own = fd, other = open(OTHER_NODE, O_RDWR | O_CLOEXEC);
	volatile uint32_t *touched, *untouched;
	struct drm_tessera_ctx_create c;

	CHECK(other >= 0);
	fd = other;
	c = ctx_create_wake(&touched);
	untouched = (void *)map_at(c.wake_offset, PAGE);
	*touched = 1;
	bind_driver(1, false);
	*touched = 78;
	SAME(*touched, 78);
	/* One page of nobody's, whoever comes to it. */
	SAME(*untouched, 78);
	munmap((void *)(uintptr_t)touched, PAGE);
	munmap((void *)(uintptr_t)untouched, PAGE);
	close(other);
	fd = own;
	bind_driver(1, true);
	await_node(OTHER_NODE);
}

#define OLD_PAGES 32u

/* Stores without pause to the newest wake pages, of contexts that ended but for one. */
static void *store_on(void *arg)
{
	volatile uint32_t *_Atomic *pages = arg;

	/* Ends with the process. */
	for (unsigned i = 0;; i++) {
		volatile uint32_t *p = pages[i % OLD_PAGES];

		if (p)
			*p = 1;
	}
	return NULL;
}

static int store_after_the_end(void *arg)
{
	static volatile uint32_t *_Atomic pages[OLD_PAGES];
	struct peer *peer = arg;
	/* The thread may still store to one that has just left its list. */
	volatile uint32_t *old[2 * OLD_PAGES] = { NULL }, *p;
	pthread_t thread;

	CHECK(!pthread_create(&thread, NULL, store_on, pages));
	for (; !peer->stop; peer->n++) {
		struct drm_tessera_ctx_create c = ctx_create_wake(&p);
		struct drm_syncobj_destroy s = { .handle = c.syncobj };

		*p = 0;
		pages[peer->n % OLD_PAGES] = p;
		if (old[peer->n % (2 * OLD_PAGES)])
			munmap((void *)(uintptr_t)old[peer->n % (2 * OLD_PAGES)], PAGE);
		old[peer->n % (2 * OLD_PAGES)] = p;
		CHECK(!ctx_destroy(c.id));
		CHECK(!ioctl(fd, DRM_IOCTL_SYNCOBJ_DESTROY, &s));
		bo_close(c.wake_handle);
	}
	return 0;
}

/* A new context takes the number that ended last, with a queue that another's store would wake. */
void a_wake_page_is_never_a_strangers(void)
{
	struct peer *peer = shared(sizeof(*peer));
	pid_t attacker = tenant(1, store_after_the_end, peer);
	unsigned n = 0, woken = 0;

	for (int64_t end = now_ns() + 5 * SECOND; now_ns() < end; n++) {
		struct waiter w;

		waiter_open(&w);
		raise_unsaid(&w);
		for (unsigned i = 0; i < 10; i++)
			pass(&w);
		woken += is_done(&w.compute);
		wake_up(&w);
		waiter_close(&w);
	}
	peer->stop = true;
	SAME(end_of(attacker, 10 * SECOND), 0);
	printf("# %u contexts beside %u of another's that ended, %u woken\n", n, peer->n, woken);
	CHECK(n > 2 && peer->n > 2);
	SAME(woken, 0);
}

void a_wake_page_is_its_owners_alone(void)
{
	struct { uint32_t flags, id, syncobj, zero; } before = { 0 };
	struct drm_tessera_ctx_create c = { 0 };
	struct drm_prime_handle prime = { .flags = DRM_CLOEXEC };
	volatile uint32_t *wake;
	uint64_t va = 0;
	pid_t child;
	int other;

	/* As before there were any; and who does not ask has none. */
	CHECK(!ioctl(fd, DRM_IOWR(DRM_COMMAND_BASE + DRM_TESSERA_CTX_CREATE, before), &before));
	CHECK(before.id && before.syncobj);
	CHECK(!ctx_destroy(before.id));
	CHECK(!ioctl(fd, DRM_IOCTL_TESSERA_CTX_CREATE, &c));
	SAME(c.wake_handle | c.wake_offset, 0);
	CHECK(!ctx_destroy(c.id));
	c.flags = 2;
	REFUSES(ioctl(fd, DRM_IOCTL_TESSERA_CTX_CREATE, &c), EINVAL);
	c = (struct drm_tessera_ctx_create){ .flags = DRM_TESSERA_CTX_WAKE, .zero2 = 1 };
	REFUSES(ioctl(fd, DRM_IOCTL_TESSERA_CTX_CREATE, &c), EINVAL);
	/* Not another file's, not the device's, not a child's. */
	c = ctx_create_wake(&wake);
	prime.handle = c.wake_handle;
	REFUSES(ioctl(fd, DRM_IOCTL_PRIME_HANDLE_TO_FD, &prime), EPERM);
	REFUSES(map(c.id, c.wake_handle, &va, 0), EINVAL);
	other = open(NODE, O_RDWR | O_CLOEXEC);
	CHECK(other >= 0);
	CHECK(mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, other, (off_t)c.wake_offset) ==
	      MAP_FAILED);
	CHECK(mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, (off_t)c.wake_offset) ==
	      MAP_FAILED);
	CHECK(mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
		   (off_t)c.wake_offset) == MAP_FAILED);
	close(other);
	*wake = 0;
	child = fork();
	CHECK(child >= 0);
	if (!child)
		_exit(msync((void *)(uintptr_t)wake, PAGE, MS_ASYNC) ? 0 : 1);
	SAME(end_of(child, 5 * SECOND), 0);
	CHECK(!ctx_destroy(c.id));
}
