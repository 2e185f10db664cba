/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_MARKUP_H
#define BASE_MARKUP_H
#include <stdio.h>

/* Writes a text of anybody's as a text of HTML or XML, or as the value of an attribute in quotes of
 * either kind: no character of it ends it, and none controls. Errors are the stream's (ferror). */
void markup_put(const char *text, FILE *to);

#endif
