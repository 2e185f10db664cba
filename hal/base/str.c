/* SPDX-License-Identifier: Apache-2.0 */
#include "hal/base/str.h"

#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool make_room(struct str *s, size_t n)
{
	size_t room = s->room ? s->room : 256;
	char *p;

	if (s->failed || n > SIZE_MAX / 4 || s->len > SIZE_MAX / 4) {
		s->failed = true;
		return false;
	}
	while (room < s->len + n + 1)
		room *= 2;
	if (room == s->room)
		return true;
	p = realloc(s->text, room);
	if (!p) {
		s->failed = true;
		return false;
	}
	s->text = p;
	s->room = room;
	return true;
}

void str_add(struct str *s, const char *text, size_t n)
{
	if (!make_room(s, n))
		return;
	if (n)
		memcpy(s->text + s->len, text, n);
	s->len += n;
	s->text[s->len] = 0;
}

void str_printf(struct str *s, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (n < 0 || !make_room(s, (size_t)n)) {
		s->failed = true;
		return;
	}
	va_start(ap, fmt);
	vsnprintf(s->text + s->len, (size_t)n + 1, fmt, ap);
	va_end(ap);
	s->len += (size_t)n;
}

void str_free(struct str *s)
{
	free(s->text);
	*s = (struct str){ 0 };
}

bool str_read_number(const char *text, uint64_t least, uint64_t most, uint64_t *out)
{
	unsigned long long n;
	char *end;

	errno = 0;
	n = strtoull(text, &end, 10);
	if (errno || *text < '0' || *text > '9' || *end || n < least || n > most)
		return false;
	*out = n;
	return true;
}
