/* SPDX-License-Identifier: Apache-2.0 */
/* Propagation, against what Shardy makes of 324 programs. */
#include "tests/unit/spmd_golden.h"

#include "runtime/compiler/spmd/propagate.h"

/* Of tensors with dims: scalars are all alike. */
struct count { unsigned n, n_same, n_programs; };

struct walk {
	struct golden *g;
	struct spmd_shardings *p;
	struct count *k;
	unsigned n_other;
};

static bool has_axes(const struct spmd_sharding *h)
{
	for (uint32_t d = 0; d < h->rank; d++)
		if (h->dim[d].axes.n)
			return true;
	return h->unreduced.n;
}

/* Compares with the text of the nth sharding of a list; an empty one has no axes. */
static void compare(struct walk *w, struct spmd_sharding *h, const char *list, unsigned nth,
		    const char *what, unsigned id)
{
	struct spmd_sharding *copy;
	struct str is = { 0 };
	const char *should = list;
	size_t n;

	if (!h || !h->rank)
		return;
	copy = spmd_copy(w->p->s, h);
	copy->manual.n = copy->replicated.n = 0;
	for (uint32_t d = 0; d < copy->rank; d++)
		copy->dim[d].is_open = false;
	for (; nth; nth--)
		should += strcspn(should, ";") + (should[strcspn(should, ";")] == ';');
	n = strcspn(should, ";");
	spmd_print(copy, &is);
	w->k->n++;
	if (n ? is.len == n && !memcmp(is.text, should, n) : !has_axes(copy)) {
		w->k->n_same++;
	} else {
		print_message("%s: %s %u is %s and not %.*s\n", w->g->name, what, id, is.text,
			      (int)n, should);
		w->n_other++;
	}
	str_free(&is);
}

static void compare_op(struct tc_op *op, void *arg)
{
	struct walk *w = arg;
	char list[2048];

	if (op->op == TC_MANUAL_COMPUTATION || op->op == TC_FUNC || op->op == TC_MODULE)
		return;
	golden_part(op->where ? op->where : "", 1, list, sizeof(list));
	for (unsigned i = 0; i < op->n_results; i++)
		compare(w, w->p->of[tc_out(op, i)->id], list, i, tc_op_info(op->op)->text,
			tc_out(op, i)->id);
}

static void check_program(struct tc_ctx *c, void *golden)
{
	struct golden *g = golden;
	struct walk w = { g, spmd_propagate(spmd_open(c)), g->arg, 0 };
	const struct tc_block *b = tc_main(c);

	tc_walk(c->module, compare_op, &w);
	for (unsigned i = 0; i < b->n_args; i++)
		compare(&w, w.p->of[b->args[i]->id], g->args, i, "argument", i);
	for (unsigned i = 0; i < w.p->n_results; i++)
		compare(&w, w.p->result[i], g->results, i, "result", i);
	w.k->n_programs += !w.n_other;
}

/* Others are values behind seven calls of LAPACK, for which there is no rule here; behind a rule of
 * the program's own; and a call on one device. */
static void test_golden(void **state)
{
	struct count k = { 0, 0, 0 };

	(void)state;
	assert_int_equal(golden_each(check_program, &k), GOLDEN_PROGRAMS);
	print_message("%u of %u shardings are the same; %u of %u programs\n", k.n_same, k.n,
		      k.n_programs, GOLDEN_PROGRAMS);
	assert_int_equal(k.n, 4984);
	assert_true(k.n_same >= 4948);
}

/* ---- programs as they arrive ---- */

#define CAPTURED "tests/data/spmd/captured"

static char *read_file(const char *name, size_t *n)
{
	char path[256], *p = malloc(1 << 20);
	FILE *f;

	snprintf(path, sizeof(path), CAPTURED "/%s", name);
	f = fopen(path, "rb");
	assert_non_null(f);
	assert_non_null(p);
	*n = fread(p, 1, 1 << 20, f);
	fclose(f);
	return p;
}

static struct spmd_shardings *through(struct tc_ctx *c)
{
	struct spmd *s;

	tc_pass_inline(c);
	tc_ir_verify(c, "inline", true);
	s = spmd_open(c);
	spmd_prepare(s);
	tc_ir_verify(c, "prepare", true);
	return spmd_propagate(s);
}

/* What main gives, as Shardy says. */
static const struct { const char *name, *results; } arrive[] = {
	{ "dot__megatron.mlirbc", "@mesh[{x},{}]" },
	{ "shmap__nested.mlirbc", "@mesh[{x},{}]" },
	{ "shmap__partial_manual.mlirbc", "@mesh[{x},{y}]" },
	{ "explicit__unreduced.mlirbc", "@mesh[{x},{}]" },
	{ "jit__shard_alike.mlirbc", "@mesh[{x},{}]" },
	{ "jit__two_meshes.mlirbc", "@mesh[{},{}]" },
	{ "control__scan_wsc.mlirbc", "@mesh[{x},{y}]" },
	{ "gspmd__dot__grad.mlirbc", "[d=8][{d:(1)4},{}];[d=8][{},{d:(4)2}]" },
	{ "gspmd__shmap__psum_scatter.mlirbc", "[d=8][{d}]" },
	{ "gspmd__reshard__wsc_unconstrained.mlirbc", "[d=8][{d:(1)4},{d:(4)2}]" },
};

static void check_results(struct tc_ctx *c, void *arg)
{
	struct spmd_shardings *p = through(c);
	const char *should = arg;
	struct str is = { 0 };

	for (unsigned i = 0; i < p->n_results; i++) {
		for (uint32_t d = 0; d < p->result[i]->rank; d++)
			p->result[i]->dim[d].is_open = false;
		str_printf(&is, "%s", i ? ";" : "");
		spmd_print(p->result[i], &is);
	}
	assert_string_equal(is.text, should);
	str_free(&is);
}

static const struct tc_options eight = { .level = 1, .partitions = 8 };

static void test_arrive(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(arrive) / sizeof(*arrive); i++) {
		struct err err = { 0 };
		size_t n;
		char *p = read_file(arrive[i].name, &n), *should = strdup(arrive[i].results);

		print_message("%s\n", arrive[i].name);
		if (tc_enter(&(struct tc_source){ p, n, "mlir" }, &eight, &err, check_results,
			     should))
			fail_msg("%s", err.msg);
		free(should);
		free(p);
	}
}

static void go_through(struct tc_ctx *c, void *arg)
{
	(void)arg;
	through(c);
}

/* Broken programs are refused, or have some sharding. */
static void test_broken(void **state)
{
	uint32_t seed = 3;

	(void)state;
	for (size_t i = 0; i < sizeof(arrive) / sizeof(*arrive); i++) {
		size_t n;
		char *p = read_file(arrive[i].name, &n), *copy = malloc(n);

		for (unsigned turn = 0; turn < 1500; turn++) {
			struct err err = { 0 };

			memcpy(copy, p, n);
			for (unsigned m = 0; m < 1 + turn % 3; m++) {
				seed = seed * 1664525u + 1013904223u;
				copy[(seed >> 8) % n] = (char)(seed >> 3);
			}
			assert_int_not_equal(tc_enter(&(struct tc_source){ copy, n, "mlir" },
						      &eight, &err, go_through, NULL),
					     ERR_INTERNAL);
		}
		free(copy);
		free(p);
	}
}

static void gives(const char *body, const char *results)
{
	struct err err = { 0 };
	char text[2048], should[128];
	int n = snprintf(text, sizeof(text),
			 "module() {num_partitions = 8, meshes = {mesh = \"[x=8]\"}} () {\n"
			 "func() {sym_name = \"main\"} (%%1: tensor<8xf32> {sharding = "
			 "\"@mesh[{x}]\"}, %%2: tensor<8xf32>) {\n%s\n}\n}", body);

	snprintf(should, sizeof(should), "%s", results);
	if (tc_enter(&(struct tc_source){ text, (size_t)n, "mlir" }, &eight, &err,
		     check_results, should))
		fail_msg("%s", err.msg);
}

/* A constant's users don't learn of each other. */
static void test_constants(void **state)
{
	(void)state;
	gives("%3 = constant() {value = dense<splat 0x00000000> : tensor<8xf32>} : "
	      "tensor<8xf32>\n%4 = add(%1, %3) : tensor<8xf32>\n"
	      "%5 = add(%2, %3) : tensor<8xf32>\nreturn(%4, %5)",
	      "@mesh[{x}];@mesh[{}]");
}

/* Members of a group do. */
static void test_groups(void **state)
{
	(void)state;
	gives("%3 = negate(%2) : tensor<8xf32>\nsharding_group(%3) {group_id = 4}\n"
	      "sharding_group(%1) {group_id = 4}\nreturn(%3)", "@mesh[{x}]");
	gives("%3 = negate(%2) : tensor<8xf32>\nsharding_group(%3) {group_id = 4}\n"
	      "sharding_group(%1) {group_id = 5}\nreturn(%3)", "@mesh[{}]");
}

#define DOT(a, b, contract, batch_a, batch_b) "dot_general(" a ", " b ") {" \
	"lhs_batching_dimensions = [" batch_a "], rhs_batching_dimensions = [" batch_b "], " \
	"lhs_contracting_dimensions = [" contract "], rhs_contracting_dimensions = " \
	"[" contract "]} : "
#define SQUARE(name, of) name " = broadcast_in_dim(" of ") {broadcast_dimensions = [0]} : " M "\n"
#define COLUMN "%3 = reshape(%1) : tensor<8x1xf32>\n"
#define M "tensor<8x8xf32>"
#define M1 "tensor<8x8x1xf32>"

/* What only adds dims of one element goes as early as a reshape: of the two that a product takes,
 * which can't both be cut so, the first has it as it lies. */
static void test_dims_of_one(void **state)
{
	(void)state;
	gives("%3 = broadcast_in_dim(%1) {broadcast_dimensions = [0]} : tensor<8x1xf32>\n"
	      "%4 = reshape(%1) : tensor<8x1xf32>\n"
	      "%5 = " DOT("%3", "%4", "1", "", "") M "\nreturn(%5)", "@mesh[{x},{}]");
}

/* What an op finds out goes back to those before it, and on from there, before what comes later in
 * the program says otherwise. */
static void test_order(void **state)
{
	(void)state;
	gives(COLUMN SQUARE("%4", "%2") SQUARE("%5", "%2")
	      "%6 = " DOT("%4", "%5", "1", "", "") M "\n"
	      "%7 = " DOT("%4", "%3", "", "0", "0") M1 "\n"
	      "%8 = " DOT("%6", "%3", "", "1", "0") M1 "\nreturn(%6, %7, %8)",
	      "@mesh[{x},{}];@mesh[{x},{},{}];@mesh[{},{x},{}]");
}

/* In a loop, too, with what it gives on as it was. */
static void test_given_on(void **state)
{
	(void)state;
	gives(COLUMN SQUARE("%4", "%2") SQUARE("%5", "%2") SQUARE("%6", "%2")
	      "%7 = " DOT("%4", "%3", "", "0", "0") M1 "\n"
	      "%8 = compare(%2, %2) {compare_type = <FLOAT>, "
	      "comparison_direction = <LT>} : tensor<8xi1>\n"
	      "%9 = slice(%8) {start_indices = [0], limit_indices = [1], strides = [1]} : "
	      "tensor<1xi1>\n%10 = reshape(%9) : tensor<i1>\n"
	      "%11, %12 = while(%5, %4) : " M ", " M " (%13: " M ", %14: " M ") {\nreturn(%10)\n} "
	      "(%15: " M ", %16: " M ") {\n"
	      "%17 = " DOT("%16", "%6", "1", "", "") M "\n"
	      "%18 = " DOT("%17", "%3", "", "1", "0") M1 "\nreturn(%17, %16)\n}\nreturn(%11)",
	      "@mesh[{x},{}]");
}

/* Where the program gives that away, too: its results are met before the loop. */
static void test_given_away(void **state)
{
	(void)state;
	gives("%3 = while(%1) : tensor<8xf32> (%4: tensor<8xf32>) {\n"
	      "%5 = constant() {value = dense<splat 0x01> : tensor<i1>} : tensor<i1>\n"
	      "return(%5)\n} (%6: tensor<8xf32>) {\nreturn(%6)\n}\nreturn(%3)", "@mesh[{x}]");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_golden),
		cmocka_unit_test(test_arrive),
		cmocka_unit_test(test_broken),
		cmocka_unit_test(test_constants),
		cmocka_unit_test(test_groups),
		cmocka_unit_test(test_dims_of_one),
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_given_on),
		cmocka_unit_test(test_given_away),
	};

	return cmocka_run_group_tests(tests, golden_load, golden_free);
}
