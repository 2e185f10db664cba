/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_SIM_H
#define SIM_SIM_H
/*
 * The model of the T1 device: the whole contract of hal/hw/DEVICE.md and
 * ISA.md as a library. Several devices live in one process; there are no globals.
 * Nothing that a driver or a program does stops the process: bad requests are
 * refused or fault their queue.
 *
 * The functions below are what a PCI function shows to its host: registers, HBM
 * (BAR2), DMA into host memory, interrupts, function reset. They may be called from any
 * thread, on different devices at once. Except where said they do not block, but a
 * doorbell write may run small work (HW_INLINE) before it returns; that of queue 0 runs
 * its requests, which like a write to CTRL may wait for running work to stop (bounded:
 * every instruction checks at tile granularity).
 *
 *	struct sim *sim;
 *	sim_create(&(struct sim_options){ .n_devices = 1 }, &sim, err);
 *	struct sim_device *dev = sim_device(sim, 0);
 *	sim_dma_map(dev, iova, ring, bytes, true, err);
 *	sim_mmio_write(dev, HW_REG_CTRL, 4, HW_CTRL_ENABLE);
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hal/base/err.h"

struct sim;
struct sim_device;

struct sim_options {
	unsigned n_devices;	/* 1..64; 0: 1 */
	uint64_t hbm_bytes;	/* of each device, multiple of 2 MiB; 0: 4 GiB */
	unsigned lanes;		/* worker threads in all, the caller's included;
				 * 0: one for each CPU that the process may use */
	const char *isa_path;	/* "portable", "avx2", "avx512": force a code path;
				 * NULL: the best that the CPU has */
	unsigned n_functions;	/* that each device shows, for several drivers at once
				 * (DEVICE.md#functions); 0: 1 */
	bool check;		/* watch programs (DEVICE.md#a-model-that-checks) */
	bool hbm_file;		/* HBM is a file (sim_hbm_fd), for other processes to map; else
				 * memory of this process, on huge pages if it gets some, or
				 * a file if the process may have no more memory */
};

/* Reads "devices=4,hbm=8G,lanes=2,path=avx2,check" (TESSERA_SIM); NULL or "": defaults.
 * INVALID_ARGUMENT names the word that is wrong. *out keeps no pointer to text
 * but isa_path, which is a string constant. */
int sim_options_parse(const char *text, struct sim_options *out, struct err *err);

/* HBM takes memory as it is written. RESOURCE_EXHAUSTED. */
int sim_create(const struct sim_options *options, struct sim **out, struct err *err);
/* Stops all work, joins the threads, frees everything. NULL is fine. */
void sim_destroy(struct sim *sim);

unsigned sim_device_count(const struct sim *sim);
unsigned sim_function_count(const struct sim *sim);
/* Its first function, which is all of it if it has no other. NULL: there is none. */
struct sim_device *sim_device(struct sim *sim, unsigned index);
/* Each is used as a device by itself. */
struct sim_device *sim_function(struct sim *sim, unsigned index, unsigned function);

/* Registers, doorbells and wake pages (BAR0). bytes is 4 or 8 (8: two accesses at once), of a
 * store to a wake page any number. */
uint64_t sim_mmio_read(struct sim_device *dev, uint32_t offset, unsigned bytes);
void sim_mmio_write(struct sim_device *dev, uint32_t offset, unsigned bytes,
		    uint64_t value);

/* Whether it watches programs. Then a host has no business in HBM but by the device's
 * copies: what it stores through the pointers below counts as never written. */
bool sim_is_checked(const struct sim_device *dev);
/* Tells it that what this part of HBM holds is nobody's any more: it was allocated anew.
 * Nothing that runs or is queued uses it. Does nothing unless it watches. */
void sim_discard(struct sim_device *dev, uint64_t offset, uint64_t bytes);

/* HBM as BAR2 shows it: the host's view of the memory, valid until sim_destroy, and not in
 * children of fork; and the memfd behind it, owned by the device, its size sealed, or -1:
 * there is none. */
void *sim_hbm(struct sim_device *dev, uint64_t *bytes);
int sim_hbm_fd(struct sim_device *dev);
/* Puts new, zeroed memory in HBM's place, at the same address: whoever still holds an
 * old memfd sees nothing of what comes. For after sim_flr, while nothing runs. The
 * old memory stays in place if this fails (RESOURCE_EXHAUSTED). */
int sim_hbm_renew(struct sim_device *dev, struct err *err);

/* What the IOMMU lets the device reach. iova and bytes are multiples of 4096.
 * ALREADY_EXISTS on overlap. Unmapping blocks until the device no longer uses the
 * range; NOT_FOUND if no mapping starts there. */
int sim_dma_map(struct sim_device *dev, uint64_t iova, void *host, uint64_t bytes,
		bool writable, struct err *err);
int sim_dma_unmap(struct sim_device *dev, uint64_t iova, struct err *err);
/* Before that: nobody begins to use the range, and runs that do are told to end. Whether there are
 * any, so that unmapping would block. */
bool sim_dma_cut(struct sim_device *dev, uint64_t iova);

/*
 * For host memory that what the device stores reaches later than its own, and of which it may
 * read what was there before. The model has `send` called before it tells of stores (by a
 * completion, a semaphore, the record of a trace), and `forget` after it was told of the host's
 * (by a semaphore that it waited for): on any of its threads, while the run that they concern
 * counts as running, and without the locks that registers are read under. Both may block; they
 * are not called while their flag is false.
 */
struct sim_far {
	atomic_bool is_unsent;	/* something that was stored may not be there yet */
	atomic_bool is_kept;	/* something that is read may be older than what is there */
	/* How often something could not be read (zeros were) or sent. Work fails during which it
	 * grows, and the next has `forget` called first unless that was since. */
	atomic_uint n_failed, n_forgotten;
	void (*send)(struct sim_far *far);	/* returns when what was stored is there */
	void (*forget)(struct sim_far *far);	/* what is read next is what is there then */
	/* Whether `p` is in such memory. Does not block. What a run stores there it stores
	 * without the locks, too. */
	bool (*holds)(struct sim_far *far, const void *p);
};

/* Before such memory is mapped. NULL: there is none, nothing runs. It stays the caller's. */
void sim_set_far(struct sim_device *dev, struct sim_far *far);

/* Before work is rung for. Its host knows nothing of other devices' hosts: no thread that rings
 * for it works for another device, nor one of theirs for it, since each may wait for its own host
 * (struct sim_far). */
void sim_keep_apart(struct sim_device *dev);

/* Its host is about to be asked for such memory, which runs of the device may wait for: functions
 * of the same card have its engines meanwhile. From any thread. */
void sim_waits_for_host(struct sim_device *dev);

/* The device adds 1 to eventfd `fd` for each interrupt of an unmasked vector
 * (-1: none), with a lock of its that others may need. The fd stays the caller's. */
int sim_irq_fd(struct sim_device *dev, unsigned vector, int fd, struct err *err);

/* `add` does that, and waits for nobody; otherwise write(2), which waits where somebody else has
 * filled the counter and lets it block. Before any work. */
void sim_irq_by(struct sim_device *dev, void (*add)(int fd));

/* INJECT (DEVICE.md#ras) by whoever has the machine: the driver need not be up, and hears of it as
 * of any other error. `what` is an enum hw_inject. INVALID_ARGUMENT: there is no such error, or not
 * with this value; RESOURCE_EXHAUSTED. Waits as a request does. */
int sim_inject(struct sim_device *dev, unsigned what, uint64_t value, struct err *err);

/* Function-level reset: all queues, contexts, programs and maps are gone, as after
 * power on; HBM content stays. Blocks until running work has stopped (bounded: every
 * instruction checks at tile granularity). */
void sim_flr(struct sim_device *dev);

#endif
