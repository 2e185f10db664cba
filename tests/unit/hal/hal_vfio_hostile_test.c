/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What tessera-sim survives: nonsense is refused, who hangs or breaks the protocol is cut
 * off, and the next client is served as if nothing had been.
 */
#include "tests/unit/vfio_client.h"

#include <pthread.h>
#include <sys/resource.h>

#include "tools/common/control.h"

/* The server must close by itself, soon. */
static void is_cut_off(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLRDHUP };

	assert_int_equal(poll(&p, 1, 5000), 1);
	close(fd);
	is_served();
}

/* The server answers with `error` to what is no command. */
static void is_refused(int fd, const struct vfu_header *h, int error)
{
	assert_true(send_raw(fd, h, sizeof(*h), NULL, 0));
	assert_true(receive(fd, &got));
	assert_int_equal(got.h.id, h->id);
	assert_int_equal(got.h.command, h->command);
	assert_int_equal(got.h.size, sizeof(got.h));
	assert_int_equal(got.h.flags, VFU_IS_REPLY | VFU_ERROR);
	assert_int_equal(got.h.error, error);
}

static void impossible_headers_are_refused(void **state)
{
	static const struct vfu_header bad[] = {
		{ 11, VFU_GET_INFO, 0, 0, 0 }, { 12, VFU_GET_INFO, 15, 0, 0 },
		/* Replies that nobody waits for, and what is neither. */
		{ 13, VFU_GET_INFO, 16, VFU_IS_REPLY, 0 }, { 14, VFU_GET_INFO, 16, 7, 0 },
		{ 15, VFU_DMA_WRITE, 16, VFU_IS_REPLY | VFU_ERROR, 5 },
		/* What only a server sends. */
		{ 16, VFU_DMA_READ, 16, 0, 0 }, { 17, VFU_DMA_WRITE, 16, 0, 0 },
	}, large[] = {
		{ 21, VFU_REGION_WRITE, UINT32_MAX, 0, 0 },
		{ 22, VFU_REGION_WRITE, 16 + VFU_MAX_BODY + 1, 0, 0 },
	};
	int fd = join();

	(void)state;
	for (unsigned i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		is_refused(fd, &bad[i], EINVAL);
	assert_int_equal(read_at(fd, 7, 0, 2), HW_PCI_VENDOR);
	close(fd);
	/* Behind one that is too large, nobody knows where the next begins. */
	for (unsigned i = 0; i < sizeof(large) / sizeof(*large); i++) {
		fd = join();
		is_refused(fd, &large[i], EINVAL);
		is_cut_off(fd);
	}
}

static void the_largest_message_is_taken(void **state)
{
	struct vfu_header h = { 31, VFU_GET_INFO, 16 + VFU_MAX_BODY, 0, 0 };
	static uint8_t body[VFU_MAX_BODY];
	int fd = join();
	size_t sent = 0;

	(void)state;
	memcpy(body, &(struct vfu_info){ .argsz = 16 }, sizeof(struct vfu_info));
	assert_true(send_raw(fd, &h, sizeof(h), NULL, 0));
	while (sent < sizeof(body)) {
		ssize_t n = send(fd, body + sent, sizeof(body) - sent, MSG_NOSIGNAL);

		assert_true(n > 0);
		sent += (size_t)n;
	}
	assert_true(receive(fd, &got));
	assert_int_equal(got.h.error, 0);
	assert_int_equal(got.n, sizeof(struct vfu_info));
	close(fd);
}

static void commands_before_version_are_refused(void **state)
{
	struct vfu_info i = { .argsz = sizeof(i) };
	int fd = dial();

	(void)state;
	for (uint16_t command = 2; command < 20; command++)
		assert_int_equal(ask(fd, command, &i, sizeof(i), NULL, 0), EINVAL);
	assert_int_equal(ask(fd, VFU_VERSION, offer, sizeof(offer), NULL, 0), 0);
	assert_int_equal(ask(fd, VFU_GET_INFO, &i, sizeof(i), NULL, 0), 0);
	close(fd);
}

/* ---- clients that hang; on a server of their own, whose limit is short ---- */

#define LIMIT_MS "700"

/* The server of these tests takes the place of the others'. */
static struct vfio_server others;

static void serve_impatiently(void)
{
	others = server;
	assert_int_equal(server_start_with(&server, LIMIT_MS), 0);
}

static void serve_as_before(void)
{
	int status = server_stop(&server, SIGTERM);

	server = others;
	assert_int_equal(status, 0);
}

/* Not at once, but soon; then the device is free. */
static void is_cut_off_late(int fd, int64_t began)
{
	struct pollfd p = { .fd = fd, .events = POLLRDHUP };

	assert_int_equal(poll(&p, 1, 8000), 1);
	assert_true(clock_ns() - began > SECOND / 2);
	close(fd);
	is_served();
}

static void a_client_that_never_joins_is_cut_off(void **state)
{
	int64_t began;
	int fd;

	(void)state;
	serve_impatiently();
	began = clock_ns();
	is_cut_off_late(dial(), began);
	/* Not even if it speaks all the time. */
	began = clock_ns();
	fd = dial();
	while (clock_ns() < began + 3 * SECOND &&
	       send_command(fd, VFU_VERSION, 0, "x", 1, NULL, 0) && receive(fd, &got))
		usleep(10000);
	assert_true(clock_ns() < began + 3 * SECOND);
	is_cut_off_late(fd, began);
	serve_as_before();
}

static void a_message_that_does_not_end_is_cut_off(void **state)
{
	struct vfu_header h = { 1, VFU_REGION_WRITE, 4096, 0, 0 };
	int64_t began;
	int fd;

	(void)state;
	serve_impatiently();
	for (size_t n = 1; n < sizeof(h) + 2; n += n == 1 ? sizeof(h) - 2 : 1) {
		uint8_t bytes[32] = { 0 };

		memcpy(bytes, &h, sizeof(h));
		fd = join();
		began = clock_ns();
		assert_true(send_raw(fd, bytes, n, NULL, 0));
		is_cut_off_late(fd, began);
	}
	/* Nor if it comes byte by byte. */
	fd = join();
	began = clock_ns();
	assert_true(send_raw(fd, &h, sizeof(h), NULL, 0));
	while (clock_ns() < began + 5 * SECOND && send_raw(fd, "x", 1, NULL, 0))
		usleep(20000);
	assert_true(clock_ns() < began + 5 * SECOND);
	is_cut_off_late(fd, began);
	serve_as_before();
}

static void a_client_may_be_idle_once_it_has_joined(void **state)
{
	int fd;

	(void)state;
	serve_impatiently();
	fd = join();
	usleep(1500000);
	assert_int_equal(read_at(fd, 7, 0, 2), HW_PCI_VENDOR);
	close(fd);
	serve_as_before();
}

static void a_client_that_takes_no_replies_is_cut_off(void **state)
{
	struct vfu_region_access a = { 0, 2, 4096 };
	struct vfu_header h = { 1, VFU_REGION_READ, sizeof(h) + sizeof(a), 0, 0 };
	uint8_t bytes[sizeof(h) + sizeof(a)];
	int64_t began;
	int fd;

	(void)state;
	serve_impatiently();
	memcpy(bytes, &h, sizeof(h));
	memcpy(bytes + sizeof(h), &a, sizeof(a));
	fd = join();
	began = clock_ns();
	for (int i = 0; i < 4000; i++)
		if (send(fd, bytes, sizeof(bytes), MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
			break;
	is_cut_off_late(fd, began);
	serve_as_before();
}

static void truncated_messages_wait_or_end(void **state)
{
	struct vfu_header h = { 1, VFU_REGION_WRITE, 4096, 0, 0 };

	(void)state;
	for (size_t n = 1; n < 40; n += 3) {
		uint8_t bytes[64] = { 0 };
		int fd = join();

		memcpy(bytes, &h, sizeof(h));
		assert_true(send_raw(fd, bytes, n, NULL, 0));
		close(fd);
	}
	is_served();
	/* Every command with every length of body is answered or cut off. */
	for (uint16_t command = 0; command < 20; command++)
		for (size_t n = 0; n < 44; n++) {
			uint8_t body[64];
			int fd = join();

			memset(body, n % 3 ? 0xff : 0, sizeof(body));
			assert_true(send_command(fd, command, 0, body, n, NULL, 0));
			receive(fd, &got);
			close(fd);
		}
	is_served();
}

static void descriptors_in_odd_places_are_dropped(void **state)
{
	struct vfu_header h = { 9, VFU_GET_INFO, 32, 0, 0 };
	int fds[40], fd;

	(void)state;
	for (int i = 0; i < 40; i++)
		fds[i] = eventfd(0, EFD_CLOEXEC);
	/* Beside a command that takes none; too many; beside the body. */
	fd = join();
	assert_int_equal(ask(fd, VFU_GET_INFO, "\20\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 16, fds, 1),
			 EINVAL);
	assert_int_equal(read_at(fd, 7, 0, 2), HW_PCI_VENDOR);
	close(fd);
	fd = join();
	assert_true(send_command(fd, VFU_SET_IRQS, 0, "0123456789abcdef", 16, fds, 40));
	is_cut_off(fd);
	fd = join();
	assert_true(send_raw(fd, &h, sizeof(h), NULL, 0));
	assert_true(send_raw(fd, "\20\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 16, fds, 3));
	assert_true(receive(fd, &got));
	assert_int_equal(got.h.error, 0);
	close(fd);
	/* As memory: an eventfd, a socket, a folder, a device, /proc. */
	fd = join();
	assert_int_equal(map_at(fd, 0, 4096, 0, fds[0]), EINVAL);
	assert_int_equal(map_at(fd, 0, 4096, 0, fd), EINVAL);
	for (int i = 0; i < 3; i++) {
		static const char *const paths[] = { "/", "/dev/zero", "/proc/self/maps" };
		int other = open(paths[i], O_RDONLY);

		assert_int_not_equal(map_at(fd, 0, 4096, 0, other), 0);
		close(other);
	}
	close(fd);
	for (int i = 0; i < 40; i++)
		close(fds[i]);
	is_served();
}

static void memory_that_shrinks_cuts_its_client_off(void **state)
{
	struct rig r;

	(void)state;
	for (int i = 0; i < 3; i++) {
		set_up(&r);
		assert_int_equal(ftruncate(r.memory, 0), 0);
		/* The rings are gone when the device looks. */
		r.tail = 1;
		post(&r, hw_doorbell(0), r.tail);
		is_cut_off(r.fd);
		close(r.memory);
		close(r.irq);
		munmap(r.page, 3 * 4096);
	}
}

/* What it holds of the device, with the locks that linked chips take, would be held for as long as
 * its client likes. */
static void a_full_eventfd_holds_nothing(void **state)
{
	uint64_t most = UINT64_MAX - 1;
	struct rig r;

	(void)state;
	set_up(&r);
	/* A write would block until somebody reads. */
	assert_int_equal(fcntl(r.irq, F_SETFL, 0), 0);
	assert_int_equal(write(r.irq, &most, 8), 8);
	for (unsigned i = 0; i < 3; i++) {
		put_identify(&r);
		post(&r, hw_doorbell(0), r.tail);
	}
	/* Completions are there, so their interrupts are being raised. */
	while (__atomic_load_n(&((struct hw_cqe *)(r.page + 4096))[2].phase, __ATOMIC_ACQUIRE) !=
	       1)
		;
	assert_int_equal(read_at(r.fd, 7, 0, 2), HW_PCI_VENDOR);
	assert_int_equal(read_at(r.fd, 0, HW_REG_ID, 4), HW_PCI_DEVICE << 16 | HW_PCI_VENDOR);
	assert_int_equal(ask(r.fd, VFU_RESET, NULL, 0, NULL, 0), 0);
	/* It is the client's to say what its eventfd does. */
	assert_int_equal(fcntl(r.irq, F_GETFL) & O_NONBLOCK, 0);
	assert_true(count_of(r.irq) >= most);
	close(r.fd);
	is_served();
	close(r.memory);
	close(r.irq);
	munmap(r.page, 3 * 4096);
}

static void noise_is_survived(void **state)
{
	unsigned seed = 12345;

	(void)state;
	for (int round = 0; round < 300; round++) {
		uint8_t bytes[512];
		size_t n = 1 + (size_t)rand_r(&seed) % sizeof(bytes);
		int fd = round % 2 ? join() : dial(), memory = make_memory(8192, NULL);

		for (size_t i = 0; i < n; i++)
			bytes[i] = (uint8_t)rand_r(&seed);
		/* Half of them look like commands. */
		if (round % 4 > 1 && n >= 40) {
			struct vfu_header h = { 1, (uint16_t)(rand_r(&seed) % 19),
						(uint32_t)n, 0, 0 };

			memcpy(bytes, &h, sizeof(h));
			memset(bytes + 20, 0, 12);
		}
		send_raw(fd, bytes, n, &memory, round % 3 == 0);
		close(memory);
		close(fd);
	}
	is_served();
}

static void a_storm_of_clients_is_turned_away(void **state)
{
	int fds[64], fd = join();

	(void)state;
	for (int i = 0; i < 64; i++)
		fds[i] = dial();
	assert_int_equal(read_at(fd, 7, 0, 2), HW_PCI_VENDOR);
	send_command(fds[0], VFU_VERSION, 0, offer, sizeof(offer), NULL, 0);
	assert_true(receive(fds[0], &got));
	assert_int_equal(got.h.error, EBUSY);
	assert_int_equal(got.h.id, next_id);
	for (int i = 0; i < 64; i++)
		close(fds[i]);
	close(fd);
	is_served();
}

/* A client whose memory must be asked for, and that has been asked. */
static int ask_for_memory(void)
{
	struct pollfd p;
	struct rig r = { .fd = join() };
	static uint8_t page[3 * 4096];

	r.page = page;
	r.irq = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	assert_int_equal(map_at(r.fd, RIG_IOVA, 3 * 4096, 0, -1), 0);
	bring_up(&r);
	put_identify(&r);
	post(&r, hw_doorbell(0), r.tail);
	p = (struct pollfd){ .fd = r.fd, .events = POLLIN };
	assert_int_equal(poll(&p, 1, 5000), 1);
	close(r.irq);
	return r.fd;
}

/* And the session waits for the doorbell's end, so that who asked reads meanwhile. */
static int ask_me(void)
{
	struct vfu_region_access control = { HW_REG_CTRL, 0, 4 };
	uint8_t body[sizeof(control) + 4];
	uint32_t enable = HW_CTRL_ENABLE;
	int fd = ask_for_memory();

	memcpy(body, &control, sizeof(control));
	memcpy(body + sizeof(control), &enable, sizeof(enable));
	assert_true(send_command(fd, VFU_REGION_WRITE, VFU_NO_REPLY, body, sizeof(body), NULL, 0));
	return fd;
}

/* A write of n bytes, or a reset (n is 0), takes back what is asked; then nothing is written. */
static void takes_back(uint64_t offset, uint32_t region, uint32_t n)
{
	struct vfu_region_access a = { offset, region, n };
	uint8_t body[sizeof(a) + 4] = { 0 };
	int fd = ask_for_memory();
	struct vfu_header answer;

	memcpy(body, &a, sizeof(a));
	assert_true(receive(fd, &got));
	assert_int_equal(got.h.command, VFU_DMA_READ);
	answer = (struct vfu_header){ got.h.id, VFU_DMA_READ, sizeof(answer),
				      VFU_IS_REPLY | VFU_ERROR, EIO };
	if (n)
		assert_int_equal(ask(fd, VFU_REGION_WRITE, body, sizeof(a) + n, NULL, 0), 0);
	else
		assert_int_equal(ask(fd, VFU_RESET, NULL, 0, NULL, 0), 0);
	assert_true(send_raw(fd, &answer, sizeof(answer), NULL, 0));
	assert_int_equal(read_at(fd, 7, 0, 2), HW_PCI_VENDOR);
	close(fd);
	is_served();
}

/* QEMU answers nothing while it waits for a reply; and the answer that comes then is for nobody. */
static void what_stops_a_device_takes_its_question_back(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 10; i++) {
		takes_back(0, 0, 0);
		takes_back(HW_REG_CTRL, 0, 4);
		/* The command register, without bus mastering. */
		takes_back(4, 7, 2);
	}
}

/* ---- an operator, and a client that keeps an answer back while its command waits for that ---- */

static int tell_operator(uint32_t step, uint32_t what)
{
	struct control_ask q = { CONTROL_MAGIC, CONTROL_VERSION, step, .is_forced = 1,
				 .what = what, .value = 1 };
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(a.sun_path, sizeof(a.sun_path), "%s/" CONTROL_SOCKET, server.dir);
	assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_true(send_raw(fd, &q, sizeof(q), NULL, 0));
	return fd;
}

/* Far sooner than an answer that does not come is waited for: 60 s. */
static void the_operator_is_answered(int fd)
{
	struct timeval limit = { .tv_sec = 20 };
	struct control_answer a;

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	assert_int_equal(recv(fd, &a, sizeof(a), MSG_WAITALL), sizeof(a));
	assert_int_equal(a.outcome, CONTROL_DONE);
	assert_int_equal(a.n_clients, 1);
	assert_int_equal(a.clients[0].pid, getpid());
	close(fd);
}

static void an_operator_waits_for_no_client(void **state)
{
	static const struct { uint32_t step, what; } asks[] = {
		{ CONTROL_RESET, 0 }, { CONTROL_INJECT, HW_INJECT_FATAL } };

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		int fd = ask_me();

		the_operator_is_answered(tell_operator(CONTROL_LOOK, 0));
		the_operator_is_answered(tell_operator(asks[i].step, asks[i].what));
		close(fd);
		is_served();
	}
}

/* An error that stops nothing waits for the client's command, but holds up no shutdown. */
static void an_operator_that_waits_holds_up_no_shutdown(void **state)
{
	int64_t began;
	int fd, operator;

	(void)state;
	serve_impatiently();
	fd = ask_me();
	operator = tell_operator(CONTROL_INJECT, HW_INJECT_BUS);
	usleep(100000);		/* until it waits; if it does not yet, nothing holds it up */
	began = clock_ns();
	serve_as_before();
	assert_true(clock_ns() - began < 20 * SECOND);
	close(operator);
	close(fd);
}

/* What comes before an answer is kept, but not without end. */
static void a_client_that_talks_instead_of_answering_is_cut_off(void **state)
{
	static uint8_t body[16 + (1 << 20)];
	struct vfu_region_access a = { 0, 2, 1 << 20 };
	struct vfu_header h = { 1, VFU_REGION_WRITE, 16 + sizeof(body), VFU_NO_REPLY, 0 };
	int fds[VFU_MAX_FDS], fd = ask_me();

	(void)state;
	for (unsigned i = 0; i < VFU_MAX_FDS; i++)
		fds[i] = eventfd(0, EFD_CLOEXEC);
	for (int i = 0; i < 40; i++)
		if (!send_command(fd, VFU_SET_IRQS, VFU_NO_REPLY, "x", 1, fds, VFU_MAX_FDS))
			break;
	is_cut_off(fd);
	for (unsigned i = 0; i < VFU_MAX_FDS; i++)
		close(fds[i]);
	fd = ask_me();
	memcpy(body, &a, sizeof(a));
	for (int i = 0; i < 20; i++) {
		struct iovec v[] = { { &h, sizeof(h) }, { body, sizeof(body) } };

		if (vfu_send(fd, v, 2, NULL, 0, clock_after(5 * SECOND)))
			break;
	}
	is_cut_off(fd);
}

/* Another client of the same server is served meanwhile, with memory of its own. */
static void the_neighbour_is_served(void)
{
	int memory[40], fd = join_at(1);

	be_master(fd);
	for (unsigned i = 0; i < 40; i++) {
		memory[i] = make_memory(1 << 20, NULL);
		assert_int_equal(map_at(fd, RIG_IOVA + i * (2ull << 20), 1 << 20, 0, memory[i]),
				 0);
	}
	assert_int_equal(read_at(fd, 0, HW_REG_ID, 4), HW_PCI_DEVICE << 16 | HW_PCI_VENDOR);
	close(fd);
	for (unsigned i = 0; i < 40; i++)
		close(memory[i]);
}

/* The kernel lets a process have so many areas of memory; each piece between others is one, and
 * who has lost its memory to a SIGBUS takes one more. */
static void memory_in_many_pieces_leaves_room_for_others(void **state)
{
	struct rig r;
	unsigned n;

	(void)state;
	set_up(&r);
	assert_int_equal(ftruncate(r.memory, VFU_MAX_MAPS * 4096ll), 0);
	for (n = 1; n < VFU_MAX_MAPS; n++)
		assert_int_equal(map_at(r.fd, RIG_IOVA + 8192 * (n + 8ull), 4096,
					(VFU_MAX_MAPS - n) * 4096ll, r.memory), 0);
	the_neighbour_is_served();
	put_identify(&r);
	post(&r, hw_doorbell(0), r.tail);
	assert_true(identified(&r));
	assert_int_equal(unmap_at(r.fd, RIG_IOVA + 65536, 8192ull * VFU_MAX_MAPS, 0), 0);
	the_neighbour_is_served();
	/* All of it again, as if nothing had been. */
	for (n = 1; n < VFU_MAX_MAPS; n++)
		assert_int_equal(map_at(r.fd, RIG_IOVA + 8192 * (n + 8ull), 4096,
					(VFU_MAX_MAPS - n) * 4096ll, r.memory), 0);
	assert_int_equal(ftruncate(r.memory, 0), 0);
	post(&r, hw_doorbell(0), ++r.tail);
	is_cut_off(r.fd);
	the_neighbour_is_served();
	close(r.memory);
	close(r.irq);
	munmap(r.page, 3 * 4096);
}

/* A piece that lies alone takes more areas than its file, and can do without them. */
static void many_files_are_taken_with_many_clients(void **state)
{
	int fd, memory;

	(void)state;
	others = server;
	assert_int_equal(server_start_for(&server, 32, "10000"), 0);
	fd = join();
	be_master(fd);
	for (unsigned i = 0; i < 400; i++) {
		memory = make_memory(4096, NULL);
		assert_int_equal(map_at(fd, RIG_IOVA + i * 8192ull, 4096, 0, memory), 0);
		close(memory);
	}
	the_neighbour_is_served();
	close(fd);
	serve_as_before();
}

static void *talk(void *arg)
{
	static const uint8_t bytes[65536];

	while (send(*(int *)arg, bytes, sizeof(bytes), MSG_NOSIGNAL) > 0)
		;
	return NULL;
}

/* It is answered though not all that it says is read. */
static void a_client_that_is_turned_away_and_talks_on_is_cut_off(void **state)
{
	struct vfu_header h = { 1, VFU_VERSION, sizeof(h) + sizeof(offer), 0, 0 };
	int fd = join(), mad = dial();
	pthread_t threads[8];

	(void)state;
	assert_true(send_raw(mad, &h, sizeof(h), NULL, 0));
	for (unsigned i = 0; i < 8; i++)
		pthread_create(&threads[i], NULL, talk, &mad);
	assert_true(receive(mad, &got));
	assert_int_equal(got.h.error, EBUSY);
	for (unsigned i = 0; i < 8; i++)
		pthread_join(threads[i], NULL);
	close(mad);
	close(fd);
	is_served();
}

/* CPU time of the server so far, in ticks. */
static unsigned long cpu_of(pid_t pid)
{
	unsigned long user, kernel;
	char path[40];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	f = fopen(path, "re");
	assert_non_null(f);
	assert_int_equal(fscanf(f, "%*d %*s %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu",
				&user, &kernel), 2);
	fclose(f);
	return user + kernel;
}

static void a_server_without_descriptors_rests_and_goes_on(void **state)
{
	struct rlimit before, few = { 8, 8 };
	unsigned long ticks;
	int seated = join(), fd;

	(void)state;
	assert_int_equal(prlimit(server.pid, RLIMIT_NOFILE, NULL, &before), 0);
	few.rlim_max = before.rlim_max;
	assert_int_equal(prlimit(server.pid, RLIMIT_NOFILE, &few, NULL), 0);
	ticks = cpu_of(server.pid);
	fd = dial();
	assert_true(send_command(fd, VFU_VERSION, 0, offer, sizeof(offer), NULL, 0));
	usleep(1500000);
	ticks = cpu_of(server.pid) - ticks;
	assert_int_equal(prlimit(server.pid, RLIMIT_NOFILE, &before, NULL), 0);
	/* The client was not lost, only late; who was there before goes on. */
	assert_true(receive(fd, &got));
	assert_int_equal(got.h.error, EBUSY);
	assert_int_equal(read_at(seated, 7, 0, 2), HW_PCI_VENDOR);
	assert_true(ticks < (unsigned long)sysconf(_SC_CLK_TCK) / 4);
	close(seated);
	close(fd);
	is_served();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(impossible_headers_are_refused),
		cmocka_unit_test(the_largest_message_is_taken),
		cmocka_unit_test(commands_before_version_are_refused),
		cmocka_unit_test(a_client_that_never_joins_is_cut_off),
		cmocka_unit_test(a_message_that_does_not_end_is_cut_off),
		cmocka_unit_test(a_client_may_be_idle_once_it_has_joined),
		cmocka_unit_test(a_client_that_takes_no_replies_is_cut_off),
		cmocka_unit_test(truncated_messages_wait_or_end),
		cmocka_unit_test(descriptors_in_odd_places_are_dropped),
		cmocka_unit_test(memory_that_shrinks_cuts_its_client_off),
		cmocka_unit_test(a_full_eventfd_holds_nothing),
		cmocka_unit_test(noise_is_survived),
		cmocka_unit_test(a_storm_of_clients_is_turned_away),
		cmocka_unit_test(a_client_that_talks_instead_of_answering_is_cut_off),
		cmocka_unit_test(what_stops_a_device_takes_its_question_back),
		cmocka_unit_test(an_operator_waits_for_no_client),
		cmocka_unit_test(an_operator_that_waits_holds_up_no_shutdown),
		cmocka_unit_test(memory_in_many_pieces_leaves_room_for_others),
		cmocka_unit_test(many_files_are_taken_with_many_clients),
		cmocka_unit_test(a_client_that_is_turned_away_and_talks_on_is_cut_off),
		cmocka_unit_test(a_server_without_descriptors_rests_and_goes_on),
	};

	return cmocka_run_group_tests(tests, start_server, stop_server);
}
