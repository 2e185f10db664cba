/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_STR_H
#define BASE_STR_H
/*
 * A growing text, for printers. Zero-initialise, append, use `text`, str_free.
 * After an allocation failure `failed` is set and appends do nothing.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct str {
	char *text;	/* NUL-terminated; NULL while empty */
	size_t len, room;
	bool failed;
};

void str_printf(struct str *s, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
void str_add(struct str *s, const char *text, size_t n);
void str_free(struct str *s);

/* Digits that are a number from `least` to `most`, and nothing else; false: *out is untouched. */
bool str_read_number(const char *text, uint64_t least, uint64_t most, uint64_t *out);

#endif
