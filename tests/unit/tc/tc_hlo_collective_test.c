/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collectives of HLO that StableHLO has in other forms: begun here and done there, of one array
 * for each member, of several; by two replicas, with XLA's meaning. And groups in forms that
 * are refused.
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

/* Read as none they would mean all. */
static void groups_in_other_forms_are_refused(void **state)
{
	for (unsigned k = 0; k < 3; k++) {
		Hlo__Computation *e;
		Hlo__Module *m = begin(&e);
		Hlo__Instruction *i = add(e, 11, "all-reduce", array(F32, 4), LIST(10));
		ProtobufCBinaryData *data = k ? &i->groups_formula : &i->groups_of_mesh;

		calls(i, 1);
		if (k == 2) {
			i->device_groups = need(1, sizeof(*i->device_groups));
			hlo__device_groups__init(i->device_groups);
			i->device_groups->has_formula = 1;
			data = &i->device_groups->formula;
		} else {
			*(k ? &i->has_groups_formula : &i->has_groups_of_mesh) = 1;
		}
		*data = (ProtobufCBinaryData){ 2, need(2, 1) };
		refuses(m, ERR_UNIMPLEMENTED, "groups that are not given as lists");
	}
	(void)state;
}

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
		cmocka_unit_test(groups_in_other_forms_are_refused),
		cmocka_unit_test(what_was_not_begun_cannot_be_done),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
