/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SORT against a stable sort of the host: comparisons of one and two keys, NaN in total
 * order, up to four arrays, any strides and lines, comparators that contradict
 * themselves, on each path; and what it refuses.
 */
#include "tests/unit/sim/sim_typed.h"
#include "tests/unit/sim/sim_test.h"

enum order {
	LESS,		/* a < b */
	GREATER, TURNED,
	TOTAL,		/* floats with NaN */
	TWO_KEYS,	/* by the first array, then by the second backwards */
	SET_FIRST,	/* pred: a and not b */
	MODULO,		/* a % 7 < b % 7 */
	NEVER,		/* all are equal */
	ORDERS,
	/* and what is no order */
	ALWAYS = ORDERS, LESS_OR_EQUAL, NAN_LESS, LEFT, RIGHT, ALL_KINDS
};

struct trial {
	struct isa_sort s;
	struct isa_operand in[ISA_MAX_SORT], out[ISA_MAX_SORT];
	struct isa_uop uop[8];
	enum order order;
	unsigned k;
	struct vt_mem mem[2 * ISA_MAX_SORT], want[ISA_MAX_SORT], before[ISA_MAX_SORT];
};

static unsigned pick(uint64_t *seed, unsigned n)
{
	return vt_random(seed) % n;
}

static unsigned key_type(uint64_t *seed, enum order order)
{
	static const uint8_t any[] = { ELEM_S8, ELEM_U16, ELEM_S32, ELEM_U32, ELEM_S64,
				       ELEM_U64, ELEM_F32, ELEM_F64 };

	switch (order) {
	case TOTAL:
	case NAN_LESS: return pick(seed, 2) ? ELEM_F32 : ELEM_F64;
	case SET_FIRST:
	case LEFT:
	case RIGHT: return ELEM_PRED;
	case MODULO: return ELEM_U32;
	default: return any[pick(seed, 8)];
	}
}

/* The comparison of values 0 and 1 (and 2 and 3); `first` is its result. */
static void write_body(struct trial *t)
{
	unsigned key = t->in[0].elem, v = 2 * t->k, n = 0;
	struct isa_uop *u = t->uop;

	switch (t->order) {
	case GREATER: u[n++] = vt_uop(UOP_GT, key, 0, 1, 0); break;
	case TURNED: u[n++] = vt_uop(UOP_LT, key, 1, 0, 0); break;
	case TOTAL: u[n++] = vt_uop(UOP_TLT, key, 0, 1, 0); break;
	case LESS_OR_EQUAL: u[n++] = vt_uop(UOP_LE, key, 0, 1, 0); break;
	case TWO_KEYS:
		u[n++] = vt_uop(UOP_LT, key, 0, 1, 0);
		u[n++] = vt_uop(UOP_EQ, key, 0, 1, 0);
		u[n++] = vt_uop(UOP_GT, t->in[1].elem, 2, 3, 0);
		u[n++] = vt_uop(UOP_AND, ELEM_PRED, v + 1, v + 2, 0);
		u[n++] = vt_uop(UOP_OR, ELEM_PRED, v, v + 3, 0);
		break;
	case SET_FIRST:
		u[n++] = vt_uop(UOP_NOT, ELEM_PRED, 1, 0, 0);
		u[n++] = vt_uop(UOP_AND, ELEM_PRED, 0, v, 0);
		break;
	case MODULO:
		u[n] = vt_uop(UOP_IMM, ELEM_U32, 0, 0, 0);
		u[n++].imm = 7;
		u[n++] = vt_uop(UOP_REM, ELEM_U32, 0, v, 0);
		u[n++] = vt_uop(UOP_REM, ELEM_U32, 1, v, 0);
		u[n++] = vt_uop(UOP_LT, ELEM_U32, v + 1, v + 2, 0);
		break;
	case NEVER:
	case ALWAYS:
		u[n] = vt_uop(UOP_IMM, ELEM_PRED, 0, 0, 0);
		u[n++].imm = t->order == ALWAYS;
		break;
	case LEFT:
	case RIGHT: break;
	default: u[n++] = vt_uop(UOP_LT, key, 0, 1, 0);
	}
	t->s.body.n_uop = (uint16_t)n;
	t->s.first = (uint8_t)(n ? v + n - 1 : t->order == RIGHT);
}

/* Few values, so that many are equal; floats that compare as NaN does if need be. */
static void fill_key(uint64_t *seed, const struct trial *t, unsigned j)
{
	static const double odd[] = { NAN, INFINITY, -INFINITY, -0.0, 0.0, 1, -1, -NAN };
	unsigned elem = t->in[j].elem, each = elem_bytes(elem), few = pick(seed, 3);

	for (uint64_t at = 0; at + each <= t->mem[j].bytes; at += each) {
		struct ty v = { .i = (uint64_t)vt_random(seed) << 33 | vt_random(seed) };

		if (few)
			v.i = v.i % 9 - 4;
		v.re = few ? (double)(int64_t)v.i : ty_fraction(seed);
		if (t->order == TOTAL || t->order == NAN_LESS)
			v.re = pick(seed, 2) ? odd[pick(seed, 8)] : v.re;
		if (elem == ELEM_PRED)
			v.i &= 1;
		ty_set(elem, (uint8_t *)t->mem[j].p + at, v);
	}
}

/* ---- the same on the host ---- */

struct element { struct ty v[2]; int64_t at; };

static int64_t total(double x)
{
	int64_t bits;

	memcpy(&bits, &x, sizeof(bits));
	return bits < 0 ? INT64_MIN - bits - 1 : bits;
}

static int compare_key(unsigned elem, struct ty a, struct ty b)
{
	if (!ty_is_integer(elem))
		return a.re < b.re ? -1 : a.re > b.re;
	if (elem_class(elem) == ELEM_CLASS_SINT)
		return (int64_t)a.i < (int64_t)b.i ? -1 : (int64_t)a.i > (int64_t)b.i;
	return a.i < b.i ? -1 : a.i > b.i;
}

static const struct trial *comparing;

static int compare(const void *pa, const void *pb)
{
	const struct element *a = pa, *b = pb;
	const struct trial *t = comparing;
	unsigned elem = t->in[0].elem;
	int c = 0;

	switch (t->order) {
	case LESS: c = compare_key(elem, a->v[0], b->v[0]); break;
	case GREATER:
	case TURNED: c = compare_key(elem, b->v[0], a->v[0]); break;
	case TOTAL:
		c = total(a->v[0].re) < total(b->v[0].re) ? -1 :
		    total(a->v[0].re) > total(b->v[0].re);
		break;
	case TWO_KEYS:
		c = compare_key(elem, a->v[0], b->v[0]);
		c = c ? c : compare_key(t->in[1].elem, b->v[1], a->v[1]);
		break;
	case SET_FIRST: c = a->v[0].i ? b->v[0].i ? 0 : -1 : b->v[0].i ? 1 : 0; break;
	case MODULO: c = (int)(a->v[0].i % 7) - (int)(b->v[0].i % 7); break;
	default: break;
	}
	return c ? c : a->at < b->at ? -1 : 1;
}

static void expect(struct trial *t)
{
	const struct isa_body *b = &t->s.body;
	unsigned d = t->s.sort_dim;
	int64_t n = b->dim[d], lines[ISA_MAX_RANK];
	struct element *e = malloc(sizeof(*e) * (size_t)(n + 1));

	memcpy(lines, b->dim, sizeof(lines));
	lines[d] = 1;
	for (unsigned i = 0; i < b->rank; i++)
		if (!b->dim[i]) {
			free(e);
			return;
		}
	comparing = t;
	IN_EACH_POINT(b->rank, lines, at) {
		for (int64_t i = 0; i < n; i++) {
			at[d] = i;
			e[i].at = i;
			for (unsigned j = 0; j < t->k && j < 2; j++)
				e[i].v[j] = ty_get(t->in[j].elem, (uint8_t *)t->mem[j].p +
						   in_at(&t->in[j], b->rank, at));
		}
		qsort(e, (size_t)n, sizeof(*e), compare);
		for (int64_t i = 0; i < n; i++)
			for (unsigned j = 0; j < t->k; j++) {
				uint8_t *to, *from = t->mem[j].p;

				at[d] = e[i].at;
				from += in_at(&t->in[j], b->rank, at);
				at[d] = i;
				to = (uint8_t *)t->want[j].p + in_at(&t->out[j], b->rank, at);
				memcpy(to, from, elem_bytes(t->in[j].elem));
			}
		at[d] = 0;
	}
	free(e);
}

/* ---- trials ---- */

static void make(struct trial *t, uint64_t *seed, enum order order, unsigned k,
		 unsigned rank, unsigned sort_dim, const int64_t *dim)
{
	static const uint8_t payload[] = { ELEM_U8, ELEM_BF16, ELEM_S32, ELEM_C64, ELEM_C128,
					   ELEM_F8E4M3FN, ELEM_F64 };

	memset(t, 0, sizeof(*t));
	t->order = order;
	t->k = order == TWO_KEYS && k < 2 ? 2 : k;
	t->s.insn = (struct isa_insn){ ISA_SORT, ISA_FLAG_STABLE, 0 };
	t->s.sort_dim = (uint8_t)sort_dim;
	t->s.body.rank = (uint8_t)rank;
	t->s.body.n_in = t->s.body.n_out = (uint8_t)t->k;
	for (unsigned d = 0; d < ISA_MAX_RANK; d++)
		t->s.body.dim[d] = d < rank ? dim[d] : 1;
	for (unsigned j = 0; j < t->k; j++) {
		bool is_key = !j || (j == 1 && order == TWO_KEYS);
		unsigned elem = is_key ? key_type(seed, order) : payload[pick(seed, 7)];
		unsigned each = elem_bytes(elem);

		t->in[j] = (struct isa_operand){ .elem = (uint8_t)elem, .binding = (uint16_t)j };
		t->out[j] = t->in[j];
		t->out[j].binding = (uint16_t)(t->k + j);
		t->mem[j].bytes = in_scatter_strides(seed, &t->in[j], rank, dim, each,
						     pick(seed, 2));
		t->mem[j] = ty_memory(seed, ELEM_U8, true, t->mem[j].bytes);
		if (is_key)
			fill_key(seed, t, j);
		t->before[j] = ty_memory(seed, ELEM_U8, true,
					 in_scatter_strides(seed, &t->out[j], rank, dim, each,
							    pick(seed, 2)));
		t->want[j] = ty_copy(t->before[j]);
		t->mem[t->k + j] = ty_copy(t->before[j]);
	}
	write_body(t);
}

static void run_one(struct vt *vt, struct trial *t)
{
	struct in_code c = { .n = 0 };
	struct sim_run run;
	uint64_t bytes = 0;

	in_put(&c, &t->s, sizeof(t->s));
	in_put(&c, t->in, t->k * sizeof(*t->in));
	in_put(&c, t->out, t->k * sizeof(*t->out));
	in_put(&c, t->uop, t->s.body.n_uop * sizeof(*t->uop));
	for (unsigned j = 0; j < t->k; j++)
		memcpy(t->mem[t->k + j].p, t->before[j].p, t->before[j].bytes);
	assert_int_equal(in_run(vt, &c, t->mem, 2 * t->k, &run), 0);
	for (unsigned j = 0; j < t->k; j++)
		bytes += elem_bytes(t->in[j].elem);
	for (unsigned d = 0; d < t->s.body.rank; d++)
		bytes *= (uint64_t)t->s.body.dim[d];
	assert_int_equal(run.read_bytes, bytes);
	assert_int_equal(run.write_bytes, bytes);
}

static void release(struct trial *t)
{
	for (unsigned j = 0; j < t->k; j++) {
		free(t->mem[j].p);
		free(t->mem[t->k + j].p);
		free(t->want[j].p);
		free(t->before[j].p);
	}
}

static void run_trial(struct vt *vt, unsigned n, struct trial *t)
{
	expect(t);
	for (unsigned i = 0; i < n; i++) {
		run_one(&vt[i], t);
		for (unsigned j = 0; j < t->k; j++)
			assert_memory_equal(t->mem[t->k + j].p, t->want[j].p, t->want[j].bytes);
	}
	release(t);
}

static void stable_sorts_match_the_host(void **state)
{
	static struct trial t;
	struct vt vt[3];
	unsigned n = ty_open(vt);
	uint64_t seed = 53;

	(void)state;
	for (unsigned round = 0; round < 600; round++) {
		unsigned rank = 1 + pick(&seed, 4), sort_dim = pick(&seed, rank);
		int64_t dim[ISA_MAX_RANK];

		for (unsigned d = 0; d < rank; d++)
			dim[d] = in_range(&seed, pick(&seed, 20) ? 1 : 0, 5);
		if (pick(&seed, 10))
			dim[sort_dim] = ty_size(&seed, 300);
		make(&t, &seed, pick(&seed, ORDERS), 1 + pick(&seed, 4), rank, sort_dim, dim);
		run_trial(vt, n, &t);
	}
	ty_close(vt, n);
}

/* One line of each length, and many short ones. */
static void every_short_length(void **state)
{
	static struct trial t;
	struct vt vt[3];
	unsigned n = ty_open(vt);
	uint64_t seed = 59;

	(void)state;
	for (int64_t i = 0; i < 140; i++) {
		make(&t, &seed, (enum order)(i % ORDERS), 1, 1, 0, &i);
		run_trial(vt, n, &t);
		make(&t, &seed, TOTAL, 2, 2, 1, (int64_t[]){ 9, i });
		run_trial(vt, n, &t);
	}
	ty_close(vt, n);
}

/* Lines are taken some at a time, by several lanes. */
static void many_lines(void **state)
{
	static const int64_t dims[][2] = { { 5003, 3 }, { 701, 33 }, { 70, 129 }, { 9001, 1 },
					   { 3, 4095 }, { 33, 1000 }, { 2, 9000 } };
	static struct trial t;
	struct vt vt[3];
	unsigned n = ty_open(vt);
	uint64_t seed = 57;

	(void)state;
	for (unsigned i = 0; i < sizeof(dims) / sizeof(*dims); i++)
		for (unsigned sort_dim = 0; sort_dim < 2; sort_dim++) {
			int64_t dim[2] = { dims[i][!sort_dim], dims[i][sort_dim] };

			make(&t, &seed, (i + sort_dim) % ORDERS, 1 + i % 2, 2, sort_dim, dim);
			run_trial(vt, n, &t);
		}
	ty_close(vt, n);
}

static void lengths_around_powers_of_two(void **state)
{
	static const int64_t sizes[] = { 511, 512, 513, 1023, 1024, 1025, 2047, 2048, 2049, 4095,
					 4096, 4097, 16383, 16385, 32769, 50021 };
	static struct trial t;
	struct vt vt[3];
	unsigned n = ty_open(vt);
	uint64_t seed = 61;

	(void)state;
	for (unsigned i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		make(&t, &seed, (enum order)(i % ORDERS), 1 + i % 3, 1, 0, &sizes[i]);
		run_trial(vt, n, &t);
	}
	make(&t, &seed, TWO_KEYS, 3, 2, 0, (int64_t[]){ 5000, 5 });
	run_trial(vt, n, &t);
	ty_close(vt, n);
}

/* Input and output may be one memory, addressed alike. */
static void sorts_in_place(void **state)
{
	static struct trial t;
	struct vt vt[3];
	unsigned n = ty_open(vt);
	uint64_t seed = 67;

	(void)state;
	for (unsigned round = 0; round < 40; round++) {
		int64_t dim[2] = { in_range(&seed, 1, 4), in_range(&seed, 1, 700) };
		struct vt_mem start[ISA_MAX_SORT];

		make(&t, &seed, pick(&seed, ORDERS), 1 + pick(&seed, 3), 2, round % 2, dim);
		for (unsigned j = 0; j < t.k; j++) {
			free(t.want[j].p);
			t.want[j] = ty_copy(t.mem[j]);
			start[j] = ty_copy(t.mem[j]);
			t.out[j] = t.in[j];
		}
		expect(&t);
		for (unsigned i = 0; i < n; i++) {
			for (unsigned j = 0; j < t.k; j++)
				memcpy(t.mem[j].p, start[j].p, start[j].bytes);
			run_one(&vt[i], &t);
			for (unsigned j = 0; j < t.k; j++)
				assert_memory_equal(t.mem[j].p, t.want[j].p, t.want[j].bytes);
		}
		for (unsigned j = 0; j < t.k; j++)
			free(start[j].p);
		release(&t);
	}
	ty_close(vt, n);
}

/* A key and the places where elements came from: the places must be a permutation,
 * keys must have come along, and, if there is an order, ascend in it. */
static void check_permutation(const struct trial *t, int64_t n)
{
	const int32_t *id = t->mem[t->k + 1].p;
	uint8_t *seen = calloc(1, (size_t)n + 1);
	unsigned each = elem_bytes(t->in[0].elem);

	comparing = t;
	for (int64_t i = 0; i < n; i++) {
		const uint8_t *to = (uint8_t *)t->mem[t->k].p + i * each;
		struct element a = { .at = 0 }, b = { .at = 1 };

		assert_true(id[i] >= 0 && id[i] < n && !seen[id[i]]);
		seen[id[i]] = 1;
		assert_memory_equal(to, (uint8_t *)t->mem[0].p + id[i] * each, each);
		if (!i || t->order >= ORDERS)
			continue;
		a.v[0] = ty_get(t->in[0].elem, to - each);
		b.v[0] = ty_get(t->in[0].elem, to);
		assert_true(compare(&a, &b) < 0);
	}
	free(seen);
}

static void permute(struct vt *vt, unsigned paths, uint64_t *seed, enum order order, int64_t n,
		    unsigned flags)
{
	static struct trial t;

	make(&t, seed, order, 2, 1, 0, &n);
	for (unsigned j = 0; j < 2; j++) {
		unsigned elem = j ? ELEM_S32 : t.in[0].elem;

		t.in[j].elem = t.out[j].elem = (uint8_t)elem;
		t.in[j].offset = t.out[j].offset = 0;
		t.in[j].stride[0] = t.out[j].stride[0] = elem_bytes(elem);
		free(t.mem[j].p);
		free(t.mem[2 + j].p);
		free(t.before[j].p);
		t.mem[j] = ty_memory(seed, elem, false, (uint64_t)n * elem_bytes(elem));
		t.before[j] = ty_copy(t.mem[j]);
		t.mem[2 + j] = ty_copy(t.mem[j]);
	}
	fill_key(seed, &t, 0);
	for (int32_t i = 0; i < n; i++)
		((int32_t *)t.mem[1].p)[i] = i;
	t.s.insn.flags = (uint16_t)flags;
	for (unsigned i = 0; i < paths; i++) {
		run_one(&vt[i], &t);
		check_permutation(&t, n);
	}
	release(&t);
}

static void contradictions_give_permutations(void **state)
{
	static const int64_t sizes[] = { 1, 2, 3, 7, 33, 100, 513, 1025, 5000, 20000 };
	struct vt vt[3];
	unsigned paths = ty_open(vt);
	uint64_t seed = 71;

	(void)state;
	for (enum order order = ORDERS; order < ALL_KINDS; order++)
		for (unsigned i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
			permute(vt, paths, &seed, order, sizes[i], i % 2 ? ISA_FLAG_STABLE : 0);
	ty_close(vt, paths);
}

static void unstable_sorts_keep_all_elements(void **state)
{
	static const int64_t sizes[] = { 2, 9, 100, 777, 3000 };
	static const enum order orders[] = { LESS, GREATER, TOTAL, MODULO, SET_FIRST };
	struct vt vt[3];
	unsigned paths = ty_open(vt);
	uint64_t seed = 73;

	(void)state;
	for (unsigned o = 0; o < 5; o++)
		for (unsigned i = 0; i < 5; i++)
			permute(vt, paths, &seed, orders[o], sizes[i], 0);
	ty_close(vt, paths);
}

/* A mebi of floats on the best path, with time to spare. */
static void a_large_sort(void **state)
{
	const int64_t size = 1 << 20;
	static struct trial t;
	struct vt vt[3];
	unsigned n = ty_open(vt);
	uint64_t seed = 79;

	(void)state;
	do {
		make(&t, &seed, TOTAL, 1, 1, 0, &size);
		if (t.in[0].elem == ELEM_F32)
			break;
		release(&t);
	} while (true);
	run_trial(&vt[n - 1], 1, &t);
	ty_close(vt, n);
}

/* ---- refusals and faults ---- */

static struct t_sim sim;
static struct t_program prog;

struct whole {
	struct isa_sort s;
	struct isa_operand in[2], out[2];
	struct isa_uop uop;
};

/* 4 lines of 4 floats with 4 integers. */
static struct whole good(void)
{
	struct whole w = { .s = { .insn = { ISA_SORT, 0, sizeof(w) }, .sort_dim = 1, .first = 4,
		.body = { .rank = 2, .n_in = 2, .n_out = 2, .n_uop = 1,
			  .dim = { 4, 4, 1, 1, 1, 1, 1, 1 } } },
		.uop = vt_uop(UOP_LT, ELEM_F32, 0, 1, 0) };

	for (unsigned j = 0; j < 2; j++) {
		w.in[j] = (struct isa_operand){ .elem = j ? ELEM_S32 : ELEM_F32,
						.binding = (uint16_t)j, .stride = { 16, 4 } };
		w.out[j] = w.in[j];
		w.out[j].binding = (uint16_t)(2 + j);
	}
	return w;
}

static unsigned run_whole(struct whole w, int64_t reg, uint64_t limit_ns)
{
	unsigned status;

	t_program(&prog);
	for (unsigned i = 0; i < 4; i++)
		t_bind(&prog, T_HBM_VA + i * 64, 64,
		       i >= 2 ? HW_BIND_READ | HW_BIND_WRITE : HW_BIND_READ);
	t_li(&prog, 1, reg);
	t_add(&prog, &w, sizeof(w));
	t_halt(&prog);
	prog.limit_ns = limit_ns;
	memset(sim.hbm, 7, 4096);
	memset(&sim.fault, 0, sizeof(sim.fault));
	status = t_run(&sim, &prog);
	for (unsigned i = 0; i < 4096 && status; i++)
		assert_int_equal(sim.hbm[i], 7);
	return status;
}

static void malformed_sorts_are_refused(void **state)
{
	(void)state;
	t_open(&sim, "lanes=1");
	assert_int_equal(run_whole(good(), 0, 0), 0);
#define REFUSES(change) do { \
		struct whole w = good(); \
	\
		change; \
		assert_int_equal(run_whole(w, 0, 0), HW_ST_BAD_PROGRAM); \
		assert_int_equal(sim.refused_at, sizeof(struct isa_scalar)); \
	} while (0)
	REFUSES(w.s.insn.flags = ISA_FLAG_SORTED);
	REFUSES(w.s.sort_dim = 2);
	REFUSES(w.s.sort_dim = 255);
	REFUSES(w.s.first = 5);
	REFUSES(w.s.first = 0);
	REFUSES(w.s.zero[5] = 1);
	REFUSES(w.s.body.rank = 0);
	REFUSES(w.s.body.rank = 9);
	REFUSES(w.s.body.row_rank = 1);
	REFUSES(w.s.body.zero = 1);
	REFUSES(w.s.body.dim[0] = 5);
	REFUSES(w.s.body.dim[1] = 5);
	REFUSES(w.s.body.dim[1] = -1);
	REFUSES(w.s.body.dim[3] = 2);
	REFUSES((w.s.body.dim[1] = 1ll << 31, w.in[0].stride[1] = w.in[1].stride[1] = 0,
		 w.out[0].stride[1] = w.out[1].stride[1] = 0));
	REFUSES((w.s.body.dim[0] = INT64_MAX, w.in[0].stride[0] = w.in[1].stride[0] = 0,
		 w.out[0].stride[0] = w.out[1].stride[0] = 0));
	REFUSES((w.s.body.n_in = 3, w.s.body.n_out = 1));
	REFUSES((w.s.body.n_in = 1, w.s.body.n_out = 3));
	REFUSES((w.s.body.n_in = 4, w.s.body.n_out = 0));
	REFUSES(w.in[0].elem = ELEM_S32);
	REFUSES(w.out[1].elem = ELEM_F32);
	REFUSES(w.in[1].elem = w.out[1].elem = ELEM_TOKEN);
	REFUSES(w.in[0].stride[1] = 8);
	REFUSES(w.in[0].stride[1] = 2);
	REFUSES(w.out[0].offset = 4);
	REFUSES(w.out[1].binding = 1);
	REFUSES(w.out[1].combine = ISA_COMBINE_MIN);
	REFUSES(w.out[1].reg = 64);
	REFUSES(w.uop.op = UOP_ADD);
	REFUSES(w.uop.op = UOP_IOTA);
	REFUSES(w.uop.op = UOP_RMAX);
	REFUSES(w.uop.a = 2);
	REFUSES(w.uop.a = 4);
	REFUSES(w.uop.elem = ELEM_S32);
#undef REFUSES
	t_close(&sim);
}

static void registers_are_checked_before_the_sort(void **state)
{
	static const int64_t wrong[] = { 4, -4, 64, INT64_MAX, INT64_MIN };

	(void)state;
	t_open(&sim, "lanes=2");
	for (unsigned operand = 0; operand < 4; operand++) {
		struct whole w = good();
		struct isa_operand *op = operand < 2 ? &w.in[operand] : &w.out[operand - 2];

		op->reg = 1;
		assert_int_equal(run_whole(w, 0, 0), 0);
		for (unsigned i = 0; i < 5; i++) {
			assert_int_equal(run_whole(w, wrong[i], 0), HW_ST_BOUNDS);
			assert_int_equal(sim.fault.operand, operand);
			assert_int_equal(sim.fault.binding, operand);
			assert_int_equal(sim.fault.is_write, operand >= 2);
			assert_int_equal(sim.fault.pc, sizeof(struct isa_scalar));
			assert_int_equal(sim.fault.va, (uint64_t)wrong[i]);
		}
		w.s.body.dim[0] = 3;
		assert_int_equal(run_whole(w, 2, 0), HW_ST_ALIGNMENT);
		assert_int_equal(run_whole(w, 4, 0), 0);
	}
	t_close(&sim);
}

/* Lines without end, or one that is too long for its deadline. */
static void endless_sorts_end_by_the_watchdog(void **state)
{
	static const int64_t huge[][2] = { { 1ll << 56, 1 }, { 1ll << 54, 4 }, { 1ll << 49, 100 },
					   { 1, 4 << 20 }, { 3, 1 << 20 } };

	(void)state;
	t_open(&sim, TY_LANES);
	for (unsigned i = 0; i < 5; i++) {
		struct whole w = good();

		memcpy(w.s.body.dim, huge[i], sizeof(huge[i]));
		for (unsigned j = 0; j < 2; j++) {
			memset(w.in[j].stride, 0, sizeof(w.in[j].stride));
			memset(w.out[j].stride, 0, sizeof(w.out[j].stride));
		}
		assert_int_equal(run_whole(w, 0, 1000000), HW_ST_WATCHDOG);
	}
	t_close(&sim);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stable_sorts_match_the_host),
		cmocka_unit_test(every_short_length),
		cmocka_unit_test(many_lines),
		cmocka_unit_test(lengths_around_powers_of_two),
		cmocka_unit_test(sorts_in_place),
		cmocka_unit_test(contradictions_give_permutations),
		cmocka_unit_test(unstable_sorts_keep_all_elements),
		cmocka_unit_test(a_large_sort),
		cmocka_unit_test(malformed_sorts_are_refused),
		cmocka_unit_test(registers_are_checked_before_the_sort),
		cmocka_unit_test(endless_sorts_end_by_the_watchdog),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
