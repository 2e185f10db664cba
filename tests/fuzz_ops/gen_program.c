/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A whole program: the list of rules, how they are drawn, and what is returned.
 *
 * A program has a theme: few element types and few sizes, so that values fit each other and are
 * used many times. Its first values are arguments and constants; then rules, drawn by weight,
 * each make an op or say that they can't.
 */
#include "tests/fuzz_ops/facts_ir.h"
#include "tests/fuzz_ops/gen.h"

/* ---- rules ---- */

static const struct { gen_rule *rule; uint8_t weight, in_scalars; } rules[] = {
	{ gen_unary, 10, 1 }, { gen_binary, 24, 1 }, { gen_compare, 6, 1 },
	{ gen_select, 8, 1 }, { gen_clamp, 3, 1 }, { gen_convert, 8, 1 },
	{ gen_bitcast, 3, 0 }, { gen_complex, 3, 0 }, { gen_approximate, 3, 0 },
	{ gen_reduce_precision, 1, 0 }, { gen_broadcast, 9, 0 }, { gen_transpose, 9, 0 },
	{ gen_reverse, 7, 0 }, { gen_slice, 9, 0 }, { gen_reshape, 7, 0 },
	{ gen_concatenate, 6, 0 }, { gen_pad, 6, 0 }, { gen_dynamic_slice, 5, 0 },
	{ gen_dynamic_update, 6, 0 }, { gen_new_source, 4, 0 },
	{ gen_dimension_size, 1, 0 }, { gen_gather, 5, 0 }, { gen_scatter, 6, 0 },
	{ gen_dot, 7, 0 }, { gen_convolution, 3, 0 }, { gen_reduce, 9, 0 },
	{ gen_reduce_window, 3, 0 }, { gen_select_and_scatter, 1, 0 }, { gen_map, 1, 0 },
	{ gen_sort, 4, 0 }, { gen_while, 5, 0 }, { gen_case, 4, 0 }, { gen_call, 2, 0 },
	{ gen_barrier, 1, 0 }, { gen_tuple, 1, 0 }, { gen_rng_bits, 1, 0 },
	{ gen_fft, 1, 0 }, { gen_cholesky, 1, 0 }, { gen_solve, 1, 0 }, { gen_norm, 1, 0 },
};

static bool draw(struct gen *g)
{
	unsigned all = 0, k;

	for (unsigned i = 0; i < sizeof(rules) / sizeof(*rules); i++)
		all += rules[i].weight;
	k = gen_below(g, all);
	for (unsigned i = 0;; i++) {
		if (k < rules[i].weight)
			return (!g->scalars || rules[i].in_scalars) && rules[i].rule(g);
		k -= rules[i].weight;
	}
}

/* ---- the whole ---- */

/* Sizes on both sides of the limits of lanes, registers, tiles, panels, blocks, rows. */
static int64_t size_of(struct gen *g, unsigned class)
{
	static const int16_t small[] = { 0, 1, 1, 2, 2, 3, 3, 4, 5, 6, 7, 8, 9 };
	static const int16_t middle[] = { 1,  2,  3,  5,  8,  15, 16, 17,
					  31, 32, 33, 48, 63, 64, 65, 100 };
	static const int16_t large[] = { 1,    2,    3,	    7,	   16,	 33,   127,  128,
					 129,  255,  256,   257,   271,	 272,  273,  383,
					 384,  385,  511,   512,   513,	 1000, 1023, 1024,
					 1025, 2047, 2048,  2049,  4095, 4096, 4097, 8191,
					 8192, 8193, 16383, 16384, 16385 };

	switch (class) {
	case 0: return small[gen_below(g, sizeof(small) / sizeof(*small))];
	case 1: return middle[gen_below(g, sizeof(middle) / sizeof(*middle))];
	default: return large[gen_below(g, sizeof(large) / sizeof(*large))];
	}
}

static void choose_theme(struct gen *g)
{
	unsigned class = gen_below(g, 16);

	class = class < 10 ? 0 : class < 14 ? 1 : 2;
	g->most = class == 0 ? 2000 : class == 1 ? 6000 : 40000;
	g->budget = (class == 2 ? 4 : 6) + gen_below(g, class == 2 ? 12 : 30);
	g->n_elems = 1 + gen_below(g, 3);
	for (unsigned i = 0; i < g->n_elems; i++)
		g->elems[i] = (uint8_t)gen_any_elem(g);
	g->n_dims = 1 + gen_below(g, 4);
	for (unsigned i = 0; i < g->n_dims; i++)
		g->dims[i] = size_of(g, class);
	/* half of the programs have nothing empty */
	for (unsigned i = 0; i < g->n_dims; i++)
		if (!g->dims[i] && gen_one_in(g, 2))
			g->dims[i] = 2;
}

static void first_values(struct gen *g)
{
	unsigned n = 1 + gen_below(g, 3);

	for (unsigned i = 0; i < n; i++)
		gen_new_source(g);
}

static struct tc_arg_info *infos(struct gen *g, unsigned n)
{
	struct tc_arg_info *all = arena_array(&g->c->arena, n + 1, sizeof(*all));

	if (!all)
		tc_fail(g->c, ERR_RESOURCE_EXHAUSTED, NULL, "out of memory");
	for (unsigned i = 0; i < n; i++)
		all[i].alias = -1;
	return all;
}

/* Arguments donated to results of their type. */
static void donate(struct gen *g, struct tc_block *b, const struct tc_op *end)
{
	uint32_t taken = 0;

	g->func->arg_info = infos(g, b->n_args);
	g->func->res_info = infos(g, end->n_operands);
	if (gen_one_in(g, 2))
		return;
	for (unsigned i = 0; i < b->n_args; i++)
		for (unsigned k = 0; k < end->n_operands; k++)
			if (b->args[i]->type == tc_in(end, k)->type && !(taken >> k & 1) &&
			    gen_one_in(g, 2)) {
				g->func->arg_info[i].alias = (int32_t)k;
				taken |= 1u << k;
				break;
			}
}

static void finish(struct gen *g)
{
	struct tc_value *out[24];
	unsigned n = 0, most = 1 + gen_below(g, 12);

	for (unsigned i = g->n_pool; i-- > 0 && n < 16;)
		if (gen_is_tensor(g->pool[i], NULL) && tc_is_unused(g->pool[i]) && g->pool[i]->def)
			out[n++] = g->pool[i];
	while (n < most && n < 20 && gen_one_in(g, 2)) {
		struct tc_value *v = gen_pick_any(g);

		if (v)
			out[n++] = v;
	}
	if (!n)
		out[n++] = gen_pick_any(g);
	tc_append(g->b, tc_new(g->c, TC_RETURN, n, out, 0, NULL, 0));
	donate(g, g->b, g->b->last);
}

static struct tc_op *new_func(struct gen *g, const char *name)
{
	struct tc_op *f = tc_new(g->c, TC_FUNC, 0, NULL, 0, NULL, 1);

	tc_set_str(g->c, f, "sym_name", name);
	f->regions[0].parent = f;
	tc_append(g->c->module->regions[0].block, f);
	return f;
}

void gen_program(struct tc_ctx *c, uint64_t seed)
{
	struct gen g = { .c = c, .rng = seed, .draw = draw };

	fuzz_next(&g.rng);
	g.rng ^= seed << 32;
	while (c->module->regions[0].block->first)
		tc_unlink(c->module->regions[0].block->first);
	g.func = new_func(&g, "main");
	g.b = tc_new_block(c, &g.func->regions[0]);
	choose_theme(&g);
	first_values(&g);
	gen_some(&g, g.budget);
	finish(&g);
	facts_write(c);
}
