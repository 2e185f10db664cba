/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_SIM_TYPED_H
#define TESTS_SIM_TYPED_H
/*
 * Elements of every type as values that plain loops can count with: reading,
 * writing, random ones, and sums of products.
 *
 * Small random values are whole numbers from -4 to 4 without 0: every type holds
 * them, and sums of their products are exact in any order. Wild ones are fractions
 * between -1 and 1, or integers of all bits.
 */
#include <math.h>

#include "tests/unit/sim/sim_insn.h"

/* For programs whose elements are all stored to one place: lanes race there because the
 * program says so, which is not what the thread sanitizer is to look for. */
#ifdef __SANITIZE_THREAD__
#define TY_LANES "lanes=1"
#else
#define TY_LANES "lanes=2"
#endif

struct ty {
	double re, im;		/* floats, complex numbers */
	uint64_t i;		/* pred and integers, extended by their sign */
};

struct ty_format { int exponent, mantissa, bias; };	/* bits, bits, - */

static inline struct ty_format ty_format(unsigned elem)
{
	switch (elem) {
	case ELEM_F16: return (struct ty_format){ 5, 10, 15 };
	case ELEM_BF16: return (struct ty_format){ 8, 7, 127 };
	case ELEM_F8E5M2: return (struct ty_format){ 5, 2, 15 };
	case ELEM_F8E4M3FN: return (struct ty_format){ 4, 3, 7 };
	case ELEM_F8E4M3: return (struct ty_format){ 4, 3, 7 };
	case ELEM_F8E3M4: return (struct ty_format){ 3, 4, 3 };
	case ELEM_F8E4M3B11FNUZ: return (struct ty_format){ 4, 3, 11 };
	case ELEM_F8E5M2FNUZ: return (struct ty_format){ 5, 2, 16 };
	case ELEM_F8E4M3FNUZ: return (struct ty_format){ 4, 3, 8 };
	default: fail_msg("no small float: %s", elem_text(elem));
	}
	return (struct ty_format){ 0, 0, 0 };
}

static inline bool ty_is_small_float(unsigned elem)
{
	return elem_class(elem) == ELEM_CLASS_FLOAT && elem != ELEM_F32 && elem != ELEM_F64;
}

static inline bool ty_is_integer(unsigned elem)
{
	unsigned cls = elem_class(elem);

	return cls == ELEM_CLASS_PRED || cls == ELEM_CLASS_SINT || cls == ELEM_CLASS_UINT;
}

/* A finite value of a float narrower than 32 bits. */
static inline double ty_decode(unsigned elem, uint32_t bits)
{
	struct ty_format f = ty_format(elem);
	int all = (1 << f.exponent) - 1, e = (int)(bits >> f.mantissa) & all;
	double m = bits & ((1u << f.mantissa) - 1), x;

	x = e ? ldexp(m + (1 << f.mantissa), e - f.bias - f.mantissa) :
		ldexp(m, 1 - f.bias - f.mantissa);
	return bits >> (f.mantissa + f.exponent) & 1 ? -x : x;
}

/* The bits of x, cut to the mantissa; what is too small to be normal is 0. */
static inline uint32_t ty_encode(unsigned elem, double x)
{
	struct ty_format f = ty_format(elem);
	int e;
	double m = frexp(fabs(x), &e);

	if (m == 0 || e - 1 + f.bias < 1)
		return 0;
	return (x < 0 ? 1u << (f.mantissa + f.exponent) : 0) |
	       (uint32_t)(e - 1 + f.bias) << f.mantissa |
	       (uint32_t)((m * 2 - 1) * (1 << f.mantissa));
}

static inline struct ty ty_get(unsigned elem, const void *p)
{
	unsigned bits = elem_bytes(elem) * 8;
	struct ty v = { 0, 0, 0 };
	float f[2];
	double d[2];

	if (elem == ELEM_F32 || elem == ELEM_C64) {
		memcpy(f, p, elem_bytes(elem));
		v.re = f[0];
		v.im = elem == ELEM_C64 ? f[1] : 0;
	} else if (elem == ELEM_F64 || elem == ELEM_C128) {
		memcpy(d, p, elem_bytes(elem));
		v.re = d[0];
		v.im = elem == ELEM_C128 ? d[1] : 0;
	} else {
		memcpy(&v.i, p, elem_bytes(elem));
		if (ty_is_small_float(elem))
			v.re = ty_decode(elem, (uint32_t)v.i);
		else if (elem_class(elem) == ELEM_CLASS_SINT)
			v.i = (uint64_t)((int64_t)(v.i << (64 - bits)) >> (64 - bits));
	}
	return v;
}

static inline uint32_t ty_bf16(double x)
{
	float f = (float)x;
	uint32_t bits;

	memcpy(&bits, &f, 4);
	return (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}

/* Stores v; bf16 rounds to nearest even, other small floats must hold it. */
static inline void ty_set(unsigned elem, void *p, struct ty v)
{
	float f[2] = { (float)v.re, (float)v.im };
	double d[2] = { v.re, v.im };
	uint64_t bits = v.i;

	if (elem == ELEM_F32 || elem == ELEM_C64) {
		memcpy(p, f, elem_bytes(elem));
		return;
	}
	if (elem == ELEM_F64 || elem == ELEM_C128) {
		memcpy(p, d, elem_bytes(elem));
		return;
	}
	if (elem == ELEM_BF16)
		bits = ty_bf16(v.re);
	else if (ty_is_small_float(elem))
		bits = ty_encode(elem, v.re);
	memcpy(p, &bits, elem_bytes(elem));
}

/* v as `elem` holds it. */
static inline struct ty ty_as(unsigned elem, struct ty v)
{
	uint64_t room[2];

	ty_set(elem, room, v);
	return ty_get(elem, room);
}

static inline double ty_small(uint64_t *seed)
{
	int v = (int)(vt_random(seed) % 8) - 4;

	return v < 0 ? v : v + 1;
}

static inline double ty_fraction(uint64_t *seed)
{
	return (int32_t)(vt_random(seed) << 1) * 0x1p-31;
}

static inline void ty_random(uint64_t *seed, unsigned elem, bool wild, void *p)
{
	struct ty v = { 0, 0, 0 };

	if (elem_class(elem) == ELEM_CLASS_PRED) {
		v.i = vt_random(seed) % 8 == 0;
	} else if (ty_is_integer(elem)) {
		v.i = wild ? (uint64_t)vt_random(seed) << 42 ^ (uint64_t)vt_random(seed) << 20 ^
			     vt_random(seed) : (uint64_t)(int64_t)ty_small(seed);
	} else {
		v.re = wild ? ty_fraction(seed) : ty_small(seed);
		v.im = wild ? ty_fraction(seed) : ty_small(seed);
		if (ty_is_small_float(elem)) {
			v.i = ty_encode(elem, v.re);
			memcpy(p, &v.i, elem_bytes(elem));
			return;
		}
	}
	ty_set(elem, p, v);
}

/* A memory of `bytes` bytes full of elements. */
static inline struct vt_mem ty_memory(uint64_t *seed, unsigned elem, bool wild,
				      uint64_t bytes)
{
	struct vt_mem m = { malloc(bytes + 1), bytes };
	unsigned each = elem_bytes(elem);

	assert_non_null(m.p);
	for (uint64_t at = 0; at + each <= bytes; at += each)
		ty_random(seed, elem, wild, (uint8_t *)m.p + at);
	return m;
}

static inline struct vt_mem ty_copy(struct vt_mem m)
{
	struct vt_mem c = { malloc(m.bytes + 1), m.bytes };

	assert_non_null(c.p);
	memcpy(c.p, m.p, m.bytes);
	return c;
}

/* A sum of products, and that of their magnitudes, which bounds what rounding does. */
struct ty_sum {
	struct ty v;
	double size;
};

static inline void ty_madd(struct ty_sum *s, unsigned acc, struct ty a, struct ty b)
{
	switch (elem_class(acc)) {
	case ELEM_CLASS_PRED:
		s->v.i |= a.i & b.i;
		return;
	case ELEM_CLASS_SINT:
	case ELEM_CLASS_UINT:
		s->v.i += a.i * b.i;
		return;
	default:
		s->v.re += a.re * b.re - a.im * b.im;
		s->v.im += a.re * b.im + a.im * b.re;
		s->size += (fabs(a.re) + fabs(a.im)) * (fabs(b.re) + fabs(b.im));
	}
}

/* How far a sum of k products may be off. */
static inline double ty_slack(const struct ty_sum *s, unsigned acc, unsigned precision,
			      int64_t k)
{
	bool is_double = acc == ELEM_F64 || acc == ELEM_C128;
	double eps = is_double ? 0x1p-52 : 0x1p-23, slack = (double)(k + 8) * eps;

	if (acc == ELEM_F32 && precision == ISA_PRECISION_HIGH)
		slack += 0x1p-14;
	if (acc == ELEM_F32 && precision == ISA_PRECISION_BF16)
		slack += 0x1p-7;
	return slack * s->size;
}

/* The paths that this CPU has, each with another number of lanes. */
static inline unsigned ty_open(struct vt *vt)
{
	static const char *const paths[] = { "portable", "avx2", "avx512" };
	unsigned n = 0;

	for (unsigned i = 0; i < 3; i++) {
		if (vt_open(&vt[n], paths[i], 1 + i))
			n++;
		else
			print_message("# skipped: this CPU has no %s\n", paths[i]);
	}
	return n;
}

static inline void ty_close(struct vt *vt, unsigned n)
{
	while (n)
		vt_close(&vt[--n]);
}

/*
 * Strides in one of the layouts that programs use: the last dim together (NCHW), dim 1
 * together (NHWC), dims 1 and 0 together (HWIO), or any (in_scatter_strides). Returns
 * the bytes it spans.
 */
static inline uint64_t ty_layout(uint64_t *seed, struct isa_operand *op, unsigned rank,
				 const int64_t *dim, unsigned bytes)
{
	unsigned how = vt_random(seed) % 4, order[ISA_MAX_RANK + 2], n = 0;
	int64_t step = bytes;

	if (how < 2 || rank < 2)
		return in_scatter_strides(seed, op, rank, dim, bytes, how == 0);
	order[n++] = 1;
	if (how == 3)
		order[n++] = 0;
	for (unsigned d = rank; d-- > 2;)
		order[n++] = d;
	order[n++] = 0;
	op->offset = 0;
	for (unsigned i = 0; i < rank; i++) {
		op->stride[order[i]] = step;
		step *= dim[order[i]] ? dim[order[i]] : 1;
	}
	return (uint64_t)step;
}

/* One of the sizes at which blocks end, at most `most`. */
static inline int64_t ty_size(uint64_t *seed, int64_t most)
{
	static const int64_t sizes[] = {
		1, 1, 2, 3, 4, 5, 7, 8, 11, 12, 13, 15, 16, 17, 23, 24, 25, 31, 32, 33, 37, 47,
		48, 49, 63, 64, 65, 95, 96, 97, 127, 128, 129, 191, 192, 193, 255, 256, 257,
		300, 383, 384, 385, 511, 512, 513, 1021, 1024, 1025,
	};
	unsigned n = sizeof(sizes) / sizeof(*sizes);

	while (n > 1 && sizes[n - 1] > most)
		n--;
	return sizes[vt_random(seed) % n];
}

#endif
