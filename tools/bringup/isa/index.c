/* SPDX-License-Identifier: Apache-2.0 */
/* GATHER, SCATTER and SORT: what goes where by numbers in memory. */
#include <stdio.h>
#include <string.h>

#include "tools/bringup/isa/bench.h"
#include "tools/bringup/isa/data.h"
#include "tools/bringup/isa/isa.h"

/* Windows of `width` elements, n of them, in a table of `rows`. */
static const struct { size_t n, width, rows; } sizes[] = {
	{ 1, 1, 1 }, { 3, 16, 5 }, { 17, 5, 100 }, { 64, 64, 64 }, { 65, 63, 66 }, { 1025, 3, 200 },
	{ 2, 8193, 3 },
};

/* Random numbers from before the first to behind the last, where the type has such. */
static void *places(struct bringup *b, enum elem e, size_t n, size_t rows)
{
	uint8_t *p = bringup_room(b, n * elem_bytes(e));
	uint64_t seed = 9;

	for (size_t i = 0; p && i < n; i++) {
		int64_t x = (int64_t)(bringup_random(&seed) % (rows + 4)) - 2;

		if (elem_class(e) == ELEM_CLASS_UINT && x < 0)
			x = -x;
		memcpy(p + i * elem_bytes(e), &x, elem_bytes(e));
	}
	return p;
}

static enum bringup_result gathered(struct bringup *b, enum elem e, enum elem idx, size_t n,
				    size_t width, size_t rows)
{
	int64_t bytes = elem_bytes(e), row = (int64_t)width * bytes;
	struct isa_gather head = { .insn.op = ISA_GATHER, .rank = 2, .n_batch = 1, .n_index = 1,
		.dim = { (int64_t)n, (int64_t)width, 1, 1, 1, 1, 1, 1 },
		.index_stride = elem_bytes(idx), .index = { { (int64_t)rows - 1, row, 0 } } };
	uint8_t *table = bringup_room(b, rows * (size_t)row);
	void *at = places(b, idx, n, rows);
	struct isa_bench *t = isa_bench(b);
	struct tc_array args[2], result = isa_array(e, NULL, n, width);
	const void *want;
	char lines[512];

	NEED(b, table && at ? t : NULL);
	bringup_fill_random(table, rows * (size_t)row, 8);
	args[0] = isa_array(e, table, rows, width);
	args[1] = isa_array(idx, at, n, 1);
	snprintf(lines, sizeof(lines), "%%9 = gather(%%0, %%1) {collapsed_slice_dims = [0], "
		 "index_vector_dim = 1, indices_are_sorted = false, offset_dims = [1], "
		 "operand_batching_dims = [], slice_sizes = [1, %zu], start_index_map = [0], "
		 "start_indices_batching_dims = []} : @R", width);
	want = isa_evaluate(b, lines, args, 2, &result);
	NEED(b, want);
	head.src = ISA_AT(e, isa_in(t, table, rows * (size_t)row), 0, bytes);
	head.idx = ISA_AT(idx, isa_in(t, at, n * elem_bytes(idx)), elem_bytes(idx));
	head.dst = ISA_AT(e, isa_out(t, e, want, n * width, ISA_BITS, "gather of %s by %s",
				     elem_text(e), elem_text(idx)), row, bytes);
	isa_put(t, &head, sizeof(head), NULL, 0, NULL, 0);
	STEP_TRY(isa_run(t));
	bringup_give_back(b);
	return BRINGUP_PASS;
}

enum bringup_result isa_cases_gather(struct bringup *b)
{
	static const struct { enum elem e, idx; } types[] = {
		{ ELEM_U32, ELEM_S32 }, { ELEM_U8, ELEM_S64 }, { ELEM_U16, ELEM_U32 },
		{ ELEM_C128, ELEM_S16 }, { ELEM_U64, ELEM_U8 },
	};

	for (unsigned i = 0; i < COUNT(sizes); i++)
		for (unsigned k = 0; k < COUNT(types); k++)
			STEP_TRY(gathered(b, types[k].e, types[k].idx, sizes[i].n, sizes[i].width,
					  sizes[i].rows));
	return BRINGUP_PASS;
}

static enum bringup_result scattered(struct bringup *b, enum elem e, enum elem idx, unsigned uop,
				     const char *op, const size_t *size)
{
	size_t n = size[0], width = size[1], rows = size[2];
	int64_t bytes = elem_bytes(e), row = (int64_t)width * bytes;
	struct isa_scatter head = { .insn.op = ISA_SCATTER, .n_batch = 1, .n_index = 1,
		.index_stride = elem_bytes(idx), .index = { { (int64_t)rows - 1, row, 0 } },
		.body = { .rank = 2, .n_in = 1, .n_out = 1, .n_uop = 1,
			  .dim = { (int64_t)n, (int64_t)width, 1, 1, 1, 1, 1, 1 } } };
	struct isa_uop u = { .op = (uint8_t)uop, .elem = (uint8_t)e, .a = 0, .b = 1 };
	uint8_t *table = bringup_room(b, rows * (size_t)row);
	uint8_t *upd = bringup_room(b, n * (size_t)row);
	void *at = places(b, idx, n, rows);
	struct isa_bench *t = isa_bench(b);
	struct tc_array args[3], result = isa_array(e, NULL, rows, width);
	struct isa_operand of[2];
	const void *want;
	char lines[768];

	NEED(b, table && upd && at ? t : NULL);
	isa_fill(e, table, rows * width, ISA_WHOLE, 10);
	isa_fill(e, upd, n * width, ISA_WHOLE, 11);
	args[0] = isa_array(e, table, rows, width);
	args[1] = isa_array(idx, at, n, 1);
	args[2] = isa_array(e, upd, n, width);
	snprintf(lines, sizeof(lines), "%%9 = scatter(%%0, %%1, %%2) {index_vector_dim = 1, "
		 "indices_are_sorted = false, input_batching_dims = [], "
		 "inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], "
		 "scatter_indices_batching_dims = [], "
		 "unique_indices = false, update_window_dims = [1]} : @R (%%3: @E, %%4: @E) {\n"
		 "%%5 = %s(%%3, %%4) : @E\nreturn(%%5)\n}", op);
	want = isa_evaluate(b, lines, args, 3, &result);
	NEED(b, want);
	head.idx = ISA_AT(idx, isa_in(t, at, n * elem_bytes(idx)), elem_bytes(idx));
	of[0] = ISA_AT(e, isa_in(t, upd, n * (size_t)row), row, bytes);
	of[1] = ISA_AT(e, isa_inout(t, e, table, want, rows * width, ISA_ZEROS,
				    "scatter of %s by %s, %s", elem_text(e), elem_text(idx), op),
		       0, bytes);
	of[1].value = 2;
	isa_put(t, &head, sizeof(head), of, 2, &u, 1);
	STEP_TRY(isa_run(t));
	bringup_give_back(b);
	return BRINGUP_PASS;
}

enum bringup_result isa_cases_scatter(struct bringup *b)
{
	static const struct { enum elem e, idx; unsigned uop; const char *op; } types[] = {
		{ ELEM_S32, ELEM_S32, UOP_ADD, "add" },
		{ ELEM_F32, ELEM_S64, UOP_ADD, "add" },
		{ ELEM_F64, ELEM_U32, UOP_MAX, "maximum" },
		{ ELEM_S8, ELEM_S16, UOP_SUB, "subtract" },	/* in order */
		{ ELEM_U64, ELEM_U8, UOP_XOR, "xor" },
	};

	for (unsigned i = 0; i < COUNT(sizes); i++) {
		size_t size[] = { sizes[i].n, sizes[i].width, sizes[i].rows };

		for (unsigned k = 0; k < COUNT(types); k++)
			STEP_TRY(scattered(b, types[k].e, types[k].idx, types[k].uop, types[k].op,
					   size));
	}
	return BRINGUP_PASS;
}

#define SORTED(results) results " = sort(%0, %1) {dimension = 1, is_stable = true} : @0, @1 " \
	"(%2: @E, %3: @E, %4: tensor<i32>, %5: tensor<i32>) {\n%6 = compare(%2, %3) " \
	"{comparison_direction = <LT>, compare_type = <@C>} : tensor<i1>\nreturn(%6)\n}"

/* Keys of which many are equal, and where they were. */
static enum bringup_result sorted(struct bringup *b, enum elem e, size_t n, size_t m)
{
	struct isa_sort head = { .insn = { .op = ISA_SORT, .flags = ISA_FLAG_STABLE },
		.sort_dim = 1, .first = 4, .body = { .rank = 2, .n_in = 2, .n_out = 2, .n_uop = 1,
		.dim = { (int64_t)n, (int64_t)m, 1, 1, 1, 1, 1, 1 } } };
	struct isa_uop u = { .op = UOP_LT, .elem = (uint8_t)e, .a = 0, .b = 1 };
	int64_t bytes = elem_bytes(e), row = (int64_t)m * bytes;
	uint8_t *key = bringup_room(b, n * (size_t)row);
	int32_t *at = bringup_room(b, n * m * 4);
	struct isa_bench *t = isa_bench(b);
	struct tc_array args[2], places_ = isa_array(ELEM_S32, NULL, n, m), keys;
	struct isa_operand of[4];
	const void *want[2];

	NEED(b, key && at ? t : NULL);
	isa_fill(e, key, n * m, ISA_WHOLE, 12);
	for (size_t i = 0; i < n * m; i++)
		at[i] = (int32_t)i;
	args[0] = keys = isa_array(e, key, n, m);
	args[1] = isa_array(ELEM_S32, at, n, m);
	want[0] = isa_evaluate(b, SORTED("%9, %8"), args, 2, &keys);
	NEED(b, want[0]);
	want[1] = isa_evaluate(b, SORTED("%8, %9"), args, 2, &places_);
	NEED(b, want[1]);
	of[0] = ISA_AT(e, isa_in(t, key, n * (size_t)row), row, bytes);
	of[1] = ISA_AT(ELEM_S32, isa_in(t, at, n * m * 4), (int64_t)m * 4, 4);
	of[2] = ISA_AT(e, isa_out(t, e, want[0], n * m, ISA_BITS, "sort of %s", elem_text(e)), row,
		       bytes);
	of[3] = ISA_AT(ELEM_S32, isa_out(t, ELEM_S32, want[1], n * m, ISA_BITS,
					 "sort of what goes with %s", elem_text(e)),
		       (int64_t)m * 4, 4);
	isa_put(t, &head, sizeof(head), of, 4, &u, 1);
	STEP_TRY(isa_run(t));
	bringup_give_back(b);
	return BRINGUP_PASS;
}

enum bringup_result isa_cases_sort(struct bringup *b)
{
	static const struct { size_t n, m; } shapes[] = {
		{ 1, 1 }, { 5, 2 }, { 3, 47 }, { 3, 49 }, { 70, 64 }, { 2, 1025 }, { 1, 8193 },
	};
	static const enum elem of[] = { ELEM_F32, ELEM_S8, ELEM_S32, ELEM_U64, ELEM_F64 };

	for (unsigned i = 0; i < COUNT(shapes); i++)
		for (unsigned k = 0; k < COUNT(of); k++)
			STEP_TRY(sorted(b, of[k], shapes[i].n, shapes[i].m));
	return BRINGUP_PASS;
}
