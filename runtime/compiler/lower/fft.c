/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fourier transforms in steps of few points: by factors of up to 8 in the vector unit, by
 * others in the matrix unit, as products with small matrices of roots of unity.
 *
 * A transform of n = p * q elements is p-point transforms of the columns of a [p, q] matrix,
 * a multiplication by twiddle factors, and q-point transforms of its rows (Cooley and Tukey,
 * 1965). What the columns gave goes behind what is still to be done, so that all ends in order
 * without a transposition (Stockham; Cochran and others, "What is the fast Fourier
 * transform?", 1967), and dims behind the one transformed go along in the same way.
 *
 * A product's twiddle factors come after it, in its epilogue; a butterfly's before it, so that
 * its last additions write what they have where it belongs.
 */
#include <math.h>
#include <string.h>

#include "runtime/compiler/lower/decompose.h"

/* Costs are in twentieths of a ns for each point, about. */
enum {
	WIDE = 64,	/* the largest factor of a product, if not a prime */
	PASS = 40,	/* a product, beside a point of its factor */
	LINE = 32,	/* columns of a product: fewer cost as much */
	MOST = 512,	/* of a prime factor: longer ones go by convolution */
	WINGS = 8,	/* points of a butterfly, at most: outputs of an instruction */
	EVEN = 12,	/* a butterfly of 2, 4 or 8 points, beside 1 for each of them */
	ODD = 5,	/* each point of another one */
	BLOCK = 1 << 17,	/* bytes of transforms that are made at a time, */
	LARGE = 1 << 19,	/* or of one, or of parts of what goes along; */
	ENOUGH = 1 << 21,	/* where there are so many in all, */
	NARROW = 128,		/* and so many beside each other */
	START = 20000,	/* an instruction, for all points together */
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

/* The factors of a length, those of butterflies last, and what transforms of that length cost. */
struct factors {
	int64_t p[64], cost;
	unsigned n, n_products;
};

/* What a product by factor p costs behind s elements that go along. */
static int64_t cost_of(int64_t p, int64_t s, int64_t start)
{
	int64_t cols = s == 1 ? p : s;

	return start + PASS + (cols < LINE ? p * LINE / cols : p);
}

/* Factors of `rest`, the largest first, after those of `sofar`, which s elements go along with. */
static void find_factors(int64_t rest, int64_t s, int64_t start, const struct factors *sofar,
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
		f.n = f.n_products = sofar->n + 1;
		f.cost = sofar->cost + cost_of(p, s, start);
		find_factors(rest / p, s * p, start, &f, best);
	}
}

/* Appends factors of butterflies until none is left in `rest`, which is returned. Of powers of two
 * two fours are cheaper than an eight and a two. */
static int64_t add_butterflies(struct factors *f, int64_t rest, int64_t start)
{
	for (int64_t p = WINGS; p > 1; p--) {
		if (p == 6)
			continue;	/* by 3 and 2 */
		for (; rest % p == 0 && (p < 8 || rest % 32 != 16); rest /= p) {
			f->p[f->n++] = p;
			f->cost += start + (p % 2 ? ODD * p : EVEN + p);
		}
	}
	return rest;
}

/* Of n of `count` elements, with s behind each. Without factors, if n has a prime beyond MOST. */
static struct factors factors_of(int64_t n, int64_t s, int64_t count)
{
	struct factors large = { .n = 0 }, best = { .cost = INT64_MAX }, few = best;
	struct factors some = { .n = 0 };
	int64_t rest = n, start = START / count;

	for (int64_t p = 2; p <= MOST; p++)
		for (; rest % p == 0; rest /= p)
			if (p > WIDE) {
				large.p[large.n++] = p;
				n /= p;
				s *= p;
			}
	if (rest > 1)
		return (struct factors){ .n = 0 };
	large.n_products = large.n;
	find_factors(n, s, start, &large, &best);
	rest = add_butterflies(&some, n, start);
	find_factors(rest, s, start, &large, &few);
	if (few.cost + some.cost >= best.cost)
		return best;
	memcpy(few.p + few.n, some.p, some.n * sizeof(*some.p));
	few.n += some.n;
	return few;
}

/* A factor of x as [count, p, q, s] by a product; the result is [count, q, p, s], twiddled if
 * that is wanted, or without s if that is 1. */
static struct tc_value *multiply(const struct fft *f, struct tc_value *x, int64_t p, int64_t q,
				 int64_t s, bool is_twiddled)
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
	if (!is_twiddled)
		return x;
	twiddle = tc_build_broadcast(&f->b, roots(f, p * q, q, p), x->type, own);
	return tc_build2(&f->b, TC_MULTIPLY, x, twiddle);
}

static struct tc_value *times_number(const struct fft *f, struct tc_value *x, double re, double im)
{
	double wide[] = { re, im };

	return tc_build2(&f->b, TC_MULTIPLY, x,
			 tc_build_broadcast(&f->b, data(f, 0, NULL, wide), x->type, NULL));
}

/*
 * The p-point transform of x[0], x[1], ..., in their place, p odd. Elements k and p - k come to
 * both ends of the result alike: their sum with the real part of a root, their difference with
 * its imaginary part.
 */
static void transform_odd(const struct fft *f, struct tc_value **x, int64_t p)
{
	struct tc_value *sum[WINGS / 2], *apart[WINGS / 2], *all = x[0], *first = x[0];
	double w[2];

	for (int64_t k = 1; k <= p / 2; k++) {
		sum[k] = tc_build2(&f->b, TC_ADD, x[k], x[p - k]);
		apart[k] = tc_build2(&f->b, TC_SUBTRACT, x[k], x[p - k]);
		all = tc_build2(&f->b, TC_ADD, all, sum[k]);
	}
	x[0] = all;
	for (int64_t i = 1; i <= p / 2; i++) {
		struct tc_value *even = first, *odd = NULL;

		for (int64_t k = 1; k <= p / 2; k++) {
			struct tc_value *y;

			root(f, i * k % p, p, w);
			even = tc_build2(&f->b, TC_ADD, even, times_number(f, sum[k], w[0], 0));
			y = times_number(f, apart[k], 0, w[1]);
			odd = odd ? tc_build2(&f->b, TC_ADD, odd, y) : y;
		}
		x[i] = tc_build2(&f->b, TC_ADD, even, odd);
		x[p - i] = tc_build2(&f->b, TC_SUBTRACT, even, odd);
	}
}

/* The p-point transform of x[0], x[1], ..., in their place: p is odd or a power of two. */
static void transform_few(const struct fft *f, struct tc_value **x, int64_t p)
{
	struct tc_value *half[2][WINGS / 2];
	double w[2];

	if (p % 2) {
		transform_odd(f, x, p);
		return;
	}
	for (int64_t i = 0; i < p; i++)
		half[i % 2][i / 2] = x[i];
	transform_few(f, half[0], p / 2);
	transform_few(f, half[1], p / 2);
	for (int64_t i = 0; i < p / 2; i++) {
		struct tc_value *y = half[1][i];

		root(f, i, p, w);
		if (i)
			y = times_number(f, y, w[0], w[1]);
		x[i] = tc_build2(&f->b, TC_ADD, half[0][i], y);
		x[i + p / 2] = tc_build2(&f->b, TC_SUBTRACT, half[0][i], y);
	}
}

/* A factor of x as [count, p, q, done, s] by butterflies, where transforms of `done` elements
 * are done; the result is [count, q, p, done, s]. One instruction makes it. */
static struct tc_value *flutter(const struct fft *f, struct tc_value *x, int64_t p, int64_t q,
				int64_t done, int64_t s)
{
	int64_t count = x->type->count / (p * q * done * s), own = 2;
	const int64_t split[] = { count, p, q, done, s }, part[] = { count, q, done, s };
	const int64_t behind[] = { count, q, 1, done, s };
	struct tc_value *y[WINGS];
	double *wide = pairs(f, done);

	x = tc_build_reshape(&f->b, x, 5, split);
	for (int64_t i = 0; i < p; i++) {
		y[i] = tc_build_reshape(&f->b, tc_build_part(&f->b, x, 1, i, 1), 4, part);
		for (int64_t k = 0; k < done; k++)
			root(f, i * k, p * done, wide + 2 * k);
		if (i && done > 1)
			y[i] = tc_build2(&f->b, TC_MULTIPLY, y[i],
					 tc_build_broadcast(&f->b, data(f, 1, &done, wide),
							    y[i]->type, &own));
	}
	transform_few(f, y, p);
	for (int64_t i = 0; i < p; i++)
		y[i] = tc_build_reshape(&f->b, y[i], 5, behind);
	return tc_build_join(&f->b, (unsigned)p, y, 2);
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

/* Along dim 1 of [count, n, s], by factors. */
static struct tc_value *by_factors(const struct fft *f, struct tc_value *x,
				   const struct factors *factors)
{
	const struct tc_type *t = x->type;
	int64_t q = t->dim[1], s = t->dim[2], done = 1;

	for (unsigned i = 0; i < factors->n; i++) {
		int64_t p = factors->p[i];

		q /= p;
		if (i >= factors->n_products) {
			x = flutter(f, x, p, q, done, s);
			done *= p;
			continue;
		}
		/* The last product is the butterflies' first step, which needs no twiddles. */
		if (i + 1 == factors->n_products) {
			x = multiply(f, x, p, q, s, false);
			done = p;
		} else {
			x = multiply(f, x, p, q, s, true);
			s *= p;
		}
	}
	return tc_build_reshape(&f->b, x, t->rank, t->dim);
}

/*
 * ---- blocks ----
 *
 * Each step walks all of the array, so what is large is transformed in blocks that stay in a
 * cache from step to step: of some transforms, or of some of the elements that go along.
 */
struct blocks {
	const struct fft *f;
	const struct factors *factors;
	int64_t dim[3];		/* of a block */
	int64_t across;		/* blocks along dim 2 */
};

/* Sizes of the blocks of [count, n, s], even ones; false if it had better stay whole. */
static bool cut(const struct fft *f, const struct tc_type *t, const struct factors *factors,
		struct blocks *b)
{
	int64_t each = elem_bytes(f->elem), row = t->dim[1] * t->dim[2], most = BLOCK / each;
	int64_t n;

	if (row > most && row * each <= LARGE)
		most = row;
	*b = (struct blocks){ .f = f, .factors = factors, .across = 1,
			      .dim = { 1, t->dim[1], t->dim[2] } };
	if (t->bytes < ENOUGH || factors->n < 3)
		return false;
	if (row <= most) {
		n = (t->dim[0] - 1) / (most / row) + 1;
		b->dim[0] = (t->dim[0] - 1) / n + 1;
		return true;
	}
	n = (row * each - 1) / LARGE + 1;
	b->dim[2] = (t->dim[2] - 1) / n + 1;
	b->across = t->dim[2] / b->dim[2];
	return b->dim[2] * each >= NARROW;
}

static struct tc_value *index_of(const struct tc_build *b, double x)
{
	return tc_build_number(b, tc_tensor(b->c, ELEM_S32, 0, NULL), x);
}

/* Transforms the block of x at at[1], at[2] and at[3], in its place. */
static struct tc_value *transform_block(const struct fft *f, const struct blocks *b,
					const int64_t *dim, struct tc_value **at,
					struct tc_value *x)
{
	const struct tc_type *t = tc_tensor(f->b.c, f->elem, 3, dim);
	struct tc_value *put[5] = { x };

	at[0] = x;
	put[1] = tc_build(&f->b, TC_DYNAMIC_SLICE, t, 4, at);
	tc_set_ints(f->b.c, put[1]->def, "slice_sizes", dim, 3);
	put[1] = by_factors(f, put[1], b->factors);
	memcpy(put + 2, at + 1, 3 * sizeof(*put));
	return tc_build(&f->b, TC_DYNAMIC_UPDATE_SLICE, x->type, 5, put);
}

static void transform_next(const struct tc_build *build, struct tc_value *i,
			   struct tc_value **state, void *arg)
{
	const struct blocks *b = arg;
	struct fft f = *b->f;
	struct tc_value *across = index_of(build, (double)b->across), *at[4];

	f.b = *build;
	at[1] = b->across > 1 ? tc_build2(build, TC_DIVIDE, i, across) : i;
	at[1] = tc_build2(build, TC_MULTIPLY, at[1], index_of(build, (double)b->dim[0]));
	at[2] = index_of(build, 0);
	at[3] = b->across > 1 ? tc_build2(build, TC_REMAINDER, i, across) : at[2];
	at[3] = tc_build2(build, TC_MULTIPLY, at[3], index_of(build, (double)b->dim[2]));
	state[0] = transform_block(&f, b, b->dim, at, state[0]);
}

static struct tc_value *by_blocks(const struct fft *f, struct tc_value *x, struct blocks *b)
{
	const struct tc_type *t = x->type;
	int64_t rows = t->dim[0] / b->dim[0] * b->dim[0], cols = b->across * b->dim[2];
	struct tc_loop loop = { .n = t->dim[0] / b->dim[0] * b->across, .body = transform_next,
				.arg = b };
	const int64_t below[] = { t->dim[0] - rows, t->dim[1], t->dim[2] };
	const int64_t beside[] = { t->dim[0], t->dim[1], t->dim[2] - cols };
	struct tc_value *at[4], *zero = index_of(&f->b, 0);

	tc_build_loop(&f->b, &loop, 1, &x);
	at[1] = index_of(&f->b, (double)rows);
	at[2] = at[3] = zero;
	if (below[0])
		x = transform_block(f, b, below, at, x);
	at[1] = zero;
	at[3] = index_of(&f->b, (double)cols);
	if (beside[2])
		x = transform_block(f, b, beside, at, x);
	return x;
}

/* Along dim d. */
static struct tc_value *along(const struct fft *f, struct tc_value *x, unsigned d)
{
	const struct tc_type *t = x->type;
	int64_t dim[3] = { 1, t->dim[d], 1 };
	struct factors factors;
	struct blocks blocks;

	for (unsigned i = 0; i < t->rank; i++)
		if (i != d)
			dim[i < d ? 0 : 2] *= t->dim[i];
	factors = factors_of(dim[1], dim[2], t->count);
	if (dim[1] > 1 && !factors.n)
		return by_chirp(f, x, d);
	x = tc_build_reshape(&f->b, x, 3, dim);
	x = cut(f, x->type, &factors, &blocks) ? by_blocks(f, x, &blocks) :
						 by_factors(f, x, &factors);
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

static struct tc_value *to_real(const struct fft *f, struct tc_value *x, int64_t n)
{
	unsigned last = x->type->rank - 1u;
	int64_t dim[TC_MAX_RANK];

	if (!has_pairs(n, x->type->rank))
		return tc_build_real(&f->b, along(f, mirror(f, x, n), last));
	x = with_real_ends(f, x);
	x = untangle(f, tc_build_part(&f->b, x, last, 0, n / 2),
		     tc_build_part(&f->b, x, last, 1, n / 2), n, 1);
	x = along(f, x, last);
	memcpy(dim, x->type->dim, (last + 1) * sizeof(*dim));
	dim[last + 1] = 2;
	x = tc_build(&f->b, TC_BITCAST_CONVERT, tc_tensor(f->b.c, tc_real_of(f->elem), last + 2,
							  dim), 1, &x);
	dim[last] = n;
	return tc_build_reshape(&f->b, x, last + 1, dim);
}

/* Many signals, some at a time: rows of an array, and of what they become. */
struct signals {
	const struct fft *f;
	struct tc_value *(*transform)(const struct fft *f, struct tc_value *x, int64_t n);
	int64_t n, at_a_time;
};

/* Signals first .. first + some of x become those of `to`. */
static struct tc_value *transform_some(const struct fft *f, const struct signals *s,
				       struct tc_value *x, struct tc_value *first, int64_t some,
				       struct tc_value *to)
{
	return tc_build_put(&f->b, to, 0, first,
			    s->transform(f, tc_build_take(&f->b, x, 0, first, some), s->n));
}

static void transform_more(const struct tc_build *b, struct tc_value *i, struct tc_value **state,
			   void *arg)
{
	const struct signals *s = arg;
	struct fft f = *s->f;

	f.b = *b;
	i = tc_build2(b, TC_MULTIPLY, i, index_of(b, (double)s->at_a_time));
	state[1] = transform_some(&f, s, state[0], i, s->at_a_time, state[1]);
}

/* from_real() or to_real(), whose result has the given elements and length. */
static struct tc_value *by_signals(const struct fft *f, struct tc_value *x, struct signals *s,
				   enum elem elem, int64_t length)
{
	const struct tc_type *t = x->type;
	int64_t dim[TC_MAX_RANK], flat[] = { t->count / t->dim[t->rank - 1],
					     t->dim[t->rank - 1] };
	int64_t row = t->bytes / flat[0];
	struct tc_loop loop = { .body = transform_more, .arg = s };
	struct tc_value *state[2];

	if (t->bytes < ENOUGH || row > BLOCK)
		return s->transform(f, x, s->n);
	s->at_a_time = BLOCK / row;
	loop.n = flat[0] / s->at_a_time;
	state[0] = tc_build_reshape(&f->b, x, 2, flat);
	memcpy(dim, t->dim, t->rank * sizeof(*dim));
	dim[t->rank - 1] = flat[1] = length;
	state[1] = tc_build_number(&f->b, tc_tensor(f->b.c, elem, 2, flat), 0);
	tc_build_loop(&f->b, &loop, 2, state);
	if (flat[0] % s->at_a_time)
		state[1] = transform_some(f, s, state[0],
					  index_of(&f->b, (double)(loop.n * s->at_a_time)),
					  flat[0] % s->at_a_time, state[1]);
	return tc_build_reshape(&f->b, state[1], t->rank, dim);
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
	struct signals signals = { .f = &f, .n = n ? length[n - 1] : 0, .transform =
				   kind == TC_FFT_RFFT ? from_real : to_real };
	double size = 1;

	f.elem = in->elem == ELEM_F32 || in->elem == ELEM_C64 ? ELEM_C64 : ELEM_C128;
	for (unsigned i = 0; i < n; i++)
		size *= (double)length[i];
	if (!out->count || !in->count) {
		x = tc_build_number(&f.b, out, 0);
	} else {
		if (kind == TC_FFT_RFFT)
			x = by_signals(&f, x, &signals, f.elem, length[n - 1] / 2 + 1);
		else if (kind != TC_FFT_IRFFT)
			x = along(&f, x, rank - 1);
		for (unsigned i = 1; i < n; i++)
			x = along(&f, x, rank - 1 - i);
		if (kind == TC_FFT_IRFFT)
			x = by_signals(&f, x, &signals, (enum elem)out->elem, length[n - 1]);
		if (inverse)
			x = tc_build2(&f.b, TC_MULTIPLY, x,
				      tc_build_number(&f.b, x->type, 1 / size));
	}
	tc_replace_uses(tc_out(op, 0), x);
	tc_erase(op);
}
