/* SPDX-License-Identifier: Apache-2.0 */
/*
 * FFT: of lines along each of up to three dims, against the evaluator's sums; of lines that are too
 * long for those, of few points that are not zero, in plain C.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tools/bringup/isa/bench.h"
#include "tools/bringup/isa/data.h"
#include "tools/bringup/isa/isa.h"

enum form { FORWARD, INVERSE, FROM_REAL, TO_REAL, FORMS };

static const char *const types[FORMS] = {
	[FORWARD] = "FFT", [INVERSE] = "IFFT", [FROM_REAL] = "RFFT", [TO_REAL] = "IRFFT",
};

/* Lines of n points: the axis is the middle one of three dims. */
struct lines { int64_t outer, n, inner; };

/* One instruction and what it works on. */
struct transform {
	enum form form;
	enum elem src, dst;
	struct lines lines;
	double scale;
	bool is_in_place;
};

static bool is_inverse(enum form form)
{
	return form == INVERSE || form == TO_REAL;
}

/* How far off rounding may lead, in units of the root mean square of the results. */
static double units_of(int64_t n)
{
	return 8 * log2(2.0 * (double)n);
}

static struct tc_array array3(enum elem e, void *data, int64_t outer, int64_t n, int64_t inner)
{
	return (struct tc_array){ .elem = (uint8_t)e, .rank = 3, .dim = { outer, n, inner },
		.data = data, .bytes = (size_t)(outer * n * inner) * elem_bytes(e) };
}

/* The instruction; dims of one element are left out. */
static struct isa_fft fft_of(const struct transform *f)
{
	const struct lines *l = &f->lines;
	struct isa_fft head = { .insn = { .op = ISA_FFT,
		.flags = is_inverse(f->form) ? ISA_FLAG_INVERSE : 0 }, .scale = f->scale,
		.dim = { 1, 1, 1, 1, 1, 1, 1, 1 } };

	if (l->outer > 1)
		head.dim[head.rank++] = l->outer;
	head.axis = head.rank;
	head.dim[head.rank++] = l->n;
	if (l->inner > 1)
		head.dim[head.rank++] = l->inner;
	return head;
}

/* An operand of it that has `count` elements along the axis, in row-major order. */
static struct isa_operand operand(const struct isa_fft *head, const struct lines *l, enum elem e,
				  int64_t count, uint64_t at)
{
	struct isa_operand o = ISA_AT(e, at, 0);
	int64_t bytes = elem_bytes(e);

	if (head->axis)
		o.stride[0] = count * l->inner * bytes;
	o.stride[head->axis] = l->inner * bytes;
	if (l->inner > 1)
		o.stride[head->axis + 1] = bytes;
	return o;
}

/* Runs it on x, where it should give `want`. */
static enum bringup_result run(struct bringup *b, const struct transform *f, const void *x,
			       const void *want)
{
	struct isa_bench *t = isa_bench(b);
	const struct lines *l = &f->lines;
	struct isa_fft head = fft_of(f);
	uint64_t from, to;
	int64_t in, out;
	size_t n_in, n_out;
	char name[56];

	NEED(b, t);
	head.src.elem = (uint8_t)f->src;
	head.dst.elem = (uint8_t)f->dst;
	isa_fft_counts(&head, &in, &out);
	n_in = (size_t)(l->outer * in * l->inner);
	n_out = (size_t)(l->outer * out * l->inner);
	snprintf(name, sizeof(name), "fft%s of %s to %s, %dx%dx%d", is_inverse(f->form) ?
		 " inverse" : "", elem_text(f->src), elem_text(f->dst), (int)l->outer, (int)l->n,
		 (int)l->inner);
	if (f->is_in_place) {
		from = to = isa_inout(t, f->dst, x, want, n_out, ISA_WITHIN, "%s", name);
	} else {
		from = isa_in(t, x, n_in * elem_bytes(f->src));
		to = isa_out(t, f->dst, want, n_out, ISA_WITHIN, "%s", name);
	}
	isa_within(t, units_of(l->n));
	head.src = operand(&head, l, f->src, in, from);
	head.dst = operand(&head, l, f->dst, out, to);
	isa_put(t, &head, sizeof(head), NULL, 0, NULL, 0);
	return isa_run(t);
}

/* ---- against the evaluator ---- */

/* n numbers that are `x`. */
static void *all(struct bringup *b, enum elem e, size_t n, double x)
{
	bool is_narrow = e == ELEM_F32 || e == ELEM_C64;
	size_t step = elem_bytes(e) / (is_narrow ? sizeof(float) : sizeof(double));
	void *to = bringup_room(b, n * elem_bytes(e));

	for (size_t i = 0; to && i < n; i++) {
		if (is_narrow)
			((float *)to)[i * step] = (float)x;
		else
			((double *)to)[i * step] = x;
	}
	return to;
}

/* The evaluator's transform is along the last dim, and its inverse has a scale of its own. */
static const void *evaluated(struct bringup *b, const struct transform *f,
			     const struct tc_array *from, const struct tc_array *to)
{
	static const char turn[] = "{permutation = [0, 2, 1]}";
	double scale = f->scale * (is_inverse(f->form) ? (double)f->lines.n : 1);
	struct tc_array args[2] = { *from, *to };
	long long outer = from->dim[0], inner = from->dim[2];
	char lines[512];

	args[1].data = all(b, f->dst, to->bytes / elem_bytes(f->dst), scale);
	if (!args[1].data)
		return NULL;
	snprintf(lines, sizeof(lines), "%%6 = transpose(%%0) %s : tensor<%lldx%lldx%lldx%s>\n"
		 "%%7 = fft(%%6) {fft_type = <%s>, fft_length = [%lld]} : "
		 "tensor<%lldx%lldx%lldx%s>\n%%8 = transpose(%%7) %s : @R\n"
		 "%%9 = multiply(%%8, %%1) : @R", turn, outer, inner, (long long)from->dim[1],
		 elem_text(f->src), types[f->form], (long long)f->lines.n, outer, inner,
		 (long long)to->dim[1], elem_text(f->dst), turn);
	return isa_evaluate(b, lines, args, 2, to);
}

/* What does not count may be anything: the imaginary parts that a real line's transform has not. */
static void spoil(const struct transform *f, const struct tc_array *from)
{
	const struct lines *l = &f->lines;
	size_t part = elem_bytes(f->src) / 2;

	for (int64_t i = 0; i < l->outer * l->inner; i++)
		for (int64_t k = 0; k < 2 - l->n % 2; k++) {
			int64_t at = i / l->inner * from->dim[1] + k * (l->n / 2);

			at = at * l->inner + i % l->inner;
			isa_number(f->dst, (char *)from->data + (2 * (size_t)at + 1) * part,
				   ISA_LARGEST);
		}
}

static enum bringup_result transformed(struct bringup *b, const struct transform *f)
{
	const struct lines *l = &f->lines;
	int64_t half = l->n / 2 + 1;
	struct tc_array from = array3(f->src, NULL, l->outer, f->form == TO_REAL ? half : l->n,
				      l->inner);
	struct tc_array to = array3(f->dst, NULL, l->outer, f->form == FROM_REAL ? half : l->n,
				    l->inner);
	const void *want;

	from.data = bringup_room(b, from.bytes);
	NEED(b, from.data);
	isa_fill(f->src, from.data, from.bytes / elem_bytes(f->src), ISA_EVERYDAY, 14);
	if (f->form == TO_REAL)
		spoil(f, &from);
	want = evaluated(b, f, &from, &to);
	NEED(b, want);
	STEP_TRY(run(b, f, from.data, want));
	bringup_give_back(b);
	return BRINGUP_PASS;
}

/* ---- long lines ---- */

static void put(enum elem e, void *to, int64_t i, double re, double im)
{
	if (e == ELEM_C64) {
		((float *)to)[2 * i] = (float)re;
		((float *)to)[2 * i + 1] = (float)im;
	} else {
		((double *)to)[2 * i] = re;
		((double *)to)[2 * i + 1] = im;
	}
}

/* One line, of zeros but for the points m * m * 997 + 1 of it, which are m + 1. */
static enum bringup_result sparse(struct bringup *b, enum form form, enum elem e, int64_t n)
{
	enum { POINTS = 6 };
	struct transform f = { form, e, e, { 1, n, 1 }, 0.5, true };
	void *x = bringup_room(b, (size_t)n * elem_bytes(e));
	void *want = bringup_room(b, (size_t)n * elem_bytes(e));
	double turn = (is_inverse(form) ? 2 : -2) * acos(-1) / (double)n;

	NEED(b, x && want ? x : NULL);
	memset(x, 0, (size_t)n * elem_bytes(e));
	for (int64_t m = 0; m < POINTS; m++)
		put(e, x, (m * m * 997 + 1) % n, (double)m + 1, 0);
	for (int64_t k = 0; k < n; k++) {
		double re = 0, im = 0;

		for (int64_t m = 0; m < POINTS; m++) {
			double angle = turn * (double)((m * m * 997 + 1) % n * k % n);

			re += ((double)m + 1) * cos(angle);
			im += ((double)m + 1) * sin(angle);
		}
		put(e, want, k, f.scale * re, f.scale * im);
	}
	STEP_TRY(run(b, &f, x, want));
	bringup_give_back(b);
	return BRINGUP_PASS;
}

/* ---- all of them ---- */

enum bringup_result isa_cases_fft(struct bringup *b)
{
	static const struct lines shapes[] = {
		{ 1, 1, 1 }, { 3, 1, 5 }, { 1, 2, 1 }, { 17, 2, 1 }, { 2, 3, 3 }, { 1, 4, 17 },
		{ 17, 5, 1 }, { 1, 7, 17 }, { 3, 12, 1 }, { 2, 16, 5 }, { 1, 61, 3 },
		{ 17, 61, 1 }, { 1, 64, 1 }, { 3, 64, 17 }, { 1, 122, 3 }, { 17, 128, 1 },
		{ 3, 360, 1 }, { 1, 360, 17 }, { 2, 1001, 1 }, { 17, 256, 3 }, { 1, 1024, 3 },
		{ 1, 2048, 1 }, { 1, 2310, 1 },
	};
	static const struct { enum elem real, complex; } pairs[] = {
		{ ELEM_F32, ELEM_C64 }, { ELEM_F64, ELEM_C128 },
	};
	static const int64_t lengths[] = { 4096, 30030, 65536, 16 * 61 * 61 };

	for (unsigned i = 0; i < COUNT(shapes); i++)
		for (unsigned k = 0; k < COUNT(pairs) * FORMS; k++) {
			struct transform f = { .form = k % FORMS, .lines = shapes[i],
				.src = pairs[k / FORMS].complex, .dst = pairs[k / FORMS].complex };

			f.scale = i % 3 == 0 ? 1 : i % 3 == 1 ? 1 / (double)shapes[i].n : -0.3;
			if (f.form == FROM_REAL)
				f.src = pairs[k / FORMS].real;
			else if (f.form == TO_REAL)
				f.dst = pairs[k / FORMS].real;
			f.is_in_place = f.src == f.dst && i & 1;
			STEP_TRY(transformed(b, &f));
		}
	for (unsigned i = 0; i < COUNT(lengths); i++)
		for (unsigned k = 0; k < COUNT(pairs) * 2; k++)
			STEP_TRY(sparse(b, k & 1 ? INVERSE : FORWARD, pairs[k / 2].complex,
					lengths[i]));
	return BRINGUP_PASS;
}
