/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HLO modules that nobody should send: each change of a good one is refused with its code and
 * in words that name the place; and forms that few send and all must mean the same.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "hal/base/elem.h"
#include "runtime/compiler/front/hlo.pb-c.h"
#include "tests/unit/torch.h"

static Hlo__Module *read_module(const char *name)
{
	char path[256];
	Hlo__Module *m;
	size_t n = 0;
	char *p;

	snprintf(path, sizeof(path), TORCH_DIR "/%s.hlo", name);
	p = torch_read_file(path, &n);
	assert_non_null(p);
	m = hlo__module__unpack(NULL, n, (const uint8_t *)p);
	assert_non_null(m);
	free(p);
	return m;
}

static struct tc_source pack(const Hlo__Module *m)
{
	struct tc_source s = { .bytes = hlo__module__get_packed_size(m), .format = "hlo" };
	uint8_t *p = malloc(s.bytes + 1);

	assert_non_null(p);
	hlo__module__pack(m, p);
	s.code = p;
	return s;
}

/* The first instruction of that opcode. */
static Hlo__Instruction *find(Hlo__Module *m, const char *opcode)
{
	for (size_t i = 0; i < m->n_computations; i++)
		for (size_t k = 0; k < m->computations[i]->n_instructions; k++)
			if (!strcmp(m->computations[i]->instructions[k]->opcode, opcode))
				return m->computations[i]->instructions[k];
	fail_msg("no %s", opcode);
	return NULL;
}

static Hlo__Computation *entry(Hlo__Module *m)
{
	return m->computations[m->n_computations - 1];
}

static int compile(struct tc_source s, const struct tc_options *o, struct err *err)
{
	struct tc_result r;
	int code = tc_compile(&s, o, &r, err);

	if (!code)
		tc_result_free(&r);
	return code;
}

static void refuses(const Hlo__Module *m, int code, const char *words, const char *more)
{
	struct tc_source s = pack(m);
	struct err err = { 0 };

	assert_int_equal(compile(s, NULL, &err), code);
	if (!strstr(err.msg, words) || (more && !strstr(err.msg, more)))
		fail_msg("\"%s\" does not say \"%s\" and \"%s\"", err.msg, words,
			 more ? more : "");
	free((void *)(uintptr_t)s.code);
}

static void no_operand(Hlo__Module *m) { find(m, "multiply")->operand_ids[1] = 123456; }
static void few_operands(Hlo__Module *m) { find(m, "multiply")->n_operand_ids = 1; }
static void foreign_operand(Hlo__Module *m)
{
	find(m, "multiply")->operand_ids[0] = m->computations[0]->instructions[0]->id;
}
static void later_operand(Hlo__Module *m)
{
	find(m, "multiply")->operand_ids[0] = entry(m)->root_id;
}
static void same_ids(Hlo__Module *m)
{
	entry(m)->instructions[0]->id = entry(m)->instructions[1]->id;
}
static void same_computations(Hlo__Module *m) { m->computations[0]->id = entry(m)->id; }
static void no_entry(Hlo__Module *m) { m->entry_computation_id = -7; }
static void no_root(Hlo__Module *m) { entry(m)->root_id = 99999; }
static void foreign_root(Hlo__Module *m) { entry(m)->root_id = m->computations[0]->root_id; }
static void itself(Hlo__Module *m)
{
	find(m, "reduce")->called_computation_ids[0] = entry(m)->id;
}
static void no_callee(Hlo__Module *m) { find(m, "reduce")->called_computation_ids[0] = 555555; }
static void no_callees(Hlo__Module *m) { find(m, "reduce")->n_called_computation_ids = 0; }
static void parameter_twice(Hlo__Module *m)
{
	for (size_t i = 0; i < entry(m)->n_instructions; i++)
		if (!strcmp(entry(m)->instructions[i]->opcode, "parameter"))
			entry(m)->instructions[i]->parameter_number = 0;
}
static void parameter_far(Hlo__Module *m)
{
	find(m, "parameter")->has_parameter_number = 1;
	find(m, "parameter")->parameter_number = 1ll << 40;
}
static void short_literal(Hlo__Module *m)
{
	Hlo__Literal *l = find(m, "constant")->literal;

	l->n_f32s = l->n_s64s = l->n_s32s = l->n_preds = 0;
}
static void other_literal(Hlo__Module *m)
{
	find(m, "constant")->literal->shape->element_type = 12;
}
static void no_literal(Hlo__Module *m)
{
	hlo__literal__free_unpacked(find(m, "constant")->literal, NULL);
	find(m, "constant")->literal = NULL;
}
static void no_shape(Hlo__Module *m)
{
	hlo__shape__free_unpacked(find(m, "multiply")->shape, NULL);
	find(m, "multiply")->shape = NULL;
}
static void no_such_type(Hlo__Module *m) { find(m, "multiply")->shape->element_type = 99; }
static void odd_type(Hlo__Module *m) { find(m, "multiply")->shape->element_type = 14; }
static void other_shape(Hlo__Module *m) { find(m, "multiply")->shape->element_type = 5; }
static void negative_dim(Hlo__Module *m) { find(m, "broadcast")->shape->dimensions[0] = -3; }
static void huge_dim(Hlo__Module *m) { find(m, "broadcast")->shape->dimensions[0] = 1ll << 60; }
static void dynamic_dim(Hlo__Module *m)
{
	Hlo__Shape *s = find(m, "broadcast")->shape;

	assert_true(s->n_is_dynamic_dimension > 0);
	s->is_dynamic_dimension[0] = 1;
	s->dimensions[0] = INT64_MIN;
}
static void no_such_part(Hlo__Module *m)
{
	find(m, "get-tuple-element")->has_tuple_index = 1;
	find(m, "get-tuple-element")->tuple_index = 77;
}
static void no_tuple(Hlo__Module *m)
{
	find(m, "get-tuple-element")->operand_ids[0] = find(m, "multiply")->id;
}
static void no_such_op(Hlo__Module *m) { memcpy(find(m, "multiply")->opcode, "multiplx", 9); }
static void to_infeed(Hlo__Module *m) { memcpy(find(m, "multiply")->opcode, "infeed", 7); }
static void to_outfeed(Hlo__Module *m) { memcpy(find(m, "multiply")->opcode, "outfeed", 8); }
static void no_token(Hlo__Module *m)
{
	Hlo__Instruction *p = find(m, "multiply");

	free(p->opcode);
	p->opcode = strdup("after-all");
}
/* As compute_on says it; what is "dense" or not known is no reason. */
static void says(Hlo__Instruction *p, const char *key, const char *value)
{
	Hlo__FrontendAttributes *all = p->frontend_attributes;
	Hlo__FrontendAttribute *a = malloc(sizeof(*a));

	if (!all) {
		all = p->frontend_attributes = malloc(sizeof(*all));
		assert_non_null(all);
		hlo__frontend_attributes__init(all);
	}
	all->map = realloc(all->map, (all->n_map + 1) * sizeof(*all->map));
	assert_non_null(all->map);
	assert_non_null(a);
	hlo__frontend_attribute__init(a);
	a->key = strdup(key);
	a->value = strdup(value);
	all->map[all->n_map++] = a;
}
static void on_the_host(Hlo__Module *m)
{
	says(find(m, "multiply"), "grad_x", "host");
	says(find(m, "multiply"), "_xla_compute_type", "dense");
	says(find(m, "multiply"), "_xla_compute_type", "host");
}
static void on_a_sparse_core(Hlo__Module *m)
{
	says(find(m, "reduce"), "_xla_compute_type", "sparseoffload");
}
static void wrong_dims(Hlo__Module *m) { find(m, "reduce")->dimensions[0] = 31; }
static void no_direction(Hlo__Module *m)
{
	find(m, "compare")->comparison_direction[0] = 'X';
}
static void odd_donor(Hlo__Module *m)
{
	m->buffer_donor->entries[0]->has_parameter_number = 1;
	m->buffer_donor->entries[0]->parameter_number = 1000;
}

/* Every program of these has what the change needs. */
static const struct {
	const char *program;
	void (*change)(Hlo__Module *m);
	int code;
	const char *words, *more;
} hostile[] = {
	{ "train__mlp_sgd_mom.1", no_operand, ERR_INVALID_ARGUMENT,
	  "multiply: operand 1 names instruction 123456", "at multiply." },
	{ "train__mlp_sgd_mom.1", few_operands, ERR_INVALID_ARGUMENT, "multiply", "operands" },
	{ "train__mlp_sgd_mom.1", foreign_operand, ERR_INVALID_ARGUMENT,
	  "an instruction of another computation", "multiply." },
	{ "train__mlp_sgd_mom.1", later_operand, ERR_INVALID_ARGUMENT, "stands after it", NULL },
	{ "train__mlp_sgd_mom.1", same_ids, ERR_INVALID_ARGUMENT, "two instructions", NULL },
	{ "train__mlp_sgd_mom.1", same_computations, ERR_INVALID_ARGUMENT, "two computations",
	  NULL },
	{ "train__mlp_sgd_mom.1", no_entry, ERR_INVALID_ARGUMENT, "none with the id -7", NULL },
	{ "train__mlp_sgd_mom.1", no_root, ERR_INVALID_ARGUMENT, "99999", "root" },
	{ "train__mlp_sgd_mom.1", foreign_root, ERR_INVALID_ARGUMENT, "to be its root", NULL },
	{ "train__mlp_sgd_mom.1", itself, ERR_INVALID_ARGUMENT, "calls itself", "reduce" },
	{ "train__mlp_sgd_mom.1", no_callee, ERR_INVALID_ARGUMENT, "computation 555555",
	  "reduce" },
	{ "train__mlp_sgd_mom.1", no_callees, ERR_INVALID_ARGUMENT, "too few", "reduce" },
	{ "train__mlp_sgd_mom.1", parameter_twice, ERR_INVALID_ARGUMENT, "or twice",
	  "parameter" },
	{ "train__mlp_sgd_mom.1", parameter_far, ERR_INVALID_ARGUMENT, "1099511627776", NULL },
	{ "train__mlp_sgd_mom.1", short_literal, ERR_INVALID_ARGUMENT, "literal has 0 elements",
	  "constant" },
	{ "train__mlp_sgd_mom.1", other_literal, ERR_INVALID_ARGUMENT,
	  "literal has another shape", NULL },
	{ "train__mlp_sgd_mom.1", no_literal, ERR_INVALID_ARGUMENT, "literal is missing", NULL },
	{ "train__mlp_sgd_mom.1", no_shape, ERR_INVALID_ARGUMENT, "a shape is missing", NULL },
	{ "train__mlp_sgd_mom.1", no_such_type, ERR_INVALID_ARGUMENT, "number 99", "multiply" },
	{ "train__mlp_sgd_mom.1", odd_type, ERR_UNIMPLEMENTED, "an opaque type", "multiply" },
	{ "train__mlp_sgd_mom.1", other_shape, ERR_INVALID_ARGUMENT, "multiply", "i64" },
	{ "train__mlp_sgd_mom.1", negative_dim, ERR_INVALID_ARGUMENT, "a dim of -3",
	  "broadcast" },
	{ "train__mlp_sgd_mom.1", huge_dim, ERR_RESOURCE_EXHAUSTED, "out of memory", NULL },
	{ "train__mlp_sgd_mom.1", dynamic_dim, ERR_UNIMPLEMENTED, "dim 0 has no bound",
	  "broadcast" },
	{ "norm__batch_train.debug", no_such_part, ERR_INVALID_ARGUMENT, "part 77", NULL },
	{ "norm__batch_train.debug", no_tuple, ERR_INVALID_ARGUMENT, "get-tuple-element",
	  NULL },
	{ "train__mlp_sgd_mom.1", no_such_op, ERR_UNIMPLEMENTED, "multiplx", "multiply." },
	{ "train__mlp_sgd_mom.1", to_infeed, ERR_UNIMPLEMENTED, "infeed", "multiply." },
	{ "train__mlp_sgd_mom.1", to_outfeed, ERR_UNIMPLEMENTED, "outfeed", "multiply." },
	{ "train__mlp_sgd_mom.1", no_token, ERR_INVALID_ARGUMENT, "after_all", "no token" },
	{ "train__mlp_sgd_mom.1", on_the_host, ERR_UNIMPLEMENTED, "compute_on \"device_host\"",
	  "multiply." },
	{ "train__mlp_sgd_mom.1", on_a_sparse_core, ERR_UNIMPLEMENTED, "a sparse core",
	  "reduce" },
	{ "train__mlp_sgd_mom.1", wrong_dims, ERR_INVALID_ARGUMENT, "dimensions[0] is 31",
	  "reduce" },
	{ "train__mlp_sgd_mom.1", no_direction, ERR_INVALID_ARGUMENT, "direction",
	  "compare" },
	{ "train__mlp_sgd_mom.1", odd_donor, ERR_INVALID_ARGUMENT,
	  "buffer_donor names parameter 1000 of 13", NULL },
};

static void broken_modules_are_refused_by_name(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(hostile) / sizeof(*hostile); i++) {
		Hlo__Module *m = read_module(hostile[i].program);

		hostile[i].change(m);
		refuses(m, hostile[i].code, hostile[i].words, hostile[i].more);
		hlo__module__free_unpacked(m, NULL);
	}
}

static void bytes_that_end_early_are_refused(void **state)
{
	Hlo__Module *m = read_module("act__celu");
	struct tc_source s = pack(m);
	struct err err;
	size_t full = s.bytes, needed;

	(void)state;
	hlo__module__free_unpacked(m, NULL);
	/* What follows the computations and the entry's id says nothing that is needed. */
	needed = full / 2;
	for (size_t n = 0; n < needed; n += 1 + n / 50) {
		s.bytes = n;
		assert_int_equal(compile(s, NULL, &err), ERR_INVALID_ARGUMENT);
		assert_true(*err.msg);
	}
	for (size_t n = needed; n < full; n++) {
		s.bytes = n;
		if (compile(s, NULL, &err))
			assert_true(err.code == ERR_INVALID_ARGUMENT && *err.msg);
	}
	s.bytes = full - 1;
	assert_int_equal(compile(s, NULL, &err), ERR_INVALID_ARGUMENT);
	assert_non_null(strstr(err.msg, "at byte"));
	free((void *)(uintptr_t)s.code);
	s = (struct tc_source){ "\x0b", 1, "hlo" };
	assert_int_equal(compile(s, NULL, &err), ERR_INVALID_ARGUMENT);
	assert_non_null(strstr(err.msg, "wire type 3"));
	s = (struct tc_source){ "\x12\x00", 2, "hlo_with_config" };
	assert_int_equal(compile(s, NULL, &err), ERR_INVALID_ARGUMENT);
	assert_non_null(strstr(err.msg, "no module"));
}

/* Shapes in shapes, which a reader by recursion would follow until its stack ends. */
static void depths_are_bounded(void **state)
{
	enum { DEPTH = 300000 };
	uint8_t *all = malloc(DEPTH * 5 + 16), *p = all + DEPTH * 5 + 16;
	struct tc_source s = { .format = "hlo" };
	size_t n = 0;
	struct err err;

	(void)state;
	assert_non_null(all);
	/* From the inside out: shape.tuple_shapes, and then instruction.shape,
	 * computation.instructions, module.computations. */
	for (unsigned i = 0; i < DEPTH + 3; i++) {
		static const uint8_t outer[] = { 3, 2, 3 };
		uint8_t head[8];
		unsigned k = 0;
		size_t v = n;

		head[k++] = (uint8_t)((i < DEPTH ? 4 : outer[i - DEPTH]) << 3 | 2);
		do {
			head[k++] = (uint8_t)((v & 127) | (v > 127 ? 128 : 0));
			v >>= 7;
		} while (v);
		p -= k;
		memcpy(p, head, k);
		n += k;
	}
	s.code = p;
	s.bytes = n;
	assert_int_equal(compile(s, NULL, &err), ERR_UNIMPLEMENTED);
	assert_non_null(strstr(err.msg, "nest more than"));
	free(all);
}

static Hlo__Instruction insn(const char *opcode, int64_t id, Hlo__Shape *shape)
{
	Hlo__Instruction i = HLO__INSTRUCTION__INIT;

	i.opcode = i.name = (char *)(uintptr_t)opcode;
	i.has_id = 1;
	i.id = id;
	i.shape = shape;
	return i;
}

/* Each computation calls the one before twice: 2^40 instructions in a few kilobytes. Copies take
 * no memory that would end it. */
static void calls_that_double_end(const char *first, const char *says)
{
	enum { DEPTH = 40 };
	static Hlo__Instruction all[DEPTH][3];
	static Hlo__Instruction *lists[DEPTH][3];
	static Hlo__Computation computations[DEPTH], *list[DEPTH];
	static int64_t operands[DEPTH][3][2], callees[DEPTH];
	Hlo__Module m = HLO__MODULE__INIT;
	Hlo__Shape f32 = HLO__SHAPE__INIT;
	bool is_copy = !strcmp(first, "copy");
	struct tc_source s;
	struct err err;

	f32.has_element_type = 1;
	f32.element_type = 11;
	for (int i = 0; i < DEPTH; i++) {
		int64_t id = 10 * (i + 1);

		computations[i] = (Hlo__Computation)HLO__COMPUTATION__INIT;
		list[i] = &computations[i];
		callees[i] = i - 1;
		all[i][0] = insn("parameter", id, &f32);
		for (int k = 1; k < 3; k++) {
			all[i][k] = insn(i ? "call" : first, id + k, &f32);
			operands[i][k][0] = operands[i][k][1] = id + k - 1;
			all[i][k].operand_ids = operands[i][k];
			all[i][k].n_operand_ids = i || is_copy ? 1 : 2;
			all[i][k].n_called_computation_ids = i > 0;
			all[i][k].called_computation_ids = &callees[i];
		}
		for (int k = 0; k < 3; k++)
			lists[i][k] = &all[i][k];
		computations[i].n_instructions = 3;
		computations[i].instructions = lists[i];
		computations[i].has_id = computations[i].has_root_id = 1;
		computations[i].id = i;
		computations[i].root_id = id + 2;
	}
	m.n_computations = DEPTH;
	m.computations = list;
	m.has_entry_computation_id = 1;
	m.entry_computation_id = DEPTH - 1;
	refuses(&m, ERR_RESOURCE_EXHAUSTED, says, NULL);
	m.n_computations = 3;
	m.entry_computation_id = 2;
	s = pack(&m);
	assert_int_equal(compile(s, NULL, &err), 0);
	free((void *)(uintptr_t)s.code);
}

static void calls_that_double_end_in_an_error(void **state)
{
	(void)state;
	calls_that_double_end("add", "memory");
	calls_that_double_end("copy", "instructions");
}

/* A chain of n copies, of which id k is k times `factor`; ns of this thread, the least of three. */
static int64_t ns_to_read(size_t n, uint64_t factor)
{
	Hlo__Module m = HLO__MODULE__INIT;
	Hlo__Computation main = HLO__COMPUTATION__INIT, *computations[] = { &main };
	Hlo__Instruction *all = calloc(n, sizeof(*all)), **list = calloc(n, sizeof(*list));
	int64_t *ids = calloc(n, sizeof(*ids)), least = INT64_MAX;
	Hlo__Shape f32 = HLO__SHAPE__INIT;
	struct tc_source s;

	assert_true(all && list && ids);
	f32.has_element_type = 1;
	f32.element_type = 11;
	for (size_t i = 0; i < n; i++) {
		ids[i] = (int64_t)((i + 1) * factor);
		all[i] = insn(i ? "copy" : "parameter", ids[i], &f32);
		all[i].operand_ids = &ids[i - (i > 0)];
		all[i].n_operand_ids = i > 0;
		list[i] = &all[i];
	}
	main.n_instructions = n;
	main.instructions = list;
	main.has_root_id = 1;
	main.root_id = ids[n - 1];
	m.n_computations = 1;
	m.computations = computations;
	m.has_entry_computation_id = 1;
	s = pack(&m);
	for (unsigned i = 0; i < 3; i++) {
		struct timespec a, b;
		struct err err;
		char *text;
		int64_t ns;

		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &a);
		if (tc_print(&s, NULL, "read", &text, &err))
			fail_msg("%s", err.msg);
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &b);
		ns = (b.tv_sec - a.tv_sec) * 1000000000ll + b.tv_nsec - a.tv_nsec;
		least = ns < least ? ns : least;
		free(text);
	}
	free((void *)(uintptr_t)s.code);
	free(all);
	free(list);
	free(ids);
	return least;
}

/* Whoever writes a module chooses the ids: those that differ in high bits alone, or that a
 * multiplicative hash has all at one place, take no longer than others. */
static void ids_are_found_whatever_they_are(void **state)
{
	enum { N = 30000 };
	/* 1 / 0x9e3779b97f4a7c15, of 64 bits */
	static const uint64_t factors[] = { 1ull << 40, 0xf1de83e19937733dull };
	int64_t plain = ns_to_read(N, 1);

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		int64_t ns = ns_to_read(N, factors[i]);

		if (ns > 4 * plain)
			fail_msg("%.1f ms become %.1f", (double)plain / 1e6, (double)ns / 1e6);
	}
}

/* ---- forms ---- */

/* Runs a module without arguments; its one result. */
static struct tc_array *evaluate(const Hlo__Module *m)
{
	struct tc_source s = pack(m);
	struct tc_array *outs;
	struct err err;
	size_t n;

	if (tc_eval(&s, NULL, 0, &outs, &n, &err))
		fail_msg("%s", err.msg);
	assert_int_equal(n, 1);
	free((void *)(uintptr_t)s.code);
	return outs;
}

/* A module whose entry is one constant. */
struct constant {
	int64_t dims[2], order[2];
	protobuf_c_boolean fixed[2];
	Hlo__Layout layout;
	Hlo__Shape shape;
	Hlo__Literal literal;
	Hlo__Metadata metadata;
	Hlo__Instruction insn, *insns;
	Hlo__Computation computation, *computations;
	Hlo__Module module;
};

static void make_constant(struct constant *c, int elem, size_t rank, const int64_t *dims)
{
	c->layout = (Hlo__Layout)HLO__LAYOUT__INIT;
	c->shape = (Hlo__Shape)HLO__SHAPE__INIT;
	c->literal = (Hlo__Literal)HLO__LITERAL__INIT;
	c->metadata = (Hlo__Metadata)HLO__METADATA__INIT;
	c->insn = (Hlo__Instruction)HLO__INSTRUCTION__INIT;
	c->computation = (Hlo__Computation)HLO__COMPUTATION__INIT;
	c->module = (Hlo__Module)HLO__MODULE__INIT;
	for (size_t d = 0; d < rank; d++) {
		c->dims[d] = dims[d];
		c->order[d] = (int64_t)d;
	}
	c->shape.has_element_type = 1;
	c->shape.element_type = elem;
	c->shape.n_dimensions = rank;
	c->shape.dimensions = c->dims;
	c->literal.shape = &c->shape;
	c->insn.opcode = "constant";
	c->insn.name = "c.1";
	c->insn.shape = &c->shape;
	c->insn.literal = &c->literal;
	c->insns = &c->insn;
	c->computation.n_instructions = 1;
	c->computation.instructions = &c->insns;
	c->computations = &c->computation;
	c->module.n_computations = 1;
	c->module.computations = &c->computations;
}

/* Instructions of newer HLO, in place of one of a program of one function of f32. */
static void functions_are_instructions_too(void **state)
{
	static const struct { const char *opcode; double (*of)(double x); } functions[] = {
		{ "acos", acos }, { "acosh", acosh }, { "asin", asin }, { "asinh", asinh },
		{ "atanh", atanh }, { "cosh", cosh }, { "sinh", sinh }, { "tan", tan },
	};
	Hlo__Module *m = read_module("elementwise__un_exp");
	Hlo__Instruction *i = find(m, "exponential");
	const Hlo__Shape *shape = find(m, "parameter")->shape;
	struct tc_array in = { .elem = ELEM_F32, .rank = (uint8_t)shape->n_dimensions,
			       .bytes = 4 }, *out;
	float *x;

	(void)state;
	for (size_t d = 0; d < shape->n_dimensions; d++) {
		in.dim[d] = shape->dimensions[d];
		in.bytes *= (size_t)in.dim[d];
	}
	x = in.data = malloc(in.bytes);
	assert_non_null(x);
	for (size_t k = 0; k < in.bytes / 4; k++)
		x[k] = (float)(k % 37) / 20 - 0.9f;
	for (size_t f = 0; f < sizeof(functions) / sizeof(*functions); f++) {
		struct tc_source s;
		struct err err;
		size_t n;

		free(i->opcode);
		i->opcode = strdup(functions[f].opcode);
		s = pack(m);
		if (compile(s, NULL, &err) || tc_eval(&s, &in, 1, &out, &n, &err))
			fail_msg("%s", err.msg);
		for (size_t k = 0; k < in.bytes / 4; k++) {
			double got = ((float *)out->data)[k], want = functions[f].of(x[k]);

			assert_int_equal(!isnan(got), !isnan(want));
			if (!isnan(want) && fabs(got - want) > 1e-6 * fmax(fabs(want), 0.1))
				fail_msg("%s(%g) is %g", i->opcode, (double)x[k], got);
		}
		tc_array_free(out, n);
		free((void *)(uintptr_t)s.code);
	}
	i->n_operand_ids = 0;
	refuses(m, ERR_INVALID_ARGUMENT, "it has 0 operands", "tan");
	hlo__module__free_unpacked(m, NULL);
	free(x);
}

static void literals_lie_in_the_order_of_their_layout(void **state)
{
	static const int64_t dims[] = { 2, 3 };
	float values[] = { 1, 4, 2, 5, 3, 6 };	/* columns first */
	struct constant c;
	struct tc_array *out;

	(void)state;
	make_constant(&c, 11, 2, dims);
	c.literal.n_f32s = 6;
	c.literal.f32s = values;
	c.shape.layout = &c.layout;
	c.layout.n_minor_to_major = 2;
	c.layout.minor_to_major = c.order;
	out = evaluate(&c.module);
	for (unsigned i = 0; i < 6; i++)
		assert_true(((const float *)out->data)[i] == (float)(i + 1));
	tc_array_free(out, 1);
	c.order[1] = 0;
	refuses(&c.module, ERR_INVALID_ARGUMENT, "a layout with dim 0", "c.1");
	c.layout.n_minor_to_major = 1;
	refuses(&c.module, ERR_INVALID_ARGUMENT, "a layout of 1 dims", NULL);
}

static void literals_of_every_type_are_read(void **state)
{
	static const int64_t two = 2;
	static const char bytes[] = "\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e"
				    "\x0f\x10\x11\x12\x13\x14\x15\x16\x17\x18\x19\x1a\x1b\x1c"
				    "\x1d\x1e\x1f";
	static const struct { int xla; enum elem elem; int field; } types[] = {
		{ 1, ELEM_PRED, 2 }, { 2, ELEM_S8, 15 }, { 3, ELEM_S16, 17 }, { 4, ELEM_S32, 4 },
		{ 5, ELEM_S64, 5 }, { 6, ELEM_U8, 3 }, { 7, ELEM_U16, 16 }, { 8, ELEM_U32, 6 },
		{ 9, ELEM_U64, 7 }, { 10, ELEM_F16, 11 }, { 11, ELEM_F32, 8 },
		{ 12, ELEM_F64, 9 }, { 15, ELEM_C64, 12 }, { 16, ELEM_BF16, 13 },
		{ 18, ELEM_C128, 18 }, { 19, ELEM_F8E5M2, 19 }, { 20, ELEM_F8E4M3FN, 20 },
		{ 23, ELEM_F8E4M3B11FNUZ, 23 }, { 24, ELEM_F8E5M2FNUZ, 24 },
		{ 25, ELEM_F8E4M3FNUZ, 25 }, { 28, ELEM_F8E4M3, 28 }, { 29, ELEM_F8E3M4, 29 },
		{ 33, ELEM_F8E8M0FNU, 33 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++) {
		const ProtobufCFieldDescriptor *f = protobuf_c_message_descriptor_get_field(
			&hlo__literal__descriptor, (unsigned)types[i].field);
		size_t unit = elem_bytes(types[i].elem), width = f->type ==
			PROTOBUF_C_TYPE_FLOAT || f->type == PROTOBUF_C_TYPE_INT32 ||
			f->type == PROTOBUF_C_TYPE_UINT32 ? 4 : 8;
		protobuf_c_boolean truths[] = { 0, 1 };
		struct constant c;
		struct tc_array *out;
		char *at;

		make_constant(&c, types[i].xla, 1, &two);
		at = (char *)&c.literal + f->offset;
		if (f->type == PROTOBUF_C_TYPE_BYTES) {
			*(protobuf_c_boolean *)((char *)&c.literal + f->quantifier_offset) = 1;
			*(ProtobufCBinaryData *)at = (ProtobufCBinaryData){ 2 * unit,
				(uint8_t *)(uintptr_t)bytes };
		} else {
			*(size_t *)((char *)&c.literal + f->quantifier_offset) =
				types[i].elem == ELEM_PRED ? 2 : 2 * unit / width;
			*(const void **)at = types[i].elem == ELEM_PRED ? (const void *)truths :
					     bytes;
		}
		out = evaluate(&c.module);
		assert_int_equal(out->elem, types[i].elem);
		if (types[i].elem == ELEM_PRED)
			assert_memory_equal(out->data, "\x00\x01", 2);
		else
			assert_memory_equal(out->data, bytes, 2 * unit);
		tc_array_free(out, 1);
	}
}

static void messages_name_the_users_place(void **state)
{
	struct constant c;
	static const int64_t two = 2;

	(void)state;
	make_constant(&c, 11, 1, &two);
	refuses(&c.module, ERR_INVALID_ARGUMENT, "constant: ", "at c.1");
	c.insn.metadata = &c.metadata;
	c.metadata.op_name = "aten::ones";
	refuses(&c.module, ERR_INVALID_ARGUMENT, "at aten::ones (c.1)", NULL);
	c.metadata.source_file = "f.py";
	c.metadata.has_source_line = 1;
	c.metadata.source_line = 12;
	refuses(&c.module, ERR_INVALID_ARGUMENT, "at aten::ones at f.py:12 (c.1)", NULL);
}

/* Alone, a program may not name others. */
static void collectives_know_how_many_they_are(void **state)
{
	const struct tc_options four = { .level = 1, .replicas = 4 };
	Hlo__Module *m = read_module("coll1__all_reduce_groups");
	struct tc_source s = pack(m);
	struct err err;

	(void)state;
	assert_int_equal(compile(s, NULL, &err), 0);
	assert_int_equal(compile(s, &four, &err), ERR_INVALID_ARGUMENT);
	assert_non_null(strstr(err.msg, "all_reduce: replica_groups leaves out replica 1"));
	free((void *)(uintptr_t)s.code);
	find(m, "all-reduce")->replica_groups[0]->replica_ids[0] = 3;
	refuses(m, ERR_INVALID_ARGUMENT, "all_reduce: replica_groups names device 3", NULL);
	hlo__module__free_unpacked(m, NULL);
	m = read_module("coll1__all_reduce_sum");
	s = pack(m);
	assert_int_equal(compile(s, &four, &err), 0);
	free((void *)(uintptr_t)s.code);
	hlo__module__free_unpacked(m, NULL);
	/* Without any, the number of replicas changes nothing. */
	m = read_module("act__celu");
	s = pack(m);
	assert_int_equal(compile(s, &four, &err), 0);
	free((void *)(uintptr_t)s.code);
	hlo__module__free_unpacked(m, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(broken_modules_are_refused_by_name),
		cmocka_unit_test(bytes_that_end_early_are_refused),
		cmocka_unit_test(depths_are_bounded),
		cmocka_unit_test(calls_that_double_end_in_an_error),
		cmocka_unit_test(ids_are_found_whatever_they_are),
		cmocka_unit_test(functions_are_instructions_too),
		cmocka_unit_test(literals_lie_in_the_order_of_their_layout),
		cmocka_unit_test(literals_of_every_type_are_read),
		cmocka_unit_test(messages_name_the_users_place),
		cmocka_unit_test(collectives_know_how_many_they_are),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
