/* SPDX-License-Identifier: Apache-2.0 */
/* xla-smi: what devices there are and who uses them. Exit: 0, 1 failure, 2 usage. */
#include <errno.h>
#include <string.h>

#include "tools/xla-smi/smi.h"

static const char usage[] =
	"usage: xla-smi [--json]\n"
	"Shows devices, their memory and utilisation, and the processes that use them.\n"
	"Reads what processes publish; opens no device and disturbs no work.\n"
	"  --json     the same as JSON, schema tessera-smi/1\n"
	"  --version  the version\n"
	"  --help     this text\n";

/* Exit status: what was printed must have arrived. */
static int end(int status)
{
	if (!fflush(stdout) && !ferror(stdout))
		return status;
	fprintf(stderr, "xla-smi: the output could not be written: %s\n", strerror(errno));
	return 1;
}

static int show(bool as_json)
{
	struct smi_facts facts;
	int status;

	smi_gather(&facts);
	if (as_json)
		smi_json(&facts, stdout);
	else
		smi_table(&facts, stdout);
	status = end(0);
	if (*facts.problem) {
		fprintf(stderr, "xla-smi: %s\n", facts.problem);
		status = 1;
	}
	if (facts.n_unreadable)
		fprintf(stderr, "xla-smi: this user may not read the telemetry pages of %u "
			"processes\n", facts.n_unreadable);
	smi_free(&facts);
	return status;
}

int main(int argc, char **argv)
{
	bool as_json = false;

	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--json")) {
			as_json = true;
		} else if (!strcmp(argv[i], "--help")) {
			fputs(usage, stdout);
			return end(0);
		} else if (!strcmp(argv[i], "--version")) {
			puts("xla-smi 0.1");
			return end(0);
		} else {
			fprintf(stderr, "xla-smi: \"%s\" is no option\n%s", argv[i], usage);
			return 2;
		}
	}
	return show(as_json);
}
