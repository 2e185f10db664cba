/* SPDX-License-Identifier: Apache-2.0 */
/* Values of HLO instructions, found by ids that a program made up; messages (hlo.h). */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/compiler/front/hlo.h"

/* ---- locations ---- */

/* The innermost place of a stack of frames; false: the module names none. */
static bool frame_of(const struct hlo *r, int64_t id, const char **file, int *line)
{
	const Hlo__StackFrames *s = r->m ? r->m->stack_frames : NULL;
	const Hlo__FileLocation *at;
	int64_t place;

	if (!s || id < 1 || (uint64_t)id > s->n_stack_frames)
		return false;
	place = s->stack_frames[id - 1]->file_location_id;
	if (place < 1 || (uint64_t)place > s->n_file_locations)
		return false;
	at = s->file_locations[place - 1];
	if (at->file_name_id < 1 || (size_t)at->file_name_id > s->n_file_names)
		return false;
	*file = s->file_names[at->file_name_id - 1];
	*line = at->line;
	return true;
}

const char *hlo_where(struct hlo *r, const struct hlo_insn *i)
{
	const Hlo__Metadata *m = i ? i->p->metadata : NULL;
	const char *name = i && i->p->name ? i->p->name : "an instruction without a name";
	const char *op = m && m->op_name ? m->op_name : "", *file = "", *where;
	int line = 0;
	size_t n;

	if (m && m->source_file && *m->source_file) {
		file = m->source_file;
		line = m->source_line;
	} else if (m) {
		frame_of(r, m->stack_frame_id, &file, &line);
	}
	n = strlen(file);
	if (!*op && !*file)
		where = arena_printf(&r->c->arena, "%.120s", name);
	else if (!*file)
		where = arena_printf(&r->c->arena, "%.120s (%.80s)", op, name);
	else
		where = arena_printf(&r->c->arena, "%.120s%s%s:%d (%.80s)", op, *op ? " at " : "",
				     n > 60 ? file + n - 60 : file, line, name);
	if (!where)
		tc_fail(r->c, ERR_RESOURCE_EXHAUSTED, NULL, "out of memory while reading");
	return where;
}

/* ---- failing ---- */

static _Noreturn void fail(struct hlo *r, int code, const char *fmt, va_list ap)
{
	char text[ERR_MSG_BYTES];

	vsnprintf(text, sizeof(text), fmt, ap);
	if (!r->now)
		tc_fail(r->c, code, NULL, "%s", text);
	tc_fail(r->c, code, NULL, "%.60s: %s, at %s",
		r->now->p->opcode ? r->now->p->opcode : "an instruction without an opcode", text,
		hlo_where(r, r->now));
}

void hlo_bad(struct hlo *r, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	fail(r, ERR_INVALID_ARGUMENT, fmt, ap);
}

void hlo_refuse(struct hlo *r, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	fail(r, ERR_UNIMPLEMENTED, fmt, ap);
}

void *hlo_get(struct hlo *r, size_t count, size_t size)
{
	void *p = arena_array(&r->c->arena, count, size);

	if (!p)
		tc_fail(r->c, ERR_RESOURCE_EXHAUSTED, NULL, "out of memory while reading");
	return p;
}

/* ---- ids ---- */

static int by_id(const void *a, const void *b)
{
	const struct hlo_slot *x = a, *y = b;

	return x->id < y->id ? -1 : x->id > y->id;
}

void hlo_sort(struct hlo_index *x)
{
	qsort(x->slots, x->n, sizeof(*x->slots), by_id);
}

const struct hlo_slot *hlo_find(const struct hlo_index *x, int64_t id)
{
	const struct hlo_slot key = { .id = id };

	return x->n ? bsearch(&key, x->slots, x->n, sizeof(key), by_id) : NULL;
}

/* ---- values ---- */

const struct hlo_value *hlo_operand(struct hlo *r, const struct hlo_insn *i, size_t n)
{
	const struct hlo_slot *s;
	const struct hlo_insn *def;

	if (n >= i->p->n_operand_ids)
		hlo_bad(r, "it has %zu operands, too few", i->p->n_operand_ids);
	s = hlo_find(&r->insn_ids, i->p->operand_ids[n]);
	if (!s)
		hlo_bad(r, "operand %zu names instruction %" PRId64 ", which is not there", n,
			i->p->operand_ids[n]);
	def = &r->insns[s->at];
	if (def->computation != i->computation)
		hlo_bad(r, "operand %zu names an instruction of another computation", n);
	if (!def->is_defined)
		hlo_bad(r, "operand %zu stands after it", n);
	return &def->value;
}

struct tc_value *hlo_array(struct hlo *r, const struct hlo_insn *i, size_t n)
{
	const struct hlo_value *v = hlo_operand(r, i, n);

	if (v->type->is_tuple)
		hlo_bad(r, "operand %zu is a tuple", n);
	return v->leaf[0];
}

unsigned hlo_count(const struct tc_type *t)
{
	return t->is_tuple ? t->leaves : 1;
}

unsigned hlo_part_at(struct hlo *r, const struct tc_type *t, unsigned part)
{
	if (r->counted != t) {
		r->part_at = hlo_get(r, t->n_parts + 1u, sizeof(*r->part_at));
		for (unsigned i = 0; i < t->n_parts; i++)
			r->part_at[i + 1] = r->part_at[i] + hlo_count(t->parts[i]);
		r->counted = t;
	}
	return r->part_at[part];
}

unsigned hlo_leaves(struct hlo *r, const struct hlo_insn *i, size_t first,
		    struct tc_value ***out)
{
	size_t n = 0, at = 0;

	for (size_t k = first; k < i->p->n_operand_ids; k++)
		n += hlo_count(hlo_operand(r, i, k)->type);
	if (n > 1u << 20)
		hlo_refuse(r, "operands of %zu arrays", n);
	*out = hlo_get(r, n, sizeof(**out));
	for (size_t k = first; k < i->p->n_operand_ids; k++) {
		const struct hlo_value *v = hlo_operand(r, i, k);
		unsigned m = hlo_count(v->type);

		if (m)
			memcpy(*out + at, v->leaf, m * sizeof(**out));
		at += m;
	}
	return (unsigned)n;
}

/* ---- computations ---- */

uint32_t hlo_callee(struct hlo *r, const struct hlo_insn *i, size_t n)
{
	const struct hlo_slot *s;

	if (n >= i->p->n_called_computation_ids)
		hlo_bad(r, "it names %zu computations, too few", i->p->n_called_computation_ids);
	s = hlo_find(&r->computation_ids, i->p->called_computation_ids[n]);
	if (!s)
		hlo_bad(r, "it names computation %" PRId64 ", which is not there",
			i->p->called_computation_ids[n]);
	return s->at;
}

const struct hlo_computation *hlo_parameters(struct hlo *r, uint32_t computation)
{
	struct hlo_computation *k = &r->computations[computation];
	uint32_t n = 0;

	if (k->params)
		return k;
	for (size_t i = 0; i < k->p->n_instructions; i++)
		n += k->p->instructions[i]->opcode &&
		     !strcmp(k->p->instructions[i]->opcode, "parameter");
	k->n_params = n;
	k->params = hlo_get(r, n + 1u, sizeof(*k->params));
	memset(k->params, 0xff, n * sizeof(*k->params));
	for (uint32_t i = 0; i < k->p->n_instructions; i++) {
		const Hlo__Instruction *p = k->p->instructions[i];

		if (!p->opcode || strcmp(p->opcode, "parameter"))
			continue;
		if (p->parameter_number < 0 || p->parameter_number >= n ||
		    k->params[p->parameter_number] != UINT32_MAX) {
			r->now = &r->insns[k->first + i];
			hlo_bad(r, "parameter number %" PRId64 " of %u, or twice",
				p->parameter_number, n);
		}
		k->params[p->parameter_number] = k->first + i;
	}
	return k;
}
