/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The vfio-user bus against servers that are not ours: what stock ones answer, and what
 * broken ones do. The server is a thread that answers as each case says.
 */
#include <dirent.h>
#include <pthread.h>

#include "hal/bus.h"
#include "tests/unit/vfio_client.h"

#define HBM (2u << 20)
#define LIMIT_MS "400"

/* How a case's server differs from one that does all right and shares no doorbells. */
struct manners {
	uint16_t minor;
	bool no_caps, no_fd, never_more;	/* of BAR2's description */
	uint64_t area_offset, area_bytes;	/* 0: all of it */
	uint32_t n_areas;			/* 0: 1 */
	uint32_t missing;			/* bytes, at the end of HBM's file */
	bool has_bells;				/* shares doorbells ... */
	uint32_t page_bytes;			/* in a file of so many bytes */
	enum vfu_command odd;			/* the reply to this one ... */
	uint16_t id_off;			/* has another id by so much, */
	int32_t size_off;			/* is so much longer than it should, */
	bool with_fds;				/* comes with more descriptors than may be */
	bool asks_first;			/* or behind a command of the server's */
	bool deaf;				/* reads nothing behind its first SET_IRQS */
};

static struct {
	struct manners manners;
	int listener, fd;
	unsigned n_region_asks, n_bells, n_wakes, n_maps;
	bool has_irq;
	uint32_t bell;
	uint16_t refused;		/* errno of our own command */
	char path[120];
	pthread_t thread;
} srv;

static size_t describe_region(uint8_t *out, const uint8_t *body, int *fds, unsigned *n_fds)
{
	const struct manners *m = &srv.manners;
	struct vfu_region_info r;
	struct vfu_sparse s = { .id = VFU_CAP_SPARSE, .version = 1,
				.n_areas = m->n_areas ? m->n_areas : 1,
				.offset = m->area_offset,
				.bytes = m->area_bytes ? m->area_bytes : HBM };
	uint32_t room;

	memcpy(&r, body, sizeof(r));
	room = r.argsz;
	srv.n_region_asks++;
	assert_int_equal(r.index, VFU_REGION_BAR2);
	r = (struct vfu_region_info){ .argsz = sizeof(r), .flags = 7, .index = r.index,
				      .bytes = HBM };
	if (!m->no_caps)
		r.argsz += (uint32_t)sizeof(s);
	if (room >= r.argsz && !m->never_more && !m->no_fd) {
		fds[0] = make_memory(HBM - m->missing, NULL);
		*n_fds = 1;
	}
	if (room >= r.argsz && !m->no_caps) {
		r.flags |= VFU_REGION_HAS_CAPS;
		r.cap_offset = sizeof(r);
		memcpy(out + sizeof(r), &s, sizeof(s));
	}
	memcpy(out, &r, sizeof(r));
	return r.cap_offset ? sizeof(r) + sizeof(s) : sizeof(r);
}

static int describe_bells(uint8_t *out, int *fds, unsigned *n_fds)
{
	struct vfu_io_fds head = { .argsz = sizeof(head), .count = HW_MAX_QUEUES };

	memcpy(out, &head, sizeof(head));
	for (unsigned q = 0; q < HW_MAX_QUEUES; q++) {
		struct vfu_io_fd io = { .offset = hw_doorbell(q), .bytes = 8,
					.type = VFU_IO_SHADOW, .shadow_fd = 1,
					.shadow_offset = q * 8 };

		memcpy(out + sizeof(head) + q * sizeof(io), &io, sizeof(io));
	}
	fds[0] = eventfd(0, EFD_CLOEXEC);
	fds[1] = make_memory(srv.manners.page_bytes, NULL);
	*n_fds = 2;
	return (int)(sizeof(head) + HW_MAX_QUEUES * sizeof(struct vfu_io_fd));
}

/* The reply's body; negative: an errno; INT_MAX: none is wanted. */
static int answer(const struct vfu_header *h, const uint8_t *body, uint8_t *out, int *fds,
		  unsigned *n_fds)
{
	const struct vfu_info info = { sizeof(info), 3, 9, 5 };
	struct vfu_region_access a;

	switch (h->command) {
	case VFU_VERSION:
		memcpy(out, &(struct vfu_version){ 0, srv.manners.minor }, 4);
		strcpy((char *)out + 4, "{}");
		return 7;
	case VFU_GET_INFO:
		memcpy(out, &info, sizeof(info));
		return sizeof(info);
	case VFU_GET_REGION_INFO:
		return (int)describe_region(out, body, fds, n_fds);
	case VFU_GET_REGION_IO_FDS:
		return srv.manners.has_bells ? describe_bells(out, fds, n_fds) : -ENOTSUP;
	case VFU_REGION_READ:
		memcpy(&a, body, sizeof(a));
		memcpy(out, &a, sizeof(a));
		memset(out + sizeof(a), 0, a.count);
		if (a.region == VFU_REGION_CONFIG)
			memcpy(out + sizeof(a), &(uint32_t){ HW_PCI_VENDOR |
				(uint32_t)HW_PCI_DEVICE << 16 }, 4);
		return (int)(sizeof(a) + a.count);
	case VFU_REGION_WRITE:
		memcpy(&a, body, sizeof(a));
		if (h->flags & VFU_NO_REPLY && a.offset == hw_doorbell(2)) {
			memcpy(&srv.bell, body + sizeof(a), 4);
			__atomic_fetch_add(&srv.n_bells, 1, __ATOMIC_RELEASE);
		}
		if (h->flags & VFU_NO_REPLY && a.offset == hw_wake(63))
			__atomic_fetch_add(&srv.n_wakes, 1, __ATOMIC_RELEASE);
		memcpy(out, &a, sizeof(a));
		return sizeof(a);
	case VFU_DMA_MAP:
		srv.n_maps++;
		return 0;
	case VFU_DMA_UNMAP:
		memcpy(out, body, sizeof(struct vfu_dma_unmap));
		return sizeof(struct vfu_dma_unmap);
	case VFU_SET_IRQS:
		srv.has_irq = true;
		return 0;
	case VFU_RESET:
		return 0;
	default:
		return -ENOTSUP;
	}
}

static void close_all(int *fds, unsigned n)
{
	while (n)
		close(fds[--n]);
}

/* A command of ours in the middle of the client's; what it says to that is kept. */
static bool ask_client(void)
{
	struct vfu_dma_access a = { 4096, 8 };
	struct vfu_header h = { 9, VFU_DMA_READ, sizeof(h) + sizeof(a), 0, 0 };
	struct iovec v[] = { { &h, sizeof(h) }, { &a, sizeof(a) } };

	if (vfu_send(srv.fd, v, 2, NULL, 0, clock_after(SECOND)) ||
	    vfu_receive(srv.fd, &h, sizeof(h), clock_after(SECOND)))
		return false;
	srv.refused = h.id == 9 && h.flags == (VFU_IS_REPLY | VFU_ERROR) ?
		(uint16_t)h.error : 0;
	return true;
}

static bool serve_one(void)
{
	const struct manners *m = &srv.manners;
	static uint8_t body[8192], out[8192];
	int fds[VFU_MAX_FDS + 4], n;
	struct vfu_header h;
	unsigned n_got, n_fds = 0;
	struct iovec v[2];
	ssize_t got_bytes = vfu_begin(srv.fd, &h, fds, &n_got, CLOCK_FOREVER);

	close_all(fds, n_got);
	if (got_bytes < 0 || vfu_receive(srv.fd, (char *)&h + got_bytes,
					 sizeof(h) - (size_t)got_bytes, CLOCK_FOREVER) ||
	    vfu_receive(srv.fd, body, h.size - sizeof(h), CLOCK_FOREVER))
		return false;
	n = answer(&h, body, out, fds, &n_fds);
	if (h.flags & VFU_NO_REPLY)
		return true;
	h.flags = VFU_IS_REPLY | (n < 0 ? VFU_ERROR : 0);
	h.error = n < 0 ? (uint32_t)-n : 0;
	if (m->odd == h.command) {
		h.id = (uint16_t)(h.id + m->id_off);
		n += m->size_off;
		for (n_fds = m->with_fds ? 0 : n_fds; m->with_fds && n_fds < VFU_MAX_FDS; n_fds++)
			fds[n_fds] = eventfd(0, EFD_CLOEXEC);
		if (m->asks_first && !ask_client())
			return false;
	}
	n = n < 0 ? 0 : n;
	h.size = (uint32_t)(sizeof(h) + (size_t)n);
	v[0] = (struct iovec){ &h, sizeof(h) };
	v[1] = (struct iovec){ out, (size_t)n };
	n = vfu_send(srv.fd, v, 2, fds, n_fds, clock_after(5 * SECOND));
	close_all(fds, n_fds);
	return !n;
}

static void *serve(void *arg)
{
	(void)arg;
	srv.fd = accept4(srv.listener, NULL, NULL, SOCK_CLOEXEC);
	while (serve_one() && !(srv.manners.deaf && srv.has_irq))
		;
	/* Until the client has had enough. */
	if (srv.manners.deaf)
		vfu_await(srv.fd, POLLRDHUP, clock_after(20 * SECOND));
	close(srv.fd);
	return NULL;
}

/* Opens the bus at a server of such manners. */
static int open_bus(const struct manners *m, struct hal_bus **bus, struct err *err)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int code;

	memset(&srv, 0, sizeof(srv));
	srv.manners = *m;
	snprintf(srv.path, sizeof(srv.path), "/tmp/tessera-stock-%d", getpid());
	snprintf(a.sun_path, sizeof(a.sun_path), "%.100s", srv.path);
	srv.listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(srv.listener, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(listen(srv.listener, 1), 0);
	assert_int_equal(pthread_create(&srv.thread, NULL, serve, NULL), 0);
	setenv("TESSERA_SERVER_LIMIT_MS", LIMIT_MS, 1);
	code = hal_bus_vfio_user.open(NULL, srv.path, bus, err);
	unsetenv("TESSERA_SERVER_LIMIT_MS");
	return code;
}

static void end_server(void)
{
	pthread_join(srv.thread, NULL);
	close(srv.listener);
	unlink(srv.path);
}

static unsigned count_descriptors(void)
{
	DIR *d = opendir("/proc/self/fd");
	unsigned n = 0;

	assert_non_null(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static void a_region_is_mapped_if_all_of_it_can_be(void **state)
{
	static const struct { struct manners m; bool mapped; unsigned asks; } cases[] = {
		{ { 0 }, true, 2 },
		{ { .no_caps = true }, true, 1 },
		{ { .no_fd = true }, false, 2 },
		{ { .never_more = true }, false, 2 },
		{ { .area_bytes = HBM / 2 }, false, 2 },
		{ { .area_offset = 4096 }, false, 2 },
		{ { .area_offset = 4096, .area_bytes = HBM - 4096 }, false, 2 },
		{ { .n_areas = 2 }, false, 2 },
	};
	unsigned before = count_descriptors();

	(void)state;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct hal_bus *bus;
		struct err err;
		uint64_t bytes;

		if (open_bus(&cases[i].m, &bus, &err))
			fail_msg("case %u: %s", i, err.msg);
		assert_int_equal(bus->ops->hbm(bus, &bytes) != NULL, cases[i].mapped);
		assert_int_equal(bytes, cases[i].mapped ? HBM : 0);
		assert_int_equal(srv.n_region_asks, cases[i].asks);
		bus->ops->close(bus);
		end_server();
	}
	assert_int_equal(count_descriptors(), before);
}

static void servers_that_break_the_protocol_are_refused(void **state)
{
	static const struct { struct manners m; const char *why; } cases[] = {
		{ { .minor = 1 }, "a VERSION that this build does not know" },
		{ { .odd = VFU_GET_INFO, .id_off = 1 }, "a reply to something else" },
		{ { .odd = VFU_GET_INFO, .size_off = 4 }, "larger than was asked for" },
		{ { .odd = VFU_GET_INFO, .size_off = -4 }, "no PCI function" },
		{ { .odd = VFU_VERSION, .size_off = -4 }, "a VERSION that this build" },
		{ { .odd = VFU_REGION_READ, .size_off = -1 }, "a short REGION_READ reply" },
		{ { .odd = VFU_REGION_READ, .size_off = 1 }, "larger than was asked for" },
		{ { .odd = VFU_GET_REGION_INFO, .size_off = -1 }, "a short region description" },
		{ { .missing = 1 }, "HBM in a file that is shorter" },
	};
	unsigned before = count_descriptors();

	(void)state;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct hal_bus *bus;
		struct err err;

		/* The region's description is as long as its one capability makes it. */
		struct manners m = cases[i].m;

		m.no_caps = m.odd == VFU_GET_REGION_INFO;
		assert_int_equal(open_bus(&m, &bus, &err), ERR_UNAVAILABLE);
		if (!strstr(err.msg, cases[i].why) || !strstr(err.msg, srv.path))
			fail_msg("case %u: %s", i, err.msg);
		end_server();
	}
	assert_int_equal(count_descriptors(), before);
}

static void a_limit_that_is_no_number_is_refused(void **state)
{
	static const char *const bad[] = { "0", "10s", "-1", "1.5", "86400001" };
	struct hal_bus *bus;
	struct err err;

	(void)state;
	for (unsigned i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		setenv("TESSERA_SERVER_LIMIT_MS", bad[i], 1);
		assert_int_equal(hal_bus_vfio_user.open(NULL, "/tmp/none", &bus, &err),
				 ERR_INVALID_ARGUMENT);
		assert_non_null(strstr(err.msg, bad[i]));
	}
	unsetenv("TESSERA_SERVER_LIMIT_MS");
}

static void descriptors_that_nobody_asked_for_are_closed(void **state)
{
	static const enum vfu_command commands[] = { VFU_VERSION, VFU_GET_INFO, VFU_REGION_READ };
	unsigned before = count_descriptors();

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		struct manners m = { .odd = commands[i], .with_fds = true };
		struct hal_bus *bus;
		struct err err;

		if (open_bus(&m, &bus, &err))
			fail_msg("%s", err.msg);
		bus->ops->close(bus);
		end_server();
	}
	assert_int_equal(count_descriptors(), before);
}

static void commands_of_a_server_are_refused_in_between(void **state)
{
	struct manners m = { .odd = VFU_GET_INFO, .asks_first = true };
	struct hal_bus *bus;
	struct err err;

	(void)state;
	if (open_bus(&m, &bus, &err))
		fail_msg("%s", err.msg);
	assert_int_equal(srv.refused, EPERM);
	bus->ops->close(bus);
	end_server();
}

static void doorbells_are_messages_where_none_are_shared(void **state)
{
	struct manners m = { 0 };
	struct hal_bus *bus;
	struct err err;

	(void)state;
	if (open_bus(&m, &bus, &err))
		fail_msg("%s", err.msg);
	bus->ops->write(bus, hw_doorbell(2), 0x12345678);
	assert_int_equal(bus->ops->read(bus, HW_REG_STATUS), 0);	/* behind it */
	assert_int_equal(__atomic_load_n(&srv.n_bells, __ATOMIC_ACQUIRE), 1);
	assert_int_equal(srv.bell, 0x12345678);
	/* Those to wake pages always are. */
	bus->ops->write(bus, hw_wake(63), 0);
	assert_int_equal(bus->ops->read(bus, HW_REG_STATUS), 0);
	assert_int_equal(__atomic_load_n(&srv.n_wakes, __ATOMIC_ACQUIRE), 1);
	bus->ops->close(bus);
	end_server();
}

static void doorbells_that_lie_behind_a_file_are_not_shared(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		struct manners m = { .has_bells = true, .page_bytes = i ? HW_PAGE : 0 };
		struct hal_bus *bus;
		struct err err;

		if (open_bus(&m, &bus, &err))
			fail_msg("%s", err.msg);
		bus->ops->write(bus, hw_doorbell(2), 7);
		assert_int_equal(bus->ops->read(bus, HW_REG_STATUS), 0);
		assert_int_equal(__atomic_load_n(&srv.n_bells, __ATOMIC_ACQUIRE), i ? 0 : 1);
		bus->ops->close(bus);
		end_server();
	}
}

/* Also who never waits for a reply must not wait for ever: the socket is full one day. */
static void a_server_that_reads_nothing_is_late(void **state)
{
	struct manners m = { .deaf = true };
	int irq = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	struct pollfd p = { .fd = irq, .events = POLLIN };
	int64_t began;
	struct hal_bus *bus;
	struct err err;

	(void)state;
	if (open_bus(&m, &bus, &err) || bus->ops->irq_fd(bus, 0, irq, &err))
		fail_msg("%s", err.msg);
	began = clock_ns();
	for (unsigned i = 0; i < 200000 && !bus->ops->health(bus, &err); i++)
		bus->ops->write(bus, hw_doorbell(2), i);
	assert_int_equal(bus->ops->health(bus, &err), ERR_UNAVAILABLE);
	assert_non_null(strstr(err.msg, "did not answer within 0.4 s"));
	assert_true(clock_ns() < began + 8 * SECOND);
	assert_int_equal(poll(&p, 1, 5000), 1);
	bus->ops->close(bus);
	end_server();
	close(irq);
}

static void memory_keeps_its_content_when_it_is_shared(void **state)
{
	enum { PAGES = 7, BYTES = PAGES * 4096 };
	unsigned before = count_descriptors();
	struct manners m = { 0 };
	static uint8_t copy[BYTES];
	struct hal_bus *bus;
	uint64_t iova;
	struct err err;
	uint8_t *p = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)state;
	assert_ptr_not_equal(p, MAP_FAILED);
	/* Zeros, the first byte, the last, all, zeros, all, one behind the middle. */
	p[4096] = 1;
	p[3 * 4096 - 1] = 2;
	memset(p + 3 * 4096, 3, 4096);
	memset(p + 5 * 4096, 4, 4096);
	p[6 * 4096 + 2049] = 5;
	memcpy(copy, p, BYTES);
	if (open_bus(&m, &bus, &err))
		fail_msg("%s", err.msg);
	for (unsigned i = 0; i < 3; i++) {
		if (bus->ops->dma_map(bus, p, BYTES, &iova, &err))
			fail_msg("%s", err.msg);
		assert_int_equal(iova, (uintptr_t)p);
		assert_memory_equal(p, copy, BYTES);
		assert_int_equal(bus->ops->dma_unmap(bus, iova, &err), 0);
		assert_int_equal(bus->ops->dma_unmap(bus, iova, &err), ERR_NOT_FOUND);
	}
	assert_int_equal(srv.n_maps, 3);
	/* Whole pages, or nothing is asked of the server. */
	assert_int_equal(bus->ops->dma_map(bus, p, 4095, &iova, &err), ERR_INVALID_ARGUMENT);
	assert_int_equal(bus->ops->dma_map(bus, p, 0, &iova, &err), ERR_INVALID_ARGUMENT);
	assert_int_equal(bus->ops->dma_map(bus, p + 1, 4096, &iova, &err), ERR_INVALID_ARGUMENT);
	assert_int_equal(bus->ops->irq_fd(bus, HW_MAX_VECTORS, -1, &err), ERR_OUT_OF_RANGE);
	assert_int_equal(srv.n_maps, 3);
	bus->ops->close(bus);
	end_server();
	munmap(p, BYTES);
	assert_int_equal(count_descriptors(), before);
}

/* Whoever finds out: sleepers hear of it at once, and the first reason stays. */
static void who_finds_a_server_lost_wakes_all(void **state)
{
	int irq = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	struct pollfd p = { .fd = irq, .events = POLLIN };
	struct vfio_server real;
	struct hal_bus *bus;
	struct err err, again;

	(void)state;
	assert_int_equal(server_start(&real), 0);
	setenv("TESSERA_SERVER_LIMIT_MS", LIMIT_MS, 1);
	assert_int_equal(hal_bus_vfio_user.open(NULL, real.socket[0], &bus, &err), 0);
	unsetenv("TESSERA_SERVER_LIMIT_MS");
	assert_int_equal(bus->ops->irq_fd(bus, 0, irq, &err), 0);
	assert_int_equal(bus->ops->health(bus, &err), 0);
	assert_int_equal(server_freeze(&real), 0);
	assert_int_equal(poll(&p, 1, 0), 0);
	assert_int_equal(bus->ops->read(bus, HW_REG_STATUS), 0xffffffff);
	assert_int_equal(poll(&p, 1, 5000), 1);
	assert_int_equal(bus->ops->health(bus, &err), ERR_UNAVAILABLE);
	assert_non_null(strstr(err.msg, "did not answer within 0.4 s"));
	assert_int_equal(bus->ops->reset(bus, &again), ERR_UNAVAILABLE);
	assert_string_equal(again.msg, err.msg);
	/* Its end behind that changes nothing. */
	kill(real.pid, SIGCONT);
	assert_int_equal(server_stop(&real, SIGTERM), 0);
	assert_int_equal(bus->ops->health(bus, &again), ERR_UNAVAILABLE);
	assert_string_equal(again.msg, err.msg);
	bus->ops->close(bus);
	close(irq);
}

/* ---- the wire ---- */

#define LONG_MESSAGE (1u << 20)

struct reader {
	int fd;
	unsigned n_fds, wrong;
	size_t bytes;
};

/* Takes a message in small pieces, and counts the descriptors beside all of them. */
static void *read_slowly(void *arg)
{
	struct reader *r = arg;
	int fds[VFU_MAX_FDS];

	for (;;) {
		uint8_t piece[3001];
		union { struct cmsghdr head; char room[CMSG_SPACE(sizeof(fds))]; } control;
		struct iovec v = { piece, sizeof(piece) };
		struct msghdr h = { .msg_iov = &v, .msg_iovlen = 1, .msg_control = &control,
				    .msg_controllen = sizeof(control) };
		ssize_t n = recvmsg(r->fd, &h, MSG_CMSG_CLOEXEC);
		struct cmsghdr *c = n > 0 ? CMSG_FIRSTHDR(&h) : NULL;

		if (n <= 0)
			return NULL;
		for (ssize_t i = 0; i < n; i++, r->bytes++)
			r->wrong += piece[i] != (uint8_t)(r->bytes % 251);
		if (c && c->cmsg_type == SCM_RIGHTS) {
			unsigned k = (unsigned)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));

			memcpy(fds, CMSG_DATA(c), k * sizeof(int));
			close_all(fds, k);
			r->n_fds += k;
		}
	}
}

static void a_long_message_arrives_whole(void **state)
{
	static uint8_t text[LONG_MESSAGE];
	struct iovec v[] = { { text, 0 }, { text, 16 }, { text + 16, 1 },
			     { text + 17, LONG_MESSAGE - 17 } };
	int pair[2], two[2] = { 0, 1 };
	struct reader r = { 0 };
	pthread_t thread;

	(void)state;
	for (size_t i = 0; i < sizeof(text); i++)
		text[i] = (uint8_t)(i % 251);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	r.fd = pair[1];
	assert_int_equal(pthread_create(&thread, NULL, read_slowly, &r), 0);
	assert_int_equal(vfu_send(pair[0], v, 4, two, 2, clock_after(20 * SECOND)), 0);
	shutdown(pair[0], SHUT_WR);
	pthread_join(thread, NULL);
	assert_int_equal(r.bytes, LONG_MESSAGE);
	assert_int_equal(r.wrong, 0);
	assert_int_equal(r.n_fds, 2);
	close(pair[0]);
	close(pair[1]);
}

static void the_wire_tells_late_from_gone(void **state)
{
	static uint8_t text[LONG_MESSAGE];
	struct iovec v = { text, sizeof(text) };
	int64_t began = clock_ns();
	struct vfu_header h;
	int pair[2], fds[VFU_MAX_FDS];
	unsigned n_fds = 7;

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	assert_int_equal(vfu_send(pair[0], &v, 1, NULL, 0, clock_after(SECOND / 10)), -1);
	assert_int_equal(errno, EAGAIN);
	assert_int_equal(vfu_receive(pair[0], text, 1, clock_after(SECOND / 10)), -1);
	assert_int_equal(errno, EAGAIN);
	assert_int_equal(vfu_begin(pair[0], &h, fds, &n_fds, clock_after(SECOND / 10)), -1);
	assert_int_equal(errno, EAGAIN);
	assert_int_equal(n_fds, 0);
	assert_true(clock_ns() >= began + 3 * SECOND / 10);
	assert_true(clock_ns() < began + 5 * SECOND);
	assert_int_equal(vfu_await(pair[1], POLLIN, clock_ns() - 1), -1);
	/* Some bytes of several that were wanted, then the end. */
	assert_int_equal(send(pair[1], "abc", 3, 0), 3);
	shutdown(pair[1], SHUT_RDWR);
	assert_int_equal(vfu_receive(pair[0], text, 4, CLOCK_FOREVER), -1);
	assert_int_equal(errno, ECONNRESET);
	assert_int_equal(vfu_begin(pair[0], &h, fds, &n_fds, CLOCK_FOREVER), -1);
	assert_int_equal(errno, ECONNRESET);
	v = (struct iovec){ text, 1 };
	assert_int_equal(vfu_send(pair[0], &v, 1, NULL, 0, CLOCK_FOREVER), -1);
	assert_int_equal(errno, EPIPE);
	close(pair[0]);
	close(pair[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_region_is_mapped_if_all_of_it_can_be),
		cmocka_unit_test(servers_that_break_the_protocol_are_refused),
		cmocka_unit_test(a_limit_that_is_no_number_is_refused),
		cmocka_unit_test(descriptors_that_nobody_asked_for_are_closed),
		cmocka_unit_test(commands_of_a_server_are_refused_in_between),
		cmocka_unit_test(doorbells_are_messages_where_none_are_shared),
		cmocka_unit_test(doorbells_that_lie_behind_a_file_are_not_shared),
		cmocka_unit_test(a_server_that_reads_nothing_is_late),
		cmocka_unit_test(memory_keeps_its_content_when_it_is_shared),
		cmocka_unit_test(who_finds_a_server_lost_wakes_all),
		cmocka_unit_test(a_long_message_arrives_whole),
		cmocka_unit_test(the_wire_tells_late_from_gone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
