/* SPDX-License-Identifier: Apache-2.0 */
/*
 * REDUCE against plain loops in the order of the elements: composition of affine
 * maps (associative, but not commutative), arguments of maxima where the first
 * wins, every subset of folded dims, empty ones, on every path. And VEC's sums of elements and
 * of products that it reads where they lie.
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

/* The larger or smaller of values, and what comes with it, as frameworks write argmax. */
struct pick_trial {
	enum elem elem;
	unsigned where_bytes, by;	/* by: which operand has the values */
	bool smaller, turned;		/* turned: the element is asked first */
	bool keeps_equal, nan_loses;	/* what is almost that */
	/* of whole numbers the value is MIN's or MAX's, or the other one's, in a single step */
	bool extreme, crossed;
	int64_t outer, n, inner;
	enum { EACH, INNER, ALL } shared;	/* one place for all of inner; for outer, too */
	unsigned value_step, where_step;	/* elements from one to the next */
	bool one_first, apart;	/* one initial value for all; a row of values as long as two */
};

static void pick_body(const struct pick_trial *t, struct vt_insn *in)
{
	unsigned by = t->by, x = by, y = 2 + by, a = t->turned ? y : x, b = t->turned ? x : y;
	unsigned better = t->smaller != t->turned ? UOP_LT : UOP_GT;
	unsigned elem[2], wide = t->where_bytes == 8 ? ELEM_U64 : ELEM_U32, n = 0, is;
	unsigned asked = t->elem == ELEM_BF16 ? ELEM_F32 : t->elem, old = x;

	elem[by] = t->elem;
	elem[!by] = t->where_bytes == 2 ? ELEM_U16 : wide;
	if (t->keeps_equal)
		better = better == UOP_LT ? UOP_LE : UOP_GE;
	if (asked != t->elem) {
		in->uop[n] = vt_uop(UOP_CVT, ELEM_BF16, a, 0, 0);
		in->uop[n++].to = ELEM_F32;
		in->uop[n] = vt_uop(UOP_CVT, ELEM_BF16, b, 0, 0);
		in->uop[n++].to = ELEM_F32;
		old = t->turned ? 5 : 4;
		a = 4;
		b = 5;
	}
	if (t->nan_loses)
		old = old == a ? b : a;
	is = 4 + n;	/* better, a NaN, either, equal, any of them */
	in->uop[n++] = vt_uop(better, asked, a, b, 0);
	in->uop[n++] = vt_uop(UOP_NE, asked, old, old, 0);
	in->uop[n++] = vt_uop(UOP_OR, ELEM_PRED, is, is + 1, 0);
	in->uop[n++] = vt_uop(UOP_EQ, asked, a, b, 0);
	in->uop[n++] = vt_uop(UOP_OR, ELEM_PRED, is + 3, is + 2, 0);
	in->uop[n] = vt_uop(UOP_SELECT, t->elem, t->keeps_equal ? is + 4 : is + 2, x, y);
	if (t->extreme)
		in->uop[n] = vt_uop(t->smaller != t->crossed ? UOP_MIN : UOP_MAX, t->elem, a, b, 0);
	in->uop[++n] = vt_uop(UOP_SELECT, elem[!by], is + 4, !by, 2 + !by);
	in->head.body.n_uop = (uint8_t)(n + 1);
	for (unsigned k = 0; k < 6; k++)
		in->op[k].elem = (uint8_t)elem[k % 2];
	in->op[4 + by].value = (uint8_t)(is + 5);
	in->op[4 + !by].value = (uint8_t)(is + 6);
}

static double bf16_value(uint16_t x)
{
	uint32_t bits = (uint32_t)x << 16;
	float f;

	memcpy(&f, &bits, sizeof(f));
	return (double)f;
}

/* Of a number that bf16 has. */
static uint16_t bf16_of(double v)
{
	float f = (float)v;
	uint32_t bits;

	memcpy(&bits, &f, sizeof(bits));
	return (uint16_t)(bits >> 16);
}

static double value_at(enum elem elem, const char *p, int64_t i)
{
	switch (elem) {
	case ELEM_F32: return ((const float *)(const void *)p)[i];
	case ELEM_F64: return ((const double *)(const void *)p)[i];
	case ELEM_BF16: return bf16_value(((const uint16_t *)(const void *)p)[i]);
	case ELEM_S32: return ((const int32_t *)(const void *)p)[i];
	case ELEM_S64: return (double)((const int64_t *)(const void *)p)[i];
	default: return ((const uint8_t *)p)[i];
	}
}

static void set_value(enum elem elem, char *p, int64_t i, double v)
{
	switch (elem) {
	case ELEM_F32: ((float *)(void *)p)[i] = (float)v; break;
	case ELEM_F64: ((double *)(void *)p)[i] = v; break;
	case ELEM_BF16: ((uint16_t *)(void *)p)[i] = bf16_of(v); break;
	case ELEM_S32: ((int32_t *)(void *)p)[i] = isfinite(v) ? (int32_t)v : 7; break;
	case ELEM_S64: ((int64_t *)(void *)p)[i] = isfinite(v) ? (int64_t)v : 7; break;
	default: ((uint8_t *)p)[i] = isfinite(v) ? (uint8_t)fabs(v) : 7; break;
	}
}

/* For each result the fold in order; value: of operands init, all, out. */
static void plain_picks(const struct pick_trial *t, char *const *value, char *const *where)
{
	unsigned vb = elem_bytes(t->elem), wb = t->where_bytes;

	for (int64_t k = 0; k < t->outer * t->inner; k++) {
		char *v = value[2] + k * vb, *w = where[2] + k * wb;

		memcpy(v, value[0] + (t->one_first ? 0 : k * vb), vb);
		memcpy(w, where[0] + (t->one_first ? 0 : k * wb), wb);
		for (int64_t i = 0; i < t->n; i++) {
			int64_t at = (k / t->inner * t->n + i) * t->inner + k % t->inner;
			int64_t place = t->shared == ALL ? i : t->shared == INNER ?
				k / t->inner * t->n + i : at;
			double x = value_at(t->elem, v, 0);
			int64_t from = (at + (t->apart ? k / t->inner * t->n * t->inner : 0)) *
				t->value_step;
			double y = value_at(t->elem, value[1], from);
			bool keep = t->smaller ? x < y : x > y, equal = x == y;

			keep |= isnan(t->nan_loses ? y : x);
			if (!keep && !equal)
				memcpy(w, where[1] + place * t->where_step * wb, wb);
			if (t->crossed ? keep : !keep && !(equal && t->keeps_equal))
				memcpy(v, value[1] + from * vb, vb);
		}
	}
}

static void run_picks(struct vt *vt, unsigned n_paths, const struct pick_trial *t,
		      uint64_t *seed)
{
	const double values[] = { NAN, 1, -INFINITY, -3, INFINITY, 0.0, -0.0, 2, 5, 5 };
	int64_t kept = t->outer * t->inner, all = 2 * kept * t->n;	/* with steps of 2 */
	unsigned vb = elem_bytes(t->elem), wb = t->where_bytes, few = pick(seed, 2) ? 10 : 9;
	char *value[4], *where[4];
	struct vt_insn in = { 0 };
	struct vt_mem mem[6];
	struct sim_run run;

	in.head.insn.op = ISA_REDUCE;
	in.head.reduce_dims = 2;
	in.head.body = (struct isa_body){ .rank = 3, .n_in = 4, .n_out = 2,
		.dim = { t->outer, t->n, t->inner, 1, 1, 1, 1, 1 } };
	pick_body(t, &in);
	for (unsigned k = 0; k < 4; k++) {
		value[k] = malloc((size_t)(all + kept) * vb);
		where[k] = malloc((size_t)(all + kept) * wb);
		for (int64_t i = 0; i < all + kept; i++)
			set_value(t->elem, value[k], i,
				  values[few == 9 ? 1 + pick(seed, 9) : pick(seed, 10)]);
		for (int64_t i = 0; i < (all + kept) * wb; i++)
			where[k][i] = (char)pick(seed, 256);
	}
	for (unsigned k = 0; k < 6; k++) {
		bool whole = k / 2 == 1, shared = whole && t->shared && k % 2 != t->by;
		int64_t bytes = k % 2 == t->by ? vb : wb, n = whole ? t->n : 1;
		int64_t step = !whole ? 1 : k % 2 == t->by ? t->value_step : t->where_step;
		int64_t inner = shared ? 1 : t->inner, outer = shared && t->shared == ALL ? 1 :
			t->outer;
		unsigned from = k / 2 == 2 ? 3 : k / 2;

		in.op[k].binding = (uint16_t)k;
		bytes *= step;
		in.op[k].stride[0] = outer == 1 ? 0 : n * inner * bytes;
		in.op[k].stride[1] = whole ? inner * bytes : 0;
		in.op[k].stride[2] = shared ? 0 : bytes;
		if (k / 2 == 0 && t->one_first)
			memset(in.op[k].stride, 0, sizeof(in.op[k].stride));
		if (whole && k % 2 == t->by && t->apart)
			in.op[k].stride[0] *= 2;
		mem[k].p = (k % 2 == t->by ? value : where)[from];
		mem[k].bytes = (uint64_t)(outer * n * inner * bytes) << (whole && t->apart);
	}
	plain_picks(t, value, where);
	for (unsigned n = 0; n < n_paths; n++) {
		memset(value[3], 0xa5, (size_t)(kept * vb));	/* not a path's before it */
		memset(where[3], 0xa5, (size_t)(kept * wb));
		assert_int_equal(vt_run(&vt[n], &in, mem, 6, &run), 0);
		assert_memory_equal(value[3], value[2], (size_t)(kept * vb));
		assert_memory_equal(where[3], where[2], (size_t)(kept * wb));
	}
	for (unsigned k = 0; k < 4; k++) {
		free(value[k]);
		free(where[k]);
	}
}

static void largest_and_where_it_is(void **state)
{
	static const enum elem elems[] = { ELEM_F32, ELEM_F64, ELEM_BF16, ELEM_S32, ELEM_S64,
					   ELEM_U8 };
	static const int64_t shape[][3] = {
		{ 400, 3, 1 }, { 2100, 4, 1 }, { 300, 8, 1 }, { 100, 16, 1 }, { 30, 64, 1 },
		{ 1, 9000, 1 }, { 2, 7, 250 }, { 3, 5, 17 }, { 1, 3, 5000 }, { 250, 1, 3 },
		{ 2500, 2, 1 }, { 60, 3, 200 },
		/* long rows: one element fewer, and more; more rows than at once; in parts */
		{ 2, 9, 191 }, { 2, 9, 192 }, { 3, 17, 257 }, { 1, 255, 200 }, { 1, 257, 200 },
		{ 1, 2100, 193 }, { 2, 2, 20000 },
	};
	struct vt vt[3];
	uint64_t seed = 5;
	unsigned n = 0;

	(void)state;
	for (unsigned k = 0; k < 3; k++)
		n += vt_open(&vt[n], paths[k], 1 + k);
	for (unsigned s = 0; s < sizeof(shape) / sizeof(shape[0]); s++)
		for (unsigned i = 0; i < 96; i++) {
			const struct pick_trial t = {
				.elem = elems[i % 6], .where_bytes = i / 6 % 8 ? 4 << i / 6 % 2 : 2,
				.by = i & 1, .smaller = pick(&seed, 2), .turned = pick(&seed, 2),
				.keeps_equal = !pick(&seed, 6), .nan_loses = !pick(&seed, 6),
				.shared = pick(&seed, 3),
				.extreme = i % 6 > 2 && i / 6 % 3,
				.crossed = i % 6 > 2 && i / 6 % 3 == 2 && shape[s][1] == 1,
				.value_step = 1 + !pick(&seed, 6),
				.where_step = 1 + !pick(&seed, 3),
				.outer = shape[s][0], .n = shape[s][1], .inner = shape[s][2],
			};

			run_picks(vt, n, &t, &seed);
		}
	while (n)
		vt_close(&vt[--n]);
}

/* Short rows of each length that some loop ends at, of which there are fewer than go at a time, as
 * many and more, with one initial value for all of them, as frameworks write argmax, or with one
 * each; what comes with a value is the same in each row. */
static void largest_of_short_rows(void **state)
{
	static const enum elem elems[] = { ELEM_F32, ELEM_BF16, ELEM_S32, ELEM_F64 };
	static const int64_t cols[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 16, 31, 33, 64, 127,
					255, 256, 257 };
	static const int64_t rows[] = { 1, 2, 15, 16, 17, 31, 32, 203 };
	struct vt vt[3];
	uint64_t seed = 6;
	unsigned n = 0;

	(void)state;
	for (unsigned k = 0; k < 3; k++)
		n += vt_open(&vt[n], paths[k], 1 + k);
	for (unsigned c = 0; c < sizeof(cols) / sizeof(cols[0]); c++)
		for (unsigned i = 0; i < 64; i++) {
			const struct pick_trial t = {
				.elem = elems[i % 4], .where_bytes = pick(&seed, 9) ? 4 : 8,
				.by = i / 4 & 1, .smaller = i & 1, .turned = pick(&seed, 2),
				.shared = pick(&seed, 6) ? ALL : EACH, .value_step = 1,
				.where_step = 1 + !pick(&seed, 9),
				.one_first = pick(&seed, 6), .apart = !pick(&seed, 4),
				.outer = rows[i / 8], .n = cols[c], .inner = 1,
			};

			run_picks(vt, n, &t, &seed);
		}
	while (n)
		vt_close(&vt[--n]);
}

/* A number that sums of products of such keep exactly. */
static void put_whole(uint8_t elem, void *to, size_t i, int64_t x)
{
	if (elem == ELEM_F32)
		((float *)to)[i] = (float)x;
	else
		((double *)to)[i] = (double)x;
}

static double number_at(uint8_t elem, const void *from, size_t i)
{
	return elem == ELEM_F32 ? (double)((const float *)from)[i] : ((const double *)from)[i];
}

struct sums_of_products {
	uint8_t elem;
	int64_t rows, cols, b_rows;	/* b has this many rows: one for all, or as many as a */
	bool adds, is_square;		/* adds to what is there; a by itself */
};

/* mem[2][r] = the sum of mem[0][r][j] * mem[1][r][j]. */
static void check_sums_of_products(struct vt *vt, unsigned n, const struct sums_of_products *t,
				   const struct vt_mem *mem, uint64_t *seed)
{
	int64_t each = elem_bytes(t->elem), points = t->rows * t->cols;
	struct vt_insn in = { .head.insn.op = ISA_VEC, .head.body = {
		.rank = 2, .n_in = 2, .n_out = 1, .n_uop = 1,
		.dim = { t->rows, t->cols, 1, 1, 1, 1, 1, 1 } } };
	struct sim_run run;

	for (unsigned k = 0; k < 3; k++)
		in.op[k] = (struct isa_operand){ .elem = t->elem, .binding = (uint16_t)k,
			.stride = { k == 2 ? each : k && t->b_rows == 1 ? 0 : t->cols * each,
				    k == 2 ? 0 : each } };
	in.op[2].value = 2;
	in.op[2].combine = ISA_COMBINE_ADD;
	in.op[2].flags = t->adds ? ISA_OPERAND_ACC : 0;
	in.uop[0] = vt_uop(UOP_MUL, t->elem, 0, !t->is_square, 0);
	for (int64_t i = 0; i < points; i++)
		put_whole(t->elem, mem[0].p, (size_t)i, (int64_t)pick(seed, 17) - 8);
	for (int64_t i = 0; i < t->b_rows * t->cols; i++)
		put_whole(t->elem, mem[1].p, (size_t)i, (int64_t)pick(seed, 17) - 8);
	for (unsigned p = 0; p < n; p++) {
		for (int64_t r = 0; r < t->rows; r++)
			put_whole(t->elem, mem[2].p, (size_t)r, 1000 + r);
		assert_int_equal(vt_run(&vt[p], &in, (struct vt_mem[]){
			{ mem[0].p, (size_t)(points * each) },
			{ mem[1].p, (size_t)(t->b_rows * t->cols * each) },
			{ mem[2].p, (size_t)(t->rows * each) } }, 3, &run), 0);
		for (int64_t r = 0; r < t->rows; r++) {
			double want = t->adds ? (double)(1000 + r) : 0;

			for (int64_t j = 0; j < t->cols; j++)
				want += number_at(t->elem, mem[0].p, (size_t)(r * t->cols + j)) *
					number_at(t->elem, mem[t->is_square ? 0 : 1].p, (size_t)
						  ((t->b_rows == 1 && !t->is_square ? 0 : r) *
						   t->cols + j));
			assert_true(number_at(t->elem, mem[2].p, (size_t)r) == want);
		}
	}
}

/* Products that are summed along rows, as those of a matrix by a vector: rows of every kind of
 * length, fewer and more than a tile has. */
static void products_are_summed_along_rows(void **state)
{
	static const int64_t cols[] = { 1, 2, 15, 16, 17, 31, 32, 33, 64, 100, 127, 128, 129, 511,
					512, 513, 700, 2047, 2048, 2049, 5000 };
	static const int64_t rows[] = { 1, 2, 15, 16, 17, 130, 9000 };
	enum { MOST = 17 * 5000 };
	struct vt_mem mem[3] = { { malloc(8 * MOST), 0 }, { malloc(8 * MOST), 0 },
				 { malloc(8 * MOST), 0 } };
	struct vt vt[3];
	unsigned n = 0, t = 0;
	uint64_t seed = 12;

	(void)state;
	for (unsigned k = 0; k < 3; k++)
		n += vt_open(&vt[n], paths[k], 1 + k);
	for (unsigned i = 0; i < 7; i++)
		for (unsigned j = 0; j < 21; j++) {
			struct sums_of_products trial = { .rows = rows[i], .cols = cols[j] };

			if (rows[i] * cols[j] > MOST)
				continue;
			for (unsigned k = 0; k < 4; k++, t++) {
				trial.elem = t % 3 ? ELEM_F32 : ELEM_F64;
				trial.b_rows = k % 2 ? rows[i] : 1;
				trial.adds = t % 5 == 0;
				trial.is_square = t % 7 == 0;
				check_sums_of_products(vt, n, &trial, mem, &seed);
			}
		}
	while (n)
		vt_close(&vt[--n]);
	for (unsigned k = 0; k < 3; k++)
		free(mem[k].p);
}

/* Sums over dim 1 of 4 of a, or of a times b. */
struct sum_of_rows {
	uint8_t elem;
	int64_t dim[4];
	bool turned;		/* a has dims 1 and 2 the other way round */
	unsigned factor;	/* b: 0 none, 1 as large as a, 2 one for dims 0 to 2, 3 for dim 1 */
	bool b_first, adds;	/* the product is b * a; adds to what is there */
	bool narrow;		/* a is of bf16, made f32 */
};

static void set_number(uint8_t elem, void *to, size_t i, int64_t x)
{
	if (elem == ELEM_S32)
		((int32_t *)to)[i] = (int32_t)x;
	else if (elem == ELEM_S64)
		((int64_t *)to)[i] = x;
	else
		put_whole(elem, to, i, x);
}

/* Whole numbers that bf16 keeps are the upper halves of f32. */
static void make_narrow(const float *from, uint16_t *to, size_t n)
{
	for (size_t i = 0; i < n; i++)
		memcpy(&to[i], (const char *)&from[i] + 2, 2);
}

static double get_number(uint8_t elem, const void *from, size_t i)
{
	return elem == ELEM_S32 ? (double)((const int32_t *)from)[i] :
	       elem == ELEM_S64 ? (double)((const int64_t *)from)[i] : number_at(elem, from, i);
}

/* Strides in elements of a, b and the sums. */
static void lay_sums_out(const struct sum_of_rows *t, int64_t (*stride)[4])
{
	const int64_t *d = t->dim;
	int64_t inner = d[3], plane = d[1] * d[2] * inner;
	const int64_t a[] = { plane, t->turned ? inner : d[2] * inner,
			      t->turned ? d[1] * inner : inner, 1 };
	const int64_t b[][4] = {
		{ 0 }, { plane, d[2] * inner, inner, 1 }, { d[1] * d[2], 1, d[1], 0 }, { 0, 1 },
	};
	const int64_t out[] = { d[2] * inner, 0, inner, 1 };

	memcpy(stride[0], a, sizeof(a));
	memcpy(stride[1], b[t->factor], sizeof(b[0]));
	memcpy(stride[2], out, sizeof(out));
}

static size_t point(const int64_t *stride, const int64_t *at)
{
	return (size_t)(at[0] * stride[0] + at[1] * stride[1] + at[2] * stride[2] +
			at[3] * stride[3]);
}

static void check_rows(const struct sum_of_rows *t, int64_t (*stride)[4], const struct vt_mem *mem)
{
	const int64_t *d = t->dim;

	for (int64_t i = 0; i < d[0] * d[2] * d[3]; i++) {
		int64_t at[4] = { i / (d[2] * d[3]), 0, i / d[3] % d[2], i % d[3] };
		double want = t->adds ? 7 : 0;

		for (; at[1] < d[1]; at[1]++)
			want += get_number(t->elem, mem[0].p, point(stride[0], at)) *
				(t->factor ? get_number(t->elem, mem[1].p, point(stride[1], at)) :
					     1);
		assert_true(get_number(t->elem, mem[2].p, point(stride[2], at)) == want);
	}
}

static void sum_rows(struct vt *vt, unsigned n, const struct sum_of_rows *t,
		     const struct vt_mem *mem, uint64_t *seed)
{
	int64_t each = elem_bytes(t->elem), *d = (int64_t *)(uintptr_t)t->dim, stride[3][4];
	int64_t points = d[0] * d[1] * d[2] * d[3], kept = points / d[1];
	bool product = t->factor;
	struct vt_insn in = { .head.insn.op = ISA_VEC, .head.body = {
		.rank = 4, .n_in = 1 + product, .n_out = 1, .n_uop = product || t->narrow,
		.dim = { d[0], d[1], d[2], d[3], 1, 1, 1, 1 } } };
	struct sim_run run;

	lay_sums_out(t, stride);
	for (unsigned k = 0, j = 0; k < 3; k++) {
		if (k == 1 && !product)
			continue;
		in.op[j] = (struct isa_operand){ .elem = t->elem, .binding = (uint16_t)k };
		for (unsigned i = 0; i < 4; i++)
			in.op[j].stride[i] = stride[k][i] * each;
		j++;
	}
	in.op[1 + product].value = (uint8_t)(product ? 2 : t->narrow);
	in.op[1 + product].combine = ISA_COMBINE_ADD;
	in.op[1 + product].flags = t->adds ? ISA_OPERAND_ACC : 0;
	if (product)
		in.uop[0] = vt_uop(UOP_MUL, t->elem, t->b_first, !t->b_first, 0);
	for (int64_t i = 0; i < points; i++)
		for (unsigned k = 0; k < 2; k++)
			set_number(t->elem, mem[k].p, (size_t)i, (int64_t)pick(seed, 17) - 8);
	if (t->narrow) {
		in.op[0].elem = ELEM_BF16;
		in.op[0].binding = 1;
		for (unsigned i = 0; i < 4; i++)
			in.op[0].stride[i] /= 2;
		in.uop[0] = vt_uop(UOP_CVT, ELEM_BF16, 0, 0, 0);
		in.uop[0].to = ELEM_F32;
		make_narrow(mem[0].p, mem[1].p, (size_t)points);
	}
	for (unsigned p = 0; p < n; p++) {
		for (int64_t i = 0; i < kept; i++)
			set_number(t->elem, mem[2].p, (size_t)i, t->adds ? 7 : 1000);
		assert_int_equal(vt_run(&vt[p], &in, (struct vt_mem[]){
			{ mem[0].p, (size_t)(points * each) },
			{ mem[1].p, (size_t)(points * each) },
			{ mem[2].p, (size_t)(kept * each) } }, 3, &run), 0);
		check_rows(t, stride, mem);
	}
}

/* Rows that are summed one on the other, alone or by what they are weighted with: lengths on both
 * sides of a register's, few and many, in one dim or two. */
static void rows_are_summed_where_they_lie(void **state)
{
	static const uint8_t elems[] = { ELEM_F32, ELEM_F64, ELEM_S32, ELEM_S64 };
	static const int64_t dims[][4] = {
		{ 1, 1, 1, 16 }, { 1, 3, 1, 17 }, { 1, 4, 1, 64 }, { 1, 5, 1, 65 }, { 1, 9, 1, 15 },
		{ 1, 127, 1, 31 }, { 1, 128, 1, 32 }, { 1, 129, 1, 33 }, { 2, 1000, 1, 20 },
		{ 3, 40, 1, 100 }, { 2, 7, 12, 64 }, { 1, 300, 5, 16 }, { 2, 33, 3, 130 },
		{ 1, 20, 1, 4100 }, { 1, 3, 1, 2049 }, { 4, 6, 2, 8 }, { 70, 4, 1, 24 },
		{ 300, 4, 1, 24 }, { 600, 2, 1, 40 }, { 65, 16, 1, 768 }, { 9, 3, 1, 16500 },
	};
	enum { MOST = 65 * 16 * 768 };
	struct vt_mem mem[3] = { { malloc(8 * MOST), 0 }, { malloc(8 * MOST), 0 },
				 { malloc(8 * MOST), 0 } };
	struct vt vt[3];
	unsigned n = 0, all = sizeof(dims) / sizeof(*dims) * 4 * 4 * 2;
	uint64_t seed = 5;

	(void)state;
	for (unsigned k = 0; k < 3; k++)
		n += vt_open(&vt[n], paths[k], 1 + k);
	for (unsigned i = 0; i < all; i++) {
		struct sum_of_rows t = { .elem = elems[i % 4], .factor = i / 4 % 4,
					 .turned = i / 16 % 2, .b_first = pick(&seed, 2),
					 .adds = pick(&seed, 3) == 0 };

		t.narrow = t.elem == ELEM_F32 && !t.factor;
		memcpy(t.dim, dims[i / 32], sizeof(t.dim));
		sum_rows(vt, n, &t, mem, &seed);
	}
	while (n)
		vt_close(&vt[--n]);
	for (unsigned k = 0; k < 3; k++)
		free(mem[k].p);
}

/* Each path adds in the same order: the sums of what no f32 keeps exactly are the same bytes. */
static void sums_of_rows_are_the_same_on_each_path(void **state)
{
	enum { ROWS = 700, COLS = 77 };
	static float a[ROWS * COLS], b[ROWS], sum[3][COLS];
	struct vt_insn in = { .head.insn.op = ISA_VEC, .head.body = {
		.rank = 2, .n_in = 2, .n_out = 1, .n_uop = 1,
		.dim = { ROWS, COLS, 1, 1, 1, 1, 1, 1 } } };
	uint64_t seed = 9;
	struct sim_run run;
	struct vt vt;

	(void)state;
	for (unsigned i = 0; i < ROWS * COLS; i++)
		a[i] = (float)pick(&seed, 1000003) / 1009 - 500;
	for (unsigned i = 0; i < ROWS; i++)
		b[i] = (float)pick(&seed, 1000003) / 1013;
	for (unsigned k = 0; k < 3; k++)
		in.op[k] = (struct isa_operand){ .elem = ELEM_F32, .binding = (uint16_t)k,
			.stride = { k == 2 ? 0 : k ? 4 : 4 * COLS, k == 1 ? 0 : 4 } };
	in.op[2].value = 2;
	in.op[2].combine = ISA_COMBINE_ADD;
	in.uop[0] = vt_uop(UOP_MUL, ELEM_F32, 0, 1, 0);
	for (unsigned k = 0; k < 3; k++) {
		memcpy(sum[k], sum[0], sizeof(*sum));
		if (!vt_open(&vt, paths[k], 1 + k))
			continue;
		assert_int_equal(vt_run(&vt, &in, (struct vt_mem[]){ { a, sizeof(a) },
			{ b, sizeof(b) }, { sum[k], sizeof(*sum) } }, 3, &run), 0);
		assert_memory_equal(sum[k], sum[0], sizeof(*sum));
		vt_close(&vt);
	}
	for (unsigned j = 0; j < COLS; j++) {
		double want = 0, bound = 0;

		for (unsigned i = 0; i < ROWS; i++) {
			want += (double)a[i * COLS + j] * (double)b[i];
			bound += fabs((double)a[i * COLS + j] * (double)b[i]);
		}
		assert_true(fabs((double)sum[0][j] - want) <= bound * 1e-6);
	}
}

/* A product beside a sum that is not of it, and another function than a product that is summed: the
 * sum is of what its output names, along rows and of rows, in one tile and in many. */
static void sums_are_of_what_their_output_names(void **state)
{
	enum { MOST = 20000 };
	static float a[MOST * 64], sum[64];
	static const int64_t dims[][2] = { { 5, 16 }, { 32, 64 }, { MOST, 64 } };
	struct sim_run run;

	(void)state;
	for (unsigned i = 0; i < MOST * 64; i++)
		a[i] = 3;
	for (unsigned i = 0; i < 3 * 3 * 2 * 2; i++) {
		int64_t kept = dims[i / 3 % 3][1], folded = dims[i / 3 % 3][0];
		bool along = i / 9 % 2, is_twice = i / 18;
		struct vt_insn in = { .head.insn.op = ISA_VEC, .head.body = {
			.rank = 2, .n_in = 1, .n_out = 1, .n_uop = 1,
			.dim = { folded, kept, 1, 1, 1, 1, 1, 1 } } };
		struct vt vt;

		in.op[0] = (struct isa_operand){ .elem = ELEM_F32,
			.stride = { along ? 4 : kept * 4, along ? folded * 4 : 4 } };
		in.op[1] = (struct isa_operand){ .elem = ELEM_F32, .binding = 1,
			.combine = ISA_COMBINE_ADD, .stride = { 0, 4 } };
		in.uop[0] = vt_uop(is_twice ? UOP_ADD : UOP_MUL, ELEM_F32, 0, 0, 0);
		in.op[1].value = is_twice;
		if (!vt_open(&vt, paths[i % 3], 1 + i % 3))
			continue;
		assert_int_equal(vt_run(&vt, &in, (struct vt_mem[]){
			{ a, (uint64_t)(folded * kept) * 4 }, { sum, (uint64_t)kept * 4 } }, 2,
			&run), 0);
		for (int64_t j = 0; j < kept; j++)
			assert_true(sum[j] == (float)((is_twice ? 6 : 3) * folded));
		vt_close(&vt);
	}
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
		cmocka_unit_test(largest_and_where_it_is),
		cmocka_unit_test(largest_of_short_rows),
		cmocka_unit_test(products_are_summed_along_rows),
		cmocka_unit_test(rows_are_summed_where_they_lie),
		cmocka_unit_test(sums_of_rows_are_the_same_on_each_path),
		cmocka_unit_test(sums_are_of_what_their_output_names),
		cmocka_unit_test(init_enters_once),
		cmocka_unit_test(bad_reductions_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
