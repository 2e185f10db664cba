/* SPDX-License-Identifier: Apache-2.0 */
/* Traces of a process's devices: planes, lines, events and their words, as a reader of XSpace finds
 * them; clients that come and go meanwhile. */
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "runtime/rt_internal.h"
#include "runtime/xspace.pb-c.h"
#include "tests/unit/against_eval.h"

#define LIST(n) "%8 = constant() {value = dense<" n "> : tensor<1xi64>} : tensor<1xi64>\n"
/* Random numbers: nothing of it is known when it is compiled. */
static const char program[] = PROGRAM("",
	"%0 = constant() {value = dense<0x00000040> : tensor<f32>} : tensor<f32>\n"
	"%1 = constant() {value = dense<0x0000a040> : tensor<f32>} : tensor<f32>\n"
	LIST("0x0010000000000000")
	"%3 = rng(%0, %1, %8) {rng_distribution = <1>} : tensor<4096xf32>\nreturn(%3)\n");
static const char on_device_1[] =
	"\x1a\x0f\x20\x01\x28\x01\x4a\x09\x08\x01\x10\x01\x1a\x03\x0a\x01\x01";

static Xspace__Space *space;

static struct rt_client *client_of(const char *devices)
{
	struct rt_client *c;
	struct err err;

	if (rt_client_create(&(struct rt_client_options){ .devices = devices }, &c, &err))
		fail_msg("%s", err.msg);
	return c;
}

static void run(struct rt_client *c, unsigned device)
{
	struct rt_buffer *out;
	struct rt_event *done;
	struct rt_exe *x;
	struct err err;

	if (rt_compile(c, program, strlen(program), "mlir", device ? on_device_1 : NULL,
		       device ? sizeof(on_device_1) - 1 : 0, &x, &err) ||
	    rt_execute(x, NULL, 0, NULL, &out, &done, &err) || rt_event_wait(done, &err))
		fail_msg("%s", err.msg);
	rt_event_unref(done);
	rt_buffer_unref(out);
	rt_exe_unref(x);
}

static struct rt_trace *start(void)
{
	struct rt_trace *t;
	struct err err;

	if (rt_trace_start(&t, &err))
		fail_msg("%s", err.msg);
	return t;
}

static void drop(void)
{
	if (space)
		xspace__space__free_unpacked(space, NULL);
	space = NULL;
}

/* How many planes. */
static size_t stop(struct rt_trace *t)
{
	struct err err;
	size_t bytes;
	void *p;

	drop();
	if (rt_trace_stop(t, &p, &bytes, &err))
		fail_msg("%s", err.msg);
	assert_true(!p == !bytes);
	space = xspace__space__unpack(NULL, bytes, p ? p : (void *)"");
	free(p);
	assert_non_null(space);
	return space->n_planes;
}

/* The caller's, until xspace__plane__free_unpacked. */
static Xspace__Plane *plane_at(size_t i)
{
	Xspace__Plane *p;

	assert_true(i < space->n_planes);
	p = xspace__plane__unpack(NULL, space->planes[i].len, space->planes[i].data);
	assert_non_null(p);
	return p;
}

static Xspace__Line *line_at(const Xspace__Plane *p, size_t i)
{
	Xspace__Line *l = xspace__line__unpack(NULL, p->lines[i].len, p->lines[i].data);

	assert_non_null(l);
	assert_int_equal(l->id, i + 1);
	return l;
}

static const char *name_of(const Xspace__Plane *p, const Xspace__Event *e)
{
	for (size_t i = 0; i < p->n_event_metadata; i++)
		if (p->event_metadata[i]->key == e->metadata_id)
			return p->event_metadata[i]->value->name;
	fail_msg("an event without metadata");
	return NULL;
}

static const char *text_of(const Xspace__Plane *p, int64_t id)
{
	for (size_t i = 0; i < p->n_stat_metadata; i++)
		if (p->stat_metadata[i]->key == id)
			return p->stat_metadata[i]->value->name;
	fail_msg("a stat without metadata");
	return NULL;
}

/* The text of an event's stat; NULL: it has none of this name. */
static const char *stat_of(const Xspace__Plane *p, const Xspace__Event *e, const char *name)
{
	for (size_t i = 0; i < e->n_stats; i++)
		if (!strcmp(text_of(p, e->stats[i]->metadata_id), name))
			return e->stats[i]->has_ref_value ?
				text_of(p, (int64_t)e->stats[i]->ref_value) : "";
	return NULL;
}

static int64_t real_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* How many runs a plane tells of, each with its operations in it. */
static size_t runs_of(size_t at, const char *name)
{
	Xspace__Plane *p = plane_at(at);
	Xspace__Line *modules = line_at(p, 0), *ops = line_at(p, 1);
	size_t n = modules->n_events;

	assert_string_equal(p->name, name);
	assert_int_equal(p->n_lines, 3);
	assert_string_equal(modules->name, "XLA Modules");
	assert_string_equal(ops->name, "XLA Ops");
	assert_int_equal(modules->timestamp_ns, ops->timestamp_ns);
	for (size_t i = 0; i < n; i++) {
		assert_string_equal(name_of(p, modules->events[i]), "main");
		assert_string_equal(stat_of(p, modules->events[i], "hlo_module"), "main");
		assert_non_null(stat_of(p, modules->events[i], "program_id"));
	}
	assert_true(!n == !ops->n_events);
	for (size_t i = 0; i < ops->n_events; i++) {
		const Xspace__Event *e = ops->events[i];
		unsigned within = 0;

		assert_string_equal(stat_of(p, e, "hlo_op"), name_of(p, e));
		assert_string_equal(stat_of(p, e, "hlo_module"), "main");
		for (size_t k = 0; k < n; k++)
			within += e->offset_ps >= modules->events[k]->offset_ps &&
				e->offset_ps + e->duration_ps <= modules->events[k]->offset_ps +
				modules->events[k]->duration_ps;
		assert_int_equal(within, 1);
	}
	xspace__line__free_unpacked(modules, NULL);
	xspace__line__free_unpacked(ops, NULL);
	xspace__plane__free_unpacked(p, NULL);
	return n;
}

static void each_device_has_its_plane(void **state)
{
	struct rt_client *c = client_of("sim:devices=2,hbm=32M");
	struct rt_trace *t;

	(void)state;
	run(c, 0);	/* before it */
	t = start();
	run(c, 0);
	run(c, 1);
	run(c, 1);
	assert_int_equal(stop(t), 2);
	assert_int_equal(runs_of(0, "/device:CUSTOM:TESSERA:0"), 1);
	assert_int_equal(runs_of(1, "/device:CUSTOM:TESSERA:1"), 2);
	assert_int_equal(space->n_warnings, 0);
	rt_client_unref(c);
}

/* By how many ns a session has a run outside of the time in which it was made. */
static int64_t off_the_wall(struct rt_client *c)
{
	struct rt_trace *t = start();
	int64_t before = real_ns(), after, begin, end;
	Xspace__Plane *p;
	Xspace__Line *l;

	run(c, 0);
	after = real_ns();
	stop(t);
	p = plane_at(0);
	l = line_at(p, 0);
	assert_true(l->timestamp_ns <= before);
	begin = l->timestamp_ns + l->events[0]->offset_ps / 1000;
	end = begin + l->events[0]->duration_ps / 1000;
	assert_true(l->duration_ps >= (after - before) * 1000);
	xspace__line__free_unpacked(l, NULL);
	xspace__plane__free_unpacked(p, NULL);
	return before - begin > end - after ? before - begin : end - after;
}

static void times_are_those_of_the_wall(void **state)
{
	struct rt_client *c = client_of("sim:hbm=32M");
	bool is_right = false;

	(void)state;
	/* Other work of the host may hold a look at the clocks up, but not each. */
	for (unsigned i = 0; i < 100 && !is_right; i++)
		is_right = off_the_wall(c) <= 100000;
	assert_true(is_right);
	rt_client_unref(c);
}

static void one_after_the_other_hears_its_own(void **state)
{
	struct rt_client *c = client_of("sim:hbm=32M");
	struct rt_trace *t, *other;
	struct err err;

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		t = start();
		assert_int_equal(rt_trace_start(&other, &err), ERR_FAILED_PRECONDITION);
		assert_non_null(strstr(err.msg, "runs already"));
		for (unsigned k = 0; k < i; k++)
			run(c, 0);
		assert_int_equal(stop(t), 1);
		assert_int_equal(runs_of(0, "/device:CUSTOM:TESSERA:0"), i);
		run(c, 0);	/* nobody's */
	}
	rt_client_unref(c);
	t = start();
	assert_int_equal(stop(t), 0);
}

static void clients_come_and_go(void **state)
{
	struct rt_trace *t = start();
	struct rt_client *a = client_of("sim:hbm=32M"), *b = client_of("sim:hbm=32M");

	(void)state;
	run(a, 0);
	run(b, 0);
	run(b, 0);
	rt_client_unref(a);
	assert_int_equal(stop(t), 2);
	assert_int_equal(runs_of(0, "/device:CUSTOM:TESSERA:0"), 1);
	assert_int_equal(runs_of(1, "/device:CUSTOM:TESSERA:0 (client 2)"), 2);
	rt_client_unref(b);
}

/* Another one has the device's trace. */
static void what_cant_be_traced_is_told(void **state)
{
	struct rt_client *c = client_of("sim:devices=2,hbm=32M");
	struct hal_trace *taken;
	struct rt_trace *t;

	(void)state;
	assert_int_equal(hal_trace_start(c->devices[1].hal, NULL), 0);
	t = start();
	run(c, 0);
	run(c, 1);
	assert_int_equal(stop(t), 1);
	/* And stays his. */
	assert_int_equal(hal_trace_stop(c->devices[1].hal, &taken, NULL), 0);
	assert_true(taken->n_records >= 2);
	hal_trace_free(taken);
	assert_int_equal(runs_of(0, "/device:CUSTOM:TESSERA:0"), 1);
	assert_int_equal(space->n_warnings, 1);
	assert_non_null(strstr(space->warnings[0], "sim:1: sim:1 is traced already"));
	rt_client_unref(c);
}

/* A child of fork has no devices, but may have a profiler. */
static void a_child_has_a_trace_of_its_own(void **state)
{
	struct rt_client *c = client_of("sim:hbm=32M");
	struct rt_trace *t = start(), *of_child;
	int status = -1;
	size_t bytes;
	void *p;
	pid_t pid;

	(void)state;
	run(c, 0);
	pid = fork();
	if (!pid) {
		alarm(60);
		if (rt_trace_start(&of_child, NULL) ||
		    rt_trace_stop(of_child, &p, &bytes, NULL) || bytes ||
		    rt_trace_stop(t, &p, &bytes, NULL) || bytes)
			_exit(1);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status) && !WEXITSTATUS(status));
	assert_int_equal(stop(t), 1);
	assert_int_equal(runs_of(0, "/device:CUSTOM:TESSERA:0"), 1);
	rt_client_unref(c);
}

static int setup(void **state)
{
	(void)state;
	return setenv("TESSERA_CACHE", "off", 1);
}

static int teardown(void **state)
{
	(void)state;
	drop();
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_device_has_its_plane),
		cmocka_unit_test(times_are_those_of_the_wall),
		cmocka_unit_test(one_after_the_other_hears_its_own),
		cmocka_unit_test(clients_come_and_go),
		cmocka_unit_test(what_cant_be_traced_is_told),
		cmocka_unit_test(a_child_has_a_trace_of_its_own),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
