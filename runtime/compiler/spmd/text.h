/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TC_SPMD_TEXT_H
#define TC_SPMD_TEXT_H
/*
 * Reading the texts of shardings, token by token; blanks stand between any two. Private to
 * spmd/. What does not fit leaves by tc_fail(INVALID_ARGUMENT) with the text and the byte.
 */
#include "runtime/compiler/spmd/sharding.h"

struct spmd_text {
	struct spmd *s;
	const struct tc_op *op;		/* whom messages name, or NULL */
	const char *text, *p;		/* NUL-terminated; the rest of it */
};

/* The text has no such thing where it is. */
_Noreturn void spmd_bad(const struct spmd_text *r, const char *want);
/* Goes past the token if it comes next, and says whether. */
bool spmd_take(struct spmd_text *r, const char *token);
void spmd_expect(struct spmd_text *r, const char *token);
/* A number of 0 to INT32_MAX. */
uint32_t spmd_number(struct spmd_text *r);
/* A word of letters, digits and _, or anything in quotes; interned. */
const char *spmd_name(struct spmd_text *r);
bool spmd_is_word(const char *name);
/* mesh.c: a mesh, which is kept nowhere, under that name. */
const struct spmd_mesh *spmd_mesh_text(struct spmd_text *r, const char *called);

#endif
