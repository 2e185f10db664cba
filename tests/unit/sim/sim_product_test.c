/* SPDX-License-Identifier: Apache-2.0 */
/* MM against plain loops: every pair of types, sizes around the ends of blocks, turned and spread
 * operands, batches, bodies, on each path; and what it refuses. */
#include "tests/unit/sim/sim_epilogue.h"
#include "tests/unit/sim/sim_test.h"

struct trial {
	struct isa_mm mm;
	struct ep e;
	bool wild;
	char what[160];
};

/* A side over batch dims, its own dim and k; some batch dims are spread. */
static uint64_t place_side(uint64_t *seed, unsigned rank, const int64_t *dim, int64_t own,
			   int64_t k, unsigned own_dim, struct isa_operand *op,
			   int64_t *k_stride)
{
	int64_t dims[ISA_MAX_RANK + 1];
	struct isa_operand all = { .elem = op->elem };
	uint64_t bytes;

	for (unsigned d = 0; d + 2 < rank; d++)
		dims[d] = vt_random(seed) % 4 == 0 && dim[d] ? 1 : dim[d];
	dims[rank - 2] = own;
	dims[rank - 1] = k;
	bytes = ty_layout(seed, &all, rank, dims, elem_bytes(op->elem));
	op->offset = all.offset;
	for (unsigned d = 0; d + 2 < rank; d++)
		op->stride[d] = dims[d] == dim[d] ? all.stride[d] : 0;
	op->stride[own_dim] = all.stride[rank - 2];
	*k_stride = all.stride[rank - 1];
	return bytes;
}

static void expect(struct trial *t)
{
	const struct isa_mm *mm = &t->mm;
	const struct isa_body *b = &t->e.body;

	for (unsigned d = 0; d < b->rank; d++)
		if (!b->dim[d])
			return;
	IN_EACH_POINT(b->rank, b->dim, at) {
		const uint8_t *x = (uint8_t *)t->e.mem[EP_A].p + in_at(&mm->a, b->rank, at);
		const uint8_t *y = (uint8_t *)t->e.mem[EP_B].p + in_at(&mm->b, b->rank, at);
		struct ty_sum sum = { { 0, 0, 0 }, 0 };

		for (int64_t k = 0; k < mm->k; k++)
			ty_madd(&sum, mm->acc, ty_get(mm->a.elem, x + k * mm->a_k_stride),
				ty_get(mm->b.elem, y + k * mm->b_k_stride));
		ep_expect(&t->e, at, &sum, mm->precision, mm->k);
	}
}

static void make(struct trial *t, uint64_t *seed, struct ep_pair pair, enum ep_kind kind,
		 bool wild, unsigned rank, const int64_t *dim, int64_t k)
{
	memset(t, 0, sizeof(*t));
	t->mm = (struct isa_mm){ .insn.op = ISA_MM, .acc = pair.acc, .k = k,
				 .a.elem = pair.a, .b = { .elem = pair.b, .binding = EP_B } };
	/* Sums that round have no body: what it would do to errors is its own matter. */
	if (wild && !ty_is_integer(pair.acc))
		kind = EP_DIRECT;
	t->wild = wild;
	ep_make(&t->e, seed, kind, pair.acc, wild, rank, dim);
	t->e.mem[EP_A].bytes = place_side(seed, rank, dim, dim[rank - 2], k, rank - 2,
					  &t->mm.a, &t->mm.a_k_stride);
	t->e.mem[EP_B].bytes = place_side(seed, rank, dim, dim[rank - 1], k, rank - 1,
					  &t->mm.b, &t->mm.b_k_stride);
	t->e.mem[EP_A] = ty_memory(seed, pair.a, wild, t->e.mem[EP_A].bytes);
	t->e.mem[EP_B] = ty_memory(seed, pair.b, wild, t->e.mem[EP_B].bytes);
	if (pair.acc == ELEM_F32)
		t->mm.precision = (uint8_t)(vt_random(seed) % 3);
	t->mm.body = t->e.body;
	snprintf(t->what, sizeof(t->what), "%s by %s in %s, body %u, rank %u, %lldx%lldx%lld",
		 elem_text(pair.a), elem_text(pair.b), elem_text(pair.acc), t->e.kind, rank,
		 (long long)dim[rank - 2], (long long)dim[rank - 1], (long long)k);
}

static void run_trial(struct vt *vt, unsigned n, struct trial *t)
{
	struct sim_run run;

	expect(t);
	for (unsigned i = 0; i < n; i++) {
		struct in_code c = { .n = 0 };

		in_put(&c, &t->mm, sizeof(t->mm));
		ep_put(&t->e, &c);
		ep_start(&t->e);
		if (in_run(&vt[i], &c, t->e.mem, EP_MEMORIES, &run))
			fail_msg("%s: does not run", t->what);
		ep_check(&t->e, t->what);
	}
	free(t->e.mem[EP_A].p);
	free(t->e.mem[EP_B].p);
	ep_free(&t->e);
}

/* Dims and k whose product is at most `work`. */
static int64_t random_dims(uint64_t *seed, unsigned rank, int64_t *dim, int64_t work)
{
	unsigned order = vt_random(seed) % 3;
	int64_t k = 1;

	for (unsigned d = 0; d + 2 < rank; d++) {
		dim[d] = in_range(seed, 1, rank > 4 ? 2 : 4);
		work /= dim[d];
	}
	/* Which is drawn first may be the longest. */
	for (unsigned i = 0; i < 3; i++) {
		unsigned which = (order + i) % 3;
		int64_t n = ty_size(seed, work);

		if (which == 2)
			k = n;
		else
			dim[rank - 2 + which] = n;
		work /= n;
	}
	return k;
}

static void every_pair_of_types(void **state)
{
	static struct trial t;
	int64_t dim[ISA_MAX_RANK];
	struct vt vt[3];
	unsigned n = ty_open(vt);
	uint64_t seed = 11;

	(void)state;
	for (unsigned p = 0; p < EP_N_PAIRS; p++)
		for (unsigned kind = 0; kind < EP_KINDS; kind++)
			for (unsigned wild = 0; wild < 2; wild++) {
				unsigned rank = 2 + vt_random(&seed) % 3;
				int64_t k = random_dims(&seed, rank, dim, 30000);

				make(&t, &seed, ep_pairs[p], kind, wild, rank, dim, k);
				run_trial(vt, n, &t);
			}
	ty_close(vt, n);
}

/* Each of m, n and k around the ends of lines, panels and blocks. */
static void ends_of_blocks(void **state)
{
	static const int64_t edges[] = { 1, 2, 3, 11, 12, 13, 15, 16, 17, 31, 32, 33, 47, 48,
					 49, 63, 64, 65, 127, 129, 191, 192, 193, 255, 256,
					 257, 383, 384, 385, 511, 512, 513, 959, 960, 961, 1023,
					 1024, 1025, 1919, 1920, 1921, 2047, 2048, 2049, 3841 };
	static const struct ep_pair pairs[] = {
		{ ELEM_F32, ELEM_F32, ELEM_F32 }, { ELEM_BF16, ELEM_BF16, ELEM_F32 },
		{ ELEM_S8, ELEM_S8, ELEM_S32 }, { ELEM_F64, ELEM_F64, ELEM_F64 },
		{ ELEM_S16, ELEM_S16, ELEM_S32 }, { ELEM_U8, ELEM_S8, ELEM_S32 },
		{ ELEM_S32, ELEM_S32, ELEM_S32 }, { ELEM_U64, ELEM_U64, ELEM_U64 },
		{ ELEM_PRED, ELEM_PRED, ELEM_PRED }, { ELEM_F16, ELEM_F16, ELEM_F32 },
	};
	static struct trial t;
	struct vt vt[3];
	unsigned n = ty_open(vt);
	uint64_t seed = 5;

	(void)state;
	for (unsigned i = 0; i < sizeof(edges) / sizeof(*edges); i++)
		for (unsigned which = 0; which < 3; which++)
			for (unsigned p = 0; p < sizeof(pairs) / sizeof(*pairs); p++) {
				int64_t size[3] = { in_range(&seed, 1, 7), in_range(&seed, 1, 7),
						    in_range(&seed, 1, 7) };

				size[which] = edges[i];
				make(&t, &seed, pairs[p], vt_random(&seed) % EP_KINDS,
				     vt_random(&seed) % 2, 2, size, size[2]);
				run_trial(vt, n, &t);
			}
	ty_close(vt, n);
}

static const struct ep_pair in_panels[] = {
	{ ELEM_F32, ELEM_F32, ELEM_F32 }, { ELEM_BF16, ELEM_BF16, ELEM_F32 },
	{ ELEM_S8, ELEM_S8, ELEM_S32 }, { ELEM_C64, ELEM_C64, ELEM_C64 },
};

/* A block of several panels of a, each along k in several, with an end of both in each. */
static void panels_of_a_block(void **state)
{
	static const int64_t m[] = { 191, 193, 257, 385, 513, 577 }, k[] = { 257, 513, 1025 };
	static struct trial t;
	struct vt vt[3];
	unsigned n = ty_open(vt);
	uint64_t seed = 29;

	(void)state;
	for (unsigned round = 0; round < 24; round++) {
		int64_t size[2] = { m[round % 6], in_range(&seed, 1, 40) };

		make(&t, &seed, in_panels[round / 6], vt_random(&seed) % EP_KINDS, round % 2, 2,
		     size, k[round / 2 % 3]);
		run_trial(vt, n, &t);
	}
	ty_close(vt, n);
}

/* Tall blocks whose k takes more panels of b than a task packs at a time, and just as many. */
static void lengths_of_k(void **state)
{
	static const int64_t k[] = { 2047, 2048, 2049, 4097 };
	static const int64_t m[] = { 192, 193, 256, 257, 400 };
	static struct trial t;
	struct vt vt[3];
	unsigned n = ty_open(vt);
	uint64_t seed = 31;

	(void)state;
	for (unsigned round = 0; round < 48; round++) {
		unsigned p = round / 12;
		int64_t size[2] = { m[round % 5], in_range(&seed, 1, 3) };
		int64_t group = p == 1 ? 2 : p == 2 ? 4 : 1;

		make(&t, &seed, in_panels[p], vt_random(&seed) % EP_KINDS, round % 2, 2, size,
		     group * k[round / 3 % 4]);
		run_trial(vt, n, &t);
	}
	ty_close(vt, n);
}

/* Kernels that a CPU with better ones has, too. */
static void kernels_of_lesser_cpus(void **state)
{
	static struct trial t;
	uint64_t seed = 41;
	struct vt vt;

	(void)state;
	if (!vt_open(&vt, "avx512", 2))
		skip();
	for (unsigned round = 0; round < 200; round++) {
		int64_t size[2] = { in_range(&seed, 1, 200), in_range(&seed, 1, 40) };

		vt.sim->cpu.amx_bf16 = vt.sim->cpu.amx_int8 = false;
		vt.sim->cpu.bf16_slow = round / 2 % 2;
		vt.sim->cpu.avx512_vnni &= round < 100;
		make(&t, &seed, in_panels[1 + round % 2], vt_random(&seed) % EP_KINDS,
		     round / 4 % 2, 2, size, in_range(&seed, 1, 600));
		run_trial(&vt, 1, &t);
	}
	vt_close(&vt);
}

/* c = a * b, dense but for b's rows, `pitch` elements apart, or its columns, -pitch of them. */
static void multiply(struct vt *vt, uint8_t elem, int64_t rows, int64_t n, int64_t k, int64_t pitch,
		     uint8_t *a, uint8_t *b, uint8_t *c)
{
	uint8_t acc = elem == ELEM_BF16 ? ELEM_F32 : elem;
	int64_t each = elem_bytes(elem), sum = elem_bytes(acc);
	struct isa_mm mm = { .insn.op = ISA_MM, .acc = acc, .k = k, .a_k_stride = each,
		.a = { .elem = elem, .stride = { each * k, 0 } },
		.b = { elem, 0, 2, .stride[1] = pitch < 0 ? -each * pitch : each },
		.b_k_stride = pitch < 0 ? each : each * pitch, .body = { .rank = 2, .n_out = 1,
			.dim = { rows, n, 1, 1, 1, 1, 1, 1 } } };
	struct isa_operand to = { .elem = acc, .binding = 1, .stride = { sum * n, sum } };
	struct in_code code = { .n = 0 };
	struct sim_run run;

	in_put(&code, &mm, sizeof(mm));
	in_put(&code, &to, sizeof(to));
	assert_int_equal(in_run(vt, &code, (struct vt_mem[]){
		{ a, (size_t)(each * rows * k) }, { c, (size_t)(sum * rows * n) },
		{ b, (size_t)(each * (pitch < 0 ? k * n : (k - 1) * pitch + n)) } }, 3, &run), 0);
	assert_int_equal(run.read_bytes, each * k * (rows + n));
	assert_int_equal(run.write_bytes, sum * rows * n);
	assert_int_equal(run.matrix_ops, rows * n * k);
}

static void put_fractions(uint64_t *seed, uint8_t elem, int64_t n, uint8_t *to)
{
	for (int64_t i = 0; i < n; i++) {
		double wide = ty_fraction(seed);
		float narrow = (float)wide;

		if (elem == ELEM_F32)
			memcpy(to + 4 * i, &narrow, 4);
		else if (elem == ELEM_BF16)	/* the upper half */
			memcpy(to + 2 * i, (const uint8_t *)&narrow + 2, 2);
		else if (elem == ELEM_S32)
			*(uint32_t *)(void *)(to + 4 * i) = (uint32_t)vt_random(seed);
		else	/* as bits, whole numbers as good as any */
			memcpy(to + 8 * i, &wide, 8);
	}
}

/* Of few rows or columns sides are read where they lie; each row is as among many, to the bit. */
static void few_rows_are_as_among_many(void **state)
{
	enum { MANY = 136, MOST_N = 8193, MOST_K = 523, N_ROWS = 16 };
	static const uint8_t elems[] = { ELEM_F32, ELEM_F64, ELEM_S32, ELEM_U64, ELEM_BF16 };
	static const int64_t rows[] = { 1, 1, 2, 3, 4, 5, 7, 12, 13, 16, 17, 31, 39, 40, 41, 127 };
	static const int64_t ns[] = { 1, 3, 8, 15, 16, 17, 33, 511, 512, 513, 1030, 4097, 8193 };
	static const int64_t ks[] = { 1, 3, 4, 5, 7, 8, 9, 15, 255, 256, 257, 523 };
	uint8_t *a = malloc(8 * MANY * MOST_K), *turned = malloc(8 * MOST_K * (2 * MOST_N + 300));
	uint8_t *c = malloc(16 * MANY * MOST_N), *few = c + 8 * MANY * MOST_N;
	uint8_t *b = turned + 8 * MOST_K * MOST_N;
	struct vt vt[3];
	unsigned paths = ty_open(vt);
	uint64_t seed = 77;

	(void)state;
	for (unsigned t = 0; t < 5 * 12 * 13; t++) {
		uint8_t elem = elems[t % 5];
		int64_t k = ks[t / 5 % 12], n = ns[t / 5 / 12], pitch = n + t % 3 * 150;
		size_t each = elem_bytes(elem), row = (size_t)n * (each == 2 ? 4 : each);
		int64_t many = n > 1030 ? 41 : MANY;	/* else of one row */
		unsigned step = many == 41 ? N_ROWS : 1u + (n > 40) + 2 * (n > 100);

		put_fractions(&seed, elem, MANY * k, a);
		put_fractions(&seed, elem, k * pitch, b);
		for (int64_t i = 0; i < k * n; i++)
			memcpy(turned + (i % n * k + i / n) * each,
			       b + (i / n * pitch + i % n) * each, each);
		for (unsigned p = 0; p < paths && (n <= 1030 || t / 5 % 3 == 1); p++) {
			vt[p].sim->cpu.bf16_slow = t / 5 % 2;
			vt[p].sim->cpu.amx_bf16 &= t < 5 * 12 * 5;
			multiply(&vt[p], elem, many, n, k, pitch, a, b, c);
			for (unsigned i = many > 41 ? t % 4 : t % 2; i < N_ROWS; i += step) {
				memset(few, 0xff, MANY * row);
				multiply(&vt[p], elem, rows[i], n, k, i % 3 ? pitch : -k, a,
					 i % 3 ? b : turned, few);
				assert_memory_equal(few, c, (size_t)rows[i] * row);
			}
		}
	}
	ty_close(vt, paths);
	free(a);
	free(c);
	free(turned);
}

/* mem[3] = mem[0] * mem[1] + mem[2], rows and columns of both at the given strides. */
static void multiply_and_add(struct vt *vt, uint8_t elem, const int64_t *size, bool sum_first,
			     const int64_t *c_stride, const int64_t *out_stride,
			     uint8_t *const *mem)
{
	int64_t each = elem_bytes(elem), m = size[0], n = size[1], k = size[2];
	struct isa_mm mm = { .insn.op = ISA_MM, .acc = elem, .k = k, .a_k_stride = each,
		.a = { .elem = elem, .stride = { each * k, 0 } },
		.b = { .elem = elem, .binding = 1, .stride = { 0, each } },
		.b_k_stride = each * n, .body = { .rank = 2, .n_in = 1, .n_out = 1, .n_uop = 1,
			.dim = { m, n, 1, 1, 1, 1, 1, 1 } } };
	struct isa_operand in = { .elem = elem, .binding = 2,
				  .stride = { each * c_stride[0], each * c_stride[1] } };
	struct isa_operand to = { .elem = elem, .binding = mem[2] == mem[3] ? 2 : 3, .value = 2,
				  .stride = { each * out_stride[0], each * out_stride[1] } };
	struct isa_uop add = { .op = UOP_ADD, .elem = elem, .a = !sum_first, .b = sum_first };
	struct in_code code = { .n = 0 };
	struct sim_run run;

	in_put(&code, &mm, sizeof(mm));
	in_put(&code, &in, sizeof(in));
	in_put(&code, &to, sizeof(to));
	in_put(&code, &add, sizeof(add));
	assert_int_equal(in_run(vt, &code, (struct vt_mem[]){
		{ mem[0], (size_t)(each * m * k) }, { mem[1], (size_t)(each * k * n) },
		{ mem[2], (size_t)(each * m * n) }, { mem[3], (size_t)(each * m * n) } }, 4,
		&run), 0);
}

static double element(uint8_t elem, const uint8_t *from, int64_t i)
{
	double wide;
	float narrow;

	memcpy(&wide, from + (elem == ELEM_F64 ? 8 * i : 0), 8);
	memcpy(&narrow, from + (elem == ELEM_F32 ? 4 * i : 0), 4);
	return elem == ELEM_F64 ? wide : (double)narrow;
}

/* Whoever adds, a kernel or the epilogue, and wherever that lies: what is added comes last, to the
 * sum of all products. */
static void what_is_added_is_added_last(void **state)
{
	static const int64_t sizes[][3] = {
		{ 1, 40, 30 }, { 7, 33, 256 }, { 16, 513, 64 }, { 17, 20, 255 }, { 40, 600, 257 },
		{ 64, 1024, 64 }, { 193, 31, 256 }, { 256, 520, 100 }, { 5, 1, 9 }, { 1, 1, 300 },
		{ 1, 4096, 30 }, { 1, 4097, 300 }, { 1, 9000, 257 },
	};
	struct vt vt[3];
	unsigned paths = ty_open(vt);
	uint64_t seed = 78;

	(void)state;
	for (unsigned t = 0; t < 13 * 10; t++) {
		const int64_t *size = sizes[t / 10];
		uint8_t elem = t % 2 ? ELEM_F32 : ELEM_F64;
		int64_t m = size[0], n = size[1], k = size[2], each = elem_bytes(elem);
		size_t bytes = (size_t)(each * m * n);
		const int64_t strides[5][2] = { { n, 1 }, { 0, 1 }, { 1, 0 }, { 1, m }, { 0, 0 } };
		const int64_t *c_stride = strides[t / 2 % 5];
		const int64_t *out_stride = strides[t % 3 == 1 ? 3 : 0];
		bool in_place = t % 3 == 2 && t / 2 % 5 == 0;
		uint8_t *mem[4] = { malloc((size_t)(8 * m * k)), malloc((size_t)(8 * k * n)),
				    malloc(bytes + 8), malloc(bytes + 8) };
		uint8_t *sums = malloc(bytes + 8), *c = malloc(bytes + 8);

		put_fractions(&seed, elem, m * k, mem[0]);
		put_fractions(&seed, elem, k * n, mem[1]);
		put_fractions(&seed, elem, m * n, c);
		for (unsigned p = 0; p < paths; p++) {
			uint8_t *const used[4] = { mem[0], mem[1], mem[2],
						   in_place ? mem[2] : mem[3] };

			memcpy(mem[2], c, bytes);
			multiply(&vt[p], elem, m, n, k, n, mem[0], mem[1], sums);
			multiply_and_add(&vt[p], elem, size, t % 4 < 2, c_stride, out_stride, used);
			for (int64_t i = 0; i < m * n; i++) {
				int64_t row = i / n, col = i % n;
				double want = element(elem, sums, i) + element(elem, c,
					row * c_stride[0] + col * c_stride[1]);
				double is = element(elem, used[3],
						    row * out_stride[0] + col * out_stride[1]);

				want = elem == ELEM_F32 ? (double)(float)want : want;
				if (is != want)
					fail_msg("case %u, path %u, row %lld, column %lld: %.17g, "
						 "not %.17g", t, p, (long long)row, (long long)col,
						 is, want);
			}
		}
		for (unsigned i = 0; i < 4; i++)
			free(mem[i]);
		free(sums);
		free(c);
	}
	ty_close(vt, paths);
}

static void batches_of_up_to_eight_dims(void **state)
{
	static struct trial t;
	int64_t dim[ISA_MAX_RANK];
	struct vt vt[3];
	unsigned n = ty_open(vt);
	uint64_t seed = 23;

	(void)state;
	for (unsigned round = 0; round < 60; round++) {
		unsigned rank = 3 + round % 6;
		int64_t k = random_dims(&seed, rank, dim, 20000);

		make(&t, &seed, ep_pairs[vt_random(&seed) % EP_N_PAIRS],
		     vt_random(&seed) % EP_KINDS, round % 2, rank, dim, k);
		run_trial(vt, n, &t);
	}
	ty_close(vt, n);
}

static const struct ep_pair same_pairs[] = {
	{ ELEM_F32, ELEM_F32, ELEM_F32 }, { ELEM_F64, ELEM_F64, ELEM_F64 },
	{ ELEM_S32, ELEM_S32, ELEM_S32 }, { ELEM_U32, ELEM_U32, ELEM_U32 },
	{ ELEM_S64, ELEM_S64, ELEM_S64 }, { ELEM_BF16, ELEM_BF16, ELEM_F32 },
};

/* Products that are small enough to be multiplied side by side, or one where it lies, and such that
 * are just not. */
static void many_small_products(void **state)
{
	static const int64_t size[][3] = { { 1, 1, 1 }, { 3, 3, 3 }, { 4, 4, 4 }, { 2, 5, 3 },
		{ 8, 8, 8 }, { 5, 1, 9 }, { 1, 6, 7 }, { 16, 16, 16 }, { 16, 17, 3 }, { 16, 3, 17 },
		{ 3, 16, 17 }, { 1, 2, 128 }, { 128, 2, 1 }, { 256, 1, 1 }, { 257, 1, 1 },
		{ 1, 256, 1 }, { 1, 257, 1 }, { 1, 1, 257 }, { 11, 13, 12 }, { 7, 9, 16 },
		{ 8, 8, 16 }, { 5, 41, 5 }, { 63, 16, 1 } };
	static const int64_t batches[][2] = { { 1, 1 }, { 1, 15 }, { 1, 16 }, { 17, 1 }, { 3, 11 },
		{ 32, 2 }, { 1, 31 } };
	static struct trial t;
	struct vt vt[3];
	unsigned n = ty_open(vt);
	uint64_t seed = 41;

	(void)state;
	for (unsigned i = 0; i < sizeof(size) / sizeof(*size); i++)
		for (unsigned j = 0; j < sizeof(batches) / sizeof(*batches); j++)
			for (unsigned p = 0; p < sizeof(same_pairs) / sizeof(*same_pairs); p++) {
				int64_t dim[4] = { batches[j][0], batches[j][1], size[i][0],
						   size[i][1] };

				make(&t, &seed, same_pairs[p], vt_random(&seed) % EP_KINDS,
				     vt_random(&seed) % 2, 4, dim, size[i][2]);
				run_trial(vt, n, &t);
			}
	ty_close(vt, n);
}

/* Rows enough, of few enough columns and k, to be multiplied some at a time, and just not. */
static void many_rows_of_few_columns(void **state)
{
	static const int64_t rows[] = { 63, 64, 65, 191, 192, 193, 400 }, cols[] = { 1, 3, 4, 15,
		16, 17 }, k[] = { 1, 2, 3, 63, 64, 65 };
	static struct trial t;
	struct vt vt[3];
	unsigned n = ty_open(vt);
	uint64_t seed = 43;

	(void)state;
	for (unsigned i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		for (unsigned j = 0; j < sizeof(cols) / sizeof(*cols); j++)
			for (unsigned l = 0; l < sizeof(k) / sizeof(*k); l++) {
				int64_t dim[3] = { in_range(&seed, 1, 2), rows[i], cols[j] };

				make(&t, &seed, same_pairs[(i + j + l) % 6],
				     vt_random(&seed) % EP_KINDS, vt_random(&seed) % 2, 3, dim,
				     k[l]);
				run_trial(vt, n, &t);
			}
	ty_close(vt, n);
}

/* A dim of 0 changes nothing; k = 0 gives the body of zeros. */
static void empty_products(void **state)
{
	static struct trial t;
	struct vt vt[3];
	unsigned n = ty_open(vt);
	uint64_t seed = 3;

	(void)state;
	for (unsigned p = 0; p < EP_N_PAIRS; p++)
		for (unsigned kind = 0; kind < EP_KINDS; kind++)
			for (unsigned zero = 0; zero < 4; zero++) {
				int64_t size[4] = { 2, 5, 40, 3 };

				size[zero] = 0;
				make(&t, &seed, ep_pairs[p], kind, false, 3, size, size[3]);
				run_trial(vt, n, &t);
			}
	ty_close(vt, n);
}

/* Enough for several lanes and blocks, all of it exact. */
static void large_products(void **state)
{
	enum { M = 517, N = 389, K = 530 };
	float *a = malloc(sizeof(float) * M * K), *b = malloc(sizeof(float) * K * N);
	float *out = malloc(sizeof(float) * M * N), *want = calloc(M * N, sizeof(float));
	struct isa_mm mm = { .insn.op = ISA_MM, .acc = ELEM_F32, .k = K, .a_k_stride = 4,
		.a = { .elem = ELEM_F32, .stride = { 4 * K, 0 } },
		.b = { .elem = ELEM_F32, .binding = 1, .stride = { 0, 4 } },
		.b_k_stride = 4 * N, .body = { .rank = 2, .n_out = 1,
			.dim = { M, N, 1, 1, 1, 1, 1, 1 } } };
	struct isa_operand to = { .elem = ELEM_F32, .binding = 2, .stride = { 4 * N, 4 } };
	struct vt vt[3];
	unsigned n = ty_open(vt);
	struct sim_run run;
	uint64_t seed = 1;

	(void)state;
	for (unsigned i = 0; i < M * K; i++)
		a[i] = (float)ty_small(&seed);
	for (unsigned i = 0; i < K * N; i++)
		b[i] = (float)ty_small(&seed);
	for (unsigned i = 0; i < M; i++)
		for (unsigned k = 0; k < K; k++)
			for (unsigned j = 0; j < N; j++)
				want[i * N + j] += a[i * K + k] * b[k * N + j];
	for (unsigned i = 0; i < n; i++) {
		struct in_code c = { .n = 0 };

		in_put(&c, &mm, sizeof(mm));
		in_put(&c, &to, sizeof(to));
		memset(out, 0xff, sizeof(float) * M * N);
		assert_int_equal(in_run(&vt[i], &c, (struct vt_mem[]){
			{ a, sizeof(float) * M * K }, { b, sizeof(float) * K * N },
			{ out, sizeof(float) * M * N } }, 3, &run), 0);
		assert_memory_equal(out, want, sizeof(float) * M * N);
	}
	ty_close(vt, n);
	free(a);
	free(b);
	free(out);
	free(want);
}

/* Products of which the lanes share b's panels or pack them with the sums of their first rows,
 * around what decides of it: rows and columns for each lane, how b lies, work, few batches, kept
 * panels of a and too many, more of b than is shared at a time, joined rows. Sums are exact, so
 * that all paths give the same; some rows are held against loops. */
static void shared_panels(void **state)
{
	static const struct { int64_t batch, m, n, k; bool turned; } sizes[] = {
		{ 1, 23, 1030, 600, 0 }, { 1, 24, 1030, 600, 0 }, { 1, 96, 700, 600, 1 },
		{ 1, 287, 383, 300, 0 }, { 1, 288, 384, 300, 0 }, { 1, 300, 300, 555, 1 },
		{ 1, 399, 128, 520, 0 }, { 1, 400, 127, 556, 0 }, { 1, 577, 1030, 257, 1 },
		{ 1, 799, 256, 257, 0 }, { 1, 800, 255, 257, 0 }, { 3, 200, 545, 500, 0 },
		{ 1, 1199, 385, 70, 0 }, { 1, 1200, 384, 70, 0 }, { 2, 385, 133, 1000, 1 },
		{ 1, 200, 1537, 4096, 0 }, { 1, 200, 1537, 4097, 0 }, { 1, 290, 1025, 8192, 1 },
		{ 1, 290, 1025, 8193, 1 }, { 1, 5003, 40, 400, 0 }, { 1, 3461, 513, 70, 0 },
	};
	struct vt vt[3];
	unsigned n_paths = ty_open(vt);
	struct sim_run run;
	uint64_t seed = 37;

	(void)state;
	for (unsigned s = 0; s < sizeof(sizes) / sizeof(*sizes); s++) {
		int64_t batch = sizes[s].batch, m = sizes[s].m, n = sizes[s].n, k = sizes[s].k;
		size_t a_bytes = (size_t)(4 * batch * m * k);
		size_t b_bytes = (size_t)(4 * batch * n * k);
		size_t bytes = (size_t)(4 * batch * m * n);
		float *a = malloc(a_bytes), *b = malloc(b_bytes), *out = malloc(bytes);
		float *first = NULL;
		bool turned = sizes[s].turned;	/* b's columns lie along k */
		struct isa_mm mm = { .insn.op = ISA_MM, .acc = ELEM_F32, .k = k, .a_k_stride = 4,
			.a = { .elem = ELEM_F32, .stride = { 4 * m * k, 4 * k, 0 } },
			.b = { .elem = ELEM_F32, .binding = 1,
			       .stride = { 4 * n * k, 0, turned ? 4 * k : 4 } },
			.b_k_stride = turned ? 4 : 4 * n, .body = { .rank = 3, .n_out = 1,
				.dim = { batch, m, n, 1, 1, 1, 1, 1 } } };
		struct isa_operand to = { .elem = ELEM_F32, .binding = 2,
					  .stride = { 4 * m * n, 4 * n, 4 } };

		for (size_t i = 0; i < a_bytes / 4; i++)
			a[i] = (float)ty_small(&seed);
		for (size_t i = 0; i < b_bytes / 4; i++)
			b[i] = (float)ty_small(&seed);
		for (unsigned i = 0; i < n_paths; i++) {
			struct in_code c = { .n = 0 };

			in_put(&c, &mm, sizeof(mm));
			in_put(&c, &to, sizeof(to));
			memset(out, 0xff, bytes);
			assert_int_equal(in_run(&vt[i], &c, (struct vt_mem[]){ { a, a_bytes },
				{ b, b_bytes }, { out, bytes } }, 3, &run), 0);
			if (first)
				assert_memory_equal(out, first, bytes);
			else
				memcpy(first = malloc(bytes), out, bytes);
		}
		for (int64_t r = 0; r < batch * m; r += r % m == m - 2 ? 1 : m / 2 - 1)
			for (int64_t j = 0; j < n; j++) {
				const float *x = a + r * k, *y = b + r / m * n * k;
				float want = 0;

				for (int64_t i = 0; i < k; i++)
					want += x[i] * (turned ? y[j * k + i] : y[i * n + j]);
				if (first[r * n + j] != want)
					fail_msg("size %u, row %lld, column %lld: %g, not %g", s,
						 (long long)r, (long long)j,
						 (double)first[r * n + j], (double)want);
			}
		free(a);
		free(b);
		free(out);
		free(first);
	}
	ty_close(vt, n_paths);
}

static void fill_extremes(uint64_t *seed, unsigned elem, struct vt_mem m)
{
	unsigned each = elem_bytes(elem), bits = each * 8;
	uint64_t least = elem_class(elem) == ELEM_CLASS_SINT ? 1ull << (bits - 1) : 0;

	for (uint64_t at = 0; at + each <= m.bytes; at += each) {
		uint64_t v = vt_random(seed) % 4 ? least : least - 1;

		memcpy((uint8_t *)m.p + at, &v, each);
	}
}

/* The smallest and largest integers, whose sums leave every narrower type. */
static void extremes_of_integers(void **state)
{
	static struct trial t;
	struct vt vt[3];
	unsigned n = ty_open(vt);
	uint64_t seed = 37;

	(void)state;
	for (unsigned p = 0; p < EP_N_PAIRS; p++)
		for (unsigned round = 0; round < 4; round++) {
			int64_t size[] = { 5, 37, round % 2 ? 1500 : 31 };

			if (!ty_is_integer(ep_pairs[p].acc) || ep_pairs[p].acc == ELEM_PRED)
				continue;
			make(&t, &seed, ep_pairs[p], EP_DIRECT, true, 2, size, size[2]);
			fill_extremes(&seed, ep_pairs[p].a, t.e.mem[EP_A]);
			fill_extremes(&seed, ep_pairs[p].b, t.e.mem[EP_B]);
			run_trial(vt, n, &t);
		}
	ty_close(vt, n);
}

/* NaN and infinity reach the rows and columns that hold them and no others: neither
 * through what fills blocks up nor through what an earlier product left behind. */
static void specials_stay_where_they_are(void **state)
{
	static const unsigned types[] = { ELEM_F32, ELEM_BF16, ELEM_F64 };
	enum { M = 19, N = 35, K = 37 };
	struct vt vt[3];
	unsigned n = ty_open(vt);
	struct sim_run run;
	uint64_t seed = 9;

	(void)state;
	for (unsigned v = 0; v < 3 * n; v++) {
		unsigned elem = types[v / n], acc = elem == ELEM_BF16 ? ELEM_F32 : elem;
		int64_t each = elem_bytes(elem), wide = elem_bytes(acc);
		struct vt_mem m[3] = { ty_memory(&seed, elem, true, (uint64_t)(M * K * each)),
				       ty_memory(&seed, elem, true, (uint64_t)(N * K * each)),
				       ty_memory(&seed, acc, true, (uint64_t)(M * N * wide)) };
		struct isa_mm mm = { .insn.op = ISA_MM, .acc = (uint8_t)acc, .k = K,
			.a = { .elem = (uint8_t)elem, .stride = { K * each, 0 } },
			.b = { .elem = (uint8_t)elem, .binding = 1, .stride = { 0, each } },
			.a_k_stride = each, .b_k_stride = N * each,
			.body = { .rank = 2, .n_out = 1, .dim = { M, N, 1, 1, 1, 1, 1, 1 } } };
		struct isa_operand to = { .elem = (uint8_t)acc, .binding = 2,
					  .stride = { N * wide, wide } };
		struct in_code c = { .n = 0 };

		ty_set(elem, (uint8_t *)m[0].p + (4 * K + 36) * each,
		       (struct ty){ .re = INFINITY });
		ty_set(elem, (uint8_t *)m[0].p + (18 * K + 2) * each, (struct ty){ .re = NAN });
		ty_set(elem, (uint8_t *)m[1].p + (7 * N + 34) * each,
		       (struct ty){ .re = -INFINITY });
		ty_set(elem, (uint8_t *)m[1].p + (36 * N + 3) * each, (struct ty){ .re = NAN });
		in_put(&c, &mm, sizeof(mm));
		in_put(&c, &to, sizeof(to));
		for (unsigned again = 0; again < 2; again++)
			assert_int_equal(in_run(&vt[v % n], &c, m, 3, &run), 0);
		for (unsigned i = 0; i < M; i++)
			for (unsigned j = 0; j < N; j++) {
				double x = ty_get(acc, (uint8_t *)m[2].p + (i * N + j) * wide).re;
				bool nan = i == 18 || j == 3;

				assert_true(nan ? isnan(x) : (i == 4 || j == 34) ?
					    !isfinite(x) : isfinite(x));
			}
		for (unsigned i = 0; i < 3; i++)
			free(m[i].p);
	}
	ty_close(vt, n);
}

static struct t_sim sim;
static struct t_program prog;

static const struct isa_mm good = { .insn = { ISA_MM, 0, 0 }, .acc = ELEM_F32, .k = 4,
	.a_k_stride = 4, .b_k_stride = 16,
	.a = { .elem = ELEM_F32, .stride = { 16, 0 } },
	.b = { .elem = ELEM_F32, .binding = 1, .stride = { 0, 4 } },
	.body = { .rank = 2, .n_in = 1, .n_out = 1, .n_uop = 1,
		  .dim = { 4, 4, 1, 1, 1, 1, 1, 1 } } };
static const struct isa_operand good_in = { .elem = ELEM_F32, .binding = 2,
					    .stride = { 16, 4 } };
static const struct isa_operand good_out = { .elem = ELEM_F32, .binding = 3, .value = 2,
					     .stride = { 16, 4 } };

struct whole {
	struct isa_mm mm;
	struct isa_operand in, out;
	struct isa_uop uop;
};

static struct whole whole_good(void)
{
	return (struct whole){ good, good_in, good_out,
			       vt_uop(UOP_ADD, ELEM_F32, 0, 1, 0) };
}

/* Runs w with register 1 at `reg` on four regions of 64 bytes full of 7: the status.
 * Unless it is 0, nothing has changed. */
static unsigned run_whole(struct whole w, int64_t reg)
{
	unsigned status;

	if (!w.mm.insn.bytes)
		w.mm.insn.bytes = sizeof(w);
	t_program(&prog);
	for (unsigned i = 0; i < 4; i++)
		t_bind(&prog, T_HBM_VA + i * 64, 64,
		       i == 3 ? HW_BIND_READ | HW_BIND_WRITE : HW_BIND_READ);
	t_li(&prog, 1, reg);
	t_add(&prog, &w, sizeof(w));
	t_halt(&prog);
	memset(sim.hbm, 7, 4096);
	memset(&sim.fault, 0, sizeof(sim.fault));
	status = t_run(&sim, &prog);
	for (unsigned i = 0; i < 4096 && status; i++)
		assert_int_equal(sim.hbm[i], 7);
	return status;
}

static void malformed_products_are_refused(void **state)
{
	struct whole w;

	(void)state;
	t_open(&sim, "lanes=1");
	w = whole_good();
	assert_int_equal(run_whole(w, 0), 0);
	w.mm.insn.bytes = sizeof(w) - 8;
	assert_int_equal(run_whole(w, 0), HW_ST_BAD_PROGRAM);
#define REFUSES(change) do { \
		w = whole_good(); \
		change; \
		assert_int_equal(run_whole(w, 0), HW_ST_BAD_PROGRAM); \
		assert_int_equal(sim.refused_at, sizeof(struct isa_scalar)); \
	} while (0)
	REFUSES(w.mm.insn.flags = 1);
	REFUSES(w.mm.acc = ELEM_BF16);
	REFUSES(w.mm.acc = ELEM_S8);
	REFUSES(w.mm.acc = ELEM_S32);
	REFUSES(w.mm.acc = ELEM_INVALID);
	REFUSES(w.mm.acc = 200);
	REFUSES(w.mm.precision = 3);
	REFUSES(w.mm.zero[5] = 1);
	REFUSES(w.mm.k = -1);
	REFUSES(w.mm.k = 5);
	REFUSES(w.mm.k = INT64_MAX);
	REFUSES(w.mm.a_k_stride = 2);
	REFUSES(w.mm.a_k_stride = INT64_MAX - 3);
	REFUSES(w.mm.a_k_stride = -4);
	REFUSES(w.mm.a.stride[1] = 4);
	REFUSES(w.mm.b.stride[0] = 4);
	REFUSES(w.mm.a.elem = ELEM_S8);
	REFUSES(w.mm.a.elem = ELEM_C64);
	REFUSES(w.mm.a.elem = ELEM_TOKEN);
	REFUSES(w.mm.b.elem = ELEM_F8E8M0FNU);
	REFUSES(w.mm.b.elem = ELEM_F4E2M1FN);
	REFUSES(w.mm.b.elem = 255);
	REFUSES(w.mm.a.binding = 4);
	REFUSES(w.mm.a.reg = 64);
	REFUSES(w.mm.a.zero = 1);
	REFUSES(w.mm.a.flags = 2);
	REFUSES(w.mm.b.offset = 4);
	REFUSES(w.mm.b.offset = -4);
	REFUSES(w.mm.b.offset = 2);
	REFUSES(w.mm.body.rank = 1);
	REFUSES(w.mm.body.rank = 9);
	REFUSES(w.mm.body.row_rank = 1);
	REFUSES(w.mm.body.dim[0] = 5);
	REFUSES(w.mm.body.dim[0] = -1);
	REFUSES(w.mm.body.dim[1] = INT64_MIN);
	REFUSES(w.mm.body.dim[2] = 2);
	REFUSES(w.mm.body.zero = 1);
	REFUSES((w.mm.body.n_in = 0, w.mm.body.n_out = 2));
	REFUSES((w.mm.body.n_in = 2, w.mm.body.n_out = 0));
	REFUSES(w.in.stride[0] = 20);
	REFUSES(w.in.binding = 9);
	REFUSES(w.out.binding = 2);
	REFUSES(w.out.combine = ISA_COMBINE_ADD);
	REFUSES(w.out.combine = 200);
	REFUSES(w.out.value = 3);
	REFUSES(w.out.elem = ELEM_S32);
	REFUSES(w.out.elem = ELEM_F64);
	REFUSES(w.out.stride[0] = 24);
	REFUSES(w.uop.op = UOP_RADD);
	REFUSES(w.uop.elem = ELEM_F64);
	REFUSES(w.uop.a = 2);
	REFUSES(w.uop.op = 0xff);
#undef REFUSES
	t_close(&sim);
}

/* A register that leads an operand astray: a record, and memory as it was. */
static void registers_are_checked_before_the_product(void **state)
{
	static const int64_t wrong[] = { 4, -4, 64, INT64_MAX, INT64_MIN, 1ll << 40 };
	const uint64_t pc = sizeof(struct isa_scalar);

	(void)state;
	t_open(&sim, "lanes=2");
	for (unsigned operand = 0; operand < 4; operand++) {
		struct whole w = whole_good();
		struct isa_operand *ops[] = { &w.mm.a, &w.mm.b, &w.in, &w.out };

		ops[operand]->reg = 1;
		assert_int_equal(run_whole(w, 0), 0);
		for (unsigned i = 0; i < 6; i++) {
			assert_int_equal(run_whole(w, wrong[i]), HW_ST_BOUNDS);
			assert_int_equal(sim.fault.status, HW_ST_BOUNDS);
			assert_int_equal(sim.fault.pc, pc);
			assert_int_equal(sim.fault.operand, operand);
			assert_int_equal(sim.fault.binding, operand);
			assert_int_equal(sim.fault.is_write, operand == 3);
			assert_int_equal(sim.fault.va, (uint64_t)wrong[i]);
		}
		/* half the rows leave room for a step that is no multiple of 4 */
		w.mm.body.dim[0] = operand == 1 ? 4 : 2;
		w.mm.k = operand == 1 ? 2 : 4;
		assert_int_equal(run_whole(w, 2), HW_ST_ALIGNMENT);
		assert_int_equal(sim.fault.operand, operand);
		assert_int_equal(run_whole(w, 4), 0);
	}
	t_close(&sim);
}

/* Bindings that the context does not map, or maps for reading only. */
static void bindings_outside_the_map_fault(void **state)
{
	struct whole w = whole_good();

	(void)state;
	w.mm.insn.bytes = sizeof(w);
	t_open(&sim, "lanes=1");
	for (unsigned i = 0; i < 4; i++) {
		t_program(&prog);
		for (unsigned j = 0; j < 4; j++)
			t_bind(&prog, i == j ? T_HBM_VA + sim.hbm_bytes - 64 :
			       T_HBM_VA + j * 64, i == j ? 128 : 64,
			       HW_BIND_READ | HW_BIND_WRITE);
		t_add(&prog, &w, sizeof(w));
		t_halt(&prog);
		memset(sim.hbm, 7, 4096);
		assert_int_equal(t_run(&sim, &prog), HW_ST_MAP);
		assert_int_equal(sim.fault.binding, i);
		for (unsigned k = 0; k < 4096; k++)
			assert_int_equal(sim.hbm[k], 7);
	}
	t_close(&sim);
}

/* A whole product whose operands stay on one element, of these dims and k. */
static unsigned run_spread(const int64_t *dim, unsigned rank, int64_t k)
{
	struct whole w = whole_good();

	memset(w.mm.a.stride, 0, sizeof(w.mm.a.stride));
	memset(w.mm.b.stride, 0, sizeof(w.mm.b.stride));
	memset(w.in.stride, 0, sizeof(w.in.stride));
	memset(w.out.stride, 0, sizeof(w.out.stride));
	w.mm.a_k_stride = w.mm.b_k_stride = 0;
	w.mm.k = k;
	w.mm.body.rank = (uint8_t)rank;
	memcpy(w.mm.body.dim, dim, rank * sizeof(*dim));
	w.mm.insn.bytes = sizeof(w);
	t_program(&prog);
	for (unsigned i = 0; i < 4; i++)
		t_bind(&prog, T_HBM_VA + i * 64, 64, HW_BIND_READ | HW_BIND_WRITE);
	t_add(&prog, &w, sizeof(w));
	t_halt(&prog);
	prog.limit_ns = 3000000;
	return t_run(&sim, &prog);
}

/* Operands that stay where they are lie in their bindings however large the dims. */
static void endless_products_end_by_the_watchdog(void **state)
{
	static const int64_t huge[][5] = { { 1ll << 56, 1, 1 }, { 1, 1ll << 56, 1 },
		{ 1, 1, 1ll << 56 }, { 1ll << 28, 1 << 28, 1 }, { 3, 1ll << 27, 1 << 27 } };

	(void)state;
	t_open(&sim, TY_LANES);
	for (unsigned i = 0; i < 5; i++)
		for (unsigned k = 0; k < 2; k++)
			assert_int_equal(run_spread(huge[i], 3, k * 3ll), HW_ST_WATCHDOG);
	assert_int_equal(run_spread((int64_t[]){ 1, 1 }, 2, 1ll << 62), HW_ST_WATCHDOG);
	assert_int_equal(run_spread((int64_t[]){ 1 << 20, 1 << 20 }, 2, 1ll << 40), HW_ST_WATCHDOG);
	/* b's panels have 2^64 bytes, a few more, and as many as there can be. */
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(run_spread((int64_t[]){ 1000, 40 }, 2, i == 2 ? INT64_MAX :
					    (1ll << 57) + i * 4096), HW_ST_WATCHDOG);
	t_close(&sim);
}

static void sizes_that_overflow_are_refused(void **state)
{
	static const int64_t huge[][4] = {
		{ INT64_MAX, 2, 1, 1 }, { 1, 1, 1ll << 32, 1ll << 31 },
		{ 1ll << 40, 1ll << 40, 1, 1 }, { 1ll << 21, 1 << 21, 1 << 21, 2 },
	};

	(void)state;
	t_open(&sim, "lanes=1");
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(run_spread(huge[i], 4, 1), HW_ST_BAD_PROGRAM);
	t_close(&sim);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_pair_of_types), cmocka_unit_test(ends_of_blocks),
		cmocka_unit_test(panels_of_a_block), cmocka_unit_test(lengths_of_k),
		cmocka_unit_test(kernels_of_lesser_cpus), cmocka_unit_test(empty_products),
		cmocka_unit_test(few_rows_are_as_among_many), cmocka_unit_test(large_products),
		cmocka_unit_test(what_is_added_is_added_last), cmocka_unit_test(shared_panels),
		cmocka_unit_test(batches_of_up_to_eight_dims),
		cmocka_unit_test(many_small_products), cmocka_unit_test(many_rows_of_few_columns),
		cmocka_unit_test(extremes_of_integers),
		cmocka_unit_test(specials_stay_where_they_are),
		cmocka_unit_test(malformed_products_are_refused),
		cmocka_unit_test(registers_are_checked_before_the_product),
		cmocka_unit_test(bindings_outside_the_map_fault),
		cmocka_unit_test(endless_products_end_by_the_watchdog),
		cmocka_unit_test(sizes_that_overflow_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
