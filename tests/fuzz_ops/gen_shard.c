/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs for several devices: what was made for one gets a mesh, and shardings of arguments,
 * results and values on the way, in Shardy's words. Any are right; they divide dims or do not.
 */
#include <string.h>

#include "runtime/compiler/opt/build.h"
#include "tests/fuzz_ops/facts_ir.h"
#include "tests/fuzz_ops/gen.h"

enum { MOST_AXES = 3 };

static const struct mesh {
	const char *text;
	unsigned devices, n, size[MOST_AXES];
} meshes[] = {
	{ "[x=2]", 2, 1, { 2 } },
	{ "[x=3]ids[2,0,1]", 3, 1, { 3 } },
	{ "[x=4]", 4, 1, { 4 } },
	{ "[x=2,y=2]", 4, 2, { 2, 2 } },
	{ "[x=5]", 5, 1, { 5 } },
	{ "[x=2,y=3]", 6, 2, { 2, 3 } },
	{ "[x=8]", 8, 1, { 8 } },
	{ "[x=4,y=2]", 8, 2, { 4, 2 } },
	{ "[x=4,y=2]ids[3,1,7,5,0,2,4,6]", 8, 2, { 4, 2 } },
	{ "[x=2,y=2,z=2]", 8, 3, { 2, 2, 2 } },
};

struct sharder {
	struct tc_ctx *c;
	uint64_t rng;
	const struct mesh *mesh;
	unsigned one_in;	/* values are constrained */
};

static unsigned below(struct sharder *s, unsigned n)
{
	return (unsigned)(fuzz_next(&s->rng) % n);
}

/* ---- a sharding ---- */

/* A whole axis, or one of the two parts of it. */
struct piece { unsigned axis, pre, size; int dim; };

static unsigned cut_axes(struct sharder *s, struct piece out[2 * MOST_AXES])
{
	unsigned n = 0;

	for (unsigned i = 0; i < s->mesh->n; i++) {
		unsigned size = s->mesh->size[i];

		if (size % 4 || below(s, 6)) {
			out[n++] = (struct piece){ .axis = i, .pre = 1, .size = size };
			continue;
		}
		out[n++] = (struct piece){ .axis = i, .pre = 1, .size = 2 };
		out[n++] = (struct piece){ .axis = i, .pre = 2, .size = size / 2 };
	}
	return n;
}

/* Each piece in at most one dim. Half of the shardings cut only what divides. */
static void place_pieces(struct sharder *s, const struct tc_type *t, struct piece *p, unsigned n)
{
	int64_t left[TC_MAX_RANK];
	bool is_even = below(s, 2);

	memcpy(left, t->dim, t->rank * sizeof(*left));
	for (unsigned i = 0; i < n; i++) {
		unsigned d = t->rank ? below(s, t->rank + 1) : 0;

		p[i].dim = -1;
		if (d == t->rank || (is_even && left[d] % p[i].size))
			continue;
		left[d] = (left[d] + p[i].size - 1) / p[i].size;
		p[i].dim = (int)d;
	}
	/* Minor axes first, at times. */
	for (unsigned i = 0; i + 1 < n; i++)
		if (!below(s, 3)) {
			struct piece swap = p[i];

			p[i] = p[i + 1];
			p[i + 1] = swap;
		}
}

static void print_piece(const struct sharder *s, const struct piece *p, struct str *out)
{
	str_printf(out, "%c", "xyz"[p->axis]);
	if (p->size != s->mesh->size[p->axis])
		str_printf(out, ":(%u)%u", p->pre, p->size);
}

static const char *draw_sharding(struct sharder *s, const struct tc_type *t)
{
	struct piece piece[2 * MOST_AXES];
	unsigned n = cut_axes(s, piece);
	struct str text = { 0 };
	const char *kept;

	place_pieces(s, t, piece, n);
	str_printf(&text, "@mesh[");
	for (unsigned d = 0; d < t->rank; d++) {
		const char *comma = "";

		str_printf(&text, d ? ",{" : "{");
		for (unsigned i = 0; i < n; i++) {
			if (piece[i].dim != (int)d)
				continue;
			str_printf(&text, "%s", comma);
			print_piece(s, &piece[i], &text);
			comma = ",";
		}
		if (!below(s, 6))
			str_printf(&text, "%s?", comma);
		str_printf(&text, "}");
	}
	str_printf(&text, "]");
	kept = text.failed ? NULL : arena_text(&s->c->arena, text.text, text.len);
	str_free(&text);
	if (!kept)
		tc_fail(s->c, ERR_RESOURCE_EXHAUSTED, NULL, "out of memory");
	return kept;
}

/* ---- a program ---- */

static bool is_cut(const struct tc_value *v)
{
	return !v->type->is_tuple && v->type->elem != ELEM_TOKEN;
}

static void constrain(struct sharder *s, struct tc_op *op, unsigned i)
{
	struct tc_value *v = tc_out(op, i), *to;
	struct tc_op *made = tc_new(s->c, TC_SHARDING_CONSTRAINT, 1, &v, 1, &v->type, 0);

	tc_set_str(s->c, made, "sharding", draw_sharding(s, v->type));
	to = tc_out(made, 0);
	to->side = v->side;
	tc_insert_before(op->next, made);
	tc_replace_uses(v, to);
	tc_set_operand(made, 0, v);
}

static void share_block(struct sharder *s, struct tc_block *b)
{
	struct tc_op *next;

	for (struct tc_op *op = b->first; op != b->last; op = next) {
		next = op->next;
		for (unsigned i = 0; i < op->n_results; i++)
			if (is_cut(tc_out(op, i)) && !below(s, s->one_in))
				constrain(s, op, i);
		if (op->op == TC_WHILE || op->op == TC_IF || op->op == TC_CASE)
			for (unsigned r = op->op == TC_WHILE; r < op->n_regions; r++)
				share_block(s, op->regions[r].block);
	}
}

static void name_mesh(struct sharder *s)
{
	struct tc_attr *mesh = arena_array(&s->c->arena, 1, sizeof(*mesh));

	if (!mesh)
		tc_fail(s->c, ERR_RESOURCE_EXHAUSTED, NULL, "out of memory");
	*mesh = (struct tc_attr){ .key = tc_key(s->c, "mesh", 4), .kind = TC_ATTR_STR,
				  .n = (uint32_t)strlen(s->mesh->text), .text = s->mesh->text };
	tc_set_attr(s->c, s->c->module, (struct tc_attr){ .key = tc_key(s->c, "meshes", 6),
		.kind = TC_ATTR_ATTRS, .n = 1, .attrs = mesh });
	tc_set_int(s->c, s->c->module, "num_partitions", TC_ATTR_INT, s->mesh->devices);
}

/* There each member has another one. */
static void number_partition(struct tc_op *op, void *arg)
{
	struct tc_ctx *c = arg;
	struct tc_build b = tc_build_at(c, op);
	struct tc_value *zero;

	if (op->op != TC_PARTITION_ID)
		return;
	zero = tc_build_number(&b, tc_out(op, 0)->type, 0);
	zero->side = tc_out(op, 0)->side;
	tc_replace_uses(tc_out(op, 0), zero);
}

void gen_shard(struct tc_ctx *c, uint64_t seed)
{
	struct sharder s = { .c = c, .rng = seed ^ 0x9e3779b97f4a7c15u };
	struct tc_block *b = tc_main(c);
	struct tc_op *func = b->region->parent;

	s.mesh = &meshes[below(&s, sizeof(meshes) / sizeof(*meshes))];
	s.one_in = 2 + below(&s, 12);
	facts_read(c);
	tc_walk(c->module, number_partition, c);
	name_mesh(&s);
	for (unsigned i = 0; i < b->n_args; i++)
		if (is_cut(b->args[i]) && below(&s, 4))
			func->arg_info[i].sharding = draw_sharding(&s, b->args[i]->type);
	for (unsigned i = 0; i < b->last->n_operands; i++)
		if (is_cut(tc_in(b->last, i)) && below(&s, 2))
			func->res_info[i].sharding =
				draw_sharding(&s, tc_in(b->last, i)->type);
	share_block(&s, b);
	facts_write(c);
}
