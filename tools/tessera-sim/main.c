/* SPDX-License-Identifier: Apache-2.0 */
/* tessera-sim: the device model behind vfio-user sockets. Exit: 0, 1 failure, 2 usage. */
#include <errno.h>
#include <getopt.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hal/base/files.h"
#include "runtime/compiler/tc.h"
#include "tools/tessera-sim/server.h"

#define MAX_CLIENTS 64u
#define LIMIT_NS 10000000000ll
#define MAX_LIMIT_MS 86400000

static const char usage[] =
	"usage: tessera-sim [options]\n"
	"Serves model devices on the sockets DIR/0.sock, DIR/1.sock, ..., until it gets SIGTERM.\n"
	"  --devices N       how many (1)\n"
	"  --clients N       how many may use a device at once, 1, 2, 4, ...; each has that\n"
	"                    part of its memory and of its time (1)\n"
	"  --hbm SIZE        memory of each, a power of two such as 4G (4G)\n"
	"  --lanes N         worker threads in all (one for each CPU)\n"
	"  --path NAME       portable, avx2 or avx512 (the best that the CPU has)\n"
	"  --socket-dir DIR  where the sockets are (/run/tessera)\n"
	"  --mode OCTAL      permissions of the sockets (0660)\n"
	"  --group NAME      group of the sockets (the server's)\n"
	"  --client-limit MS how long a client may take to join or for one message (10000)\n"
	"  --version, --help\n"
	"A program reaches device 0 with TESSERA_DEVICES=vfio-user:DIR/0.sock.\n";

/* The model's options as its own parser takes them: "devices=2,hbm=4G". */
struct words {
	char text[256];
	size_t n;
	bool is_full;
};

static void add_word(struct words *w, const char *key, const char *value)
{
	int n = snprintf(w->text + w->n, sizeof(w->text) - w->n, "%s%s=%s", w->n ? "," : "",
			 key, value);

	if (n < 0 || (size_t)n >= sizeof(w->text) - w->n || strchr(value, ','))
		w->is_full = true;
	else
		w->n += (size_t)n;
}

static int fail_usage(const char *text, const char *what)
{
	fprintf(stderr, "tessera-sim: %s \"%s\"\n%s", text, what, usage);
	return 2;
}

/* The exit status of a server that was asked to say something: that must have arrived. */
static int end(void)
{
	if (!fflush(stdout) && !ferror(stdout))
		return 0;
	fprintf(stderr, "tessera-sim: the output could not be written: %s\n", strerror(errno));
	return 1;
}

/* 0, or the exit status; -1: done, if what was said has arrived. */
static int read_option(int c, struct server_options *o, struct words *w)
{
	struct group *group;
	unsigned long n;
	char *end;
	long ms;

	switch (c) {
	case 'n': add_word(w, "devices", optarg); break;
	case 'c':
		n = strtoul(optarg, &end, 10);
		if (!*optarg || *end || *optarg == '-' || !n || n > MAX_CLIENTS || n & (n - 1))
			return fail_usage("no number of clients, a power of two up to 64:",
					  optarg);
		o->clients = (unsigned)n;
		break;
	case 'b': add_word(w, "hbm", optarg); break;
	case 'l': add_word(w, "lanes", optarg); break;
	case 'p': add_word(w, "path", optarg); break;
	case 'd': o->dir = optarg; break;
	case 'm':
		o->mode = (unsigned)strtoul(optarg, &end, 8);
		if (!*optarg || *end || o->mode > 0777)
			return fail_usage("no permissions such as 0660:", optarg);
		break;
	case 'g':
		group = getgrnam(optarg);
		if (!group)
			return fail_usage("there is no group", optarg);
		o->group = (int)group->gr_gid;
		break;
	case 't':
		ms = strtol(optarg, &end, 10);
		if (!*optarg || *end || ms < 1 || ms > MAX_LIMIT_MS)
			return fail_usage("no milliseconds from 1 to 86400000:", optarg);
		o->limit_ns = ms * 1000000ll;
		break;
	case 'v':
		puts("tessera-sim " TC_VERSION);
		return -1;
	case 'h':
		fputs(usage, stdout);
		return -1;
	default:
		fputs(usage, stderr);
		return 2;
	}
	return 0;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "devices", required_argument, NULL, 'n' },
		{ "clients", required_argument, NULL, 'c' },
		{ "hbm", required_argument, NULL, 'b' },
		{ "lanes", required_argument, NULL, 'l' },
		{ "path", required_argument, NULL, 'p' },
		{ "socket-dir", required_argument, NULL, 'd' },
		{ "mode", required_argument, NULL, 'm' },
		{ "group", required_argument, NULL, 'g' },
		{ "client-limit", required_argument, NULL, 't' },
		{ "version", no_argument, NULL, 'v' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	struct server_options o = { .dir = "/run/tessera", .mode = 0660, .group = -1,
				    .limit_ns = LIMIT_NS, .clients = 1 };
	struct words words = { .n = 0 };
	struct err err;
	int c, status;

	files_open_standard();
	while ((c = getopt_long(argc, argv, "", options, NULL)) >= 0) {
		status = read_option(c, &o, &words);
		if (status)
			return status < 0 ? end() : status;
	}
	if (optind < argc)
		return fail_usage("no option:", argv[optind]);
	if (words.is_full || sim_options_parse(words.text, &o.sim, &err))
		return fail_usage("the model's options are wrong:", words.is_full ?
				  words.text : err.msg);
	o.sim.n_functions = o.clients;
	/* BAR2 is all of HBM, and a BAR is a power of two. */
	if (o.sim.hbm_bytes & (o.sim.hbm_bytes - 1))
		return fail_usage("a PCI function shows memory in powers of two:", words.text);
	if (server_run(&o, &err)) {
		fprintf(stderr, "tessera-sim: %s\n", err.msg);
		return 1;
	}
	return 0;
}
