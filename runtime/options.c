/* SPDX-License-Identifier: Apache-2.0 */
/* Compile options: which devices a program is for, and the options by name. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/compile_options.pb-c.h"
#include "runtime/rt_internal.h"

#define MOST_MEMBERS 65536	/* of a program, as of a topology's devices */

/* The id that a member runs on, before it is known to be one of a device. */
static int64_t id_of(const Rt__BuildOptions *b, struct rt_ids ids, unsigned replica,
		     unsigned partition, struct rt_counts n)
{
	const Rt__DeviceAssignment *a = b->device_assignment;
	int64_t ordinal = b->has_device_ordinal && b->device_ordinal > 0 ? b->device_ordinal : 0;

	if (a && a->n_computation_devices)
		return a->computation_devices[partition]->replica_device_ids[replica];
	return replica * n.partitions + partition + ordinal +
	       (n.replicas * n.partitions <= ids.n_own ? ids.first : 0);
}

static int64_t replicas_of(const Rt__BuildOptions *b)
{
	return b->has_num_replicas && b->num_replicas ? b->num_replicas : 1;
}

static int64_t partitions_of(const Rt__BuildOptions *b)
{
	return b->has_num_partitions && b->num_partitions ? b->num_partitions : 1;
}

/* The assignment, if one is given, has an id for each member. */
static int check_assignment(const Rt__DeviceAssignment *a, int64_t replicas, int64_t partitions,
			    struct err *err)
{
	if (!a || !a->n_computation_devices)
		return 0;
	if (a->n_computation_devices != (uint64_t)partitions)
		return err_set(err, ERR_INVALID_ARGUMENT, "a device assignment of %zu partitions "
			       "for a program of %lld", a->n_computation_devices,
			       (long long)partitions);
	for (size_t i = 0; i < a->n_computation_devices; i++)
		if (a->computation_devices[i]->n_replica_device_ids != (uint64_t)replicas)
			return err_set(err, ERR_INVALID_ARGUMENT, "a device assignment of %zu "
				       "devices for %lld replicas, of partition %zu",
				       a->computation_devices[i]->n_replica_device_ids,
				       (long long)replicas, i);
	return 0;
}

static int check_counts(const Rt__BuildOptions *b, unsigned n_devices, struct err *err)
{
	int64_t r = replicas_of(b), p = partitions_of(b);

	if (r < 1 || p < 1)
		return err_set(err, ERR_INVALID_ARGUMENT, "the options ask for %lld replicas "
			       "and %lld partitions", (long long)b->num_replicas,
			       (long long)b->num_partitions);
	if (r > n_devices || p > n_devices || r * p > n_devices)
		return err_set(err, ERR_INVALID_ARGUMENT, "a program for %lld replicas of %lld "
			       "partitions, a device for each; there are %u devices", (long long)r,
			       (long long)p, n_devices);
	return check_assignment(b->device_assignment, r, p, err);
}

static int place(struct rt_ids ids, const Rt__BuildOptions *b, unsigned *devices,
		 struct rt_counts *n, struct err *err)
{
	int code = check_counts(b, ids.n, err);

	if (code)
		return code;
	*n = (struct rt_counts){ (unsigned)replicas_of(b), (unsigned)partitions_of(b) };
	for (unsigned i = 0; i < n->replicas * n->partitions; i++) {
		int64_t id = id_of(b, ids, i / n->partitions, i % n->partitions, *n);

		if (id < 0 || id >= ids.n)
			return err_set(err, ERR_INVALID_ARGUMENT, "the options name device "
				       "%lld; there are %u", (long long)id, ids.n);
		for (unsigned k = 0; k < i; k++)
			if (devices[k] == id)
				return err_set(err, ERR_INVALID_ARGUMENT, "the options name "
					       "device %lld for members %u and %u (member = "
					       "replica * %u + partition)", (long long)id, k, i,
					       n->partitions);
		devices[i] = (unsigned)id;
	}
	return 0;
}

enum option_type { BOOL, INT, FLOAT, STRING };

static const struct { const char *name; enum option_type type; } options[] = {
#define OPTION(name, type, what) { #name, type },
#include "runtime/compile_option.def"
#undef OPTION
};

enum { N_OPTIONS = sizeof(options) / sizeof(*options) };

/* Frameworks send what their users wrote: numbers and truths may come as text. */
static bool is_valid(enum option_type type, const Rt__OptionValue *v)
{
	const char *text = v->string_field;
	char *end = NULL;

	switch (type) {
	case BOOL:
		return v->has_bool_field || (text && (!strcmp(text, "true") ||
		       !strcmp(text, "false") || !strcmp(text, "True") ||
		       !strcmp(text, "False")));
	case INT:
		if (text)
			(void)!strtoll(text, &end, 10);
		return v->has_int_field || (text && *text && !*end);
	case FLOAT:
		if (text)
			(void)!strtod(text, &end);
		return v->has_int_field || v->has_double_field || (text && *text && !*end);
	default:
		return text;
	}
}

static int check_option(const Rt__Option *o, struct err *err)
{
	static const char *const types[] = { "bool", "int", "float", "string" };
	const char *name = o->key ? o->key : "";
	char known[400] = "", value[64];
	const Rt__OptionValue *v = o->value;

	for (unsigned i = 0; i < N_OPTIONS; i++) {
		size_t n = strlen(known);

		snprintf(known + n, sizeof(known) - n, "%s%s", i ? ", " : "", options[i].name);
		if (strcmp(name, options[i].name))
			continue;
		if (v && is_valid(options[i].type, v))
			return 0;
		if (v && v->has_bool_field)
			snprintf(value, sizeof(value), "%s", v->bool_field ? "true" : "false");
		else if (v && v->has_int_field)
			snprintf(value, sizeof(value), "%lld", (long long)v->int_field);
		else if (v && v->has_double_field)
			snprintf(value, sizeof(value), "%g", v->double_field);
		else
			snprintf(value, sizeof(value), "%s", v && v->string_field ?
				 v->string_field : "");
		return err_set(err, ERR_INVALID_ARGUMENT, "While setting option %s, '%s' is not "
			       "a valid %s value.", name, value, types[options[i].type]);
	}
	return err_set(err, ERR_INVALID_ARGUMENT, "No such compile option: '%.60s'. Leave it "
		       "out of compiler_options here; those that are taken: %s", name, known);
}

static void *take(void *failed, size_t n)
{
	void *p = malloc(n);

	if (!p)
		*(bool *)failed = true;
	return p;
}

static void give(void *failed, void *p)
{
	(void)failed;
	free(p);
}

static int unpack(ProtobufCAllocator *memory, const void *p, size_t n,
		  Rt__CompileOptions **out, struct err *err)
{
	*out = rt__compile_options__unpack(memory, n, p);
	if (*out)
		return 0;
	if (*(bool *)memory->allocator_data)
		return err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory");
	return err_set(err, ERR_INVALID_ARGUMENT, "PJRT_Client_Compile: failed to "
		       "deserialize CompileOptionsProto");
}

int rt_parse_options(struct rt_ids ids, const void *p, size_t n, unsigned *devices,
		     struct rt_counts *counts, struct err *err)
{
	bool failed = false;
	ProtobufCAllocator memory = { take, give, &failed };
	Rt__CompileOptions *o;
	int code = unpack(&memory, p, n, &o, err);

	if (code)
		return code;
	devices[0] = ids.first;
	*counts = (struct rt_counts){ 1, 1 };
	if (o->executable_build_options)
		code = place(ids, o->executable_build_options, devices, counts, err);
	for (size_t i = 0; !code && i < o->n_env_option_overrides; i++)
		code = check_option(o->env_option_overrides[i], err);
	rt__compile_options__free_unpacked(o, &memory);
	return code;
}

int rt_check_options(unsigned n_devices, const void *p, size_t n, struct err *err)
{
	unsigned *devices = malloc(n_devices * sizeof(*devices));
	struct rt_counts counts;
	int code = devices ? rt_parse_options((struct rt_ids){ n_devices, 0, n_devices }, p, n,
					       devices, &counts, err) :
			     err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory");

	free(devices);
	return code;
}

struct rt_counts rt_count_members(const void *p, size_t n)
{
	struct rt_counts one = { 1, 1 };
	bool failed = false;
	ProtobufCAllocator memory = { take, give, &failed };
	Rt__CompileOptions *o;
	int64_t replicas = 1, partitions = 1;

	if (unpack(&memory, p, n, &o, NULL))
		return one;
	if (o->executable_build_options) {
		replicas = replicas_of(o->executable_build_options);
		partitions = partitions_of(o->executable_build_options);
	}
	rt__compile_options__free_unpacked(o, &memory);
	if (replicas < 1 || partitions < 1 || replicas > MOST_MEMBERS / partitions)
		return one;
	return (struct rt_counts){ (unsigned)replicas, (unsigned)partitions };
}
