/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fourier transforms as products with small matrices of roots of unity: the matrix unit
 * is what the device is good at.
 *
 * A transform of n = p * q elements is p-point transforms of the columns of a [p, q] matrix,
 * a multiplication by twiddle factors, and q-point transforms of its rows (Cooley and Tukey,
 * 1965). What the columns gave goes behind what is still to be done, so that all ends in order
 * without a transposition (Stockham; Cochran and others, "What is the fast Fourier
 * transform?", 1967), and dims behind the one transformed go along in the same way.
 */
#include <math.h>
#include <string.h>

#include "runtime/compiler/lower/decompose.h"

enum {
	WIDE = 64,	/* the largest factor, if not a prime */
	PASS = 40,	/* what going through memory once more costs, in points of a factor */
	LINE = 32,	/* columns of a product: fewer cost as much */
	MOST = 512,	/* of a prime factor: longer ones go by convolution */
};

struct fft {
	struct tc_build b;
	struct tc_op *op;
	enum elem elem;		/* C64 or C128 */
	double sign;		/* of the exponent */
};

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

/* exp(sign 2 pi i turn / n); quarters of a turn are exact. */
static void root(const struct fft *f, int64_t turn, int64_t n, double *to)
{
	static const int quarter[] = { 1, 0, -1, 0, 1 };
	double angle = 2 * M_PI * (double)turn / (double)n;
	bool is_exact = 4 * turn % n == 0;

	to[0] = is_exact ? quarter[4 * turn / n] : cos(angle);
	to[1] = f->sign * (is_exact ? quarter[(4 * turn / n + 3) % 4] : sin(angle));
}

/* exp(sign 2 pi i r c / n) for r < rows, c < cols. */
static struct tc_value *roots(const struct fft *f, int64_t n, int64_t rows, int64_t cols)
{
	const int64_t dim[] = { rows, cols };
	double *wide = pairs(f, rows * cols);

	/* The product is reduced first: large angles lose digits. */
	for (int64_t i = 0; i < rows * cols; i++)
		root(f, (i / cols) * (i % cols) % n, n, wide + 2 * i);
	return data(f, 2, dim, wide);
}

/* The factors of a length, and what transforms of that length cost. */
struct factors {
	int64_t p[64], cost;
	unsigned n;
};

/* What a step by factor p costs behind s elements that go along (step()). */
static int64_t cost_of(int64_t p, int64_t s)
{
	int64_t cols = s == 1 ? p : s;

	return PASS + (cols < LINE ? p * LINE / cols : p);
}

/* Factors of `rest`, the largest first, after those of `sofar`, which s elements go along with. */
static void find_factors(int64_t rest, int64_t s, const struct factors *sofar,
			 struct factors *best)
{
	int64_t most = sofar->n && sofar->p[sofar->n - 1] < WIDE ? sofar->p[sofar->n - 1] : WIDE;
	struct factors f = *sofar;

	if (sofar->cost >= best->cost)
		return;
	if (rest == 1)
		*best = *sofar;
	for (int64_t p = rest < most ? rest : most; p > 1; p--) {
		if (rest % p)
			continue;
		f.p[sofar->n] = p;
		f.n = sofar->n + 1;
		f.cost = sofar->cost + cost_of(p, s);
		find_factors(rest / p, s * p, &f, best);
	}
}

/* Of n elements with s behind each. Without factors, if n has a prime beyond MOST. */
static struct factors factors_of(int64_t n, int64_t s)
{
	struct factors large = { .n = 0 }, best = { .cost = INT64_MAX };
	int64_t rest = n;

	for (int64_t p = 2; p <= MOST; p++)
		for (; rest % p == 0; rest /= p)
			if (p > WIDE) {
				large.p[large.n++] = p;
				n /= p;
				s *= p;
			}
	if (rest > 1)
		return (struct factors){ .n = 0 };
	find_factors(n, s, &large, &best);
	return best;
}

/* One factor of x as [count, p, q, s]; the result is [count, q, p, s], twiddled, or without s
 * if that is 1. */
static struct tc_value *step(const struct fft *f, struct tc_value *x, int64_t p, int64_t q,
			     int64_t s)
{
	int64_t count = x->type->count / (p * q * s);
	const int64_t split[] = { count, p, q, s }, matrix[] = { count, q, p, p };
	const int64_t first[] = { count, p, p }, own[] = { 1, 2, 3 }, turn[] = { 0, 2, 1, 3 };
	struct tc_value *w = roots(f, p, p, p), *twiddle;
	bool is_first = s == 1;

	x = tc_build_reshape(&f->b, x, is_first ? 3 : 4, split);
	w = tc_build_broadcast(&f->b, w, tc_tensor(f->b.c, f->elem, is_first ? 3 : 4,
						   is_first ? first : matrix), own + !is_first);
	if (is_first)
		x = tc_build_dot(&f->b, x, w, 1, 1, 1);
	else
		x = tc_build_dot(&f->b, w, tc_build_transpose(&f->b, x, turn), 2, 3, 2);
	if (q == 1)
		return x;
	twiddle = tc_build_broadcast(&f->b, roots(f, p * q, q, p), x->type, own);
	return tc_build2(&f->b, TC_MULTIPLY, x, twiddle);
}

static struct tc_value *along(const struct fft *f, struct tc_value *x, unsigned d);

static struct tc_value *times(const struct fft *f, struct tc_value *x, unsigned d,
			      struct tc_value *line)
{
	const int64_t dim = d;

	return tc_build2(&f->b, TC_MULTIPLY, x,
			 tc_build_broadcast(&f->b, line, x->type, &dim));
}

/*
 * Any length as a convolution with a chirp, exp(sign pi i k k / n), in transforms of a power of
 * two elements (Bluestein, "A linear filtering approach to the computation of discrete Fourier
 * transform", 1970).
 */
static struct tc_value *by_chirp(const struct fft *f, struct tc_value *x, unsigned d)
{
	struct fft back = *f;
	int64_t n = x->type->dim[d], wide = 1, dim[TC_MAX_RANK];
	struct tc_value *chirp, *filter, *part[2];
	double *up = pairs(f, n), *down;

	while (wide < 2 * n - 1)
		wide *= 2;
	back.sign = -f->sign;
	down = pairs(f, wide);
	memset(down, 0, (size_t)wide * 2 * sizeof(*down));
	for (int64_t i = 0; i < n; i++) {
		int64_t turn = (int64_t)((uint64_t)i * (uint64_t)i % (uint64_t)(2 * n));

		root(f, turn, 2 * n, up + 2 * i);
		for (unsigned k = 0; k < 2; k++)
			down[2 * i + k] = down[2 * ((wide - i) % wide) + k] =
				(k ? -1 : 1) * up[2 * i + k] / (double)wide;
	}
	chirp = data(f, 1, &n, up);
	filter = along(f, data(f, 1, &wide, down), 0);
	memcpy(dim, x->type->dim, x->type->rank * sizeof(*dim));
	dim[d] = wide - n;
	part[0] = times(f, x, d, chirp);
	part[1] = tc_build_number(&f->b, tc_tensor(f->b.c, f->elem, x->type->rank, dim), 0);
	x = along(f, tc_build_join(&f->b, 2, part, d), d);
	x = along(&back, times(f, x, d, filter), d);
	return times(f, tc_build_part(&f->b, x, d, 0, n), d, chirp);
}

/* Along dim d. */
static struct tc_value *along(const struct fft *f, struct tc_value *x, unsigned d)
{
	const struct tc_type *t = x->type;
	int64_t q = t->dim[d], s = 1;
	struct factors factors;

	for (unsigned i = d + 1; i < t->rank; i++)
		s *= t->dim[i];
	factors = factors_of(q, s);
	if (q > 1 && !factors.n)
		return by_chirp(f, x, d);
	for (unsigned i = 0; i < factors.n; i++) {
		q /= factors.p[i];
		x = step(f, x, factors.p[i], q, s);
		s *= factors.p[i];
	}
	return tc_build_reshape(&f->b, x, t->rank, t->dim);
}

/* First turned around, which is a view: the rest is one instruction with what follows. */
static struct tc_value *conjugate_of_reversed(const struct fft *f, struct tc_value *x)
{
	int64_t last = x->type->rank - 1;

	x = tc_build1(&f->b, TC_REVERSE, x);
	tc_set_ints(f->b.c, x->def, "dimensions", &last, 1);
	return tc_build_conjugate(&f->b, x);
}

/*
 * ---- real signals ----
 *
 * One of n = 2 m elements is one of m complex numbers, of even elements and odd ones. Its
 * spectrum is that of both: with z the other end's conjugate (a row turned around),
 * a (1 + i w^k) / 2 + z (1 - i w^k) / 2, and back the same without the halves.
 */
static struct tc_value *untangle(const struct fft *f, struct tc_value *a, struct tc_value *z,
				 int64_t n, double scale)
{
	int64_t last = a->type->rank - 1, size = a->type->dim[last];
	double *first = pairs(f, size), *second = pairs(f, size), w[2];

	for (int64_t k = 0; k < size; k++) {
		root(f, k, n, w);
		first[2 * k] = scale * (1 - f->sign * w[1]);
		second[2 * k] = scale * (1 + f->sign * w[1]);
		first[2 * k + 1] = scale * f->sign * w[0];
		second[2 * k + 1] = -first[2 * k + 1];
	}
	z = conjugate_of_reversed(f, z);
	a = tc_build2(&f->b, TC_MULTIPLY, a,
		      tc_build_broadcast(&f->b, data(f, 1, &size, first), a->type, &last));
	z = tc_build2(&f->b, TC_MULTIPLY, z,
		      tc_build_broadcast(&f->b, data(f, 1, &size, second), z->type, &last));
	return tc_build2(&f->b, TC_ADD, a, z);
}

static struct tc_value *complex_of(const struct fft *f, struct tc_value *re, struct tc_value *im)
{
	struct tc_value *part[] = { re, im ? im : tc_build_number(&f->b, re->type, 0) };

	return tc_build(&f->b, TC_COMPLEX, tc_with_elem(f->b.c, re->type, f->elem), 2, part);
}

/* Whether pairs of a real signal's n elements may be seen as complex numbers, for which they need
 * a dim of their own. */
static bool has_pairs(int64_t n, unsigned rank)
{
	return n % 2 == 0 && rank < TC_MAX_RANK;
}

static struct tc_value *from_real(const struct fft *f, struct tc_value *x, int64_t n)
{
	unsigned last = x->type->rank - 1u;
	const struct tc_type *t = x->type;
	struct tc_value *part[2];
	int64_t dim[TC_MAX_RANK];

	if (!has_pairs(n, t->rank)) {
		x = along(f, complex_of(f, x, NULL), last);
		return tc_build_part(&f->b, x, last, 0, n / 2 + 1);
	}
	memcpy(dim, t->dim, last * sizeof(*dim));
	dim[last] = n / 2;
	dim[last + 1] = 2;
	x = tc_build_reshape(&f->b, x, last + 2, dim);
	x = tc_build(&f->b, TC_BITCAST_CONVERT, tc_tensor(f->b.c, f->elem, last + 1, dim), 1, &x);
	x = along(f, x, last);
	part[0] = x;
	part[1] = tc_build_part(&f->b, x, last, 0, 1);
	x = tc_build_join(&f->b, 2, part, last);
	return untangle(f, x, x, n, 0.5);
}

/* The second half of a real signal's spectrum mirrors the first. */
static struct tc_value *mirror(const struct fft *f, struct tc_value *x, int64_t n)
{
	int64_t m = n / 2 + 1, last = x->type->rank - 1;
	struct tc_value *part[2] = { x };

	if (n <= 2)
		return x;
	part[1] = tc_build_part(&f->b, x, (unsigned)last, 1, n - m);
	part[1] = conjugate_of_reversed(f, part[1]);
	return tc_build_join(&f->b, 2, part, (unsigned)last);
}

/* The ends of a real signal's spectrum are real, whatever their imaginary parts hold. */
static struct tc_value *with_real_ends(const struct fft *f, struct tc_value *x)
{
	unsigned last = x->type->rank - 1u;
	struct tc_value *re = tc_build_real(&f->b, x), *zero = tc_build_number(&f->b, re->type, 0);
	struct tc_value *im = tc_build(&f->b, TC_IMAG, re->type, 1, &x), *i, *is_end;
	const struct tc_type *t = tc_with_elem(f->b.c, re->type, ELEM_S32);
	double end = (double)(x->type->dim[last] - 1);

	i = tc_build_iota(&f->b, t, last);
	is_end = tc_build2(&f->b, TC_OR,
			   tc_build_compare(&f->b, TC_CMP_EQ, i, tc_build_number(&f->b, t, 0)),
			   tc_build_compare(&f->b, TC_CMP_EQ, i, tc_build_number(&f->b, t, end)));
	return complex_of(f, re, tc_build_select(&f->b, is_end, zero, im));
}

static struct tc_value *to_real(const struct fft *f, struct tc_value *x, int64_t n,
				const struct tc_type *out)
{
	unsigned last = x->type->rank - 1u;
	int64_t dim[TC_MAX_RANK];

	if (!has_pairs(n, x->type->rank)) {
		x = along(f, mirror(f, x, n), last);
		return tc_build(&f->b, TC_REAL, out, 1, &x);
	}
	x = with_real_ends(f, x);
	x = untangle(f, tc_build_part(&f->b, x, last, 0, n / 2),
		     tc_build_part(&f->b, x, last, 1, n / 2), n, 1);
	x = along(f, x, last);
	memcpy(dim, x->type->dim, (last + 1) * sizeof(*dim));
	dim[last + 1] = 2;
	x = tc_build(&f->b, TC_BITCAST_CONVERT, tc_tensor(f->b.c, (enum elem)out->elem, last + 2,
							  dim), 1, &x);
	return tc_build_reshape(&f->b, x, out->rank, out->dim);
}

void tc_decompose_fft(struct tc_ctx *c, struct tc_op *op)
{
	int64_t kind = tc_attr_int(op, "fft_type", 0);
	bool inverse = kind == TC_FFT_IFFT || kind == TC_FFT_IRFFT;
	struct fft f = { .b = tc_build_at(c, op), .op = op, .sign = inverse ? 1 : -1 };
	struct tc_value *x = tc_in(op, 0);
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
		if (kind == TC_FFT_RFFT)
			x = from_real(&f, x, length[n - 1]);
		else if (kind != TC_FFT_IRFFT)
			x = along(&f, x, rank - 1);
		for (unsigned i = 1; i < n; i++)
			x = along(&f, x, rank - 1 - i);
		if (kind == TC_FFT_IRFFT)
			x = to_real(&f, x, length[n - 1], out);
		if (inverse)
			x = tc_build2(&f.b, TC_MULTIPLY, x,
				      tc_build_number(&f.b, x->type, 1 / size));
	}
	tc_replace_uses(tc_out(op, 0), x);
	tc_erase(op);
}
