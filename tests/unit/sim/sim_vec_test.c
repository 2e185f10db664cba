/* SPDX-License-Identifier: Apache-2.0 */
/*
 * VEC against plain loops: random spaces, strides, bodies, rows and folds on s32, which
 * must agree exactly on every path; then named cases in f32 and bad programs.
 */
#include "tests/unit/sim/sim_vec.h"

#include <math.h>

#define MAX_POINTS 40000

static const char *const paths[] = { "portable", "avx2", "avx512" };

/* ---- random instructions ---- */

struct layout { int64_t offset, span; };	/* in elements */

struct trial {
	struct vt_insn insn;
	unsigned n_mem;
	int64_t mem_elems[24];
	int32_t *before[24], *after[24], *want[24];
	bool row[ISA_MAX_VALUES];
	bool constant[ISA_MAX_VALUES];
};

static unsigned pick(uint64_t *seed, unsigned n)
{
	return vt_random(seed) % n;
}

/* Random non-overlapping strides over the dims not in `still`. */
static void place(uint64_t *seed, const struct isa_body *b, uint32_t still,
		  struct isa_operand *op, int64_t *elems)
{
	unsigned order[ISA_MAX_RANK];
	int64_t stride = 1 + (pick(seed, 4) == 0), first = 0, last = 0;

	for (unsigned d = 0; d < b->rank; d++)
		order[d] = b->rank - 1 - d;
	for (unsigned d = 1; d < b->rank && pick(seed, 2); d++) {
		unsigned e = pick(seed, d + 1), t = order[d];

		order[d] = order[e];
		order[e] = t;
	}
	for (unsigned i = 0; i < b->rank; i++) {
		unsigned d = order[i];

		if (still >> d & 1)
			continue;
		op->stride[d] = stride * 4;
		if (b->dim[d] > 0)
			stride *= b->dim[d];
		stride += pick(seed, 6) == 0 ? pick(seed, 5) : 0;
		if (pick(seed, 6) == 0)
			op->stride[d] = -op->stride[d];
		if (op->stride[d] < 0)
			first += (b->dim[d] - 1) * op->stride[d] / 4;
		else
			last += (b->dim[d] - 1) * op->stride[d] / 4;
	}
	op->offset = -first * 4;
	*elems = last - first + 1;
}

static void random_dims(uint64_t *seed, struct isa_body *b)
{
	static const unsigned sizes[] = { 100000, 40, 40, 5 };
	int64_t points = 1, most = pick(seed, 3) ? 600 : MAX_POINTS;

	b->rank = (uint8_t)pick(seed, 6);
	for (unsigned d = 0; d < ISA_MAX_RANK; d++)
		b->dim[d] = 1;
	for (unsigned i = 0; i < b->rank; i++) {
		unsigned d = pick(seed, b->rank);
		int64_t left = most / points;

		if (b->dim[d] != 1)
			continue;
		b->dim[d] = 1 + pick(seed, left > 1 ? (unsigned)left : 1) % sizes[pick(seed, 4)];
		points *= b->dim[d];
	}
	if (b->rank && pick(seed, 3) == 0) {
		b->row_rank = (uint8_t)(1 + pick(seed, b->rank));
		points = 1;
		for (unsigned d = b->rank - b->row_rank; d < b->rank; d++)
			points *= b->dim[d];
		if (points > ISA_MAX_ROW)
			b->row_rank = 0;
	}
}

static const uint8_t binary_ops[] = {
	UOP_ADD, UOP_SUB, UOP_MUL, UOP_MIN, UOP_MAX, UOP_XOR, UOP_AND, UOP_OR,
};
static const uint8_t fold_ops[] = {
	UOP_RADD, UOP_RMUL, UOP_RMIN, UOP_RMAX, UOP_RAND, UOP_ROR, UOP_RXOR,
};

static void random_uop(uint64_t *seed, struct trial *t, unsigned value)
{
	struct isa_body *b = &t->insn.head.body;
	struct isa_uop *u = &t->insn.uop[b->n_uop];
	unsigned kind = pick(seed, 10), a = value ? pick(seed, value) : 0;

	if (!value || kind == 0) {
		*u = vt_uop(UOP_IMM, ELEM_S32, 0, 0, 0);
		u->imm = vt_random(seed) & 0xffff;
		t->row[value] = t->constant[value] = true;
	} else if (kind == 1 && b->rank) {
		*u = vt_uop(UOP_IOTA, ELEM_S32, 0, 0, 0);
		u->aux = (uint8_t)pick(seed, b->rank);
		t->row[value] = u->aux < b->rank - b->row_rank;
	} else if (kind <= 3 && b->row_rank && !t->row[a]) {
		*u = vt_uop(fold_ops[pick(seed, 7)], ELEM_S32, a, 0, 0);
		t->row[value] = true;
	} else {
		unsigned c = pick(seed, value);

		*u = vt_uop(binary_ops[pick(seed, 8)], ELEM_S32, a, c, 0);
		t->row[value] = t->row[a] && t->row[c];
		t->constant[value] = t->constant[a] && t->constant[c];
	}
	b->n_uop++;
}

static void random_output(uint64_t *seed, struct trial *t, unsigned j)
{
	struct isa_body *b = &t->insn.head.body;
	struct isa_operand *op = &t->insn.op[b->n_in + j];
	unsigned n_values = b->n_in + b->n_uop;
	uint32_t still = 0;

	*op = (struct isa_operand){ .elem = ELEM_S32 };
	/* mostly the last values, which depend on the rest */
	op->value = (uint8_t)(pick(seed, 3) ? n_values - 1 - pick(seed, n_values) % 2 % n_values :
			      pick(seed, n_values));
	if (pick(seed, 3) == 0) {
		op->combine = (uint8_t)(1 + pick(seed, ISA_COMBINE_COUNT - 1));
		op->flags = pick(seed, 2) ? ISA_OPERAND_ACC : 0;
		still = pick(seed, 256);
	}
	if (b->row_rank && t->row[op->value])
		for (unsigned d = b->rank - b->row_rank; d < b->rank; d++)
			still |= 1u << d;
	place(seed, b, still, op, &t->mem_elems[b->n_in + j]);
}

static void random_trial(uint64_t *seed, struct trial *t)
{
	struct isa_body *b = &t->insn.head.body;
	unsigned n_uop;

	memset(t, 0, sizeof(*t));
	t->insn.head.insn.op = ISA_VEC;
	random_dims(seed, b);
	b->n_in = (uint8_t)pick(seed, 4);
	b->n_out = (uint8_t)(1 + pick(seed, 3));
	for (unsigned j = 0; j < b->n_in; j++) {
		t->insn.op[j].elem = ELEM_S32;
		place(seed, b, pick(seed, 2) ? pick(seed, 256) : 0, &t->insn.op[j],
		      &t->mem_elems[j]);
	}
	n_uop = (b->n_in ? 0 : 1) + pick(seed, 8);
	for (unsigned i = 0; i < n_uop; i++)
		random_uop(seed, t, b->n_in + i);
	for (unsigned j = 0; j < b->n_out; j++)
		random_output(seed, t, j);
	t->n_mem = b->n_in + b->n_out;
	for (unsigned k = 0; k < t->n_mem; k++)
		t->insn.op[k].binding = (uint16_t)k;
	/* an output over an input's memory, addressed alike */
	for (unsigned j = 0; j < b->n_in && j < b->n_out && pick(seed, 4) == 0; j++) {
		struct isa_operand *in = &t->insn.op[j], *out = &t->insn.op[b->n_in + j];
		bool moves = !(b->row_rank && t->row[out->value]);

		for (unsigned d = 0; d < b->rank; d++)
			moves &= in->stride[d] != 0;
		if (!moves || out->combine)
			continue;
		memcpy(out->stride, in->stride, sizeof(out->stride));
		out->offset = in->offset;
		out->binding = in->binding;
	}
}

/* ---- plain loops ---- */

static int32_t fold2(unsigned op, int32_t x, int32_t y)
{
	switch (op) {
	case UOP_ADD: return (int32_t)((uint32_t)x + (uint32_t)y);
	case UOP_SUB: return (int32_t)((uint32_t)x - (uint32_t)y);
	case UOP_MUL: return (int32_t)((uint32_t)x * (uint32_t)y);
	case UOP_MIN: return x < y ? x : y;
	case UOP_MAX: return x > y ? x : y;
	case UOP_AND: return x & y;
	case UOP_OR: return x | y;
	default: return x ^ y;
	}
}

static int32_t identity(unsigned op)
{
	return op == UOP_MUL ? 1 : op == UOP_MIN ? INT32_MAX : op == UOP_MAX ? INT32_MIN :
		op == UOP_AND ? -1 : 0;
}

static unsigned op_of_combine(unsigned combine)
{
	static const uint8_t op[] = { 0, UOP_ADD, UOP_MUL, UOP_MIN, UOP_MAX, UOP_AND,
				      UOP_OR, UOP_XOR };

	return op[combine];
}

static bool next(const struct isa_body *b, unsigned from, unsigned to, int64_t *i)
{
	for (unsigned d = to; d-- > from;) {
		if (++i[d] < b->dim[d])
			return true;
		i[d] = 0;
	}
	return false;
}

static int32_t *at(int32_t *base, const struct isa_operand *op, const int64_t *i)
{
	int64_t x = op->offset;

	for (unsigned d = 0; d < ISA_MAX_RANK; d++)
		x += i[d] * op->stride[d];
	return base + x / 4;
}

/* All values of a row: val[value * row + point]. */
static void eval_row(struct trial *t, int64_t *i, int64_t row, int32_t *val)
{
	const struct isa_body *b = &t->insn.head.body;
	unsigned first = b->rank - b->row_rank;
	int64_t p = 0;

	do {
		for (unsigned j = 0; j < b->n_in; j++)
			val[j * row + p] = *at(t->before[t->insn.op[j].binding],
					       &t->insn.op[j], i);
		for (unsigned k = 0; k < b->n_uop; k++)
			if (t->insn.uop[k].op == UOP_IOTA)
				val[(b->n_in + k) * row + p] = (int32_t)i[t->insn.uop[k].aux];
		p++;
	} while (next(b, first, b->rank, i));
	for (unsigned k = 0; k < b->n_uop; k++) {
		const struct isa_uop *u = &t->insn.uop[k];
		int32_t *to = val + (b->n_in + k) * row, *a = val + u->a * row;
		int32_t sum;

		if (u->op == UOP_IOTA)
			continue;
		if (u->op >= UOP_RADD) {
			static const uint8_t op[] = { UOP_ADD, UOP_MUL, UOP_MIN, UOP_MAX,
						      UOP_AND, UOP_OR, UOP_XOR };

			sum = a[0];
			for (p = 1; p < row; p++)
				sum = fold2(op[u->op - UOP_RADD], sum, a[p]);
			for (p = 0; p < row; p++)
				to[p] = sum;
			continue;
		}
		for (p = 0; p < row; p++)
			to[p] = u->op == UOP_IMM ? (int32_t)u->imm :
				fold2(u->op, a[p], val[u->b * row + p]);
	}
}

static void store_row(struct trial *t, int64_t *i, int64_t row, const int32_t *val)
{
	const struct isa_body *b = &t->insn.head.body;
	unsigned first = b->rank - b->row_rank;

	for (unsigned j = 0; j < b->n_out; j++) {
		const struct isa_operand *op = &t->insn.op[b->n_in + j];
		bool row_value = b->row_rank && t->row[op->value];
		int64_t p = 0;

		for (unsigned d = first; d < b->rank; d++)
			row_value &= !op->stride[d];
		do {
			int32_t *to = at(t->want[op->binding], op, i);
			int32_t v = val[op->value * row + p++];

			*to = op->combine ? fold2(op_of_combine(op->combine), *to, v) : v;
		} while (next(b, first, b->rank, i) && !row_value);
		for (unsigned d = first; d < b->rank; d++)
			i[d] = 0;
	}
}

static void plain(struct trial *t)
{
	const struct isa_body *b = &t->insn.head.body;
	unsigned first = b->rank - b->row_rank;
	int64_t i[ISA_MAX_RANK] = { 0 }, row = 1;
	int32_t *val;

	for (unsigned d = first; d < b->rank; d++)
		row *= b->dim[d];
	val = malloc((size_t)(b->n_in + b->n_uop) * (size_t)row * sizeof(*val));
	for (unsigned j = 0; j < b->n_out; j++) {
		const struct isa_operand *op = &t->insn.op[b->n_in + j];

		if (!op->combine || op->flags)
			continue;
		do {
			*at(t->want[op->binding], op, i) = identity(op_of_combine(op->combine));
		} while (next(b, 0, b->rank, i));
	}
	do {
		eval_row(t, i, row, val);
		store_row(t, i, row, val);
	} while (next(b, 0, first, i));
	free(val);
}

static void explain(const struct trial *t, unsigned k, int64_t at_elem)
{
	const struct isa_body *b = &t->insn.head.body;

	printf("rank %u row %u dims", b->rank, b->row_rank);
	for (unsigned d = 0; d < b->rank; d++)
		printf(" %lld", (long long)b->dim[d]);
	printf("\n");
	for (unsigned j = 0; j < b->n_in + b->n_out; j++) {
		const struct isa_operand *op = &t->insn.op[j];

		printf("%s %u binding %u offset %lld value %u combine %u flags %u strides",
		       j < b->n_in ? "in" : "out", j, op->binding, (long long)op->offset,
		       op->value, op->combine, op->flags);
		for (unsigned d = 0; d < b->rank; d++)
			printf(" %lld", (long long)op->stride[d]);
		printf("\n");
	}
	for (unsigned i = 0; i < b->n_uop; i++)
		printf("  %u = %s %u %u aux %u\n", b->n_in + i,
		       isa_uop_info(t->insn.uop[i].op)->mnemonic, t->insn.uop[i].a,
		       t->insn.uop[i].b, t->insn.uop[i].aux);
	printf("memory %u element %lld: %d, want %d\n", k, (long long)at_elem,
	       t->after[k][at_elem], t->want[k][at_elem]);
}

static void run_trial(struct vt *vt, struct trial *t, uint64_t *seed, unsigned n_paths)
{
	struct vt_mem mem[24];
	struct sim_run run;

	for (unsigned k = 0; k < t->n_mem; k++) {
		size_t bytes = (size_t)t->mem_elems[k] * 4;

		t->before[k] = malloc(bytes);
		t->after[k] = malloc(bytes);
		t->want[k] = malloc(bytes);
		for (int64_t i = 0; i < t->mem_elems[k]; i++)
			t->before[k][i] = (int32_t)vt_random(seed);
		memcpy(t->want[k], t->before[k], bytes);
	}
	plain(t);
	for (unsigned n = 0; n < n_paths; n++) {
		int status;

		for (unsigned k = 0; k < t->n_mem; k++) {
			mem[k] = (struct vt_mem){ t->after[k], (uint64_t)t->mem_elems[k] * 4 };
			memcpy(t->after[k], t->before[k], mem[k].bytes);
		}
		status = vt_run(&vt[n], &t->insn, mem, t->n_mem, &run);
		if (status)
			explain(t, 0, 0);
		assert_int_equal(status, 0);
		for (unsigned k = 0; k < t->n_mem; k++) {
			for (int64_t i = 0; i < t->mem_elems[k]; i++) {
				if (t->after[k][i] == t->want[k][i])
					continue;
				explain(t, k, i);
				fail_msg("path %u differs from plain loops", n);
			}
		}
	}
	for (unsigned k = 0; k < t->n_mem; k++) {
		free(t->before[k]);
		free(t->after[k]);
		free(t->want[k]);
	}
}

static void agrees_with_plain_loops(void **state)
{
	static struct trial t;
	struct vt vt[3];
	unsigned n = 0, trials = getenv("VEC_TRIALS") ? (unsigned)atoi(getenv("VEC_TRIALS")) :
		1500;
	uint64_t seed = getenv("VEC_SEED") ? strtoull(getenv("VEC_SEED"), NULL, 0) : 7;

	(void)state;
	for (unsigned k = 0; k < 3; k++)
		n += vt_open(&vt[n], paths[k], 1 + k);
	for (unsigned i = 0; i < trials; i++) {
		random_trial(&seed, &t);
		run_trial(vt, &t, &seed, n);
	}
	while (n)
		vt_close(&vt[--n]);
}

/* ---- f32 ---- */

static float f32_op(unsigned op, float x, float y)
{
	switch (op) {
	case UOP_ADD: return x + y;
	case UOP_SUB: return x - y;
	case UOP_MUL: return x * y;
	case UOP_DIV: return x / y;
	case UOP_MIN: return x < y ? x : y;
	default: return x > y ? x : y;
	}
}

/* Of in0, rows of f32, in1, one a row, and in2, one for all, a body makes rows of operand 3. */
static void lay_rows_out(struct vt_insn *in, int64_t rows, int64_t cols)
{
	in->head.insn.op = ISA_VEC;
	in->head.body = (struct isa_body){ .rank = 2, .n_in = 3, .n_out = 1,
		.dim = { rows, cols, 1, 1, 1, 1, 1, 1 } };
	for (unsigned k = 0; k < 4; k++)
		in->op[k] = (struct isa_operand){ .elem = ELEM_F32, .binding = (uint16_t)k };
	in->op[0].stride[0] = in->op[3].stride[0] = cols * 4;
	in->op[0].stride[1] = in->op[3].stride[1] = 4;
	in->op[1].stride[0] = 4;
}

/* One operation of the body after the other, behind the three values that there are; the last. */
static float work_out(const struct vt_insn *in, float *val)
{
	unsigned n = in->head.body.n_uop;

	for (unsigned k = 0; k < n; k++) {
		const struct isa_uop *u = &in->uop[k];

		if (u->op == UOP_IMM)
			memcpy(&val[3 + k], &u->imm, sizeof(val[3 + k]));
		else
			val[3 + k] = f32_op(u->op, val[u->a], val[u->b]);
	}
	return val[2 + n];
}

/* Polynomials by Horner's rule: of what is full, one a row or one for all, that begin with any of
 * these or with a number; some change to another variable, or have a sum that is used again. */
static void polynomials_round_each_step(void **state)
{
	enum { ROWS = 37, COLS = 229, N = ROWS * COLS };
	static float x[N], y[ROWS], z[1] = { -0.0f }, got[N], val[64];
	struct vt_mem mem[] = { { x, sizeof(x) }, { y, sizeof(y) }, { z, sizeof(z) },
				{ got, sizeof(got) } };
	struct vt vt[3];
	unsigned n = 0;
	uint64_t seed = 4;

	(void)state;
	for (unsigned k = 0; k < 3; k++)
		n += vt_open(&vt[n], paths[k], 1);
	for (unsigned i = 0; i < N; i++)
		x[i] = (float)(int32_t)vt_random(&seed) * 0x1p-30f - 1;
	for (unsigned i = 0; i < ROWS; i++)
		y[i] = (float)i * 0.1f - 1;
	for (unsigned trial = 0; trial < 300; trial++) {
		unsigned terms = 1 + pick(&seed, 7), of = pick(&seed, 3), from = pick(&seed, 4);
		unsigned again = 0, last = from, v = 3;
		struct vt_insn in = { 0 };
		struct sim_run run;
		float want;

		lay_rows_out(&in, ROWS, COLS);
		for (unsigned k = 0; k < terms; k++, v += 3) {
			float c = k == 1 ? -0.0f : (float)pick(&seed, 100) * 0.3f - 9;
			unsigned t = pick(&seed, 12) ? of : pick(&seed, 3), turn = pick(&seed, 4);

			in.uop[v - 3] = (struct isa_uop){ .op = UOP_IMM, .elem = ELEM_F32 };
			memcpy(&in.uop[v - 3].imm, &c, sizeof(c));
			last = !k && from == 3 ? v : last;
			in.uop[v - 2] = vt_uop(UOP_MUL, ELEM_F32, turn & 1 ? t : last,
					       turn & 1 ? last : t, 0);
			in.uop[v - 1] = vt_uop(UOP_ADD, ELEM_F32, turn & 2 ? v : v + 1,
					       turn & 2 ? v + 1 : v, 0);
			last = v + 2;
			again = pick(&seed, 9) ? again : last;
		}
		in.uop[v - 3] = vt_uop(UOP_ADD, ELEM_F32, last, again, 0);
		in.head.body.n_uop = (uint16_t)(v - 2);
		in.op[3].value = (uint8_t)v;
		for (unsigned p = 0; p < n; p++) {
			assert_int_equal(vt_run(&vt[p], &in, mem, 4, &run), 0);
			for (unsigned i = 0; i < N; i++) {
				val[0] = x[i];
				val[1] = y[i / COLS];
				val[2] = z[0];
				want = work_out(&in, val);
				assert_memory_equal(&got[i], &want, sizeof(got[i]));
			}
		}
	}
	while (n)
		vt_close(&vt[--n]);
}

/* Random chains of arithmetic, whose neighbours the model may join: same bytes as
 * one operation after the other. in0 is full, in1 one a row, in2 one for all. */
static void chains_round_each_step(void **state)
{
	enum { ROWS = 37, COLS = 29, N = ROWS * COLS };
	static const uint8_t ops[] = { UOP_ADD, UOP_SUB, UOP_MUL, UOP_DIV, UOP_MIN, UOP_MAX };
	static float x[N], y[ROWS], z[1] = { 1.7f }, got[N], val[40];
	struct vt_mem mem[] = { { x, sizeof(x) }, { y, sizeof(y) }, { z, sizeof(z) },
				{ got, sizeof(got) } };
	struct vt vt[3];
	unsigned n = 0;
	uint64_t seed = 9;

	(void)state;
	for (unsigned k = 0; k < 3; k++)
		n += vt_open(&vt[n], paths[k], 1);
	for (unsigned i = 0; i < N; i++)
		x[i] = (float)(int32_t)vt_random(&seed) * 0x1p-24f - 60;
	for (unsigned i = 0; i < ROWS; i++)
		y[i] = (float)(i + 1) * 0.3f;
	for (unsigned trial = 0; trial < 600; trial++) {
		struct vt_insn in = { 0 };
		struct isa_body *b = &in.head.body;
		struct sim_run run;
		float want;

		lay_rows_out(&in, ROWS, COLS);
		b->n_uop = (uint16_t)(1 + pick(&seed, 12));
		in.op[3].value = (uint8_t)(2 + b->n_uop);
		for (unsigned k = 0; k < b->n_uop; k++) {
			unsigned a = pick(&seed, 3) ? 2 + k : pick(&seed, 3 + k);
			unsigned c = pick(&seed, 3 + k);
			bool turn = pick(&seed, 2);

			in.uop[k] = vt_uop(ops[pick(&seed, 6)], ELEM_F32, turn ? c : a,
					   turn ? a : c, 0);
		}
		for (unsigned p = 0; p < n; p++) {
			assert_int_equal(vt_run(&vt[p], &in, mem, 4, &run), 0);
			for (unsigned i = 0; i < N; i++) {
				val[0] = x[i];
				val[1] = y[i / COLS];
				val[2] = z[0];
				want = work_out(&in, val);
				if (want != want || fabsf(want) < 1e-30f)
					continue;
				assert_memory_equal(&got[i], &want, 4);
			}
		}
	}
	while (n)
		vt_close(&vt[--n]);
}

/* Sums of many f32 keep their digits: as good as f64, to the last place or so. */
static void long_sums_stay_accurate(void **state)
{
	enum { N = 1 << 20 };
	float *x = malloc(N * sizeof(*x)), out[1024];
	struct vt_mem mem[] = { { x, N * sizeof(*x) }, { out, sizeof(out) } };
	struct vt_insn in = { 0 };
	double want = 0, cols[1024] = { 0 };
	struct sim_run run;
	struct vt vt;

	(void)state;
	vt_open(&vt, "portable", 2);
	for (unsigned i = 0; i < N; i++) {
		x[i] = 1.0f + (float)(i % 1000) * 1e-3f;
		want += x[i];
		cols[i % 1024] += x[i];
	}
	in.head.insn.op = ISA_VEC;
	in.head.body = (struct isa_body){ .rank = 2, .n_in = 1, .n_out = 1,
		.dim = { N / 1024, 1024, 1, 1, 1, 1, 1, 1 } };
	in.op[0] = (struct isa_operand){ .elem = ELEM_F32, .stride = { 4096, 4 } };
	in.op[1] = (struct isa_operand){ .elem = ELEM_F32, .binding = 1,
					 .combine = ISA_COMBINE_ADD };
	assert_int_equal(vt_run(&vt, &in, mem, 2, &run), 0);
	assert_true(fabs(out[0] - want) < want * 0x1p-23);
	in.op[1].stride[1] = 4;
	assert_int_equal(vt_run(&vt, &in, mem, 2, &run), 0);
	for (unsigned i = 0; i < 1024; i++)
		assert_true(fabs(out[i] - cols[i]) < cols[i] * 0x1p-22);
	free(x);
	vt_close(&vt);
}

/*
 * Sums go in two levels, so a term that is large hides the few tiles that are added to it
 * before the narrow sum moves to the wide one, and no more. A row is a tile of 4096 equal
 * terms here, or several are one tile; the first is the large one.
 */
static void a_large_term_hides_few_others(void **state)
{
	enum { PARTS = 64, TILES = 192, ROWS = PARTS * TILES, COLS = 4096 };
	const double large = 0x1p26, hidden = 64.0 * COLS, rounding = 0x1p15;
	float *x = malloc(ROWS * sizeof(*x)), out[1];
	struct vt_mem mem[] = { { x, ROWS * sizeof(*x) }, { out, sizeof(out) } };
	double want = COLS * (large + ROWS - 1);
	struct vt_insn in = { 0 };
	struct sim_run run;
	struct vt vt;

	(void)state;
	vt_open(&vt, "portable", 2);
	for (unsigned i = 0; i < ROWS; i++)
		x[i] = i ? 1 : (float)large;
	in.head.insn.op = ISA_VEC;
	in.head.body = (struct isa_body){ .rank = 2, .n_in = 1, .n_out = 1,
		.dim = { ROWS, COLS, 1, 1, 1, 1, 1, 1 } };
	in.op[0] = (struct isa_operand){ .elem = ELEM_F32, .stride = { 4, 0 } };
	in.op[1] = (struct isa_operand){ .elem = ELEM_F32, .binding = 1,
					 .combine = ISA_COMBINE_ADD };
	assert_int_equal(vt_run(&vt, &in, mem, 2, &run), 0);
	assert_true(fabs(out[0] - want) <= hidden + rounding);
	free(x);
	vt_close(&vt);
}

/* Nothing but infinities, in a short row and in one of several tiles. */
static void extremes_of_infinities_are_infinite(void **state)
{
	enum { MOST = 20000 };
	static float x[MOST];

	(void)state;
	for (unsigned i = 0; i < 8; i++) {
		bool least = i & 1;
		int64_t n = i & 2 ? MOST : 3;
		float out[1] = { 7 };
		struct vt_mem mem[] = { { x, sizeof(x) }, { out, sizeof(out) } };
		struct vt_insn in = { 0 };
		struct sim_run run;
		struct vt vt;

		for (unsigned k = 0; k < MOST; k++)
			x[k] = least ? INFINITY : -INFINITY;
		if (!vt_open(&vt, i & 4 ? "avx2" : "portable", 1))
			continue;
		in.head.insn.op = ISA_VEC;
		in.head.body = (struct isa_body){ .rank = 1, .n_in = 1, .n_out = 1,
			.dim = { n, 1, 1, 1, 1, 1, 1, 1 } };
		in.op[0] = (struct isa_operand){ .elem = ELEM_F32, .stride = { 4 } };
		in.op[1] = (struct isa_operand){ .elem = ELEM_F32, .binding = 1,
			.combine = least ? ISA_COMBINE_MIN : ISA_COMBINE_MAX };
		assert_int_equal(vt_run(&vt, &in, mem, 2, &run), 0);
		assert_true(out[0] == (least ? INFINITY : -INFINITY));
		vt_close(&vt);
	}
}

/* What an output that folds holds where nothing is folded. */
static void empty_folds_give_the_identity(void **state)
{
	float out[3] = { 7, 7, 7 };
	struct vt_mem mem[] = { { out, 0 }, { out, sizeof(out) } };
	struct vt_insn in = { 0 };
	struct sim_run run;
	struct vt vt;

	(void)state;
	vt_open(&vt, "portable", 1);
	in.head.insn.op = ISA_VEC;
	in.head.body = (struct isa_body){ .rank = 2, .n_in = 1, .n_out = 1,
		.dim = { 3, 0, 1, 1, 1, 1, 1, 1 } };
	in.op[0] = (struct isa_operand){ .elem = ELEM_F32, .stride = { 4, 4 } };
	in.op[1] = (struct isa_operand){ .elem = ELEM_F32, .binding = 1, .stride = { 4 } };
	assert_int_equal(vt_run(&vt, &in, mem, 2, &run), 0);
	assert_true(out[0] == 7 && out[2] == 7);
	in.op[1].combine = ISA_COMBINE_MAX;
	in.op[1].flags = ISA_OPERAND_ACC;
	assert_int_equal(vt_run(&vt, &in, mem, 2, &run), 0);
	assert_true(out[0] == 7 && out[2] == 7);
	in.op[1].flags = 0;
	assert_int_equal(vt_run(&vt, &in, mem, 2, &run), 0);
	assert_true(out[0] == -INFINITY && out[1] == -INFINITY && out[2] == -INFINITY);
	/* its other dims are checked all the same */
	in.head.body.dim[0] = 4;
	assert_int_equal(vt_run(&vt, &in, mem, 2, &run), HW_ST_BAD_PROGRAM);
	vt_close(&vt);
}

/* ---- windows: inputs that lie alike, joined one after the other ---- */

enum { TAPS = 9 };

struct window {
	struct vt_insn insn;
	unsigned op, elem, n;
	int64_t dim[3], row, col;	/* strides in bytes */
	int64_t tap[TAPS];		/* where each begins */
	double first;
	unsigned n_after;		/* 0: the result; 1: times an input; 2: both are stored */
};

/* The operation by its rule, on the bits that matter here. */
static double join(const struct window *w, double x, double y)
{
	bool less = w->op == UOP_MIN;
	double r = w->op == UOP_ADD ? x + y : x * y;

	if (w->op == UOP_ADD || w->op == UOP_MUL)
		return w->elem == ELEM_F32 ? (float)r : r;
	if (isnan(x) || isnan(y))
		return NAN;
	if (x == y)
		return signbit(x) == signbit(y) ? x : less ? -0.0 : 0.0;
	return (x < y) == less ? x : y;
}

static double element(const struct window *w, const char *p)
{
	float f;
	double d;

	memcpy(&f, p, sizeof(f));
	memcpy(&d, p, w->elem == ELEM_F64 ? sizeof(d) : 0);
	return w->elem == ELEM_F64 ? d : (double)f;
}

static void set_element(const struct window *w, char *p, double x)
{
	float f = (float)x;

	if (w->elem == ELEM_F64)
		memcpy(p, &x, sizeof(x));
	else
		memcpy(p, &f, sizeof(f));
}

/* Three dims: planes, rows, columns side by side or two apart, elements that are shared. */
static void random_window(uint64_t *seed, struct window *w)
{
	static const uint8_t ops[] = { UOP_ADD, UOP_MUL, UOP_MIN, UOP_MAX };
	static const double first[] = { 0, 1, INFINITY, -INFINITY };
	unsigned k = pick(seed, 4), bytes = pick(seed, 3) ? 4 : 8, n = 0;
	struct isa_body *b = &w->insn.head.body;
	struct isa_operand like = { 0 };

	*w = (struct window){ .op = ops[k], .first = first[k], .n = 2 + pick(seed, TAPS - 1),
			      .elem = bytes == 4 ? ELEM_F32 : ELEM_F64,
			      .n_after = pick(seed, 3) };
	for (unsigned d = 0; d < 3; d++)
		w->dim[d] = 1 + pick(seed, d == 2 ? 200 : 7);
	w->col = bytes * (1 + (int64_t)pick(seed, 7) / 3);
	w->row = w->dim[2] * w->col + bytes * (int64_t)pick(seed, 20);
	like = (struct isa_operand){ .elem = (uint8_t)w->elem,
		.stride = { (w->dim[1] + 2) * w->row, w->row, w->col } };
	b->rank = 3;
	for (unsigned d = 0; d < ISA_MAX_RANK; d++)
		b->dim[d] = d < 3 ? w->dim[d] : 1;
	for (unsigned t = 0; t < w->n; t++) {
		w->tap[t] = bytes * (int64_t)pick(seed, 3) + w->row * (int64_t)pick(seed, 3);
		w->insn.op[n] = like;
		w->insn.op[n++].offset = w->tap[t];
	}
	if (w->n_after)
		w->insn.op[n++] = (struct isa_operand){ .elem = (uint8_t)w->elem, .binding = 1,
			.stride = { 0, 0, bytes } };
	b->n_in = (uint8_t)n;
	b->n_out = w->n_after == 2 ? 2 : 1;
}

static void body_of_window(struct window *w)
{
	struct isa_body *b = &w->insn.head.body;
	unsigned bytes = elem_bytes(w->elem), v = b->n_in, acc = v;
	float f = (float)w->first;
	struct isa_uop *u = w->insn.uop;

	*u = vt_uop(UOP_IMM, w->elem, 0, 0, 0);
	memcpy(&u->imm, bytes == 4 ? (const void *)&f : &w->first, bytes);
	for (unsigned t = 0; t < w->n; t++) {
		*++u = vt_uop(w->op, w->elem, acc, t, 0);
		acc = ++v;
	}
	if (w->n_after) {
		*++u = vt_uop(UOP_MUL, w->elem, acc, w->n, 0);
		v++;
	}
	b->n_uop = (uint16_t)(u + 1 - w->insn.uop);
	for (unsigned j = 0; j < b->n_out; j++)
		w->insn.op[b->n_in + j] = (struct isa_operand){ .elem = (uint8_t)w->elem,
			.binding = (uint16_t)(2 + j), .value = (uint8_t)(j ? acc : v),
			.stride = { w->dim[1] * w->dim[2] * bytes, w->dim[2] * bytes, bytes } };
	w->insn.head.insn.op = ISA_VEC;
}

static void check_window(const struct window *w, const struct vt_mem *mem)
{
	unsigned bytes = elem_bytes(w->elem);
	uint64_t at = 0;

	for (int64_t i = 0; i < w->dim[0] * w->dim[1]; i++) {
		const char *row = (const char *)mem[0].p + i / w->dim[1] *
			w->insn.op[0].stride[0] + i % w->dim[1] * w->row;

		for (int64_t k = 0; k < w->dim[2]; k++, at += bytes) {
			double sum = w->first, x, scale = 1;
			char want[8], all[8];

			for (unsigned t = 0; t < w->n; t++)
				sum = join(w, sum, element(w, row + w->tap[t] + k * w->col));
			set_element(w, all, sum);
			if (w->n_after)
				scale = element(w, (const char *)mem[1].p + k * bytes);
			x = w->n_after ? sum * scale : sum;
			set_element(w, want, x);
			assert_memory_equal((const char *)mem[2].p + at, want, bytes);
			if (w->n_after == 2)
				assert_memory_equal((const char *)mem[3].p + at, all, bytes);
		}
	}
}

static void windows_on(struct vt *t, uint64_t *seed)
{
	static const double odd[] = { 0.0, -0.0, INFINITY, -INFINITY };
	struct sim_run run;
	struct vt_mem mem[4];
	struct window w;
	uint64_t bytes, last = 0;

	random_window(seed, &w);
	body_of_window(&w);
	bytes = elem_bytes(w.elem);
	for (unsigned k = 0; k < w.n; k++)
		last = (uint64_t)w.tap[k] > last ? (uint64_t)w.tap[k] : last;
	mem[0].bytes = last + (uint64_t)((w.dim[0] - 1) * w.insn.op[0].stride[0] +
		(w.dim[1] - 1) * w.row + (w.dim[2] - 1) * w.col) + bytes;
	mem[1].bytes = (uint64_t)w.dim[2] * bytes;
	mem[2].bytes = mem[3].bytes = (uint64_t)(w.dim[0] * w.dim[1]) * mem[1].bytes;
	for (unsigned i = 0; i < 4; i++) {
		mem[i].p = malloc(mem[i].bytes);
		assert_non_null(mem[i].p);
		for (uint64_t k = 0; k < mem[i].bytes; k += bytes) {
			double x = (double)pick(seed, 2001) / 1000 - 1;

			if (w.op != UOP_ADD && w.op != UOP_MUL && !i && pick(seed, 4) == 0)
				x = odd[pick(seed, 4)];
			set_element(&w, (char *)mem[i].p + k, x);
		}
	}
	assert_int_equal(vt_run(t, &w.insn, mem, 4, &run), 0);
	assert_int_equal(run.vector_ops, (uint64_t)(w.dim[0] * w.dim[1] * w.dim[2]) *
			 w.insn.head.body.n_uop);
	check_window(&w, mem);
	for (unsigned i = 0; i < 4; i++)
		free(mem[i].p);
}

static void windows_join_elements_in_order(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		uint64_t seed = 5;
		struct vt vt;

		if (!vt_open(&vt, paths[i], 2))
			continue;
		for (unsigned k = 0; k < 400; k++)
			windows_on(&vt, &seed);
		vt_close(&vt);
	}
}

/* What a number is as f64, which keeps all of them. */
static double wide_value(unsigned elem, const void *from, size_t i)
{
	uint32_t bits = (uint32_t)((const uint16_t *)from)[i] << 16;
	float f;

	if (elem == ELEM_F64)
		return ((const double *)from)[i];
	if (elem == ELEM_S32 || elem == ELEM_PRED)
		return elem == ELEM_S32 ? ((const int32_t *)from)[i] : ((const uint8_t *)from)[i];
	memcpy(&f, elem == ELEM_F32 ? (const char *)from + 4 * i : (const char *)&bits, 4);
	return (double)f;
}

/* Random bits, or zeros of both signs. */
static void random_values(uint64_t *seed, unsigned elem, void *to, size_t n, bool sparse)
{
	for (size_t i = 0; i < n; i++) {
		uint32_t r = vt_random(seed), top = r & 1u << 15;

		if (!sparse)
			top |= vt_random(seed) % (vt_random(seed) % 8 ? 0x7f80 : 0x8000);
		top &= top & 0x7f80 ? 0xffff : 1u << 15;
		if (elem == ELEM_BF16)
			((uint16_t *)to)[i] = (uint16_t)top;
		else if (elem == ELEM_F64)
			((uint64_t *)to)[i] = (uint64_t)top << 48;
		else if (elem == ELEM_PRED)
			((uint8_t *)to)[i] = r % 50 == 0;
		else
			((uint32_t *)to)[i] = top << 16;
	}
}

static void fold_all(struct vt *vt, unsigned elem, unsigned combine, int64_t rows, int64_t cols,
		     bool along, const void *x, double *want, char *got)
{
	unsigned wide = elem == ELEM_BF16 ? ELEM_F32 : elem;
	int64_t each = elem_bytes(elem), to = elem_bytes(wide), kept = along ? rows : cols;
	struct vt_insn in = { .head.insn.op = ISA_VEC, .head.body = {
		.rank = 2, .n_in = 1, .n_out = 1, .n_uop = wide != elem,
		.dim = { rows, cols, 1, 1, 1, 1, 1, 1 } } };
	bool is_min = combine == ISA_COMBINE_MIN;
	struct sim_run run;

	in.op[0] = (struct isa_operand){ .elem = (uint8_t)elem, .stride = { cols * each, each } };
	in.op[1] = (struct isa_operand){ .elem = (uint8_t)wide, .binding = 1,
		.value = wide != elem, .combine = (uint8_t)combine,
		.stride = { along ? to : 0, along ? 0 : to } };
	in.uop[0] = vt_uop(UOP_CVT, ELEM_BF16, 0, 0, 0);
	in.uop[0].to = ELEM_F32;
	assert_int_equal(vt_run(vt, &in, (struct vt_mem[]){
		{ (void *)(uintptr_t)x, (uint64_t)(rows * cols * each) },
		{ got, (uint64_t)(kept * to) } }, 2, &run), 0);
	for (int64_t i = 0; i < rows * cols; i++) {
		double *w = &want[along ? i / cols : i % cols], v = wide_value(elem, x, (size_t)i);
		bool first = along ? i % cols == 0 : i < cols;
		double x0 = is_min ? v : *w, x1 = is_min ? *w : v;

		if (combine == ISA_COMBINE_ADD)
			*w = first ? v : *w + v;
		else if (first || isnan(v) || x0 < x1 || (x0 == x1 && signbit(x0) > signbit(x1)))
			*w = v;
	}
	for (int64_t i = 0; i < kept; i++) {
		double g = wide_value(wide, got, (size_t)i);

		assert_true(isnan(want[i]) ? isnan(g) :
			    g == want[i] && signbit(g) == signbit(want[i]));
	}
}

/* Extremes of rows where they lie, of NaNs and both zeros too, and sums of bf16 along rows. */
static void extremes_of_rows_and_sums_along_them(void **state)
{
	static const uint8_t elems[] = { ELEM_F32, ELEM_F64, ELEM_BF16, ELEM_S32, ELEM_PRED };
	static const int64_t dims[][2] = { { 1, 16 }, { 2, 17 }, { 3, 31 }, { 4, 64 }, { 5, 130 },
		{ 129, 16 }, { 130, 300 }, { 257, 1000 }, { 8, 4099 }, { 3, 255 }, { 3, 383 } };
	static char x[8 * 257 * 1000], got[8 * 4099];
	static double want[4099];
	uint64_t seed = 3;
	struct vt vt;

	(void)state;
	for (unsigned p = 0; p < 3 && vt_open(&vt, paths[p], 1 + p % 2); p++) {
		for (unsigned i = 0; i < 5 * 4 * 11; i++) {
			const int64_t *d = dims[i / 20];
			unsigned elem = elems[i % 5];

			random_values(&seed, elem, x, (size_t)(d[0] * d[1]), i / 5 % 2);
			fold_all(&vt, elem, i / 10 % 2 ? ISA_COMBINE_MIN : ISA_COMBINE_MAX,
				 d[0], d[1], false, x, want, got);
			for (int64_t j = 0; j < d[0] * d[1]; j++)
				((uint16_t *)(void *)x)[j] = vt_random(&seed) % 2 ? 0x3f80 : 0xc040;
			fold_all(&vt, ELEM_BF16, ISA_COMBINE_ADD, d[0], d[1], true, x, want, got);
		}
		vt_close(&vt);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(agrees_with_plain_loops),
		cmocka_unit_test(chains_round_each_step),
		cmocka_unit_test(polynomials_round_each_step),
		cmocka_unit_test(long_sums_stay_accurate),
		cmocka_unit_test(a_large_term_hides_few_others),
		cmocka_unit_test(extremes_of_infinities_are_infinite),
		cmocka_unit_test(empty_folds_give_the_identity),
		cmocka_unit_test(windows_join_elements_in_order),
		cmocka_unit_test(extremes_of_rows_and_sums_along_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
