/* SPDX-License-Identifier: Apache-2.0 */
/* Shapes: sizes, and the order in which dims lie in memory. */
#include <string.h>

#include "runtime/rt_internal.h"

uint64_t rt_shape_bytes(const struct rt_shape *s)
{
	uint64_t n = elem_bytes(s->elem);

	for (unsigned d = 0; d < s->rank; d++)
		if (s->dim[d] < 0 || __builtin_mul_overflow(n, (uint64_t)s->dim[d], &n))
			return UINT64_MAX;
	return n;
}

void rt_shape_of(const struct image_shape *s, struct rt_shape *out)
{
	*out = (struct rt_shape){ .elem = (enum elem)s->elem, .rank = s->rank };
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
	int64_t step = elem_bytes(s->elem);

	for (unsigned i = 0; i < s->rank; i++) {
		unsigned d = rt_minor_to_major(s, i);

		stride[d] = step;
		step *= s->dim[d] ? s->dim[d] : 1;
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
