/* SPDX-License-Identifier: Apache-2.0 */
/* xla-smi: what devices there are and who uses them. Exit: 0, 1 failure, 2 usage. */
#include <stdlib.h>
#include <string.h>

#include "tools/xla-smi/smi.h"

static const char usage[] =
	"usage: xla-smi [--json]\n"
	"Shows devices, their memory and utilisation, and the processes that use them.\n"
	"Reads what processes publish; opens no device and disturbs no work.\n"
	"  --json     the same as JSON, schema tessera-smi/1\n"
	"  --version  the version\n"
	"  --help     this text\n";

int main(int argc, char **argv)
{
	bool as_json = false;
	struct smi_facts *facts;
	int code = 0;

	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--json")) {
			as_json = true;
		} else if (!strcmp(argv[i], "--help")) {
			fputs(usage, stdout);
			return 0;
		} else if (!strcmp(argv[i], "--version")) {
			puts("xla-smi 0.1");
			return 0;
		} else {
			fprintf(stderr, "xla-smi: \"%s\" is no option\n%s", argv[i], usage);
			return 2;
		}
	}
	facts = malloc(sizeof(*facts));
	if (!facts) {
		fputs("xla-smi: out of memory\n", stderr);
		return 1;
	}
	smi_gather(facts);
	if (as_json)
		code = smi_json(facts, stdout);
	else
		smi_table(facts, stdout);
	free(facts);
	return code;
}
