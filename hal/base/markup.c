/* SPDX-License-Identifier: Apache-2.0 */
#include "hal/base/markup.h"

void markup_put(const char *text, FILE *to)
{
	for (; *text; text++) {
		switch (*text) {
		case '&': fputs("&amp;", to); break;
		case '<': fputs("&lt;", to); break;
		case '>': fputs("&gt;", to); break;
		case '"': fputs("&quot;", to); break;
		case '\'': fputs("&#39;", to); break;
		case '\n': fputs("&#10;", to); break;	/* attributes would lose it */
		/* XML has no place for them. */
		default: fputc((unsigned char)*text < 32 || *text == 127 ? '?' : *text, to);
		}
	}
}
