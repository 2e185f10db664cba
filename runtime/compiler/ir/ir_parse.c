/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The IR's text (README.md#text) into the IR: the other half of ir_print.c.
 *
 * One recursive descent, a function for each form of the grammar. A value keeps the
 * number that the text gives it, so printing what was read gives the text back. The
 * parser judges the form alone; whether ops have the operands, attributes and types
 * that they need is ir_verify.c's matter, as it is for bytecode.
 *
 * The text is hostile: nesting, numbers and lists are bounded, memory is the arena's,
 * and everything unexpected leaves through bad() with line and column.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "runtime/compiler/ir/ir.h"

#define MAX_REGION_DEPTH 200u
#define MAX_TYPE_DEPTH 256u
#define MAX_ATTR_DEPTH 16u
#define MAX_ATTRS 256u		/* of one op */
#define MAX_NUMBER (1u << 26)	/* of a value: tables are made for them */

struct text { const char *p; size_t n; };

struct slot {
	uint32_t number;
	struct tc_value *value;	/* NULL: free */
};

struct parser {
	struct tc_ctx *c;
	const char *base, *p, *end;
	unsigned depth;		/* of regions */
	struct slot *slots;	/* values by number, open addressing */
	size_t n_slots, room;	/* room is a power of two */
	uint32_t next;		/* one more than the largest number */
};

/* What a list holds while its length is not known. */
struct list {
	void *items;
	size_t n, room;
};

static struct tc_op *parse_op(struct parser *ps, struct tc_block *b);

/* ---- failing ---- */

/* What stands at `at`, for people. */
static void describe(const struct parser *ps, const char *at, char *out, size_t room)
{
	size_t n = 0;

	if (at >= ps->end) {
		snprintf(out, room, "the end of the text");
		return;
	}
	if ((unsigned char)*at < 0x20 || (unsigned char)*at >= 0x7f) {
		snprintf(out, room, "byte 0x%02x", (unsigned char)*at);
		return;
	}
	while (n < 24 && at + n < ps->end && at[n] > ' ' && at[n] < 0x7f &&
	       !strchr(",(){}[]<>=:\"", at[n]))
		n++;
	snprintf(out, room, "\"%.*s\"", (int)(n ? n : 1), at);
}

/* `expected` says what should stand at `at`. */
static _Noreturn void bad(struct parser *ps, const char *at, const char *expected, ...)
	__attribute__((format(printf, 3, 4)));
static _Noreturn void bad(struct parser *ps, const char *at, const char *expected, ...)
{
	size_t line = 1, column = 1;
	char found[40], want[256];
	va_list ap;

	va_start(ap, expected);
	vsnprintf(want, sizeof(want), expected, ap);
	va_end(ap);
	for (const char *p = ps->base; p < at; p++) {
		column++;
		if (*p == '\n') {
			line++;
			column = 1;
		}
	}
	describe(ps, at, found, sizeof(found));
	tc_fail(ps->c, ERR_INVALID_ARGUMENT, NULL, "program text, line %zu, column %zu: "
		"found %s, expected %s", line, column, found, want);
}

static void *get(struct parser *ps, size_t count, size_t size)
{
	void *p = arena_array(&ps->c->arena, count, size);

	if (!p)
		tc_fail(ps->c, ERR_RESOURCE_EXHAUSTED, NULL, "out of memory while reading a "
			"program text of %zu bytes", (size_t)(ps->end - ps->base));
	return p;
}

/* Room for one more item of `size` bytes, zeroed. */
static void *add(struct parser *ps, struct list *l, size_t size)
{
	if (l->n == l->room) {
		size_t room = l->room ? l->room * 2 : 4;
		char *grown = get(ps, room, size);

		if (l->n)
			memcpy(grown, l->items, l->n * size);
		l->items = grown;
		l->room = room;
	}
	return (char *)l->items + size * l->n++;
}

/* ---- characters ---- */

/* White space, and comments from "//" to the end of their line. */
static void skip(struct parser *ps)
{
	while (ps->p < ps->end) {
		if (*ps->p == ' ' || *ps->p == '\n' || *ps->p == '\t' || *ps->p == '\r') {
			ps->p++;
		} else if (*ps->p == '/' && ps->end - ps->p > 1 && ps->p[1] == '/') {
			while (ps->p < ps->end && *ps->p != '\n')
				ps->p++;
		} else {
			return;
		}
	}
}

static bool is_next(struct parser *ps, char ch)
{
	skip(ps);
	return ps->p < ps->end && *ps->p == ch;
}

static bool eat(struct parser *ps, char ch)
{
	if (!is_next(ps, ch))
		return false;
	ps->p++;
	return true;
}

static void want(struct parser *ps, char ch)
{
	if (!eat(ps, ch))
		bad(ps, ps->p, "\"%c\"", ch);
}

/* After an item of a list: true if another follows, false at its end. */
static bool another(struct parser *ps, char end)
{
	if (eat(ps, ','))
		return true;
	if (!eat(ps, end))
		bad(ps, ps->p, "\",\" or \"%c\"", end);
	return false;
}

static bool is_digit(char ch)
{
	return ch >= '0' && ch <= '9';
}

static bool is_letter(char ch)
{
	return (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') || ch == '_';
}

/* A word, or nothing. */
static struct text word(struct parser *ps)
{
	struct text t;

	skip(ps);
	t = (struct text){ ps->p, 0 };
	while (ps->p < ps->end && (is_letter(*ps->p) ||
	       (ps->p > t.p && (is_digit(*ps->p) || *ps->p == '.'))))
		ps->p++;
	t.n = (size_t)(ps->p - t.p);
	return t;
}

static bool is_text(struct text t, const char *text)
{
	return t.n == strlen(text) && !memcmp(t.p, text, t.n);
}

static int64_t number(struct parser *ps)
{
	const char *at;
	bool is_negative;
	int64_t v = 0;

	skip(ps);
	at = ps->p;
	is_negative = eat(ps, '-');
	if (ps->p >= ps->end || !is_digit(*ps->p))
		bad(ps, at, "a number");
	for (; ps->p < ps->end && is_digit(*ps->p); ps->p++) {
		int digit = *ps->p - '0';

		if (__builtin_mul_overflow(v, (int64_t)10, &v) ||
		    __builtin_sub_overflow(v, (int64_t)digit, &v))
			bad(ps, at, "a number of 64 bits");
	}
	if (!is_negative && v == INT64_MIN)
		bad(ps, at, "a number of 64 bits");
	return is_negative ? v : -v;
}

static int64_t number_below(struct parser *ps, int64_t limit)
{
	const char *at;
	int64_t v;

	skip(ps);
	at = ps->p;
	v = number(ps);
	if (v < 0 || v >= limit)
		bad(ps, at, "a number from 0 to %" PRId64, limit - 1);
	return v;
}

static int hex(char ch)
{
	if (is_digit(ch))
		return ch - '0';
	return ch >= 'a' && ch <= 'f' ? ch - 'a' + 10 :
	       ch >= 'A' && ch <= 'F' ? ch - 'A' + 10 : -1;
}

/* The text up to `end` (not taken), \HH resolved; a copy. */
static struct text escaped(struct parser *ps, char end)
{
	const char *stop = memchr(ps->p, end, (size_t)(ps->end - ps->p));
	char *copy;
	size_t n = 0;

	if (!stop)
		stop = ps->end;
	copy = get(ps, (size_t)(stop - ps->p) + 1, 1);
	for (; ps->p < stop; ps->p++) {
		if (*ps->p != '\\') {
			copy[n++] = *ps->p;
			continue;
		}
		if (stop - ps->p < 3 || hex(ps->p[1]) < 0 || hex(ps->p[2]) < 0)
			bad(ps, ps->p, "\"\\\" and two hexadecimal digits");
		copy[n++] = (char)(hex(ps->p[1]) << 4 | hex(ps->p[2]));
		ps->p += 2;
	}
	return (struct text){ copy, n };
}

static struct text string(struct parser *ps)
{
	struct text t;

	skip(ps);
	if (!eat(ps, '"'))
		bad(ps, ps->p, "a text in quotes");
	t = escaped(ps, '"');
	if (t.n > UINT32_MAX)
		bad(ps, ps->p, "a text of less than 4 GiB");
	want(ps, '"');
	return t;
}

/* ---- types ---- */

/* *bounded: dims (bits) that may be shorter, <=N; NULL: none may. */
static const struct tc_type *tensor(struct parser *ps, uint32_t *bounded)
{
	int64_t dim[TC_MAX_RANK], bytes = 1;
	unsigned rank = 0;
	const char *at;
	enum elem elem;
	struct text t;

	want(ps, '<');
	skip(ps);
	for (at = ps->p; ps->p < ps->end && (is_digit(*ps->p) || *ps->p == '<'); at = ps->p) {
		bool may_be_less = *ps->p == '<';

		if (rank == TC_MAX_RANK)
			bad(ps, at, "an element type: a tensor has at most %d dims",
			    TC_MAX_RANK);
		if (may_be_less && (!bounded || ps->end - ps->p < 3 || ps->p[1] != '='))
			bad(ps, at, bounded ? "\"<=" "\" and a bound" : "a dim without a bound");
		ps->p += may_be_less ? 2 : 0;
		dim[rank] = number(ps);
		if (may_be_less && dim[rank])
			*bounded |= (uint32_t)1 << rank;
		if (__builtin_mul_overflow(bytes, dim[rank++], &bytes))
			bad(ps, at, "dims whose product has 63 bits");
		if (ps->p >= ps->end || *ps->p != 'x')
			bad(ps, ps->p, "\"x\" after a dim");
		ps->p++;
	}
	t = word(ps);
	if (is_text(t, "complex") && eat(ps, '<')) {
		word(ps);
		want(ps, '>');
		t.n = (size_t)(ps->p - t.p);
	}
	elem = elem_parse(t.p, t.n > 64 ? 0 : (unsigned)t.n);
	if (!elem_valid(elem))
		bad(ps, at, "a dim or an element type");
	if (__builtin_mul_overflow(bytes, (int64_t)elem_bytes(elem), &bytes))
		bad(ps, at, "a tensor whose size has 63 bits");
	want(ps, '>');
	return tc_tensor(ps->c, elem, rank, dim);
}

static const struct tc_type *parse_type(struct parser *ps, uint32_t *bounded, unsigned depth)
{
	struct list parts = { 0 };
	const char *at;
	struct text t;

	skip(ps);
	at = ps->p;
	t = word(ps);
	if (is_text(t, "tensor"))
		return tensor(ps, bounded);
	if (is_text(t, "token"))
		return tc_tensor(ps->c, ELEM_TOKEN, 0, NULL);
	if (!is_text(t, "tuple"))
		bad(ps, at, "a type: tensor<...>, tuple<...> or token");
	if (depth == MAX_TYPE_DEPTH)
		bad(ps, at, "at most %u tuples in each other", MAX_TYPE_DEPTH);
	want(ps, '<');
	if (eat(ps, '>'))
		return tc_tuple(ps->c, NULL, 0);
	do {
		const struct tc_type *part = parse_type(ps, NULL, depth + 1);

		*(const struct tc_type **)add(ps, &parts, sizeof(part)) = part;
	} while (another(ps, '>'));
	return tc_tuple(ps->c, parts.items, (unsigned)parts.n);
}

/* ---- attributes ---- */

static void parse_attr(struct parser *ps, struct tc_attr *a, unsigned depth);

/* dense<0xBYTES> : type, or dense<splat 0xBYTES> : type, whose bytes are one element. */
static void dense(struct parser *ps, struct tc_attr *a)
{
	const char *at, *digits;
	uint8_t *data;
	size_t n, need;
	struct text t;

	want(ps, '<');
	t = word(ps);
	a->is_splat = is_text(t, "splat");
	if (t.n && !a->is_splat)
		bad(ps, t.p, "\"splat\" or 0x and bytes");
	skip(ps);
	at = ps->p;
	if (ps->end - at < 2 || at[0] != '0' || at[1] != 'x')
		bad(ps, at, "0x and bytes");
	for (ps->p = digits = at + 2; ps->p < ps->end && hex(*ps->p) >= 0; ps->p++)
		;
	n = (size_t)(ps->p - digits) / 2;
	if ((ps->p - digits) % 2)
		bad(ps, ps->p, "another hexadecimal digit");
	want(ps, '>');
	want(ps, ':');
	a->kind = TC_ATTR_DENSE;
	a->type = parse_type(ps, NULL, 0);
	if (a->type->is_tuple || !elem_bytes(a->type->elem))
		bad(ps, at, "no bytes: the type has no elements");
	need = a->is_splat ? elem_bytes(a->type->elem) : (size_t)a->type->bytes;
	if (n != need)
		bad(ps, at, "%zu bytes for the type, not %zu", need, n);
	a->data = data = get(ps, n, 1);
	for (size_t i = 0; i < n; i++) {
		data[i] = (uint8_t)(hex(digits[2 * i]) << 4 | hex(digits[2 * i + 1]));
		if (a->type->elem == ELEM_PRED && data[i] > 1)
			bad(ps, digits + 2 * i, "00 or 01: a byte of i1");
	}
}

static void ints(struct parser *ps, struct tc_attr *a)
{
	struct list l = { 0 };

	a->kind = TC_ATTR_INTS;
	if (eat(ps, ']'))
		return;
	do {
		int64_t v = number(ps);

		*(int64_t *)add(ps, &l, sizeof(v)) = v;
	} while (another(ps, ']'));
	a->ints = l.items;
	a->n = (uint32_t)l.n;
}

/* <NAME> or <NUMBER>; the key says which names there are. */
static void enumeration(struct parser *ps, struct tc_attr *a)
{
	struct text t = word(ps);

	a->kind = TC_ATTR_ENUM;
	if (!t.n)
		a->i = number(ps);
	for (; t.n; a->i++) {
		const char *name = tc_enum_name(a->key, a->i);

		if (name && is_text(t, name))
			break;
		if (!name && a->i)
			bad(ps, t.p, "a name that %.60s has, or a number", a->key);
	}
	want(ps, '>');
}

static const char *parse_key(struct parser *ps)
{
	bool is_quoted = is_next(ps, '"');
	struct text t = is_quoted ? string(ps) : word(ps);

	if (!t.n && !is_quoted)
		bad(ps, ps->p, "a key");
	want(ps, '=');
	return tc_key(ps->c, t.p, strnlen(t.p, t.n));
}

/* KEY = VALUE, ... up to the closing brace. */
static void parse_attrs(struct parser *ps, struct list *l, size_t most, unsigned depth)
{
	if (eat(ps, '}'))
		return;
	do {
		struct tc_attr a = { 0 };

		skip(ps);
		if (l->n == most)
			bad(ps, ps->p, "at most %zu attributes", most);
		a.key = parse_key(ps);
		parse_attr(ps, &a, depth);
		*(struct tc_attr *)add(ps, l, sizeof(a)) = a;
	} while (another(ps, '}'));
}

static void parse_attr(struct parser *ps, struct tc_attr *a, unsigned depth)
{
	struct list items = { 0 };
	const char *at;
	struct text t;

	skip(ps);
	at = ps->p;
	if (is_next(ps, '"')) {
		t = string(ps);
		a->kind = TC_ATTR_STR;
		a->text = t.p;
		a->n = (uint32_t)t.n;
	} else if (eat(ps, '[')) {
		ints(ps, a);
	} else if (eat(ps, '<')) {
		enumeration(ps, a);
	} else if (eat(ps, '{')) {
		if (depth == MAX_ATTR_DEPTH)
			bad(ps, at, "at most %u lists in each other", MAX_ATTR_DEPTH);
		parse_attrs(ps, &items, UINT32_MAX, depth + 1);
		a->kind = TC_ATTR_ATTRS;
		a->attrs = items.items;
		a->n = (uint32_t)items.n;
	} else if (at < ps->end && (is_digit(*at) || *at == '-')) {
		a->kind = TC_ATTR_INT;
		a->i = number(ps);
	} else {
		t = word(ps);
		a->kind = TC_ATTR_BOOL;
		a->i = is_text(t, "true");
		if (is_text(t, "dense"))
			dense(ps, a);
		else if (!a->i && !is_text(t, "false"))
			bad(ps, at, "an attribute's value");
	}
}

/* ---- values ---- */

static struct slot *slot_of(struct parser *ps, uint32_t number_of)
{
	size_t k = number_of * 0x9e3779b1u & (ps->room - 1);

	while (ps->slots[k].value && ps->slots[k].number != number_of)
		k = (k + 1) & (ps->room - 1);
	return &ps->slots[k];
}

/* %N, at *at. */
static uint32_t value_number(struct parser *ps, const char **at)
{
	skip(ps);
	*at = ps->p;
	if (!eat(ps, '%') || ps->p >= ps->end || !is_digit(*ps->p))
		bad(ps, *at, "a value: %% and a number");
	return (uint32_t)number_below(ps, MAX_NUMBER);
}

static void define(struct parser *ps, const char *at, uint32_t n, struct tc_value *v)
{
	struct slot *s;

	if (ps->n_slots * 2 >= ps->room) {
		struct slot *old = ps->slots;
		size_t room = ps->room;

		ps->room = room ? room * 2 : 256;
		ps->slots = get(ps, ps->room, sizeof(*old));
		for (size_t i = 0; i < room; i++)
			if (old[i].value)
				*slot_of(ps, old[i].number) = old[i];
	}
	s = slot_of(ps, n);
	if (s->value)
		bad(ps, at, "a number that no other value has");
	*s = (struct slot){ n, v };
	ps->n_slots++;
	v->id = n;
	if (n >= ps->next)
		ps->next = n + 1;
}

static struct tc_value *use(struct parser *ps)
{
	const char *at;
	uint32_t n = value_number(ps, &at);
	struct tc_value *v = ps->room ? slot_of(ps, n)->value : NULL;

	if (!v)
		bad(ps, at, "a value that is defined above");
	return v;
}

/* ---- ops ---- */

/* {alias = N, donor, memory_kind = N, sharding = "...", layout = "..."} */
static void parse_info(struct parser *ps, struct tc_arg_info *info)
{
	want(ps, '{');
	if (eat(ps, '}'))
		return;
	do {
		struct text t = word(ps);

		if (is_text(t, "donor")) {
			info->is_donor = true;
			continue;
		}
		if (!is_text(t, "alias") && !is_text(t, "memory_kind") &&
		    !is_text(t, "sharding") && !is_text(t, "layout"))
			bad(ps, t.p, "alias, donor, memory_kind, sharding or layout");
		want(ps, '=');
		if (*t.p == 'a')
			info->alias = (int32_t)number_below(ps, 1 << 20);
		else if (*t.p == 'm')
			info->memory_kind = (uint8_t)number_below(ps, 3);
		else if (*t.p == 's')
			info->sharding = string(ps).p;
		else
			info->layout = string(ps).p;
	} while (another(ps, '}'));
}

static struct tc_arg_info *add_info(struct parser *ps, struct list *l)
{
	struct tc_arg_info *info = add(ps, l, sizeof(*info));

	*info = (struct tc_arg_info){ .alias = -1 };
	return info;
}

static void parse_args(struct parser *ps, struct tc_op *op, struct tc_block *b)
{
	struct list infos = { 0 };
	bool is_func = op->op == TC_FUNC;

	if (!eat(ps, ')'))
		do {
			struct tc_arg_info *info = is_func ? add_info(ps, &infos) : NULL;
			const struct tc_type *type;
			const char *at;
			uint32_t n = value_number(ps, &at), bounded = 0;

			want(ps, ':');
			type = parse_type(ps, &bounded, 0);
			define(ps, at, n, tc_new_arg(ps->c, b, type));
			b->args[b->n_args - 1]->bounded = bounded;
			if (is_func && is_next(ps, '{'))
				parse_info(ps, info);
		} while (another(ps, ')'));
	op->arg_info = infos.items;
}

/* -> ({...}, ...): of a function's results. */
static void parse_result_infos(struct parser *ps, struct list *infos)
{
	want(ps, '-');
	want(ps, '>');
	want(ps, '(');
	if (eat(ps, ')'))
		return;
	do {
		parse_info(ps, add_info(ps, infos));
	} while (another(ps, ')'));
}

static void parse_region(struct parser *ps, struct tc_op *op, struct tc_region *region)
{
	struct list infos = { 0 };
	const char *at = NULL;
	struct tc_block *b;
	size_t n;

	if (ps->depth++ == MAX_REGION_DEPTH)
		bad(ps, ps->p, "at most %u regions in each other", MAX_REGION_DEPTH);
	b = tc_new_block(ps->c, region);
	parse_args(ps, op, b);
	if (op->op == TC_FUNC && is_next(ps, '-')) {
		at = ps->p;
		parse_result_infos(ps, &infos);
	}
	want(ps, '{');
	while (!eat(ps, '}'))
		tc_append(b, parse_op(ps, b));
	ps->depth--;
	if (op->op != TC_FUNC)
		return;
	n = b->last ? b->last->n_operands : 0;
	if (at && infos.n != n)
		bad(ps, at, "as many results as the function returns, %zu, not %zu", n,
		    infos.n);
	while (infos.n < n)
		add_info(ps, &infos);
	op->res_info = infos.items;
}

/* The regions come last in the text, and their number with them. */
static void parse_regions(struct parser *ps, struct tc_op *op)
{
	struct list l = { 0 };

	for (;;) {
		const char *at = ps->p;
		bool is_none = false;
		struct tc_region *all, *region;

		if (!is_next(ps, '(')) {
			is_none = is_text(word(ps), "none");
			if (!is_none) {
				ps->p = at;
				return;
			}
		}
		all = l.items;
		region = add(ps, &l, sizeof(*region));
		*region = (struct tc_region){ .parent = op };
		op->regions = l.items;
		op->n_regions = (uint32_t)l.n;
		for (uint32_t i = 0; all != l.items && i + 1 < l.n; i++)
			if (op->regions[i].block)
				op->regions[i].block->region = &op->regions[i];
		if (is_none)
			continue;
		want(ps, '(');
		parse_region(ps, op, region);
	}
}

static enum tc_opcode opcode(struct parser *ps, const struct tc_block *b)
{
	bool is_in_module = b && b->region->parent->op == TC_MODULE;
	struct text t = word(ps);
	int code = tc_op_find(t.p, t.n);

	if (!b && code != TC_MODULE)
		bad(ps, t.p, "\"module\"");
	if (is_in_module && code != TC_FUNC)
		bad(ps, t.p, "\"func\" or \"}\"");
	if (code < 0 || (b && !is_in_module && (code == TC_MODULE || code == TC_FUNC)))
		bad(ps, t.p, "the name of an operation");
	return (enum tc_opcode)code;
}

static void give_attrs(struct parser *ps, struct tc_op *op, const char *at)
{
	struct list l = { 0 };

	parse_attrs(ps, &l, MAX_ATTRS, 0);
	op->attrs = l.items;
	op->n_attrs = (uint16_t)l.n;
	for (unsigned i = 0; i < op->n_attrs; i++)
		for (unsigned k = 0; k < i; k++)
			if (op->attrs[i].key == op->attrs[k].key)
				bad(ps, at, "each attribute once; \"%.60s\" is there twice",
				    op->attrs[i].key);
}

struct result { uint32_t number; const char *at; };

/* The op's results, which stand before its name: %N, %N = */
static void parse_results(struct parser *ps, struct list *l)
{
	if (!is_next(ps, '%'))
		return;
	do {
		struct result *r = add(ps, l, sizeof(*r));

		r->number = value_number(ps, &r->at);
	} while (another(ps, '='));
}

static void parse_operands(struct parser *ps, struct list *l)
{
	if (eat(ps, ')'))
		return;
	do {
		struct tc_value *v = use(ps);

		*(struct tc_value **)add(ps, l, sizeof(v)) = v;
	} while (another(ps, ')'));
}

/* One op of block b; without a block, the module. */
static struct tc_op *parse_op(struct parser *ps, struct tc_block *b)
{
	struct list results = { 0 }, operands = { 0 };
	const struct tc_type **types;
	uint32_t *bounded;
	const char *attrs_at = NULL;
	struct tc_op *op, head = { 0 };
	enum tc_opcode code;

	parse_results(ps, &results);
	code = opcode(ps, b);
	if (!eat(ps, '('))
		bad(ps, ps->p, b ? "\"(\"" : "\"(\" (only the compiler's own text form is "
		    "read; give other programs as MLIR bytecode)");
	parse_operands(ps, &operands);
	if (is_next(ps, '{')) {
		attrs_at = ps->p++;
		give_attrs(ps, &head, attrs_at);
	}
	types = get(ps, results.n, sizeof(*types));
	bounded = get(ps, results.n, sizeof(*bounded));
	for (size_t i = 0; i < results.n; i++) {
		want(ps, i ? ',' : ':');
		types[i] = parse_type(ps, &bounded[i], 0);
	}
	op = tc_new(ps->c, code, (unsigned)operands.n, operands.items, (unsigned)results.n,
		    types, 0);
	op->attrs = head.attrs;
	op->n_attrs = head.n_attrs;
	for (size_t i = 0; i < results.n; i++) {
		const struct result *r = (const struct result *)results.items + i;

		define(ps, r->at, r->number, tc_out(op, (unsigned)i));
		tc_out(op, (unsigned)i)->bounded = bounded[i];
	}
	parse_regions(ps, op);
	if (eat(ps, '#')) {
		ps->p += ps->p < ps->end && *ps->p == ' ';
		op->where = escaped(ps, '\n').p;
	}
	return op;
}

/* The ids of ops come after those of values. */
static void number_op(struct tc_op *op, void *arg)
{
	struct tc_ctx *c = arg;

	op->id = c->next_id++;
}

void tc_ir_parse(struct tc_ctx *c, const char *text, size_t n)
{
	struct parser ps = { .c = c, .base = text, .p = text, .end = text + n };
	struct tc_op *module = parse_op(&ps, NULL);

	skip(&ps);
	if (ps.p < ps.end)
		bad(&ps, ps.p, "the end of the text after the module");
	if (module->n_regions != 1 || !module->regions[0].block)
		bad(&ps, ps.p, "a module with one region");
	c->module = module;
	c->next_id = ps.next;
	tc_walk(module, number_op, c);
}
