/* SPDX-License-Identifier: Apache-2.0 */
/* What lines of the IR give, by the compiler's evaluator, which shares nothing with the device. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "tools/bringup/isa/bench.h"

struct text {
	char at[4096];
	size_t n;
};

__attribute__((format(printf, 2, 3)))
static void add(struct text *t, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	t->n += (size_t)vsnprintf(t->at + t->n, sizeof(t->at) - t->n, format, ap);
	va_end(ap);
	if (t->n >= sizeof(t->at))
		t->n = sizeof(t->at) - 1;
}

static void add_type(struct text *t, const struct tc_array *a, unsigned elem)
{
	add(t, "tensor<");
	for (unsigned d = 0; d < a->rank; d++)
		add(t, "%" PRId64 "x", a->dim[d]);
	add(t, "%s>", elem_text(elem));
}

static const char *comparison(unsigned elem)
{
	switch (elem_class(elem)) {
	case ELEM_CLASS_SINT: return "SIGNED";
	case ELEM_CLASS_PRED:
	case ELEM_CLASS_UINT: return "UNSIGNED";
	default: return "FLOAT";
	}
}

static unsigned real_part(unsigned elem)
{
	return elem == ELEM_C64 ? ELEM_F32 : elem == ELEM_C128 ? ELEM_F64 : elem;
}

/* What stands for the letter behind an @. */
static void add_letter(struct text *t, char letter, const struct tc_array *args,
		       const struct tc_array *result)
{
	static const struct tc_array scalar;

	switch (letter) {
	case '0':
	case '1':
	case '2': add_type(t, &args[letter - '0'], args[letter - '0'].elem); break;
	case 'P': add_type(t, &args[0], ELEM_PRED); break;
	case 'U': add_type(t, &args[0], ELEM_U64); break;
	case 'F': add_type(t, &args[0], real_part(args[0].elem)); break;
	case 'S': add_type(t, &scalar, result->elem); break;
	case 'E': add_type(t, &scalar, args[0].elem); break;
	case 'C': add(t, "%s", comparison(args[0].elem)); break;
	default: add_type(t, result, result->elem);
	}
}

struct tc_array isa_array(enum elem e, void *data, size_t n0, size_t n1)
{
	return (struct tc_array){ .elem = (uint8_t)e, .rank = n1 ? 2 : n0 ? 1 : 0, .data = data,
				  .dim = { (int64_t)n0, (int64_t)n1 },
				  .bytes = (n0 ? n0 : 1) * (n1 ? n1 : 1) * elem_bytes(e) };
}

struct isa_lines isa_fold(const char *op, unsigned dim)
{
	struct isa_lines l;

	snprintf(l.at, sizeof(l.at), "%%9 = reduce(%%0, %%1) {dimensions = [%u]} : @R (%%2: @E, "
		 "%%3: @E) {\n%%4 = %s(%%2, %%3) : @E\nreturn(%%4)\n}", dim, op);
	return l;
}

void *isa_evaluate(struct bringup *b, const char *lines, const struct tc_array *args,
		   unsigned n_args, const struct tc_array *result)
{
	struct text *t = bringup_room(b, sizeof(*t));
	struct tc_source s = { .format = "mlir" };
	struct tc_array *outs;
	void *data = NULL;
	size_t n;

	if (!t)
		return NULL;
	add(t, "module() () {\nfunc() {sym_name = \"main\"} (");
	for (unsigned i = 0; i < n_args; i++) {
		add(t, "%s%%%u: ", i ? ", " : "", i);
		add_type(t, &args[i], args[i].elem);
	}
	add(t, ") {\n");
	for (const char *p = lines; *p; p++) {
		if (*p == '@')
			add_letter(t, *++p, args, result);
		else
			add(t, "%c", *p);
	}
	add(t, "\nreturn(%%9)\n}\n}\n");
	s.code = t->at;
	s.bytes = t->n;
	if (tc_eval(&s, args, n_args, &outs, &n, &b->err))
		return NULL;
	if (n != 1 || outs[0].elem != result->elem)
		err_set(&b->err, ERR_INTERNAL, "the evaluator gives another type than the ISA: %s",
			lines);
	else
		data = bringup_room(b, outs[0].bytes);
	if (data)
		memcpy(data, outs[0].data, outs[0].bytes);
	tc_array_free(outs, n);
	return data;
}
