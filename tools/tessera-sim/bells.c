/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Doorbells. A slot of shared memory for each queue holds the newest tail that was not
 * rung yet; a thread takes what it finds and rings the model, which may work before it
 * returns. A client stores to the slots itself and, unless the thread says that it is
 * awake, adds to an eventfd; stores that come as messages are put there for it, and
 * beside them those to wake pages, which always are messages.
 *
 * The eventfds are watched edge-triggered and never read, because a read of one that
 * is shared with a hostile client may block. Memory and eventfds are new for each
 * session: whoever kept those of the last one rings nothing.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "hal/base/clock.h"
#include "tools/tessera-sim/server.h"

#define SPIN_NS 20000

static bool ring(struct bells *b, unsigned q, uint64_t rung)
{
	if (rung)
		sim_mmio_write(b->sim, hw_doorbell(q), 4, (uint32_t)rung);
	return rung;
}

static bool wake_all(struct bells *b)
{
	uint64_t wakes = atomic_load_explicit(&b->wakes, memory_order_relaxed);

	if (wakes)
		wakes = atomic_exchange(&b->wakes, 0);
	for (uint64_t w = wakes; w; w &= w - 1)
		sim_mmio_write(b->sim, hw_wake((unsigned)__builtin_ctzll(w)), 4, 0);
	return wakes;
}

/* Whether there was any. A request must find the work that was rung before it, for one to
 * drop it: its doorbell is taken first and rung last. */
static bool ring_all(struct bells *b)
{
	struct remotes *remotes = atomic_load(&b->remotes);
	bool any = false;
	uint64_t request;

	pthread_mutex_lock(&b->lock);
	/* What the host wrote before it rang. */
	if (remotes)
		remote_sync(remotes);
	request = atomic_exchange(&b->slots[0], 0);
	for (unsigned q = 1; q < HW_MAX_QUEUES; q++)
		if (atomic_load_explicit(&b->slots[q], memory_order_relaxed))
			any |= ring(b, q, atomic_exchange(&b->slots[q], 0));
	any |= wake_all(b);
	any |= ring(b, 0, request);
	pthread_mutex_unlock(&b->lock);
	return any;
}

/* A doorbell is often followed by another; to sleep and be woken costs more than to
 * look for a moment. Whether one came. */
static bool spin(struct bells *b)
{
	int64_t until = clock_ns() + b->spin_ns;

	while (clock_ns() < until && !atomic_load(&b->quit)) {
		if (atomic_load_explicit(&b->wakes, memory_order_relaxed))
			return true;
		for (unsigned q = 0; q < HW_MAX_QUEUES; q++)
			if (atomic_load_explicit(&b->slots[q], memory_order_relaxed))
				return true;
		/* The engine that was rung may wait for this very CPU. */
		sched_yield();
	}
	return false;
}

static void *wait_for_bells(void *arg)
{
	struct bells *b = arg;
	_Atomic uint64_t *awake = &b->slots[BELLS_AWAKE / sizeof(*awake)];
	struct epoll_event e[2];

	while (!atomic_load(&b->quit)) {
		atomic_store(awake, 1);
		while (ring_all(b) && spin(b))
			;
		atomic_store(awake, 0);
		/* Who stored before that and saw us awake waits for this look. */
		atomic_thread_fence(memory_order_seq_cst);
		if (ring_all(b))
			continue;
		if (epoll_wait(b->epoll, e, 2, -1) < 0 && errno != EINTR)
			break;
	}
	return NULL;
}

static int watch(struct bells *b, int fd)
{
	struct epoll_event e = { .events = EPOLLIN | EPOLLET };

	return epoll_ctl(b->epoll, EPOLL_CTL_ADD, fd, &e);
}

static int open_all(struct bells *b)
{
	void *page;

	b->page_fd = memfd_create("tessera-doorbells", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	b->client_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	b->own_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	b->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (b->page_fd < 0 || b->client_fd < 0 || b->own_fd < 0 || b->epoll < 0 ||
	    ftruncate(b->page_fd, HW_PAGE) ||
	    fcntl(b->page_fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) ||
	    watch(b, b->client_fd) || watch(b, b->own_fd))
		return -1;
	page = mmap(NULL, HW_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, b->page_fd, 0);
	if (page == MAP_FAILED)
		return -1;
	b->slots = page;
	errno = pthread_create(&b->thread, NULL, wait_for_bells, b);
	b->has_thread = !errno;
	return errno ? -1 : 0;
}

int bells_open(struct bells *b, struct sim_device *sim, struct err *err)
{
	memset(b, 0, sizeof(*b));
	b->sim = sim;
	b->spin_ns = sysconf(_SC_NPROCESSORS_ONLN) > 1 ? SPIN_NS : 0;
	b->page_fd = b->client_fd = b->own_fd = b->epoll = -1;
	pthread_mutex_init(&b->lock, NULL);
	if (open_all(b)) {
		err_sys(err, errno, "the doorbells of a session");
		bells_close(b);
		return ERR_RESOURCE_EXHAUSTED;
	}
	return 0;
}

static void wake_thread(struct bells *b)
{
	uint64_t one = 1;

	/* Ours alone and never near full: a write cannot fail. */
	if (write(b->own_fd, &one, sizeof(one)) < 0)
		say("waking the doorbell thread: %s", strerror(errno));
}

void bells_close(struct bells *b)
{
	const int fds[] = { b->page_fd, b->client_fd, b->own_fd, b->epoll };

	if (b->has_thread) {
		atomic_store(&b->quit, true);
		wake_thread(b);
		pthread_join(b->thread, NULL);
	}
	if (b->slots)
		munmap((void *)b->slots, HW_PAGE);
	for (unsigned i = 0; i < 4; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	pthread_mutex_destroy(&b->lock);
}

void bells_ring(struct bells *b, unsigned queue, uint32_t tail)
{
	atomic_store(&b->slots[queue], VFU_BELL_RUNG | tail);
	wake_thread(b);
}

void bells_wake(struct bells *b, unsigned ctx)
{
	atomic_fetch_or(&b->wakes, 1ull << ctx);
	wake_thread(b);
}

void bells_sync(struct bells *b, struct remotes *remotes)
{
	/* Not under the lock: whoever rings may wait for the client, and that for us. */
	atomic_store(&b->remotes, remotes);
}

void bells_hold(struct bells *b, bool drop)
{
	pthread_mutex_lock(&b->lock);
	for (unsigned q = 0; drop && q < HW_MAX_QUEUES; q++)
		atomic_store(&b->slots[q], 0);
	if (drop)
		atomic_store(&b->wakes, 0);
}

void bells_go_on(struct bells *b)
{
	pthread_mutex_unlock(&b->lock);
}
