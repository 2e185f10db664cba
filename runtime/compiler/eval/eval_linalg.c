/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fft, cholesky, triangular_solve and LU of the reference evaluator, by definition: sums of
 * n terms, and the textbook's loops over a matrix. Shapes of matrices are checked here.
 */
#include <complex.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "runtime/compiler/eval/eval.h"

/* ---- fft ---- */

static struct num load_one(struct eval_array *a, int64_t i)
{
	unsigned elem = a->type->elem;

	return tc_num_flush(elem, tc_num_load(elem, tc_eval_at(a, i)));
}

static double complex *load_all(struct eval *e, struct eval_array *a)
{
	double complex *z = tc_eval_scratch(e, a->type->count, sizeof(*z));

	for (int64_t i = 0; i < a->type->count; i++) {
		struct num x = load_one(a, i);

		z[i] = CMPLX(x.re, x.im);
	}
	return z;
}

static void store_one(struct eval_array *a, int64_t i, double complex z)
{
	struct num x = { .re = creal(z), .im = cimag(z) };

	tc_num_store(a->type->elem, tc_eval_at(a, i), tc_num_flush(a->type->elem, x));
}

/* Lines along one dim: outer * inner of them, n long, elements `inner` apart. */
struct lines { int64_t outer, n, inner; };

static struct lines lines_of(unsigned rank, const int64_t *dim, unsigned d)
{
	struct lines l = { tc_eval_count(d, dim), dim[d],
			   tc_eval_count(rank - d - 1, dim + d + 1) };

	return l;
}

/* exp(2 pi i k / n); the four that are plain numbers, exactly so. */
static double complex root_of_one(int64_t k, int64_t n)
{
	static const double quarter[4] = { 1, 0, -1, 0 };
	double angle = 2 * M_PI * (double)k / (double)n;

	if (k * 4 % n == 0)
		return CMPLX(quarter[k * 4 / n], quarter[(k * 4 / n + 3) % 4]);
	return CMPLX(cos(angle), sin(angle));
}

/* Every line by its transform. way: -1 forward, +1 inverse (without 1/n). */
static void transform(struct eval *e, double complex *z, struct lines l, int way)
{
	double complex *turn = tc_eval_scratch(e, l.n, sizeof(*turn));
	double complex *line = tc_eval_scratch(e, l.n, sizeof(*line));

	for (int64_t k = 0; k < l.n; k++)
		turn[k] = way > 0 ? root_of_one(k, l.n) : conj(root_of_one(k, l.n));
	for (int64_t o = 0; o < l.outer * l.inner; o++) {
		double complex *first = z + o / l.inner * l.n * l.inner + o % l.inner;

		for (int64_t k = 0; k < l.n; k++)
			line[k] = first[k * l.inner];
		for (int64_t k = 0; k < l.n; k++) {
			double complex sum = 0;
			int64_t w = 0;

			for (int64_t i = 0; i < l.n; i++) {
				sum += line[i] * turn[w];
				w += k;
				w -= w >= l.n ? l.n : 0;
			}
			first[k * l.inner] = sum;
		}
	}
	tc_eval_release(e, line);
	tc_eval_release(e, turn);
}

/* Of real lines `half` has the first elements of the transforms, which the others mirror. */
static void store_real(struct eval *e, struct eval_array *out, const double complex *half,
		       struct lines l, double scale)
{
	double complex *line = tc_eval_scratch(e, l.n, sizeof(*line));
	int64_t n_half = l.n / 2 + 1;

	for (int64_t o = 0; o < l.outer * l.inner; o++) {
		int64_t before = o / l.inner, behind = o % l.inner;
		const double complex *first = half + before * n_half * l.inner + behind;

		for (int64_t k = 0; k < l.n; k++)
			line[k] = k < n_half ? first[k * l.inner] :
					       conj(first[(l.n - k) * l.inner]);
		/* what must be real is taken so */
		line[0] = creal(line[0]);
		if (l.n % 2 == 0)
			line[l.n / 2] = creal(line[l.n / 2]);
		transform(e, line, (struct lines){ 1, l.n, 1 }, 1);
		for (int64_t k = 0; k < l.n; k++)
			store_one(out, (before * l.n + k) * l.inner + behind,
				  creal(line[k]) * scale);
	}
	tc_eval_release(e, line);
}

void tc_eval_fft(struct eval *e, const struct tc_op *op)
{
	int64_t type = tc_attr_int(op, "fft_type", -1);
	unsigned n, first = tc_fft_first(op), last;
	struct eval_array *in = tc_eval_in(e, op, 0), *out = tc_eval_out(e, op, 0);
	const struct tc_attr *own = tc_attr(op, "scale");
	const struct tc_type *t = in->type;
	bool is_inverse = type == TC_FFT_IFFT || type == TC_FFT_IRFFT;
	double complex *z;
	double scale = 1;

	tc_attr_ints(op, "fft_length", &n);
	last = first + n - 1;
	if (!t->count || !out->type->count)
		return;
	z = load_all(e, in);
	for (unsigned d = first; d <= last; d++) {
		if (is_inverse)
			scale /= (double)out->type->dim[d];
		if (type != TC_FFT_IRFFT || d < last)
			transform(e, z, lines_of(t->rank, t->dim, d), is_inverse ? 1 : -1);
	}
	if (own)
		scale = tc_num_load(own->type->elem, own->data).re;
	if (type == TC_FFT_IRFFT) {
		store_real(e, out, z, lines_of(t->rank, out->type->dim, last), scale);
	} else {
		struct lines l = lines_of(t->rank, out->type->dim, last);
		int64_t row = l.n * l.inner, from = t->dim[last] * l.inner;

		for (int64_t i = 0; i < out->type->count; i++)
			store_one(out, i, z[i / row * from + i % row] * scale);
	}
	tc_eval_release(e, z);
}

/* ---- matrices ---- */

/* A number of the class without the parts it does not have, so that a real
 * calculation meets no imaginary zero times infinity. */
static double complex times(bool is_complex, double complex a, double complex b)
{
	struct num x = { 0, creal(a), cimag(a) }, y = { 0, creal(b), cimag(b) };
	struct num z = tc_num_mul(is_complex ? ELEM_CLASS_COMPLEX : ELEM_CLASS_FLOAT, x, y);

	return CMPLX(z.re, z.im);
}

static double complex over(bool is_complex, double complex a, double complex b)
{
	return is_complex ? a / b : CMPLX(creal(a) / creal(b), 0);
}

static void check_matrix(struct eval *e, const struct tc_type *t)
{
	unsigned cls = elem_class(t->elem);

	if (cls != ELEM_CLASS_FLOAT && cls != ELEM_CLASS_COMPLEX)
		tc_eval_refuse(e, t->elem);
	if (t->rank < 2 || t->dim[t->rank - 1] != t->dim[t->rank - 2])
		EVAL_BAD(e, "its operand is no square matrix");
}

/* a = l * l^H of n * n, in place. False: a is not positive definite. */
static bool factor(bool is_complex, double complex *a, int64_t n)
{
	for (int64_t j = 0; j < n; j++) {
		double d = creal(a[j * n + j]);

		for (int64_t k = 0; k < j; k++)
			d -= creal(times(is_complex, a[j * n + k], conj(a[j * n + k])));
		if (!(d > 0))
			return false;
		d = sqrt(d);
		a[j * n + j] = d;
		for (int64_t i = j + 1; i < n; i++) {
			double complex x = a[i * n + j];

			for (int64_t k = 0; k < j; k++)
				x -= times(is_complex, a[i * n + k], conj(a[j * n + k]));
			a[i * n + j] = CMPLX(creal(x) / d, cimag(x) / d);
		}
	}
	return true;
}

/* Only the triangle named is read; the other one of the result is zero. */
void tc_eval_cholesky(struct eval *e, const struct tc_op *op)
{
	struct eval_array *in = tc_eval_in(e, op, 0), *out;
	const struct tc_type *t = in->type;
	bool is_complex = elem_class(t->elem) == ELEM_CLASS_COMPLEX;
	bool lower = tc_attr_int(op, "lower", 0) != 0;
	double complex *m;
	int64_t n;

	check_matrix(e, t);
	if (op->results[0].type != t)
		EVAL_BAD(e, "its result has another type");
	out = tc_eval_out(e, op, 0);
	n = t->dim[t->rank - 1];
	if (!t->count)
		return;
	m = tc_eval_scratch(e, n * n, sizeof(*m));
	for (int64_t b = 0; b < t->count; b += n * n) {
		bool is_good;

		for (int64_t i = 0; i < n; i++)
			for (int64_t j = 0; j <= i; j++) {
				struct num x = load_one(in, b + (lower ? i * n + j :
								 j * n + i));

				m[i * n + j] = CMPLX(x.re, lower ? x.im : -x.im);
			}
		is_good = factor(is_complex, m, n);
		for (int64_t i = 0; i < n; i++)
			for (int64_t j = 0; j <= i; j++) {
				double complex x = is_good ? m[i * n + j] : CMPLX(NAN, NAN);

				store_one(out, b + (lower ? i * n + j : j * n + i),
					  lower ? x : conj(x));
			}
	}
	tc_eval_release(e, m);
}

/* ---- triangular_solve ---- */

struct solve {
	struct eval_array *a, *out;	/* out holds b, then x */
	bool left, lower, unit, is_complex;
	int64_t how;			/* TC_SOLVE_* */
	int64_t n, k;			/* a is n * n; k right sides */
};

static struct solve check_solve(struct eval *e, const struct tc_op *op)
{
	const struct tc_type *a = tc_in(op, 0)->type, *b = tc_in(op, 1)->type;
	struct solve s = {
		.a = tc_eval_in(e, op, 0),
		.left = tc_attr_int(op, "left_side", 0) != 0,
		.lower = tc_attr_int(op, "lower", 0) != 0,
		.unit = tc_attr_int(op, "unit_diagonal", 0) != 0,
		.is_complex = elem_class(a->elem) == ELEM_CLASS_COMPLEX,
		.how = tc_attr_int(op, "transpose_a", 0) };

	check_matrix(e, a);
	if (s.how < TC_SOLVE_PLAIN || s.how > TC_SOLVE_ADJOINT)
		EVAL_BAD(e, "there is no transpose_a %" PRId64, s.how);
	if (b->rank != a->rank || b->elem != a->elem || op->results[0].type != b)
		EVAL_BAD(e, "its operands do not fit");
	s.n = a->dim[a->rank - 1];
	s.k = b->dim[b->rank - (s.left ? 1u : 2u)];
	if (b->dim[b->rank - (s.left ? 2u : 1u)] != s.n ||
	    memcmp(a->dim, b->dim, (a->rank - 2u) * sizeof(*a->dim)))
		EVAL_BAD(e, "its operands do not fit");
	return s;
}

/* Element (i, j) of the matrix m of m * x = b, once the side is left. */
static double complex at(const struct solve *s, int64_t first, int64_t i, int64_t j)
{
	bool swaps = (s->how != TC_SOLVE_PLAIN) != !s->left;
	struct num x = load_one(s->a, first + (swaps ? j * s->n + i : i * s->n + j));

	return CMPLX(x.re, s->how == TC_SOLVE_ADJOINT ? -x.im : x.im);
}

/* Substitution, for one column x of n numbers. */
static void substitute(const struct solve *s, int64_t first, double complex *x)
{
	bool swaps = (s->how != TC_SOLVE_PLAIN) != !s->left;
	bool forward = s->lower != swaps;

	for (int64_t r = 0; r < s->n; r++) {
		int64_t i = forward ? r : s->n - 1 - r;

		for (int64_t q = 0; q < r; q++) {
			int64_t j = forward ? q : s->n - 1 - q;

			x[i] -= times(s->is_complex, at(s, first, i, j), x[j]);
		}
		if (!s->unit)
			x[i] = over(s->is_complex, x[i], at(s, first, i, i));
	}
}

void tc_eval_solve(struct eval *e, const struct tc_op *op)
{
	struct solve s = check_solve(e, op);
	struct eval_array *b = tc_eval_in(e, op, 1);
	double complex *x;

	s.out = tc_eval_out(e, op, 0);
	if (!b->type->count)
		return;
	x = tc_eval_scratch(e, s.n, sizeof(*x));
	for (int64_t m = 0; m < b->type->count / (s.n * s.k); m++)
		for (int64_t c = 0; c < s.k; c++) {
			int64_t first = m * s.n * s.k + (s.left ? c : c * s.n);
			int64_t step = s.left ? s.k : 1;

			for (int64_t i = 0; i < s.n; i++) {
				struct num y = load_one(b, first + i * step);

				x[i] = CMPLX(y.re, y.im);
			}
			substitute(&s, m * s.n * s.n, x);
			for (int64_t i = 0; i < s.n; i++)
				store_one(s.out, first + i * step, x[i]);
		}
	tc_eval_release(e, x);
}

/* ---- LU ---- */

/* |real| + |imaginary part|, and a NaN before all numbers. */
static double size_of(double complex x)
{
	double size = fabs(creal(x)) + fabs(cimag(x));

	return isnan(size) ? -1 : size;
}

static void swap_rows(double complex *a, int64_t n, int64_t i, int64_t j)
{
	for (int64_t c = 0; c < n; c++) {
		double complex x = a[i * n + c];

		a[i * n + c] = a[j * n + c];
		a[j * n + c] = x;
	}
}

/* Row by row below the pivot, in place. */
static void eliminate(bool is_complex, double complex *a, int64_t m, int64_t n, int64_t j)
{
	double complex pivot = a[j * n + j];

	for (int64_t i = j + 1; i < m; i++) {
		double complex *row = a + i * n;

		if (pivot != 0)
			row[j] = over(is_complex, row[j], pivot);
		for (int64_t c = j + 1; c < n; c++)
			row[c] -= times(is_complex, row[j], a[j * n + c]);
	}
}

static void check_lu(struct eval *e, const struct tc_op *op)
{
	const struct tc_type *a = op->n_operands == 1 ? tc_in(op, 0)->type : NULL, *t;
	unsigned cls = a && !a->is_tuple ? elem_class(a->elem) : ELEM_CLASS_PRED;

	if ((cls != ELEM_CLASS_FLOAT && cls != ELEM_CLASS_COMPLEX) || a->rank < 2)
		EVAL_BAD(e, "its operand is no matrix");
	if (op->n_results != 3 || op->results[0].type != a)
		EVAL_BAD(e, "it gives three results, the first of its operand's type");
	for (unsigned i = 1; i < 3; i++) {
		int64_t n = a->dim[a->rank - 2];

		if (i == 1 && n > a->dim[a->rank - 1])
			n = a->dim[a->rank - 1];
		t = op->results[i].type;
		if (t->is_tuple || t->elem != ELEM_S32 || t->rank != a->rank - 1 ||
		    memcmp(t->dim, a->dim, (a->rank - 2u) * sizeof(*a->dim)) ||
		    t->dim[t->rank - 1] != n)
			EVAL_BAD(e, "result %u does not fit", i);
	}
}

/* a of m * n in place; the rows that were exchanged, and which row each one was. */
static void factor_by_rows(bool is_complex, double complex *a, int64_t m, int64_t n,
			   struct eval_array *pivots, struct eval_array *rows, int64_t b)
{
	int64_t k = m < n ? m : n;

	for (int64_t i = 0; i < m; i++)
		tc_num_store(ELEM_S32, tc_eval_at(rows, b * m + i),
			     (struct num){ .i = (uint64_t)i });
	for (int64_t j = 0; j < k; j++) {
		int64_t best = j;
		struct num one, other;

		for (int64_t i = j + 1; i < m; i++)
			if (size_of(a[i * n + j]) > size_of(a[best * n + j]))
				best = i;
		swap_rows(a, n, j, best);
		one = tc_num_load(ELEM_S32, tc_eval_at(rows, b * m + j));
		other = tc_num_load(ELEM_S32, tc_eval_at(rows, b * m + best));
		tc_num_store(ELEM_S32, tc_eval_at(rows, b * m + best), one);
		tc_num_store(ELEM_S32, tc_eval_at(rows, b * m + j), other);
		tc_num_store(ELEM_S32, tc_eval_at(pivots, b * k + j),
			     (struct num){ .i = (uint64_t)best });
		eliminate(is_complex, a, m, n, j);
	}
}

/* Partial pivoting: LuDecomposition. */
void tc_eval_lu(struct eval *e, const struct tc_op *op)
{
	struct eval_array *lu, *pivots, *rows;
	const struct tc_type *t;
	double complex *z;
	int64_t m, n;

	check_lu(e, op);
	t = tc_in(op, 0)->type;
	lu = tc_eval_out(e, op, 0);
	pivots = tc_eval_out(e, op, 1);
	rows = tc_eval_out(e, op, 2);
	m = t->dim[t->rank - 2];
	n = t->dim[t->rank - 1];
	z = load_all(e, tc_eval_in(e, op, 0));
	/* Without columns there are rows still. */
	for (int64_t b = 0; b < tc_eval_count(t->rank - 2u, t->dim); b++)
		factor_by_rows(elem_class(t->elem) == ELEM_CLASS_COMPLEX, z + b * m * n, m, n,
			       pivots, rows, b);
	for (int64_t i = 0; i < t->count; i++)
		store_one(lu, i, z[i]);
	tc_eval_release(e, z);
}
