/* SPDX-License-Identifier: Apache-2.0 */
/* What loop/unroll.c makes of loops, and opt/fuse.c of what they carry, by the text after the pass.
 * Numbers are tested by tests/jax/loops. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "runtime/compiler/tc.h"
#include "tests/unit/opt/opt_text.h"

#define S32 "tensor<i32>"
#define NUMBER(id, element) id " = constant() {value = dense<" element "> : " S32 "} : " S32 "\n"

/* A loop of so many turns that carries %30, its counter, %31, of such a type, and %32, an array of
 * 64 rows of it, through `body`, which makes %41 and %42 of them. %3 is another such array. */
struct loop {
	unsigned turns;
	const char *type, *rows, *body;
};

static char *after(const char *pass, const struct loop *l)
{
	char text[6000], *out;

	snprintf(text, sizeof(text), "module() () {\nfunc() {sym_name = \"main\"} (%%1: %s, "
		 "%%2: %s, %%3: %s) {\n" NUMBER("%%10", "0x00000000") NUMBER("%%11", "0x%02x000000")
		 NUMBER("%%12", "0x01000000") NUMBER("%%13", "0x02000000")
		 "%%15, %%16, %%17 = while(%%10, %%1, %%2) : " S32 ", %s, %s"
		 " (%%20: " S32 ", %%21: %s, %%22: %s) {\n"
		 "%%23 = compare(%%20, %%11) {compare_type = <SIGNED>, comparison_direction = <LT>}"
		 " : tensor<i1>\nreturn(%%23)\n} (%%30: " S32 ", %%31: %s, %%32: %s) {\n%s"
		 "%%40 = add(%%30, %%12) : " S32 "\nreturn(%%40, %%41, %%42)\n}\n"
		 "return(%%16, %%17)\n}\n}\n", l->type, l->rows, l->rows, l->turns, l->type,
		 l->rows, l->type, l->rows, l->type, l->rows, l->body);
	out = opt_after(pass, text);
	return out;
}

static unsigned count(const char *text, const char *what)
{
	unsigned n = 0;

	while ((text = strstr(text, what)))
		n++, text++;
	return n;
}

/* How often `what` stands in the loop, and before it; without a loop all of it is before. */
static void expect(struct loop l, const char *what, unsigned in, unsigned before, bool is_loop)
{
	char *out = after("unroll", &l), *loop = strstr(out, "while(");
	unsigned n[2] = { 0, count(out, what) };

	if (loop) {
		n[0] = count(loop, what);
		*loop = 0;
		n[1] = count(out, what);
	}
	if (n[0] != in || n[1] != before || !loop == is_loop)
		fail_msg("%u turns: %u of %s in the loop, not %u, %u before, not %u, of\n%s",
			 l.turns, n[0], what, in, n[1], before, l.body);
	free(out);
}

#define ROWS "tensor<64xi32>"
#define LONG_ROWS "tensor<2048xi32>"
#define LEAVE_ROWS "%42 = add(%32, %3) : " ROWS "\n"
#define STEP "%41 = multiply(%31, %13) : " S32 "\n"

static void turns_that_divide_are_eight_at_once(void **state)
{
	static const struct { unsigned turns, in, before; } expected[] = {
		{ 1, 0, 1 }, { 2, 0, 2 }, { 7, 0, 7 }, { 8, 0, 8 }, { 9, 8, 1 }, { 15, 8, 7 },
		{ 16, 8, 0 }, { 64, 8, 0 }, { 65, 8, 1 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(expected) / sizeof(*expected); i++)
		expect((struct loop){ expected[i].turns, S32, ROWS, STEP LEAVE_ROWS }, "multiply(",
		       expected[i].in, expected[i].before, expected[i].turns > 8);
}

static void longer_steps_are_fewer_at_once(void **state)
{
	char body[4000], *to = body;

	(void)state;
	to += sprintf(to, "%%50 = multiply(%%31, %%13) : " S32 "\n");
	for (unsigned i = 1; i < 30; i++)
		to += sprintf(to, "%%%u = multiply(%%%u, %%31) : " S32 "\n", 50 + i, 49 + i);
	sprintf(to, "%%41 = multiply(%%79, %%31) : " S32 "\n%s", LEAVE_ROWS);
	/* 31 of them, and two additions, are 33 values at least, of 96 */
	expect((struct loop){ 64, S32, ROWS, body }, "multiply(", 62, 0, true);
	for (unsigned i = 80; i < 110; i++)
		to += sprintf(to, "%%%u = multiply(%%%u, %%31) : " S32 "\n", i, i - 1);
	sprintf(to, "%%41 = multiply(%%109, %%31) : " S32 "\n%s", LEAVE_ROWS);
	expect((struct loop){ 64, S32, ROWS, body }, "multiply(", 61, 0, true);
}

/* Up to a page. */
static void little_of_other_work_is_eight_at_once(void **state)
{
	static const char *const rows[] = { ROWS, "tensor<1024xi32>", "tensor<1025xi32>" };
	char body[400];

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		bool is_long = i == 2;

		snprintf(body, sizeof(body), "%%41 = multiply(%%31, %%13) : " S32 "\n"
			 "%%42 = reverse(%%32) {dimensions = [0]} : %s\n", rows[i]);
		expect((struct loop){ 64, S32, rows[i], body }, "reverse(", is_long ? 1 : 8, 0,
		       true);
		expect((struct loop){ 4, S32, rows[i], body }, "reverse(", is_long ? 1 : 0,
		       is_long ? 0 : 4, is_long);
	}
}

#define TAKE(at) "%51 = dynamic_slice(%3, " at ") {slice_sizes = [1]} : tensor<1xi32>\n" \
	"%52 = reshape(%51) : " S32 "\n%41 = add(%31, %52) : " S32 "\n"
#define PUT(at) "%53 = reshape(%41) : tensor<1xi32>\n" \
	"%42 = dynamic_update_slice(%32, %53, " at ") : " ROWS "\n"

static void rows_are_taken_and_put_at_once(void **state)
{
	struct loop l = { 64, S32, ROWS, TAKE("%30") PUT("%30") };

	(void)state;
	expect(l, "dynamic_slice(", 1, 0, true);
	expect(l, "dynamic_update_slice(", 1, 0, true);
	expect(l, "slice_sizes = [8]", 1, 0, true);
	l.turns = 21;
	expect(l, "dynamic_slice(", 1, 1, true);
	l.turns = 6;
	expect(l, "slice_sizes = [6]", 0, 1, false);
	/* from the end: 63 - counter */
	expect((struct loop){ 64, S32, ROWS, NUMBER("%49", "0x3f000000")
		"%50 = subtract(%49, %30) : " S32 "\n" TAKE("%50") PUT("%50") },
		"dynamic_slice(", 1, 0, true);
}

static void rows_that_may_be_clamped_or_looked_at_go_one_by_one(void **state)
{
	(void)state;
	/* the last turn's would be row 64 */
	expect((struct loop){ 64, S32, ROWS, "%50 = add(%30, %12) : " S32 "\n"
		TAKE("%50") LEAVE_ROWS }, "slice_sizes = [1]", 8, 0, true);
	expect((struct loop){ 64, S32, ROWS, "%50 = subtract(%30, %12) : " S32 "\n"
		TAKE("%50") LEAVE_ROWS }, "slice_sizes = [1]", 8, 0, true);
	/* every second row */
	expect((struct loop){ 32, S32, ROWS, "%50 = add(%30, %30) : " S32 "\n"
		TAKE("%50") LEAVE_ROWS }, "slice_sizes = [1]", 8, 0, true);
	/* of what turns change */
	expect((struct loop){ 64, S32, ROWS, "%51 = dynamic_slice(%32, %30) {slice_sizes = [1]} : "
		"tensor<1xi32>\n%52 = reshape(%51) : " S32 "\n%41 = add(%31, %52) : " S32 "\n"
		PUT("%30") }, "slice_sizes = [1]", 8, 0, true);
	expect((struct loop){ 64, S32, ROWS, "%51 = dynamic_slice(%32, %30) {slice_sizes = [1]} : "
		"tensor<1xi32>\n%52 = reshape(%51) : " S32 "\n%41 = add(%31, %52) : " S32 "\n"
		LEAVE_ROWS }, "slice_sizes = [1]", 8, 0, true);
	/* read whole by the turn that puts one */
	expect((struct loop){ 64, ROWS, ROWS, "%41 = multiply(%31, %32) : " ROWS "\n"
		"%53 = reshape(%30) : tensor<1xi32>\n"
		"%42 = dynamic_update_slice(%32, %53, %30) : " ROWS "\n" },
		"multiply(", 8, 0, true);
	/* read after it was put */
	expect((struct loop){ 64, S32, ROWS, STEP "%53 = reshape(%41) : tensor<1xi32>\n"
		"%54 = dynamic_update_slice(%32, %53, %30) : " ROWS "\n"
		"%42 = add(%54, %3) : " ROWS "\n" }, "multiply(", 8, 0, true);
}

static void long_rows_stay(void **state)
{
	static const struct { const char *row, *rows, *sizes; bool is_long; } cases[] = {
		{ "tensor<1024xi32>", "tensor<64x1024xi32>", "slice_sizes = [1, 1024]", false },
		{ "tensor<1025xi32>", "tensor<64x1025xi32>", "slice_sizes = [1, 1025]", true },
	};

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		char body[1000], one[40];

		snprintf(one, sizeof(one), "tensor<1x%s", cases[i].row + strlen("tensor<"));
		snprintf(body, sizeof(body), "%%51 = dynamic_slice(%%3, %%30, %%10) {%s} : "
			 "%s\n%%52 = reshape(%%51) : %s\n%%41 = add(%%31, %%52) : %s\n"
			 "%%42 = add(%%32, %%3) : %s\n", cases[i].sizes, one, cases[i].row,
			 cases[i].row, cases[i].rows);
		expect((struct loop){ 64, cases[i].row, cases[i].rows, body }, cases[i].sizes,
		       cases[i].is_long, 0, true);
	}
}

/* Of arrays that need each other, so that neither is made of what is in a fusion with the other. */
static void what_a_turn_gives_the_next_one_is_one_fusion(void **state)
{
	struct loop l = { 64, ROWS, ROWS, "%50 = multiply(%31, %32) : " ROWS "\n"
		"%41 = add(%50, %3) : " ROWS "\n%42 = subtract(%50, %31) : " ROWS "\n" };
	char *out = after("fuse", &l);

	(void)state;
	/* beside the counter's and the condition's */
	assert_int_equal(count(out, "= tc.fusion("), 3);
	free(out);
	/* what a third op reads before the last of them is made is made before */
	l.type = l.rows = LONG_ROWS;
	l.body = "%50 = multiply(%31, %32) : " LONG_ROWS "\n%41 = add(%50, %3) : " LONG_ROWS "\n"
		"%51 = reverse(%41) {dimensions = [0]} : " LONG_ROWS "\n"
		"%42 = subtract(%50, %51) : " LONG_ROWS "\n";
	out = after("fuse", &l);
	assert_int_equal(count(out, "= tc.fusion("), 4);
	free(out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(turns_that_divide_are_eight_at_once),
		cmocka_unit_test(longer_steps_are_fewer_at_once),
		cmocka_unit_test(little_of_other_work_is_eight_at_once),
		cmocka_unit_test(rows_are_taken_and_put_at_once),
		cmocka_unit_test(rows_that_may_be_clamped_or_looked_at_go_one_by_one),
		cmocka_unit_test(long_rows_stay),
		cmocka_unit_test(what_a_turn_gives_the_next_one_is_one_fusion),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
