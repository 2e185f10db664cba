/* SPDX-License-Identifier: Apache-2.0 */
/* The structures' sizes, which never change: compiled for 64 and 32 bits by make tests. */
#include "kernel-uapi/include/tessera_drm.h"

#define HAS(name, bytes) \
	_Static_assert(sizeof(struct drm_tessera_##name) == (bytes), #name); \
	_Static_assert((bytes) % 8 == 0, #name " aligned")

HAS(query, 24);
HAS(device, 96);
HAS(memory, 56);
HAS(error, 40);
HAS(ctx_create, 16);
HAS(ctx_destroy, 8);
HAS(bo_create, 40);
HAS(bo_userptr, 24);
HAS(bo_info, 32);
HAS(map, 40);
HAS(unmap, 16);
HAS(queue_create, 72);
HAS(queue_id, 8);
HAS(program_create, 48);
HAS(program_destroy, 8);
HAS(sync, 16);
HAS(submit, 56);
HAS(reset, 8);
