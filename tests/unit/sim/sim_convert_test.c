/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Conversions between all types, each path against an exact slow one: values are
 * taken apart into sign, NaN and a long double, which holds every value of every
 * type, and put together again with one rounding.
 */
#include <immintrin.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "hal/sim/kernels/uop.h"
#include "tests/unit/sim/sim_vec.h"

#define N 1500

enum kind { IEEE, FN, FNUZ, FINITE, POWER };

static const struct format {
	uint8_t elem, exp, mant, bias, kind;
} formats[] = {
	{ ELEM_F16, 5, 10, 15, IEEE }, { ELEM_BF16, 8, 7, 127, IEEE },
	{ ELEM_F8E5M2, 5, 2, 15, IEEE }, { ELEM_F8E4M3, 4, 3, 7, IEEE },
	{ ELEM_F8E3M4, 3, 4, 3, IEEE }, { ELEM_F8E4M3FN, 4, 3, 7, FN },
	{ ELEM_F8E4M3B11FNUZ, 4, 3, 11, FNUZ }, { ELEM_F8E5M2FNUZ, 5, 2, 16, FNUZ },
	{ ELEM_F8E4M3FNUZ, 4, 3, 8, FNUZ }, { ELEM_F4E2M1FN, 2, 1, 1, FINITE },
	{ ELEM_F8E8M0FNU, 8, 0, 127, POWER },
};

struct value { long double v; bool nan, negative; };

static const struct format *format_of(unsigned elem)
{
	for (unsigned i = 0; i < sizeof(formats) / sizeof(formats[0]); i++)
		if (formats[i].elem == elem)
			return &formats[i];
	return NULL;
}

static struct value decode_small(const struct format *f, unsigned code)
{
	unsigned top = 1u << (f->exp + f->mant), mag = code & (top - 1);
	unsigned exp = mag >> f->mant, frac = mag & ((1u << f->mant) - 1);
	struct value r = { .negative = code & top };

	if (f->kind == POWER) {
		r = (struct value){ .nan = code == 255, .v = ldexpl(1, (int)code - 127) };
		return r;
	}
	r.v = exp ? ldexpl((1u << f->mant) + frac, (int)exp - f->bias - f->mant) :
		ldexpl(frac, 1 - f->bias - f->mant);
	if (f->kind == IEEE && exp == (1u << f->exp) - 1) {
		r.nan = frac;
		r.v = INFINITY;
	}
	if (f->kind == FN && mag == top - 1)
		r.nan = true;
	if (f->kind == FNUZ && code == top)
		r.nan = true;
	if (r.negative)
		r.v = -r.v;
	return r;
}

/* The code, or ~0: any NaN. */
static unsigned encode_small(const struct format *f, struct value x)
{
	unsigned top = 1u << (f->exp + f->mant), sign = x.negative ? top : 0, code;
	unsigned end = f->kind == IEEE ? ((1u << f->exp) - 1) << f->mant :
		f->kind == FN ? top - 1 : top;
	long double a = fabsl(x.v), q;
	int e;

	if (f->kind == POWER) {
		if (x.nan || x.negative || !(a > 0) || isinf(a))
			return 255;
		e = a < 0x1p-126L ? (a >= 0x1.8p-127L) : (int)floorl(log2l(a / 1.5L * 2)) + 127;
		/* halfway goes up: 1.5 2^k is k + 1 */
		return e > 254 ? 255 : (unsigned)e;
	}
	if (x.nan)
		return f->kind == FINITE ? top : ~0u;
	if (a == 0)
		return f->kind == FNUZ ? 0 : sign;
	if (isinf(a)) {
		code = end;
	} else {
		e = ilogbl(a);
		e = e < 1 - f->bias ? 1 - f->bias : e;
		q = rintl(ldexpl(a, f->mant - e));
		code = (unsigned)q < (1u << f->mant) ? (unsigned)q :
			((unsigned)(e + f->bias) << f->mant) + (unsigned)q - (1u << f->mant);
		if (e + f->bias > 400)
			code = end;
	}
	if (code >= end && f->kind != IEEE)
		return f->kind == FINITE ? (end - 1) | sign : ~0u;
	if (code >= end)
		code = end;
	if (!code && f->kind == FNUZ)
		return 0;
	return code | sign;
}

static struct value of_float(long double x)
{
	return (struct value){ .v = x, .nan = x != x, .negative = signbit(x) };
}

static struct value of_int(int64_t x)
{
	return (struct value){ .v = (long double)x, .negative = x < 0 };
}

static struct value decode(unsigned elem, const void *p)
{
	const struct format *f = format_of(elem);
	uint64_t u = 0;
	float x;
	double d;

	memcpy(&u, p, elem_bytes(elem) < 8 ? elem_bytes(elem) : 8);
	memcpy(&x, p, elem_bytes(elem) < 4 ? elem_bytes(elem) : 4);
	if (f)
		return decode_small(f, (unsigned)u);
	switch (elem) {
	case ELEM_S2: return of_int((int64_t)(u << 62) >> 62);
	case ELEM_S4: return of_int((int64_t)(u << 60) >> 60);
	case ELEM_S8: return of_int((int8_t)u);
	case ELEM_S16: return of_int((int16_t)u);
	case ELEM_S32: return of_int((int32_t)u);
	case ELEM_S64: return of_int((int64_t)u);
	case ELEM_U2: return of_int((int64_t)(u & 3));
	case ELEM_U4: return of_int((int64_t)(u & 15));
	case ELEM_PRED: case ELEM_U8: case ELEM_U16: case ELEM_U32:
		return of_int((int64_t)u);
	case ELEM_U64:
		return (struct value){ .v = (long double)u };
	case ELEM_F32: case ELEM_C64:
		return of_float(x);
	default:
		memcpy(&d, p, 8);
		return of_float(d);
	}
}

static bool is_int(unsigned elem)
{
	return elem_class(elem) == ELEM_CLASS_SINT || elem_class(elem) == ELEM_CLASS_UINT ||
		elem_class(elem) == ELEM_CLASS_PRED;
}

/* An integer of `bits`: wraps from integers, saturates from floats. */
static uint64_t to_integer(unsigned elem, struct value x, bool from_int, uint64_t raw)
{
	bool s = elem_class(elem) == ELEM_CLASS_SINT;
	unsigned bits = elem_bits(elem);
	long double low = s ? -ldexpl(1, (int)bits - 1) : 0;
	long double high = ldexpl(1, (int)(s ? bits - 1 : bits)) - 1;
	uint64_t r;

	if (from_int)
		r = raw;
	else if (x.nan)
		r = 0;
	else if (x.v <= low)
		r = (uint64_t)(int64_t)low;
	else if (x.v >= high)
		r = (uint64_t)high;
	else
		r = x.v < 0 ? (uint64_t)(int64_t)x.v : (uint64_t)x.v;
	if (bits == 64)
		return r;
	r &= ((uint64_t)1 << bits) - 1;
	if (s && r >> (bits - 1))
		r |= UINT64_MAX << bits;
	return r;
}

static uint64_t raw_int(struct value x)
{
	return x.v < 0 ? (uint64_t)(int64_t)x.v : (uint64_t)x.v;
}

/* Whether got is what x becomes in `to`. */
static bool is_right(unsigned from, unsigned to, struct value x, const void *got)
{
	const struct format *f = format_of(to);
	uint64_t u = 0, want;
	struct value g;

	memcpy(&u, got, elem_bytes(to) < 8 ? elem_bytes(to) : 8);
	if (to == ELEM_PRED)
		return u == (x.nan || x.v != 0);
	if (is_int(to)) {
		want = to_integer(to, x, is_int(from), is_int(from) ? raw_int(x) : 0);
		return !memcmp(&want, got, elem_bytes(to));
	}
	if (f) {
		unsigned code = encode_small(f, x);

		if (to == ELEM_BF16 && fabsl(x.v) < 0x1p-126L && !(u & 0x7fff))
			return true;
		return code == ~0u ? decode_small(f, (unsigned)u).nan : u == code;
	}
	g = decode(to, got);
	if (x.nan || g.nan)
		return x.nan && g.nan;
	if (elem_class(to) == ELEM_CLASS_COMPLEX) {
		double imag = 0;

		memcpy(&imag, (const char *)got + elem_bytes(to) / 2, elem_bytes(to) / 2);
		if (imag != 0)
			return false;
	}
	if (to == ELEM_F32 || to == ELEM_C64) {
		float want32 = (float)x.v;

		if (fabsf(want32) <= 0x1p-126f && fabsl(g.v) <= 0x1p-126L)
			return true;
		return g.v == (long double)want32 && g.negative == x.negative;
	}
	if (fabsl(x.v) < 0x1p-1022L)
		return fabsl(g.v) < 0x1p-1022L;
	return g.v == (long double)(double)x.v && (g.negative == x.negative);
}

static uint64_t seed = 5;

static uint64_t random64(void)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return seed ^ seed >> 31;
}

static void fill(unsigned elem, char *p)
{
	static const double special[] = { 0, -0.0, 1, -1, 0.5, 448, 464, 465, 480, 65504,
		65519, 65520, 57344, 61440, 240, 247.9, 248, 15.5, 15.75, 6, 7, 5, 2.5, 1e10,
		-1e10, 1e300, -1e300, INFINITY, -INFINITY, NAN, 2147483647, 2147483648.0,
		-2147483649.0, 4294967295.0, 4294967296.0, 9223372036854775807.0,
		18446744073709551615.0, 127.5, 128, -128.9, -129, 255.9, 256, 0x1p-24, 0x1p-25,
		0x1.8p-24, 0x1p-133, 0x1.7p-127, 0x1.8p-127, 0x1p-1022,
		0x1p-9, 0x1p-10, 1.5, 3, 0x1.00ffffp0, 0x1.01p0,
		0x1.0100000000001p0, 0x1.00fffffffffffp0, 1.0009765625, 0x1.002p0,
		0x1.0020000000001p0, 0x1.01fffffffffffp0, -7.5, 7.5, -8.5, 3.7, -2.5,
		2147483646.5, 4294967294.5, 126.5, 32766.5, 65534.5, -127.5 };
	unsigned bytes = elem_bytes(elem), k = sizeof(special) / sizeof(special[0]);

	for (unsigned i = 0; i < N; i++) {
		uint64_t u[2] = { random64() >> random64() % 60, random64() };
		double d = i < k ? special[i] : (double)(int64_t)random64() *
			ldexp(1, (int)(random64() % 100) - 80);
		float x = (float)d;

		if (bytes == 1)
			u[0] = i;
		if (elem == ELEM_PRED)
			u[0] &= 1;
		if ((elem == ELEM_S64 || elem == ELEM_U64) && i % 2)
			u[0] = random64();
		memcpy(p + i * bytes, u, bytes);
		if (elem == ELEM_F32 || elem == ELEM_C64)
			memcpy(p + i * bytes, &x, 4);
		if (elem == ELEM_F64 || elem == ELEM_C128)
			memcpy(p + i * bytes, &d, 8);
		if (elem_class(elem) == ELEM_CLASS_COMPLEX && elem == ELEM_C64)
			memcpy(p + i * bytes + 4, &(float){ 0 }, 4);
		else if (elem == ELEM_C128)
			memcpy(p + i * bytes + 8, &(double){ 0 }, 8);
	}
}

/* Between powers of two and f64 no number is below those that the device computes with. */
static bool is_scale(unsigned from, unsigned to)
{
	return from == ELEM_F8E8M0FNU ||
	       (to == ELEM_F8E8M0FNU && (from == ELEM_F64 || from == ELEM_C128));
}

static void every_pair_converts_exactly(void **state)
{
	static char in[N * 16], out[3][N * 16];
	unsigned n_paths = __builtin_cpu_supports("avx512bw") ? 3 :
		__builtin_cpu_supports("avx2") ? 2 : 1;
	unsigned saved = _mm_getcsr();

	(void)state;
	for (unsigned from = 1; from < ELEM_COUNT; from++) {
		if (!elem_bytes(from))
			continue;
		fill(from, in);
		for (unsigned to = 1; to < ELEM_COUNT; to++) {
			if (!elem_bytes(to) || from == to)
				continue;
			_mm_setcsr(saved | 0x8040);
			for (unsigned path = 0; path < n_paths; path++)
				sim_uop_convert((enum sim_path)path, from, to)(out[path], in,
					NULL, NULL, N, 0, from | to << 8);
			_mm_setcsr(saved);
			for (unsigned path = 0; path < n_paths; path++) {
				for (unsigned i = 0; i < N; i++) {
					char *got = out[path] + i * elem_bytes(to);
					struct value x = decode(from, in + i * elem_bytes(from));
					uint64_t u = 0;

					/* subnormal in f32: flushed, or kept as bits */
					if (elem_class(from) >= ELEM_CLASS_FLOAT && x.v != 0 &&
					    fabsl(x.v) < 0x1p-126L && !is_scale(from, to))
						continue;
					memcpy(&u, got, elem_bytes(to) < 8 ? elem_bytes(to) : 8);
					if (!is_right(from, to, x, got))
						fail_msg("path %u, %s to %s: %La is 0x%llx", path,
							 elem_text(from), elem_text(to), x.v,
							 (unsigned long long)u);
				}
				assert_memory_equal(out[path], out[0], N * elem_bytes(to));
			}
		}
	}
}

/* All f32 of one sign in steps, to the two 16-bit types: by far the most used. */
static void sixteen_bits_round_to_even(void **state)
{
	static uint32_t in[4096];
	static uint16_t out[4096];

	(void)state;
	for (unsigned to = ELEM_F16; to <= ELEM_BF16; to += ELEM_BF16 - ELEM_F16) {
		for (uint64_t at = 0; at < 0x7f800000; at += 4096u * 1021) {
			for (unsigned i = 0; i < 4096; i++)
				in[i] = (uint32_t)(at + i * 1021u) & 0x7fffffff;
			for (unsigned path = 0; path < 3; path++) {
				if (path == 2 && !__builtin_cpu_supports("avx512bw"))
					break;
				sim_uop_convert((enum sim_path)path, ELEM_F32, to)(out, in, NULL,
					NULL, 4096, 0, ELEM_F32 | to << 8);
				for (unsigned i = 0; i < 4096; i++) {
					struct value x = decode(ELEM_F32, &in[i]);

					if (in[i] >= 0x800000 &&
					    !is_right(ELEM_F32, to, x, &out[i]))
						fail_msg("0x%x to %s: 0x%x", in[i],
							 elem_text(to), out[i]);
				}
			}
		}
	}
}

/* ---- operations on narrow numbers ---- */

#define MIXED_MOST 200
static const struct { uint8_t lies, elem; bool again; } mixed[] = {
	{ SIM_WIDE, ELEM_F32, false }, { SIM_BF16, ELEM_BF16, false }, { SIM_F16, ELEM_F16, false },
	{ SIM_AGAIN_BF16, ELEM_BF16, true }, { SIM_AGAIN_F16, ELEM_F16, true },
};

static void convert(void *to, unsigned to_elem, const void *from, unsigned from_elem, size_t n)
{
	sim_uop_convert(SIM_AVX512, from_elem, to_elem)(to, from, NULL, NULL, n, 0,
							from_elem | to_elem << 8);
}

/* What is computed step by step: of n numbers of each, or one b for each `cols` of them. */
static void step_by_step(void *to, unsigned op, unsigned result, const void *a, unsigned a_elem,
			 const void *b, unsigned b_elem, size_t n, size_t cols, unsigned spread)
{
	static float x[MIXED_MOST], y[MIXED_MOST], few[MIXED_MOST];
	static uint16_t narrow[MIXED_MOST];
	struct isa_uop u = { .op = (uint8_t)op, .elem = ELEM_F32 };

	convert(x, ELEM_F32, a, a_elem, spread & UOP_SPREAD_A ? 1 : n);
	convert(few, ELEM_F32, b, b_elem, spread & UOP_SPREAD_B ? 1 : n / cols);
	for (size_t i = 0; i < n; i++)
		y[i] = few[spread & UOP_SPREAD_B ? 0 : i / cols];
	if (op != UOP_CVT)
		sim_uop_kernel(SIM_AVX512, &u)(x, x, y, NULL, n, spread & UOP_SPREAD_A, 0);
	if (!mixed[result].again) {
		convert(to, mixed[result].elem, x, ELEM_F32, n);
		return;
	}
	convert(narrow, mixed[result].elem, x, ELEM_F32, n);
	convert(to, ELEM_F32, narrow, mixed[result].elem, n);
}

static void same_numbers(const void *got, const void *want, unsigned result, size_t n,
			 const char *what, unsigned op)
{
	unsigned elem = mixed[result].again ? ELEM_F32 : mixed[result].elem;
	unsigned bytes = elem_bytes(elem);

	for (size_t i = 0; i < n; i++) {
		const char *g = (const char *)got + i * bytes, *w = (const char *)want + i * bytes;

		if (memcmp(g, w, bytes) && !(decode(elem, g).nan && decode(elem, w).nan))
			fail_msg("%s, op 0x%x, result %u, element %zu of %zu", what, op, result, i,
				 n);
	}
	assert_int_equal(((const unsigned char *)got)[n * bytes], 0x5a);
}

/* n numbers of each side, in every mix of spread ones, and rows of n. */
static void mix(unsigned op, unsigned a, unsigned b, unsigned result, size_t n, const void *from_a,
		const void *from_b)
{
	uint64_t aux = sim_mixed_aux(mixed[a].lies, mixed[b].lies, mixed[result].lies);
	static float got[MIXED_MOST + 1], want[MIXED_MOST];
	size_t rows = MIXED_MOST / n < 4 ? MIXED_MOST / n : 4;

	for (unsigned spread = 0; spread < (op == UOP_CVT ? 1 : 3); spread++) {
		memset(got, 0x5a, sizeof(got));
		sim_uop_mixed(SIM_AVX512, op)(got, from_a, op == UOP_CVT ? NULL : from_b, NULL, n,
					      spread, aux);
		step_by_step(want, op, result, from_a, mixed[a].elem, from_b, mixed[b].elem, n, 1,
			     spread);
		same_numbers(got, want, result, n, "alone", op);
	}
	if (op == UOP_CVT)
		return;
	memset(got, 0x5a, sizeof(got));
	sim_uop_mixed_by_row(SIM_AVX512, op)(got, from_a, from_b, NULL, rows, 0,
					     aux | n << SIM_MIXED_COLS);
	step_by_step(want, op, result, from_a, mixed[a].elem, from_b, mixed[b].elem, rows * n, n,
		     0);
	same_numbers(got, want, result, rows * n, "by rows", op);
	if (a != b)
		return;
	memset(got, 0x5a, sizeof(got));
	sim_uop_mixed(SIM_AVX512, op)(got, from_a, from_a, NULL, n, 0, aux);
	step_by_step(want, op, result, from_a, mixed[a].elem, from_a, mixed[b].elem, n, 1, 0);
	same_numbers(got, want, result, n, "of one", op);
}

/* Kernels that read and write narrow numbers give what conversions beside the operation do. */
static void narrow_numbers_are_as_converted(void **state)
{
	static const uint8_t ops[] = { UOP_ADD, UOP_SUB, UOP_MUL, UOP_DIV, UOP_MIN, UOP_MAX,
				       UOP_CVT };
	static float a[3][MIXED_MOST], b[3][MIXED_MOST];

	(void)state;
	assert_null(sim_uop_mixed(SIM_PORTABLE, UOP_ADD));
	if (!__builtin_cpu_supports("avx512bw"))
		return;
	assert_null(sim_uop_mixed(SIM_AVX512, UOP_POW));
	_mm_setcsr(_mm_getcsr() | 0x8040);
	for (size_t i = 0; i < MIXED_MOST; i++) {
		static const float special[] = {
			0, -0.0f, INFINITY, -INFINITY, NAN, 1, 65519, 65520, 0x1p-24f, 0x1.01p0f,
			0x1.03p0f, 0x1.feffffp127f,
		};
		float x = (float)random64() / 0x1p60f - 8, y = (float)random64() / 0x1p62f;

		a[SIM_WIDE][i] = i % 3 ? x : special[i / 3 % 12];
		b[SIM_WIDE][i] = i % 5 ? y : special[i / 5 % 12];
	}
	for (unsigned k = SIM_BF16; k <= SIM_F16; k++) {
		convert(a[k], mixed[k].elem, a[SIM_WIDE], ELEM_F32, MIXED_MOST);
		convert(b[k], mixed[k].elem, b[SIM_WIDE], ELEM_F32, MIXED_MOST);
	}
	for (size_t op = 0; op < sizeof(ops); op++)
		for (unsigned kinds = 0; kinds < 3 * 3 * 5; kinds++)
			for (size_t n = 1; n <= MIXED_MOST; n += n < 140 ? 1 : 7)
				mix(ops[op], kinds % 3, kinds / 3 % 3, kinds / 9, n, a[kinds % 3],
				    b[kinds / 3 % 3]);
	_mm_setcsr(_mm_getcsr() & ~0x8040u);
}

/* ---- bodies of them ---- */

#define BODY_STEPS 12
#define BODY_POINTS 6000

/* A body of conversions and operations, in no order but that it is one; *is_row of each value. */
static void draw_body(struct vt_insn *in, unsigned narrow, bool *is_row)
{
	static const uint8_t ops[] = { UOP_ADD, UOP_SUB, UOP_MUL, UOP_DIV, UOP_MIN, UOP_MAX };
	uint8_t elem[2 + BODY_STEPS] = { in->op[0].elem, in->op[1].elem };
	unsigned n = 2;

	for (unsigned i = 0; i < BODY_STEPS; i++, n++) {
		uint64_t r = random64();
		/* mostly what was made last */
		unsigned a = n - 1 - (unsigned)(r % 2 && n > 2 ? r / 2 % n : 0);
		unsigned b = (unsigned)(r >> 8) % n;
		struct isa_uop *u = &in->uop[i];

		*u = vt_uop(ops[r >> 16 & 7 ? (r >> 16) % 6 : 0], ELEM_F32, a, b, 0);
		is_row[n] = is_row[a] && is_row[b];
		elem[n] = ELEM_F32;
		if (elem[a] == ELEM_F32 && elem[b] == ELEM_F32 && r >> 24 & 3)
			continue;
		is_row[n] = is_row[a];
		if (elem[a] == ELEM_F32 && in->head.body.row_rank && !is_row[a] && !(r >> 26 & 7)) {
			*u = vt_uop(UOP_RMAX, ELEM_F32, a, 0, 0);
			is_row[n] = true;
			continue;
		}
		*u = vt_uop(UOP_CVT, elem[a], a, 0, 0);
		u->to = elem[n] = (uint8_t)(elem[a] == ELEM_F32 ? narrow : ELEM_F32);
	}
	/* two that are full; inputs are */
	for (unsigned j = 0; j < 2; j++) {
		unsigned v = j ? (unsigned)(random64() % n) : n - 1;

		while (is_row[v])
			v--;
		in->op[2 + j].value = (uint8_t)v;
		in->op[2 + j].elem = elem[v];
	}
}

/* Lays an operand out over rows by cols points; its b: along both, rows, columns or neither. */
static void lay(struct isa_operand *op, unsigned binding, int64_t cols, unsigned along)
{
	int64_t bytes = elem_bytes(op->elem);

	op->binding = (uint16_t)binding;
	op->stride[0] = along == 0 ? cols * bytes : along == 1 ? bytes : 0;
	op->stride[1] = along == 0 || along == 2 ? bytes : 0;
}

static void run_narrow_body(struct vt *paths, unsigned n_paths, int64_t rows, int64_t cols)
{
	static char mem[3][4][BODY_POINTS * 4];
	unsigned narrow = random64() % 2 ? ELEM_BF16 : ELEM_F16;
	struct vt_insn in = { .head = { .insn.op = ISA_VEC, .body = { .rank = 2, .n_in = 2,
		.n_out = 2, .n_uop = BODY_STEPS, .row_rank = random64() % 2,
		.dim = { rows, cols, 1, 1, 1, 1, 1, 1 } } } };
	bool is_row[2 + BODY_STEPS] = { false };
	static float from[BODY_POINTS];

	for (size_t i = 0; i < BODY_POINTS; i++)
		from[i] = 0.5f + (float)(random64() % 4096) / 1024;
	in.op[0].elem = (uint8_t)narrow;
	in.op[1].elem = (uint8_t)(random64() % 2 ? narrow : ELEM_F32);
	lay(&in.op[0], 0, cols, 0);
	lay(&in.op[1], 1, cols, (unsigned)(random64() % 4));
	draw_body(&in, narrow, is_row);
	lay(&in.op[2], 2, cols, 0);
	lay(&in.op[3], 3, cols, 0);
	for (unsigned p = 0; p < n_paths; p++) {
		struct sim_run run;

		convert(mem[p][0], narrow, from, ELEM_F32, BODY_POINTS);
		convert(mem[p][1], in.op[1].elem, from, ELEM_F32, BODY_POINTS);
		assert_int_equal(vt_run(&paths[p], &in, (struct vt_mem[]){
			{ mem[p][0], BODY_POINTS * 4 }, { mem[p][1], BODY_POINTS * 4 },
			{ mem[p][2], BODY_POINTS * 4 }, { mem[p][3], BODY_POINTS * 4 } }, 4, &run),
			0);
	}
	for (unsigned p = 1; p < n_paths; p++)
		for (unsigned j = 2; j < 4; j++)
			for (int64_t i = 0; i < rows * cols; i++) {
				unsigned elem = in.op[j].elem, bytes = elem_bytes(elem);
				const char *x = mem[0][j] + i * bytes, *y = mem[p][j] + i * bytes;

				if (memcmp(x, y, bytes) &&
				    !(decode(elem, x).nan && decode(elem, y).nan))
					fail_msg("path %u, %s, %lld by %lld, output %u: %lld",
						 p, elem_text(narrow), (long long)rows,
						 (long long)cols, j, (long long)i);
			}
}

/* Whatever of a body's conversions is left out, each path gives the same. */
static void bodies_of_narrow_numbers_are_alike(void **state)
{
	static const int64_t cols[] = { 1, 7, 16, 23, 24, 48, 95, 96, 159, 160, 300 };
	static const char *const names[] = { "portable", "avx2", "avx512" };
	struct vt paths[3];
	unsigned n = 0;

	(void)state;
	while (n < 3 && vt_open(&paths[n], names[n], 1))
		n++;
	if (n == 3)
		for (unsigned k = 0; k < 2700; k++)
			run_narrow_body(paths, n, 1 + (int64_t)(random64() % 20), cols[k % 11]);
	for (unsigned p = 0; p < n; p++)
		vt_close(&paths[p]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_pair_converts_exactly),
		cmocka_unit_test(sixteen_bits_round_to_even),
		cmocka_unit_test(narrow_numbers_are_as_converted),
		cmocka_unit_test(bodies_of_narrow_numbers_are_alike),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
