/* SPDX-License-Identifier: Apache-2.0 */
/* Slots that answer UNIMPLEMENTED; README.md lists them. No client calls them for
 * programs of one device in one process. */
#include "runtime/pjrt/wrap.h"

#define REFUSE(name) \
	struct PJRT_Error *pjrt_##name(struct PJRT_##name##_Args *args) \
	{ \
		(void)args; \
		return pjrt_error_text(ERR_UNIMPLEMENTED, \
				       "PJRT_" #name " is not implemented yet"); \
	}

REFUSE(AsyncHostToDeviceTransferManager_AddMetadata)
REFUSE(AsyncHostToDeviceTransferManager_BufferCount)
REFUSE(AsyncHostToDeviceTransferManager_BufferSize)
REFUSE(AsyncHostToDeviceTransferManager_Destroy)
REFUSE(AsyncHostToDeviceTransferManager_Device)
REFUSE(AsyncHostToDeviceTransferManager_RetrieveBuffer)
REFUSE(AsyncHostToDeviceTransferManager_SetBufferError)
REFUSE(AsyncHostToDeviceTransferManager_TransferData)
REFUSE(AsyncHostToDeviceTransferManager_TransferLiteral)
REFUSE(AsyncTrackingEvent_Destroy)
REFUSE(Buffer_CopyRawToHostFuture)
REFUSE(Buffer_DonateWithControlDependency)
REFUSE(Client_CreateAliasBuffer)
REFUSE(Client_CreateBuffersForAsyncHostToDevice)
REFUSE(Client_CreateViewOfDeviceBuffer)
REFUSE(Client_DmaMap)
REFUSE(Client_DmaUnmap)
REFUSE(Client_FulfillAliasBuffer)
REFUSE(Client_Load)
REFUSE(Compile)
REFUSE(CopyToDeviceStream_AddChunk)
REFUSE(CopyToDeviceStream_CurrentBytes)
REFUSE(CopyToDeviceStream_Destroy)
REFUSE(CopyToDeviceStream_GranuleSize)
REFUSE(CopyToDeviceStream_TotalBytes)
REFUSE(Device_CreateAsyncTrackingEvent)
REFUSE(Executable_OptimizedProgram)
REFUSE(ExecuteContext_Create)
REFUSE(ExecuteContext_Destroy)
REFUSE(TopologyDescription_Create)
REFUSE(TopologyDescription_Deserialize)
REFUSE(TopologyDescription_Fingerprint)
REFUSE(TopologyDescription_GetMemorySpaceKindIds)
REFUSE(TopologyDescription_MakeCanonicalShapeForMemorySpace)
REFUSE(TopologyDescription_Serialize)
