/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_SPMD_GOLDEN_H
#define TESTS_SPMD_GOLDEN_H
/*
 * The programs of tests/data/spmd/golden.txt, one after the other: a line
 *
 *	= NAME | SHARDING;... | SHARDING;...	of main's arguments and results
 *
 * and the program in our IR's text, with `# RULE | SHARDING;...` after an op. What is not there
 * is nothing said: no rule, no axes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/compiler/passes.h"

#define GOLDEN "tests/data/spmd/golden.txt"
#define GOLDEN_PROGRAMS 324

struct golden {
	char name[64];
	char args[1024], results[1024];	/* lists with ; */
	void *arg;			/* the caller's */
};

static char *golden_text;

static int golden_load(void **state)
{
	FILE *f = fopen(GOLDEN, "rb");
	size_t n;

	(void)state;
	golden_text = malloc(2 << 20);
	if (!f || !golden_text)
		return -1;
	n = fread(golden_text, 1, (2 << 20) - 1, f);
	golden_text[n] = 0;
	fclose(f);
	return 0;
}

static int golden_free(void **state)
{
	(void)state;
	free(golden_text);
	return 0;
}

/* The nth part of a line between bars, without blanks around it. */
static void golden_part(const char *line, unsigned n, char *to, size_t room)
{
	size_t k;

	while (n--)
		line += strcspn(line, "|\n") + (line[strcspn(line, "|\n")] == '|');
	line += strspn(line, " ");
	k = strcspn(line, "|\n");
	while (k && line[k - 1] == ' ')
		k--;
	assert_true(k < room);
	memcpy(to, line, k);
	to[k] = 0;
}

/* Calls body for every program, g->arg is its arg's; how many there are. */
static unsigned golden_each(void (*body)(struct tc_ctx *c, void *golden), void *arg)
{
	static const struct tc_options eight = { .level = 1, .partitions = 8 };
	unsigned n = 0;

	for (char *p = golden_text; *p == '=';) {
		char *text = strchr(p, '\n') + 1, *end = strstr(text, "\n= ");
		size_t bytes = end ? (size_t)(end - text) + 1 : strlen(text);
		struct golden g = { .arg = arg };
		struct err err = { 0 };

		golden_part(p + 2, 0, g.name, sizeof(g.name));
		golden_part(p + 2, 1, g.args, sizeof(g.args));
		golden_part(p + 2, 2, g.results, sizeof(g.results));
		if (tc_enter(&(struct tc_source){ text, bytes, "mlir" }, &eight, &err, body, &g))
			fail_msg("%s: %s", g.name, err.msg);
		n++;
		p = text + bytes;
	}
	return n;
}

#endif
