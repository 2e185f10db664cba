/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Uniform quantized types as VHLO encodes them: integers of a storage type, from `min` to `max`,
 * which stand for (integer - zero) * scale in an expressed type; one scale and zero for all
 * elements, or one for each index of a dim. The bytes are hostile: what is given has been held to
 * the constraints of StableHLO's specification.
 */
#include <math.h>
#include <string.h>

#include "runtime/compiler/front/reader.h"

#define IS_SIGNED 1u	/* of a type's flags */

/* What a scale may be: normal numbers, since the device reads others as zero. */
static const struct range { uint8_t elem, precision; double least, most; } expressed_types[] = {
	{ ELEM_F16, 11, 0x1p-14, 65504 },
	{ ELEM_BF16, 8, 0x1p-126, 0x1.fep127 },
	{ ELEM_F32, 24, 0x1p-126, 0x1.fffffep127 },
	{ ELEM_F64, 53, 0x1p-1022, 0x1.fffffffffffffp1023 },
};

static double read_f64(struct bc *r, struct bc_cursor *c)
{
	int64_t bits = bc_svarint(r, c);
	double v;

	memcpy(&v, &bits, sizeof(v));
	return v;
}

static const struct range *range_of(struct bc *r, unsigned elem)
{
	for (unsigned i = 0; i < sizeof(expressed_types) / sizeof(*expressed_types); i++)
		if (elem == expressed_types[i].elem)
			return &expressed_types[i];
	tc_fail(r->c, ERR_UNIMPLEMENTED, NULL, "quantized types that stand for %s do not run: for "
		"f16, bf16, f32 and f64 they do", elem_text(elem));
}

/* VHLO's integers have no sign of their own in a quantized type: its flags say. */
static uint8_t storage_of(struct bc *r, const uint8_t *at, unsigned elem, uint64_t flags)
{
	static const uint8_t s[] = { ELEM_S2, ELEM_S4, ELEM_S8, ELEM_S16, ELEM_S32 };
	static const uint8_t u[] = { ELEM_U2, ELEM_U4, ELEM_U8, ELEM_U16, ELEM_U32 };

	if (flags & ~(uint64_t)IS_SIGNED)
		bc_bad(r, at, "a quantized type with flags %llu", (unsigned long long)flags);
	for (unsigned i = 0; i < sizeof(s); i++)
		if (elem == s[i] || (elem == u[i] && !(flags & IS_SIGNED)))
			return flags & IS_SIGNED ? s[i] : u[i];
	bc_bad(r, at, "a quantized type of integers of type %s", elem_text(elem));
}

static double *read_scales(struct bc *r, struct bc_cursor *c, const struct range *of, uint64_t n)
{
	double *scale = bc_get(r, n, sizeof(*scale));
	const uint8_t *at = c->p;

	for (uint64_t i = 0; i < n; i++) {
		scale[i] = read_f64(r, c);
		if (!isfinite(scale[i]) || scale[i] <= 0)
			bc_bad(r, at, "a quantized type with a scale of %g: it must be above zero "
			       "and finite", scale[i]);
		if (scale[i] < of->least || scale[i] > of->most)
			tc_fail(r->c, ERR_UNIMPLEMENTED, NULL, "a quantized type with a scale of "
				"%g for %s: scales from %g to %g run", scale[i],
				elem_text(of->elem), of->least, of->most);
	}
	return scale;
}

static int64_t *read_zeros(struct bc *r, struct bc_cursor *c, uint64_t n)
{
	int64_t *zero = bc_get(r, n, sizeof(*zero));

	for (uint64_t i = 0; i < n; i++)
		zero[i] = bc_svarint(r, c);
	return zero;
}

static void check_bounds(struct bc *r, const uint8_t *at, const struct bc_quant *q)
{
	bool is_signed = elem_class(q->storage) == ELEM_CLASS_SINT;
	int64_t span = (int64_t)1 << elem_bits(q->storage);
	int64_t least = is_signed ? -span / 2 : 0, most = least + span - 1;

	if (q->min < least || q->max > most || q->min >= q->max)
		bc_bad(r, at, "a quantized type from %lld to %lld of %s: it must be within %lld "
		       "and %lld, and not of one number", (long long)q->min, (long long)q->max,
		       elem_text(q->storage), (long long)least, (long long)most);
	for (uint32_t i = 0; i < q->n; i++)
		if (q->zero[i] < q->min || q->zero[i] > q->max)
			bc_bad(r, at, "a quantized type with a zero point of %lld, which is not "
			       "from %lld to %lld", (long long)q->zero[i], (long long)q->min,
			       (long long)q->max);
}

/* As MLIR writes it, with the first of many scales. */
static const char *spell(struct bc *r, const struct bc_quant *q)
{
	bool is_signed = elem_class(q->storage) == ELEM_CLASS_SINT;
	const char *text;

	if (q->dim < 0)
		text = arena_printf(&r->c->arena, "!quant.uniform<%c%u<%lld:%lld>:%s, %g:%lld>",
				    is_signed ? 'i' : 'u', elem_bits(q->storage),
				    (long long)q->min, (long long)q->max, elem_text(q->expressed),
				    q->scale[0], (long long)q->zero[0]);
	else
		text = arena_printf(&r->c->arena, "!quant.uniform<%c%u<%lld:%lld>:%s:%d, "
				    "{%g:%lld%s}>", is_signed ? 'i' : 'u', elem_bits(q->storage),
				    (long long)q->min, (long long)q->max, elem_text(q->expressed),
				    q->dim, q->scale[0], (long long)q->zero[0],
				    q->n > 1 ? ", ..." : "");
	if (!text)
		tc_fail(r->c, ERR_RESOURCE_EXHAUSTED, NULL, "out of memory while reading");
	return text;
}

static void read_per_axis(struct bc *r, struct bc_cursor *c, const struct range *of,
			  struct bc_quant *q)
{
	const uint8_t *at = c->p;
	uint64_t dim = bc_varint(r, c), n;

	if (dim >= TC_MAX_RANK)
		bc_bad(r, at, "a quantized type with scales along dim %llu",
		       (unsigned long long)dim);
	q->dim = (int32_t)dim;
	q->min = bc_svarint(r, c);
	q->max = bc_svarint(r, c);
	q->n = (uint32_t)bc_count(r, c);
	q->scale = read_scales(r, c, of, q->n);
	n = bc_count(r, c);
	if (n != q->n || !n)
		bc_bad(r, at, "a quantized type with %u scales and %llu zero points", q->n,
		       (unsigned long long)n);
	q->zero = read_zeros(r, c, n);
}

const struct bc_quant *bc_read_quant(struct bc *r, struct bc_cursor *c, bool is_per_axis,
				     uint64_t flags, unsigned storage, unsigned expressed)
{
	struct bc_quant *q = bc_get(r, 1, sizeof(*q));
	const struct range *of = range_of(r, expressed);
	const uint8_t *at = c->p;

	q->storage = storage_of(r, at, storage, flags);
	q->expressed = of->elem;
	q->precision = of->precision;
	if (is_per_axis) {
		read_per_axis(r, c, of, q);
	} else {
		q->dim = -1;
		q->n = 1;
		q->scale = read_scales(r, c, of, 1);
		q->zero = read_zeros(r, c, 1);
		q->min = bc_svarint(r, c);
		q->max = bc_svarint(r, c);
	}
	check_bounds(r, at, q);
	q->text = spell(r, q);
	return q;
}
