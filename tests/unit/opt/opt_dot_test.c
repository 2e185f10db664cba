/* SPDX-License-Identifier: Apache-2.0 */
/* Which products lower/dot.c makes of parts of what they sum, and which sums lower/outer.c makes
 * products of, by the text after them. */
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

struct product {
	const char *type, *result;
	unsigned k, rows, cols;
	const char *attrs;
};

/* The text after the pass of [rows, k] by [k, cols]; turned: the first is the transposition of an
 * argument. */
static char *decomposed(const struct product *p, bool turned)
{
	char text[1500], turn[200] = "";

	if (turned)
		snprintf(turn, sizeof(turn), "%%3 = transpose(%%1) {permutation = [1, 0]} : "
			 "tensor<%ux%ux%s>\n", p->rows, p->k, p->type);
	snprintf(text, sizeof(text),
		 "module() () {\nfunc() {sym_name = \"main\"} (%%1: tensor<%ux%ux%s>, "
		 "%%2: tensor<%ux%ux%s>) {\n%s"
		 "%%4 = dot_general(%%%u, %%2) {lhs_batching_dimensions = [], "
		 "rhs_batching_dimensions = [], lhs_contracting_dimensions = [1], "
		 "rhs_contracting_dimensions = [0]%s} : tensor<%ux%ux%s>\nreturn(%%4)\n}\n}\n",
		 turned ? p->k : p->rows, turned ? p->rows : p->k, p->type, p->k, p->cols, p->type,
		 turn, turned ? 3 : 1, p->attrs, p->rows, p->cols, p->result);
	return opt_after("decompose", text);
}

static unsigned count(const char *text, const char *what)
{
	unsigned n = 0;

	for (; (text = strstr(text, what)); text++)
		n++;
	return n;
}

/* parts of `each` elements, and a product of the rest if there is one; 0: it stays whole. */
static void expect(struct product p, unsigned parts, unsigned each)
{
	char side[100], whole[100];

	snprintf(side, sizeof(side), ": tensor<%ux%ux%ux%s>", parts, each, p.cols, p.type);
	snprintf(whole, sizeof(whole), "tensor<%ux%ux%ux", parts, p.rows, p.cols);
	for (unsigned turned = 0; turned < 2; turned++) {
		char *out = decomposed(&p, turned);
		unsigned dots = !parts || parts * each == p.k ? 1 : 2;

		if (count(out, "dot_general(") != dots ||
		    count(out, "reduce(") != !!parts ||
		    (parts && (!strstr(out, side) || !strstr(out, whole))) ||
		    /* the transposition itself */
		    (parts && strstr(out, "(%3)")) ||
		    count(out, "precision_config = [2, 2]") != (*p.attrs ? dots : 0))
			fail_msg("%u of %u, turned %u:\n%s", parts, each, turned, out);
		free(out);
	}
}

static void few_rows_and_columns_with_much_to_sum_are_parts(void **state)
{
	(void)state;
	expect((struct product){ "f32", "f32", 100000, 64, 64, "" }, 32, 3125);
	expect((struct product){ "f32", "f32", 100000, 64, 64, ", precision_config = [2, 2]" },
	       32, 3125);
	expect((struct product){ "bf16", "bf16", 65536, 128, 11, "" }, 32, 2048);
	expect((struct product){ "i8", "i32", 65536, 11, 128, "" }, 32, 2048);
	expect((struct product){ "complex<f32>", "complex<f32>", 65536, 11, 128, "" }, 0, 0);
	/* Both sides of each limit. */
	expect((struct product){ "f32", "f32", 8191, 64, 64, "" }, 0, 0);
	expect((struct product){ "f32", "f32", 8192, 64, 64, "" }, 4, 2048);
	expect((struct product){ "f32", "f32", 65536, 256, 256, "" }, 32, 2048);
	expect((struct product){ "f32", "f32", 65536, 256, 257, "" }, 16, 4096);
	expect((struct product){ "f32", "f32", 65536, 1024, 512, "" }, 4, 16384);
	expect((struct product){ "f32", "f32", 65536, 1024, 513, "" }, 0, 0);
	/* sums that would be narrower than they are made */
	expect((struct product){ "i8", "i8", 65536, 64, 64, "" }, 0, 0);
}

static void what_no_part_divides_leaves_a_rest(void **state)
{
	(void)state;
	expect((struct product){ "f32", "f32", 99991, 64, 64, "" }, 31, 3125);
	expect((struct product){ "f32", "f32", 2048, 5, 5, "" }, 40, 51);
}

static void very_few_rows_and_columns_are_many_small_products(void **state)
{
	(void)state;
	expect((struct product){ "f32", "f32", 2047, 5, 5, "" }, 0, 0);
	expect((struct product){ "f32", "f32", 100000, 5, 5, "" }, 2000, 50);
	expect((struct product){ "i32", "i32", 100000, 10, 2, "" }, 4000, 25);
	expect((struct product){ "f64", "f64", 4096, 4, 8, "" }, 128, 32);
	/* of which some are not multiplied together */
	expect((struct product){ "f32", "f32", 20000, 11, 5, "" }, 10, 2000);
	expect((struct product){ "i8", "i32", 20000, 5, 5, "" }, 10, 2000);
}

/* The text after the pass of the sum over `dims` of x times y, each spread along `to` of the
 * products, and of `more`, which may look at the products %5, too. */
static char *summed(const char *x, const char *x_to, const char *y, const char *y_to,
		    const char *products, const char *dims, const char *result, const char *elem,
		    const char *more)
{
	char text[1500];

	snprintf(text, sizeof(text),
		 "module() () {\nfunc() {sym_name = \"main\"} (%%1: tensor<%s%s>, "
		 "%%2: tensor<%s%s>) {\n"
		 "%%3 = broadcast_in_dim(%%1) {broadcast_dimensions = [%s]} : tensor<%s%s>\n"
		 "%%4 = broadcast_in_dim(%%2) {broadcast_dimensions = [%s]} : tensor<%s%s>\n"
		 "%%5 = multiply(%%3, %%4) : tensor<%s%s>\n"
		 "%%6 = constant() {value = dense<0x%s> : tensor<%s>} : tensor<%s>\n"
		 "%%7 = reduce(%%5, %%6) {dimensions = [%s]} : tensor<%s%s> (%%8: tensor<%s>, "
		 "%%9: tensor<%s>) {\n%%10 = add(%%8, %%9) : tensor<%s>\nreturn(%%10)\n}\n"
		 "return(%%7%s)\n}\n}\n",
		 x, elem, y, elem, x_to, products, elem, y_to, products, elem, products, elem,
		 strcmp(elem, "bf16") ? "00000000" : "0000", elem, elem, dims, result, elem, elem,
		 elem, elem, more);
	return opt_after("decompose", text);
}

#define SUMMED(is_dot, ...) \
	do { \
		char *out = summed(__VA_ARGS__); \
		\
		if (count(out, "dot_general(") != (is_dot)) \
			fail_msg("%s", out); \
		free(out); \
	} while (0)

static void sums_of_outer_products_are_products(void **state)
{
	(void)state;
	SUMMED(1, "9x4x", "0, 1", "9x5x", "0, 2", "9x4x5x", "0", "4x5x", "f32", "");
	/* Columns before rows, batches, and a dim of 1 on the way. */
	SUMMED(1, "9x5x", "0, 2", "9x4x", "0, 1", "9x4x5x", "0", "4x5x", "f32", "");
	SUMMED(1, "3x9x4x1x", "0, 1, 2, 3", "3x9x5x", "0, 1, 3", "3x9x4x5x", "1", "3x4x5x", "f32",
	       "");
	SUMMED(1, "4x2x", "0, 2", "5x2x", "1, 2", "4x5x2x", "2", "4x5x", "f32", "");
}

static void other_sums_of_products_stay(void **state)
{
	(void)state;
	/* Rounded before they are summed; looked at by others; summed in one factor alone. */
	SUMMED(0, "9x4x", "0, 1", "9x5x", "0, 2", "9x4x5x", "0", "4x5x", "bf16", "");
	SUMMED(0, "9x4x", "0, 1", "9x5x", "0, 2", "9x4x5x", "0", "4x5x", "f32", ", %5");
	SUMMED(0, "9x4x", "0, 1", "5x", "2", "9x4x5x", "0", "4x5x", "f32", "");
	/* A batch behind the rows; rows in another order; a matrix by a vector. */
	SUMMED(0, "9x4x3x", "0, 1, 3", "9x5x3x", "0, 2, 3", "9x4x5x3x", "0", "4x5x3x", "f32", "");
	SUMMED(0, "6x9x4x", "2, 0, 1", "9x5x", "0, 3", "9x4x6x5x", "0", "4x6x5x", "f32", "");
	SUMMED(0, "9x4x", "0, 1", "9x", "0", "9x4x", "0", "4x", "f32", "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(few_rows_and_columns_with_much_to_sum_are_parts),
		cmocka_unit_test(what_no_part_divides_leaves_a_rest),
		cmocka_unit_test(very_few_rows_and_columns_are_many_small_products),
		cmocka_unit_test(sums_of_outer_products_are_products),
		cmocka_unit_test(other_sums_of_products_stay),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
