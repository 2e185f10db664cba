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
	unsigned device = UINT32_MAX;
	struct err err;
	int code = rt_parse_options(rt_device_count(client), data, n, &device, &err);

	if (code ? code != err.code || !*err.msg : device >= DEVICES) {
		fprintf(stderr, "code %d, device %u\n", code, device);
		abort();
	}
	return 0;
}
