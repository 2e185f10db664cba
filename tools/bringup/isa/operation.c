/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Vector operations: each by itself in a VEC, of every type that uop.def lets it have, on as many
 * elements as make a part of a tile, a tile, and several; those of rows on short and long rows.
 */
#include <complex.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tools/bringup/isa/bench.h"
#include "tools/bringup/isa/data.h"
#include "tools/bringup/isa/isa.h"

static const struct operation {
	bool is_known;
	enum isa_rule of_real, of_complex;
	const char *lines;
} operations[256] = {
#define OPERATION(name, real, pair, lines) [UOP_##name] = { \
	true, ISA_##real, ISA_##pair, lines },
#include "tools/bringup/isa/ir.def"
};

static const struct row {
	const char *op;
	enum isa_rule rule;
	enum isa_number identity;
} rows[256] = {
#define ROW(name, rule, identity, op) [UOP_##name] = { op, ISA_##rule, ISA_##identity },
#include "tools/bringup/isa/ir.def"
};

/* How many elements. Conversions, of which there are many, and what only moves leave the last
 * out. */
static const size_t sizes[] = { 1, 16, 17, 64, 65, 1023, 2049, 8193 };

/* An operation as it is tried: its types, and of how many elements at most. */
struct trial {
	struct bringup *b;
	struct isa_uop uop;
	enum elem result;
	size_t most;
	char name[56];
	int64_t number;		/* of SREG: what the register holds */
};

static enum elem type_of(const struct trial *t, unsigned arg)
{
	return t->uop.op == UOP_SELECT && !arg ? ELEM_PRED : (enum elem)t->uop.elem;
}

static void put_vec(struct isa_bench *bench, const struct trial *t, const uint64_t *in,
		    unsigned n_in, uint64_t out, size_t n)
{
	struct isa_tensor head = { .insn.op = ISA_VEC, .body = { .rank = 1, .n_in = (uint8_t)n_in,
		.n_out = 1, .n_uop = 1, .dim = { (int64_t)n, 1, 1, 1, 1, 1, 1, 1 } } };
	struct isa_operand op[4];
	struct isa_uop u = t->uop;

	for (unsigned i = 0; i < n_in; i++)
		op[i] = ISA_AT(type_of(t, i), in[i], elem_bytes(type_of(t, i)));
	op[n_in] = ISA_AT(t->result, out, elem_bytes(t->result));
	op[n_in].value = (uint8_t)n_in;
	u.b = n_in > 1;
	u.c = n_in > 2 ? 2 : 0;
	isa_put(bench, &head, sizeof(head), op, n_in + 1, &u, 1);
}

static double complex complex_atan2(double complex y, double complex x)
{
	double complex z = clog((x + CMPLX(0, 1) * y) / csqrt(x * x + y * y));

	return CMPLX(cimag(z), -creal(z));
}

static bool has_lines(const struct trial *t)
{
	return operations[t->uop.op].lines &&
		(t->uop.op != UOP_ATAN2 || elem_class(t->uop.elem) == ELEM_CLASS_FLOAT);
}

/* What no op of the IR says, in plain C. */
static void *compute(const struct trial *t, const struct tc_array *a)
{
	const void *x = a[0].data, *y = a[1].data, *z = a[2].data;
	void *out = bringup_room(t->b, t->most * elem_bytes(t->result));

	if (t->uop.op != UOP_FMA && t->uop.op != UOP_ATAN2) {
		err_set(&t->b->err, ERR_INTERNAL, "%s: nobody knows what it gives", t->name);
		return NULL;
	}
	for (size_t i = 0; out && i < t->most; i++) {
		switch (t->uop.elem) {
		case ELEM_F32:
			((float *)out)[i] = fmaf(((const float *)x)[i], ((const float *)y)[i],
						 ((const float *)z)[i]);
			break;
		case ELEM_F64:
			((double *)out)[i] = fma(((const double *)x)[i], ((const double *)y)[i],
						 ((const double *)z)[i]);
			break;
		case ELEM_C64:
			((float complex *)out)[i] = (float complex)
				complex_atan2(((const float complex *)x)[i],
					      ((const float complex *)y)[i]);
			break;
		default:
			((double complex *)out)[i] =
				complex_atan2(((const double complex *)x)[i],
					      ((const double complex *)y)[i]);
		}
	}
	return out;
}

static enum bringup_result run(const struct trial *t, const struct tc_array *args, unsigned n_args,
			       unsigned n_in)
{
	const struct operation *o = &operations[t->uop.op];
	struct isa_bench *bench = isa_bench(t->b);
	struct tc_array result = isa_array(t->result, NULL, t->most, 0);
	enum isa_rule rule = elem_class(t->uop.elem) == ELEM_CLASS_COMPLEX ? o->of_complex :
								     o->of_real;
	enum bringup_result r;
	uint64_t in[3], out;
	const void *want;

	NEED(t->b, bench);
	want = has_lines(t) ? isa_evaluate(t->b, o->lines, args, n_args, &result) :
			      compute(t, args);
	if (!want)
		return bringup_fail(t->b, "%s: %.500s", t->name, t->b->err.msg);
	for (unsigned i = 0; i < n_in; i++)
		in[i] = isa_in(bench, args[i].data, args[i].bytes);
	if (t->uop.op == UOP_SREG)
		isa_put_scalar(bench, ISA_LI, (struct isa_scalar){ .rd = t->uop.aux,
							       .imm = t->number });
	for (unsigned i = 0; i < COUNT(sizes) && sizes[i] <= t->most; i++) {
		out = isa_out(bench, t->result, want, sizes[i], rule, "%s", t->name);
		put_vec(bench, t, in, n_in, out, sizes[i]);
	}
	r = isa_run(bench);
	bringup_give_back(t->b);
	return r;
}

/* ---- what comes in ---- */

/* A source of one number: some of its type, one after the other. */
static enum bringup_result sources(struct trial *t)
{
	static const int64_t numbers[] = { 0, 1, -1, 1000003, INT64_MIN, 0x7ff0123456789abc };

	for (unsigned k = 0; k < COUNT(numbers); k++) {
		unsigned bytes = elem_bytes(t->uop.elem);
		struct tc_array a = isa_array(ELEM_S64, &t->number, 0, 0);
		uint8_t element[16] = { 0 };

		t->number = numbers[k];
		if (t->uop.op == UOP_IMM) {
			isa_fill((enum elem)t->uop.elem, element, 1, ISA_EVERYDAY, k);
			memcpy(&t->uop.imm, element, bytes < 8 ? bytes : 8);
			a = isa_array((enum elem)t->uop.elem, element, 0, 0);
		}
		STEP_TRY(run(t, &a, t->uop.op != UOP_IOTA, 0));
	}
	return BRINGUP_PASS;
}

static enum isa_data data_of(const struct trial *t, unsigned arg)
{
	const struct operation *o = &operations[t->uop.op];

	if (elem_class(t->uop.elem) == ELEM_CLASS_COMPLEX && o->of_complex >= ISA_NEAR)
		return ISA_EVERYDAY;
	if (elem_class(t->uop.elem) == ELEM_CLASS_COMPLEX && t->uop.op != UOP_SELECT)
		return ISA_WHOLE;
	return arg ? ISA_COUNTS : ISA_ANY;
}

static enum bringup_result with_arguments(struct trial *t, unsigned n)
{
	struct tc_array args[3] = { { 0 } };

	for (unsigned i = 0; i < n; i++) {
		enum elem e = type_of(t, i);
		void *data = bringup_room(t->b, t->most * elem_bytes(e));

		NEED(t->b, data);
		isa_fill(e, data, t->most, data_of(t, i), i);
		args[i] = isa_array(e, data, t->most, 0);
	}
	return run(t, args, n, n);
}

static enum bringup_result typed(struct bringup *b, struct isa_uop u)
{
	const struct isa_uop_info *info = isa_uop_info(u.op);
	bool is_move = u.op == UOP_CVT || u.op == UOP_SELECT || u.op == UOP_BITCAST;
	struct trial t = { .b = b, .uop = u, .result = isa_uop_result(&u),
			   .most = is_move ? 2049 : 8193 };

	snprintf(t.name, sizeof(t.name), "%s of %s%s%s", info->mnemonic, elem_text(u.elem),
		 u.to ? " to " : "", u.to ? elem_text(u.to) : "");
	return info->n_args ? with_arguments(&t, info->n_args) : sources(&t);
}

/* Which types an operation may give of `elem`, where it says so itself. */
static bool may_give(unsigned uop, unsigned elem, unsigned to)
{
	if (!elem_valid(to) || !elem_bytes(to))
		return false;
	switch (uop) {
	case UOP_COMPLEX: return to == (elem == ELEM_F32 ? ELEM_C64 : ELEM_C128);
	case UOP_BITCAST: return elem_bytes(to) == elem_bytes(elem) &&
				 elem_bits(to) == elem_bits(elem) && to != ELEM_PRED;
	default: return true;
	}
}

static enum bringup_result of_all_types(struct bringup *b, unsigned uop)
{
	bool has_to = isa_uop_info(uop)->result == 'T';

	for (unsigned e = 1; e < ELEM_COUNT; e++)
		for (unsigned to = has_to; to < (has_to ? ELEM_COUNT : 1); to++) {
			struct isa_uop u = { .op = (uint8_t)uop, .elem = (uint8_t)e,
					     .to = (uint8_t)to };

			if ((has_to && !may_give(uop, e, to)) || !isa_uop_result(&u) ||
			    (uop == UOP_IMM && e == ELEM_C128))
				continue;
			if (uop == UOP_RDPREC) {
				u.aux = 5;
				u.imm = 10;
			}
			if (uop == UOP_SREG)
				u.aux = 7;
			STEP_TRY(typed(b, u));
		}
	return BRINGUP_PASS;
}

/* ---- rows ---- */

static const struct { size_t n, length; } lengths[] = {
	{ 1, 1 }, { 3, 64 }, { 5, 65 }, { 2, 1023 }, { 70, 17 }, { 1, ISA_MAX_ROW },
};

static enum bringup_result fold(struct bringup *b, struct isa_bench *t, struct isa_uop u,
				size_t n, size_t length)
{
	const struct row *row = &rows[u.op];
	enum elem e = (enum elem)u.elem;
	unsigned bytes = elem_bytes(e);
	struct isa_tensor head = { .insn.op = ISA_VEC, .body = { .rank = 2, .row_rank = 1,
		.n_in = 1, .n_out = 1, .n_uop = 1,
		.dim = { (int64_t)n, (int64_t)length, 1, 1, 1, 1, 1, 1 } } };
	struct isa_lines lines = isa_fold(row->op, 1);
	struct tc_array args[2], result = isa_array(e, NULL, n, 0);
	void *data = bringup_room(b, n * length * bytes), *want;
	struct isa_operand op[2];
	uint8_t identity[16];

	NEED(b, data);
	/* Of any numbers the least is mostly NaN. */
	isa_fill(e, data, n * length, u.op == UOP_RADD ? ISA_WHOLE : u.op == UOP_RMUL ? ISA_UNITS :
		 length & 1 ? ISA_ANY : ISA_EVERYDAY, length);
	isa_number(e, identity, row->identity);
	args[0] = isa_array(e, data, n, length);
	args[1] = isa_array(e, identity, 0, 0);
	want = isa_evaluate(b, lines.at, args, 2, &result);
	NEED(b, want);
	op[0] = ISA_AT(e, isa_in(t, data, n * length * bytes), (int64_t)(length * bytes), bytes);
	op[1] = ISA_AT(e, isa_out(t, e, want, n, row->rule, "%s of %s, rows of %zu",
				  isa_uop_info(u.op)->mnemonic, elem_text(e), length), bytes);
	op[1].value = 1;
	isa_put(t, &head, sizeof(head), op, 2, &u, 1);
	return BRINGUP_PASS;
}

static enum bringup_result of_rows(struct bringup *b, unsigned uop)
{
	for (unsigned e = 1; e < ELEM_COUNT; e++) {
		struct isa_uop u = { .op = (uint8_t)uop, .elem = (uint8_t)e };
		struct isa_bench *t;

		if (!isa_uop_result(&u))
			continue;
		t = isa_bench(b);
		NEED(b, t);
		for (unsigned i = 0; i < COUNT(lengths); i++)
			STEP_TRY(fold(b, t, u, lengths[i].n, lengths[i].length));
		STEP_TRY(isa_run(t));
		bringup_give_back(b);
	}
	return BRINGUP_PASS;
}

/* ---- the door ---- */

bool isa_has_operation(unsigned uop)
{
	return uop < 256 && (operations[uop].is_known || rows[uop].op);
}

enum bringup_result isa_test_operation(struct bringup *b, unsigned uop)
{
	if (!isa_has_operation(uop))
		return bringup_skip(b, "%s: ir.def has no line of it", isa_uop_info(uop)->mnemonic);
	return rows[uop].op ? of_rows(b, uop) : of_all_types(b, uop);
}
