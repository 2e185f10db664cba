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
	unsigned devices[DEVICES] = { UINT32_MAX, UINT32_MAX }, replicas = 0;
	struct err err;
	int code = rt_parse_options(rt_device_count(client), data, n, devices, &replicas, &err);

	if (code ? code != err.code || !*err.msg :
	    !replicas || replicas > DEVICES || replicas != rt_count_replicas(data, n) ||
	    devices[replicas - 1] >= DEVICES || devices[0] >= DEVICES ||
	    (replicas > 1 && devices[0] == devices[1])) {
		fprintf(stderr, "code %d, %u replicas, devices %u and %u\n", code, replicas,
			devices[0], devices[1]);
		abort();
	}
	return 0;
}
