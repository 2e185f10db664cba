/* SPDX-License-Identifier: Apache-2.0 */
/* Life and threads through the table: clients that end before what they made, work from
 * several threads at once, objects that die inside callbacks. */
#include <pthread.h>
#include <sched.h>

#include "tests/unit/pjrt/pjrt_test.h"

enum { N_THREADS = 4 };

/* Rounds of a test, fewer where a tool makes everything slow (TESSERA_TEST_ROUNDS). */
static int rounds(int n)
{
	const char *most = getenv("TESSERA_TEST_ROUNDS");

	return most && atoi(most) < n ? atoi(most) : n;
}

static struct PJRT_Buffer *zeros(struct PJRT_Client *c, int64_t n)
{
	float *data = calloc((size_t)n, sizeof(*data));
	struct PJRT_Buffer *b;

	assert_non_null(data);
	b = put_floats(c, data, n);
	free(data);
	return b;
}

/* ---- clients ---- */

static void clients_come_and_go_with_live_objects(void **state)
{
	(void)state;
	for (int i = 0; i < rounds(100); i++) {
		struct PJRT_Client *c = new_client("devices=2,hbm=64M,lanes=2");
		struct PJRT_LoadedExecutable *x = compile_on(c, "loop.mlirbc", i % 2);
		struct PJRT_Executable *shared = GET(LoadedExecutable_GetExecutable, executable,
						     .loaded_executable = x);
		struct PJRT_Buffer *in = zeros(c, 4096), *other = NULL, *out;
		struct PJRT_Event *done, *ready;

		if (i % 2) {
			other = in;
			in = GET(Buffer_CopyToDevice, dst_buffer, .buffer = other,
				 .dst_device = device_of(c, 1));
		}
		assert_ok(run_exe(x, &in, 1, &out, &done));
		ready = GET(Buffer_ReadyEvent, event, .buffer = out);
		/* In every order: the client first, last, or in between. */
		if (i % 3 == 0)
			drop_client(c);
		drop_buffer(in);
		if (other)
			drop_buffer(other);
		if (i % 3 == 1)
			drop_client(c);
		drop_exe(x);
		if (i % 4 == 0)
			assert_ok(finish(done));
		else
			drop_event(done);
		drop_buffer(out);
		drop_event(ready);
		if (i % 3 == 2)
			drop_client(c);
		assert_ok(CALL(Executable_Destroy, .executable = shared));
	}
}

static void a_client_ends_while_work_is_pending(void **state)
{
	(void)state;
	for (int i = 0; i < rounds(20); i++) {
		struct PJRT_Client *c = new_client("hbm=64M,lanes=2");
		struct PJRT_LoadedExecutable *x = compile_on(c, "loop.mlirbc", 0);
		struct PJRT_Buffer *b = zeros(c, 4096), *out;
		struct PJRT_Event *done = NULL;

		for (int k = 0; k < 5; k++) {
			if (done)
				drop_event(done);
			assert_ok(run_exe(x, &b, 1, &out, &done));
			drop_buffer(b);
			b = out;
		}
		drop_buffer(b);
		drop_exe(x);
		drop_client(c);
		assert_ok(finish(done));
	}
}

/* What queued work reads and writes stays its own, however soon its buffers go: the next
 * ones of their size would lie in the same place. */
static void memory_in_use_is_not_given_away(void **state)
{
	struct PJRT_Client *c = new_client("hbm=64M,lanes=2");
	struct PJRT_LoadedExecutable *slow = compile_on(c, "loop.mlirbc", 0);
	struct PJRT_LoadedExecutable *x = compile_on(c, "scale_add.mlirbc", 0);
	float data[16], other[16], back[16];
	struct PJRT_Buffer *busy = zeros(c, 4096), *in[2], *later[4], *out, *gone, *loops[4];

	(void)state;
	for (int i = 0; i < 16; i++) {
		data[i] = (float)i;
		other[i] = -1;
	}
	for (int round = 0; round < rounds(20); round++) {
		in[0] = put_floats(c, data, 16);
		in[1] = put_floats(c, data, 16);
		for (int i = 0; i < 4; i++)
			assert_ok(run_exe(slow, &busy, 1, &loops[i], NULL));
		assert_ok(run_exe(x, in, 2, &gone, NULL));
		assert_ok(run_exe(x, in, 2, &out, NULL));
		/* One result goes before it is made: what comes there must not change. */
		drop_buffer(gone);
		drop_buffer(in[0]);
		drop_buffer(in[1]);
		for (int i = 0; i < 4; i++)
			later[i] = put_floats(c, other, 16);
		assert_ok(fetch(out, back, sizeof(back)));
		for (int i = 0; i < 16; i++)
			assert_true(back[i] == 3.0f * (float)i);
		for (int i = 0; i < 4; i++) {
			assert_ok(fetch(later[i], back, sizeof(back)));
			assert_memory_equal(back, other, sizeof(other));
			drop_buffer(later[i]);
			drop_buffer(loops[i]);
		}
		drop_buffer(out);
	}
	drop_buffer(busy);
	drop_exe(x);
	drop_exe(slow);
	drop_client(c);
}

/* v -> (v v^T) v, for 4,000 elements: 64 MB are written and read. */
static struct PJRT_LoadedExecutable *compile_long(struct PJRT_Client *c)
{
	static char text[] = "module() {sym_name = \"long\"} () {\n"
		"  func() {sym_name = \"main\"} (%0: tensor<4000xf32>) {\n"
		"    %1 = dot_general(%0, %0) {lhs_batching_dimensions = [], "
		"lhs_contracting_dimensions = [], precision_config = [0, 0], "
		"rhs_batching_dimensions = [], rhs_contracting_dimensions = []} : "
		"tensor<4000x4000xf32>\n"
		"    %2 = dot_general(%1, %0) {lhs_batching_dimensions = [], "
		"lhs_contracting_dimensions = [1], precision_config = [0, 0], "
		"rhs_batching_dimensions = [], rhs_contracting_dimensions = [0]} : "
		"tensor<4000xf32>\n    return(%2)\n  }\n}\n";
	struct PJRT_Program p = program_of((struct bytes){ text, strlen(text) });

	return GET(Client_Compile, executable, .client = c, .program = &p);
}

/* Halves a vector of 4 while its first element is below 2. */
static struct PJRT_LoadedExecutable *compile_endless(struct PJRT_Client *c)
{
	static char text[] = "module() {sym_name = \"endless\"} () {\n"
		"  func() {sym_name = \"main\"} (%2: tensor<4xf32>) {\n"
		"    %4 = constant() {value = dense<0x0000003f> : tensor<f32>} : tensor<f32>\n"
		"    %6 = constant() {value = dense<0x00000040> : tensor<f32>} : tensor<f32>\n"
		"    %8 = while(%2) : tensor<4xf32> (%9: tensor<4xf32>) {\n"
		"      %11 = slice(%9) {limit_indices = [1], start_indices = [0], "
		"strides = [1]} : tensor<1xf32>\n"
		"      %13 = reshape(%11) : tensor<f32>\n"
		"      %15 = compare(%13, %6) {compare_type = <FLOAT>, "
		"comparison_direction = <LT>} : tensor<i1>\n"
		"      return(%15)\n"
		"    } (%17: tensor<4xf32>) {\n"
		"      %19 = broadcast_in_dim(%4) {broadcast_dimensions = []} : tensor<4xf32>\n"
		"      %21 = multiply(%17, %19) : tensor<4xf32>\n"
		"      return(%21)\n    }\n    return(%8)\n  }\n}\n";
	struct PJRT_Program p = program_of((struct bytes){ text, strlen(text) });

	return GET(Client_Compile, executable, .client = c, .program = &p);
}

/* Whatever was queued behind work that fails has failed: its results are not made. */
static void work_behind_work_that_fails_fails(void **state)
{
	struct PJRT_LoadedExecutable *slow, *x;
	struct PJRT_Buffer *v, *in[2], *lost, *out[2], *late;
	float data[16] = { 1 }, back[16];
	struct PJRT_Event *done[2], *late_done;
	struct PJRT_Client *c;

	(void)state;
	setenv("TESSERA_LIMIT_MS", "500", 1);
	c = new_client("hbm=64M,lanes=2");
	unsetenv("TESSERA_LIMIT_MS");
	slow = compile_endless(c);
	x = compile_on(c, "scale_add.mlirbc", 0);
	in[0] = in[1] = put_floats(c, data, 16);
	/* One behind it, and two. */
	for (int n = 1; n <= 2; n++) {
		v = zeros(c, 4);
		assert_ok(run_exe(slow, &v, 1, &lost, NULL));
		for (int i = 0; i < n; i++)
			assert_ok(run_exe(x, in, 2, &out[i], &done[i]));
		assert_error(fetch(lost, back, sizeof(back)),
			     PJRT_Error_Code_DEADLINE_EXCEEDED, "endless");
		/* What takes such a result later has its error. */
		assert_ok(run_exe(x, (struct PJRT_Buffer *[]){ in[0], out[0] }, 2, &late,
				  &late_done));
		assert_error(finish(late_done), PJRT_Error_Code_ABORTED, "endless");
		assert_error(fetch(late, back, sizeof(back)), PJRT_Error_Code_ABORTED,
			     "queued behind");
		drop_buffer(late);
		for (int i = 0; i < n; i++) {
			assert_error(fetch(out[i], back, sizeof(back)),
				     PJRT_Error_Code_ABORTED, "queued behind");
			assert_error(finish(done[i]), PJRT_Error_Code_ABORTED, "endless");
			drop_buffer(out[i]);
		}
		drop_buffer(lost);
		drop_buffer(v);
	}
	/* And the next one runs. */
	assert_ok(run_exe(x, in, 2, &out[0], NULL));
	assert_ok(fetch(out[0], back, sizeof(back)));
	assert_true(back[0] == 3 && back[1] == 0);
	drop_buffer(out[0]);
	drop_buffer(in[0]);
	drop_exe(x);
	drop_exe(slow);
	drop_client(c);
}

/* An executable may go while its runs are queued: nobody waits, and they run. */
static void an_executable_goes_before_its_runs(void **state)
{
	enum { N = 20 };
	struct PJRT_Client *c = new_client("hbm=256M,lanes=2");
	struct PJRT_LoadedExecutable *x = compile_long(c);
	struct PJRT_Buffer *v = zeros(c, 4000), *out[N];
	struct PJRT_Event *done[N];
	float back[4000];

	(void)state;
	for (int i = 0; i < N; i++)
		assert_ok(run_exe(x, &v, 1, &out[i], &done[i]));
	drop_exe(x);
	assert_false(GET(Event_IsReady, is_ready, .event = done[N - 1]));
	drop_buffer(v);
	for (int i = 0; i < N; i++) {
		assert_ok(fetch(out[i], back, sizeof(back)));
		assert_ok(finish(done[i]));
		drop_buffer(out[i]);
	}
	drop_client(c);
}

/* ---- dying in callbacks ---- */

struct last {
	struct PJRT_Buffer *buffer;
	struct PJRT_Event *event;
	int error;
	int done;
};

static void drop_the_last(struct PJRT_Error *e, void *arg)
{
	struct last *l = arg;

	l->error = error_code(e);
	drop_error(e);
	/* Nothing else holds the client: it ends from this thread. */
	if (CALL(Buffer_Destroy, .buffer = l->buffer) || CALL(Event_Destroy, .event = l->event))
		l->error = -1;
	__atomic_store_n(&l->done, 1, __ATOMIC_RELEASE);
}

static void the_last_object_may_die_in_a_callback(void **state)
{
	(void)state;
	for (int i = 0; i < rounds(30); i++) {
		struct PJRT_Client *c = new_client("hbm=64M,lanes=2");
		struct PJRT_LoadedExecutable *x = compile_on(c, "loop.mlirbc", 0);
		struct PJRT_Buffer *in = zeros(c, 4096);
		struct last l = { 0 };
		struct PJRT_Event *done;

		assert_ok(run_exe(x, &in, 1, &l.buffer, &done));
		l.event = GET(Buffer_ReadyEvent, event, .buffer = l.buffer);
		drop_event(done);
		drop_buffer(in);
		assert_ok(CALL(Event_OnReady, .event = l.event,
			       .callback = (void *)drop_the_last, .user_arg = &l));
		drop_exe(x);
		drop_client(c);
		while (!__atomic_load_n(&l.done, __ATOMIC_ACQUIRE))
			sched_yield();
		assert_int_equal(l.error, 0);
	}
}


static void the_last_object_may_die_in_a_fetch(void **state)
{
	(void)state;
	for (int i = 0; i < rounds(30); i++) {
		struct PJRT_Client *c = new_client("hbm=64M,lanes=2");
		struct PJRT_LoadedExecutable *x = compile_on(c, "loop.mlirbc", 0);
		struct PJRT_Buffer *in = zeros(c, 4096);
		float *back = calloc(4096, sizeof(*back));
		struct last l = { 0 };

		assert_ok(run_exe(x, &in, 1, &l.buffer, NULL));
		l.event = GET(Buffer_ToHostBuffer, event, .src = l.buffer, .dst = back,
			      .dst_size = 4096 * sizeof(*back));
		drop_buffer(in);
		drop_exe(x);
		drop_client(c);
		assert_ok(CALL(Event_OnReady, .event = l.event,
			       .callback = (void *)drop_the_last, .user_arg = &l));
		while (!__atomic_load_n(&l.done, __ATOMIC_ACQUIRE))
			sched_yield();
		assert_int_equal(l.error, 0);
		assert_true(back[4095] > 800 && back[4095] < 1000);
		free(back);
	}
}

/* ---- threads ---- */

struct worker {
	struct PJRT_Client *client;
	struct PJRT_LoadedExecutable *add, *donating;
	int id, n_rounds;
	const char *problem;
};

/* cmocka's checks belong to the main thread: workers report. */
#define TRY(call) do { \
	struct PJRT_Error *try_ = (call); \
	if (try_) { \
		drop_error(try_); \
		w->problem = #call; \
		return NULL; \
	} \
} while (0)

static struct PJRT_Buffer *put_quietly(struct PJRT_Client *c, const float *data)
{
	struct PJRT_Client_BufferFromHostBuffer_Args a;
	int64_t n = 16;

	if (CALL_AS(&a, Client_BufferFromHostBuffer, .client = c, .data = data,
		    .type = PJRT_Buffer_Type_F32, .dims = &n, .num_dims = 1))
		return NULL;
	CALL(Event_Destroy, .event = a.done_with_host_buffer);
	return a.buffer;
}

/* Chains of launches, each donating what the one before made, fetched at the end. */
static void *run_chains(void *arg)
{
	struct worker *w = arg;
	float data[16], back[16], want;

	for (int round = 0; round < w->n_rounds; round++) {
		struct PJRT_Buffer *in[2], *out;
		struct PJRT_Event *done;
		struct PJRT_Buffer_ToHostBuffer_Args get;

		for (int i = 0; i < 16; i++)
			data[i] = (float)(w->id + round % 7);
		want = data[0];
		in[0] = put_quietly(w->client, data);
		in[1] = put_quietly(w->client, data);
		for (int k = 0; k < 4; k++) {
			want = 2 * want + data[0];
			TRY(run_exe(k % 2 ? w->donating : w->add, in, 2, &out, &done));
			TRY(CALL(Event_Destroy, .event = done));
			TRY(CALL(Buffer_Destroy, .buffer = in[0]));
			in[0] = out;
		}
		TRY(CALL_AS(&get, Buffer_ToHostBuffer, .src = out, .dst = back,
			    .dst_size = sizeof(back)));
		TRY(CALL(Buffer_Destroy, .buffer = out));
		TRY(CALL(Buffer_Destroy, .buffer = in[1]));
		TRY(CALL(Event_Await, .event = get.event));
		TRY(CALL(Event_Destroy, .event = get.event));
		for (int i = 0; i < 16; i++)
			if (back[i] != want)
				w->problem = "a chain gave a wrong number";
	}
	return NULL;
}

static void *compile_and_run(void *arg)
{
	struct worker *w = arg;
	struct bytes b = read_bytes("scale_add.mlirbc");
	struct PJRT_Program p = program_of(b);
	struct PJRT_Client_Compile_Args a;

	for (int round = 0; round < w->n_rounds / 10 + 1; round++) {
		struct worker own = *w;

		TRY(CALL_AS(&a, Client_Compile, .client = w->client, .program = &p));
		own.add = a.executable;
		own.n_rounds = 2;
		run_chains(&own);
		if (own.problem)
			w->problem = own.problem;
		TRY(CALL(LoadedExecutable_Destroy, .executable = a.executable));
	}
	free(b.p);
	return NULL;
}

static void threads_work_on_one_client(void **state)
{
	struct PJRT_Client *c = new_client("hbm=64M,lanes=2");
	struct PJRT_LoadedExecutable *add = compile_on(c, "scale_add.mlirbc", 0);
	struct PJRT_LoadedExecutable *donating = compile_on(c, "scale_add_donated.mlirbc", 0);
	struct worker w[N_THREADS];
	pthread_t threads[N_THREADS];
	int64_t in_use = GET(Device_MemoryStats, bytes_in_use, .device = device_of(c, 0));

	(void)state;
	for (int i = 0; i < N_THREADS; i++) {
		w[i] = (struct worker){ c, add, donating, i, rounds(300), NULL };
		assert_int_equal(pthread_create(&threads[i], NULL, i == N_THREADS - 1 ?
						compile_and_run : run_chains, &w[i]), 0);
	}
	for (int i = 0; i < N_THREADS; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < N_THREADS; i++)
		if (w[i].problem) {
			print_error("thread %d: %s\n", i, w[i].problem);
			fail();
		}
	assert_int_equal(GET(Device_MemoryStats, bytes_in_use, .device = device_of(c, 0)),
			 in_use);
	drop_exe(add);
	drop_exe(donating);
	drop_client(c);
}

static void *own_client(void *arg)
{
	struct worker *w = arg;

	for (int i = 0; i < w->n_rounds; i++) {
		struct PJRT_NamedValue o = {
			.struct_size = PJRT_NamedValue_SIZE, .name = "devices", .name_size = 7,
			.type = PJRT_NamedValue_kString, .string_value = "sim:hbm=64M,lanes=1",
			.value_size = 19 };
		struct PJRT_Client_Create_Args a;
		float data[16] = { 0 };
		struct PJRT_Buffer *b;

		TRY(CALL_AS(&a, Client_Create, .create_options = &o, .num_options = 1));
		b = put_quietly(a.client, data);
		if (!b)
			w->problem = "no buffer";
		TRY(CALL(Client_Destroy, .client = a.client));
		TRY(CALL(Buffer_Destroy, .buffer = b));
	}
	return NULL;
}

static void threads_have_clients_of_their_own(void **state)
{
	struct worker w[N_THREADS];
	pthread_t threads[N_THREADS];

	(void)state;
	for (int i = 0; i < N_THREADS; i++) {
		w[i] = (struct worker){ .n_rounds = rounds(10) };
		assert_int_equal(pthread_create(&threads[i], NULL, own_client, &w[i]), 0);
	}
	for (int i = 0; i < N_THREADS; i++) {
		pthread_join(threads[i], NULL);
		if (w[i].problem)
			fail_msg("thread %d: %s", i, w[i].problem);
	}
}

/* What the first launch of a client with this seed draws. */
static void draw(int64_t seed, uint64_t *to)
{
	static char text[] = "module() () {\nfunc() {sym_name = \"main\"} () {\n"
			     "%0 = tc.draw() : tensor<2xui64>\nreturn(%0)\n}\n}\n";
	struct PJRT_NamedValue o[] = {
		{ .struct_size = PJRT_NamedValue_SIZE, .name = "devices", .name_size = 7,
		  .type = PJRT_NamedValue_kString, .string_value = "sim:hbm=16M",
		  .value_size = 11 },
		{ .struct_size = PJRT_NamedValue_SIZE, .name = "rng_seed", .name_size = 8,
		  .type = PJRT_NamedValue_kInt64, .int64_value = seed, .value_size = 1 },
	};
	struct PJRT_Program p = program_of((struct bytes){ text, sizeof(text) - 1 });
	struct PJRT_Client *c = GET(Client_Create, client, .create_options = o,
				    .num_options = 2);
	struct PJRT_LoadedExecutable *x;
	struct PJRT_Buffer *out;
	char options[32];
	size_t n = options_for(0, options);

	x = GET(Client_Compile, executable, .client = c, .program = &p,
		.compile_options = options, .compile_options_size = n);
	assert_ok(run_exe(x, NULL, 0, &out, NULL));
	assert_ok(fetch(out, to, 16));
	drop_buffer(out);
	drop_exe(x);
	drop_client(c);
}

static void a_client_takes_a_seed(void **state)
{
	uint64_t a[2], b[2], c[2];

	(void)state;
	draw(-7, a);
	draw(-7, b);
	draw(7, c);
	assert_memory_equal(a, b, sizeof(a));
	assert_memory_not_equal(a, c, sizeof(a));
}

static void options_have_types(void **state)
{
	static const int64_t list[] = { 1, 2 };
	static const struct { struct PJRT_NamedValue v; const char *says; } wrong[] = {
		{ { .name = "rng_seed", .type = PJRT_NamedValue_kString, .string_value = "7",
		    .value_size = 1 }, "\"rng_seed\" is a string, and has to be an integer" },
		{ { .name = "rng_seed", .type = PJRT_NamedValue_kFloat, .value_size = 1 },
		  "\"rng_seed\" is a float, and has to be an integer" },
		{ { .name = "devices", .type = PJRT_NamedValue_kInt64, .int64_value = 1,
		    .value_size = 1 }, "\"devices\" is an integer, and has to be a string" },
		{ { .name = "sim", .type = PJRT_NamedValue_kInt64List, .int64_array_value = list,
		    .value_size = 2 }, "\"sim\" is a list of integers, and has to be a string" },
		{ { .name = "num_nodes", .type = PJRT_NamedValue_kBool, .value_size = 1 },
		  "\"num_nodes\" is a bool, and has to be an integer" },
		{ { .name = "node_id", .type = 77, .value_size = 1 },
		  "\"node_id\" is of no type there is, and has to be an integer" },
	};
	struct PJRT_NamedValue o[] = {
		{ .struct_size = PJRT_NamedValue_SIZE, .name = "devices", .name_size = 7,
		  .type = PJRT_NamedValue_kString, .string_value = "sim:hbm=16M",
		  .value_size = 11 },
		{ .struct_size = PJRT_NamedValue_SIZE } };

	(void)state;
	for (unsigned i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		o[1] = wrong[i].v;
		o[1].struct_size = PJRT_NamedValue_SIZE;
		o[1].name_size = strlen(o[1].name);
		assert_error(CALL(Client_Create, .create_options = o, .num_options = 2), INVALID,
			     wrong[i].says);
	}
	/* Somebody else's. */
	o[1].name = "visible_devices";
	o[1].name_size = 15;
	drop_client(GET(Client_Create, client, .create_options = o, .num_options = 2));
}

/* One thread reads a buffer while another deletes it: content or "deleted", no more. */
struct race { struct PJRT_Buffer *b; int wrong; };

static void *read_it(void *arg)
{
	struct race *r = arg;
	float back[16];

	for (int i = 0; i < 20; i++) {
		struct PJRT_Buffer_ToHostBuffer_Args a;
		struct PJRT_Error *e = CALL_AS(&a, Buffer_ToHostBuffer, .src = r->b,
					       .dst = back, .dst_size = sizeof(back));

		if (!e) {
			e = CALL(Event_Await, .event = a.event);
			CALL(Event_Destroy, .event = a.event);
			r->wrong |= !e && back[15] != 15;
		}
		r->wrong |= e && error_code(e) != INVALID;
		drop_error(e);
	}
	return NULL;
}

static void deleting_what_another_thread_reads_is_safe(void **state)
{
	struct PJRT_Client *c = new_client("hbm=64M,lanes=1");
	float data[16];

	(void)state;
	for (int i = 0; i < 16; i++)
		data[i] = (float)i;
	for (int i = 0; i < rounds(200); i++) {
		struct race r = { put_floats(c, data, 16), 0 };
		pthread_t t;

		assert_int_equal(pthread_create(&t, NULL, read_it, &r), 0);
		if (i % 2)
			sched_yield();
		assert_ok(CALL(Buffer_Delete, .buffer = r.b));
		pthread_join(t, NULL);
		assert_false(r.wrong);
		drop_buffer(r.b);
	}
	drop_client(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(clients_come_and_go_with_live_objects),
		cmocka_unit_test(a_client_ends_while_work_is_pending),
		cmocka_unit_test(memory_in_use_is_not_given_away),
		cmocka_unit_test(work_behind_work_that_fails_fails),
		cmocka_unit_test(an_executable_goes_before_its_runs),
		cmocka_unit_test(the_last_object_may_die_in_a_callback),
		cmocka_unit_test(the_last_object_may_die_in_a_fetch),
		cmocka_unit_test(threads_work_on_one_client),
		cmocka_unit_test(threads_have_clients_of_their_own),
		cmocka_unit_test(a_client_takes_a_seed),
		cmocka_unit_test(options_have_types),
		cmocka_unit_test(deleting_what_another_thread_reads_is_safe),
	};

	return cmocka_run_group_tests(tests, load_plugin, NULL);
}
