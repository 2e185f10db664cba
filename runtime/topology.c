/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Topologies: what a program may be compiled for without a device, as one line of
 * text that is name and serialized form at once. And shapes as XLA writes them.
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
	out->n_devices = c->n_devices;
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

/* ---- xla.ShapeProto ---- */

/* XLA's numbers of our element types. */
static const uint8_t xla_types[ELEM_COUNT] = {
	[ELEM_PRED] = 1, [ELEM_S8] = 2, [ELEM_S16] = 3, [ELEM_S32] = 4, [ELEM_S64] = 5,
	[ELEM_U8] = 6, [ELEM_U16] = 7, [ELEM_U32] = 8, [ELEM_U64] = 9, [ELEM_F16] = 10,
	[ELEM_F32] = 11, [ELEM_F64] = 12, [ELEM_C64] = 15, [ELEM_BF16] = 16, [ELEM_TOKEN] = 17,
	[ELEM_C128] = 18, [ELEM_F8E5M2] = 19, [ELEM_F8E4M3FN] = 20, [ELEM_S4] = 21,
	[ELEM_U4] = 22, [ELEM_F8E4M3B11FNUZ] = 23, [ELEM_F8E5M2FNUZ] = 24,
	[ELEM_F8E4M3FNUZ] = 25, [ELEM_S2] = 26, [ELEM_U2] = 27, [ELEM_F8E4M3] = 28,
	[ELEM_F8E3M4] = 29, [ELEM_F4E2M1FN] = 32, [ELEM_F8E8M0FNU] = 33,
};

enum { HOST_SPACE = 5 };	/* XLA's memory space of pinned host memory */

static uint8_t *put_varint(uint8_t *p, uint64_t v)
{
	for (; v > 0x7f; v >>= 7)
		*p++ = (uint8_t)(v | 0x80);
	*p++ = (uint8_t)v;
	return p;
}

static uint8_t *put(uint8_t *p, unsigned field, uint64_t v)
{
	return put_varint(put_varint(p, field << 3), v);
}

int rt_shape_proto(const struct rt_shape *s, enum rt_memory_kind kind, void **out,
		   size_t *bytes, struct err *err)
{
	enum { MOST = 32 + IMAGE_MAX_RANK * (11 + 2 + 2) };
	uint8_t layout[MOST], *l = layout, *all = malloc(2 * MOST), *p = all;

	if (!all)
		return err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory");
	for (unsigned d = s->rank; d-- > 0;)
		l = put(l, 1, d);		/* minor_to_major */
	if (kind != RT_DEVICE)
		l = put(l, 8, HOST_SPACE);	/* memory_space */
	p = put(p, 2, xla_types[s->elem]);	/* element_type */
	for (unsigned d = 0; d < s->rank; d++)
		p = put(p, 3, (uint64_t)s->dim[d]);
	p = put_varint(p, 5 << 3 | 2);		/* layout */
	p = put_varint(p, (uint64_t)(l - layout));
	memcpy(p, layout, (size_t)(l - layout));
	p += l - layout;
	for (unsigned d = 0; d < s->rank; d++)
		p = put(p, 6, 0);		/* is_dynamic_dimension */
	*out = all;
	*bytes = (size_t)(p - all);
	return 0;
}
