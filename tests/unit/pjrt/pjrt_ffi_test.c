/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of the host through the C API alone: user data of an execution's context, types,
 * states, and how often each of them goes. */
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <time.h>

#include "runtime/pjrt/ffi_abi.h"
#include "tests/unit/pjrt/pjrt_test.h"

enum { N = 4, BYTES = N * sizeof(float), NOT_FOUND = PJRT_Error_Code_NOT_FOUND,
       ALREADY_EXISTS = PJRT_Error_Code_ALREADY_EXISTS };

#define CALLS(target) "module() {sym_name = \"m\"} () {\n" \
	"  func() {sym_name = \"main\"} (%0: tensor<4xf32>) -> ({}) {\n" \
	"    %1 = custom_call(%0) {call_target_name = \"" target "\", frame = {}} : " \
	"tensor<4xf32>\n    return(%1)\n  }\n}\n"

/* As clients of 0.75 hand it over. */
struct add_args_75 { struct PJRT_FFI_UserData_Add_Args args; void *deleter; };

/* A number for the function to multiply by, and how often it was let go of. */
struct factor { float by; atomic_int freed; };

static struct PJRT_Client *client;
static const struct PJRT_FFI_Extension *ffi;
static struct XLA_FFI_TypeId factor_type, other_type, state_type;
static atomic_int states_made, states_freed;
static sem_t inside, go_on, gone;	/* gone: posted for all that is let go of */

/* ---- functions ---- */

static bool tells_version(struct XLA_FFI_CallFrame *f)
{
	struct XLA_FFI_Metadata_Extension *ask = (void *)f->extension_start;

	if (!ask || ask->extension_base.type != XLA_FFI_Extension_Metadata)
		return false;
	ask->metadata->api_version.major_version = XLA_FFI_MAJOR;
	ask->metadata->api_version.minor_version = XLA_FFI_MINOR;
	return true;
}

/* y = x * user data of this type */
static struct XLA_FFI_Error *multiply(struct XLA_FFI_CallFrame *f, struct XLA_FFI_TypeId *type)
{
	struct XLA_FFI_Error *(*get)(struct XLA_FFI_ExecutionContext_Get_Args *) =
		(void *)f->api->XLA_FFI_ExecutionContext_Get;
	struct XLA_FFI_ExecutionContext_Get_Args a = {
		.struct_size = XLA_FFI_ExecutionContext_Get_Args_SIZE, .ctx = f->ctx,
		.type_id = type };
	struct XLA_FFI_Error *e = get(&a);
	const struct XLA_FFI_Buffer *x = f->args.args[0], *y = f->rets.rets[0];
	const struct factor *k = a.data;

	for (int i = 0; !e && i < N; i++)
		((float *)y->data)[i] = ((const float *)x->data)[i] * k->by;
	return e;
}

static struct XLA_FFI_Error *scale(struct XLA_FFI_CallFrame *f)
{
	return tells_version(f) ? NULL : multiply(f, &factor_type);
}

static struct XLA_FFI_Error *scale_by_other(struct XLA_FFI_CallFrame *f)
{
	return tells_version(f) ? NULL : multiply(f, &other_type);
}

static struct XLA_FFI_Error *scale_by_nobody(struct XLA_FFI_CallFrame *f)
{
	struct XLA_FFI_TypeId nobody = { 4242 };

	return tells_version(f) ? NULL : multiply(f, &nobody);
}

/* Says that it is there, and waits. */
static struct XLA_FFI_Error *scale_late(struct XLA_FFI_CallFrame *f)
{
	if (tells_version(f))
		return NULL;
	sem_post(&inside);
	sem_wait(&go_on);
	return multiply(f, &factor_type);
}

/* A stage that leaves a state. */
static struct XLA_FFI_Error *leave(struct XLA_FFI_CallFrame *f)
{
	struct XLA_FFI_Error *(*set)(struct XLA_FFI_State_Set_Args *);
	struct XLA_FFI_State_Set_Args a = {
		.struct_size = XLA_FFI_State_Set_Args_SIZE, .ctx = f->ctx, .stage = f->stage,
		.type_id = &state_type };

	if (tells_version(f))
		return NULL;
	set = (void *)f->api->XLA_FFI_State_Set;
	a.state = malloc(16);
	atomic_fetch_add(&states_made, 1);
	return set(&a);
}

static void free_state(void *object)
{
	atomic_fetch_add(&states_freed, 1);
	free(object);
	sem_post(&gone);
}

static void count_freed(void *data)
{
	atomic_fetch_add(&((struct factor *)data)->freed, 1);
	sem_post(&gone);
}

static void never(void *object)
{
	(void)object;
	fail_msg("user data is the caller's, whatever its type's deleter");
}

/* ---- calls ---- */

static const struct PJRT_Extension_Base *extension(int type)
{
	const struct PJRT_Extension_Base *e;

	memcpy(&e, api + 8, sizeof(e));
	while (e && e->type != type)
		e = e->next;
	assert_non_null(e);
	return e;
}

static int64_t register_type(const char *name, void (*deleter)(void *object))
{
	struct PJRT_FFI_Type_Info info = { .deleter = (void *)deleter };
	struct PJRT_FFI_Type_Register_Args a = {
		.struct_size = PJRT_FFI_Type_Register_Args_SIZE, .type_name = name,
		.type_name_size = strlen(name), .type_info = deleter ? &info : NULL };

	assert_ok(((slot_fn *)ffi->type_register)(&a));
	assert_int_not_equal(a.type_id, 0);
	return a.type_id;
}

static void register_function(const char *name, struct XLA_FFI_Error *(*fn)(
				      struct XLA_FFI_CallFrame *))
{
	struct PJRT_FFI_Register_Handler_Args a = {
		.struct_size = PJRT_FFI_Register_Handler_Args_SIZE, .target_name = name,
		.target_name_size = strlen(name), .handler = (void *)fn,
		.platform_name = "tessera", .platform_name_size = 7 };

	assert_ok(((slot_fn *)ffi->register_handler)(&a));
}

static int open_client(void **state)
{
	const struct PJRT_Gpu_Custom_Call *bundles;
	struct PJRT_Gpu_Register_Custom_Call_Args staged = {
		.struct_size = PJRT_Gpu_Register_Custom_Call_Args_SIZE, .function_name = "staged",
		.function_name_size = 6, .api_version = 1, .handler_instantiate = (void *)leave,
		.handler_prepare = (void *)leave, .handler_initialize = (void *)leave,
		.handler_execute = (void *)scale };

	if (load_plugin(state))
		return -1;
	ffi = (const void *)extension(PJRT_Extension_Type_FFI);
	bundles = (const void *)extension(PJRT_Extension_Type_Gpu_Custom_Call);
	factor_type.type_id = register_type("test.factor", never);
	other_type.type_id = register_type("test.other", NULL);
	state_type.type_id = register_type("test.state", free_state);
	register_function("scale", scale);
	register_function("scale_by_other", scale_by_other);
	register_function("scale_by_nobody", scale_by_nobody);
	register_function("scale_late", scale_late);
	assert_ok(((slot_fn *)bundles->custom_call)(&staged));
	sem_init(&inside, 0, 0);
	sem_init(&go_on, 0, 0);
	sem_init(&gone, 0, 0);
	client = new_client("devices=2,hbm=64M,lanes=1");
	return 0;
}

static int close_client(void **state)
{
	(void)state;
	drop_client(client);
	return 0;
}

static struct PJRT_LoadedExecutable *compile_with(const char *text, const char *options, size_t n)
{
	struct PJRT_Program p = program_of((struct bytes){ (char *)(uintptr_t)text,
							   strlen(text) });

	return GET(Client_Compile, executable, .client = client, .program = &p,
		   .compile_options = options, .compile_options_size = n);
}

static struct PJRT_LoadedExecutable *compile(const char *text)
{
	char options[32];

	return compile_with(text, options, options_for(0, options));
}

static struct PJRT_ExecuteContext *new_context(void)
{
	return GET(ExecuteContext_Create, context);
}

static void drop_context(struct PJRT_ExecuteContext *c)
{
	assert_ok(CALL(ExecuteContext_Destroy, .context = c));
}

static struct PJRT_Error *add(struct PJRT_ExecuteContext *c, int64_t type, void *data)
{
	struct PJRT_FFI_UserData_Add_Args a = {
		.struct_size = PJRT_FFI_UserData_Add_Args_SIZE, .context = c,
		.user_data = { type, data } };

	return ((slot_fn *)ffi->user_data_add)(&a);
}

static struct PJRT_Error *add_as_75(struct PJRT_ExecuteContext *c, struct factor *data)
{
	struct add_args_75 a = {
		.args = { .struct_size = sizeof(a), .context = c,
			  .user_data = { factor_type.type_id, data } },
		.deleter = (void *)count_freed };

	return ((slot_fn *)ffi->user_data_add)(&a);
}

static struct PJRT_Error *run_in(struct PJRT_LoadedExecutable *x, struct PJRT_ExecuteContext *c,
				 struct PJRT_Buffer *in, struct PJRT_Buffer **out)
{
	struct PJRT_ExecuteOptions o = { .struct_size = PJRT_ExecuteOptions_SIZE, .context = c };
	struct PJRT_Buffer *const *ins = &in;

	return CALL(LoadedExecutable_Execute, .executable = x, .options = &o,
		    .argument_lists = (void *)&ins, .num_devices = 1, .num_args = 1,
		    .output_lists = (void *)&out);
}

static struct PJRT_Buffer *ones(void)
{
	return put_floats(client, (const float[N]){ 1, 1, 1, 1 }, N);
}

/* Takes b. */
static void expect(struct PJRT_Buffer *b, float want)
{
	float back[N];

	assert_ok(fetch(b, back, BYTES));
	for (int i = 0; i < N; i++)
		assert_true(back[i] == want);
	drop_buffer(b);
}

/* Until so many were let go of, after the results that a run's own thread has still to clear up
 * behind; then nobody is, again. */
static void await_gone(int n)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += 60;
	while (n--)
		assert_int_equal(sem_timedwait(&gone, &until), 0);
	drop_client(client);
	client = new_client("devices=2,hbm=64M,lanes=1");
	assert_int_not_equal(sem_trywait(&gone), 0);
}

/* ---- user data ---- */

static void user_data_reaches_the_function(void **state)
{
	struct PJRT_LoadedExecutable *x = compile(CALLS("scale"));
	struct factor three = { .by = 3 }, five = { .by = 5 }, other = { .by = 7 };
	struct PJRT_ExecuteContext *a = new_context(), *b = new_context();
	struct PJRT_Buffer *in = ones(), *out;

	(void)state;
	assert_ok(add(a, other_type.type_id, &other));
	assert_ok(add(a, factor_type.type_id, &three));
	assert_ok(add(b, factor_type.type_id, &five));
	for (int i = 0; i < 3; i++) {
		assert_ok(run_in(x, a, in, &out));
		expect(out, 3);
		assert_ok(run_in(x, b, in, &out));
		expect(out, 5);
	}
	three.by = 11;		/* what is given is where it lies */
	assert_ok(run_in(x, a, in, &out));
	expect(out, 11);
	drop_context(a);
	drop_context(b);
	drop_buffer(in);
	drop_exe(x);
}

static void what_nobody_gave_is_not_found_by_name(void **state)
{
	static const struct { const char *text, *says; bool has_context; } cases[] = {
		{ CALLS("scale"), "test.factor", false },
		{ CALLS("scale_by_other"), "test.other", true },
		{ CALLS("scale_by_nobody"), "that nobody registered (number 4242)", true },
	};
	struct PJRT_LoadedExecutable *right = compile(CALLS("scale"));
	struct PJRT_ExecuteContext *c = new_context();
	struct PJRT_Buffer *in = ones(), *out;
	struct factor two = { .by = 2 };
	float back[N];

	(void)state;
	assert_ok(add(c, factor_type.type_id, &two));
	for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct PJRT_LoadedExecutable *x = compile(cases[i].text);

		assert_ok(run_in(x, cases[i].has_context ? c : NULL, in, &out));
		assert_error(fetch(out, back, BYTES), NOT_FOUND, cases[i].says);
		drop_buffer(out);
		drop_exe(x);
		assert_ok(run_in(right, c, in, &out));
		expect(out, 2);
	}
	drop_context(c);
	drop_buffer(in);
	drop_exe(right);
}

static void a_type_is_given_once(void **state)
{
	struct PJRT_FFI_UserData_Add_Args short_args = {
		.struct_size = PJRT_FFI_UserData_Add_Args_SIZE - 1 };
	struct PJRT_FFI_UserData_Add_Args no_context = {
		.struct_size = PJRT_FFI_UserData_Add_Args_SIZE };
	struct PJRT_ExecuteContext *c = new_context();
	struct factor two = { .by = 2 };

	(void)state;
	assert_ok(add(c, factor_type.type_id, &two));
	assert_error(add(c, factor_type.type_id, &two), ALREADY_EXISTS, "test.factor");
	assert_error(add_as_75(c, &two), ALREADY_EXISTS, "test.factor");
	assert_ok(add(c, 4242, &two));
	assert_error(add(c, 4242, &two), ALREADY_EXISTS, "(number 4242)");
	assert_error(((slot_fn *)ffi->user_data_add)(&short_args), INVALID, "struct_size");
	assert_error(((slot_fn *)ffi->user_data_add)(&no_context), INVALID, "`context` is NULL");
	drop_context(c);
	assert_int_equal(two.freed, 0);	/* what was refused is the caller's as it was */
}

/* The context goes while its execution runs, as a client's does that waits for nothing. */
static void an_execution_holds_what_it_was_given(void **state)
{
	struct PJRT_LoadedExecutable *x = compile(CALLS("scale_late"));
	struct factor three = { .by = 3 }, late = { .by = 100 };
	struct PJRT_ExecuteContext *c = new_context();
	struct PJRT_Buffer *in = ones(), *out;

	(void)state;
	assert_ok(add_as_75(c, &three));
	assert_ok(run_in(x, c, in, &out));
	sem_wait(&inside);
	assert_ok(add(c, other_type.type_id, &late));	/* of executions to come */
	drop_context(c);
	assert_int_equal(three.freed, 0);
	sem_post(&go_on);
	expect(out, 3);
	drop_buffer(in);
	drop_exe(x);
	await_gone(1);
	assert_int_equal(three.freed, 1);
}

static void user_data_goes_once(void **state)
{
	struct PJRT_LoadedExecutable *x = compile(CALLS("scale"));
	struct PJRT_LoadedExecutable *fails = compile(CALLS("scale_by_other"));
	struct factor k[4] = { { .by = 2 }, { .by = 3 }, { .by = 4 }, { .by = 5 } };
	struct PJRT_ExecuteContext *c[4];
	struct PJRT_Buffer *in = ones(), *out, *deleted = ones();
	float back[N];

	(void)state;
	for (int i = 0; i < 4; i++) {
		c[i] = new_context();
		assert_ok(add_as_75(c[i], &k[i]));
	}
	/* Of executions that end well, that fail, that never start; of none. */
	for (int i = 0; i < 5; i++) {
		assert_ok(run_in(x, c[0], in, &out));
		expect(out, 2);
	}
	assert_ok(run_in(fails, c[1], in, &out));
	assert_error(fetch(out, back, BYTES), NOT_FOUND, "test.other");
	drop_buffer(out);
	assert_ok(CALL(Buffer_Delete, .buffer = deleted));
	assert_error(run_in(x, c[2], deleted, &out), INVALID, "deleted");
	for (int i = 0; i < 4; i++)
		assert_int_equal(k[i].freed, 0);
	for (int i = 0; i < 4; i++)
		drop_context(c[i]);
	assert_ok(CALL(ExecuteContext_Destroy, .context = NULL));
	drop_buffer(deleted);
	drop_buffer(in);
	drop_exe(fails);
	drop_exe(x);
	await_gone(4);
	for (int i = 0; i < 4; i++)
		assert_int_equal(k[i].freed, 1);
}

static void both_devices_are_given_it(void **state)
{
	static const char two[] = { 0x1a, 16, 0x20, 2, 0x28, 1, 0x4a, 10, 8, 2, 16, 1, 0x1a, 4,
				    0x0a, 2, 0, 1 };
	struct PJRT_LoadedExecutable *x = compile_with(CALLS("scale"), two, sizeof(two));
	struct PJRT_ExecuteContext *c = new_context();
	struct PJRT_ExecuteOptions o = { .struct_size = PJRT_ExecuteOptions_SIZE, .context = c };
	struct PJRT_Buffer *in[2] = { ones() }, *out[2];
	struct PJRT_Buffer *const *ins[2] = { &in[0], &in[1] };
	struct PJRT_Buffer **outs[2] = { &out[0], &out[1] };
	struct factor nine = { .by = 9 };

	(void)state;
	in[1] = GET(Buffer_CopyToDevice, dst_buffer, .buffer = in[0],
		    .dst_device = device_of(client, 1));
	assert_ok(add_as_75(c, &nine));
	assert_ok(CALL(LoadedExecutable_Execute, .executable = x, .options = &o,
		       .argument_lists = (void *)ins, .num_devices = 2, .num_args = 1,
		       .output_lists = (void *)outs));
	drop_context(c);
	for (int d = 0; d < 2; d++) {
		expect(out[d], 9);
		drop_buffer(in[d]);
	}
	drop_exe(x);
	await_gone(1);
	assert_int_equal(nine.freed, 1);
}

enum { THREADS = 8, ROUNDS = 50 };

static void *run_many(void *arg)
{
	struct PJRT_Buffer *in = ones(), *out;

	for (int i = 0; i < ROUNDS; i++) {
		struct PJRT_ExecuteContext *c = new_context();
		struct factor k = { .by = (float)i };

		assert_ok(add(c, factor_type.type_id, &k));
		assert_ok(run_in(arg, c, in, &out));
		drop_context(c);
		expect(out, (float)i);
	}
	drop_buffer(in);
	return NULL;
}

static void threads_have_contexts_of_their_own(void **state)
{
	struct PJRT_LoadedExecutable *x = compile(CALLS("scale"));
	pthread_t threads[THREADS];

	(void)state;
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, run_many, x), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	drop_exe(x);
}

/* ---- types and states ---- */

static void types_have_numbers(void **state)
{
	struct PJRT_FFI_Type_Register_Args a = {
		.struct_size = offsetof(struct PJRT_FFI_Type_Register_Args, type_info),
		.type_name = "test.old", .type_name_size = 8,
		.type_info = (void *)(uintptr_t)16 };	/* past what 0.75 has */

	(void)state;
	assert_ok(((slot_fn *)ffi->type_register)(&a));
	assert_int_not_equal(a.type_id, 0);
	assert_int_equal(register_type("test.old", NULL), a.type_id);
	assert_int_not_equal(a.type_id, factor_type.type_id);
	a.type_name = "test.new";	/* by a number that another has */
	assert_error(((slot_fn *)ffi->type_register)(&a), INVALID, "\"test.old\" is number");
	a.struct_size--;
	assert_error(((slot_fn *)ffi->type_register)(&a), INVALID, "struct_size");
}

/* Three stages leave one each: the program's goes with it, those of a run with the run. */
static void states_go_once(void **state)
{
	struct PJRT_LoadedExecutable *x = compile(CALLS("staged"));
	struct PJRT_ExecuteContext *c = new_context();
	struct PJRT_Buffer *in = ones(), *out;
	struct factor six = { .by = 6 };

	(void)state;
	assert_int_equal(states_made, 1);
	assert_ok(add(c, factor_type.type_id, &six));
	for (int i = 0; i < 4; i++) {
		assert_ok(run_in(x, c, in, &out));
		expect(out, 6);
	}
	assert_int_equal(states_made, 9);
	drop_context(c);
	drop_buffer(in);
	drop_exe(x);
	await_gone(9);
	assert_int_equal(states_freed, 9);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(user_data_reaches_the_function),
		cmocka_unit_test(what_nobody_gave_is_not_found_by_name),
		cmocka_unit_test(a_type_is_given_once),
		cmocka_unit_test(an_execution_holds_what_it_was_given),
		cmocka_unit_test(user_data_goes_once),
		cmocka_unit_test(both_devices_are_given_it),
		cmocka_unit_test(threads_have_contexts_of_their_own),
		cmocka_unit_test(types_have_numbers),
		cmocka_unit_test(states_go_once),
	};

	return cmocka_run_group_tests(tests, open_client, close_client);
}
