/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel driver owns the device: one context of ours, with buffers of HBM
 * mapped from HAL_HBM_VA on for the HAL's heap (ioctl_hbm.c), and rings that the kernel made and
 * we map, so that no system call is left between a submission and the device. Host memory
 * keeps its own address in the context's map, so it is the same after a reset.
 *
 * A reset, of the function or of our part alone, ends the context. What was made in it says of
 * which generation it is, because the kernel's numbers are given out again.
 */
#include "hal/transport/ioctl.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "hal/base/clock.h"
#include "hal/base/cpu.h"
#include "hal/base/files.h"
#include "hal/hw/regs.h"
#include "hal/transport.h"
#include "kernel-uapi/include/tessera_drm.h"

#define PAGE ((uint64_t)HW_PAGE)
#define TRACE_ABI 5u		/* since when the driver has them */
#define LINKS_ABI 5u

/* What the kernel made and gave to us: a buffer, mapped. */
struct part {
	uint32_t handle;
	uint64_t bytes;
	void *at;
};

/* Host memory that the device reaches. */
struct pin {
	struct pin *next;
	uint64_t va;
	uint32_t handle;
	unsigned generation;
};

struct accel {
	struct hal_transport t;
	int fd, irq_fd;
	struct files_own own;	/* fd: all that is ours in the kernel goes with the last one */
	char path[128];
	pthread_mutex_t lock;	/* over the pins, and while the context is replaced */
	struct pin *pins;
	_Atomic uint32_t ctx;	/* 0: there is none */
	atomic_uint generation;	/* contexts made so far */
	struct part wake;	/* the context's wake page; at NULL: the driver is too old */
	struct accel_ring *rings;	/* that are mapped, under lock */
	struct accel_hbm hbm;
};

enum { SQ, CQ, BELL, N_PARTS };

struct accel_ring {
	struct hal_ring r;
	struct accel_ring *next;	/* of accel.rings */
	unsigned generation;
	struct part part[N_PARTS];
};

static struct accel *accel_of(struct hal_transport *t)
{
	return (struct accel *)t;
}

static uint64_t round_page(uint64_t n)
{
	return (n + PAGE - 1) & ~(PAGE - 1);
}

/* 0, or an errno. */
static int call(struct accel *a, unsigned long request, void *arg)
{
	return accel_sys->ioctl(a->fd, request, arg) ? errno : 0;
}

static int refused(struct accel *a, int sysno, const char *what, struct err *err)
{
	return accel_refused(a->path, a->fd, sysno, what, err);
}

static void close_handle(struct accel *a, uint32_t handle)
{
	struct drm_gem_close c = { .handle = handle };

	if (handle)
		call(a, DRM_IOCTL_GEM_CLOSE, &c);
}

static int map_part(struct accel *a, struct part *p, uint64_t offset, uint64_t bytes, int prot,
		    const char *what, struct err *err)
{
	p->bytes = bytes;
	return accel_map_cpu(a->path, a->fd, offset, bytes, prot, what, &p->at, err);
}

static void drop_part(struct accel *a, struct part *p)
{
	if (p->at)
		accel_sys->munmap(p->at, p->bytes);
	close_handle(a, p->handle);
	*p = (struct part){ 0 };
}

/* ---- the context ---- */

static void end_context(struct accel *a)
{
	struct drm_tessera_ctx_destroy d = { .id = a->ctx };

	drop_part(a, &a->wake);
	if (a->ctx)
		call(a, DRM_IOCTL_TESSERA_CTX_DESTROY, &d);
	a->ctx = 0;
}

static int start_context(struct accel *a, struct err *err)
{
	struct drm_tessera_ctx_create c = { .flags = DRM_TESSERA_CTX_WAKE };
	struct drm_syncobj_destroy s = { 0 };
	int sysno = call(a, DRM_IOCTL_TESSERA_CTX_CREATE, &c), code = 0;

	/* A driver of before wake pages, which wake() does without. */
	if (sysno == EINVAL) {
		c = (struct drm_tessera_ctx_create){ 0 };
		sysno = call(a, DRM_IOCTL_TESSERA_CTX_CREATE, &c);
	}
	if (sysno == ENOSPC)
		return err_set(err, ERR_RESOURCE_EXHAUSTED, "%s has no context left: each program "
			       "that uses the device takes one. End one of them: sudo fuser -v %s",
			       a->path, a->path);
	if (sysno)
		return refused(a, sysno, "making a context", err);
	a->ctx = c.id;
	a->generation++;
	/* Our queues are not on its timeline. */
	s.handle = c.syncobj;
	call(a, DRM_IOCTL_SYNCOBJ_DESTROY, &s);
	a->wake.handle = c.wake_handle;
	if (c.wake_handle)
		code = map_part(a, &a->wake, c.wake_offset, PAGE, PROT_READ | PROT_WRITE,
				"mapping the context's wake page", err);
	return code ? code : accel_hbm_map_all(&a->hbm, a->ctx, err);
}

static int is_alive(struct hal_transport *t, struct err *err)
{
	struct accel *a = accel_of(t);
	struct drm_tessera_error e = { 0 };
	uint64_t bytes = sizeof(e);
	int sysno;

	pthread_mutex_lock(&a->lock);
	/* None: it ended, and a reset could not make another. */
	sysno = a->ctx ? accel_query(a->fd, DRM_TESSERA_QUERY_ERROR, a->ctx, &e, &bytes) :
			 ECANCELED;
	pthread_mutex_unlock(&a->lock);
	if (!sysno && e.state == DRM_TESSERA_CTX_LOST)
		sysno = ECANCELED;
	return sysno ? refused(a, sysno, "asking for the context's state", err) : 0;
}

/* ---- life ---- */

static void close_device(struct hal_transport *t)
{
	struct accel *a = accel_of(t);
	struct pin *next;

	if (a->fd >= 0)
		accel_peer_forget(&a->hbm);
	end_context(a);
	for (struct pin *p = a->pins; p; p = next) {
		next = p->next;
		close_handle(a, p->handle);
		free(p);
	}
	accel_hbm_end(&a->hbm);
	files_close(&a->own, &a->fd, accel_sys->close);
	pthread_mutex_destroy(&a->lock);
	free(a);
}

static int open_device(void *host, const char *where, int irq_fd, struct hal_transport **out,
		       struct hw_identify *identity, struct err *err)
{
	struct accel *a = calloc(1, sizeof(*a));
	int code;

	(void)host;
	if (!a)
		return err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory");
	a->t.ops = &hal_transport_ioctl;
	a->fd = -1;
	a->irq_fd = irq_fd;
	pthread_mutex_init(&a->lock, NULL);
	snprintf(a->path, sizeof(a->path), "%s", where);
	code = accel_open_owned(where, &a->own, &a->fd, identity, err);
	if (!code)
		code = accel_hbm_start(&a->hbm, a->path, a->fd, identity, err);
	if (!code)
		code = start_context(a, err);
	if (code) {
		close_device(&a->t);
		return code;
	}
	*out = &a->t;
	return 0;
}

/*
 * A new context: ending the old one stops its work. The function is reset by its driver
 * where it has to be, and by who asks for that on purpose, since it ends everybody's context.
 */
static int reset(struct hal_transport *t, struct err *err)
{
	struct accel *a = accel_of(t);
	int code;

	accel_peer_forget(&a->hbm);
	pthread_mutex_lock(&a->lock);
	end_context(a);
	code = start_context(a, err);
	pthread_mutex_unlock(&a->lock);
	return code;
}

static int hbm_take(struct hal_transport *t, uint64_t offset, uint64_t least, uint64_t wanted,
		    uint64_t *bytes, void **host, struct err *err)
{
	struct accel *a = accel_of(t);

	return accel_hbm_take(&a->hbm, a->ctx, offset, least, wanted, bytes, host, err);
}

static int hbm_give(struct hal_transport *t, uint64_t offset, struct err *err)
{
	struct accel *a = accel_of(t);

	return accel_hbm_give(&a->hbm, a->ctx, offset, err);
}

static int hbm_show(struct hal_transport *t, uint64_t offset, uint64_t bytes,
		    struct hal_transport *by, uint64_t base, struct err *err)
{
	struct accel *a = accel_of(by);

	return accel_hbm_show(&accel_of(t)->hbm, offset, bytes, &a->hbm, a->ctx, base, err);
}

static void hbm_room(struct hal_transport *t, struct hal_room *out)
{
	accel_hbm_room(&accel_of(t)->hbm, out);
}

static void hbm_holders(struct hal_transport *t, uint64_t others, struct str *out)
{
	accel_hbm_holders(&accel_of(t)->hbm, others, out);
}

/* ---- host memory ---- */

static int report_unpinned(struct accel *a, void *host, uint64_t bytes, int sysno,
			   struct err *err)
{
	struct rlimit limit = { 0 };

	if (sysno == ENOMEM && !getrlimit(RLIMIT_MEMLOCK, &limit) &&
	    limit.rlim_cur != RLIM_INFINITY)
		return err_set(err, ERR_RESOURCE_EXHAUSTED, "%llu bytes of host memory can't be "
			       "pinned for %s: this process may lock %llu in all. Raise it: ulimit "
			       "-l unlimited, LimitMEMLOCK=infinity in a systemd unit, or "
			       "memlock in /etc/security/limits.conf", (unsigned long long)bytes,
			       a->path, (unsigned long long)limit.rlim_cur);
	if (sysno == EFAULT)
		return err_set(err, ERR_INVALID_ARGUMENT, "%llu bytes at %p can't be pinned for "
			       "%s: not all of it is writable memory of this process (device "
			       "memory and some files can't be)", (unsigned long long)bytes, host,
			       a->path);
	return refused(a, sysno, "pinning host memory", err);
}

static int report_unmapped(struct accel *a, uint64_t bytes, int sysno, struct err *err)
{
	if (sysno == ENOSPC)
		return err_set(err, ERR_RESOURCE_EXHAUSTED, "%llu bytes of host memory take more "
			       "entries of the context's map than %s has left. Turn the IOMMU on "
			       "(intel_iommu=on or amd_iommu=on on the kernel's command line), or "
			       "map less", (unsigned long long)bytes, a->path);
	return refused(a, sysno, "mapping host memory", err);
}

static int host_map(struct hal_transport *t, void *host, uint64_t bytes, uint64_t *va,
		    struct err *err)
{
	struct drm_tessera_bo_userptr u = { .address = (uintptr_t)host, .size = bytes };
	struct accel *a = accel_of(t);
	struct pin *p = calloc(1, sizeof(*p));
	int sysno;

	if (!p)
		return err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory");
	sysno = call(a, DRM_IOCTL_TESSERA_BO_USERPTR, &u);
	if (sysno) {
		free(p);
		return report_unpinned(a, host, bytes, sysno, err);
	}
	*p = (struct pin){ .va = u.address, .handle = u.handle, .generation = a->generation };
	sysno = accel_map(a->fd, a->ctx, u.handle, p->va);
	if (sysno) {
		close_handle(a, u.handle);
		free(p);
		return report_unmapped(a, bytes, sysno, err);
	}
	pthread_mutex_lock(&a->lock);
	p->next = a->pins;
	a->pins = p;
	pthread_mutex_unlock(&a->lock);
	*va = p->va;
	return 0;
}

/* Memory stays pinned over resets, and the context that came for the lost one has no map. */
static int host_again(struct hal_transport *t, uint64_t va, uint64_t bytes, struct err *err)
{
	struct accel *a = accel_of(t);
	struct pin *p;
	int sysno;

	pthread_mutex_lock(&a->lock);
	for (p = a->pins; p && p->va != va; p = p->next)
		;
	sysno = p ? accel_map(a->fd, a->ctx, p->handle, va) : ENOENT;
	if (!sysno)
		p->generation = a->generation;
	pthread_mutex_unlock(&a->lock);
	return sysno ? report_unmapped(a, bytes, sysno, err) : 0;
}

static struct pin *take_pin(struct accel *a, uint64_t va)
{
	struct pin **link = &a->pins, *p;

	pthread_mutex_lock(&a->lock);
	while (*link && (*link)->va != va)
		link = &(*link)->next;
	p = *link;
	if (p)
		*link = p->next;
	pthread_mutex_unlock(&a->lock);
	return p;
}

static int host_unmap(struct hal_transport *t, uint64_t va, uint64_t bytes,
		      struct err *err)
{
	struct accel *a = accel_of(t);
	struct drm_tessera_unmap u = { .ctx = a->ctx, .va = va };
	struct pin *p = take_pin(a, va);
	int sysno = 0;

	if (!p)
		return err_set(err, ERR_NOT_FOUND, "no host memory of %llu bytes is mapped at "
			       "0x%llx", (unsigned long long)bytes, (unsigned long long)va);
	if (a->ctx && p->generation == a->generation)
		sysno = call(a, DRM_IOCTL_TESSERA_UNMAP, &u);
	close_handle(a, p->handle);
	free(p);
	/* A context that is lost has no map any more. */
	if (sysno && sysno != ECANCELED)
		return refused(a, sysno, "unmapping host memory", err);
	return 0;
}

/* ---- queues ---- */

static void ring_destroy(struct hal_ring *r)
{
	struct accel_ring *ring = (struct accel_ring *)r;
	struct drm_tessera_queue_id id = { .id = r->id };
	struct accel *a = accel_of(r->t);

	pthread_mutex_lock(&a->lock);
	for (struct accel_ring **link = &a->rings; *link; link = &(*link)->next)
		if (*link == ring) {
			*link = ring->next;
			break;
		}
	pthread_mutex_unlock(&a->lock);
	/* The queues of an ended context went with it. */
	if (r->id && a->ctx && ring->generation == a->generation)
		call(a, DRM_IOCTL_TESSERA_QUEUE_DESTROY, &id);
	for (unsigned i = 0; i < N_PARTS; i++)
		drop_part(a, &ring->part[i]);
	free(ring);
}

static int map_parts(struct accel *a, struct accel_ring *ring,
		     const struct drm_tessera_queue_create *q, struct err *err)
{
	static const int prot[N_PARTS] = { PROT_READ | PROT_WRITE, PROT_READ,
					   PROT_READ | PROT_WRITE };
	const uint64_t offset[N_PARTS] = { q->sq_offset, q->cq_offset, q->doorbell_offset };
	const uint64_t bytes[N_PARTS] = { round_page(q->n_entries * sizeof(struct hw_sqe)),
					  round_page(q->n_entries * sizeof(struct hw_cqe)),
					  PAGE };
	int code = 0;

	ring->part[SQ].handle = q->sq_handle;
	ring->part[CQ].handle = q->cq_handle;
	ring->part[BELL].handle = q->doorbell_handle;
	for (unsigned i = 0; i < N_PARTS && !code; i++)
		code = map_part(a, &ring->part[i], offset[i], bytes[i], prot[i],
				"mapping a queue", err);
	if (code)
		return code;
	ring->r.sq = ring->part[SQ].at;
	ring->r.cq = ring->part[CQ].at;
	return 0;
}

static int ring_create(struct hal_transport *t, enum hw_class cls, uint32_t n,
		       struct hal_ring **out, struct err *err)
{
	struct accel *a = accel_of(t);
	struct drm_tessera_queue_create q = {
		.ctx = a->ctx, .flags = DRM_TESSERA_QUEUE_USER, .n_entries = n,
		.cls = (uint8_t)cls, .priority = 1, .eventfd = a->irq_fd,
	};
	struct accel_ring *ring = calloc(1, sizeof(*ring));
	int sysno, code;

	if (!ring)
		return err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory");
	sysno = call(a, DRM_IOCTL_TESSERA_QUEUE_CREATE, &q);
	if (sysno) {
		free(ring);
		if (sysno == ENOMEM)
			return report_unpinned(a, NULL, n * (sizeof(struct hw_sqe) +
							     sizeof(struct hw_cqe)), sysno, err);
		if (sysno == ENOSPC)
			return err_set(err, ERR_RESOURCE_EXHAUSTED, "%s has no queue left: each "
				       "program that uses the device takes two. End one of them: "
				       "sudo fuser -v %s", a->path, a->path);
		return refused(a, sysno, "making a queue", err);
	}
	ring->generation = a->generation;
	ring->r = (struct hal_ring){ .t = t, .id = q.id, .n_entries = n };
	code = map_parts(a, ring, &q, err);
	if (code) {
		ring_destroy(&ring->r);
		return code;
	}
	pthread_mutex_lock(&a->lock);
	ring->next = a->rings;
	a->rings = ring;
	pthread_mutex_unlock(&a->lock);
	*out = &ring->r;
	return 0;
}

/* HBM is mapped write-combined: what was stored there comes before the doorbell or the wake, as
 * what is in the ring does. */
static void store(const struct part *p, uint32_t value)
{
	cpu_store_fence();
	accel_sys->store(p->at, value);
}

static void ring(struct hal_ring *r)
{
	r->tail++;
	store(&((struct accel_ring *)r)->part[BELL], r->tail);
}

static void wake(struct hal_transport *t)
{
	struct accel *a = accel_of(t);

	if (a->wake.at) {
		store(&a->wake, 0);
		return;
	}
	/* A queue's own doorbell has the device look at it, too. */
	pthread_mutex_lock(&a->lock);
	for (struct accel_ring *r = a->rings; r; r = r->next)
		store(&r->part[BELL], r->r.tail);
	pthread_mutex_unlock(&a->lock);
}

static bool reap(struct hal_ring *r, struct hw_cqe *out)
{
	struct hw_cqe *cqe = &r->cq[r->head % r->n_entries];
	uint16_t phase = (r->head / r->n_entries + 1) & 1;

	if ((__atomic_load_n(&cqe->phase, __ATOMIC_ACQUIRE) & 1) != phase)
		return false;
	*out = *cqe;
	r->head++;
	return true;
}

static int ring_reset(struct hal_ring *r, struct err *err)
{
	struct drm_tessera_queue_id id = { .id = r->id };
	struct accel *a = accel_of(r->t);
	int sysno = call(a, DRM_IOCTL_TESSERA_QUEUE_RESET, &id);

	return sysno ? refused(a, sysno, "resetting a queue", err) : 0;
}

/* ---- programs ---- */

static int program_create(struct hal_transport *t, uint64_t code_va, uint64_t bytes,
			  const struct hw_program_binding *bindings, unsigned n,
			  uint32_t *id, uint64_t *bad, struct err *err)
{
	struct accel *a = accel_of(t);
	struct drm_tessera_program_create p = {
		.ctx = a->ctx, .n_bindings = n, .code_va = code_va, .code_bytes = bytes,
		.bindings = (uintptr_t)bindings, .binding_bytes = sizeof(*bindings),
	};
	int sysno = call(a, DRM_IOCTL_TESSERA_PROGRAM_CREATE, &p);

	if (sysno && p.status == HW_ST_BAD_PROGRAM)
		*bad = p.detail;
	if (sysno && p.status)
		return err_set(err, hw_status_code(p.status), "the device refused the program "
			       "(%s%s0x%llx): %s", hw_status_name(p.status),
			       p.status == HW_ST_BAD_PROGRAM ? " at " : ", detail ",
			       (unsigned long long)p.detail, hw_status_text(p.status));
	if (sysno == E2BIG)
		return err_set(err, ERR_RESOURCE_EXHAUSTED, "a program has %llu bytes of code, "
			       "more than the kernel driver of %s loads. Raise it, as root: echo "
			       "MIB > /sys/module/tessera/parameters/program_mib",
			       (unsigned long long)bytes, a->path);
	if (sysno)
		return refused(a, sysno, "loading a program", err);
	*id = p.id;
	return 0;
}

static void program_destroy(struct hal_transport *t, uint32_t id)
{
	struct accel *a = accel_of(t);
	struct drm_tessera_program_destroy d = { .ctx = a->ctx, .id = id };

	if (a->ctx)
		call(a, DRM_IOCTL_TESSERA_PROGRAM_DESTROY, &d);
}

/* ---- traces ---- */

static int trace_start(struct hal_transport *t, struct hw_trace ring, struct err *err)
{
	struct accel *a = accel_of(t);
	struct drm_tessera_trace_start s = {
		.ctx = a->ctx, .n_records = ring.n_records, .va = ring.va, .first = ring.first,
		.eventfd = a->irq_fd,
	};
	int code = accel_check_abi(a->path, a->fd, TRACE_ABI, "traces need", err);
	int sysno;

	if (code)
		return code;
	sysno = call(a, DRM_IOCTL_TESSERA_TRACE_START, &s);
	return sysno ? refused(a, sysno, "tracing what this process runs", err) : 0;
}

static int trace_stop(struct hal_transport *t, struct err *err)
{
	struct accel *a = accel_of(t);
	struct drm_tessera_trace_stop s = { .ctx = a->ctx };
	int sysno = call(a, DRM_IOCTL_TESSERA_TRACE_STOP, &s);

	return sysno ? refused(a, sysno, "ending a trace", err) : 0;
}

static bool device_clock(struct hal_transport *t, uint64_t *device_ns, int64_t *before,
			 int64_t *after)
{
	struct accel *a = accel_of(t);
	struct drm_tessera_clock c = { 0 };
	uint64_t bytes = sizeof(c);
	int sysno;

	*before = clock_ns();
	sysno = accel_query(a->fd, DRM_TESSERA_QUERY_CLOCK, 0, &c, &bytes);
	*after = clock_ns();
	*device_ns = c.device_ns;
	return !sysno;
}

/* ---- questions ---- */

static const char *request_name(uint8_t op)
{
	switch (op) {
#define DESC(name, number, cls, status, effect) case number: return #name;
#include "hal/hw/desc.def"
#undef DESC
	default: return "an unknown request";
	}
}

static int refuse_request(struct accel *a, const struct hw_sqe *sqe, struct err *err)
{
	if (sqe->op == HW_INJECT)
		return err_set(err, ERR_UNIMPLEMENTED, "INJECT is not for programs where the "
			       "kernel driver owns the device. As root: echo \"%u %llu\" > "
			       "/sys/kernel/debug/accel/ADDRESS/inject, with the PCI address of "
			       "%s", sqe->id, (unsigned long long)sqe->u.admin.value, a->path);
	if (sqe->op == HW_LOG_PAGE)
		return err_set(err, ERR_UNIMPLEMENTED, "the kernel driver of %s gives no log page "
			       "%u: it has faults, telemetry, RAS and links", a->path, sqe->id);
	return err_set(err, ERR_UNIMPLEMENTED, "%s (0x%02x) is the kernel driver's own request; %s "
		       "does not take it from programs", request_name(sqe->op), sqe->op, a->path);
}

static int ask(struct hal_transport *t, struct hw_sqe sqe, void *page, uint64_t bytes,
	       uint64_t *value, struct err *err)
{
	static const struct { uint32_t type, record; } pages[] = {
		[HW_LOG_FAULT] = { DRM_TESSERA_QUERY_FAULTS, sizeof(struct hw_fault) },
		[HW_LOG_TELEMETRY] = { DRM_TESSERA_QUERY_TELEMETRY, 0 },
		[HW_LOG_RAS] = { DRM_TESSERA_QUERY_RAS, 0 },
		[HW_LOG_LINKS] = { DRM_TESSERA_QUERY_LINKS, sizeof(struct hw_link) },
	};
	struct accel *a = accel_of(t);
	uint64_t there = bytes;
	int sysno, code;

	if (sqe.op != HW_LOG_PAGE || sqe.id >= sizeof(pages) / sizeof(*pages) ||
	    !pages[sqe.id].type)
		return refuse_request(a, &sqe, err);
	code = sqe.id == HW_LOG_LINKS ? accel_check_abi(a->path, a->fd, LINKS_ABI,
							"links need", err) : 0;
	if (code)
		return code;
	sysno = accel_query_records(a->fd, pages[sqe.id].type,
				    sqe.id == HW_LOG_FAULT ? a->ctx : 0, page, &there,
				    pages[sqe.id].record);
	if (sysno)
		return refused(a, sysno, "reading a log page", err);
	if (value)
		*value = there < bytes ? there : bytes;
	return 0;
}

const struct hal_transport_ops hal_transport_ioctl = {
	.open = open_device, .close = close_device, .reset = reset, .alive = is_alive,
	.hbm_take = hbm_take, .hbm_give = hbm_give, .hbm_show = hbm_show, .hbm_room = hbm_room,
	.hbm_holders = hbm_holders, .host_map = host_map, .host_unmap = host_unmap,
	.host_again = host_again,
	.ring_create = ring_create, .ring_destroy = ring_destroy, .ring = ring, .wake = wake,
	.reap = reap, .ring_reset = ring_reset, .program_create = program_create,
	.program_destroy = program_destroy, .trace_start = trace_start, .trace_stop = trace_stop,
	.clock = device_clock, .ask = ask,
};
