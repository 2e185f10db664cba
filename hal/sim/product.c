/* SPDX-License-Identifier: Apache-2.0 */
/* Packing, the kernels for types other than f32, and epilogues (product.h). */
#include "hal/sim/product.h"

#include <string.h>

/* ---- one element to the accumulator's type ---- */

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

/* A float of 1 byte with the given exponent bits and bias. */
static float tiny_to_float(uint8_t x, unsigned e_bits, int bias, bool is_fn, bool is_uz)
{
	unsigned m_bits = 7 - e_bits, e = x >> m_bits & ((1u << e_bits) - 1);
	unsigned m = x & ((1u << m_bits) - 1), all = (1u << e_bits) - 1;
	float f;

	if (is_uz && x == 0x80)
		return __builtin_nanf("");
	if (!is_uz && e == all && (!is_fn || m == (1u << m_bits) - 1))
		return is_fn || m ? __builtin_nanf("") : x & 0x80 ? -__builtin_inff() :
								    __builtin_inff();
	f = e ? __builtin_ldexpf((float)((1u << m_bits) + m), (int)e - bias - (int)m_bits) :
		__builtin_ldexpf((float)m, 1 - bias - (int)m_bits);
	return x & 0x80 ? -f : f;
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

static void load_one(const uint8_t *p, unsigned elem, unsigned acc, uint8_t *to)
{
	int64_t i;
	double d;
	float f;

	switch (acc) {
	case ELEM_F32: f = load_f32(p, elem); memcpy(to, &f, 4); break;
	case ELEM_F64: d = load_f64(p, elem); memcpy(to, &d, 8); break;
	case ELEM_C64:
	case ELEM_C128: memcpy(to, p, elem_bytes(acc)); break;
	case ELEM_PRED: *to = *p != 0; break;
	default: i = load_int(p, elem); memcpy(to, &i, elem_bytes(acc)); break;
	}
}

/* ---- packing: [kc][line] panels, the last filled up with zeros ---- */

static void pack_runs(const struct sim_product_task *t, const struct sim_side *s, unsigned first,
		      unsigned n, unsigned line, int64_t k0, unsigned kc, uint8_t *to)
{
	unsigned acc = t->mm->packed, bytes = t->mm->packed_bytes;

	for (unsigned i = 0; i < n; i++)
		for (unsigned k = 0; k < kc;) {
			struct sim_run_of r = s->at(t, first + i, k0 + k);
			unsigned end = r.n < kc - k ? k + r.n : kc;
			uint8_t *out = to + ((size_t)k * line + i) * bytes;
			size_t step = (size_t)line * bytes;

			if (!r.p)
				for (; k < end; k++, out += step)
					memset(out, 0, bytes);
			else if (s->elem == ELEM_F32 && acc == ELEM_F32)
				for (; k < end; k++, out += step, r.p += r.step)
					memcpy(out, r.p, 4);
			else
				for (; k < end; k++, out += step, r.p += r.step)
					load_one(r.p, s->elem, acc, out);
		}
	for (unsigned i = n; i < line; i++)
		for (unsigned k = 0; k < kc; k++)
			memset(to + ((size_t)k * line + i) * bytes, 0, bytes);
}

/* A row of neighbours, converted. */
static void pack_line(const uint8_t *p, unsigned elem, unsigned acc, unsigned n,
		      unsigned bytes, uint8_t *to)
{
	unsigned each = elem_bytes(elem);

	if (elem == acc) {
		memcpy(to, p, (size_t)n * bytes);
	} else if (elem == ELEM_BF16 && acc == ELEM_F32) {
		for (unsigned j = 0; j < n; j++) {
			uint16_t h;
			uint32_t bits;

			memcpy(&h, p + 2 * j, 2);
			bits = (uint32_t)h << 16;
			memcpy(to + 4 * j, &bits, 4);
		}
	} else if (elem == ELEM_S8 && acc == ELEM_F32) {
		for (unsigned j = 0; j < n; j++)
			((float *)(void *)to)[j] = (float)((const int8_t *)p)[j];
	} else {
		for (unsigned j = 0; j < n; j++)
			load_one(p + (size_t)j * each, elem, acc, to + (size_t)j * bytes);
	}
}

static void pack_lines(const struct sim_product_task *t, const struct sim_side *s, unsigned first,
		       unsigned n, unsigned line, int64_t k0, unsigned kc, uint8_t *to)
{
	unsigned acc = t->mm->packed, bytes = t->mm->packed_bytes;

	for (unsigned k = 0; k < kc;) {
		struct sim_run_of r = s->at(t, first, k0 + k);
		unsigned end = r.n < kc - k ? k + r.n : kc;

		for (; k < end; k++, r.p += r.step) {
			uint8_t *out = to + (size_t)k * line * bytes;

			pack_line(r.p, s->elem, acc, n, bytes, out);
			memset(out + (size_t)n * bytes, 0, (size_t)(line - n) * bytes);
		}
	}
}

static void pack(const struct sim_product_task *t, const struct sim_side *s, unsigned n,
		 unsigned line, int64_t k0, unsigned kc, uint8_t *to)
{
	bool lines = s->pitch == elem_bytes(s->elem);

	for (unsigned i = 0; i < n; i += line) {
		(lines ? pack_lines : pack_runs)(t, s, i, n - i < line ? n - i : line, line, k0,
						 kc, to);
		to += (size_t)kc * line * t->mm->packed_bytes;
	}
}

/* ---- kernels of the other types: the same panels, mr = 4 ---- */

#define GENERIC(name, type, madd) \
	static SIM_PRODUCT_KERNEL(name) \
	{ \
		for (unsigned j = 0; j < cols; j += SIM_PRODUCT_LINE) \
			for (unsigned i = 0; i < rows; i++) { \
				const type *x = (const type *)a + \
						(size_t)(i / 4 * 4) * kc + i % 4; \
				const type *y = (const type *)b + (size_t)j * kc; \
				unsigned w = cols - j < SIM_PRODUCT_LINE ? \
					     cols - j : SIM_PRODUCT_LINE; \
				type *out = (type *)sums + (size_t)i * ld + j; \
				type s[SIM_PRODUCT_LINE] = { 0 }; \
	\
				for (unsigned k = 0; k < kc; k++) \
					for (unsigned c = 0; c < SIM_PRODUCT_LINE; c++) \
						madd(s[c], x[k * 4], y[k * SIM_PRODUCT_LINE + c]); \
				for (unsigned c = 0; c < w; c++) \
					madd##_join(out[c], s[c]); \
			} \
	}
#define MADD(s, x, y) ((s) += (x) * (y))
#define MADD_join(out, s) ((out) += (s))
#define BOTH(s, x, y) ((s) |= (x) & (y))
#define BOTH_join(out, s) ((out) |= (s))
typedef float _Complex complex64;
typedef double _Complex complex128;
GENERIC(kernel_f64, double, MADD)
GENERIC(kernel_32, uint32_t, MADD)
GENERIC(kernel_64, uint64_t, MADD)
GENERIC(kernel_c64, complex64, MADD)
GENERIC(kernel_c128, complex128, MADD)
GENERIC(kernel_pred, uint8_t, BOTH)

static int choose_kernel(struct sim_load *load, struct sim_product *mm)
{
	mm->mr = 4;
	switch (mm->acc) {
	case ELEM_F32:
		mm->mr = load->cpu->path == SIM_AVX512 ? 12 : load->cpu->path == SIM_AVX2 ? 3 : 1;
		mm->kernel = load->cpu->path == SIM_AVX512 ? sim_product_f32_avx512 :
			     load->cpu->path == SIM_AVX2 ? sim_product_f32_avx2 :
							   sim_product_f32_portable;
		break;
	case ELEM_F64: mm->kernel = kernel_f64; break;
	case ELEM_S32:
	case ELEM_U32: mm->kernel = kernel_32; break;
	case ELEM_S64:
	case ELEM_U64: mm->kernel = kernel_64; break;
	case ELEM_C64: mm->kernel = kernel_c64; break;
	case ELEM_C128: mm->kernel = kernel_c128; break;
	case ELEM_PRED: mm->kernel = kernel_pred; break;
	default:
		return sim_refuse(load, HW_ST_BAD_PROGRAM, "sums in %s", elem_text(mm->acc));
	}
	mm->acc_bytes = mm->packed_bytes = elem_bytes(mm->acc);
	mm->packed = mm->acc;
	return 0;
}

static bool is_byte(unsigned elem)
{
	return elem == ELEM_S8 || elem == ELEM_U8;
}

/* 255 * 255 * SIM_PRODUCT_KC is less than 2^24: f32 adds such products exactly. */
static void choose_f32(struct sim_load *load, struct sim_product *mm)
{
	_Static_assert(255 * 255 * SIM_PRODUCT_KC < 1 << 24, "exact sums of a panel");
	uint8_t acc = mm->acc;

	if ((acc != ELEM_S32 && acc != ELEM_U32) || !is_byte(mm->a.elem) ||
	    !is_byte(mm->b.elem))
		return;
	mm->acc = ELEM_F32;
	choose_kernel(load, mm);
	mm->acc = acc;
}

/* Adds a panel's exact sums to the whole ones, and empties them. */
static void add_panel(float *panel, int32_t *sums, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		sums[i] = (int32_t)((uint32_t)sums[i] + (uint32_t)(int32_t)panel[i]);
		panel[i] = 0;
	}
}

/* Whether elements of `elem` may be summed in acc. */
static bool fits(unsigned elem, unsigned acc)
{
	if (!elem_valid(elem) || !elem_bytes(elem))
		return false;
	switch (elem_class(acc)) {
	case ELEM_CLASS_FLOAT:
		return elem_class(elem) == ELEM_CLASS_FLOAT && elem != ELEM_F8E8M0FNU &&
		       elem != ELEM_F4E2M1FN;
	case ELEM_CLASS_COMPLEX:
	case ELEM_CLASS_PRED:
		return elem == acc;
	default:
		return elem_class(elem) == ELEM_CLASS_SINT ||
		       elem_class(elem) == ELEM_CLASS_UINT;
	}
}

static size_t up(size_t n)
{
	return (n + 63) & ~(size_t)63;
}

int sim_product_prepare(struct sim_load *load, struct sim_product *mm, const struct isa_body *body,
		   const struct isa_operand *in, const struct isa_operand *out,
		   const struct isa_uop *uops, unsigned first_operand)
{
	size_t at = 0;
	int ret = choose_kernel(load, mm);

	if (ret)
		return ret;
	if (!fits(mm->a.elem, mm->acc) || !fits(mm->b.elem, mm->acc))
		return sim_refuse(load, HW_ST_BAD_PROGRAM, "products of %s and %s summed in %s",
				  elem_text(mm->a.elem), elem_text(mm->b.elem),
				  elem_text(mm->acc));
	choose_f32(load, mm);
	if (body->row_rank || body->rank < 2 || body->rank > ISA_MAX_RANK ||
	    body->n_in > ISA_MAX_IN || body->n_out > ISA_MAX_OUT || !body->n_out)
		return sim_refuse(load, HW_ST_BAD_PROGRAM, "the body is out of range");
	mm->points = sim_body_points(load->cpu, body);
	if (mm->points < SIM_PRODUCT_NB)
		mm->points = SIM_PRODUCT_NB;
	ret = sim_body_prepare(load, body, in, out, uops, &mm->acc, 1, mm->points, &mm->body);
	for (unsigned j = 0; !ret && j < body->n_in; j++) {
		ret = sim_ref(load, &in[j], first_operand + j, false, 0, body->rank, body->dim,
			      NULL, 0, &mm->in[j]);
		mm->elems_in[j] = in[j].elem;
	}
	for (unsigned j = 0; !ret && j < body->n_out; j++) {
		if (out[j].combine != ISA_STORE)
			ret = sim_refuse(load, HW_ST_BAD_PROGRAM, "a product's output combines");
		mm->value[j] = out[j].value;
		if (!ret)
			ret = sim_ref(load, &out[j], first_operand + body->n_in + j, true, 0,
				      body->rank, body->dim, NULL, 0, &mm->out[j]);
	}
	if (ret)
		return ret;
	mm->n_in = body->n_in;
	mm->n_out = body->n_out;
	mm->is_direct = !body->n_uop && mm->n_out == 1 && !mm->value[0] &&
			out[0].elem == mm->acc;
	mm->sums_at = at;
	at += up((size_t)SIM_PRODUCT_MB * SIM_PRODUCT_NB * mm->acc_bytes);
	mm->panel_at = at;
	at += mm->packed == mm->acc ? 0 : up((size_t)SIM_PRODUCT_MB * SIM_PRODUCT_NB * 4);
	mm->a_at = at;
	at += up((size_t)(SIM_PRODUCT_MB + SIM_PRODUCT_LINE) * SIM_PRODUCT_KC * mm->acc_bytes);
	mm->b_at = at;
	at += up((size_t)SIM_PRODUCT_NB * SIM_PRODUCT_KC * mm->acc_bytes);
	mm->room_at = at;
	at += up((size_t)mm->n_in * mm->points * 16);
	mm->body_at = at;
	at += up(sim_body_scratch(mm->body));
	sim_need_scratch(load, at);
	return 0;
}

void *sim_product_sum(const struct sim_product_task *t, void *scratch)
{
	const struct sim_product *mm = t->mm;
	uint8_t *s = scratch, *sums = s + mm->sums_at, *panel = s + mm->panel_at;
	size_t n = (size_t)t->rows * t->cols;
	bool is_whole = mm->packed == mm->acc;

	memset(sums, 0, n * mm->acc_bytes);
	if (!is_whole)
		memset(panel, 0, n * 4);
	for (int64_t k = 0; k < mm->k; k += SIM_PRODUCT_KC) {
		unsigned kc = mm->k - k < SIM_PRODUCT_KC ? (unsigned)(mm->k - k) : SIM_PRODUCT_KC;

		if (sim_stopped(t->run))
			break;
		pack(t, &mm->a, t->rows, mm->mr, k, kc, s + mm->a_at);
		pack(t, &mm->b, t->cols, SIM_PRODUCT_LINE, k, kc, s + mm->b_at);
		mm->kernel(s + mm->a_at, s + mm->b_at, is_whole ? sums : panel, kc, t->rows,
			   t->cols, t->cols);
		if (!is_whole)
			add_panel((float *)(void *)panel, (int32_t *)(void *)sums, n);
	}
	return sums;
}

static void store_direct(const struct sim_product_task *t, const uint8_t *sums, unsigned row,
			 unsigned rows, const int64_t *index, const struct sim_ref *ref,
			 unsigned rank, uint8_t *first)
{
	unsigned bytes = t->mm->acc_bytes;

	for (unsigned d = 0; d < rank; d++)
		first += index[d] * ref->stride[d];
	for (unsigned i = 0; i < rows; i++, first += ref->stride[rank - 2]) {
		const uint8_t *from = sums + (size_t)(row + i) * t->cols * bytes;
		uint8_t *to = first;

		if (ref->stride[rank - 1] == bytes) {
			memcpy(to, from, (size_t)t->cols * bytes);
			continue;
		}
		for (unsigned j = 0; j < t->cols; j++, to += ref->stride[rank - 1])
			memcpy(to, from + (size_t)j * bytes, bytes);
	}
}

static void finish_box(const struct sim_product_task *t, uint8_t *s, unsigned row, unsigned rows,
		       const int64_t *index, unsigned rank, const uint8_t *const *first_in,
		       uint8_t *const *first_out)
{
	const struct sim_product *mm = t->mm;
	struct sim_tile tile = { .rank = rank, .rows = rows, .cols = t->cols, .col_dims = 1,
				 .col_dim = { t->cols } };

	memcpy(tile.index, index, sizeof(tile.index));
	tile.pre[0] = s + mm->sums_at + (size_t)row * t->cols * mm->acc_bytes;
	for (unsigned j = 0; j < mm->n_in; j++)
		sim_tile_in(&mm->in[j], first_in[j], &tile, j,
			    s + mm->room_at + (size_t)j * mm->points * 16);
	sim_body_run(mm->body, t->run, &tile, s + mm->body_at);
	for (unsigned j = 0; j < mm->n_out; j++) {
		bool is_spread, is_row;
		const void *v = sim_body_value(mm->body, mm->value[j], &tile, s + mm->body_at,
					       &is_spread, &is_row);

		sim_tile_out(&mm->out[j], first_out[j], &tile, v, is_spread, is_row, ISA_STORE);
	}
}

void sim_product_finish(const struct sim_product_task *t, void *scratch, unsigned row,
			unsigned rows,
		   const int64_t *index, const uint8_t *const *first_in,
		   uint8_t *const *first_out)
{
	const struct sim_product *mm = t->mm;
	unsigned rank = (unsigned)t->extra[3], most = mm->points / t->cols;
	int64_t at[ISA_MAX_RANK];

	if (mm->is_direct) {
		store_direct(t, (uint8_t *)scratch + mm->sums_at, row, rows, index, &mm->out[0],
			     rank, first_out[0]);
		return;
	}
	memcpy(at, index, sizeof(at));
	for (unsigned i = 0; i < rows; i += most) {
		finish_box(t, scratch, row + i, rows - i < most ? rows - i : most, at, rank,
			   first_in, first_out);
		at[rank - 2] += most;
	}
}
