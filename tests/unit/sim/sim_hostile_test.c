/* SPDX-License-Identifier: Apache-2.0 */
/* Programs that fuzzing found: sizes and strides at the edge of 64 bits and of 32, instructions
 * without an end, operands that overlap. */
#include "tests/unit/sim/sim_insn.h"
#include "tests/unit/sim/sim_test.h"

#include <sys/mman.h>
#include <time.h>

static struct t_sim t;
static struct t_program p;

#define RW (HW_BIND_READ | HW_BIND_WRITE)
#define DATA 65536u	/* HBM offset of the programs' bindings */
#define BYTES 4096u

static int setup(void **state)
{
	(void)state;
	t_open(&t, "lanes=1");
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	t_close(&t);
	return 0;
}

/* Two bindings of BYTES, full of 1. */
static void start(void)
{
	t_program(&p);
	t_bind(&p, T_HBM_VA + DATA, BYTES, RW);
	t_bind(&p, T_HBM_VA + DATA + BYTES, BYTES, RW);
	memset(t.hbm + DATA, 1, 2 * BYTES);
}

static struct isa_copy copy_of(unsigned rank, unsigned bytes)
{
	struct isa_copy c = { .insn = { .op = ISA_COPY, .bytes = sizeof(c) },
			      .rank = (uint8_t)rank, .elem_bytes = (uint8_t)bytes,
			      .dst.binding = 1 };

	for (unsigned d = 0; d < ISA_MAX_RANK; d++)
		c.dim[d] = 1;
	return c;
}

static unsigned load_copy(const struct isa_copy *c)
{
	uint32_t id;
	unsigned status;

	start();
	t_add(&p, c, sizeof(*c));
	t_halt(&p);
	status = t_load(&t, &p, &id);
	if (!status)
		assert_int_equal(t_unload(&t, id), 0);
	return status;
}

static void too_many_points_are_refused(void **state)
{
	struct isa_copy c = copy_of(2, 1);

	(void)state;
	c.dim[0] = c.dim[1] = 1ll << 28;
	assert_int_equal(load_copy(&c), 0);	/* all of one byte: 2^56 points are allowed */
	c.dim[1]++;
	assert_int_equal(load_copy(&c), HW_ST_BAD_PROGRAM);
	c.dim[0] = 0;
	c.dim[1] = INT64_MAX;			/* none, but dims multiply */
	assert_int_equal(load_copy(&c), HW_ST_BAD_PROGRAM);
	c.dim[1] = -1;
	assert_int_equal(load_copy(&c), HW_ST_BAD_PROGRAM);
}

static void a_convolution_of_huge_dims_is_refused(void **state)
{
	struct {
		struct isa_conv c;
		struct isa_operand out;
	} x = { .c = { .insn = { .op = ISA_CONV, .bytes = sizeof(x) }, .acc = ELEM_F32,
		       .in_features = 1, .feature_groups = 1, .batch_groups = 1,
		       .lhs.elem = ELEM_F32, .rhs.elem = ELEM_F32,
		       .body = { .rank = 2, .n_out = 1,
				 .dim = { INT64_MAX, 1, 1, 1, 1, 1, 1, 1 } } },
		.out = { .elem = ELEM_F32, .binding = 1 } };
	uint32_t id;

	(void)state;
	start();
	t_add(&p, &x, sizeof(x));
	t_halt(&p);
	assert_int_equal(t_load(&t, &p, &id), HW_ST_BAD_PROGRAM);
	x.c.body.dim[0] = 1;
	start();
	t_add(&p, &x, sizeof(x));
	t_halt(&p);
	assert_int_equal(t_load(&t, &p, &id), 0);
	assert_int_equal(t_unload(&t, id), 0);
}

static void strides_that_span_everything_are_refused(void **state)
{
	struct isa_copy c = copy_of(1, 8);

	(void)state;
	c.dim[0] = 2;
	c.src.stride[0] = INT64_MIN;
	c.src.reg = 1;			/* so nothing is known of the address at loading */
	assert_int_equal(load_copy(&c), HW_ST_BAD_PROGRAM);
	c.src.stride[0] = 1ll << 61;
	assert_int_equal(load_copy(&c), HW_ST_BAD_PROGRAM);
}

/* Nothing is there to step to, so the stride means nothing. */
static void a_stride_of_one_element_is_ignored(void **state)
{
	struct isa_copy c = copy_of(3, 8);

	(void)state;
	c.dim[1] = 4;
	c.src.stride[0] = INT64_MIN;
	c.src.stride[1] = 8;
	c.dst.stride[1] = 16;
	c.dst.stride[2] = INT64_MAX - 7;
	start();
	for (unsigned i = 0; i < 4; i++)
		memset(t.hbm + DATA + 8 * i, (int)i + 2, 8);
	t_add(&p, &c, sizeof(c));
	t_halt(&p);
	assert_int_equal(t_run(&t, &p), 0);
	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(t.hbm[DATA + BYTES + 16 * i], i + 2);
		assert_int_equal(t.hbm[DATA + BYTES + 16 * i + 8], 1);
	}
}

/* A window that stands still over 2^40 points. `replaces`: the update takes the place, so
 * the window is copied, not computed. */
static void scatter_for_ever(bool replaces)
{
	struct {
		struct isa_scatter s;
		struct isa_operand upd, dst;
		struct isa_uop add;
	} x = { .s = { .insn = { .op = ISA_SCATTER }, .n_index = 1, .index[0] = { 0, 0 },
		       .idx.elem = ELEM_S32,
		       .body = { .rank = 1, .n_in = 1, .n_out = 1,
				 .n_uop = replaces ? 0 : 1,
				 .dim = { 1ll << 40, 1, 1, 1, 1, 1, 1, 1 } } },
		.upd = { .elem = ELEM_S32, .offset = 64 },
		.dst = { .elem = ELEM_S32, .binding = 1, .value = replaces ? 1 : 2 },
		.add = { .op = UOP_ADD, .elem = ELEM_S32, .a = 0, .b = 1 } };
	size_t bytes = sizeof(x) - (replaces ? sizeof(x.add) : 0);

	x.s.insn.bytes = (uint32_t)bytes;
	start();
	memset(t.hbm + DATA, 0, 64);
	t_add(&p, &x, bytes);
	t_halt(&p);
	p.limit_ns = 3000000;
	assert_int_equal(t_run(&t, &p), HW_ST_WATCHDOG);
}

static void gather_for_ever(void)
{
	struct isa_gather g = { .insn = { .op = ISA_GATHER, .bytes = sizeof(g) }, .rank = 1,
				.n_index = 1, .dim = { 1ll << 40, 1, 1, 1, 1, 1, 1, 1 },
				.src = { .elem = ELEM_S32, .offset = 64 },
				.idx.elem = ELEM_S32,
				.dst = { .elem = ELEM_S32, .binding = 1 } };

	start();
	memset(t.hbm + DATA, 0, 64);
	t_add(&p, &g, sizeof(g));
	t_halt(&p);
	p.limit_ns = 3000000;
	assert_int_equal(t_run(&t, &p), HW_ST_WATCHDOG);
}

static int64_t cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return now.tv_sec * 1000000000ll + now.tv_nsec;
}

/* One long line by a comparator that takes its time: each pass over it takes seconds. */
static void sort_at_length(void)
{
	enum { POWERS = 150 };
	static struct {
		struct isa_sort s;
		struct isa_operand in, out;
		struct isa_uop uop[POWERS + 1];
	} x;
	int64_t begin;

	x.s = (struct isa_sort){ .insn = { .op = ISA_SORT, .bytes = sizeof(x) },
				 .first = POWERS + 2,
				 .body = { .rank = 1, .n_in = 1, .n_out = 1,
					   .n_uop = POWERS + 1,
					   .dim = { 1 << 21, 1, 1, 1, 1, 1, 1, 1 } } };
	x.in = (struct isa_operand){ .elem = ELEM_F64 };
	x.out = (struct isa_operand){ .elem = ELEM_F64, .binding = 1 };
	for (unsigned i = 0; i < POWERS; i++)
		x.uop[i] = (struct isa_uop){ .op = UOP_POW, .elem = ELEM_F64,
					     .a = (uint8_t)(i + 1), .b = 0 };
	x.uop[POWERS] = (struct isa_uop){ .op = UOP_LT, .elem = ELEM_F64, .a = 0,
					  .b = POWERS + 1 };
	start();
	t_add(&p, &x, sizeof(x));
	t_halt(&p);
	p.limit_ns = 150000000;	/* it is in the first pass by then */
	p.flags = HW_INLINE;	/* on this thread, whose time is measured */
	begin = cpu_ns();
	assert_int_equal(t_run(&t, &p), HW_ST_WATCHDOG);
	assert_in_range(cpu_ns() - begin, 0, 800000000);
}

#define LONG (16u << 20)	/* bytes of an operand that is one run */

/* Bindings 0 and 1 of LONG bytes, binding 2 of zeros. */
static void start_long(uint64_t limit_ns)
{
	t_program(&p);
	t_bind(&p, T_HBM_VA + LONG, LONG, RW);
	t_bind(&p, T_HBM_VA + 2 * LONG, LONG, RW);
	t_bind(&p, T_HBM_VA + DATA, BYTES, RW);
	memset(t.hbm + DATA, 0, BYTES);
	p.limit_ns = limit_ns;
	p.flags = HW_INLINE;
}

/* What the program, which ends with this, takes of this thread's time. */
static int64_t run_for(unsigned status)
{
	int64_t begin = cpu_ns();

	t_halt(&p);
	assert_int_equal(t_run(&t, &p), status);
	return cpu_ns() - begin;
}

/* Windows at the same place, each of them one run of 2^20 points. `replaces`: as above. */
static void scatter_long_runs(bool replaces)
{
	struct {
		struct isa_scatter s;
		struct isa_operand upd, dst;
		struct isa_uop pow;
	} x = { .s = { .insn = { .op = ISA_SCATTER }, .n_index = 1, .index[0] = { 0, 0 },
		       .n_batch = 1, .idx = { .elem = ELEM_S32, .binding = 2 },
		       .body = { .rank = 2, .n_in = 1, .n_out = 1, .n_uop = replaces ? 0 : 1,
				 .dim = { 4096, LONG / 16, 1, 1, 1, 1, 1, 1 } } },
		.upd = { .elem = ELEM_C128, .stride = { 0, 16 } },
		.dst = { .elem = ELEM_C128, .binding = 1, .value = replaces ? 1 : 2,
			 .stride = { 0, 16 } },
		.pow = { .op = UOP_POW, .elem = ELEM_C128, .a = 0, .b = 1 } };
	size_t bytes = sizeof(x) - (replaces ? sizeof(x.pow) : 0);

	x.s.insn.bytes = (uint32_t)bytes;
	start_long(3000000);
	t_add(&p, &x, bytes);
	assert_in_range(run_for(HW_ST_WATCHDOG), 0, 150000000);
}

static int64_t sort_by_keys(uint64_t limit_ns)
{
	struct {
		struct isa_sort s;
		struct isa_operand in, out;
		struct isa_uop less;
	} x = { .s = { .insn = { .op = ISA_SORT, .bytes = sizeof(x) }, .first = 2,
		       .body = { .rank = 1, .n_in = 1, .n_out = 1, .n_uop = 1,
				 .dim = { LONG / 4, 1, 1, 1, 1, 1, 1, 1 } } },
		.in = { .elem = ELEM_U32, .stride = { 4 } },
		.out = { .elem = ELEM_U32, .binding = 1, .stride = { 4 } },
		.less = { .op = UOP_LT, .elem = ELEM_U32, .a = 0, .b = 1 } };

	start_long(limit_ns);
	t_add(&p, &x, sizeof(x));
	return run_for(limit_ns ? HW_ST_WATCHDOG : 0);
}

/* Wherever a sort by keys is when it is stopped, it does not go on for long. */
static void the_watchdog_ends_sorts_by_keys(void **state)
{
	uint32_t *key = (uint32_t *)(t.hbm + LONG);
	int64_t all;

	(void)state;
	for (uint32_t i = 0; i < LONG / 4; i++)
		key[i] = i * 2654435761u;
	sort_by_keys(0);	/* the first to touch the memory */
	all = sort_by_keys(0);
	for (int64_t part = 1; part < 6; part += 2)
		assert_in_range(sort_by_keys((uint64_t)(all * part / 8)), 0,
				all * part / 8 + all / 8);
}

/* The same line again and again, of so many points. */
static void transform_for_ever(int64_t n)
{
	struct isa_fft f = { .insn = { ISA_FFT, 0, sizeof(f) }, .rank = 2, .axis = 1, .scale = 1,
			     .dim = { 1ll << 36, n, 1, 1, 1, 1, 1, 1 },
			     .src = { .elem = ELEM_C64, .stride = { 0, 8 } },
			     .dst = { .elem = ELEM_C64, .binding = 1, .stride = { 0, 8 } } };
	uint64_t bytes = (uint64_t)n * 8;

	t_program(&p);
	t_bind(&p, T_HBM_VA + DATA, bytes, RW);
	t_bind(&p, T_HBM_VA + (4 << 20), bytes, RW);
	memset(t.hbm + DATA, 0, bytes);
	t_add(&p, &f, sizeof(f));
	t_halt(&p);
	p.limit_ns = 3000000;
	assert_int_equal(t_run(&t, &p), HW_ST_WATCHDOG);
}

static void the_watchdog_ends_any_window(void **state)
{
	(void)state;
	scatter_for_ever(false);
	scatter_for_ever(true);
	scatter_long_runs(false);
	scatter_long_runs(true);
	gather_for_ever();
	sort_at_length();
	transform_for_ever(1);
	transform_for_ever(61);
	transform_for_ever(1 << 18);
}

/* out[i] = in[i] where they lie 4 bytes apart, through the vector unit: every element
 * is one that was there before or is made by this. */
static void operands_may_overlap(void **state)
{
	struct {
		struct isa_tensor v;
		struct isa_operand in, out;
	} x = { .v = { .insn = { .op = ISA_VEC, .bytes = sizeof(x) },
		       .body = { .rank = 1, .n_in = 1, .n_out = 1,
				 .dim = { 6, 1, 1, 1, 1, 1, 1, 1 } } },
		.in = { .elem = ELEM_S32, .offset = 4, .stride = { 4 } },
		.out = { .elem = ELEM_S32, .stride = { 4 } } };
	int32_t got[7];

	(void)state;
	start();
	for (int32_t i = 0; i < 7; i++)
		memcpy(t.hbm + DATA + 4 * i, &(int32_t){ i + 10 }, 4);
	t_add(&p, &x, sizeof(x));
	t_halt(&p);
	assert_int_equal(t_run(&t, &p), 0);
	memcpy(got, t.hbm + DATA, sizeof(got));
	for (int32_t i = 0; i < 6; i++)
		assert_in_range(got[i], 10, 16);
	assert_int_equal(got[6], 16);
	assert_int_equal(t.hbm[DATA + 28], 1);
}

/* ---- FFT ---- */

static struct isa_fft fft_of(unsigned src, unsigned dst, unsigned flags)
{
	int64_t from, to, in = elem_bytes(src), out = elem_bytes(dst);
	struct isa_fft f = { .insn = { ISA_FFT, (uint16_t)flags, sizeof(f) }, .rank = 2,
			     .axis = 1, .scale = 1, .dim = { 4, 8, 1, 1, 1, 1, 1, 1 },
			     .src.elem = (uint8_t)src,
			     .dst = { .elem = (uint8_t)dst, .binding = 1 } };

	isa_fft_counts(&f, &from, &to);
	f.src.stride[0] = from * in;
	f.src.stride[1] = in;
	f.dst.stride[0] = to * out;
	f.dst.stride[1] = out;
	return f;
}

/* 4 lines of 8 points, each of either side 8 elements or 5. */
static const struct { unsigned src, dst, flags; uint64_t in, out; } forms[] = {
	{ ELEM_C64, ELEM_C64, 0, 256, 256 },
	{ ELEM_C64, ELEM_C64, ISA_FLAG_INVERSE, 256, 256 },
	{ ELEM_C128, ELEM_C128, 0, 512, 512 },
	{ ELEM_C128, ELEM_C128, ISA_FLAG_INVERSE, 512, 512 },
	{ ELEM_F32, ELEM_C64, 0, 128, 160 },
	{ ELEM_F64, ELEM_C128, 0, 256, 320 },
	{ ELEM_C64, ELEM_F32, ISA_FLAG_INVERSE, 160, 128 },
	{ ELEM_C128, ELEM_F64, ISA_FLAG_INVERSE, 320, 256 },
};
#define N_FORMS (sizeof(forms) / sizeof(*forms))

/* Runs it with register 1 at `reg`, in bindings of these sizes: the status. Nothing but the
 * second one has changed, and unless it is 0 not that either. */
static unsigned run_fft(const struct isa_fft *f, uint64_t in, uint64_t out, int64_t reg)
{
	struct { struct isa_fft f; uint64_t more[2]; } code = { .f = *f };
	static uint8_t before[2 * BYTES + 64];
	const uint8_t *now = t.hbm + DATA - 64;
	size_t first = 64 + BYTES;
	unsigned status;

	t_program(&p);
	t_bind(&p, T_HBM_VA + DATA, in, HW_BIND_READ);
	t_bind(&p, T_HBM_VA + DATA + BYTES, out, RW);
	memset(before, 1, sizeof(before));
	memcpy(t.hbm + DATA - 64, before, sizeof(before));
	memset(&t.fault, 0, sizeof(t.fault));
	t_li(&p, 1, reg);
	t_add(&p, &code, f->insn.bytes);
	t_halt(&p);
	status = t_run(&t, &p);
	if (!status)
		memcpy(before + first, now + first, out);
	assert_memory_equal(now, before, sizeof(before));
	return status;
}

#define REFUSES(change) do { \
		for (unsigned i_ = 0; i_ < N_FORMS; i_++) { \
			struct isa_fft f = fft_of(forms[i_].src, forms[i_].dst, \
						  forms[i_].flags); \
			change; \
			assert_int_equal(run_fft(&f, forms[i_].in, forms[i_].out, 0), \
					 HW_ST_BAD_PROGRAM); \
			assert_int_equal(t.refused_at, sizeof(struct isa_scalar)); \
		} \
	} while (0)

static void stand_still(struct isa_fft *f)
{
	memset(f->src.stride, 0, sizeof(f->src.stride));
	memset(f->dst.stride, 0, sizeof(f->dst.stride));
}

static void malformed_transforms_are_refused(void **state)
{
	(void)state;
	for (unsigned i = 0; i < N_FORMS; i++) {
		struct isa_fft f = fft_of(forms[i].src, forms[i].dst, forms[i].flags);

		assert_int_equal(run_fft(&f, forms[i].in, forms[i].out, 0), 0);
	}
	REFUSES(f.insn.flags |= 2);
	REFUSES(f.insn.flags |= 0x8000);
	REFUSES(f.insn.bytes += 8);
	REFUSES(f.insn.bytes -= 8);
	REFUSES(f.axis = 2);
	REFUSES(f.axis = 255);
	REFUSES(f.rank = 0);
	REFUSES((f.rank = 0, f.axis = 0));
	REFUSES(f.rank = 1);
	REFUSES(f.rank = 9);
	REFUSES((f.rank = 9, f.axis = 8));
	REFUSES(f.rank = 255);
	REFUSES(f.zero[0] = 1);
	REFUSES(f.zero[5] = 0x80);
	REFUSES(f.dim[0] = -1);
	REFUSES(f.dim[1] = -1);
	REFUSES(f.dim[0] = INT64_MIN);
	REFUSES(f.dim[1] = INT64_MIN);
	REFUSES(f.dim[2] = 2);
	REFUSES(f.dim[2] = 0);
	REFUSES(f.dim[7] = -1);
	REFUSES((f.dim[0] = INT64_MAX, stand_still(&f)));
	REFUSES((f.dim[0] = (1ll << 53) + 1, stand_still(&f)));
	REFUSES((f.rank = 3, f.dim[0] = f.dim[2] = 1ll << 32, stand_still(&f)));
	REFUSES((f.rank = 3, f.dim[0] = 0, f.dim[2] = INT64_MAX, stand_still(&f)));
	REFUSES(f.src.reg = ISA_N_REG);
	REFUSES(f.dst.reg = 255);
	REFUSES(f.src.zero = 1);
	REFUSES(f.dst.zero = 1);
	REFUSES(f.dst.combine = ISA_COMBINE_ADD);
	REFUSES(f.dst.combine = 255);
	REFUSES(f.dst.value = 1);
	REFUSES(f.dst.flags = ISA_OPERAND_ACC);
	REFUSES(f.dst.flags = 2);
	REFUSES(f.src.combine = ISA_COMBINE_MAX);
	REFUSES(f.src.value = 200);
	REFUSES(f.src.flags = ISA_OPERAND_ACC);
	REFUSES(f.src.binding = 2);
	REFUSES(f.src.binding = UINT16_MAX);
	REFUSES(f.dst.binding = 2);
	REFUSES(f.dst.binding = 0);	/* which is there to be read */
}

static void lines_that_no_transform_has_are_refused(void **state)
{
	static const int64_t no[] = { 67, 134, 67 * 67, 61 * 71, 1 << 21, (1 << 20) + 1, 1048583,
				      3 << 19, INT32_MAX, (1ll << 32) + 8, 1ll << 56, INT64_MAX };
	static const int64_t yes[] = { 1, 2, 61, 64, 61 * 61, 47 * 53, 1024 };

	(void)state;
	for (unsigned i = 0; i < sizeof(no) / sizeof(*no); i++)
		REFUSES((f.dim[1] = no[i], f.dim[0] = 1, stand_still(&f)));
	/* What is no axis may have any length. */
	for (unsigned i = 0; i < sizeof(yes) / sizeof(*yes); i++) {
		struct isa_fft f = fft_of(ELEM_C64, ELEM_C64, 0);

		f.dim[0] = 67;
		f.dim[1] = yes[i];
		stand_still(&f);
		assert_int_equal(run_fft(&f, 8, 8, 0), 0);
	}
}

static void pairs_of_types_that_no_transform_has_are_refused(void **state)
{
	(void)state;
	for (unsigned src = 0; src < 40; src++)
		for (unsigned dst = 0; dst < 40; dst++)
			for (unsigned flags = 0; flags < 2; flags++) {
				struct isa_fft f = fft_of(ELEM_C64, ELEM_C64, flags);
				unsigned want = HW_ST_BAD_PROGRAM;

				f.src.elem = (uint8_t)src;
				f.dst.elem = (uint8_t)dst;
				stand_still(&f);
				for (unsigned i = 0; i < N_FORMS; i++)
					if (forms[i].src == src && forms[i].dst == dst &&
					    forms[i].flags == flags)
						want = 0;
				assert_int_equal(run_fft(&f, 64, 64, 0), want);
			}
}

/* The bindings hold the elements of either side and not a byte more: one byte less is too small,
 * one step more too far. */
static void transforms_stay_in_their_bindings(void **state)
{
	(void)state;
	REFUSES(f.dim[0]++);
	REFUSES(f.src.offset = f.src.stride[1]);
	REFUSES(f.dst.offset = f.dst.stride[1]);
	REFUSES(f.src.offset = -f.src.stride[1]);
	REFUSES(f.dst.offset = -f.dst.stride[1]);
	REFUSES(f.src.stride[0] += 8);
	REFUSES(f.dst.stride[0] += 8);
	REFUSES(f.src.stride[1] *= 2);
	REFUSES(f.dst.stride[1] *= 2);
	REFUSES(f.src.stride[1] = -f.src.stride[1]);
	REFUSES(f.dst.stride[1] = -f.dst.stride[1]);
	REFUSES(f.src.stride[0] = INT64_MIN);
	REFUSES(f.dst.stride[1] = INT64_MIN);
	REFUSES(f.src.stride[1] = 1ll << 61);
	REFUSES(f.src.offset = INT64_MAX - 7);
	REFUSES(f.dst.offset = INT64_MIN);
	REFUSES((f.src.stride[0] = 1ll << 61, f.src.reg = 1));
	for (unsigned i = 0; i < N_FORMS; i++) {
		struct isa_fft f = fft_of(forms[i].src, forms[i].dst, forms[i].flags);

		assert_int_equal(run_fft(&f, forms[i].in - 4, forms[i].out, 0),
				 HW_ST_BAD_PROGRAM);
		assert_int_equal(run_fft(&f, forms[i].in, forms[i].out - 4, 0),
				 HW_ST_BAD_PROGRAM);
		/* backwards from the last element of each line */
		f.src.offset = f.src.stride[0] - f.src.stride[1];
		f.dst.offset = f.dst.stride[0] - f.dst.stride[1];
		f.src.stride[1] *= -1;
		f.dst.stride[1] *= -1;
		assert_int_equal(run_fft(&f, forms[i].in, forms[i].out, 0), 0);
	}
}

static void misaligned_transforms_are_refused(void **state)
{
	(void)state;
	REFUSES(f.src.offset = 2);
	REFUSES(f.dst.offset = 2);
	REFUSES(f.src.stride[0] -= 2);
	REFUSES(f.dst.stride[1] -= 2);
	for (unsigned i = 0; i < N_FORMS; i++) {
		struct isa_fft f = fft_of(forms[i].src, forms[i].dst, forms[i].flags);
		bool is_narrow = forms[i].src == ELEM_F32;

		f.src.offset = 4;
		assert_int_equal(run_fft(&f, forms[i].in + 8, forms[i].out, 0),
				 is_narrow ? 0 : HW_ST_BAD_PROGRAM);
	}
}

/* By a register: what no program that loads can know. */
static void registers_lead_no_transform_astray(void **state)
{
	static const int64_t astray[] = { -8, 8, 1ll << 40, INT64_MAX - 7, INT64_MIN };

	(void)state;
	for (unsigned i = 0; i < N_FORMS * 2; i++) {
		struct isa_fft f = fft_of(forms[i / 2].src, forms[i / 2].dst, forms[i / 2].flags);
		uint64_t in = forms[i / 2].in, out = forms[i / 2].out;

		*(i & 1 ? &f.dst.reg : &f.src.reg) = 1;
		assert_int_equal(run_fft(&f, in, out, 0), 0);
		for (unsigned k = 0; k < sizeof(astray) / sizeof(*astray); k++) {
			assert_int_equal(run_fft(&f, in, out, astray[k]), HW_ST_BOUNDS);
			assert_int_equal(t.fault.operand, i & 1);
			assert_int_equal(t.fault.binding, i & 1);
			assert_int_equal(t.fault.is_write, i & 1);
		}
		assert_int_equal(run_fft(&f, in + 8, out + 8, 2), HW_ST_ALIGNMENT);
		assert_int_equal(t.fault.operand, i & 1);
		assert_int_equal(run_fft(&f, in + 8, out + 8, 8), 0);
	}
}

/* Nothing is touched, so nothing can be out of reach. */
static void empty_transforms_do_nothing(void **state)
{
	(void)state;
	for (unsigned i = 0; i < N_FORMS * 2; i++) {
		struct isa_fft f = fft_of(forms[i / 2].src, forms[i / 2].dst, forms[i / 2].flags);

		f.dim[i & 1] = 0;
		f.src.offset = f.dst.offset = 1ll << 40;
		f.src.reg = f.dst.reg = 1;
		assert_int_equal(run_fft(&f, 8, 8, 1ll << 50), 0);
		for (unsigned k = 0; k < 8; k++)
			assert_int_equal(t.hbm[DATA + BYTES + k], 1);
	}
}

/* On each other, as ISA.md does not allow: what comes out is open, where it goes is not. */
static void transforms_may_overlap(void **state)
{
	(void)state;
	for (unsigned i = 0; i < N_FORMS; i++) {
		struct isa_fft f = fft_of(forms[i].src, forms[i].dst, forms[i].flags);
		uint64_t most = forms[i].in > forms[i].out ? forms[i].in : forms[i].out;

		f.src.binding = 1;
		f.dst.offset = 8;
		assert_int_equal(run_fft(&f, 8, most + 8, 0), 0);
		stand_still(&f);
		assert_int_equal(run_fft(&f, 8, most + 8, 0), 0);
	}
}

/* ---- VEC ---- */

struct vec {
	struct isa_tensor t;
	struct isa_operand op[4];
	struct isa_uop uop[256];
};

/* Adds v, of n_in inputs and n_out outputs, and what ends a program. */
static void put_vec(struct vec *v)
{
	unsigned ops = v->t.body.n_in + v->t.body.n_out;

	v->t.insn = (struct isa_insn){ ISA_VEC, 0, (uint32_t)(sizeof(v->t) +
		ops * sizeof(v->op[0]) + v->t.body.n_uop * sizeof(v->uop[0])) };
	for (unsigned d = v->t.body.rank; d < ISA_MAX_RANK; d++)
		v->t.body.dim[d] = 1;
	t_add(&p, &v->t, sizeof(v->t));
	t_add(&p, v->op, ops * sizeof(v->op[0]));
	t_add(&p, v->uop, v->t.body.n_uop * sizeof(v->uop[0]));
	t_halt(&p);
}

/* A fold over no points leaves what a fold of nothing is, but of outputs that have elements. */
static void folds_without_outputs_store_nothing(void **state)
{
	static const struct { unsigned rank; int64_t dim[2], stride[2]; } all[] = {
		{ 1, { 0 }, { 4 } }, { 2, { 0, 3 }, { 4, 0 } }, { 2, { 3, 0 }, { 4, 4 } },
		{ 2, { 0, 0 }, { 0, 4 } },
	};

	(void)state;
	for (unsigned k = 0; k < 4 * 4; k++) {
		struct vec v = { .t.body = { .rank = (uint8_t)all[k / 4].rank, .n_out = 1,
					     .n_uop = 1 },
			.op = { { .elem = ELEM_F32, .combine = ISA_COMBINE_MUL,
				  .reg = k % 2, .offset = k % 4 < 2 ? 0 : 64 } },
			.uop = { { .op = UOP_IMM, .elem = ELEM_F32 } } };
		bool has_none = k % 4 < 2;

		memcpy(v.t.body.dim, all[k / 4].dim, sizeof(all->dim));
		memcpy(v.op[0].stride, all[k / 4].stride, sizeof(all->stride));
		t_program(&p);
		t_bind(&p, T_HBM_VA + DATA, has_none ? 0 : BYTES, RW);
		memset(t.hbm + DATA, 1, BYTES);
		memset(t.hbm, 1, 64);
		put_vec(&v);
		assert_int_equal(t_run(&t, &p), 0);
		for (unsigned i = 0; i < BYTES; i++)
			if (t.hbm[DATA + i] != 1 || t.hbm[i % 64] != 1)
				fail_msg("case %u: byte %u is written", k, i);
	}
}

/* What an output begins with has many elements where its strides are small. */
static void the_watchdog_ends_folds_that_begin_for_ever(void **state)
{
	(void)state;
	for (unsigned k = 0; k < 2; k++) {
		struct vec v = { .t.body = { .rank = 8, .n_out = (uint8_t)(1 + k), .n_uop = 1 },
			.uop = { { .op = UOP_IMM, .elem = ELEM_S8 } } };

		start();
		for (unsigned j = 0; j < 2; j++) {
			v.op[j] = (struct isa_operand){ .elem = ELEM_S8, .binding = (uint16_t)j,
							.combine = ISA_COMBINE_ADD };
			for (unsigned d = 0; d < 8; d++)
				v.op[j].stride[d] = d != j;
		}
		for (unsigned d = 0; d < 8; d++)
			v.t.body.dim[d] = d > k ? 256 : 2 * k;
		put_vec(&v);
		p.limit_ns = 1000000;
		assert_int_equal(t_run(&t, &p), HW_ST_WATCHDOG);
	}
}

/* An output that is at one place for many points holds any of their values; what else is made of
 * that value is another matter. */
static void what_lanes_store_at_one_place_is_no_room_of_theirs(void **state)
{
	enum { ROWS = 2048, COLS = 2048 };
	struct vec v = { .t.body = { .rank = 2, .dim = { ROWS, COLS }, .n_in = 1, .n_out = 2,
				     .n_uop = 2 },
		.op = { { .elem = ELEM_F32, .stride = { 4 * COLS, 4 } },
			{ .elem = ELEM_F32, .binding = 1, .value = 1, .stride = { 0, 4 } },
			{ .elem = ELEM_F32, .binding = 2, .value = 2, .stride = { 4 * COLS, 4 } } },
		.uop = { { .op = UOP_MUL, .elem = ELEM_F32 },
			 { .op = UOP_NEG, .elem = ELEM_F32, .a = 1 } } };
	const uint64_t bytes = 4ull * ROWS * COLS;
	float *in, *out;

	(void)state;
	t_close(&t);
	t_open(&t, "lanes=2");
	in = (float *)(void *)(t.hbm + DATA);
	out = (float *)(void *)(t.hbm + DATA + 2 * bytes);
	t_program(&p);
	for (unsigned i = 0; i < 3; i++)
		t_bind(&p, T_HBM_VA + DATA + i * bytes, i == 1 ? 4 * COLS : bytes, RW);
	for (unsigned i = 0; i < ROWS * COLS; i++)
		in[i] = (float)(i / COLS + i % 7);
	put_vec(&v);
	assert_int_equal(t_run(&t, &p), 0);
	for (unsigned i = 0; i < ROWS * COLS; i++)
		if (out[i] != -in[i] * in[i])
			fail_msg("element %u is %g, not %g", i, (double)out[i],
				 -(double)in[i] * (double)in[i]);
	t_close(&t);
	t_open(&t, "lanes=1");
}

/* A chain whose next argument is a constant, of which there are more than inputs may be. */
static void a_chain_ends_where_no_input_follows(void **state)
{
	struct vec v = { .t.body = { .rank = 1, .dim = { 16 }, .n_in = 1, .n_out = 1,
				     .n_uop = 202 },
		.op = { { .elem = ELEM_F32, .stride = { 4 } },
			{ .elem = ELEM_F32, .binding = 1, .value = 202, .stride = { 4 } } } };
	float *in = (float *)(void *)(t.hbm + DATA), *out = in + BYTES / 4;

	(void)state;
	start();
	for (unsigned i = 0; i < 200; i++) {
		float x = (float)i;

		v.uop[i] = (struct isa_uop){ .op = UOP_IMM, .elem = ELEM_F32 };
		memcpy(&v.uop[i].imm, &x, 4);
	}
	v.uop[200] = (struct isa_uop){ .op = UOP_ADD, .elem = ELEM_F32, .a = 200, .b = 0 };
	v.uop[201] = (struct isa_uop){ .op = UOP_ADD, .elem = ELEM_F32, .a = 201, .b = 190 };
	for (unsigned i = 0; i < 16; i++)
		in[i] = (float)i;
	put_vec(&v);
	assert_int_equal(t_run(&t, &p), 0);
	for (unsigned i = 0; i < 16; i++)
		assert_true(out[i] == 199 + (float)i + 189);
}

/* The first input of what could be a chain is an argument 257 times. */
static void a_value_of_many_uses_is_no_link(void **state)
{
	enum { N_FMA = 85, FIRST = 3, SUM = FIRST + 3, LAST = SUM + N_FMA, N_UOP = LAST };
	struct vec v = { .t.body = { .rank = 1, .dim = { 16 }, .n_in = 3, .n_out = 1,
				     .n_uop = N_UOP },
		.op = { { .elem = ELEM_F32, .stride = { 8 } },
			{ .elem = ELEM_F32, .offset = 128, .stride = { 8 } },
			{ .elem = ELEM_F32, .offset = 256, .stride = { 8 } },
			{ .elem = ELEM_F32, .binding = 1, .value = 3 + N_UOP - 1,
			  .stride = { 4 } } } };
	float *in = (float *)(void *)(t.hbm + DATA), *out = in + BYTES / 4;
	struct isa_uop *u = v.uop;

	(void)state;
	start();
	*u++ = (struct isa_uop){ .op = UOP_IMM, .elem = ELEM_F32 };
	for (unsigned j = 0; j < 3; j++)
		*u++ = (struct isa_uop){ .op = UOP_ADD, .elem = ELEM_F32,
					 .a = (uint8_t)(FIRST + j), .b = (uint8_t)j };
	for (unsigned i = 0; i < N_FMA; i++)
		*u++ = (struct isa_uop){ .op = UOP_FMA, .elem = ELEM_F32 };
	*u++ = (struct isa_uop){ .op = UOP_ADD, .elem = ELEM_F32, .a = LAST, .b = 0 };
	*u++ = (struct isa_uop){ .op = UOP_ADD, .elem = ELEM_F32, .a = LAST + 1, .b = SUM };
	assert_ptr_equal(u, v.uop + N_UOP);
	for (unsigned i = 0; i < 96; i++)
		in[i] = (float)i;
	put_vec(&v);
	assert_int_equal(t_run(&t, &p), 0);
	for (unsigned i = 0; i < 16; i++) {
		float x = in[2 * i], sum = x + in[32 + 2 * i] + in[64 + 2 * i];

		assert_true(out[i] == x * x + x + x + sum);
	}
}

#define FAR_BYTES ((uint64_t)INT32_MAX + 64)	/* of a table */
#define FAR_POINTS 40
#define FAR_END 16ll	/* bytes before and behind the limit that are not 0 */

/* The last bytes of a table that begins at `offset`, by indices of 32 or 64 bits. */
static void look_far(struct vt *vt, uint8_t *table, int64_t limit, int64_t offset, bool is_long)
{
	struct isa_gather g = { .insn.op = ISA_GATHER, .rank = 1, .n_batch = 1, .n_index = 1,
		.dim = { FAR_POINTS, 1, 1, 1, 1, 1, 1, 1 }, .index = { { limit, 1, 0 } },
		.src = { .elem = ELEM_U8, .offset = offset },
		.idx = { .elem = is_long ? ELEM_S64 : ELEM_S32, .binding = 1,
			 .stride = { is_long ? 8 : 4 } },
		.dst = { .elem = ELEM_U8, .binding = 2, .stride = { 1 } } };
	uint8_t out[FAR_POINTS] = { 0 };
	int64_t longs[FAR_POINTS];
	int32_t words[FAR_POINTS];
	struct in_code c = { .n = 0 };
	struct sim_run run;

	for (int i = 0; i < FAR_POINTS; i++) {
		longs[i] = limit - i % FAR_END;
		words[i] = (int32_t)longs[i];
	}
	in_put(&c, &g, sizeof(g));
	assert_int_equal(in_run(vt, &c, (struct vt_mem[]){ { table, FAR_BYTES },
		{ is_long ? (void *)longs : words, is_long ? sizeof(longs) : sizeof(words) },
		{ out, sizeof(out) } }, 3, &run), 0);
	for (int i = 0; i < FAR_POINTS; i++)
		assert_int_equal(out[i], table[offset + longs[i]]);
}

static void look_far_on(struct vt *vt, const char *path)
{
	/* No page of it is there but those of the end. */
	uint8_t *table = mmap(NULL, FAR_BYTES, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	(void)path;
	assert_ptr_not_equal(table, MAP_FAILED);
	for (int64_t at = INT32_MAX - 2 * FAR_END; at < INT32_MAX + FAR_END; at++)
		table[at] = (uint8_t)(at * 37 + 1);
	for (int64_t limit = INT32_MAX - FAR_END; limit < INT32_MAX + 3ll; limit++)
		for (int64_t offset = 0; offset < 8; offset++) {
			look_far(vt, table, limit, offset, true);
			if (limit <= INT32_MAX)
				look_far(vt, table, limit, offset, false);
		}
	assert_int_equal(munmap(table, FAR_BYTES), 0);
}

static void bytes_are_found_at_the_edge_of_32_bits(void **state)
{
	(void)state;
	in_each_path(look_far_on);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(too_many_points_are_refused),
		cmocka_unit_test(a_convolution_of_huge_dims_is_refused),
		cmocka_unit_test(strides_that_span_everything_are_refused),
		cmocka_unit_test(a_stride_of_one_element_is_ignored),
		cmocka_unit_test(the_watchdog_ends_any_window),
		cmocka_unit_test(the_watchdog_ends_sorts_by_keys),
		cmocka_unit_test(operands_may_overlap),
		cmocka_unit_test(malformed_transforms_are_refused),
		cmocka_unit_test(lines_that_no_transform_has_are_refused),
		cmocka_unit_test(pairs_of_types_that_no_transform_has_are_refused),
		cmocka_unit_test(transforms_stay_in_their_bindings),
		cmocka_unit_test(misaligned_transforms_are_refused),
		cmocka_unit_test(registers_lead_no_transform_astray),
		cmocka_unit_test(empty_transforms_do_nothing),
		cmocka_unit_test(transforms_may_overlap),
		cmocka_unit_test(folds_without_outputs_store_nothing),
		cmocka_unit_test(the_watchdog_ends_folds_that_begin_for_ever),
		cmocka_unit_test(what_lanes_store_at_one_place_is_no_room_of_theirs),
		cmocka_unit_test(a_chain_ends_where_no_input_follows),
		cmocka_unit_test(a_value_of_many_uses_is_no_link),
		cmocka_unit_test(bytes_are_found_at_the_edge_of_32_bits),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
