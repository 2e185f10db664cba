/* SPDX-License-Identifier: Apache-2.0 */
/* The rules of ops, against those that Shardy has for the ops of 324 programs. */
#include "tests/unit/spmd_golden.h"

#include "runtime/compiler/spmd/rule.h"

struct count { unsigned n_rules, n_wrong; };
struct walk { struct tc_ctx *c; const struct golden *g; struct count *k; };

static void check_rule(struct tc_op *op, void *arg)
{
	struct walk *w = arg;
	struct str is = { 0 };
	enum spmd_when when;
	struct spmd_rule *r;
	char should[512];

	golden_part(op->where ? op->where : "", 0, should, sizeof(should));
	if (!*should)
		return;
	w->k->n_rules++;
	r = spmd_rule(w->c, op, &when);
	if (r)
		spmd_print_rule(r, &is);
	while (is.len && is.text[is.len - 1] == ' ')
		is.text[--is.len] = 0;
	if (!is.text || strcmp(is.text, should)) {
		print_message("%s: %s has %s and not %s\n", w->g->name,
			      tc_op_info(op->op)->text, is.text ? is.text : "none", should);
		w->k->n_wrong++;
	}
	str_free(&is);
}

static void check_program(struct tc_ctx *c, void *golden)
{
	struct golden *g = golden;
	struct walk w = { c, g, g->arg };

	tc_walk(c->module, check_rule, &w);
}

/* Others are: a rule that is the program's own (CustomSPMDPartitioning), and those of seven calls
 * of LAPACK. Of six of these nothing is known here; the dims of the matrices of Qr have factors
 * of their own there, which may be cut, and have to be whole here. */
static void test_rules(void **state)
{
	struct count k = { 0, 0 };

	(void)state;
	assert_int_equal(golden_each(check_program, &k), GOLDEN_PROGRAMS);
	print_message("%u rules, %u others\n", k.n_rules, k.n_wrong);
	assert_int_equal(k.n_rules, 4502);
	assert_int_equal(k.n_wrong, 8);
}

/* ---- operands of several shapes ---- */

struct several { const char *should; unsigned n; };

static void check_several(struct tc_op *op, void *arg)
{
	const struct walk *w = arg;
	struct several *k = w->g->arg;
	struct str is = { 0 };
	enum spmd_when when;

	if (op->n_operands < 2 || op->n_results < 2)
		return;
	spmd_print_rule(spmd_rule(w->c, op, &when), &is);
	k->n++;
	assert_string_equal(is.text, k->should);
	str_free(&is);
}

static void find_several(struct tc_ctx *c, void *arg)
{
	struct golden g = { .arg = arg };
	struct walk w = { c, &g, NULL };

	tc_walk(c->module, check_several, &w);
}

/* Each has dims in common with its result alone. */
static void test_several_shapes(void **state)
{
	static const char two[] = "module() {num_partitions = 2} () {\nfunc() {sym_name = "
		"\"main\"} (%0: tensor<4x2x6xf32>, %1: tensor<8xf32>) {\n"
		"%2, %3 = all_reduce(%0, %1) {replica_groups = [0, 1], group_size = 2, "
		"channel_id = 1, use_global_device_ids = true} : "
		"tensor<4x2x6xf32>, tensor<8xf32> (%4: tensor<f32>, %5: tensor<f32>) {\n"
		"%6 = add(%4, %5) : tensor<f32>\nreturn(%6)\n}\nreturn(%2, %3)\n}\n}\n";
	static const char gather[] = "module() {num_partitions = 2} () {\nfunc() {sym_name = "
		"\"main\"} (%0: tensor<4x2xf32>, %1: tensor<8x3x5xf32>) {\n"
		"%2, %3 = all_gather(%0, %1) {all_gather_dim = 1, replica_groups = [0, 1], "
		"group_size = 2, channel_id = 1, use_global_device_ids = true} : "
		"tensor<4x4xf32>, tensor<8x6x5xf32>\nreturn(%2, %3)\n}\n}\n";
	static const struct tc_options options = { .partitions = 2 };
	struct several k = { "[0,1,2][3]->[0,1,2][3] 4,2,6,8", 0 };
	struct err err;

	(void)state;
	if (tc_enter(&(struct tc_source){ two, strlen(two), "mlir" }, &options, &err,
		     find_several, &k))
		fail_msg("%s", err.msg);
	k.should = "[0,1][2,3,4]->[0,5][2,6,4] 4,2,8,3,5,4,6 n1,3,5,6";
	if (tc_enter(&(struct tc_source){ gather, strlen(gather), "mlir" }, &options, &err,
		     find_several, &k))
		fail_msg("%s", err.msg);
	assert_int_equal(k.n, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rules),
		cmocka_unit_test(test_several_shapes),
	};

	return cmocka_run_group_tests(tests, golden_load, golden_free);
}
