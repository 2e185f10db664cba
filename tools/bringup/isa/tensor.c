/* SPDX-License-Identifier: Apache-2.0 */
/* Instructions of the vector unit: what they do beside their bodies. */
#include <stdio.h>
#include <string.h>

#include "tools/bringup/isa/bench.h"
#include "tools/bringup/isa/data.h"
#include "tools/bringup/isa/isa.h"

/* Both sides of a tile, and of several: rows and columns. */
static const struct { size_t n, m; } shapes[] = {
	{ 1, 1 }, { 3, 16 }, { 17, 5 }, { 64, 64 }, { 65, 63 }, { 5, 1025 }, { 513, 9 },
};

static struct isa_body body2(size_t n, size_t m, unsigned n_in, unsigned n_out, unsigned n_uop)
{
	return (struct isa_body){ .rank = 2, .n_in = (uint8_t)n_in, .n_out = (uint8_t)n_out,
		.n_uop = (uint16_t)n_uop, .dim = { (int64_t)n, (int64_t)m, 1, 1, 1, 1, 1, 1 } };
}

/* n random elements for the rest of the step. */
static void *numbers(struct bringup *b, enum elem e, size_t n, enum isa_data data, uint64_t seed)
{
	void *p = bringup_room(b, n * elem_bytes(e));

	if (p)
		isa_fill(e, p, n, data, seed);
	return p;
}

/* ---- VEC: strides, and outputs that combine ---- */

static const struct { const char *op; enum isa_number identity; uint8_t uop; } folds[] = {
	[ISA_COMBINE_ADD] = { "add", ISA_NOTHING, UOP_ADD },
	[ISA_COMBINE_MUL] = { "multiply", ISA_ONE, UOP_MUL },
	[ISA_COMBINE_MIN] = { "minimum", ISA_LARGEST, UOP_MIN },
	[ISA_COMBINE_MAX] = { "maximum", ISA_SMALLEST, UOP_MAX },
	[ISA_COMBINE_AND] = { "and", ISA_ONES, UOP_AND },
	[ISA_COMBINE_OR] = { "or", ISA_NOTHING, UOP_OR },
	[ISA_COMBINE_XOR] = { "xor", ISA_NOTHING, UOP_XOR },
};

/* x[i][j] - y[j][i], and both backwards, as it stands and turned. */
static enum bringup_result turned(struct bringup *b, size_t n, size_t m)
{
	struct isa_tensor head = { .insn.op = ISA_VEC, .body = body2(n, m, 2, 2, 1) };
	struct isa_uop u = { .op = UOP_SUB, .elem = ELEM_S32, .a = 0, .b = 1 };
	int32_t *x = numbers(b, ELEM_S32, n * m, ISA_ANY, 1);
	int32_t *y = numbers(b, ELEM_S32, n * m, ISA_ANY, 2);
	struct isa_bench *t = isa_bench(b);
	struct tc_array args[2], result = isa_array(ELEM_S32, NULL, n, m);
	struct tc_array other = isa_array(ELEM_S32, NULL, m, n);
	struct isa_operand op[4];
	const void *want[2];
	int64_t row = (int64_t)m * 4, column = (int64_t)n * 4, last = (int64_t)(n * m - 1) * 4;

	NEED(b, x && y ? t : NULL);
	args[0] = isa_array(ELEM_S32, x, n, m);
	args[1] = isa_array(ELEM_S32, y, m, n);
	want[0] = isa_evaluate(b, "%5 = transpose(%1) {permutation = [1, 0]} : @0\n"
			       "%9 = subtract(%0, %5) : @R", args, 2, &result);
	NEED(b, want[0]);
	want[1] = isa_evaluate(b, "%5 = transpose(%0) {permutation = [1, 0]} : @1\n"
			       "%6 = subtract(%5, %1) : @1\n"
			       "%9 = reverse(%6) {dimensions = [0, 1]} : @R", args, 2, &other);
	NEED(b, want[1]);
	op[0] = ISA_AT(ELEM_S32, isa_in(t, x, n * m * 4), row, 4);
	op[1] = ISA_AT(ELEM_S32, isa_in(t, y, n * m * 4), 4, column);
	op[2] = ISA_AT(ELEM_S32, isa_out(t, ELEM_S32, want[0], n * m, ISA_BITS,
					 "vec of turned inputs"), row, 4);
	op[3] = ISA_AT(ELEM_S32, (int64_t)isa_out(t, ELEM_S32, want[1], n * m, ISA_BITS,
			"vec to a turned output") + last, -4, -column);
	op[2].value = op[3].value = 2;
	isa_put(t, &head, sizeof(head), op, 4, &u, 1);
	STEP_TRY(isa_run(t));
	bringup_give_back(b);
	return BRINGUP_PASS;
}

/* Along one dim, from the identity, or from what memory holds. */
static enum bringup_result combined(struct bringup *b, enum elem e, unsigned how, size_t n,
				    size_t m, unsigned dim, bool is_acc)
{
	struct isa_tensor head = { .insn.op = ISA_VEC, .body = body2(n, m, 1, 1, 0) };
	struct isa_lines lines = isa_fold(folds[how].op, dim);
	unsigned bytes = elem_bytes(e);
	size_t kept = dim ? n : m;
	void *x = numbers(b, e, n * m, how == ISA_COMBINE_MUL ? ISA_UNITS : ISA_WHOLE, 3);
	void *now = numbers(b, e, kept, how == ISA_COMBINE_MUL ? ISA_UNITS : ISA_WHOLE, 4);
	struct isa_bench *t = isa_bench(b);
	struct tc_array args[3], result = isa_array(e, NULL, kept, 0);
	struct isa_operand op[2];
	uint8_t identity[16];
	const void *want;
	char all[640];

	NEED(b, x && now ? t : NULL);
	isa_number(e, identity, folds[how].identity);
	args[0] = isa_array(e, x, n, m);
	args[1] = isa_array(e, identity, 0, 0);
	args[2] = isa_array(e, now, kept, 0);
	if (is_acc) {
		/* %2, the third argument, is taken up by the numbers of the region. */
		lines.at[1] = '8';
		for (char *p = lines.at + 3; *p; p++)
			if (p[0] == '%' && p[1] >= '2' && p[1] <= '4')
				p[1] = (char)(p[1] + 3);
		snprintf(all, sizeof(all), "%s\n%%9 = %s(%%8, %%2) : @R", lines.at, folds[how].op);
	} else {
		snprintf(all, sizeof(all), "%s", lines.at);
	}
	want = isa_evaluate(b, all, args, is_acc ? 3 : 2, &result);
	NEED(b, want);
	op[0] = ISA_AT(e, isa_in(t, x, n * m * bytes), (int64_t)(m * bytes), bytes);
	op[1] = ISA_AT(e, isa_inout(t, e, now, want, kept, ISA_ZEROS,
				    "vec that combines %s by %s%s", elem_text(e), folds[how].op,
				    is_acc ? " into memory" : ""),
		       dim ? bytes : 0, dim ? 0 : bytes);
	op[1].combine = (uint8_t)how;
	op[1].flags = is_acc ? ISA_OPERAND_ACC : 0;
	isa_put(t, &head, sizeof(head), op, 2, NULL, 0);
	STEP_TRY(isa_run(t));
	bringup_give_back(b);
	return BRINGUP_PASS;
}

enum bringup_result isa_cases_vec(struct bringup *b)
{
	static const enum elem of[] = { ELEM_S32, ELEM_F32, ELEM_U8, ELEM_F64 };

	for (unsigned i = 0; i < COUNT(shapes); i++) {
		STEP_TRY(turned(b, shapes[i].n, shapes[i].m));
		for (unsigned k = 0; k < COUNT(of) * ISA_COMBINE_COUNT * 4; k++) {
			enum elem e = of[k / 4 % COUNT(of)];
			unsigned how = k / 4 / COUNT(of);

			if (how == ISA_STORE || (how >= ISA_COMBINE_AND &&
						 elem_class(e) == ELEM_CLASS_FLOAT))
				continue;
			STEP_TRY(combined(b, e, how, shapes[i].n, shapes[i].m, k & 1, k & 2));
		}
	}
	return BRINGUP_PASS;
}

/* ---- REDUCE ---- */

static enum bringup_result folded(struct bringup *b, enum elem e, unsigned how, size_t n, size_t m,
				  unsigned dim)
{
	struct isa_tensor head = { .insn.op = ISA_REDUCE, .reduce_dims = 1u << dim,
				   .body = body2(n, m, 2, 1, 1) };
	struct isa_uop u = { .op = folds[how].uop, .elem = (uint8_t)e, .a = 0, .b = 1 };
	struct isa_lines lines = isa_fold(folds[how].op, dim);
	unsigned bytes = elem_bytes(e);
	size_t kept = dim ? n : m;
	void *x = numbers(b, e, n * m, how == ISA_COMBINE_MUL ? ISA_UNITS : ISA_WHOLE, 5);
	struct isa_bench *t = isa_bench(b);
	struct tc_array args[2], result = isa_array(e, NULL, kept, 0);
	struct isa_operand op[3];
	uint8_t identity[16];
	const void *want;

	NEED(b, x ? t : NULL);
	isa_number(e, identity, folds[how].identity);
	args[0] = isa_array(e, x, n, m);
	args[1] = isa_array(e, identity, 0, 0);
	want = isa_evaluate(b, lines.at, args, 2, &result);
	NEED(b, want);
	op[0] = ISA_AT(e, isa_in(t, identity, bytes), 0);
	op[1] = ISA_AT(e, isa_in(t, x, n * m * bytes), (int64_t)(m * bytes), bytes);
	op[2] = ISA_AT(e, isa_out(t, e, want, kept, ISA_ZEROS, "reduce of %s by %s", elem_text(e),
				  folds[how].op), dim ? bytes : 0, dim ? 0 : bytes);
	op[2].value = 2;
	isa_put(t, &head, sizeof(head), op, 3, &u, 1);
	STEP_TRY(isa_run(t));
	bringup_give_back(b);
	return BRINGUP_PASS;
}

/* The largest of each row and where it first is, by plain C: two results, and an order that
 * counts. */
static enum bringup_result largest(struct bringup *b, size_t n, size_t m)
{
	struct isa_tensor head = { .insn.op = ISA_REDUCE, .reduce_dims = 2,
				   .body = body2(n, m, 4, 2, 3) };
	static const struct isa_uop u[] = {
		{ .op = UOP_GE, .elem = ELEM_F32, .a = 0, .b = 2 },
		{ .op = UOP_SELECT, .elem = ELEM_F32, .a = 4, .b = 0, .c = 2 },
		{ .op = UOP_SELECT, .elem = ELEM_S32, .a = 4, .b = 1, .c = 3 },
	};
	float *x = numbers(b, ELEM_F32, n * m, ISA_WHOLE, 6), least = -1e30f;
	int32_t *at = bringup_room(b, m * 4), nowhere = -1;
	float *first = bringup_room(b, n * 4);
	int32_t *where = bringup_room(b, n * 4);
	struct isa_bench *t = isa_bench(b);
	struct isa_operand op[6];

	NEED(b, x && at && first && where ? t : NULL);
	for (size_t j = 0; j < m; j++)
		at[j] = (int32_t)j;
	for (size_t i = 0; i < n; i++) {
		first[i] = x[i * m];
		for (size_t j = 0; j < m; j++)
			if (x[i * m + j] > first[i]) {
				first[i] = x[i * m + j];
				where[i] = (int32_t)j;
			}
	}
	op[0] = ISA_AT(ELEM_F32, isa_in(t, &least, 4), 0);
	op[1] = ISA_AT(ELEM_S32, isa_in(t, &nowhere, 4), 0);
	op[2] = ISA_AT(ELEM_F32, isa_in(t, x, n * m * 4), (int64_t)m * 4, 4);
	op[3] = ISA_AT(ELEM_S32, isa_in(t, at, m * 4), 0, 4);
	op[4] = ISA_AT(ELEM_F32, isa_out(t, ELEM_F32, first, n, ISA_ZEROS, "reduce to the largest"),
		       4);
	op[5] = ISA_AT(ELEM_S32, isa_out(t, ELEM_S32, where, n, ISA_BITS,
					 "reduce to the place of the largest"), 4);
	op[4].value = 5;
	op[5].value = 6;
	isa_put(t, &head, sizeof(head), op, 6, u, 3);
	STEP_TRY(isa_run(t));
	bringup_give_back(b);
	return BRINGUP_PASS;
}

enum bringup_result isa_cases_reduce(struct bringup *b)
{
	static const enum elem of[] = { ELEM_S32, ELEM_F32, ELEM_U8, ELEM_F64 };

	for (unsigned i = 0; i < COUNT(shapes); i++) {
		STEP_TRY(largest(b, shapes[i].n, shapes[i].m));
		for (unsigned k = 0; k < COUNT(of) * ISA_COMBINE_COUNT * 2; k++) {
			enum elem e = of[k / 2 % COUNT(of)];
			unsigned how = k / 2 / COUNT(of);

			if (how == ISA_STORE || (how >= ISA_COMBINE_AND &&
						 elem_class(e) == ELEM_CLASS_FLOAT))
				continue;
			STEP_TRY(folded(b, e, how, shapes[i].n, shapes[i].m, k & 1));
		}
	}
	return BRINGUP_PASS;
}

/* ---- COPY ---- */

/* Turned and backwards: dst[j][n - 1 - i] = src[i][j]. */
static enum bringup_result copied(struct bringup *b, enum elem e, size_t n, size_t m)
{
	int64_t bytes = elem_bytes(e);
	struct isa_copy head = { .insn.op = ISA_COPY, .rank = 2, .elem_bytes = (uint8_t)bytes,
				 .dim = { (int64_t)n, (int64_t)m, 1, 1, 1, 1, 1, 1 } };
	void *x = bringup_room(b, n * m * (size_t)bytes);
	struct isa_bench *t = isa_bench(b);
	struct tc_array a, result = isa_array(e, NULL, m, n);
	const void *want;

	NEED(b, x ? t : NULL);
	bringup_fill_random(x, n * m * (size_t)bytes, 7);
	a = isa_array(e, x, n, m);
	want = isa_evaluate(b, "%8 = transpose(%0) {permutation = [1, 0]} : @R\n"
			    "%9 = reverse(%8) {dimensions = [1]} : @R", &a, 1, &result);
	NEED(b, want);
	head.src = ISA_AT(e, isa_in(t, x, n * m * (size_t)bytes), (int64_t)m * bytes, bytes);
	head.dst = ISA_AT(e, (int64_t)isa_out(t, e, want, n * m, ISA_BITS, "copy of %d bytes each",
					      (int)bytes) + ((int64_t)n - 1) * bytes,
			  -bytes, (int64_t)n * bytes);
	isa_put(t, &head, sizeof(head), NULL, 0, NULL, 0);
	STEP_TRY(isa_run(t));
	bringup_give_back(b);
	return BRINGUP_PASS;
}

enum bringup_result isa_cases_copy(struct bringup *b)
{
	static const enum elem of[] = { ELEM_U8, ELEM_U16, ELEM_U32, ELEM_U64, ELEM_C128 };

	for (unsigned i = 0; i < COUNT(shapes); i++)
		for (unsigned k = 0; k < COUNT(of); k++)
			STEP_TRY(copied(b, of[k], shapes[i].n, shapes[i].m));
	return BRINGUP_PASS;
}

/* ---- RNG ---- */

static enum bringup_result drawn(struct bringup *b, unsigned algorithm, unsigned state_words,
				 size_t n_words, uint64_t counter)
{
	struct isa_rng head = { .insn.op = ISA_RNG, .algorithm = (uint8_t)algorithm,
				.state_words = (uint8_t)state_words, .n_words = n_words };
	const char *name = algorithm == ISA_RNG_PHILOX ? "rng philox" : "rng threefry";
	uint64_t state[3] = { 0x0123456789abcdef, counter, 5 };
	struct isa_bench *t = isa_bench(b);
	struct tc_array a, words = isa_array(ELEM_U64, NULL, n_words / 2, 0);
	struct tc_array after = isa_array(ELEM_U64, NULL, state_words, 0);
	const void *want, *next;
	char lines[2][256];

	NEED(b, t);
	for (unsigned i = 0; i < 2; i++)
		snprintf(lines[i], sizeof(lines[i]), "%s = rng_bit_generator(%%0) {rng_algorithm = "
			 "<%s>} : @0, tensor<%zuxui64>", i ? "%9, %8" : "%8, %9",
			 algorithm == ISA_RNG_PHILOX ? "PHILOX" : "THREE_FRY", n_words / 2);
	a = isa_array(ELEM_U64, state, state_words, 0);
	want = isa_evaluate(b, lines[0], &a, 1, &words);
	NEED(b, want);
	next = isa_evaluate(b, lines[1], &a, 1, &after);
	NEED(b, next);
	head.state = ISA_AT(ELEM_U64, isa_in(t, state, state_words * 8), 0);
	head.out = ISA_AT(ELEM_U32, isa_out(t, ELEM_U32, want, n_words, ISA_BITS, "%s", name), 0);
	head.new_state = ISA_AT(ELEM_U64, isa_out(t, ELEM_U64, next, state_words, ISA_BITS,
						  "%s, its new state", name), 0);
	isa_put(t, &head, sizeof(head), NULL, 0, NULL, 0);
	STEP_TRY(isa_run(t));
	bringup_give_back(b);
	return BRINGUP_PASS;
}

enum bringup_result isa_cases_rng(struct bringup *b)
{
	static const size_t words[] = { 2, 4, 6, 128, 130, 8192, 16390 };

	for (unsigned i = 0; i < COUNT(words); i++)
		for (unsigned k = 0; k < 2; k++) {
			uint64_t counter = k ? UINT64_MAX - 1 : 0;

			STEP_TRY(drawn(b, ISA_RNG_PHILOX, 2, words[i], counter));
			STEP_TRY(drawn(b, ISA_RNG_PHILOX, 3, words[i], counter));
			STEP_TRY(drawn(b, ISA_RNG_THREEFRY, 2, words[i], counter));
		}
	return BRINGUP_PASS;
}
