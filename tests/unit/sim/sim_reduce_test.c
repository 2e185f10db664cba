/* SPDX-License-Identifier: Apache-2.0 */
/*
 * REDUCE against plain loops in the order of the elements: composition of affine
 * maps (associative, but not commutative), arguments of maxima where the first
 * wins, every subset of folded dims, empty ones, on every path.
 */
#include "tests/unit/sim/sim_vec.h"

#include <math.h>

static const char *const paths[] = { "portable", "avx2", "avx512" };

struct trial {
	struct vt_insn insn;
	uint32_t kept_mask;
	int64_t elems[6];	/* memories: init, operand, out of each result */
	uint32_t *mem[6];
	uint32_t *want[2];
};

static unsigned pick(uint64_t *seed, unsigned n)
{
	return vt_random(seed) % n;
}

static void place(uint64_t *seed, const struct isa_body *b, uint32_t dims,
		  struct isa_operand *op, int64_t *elems)
{
	unsigned order[ISA_MAX_RANK];
	int64_t stride = 1, first = 0, last = 0;

	for (unsigned d = 0; d < b->rank; d++)
		order[d] = b->rank - 1 - d;
	for (unsigned d = 1; d < b->rank && pick(seed, 2); d++) {
		unsigned e = pick(seed, d + 1), t = order[d];

		order[d] = order[e];
		order[e] = t;
	}
	for (unsigned i = 0; i < b->rank; i++) {
		unsigned d = order[i];
		int64_t n = b->dim[d] ? b->dim[d] : 1;

		if (!(dims >> d & 1))
			continue;
		op->stride[d] = stride * 4;
		stride = stride * n + (pick(seed, 5) == 0);
		if (pick(seed, 6) == 0)
			op->stride[d] = -op->stride[d];
		if (op->stride[d] < 0)
			first += (n - 1) * op->stride[d] / 4;
		else
			last += (n - 1) * op->stride[d] / 4;
	}
	op->offset = -first * 4;
	*elems = last - first + 1;
}

/* acc = (a0, a1), elem = (a2, a3): x -> a2 (a0 x + a1) + a3 */
static void affine_body(struct vt_insn *in)
{
	in->uop[0] = vt_uop(UOP_MUL, ELEM_U32, 0, 2, 0);
	in->uop[1] = vt_uop(UOP_MUL, ELEM_U32, 2, 1, 0);
	in->uop[2] = vt_uop(UOP_ADD, ELEM_U32, 5, 3, 0);
	in->head.body.n_uop = 3;
	in->op[4].value = 4;
	in->op[5].value = 6;
}

/* The larger value; of equal ones the first: no comparison of the indices. */
static void argmax_body(struct vt_insn *in)
{
	in->uop[0] = vt_uop(UOP_GE, ELEM_U32, 0, 2, 0);
	in->uop[1] = vt_uop(UOP_SELECT, ELEM_U32, 4, 0, 2);
	in->uop[2] = vt_uop(UOP_SELECT, ELEM_U32, 4, 1, 3);
	in->head.body.n_uop = 3;
	in->op[4].value = 5;
	in->op[5].value = 6;
}

static bool next(const struct isa_body *b, uint32_t dims, int64_t *i)
{
	for (unsigned d = b->rank; d-- > 0;) {
		if (!(dims >> d & 1))
			continue;
		if (++i[d] < b->dim[d])
			return true;
		i[d] = 0;
	}
	return false;
}

static int64_t at(const struct isa_operand *op, const int64_t *i)
{
	int64_t x = op->offset;

	for (unsigned d = 0; d < ISA_MAX_RANK; d++)
		x += i[d] * op->stride[d];
	return x / 4;
}

static void plain(struct trial *t, bool argmax)
{
	const struct isa_body *b = &t->insn.head.body;
	uint32_t folded = t->insn.head.reduce_dims;
	int64_t i[ISA_MAX_RANK] = { 0 };
	bool empty = false, nothing = false;

	for (unsigned d = 0; d < b->rank; d++) {
		empty |= (folded >> d & 1) && !b->dim[d];
		nothing |= (t->kept_mask >> d & 1) && !b->dim[d];
	}
	do {
		uint32_t a0 = t->mem[0][at(&t->insn.op[0], i)];
		uint32_t a1 = t->mem[1][at(&t->insn.op[1], i)];

		if (nothing)
			return;
		do {
			uint32_t a2, a3;

			if (empty)
				break;
			a2 = t->mem[2][at(&t->insn.op[2], i)];
			a3 = t->mem[3][at(&t->insn.op[3], i)];
			if (argmax) {
				a1 = a0 >= a2 ? a1 : a3;
				a0 = a0 >= a2 ? a0 : a2;
			} else {
				a0 *= a2;
				a1 = a2 * a1 + a3;
			}
		} while (next(b, folded, i));
		t->want[0][at(&t->insn.op[4], i)] = a0;
		t->want[1][at(&t->insn.op[5], i)] = a1;
	} while (next(b, t->kept_mask, i));
}

/* Where all lies, and what is done, of a space that is set. */
static void set_operands(uint64_t *seed, struct trial *t, bool argmax)
{
	struct isa_body *b = &t->insn.head.body;
	uint32_t all = (1u << b->rank) - 1;

	b->n_in = 4;
	b->n_out = 2;
	t->kept_mask = all & ~t->insn.head.reduce_dims;
	for (unsigned k = 0; k < 6; k++) {
		t->insn.op[k].elem = ELEM_U32;
		t->insn.op[k].binding = (uint16_t)k;
		place(seed, b, k / 2 == 1 ? all : t->kept_mask, &t->insn.op[k],
		      &t->elems[k]);
	}
	(argmax ? argmax_body : affine_body)(&t->insn);
}

static void random_trial(uint64_t *seed, struct trial *t, bool argmax)
{
	struct isa_body *b = &t->insn.head.body;
	int64_t points = 1, most = pick(seed, 4) ? 2000 : 60000;

	memset(t, 0, sizeof(*t));
	t->insn.head.insn.op = ISA_REDUCE;
	b->rank = (uint8_t)pick(seed, 5);
	for (unsigned d = 0; d < ISA_MAX_RANK; d++)
		b->dim[d] = 1;
	for (unsigned n = 0; n < b->rank; n++) {
		unsigned d = pick(seed, b->rank);

		if (b->dim[d] != 1)
			continue;
		b->dim[d] = 1 + pick(seed, (unsigned)(most / points) + 1) %
			(pick(seed, 3) ? 50 : 100000);
		points *= b->dim[d];
	}
	if (b->rank && pick(seed, 30) == 0)
		b->dim[pick(seed, b->rank)] = 0;
	t->insn.head.reduce_dims = vt_random(seed) & ((1u << b->rank) - 1);
	set_operands(seed, t, argmax);
}

/* `rows` rows of `cols`; of the second operand, as an argument's place is, one row for all if
 * is_shared. */
static void short_rows_trial(uint64_t *seed, struct trial *t, bool argmax, int64_t rows,
			     int64_t cols, bool is_shared)
{
	struct isa_body *b = &t->insn.head.body;

	memset(t, 0, sizeof(*t));
	t->insn.head.insn.op = ISA_REDUCE;
	b->rank = 2;
	for (unsigned d = 0; d < ISA_MAX_RANK; d++)
		b->dim[d] = d == 0 ? rows : d == 1 ? cols : 1;
	t->insn.head.reduce_dims = 2;
	set_operands(seed, t, argmax);
	if (is_shared)
		t->insn.op[3].stride[0] = 0;
}

static void run_trial(struct vt *vt, unsigned n_paths, struct trial *t, uint64_t *seed,
		      bool argmax)
{
	struct vt_mem mem[6];
	uint64_t kept = 1;
	struct sim_run run;

	for (unsigned k = 0; k < 6; k++) {
		mem[k].bytes = (uint64_t)t->elems[k] * 4;
		mem[k].p = t->mem[k] = malloc(mem[k].bytes);
		for (int64_t i = 0; i < t->elems[k]; i++)
			t->mem[k][i] = argmax && k % 2 == 0 ? pick(seed, 50) :
				vt_random(seed);
	}
	for (unsigned j = 0; j < 2; j++) {
		t->want[j] = malloc(mem[4 + j].bytes);
		memcpy(t->want[j], t->mem[4 + j], mem[4 + j].bytes);
	}
	plain(t, argmax);
	for (unsigned d = 0; d < t->insn.head.body.rank; d++)
		kept *= t->kept_mask >> d & 1 ? (uint64_t)t->insn.head.body.dim[d] : 1;
	for (unsigned n = 0; n < n_paths; n++) {
		assert_int_equal(vt_run(&vt[n], &t->insn, mem, 6, &run), 0);
		for (unsigned j = 0; j < 2; j++)
			assert_memory_equal(t->mem[4 + j], t->want[j], mem[4 + j].bytes);
		assert_int_equal(run.write_bytes, 8 * kept);
	}
	for (unsigned k = 0; k < 6; k++)
		free(t->mem[k]);
	free(t->want[0]);
	free(t->want[1]);
}

static void run_trials(bool argmax)
{
	static struct trial t;
	struct vt vt[3];
	unsigned n = 0, trials = getenv("VEC_TRIALS") ? (unsigned)atoi(getenv("VEC_TRIALS")) :
		400;
	uint64_t seed = getenv("VEC_SEED") ? strtoull(getenv("VEC_SEED"), NULL, 0) : 3;

	for (unsigned k = 0; k < 3; k++)
		n += vt_open(&vt[n], paths[k], 1 + k);
	for (unsigned i = 0; i < trials; i++) {
		random_trial(&seed, &t, argmax);
		run_trial(vt, n, &t, &seed, argmax);
	}
	while (n)
		vt_close(&vt[--n]);
}

static void order_of_elements_is_kept(void **state)
{
	(void)state;
	run_trials(false);
}

static void first_of_equals_wins(void **state)
{
	(void)state;
	run_trials(true);
}

/* Rows of one element to more than are turned, fewer and more of them than are worth that. */
static void many_short_rows(void **state)
{
	static const int64_t rows[] = { 100, 191, 192, 193, 3001 };
	static struct trial t;
	struct vt vt[3];
	uint64_t seed = 19;
	unsigned n = 0;

	(void)state;
	for (unsigned k = 0; k < 3; k++)
		n += vt_open(&vt[n], paths[k], 1 + k);
	for (int64_t cols = 1; cols < 36; cols++)
		for (unsigned i = 0; i < 20; i++) {
			short_rows_trial(&seed, &t, i & 1, rows[i % 5], cols, i & 2);
			run_trial(vt, n, &t, &seed, i & 1);
		}
	while (n)
		vt_close(&vt[--n]);
}

/* One operand of f32 in a row of n, folded by `op`. */
static void sum_row(struct vt *vt, int64_t n, float *x, float *init, float *out)
{
	struct vt_insn in = { 0 };
	struct vt_mem mem[3] = { { init, 4 }, { x, (uint64_t)n * 4 }, { out, 4 } };
	struct sim_run run;

	in.head.insn.op = ISA_REDUCE;
	in.head.reduce_dims = 1;
	in.head.body = (struct isa_body){ .rank = 1, .n_in = 2, .n_out = 1, .n_uop = 1,
		.dim = { n, 1, 1, 1, 1, 1, 1, 1 } };
	for (unsigned k = 0; k < 3; k++)
		in.op[k] = (struct isa_operand){ .elem = ELEM_F32, .binding = (uint16_t)k };
	in.op[1].stride[0] = 4;
	in.op[2].value = 2;
	in.uop[0] = vt_uop(UOP_ADD, ELEM_F32, 0, 1, 0);
	assert_int_equal(vt_run(vt, &in, mem, 3, &run), 0);
}

static void init_enters_once(void **state)
{
	float x[1000], init = 100, out;
	struct vt vt;

	(void)state;
	vt_open(&vt, "portable", 2);
	for (int i = 0; i < 1000; i++)
		x[i] = 1;
	for (int64_t n = 0; n <= 1000; n += n < 70 ? 1 : 31) {
		sum_row(&vt, n, x, &init, &out);
		assert_true(out == 100 + (float)n);
	}
	vt_close(&vt);
}

/* Everything that check_reduce() refuses, one field at a time. */
static void bad_reductions_are_refused(void **state)
{
	struct vt_insn good = { 0 }, in;
	float x[4] = { 1, 2, 3, 4 }, init = 0, out;
	struct vt_mem mem[3] = { { &init, 4 }, { x, 16 }, { &out, 4 } };
	struct sim_run run;
	struct vt vt;

	(void)state;
	vt_open(&vt, "portable", 1);
	good.head.insn.op = ISA_REDUCE;
	good.head.reduce_dims = 1;
	good.head.body = (struct isa_body){ .rank = 1, .n_in = 2, .n_out = 1, .n_uop = 1,
		.dim = { 4, 1, 1, 1, 1, 1, 1, 1 } };
	for (unsigned k = 0; k < 3; k++)
		good.op[k] = (struct isa_operand){ .elem = ELEM_F32, .binding = (uint16_t)k };
	good.op[1].stride[0] = 4;
	good.op[2].value = 2;
	good.uop[0] = vt_uop(UOP_ADD, ELEM_F32, 0, 1, 0);
	assert_int_equal(vt_run(&vt, &good, mem, 3, &run), 0);
	assert_true(out == 10);
#define REFUSED(change) do { \
		in = good; \
		change; \
		assert_int_equal(vt_run(&vt, &in, mem, 3, &run), HW_ST_BAD_PROGRAM); \
	} while (0)
	REFUSED(in.head.reduce_dims = 2);
	REFUSED(in.head.body.n_in = 1);
	REFUSED(in.head.body.n_out = 2);
	REFUSED(in.head.body.row_rank = 1);
	REFUSED(in.op[2].combine = ISA_COMBINE_ADD);
	REFUSED(in.op[2].elem = ELEM_S32);
	REFUSED(in.op[0].stride[0] = 4);
	REFUSED(in.op[2].value = 3);
	REFUSED(in.uop[0] = vt_uop(UOP_IOTA, ELEM_F32, 0, 0, 0));
	REFUSED(in.uop[0].elem = ELEM_S32);
	REFUSED(in.head.body.dim[0] = 5);
	REFUSED(in.head.body.dim[0] = -1);
	REFUSED(in.head.zero = 1);
#undef REFUSED
	vt_close(&vt);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(order_of_elements_is_kept),
		cmocka_unit_test(first_of_equals_wins),
		cmocka_unit_test(many_short_rows),
		cmocka_unit_test(init_enters_once),
		cmocka_unit_test(bad_reductions_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
