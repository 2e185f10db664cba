/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collectives: each against plain loops over what the members bring, as the program has it and as
 * exchanges (the pass `collectives`), by a gang of evaluators, and on devices that are linked;
 * what numbers of members mean; what members say that cannot meet.
 *
 * What a member brings as operand k, element i, is a small whole number (brought()), so that
 * every type holds every sum.
 */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "hal/base/elem.h"
#include "runtime/compiler/tc.h"
#include "tests/unit/gang.h"

#define MOST_OPS 32
#define MOST_MEMBERS 8
/* Passes after which it is evaluated, and where it runs at last. */
static const char devices[] = "devices";
static const char *const stages[] = { "host", "collectives", "combine", devices };
#define N_STAGES 4

/* ---- numbers ---- */

static int64_t brought(unsigned member, unsigned k, int64_t i)
{
	return (int64_t)((member * 5u + k * 3u + (uint64_t)i * 7u) % 11u % 4u);
}

static uint16_t half(int64_t v)		/* whole, below 2048 either way */
{
	uint16_t sign = v < 0 ? 0x8000 : 0;
	int e = 0;

	v = v < 0 ? -v : v;
	if (!v)
		return sign;
	while (v >> (e + 1))
		e++;
	return (uint16_t)(sign | (e + 15) << 10 | ((v << 10 >> e) & 0x3ff));
}

static void put(unsigned elem, void *at, int64_t v)
{
	float f[2] = { (float)v, (float)v };
	double d = (double)v;
	uint32_t bits;
	uint16_t h = half(v);

	switch (elem) {
	case ELEM_PRED: *(uint8_t *)at = v != 0; break;
	case ELEM_S4: *(uint8_t *)at = v & 15; break;
	case ELEM_F16: memcpy(at, &h, 2); break;
	case ELEM_BF16:
		memcpy(&bits, f, 4);
		bits >>= 16;
		memcpy(at, &bits, 2);
		break;
	case ELEM_F32: memcpy(at, f, 4); break;
	case ELEM_C64: memcpy(at, f, 8); break;
	case ELEM_F64: memcpy(at, &d, 8); break;
	default: memcpy(at, &v, elem_bytes(elem)); break;
	}
}

/* ---- programs ---- */

struct shape { unsigned rank; int64_t dim[4]; };

static int64_t count(struct shape s)
{
	int64_t n = 1;

	for (unsigned d = 0; d < s.rank; d++)
		n *= s.dim[d];
	return n;
}

enum kind { GATHER, TO_ALL, SCATTER, REDUCE, PERMUTE, BROADCAST, EXCHANGE, SAME };

struct collective {
	enum kind kind;
	unsigned d, to;		/* dims; TO_ALL: split and concat */
	const char *body;	/* of a reduction */
	struct shape in, out;
};

/* A program of ops, each with an operand of its own. */
struct program {
	unsigned elem, m, n, n_ops;	/* members, of a row */
	int64_t row[2 * MOST_MEMBERS];	/* m of them and -1s */
	unsigned n_ids;
	struct collective op[MOST_OPS];
	char text[65536];
};

static size_t add_type(char *to, unsigned elem, struct shape s)
{
	size_t n = (size_t)sprintf(to, "tensor<");

	for (unsigned d = 0; d < s.rank; d++)
		n += (size_t)sprintf(to + n, "%" PRId64 "x", s.dim[d]);
	return n + (size_t)sprintf(to + n, "%s>", elem_text(elem));
}

static size_t add_rows(char *to, const struct program *p)
{
	size_t n = (size_t)sprintf(to, "group_size = %u, replica_groups = [", p->n);

	for (unsigned i = 0; i < p->n_ids; i++)
		n += (size_t)sprintf(to + n, "%s%" PRId64, i ? ", " : "", p->row[i]);
	return n + (size_t)sprintf(to + n, "], use_global_device_ids = true");
}

static size_t add_pairs(char *to, const struct program *p)
{
	size_t n = (size_t)sprintf(to, "source_target_pairs = [");

	for (unsigned i = 0; i + 1 < p->m; i++)
		n += (size_t)sprintf(to + n, "%s%u, %u", i ? ", " : "", i, i + 1);
	return n + (size_t)sprintf(to + n, "], use_global_device_ids = true");
}

static void add_op(struct program *p, size_t *at, unsigned k)
{
	static const char *const names[] = { "all_gather", "all_to_all", "reduce_scatter",
		"all_reduce", "collective_permute", "collective_broadcast", "tc.exchange",
		"tc.exchange" };
	const struct collective *o = &p->op[k];
	const char *t = elem_text(p->elem);
	char *s = p->text;

	*at += (size_t)sprintf(s + *at, "%%%u = %s(%%%u) {", 100 + k, names[o->kind], k);
	*at += o->kind == PERMUTE ? add_pairs(s + *at, p) : add_rows(s + *at, p);
	if (o->kind == GATHER)
		*at += (size_t)sprintf(s + *at, ", all_gather_dim = %u", o->d);
	if (o->kind == SCATTER)
		*at += (size_t)sprintf(s + *at, ", scatter_dimension = %u", o->d);
	if (o->kind == TO_ALL)
		*at += (size_t)sprintf(s + *at, ", split_dimension = %u, concat_dimension = %u, "
				       "split_count = %u", o->d, o->to, p->n);
	if (o->kind >= EXCHANGE)
		*at += (size_t)sprintf(s + *at, ", is_same = %s", o->kind == SAME ? "true" :
				       "false");
	*at += (size_t)sprintf(s + *at, "} : ");
	*at += add_type(s + *at, p->elem, o->out);
	if (o->body)
		*at += (size_t)sprintf(s + *at, " (%%%u: tensor<%s>, %%%u: tensor<%s>) {\n"
				       "%%%u = %s(%%%u, %%%u) : tensor<%s>\nreturn(%%%u)\n}",
				       200 + 3 * k, t, 201 + 3 * k, t, 202 + 3 * k, o->body,
				       200 + 3 * k, 201 + 3 * k, t, 202 + 3 * k);
	*at += (size_t)sprintf(s + *at, "\n");
}

static void write_program(struct program *p)
{
	size_t at = (size_t)sprintf(p->text, "module() () {\nfunc() {sym_name = \"main\"} (");

	for (unsigned k = 0; k < p->n_ops; k++) {
		at += (size_t)sprintf(p->text + at, "%s%%%u: ", k ? ", " : "", k);
		at += add_type(p->text + at, p->elem, p->op[k].in);
	}
	at += (size_t)sprintf(p->text + at, ") {\n");
	for (unsigned k = 0; k < p->n_ops; k++)
		add_op(p, &at, k);
	at += (size_t)sprintf(p->text + at, "return(");
	for (unsigned k = 0; k < p->n_ops; k++)
		at += (size_t)sprintf(p->text + at, "%s%%%u", k ? ", " : "", 100 + k);
	sprintf(p->text + at, ")\n}\n}\n");
}

static struct tc_array new_array(unsigned elem, struct shape s)
{
	struct tc_array a = { .elem = (uint8_t)elem, .rank = s.rank,
			      .bytes = (size_t)count(s) * elem_bytes(elem) };

	memcpy(a.dim, s.dim, s.rank * sizeof(*s.dim));
	a.data = calloc(1, a.bytes + 1);
	assert_non_null(a.data);
	return a;
}

static struct tc_array *make_args(const struct program *p)
{
	struct tc_array *args = calloc(p->m * p->n_ops, sizeof(*args));

	assert_non_null(args);
	for (unsigned m = 0; m < p->m; m++)
		for (unsigned k = 0; k < p->n_ops; k++) {
			struct tc_array *a = &args[m * p->n_ops + k];

			*a = new_array(p->elem, p->op[k].in);
			for (int64_t i = 0; i < count(p->op[k].in); i++)
				put(p->elem, (char *)a->data + i * elem_bytes(p->elem),
				    brought(m, k, i));
		}
	return args;
}

/* ---- what should come out ---- */

static int64_t linear(struct shape s, const int64_t *idx)
{
	int64_t at = 0;

	for (unsigned d = 0; d < s.rank; d++)
		at = at * s.dim[d] + idx[d];
	return at;
}

static void step(struct shape s, int64_t *idx)
{
	for (unsigned d = s.rank; d-- > 0;) {
		if (++idx[d] < s.dim[d])
			return;
		idx[d] = 0;
	}
}

/* The row with the member in it, and its place; NULL: none. */
static const int64_t *row_of(const struct program *p, unsigned m, unsigned *place)
{
	for (unsigned i = 0; i < p->n_ids; i++)
		if (p->row[i] == m) {
			*place = i % p->n;
			return p->row + i - *place;
		}
	return NULL;
}

static int64_t combine(const struct program *p, const char *body, int64_t a, int64_t b)
{
	bool is_bool = p->elem == ELEM_PRED;

	if (is_bool) {
		a = a != 0;
		b = b != 0;
	}
	switch (*body) {
	case 'a': return body[1] == 'n' ? a & b : is_bool ? a | b : a + b;	/* and, add */
	case 'o': return a | b;
	case 's': return a - b;
	case 'm': return body[1] == 'u' ? a * b : (body[1] == 'a') == (a > b) ? a : b;
	default: fail(); return 0;
	}
}

static int64_t reduced(const struct program *p, const struct collective *o, unsigned k,
		       const int64_t *row, int64_t at)
{
	int64_t v = brought((unsigned)row[0], k, at);

	for (unsigned i = 1; i < p->n && row[i] >= 0; i++)
		v = combine(p, o->body, v, brought((unsigned)row[i], k, at));
	return v;
}

/* Element idx of result k at member m. */
static int64_t wanted(const struct program *p, unsigned k, unsigned m, const int64_t *idx)
{
	const struct collective *o = &p->op[k];
	int64_t from[4], part = 1, first;
	unsigned place = 0;
	const int64_t *row = row_of(p, m, &place);

	memcpy(from, idx, sizeof(from));
	switch (o->kind) {
	case GATHER:
		from[o->d] %= o->in.dim[o->d];
		return brought((unsigned)row[idx[o->d] / o->in.dim[o->d]], k,
			       linear(o->in, from));
	case TO_ALL:
		part = o->in.dim[o->to] / (o->d == o->to ? p->n : 1);
		from[o->to] %= part;
		from[o->d] += place * (o->in.dim[o->d] / p->n);
		return brought((unsigned)row[idx[o->to] / part], k, linear(o->in, from));
	case SCATTER:
		from[o->d] += place * o->out.dim[o->d];
		return reduced(p, o, k, row, linear(o->in, from));
	case REDUCE:
		return reduced(p, o, k, row, linear(o->in, idx));
	case PERMUTE:
		return m ? brought(m - 1, k, linear(o->in, idx)) : 0;
	case BROADCAST:
		return row ? brought((unsigned)row[0], k, linear(o->in, idx)) : 0;
	case EXCHANGE:
		from[0] = place;
		return brought((unsigned)row[idx[0]], k, linear(o->in, from));
	default:
		first = linear(o->in, from + 1);
		return row[idx[0]] < 0 ? 0 : brought((unsigned)row[idx[0]], k, first);
	}
}

static void check(const struct program *p, const struct tc_array *outs, const char *stage)
{
	unsigned each = elem_bytes(p->elem);
	char want[16];

	for (unsigned m = 0; m < p->m; m++)
		for (unsigned k = 0; k < p->n_ops; k++) {
			const struct tc_array *a = &outs[m * p->n_ops + k];
			int64_t idx[4] = { 0 };

			assert_int_equal(a->bytes, count(p->op[k].out) * each);
			for (int64_t i = 0; i < count(p->op[k].out); i++) {
				put(p->elem, want, wanted(p, k, m, idx));
				if (memcmp(want, (char *)a->data + i * each, each))
					fail_msg("%s, %u members in rows of %u, %s: element %"
						 PRId64 " of result %u (kind %d) at member %u",
						 elem_text(p->elem), p->m, p->n, stage, i, k,
						 p->op[k].kind, m);
				step(p->op[k].out, idx);
			}
		}
}

static int evaluate(const char *text, struct tc_options o, const struct tc_array *args,
		    size_t n_args, struct tc_array **outs, size_t *n_outs, struct err *err)
{
	const struct tc_source source = { text, strlen(text), "mlir" };

	o.level = 1;
	o.verify = true;
	return (o.evaluate_after == devices ? gang_evaluate : tc_eval_gang)(&source, &o, args,
		n_args, outs, n_outs, err);
}

static void run(struct program *p)
{
	struct tc_array *args = make_args(p), *outs = NULL;
	size_t n_outs = 0;
	struct err err;

	write_program(p);
	for (unsigned s = 0; s < N_STAGES; s++) {
		struct tc_options o = { .partitions = p->m, .evaluate_after = stages[s] };

		if (evaluate(p->text, o, args, p->n_ops, &outs, &n_outs, &err))
			fail_msg("%s: %s\n%s", stages[s], err.msg, p->text);
		assert_int_equal(n_outs, p->n_ops);
		check(p, outs, stages[s]);
		tc_array_free(outs, p->m * n_outs);
	}
	tc_array_free(args, p->m * p->n_ops);
}

/* ---- tests of what they give ---- */

static void add(struct program *p, struct collective o)
{
	assert_true(p->n_ops < MOST_OPS);
	if (o.kind == SCATTER || o.kind == TO_ALL)
		o.in.dim[o.d] *= p->n;
	o.out = o.in;
	if (o.kind == GATHER)
		o.out.dim[o.d] *= p->n;
	if (o.kind == SCATTER || o.kind == TO_ALL)
		o.out.dim[o.d] /= p->n;
	if (o.kind == TO_ALL)
		o.out.dim[o.to] *= p->n;
	if (o.kind == EXCHANGE)
		o.in.dim[0] = o.out.dim[0] = p->n;
	if (o.kind == SAME) {
		memmove(o.out.dim + 1, o.in.dim, o.in.rank * sizeof(*o.in.dim));
		o.out.dim[0] = p->n;
		o.out.rank = o.in.rank + 1;
	}
	p->op[p->n_ops++] = o;
}

static void add_moves(struct program *p, struct shape in)
{
	for (unsigned d = 0; d < in.rank; d++) {
		add(p, (struct collective){ .kind = GATHER, .d = d, .in = in });
		for (unsigned to = 0; to < in.rank; to++)
			add(p, (struct collective){ .kind = TO_ALL, .d = d, .to = to, .in = in });
	}
	add(p, (struct collective){ .kind = PERMUTE, .in = in });
	add(p, (struct collective){ .kind = BROADCAST, .in = in });
	add(p, (struct collective){ .kind = EXCHANGE, .in = in });
	add(p, (struct collective){ .kind = SAME, .in = in });
}

/* What the type has: booleans no sums, complex numbers no order. */
static void add_reductions(struct program *p, struct shape in)
{
	static const char *const bodies[] = { "add", "maximum", "minimum", "multiply", "subtract",
					      "and", "or" };
	unsigned cls = elem_class(p->elem);
	unsigned from = cls == ELEM_CLASS_PRED ? 5 : 0;
	unsigned to = cls == ELEM_CLASS_PRED || cls == ELEM_CLASS_SINT ? 7 :
		      cls == ELEM_CLASS_COMPLEX ? 1 : 5;

	for (unsigned i = from; i < to; i++) {
		bool may_overflow = bodies[i][0] == 's' && (cls == ELEM_CLASS_UINT);

		if (may_overflow || (p->m > 4 && bodies[i][0] == 'm' && bodies[i][1] == 'u'))
			continue;
		add(p, (struct collective){ .kind = REDUCE, .body = bodies[i], .in = in });
	}
	for (unsigned d = 0; d < in.rank; d++)
		add(p, (struct collective){ .kind = SCATTER, .d = d, .in = in,
					    .body = bodies[from] });
}

/* Rows of n: far members together, and against their order. */
static void make_rows(struct program *p, unsigned m, unsigned n)
{
	unsigned rows = m / n;

	p->m = m;
	p->n = n;
	p->n_ids = m;
	for (unsigned r = 0; r < rows; r++)
		for (unsigned i = 0; i < n; i++)
			p->row[r * n + i] = r + (n - 1 - i) * rows;
}

static const unsigned member_counts[] = { 2, 3, 4, 6, 8 };

static void for_all_rows(struct program *p, struct shape in,
			 void (*add_ops)(struct program *p, struct shape in))
{
	for (unsigned i = 0; i < 5; i++)
		for (unsigned n = 1; n <= member_counts[i]; n++) {
			if (member_counts[i] % n)
				continue;
			make_rows(p, member_counts[i], n);
			p->n_ops = 0;
			add_ops(p, in);
			run(p);
		}
}

static const struct shape small = { 3, { 2, 3, 2 } };

static void moves_are_those_of_plain_loops(void **state)
{
	static const uint8_t elems[] = { ELEM_PRED, ELEM_S4, ELEM_U8, ELEM_F16, ELEM_F32,
					 ELEM_F64, ELEM_C64 };
	static struct program p;

	(void)state;
	for (unsigned i = 0; i < sizeof(elems); i++) {
		p.elem = elems[i];
		for_all_rows(&p, small, add_moves);
	}
}

static void reductions_are_those_of_plain_loops(void **state)
{
	static const uint8_t elems[] = { ELEM_PRED, ELEM_S8, ELEM_S32, ELEM_U64, ELEM_F16,
					 ELEM_BF16, ELEM_F32, ELEM_F64, ELEM_C64 };
	static struct program p;

	(void)state;
	for (unsigned i = 0; i < sizeof(elems); i++) {
		p.elem = elems[i];
		for_all_rows(&p, small, add_reductions);
	}
}

static void empty_arrays_and_scalars_meet_too(void **state)
{
	static const struct shape empty = { 2, { 0, 3 } }, scalar = { 0, { 0 } };
	static struct program p = { .elem = ELEM_F32 };

	(void)state;
	for (unsigned k = 0; k < 2; k++) {
		make_rows(&p, 4, k ? 4 : 2);
		p.n_ops = 0;
		add_moves(&p, empty);
		add_reductions(&p, empty);
		run(&p);
		p.n_ops = 0;
		add(&p, (struct collective){ .kind = REDUCE, .body = "add", .in = scalar });
		add(&p, (struct collective){ .kind = PERMUTE, .in = scalar });
		add(&p, (struct collective){ .kind = BROADCAST, .in = scalar });
		add(&p, (struct collective){ .kind = SAME, .in = scalar });
		run(&p);
	}
}

/* On both sides of what goes whole to everyone, of counts that divide and that do not. */
static void large_arrays_go_in_parts(void **state)
{
	static const uint8_t elems[] = { ELEM_F32, ELEM_BF16 };
	static struct program p;

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		int64_t n = i ? 3 : 4, most = 65536 / n / elem_bytes(elems[i]);
		const int64_t counts[] = { most, most + 1, most + 3, most + 4 };

		p.elem = elems[i];
		make_rows(&p, i ? 3 : 8, n);
		p.n_ops = 0;
		for (unsigned k = 0; k < 4; k++) {
			struct shape s = { 1, { counts[k] } };

			add(&p, (struct collective){ .kind = REDUCE, .body = "add", .in = s });
			add(&p, (struct collective){ .kind = BROADCAST, .in = s });
		}
		run(&p);
	}
}

static void set_rows(struct program *p, unsigned m, unsigned n, unsigned n_ids,
		     const int64_t *rows)
{
	p->m = m;
	p->n = n;
	p->n_ids = n_ids;
	p->n_ops = 0;
	memcpy(p->row, rows, n_ids * sizeof(*rows));
}

static void groups_may_differ_in_size(void **state)
{
	static const struct shape large = { 1, { 20001 } };
	static struct program p = { .elem = ELEM_S32 };

	(void)state;
	for (unsigned k = 0; k < 3; k++) {
		p.elem = k == 0 ? ELEM_S32 : k == 1 ? ELEM_BF16 : ELEM_PRED;
		set_rows(&p, 8, 5, 10, (int64_t[]){ 2, 0, 1, -1, -1, 3, 7, 5, 6, 4 });
		add(&p, (struct collective){ .kind = REDUCE, .body = k == 2 ? "and" : "add",
					     .in = small });
		add(&p, (struct collective){ .kind = REDUCE, .body = "minimum", .in = large });
		add(&p, (struct collective){ .kind = BROADCAST, .in = small });
		add(&p, (struct collective){ .kind = SAME, .in = small });
		run(&p);
		set_rows(&p, 4, 3, 6, (int64_t[]){ 3, -1, -1, 0, 2, 1 });
		add(&p, (struct collective){ .kind = REDUCE, .body = k == 2 ? "or" : "maximum",
					     .in = small });
		run(&p);
	}
}

static void who_is_in_no_group_of_a_broadcast_has_zeros(void **state)
{
	static const struct shape large = { 1, { 20001 } };
	static struct program p = { .elem = ELEM_F32 };

	(void)state;
	for (unsigned k = 0; k < 2; k++) {
		if (k)
			set_rows(&p, 6, 2, 4, (int64_t[]){ 4, 1, 2, 5 });
		else
			set_rows(&p, 3, 1, 1, (int64_t[]){ 1 });
		add(&p, (struct collective){ .kind = BROADCAST, .in = small });
		add(&p, (struct collective){ .kind = BROADCAST, .in = large });
		run(&p);
	}
}

/* ---- programs as text ---- */

#define HEAD "module() () {\nfunc() {sym_name = \"main\"} "
#define ADD(t) " (%90: tensor<" t ">, %91: tensor<" t ">) {\n%92 = add(%90, %91) : tensor<" t \
	">\nreturn(%92)\n}\n"
#define ALL4 "{group_size = 4, replica_groups = [0, 1, 2, 3], use_global_device_ids = true}"

/* One f32 a member in, one out. */
static void expect_scalars(const char *text, unsigned members, const float *in, const float *want)
{
	struct tc_array args[MOST_MEMBERS], *outs;
	struct err err;
	size_t n;

	for (unsigned m = 0; m < members; m++)
		args[m] = (struct tc_array){ .elem = ELEM_F32, .data = (void *)(uintptr_t)&in[m],
					     .bytes = 4 };
	for (unsigned s = 0; s < N_STAGES; s++) {
		struct tc_options o = { .partitions = members, .evaluate_after = stages[s] };

		if (evaluate(text, o, args, 1, &outs, &n, &err))
			fail_msg("%s: %s", stages[s], err.msg);
		assert_int_equal(n, 1);
		for (unsigned m = 0; m < members; m++)
			assert_memory_equal(outs[m].data, &want[m], 4);
		tc_array_free(outs, members);
	}
}

static const float four[4] = { 1, 2, 3, 4 };

static void loops_and_branches_hold_collectives(void **state)
{
	static const char loop[] = HEAD "(%0: tensor<f32>) {\n"
		"%1 = constant() {value = dense<0x00000000> : tensor<i32>} : tensor<i32>\n"
		"%2, %3 = while(%1, %0) : tensor<i32>, tensor<f32>\n"
		"(%4: tensor<i32>, %5: tensor<f32>) {\n"
		"%6 = constant() {value = dense<0x03000000> : tensor<i32>} : tensor<i32>\n"
		"%7 = compare(%4, %6) {comparison_direction = <LT>, compare_type = <SIGNED>} : "
		"tensor<i1>\nreturn(%7)\n}\n"
		"(%8: tensor<i32>, %9: tensor<f32>) {\n"
		"%10 = constant() {value = dense<0x01000000> : tensor<i32>} : tensor<i32>\n"
		"%11 = add(%8, %10) : tensor<i32>\n"
		"%12 = all_reduce(%9) " ALL4 " : tensor<f32>" ADD("f32")
		"return(%11, %12)\n}\nreturn(%3)\n}\n}\n";
	/* Members 0 and 1 meet in one branch, 2 and 3 in the other. */
	static const char branch[] = HEAD "(%0: tensor<f32>) {\n"
		"%1 = partition_id() : tensor<ui32>\n"
		"%2 = constant() {value = dense<0x02000000> : tensor<ui32>} : tensor<ui32>\n"
		"%3 = compare(%1, %2) {comparison_direction = <LT>, compare_type = <UNSIGNED>} : "
		"tensor<i1>\n"
		"%4 = if(%3) : tensor<f32> () {\n"
		"%5 = all_reduce(%0) {group_size = 2, replica_groups = [0, 1, 2, 3], "
		"use_global_device_ids = true} : tensor<f32>" ADD("f32") "return(%5)\n}\n"
		"() {\n%6 = collective_permute(%0) {source_target_pairs = [2, 3, 3, 2], "
		"use_global_device_ids = true} : tensor<f32>\n"
		"return(%6)\n}\nreturn(%4)\n}\n}\n";

	(void)state;
	expect_scalars(loop, 4, four, (float[]){ 160, 160, 160, 160 });
	expect_scalars(branch, 4, four, (float[]){ 3, 3, 4, 3 });
}

static void what_is_begun_is_done(void **state)
{
	static const char text[] = HEAD "(%0: tensor<f32>) {\n"
		"%1 = async_start(%0) : tuple<tensor<f32>> (%2: tensor<f32>) {\n"
		"%3 = all_reduce(%2) " ALL4 " : tensor<f32>" ADD("f32") "return(%3)\n}\n"
		"%4 = add(%0, %0) : tensor<f32>\n"
		"%5 = async_done(%1) : tensor<f32>\n"
		"%6 = subtract(%5, %4) : tensor<f32>\nreturn(%6)\n}\n}\n";

	(void)state;
	expect_scalars(text, 4, four, (float[]){ 8, 6, 4, 2 });
}

static void regions_see_values_around_them(void **state)
{
	static const char text[] = HEAD "(%0: tensor<f32>) {\n"
		"%9 = constant() {value = dense<0x0000803f> : tensor<f32>} : tensor<f32>\n"
		"%1 = all_reduce(%0) " ALL4 " : tensor<f32> (%2: tensor<f32>, %3: tensor<f32>) {\n"
		"%4 = add(%2, %3) : tensor<f32>\n%5 = add(%4, %9) : tensor<f32>\n"
		"return(%5)\n}\nreturn(%1)\n}\n}\n";

	(void)state;
	expect_scalars(text, 4, four, (float[]){ 13, 13, 13, 13 });
}

/* 256 and seven ones: step by step in bf16 256, in f32 263, which is 264 in bf16. */
static void narrow_sums_round_once(void **state)
{
	static const char text[] = HEAD "(%0: tensor<f32>) {\n"
		"%1 = convert(%0) : tensor<bf16>\n"
		"%2 = all_reduce(%1) {group_size = 8, replica_groups = [0, 1, 2, 3, 4, 5, 6, 7], "
		"use_global_device_ids = true} : tensor<bf16>" ADD("bf16")
		"%3 = convert(%2) : tensor<f32>\nreturn(%3)\n}\n}\n";

	(void)state;
	expect_scalars(text, 8, (float[]){ 256, 1, 1, 1, 1, 1, 1, 1 },
		       (float[]){ 264, 264, 264, 264, 264, 264, 264, 264 });
}

static void several_operands_are_reduced_together(void **state)
{
	static const struct shape shapes[] = { { 1, { 5 } }, { 1, { 0 } }, { 2, { 3, 2 } },
					       { 1, { 20001 } }, { 0, { 0 } }, { 1, { 9000 } },
					       { 1, { 9001 } } };
	static const char text[] = HEAD "(%0: tensor<5xi32>, %1: tensor<0xi32>, "
		"%2: tensor<3x2xi32>, %3: tensor<20001xi32>, %4: tensor<i32>, "
		"%5: tensor<9000xi32>, %6: tensor<9001xi32>) {\n"
		"%10, %11, %12, %13, %14, %15, %16 = all_reduce(%0, %1, %2, %3, %4, %5, %6) "
		ALL4 " : tensor<5xi32>, tensor<0xi32>, tensor<3x2xi32>, tensor<20001xi32>, "
		"tensor<i32>, tensor<9000xi32>, tensor<9001xi32>" ADD("i32")
		"return(%10, %11, %12, %13, %14, %15, %16)\n}\n}\n";
	static struct program p = { .elem = ELEM_S32 };
	struct tc_array *args, *outs;
	struct err err;
	size_t n;

	(void)state;
	make_rows(&p, 4, 4);
	for (unsigned k = 0; k < 7; k++)
		add(&p, (struct collective){ .kind = REDUCE, .body = "add", .in = shapes[k] });
	args = make_args(&p);
	for (unsigned s = 0; s < N_STAGES; s++) {
		struct tc_options o = { .partitions = 4, .evaluate_after = stages[s] };

		if (evaluate(text, o, args, 7, &outs, &n, &err))
			fail_msg("%s", err.msg);
		check(&p, outs, stages[s]);
		tc_array_free(outs, 4 * n);
	}
	tc_array_free(args, 4 * 7);
}

static void only_two_forms_are_left(void **state)
{
	static const char *const gone[] = { "all_reduce", "all_gather", "all_to_all",
					    "reduce_scatter", "collective_broadcast" };
	struct tc_options o = { .partitions = 8, .level = 1 };
	static struct program p = { .elem = ELEM_F32 };
	struct err err;
	char *text;

	(void)state;
	make_rows(&p, 8, 4);
	add_moves(&p, small);
	add_reductions(&p, small);
	write_program(&p);
	assert_int_equal(tc_print(&(struct tc_source){ p.text, strlen(p.text), "mlir" }, &o,
				  "collectives", &text, &err), 0);
	for (unsigned i = 0; i < 5; i++)
		assert_null(strstr(text, gone[i]));
	assert_non_null(strstr(text, "tc.exchange"));
	free(text);
}

/* ---- tests of who is meant ---- */

/* Both by 2 replicas of 2 partitions; what the op says once settled. */
static void numbers_mean_members(void **state)
{
	static const struct { const char *op, *settled; } cases[] = {
		{ "all_reduce(%0) {group_size = 2, replica_groups = [0, 1]}",
		  "group_size = 2, replica_groups = [0, 2, 1, 3]" },
		{ "all_reduce(%0) {group_size = 1, replica_groups = [1, 0]}",
		  "group_size = 1, replica_groups = [2, 3, 0, 1]" },
		{ "all_reduce(%0) {group_size = 2, replica_groups = [1, 0], channel_id = 1}",
		  "group_size = 4, replica_groups = [2, 0, 3, 1]" },
		{ "all_reduce(%0) {group_size = 2, replica_groups = [0, 3, 2, 1], channel_id = 1, "
		  "use_global_device_ids = true}",
		  "group_size = 2, replica_groups = [0, 3, 2, 1]" },
		{ "all_reduce(%0) {group_size = 0, replica_groups = []}",
		  "group_size = 2, replica_groups = [0, 2, 1, 3]" },
		{ "all_reduce(%0) {group_size = 3, replica_groups = [1, -1, 3, 2, -1, 0], "
		  "channel_id = 1, use_global_device_ids = true}",
		  "group_size = 2, replica_groups = [1, 3, 2, 0]" },
		{ "collective_permute(%0) {source_target_pairs = [0, 1]}",
		  "source_target_pairs = [0, 2, 1, 3]" },
		{ "collective_permute(%0) {source_target_pairs = [0, 1], channel_id = 2}",
		  "source_target_pairs = [0, 1, 2, 3]" },
		{ "collective_broadcast(%0) {group_size = 2, replica_groups = [1, 0], "
		  "channel_id = 1}", "group_size = 2, replica_groups = [1, 0, 3, 2]" },
	};
	const struct tc_options o = { .replicas = 2, .partitions = 2, .level = 1 };
	char text[1024], want[128], *out;
	struct err err;

	(void)state;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		snprintf(text, sizeof(text), HEAD "(%%0: tensor<f32>) {\n%%1 = %s : tensor<f32>%s"
			 "return(%%1)\n}\n}\n", cases[i].op,
			 cases[i].op[0] == 'a' ? ADD("f32") : "\n");
		if (tc_print(&(struct tc_source){ text, strlen(text), "mlir" }, &o, "read", &out,
			     &err))
			fail_msg("%u: %s", i, err.msg);
		for (const char *at = cases[i].settled; at; at = strchr(at, 'r')) {
			size_t n = strcspn(at, "]") + 1;

			if (*at == 'g')
				n = strcspn(at, ",");
			snprintf(want, sizeof(want), "%.*s", (int)n, at);
			if (!strstr(out, want))
				fail_msg("%u: no %s in\n%s", i, want, out);
			if (*at != 'g')
				break;
			at += n;
		}
		free(out);
	}
}

static void numbers_of_both_kinds_are_known(void **state)
{
	static const char text[] = HEAD "() {\n%0 = replica_id() : tensor<ui32>\n"
		"%1 = partition_id() : tensor<ui32>\nreturn(%0, %1)\n}\n}\n";
	struct tc_options o = { .replicas = 3, .partitions = 2 };
	struct tc_array *outs;
	struct err err;
	size_t n;

	(void)state;
	for (unsigned s = 0; s < N_STAGES; s++) {
		o.evaluate_after = stages[s];
		assert_int_equal(evaluate(text, o, NULL, 0, &outs, &n, &err), 0);
		for (unsigned m = 0; m < 6; m++) {
			assert_int_equal(*(uint32_t *)outs[2 * m].data, m / 2);
			assert_int_equal(*(uint32_t *)outs[2 * m + 1].data, m % 2);
		}
		tc_array_free(outs, 12);
	}
}

static void replicas_and_partitions_meet_by_their_tables(void **state)
{
	/* A broadcast among some of 2 x 2 members needs the own number of both. */
	static const char text[] = HEAD "(%0: tensor<f32>) {\n"
		"%1 = collective_broadcast(%0) {group_size = 2, replica_groups = [3, 0], "
		"use_global_device_ids = true} : tensor<f32>\nreturn(%1)\n}\n}\n";
	static const float want[4] = { 4, 0, 0, 4 };
	struct tc_array args[4], *outs;
	struct err err;
	size_t n;

	(void)state;
	for (unsigned m = 0; m < 4; m++)
		args[m] = (struct tc_array){ .elem = ELEM_F32, .bytes = 4,
					     .data = (void *)(uintptr_t)&four[m] };
	for (unsigned s = 0; s < N_STAGES; s++) {
		struct tc_options o = { .replicas = 2, .partitions = 2,
					.evaluate_after = stages[s] };

		assert_int_equal(evaluate(text, o, args, 1, &outs, &n, &err), 0);
		for (unsigned m = 0; m < 4; m++)
			assert_memory_equal(outs[m].data, &want[m], 4);
		tc_array_free(outs, 4);
	}
}

/* ---- tests of what is refused ---- */

static void refuses(const char *text, unsigned partitions, int code, const char *message)
{
	struct tc_options o = { .partitions = partitions, .evaluate_after = "collectives" };
	struct tc_array args[MOST_MEMBERS], *outs;
	struct err err = { 0 };
	float x[32] = { 0 };
	size_t n;
	int got;

	for (unsigned m = 0; m < partitions; m++)
		args[m] = (struct tc_array){ .elem = ELEM_F32, .rank = 1, .dim = { 8 }, .data = x,
					     .bytes = 32 };
	got = evaluate(text, o, args, 1, &outs, &n, &err);
	if (got != code || !strstr(err.msg, message))
		fail_msg("%d instead of %d, \"%s\" has no \"%s\"", got, code, err.msg, message);
}

static void hostile_attributes_are_refused(void **state)
{
	static const struct { const char *op, *type, *message; } cases[] = {
#define R(groups, size) "all_reduce(%0) {group_size = " size ", replica_groups = [" groups \
	"], use_global_device_ids = true}", "8"
		{ R("0, 1, 2, 4", "4"), "replica_groups names member 4 of a program for 1 "
		  "replicas and 4 partitions" },
		{ R("0, 1, 2", "3"), "leaves out member 3" },
		{ R("0, 1, 2, 2", "4"), "names a member twice" },
		{ R("0, 1, 2, -2", "4"), "names member -2" },
		{ R("0, 1, 2, 9223372036854775807", "4"), "names member 9223372036854775807" },
		{ R("0, 1, 2, 3", "3"), "4 entries in rows of 3" },
		{ R("0, 1, 2, 3", "0"), "4 entries in rows of 0" },
		{ R("0, 1, 2, 3", "-4"), "4 entries in rows of -4" },
		{ R("0, 1, 2, 3", "9223372036854775807"), "in rows of 9223372036854775807" },
#define G(dim, groups, size) "all_gather(%0) {all_gather_dim = " dim ", group_size = " size \
	", replica_groups = [" groups "], use_global_device_ids = true}"
		{ G("0", "0, 1, 2, 3", "4"), "31", "not made of operands" },
		{ G("0", "0, 1, 2, 3", "4"), "16", "not made of operands" },
		{ G("0", "0, 1, 2, 3", "2"), "32", "not made of operands" },
		{ G("1", "0, 1, 2, 3", "4"), "32", "all_gather_dim is 1 of 1" },
		{ G("-1", "0, 1, 2, 3", "4"), "32", "all_gather_dim is -1 of 1" },
		{ G("0", "0, 1, 2, 3, -1, -1", "3"), "24", "groups of 1 and of 3" },
#define T(count, size) "all_to_all(%0) {split_dimension = 0, concat_dimension = 0, split_count = " \
	count ", group_size = " size ", replica_groups = [0, 1, 2, 3], use_global_device_ids = " \
	"true}"
		{ T("2", "4"), "8", "split_count is 2" },
		{ T("0", "4"), "8", "split_count is 0" },
		{ T("3", "4"), "8", "split_count is 3" },
		{ T("9223372036854775807", "4"), "8", "split_count is 9223372036854775807" },
#define P(pairs) "collective_permute(%0) {source_target_pairs = [" pairs \
	"], use_global_device_ids = true}", "8"
		{ P("0, 1, 2"), "3 entries, which are no pairs" },
		{ P("0, 1, 0, 2"), "names a source twice" },
		{ P("0, 1, 2, 1"), "names a target twice" },
		{ P("0, 4"), "source_target_pairs names member 4" },
		{ P("-1, 0"), "source_target_pairs names member -1" },
#define E(same) "tc.exchange(%0) {is_same = " same ", group_size = 2, replica_groups = " \
	"[0, 1, 2, 3]}"
		{ E("false"), "8", "does not fit groups of 2" },
		{ E("true"), "8", "not of the shape" },
		{ "collective_broadcast(%0) {group_size = 2, replica_groups = [0, 1], "
		  "use_global_device_ids = true}", "4", "not of the shape" },
		{ "collective_broadcast(%0) {group_size = 2}", "8", "replica_groups is missing" },
		{ "async_done(%0)", "8", "not 1 arrays" },
	};
	char text[1024];

	(void)state;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		snprintf(text, sizeof(text), HEAD "(%%0: tensor<8xf32>) {\n%%1 = %s : "
			 "tensor<%sxf32>%sreturn(%%1)\n}\n}\n", cases[i].op, cases[i].type,
			 strstr(cases[i].op, "all_reduce") ? ADD("f32") : "\n");
		refuses(text, 4, ERR_INVALID_ARGUMENT, cases[i].message);
	}
}

static void regions_that_do_more_are_refused(void **state)
{
	static const char body[] = HEAD "(%0: tensor<8xf32>) {\n%1 = all_reduce(%0) " ALL4
		" : tensor<8xf32> (%2: tensor<f32>, %3: tensor<f32>) {\n"
		"%4 = reshape(%2) : tensor<1xf32>\n%5 = reshape(%4) : tensor<f32>\n"
		"return(%5)\n}\nreturn(%1)\n}\n}\n";
	static const char other[] = HEAD "(%0: tensor<8xf32>) {\n%1 = all_reduce(%0) " ALL4
		" : tensor<8xf32>" ADD("f64") "return(%1)\n}\n}\n";

	(void)state;
	refuses(body, 4, ERR_UNIMPLEMENTED, "reshape: it does not run in the region");
	refuses(other, 4, ERR_INVALID_ARGUMENT, "its region takes f64");
}

static void members_that_cannot_meet_are_told(void **state)
{
	/* Members 0 and 1 go one way, 2 and 3 another, and each wants all four. */
	static const char apart[] = HEAD "(%0: tensor<8xf32>) {\n"
		"%1 = partition_id() : tensor<ui32>\n"
		"%2 = constant() {value = dense<0x02000000> : tensor<ui32>} : tensor<ui32>\n"
		"%3 = compare(%1, %2) {comparison_direction = <LT>, compare_type = <UNSIGNED>} : "
		"tensor<i1>\n"
		"%4 = if(%3) : tensor<8xf32> () {\n"
		"%5 = all_reduce(%0) " ALL4 " : tensor<8xf32>" ADD("f32") "return(%5)\n}\n"
		"() {\n%6 = collective_permute(%0) {source_target_pairs = [2, 0, 3, 1], "
		"use_global_device_ids = true} : tensor<8xf32>\n"
		"return(%6)\n}\nreturn(%4)\n}\n}\n";
	static const char ended[] = HEAD "(%0: tensor<8xf32>) {\n"
		"%1 = partition_id() : tensor<ui32>\n"
		"%2 = constant() {value = dense<0x03000000> : tensor<ui32>} : tensor<ui32>\n"
		"%3 = compare(%1, %2) {comparison_direction = <LT>, compare_type = <UNSIGNED>} : "
		"tensor<i1>\n"
		"%4 = if(%3) : tensor<8xf32> () {\n"
		"%5 = all_reduce(%0) " ALL4 " : tensor<8xf32>" ADD("f32") "return(%5)\n}\n"
		"() {\nreturn(%0)\n}\nreturn(%4)\n}\n}\n";

	(void)state;
	for (unsigned i = 0; i < 20; i++) {
		refuses(apart, 4, ERR_INVALID_ARGUMENT, "members disagree about what they meet in");
		refuses(ended, 4, ERR_INVALID_ARGUMENT, "and member 3 has ended");
	}
}

static void one_that_fails_ends_all(void **state)
{
	static const char text[] = HEAD "(%0: tensor<8xf32>) {\n%1 = all_reduce(%0) " ALL4
		" : tensor<8xf32>" ADD("f32") "return(%1)\n}\n}\n";
	struct tc_options o = { .partitions = 4 };
	struct tc_array args[4], *outs;
	struct err err;
	float x[8] = { 0 };
	size_t n;

	(void)state;
	for (unsigned m = 0; m < 4; m++)
		args[m] = (struct tc_array){ .elem = ELEM_F32, .rank = 1, .dim = { m == 2 ? 7 : 8 },
					     .data = x, .bytes = 32 };
	for (unsigned i = 0; i < 20; i++) {
		assert_int_equal(evaluate(text, o, args, 1, &outs, &n, &err),
				 ERR_INVALID_ARGUMENT);
		assert_non_null(strstr(err.msg, "member 2: argument 0 is tensor<7xf32>"));
	}
	o.partitions = 1u << 31;
	assert_int_equal(evaluate(text, o, args, 1, &outs, &n, &err), ERR_RESOURCE_EXHAUSTED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(moves_are_those_of_plain_loops),
		cmocka_unit_test(reductions_are_those_of_plain_loops),
		cmocka_unit_test(empty_arrays_and_scalars_meet_too),
		cmocka_unit_test(large_arrays_go_in_parts),
		cmocka_unit_test(groups_may_differ_in_size),
		cmocka_unit_test(who_is_in_no_group_of_a_broadcast_has_zeros),
		cmocka_unit_test(loops_and_branches_hold_collectives),
		cmocka_unit_test(what_is_begun_is_done),
		cmocka_unit_test(regions_see_values_around_them),
		cmocka_unit_test(narrow_sums_round_once),
		cmocka_unit_test(several_operands_are_reduced_together),
		cmocka_unit_test(only_two_forms_are_left),
		cmocka_unit_test(numbers_mean_members),
		cmocka_unit_test(numbers_of_both_kinds_are_known),
		cmocka_unit_test(replicas_and_partitions_meet_by_their_tables),
		cmocka_unit_test(hostile_attributes_are_refused),
		cmocka_unit_test(regions_that_do_more_are_refused),
		cmocka_unit_test(members_that_cannot_meet_are_told),
		cmocka_unit_test(one_that_fails_ends_all),
	};

	return cmocka_run_group_tests(tests, gang_start, gang_stop);
}
