/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The IR's objects: types and keys are interned in hash tables, ops form doubly
 * linked lists in blocks, every value knows its uses. Nothing here looks at what
 * an op means; ir_verify.c does.
 */
#include "runtime/compiler/ir/ir.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define MAX_LEAVES 65536u	/* tensors in a tuple and its tuples */

/* ---- failing ---- */

/* An op as the user knows it: ours go by what they were made of. */
static void name_op(const struct tc_op *op, char *out, size_t room)
{
	const char *text = tc_op_info(op->op)->text;
	const struct tc_block *b = op->op == TC_FUSION ? op->regions[0].block : NULL;
	const struct tc_op *o = b ? b->first : NULL;
	size_t n = 0;

	if (op->op == TC_OPAQUE && tc_attr_str(op, "name"))
		text = tc_attr_str(op, "name");
	else if (op->op != TC_FUSION && !strncmp(text, "tc.", 3))
		text += 3;
	snprintf(out, room, "%.100s", text);
	for (unsigned i = 0; o && o != b->last && i < 4 && n < room; o = o->next, i++)
		n += (size_t)snprintf(out + n, room - n, "%s%s", i ? ", " : "",
				      i == 3 ? "..." : tc_op_info(o->op)->text);
}

void tc_fail(struct tc_ctx *c, int code, const struct tc_op *op, const char *fmt, ...)
{
	char text[ERR_MSG_BYTES], name[200];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (!op) {
		err_set(c->err, code, "%s", text);
	} else {
		name_op(op, name, sizeof(name));
		err_set(c->err, code, "%s: %s%s%s", name, text,
			op->where && *op->where ? ", at " : "",
			op->where ? op->where : "");
	}
	longjmp(*c->boundary, 1);
}

void tc_free_held(struct tc_ctx *c)
{
	if (c->free_held)
		c->free_held(c);
	c->free_held = NULL;
	c->held = NULL;
}

static void *get(struct tc_ctx *c, size_t count, size_t size)
{
	void *p = arena_array(&c->arena, count, size);

	if (!p)
		tc_fail(c, ERR_RESOURCE_EXHAUSTED, NULL,
			"out of memory while compiling (%zu bytes held)",
			c->arena.total);
	return p;
}

/* ---- facts ---- */

#define V (-1)
static const struct tc_op_info infos[TC_OP_COUNT] = {
#define OP(name, text, operands, results, regions, traits) \
	[TC_##name] = { text, operands, results, regions, #traits },
#define OP_ATTR(name, attr, kind, need)
#include "runtime/compiler/ir/ops.def"
#undef OP
#undef OP_ATTR
};
#undef V

const struct tc_op_info *tc_op_info(unsigned op)
{
	return &infos[op < TC_OP_COUNT ? op : TC_OPAQUE];
}

bool tc_has_trait(const struct tc_op *op, char trait)
{
	const char *t = tc_op_info(op->op)->traits;

	while (*t && *t != trait)
		t++;
	return *t != '\0';
}

/* It, or an op in its regions. */
static bool some_has_trait(const struct tc_op *op, char trait)
{
	if (tc_has_trait(op, trait))
		return true;
	for (unsigned r = 0; r < op->n_regions; r++)
		for (const struct tc_op *o = op->regions[r].block ? op->regions[r].block->first :
		     NULL; o; o = o->next)
			if (some_has_trait(o, trait))
				return true;
	return false;
}

bool tc_has_effect(const struct tc_op *op)
{
	return some_has_trait(op, 'h');
}

bool tc_meets(const struct tc_op *op)
{
	return some_has_trait(op, 'm');
}

int tc_op_find(const char *text, size_t n)
{
	for (int i = 0; i < TC_OP_COUNT; i++)
		if (strlen(infos[i].text) == n && !memcmp(infos[i].text, text, n))
			return i;
	return -1;
}

/* ---- interning ---- */

struct slot {
	uint64_t hash;
	const void *item;	/* NULL: free */
};

struct tc_table {
	struct slot *slots;
	size_t n, room;		/* room is a power of two */
};

static uint64_t hash_bytes(uint64_t h, const void *p, size_t n)
{
	const unsigned char *b = p;

	for (size_t i = 0; i < n; i++)
		h = (h ^ b[i]) * 0x100000001b3u;
	return h;
}

#define HASH_START 0xcbf29ce484222325u

/* The slot where `is_same` holds, or the free one where it belongs. */
static struct slot *look_up(struct tc_ctx *c, struct tc_table **table, uint64_t hash,
			    bool (*is_same)(const void *item, const void *what),
			    const void *what)
{
	struct tc_table *t = *table;

	if (!t)
		t = *table = get(c, 1, sizeof(*t));
	if (t->n * 2 >= t->room) {
		size_t room = t->room ? t->room * 2 : 256;
		struct slot *slots = get(c, room, sizeof(*slots));

		for (size_t i = 0; i < t->room; i++) {
			size_t k = t->slots[i].hash & (room - 1);

			if (!t->slots[i].item)
				continue;
			while (slots[k].item)
				k = (k + 1) & (room - 1);
			slots[k] = t->slots[i];
		}
		t->slots = slots;
		t->room = room;
	}
	for (size_t k = hash & (t->room - 1);; k = (k + 1) & (t->room - 1)) {
		struct slot *s = &t->slots[k];

		if (!s->item) {
			s->hash = hash;
			t->n++;
			return s;
		}
		if (s->hash == hash && is_same(s->item, what))
			return s;
	}
}

struct text { const char *p; size_t n; };

static bool is_same_key(const void *item, const void *what)
{
	const struct text *t = what;

	return strlen(item) == t->n && !memcmp(item, t->p, t->n);
}

const char *tc_key(struct tc_ctx *c, const char *text, size_t n)
{
	struct text t = { text, n };
	struct slot *s = look_up(c, &c->keys, hash_bytes(HASH_START, text, n),
				 is_same_key, &t);

	if (!s->item) {
		char *copy = get(c, n + 1, 1);

		memcpy(copy, text, n);
		s->item = copy;
	}
	return s->item;
}

struct shape {
	unsigned elem, rank, n_parts;
	uint32_t leaves;
	bool is_tuple;
	const int64_t *dim;
	const struct tc_type *const *parts;
};

static bool is_same_type(const void *item, const void *what)
{
	const struct tc_type *t = item;
	const struct shape *s = what;

	if (t->elem != s->elem || t->rank != s->rank || t->is_tuple != s->is_tuple ||
	    t->n_parts != s->n_parts)
		return false;
	return (!s->rank || !memcmp(t->dim, s->dim, s->rank * sizeof(*s->dim))) &&
	       (!s->n_parts ||
		!memcmp(t->parts, s->parts, s->n_parts * sizeof(*s->parts)));
}

static const struct tc_type *intern(struct tc_ctx *c, const struct shape *s)
{
	uint32_t head[4] = { s->elem, s->rank, s->n_parts, s->is_tuple };
	uint64_t h = hash_bytes(HASH_START, head, sizeof(head));
	struct slot *slot;
	struct tc_type *t;
	int64_t span;

	h = hash_bytes(h, s->dim, s->rank * sizeof(*s->dim));
	h = hash_bytes(h, s->parts, s->n_parts * sizeof(*s->parts));
	slot = look_up(c, &c->types, h, is_same_type, s);
	if (slot->item)
		return slot->item;
	t = get(c, 1, sizeof(*t) + s->rank * sizeof(int64_t));
	t->elem = (uint8_t)s->elem;
	t->rank = (uint8_t)s->rank;
	t->leaves = s->leaves;
	t->is_tuple = s->is_tuple;
	t->n_parts = s->n_parts;
	if (s->n_parts) {
		const struct tc_type **parts = get(c, s->n_parts, sizeof(*parts));

		memcpy(parts, s->parts, s->n_parts * sizeof(*parts));
		t->parts = parts;
	}
	slot->item = t;
	t->count = 1;
	span = elem_bytes(s->elem) ? elem_bytes(s->elem) : 1;
	for (unsigned d = 0; d < s->rank; d++) {
		t->dim[d] = s->dim[d];
		if (s->dim[d] < 0)
			tc_fail(c, ERR_INVALID_ARGUMENT, NULL, "a tensor of %s with a "
				"dim of %lld", elem_text(s->elem), (long long)s->dim[d]);
		if (__builtin_mul_overflow(span, s->dim[d] ? s->dim[d] : 1, &span) ||
		    span > TC_MAX_BYTES)
			tc_fail(c, ERR_RESOURCE_EXHAUSTED, NULL, "out of memory: a tensor of "
				"%s with %u dims takes more than %lld bytes",
				elem_text(s->elem), s->rank, (long long)TC_MAX_BYTES);
		t->count *= s->dim[d];
	}
	t->bytes = t->count * elem_bytes(s->elem);
	return t;
}

bool tc_same_dims(const struct tc_type *a, const struct tc_type *b)
{
	return a->rank == b->rank && !memcmp(a->dim, b->dim, a->rank * sizeof(*a->dim));
}

const struct tc_type *tc_tensor(struct tc_ctx *c, enum elem elem, unsigned rank,
				const int64_t *dim)
{
	struct shape s = { .elem = elem, .rank = rank, .dim = dim };

	if (!elem_valid(elem) || rank > TC_MAX_RANK)
		tc_fail(c, ERR_UNIMPLEMENTED, NULL,
			"a tensor of element type %u and rank %u (at most %d)",
			elem, rank, TC_MAX_RANK);
	return intern(c, &s);
}

const struct tc_type *tc_tuple(struct tc_ctx *c, const struct tc_type *const *parts,
			       unsigned n)
{
	struct shape s = { .is_tuple = true, .n_parts = n, .parts = parts };
	uint64_t leaves = 0;

	/* Tuples of one tuple's many copies are small here and endless when walked. */
	for (unsigned i = 0; i < n; i++)
		leaves += parts[i]->is_tuple ? parts[i]->leaves : 1;
	if (leaves > MAX_LEAVES)
		tc_fail(c, ERR_UNIMPLEMENTED, NULL, "a tuple of %llu values; at most %u",
			(unsigned long long)leaves, MAX_LEAVES);
	s.leaves = (uint32_t)leaves;
	return intern(c, &s);
}

const struct tc_type *tc_with_elem(struct tc_ctx *c, const struct tc_type *t,
				   enum elem elem)
{
	return tc_tensor(c, elem, t->rank, t->dim);
}

const struct tc_type *tc_with_dim(struct tc_ctx *c, const struct tc_type *t, unsigned d,
				  int64_t size)
{
	int64_t dim[TC_MAX_RANK];

	memcpy(dim, t->dim, t->rank * sizeof(*dim));
	dim[d] = size;
	return tc_tensor(c, (enum elem)t->elem, t->rank, dim);
}

/* ---- attributes ---- */

const struct tc_attr *tc_attr(const struct tc_op *op, const char *name)
{
	for (unsigned i = 0; i < op->n_attrs; i++)
		if (!strcmp(op->attrs[i].key, name))
			return &op->attrs[i];
	return NULL;
}

int64_t tc_attr_int(const struct tc_op *op, const char *name, int64_t otherwise)
{
	const struct tc_attr *a = tc_attr(op, name);

	return a ? a->i : otherwise;
}

const int64_t *tc_attr_ints(const struct tc_op *op, const char *name, unsigned *n)
{
	const struct tc_attr *a = tc_attr(op, name);

	*n = a ? a->n : 0;
	return a ? a->ints : NULL;
}

bool tc_is_listed(const int64_t *list, unsigned n, int64_t x)
{
	for (unsigned i = 0; i < n; i++)
		if (list[i] == x)
			return true;
	return false;
}

bool tc_has_same_ints(const struct tc_op *a, const struct tc_op *b, const char *name)
{
	unsigned n, m;
	const int64_t *x = tc_attr_ints(a, name, &n), *y = tc_attr_ints(b, name, &m);

	return n == m && (!n || !memcmp(x, y, n * sizeof(*x)));
}

bool tc_has_same_groups(const struct tc_op *a, const struct tc_op *b)
{
	return tc_attr_int(a, "group_size", 0) == tc_attr_int(b, "group_size", 0) &&
	       tc_has_same_ints(a, b, "replica_groups");
}

int64_t tc_attr_nth(const struct tc_op *op, const char *name, unsigned i)
{
	unsigned n;

	return tc_attr_ints(op, name, &n)[i];
}

const char *tc_attr_str(const struct tc_op *op, const char *name)
{
	const struct tc_attr *a = tc_attr(op, name);

	return a ? a->text : NULL;
}

int64_t tc_attr_element(const struct tc_attr *a, int64_t i)
{
	unsigned bytes = elem_bytes(a->type->elem);
	const uint8_t *p = (const uint8_t *)a->data + (a->is_splat ? 0 : i * bytes);
	int64_t v = 0;

	memcpy(&v, p, bytes > 8 ? 8 : bytes);
	if (elem_class(a->type->elem) == ELEM_CLASS_SINT && bytes < 8)
		v = (int64_t)((uint64_t)v << (64 - 8 * bytes)) >> (64 - 8 * bytes);
	return v;
}

unsigned tc_fft_first(const struct tc_op *op)
{
	unsigned n;

	tc_attr_ints(op, "fft_length", &n);
	return (unsigned)tc_attr_int(op, "dimension", tc_in(op, 0)->type->rank - n);
}

void tc_set_attr(struct tc_ctx *c, struct tc_op *op, struct tc_attr attr)
{
	struct tc_attr *grown;

	for (unsigned i = 0; i < op->n_attrs; i++)
		if (op->attrs[i].key == attr.key) {
			op->attrs[i] = attr;
			return;
		}
	grown = get(c, op->n_attrs + 1u, sizeof(*grown));
	if (op->n_attrs)
		memcpy(grown, op->attrs, op->n_attrs * sizeof(*grown));
	grown[op->n_attrs++] = attr;
	op->attrs = grown;
}

void tc_set_int(struct tc_ctx *c, struct tc_op *op, const char *name,
		enum tc_attr_kind kind, int64_t i)
{
	tc_set_attr(c, op, (struct tc_attr){
		.key = tc_key(c, name, strlen(name)), .kind = (uint8_t)kind, .i = i });
}

void tc_set_ints(struct tc_ctx *c, struct tc_op *op, const char *name,
		 const int64_t *ints, unsigned n)
{
	int64_t *copy = get(c, n, sizeof(*copy));

	if (n)
		memcpy(copy, ints, n * sizeof(*copy));
	tc_set_attr(c, op, (struct tc_attr){
		.key = tc_key(c, name, strlen(name)), .kind = TC_ATTR_INTS,
		.ints = copy, .n = n });
}

void tc_set_nth(struct tc_ctx *c, struct tc_op *op, const char *name, unsigned i, int64_t value)
{
	unsigned n;
	const int64_t *list = tc_attr_ints(op, name, &n);
	int64_t *copy = get(c, n, sizeof(*copy));

	memcpy(copy, list, n * sizeof(*copy));
	copy[i] = value;
	tc_set_ints(c, op, name, copy, n);
}

void tc_set_str(struct tc_ctx *c, struct tc_op *op, const char *name, const char *text)
{
	size_t n = strlen(text);
	char *copy = get(c, n + 1, 1);

	memcpy(copy, text, n);
	tc_set_attr(c, op, (struct tc_attr){
		.key = tc_key(c, name, strlen(name)), .kind = TC_ATTR_STR,
		.text = copy, .n = (uint32_t)n });
}

/* ---- uses ---- */

static void add_use(struct tc_use *u, struct tc_value *v)
{
	u->value = v;
	u->next = v->uses;
	u->link = &v->uses;
	if (u->next)
		u->next->link = &u->next;
	v->uses = u;
}

static void drop_use(struct tc_use *u)
{
	if (!u->value)
		return;
	*u->link = u->next;
	if (u->next)
		u->next->link = u->link;
	u->value = NULL;
}

void tc_set_operand(struct tc_op *op, unsigned i, struct tc_value *v)
{
	drop_use(&op->operands[i]);
	add_use(&op->operands[i], v);
}

void tc_set_operands(struct tc_ctx *c, struct tc_op *op, unsigned n,
		     struct tc_value *const *values)
{
	struct tc_use *uses = get(c, n, sizeof(*uses));

	for (unsigned i = 0; i < op->n_operands; i++)
		drop_use(&op->operands[i]);
	op->operands = uses;
	op->n_operands = n;
	for (unsigned i = 0; i < n; i++) {
		uses[i].user = op;
		add_use(&uses[i], values[i]);
	}
}

void tc_replace_uses(struct tc_value *from, struct tc_value *to)
{
	struct tc_use *u, *next;

	if (from == to)
		return;
	for (u = from->uses; u; u = next) {
		next = u->next;
		drop_use(u);
		add_use(u, to);
	}
}

/* ---- ops and blocks ---- */

struct tc_op *tc_new(struct tc_ctx *c, enum tc_opcode op, unsigned n_operands,
		     struct tc_value *const *operands, unsigned n_results,
		     const struct tc_type *const *types, unsigned n_regions)
{
	struct tc_op *o = get(c, 1, sizeof(*o));

	o->op = (uint16_t)op;
	o->id = c->next_id++;
	o->where = "";
	tc_set_operands(c, o, n_operands, operands);
	o->n_results = n_results;
	o->results = get(c, n_results, sizeof(*o->results));
	for (unsigned i = 0; i < n_results; i++)
		o->results[i] = (struct tc_value){
			.type = types[i], .def = o, .index = i, .id = c->next_id++ };
	o->n_regions = n_regions;
	o->regions = get(c, n_regions, sizeof(*o->regions));
	for (unsigned i = 0; i < n_regions; i++)
		o->regions[i].parent = o;
	return o;
}

struct tc_block *tc_new_block(struct tc_ctx *c, struct tc_region *region)
{
	struct tc_block *b = get(c, 1, sizeof(*b));

	b->region = region;
	region->block = b;
	return b;
}

struct tc_value *tc_new_arg(struct tc_ctx *c, struct tc_block *b,
			    const struct tc_type *type)
{
	struct tc_value *v = get(c, 1, sizeof(*v));

	if (b->n_args == b->room_args) {
		uint32_t room = b->room_args ? b->room_args * 2 : 8;
		struct tc_value **args = get(c, room, sizeof(*args));

		if (b->n_args)
			memcpy(args, b->args, b->n_args * sizeof(*args));
		b->args = args;
		b->room_args = room;
	}
	*v = (struct tc_value){ .type = type, .block = b, .index = b->n_args,
				.id = c->next_id++ };
	b->args[b->n_args++] = v;
	return v;
}

void tc_append(struct tc_block *b, struct tc_op *op)
{
	op->block = b;
	op->prev = b->last;
	op->next = NULL;
	if (b->last)
		b->last->next = op;
	else
		b->first = op;
	b->last = op;
}

void tc_insert_before(struct tc_op *at, struct tc_op *op)
{
	op->block = at->block;
	op->next = at;
	op->prev = at->prev;
	if (at->prev)
		at->prev->next = op;
	else
		at->block->first = op;
	at->prev = op;
}

void tc_unlink(struct tc_op *op)
{
	struct tc_block *b = op->block;

	if (!b)
		return;
	if (op->prev)
		op->prev->next = op->next;
	else
		b->first = op->next;
	if (op->next)
		op->next->prev = op->prev;
	else
		b->last = op->prev;
	op->prev = op->next = NULL;
	op->block = NULL;
}

void tc_erase(struct tc_op *op)
{
	tc_unlink(op);
	for (unsigned i = 0; i < op->n_operands; i++)
		drop_use(&op->operands[i]);
	for (unsigned r = 0; r < op->n_regions; r++) {
		struct tc_block *b = op->regions[r].block;

		while (b && b->last)
			tc_erase(b->last);
	}
}

void tc_replace(struct tc_op *op, struct tc_value *by)
{
	tc_replace_uses(tc_out(op, 0), by);
	tc_erase(op);
}

/* ---- copying ---- */

/* Hashed by id: maps are many and small beside the number of values in a program. */
struct tc_map {
	struct pair { const struct tc_value *from; struct tc_value *to; } *pairs;
	size_t n, room;		/* room is a power of two */
};

struct tc_map *tc_map_new(struct tc_ctx *c)
{
	return get(c, 1, sizeof(struct tc_map));
}

/* Where `from` is, or the free place where it belongs. */
static struct pair *find_pair(const struct tc_map *m, const struct tc_value *from)
{
	size_t k = from->id * 0x9e3779b9u & (m->room - 1);

	while (m->pairs[k].from && m->pairs[k].from != from)
		k = (k + 1) & (m->room - 1);
	return &m->pairs[k];
}

void tc_map_set(struct tc_ctx *c, struct tc_map *m, const struct tc_value *from,
		struct tc_value *to)
{
	struct pair *p;

	if (m->n * 2 >= m->room) {
		struct tc_map grown = { .n = m->n, .room = m->room ? m->room * 2 : 32 };

		grown.pairs = get(c, grown.room, sizeof(*grown.pairs));
		for (size_t k = 0; k < m->room; k++)
			if (m->pairs[k].from)
				*find_pair(&grown, m->pairs[k].from) = m->pairs[k];
		*m = grown;
	}
	p = find_pair(m, from);
	m->n += !p->from;
	*p = (struct pair){ from, to };
}

struct tc_value *tc_map_get(const struct tc_map *m, struct tc_value *from)
{
	const struct pair *p = m->room ? find_pair(m, from) : NULL;

	return p && p->from && p->to ? p->to : from;
}

struct tc_op *tc_clone(struct tc_ctx *c, const struct tc_op *op, struct tc_map *map)
{
	struct tc_value **in = get(c, op->n_operands, sizeof(*in));
	const struct tc_type **types = get(c, op->n_results, sizeof(*types));
	struct tc_op *copy;

	for (unsigned i = 0; i < op->n_operands; i++)
		in[i] = tc_map_get(map, op->operands[i].value);
	for (unsigned i = 0; i < op->n_results; i++)
		types[i] = op->results[i].type;
	copy = tc_new(c, op->op, op->n_operands, in, op->n_results, types,
		      op->n_regions);
	copy->where = op->where;
	copy->attrs = get(c, op->n_attrs, sizeof(*copy->attrs));
	copy->n_attrs = op->n_attrs;
	if (op->n_attrs)
		memcpy(copy->attrs, op->attrs, op->n_attrs * sizeof(*copy->attrs));
	copy->arg_info = op->arg_info;
	copy->res_info = op->res_info;
	for (unsigned i = 0; i < op->n_results; i++) {
		copy->results[i].bounded = op->results[i].bounded;
		tc_map_set(c, map, &op->results[i], &copy->results[i]);
	}
	for (unsigned r = 0; r < op->n_regions; r++) {
		const struct tc_block *from = op->regions[r].block;
		struct tc_block *b;

		if (!from)
			continue;
		b = tc_new_block(c, &copy->regions[r]);
		for (unsigned i = 0; i < from->n_args; i++) {
			tc_map_set(c, map, from->args[i],
				   tc_new_arg(c, b, from->args[i]->type));
			b->args[i]->bounded = from->args[i]->bounded;
		}
		for (const struct tc_op *o = from->first; o; o = o->next)
			tc_append(b, tc_clone(c, o, map));
	}
	return copy;
}

struct tc_value *tc_splat(struct tc_ctx *c, struct tc_op *at,
			  const struct tc_type *type, const void *element)
{
	struct tc_op *op = tc_new(c, TC_CONSTANT, 0, NULL, 1, &type, 0);
	size_t n = elem_bytes(type->elem);
	void *data = get(c, 1, n);

	memcpy(data, element, n);
	tc_set_attr(c, op, (struct tc_attr){
		.key = TC_KEY(c, "value"), .kind = TC_ATTR_DENSE, .type = type,
		.data = data, .is_splat = true });
	op->where = at->where;
	tc_insert_before(at, op);
	return tc_out(op, 0);
}

/* ---- looking around ---- */

struct tc_op *tc_find_func(const struct tc_ctx *c, const char *name)
{
	for (struct tc_op *f = c->module->regions[0].block->first; f; f = f->next) {
		const char *is = f->op == TC_FUNC ? tc_attr_str(f, "sym_name") : NULL;

		if (is && !strcmp(is, name))
			return f;
	}
	return NULL;
}

struct tc_block *tc_main(const struct tc_ctx *c)
{
	struct tc_op *f = tc_find_func(c, "main");

	if (!f)
		f = c->module->regions[0].block->first;
	return f && f->op == TC_FUNC ? f->regions[0].block : NULL;
}

void tc_walk(struct tc_op *op, void (*fn)(struct tc_op *op, void *arg), void *arg)
{
	fn(op, arg);
	for (unsigned r = 0; r < op->n_regions; r++) {
		struct tc_block *b = op->regions[r].block;
		struct tc_op *next;

		for (struct tc_op *o = b ? b->first : NULL; o; o = next) {
			next = o->next;
			tc_walk(o, fn, arg);
		}
	}
}
