/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CONV against the equation of isa.h in plain loops: every pair of types, up to six
 * spatial dims, strides, dilations, padding of either sign, reversal, groups, bodies,
 * on each path; and what it refuses.
 */
#include "tests/unit/sim/sim_epilogue.h"
#include "tests/unit/sim/sim_test.h"

struct trial {
	struct isa_conv c;
	struct ep e;
	char what[200];
};

static uint64_t count_of(unsigned rank, const int64_t *dim)
{
	uint64_t count = 1;

	for (unsigned d = 0; d < rank; d++)
		count *= (uint64_t)dim[d];
	return count;
}

/* Which of a sweep's freedoms a trial has. */
struct shape {
	unsigned spatial;
	int64_t batch, features, in_features, groups;
	bool batch_groups, plain;
	int64_t most_out, most_kernel;
};

/* Plain windows, one freedom of them at a time, or all at once. */
static void draw_windows(uint64_t *seed, struct isa_conv *c, const struct shape *s,
			 int64_t *dim)
{
	enum { PLAIN, STRIDE, LHS, RHS, REVERSED, POINT, ALL, STYLES };
	unsigned style = s->plain ? PLAIN : vt_random(seed) % STYLES;

	for (unsigned d = 0; d < s->spatial; d++) {
		bool all = style == ALL;

		dim[2 + d] = in_range(seed, 1, s->most_out);
		c->kernel[d] = style == POINT ? 1 : in_range(seed, 1, s->most_kernel);
		c->window_stride[d] = all || style == STRIDE ? in_range(seed, 1, 3) : 1;
		c->lhs_dilation[d] = all || style == LHS ? in_range(seed, 1, 3) : 1;
		c->rhs_dilation[d] = all || style == RHS ? in_range(seed, 1, 3) : 1;
		c->pad_low[d] = style == POINT ? 0 : in_range(seed, all ? -2 : 0, 3);
		c->in_size[d] = style == POINT ? dim[2 + d] :
				in_range(seed, 1, dim[2 + d] * 2 + 1);
		if (style == REVERSED || (all && vt_random(seed) % 2))
			c->reversed |= (uint8_t)(1u << d);
	}
}

static struct vt_mem place_side(uint64_t *seed, struct isa_operand *op, unsigned rank,
				const int64_t *dims, bool wild)
{
	uint64_t bytes = ty_layout(seed, op, rank, dims, elem_bytes(op->elem));

	return ty_memory(seed, op->elem, wild, bytes);
}

static void make(struct trial *t, uint64_t *seed, struct ep_pair pair, enum ep_kind kind,
		 bool wild, const struct shape *s)
{
	struct isa_conv *c = &t->c;
	int64_t dim[ISA_MAX_RANK] = { s->batch, s->features };
	int64_t lhs[ISA_MAX_RANK], rhs[ISA_MAX_RANK];
	unsigned rank = s->spatial + 2;

	memset(t, 0, sizeof(*t));
	*c = (struct isa_conv){ .insn.op = ISA_CONV, .acc = pair.acc,
		.n_spatial = (uint8_t)s->spatial, .in_features = s->in_features,
		.feature_groups = s->batch_groups ? 1 : s->groups,
		.batch_groups = s->batch_groups ? s->groups : 1,
		.lhs.elem = pair.a, .rhs = { .elem = pair.b, .binding = EP_B } };
	draw_windows(seed, c, s, dim);
	if (wild && !ty_is_integer(pair.acc))
		kind = EP_DIRECT;
	ep_make(&t->e, seed, kind, pair.acc, wild, rank, dim);
	lhs[0] = s->batch * c->batch_groups;
	lhs[1] = s->in_features * c->feature_groups;
	rhs[0] = s->features;
	rhs[1] = s->in_features;
	memcpy(lhs + 2, c->in_size, s->spatial * sizeof(*lhs));
	memcpy(rhs + 2, c->kernel, s->spatial * sizeof(*rhs));
	t->e.mem[EP_A] = place_side(seed, &c->lhs, rank, lhs, wild);
	t->e.mem[EP_B] = place_side(seed, &c->rhs, rank, rhs, wild);
	if (pair.acc == ELEM_F32)
		c->precision = (uint8_t)(vt_random(seed) % 3);
	c->body = t->e.body;
	snprintf(t->what, sizeof(t->what), "%s by %s in %s, body %u, %u spatial, %lld batches, "
		 "%lld features from %lld, %lld %s groups", elem_text(pair.a),
		 elem_text(pair.b), elem_text(pair.acc), t->e.kind, s->spatial,
		 (long long)s->batch, (long long)s->features, (long long)s->in_features,
		 (long long)s->groups, s->batch_groups ? "batch" : "feature");
}

/* What kernel position y gives at output point `at`, added to the sum. */
static void add_tap(const struct trial *t, const int64_t *at, const int64_t *y,
		    struct ty_sum *sum)
{
	const struct isa_conv *c = &t->c;
	int64_t o_group = t->e.dim[1] / c->feature_groups;
	int64_t b_group = t->e.dim[1] / c->batch_groups;
	int64_t l[ISA_MAX_RANK] = { at[0] }, r[ISA_MAX_RANK] = { at[1] };

	if (c->batch_groups > 1)
		l[0] += t->e.dim[0] * (at[1] / b_group);
	for (unsigned d = 0; d < c->n_spatial; d++) {
		int64_t q = at[2 + d] * c->window_stride[d] + y[d] * c->rhs_dilation[d] -
			    c->pad_low[d];

		if (q < 0 || q % c->lhs_dilation[d] || q / c->lhs_dilation[d] >= c->in_size[d])
			return;
		l[2 + d] = q / c->lhs_dilation[d];
		r[2 + d] = c->reversed >> d & 1 ? c->kernel[d] - 1 - y[d] : y[d];
	}
	for (int64_t f = 0; f < c->in_features; f++) {
		l[1] = f + c->in_features * (at[1] / o_group);
		r[1] = f;
		ty_madd(sum, c->acc, ty_get(c->lhs.elem, (uint8_t *)t->e.mem[EP_A].p +
					    in_at(&c->lhs, t->e.rank, l)),
			ty_get(c->rhs.elem, (uint8_t *)t->e.mem[EP_B].p +
			       in_at(&c->rhs, t->e.rank, r)));
	}
}

static void expect(struct trial *t)
{
	const struct isa_conv *c = &t->c;
	int64_t taps = c->in_features;
	bool is_void = false;

	for (unsigned d = 0; d < t->e.rank; d++)
		if (!t->e.dim[d])
			return;
	for (unsigned d = 0; d < c->n_spatial; d++) {
		is_void |= !c->kernel[d];
		taps *= c->kernel[d];
	}
	IN_EACH_POINT(t->e.rank, t->e.dim, at) {
		struct ty_sum sum = { { 0, 0, 0 }, 0 };
		int64_t y[ISA_MAX_RANK] = { 0 };

		do {
			if (!is_void)
				add_tap(t, at, y, &sum);
		} while (in_next(c->n_spatial, c->kernel, y));
		ep_expect(&t->e, at, &sum, c->precision, taps);
	}
}

/* Of the input and the kernel, each element once, if there is something to sum. */
static uint64_t bytes_of_sides(const struct trial *t)
{
	const struct isa_conv *c = &t->c;
	uint64_t features = (uint64_t)c->in_features, lhs, rhs;

	lhs = (uint64_t)(t->e.dim[0] * c->batch_groups * c->feature_groups) * features *
	      count_of(c->n_spatial, c->in_size);
	rhs = (uint64_t)t->e.dim[1] * features * count_of(c->n_spatial, c->kernel);
	return lhs && rhs && count_of(t->e.rank, t->e.dim) ?
		lhs * elem_bytes(c->lhs.elem) + rhs * elem_bytes(c->rhs.elem) : 0;
}

/* Of an element of n operands at each point. */
static uint64_t bytes_of(const struct ep *e, const struct isa_operand *op, unsigned n)
{
	uint64_t bytes = 0;

	for (unsigned j = 0; j < n; j++)
		bytes += elem_bytes(op[j].elem) * count_of(e->rank, e->dim);
	return bytes;
}

static void run_trial(struct vt *vt, unsigned n, struct trial *t)
{
	struct sim_run run;

	expect(t);
	for (unsigned i = 0; i < n; i++) {
		struct in_code c = { .n = 0 };

		in_put(&c, &t->c, sizeof(t->c));
		ep_put(&t->e, &c);
		ep_start(&t->e);
		if (in_run(&vt[i], &c, t->e.mem, EP_MEMORIES, &run))
			fail_msg("%s: does not run", t->what);
		ep_check(&t->e, t->what);
		assert_int_equal(run.read_bytes, bytes_of_sides(t) +
				 bytes_of(&t->e, t->e.in, t->e.body.n_in));
		assert_int_equal(run.write_bytes, bytes_of(&t->e, t->e.out, t->e.body.n_out));
	}
	free(t->e.mem[EP_A].p);
	free(t->e.mem[EP_B].p);
	ep_free(&t->e);
}

/* Sizes by the number of spatial dims, so that the work is alike. */
static struct shape draw_shape(uint64_t *seed, unsigned spatial)
{
	static const int64_t out[] = { 1, 40, 9, 4, 3, 2, 2 };
	static const int64_t kernel[] = { 1, 7, 4, 3, 2, 2, 2 };
	struct shape s = { .spatial = spatial, .most_out = out[spatial],
			   .most_kernel = kernel[spatial] };

	s.batch = in_range(seed, 1, spatial ? 3 : 40);
	s.groups = vt_random(seed) % 2 ? 1 : in_range(seed, 2, 4);
	s.batch_groups = vt_random(seed) % 2;
	s.features = s.groups * ty_size(seed, 9);
	s.in_features = ty_size(seed, spatial > 2 ? 3 : 9);
	s.plain = vt_random(seed) % 4 == 0;
	return s;
}

static void every_pair_of_types(void **state)
{
	static struct trial t;
	struct vt vt[3];
	unsigned n = ty_open(vt);
	uint64_t seed = 31;

	(void)state;
	for (unsigned p = 0; p < EP_N_PAIRS; p++)
		for (unsigned kind = 0; kind < EP_KINDS; kind++) {
			struct shape s = draw_shape(&seed, vt_random(&seed) % 4);

			make(&t, &seed, ep_pairs[p], kind, vt_random(&seed) % 2, &s);
			run_trial(vt, n, &t);
		}
	ty_close(vt, n);
}

/* From none to six spatial dims, all freedoms of the windows at once. */
static void every_number_of_spatial_dims(void **state)
{
	static struct trial t;
	struct vt vt[3];
	unsigned n = ty_open(vt);
	uint64_t seed = 17;

	(void)state;
	for (unsigned round = 0; round < 350; round++) {
		struct shape s = draw_shape(&seed, round % 7);

		make(&t, &seed, ep_pairs[round % 3 ? 0 : vt_random(&seed) % EP_N_PAIRS],
		     vt_random(&seed) % EP_KINDS, round % 2, &s);
		run_trial(vt, n, &t);
	}
	ty_close(vt, n);
}

/* Features, lines and depth around the ends of blocks. */
static void ends_of_blocks(void **state)
{
	static const int64_t edges[] = { 11, 12, 13, 15, 16, 17, 31, 32, 33, 47, 48, 49, 63,
					 64, 65, 127, 128, 129, 191, 192, 193, 255, 256, 257,
					 383, 384, 385, 511, 512, 513, 1025, 1919, 1920, 1921 };
	static const struct ep_pair pairs[] = {
		{ ELEM_F32, ELEM_F32, ELEM_F32 }, { ELEM_BF16, ELEM_BF16, ELEM_F32 },
		{ ELEM_S8, ELEM_S8, ELEM_S32 },
	};
	static struct trial t;
	struct vt vt[3];
	unsigned n = ty_open(vt);
	uint64_t seed = 13;

	(void)state;
	for (unsigned i = 0; i < sizeof(edges) / sizeof(*edges); i++)
		for (unsigned which = 0; which < 6; which++)
			for (unsigned p = 0; p < 3; p++) {
				struct shape s = { 1 + i % 2, 2, 3, 2, 1 + i % 3, i % 2, i % 4,
						   which > 3 ? edges[i] : 4, 3 };

				s.batch = which == 0 ? edges[i] : s.batch;
				s.features = (which == 1 ? edges[i] : 3) * s.groups;
				s.in_features = which == 2 ? edges[i] : 2;
				/* many small groups */
				if (which == 3) {
					s.groups = edges[i];
					s.features = edges[i] * (1 + i % 2);
				}
				/* long lines, of few features and of many */
				s.spatial = which > 3 ? 1 : s.spatial;
				if (which == 5)
					s.features = 40 * s.groups;
				make(&t, &seed, pairs[p], vt_random(&seed) % EP_KINDS,
				     vt_random(&seed) % 2, &s);
				run_trial(vt, n, &t);
			}
	ty_close(vt, n);
}

/* Kernels of one point, which may lie beside the input: rows are the input's own points, or not. */
static void windows_of_one_point(void **state)
{
	static struct trial t;
	struct vt vt[3];
	unsigned n = ty_open(vt);
	uint64_t seed = 37;

	(void)state;
	for (unsigned round = 0; round < 240; round++) {
		struct shape s = { 1 + round % 2, in_range(&seed, 1, 2), in_range(&seed, 1, 40),
				   in_range(&seed, 1, 20), 1, false, round % 3,
				   round % 2 ? 9 : 60, 1 };

		make(&t, &seed, ep_pairs[0], vt_random(&seed) % EP_KINDS, false, &s);
		run_trial(vt, n, &t);
	}
	ty_close(vt, n);
}

/* Empty outputs change nothing; an empty kernel, no features or an input that no window
 * meets give the body of zeros. */
static void empty_convolutions(void **state)
{
	static struct trial t;
	struct vt vt[3];
	unsigned n = ty_open(vt);
	uint64_t seed = 19;

	(void)state;
	for (unsigned p = 0; p < EP_N_PAIRS; p++)
		for (unsigned zero = 0; zero < 7; zero++) {
			struct shape s = { 2, 2, 3, 2, 1, false, true, 5, 3 };
			int64_t *fields[] = { &s.batch, &s.features, &s.in_features };

			if (zero < 3)
				*fields[zero] = 0;
			make(&t, &seed, ep_pairs[p], p % EP_KINDS, false, &s);
			if (zero == 3)
				t.c.kernel[p % 2] = 0;
			if (zero == 4)
				t.c.in_size[p % 2] = 0;
			if (zero == 5)
				t.c.pad_low[p % 2] = 1000;
			if (zero == 6)
				t.c.pad_low[p % 2] = -1000;
			run_trial(vt, n, &t);
		}
	ty_close(vt, n);
}

/* Layers of a network, large enough for several lanes: of many rows, features last, and of more
 * features than rows. */
static void large_convolutions(void **state)
{
	static const struct ep_pair pairs[] = {
		{ ELEM_F32, ELEM_F32, ELEM_F32 }, { ELEM_S8, ELEM_U8, ELEM_S32 },
	};
	struct shape s = { 2, 2, 40, 24, 1, false, true, 0, 0 };
	static struct trial t;
	struct vt vt[3];
	unsigned n = ty_open(vt);
	uint64_t seed = 29;

	(void)state;
	for (unsigned p = 0; p < 2; p++) {
		s.most_out = 27;
		s.most_kernel = 3;
		make(&t, &seed, pairs[p], EP_RELU, false, &s);
		run_trial(vt, n, &t);
	}
	for (unsigned round = 0; round < 12; round++) {
		struct shape wide = { 1, 1, 300 + round % 4 * 75, 90, 1 + round % 2, round % 4 < 2,
				      true, 24, 3 };

		wide.features *= wide.groups;
		make(&t, &seed, pairs[round % 2], vt_random(&seed) % EP_KINDS, false, &wide);
		run_trial(vt, n, &t);
	}
	ty_close(vt, n);
}

/* ---- refusals and faults ---- */

struct whole {
	struct isa_conv c;
	struct isa_operand in, out;
	struct isa_uop uop;
};

static struct t_sim sim;
static struct t_program prog;

/* 1 x 2 features x 4 x 4 from 2 features x 5 x 5, kernel 2 x 2. */
static struct whole whole_good(void)
{
	return (struct whole){ .c = { .insn.op = ISA_CONV, .acc = ELEM_F32, .n_spatial = 2,
			.in_features = 2, .feature_groups = 1, .batch_groups = 1,
			.in_size = { 5, 5 }, .kernel = { 2, 2 }, .window_stride = { 1, 1 },
			.lhs_dilation = { 1, 1 }, .rhs_dilation = { 1, 1 },
			.lhs = { .elem = ELEM_F32, .stride = { 200, 100, 20, 4 } },
			.rhs = { .elem = ELEM_F32, .binding = 1, .stride = { 32, 16, 8, 4 } },
			.body = { .rank = 4, .n_in = 1, .n_out = 1, .n_uop = 1,
				  .dim = { 1, 2, 4, 4, 1, 1, 1, 1 } } },
		.in = { .elem = ELEM_F32, .binding = 2, .stride = { 128, 64, 16, 4 } },
		.out = { .elem = ELEM_F32, .binding = 3, .value = 2,
			 .stride = { 128, 64, 16, 4 } },
		.uop = vt_uop(UOP_ADD, ELEM_F32, 0, 1, 0) };
}

static const uint64_t room[4] = { 200, 64, 128, 128 };

/* The status of w with register 1 at `reg`; unless it is 0, memory is as it was. */
static unsigned run_whole(struct whole w, int64_t reg)
{
	unsigned status;

	w.c.insn.bytes = sizeof(w);
	t_program(&prog);
	for (unsigned i = 0; i < 4; i++)
		t_bind(&prog, T_HBM_VA + i * 256, room[i],
		       i == 3 ? HW_BIND_READ | HW_BIND_WRITE : HW_BIND_READ);
	t_li(&prog, 1, reg);
	t_add(&prog, &w, sizeof(w));
	t_halt(&prog);
	memset(sim.hbm, 7, 4096);
	memset(&sim.fault, 0, sizeof(sim.fault));
	status = t_run(&sim, &prog);
	for (unsigned i = 0; i < 4096; i++)
		if (status || i < 768 || i >= 896)
			assert_int_equal(sim.hbm[i], 7);
	return status;
}

#define REFUSES(change) do { \
		struct whole w = whole_good(); \
	\
		change; \
		assert_int_equal(run_whole(w, 0), HW_ST_BAD_PROGRAM); \
		assert_int_equal(sim.refused_at, sizeof(struct isa_scalar)); \
	} while (0)

static void malformed_windows_are_refused(void **state)
{
	(void)state;
	t_open(&sim, "lanes=1");
	assert_int_equal(run_whole(whole_good(), 0), 0);
	REFUSES(w.c.n_spatial = 1);
	REFUSES(w.c.n_spatial = 7);
	REFUSES(w.c.reversed = 4);
	REFUSES(w.c.in_features = -1);
	REFUSES(w.c.in_features = 3);
	REFUSES(w.c.in_features = INT64_MAX);
	REFUSES(w.c.feature_groups = 0);
	REFUSES(w.c.batch_groups = 0);
	REFUSES(w.c.feature_groups = -1);
	REFUSES(w.c.feature_groups = 2);
	REFUSES(w.c.batch_groups = 2);
	REFUSES(w.c.feature_groups = INT64_MAX);
	REFUSES(w.c.batch_groups = INT64_MAX);
	REFUSES((w.c.feature_groups = 2, w.c.batch_groups = 2));
	REFUSES((w.c.feature_groups = 4, w.c.in_features = 0));
	REFUSES((w.c.batch_groups = 4, w.c.in_features = 0));
	REFUSES(w.c.in_size[0] = 6);
	REFUSES(w.c.in_size[0] = -1);
	REFUSES(w.c.in_size[1] = INT64_MAX);
	REFUSES(w.c.kernel[0] = 3);
	REFUSES(w.c.kernel[0] = -1);
	REFUSES(w.c.kernel[1] = INT64_MAX);
	REFUSES(w.c.window_stride[0] = 0);
	REFUSES(w.c.window_stride[0] = -1);
	REFUSES(w.c.window_stride[1] = INT64_MAX);
	REFUSES(w.c.lhs_dilation[0] = 0);
	REFUSES(w.c.lhs_dilation[1] = -1);
	REFUSES(w.c.rhs_dilation[0] = 0);
	REFUSES(w.c.rhs_dilation[1] = INT64_MIN);
	REFUSES(w.c.rhs_dilation[1] = INT64_MAX);
	REFUSES(w.c.pad_low[0] = INT64_MAX);
	REFUSES(w.c.pad_low[0] = INT64_MIN);
	t_close(&sim);
}

static void malformed_operands_are_refused(void **state)
{
	(void)state;
	t_open(&sim, "lanes=1");
	REFUSES(w.c.insn.flags = 1);
	REFUSES(w.c.acc = ELEM_F16);
	REFUSES(w.c.acc = ELEM_U32);
	REFUSES(w.c.acc = 99);
	REFUSES(w.c.precision = 3);
	REFUSES(w.c.lhs.elem = ELEM_S32);
	REFUSES(w.c.lhs.elem = ELEM_INVALID);
	REFUSES(w.c.rhs.elem = ELEM_C64);
	REFUSES(w.c.rhs.elem = ELEM_F8E8M0FNU);
	REFUSES(w.c.zero[3] = 1);
	REFUSES(w.c.lhs.stride[3] = 8);
	REFUSES(w.c.lhs.stride[3] = -4);
	REFUSES(w.c.lhs.stride[2] = 22);
	REFUSES(w.c.lhs.stride[1] = INT64_MAX - 3);
	REFUSES(w.c.lhs.binding = 4);
	REFUSES(w.c.lhs.reg = 64);
	REFUSES(w.c.rhs.offset = 4);
	REFUSES(w.c.rhs.offset = -4);
	REFUSES(w.c.rhs.offset = INT64_MAX - 3);
	REFUSES(w.c.body.rank = 3);
	REFUSES(w.c.body.rank = 1);
	REFUSES(w.c.body.rank = 9);
	REFUSES(w.c.body.row_rank = 1);
	REFUSES(w.c.body.dim[0] = 2);
	REFUSES(w.c.body.dim[1] = 3);
	REFUSES(w.c.body.dim[2] = -1);
	REFUSES(w.c.body.dim[3] = INT64_MAX);
	REFUSES(w.c.body.dim[4] = 2);
	REFUSES(w.in.stride[1] = 68);
	REFUSES(w.out.stride[1] = 68);
	REFUSES(w.out.binding = 2);
	REFUSES(w.out.combine = ISA_COMBINE_MAX);
	REFUSES(w.out.value = 3);
	REFUSES(w.out.elem = ELEM_S32);
	REFUSES(w.uop.op = UOP_RMAX);
	REFUSES(w.uop.b = 2);
	REFUSES(w.uop.elem = ELEM_S32);
	REFUSES((w.uop = vt_uop(UOP_IOTA, ELEM_F32, 0, 0, 0), w.uop.aux = 4));
	t_close(&sim);
}

static void registers_are_checked_before_the_convolution(void **state)
{
	static const int64_t wrong[] = { 4, -4, 200, INT64_MAX, INT64_MIN };

	(void)state;
	t_open(&sim, "lanes=2");
	for (unsigned operand = 0; operand < 4; operand++) {
		struct whole w = whole_good();
		struct isa_operand *ops[] = { &w.c.lhs, &w.c.rhs, &w.in, &w.out };

		ops[operand]->reg = 1;
		assert_int_equal(run_whole(w, 0), 0);
		for (unsigned i = 0; i < 5; i++) {
			assert_int_equal(run_whole(w, wrong[i]), HW_ST_BOUNDS);
			assert_int_equal(sim.fault.pc, sizeof(struct isa_scalar));
			assert_int_equal(sim.fault.operand, operand);
			assert_int_equal(sim.fault.binding, operand);
			assert_int_equal(sim.fault.is_write, operand == 3);
			assert_int_equal(sim.fault.va, (uint64_t)wrong[i]);
			assert_int_equal(sim.fault.bytes, room[operand]);
		}
		/* one feature less on all sides leaves room for a step */
		w.c.body.dim[1] = w.c.in_features = 1;
		assert_int_equal(run_whole(w, 2), HW_ST_ALIGNMENT);
		assert_int_equal(sim.fault.operand, operand);
		assert_int_equal(run_whole(w, 4), 0);
	}
	t_close(&sim);
}

/* The same memory over and over: too much to ever finish, but it can be stopped. */
static void endless_convolutions_end_by_the_watchdog(void **state)
{
	static const int64_t huge[][4] = {
		{ 1ll << 50, 1, 1, 1 }, { 1, 1ll << 50, 1, 1 }, { 1, 1, 1ll << 50, 1 },
		{ 1, 1, 1, 1ll << 50 }, { 1 << 12, 1 << 12, 1 << 13, 1 << 13 },
	};

	(void)state;
	t_open(&sim, TY_LANES);
	for (unsigned i = 0; i < 5; i++)
		for (int64_t step = 1; step <= 1000; step *= 1000) {
			unsigned status;
			struct whole w = whole_good();

			memset(w.c.lhs.stride, 0, sizeof(w.c.lhs.stride));
			memset(w.c.rhs.stride, 0, sizeof(w.c.rhs.stride));
			memset(w.in.stride, 0, sizeof(w.in.stride));
			memset(w.out.stride, 0, sizeof(w.out.stride));
			memcpy(w.c.body.dim, huge[i], sizeof(huge[i]));
			w.c.window_stride[0] = w.c.window_stride[1] = step;
			w.c.insn.bytes = sizeof(w);
			t_program(&prog);
			for (unsigned j = 0; j < 4; j++)
				t_bind(&prog, T_HBM_VA + j * 256, room[j],
				       HW_BIND_READ | HW_BIND_WRITE);
			t_add(&prog, &w, sizeof(w));
			t_halt(&prog);
			prog.limit_ns = 20000000;
			/* windows that no number reaches may be refused instead */
			status = t_run(&sim, &prog);
			assert_true(status == HW_ST_WATCHDOG ||
				    (step > 1 && status == HW_ST_BAD_PROGRAM));
		}
	t_close(&sim);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_pair_of_types),
		cmocka_unit_test(every_number_of_spatial_dims),
		cmocka_unit_test(ends_of_blocks),
		cmocka_unit_test(windows_of_one_point),
		cmocka_unit_test(empty_convolutions),
		cmocka_unit_test(large_convolutions),
		cmocka_unit_test(malformed_windows_are_refused),
		cmocka_unit_test(malformed_operands_are_refused),
		cmocka_unit_test(registers_are_checked_before_the_convolution),
		cmocka_unit_test(endless_convolutions_end_by_the_watchdog),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
