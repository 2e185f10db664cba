/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls that the framework shares out, with functions of ours in its place: what they are asked,
 * what the program becomes, evaluated by all members; answers that are broken; rules.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "hal/base/elem.h"
#include "hal/base/str.h"
#include "runtime/compiler/tc.h"

#define DEVICES 8
#define HEAD "module() {meshes = {mesh = \"[x=4,y=2]\"}} () {\nfunc() {sym_name = \"main\"} "
#define TAIL "}\n}\n"
/* What a member does with a part of so many rows and columns: twice of it. */
#define TWICE(type) HEAD "(%0: tensor<" type ">) -> ({}) {\n%1 = add(%0, %0) : tensor<" type \
	">\nreturn(%1)\n" TAIL
/* x [8, 4] by rows of x; the call is twice of that, to which x is added. */
#define PROGRAM(attributes) HEAD "(%0: tensor<8x4xf32> {sharding = \"@mesh[{x},{}]\"}) -> " \
	"({}) {\n%1 = custom_call(%0) {call_target_name = \"Twice\", backend_config = " \
	"\"a\\00b\"" attributes "} : tensor<8x4xf32>\n%2 = add(%1, %0) : " \
	"tensor<8x4xf32>\nreturn(%2)\n" TAIL
#define RULE ", sharding_rule = \"[0,1]->[0,1] 8,4\""

/* OpSharding messages: by rows along x, along y, along both, of seven parts, one of a tuple, not
 * said, on one device; in an order that is no grid. */
#define BY_X "\x08\x03\x1a\x03\x04\x01\x02\x30\x01\x4a\x01\x08\x52\x01\x00"
#define COLUMNS_BY_Y "\x08\x03\x1a\x03\x01\x02\x04\x30\x01\x4a\x02\x04\x02\x52\x02\x01\x00"
#define BY_BOTH "\x08\x03\x1a\x02\x08\x01\x4a\x01\x08\x52\x01\x00"
#define IN_SEVEN "\x08\x03\x1a\x02\x07\x01\x4a\x01\x07\x52\x01\x00"
#define OF_TUPLE "\x08\x02\x2a\x02\x08\x00\x2a\x02\x08\x00"
#define UNKNOWN "\x08\x05"
#define MAXIMAL "\x08\x01\x1a\x01\x01\x22\x01\x03"
#define IN_DISORDER "\x08\x03\x1a\x02\x08\x01\x22\x08\x00\x03\x01\x02\x04\x05\x07\x06"
#define BYTES(text) { text, sizeof(text) - 1 }
#define WHOLE { "", 0 }

/* What is answered, and what was asked. */
static struct {
	struct tc_bytes program, operand, results, inferred, propagated;
	int code;
	unsigned n_asked, n_inferred, n_propagated;
	char shardings[2][64];
	size_t bytes[2];
	int64_t rows;
	size_t config;
} talk;

static int give(struct tc_bytes program, const struct tc_bytes *operand, struct tc_bytes results,
		struct tc_partition_answer *out)
{
	size_t n = sizeof(struct tc_bytes) + program.n + results.n + (operand ? operand->n : 0);
	struct tc_bytes *list = calloc(1, n);
	char *p = (char *)(list + 1);

	assert_non_null(list);
	out->memory = list;
	out->program = (struct tc_bytes){ memcpy(p, program.n ? program.p : "", program.n),
					  program.n };
	p += program.n;
	out->results = (struct tc_bytes){ memcpy(p, results.n ? results.p : "", results.n),
					  results.n };
	p += results.n;
	if (operand)
		*list = (struct tc_bytes){ memcpy(p, operand->p, operand->n), operand->n };
	out->operands = list;
	return 0;
}

static int partition(void *arg, const struct tc_partition_call *call,
		     struct tc_partition_answer *out, struct err *err)
{
	assert_ptr_equal(arg, &talk);
	talk.n_asked++;
	if (talk.code)
		return err_set(err, talk.code, "what the function says");
	assert_int_equal(call->n_operands, 1);
	assert_int_equal(call->n_results, 1);
	for (unsigned t = 0; t < 2; t++) {
		assert_int_equal(call->arrays[t].elem, ELEM_F32);
		assert_int_equal(call->arrays[t].rank, 2);
		talk.bytes[t] = call->arrays[t].sharding.n;
		assert_true(talk.bytes[t] <= sizeof(talk.shardings[t]));
		if (talk.bytes[t])
			memcpy(talk.shardings[t], call->arrays[t].sharding.p, talk.bytes[t]);
	}
	talk.rows = call->arrays[0].dim[0];
	talk.config = call->config.n;
	assert_memory_equal(call->config.p, "a\0b", 3);
	return give(talk.program, &talk.operand, talk.results, out);
}

static int infer(void *arg, const struct tc_partition_call *call,
		 struct tc_partition_answer *out, struct err *err)
{
	(void)arg, (void)call, (void)err;
	talk.n_inferred++;
	return give((struct tc_bytes)WHOLE, NULL, talk.inferred, out);
}

static int propagate(void *arg, const struct tc_partition_call *call,
		     struct tc_partition_answer *out, struct err *err)
{
	(void)arg, (void)call, (void)err;
	talk.n_propagated++;
	return give((struct tc_bytes)WHOLE, NULL, talk.propagated, out);
}

static bool may_be_in(void *arg, const void *code, size_t bytes)
{
	(void)arg;
	return memmem(code, bytes, "Twice", 5);
}

static bool has(void *arg, const char *target)
{
	(void)arg;
	return !strcmp(target, "Twice");
}

static const struct tc_partitioners by = { may_be_in, has, partition, infer, propagate, &talk };
static const struct tc_options options = { .level = 1, .verify = true, .partitions = DEVICES };

#define ANSWER(what, in, out) do { \
	memset(&talk, 0, sizeof(talk)); \
	talk.program = (struct tc_bytes)BYTES(what); \
	talk.operand = (struct tc_bytes)BYTES(in); \
	talk.results = (struct tc_bytes)BYTES(out); \
} while (0)

static int ask(const char *program, char **text, struct err *err)
{
	const struct tc_source s = { program, strlen(program), "mlir" };
	size_t n;

	return tc_ask_partitioners(&s, &options, &by, text, &n, err);
}

static void asked_with(const char *in, size_t n_in, const char *out, size_t n_out)
{
	assert_int_equal(talk.bytes[0], n_in);
	assert_memory_equal(talk.shardings[0], in, n_in);
	assert_int_equal(talk.bytes[1], n_out);
	assert_memory_equal(talk.shardings[1], out, n_out);
}
#define ASKED_WITH(in, out) asked_with(in, sizeof(in) - 1, out, sizeof(out) - 1)

/* Three times its argument, of `rows` rows by x of which a member has a part of its own. */
static void evaluates(const char *text, int64_t rows)
{
	const struct tc_source s = { text, strlen(text), "mlir" };
	int64_t part = (rows + 3) / 4;
	struct tc_array args[DEVICES], *outs;
	struct err err;
	size_t n;

	for (int m = 0; m < DEVICES; m++) {
		float *p = calloc((size_t)part * 4, sizeof(*p));

		assert_non_null(p);
		for (int64_t i = 0; i < part * 4 && m / 2 * part * 4 + i < rows * 4; i++)
			p[i] = (float)(m / 2 * part * 4 + i);
		args[m] = (struct tc_array){ ELEM_F32, 2, { part, 4 }, p, (size_t)part * 16 };
	}
	for (unsigned level = 0; level < 2; level++) {
		struct tc_options o = { .level = level, .verify = true, .partitions = DEVICES };

		if (tc_eval_gang(&s, &o, args, 1, &outs, &n, &err))
			fail_msg("%s\n%s", err.msg, text);
		assert_int_equal(n, 1);
		for (int m = 0; m < DEVICES; m++) {
			const struct tc_array *r = &outs[m];
			int64_t first = r->dim[0] == part ? m / 2 * part : 0;

			for (int64_t i = 0; i < r->dim[0] * 4 && first * 4 + i < rows * 4; i++)
				if (((const float *)r->data)[i] != (float)(3 * (first * 4 + i)))
					fail_msg("member %d, element %d is %g", m, (int)i,
						 (double)((const float *)r->data)[i]);
		}
		tc_array_free(outs, DEVICES);
	}
	for (int m = 0; m < DEVICES; m++)
		free(args[m].data);
}

/* ---- answers ---- */

static void runs(const char *program, unsigned n_asked)
{
	struct tc_result r;
	struct err err;
	char *text, *again;
	size_t n;

	if (ask(program, &text, &err))
		fail_msg("%s", err.msg);
	assert_non_null(text);
	assert_int_equal(talk.n_asked, n_asked);
	assert_null(strstr(text, "custom_call"));
	/* Nothing is asked for any more. */
	if (tc_ask_partitioners(&(struct tc_source){ text, strlen(text), "mlir" }, &options, &by,
				&again, &n, &err))
		fail_msg("%s", err.msg);
	assert_null(again);
	assert_int_equal(talk.n_asked, n_asked);
	evaluates(text, 8);
	if (tc_compile(&(struct tc_source){ text, strlen(text), "mlir" }, &options, &r, &err))
		fail_msg("%s", err.msg);
	tc_result_free(&r);
	free(text);
}

static void test_as_asked(void **state)
{
	(void)state;
	ANSWER(TWICE("2x4xf32"), BY_X, BY_X);
	runs(PROGRAM(RULE), 1);
	ASKED_WITH(BY_X, BY_X);
	assert_int_equal(talk.rows, 8);
	assert_int_equal(talk.config, 3);
}

/* It wants its operand in another way than it lies, and gives its result in a third. */
static void test_otherwise(void **state)
{
	(void)state;
	ANSWER(TWICE("8x2xf32"), COLUMNS_BY_Y, COLUMNS_BY_Y);
	runs(PROGRAM(RULE), 1);
	ANSWER(TWICE("1x4xf32"), BY_BOTH, BY_BOTH);
	runs(PROGRAM(RULE), 1);
	ANSWER(TWICE("8x4xf32"), "", "");
	runs(PROGRAM(RULE), 1);
	ASKED_WITH(BY_X, BY_X);
}

/* Ten rows on four and eight devices: the last parts are short or empty. */
static void test_uneven(void **state)
{
	static const char *const inner[] = { TWICE("3x4xf32"), TWICE("2x4xf32") };
	static const struct tc_bytes shardings[] = { BYTES(BY_X), BYTES(BY_BOTH) };
	struct err err;
	char *text;

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		ANSWER("", "", "");
		talk.program = (struct tc_bytes){ inner[i], strlen(inner[i]) };
		talk.operand = talk.results = shardings[i];
		if (ask(HEAD "(%0: tensor<10x4xf32> {sharding = \"@mesh[{x},{}]\"}) -> ({}) {\n"
			"%1 = custom_call(%0) {call_target_name = \"Twice\", backend_config = "
			"\"a\\00b\"} : tensor<10x4xf32>\n%2 = add(%1, %0) : tensor<10x4xf32>\n"
			"return(%2)\n" TAIL, &text, &err))
			fail_msg("%s", err.msg);
		evaluates(text, 10);
		free(text);
	}
}

/* Without a rule by the functions: forwards, backwards. */
static void test_without_rule(void **state)
{
	(void)state;
	ANSWER(TWICE("2x4xf32"), BY_X, BY_X);
	talk.inferred = (struct tc_bytes)BYTES(BY_X);
	runs(HEAD "(%0: tensor<8x4xf32> {sharding = \"@mesh[{x},{}]\"}) -> ({}) {\n"
	     "%1 = custom_call(%0) {call_target_name = \"Twice\", backend_config = \"a\\00b\"} : "
	     "tensor<8x4xf32>\n%2 = custom_call(%0) {call_target_name = \"Twice\", "
	     "backend_config = \"a\\00b\"} : tensor<8x4xf32>\n"
	     "%3 = subtract(%1, %2) : tensor<8x4xf32>\n%4 = add(%3, %2) : tensor<8x4xf32>\n"
	     "%5 = add(%4, %0) : tensor<8x4xf32>\nreturn(%5)\n" TAIL, 2);
	assert_true(talk.n_inferred + talk.n_propagated >= 1);
	ASKED_WITH(BY_X, BY_X);
	/* Its user, an addition, wants rows; the function makes that columns. */
	ANSWER(TWICE("2x4xf32"), BY_X, BY_X);
	talk.propagated = (struct tc_bytes)BYTES(COLUMNS_BY_Y);
	runs(PROGRAM(""), 1);
	assert_int_equal(talk.n_propagated, 1);
	ASKED_WITH(BY_X, COLUMNS_BY_Y);
}

/* Within what each device does by itself the rest of the axes are asked for. */
static void test_within_manual(void **state)
{
	static const char program[] =
		HEAD "(%0: tensor<8x4xf32> {sharding = \"@mesh[{x},{}]\"}) -> ({}) {\n"
		"%1 = manual_computation(%0) {in_shardings = {a = \"@mesh[{x},{}]\"}, "
		"out_shardings = {a = \"@mesh[{x},{}]\"}, manual_axes = \"{x,y}\"} : "
		"tensor<8x4xf32> (%2: tensor<2x4xf32>) {\n"
		"%3 = custom_call(%2) {call_target_name = \"Twice\", backend_config = \"a\\00b\"} "
		": tensor<2x4xf32>\n%4 = add(%3, %2) : tensor<2x4xf32>\nreturn(%4)\n}\n"
		"return(%1)\n" TAIL;

	(void)state;
	ANSWER(TWICE("2x4xf32"), "\x08\x04", "\x08\x04");
	runs(program, 1);
	ASKED_WITH("\x08\x04", "\x08\x04");
	assert_int_equal(talk.rows, 2);
}

static void test_nothing_to_ask(void **state)
{
	static const char other[] = HEAD "(%0: tensor<8x4xf32>) -> ({}) {\n"
				    "%1 = abs(%0) : tensor<8x4xf32> # Twice\nreturn(%1)\n" TAIL;
	struct err err;
	char *text = (char *)1;

	(void)state;
	ANSWER("", "", "");
	assert_int_equal(ask(other, &text, &err), 0);
	assert_null(text);
	assert_int_equal(talk.n_asked, 0);
}

/* ---- what is wrong with answers ---- */

static void refused(const char *program, const char *in, size_t n_in, const char *out,
		    size_t n_out, int code, const char *why)
{
	struct err err = { 0 };
	char *text = NULL;

	memset(&talk, 0, sizeof(talk));
	talk.program = (struct tc_bytes){ program, strlen(program) };
	talk.operand = (struct tc_bytes){ in, n_in };
	talk.results = (struct tc_bytes){ out, n_out };
	if (ask(PROGRAM(RULE), &text, &err) != code || !strstr(err.msg, why))
		fail_msg("%d: %s; wanted %d: %s", err.code, err.msg, code, why);
	assert_null(text);
}
#define REFUSED(program, in, out, code, why) \
	refused(program, in, sizeof(in) - 1, out, sizeof(out) - 1, code, why)

static void test_bad_answers(void **state)
{
	static const char right[] = TWICE("2x4xf32");
	struct err err;
	char *text;

	(void)state;
	REFUSED(right, BY_X, BY_X "\xff", ERR_INVALID_ARGUMENT, "");
	REFUSED(right, "\xff\xff\xff", BY_X, ERR_INVALID_ARGUMENT, "");
	REFUSED(right, OF_TUPLE, BY_X, ERR_INVALID_ARGUMENT, "of 2 arrays for 1");
	REFUSED(right, BY_X, OF_TUPLE, ERR_INVALID_ARGUMENT, "of 2 arrays for 1");
	REFUSED(right, UNKNOWN, BY_X, ERR_INVALID_ARGUMENT, "which part each device has");
	REFUSED(right, BY_X, MAXIMAL, ERR_INVALID_ARGUMENT, "which part each device has");
	REFUSED(right, "\x08\x04", BY_X, ERR_INVALID_ARGUMENT, "which part each device has");
	REFUSED(right, BY_X, IN_SEVEN, ERR_UNIMPLEMENTED, "mesh of 8 devices");
	REFUSED(right, IN_DISORDER, BY_X, ERR_UNIMPLEMENTED, "mesh of 8 devices");
	REFUSED(right, BY_X, "", ERR_INVALID_ARGUMENT, "result 0 of the program");
	REFUSED(right, "", BY_X, ERR_INVALID_ARGUMENT, "argument 0 of the program");
	REFUSED(TWICE("2x4xf64"), BY_X, BY_X, ERR_INVALID_ARGUMENT, "argument 0 of the program");
	REFUSED("", BY_X, BY_X, ERR_INVALID_ARGUMENT, "its partitioner gave: it has no bytes");
	REFUSED("ML\xefR\x0d", BY_X, BY_X, ERR_INVALID_ARGUMENT, "its partitioner gave: broken");
	REFUSED("nonsense", BY_X, BY_X, ERR_INVALID_ARGUMENT, "its partitioner gave: ");
	REFUSED(HEAD "() -> ({}) {\n%0 = iota() {iota_dimension = 0} : tensor<2x4xf32>\n"
		"return(%0)\n" TAIL, BY_X, BY_X, ERR_INVALID_ARGUMENT,
		"takes 0 arrays and gives 1");
	REFUSED(HEAD "(%0: tensor<2x4xf32>) -> ({}) {\n%1 = add(%0, %0) : tensor<2x5xf32>\n"
		"return(%1)\n" TAIL, BY_X, BY_X, ERR_INVALID_ARGUMENT, "its partitioner gave: ");
	REFUSED(HEAD "(%0: tensor<2x4xf32>) -> ({}) {\n%1 = all_reduce(%0) {replica_groups = "
		"[0, 9], group_size = 2, channel_id = 1, use_global_device_ids = true} : "
		"tensor<2x4xf32> (%2: tensor<f32>, %3: tensor<f32>) {\n%4 = add(%2, %3) : "
		"tensor<f32>\nreturn(%4)\n}\nreturn(%1)\n" TAIL, BY_X, BY_X, ERR_INVALID_ARGUMENT,
		"its partitioner gave: ");
	REFUSED(HEAD "(%0: tensor<2x4xf32>) -> ({}) {\n%1 = manual_computation(%0) {in_shardings = "
		"{a = \"@mesh[{},{}]\"}, out_shardings = {a = \"@mesh[{},{}]\"}, manual_axes = "
		"\"{}\"} : tensor<2x4xf32> (%2: tensor<2x4xf32>) {\nreturn(%2)\n}\nreturn(%1)\n"
		TAIL, BY_X, BY_X, ERR_UNIMPLEMENTED, "has manual_computation");
	/* The function's own error, word by word. */
	talk.code = ERR_ABORTED;
	assert_int_equal(ask(PROGRAM(RULE), &text, &err), ERR_ABORTED);
	assert_string_equal(err.msg, "what the function says");
	/* After all these it is asked again, and answers. */
	ANSWER(TWICE("2x4xf32"), BY_X, BY_X);
	runs(PROGRAM(RULE), 1);
}

/* ---- rules ---- */

/* Rows go through; a factor that is summed over is found in no result. */
static void test_rules(void **state)
{
	static const struct { const char *rule, *why; } bad[] = {
		{ "[0,1]->[0,2] 8,4", "size of each factor" },
		{ "[0,1]->[0,1] 8,5", "do not make up 4" },
		{ "[0,0]->[0,1] 8,4", "factor that its tensor has once" },
		{ "[0.2,1]->[0.2,1] 8,4,2", "do not make up 8" },
		{ "[0,1.2]->[0,1] 8,2147483647,2147483647", "do not make up 4" },
		{ "[0,1] 8,4", "->" },
		{ "[0,1]->[0] 8,4", "," },
		{ "[0]->[0,1] 8,4", "," },
		{ "[0,1]->[0,1] 8,4 r7", "factor that there is" },
		{ "[0,1]->[0,1] 8,4 z", "end" },
		{ "[0,300]->[0,1] 8,4", "factor that its tensor has once" },
		{ "", "[" },
	};
	struct err err;
	char *text;

	(void)state;
	for (unsigned i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		struct str program = { 0 };

		str_printf(&program, HEAD "(%%0: tensor<8x4xf32>) -> ({}) {\n%%1 = custom_call(%%0)"
			   " {call_target_name = \"Twice\", sharding_rule = \"%s\"} : "
			   "tensor<8x4xf32>\nreturn(%%1)\n" TAIL, bad[i].rule);
		ANSWER("", "", "");
		if (ask(program.text, &text, &err) != ERR_INVALID_ARGUMENT ||
		    !strstr(err.msg, bad[i].why))
			fail_msg("%s: %s", bad[i].rule, err.msg);
		str_free(&program);
	}
	/* A factor that is blocked stops what the operand says. */
	ANSWER(TWICE("2x4xf32"), BY_X, BY_X);
	runs(HEAD "(%0: tensor<8x4xf32> {sharding = \"@mesh[{x},{}]\"}) -> ({}) {\n"
	     "%1 = custom_call(%0) {call_target_name = \"Twice\", backend_config = \"a\\00b\", "
	     "sharding_rule = \"[0,1]->[0,1] 8,4 b0\"} : tensor<8x4xf32>\n"
	     "%2 = sharding_constraint(%1) {sharding = \"@mesh[{},{}]\"} : tensor<8x4xf32>\n"
	     "%3 = add(%2, %0) : tensor<8x4xf32>\nreturn(%3)\n" TAIL, 1);
	ASKED_WITH(BY_X, "");
}

/* As bytecode brings them: made by jaxlib 0.10.2's MLIR. */
static void test_rules_of_bytecode(void **state)
{
	static const struct { const char *file, *rule; } rules[] = {
		{ "rule_dot", "\"[0,1][1,2]->[0,2] 8,4,16 r1\"" },
		{ "rule_kinds", "\"[0.1,2][0.1.3]->[0.1.3] 2,2,2,2 n2 p3 b0\"" },
	};

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		char path[128], *bytes = malloc(1 << 16), *text;
		struct err err;
		FILE *f;
		size_t n;

		snprintf(path, sizeof(path), "tests/data/spmd/%s.mlirbc", rules[i].file);
		f = fopen(path, "rb");
		assert_non_null(f);
		assert_non_null(bytes);
		n = fread(bytes, 1, 1 << 16, f);
		fclose(f);
		if (tc_print(&(struct tc_source){ bytes, n, "mlir" }, &options, "read", &text,
			     &err))
			fail_msg("%s", err.msg);
		if (!strstr(text, rules[i].rule))
			fail_msg("%s", text);
		free(text);
		/* However they are cut, or a byte is another. */
		for (size_t k = 0; k < 4 * n; k++) {
			char was = bytes[k % n];

			bytes[k % n] = (char)(was ^ (1 << k % 7));
			if (!tc_print(&(struct tc_source){ bytes, n, "mlir" }, &options, "read",
				      &text, &err))
				free(text);
			bytes[k % n] = was;
		}
		free(bytes);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_as_asked),
		cmocka_unit_test(test_otherwise),
		cmocka_unit_test(test_uneven),
		cmocka_unit_test(test_without_rule),
		cmocka_unit_test(test_within_manual),
		cmocka_unit_test(test_nothing_to_ask),
		cmocka_unit_test(test_bad_answers),
		cmocka_unit_test(test_rules),
		cmocka_unit_test(test_rules_of_bytecode),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
