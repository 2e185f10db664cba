/* SPDX-License-Identifier: Apache-2.0 */
/* tessera-bringup: is this card good? Runs the steps of tools/bringup and says what they saw. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hal/base/files.h"
#include "runtime/compiler/tc.h"
#include "tools/bringup/bringup.h"
#include "tools/common/options.h"
#include "tools/tessera-bringup/progress.h"

enum which {
#define OPTION(name, letter, argument, meaning) OPTION_##name,
#include "tools/tessera-bringup/options.def"
#undef OPTION
	N_OPTIONS
};
static const struct tool_option options[] = {
#define OPTION(name, letter, argument, meaning) { #name, argument, meaning, letter },
#include "tools/tessera-bringup/options.def"
#undef OPTION
};

enum {
#define EXIT(name, number, meaning) EXIT_##name = number,
#include "tools/tessera-bringup/exits.def"
#undef EXIT
};

/* What the command line said. */
struct command {
	struct bringup_options run;
	const char *json, *junit, *html;
	bool must_list, must_help, must_version;
};

static void print_list(void)
{
	for (unsigned i = 0; i < bringup_n_steps; i++)
		printf("%2u  level %u  %-18s %s\n", bringup_steps[i].number, bringup_steps[i].level,
		       bringup_steps[i].name, bringup_steps[i].proves);
}

/* ---- the command line ---- */

static const struct tool_line line = {
	"tessera-bringup", "tessera-bringup [OPTION...]; --help lists them", options, N_OPTIONS,
};

static void print_help(FILE *to)
{
	fputs("usage: tessera-bringup [OPTION...]\n"
	      "Brings a device up in numbered steps, each of which proves something, and stops at "
	      "the\nfirst that fails. The device must be idle: it is reset.\n\n", to);
	tool_print_options(&line, 18, to);
}

static bool is_stdout(const char *path)
{
	return path && !strcmp(path, "-");
}

static unsigned n_to_stdout(const struct command *c)
{
	return is_stdout(c->json) + is_stdout(c->junit) + is_stdout(c->html);
}

/* 64M, 1G, bytes; all. */
static bool read_size(const char *text, uint64_t *out)
{
	static const char units[] = "KMGT";
	const char *unit;
	char *rest;

	if (!strcmp(text, "all")) {
		*out = UINT64_MAX;
		return true;
	}
	errno = 0;
	*out = strtoull(text, &rest, 10);
	if (*text < '0' || *text > '9' || errno || !*out)
		return false;
	unit = *rest ? strchr(units, *rest) : NULL;
	if (unit && !rest[1]) {
		unsigned shift = 10 * (unsigned)(unit - units + 1);

		if (*out > UINT64_MAX >> shift)
			return false;
		*out <<= shift;
		return true;
	}
	return !*rest;
}

static int complain(const char *what, const char *word)
{
	return tool_complain(&line, what, word);
}

static int take_option(void *arg, unsigned which, const char *argument)
{
	struct command *c = arg;
	double n;

	switch ((enum which)which) {
	case OPTION_level:
		if (!tool_read_number(argument, 1, 4, &n) || n != (unsigned)n)
			return complain("is no level from 1 to 4", argument);
		c->run.level = (unsigned)n;
		break;
	case OPTION_only:
		c->run.only = argument;
		break;
	case OPTION_keep_going:
		c->run.keep_going = true;
		break;
	case OPTION_device:
		if (!tool_read_number(argument, 0, 65535, &n) || n != (unsigned)n)
			return complain("is no number of a device", argument);
		c->run.index = (unsigned)n;
		break;
	case OPTION_soak:
		if (!tool_read_number(argument, 0.1, 1e7, &c->run.soak_seconds))
			return complain("is no time from 0.1 to 10000000 seconds", argument);
		break;
	case OPTION_expected:
		c->run.expected = argument;
		break;
	case OPTION_hbm:
		if (!read_size(argument, &c->run.hbm_bytes))
			return complain("is no size as 64M, 2G or all", argument);
		break;
	case OPTION_json:
		c->json = argument;
		break;
	case OPTION_junit:
		c->junit = argument;
		break;
	case OPTION_html:
		c->html = argument;
		break;
	case OPTION_resume:
		c->run.resume = argument;
		break;
	case OPTION_list:
		c->must_list = true;
		break;
	case OPTION_version:
		c->must_version = true;
		break;
	default:
		c->must_help = true;
	}
	return EXIT_OK;
}

static int parse(struct command *c, int argc, char **argv)
{
	int status = tool_read_options(&line, argc, argv, take_option, c);

	if (status)
		return status;
	if (optind < argc)
		return complain("is no option", argv[optind]);
	return n_to_stdout(c) > 1 ? complain("is given for several reports, and standard output "
					     "takes one", "-") : EXIT_OK;
}

/* ---- what people see ---- */

static void print_numbers(const struct bringup_row *row, FILE *to)
{
	for (unsigned i = 0; i < row->n_numbers; i++) {
		const struct bringup_number *n = &row->numbers[i];

		fprintf(to, "      %-28s measured %10.4g %-6s", n->name, n->measured, n->unit);
		if (n->expected > 0)
			fprintf(to, " expected %10.4g  ratio %.2f\n", n->expected,
				bringup_ratio(n));
		else
			fputs(" no value is expected\n", to);
	}
}

/* Where it goes. */
struct view {
	FILE *to;
	struct progress progress;
	bool is_one;		/* the bar is on the same terminal */
};

static void print_name(const struct bringup_row *row, FILE *to)
{
	fprintf(to, "%2u  %-18s ", row->step->number, row->step->name);
}

/* The step's name before it runs, which a bar says as well, and what it found. */
static void tell(void *arg, const struct bringup_row *row)
{
	struct view *v = arg;
	FILE *to = v->to;

	if (row->seconds < 0) {
		if (!v->is_one)
			print_name(row, to);
	} else {
		progress_clear(&v->progress);
		if (v->is_one)
			print_name(row, to);
		if (row->result == BRINGUP_FAIL)
			progress_alarm(&v->progress);
		fprintf(to, "%s %7.2f s  %s\n", bringup_result_name(row->result), row->seconds,
			row->text);
		print_numbers(row, to);
		if (*row->state)
			fprintf(to, "--- the device then\n%s---\n", row->state);
	}
	/* A step may hang the machine: what was said before it must be seen. */
	fflush(to);
}

static void show(void *arg, const struct bringup_progress *at)
{
	struct view *v = arg;

	progress_show(&v->progress, at);
}

/* One report; false: it could not be written. */
static bool write_report(const char *path, const struct bringup_report *r,
			 void (*write)(const struct bringup_report *r, FILE *to))
{
	FILE *to = !path ? NULL : is_stdout(path) ? stdout : fopen(path, "we");
	bool good;

	if (!path)
		return true;
	good = to;
	if (to) {
		write(r, to);
		good = !fflush(to) && !ferror(to);
	}
	if (to && to != stdout && fclose(to))
		good = false;
	if (!good)
		fprintf(stderr, "tessera-bringup: %s: %s\n", path, strerror(errno));
	return good;
}

static int run(struct command *c)
{
	FILE *to = n_to_stdout(c) ? stderr : stdout;
	struct view view = { .to = to };
	struct bringup_report report;
	struct err err;
	int code, status;

	progress_begin(&view.progress, stderr);
	view.is_one = view.progress.to && isatty(fileno(to));
	c->run.tell = tell;
	c->run.progress = show;
	c->run.arg = &view;
	code = bringup_run(&c->run, &report, &err);
	progress_end(&view.progress);
	if (code) {
		fprintf(stderr, "tessera-bringup: %s\n", err.msg);
		bringup_report_free(&report);
		return EXIT_USAGE;
	}
	fprintf(to, "%s%s%s: %u passed, %u failed, %u skipped, %.1f s\n", report.bus_id,
		*report.bus_id ? " " : "", report.name, report.n_pass, report.n_fail,
		report.n_skip, report.seconds);
	status = report.n_fail || !report.n_pass ? EXIT_FAILED : EXIT_OK;
	if (!write_report(c->json, &report, bringup_write_json) ||
	    !write_report(c->junit, &report, bringup_write_junit) ||
	    !write_report(c->html, &report, bringup_write_html))
		status = EXIT_NOT_WRITTEN;
	bringup_report_free(&report);
	return status;
}

int main(int argc, char **argv)
{
	struct command c = { 0 };
	int status;

	files_open_standard();
	status = parse(&c, argc, argv);
	if (status)
		return status;
	if (c.must_help)
		print_help(stdout);
	else if (c.must_version)
		puts("tessera-bringup " TC_VERSION);
	else if (c.must_list)
		print_list();
	else
		status = run(&c);
	if (fflush(stdout) || ferror(stdout)) {
		fprintf(stderr, "tessera-bringup: the output could not be written: %s\n",
			strerror(errno));
		return EXIT_NOT_WRITTEN;
	}
	return status;
}
