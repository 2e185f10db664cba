/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packing of the panels of a matrix product (panel.h): conversion to the kernel's type,
 * and transposition where the operand lies the other way around. Rows of a panel of a
 * run along k, those of b across it, so one of the two is moved by whole rows and the
 * other is turned. Compiled once for each path: the includer defines PATH.
 */
#include <string.h>

#include "hal/base/elem.h"
#include "hal/sim/kernels/panel.h"

#define NAME_(a, b) a##_##b
#define NAME(a, b) NAME_(a, b)

/* ---- one element to a panel's type ---- */

static float half_to_float(uint16_t h)
{
	uint32_t sign = (uint32_t)(h & 0x8000) << 16, e = h >> 10 & 31, m = h & 1023, bits;
	float f;

	if (e == 31) {
		bits = sign | 0x7f800000u | m << 13;
	} else if (e) {
		bits = sign | (e + 112) << 23 | m << 13;
	} else {
		f = (float)m * 0x1p-24f;
		return sign ? -f : f;
	}
	memcpy(&f, &bits, 4);
	return f;
}

/* A float of 1 byte with the given exponent bits and bias. Without branches, for convert(). */
static inline __attribute__((always_inline)) float
tiny_to_float(uint8_t x, const unsigned e_bits, const unsigned bias, const bool is_fn,
	      const bool is_uz)
{
	const unsigned m_bits = 7 - e_bits, top = 0x7fu >> m_bits << m_bits;
	uint32_t size = x & 0x7fu, sign = (uint32_t)(x & 0x80u) << 24, bits, least;
	float f = (float)(int32_t)size, unit;

	bits = (127 + 1 - bias - m_bits) << 23;
	memcpy(&unit, &bits, 4);
	f *= unit;
	memcpy(&least, &f, 4);
	bits = size >> m_bits ? (size << (23 - m_bits)) + ((127 - bias) << 23) : least;
	if (is_uz)
		bits = x == 0x80 ? 0x7fc00000u : bits;
	else if (is_fn)
		bits = size == 0x7f ? 0x7fc00000u : bits;
	else
		bits = size > top ? 0x7fc00000u : size == top ? 0x7f800000u : bits;
	bits |= sign;
	memcpy(&f, &bits, 4);
	return f;
}

static float load_f32(const uint8_t *p, unsigned elem)
{
	uint32_t bits;
	uint16_t h;
	float f;
	double d;

	switch (elem) {
	case ELEM_F32: memcpy(&f, p, 4); return f;
	case ELEM_S8: return (float)(int8_t)*p;
	case ELEM_U8: return (float)*p;
	case ELEM_BF16:
		memcpy(&h, p, 2);
		bits = (uint32_t)h << 16;
		memcpy(&f, &bits, 4);
		return f;
	case ELEM_F16: memcpy(&h, p, 2); return half_to_float(h);
	case ELEM_F64: memcpy(&d, p, 8); return (float)d;
	case ELEM_F8E5M2: return tiny_to_float(*p, 5, 15, false, false);
	case ELEM_F8E4M3FN: return tiny_to_float(*p, 4, 7, true, false);
	case ELEM_F8E4M3: return tiny_to_float(*p, 4, 7, false, false);
	case ELEM_F8E3M4: return tiny_to_float(*p, 3, 3, false, false);
	case ELEM_F8E4M3B11FNUZ: return tiny_to_float(*p, 4, 11, true, true);
	case ELEM_F8E5M2FNUZ: return tiny_to_float(*p, 5, 16, true, true);
	case ELEM_F8E4M3FNUZ: return tiny_to_float(*p, 4, 8, true, true);
	default: return 0;
	}
}

static int64_t load_int(const uint8_t *p, unsigned elem)
{
	unsigned bits = elem_bytes(elem) * 8;
	int64_t v = 0;

	memcpy(&v, p, elem_bytes(elem));
	if (elem_class(elem) == ELEM_CLASS_SINT && bits < 64)
		v = (int64_t)((uint64_t)v << (64 - bits)) >> (64 - bits);
	return v;
}

static double load_f64(const uint8_t *p, unsigned elem)
{
	double d;

	if (elem != ELEM_F64)
		return load_f32(p, elem);
	memcpy(&d, p, 8);
	return d;
}

static void load_one(const uint8_t *p, unsigned elem, unsigned type, uint8_t *to)
{
	int64_t i;
	double d;
	float f;

	switch (type) {
	case ELEM_F32: f = load_f32(p, elem); memcpy(to, &f, 4); break;
	case ELEM_F64: d = load_f64(p, elem); memcpy(to, &d, 8); break;
	case ELEM_C64:
	case ELEM_C128: memcpy(to, p, elem_bytes(type)); break;
	case ELEM_PRED: *to = *p != 0; break;
	default: i = load_int(p, elem); memcpy(to, &i, elem_bytes(type)); break;
	}
}

/* Whole numbers to as many bits or more. */
static void widen(unsigned elem, unsigned bytes, const void *from, unsigned n, void *to)
{
#define EACH(in, out) \
	for (unsigned j = 0; j < n; j++) \
		((out *)to)[j] = (out)((const in *)from)[j]
#define WIDEN(bits) \
	do { \
		if (elem_class(elem) == ELEM_CLASS_SINT && bytes == 8) \
			EACH(int##bits##_t, int64_t); \
		else if (elem_class(elem) == ELEM_CLASS_SINT) \
			EACH(int##bits##_t, int32_t); \
		else if (bytes == 8) \
			EACH(uint##bits##_t, uint64_t); \
		else \
			EACH(uint##bits##_t, uint32_t); \
	} while (0)
	switch (elem_bytes(elem)) {
	case 1: WIDEN(8); break;
	case 2: WIDEN(16); break;
	default: WIDEN(32); break;
	}
#undef WIDEN
#undef EACH
}

/* Floats of one byte. */
static bool widen_tiny(unsigned elem, const uint8_t *from, unsigned n, float *to)
{
#define EACH(...) \
	for (unsigned j = 0; j < n; j++) \
		to[j] = tiny_to_float(from[j], __VA_ARGS__); \
	return true
	switch (elem) {
	case ELEM_F8E5M2: EACH(5, 15, false, false);
	case ELEM_F8E4M3FN: EACH(4, 7, true, false);
	case ELEM_F8E4M3: EACH(4, 7, false, false);
	case ELEM_F8E3M4: EACH(3, 3, false, false);
	case ELEM_F8E4M3B11FNUZ: EACH(4, 11, true, true);
	case ELEM_F8E5M2FNUZ: EACH(5, 16, true, true);
	case ELEM_F8E4M3FNUZ: EACH(4, 8, true, true);
	default: return false;
	}
#undef EACH
}

#ifdef __F16C__
/* Eight at a time: no compiler makes vectors of conversions of one. */
static void widen_halves(const uint16_t *from, unsigned n, float *to)
{
	unsigned j = 0;

	for (; j + 8 <= n; j += 8) {
		__m128i some = _mm_loadu_si128((const __m128i *)(const void *)(from + j));

		_mm256_storeu_ps(to + j, _mm256_cvtph_ps(some));
	}
	for (; j < n; j++)
		to[j] = _cvtsh_ss(from[j]);
}
#endif

/* n neighbours, converted. */
static void convert(unsigned elem, unsigned type, const void *from, unsigned n, void *to)
{
	unsigned each = elem_bytes(elem), bytes = elem_bytes(type);

	if (elem == type) {
		memcpy(to, from, (size_t)n * bytes);
	} else if (elem == ELEM_BF16 && type == ELEM_F32) {
		for (unsigned j = 0; j < n; j++)
			((uint32_t *)to)[j] = (uint32_t)((const uint16_t *)from)[j] << 16;
#ifdef __F16C__
	} else if (elem == ELEM_F16 && type == ELEM_F32) {
		widen_halves(from, n, to);
#endif
	} else if (elem == ELEM_S8 && type == ELEM_S16) {
		for (unsigned j = 0; j < n; j++)
			((int16_t *)to)[j] = ((const int8_t *)from)[j];
	} else if (elem == ELEM_U8 && type == ELEM_S16) {
		for (unsigned j = 0; j < n; j++)
			((int16_t *)to)[j] = ((const uint8_t *)from)[j];
	} else if ((type == ELEM_S32 || type == ELEM_U32 || type == ELEM_S64 || type == ELEM_U64) &&
		   each <= bytes && each <= 4) {
		widen(elem, bytes, from, n, to);
	} else if (type != ELEM_F32 || !widen_tiny(elem, from, n, to)) {
		for (unsigned j = 0; j < n; j++)
			load_one((const uint8_t *)from + (size_t)j * each, elem, type,
				 (uint8_t *)to + (size_t)j * bytes);
	}
}

static void flip(uint8_t *p, unsigned n, uint8_t mask)
{
	if (mask)
		for (unsigned j = 0; j < n; j++)
			p[j] ^= mask;
}

/* ---- one side of a panel ---- */

#define AHEAD 8u	/* units that are fetched before they are packed */
#define STRIP (4 * SIM_PRODUCT_LINE)	/* columns that are packed at a time */

struct packing {
	const struct sim_product_task *t;
	const struct sim_side *side;
	uint8_t type, flip;
	unsigned group, unit;	/* elements, bytes */
	unsigned n, ku;		/* elements of k, units to fill */
	int64_t k0;
	const uint8_t **at;	/* by lines */
	uint8_t *turn, *raw;
};

static struct packing start(const struct sim_panels *mm, const struct sim_product_task *t,
			    uint8_t *s, bool is_b, int64_t k0, unsigned n, unsigned ku)
{
	struct packing p = {
		.t = t, .side = is_b ? &mm->b : &mm->a,
		.type = is_b ? mm->kernel.b : mm->kernel.a,
		.flip = is_b ? mm->kernel.flip_b : 0,
		.group = mm->kernel.group, .unit = mm->kernel.unit, .n = n, .ku = ku,
		.k0 = k0, .at = (const uint8_t **)(void *)(s + mm->lines_at),
		.turn = s + mm->turn_at, .raw = s + mm->raw_at,
	};

	if (p.side->by_lines)
		p.side->lines(t, k0, n, p.at);
	return p;
}

/* Lane i along k, then zeros. */
static void pack_row(const struct packing *p, unsigned i, uint8_t *to)
{
	size_t bytes = elem_bytes(p->type);
	bool same = p->side->elem == p->type;
	const void *from = p->side->row(p->t, i, p->k0, p->n, same ? to : p->raw);

	if (from != to)
		convert(p->side->elem, p->type, from, p->n, to);
	flip(to, (unsigned)(p->n * bytes), p->flip);
	if (p->n != p->ku * p->group)
		memset(to + p->n * bytes, 0, (size_t)p->ku * p->unit - p->n * bytes);
}

/* Rows of a, all at once. */
static void pack_rows(const struct packing *p, unsigned first, unsigned rows, uint8_t *to,
		      size_t pitch)
{
	size_t bytes = p->n * elem_bytes(p->type), all = (size_t)p->ku * p->unit;

	p->side->rows(p->t, first, rows, p->k0, p->n, to, pitch);
	for (unsigned i = 0; bytes < all && i < rows; i++)
		memset(to + i * pitch + bytes, 0, all - bytes);
}

static inline __attribute__((always_inline)) void
zip2(const uint16_t *const *l, unsigned n, uint16_t *restrict to)
{
	for (unsigned j = 0; j < n; j++) {
		to[2 * j] = l[0][j];
		to[2 * j + 1] = l[1][j];
	}
}

static inline __attribute__((always_inline)) void
zip4(const uint8_t *const *l, unsigned n, uint8_t *restrict to)
{
	for (unsigned j = 0; j < n; j++) {
		to[4 * j] = l[0][j];
		to[4 * j + 1] = l[1][j];
		to[4 * j + 2] = l[2][j];
		to[4 * j + 3] = l[3][j];
	}
}

/* Asks for the memory of unit u of a line from lane i on, which pack_units will read: no
 * hardware foresees where another row lies. */
static void fetch_units(const struct packing *p, unsigned u, unsigned i)
{
	unsigned each = elem_bytes(p->side->elem);

	for (unsigned k = u * p->group; k < (u + 1) * p->group && k < p->n; k++)
		for (unsigned at = 0; at < SIM_PRODUCT_LINE * each; at += 64)
			__builtin_prefetch(p->at[k] + (size_t)i * each + at);
}

/* Unit u of lanes i .. i + n, n <= SIM_PRODUCT_LINE, side by side. */
static void pack_units(const struct packing *p, unsigned u, unsigned i, unsigned n,
		       uint8_t *to)
{
	uint8_t room[SIM_PRODUCT_GROUP][SIM_PRODUCT_LINE * 2];
	const uint8_t *line[SIM_PRODUCT_GROUP];
	unsigned elem = p->side->elem, each = elem_bytes(elem), k = u * p->group;

	if (p->group == 1) {
		if (k < p->n && elem == p->type && n * p->unit == SIM_PRODUCT_LINE * 4)
			memcpy(to, p->at[k] + (size_t)i * each, SIM_PRODUCT_LINE * 4);
		else if (k < p->n)
			convert(elem, p->type, p->at[k] + (size_t)i * each, n, to);
		else
			memset(to, 0, (size_t)n * p->unit);
		return;
	}
	for (unsigned g = 0; g < p->group; g++) {
		line[g] = room[g];
		if (k + g >= p->n)
			memset(room[g], 0, sizeof(room[g]));
		else if (elem == p->type)
			line[g] = p->at[k + g] + (size_t)i * each;
		else
			convert(elem, p->type, p->at[k + g] + (size_t)i * each, n,
				room[g]);
	}
	/* Whole lines are most, and a constant makes them vectors. */
	if (p->group == 2 && n == SIM_PRODUCT_LINE)
		zip2((const uint16_t *const *)(const void *)line, SIM_PRODUCT_LINE,
		     (uint16_t *)(void *)to);
	else if (p->group == 2)
		zip2((const uint16_t *const *)(const void *)line, n, (uint16_t *)(void *)to);
	else if (n == SIM_PRODUCT_LINE)
		zip4(line, SIM_PRODUCT_LINE, to);
	else
		zip4(line, n, to);
	flip(to, n * p->unit, p->flip);
}

/* Some whole lines of b from lane i on, as they are: units of one element of 4 bytes. */
static void copy_lines(const struct packing *p, unsigned i, unsigned lines, uint8_t *to)
{
	const size_t line = SIM_PRODUCT_LINE * 4, apart = p->ku * line, at = (size_t)i * 4;

	for (unsigned k = 0; k < p->n; k++, to += line) {
		const uint8_t *from = p->at[k] + at;
		const uint8_t *soon = k + AHEAD < p->n ? p->at[k + AHEAD] + at : from;

		for (unsigned j = 0; j < lines; j++) {
			__builtin_prefetch(soon + j * line);
			__builtin_prefetch(soon + j * line + 64);
			memcpy(to + j * apart, from + j * line, line);
		}
	}
}

/* Columns of b that are neighbours in memory. The panels of lines lie so far apart that the same
 * unit of each falls on the same few places of a cache, so that no more are filled at a time than
 * these have room for. */
static void pack_lines(const struct packing *p, unsigned first, unsigned cols, uint8_t *to)
{
	const size_t line = (size_t)SIM_PRODUCT_LINE * p->unit;
	const bool is_same = p->group == 1 && p->unit == 4 && p->side->elem == p->type &&
			     p->n == p->ku;

	for (unsigned i = 0; i < cols; i += STRIP) {
		unsigned wide = cols - i < STRIP ? cols - i : STRIP, j = 0;
		uint8_t *strip = to + (size_t)i * p->ku * p->unit;

		if (is_same) {
			j = wide / SIM_PRODUCT_LINE * SIM_PRODUCT_LINE;
			copy_lines(p, first + i, wide / SIM_PRODUCT_LINE, strip);
		}
		for (unsigned u = 0; u < p->ku && j < wide; u++)
			for (unsigned l = j; l < wide; l += SIM_PRODUCT_LINE) {
				fetch_units(p, u + AHEAD, first + i + l);
				pack_units(p, u, first + i + l, wide - l < SIM_PRODUCT_LINE ?
					   wide - l : SIM_PRODUCT_LINE,
					   strip + (size_t)l * p->ku * p->unit + u * line);
			}
	}
}

void NAME(sim_product_pack_a, PATH)(const struct sim_panels *panels,
				    const struct sim_product_task *t, unsigned first,
				    unsigned rows, uint8_t *scratch, int64_t k0, unsigned n,
				    unsigned ku, uint8_t *to)
{
	struct packing p = start(panels, t, scratch, false, k0, n, ku);
	size_t pitch = (size_t)SIM_PRODUCT_PITCH * p.unit;
	size_t line = (size_t)SIM_PRODUCT_LINE * p.unit;
	unsigned step = panels->kernel.row_step;
	bool at_once = p.side->rows && p.side->elem == p.type;

	if (at_once)
		pack_rows(&p, first, rows, to, pitch);
	for (unsigned i = 0; i < rows && !p.side->by_lines && !at_once; i++)
		pack_row(&p, first + i, to + i * pitch);
	for (unsigned i = 0; i < rows && p.side->by_lines; i += SIM_PRODUCT_LINE) {
		unsigned w = rows - i < SIM_PRODUCT_LINE ? rows - i : SIM_PRODUCT_LINE;

		for (unsigned u = 0; u < ku; u++)
			pack_units(&p, u, first + i, w, p.turn + u * line);
		panels->transpose(to + i * pitch, (int64_t)pitch, p.turn, (int64_t)line, ku, w);
	}
	for (unsigned i = rows; i % step; i++)
		memset(to + i * pitch, 0, (size_t)ku * p.unit);
}

void NAME(sim_product_pack_b, PATH)(const struct sim_panels *panels,
				    const struct sim_product_task *t, unsigned first,
				    unsigned cols, uint8_t *scratch, int64_t k0, unsigned n,
				    unsigned ku, uint8_t *to)
{
	struct packing p = start(panels, t, scratch, true, k0, n, ku);
	size_t pitch = (size_t)SIM_PRODUCT_PITCH * p.unit;
	size_t line = (size_t)SIM_PRODUCT_LINE * p.unit;
	unsigned rest = cols % SIM_PRODUCT_LINE;

	if (rest)
		memset(to + (cols - rest) * (size_t)ku * p.unit, 0, ku * line);
	if (p.side->by_lines)
		pack_lines(&p, first, cols, to);
	for (unsigned j = 0; j < cols && !p.side->by_lines; j += SIM_PRODUCT_LINE) {
		unsigned w = cols - j < SIM_PRODUCT_LINE ? cols - j : SIM_PRODUCT_LINE;

		for (unsigned i = 0; i < w; i++)
			pack_row(&p, first + j + i, p.turn + i * pitch);
		panels->transpose(to + (size_t)j * ku * p.unit, (int64_t)line, p.turn,
				 (int64_t)pitch, w, ku);
	}
}

#undef STRIP
#undef AHEAD
#undef NAME
#undef NAME_
