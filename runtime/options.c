/* SPDX-License-Identifier: Apache-2.0 */
/* Compile options: which device a program is for, and the options by name. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/compile_options.pb-c.h"
#include "runtime/rt_internal.h"

/* The id that replica i runs on, before it is known to be one of a device. */
static int64_t id_of(const Rt__BuildOptions *b, unsigned i)
{
	const Rt__DeviceAssignment *a = b->device_assignment;

	if (a && a->n_computation_devices)
		return a->computation_devices[0]->replica_device_ids[i];
	return i + (b->has_device_ordinal && b->device_ordinal > 0 ? b->device_ordinal : 0);
}

static int check_counts(const Rt__BuildOptions *b, unsigned n_devices, int64_t n, struct err *err)
{
	const Rt__DeviceAssignment *a = b->device_assignment;

	if (n < 1 || (b->has_num_partitions && b->num_partitions < 0))
		return err_set(err, ERR_INVALID_ARGUMENT, "the options ask for %lld replicas "
			       "and %lld partitions", (long long)b->num_replicas,
			       (long long)b->num_partitions);
	if (b->has_num_partitions && b->num_partitions > 1)
		return err_set(err, ERR_UNIMPLEMENTED, "a program for %lld replicas and %lld "
			       "partitions: programs of more than one partition do not run yet",
			       (long long)n, (long long)b->num_partitions);
	if (n > n_devices)
		return err_set(err, ERR_INVALID_ARGUMENT, "a program for %lld replicas; there "
			       "are %u devices", (long long)n, n_devices);
	if (a && a->n_computation_devices > 1)
		return err_set(err, ERR_UNIMPLEMENTED, "a device assignment of %zu partitions: "
			       "programs of more than one do not run yet",
			       a->n_computation_devices);
	if (a && a->n_computation_devices &&
	    a->computation_devices[0]->n_replica_device_ids != (uint64_t)n)
		return err_set(err, ERR_INVALID_ARGUMENT, "a device assignment of %zu devices "
			       "for %lld replicas",
			       a->computation_devices[0]->n_replica_device_ids, (long long)n);
	return 0;
}

static int64_t count_of(const Rt__BuildOptions *b)
{
	return b->has_num_replicas && b->num_replicas ? b->num_replicas : 1;
}

static int place(unsigned n_devices, const Rt__BuildOptions *b, unsigned *devices,
		 unsigned *n, struct err *err)
{
	int64_t replicas = count_of(b);
	int code = check_counts(b, n_devices, replicas, err);

	for (unsigned i = 0; !code && i < replicas; i++) {
		int64_t id = id_of(b, i);

		if (id < 0 || id >= n_devices)
			return err_set(err, ERR_INVALID_ARGUMENT, "the options name device "
				       "%lld; there are %u", (long long)id, n_devices);
		for (unsigned k = 0; k < i; k++)
			if (devices[k] == id)
				return err_set(err, ERR_INVALID_ARGUMENT, "the options name "
					       "device %lld for replicas %u and %u",
					       (long long)id, k, i);
		devices[i] = (unsigned)id;
	}
	*n = (unsigned)replicas;
	return code;
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

int rt_parse_options(unsigned n_devices, const void *p, size_t n, unsigned *devices,
		     unsigned *n_replicas, struct err *err)
{
	bool failed = false;
	ProtobufCAllocator memory = { take, give, &failed };
	Rt__CompileOptions *o;
	int code = unpack(&memory, p, n, &o, err);

	if (code)
		return code;
	devices[0] = 0;
	*n_replicas = 1;
	if (o->executable_build_options)
		code = place(n_devices, o->executable_build_options, devices, n_replicas, err);
	for (size_t i = 0; !code && i < o->n_env_option_overrides; i++)
		code = check_option(o->env_option_overrides[i], err);
	rt__compile_options__free_unpacked(o, &memory);
	return code;
}

int rt_check_options(unsigned n_devices, const void *p, size_t n, struct err *err)
{
	unsigned *devices = malloc(n_devices * sizeof(*devices)), n_replicas;
	int code = devices ? rt_parse_options(n_devices, p, n, devices, &n_replicas, err) :
			     err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory");

	free(devices);
	return code;
}

unsigned rt_count_replicas(const void *p, size_t n)
{
	bool failed = false;
	ProtobufCAllocator memory = { take, give, &failed };
	Rt__CompileOptions *o;
	int64_t count = 1;

	if (unpack(&memory, p, n, &o, NULL))
		return 1;
	if (o->executable_build_options)
		count = count_of(o->executable_build_options);
	rt__compile_options__free_unpacked(o, &memory);
	return count > 0 && count <= UINT32_MAX ? (unsigned)count : 1;
}
