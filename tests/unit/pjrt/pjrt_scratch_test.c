/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scratch, the memory of a program's temporaries, seen from outside: it goes with the
 * executable that needs it, gives way when memory is short, grows without needing room
 * for old and new, and lies where it cuts nothing in two. 64 MiB of HBM make all of
 * that visible.
 */
#include <pthread.h>

#include "pjrt_test.h"

#define HBM ((int64_t)64 << 20)

static struct PJRT_Client *client;
static struct PJRT_Device *dev;

static int open_client(void **state)
{
	if (load_plugin(state))
		return -1;
	client = new_client("hbm=64M,lanes=2");
	dev = device_of(client, 0);
	return 0;
}

static int close_client(void **state)
{
	(void)state;
	drop_client(client);
	return 0;
}

static int64_t in_use(void)
{
	return GET(Device_MemoryStats, bytes_in_use, .device = dev);
}

static int64_t largest_free(void)
{
	return GET(Device_MemoryStats, largest_free_block_bytes, .device = dev);
}

/* v -> (v v^T, turned upside down and around) v for n elements: the matrix of 4 n^2 bytes is a
 * temporary, and there is no dim along which it could be made in strips. */
static struct PJRT_LoadedExecutable *outer(int n)
{
	char text[1024];
	struct PJRT_Program p = program_of((struct bytes){ text, 0 });
	struct PJRT_LoadedExecutable *x;
	struct PJRT_Executable *shared;
	char options[32];
	int64_t temp;

	snprintf(text, sizeof(text), "module() {sym_name = \"outer%d\"} () {\n"
		 "  func() {sym_name = \"main\"} (%%0: tensor<%dxf32>) {\n"
		 "    %%1 = dot_general(%%0, %%0) {lhs_batching_dimensions = [], "
		 "lhs_contracting_dimensions = [], precision_config = [0, 0], "
		 "rhs_batching_dimensions = [], rhs_contracting_dimensions = []} : "
		 "tensor<%dx%dxf32>\n"
		 "    %%3 = reverse(%%1) {dimensions = [0, 1]} : tensor<%dx%dxf32>\n"
		 "    %%2 = dot_general(%%3, %%0) {lhs_batching_dimensions = [], "
		 "lhs_contracting_dimensions = [1], precision_config = [0, 0], "
		 "rhs_batching_dimensions = [], rhs_contracting_dimensions = [0]} : "
		 "tensor<%dxf32>\n    return(%%2)\n  }\n}\n", n, n, n, n, n, n, n);
	p.code_size = strlen(text);
	x = GET(Client_Compile, executable, .client = client, .program = &p,
		.compile_options = options, .compile_options_size = options_for(0, options));
	shared = GET(LoadedExecutable_GetExecutable, executable, .loaded_executable = x);
	temp = GET(Executable_GetCompiledMemoryStats, temp_size_in_bytes,
		   .executable = shared);
	assert_ok(CALL(Executable_Destroy, .executable = shared));
	/* These tests are about this much. */
	assert_in_range(temp, 4 * (int64_t)n * n, 4 * (int64_t)n * n + (1 << 20));
	return x;
}

static struct PJRT_Buffer *ones(int n)
{
	float *v = malloc((size_t)n * sizeof(*v));
	struct PJRT_Buffer *b;

	assert_non_null(v);
	for (int i = 0; i < n; i++)
		v[i] = 1;
	b = put_floats(client, v, n);
	free(v);
	return b;
}

/* Every element of the result is n. */
static void check_result(struct PJRT_Buffer *out, int n)
{
	float *v = calloc((size_t)n, sizeof(*v));

	assert_non_null(v);
	assert_ok(fetch(out, v, (size_t)n * sizeof(*v)));
	for (int i = 0; i < n; i++)
		assert_true(v[i] == (float)n);
	free(v);
	drop_buffer(out);
}

static void run_it(struct PJRT_LoadedExecutable *x, struct PJRT_Buffer *in, int n)
{
	struct PJRT_Buffer *out;

	assert_ok(run_exe(x, &in, 1, &out, NULL));
	check_result(out, n);
}

static struct PJRT_Error *take(int64_t bytes, struct PJRT_Buffer **out)
{
	struct PJRT_Client_CreateUninitializedBuffer_Args a;
	struct PJRT_Error *e = CALL_AS(&a, Client_CreateUninitializedBuffer, .client = client,
				       .shape_dims = &bytes, .shape_num_dims = 1,
				       .shape_element_type = PJRT_Buffer_Type_U8,
				       .device = dev);

	*out = a.buffer;
	return e;
}

static void scratch_goes_with_its_executable(void **state)
{
	int64_t before = in_use();
	struct PJRT_LoadedExecutable *x = outer(2048), *y = outer(1024);
	struct PJRT_Buffer *v = ones(2048), *w = ones(1024);

	(void)state;
	run_it(x, v, 2048);
	run_it(y, w, 1024);
	assert_in_range(in_use(), before + (16 << 20), before + (18 << 20));
	/* The smaller one can go without a change. */
	drop_exe(y);
	assert_in_range(in_use(), before + (16 << 20), before + (18 << 20));
	y = outer(1024);
	/* What is left needs less: the large block goes, a small one comes when it runs. */
	drop_exe(x);
	assert_in_range(in_use(), before, before + (1 << 20));
	run_it(y, w, 1024);
	assert_in_range(in_use(), before + (4 << 20), before + (5 << 20));
	/* Deleting is enough. */
	assert_ok(CALL(LoadedExecutable_Delete, .executable = y));
	assert_in_range(in_use(), before, before + (1 << 20));
	drop_exe(y);
	drop_buffer(v);
	drop_buffer(w);
	assert_int_equal(in_use(), before);
}

static void scratch_of_running_work_goes_when_that_ends(void **state)
{
	int64_t before = in_use();
	struct PJRT_LoadedExecutable *x = outer(3000);
	struct PJRT_Buffer *v = ones(3000), *outs[8];

	(void)state;
	for (int i = 0; i < 8; i++)
		assert_ok(run_exe(x, &v, 1, &outs[i], NULL));
	drop_exe(x);
	drop_buffer(v);
	for (int i = 0; i < 8; i++)
		check_result(outs[i], 3000);
	assert_int_equal(in_use(), before);
}

static void scratch_gives_way_when_memory_is_short(void **state)
{
	int64_t before = in_use();
	struct PJRT_LoadedExecutable *x = outer(3000);
	struct PJRT_Buffer *v = ones(3000), *outs[4], *b, *out;

	(void)state;
	/* 36 MB are in use by work that may still run; 50 MiB go nowhere beside it. */
	for (int i = 0; i < 4; i++)
		assert_ok(run_exe(x, &v, 1, &outs[i], NULL));
	assert_ok(take(50 << 20, &b));
	for (int i = 0; i < 4; i++)
		check_result(outs[i], 3000);
	/* No room for it: that says so, and comes back when there is. */
	assert_error(run_exe(x, &v, 1, &out, NULL), PJRT_Error_Code_RESOURCE_EXHAUSTED,
		     "\"temporaries\"");
	drop_buffer(b);
	run_it(x, v, 3000);
	drop_exe(x);
	drop_buffer(v);
	assert_int_equal(in_use(), before);
}

static void loading_takes_the_room_of_scratch(void **state)
{
	struct PJRT_LoadedExecutable *x = outer(3000), *y;
	struct PJRT_Buffer *v = ones(3000), *w = ones(64), *b;

	(void)state;
	run_it(x, v, 3000);
	/* All that is left: the next program's code has no place but the scratch's. */
	for (int i = 0; i < 3; i++) {
		assert_ok(take(largest_free(), &b));
		if (largest_free() == 0)
			break;
	}
	assert_int_equal(largest_free(), 0);
	y = outer(64);
	run_it(y, w, 64);
	drop_exe(x);
	drop_exe(y);
	drop_buffer(v);
	drop_buffer(w);
	drop_buffer(b);
}

static void growing_needs_no_room_for_old_and_new(void **state)
{
	struct PJRT_LoadedExecutable *x = outer(2048), *y = outer(3600);
	struct PJRT_Buffer *v = ones(2048), *w = ones(3600), *outs[4], *out;

	(void)state;
	/* 16.8 and 51.8 of 67.1 million bytes; first with the smaller at work. */
	for (int i = 0; i < 4; i++)
		assert_ok(run_exe(x, &v, 1, &outs[i], NULL));
	assert_ok(run_exe(y, &w, 1, &out, NULL));
	check_result(out, 3600);
	for (int i = 0; i < 4; i++)
		check_result(outs[i], 2048);
	drop_exe(y);
	y = outer(3600);
	run_it(x, v, 2048);
	run_it(y, w, 3600);
	run_it(x, v, 2048);
	drop_exe(x);
	drop_exe(y);
	drop_buffer(v);
	drop_buffer(w);
}

static void scratch_cuts_nothing_in_two(void **state)
{
	struct PJRT_LoadedExecutable *x = outer(1024), *y = outer(2048);
	struct PJRT_Buffer *v = ones(1024), *w = ones(2048), *kept[4];

	(void)state;
	/* Arrays that stay are made before, between and after. */
	assert_ok(take(1 << 20, &kept[0]));
	run_it(x, v, 1024);
	assert_ok(take(1 << 20, &kept[1]));
	run_it(y, w, 2048);
	assert_ok(take(1 << 20, &kept[2]));
	run_it(x, v, 1024);
	assert_ok(take(1 << 20, &kept[3]));
	assert_int_equal(largest_free(), HBM - in_use());
	drop_exe(x);
	drop_exe(y);
	assert_int_equal(largest_free(), HBM - in_use());
	for (int i = 0; i < 4; i++)
		drop_buffer(kept[i]);
	drop_buffer(v);
	drop_buffer(w);
}

/* ---- threads: programs whose scratch does not fit side by side ---- */

struct worker {
	pthread_t thread;
	struct PJRT_LoadedExecutable *x;
	struct PJRT_Buffer *in;
	int n, rounds, wrong;
};

static void *run_often(void *arg)
{
	struct worker *w = arg;
	float *v = calloc((size_t)w->n, sizeof(*v));

	for (int r = 0; v && r < w->rounds; r++) {
		struct PJRT_Buffer *out;
		struct PJRT_Error *e = run_exe(w->x, &w->in, 1, &out, NULL);

		if (!e) {
			e = fetch(out, v, (size_t)w->n * sizeof(*v));
			CALL(Buffer_Destroy, .buffer = out);
		}
		if (e)
			print_error("n = %d: %s\n", w->n, error_text(e));
		w->wrong += e != NULL;
		drop_error(e);
		for (int i = 0; i < w->n; i++)
			w->wrong += v[i] != (float)w->n;
	}
	free(v);
	return NULL;
}

static void threads_share_scratch_that_grows_and_goes(void **state)
{
	static const int sizes[] = { 3000, 3100, 2048, 256 };
	struct worker w[4] = { 0 };
	int64_t before = in_use();

	(void)state;
	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < 4; i++) {
			w[i] = (struct worker){ .x = outer(sizes[i]), .in = ones(sizes[i]),
						.n = sizes[i], .rounds = 6 };
			assert_int_equal(pthread_create(&w[i].thread, NULL, run_often, &w[i]),
					 0);
		}
		for (int i = 0; i < 4; i++) {
			pthread_join(w[i].thread, NULL);
			assert_int_equal(w[i].wrong, 0);
		}
		for (int i = 0; i < 4; i++) {
			drop_exe(w[i].x);
			drop_buffer(w[i].in);
		}
	}
	assert_int_equal(in_use(), before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(scratch_goes_with_its_executable),
		cmocka_unit_test(scratch_of_running_work_goes_when_that_ends),
		cmocka_unit_test(scratch_gives_way_when_memory_is_short),
		cmocka_unit_test(loading_takes_the_room_of_scratch),
		cmocka_unit_test(growing_needs_no_room_for_old_and_new),
		cmocka_unit_test(scratch_cuts_nothing_in_two),
		cmocka_unit_test(threads_share_scratch_that_grows_and_goes),
	};

	return cmocka_run_group_tests(tests, open_client, close_client);
}
