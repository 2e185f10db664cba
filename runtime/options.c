/* SPDX-License-Identifier: Apache-2.0 */
/* Compile options: which device a program is for, and the options by name. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/compile_options.pb-c.h"
#include "runtime/rt_internal.h"

static int device_of(unsigned n_devices, const Rt__BuildOptions *b, unsigned *device,
		     struct err *err)
{
	const Rt__DeviceAssignment *a = b->device_assignment;
	int64_t id = 0;

	if ((b->has_num_replicas && b->num_replicas < 0) ||
	    (b->has_num_partitions && b->num_partitions < 0))
		return err_set(err, ERR_INVALID_ARGUMENT, "the options ask for %lld replicas "
			       "and %lld partitions", (long long)b->num_replicas,
			       (long long)b->num_partitions);
	if ((b->has_num_replicas && b->num_replicas > 1) ||
	    (b->has_num_partitions && b->num_partitions > 1))
		return err_set(err, ERR_UNIMPLEMENTED, "a program for %lld replicas and %lld "
			       "partitions: only programs for one device run yet",
			       (long long)b->num_replicas, (long long)b->num_partitions);
	if (!a || !a->n_computation_devices) {
		if (b->has_device_ordinal && b->device_ordinal > 0)
			id = b->device_ordinal;
	} else {
		if (a->n_computation_devices != 1 ||
		    a->computation_devices[0]->n_replica_device_ids != 1)
			return err_set(err, ERR_UNIMPLEMENTED, "a device assignment of more "
				       "than one device");
		id = a->computation_devices[0]->replica_device_ids[0];
	}
	if (id < 0 || id >= n_devices)
		return err_set(err, ERR_INVALID_ARGUMENT, "the options name device %lld; there "
			       "are %u", (long long)id, n_devices);
	*device = (unsigned)id;
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

int rt_parse_options(unsigned n_devices, const void *p, size_t n, unsigned *device,
		     struct err *err)
{
	bool failed = false;
	ProtobufCAllocator memory = { take, give, &failed };
	Rt__CompileOptions *o = rt__compile_options__unpack(&memory, n, p);
	int code = 0;

	if (failed && !o)
		return err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory");
	if (!o)
		return err_set(err, ERR_INVALID_ARGUMENT, "PJRT_Client_Compile: failed to "
			       "deserialize CompileOptionsProto");
	*device = 0;
	if (o->executable_build_options)
		code = device_of(n_devices, o->executable_build_options, device, err);
	for (size_t i = 0; !code && i < o->n_env_option_overrides; i++)
		code = check_option(o->env_option_overrides[i], err);
	rt__compile_options__free_unpacked(o, &memory);
	return code;
}

int rt_check_options(unsigned n_devices, const void *p, size_t n, struct err *err)
{
	unsigned device;

	return rt_parse_options(n_devices, p, n, &device, err);
}
