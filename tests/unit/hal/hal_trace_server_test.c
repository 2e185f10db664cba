/* SPDX-License-Identifier: Apache-2.0 */
/* A process that is asked for traces from outside: what it tells, and what becomes of askers who
 * are silent, slow, wrong, too many or strangers, of devices that come and go, and of forks. */
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "hal/base/clock.h"
#include "hal/hal.h"
#include "hal/telemetry.h"
#include "hal/trace_wire.h"

#define SOON_NS 60000000000ll
#define NOBODY 65534
#define BYTES 4096u

static char dir[256] = "/tmp/tessera-server-XXXXXX";
static struct hal *hal;
static struct hal_device *dev;

/* The message that was read last. */
static struct {
	uint32_t kind, bytes;
	union {
		struct hal_wire_hello hello;
		struct hal_wire_refused refused;
		struct hal_wire_device device;
		struct hal_wire_moment moment;
		struct hal_wire_trace trace;
		struct hal_wire_record records[HAL_WIRE_BATCH];
		struct hal_wire_end end;
		char text[HAL_WIRE_TEXT];
	} is;
} m;

/* ---- the folder ---- */

static unsigned count(const char *prefix)
{
	DIR *d = opendir(dir);
	struct dirent *e;
	unsigned n = 0;

	assert_non_null(d);
	while ((e = readdir(d)))
		n += *e->d_name != '.' && !strncmp(e->d_name, prefix, strlen(prefix));
	closedir(d);
	return n;
}

/* The page of process `pid`, and its path. */
static void find_page(pid_t pid, char path[512], struct hal_page *page)
{
	DIR *d = opendir(dir);
	struct dirent *e;
	char start[64];
	bool is_found = false;

	snprintf(start, sizeof(start), "tessera-%u-%d-", getuid(), pid);
	assert_non_null(d);
	while (!is_found && (e = readdir(d))) {
		snprintf(path, 512, "%s/%s", dir, e->d_name);
		is_found = !strncmp(e->d_name, start, strlen(start)) &&
			!hal_page_read(path, page, NULL);
	}
	closedir(d);
	if (!is_found)
		fail_msg("process %d has no page", pid);
}

/* ---- the asker ---- */

static int connect_to(pid_t pid, struct err *err)
{
	struct hal_page *page = malloc(sizeof(*page));
	char path[512];
	int fd = -1;

	assert_non_null(page);
	find_page(pid, path, page);
	assert_int_not_equal(page->socket, 0);
	if (hal_page_connect(path, page->socket, SOON_NS, &fd, err))
		fd = -1;
	free(page);
	return fd;
}

static bool read_n(int fd, void *to, size_t n)
{
	for (size_t at = 0; at < n;) {
		struct pollfd p = { .fd = fd, .events = POLLIN };
		ssize_t got;

		assert_int_equal(poll(&p, 1, (int)(SOON_NS / 1000000)), 1);
		got = read(fd, (char *)to + at, n - at);
		if (got <= 0)
			return false;
		at += (size_t)got;
	}
	return true;
}

/* The next message's kind; 0: it hung up. */
static unsigned hear(int fd)
{
	struct hal_wire_head head;

	memset(&m, 0, sizeof(m));
	if (!read_n(fd, &head, sizeof(head)))
		return 0;
	assert_true(head.bytes <= sizeof(m.is));
	assert_true(read_n(fd, &m.is, head.bytes));
	m.kind = head.kind;
	m.bytes = head.bytes;
	return head.kind;
}

static void say(int fd, enum hal_wire_step step, uint32_t limit_ms)
{
	struct hal_wire_ask a = { HAL_WIRE_MAGIC, HAL_WIRE_VERSION, step, limit_ms };

	assert_int_equal(send(fd, &a, sizeof(a), MSG_NOSIGNAL), sizeof(a));
}

/* Connects and is greeted. Whoever was there before may be about to be let go. */
static int greet(void)
{
	int64_t deadline = clock_after(SOON_NS);
	struct err err;

	for (;;) {
		int fd = connect_to(getpid(), &err);

		if (fd < 0)
			fail_msg("%s", err.msg);
		if (hear(fd) == HAL_WIRE_HELLO) {
			assert_int_equal(m.is.hello.magic, HAL_WIRE_MAGIC);
			assert_int_equal(m.is.hello.pid, getpid());
			return fd;
		}
		assert_int_equal(m.kind, HAL_WIRE_REFUSED);
		assert_true(clock_ns() < deadline);
		close(fd);
	}
}

/* As far as STARTED; how many devices are traced. */
static unsigned start(int fd)
{
	say(fd, HAL_WIRE_START, 60000);
	while (hear(fd) == HAL_WIRE_DEVICE)
		;
	assert_int_equal(m.kind, HAL_WIRE_STARTED);
	assert_true(m.is.moment.at_ns <= clock_ns());
	return m.is.moment.n_devices;
}

static void stop(int fd)
{
	say(fd, HAL_WIRE_STOP, 0);
	assert_int_equal(hear(fd), HAL_WIRE_STOPPED);
}

/* ---- work ---- */

static void fill(struct hal_device *d, unsigned times)
{
	struct hal_queue *q = hal_device_queue(d, HAL_QUEUE_DMA);
	struct hal_mem *memory;
	struct err err;
	uint64_t value;

	assert_int_equal(hal_mem_alloc(d, HAL_MEM_HBM, BYTES, "test", &memory, &err), 0);
	for (unsigned i = 0; i < times; i++)
		assert_int_equal(hal_queue_fill(q, memory, 0, BYTES, i, &value, &err), 0);
	assert_int_equal(hal_queue_wait(q, value, clock_after(SOON_NS), &err), 0);
	hal_mem_free(memory);
}

/* Takes a whole trace of the fills of each device that is told of. */
struct total { unsigned n_devices, n_refused, index[8], fills[8]; };

static void fetch(int fd, struct total *t)
{
	uint64_t left = 0;
	int64_t ended = 0;

	memset(t, 0, sizeof(*t));
	say(fd, HAL_WIRE_FETCH, 0);
	while (hear(fd) != HAL_WIRE_END) {
		if (m.kind == HAL_WIRE_DEVICE) {
			assert_int_equal(left, 0);
			t->n_refused += m.is.device.code != 0;
			t->index[t->n_devices++] = m.is.device.index;
		} else if (m.kind == HAL_WIRE_TRACE) {
			assert_int_equal(m.is.trace.n_lost, 0);
			left = m.is.trace.n_records;
			ended = m.is.trace.ended_ns;
		} else {
			unsigned n = m.bytes / sizeof(*m.is.records);

			assert_int_equal(m.kind, HAL_WIRE_RECORDS);
			assert_true(n && n <= left);
			left -= n;
			for (unsigned i = 0; i < n; i++) {
				const struct hal_wire_record *r = &m.is.records[i];

				assert_true(0 <= r->begin_ns && r->begin_ns <= r->end_ns &&
					    r->end_ns <= ended);
				t->fills[t->n_devices - 1] += r->kind == HW_TRACE_COPY &&
					r->code == HW_FILL && r->cls == HW_CLASS_DMA &&
					r->bytes == BYTES;
			}
		}
	}
	assert_int_equal(left, 0);
	assert_int_equal(m.is.end.n_dropped, 0);
	assert_int_equal(hear(fd), 0);
}

static int open_hal(const char *devices, unsigned n)
{
	struct err err;

	if (hal_create(&(struct hal_options){ .devices = devices }, &hal, &err))
		return -1;
	for (unsigned i = n; i--;)
		if (hal_device_open(hal, i, &dev, &err))
			return -1;
	return 0;
}

static int set_up(void **state)
{
	(void)state;
	return open_hal("sim:devices=2,hbm=64M,lanes=1", 2);
}

static int tear_down(void **state)
{
	(void)state;
	hal_destroy(hal);
	return count("") ? -1 : 0;	/* neither page nor socket is left */
}

/* What nobody but the asker can have: it is over once that is gone. */
static void begin_own_trace(struct hal_device *d)
{
	int64_t deadline = clock_after(SOON_NS);
	struct err err;

	while (hal_trace_start(d, &err)) {
		assert_int_equal(err.code, ERR_ALREADY_EXISTS);
		assert_true(clock_ns() < deadline);
	}
}

static void end_own_trace(struct hal_device *d)
{
	struct hal_trace *trace;
	struct err err;

	assert_int_equal(hal_trace_stop(d, &trace, &err), 0);
	hal_trace_free(trace);
}

/* ---- tests ---- */

static void what_ran_between_start_and_stop_is_told(void **state)
{
	struct hal_queue *q = hal_device_queue(dev, HAL_QUEUE_DMA);
	struct total t;

	(void)state;
	assert_non_null(q);
	for (unsigned i = 0; i < 3; i++) {
		int fd = greet();

		fill(dev, 3);
		assert_int_equal(start(fd), 2);
		fill(dev, 700);		/* more than a message has */
		stop(fd);
		fill(dev, 3);
		fetch(fd, &t);
		assert_int_equal(t.n_devices, 2);
		assert_int_equal(t.fills[0], 700);
		assert_int_equal(t.fills[1], 0);
		close(fd);
	}
}

static void devices_that_come_and_go_are_told_of(void **state)
{
	struct hal_device *other;
	struct err err;
	struct total t;
	int fd;

	(void)state;
	hal_destroy(hal);
	assert_int_equal(open_hal("sim:devices=2,hbm=64M,lanes=1", 1), 0);
	fd = greet();
	assert_int_equal(start(fd), 1);
	for (unsigned i = 1; i < 3; i++) {
		assert_int_equal(hal_device_open(hal, 1, &other, &err), 0);
		fill(other, 10 * i);
		hal_device_close(other);
	}
	assert_int_equal(hal_device_open(hal, 1, &other, &err), 0);
	fill(dev, 5);
	stop(fd);
	fetch(fd, &t);
	close(fd);
	assert_int_equal(t.n_devices, 4);
	assert_int_equal(t.index[0], 1);
	assert_int_equal(t.fills[0], 10);
	assert_int_equal(t.fills[1], 20);
	assert_int_equal(t.index[2], 0);
	assert_int_equal(t.fills[2], 5);
	assert_int_equal(t.fills[3], 0);
}

static void whoever_has_the_trace_keeps_it(void **state)
{
	struct hal_trace *trace;
	struct err err;
	int fd;

	(void)state;
	begin_own_trace(dev);
	fd = greet();
	say(fd, HAL_WIRE_START, 60000);
	assert_int_equal(hear(fd), HAL_WIRE_DEVICE);
	assert_int_equal(m.is.device.code, ERR_ALREADY_EXISTS);
	assert_non_null(strstr(m.is.device.text, "sim:0 is traced already"));
	assert_int_equal(hear(fd), HAL_WIRE_DEVICE);
	assert_int_equal(m.is.device.code, 0);
	assert_int_equal(hear(fd), HAL_WIRE_STARTED);
	assert_int_equal(m.is.moment.n_devices, 1);
	fill(dev, 9);
	stop(fd);
	assert_int_equal(hal_trace_stop(dev, &trace, &err), 0);
	assert_int_equal(trace->n_records, 9);
	hal_trace_free(trace);
	close(fd);
}

static void one_asker_at_a_time(void **state)
{
	int fd = greet(), other;
	struct err err;
	char text[64];

	(void)state;
	assert_int_equal(start(fd), 2);
	snprintf(text, sizeof(text), "traced already, by process %d", getpid());
	for (unsigned i = 0; i < 300; i++) {
		other = connect_to(getpid(), &err);
		assert_true(other >= 0);
		if (i % 3 == 0) {
			assert_int_equal(hear(other), HAL_WIRE_REFUSED);
			assert_int_equal(m.is.refused.code, ERR_ALREADY_EXISTS);
			assert_non_null(strstr(m.is.refused.text, text));
			assert_int_equal(hear(other), 0);
		}
		close(other);
	}
	fill(dev, 1);
	stop(fd);
	close(fd);
}

static void an_asker_who_hangs_up_ends_the_trace(void **state)
{
	int fd;

	(void)state;
	for (unsigned step = 0; step < 3; step++) {
		fd = greet();
		if (step)
			start(fd);
		if (step > 1)
			stop(fd);
		close(fd);
		begin_own_trace(dev);
		end_own_trace(dev);
	}
}

static void an_asker_who_asks_wrongly_is_told(void **state)
{
	static const struct hal_wire_ask wrong[] = {
		{ 0, HAL_WIRE_VERSION, HAL_WIRE_START, 1 },
		{ HAL_WIRE_MAGIC, HAL_WIRE_VERSION + 1, HAL_WIRE_START, 1 },
		{ HAL_WIRE_MAGIC, HAL_WIRE_VERSION, HAL_WIRE_STOP, 0 },
		{ HAL_WIRE_MAGIC, HAL_WIRE_VERSION, 0xffffffff, 0xffffffff },
	};
	char junk[70000];

	(void)state;
	memset(junk, 0xa5, sizeof(junk));
	for (unsigned i = 0; i <= sizeof(wrong) / sizeof(*wrong); i++) {
		int fd = greet();

		if (i < sizeof(wrong) / sizeof(*wrong))
			assert_int_equal(send(fd, &wrong[i], sizeof(*wrong), 0), sizeof(*wrong));
		else
			assert_true(send(fd, junk, sizeof(junk), MSG_NOSIGNAL) > 0);
		assert_int_equal(hear(fd), HAL_WIRE_REFUSED);
		assert_int_equal(m.is.refused.code, ERR_INVALID_ARGUMENT);
		assert_int_equal(hear(fd), 0);
		close(fd);
	}
	begin_own_trace(dev);
	end_own_trace(dev);
}

static void an_asker_who_is_silent_is_let_go(void **state)
{
	int64_t began = clock_ns();
	int fd = greet();

	(void)state;
	/* A byte now and then is silence, too. */
	assert_int_equal(send(fd, "T", 1, 0), 1);
	assert_int_equal(hear(fd), 0);
	assert_true(clock_ns() - began >= HAL_WIRE_ASK_NS - 1000000);
	close(fd);
	/* And one who never says stop. */
	fd = greet();
	say(fd, HAL_WIRE_START, 50);
	while (hear(fd))
		assert_true(m.kind == HAL_WIRE_DEVICE || m.kind == HAL_WIRE_STARTED);
	close(fd);
	begin_own_trace(dev);
	end_own_trace(dev);
}

static void an_asker_who_takes_nothing_is_let_go(void **state)
{
	int fd = greet();

	(void)state;
	start(fd);
	fill(dev, 20000);	/* more than a socket holds */
	stop(fd);
	say(fd, HAL_WIRE_FETCH, 0);
	/* Others hear that he is there, until he is not: he has what fitted, and no end. */
	close(greet());
	while (hear(fd))
		assert_int_not_equal(m.kind, HAL_WIRE_END);
	close(fd);
}

static void closing_waits_for_no_asker(void **state)
{
	for (unsigned step = 0; step < 3; step++) {
		int fd = greet();
		int64_t began;

		if (step)
			start(fd);
		if (step > 1)
			stop(fd);
		began = clock_ns();
		assert_int_equal(tear_down(state), 0);
		assert_true(clock_ns() - began < HAL_WIRE_ASK_NS / 2);
		assert_int_equal(hear(fd), 0);
		close(fd);
		assert_int_equal(set_up(state), 0);
	}
}

static void a_stranger_is_turned_away(void **state)
{
	struct hal_page *page = malloc(sizeof(*page));
	char path[512], name[600];
	struct stat st;
	int status;
	pid_t pid;

	(void)state;
	assert_non_null(page);
	find_page(getpid(), path, page);
	snprintf(name, sizeof(name), "%s/" HAL_PAGE_SOCKET "%s-%08x", dir,
		 strrchr(path, '/') + 1 + strlen("tessera-"), page->socket);
	assert_int_equal(stat(name, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	if (getuid()) {
		free(page);
		skip();
	}
	/* As if the file were no bar. */
	for (unsigned is_open = 0; is_open < 2; is_open++) {
		assert_int_equal(chmod(dir, 0755), 0);
		assert_int_equal(chmod(name, is_open ? 0666 : 0600), 0);
		pid = fork();
		if (!pid) {
			struct err err;
			int fd = -1, code;

			if (setuid(NOBODY))
				_exit(2);
			code = hal_page_connect(path, page->socket, SOON_NS, &fd, &err);
			if (!is_open)
				_exit(code == ERR_PERMISSION_DENIED ? 0 : 3);
			_exit(!code && hear(fd) == HAL_WIRE_REFUSED &&
			      m.is.refused.code == ERR_PERMISSION_DENIED ? 0 : 4);
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
	}
	free(page);
}

/* A process that has a device open, and a child that has nothing of it; the child outlives it. */
static pid_t be_a_parent(int told[2], pid_t *child)
{
	pid_t pid = fork();

	if (!pid) {
		if (open_hal("sim:hbm=64M,lanes=1", 1))
			_exit(1);
		/* Once before anybody asked, once while somebody does. */
		for (unsigned i = 0; i < 2; i++) {
			pid_t own = fork();
			char go;

			if (!own) {
				/* What fork has to do in a child is done. */
				own = getpid();
				alarm(100);
				if (write(told[1], &own, sizeof(own)) == sizeof(own))
					pause();
				_exit(0);
			}
			if (read(told[1], &go, 1) != 1)
				_exit(1);
		}
		pause();
		_exit(0);
	}
	assert_true(read_n(told[0], child, sizeof(*child)));
	return pid;
}

static void a_child_does_not_answer_for_its_parent(void **state)
{
	struct hal_page *page = malloc(sizeof(*page));
	char path[512];
	pid_t parent, children[2];
	struct err err;
	int told[2], fd;

	(void)state;
	hal_destroy(hal);
	hal = NULL;
	assert_non_null(page);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, told), 0);
	parent = be_a_parent(told, &children[0]);
	find_page(parent, path, page);
	assert_int_equal(hal_page_connect(path, page->socket, SOON_NS, &fd, &err), 0);
	assert_int_equal(hear(fd), HAL_WIRE_HELLO);
	assert_int_equal(start(fd), 1);
	assert_int_equal(write(told[0], "g", 1), 1);
	assert_true(read_n(told[0], &children[1], sizeof(*children)));
	kill(parent, SIGKILL);
	assert_int_equal(waitpid(parent, NULL, 0), parent);
	/* Were it open in a child, neither would be heard of. */
	assert_int_equal(hear(fd), 0);
	close(fd);
	assert_int_equal(hal_page_connect(path, page->socket, SOON_NS, &fd, &err),
			 ERR_UNAVAILABLE);
	for (unsigned i = 0; i < 2; i++)
		kill(children[i], SIGKILL);
	close(told[0]);
	close(told[1]);
	/* The next process takes away what is left, once the last child lets go of the lock. */
	for (int64_t end = clock_after(SOON_NS); hal_page_read(path, page, &err) !=
	     ERR_NOT_FOUND;)
		assert_true(clock_ns() < end);
	assert_int_equal(count(""), 0);
	free(page);
	assert_int_equal(set_up(state), 0);
}

static void sockets_of_the_dead_are_removed(void **state)
{
	char name[400], file[400];
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	struct err err;
	int fd, status, pipes[2];

	(void)state;
	for (unsigned without_page = 0; without_page < 2; without_page++) {
		pid_t pid;

		hal_destroy(hal);
		assert_int_equal(pipe(pipes), 0);
		pid = fork();
		if (!pid) {
			if (open_hal("sim:hbm=64M,lanes=1", 1) || write(pipes[1], "", 1) != 1)
				_exit(1);
			pause();
		}
		assert_true(read_n(pipes[0], name, 1));
		kill(pid, SIGKILL);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		close(pipes[0]);
		close(pipes[1]);
		assert_int_equal(count("tessera-trace-"), 1);
		if (without_page) {
			DIR *d = opendir(dir);
			struct dirent *e;

			snprintf(name, sizeof(name), "tessera-%u-%d-", getuid(), pid);
			while ((e = readdir(d)))
				if (!strncmp(e->d_name, name, strlen(name)))
					unlinkat(dirfd(d), e->d_name, 0);
			closedir(d);
		}
		/* Of others' names, or no socket: not ours to take away. */
		snprintf(a.sun_path, sizeof(a.sun_path), "%.60s/tessera-trace-%u-1-a-00000001",
			 dir, getuid() + 1);
		fd = socket(AF_UNIX, SOCK_STREAM, 0);
		assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
		snprintf(file, sizeof(file), "%s/tessera-trace-%u-1-a-00000001", dir, getuid());
		close(open(file, O_CREAT | O_WRONLY, 0600));
		assert_int_equal(set_up(state), 0);
		assert_int_equal(count("tessera-trace-"), 3);
		assert_int_equal(unlink(file), 0);
		assert_int_equal(unlink(a.sun_path), 0);
		close(fd);
		fd = connect_to(getpid(), &err);
		assert_int_equal(hear(fd), HAL_WIRE_HELLO);
		close(fd);
	}
}

/* The path is longer than an address. */
static void a_deep_folder_is_no_bar(void **state)
{
	char old[sizeof(dir)], deep[sizeof(dir)];
	size_t n = strlen(dir);

	(void)state;
	hal_destroy(hal);
	memcpy(old, dir, sizeof(old));
	memcpy(deep, dir, sizeof(deep));
	deep[n] = '/';
	memset(deep + n + 1, 'd', 87 - n);
	deep[88] = 0;
	assert_int_equal(mkdir(deep, 0755), 0);
	memcpy(dir, deep, sizeof(dir));
	setenv("TESSERA_TELEMETRY_DIR", dir, 1);
	assert_int_equal(set_up(state), 0);
	close(greet());
	assert_int_equal(tear_down(state), 0);
	memcpy(dir, old, sizeof(dir));
	setenv("TESSERA_TELEMETRY_DIR", dir, 1);
	assert_int_equal(rmdir(deep), 0);
	assert_int_equal(set_up(state), 0);
}

/* How often the thread ran; 0: not yet. */
static unsigned long runs_of_thread(void)
{
	DIR *d = opendir("/proc/self/task");
	unsigned long runs = 0;
	struct dirent *e;

	assert_non_null(d);
	while ((e = readdir(d))) {
		char path[400], line[256] = "";
		bool is_it = false;
		FILE *f;

		snprintf(path, sizeof(path), "/proc/self/task/%s/status", e->d_name);
		f = *e->d_name == '.' ? NULL : fopen(path, "r");
		while (f && fgets(line, sizeof(line), f)) {
			unsigned long n;

			is_it |= !strcmp(line, "Name:\ttessera-trace\n");
			if (is_it && (sscanf(line, "voluntary_ctxt_switches: %lu", &n) == 1 ||
				      sscanf(line, "nonvoluntary_ctxt_switches: %lu", &n) == 1))
				runs += n;
		}
		if (f)
			fclose(f);
	}
	closedir(d);
	return runs;
}

static void who_is_not_asked_does_nothing(void **state)
{
	int64_t deadline = clock_after(SOON_NS);
	unsigned long before;

	(void)state;
	/* It may just have begun. */
	do {
		assert_true(clock_ns() < deadline);
		before = runs_of_thread();
		fill(dev, 5000);
	} while (!before || runs_of_thread() != before);
}

static int make_folder(void **state)
{
	(void)state;
	setenv("TESSERA_CRASH_DUMPS", "0", 1);
	return mkdtemp(dir) ? setenv("TESSERA_TELEMETRY_DIR", dir, 1) : -1;
}

static int remove_folder(void **state)
{
	(void)state;
	return rmdir(dir);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(what_ran_between_start_and_stop_is_told),
		TEST(devices_that_come_and_go_are_told_of),
		TEST(whoever_has_the_trace_keeps_it),
		TEST(one_asker_at_a_time),
		TEST(an_asker_who_hangs_up_ends_the_trace),
		TEST(an_asker_who_asks_wrongly_is_told),
		TEST(an_asker_who_is_silent_is_let_go),
		TEST(an_asker_who_takes_nothing_is_let_go),
		TEST(closing_waits_for_no_asker),
		TEST(a_stranger_is_turned_away),
		TEST(a_child_does_not_answer_for_its_parent),
		TEST(sockets_of_the_dead_are_removed),
		TEST(a_deep_folder_is_no_bar),
		TEST(who_is_not_asked_does_nothing),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
