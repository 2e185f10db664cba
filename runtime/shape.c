/* SPDX-License-Identifier: Apache-2.0 */
/* Shapes: sizes, and the order in which dims lie in memory; shapes and device assignments as
 * frameworks are answered, in XLA's protobufs. */
#include <stdlib.h>
#include <string.h>

#include "runtime/compile_options.pb-c.h"
#include "runtime/rt_internal.h"
#include "runtime/shape.pb-c.h"

uint64_t rt_shape_bytes(const struct rt_shape *s)
{
	uint64_t n = elem_bytes(s->elem);
	bool is_empty = false, is_large = false;

	for (unsigned d = 0; d < s->rank; d++) {
		if (s->dim[d] < 0)
			return UINT64_MAX;
		is_empty |= !s->dim[d];
		is_large |= __builtin_mul_overflow(n, (uint64_t)s->dim[d], &n);
	}
	return is_empty ? 0 : is_large ? UINT64_MAX : n;
}

void rt_shape_of(const struct image_shape *s, struct rt_shape *out)
{
	*out = (struct rt_shape){ .elem = (enum elem)s->elem, .rank = s->rank,
				  .bounded = s->bounded };
	memcpy(out->dim, s->dim, s->rank * sizeof(*s->dim));
	memcpy(out->order, s->order, sizeof(s->order));
}

bool rt_is_row_major(const struct rt_shape *s)
{
	for (unsigned k = 0; k < s->rank; k++)
		if (s->order[k])
			return false;
	return true;
}

unsigned rt_minor_to_major(const struct rt_shape *s, unsigned i)
{
	unsigned k = s->rank - 1 - i;

	return rt_is_row_major(s) ? k : s->order[k];
}

void rt_dense_strides(const struct rt_shape *s, int64_t *stride)
{
	uint64_t step = elem_bytes(s->elem);

	/* Of an empty array dims may be of any size: its strides are none that anybody walks. */
	for (unsigned i = 0; i < s->rank; i++) {
		unsigned d = rt_minor_to_major(s, i);

		stride[d] = (int64_t)step;
		step *= s->dim[d] ? (uint64_t)s->dim[d] : 1;
	}
}

void rt_memory_order(const struct rt_shape *s, const int64_t *strides, int64_t *dim,
		     int64_t *stride)
{
	for (unsigned k = 0; k < s->rank; k++) {
		unsigned d = rt_minor_to_major(s, s->rank - 1 - k);

		dim[k] = s->dim[d];
		stride[k] = strides[d];
	}
}

/* ---- as protobufs ---- */

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

int rt_shape_proto(const struct rt_shape *s, enum rt_memory_kind kind, void **out,
		   size_t *bytes, struct err *err)
{
	Rt__Layout layout = RT__LAYOUT__INIT;
	Rt__Shape shape = RT__SHAPE__INIT;
	protobuf_c_boolean fixed[IMAGE_MAX_RANK] = { 0 };
	int64_t order[IMAGE_MAX_RANK], dims[IMAGE_MAX_RANK];
	uint8_t *p;

	for (unsigned d = 0; d < s->rank; d++) {
		order[d] = rt_minor_to_major(s, d);
		dims[d] = s->dim[d];
	}
	layout.n_minor_to_major = s->rank;
	layout.minor_to_major = order;
	layout.has_memory_space = kind != RT_DEVICE;
	layout.memory_space = HOST_SPACE;
	shape.has_element_type = true;
	shape.element_type = xla_types[s->elem];
	shape.n_dimensions = s->rank;
	shape.dimensions = dims;
	shape.layout = s->elem == ELEM_TOKEN ? NULL : &layout;
	shape.n_is_dynamic_dimension = s->rank;
	shape.is_dynamic_dimension = fixed;
	p = malloc(rt__shape__get_packed_size(&shape));
	if (!p)
		return err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory");
	*bytes = rt__shape__pack(&shape, p);
	*out = p;
	return 0;
}

int rt_assignment_proto(const int64_t *devices, struct rt_counts n, void **out, size_t *bytes,
			struct err *err)
{
	Rt__DeviceAssignment a = RT__DEVICE_ASSIGNMENT__INIT;
	Rt__ComputationDevices *all = calloc(n.partitions, sizeof(*all));
	Rt__ComputationDevices **list = calloc(n.partitions, sizeof(*list));
	int64_t *ids = calloc((size_t)n.replicas * n.partitions, sizeof(*ids));
	uint8_t *p = NULL;

	for (unsigned k = 0; all && list && ids && k < n.partitions; k++) {
		rt__computation_devices__init(&all[k]);
		list[k] = &all[k];
		all[k].n_replica_device_ids = n.replicas;
		all[k].replica_device_ids = ids + (size_t)k * n.replicas;
		for (unsigned r = 0; r < n.replicas; r++)
			all[k].replica_device_ids[r] = devices[r * n.partitions + k];
	}
	a.has_replica_count = a.has_computation_count = true;
	a.replica_count = (int32_t)n.replicas;
	a.computation_count = (int32_t)n.partitions;
	a.n_computation_devices = n.partitions;
	a.computation_devices = list;
	if (all && list && ids)
		p = malloc(rt__device_assignment__get_packed_size(&a));
	if (p)
		*bytes = rt__device_assignment__pack(&a, p);
	free(all);
	free(list);
	free(ids);
	*out = p;
	return p ? 0 : err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory");
}
