/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fourier transforms as products with small matrices of roots of unity: the matrix unit
 * is what the device is good at.
 *
 * A transform of n = p * q elements x[j p + ..] is p-point transforms of the columns of a
 * [p, q] matrix, a multiplication by twiddle factors, and q-point transforms of its rows
 * (Cooley and Tukey, 1965). Factors of at most WIDE are one product.
 */
#include <math.h>

#include "runtime/compiler/opt/build.h"

enum { WIDE = 64, MOST = 4096 };	/* MOST: of a prime factor */

struct fft {
	struct tc_build b;
	struct tc_op *op;
	enum elem elem;		/* C64 or C128 */
	double sign;		/* of the exponent */
};

/* exp(sign 2 pi i r c / n) for r < rows, c < cols. */
static struct tc_value *roots(const struct fft *f, int64_t n, int64_t rows, int64_t cols)
{
	const int64_t dim[] = { rows, cols };
	const struct tc_type *t = tc_tensor(f->b.c, f->elem, 2, dim);
	double *wide = arena_array(&f->b.c->arena, (size_t)(rows * cols), 2 * sizeof(*wide));
	float *narrow = (float *)wide;

	for (int64_t i = 0; i < rows * cols; i++) {
		/* The product is reduced first: large angles lose digits. */
		int64_t turn = (i / cols) * (i % cols) % n;
		double angle = f->sign * 2 * M_PI * (double)turn / (double)n;
		double re = cos(angle), im = sin(angle);

		if (f->elem == ELEM_C64) {
			narrow[2 * i] = (float)re;
			narrow[2 * i + 1] = (float)im;
		} else {
			wide[2 * i] = re;
			wide[2 * i + 1] = im;
		}
	}
	return tc_build_data(&f->b, t, wide);
}

/* The largest factor of n that is one product; n itself if it has none. */
static int64_t factor_of(int64_t n)
{
	if (n <= WIDE)
		return n;
	for (int64_t p = WIDE; p > 1; p--)
		if (n % p == 0)
			return p;
	for (int64_t p = WIDE + 1; p * p <= n; p++)
		if (n % p == 0)
			return p;
	return n;
}

/* x is [count, n]; so is the result. */
static struct tc_value *transform(const struct fft *f, struct tc_value *x, int64_t n)
{
	int64_t count = x->type->dim[0], p = factor_of(n), q = n / p;
	const int64_t split[] = { count, p, q }, rows[] = { count * p, q };
	const int64_t back[] = { count, p, q }, whole[] = { count, n };
	const int64_t turn[] = { 0, 2, 1 };
	struct tc_value *twiddle;

	if (p > MOST)
		tc_fail(f->b.c, ERR_UNIMPLEMENTED, f->op, "a transform of %lld elements has the "
			"prime factor %lld; factors up to %d run: pad the array",
			(long long)n, (long long)p, MOST);
	if (q == 1)
		return tc_build_dot(&f->b, x, roots(f, n, n, n), 0, 1, 0);
	/* [count, p, q] to [count, q, p]: column transforms leave their dim last. */
	x = tc_build_reshape(&f->b, x, 3, split);
	x = tc_build_dot(&f->b, x, roots(f, p, p, p), 0, 1, 0);
	twiddle = roots(f, n, q, p);
	twiddle = tc_build_broadcast(&f->b, twiddle, x->type, (const int64_t[]){ 1, 2 });
	x = tc_build2(&f->b, TC_MULTIPLY, x, twiddle);
	x = tc_build_transpose(&f->b, x, turn);
	x = transform(f, tc_build_reshape(&f->b, x, 2, rows), q);
	x = tc_build_reshape(&f->b, x, 3, back);
	x = tc_build_transpose(&f->b, x, turn);
	return tc_build_reshape(&f->b, x, 2, whole);
}

/* Along dim d. */
static struct tc_value *along(const struct fft *f, struct tc_value *x, unsigned d)
{
	const struct tc_type *t = x->type;
	unsigned last = t->rank - 1;
	int64_t swap[TC_MAX_RANK], flat[2] = { t->count / (t->dim[d] ? t->dim[d] : 1), t->dim[d] };
	const struct tc_type *turned;

	for (unsigned i = 0; i < t->rank; i++)
		swap[i] = i;
	swap[d] = last;
	swap[last] = d;
	if (d != last)
		x = tc_build_transpose(&f->b, x, swap);
	turned = x->type;
	x = transform(f, tc_build_reshape(&f->b, x, 2, flat), flat[1]);
	x = tc_build_reshape(&f->b, x, turned->rank, turned->dim);
	return d != last ? tc_build_transpose(&f->b, x, swap) : x;
}

/* The second half of a real signal's spectrum mirrors the first. */
static struct tc_value *mirror(const struct fft *f, struct tc_value *x, int64_t n)
{
	const struct tc_type *t = x->type;
	int64_t m = n / 2 + 1, last = t->rank - 1;
	struct tc_value *part[2] = { x };

	if (n <= 2)
		return x;
	part[1] = tc_build_part(&f->b, x, (unsigned)last, 1, n - m);
	part[1] = tc_build1(&f->b, TC_REVERSE, tc_build_conjugate(&f->b, part[1]));
	tc_set_ints(f->b.c, part[1]->def, "dimensions", &last, 1);
	return tc_build_join(&f->b, 2, part, (unsigned)last);
}

void tc_decompose_fft(struct tc_ctx *c, struct tc_op *op)
{
	int64_t kind = tc_attr_int(op, "fft_type", 0);
	bool inverse = kind == TC_FFT_IFFT || kind == TC_FFT_IRFFT;
	struct fft f = { .b = tc_build_at(c, op), .op = op, .sign = inverse ? 1 : -1 };
	struct tc_value *x = tc_in(op, 0), *part[2];
	const struct tc_type *out = tc_out(op, 0)->type, *in = x->type;
	unsigned n, rank = in->rank;
	const int64_t *length = tc_attr_ints(op, "fft_length", &n);
	double size = 1;

	f.elem = in->elem == ELEM_F32 || in->elem == ELEM_C64 ? ELEM_C64 : ELEM_C128;
	for (unsigned i = 0; i < n; i++)
		size *= (double)length[i];
	if (!out->count || !in->count) {
		x = tc_build_number(&f.b, out, 0);
	} else {
		if (kind == TC_FFT_RFFT) {
			part[0] = x;
			part[1] = tc_build_number(&f.b, in, 0);
			x = tc_build(&f.b, TC_COMPLEX, tc_with_elem(c, in, f.elem), 2, part);
			x = along(&f, x, rank - 1);
			x = tc_build_part(&f.b, x, rank - 1, 0, length[n - 1] / 2 + 1);
		} else if (kind != TC_FFT_IRFFT) {
			x = along(&f, x, rank - 1);
		}
		for (unsigned i = 1; i < n; i++)
			x = along(&f, x, rank - 1 - i);
		if (kind == TC_FFT_IRFFT) {
			x = along(&f, mirror(&f, x, length[n - 1]), rank - 1);
			x = tc_build(&f.b, TC_REAL, out, 1, &x);
		}
		if (inverse)
			x = tc_build2(&f.b, TC_MULTIPLY, x,
				      tc_build_number(&f.b, x->type, 1 / size));
	}
	tc_replace_uses(tc_out(op, 0), x);
	tc_erase(op);
}
