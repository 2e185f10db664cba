/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_VFIO_CLIENT_H
#define TESTS_VFIO_CLIENT_H
/* A client of tessera-sim's sockets that says any bytes, for tests of the server, and a
 * device brought up by hand. The server is the test program's. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cmocka.h>

#include "hal/base/clock.h"
#include "hal/bus/vfio_user.h"
#include "hal/hw/desc.h"
#include "hal/hw/regs.h"
#include "tests/unit/vfio_server.h"

#define SECOND 1000000000ll

static struct vfio_server server;
static uint16_t next_id;

/* ---- a raw client ---- */

static inline int dial_at(unsigned device)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	struct timeval limit = { .tv_sec = 10 };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	memcpy(a.sun_path, server.socket[device], sizeof(server.socket[device]));
	assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	return fd;
}

static inline int dial(void)
{
	return dial_at(0);
}

/* Sends bytes with descriptors; false: the server has closed. */
static inline bool send_raw(int fd, const void *data, size_t n, const int *fds,
			    unsigned n_fds)
{
	char control[CMSG_SPACE(64 * sizeof(int))] = { 0 };
	struct iovec v = { (void *)(uintptr_t)data, n };
	struct msghdr h = { .msg_iov = &v, .msg_iovlen = 1 };

	if (n_fds) {
		struct cmsghdr *c = (void *)control;

		h.msg_control = control;
		h.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(n_fds * sizeof(int));
		memcpy(CMSG_DATA(c), fds, n_fds * sizeof(int));
	}
	return sendmsg(fd, &h, MSG_NOSIGNAL) == (ssize_t)n;
}

static inline bool send_command(int fd, uint16_t command, uint32_t flags, const void *body,
				size_t n, const int *fds, unsigned n_fds)
{
	uint8_t buf[sizeof(struct vfu_header) + 8192];
	struct vfu_header h = { ++next_id, command, (uint32_t)(sizeof(h) + n), flags, 0 };

	assert_true(n <= 8192);
	memcpy(buf, &h, sizeof(h));
	if (n)
		memcpy(buf + sizeof(h), body, n);
	return send_raw(fd, buf, sizeof(h) + n, fds, n_fds);
}

struct got {
	struct vfu_header h;
	uint8_t body[65536];
	size_t n;
	int fds[VFU_MAX_FDS];
	unsigned n_fds;
};

/* The next reply; false: the server has closed. Descriptors are the caller's. */
static inline bool receive(int fd, struct got *g)
{
	char control[CMSG_SPACE(VFU_MAX_FDS * sizeof(int))];
	struct iovec v = { &g->h, sizeof(g->h) };
	struct msghdr h = { .msg_iov = &v, .msg_iovlen = 1, .msg_control = control,
			    .msg_controllen = sizeof(control) };
	struct cmsghdr *c;

	g->n_fds = 0;
	g->n = 0;
	if (recvmsg(fd, &h, MSG_WAITALL | MSG_CMSG_CLOEXEC) != sizeof(g->h))
		return false;
	c = CMSG_FIRSTHDR(&h);
	if (c && c->cmsg_type == SCM_RIGHTS) {
		g->n_fds = (unsigned)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));
		memcpy(g->fds, CMSG_DATA(c), g->n_fds * sizeof(int));
	}
	g->n = g->h.size - sizeof(g->h);
	assert_true(g->n <= sizeof(g->body));
	return !g->n || recv(fd, g->body, g->n, MSG_WAITALL) == (ssize_t)g->n;
}

static struct got got;

/* A command and its reply in `got`; the reply's errno. */
static inline int ask(int fd, uint16_t command, const void *body, size_t n, const int *fds,
	       unsigned n_fds)
{
	assert_true(send_command(fd, command, 0, body, n, fds, n_fds));
	assert_true(receive(fd, &got));
	assert_int_equal(got.h.id, next_id);
	assert_int_equal(got.h.command, command);
	if (got.h.flags == (VFU_IS_REPLY | VFU_ERROR)) {
		assert_int_equal(got.h.size, sizeof(got.h));
		assert_int_not_equal(got.h.error, 0);
		return (int)got.h.error;
	}
	assert_int_equal(got.h.flags, VFU_IS_REPLY);
	return 0;
}

static const char offer[] = "\0\0\0\0{\"capabilities\":{\"max_msg_fds\":16,"
	"\"max_data_xfer_size\":1048576,\"migration\":{\"pgsize\":4096},"
	"\"max_dma_maps\":65535,\"pgsizes\":4096,\"write_multiple\":true}}";

static inline int join_at(unsigned device)
{
	int fd = dial_at(device);

	assert_int_equal(ask(fd, VFU_VERSION, offer, sizeof(offer), NULL, 0), 0);
	return fd;
}

static inline int join(void)
{
	return join_at(0);
}

static inline int write_at(int fd, uint32_t region, uint64_t offset, const void *data, uint32_t n)
{
	struct vfu_region_access a = { offset, region, n };
	uint8_t body[sizeof(a) + 64];

	memcpy(body, &a, sizeof(a));
	memcpy(body + sizeof(a), data, n);
	return ask(fd, VFU_REGION_WRITE, body, sizeof(a) + n, NULL, 0);
}

static inline void write32(int fd, uint32_t region, uint64_t offset, uint32_t value)
{
	assert_int_equal(write_at(fd, region, offset, &value, 4), 0);
}

static inline uint64_t read_at(int fd, uint32_t region, uint64_t offset, uint32_t n)
{
	struct vfu_region_access a = { offset, region, n };
	uint64_t value = 0;

	assert_int_equal(ask(fd, VFU_REGION_READ, &a, sizeof(a), NULL, 0), 0);
	assert_int_equal(got.n, sizeof(a) + n);
	assert_memory_equal(got.body, &a, sizeof(a));
	memcpy(&value, got.body + sizeof(a), n < 8 ? n : 8);
	return value;
}

static inline int map_at(int fd, uint64_t iova, uint64_t bytes, uint64_t offset, int memory)
{
	struct vfu_dma_map m = { sizeof(m), VFU_MAP_READ | VFU_MAP_WRITE, offset, iova, bytes };

	return ask(fd, VFU_DMA_MAP, &m, sizeof(m), &memory, memory >= 0);
}

static inline int unmap_at(int fd, uint64_t iova, uint64_t bytes, uint32_t flags)
{
	struct vfu_dma_unmap u = { sizeof(u), flags, iova, bytes };

	return ask(fd, VFU_DMA_UNMAP, &u, sizeof(u), NULL, 0);
}

static inline int make_memory(uint64_t bytes, void **at)
{
	int fd = memfd_create("test", MFD_CLOEXEC);

	assert_int_equal(ftruncate(fd, (off_t)bytes), 0);
	if (at) {
		*at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		assert_ptr_not_equal(*at, MAP_FAILED);
	}
	return fd;
}

static inline void be_master(int fd)
{
	uint16_t command = 6;

	assert_int_equal(write_at(fd, VFU_REGION_CONFIG, 4, &command, 2), 0);
}

static inline int start_server(void **state)
{
	(void)state;
	signal(SIGPIPE, SIG_IGN);
	return server_start(&server);
}

static inline int stop_server(void **state)
{
	int status = server_stop(&server, SIGTERM);

	(void)state;
	if (WIFEXITED(status) && !WEXITSTATUS(status))
		return 0;
	fprintf(stderr, "tessera-sim ended with status 0x%x\n", status);
	return -1;
}

static inline int set_irqs(int fd, uint32_t flags, uint32_t start, uint32_t count, const int *fds,
		    unsigned n)
{
	struct vfu_set_irqs s = { sizeof(s), flags, VFU_IRQ_MSIX, start, count };

	return ask(fd, VFU_SET_IRQS, &s, sizeof(s), fds, n);
}

static inline uint64_t count_of(int fd)
{
	uint64_t n;

	return read(fd, &n, sizeof(n)) == sizeof(n) ? n : 0;
}

/* ---- a device at work, by hand ---- */

struct rig {
	int fd, memory, irq;
	uint8_t *page;		/* submissions, completions, arguments */
	uint32_t tail;
};

#define RIG_IOVA 0x10000000ull

/* What a reset takes away; vectors keep their eventfds. */
static inline void start_rings(struct rig *r)
{
	be_master(r->fd);
	write32(r->fd, 0, HW_REG_ASQ, RIG_IOVA);
	write32(r->fd, 0, HW_REG_ACQ, RIG_IOVA + 4096);
	write32(r->fd, 0, HW_REG_AQSIZE, 16);
	write32(r->fd, 0, HW_REG_AVECTOR, 3);
	write32(r->fd, 0, HW_REG_CTRL, HW_CTRL_ENABLE);
	r->tail = 0;
}

static inline void bring_up(struct rig *r)
{
	assert_int_equal(set_irqs(r->fd, VFU_SET_EVENTFD | VFU_SET_TRIGGER, 3, 1, &r->irq, 1), 0);
	start_rings(r);
}

static inline void set_up(struct rig *r)
{
	void *at;

	r->fd = join();
	r->memory = make_memory(3 * 4096, &at);
	r->page = at;
	r->irq = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	assert_int_equal(map_at(r->fd, RIG_IOVA, 3 * 4096, 0, r->memory), 0);
	bring_up(r);
}

static inline void take_down(struct rig *r)
{
	close(r->fd);
	close(r->memory);
	close(r->irq);
	munmap(r->page, 3 * 4096);
}

static inline void put_identify(struct rig *r)
{
	struct hw_sqe sqe = { .op = HW_IDENTIFY, .flags = HW_IRQ,
			      .u.admin = { RIG_IOVA + 8192, 0, 4096 } };

	((struct hw_sqe *)r->page)[r->tail++ % 16] = sqe;
}

/* Waits for the interrupt of one IDENTIFY. */
static inline bool identified(struct rig *r)
{
	struct pollfd p = { .fd = r->irq, .events = POLLIN };
	struct hw_identify id;

	if (poll(&p, 1, 5000) <= 0)
		return false;
	count_of(r->irq);
	memcpy(&id, r->page + 8192, sizeof(id));
	memset(r->page + 8192, 0, 4096);
	return id.magic == HW_IDENTIFY_MAGIC;
}

/* Stores to a register without waiting: the server may ask before it would answer. */
static inline void post(const struct rig *r, uint64_t offset, uint32_t value)
{
	struct vfu_region_access a = { offset, VFU_REGION_BAR0, 4 };
	uint8_t body[sizeof(a) + 4];

	memcpy(body, &a, sizeof(a));
	memcpy(body + sizeof(a), &value, 4);
	assert_true(send_command(r->fd, VFU_REGION_WRITE, VFU_NO_REPLY, body, sizeof(body), NULL,
				 0));
}

/* The place of the n-th completion of a ring at `at`, which has 16 entries. */
static inline struct hw_cqe *place_of(const struct rig *r, uint32_t at, uint32_t n)
{
	return (struct hw_cqe *)(r->page + at) + n % 16;
}

static inline bool is_complete(const struct rig *r, uint32_t at, uint32_t n)
{
	return (__atomic_load_n(&place_of(r, at, n)->phase, __ATOMIC_ACQUIRE) & 1) ==
	       ((n / 16 + 1) & 1);
}

/* That completion, once it is there. */
static inline struct hw_cqe completion(const struct rig *r, uint32_t at, uint32_t n)
{
	int64_t until = clock_after(5000000000);

	while (!is_complete(r, at, n))
		assert_true(clock_ns() < until);
	return *place_of(r, at, n);
}

/* A request of queue 0; its value. */
static inline uint64_t request(struct rig *r, uint8_t op, uint16_t id, const void *in, size_t bytes)
{
	struct hw_cqe c;

	if (bytes)
		memcpy(r->page + 8192, in, bytes);
	((struct hw_sqe *)r->page)[r->tail % 16] = (struct hw_sqe){
		.op = op, .id = id, .u.admin = { RIG_IOVA + 8192, 0, 1024 } };
	write32(r->fd, 0, hw_doorbell(0), ++r->tail);
	c = completion(r, 4096, r->tail - 1);
	assert_int_equal(c.status, 0);
	return c.value;
}

static inline void is_served(void)
{
	struct rig r;

	set_up(&r);
	put_identify(&r);
	write32(r.fd, 0, hw_doorbell(0), r.tail);
	assert_true(identified(&r));
	take_down(&r);
}

#endif
