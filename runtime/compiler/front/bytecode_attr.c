/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attributes, types and locations of MLIR bytecode, decoded when asked for. The tables
 * are hostile: an entry may name any other, so recursion is bounded and a cycle is an
 * error. Codes are those of the VHLO and builtin dialects' bytecode.
 */
#include <stdio.h>
#include <string.h>

#include "runtime/compiler/front/reader.h"

/* ---- types ---- */

/* VHLO type codes that are plain element types. */
static const uint8_t vhlo_elems[] = {
	[0] = ELEM_PRED, [2] = ELEM_BF16, [3] = ELEM_F16, [4] = ELEM_F32, [5] = ELEM_F64,
	[6] = ELEM_F8E4M3FN, [7] = ELEM_F8E5M2, [9] = ELEM_S64, [10] = ELEM_S4,
	[11] = ELEM_S8, [12] = ELEM_S16, [13] = ELEM_S32, [14] = ELEM_S64, [15] = ELEM_U4,
	[16] = ELEM_U8, [17] = ELEM_U16, [18] = ELEM_U32, [19] = ELEM_U64,
	[27] = ELEM_F8E4M3FNUZ, [28] = ELEM_F8E5M2FNUZ, [29] = ELEM_F8E4M3B11FNUZ,
	[31] = ELEM_S2, [32] = ELEM_U2, [35] = ELEM_F8E4M3, [36] = ELEM_F8E3M4,
	[37] = ELEM_F4E2M1FN, [40] = ELEM_F8E8M0FNU,
};

/* The same of MLIR's own types, which Shardy's ops have. */
static const uint8_t builtin_elems[] = {
	[1] = ELEM_S64, [3] = ELEM_BF16, [4] = ELEM_F16, [5] = ELEM_F32, [6] = ELEM_F64,
	[22] = ELEM_F8E5M2, [23] = ELEM_F8E4M3, [24] = ELEM_F8E4M3FN, [25] = ELEM_F8E5M2FNUZ,
	[26] = ELEM_F8E4M3FNUZ, [27] = ELEM_F8E4M3B11FNUZ, [28] = ELEM_F8E3M4,
	[29] = ELEM_F4E2M1FN, [32] = ELEM_F8E8M0FNU,
};

static const char *const vhlo_type_names[] = {
	[25] = "an unranked tensor",
	[26] = "witness", [33] = "none", [34] = "tf32",
	[38] = "f6E2M3FN", [39] = "f6E3M2FN", [41] = "buffer",
	[8] = "a function type",
};

static const struct tc_type *scalar(struct bc *r, unsigned elem)
{
	return tc_tensor(r->c, (enum elem)elem, 0, NULL);
}

static const struct tc_type *complex_of(struct bc *r, const struct tc_type *part,
					const uint8_t *at)
{
	if (part->elem == ELEM_F32)
		return scalar(r, ELEM_C64);
	if (part->elem == ELEM_F64)
		return scalar(r, ELEM_C128);
	bc_bad(r, at, "complex of %s", elem_text(part->elem));
}

/* The dims of e's type, those that are not known as long as their bounds. */
static uint64_t dims(struct bc *r, struct bc_cursor *c, struct bc_entry *e,
		     const struct bc_attr *bounds, int64_t *dim)
{
	const uint8_t *at = c->p;
	uint64_t rank = bc_count(r, c);

	if (rank > TC_MAX_RANK)
		tc_fail(r->c, ERR_UNIMPLEMENTED, NULL, "a tensor of rank %llu; at most %d",
			(unsigned long long)rank, TC_MAX_RANK);
	if (bounds && (bounds->kind != BC_BOUNDS || bounds->n != rank))
		bc_bad(r, at, "a tensor of rank %llu with an encoding that is not its bounds",
		       (unsigned long long)rank);
	for (unsigned d = 0; d < rank; d++) {
		bool is_bounded = bounds && bounds->bounds[d] != INT64_MIN;

		dim[d] = bc_svarint(r, c);
		if (dim[d] != INT64_MIN && is_bounded)
			bc_bad(r, at, "a dim of %lld that has a bound, too", (long long)dim[d]);
		if (dim[d] == INT64_MIN && !is_bounded) {
			e->refused = "a dim without a bound: give the program static shapes, or "
				     "the dim a bound (#stablehlo.bounds)";
			dim[d] = 0;
		}
		if (is_bounded) {
			dim[d] = bounds->bounds[d];
			e->bounded |= dim[d] ? (uint32_t)1 << d : 0;
		}
		if (dim[d] < 0)
			bc_bad(r, at, "a dim of %lld", (long long)dim[d]);
	}
	return rank;
}

static const struct tc_type *tensor(struct bc *r, struct bc_cursor *c, struct bc_entry *e,
				    const struct bc_attr *bounds)
{
	const struct bc_quant **quant = &e->quant;
	int64_t dim[TC_MAX_RANK];
	const uint8_t *at = c->p;
	uint64_t rank = dims(r, c, e, bounds, dim);
	const struct tc_type *elem;
	uint64_t index;

	index = bc_index(r, c, r->n_types, "type");
	elem = bc_type(r, index);
	if (elem->is_tuple || elem->rank)
		bc_bad(r, at, "a tensor whose element is no scalar");
	*quant = r->types[index].quant;
	if (*quant && (*quant)->dim >= 0 && ((unsigned)(*quant)->dim >= rank ||
					     dim[(*quant)->dim] != (*quant)->n))
		bc_bad(r, at, "a tensor of %s, whose %u scales do not fit a dim of %lld",
		       (*quant)->text, (*quant)->n, (unsigned)(*quant)->dim < rank ?
		       (long long)dim[(*quant)->dim] : 0);
	return tc_tensor(r->c, (enum elem)elem->elem, (unsigned)rank, dim);
}

static const struct tc_type *tuple(struct bc *r, struct bc_cursor *c, struct bc_entry *e)
{
	uint64_t n = bc_count(r, c);
	const struct tc_type **parts = bc_get(r, n, sizeof(*parts));

	for (uint64_t i = 0; i < n; i++) {
		uint64_t index = bc_index(r, c, r->n_types, "type");

		parts[i] = bc_type(r, index);
		if (r->types[index].quant)
			tc_fail(r->c, ERR_UNIMPLEMENTED, NULL, "a tuple with %s in it does not "
				"run: give its arrays one by one", r->types[index].quant->text);
		if (r->types[index].bounded || r->types[index].refused)
			e->refused = "a tuple with arrays of dynamic dims: give these one by one";
	}
	return tc_tuple(r->c, parts, (unsigned)n);
}

/* Of a quantized type: an element type, and none that is quantized itself. */
static unsigned plain_elem(struct bc *r, struct bc_cursor *c)
{
	const uint8_t *at = c->p;
	uint64_t index = bc_index(r, c, r->n_types, "type");
	const struct tc_type *t = bc_type(r, index);

	if (t->is_tuple || t->rank || r->types[index].quant)
		bc_bad(r, at, "a quantized type of what is no element");
	return t->elem;
}

static const struct bc_quant *quantized(struct bc *r, struct bc_cursor *c, bool is_per_axis)
{
	uint64_t flags = bc_varint(r, c);
	unsigned storage = plain_elem(r, c), expressed = plain_elem(r, c);

	return bc_read_quant(r, c, is_per_axis, flags, storage, expressed);
}

static const struct tc_type *vhlo_type(struct bc *r, struct bc_cursor *c, struct bc_entry *e)
{
	const uint8_t *at = c->p;
	uint64_t code = bc_varint(r, c);

	if (code < sizeof(vhlo_elems) && vhlo_elems[code])
		return scalar(r, vhlo_elems[code]);
	switch (code) {
	case 1:
		return complex_of(r, bc_type(r, bc_index(r, c, r->n_types, "type")), at);
	case 20:
		return tensor(r, c, e, NULL);
	case 21:
		return tensor(r, c, e, bc_attribute(r, bc_index(r, c, r->n_attrs, "attribute")));
	case 24:
	case 30:
		e->quant = quantized(r, c, code == 30);
		return scalar(r, e->quant->storage);
	case 22:
		return scalar(r, ELEM_TOKEN);
	case 23:
	case 42:	/* a future stands for its arrays */
		return tuple(r, c, e);
	default:
		break;
	}
	if (code < sizeof(vhlo_type_names) / sizeof(*vhlo_type_names) && vhlo_type_names[code])
		tc_fail(r->c, ERR_UNIMPLEMENTED, NULL, "values of type %s do not run yet",
			vhlo_type_names[code]);
	bc_bad(r, at, "unknown type code %llu", (unsigned long long)code);
}

static const struct tc_type *builtin_integer(struct bc *r, uint64_t v, const uint8_t *at)
{
	static const uint8_t widths[] = { 2, 4, 8, 16, 32, 64 };
	static const uint8_t s[] = { ELEM_S2, ELEM_S4, ELEM_S8, ELEM_S16, ELEM_S32, ELEM_S64 };
	static const uint8_t u[] = { ELEM_U2, ELEM_U4, ELEM_U8, ELEM_U16, ELEM_U32, ELEM_U64 };

	if (v >> 2 == 1)
		return scalar(r, ELEM_PRED);
	for (unsigned i = 0; i < sizeof(widths); i++)
		if (v >> 2 == widths[i])
			return scalar(r, (v & 3) == 2 ? u[i] : s[i]);
	bc_bad(r, at, "an integer type of %llu bits", (unsigned long long)(v >> 2));
}

static const struct tc_type *builtin_type(struct bc *r, struct bc_cursor *c, struct bc_entry *e)
{
	const uint8_t *at = c->p;
	uint64_t code = bc_varint(r, c);

	if (code < sizeof(builtin_elems) && builtin_elems[code])
		return scalar(r, builtin_elems[code]);
	switch (code) {
	case 0: return builtin_integer(r, bc_varint(r, c), at);
	case 9:
		return complex_of(r, bc_type(r, bc_index(r, c, r->n_types, "type")), at);
	case 13: return tensor(r, c, e, NULL);
	case 15: return tuple(r, c, e);
	default:
		tc_fail(r->c, ERR_UNIMPLEMENTED, NULL, "builtin type code %llu does not run "
			"yet (at byte %zu)", (unsigned long long)code,
			(size_t)(at - r->base));
	}
}

/* Enters a table entry: no text, no cycle, not too deep. */
static struct bc_cursor enter(struct bc *r, struct bc_entry *e)
{
	if (!e->is_custom)
		bc_bad(r, e->p, "an entry in text form");
	if (e->busy)
		bc_bad(r, e->p, "entries that contain each other");
	if (++r->depth > 200)
		tc_fail(r->c, ERR_UNIMPLEMENTED, NULL, "the program's attributes or types nest "
			"more than 200 deep");
	e->busy = 1;
	return (struct bc_cursor){ e->p, e->p + e->n };
}

static void leave(struct bc *r, struct bc_entry *e, const void *decoded)
{
	e->busy = 0;
	e->decoded = decoded;
	r->depth--;
}

const struct tc_type *bc_type(struct bc *r, uint64_t index)
{
	struct bc_entry *e = &r->types[index];
	struct bc_cursor c;
	const struct tc_type *t;

	if (e->decoded)
		return e->decoded;
	c = enter(r, e);
	if (e->dialect == BC_VHLO)
		t = vhlo_type(r, &c, e);
	else if (e->dialect == BC_BUILTIN)
		t = builtin_type(r, &c, e);
	else
		bc_bad(r, e->p, "a type of another dialect");
	r->has_quant |= e->quant != NULL;
	leave(r, e, t);
	return t;
}

/* ---- attributes ---- */

static struct bc_text blob(struct bc *r, struct bc_cursor *c)
{
	uint64_t n = bc_varint(r, c);
	struct bc_text t = { (const char *)c->p, (uint32_t)n };

	if (n > (uint64_t)(c->end - c->p) || n > UINT32_MAX)
		bc_bad(r, c->p, "%llu bytes of data pass the end", (unsigned long long)n);
	c->p += n;
	return t;
}

static const struct bc_attr *ref(struct bc *r, struct bc_cursor *c)
{
	return bc_attribute(r, bc_index(r, c, r->n_attrs, "attribute"));
}

static struct bc_text string_ref(struct bc *r, struct bc_cursor *c)
{
	return r->strings[bc_index(r, c, r->n_strings, "string")];
}

static void list(struct bc *r, struct bc_cursor *c, struct bc_attr *a, unsigned each)
{
	uint64_t n = bc_count(r, c);

	a->n = (uint32_t)(n * each);
	a->items = bc_get(r, a->n, sizeof(*a->items));
	for (uint32_t i = 0; i < a->n; i++)
		a->items[i] = ref(r, c);
}

/* An integer's or float's bits, by its width. */
static uint64_t ap_bits(struct bc *r, struct bc_cursor *c, unsigned bits)
{
	uint64_t v = bits <= 8 ? bc_byte(r, c) : (uint64_t)bc_svarint(r, c);

	return bits >= 64 ? v : v & ((1ull << bits) - 1);
}

static void integer(struct bc *r, struct bc_cursor *c, struct bc_attr *a)
{
	const struct tc_type *t = bc_type(r, bc_index(r, c, r->n_types, "type"));
	unsigned bits = elem_bits(t->elem);
	uint64_t v;

	if (!bits || bits > 64)
		bc_bad(r, c->p, "an integer of type %s", elem_text(t->elem));
	v = ap_bits(r, c, bits);
	if (elem_class(t->elem) == ELEM_CLASS_SINT && bits < 64)
		v = (uint64_t)((int64_t)(v << (64 - bits)) >> (64 - bits));
	a->kind = BC_INT;
	a->type = t;
	a->i = (int64_t)v;
}

static void real(struct bc *r, struct bc_cursor *c, struct bc_attr *a)
{
	const struct tc_type *t = bc_type(r, bc_index(r, c, r->n_types, "type"));
	char *bytes = bc_get(r, 8, 1);
	uint64_t v;

	if (!elem_bits(t->elem) || elem_bits(t->elem) > 64)
		bc_bad(r, c->p, "a float of type %s", elem_text(t->elem));
	v = ap_bits(r, c, elem_bits(t->elem));
	memcpy(bytes, &v, 8);
	a->kind = BC_FLOAT;
	a->type = t;
	a->text = (struct bc_text){ bytes, elem_bytes(t->elem) };
}

static void type_attr(struct bc *r, struct bc_cursor *c, struct bc_attr *a)
{
	uint64_t index = bc_index(r, c, r->n_types, "type");
	const struct bc_entry *e = &r->types[index];
	struct bc_cursor peek = { e->p, e->p + e->n };
	uint64_t code = e->is_custom && e->dialect == BC_VHLO ? bc_varint(r, &peek) : 0;

	a->kind = BC_TYPE;
	a->type_text = "";
	if (code < sizeof(vhlo_elems) && vhlo_elems[code])
		a->type_text = elem_text(vhlo_elems[code]);
	else if (code == 34)
		a->type_text = "tf32";
}

/* Axes of a mesh, and what names them: kinds by code, items as reader.h has them. */
static void groups(struct bc *r, struct bc_cursor *c, struct bc_attr *a, uint64_t code)
{
	static const uint8_t kinds[] = { BC_SUB_AXIS, BC_AXIS_REF, BC_GROUPS, BC_AXIS, BC_MESH };
	uint64_t more;

	a->kind = kinds[code - 21];
	if (a->kind == BC_SUB_AXIS) {
		a->i = bc_svarint(r, c);
		a->size = bc_svarint(r, c);
		return;
	}
	a->items = bc_get(r, 2, sizeof(*a->items));
	a->items[a->n++] = ref(r, c);
	if (a->kind == BC_GROUPS) {
		a->items[a->n++] = ref(r, c);
	} else if (a->kind == BC_AXIS) {
		a->i = bc_svarint(r, c);
	} else if (a->kind == BC_AXIS_REF) {
		if (bc_varint(r, c))
			a->items[a->n++] = ref(r, c);
	} else {
		more = bc_varint(r, c);
		if (more >> 1 >= r->n_attrs && more & 1)
			bc_bad(r, c->p, "attribute %llu", (unsigned long long)(more >> 1));
		if (more & 1)
			a->items[a->n++] = bc_attribute(r, more >> 1);
	}
}

/* Of a result, all of it or part of a tuple, and of an operand that is whole. */
static void alias(struct bc *r, struct bc_cursor *c, struct bc_attr *a)
{
	uint64_t n = bc_count(r, c);

	a->kind = BC_ALIAS;
	a->size = n > 1 ? -1 : 0;
	for (uint64_t i = 0; i < n; i++) {
		int64_t k = bc_svarint(r, c);

		if (n == 1)
			a->size = k;
	}
	a->i = bc_svarint(r, c);
	n = bc_count(r, c);
	if (n)
		a->size = -1;
	while (n--)
		bc_svarint(r, c);
}

static void bounds(struct bc *r, struct bc_cursor *c, struct bc_attr *a)
{
	uint64_t n = bc_count(r, c);
	int64_t *list = bc_get(r, n, sizeof(*list));

	for (uint64_t i = 0; i < n; i++)
		list[i] = bc_svarint(r, c);
	a->kind = BC_BOUNDS;
	a->bounds = list;
	a->n = (uint32_t)n;
}

static void vhlo_attr(struct bc *r, struct bc_cursor *c, struct bc_attr *a)
{
	const uint8_t *at = c->p;
	uint64_t code = bc_varint(r, c);

	switch (code) {
	case 1: a->kind = BC_ARRAY; list(r, c, a, 1); break;
	case 2: a->kind = BC_BOOL; a->i = (int64_t)bc_varint(r, c) != 0; break;
	case 3: case 4: case 5: case 7: case 11: case 12: case 13: case 16: case 19:
		a->kind = BC_ENUM;
		a->i = (int64_t)bc_varint(r, c);
		break;
	case 6: a->kind = BC_DICT; list(r, c, a, 2); break;
	case 8: real(r, c, a); break;
	case 9: integer(r, c, a); break;
	case 14: a->kind = BC_STR; a->text = string_ref(r, c); break;
	case 15:
		a->kind = BC_TENSOR;
		a->type = bc_type(r, bc_index(r, c, r->n_types, "type"));
		a->text = blob(r, c);
		break;
	case 17: type_attr(r, c, a); break;
	case 10: alias(r, c, a); break;
	case 18: bounds(r, c, a); break;
	case 20:
		a->kind = BC_SKIPPED;
		break;
	case 21: case 22: case 23: case 24: case 25:
		groups(r, c, a, code);
		break;
	default:
		bc_bad(r, at, "unknown attribute code %llu", (unsigned long long)code);
	}
}

static void builtin_attr(struct bc *r, struct bc_cursor *c, struct bc_attr *a)
{
	uint64_t code = bc_varint(r, c);

	switch (code) {
	case 0: a->kind = BC_ARRAY; list(r, c, a, 1); break;
	case 1: a->kind = BC_DICT; list(r, c, a, 2); break;
	case 2: a->kind = BC_STR; a->text = string_ref(r, c); break;
	case 4: *a = *ref(r, c); break;
	case 7: a->kind = BC_BOOL; a->i = 1; break;
	case 8: integer(r, c, a); break;
	default: a->kind = BC_SKIPPED; break;
	}
}

const struct bc_attr *bc_attribute(struct bc *r, uint64_t index)
{
	struct bc_entry *e = &r->attrs[index];
	struct bc_attr *a;
	struct bc_cursor c;

	if (e->decoded)
		return e->decoded;
	c = enter(r, e);
	a = bc_get(r, 1, sizeof(*a));
	if (e->dialect == BC_VHLO)
		vhlo_attr(r, &c, a);
	else if (e->dialect == BC_BUILTIN)
		builtin_attr(r, &c, a);
	else if (e->dialect == BC_SDY)
		*a = (struct bc_attr){ .kind = BC_SHARDING,
				       .text = { (const char *)e->p, e->n } };
	else
		a->kind = BC_SKIPPED;
	leave(r, e, a);
	return a;
}

const struct bc_attr *bc_find(const struct bc_attr *dict, const char *name)
{
	if (!dict || dict->kind != BC_DICT)
		return NULL;
	for (uint32_t i = 0; i < dict->n; i += 2) {
		const struct bc_attr *k = dict->items[i];

		if (k->kind == BC_STR && k->text.n == strlen(name) &&
		    !memcmp(k->text.p, name, k->text.n))
			return dict->items[i + 1];
	}
	return NULL;
}

/* ---- giving attributes to ops ---- */

/* Bits to bytes; a list of one byte for each is taken as well. */
static const uint8_t *unpacked(struct bc *r, const uint8_t *from, size_t n, int64_t count)
{
	uint8_t *data = bc_get(r, (size_t)count, 1);

	for (int64_t i = 0; i < count; i++)
		data[i] = n == (uint64_t)count && count > 1 ? from[i] != 0 :
			  (from[i / 8] >> (i % 8)) & 1;
	return data;
}

/* A tensor's bytes as the IR holds them: PRED unpacked, alone if all are equal (then an
 * array without elements may still bring one). What is not changed stays where it is:
 * the program's bytes outlive the compile. */
static void dense(struct bc *r, const struct bc_attr *a, struct tc_attr *out)
{
	const struct tc_type *t = a->type;
	const uint8_t *from = (const uint8_t *)a->text.p;
	size_t each = elem_bytes(t->elem), n = a->text.n;
	int64_t count = t->count;
	bool is_bool = t->elem == ELEM_PRED;

	out->kind = TC_ATTR_DENSE;
	out->type = t;
	if (t->is_tuple || !each)
		bc_bad(r, from, "data of a type without elements");
	out->is_splat = count > 1 && n == each && (!is_bool || *from == 0xff || *from == 0);
	if (is_bool && out->is_splat)
		out->data = *from ? "\1" : "\0";
	else if (out->is_splat || (!is_bool && n == (uint64_t)t->bytes) ||
		 (!count && n == each))
		out->data = from;
	else if (is_bool && (n == (uint64_t)count || n == ((uint64_t)count + 7) / 8))
		out->data = unpacked(r, from, n, count);
	else
		bc_bad(r, from, "%zu bytes of data for %lld elements of %s", n,
		       (long long)count, elem_text(t->elem));
}

static void ints(struct bc *r, const struct bc_attr *a, struct tc_attr *out)
{
	struct tc_attr d = { 0 };
	int64_t *list_of;

	dense(r, a, &d);
	if (d.type->count > 1 << 16)
		bc_bad(r, (const uint8_t *)a->text.p, "a list of %lld numbers",
		       (long long)d.type->count);
	list_of = bc_get(r, (size_t)d.type->count, sizeof(*list_of));
	for (int64_t i = 0; i < d.type->count; i++)
		list_of[i] = tc_attr_element(&d, i);
	out->kind = TC_ATTR_INTS;
	out->ints = list_of;
	out->n = (uint32_t)d.type->count;
}

bool bc_ints(struct bc *r, const struct bc_attr *a, struct tc_attr *out)
{
	*out = (struct tc_attr){ .kind = TC_ATTR_INTS };
	if (a->kind != BC_TENSOR)
		return false;
	ints(r, a, out);
	return true;
}

static void copy_text(struct bc *r, struct bc_text t, struct tc_attr *out)
{
	char *copy = bc_get(r, (size_t)t.n + 1, 1);

	memcpy(copy, t.p, t.n);
	out->kind = TC_ATTR_STR;
	out->text = copy;
	out->n = t.n;
}

static bool convert(struct bc *r, const struct bc_attr *a, bool as_dense,
		    struct tc_attr *out, unsigned depth);

static void array(struct bc *r, const struct bc_attr *a, struct tc_attr *out,
		  unsigned depth)
{
	struct tc_attr *items = bc_get(r, a->n, sizeof(*items));
	int64_t *numbers = bc_get(r, a->n, sizeof(*numbers));
	bool all_numbers = true;
	uint32_t n = 0;

	for (uint32_t i = 0; i < a->n; i++) {
		const struct bc_attr *x = a->items[i];

		all_numbers &= x->kind == BC_INT || x->kind == BC_ENUM || x->kind == BC_BOOL;
		numbers[i] = x->i;
		items[n].key = "";
		n += convert(r, x, true, &items[n], depth + 1);
	}
	if (all_numbers) {
		out->kind = TC_ATTR_INTS;
		out->ints = numbers;
		out->n = a->n;
	} else {
		out->kind = TC_ATTR_ATTRS;
		out->attrs = items;
		out->n = n;
	}
}

static void dictionary(struct bc *r, const struct bc_attr *a, struct tc_attr *out,
		       unsigned depth)
{
	struct tc_attr *items = bc_get(r, a->n / 2, sizeof(*items));
	uint32_t n = 0;

	for (uint32_t i = 0; i + 1 < a->n; i += 2) {
		if (a->items[i]->kind != BC_STR)
			continue;
		items[n].key = tc_key(r->c, a->items[i]->text.p, a->items[i]->text.n);
		n += convert(r, a->items[i + 1], true, &items[n], depth + 1);
	}
	out->kind = TC_ATTR_ATTRS;
	out->attrs = items;
	out->n = n;
}

/* False: the attribute says nothing that the IR keeps. */
static bool convert(struct bc *r, const struct bc_attr *a, bool as_dense,
		    struct tc_attr *out, unsigned depth)
{
	const char *key = out->key;

	if (depth > 8)
		return false;
	memset(out, 0, sizeof(*out));
	out->key = key;
	out->i = a->i;
	switch (a->kind) {
	case BC_INT: out->kind = TC_ATTR_INT; return true;
	case BC_BOOL: out->kind = TC_ATTR_BOOL; return true;
	case BC_ENUM: out->kind = TC_ATTR_ENUM; return true;
	case BC_STR: copy_text(r, a->text, out); return true;
	case BC_TYPE:
		if (!*a->type_text)
			return false;
		copy_text(r, (struct bc_text){ a->type_text,
			  (uint32_t)strlen(a->type_text) }, out);
		return true;
	case BC_TENSOR:
	case BC_FLOAT:
		if (as_dense || a->kind == BC_FLOAT)
			dense(r, a, out);
		else
			ints(r, a, out);
		return true;
	case BC_ARRAY: array(r, a, out, depth); return true;
	case BC_DICT: dictionary(r, a, out, depth); return true;
	default: return false;
	}
}

void bc_give(struct bc *r, struct tc_op *op, const char *key, size_t key_n,
	     const struct bc_attr *a, bool as_dense)
{
	static const struct bc_attr empty = { .kind = BC_STR, .text.p = "" };
	struct tc_attr out = { .key = tc_key(r->c, key, key_n) };

	if (!strncmp(key, "called_computations", key_n) && a->kind == BC_ARRAY)
		a = a->n ? a->items[0] : &empty;
	if (convert(r, a, as_dense, &out, 0))
		tc_set_attr(r->c, op, out);
}

/* ---- locations ---- */

struct place {
	char name[128], file[80];	/* fixed: reading may leave by tc_fail */
};

static void where(struct bc *r, uint64_t index, struct place *to, unsigned depth)
{
	const struct bc_entry *e = &r->attrs[index];
	struct bc_cursor c = { e->p, e->p + e->n };
	const struct bc_attr *text;
	uint64_t code, child, n;

	if (!e->is_custom || e->dialect != BC_BUILTIN || depth > 6)
		return;
	code = bc_varint(r, &c);
	switch (code) {
	case 10:	/* call site: callee, caller */
		where(r, bc_index(r, &c, r->n_attrs, "location"), to, depth + 1);
		break;
	case 11:	/* file, line, column */
	case 22:	/* file, range */
		text = bc_attribute(r, bc_index(r, &c, r->n_attrs, "attribute"));
		n = code == 22 ? bc_varint(r, &c) : 1;
		if (text->kind == BC_STR && !*to->file && n)
			snprintf(to->file, sizeof(to->file), "%.*s:%llu",
				 (int)(text->text.n > 60 ? 60 : text->text.n),
				 text->text.p + (text->text.n > 60 ? text->text.n - 60 : 0),
				 (unsigned long long)bc_varint(r, &c));
		break;
	case 12:	/* fused */
		n = bc_varint(r, &c);
		if (n)
			where(r, bc_index(r, &c, r->n_attrs, "location"), to, depth + 1);
		break;
	case 14:	/* name, child */
		text = bc_attribute(r, bc_index(r, &c, r->n_attrs, "attribute"));
		child = bc_index(r, &c, r->n_attrs, "location");
		if (text->kind == BC_STR && !*to->name)
			snprintf(to->name, sizeof(to->name), "%.*s", (int)text->text.n,
				 text->text.p);
		where(r, child, to, depth + 1);
		break;
	default:
		break;
	}
}

const char *bc_where(struct bc *r, uint64_t index)
{
	struct bc_entry *e = &r->attrs[index];
	struct place p = { "", "" };

	if (e->where)
		return e->where;
	where(r, index, &p, 0);
	e->where = arena_printf(&r->c->arena, "%s%s%s", p.name,
				*p.name && *p.file ? " at " : "", p.file);
	if (!e->where)
		tc_fail(r->c, ERR_RESOURCE_EXHAUSTED, NULL, "out of memory while reading");
	return e->where;
}
