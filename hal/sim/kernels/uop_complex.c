/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels on c64 and c128, one path for all CPUs; sums and products are in uop_float.c, and so are
 * quick ways of c64, which fall back on these where they leave a number open.
 * Division scales by the larger part of the divisor; functions are libm's, and
 * those of c64 are computed in c128, so that their rounding is right.
 */
#include <complex.h>
#include <float.h>
#include <math.h>
#include <string.h>

#include "hal/sim/kernels/uop_loop.h"

struct c64 { float re, im; };
struct c128 { double re, im; };

static inline double complex wide_64(struct c64 z)
{
	return CMPLX(z.re, z.im);
}

static inline struct c64 narrow_64(double complex z)
{
	return (struct c64){ (float)creal(z), (float)cimag(z) };
}

/* libm looks at bits, and gives log(-1 + i y) of a subnormal y the sign of -y. */
static inline double flushed(double x)
{
	return fabs(x) < DBL_MIN ? copysign(0, x) : x;
}

static inline double complex wide_128(struct c128 z)
{
	return CMPLX(flushed(z.re), flushed(z.im));
}

static inline struct c128 narrow_128(double complex z)
{
	return (struct c128){ creal(z), cimag(z) };
}

static double complex expm1_of(double complex z)
{
	double x = creal(z), y = cimag(z), s = sin(y / 2);

	if (y == 0)
		return CMPLX(expm1(x), copysign(0, y));
	/* Nothing cancels, and e^x may be too large where e^z is not. */
	if (fabs(x) > 1)
		return CMPLX(creal(cexp(z)) - 1, cimag(cexp(z)));
	return CMPLX(expm1(x) * cos(y) - 2 * s * s, exp(x) * sin(y));
}

static double complex log1p_of(double complex z)
{
	double x = creal(z), y = cimag(z);

	/* |1 + z|^2 - 1 = x (x + 2) + y^2, good where z is small */
	if (fabs(x) < 0.5 && fabs(y) < 0.5)
		return CMPLX(0.5 * log1p(x * (x + 2) + y * y), atan2(y, 1 + x));
	return clog(CMPLX(1 + x, y));
}

static bool is_infinite(double complex z)
{
	return isinf(creal(z)) || isinf(cimag(z));
}

/* conj(sqrt z) / |z|; a quarter of z has a size in range. */
static double complex rsqrt_of(double complex z)
{
	double complex r;
	double size = cabs(z), half = 1;

	if (size == 0)
		return CMPLX(INFINITY, 0);
	if (is_infinite(z))
		return CMPLX(0, copysign(0, -cimag(z)));
	if (isinf(size)) {
		z = CMPLX(creal(z) / 4, cimag(z) / 4);
		size = cabs(z);
		half = 0.5;
	}
	r = csqrt(z);
	return CMPLX(creal(r) / size * half, -cimag(r) / size * half);
}

/* Near its poles, where e^-z is -1, as e^(z/2) / (2 cosh(z/2)), in which nothing cancels. */
static double complex logistic_of(double complex z)
{
	double complex h = CMPLX(creal(z) / 2, cimag(z) / 2);

	return fabs(creal(z)) > 1 ? 1.0 / (1.0 + cexp(-z)) : cexp(h) / (2 * ccosh(h));
}

static double complex sign_of(double complex z)
{
	double a = cabs(z);

	if (isinf(a) && !is_infinite(z)) {
		z = CMPLX(creal(z) / 4, cimag(z) / 4);
		a = cabs(z);
	}
	return a == 0 ? z : CMPLX(creal(z) / a, cimag(z) / a);
}

static double complex power_of_64(double complex x, double complex y)
{
	if (creal(y) == 0 && cimag(y) == 0)
		return 1;
	return creal(x) == 0 && cimag(x) == 0 && creal(y) > 0 ? 0 : cpow(x, y);
}

/* e^(y log x), whose error is that of the exponent: of more bits than the result has. */
static double complex power_of_128(double complex x, double complex y)
{
	long double complex r;

	if (creal(y) == 0 && cimag(y) == 0)
		return 1;
	if (creal(x) == 0 && cimag(x) == 0 && creal(y) > 0)
		return 0;
	r = cpowl(x, y);
	return CMPLX(flushed((double)creall(r)), flushed((double)cimagl(r)));
}

/* -i log((x + i y) / sqrt(x^2 + y^2)) with x the second argument */
static double complex atan2_of(double complex y, double complex x)
{
	if (cimag(y) == 0 && cimag(x) == 0)
		return atan2(creal(y), creal(x));
	return -I * clog((x + I * y) / csqrt(x * x + y * y));
}

/* The exponent of the larger part. */
static int exponent_of(double complex z)
{
	int e;

	frexp(fmax(fabs(creal(z)), fabs(cimag(z))), &e);
	return e;
}

static double complex scaled(double complex z, int by)
{
	return CMPLX(scalbn(creal(z), by), scalbn(cimag(z), by));
}

/* Products on the way stay within the type's range. */
static double complex divide_of(double complex x, double complex y)
{
	int a = exponent_of(x), b = exponent_of(y), by = a < -900 ? 100 : a > 1019 ? -4 : 0;

	if (!isfinite(creal(y)) || !isfinite(cimag(y)) || (creal(y) == 0 && cimag(y) == 0) ||
	    is_infinite(x) || (!by && b > -480 && b < 480))
		return x / y;
	return scaled(scaled(x, by) / scaled(y, -b), -by - b);
}

/* f: wide complex function of x, or of x and y */
#define FUNCTION1(name, C, w, f) \
KERNEL(name) \
{ \
	const C *pa = ra; \
	C *d = dst; \
	UNUSED_ARGS; \
	for (size_t i = 0; i < n; i++) \
		d[i] = narrow_##w(f(wide_##w(pa[i]))); \
}
#define FUNCTION2(name, C, w, f) \
KERNEL(name) \
{ \
	const C *pa = ra, *pb = rb; \
	C *d = dst, a0 = *pa, b0 = *pb; \
	UNUSED_ARGS; \
	for (size_t i = 0; i < n; i++) { \
		C x = spread & UOP_SPREAD_A ? a0 : pa[i]; \
		C y = spread & UOP_SPREAD_B ? b0 : pb[i]; \
		d[i] = narrow_##w(f(wide_##w(x), wide_##w(y))); \
	} \
}
/* R: the result's type; EXPR of x and y */
#define DIRECT1(name, R, C, EXPR) \
KERNEL(name) \
{ \
	const C *pa = ra; \
	R *d = dst; \
	UNUSED_ARGS; \
	for (size_t i = 0; i < n; i++) { \
		C x = pa[i]; \
		d[i] = (EXPR); \
	} \
}
#define DIRECT2(name, R, C, EXPR) \
KERNEL(name) \
{ \
	const C *pa = ra, *pb = rb; \
	C a0 = *pa, b0 = *pb; \
	R *d = dst; \
	UNUSED_ARGS; \
	for (size_t i = 0; i < n; i++) { \
		C x = spread & UOP_SPREAD_A ? a0 : pa[i]; \
		C y = spread & UOP_SPREAD_B ? b0 : pb[i]; \
		d[i] = (EXPR); \
	} \
}

/* Lexicographic; a NaN anywhere wins. */
#define BEFORE(x, y) ((x).re < (y).re || ((x).re == (y).re && (x).im < (y).im))
#define HAS_NAN(x) ((x).re != (x).re || (x).im != (x).im)
#define LESSER(x, y) (HAS_NAN(x) ? (x) : HAS_NAN(y) ? (y) : BEFORE(y, x) ? (y) : (x))
#define GREATER(x, y) (HAS_NAN(x) ? (x) : HAS_NAN(y) ? (y) : BEFORE(x, y) ? (y) : (x))

#define SUM(C, x, y) ((C){ (x).re + (y).re, (x).im + (y).im })
#define PRODUCT(C, x, y) ((C){ (x).re * (y).re - (x).im * (y).im, \
			       (x).re * (y).im + (x).im * (y).re })

#define FOLD(name, C, EXPR) \
static void name(void *dst, const void *src, size_t rows, size_t cols) \
{ \
	const C *s = src; \
	C *d = dst; \
	for (size_t r = 0; r < rows; r++) { \
		C x = *s++; \
		for (size_t j = 1; j < cols; j++) { \
			C y = *s++; \
			x = (EXPR); \
		} \
		d[r] = x; \
	} \
}

#define COMPLEX(C, R, w, t) \
	DIRECT1(c##w##_abs, R, C, hypot##t(x.re, x.im)) \
	DIRECT2(c##w##_min, C, C, LESSER(x, y)) \
	DIRECT2(c##w##_max, C, C, GREATER(x, y)) \
	DIRECT2(c##w##_eq, uint8_t, C, x.re == y.re && x.im == y.im) \
	DIRECT2(c##w##_ne, uint8_t, C, !(x.re == y.re && x.im == y.im)) \
	FOLD(c##w##_radd, C, SUM(C, x, y)) \
	FOLD(c##w##_rmul, C, PRODUCT(C, x, y)) \
	FOLD(c##w##_rmin, C, LESSER(x, y)) \
	FOLD(c##w##_rmax, C, GREATER(x, y)) \
	FUNCTION2(c##w##_div, C, w, divide_of) \
	FUNCTION2(c##w##_pow, C, w, power_of_##w) \
	FUNCTION2(c##w##_atan2, C, w, atan2_of) \
	FUNCTION1(c##w##_sign, C, w, sign_of) \
	FUNCTION1(c##w##_sqrt, C, w, csqrt) \
	FUNCTION1(c##w##_rsqrt, C, w, rsqrt_of) \
	FUNCTION1(c##w##_exp, C, w, cexp) \
	FUNCTION1(c##w##_expm1, C, w, expm1_of) \
	FUNCTION1(c##w##_log, C, w, clog) \
	FUNCTION1(c##w##_log1p, C, w, log1p_of) \
	FUNCTION1(c##w##_sin, C, w, csin) \
	FUNCTION1(c##w##_cos, C, w, ccos) \
	FUNCTION1(c##w##_tan, C, w, ctan) \
	FUNCTION1(c##w##_tanh, C, w, ctanh) \
	FUNCTION1(c##w##_logistic, C, w, logistic_of)

COMPLEX(struct c64, float, 64, f)
COMPLEX(struct c128, double, 128, )

#define TWO(op) {{ [ELEM_C64] = c64_##op, [ELEM_C128] = c128_##op }}

const struct sim_uop_row sim_uop_complex[UOP_CODES] = {
	[UOP_ABS] = TWO(abs), [UOP_SIGN] = TWO(sign),
	[UOP_SQRT] = TWO(sqrt), [UOP_RSQRT] = TWO(rsqrt), [UOP_EXP] = TWO(exp),
	[UOP_EXPM1] = TWO(expm1), [UOP_LOG] = TWO(log), [UOP_LOG1P] = TWO(log1p),
	[UOP_SIN] = TWO(sin), [UOP_COS] = TWO(cos), [UOP_TAN] = TWO(tan),
	[UOP_TANH] = TWO(tanh), [UOP_LOGISTIC] = TWO(logistic),
	[UOP_DIV] = TWO(div), [UOP_MIN] = TWO(min), [UOP_MAX] = TWO(max),
	[UOP_POW] = TWO(pow), [UOP_ATAN2] = TWO(atan2),
	[UOP_EQ] = TWO(eq), [UOP_NE] = TWO(ne),
};

const struct sim_fold_row sim_uop_fold_complex[UOP_CODES] = {
	[UOP_ADD] = TWO(radd), [UOP_MUL] = TWO(rmul),
	[UOP_MIN] = TWO(rmin), [UOP_MAX] = TWO(rmax),
};
