/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs whose members are in two or three processes, with a chip of one server each: they
 * compute what they should, come in one order, and end with an error in all where one does
 * something else, can't, or is killed; those that are left go on.
 *
 * The processes are children of the test, which tells them what to do by lines: see act().
 */
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#define SERVED 3
#include "tests/unit/rt/rt_gang.h"
#include "tests/unit/vfio_server.h"

#define SECOND 1000000000ll

static struct vfio_server server;
static char folder[80];		/* the store: a file for each key */

/* ---- the store ---- */

static void path_of(const char *key, const char *end, char out[256])
{
	snprintf(out, 256, "%s/%s%s", folder, key, end);
	for (char *p = out + strlen(folder) + 1; *p; p++)
		*p = *p == '/' ? '-' : *p;
}

static int put_key(void *arg, const char *key, const void *value, size_t bytes, struct err *err)
{
	char path[256], whole[256];
	int fd;

	(void)arg;
	path_of(key, ".part", path);
	path_of(key, "", whole);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
	if (fd < 0 || write(fd, value, bytes) != (ssize_t)bytes || close(fd) ||
	    rename(path, whole))
		return err_set(err, ERR_ALREADY_EXISTS, "%s: %s", key, strerror(errno));
	return 0;
}

static int get_key(void *arg, const char *key, int ms, void **value, size_t *bytes,
		   struct err *err)
{
	int64_t deadline = clock_after(ms * 1000000ll);
	char path[256];
	struct stat s;
	int fd;

	(void)arg;
	path_of(key, "", path);
	while ((fd = open(path, O_RDONLY)) < 0 && clock_ns() < deadline)
		poll(NULL, 0, 1);
	if (fd < 0)
		return err_set(err, ERR_DEADLINE_EXCEEDED, "%s", key);
	*value = fstat(fd, &s) ? NULL : malloc((size_t)s.st_size + 1);
	*bytes = (size_t)s.st_size;
	if (!*value || read(fd, *value, *bytes) != (ssize_t)*bytes)
		_exit(9);
	close(fd);
	return 0;
}

/* ---- a process ---- */

enum { MOST_LAUNCHES = 64 };
static const unsigned every[3] = { 0, 1, 2 };

struct done {
	struct rt_buffer *in, *out[2];
	struct rt_event *done;
	unsigned which, round, who;	/* who: what it says of itself */
};

static unsigned number, n_processes;	/* of this process; of the job */
/* Of processes 0 and 1: sums; sums in place. Alone on this device. Of those two: sums of replicas,
 * and those compiled apart. Sums of all. Of the first two, compiled for one process. Sums of the
 * last two of three. */
enum { HERE = 2, REPLICA, APART_REPLICA, ALL, FOR_ONE, LAST, N_GANGS };
static struct rt_gang gangs[N_GANGS];
static struct done list[MOST_LAUNCHES];
static unsigned n_list;
static struct rt_buffer *pending;	/* the argument of `later`, until `now` */

static float value(unsigned process, unsigned round, unsigned i)
{
	return (float)(1 + process) * (float)(round + 1) + (float)i;
}

static struct rt_buffer *argument(unsigned round, unsigned elements, struct err *err)
{
	struct rt_shape shape = { .elem = ELEM_F32, .rank = 1, .dim = { elements } };
	float data[ELEMENTS];
	struct rt_buffer *b = NULL;

	for (unsigned i = 0; i < ELEMENTS; i++)
		data[i] = value(number, round, i);
	rt_buffer_from_host(client, 0, RT_DEVICE, &shape, data, NULL, &b, err);
	return b;
}

static int launch_with(unsigned which, unsigned round, struct rt_buffer *in, struct err *err)
{
	struct done *d = &list[n_list];
	struct rt_buffer *const *args = &d->in;
	struct rt_buffer **outs = d->out;
	int code;

	*d = (struct done){ .in = in, .which = which, .round = round,
			    .who = which == HERE ? 0 : number };
	d->who += which == APART_REPLICA ? 100 : 0;
	code = rt_execute_gang(&gangs[which], &args, 1, NULL, &outs, &d->done, err);
	if (code)
		rt_buffer_unref(in);
	else
		n_list++;
	return code;
}

static int launch(unsigned which, unsigned round, unsigned elements, struct err *err)
{
	struct rt_buffer *in = argument(round, elements, err);

	return in ? launch_with(which, round, in, err) : err->code;
}

/* A process is refused a launch for each failure that it is to know of. */
static int launch_until_it_runs(unsigned round, struct err *err)
{
	int code = -1;

	for (unsigned i = 0; code && i < 4; i++)
		code = launch(0, round, ELEMENTS, err);
	return code;
}

static int await_failure(void)
{
	while (!rt_order_error(client->world, NULL))
		poll(NULL, 0, 1);
	return 0;
}

/* The device, by an injected error; it is known when this returns. */
static int die(struct err *err)
{
	struct hal_device *hal = client->devices[0].hal;
	int code = hal_device_inject(hal, HW_INJECT_FATAL, 0, err);

	while (!code && !hal_device_error(hal, NULL))
		poll(NULL, 0, 1);
	return code;
}

/* The first argument is still to come. */
static int launch_pending(unsigned which, unsigned round, struct err *err)
{
	struct rt_shape shape = { .elem = ELEM_F32, .rank = 1, .dim = { ELEMENTS } };
	int code = rt_buffer_alias(client, 0, RT_DEVICE, &shape, &pending, err);

	if (code)
		return code;
	rt_buffer_ref(pending);
	return launch_with(which, round, pending, err);
}

static int give_pending(unsigned round, struct err *err)
{
	struct rt_buffer *b = argument(round, ELEMENTS, err);
	int code = b ? rt_alias_fulfill(pending, b, err) : err->code;

	rt_buffer_unref(b);
	rt_buffer_unref(pending);
	return code;
}

static void drop(struct done *d)
{
	rt_buffer_unref(d->in);
	rt_buffer_unref(d->out[0]);
	rt_buffer_unref(d->out[1]);
	rt_event_unref(d->done);
}

static int read_back(struct rt_buffer *b, void *out, size_t bytes, struct err *err)
{
	struct rt_event *e;
	int code = rt_buffer_to_host(b, 0, out, bytes, &e, err);

	if (code)
		return code;
	code = rt_event_wait(e, err);
	rt_event_unref(e);
	return code;
}

static int check(const struct done *d, bool is_alone, struct err *err)
{
	float x[ELEMENTS];
	uint32_t who;
	int code = rt_event_wait(d->done, err);

	if (!code)
		code = read_back(d->out[0], x, sizeof(x), err);
	if (!code)
		code = read_back(d->out[1], &who, sizeof(who), err);
	if (!code && who != d->who)
		return err_set(err, ERR_INTERNAL, "round %u: member %u has number %u, not %u",
			       d->round, number, who, d->who);
	for (unsigned i = 0; !code && i < ELEMENTS; i++) {
		float want = is_alone ? value(number, d->round, i) : 0;

		for (unsigned p = 0; !is_alone && p < (d->which == ALL ? n_processes : 2); p++)
			want += value(p, d->round, i);
		if (x[i] != want)
			return err_set(err, ERR_INTERNAL, "round %u: element %u is %g, not %g",
				       d->round, i, (double)x[i], (double)want);
	}
	return code;
}

/* Of all that was launched: the first error. */
static int wait_for_all(bool is_alone, struct err *err)
{
	struct err why;
	int code = 0;

	for (unsigned i = 0; i < n_list; i++) {
		int one = check(&list[i], is_alone, &why);

		if (one && !code)
			*err = why;
		code = code ? code : one;
		drop(&list[i]);
	}
	n_list = 0;
	return code;
}

static int load_one(unsigned which, struct rt_program *p, struct err *err)
{
	int code = rt_load_gang(client, p, NULL, 0, &gangs[which], err);

	rt_program_unref(p);
	return code;
}

static int load_both(struct err *err)
{
	int code = 0;

	for (unsigned i = 0; !code && i < 2; i++)
		code = load_one(i, make_program(2, every, i ? IN_PLACE : 0), err);
	return code;
}

/* Only process 1 has the one that was compiled apart. */
static int load_replicas(struct err *err)
{
	int code = load_one(REPLICA, make_program(2, every, REPLICAS), err);

	return code || !number ? code :
	       load_one(APART_REPLICA, make_program(2, every, REPLICAS | APART), err);
}

/* Sums of what is sent many times over, so that it goes straight to where it is to lie. */
static int load_for_one(struct err *err)
{
	static const char text[] =
		"module() {sym_name = \"sums\"} () {\n"
		"func() {sym_name = \"main\"} (%%0: tensor<%ux%s>) {\n"
		"%%1 = broadcast_in_dim(%%0) {broadcast_dimensions = [1]} : tensor<%ux%ux%s>\n"
		"%%2 = tc.exchange(%%1) {replica_groups = [0, 1], group_size = 2, is_same = true} "
		": tensor<2x%ux%ux%s>\n"
		"%%3 = slice(%%2) {start_indices = [0, %u, 0], limit_indices = [1, %u, %u], "
		"strides = [1, 1, 1]} : tensor<1x1x%ux%s>\n"
		"%%4 = slice(%%2) {start_indices = [1, 0, 0], limit_indices = [2, 1, %u], "
		"strides = [1, 1, 1]} : tensor<1x1x%ux%s>\n"
		"%%5 = add(%%3, %%4) : tensor<1x1x%ux%s>\n"
		"%%6 = reshape(%%5) : tensor<%ux%s>\n"
		"%%7 = partition_id() : tensor<ui32>\nreturn(%%6, %%7)\n}\n}\n";
	const unsigned e = ELEMENTS, n = (1 << 20) / sizeof(float) / ELEMENTS;
	const struct rt_target target = { .cores = 1, .memory_bytes = 1 << 30,
					  .has_all = true };
	char code[2048];
	uint8_t options[256];
	struct rt_program *p;
	int status;

	snprintf(code, sizeof(code), text, e, "f32", n, e, "f32", n, e, "f32", n - 1, n, e, e,
		 "f32", e, e, "f32", e, "f32", e, "f32");
	status = rt_program_compile(&target, code, strlen(code), "mlir", options,
				    options_of(every, 1, 2, options), &p, err);
	if (status)
		return status;
	if (!image_is_for_one_process(rt_program_image(p)))
		return err_set(err, ERR_INTERNAL, "it is for any processes already");
	return load_one(FOR_ONE, p, err);
}

static int load_alone(struct err *err)
{
	return load_one(HERE, make_program(1, &number, ALONE), err);
}

static int join_job(struct err *err)
{
	const struct rt_world_options w = { .process = number, .n_processes = n_processes,
					    .exchange = { .put = put_key, .get = get_key } };
	const struct rt_client_options o = { .devices = server.device[number], .world = &w };
	int code = rt_client_create(&o, &client, err);

	if (!code && number < 2)
		code = load_both(err);
	if (!code && number < 2)
		code = load_replicas(err);
	if (!code && number < 2)
		code = load_for_one(err);
	if (!code)
		code = load_one(ALL, make_program(n_processes, every, 0), err);
	if (!code && n_processes == 3 && number)
		code = load_one(LAST, make_program(2, every + 1, 0), err);
	return code ? code : load_alone(err);
}

static int leave_a_child(struct err *err)
{
	pid_t child = fork();

	if (!child)
		for (;;)
			pause();
	snprintf(err->msg, sizeof(err->msg), "%d", (int)child);
	return child < 0;
}

/* sum R, place R, alone R, all R, last R: a launch, round R; bad: one that is refused; later R,
 * now R: one whose argument comes by the second; rank R: of replicas, where process 1 has a
 * program of its own in odd rounds; one R: of what was compiled for one process; retry R: sum R, as
 * often as it is refused; leave: launches no more; return: all left together, and are back; fork:
 * leaves a child, whose number it answers; reset, fatal: of its device; broken: returns when it
 * knows that another failed; wait, wait_alone: for all of them; again: loads anew. */
static int act(const char *what, unsigned round, struct err *err)
{
	if (!strcmp(what, "sum"))
		return launch(0, round, ELEMENTS, err);
	if (!strcmp(what, "place"))
		return launch(1, round, ELEMENTS, err);
	if (!strcmp(what, "alone"))
		return launch(HERE, round, ELEMENTS, err);
	if (!strcmp(what, "all"))
		return launch(ALL, round, ELEMENTS, err);
	if (!strcmp(what, "last"))
		return launch(LAST, round, ELEMENTS, err);
	if (!strcmp(what, "reset"))
		return hal_device_reset(client->devices[0].hal, err);
	if (!strcmp(what, "fatal"))
		return die(err);
	if (!strcmp(what, "rank"))
		return launch(REPLICA + (number && round % 2), round, ELEMENTS, err);
	if (!strcmp(what, "one"))
		return launch(FOR_ONE, round, ELEMENTS, err);
	if (!strcmp(what, "broken"))
		return await_failure();
	if (!strcmp(what, "fork"))
		return leave_a_child(err);
	if (!strcmp(what, "retry"))
		return launch_until_it_runs(round, err);
	if (!strcmp(what, "leave")) {
		err_set(err, ERR_CANCELLED, "its function has returned");
		rt_device_leave(client, 0, err);
		return 0;
	}
	if (!strcmp(what, "return")) {
		rt_client_return(client);
		return 0;
	}
	if (!strcmp(what, "bad"))
		return launch(0, round, ELEMENTS - 1, err);
	if (!strcmp(what, "later"))
		return launch_pending(0, round, err);
	if (!strcmp(what, "now"))
		return give_pending(round, err);
	if (!strcmp(what, "again")) {
		rt_free_gang(&gangs[0]);
		rt_free_gang(&gangs[1]);
		return load_both(err);
	}
	if (!strncmp(what, "wait", 4))
		return wait_for_all(what[4], err);
	if (!strcmp(what, "settle")) {
		rt_client_settle(client);
		return 0;
	}
	return err_set(err, ERR_INTERNAL, "what is \"%s\"?", what);
}

struct answer { int code; struct err err; };

static void live(int fd)
{
	struct answer a;
	char line[64];

	memset(&a, 0, sizeof(a));
	a.code = join_job(&a.err);
	while (write(fd, &a, sizeof(a)) == sizeof(a) && read(fd, line, sizeof(line)) > 0) {
		char what[16];
		unsigned round = 0;

		if (sscanf(line, "%15s %u", what, &round) < 1 || !strcmp(what, "quit"))
			break;
		memset(&a, 0, sizeof(a));
		a.code = act(what, round, &a.err);
	}
	for (unsigned i = 0; i < N_GANGS; i++)
		rt_free_gang(&gangs[i]);
	rt_client_unref(client);
	_exit(0);
}

/* ---- the test's side ---- */

static struct { pid_t pid; int fd; } process[3];

static struct answer hear(unsigned p)
{
	struct pollfd wait = { .fd = process[p].fd, .events = POLLIN };
	struct answer a;

	if (poll(&wait, 1, 60000) != 1 || read(process[p].fd, &a, sizeof(a)) != sizeof(a))
		fail_msg("process %u does not answer", p);
	return a;
}

static void tell(unsigned p, const char *what)
{
	char line[64] = { 0 };

	snprintf(line, sizeof(line), "%s", what);
	assert_int_equal(write(process[p].fd, line, sizeof(line)), sizeof(line));
}

static void expect_ok(unsigned p)
{
	struct answer a = hear(p);

	if (a.code)
		fail_msg("process %u: %d: %s", p, a.code, a.err.msg);
}

static void expect_error(unsigned p, const char *part)
{
	struct answer a = hear(p);

	if (!a.code || !strstr(a.err.msg, part))
		fail_msg("process %u: %d: \"%s\" is not in: %s", p, a.code, part, a.err.msg);
}

static void both_do(const char *what)
{
	for (unsigned p = 0; p < 2; p++)
		tell(p, what);
	for (unsigned p = 0; p < 2; p++)
		expect_ok(p);
}

static void one_does(unsigned p, const char *what)
{
	tell(p, what);
	expect_ok(p);
}

static int start_job_of(unsigned n)
{
	n_processes = n;
	snprintf(folder, sizeof(folder), "%s/keys", server.dir);
	if (mkdir(folder, 0700))
		return -1;
	for (unsigned p = 0; p < n; p++) {
		int pair[2];

		if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
			return -1;
		process[p].fd = pair[0];
		process[p].pid = fork();
		if (!process[p].pid) {
			number = p;
			for (unsigned o = 0; o <= p; o++)
				close(process[o].fd);
			live(pair[1]);
		}
		close(pair[1]);
	}
	for (unsigned p = 0; p < n; p++)
		expect_ok(p);
	return 0;
}

static int start_job(void **state)
{
	(void)state;
	return start_job_of(2);
}

static int start_job_of_three(void **state)
{
	(void)state;
	return start_job_of(3);
}

static int stop_job(void **state)
{
	char line[120];

	(void)state;
	for (unsigned p = 0; p < n_processes; p++)
		if (process[p].pid)
			tell(p, "quit");
	for (unsigned p = 0; p < n_processes; p++) {
		int status = 0;

		if (process[p].pid && (waitpid(process[p].pid, &status, 0) < 0 || status))
			return -1;
		close(process[p].fd);
	}
	snprintf(line, sizeof(line), "rm -r %s", folder);
	return system(line);
}

static void sums_are_right_run_after_run(void **state)
{
	char line[32];

	(void)state;
	for (unsigned round = 0; round < 120; round++) {
		snprintf(line, sizeof(line), "%s %u", round % 3 ? "sum" : "place", round);
		/* One is sometimes ahead of the other. */
		one_does(round / 7 % 2, line);
		one_does(1 - round / 7 % 2, line);
		if (round % 20 == 19)
			both_do("wait");
	}
}

static void a_program_that_is_loaded_again_goes_on(void **state)
{
	(void)state;
	both_do("sum 1");
	both_do("wait");
	one_does(0, "again");
	both_do("sum 2");
	both_do("place 3");
	both_do("wait");
	one_does(1, "again");
	one_does(1, "again");
	both_do("place 4");
	both_do("sum 5");
	both_do("wait");
}

static void what_was_compiled_for_one_process_is_compiled_again(void **state)
{
	(void)state;
	both_do("one 1");
	both_do("sum 2");
	both_do("one 3");
	both_do("wait");
}

static void replicas_meet_that_were_compiled_apart(void **state)
{
	char line[32];

	(void)state;
	for (unsigned round = 0; round < 12; round++) {
		snprintf(line, sizeof(line), "%s %u", round % 5 == 4 ? "sum" : "rank", round);
		one_does(round / 3 % 2, line);
		one_does(1 - round / 3 % 2, line);
	}
	both_do("wait");
}

/* Process 0's first launch waits for its argument, so its second and third wait too. */
static void what_is_put_off_keeps_its_place(void **state)
{
	(void)state;
	both_do("sum 0");
	both_do("wait");
	one_does(0, "later 1");
	one_does(0, "place 2");
	one_does(0, "sum 3");
	one_does(0, "alone 9");
	one_does(1, "sum 1");
	one_does(1, "place 2");
	one_does(1, "sum 3");
	one_does(0, "now 1");
	tell(1, "wait");
	expect_ok(1);
	tell(0, "wait");
	/* What it did alone is no sum; the first three are. */
	expect_error(0, "round 9");
}

/* Both begin anew, one after the other, and compute what they should. */
static void run_again(void)
{
	char line[32];

	both_do("retry 8");
	for (unsigned round = 9; round < 15; round++) {
		snprintf(line, sizeof(line), "%s %u", round % 3 ? "sum" : "rank", round);
		both_do(line);
	}
	both_do("wait");
}

/* Within two seconds both know, and each goes on alone. Who finds it says so; the other may hear
 * of its device first. `heard`: what process 1 may have been told before, and launched no more. */
static void both_fail(const char *part, const struct answer *heard)
{
	int64_t began = clock_ns();
	struct answer a[2];

	tell(0, "wait");
	tell(1, "wait");
	a[0] = hear(0);
	a[1] = hear(1);
	assert_true(clock_ns() - began < 2 * SECOND);
	if (heard && heard->code)
		a[1] = *heard;
	for (unsigned p = 0; p < 2; p++)
		if (!a[p].code || (!strstr(a[p].err.msg, part) &&
				   !strstr(a[p].err.msg, "the queue was reset") &&
				   !strstr(a[p].err.msg, p ? "process 0" : "process 1")))
			fail_msg("process %u: %d: %s", p, a[p].code, a[p].err.msg);
	assert_true(strstr(a[0].err.msg, part) || strstr(a[1].err.msg, part));
	both_do("alone 5");
	both_do("wait_alone");
	run_again();
}

static void another_order_is_an_error_in_both(void **state)
{
	struct answer heard;

	(void)state;
	both_do("sum 0");
	both_do("wait");
	one_does(0, "sum 1");
	one_does(0, "place 2");
	tell(1, "place 2");
	heard = hear(1);
	/* What it launches after a refusal is new. */
	if (!heard.code) {
		tell(1, "sum 1");
		heard = hear(1);
	}
	both_fail("both launch gang, but as different programs", &heard);
}

static void what_one_can_not_launch_fails_in_both(void **state)
{
	(void)state;
	both_do("sum 0");
	both_do("wait");
	one_does(1, "sum 1");
	tell(0, "bad 1");
	expect_error(0, "argument 0");
	one_does(0, "alone 1");
	tell(1, "wait");
	expect_error(1, "process 0");
	one_does(0, "wait_alone");
}

/* The same mistake in both is no reason for more. */
static void what_both_can_not_launch_harms_nothing(void **state)
{
	(void)state;
	for (unsigned p = 0; p < 2; p++) {
		tell(p, "bad 1");
		expect_error(p, "argument 0");
	}
	both_do("sum 2");
	both_do("wait");
}

static void one_that_is_killed_fails_the_other_by_name(void **state)
{
	int64_t began;

	(void)state;
	both_do("sum 0");
	both_do("wait");
	one_does(0, "sum 1");
	one_does(0, "place 2");
	kill(process[1].pid, SIGKILL);
	waitpid(process[1].pid, NULL, 0);
	process[1].pid = 0;
	began = clock_ns();
	tell(0, "wait");
	expect_error(0, "process 1");
	assert_true(clock_ns() - began < SECOND);
	tell(0, "sum 3");
	expect_error(0, "process 1");
	one_does(0, "alone 4");
	one_does(0, "wait_alone");
}

/* Whoever is left of it does not live in its place. */
static void one_that_is_killed_is_not_its_children(void **state)
{
	struct answer a;
	pid_t child;

	(void)state;
	both_do("sum 0");
	both_do("wait");
	tell(1, "fork");
	a = hear(1);
	child = (pid_t)atoi(a.err.msg);
	assert_true(!a.code && child > 1);
	one_does(0, "sum 1");
	kill(process[1].pid, SIGKILL);
	waitpid(process[1].pid, NULL, 0);
	process[1].pid = 0;
	tell(0, "wait");
	expect_error(0, "process 1");
	assert_int_equal(kill(child, SIGKILL), 0);
}

/* It ends while the other has not launched for the first time: that does not wait for long. */
static void one_that_ends_is_not_waited_for(void **state)
{
	int64_t began;
	struct answer a;
	int status;

	(void)state;
	tell(1, "quit");
	waitpid(process[1].pid, &status, 0);
	process[1].pid = 0;
	began = clock_ns();
	tell(0, "sum 1");
	a = hear(0);
	if (!a.code || !strstr(a.err.msg, "process 1") || !strstr(a.err.msg, "ended"))
		fail_msg("process 0: %d: %s", a.code, a.err.msg);
	assert_true(clock_ns() - began < SECOND);
	one_does(0, "alone 4");
	one_does(0, "wait_alone");
}

static void one_that_left_fails_who_waits_for_it(void **state)
{
	(void)state;
	both_do("sum 0");
	both_do("wait");
	one_does(0, "sum 1");
	one_does(1, "leave");
	tell(0, "wait");
	expect_error(0, "process 1");
	tell(0, "sum 2");
	expect_error(0, "where others wait for it: its function has returned");
	/* Nor does it take note that process 0 began anew. */
	tell(0, "sum 3");
	expect_error(0, "its function has returned");
	one_does(0, "alone 4");
	one_does(0, "wait_alone");
}

static void one_that_left_may_come_again(void **state)
{
	(void)state;
	one_does(1, "leave");
	one_does(1, "sum 1");
	one_does(0, "sum 1");
	both_do("wait");
}

/* As behind a barrier, from which process 1 comes later. */
static void those_that_left_together_go_on(void **state)
{
	(void)state;
	both_do("sum 0");
	both_do("wait");
	both_do("leave");
	one_does(0, "return");
	one_does(0, "sum 1");
	poll(NULL, 0, 300);
	one_does(1, "return");
	one_does(1, "sum 1");
	both_do("wait");
	one_does(0, "sum 2");	/* first, for who has left may fail the launch itself */
	one_does(1, "leave");
	tell(0, "wait");
	expect_error(0, "process 1");
}

/* One has failed, or its device: the other hears of it in the middle of a launch. */
static void fails_in_the_middle(const char *what)
{
	int64_t began;

	both_do("sum 0");
	both_do("wait");
	one_does(0, "sum 1");
	one_does(1, what);
	began = clock_ns();
	tell(0, "wait");
	expect_error(0, "process 1");
	assert_true(clock_ns() - began < 2 * SECOND);
}

static void a_device_that_is_reset_meets_again(void **state)
{
	(void)state;
	fails_in_the_middle("reset");
	run_again();
}

static void a_device_that_died_meets_again_when_it_is_reset(void **state)
{
	(void)state;
	fails_in_the_middle("fatal");
	for (unsigned i = 0; i < 2; i++) {
		tell(1, "sum 2");
		expect_error(1, "");
	}
	one_does(1, "reset");
	run_again();
}

/* Process 0's launch still waits for its argument when process 1 begins anew. */
static void what_was_put_off_before_a_failure_never_begins(void **state)
{
	(void)state;
	both_do("sum 0");
	both_do("wait");
	one_does(0, "later 1");
	one_does(1, "sum 1");
	one_does(1, "reset");
	tell(1, "retry 8");
	one_does(0, "broken");
	one_does(0, "retry 8");
	expect_ok(1);
	one_does(0, "now 1");
	tell(0, "wait");
	expect_error(0, "began anew");
	tell(1, "wait");
	expect_error(1, "");
	both_do("sum 9");
	both_do("wait");
}

static void those_that_are_left_meet_again(void **state)
{
	struct answer a[2];
	int64_t began;

	(void)state;
	for (unsigned p = 0; p < 3; p++)
		one_does(p, "all 0");
	for (unsigned p = 0; p < 3; p++)
		one_does(p, "wait");
	both_do("all 1");
	both_do("sum 2");
	kill(process[2].pid, SIGKILL);
	waitpid(process[2].pid, NULL, 0);
	process[2].pid = 0;
	began = clock_ns();
	for (unsigned p = 0; p < 2; p++)
		tell(p, "wait");
	for (unsigned p = 0; p < 2; p++)
		a[p] = hear(p);
	assert_true(clock_ns() - began < 2 * SECOND);
	/* Each by the one that it hears of first. */
	for (unsigned p = 0; p < 2; p++)
		if (!a[p].code || !strstr(a[p].err.msg, "process "))
			fail_msg("process %u: %d: %s", p, a[p].code, a[p].err.msg);
	assert_true(strstr(a[0].err.msg, "process 2") || strstr(a[1].err.msg, "process 2"));
	run_again();
	for (unsigned p = 0; p < 2; p++) {
		tell(p, "all 3");
		expect_error(p, "process 2");
	}
	both_do("sum 4");
	both_do("wait");
}

/* It waits for one that waits for the one that is killed, which it has never met. */
static void who_hears_of_a_failure_by_another_hears_whose_it_is(void **state)
{
	struct answer a;

	(void)state;
	both_do("sum 0");
	both_do("wait");
	one_does(1, "last 1");
	one_does(1, "sum 2");
	one_does(0, "sum 2");
	kill(process[2].pid, SIGKILL);
	waitpid(process[2].pid, NULL, 0);
	process[2].pid = 0;
	tell(0, "wait");
	a = hear(0);
	if (!a.code || !strstr(a.err.msg, "process 2"))
		fail_msg("process 0: %d: %s", a.code, a.err.msg);
	tell(1, "wait");
	expect_error(1, "process 2");
	run_again();
}

/* The store that the others joined by is process 0's. */
static void the_first_process_ends_last(void **state)
{
	struct pollfd first = { .fd = process[0].fd, .events = POLLIN };

	(void)state;
	both_do("sum 1");
	both_do("wait");
	tell(0, "settle");
	one_does(1, "settle");
	assert_int_equal(poll(&first, 1, 100), 0);
	tell(1, "quit");
	waitpid(process[1].pid, NULL, 0);
	process[1].pid = 0;
	expect_ok(0);
}

static int start(void **state)
{
	(void)state;
	return server_start(&server);
}

static int stop(void **state)
{
	(void)state;
	return server_stop(&server, SIGTERM) ? -1 : 0;
}

#define JOB(name) cmocka_unit_test_setup_teardown(name, start_job, stop_job)

int main(void)
{
	const struct CMUnitTest tests[] = {
		JOB(sums_are_right_run_after_run),
		JOB(a_program_that_is_loaded_again_goes_on),
		JOB(what_was_compiled_for_one_process_is_compiled_again),
		JOB(replicas_meet_that_were_compiled_apart),
		JOB(what_is_put_off_keeps_its_place),
		JOB(another_order_is_an_error_in_both),
		JOB(what_one_can_not_launch_fails_in_both),
		JOB(what_both_can_not_launch_harms_nothing),
		JOB(one_that_is_killed_fails_the_other_by_name),
		JOB(one_that_is_killed_is_not_its_children),
		JOB(one_that_left_fails_who_waits_for_it),
		JOB(one_that_left_may_come_again),
		JOB(those_that_left_together_go_on),
		JOB(one_that_ends_is_not_waited_for),
		JOB(the_first_process_ends_last),
		JOB(a_device_that_is_reset_meets_again),
		JOB(a_device_that_died_meets_again_when_it_is_reset),
		JOB(what_was_put_off_before_a_failure_never_begins),
		cmocka_unit_test_setup_teardown(those_that_are_left_meet_again, start_job_of_three,
						stop_job),
		cmocka_unit_test_setup_teardown(
			who_hears_of_a_failure_by_another_hears_whose_it_is, start_job_of_three,
			stop_job),
	};

	return cmocka_run_group_tests(tests, start, stop);
}
