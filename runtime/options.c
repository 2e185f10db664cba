/* SPDX-License-Identifier: Apache-2.0 */
/* Compile options: which device a program is for. */
#include "runtime/compile_options.pb-c.h"
#include "runtime/rt_internal.h"

static int device_of(struct rt_client *c, const Rt__BuildOptions *b, unsigned *device,
		     struct err *err)
{
	const Rt__DeviceAssignment *a = b->device_assignment;
	int64_t id;

	if ((b->has_num_replicas && b->num_replicas > 1) ||
	    (b->has_num_partitions && b->num_partitions > 1))
		return err_set(err, ERR_UNIMPLEMENTED, "a program for %lld replicas and %lld "
			       "partitions: only programs for one device run yet",
			       (long long)b->num_replicas, (long long)b->num_partitions);
	if (!a || !a->n_computation_devices) {
		/* -1 says nothing. */
		id = b->has_device_ordinal && b->device_ordinal > 0 ? b->device_ordinal : 0;
	} else {
		if (a->n_computation_devices != 1 ||
		    a->computation_devices[0]->n_replica_device_ids != 1)
			return err_set(err, ERR_UNIMPLEMENTED, "a device assignment of more "
				       "than one device");
		id = a->computation_devices[0]->replica_device_ids[0];
	}
	if (id < 0 || id >= rt_device_count(c))
		return err_set(err, ERR_INVALID_ARGUMENT, "the options name device %lld; there "
			       "are %u", (long long)id, rt_device_count(c));
	*device = (unsigned)id;
	return 0;
}

int rt_parse_options(struct rt_client *c, const void *p, size_t n, unsigned *device,
		     struct err *err)
{
	Rt__CompileOptions *o = rt__compile_options__unpack(NULL, n, p);
	int code = 0;

	if (!o)
		return err_set(err, ERR_INVALID_ARGUMENT, "PJRT_Client_Compile: failed to "
			       "deserialize CompileOptionsProto");
	*device = 0;
	if (o->executable_build_options)
		code = device_of(c, o->executable_build_options, device, err);
	rt__compile_options__free_unpacked(o, NULL);
	return code;
}
