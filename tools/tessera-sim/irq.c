/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Interrupts: an eventfd of the client for each MSI-X vector, which the model adds to.
 * Vectors start masked in the model; the client (or the monitor in front of it)
 * keeps the table itself and tells us by giving or taking eventfds, so a vector with an
 * eventfd is unmasked.
 *
 * Adding to an eventfd blocks if the client filled its counter and cleared
 * O_NONBLOCK. The model would then hang, for this client only; when it is gone
 * the main thread drains the counters (irq_drain).
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/uio.h>
#include <unistd.h>

#include "tools/tessera-sim/server.h"

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

	pthread_mutex_lock(&q->lock);
	q->next[vector] = fd;
	pthread_mutex_unlock(&q->lock);
	if (fd < 0)
		set_mask(d, vector, true);
	sim_irq_fd(d->sim, vector, fd >= 0 && q->is_relayed ? q->relay[vector] : fd, NULL);
	if (fd >= 0)
		set_mask(d, vector, false);
	pthread_mutex_lock(&q->lock);
	old = q->fd[vector];
	q->fd[vector] = fd;
	q->next[vector] = -1;
	pthread_mutex_unlock(&q->lock);
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
	int fd;

	if (read(q->relay[vector], &count, sizeof(count)) < 0)
		return;
	/* The session may close the client's eventfd, and a write to it may block: a
	 * copy is written to, without the lock. */
	pthread_mutex_lock(&q->lock);
	fd = q->next[vector] >= 0 ? q->next[vector] : q->fd[vector];
	fd = fd >= 0 ? fcntl(fd, F_DUPFD_CLOEXEC, 0) : -1;
	pthread_mutex_unlock(&q->lock);
	if (fd < 0)
		return;
	if (write(fd, &count, sizeof(count)) < 0 && errno != EAGAIN)
		say("%u: interrupt %u: %s", d->index, vector, strerror(errno));
	close(fd);
}

/* Without waiting, whatever the client makes of O_NONBLOCK meanwhile. */
static void drain(int fd)
{
	uint64_t count;
	struct iovec v = { &count, sizeof(count) };

	if (fd >= 0 && preadv2(fd, &v, 1, -1, RWF_NOWAIT) < 0)
		return;		/* empty: nobody blocks on it */
}

void irq_drain(struct device *d)
{
	pthread_mutex_lock(&d->irqs.lock);
	for (unsigned i = 0; i < HW_MAX_VECTORS; i++) {
		drain(d->irqs.fd[i]);
		drain(d->irqs.next[i]);
	}
	pthread_mutex_unlock(&d->irqs.lock);
}

static int set_eventfds(struct device *d, const struct vfu_set_irqs *s, int *fds,
			unsigned n_fds)
{
	if (n_fds && n_fds != s->count)
		return EINVAL;
	for (unsigned i = 0; i < n_fds; i++)
		if (!is_eventfd(fds[i]) || fcntl(fds[i], F_SETFL, O_NONBLOCK))
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
	uint64_t one = 1;

	for (unsigned i = 0; i < s->count; i++) {
		int fd = d->irqs.fd[s->start + i];

		/* A full counter means that the client has not looked yet. */
		if ((!which || which[i]) && fd >= 0 && write(fd, &one, sizeof(one)) < 0)
			continue;
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
