/* SPDX-License-Identifier: Apache-2.0 */
/*
 * We own the device: admin queue, one context with all of HBM mapped, work rings in
 * host memory, doorbells through a bus. One admin request is in flight at a time,
 * under admin_lock; its structures live in one page beside the admin rings.
 */
#include "hal/transport.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "hal/base/clock.h"
#include "hal/base/cpu.h"
#include "hal/bus.h"
#include "hal/hw/regs.h"

#define ADMIN_ENTRIES 16u
#define PAGE ((uint64_t)HW_PAGE)
#define LEAST_CONTRACT 0x00010005u	/* of the device: 1.5, with reads over links */
#define LOOK_NS 20000		/* between looks at STATUS while an answer is awaited */

struct direct {
	struct hal_transport t;
	struct hal_bus *bus;
	int irq_fd;
	pthread_mutex_t admin_lock;
	uint8_t *admin;		/* page 0 submissions, 1 completions, 2.. arguments */
	uint64_t admin_bytes, admin_iova, admin_at;	/* at: as the device is told */
	uint32_t tail, head;
	bool is_up;		/* requests are taken; under admin_lock */
	bool is_confused;	/* not, because an answer did not come, or another's did, or
				 * one that cannot be */
	bool is_unanswered;	/* a request was, by a device that died or is gone */
	atomic_bool was_ready;	/* since we reset it last: it is so until somebody resets it */
	uint16_t ctx;
	uint64_t hbm_bytes;
};

static struct direct *direct_of(struct hal_transport *t)
{
	return (struct direct *)t;
}

static uint64_t round_page(uint64_t n)
{
	return (n + PAGE - 1) & ~(PAGE - 1);
}

static int get_pages(struct direct *d, uint64_t *bytes, void **out, struct err *err)
{
	void *p;

	if (d->bus->ops->pages)
		return d->bus->ops->pages(d->bus, bytes, out, err);
	p = mmap(NULL, *bytes, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (p == MAP_FAILED)
		return err_sys(err, errno, "%llu bytes of host memory for rings",
			       (unsigned long long)*bytes);
	/* A child of fork must not share pages that a device writes. */
	madvise(p, *bytes, MADV_DONTFORK);
	*out = p;
	return 0;
}

static void put_pages(struct direct *d, void *pages, uint64_t bytes)
{
	if (d->bus->ops->free_pages)
		d->bus->ops->free_pages(d->bus, pages, bytes);
	else
		munmap(pages, bytes);
}

/* Maps memory that the device is to see as one range; *at is what it is told. */
static int map_range(struct direct *d, void *host, uint64_t bytes, uint64_t *iova,
		     uint64_t *at, struct err *err)
{
	int code = d->bus->ops->dma_map(d->bus, host, bytes, iova, err);
	uint64_t n;

	if (code)
		return code;
	*at = *iova;
	if (!d->bus->ops->address)
		return 0;
	*at = d->bus->ops->address(d->bus, *iova, 0, &n);
	return n >= bytes ? 0 : err_set(err, ERR_RESOURCE_EXHAUSTED, "%llu bytes for a ring are "
		"not in one piece of physical memory, which they have to be without an IOMMU "
		"(%llu are): make it smaller", (unsigned long long)bytes, (unsigned long long)n);
}

/* After a request that takes memory from the device: did it let go? What it never had,
 * and what was gone with its context, counts as that. */
static void let_go(struct direct *d, int code)
{
	if (code && code != ERR_NOT_FOUND && d->bus->ops->cut)
		d->bus->ops->cut(d->bus);
}

/* After a request that gives memory to the device, or a number for what uses it, and that failed:
 * did it take it? A refusal says no; no answer, or one that was not understood, says nothing. */
static void take_back(struct direct *d, int code)
{
	bool is_unknown;

	pthread_mutex_lock(&d->admin_lock);
	is_unknown = code && (d->is_confused || d->is_unanswered);
	pthread_mutex_unlock(&d->admin_lock);
	if (is_unknown)
		let_go(d, code);
}

static const char *fatal_text(uint32_t reason)
{
	switch (reason) {
	case HW_FATAL_RINGS: return ", queue 0's rings could not be reached";
	case HW_FATAL_INJECTED: return ", injected";
	case HW_FATAL_THERMAL: return ", it was too hot: look at its cooling";
	case HW_FATAL_FIRMWARE: return ", its firmware died";
	case HW_FATAL_PCIE: return ", an uncorrectable error of the PCIe link";
	default: return "";
	}
}

static int is_alive(struct hal_transport *t, struct err *err)
{
	struct direct *d = direct_of(t);
	uint32_t status = d->bus->ops->read(d->bus, HW_REG_STATUS);
	int code = d->bus->ops->health ? d->bus->ops->health(d->bus, err) : 0;
	uint32_t reason;

	if (code)
		return code;
	if (status == 0xffffffffu)
		return err_set(err, ERR_UNAVAILABLE,
			       "the device does not answer any more (all ones on the bus)");
	if (!(status & HW_STATUS_FATAL) &&
	    (status & HW_STATUS_READY || !atomic_load(&d->was_ready)))
		return 0;
	if (!(status & HW_STATUS_FATAL))
		return err_set(err, ERR_ABORTED, "somebody else reset the function (xla-smi reset, "
			       "or a reset by the kernel): what it had to do and its programs are "
			       "gone");
	reason = d->bus->ops->read(d->bus, HW_REG_FATAL);
	return err_set(err, ERR_UNAVAILABLE, "the device is in its fatal state (reason %u%s): "
		       "reset the function", reason, fatal_text(reason));
}

/* The device stores the word of the phase last, and at once. */
static bool is_written(const struct hw_cqe *cqe, uint16_t phase)
{
	uint64_t word = __atomic_load_n((const uint64_t *)(const void *)cqe,
					__ATOMIC_ACQUIRE);

	static_assert(offsetof(struct hw_cqe, phase) == 6, "the phase ends the word");
	return (word >> 48 & 1) == phase;
}

/* No request is made after this one, until a reset. Under admin_lock. */
static void distrust(struct direct *d)
{
	d->is_up = false;
	d->is_confused = true;
}

/* Waits for the one pending completion. */
static int await(struct direct *d, struct hw_cqe *out, struct err *err)
{
	struct hw_cqe *cqe = (struct hw_cqe *)(d->admin + PAGE) + d->head % ADMIN_ENTRIES;
	uint16_t phase = (d->head / ADMIN_ENTRIES + 1) & 1;
	int64_t deadline = clock_after(HAL_ADMIN_NS), look = clock_after(LOOK_NS);

	while (!is_written(cqe, phase)) {
		int code;

		cpu_relax();
		/* Reading a register may cost a message or a trap. */
		if (clock_ns() < look)
			continue;
		code = is_alive(&d->t, err);
		/* The request that killed it is answered before STATUS tells. */
		if (code && is_written(cqe, phase))
			break;
		if (code) {
			d->is_unanswered = true;
			return code;
		}
		look = clock_after(LOOK_NS);
		if (look > deadline) {
			/* It may still come, when somebody waits for another. */
			distrust(d);
			return err_set(err, ERR_DEADLINE_EXCEEDED, "the device did not "
				       "answer an admin request within 10 s: reset it");
		}
	}
	*out = *cqe;
	d->head++;
	if (out->tag == d->tail - 1)
		return 0;
	distrust(d);
	return err_set(err, ERR_INTERNAL, "the device answered request %u, asked was %u: reset it",
		       out->tag, d->tail - 1);
}

/* Sends sqe; `args` are copied to where the request points. Under admin_lock. */
/* *refused: the completion of a request that the device refuses; may be NULL. */
static int send_for(struct direct *d, struct hw_sqe *sqe, const void *args, uint64_t bytes,
		    uint64_t *value, struct hw_cqe *refused, struct err *err)
{
	struct hw_cqe cqe = { 0 };
	int code;

	if (!d->is_up)
		return err_set(err, ERR_UNAVAILABLE, d->is_confused ?
			       "the device answers no request, or another than was made: reset it" :
			       "the device did not come up after its last reset: reset it again");
	if (args)
		memcpy(d->admin + 2 * PAGE, args, bytes);
	sqe->u.admin.addr = d->admin_at + 2 * PAGE;
	sqe->tag = d->tail;
	((struct hw_sqe *)d->admin)[d->tail % ADMIN_ENTRIES] = *sqe;
	d->tail++;
	d->bus->ops->write(d->bus, hw_doorbell(0), d->tail);
	code = await(d, &cqe, err);
	if (code)
		return code;
	if (cqe.status && refused)
		*refused = cqe;
	if (cqe.status)
		return err_set(err, hw_status_code(cqe.status),
			       "the device refused (%s%s0x%llx): %s",
			       hw_status_name(cqe.status), cqe.status == HW_ST_BAD_PROGRAM ?
			       " at " : ", detail ", (unsigned long long)cqe.detail,
			       hw_status_text(cqe.status));
	if (value)
		*value = cqe.value;
	return 0;
}

static int send(struct direct *d, struct hw_sqe *sqe, const void *args, uint64_t bytes,
		uint64_t *value, struct err *err)
{
	return send_for(d, sqe, args, bytes, value, NULL, err);
}

static int request(struct direct *d, struct hw_sqe sqe, const void *args, uint64_t bytes,
		   uint64_t *value, struct err *err)
{
	int code;

	pthread_mutex_lock(&d->admin_lock);
	code = send(d, &sqe, args, bytes, value, err);
	pthread_mutex_unlock(&d->admin_lock);
	return code;
}

/* Callers count records by it. Under admin_lock. */
static int check_length(struct direct *d, uint64_t got, uint64_t bytes, struct err *err)
{
	if (got <= bytes)
		return 0;
	distrust(d);
	return err_set(err, ERR_INTERNAL, "the device says that it wrote %llu bytes of a log page "
		       "for which there is room for %llu, which cannot be: reset it",
		       (unsigned long long)got, (unsigned long long)bytes);
}

static int ask(struct hal_transport *t, struct hw_sqe sqe, void *page, uint64_t bytes,
	       uint64_t *value, struct err *err)
{
	struct direct *d = direct_of(t);
	uint64_t got = 0;
	int code;

	if (bytes > d->admin_bytes - 2 * PAGE)
		bytes = d->admin_bytes - 2 * PAGE;
	if (page)
		sqe.u.admin.bytes = bytes;
	pthread_mutex_lock(&d->admin_lock);
	code = send(d, &sqe, NULL, 0, &got, err);
	if (!code && page && sqe.op == HW_LOG_PAGE)
		code = check_length(d, got, bytes, err);
	if (!code && page)
		memcpy(page, d->admin + 2 * PAGE, bytes);
	pthread_mutex_unlock(&d->admin_lock);
	if (!code && value)
		*value = got;
	return code;
}

static int link_request(struct hal_transport *t, struct hw_sqe sqe, const void *in,
			uint64_t bytes, uint64_t *value, struct err *err)
{
	struct direct *d = direct_of(t);

	sqe.id = d->ctx;
	return request(d, sqe, in, bytes, value, err);
}

static int trace_start(struct hal_transport *t, struct hw_trace ring, struct err *err)
{
	ring.vector = 0;
	return link_request(t, (struct hw_sqe){ .op = HW_TRACE_START }, &ring, sizeof(ring), NULL,
			    err);
}

static int trace_stop(struct hal_transport *t, struct err *err)
{
	return link_request(t, (struct hw_sqe){ .op = HW_TRACE_STOP }, NULL, 0, NULL, err);
}

static void write64(struct direct *d, uint32_t reg, uint64_t value)
{
	d->bus->ops->write(d->bus, reg, (uint32_t)value);
	d->bus->ops->write(d->bus, reg + 4, (uint32_t)(value >> 32));
}

/* Resets the function and gives it new admin rings. Under admin_lock: a request that is
 * on its way would wait for an answer in the old ones. */
static int start_admin(struct direct *d, struct err *err)
{
	const struct hal_bus_ops *bus = d->bus->ops;
	int code;

	d->is_up = false;
	atomic_store(&d->was_ready, false);
	d->is_confused = d->is_unanswered = false;
	code = bus->reset(d->bus, err);
	if (code)
		return code;
	if (bus->read(d->bus, HW_REG_ID) != (HW_PCI_VENDOR | HW_PCI_DEVICE << 16))
		return err_set(err, ERR_FAILED_PRECONDITION, "the ID register reads 0x%x: "
			       "no T1 is there", bus->read(d->bus, HW_REG_ID));
	memset(d->admin, 0, d->admin_bytes);
	d->tail = d->head = 0;
	write64(d, HW_REG_ASQ, d->admin_at);
	write64(d, HW_REG_ACQ, d->admin_at + PAGE);
	bus->write(d->bus, HW_REG_AQSIZE, ADMIN_ENTRIES);
	bus->write(d->bus, HW_REG_CTRL, HW_CTRL_ENABLE);
	if (!(bus->read(d->bus, HW_REG_STATUS) & HW_STATUS_READY))
		return err_set(err, ERR_UNAVAILABLE, "the device did not become ready "
			       "(STATUS 0x%x)", bus->read(d->bus, HW_REG_STATUS));
	atomic_store(&d->was_ready, true);
	d->is_up = true;
	return 0;
}

static int bring_up(struct direct *d, struct hw_identify *id, struct err *err)
{
	const struct hal_bus_ops *bus = d->bus->ops;
	struct hw_map map;
	uint64_t value;
	int code;

	pthread_mutex_lock(&d->admin_lock);
	code = start_admin(d, err);
	pthread_mutex_unlock(&d->admin_lock);
	if (code)
		return code;
	code = ask(&d->t, (struct hw_sqe){ .op = HW_IDENTIFY }, id, sizeof(*id), NULL, err);
	if (code)
		return code;
	if (id->magic != HW_IDENTIFY_MAGIC || id->isa != ISA_VERSION)
		return err_set(err, ERR_FAILED_PRECONDITION, "the device speaks ISA %u, this "
			       "build ISA %u: install matching versions", id->isa, ISA_VERSION);
	if (id->contract < LEAST_CONTRACT)
		return err_set(err, ERR_FAILED_PRECONDITION, "the device is of contract %u.%u, "
			       "this build needs %u.%u, with reads over links: update the card's "
			       "firmware, or the tessera-sim that serves it",
			       id->contract >> 16, id->contract & 0xffff, LEAST_CONTRACT >> 16,
			       LEAST_CONTRACT & 0xffff);
	d->hbm_bytes = id->hbm_bytes;
	code = request(d, (struct hw_sqe){ .op = HW_CTX_CREATE }, NULL, 0, &value, err);
	if (code)
		return code;
	if (!value || value >= HW_MAX_CONTEXTS)
		return err_set(err, ERR_INTERNAL, "the device gave the context number %llu, which "
			       "cannot be (1 to %u can)", (unsigned long long)value,
			       HW_MAX_CONTEXTS - 1);
	d->ctx = (uint16_t)value;
	map = (struct hw_map){ .va = HAL_HBM_VA, .bytes = d->hbm_bytes,
			       .flags = HW_MAP_WRITE };
	code = request(d, (struct hw_sqe){ .op = HW_MAP, .id = d->ctx }, &map, sizeof(map),
		       NULL, err);
	if (code)
		return code;
	/* Unmask vector 0, the one that every queue raises. */
	bus->write(d->bus, HW_MSIX_TABLE + 12, 0);
	return bus->irq_fd(d->bus, 0, d->irq_fd, err);
}

static void close_device(struct hal_transport *t)
{
	struct direct *d = direct_of(t);

	if (d->bus) {
		d->bus->ops->irq_fd(d->bus, 0, -1, NULL);
		let_go(d, d->bus->ops->reset(d->bus, NULL));
		if (d->admin_iova)
			d->bus->ops->dma_unmap(d->bus, d->admin_iova, NULL);
		if (d->admin)
			put_pages(d, d->admin, d->admin_bytes);
		d->bus->ops->close(d->bus);
	}
	pthread_mutex_destroy(&d->admin_lock);
	free(d);
}

static int open_device(void *host, const char *where, int irq_fd,
		       struct hal_transport **out, struct hw_identify *identity,
		       struct err *err)
{
	const struct hal_direct_host *h = host;
	struct direct *d = calloc(1, sizeof(*d));
	void *memory;
	int code;

	if (!d)
		return err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory");
	d->t.ops = &hal_transport_direct;
	d->irq_fd = irq_fd;
	pthread_mutex_init(&d->admin_lock, NULL);
	/* The largest request's arguments: the bindings of one program. */
	d->admin_bytes = round_page(3 * PAGE + ISA_MAX_BINDINGS *
				    sizeof(struct hw_program_binding));
	code = h->bus->open(h->host, where, &d->bus, err);
	if (!code)
		code = get_pages(d, &d->admin_bytes, &memory, err);
	if (!code) {
		d->admin = memory;
		code = map_range(d, memory, d->admin_bytes, &d->admin_iova, &d->admin_at, err);
	}
	if (!code)
		code = bring_up(d, identity, err);
	if (code) {
		close_device(&d->t);
		return code;
	}
	*out = &d->t;
	return 0;
}

static int reset(struct hal_transport *t, struct err *err)
{
	struct direct *d = direct_of(t);
	struct hw_identify id;

	return bring_up(d, &id, err);
}

static uint32_t reg(struct hal_transport *t, uint32_t offset)
{
	struct direct *d = direct_of(t);

	return d->bus->ops->read(d->bus, offset);
}

/* The high half moves once in 4 s. */
static bool device_clock(struct hal_transport *t, uint64_t *device_ns, int64_t *before,
			 int64_t *after)
{
	uint32_t high = reg(t, HW_REG_CLOCK + 4), low;

	*before = clock_ns();
	low = reg(t, HW_REG_CLOCK);
	*after = clock_ns();
	*device_ns = (uint64_t)high << 32 | low;
	return reg(t, HW_REG_CLOCK + 4) == high;
}

static void *hbm(struct hal_transport *t, uint64_t *bytes)
{
	struct direct *d = direct_of(t);

	return d->bus->ops->hbm(d->bus, bytes);
}

static void discard(struct hal_transport *t, uint64_t offset, uint64_t bytes)
{
	struct direct *d = direct_of(t);

	if (d->bus->ops->discard)
		d->bus->ops->discard(d->bus, offset, bytes);
}

static int host_pages(struct hal_transport *t, uint64_t *bytes, void **out, struct err *err)
{
	struct direct *d = direct_of(t);

	*out = NULL;
	return d->bus->ops->pages ? d->bus->ops->pages(d->bus, bytes, out, err) : 0;
}

static void host_free(struct hal_transport *t, void *pages, uint64_t bytes)
{
	put_pages(direct_of(t), pages, bytes);
}

/* The piece of [va, va + bytes), which is mapped for DMA, that begins at `offset`. */
static struct hw_map piece_at(struct direct *d, uint64_t va, uint64_t bytes, uint64_t offset)
{
	struct hw_map map = { .va = va + offset, .pa = va + offset, .bytes = bytes - offset,
			      .flags = HW_MAP_WRITE | HW_MAP_HOST };
	uint64_t n;

	if (d->bus->ops->address) {
		map.pa = d->bus->ops->address(d->bus, va, offset, &n);
		if (n < map.bytes)
			map.bytes = n;
	}
	return map;
}

/* A device that is dead or was reset has no map any more; the bus still has its own. */
static void unmap_pieces(struct direct *d, uint64_t va, uint64_t bytes)
{
	struct hw_map map;

	for (uint64_t at = 0; at < bytes; at += map.bytes) {
		map = piece_at(d, va, bytes, at);
		if (!map.bytes)
			break;
		let_go(d, request(d, (struct hw_sqe){ .op = HW_UNMAP, .id = d->ctx }, &map,
				  sizeof(map), NULL, NULL));
	}
}

/* All of it, or nothing. */
static int host_again(struct hal_transport *t, uint64_t va, uint64_t bytes, struct err *err)
{
	struct direct *d = direct_of(t);
	struct hw_map map;
	uint64_t at = 0;
	int code = 0;

	while (!code && at < bytes) {
		map = piece_at(d, va, bytes, at);
		code = request(d, (struct hw_sqe){ .op = HW_MAP, .id = d->ctx }, &map,
			       sizeof(map), NULL, err);
		if (!code)
			at += map.bytes;
	}
	if (code) {
		unmap_pieces(d, va, at);
		take_back(d, code);
	}
	return code;
}

static int host_map(struct hal_transport *t, void *host, uint64_t bytes, uint64_t *va,
		    struct err *err)
{
	struct direct *d = direct_of(t);
	uint64_t iova;
	int code = d->bus->ops->dma_map(d->bus, host, bytes, &iova, err);

	if (code)
		return code;
	code = host_again(t, iova, bytes, err);
	if (code)
		d->bus->ops->dma_unmap(d->bus, iova, NULL);
	else
		*va = iova;
	return code;
}

static int host_unmap(struct hal_transport *t, uint64_t va, uint64_t bytes,
		      struct err *err)
{
	struct direct *d = direct_of(t);

	unmap_pieces(d, va, bytes);
	return d->bus->ops->dma_unmap(d->bus, va, err);
}

static void ring_destroy(struct hal_ring *r)
{
	struct direct *d = direct_of(r->t);

	if (r->id)
		let_go(d, request(d, (struct hw_sqe){ .op = HW_QUEUE_DESTROY,
				  .id = (uint16_t)r->id }, NULL, 0, NULL, NULL));
	if (r->memory_iova)
		d->bus->ops->dma_unmap(d->bus, r->memory_iova, NULL);
	if (r->memory)
		put_pages(d, r->memory, r->memory_bytes);
	free(r);
}

/* Doorbells are stored to by it, and nobody knows which queue is meant. */
static int check_number(struct direct *d, uint64_t queue, struct err *err)
{
	if (queue && queue < HW_MAX_QUEUES)
		return 0;
	pthread_mutex_lock(&d->admin_lock);
	distrust(d);
	pthread_mutex_unlock(&d->admin_lock);
	return err_set(err, ERR_INTERNAL, "the device gave the queue number %llu, which cannot be "
		       "(1 to %u can): reset it", (unsigned long long)queue, HW_MAX_QUEUES - 1);
}

static int ring_create(struct hal_transport *t, enum hw_class cls, uint32_t n,
		       struct hal_ring **out, struct err *err)
{
	struct direct *d = direct_of(t);
	struct hal_ring *r = calloc(1, sizeof(*r));
	uint64_t sq_bytes = round_page(n * sizeof(struct hw_sqe)), value, at;
	struct hw_queue q;
	int code;

	if (!r)
		return err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory");
	r->t = t;
	r->n_entries = n;
	r->memory_bytes = sq_bytes + round_page(n * sizeof(struct hw_cqe));
	code = get_pages(d, &r->memory_bytes, &r->memory, err);
	if (!code)
		code = map_range(d, r->memory, r->memory_bytes, &r->memory_iova, &at, err);
	if (!code) {
		r->sq = r->memory;
		r->cq = (void *)((char *)r->memory + sq_bytes);
		q = (struct hw_queue){ .sq_iova = at, .cq_iova = at + sq_bytes,
				       .n_entries = n, .ctx = d->ctx, .cls = (uint8_t)cls,
				       .priority = 1, .vector = 0 };
		code = request(d, (struct hw_sqe){ .op = HW_QUEUE_CREATE }, &q, sizeof(q),
			       &value, err);
	}
	if (!code)
		code = check_number(d, value, err);
	if (code) {
		take_back(d, code);
		ring_destroy(r);
		return code;
	}
	r->id = (unsigned)value;
	*out = r;
	return 0;
}

static void ring(struct hal_ring *r)
{
	struct direct *d = direct_of(r->t);

	r->tail++;
	/* The descriptor must be in memory before the doorbell is, as what wake() tells of. */
	__atomic_thread_fence(__ATOMIC_RELEASE);
	d->bus->ops->write(d->bus, hw_doorbell(r->id), r->tail);
}

static void wake(struct hal_transport *t)
{
	struct direct *d = direct_of(t);

	__atomic_thread_fence(__ATOMIC_RELEASE);
	d->bus->ops->write(d->bus, hw_wake(d->ctx), 0);
}

static bool reap(struct hal_ring *r, struct hw_cqe *out)
{
	uint64_t *cqe = (void *)&r->cq[r->head % r->n_entries], word[sizeof(*out) / 8];
	uint16_t phase = (r->head / r->n_entries + 1) & 1;

	/* The word with the phase is written last. */
	word[0] = __atomic_load_n(cqe, __ATOMIC_ACQUIRE);
	memcpy(out, word, sizeof(word[0]));
	if ((out->phase & 1) != phase)
		return false;
	for (unsigned i = 1; i < sizeof(*out) / 8; i++)
		word[i] = __atomic_load_n(cqe + i, __ATOMIC_RELAXED);
	memcpy(out, word, sizeof(word));
	r->head++;
	return true;
}

static int ring_reset(struct hal_ring *r, struct err *err)
{
	return request(direct_of(r->t), (struct hw_sqe){ .op = HW_QUEUE_RESET,
		       .id = (uint16_t)r->id }, NULL, 0, NULL, err);
}

static int program_create(struct hal_transport *t, uint64_t code_va, uint64_t bytes,
			  const struct hw_program_binding *bindings, unsigned n,
			  uint32_t *id, uint64_t *bad, struct err *err)
{
	struct direct *d = direct_of(t);
	struct hw_program p = { .code_va = code_va, .code_bytes = bytes,
				.bindings_iova = d->admin_at + 3 * PAGE,
				.n_bindings = n, .ctx = d->ctx };
	struct hw_sqe sqe = { .op = HW_PROGRAM_CREATE };
	struct hw_cqe refused = { 0 };
	uint64_t value;
	int code;

	pthread_mutex_lock(&d->admin_lock);
	memcpy(d->admin + 3 * PAGE, bindings, n * sizeof(*bindings));
	code = send_for(d, &sqe, &p, sizeof(p), &value, &refused, err);
	pthread_mutex_unlock(&d->admin_lock);
	if (refused.status == HW_ST_BAD_PROGRAM)
		*bad = refused.detail;
	if (!code)
		*id = (uint32_t)value;
	return code;
}

static void program_destroy(struct hal_transport *t, uint32_t id)
{
	request(direct_of(t), (struct hw_sqe){ .op = HW_PROGRAM_DESTROY,
		.u.admin.value = id }, NULL, 0, NULL, NULL);
}

const struct hal_transport_ops hal_transport_direct = {
	.open = open_device, .close = close_device, .reset = reset, .alive = is_alive,
	.reg = reg, .hbm = hbm, .discard = discard, .host_map = host_map, .host_unmap = host_unmap,
	.host_again = host_again,
	.host_pages = host_pages, .host_free = host_free,
	.ring_create = ring_create, .ring_destroy = ring_destroy, .ring = ring, .wake = wake,
	.reap = reap, .ring_reset = ring_reset, .program_create = program_create,
	.program_destroy = program_destroy, .trace_start = trace_start, .trace_stop = trace_stop,
	.clock = device_clock, .link = link_request, .ask = ask,
};
