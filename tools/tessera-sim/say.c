/* SPDX-License-Identifier: Apache-2.0 */
/* What the operator reads: a line on standard error. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "tools/tessera-sim/server.h"

void say(const char *fmt, ...)
{
	char line[600] = "tessera-sim: ";
	size_t n = strlen(line);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line + n, sizeof(line) - n - 1, fmt, ap);
	va_end(ap);
	strcat(line, "\n");
	fputs(line, stderr);
}
