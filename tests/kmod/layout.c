/* SPDX-License-Identifier: Apache-2.0 */
/* The structures' sizes, which never change, and that those of the device are the same in
 * hal/hw: compiled for 64 and 32 bits by make tests. */
#include <stddef.h>

#include "kernel-uapi/include/tessera_drm.h"
#if __SIZEOF_POINTER__ == 8	/* hal/hw wants a C library */
#pragma GCC diagnostic ignored "-Wpadded"	/* what programs never see may have gaps */
#include "kernel-uapi/driver/tessera_abi.h"
#endif

#define HAS(name, bytes) \
	_Static_assert(sizeof(struct drm_tessera_##name) == (bytes), #name); \
	_Static_assert((bytes) % 8 == 0, #name " aligned")

HAS(query, 24);
HAS(device, 104);
HAS(memory, 56);
HAS(error, 40);
HAS(ctx_create, 32);
HAS(ctx_destroy, 8);
HAS(bo_create, 40);
HAS(bo_userptr, 24);
HAS(bo_info, 32);
HAS(map, 24);
HAS(map_op, 32);
HAS(unmap, 16);
HAS(queue_create, 72);
HAS(queue_id, 8);
HAS(program_create, 56);
HAS(program_destroy, 8);
HAS(sync, 16);
HAS(submit, 64);
HAS(desc, 64);
HAS(completion, 32);
HAS(binding, 16);
HAS(program_binding, 16);
HAS(copy_2d, 72);
HAS(identity, 192);
HAS(fault, 64);
HAS(clock, 8);
HAS(trace_start, 32);
HAS(trace_stop, 16);
HAS(trace_record, 64);
HAS(link, 40);
HAS(telemetry, 120);
HAS(ras, 56);
