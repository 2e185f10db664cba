/* SPDX-License-Identifier: Apache-2.0 */
/* Command lines that a table describes (options.h), by getopt_long. */
#include "tools/common/options.h"

#include <assert.h>
#include <getopt.h>
#include <stdlib.h>

#define NAME_BYTES 24
#define EXIT_USAGE 2
#define FIRST_LONG 1000	/* what getopt_long gives for option 0, past all letters */

static void name_option(const struct tool_option *o, char out[NAME_BYTES])
{
	snprintf(out, NAME_BYTES, "%.23s", o->name);
	for (char *p = out; *p; p++)
		*p = *p == '_' ? '-' : *p;
}

int tool_complain(const struct tool_line *l, const char *what, const char *word)
{
	fprintf(stderr, "%s: \"%s\" %s\nusage: %s\n", l->program, word, what, l->usage);
	return EXIT_USAGE;
}

static unsigned find(const struct tool_line *l, int got)
{
	for (unsigned i = 0; got < FIRST_LONG && i < l->n; i++)
		if (l->options[i].letter == got)
			return i;
	return (unsigned)(got - FIRST_LONG);
}

int tool_read_options(const struct tool_line *l, int argc, char **argv,
		      int (*take)(void *arg, unsigned option, const char *argument), void *arg)
{
	static char names[TOOL_MAX_OPTIONS][NAME_BYTES];
	struct option longs[TOOL_MAX_OPTIONS + 1] = { { 0 } };
	char letters[2 * TOOL_MAX_OPTIONS + 2] = ":";
	size_t n = 1;
	int got, status;

	assert(l->n <= TOOL_MAX_OPTIONS);
	for (unsigned i = 0; i < l->n; i++) {
		const struct tool_option *o = &l->options[i];

		name_option(o, names[i]);
		longs[i] = (struct option){ .name = names[i], .val = FIRST_LONG + (int)i,
					    .has_arg = *o->argument ? required_argument :
								      no_argument };
		if (!o->letter)
			continue;
		letters[n++] = o->letter;
		if (*o->argument)
			letters[n++] = ':';
	}
	while ((got = getopt_long(argc, argv, letters, longs, NULL)) != -1) {
		/* Of letters in one word those behind it are not looked at yet. */
		char letter[] = { '-', (char)optopt, 0 };
		bool is_letter = got == '?' && optopt && optopt < FIRST_LONG;

		if (got == '?' || got == ':')
			return tool_complain(l, got == '?' ? "is no option" : "needs an argument",
					     is_letter ? letter : argv[optind - 1]);
		status = take(arg, find(l, got), optarg);
		if (status)
			return status;
	}
	return 0;
}

void tool_print_options(const struct tool_line *l, int width, FILE *to)
{
	for (unsigned i = 0; i < l->n; i++) {
		const struct tool_option *o = &l->options[i];
		char name[NAME_BYTES], both[64];

		name_option(o, name);
		snprintf(both, sizeof(both), "--%s%s%.30s", name, *o->argument ? " " : "",
			 o->argument);
		fprintf(to, "  %c%c%c %-*s %s\n", o->letter ? '-' : ' ',
			o->letter ? o->letter : ' ', o->letter ? ',' : ' ', width, both,
			o->meaning);
	}
}

bool tool_read_number(const char *text, double least, double most, double *out)
{
	char *rest;

	*out = strtod(text, &rest);
	return *text && !*rest && *out >= least && *out <= most;
}
