/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Layouts that the program asks for (mhlo.layout_mode): the order in which the dims of an
 * argument or result of main lie in memory. Within the program every value may have any
 * strides, so an argument in another order is a view, and a result in one is written so.
 */
#include <string.h>

#include "runtime/compiler/back/emit.h"

static _Noreturn void refuse(struct emit *e, int code, const char *what, unsigned i,
			     const char *text, const char *why)
{
	tc_fail(e->c, code, NULL, "%s %u of the program is to lie in memory with layout %.60s: %s",
		what, i, text, why);
}

/* Dims from minor to major, "{0,1}", into order from major to minor. */
static void read_order(struct emit *e, const char *text, unsigned rank, const char *what,
		       unsigned i, uint8_t *order)
{
	static const char fit[] = "these are not its dims, each once, from minor to major";
	uint64_t seen = 0;
	const char *p = text;
	unsigned n = 0;

	if (*p++ != '{')
		refuse(e, ERR_INVALID_ARGUMENT, what, i, text, fit);
	while (*p >= '0' && *p <= '9' && n < rank) {
		unsigned v = 0;

		for (; *p >= '0' && *p <= '9' && v < 100; p++)
			v = 10 * v + (unsigned)(*p - '0');
		if (v >= rank || seen >> v & 1)
			refuse(e, ERR_INVALID_ARGUMENT, what, i, text, fit);
		seen |= 1ull << v;
		order[rank - 1 - n++] = (uint8_t)v;
		p += *p == ',';
	}
	if (*p == ':')
		refuse(e, ERR_UNIMPLEMENTED, what, i, text, "arrays lie in no tiles here, and "
		       "nothing else than the order of their dims may be asked for");
	if (n != rank || strcmp(p, "}"))
		refuse(e, ERR_INVALID_ARGUMENT, what, i, text, fit);
}

bool tc_layout_order(struct emit *e, const struct tc_arg_info *info, bool is_result, unsigned i,
		     const struct tc_type *t, uint8_t *order)
{
	const char *text = info ? info[i].layout : NULL;
	bool is_row_major = true;

	memset(order, 0, TC_MAX_RANK);
	if (!text || !strcmp(text, "auto") || !strcmp(text, "default") || !strcmp(text, "{}"))
		return false;
	read_order(e, text, t->rank, is_result ? "result" : "argument", i, order);
	for (unsigned k = 0; k < t->rank; k++)
		is_row_major &= order[k] == k;
	if (is_row_major)
		memset(order, 0, TC_MAX_RANK);
	return !is_row_major;
}

bool tc_layout_strides(struct emit *e, const struct tc_arg_info *info, bool is_result,
		       unsigned i, const struct tc_type *t, int64_t *stride)
{
	uint8_t order[TC_MAX_RANK];
	int64_t step = elem_bytes(t->elem);

	tc_dense_strides(t, stride);
	if (!tc_layout_order(e, info, is_result, i, t, order))
		return false;
	for (unsigned k = t->rank; k-- > 0;) {
		stride[order[k]] = step;
		step *= t->dim[order[k]] ? t->dim[order[k]] : 1;
	}
	return true;
}
