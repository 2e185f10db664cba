/* SPDX-License-Identifier: Apache-2.0 */
/* The command trace: what the devices of running processes do, as a file for Perfetto. */
#include <stdio.h>
#include <string.h>

#include "hal/base/clock.h"
#include "tools/xla-smi/trace.h"

#define SLACK_MS 60000u		/* until all have been asked to stop */

static unsigned count(const struct smi_peers *peers)
{
	unsigned n = 0;

	for (unsigned i = 0; i < peers->n; i++)
		n += peers->peer[i].fd >= 0;
	return n;
}

/* How many gave all that they recorded. */
static unsigned fetch(struct smi_peers *peers, struct smi_trace_file *f)
{
	unsigned n = 0;

	if (!smi_begin_trace(f))
		return 0;
	for (unsigned i = 0; i < peers->n; i++) {
		if (peers->peer[i].fd < 0)
			continue;
		smi_mark_trace(f);
		if (smi_fetch(&peers->peer[i], smi_write_trace, f))
			n++;
		else
			smi_take_back(f);
	}
	return n;
}

/* The first that there was of a process. */
static int status_of(const struct smi_peers *peers)
{
	for (unsigned i = 0; i < peers->n; i++)
		if (peers->peer[i].status)
			return peers->peer[i].status;
	return SMI_OK;
}

static int record(const struct smi_options *o, struct smi_peers *peers, const char *path)
{
	struct smi_trace_file *f;
	uint64_t n_events;
	unsigned n = 0, n_devices;
	int64_t began, took;
	int status;

	/* What is in the way of that is said before anybody is troubled. */
	f = smi_open_trace(path, peers);
	if (!f)
		return SMI_FAILED;
	smi_watch_signals(true);
	smi_greet(peers);
	smi_start(peers, (uint32_t)(o->seconds * 1000) + SLACK_MS);
	began = clock_ns();
	if (count(peers))
		smi_record_until(peers, began + (int64_t)(o->seconds * 1e9));
	took = clock_ns() - began;
	smi_stop(peers);
	if (count(peers))
		n = fetch(peers, f);
	n_events = smi_trace_events(f);
	n_devices = smi_trace_devices(f);
	status = smi_close_trace(f, n);
	if (!status && n && strcmp(path, "-"))
		printf("%s: %.1f s of %u devices of %u processes, %llu events; ui.perfetto.dev "
		       "opens it\n", path, (double)took / 1e9, n_devices, n,
		       (unsigned long long)n_events);
	return status ? status : status_of(peers);
}

int smi_trace(const struct smi_options *o, int argc, char **argv)
{
	struct smi_peers peers;
	int status;

	(void)argc;
	if (o->n_devices) {
		fprintf(stderr, "xla-smi: trace records all devices of a process: leave out -d "
			"\"%s\"\n", o->device[0]);
		return SMI_USAGE;
	}
	status = smi_find_peers(o->root, argv[1], &peers);
	if (!status)
		status = record(o, &peers, o->output ? o->output : "tessera-trace.json");
	smi_free_peers(&peers);
	return status;
}
