/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOLS_OPTIONS_H
#define TOOLS_OPTIONS_H
/*
 * The command line of a tool whose options are an options.def:
 *
 *     static const struct tool_option options[] = {
 *     #define OPTION(name, letter, argument, meaning) { #name, argument, meaning, letter },
 *     #include "tools/NAME/options.def"
 *     #undef OPTION
 *     };
 *
 * An option is known by its place in the table. For the main thread.
 */
#include <stdbool.h>
#include <stdio.h>

struct tool_option {
	const char *name;	/* keep_going is --keep-going; at most 23 characters */
	const char *argument;	/* what help calls it; "": it takes none */
	const char *meaning;
	char letter;		/* 0: none */
};
#define TOOL_MAX_OPTIONS 32u

struct tool_line {
	const char *program;
	const char *usage;	/* the line that follows a complaint */
	const struct tool_option *options;
	unsigned n;		/* at most TOOL_MAX_OPTIONS */
};

/* Calls `take` with each option of the line, which may stand anywhere on it, and its argument, or
 * NULL. Afterwards argv[optind] is the first word that is none. 0; the status at which `take`
 * stopped; or 2 for what is no option, which is printed. */
int tool_read_options(const struct tool_line *l, int argc, char **argv,
		      int (*take)(void *arg, unsigned option, const char *argument), void *arg);
/* Prints what is wrong with a word of the line, as `"word" what`, and the usage. Returns 2, the
 * exit status of wrong usage. */
int tool_complain(const struct tool_line *l, const char *what, const char *word);
/* A line for each option; `width`: columns for its name and argument. */
void tool_print_options(const struct tool_line *l, int width, FILE *to);

/* All of `text` as a number from `least` to `most`; false: it is none. */
bool tool_read_number(const char *text, double least, double most, double *out);

#endif
