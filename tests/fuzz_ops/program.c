/* SPDX-License-Identifier: Apache-2.0 */
/* Programs as text: made, read, filled, compared, counted. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz_ops/args.h"
#include "tests/fuzz_ops/fuzz.h"
#include "tests/fuzz_ops/gen.h"
#include "tests/fuzz_ops/stablehlo.h"

struct making { uint64_t seed; bool is_sharded; struct str text; };

static void make(struct tc_ctx *c, void *arg)
{
	struct making *m = arg;

	gen_program(c, m->seed);
	if (m->is_sharded)
		gen_shard(c, m->seed);
	tc_ir_print(c->module, &m->text);
}

int program_generate(uint64_t seed, bool is_sharded, struct program *out, struct err *err)
{
	static const char nothing[] =
		"module() () { func() {sym_name = \"main\"} () { return() } }\n";
	struct making m = { .seed = seed, .is_sharded = is_sharded };
	int code;

	code = tc_enter(&(struct tc_source){ nothing, sizeof(nothing) - 1, "mlir" }, NULL, err,
			make, &m);
	if (code || m.text.failed) {
		str_free(&m.text);
		return code ? code : err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory");
	}
	return program_read(m.text.text, out, err);
}

/* ---- reading ---- */

static void take_type(struct fuzz_value *v, const struct tc_type *t)
{
	v->elem = t->elem;
	v->rank = t->rank;
	v->count = t->count;
	memcpy(v->dim, t->dim, t->rank * sizeof(*t->dim));
}

/* The i-th fact of a list; of none, that every bit counts. */
static struct fact fact_at(const char *where, unsigned i)
{
	struct fact f = FACT(FACT_BITS, false, 0, 0);

	for (unsigned k = 0; where && k <= i; k++)
		if (!fact_parse(&where, &f))
			return FACT(FACT_BITS, false, 0, 0);
	return f;
}

static void count_ops(struct tc_op *op, void *arg)
{
	unsigned *n = arg;

	*n += op->op != TC_MODULE && op->op != TC_FUNC && op->op != TC_RETURN;
}

static void read(struct tc_ctx *c, void *arg)
{
	struct program *p = arg;
	const struct tc_block *b = tc_main(c);
	const struct tc_op *func = b->region->parent;
	const char *name;

	if (b->n_args > FUZZ_MAX_ARGS || b->last->n_operands > FUZZ_MAX_RESULTS)
		tc_fail(c, ERR_INVALID_ARGUMENT, NULL,
			"more arguments or results than are compared");
	for (unsigned i = 0; i < b->n_args; i++) {
		if (b->args[i]->type->rank > 8)
			tc_fail(c, ERR_INVALID_ARGUMENT, NULL,
				"an argument of more than 8 dims");
		take_type(&p->args[i], b->args[i]->type);
		p->args[i].fact = fact_at(func->where, i);
	}
	p->n_args = b->n_args;
	for (unsigned i = 0; i < b->last->n_operands; i++) {
		const struct tc_value *v = tc_in(b->last, i);

		if (v->type->is_tuple || v->type->rank > 8)
			tc_fail(c, ERR_INVALID_ARGUMENT, NULL, "a result that is not compared");
		take_type(&p->results[i], v->type);
		p->results[i].fact = v->def ? fact_at(v->def->where, v->index) :
					      fact_at(func->where, v->index);
	}
	p->n_results = b->last->n_operands;
	name = tc_attr_str(c->module, "sym_name");
	p->n_partitions = (unsigned)tc_attr_int(c->module, "num_partitions", 1);
	p->is_for_jax = p->n_partitions == 1 && (!name || strcmp(name, "not_for_jax"));
	tc_walk(c->module, count_ops, &p->n_ops);
}

int program_read(char *text, struct program *out, struct err *err)
{
	int code;

	*out = (struct program){ .text = text };
	code = tc_enter(&(struct tc_source){ text, strlen(text), "mlir" }, NULL, err, read,
			out);
	if (code)
		program_free(out);
	return code;
}

void program_fill(struct program *p, uint64_t seed)
{
	for (unsigned i = 0; i < p->n_args; i++) {
		const struct fuzz_value *v = &p->args[i];
		struct tc_array *a = &p->in[i];

		free(a->data);
		*a = (struct tc_array){ .elem = (uint8_t)v->elem, .rank = v->rank };
		memcpy(a->dim, v->dim, v->rank * sizeof(*v->dim));
		a->bytes = (size_t)v->count * elem_bytes(v->elem);
		a->data = malloc(a->bytes + 1);
		fact_fill(v->fact, v->elem, seed * 64 + v->fact.data, a->data, v->count);
	}
}

enum verdict compare_results(const struct program *p, unsigned i, const void *got, size_t bytes,
			     bool is_jax, const char *who, struct err *err)
{
	const struct fuzz_value *v = &p->results[i];
	const char *expected = p->expected[i].data;
	char a[96], b[96];
	int64_t at;

	if (bytes != p->expected[i].bytes) {
		err_set(err, ERR_INTERNAL, "result %u has %zu bytes, not %zu", i, bytes,
			p->expected[i].bytes);
		return is_jax ? JAX_DIFFERENT : DIFFERENT;
	}
	at = fact_compare(v->fact, v->elem, got, expected, v->count, is_jax);
	if (at < 0)
		return SAME;
	fact_show(v->elem, (const char *)got + at * elem_bytes(v->elem), a, sizeof(a));
	fact_show(v->elem, expected + at * elem_bytes(v->elem), b, sizeof(b));
	err_set(err, ERR_INTERNAL,
		"result %u, element %" PRId64 " of %" PRId64 " (%s): %s gives %s, the "
		"evaluator %s",
		i, at, v->count, elem_text(v->elem), who, a, b);
	return is_jax ? JAX_DIFFERENT : DIFFERENT;
}

void program_free(struct program *p)
{
	for (unsigned i = 0; i < p->n_args; i++)
		free(p->in[i].data);
	if (p->expected)
		tc_array_free(p->expected, p->n_expected);
	if (p->constants)
		tc_array_free(p->constants, p->n_constants);
	free(p->for_jax);
	free(p->stablehlo);
	free(p->text);
	*p = (struct program){ 0 };
}

/* ---- StableHLO ---- */

static void print(struct tc_ctx *c, void *arg)
{
	stablehlo_print(c, arg);
}

/* NULL: err says why. */
static char *text_of(const struct program *p, void (*body)(struct tc_ctx *c, void *arg),
		     void *arg, struct str *s, struct err *err)
{
	int code = tc_enter(&(struct tc_source){ p->text, strlen(p->text), "mlir" }, NULL, err,
			    body, arg);

	if (!code && !s->failed)
		return s->text;
	str_free(s);
	if (!code)
		err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory");
	return NULL;
}

int program_stablehlo(struct program *p, struct err *err)
{
	struct str s = { 0 };

	if (!p->stablehlo)
		p->stablehlo = text_of(p, print, &s, &s, err);
	return p->stablehlo ? 0 : err->code;
}

struct for_jax { struct program *p; struct str s; };

static void print_for_jax(struct tc_ctx *c, void *arg)
{
	struct for_jax *to = arg;

	to->p->constants = calloc(ARGS_CONSTANTS, sizeof(*to->p->constants));
	if (!to->p->constants)
		tc_fail(c, ERR_RESOURCE_EXHAUSTED, NULL, "out of memory");
	to->p->n_constants = args_replace_constants(c, to->p->constants);
	stablehlo_print(c, &to->s);
}

int program_for_jax(struct program *p, struct err *err)
{
	struct for_jax to = { .p = p };

	if (!p->for_jax)
		p->for_jax = text_of(p, print_for_jax, &to, &to.s, err);
	return p->for_jax ? 0 : err->code;
}

/* ---- coverage ---- */

static void count_one(struct tc_op *op, void *arg)
{
	struct coverage *c = arg;
	const struct tc_type *t = op->n_operands ?
					  tc_in(op, op->op == TC_SELECT ? 1 : 0)->type :
				  op->n_results ? op->results[0].type :
						  NULL;

	if (op->op < 128)
		__atomic_fetch_add(&c->n[op->op][t && !t->is_tuple && t->elem < 32 ?
						 t->elem : 0], 1, __ATOMIC_RELAXED);
}

static void count_all(struct tc_ctx *c, void *arg)
{
	tc_walk(c->module, count_one, arg);
}

void program_count(const struct program *p, struct coverage *c)
{
	struct err err;

	tc_enter(&(struct tc_source){ p->text, strlen(p->text), "mlir" }, NULL, &err, count_all,
		 c);
}

void coverage_print(const struct coverage *c)
{
	printf("%-24s", "programs' ops by type");
	for (unsigned e = 1; e < ELEM_COUNT; e++)
		if (e != ELEM_TOKEN)
			printf(" %7.7s", elem_text(e));
	printf("\n");
	for (unsigned op = 0; op < TC_OP_COUNT; op++) {
		uint64_t all = 0;

		for (unsigned e = 0; e < 32; e++)
			all += c->n[op][e];
		if (!all)
			continue;
		printf("%-24.24s", tc_op_info(op)->text);
		for (unsigned e = 1; e < ELEM_COUNT; e++) {
			if (e == ELEM_TOKEN)
				continue;
			if (c->n[op][e])
				printf(" %7" PRIu32, c->n[op][e]);
			else
				printf(" %7s", ".");
		}
		printf("\n");
	}
	printf("never:");
	for (unsigned op = 0; op < TC_OP_COUNT; op++) {
		uint64_t all = 0;

		for (unsigned e = 0; e < 32; e++)
			all += c->n[op][e];
		if (!all)
			printf(" %s", tc_op_info(op)->text);
	}
	printf("\n");
}
