/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HAL_BUS_VFIO_USER_H
#define HAL_BUS_VFIO_USER_H
/*
 * vfio-user on the wire: what the client (vfio_user.c) and the server
 * (tools/tessera-sim) both say. Host byte order, a UNIX stream socket, descriptors
 * beside the first byte of their message.
 *
 * Each message is a header and a body of size - 16 bytes. A command without
 * VFU_NO_REPLY gets exactly one reply of the same id; one that failed is the header
 * alone, with VFU_ERROR and an errno.
 */
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#define VFU_MAX_FDS 16u				/* beside one message */
#define VFU_MAX_XFER (1u << 20)			/* data bytes in one message */
#define VFU_MAX_BODY (VFU_MAX_XFER + 4096u)
#define VFU_MAX_MAPS 65535u

enum vfu_command {
	VFU_VERSION = 1, VFU_DMA_MAP, VFU_DMA_UNMAP, VFU_GET_INFO, VFU_GET_REGION_INFO,
	VFU_GET_REGION_IO_FDS, VFU_GET_IRQ_INFO, VFU_SET_IRQS, VFU_REGION_READ,
	VFU_REGION_WRITE, VFU_DMA_READ, VFU_DMA_WRITE, VFU_RESET, VFU_DIRTY_PAGES,
	VFU_WRITE_MULTI, VFU_FEATURE, VFU_MIG_READ, VFU_MIG_WRITE,
};

enum { VFU_TYPE = 0xf, VFU_IS_REPLY = 1, VFU_NO_REPLY = 0x10, VFU_ERROR = 0x20 };

struct vfu_header {
	uint16_t id, command;
	uint32_t size;		/* header included */
	uint32_t flags;
	uint32_t error;		/* errno of a failed command */
};

struct vfu_version {		/* a JSON text with its NUL follows */
	uint16_t major, minor;
};

enum { VFU_MAP_READ = 1, VFU_MAP_WRITE = 2 };

struct vfu_dma_map {
	uint32_t argsz, flags;
	uint64_t offset;	/* in the descriptor that comes along */
	uint64_t iova, bytes;
};

enum { VFU_UNMAP_ALL = 2 };

struct vfu_dma_unmap {
	uint32_t argsz, flags;
	uint64_t iova, bytes;
};

enum { VFU_INFO_RESET = 1, VFU_INFO_PCI = 2 };

struct vfu_info {
	uint32_t argsz, flags, n_regions, n_irqs;
};

enum { VFU_REGION_BAR0 = 0, VFU_REGION_BAR2 = 2, VFU_REGION_CONFIG = 7, VFU_N_REGIONS = 9 };
enum { VFU_REGION_CAN_READ = 1, VFU_REGION_CAN_WRITE = 2, VFU_REGION_CAN_MAP = 4,
       VFU_REGION_HAS_CAPS = 8 };

struct vfu_region_info {
	uint32_t argsz, flags, index, cap_offset;
	uint64_t bytes, offset;	/* offset: in the descriptor, where it can be mapped */
};

#define VFU_CAP_SPARSE 1

/* The capability that lists what of a region can be mapped, with one area. */
struct vfu_sparse {
	uint16_t id, version;
	uint32_t next, n_areas, zero;
	uint64_t offset, bytes;
};

enum { VFU_IO_EVENTFD = 0, VFU_IO_SHADOW = 2 };
/* Ours, in vfu_io_fd.flags: the word of 8 bytes at `datamatch` of the shadow memory is not 0
 * while the server looks at the shadows by itself: who reads that after its store need not
 * add to the eventfd. */
enum { VFU_IO_AWAKE = 1 << 30 };

struct vfu_io_fds {		/* `count` struct vfu_io_fd follow in the reply */
	uint32_t argsz, flags, index, count;
};

/*
 * A store that need not be a message. Of type SHADOW: the client stores the value at
 * `shadow_offset` of descriptor `shadow_fd`, then adds to eventfd `fd`. The server
 * takes values out by exchanging them with 0.
 */
struct vfu_io_fd {
	uint64_t offset, bytes;	/* in the region */
	uint32_t fd, type, flags, shadow_fd;
	uint64_t shadow_offset, datamatch;
};

/* The T1's doorbells as shadows of 8 bytes, the tail in the low half: the driver
 * sets this bit so that a tail of 0 can be told from none. The store to the word
 * behind the doorbell that it stands for does nothing. */
#define VFU_BELL_RUNG (1ull << 32)

enum { VFU_IRQ_MSIX = 2, VFU_N_IRQS = 5 };
enum { VFU_IRQ_EVENTFD = 1 };
enum { VFU_SET_NONE = 1, VFU_SET_BOOL = 2, VFU_SET_EVENTFD = 4, VFU_SET_MASK = 8,
       VFU_SET_UNMASK = 16, VFU_SET_TRIGGER = 32 };

struct vfu_irq_info {
	uint32_t argsz, flags, index, count;
};

struct vfu_set_irqs {
	uint32_t argsz, flags, index, start, count;
};

struct vfu_region_access {	/* data follows: of a write in the command */
	uint64_t offset;
	uint32_t region, count;
};

struct vfu_write_one {
	uint64_t offset;
	uint32_t region, count;
	uint8_t data[8];
};

struct vfu_dma_access {
	uint64_t iova, count;
};

_Static_assert(sizeof(struct vfu_header) == 16, "wire size");
_Static_assert(sizeof(struct vfu_dma_map) == 32, "wire size");
_Static_assert(sizeof(struct vfu_dma_unmap) == 24, "wire size");
_Static_assert(sizeof(struct vfu_region_info) == 32, "wire size");
_Static_assert(sizeof(struct vfu_sparse) == 32, "wire size");
_Static_assert(sizeof(struct vfu_io_fd) == 48, "wire size");
_Static_assert(sizeof(struct vfu_set_irqs) == 20, "wire size");
_Static_assert(sizeof(struct vfu_write_one) == 24, "wire size");

/* Deadlines are times of clock_ns(). What fails gives -1 with errno: EAGAIN if the deadline
 * passed, ECONNRESET or EPIPE if the other side has gone. */

/* Until `fd` has one of poll's `events`, or an error that the next call tells. */
int vfu_await(int fd, short events, int64_t deadline);
/* Sends all of the vectors, which it changes, with n_fds <= VFU_MAX_FDS descriptors beside
 * the first byte. */
int vfu_send(int fd, struct iovec *vec, unsigned n, const int *fds, unsigned n_fds,
	     int64_t deadline);
/* All of `bytes`. */
int vfu_receive(int fd, void *to, size_t bytes, int64_t deadline);
/* The first bytes of a header, at least one, how many is the result; the rest is to be
 * received behind them. Their descriptors go to fds[VFU_MAX_FDS] and are the caller's to
 * close, also when it fails. EMSGSIZE: there were more of them. */
ssize_t vfu_begin(int fd, struct vfu_header *header, int *fds, unsigned *n_fds,
		  int64_t deadline);

#endif
