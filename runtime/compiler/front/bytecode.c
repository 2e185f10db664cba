/* SPDX-License-Identifier: Apache-2.0 */
/*
 * MLIR bytecode (version 6) with VHLO: the container, and its operations into the IR.
 *
 * Requires: bytes. Ensures: a module whose ops have the operands, regions and attributes
 * that the bytes give them, in forms that ir_verify.c can judge; it judges nothing
 * itself beyond what reading needs. Fails with the byte offset. The bytes are hostile:
 * every count is bounded by what is left of the input before memory is taken.
 */
#include <stdio.h>
#include <string.h>

#include "runtime/compiler/front/processor.h"
#include "runtime/compiler/front/reader.h"
#include "runtime/compiler/opt/build.h"
#include "runtime/compiler/passes.h"

#define MAX_REGION_DEPTH 200u

enum section { STRING, DIALECT, ATTR_TYPE, ATTR_TYPE_OFFSET, IR, RESOURCE,
	       RESOURCE_OFFSET, DIALECT_VERSIONS, PROPERTIES, N_SECTIONS };

static const struct bc_vhlo vhlo_ops[] = {
#define VHLO(name, op, properties) { name, TC_##op, properties },
#include "runtime/compiler/front/vhlo.def"
#undef VHLO
};

static const struct bc_vhlo sdy_ops[] = {
#define SDY(name, op, properties) { name, TC_##op, properties },
#include "runtime/compiler/front/sdy.def"
#undef SDY
};

/* ---- sections ---- */

/* A section's header; gives its content and moves past it. */
static struct bc_cursor read_section(struct bc *r, struct bc_cursor *c, unsigned *id)
{
	const uint8_t *at = c->p;
	uint8_t head = bc_byte(r, c);
	uint64_t n = bc_varint(r, c);
	struct bc_cursor in;

	*id = head & 0x7f;
	if (head & 0x80) {
		uint64_t align = bc_varint(r, c);
		uint64_t at_file = (uint64_t)(c->p - r->base);
		uint64_t pad;

		if (!align || align & (align - 1) || align > 4096)
			bc_bad(r, at, "an alignment of %llu", (unsigned long long)align);
		pad = (align - at_file % align) % align;
		if (pad > (uint64_t)(c->end - c->p))
			bc_bad(r, at, "padding passes the end");
		c->p += pad;
	}
	if (n > (uint64_t)(c->end - c->p))
		bc_bad(r, at, "a section of %llu bytes passes the end", (unsigned long long)n);
	in = (struct bc_cursor){ c->p, c->p + n };
	c->p += n;
	return in;
}

static void read_strings(struct bc *r, struct bc_cursor c)
{
	uint64_t n = bc_count(r, &c), total = 0;
	const uint8_t *data;

	r->strings = bc_get(r, n, sizeof(*r->strings));
	r->n_strings = n;
	for (uint64_t i = n; i-- > 0;) {
		uint64_t bytes = bc_varint(r, &c);

		if (!bytes || bytes > r->bytes)
			bc_bad(r, c.p, "a string of %llu bytes", (unsigned long long)bytes);
		r->strings[i].n = (uint32_t)(bytes - 1);
		total += bytes;
	}
	if (total > (uint64_t)(c.end - c.p))
		bc_bad(r, c.p, "the strings pass the end");
	data = c.p;
	for (uint64_t i = 0; i < n; i++) {
		r->strings[i].p = (const char *)data;
		data += (size_t)r->strings[i].n + 1;
	}
}

static bool is_text(struct bc_text t, const char *text)
{
	return t.n == strlen(text) && !memcmp(t.p, text, t.n);
}

static const struct bc_vhlo *find_row(uint8_t dialect, struct bc_text name)
{
	const struct bc_vhlo *rows = dialect == BC_VHLO ? vhlo_ops : sdy_ops;
	size_t n = dialect == BC_VHLO ? sizeof(vhlo_ops) / sizeof(*vhlo_ops) :
		   dialect == BC_SDY ? sizeof(sdy_ops) / sizeof(*sdy_ops) : 0;

	for (size_t i = 0; i < n; i++)
		if (is_text(name, rows[i].name))
			return &rows[i];
	return NULL;
}

static void read_dialects(struct bc *r, struct bc_cursor c)
{
	uint64_t n = bc_count(r, &c), at = 0;
	unsigned id;

	r->dialects = bc_get(r, n, 1);
	r->n_dialects = n;
	for (uint64_t i = 0; i < n; i++) {
		uint64_t v = bc_varint(r, &c);
		struct bc_text name;

		if (v >> 1 >= r->n_strings)
			bc_bad(r, c.p, "a dialect has no name");
		name = r->strings[v >> 1];
		r->dialects[i] = is_text(name, "builtin") ? BC_BUILTIN :
				 is_text(name, "vhlo") ? BC_VHLO :
				 is_text(name, "sdy") ? BC_SDY : BC_OTHER;
		if (v & 1)
			read_section(r, &c, &id);
	}
	r->n_op_names = bc_count(r, &c);
	r->op_names = bc_get(r, r->n_op_names, sizeof(*r->op_names));
	while (c.p < c.end) {
		uint64_t d = bc_index(r, &c, n, "dialect"), count = bc_count(r, &c);

		for (uint64_t i = 0; i < count; i++) {
			uint64_t v = bc_varint(r, &c);

			if (at >= r->n_op_names || v >> 1 >= r->n_strings)
				bc_bad(r, c.p, "the op names do not add up");
			r->op_names[at].dialect = r->dialects[d];
			r->op_names[at].name = r->strings[v >> 1];
			r->op_names[at].row = find_row(r->dialects[d], r->strings[v >> 1]);
			at++;
		}
	}
	if (at != r->n_op_names)
		bc_bad(r, c.p, "the op names do not add up");
}

static void read_offsets(struct bc *r, struct bc_cursor c, struct bc_cursor data)
{
	uint64_t at = 0, total;
	const uint8_t *p = data.p;

	r->n_attrs = bc_count(r, &c);
	r->n_types = bc_count(r, &c);
	total = r->n_attrs + r->n_types;
	r->attrs = bc_get(r, total, sizeof(*r->attrs));
	r->types = r->attrs + r->n_attrs;
	while (c.p < c.end) {
		uint64_t d = bc_index(r, &c, r->n_dialects, "dialect");
		uint64_t count = bc_count(r, &c);

		for (uint64_t i = 0; i < count; i++) {
			uint64_t v = bc_varint(r, &c);

			if (at >= total || v >> 1 > (uint64_t)(data.end - p))
				bc_bad(r, c.p, "the attributes and types do not add up");
			r->attrs[at].p = p;
			r->attrs[at].n = (uint32_t)(v >> 1);
			r->attrs[at].dialect = r->dialects[d];
			r->attrs[at].is_custom = v & 1;
			p += v >> 1;
			at++;
		}
	}
	if (at != total)
		bc_bad(r, c.p, "the attributes and types do not add up");
}

static void read_properties(struct bc *r, struct bc_cursor c)
{
	uint64_t n = bc_count(r, &c);

	r->properties = bc_get(r, n, sizeof(*r->properties));
	r->n_properties = n;
	for (uint64_t i = 0; i < n; i++) {
		uint64_t bytes = bc_varint(r, &c);

		if (bytes > (uint64_t)(c.end - c.p))
			bc_bad(r, c.p, "properties pass the end");
		r->properties[i] = (struct bc_text){ (const char *)c.p, (uint32_t)bytes };
		c.p += bytes;
	}
}

/* ---- ops ---- */

/* The values that ops of a region may name: [start, start + count) of r->values. */
struct scope { size_t start, count, next; };

static void read_block(struct bc *r, struct bc_cursor *c, struct scope *s,
		       struct tc_block *b);

static void reserve_values(struct bc *r, size_t need)
{
	size_t room = r->room_values ? r->room_values : 256;
	struct tc_value **grown;

	if (need <= r->room_values)
		return;
	while (room < need)
		room *= 2;
	grown = bc_get(r, room, sizeof(*grown));
	if (r->room_values)
		memcpy(grown, r->values, r->room_values * sizeof(*grown));
	r->values = grown;
	r->room_values = room;
}

static void define(struct bc *r, struct bc_cursor *c, struct scope *s, struct tc_value *v)
{
	if (s->next >= s->start + s->count)
		bc_bad(r, c->p, "more values than the region announces");
	r->values[s->next++] = v;
}

static void skip_use_list(struct bc *r, struct bc_cursor *c, uint64_t n_values)
{
	uint64_t n = n_values > 1 ? bc_count(r, c) : 1;

	for (uint64_t i = 0; i < n; i++) {
		uint64_t k;

		if (n_values > 1)
			bc_varint(r, c);
		k = bc_varint(r, c) >> 1;
		if (k > (uint64_t)(c->end - c->p))
			bc_bad(r, c->p, "a use list passes the end");
		while (k--)
			bc_varint(r, c);
	}
}

static void read_region(struct bc *r, struct bc_cursor *c, const struct scope *outer,
			bool is_isolated, struct tc_region *region)
{
	struct scope s = *outer;
	uint64_t n_blocks = bc_varint(r, c), n_values;

	if (!n_blocks)
		return;
	if (n_blocks != 1)
		tc_fail(r->c, ERR_UNIMPLEMENTED, NULL, "a region of %llu blocks: only one "
			"block a region runs", (unsigned long long)n_blocks);
	if (++r->depth > MAX_REGION_DEPTH)
		tc_fail(r->c, ERR_UNIMPLEMENTED, NULL, "the program's loops, branches and "
			"other regions nest more than %u deep: make functions' loops flatter, "
			"as one loop over more values", MAX_REGION_DEPTH);
	n_values = bc_count(r, c);
	if (is_isolated) {
		s.start = outer->start + outer->count;
		s.count = 0;
	}
	s.next = s.start + s.count;
	s.count += n_values;
	reserve_values(r, s.start + s.count + 1);
	memset(r->values + s.next, 0, n_values * sizeof(*r->values));
	read_block(r, c, &s, tc_new_block(r->c, region));
	/* Else each of many regions could have room cleared for values that it has not. */
	if (s.next != s.start + s.count)
		bc_bad(r, c->p, "a region says that it has %llu values, and defines %llu",
		       (unsigned long long)n_values,
		       (unsigned long long)(n_values - (s.start + s.count - s.next)));
	r->depth--;
}

struct op_head {
	struct bc_op_name *name;
	uint8_t mask;
	const char *where;
	const struct bc_attr *discardable;
	struct bc_cursor properties;
	uint64_t n_results, n_operands;
	const struct tc_type **types;
	uint64_t *kinds;	/* of results: their types' numbers */
	struct tc_value **operands;
};

/* What a value of the type has as its side: its struct bc_quant, or NULL. */
static void *quant_of(struct bc *r, uint64_t index)
{
	const struct tc_type *t = bc_type(r, index);
	const struct bc_quant *q = r->types[index].quant;

	/* an element's type alone, which a tensor's has been held to */
	if (q && q->dim >= 0 && !t->rank)
		bc_bad(r, r->types[index].p, "a value of %s without dims", q->text);
	return (void *)q;
}

/* What a value has of its type beside what the IR's type says. op: whose result or argument it is,
 * NULL: the file's. */
static void give_kind(struct bc *r, const struct tc_op *op, const char *what, unsigned i,
		      uint64_t index, struct tc_value *v)
{
	v->side = quant_of(r, index);
	v->bounded = r->types[index].bounded;
	if (r->types[index].refused)
		tc_fail(r->c, ERR_UNIMPLEMENTED, op, "%s %u has %s", what, i,
			r->types[index].refused);
}

static void read_head(struct bc *r, struct bc_cursor *c, const struct scope *s,
		      struct op_head *h)
{
	const struct bc_text *p;

	h->name = &r->op_names[bc_index(r, c, r->n_op_names, "op name")];
	h->mask = bc_byte(r, c);
	h->where = bc_where(r, bc_index(r, c, r->n_attrs, "location"));
	if (h->mask & 0x01)
		h->discardable = bc_attribute(r, bc_index(r, c, r->n_attrs, "attribute"));
	if (h->mask & 0x40) {
		p = &r->properties[bc_index(r, c, r->n_properties, "properties")];
		h->properties = (struct bc_cursor){ (const uint8_t *)p->p,
						    (const uint8_t *)p->p + p->n };
	}
	if (h->mask & 0x02) {
		h->n_results = bc_count(r, c);
		h->types = bc_get(r, h->n_results, sizeof(*h->types));
		h->kinds = bc_get(r, h->n_results, sizeof(*h->kinds));
		for (uint64_t i = 0; i < h->n_results; i++) {
			uint64_t index = bc_index(r, c, r->n_types, "type");

			h->types[i] = bc_type(r, index);
			h->kinds[i] = index;
		}
	}
	if (h->mask & 0x04) {
		h->n_operands = bc_count(r, c);
		h->operands = bc_get(r, h->n_operands, sizeof(*h->operands));
		for (uint64_t i = 0; i < h->n_operands; i++) {
			const uint8_t *at = c->p;
			uint64_t k = bc_index(r, c, s->count, "value");

			h->operands[i] = r->values[s->start + k];
			if (!h->operands[i])
				bc_bad(r, at, "value %llu is used before it is defined",
				       (unsigned long long)k);
		}
	}
	if (h->mask & 0x08)
		bc_bad(r, c->p, "an op with successors");
	if (h->mask & 0x20)
		skip_use_list(r, c, h->n_results);
}

/* What a call of another's function has beside its operands. */
static void give_call(struct bc *r, struct tc_op *op, const struct bc_attr *dict)
{
	bc_give(r, op, "attributes", 10, dict, false);
	bc_give_call_attributes(r, op, dict);
}

/* Reads the property blob of an op into attributes. */
static void read_properties_of(struct bc *r, const struct bc_op_name *name,
			       struct bc_cursor *c, struct tc_op *op)
{
	const char *p = name->row->properties;

	while (*p) {
		size_t n = strcspn(p, " ");
		const struct bc_attr *a =
			bc_attribute(r, bc_index(r, c, r->n_attrs, "attribute"));

		if (name->dialect == BC_SDY)
			bc_sdy_give(r, op, p, n, a);
		else if (n == 14 && !memcmp(p, "replica_groups", 14) && op->op != TC_OPAQUE)
			bc_give_groups(r, op, a);
		else if (op->op == TC_CUSTOM_CALL && a->kind == BC_DICT)
			give_call(r, op, a);
		else if (n == 22 && !memcmp(p, "output_operand_aliases", 22))
			bc_give_call_aliases(r, op, a);
		else
			bc_give(r, op, p, n, a, n == 5 && !memcmp(p, "value", 5));
		p += n + (p[n] == ' ');
	}
}

/* Emission says what is wrong with one. */
static const char *layout_of(struct bc *r, const struct bc_attr *mode)
{
	if (!mode || mode->kind != BC_STR || is_text(mode->text, "default"))
		return NULL;
	return tc_key(r->c, mode->text.p, mode->text.n);
}

/* Shardy's attribute or GSPMD's, as text; of a list the first; NULL: neither. */
static const char *read_sharding(struct bc *r, const struct bc_attr *dict)
{
	const struct bc_attr *a = bc_find(dict, "sdy.sharding");

	if (a)
		return bc_sdy_first(r, a);
	a = bc_find(dict, "mhlo.sharding");
	return a && a->kind == BC_STR ? tc_key(r->c, a->text.p, a->text.n) : NULL;
}

static void give_arg_info(struct bc *r, const struct bc_attr *list, uint32_t n,
			  struct tc_arg_info **out)
{
	static const char *const kinds[] = { "device", "pinned_host", "unpinned_host" };
	struct tc_arg_info *info = bc_get(r, n, sizeof(*info));

	for (uint32_t i = 0; i < n; i++)
		info[i].alias = -1;
	for (uint32_t i = 0; list && list->kind == BC_ARRAY && i < list->n && i < n; i++) {
		const struct bc_attr *d = list->items[i];
		const struct bc_attr *alias = bc_find(d, "tf.aliasing_output");
		const struct bc_attr *donor = bc_find(d, "jax.buffer_donor");
		const struct bc_attr *kind = bc_find(d, "mhlo.memory_kind");

		info[i].layout = layout_of(r, bc_find(d, "mhlo.layout_mode"));
		info[i].sharding = read_sharding(r, d);
		if (alias && alias->kind == BC_INT && alias->i >= 0 && alias->i < 1 << 20)
			info[i].alias = (int32_t)alias->i;
		info[i].is_donor = donor && donor->kind == BC_BOOL && donor->i;
		for (uint8_t k = 0; kind && kind->kind == BC_STR && k < 3; k++)
			if (is_text(kind->text, kinds[k]))
				info[i].memory_kind = k;
	}
	*out = info;
}

static void read_func(struct bc *r, struct op_head *h, struct tc_op *op,
		      const struct bc_attr **args, const struct bc_attr **results)
{
	struct bc_cursor *c = &h->properties;
	const struct bc_attr *a[5];

	for (unsigned i = 0; i < 5; i++)
		a[i] = bc_attribute(r, bc_index(r, c, r->n_attrs, "attribute"));
	bc_give(r, op, "sym_name", 8, a[3], false);
	*args = a[0];
	*results = a[2];
}

/* Whether its results are its operands: it stands between types of VHLO's and MLIR's own. */
static bool is_identity(const struct op_head *h)
{
	return h->name->dialect == BC_BUILTIN &&
	       is_text(h->name->name, "unrealized_conversion_cast");
}

static struct tc_op *make_op(struct bc *r, struct bc_cursor *c, struct op_head *h,
			     unsigned n_regions)
{
	const struct bc_vhlo *row = h->name->row;
	enum tc_opcode code = row ? row->op : TC_OPAQUE;
	struct tc_op *op;

	if (h->name->dialect == BC_BUILTIN && is_text(h->name->name, "module"))
		code = TC_MODULE;
	if (h->n_results > 1 << 20 || h->n_operands > 1 << 20)
		bc_bad(r, c->p, "an op with %llu results", (unsigned long long)h->n_results);
	op = tc_new(r->c, code, (unsigned)h->n_operands, h->operands, (unsigned)h->n_results,
		    h->types, n_regions);
	op->where = h->where;
	if (code == TC_OPAQUE) {
		char name[160];

		snprintf(name, sizeof(name), "%s%.*s", h->name->dialect == BC_SDY ? "sdy." : "",
			 (int)(h->name->name.n > 150 ? 150 : h->name->name.n),
			 h->name->name.p);
		tc_set_str(r->c, op, "name", name);
	}
	for (unsigned i = 0; i < op->n_results; i++)
		give_kind(r, op, "result", i, h->kinds[i], tc_out(op, i));
	return op;
}

/* The region that adds two scalars of the type. */
static void add_region(struct bc *r, struct tc_op *op, const struct tc_type *like)
{
	const struct tc_type *t = tc_tensor(r->c, (enum elem)like->elem, 0, NULL);
	struct tc_block *b;
	struct tc_value *in[2];
	struct tc_op *add;

	op->n_regions = 1;
	op->regions = bc_get(r, 1, sizeof(*op->regions));
	op->regions[0].parent = op;
	b = tc_new_block(r->c, &op->regions[0]);
	in[0] = tc_new_arg(r->c, b, t);
	in[1] = tc_new_arg(r->c, b, t);
	add = tc_new(r->c, TC_ADD, 2, in, 1, &t, 0);
	tc_append(b, add);
	in[0] = tc_out(add, 0);
	tc_append(b, tc_new(r->c, TC_RETURN, 1, in, 0, NULL, 0));
}

/* A dot without dimension numbers sums over the first's last dim and the second's first. XLA
 * writes CHLO's erf as a call when it hands a program to a plugin. */
static void read_old_forms(struct bc *r, const struct op_head *h, struct tc_op *op)
{
	const char *target = op->op == TC_CUSTOM_CALL ? tc_attr_str(op, "call_target_name") :
			     NULL;
	int64_t last, first = 0;

	if (op->op == TC_DOT_GENERAL && op->n_operands == 2 && is_text(h->name->name, "dot_v1")) {
		last = tc_in(op, 0)->type->rank - 1;
		tc_set_ints(r->c, op, "lhs_batching_dimensions", NULL, 0);
		tc_set_ints(r->c, op, "rhs_batching_dimensions", NULL, 0);
		tc_set_ints(r->c, op, "lhs_contracting_dimensions", &last, 1);
		tc_set_ints(r->c, op, "rhs_contracting_dimensions", &first, 1);
	}
	if (op->op == TC_COLLECTIVE_BROADCAST && tc_attr_int(op, "has_dynamic_root", 0))
		tc_fail(r->c, ERR_UNIMPLEMENTED, op, "a root that is computed does not run yet");
	if (target && op->n_operands == 1 && op->n_results == 1 &&
	    (!strcmp(target, "mhlo.erf") || !strcmp(target, "mhlo.tan"))) {
		op->op = !strcmp(target, "mhlo.erf") ? TC_ERF : TC_TAN;
		op->n_attrs = 0;
	}
}

/* Whether StableHLO lets an op compute in type `to` what it takes in type `from`. */
static bool is_promotable(unsigned from, unsigned to)
{
	return elem_class(from) == elem_class(to) && elem_class(to) != ELEM_CLASS_NONE &&
	       elem_bits(from) < elem_bits(to);
}

/* What is reduced or scattered may be narrower than the results, of whose type the body is: it is
 * converted first. */
static void widen_operands(struct bc *r, struct tc_block *b, struct tc_op *op)
{
	struct tc_build build = { .c = r->c, .block = b, .where = op->where };
	unsigned n = op->n_results, n_shared = op->op == TC_SCATTER, n_kinds;

	switch (op->op) {
	case TC_REDUCE:
	case TC_REDUCE_WINDOW:
	case TC_SCATTER: n_kinds = 2; break;
	case TC_ALL_REDUCE:
	case TC_REDUCE_SCATTER: n_kinds = 1; break;
	default: return;
	}
	if (op->n_operands != n_kinds * (uint64_t)n + n_shared)
		return;
	for (unsigned i = 0; i < op->n_operands; i++) {
		struct tc_value *v = tc_in(op, i), *wide;
		const struct tc_value *out;

		if (n_shared && i == n)
			continue;
		out = tc_out(op, i < n ? i : i - n - n_shared);
		if (v->type->is_tuple || out->type->is_tuple || v->side || out->side ||
		    !is_promotable(v->type->elem, out->type->elem))
			continue;
		wide = tc_build_convert(&build, v, (enum elem)out->type->elem);
		wide->bounded = v->bounded;
		wide->side = NULL;
		tc_set_operand(op, i, wide);
	}
}

/* A call of a function of CHLO's, as XLA hands such over to a plugin, is what it computes: its
 * results. NULL: it is none, or not one that can be written so. */
static struct tc_value **read_function(struct bc *r, struct tc_block *b, const struct op_head *h,
				       const struct tc_op *op)
{
	const char *target = op->op == TC_CUSTOM_CALL ? tc_attr_str(op, "call_target_name") :
			     NULL;
	const struct bc_attr *all = bc_find(h->discardable, "mhlo.attributes");
	const struct bc_attr *k = bc_find(all, "k"), *largest = bc_find(all, "largest");
	struct tc_build build = { .c = r->c, .block = b, .where = op->where };
	struct tc_value **out, *x;
	unsigned n = 1;

	if (!target || strncmp(target, "mhlo.", 5) || op->n_operands != 1 || op->n_regions)
		return NULL;
	out = bc_get(r, 2, sizeof(*out));
	x = tc_in(op, 0);
	if (x->side || x->bounded)
		return NULL;
	if (strcmp(target, "mhlo.topk")) {
		out[0] = tc_build_function(&build, target + 5, x);
		if (!out[0])
			return NULL;
	} else {
		n = 2;
		if (!k || k->kind != BC_INT ||
		    !tc_build_top_k(&build, x, k->i, !largest || largest->i, out))
			return NULL;
	}
	for (unsigned i = 0; i < n; i++)
		if (op->n_results != n || tc_out(op, i)->type != out[i]->type)
			tc_fail(r->c, ERR_INVALID_ARGUMENT, op, "the results of %s are not of the "
				"type that follows from its operand", target);
	return out;
}

static void check_processor(struct bc *r, const struct op_head *h, const struct tc_op *op)
{
	const struct bc_attr *own = bc_find(h->discardable, "mhlo.frontend_attributes");
	const struct bc_attr *where = bc_find(own, PROCESSOR_KEY);
	const char *why = where && where->kind == BC_STR ?
			  processor_refused(where->text.p, where->text.n) : NULL;

	if (why)
		tc_fail(r->c, ERR_UNIMPLEMENTED, op, "%s", why);
}

/* Of a transfer: on which device. */
static void read_place(struct bc *r, const struct op_head *h, struct tc_op *op)
{
	const char *text = read_sharding(r, h->discardable);

	if (text)
		tc_set_str(r->c, op, "sharding", text);
}

static void read_rule(struct bc *r, const struct op_head *h, struct tc_op *op)
{
	const struct bc_attr *rule = bc_find(h->discardable, "sdy.sharding_rule");

	if (rule && rule->kind == BC_SHARDING)
		tc_set_str(r->c, op, "sharding_rule", bc_sdy_rule(r, rule));
}

static void read_op(struct bc *r, struct bc_cursor *c, struct scope *s, struct tc_block *b)
{
	const struct bc_attr *args = NULL, *results = NULL;
	struct op_head h = { 0 };
	uint64_t flags = 0;
	struct tc_value **made;
	struct tc_op *op;

	read_head(r, c, s, &h);
	if (h.mask & 0x10)
		flags = bc_varint(r, c);
	if (flags >> 1 > (uint64_t)(c->end - c->p))
		bc_bad(r, c->p, "%llu regions", (unsigned long long)(flags >> 1));
	if (is_identity(&h) && h.n_operands == h.n_results && !flags) {
		for (uint64_t i = 0; i < h.n_results; i++)
			define(r, c, s, h.operands[i]);
		return;
	}
	op = make_op(r, c, &h, (unsigned)(flags >> 1));
	if (op->op == TC_FUNC)
		read_func(r, &h, op, &args, &results);
	else if (h.name->row && (h.mask & 0x40))
		read_properties_of(r, h.name, &h.properties, op);
	read_old_forms(r, &h, op);
	check_processor(r, &h, op);
	made = read_function(r, b, &h, op);
	if (made) {
		for (unsigned i = 0; i < op->n_results; i++)
			define(r, c, s, made[i]);
		tc_set_operands(r->c, op, 0, NULL);
		return;
	}
	if (op->op == TC_CUSTOM_CALL && bc_find(h.discardable, "mhlo.backend_config"))
		give_call(r, op, bc_find(h.discardable, "mhlo.backend_config"));
	if (op->op == TC_CUSTOM_CALL && bc_find(h.discardable, "mhlo.sharding"))
		bc_give(r, op, "sharding", 8, bc_find(h.discardable, "mhlo.sharding"), false);
	if (op->op == TC_CUSTOM_CALL)
		read_rule(r, &h, op);
	if (op->op == TC_SEND || op->op == TC_RECV)
		read_place(r, &h, op);
	if (op->op == TC_MODULE) {
		const struct bc_attr *n = bc_find(h.discardable, "mhlo.num_partitions");
		struct bc_cursor p = h.properties;
		uint64_t name = p.p < p.end ? bc_varint(r, &p) : 0;

		if (n)
			bc_give(r, op, "num_partitions", 14, n, false);
		if (name & 1 && name >> 1 < r->n_attrs)
			bc_give(r, op, "sym_name", 8, bc_attribute(r, name >> 1), false);
		r->c->module = op;
	} else if (h.name->dialect == BC_SDY && is_text(h.name->name, "mesh")) {
		bc_sdy_mesh(r, &h.properties);
	} else {
		widen_operands(r, b, op);
		tc_append(b, op);
	}
	for (unsigned i = 0; i < op->n_results; i++)
		define(r, c, s, tc_out(op, i));
	for (unsigned i = 0; i < op->n_regions; i++) {
		struct bc_cursor in = *c;
		unsigned id;

		if (flags & 1 && i == 0) {
			in = read_section(r, c, &id);
			if (id != IR)
				bc_bad(r, in.p, "section %u where code should be", id);
			for (unsigned k = 0; k < op->n_regions; k++)
				read_region(r, &in, s, true, &op->regions[k]);
			break;
		}
		read_region(r, c, s, false, &op->regions[i]);
	}
	if (h.name->row && is_text(h.name->name, "cross-replica-sum_v1") && !op->n_regions &&
	    op->n_operands && !tc_in(op, 0)->type->is_tuple)
		add_region(r, op, tc_in(op, 0)->type);
	if (op->op == TC_FUNC && op->n_regions && op->regions[0].block) {
		struct tc_block *body = op->regions[0].block;

		give_arg_info(r, args, body->n_args, &op->arg_info);
		give_arg_info(r, results, body->last ? body->last->n_operands : 0,
			      &op->res_info);
	}
}

static void read_block(struct bc *r, struct bc_cursor *c, struct scope *s,
		       struct tc_block *b)
{
	uint64_t head = bc_varint(r, c), n_ops = head >> 1;

	if (head & 1) {
		uint64_t n = bc_count(r, c);

		for (uint64_t i = 0; i < n; i++) {
			uint64_t v = bc_varint(r, c);
			struct tc_value *arg;

			if (v >> 1 >= r->n_types)
				bc_bad(r, c->p, "type %llu", (unsigned long long)(v >> 1));
			if (v & 1)
				bc_index(r, c, r->n_attrs, "location");
			arg = tc_new_arg(r->c, b, bc_type(r, v >> 1));
			give_kind(r, b->region->parent, "argument", (unsigned)i, v >> 1, arg);
			define(r, c, s, arg);
		}
		if (bc_byte(r, c))
			skip_use_list(r, c, n);
	}
	if (n_ops > (uint64_t)(c->end - c->p))
		bc_bad(r, c->p, "%llu ops", (unsigned long long)n_ops);
	for (uint64_t i = 0; i < n_ops; i++)
		read_op(r, c, s, b);
}

/* ---- the file ---- */

void tc_read_bytecode(struct tc_ctx *ctx, const void *p, size_t n)
{
	struct bc *r = arena_alloc(&ctx->arena, sizeof(*r));
	struct bc_cursor c = { p, (const uint8_t *)p + n }, sections[N_SECTIONS] = { 0 };
	struct scope none = { 0 };
	struct tc_block *top;
	struct tc_region holder = { 0 };
	uint64_t version;
	unsigned id;

	if (!r)
		tc_fail(ctx, ERR_RESOURCE_EXHAUSTED, NULL, "out of memory");
	r->c = ctx;
	r->base = p;
	r->bytes = n;
	if (n < 4 || memcmp(p, "ML\xefR", 4))
		bc_bad(r, p, "no MLIR bytecode");
	c.p += 4;
	version = bc_varint(r, &c);
	if (version != 6)
		tc_fail(ctx, ERR_UNIMPLEMENTED, NULL, "MLIR bytecode version %llu; version 6 "
			"(StableHLO 0.15 or later) is read", (unsigned long long)version);
	while (bc_byte(r, &c))
		;
	while (c.p < c.end) {
		const uint8_t *at = c.p;
		struct bc_cursor in = read_section(r, &c, &id);

		if (id >= N_SECTIONS || sections[id].p)
			bc_bad(r, at, "section %u, unknown or twice", id);
		sections[id] = in;
	}
	if (!sections[STRING].p || !sections[DIALECT].p || !sections[ATTR_TYPE_OFFSET].p ||
	    !sections[ATTR_TYPE].p || !sections[IR].p)
		bc_bad(r, c.p, "a section is missing");
	read_strings(r, sections[STRING]);
	read_dialects(r, sections[DIALECT]);
	read_offsets(r, sections[ATTR_TYPE_OFFSET], sections[ATTR_TYPE]);
	if (sections[PROPERTIES].p)
		read_properties(r, sections[PROPERTIES]);
	top = tc_new_block(ctx, &holder);
	read_block(r, &sections[IR], &none, top);
	if (ctx->module && r->n_meshes)
		tc_set_attr(ctx, ctx->module, (struct tc_attr){ .key = TC_KEY(ctx, "meshes"),
			    .kind = TC_ATTR_ATTRS, .n = r->n_meshes, .attrs = r->meshes });
	if (!ctx->module || ctx->module->n_regions != 1 || !ctx->module->regions[0].block)
		bc_bad(r, sections[IR].p, "no module");
	if (r->has_quant)
		bc_lower_quantized(r);
}
