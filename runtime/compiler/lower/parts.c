/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A reduce, reduce_window or scatter of more arrays than one instruction takes, whose body is made
 * of parts that do not look at each other, is an op for each part. Others stay, for emission
 * to refuse.
 */
#include "hal/hw/isa.h"
#include "runtime/compiler/lower/decompose.h"

/* Of each array. Those of one part lead to the same one, which leads to itself and has the rest. */
struct part {
	struct part *next;
	unsigned n, *arrays;	/* of the part */
	struct tc_op *op;	/* what becomes of it */
};

struct split {
	struct tc_build b;
	struct tc_op *op;
	const struct tc_block *body;
	struct part *parts;	/* of each array; an op of the body has one at its side */
	unsigned n;
};

static struct part *last_of(struct part *p)
{
	while (p->next != p) {
		p->next = p->next->next;
		p = p->next;
	}
	return p;
}

static void join(struct part *a, struct part *b)
{
	last_of(a)->next = last_of(b);
}

/* Array p's part looks at v. */
static void look(const struct split *s, struct part *p, const struct tc_value *v)
{
	if (v->block == s->body)
		join(p, &s->parts[v->index % s->n]);
	else if (v->def && v->def->block == s->body && v->def->side)
		join(p, v->def->side);
	else if (v->def && v->def->block == s->body)
		v->def->side = p;
}

/* Whether there are several. */
static bool find_parts(struct split *s)
{
	for (unsigned j = 0; j < s->n; j++)
		s->parts[j].next = &s->parts[j];
	for (struct tc_op *f = s->body->first; f; f = f->next) {
		if (f->n_regions)
			return false;
		f->side = NULL;
	}
	for (unsigned j = 0; j < s->n; j++)
		look(s, &s->parts[j], tc_in(s->body->last, j));
	for (struct tc_op *f = s->body->last->prev; f; f = f->prev)
		for (unsigned i = 0; f->side && i < f->n_operands; i++)
			look(s, f->side, tc_in(f, i));
	for (unsigned j = 1; j < s->n; j++)
		if (last_of(&s->parts[j]) != last_of(&s->parts[0]))
			return true;
	return false;
}

/* The part's op, the arguments of whose body the map has. */
static struct tc_op *make_op(const struct split *s, const struct part *p, struct tc_map *map)
{
	struct tc_ctx *c = s->b.c;
	unsigned n_shared = s->op->n_operands - 2 * s->n, at = 0;	/* a scatter's indices */
	struct tc_value **in = arena_array(&c->arena, 2 * p->n + n_shared, sizeof(*in));
	const struct tc_type **types = arena_array(&c->arena, p->n, sizeof(*types));
	struct tc_block *body;
	struct tc_op *to;

	if (!in || !types)
		tc_fail(c, ERR_RESOURCE_EXHAUSTED, s->op, "out of memory");
	for (unsigned i = 0; i < p->n; i++) {
		in[at++] = tc_in(s->op, p->arrays[i]);
		types[i] = s->op->results[p->arrays[i]].type;
	}
	for (unsigned i = 0; i < n_shared; i++)
		in[at++] = tc_in(s->op, s->n + i);
	for (unsigned i = 0; i < p->n; i++)
		in[at++] = tc_in(s->op, s->n + n_shared + p->arrays[i]);
	to = tc_build_place(&s->b, tc_new(c, (enum tc_opcode)s->op->op, at, in, p->n, types, 1));
	for (unsigned i = 0; i < s->op->n_attrs; i++)
		tc_set_attr(c, to, s->op->attrs[i]);
	body = tc_new_block(c, &to->regions[0]);
	for (unsigned side = 0; side < 2; side++)
		for (unsigned i = 0; i < p->n; i++) {
			const struct tc_value *v = s->body->args[side * s->n + p->arrays[i]];

			tc_map_set(c, map, v, tc_new_arg(c, body, v->type));
		}
	return to;
}

static void end_body(const struct split *s, const struct part *p, struct tc_map *map)
{
	struct tc_build inner = { .c = s->b.c, .block = p->op->regions[0].block,
				  .where = s->b.where };
	struct tc_value **out = arena_array(&s->b.c->arena, p->n, sizeof(*out));

	if (!out)
		tc_fail(s->b.c, ERR_RESOURCE_EXHAUSTED, s->op, "out of memory");
	for (unsigned i = 0; i < p->n; i++)
		out[i] = tc_map_get(map, tc_in(s->body->last, p->arrays[i]));
	tc_build_return(&inner, p->n, out);
}

static void make_ops(const struct split *s)
{
	unsigned *arrays = arena_array(&s->b.c->arena, s->n, sizeof(*arrays)), n = 0;
	struct tc_map *map = tc_map_new(s->b.c);
	struct part *p;

	if (!arrays)
		tc_fail(s->b.c, ERR_RESOURCE_EXHAUSTED, s->op, "out of memory");
	for (unsigned j = 0; j < s->n; j++)
		last_of(&s->parts[j])->n++;
	for (unsigned j = 0; j < s->n; j++) {
		p = &s->parts[j];
		if (p->next != p)
			continue;
		p->arrays = arrays + n;
		n += p->n;
		p->n = 0;
	}
	for (unsigned j = 0; j < s->n; j++) {
		p = last_of(&s->parts[j]);
		p->arrays[p->n++] = j;
	}
	for (unsigned j = 0; j < s->n; j++)
		if (s->parts[j].next == &s->parts[j])
			s->parts[j].op = make_op(s, &s->parts[j], map);
	for (struct tc_op *f = s->body->first; f != s->body->last; f = f->next)
		if (f->side)
			tc_append(last_of(f->side)->op->regions[0].block,
				  tc_clone(s->b.c, f, map));
	for (unsigned j = 0; j < s->n; j++) {
		p = &s->parts[j];
		if (p->next != p)
			continue;
		end_body(s, p, map);
		for (unsigned i = 0; i < p->n; i++)
			tc_replace_uses(tc_out(s->op, p->arrays[i]), tc_out(p->op, i));
	}
}

bool tc_split_parts(struct tc_ctx *c, struct tc_op *op)
{
	struct split s = { .b = tc_build_at(c, op), .op = op, .body = op->regions[0].block,
			   .n = op->n_results };

	if (s.n <= (op->op == TC_SCATTER ? ISA_MAX_SORT : ISA_MAX_OUT))
		return false;
	s.parts = arena_array(&c->arena, s.n, sizeof(*s.parts));
	if (!s.parts)
		tc_fail(c, ERR_RESOURCE_EXHAUSTED, op, "out of memory");
	if (!find_parts(&s))
		return false;
	make_ops(&s);
	tc_erase(op);
	return true;
}
