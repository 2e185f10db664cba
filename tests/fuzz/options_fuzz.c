/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hostile compile options: the proto that a framework hands over with a program. What is
 * taken must name a device that is there.
 */
#include <stdio.h>
#include <stdlib.h>

#include "runtime/rt_internal.h"

#define DEVICES 2u

static struct rt_client *client;

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	struct rt_client_options o = { .devices = "sim:devices=2,hbm=16M,lanes=1" };
	struct err err;

	(void)argc;
	(void)argv;
	if (rt_client_create(&o, &client, &err)) {
		fprintf(stderr, "%s\n", err.msg);
		exit(1);
	}
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	unsigned devices[DEVICES] = { UINT32_MAX, UINT32_MAX }, members;
	struct rt_counts counts = { 0 }, same = rt_count_members(data, n);
	struct err err;
	const struct rt_ids ids = { rt_device_count(client), 0, rt_device_count(client) };
	int code = rt_parse_options(ids, data, n, devices, &counts, &err);

	members = counts.replicas * counts.partitions;
	if (code ? code != err.code || !*err.msg :
	    !counts.replicas || !counts.partitions || members > DEVICES ||
	    counts.replicas != same.replicas || counts.partitions != same.partitions ||
	    devices[members - 1] >= DEVICES || devices[0] >= DEVICES ||
	    (members > 1 && devices[0] == devices[1])) {
		fprintf(stderr, "code %d, %u replicas of %u, devices %u and %u\n", code,
			counts.replicas, counts.partitions, devices[0], devices[1]);
		abort();
	}
	return 0;
}
