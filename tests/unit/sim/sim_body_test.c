/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bodies: every rule that sim_body_prepare() checks, broken one at a time; shapes of
 * values; tiles in and out of memory; random instructions, which may be refused but
 * touch nothing that is not theirs (run under MODE=asan), nor do values that none stores; outputs
 * larger than caches; and what a scatter makes of two numbers that are hard to compare.
 */
#include "tests/unit/sim/sim_insn.h"

#include <math.h>
#include <sys/mman.h>
#include <unistd.h>

#include "hal/sim/kernels/transpose.h"

static struct sim_cpu cpu = { .path = SIM_PORTABLE, .lanes = 1, .l1_bytes = 32 << 10 };

struct fixture {
	struct arena arena;
	struct sim_load load;
	struct isa_body body;
	struct isa_operand in[2], out[2];
	struct isa_uop uop[ISA_MAX_VALUES];
	uint8_t pre[4];
	unsigned n_pre;
};

/* f32: two inputs of [4][8], value 2 = in0 + in1, stored. */
static struct fixture sum(void)
{
	struct fixture f = { .body = { .rank = 2, .n_in = 2, .n_out = 1, .n_uop = 1,
		.dim = { 4, 8, 1, 1, 1, 1, 1, 1 } } };

	for (unsigned j = 0; j < 2; j++) {
		f.in[j] = f.out[j] = (struct isa_operand){ .elem = ELEM_F32 };
		f.in[j].stride[0] = f.out[j].stride[0] = 32;
		f.in[j].stride[1] = f.out[j].stride[1] = 4;
	}
	f.uop[0] = vt_uop(UOP_ADD, ELEM_F32, 0, 1, 0);
	f.out[0].value = 2;
	return f;
}

static int prepare(struct fixture *f, const struct sim_body **b)
{
	const struct sim_body *none;

	f->load = (struct sim_load){ .arena = &f->arena, .small = &f->arena,
					.cpu = &cpu };
	return sim_body_prepare(&f->load, &f->body, f->in, f->out, f->uop, f->pre, f->n_pre,
				ISA_MAX_ROW, b ? b : &none);
}

#define EXPECT(status, change) do { \
	struct fixture f = sum(); \
	change; \
	int got = prepare(&f, NULL); \
	if (got != (status)) \
		fail_msg("%s: %d (%s)", #change, got, f.load.why); \
	if (status) \
		assert_true(f.load.why[0]); \
	arena_free(&f.arena); \
} while (0)
#define REFUSED(change) EXPECT(HW_ST_BAD_PROGRAM, change)
#define TAKEN(change) EXPECT(0, change)
#define ONE(...) (f.uop[0] = (struct isa_uop){ __VA_ARGS__ })

static void rules_of_uops(void **state)
{
	(void)state;
	TAKEN();
	REFUSED(f.uop[0].op = 0x7f);
	REFUSED(f.uop[0].elem = ELEM_BF16);
	REFUSED(f.uop[0].elem = ELEM_TOKEN);
	REFUSED(f.uop[0].elem = 200);
	REFUSED(f.uop[0].a = 2);
	REFUSED(f.uop[0].b = 255);
	REFUSED(f.uop[0].c = 1);
	REFUSED(f.uop[0].zero = 1);
	REFUSED(f.uop[0].to = ELEM_F32);
	REFUSED(f.uop[0].imm = 1);
	REFUSED(f.uop[0].aux = 1);
	REFUSED(f.in[1].elem = ELEM_S32);
	REFUSED(f.in[1].elem = ELEM_TOKEN);
	REFUSED(f.out[0].elem = ELEM_F64);
	REFUSED(f.out[0].value = 3);
	REFUSED(ONE(.op = UOP_IMM, .elem = ELEM_C128));
	REFUSED(ONE(.op = UOP_IOTA, .elem = ELEM_F32, .aux = 2));
	TAKEN(ONE(.op = UOP_IOTA, .elem = ELEM_F32, .aux = 1));
	REFUSED(ONE(.op = UOP_SREG, .elem = ELEM_F32, .aux = 64));
	TAKEN(ONE(.op = UOP_SREG, .elem = ELEM_F32, .aux = 63));
	REFUSED(ONE(.op = UOP_CVT, .elem = ELEM_F32, .to = ELEM_INVALID));
	REFUSED(ONE(.op = UOP_CVT, .elem = ELEM_F32, .to = ELEM_COUNT));
	REFUSED(ONE(.op = UOP_CVT, .elem = ELEM_F32, .to = ELEM_TOKEN));
	TAKEN(ONE(.op = UOP_CVT, .elem = ELEM_F32, .to = ELEM_F32));
	REFUSED(ONE(.op = UOP_BITCAST, .elem = ELEM_F32, .to = ELEM_F64));
	REFUSED(ONE(.op = UOP_BITCAST, .elem = ELEM_F32, .to = ELEM_PRED));
	REFUSED(ONE(.op = UOP_SELECT, .elem = ELEM_F32));
	REFUSED(ONE(.op = UOP_COMPLEX, .elem = ELEM_F32, .to = ELEM_C128));
	REFUSED(ONE(.op = UOP_RDPREC, .elem = ELEM_F32, .aux = 9));
	REFUSED(ONE(.op = UOP_RDPREC, .elem = ELEM_F32, .aux = 0));
	REFUSED(ONE(.op = UOP_RDPREC, .elem = ELEM_F32, .aux = 8, .imm = 53));
	TAKEN(ONE(.op = UOP_RDPREC, .elem = ELEM_F32, .aux = 8, .imm = 7));
	REFUSED(f.body.n_uop = ISA_MAX_VALUES);
	REFUSED(f.body.rank = 9);
	REFUSED(f.body.row_rank = 3);
}

static void rules_of_outputs(void **state)
{
	(void)state;
	TAKEN(f.out[0].combine = ISA_COMBINE_ADD);
	REFUSED(f.out[0].combine = ISA_COMBINE_AND);
	REFUSED(f.out[0].combine = ISA_COMBINE_COUNT);
	REFUSED(f.in[0].elem = f.out[0].elem = ELEM_BF16; f.out[0].value = 0;
		f.body.n_uop = 0; f.out[0].combine = ISA_COMBINE_ADD);
	TAKEN(f.in[0].elem = f.out[0].elem = ELEM_BF16; f.out[0].value = 0;
	      f.body.n_uop = 0);
}

static void rules_of_rows(void **state)
{
	(void)state;
	REFUSED(ONE(.op = UOP_RADD, .elem = ELEM_F32));
	/* a row value moves along the row */
	REFUSED(f.body.row_rank = 1; ONE(.op = UOP_RADD, .elem = ELEM_F32));
	TAKEN(f.body.row_rank = 1; ONE(.op = UOP_RADD, .elem = ELEM_F32);
	      f.out[0].stride[1] = 0);
	/* folding what is folded */
	REFUSED(f.body.row_rank = 1; ONE(.op = UOP_RADD, .elem = ELEM_F32);
		f.out[0].stride[1] = 0; f.body.n_uop = 2; f.out[0].value = 3;
		f.uop[1] = vt_uop(UOP_RADD, ELEM_F32, 2, 0, 0));
	REFUSED(f.body.row_rank = 1; ONE(.op = UOP_IOTA, .elem = ELEM_F32, .aux = 0));
	TAKEN(f.body.row_rank = 1; ONE(.op = UOP_IOTA, .elem = ELEM_F32, .aux = 1));
	TAKEN(f.body.row_rank = 1; ONE(.op = UOP_IMM, .elem = ELEM_F32));
	REFUSED(f.body.row_rank = 1; f.body.dim[1] = ISA_MAX_ROW + 1);
	REFUSED(f.body.row_rank = 2; f.body.dim[1] = f.body.dim[0] = INT64_MAX);
	REFUSED(f.body.row_rank = 1; ONE(.op = UOP_RMIN, .elem = ELEM_PRED);
		f.in[0].elem = ELEM_PRED);
}

/* value 2 = in0 * in1, 3 = row sum of it, 4 = 2 / 3 */
static void rows_and_spreads_keep_their_shapes(void **state)
{
	struct fixture f = sum();
	float x[32], w[8], want, scale = 2;
	struct sim_tile tile = { .rank = 2, .rows = 4, .cols = 8, .col_dims = 1,
				 .col_dim = { 8 } };
	const struct sim_body *b;
	const float *v;
	bool is_spread, is_row;
	void *scratch;

	(void)state;
	f.body.row_rank = 1;
	f.body.n_uop = 3;
	f.body.n_out = 2;
	f.uop[0] = vt_uop(UOP_MUL, ELEM_F32, 0, 1, 0);
	f.uop[1] = vt_uop(UOP_RADD, ELEM_F32, 2, 0, 0);
	f.uop[2] = vt_uop(UOP_DIV, ELEM_F32, 2, 3, 0);
	f.out[0].value = 4;
	f.out[1].value = 3;
	f.out[1].stride[1] = 0;
	assert_int_equal(prepare(&f, &b), 0);
	scratch = aligned_alloc(64, (sim_body_scratch(b) + 63) / 64 * 64);
	for (unsigned i = 0; i < 32; i++)
		x[i] = (float)(i + 1);
	for (unsigned i = 0; i < 8; i++)
		w[i] = 1;
	tile.in[0] = x;
	for (unsigned spread = 0; spread < 3; spread++) {
		/* in1: the same for all, one a row */
		tile.in[1] = spread == 0 ? &scale : w;
		tile.in_spread = spread == 0 ? 2 : 0;
		tile.in_row = spread == 1 ? 2 : 0;
		if (spread == 2) {
			tile.in[1] = x;
			tile.in[0] = &scale;
			tile.in_spread = 1;
		}
		sim_body_run(b, NULL, &tile, scratch);
		v = sim_body_value(b, 3, &tile, scratch, &is_spread, &is_row);
		assert_true(is_row && !is_spread);
		want = (float)(8 * 1 + 28) * (spread == 1 ? 1 : 2);
		assert_true(v[0] == want);
		v = sim_body_value(b, 4, &tile, scratch, &is_spread, &is_row);
		assert_false(is_row || is_spread);
		for (unsigned i = 0; i < 32; i++) {
			float row = (float)(64 * (i / 8) + 36);

			assert_true(fabsf(v[i] - x[i] / row) < 1e-6f);
		}
	}
	free(scratch);
	arena_free(&f.arena);
}

/* Iota over each dim of a tile that starts at (3, 5, 7) and is 2 x (3 x 4). */
static void iota_counts_from_the_tile(void **state)
{
	struct fixture f = sum();
	struct sim_tile tile = { .rank = 3, .rows = 2, .cols = 12, .col_dims = 2,
				 .col_dim = { 3, 4 }, .index = { 3, 5, 7 } };
	const struct sim_body *b;
	bool is_spread, is_row;
	void *scratch;

	(void)state;
	f.body = (struct isa_body){ .rank = 3, .n_out = 1, .n_uop = 2,
		.dim = { 9, 9, 20, 1, 1, 1, 1, 1 } };
	for (unsigned d = 0; d < 3; d++) {
		const float *v;

		f.uop[0] = (struct isa_uop){ .op = UOP_IOTA, .elem = ELEM_F32,
					     .aux = (uint8_t)d };
		f.uop[1] = vt_uop(UOP_NEG, ELEM_F32, 0, 0, 0);
		f.out[0].value = 1;
		assert_int_equal(prepare(&f, &b), 0);
		scratch = aligned_alloc(64, (sim_body_scratch(b) + 63) / 64 * 64);
		sim_body_run(b, NULL, &tile, scratch);
		v = sim_body_value(b, 1, &tile, scratch, &is_spread, &is_row);
		for (unsigned i = 0; i < 24; i++) {
			unsigned at[3] = { 3 + i / 12, 5 + i / 4 % 3, 7 + i % 4 };

			assert_true(v[is_row ? i / 12 : i] == -(float)at[d]);
		}
		free(scratch);
	}
	arena_free(&f.arena);
}

/* Boxes of every element size, strided, turned, reversed: in and out again. */
static void tiles_survive_memory(void **state)
{
	static const uint8_t elems[] = { ELEM_U8, ELEM_BF16, ELEM_F32, ELEM_F64, ELEM_C128 };
	static const int64_t strides[][3] = {
		{ 200, 20, 1 }, { 1, 10, 120 }, { 300, 25, 2 }, { -200, 20, -1 },
		{ 40, 1, 140 }, { 200, -20, 1 },
	};
	char memory[1000 * 16], back[1000 * 16], room[1000 * 16];
	uint64_t seed = 1;

	(void)state;
	for (unsigned e = 0; e < sizeof(elems); e++) {
		unsigned bytes = elem_bytes(elems[e]);

		for (unsigned s = 0; s < sizeof(strides) / sizeof(strides[0]); s++) {
			struct sim_ref ref = { .elem = elems[e] };
			struct sim_tile tile = { .rank = 3, .rows = 3, .cols = 40,
				.col_dims = 2, .col_dim = { 8, 5 }, .index = { 0, 1, 2 } };
			uint8_t *first;

			for (unsigned i = 0; i < sizeof(memory); i++)
				memory[i] = (char)vt_random(&seed);
			memset(back, 0, sizeof(back));
			for (unsigned d = 0; d < 3; d++)
				ref.stride[d] = strides[s][d] * bytes;
			first = (uint8_t *)memory + (strides[s][0] < 0 ? 400 * bytes : 0) +
				(strides[s][1] < 0 ? 300 * bytes : 0) +
				(strides[s][2] < 0 ? 30 * bytes : 0);
			sim_tile_in(&ref, first, &tile, 0, room);
			assert_false(tile.in_spread || tile.in_row);
			for (int64_t i = 0; i < 120; i++)
				assert_memory_equal((const char *)tile.in[0] + i * bytes,
					first + i / 40 * ref.stride[0] +
					(1 + i / 5 % 8) * ref.stride[1] +
					(2 + i % 5) * ref.stride[2], bytes);
			sim_tile_out(&ref, (uint8_t *)back + ((char *)first - memory), &tile,
				     tile.in[0], false, false, ISA_STORE);
			tile.in[0] = NULL;
			sim_tile_in(&ref, (uint8_t *)back + ((char *)first - memory), &tile, 0,
				    room);
			for (int64_t i = 0; i < 120; i++)
				assert_memory_equal((const char *)tile.in[0] + i * bytes,
					first + i / 40 * ref.stride[0] +
					(1 + i / 5 % 8) * ref.stride[1] +
					(2 + i % 5) * ref.stride[2], bytes);
		}
	}
}

#define COLUMN_PAGE ((size_t)4096)

/* What is at every n-th place, from the first or from the last one on, of memory that begins with
 * the lowest one, or ends with the highest. */
static void read_column(enum sim_path path, unsigned bytes, int64_t step, size_t n, bool is_first)
{
	sim_column_fn *fn = sim_column(path, bytes, step);
	size_t all = ((n - 1) * (size_t)(step < 0 ? -step : step) + 1) * bytes;
	/* nothing before the lowest or behind the highest may be read */
	char *page = mmap(NULL, 3 * COLUMN_PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *from = page + (is_first ? COLUMN_PAGE : 2 * COLUMN_PAGE - all);
	char *to = malloc(n * bytes + 1), *first = step < 0 ? from + all - bytes : from;
	uint64_t seed = n;

	assert_ptr_not_equal(page, MAP_FAILED);
	assert_int_equal(mprotect(page + COLUMN_PAGE, COLUMN_PAGE, PROT_READ | PROT_WRITE), 0);
	for (size_t i = 0; i < all; i++)
		from[i] = (char)vt_random(&seed);
	to[n * bytes] = 77;
	if (fn)
		fn(to, first, n);
	for (size_t i = 0; i < n && fn; i++)
		assert_memory_equal(to + i * bytes, first + (int64_t)i * step * (int64_t)bytes,
				    bytes);
	assert_int_equal(to[n * bytes], 77);
	assert_int_equal(munmap(page, 3 * COLUMN_PAGE), 0);
	free(to);
}

static void columns_are_as_one_by_one(void **state)
{
	struct sim_cpu own;

	(void)state;
	sim_cpu_detect(&own);
	for (unsigned path = SIM_PORTABLE; path <= own.path; path++)
		for (unsigned bytes = 1; bytes <= 8; bytes *= 2)
			for (int64_t step = -5; step <= 5; step++)
				for (size_t n = 2; n <= 2 * 70 + 1; n++)
					read_column((enum sim_path)path, bytes, step, n / 2, n & 1);
	assert_null(sim_column(SIM_PORTABLE, 4, 3));
	assert_null(sim_column(SIM_PORTABLE, 4, -1));
	if (own.path != SIM_PORTABLE)
		assert_non_null(sim_column(own.path, 4, -1));
}

/* (x << up | x' >> down) ^ y of u32, where x' may be y; each of the values may be stored, too. */
struct turn {
	unsigned up, down, join;	/* join: UOP_OR, or what is no rotation */
	bool of_two, turned;		/* x' is y; arguments the other way round */
	bool is_still;			/* y is one element */
	unsigned stored;		/* the second output */
};

static void run_turn(struct vt *vt, const struct turn *t, unsigned n)
{
	enum { X, Y, UP, DOWN, LEFT, RIGHT, JOINED, FLIPPED };
	struct vt_insn in = { .head = { .insn.op = ISA_VEC, .body = { .rank = 1, .n_in = 2,
		.n_out = 2, .n_uop = 6, .dim = { n, 1, 1, 1, 1, 1, 1, 1 } } } };
	uint32_t *mem[4], want[8];
	struct sim_run run;
	uint64_t seed = n;

	for (unsigned i = 0; i < 4; i++) {
		mem[i] = malloc(4 * (size_t)n);
		in.op[i] = (struct isa_operand){ .elem = ELEM_U32, .binding = (uint16_t)i,
						 .stride = { i == Y && t->is_still ? 0 : 4 } };
		for (unsigned j = 0; j < n; j++)
			mem[i][j] = vt_random(&seed) << 1 ^ vt_random(&seed);
	}
	in.op[2].value = FLIPPED;
	in.op[3].value = (uint8_t)t->stored;
	in.uop[UP - UP] = (struct isa_uop){ .op = UOP_IMM, .elem = ELEM_U32, .imm = t->up };
	in.uop[DOWN - UP] = (struct isa_uop){ .op = UOP_IMM, .elem = ELEM_U32, .imm = t->down };
	in.uop[LEFT - UP] = vt_uop(UOP_SHL, ELEM_U32, X, UP, 0);
	in.uop[RIGHT - UP] = vt_uop(UOP_SHR, ELEM_U32, t->of_two ? Y : X, DOWN, 0);
	in.uop[JOINED - UP] = vt_uop(t->join, ELEM_U32, t->turned ? RIGHT : LEFT,
				     t->turned ? LEFT : RIGHT, 0);
	in.uop[FLIPPED - UP] = vt_uop(UOP_XOR, ELEM_U32, t->turned ? Y : JOINED,
				      t->turned ? JOINED : Y, 0);
	assert_int_equal(vt_run(vt, &in, (struct vt_mem[]){ { mem[0], 4 * n }, { mem[1], 4 * n },
		{ mem[2], 4 * n }, { mem[3], 4 * n } }, 4, &run), 0);
	for (unsigned j = 0; j < n; j++) {
		want[X] = mem[X][j];
		want[Y] = mem[Y][t->is_still ? 0 : j];
		want[LEFT] = t->up < 32 ? want[X] << t->up : 0;
		want[RIGHT] = t->down < 32 ? want[t->of_two ? Y : X] >> t->down : 0;
		want[JOINED] = t->join == UOP_OR ? want[LEFT] | want[RIGHT] :
						   want[LEFT] & want[RIGHT];
		want[FLIPPED] = want[JOINED] ^ want[Y];
		if (mem[2][j] != want[FLIPPED] || mem[3][j] != want[t->stored])
			fail_msg("%u points, up %u, down %u, stored %u: element %u is 0x%x and "
				 "0x%x, not 0x%x and 0x%x", n, t->up, t->down, t->stored, j,
				 mem[2][j], mem[3][j], want[FLIPPED], want[t->stored]);
	}
	for (unsigned i = 0; i < 4; i++)
		free(mem[i]);
}

/* Rotations are found among shifts; what looks like one, and is none, stays what it is. */
static void shifts_that_rotate_and_that_do_not(void **state)
{
	static const unsigned shifts[][2] = { { 1, 31 }, { 31, 1 }, { 7, 25 }, { 16, 16 },
					      { 0, 32 }, { 32, 0 }, { 13, 18 }, { 13, 20 },
					      { 40, 24 } };
	static const char *const paths[] = { "portable", "avx2", "avx512" };

	(void)state;
	for (unsigned p = 0; p < 3; p++) {
		struct vt vt;

		if (!vt_open(&vt, paths[p], 2))
			continue;
		for (unsigned k = 0; k < 9 * 32; k++) {
			struct turn t = { shifts[k / 32][0], shifts[k / 32][1],
				k % 8 == 7 ? UOP_AND : UOP_OR, k % 4 == 2, k / 2 % 2, k / 4 % 2,
				k / 8 % 4 + 4 };

			run_turn(&vt, &t, k % 3 ? 1000 : 1 + k % 40);
		}
		vt_close(&vt);
	}
}

/* x compared with another value or with itself, of f32, s32 or u32: what selects y or z, or what is
 * a number. */
struct choice {
	unsigned compare, elem, x, other, y, z;
	bool turned, with_itself, is_number;
	bool is_read;			/* the truths are stored, too */
};

static bool compared(const struct choice *c, uint32_t x, uint32_t y)
{
	bool is_signed = c->elem == ELEM_S32;
	double a = is_signed ? (double)(int32_t)x : (double)x;
	double b = is_signed ? (double)(int32_t)y : (double)y;

	if (c->elem == ELEM_F32) {
		float f, g;

		memcpy(&f, &x, sizeof(f));
		memcpy(&g, &y, sizeof(g));
		a = fabsf(f) < 0x1p-126f ? 0 : f;
		b = fabsf(g) < 0x1p-126f ? 0 : g;
	}
	switch (c->compare) {
	case UOP_EQ: return a == b;
	case UOP_NE: return a != b;
	case UOP_LT: return a < b;
	case UOP_LE: return a <= b;
	case UOP_GT: return a > b;
	default: return a >= b;
	}
}

/* Values 0..2 are full, one a row and one for all, 3 and 4 constants, 5 the truths. */
static void run_choice(struct vt *vt, const struct choice *c, uint64_t *seed)
{
	enum { ROWS = 9, COLS = 173, N = ROWS * COLS, CONSTANT = 3, TRUTH = 5, CHOSEN };
	static const uint32_t bits[] = { 0, 0x80000000, 1, 0x80000001, 0x3f800000, 0xbf800000,
					 0x7f800000, 0xff800000, 0x7fc00000, 0xffffffff };
	uint32_t x[N], y[ROWS], one, got[N];
	const uint32_t constant[] = { bits[vt_random(seed) % 10], bits[vt_random(seed) % 10] };
	uint8_t truth[N];
	struct vt_mem mem[] = { { x, sizeof(x) }, { y, sizeof(y) }, { &one, sizeof(one) },
				{ got, sizeof(got) }, { truth, sizeof(truth) } };
	struct vt_insn in = { .head = { .insn.op = ISA_VEC, .body = { .rank = 2, .n_in = 3,
		.n_out = c->is_read ? 2 : 1, .n_uop = 4,
		.dim = { ROWS, COLS, 1, 1, 1, 1, 1, 1 } } } };
	unsigned a = c->turned ? c->other : c->x, b = c->turned ? c->x : c->other;
	float f_one = 1;
	uint32_t u_one = 1;
	struct sim_run run;

	for (unsigned i = 0; i < N; i++)
		x[i] = bits[vt_random(seed) % 10];
	for (unsigned i = 0; i < ROWS; i++)
		y[i] = bits[vt_random(seed) % 10];
	one = bits[vt_random(seed) % 10];
	for (unsigned k = 0; k < 5; k++)
		in.op[k] = (struct isa_operand){ .elem = k < 4 ? (uint8_t)c->elem : ELEM_PRED,
			.binding = (uint16_t)k, .stride = { k == 1 ? 4 : k == 2 ? 0 :
				k == 4 ? COLS : 4 * COLS, k == 1 || k == 2 ? 0 : k == 4 ? 1 : 4 } };
	in.op[3].value = CHOSEN;
	in.op[4].value = TRUTH;
	for (unsigned k = 0; k < 2; k++)
		in.uop[k] = (struct isa_uop){ .op = UOP_IMM, .elem = (uint8_t)c->elem,
					      .imm = constant[k] };
	in.uop[2] = vt_uop(c->compare, c->elem, c->with_itself ? c->x : a,
			   c->with_itself ? c->x : b, 0);
	in.uop[3] = vt_uop(UOP_SELECT, c->elem, TRUTH, c->y, c->z);
	if (c->is_number)
		in.uop[3] = (struct isa_uop){ .op = UOP_CVT, .elem = ELEM_PRED, .a = TRUTH,
					      .to = (uint8_t)c->elem };
	if (c->elem == ELEM_F32)
		memcpy(&u_one, &f_one, sizeof(u_one));
	assert_int_equal(vt_run(vt, &in, mem, c->is_read ? 5 : 4, &run), 0);
	for (unsigned i = 0; i < N; i++) {
		const uint32_t value[] = { x[i], y[i / COLS], one, constant[0], constant[1] };
		bool is = compared(c, value[c->with_itself ? c->x : a],
				   value[c->with_itself ? c->x : b]);
		uint32_t want = c->is_number ? u_one * is : value[is ? c->y : c->z];

		if (got[i] != want || (c->is_read && truth[i] != is))
			fail_msg("comparison 0x%x of type %u, of value %u, 0x%x, %s value %u, "
				 "0x%x%s: 0x%x, not 0x%x", c->compare, c->elem, c->x,
				 value[c->x], c->turned ? "behind" : "before", c->other,
				 value[c->other], c->with_itself ? ", no, itself" : "",
				 got[i], want);
	}
}

/* A selection and the comparison before it may be one step: the bytes are the same. */
static void comparisons_select(void **state)
{
	static const char *const paths[] = { "portable", "avx2", "avx512" };
	static const uint8_t elems[] = { ELEM_F32, ELEM_S32, ELEM_U32 };
	uint64_t seed = 3;

	(void)state;
	for (unsigned p = 0; p < 3; p++) {
		struct vt vt;

		if (!vt_open(&vt, paths[p], 2))
			continue;
		for (unsigned k = 0; k < 2000; k++) {
			struct choice c = { .compare = UOP_EQ + k % 6, .elem = elems[k / 6 % 3],
				.x = k / 18 % 3, .other = vt_random(&seed) % 4,
				.y = vt_random(&seed) % 5, .z = vt_random(&seed) % 5,
				.is_number = vt_random(&seed) % 4 == 0,
				.turned = vt_random(&seed) & 1,
				.with_itself = vt_random(&seed) % 4 == 0,
				.is_read = vt_random(&seed) % 4 == 0 };

			run_choice(&vt, &c, &seed);
		}
		vt_close(&vt);
	}
}

/* Quotients and remainders by constants, of numbers around the multiples of these. */
static void divide_by(struct vt *vt, bool is_signed, uint32_t by, uint64_t *seed)
{
	enum { N = 777 };
	uint32_t x[N], got[2][N];
	struct vt_mem mem[] = { { x, sizeof(x) }, { got[0], sizeof(got[0]) },
				{ got[1], sizeof(got[1]) } };
	uint8_t elem = is_signed ? ELEM_S32 : ELEM_U32;
	struct vt_insn in = { .head = { .insn.op = ISA_VEC, .body = { .rank = 1, .n_in = 1,
		.n_out = 2, .n_uop = 3, .dim = { N, 1, 1, 1, 1, 1, 1, 1 } } } };
	struct sim_run run;

	for (unsigned i = 0; i < N; i++)
		x[i] = i < 3 ? i - 1 : i < 6 ? INT32_MAX + i - 4 :
			vt_random(seed) / (by ? by : 1) * by * (i % 2 ? 1 : -1u) + i % 3 - 1;
	for (unsigned k = 0; k < 3; k++)
		in.op[k] = (struct isa_operand){ .elem = elem, .binding = (uint16_t)k,
			.value = k ? (uint8_t)(k + 1) : 0, .stride = { 4 } };
	in.uop[0] = (struct isa_uop){ .op = UOP_IMM, .elem = elem, .imm = by };
	in.uop[1] = vt_uop(UOP_DIV, elem, 0, 1, 0);
	in.uop[2] = vt_uop(UOP_REM, elem, 0, 1, 0);
	assert_int_equal(vt_run(vt, &in, mem, 3, &run), 0);
	for (unsigned i = 0; i < N; i++) {
		int64_t a = is_signed ? (int64_t)(int32_t)x[i] : (int64_t)x[i];
		int64_t b = is_signed ? (int64_t)(int32_t)by : (int64_t)by;

		if (got[0][i] != (b ? (uint32_t)(a / b) : UINT32_MAX) ||
		    got[1][i] != (b ? (uint32_t)(a % b) : x[i]))
			fail_msg("%lld by %lld: %d, %d", (long long)a, (long long)b,
				 (int)got[0][i], (int)got[1][i]);
	}
}

static void constants_divide(void **state)
{
	static const char *const paths[] = { "portable", "avx2", "avx512" };
	static const uint32_t by[] = { 0, 1, 2, 3, 5, 7, 10, 49, 641, 65535, 65537, 1000003,
		INT32_MAX, (uint32_t)INT32_MAX + 1, (uint32_t)INT32_MAX + 2, -2u, -3u, -7u, -1u };
	uint64_t seed = 5;

	(void)state;
	for (unsigned p = 0; p < 3; p++) {
		struct vt vt;

		if (!vt_open(&vt, paths[p], 1))
			continue;
		for (unsigned k = 0; k < 2 * sizeof(by) / sizeof(by[0]); k++)
			divide_by(&vt, k & 1, by[k / 2], &seed);
		for (unsigned k = 0; k < 400; k++)
			divide_by(&vt, k & 1, vt_random(&seed) >> k % 31, &seed);
		vt_close(&vt);
	}
}

/* What is made of places along a row alone is the same in each tile, and stays where it is while
 * other values come and go; the last tile is a smaller one. */
static void rows_have_the_same_places(void **state)
{
	enum { ROWS = 1003, COLS = 77, N = ROWS * COLS };
	static int32_t x[N], got[3][N], sums[COLS];
	struct vt_mem mem[] = { { x, sizeof(x) }, { got[0], sizeof(got[0]) },
				{ got[1], sizeof(got[1]) }, { got[2], sizeof(got[2]) },
				{ sums, sizeof(sums) } };
	struct vt_insn in = { .head = { .insn.op = ISA_VEC, .body = { .rank = 2, .n_in = 1,
		.n_out = 3, .n_uop = 10, .dim = { ROWS, COLS, 1, 1, 1, 1, 1, 1 } } } };
	uint64_t seed = 9;
	struct sim_run run;
	struct vt vt;

	(void)state;
	for (unsigned i = 0; i < N; i++)
		x[i] = (int32_t)vt_random(&seed) - (1 << 30);
	for (unsigned k = 0; k < 5; k++)
		in.op[k] = (struct isa_operand){ .elem = ELEM_S32, .binding = (uint16_t)k,
						 .stride = { k < 4 ? 4 * COLS : 0, 4 } };
	in.op[1].value = 10;
	in.op[2].value = 6;
	in.op[3].value = 8;
	in.op[4].value = 10;
	in.op[4].combine = ISA_COMBINE_ADD;
	in.uop[0] = vt_uop(UOP_NEG, ELEM_S32, 0, 0, 0);
	in.uop[1] = vt_uop(UOP_XOR, ELEM_S32, 0, 0, 0);		/* 2: its room is free soon */
	in.uop[2] = vt_uop(UOP_MAX, ELEM_S32, 1, 2, 0);		/* 3: what is below 0, or 0 */
	in.uop[3] = (struct isa_uop){ .op = UOP_IOTA, .elem = ELEM_S32, .aux = 1 };
	in.uop[4] = vt_uop(UOP_MUL, ELEM_S32, 4, 4, 0);		/* 5: the place's square */
	in.uop[5] = vt_uop(UOP_SUB, ELEM_S32, 5, 4, 0);		/* 6 */
	in.uop[6] = vt_uop(UOP_ADD, ELEM_S32, 3, 5, 0);		/* 7 */
	in.uop[7] = vt_uop(UOP_NEG, ELEM_S32, 7, 0, 0);		/* 8 */
	in.uop[8] = (struct isa_uop){ .op = UOP_IOTA, .elem = ELEM_S32, .aux = 0 };
	in.uop[9] = vt_uop(UOP_ADD, ELEM_S32, 4, 9, 0);		/* 10: of both places */
	for (unsigned k = 0; k < 4; k++) {
		in.head.body.n_out = k & 1 ? 4 : 3;
		assert_true(vt_open(&vt, "portable", 1 + k / 2));
		memset(got, 77, sizeof(got));
		assert_int_equal(vt_run(&vt, &in, mem, k & 1 ? 5 : 4, &run), 0);
		for (int c = 0; c < COLS && k & 1; c++)
			assert_int_equal(sums[c], ROWS * c + ROWS * (ROWS - 1) / 2);
		for (int i = 0; i < N; i++) {
			int32_t c = i % COLS, most = x[i] < 0 ? -x[i] : 0;

			assert_int_equal(got[0][i], c + i / COLS);
			assert_int_equal(got[1][i], c * c - c);
			assert_int_equal((uint32_t)got[2][i],
					 -((uint32_t)most + (uint32_t)(c * c)));
		}
		vt_close(&vt);
	}
}

/* ---- random instructions ---- */

/* Something that loads, for mutation. */
static void valid(uint64_t *seed, struct vt_insn *in)
{
	unsigned kind = vt_random(seed) % 3;

	memset(in, 0, sizeof(*in));
	in->head.insn.op = kind == 2 ? ISA_REDUCE : ISA_VEC;
	in->head.body = (struct isa_body){ .rank = 2, .n_in = 2, .n_out = 1, .n_uop = 2,
		.row_rank = kind == 1, .dim = { 5, 7, 1, 1, 1, 1, 1, 1 } };
	for (unsigned j = 0; j < 3; j++) {
		in->op[j] = (struct isa_operand){ .elem = ELEM_F32, .binding = (uint16_t)j };
		in->op[j].stride[0] = 28;
		in->op[j].stride[1] = 4;
	}
	in->uop[0] = vt_uop(kind == 1 ? UOP_RADD : UOP_MUL, ELEM_F32, 0, kind != 1, 0);
	in->uop[1] = vt_uop(UOP_ADD, ELEM_F32, 1, 2, 0);
	in->op[2].value = 3;
	if (kind == 2) {
		in->head.reduce_dims = 2;
		in->op[0].stride[1] = in->op[2].stride[1] = 0;
	}
}

static void mutate(uint64_t *seed, struct vt_insn *in)
{
	struct { void *p; size_t bytes; } part[] = {
		{ &in->head.body, 8 }, { in->head.body.dim, 16 }, { in->op, 3 * sizeof(in->op[0]) },
		{ in->uop, 3 * sizeof(in->uop[0]) }, { &in->head.reduce_dims, 4 },
	};
	unsigned n = 1 + vt_random(seed) % 4;

	while (n--) {
		unsigned k = vt_random(seed) % 5;
		uint8_t *p = (uint8_t *)part[k].p + vt_random(seed) % part[k].bytes;

		*p = vt_random(seed) % 2 ? (uint8_t)(vt_random(seed) % 20) :
			(uint8_t)(vt_random(seed) % 2 ? *p ^ 1u << vt_random(seed) % 8 :
				  vt_random(seed));
	}
}

static uint64_t points_of(const struct isa_body *b)
{
	uint64_t n = 1;

	for (unsigned d = 0; d < ISA_MAX_RANK; d++)
		if (b->dim[d] < 0 || __builtin_mul_overflow(n, (uint64_t)b->dim[d], &n))
			return UINT64_MAX;
	return n;
}

static void random_instructions_stay_inside(void **state)
{
	unsigned trials = getenv("BODY_TRIALS") ? (unsigned)atoi(getenv("BODY_TRIALS")) : 60000;
	uint64_t seed = getenv("BODY_SEED") ? strtoull(getenv("BODY_SEED"), NULL, 0) : 21;
	unsigned ran = 0;
	struct vt vt[3];
	unsigned n = 0;

	(void)state;
	n += vt_open(&vt[n], "portable", 1);
	n += vt_open(&vt[n], "avx2", 1);
	n += vt_open(&vt[n], "avx512", 1);
	for (unsigned i = 0; i < trials; i++) {
		static struct vt_insn in;
		struct vt_mem mem[3];
		struct sim_run run;

		valid(&seed, &in);
		mutate(&seed, &in);
		if (points_of(&in.head.body) > 100000 || in.head.body.n_in > ISA_MAX_IN ||
		    in.head.body.n_out > ISA_MAX_OUT || in.head.body.n_uop > ISA_MAX_VALUES)
			continue;
		for (unsigned k = 0; k < 3; k++) {
			mem[k].bytes = 140 + (k == 1 ? 100 : 0);
			mem[k].p = malloc(mem[k].bytes);
			memset(mem[k].p, 0x3f, mem[k].bytes);
		}
		ran += !vt_run(&vt[i % n], &in, mem, 3, &run);
		for (unsigned k = 0; k < 3; k++)
			free(mem[k].p);
	}
	while (n)
		vt_close(&vt[--n]);
	/* most are refused, but not all */
	assert_true(ran > trials / 50);
}

/* More than caches keep, in pieces that begin and end at any element: every element arrives, and
 * nothing beside them. */
static void large_outputs_are_stored_whole(void **state)
{
	enum { N = 12000007, ROOM = N + 40 };
	static const unsigned at[] = { 5, 16, 3 };
	struct vt_insn in = { 0 };
	struct vt_mem mem[4];
	struct sim_run run;
	struct vt vt;

	(void)state;
	in.head.insn.op = ISA_VEC;
	in.head.body = (struct isa_body){ .rank = 1, .n_in = 1, .n_out = 3, .n_uop = 2,
		.dim = { N, 1, 1, 1, 1, 1, 1, 1 } };
	in.uop[0] = vt_uop(UOP_ADD, ELEM_S32, 0, 0, 0);
	in.uop[1] = vt_uop(UOP_MUL, ELEM_S32, 1, 0, 0);
	for (unsigned k = 0; k < 4; k++) {
		in.op[k] = (struct isa_operand){ .elem = ELEM_S32, .binding = (uint16_t)k,
						 .stride = { 4 } };
		mem[k] = (struct vt_mem){ malloc(ROOM * 4), ROOM * 4 };
		assert_non_null(mem[k].p);
		memset(mem[k].p, 0x5a, ROOM * 4);
	}
	for (unsigned j = 0; j < 3; j++) {
		in.op[1 + j].offset = at[j] * 4;
		in.op[1 + j].value = (uint8_t)j;
	}
	for (uint32_t i = 0; i < N; i++)
		((uint32_t *)mem[0].p)[i] = i * 2654435761u;
	assert_true(vt_open(&vt, "portable", 2));
	assert_int_equal(vt_run(&vt, &in, mem, 4, &run), 0);
	for (unsigned j = 0; j < 3; j++) {
		const uint32_t *got = mem[1 + j].p;

		for (uint32_t i = 0; i < ROOM; i++) {
			uint32_t x = (i - at[j]) * 2654435761u;
			uint32_t want = j == 0 ? x : j == 1 ? 2 * x : 2 * x * x;

			if (i < at[j] || i >= at[j] + N)
				want = 0x5a5a5a5a;
			if (got[i] != want)
				fail_msg("output %u, element %u: %x, not %x", j, i, got[i], want);
		}
	}
	for (unsigned k = 0; k < 4; k++)
		free(mem[k].p);
	vt_close(&vt);
}

/* One element a row, the last row's first; what is made of them is not stored. */
static void values_that_none_stores_read_their_rows(void **state)
{
	enum { ROWS = 4, COLS = 8 };
	const size_t page = (size_t)getpagesize();
	char *pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			   -1, 0);
	float x[ROWS * COLS], got[ROWS * COLS];
	const struct vt_mem mem[] = { { x, sizeof(x) }, { pages + page - ROWS * 4, ROWS * 4 },
				      { got, sizeof(got) } };
	struct vt_insn in = { .head = { .insn = { .op = ISA_VEC },
		.body = { .rank = 2, .row_rank = 1, .n_in = 2,
			  .n_out = 1, .n_uop = 2, .dim = { ROWS, COLS, 1, 1, 1, 1, 1, 1 } } } };
	struct sim_run run;
	struct vt vt;

	(void)state;
	assert_ptr_not_equal(pages, MAP_FAILED);
	assert_int_equal(mprotect(pages + page, page, PROT_NONE), 0);
	for (unsigned i = 0; i < ROWS * COLS; i++)
		x[i] = (float)i;
	for (unsigned j = 0; j < 3; j++)
		in.op[j] = (struct isa_operand){ .elem = ELEM_F32, .binding = (uint8_t)j,
						 .stride = { COLS * 4, 4 } };
	in.op[1].offset = (ROWS - 1) * 4;
	in.op[1].stride[0] = -4;
	in.op[1].stride[1] = 0;
	in.op[2].value = 3;
	in.uop[0] = vt_uop(UOP_ADD, ELEM_F32, 1, 1, 0);
	in.uop[1] = vt_uop(UOP_ADD, ELEM_F32, 0, 0, 0);
	assert_true(vt_open(&vt, "portable", 1));
	assert_int_equal(vt_run(&vt, &in, mem, 3, &run), 0);
	for (unsigned i = 0; i < ROWS * COLS; i++)
		assert_true(got[i] == (float)(2 * i));
	vt_close(&vt);
	munmap(pages, 2 * page);
}

/* One point of binding 0: x * 0.5 + c, TERMS times, where the plan of the instruction before is
 * given back. */
static void small_polynomials_keep_their_terms(void **state)
{
	enum { TERMS = 5, INSNS = 6 };
	static const char *const paths[] = { "portable", "avx2", "avx512" };
	static uint64_t code[INSNS * sizeof(struct vt_insn) / 8];
	struct vt_insn in = { .head = { .insn = { .op = ISA_VEC }, .body = { .n_in = 1,
		.n_out = 1, .n_uop = 1 + 3 * TERMS, .dim = { 1, 1, 1, 1, 1, 1, 1, 1 } } } };
	const float half = 0.5f;
	float x = 3, want = x;
	size_t bytes = 0;

	(void)state;
	in.op[0] = in.op[1] = (struct isa_operand){ .elem = ELEM_F32 };
	in.op[1].value = 1 + 3 * TERMS;
	in.uop[0] = (struct isa_uop){ .op = UOP_IMM, .elem = ELEM_F32 };
	memcpy(&in.uop[0].imm, &half, sizeof(half));
	for (unsigned i = 0; i < INSNS; i++) {
		for (unsigned k = 0, v = 2; k < TERMS; k++, v += 3) {
			float c = (float)(i * TERMS + k);

			in.uop[v - 1] = (struct isa_uop){ .op = UOP_IMM, .elem = ELEM_F32 };
			memcpy(&in.uop[v - 1].imm, &c, sizeof(c));
			in.uop[v] = vt_uop(UOP_MUL, ELEM_F32, k ? v - 1 : 0, 1, 0);
			in.uop[v + 1] = vt_uop(UOP_ADD, ELEM_F32, v + 1, v, 0);
			want = want * half + c;
		}
		bytes += vt_encode(&in, (char *)code + bytes);
	}
	for (unsigned p = 0; p < 3; p++) {
		float at = x;
		const struct vt_mem mem = { &at, sizeof(at) };
		struct sim_run run;
		struct vt vt;

		if (!vt_open(&vt, paths[p], 1))
			continue;
		assert_int_equal(vt_run_code(&vt, code, bytes, &mem, 1, &run), 0);
		assert_true(at == want);
		vt_close(&vt);
	}
}

/* Both zeros, infinities, NaNs of either sign, quiet and not, with bits that tell them apart. */
static const uint32_t hard[] = {
	0, 0x80000000, 0x3f800000, 0xbf800000, 0x3f800001, 0x7f7fffff, 0xff7fffff, 0x00800000,
	0x80800000, 0x7f800000, 0xff800000, 0x7fc00001, 0xffc00002, 0x7f800003, 0xff800004,
};

/* NaN wins, the first of two; -0 is less than 0. */
static uint32_t extreme(bool is_max, uint32_t x, uint32_t y)
{
	float a, b;

	memcpy(&a, &x, sizeof(a));
	memcpy(&b, &y, sizeof(b));
	if (isnan(a) || isnan(b))
		return isnan(a) ? x : y;
	if (x << 1 == 0 && y << 1 == 0)
		return is_max ? x & y : x | y;
	return (a > b) == is_max ? x : y;
}

/* Each of them with each, a place for each pair, in windows of so many numbers and by so many
 * components of an index. */
static void scatter_extremes(struct vt *t, const char *path, bool is_max, int64_t window,
			     unsigned n_index)
{
	enum { N = sizeof(hard) / sizeof(*hard), PAIRS = N * N, MOST = 40 };
	struct {
		struct isa_scatter s;
		struct isa_operand upd, dst;
		struct isa_uop uop;
	} w = {
		.s = { .n_batch = 1, .n_index = (uint8_t)n_index, .index_stride = 4,
		       .index = { { PAIRS - 1, 4 * window }, { 0, 4 } },
		       .idx = { .elem = ELEM_S32, .stride = { 4 * n_index } },
		       .body = { .rank = 2, .n_in = 1, .n_out = 1, .n_uop = 1,
				 .dim = { PAIRS + 2, window, 1, 1, 1, 1, 1, 1 } } },
		.upd = { .elem = ELEM_F32, .binding = 1, .stride = { 4 * window, 4 } },
		.dst = { .elem = ELEM_F32, .binding = 2, .stride = { 0, 4 }, .value = 2 },
		.uop = vt_uop(is_max ? UOP_MAX : UOP_MIN, ELEM_F32, 0, 1, 0),
	};
	static uint32_t update[(PAIRS + 2) * MOST], table[PAIRS * MOST];
	int32_t index[(PAIRS + 2) * 2] = { 0 };
	struct in_code code = { .n = 0 };
	struct sim_run run;

	w.s.insn.op = ISA_SCATTER;
	for (unsigned i = 0; i < PAIRS; i++)
		for (unsigned k = 0; k < window; k++) {
			index[i * n_index] = (int32_t)i;
			table[i * window + k] = hard[i % N];
			update[i * window + k] = hard[i / N];
		}
	/* just outside, at both ends */
	index[PAIRS * n_index] = -1;
	index[(PAIRS + 1) * n_index] = PAIRS;
	in_put(&code, &w, sizeof(w));
	assert_int_equal(in_run(t, &code, (struct vt_mem[]){
		{ index, 4 * n_index * (PAIRS + 2) }, { update, 4 * window * (PAIRS + 2) },
		{ table, 4 * window * PAIRS } }, 3, &run), 0);
	for (unsigned i = 0; i < PAIRS * window; i++) {
		uint32_t old = hard[i / window % N], new = hard[i / window / N];

		if (table[i] != extreme(is_max, old, new))
			fail_msg("%s: %s(%08x, %08x) gives %08x", path, is_max ? "max" : "min",
				 old, new, table[i]);
	}
}

static void extremes_of_windows(struct vt *t, const char *path)
{
	static const int64_t windows[] = { 1, 3, 16, 40 };

	for (unsigned i = 0; i < 16; i++)
		scatter_extremes(t, path, i & 1, windows[i / 4], 1 + (i >> 1 & 1));
}

static void scatters_find_extremes(void **state)
{
	(void)state;
	in_each_path(extremes_of_windows);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rules_of_uops), cmocka_unit_test(rules_of_outputs),
		cmocka_unit_test(rules_of_rows),
		cmocka_unit_test(rows_and_spreads_keep_their_shapes),
		cmocka_unit_test(iota_counts_from_the_tile),
		cmocka_unit_test(tiles_survive_memory),
		cmocka_unit_test(columns_are_as_one_by_one),
		cmocka_unit_test(shifts_that_rotate_and_that_do_not),
		cmocka_unit_test(comparisons_select),
		cmocka_unit_test(constants_divide),
		cmocka_unit_test(rows_have_the_same_places),
		cmocka_unit_test(random_instructions_stay_inside),
		cmocka_unit_test(large_outputs_are_stored_whole),
		cmocka_unit_test(values_that_none_stores_read_their_rows),
		cmocka_unit_test(small_polynomials_keep_their_terms),
		cmocka_unit_test(scatters_find_extremes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
