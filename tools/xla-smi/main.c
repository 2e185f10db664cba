/* SPDX-License-Identifier: Apache-2.0 */
/* xla-smi: what devices there are, who uses them, how they are. */
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "hal/base/files.h"
#include "runtime/compiler/tc.h"
#include "tools/xla-smi/smi.h"

static const struct command {
	const char *name;
	int (*run)(const struct smi_options *o, int argc, char **argv);
	const char *arguments, *meaning;
} commands[] = {
#define COMMAND(name, function, arguments, meaning) { #name, function, arguments, meaning },
#define VIEW(...)
#include "tools/xla-smi/commands.def"
#undef COMMAND
#undef VIEW
};
#define N_COMMANDS (sizeof(commands) / sizeof(*commands))

enum which {
#define OPTION(name, letter, argument, meaning) OPTION_##name,
#include "tools/xla-smi/options.def"
#undef OPTION
	N_OPTIONS
};
static const struct {
	const char *name, *argument, *meaning;
	char letter;
} options[] = {
#define OPTION(name, letter, argument, meaning) { #name, argument, meaning, letter },
#include "tools/xla-smi/options.def"
#undef OPTION
};

/* dry_run is --dry-run. */
static char names[N_OPTIONS][24];

static void name_options(void)
{
	for (unsigned i = 0; i < N_OPTIONS; i++) {
		snprintf(names[i], sizeof(names[i]), "%.23s", options[i].name);
		for (char *p = names[i]; *p; p++)
			*p = *p == '_' ? '-' : *p;
	}
}

static void print_help(FILE *to)
{
	fputs("usage: xla-smi [COMMAND] [OPTION...]\n"
	      "Shows devices, their memory and utilisation, and the processes that use "
	      "them.\n\n", to);
	for (unsigned i = 0; i < N_COMMANDS; i++)
		fprintf(to, "  %-8s %-16s %s\n", commands[i].name, commands[i].arguments,
			commands[i].meaning);
	fputs("\n", to);
	for (unsigned i = 0; i < N_OPTIONS; i++) {
		char name[64];

		snprintf(name, sizeof(name), "--%.23s%s%.30s", names[i],
			 *options[i].argument ? " " : "", options[i].argument);
		fprintf(to, "  %c%c%c %-20s %s\n", options[i].letter ? '-' : ' ',
			options[i].letter ? options[i].letter : ' ',
			options[i].letter ? ',' : ' ', name, options[i].meaning);
	}
}

static int complain(const char *what, const char *word)
{
	fprintf(stderr, "xla-smi: \"%s\" %s\nusage: xla-smi [COMMAND] [OPTION...]; xla-smi --help "
		"lists them\n", word, what);
	return SMI_USAGE;
}

/* Exit status: what was printed must have arrived. */
static int end(int status)
{
	if (!fflush(stdout) && !ferror(stdout))
		return status;
	fprintf(stderr, "xla-smi: the output could not be written: %s\n", strerror(errno));
	return SMI_FAILED;
}

static bool read_number(const char *text, double least, double most, double *out)
{
	char *rest;

	*out = strtod(text, &rest);
	return *text && !*rest && *out >= least && *out <= most;
}

static int take_option(struct smi_options *o, enum which which, const char *argument)
{
	double n;

	switch (which) {
	case OPTION_json:
		o->form = SMI_JSON;
		break;
	case OPTION_csv:
		o->form = SMI_CSV;
		break;
	case OPTION_prometheus:
		o->form = SMI_PROMETHEUS;
		break;
	case OPTION_device:
		if (!*argument || o->n_devices == SMI_MAX_SELECTED)
			return complain("is one device too many, or none", argument);
		o->device[o->n_devices++] = argument;
		break;
	case OPTION_interval:
		if (!read_number(argument, 0.01, 86400, &o->interval))
			return complain("is no time between 0.01 and 86400 seconds", argument);
		break;
	case OPTION_count:
		if (!read_number(argument, 1, 1e15, &n))
			return complain("is no count of 1 or more", argument);
		o->count = (uint64_t)n;
		break;
	case OPTION_force:
		o->force = true;
		break;
	case OPTION_dry_run:
		o->dry_run = true;
		break;
	case OPTION_ui:
		o->ui = true;
		break;
	case OPTION_port:
		if (!read_number(argument, 0, 65535, &n))
			return complain("is no port", argument);
		o->port = (unsigned)n;
		break;
	case OPTION_client:
		if (!read_number(argument, 1, 4194304, &n) || n != (unsigned long)n)
			return complain("is no number of a process", argument);
		o->client = (unsigned long)n;
		break;
	case OPTION_seconds:
		if (!read_number(argument, 0.001, SMI_TRACE_SECONDS, &o->seconds))
			return complain("is no time between 0.001 and 3500 seconds", argument);
		break;
	case OPTION_output:
		if (!*argument)
			return complain("is no file", argument);
		o->output = argument;
		break;
	case OPTION_root:
		o->root = argument;
		break;
	default:
		break;
	}
	return SMI_OK;
}

static int parse(struct smi_options *o, int argc, char **argv, enum which *asked)
{
	struct option longs[N_OPTIONS + 1] = { { 0 } };
	char letters[2 * N_OPTIONS + 2] = ":";
	size_t n = 1;
	int c, status;

	name_options();
	for (unsigned i = 0; i < N_OPTIONS; i++) {
		longs[i] = (struct option){ names[i], *options[i].argument ?
			required_argument : no_argument, NULL, (int)(1000 + i) };
		if (!options[i].letter)
			continue;
		letters[n++] = options[i].letter;
		if (*options[i].argument)
			letters[n++] = ':';
	}
	while ((c = getopt_long(argc, argv, letters, longs, NULL)) != -1) {
		unsigned which = c >= 1000 ? (unsigned)(c - 1000) : 0;

		if (c == '?' || c == ':')
			return complain(c == '?' ? "is no option" : "needs an argument",
					argv[optind - 1]);
		for (unsigned i = 0; c < 1000 && i < N_OPTIONS; i++)
			if (options[i].letter == c)
				which = i;
		if (which == OPTION_help || which == OPTION_version)
			*asked = (enum which)which;
		status = take_option(o, (enum which)which, optarg);
		if (status)
			return status;
	}
	return SMI_OK;
}

/* Words in upper case are needed, those in brackets may be left out. */
static bool fits(const struct command *c, int n)
{
	int least = 0, most = 0;

	for (const char *p = c->arguments; *p; p += strspn(p, " ")) {
		most++;
		least += *p != '[';
		p += strcspn(p, " ");
	}
	return n >= least && n <= most;
}

int main(int argc, char **argv)
{
	struct smi_options o = { .root = "", .interval = 1, .port = 9877,
				 .seconds = 5 };
	enum which asked = N_OPTIONS;
	const struct command *c = NULL;
	const char *name;
	char *none[] = { "list", NULL };
	int status;

	files_open_standard();
	status = parse(&o, argc, argv, &asked);
	if (status)
		return status;
	if (asked == OPTION_help) {
		print_help(stdout);
		return end(SMI_OK);
	}
	if (asked == OPTION_version) {
		puts("xla-smi " TC_VERSION);
		return end(SMI_OK);
	}
	argc -= optind;
	argv += optind;
	name = argc ? argv[0] : none[0];
	for (unsigned i = 0; i < N_COMMANDS && !c; i++)
		if (!strcmp(commands[i].name, name))
			c = &commands[i];
	if (!c)
		return complain("is no command", name);
	if (!fits(c, argc ? argc - 1 : 0)) {
		fprintf(stderr, "xla-smi: usage: xla-smi %s %s\n", name, c->arguments);
		return SMI_USAGE;
	}
	return end(c->run(&o, argc ? argc : 1, argc ? argv : none));
}
