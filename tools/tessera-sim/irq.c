/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Interrupts: an eventfd of the client for each MSI-X vector, which the model adds to.
 * Vectors start masked in the model; the client (or the monitor in front of it)
 * keeps the table itself and tells us by giving or taking eventfds, so a vector with an
 * eventfd is unmasked.
 *
 * The client says whether its eventfd blocks, not we, and it may fill the counter at any time: a
 * write of ours would wait for as long as it likes, with the model's locks, which the chips that
 * are linked to this one take, too. So the kernel adds to it, as it does for devices of its own,
 * which never waits: we have it read nothing, and tell of the end by the eventfd.
 */
#include <errno.h>
#include <linux/aio_abi.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tools/tessera-sim/server.h"

#define MAX_ENDS 256u	/* that nobody has taken: fewer threads than that begin reads */
#define TRIES 1000u	/* for the others to take theirs */

static struct {
	pthread_once_t once;
	aio_context_t reads;
	int empty;		/* a file to read nothing of */
	int error;		/* 0, or an errno */
} adds = { .once = PTHREAD_ONCE_INIT };

static void start_adding(void)
{
	adds.empty = memfd_create("tessera-empty", MFD_CLOEXEC);
	if (adds.empty < 0 || syscall(SYS_io_setup, MAX_ENDS, &adds.reads))
		adds.error = errno;
}

static void take_ends(void)
{
	struct io_event e[8];

	while (syscall(SYS_io_getevents, adds.reads, 0, 8, e, NULL) == 8)
		;
}

static void add_one(int fd)
{
	struct iocb read = { .aio_lio_opcode = IOCB_CMD_PREAD, .aio_fildes = (uint32_t)adds.empty,
			     .aio_flags = IOCB_FLAG_RESFD, .aio_resfd = (uint32_t)fd };
	struct iocb *one = &read;
	unsigned tries = 0;
	long n;

	while ((n = syscall(SYS_io_submit, adds.reads, 1, &one)) < 0 && errno == EAGAIN &&
	       tries++ < TRIES) {
		take_ends();
		sched_yield();
	}
	if (n < 0)
		say("an interrupt is lost: %s", strerror(errno));
	take_ends();
}

int irq_open(struct device *d, struct err *err)
{
	pthread_once(&adds.once, start_adding);
	if (adds.error)
		return err_sys(err, adds.error, "asynchronous reads, by which clients are "
			       "interrupted (CONFIG_AIO; /proc/sys/fs/aio-max-nr)");
	sim_irq_by(d->sim, add_one);
	return 0;
}

static bool is_eventfd(int fd)
{
	char path[40], link[40];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	n = readlink(path, link, sizeof(link) - 1);
	if (n < 0)
		return false;
	link[n] = 0;
	return !strcmp(link, "anon_inode:[eventfd]");
}

static void set_mask(struct device *d, unsigned vector, bool masked)
{
	sim_mmio_write(d->sim, HW_MSIX_TABLE + 16 * vector + 12, 4, masked);
}

/* Puts fd (-1: none) in place; closes what was there. */
static void put(struct device *d, unsigned vector, int fd)
{
	struct irqs *q = &d->irqs;
	int old;

	if (fd < 0)
		set_mask(d, vector, true);
	pthread_mutex_lock(&q->lock);
	old = q->fd[vector];
	q->fd[vector] = fd;
	pthread_mutex_unlock(&q->lock);
	sim_irq_fd(d->sim, vector, fd >= 0 && q->is_relayed ? q->relay[vector] : fd, NULL);
	if (fd >= 0)
		set_mask(d, vector, false);
	if (old >= 0)
		close(old);
}

void irq_unmask(struct device *d)
{
	for (unsigned i = 0; i < HW_MAX_VECTORS; i++)
		if (d->irqs.fd[i] >= 0)
			set_mask(d, i, false);
}

void irq_clear(struct device *d)
{
	for (unsigned i = 0; i < HW_MAX_VECTORS; i++)
		if (d->irqs.fd[i] >= 0)
			put(d, i, -1);
}

void irq_alarm(struct device *d)
{
	struct irqs *q = &d->irqs;

	pthread_mutex_lock(&q->lock);
	for (unsigned i = 0; i < HW_MAX_VECTORS; i++)
		if (q->fd[i] >= 0)
			add_one(q->fd[i]);
	pthread_mutex_unlock(&q->lock);
}

int irq_relay(struct device *d)
{
	struct irqs *q = &d->irqs;

	for (unsigned i = 0; i < HW_MAX_VECTORS; i++) {
		if (q->relay[i] < 0)
			q->relay[i] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		if (q->relay[i] < 0)
			return -1;
	}
	q->is_relayed = true;
	for (unsigned i = 0; i < HW_MAX_VECTORS; i++)
		if (q->fd[i] >= 0)
			sim_irq_fd(d->sim, i, q->relay[i], NULL);
	return 0;
}

void irq_end_relay(struct device *d)
{
	struct irqs *q = &d->irqs;

	q->is_relayed = false;
	for (unsigned i = 0; i < HW_MAX_VECTORS; i++) {
		if (q->relay[i] >= 0)
			close(q->relay[i]);
		q->relay[i] = -1;
	}
}

void irq_pass_on(struct device *d, unsigned vector)
{
	struct irqs *q = &d->irqs;
	uint64_t count;

	if (read(q->relay[vector], &count, sizeof(count)) < 0)
		return;
	/* The session may close the client's. */
	pthread_mutex_lock(&q->lock);
	if (q->fd[vector] >= 0)
		add_one(q->fd[vector]);
	pthread_mutex_unlock(&q->lock);
}

static int set_eventfds(struct device *d, const struct vfu_set_irqs *s, int *fds,
			unsigned n_fds)
{
	if (n_fds && n_fds != s->count)
		return EINVAL;
	for (unsigned i = 0; i < n_fds; i++)
		if (!is_eventfd(fds[i]))
			return EINVAL;
	for (unsigned i = 0; i < s->count; i++) {
		put(d, s->start + i, n_fds ? fds[i] : -1);
		if (n_fds)
			fds[i] = -1;
	}
	return 0;
}

/* A loopback: the client lets its own vectors fire. */
static void trigger(struct device *d, const struct vfu_set_irqs *s, const uint8_t *which)
{
	for (unsigned i = 0; i < s->count; i++) {
		int fd = d->irqs.fd[s->start + i];

		if ((!which || which[i]) && fd >= 0)
			add_one(fd);
	}
}

int irq_set(struct device *d, const struct vfu_set_irqs *s, const uint8_t *data,
	    size_t n_data, int *fds, unsigned n_fds)
{
	uint32_t kind = s->flags & (VFU_SET_NONE | VFU_SET_BOOL | VFU_SET_EVENTFD);
	uint32_t action = s->flags & (VFU_SET_MASK | VFU_SET_UNMASK | VFU_SET_TRIGGER);
	unsigned n = s->index == VFU_IRQ_MSIX ? HW_MAX_VECTORS : 0;

	if (s->index >= VFU_N_IRQS || s->flags & ~(kind | action) || !kind ||
	    kind & (kind - 1) || !action || action & (action - 1) ||
	    s->start > n || s->count > n - s->start ||
	    (n_fds && kind != VFU_SET_EVENTFD) ||
	    (kind == VFU_SET_BOOL && n_data != s->count))
		return EINVAL;
	if (!s->count) {
		if (kind != VFU_SET_NONE || action != VFU_SET_TRIGGER || s->start)
			return EINVAL;
		if (n)
			irq_clear(d);
		return 0;
	}
	if (action != VFU_SET_TRIGGER)
		return ENOTTY;	/* MSI-X is masked by taking the eventfd away */
	if (kind == VFU_SET_EVENTFD)
		return set_eventfds(d, s, fds, n_fds);
	trigger(d, s, kind == VFU_SET_BOOL ? data : NULL);
	return 0;
}
