/* SPDX-License-Identifier: Apache-2.0 */
/* Shapes and literals of HLO modules (hlo.h). */
#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#include "runtime/compiler/front/hlo.h"

/* ---- shapes ---- */

enum { TUPLE = 13 };

/* XLA's numbers of element types. */
static const uint8_t elems[] = {
	[1] = ELEM_PRED, [2] = ELEM_S8, [3] = ELEM_S16, [4] = ELEM_S32, [5] = ELEM_S64,
	[6] = ELEM_U8, [7] = ELEM_U16, [8] = ELEM_U32, [9] = ELEM_U64, [10] = ELEM_F16,
	[11] = ELEM_F32, [12] = ELEM_F64, [15] = ELEM_C64, [16] = ELEM_BF16, [17] = ELEM_TOKEN,
	[18] = ELEM_C128, [19] = ELEM_F8E5M2, [20] = ELEM_F8E4M3FN, [21] = ELEM_S4,
	[22] = ELEM_U4, [23] = ELEM_F8E4M3B11FNUZ, [24] = ELEM_F8E5M2FNUZ,
	[25] = ELEM_F8E4M3FNUZ, [26] = ELEM_S2, [27] = ELEM_U2, [28] = ELEM_F8E4M3,
	[29] = ELEM_F8E3M4, [32] = ELEM_F4E2M1FN, [33] = ELEM_F8E8M0FNU,
};

static const char *const others[] = {
	[14] = "an opaque type", [30] = "s1", [31] = "u1", [34] = "a buffer", [35] = "f6e3m2fn",
	[36] = "f6e2m3fn",
};

static const struct tc_type *tuple_type(struct hlo *r, const Hlo__Shape *s)
{
	const struct tc_type **parts = hlo_get(r, s->n_tuple_shapes, sizeof(*parts));

	for (size_t i = 0; i < s->n_tuple_shapes; i++)
		parts[i] = hlo_type(r, s->tuple_shapes[i]);
	return tc_tuple(r->c, parts, (unsigned)s->n_tuple_shapes);
}

const struct tc_type *hlo_type(struct hlo *r, const Hlo__Shape *s)
{
	int64_t dim[TC_MAX_RANK];
	unsigned elem;

	if (!s)
		hlo_bad(r, "a shape is missing");
	if (s->element_type == TUPLE)
		return tuple_type(r, s);
	elem = s->element_type > 0 && (size_t)s->element_type < sizeof(elems) ?
		elems[s->element_type] : 0;
	if (!elem && s->element_type > 0 &&
	    (size_t)s->element_type < sizeof(others) / sizeof(*others) &&
	    others[s->element_type])
		hlo_refuse(r, "values of %s do not run yet", others[s->element_type]);
	if (!elem)
		hlo_bad(r, "an element type of number %d", s->element_type);
	if (s->n_dimensions > TC_MAX_RANK)
		hlo_refuse(r, "an array of rank %zu; at most %d", s->n_dimensions, TC_MAX_RANK);
	for (size_t d = 0; d < s->n_dimensions; d++) {
		dim[d] = s->dimensions[d];
		if (dim[d] == INT64_MIN)
			hlo_refuse(r, "dim %zu has no bound: give the program static shapes, or "
				   "the dim a bound", d);
		if (dim[d] < 0)
			hlo_bad(r, "a dim of %" PRId64, dim[d]);
	}
	return tc_tensor(r->c, (enum elem)elem, (unsigned)s->n_dimensions, dim);
}

/* Of leaf *at on, which s has. */
static void give_bounds(const Hlo__Shape *s, struct tc_value **leaf, unsigned n, unsigned *at)
{
	struct tc_value *v;

	if (s->element_type == TUPLE) {
		for (size_t i = 0; i < s->n_tuple_shapes; i++)
			give_bounds(s->tuple_shapes[i], leaf, n, at);
		return;
	}
	v = *at < n ? leaf[(*at)++] : NULL;
	for (size_t d = 0; v && d < s->n_is_dynamic_dimension && d < v->type->rank; d++)
		if (s->is_dynamic_dimension[d] && v->type->dim[d])
			v->bounded |= (uint32_t)1 << d;
}

void hlo_give_bounds(struct hlo *r, const Hlo__Shape *s, const struct hlo_value *v)
{
	unsigned at = 0;

	(void)r;
	if (s)
		give_bounds(s, v->leaf, hlo_count(v->type), &at);
}

const struct tc_type *hlo_array_type(struct hlo *r, const struct hlo_insn *i)
{
	const struct tc_type *t = hlo_type(r, i->p->shape);

	if (t->is_tuple)
		hlo_bad(r, "its result is a tuple");
	return t;
}

/* ---- literals ---- */

struct elements { const void *p; size_t n, bytes; };

/* Where a literal keeps the elements of a type, as in memory; but for pred. */
static struct elements elements_of(const Hlo__Literal *l, enum elem elem)
{
#define LIST(type, name) case ELEM_##type: \
		return (struct elements){ l->name, l->n_##name, sizeof(*l->name) }
#define PAIRS(type, name) case ELEM_##type: \
		return (struct elements){ l->name, l->n_##name / 2, 2 * sizeof(*l->name) }
#define BYTES(type, name, size) case ELEM_##type: \
		return (struct elements){ l->name.data, l->name.len / (size), (size) }
	switch (elem) {
	LIST(S32, s32s);
	LIST(S64, s64s);
	LIST(U32, u32s);
	LIST(U64, u64s);
	LIST(F32, f32s);
	LIST(F64, f64s);
	PAIRS(C64, c64s);
	PAIRS(C128, c128s);
	BYTES(U8, u8s, 1);
	BYTES(S8, s8s, 1);
	BYTES(U16, u16s, 2);
	BYTES(S16, s16s, 2);
	BYTES(F16, f16s, 2);
	BYTES(BF16, bf16s, 2);
	BYTES(F8E5M2, f8e5m2s, 1);
	BYTES(F8E4M3FN, f8e4m3fns, 1);
	BYTES(F8E4M3B11FNUZ, f8e4m3b11fnuzs, 1);
	BYTES(F8E5M2FNUZ, f8e5m2fnuzs, 1);
	BYTES(F8E4M3FNUZ, f8e4m3fnuzs, 1);
	BYTES(F8E4M3, f8e4m3s, 1);
	BYTES(F8E3M4, f8e3m4s, 1);
	BYTES(F8E8M0FNU, f8e8m0fnus, 1);
	BYTES(F4E2M1FN, f4e2m1fns, 1);
	BYTES(S4, s4s, 1);
	BYTES(U4, u4s, 1);
	BYTES(S2, s2s, 1);
	BYTES(U2, u2s, 1);
	default: return (struct elements){ 0 };
	}
#undef LIST
#undef PAIRS
#undef BYTES
}

/* Of types narrower than a byte, what the bits above say goes: signs are spread. */
static void tidy_narrow(uint8_t *p, size_t n, enum elem elem)
{
	unsigned bits = elem_bits(elem), mask = (1u << bits) - 1, sign = 1u << (bits - 1);

	for (size_t i = 0; i < n; i++) {
		unsigned v = p[i] & mask;

		if (elem_class(elem) == ELEM_CLASS_SINT && v & sign)
			v |= ~mask & 0xff;
		p[i] = (uint8_t)v;
	}
}

/* The order of dims from slowest to fastest; false: row-major. */
static bool read_order(struct hlo *r, const Hlo__Shape *s, const struct tc_type *t,
		       unsigned *order)
{
	const Hlo__Layout *l = s ? s->layout : NULL;
	bool differs = false;
	uint64_t seen = 0;

	if (!l || !l->n_minor_to_major || t->rank < 2)
		return false;
	if (l->n_minor_to_major != t->rank)
		hlo_bad(r, "a layout of %zu dims for an array of rank %u", l->n_minor_to_major,
			t->rank);
	for (unsigned d = 0; d < t->rank; d++) {
		int64_t dim = l->minor_to_major[t->rank - 1u - d];

		if (dim < 0 || dim >= t->rank || seen >> dim & 1)
			hlo_bad(r, "a layout with dim %" PRId64 ", out of range or twice", dim);
		seen |= 1ull << dim;
		order[d] = (unsigned)dim;
		differs |= dim != d;
	}
	return differs;
}

/* Elements that lie in another order of dims, to row-major. */
static void reorder(const struct tc_type *t, const unsigned *order, const uint8_t *from,
		    uint8_t *to)
{
	int64_t stride[TC_MAX_RANK], at[TC_MAX_RANK] = { 0 }, size = 1, offset = 0;
	unsigned unit = elem_bytes(t->elem);

	for (unsigned k = t->rank; k-- > 0; size *= t->dim[order[k]])
		stride[order[k]] = size;
	for (int64_t i = 0; i < t->count; i++) {
		memcpy(to + i * unit, from + offset * unit, unit);
		for (unsigned d = t->rank; d-- > 0;) {
			offset += stride[d];
			if (++at[d] < t->dim[d])
				break;
			offset -= stride[d] * t->dim[d];
			at[d] = 0;
		}
	}
}

static bool is_splat(const uint8_t *p, int64_t count, unsigned unit)
{
	return count > 1 && !memcmp(p, p + unit, (size_t)(count - 1) * unit);
}

static struct tc_value *constant(struct hlo *r, struct tc_block *b, const Hlo__Literal *l,
				 const struct tc_type *t)
{
	unsigned order[TC_MAX_RANK], unit = elem_bytes(t->elem);
	struct tc_build to = { .c = r->c, .block = b, .where = hlo_where(r, r->now) };
	struct elements e = elements_of(l, (enum elem)t->elem);
	struct tc_value *v;
	uint8_t *bytes;

	if (t->elem == ELEM_TOKEN)
		hlo_bad(r, "a constant token");
	if (t->elem == ELEM_PRED)
		e = (struct elements){ NULL, l->n_preds, 1 };
	if (e.n != (uint64_t)t->count)
		hlo_bad(r, "its literal has %zu elements of %s; its shape, %" PRId64, e.n,
			elem_text(t->elem), t->count);
	bytes = hlo_get(r, e.n, unit);
	for (size_t i = 0; !e.p && i < e.n; i++)
		bytes[i] = l->preds[i] != 0;
	if (e.p && e.n)
		memcpy(bytes, e.p, e.n * unit);
	if (elem_bits(t->elem) < 8 && t->elem != ELEM_PRED)
		tidy_narrow(bytes, e.n, (enum elem)t->elem);
	if (read_order(r, l->shape, t, order)) {
		uint8_t *turned = hlo_get(r, e.n, unit);

		reorder(t, order, bytes, turned);
		bytes = turned;
	}
	v = tc_build(&to, TC_CONSTANT, t, 0, NULL);
	tc_set_attr(r->c, v->def, (struct tc_attr){ .key = TC_KEY(r->c, "value"),
		.kind = TC_ATTR_DENSE, .type = t, .data = bytes,
		.is_splat = is_splat(bytes, t->count, unit) });
	return v;
}

struct hlo_value hlo_literal(struct hlo *r, struct tc_block *b, const Hlo__Literal *l,
			     const struct tc_type *t)
{
	struct hlo_value v = { t, hlo_get(r, t->is_tuple ? t->leaves : 1, sizeof(*v.leaf)) };
	unsigned n = 0;

	if (!l)
		hlo_bad(r, "its literal is missing");
	if (l->shape && hlo_type(r, l->shape) != t)
		hlo_bad(r, "its literal has another shape");
	if (!t->is_tuple) {
		v.leaf[0] = constant(r, b, l, t);
		return v;
	}
	if (l->n_tuple_literals != t->n_parts)
		hlo_bad(r, "its literal has %zu parts; its shape, %u", l->n_tuple_literals,
			t->n_parts);
	for (unsigned i = 0; i < t->n_parts; i++) {
		struct hlo_value part = hlo_literal(r, b, l->tuple_literals[i], t->parts[i]);
		unsigned m = t->parts[i]->is_tuple ? t->parts[i]->leaves : 1;

		if (m)
			memcpy(v.leaf + n, part.leaf, m * sizeof(*v.leaf));
		n += m;
	}
	return v;
}
