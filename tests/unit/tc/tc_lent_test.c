/* SPDX-License-Identifier: Apache-2.0 */
/* Large reductions among members, who read each other's operands where they lie: on linked devices
 * of the model, against plain loops. */
#include <stdio.h>

#include "tests/unit/gang.h"

#define N GANG_DEVICES
/* The region of a sum, in a format. */
#define SUM(k) "(%%" #k "0: tensor<ui32>, %%" #k "1: tensor<ui32>) {\n%%" #k "2 = add(%%" #k \
	"0, %%" #k "1) : tensor<ui32>\nreturn(%%" #k "2)\n}\n"

static uint32_t value_of(unsigned m, size_t i, unsigned salt)
{
	uint64_t x = (m + 1) * 0x9e3779b97f4a7c15u + i * 0xbf58476d1ce4e5b9u + salt * 77777u;

	return (uint32_t)(x >> 23 ^ x >> 41);
}

static uint32_t *room(size_t elements)
{
	uint32_t *p = malloc(elements * sizeof(*p) + 1);

	assert_non_null(p);
	return p;
}

static void set(const struct gang *g, unsigned arg, size_t elements, unsigned salt)
{
	uint32_t *data = room(elements);

	for (unsigned m = 0; m < g->n; m++) {
		for (size_t i = 0; i < elements; i++)
			data[i] = value_of(m, i, salt);
		gang_set(g, m, arg, data);
	}
	free(data);
}

/* Result r of all members is the sum over them of what set() gave, times `times`. */
static void expect_sum(const struct gang *g, unsigned r, size_t elements, unsigned salt,
		       uint32_t times)
{
	uint32_t *got = room(elements);

	for (unsigned m = 0; m < g->n; m++) {
		gang_get(g, m, r, got);
		for (size_t i = 0; i < elements; i++) {
			uint32_t want = 0;

			for (unsigned k = 0; k < g->n; k++)
				want += value_of(k, i, salt);
			if (got[i] != want * times)
				fail_msg("result %u of member %u, element %zu: %u, not %u", r, m,
					 i, got[i], want * times);
		}
	}
	free(got);
}

struct text { char at[16384]; size_t n; };

static void __attribute__((format(printf, 2, 3))) say(struct text *t, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	t->n += (size_t)vsnprintf(t->at + t->n, sizeof(t->at) - t->n, fmt, ap);
	va_end(ap);
	assert_true(t->n < sizeof(t->at));
}

/* Bindings by which members read from others. */
static unsigned count_reads(const struct image *im)
{
	unsigned n = 0;

	for (size_t i = 0; i < im->n_bindings; i++)
		n += im->bindings[i].kind == IMAGE_PEER_DATA &&
		     im->bindings[i].access & HW_BIND_READ;
	return n;
}

static void all_of(char *out, size_t room_for, unsigned n)
{
	size_t at = 0;

	for (unsigned m = 0; m < n; m++)
		at += (size_t)snprintf(out + at, room_for - at, "%s%u", m ? ", " : "", m);
}

/* Of an argument and of what is made of one; sizes that parts fit and others. */
static void sums_are_made_of_what_lies_at_others(void **state)
{
	static const struct { unsigned n, elements; } cases[] = {
		{ 2, 16385 }, { 2, 20000 }, { 3, 20001 }, { 4, 16400 }, { 5, 32768 }, { 8, 40000 },
		{ 8, 40003 }, { 7, 100000 },
	};

	(void)state;
	for (unsigned c = 0; c < sizeof(cases) / sizeof(*cases); c++) {
		unsigned n = cases[c].n, e = cases[c].elements;
		char text[2048], all[64];
		struct gang g;

		all_of(all, sizeof(all), n);
		snprintf(text, sizeof(text), "module() {sym_name = \"test\"} () {\nfunc() "
			"{sym_name = \"main\"} (%%0: tensor<%uxui32>, %%1: tensor<%uxui32>) {\n"
			"%%2 = all_reduce(%%0) {replica_groups = [%s], group_size = %u, "
			"use_global_device_ids = true} : tensor<%uxui32> " SUM(5)
			"%%3 = add(%%1, %%1) : tensor<%uxui32>\n"
			"%%4 = all_reduce(%%3) {replica_groups = [%s], group_size = %u, "
			"use_global_device_ids = true} : tensor<%uxui32> " SUM(6)
			"%%7 = add(%%4, %%4) : tensor<%uxui32>\n"
			"return(%%2, %%7)\n}\n}\n", e, e, all, n, e, e, all, n, e, e);
		gang_make(&g, text, n, 1, 1);
		assert_int_equal(count_reads(g.image),
				 !gang_direct ? 0 : e % n ? n : 2 * n);
		for (unsigned round = 0; round < 20; round++) {
			set(&g, 0, e, round);
			set(&g, 1, e, round + 1000);
			gang_run(&g);
			expect_sum(&g, 0, e, round, 1);
			expect_sum(&g, 1, e, round + 1000, 4);
		}
		gang_drop(&g);
	}
}

/* A reduce_scatter lends until the members meet next, which is behind it in one of two programs. */
static void scattered_sums_are_lent_until_the_next_meeting(void **state)
{
	enum { ELEMENTS = 4 * 9000 };
	uint32_t *got = room(ELEMENTS);

	(void)state;
	for (unsigned meets = 0; meets < 2; meets++) {
		static struct text t;
		struct gang g;

		t.n = 0;
		say(&t, "module() {sym_name = \"test\"} () {\nfunc() {sym_name = \"main\"} (%%0: "
		    "tensor<36000xui32>) {\n%%1 = add(%%0, %%0) : tensor<36000xui32>\n"
		    "%%2 = reduce_scatter(%%1) {scatter_dimension = 0, replica_groups = "
		    "[0, 1, 2, 3], group_size = 4, use_global_device_ids = true} : "
		    "tensor<9000xui32> " SUM(5));
		say(&t, "%%3 = multiply(%%2, %%2) : tensor<9000xui32>\n"
		    "%%4 = all_gather(%%3) {all_gather_dim = 0, replica_groups = [%s], "
		    "group_size = %u, use_global_device_ids = true} : tensor<%uxui32>\n"
		    "return(%%2, %%4)\n}\n}\n", "0, 1, 2, 3",
		    meets ? 4 : 1, meets ? 36000 : 9000);
		gang_make(&g, t.at, 4, 1, 1);
		assert_int_equal(count_reads(g.image), gang_direct && meets ? 4 : 0);
		for (unsigned round = 0; round < 100; round++) {
			set(&g, 0, ELEMENTS, round);
			gang_run(&g);
			for (unsigned m = 0; m < 4; m++) {
				gang_get(&g, m, 0, got);
				for (unsigned i = 0; i < ELEMENTS / 4; i++) {
					uint32_t want = 0;

					for (unsigned k = 0; k < 4; k++)
						want += 2 * value_of(k, m * 9000 + i, round);
					assert_int_equal(got[i], want);
				}
			}
		}
		gang_drop(&g);
	}
	free(got);
}

/* Whose order is that of the row, which floats tell. */
static void sums_begin_with_the_first_of_a_row(void **state)
{
	static const unsigned row[N] = { 3, 1, 4, 0, 5, 7, 2, 6 };
	enum { ELEMENTS = 16392 };
	float *x = malloc(N * ELEMENTS * sizeof(*x)), *got = malloc(ELEMENTS * sizeof(*got));
	struct gang g;

	(void)state;
	assert_true(x && got);
	gang_make(&g, "module() {sym_name = \"test\"} () {\nfunc() {sym_name = \"main\"} "
		  "(%0: tensor<16392xf32>) {\n%1 = all_reduce(%0) {replica_groups = [3, 1, 4, 0, "
		  "5, 7, 2, 6], group_size = 8, use_global_device_ids = true} : tensor<16392xf32> "
		  "(%2: tensor<f32>, %3: tensor<f32>) {\n%4 = add(%2, %3) : tensor<f32>\n"
		  "return(%4)\n}\nreturn(%1)\n}\n}\n", N, 1, 1);
	assert_int_equal(count_reads(g.image), gang_direct ? N : 0);
	for (unsigned m = 0; m < N; m++) {
		for (unsigned i = 0; i < ELEMENTS; i++)
			x[m * ELEMENTS + i] = (float)(int32_t)value_of(m, i, 0) /
					      (float)(1u << (i + m) % 24);
		gang_set(&g, m, 0, x + m * ELEMENTS);
	}
	for (unsigned round = 0; round < 10; round++) {
		gang_run(&g);
		for (unsigned m = 0; m < N; m++) {
			gang_get(&g, m, 0, got);
			for (unsigned i = 0; i < ELEMENTS; i++) {
				float want = x[row[0] * ELEMENTS + i];

				for (unsigned k = 1; k < N; k++)
					want += x[row[k] * ELEMENTS + i];
				assert_memory_equal(&got[i], &want, sizeof(want));
			}
		}
	}
	gang_drop(&g);
	free(x);
	free(got);
}

/* Which are added in f32: each part by itself, so that it is read there, too. */
static void narrow_floats_are_read_where_they_lie(void **state)
{
	enum { ELEMENTS = 40000 };
	uint16_t *x = malloc(ELEMENTS * sizeof(*x));
	struct gang g;

	(void)state;
	assert_non_null(x);
	gang_make(&g, "module() {sym_name = \"test\"} () {\nfunc() {sym_name = \"main\"} "
		  "(%0: tensor<40000xbf16>) {\n%1 = all_reduce(%0) {replica_groups = [0, 1, 2, 3], "
		  "group_size = 4, use_global_device_ids = true} : tensor<40000xbf16> "
		  "(%2: tensor<bf16>, %3: tensor<bf16>) {\n%4 = add(%2, %3) : tensor<bf16>\n"
		  "return(%4)\n}\nreturn(%1)\n}\n}\n", 4, 1, 1);
	assert_int_equal(count_reads(g.image), gang_direct ? 4 : 0);
	for (unsigned m = 0; m < 4; m++) {
		for (unsigned i = 0; i < ELEMENTS; i++) {
			float v = (float)(m * 9 + i % 31);
			uint32_t bits;

			memcpy(&bits, &v, sizeof(bits));
			x[i] = (uint16_t)(bits >> 16);
		}
		gang_set(&g, m, 0, x);
	}
	gang_run(&g);
	for (unsigned m = 0; m < 4; m++) {
		gang_get(&g, m, 0, x);
		for (unsigned i = 0; i < ELEMENTS; i++) {
			uint32_t bits = (uint32_t)x[i] << 16;
			float got;

			memcpy(&got, &bits, sizeof(got));
			assert_true(got == (float)(54 + 4 * (i % 31)));	/* 8 bits hold it */
		}
	}
	gang_drop(&g);
	free(x);
}

/* ---- who comes when ---- */

#define SPIN(k) \
	"%%1" #k "0, %%1" #k "1 = while(%%8, %%9) : tensor<i32>, tensor<ui32> " \
	"(%%1" #k "2: tensor<i32>, %%1" #k "3: tensor<ui32>) {\n" \
	"%%1" #k "4 = compare(%%1" #k "2, %%2" #k ") {compare_type = <SIGNED>, " \
	"comparison_direction = <LT>} : tensor<i1>\nreturn(%%1" #k "4)\n} " \
	"(%%1" #k "5: tensor<i32>, %%1" #k "6: tensor<ui32>) {\n" \
	"%%1" #k "7 = add(%%1" #k "5, %%7) : tensor<i32>\n" \
	"%%1" #k "8 = multiply(%%1" #k "6, %%6) : tensor<ui32>\n" \
	"return(%%1" #k "7, %%1" #k "8)\n}\n"

/* %to = parts of argument `in`, of all; or the same of one part to all. */
static void say_exchange(struct text *t, unsigned to, unsigned in, unsigned n, unsigned part,
			 bool is_same)
{
	char all[64];

	all_of(all, sizeof(all), n);
	say(t, "%%%u = tc.exchange(%%%u) {replica_groups = [%s], group_size = %u, is_same = %s} : "
	    "tensor<%ux%uxui32>\n", to, in, all, n, is_same ? "true" : "false", n, part);
}

/* The sum of the n parts of %of, as %(sum + n - 1). */
static void say_sum(struct text *t, unsigned sum, unsigned of, unsigned n, unsigned part)
{
	for (unsigned k = 0; k < n; k++) {
		say(t, "%%%u = slice(%%%u) {start_indices = [%u, 0], limit_indices = [%u, %u], "
		    "strides = [1, 1]} : tensor<1x%uxui32>\n", sum + 100 + k, of, k, k + 1, part,
		    part);
		say(t, "%%%u = reshape(%%%u) : tensor<%uxui32>\n", sum + 200 + k, sum + 100 + k,
		    part);
		if (k)
			say(t, "%%%u = add(%%%u, %%%u) : tensor<%uxui32>\n", sum + k,
			    k == 1 ? sum + 200 : sum + k - 1, sum + 200 + k, part);
	}
}

/* Two sums at a time, with members that are late by turns, at each of four places. */
static void make_late(struct gang *g, unsigned n, unsigned part)
{
	static struct text t;

	t.n = 0;
	say(&t, "module() {sym_name = \"test\"} () {\nfunc() {sym_name = \"main\"} (%%0: "
	    "tensor<%ux%uxui32>, %%1: tensor<%ux%uxui32>, %%20: tensor<i32>, %%21: tensor<i32>, "
	    "%%22: tensor<i32>, %%23: tensor<i32>) {\n", n, part, n, part);
	say(&t, "%%8 = constant() {value = dense<0x00000000> : tensor<i32>} : tensor<i32>\n"
	    "%%7 = constant() {value = dense<0x01000000> : tensor<i32>} : tensor<i32>\n"
	    "%%9 = constant() {value = dense<0x01000000> : tensor<ui32>} : tensor<ui32>\n"
	    "%%6 = constant() {value = dense<0x03000000> : tensor<ui32>} : tensor<ui32>\n");
	say(&t, SPIN(0));
	say_exchange(&t, 30, 0, n, part, false);
	say(&t, SPIN(1));
	say_exchange(&t, 31, 1, n, part, false);
	say(&t, SPIN(2));
	say_sum(&t, 1000, 30, n, part);
	say(&t, SPIN(3));
	say_sum(&t, 2000, 31, n, part);
	say_exchange(&t, 32, 1000 + n - 1, n, part, true);
	say_exchange(&t, 33, 2000 + n - 1, n, part, true);
	say(&t, "return(%%32, %%33, %%101, %%111, %%121, %%131)\n}\n}\n");
	gang_make(g, t.at, 1, n, 0);	/* so that exchanges stay apart */
	assert_int_equal(count_reads(g->image), gang_direct ? 2 * n : 0);
}

/* Each member's arguments from 2 on, `each` of them: how long it is late by, mostly not at all. */
static void set_turns(struct gang *g, unsigned each, uint64_t *seed)
{
	for (unsigned k = 0; k < each * g->n; k++) {
		int32_t turns;

		*seed = *seed * 6364136223846793005u + 1442695040888963407u;
		turns = *seed >> 62 ? 0 : (int32_t)(*seed >> 40 & 4095);
		gang_set(g, k / each, 2 + k % each, &turns);
	}
}

static void nobody_is_counted_for_another_one(void **state)
{
	static const unsigned sizes[] = { 2, 3, 8 };
	uint64_t seed = 1;

	(void)state;
	for (unsigned c = 0; c < 3; c++) {
		unsigned n = sizes[c], part = 40;
		struct gang g;

		make_late(&g, n, part);
		for (unsigned round = 0; round < 300; round++) {
			set_turns(&g, 4, &seed);
			set(&g, 0, n * part, 2 * round);
			set(&g, 1, n * part, 2 * round + 1);
			gang_run(&g);
			expect_sum(&g, 0, n * part, 2 * round, 1);
			expect_sum(&g, 1, n * part, 2 * round + 1, 1);
		}
		gang_drop(&g);
	}
}

/* ---- results that are ready ---- */

static unsigned count_waits(const struct image *im)
{
	const struct isa_insn *insn;
	unsigned n = 0;

	for (size_t at = 0; at < im->text_bytes; at += insn->bytes) {
		insn = (const void *)((const uint8_t *)im->text + at);
		n += insn->op == ISA_RWAIT;
	}
	return n;
}

/* A sum, then what goes directly among the same members; the sum has its result's memory from the
 * beginning, or another value needs that (is_taken) until all parts are added. */
static void make_ready(struct gang *g, unsigned n, unsigned part, bool is_taken)
{
	static struct text t;
	unsigned sum = 1000 + n - 1;

	t.n = 0;
	say(&t, "module() {sym_name = \"test\"} () {\nfunc() {sym_name = \"main\"} (%%0: "
	    "tensor<%ux%uxui32>, %%1: tensor<%uxui32>, %%20: tensor<i32>, %%21: tensor<i32>, "
	    "%%2: tensor<%ux%uxui32> {alias = 0}) {\n", n, part, part, n, part);
	say(&t, "%%8 = constant() {value = dense<0x00000000> : tensor<i32>} : tensor<i32>\n"
	    "%%7 = constant() {value = dense<0x01000000> : tensor<i32>} : tensor<i32>\n"
	    "%%9 = constant() {value = dense<0x01000000> : tensor<ui32>} : tensor<ui32>\n"
	    "%%6 = constant() {value = dense<0x03000000> : tensor<ui32>} : tensor<ui32>\n");
	say(&t, SPIN(0));
	say_exchange(&t, 30, 0, n, part, false);
	say_sum(&t, 1000, 30, n, part);
	if (is_taken)
		say(&t, "%%40 = slice(%%2) {start_indices = [0, 0], limit_indices = [1, %u], "
		    "strides = [1, 1]} : tensor<1x%uxui32>\n%%41 = reshape(%%40) : "
		    "tensor<%uxui32>\n%%42 = add(%%%u, %%41) : tensor<%uxui32>\n", part, part,
		    part, sum, part);
	say_exchange(&t, 31, is_taken ? 42 : sum, n, part, true);
	say(&t, SPIN(1));
	say_exchange(&t, 32, 1, n, part, true);
	say(&t, "return(%%31, %%32, %%101, %%111)\n}\n}\n");
	gang_make(g, t.at, 1, n, 0);
	assert_int_equal(count_reads(g->image), gang_direct ? n : 0);
	/* What goes directly waits for credits, too, as does what goes by mailboxes. */
	assert_int_equal(count_waits(g->image), !gang_direct ? 6 : is_taken ? 5 : 4);
}

static void expect_ready(const struct gang *g, unsigned part, bool is_taken, unsigned salt)
{
	uint32_t *got = room((size_t)g->n * part);

	for (unsigned m = 0; m < g->n; m++) {
		gang_get(g, m, 0, got);
		for (unsigned i = 0; i < g->n * part; i++) {
			unsigned from = i / part, at = i % part;
			uint32_t want = is_taken ? value_of(from, at, salt + 2) : 0;

			for (unsigned k = 0; k < g->n; k++)
				want += value_of(k, i, salt);
			assert_int_equal(got[i], want);
		}
		gang_get(g, m, 1, got);
		for (unsigned i = 0; i < g->n * part; i++)
			assert_int_equal(got[i], value_of(i / part, i % part, salt + 1));
	}
	free(got);
}

static void who_has_come_may_be_written_to(void **state)
{
	static const unsigned sizes[] = { 2, 3, 8 };
	uint64_t seed = 1;

	(void)state;
	for (unsigned c = 0; c < 6; c++) {
		unsigned n = sizes[c / 2], part = c < 4 ? 40 : 3000;
		struct gang g;

		make_ready(&g, n, part, c % 2);
		for (unsigned round = 0; round < 100; round++) {
			set_turns(&g, 2, &seed);
			set(&g, 0, n * part, 3 * round);
			set(&g, 1, part, 3 * round + 1);
			set(&g, 4, n * part, 3 * round + 2);
			gang_run(&g);
			expect_ready(&g, part, c % 2, 3 * round);
		}
		gang_drop(&g);
	}
}

/* ---- launches behind each other ---- */

/* x = sum of all x + x, in the argument's own memory; and y = the last sum. */
static void make_going(struct gang *g, unsigned n, unsigned part)
{
	static struct text t;

	t.n = 0;
	say(&t, "module() {sym_name = \"test\"} () {\nfunc() {sym_name = \"main\"} (%%0: "
	    "tensor<%ux%uxui32> {alias = 0}) {\n", n, part);
	say_exchange(&t, 30, 0, n, part, false);
	say_sum(&t, 1000, 30, n, part);
	say_exchange(&t, 31, 1000 + n - 1, n, part, true);
	say(&t, "%%32 = add(%%31, %%0) : tensor<%ux%uxui32>\nreturn(%%32, %%31)\n}\n}\n", n,
	    part);
	gang_make(g, t.at, n, 1, 1);
	assert_int_equal(count_reads(g->image), gang_direct ? n : 0);
}

static void launches_may_be_queued_behind_each_other(void **state)
{
	static const unsigned parts[] = { 1, 700, 40000 };
	struct err err;

	(void)state;
	for (unsigned c = 0; c < 3; c++) {
		unsigned part = parts[c], all = N * part, rounds = c == 2 ? 40 : 2000;
		uint32_t *x = room((size_t)N * all), *got = room(all), *sum = room(all);
		struct gang g;

		make_going(&g, N, part);
		set(&g, 0, all, c);
		for (unsigned m = 0; m < N; m++)
			for (unsigned i = 0; i < all; i++)
				x[m * (size_t)all + i] = value_of(m, i, c);
		for (unsigned round = 0; round < rounds; round++) {
			if (gang_launch(&g, N, &err))
				fail_msg("%s", err.msg);
			memset(sum, 0, all * sizeof(*sum));
			for (size_t i = 0; i < (size_t)N * all; i++)
				sum[i % all] += x[i];
			for (size_t i = 0; i < (size_t)N * all; i++)
				x[i] += sum[i % all];
		}
		for (unsigned m = 0; m < N; m++) {
			if (gang_wait(&g, m, &err))
				fail_msg("%s", err.msg);
			gang_get(&g, m, 0, got);
			assert_memory_equal(got, x + m * (size_t)all, all * sizeof(*got));
			gang_get(&g, m, 1, got);
			assert_memory_equal(got, sum, all * sizeof(*got));
		}
		gang_drop(&g);
		free(x);
		free(got);
		free(sum);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sums_are_made_of_what_lies_at_others),
		cmocka_unit_test(scattered_sums_are_lent_until_the_next_meeting),
		cmocka_unit_test(sums_begin_with_the_first_of_a_row),
		cmocka_unit_test(narrow_floats_are_read_where_they_lie),
		cmocka_unit_test(nobody_is_counted_for_another_one),
		cmocka_unit_test(who_has_come_may_be_written_to),
		cmocka_unit_test(launches_may_be_queued_behind_each_other),
	};
	int n_failed = 0;

	for (gang_direct = 0; gang_direct < 2; gang_direct++)
		n_failed += cmocka_run_group_tests(tests, gang_start, gang_stop);
	return n_failed;
}
