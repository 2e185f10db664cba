/* SPDX-License-Identifier: Apache-2.0 */
/* Programs that fuzzing found: sizes and strides at the edge of 64 bits, instructions
 * without an end, operands that overlap. */
#include "tests/unit/sim/sim_test.h"

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

static void the_watchdog_ends_any_window(void **state)
{
	(void)state;
	scatter_for_ever(false);
	scatter_for_ever(true);
	gather_for_ever();
	sort_at_length();
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(too_many_points_are_refused),
		cmocka_unit_test(a_convolution_of_huge_dims_is_refused),
		cmocka_unit_test(strides_that_span_everything_are_refused),
		cmocka_unit_test(a_stride_of_one_element_is_ignored),
		cmocka_unit_test(the_watchdog_ends_any_window),
		cmocka_unit_test(operands_may_overlap),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
