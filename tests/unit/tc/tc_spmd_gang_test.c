/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs shared out among several devices, evaluated by all members side by side, and run on
 * linked devices: what each gives is its part of the answer.
 */
#include "tests/unit/gang.h"
#include "tests/unit/spmd.h"

/* Programs that can't be evaluated, and why; they may run. */
static const struct exception { const char *name, *why; bool runs; } exceptions[] = {
	{ "jit__custom_partitioning", "a function of Python's process is to share it out",
	  false },
	{ "other__qr_batch", "the evaluator has no Qr", true },
};

static const struct exception *find_exception(const char *name)
{
	for (size_t i = 0; i < sizeof(exceptions) / sizeof(*exceptions); i++)
		if (!strcmp(exceptions[i].name, name))
			return &exceptions[i];
	return NULL;
}

static void check_programs(unsigned level, spmd_evaluate *evaluate)
{
	const struct tc_options o = { .level = level, .verify = evaluate == tc_eval_gang,
				      .evaluate_after = "shard" };
	bool on_devices = evaluate != tc_eval_gang;
	unsigned n = 0, n_odd = 0;

	assert_true(n_programs > 0);
	for (unsigned i = 0; i < n_programs; i++) {
		const struct exception *e = find_exception(programs[i].name);
		bool is_right = agrees(&programs[i], &o, evaluate);

		n_odd += is_right != (!e || (on_devices && e->runs));
		n += is_right;
	}
	print_message("level %u%s: %u of %u programs agree\n", level,
		      on_devices ? ", on devices" : "", n, n_programs);
	assert_int_equal(n_odd, 0);
}

static void test_whole(void **state)
{
	(void)state;
	check_programs(0, tc_eval_gang);
}

static void test_parts(void **state)
{
	(void)state;
	check_programs(1, tc_eval_gang);
}

static void test_devices(void **state)
{
	gang_start(state);
	for (gang_direct = 0; gang_direct < 2; gang_direct++)
		check_programs(1, gang_evaluate);
	gang_direct = 0;
	gang_stop(state);
}

/* ---- what frameworks are told ---- */

static const struct program *find(const char *name)
{
	for (unsigned i = 0; i < n_programs; i++)
		if (!strcmp(programs[i].name, name))
			return &programs[i];
	fail_msg("no program %s", name);
	return NULL;
}

/* Of a mesh [x=4,y=2]: x by rows, weights by columns and rows; the result by rows. */
static void test_shardings(void **state)
{
	static const char *const should[] = {
		"\x08\x03\x1a\x03\x04\x01\x02\x30\x01\x4a\x01\x08\x52\x01",
		"\x08\x03\x1a\x03\x01\x02\x04\x30\x01\x4a\x02\x04\x02\x52\x02\x01",
		"\x08\x03\x1a\x03\x02\x01\x04\x30\x01\x4a\x02\x04\x02\x52\x02\x01",
		"\x08\x03\x1a\x03\x04\x01\x02\x30\x01\x4a\x01\x08\x52\x01",
	};
	const struct program *p = find("dot__megatron");
	const struct tc_options o = { .level = 1, .partitions = 8 };
	struct tc_result r;
	struct image *im;
	struct err err;
	size_t at = 0;

	(void)state;
	if (tc_compile(&(struct tc_source){ p->code, p->bytes, "mlir" }, &o, &r, &err) ||
	    image_parse(r.image, r.image_bytes, &im, &err))
		fail_msg("%s", err.msg);
	assert_int_equal(im->info.n_partitions, 8);
	for (unsigned i = 0; i < 4; i++) {
		uint32_t n;
		const void *is = image_next_sharding(im, &at, &n);

		assert_non_null(is);
		/* Ends in the 0 that the text does, too. */
		assert_int_equal(n, strlen(should[i]) + 1);
		assert_memory_equal(is, should[i], n);
	}
	/* Rows of x are cut, columns of the first weights. */
	assert_int_equal(im->shapes[0].dim[0], 4);
	assert_int_equal(im->shapes[1].dim[1], 32);
	image_free(im);
	tc_result_free(&r);
}

/* ---- what is refused ---- */

static void refuses(const char *args, const char *body, int code, const char *why)
{
	static const struct tc_options o = { .level = 1, .verify = true, .partitions = 8 };
	struct str text = { 0 };
	struct tc_result r = { 0 };
	struct err err = { 0 };

	str_printf(&text, "module() {meshes = {mesh = \"[x=4,y=2]\", small = \"[x=2]\", "
		   "single = \"[i=1]\"}} () {\n"
		   "func() {sym_name = \"main\"} (%s) {\n%s}\n}\n", args, body);
	if (tc_compile(&(struct tc_source){ text.text, text.len, "mlir" }, &o, &r, &err) != code ||
	    (why && !strstr(err.msg, why)))
		fail_msg("%d: %s\n%s", err.code, err.msg, text.text);
	tc_result_free(&r);
	str_free(&text);
}

#define MANUAL(in, type) "%1 = manual_computation(%0) {in_shardings = {a = \"@mesh[" in "]\"}, " \
	"out_shardings = {a = \"@mesh[" in "]\"}, manual_axes = \"{x}\"} : tensor<8xf32> " \
	"(%2: tensor<" type "xf32>) {\nreturn(%2)\n}\nreturn(%1)\n"

static void test_refused(void **state)
{
	(void)state;
	refuses("%0: tensor<8xf32>", MANUAL("{x}", "2"), 0, NULL);
	refuses("%0: tensor<8xf32>", MANUAL("{x}", "4"), ERR_INVALID_ARGUMENT,
		"argument 0 of the body is no part of what is outside");
	refuses("%0: tensor<6xf32>", MANUAL("{x}", "2"), ERR_INVALID_ARGUMENT,
		"argument 0 of the body: 4 parts of 6 elements of dim 0: make them even");
	refuses("%0: tensor<8xf32> {sharding = \"{maximal device=3}\"}", "return(%0)\n",
		ERR_UNIMPLEMENTED, "argument 0 of the program is on device 3 alone, of 8");
	refuses("%0: tensor<8xf32> {sharding = \"@small[{x}]\"}", "return(%0)\n",
		ERR_UNIMPLEMENTED, "@small[{x}] is over another mesh");
	/* Of a program that was exported for one device; and an order in memory. */
	refuses("%0: tensor<8xf32> {sharding = \"@mesh[{x}]\"}", "%1 = sharding_constraint(%0) "
		"{sharding = \"@single[{i}]\"} : tensor<8xf32>\n%2 = custom_call(%1) "
		"{call_target_name = \"LayoutConstraint\"} : tensor<8xf32>\nreturn(%2)\n", 0, NULL);
	refuses("%0: tensor<8xf32>", "%1 = create_token() : token\n%2 = send(%0, %1) {channel_id = "
		"1, is_host_transfer = true, sharding = \"{maximal device=8}\"} : token\n"
		"return(%0)\n", ERR_INVALID_ARGUMENT, "it is on device 8, the program is for 8");
	refuses("%0: tensor<8xf32> {sharding = \"@mesh[{x}]unreduced{y}\"}", "return(%0)\n",
		0, NULL);
	refuses("%0: tensor<8xf32>", "%1 = create_token() : token\n%2 = custom_call(%1) "
		"{call_target_name = \"SPMDShardToFullShape\", sharding = \"{replicated}\"} : "
		"tensor<8xf32>\nreturn(%2)\n", ERR_UNIMPLEMENTED, "SPMDShardToFullShape");
	refuses("%0: tensor<8xf32>", "%1 = custom_call(%0) {call_target_name = "
		"\"SPMDFullToShardShape\", sharding = \"{manual}\"} : tensor<2xf32>\n"
		"return(%1)\n", ERR_INVALID_ARGUMENT, "result 0 of the body is no part");
}

/* What a region takes from around it comes along, also where that is a part by now: so it is
 * refused for what it is, in the program's own words. */
static void test_captured(void **state)
{
	(void)state;
	refuses("%0: tensor<8xf32>, %1: tensor<f32>", "%2 = manual_computation(%0, %1) "
		"{in_shardings = {a = \"@mesh[{x}]\", b = \"@mesh[]\"}, out_shardings = "
		"{a = \"@mesh[]\"}, manual_axes = \"{x}\"} : tensor<f32> (%3: tensor<2xf32>, "
		"%4: tensor<f32>) {\n%5 = reduce(%3, %4) {dimensions = [0]} : tensor<f32> "
		"(%6: tensor<f32>, %7: tensor<f32>) {\n%8 = add(%6, %7) : tensor<f32>\n"
		"%9 = add(%8, %4) : tensor<f32>\nreturn(%9)\n}\nreturn(%5)\n}\nreturn(%2)\n",
		ERR_UNIMPLEMENTED, "a body uses a value from outside");
	refuses("%0: tensor<8xf32> {sharding = \"@mesh[{x}]\"}", "%1 = negate(%0) : "
		"tensor<8xf32>\n%2 = tc.opaque(%0) {name = \"odd\"} : tensor<8xf32> () {\n"
		"%3 = add(%0, %1) : tensor<8xf32>\nreturn(%3)\n}\nreturn(%2)\n",
		ERR_UNIMPLEMENTED, "odd: it does not run yet");
}

static void test_meshes_are_texts(void **state)
{
	static const char *const meshes[] = { "[1]", "4", "{mesh = 4}", "\"[x=8]\"" };
	static const struct tc_options o = { .level = 1, .partitions = 8 };

	(void)state;
	for (unsigned i = 0; i < sizeof(meshes) / sizeof(*meshes); i++) {
		struct str text = { 0 };
		struct tc_result r = { 0 };
		struct err err = { 0 };

		str_printf(&text, "module() {meshes = %s} () {\nfunc() {sym_name = \"main\"} "
			   "(%%0: tensor<8xf32>) {\nreturn(%%0)\n}\n}\n", meshes[i]);
		assert_int_equal(tc_compile(&(struct tc_source){ text.text, text.len, "mlir" }, &o,
					    &r, &err), ERR_INVALID_ARGUMENT);
		assert_non_null(strstr(err.msg, "mesh"));
		tc_result_free(&r);
		str_free(&text);
	}
}

/* ---- programs with others that give the same ---- */

/* Integers from -8 to 8. */
static struct tc_array some_numbers(const struct lay *l, uint64_t *seed)
{
	struct tc_array a = { .elem = l->elem, .rank = l->rank, .bytes = 4 };

	assert_int_equal(l->elem, ELEM_F32);
	for (unsigned d = 0; d < l->rank; d++) {
		a.dim[d] = l->dim[d];
		a.bytes *= (size_t)l->dim[d];
	}
	a.data = malloc(a.bytes);
	assert_non_null(a.data);
	for (size_t k = 0; k < a.bytes / 4; k++) {
		*seed = *seed * 6364136223846793005u + 1442695040888963407u;
		((float *)a.data)[k] = (float)(*seed >> 33 & 15) - 8;
	}
	return a;
}

/* Of a program over a mesh, and one for one device (NULL: itself), whose arguments are f32. */
static void gives(const char *mesh, unsigned partitions, const char *program,
		  const char *same)
{
	struct str text = { 0 }, single = { 0 };
	static struct lays l;
	struct tc_array args[4], *should;
	struct tc_source source, one;
	struct err err;
	uint64_t seed = 1;
	size_t n;
	double far;

	str_printf(&text, "module() {num_partitions = %u, meshes = {mesh = \"%s\"}} () {\n"
		   "func() {sym_name = \"main\"} %s}\n", partitions, mesh, program);
	if (same)
		str_printf(&single, "module() () {\nfunc() {sym_name = \"main\"} %s}\n", same);
	else
		str_printf(&single, "%s", text.text);
	source = (struct tc_source){ text.text, text.len, "mlir" };
	one = (struct tc_source){ single.text, single.len, "mlir" };
	for (unsigned level = 0; level < 2; level++) {
		const struct tc_options o = { .level = level, .verify = true,
					      .partitions = partitions,
					      .evaluate_after = "shard" };

		l = (struct lays){ .partitions = partitions };
		if (tc_enter(&source, &o, &err, lay_find_all, &l))
			fail_msg("%s\n%s", err.msg, text.text);
		assert_true(l.n_args <= sizeof(args) / sizeof(*args));
		for (unsigned i = 0; i < l.n_args; i++)
			args[i] = some_numbers(&l.arg[i], &seed);
		if (tc_eval(&one, args, l.n_args, &should, &n, &err))
			fail_msg("%s\n%s", err.msg, single.text);
		assert_int_equal(n, l.n_results);
		if (run_parts(tc_eval_gang, &source, &o, &l, args, should, &far, &err))
			fail_msg("%s\n%s", err.msg, text.text);
		if (far > 1)
			fail_msg("level %u: %g bounds off\n%s", level, far, text.text);
		tc_array_free(should, n);
		for (unsigned i = 0; i < l.n_args; i++)
			free(args[i].data);
	}
	str_free(&text);
	str_free(&single);
}

/* A body along x, and what is to come of %0 in %1. */
#define BODY_ALONG_X(in, part, body) "%1 = manual_computation(%0) {in_shardings = {a = \"@mesh[" \
	in "]\"}, out_shardings = {a = \"@mesh[{x,?},{?}]\"}, manual_axes = \"{x}\"} : " \
	"tensor<16x8xf32> (%2: tensor<" part "xf32>) {\n" body "}\n"
#define TWICE "(%0: tensor<16x8xf32>) {\n%1 = add(%0, %0) : tensor<16x8xf32>\nreturn(%1)\n}\n"
#define ADD_IN_BODY "%4 = add(%3, %3) : tensor<8x8xf32>\nreturn(%4)\n"

/* Outside and inside get an axis in one round, in different dims: neither has it twice. */
static void test_sides_of_a_body(void **state)
{
	(void)state;
	gives("[x=2,y=4]", 8, "(%0: tensor<16x8xf32> {sharding = \"@mesh[{x},{y}]\"}) {\n"
	      BODY_ALONG_X("{x,?},{?}", "8x8", "%3 = sharding_constraint(%2) {sharding = "
			   "\"@mesh[{y},{}]\"} : tensor<8x8xf32>\n" ADD_IN_BODY)
	      "return(%1)\n}\n", TWICE);
	gives("[x=2,y=4]", 8, "(%0: tensor<16x8xf32> {sharding = \"@mesh[{x},{}]\"}) {\n"
	      BODY_ALONG_X("{x,?},{?}", "8x8", "%3 = add(%2, %2) : tensor<8x8xf32>\n"
			   "%4 = sharding_constraint(%3) {sharding = \"@mesh[{y},{}]\"} : "
			   "tensor<8x8xf32>\nreturn(%4)\n")
	      "%5 = sharding_constraint(%1) {sharding = \"@mesh[{x},{y}]\"} : "
	      "tensor<16x8xf32>\nreturn(%5)\n}\n", TWICE);
}

#define SUM_OF(n, x, dims, type) "%" n " = reduce(" x ", %90) {dimensions = [" dims "]} : " type \
	" (%1" n ": tensor<f32>, %2" n ": tensor<f32>) {\n%3" n " = add(%1" n ", %2" n ") : " \
	"tensor<f32>\nreturn(%3" n ")\n}\n"
#define ZERO "%90 = constant() {value = dense<splat 0x00000000> : tensor<f32>} : tensor<f32>\n"
#define LIE(to, x, type, how) \
	to " = sharding_constraint(" x ") {sharding = \"@mesh" how "\"} : tensor<" type "xf32>\n"

/* The first two and the last two parts of an axis of six are no digits of one number. */
static void test_pieces_of_no_common_grid(void **state)
{
	(void)state;
	gives("[x=6]", 6, "(%0: tensor<6x4xf32> {sharding = \"@mesh[{x},{}]\"}, "
	      "%1: tensor<6x4xf32> {sharding = \"@mesh[{x},{}]\"}) {\n" ZERO
	      "%2 = reshape(%0) : tensor<2x3x4xf32>\n" SUM_OF("43", "%2", "1, 2", "tensor<2xf32>")
	      "%4 = reshape(%1) : tensor<3x2x4xf32>\n" SUM_OF("45", "%4", "0, 2", "tensor<2xf32>")
	      "%6 = broadcast_in_dim(%43) {broadcast_dimensions = [0]} : tensor<2x2xf32>\n"
	      "%7 = broadcast_in_dim(%45) {broadcast_dimensions = [1]} : tensor<2x2xf32>\n"
	      "%8 = multiply(%6, %7) : tensor<2x2xf32>\nreturn(%8)\n}\n", NULL);
	gives("[x=6]", 6, "(%0: tensor<2x12xf32>) {\n" ZERO
	      LIE("%1", "%0", "2x12", "[{x:(1)2},{x:(2)3}]")
	      LIE("%2", "%1", "2x12", "[{},{x:(3)2}]")
	      LIE("%3", "%2", "2x12", "[{x:(1)2},{}]")
	      LIE("%4", "%3", "2x12", "[{x:(3)2},{x:(1)3}]")
	      LIE("%5", "%4", "2x12", "[{x:(1)2},{x:(2)3}]")
	      SUM_OF("46", "%5", "1", "tensor<2xf32>")
	      LIE("%7", "%46", "2", "[{x:(3)2}]")
	      SUM_OF("48", "%2", "1", "tensor<2xf32>")
	      LIE("%9", "%48", "2", "[{x:(1)2}]") "return(%5, %7, %9)\n}\n", NULL);
}

/* Parts that go to other members stay where the place along x is the same. */
static void test_parts_that_are_passed_on(void **state)
{
	(void)state;
	gives("[a=2,b=2,x=2,c=2]", 16, "(%0: tensor<16xf32> {sharding = \"@mesh[{x}]\"}) {\n"
	      "%1 = manual_computation(%0) {in_shardings = {a = \"@mesh[{x}]\"}, out_shardings = "
	      "{a = \"@mesh[{x}]\"}, manual_axes = \"{x}\"} : tensor<16xf32> (%2: tensor<8xf32>) "
	      "{\n" LIE("%3", "%2", "8", "[{a,b}]") LIE("%4", "%3", "8", "[{c,a}]")
	      "return(%4)\n}\nreturn(%1)\n}\n", "(%0: tensor<16xf32>) {\nreturn(%0)\n}\n");
	gives("[a=2,b=2,x=2,c=2]", 16, "(%0: tensor<8xf32>) {\n"
	      LIE("%1", "%0", "8", "[{a,b}]unreduced{x}")
	      LIE("%2", "%1", "8", "[{c,a}]unreduced{x}")
	      LIE("%3", "%2", "8", "[{}]") "return(%3)\n}\n", NULL);
}

/* What is drawn within what each device does by itself is its own along x, from %0 to less than
 * 1 / 2 more, and the same along y. */
static void test_draws_in_a_body(void **state)
{
	static const char same[] = "(%0: tensor<2xf32>) {\nreturn(%0)\n}\n";
#define DRAWS(mesh_y) "(%0: tensor<2xf32> {sharding = \"@mesh[{x}]\"}) {\n" ZERO \
	"%1 = manual_computation(%0) {in_shardings = {a = \"@mesh[{x}]\"}, out_shardings = " \
	"{a = \"@mesh[{x}]\"}, manual_axes = \"{x" mesh_y "}\"} : tensor<2xf32> " \
	"(%2: tensor<1xf32>) {\n%3 = reshape(%2) : tensor<f32>\n%4 = constant() {value = " \
	"dense<splat 0x0000003f> : tensor<f32>} : tensor<f32>\n%5 = add(%3, %4) : tensor<f32>\n" \
	"%6 = constant() {value = dense<0x0400000000000000> : tensor<1xi64>} : tensor<1xi64>\n" \
	"%7 = rng(%3, %5, %6) {rng_distribution = <1>} : tensor<4xf32>\n" \
	"%8 = slice(%7) {start_indices = [0], limit_indices = [1], strides = [1]} : " \
	"tensor<1xf32>\n"

	(void)state;
	gives("[x=2]", 2, DRAWS("") "%9 = floor(%8) : tensor<1xf32>\nreturn(%9)\n}\n"
	      "return(%1)\n}\n", same);
	gives("[x=2,y=4]", 8, DRAWS(",y") "%9 = floor(%8) : tensor<1xf32>\nreturn(%9)\n}\n"
	      "return(%1)\n}\n", same);
	/* Bits 4 to 13 below the point, so that all sums are exact. */
	gives("[x=2,y=4]", 8, DRAWS("") "%9 = floor(%8) : tensor<1xf32>\n"
	      "%10 = constant() {value = dense<splat 0x00000046> : tensor<4xf32>} : tensor<4xf32>\n"
	      "%11 = multiply(%7, %10) : tensor<4xf32>\n%12 = floor(%11) : tensor<4xf32>\n"
	      LIE("%13", "%12", "4", "[{y}]") LIE("%14", "%12", "4", "[{}]")
	      SUM_OF("45", "%13", "0", "tensor<f32>") SUM_OF("46", "%14", "0", "tensor<f32>")
	      "%17 = subtract(%45, %46) : tensor<f32>\n%18 = reshape(%17) : tensor<1xf32>\n"
	      "%19 = add(%9, %18) : tensor<1xf32>\nreturn(%19)\n}\nreturn(%1)\n}\n", same);
}

/* A constant that is left as parts of a sum is counted once. */
static void test_constants_left_as_sums(void **state)
{
#define THREES(value) "(%0: tensor<2xf32>) {\n%1 = constant() {value = " value " : " \
	"tensor<2xf32>} : tensor<2xf32>\n" LIE("%2", "%1", "2", "[{}]unreduced{x}") \
	LIE("%3", "%2", "2", "[{}]") "%4 = add(%3, %0) : tensor<2xf32>\nreturn(%4)\n}\n"

	(void)state;
	gives("[x=2,y=4]", 8, THREES("dense<splat 0x00004040>"), NULL);
	gives("[x=2,y=4]", 8, THREES("dense<0x0000404000008040>"), NULL);
	gives("[x=2,y=4]", 8, "(%0: tensor<8xf32>) {\n%1 = iota() {iota_dimension = 0} : "
	      "tensor<8xf32>\n" LIE("%2", "%1", "8", "[{y}]unreduced{x}")
	      LIE("%3", "%2", "8", "[{}]")
	      "%4 = add(%3, %0) : tensor<8xf32>\nreturn(%4)\n}\n", NULL);
}

#define ALONG_X "replica_groups = [0, 2, 1, 3], group_size = 2, channel_id = 1, " \
	"use_global_device_ids = true"

/* The operands of one collective need not have dims in common. */
static void test_collectives_of_several_shapes(void **state)
{
	(void)state;
	gives("[x=2,y=2]", 4, "(%0: tensor<1x2x2x2x8xf32> {sharding = \"@mesh[{},{},{},{},{y}]\"}, "
	      "%1: tensor<2x6xf32>) {\n%2, %3 = manual_computation(%0, %1) {in_shardings = "
	      "{a = \"@mesh[{},{},{},{},{?}]\", b = \"@mesh[{?},{?}]\"}, out_shardings = "
	      "{a = \"@mesh[{},{},{},{},{?}]\", b = \"@mesh[{},{}]\"}, manual_axes = \"{x}\"} : "
	      "tensor<1x2x2x2x8xf32>, tensor<2x6xf32> (%4: tensor<1x2x2x2x8xf32>, "
	      "%5: tensor<2x6xf32>) {\n%6, %7 = all_reduce(%4, %5) {" ALONG_X "} : "
	      "tensor<1x2x2x2x8xf32>, tensor<2x6xf32> (%8: tensor<f32>, %9: tensor<f32>) {\n"
	      "%10 = add(%8, %9) : tensor<f32>\nreturn(%10)\n}\nreturn(%6, %7)\n}\n"
	      "return(%2, %3)\n}\n", "(%0: tensor<1x2x2x2x8xf32>, %1: tensor<2x6xf32>) {\n"
	      "%2 = add(%0, %0) : tensor<1x2x2x2x8xf32>\n%3 = add(%1, %1) : tensor<2x6xf32>\n"
	      "return(%2, %3)\n}\n");
	gives("[x=2,y=2]", 4, "(%0: tensor<2x3xf32>, %1: tensor<2x6x4xf32> {sharding = "
	      "\"@mesh[{x},{},{y}]\"}) {\n%2, %3 = manual_computation(%0, %1) {in_shardings = "
	      "{a = \"@mesh[{x},{}]\", b = \"@mesh[{x},{},{?}]\"}, out_shardings = "
	      "{a = \"@mesh[{},{}]\", b = \"@mesh[{},{},{?}]\"}, manual_axes = \"{x}\"} : "
	      "tensor<2x3xf32>, tensor<2x6x4xf32> (%4: tensor<1x3xf32>, %5: tensor<1x6x4xf32>) {\n"
	      "%6, %7 = all_gather(%4, %5) {all_gather_dim = 0, " ALONG_X "} : tensor<2x3xf32>, "
	      "tensor<2x6x4xf32>\nreturn(%6, %7)\n}\nreturn(%2, %3)\n}\n",
	      "(%0: tensor<2x3xf32>, %1: tensor<2x6x4xf32>) {\nreturn(%0, %1)\n}\n");
}

/* A narrow number that is counted is rounded once. */
static void test_narrow_numbers(void **state)
{
	(void)state;
	gives("[x=4]", 4, "(%0: tensor<8192xf32>) {\n"
	      "%1 = iota() {iota_dimension = 0} : tensor<8192xbf16>\n"
	      LIE("%2", "%0", "8192", "[{x}]")
	      "%3 = convert(%1) : tensor<8192xf32>\n"
	      "%4 = iota() {iota_dimension = 0} : tensor<8192xi32>\n"
	      "%5 = convert(%4) : tensor<8192xbf16>\n%6 = convert(%5) : tensor<8192xf32>\n"
	      "%7 = subtract(%3, %6) : tensor<8192xf32>\n%8 = multiply(%7, %2) : tensor<8192xf32>\n"
	      LIE("%9", "%8", "8192", "[{x}]") "return(%9)\n}\n", NULL);
}

/* Whether the places of members are counted in 64 bits, or all in 32. */
static bool counts_in_64_bits(const char *program)
{
	const struct tc_options o = { .level = 1, .partitions = 8 };
	struct str text = { 0 };
	unsigned n[2] = { 0 };
	struct err err;
	char *ir;

	str_printf(&text, "module() {num_partitions = 8, meshes = {mesh = \"[x=8]\"}} () {\n"
		   "func() {sym_name = \"main\"} %s}\n", program);
	if (tc_print(&(struct tc_source){ text.text, text.len, "mlir" }, &o, "shard", &ir, &err))
		fail_msg("%s\n%s", err.msg, text.text);
	for (const char *at = ir; (at = strstr(at, "multiply(")); at++) {
		const char *type = strstr(at, "tensor<");

		assert_non_null(type);
		n[!strncmp(type, "tensor<i64>", 11)]++;
	}
	if (!n[0] == !n[1])
		fail_msg("%u in 32 bits, %u in 64:\n%s", n[0], n[1], ir);
	free(ir);
	str_free(&text);
	return n[1];
}

#define COUNTS(size, elem) "(%0: tensor<8xf32>) {\n%1 = iota() {iota_dimension = 0} : tensor<" \
	size "x" elem ">\n%2 = sharding_constraint(%1) {sharding = \"@mesh[{x}]\"} : tensor<" \
	size "x" elem ">\nreturn(%2)\n}\n"
#define CUTS(size) "(%0: tensor<3x" size "xi8> {sharding = \"@mesh[{},{}]\"}) {\n" \
	"%1 = sharding_constraint(%0) {sharding = \"@mesh[{},{x}]\"} : tensor<3x" size \
	"xi8>\nreturn(%1)\n}\n"
#define TAKES(size, index) "(%0: tensor<" size "xi8> {sharding = \"@mesh[{x}]\"}, " \
	"%1: tensor<3x1x" index ">) {\n%2 = gather(%0, %1) {offset_dims = [], " \
	"collapsed_slice_dims = [0], operand_batching_dims = [], start_indices_batching_dims = " \
	"[], start_index_map = [0], index_vector_dim = 1, slice_sizes = [1], " \
	"indices_are_sorted = false} : tensor<3xi8>\nreturn(%2)\n}\n"

/* Where the last part of 5 * 2^29 elements begins, s32 can't say. */
static void test_places_beyond_31_bits(void **state)
{
	(void)state;
	assert_true(counts_in_64_bits(COUNTS("2684354560", "i64")));
	assert_true(counts_in_64_bits(COUNTS("2684354560", "f32")));
	assert_false(counts_in_64_bits(COUNTS("2147483640", "i64")));
	assert_true(counts_in_64_bits(CUTS("2684354560")));
	assert_false(counts_in_64_bits(CUTS("2147483640")));
	assert_true(counts_in_64_bits(TAKES("2684354560", "i64")));
	assert_true(counts_in_64_bits(TAKES("2684354560", "i32")));
	assert_false(counts_in_64_bits(TAKES("2147483640", "i64")));
}

/* A constraint over a mesh that is no part of the program's says nothing; others are refused. */
static void test_meshes_that_do_not_fit(void **state)
{
	(void)state;
	gives("[a=2,b=3]", 6, "(%0: tensor<6x6xf32> {sharding = \"@mesh[{a},{b}]\"}) {\n"
	      "%1 = negate(%0) : tensor<6x6xf32>\n%2 = sharding_constraint(%1) {sharding = "
	      "\"[p=3,q=2][{p},{q}]\"} : tensor<6x6xf32>\n%3 = add(%2, %0) : tensor<6x6xf32>\n"
	      "return(%2, %3)\n}\n", NULL);
	refuses("%0: tensor<8xf32>", "%1 = manual_computation(%0) {in_shardings = {a = "
		"\"@small[{x}]\"}, out_shardings = {a = \"@mesh[{x}]\"}, manual_axes = \"{x}\"} : "
		"tensor<8xf32> (%2: tensor<2xf32>) {\nreturn(%2)\n}\nreturn(%1)\n",
		ERR_UNIMPLEMENTED, "@small[{x}] is over another mesh");
}

/* ---- random programs ---- */

static const struct random_mesh {
	const char *text;
	unsigned devices, n;
	char axis[3][2];
} meshes[] = {
	{ "[x=4,y=2]", 8, 2, { "x", "y" } },
	{ "[x=2,y=2,z=2]", 8, 3, { "x", "y", "z" } },
	{ "[x=4,y=2]ids[3,1,7,5,0,2,4,6]", 8, 2, { "x", "y" } },
	{ "[x=2,y=3]", 6, 2, { "x", "y" } },
	{ "[x=3]ids[2,0,1]", 3, 1, { "x" } },
	{ "[x=4]", 4, 1, { "x" } },
};

struct writer {
	uint64_t seed;
	const struct random_mesh *m;
	struct str text;
	unsigned n;		/* values, of which number i is %i */
	unsigned rank[64];
	int64_t dim[64][4];
};

static unsigned draw(struct writer *w, unsigned n)
{
	w->seed = w->seed * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(w->seed >> 33) % n;
}

static void put_type(struct writer *w, unsigned v)
{
	str_printf(&w->text, "tensor<");
	for (unsigned d = 0; d < w->rank[v]; d++)
		str_printf(&w->text, "%dx", (int)w->dim[v][d]);
	str_printf(&w->text, "f32>");
}

/* Each axis in at most one dim, which it divides, or, `uneven`, need not. */
static void put_sharding(struct writer *w, unsigned v, bool is_uneven)
{
	int64_t left[4];
	int where[3];

	memcpy(left, w->dim[v], sizeof(left));
	for (unsigned k = 0; k < w->m->n; k++) {
		int64_t size = strchr(w->m->text, w->m->axis[k][0])[2] - '0';

		where[k] = w->rank[v] ? (int)draw(w, w->rank[v] + 1) - 1 : -1;
		if (where[k] >= 0 && !is_uneven && left[where[k]] % size)
			where[k] = -1;
		if (where[k] >= 0)
			left[where[k]] /= size;
	}
	str_printf(&w->text, "@mesh[");
	for (unsigned d = 0; d < w->rank[v]; d++) {
		const char *comma = "";

		str_printf(&w->text, d ? ",{" : "{");
		for (unsigned i = 0; i < w->m->n; i++) {
			/* Minor axes first, at times. */
			unsigned k = v & 1 ? w->m->n - 1 - i : i;

			if (where[k] == (int)d) {
				str_printf(&w->text, "%s%s", comma, w->m->axis[k]);
				comma = ",";
			}
		}
		str_printf(&w->text, "}");
	}
	str_printf(&w->text, "]");
}

static unsigned add_value(struct writer *w, unsigned rank, const int64_t *dim)
{
	w->rank[w->n] = rank;
	memcpy(w->dim[w->n], dim, rank * sizeof(*dim));
	return w->n++;
}

static void put_end(struct writer *w, unsigned v)
{
	str_printf(&w->text, " : ");
	put_type(w, v);
	str_printf(&w->text, "\n");
}

static int64_t draw_dim(struct writer *w)
{
	static const int64_t sizes[] = { 8, 12, 4, 6, 24, 5, 1, 16 };

	return sizes[draw(w, 8)];
}

/* A sum or maximum of scalars, whose values nobody else names. */
static void put_body(struct writer *w, const char *op, unsigned v)
{
	str_printf(&w->text, " (%%%u: tensor<f32>, %%%u: tensor<f32>) {\n%%%u = %s(%%%u, %%%u) : "
		   "tensor<f32>\nreturn(%%%u)\n}\n", 1000 + v, 2000 + v, 3000 + v, op, 1000 + v,
		   2000 + v, 3000 + v);
}

static void put_reduce(struct writer *w, unsigned v)
{
	bool is_max = draw(w, 2);
	unsigned gone = draw(w, w->rank[v]), n = 0, to;
	int64_t dim[4];

	for (unsigned d = 0; d < w->rank[v]; d++)
		if (d != gone)
			dim[n++] = w->dim[v][d];
	to = add_value(w, n, dim);
	str_printf(&w->text, "%%%u = constant() {value = dense<splat 0x%s> : tensor<f32>} : "
		   "tensor<f32>\n%%%u = reduce(%%%u, %%%u) {dimensions = [%u]} : ", 4000 + to,
		   is_max ? "000080ff" : "00000000", to, v, 4000 + to, gone);
	put_type(w, to);
	put_body(w, is_max ? "maximum" : "add", to);
}

static void put_dot(struct writer *w, unsigned v)
{
	unsigned other = draw(w, w->n), to, n = 0;
	int64_t dim[8];

	for (unsigned i = 0; i < w->n; i++, other = (other + 1) % w->n)
		for (unsigned a = 0; a < w->rank[v]; a++)
			for (unsigned b = 0; b < w->rank[other]; b++) {
				if (w->dim[v][a] != w->dim[other][b] ||
				    w->rank[v] + w->rank[other] > 5)
					continue;
				for (unsigned d = 0; d < w->rank[v]; d++)
					if (d != a)
						dim[n++] = w->dim[v][d];
				for (unsigned d = 0; d < w->rank[other]; d++)
					if (d != b)
						dim[n++] = w->dim[other][d];
				to = add_value(w, n, dim);
				str_printf(&w->text, "%%%u = dot_general(%%%u, %%%u) "
					   "{lhs_batching_dimensions = [], "
					   "rhs_batching_dimensions = [], "
					   "lhs_contracting_dimensions = [%u], "
					   "rhs_contracting_dimensions = [%u]}", to, v, other,
					   a, b);
				put_end(w, to);
				return;
			}
}

static void put_list(struct writer *w, const char *name, unsigned n, const int64_t *list)
{
	str_printf(&w->text, "%s = [", name);
	for (unsigned i = 0; i < n; i++)
		str_printf(&w->text, i ? ", %d" : "%d", (int)list[i]);
	str_printf(&w->text, "]");
}

static void put_slice(struct writer *w, unsigned v)
{
	unsigned d = draw(w, w->rank[v]), to;
	int64_t start[4] = { 0 }, limit[4], step[4] = { 1, 1, 1, 1 }, dim[4];

	memcpy(limit, w->dim[v], sizeof(limit));
	memcpy(dim, w->dim[v], sizeof(dim));
	start[d] = draw(w, (unsigned)dim[d]);
	step[d] = 1 + draw(w, 2);
	dim[d] = (limit[d] - start[d] + step[d] - 1) / step[d];
	to = add_value(w, w->rank[v], dim);
	str_printf(&w->text, "%%%u = slice(%%%u) {", to, v);
	put_list(w, "start_indices", w->rank[v], start);
	put_list(w, ", limit_indices", w->rank[v], limit);
	put_list(w, ", strides", w->rank[v], step);
	str_printf(&w->text, "}");
	put_end(w, to);
}

static void put_pad(struct writer *w, unsigned v)
{
	unsigned d = draw(w, w->rank[v]), to;
	int64_t low[4] = { 0 }, high[4] = { 0 }, none[4] = { 0 }, dim[4];

	memcpy(dim, w->dim[v], sizeof(dim));
	low[d] = draw(w, 3);
	high[d] = draw(w, 2) ? -low[d] : draw(w, 3);	/* moved, of the same size */
	if (dim[d] + low[d] + high[d] < 1 || dim[d] < -high[d])
		return;
	dim[d] += low[d] + high[d];
	to = add_value(w, w->rank[v], dim);
	str_printf(&w->text, "%%%u = constant() {value = dense<splat 0x0000803f> : tensor<f32>} "
		   ": tensor<f32>\n%%%u = pad(%%%u, %%%u) {", 4000 + to, to, v, 4000 + to);
	put_list(w, "edge_padding_low", w->rank[v], low);
	put_list(w, ", edge_padding_high", w->rank[v], high);
	put_list(w, ", interior_padding", w->rank[v], none);
	str_printf(&w->text, "}");
	put_end(w, to);
}

static void put_reshape(struct writer *w, unsigned v)
{
	int64_t dim[4] = { 1, 1, 1, 1 }, rest = 1;
	unsigned to, n = 1 + draw(w, 4);

	for (unsigned d = 0; d < w->rank[v]; d++)
		rest *= w->dim[v][d];
	for (unsigned d = 0; d + 1 < n; d++)
		for (int64_t f = 2 + draw(w, 2); rest % f == 0 && draw(w, 4);) {
			dim[d] *= f;
			rest /= f;
		}
	dim[n - 1] = rest;
	to = add_value(w, n, dim);
	str_printf(&w->text, "%%%u = reshape(%%%u)", to, v);
	put_end(w, to);
}

static void put_transpose(struct writer *w, unsigned v)
{
	int64_t perm[4], dim[4];
	unsigned to, turn = draw(w, w->rank[v]);

	for (unsigned d = 0; d < w->rank[v]; d++) {
		perm[d] = (d + turn) % w->rank[v];
		dim[d] = w->dim[v][perm[d]];
	}
	to = add_value(w, w->rank[v], dim);
	str_printf(&w->text, "%%%u = transpose(%%%u) {", to, v);
	put_list(w, "permutation", w->rank[v], perm);
	str_printf(&w->text, "}");
	put_end(w, to);
}

static void put_two(struct writer *w, unsigned v)
{
	unsigned to = add_value(w, w->rank[v], w->dim[v]), other = v;

	for (unsigned i = 0; i < to; i++)
		if (w->rank[i] == w->rank[v] && draw(w, 2) &&
		    !memcmp(w->dim[i], w->dim[v], w->rank[v] * sizeof(int64_t)))
			other = i;
	str_printf(&w->text, "%%%u = %s(%%%u, %%%u)", to, draw(w, 2) ? "add" : "minimum", v, other);
	put_end(w, to);
}

static void put_iota(struct writer *w, unsigned v)
{
	unsigned to;

	str_printf(&w->text, "%%%u = iota() {iota_dimension = %u}", w->n,
		   draw(w, w->rank[v]));
	to = add_value(w, w->rank[v], w->dim[v]);
	put_end(w, to);
}

static void put_join(struct writer *w, unsigned v)
{
	unsigned d = draw(w, w->rank[v]), to;
	int64_t dim[4];

	memcpy(dim, w->dim[v], sizeof(dim));
	dim[d] *= 2;
	to = add_value(w, w->rank[v], dim);
	str_printf(&w->text, "%%%u = concatenate(%%%u, %%%u) {dimension = %u}", to, v, v, d);
	put_end(w, to);
}

static void put_spread(struct writer *w, unsigned v)
{
	int64_t dims[4], dim[4];
	unsigned at = draw(w, w->rank[v] + 1), to;

	for (unsigned d = 0; d < w->rank[v]; d++) {
		dims[d] = d + (d >= at);
		dim[dims[d]] = w->dim[v][d];
	}
	dim[at] = draw_dim(w);
	to = add_value(w, w->rank[v] + 1, dim);
	str_printf(&w->text, "%%%u = broadcast_in_dim(%%%u) {", to, v);
	put_list(w, "broadcast_dimensions", w->rank[v], dims);
	str_printf(&w->text, "}");
	put_end(w, to);
}

static void put_constraint(struct writer *w, unsigned v)
{
	unsigned to = add_value(w, w->rank[v], w->dim[v]);

	str_printf(&w->text, "%%%u = sharding_constraint(%%%u) {sharding = \"", to, v);
	put_sharding(w, to, draw(w, 4) == 0);
	str_printf(&w->text, "\"}");
	put_end(w, to);
}

static void put_op(struct writer *w)
{
	unsigned v = w->n - 1 - draw(w, w->n < 4 ? w->n : 4);
	int64_t n = 1;

	for (unsigned d = 0; d < w->rank[v]; d++)
		n *= w->dim[v][d];
	if (!w->rank[v] || n > 4096) {
		put_two(w, 0);
		return;
	}
	switch (draw(w, 12)) {
	case 0: put_two(w, v); break;
	case 1: put_reduce(w, v); break;
	case 2: put_dot(w, v); break;
	case 3: put_slice(w, v); break;
	case 4: put_pad(w, v); break;
	case 5: put_reshape(w, v); break;
	case 6: put_transpose(w, v); break;
	case 7: put_iota(w, v); break;
	case 8: put_join(w, v); break;
	case 9: if (w->rank[v] < 4) put_spread(w, v); break;
	default: put_constraint(w, v); break;
	}
}

enum { RANDOM_ARGS = 3, RANDOM_RESULTS = 3 };

static void write_program(struct writer *w)
{
	unsigned first;

	str_printf(&w->text, "module() {num_partitions = %u, meshes = {mesh = \"%s\"}} () {\n"
		   "func() {sym_name = \"main\"} (", w->m->devices, w->m->text);
	for (unsigned i = 0; i < RANDOM_ARGS; i++) {
		int64_t dim[2] = { draw_dim(w), draw_dim(w) };

		add_value(w, 2, dim);
		str_printf(&w->text, "%s%%%u: ", i ? ", " : "", i);
		put_type(w, i);
		if (draw(w, 4)) {
			str_printf(&w->text, " {sharding = \"");
			put_sharding(w, i, draw(w, 3) == 0);
			str_printf(&w->text, "\"}");
		}
	}
	str_printf(&w->text, ") {\n");
	for (unsigned i = 0; i < 10; i++)
		put_op(w);
	first = w->n - RANDOM_RESULTS;
	str_printf(&w->text, "return(%%%u, %%%u, %%%u)\n}\n}\n", first, first + 1, first + 2);
}

static void check_random(uint64_t seed, spmd_evaluate *evaluate)
{
	struct writer w = { .seed = seed, .m = &meshes[seed % 6] };
	struct tc_options o = { .level = 1, .verify = true, .partitions = w.m->devices,
				.evaluate_after = "shard" };
	struct tc_array args[RANDOM_ARGS] = { { 0 } }, *should;
	static struct lays l;
	struct tc_source source;
	struct err err;
	size_t n;
	double far;

	write_program(&w);
	assert_false(w.text.failed);
	source = (struct tc_source){ w.text.text, w.text.len, "mlir" };
	for (unsigned i = 0; i < RANDOM_ARGS; i++) {
		args[i] = (struct tc_array){ .elem = ELEM_F32, .rank = 2, .bytes = 4 };
		for (unsigned d = 0; d < 2; d++) {
			args[i].dim[d] = w.dim[i][d];
			args[i].bytes *= (size_t)w.dim[i][d];
		}
		args[i].data = malloc(args[i].bytes);
		assert_non_null(args[i].data);
		for (size_t k = 0; k < args[i].bytes / 4; k++)
			((float *)args[i].data)[k] = (float)draw(&w, 17) - 8;
	}
	if (tc_eval(&source, args, RANDOM_ARGS, &should, &n, &err))
		fail_msg("%llu: %s\n%s", (unsigned long long)seed, err.msg, w.text.text);
	l = (struct lays){ .partitions = w.m->devices };
	if (tc_enter(&source, &o, &err, lay_find_all, &l) ||
	    run_parts(evaluate, &source, &o, &l, args, should, &far, &err))
		fail_msg("%llu: %s\n%s", (unsigned long long)seed, err.msg, w.text.text);
	if (far > 1)
		fail_msg("%llu: %g bounds off\n%s", (unsigned long long)seed, far, w.text.text);
	tc_array_free(should, n);
	for (unsigned i = 0; i < RANDOM_ARGS; i++)
		free(args[i].data);
	str_free(&w.text);
}

static uint64_t turns(uint64_t usual)
{
	const char *text = getenv("TESSERA_GANG_TURNS");

	return text ? strtoull(text, NULL, 10) : usual;
}

/* What one device gives, on any mesh, by any shardings. */
static void test_random(void **state)
{
	uint64_t n = turns(600);

	(void)state;
	for (uint64_t seed = 0; seed < n; seed++)
		check_random(seed, tc_eval_gang);
}

/* The same on devices. */
static void test_random_devices(void **state)
{
	uint64_t n = turns(200);

	gang_start(state);
	for (uint64_t seed = 0; seed < n; seed++)
		check_random(seed, gang_evaluate);
	gang_stop(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_whole),
		cmocka_unit_test(test_parts),
		cmocka_unit_test(test_devices),
		cmocka_unit_test(test_shardings),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_captured),
		cmocka_unit_test(test_meshes_are_texts),
		cmocka_unit_test(test_sides_of_a_body),
		cmocka_unit_test(test_pieces_of_no_common_grid),
		cmocka_unit_test(test_parts_that_are_passed_on),
		cmocka_unit_test(test_draws_in_a_body),
		cmocka_unit_test(test_constants_left_as_sums),
		cmocka_unit_test(test_collectives_of_several_shapes),
		cmocka_unit_test(test_narrow_numbers),
		cmocka_unit_test(test_places_beyond_31_bits),
		cmocka_unit_test(test_meshes_that_do_not_fit),
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_random_devices),
	};

	return cmocka_run_group_tests(tests, load_programs, unload_programs);
}
