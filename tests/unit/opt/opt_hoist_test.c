/* SPDX-License-Identifier: Apache-2.0 */
/* What loop/hoist.c takes out of loops and what it leaves there, by the text after it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "runtime/compiler/tc.h"

#define MATRIX "tensor<16x16xf32>"
#define NUMBER(id, bits) id " = constant() {value = dense<" bits "> : tensor<i32>} : tensor<i32>\n"
#define LESS(a, b) "compare(" a ", " b ") {compare_type = <SIGNED>, " \
	"comparison_direction = <LT>} : tensor<i1>\n"
#define COUNTED "%22 = " LESS("%20", "%11") "return(%22)\n"
#define DOT(a, b) "dot_general(" a ", " b ") {lhs_batching_dimensions = [], " \
	"rhs_batching_dimensions = [], lhs_contracting_dimensions = [1], " \
	"rhs_contracting_dimensions = [0]} : " MATRIX "\n"
#define ADD "(%70: tensor<f32>, %71: tensor<f32>) {\n%72 = add(%70, %71) : tensor<f32>\n" \
	"return(%72)\n}\n"

struct program {
	const char *cond, *body, *next;	/* lines; what the body makes of %31, a MATRIX */
	const char *turns;		/* of the loop, less than an s32 */
	struct tc_options o;
};

static const struct program plain = { COUNTED, "", "%40", "0x05000000",
	{ .level = 1, .verify = true } };

/*
 * main has %1, %2: f32 matrices, %3: of s8, %4: a number of turns, %5: an f32 row. Before the loop
 * %10 is 0, %11 `turns`, %12 0. of f32. The condition has %20, the counter, and %21; the body %30
 * and %31.
 */
static char *text_of(const struct program *p)
{
	char *text = malloc(8000);

	assert_non_null(text);
	snprintf(text, 8000, "module() () {\nfunc() {sym_name = \"main\"} (%%1: " MATRIX ", %%2: "
		 MATRIX ", %%3: tensor<16x16xi8>, %%4: tensor<i32>, %%5: tensor<16xf32>) {\n"
		 NUMBER("%%10", "0x00000000") NUMBER("%%11", "%s") NUMBER("%%13", "0x01000000")
		 "%%12 = constant() {value = dense<0x00000000> : tensor<f32>} : tensor<f32>\n"
		 "%%15, %%16 = while(%%10, %%1) : tensor<i32>, " MATRIX
		 " (%%20: tensor<i32>, %%21: " MATRIX ") {\n%s}"
		 " (%%30: tensor<i32>, %%31: " MATRIX ") {\n%s"
		 "%%39 = add(%%30, %%13) : tensor<i32>\nreturn(%%39, %s)\n}\nreturn(%%16)\n}\n}\n",
		 p->turns, p->cond, p->body, p->next);
	return text;
}

/* The text after the pass, up to the outermost loop and from it on. */
static char *hoisted(const struct program *p, char **loop)
{
	char *text = text_of(p), *out;
	struct err err;

	if (tc_print(&(struct tc_source){ text, strlen(text), "mlir" }, &p->o, "hoist", &out, &err))
		fail_msg("%s\n%s", err.msg, text);
	free(text);
	*loop = strstr(out, "%15, %16 = while(");
	assert_non_null(*loop);
	*(*loop)++ = 0;
	return out;
}

/* Whether op is before the loop, and whether it is in it. */
static void expect(struct program p, const char *op, bool is_before, bool is_in)
{
	char *loop, *out = hoisted(&p, &loop);

	if (is_before != !!strstr(out, op) || is_in != !!strstr(loop, op))
		fail_msg("%s\n%s", out, loop);
	free(out);
}

#define BODY(lines) (struct program){ plain.cond, lines, plain.next, plain.turns, plain.o }
#define AHEAD(op, lines) expect(BODY(lines), op "(", true, false)
#define STAYS(op, lines) expect(BODY(lines), op "(", false, true)

static void what_is_large_work_goes_ahead_of_the_loop(void **state)
{
	(void)state;
	AHEAD("dot_general", "%33 = " DOT("%1", "%2") "%40 = add(%31, %33) : " MATRIX "\n");
	AHEAD("sort", "%33 = sort(%2) {dimension = 0, is_stable = true} : " MATRIX
	      " (%70: tensor<f32>, %71: tensor<f32>) {\n%72 = compare(%70, %71) {compare_type = "
	      "<FLOAT>, comparison_direction = <LT>} : tensor<i1>\nreturn(%72)\n}\n"
	      "%40 = add(%31, %33) : " MATRIX "\n");
	AHEAD("reduce", "%33 = reduce(%2, %12) {dimensions = [0]} : tensor<16xf32> " ADD
	      "%34 = broadcast_in_dim(%33) {broadcast_dimensions = [1]} : " MATRIX "\n"
	      "%40 = add(%31, %34) : " MATRIX "\n");
	/* also where the loop may make no turn, or many */
	expect((struct program){ "%22 = " LESS("%20", "%4") "return(%22)\n",
		"%33 = " DOT("%1", "%2")
		"%40 = add(%31, %33) : " MATRIX "\n", "%40", plain.turns, plain.o },
		"dot_general(", true, false);
}

static void what_changes_stays(void **state)
{
	(void)state;
	STAYS("dot_general", "%40 = " DOT("%31", "%2"));
	STAYS("dot_general", "%33 = negate(%31) : " MATRIX "\n%40 = " DOT("%1", "%33"));
	STAYS("divide", "%33 = convert(%30) : tensor<f32>\n"
	      "%34 = broadcast_in_dim(%33) {broadcast_dimensions = []} : " MATRIX "\n"
	      "%35 = divide(%2, %34) : " MATRIX "\n%40 = " DOT("%31", "%35"));
	/* what a region reads counts as well */
	STAYS("= if", "%33 = " LESS("%4", "%11") "%40 = if(%33) : " MATRIX
	      " () {\nreturn(%31)\n} () {\nreturn(%2)\n}\n");
	/* numbers drawn anew in each turn */
	STAYS("tc.draw", "%33 = tc.draw() : tensor<16x16xui32>\n"
	      "%34 = convert(%33) : " MATRIX "\n%40 = " DOT("%34", "%2"));
}

static void a_branch_that_reads_nothing_that_changes_goes_ahead(void **state)
{
	(void)state;
	AHEAD("= if", "%33 = " LESS("%4", "%11") "%34 = if(%33) : " MATRIX
	      " () {\nreturn(%1)\n} () {\nreturn(%2)\n}\n"
	      "%40 = add(%31, %34) : " MATRIX "\n");
}

#define BF16 "tensor<16x16xbf16>"

static void elementwise_work_goes_ahead_if_that_is_less(void **state)
{
	(void)state;
	/* it takes its time */
	AHEAD("divide", "%33 = divide(%1, %2) : " MATRIX "\n%40 = add(%31, %33) : " MATRIX "\n");
	/* a fusion has it for nothing */
	STAYS("multiply", "%33 = multiply(%1, %2) : " MATRIX "\n"
	      "%40 = add(%31, %33) : " MATRIX "\n");
	/* a product would have it made in each turn, moved or not */
	AHEAD("multiply", "%33 = multiply(%1, %2) : " MATRIX "\n%40 = " DOT("%31", "%33"));
	AHEAD("multiply", "%33 = multiply(%1, %2) : " MATRIX "\n"
	      "%34 = transpose(%33) {permutation = [1, 0]} : " MATRIX "\n%40 = " DOT("%31", "%34"));
	expect(BODY("%33 = convert(%2) : " BF16 "\n%34 = convert(%31) : " BF16 "\n"
		    "%40 = " DOT("%34", "%33")), "convert(%2)", true, false);
	/* but wider than what it is made of it would be more to read */
	STAYS("convert", "%33 = convert(%3) : " MATRIX "\n%40 = " DOT("%31", "%33"));
	STAYS("add", "%33 = broadcast_in_dim(%5) {broadcast_dimensions = [0]} : " MATRIX "\n"
	      "%34 = broadcast_in_dim(%5) {broadcast_dimensions = [1]} : " MATRIX "\n"
	      "%35 = add(%33, %34) : " MATRIX "\n%40 = " DOT("%31", "%35"));
}

#define TABLE(n) "%33 = iota() {iota_dimension = 0} : tensor<" n "xf32>\n" \
	"%34 = sine(%33) : tensor<" n "xf32>\n" \
	"%35 = slice(%34) {limit_indices = [16], start_indices = [0], strides = [1]} : " \
	"tensor<16xf32>\n" \
	"%36 = broadcast_in_dim(%35) {broadcast_dimensions = [1]} : " MATRIX "\n" \
	"%40 = add(%31, %36) : " MATRIX "\n"

static void a_table_that_a_cache_holds_is_made_once(void **state)
{
	(void)state;
	AHEAD("sine", TABLE("65536"));
	STAYS("sine", TABLE("65537"));
}

/* What goes ahead takes a copy of it along; others in the loop have it as before. */
static void little_work_is_where_it_is_read(void **state)
{
	const struct program p = BODY("%33 = multiply(%1, %1) : " MATRIX "\n"
		"%34 = reduce(%33, %12) {dimensions = [0]} : tensor<16xf32> " ADD
		"%35 = broadcast_in_dim(%34) {broadcast_dimensions = [1]} : " MATRIX "\n"
		"%36 = add(%33, %35) : " MATRIX "\n%40 = add(%36, %31) : " MATRIX "\n");

	(void)state;
	expect(p, "multiply(", true, true);
	expect(p, "reduce(", true, false);
	expect(p, "broadcast_in_dim(", false, true);
}

/* An inner loop of %4 turns at most, or as many as there are; another condition may end it. */
#define INNER(turns) "%33, %34 = while(%10, %2) : tensor<i32>, " MATRIX \
	" (%50: tensor<i32>, %51: " MATRIX ") {\n%52 = " LESS("%50", turns) \
	"return(%52)\n} (%60: tensor<i32>, %61: " MATRIX ") {\n%62 = " DOT("%61", "%1") \
	"%63 = add(%60, %13) : tensor<i32>\nreturn(%63, %62)\n}\n" \
	"%40 = add(%31, %34) : " MATRIX "\n"

static void a_loop_goes_ahead_of_a_loop_if_it_ends_or_would_be_run(void **state)
{
	struct program p = BODY(INNER("%4"));

	(void)state;
	expect(p, "dot_general(", true, false);
	/* that may make no turn */
	p.cond = "%22 = " LESS("%20", "%4") "return(%22)\n";
	expect(p, "dot_general(", false, true);
	p.body = INNER("%11");
	expect(p, "dot_general(", true, false);
	p.turns = "0x00000000";
	expect(p, "dot_general(", false, true);
}

static void loops_in_loops_give_up_what_stays_the_same_in_each(void **state)
{
	/* %2's square is the same in all turns of both, %31's in those of the inner one */
	const struct program p = BODY("%33, %34 = while(%10, %31) : tensor<i32>, " MATRIX
		" (%50: tensor<i32>, %51: " MATRIX ") {\n%52 = " LESS("%50", "%11")
		"return(%52)\n} "
		"(%60: tensor<i32>, %61: " MATRIX ") {\n%62 = " DOT("%2", "%2") "%64 = "
		DOT("%31", "%31") "%65 = add(%62, %64) : " MATRIX "\n%66 = add(%61, %65) : " MATRIX
		"\n%63 = add(%60, %13) : tensor<i32>\nreturn(%63, %66)\n}\n%40 = negate(%34) : "
		MATRIX "\n");
	char *loop, *out = hoisted(&p, &loop), *inner;

	(void)state;
	inner = strstr(strstr(loop, "while(") + 1, "while(");
	assert_non_null(inner);
	assert_non_null(strstr(out, "dot_general(%2, %2)"));
	assert_null(strstr(loop, "dot_general(%2, %2)"));
	assert_null(strstr(inner, "dot_general("));
	*inner = 0;
	assert_non_null(strstr(loop, "dot_general("));
	free(out);
}

static void conditions_give_it_up_as_well(void **state)
{
	struct program p = plain;

	(void)state;
	p.cond = "%22 = reduce(%2, %12) {dimensions = [0, 1]} : tensor<f32> " ADD
		 "%23 = convert(%20) : tensor<f32>\n"
		 "%24 = compare(%23, %22) {compare_type = <FLOAT>, comparison_direction = <LT>} : "
		 "tensor<i1>\nreturn(%24)\n";
	p.body = "%40 = negate(%31) : " MATRIX "\n";
	expect(p, "reduce(", true, false);
}

static void members_meet_once_replicas_as_often_as_they_say(void **state)
{
	struct program p = BODY("%33 = all_reduce(%2) {replica_groups = [0, 1], group_size = 2, "
		"channel_id = 1, use_global_device_ids = true} : " MATRIX " " ADD
		"%40 = add(%31, %33) : " MATRIX "\n");

	(void)state;
	p.o.partitions = 2;
	expect(p, "tc.exchange(", true, false);
	p.o.partitions = 1;
	p.o.replicas = 2;
	expect(p, "tc.exchange(", false, true);
}

static void what_memory_has_no_room_for_stays(void **state)
{
	struct program p = BODY("%33 = " DOT("%1", "%2") "%40 = add(%31, %33) : " MATRIX "\n");
	const uint64_t arguments = 1024 * 2 + 256 + 4 + 64;

	(void)state;
	p.o.memory_limit = arguments + 4 * 1024;
	expect(p, "dot_general(", true, false);
	p.o.memory_limit--;
	expect(p, "dot_general(", false, true);
	p.o.memory_limit = arguments - 1;
	expect(p, "dot_general(", false, true);
}

static int compile(const char *text, uint64_t limit, struct err *err)
{
	const struct tc_source source = { text, strlen(text), "mlir" };
	const struct tc_options o = { .level = 1, .verify = true, .memory_limit = limit };
	struct tc_result r = { 0 };
	int code = tc_compile(&source, &o, &r, err);

	tc_result_free(&r);
	return code;
}

/* Beside what goes ahead, which no limit below four times that lets go, a turn sorts 8 KiB. */
static void a_program_fits_in_what_it_needs_without_what_goes_ahead(void **state)
{
	struct program p = BODY("%33 = " DOT("%1", "%2") "%34 = add(%31, %33) : " MATRIX "\n"
		"%35 = concatenate(%34, %31, %34, %31, %34, %31, %34, %31) {dimension = 0} : "
		"tensor<128x16xf32>\n"
		"%36 = sort(%35) {dimension = 0, is_stable = false} : tensor<128x16xf32> "
		"(%70: tensor<f32>, %71: tensor<f32>) {\n%72 = compare(%70, %71) {compare_type = "
		"<FLOAT>, comparison_direction = <LT>} : tensor<i1>\nreturn(%72)\n}\n"
		"%40 = slice(%36) {limit_indices = [16, 16], start_indices = [0, 0], "
		"strides = [1, 1]} : " MATRIX "\n");
	char *text = text_of(&p);
	struct err err;
	unsigned long long need;

	(void)state;
	assert_int_equal(compile(text, 1, &err), ERR_RESOURCE_EXHAUSTED);
	assert_int_equal(sscanf(err.msg, "the program needs %llu bytes", &need), 1);
	assert_int_equal(compile(text, need - 1, &err), ERR_RESOURCE_EXHAUSTED);
	if (compile(text, need, &err))
		fail_msg("%llu: %s", need, err.msg);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_large_work_goes_ahead_of_the_loop),
		cmocka_unit_test(what_changes_stays),
		cmocka_unit_test(a_branch_that_reads_nothing_that_changes_goes_ahead),
		cmocka_unit_test(elementwise_work_goes_ahead_if_that_is_less),
		cmocka_unit_test(a_table_that_a_cache_holds_is_made_once),
		cmocka_unit_test(little_work_is_where_it_is_read),
		cmocka_unit_test(a_loop_goes_ahead_of_a_loop_if_it_ends_or_would_be_run),
		cmocka_unit_test(loops_in_loops_give_up_what_stays_the_same_in_each),
		cmocka_unit_test(conditions_give_it_up_as_well),
		cmocka_unit_test(members_meet_once_replicas_as_often_as_they_say),
		cmocka_unit_test(what_memory_has_no_room_for_stays),
		cmocka_unit_test(a_program_fits_in_what_it_needs_without_what_goes_ahead),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
