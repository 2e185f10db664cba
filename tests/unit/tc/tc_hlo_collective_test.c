/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collectives of HLO that StableHLO has in other forms: begun here and done there, of one array
 * for each member, of several; by two replicas, with XLA's meaning. And groups as a formula, and
 * as axes of a mesh.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "hal/base/elem.h"
#include "runtime/compiler/front/hlo.pb-c.h"
#include "runtime/compiler/tc.h"

#define F32 11
#define U32 8
static const float in[2][4] = { { 1, 2, 3, 4 }, { 10, 20, 30, 40 } };

/* ---- modules ---- */

static void *need(size_t n, size_t size)
{
	void *p = calloc(n, size);

	assert_non_null(p);
	return p;
}

static int64_t *numbers(unsigned n, const int64_t *from)
{
	int64_t *p = need(n + 1, sizeof(*p));

	if (n)
		memcpy(p, from, n * sizeof(*p));
	return p;
}
#define LIST(...) sizeof((int64_t[]){ __VA_ARGS__ }) / 8, (const int64_t[]){ __VA_ARGS__ }

/* Of one dim; size 0: a scalar. */
static Hlo__Shape *array(int type, int64_t size)
{
	Hlo__Shape *s = need(1, sizeof(*s));

	hlo__shape__init(s);
	s->has_element_type = 1;
	s->element_type = type;
	s->n_dimensions = size != 0;
	s->dimensions = numbers(1, &size);
	return s;
}

static Hlo__Shape *tuple(unsigned n, Hlo__Shape *const *parts)
{
	Hlo__Shape *s = array(13, 0);

	s->n_tuple_shapes = n;
	s->tuple_shapes = need(n, sizeof(*parts));
	memcpy(s->tuple_shapes, parts, n * sizeof(*parts));
	return s;
}
#define TUPLE(...) tuple(sizeof((Hlo__Shape *[]){ __VA_ARGS__ }) / sizeof(void *), \
			 (Hlo__Shape *[]){ __VA_ARGS__ })

static Hlo__Computation *computation(Hlo__Module *m, int64_t id)
{
	Hlo__Computation *c = need(1, sizeof(*c));

	hlo__computation__init(c);
	c->has_id = 1;
	c->id = id;
	c->instructions = need(8, sizeof(*c->instructions));
	m->computations[m->n_computations++] = c;
	return c;
}

/* The last one is the root. */
static Hlo__Instruction *add(Hlo__Computation *c, int64_t id, const char *opcode, Hlo__Shape *shape,
			     size_t n, const int64_t *operands)
{
	Hlo__Instruction *i = need(1, sizeof(*i));

	hlo__instruction__init(i);
	i->opcode = strdup(opcode);
	i->shape = shape;
	i->has_id = 1;
	i->id = id;
	i->n_operand_ids = n;
	i->operand_ids = numbers((unsigned)n, operands);
	c->instructions[c->n_instructions++] = i;
	c->has_root_id = 1;
	c->root_id = id;
	return i;
}

static void parameter(Hlo__Computation *c, int64_t id, int64_t number, Hlo__Shape *shape)
{
	Hlo__Instruction *i = add(c, id, "parameter", shape, 0, NULL);

	i->has_parameter_number = 1;
	i->parameter_number = number;
}

static void along(Hlo__Instruction *i, int64_t dim)
{
	i->n_dimensions = 1;
	i->dimensions = numbers(1, &dim);
}

static void calls(Hlo__Instruction *i, int64_t id)
{
	i->n_called_computation_ids = 1;
	i->called_computation_ids = numbers(1, &id);
}

static void pair(Hlo__Instruction *i, int64_t source, int64_t target)
{
	Hlo__SourceTarget *p = need(1, sizeof(*p));

	hlo__source_target__init(p);
	p->has_source = p->has_target = 1;
	p->source = source;
	p->target = target;
	i->source_target_pairs = need(1, sizeof(*i->source_target_pairs));
	i->source_target_pairs[i->n_source_target_pairs++] = p;
}

/* Computation 1 adds two scalars; the entry, 2, takes f32[4] as instruction 10. */
static Hlo__Module *begin(Hlo__Computation **entry)
{
	Hlo__Module *m = need(1, sizeof(*m));
	Hlo__Computation *c;

	hlo__module__init(m);
	m->computations = need(4, sizeof(*m->computations));
	c = computation(m, 1);
	parameter(c, 1, 0, array(F32, 0));
	parameter(c, 2, 1, array(F32, 0));
	add(c, 3, "add", array(F32, 0), LIST(1, 2));
	*entry = computation(m, 2);
	parameter(*entry, 10, 0, array(F32, 4));
	m->has_entry_computation_id = 1;
	m->entry_computation_id = 2;
	return m;
}

/* Evaluates for two replicas as it comes and with collectives taken apart; frees m. */
static void gives(Hlo__Module *m, unsigned n, const float *first, const float *second)
{
	struct tc_source s = { .bytes = hlo__module__get_packed_size(m), .format = "hlo" };
	uint8_t *bytes = need(s.bytes + 1, 1);
	struct tc_array args[2], *outs;
	struct err err;
	size_t n_outs;

	s.code = bytes;
	hlo__module__pack(m, bytes);
	for (unsigned k = 0; k < 2; k++)
		args[k] = (struct tc_array){ .elem = ELEM_F32, .rank = 1, .dim = { 4 }, .bytes = 16,
					     .data = (void *)(uintptr_t)in[k] };
	for (unsigned k = 0; k < 2; k++) {
		struct tc_options o = { .replicas = 2, .level = 1,
					.evaluate_after = k ? "collectives" : NULL };

		if (tc_eval_gang(&s, &o, args, 1, &outs, &n_outs, &err))
			fail_msg("%s", err.msg);
		assert_int_equal(outs[0].bytes, n * sizeof(float));
		assert_memory_equal(outs[0].data, first, n * sizeof(float));
		assert_memory_equal(outs[n_outs].data, second, n * sizeof(float));
		tc_array_free(outs, 2 * n_outs);
	}
	free(bytes);
	hlo__module__free_unpacked(m, NULL);
}

static void refuses(Hlo__Module *m, int code, const char *words)
{
	struct tc_source s = { .bytes = hlo__module__get_packed_size(m), .format = "hlo" };
	uint8_t *bytes = need(s.bytes + 1, 1);
	struct tc_options o = { .replicas = 2 };
	struct err err = { 0 };
	char *text;

	s.code = bytes;
	hlo__module__pack(m, bytes);
	assert_int_equal(tc_print(&s, &o, "read", &text, &err), code);
	if (!strstr(err.msg, words))
		fail_msg("\"%s\" does not say \"%s\"", err.msg, words);
	free(bytes);
	hlo__module__free_unpacked(m, NULL);
}

/* ---- tests ---- */

static void a_gather_that_is_begun_is_done(void **state)
{
	static const float all[8] = { 1, 2, 3, 4, 10, 20, 30, 40 };
	Hlo__Computation *e;
	Hlo__Module *m = begin(&e);

	(void)state;
	along(add(e, 11, "all-gather-start", TUPLE(array(F32, 4), array(F32, 8)), LIST(10)), 0);
	add(e, 12, "all-gather-done", array(F32, 8), LIST(11));
	gives(m, 8, all, all);
}

static void a_reduction_that_is_begun_is_done(void **state)
{
	static const float sum[4] = { 11, 22, 33, 44 };
	Hlo__Computation *e;
	Hlo__Module *m = begin(&e);

	(void)state;
	calls(add(e, 11, "all-reduce-start", array(F32, 4), LIST(10)), 1);
	add(e, 12, "all-reduce-done", array(F32, 4), LIST(11));
	gives(m, 4, sum, sum);
}

static void a_permutation_that_is_begun_has_marks_too(void **state)
{
	static const float none[4] = { 0 };
	Hlo__Computation *e;
	Hlo__Module *m = begin(&e);

	(void)state;
	pair(add(e, 11, "collective-permute-start", TUPLE(array(F32, 4), array(F32, 4),
							  array(U32, 0), array(U32, 0)), LIST(10)),
	     0, 1);
	add(e, 12, "collective-permute-done", array(F32, 4), LIST(11));
	gives(m, 4, none, in[0]);
}

/* An all-to-all of a part each; without groups, all are in one. */
static void anything_may_be_begun_in_a_computation(void **state)
{
	static const float first[4] = { 1, 2, 10, 20 }, second[4] = { 3, 4, 30, 40 };
	Hlo__Computation *e, *c;
	Hlo__Module *m = begin(&e);

	(void)state;
	c = computation(m, 3);
	parameter(c, 30, 0, array(F32, 4));
	along(add(c, 31, "all-to-all", array(F32, 4), LIST(30)), 0);
	calls(add(e, 11, "async-start", TUPLE(TUPLE(array(F32, 4)), array(F32, 4), array(U32, 0)),
		  LIST(10)), 3);
	add(e, 12, "async-update", TUPLE(TUPLE(array(F32, 4)), array(F32, 4), array(U32, 0)),
	    LIST(11));
	add(e, 13, "async-done", array(F32, 4), LIST(12));
	gives(m, 4, first, second);
}

/* Array k goes to member k, and the one that comes from it is the result's part k. */
static void arrays_go_one_to_each_member(void **state)
{
	static const float first[4] = { 10, 20, 30, 40 }, second[4] = { 20, 40, 60, 80 };
	Hlo__Computation *e;
	Hlo__Module *m = begin(&e);
	Hlo__Instruction *part;

	(void)state;
	add(e, 11, "add", array(F32, 4), LIST(10, 10));
	add(e, 12, "all-to-all", TUPLE(array(F32, 4), array(F32, 4)), LIST(10, 11));
	part = add(e, 13, "get-tuple-element", array(F32, 4), LIST(12));
	part->has_tuple_index = 1;
	part->tuple_index = 1;
	gives(m, 4, first, second);
}

static void several_arrays_are_scattered(void **state)
{
	static const float first[2] = { 22, 44 }, second[2] = { 66, 88 };
	Hlo__Computation *e;
	Hlo__Module *m = begin(&e);
	Hlo__Instruction *i;

	(void)state;
	add(e, 11, "add", array(F32, 4), LIST(10, 10));
	i = add(e, 12, "reduce-scatter", TUPLE(array(F32, 2), array(F32, 2)), LIST(10, 11));
	along(i, 0);
	calls(i, 1);
	i = add(e, 13, "get-tuple-element", array(F32, 2), LIST(12));
	i->has_tuple_index = 1;
	i->tuple_index = 1;
	gives(m, 2, first, second);
}

/* ---- groups by a formula, and along axes of a mesh ---- */

#define EIGHT 8

static Hlo__GroupsFormula *formula(int64_t n, int64_t size, unsigned n_grid, const int64_t *grid,
				   unsigned n_order, const int64_t *order)
{
	Hlo__GroupsFormula *f = need(1, sizeof(*f));

	hlo__groups_formula__init(f);
	f->has_n_groups = f->has_group_size = 1;
	f->n_groups = n;
	f->group_size = size;
	f->n_grid = n_grid;
	f->grid = numbers(n_grid, grid);
	f->n_order = n_order;
	f->order = need(n_order + 1, sizeof(*f->order));
	for (unsigned i = 0; i < n_order; i++)
		f->order[i] = (int32_t)order[i];
	return f;
}

static Hlo__Mesh *mesh(unsigned n_axes, const int64_t *sizes, unsigned n_ids, const int64_t *ids)
{
	Hlo__Mesh *m = need(1, sizeof(*m));

	hlo__mesh__init(m);
	m->n_axes = n_axes;
	m->axes = need(n_axes + 1, sizeof(*m->axes));
	for (unsigned i = 0; i < n_axes; i++) {
		m->axes[i] = need(1, sizeof(**m->axes));
		hlo__mesh_axis__init(m->axes[i]);
		m->axes[i]->has_size = 1;
		m->axes[i]->size = sizes[i];
	}
	m->n_device_ids = n_ids;
	m->device_ids = numbers(n_ids, ids);
	return m;
}

/* parts: of each axis a pre-size and a size; 0 for all of it. */
static Hlo__GroupsOfMesh *along_axes(Hlo__Mesh *m, unsigned n, const int64_t *axes,
				     const int64_t (*parts)[2])
{
	Hlo__GroupsOfMesh *g = need(1, sizeof(*g));

	hlo__groups_of_mesh__init(g);
	g->mesh = m;
	g->n_axes = n;
	g->axes = need(n + 1, sizeof(*g->axes));
	for (unsigned i = 0; i < n; i++) {
		Hlo__AxisRef *a = g->axes[i] = need(1, sizeof(*a));

		hlo__axis_ref__init(a);
		a->has_axis = 1;
		a->axis = axes[i];
		if (!parts || !parts[i][1])
			continue;
		a->part = need(1, sizeof(*a->part));
		hlo__sub_axis__init(a->part);
		a->part->has_pre_size = a->part->has_size = 1;
		a->part->pre_size = parts[i][0];
		a->part->size = parts[i][1];
	}
	return g;
}

/* A gather of one element each by members 0 to 7, and the groups to be given to it. */
static Hlo__Module *gather(unsigned size, Hlo__Instruction **i)
{
	Hlo__Computation *e;
	Hlo__Module *m = begin(&e);

	*i = add(e, 11, "all-gather", array(F32, 4 * size), LIST(10));
	along(*i, 0);
	return m;
}

/* Each member sees the members of its group in the order that `rows` has, by 8 / size rows. */
static void gathers(Hlo__Module *m, unsigned size, const unsigned *rows)
{
	struct tc_source s = { .bytes = hlo__module__get_packed_size(m), .format = "hlo" };
	uint8_t *bytes = need(s.bytes + 1, 1);
	struct tc_options o = { .replicas = EIGHT, .level = 1 };
	struct tc_array args[EIGHT], *outs;
	float own[EIGHT][4];
	struct err err;
	size_t n_outs;

	s.code = bytes;
	hlo__module__pack(m, bytes);
	for (unsigned k = 0; k < EIGHT; k++) {
		for (unsigned x = 0; x < 4; x++)
			own[k][x] = (float)k;
		args[k] = (struct tc_array){ .elem = ELEM_F32, .rank = 1, .dim = { 4 },
					     .bytes = 16, .data = own[k] };
	}
	if (tc_eval_gang(&s, &o, args, 1, &outs, &n_outs, &err))
		fail_msg("%s", err.msg);
	for (unsigned at = 0; at < EIGHT; at++)
		for (unsigned k = 0; k < size; k++)
			if (((float *)outs[rows[at]].data)[4 * k] !=
			    (float)rows[at / size * size + k])
				fail_msg("member %u has %g at place %u", rows[at],
					 (double)((float *)outs[rows[at]].data)[4 * k], k);
	tc_array_free(outs, EIGHT * n_outs);
	free(bytes);
	hlo__module__free_unpacked(m, NULL);
}

static void groups_may_be_a_formula(void **state)
{
	static const unsigned turned[] = { 0, 4, 1, 5, 2, 6, 3, 7 };
	static const unsigned three[] = { 0, 2, 4, 6, 1, 3, 5, 7 };
	Hlo__Instruction *i;
	Hlo__Module *m = gather(2, &i);

	(void)state;
	i->device_groups = need(1, sizeof(*i->device_groups));
	hlo__device_groups__init(i->device_groups);
	i->device_groups->formula = formula(4, 2, LIST(2, 4), LIST(1, 0));
	gathers(m, 2, turned);
	m = gather(4, &i);
	i->groups_formula = formula(2, 4, LIST(2, 2, 2), LIST(2, 0, 1));
	gathers(m, 4, three);
	m = gather(8, &i);
	i->groups_formula = formula(1, 8, LIST(8), LIST(0));
	gathers(m, 8, (const unsigned[]){ 0, 1, 2, 3, 4, 5, 6, 7 });
}

static void groups_may_be_axes_of_a_mesh(void **state)
{
	static const int64_t part[][2] = { { 2, 2 }, { 0, 0 } };
	Hlo__Instruction *i;
	Hlo__Module *m = gather(2, &i);

	(void)state;
	i->groups_of_mesh = along_axes(mesh(LIST(2, 4), 0, NULL), LIST(0), NULL);
	gathers(m, 2, (const unsigned[]){ 0, 4, 1, 5, 2, 6, 3, 7 });
	/* The minor half of the second axis, then the first. */
	m = gather(4, &i);
	i->groups_of_mesh = along_axes(mesh(LIST(2, 4), 0, NULL), LIST(1, 0), part);
	gathers(m, 4, (const unsigned[]){ 0, 4, 1, 5, 2, 6, 3, 7 });
	m = gather(2, &i);
	i->groups_of_mesh = along_axes(mesh(LIST(4, 2), LIST(7, 6, 5, 4, 3, 2, 1, 0)), LIST(1),
				       NULL);
	gathers(m, 2, (const unsigned[]){ 7, 6, 5, 4, 3, 2, 1, 0 });
}

static void refuses_formula(Hlo__GroupsFormula *f, const char *words)
{
	Hlo__Instruction *i;
	Hlo__Module *m = gather(2, &i);

	i->groups_formula = f;
	refuses(m, ERR_INVALID_ARGUMENT, words);
}

static void refuses_axes(Hlo__GroupsOfMesh *g, const char *words)
{
	Hlo__Instruction *i;
	Hlo__Module *m = gather(2, &i);

	i->groups_of_mesh = g;
	refuses(m, ERR_INVALID_ARGUMENT, words);
}

static void groups_that_are_none_are_refused(void **state)
{
	static const int64_t large = (int64_t)1 << 62, uneven[][2] = { { 3, 2 } };
	Hlo__Instruction *i;
	Hlo__Module *m;

	(void)state;
	refuses_formula(formula(2, 2, LIST(2, 4), LIST(1, 0)), "8 members for 2 groups of 2");
	refuses_formula(formula(0, 0, LIST(2, 4), LIST(1, 0)), "8 members for 0 groups of 0");
	refuses_formula(formula(-4, -2, LIST(2, 4), LIST(1, 0)), "for -4 groups of -2");
	refuses_formula(formula(4, 2, LIST(2, 4), LIST(1, 1)), "an order that is none");
	refuses_formula(formula(4, 2, LIST(2, 4), LIST(1, 2)), "an order that is none");
	refuses_formula(formula(4, 2, LIST(2, 4), LIST(1, -1)), "an order that is none");
	refuses_formula(formula(4, 2, LIST(2, 4), LIST(1)), "2 dims in an order of 1");
	refuses_formula(formula(4, 2, LIST(0, 4), LIST(1, 0)), "a dim of 0");
	refuses_formula(formula(4, 2, LIST(8, large), LIST(1, 0)), "at most 65536 members");
	refuses_formula(formula(32768, 2, LIST(2, 32769), LIST(1, 0)), "at most 65536 members");
	/* As many as may be; only they are not there. */
	refuses_formula(formula(32768, 2, LIST(2, 32768), LIST(1, 0)), "names replica 32768");
	refuses_axes(along_axes(NULL, LIST(0), NULL), "axes of no mesh");
	refuses_axes(along_axes(mesh(LIST(2, 4), 0, NULL), LIST(2), NULL), "axis 2 of a mesh of 2");
	refuses_axes(along_axes(mesh(LIST(2, 4), 0, NULL), LIST(-1), NULL), "axis -1 of a mesh");
	refuses_axes(along_axes(mesh(LIST(2, 4), 0, NULL), LIST(1), uneven), "does not divide it");
	refuses_axes(along_axes(mesh(LIST(2, 4), 0, NULL), LIST(1, 1), NULL), "named twice");
	refuses_axes(along_axes(mesh(LIST(2, 0), 0, NULL), LIST(0), NULL), "devices, or none");
	refuses_axes(along_axes(mesh(LIST(2, large), 0, NULL), LIST(0), NULL), "than 65536");
	refuses_axes(along_axes(mesh(LIST(2), LIST(1, 0, 2)), LIST(0), NULL), "3 ids for 2");
	m = gather(2, &i);
	i->groups_formula = formula(1, 2, LIST(2), LIST(0));
	i->groups_of_mesh = along_axes(mesh(LIST(2), 0, NULL), LIST(0), NULL);
	refuses(m, ERR_INVALID_ARGUMENT, "in two ways who meets");
}

/* ---- rows by the number ---- */

/* A list of two numbers, the same on both members. */
static void list(Hlo__Computation *e, int64_t id, int32_t first, int32_t second)
{
	Hlo__Instruction *i = add(e, id, "constant", array(4, 2), 0, NULL);
	Hlo__Literal *l = need(1, sizeof(*l));

	hlo__literal__init(l);
	l->shape = array(4, 2);
	l->n_s32s = 2;
	l->s32s = need(2, sizeof(*l->s32s));
	l->s32s[0] = first;
	l->s32s[1] = second;
	i->literal = l;
}

/* To the first member one row from row 1 on, to its row 0; to the second two, from row 2, to 2. */
static Hlo__Module *ragged(unsigned last)
{
	Hlo__Computation *e;
	Hlo__Module *m = begin(&e);

	add(e, 11, "negate", array(F32, 4), LIST(10));
	list(e, 12, 1, 2);
	list(e, 13, 1, 2);
	list(e, 14, 0, 2);
	if (last)
		add(e, 15, "iota", array(4, last), 0, NULL)->n_dimensions = 1;
	if (last)
		e->instructions[e->n_instructions - 1]->dimensions = numbers(1, &(int64_t){ 0 });
	add(e, 16, "ragged-all-to-all", array(F32, 4), LIST(10, 11, 12, 13, 14, last ? 15 : 12));
	return m;
}

static void rows_are_sent_by_the_number(void **state)
{
	/* Of two that are for one row the last member's stays. */
	static const float first[4] = { 20, -2, -3, -4 }, second[4] = { -10, -20, 30, 40 };

	(void)state;
	gives(ragged(0), 4, first, second);
}

static void lists_of_rows_are_as_long_as_each_other(void **state)
{
	Hlo__Module *m = ragged(3);

	(void)state;
	refuses(m, ERR_INVALID_ARGUMENT, "operand 5 is no list of whole numbers as long as "
		"operand 2");
	m = ragged(0);
	m->computations[1]->instructions[5]->n_operand_ids = 5;
	refuses(m, ERR_INVALID_ARGUMENT, "it has 5 operands and 1 results, not 6 and 1");
	m = ragged(0);
	hlo__shape__free_unpacked(m->computations[1]->instructions[1]->shape, NULL);
	m->computations[1]->instructions[1]->shape = array(F32, 4);
	m->computations[1]->instructions[5]->operand_ids[0] = 12;
	refuses(m, ERR_INVALID_ARGUMENT, "have other rows");
	m = ragged(0);
	m->computations[1]->instructions[5]->replica_groups = need(1, sizeof(void *));
	m->computations[1]->instructions[5]->n_replica_groups = 1;
	m->computations[1]->instructions[5]->replica_groups[0] = need(1, sizeof(Hlo__ReplicaGroup));
	hlo__replica_group__init(m->computations[1]->instructions[5]->replica_groups[0]);
	m->computations[1]->instructions[5]->replica_groups[0]->n_replica_ids = 1;
	m->computations[1]->instructions[5]->replica_groups[0]->replica_ids = numbers(1,
		&(int64_t){ 1 });
	refuses(m, ERR_INVALID_ARGUMENT, "leaves out replica 0");
}

/* ---- what does not fit ---- */

static void what_was_not_begun_cannot_be_done(void **state)
{
	Hlo__Computation *e;
	Hlo__Module *m = begin(&e);

	(void)state;
	add(e, 11, "all-gather-done", array(F32, 8), LIST(10));
	refuses(m, ERR_INVALID_ARGUMENT, "its operand was not begun");
	m = begin(&e);
	along(add(e, 11, "all-gather-start", array(F32, 8), LIST(10)), 0);
	refuses(m, ERR_INVALID_ARGUMENT, "its shape is not that of its operands and results");
	m = begin(&e);
	along(add(e, 11, "all-gather-start", TUPLE(array(F32, 5), array(F32, 8)), LIST(10)), 0);
	refuses(m, ERR_INVALID_ARGUMENT, "array 0 of its shape is of another type");
	m = begin(&e);
	add(e, 11, "all-to-all", TUPLE(array(F32, 4), array(F32, 5)), LIST(10, 10));
	refuses(m, ERR_INVALID_ARGUMENT, "result 1 is of another type");
	m = begin(&e);
	add(e, 11, "all-gather", array(F32, 8), LIST(10));
	refuses(m, ERR_INVALID_ARGUMENT, "it names 0 dimensions, not one");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_gather_that_is_begun_is_done),
		cmocka_unit_test(a_reduction_that_is_begun_is_done),
		cmocka_unit_test(a_permutation_that_is_begun_has_marks_too),
		cmocka_unit_test(anything_may_be_begun_in_a_computation),
		cmocka_unit_test(arrays_go_one_to_each_member),
		cmocka_unit_test(several_arrays_are_scattered),
		cmocka_unit_test(rows_are_sent_by_the_number),
		cmocka_unit_test(lists_of_rows_are_as_long_as_each_other),
		cmocka_unit_test(groups_may_be_a_formula),
		cmocka_unit_test(groups_may_be_axes_of_a_mesh),
		cmocka_unit_test(groups_that_are_none_are_refused),
		cmocka_unit_test(what_was_not_begun_cannot_be_done),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
