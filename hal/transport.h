/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HAL_TRANSPORT_H
#define HAL_TRANSPORT_H
/*
 * Who owns the device: us (direct.c, over a bus) or a kernel driver. Private to hal/.
 *
 * A transport moves descriptors and knows nothing of fences, fault texts or
 * allocation. ring() and reap() of one queue are called under that queue's
 * lock; all else may come from any thread. Blocking calls are bounded by HAL_ADMIN_NS.
 */
#include <stdbool.h>
#include <stdint.h>

#include "hal/base/err.h"
#include "hal/hw/desc.h"

#define HAL_ADMIN_NS 10000000000ll
#define HAL_HBM_VA (1ull << 48)		/* where a context sees HBM */

struct hal_transport;

/* A work queue as the transport sees it. */
struct hal_ring {
	struct hal_transport *t;
	unsigned id;
	uint32_t n_entries;
	struct hw_sqe *sq;
	struct hw_cqe *cq;
	uint32_t tail, head;	/* submitted and reaped, free-running */
	uint64_t memory_iova, memory_bytes;
	void *memory;
};

/* Of HBM that is dealt out among processes: what this one could have now. */
struct hal_room {
	uint64_t limit;		/* in all, what it has included */
	uint64_t largest;	/* the largest block that it could take */
	uint64_t others;	/* what others have */
};

struct str;

struct hal_transport_ops {
	/* Brings the device up. `identity` is filled; irq_fd (an eventfd) will count
	 * interrupts. Blocks. */
	int (*open)(void *host, const char *where, int irq_fd, struct hal_transport **out,
		    struct hw_identify *identity, struct err *err);
	void (*close)(struct hal_transport *t);
	/* Reset of the function, or of what we have of it, and bring-up again; all rings and
	 * programs are gone. */
	int (*reset)(struct hal_transport *t, struct err *err);
	/* Whether the device still works; the reason if not. Cheap. */
	int (*alive)(struct hal_transport *t, struct err *err);
	/* A register, whatever state the device is in. NULL: they are not ours. */
	uint32_t (*reg)(struct hal_transport *t, uint32_t offset);
	/* HBM as the CPU sees it, or NULL. NULL itself: HBM is dealt out, as follows. */
	void *(*hbm)(struct hal_transport *t, uint64_t *bytes);
	/* For HBM that is dealt out among processes, all NULL otherwise. The first three come
	 * under one lock of the caller's, as reset does, after which all blocks are where they
	 * were.
	 *
	 * take: a block of *bytes, zeros, where the context sees HAL_HBM_VA + offset; *host is
	 * where the CPU does, or NULL. It is of `wanted` bytes, or at least `least`, both whole
	 * pages. RESOURCE_EXHAUSTED: nobody has so much to give. */
	int (*hbm_take)(struct hal_transport *t, uint64_t offset, uint64_t least, uint64_t wanted,
			uint64_t *bytes, void **host, struct err *err);
	/* Gives the block at `offset` back. FAILED_PRECONDITION: work that runs uses it; it is
	 * ours still. */
	int (*hbm_give)(struct hal_transport *t, uint64_t offset, struct err *err);
	/* Has `by`, a transport of the same kind, see all blocks in [offset, + bytes), each at base
	 * + where it begins, for copies. It holds until the block is given back or either is reset.
	 * Under the lock of the first three. UNIMPLEMENTED: it can't reach them. */
	int (*hbm_show)(struct hal_transport *t, uint64_t offset, uint64_t bytes,
			struct hal_transport *by, uint64_t base, struct err *err);
	/* Untouched if the driver does not answer. */
	void (*hbm_room)(struct hal_transport *t, struct hal_room *out);
	/* Adds to *out who has the `others` bytes, as far as this user may know. */
	void (*hbm_holders)(struct hal_transport *t, uint64_t others, struct str *out);
	/* HBM was allocated anew (bus.h). NULL: nobody wants to know. */
	void (*discard)(struct hal_transport *t, uint64_t offset, uint64_t bytes);
	/* Page-aligned host memory that programs and copies may use: its va, which is untouched
	 * on failure. */
	int (*host_map)(struct hal_transport *t, void *host, uint64_t bytes, uint64_t *va,
			struct err *err);
	int (*host_unmap)(struct hal_transport *t, uint64_t va, uint64_t bytes,
			  struct err *err);
	/* After `reset`, which took it out of the context: what is mapped is seen at va again. */
	int (*host_again)(struct hal_transport *t, uint64_t va, uint64_t bytes,
			  struct err *err);
	/* Memory that host_map takes, *bytes rounded up to whole pages; *out is NULL where
	 * any memory will do. NULL: it will. Back by host_free, unmapped. */
	int (*host_pages)(struct hal_transport *t, uint64_t *bytes, void **out,
			  struct err *err);
	void (*host_free)(struct hal_transport *t, void *pages, uint64_t bytes);
	int (*ring_create)(struct hal_transport *t, enum hw_class cls, uint32_t n_entries,
			   struct hal_ring **out, struct err *err);
	void (*ring_destroy)(struct hal_ring *ring);
	/* Publishes the descriptor at ring->sq[tail]; tail moves on. Room is there. */
	void (*ring)(struct hal_ring *ring);
	/* The host wrote a semaphore: the device looks again at all our queues that wait. Under
	 * the locks of all queues. */
	void (*wake)(struct hal_transport *t);
	/* The next completion, if there is one. */
	bool (*reap)(struct hal_ring *ring, struct hw_cqe *out);
	/* Stops the queue; what was pending completes as DROPPED. */
	int (*ring_reset)(struct hal_ring *ring, struct err *err);
	/* The code is in HBM at code_va. *bad: where the device does not like it
	 * (BAD_PROGRAM), untouched otherwise. */
	int (*program_create)(struct hal_transport *t, uint64_t code_va, uint64_t bytes,
			      const struct hw_program_binding *bindings, unsigned n,
			      uint32_t *id, uint64_t *bad, struct err *err);
	void (*program_destroy)(struct hal_transport *t, uint32_t id);
	/* Has the device record what is ours on it (DEVICE.md#traces), in mapped host memory, as
	 * `ring` says but for the vector: irq_fd counts each half of the ring that was written.
	 * UNIMPLEMENTED: a driver that is too old. */
	int (*trace_start)(struct hal_transport *t, struct hw_trace ring, struct err *err);
	/* When it succeeds the device writes no more there. */
	int (*trace_stop)(struct hal_transport *t, struct err *err);
	/* The device's clock, and CLOCK_MONOTONIC right before it was read and after. False: it
	 * can't be read, or not this time. */
	bool (*clock)(struct hal_transport *t, uint64_t *device_ns, int64_t *before,
		      int64_t *after);
	/* A request of the links (WINDOW_OPEN, WINDOW_CLOSE, PEER_MAP), or UNMAP of a window,
	 * with what it points to. NULL: not built for this way to the device. */
	int (*link)(struct hal_transport *t, struct hw_sqe sqe, const void *in, uint64_t bytes,
		    uint64_t *value, struct err *err);
	/* An admin request without memory, or one that fills `page`. */
	int (*ask)(struct hal_transport *t, struct hw_sqe sqe, void *page, uint64_t bytes,
		   uint64_t *value, struct err *err);
};

struct hal_transport {
	const struct hal_transport_ops *ops;
};

struct hal_bus_ops;
/* Opens `where` of `host` on a bus. */
struct hal_direct_host {
	const struct hal_bus_ops *bus;
	void *host;
};
extern const struct hal_transport_ops hal_transport_direct;	/* host: hal_direct_host */
/* host: not read; where: the path of the kernel driver's node. */
extern const struct hal_transport_ops hal_transport_ioctl;

#endif
