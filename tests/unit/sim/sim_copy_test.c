/* SPDX-License-Identifier: Apache-2.0 */
/* COPY: any strides, all element sizes, each path, against plain loops; and kernels that place
 * elements some at a time. */
#include "hal/base/files.h"
#include "hal/sim/core/body.h"
#include "tests/unit/sim/sim_insn.h"

static const struct sim_family *const used __attribute__((used)) = &sim_family_copy;

static int run_copy(struct vt *t, const struct isa_copy *c, const struct vt_mem *mem)
{
	struct in_code code = { .n = 0 };
	struct sim_run run;

	in_put(&code, c, sizeof(*c));
	return in_run(t, &code, mem, 2, &run);
}

/* Runs c on random bytes and compares every byte of the destination. */
static void compare(struct vt *t, uint64_t *seed, struct isa_copy *c, uint64_t from_bytes,
		    uint64_t to_bytes)
{
	uint8_t *from = malloc(from_bytes + 1), *to = malloc(to_bytes + 1);
	uint8_t *want = malloc(to_bytes + 1);
	bool is_empty = false;

	for (uint64_t i = 0; i < from_bytes; i++)
		from[i] = (uint8_t)vt_random(seed);
	memset(to, 0x5a, to_bytes);
	memset(want, 0x5a, to_bytes);
	c->dst.binding = 1;
	c->insn.op = ISA_COPY;
	for (unsigned d = 0; d < c->rank; d++)
		is_empty |= !c->dim[d];
	if (!is_empty) {
		IN_EACH_POINT(c->rank, c->dim, at)
			memcpy(want + in_at(&c->dst, c->rank, at),
			       from + in_at(&c->src, c->rank, at), c->elem_bytes);
	}
	assert_int_equal(run_copy(t, c, (struct vt_mem[]){ { from, from_bytes },
							   { to, to_bytes } }), 0);
	assert_memory_equal(to, want, to_bytes);
	free(from);
	free(to);
	free(want);
}

static void random_copies(struct vt *t, const char *path)
{
	uint64_t seed = 7;

	(void)path;
	for (int round = 0; round < 600; round++) {
		struct isa_copy c = { .rank = (uint8_t)in_range(&seed, 0, 5) };
		int64_t most = c.rank < 3 ? 150 : c.rank == 3 ? 40 : 9;
		uint64_t from, to;

		c.elem_bytes = (uint8_t)(1 << in_range(&seed, 0, 4));
		for (unsigned d = 0; d < c.rank; d++)
			c.dim[d] = in_range(&seed, round % 20 ? 1 : 0, most);
		from = in_scatter_strides(&seed, &c.src, c.rank, c.dim, c.elem_bytes,
					  round % 3 == 0);
		to = in_scatter_strides(&seed, &c.dst, c.rank, c.dim, c.elem_bytes,
					round % 3 == 1);
		/* now and then a broadcast */
		if (c.rank && round % 7 == 0 && c.src.stride[0] > 0)
			c.src.stride[0] = 0;
		compare(t, &seed, &c, from, to);
	}
}

/* Large enough for several lanes and for pieces of a row. */
static void large_copies(struct vt *t, const char *path)
{
	static const int64_t dims[][3] = {
		{ 1, 1, 1 << 20 }, { 3, 400, 500 }, { 1, 1024, 1024 }, { 700, 3, 64 },
		{ 4096, 3, 8 }, { 2, 3, 70001 },
	};
	static const uint8_t orders[][3] = { { 0, 1, 2 }, { 0, 2, 1 }, { 2, 1, 0 },
					     { 1, 0, 2 } };
	uint64_t seed = 3;

	(void)path;
	for (unsigned k = 0; k < sizeof(dims) / sizeof(*dims); k++) {
		for (unsigned o = 0; o < 4; o++) {
			struct isa_copy c = { .rank = 3,
					      .elem_bytes = (uint8_t)(1 << (k + o) % 4) };
			int64_t step = c.elem_bytes;

			memcpy(c.dim, dims[k], sizeof(dims[k]));
			in_scatter_strides(&seed, &c.src, 3, c.dim, c.elem_bytes, true);
			for (unsigned i = 3; i-- > 0;) {
				c.dst.stride[orders[o][i]] = step;
				step *= c.dim[orders[o][i]];
			}
			compare(t, &seed, &c, (uint64_t)step, (uint64_t)step);
		}
	}
}

/* Transpositions of a few long rows, and of long columns to a few: one to as many as a block has
 * and one more, of several units and a rest; rows of the destination that touch and that do not. */
static void few_rows_turned(struct vt *t, const char *path)
{
	const int64_t n = 4999;
	uint64_t seed = 11;

	(void)path;
	for (int64_t few = 2; few <= 17; few++)
		for (int64_t bytes = 1; bytes <= 16; bytes *= 2)
			for (int64_t gap = 0; gap < 3 * bytes; gap += 2 * bytes) {
				uint64_t room = (uint64_t)((few * bytes + gap) * n + gap * few);
				struct isa_copy c = { .rank = 2, .elem_bytes = (uint8_t)bytes,
					.dim = { n, few },
					.src.stride = { bytes, n * bytes + gap },
					.dst.stride = { few * bytes + gap, bytes } };
				struct isa_copy back = { .rank = 2, .elem_bytes = c.elem_bytes,
					.dim = { few, n },
					.src.stride = { bytes, few * bytes + gap },
					.dst.stride = { n * bytes + gap, bytes } };

				compare(t, &seed, &c, room, room);
				compare(t, &seed, &back, room, room);
			}
}

/* Short rows whose elements take turns, forwards and backwards, put apart from each other: few and
 * many of them, near each other and far. */
static void rows_that_take_turns(struct vt *t, const char *path)
{
	static const int64_t some[] = { 8, 9, 10, 15, 16, 17, 21, 31, 63, 255, 256, 257 };
	uint64_t seed = 23;

	(void)path;
	for (unsigned i = 0; i < 12; i++)
		for (int64_t s = 2; s <= 5; s++)
			for (unsigned k = 0; k < 8; k++) {
				int64_t n = some[i], bytes = k & 1 ? 4 : 2;
				int64_t rows = k & 2 ? 3 : 70000 / n;
				int64_t all = n * s * rows * bytes;
				struct isa_copy c = { .rank = 3, .elem_bytes = (uint8_t)bytes,
					.dim = { s, rows, n },
					.src.stride = { bytes, n * s * bytes, s * bytes },
					.dst.stride = { n * bytes, n * s * bytes, bytes } };

				if (k & 4) {
					c.src.offset = (n - 1) * s * bytes;
					c.src.stride[2] = -s * bytes;
					c.dst.stride[0] = n * rows * bytes;
					c.dst.stride[1] = n * bytes;
				}
				compare(t, &seed, &c, (uint64_t)all, (uint64_t)all);
			}
}

/* Fewer columns than a line has, fewer rows than a unit has of these, and some more of both; the
 * rows of the destination are pages apart, and are not. */
static void units_are_cut(struct vt *t, const char *path)
{
	static const int64_t some[] = { 2, 3, 15, 16, 17, 63, 65, 130, 1025, 1400, 2100, 4100 };
	uint64_t seed = 19;

	(void)path;
	for (unsigned i = 0; i < 12 * 12; i++) {
		int64_t rows = some[i % 12], cols = some[i / 12], page = 4096;

		if (rows * cols > 150000)
			continue;
		for (unsigned bytes = 1; bytes <= 16; bytes *= 2) {
			int64_t line = rows * bytes;
			struct isa_copy c = {
				.rank = 2, .elem_bytes = (uint8_t)bytes, .dim = { cols, rows },
				.src = { .stride = { bytes, cols * bytes } },
				.dst = { .stride = { i % 2 && cols < 100 ?
						     (line + page - 1) / page * page : line,
						     bytes } } };

			compare(t, &seed, &c, (uint64_t)(rows * cols * bytes),
				(uint64_t)((cols - 1) * c.dst.stride[0] + line));
		}
	}
}

/* Rows that a call each would be too much for: of every size up to two registers' and about the
 * longest, side by side, strided, backwards and repeated, in planes of which lanes take parts. */
static void short_rows(struct vt *t, const char *path)
{
	static const int64_t lengths[] = {
		1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 15, 16, 17, 31, 32, 33, 2047, 2048, 2049,
	};
	static const int64_t planes[][3] = { { 3, 5, 7 }, { 1, 1, 900 }, { 2, 900, 2 },
					     { 40, 3, 30 }, { 1, 2, 2 } };
	uint64_t seed = 21;

	(void)path;
	for (unsigned i = 0; i < sizeof(lengths) / sizeof(lengths[0]) * 5 * 8; i++) {
		const int64_t *dim = planes[i / 8 % 5], n = lengths[i / 40];
		unsigned how = i % 8;
		int64_t bytes = how % 4 ? 1 << vt_random(&seed) % 5 : 1, b = bytes;
		int64_t step = how == 1 ? 2 * b : how == 2 ? -b : b, pitch = n * 2 * b + b;
		bool again = how >= 4;	/* each row of the source comes dim[2] times */
		uint64_t rows = (uint64_t)(dim[0] * dim[1] * dim[2]);
		struct isa_copy c = { .rank = 4, .elem_bytes = (uint8_t)b,
			.dim = { dim[0], dim[1], dim[2], n },
			.src.stride = { dim[1] * dim[2] * pitch, dim[2] * pitch,
					again ? 0 : pitch, step },
			.src.offset = how == 2 ? (n - 1) * b : 0,
			.dst.stride = { dim[1] * dim[2] * (n * b + b), dim[2] * (n * b + b),
					n * b + b, b } };

		if (rows * (uint64_t)(n * b) > 4u << 20)
			continue;
		compare(t, &seed, &c, rows * (uint64_t)pitch, rows * (uint64_t)(n * b + b));
	}
}

/* Each element a few times, side by side: of every size, as often as a fill of its own is not
 * better and once more, in numbers that leave a rest; rows that touch and that do not; planes. */
static void repeated_elements(struct vt *t, const char *path)
{
	static const int64_t rows[] = { 1, 2, 5, 4999 };
	uint64_t seed = 31;

	(void)path;
	for (int64_t n = 2; n <= 33; n++)
		for (int64_t bytes = 1; bytes <= 16; bytes *= 2)
			for (unsigned i = 0; i < 12; i++) {
				int64_t many = rows[i / 3], gap = i % 3 == 1 ? bytes : 0;
				int64_t planes = i % 3 == 2 ? 3 : 1, row = n * bytes + gap;
				int64_t from = many * bytes + 2 * bytes, to = many * row + bytes;
				struct isa_copy c = { .rank = 3, .elem_bytes = (uint8_t)bytes,
					.dim = { planes, many, n },
					.src.stride = { from, bytes, 0 },
					.dst.stride = { to, row, bytes } };

				compare(t, &seed, &c, (uint64_t)(planes * from),
					(uint64_t)(planes * to));
			}
}

/* Rows of one or two dims of a few elements that lie close to each other, in any order, with gaps
 * and repeated, one behind and one before the other, in numbers that leave a rest; planes. Source
 * and destination end where the last element does. */
static void rows_in_another_order(struct vt *t, const char *path)
{
	static const int64_t rows[] = { 3, 4, 5, 17, 333, 5000 };
	uint64_t seed = 41;

	(void)path;
	for (int round = 0; round < 3000; round++) {
		int64_t b = 1 << vt_random(&seed) % 5, low = 0, high = 0;
		int64_t many = rows[vt_random(&seed) % (round % 16 ? 5 : 6)];
		struct isa_copy c = { .rank = 4, .elem_bytes = (uint8_t)b,
			.dim = { in_range(&seed, 1, 3), many, in_range(&seed, 1, 5),
				 in_range(&seed, 1, 9) } };
		int64_t step[4] = { 0, in_range(&seed, -20, 20), in_range(&seed, -6, 6),
				    in_range(&seed, -3, 3) };
		int64_t to = b;

		step[0] = many * 21 + 70;
		for (unsigned d = 4; d-- > 0; to *= c.dim[d]) {
			int64_t reach = (c.dim[d] - 1) * step[d];

			*(reach < 0 ? &low : &high) += reach;
			c.src.stride[d] = step[d] * b;
			c.dst.stride[d] = to;
			if (!d && round % 3 == 0)
				c.dst.stride[0] = to + b;
		}
		c.src.offset = -low * b;
		compare(t, &seed, &c, (uint64_t)((high - low + 1) * b),
			(uint64_t)(to + (round % 3 ? 0 : (c.dim[0] - 1) * b)));
	}
}

/* Pieces of rows that are a little shorter or longer than some of them; a byte between rows. */
static void rows_end_where_they_should(struct vt *t, const char *path)
{
	uint64_t seed = 5;

	(void)path;
	for (int64_t whole = 1 << 12; whole <= 1 << 18; whole *= 2) {
		for (int64_t n = whole - 1; n <= whole + 1; n++) {
			struct isa_copy c = { .rank = 2, .elem_bytes = 1, .dim = { 2, n },
					      .src.stride = { n + 2, 1 },
					      .dst.stride = { n + 1, 1 } };

			compare(t, &seed, &c, (uint64_t)(2 * n + 2), (uint64_t)(2 * n + 1));
		}
	}
}

/* To a memory of about 4 MiB, where copies of 256 KiB and rows of 4 KiB go past caches that do not
 * hold both source and destination: on both sides of these, from and to any byte of a line, rows
 * that end within one or within a set of pages. */
static void copies_past_the_caches(struct vt *t, const char *path)
{
	static const int64_t rows[][2] = {
		{ 1, 262143 }, { 1, 262144 }, { 1, 300001 }, { 64, 4095 }, { 64, 4096 },
		{ 65, 4097 }, { 17, 16384 }, { 16, 16447 }, { 5, 65535 }, { 3, 131072 + 65 },
	};
	uint64_t seed = 9;

	(void)path;
	for (unsigned k = 0; k < sizeof(rows) / sizeof(*rows); k++)
		for (int64_t which = 0; which < 3; which++) {
			int64_t n = rows[k][1], from = in_range(&seed, 0, 70);
			uint64_t from_bytes = (uint64_t)(rows[k][0] * (n + 2) + from);
			uint64_t to_bytes = (4u << 20) - (which == 2);
			int64_t gap = in_range(&seed, 0, 70), to = in_range(&seed, 0, 70);
			struct isa_copy c = { .rank = 2, .elem_bytes = 1,
					      .dim = { rows[k][0], n },
					      .src = { .stride = { n + from % 3, 1 },
						       .offset = (uint64_t)from },
					      .dst = { .stride = { n + gap, 1 },
						       .offset = (uint64_t)to } };

			t->sim->cpu.l3_bytes = 2 * (size_t)(rows[k][0] * n) - (which ? 2 : 0);
			compare(t, &seed, &c, from_bytes, to_bytes);
		}
}

static void copies_match_plain_loops(void **state)
{
	(void)state;
	in_each_path(random_copies);
}

static void long_rows_match(void **state)
{
	(void)state;
	in_each_path(rows_end_where_they_should);
}

static void copies_past_the_caches_match(void **state)
{
	(void)state;
	in_each_path(copies_past_the_caches);
}

static void large_copies_match(void **state)
{
	(void)state;
	in_each_path(large_copies);
}

static void short_rows_match(void **state)
{
	(void)state;
	in_each_path(short_rows);
}

static void repeated_elements_match(void **state)
{
	(void)state;
	in_each_path(repeated_elements);
}

static void rows_in_another_order_match(void **state)
{
	(void)state;
	in_each_path(rows_in_another_order);
}

static void units_of_any_size_match(void **state)
{
	(void)state;
	in_each_path(units_are_cut);
}

static void rows_that_take_turns_match(void **state)
{
	(void)state;
	in_each_path(rows_that_take_turns);
}

static void few_rows_turned_match(void **state)
{
	(void)state;
	in_each_path(few_rows_turned);
}

/* Elements of a memory that ends with them, each a few times, to one that ends with these. */
static void repeat(enum sim_path path, unsigned bytes, size_t rows, size_t cols)
{
	size_t n = rows * bytes;
	uint8_t *from = malloc(n), *to = malloc(n * cols + 1);

	for (size_t i = 0; i < n; i++)
		from[i] = (uint8_t)(i * 7 + i / 251);
	to[n * cols] = 0x5a;
	sim_repeat(path, bytes)(to, from, rows, cols);
	for (size_t i = 0; i < rows * cols; i++)
		assert_memory_equal(to + i * bytes, from + i / cols * bytes, bytes);
	assert_int_equal(to[n * cols], 0x5a);
	free(from);
	free(to);
}

static void repeated_as_one_by_one(void **state)
{
	struct sim_cpu own;

	(void)state;
	sim_cpu_detect(&own);
	for (unsigned bytes = 1; bytes <= 8; bytes *= 2)
		for (size_t cols = 2; cols < SIM_LEAST_FILL && sim_repeat(own.path, bytes); cols++)
			for (size_t rows = 1; rows < 100; rows += rows < 35 ? 1 : 13)
				repeat(own.path, bytes, rows, cols);
	assert_null(sim_repeat(SIM_PORTABLE, 4));
}

/* Elements of arrays that end with them, by turns, to one that ends with the last. */
static void take_turns(enum sim_path path, unsigned n, size_t each)
{
	uint32_t *values[SIM_ZIP_MOST], *to = malloc((n * each + 1) * 4);

	for (unsigned k = 0; k < n; k++) {
		values[k] = malloc(each * 4);
		for (size_t i = 0; i < each; i++)
			values[k][i] = (uint32_t)(i * n + k);
	}
	to[n * each] = 0x5a5a5a5a;
	sim_zip(path, 4)(to, (const void *const *)values, n, each);
	for (size_t i = 0; i < n * each; i++)
		assert_int_equal(to[i], i);
	assert_int_equal(to[n * each], 0x5a5a5a5a);
	for (unsigned k = 0; k < n; k++)
		free(values[k]);
	free(to);
}

static void turns_are_taken(void **state)
{
	struct sim_cpu own;

	(void)state;
	sim_cpu_detect(&own);
	for (unsigned n = 2; n <= SIM_ZIP_MOST && sim_zip(own.path, 4); n++)
		for (size_t each = 1; each < 70; each++)
			take_turns(own.path, n, each);
	assert_null(sim_zip(SIM_PORTABLE, 4));
}

/* A copy onto itself keeps what is there; overlap must not leave the binding. */
static void overlap_is_harmless(void **state)
{
	struct isa_copy c = { .insn.op = ISA_COPY, .rank = 1, .elem_bytes = 4,
			      .dim = { 1000 }, .src.stride = { 4 }, .dst.stride = { 4 } };
	uint32_t a[1001];
	struct vt t;

	(void)state;
	for (unsigned i = 0; i < 1001; i++)
		a[i] = i;
	assert_true(vt_open(&t, "portable", 1));
	assert_int_equal(run_copy(&t, &c, (struct vt_mem[]){ { a, 4000 }, { a, 4000 } }), 0);
	for (unsigned i = 0; i < 1001; i++)
		assert_int_equal(a[i], i);
	c.dst.offset = 4;
	assert_int_equal(run_copy(&t, &c, (struct vt_mem[]){ { a, 4004 }, { a, 4004 } }), 0);
	assert_int_equal(a[0], 0);
	vt_close(&t);
}

static void malformed_copies_are_refused(void **state)
{
	const struct isa_copy good = { .insn.op = ISA_COPY, .rank = 2, .elem_bytes = 4,
		.dim = { 4, 4 }, .src.stride = { 16, 4 },
		.dst = { .binding = 1, .stride = { 16, 4 } } };
	uint8_t a[64], b[64];
	struct vt_mem mem[2] = { { a, 64 }, { b, 64 } };
	struct isa_copy c;
	struct vt t;

	(void)state;
	memset(a, 0, sizeof(a));
	assert_true(vt_open(&t, "portable", 1));
	c = good;
	assert_int_equal(run_copy(&t, &c, mem), 0);
#define REFUSES(change) do { \
		c = good; \
		change; \
		assert_int_equal(run_copy(&t, &c, mem), HW_ST_BAD_PROGRAM); \
	} while (0)
	REFUSES(c.rank = 9);
	REFUSES(c.elem_bytes = 3);
	REFUSES(c.elem_bytes = 0);
	REFUSES(c.zero[5] = 1);
	REFUSES(c.dim[0] = -1);
	REFUSES(c.dim[0] = 5);
	REFUSES(c.dim[0] = INT64_MAX);
	REFUSES(c.src.stride[1] = 2);
	REFUSES(c.src.stride[0] = INT64_MAX);
	REFUSES(c.dst.offset = -4);
	REFUSES(c.dst.offset = 4);
	REFUSES((c.rank = 1, c.elem_bytes = 1, c.dim[0] = 65, c.src.stride[0] = 0,
		 c.dst.stride[0] = 1));
	REFUSES((c.rank = 1, c.elem_bytes = 1, c.dim[0] = 65, c.src.stride[0] = 1,
		 c.dst.stride[0] = 0));
	REFUSES(c.src.binding = 7);
	REFUSES(c.src.reg = 64);
	REFUSES((c.dim[0] = INT64_MAX, c.dim[1] = INT64_MAX, c.src.stride[0] = 0,
		 c.src.stride[1] = 0, c.dst.stride[0] = 0, c.dst.stride[1] = 0));
#undef REFUSES
	vt_close(&t);
}

/* What one core reaches, where Linux tells: more is other cores' and holds nothing for it. */
static void no_more_than_one_last_cache_is_counted_on(void **state)
{
	struct sim_cpu cpu;
	char line[32];

	(void)state;
	if (!files_read_line("/sys/devices/system/cpu/cpu0/cache/index3/size", line, sizeof(line)))
		skip();
	sim_cpu_detect(&cpu);
	assert_int_equal(cpu.l3_bytes, strtoull(line, NULL, 10) << 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(copies_match_plain_loops),
		cmocka_unit_test(long_rows_match),
		cmocka_unit_test(copies_past_the_caches_match),
		cmocka_unit_test(large_copies_match),
		cmocka_unit_test(few_rows_turned_match),
		cmocka_unit_test(rows_that_take_turns_match),
		cmocka_unit_test(units_of_any_size_match),
		cmocka_unit_test(short_rows_match),
		cmocka_unit_test(repeated_elements_match),
		cmocka_unit_test(rows_in_another_order_match),
		cmocka_unit_test(repeated_as_one_by_one),
		cmocka_unit_test(turns_are_taken),
		cmocka_unit_test(overlap_is_harmless),
		cmocka_unit_test(malformed_copies_are_refused),
		cmocka_unit_test(no_more_than_one_last_cache_is_counted_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
