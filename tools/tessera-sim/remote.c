/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that came without a descriptor. The model works on memory of its own process,
 * so there is a shadow of each such range, and userfaultfd tells when the model
 * touches it: a page that is missing is fetched from the client (DMA_READ), a page that
 * is written is sent back (DMA_WRITE, the bytes that changed).
 *
 * The order of the device's writes to such memory is kept by letting one page be writable at
 * a time: before the next is granted, the last is frozen and sent. With what it writes to
 * memory that came with a descriptor, and is seen at once, order is kept where somebody is
 * told of it: before the model completes work, raises a semaphore or ends the record of a
 * trace it waits until the client has answered for what was written (struct sim_far), and an
 * interrupt is passed on after it. What the host wrote counts from the next doorbell or wake
 * on, or from the moment when a semaphore told of it: then all pages are dropped. All this is
 * slow, some 50 us a page, and for memory that a client cannot share: another device's, to QEMU.
 *
 * A client may answer nothing while it waits for a reply of ours. So nothing here waits for an
 * answer on behalf of a message, and memory that goes takes with it what was asked of it.
 *
 * One thread for each device's session does it all; the model's threads only fault, and wait.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "hal/base/clock.h"
#include "tools/tessera-sim/server.h"

#define PAGE ((uint64_t)HW_PAGE)
#define MAX_PAGES 16384u	/* kept at once */
#define FLUSH_MS 1		/* for writes that nothing follows */
#define SETTLE_NS 100000	/* for a page that was granted to be written */

struct remote {
	struct remotes *all;
	struct remote *next, **link;
	uint8_t *base;
	uint64_t iova, bytes;
	atomic_bool is_dying;		/* nothing is asked or sent */
};

/* Something that others have the thread do: so often asked for, and so often done. */
struct task { uint64_t wanted, done; };

struct remotes {
	struct device *d;
	int uffd, wake_fd;
	pthread_t thread;
	pthread_mutex_t lock;		/* over the lists and the tasks */
	pthread_cond_t moved;		/* a task is done */
	struct task send, drop;
	bool quit;
	struct remote *first, *dead;	/* dead: to be freed by the thread */
	struct sim_far far;		/* is_unsent and is_kept are the thread's to write */
	uint8_t **pages;		/* present; the thread's, as what follows */
	unsigned n_pages;
	uint8_t *dirty;			/* the page that may be written; NULL: none */
	int64_t granted;		/* when */
	uint8_t before[HW_PAGE];	/* its content then */
};

/* ---- asking the client ---- */

static bool is_of(const struct remote *r, const uint8_t *page)
{
	return page >= r->base && (uint64_t)(page - r->base) < r->bytes;
}

/* The range that `page` is of, or NULL. It stays as long as this thread frees none; what is
 * asked of one that is taken away meanwhile is cancelled. */
static struct remote *find_range(struct remotes *a, const uint8_t *page)
{
	struct remote *r;

	pthread_mutex_lock(&a->lock);
	for (r = a->first; r && !is_of(r, page); r = r->next)
		;
	pthread_mutex_unlock(&a->lock);
	return r;
}

static uint64_t iova_of(const struct remote *r, const uint8_t *at)
{
	return r->iova + (uint64_t)(at - r->base);
}

/* Others that share the card need not wait for this client. */
static int ask(struct remotes *a, uint16_t command, const struct vfu_dma_access *q,
	       const void *data, void *to, const struct remote *r)
{
	sim_waits_for_host(a->d->sim);
	return link_ask(a->d->link, command, q, data, to, &r->is_dying);
}

/* What the client does not give is zeros, and whoever reads them fails. */
static void fetch(struct remotes *a, const uint8_t *page, uint8_t *to)
{
	struct remote *r = find_range(a, page);
	uint64_t n, most = a->d->max_xfer;
	bool failed = !r;

	for (uint64_t at = 0; r && at < PAGE; at += n) {
		struct vfu_dma_access q = { iova_of(r, page + at), 0 };

		n = q.count = PAGE - at < most ? PAGE - at : most;
		failed = ask(a, VFU_DMA_READ, &q, NULL, to + at, r);
		if (failed)
			break;
	}
	if (failed)
		memset(to, 0, PAGE);
	atomic_fetch_add(&a->far.n_failed, failed);
}

static void send_range(struct remotes *a, struct remote *r, const uint8_t *from, uint64_t bytes)
{
	uint64_t n, most = a->d->max_xfer;

	for (uint64_t at = 0; at < bytes; at += n) {
		struct vfu_dma_access q = { iova_of(r, from + at), 0 };
		int error;

		n = q.count = bytes - at < most ? bytes - at : most;
		error = ask(a, VFU_DMA_WRITE, &q, from + at, NULL, r);
		atomic_fetch_add(&a->far.n_failed, !!error);
		/* It is gone; the device is being stopped. */
		if (error && error != EIO && error != ECANCELED)
			say("%u: client refused %llu bytes written at 0x%llx: %s",
			    a->d->index, (unsigned long long)n, (unsigned long long)q.iova,
			    strerror(error));
	}
}

/* ---- pages; on the thread ---- */

static void protect(struct remotes *a, uint8_t *page, bool on)
{
	struct uffdio_writeprotect p = { .range = { (uintptr_t)page, PAGE },
		.mode = on ? UFFDIO_WRITEPROTECT_MODE_WP : 0 };

	/* ENOENT: the range went meanwhile, with who waited for it. */
	if (ioctl(a->uffd, UFFDIO_WRITEPROTECT, &p) && errno != ENOENT)
		say("%u: userfaultfd: %s", a->d->index, strerror(errno));
}

/* Sends what changed of a page that is frozen, as runs. */
static void send_page(struct remotes *a, struct remote *r, const uint8_t *page)
{
	for (uint64_t at = 0, end; at < PAGE; at = end) {
		while (at < PAGE && page[at] == a->before[at])
			at++;
		/* Runs end where 8 bytes are the same: one store stays one write. */
		for (end = at; end < PAGE && memcmp(page + end, a->before + end,
						    PAGE - end < 8 ? PAGE - end : 8); end++)
			;
		if (end > at)
			send_range(a, r, page + at, end - at);
		else if (at < PAGE)
			end = at + 1;
		else
			break;
	}
}

/* Freezes the page that may be written and sends it. */
static void flush(struct remotes *a)
{
	uint8_t *page = a->dirty;
	struct remote *r;

	if (!page)
		return;
	a->dirty = NULL;
	r = find_range(a, page);
	if (r) {
		protect(a, page, true);
		send_page(a, r, page);
	}
	atomic_store(&a->far.is_unsent, false);
}

static void drop_all(struct remotes *a)
{
	flush(a);
	for (unsigned i = 0; i < a->n_pages; i++)
		madvise(a->pages[i], PAGE, MADV_DONTNEED);
	a->n_pages = 0;
	atomic_store(&a->far.is_kept, false);
	atomic_store(&a->far.n_forgotten, atomic_load(&a->far.n_failed));
}

static void give_missing(struct remotes *a, uint8_t *page)
{
	uint8_t content[HW_PAGE];
	struct uffdio_copy c = { .dst = (uintptr_t)page, .src = (uintptr_t)content,
				 .len = PAGE, .mode = UFFDIO_COPY_MODE_WP };
	struct uffdio_range range = { (uintptr_t)page, PAGE };

	if (a->n_pages == MAX_PAGES)
		drop_all(a);
	atomic_store(&a->far.is_kept, true);
	fetch(a, page, content);
	if (!ioctl(a->uffd, UFFDIO_COPY, &c)) {
		a->pages[a->n_pages++] = page;
	} else if (errno == EEXIST) {
		ioctl(a->uffd, UFFDIO_WAKE, &range);	/* two faults on one page */
	} else if (errno != ENOENT) {
		say("%u: userfaultfd copy: %s", a->d->index, strerror(errno));
	}
}

/* Lets what was granted last be written before it is taken away again, or two
 * writers could take pages from each other for ever. Nothing tells of a store, so the
 * page is looked at. */
static void settle(struct remotes *a)
{
	while (a->dirty && clock_ns() - a->granted < SETTLE_NS &&
	       !memcmp(a->dirty, a->before, PAGE))
		sched_yield();
}

static void give_writable(struct remotes *a, uint8_t *page)
{
	if (page == a->dirty) {
		protect(a, page, false);
		return;
	}
	settle(a);
	flush(a);
	for (unsigned i = 0; i < a->n_pages; i++)
		if (a->pages[i] == page) {
			memcpy(a->before, page, PAGE);
			a->dirty = page;
			a->granted = clock_ns();
			atomic_store(&a->far.is_unsent, true);
			break;
		}
	/* A page that was dropped meanwhile is asked for again. */
	protect(a, page, false);
}

static void handle_faults(struct remotes *a)
{
	struct uffd_msg m;

	while (read(a->uffd, &m, sizeof(m)) == sizeof(m)) {
		uint8_t *page = (uint8_t *)(uintptr_t)(m.arg.pagefault.address & ~(PAGE - 1));

		if (m.event != UFFD_EVENT_PAGEFAULT)
			continue;
		if (m.arg.pagefault.flags & UFFD_PAGEFAULT_FLAG_WP)
			give_writable(a, page);
		else
			give_missing(a, page);
	}
}

static void do_task(struct remotes *a, struct task *t, void (*fn)(struct remotes *a))
{
	uint64_t wanted;

	pthread_mutex_lock(&a->lock);
	wanted = t->wanted;
	pthread_mutex_unlock(&a->lock);
	if (wanted == t->done)
		return;
	fn(a);
	pthread_mutex_lock(&a->lock);
	t->done = wanted;
	pthread_cond_broadcast(&a->moved);
	pthread_mutex_unlock(&a->lock);
}

/* Frees a range, whose pages nobody touches any more. */
static void bury(struct remotes *a, struct remote *r)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < a->n_pages; i++)
		if (!is_of(r, a->pages[i]))
			a->pages[kept++] = a->pages[i];
	a->n_pages = kept;
	if (a->dirty && is_of(r, a->dirty)) {
		a->dirty = NULL;
		atomic_store(&a->far.is_unsent, false);
	}
	munmap(r->base, r->bytes);
	dma_give_back(&a->d->dma, r->bytes);
	free(r);
}

static void bury_dead(struct remotes *a)
{
	struct remote *dead, *next;

	pthread_mutex_lock(&a->lock);
	dead = a->dead;
	a->dead = NULL;
	pthread_mutex_unlock(&a->lock);
	for (; dead; dead = next) {
		next = dead->next;
		bury(a, dead);
	}
}

static void do_tasks(struct remotes *a)
{
	bury_dead(a);
	do_task(a, &a->send, flush);
	do_task(a, &a->drop, drop_all);
}

static bool must_quit(struct remotes *a)
{
	bool quit;

	pthread_mutex_lock(&a->lock);
	quit = a->quit;
	pthread_mutex_unlock(&a->lock);
	return quit;
}

static void *serve_faults(void *arg)
{
	struct remotes *a = arg;
	uint64_t count;

	while (!must_quit(a)) {
		struct pollfd p[2 + HW_MAX_VECTORS] = {
			{ .fd = a->uffd, .events = POLLIN },
			{ .fd = a->wake_fd, .events = POLLIN } };
		int n;

		for (unsigned i = 0; i < HW_MAX_VECTORS; i++)
			p[2 + i] = (struct pollfd){ .fd = a->d->irqs.relay[i],
						    .events = POLLIN };
		n = poll(p, 2 + HW_MAX_VECTORS, a->dirty ? FLUSH_MS : -1);
		if (n == 0)
			flush(a);
		if (n <= 0)
			continue;
		if (p[0].revents)
			handle_faults(a);
		if (p[1].revents && read(a->wake_fd, &count, sizeof(count)) > 0)
			do_tasks(a);
		for (unsigned i = 0; i < HW_MAX_VECTORS; i++)
			if (p[2 + i].revents) {
				flush(a);
				irq_pass_on(a->d, i);
			}
	}
	return NULL;
}

/* ---- life ---- */

static int open_uffd(void)
{
	struct uffdio_api api = { .api = UFFD_API, .features = UFFD_FEATURE_PAGEFAULT_FLAG_WP };
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY);

	if (fd >= 0 && ioctl(fd, UFFDIO_API, &api)) {
		close(fd);
		return -1;
	}
	return fd;
}

static void wake(struct remotes *a)
{
	uint64_t one = 1;

	if (write(a->wake_fd, &one, sizeof(one)) < 0)
		say("%u: waking the memory thread: %s", a->d->index, strerror(errno));
}

static void free_all(struct remotes *a)
{
	if (a->uffd >= 0)
		close(a->uffd);
	if (a->wake_fd >= 0)
		close(a->wake_fd);
	bury_dead(a);
	pthread_mutex_destroy(&a->lock);
	pthread_cond_destroy(&a->moved);
	free(a->pages);
	free(a);
}

/* Has the thread do it, and waits for that. */
static void have_done(struct remotes *a, struct task *t)
{
	uint64_t mine;

	pthread_mutex_lock(&a->lock);
	mine = ++t->wanted;
	pthread_mutex_unlock(&a->lock);
	wake(a);
	pthread_mutex_lock(&a->lock);
	while (t->done < mine)
		pthread_cond_wait(&a->moved, &a->lock);
	pthread_mutex_unlock(&a->lock);
}

static struct remotes *of_far(struct sim_far *far)
{
	return (struct remotes *)((char *)far - offsetof(struct remotes, far));
}

static void send_far(struct sim_far *far)
{
	have_done(of_far(far), &of_far(far)->send);
}

static void forget_far(struct sim_far *far)
{
	remote_sync(of_far(far));
}

static bool holds_far(struct sim_far *far, const void *p)
{
	return find_range(of_far(far), p);
}

static struct remotes *start(struct device *d, int *error)
{
	struct remotes *a = calloc(1, sizeof(*a));

	*error = ENOMEM;
	if (!a)
		return NULL;
	a->d = d;
	a->uffd = open_uffd();
	*error = a->uffd < 0 ? errno : 0;
	a->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	a->pages = malloc(MAX_PAGES * sizeof(*a->pages));
	pthread_mutex_init(&a->lock, NULL);
	pthread_cond_init(&a->moved, NULL);
	a->far.send = send_far;
	a->far.forget = forget_far;
	a->far.holds = holds_far;
	if (!*error && (a->wake_fd < 0 || !a->pages || irq_relay(d)))
		*error = ENOMEM;
	if (!*error)
		*error = pthread_create(&a->thread, NULL, serve_faults, a);
	if (*error) {
		free_all(a);
		return NULL;
	}
	sim_set_far(d->sim, &a->far);
	return a;
}

static int add_range(struct remotes *a, struct remote *r)
{
	struct uffdio_register reg = { .mode = UFFDIO_REGISTER_MODE_MISSING |
				       UFFDIO_REGISTER_MODE_WP };

	r->base = mmap(NULL, r->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS |
		       MAP_NORESERVE, -1, 0);
	if (r->base == MAP_FAILED)
		return errno;
	madvise(r->base, r->bytes, MADV_NOHUGEPAGE);
	reg.range = (struct uffdio_range){ (uintptr_t)r->base, r->bytes };
	if (ioctl(a->uffd, UFFDIO_REGISTER, &reg)) {
		int error = errno;

		munmap(r->base, r->bytes);
		return error;
	}
	pthread_mutex_lock(&a->lock);
	r->all = a;
	r->next = a->first;
	r->link = &a->first;
	if (r->next)
		r->next->link = &r->next;
	a->first = r;
	pthread_mutex_unlock(&a->lock);
	return 0;
}

struct remote *remote_create(struct device *d, uint64_t iova, uint64_t bytes, int *error)
{
	struct remote *r;

	*error = ENOTCONN;
	if (!d->link)
		return NULL;
	if (!d->remotes) {
		struct remotes *a = start(d, error);

		if (!a)
			return NULL;
		d->remotes = a;
	}
	r = calloc(1, sizeof(*r));
	*error = ENOMEM;
	if (!r)
		return NULL;
	r->iova = iova;
	r->bytes = bytes;
	*error = add_range(d->remotes, r);
	if (*error) {
		free(r);
		return NULL;
	}
	return r;
}

void remote_abandon(struct remote *r)
{
	atomic_store(&r->is_dying, true);
	link_look_again(r->all->d->link);
}

void remote_destroy(struct remote *r)
{
	struct remotes *a;

	if (!r)
		return;
	/* The thread may wait for an answer, even of another range's. */
	a = r->all;
	pthread_mutex_lock(&a->lock);
	*r->link = r->next;
	if (r->next)
		r->next->link = r->link;
	r->next = a->dead;
	a->dead = r;
	pthread_mutex_unlock(&a->lock);
	wake(a);
}

void *remote_base(struct remote *r)
{
	return r->base;
}

void remote_sync(struct remotes *a)
{
	have_done(a, &a->drop);
}

void remotes_stop(struct device *d)
{
	struct remotes *a = d->remotes;

	if (!a)
		return;
	sim_set_far(d->sim, NULL);
	pthread_mutex_lock(&a->lock);
	a->quit = true;
	pthread_mutex_unlock(&a->lock);
	wake(a);
	pthread_join(a->thread, NULL);
	d->remotes = NULL;
	free_all(a);
}
