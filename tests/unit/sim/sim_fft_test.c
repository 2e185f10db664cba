/* SPDX-License-Identifier: Apache-2.0 */
/* FFT: lines of all kinds, sizes and strides against sums in long doubles, to the same bits on
 * each path and with any number of lanes. */
#include <complex.h>
#include <math.h>

#include "tests/unit/sim/sim_insn.h"

static const struct sim_family *const used __attribute__((used)) = &sim_family_fft;

#define TRIALS 300
#define MAX_POINTS 12000

typedef long double complex number;

enum kind { FORWARD, INVERSE, FROM_REAL, TO_REAL };

/* out[k] = sum of x[j * step] * root^(j k): by the smallest prime factor, without tables. */
static void transform(const number *x, int64_t step, int64_t n, int sign, number *out)
{
	const long double pi = 3.14159265358979323846264338327950288L;
	number *part = malloc((size_t)n * sizeof(*part));
	int64_t p = 2, m;

	assert_non_null(part);
	while (p < n && n % p)
		p++;
	m = n / p;
	if (n == 1)
		out[0] = x[0];
	for (int64_t i = 0; i < p && n > 1; i++)
		transform(x + i * step, step * p, m, sign, part + i * m);
	for (int64_t k = 0; k < n && n > 1; k++) {
		out[k] = 0;
		for (int64_t i = 0; i < p; i++) {
			long double a = sign * 2 * pi * (long double)(i * k % n) / (long double)n;

			out[k] += part[i * m + k % m] * (cosl(a) + I * sinl(a));
		}
	}
	free(part);
}

struct trial {
	enum kind kind;
	bool is_wide, is_over;	/* is_over: the result lies on the argument */
	double scale;
	struct isa_fft f;
	int64_t count[2];	/* numbers of a line */
	uint64_t bytes[2];
	uint8_t *mem[2];
};

static int64_t random_size(uint64_t *seed)
{
	/* Both sides of each limit: what is long in rows and in columns, shared by lanes; halves
	 * of these; primes; and no multiple of a vector. */
	static const int64_t sizes[] = {
		1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 15, 16, 17, 24, 31, 32, 36, 61, 64, 77, 96,
		100, 122, 128, 255, 256, 258, 260, 320, 500, 512, 520, 1000, 1024, 2048, 2050, 2100,
		4096, 4100, 8192, 8200, 16380, 16384, 16500, 32768, 37 * 61 * 13,
	};

	return vt_random(seed) % 3 ? in_range(seed, 1, 64) :
		sizes[vt_random(seed) % (sizeof(sizes) / sizeof(*sizes))];
}

static unsigned elem_of(const struct trial *t, unsigned side)
{
	bool is_real = (t->kind == FROM_REAL && !side) || (t->kind == TO_REAL && side);

	return is_real ? t->is_wide ? ELEM_F64 : ELEM_F32 : t->is_wide ? ELEM_C128 : ELEM_C64;
}

static void choose(struct trial *t, uint64_t *seed)
{
	struct isa_operand *op[] = { &t->f.src, &t->f.dst };
	bool is_plain = vt_random(seed) % 3 == 0;
	int64_t n = random_size(seed), points = 1;

	while (!isa_fft_fits(n))
		n++;
	*t = (struct trial){ .kind = vt_random(seed) % 4, .is_wide = vt_random(seed) % 3 == 0,
			     .scale = vt_random(seed) % 2 ? 1 : 1 / (double)n };
	t->is_over = t->kind <= INVERSE && vt_random(seed) % 4 == 0;
	t->f = (struct isa_fft){ .insn.op = ISA_FFT, .scale = t->scale,
				 .rank = (uint8_t)in_range(seed, 1, 4) };
	t->f.axis = (uint8_t)(vt_random(seed) % t->f.rank);
	if (t->kind == INVERSE || t->kind == TO_REAL)
		t->f.insn.flags = ISA_FLAG_INVERSE;
	for (unsigned d = 0; d < ISA_MAX_RANK; d++) {
		int64_t room = MAX_POINTS / (n * points);

		t->f.dim[d] = d >= t->f.rank ? 1 : d == t->f.axis ? n :
			room < 2 ? 1 : in_range(seed, 1, room < 37 ? room : 37);
		points *= d == t->f.axis ? 1 : t->f.dim[d];
	}
	op[0]->elem = (uint8_t)elem_of(t, 0);
	op[1]->elem = (uint8_t)elem_of(t, 1);
	isa_fft_counts(&t->f, &t->count[0], &t->count[1]);
	assert_int_equal(t->count[0], t->kind == TO_REAL ? n / 2 + 1 : n);
	assert_int_equal(t->count[1], t->kind == FROM_REAL ? n / 2 + 1 : n);
	for (unsigned i = 0; i < 2; i++) {
		int64_t dim[ISA_MAX_RANK];

		memcpy(dim, t->f.dim, sizeof(dim));
		dim[t->f.axis] = t->count[i];
		op[i]->binding = (uint16_t)i;
		t->bytes[i] = in_scatter_strides(seed, op[i], t->f.rank, dim,
						 elem_bytes(op[i]->elem), is_plain);
	}
	if (t->is_over)
		t->f.dst = t->f.src;
}

static uint8_t *place(struct trial *t, unsigned side, const int64_t *line, int64_t k)
{
	const struct isa_operand *op = side ? &t->f.dst : &t->f.src;
	int64_t at[ISA_MAX_RANK];

	memcpy(at, line, sizeof(at));
	at[t->f.axis] = k;
	return t->mem[t->is_over ? 0 : side] + in_at(op, t->f.rank, at);
}

static number get(const struct trial *t, unsigned side, const uint8_t *p)
{
	bool is_real = elem_class(elem_of(t, side)) == ELEM_CLASS_FLOAT;
	double d[2] = { 0, 0 };
	float f[2] = { 0, 0 };

	memcpy(t->is_wide ? (void *)d : (void *)f, p, elem_bytes(elem_of(t, side)));
	return t->is_wide ? d[0] + I * (is_real ? 0 : d[1]) : f[0] + I * (is_real ? 0 : f[1]);
}

/* The n numbers that a line stands for. */
static void read_line(struct trial *t, const int64_t *line, int64_t n, number *x)
{
	for (int64_t k = 0; k < n; k++) {
		bool is_mirrored = k >= t->count[0];

		x[k] = get(t, 0, place(t, 0, line, is_mirrored ? n - k : k));
		if (is_mirrored)
			x[k] = conjl(x[k]);
		if (t->kind == TO_REAL && (!k || 2 * k == n))
			x[k] = creall(x[k]);
	}
}

static void compare(struct trial *t, const int64_t *line, const number *want)
{
	long double off = 0, all = 0;

	for (int64_t k = 0; k < t->count[1]; k++) {
		number w = want[k] * t->scale, g = get(t, 1, place(t, 1, line, k)), d;

		if (t->kind == TO_REAL)
			w = creall(w);
		d = g - w;
		off += creall(d * conjl(d));
		all += creall(w * conjl(w));
	}
	if (!(sqrtl(off) <= (t->is_wide ? 1e-15L : 5e-7L) * sqrtl(all)))
		fail_msg("kind %u of %lld points, axis %u of %u, f%u: error %Lg of %Lg", t->kind,
			 (long long)t->f.dim[t->f.axis], t->f.axis, t->f.rank, t->is_wide ? 64 : 32,
			 sqrtl(off), sqrtl(all));
}

#define EMPTY 0xa5

static void fill(struct trial *t, uint64_t *seed)
{
	for (unsigned i = 0; i < 2; i++) {
		t->mem[i] = malloc(t->bytes[i]);
		assert_non_null(t->mem[i]);
		memset(t->mem[i], EMPTY, t->bytes[i]);
	}
	for (uint64_t at = 0; at < t->bytes[0]; at += t->is_wide ? 8 : 4) {
		double d = (double)(int64_t)vt_random(seed) * 0x1p-63;
		float f = (float)d;

		memcpy(t->mem[0] + at, t->is_wide ? (void *)&d : (void *)&f, t->is_wide ? 8 : 4);
	}
}

static uint64_t add_to_hash(uint64_t hash, const uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		hash = (hash ^ p[i]) * 0x100000001b3;
	return hash;
}

/* Runs a trial; what its result's bits come to. On the first path sums are made, too. */
static uint64_t run_trial(struct vt *vt, struct trial *t, bool is_first)
{
	int64_t n = t->f.dim[t->f.axis], lines[ISA_MAX_RANK], n_lines = 1, i = 0;
	number *x = malloc((size_t)n * sizeof(*x)), *want = NULL;
	struct in_code code = { .n = 0 };
	uint64_t hash = 0xcbf29ce484222325;
	struct sim_run run;

	memcpy(lines, t->f.dim, sizeof(lines));
	lines[t->f.axis] = 1;
	for (unsigned d = 0; d < t->f.rank; d++)
		n_lines *= lines[d];
	want = malloc((size_t)(n_lines * n) * sizeof(*want));
	assert_true(x && want);
	if (is_first) {
		IN_EACH_POINT(t->f.rank, lines, line) {
			read_line(t, line, n, x);
			transform(x, 1, n, t->f.insn.flags ? 1 : -1, want + i++ * n);
		}
	}
	in_put(&code, &t->f, sizeof(t->f));
	assert_int_equal(in_run(vt, &code, (struct vt_mem[]){ { t->mem[0], t->bytes[0] },
			 { t->mem[1], t->bytes[1] } }, 2, &run), 0);
	i = 0;
	IN_EACH_POINT(t->f.rank, lines, line) {
		if (is_first)
			compare(t, line, want + i++ * n);
		for (int64_t k = 0; k < t->count[1]; k++) {
			uint8_t *p = place(t, 1, line, k);

			hash = add_to_hash(hash, p, elem_bytes(t->f.dst.elem));
			memset(p, EMPTY, elem_bytes(t->f.dst.elem));
		}
	}
	/* Nothing else was written. */
	for (uint64_t k = 0; k < t->bytes[1]; k++)
		assert_int_equal(t->mem[1][k], EMPTY);
	free(x);
	free(want);
	return hash;
}

static void lines_are_transformed_to_the_same_bits_everywhere(void **state)
{
	static const char *const paths[] = { "portable", "avx2", "avx512" };
	static const unsigned lanes[] = { 2, 1, 3 };
	static uint64_t hash[TRIALS];
	bool is_first = true;

	(void)state;
	for (unsigned i = 0; i < 9; i++) {
		uint64_t seed = 20261126;
		struct vt vt;

		if (!vt_open(&vt, paths[i / 3], lanes[i % 3])) {
			print_message("# skipped: this CPU has no %s\n", paths[i / 3]);
			continue;
		}
		for (unsigned k = 0; k < TRIALS; k++) {
			struct trial t;
			uint64_t h;

			choose(&t, &seed);
			fill(&t, &seed);
			h = run_trial(&vt, &t, is_first);
			if (is_first)
				hash[k] = h;
			if (h != hash[k])
				fail_msg("trial %u, kind %u of %lld points: %s with %u lanes "
					 "differs", k, t.kind, (long long)t.f.dim[t.f.axis],
					 paths[i / 3], lanes[i % 3]);
			free(t.mem[0]);
			free(t.mem[1]);
		}
		is_first = false;
		vt_close(&vt);
	}
}

/* What is no number stays within its line, wherever lines go side by side: short rows and long
 * ones, columns. */
static void no_number(struct vt *t, const char *path)
{
	static const int64_t sizes[][2] = { { 21, 40 }, { 5, 64 }, { 3, 512 }, { 19, 61 * 16 } };

	(void)path;
	for (unsigned i = 0; i < 8; i++) {
		int64_t lines = sizes[i / 2][0], n = sizes[i / 2][1], bad = lines / 2;
		int64_t step = i % 2 ? lines * 8 : 8, line = i % 2 ? 8 : n * 8;
		uint64_t bytes = (uint64_t)(lines * n) * 8;
		struct isa_fft f = { .insn.op = ISA_FFT, .rank = 2, .axis = 1, .scale = 1,
				     .dim = { lines, n, 1, 1, 1, 1, 1, 1 },
				     .src = { .elem = ELEM_C64, .stride = { line, step } },
				     .dst = { .elem = ELEM_C64, .stride = { line, step },
					      .binding = 1 } };
		uint8_t *x = calloc(2, bytes), *y = x + bytes;
		struct in_code code = { .n = 0 };
		const float nan = NAN;
		struct sim_run run;

		assert_non_null(x);
		memcpy(x + bad * line + step * (n / 3), &nan, sizeof(nan));
		in_put(&code, &f, sizeof(f));
		assert_int_equal(in_run(t, &code, (struct vt_mem[]){ { x, bytes }, { y, bytes } },
					2, &run), 0);
		for (int64_t l = 0; l < lines; l++)
			for (int64_t k = 0; k < n; k++) {
				float z[2];

				memcpy(z, y + l * line + k * step, sizeof(z));
				assert_true(l == bad ? isnan(z[0]) || isnan(z[1]) :
						       z[0] == 0 && z[1] == 0);
			}
		free(x);
	}
}

static void no_number_leaves_its_line(void **state)
{
	(void)state;
	in_each_path(no_number);
}

/* As many points as there may be, of one line: a wave of frequency 3 and a constant. */
static void the_longest_line(struct vt *t, const char *path)
{
	const int64_t n = ISA_MAX_FFT;
	struct isa_fft f = { .insn.op = ISA_FFT, .rank = 1, .scale = 1,
			     .dim = { n, 1, 1, 1, 1, 1, 1, 1 },
			     .src = { .elem = ELEM_C128, .stride = { 16 } },
			     .dst = { .elem = ELEM_C128, .stride = { 16 }, .binding = 1 } };
	double *x = malloc((size_t)n * 32), *y = x + 2 * n;
	struct in_code code = { .n = 0 };
	struct sim_run run;

	(void)path;
	assert_non_null(x);
	for (int64_t k = 0; k < n; k++) {
		x[2 * k] = 0.5 + cos(2 * M_PI * 3 * (double)k / (double)n);
		x[2 * k + 1] = sin(2 * M_PI * 3 * (double)k / (double)n);
	}
	in_put(&code, &f, sizeof(f));
	assert_int_equal(in_run(t, &code, (struct vt_mem[]){ { (uint8_t *)x, (uint64_t)n * 16 },
			 { (uint8_t *)y, (uint64_t)n * 16 } }, 2, &run), 0);
	for (int64_t k = 0; k < n; k++) {
		double want = k == 0 ? 0.5 * (double)n : k == 3 ? (double)n : 0;

		assert_true(fabs(y[2 * k] - want) < 1e-8 && fabs(y[2 * k + 1]) < 1e-8);
	}
	free(x);
}

static void the_longest_line_is_transformed(void **state)
{
	(void)state;
	in_each_path(the_longest_line);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_are_transformed_to_the_same_bits_everywhere),
		cmocka_unit_test(no_number_leaves_its_line),
		cmocka_unit_test(the_longest_line_is_transformed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
