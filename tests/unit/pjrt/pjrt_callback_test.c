/* SPDX-License-Identifier: Apache-2.0 */
/* Programs that call functions of the host, through the table: what goes to and fro, in which
 * order, what functions may do wrong, and launches that wait for each other. */
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <unistd.h>

#include "tests/unit/pjrt/pjrt_test.h"

enum { SEND = 7, RECV = 9, N = 4, BYTES = N * sizeof(float) };

#define HOST ", is_host_transfer = true} : "
#define SIGNED_I1 ", compare_type = <SIGNED>} : tensor<i1>\n"
#define PROGRAM(args, results, body) "module() {sym_name = \"m\"} () {\n" \
	"  func() {sym_name = \"main\"} (" args ") -> (" results ") {\n" body "  }\n}\n"

/* x + f(x) */
static const char once[] = PROGRAM("%0: tensor<4xf32>", "{}",
	"    %1 = create_token() : token\n"
	"    %2 = send(%0, %1) {channel_id = 7" HOST "token\n"
	"    %3, %4 = recv(%2) {channel_id = 9" HOST "tensor<4xf32>, token\n"
	"    %5 = add(%0, %3) : tensor<4xf32>\n"
	"    return(%5)\n");
/* The same in the donated argument's memory. */
static const char donating[] = PROGRAM("%0: tensor<4xf32> {alias = 0}", "{}",
	"    %1 = create_token() : token\n"
	"    %2 = send(%0, %1) {channel_id = 7" HOST "token\n"
	"    %3, %4 = recv(%2) {channel_id = 9" HOST "tensor<4xf32>, token\n"
	"    %5 = add(%0, %3) : tensor<4xf32>\n"
	"    return(%5)\n");
/* x = f(x), `n` times; also on a branch, in the loop. */
static const char looping[] = PROGRAM("%0: tensor<4xf32>, %1: tensor<i32>", "{}",
	"    %2 = create_token() : token\n"
	"    %3 = constant() {value = dense<splat 0x00000000> : tensor<i32>} : tensor<i32>\n"
	"    %4, %5, %6 = while(%0, %3, %2) : tensor<4xf32>, tensor<i32>, token "
	"(%7: tensor<4xf32>, %8: tensor<i32>, %9: token) {\n"
	"      %10 = compare(%8, %1) {comparison_direction = <LT>" SIGNED_I1
	"      return(%10)\n"
	"    } (%11: tensor<4xf32>, %12: tensor<i32>, %13: token) {\n"
	"      %14 = constant() {value = dense<splat 0x01000000> : tensor<i32>} : tensor<i32>\n"
	"      %15 = add(%12, %14) : tensor<i32>\n"
	"      %30 = and(%12, %14) : tensor<i32>\n"
	"      %31 = compare(%30, %14) {comparison_direction = <EQ>" SIGNED_I1
	"      %32 = if(%31) : tensor<4xf32> () {\n"
	"        %16 = send(%11, %13) {channel_id = 7" HOST "token\n"
	"        %17, %18 = recv(%16) {channel_id = 9" HOST "tensor<4xf32>, token\n"
	"        return(%17)\n"
	"      } () {\n"
	"        %19 = send(%11, %13) {channel_id = 7" HOST "token\n"
	"        %20, %21 = recv(%19) {channel_id = 9" HOST "tensor<4xf32>, token\n"
	"        return(%20)\n"
	"      }\n"
	"      return(%32, %15, %13)\n"
	"    }\n"
	"    return(%4)\n");
/* Nothing comes back. */
static const char telling[] = PROGRAM("%0: tensor<4xf32>", "{}",
	"    %1 = create_token() : token\n"
	"    %2 = send(%0, %1) {channel_id = 7" HOST "token\n"
	"    return(%0)\n");

static struct PJRT_Client *client;

typedef struct PJRT_Error *error_fn(int code, const char *text, size_t n);

/* What a function of the host does, and what it saw. */
struct host {
	enum { ADD_ONE, FAIL, TOO_MUCH, TOO_LITTLE, NEVER, NEST, COUNT_ONLY } does;
	const char *text;		/* FAIL: says this */
	float step;			/* of ADD_ONE; 0: 1 */
	atomic_uint n_sent, n_received;
	float last[N];
	struct PJRT_CopyToDeviceStream *kept;	/* NEVER: the stream, when it is there */
	sem_t *there;
	struct PJRT_LoadedExecutable *nested;
};

static struct PJRT_Error *run_with(struct PJRT_LoadedExecutable *x, struct host *h,
				   struct PJRT_Buffer *const *args, size_t n,
				   struct PJRT_Buffer **outs, struct PJRT_Event **done);

static int open_client(void **state)
{
	if (load_plugin(state))
		return -1;
	client = new_client("hbm=64M,lanes=1");
	return 0;
}

static int close_client(void **state)
{
	(void)state;
	drop_client(client);
	return 0;
}

/* ---- functions ---- */

static void free_copy(void *data, void *arg)
{
	(void)arg;
	free(data);
}

static struct PJRT_Error *give(struct PJRT_CopyToDeviceStream *s, const void *data, size_t n)
{
	struct PJRT_Chunk chunk = { .data = malloc(n + 1), .size = n,
				    .deleter = (void *)free_copy };
	struct PJRT_CopyToDeviceStream_AddChunk_Args a;
	struct PJRT_Error *e;

	memcpy(chunk.data, data, n);
	e = CALL_AS(&a, CopyToDeviceStream_AddChunk, .stream = s, .chunk = &chunk);
	if (!e)
		drop_event(a.transfer_complete);
	return e;
}

static void let_go(struct PJRT_CopyToDeviceStream *s)
{
	assert_ok(CALL(CopyToDeviceStream_Destroy, .stream = s));
}

/* A function that runs a program with a function of its own, and waits for it. */
static void nest(struct host *h)
{
	struct host inner = { .does = ADD_ONE };
	struct PJRT_Buffer *in = put_floats(client, h->last, N), *out;
	struct PJRT_Event *done;
	float back[N];

	assert_ok(run_with(h->nested, &inner, &in, 1, &out, &done));
	assert_ok(finish(done));
	assert_ok(fetch(out, back, BYTES));
	assert_true(back[0] == 2 * h->last[0] + 1);
	drop_buffer(in);
	drop_buffer(out);
}

static struct PJRT_Error *on_send(struct PJRT_Chunk *chunk, error_fn **error, size_t total,
				  bool done, void *arg)
{
	void (*deleter)(void *, void *) = (void (*)(void *, void *))chunk->deleter;
	struct host *h = arg;

	assert_int_equal(total, BYTES);
	assert_int_equal(chunk->size, BYTES);
	assert_true(done);
	memcpy(h->last, chunk->data, BYTES);
	deleter(chunk->data, chunk->deleter_arg);
	atomic_fetch_add(&h->n_sent, 1);
	if (h->does == NEST)
		nest(h);
	return h->does == FAIL ? (*error)(INVALID, h->text, strlen(h->text)) : NULL;
}

static void on_recv(struct PJRT_CopyToDeviceStream *s, void *arg)
{
	struct host *h = arg;
	float data[2 * N] = { 0 };

	assert_int_equal(GET(CopyToDeviceStream_TotalBytes, total_bytes, .stream = s), BYTES);
	assert_int_equal(GET(CopyToDeviceStream_GranuleSize, granule_size_in_bytes,
			     .stream = s), 1);
	atomic_fetch_add(&h->n_received, 1);
	for (int i = 0; i < N; i++)
		data[i] = h->last[i] + (h->step != 0 ? h->step : 1);
	switch (h->does) {
	case TOO_MUCH:
		assert_error(give(s, data, BYTES + 4), INVALID, "a chunk of 20 bytes");
		break;
	case TOO_LITTLE:
		assert_ok(give(s, data, 6));
		break;
	case NEVER:
		h->kept = s;
		sem_post(h->there);
		return;
	default:
		/* In two pieces. */
		assert_ok(give(s, data, 6));
		assert_ok(give(s, (char *)data + 6, BYTES - 6));
	}
	let_go(s);
}

static struct PJRT_Error *run_with(struct PJRT_LoadedExecutable *x, struct host *h,
				   struct PJRT_Buffer *const *args, size_t n,
				   struct PJRT_Buffer **outs, struct PJRT_Event **done)
{
	/* On the stack: the plugin copies what it needs. */
	struct PJRT_SendCallbackInfo send = { SEND, h, (void *)on_send }, *sends = &send;
	struct PJRT_RecvCallbackInfo recv = { RECV, h, (void *)on_recv }, *recvs = &recv;
	struct PJRT_ExecuteOptions o = { .struct_size = PJRT_ExecuteOptions_SIZE,
		.send_callbacks = &sends, .recv_callbacks = &recvs, .num_send_ops = 1,
		.num_recv_ops = h->does == COUNT_ONLY ? 0 : 1 };

	return CALL(LoadedExecutable_Execute, .executable = x, .options = &o,
		    .argument_lists = (void *)&args, .num_devices = 1, .num_args = n,
		    .output_lists = (void *)&outs, .device_complete_events = done);
}

static struct PJRT_LoadedExecutable *compile(const char *text)
{
	struct PJRT_Program p = program_of((struct bytes){ (char *)(uintptr_t)text,
							   strlen(text) });
	char options[32];
	size_t n = options_for(0, options);

	return GET(Client_Compile, executable, .client = client, .program = &p,
		   .compile_options = options, .compile_options_size = n);
}

static struct PJRT_Buffer *filled(float v)
{
	float data[N] = { v, v, v, v };

	return put_floats(client, data, N);
}

static void expect(struct PJRT_Buffer *b, float want)
{
	float back[N];

	assert_ok(fetch(b, back, BYTES));
	for (int i = 0; i < N; i++)
		assert_true(back[i] == want);
}

static int64_t bytes_in_use(void)
{
	return GET(Device_MemoryStats, bytes_in_use, .device = device_of(client, 0));
}

/* ---- what goes well ---- */

static void arrays_go_to_and_fro(void **state)
{
	struct PJRT_LoadedExecutable *x = compile(once), *d = compile(donating);
	struct PJRT_Buffer *in = filled(3), *out;
	struct host h = { .does = ADD_ONE };
	struct PJRT_Event *done;

	(void)state;
	assert_ok(run_with(x, &h, &in, 1, &out, &done));
	assert_ok(finish(done));
	expect(out, 7);
	drop_buffer(out);
	/* Nobody waits for the event. */
	assert_ok(run_with(x, &h, &in, 1, &out, NULL));
	expect(out, 7);
	drop_buffer(out);
	assert_ok(run_with(d, &h, &in, 1, &out, NULL));
	assert_true(is_deleted(in));
	expect(out, 7);
	assert_int_equal(h.n_sent, 3);
	assert_int_equal(h.n_received, 3);
	drop_buffer(in);
	drop_buffer(out);
	drop_exe(x);
	drop_exe(d);
}

static void loops_call_in_each_turn(void **state)
{
	enum { TURNS = 1000 };
	struct PJRT_LoadedExecutable *x = compile(looping);
	int32_t n = TURNS;
	struct PJRT_Buffer *in[2] = { filled(1), put_as(client, &n, PJRT_Buffer_Type_S32, NULL,
							0) }, *out, *next;
	struct host h = { .does = ADD_ONE };
	struct PJRT_Event *done;

	(void)state;
	assert_ok(run_with(x, &h, in, 2, &out, NULL));
	/* The argument of the next is pending; both run at last. */
	assert_ok(run_with(x, &h, (struct PJRT_Buffer *[]){ out, in[1] }, 2, &next, &done));
	assert_ok(finish(done));
	expect(out, 1 + TURNS);
	expect(next, 1 + 2 * TURNS);
	assert_int_equal(h.n_sent, 2 * TURNS);
	drop_buffer(in[0]);
	drop_buffer(in[1]);
	drop_buffer(out);
	drop_buffer(next);
	drop_exe(x);
}

/* A program that was serialized still knows its calls. */
static void calls_survive_serialization(void **state)
{
	struct PJRT_LoadedExecutable *x = compile(once), *again;
	struct PJRT_Executable *e = GET(LoadedExecutable_GetExecutable, executable,
					.loaded_executable = x);
	struct PJRT_Executable_Serialize_Args s;
	struct PJRT_Buffer *in = filled(2), *out;
	struct host h = { .does = ADD_ONE };
	void (*deleter)(struct PJRT_SerializedExecutable *);

	(void)state;
	assert_ok(CALL_AS(&s, Executable_Serialize, .executable = e));
	again = GET(Executable_DeserializeAndLoad, loaded_executable, .client = client,
		    .serialized_executable = s.serialized_bytes,
		    .serialized_executable_size = s.serialized_bytes_size);
	deleter = (void (*)(struct PJRT_SerializedExecutable *))s.serialized_executable_deleter;
	deleter(s.serialized_executable);
	assert_ok(CALL(Executable_Destroy, .executable = e));
	drop_exe(x);
	assert_ok(run_with(again, &h, &in, 1, &out, NULL));
	expect(out, 5);
	drop_buffer(in);
	drop_buffer(out);
	drop_exe(again);
}

static void functions_may_run_programs(void **state)
{
	struct PJRT_LoadedExecutable *x = compile(once);
	struct host h = { .does = NEST, .nested = x };
	struct PJRT_Buffer *in = filled(5), *out;

	(void)state;
	assert_ok(run_with(x, &h, &in, 1, &out, NULL));
	expect(out, 11);
	drop_buffer(in);
	drop_buffer(out);
	drop_exe(x);
}

/* ---- order ---- */

static atomic_uint order;

static struct PJRT_Error *note_order(struct PJRT_Chunk *chunk, error_fn **error, size_t total,
				     bool done, void *arg)
{
	unsigned *mine = arg;

	(void)error;
	(void)total;
	(void)done;
	free(chunk->data);
	*mine = atomic_fetch_add(&order, 1);
	return NULL;
}

/* Launches that do not depend on each other call in the order in which they came. */
static void launches_take_turns(void **state)
{
	enum { LAUNCHES = 100 };
	struct PJRT_LoadedExecutable *x = compile(telling);
	struct PJRT_Buffer *in = filled(1), *out[LAUNCHES], *const *args = &in;
	unsigned seen[LAUNCHES];

	(void)state;
	for (unsigned i = 0; i < LAUNCHES; i++) {
		struct PJRT_SendCallbackInfo send = { SEND, &seen[i], (void *)note_order };
		struct PJRT_SendCallbackInfo *sends = &send;
		struct PJRT_ExecuteOptions o = { .struct_size = PJRT_ExecuteOptions_SIZE,
			.send_callbacks = &sends, .num_send_ops = 1 };
		struct PJRT_Buffer **outs = &out[i];

		assert_ok(CALL(LoadedExecutable_Execute, .executable = x, .options = &o,
			       .argument_lists = (void *)&args, .num_devices = 1,
			       .num_args = 1, .output_lists = (void *)&outs));
	}
	for (unsigned i = 0; i < LAUNCHES; i++) {
		expect(out[i], 1);
		assert_int_equal(seen[i], i);
		drop_buffer(out[i]);
	}
	drop_buffer(in);
	drop_exe(x);
}

/* ---- what goes wrong ---- */

static void errors_reach_the_caller(void **state)
{
	static char traceback[3000];
	struct PJRT_LoadedExecutable *x = compile(once);
	struct PJRT_Buffer *in = filled(1), *out, *next;
	struct host h = { .does = FAIL, .text = "it is Monday" };
	struct PJRT_Event *done;

	(void)state;
	assert_ok(run_with(x, &h, &in, 1, &out, &done));
	/* Whoever takes the result gets it, too. */
	assert_ok(run_with(x, &(struct host){ .does = ADD_ONE }, &out, 1, &next, NULL));
	assert_error(finish(done), INVALID, "it is Monday");
	assert_error(fetch(out, (float[N]){ 0 }, BYTES), INVALID, "it is Monday");
	assert_error(fetch(next, (float[N]){ 0 }, BYTES), INVALID, "it is Monday");
	drop_buffer(out);
	drop_buffer(next);
	CALL(Error_Destroy, .error = NULL);
	/* A long text comes whole, through events and buffers, too. */
	memset(traceback, '-', sizeof(traceback) - 1);
	memcpy(traceback, "Traceback:", 10);
	memcpy(traceback + sizeof(traceback) - 16, "\xc3\xa4 is no number", 15);
	h.text = traceback;
	assert_ok(run_with(x, &h, &in, 1, &out, &done));
	assert_error(finish(done), INVALID, traceback);
	assert_error(fetch(out, (float[N]){ 0 }, BYTES), INVALID, traceback);
	drop_buffer(out);
	drop_buffer(in);
	drop_exe(x);
}

static void wrong_sizes_are_errors(void **state)
{
	struct PJRT_LoadedExecutable *x = compile(once);
	struct PJRT_Buffer *in = filled(1), *out;
	struct host h = { .does = TOO_MUCH };
	struct PJRT_Event *done;

	(void)state;
	assert_ok(run_with(x, &h, &in, 1, &out, &done));
	assert_error(finish(done), INVALID, "channel 9");
	drop_buffer(out);
	h.does = TOO_LITTLE;
	assert_ok(run_with(x, &h, &in, 1, &out, &done));
	assert_error(finish(done), PJRT_Error_Code_ABORTED, "ended after 6 of 16 bytes");
	drop_buffer(out);
	drop_buffer(in);
	drop_exe(x);
}

static void functions_must_be_given(void **state)
{
	struct PJRT_LoadedExecutable *x = compile(once);
	struct PJRT_Buffer *in = filled(1), *out, *const *args = &in, **outs = &out;
	struct PJRT_SendCallbackInfo nothing = { .channel_id = SEND }, *list = &nothing;
	struct PJRT_ExecuteOptions o = { .struct_size = PJRT_ExecuteOptions_SIZE,
					 .num_send_ops = 1 };
	struct host h = { .does = COUNT_ONLY };

	(void)state;
	assert_error(run_exe(x, &in, 1, &out, NULL), INVALID, "channel 7");
	assert_error(run_with(x, &h, &in, 1, &out, NULL), INVALID,
		     "receives from the host by channel 9");
#define RUN() CALL(LoadedExecutable_Execute, .executable = x, .options = &o, \
		   .argument_lists = (void *)&args, .num_devices = 1, .num_args = 1, \
		   .output_lists = (void *)&outs)
	assert_error(RUN(), INVALID, "`send_callbacks` or `recv_callbacks` is NULL");
	o.send_callbacks = &list;
	assert_error(RUN(), INVALID, "the callback of channel 7 is NULL");
#undef RUN
	assert_int_equal(h.n_sent, 0);
	drop_buffer(in);
	drop_exe(x);
}

/* One function keeps its launch waiting: others run, with and without functions. */
static void nobody_waits_for_a_slow_function(void **state)
{
	struct PJRT_LoadedExecutable *x = compile(once), *plain;
	struct PJRT_Buffer *in = filled(1), *out, *other;
	struct host slow = { .does = NEVER }, quick = { .does = ADD_ONE };
	float answer[N] = { 10, 10, 10, 10 }, data[16] = { 1 };
	struct PJRT_Buffer *plain_in = put_floats(client, data, 16), *plain_out;
	sem_t there;

	(void)state;
	plain = compile_on(client, "scale_add.mlirbc", 0);
	sem_init(&there, 0, 0);
	slow.there = &there;
	assert_ok(run_with(x, &slow, &in, 1, &out, NULL));
	sem_wait(&there);
	assert_ok(run_exe(plain, (struct PJRT_Buffer *[]){ plain_in, plain_in }, 2, &plain_out,
			  NULL));
	assert_ok(fetch(plain_out, data, sizeof(data)));
	assert_ok(run_with(x, &quick, &in, 1, &other, NULL));
	expect(other, 3);
	assert_ok(give(slow.kept, answer, BYTES));
	let_go(slow.kept);
	expect(out, 11);
	drop_buffer(in);
	drop_buffer(out);
	drop_buffer(other);
	drop_buffer(plain_in);
	drop_buffer(plain_out);
	drop_exe(x);
	drop_exe(plain);
	sem_destroy(&there);
}

/* The owner gives everything up while a function has not answered. */
static void a_client_may_go_in_the_middle(void **state)
{
	struct PJRT_Client *shared = client;
	struct host slow = { .does = NEVER };
	struct PJRT_LoadedExecutable *x;
	struct PJRT_Buffer *in, *out;
	struct PJRT_Event *done;
	sem_t there;

	(void)state;
	sem_init(&there, 0, 0);
	slow.there = &there;
	client = new_client("hbm=64M,lanes=1");
	x = compile(once);
	in = filled(1);
	assert_ok(run_with(x, &slow, &in, 1, &out, &done));
	sem_wait(&there);
	drop_buffer(in);
	drop_buffer(out);
	drop_exe(x);
	drop_client(client);
	client = shared;
	let_go(slow.kept);
	assert_error(finish(done), PJRT_Error_Code_ABORTED, "ended after 0 of 16 bytes");
	sem_destroy(&there);
}

static void failures_leave_nothing_behind(void **state)
{
	struct PJRT_LoadedExecutable *x = compile(looping);
	struct PJRT_Buffer *in[2], *out;
	struct PJRT_Event *done;
	int64_t before = 0;
	int32_t n = 3;

	(void)state;
	in[0] = filled(1);
	in[1] = put_as(client, &n, PJRT_Buffer_Type_S32, NULL, 0);
	for (unsigned i = 0; i < 200; i++) {
		struct host h = { .does = i % 4 == 3 ? TOO_LITTLE : i % 4 == 2 ? TOO_MUCH :
				  i % 4 ? ADD_ONE : FAIL, .text = "no" };
		struct PJRT_Error *e;

		assert_ok(run_with(x, &h, in, 2, &out, &done));
		drop_buffer(out);
		e = finish(done);
		assert_int_equal(!e, h.does == ADD_ONE);
		drop_error(e);
		if (i == 10)
			before = bytes_in_use();
	}
	assert_int_equal(bytes_in_use(), before);
	drop_buffer(in[0]);
	drop_buffer(in[1]);
	drop_exe(x);
}

/* ---- threads ---- */

enum { THREADS = 8, ROUNDS = 25, TURNS_EACH = 10 };

static void *run_many(void *arg)
{
	struct PJRT_LoadedExecutable *x = arg;
	int32_t n = TURNS_EACH;
	struct PJRT_Buffer *in[2] = { filled(0), put_as(client, &n, PJRT_Buffer_Type_S32, NULL,
							0) }, *out;

	for (unsigned i = 0; i < ROUNDS; i++) {
		struct host h = { .does = ADD_ONE, .step = (float)(i + 1) };

		assert_ok(run_with(x, &h, in, 2, &out, NULL));
		expect(out, (float)((i + 1) * TURNS_EACH));
		assert_int_equal(h.n_sent, TURNS_EACH);
		drop_buffer(out);
	}
	drop_buffer(in[0]);
	drop_buffer(in[1]);
	return NULL;
}

static void threads_share_a_program(void **state)
{
	struct PJRT_LoadedExecutable *x = compile(looping);
	pthread_t threads[THREADS];

	(void)state;
	for (unsigned i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, run_many, x), 0);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	drop_exe(x);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(arrays_go_to_and_fro),
		cmocka_unit_test(loops_call_in_each_turn),
		cmocka_unit_test(calls_survive_serialization),
		cmocka_unit_test(functions_may_run_programs),
		cmocka_unit_test(launches_take_turns),
		cmocka_unit_test(errors_reach_the_caller),
		cmocka_unit_test(wrong_sizes_are_errors),
		cmocka_unit_test(functions_must_be_given),
		cmocka_unit_test(nobody_waits_for_a_slow_function),
		cmocka_unit_test(a_client_may_go_in_the_middle),
		cmocka_unit_test(failures_leave_nothing_behind),
		cmocka_unit_test(threads_share_a_program),
	};

	return cmocka_run_group_tests(tests, open_client, close_client);
}
