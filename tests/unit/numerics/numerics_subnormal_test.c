/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What becomes of numbers below the smallest normal one: programs of one op, with such numbers as
 * arguments and as results, on every path of the model and by the evaluator, must give the same
 * bits. Each runs with arguments, and with constants in their place. Where a result is a normal
 * number, functions may differ by their errors (NUMERICS.md).
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/unit/numerics/numerics.h"

#define EACH 12u			/* numbers of a type */
#define PAIRS (EACH * EACH)		/* of two arguments */

/* Bits of a type: the least subnormal number, the largest one, the smallest normal number. */
static const struct format {
	enum elem elem, part;
	uint64_t normal, one;	/* the smallest normal number; 1 */
} formats[] = {
	{ ELEM_F32, ELEM_F32, 0x00800000, 0x3f800000 },
	{ ELEM_F64, ELEM_F64, (uint64_t)1 << 52, (uint64_t)0x3ff << 52 },
	{ ELEM_BF16, ELEM_BF16, 0x0080, 0x3f80 },
	{ ELEM_F16, ELEM_F16, 0x0400, 0x3c00 },
	{ ELEM_F8E5M2, ELEM_F8E5M2, 0x04, 0x3c },
	{ ELEM_F8E4M3FN, ELEM_F8E4M3FN, 0x08, 0x38 },
	{ ELEM_C64, ELEM_F32, 0x00800000, 0x3f800000 },
	{ ELEM_C128, ELEM_F64, (uint64_t)1 << 52, (uint64_t)0x3ff << 52 },
};
#define N_FORMATS (sizeof(formats) / sizeof(*formats))

static uint64_t number(const struct format *f, unsigned i)
{
	const uint64_t some[EACH / 2] = { 0, 1, f->normal / 2 + 1, f->normal - 1, f->normal,
					  f->one };

	return some[i / 2] | (i & 1 ? (uint64_t)1 << (elem_bits(f->part) - 1) : 0);
}

/* Argument k of an op: each number with each other one. */
static void fill(const struct format *f, unsigned k, char *p)
{
	unsigned bytes = elem_bytes(f->part), parts = elem_bytes(f->elem) / bytes;

	for (unsigned i = 0; i < PAIRS * parts; i++) {
		unsigned at = i / parts, which = k ? at % EACH : at / EACH;
		uint64_t x = number(f, i % parts ? (which * 5 + 7 + k) % EACH : which);

		memcpy(p + i * bytes, &x, bytes);
	}
}

/* ---- programs ---- */

/* f32, f64 and bf16, which have no subnormals; complex numbers; f16 and 8 bits, which have. */
enum { WIDE = 1, COMPLEX = 2, NARROW = 4, REAL = WIDE | NARROW, BOTH = REAL | COMPLEX };

/* NEARLY: results that are normal numbers may differ by errors. OPEN: those that are below the
 * smallest one may be zeros of their sign instead. SUMMED: zeros may have either sign. */
enum sameness { EXACT, NEARLY, OPEN, SUMMED };

/* @ is the type, @V an array of it, @P the type of a part, @0 its zero's bytes; %0 and %1 are the
 * arguments, %9 the result. */
static const struct op {
	const char *name, *lines;
	unsigned takes;
	enum sameness how;
} ops[] = {
#define ONE(name, takes, how) { name, "%9 = " name "(%0) : @V\n", takes, how }
#define TWO(name, takes, how) { name, "%9 = " name "(%0, %1) : @V\n", takes, how }
#define TO(type) { "convert to " type, "%9 = convert(%0) : tensor<144x" type ">\n", \
		   REAL, EXACT }
#define COMPARE(kind, how, takes) { "compare " kind " " how, "%9 = compare(%0, %1) " \
		   "{compare_type = <" kind ">, comparison_direction = <" how ">} : " \
		   "tensor<144xi1>\n", \
		   takes, EXACT }
#define REDUCE(op, takes, how) { "reduce " op, "%2 = reshape(%0) : tensor<12x12x@>\n" \
		   "%3 = constant() {value = dense<@0> : tensor<@>} : tensor<@>\n" \
		   "%9 = reduce(%2, %3) {dimensions = [1]} : tensor<12x@> (%4: tensor<@>, " \
		   "%5: tensor<@>) {\n%6 = " op "(%4, %5) : tensor<@>\nreturn(%6)\n}\n", \
		   takes, how }
	ONE("negate", BOTH, EXACT), ONE("abs", REAL, EXACT), ONE("sign", BOTH, NEARLY),
	{ "abs", "%9 = abs(%0) : tensor<144x@P>\n", COMPLEX, NEARLY },
	ONE("floor", REAL, EXACT), ONE("ceil", REAL, EXACT),
	ONE("round_nearest_even", REAL, EXACT), ONE("round_nearest_afz", REAL, EXACT),
	ONE("sqrt", BOTH, NEARLY), ONE("rsqrt", BOTH, NEARLY), ONE("cbrt", REAL, NEARLY),
	ONE("exponential", BOTH, NEARLY), ONE("exponential_minus_one", BOTH, NEARLY),
	ONE("log", BOTH, NEARLY), ONE("log_plus_one", BOTH, NEARLY), ONE("sine", BOTH, NEARLY),
	ONE("cosine", BOTH, NEARLY), ONE("tan", BOTH, NEARLY), ONE("tanh", BOTH, NEARLY),
	ONE("logistic", BOTH, NEARLY), ONE("tc.erf", REAL, NEARLY),
	{ "is_finite", "%9 = is_finite(%0) : tensor<144xi1>\n", REAL, EXACT },
	{ "real", "%9 = real(%0) : tensor<144x@P>\n", COMPLEX, EXACT },
	{ "imag", "%9 = imag(%0) : tensor<144x@P>\n", COMPLEX, EXACT },
	{ "reduce_precision", "%9 = reduce_precision(%0) {exponent_bits = 5, mantissa_bits = 3} "
	  ": @V\n", REAL, EXACT },
	{ "reduce_precision, same range", "%9 = reduce_precision(%0) {exponent_bits = 8, "
	  "mantissa_bits = 3} : @V\n", REAL, EXACT },
	{ "reduce_precision, less", "%9 = reduce_precision(%0) {exponent_bits = 4, mantissa_bits "
	  "= 1} : @V\n", REAL, EXACT },
	{ "reduce_precision, even", "%9 = reduce_precision(%0) {exponent_bits = 8, mantissa_bits "
	  "= 0} : @V\n", NARROW, EXACT },
	{ "reduce_precision, not", "%9 = reduce_precision(%0) {exponent_bits = 11, mantissa_bits "
	  "= 52} : @V\n", REAL, EXACT },
	TWO("add", BOTH, EXACT), TWO("subtract", BOTH, EXACT), TWO("multiply", REAL, EXACT),
	TWO("divide", BOTH, NEARLY), TWO("remainder", REAL, EXACT), TWO("maximum", BOTH, OPEN),
	TWO("minimum", BOTH, OPEN), TWO("power", REAL, NEARLY), TWO("atan2", REAL, NEARLY),
	{ "clamp", "%9 = clamp(%0, %1, %0) : @V\n", REAL, OPEN },
	{ "select", "%2 = compare(%0, %1) {compare_type = <FLOAT>, comparison_direction = <LT>} : "
	  "tensor<144xi1>\n%9 = select(%2, %0, %1) : @V\n", BOTH, EXACT },
	COMPARE("FLOAT", "EQ", BOTH), COMPARE("FLOAT", "NE", BOTH), COMPARE("FLOAT", "LT", BOTH),
	COMPARE("FLOAT", "GE", BOTH), COMPARE("TOTALORDER", "LT", REAL),
	COMPARE("TOTALORDER", "EQ", REAL),
	TO("f32"), TO("f64"), TO("bf16"), TO("f16"), TO("f8E5M2"), TO("f8E4M3FN"), TO("f8E8M0FNU"),
	{ "to f8E8M0FNU and back", "%2 = convert(%0) : tensor<144xf8E8M0FNU>\n"
	  "%9 = convert(%2) : tensor<144xf32>\n", REAL, EXACT },
	TO("i1"), TO("i32"), TO("complex<f32>"), TO("complex<f64>"),
	REDUCE("add", WIDE, EXACT), REDUCE("multiply", WIDE, EXACT),
	REDUCE("maximum", REAL, OPEN), REDUCE("minimum", REAL, OPEN),
	{ "dot_general", "%2 = reshape(%0) : tensor<144x1x@>\n%3 = reshape(%1) : tensor<144x1x@>\n"
	  "%9 = dot_general(%2, %3) {lhs_batching_dimensions = [0], rhs_batching_dimensions = "
	  "[0], lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1]} : @V\n",
	  REAL, SUMMED },
	{ "sort", "%9 = sort(%0) {dimension = 0, is_stable = true} : @V (%4: tensor<@>, %5: "
	  "tensor<@>) {\n%6 = compare(%4, %5) {compare_type = <FLOAT>, comparison_direction = "
	  "<LT>} : tensor<i1>\nreturn(%6)\n}\n", REAL, EXACT },
	{ "sort, total", "%9 = sort(%0) {dimension = 0, is_stable = true} : @V (%4: tensor<@>, %5: "
	  "tensor<@>) {\n%6 = compare(%4, %5) {compare_type = <TOTALORDER>, comparison_direction = "
	  "<LT>} : tensor<i1>\nreturn(%6)\n}\n", REAL, EXACT },
	{ "cholesky", "%2 = reshape(%0) : tensor<144x1x1x@>\n%9 = cholesky(%2) {lower = true} : "
	  "tensor<144x1x1x@>\n", WIDE, NEARLY },
	{ "batch_norm_inference", "%2 = reshape(%0) : tensor<12x12x@>\n%3 = slice(%1) "
	  "{start_indices = [0], limit_indices = [12], strides = [1]} : tensor<12x@>\n%9 = "
	  "batch_norm_inference(%2, %3, %3, %3, %3) {epsilon = dense<0x00000000> : "
	  "tensor<f32>, feature_index = 1} : tensor<12x12x@>\n", WIDE, NEARLY },
	{ "transpose", "%2 = reshape(%0) : tensor<12x12x@>\n%9 = transpose(%2) {permutation = "
	  "[1, 0]} : tensor<12x12x@>\n", BOTH, EXACT },
	{ "reverse", "%9 = reverse(%0) {dimensions = [0]} : @V\n", BOTH, EXACT },
	{ "concatenate", "%9 = concatenate(%0, %1) {dimension = 0} : tensor<288x@>\n",
	  BOTH, EXACT },
};
#define N_OPS (sizeof(ops) / sizeof(*ops))

/* Puts the types in. */
static void expand(char *to, size_t room, const char *from, const struct format *f)
{
	size_t n = strlen(to);

	for (; *from && n + 300 < room; from++) {
		if (*from != '@') {
			to[n++] = *from;
			continue;
		}
		from++;
		switch (*from) {
		case 'V':
			n += (size_t)sprintf(to + n, "tensor<%ux%s>", PAIRS, elem_text(f->elem));
			break;
		case 'P':
			n += (size_t)sprintf(to + n, "%s", elem_text(f->part));
			break;
		case '0':
			n += (size_t)sprintf(to + n, "0x%0*u", 2 * (int)elem_bytes(f->elem), 0);
			break;
		default:
			n += (size_t)sprintf(to + n, "%s", elem_text(f->elem));
			from--;
		}
	}
	to[n] = '\0';
}

static void program(char *text, size_t room, const struct op *op, const struct format *f,
		    bool is_constant)
{
	static char in[PAIRS * 16];
	size_t bytes = PAIRS * elem_bytes(f->elem), n;

	snprintf(text, room, "module() () {\nfunc() {sym_name = \"main\"} (");
	if (!is_constant)
		expand(text, room, "%0: @V, %1: @V", f);
	strcat(text, ") {\n");
	for (unsigned k = 0; is_constant && k < 2; k++) {
		fill(f, k, in);
		n = strlen(text);
		n += (size_t)sprintf(text + n, "%%%u = constant() {value = dense<0x", k);
		for (size_t i = 0; i < bytes; i++)
			n += (size_t)sprintf(text + n, "%02x", (unsigned char)in[i]);
		expand(text, room, "> : @V} : @V\n", f);
	}
	expand(text, room, op->lines, f);
	strcat(text, "return(%9)\n}\n}\n");
}

/* ---- what must be the same ---- */

static double value(unsigned part, const char *p)
{
	uint32_t raw = 0;
	double x;
	float narrow;

	if (part == ELEM_F64) {
		memcpy(&x, p, sizeof(x));
		return x;
	}
	memcpy((char *)&raw + (part == ELEM_BF16 ? 2 : 0), p, elem_bytes(part));
	memcpy(&narrow, &raw, sizeof(narrow));
	return narrow;
}

static bool is_nan(unsigned elem, const char *p)
{
	uint64_t u = 0;

	memcpy(&u, p, elem_bytes(elem));
	switch (elem) {
	case ELEM_F32: return (u & INT32_MAX) > 0x7f800000;
	case ELEM_F64: return (u & INT64_MAX) > (uint64_t)0x7ff << 52;
	case ELEM_BF16: return (u & 0x7fff) > 0x7f80;
	case ELEM_F16: return (u & 0x7fff) > 0x7c00;
	case ELEM_F8E5M2: return (u & 0x7f) > 0x7c;
	case ELEM_F8E4M3FN: return (u & 0x7f) == 0x7f;
	default: return false;
	}
}

/* Of a real number or a part. NaN is as good as any other. */
static bool is_same(unsigned part, const char *got, const char *want, enum sameness how)
{
	double unit = part == ELEM_F64 ? 0x1p-52 : 0x1p-23, least, a, b;

	if (!memcmp(got, want, elem_bytes(part)) || (is_nan(part, got) && is_nan(part, want)))
		return true;
	if (how == EXACT || (part != ELEM_F32 && part != ELEM_F64 && part != ELEM_BF16))
		return false;
	least = part == ELEM_F64 ? 0x1p-1022 : 0x1p-126;
	a = value(part, got);
	b = value(part, want);
	if (how == SUMMED)
		return a == 0 && b == 0;
	if (how == OPEN)
		return fabs(a) < least && fabs(b) < least && !signbit(a) == !signbit(b);
	return fabs(a) >= least && fabs(b) >= least && fabs(a - b) <= 4 * unit * fabs(b);
}

static void compare_all(const struct op *op, const struct tc_array *want, const char *got,
			const char *text)
{
	unsigned part = want->elem == ELEM_C64 ? ELEM_F32 : want->elem == ELEM_C128 ? ELEM_F64 :
			want->elem, bytes = elem_bytes(part);

	for (size_t i = 0; i < want->bytes / bytes; i++) {
		const char *a = got + i * bytes, *b = (const char *)want->data + i * bytes;
		uint64_t x = 0, y = 0;

		memcpy(&x, a, bytes);
		memcpy(&y, b, bytes);
		if (!is_same(part, a, b, op->how))
			fail_msg("%s: number %zu is 0x%llx, evaluated 0x%llx\n%.3000s", op->name, i,
				 (unsigned long long)x, (unsigned long long)y, text);
	}
}

/* ---- runs ---- */

static void run(struct rt_client *c, const char *text, const struct tc_array *args, size_t n_args,
		size_t bytes, char *out)
{
	struct rt_buffer *in[2], *result;
	struct rt_event *done;
	struct rt_exe *x;
	struct err err;

	if (rt_compile(c, text, strlen(text), "mlir", NULL, 0, &x, &err))
		fail_msg("%s\n%.3000s", err.msg, text);
	for (size_t k = 0; k < n_args; k++) {
		struct rt_shape shape = { .elem = (enum elem)args[k].elem, .rank = 1,
					  .dim = { PAIRS } };

		if (rt_buffer_from_host(c, 0, RT_DEVICE, &shape, args[k].data, NULL, &in[k], &err))
			fail_msg("%s", err.msg);
	}
	if (rt_execute(x, in, n_args, NULL, &result, &done, &err) || rt_event_wait(done, &err))
		fail_msg("%s", err.msg);
	rt_event_unref(done);
	if (rt_buffer_to_host(result, 0, out, bytes, &done, &err) || rt_event_wait(done, &err))
		fail_msg("%s", err.msg);
	rt_event_unref(done);
	rt_buffer_unref(result);
	for (size_t k = 0; k < n_args; k++)
		rt_buffer_unref(in[k]);
	rt_exe_unref(x);
}

static void check(const struct op *op, const struct format *f, bool is_constant)
{
	static char text[1 << 17], in[2][PAIRS * 16], out[PAIRS * 32];
	struct tc_array args[2] = { { 0 } }, *want;
	size_t n, n_args = is_constant ? 0 : 2;
	struct err err;

	program(text, sizeof(text), op, f, is_constant);
	for (unsigned k = 0; k < 2; k++) {
		fill(f, k, in[k]);
		args[k] = (struct tc_array){ .elem = f->elem, .rank = 1, .dim = { PAIRS },
					     .bytes = PAIRS * elem_bytes(f->elem),
					     .data = in[k] };
	}
	if (tc_eval(&(struct tc_source){ text, strlen(text), "mlir" }, args, n_args, &want, &n,
		    &err))
		fail_msg("%s\n%.3000s", err.msg, text);
	assert_true(want->bytes <= sizeof(out));
	for (unsigned p = 0; p < MEASURE_PATHS; p++) {
		if (!measure_client[p])
			continue;
		run(measure_client[p], text, args, n_args, want->bytes, out);
		compare_all(op, want, out, text);
	}
	tc_array_free(want, n);
}

static void evaluator_and_device_say_the_same(void **state)
{
	(void)state;
	for (size_t o = 0; o < N_OPS; o++)
		for (size_t t = 0; t < N_FORMATS; t++) {
			const struct format *f = &formats[t];
			unsigned kind = f->elem != f->part ? COMPLEX :
					elem_bits(f->elem) == 8 || f->elem == ELEM_F16 ? NARROW :
					WIDE;

			if (!(ops[o].takes & kind))
				continue;
			check(&ops[o], f, false);
			check(&ops[o], f, true);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(evaluator_and_device_say_the_same),
	};

	return cmocka_run_group_tests(tests, measure_start, measure_stop);
}
