/* SPDX-License-Identifier: Apache-2.0 */
/* Outputs that lie on inputs as ISA.md#overlap allows: all inputs of a point are read
 * before any of its outputs is written, whatever lies where. */
#include "tests/unit/sim/sim_insn.h"

#define N 2000		/* points: several tiles */

static struct isa_operand at(unsigned elem, unsigned binding, int64_t stride)
{
	return (struct isa_operand){ .elem = (uint8_t)elem, .binding = (uint16_t)binding,
				     .stride = { stride } };
}

static struct isa_body body(unsigned rank, int64_t m, int64_t n, unsigned n_in, unsigned n_out)
{
	struct isa_body b = { .rank = (uint8_t)rank, .n_in = (uint8_t)n_in,
			      .n_out = (uint8_t)n_out };

	for (unsigned d = 0; d < ISA_MAX_RANK; d++)
		b.dim[d] = 1;
	b.dim[0] = m;
	if (rank > 1)
		b.dim[1] = n;
	return b;
}

static void run(struct vt *t, struct in_code *c, const struct vt_mem *mem, unsigned n)
{
	struct sim_run r;

	assert_int_equal(in_run(t, c, mem, n, &r), 0);
}

/* out 0 = x + y, onto x; out 1 = x as it was, onto y. */
static void vec_swaps(struct vt *t, const char *path)
{
	struct isa_tensor v = { .insn.op = ISA_VEC, .body = body(1, N, 1, 2, 2) };
	struct isa_operand x = at(ELEM_S32, 0, 4), y = at(ELEM_S32, 1, 4), out = x;
	struct isa_uop u = vt_uop(UOP_ADD, ELEM_S32, 0, 1, 0);
	int32_t a[N], b[N];
	struct in_code c = { .n = 0 };

	(void)path;
	for (int i = 0; i < N; i++) {
		a[i] = 3 * i;
		b[i] = 100000 - i;
	}
	v.body.n_uop = 1;
	in_put(&c, &v, sizeof(v));
	in_put(&c, &x, sizeof(x));
	in_put(&c, &y, sizeof(y));
	out.value = 2;
	in_put(&c, &out, sizeof(out));
	out = y;
	out.value = 0;
	in_put(&c, &out, sizeof(out));
	in_put(&c, &u, sizeof(u));
	run(t, &c, (struct vt_mem[]){ { a, sizeof(a) }, { b, sizeof(b) } }, 2);
	for (int i = 0; i < N; i++) {
		assert_int_equal(a[i], 2 * i + 100000);
		assert_int_equal(b[i], 3 * i);
	}
}

/* Rows of x and y, each of which gets what the other's row says of it: y becomes x minus the
 * largest of y's row, and x the sum of x's row plus y. */
static void swap_rows(struct vt *t, int64_t rows, int64_t n)
{
	struct isa_tensor v = { .insn.op = ISA_VEC, .body = body(2, rows, n, 2, 2) };
	struct isa_operand x = at(ELEM_S32, 0, 4 * n), y = at(ELEM_S32, 1, 4 * n), out;
	struct isa_uop max = vt_uop(UOP_RMAX, ELEM_S32, 1, 0, 0);
	struct isa_uop sub = vt_uop(UOP_SUB, ELEM_S32, 0, 2, 0);
	struct isa_uop sum = vt_uop(UOP_RADD, ELEM_S32, 0, 0, 0);
	struct isa_uop add = vt_uop(UOP_ADD, ELEM_S32, 4, 1, 0);
	size_t bytes = (size_t)(rows * n) * sizeof(int32_t);
	int32_t *a = malloc(bytes), *b = malloc(bytes);
	struct in_code c = { .n = 0 };

	assert_true(a && b);
	for (int64_t i = 0; i < rows * n; i++) {
		a[i] = (int32_t)(i % 7);
		b[i] = (int32_t)(i / n * 10 + i % n);
	}
	v.body.n_uop = 4;
	v.body.row_rank = 1;
	x.stride[1] = y.stride[1] = 4;
	in_put(&c, &v, sizeof(v));
	in_put(&c, &x, sizeof(x));
	in_put(&c, &y, sizeof(y));
	out = y;
	out.value = 3;
	in_put(&c, &out, sizeof(out));
	out = x;
	out.value = 5;
	in_put(&c, &out, sizeof(out));
	in_put(&c, &max, sizeof(max));
	in_put(&c, &sub, sizeof(sub));
	in_put(&c, &sum, sizeof(sum));
	in_put(&c, &add, sizeof(add));
	run(t, &c, (struct vt_mem[]){ { a, bytes }, { b, bytes } }, 2);
	for (int64_t r = 0; r < rows; r++) {
		int64_t all = 0;

		for (int64_t i = 0; i < n; i++)
			all += (r * n + i) % 7;
		for (int64_t i = 0; i < n; i++) {
			assert_int_equal(b[r * n + i], (r * n + i) % 7 - (r * 10 + n - 1));
			assert_int_equal(a[r * n + i], all + r * 10 + i);
		}
	}
	free(a);
	free(b);
}

static void rows_swap(struct vt *t, const char *path)
{
	(void)path;
	swap_rows(t, N, 1);
	swap_rows(t, 130, 33);
	swap_rows(t, 3, 2048);
	swap_rows(t, 3, 2049);
	swap_rows(t, 2, 16384);
}

/* What vec_swaps does after a product of M x K ones by K x M ones: the sum onto x, x onto y. */
#define M 70
#define K 3

static void put_epilogue(struct in_code *c)
{
	struct isa_operand x = { .elem = ELEM_S32, .binding = 1, .stride = { M * 4, 4 } };
	struct isa_operand y = x;

	y.binding = 2;
	in_put(c, &x, sizeof(x));
	x.value = 0;
	in_put(c, &x, sizeof(x));
	y.value = 1;
	in_put(c, &y, sizeof(y));
}

static void expect_epilogue(struct vt *t, struct in_code *c)
{
	int32_t ones[M * K], x[M * M], y[M * M] = { 0 };

	for (int i = 0; i < M * K; i++)
		ones[i] = 1;
	for (int i = 0; i < M * M; i++)
		x[i] = 1000 + i;
	run(t, c, (struct vt_mem[]){ { ones, sizeof(ones) }, { x, sizeof(x) },
				     { y, sizeof(y) } }, 3);
	for (int i = 0; i < M * M; i++) {
		assert_int_equal(x[i], K);
		assert_int_equal(y[i], 1000 + i);
	}
}

static void products_swap(struct vt *t, const char *path)
{
	struct isa_mm mm = { .insn.op = ISA_MM, .acc = ELEM_S32, .k = K, .a_k_stride = 4,
			     .b_k_stride = M * 4, .body = body(2, M, M, 1, 2) };
	struct in_code c = { .n = 0 };

	(void)path;
	mm.a = (struct isa_operand){ .elem = ELEM_S32, .stride = { K * 4, 0 } };
	mm.b = (struct isa_operand){ .elem = ELEM_S32, .stride = { 0, 4 } };
	in_put(&c, &mm, sizeof(mm));
	put_epilogue(&c);
	expect_epilogue(t, &c);
}

static void convolutions_swap(struct vt *t, const char *path)
{
	struct isa_conv cv = { .insn.op = ISA_CONV, .acc = ELEM_S32, .in_features = K,
			       .feature_groups = 1, .batch_groups = 1,
			       .body = body(2, M, M, 1, 2) };
	struct in_code c = { .n = 0 };

	(void)path;
	cv.lhs = (struct isa_operand){ .elem = ELEM_S32, .stride = { K * 4, 4 } };
	cv.rhs = (struct isa_operand){ .elem = ELEM_S32, .stride = { K * 4, 4 } };
	in_put(&c, &cv, sizeof(cv));
	put_epilogue(&c);
	expect_epilogue(t, &c);
}

/* Two folds of `n` rows whose results lie on each other's initial values. */
static void reduce_crosswise(struct vt *t, int64_t n)
{
	struct isa_tensor r = { .insn.op = ISA_REDUCE, .reduce_dims = 2,
				.body = body(2, N, n, 4, 2) };
	struct isa_uop add = vt_uop(UOP_ADD, ELEM_S32, 0, 2, 0);
	struct isa_uop max = vt_uop(UOP_MAX, ELEM_S32, 1, 3, 0);
	static int32_t a[N], b[N], x[N * 5];
	struct in_code c = { .n = 0 };
	struct isa_operand op;

	for (int i = 0; i < N; i++) {
		a[i] = i;
		b[i] = 7 * N - i;
	}
	for (int i = 0; i < N * 5; i++)
		x[i] = i % 5;
	r.body.n_uop = 2;
	in_put(&c, &r, sizeof(r));
	for (unsigned j = 0; j < 2; j++) {
		op = at(ELEM_S32, j, 4);
		in_put(&c, &op, sizeof(op));
	}
	op = at(ELEM_S32, 2, 20);
	op.stride[1] = 4;
	for (unsigned j = 0; j < 2; j++)
		in_put(&c, &op, sizeof(op));
	for (unsigned j = 0; j < 2; j++) {
		op = at(ELEM_S32, 1 - j, 4);
		op.value = (uint8_t)(4 + j);
		in_put(&c, &op, sizeof(op));
	}
	in_put(&c, &add, sizeof(add));
	in_put(&c, &max, sizeof(max));
	run(t, &c, (struct vt_mem[]){ { a, sizeof(a) }, { b, sizeof(b) },
				      { x, sizeof(x) } }, 3);
	for (int i = 0; i < N; i++) {
		assert_int_equal(b[i], i + (n ? 10 : 0));
		assert_int_equal(a[i], 7 * N - i);
	}
}

static void reduce_swaps(struct vt *t, const char *path)
{
	(void)path;
	reduce_crosswise(t, 5);
	reduce_crosswise(t, 0);
}

/* Sorts by the first array; each result lies on the other's memory. */
static void sort_swaps(struct vt *t, const char *path)
{
	struct isa_sort s = { .insn.op = ISA_SORT, .first = 4, .body = body(1, N, 1, 2, 2) };
	struct isa_uop less = vt_uop(UOP_LT, ELEM_S32, 0, 1, 0);
	struct in_code c = { .n = 0 };
	int32_t keys[N], with[N];

	(void)path;
	for (int i = 0; i < N; i++) {
		keys[i] = i * 7919 % N;		/* 7919 is prime */
		with[i] = 10 * keys[i];
	}
	s.body.n_uop = 1;
	in_put(&c, &s, sizeof(s));
	for (unsigned j = 0; j < 4; j++) {
		struct isa_operand op = at(ELEM_S32, j < 2 ? j : 3 - j, 4);

		in_put(&c, &op, sizeof(op));
	}
	in_put(&c, &less, sizeof(less));
	run(t, &c, (struct vt_mem[]){ { keys, sizeof(keys) }, { with, sizeof(with) } }, 2);
	for (int i = 0; i < N; i++) {
		assert_int_equal(with[i], i);
		assert_int_equal(keys[i], 10 * i);
	}
}

/* Not as allowed, which is undefined but harmless: windows of each size that has a loop of its own,
 * half over the next one of the table. */
static void gather_over_itself(struct vt *vt, const char *path)
{
	(void)path;
	for (unsigned wide = 1; wide <= 256; wide *= 2) {
		struct isa_gather g = { .insn = { ISA_GATHER, 0, sizeof(g) }, .rank = 2,
			.n_batch = 1, .n_index = 1, .dim = { 4, wide, 1, 1, 1, 1, 1, 1 },
			.index = { { 3, wide, 0 } }, .src = at(ELEM_U8, 0, 0),
			.idx = at(ELEM_S32, 1, 4), .dst = at(ELEM_U8, 0, wide) };
		int32_t idx[4] = { 0, 1, 0, 3 };
		uint64_t bytes = 4 * wide + wide / 2;
		uint8_t *memory = calloc(bytes, 1);
		struct in_code c = { .n = 0 };

		g.src.stride[1] = g.dst.stride[1] = 1;
		g.dst.offset = wide / 2;
		in_put(&c, &g, sizeof(g));
		run(vt, &c, (struct vt_mem[]){ { memory, bytes }, { idx, sizeof(idx) } }, 2);
		free(memory);
	}
}

#define EACH_PATH(name) \
	static void name##_on_each_path(void **state) { (void)state; in_each_path(name); }
EACH_PATH(vec_swaps)
EACH_PATH(rows_swap)
EACH_PATH(products_swap)
EACH_PATH(convolutions_swap)
EACH_PATH(reduce_swaps)
EACH_PATH(sort_swaps)
EACH_PATH(gather_over_itself)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(vec_swaps_on_each_path),
		cmocka_unit_test(rows_swap_on_each_path),
		cmocka_unit_test(products_swap_on_each_path),
		cmocka_unit_test(convolutions_swap_on_each_path),
		cmocka_unit_test(reduce_swaps_on_each_path),
		cmocka_unit_test(sort_swaps_on_each_path),
		cmocka_unit_test(gather_over_itself_on_each_path),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
