/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Transforms for one path and one type (fft.h): included with REAL, WIDTH (reals of a vector)
 * and NAME(). See fft.c, which says how vectors are shuffled.
 */

typedef REAL NAME(vec) __attribute__((vector_size(WIDTH * sizeof(REAL))));
typedef REAL NAME(loose) __attribute__((vector_size(WIDTH * sizeof(REAL)), aligned(sizeof(REAL)),
					may_alias));
typedef MASK_OF(REAL) NAME(mask) __attribute__((vector_size(WIDTH * sizeof(REAL))));

/* A complex number of each line. */
struct NAME(number) { NAME(vec) re, im; };

#define vec NAME(vec)
#define number struct NAME(number)
#define INLINE static inline __attribute__((always_inline))

INLINE vec NAME(load)(const REAL *p)
{
	return *(const NAME(loose) *)p;
}

INLINE void NAME(store)(REAL *p, vec x)
{
	*(NAME(loose) *)p = x;
}

INLINE vec NAME(mix)(vec a, vec b, const NAME(mask) m)
{
	return __builtin_shuffle(a, b, m);
}

/* ---- butterflies ---- */

INLINE number NAME(add)(number a, number b)
{
	return (number){ a.re + b.re, a.im + b.im };
}

INLINE number NAME(sub)(number a, number b)
{
	return (number){ a.re - b.re, a.im - b.im };
}

/* By re + i im, the same for all lines. */
INLINE number NAME(times)(number a, REAL re, REAL im)
{
	return (number){ a.re * re - a.im * im, a.re * im + a.im * re };
}

INLINE number NAME(times_minus_i)(number a)
{
	return (number){ a.im, -a.re };
}

INLINE void NAME(two)(number *x)
{
	number a = x[0];

	x[0] = NAME(add)(a, x[1]);
	x[1] = NAME(sub)(a, x[1]);
}

INLINE void NAME(four)(number *x)
{
	number a = NAME(add)(x[0], x[2]), b = NAME(sub)(x[0], x[2]);
	number c = NAME(add)(x[1], x[3]), d = NAME(times_minus_i)(NAME(sub)(x[1], x[3]));

	x[0] = NAME(add)(a, c);
	x[1] = NAME(add)(b, d);
	x[2] = NAME(sub)(a, c);
	x[3] = NAME(sub)(b, d);
}

INLINE void NAME(eight)(number *x)
{
	const REAL h = (REAL)0.70710678118654752440;
	number a[4] = { x[0], x[2], x[4], x[6] }, b[4] = { x[1], x[3], x[5], x[7] };

	NAME(four)(a);
	NAME(four)(b);
	b[1] = (number){ (b[1].re + b[1].im) * h, (b[1].im - b[1].re) * h };
	b[2] = NAME(times_minus_i)(b[2]);
	b[3] = (number){ (b[3].im - b[3].re) * h, (b[3].re + b[3].im) * -h };
#pragma GCC unroll 4
	for (unsigned k = 0; k < 4; k++) {
		x[k] = NAME(add)(a[k], b[k]);
		x[k + 4] = NAME(sub)(a[k], b[k]);
	}
}

/* p odd. Elements k and p - k come to both ends of the result alike: their sum with the real part
 * of a root, their difference with its imaginary part. */
INLINE void NAME(odd)(number *x, int64_t p, const REAL *roots)
{
	number sum[ISA_MAX_FFT_PRIME / 2], apart[ISA_MAX_FFT_PRIME / 2], first = x[0];
	int64_t half = p / 2;

#pragma GCC unroll 3
	for (int64_t k = 1; k <= half; k++) {
		sum[k - 1] = NAME(add)(x[k], x[p - k]);
		apart[k - 1] = NAME(sub)(x[k], x[p - k]);
		x[0] = NAME(add)(x[0], sum[k - 1]);
	}
#pragma GCC unroll 3
	for (int64_t i = 1; i <= half; i++) {
		number even = first, odd = { 0 };
		int64_t turn = 0;

#pragma GCC unroll 3
		for (int64_t k = 0; k < half; k++) {
			REAL re, im;

			turn += i;
			turn -= turn >= p ? p : 0;
			re = roots[2 * turn];
			im = roots[2 * turn + 1];
			even.re += sum[k].re * re;
			even.im += sum[k].im * re;
			odd.re -= apart[k].im * im;
			odd.im += apart[k].re * im;
		}
		x[i] = NAME(add)(even, odd);
		x[p - i] = NAME(sub)(even, odd);
	}
}

/* ---- passes ---- */

/* s lines of lines lie beside each other. r is a constant where speed counts. */
INLINE void NAME(pass)(const number *restrict x, number *restrict y, int64_t m, int64_t s,
		       const int64_t r, const struct sim_fft_pass *pass)
{
	const REAL *w = pass->twiddles, *roots = pass->roots;
	number t[ISA_MAX_FFT_PRIME];

	for (int64_t p = 0; p < m; p++, w += 2 * (r - 1))
		for (int64_t q = 0; q < s; q++) {
#pragma GCC unroll 8
			for (int64_t k = 0; k < r; k++)
				t[k] = x[q + s * (p + m * k)];
			if (r == 2)
				NAME(two)(t);
			else if (r == 4)
				NAME(four)(t);
			else if (r == 8)
				NAME(eight)(t);
			else
				NAME(odd)(t, r, roots);
			y[q + s * r * p] = t[0];
#pragma GCC unroll 8
			for (int64_t j = 1; j < r; j++)
				y[q + s * (r * p + j)] = p ?
					NAME(times)(t[j], w[2 * j - 2], w[2 * j - 1]) : t[j];
		}
}

#define PASS(r) \
static void NAME(pass_##r)(const number *x, number *y, int64_t m, int64_t s, \
			   const struct sim_fft_pass *pass) \
{ \
	NAME(pass)(x, y, m, s, r, pass); \
}
PASS(2)
PASS(3)
PASS(4)
PASS(5)
PASS(7)
PASS(8)
#undef PASS

static void NAME(pass_any)(const number *x, number *y, int64_t m, int64_t s,
			   const struct sim_fft_pass *pass)
{
	NAME(pass)(x, y, m, s, pass->radix, pass);
}

/* From x, with y to work in; the one of both that has the result. */
static number *NAME(passes)(const struct sim_fft_size *size, number *x, number *y)
{
	int64_t s = 1;

	for (unsigned i = 0; i < size->n_passes; i++) {
		const struct sim_fft_pass *p = &size->pass[i];
		number *t = x;

		switch (p->radix) {
		case 2: NAME(pass_2)(x, y, p->m, s, p); break;
		case 3: NAME(pass_3)(x, y, p->m, s, p); break;
		case 4: NAME(pass_4)(x, y, p->m, s, p); break;
		case 5: NAME(pass_5)(x, y, p->m, s, p); break;
		case 7: NAME(pass_7)(x, y, p->m, s, p); break;
		case 8: NAME(pass_8)(x, y, p->m, s, p); break;
		default: NAME(pass_any)(x, y, p->m, s, p); break;
		}
		s *= p->radix;
		x = y;
		y = t;
	}
	return x;
}

/* ---- between memory and vectors ---- */

/* row[i][j] becomes row[j][i]: each step moves the upper half of rows between the lower ones. */
INLINE void NAME(turn)(vec *row)
{
#pragma GCC unroll 4
	for (unsigned size = 1; size < WIDTH; size *= 2) {
		vec t[WIDTH];

#pragma GCC unroll 8
		for (unsigned i = 0; i < WIDTH / 2; i++) {
			t[2 * i] = NAME(mix)(row[i], row[i + WIDTH / 2], (NAME(mask))MASK_LOW);
			t[2 * i + 1] = NAME(mix)(row[i], row[i + WIDTH / 2],
						 (NAME(mask))MASK_HIGH);
		}
#pragma GCC unroll 16
		for (unsigned i = 0; i < WIDTH; i++)
			row[i] = t[i];
	}
}

/* Numbers first .. n of the lines, one by one. */
static void NAME(pack_each)(REAL *to, const struct sim_fft_lines *l, unsigned n_lines,
			    int64_t first, int64_t n, unsigned swap)
{
	const REAL *from = l->at;

	for (int64_t k = first; k < n; k++)
		for (unsigned i = 0; i < WIDTH; i++)
			for (unsigned part = 0; part < 2; part++)
				to[(2 * k + (part ^ swap)) * WIDTH + i] = i < n_lines ?
					from[k * l->step + i * l->line + part] : 0;
}

static void NAME(unpack_each)(const REAL *from, const struct sim_fft_lines *l, unsigned n_lines,
			      int64_t first, int64_t n, unsigned swap)
{
	REAL *to = l->at;

	for (int64_t k = first; k < n; k++)
		for (unsigned i = 0; i < n_lines; i++)
			for (unsigned part = 0; part < 2; part++)
				to[k * l->step + i * l->line + part] =
					from[(2 * k + (part ^ swap)) * WIDTH + i];
}

static void NAME(pack)(number *x, const struct sim_fft_lines *l, const void *ahead,
		       unsigned n_lines, int64_t n, unsigned swap)
{
	const REAL *from = l->at, *next = ahead ? ahead : from;
	vec *to = &x->re, row[WIDTH];
	int64_t k = 0;

	if (l->line == 2 && n_lines == WIDTH)
		for (; k < n; k++) {
			vec a = NAME(load)(from + k * l->step);
			vec b = NAME(load)(from + k * l->step + WIDTH);

			/* No CPU foresees a step as long as this. */
			__builtin_prefetch(next + k * l->step);
			__builtin_prefetch(next + k * l->step + WIDTH);
			to[2 * k + swap] = NAME(mix)(a, b, (NAME(mask))MASK_EVEN);
			to[2 * k + 1 - swap] = NAME(mix)(a, b, (NAME(mask))MASK_ODD);
		}
	else if (l->step == 2 && n_lines > 1)
		for (; k + WIDTH / 2 <= n; k += WIDTH / 2) {
			for (unsigned i = 0; i < WIDTH; i++)
				row[i] = NAME(load)(from + 2 * k + (i < n_lines ? i : 0) * l->line);
			NAME(turn)(row);
			for (unsigned i = 0; i < WIDTH; i++)
				to[2 * k + (i ^ swap)] = row[i];
		}
	NAME(pack_each)((REAL *)to, l, n_lines, k, n, swap);
}

static void NAME(unpack)(const number *x, const struct sim_fft_lines *l, unsigned n_lines,
			 int64_t n, unsigned swap)
{
	const vec *from = &x->re;
	REAL *to = l->at;
	vec row[WIDTH];
	int64_t k = 0;

	if (l->line == 2 && n_lines == WIDTH)
		for (; k < n; k++) {
			vec re = from[2 * k + swap], im = from[2 * k + 1 - swap];

			NAME(store)(to + k * l->step, NAME(mix)(re, im, (NAME(mask))MASK_LOW));
			NAME(store)(to + k * l->step + WIDTH,
				    NAME(mix)(re, im, (NAME(mask))MASK_HIGH));
		}
	else if (l->step == 2 && n_lines > 1)
		for (; k + WIDTH / 2 <= n; k += WIDTH / 2) {
			for (unsigned i = 0; i < WIDTH; i++)
				row[i] = from[2 * k + (i ^ swap)];
			NAME(turn)(row);
			for (unsigned i = 0; i < n_lines; i++)
				NAME(store)(to + 2 * k + i * l->line, row[i]);
		}
	NAME(unpack_each)((const REAL *)from, l, n_lines, k, n, swap);
}

static void NAME(apply)(const struct sim_fft_extras *e, number *x, int64_t n)
{
	const REAL *re = e->re, *im = e->im, scale = (REAL)e->scale;

	for (int64_t k = 0; k < n && re; k++) {
		vec a = NAME(load)(re + k * e->pitch), b = NAME(load)(im + k * e->pitch);

		x[k] = (number){ x[k].re * a - x[k].im * b, x[k].re * b + x[k].im * a };
	}
	for (int64_t k = 0; k < n && e->scales; k++)
		x[k] = (number){ x[k].re * scale, x[k].im * scale };
}

static void NAME(transform)(const struct sim_fft_size *size, const struct sim_fft_extras *e,
			    const struct sim_fft_lines *in, const struct sim_fft_lines *out,
			    unsigned n_lines, void *room)
{
	number *x = room;

	NAME(pack)(x, in, e->next, n_lines, size->n, e->swaps_in);
	x = NAME(passes)(size, x, x + size->n);
	NAME(apply)(e, x, size->n);
	NAME(unpack)(x, out, n_lines, size->n, e->swaps_out);
}

/* ---- real signals ---- */

INLINE vec NAME(conjugate)(vec x)
{
	return NAME(mix)(x, -x, (NAME(mask))MASK_CONJUGATE);
}

static void NAME(untangle)(const void *from, void *to, int64_t m, int64_t first, int64_t end,
			   double half, const void *turn)
{
	const REAL *x = from, *re = turn, *im = re + 2 * (m / 2 + 1), h = (REAL)half;
	REAL *y = to;
	int64_t k = first;

	for (; k + WIDTH / 2 <= end; k += WIDTH / 2) {
		int64_t other = 2 * (m - k - WIDTH / 2 + 1);
		vec a = NAME(load)(x + 2 * k), z = NAME(load)(x + other), e, o;

		z = NAME(conjugate)(NAME(mix)(z, z, (NAME(mask))MASK_REVERSE));
		e = (a + z) * h;
		o = a - z;
		o = o * NAME(load)(re + 2 * k) +
		    NAME(mix)(o, o, (NAME(mask))MASK_SWAP) * NAME(load)(im + 2 * k);
		NAME(store)(y + 2 * k, e + o);
		z = NAME(conjugate)(e - o);
		NAME(store)(y + other, NAME(mix)(z, z, (NAME(mask))MASK_REVERSE));
	}
	for (; k < end; k++) {
		REAL zr = x[2 * (m - k)], zi = -x[2 * (m - k) + 1];
		REAL er = (x[2 * k] + zr) * h, ei = (x[2 * k + 1] + zi) * h;
		REAL dr = x[2 * k] - zr, di = x[2 * k + 1] - zi;
		REAL or = dr * re[2 * k] + di * im[2 * k];
		REAL oi = di * re[2 * k + 1] + dr * im[2 * k + 1];

		y[2 * k] = er + or;
		y[2 * k + 1] = ei + oi;
		y[2 * (m - k)] = er - or;
		y[2 * (m - k) + 1] = -(ei - oi);
	}
}

#undef vec
#undef number
#undef INLINE
