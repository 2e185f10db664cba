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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rules),
	};

	return cmocka_run_group_tests(tests, golden_load, golden_free);
}
