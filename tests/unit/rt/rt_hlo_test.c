/* SPDX-License-Identifier: Apache-2.0 */
/* Programs that come as MLIR and as an HLO module must give the same bits: both readers end in
 * the same IR. */
#include <glob.h>
#include <unistd.h>

#include "tests/unit/against_eval.h"
#include "tests/unit/torch.h"

#define HLO_DIR "tests/data/hlo"

struct results { size_t n; struct rt_shape *shapes; char **data; };

static struct results run(struct tc_source s)
{
	struct results out = { 0 };
	struct rt_buffer *in[32], *outs[32];
	const struct image *image;
	struct rt_event *done;
	struct tc_array *args;
	struct rt_exe *x;
	struct err err;

	if (rt_compile(eval_client, s.code, s.bytes, s.format, NULL, 0, &x, &err))
		fail_msg("%s: %s", s.format, err.msg);
	image = rt_program_image(rt_exe_program(x));
	assert_true(image->info.n_args <= 32 && image->info.n_results <= 32);
	args = against_eval_args(image);
	for (unsigned i = 0; i < image->info.n_args; i++)
		in[i] = against_eval_send(&args[i]);
	if (rt_execute(x, in, image->info.n_args, NULL, outs, &done, &err) ||
	    rt_event_wait(done, &err))
		fail_msg("%s: %s", s.format, err.msg);
	rt_event_unref(done);
	out.n = image->info.n_results;
	out.shapes = calloc(out.n, sizeof(*out.shapes));
	out.data = calloc(out.n, sizeof(*out.data));
	for (size_t i = 0; i < out.n; i++) {
		uint64_t bytes;

		out.shapes[i] = *rt_buffer_shape(outs[i]);
		bytes = rt_shape_bytes(&out.shapes[i]);
		out.data[i] = malloc(bytes + 1);
		if (rt_buffer_to_host(outs[i], 0, out.data[i], bytes, &done, &err) ||
		    rt_event_wait(done, &err))
			fail_msg("%s", err.msg);
		rt_event_unref(done);
		rt_buffer_unref(outs[i]);
	}
	for (unsigned i = 0; i < image->info.n_args; i++)
		rt_buffer_unref(in[i]);
	tc_array_free(args, image->info.n_args);
	rt_exe_unref(x);
	return out;
}

static void drop(struct results *r)
{
	for (size_t i = 0; i < r->n; i++)
		free(r->data[i]);
	free(r->data);
	free(r->shapes);
}

static struct tc_source find_mlir(const char *name)
{
	static const char *const folders[] = { "programs", "vectors" };
	struct tc_source s = { .format = "mlir" };
	char path[256];

	for (unsigned i = 0; i < 2 && !s.code; i++) {
		snprintf(path, sizeof(path), "tests/data/%s/%s.mlirbc", folders[i], name);
		s.code = torch_read_file(path, &s.bytes);
	}
	return s;
}

static void both_forms_give_the_same_bits(void **state)
{
	glob_t found = { 0 };

	(void)state;
	glob(HLO_DIR "/*.hlo", 0, NULL, &found);
	assert_int_equal(found.gl_pathc, 22);
	for (size_t i = 0; i < found.gl_pathc; i++) {
		struct tc_source hlo = { .format = "hlo" }, mlir;
		char name[128];
		struct results a, b;

		snprintf(name, sizeof(name), "%s", found.gl_pathv[i] + sizeof(HLO_DIR));
		name[strlen(name) - 4] = '\0';
		hlo.code = torch_read_file(found.gl_pathv[i], &hlo.bytes);
		mlir = find_mlir(name);
		assert_non_null(hlo.code);
		assert_non_null(mlir.code);
		a = run(hlo);
		b = run(mlir);
		assert_int_equal(a.n, b.n);
		for (size_t k = 0; k < a.n; k++)
			if (memcmp(&a.shapes[k], &b.shapes[k], sizeof(a.shapes[k])) ||
			    memcmp(a.data[k], b.data[k], rt_shape_bytes(&a.shapes[k])))
				fail_msg("%s: result %zu differs", name, k);
		drop(&a);
		drop(&b);
		free((void *)(uintptr_t)hlo.code);
		free((void *)(uintptr_t)mlir.code);
	}
	globfree(&found);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_forms_give_the_same_bits),
	};

	return cmocka_run_group_tests(tests, against_eval_start, against_eval_stop);
}
