/* SPDX-License-Identifier: Apache-2.0 */
/* The HAL over a vfio-user socket: everything that it does in process, then what only
 * a device in another process can do: be busy, die, outlive its client. */
#define DEVICE_TESTS_ONLY
#include "tests/unit/hal/hal_device_test.c"

#include <glob.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include "hal/bus/vfio_user.h"
#include "hal/transport.h"
#include "tests/unit/vfio_server.h"

#define SECOND 1000000000ll

static struct vfio_server server;

static int start_server(void **state)
{
	if (server_start(&server))
		return -1;
	devices = server.device[0];
	return open_device(state);
}

static int stop_server(void **state)
{
	int status;

	close_device(state);
	status = server_stop(&server, SIGTERM);
	if (!WIFEXITED(status) || WEXITSTATUS(status)) {
		fprintf(stderr, "tessera-sim ended with status 0x%x\n", status);
		return -1;
	}
	return 0;
}

static void identity_is_the_models(void **state)
{
	struct hal_device_info info;
	struct err err;

	(void)state;
	assert_int_equal(hal_device_info(hal, 0, &info, &err), 0);
	assert_int_equal(info.kind, HAL_KIND_VFIO_USER);
	assert_true(info.is_model);
	assert_int_equal(info.hbm_bytes, 64 << 20);
	assert_string_equal(info.bus_id, server.device[0]);
	assert_string_equal(info.driver, "vfio-user");
	assert_string_equal(info.serial, "SIM00000");
	assert_int_equal(info.cores, 2);
}

static void hbm_is_mapped(void **state)
{
	struct hal_mem *m = get(4096);

	(void)state;
	assert_non_null(hal_mem_host(m));
	hal_mem_free(m);
}

static void pinned_memory_is_reached_by_dma(void **state)
{
	struct hal_queue *q = hal_device_queue(dev, HAL_QUEUE_DMA);
	struct hal_mem *host, *back, *m = get(5 << 20);
	uint64_t value, bytes = 5 << 20;
	struct err err;

	(void)state;
	assert_int_equal(hal_mem_alloc(dev, HAL_MEM_HOST, bytes, "in", &host, &err), 0);
	assert_int_equal(hal_mem_alloc(dev, HAL_MEM_HOST, bytes, "out", &back, &err), 0);
	for (uint64_t i = 0; i < bytes; i++)
		((uint8_t *)hal_mem_host(host))[i] = (uint8_t)(i * 31 + i / 4096);
	assert_int_equal(hal_queue_copy(q, m, 0, host, 0, bytes, NULL, 0, &value, &err), 0);
	assert_int_equal(hal_queue_copy(q, back, 0, m, 0, bytes, NULL, 0, &value, &err), 0);
	assert_int_equal(hal_queue_wait(q, value, clock_after(5 * SECOND), &err), 0);
	assert_memory_equal(hal_mem_host(host), hal_mem_host(back), bytes);
	hal_mem_free(host);
	hal_mem_free(back);
	hal_mem_free(m);
}

static void a_second_client_is_told_who_is_busy(void **state)
{
	struct hal *h;
	struct err err;

	(void)state;
	assert_null(open_at(server.device[0], 0, &h, &err));
	assert_int_equal(err.code, ERR_FAILED_PRECONDITION);
	assert_non_null(strstr(err.msg, "another process"));
	assert_non_null(strstr(err.msg, server.socket[0]));
}

/* Fills all of its HBM with what nobody else stores. */
static void fill_all(struct hal_device *d, uint64_t pattern)
{
	struct hal_mem_stats stats;
	struct hal_mem *m;
	struct err err;
	uint64_t *p;

	hal_mem_stats(d, HAL_MEM_HBM, &stats);
	if (hal_mem_alloc(d, HAL_MEM_HBM, stats.largest_free_bytes, "all", &m, &err))
		fail_msg("%s", err.msg);
	p = hal_mem_host(m);
	for (uint64_t i = 0; i < stats.largest_free_bytes / 8; i++)
		p[i] = pattern;
}

static bool holds_all(struct hal_device *d, uint64_t pattern)
{
	struct hal_mem_stats stats;
	struct hal_mem *m;
	struct err err;
	bool holds = true;

	/* A view from the first byte of HBM; the HAL's own blocks come first. */
	hal_mem_stats(d, HAL_MEM_HBM, &stats);
	assert_int_equal(hal_mem_view(d, HAL_HBM_VA, stats.limit_bytes, &m, &err), 0);
	for (uint64_t i = stats.limit_bytes / 16; holds && i < stats.limit_bytes / 8; i++)
		holds = ((uint64_t *)hal_mem_host(m))[i] == pattern;
	hal_mem_free(m);
	return holds;
}

static void as_many_clients_as_it_serves_share_a_device(void **state)
{
	struct vfio_server shared;
	struct hal_device_info info;
	struct hal_device *d[3];
	struct hal *h[3];
	struct err err;

	(void)state;
	assert_int_equal(server_start_for(&shared, 2, "10000"), 0);
	for (unsigned i = 0; i < 2; i++) {
		d[i] = open_at(shared.device[0], 0, &h[i], &err);
		if (!d[i])
			fail_msg("client %u: %s", i, err.msg);
		assert_int_equal(hal_device_info(h[i], 0, &info, &err), 0);
		assert_int_equal(info.hbm_bytes, 64 << 20);
		assert_string_equal(info.serial, "SIM00000");
		fill_all(d[i], 0x1111 * (i + 1));
	}
	assert_null(open_at(shared.device[0], 0, &h[2], &err));
	assert_int_equal(err.code, ERR_FAILED_PRECONDITION);
	assert_non_null(strstr(err.msg, "--clients"));
	assert_true(holds_all(d[0], 0x1111));
	assert_true(holds_all(d[1], 0x2222));
	/* The reset of one, its leaving, and its successor. */
	assert_int_equal(hal_device_reset(d[0], &err), 0);
	assert_int_equal(hal_device_error(d[1], &err), 0);
	assert_true(holds_all(d[1], 0x2222));
	hal_destroy(h[0]);
	d[2] = open_at(shared.device[0], 0, &h[2], &err);
	if (!d[2])
		fail_msg("the next: %s", err.msg);
	assert_true(holds_all(d[2], 0));
	fill_all(d[2], 0x3333);
	assert_true(holds_all(d[1], 0x2222));
	hal_destroy(h[1]);
	hal_destroy(h[2]);
	assert_int_equal(server_stop(&shared, SIGTERM), 0);
}

static void two_devices_work_side_by_side(void **state)
{
	char both[240];
	struct hal_device_info info;
	struct hal_device *d;
	struct hal *h;
	struct err err;

	(void)state;
	snprintf(both, sizeof(both), "%s,%s", server.device[0], server.device[1]);
	assert_int_equal(hal_create(&(struct hal_options){ .devices = both }, &h, &err), 0);
	assert_int_equal(hal_device_count(h), 2);
	assert_int_equal(hal_device_open(h, 1, &d, &err), 0);
	assert_int_equal(hal_device_info(h, 1, &info, &err), 0);
	assert_string_equal(info.serial, "SIM00001");
	hal_destroy(h);
}

static void wrong_names_say_what_to_do(void **state)
{
	struct hal *h;
	char file[80], stale[200];
	struct err err;

	(void)state;
	assert_int_equal(hal_create(&(struct hal_options){
		.devices = "vfio-user:/nowhere/0.sock" }, &h, &err), ERR_NOT_FOUND);
	assert_non_null(strstr(err.msg, "tessera-sim"));
	snprintf(file, sizeof(file), "vfio-user:%s/lock", server.dir);
	assert_int_equal(hal_create(&(struct hal_options){ .devices = file }, &h, &err),
			 ERR_INVALID_ARGUMENT);
	snprintf(stale, sizeof(stale), "%s,sim", server.device[1]);
	assert_int_equal(hal_create(&(struct hal_options){ .devices = stale }, &h, &err),
			 ERR_INVALID_ARGUMENT);
	assert_int_equal(hal_create(&(struct hal_options){ .devices = "vfio-user:" }, &h,
				    &err), ERR_INVALID_ARGUMENT);
	/* As long as a socket's path may be, and one more. */
	for (int n = 107; n < 109; n++) {
		snprintf(stale, sizeof(stale), "vfio-user:/%0*d", n - 1, 0);
		assert_int_equal(hal_create(&(struct hal_options){ .devices = stale }, &h, &err),
				 n == 107 ? ERR_NOT_FOUND : ERR_INVALID_ARGUMENT);
	}
}

static void reopening_never_meets_a_busy_device(void **state)
{
	(void)state;
	for (int i = 0; i < 30; i++) {
		struct err err;
		struct hal *h;
		struct hal_device *d = open_at(server.device[1], 0, &h, &err);

		if (!d)
			fail_msg("round %d: %s", i, err.msg);
		hal_destroy(h);
	}
}

static void note_death(void *arg, const struct err *err)
{
	__atomic_store_n((int *)arg, err ? err->code : -1, __ATOMIC_RELEASE);
}

/* A program spins when the server goes by `sig`; its wait status. */
static int lose_server(int sig)
{
	struct hal_device *saved = dev, *d;
	struct vfio_server other;
	struct hal_queue *q;
	struct hal_exe *exe;
	struct hal_mem *out, *m;
	struct hal *h;
	struct err err, first;
	uint64_t value;
	int64_t began;
	int noted = 0, status;

	assert_int_equal(server_start(&other), 0);
	d = open_at(other.device[0], 0, &h, &err);
	assert_non_null(d);
	dev = d;
	q = hal_device_queue(d, HAL_QUEUE_COMPUTE);
	exe = load(spin, 2, 0);
	out = get(8);
	value = run(exe, out, 0);
	assert_int_equal(hal_queue_notify(q, value, note_death, &noted, &err), 0);
	began = clock_ns();
	status = server_stop(&other, sig);
	assert_int_equal(hal_queue_wait(q, value, clock_after(5 * SECOND), &first),
			 ERR_UNAVAILABLE);
	assert_non_null(strstr(first.msg, other.socket[0]));
	assert_non_null(strstr(first.msg, "start tessera-sim again"));
	while (!__atomic_load_n(&noted, __ATOMIC_ACQUIRE) && clock_ns() < began + 5 * SECOND)
		;
	assert_int_equal(noted, ERR_UNAVAILABLE);
	/* What comes later fails with the first error, and nothing hangs. */
	assert_int_equal(hal_mem_alloc(d, HAL_MEM_HBM, 8, "x", &m, &err), ERR_UNAVAILABLE);
	assert_string_equal(err.msg, first.msg);
	assert_int_equal(hal_device_reset(d, &err), ERR_UNAVAILABLE);
	hal_exe_unload(exe);
	hal_mem_free(out);
	hal_destroy(h);
	assert_true(clock_ns() < began + 5 * SECOND);
	dev = saved;
	return status;
}

static void a_killed_server_is_reported_at_once(void **state)
{
	int status = lose_server(SIGKILL);

	(void)state;
	assert_true(WIFSIGNALED(status));
}

static void a_server_that_is_stopped_ends_its_sessions(void **state)
{
	int status = lose_server(SIGTERM);

	(void)state;
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

/* ---- servers that hang ---- */

#define LIMIT_MS "1500"
#define HEARD_WITHIN (6 * SECOND)	/* a look, the limit, and a busy machine */

struct hung {
	struct vfio_server server;
	struct hal *h;
	struct hal_queue *q;
	struct hal_exe *exe;
	struct hal_mem *out;
	struct hal_device *saved;
	int noted;
};

/* A device of its own server, whose limit is short, with a program that spins. */
static void open_hung(struct hung *u)
{
	struct err err;

	memset(u, 0, sizeof(*u));
	u->saved = dev;
	assert_int_equal(server_start(&u->server), 0);
	setenv("TESSERA_SERVER_LIMIT_MS", LIMIT_MS, 1);
	dev = open_at(u->server.device[0], 0, &u->h, &err);
	unsetenv("TESSERA_SERVER_LIMIT_MS");
	if (!dev)
		fail_msg("%s", err.msg);
	u->q = hal_device_queue(dev, HAL_QUEUE_COMPUTE);
	u->exe = load(spin, 2, 0);
	u->out = get(8);
}

static bool is_noted(struct hung *u, int64_t within)
{
	int64_t until = clock_after(within);

	while (!__atomic_load_n(&u->noted, __ATOMIC_ACQUIRE) && clock_ns() < until)
		usleep(1000);
	return u->noted;
}

/* The server's end is behind all; every call says the same; closing takes no time. */
static void close_hung(struct hung *u)
{
	struct hal_mem *m;
	struct err first, err;
	uint64_t value;
	int64_t began = clock_ns();

	assert_int_equal(hal_device_error(dev, &first), ERR_UNAVAILABLE);
	assert_non_null(strstr(first.msg, u->server.socket[0]));
	assert_non_null(strstr(first.msg, "did not answer within 1.5 s"));
	assert_non_null(strstr(first.msg, "start it again"));
	assert_int_equal(hal_mem_alloc(dev, HAL_MEM_HBM, 8, "x", &m, &err), ERR_UNAVAILABLE);
	assert_string_equal(err.msg, first.msg);
	assert_int_equal(hal_queue_fill(u->q, u->out, 0, 8, 0, &value, &err), ERR_UNAVAILABLE);
	assert_string_equal(err.msg, first.msg);
	assert_int_equal(hal_device_reset(dev, &err), ERR_UNAVAILABLE);
	hal_exe_unload(u->exe);
	hal_mem_free(u->out);
	hal_destroy(u->h);
	assert_true(clock_ns() < began + SECOND);
	dev = u->saved;
	kill(u->server.pid, SIGCONT);
	assert_int_equal(server_stop(&u->server, SIGTERM), 0);
}

static void a_server_that_stops_in_a_program_is_noticed(void **state)
{
	struct hung u;
	struct err err;
	uint64_t value;

	(void)state;
	open_hung(&u);
	value = run(u.exe, u.out, 0);
	assert_int_equal(hal_queue_notify(u.q, value, note_death, &u.noted, &err), 0);
	/* As long as it answers, a program may run. */
	assert_false(is_noted(&u, 4 * SECOND));
	assert_int_equal(server_freeze(&u.server), 0);
	assert_true(is_noted(&u, HEARD_WITHIN));
	assert_int_equal(u.noted, ERR_UNAVAILABLE);
	close_hung(&u);
}

static void a_server_that_stopped_before_an_execute_is_noticed(void **state)
{
	struct hung u;
	struct err err;
	uint64_t value;

	(void)state;
	open_hung(&u);
	assert_int_equal(server_freeze(&u.server), 0);
	/* The device's counters are read now and then, with a launch: */
	usleep(150000);
	value = run(u.exe, u.out, 0);
	if (!hal_queue_notify(u.q, value, note_death, &u.noted, &err))
		assert_true(is_noted(&u, HEARD_WITHIN));
	assert_int_equal(hal_queue_wait(u.q, value, clock_after(HEARD_WITHIN), &err),
			 ERR_UNAVAILABLE);
	close_hung(&u);
}

static void a_server_that_stops_is_noticed_by_close(void **state)
{
	int64_t began;
	struct hung u;

	(void)state;
	open_hung(&u);
	run(u.exe, u.out, 0);
	assert_int_equal(server_freeze(&u.server), 0);
	began = clock_ns();
	hal_destroy(u.h);
	assert_true(clock_ns() < began + HEARD_WITHIN);
	dev = u.saved;
	kill(u.server.pid, SIGCONT);
	assert_int_equal(server_stop(&u.server, SIGTERM), 0);
}

/* In a child: fills HBM, lets a program spin, tells and waits to be killed. */
static void hold_device(int tell)
{
	struct err err;
	struct hal *h;
	struct hal_device *d = open_at(server.device[1], 0, &h, &err);
	struct hal_mem *m;

	if (!d)
		_exit(1);
	dev = d;
	m = get(16 << 20);
	memset(hal_mem_host(m), 0xa5, 16 << 20);
	run(load(spin, 2, 0), m, 0);
	if (write(tell, "x", 1) != 1)
		_exit(2);
	for (;;)
		pause();
}

static void a_killed_client_leaves_the_server_clean(void **state)
{
	static uint8_t got[16 << 20];
	struct hal_device *saved = dev;

	(void)state;
	for (int i = 0; i < 3; i++) {
		int tell[2], status;
		struct err err;
		struct hal_mem *m;
		struct hal *h;
		char x = 0;
		pid_t pid;

		assert_int_equal(pipe(tell), 0);
		pid = fork();
		if (!pid)
			hold_device(tell[1]);
		close(tell[1]);
		assert_int_equal(read(tell[0], &x, 1), 1);
		close(tell[0]);
		kill(pid, SIGKILL);
		waitpid(pid, &status, 0);
		dev = open_at(server.device[1], 0, &h, &err);
		if (!dev)
			fail_msg("%s", err.msg);
		/* Nothing runs and nothing of the last client is to be seen. */
		executes_inline_and_on_the_engine(NULL);
		m = get(sizeof(got));
		hal_copy_out(got, m, 1 << 20, sizeof(got) - (1 << 20), CLOCK_FOREVER, &err);
		for (size_t k = 0; k < sizeof(got); k++)
			assert_int_equal(got[k], 0);
		hal_destroy(h);
	}
	dev = saved;
}

/* Whether a telemetry page of the process tells that it lives. */
static bool is_seen(pid_t pid)
{
	static struct hal_page page;
	char pattern[160];
	bool is = false;
	glob_t g;

	snprintf(pattern, sizeof(pattern), "%s/tessera-%u-%d-*", hal_page_dir(), getuid(), pid);
	if (glob(pattern, 0, NULL, &g))
		return false;
	for (size_t i = 0; i < g.gl_pathc; i++)
		is |= !hal_page_read(g.gl_pathv[i], &page, NULL);
	globfree(&g);
	return is;
}

/* In a child: opens the device, tells of a child of its own and waits with it. */
static void hold_device_with_a_child(int tell)
{
	struct err err;
	struct hal *h;
	pid_t pid;

	if (!open_at(server.device[1], 0, &h, &err))
		_exit(1);
	pid = fork();
	/* By the child itself: what fork has to do there is done. */
	if (!pid) {
		pid = getpid();
		if (write(tell, &pid, sizeof(pid)) != sizeof(pid))
			_exit(2);
	}
	for (;;)
		pause();
}

static void a_killed_client_is_not_its_children(void **state)
{
	struct hal_device *got;
	int tell[2], status;
	pid_t pid, left = 0;
	struct err err;
	struct hal *h;
	bool is_left_seen;

	(void)state;
	assert_int_equal(pipe(tell), 0);
	pid = fork();
	if (!pid)
		hold_device_with_a_child(tell[1]);
	close(tell[1]);
	assert_int_equal(read(tell[0], &left, sizeof(left)), sizeof(left));
	close(tell[0]);
	assert_true(is_seen(pid));
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	is_left_seen = is_seen(pid);
	got = open_at(server.device[1], 0, &h, &err);
	assert_int_equal(kill(left, SIGKILL), 0);
	if (!got)
		fail_msg("%s", err.msg);
	hal_destroy(h);
	assert_false(is_left_seen);
}

/* ---- servers that are none ---- */

struct impostor {
	int listener;
	const void *reply;	/* to the first message; then it closes */
	size_t bytes;
};

static void *pretend(void *arg)
{
	struct impostor *im = arg;
	int fd = accept(im->listener, NULL, NULL);
	char request[4096];

	if (recv(fd, request, sizeof(request), 0) > 0 && im->bytes)
		send(fd, im->reply, im->bytes, MSG_NOSIGNAL);
	/* Until the client has had enough, so that it is not helped by our closing. */
	if (im->bytes)
		while (recv(fd, request, sizeof(request), 0) > 0)
			;
	close(fd);
	return NULL;
}

static void servers_that_are_none_are_refused(void **state)
{
	static const struct vfu_header
		nonsense = { 0x4848, 0x5454, 0x20312f50, 0, 0 },
		wrong_id = { 77, VFU_VERSION, 16, VFU_IS_REPLY, 0 },
		wrong_command = { 1, VFU_RESET, 16, VFU_IS_REPLY, 0 },
		too_short = { 1, VFU_VERSION, 15, VFU_IS_REPLY, 0 },
		too_long = { 1, VFU_VERSION, 1 << 16, VFU_IS_REPLY, 0 },
		empty = { 1, VFU_VERSION, 16, VFU_IS_REPLY, 0 },
		refusal = { 1, VFU_VERSION, 16, VFU_IS_REPLY | VFU_ERROR, ENOTSUP };
	static const struct vfu_header *const replies[] = {
		NULL, &nonsense, &wrong_id, &wrong_command, &too_short, &too_long, &empty,
		&refusal };
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	char where[160];

	(void)state;
	snprintf(a.sun_path, sizeof(a.sun_path), "%s/impostor", server.dir);
	snprintf(where, sizeof(where), "vfio-user:%s", a.sun_path);
	for (size_t i = 0; i < sizeof(replies) / sizeof(*replies); i++) {
		struct impostor im = { socket(AF_UNIX, SOCK_STREAM, 0), replies[i],
				       replies[i] ? sizeof(*replies[i]) : 0 };
		int64_t began = clock_ns();
		pthread_t thread;
		struct err err;
		struct hal *h;

		assert_int_equal(bind(im.listener, (struct sockaddr *)&a, sizeof(a)), 0);
		assert_int_equal(listen(im.listener, 1), 0);
		assert_int_equal(pthread_create(&thread, NULL, pretend, &im), 0);
		assert_null(open_at(where, 0, &h, &err));
		assert_int_equal(err.code, replies[i] == &refusal ? ERR_UNIMPLEMENTED :
							ERR_UNAVAILABLE);
		assert_non_null(strstr(err.msg, a.sun_path));
		assert_true(clock_ns() < began + 5 * SECOND);
		pthread_join(thread, NULL);
		close(im.listener);
		unlink(a.sun_path);
	}
}

/* Sends one byte of a reply that never ends every `ms`. */
static void *drip(void *arg)
{
	static const struct vfu_header endless = { 1, VFU_VERSION, 4096, VFU_IS_REPLY, 0 };
	struct impostor *im = arg;
	int fd = accept(im->listener, NULL, NULL);

	for (size_t i = 0; i < 1000; i++) {
		const char *byte = i < sizeof(endless) ? (const char *)&endless + i : "x";

		if (send(fd, byte, 1, MSG_NOSIGNAL) < 0)
			break;
		usleep(20000);
	}
	close(fd);
	return NULL;
}

static void wake_up(int sig)
{
	(void)sig;
}

/* Has no room for one more. */
static unsigned fill_queue(const struct sockaddr_un *a, int fds[8])
{
	unsigned n = 0;
	int fd;

	do {
		fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
		fds[n++] = fd;
	} while (!connect(fd, (const struct sockaddr *)a, sizeof(*a)) && n < 8);
	assert_int_equal(errno, EAGAIN);
	return n;
}

/* Neither single bytes nor signals extend the time that an answer may take, nor a place in the
 * queue. */
static void single_bytes_and_signals_extend_no_deadline(void **state)
{
	struct itimerval often = { { 0, 20000 }, { 0, 20000 } }, never = { { 0, 0 }, { 0, 0 } };
	struct sigaction wakes = { .sa_handler = wake_up };
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	char where[160];
	unsigned n_fds;
	int fds[8];

	(void)state;
	snprintf(a.sun_path, sizeof(a.sun_path), "%s/impostor", server.dir);
	snprintf(where, sizeof(where), "vfio-user:%s", a.sun_path);
	sigaction(SIGALRM, &wakes, NULL);
	for (int i = 0; i < 3; i++) {
		struct impostor im = { .listener = socket(AF_UNIX, SOCK_STREAM, 0) };
		int64_t began = clock_ns();
		pthread_t thread;
		struct err err;
		struct hal *h;

		assert_int_equal(bind(im.listener, (struct sockaddr *)&a, sizeof(a)), 0);
		assert_int_equal(listen(im.listener, 1), 0);
		setenv("TESSERA_SERVER_LIMIT_MS", "500", 1);
		n_fds = i == 2 ? fill_queue(&a, fds) : 0;
		if (i)
			setitimer(ITIMER_REAL, &often, NULL);
		else
			assert_int_equal(pthread_create(&thread, NULL, drip, &im), 0);
		assert_null(open_at(where, 0, &h, &err));
		setitimer(ITIMER_REAL, &never, NULL);
		unsetenv("TESSERA_SERVER_LIMIT_MS");
		assert_int_equal(err.code, ERR_UNAVAILABLE);
		assert_non_null(strstr(err.msg, "did not answer within 0.5 s"));
		assert_true(clock_ns() < began + 5 * SECOND);
		if (!i)
			pthread_join(thread, NULL);
		while (n_fds)
			close(fds[--n_fds]);
		close(im.listener);
		unlink(a.sun_path);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(identity_is_the_models),
		cmocka_unit_test(hbm_is_mapped),
		DEVICE_TESTS,
		cmocka_unit_test(pinned_memory_is_reached_by_dma),
		cmocka_unit_test(a_second_client_is_told_who_is_busy),
		cmocka_unit_test(as_many_clients_as_it_serves_share_a_device),
		cmocka_unit_test(two_devices_work_side_by_side),
		cmocka_unit_test(wrong_names_say_what_to_do),
		cmocka_unit_test(servers_that_are_none_are_refused),
		cmocka_unit_test(single_bytes_and_signals_extend_no_deadline),
		cmocka_unit_test(a_server_that_stops_in_a_program_is_noticed),
		cmocka_unit_test(a_server_that_stopped_before_an_execute_is_noticed),
		cmocka_unit_test(a_server_that_stops_is_noticed_by_close),
		cmocka_unit_test(reopening_never_meets_a_busy_device),
		cmocka_unit_test(a_killed_server_is_reported_at_once),
		cmocka_unit_test(a_server_that_is_stopped_ends_its_sessions),
		cmocka_unit_test(a_killed_client_leaves_the_server_clean),
		cmocka_unit_test(a_killed_client_is_not_its_children),
	};

	return cmocka_run_group_tests(tests, start_server, stop_server);
}
