/* SPDX-License-Identifier: Apache-2.0 */
/* Which loops make two turns one (loop/alternate.c), by the text after the pass. Numbers are tested
 * by tests/jax/loops. */
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

/* A loop of so many turns that carries its counter, %30, and %31 and %32, squares of so many rows,
 * through `body`, which makes %41 of them, and %42 or leaves %32. %3 is another one. %T is their
 * type. The loop begins with the argument `first`, which may be donated. */
static char *after(unsigned turns, unsigned rows, const char *body, const char *first)
{
	char text[6000], whole[6000], type[40], *out = whole;

	snprintf(type, sizeof(type), "tensor<%ux%uxf32>", rows, rows);
	snprintf(text, sizeof(text), "module() () {\nfunc() {sym_name = \"main\"} (%%1: %%T%s, "
		 "%%2: %%T, %%3: %%T) {\n"
		 "%%10 = constant() {value = dense<0x00000000> : " S32 "} : " S32 "\n"
		 "%%11 = constant() {value = dense<0x%02x000000> : " S32 "} : " S32 "\n"
		 "%%12 = constant() {value = dense<0x01000000> : " S32 "} : " S32 "\n"
		 "%%15, %%16, %%17 = while(%%10, %%1, %%2) : " S32 ", %%T, %%T"
		 " (%%20: " S32 ", %%21: %%T, %%22: %%T) {\n"
		 "%%23 = compare(%%20, %%11) {compare_type = <SIGNED>, comparison_direction = <LT>}"
		 " : tensor<i1>\nreturn(%%23)\n} (%%30: " S32 ", %%31: %%T, %%32: %%T) {\n%s"
		 "%%40 = add(%%30, %%12) : " S32 "\nreturn(%%40, %%41, %%%s)\n}\n"
		 "return(%%16, %%17)\n}\n}\n", first, turns, body,
		 strstr(body, "%42") ? "42" : "32");
	for (const char *p = text; *p; p++)
		if (p[0] == '%' && p[1] == 'T')
			out += sprintf(out, "%s", type), p++;
		else
			*out++ = *p;
	*out = 0;
	return opt_after("alternate", whole);
}

static unsigned count(const char *text, const char *what)
{
	unsigned n = 0;

	while ((text = strstr(text, what)))
		n++, text++;
	return n;
}

static const char *given = "";

/* How often `what` stands in the loop, and before it. */
static void expect(unsigned turns, unsigned rows, const char *body, const char *what, unsigned in,
		   unsigned before)
{
	char *out = after(turns, rows, body, given), *loop = strstr(out, "while(");
	unsigned n;

	assert_non_null(loop);
	n = count(loop, what);
	*loop = 0;
	if (n != in || count(out, what) != before)
		fail_msg("%u turns: %u of %s in the loop, not %u, %u before, not %u, of\n%s",
			 turns, n, what, in, count(out, what), before, body);
	free(out);
}

#define TIMES(result, a, b) result " = dot_general(" a ", " b ") {" \
	"lhs_batching_dimensions = [], rhs_batching_dimensions = [], " \
	"lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]} : %T\n"
#define ADD(result, a, b) result " = add(" a ", " b ") : %T\n"
#define TURNED(result, a) result " = transpose(" a ") {permutation = [1, 0]} : %T\n"

static void factors_of_products_take_turns(void **state)
{
	const char *body = TIMES("%41", "%31", "%3");

	(void)state;
	expect(3, 64, body, "dot_general", 1, 0);
	expect(4, 64, body, "dot_general", 2, 0);
	expect(5, 64, body, "dot_general", 2, 1);
	expect(100, 64, body, "dot_general", 2, 0);
	/* less than 8 KiB, and more than unroll makes one turn of */
	expect(100, 45, body, "dot_general", 1, 0);
	/* nothing goes before a loop that begins in an argument's memory */
	given = " {alias = 0}";
	expect(5, 64, body, "dot_general", 1, 0);
	expect(4, 64, body, "dot_general", 2, 0);
	given = "";
}

static void what_is_read_turned_takes_turns(void **state)
{
	(void)state;
	expect(20, 64, TURNED("%35", "%31") ADD("%41", "%31", "%35"), "transpose", 2, 0);
}

/* The second turn can't write over each of several. */
static void what_changes_beside_others_stays(void **state)
{
	(void)state;
	expect(20, 64, TIMES("%42", "%31", "%3") TIMES("%41", "%32", "%3"), "dot_general", 2, 0);
	expect(20, 64, TIMES("%41", "%31", "%3") ADD("%42", "%32", "%3"), "dot_general", 1, 0);
}

/* What reads element for element is written over that. */
static void others_stay(void **state)
{
	(void)state;
	expect(20, 64, "%33 = convert(%30) : tensor<f32>\n"
	       "%34 = broadcast_in_dim(%33) {broadcast_dimensions = []} : %T\n"
	       TIMES("%35", "%3", "%34") ADD("%41", "%31", "%35"), "dot_general", 1, 0);
	expect(20, 64, TIMES("%35", "%3", "%32") ADD("%41", "%31", "%35") "%42 = sine(%32) : %T\n",
	       "dot_general", 1, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(factors_of_products_take_turns),
		cmocka_unit_test(what_is_read_turned_takes_turns),
		cmocka_unit_test(what_changes_beside_others_stays),
		cmocka_unit_test(others_stay),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
