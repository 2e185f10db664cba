/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Topologies: what a program may be compiled for without a device, as one line of
 * text that is name and serialized form at once.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/rt_internal.h"

#define MOST_DEVICES 65536
#define MOST_CORES 65536

static const struct rt_topology one = {
	.kind = "Tessera T1", .n_devices = 1,
	.target = { .cores = 1, .memory_bytes = (uint64_t)4 << 30 },
};

void rt_topology_of(const struct rt_client *c, struct rt_topology *out)
{
	const struct hal_device_info *info = &c->devices[0].info;

	*out = one;
	memcpy(out->kind, info->name, sizeof(out->kind));
	out->kind[sizeof(out->kind) - 1] = 0;
	out->n_devices = rt_global_count(c);
	out->target.cores = info->cores;
	out->target.memory_bytes = info->hbm_bytes;
}

int rt_topology_set(struct rt_topology *t, const char *name, int64_t value, struct err *err)
{
	if (!strcmp(name, "devices") && value >= 1 && value <= MOST_DEVICES)
		t->n_devices = (unsigned)value;
	else if (!strcmp(name, "cores") && value >= 1 && value <= MOST_CORES)
		t->target.cores = (unsigned)value;
	else if (!strcmp(name, "hbm") && value >= 1)
		t->target.memory_bytes = (uint64_t)value;
	else
		return err_set(err, ERR_INVALID_ARGUMENT, "a topology with %.32s=%lld: give "
			       "devices=1..%d, cores=1..%d, hbm=BYTES", name, (long long)value,
			       MOST_DEVICES, MOST_CORES);
	return 0;
}

int rt_topology_parse(const char *text, size_t n, struct rt_topology *out, struct err *err)
{
	static const char head[] = "tessera";
	char copy[RT_TOPOLOGY_TEXT], *word, *state = NULL, *value, *end;
	struct rt_topology t = one;
	int code = 0;

	if (n >= sizeof(copy) || memchr(text ? text : "", 0, n))
		return err_set(err, ERR_INVALID_ARGUMENT, "a topology's name of %zu bytes", n);
	if (n)
		memcpy(copy, text, n);
	copy[n] = 0;
	if (n && strncmp(copy, head, sizeof(head) - 1))
		return err_set(err, ERR_INVALID_ARGUMENT, "topology \"%.64s\": there are "
			       "\"tessera\" and \"tessera:devices=N,cores=N,hbm=BYTES\"", copy);
	word = copy + (n ? sizeof(head) - 1 : 0);
	if (*word && *word != ':')
		return err_set(err, ERR_INVALID_ARGUMENT, "topology \"%.64s\": \":\" is to "
			       "follow \"tessera\"", copy);
	word = *word ? word + 1 : word;
	for (word = strtok_r(word, ",", &state); word && !code;
	     word = strtok_r(NULL, ",", &state)) {
		value = strchr(word, '=');
		if (!value || value[1] < '0' || value[1] > '9')
			return err_set(err, ERR_INVALID_ARGUMENT, "a topology's \"%.32s\": "
				       "NAME=NUMBER is wanted", word);
		*value++ = 0;
		code = rt_topology_set(&t, word, strtoll(value, &end, 10), err);
		if (!code && *end)
			code = err_set(err, ERR_INVALID_ARGUMENT, "a topology's %s=%.32s is no "
				       "number", word, value);
	}
	if (!code)
		*out = t;
	return code;
}

void rt_topology_write(const struct rt_topology *t, char out[RT_TOPOLOGY_TEXT])
{
	snprintf(out, RT_TOPOLOGY_TEXT, "tessera:devices=%u,cores=%u,hbm=%" PRIu64,
		 t->n_devices, t->target.cores, t->target.memory_bytes);
}
