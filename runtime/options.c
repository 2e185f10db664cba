/* SPDX-License-Identifier: Apache-2.0 */
/* Compile options: which device a program is for. */
#include <stdlib.h>

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
	rt__compile_options__free_unpacked(o, &memory);
	return code;
}

int rt_check_options(unsigned n_devices, const void *p, size_t n, struct err *err)
{
	unsigned device;

	return rt_parse_options(n_devices, p, n, &device, err);
}
