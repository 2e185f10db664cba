/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that share out calls, through the C API alone: how they are registered, what they are
 * shown, when what they give is let go, and that a program that was compiled needs them no more. */
#include "tests/unit/pjrt/pjrt_test.h"

#define NAME "tests.halves"
/* Of x [8, 3] by rows, and y of eight: x with 1 added, and y. */
#define PROGRAM "module() {meshes = {mesh = \"[x=2]\"}} () {\n" \
	"func() {sym_name = \"main\"} (%0: tensor<8x3xf32> {sharding = \"@mesh[{x},{}]\"}, " \
	"%1: tensor<8xbf16>) -> ({}, {}) {\n%2, %3 = custom_call(%0, %1) {call_target_name = \"" \
	NAME "\", backend_config = \"a\\00b\", sharding_rule = \"[0,1][2]->[0,1][2] 8,3,8\"} : " \
	"tensor<8x3xf32>, tensor<8xbf16>\nreturn(%2, %3)\n}\n}\n"
#define PART "module() {} () {\nfunc() {sym_name = \"main\"} (%0: tensor<4x3xf32>, " \
	"%1: tensor<8xbf16>) -> ({}, {}) {\n%2 = add(%0, %0) : tensor<4x3xf32>\n" \
	"return(%2, %1)\n}\n}\n"
/* OpSharding: two parts of rows; nothing: whole. */
#define ROWS "\x08\x03\x1a\x02\x02\x01\x4a\x01\x02\x52\x01\x00"
#define TUPLE_OF_BOTH "\x08\x02\x2a\x0c" ROWS "\x2a\x00"
/* ShapeProto up to the layout: f32[8,3], bf16[8]. */
#define SHAPE_X "\x10\x0b\x18\x08\x18\x03"
#define SHAPE_Y "\x10\x10\x18\x08"

typedef struct JAX_CustomCallPartitioner_Callbacks callbacks;
typedef struct JAX_CustomCallPartitioner_string text;

static struct PJRT_Client *client;
static int n_asked, n_cleaned;
static int error;		/* a code that is told */
static bool tells_nothing;	/* no bytes, though there should be */
static char long_text[2000];

static void clean(void *data)
{
	assert_ptr_equal(data, &n_asked);
	n_cleaned++;
}

static void begins(text is, const char *want, size_t n)
{
	assert_true(is.size >= n);
	assert_memory_equal(is.data, want, n);
}
#define BEGINS(is, want) begins(is, want, sizeof(want) - 1)

static void equals(text is, const char *want, size_t n)
{
	assert_int_equal(is.size, n);
	if (n)
		assert_memory_equal(is.data, want, n);
}
#define EQUALS(is, want) equals(is, want, sizeof(want) - 1)

static void partition(callbacks *c, struct JAX_CustomCallPartitioner_Partition_Args *args)
{
	static text operands[2] = { { ROWS, sizeof(ROWS) - 1 }, { "", 0 } };

	assert_int_equal(c->version, 0);
	assert_int_equal(args->header.api_version, 0);
	assert_int_equal(args->num_args, 2);
	BEGINS(args->op_args[0].shape, SHAPE_X);
	BEGINS(args->op_args[1].shape, SHAPE_Y);
	assert_true(args->op_args[0].has_sharding && args->op_args[1].has_sharding);
	EQUALS(args->op_args[0].sharding, ROWS);
	EQUALS(args->op_args[1].sharding, "");
	/* A tuple: its number, its first part's length, and that. */
	assert_memory_equal(args->op_result.shape.data, "\x10\x0d\x22", 3);
	assert_memory_equal(args->op_result.shape.data + 4, SHAPE_X, sizeof(SHAPE_X) - 1);
	assert_true(args->op_result.has_sharding);
	EQUALS(args->op_result.sharding, TUPLE_OF_BOTH);
	EQUALS(args->backend_config, "a\0b");
	n_asked++;
	args->header.data = &n_asked;
	args->header.cleanup_fn = (void *)clean;
	args->header.has_error = error != 0;
	args->header.code = error;
	args->header.error_msg = (text){ long_text, strlen(long_text) };
	args->mlir_module = (text){ tells_nothing ? NULL : PART, sizeof(PART) - 1 };
	args->args_sharding = operands;
	args->result_sharding = (text){ TUPLE_OF_BOTH, sizeof(TUPLE_OF_BOTH) - 1 };
}

static void infer(callbacks *c, struct JAX_CustomCallPartitioner_InferShardingFromOperands_Args *a)
{
	(void)c, (void)a;
	fail_msg("the call has a rule");
}

static void propagate(callbacks *c, struct JAX_CustomCallPartitioner_PropagateUserSharding_Args *a)
{
	(void)c, (void)a;
	fail_msg("the call has a rule");
}

static callbacks ours = { .partition = (void *)partition, .infer_sharding = (void *)infer,
			  .propagate_user_sharding = (void *)propagate };

static const struct PJRT_Custom_Partitioner_Extension *extension(void)
{
	const struct PJRT_Extension_Base *e;

	memcpy(&e, api + 8, sizeof(e));
	while (e && e->type != PJRT_Extension_Type_Custom_Partitioner)
		e = e->next;
	assert_non_null(e);
	assert_int_equal(e->struct_size, PJRT_Custom_Partitioner_Extension_SIZE);
	return (const void *)e;
}

static struct PJRT_Error *register_as(const char *name, size_t n, callbacks *c)
{
	struct PJRT_Register_Custom_Partitioner_Args args = {
		.struct_size = PJRT_Register_Custom_Partitioner_Args_SIZE, .name = name,
		.name_size = n, .callbacks = c };

	return ((slot_fn *)extension()->register_custom_partitioner)(&args);
}

static struct PJRT_Error *compile(struct PJRT_LoadedExecutable **out)
{
	static const char options[] = "\x1a\x14\x20\x01\x28\x02\x4a\x0e\x08\x01\x10\x02"
				      "\x1a\x03\x0a\x01\x00\x1a\x03\x0a\x01\x01";
	struct PJRT_Program p = program_of((struct bytes){ (char *)(uintptr_t)PROGRAM,
							   sizeof(PROGRAM) - 1 });
	struct PJRT_Client_Compile_Args args;
	struct PJRT_Error *e = CALL_AS(&args, Client_Compile, .client = client, .program = &p,
				       .compile_options = options,
				       .compile_options_size = sizeof(options) - 1);

	*out = e ? NULL : args.executable;
	return e;
}

/* ---- tests ---- */

static void test_before_anybody_registers(void **state)
{
	struct PJRT_LoadedExecutable *x;

	(void)state;
	assert_error(compile(&x), PJRT_Error_Code_UNIMPLEMENTED, NAME);
}

static void test_registering(void **state)
{
	callbacks later = ours, half = ours;
	struct PJRT_Register_Custom_Partitioner_Args little = { .struct_size = 8 };

	(void)state;
	later.version = 1;
	half.infer_sharding = NULL;
	assert_error(register_as(NAME, strlen(NAME), &later), PJRT_Error_Code_UNIMPLEMENTED,
		     NAME " are of version 1");
	assert_error(register_as(NAME, strlen(NAME), &half), INVALID, NAME " has not all");
	assert_error(register_as(NAME, strlen(NAME), NULL), INVALID, "callbacks");
	assert_error(register_as(NULL, 3, &ours), INVALID, "a name");
	assert_error(register_as(NAME, 0, &ours), INVALID, "a name");
	assert_error(register_as(long_text, 1001, &ours), INVALID, "1000 bytes");
	assert_error(((slot_fn *)extension()->register_custom_partitioner)(&little), INVALID,
		     "struct_size");
	assert_error(((slot_fn *)extension()->register_custom_partitioner)(NULL), INVALID,
		     "struct_size");
	assert_ok(((slot_fn *)extension()->register_batch_partitionable)(NULL));
}

/* As often as it says, and never for what comes later: showing, serializing, loading again. */
static void test_compiling(void **state)
{
	struct PJRT_Program shown = { .struct_size = PJRT_Program_SIZE };
	struct PJRT_Executable_Serialize_Args s;
	struct PJRT_LoadedExecutable *x, *again;
	struct PJRT_Executable *e;

	(void)state;
	assert_ok(register_as(NAME, strlen(NAME), &ours));
	n_asked = n_cleaned = 0;
	assert_ok(compile(&x));
	assert_int_equal(n_asked, 1);
	assert_int_equal(n_cleaned, 1);
	error = PJRT_Error_Code_INTERNAL;	/* from here on whoever asks sees it */
	e = GET(LoadedExecutable_GetExecutable, executable, .loaded_executable = x);
	assert_ok(CALL(Executable_OptimizedProgram, .executable = e, .program = &shown));
	shown.code = calloc(1, shown.code_size + 1);
	assert_non_null(shown.code);
	assert_ok(CALL(Executable_OptimizedProgram, .executable = e, .program = &shown));
	assert_non_null(strstr(shown.code, "stablehlo.add"));
	assert_null(strstr(shown.code, NAME));
	free(shown.code);
	assert_ok(CALL_AS(&s, Executable_Serialize, .executable = e));
	again = GET(Executable_DeserializeAndLoad, loaded_executable, .client = client,
		    .serialized_executable = s.serialized_bytes,
		    .serialized_executable_size = s.serialized_bytes_size);
	((void (*)(void *))s.serialized_executable_deleter)(s.serialized_executable);
	assert_int_equal(n_asked, 1);
	error = 0;
	assert_ok(CALL(Executable_Destroy, .executable = e));
	assert_ok(CALL(LoadedExecutable_Destroy, .executable = again));
	assert_ok(CALL(LoadedExecutable_Destroy, .executable = x));
}

static void test_errors(void **state)
{
	static const int codes[] = { PJRT_Error_Code_INTERNAL, 99, -1 };
	struct PJRT_LoadedExecutable *x;

	(void)state;
	assert_ok(register_as(NAME, strlen(NAME), &ours));
	for (unsigned i = 0; i < 3; i++) {
		n_asked = n_cleaned = 0;
		error = codes[i];
		/* Its last words, too. */
		assert_error(compile(&x), i ? PJRT_Error_Code_UNKNOWN : PJRT_Error_Code_INTERNAL,
			     "words: the end");
		assert_int_equal(n_asked, 1);
		assert_int_equal(n_cleaned, 1);
	}
	error = 0;
	tells_nothing = true;
	assert_error(compile(&x), INVALID, "bytes that are nowhere");
	assert_int_equal(n_cleaned, 2);
	tells_nothing = false;
	assert_ok(compile(&x));
	assert_ok(CALL(LoadedExecutable_Destroy, .executable = x));
}

static int start(void **state)
{
	int failed = load_plugin(state);

	if (failed)
		return failed;
	memset(long_text, 'w', sizeof(long_text) - 20);
	strcat(long_text, "words: the end");
	client = new_client("devices=2,hbm=256M,lanes=1");
	return 0;
}

static int stop(void **state)
{
	(void)state;
	drop_client(client);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_before_anybody_registers),
		cmocka_unit_test(test_registering),
		cmocka_unit_test(test_compiling),
		cmocka_unit_test(test_errors),
	};

	return cmocka_run_group_tests(tests, start, stop);
}
