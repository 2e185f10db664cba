/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How often the members of a program meet, beside the collectives that XLA's CPU backend leaves
 * of it (JAX 0.10.2, 8 devices; tests/data/spmd/collectives.txt: program, number). An exchange
 * and a permutation count one each.
 *
 * And that they meet before a loop for what it takes turn by turn of a value that it does not
 * change, unless that is more than the turns take, or too much; all members get what one device
 * does, bit for bit. And that they add up what they can before they meet.
 */
#include "tests/unit/spmd.h"

/* Programs in which we meet more often, and why. */
static const struct { const char *name, *why; } more[] = {
	{ "jit__zero_size", "a slice of nothing is taken of what was collected" },
	{ "model__cnn_dp_grad", "gradients are summed in parts: two exchanges, in less time" },
};

static bool is_excused(const char *name)
{
	for (size_t i = 0; i < sizeof(more) / sizeof(*more); i++)
		if (!strcmp(more[i].name, name))
			return true;
	return false;
}

static unsigned occurs(const char *text, const char *word)
{
	unsigned n = 0;

	for (text = strstr(text, word); text; text = strstr(text + 1, word))
		n++;
	return n;
}

static unsigned meetings_of(const struct program *p)
{
	const struct tc_options o = { .level = 1, .partitions = p->partitions };
	struct err err;
	unsigned n;
	char *ir;

	if (tc_print(&(struct tc_source){ p->code, p->bytes, p->format }, &o, "combine", &ir,
		     &err))
		fail_msg("%s: %s", p->name, err.msg);
	n = occurs(ir, "tc.exchange(") + occurs(ir, "collective_permute(");
	free(ir);
	return n;
}

static const struct program *find(const char *name)
{
	for (unsigned i = 0; i < n_programs; i++)
		if (!strcmp(programs[i].name, name))
			return &programs[i];
	fail_msg("no program %s", name);
	return NULL;
}

static void members_meet_no_more_often_than_with_xla(void **state)
{
	FILE *f = fopen("tests/data/spmd/collectives.txt", "r");
	unsigned xla, all = 0, all_xla = 0, n = 0, n_fewer = 0, n_odd = 0;
	char name[64];

	(void)state;
	assert_non_null(f);
	while (fscanf(f, "%63s %u", name, &xla) == 2) {
		unsigned is = meetings_of(find(name));

		if ((is > xla) != is_excused(name)) {
			print_message("%s: %u meetings, %u with XLA\n", name, is, xla);
			n_odd++;
		}
		n_fewer += is < xla;
		all += is;
		all_xla += xla;
		n++;
	}
	fclose(f);
	print_message("%u programs, %u meetings, %u with XLA; fewer in %u\n", n, all, all_xla,
		      n_fewer);
	assert_int_equal(n, 322);
	assert_int_equal(n_odd, 0);
	assert_true(all < all_xla);
}

/* That XLA takes it and gets the same results: tests/jax/devices/shown.py. */
static void what_a_member_runs_can_be_shown(void **state)
{
	unsigned n_shown = 0;

	(void)state;
	for (unsigned i = 0; i < n_programs; i++) {
		const struct program *p = &programs[i];
		const struct tc_options o = { .level = 1, .partitions = p->partitions };
		struct err err;
		size_t bytes;
		char *text;

		if (tc_member_program(&(struct tc_source){ p->code, p->bytes, p->format }, &o,
				      &text, &bytes, &err)) {
			if (!strstr(err.msg, "does not run yet") &&
			    !strstr(err.msg, "(custom_partitioning), and none is registered"))
				fail_msg("%s: %s", p->name, err.msg);
			continue;
		}
		n_shown++;
		assert_int_equal(strlen(text), bytes);
		assert_non_null(strstr(text, "func.return"));
		assert_null(strstr(text, "tc."));
		free(text);
	}
	assert_true(n_shown > n_programs - 5);
}

/* ---- loops ---- */

enum { CARRIED, CAPTURED, CHANGED, N_HOW };	/* the value that a loop takes rows of */
enum { ELEMENT = 3, MOST_TURNS = 5 };		/* in a row; turns that are counted */

/* x is [2, n, 3], its rows in parts, or its first dim, too. A turn takes `size` rows behind `at`,
 * or by a gather one, and puts them in a stack. What changes gets rows of another in each turn. */
struct loop {
	unsigned parts, how;
	bool is_two, is_counted, is_nested, is_gather;
	int turns, n, size, at;
	char x[32], stack[32], rows[32];	/* types */
};

static uint64_t state_of_draw;

static int draw(int least, int most)
{
	state_of_draw = state_of_draw * 6364136223846793005u + 1442695040888963407u;
	return least + (int)(state_of_draw >> 33) % (most - least + 1);
}

static void draw_loop(struct loop *l)
{
	static const unsigned parts[] = { 2, 3, 4, 6, 8 };

	l->parts = parts[draw(0, 4)];
	l->how = (unsigned)draw(0, N_HOW - 1);
	l->is_two = l->parts < 6 && draw(0, 1);
	l->is_counted = draw(0, 1);
	l->is_nested = draw(0, 1);
	l->is_gather = draw(0, 1);
	l->turns = draw(1, MOST_TURNS - 1);
	l->n = (int)l->parts * draw(2, 4);
	l->size = l->is_gather ? 1 : draw(1, l->n / (int)l->parts);
	l->at = draw(-3, l->n + 2);
}

static void write_take(const struct loop *l, struct str *s, const char *of)
{
	str_printf(s, "%%50 = add(%%2, %%40) : tensor<i32>\n");
	if (l->is_gather)
		str_printf(s, "%%51 = reshape(%%50) : tensor<1x1xi32>\n%%53 = gather(%s, %%51) "
			   "{offset_dims = [0, 2], collapsed_slice_dims = [1], "
			   "operand_batching_dims = [], start_indices_batching_dims = [], "
			   "start_index_map = [1], index_vector_dim = 1, slice_sizes = [2, 1, 3], "
			   "indices_are_sorted = false} : %s\n", of, l->rows);
	else
		str_printf(s, "%%53 = dynamic_slice(%s, %%4, %%50, %%4) {slice_sizes = [2, %d, 3]} "
			   ": %s\n", of, l->size, l->rows);
}

static void write_begin_of_loop(const struct loop *l, struct str *s, unsigned id, const char *in,
				const char *most)
{
	str_printf(s, "%%%u, %%%u, %%%u = while(%%4, %s) : tensor<i32>, %s, %s (%%%u: tensor<i32>, "
		   "%%%u: %s, %%%u: %s) {\n%%%u = compare(%%%u, %s) {comparison_direction = <LT>, "
		   "compare_type = <SIGNED>} : tensor<i1>\nreturn(%%%u)\n} ", id, id + 1, id + 2,
		   in, l->x, l->stack, id + 3, id + 4, l->x, id + 5, l->stack, id + 6, id + 3, most,
		   id + 6);
}

static void write_inner(const struct loop *l, struct str *s, const char *x, const char *stack)
{
	char in[16];

	snprintf(in, sizeof(in), "%s, %s", x, stack);
	write_begin_of_loop(l, s, 10, in, l->is_counted ? "%7" : "%3");
	str_printf(s, "(%%40: tensor<i32>, %%41: %s, %%42: %s) {\n"
		   "%%44 = add(%%40, %%6) : tensor<i32>\n", l->x, l->stack);
	write_take(l, s, l->how == CAPTURED ? x : "%41");
	if (l->how == CHANGED)
		str_printf(s, "%%54 = dynamic_update_slice(%%41, %%1, %%4, %%44, %%4) : %s\n",
			   l->x);
	str_printf(s, "%%55 = reshape(%%53) : tensor<1x2x%dx3xf32>\n"
		   "%%56 = dynamic_update_slice(%%42, %%55, %%40, %%4, %%4, %%4) : %s\n"
		   "return(%%44, %s, %%56)\n}\n", l->size, l->stack,
		   l->how == CHANGED ? "%54" : "%41");
}

/* Constants are around the loops: 0, 1, the turns and 2. */
static void write_loop(struct loop *l, struct str *s)
{
	const char *lies = l->is_two ? "{y},{x},{}" : "{},{x},{}";

	snprintf(l->x, sizeof(l->x), "tensor<2x%dx3xf32>", l->n);
	snprintf(l->rows, sizeof(l->rows), "tensor<2x%dx3xf32>", l->size);
	snprintf(l->stack, sizeof(l->stack), "tensor<5x2x%dx3xf32>", l->size);
	str_printf(s, "module() {num_partitions = %u, meshes = {mesh = \"[x=%u%s]\"}} () {\n"
		   "func() {sym_name = \"main\"} (%%0: %s {sharding = \"@mesh[%s]\"}, %%1: %s, "
		   "%%2: tensor<i32>, %%3: tensor<i32>) {\n", l->parts * (l->is_two ? 2 : 1),
		   l->parts, l->is_two ? ",y=2" : "", l->x, lies, l->rows);
	for (int i = 0; i < 4; i++)
		str_printf(s, "%%%d = constant() {value = dense<0x%08x> : tensor<i32>} : "
			   "tensor<i32>\n", i == 1 ? 6 : i == 0 ? 4 : i == 2 ? 7 : 8,
			   __builtin_bswap32((uint32_t)(i == 3 ? 2 : i == 2 ? l->turns : i)));
	str_printf(s, "%%5 = broadcast_in_dim(%%1) {broadcast_dimensions = [1, 2, 3]} : %s\n",
		   l->stack);
	if (l->is_nested) {
		write_begin_of_loop(l, s, 20, "%0, %5", "%8");
		str_printf(s, "(%%30: tensor<i32>, %%31: %s, %%32: %s) {\n", l->x, l->stack);
		write_inner(l, s, "%31", "%32");
		str_printf(s, "%%33 = add(%%30, %%6) : tensor<i32>\nreturn(%%33, %s, %%12)\n}\n",
			   l->how == CHANGED ? "%11" : "%31");
	} else {
		write_inner(l, s, "%0", "%5");
	}
	str_printf(s, "return(%%%d)\n}\n}\n", l->is_nested ? 22 : 12);
}

static void print_loop(struct loop *l, uint64_t memory, struct str *text, char **ir)
{
	struct tc_options o = { .level = 1, .partitions = l->parts * (l->is_two ? 2 : 1),
				.memory_limit = memory };
	struct tc_source source;
	struct err err;

	write_loop(l, text);
	source = (struct tc_source){ text->text, text->len, "mlir" };
	if (tc_print(&source, &o, "shard", ir, &err))
		fail_msg("%s\n%s", err.msg, text->text);
}

/* Where members meet for what the loop takes. */
static bool is_before_loops(struct loop *l, uint64_t memory)
{
	struct str text = { 0 };
	const char *gather, *loop;
	bool is_before;
	char *ir;

	print_loop(l, memory, &text, &ir);
	gather = strstr(ir, "all_gather(");
	loop = strstr(ir, "while(");
	assert_non_null(loop);
	is_before = gather && gather < loop;
	if (is_before == (occurs(ir, "all_reduce(") > 0))
		fail_msg("it meets before the loop and in it, or nowhere\n%s\n%s", text.text, ir);
	free(ir);
	str_free(&text);
	return is_before;
}

static struct tc_array new_rows(int n)
{
	struct tc_array a = { .elem = ELEM_F32, .rank = 3, .dim = { 2, n, ELEMENT },
			      .bytes = sizeof(float) * 2 * ELEMENT * (size_t)n };
	float *x = malloc(a.bytes);

	assert_non_null(x);
	for (int i = 0; i < 2 * ELEMENT * n; i++)
		x[i] = (float)draw(-1000, 1000);
	a.data = x;
	return a;
}

static void check_loop(struct loop *l)
{
	struct tc_options o = { .level = 1, .verify = true, .evaluate_after = "shard",
				.partitions = l->parts * (l->is_two ? 2 : 1) };
	int32_t numbers[2] = { l->at, l->turns };
	struct tc_array args[4] = { new_rows(l->n), new_rows(l->size) };
	struct tc_source source;
	struct str text = { 0 };

	for (unsigned i = 0; i < 2; i++)
		args[2 + i] = (struct tc_array){ .elem = ELEM_S32, .bytes = 4,
						 .data = &numbers[i] };
	write_loop(l, &text);
	source = (struct tc_source){ text.text, text.len, "mlir" };
	agree_exactly(tc_eval_gang, &source, &o, args, 4);
	free(args[0].data);
	free(args[1].data);
	str_free(&text);
}

static void what_a_loop_takes_row_by_row_is_right(void **state)
{
	struct loop l;

	(void)state;
	state_of_draw = 1;
	for (unsigned i = 0; i < 300; i++) {
		draw_loop(&l);
		check_loop(&l);
		assert_true(is_before_loops(&l, 0) == (l.how != CHANGED));
		/* Arguments take more. */
		assert_false(is_before_loops(&l, 1));
	}
}

/* Rows of 24 bytes, which cost twice that in a turn; all there is: 96 KiB. */
static void members_meet_once_where_that_is_less(void **state)
{
	static const struct { struct loop l; uint64_t memory; bool is_before; } cases[] = {
		{ { .how = CARRIED, .is_counted = true, .turns = 2047, .size = 1 }, 0, false },
		{ { .how = CARRIED, .is_counted = true, .turns = 2048, .size = 1 }, 0, true },
		{ { .how = CAPTURED, .is_counted = true, .turns = 2048, .size = 1 }, 0, true },
		{ { .is_nested = true, .is_counted = true, .turns = 1024, .size = 1 }, 0, true },
		{ { .is_nested = true, .is_counted = true, .turns = 1023, .size = 1 }, 0, false },
		{ { .is_counted = true, .turns = 204, .size = 10 }, 0, false },
		{ { .is_counted = true, .turns = 205, .size = 10 }, 0, true },
		/* Nobody knows how many: as many as there are rows. */
		{ { .turns = 1, .size = 1 }, 0, true },
		{ { .is_gather = true, .turns = 1, .size = 1 }, 0, true },
		/* Little: one meeting. */
		{ { .is_counted = true, .turns = 1, .n = 2048, .size = 1 }, 0, true },
		/* An eighth of what a part of 24 KiB, a row and two numbers leave. */
		{ { .turns = 1, .size = 1 }, 24608 + 8 * 98304, true },
		{ { .turns = 1, .size = 1 }, 24607 + 8 * 98304, false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct loop l = cases[i].l;

		l.parts = 4;
		l.n = l.n ? l.n : 4096;
		if (is_before_loops(&l, cases[i].memory) != cases[i].is_before)
			fail_msg("case %zu", i);
	}
}

/* ---- sums ---- */

#define DOT(x, y) " = dot_general(" x ", " y ") {lhs_batching_dimensions = [], " \
	"rhs_batching_dimensions = [], lhs_contracting_dimensions = [1], " \
	"rhs_contracting_dimensions = [0], precision_config = [0, 0]} : "

/* Products of which each member has a part of the sum, put together by `op`, the second one the
 * other way round if all of it is wanted; the result lies as said. How many all_reduces and
 * reduce_scatters are left. */
static unsigned sums_left(const char *elem, const char *op, const char *lies, bool is_seen)
{
	const struct tc_options o = { .level = 1, .partitions = 4, .verify = true,
				      .evaluate_after = "shard" };
	const char *move = *lies ? "sharding_constraint" : "transpose";
	const char *how = *lies ? " {sharding = \"@mesh[{x},{}]\"}" : " {permutation = [1, 0]}";
	struct tc_array args[2] = { new_rows(32), new_rows(32) };
	struct str s = { 0 };
	struct tc_source source;
	struct err err;
	unsigned n;
	char *ir;

	str_printf(&s, "module() {num_partitions = 4, meshes = {mesh = \"[x=4]\"}} () {\n"
		   "func() {sym_name = \"main\"} (%%0: tensor<8x24xf32> {sharding = "
		   "\"@mesh[{},{x}]\"}, %%1: tensor<24x8xf32> {sharding = \"@mesh[{x},{}]\"}) {\n"
		   "%%2 = convert(%%0) : tensor<8x24x%s>\n%%3 = convert(%%1) : tensor<24x8x%s>\n"
		   "%%4 = negate(%%2) : tensor<8x24x%s>\n"
		   "%%5" DOT("%%2", "%%3") "tensor<8x8x%s>\n"
		   "%%6" DOT("%%4", "%%3") "tensor<8x8x%s>\n"
		   "%%7 = %s(%%6)%s : tensor<8x8x%s>\n%%8 = %s(%%5, %%7) : tensor<8x8x%s>\n"
		   "%%9 = sharding_constraint(%%8) {sharding = \"@mesh[{%s},{}]\"} : "
		   "tensor<8x8x%s>\nreturn(%%9%s)\n}\n}\n", elem, elem, elem, elem, elem,
		   move, how, elem, op, elem, lies, elem, is_seen ? ", %6" : "");
	source = (struct tc_source){ s.text, s.len, "mlir" };
	for (unsigned i = 0; i < 2; i++) {
		args[i].rank = 2;
		args[i].dim[0] = i ? 24 : 8;
		args[i].dim[1] = i ? 8 : 24;
	}
	if (tc_print(&source, &o, "shard", &ir, &err))
		fail_msg("%s\n%s", err.msg, s.text);
	n = occurs(ir, "all_reduce(") + occurs(ir, "reduce_scatter(");
	free(ir);
	if (!strcmp(elem, "f32") || !strcmp(elem, "i32"))
		agree_exactly(tc_eval_gang, &source, &o, args, 2);
	free(args[0].data);
	free(args[1].data);
	str_free(&s);
	return n;
}

/* What is added up for nothing but a sum is added before; but not where that could overflow. */
static void members_add_before_they_meet(void **state)
{
	(void)state;
	state_of_draw = 1;
	assert_int_equal(sums_left("f32", "add", "", false), 1);
	assert_int_equal(sums_left("f32", "subtract", "", false), 1);
	assert_int_equal(sums_left("bf16", "add", "", false), 1);
	assert_int_equal(sums_left("i32", "add", "", false), 1);
	assert_int_equal(sums_left("f32", "add", "x", false), 1);
	assert_int_equal(sums_left("f32", "add", "", true), 2);
	assert_int_equal(sums_left("f32", "multiply", "", false), 2);
	assert_int_equal(sums_left("f16", "add", "", false), 2);
}

/* Slices of `size` rows of one value of 512, each a row behind the one before, cut as it is. */
static unsigned meetings_of_slices(unsigned n, int size)
{
	struct tc_options o = { .level = 1, .verify = true, .evaluate_after = "shard",
				.partitions = 8 };
	const int64_t dim[2] = { 512, 128 };
	struct tc_array x = { .elem = ELEM_F32, .rank = 2, .bytes = 512 * 128 * 4 };
	struct program p = { .name = "slices", .partitions = 8, .format = "mlir" };
	struct str s = { 0 };
	unsigned meetings;

	memcpy(x.dim, dim, sizeof(dim));
	x.data = malloc(x.bytes);
	assert_non_null(x.data);
	for (int i = 0; i < 512 * 128; i++)
		((float *)x.data)[i] = (float)(i % 97);
	str_printf(&s, "module() {num_partitions = 8, meshes = {mesh = \"[x=8]\"}} () {\n"
		   "func() {sym_name = \"main\"} (%%0: tensor<512x128xf32> {sharding = "
		   "\"@mesh[{x},{}]\"}) {\n");
	for (unsigned i = 0; i < n; i++) {
		str_printf(&s, "%%%u = slice(%%0) {start_indices = [%u, 0], limit_indices = [%d, "
			   "128], strides = [1, 1]} : tensor<%dx128xf32>\n", 3 * i + 1, i,
			   (int)i + size, size);
		str_printf(&s, "%%%u = sharding_constraint(%%%u) {sharding = \"@mesh[{x},{}]\"} "
			   ": tensor<%dx128xf32>\n", 3 * i + 2, 3 * i + 1, size);
		str_printf(&s, "%%%u = add(%%%u, %%%u) : tensor<%dx128xf32>\n", 3 * i + 3,
			   3 * i + 2, i ? 3 * i : 2, size);
	}
	str_printf(&s, "return(%%%u)\n}\n}\n", 3 * n);
	p.code = s.text;
	p.bytes = s.len;
	meetings = meetings_of(&p);
	if (n < 50)
		agree_exactly(tc_eval_gang, &(struct tc_source){ s.text, s.len, "mlir" }, &o, &x,
			      1);
	free(x.data);
	str_free(&s);
	return meetings;
}

/* Some slices get together what they lack; of so many that it is more than all, all is collected,
 * once, and it takes no longer. */
static void slices_of_a_value_do_not_get_more_than_it(void **state)
{
	(void)state;
	assert_in_range(meetings_of_slices(1, 256), 1, 2);
	assert_in_range(meetings_of_slices(16, 256), 2, 3);
	assert_in_range(meetings_of_slices(17, 256), 2, 6);
	assert_int_equal(meetings_of_slices(49, 256), 1);
	assert_int_equal(meetings_of_slices(256, 256), 1);
	assert_int_equal(meetings_of_slices(250, 8), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(members_meet_no_more_often_than_with_xla),
		cmocka_unit_test(what_a_member_runs_can_be_shown),
		cmocka_unit_test(what_a_loop_takes_row_by_row_is_right),
		cmocka_unit_test(members_meet_once_where_that_is_less),
		cmocka_unit_test(members_add_before_they_meet),
		cmocka_unit_test(slices_of_a_value_do_not_get_more_than_it),
	};

	return cmocka_run_group_tests(tests, load_programs, unload_programs);
}
