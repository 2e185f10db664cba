/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HLO modules (HloModuleProto, what torch_xla hands over) into the IR: the module, its
 * computations, the values.
 *
 * Requires: bytes. Ensures: a module with main alone, whose ops have the operands, regions
 * and attributes that the bytes give them, in forms that ir_verify.c can judge; no calls
 * and no tuples. Fails with the byte offset where the bytes are no module, else with the
 * instruction's name. The bytes are hostile (hlo.h).
 */
#include <inttypes.h>
#include <string.h>

#include "runtime/compiler/front/hlo.h"
#include "runtime/compiler/passes.h"

/* ---- ids ---- */

static void enter(struct hlo_index *x, int64_t id, size_t at)
{
	x->slots[x->n++] = (struct hlo_slot){ id, (uint32_t)at };
}

static void sort(struct hlo *r, struct hlo_index *x, const char *what)
{
	hlo_sort(x);
	for (size_t i = 1; i < x->n; i++)
		if (x->slots[i].id == x->slots[i - 1].id)
			hlo_bad(r, "two %s have the id %" PRId64, what, x->slots[i].id);
}

static void make_tables(struct hlo *r)
{
	const Hlo__Module *m = r->m;
	size_t n = 0, at = 0;

	for (size_t i = 0; i < m->n_computations; i++)
		n += m->computations[i]->n_instructions;
	if (n > UINT32_MAX / 2)
		hlo_refuse(r, "a module of %zu instructions", n);
	r->insns = hlo_get(r, n, sizeof(*r->insns));
	r->computations = hlo_get(r, m->n_computations, sizeof(*r->computations));
	r->insn_ids.slots = hlo_get(r, n, sizeof(*r->insn_ids.slots));
	r->computation_ids.slots = hlo_get(r, m->n_computations, sizeof(*r->computation_ids.slots));
	for (size_t i = 0; i < m->n_computations; i++) {
		const Hlo__Computation *p = m->computations[i];

		enter(&r->computation_ids, p->id, i);
		r->computations[i].p = p;
		r->computations[i].first = (uint32_t)at;
		for (size_t k = 0; k < p->n_instructions; k++, at++) {
			r->insns[at].p = p->instructions[k];
			r->insns[at].computation = (uint32_t)i;
			enter(&r->insn_ids, p->instructions[k]->id, at);
		}
	}
	sort(r, &r->computation_ids, "computations");
	sort(r, &r->insn_ids, "instructions");
}

/* ---- what main's arguments and results carry ---- */

/* The number of the array at this path into the type, counted over the whole. */
static unsigned leaf_at(struct hlo *r, const struct tc_type *t, size_t n, const int64_t *path,
			const char *what)
{
	unsigned at = 0;

	for (size_t i = 0; i < n; i++) {
		if (!t->is_tuple || path[i] < 0 || path[i] >= t->n_parts)
			hlo_bad(r, "%s names part %" PRId64 " of what has no such part", what,
				path[i]);
		at += hlo_part_at(r, t, (unsigned)path[i]);
		t = t->parts[path[i]];
	}
	if (t->is_tuple)
		hlo_bad(r, "%s names a tuple: a buffer is an array", what);
	return at;
}

/* first[i]: the number of parameter i's first array. */
struct arguments { const struct hlo_value *v; uint32_t n; unsigned *first; };

static struct arguments number_arguments(struct hlo *r, const struct hlo_value *v, uint32_t n)
{
	struct arguments a = { v, n, hlo_get(r, n + 1u, sizeof(*a.first)) };

	for (uint32_t i = 0; i < n; i++)
		a.first[i + 1] = a.first[i] + hlo_count(v[i].type);
	return a;
}

static unsigned argument_at(struct hlo *r, const struct arguments *a, int64_t number, size_t n,
			    const int64_t *path, const char *what)
{
	if (number < 0 || number >= a->n)
		hlo_bad(r, "%s names parameter %" PRId64 " of %u", what, number, a->n);
	return a->first[number] + leaf_at(r, a->v[number].type, n, path, what);
}

static void give_arg_info(struct hlo *r, struct tc_op *f, const struct arguments *args,
			  const struct hlo_value *result)
{
	static const char alias_text[] = "input_output_alias", donor_text[] = "buffer_donor";
	unsigned n = f->regions[0].block->n_args;

	f->arg_info = hlo_get(r, n, sizeof(*f->arg_info));
	for (unsigned i = 0; i < n; i++)
		f->arg_info[i].alias = -1;
	f->res_info = hlo_get(r, hlo_count(result->type), sizeof(*f->res_info));
	for (unsigned i = 0; i < hlo_count(result->type); i++)
		f->res_info[i].alias = -1;
	for (size_t i = 0; r->m->input_output_alias &&
	     i < r->m->input_output_alias->n_entries; i++) {
		const Hlo__Alias *a = r->m->input_output_alias->entries[i];
		unsigned arg = argument_at(r, args, a->parameter_number,
					   a->n_parameter_shape_index,
					   a->parameter_shape_index, alias_text);

		f->arg_info[arg].alias = (int32_t)leaf_at(r, result->type,
			a->n_output_shape_index, a->output_shape_index, alias_text);
	}
	for (size_t i = 0; r->m->buffer_donor && i < r->m->buffer_donor->n_entries; i++) {
		const Hlo__Donor *d = r->m->buffer_donor->entries[i];

		f->arg_info[argument_at(r, args, d->parameter_number,
					d->n_parameter_shape_index,
					d->parameter_shape_index, donor_text)].is_donor = true;
	}
}

static void give_shardings(struct hlo *r, struct tc_op *f, uint32_t entry,
			   const struct arguments *args, const struct hlo_value *result)
{
	const struct hlo_computation *k = &r->computations[entry];
	const struct hlo_slot *root = hlo_find(&r->insn_ids, k->p->root_id);
	unsigned n = hlo_count(result->type), n_args = args->first[args->n];
	const char **leaf = hlo_get(r, (size_t)(n > n_args ? n : n_args) + 1, sizeof(*leaf));

	for (uint32_t i = 0; i < args->n; i++)
		hlo_shardings(r, r->insns[k->params[i]].p->sharding, args->v[i].type,
			      leaf + args->first[i]);
	for (unsigned i = 0; i < n_args; i++)
		f->arg_info[i].sharding = leaf[i];
	hlo_shardings(r, r->insns[root->at].p->sharding, result->type, leaf);
	for (unsigned i = 0; i < n; i++)
		f->res_info[i].sharding = leaf[i];
}

/* ---- the module ---- */

static void read_main(struct hlo *r, uint32_t entry)
{
	struct tc_op *f = tc_new(r->c, TC_FUNC, 0, NULL, 0, NULL, 1);
	struct tc_block *b = tc_new_block(r->c, &f->regions[0]);
	struct hlo_value *args, result;
	struct arguments numbers;

	tc_set_str(r->c, f, "sym_name", "main");
	tc_append(r->c->module->regions[0].block, f);
	args = hlo_arguments(r, entry, b);
	result = hlo_read_computation(r, entry, b, args);
	hlo_end_block(r, b, &result);
	numbers = number_arguments(r, args, r->computations[entry].n_params);
	give_arg_info(r, f, &numbers, &result);
	give_shardings(r, f, entry, &numbers, &result);
}

void tc_read_hlo(struct tc_ctx *c, const void *p, size_t n)
{
	struct hlo *r = arena_alloc(&c->arena, sizeof(*r));
	const struct hlo_slot *entry;

	if (!r)
		tc_fail(c, ERR_RESOURCE_EXHAUSTED, NULL, "out of memory");
	r->c = c;
	r->m = hlo_unpack(r, &hlo__module__descriptor, p, n, "HloModuleProto");
	make_tables(r);
	entry = hlo_find(&r->computation_ids, r->m->entry_computation_id);
	if (!entry)
		hlo_bad(r, "the module has %zu computations and none with the id %" PRId64 ", "
			"which is to be its entry", r->m->n_computations,
			r->m->entry_computation_id);
	c->module = tc_new(c, TC_MODULE, 0, NULL, 0, NULL, 1);
	tc_new_block(c, &c->module->regions[0]);
	tc_set_str(c, c->module, "sym_name", r->m->name ? r->m->name : "");
	read_main(r, entry->at);
}

void tc_read_hlo_with_config(struct tc_ctx *c, const void *p, size_t n)
{
	struct hlo r = { .c = c };
	const Hlo__ModuleWithConfig *w = hlo_unpack_with_config(&r, p, n);

	tc_read_hlo(c, w->module.data, w->module.len);
}
