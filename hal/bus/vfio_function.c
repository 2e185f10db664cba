/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A PCI function through VFIO, whichever way it was come by: opening it, its BARs, memory,
 * interrupts, reset, and what the kernel has to say about it meanwhile.
 *
 * The kernel speaks by two interrupts of its own, for errors of the link (AER) and for
 * wanting the device back; a thread hears them, marks the function lost and wakes whoever
 * waits for an interrupt of it. A reset mends the first, nothing the second.
 */
#define LOG_TAG "hal/vfio"
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "hal/base/clock.h"
#include "hal/base/log.h"
#include "hal/bus/vfio.h"

#define CONFIG_COMMAND 4
#define COMMAND_MASTER 4u
#define COMMAND_MEMORY_MASTER 6u
#define RESET_NS 3000000000ll
#define RESET_PAUSE_MS 10

/* By all devices of this process: the limit is the process's. */
static _Atomic uint64_t pinned;

/* ---- losing it ---- */

void vfio_lose(struct vfio *v, bool for_good, const char *what)
{
	uint64_t one = 1;

	pthread_mutex_lock(&v->lock);
	v->wanted_back = v->wanted_back || for_good;
	if (!atomic_load(&v->is_lost)) {
		err_set(&v->why, ERR_UNAVAILABLE, "%s: %s", v->place.bdf, what);
		atomic_store(&v->is_lost, true);
	}
	for (unsigned i = 0; i < v->irq.n; i++)
		if (v->irq.fd[i] >= 0 && write(v->irq.fd[i], &one, sizeof(one)) < 0 &&
		    errno != EAGAIN)
			log_error("waking vector %u: %s", i, strerror(errno));
	pthread_mutex_unlock(&v->lock);
}

int vfio_health(struct vfio *v, struct err *err)
{
	int code;

	if (!atomic_load(&v->is_lost))
		return 0;
	pthread_mutex_lock(&v->lock);
	code = v->why.code;
	if (err)
		*err = v->why;
	pthread_mutex_unlock(&v->lock);
	return code;
}

static void *watch(void *arg)
{
	struct vfio *v = arg;
	struct pollfd p[3] = { { .fd = v->quit_fd, .events = POLLIN },
			       { .fd = v->err_fd, .events = POLLIN },
			       { .fd = v->req_fd, .events = POLLIN } };
	uint64_t count;

	for (;;) {
		if (poll(p, 3, -1) < 0)
			continue;
		if (p[0].revents)
			return NULL;
		if (p[1].revents && read(v->err_fd, &count, sizeof(count)) > 0)
			vfio_lose(v, false, "the PCIe link reported an error that was not "
				  "corrected (dmesg, AER): reset the device");
		if (p[2].revents && read(v->req_fd, &count, sizeof(count)) > 0) {
			/* It asks again every few seconds; once is enough. */
			p[2].fd = -1;
			vfio_lose(v, true, "the kernel wants the device back (unbound, or "
				  "pulled out): close it");
		}
	}
}

/* ---- interrupts ---- */

static int set_irqs(struct vfio *v, uint32_t index, uint32_t start, uint32_t count,
		    const int *fds)
{
	union {
		struct vfio_irqs set;
		uint8_t room[sizeof(struct vfio_irqs) + VFIO_MAX_VECTORS * sizeof(int32_t)];
	} u;
	size_t n = fds ? count * sizeof(int32_t) : 0;

	u.set = (struct vfio_irqs){ .argsz = (uint32_t)(sizeof(u.set) + n), .index = index,
		.start = start, .count = count,
		.flags = VFIO_IRQ_TRIGGER | (fds ? VFIO_IRQ_EVENTFD : VFIO_IRQ_NONE) };
	if (n)
		memcpy(u.set.fd, fds, n);
	return v->sys->ioctl(v->device, VFIO_IRQ_SET, &u) < 0 ? errno : 0;
}

static int irq_info(struct vfio *v, uint32_t index, struct vfio_irq_info *out)
{
	*out = (struct vfio_irq_info){ .argsz = sizeof(*out), .index = index };
	return v->sys->ioctl(v->device, VFIO_IRQ_INFO, out) ? errno : 0;
}

/* The index changes, or the first vector is asked for. */
static int begin_irqs(struct vfio *v, uint32_t index, struct err *err)
{
	struct vfio_irq_info info;
	int sysno = irq_info(v, index, &info);

	if (sysno)
		return err_sys(err, sysno, "VFIO_DEVICE_GET_IRQ_INFO %u for %s", index,
			       v->place.bdf);
	if (!info.count || !(info.flags & VFIO_IRQ_CAN_EVENTFD))
		return err_set(err, ERR_FAILED_PRECONDITION, "%s has no %s interrupts",
			       v->place.bdf, index == VFIO_MSIX ? "MSI-X" : "MSI");
	v->irq.index = index;
	v->irq.count = info.count < VFIO_MAX_VECTORS ? info.count : VFIO_MAX_VECTORS;
	v->irq.flags = info.flags;
	for (unsigned i = 0; i < VFIO_MAX_VECTORS; i++)
		v->irq.fd[i] = -1;
	return 0;
}

static void end_irqs(struct vfio *v)
{
	if (v->irq.n)
		set_irqs(v, v->irq.index, 0, 0, NULL);
	v->irq.n = 0;
}

/* Under lock. Vectors are added to those in use where the kernel can do that; else all
 * are taken back and given out again. */
static int set_vector(struct vfio *v, unsigned vector, int fd)
{
	int sysno, old = v->irq.fd[vector];
	unsigned n = v->irq.n, first = vector;
	bool any = false;

	v->irq.fd[vector] = fd;
	for (unsigned i = 0; i < v->irq.count; i++)
		any = any || v->irq.fd[i] >= 0;
	if (!any) {
		end_irqs(v);
		return 0;
	}
	if (vector >= n) {
		if (n && v->irq.flags & VFIO_IRQ_NO_RESIZE)
			end_irqs(v);
		first = v->irq.n;
		n = vector + 1;
	}
	sysno = set_irqs(v, v->irq.index, first, vector + 1 - first, v->irq.fd + first);
	if (sysno)
		v->irq.fd[vector] = old;
	else
		v->irq.n = n;
	return sysno;
}

int vfio_irq_fd(struct vfio *v, unsigned index, unsigned vector, int fd, struct err *err)
{
	int sysno, code = 0;

	pthread_mutex_lock(&v->lock);
	if (!v->irq.n)
		code = begin_irqs(v, index, err);
	if (!code && (index != v->irq.index || vector >= v->irq.count))
		code = err_set(err, ERR_OUT_OF_RANGE, "%s: vector %u of %u", v->place.bdf, vector,
			       v->irq.count);
	if (!code && (fd >= 0 || v->irq.n)) {
		sysno = set_vector(v, vector, fd);
		if (sysno)
			code = err_sys(err, sysno, "interrupt vector %u of %s", vector,
				       v->place.bdf);
	}
	pthread_mutex_unlock(&v->lock);
	return code;
}

/* Notices are a help: a kernel that has none is fine. */
static int take_notice(struct vfio *v, uint32_t index, int *fd, struct err *err)
{
	struct vfio_irq_info info;
	int sysno;

	if (irq_info(v, index, &info) || !info.count)
		return 0;
	*fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (*fd < 0)
		return err_sys(err, errno, "eventfd");
	sysno = set_irqs(v, index, 0, 1, fd);
	return sysno ? err_sys(err, sysno, "the kernel's notices about %s", v->place.bdf) : 0;
}

static int start_watching(struct vfio *v, struct err *err)
{
	int code = take_notice(v, VFIO_ERR, &v->err_fd, err);

	if (!code)
		code = take_notice(v, VFIO_REQ, &v->req_fd, err);
	if (code || (v->err_fd < 0 && v->req_fd < 0))
		return code;
	v->quit_fd = eventfd(0, EFD_CLOEXEC);
	if (v->quit_fd < 0)
		return err_sys(err, errno, "eventfd");
	if (pthread_create(&v->watcher, NULL, watch, v))
		return err_set(err, ERR_RESOURCE_EXHAUSTED, "could not start a thread");
	v->has_watcher = true;
	return 0;
}

/* ---- opening ---- */

static bool may_open(const char *node)
{
	char path[600];

	snprintf(path, sizeof(path), "%s%s", vfio_sys->root, node);
	return *node && !access(path, R_OK | W_OK);
}

/* The device file is the newer way and lets devices of a group be shared out; where only
 * the group's node is ours, it is the group. */
static const struct vfio_iommu *choose(const struct vfio_place *p)
{
	char path[600];

	if (p->no_iommu)
		return &vfio_bare;
	if (may_open(p->cdev) && may_open("/dev/iommu"))
		return &vfio_iommufd;
	snprintf(path, sizeof(path), "%s%s", vfio_sys->root, p->node);
	return !access(path, F_OK) || !*p->cdev ? &vfio_type1 : &vfio_iommufd;
}

static int region_info(struct vfio *v, uint32_t index, struct vfio_region *out, struct err *err)
{
	*out = (struct vfio_region){ .argsz = sizeof(*out), .index = index };
	return v->sys->ioctl(v->device, VFIO_REGION_INFO, out) ?
		err_sys(err, errno, "VFIO_DEVICE_GET_REGION_INFO %u for %s", index,
			v->place.bdf) : 0;
}

static int learn_function(struct vfio *v, struct err *err)
{
	struct vfio_device_info info = { .argsz = sizeof(info) };
	struct vfio_region config;
	int code;

	if (v->sys->ioctl(v->device, VFIO_DEVICE_INFO, &info))
		return err_sys(err, errno, "VFIO_DEVICE_GET_INFO for %s", v->place.bdf);
	if (!(info.flags & VFIO_DEVICE_PCI) || info.n_regions <= VFIO_CONFIG)
		return err_set(err, ERR_FAILED_PRECONDITION, "VFIO says that %s is no PCI function",
			       v->place.bdf);
	v->can_reset = info.flags & VFIO_DEVICE_CAN_RESET;
	code = region_info(v, VFIO_CONFIG, &config, err);
	v->config = config.offset;
	return code;
}

/* ---- domains ---- */

static int join(struct vfio *v, struct vfio_domain *d, struct err *err)
{
	v->domain = d;
	d->n_functions++;
	return v->iommu->attach(v, err);
}

static void leave(struct vfio *v)
{
	struct vfio_domain *d = v->domain, **link = v->domains;

	if (!d)
		return;
	v->iommu->detach(v);
	v->domain = NULL;
	if (--d->n_functions)
		return;
	while (*link != d)
		link = &(*link)->next;
	*link = d->next;
	pthread_mutex_destroy(&d->lock);
	free(d);
}

/* Others' domain, if the kernel has it there: another IOMMU may have other addresses. */
static int enter(struct vfio *v, struct err *err)
{
	struct vfio_domain *d = *v->domains;
	struct err why;

	for (; v->iommu->shares && d; d = d->next) {
		if (d->iommu != v->iommu)
			continue;
		if (!join(v, d, &why))
			return 0;
		leave(v);
		log_info("%s does not share an address space, so memory is pinned for it by "
			 "itself: %s", v->place.bdf, why.msg);
	}
	d = malloc(sizeof(*d));
	if (!d)
		return err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory");
	*d = (struct vfio_domain){ .next = *v->domains, .iommu = v->iommu, .container = -1 };
	pthread_mutex_init(&d->lock, NULL);
	*v->domains = d;
	return join(v, d, err);
}

int vfio_open(struct vfio_domain **domains, const char *bdf, enum vfio_way way,
	      struct vfio **out, struct err *err)
{
	struct vfio *v = calloc(1, sizeof(*v));
	int code;

	if (!v)
		return err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory");
	v->sys = vfio_sys;
	v->domains = domains;
	v->group = v->device = v->err_fd = v->req_fd = v->quit_fd = -1;
	v->pagemap = v->pageflags = -1;
	pthread_mutex_init(&v->lock, NULL);
	code = vfio_find(bdf, &v->place, err);
	if (!code)
		code = vfio_check(&v->place, way, err);
	if (!code) {
		v->iommu = choose(&v->place);
		code = enter(v, err);
	}
	if (!code)
		code = learn_function(v, err);
	if (!code)
		code = start_watching(v, err);
	if (code) {
		vfio_close(v);
		return code;
	}
	log_info("%s by %s", v->place.bdf, v->iommu->name);
	*out = v;
	return 0;
}

void vfio_close(struct vfio *v)
{
	uint64_t one = 1;

	if (!v)
		return;
	if (v->has_watcher && write(v->quit_fd, &one, sizeof(one)) > 0)
		pthread_join(v->watcher, NULL);
	end_irqs(v);
	while (v->uses)
		vfio_dma_unmap(v, v->uses->area->iova, NULL);
	/* Memory is freed after this, and without an IOMMU only this keeps the device from it.
	 * The kernel does it as well. */
	if (v->place.no_iommu && v->device >= 0 && v->config)
		vfio_cut(v, "it was closed");
	leave(v);
	if (v->err_fd >= 0)
		close(v->err_fd);
	if (v->req_fd >= 0)
		close(v->req_fd);
	if (v->quit_fd >= 0)
		close(v->quit_fd);
	pthread_mutex_destroy(&v->lock);
	free(v);
}

/* ---- regions ---- */

int vfio_map_bar(struct vfio *v, unsigned bar, void **out, uint64_t *bytes, uint64_t *offset,
		 struct err *err)
{
	struct vfio_region r;
	int code = region_info(v, bar, &r, err), sysno;
	bool whole = r.flags & VFIO_REGION_CAN_MAP && r.bytes;
	void *p;

	if (code)
		return code;
	*out = NULL;
	*bytes = r.bytes;
	*offset = r.offset;
	/* Older kernels keep the page of the MSI-X table to themselves. */
	if (whole && r.flags & VFIO_REGION_HAS_CAPS && r.argsz > sizeof(r)) {
		union {
			struct vfio_region r;
			struct { struct vfio_region r; struct vfio_cap cap; } first;
			uint8_t room[1024];
		} u = { .r = { .argsz = sizeof(u), .index = bar } };

		if (v->sys->ioctl(v->device, VFIO_REGION_INFO, &u))
			return err_sys(err, errno, "VFIO_DEVICE_GET_REGION_INFO %u for %s", bar,
				       v->place.bdf);
		whole = u.r.cap_offset != sizeof(u.r) || u.first.cap.id != VFIO_CAP_SPARSE;
	}
	if (!whole)
		return 0;
	/* In a child of fork it would keep the device open. */
	files_hold_forks();
	p = v->sys->mmap(NULL, r.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, v->device,
			 (off_t)r.offset);
	sysno = errno;
	if (p != MAP_FAILED)
		madvise(p, r.bytes, MADV_DONTFORK);
	files_let_forks();
	if (p == MAP_FAILED)
		return err_sys(err, sysno, "mapping %llu bytes of BAR%u of %s",
			       (unsigned long long)r.bytes, bar, v->place.bdf);
	*out = p;
	return 0;
}

int vfio_config_read(struct vfio *v, uint32_t offset, void *to, size_t n, struct err *err)
{
	ssize_t got = v->sys->pread(v->device, to, n, (off_t)(v->config + offset));

	return got == (ssize_t)n ? 0 : err_sys(err, got < 0 ? errno : EIO,
		"reading configuration space of %s", v->place.bdf);
}

static int write_config(struct vfio *v, uint32_t offset, const void *from, size_t n,
			struct err *err)
{
	ssize_t put = v->sys->pwrite(v->device, from, n, (off_t)(v->config + offset));

	return put == (ssize_t)n ? 0 : err_sys(err, put < 0 ? errno : EIO,
		"writing configuration space of %s", v->place.bdf);
}

int vfio_enable(struct vfio *v, struct err *err)
{
	uint16_t command = 0;
	int code = vfio_config_read(v, CONFIG_COMMAND, &command, sizeof(command), err);

	command |= COMMAND_MEMORY_MASTER;
	return code ? code : write_config(v, CONFIG_COMMAND, &command, sizeof(command), err);
}

void vfio_cut(struct vfio *v, const char *why)
{
	uint16_t command = 0;
	struct err err;
	int code = vfio_config_read(v, CONFIG_COMMAND, &command, sizeof(command), &err);

	command &= (uint16_t)~COMMAND_MASTER;
	if (!code)
		code = write_config(v, CONFIG_COMMAND, &command, sizeof(command), &err);
	if (code)
		log_error("%s may still write memory that it was to leave: %s",
			  v->place.bdf, err.msg);
	vfio_lose(v, false, why);
}

/* ---- memory ---- */

static int too_much(struct vfio *v, uint64_t bytes, uint64_t limit, struct err *err)
{
	return err_set(err, ERR_RESOURCE_EXHAUSTED, "%llu KiB of memory can't be pinned for %s: "
		       "%llu KiB are pinned and RLIMIT_MEMLOCK is %llu KiB. ulimit -l unlimited, "
		       "or \"* - memlock unlimited\" in /etc/security/limits.d/tessera.conf (then "
		       "log in again), or LimitMEMLOCK=infinity in a systemd unit",
		       (unsigned long long)(bytes >> 10), v->place.bdf,
		       (unsigned long long)(atomic_load(&pinned) >> 10),
		       (unsigned long long)(limit >> 10));
}

static int map_failed(struct vfio *v, uint64_t bytes, int sysno, struct err *err)
{
	uint64_t limit = v->sys->memlock();

	if (sysno == ENOMEM && limit != UINT64_MAX)
		return too_much(v, bytes, limit, err);
	if (sysno == ENOSPC)
		return err_set(err, ERR_RESOURCE_EXHAUSTED, "%s has as many mappings as the kernel "
			       "allows: raise dma_entry_limit of the module vfio_iommu_type1",
			       v->place.bdf);
	return err_sys(err, sysno, "mapping %llu bytes for DMA of %s", (unsigned long long)bytes,
		       v->place.bdf);
}

/* Under the domain's lock. */
static int add_area(struct vfio *v, void *host, uint64_t bytes, struct vfio_area **out,
		    struct err *err)
{
	uint64_t limit = v->iommu->pins ? v->sys->memlock() : UINT64_MAX;
	uint64_t held = v->iommu->pins ? atomic_load(&pinned) : 0;
	struct vfio_area *area;
	int code, sysno;

	if (bytes > limit || held > limit - bytes)
		return too_much(v, bytes, limit, err);
	area = malloc(sizeof(*area));
	if (!area)
		return err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory");
	code = vfio_space_take(&v->domain->space, area, bytes, (uintptr_t)host, err);
	if (!code) {
		sysno = v->iommu->map(v, area, err);
		if (sysno) {
			vfio_space_drop(&v->domain->space, area->iova);
			code = sysno < 0 ? -sysno : map_failed(v, bytes, sysno, err);
		}
	}
	if (code) {
		free(area);
		return code;
	}
	if (v->iommu->pins)
		atomic_fetch_add(&pinned, bytes);
	*out = area;
	return 0;
}

/* Under the domain's lock. An errno. */
static int drop_area(struct vfio *v, struct vfio_area *area)
{
	int sysno = v->iommu->unmap(v, area->iova, area->bytes);

	vfio_space_drop(&v->domain->space, area->iova);
	if (v->iommu->pins)
		atomic_fetch_sub(&pinned, area->bytes);
	free(area->runs);
	free(area);
	return sysno;
}

int vfio_dma_map(struct vfio *v, void *host, uint64_t bytes, uint64_t *iova, struct err *err)
{
	struct vfio_domain *d = v->domain;
	struct vfio_area *area = NULL;
	struct vfio_use *use;
	int code = 0;

	if ((uintptr_t)host % VFIO_PAGE || bytes % VFIO_PAGE || !bytes)
		return err_set(err, ERR_INVALID_ARGUMENT, "DMA mapping of %llu bytes at %p: give "
			       "whole pages", (unsigned long long)bytes, host);
	use = malloc(sizeof(*use));
	if (!use)
		return err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory");
	pthread_mutex_lock(&d->lock);
	if (v->iommu->shares)
		area = vfio_space_find(&d->space, (uintptr_t)host, bytes);
	if (!area)
		code = add_area(v, host, bytes, &area, err);
	if (!code) {
		area->n_uses++;
		*iova = area->iova;
		*use = (struct vfio_use){ v->uses, area };
		v->uses = use;
	}
	pthread_mutex_unlock(&d->lock);
	if (code)
		free(use);
	return code;
}

int vfio_dma_unmap(struct vfio *v, uint64_t iova, struct err *err)
{
	struct vfio_use **link = &v->uses, *use;
	int sysno = 0;

	pthread_mutex_lock(&v->domain->lock);
	while (*link && (*link)->area->iova != iova)
		link = &(*link)->next;
	use = *link;
	if (use) {
		*link = use->next;
		if (!--use->area->n_uses)
			sysno = drop_area(v, use->area);
	}
	pthread_mutex_unlock(&v->domain->lock);
	if (!use)
		return err_set(err, ERR_NOT_FOUND, "%s: no DMA mapping starts at 0x%llx",
			       v->place.bdf, (unsigned long long)iova);
	free(use);
	return sysno ? err_sys(err, sysno, "unmapping memory of %s", v->place.bdf) : 0;
}

/* ---- reset ---- */

int vfio_reset(struct vfio *v, struct err *err)
{
	int64_t until = clock_after(RESET_NS);
	bool wanted_back;
	int sysno;

	pthread_mutex_lock(&v->lock);
	wanted_back = v->wanted_back;
	pthread_mutex_unlock(&v->lock);
	if (wanted_back)
		return vfio_health(v, err);
	if (!v->can_reset)
		return err_set(err, ERR_FAILED_PRECONDITION, "the kernel knows no way to reset %s "
			       "(/sys/bus/pci/devices/%s/reset_method)", v->place.bdf,
			       v->place.bdf);
	for (;;) {
		sysno = v->sys->ioctl(v->device, VFIO_RESET, NULL) ? errno : 0;
		/* The kernel is at work on the device itself and has no way to wait. */
		if (sysno != EAGAIN || clock_ns() > until)
			break;
		poll(NULL, 0, RESET_PAUSE_MS);
	}
	if (sysno)
		return err_sys(err, sysno, "resetting %s", v->place.bdf);
	/* What was wrong is over, but for a device that is wanted back. */
	pthread_mutex_lock(&v->lock);
	if (!v->wanted_back)
		atomic_store(&v->is_lost, false);
	pthread_mutex_unlock(&v->lock);
	return vfio_enable(v, err);
}
