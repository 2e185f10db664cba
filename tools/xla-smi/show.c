/* SPDX-License-Identifier: Apache-2.0 */
/* Commands that show: once, again and again, what was recorded. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tools/xla-smi/smi.h"

static const struct smi_view views[] = {
#define COMMAND(...)
#define VIEW(command, table, shape, fields) { #command, SMI_##table, SMI_AS_##shape, fields },
#include "tools/xla-smi/commands.def"
#undef COMMAND
#undef VIEW
};

unsigned smi_views(const char *command, const struct smi_view **out)
{
	unsigned n = 0;

	for (unsigned i = 0; i < sizeof(views) / sizeof(*views); i++)
		if (!strcmp(views[i].command, command) && !n++)
			*out = &views[i];
	return n;
}

static bool shows(const struct smi_view *v, unsigned n, enum smi_table_id table)
{
	for (unsigned i = 0; i < n; i++)
		if (v[i].table == table)
			return true;
	return false;
}

void smi_write_node(const struct smi_options *o, const char *command,
		    const struct smi_node *node, bool is_again)
{
	const struct smi_view *v = NULL;
	unsigned n = smi_views(command, &v);

	switch (o->form) {
	case SMI_JSON:
		smi_write_json(node, command, v, n, o->interval > 0, stdout);
		break;
	case SMI_CSV:
		smi_write_csv(node, v->table, !is_again, stdout);
		break;
	case SMI_PROMETHEUS:
		smi_write_prometheus(node, stdout);
		break;
	default:
		smi_write_text(node, v, n, stdout);
	}
}

void smi_complete(const struct smi_options *o, const char *command, struct smi_node *node)
{
	const struct smi_view *v = NULL;
	unsigned n = smi_views(command, &v);

	if (shows(v, n, SMI_paths))
		smi_add_paths(o->root, node);
	if (shows(v, n, SMI_hops))
		smi_add_hops(node);
	if (!shows(v, n, SMI_findings))
		return;
	smi_diagnose(o, node);
	/* What could not be read is a finding. */
	*node->problem = 0;
	node->n_unreadable = 0;
}

static bool has_error(const struct smi_node *node)
{
	for (unsigned i = 0; i < SMI_COUNT(node, findings); i++)
		if (!strcmp(SMI_GET(node, findings, smi_finding)[i].severity, "error"))
			return true;
	return false;
}

static int show_part(const struct smi_options *o, const char *command, struct smi_node *node,
		     bool is_again)
{
	const struct smi_view *v = NULL;
	unsigned n = smi_views(command, &v);
	int status = smi_select(node, o->device, o->n_devices);

	if (status)
		return status;
	smi_write_node(o, command, node, is_again);
	if (*node->problem) {
		fprintf(stderr, "xla-smi: %s\n", node->problem);
		status = SMI_FAILED;
	}
	if (node->n_unreadable)
		fprintf(stderr, "xla-smi: this user may not read the telemetry pages of %u "
			"processes\n", node->n_unreadable);
	return !status && shows(v, n, SMI_findings) && has_error(node) ? SMI_UNHEALTHY : status;
}

int smi_show(const struct smi_options *o, int argc, char **argv)
{
	struct smi_options once = *o;
	struct smi_node node;
	int status;

	(void)argc;
	once.interval = 0;
	smi_gather(o, &node);
	smi_complete(o, argv[0], &node);
	status = show_part(&once, argv[0], &node, false);
	smi_node_free(&node);
	return status;
}

/* ---- again and again ---- */

void smi_compare(struct smi_node *now, const struct smi_node *last)
{
	for (unsigned i = 0; i < SMI_COUNT(now, devices); i++) {
		struct smi_device *d = &SMI_GET(now, devices, smi_device)[i];

		for (unsigned k = 0; k < SMI_COUNT(last, devices); k++) {
			const struct smi_device *e = &SMI_GET(last, devices, smi_device)[k];
			double busy, time;

			if (strcmp(d->kind, "accel") || strcmp(d->bus_id, e->bus_id) ||
			    !d->up_ns.is_known || d->up_ns.n <= e->up_ns.n ||
			    d->busy_compute_ns.n < e->busy_compute_ns.n)
				continue;
			time = (double)(d->up_ns.n - e->up_ns.n);
			busy = (double)(d->busy_compute_ns.n - e->busy_compute_ns.n);
			d->utilisation_percent = busy >= time ? 100 : 100 * busy / time;
		}
	}
}

/* Looks that were missed, as by a process that was stopped, are not made up for. */
static void await(struct timespec *next, double seconds)
{
	struct timespec now;

	next->tv_sec += (time_t)seconds;
	next->tv_nsec += (long)((seconds - (double)(time_t)seconds) * 1e9);
	if (next->tv_nsec >= 1000000000) {
		next->tv_nsec -= 1000000000;
		next->tv_sec++;
	}
	clock_gettime(CLOCK_MONOTONIC, &now);
	if (now.tv_sec > next->tv_sec ||
	    (now.tv_sec == next->tv_sec && now.tv_nsec > next->tv_nsec))
		*next = now;
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, next, NULL) == EINTR)
		;
}

int smi_watch(const struct smi_options *o, int argc, char **argv)
{
	const char *command = argc > 1 ? argv[1] : "list";
	struct smi_node node, last = { .n_unreadable = 0 };
	const struct smi_view *v = NULL;
	struct timespec next;
	int status = SMI_OK;

	if (!smi_views(command, &v)) {
		fprintf(stderr, "xla-smi: \"%s\" can't be watched\nusage: xla-smi watch "
			"[COMMAND]\n", command);
		return SMI_USAGE;
	}
	clock_gettime(CLOCK_MONOTONIC, &next);
	for (uint64_t i = 0; !status && (!o->count || i < o->count); i++) {
		if (i)
			await(&next, o->interval);
		smi_gather(o, &node);
		smi_complete(o, command, &node);
		smi_compare(&node, &last);
		if (o->form == SMI_TABLE && isatty(STDOUT_FILENO))
			fputs("\033[H\033[J", stdout);
		if (o->form == SMI_TABLE)
			printf("%s%s  %s\n", i && !isatty(STDOUT_FILENO) ? "\n" : "", node.time,
			       node.host);
		status = show_part(o, command, &node, i);
		if (status == SMI_UNHEALTHY)
			status = SMI_OK;
		/* Whoever reads has gone, or the disk is full: no reason to go on. */
		if (fflush(stdout) || ferror(stdout))
			status = SMI_FAILED;
		smi_node_free(&last);
		last = node;
	}
	smi_node_free(&last);
	return status;
}

/* ---- a node in a file ---- */

int smi_record(const struct smi_options *o, int argc, char **argv)
{
	struct smi_view all[SMI_TABLES];
	bool is_stdout = !strcmp(argv[1], "-");
	struct smi_node node;
	int status;
	FILE *to;

	(void)argc;
	for (unsigned i = 0; i < SMI_TABLES; i++)
		all[i] = (struct smi_view){ "record", (enum smi_table_id)i, SMI_AS_ROWS, "" };
	smi_gather(o, &node);
	status = smi_select(&node, o->device, o->n_devices);
	if (status) {
		smi_node_free(&node);
		return status;
	}
	smi_add_paths(o->root, &node);
	smi_add_hops(&node);
	smi_diagnose(o, &node);
	to = is_stdout ? stdout : fopen(argv[1], "we");
	if (to)
		smi_write_json(&node, "record", all, SMI_TABLES, false, to);
	if (!to || fflush(to) || ferror(to)) {
		fprintf(stderr, "xla-smi: %s: %s\n", argv[1], strerror(errno));
		status = SMI_FAILED;
	} else if (*node.problem) {
		fprintf(stderr, "xla-smi: %s\n", node.problem);
		status = SMI_FAILED;
	}
	if (to && !is_stdout && fclose(to))
		status = SMI_FAILED;
	smi_node_free(&node);
	return status;
}

int smi_replay(const struct smi_options *o, int argc, char **argv)
{
	const char *command = argc > 2 ? argv[2] : "list";
	struct smi_options once = *o;
	const struct smi_view *v = NULL;
	struct smi_node node;
	int status;

	if (!smi_views(command, &v)) {
		fprintf(stderr, "xla-smi: \"%s\" can't be replayed\nusage: xla-smi replay FILE "
			"[COMMAND]\n", command);
		return SMI_USAGE;
	}
	once.interval = 0;
	smi_node_init(&node);
	status = smi_read_json(argv[1], &node);
	if (!status)
		status = show_part(&once, command, &node, false);
	smi_node_free(&node);
	return status;
}

int smi_print_schema(const struct smi_options *o, int argc, char **argv)
{
	(void)o;
	(void)argc;
	(void)argv;
	smi_write_schema(stdout);
	return SMI_OK;
}
