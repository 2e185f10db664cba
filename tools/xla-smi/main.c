/* SPDX-License-Identifier: Apache-2.0 */
/* xla-smi: what devices there are, who uses them, how they are. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hal/base/files.h"
#include "runtime/compiler/tc.h"
#include "tools/common/options.h"
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
static const struct tool_option options[] = {
#define OPTION(name, letter, argument, meaning) { #name, argument, meaning, letter },
#include "tools/xla-smi/options.def"
#undef OPTION
};

/* What the command line said. */
struct asked {
	struct smi_options o;
	bool must_help, must_version;
};

static const struct tool_line line = {
	"xla-smi", "xla-smi [COMMAND] [OPTION...]; xla-smi --help lists them", options, N_OPTIONS,
};

static int complain(const char *what, const char *word)
{
	return tool_complain(&line, what, word);
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
	tool_print_options(&line, 20, to);
}

/* Exit status: what was printed must have arrived. */
static int end(int status)
{
	if (!fflush(stdout) && !ferror(stdout))
		return status;
	fprintf(stderr, "xla-smi: the output could not be written: %s\n", strerror(errno));
	return SMI_FAILED;
}

static int take_option(void *arg, unsigned which, const char *argument)
{
	struct asked *asked = arg;
	struct smi_options *o = &asked->o;
	double n;

	switch ((enum which)which) {
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
		if (!tool_read_number(argument, 0.01, 86400, &o->interval))
			return complain("is no time between 0.01 and 86400 seconds", argument);
		break;
	case OPTION_count:
		if (!tool_read_number(argument, 1, 1e15, &n) || n != (double)(uint64_t)n)
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
		if (!tool_read_number(argument, 0, 65535, &n) || n != (unsigned)n)
			return complain("is no port", argument);
		o->port = (unsigned)n;
		break;
	case OPTION_client:
		if (!tool_read_number(argument, 1, 4194304, &n) || n != (unsigned long)n)
			return complain("is no number of a process", argument);
		o->client = (unsigned long)n;
		break;
	case OPTION_seconds:
		if (!tool_read_number(argument, 0.001, SMI_TRACE_SECONDS, &o->seconds))
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
	case OPTION_version:
		asked->must_version = true;
		break;
	default:
		asked->must_help = true;
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
	struct asked asked = { { .root = "", .interval = 1, .port = 9877, .seconds = 5 }, 0, 0 };
	const struct command *c = NULL;
	const char *name;
	char *none[] = { "list", NULL };
	int status;

	files_open_standard();
	status = tool_read_options(&line, argc, argv, take_option, &asked);
	if (status)
		return status;
	if (asked.must_help) {
		print_help(stdout);
		return end(SMI_OK);
	}
	if (asked.must_version) {
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
	return end(c->run(&asked.o, argc ? argc : 1, argc ? argv : none));
}
