/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fourier transforms as the device has them: along one dim at a time, and of lengths that its
 * instruction takes. Longer ones are made of two (Cooley and Tukey, 1965), and those with a larger
 * prime factor are convolutions with a chirp (Bluestein, "A linear filtering approach to the
 * computation of discrete Fourier transform", 1970), long ones along that factor alone.
 */
#include <math.h>
#include <string.h>

#include "hal/hw/isa.h"
#include "runtime/compiler/lower/decompose.h"

#define LONG_CHIRP 16384	/* points from which on two shorter transforms are quicker */
#define LEAST_LINES 8		/* and so many lines of one of them */

struct fft {
	struct tc_build b;
	enum elem elem;		/* C64 or C128 */
	bool is_inverse;
};

/* Which of complex numbers goes the same way. */
static int64_t complex_kind(const struct fft *f)
{
	return f->is_inverse ? TC_FFT_IFFT : TC_FFT_FFT;
}

/* Of complex numbers given as pairs of f64. */
static struct tc_value *data(const struct fft *f, unsigned rank, const int64_t *dim, double *wide)
{
	const struct tc_type *t = tc_tensor(f->b.c, f->elem, rank, dim);
	float *narrow = (float *)wide;

	for (int64_t i = 0; f->elem == ELEM_C64 && i < 2 * t->count; i++)
		narrow[i] = (float)wide[i];
	return tc_build_data(&f->b, t, wide);
}

static double *pairs(const struct fft *f, int64_t n)
{
	return arena_array(&f->b.c->arena, (size_t)n, 2 * sizeof(double));
}

/* exp(-2 pi i turn / n), or 2 pi i; quarters of a turn are exact. */
static void root(const struct fft *f, int64_t turn, int64_t n, double *to)
{
	static const int quarter[] = { 1, 0, -1, 0, 1 };
	double angle = 2 * M_PI * (double)turn / (double)n;
	bool is_exact = 4 * turn % n == 0;

	to[0] = is_exact ? quarter[4 * turn / n] : cos(angle);
	to[1] = is_exact ? quarter[(4 * turn / n + 3) % 4] : sin(angle);
	if (!f->is_inverse)
		to[1] = -to[1];
}

/* The roots of n at r c step for r < rows, c < cols. */
static struct tc_value *roots(const struct fft *f, int64_t n, int64_t rows, int64_t cols,
			      int64_t step)
{
	const int64_t dim[] = { rows, cols };
	double *wide = pairs(f, rows * cols);

	/* The product is reduced first: large angles lose digits. */
	for (int64_t i = 0; i < rows * cols; i++)
		root(f, (i / cols) * (i % cols) * step % n, n, wide + 2 * i);
	return data(f, 2, dim, wide);
}

/* x times constants that go along with some of its dims, in order. */
static struct tc_value *times(const struct fft *f, struct tc_value *x, struct tc_value *by,
			      const int64_t *dims)
{
	return tc_build2(&f->b, TC_MULTIPLY, x, tc_build_broadcast(&f->b, by, x->type, dims));
}

/* The dims around dim d as one before it and one behind it. */
static void around(const struct tc_type *t, unsigned d, int64_t *before, int64_t *behind)
{
	*before = *behind = 1;
	for (unsigned i = 0; i < t->rank; i++)
		if (i != d)
			*(i < d ? before : behind) *= t->dim[i];
}

static struct tc_value *along(const struct fft *f, int64_t kind, struct tc_value *x, unsigned d,
			      int64_t n, double scale);

/* One instruction's. */
static struct tc_value *at_once(const struct fft *f, int64_t kind, struct tc_value *x, unsigned d,
				int64_t n, double scale)
{
	const struct tc_type *one = tc_tensor(f->b.c, ELEM_F64, 0, NULL);
	int64_t dim[TC_MAX_RANK];
	struct tc_value *y;

	memcpy(dim, x->type->dim, x->type->rank * sizeof(*dim));
	dim[d] = kind == TC_FFT_RFFT ? n / 2 + 1 : n;
	y = tc_build(&f->b, TC_FFT, tc_tensor(f->b.c, kind == TC_FFT_IRFFT ? tc_real_of(f->elem) :
					      f->elem, x->type->rank, dim), 1, &x);
	tc_set_int(f->b.c, y->def, "fft_type", TC_ATTR_ENUM, kind);
	tc_set_ints(f->b.c, y->def, "fft_length", &n, 1);
	tc_set_int(f->b.c, y->def, "dimension", TC_ATTR_INT, d);
	tc_set_attr(f->b.c, y->def, (struct tc_attr){
		.key = TC_KEY(f->b.c, "scale"), .kind = TC_ATTR_DENSE, .type = one,
		.data = arena_copy(&f->b.c->arena, &scale, sizeof(scale)) });
	return y;
}

/* The largest factor of n that is not above its square root. */
static int64_t middle(int64_t n)
{
	int64_t p = (int64_t)sqrt((double)n);

	while (n % p)
		p--;
	return p;
}

/*
 * n = p q, p given: transforms of the columns of a [p, q] matrix, a multiplication by the roots of
 * n at the product of row and column, and transforms of its rows, which leave the result in the
 * order of columns. A root at r (c1 s + c0) is the product of one at r c1 s and one at r c0, as all
 * of them would take as much memory as x.
 */
static struct tc_value *in_two(const struct fft *f, struct tc_value *x, unsigned d, int64_t p,
			       double scale)
{
	const int64_t turn[] = { 0, 2, 1, 3 }, high[] = { 1, 2 }, low[] = { 1, 3 };
	const struct tc_type *t = x->type;
	int64_t n = t->dim[d], q = n / p, s = middle(q), before, behind;

	around(t, d, &before, &behind);
	x = tc_build_reshape(&f->b, x, 4, (const int64_t[]){ before, p, q, behind });
	x = along(f, complex_kind(f), x, 1, p, scale);
	x = tc_build_reshape(&f->b, x, 5, (const int64_t[]){ before, p, q / s, s, behind });
	x = times(f, x, roots(f, n, p, q / s, s), high);
	x = times(f, x, roots(f, n, p, s, 1), low);
	x = tc_build_reshape(&f->b, x, 4, (const int64_t[]){ before, p, q, behind });
	x = along(f, complex_kind(f), tc_build_transpose(&f->b, x, turn), 1, q, 1);
	return tc_build_reshape(&f->b, x, t->rank, t->dim);
}

static struct tc_value *reversed(const struct fft *f, struct tc_value *x, unsigned d)
{
	int64_t dim = d;

	x = tc_build1(&f->b, TC_REVERSE, x);
	tc_set_ints(f->b.c, x->def, "dimensions", &dim, 1);
	return x;
}

/* x with zeros behind it along dim d, `wide` in all, but for the last elements, which mirror those
 * from the second on if `has_mirror`. */
static struct tc_value *widened(const struct fft *f, struct tc_value *x, unsigned d, int64_t wide,
				bool has_mirror)
{
	int64_t n = x->type->dim[d], last = has_mirror ? n - 1 : 0, dim[TC_MAX_RANK];
	struct tc_value *part[3] = { x };

	memcpy(dim, x->type->dim, x->type->rank * sizeof(*dim));
	dim[d] = wide - n - last;
	part[1] = tc_build_number(&f->b, tc_tensor(f->b.c, f->elem, x->type->rank, dim), 0);
	if (has_mirror)
		part[2] = reversed(f, tc_build_part(&f->b, x, d, 1, last), d);
	return tc_build_join(&f->b, has_mirror ? 3 : 2, part, d);
}

/* The least multiple of 16 from n on that has no primes but 2, 3 and 5. */
static int64_t next_smooth(int64_t n)
{
	for (n = (n + 15) / 16 * 16;; n += 16) {
		int64_t rest = n;

		for (int64_t p = 2; p <= 5; p++)
			while (rest % p == 0)
				rest /= p;
		if (rest == 1)
			return n;
	}
}

/*
 * Any length as a convolution with exp(-pi i k k / n), or pi i, in transforms of quick lengths. The
 * filter, which is the same for all lines, is transformed in double numbers, as its errors are
 * all lines'.
 */
static struct tc_value *by_chirp(const struct fft *f, struct tc_value *x, unsigned d, double scale)
{
	struct fft forth = *f, back = *f, exact = *f;
	int64_t n = x->type->dim[d], wide = next_smooth(2 * n - 1), own = d;
	struct tc_value *chirp, *filter;
	double *up = pairs(f, n);

	forth.is_inverse = false;
	back.is_inverse = true;
	exact.elem = ELEM_C128;
	/* Squares are far from overflow: `up` would not fit any memory before. */
	for (int64_t i = 0; i < n; i++)
		root(f, i * i % (2 * n), 2 * n, up + 2 * i);
	filter = tc_build_conjugate(&f->b, data(&exact, 1, &n, up));
	filter = widened(&exact, filter, 0, wide, true);
	exact.is_inverse = false;
	filter = tc_build_convert(&f->b, along(&exact, TC_FFT_FFT, filter, 0, wide,
						  scale / (double)wide), f->elem);
	chirp = data(f, 1, &n, up);
	x = widened(f, times(f, x, chirp, &own), d, wide, false);
	x = along(&forth, TC_FFT_FFT, x, d, wide, 1);
	x = along(&back, TC_FFT_IFFT, times(f, x, filter, &own), d, wide, 1);
	return times(f, tc_build_part(&f->b, x, d, 0, n), chirp, &own);
}

static struct tc_value *complex_of(const struct fft *f, struct tc_value *re, struct tc_value *im)
{
	struct tc_value *part[] = { re, im };

	return tc_build(&f->b, TC_COMPLEX, tc_with_elem(f->b.c, re->type, f->elem), 2, part);
}

/* The ends of a real signal's spectrum are real, whatever their imaginary parts hold; of an odd
 * number of points the second one is none. */
static struct tc_value *with_real_ends(const struct fft *f, struct tc_value *x, unsigned d,
				       int64_t n)
{
	struct tc_value *re = tc_build_real(&f->b, x), *zero = tc_build_number(&f->b, re->type, 0);
	struct tc_value *im = tc_build(&f->b, TC_IMAG, re->type, 1, &x), *at, *is_end;
	const struct tc_type *t = tc_with_elem(f->b.c, re->type, ELEM_S32);
	double end = n % 2 ? 0 : (double)(n / 2);

	at = tc_build_iota(&f->b, t, d);
	is_end = tc_build2(&f->b, TC_OR,
			   tc_build_compare(&f->b, TC_CMP_EQ, at, tc_build_number(&f->b, t, 0)),
			   tc_build_compare(&f->b, TC_CMP_EQ, at, tc_build_number(&f->b, t, end)));
	return complex_of(f, re, tc_build_select(&f->b, is_end, zero, im));
}

/* The second half of a real signal's spectrum mirrors the first. */
static struct tc_value *mirror(const struct fft *f, struct tc_value *x, unsigned d, int64_t n)
{
	struct tc_value *part[2];

	part[0] = x = with_real_ends(f, x, d, n);
	part[1] = reversed(f, tc_build_part(&f->b, x, d, 1, n - (n / 2 + 1)), d);
	part[1] = tc_build_conjugate(&f->b, part[1]);
	return tc_build_join(&f->b, 2, part, d);
}

static int64_t largest_prime(int64_t n)
{
	for (int64_t p = 2; p * p <= n; p++)
		while (n % p == 0 && n > p)
			n /= p;
	return n;
}

/*
 * Of complex numbers. Of a long dim a chirp goes along its largest prime factor, of which there are
 * many short lines then; along all of it, if that is short or there are but a few lines.
 */
static struct tc_value *in_parts(const struct fft *f, struct tc_value *x, unsigned d, double scale)
{
	int64_t n = x->type->dim[d], p = largest_prime(n);

	if (p <= ISA_MAX_FFT_PRIME)
		return in_two(f, x, d, middle(n), scale);
	if (n < LONG_CHIRP || n / p < LEAST_LINES)
		return by_chirp(f, x, d, scale);
	return in_two(f, x, d, p, scale);
}

/* Of a length that no instruction has. Real numbers go as complex ones. */
static struct tc_value *in_steps(const struct fft *f, int64_t kind, struct tc_value *x, unsigned d,
				 int64_t n, double scale)
{
	if (kind == TC_FFT_RFFT)
		x = complex_of(f, x, tc_build_number(&f->b, x->type, 0));
	if (kind == TC_FFT_IRFFT)
		x = mirror(f, x, d, n);
	x = in_parts(f, x, d, scale);
	if (kind == TC_FFT_RFFT)
		x = tc_build_part(&f->b, x, d, 0, n / 2 + 1);
	return kind == TC_FFT_IRFFT ? tc_build_real(&f->b, x) : x;
}

/* Along dim d: n points, times `scale`. */
static struct tc_value *along(const struct fft *f, int64_t kind, struct tc_value *x, unsigned d,
			      int64_t n, double scale)
{
	const struct tc_type *t = x->type;
	int64_t dim[TC_MAX_RANK], flat[3] = { 0, t->dim[d], 0 };

	if (t->rank > ISA_MAX_RANK) {
		around(t, d, &flat[0], &flat[2]);
		memcpy(dim, t->dim, t->rank * sizeof(*dim));
		x = along(f, kind, tc_build_reshape(&f->b, x, 3, flat), 1, n, scale);
		dim[d] = x->type->dim[1];
		return tc_build_reshape(&f->b, x, t->rank, dim);
	}
	return (isa_fft_fits(n) ? at_once : in_steps)(f, kind, x, d, n, scale);
}

void tc_decompose_fft(struct tc_ctx *c, struct tc_op *op)
{
	const struct tc_type *out = tc_out(op, 0)->type, *in = tc_in(op, 0)->type;
	const struct tc_attr *own = tc_attr(op, "scale");
	int64_t kind = tc_attr_int(op, "fft_type", 0);
	unsigned n, first = tc_fft_first(op);
	const int64_t *length = tc_attr_ints(op, "fft_length", &n);
	struct fft f = { .b = tc_build_at(c, op) };
	struct tc_value *x = tc_in(op, 0);
	double scale = 1;

	if (own && out->count && in->count && in->rank <= ISA_MAX_RANK && isa_fft_fits(length[0]))
		return;
	f.elem = in->elem == ELEM_F32 || in->elem == ELEM_C64 ? ELEM_C64 : ELEM_C128;
	f.is_inverse = kind == TC_FFT_IFFT || kind == TC_FFT_IRFFT;
	for (unsigned i = 0; i < n && f.is_inverse; i++)
		scale *= (double)length[i];
	scale = 1 / scale;
	if (own)
		memcpy(&scale, own->data, sizeof(scale));
	if (!out->count || !in->count)
		x = tc_build_number(&f.b, out, 0);
	for (unsigned i = 0; i < n && out->count && in->count; i++) {
		/* What is real has only half of its last dim. */
		unsigned k = kind == TC_FFT_IRFFT ? i : n - 1 - i;

		x = along(&f, k == n - 1 ? kind : complex_kind(&f), x, first + k, length[k],
			  i ? 1 : scale);
	}
	tc_replace(op, x);
}
