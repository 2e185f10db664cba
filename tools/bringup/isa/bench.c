/* SPDX-License-Identifier: Apache-2.0 */
/* A program, its memory, what the memory should hold afterwards, and looking. */
#include "tools/bringup/isa/bench.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { MOST_CODE = 96 << 10, MOST_BYTES = 2 << 20, MOST_OUTS = 256, LINE = 64 };

struct out {
	uint64_t at;
	size_t n;
	enum elem elem;
	enum isa_rule rule;
	double bound;		/* of ISA_WITHIN */
	char name[56];
};

struct isa_bench {
	struct bringup *b;
	uint8_t *now, *want, *got;	/* MOST_BYTES each */
	size_t bytes, n_code;
	struct out outs[MOST_OUTS];
	unsigned n_outs;
	bool is_full;
	_Alignas(8) uint8_t code[MOST_CODE];
};

struct isa_bench *isa_bench(struct bringup *b)
{
	struct isa_bench *t = bringup_room(b, sizeof(*t));

	if (!t)
		return NULL;
	t->b = b;
	t->now = bringup_room(b, MOST_BYTES);
	t->want = bringup_room(b, MOST_BYTES);
	t->got = bringup_room(b, MOST_BYTES);
	t->bytes = LINE;
	return t->now && t->want && t->got ? t : NULL;
}

static bool has_room(struct isa_bench *t, size_t n)
{
	if (n > MOST_BYTES - 2 * LINE - t->bytes)
		t->is_full = true;
	return !t->is_full;
}

/* A line of the memory's own lies between any two places. */
static uint64_t place(struct isa_bench *t, const void *now, const void *want, size_t n)
{
	uint64_t at = t->bytes;

	if (!has_room(t, n))
		return 0;
	if (now)
		memcpy(t->now + at, now, n);
	else
		memset(t->now + at, 0xa5, n);
	memcpy(t->want + at, want, n);
	t->bytes = (at + n + 2 * LINE - 1) / LINE * LINE;
	return at;
}

uint64_t isa_in(struct isa_bench *t, const void *bytes, size_t n)
{
	return place(t, bytes, bytes, n);
}

static uint64_t out(struct isa_bench *t, struct out o, const void *now, const void *want,
		    const char *format, va_list ap)
{
	if (t->n_outs == MOST_OUTS) {
		t->is_full = true;
		return 0;
	}
	vsnprintf(o.name, sizeof(o.name), format, ap);
	o.at = place(t, now, want, o.n * elem_bytes(o.elem));
	t->outs[t->n_outs++] = o;
	return o.at;
}

uint64_t isa_out(struct isa_bench *t, enum elem e, const void *want, size_t n,
		 enum isa_rule rule, const char *format, ...)
{
	uint64_t at;
	va_list ap;

	va_start(ap, format);
	at = out(t, (struct out){ .n = n, .elem = e, .rule = rule }, NULL, want, format, ap);
	va_end(ap);
	return at;
}

uint64_t isa_inout(struct isa_bench *t, enum elem e, const void *now, const void *want, size_t n,
		   enum isa_rule rule, const char *format, ...)
{
	uint64_t at;
	va_list ap;

	va_start(ap, format);
	at = out(t, (struct out){ .n = n, .elem = e, .rule = rule }, now, want, format, ap);
	va_end(ap);
	return at;
}

static void append(struct isa_bench *t, const void *part, size_t n)
{
	if (n > MOST_CODE - t->n_code)
		t->is_full = true;
	if (t->is_full)
		return;
	memcpy(t->code + t->n_code, part, n);
	t->n_code += n;
}

void isa_put(struct isa_bench *t, const void *head, size_t bytes, const struct isa_operand *op,
	     unsigned n_op, const struct isa_uop *uop, unsigned n_uop)
{
	size_t at = t->n_code;
	uint32_t length;

	append(t, head, bytes);
	if (n_op)
		append(t, op, n_op * sizeof(*op));
	if (n_uop)
		append(t, uop, n_uop * sizeof(*uop));
	length = (uint32_t)(t->n_code - at);
	if (!t->is_full)
		memcpy(t->code + at + offsetof(struct isa_insn, bytes), &length, sizeof(length));
}

void isa_put_scalar(struct isa_bench *t, unsigned op, struct isa_scalar s)
{
	s.insn.op = (uint16_t)op;
	isa_put(t, &s, sizeof(s), NULL, 0, NULL, 0);
}

/* ---- looking ---- */

/* A float in two forms: the number, and a place in the order of all numbers of its type. */
struct real {
	double x;
	int64_t place;
	bool is_tiny;
};

static struct real real_of(const void *p, unsigned bytes)
{
	struct real r;
	int32_t i;
	float f;

	if (bytes == 4) {
		memcpy(&f, p, 4);
		memcpy(&i, p, 4);
		r.x = f;
		r.place = i < 0 ? -(int64_t)(i & INT32_MAX) : i;
		r.is_tiny = fabsf(f) <= 0x1p-126f;
	} else {
		memcpy(&r.x, p, 8);
		memcpy(&r.place, p, 8);
		r.place = r.place < 0 ? -(r.place & INT64_MAX) : r.place;
		r.is_tiny = fabs(r.x) <= 0x1p-1022;
	}
	return r;
}

void isa_within(struct isa_bench *t, double units)
{
	struct out *o = &t->outs[t->n_outs - (t->n_outs > 0)];
	bool is_complex = elem_class(o->elem) == ELEM_CLASS_COMPLEX;
	unsigned bytes = elem_bytes(o->elem) / (is_complex ? 2 : 1);
	double sum = 0;

	if (t->is_full || !o->n)
		return;
	for (size_t i = 0; i < o->n * (is_complex ? 2 : 1); i++) {
		double x = real_of(t->want + o->at + i * bytes, bytes).x;

		sum += x * x;
	}
	o->bound = units * (bytes == 4 ? 0x1p-23 : 0x1p-52) * sqrt(sum / (double)o->n);
}

/* How far one element is from the other. */
static double distance(enum elem e, const void *got, const void *want)
{
	unsigned bytes = elem_bytes(e);

	if (elem_class(e) != ELEM_CLASS_COMPLEX)
		return fabs(real_of(got, bytes).x - real_of(want, bytes).x);
	bytes /= 2;
	return hypot(real_of(got, bytes).x - real_of(want, bytes).x,
		     real_of((const char *)got + bytes, bytes).x -
		     real_of((const char *)want + bytes, bytes).x);
}

/* The evaluator's own functions are a unit off at most, which counts where it has no more bits than
 * the device. */
static int64_t units_of(enum isa_rule rule, unsigned bytes)
{
	return (rule == ISA_NEAR ? 2 : rule == ISA_FAR ? 4 : 0) + (bytes == 8 && rule >= ISA_NEAR);
}

static bool is_same_real(enum isa_rule rule, const void *got, const void *want, unsigned bytes)
{
	struct real g = real_of(got, bytes), w = real_of(want, bytes);

	if (isnan(g.x) || isnan(w.x))
		return isnan(g.x) && isnan(w.x);
	/* Just below the smallest normal number a result may round up to it, or be zero. */
	if (g.is_tiny && w.is_tiny)
		return w.x != 0 || g.x != 0 || rule == ISA_ZEROS || !memcmp(got, want, bytes);
	if (rule < ISA_NEAR)
		return g.place == w.place;
	return signbit(g.x) == signbit(w.x) &&
		g.place - w.place <= units_of(rule, bytes) &&
		w.place - g.place <= units_of(rule, bytes);
}

static bool is_same_complex(enum isa_rule rule, const void *got, const void *want, unsigned bytes)
{
	struct real g[2], w[2];
	double unit = bytes == 4 ? 0x1p-23 : 0x1p-52;

	for (unsigned k = 0; k < 2; k++) {
		g[k] = real_of((const char *)got + k * bytes, bytes);
		w[k] = real_of((const char *)want + k * bytes, bytes);
	}
	if (rule >= ISA_NEAR && isfinite(w[0].x) && isfinite(w[1].x))
		return hypot(g[0].x - w[0].x, g[1].x - w[1].x) <=
			(double)units_of(rule, bytes) * unit * hypot(w[0].x, w[1].x);
	return is_same_real(rule, got, want, bytes) &&
		is_same_real(rule, (const char *)got + bytes, (const char *)want + bytes, bytes);
}

/* Whether bits of a storage type are a NaN. */
static bool is_nan_code(enum elem e, uint16_t code)
{
	unsigned infinity;

	switch (e) {
	case ELEM_F16: infinity = 0x7c00; break;
	case ELEM_BF16: infinity = 0x7f80; break;
	case ELEM_F8E5M2: infinity = 0x7c; break;
	case ELEM_F8E4M3: infinity = 0x78; break;
	case ELEM_F8E3M4: infinity = 0x70; break;
	case ELEM_F8E4M3FN: infinity = 0x7e; break;	/* no infinity: what is below the NaN */
	default: return false;
	}
	return (code & (elem_bytes(e) == 1 ? 0x7f : 0x7fff)) > infinity;
}

static bool is_same_code(enum elem e, const void *got, const void *want)
{
	uint16_t g = 0, w = 0;

	memcpy(&g, got, elem_bytes(e) == 1 ? 1 : 2);
	memcpy(&w, want, elem_bytes(e) == 1 ? 1 : 2);
	return is_nan_code(e, g) && is_nan_code(e, w);
}

static bool is_same(const struct out *o, const void *got, const void *want)
{
	unsigned bytes = elem_bytes(o->elem);

	if (!memcmp(got, want, bytes))
		return true;
	/* What is only moved may have anything above the bits of a type that fills no byte. */
	if (o->rule == ISA_BITS)
		return elem_bits(o->elem) < 8 &&
			!((*(const uint8_t *)got ^ *(const uint8_t *)want) &
			  ((1u << elem_bits(o->elem)) - 1));
	if (o->rule == ISA_WITHIN)
		return distance(o->elem, got, want) <= o->bound;
	if (!elem_computes(o->elem))
		return is_same_code(o->elem, got, want);
	if (elem_class(o->elem) == ELEM_CLASS_FLOAT)
		return is_same_real(o->rule, got, want, bytes);
	return elem_class(o->elem) == ELEM_CLASS_COMPLEX &&
		is_same_complex(o->rule, got, want, bytes / 2);
}

/* An element as bits, the highest first, and as the number that it is. */
static void show(enum elem e, const void *p, char *to, size_t room)
{
	unsigned bytes = elem_bytes(e), n = 0;
	unsigned part = elem_class(e) == ELEM_CLASS_COMPLEX ? bytes / 2 : bytes;

	n += (unsigned)snprintf(to, room, "0x");
	for (unsigned i = bytes; i-- > 0;)
		n += (unsigned)snprintf(to + n, room - n, "%02x", ((const uint8_t *)p)[i]);
	if (!elem_computes(e) || elem_class(e) < ELEM_CLASS_FLOAT)
		return;
	n += (unsigned)snprintf(to + n, room - n, " (%g", real_of(p, part).x);
	if (part < bytes)
		n += (unsigned)snprintf(to + n, room - n, ", %g",
					real_of((const char *)p + part, part).x);
	snprintf(to + n, room - n, ")");
}

/* Takes what is right for what was wanted, so that afterwards all bytes must be alike. */
static enum bringup_result look(struct isa_bench *t)
{
	size_t at;

	for (unsigned i = 0; i < t->n_outs; i++) {
		const struct out *o = &t->outs[i];
		unsigned bytes = elem_bytes(o->elem);

		for (size_t k = 0; k < o->n; k++) {
			uint8_t *got = t->got + o->at + k * bytes;
			uint8_t *want = t->want + o->at + k * bytes;
			char a[80], b[80];

			if (!is_same(o, got, want)) {
				show(o->elem, got, a, sizeof(a));
				show(o->elem, want, b, sizeof(b));
				return bringup_fail(t->b, "%s: element %zu of %zu is %s instead "
						    "of %s", o->name, k, o->n, a, b);
			}
			memcpy(want, got, bytes);
		}
	}
	at = bringup_differ(t->got, t->want, t->bytes);
	if (at < t->bytes)
		return bringup_fail(t->b, "%s: byte %zu of its memory, which it does not write, is "
				    "0x%02x instead of 0x%02x", t->outs[0].name, at, t->got[at],
				    t->want[at]);
	return BRINGUP_PASS;
}

/* ---- running ---- */

static struct hal_exe *load(struct isa_bench *t)
{
	static const char strings[] = "\0bring-up\0instruction\0bring-up:1";
	struct image_binding bindings[] = {
		{ .kind = IMAGE_CONSTANTS }, { .kind = IMAGE_TEMP },
		{ .kind = IMAGE_RESULT, .access = HW_BIND_READ | HW_BIND_WRITE, .bytes = t->bytes },
	};
	struct image_shape shape = { .elem = ELEM_S8, .rank = 1, .alias = -1,
				     .dim = { (int64_t)t->bytes } };
	struct image_debug debug = { .offset = 0, .op = 10, .where = 22 };
	struct image im = {
		.info = { .version = IMAGE_VERSION, .isa = ISA_VERSION, .n_results = 1,
			  .name = 1, .n_replicas = 1, .n_partitions = 1 },
		.text = t->code, .text_bytes = t->n_code, .bindings = bindings,
		.n_bindings = COUNT(bindings), .shapes = &shape, .debug = &debug, .n_debug = 1,
		.strings = strings, .strings_bytes = sizeof(strings), .note = "bring-up",
	};
	size_t bytes;
	void *image;

	if (image_write(&im, &image, &bytes, &t->b->err))
		return NULL;
	return bringup_load(t->b, image, bytes);
}

/* Runs it: a code, with b->err. */
static int execute(struct isa_bench *t, struct hal_exe *exe)
{
	struct hal_mem *m = bringup_mem(t->b, HAL_MEM_HBM, t->bytes);
	struct hw_binding bindings[3] = { { 0 } };
	struct hal_launch l = { .exe = exe, .bindings = bindings, .limit_ns = 20 * SECOND };
	uint64_t value;
	int code;

	if (!m || hal_copy_in(m, 0, t->now, t->bytes, SOON, &t->b->err))
		return t->b->err.code;
	bindings[2] = (struct hw_binding){ hal_mem_va(m), t->bytes };
	code = hal_queue_execute(t->b->compute, &l, &value, &t->b->err);
	if (!code)
		code = hal_queue_wait(t->b->compute, value, SOON, &t->b->err);
	if (!code || code != ERR_DEADLINE_EXCEEDED)
		if (hal_copy_out(t->got, m, 0, t->bytes, SOON, &t->b->err))
			return t->b->err.code;
	return code;
}

enum bringup_result isa_run_to(struct isa_bench *t, int code)
{
	struct hal_exe *exe;
	struct err err;
	int is;

	isa_put_scalar(t, ISA_HALT, (struct isa_scalar){ 0 });
	if (t->is_full || !t->n_outs)
		return bringup_fail(t->b, "a test of %s does not fit", t->outs[0].name);
	exe = load(t);
	if (!exe) {
		err = t->b->err;
		return bringup_fail(t->b, "%s: %s", t->outs[0].name, err.msg);
	}
	is = execute(t, exe);
	if (is != code && is) {
		err = t->b->err;
		return bringup_fail(t->b, "%s: %s", t->outs[0].name, err.msg);
	}
	if (is != code)
		return bringup_fail(t->b, "%s: the program ends well instead of with %s",
				    t->outs[0].name, err_name(code));
	return look(t);
}

enum bringup_result isa_run(struct isa_bench *t)
{
	return isa_run_to(t, 0);
}
