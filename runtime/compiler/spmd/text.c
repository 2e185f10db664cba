/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens of shardings' texts. */
#include <string.h>

#include "runtime/compiler/spmd/text.h"

_Noreturn void spmd_bad(const struct spmd_text *r, const char *want)
{
	tc_fail(r->s->c, ERR_INVALID_ARGUMENT, r->op, "the sharding %.100s has no %s at byte %zu",
		r->text, want, (size_t)(r->p - r->text));
}

bool spmd_take(struct spmd_text *r, const char *token)
{
	size_t n = strlen(token);

	while (*r->p == ' ')
		r->p++;
	if (strncmp(r->p, token, n))
		return false;
	r->p += n;
	return true;
}

void spmd_expect(struct spmd_text *r, const char *token)
{
	if (!spmd_take(r, token))
		spmd_bad(r, token);
}

static bool is_digit(char b)
{
	return b >= '0' && b <= '9';
}

uint32_t spmd_number(struct spmd_text *r)
{
	uint64_t v = 0;

	while (*r->p == ' ')
		r->p++;
	if (!is_digit(*r->p))
		spmd_bad(r, "number");
	for (; is_digit(*r->p); r->p++) {
		v = 10 * v + (uint64_t)(*r->p - '0');
		if (v > INT32_MAX)
			spmd_bad(r, "smaller number");
	}
	return (uint32_t)v;
}

static int hex(char b)
{
	return is_digit(b) ? b - '0' : b >= 'a' && b <= 'f' ? b - 'a' + 10 : -1;
}

static const char *quoted(struct spmd_text *r)
{
	char *name = arena_alloc(&r->s->c->arena, strlen(r->p) + 1);
	size_t n = 0;

	for (; *r->p && *r->p != '"'; r->p++) {
		name[n] = *r->p;
		if (*r->p == '\\') {
			if (hex(r->p[1]) < 0 || hex(r->p[2]) < 0)
				spmd_bad(r, "two hexadecimal digits");
			name[n] = (char)(hex(r->p[1]) << 4 | hex(r->p[2]));
			r->p += 2;
		}
		n++;
	}
	spmd_expect(r, "\"");
	return tc_key(r->s->c, name, n);
}

static bool is_letter(char b)
{
	return is_digit(b) || b == '_' || (b >= 'a' && b <= 'z') || (b >= 'A' && b <= 'Z');
}

const char *spmd_name(struct spmd_text *r)
{
	size_t n = 0;

	if (spmd_take(r, "\""))
		return quoted(r);
	while (is_letter(r->p[n]))
		n++;
	if (!n || is_digit(*r->p))
		spmd_bad(r, "name");
	r->p += n;
	return tc_key(r->s->c, r->p - n, n);
}

bool spmd_is_word(const char *name)
{
	bool is_word = *name && !is_digit(*name);

	for (const char *p = name; *p; p++)
		is_word &= is_letter(*p);
	return is_word;
}
