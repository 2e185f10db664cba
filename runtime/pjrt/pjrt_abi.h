/* SPDX-License-Identifier: Apache-2.0 */
/* The PJRT C API 0.112 as laid out in memory. Made by gen_abi.py: do not edit. */
#ifndef PJRT_PJRT_ABI_H
#define PJRT_PJRT_ABI_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	PJRT_Extension_Type_Gpu_Custom_Call = 0,
	PJRT_Extension_Type_Profiler = 1,
	PJRT_Extension_Type_Custom_Partitioner = 2,
	PJRT_Extension_Type_Stream = 3,
	PJRT_Extension_Type_Layouts = 4,
	PJRT_Extension_Type_FFI = 5,
	PJRT_Extension_Type_MemoryDescriptions = 6,
	PJRT_Extension_Type_Triton = 7,
	PJRT_Extension_Type_RawBuffer = 8,
	PJRT_Extension_Type_PhaseCompile = 9,
	PJRT_Extension_Type_Example = 10,
	PJRT_Extension_Type_Unknown = 11,
	PJRT_Extension_Type_CrossHostTransfers = 12,
	PJRT_Extension_Type_ExecutableMetadata = 13,
	PJRT_Extension_Type_Callback = 14,
	PJRT_Extension_Type_HostAllocator = 15,
	PJRT_Extension_Type_TpuTopology = 16,
	PJRT_Extension_Type_TpuExecutable = 17,
	PJRT_Extension_Type_Megascale = 18,
	PJRT_Extension_Type_Shardings = 19,
	PJRT_Extension_Type_AbiVersion = 20,
	PJRT_Extension_Type_Collectives = 21,
	PJRT_Extension_Type_MultiSlice = 22,
	PJRT_Extension_Type_HostMemoryAllocator = 23,
	PJRT_Extension_Type_XlaTransform = 24,
};

enum {
	PJRT_Error_Code_OK = 0,
	PJRT_Error_Code_CANCELLED = 1,
	PJRT_Error_Code_UNKNOWN = 2,
	PJRT_Error_Code_INVALID_ARGUMENT = 3,
	PJRT_Error_Code_DEADLINE_EXCEEDED = 4,
	PJRT_Error_Code_NOT_FOUND = 5,
	PJRT_Error_Code_ALREADY_EXISTS = 6,
	PJRT_Error_Code_PERMISSION_DENIED = 7,
	PJRT_Error_Code_RESOURCE_EXHAUSTED = 8,
	PJRT_Error_Code_FAILED_PRECONDITION = 9,
	PJRT_Error_Code_ABORTED = 10,
	PJRT_Error_Code_OUT_OF_RANGE = 11,
	PJRT_Error_Code_UNIMPLEMENTED = 12,
	PJRT_Error_Code_INTERNAL = 13,
	PJRT_Error_Code_UNAVAILABLE = 14,
	PJRT_Error_Code_DATA_LOSS = 15,
	PJRT_Error_Code_UNAUTHENTICATED = 16,
};

enum {
	PJRT_NamedValue_kString = 0,
	PJRT_NamedValue_kInt64 = 1,
	PJRT_NamedValue_kInt64List = 2,
	PJRT_NamedValue_kFloat = 3,
	PJRT_NamedValue_kBool = 4,
};

enum {
	PJRT_ProcessState_kUnspecified = 0,
	PJRT_ProcessState_kUninitialized = 1,
	PJRT_ProcessState_kDisconnected = 2,
	PJRT_ProcessState_kConnected = 3,
	PJRT_ProcessState_kError = 4,
};

enum {
	PJRT_Buffer_Type_INVALID = 0,
	PJRT_Buffer_Type_PRED = 1,
	PJRT_Buffer_Type_S8 = 2,
	PJRT_Buffer_Type_S16 = 3,
	PJRT_Buffer_Type_S32 = 4,
	PJRT_Buffer_Type_S64 = 5,
	PJRT_Buffer_Type_U8 = 6,
	PJRT_Buffer_Type_U16 = 7,
	PJRT_Buffer_Type_U32 = 8,
	PJRT_Buffer_Type_U64 = 9,
	PJRT_Buffer_Type_F16 = 10,
	PJRT_Buffer_Type_F32 = 11,
	PJRT_Buffer_Type_F64 = 12,
	PJRT_Buffer_Type_BF16 = 13,
	PJRT_Buffer_Type_C64 = 14,
	PJRT_Buffer_Type_C128 = 15,
	PJRT_Buffer_Type_F8E5M2 = 16,
	PJRT_Buffer_Type_F8E4M3FN = 17,
	PJRT_Buffer_Type_F8E4M3B11FNUZ = 18,
	PJRT_Buffer_Type_F8E5M2FNUZ = 19,
	PJRT_Buffer_Type_F8E4M3FNUZ = 20,
	PJRT_Buffer_Type_S4 = 21,
	PJRT_Buffer_Type_U4 = 22,
	PJRT_Buffer_Type_TOKEN = 23,
	PJRT_Buffer_Type_S2 = 24,
	PJRT_Buffer_Type_U2 = 25,
	PJRT_Buffer_Type_F8E4M3 = 26,
	PJRT_Buffer_Type_F8E3M4 = 27,
	PJRT_Buffer_Type_F8E8M0FNU = 28,
	PJRT_Buffer_Type_F4E2M1FN = 29,
	PJRT_Buffer_Type_S1 = 30,
	PJRT_Buffer_Type_U1 = 31,
};

enum {
	PJRT_HostBufferSemantics_kImmutableOnlyDuringCall = 0,
	PJRT_HostBufferSemantics_kImmutableUntilTransferCompletes = 1,
	PJRT_HostBufferSemantics_kImmutableZeroCopy = 2,
	PJRT_HostBufferSemantics_kMutableZeroCopy = 3,
};

enum {
	PJRT_Buffer_MemoryLayout_Type_Tiled = 0,
	PJRT_Buffer_MemoryLayout_Type_Strides = 1,
};

enum {
	PJRT_FFI_HANDLER_TRAITS_COMMAND_BUFFER_COMPATIBLE = 1,
};

struct PJRT_AsyncHostToDeviceTransferManager;
struct PJRT_AsyncTrackingEvent;
struct PJRT_Buffer;
struct PJRT_CallbackError;
struct PJRT_Client;
struct PJRT_CopyToDeviceStream;
struct PJRT_Device;
struct PJRT_DeviceAssignmentSerialized;
struct PJRT_DeviceDescription;
struct PJRT_Device_Attributes;
struct PJRT_Error;
struct PJRT_Error_PayloadVisitor;
struct PJRT_Event;
struct PJRT_Event_OnReadyCallback;
struct PJRT_Executable;
struct PJRT_ExecuteContext;
struct PJRT_FFI_Register_Handler;
struct PJRT_FFI_Type_Register;
struct PJRT_FFI_UserData_Add;
struct PJRT_FulfillAliasBufferCallback;
struct PJRT_Gpu_Register_Custom_Call;
struct PJRT_HloOutputCallback;
struct PJRT_KeyValueGetCallback;
struct PJRT_KeyValueGetCallback_ValueDeleter;
struct PJRT_KeyValuePutCallback;
struct PJRT_KeyValueTryGetCallback;
struct PJRT_KeyValueTryGetCallback_ValueDeleter;
struct PJRT_Layouts_MemoryLayout;
struct PJRT_Layouts_MemoryLayout_Destroy;
struct PJRT_Layouts_MemoryLayout_Serialize;
struct PJRT_Layouts_PJRT_Buffer_MemoryLayout;
struct PJRT_Layouts_PJRT_Client_GetDefaultLayout;
struct PJRT_Layouts_PJRT_Executable_GetOutputLayouts;
struct PJRT_Layouts_PJRT_Executable_GetParameterLayouts;
struct PJRT_Layouts_PJRT_Topology_GetDefaultLayout;
struct PJRT_Layouts_SerializedLayout;
struct PJRT_LoadedExecutable;
struct PJRT_Memory;
struct PJRT_MultiSlice_Config;
struct PJRT_RecvCallback;
struct PJRT_Register_Batch_Partitionable;
struct PJRT_Register_Custom_Partitioner;
struct PJRT_SendCallback;
struct PJRT_SerializedCompileOptions;
struct PJRT_SerializedExecutable;
struct PJRT_SerializedTopology;
struct PJRT_Shardings_PJRT_Executable_OutputShardings;
struct PJRT_Shardings_PJRT_Executable_ParameterShardings;
struct PJRT_TopologyDescription;

struct PJRT_Extension_Base {
	size_t struct_size;
	int type;
	struct PJRT_Extension_Base *next;
};
#define PJRT_Extension_Base_SIZE 24u
_Static_assert(sizeof(struct PJRT_Extension_Base) == 24, "PJRT_Extension_Base");
_Static_assert(offsetof(struct PJRT_Extension_Base, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_Extension_Base, type) == 8, "type");
_Static_assert(offsetof(struct PJRT_Extension_Base, next) == 16, "next");

struct PJRT_Api_Version {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	int major_version;
	int minor_version;
};
#define PJRT_Api_Version_SIZE 24u
_Static_assert(sizeof(struct PJRT_Api_Version) == 24, "PJRT_Api_Version");
_Static_assert(offsetof(struct PJRT_Api_Version, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_Api_Version, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_Api_Version, major_version) == 16, "major_version");
_Static_assert(offsetof(struct PJRT_Api_Version, minor_version) == 20, "minor_version");

struct PJRT_Error_Destroy_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	struct PJRT_Error *error;
};
#define PJRT_Error_Destroy_Args_SIZE 24u
#define PJRT_Error_Destroy_Args_OLDEST 24u
_Static_assert(sizeof(struct PJRT_Error_Destroy_Args) == 24, "PJRT_Error_Destroy_Args");
_Static_assert(offsetof(struct PJRT_Error_Destroy_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_Error_Destroy_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_Error_Destroy_Args, error) == 16, "error");

struct PJRT_Error_Message_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	const struct PJRT_Error *error;
	const char *message;
	size_t message_size;
};
#define PJRT_Error_Message_Args_SIZE 40u
#define PJRT_Error_Message_Args_OLDEST 40u
_Static_assert(sizeof(struct PJRT_Error_Message_Args) == 40, "PJRT_Error_Message_Args");
_Static_assert(offsetof(struct PJRT_Error_Message_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_Error_Message_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_Error_Message_Args, error) == 16, "error");
_Static_assert(offsetof(struct PJRT_Error_Message_Args, message) == 24, "message");
_Static_assert(offsetof(struct PJRT_Error_Message_Args, message_size) == 32, "message_size");

struct PJRT_Error_FunctionTable {
	size_t struct_size;
	size_t instance_size;
	struct PJRT_Extension_Base *extension_start;
	void *destroy;
	void *message;
	void *get_code;
	void *for_each_payload;
};
#define PJRT_Error_FunctionTable_SIZE 56u
_Static_assert(sizeof(struct PJRT_Error_FunctionTable) == 56, "PJRT_Error_FunctionTable");
_Static_assert(offsetof(struct PJRT_Error_FunctionTable, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_Error_FunctionTable, instance_size) == 8, "instance_size");
_Static_assert(offsetof(struct PJRT_Error_FunctionTable, extension_start) == 16, "extension_start");
_Static_assert(offsetof(struct PJRT_Error_FunctionTable, destroy) == 24, "destroy");
_Static_assert(offsetof(struct PJRT_Error_FunctionTable, message) == 32, "message");
_Static_assert(offsetof(struct PJRT_Error_FunctionTable, get_code) == 40, "get_code");
_Static_assert(offsetof(struct PJRT_Error_FunctionTable, for_each_payload) == 48, "for_each_payload");

struct PJRT_Error_GetCode_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	const struct PJRT_Error *error;
	int code;
};
#define PJRT_Error_GetCode_Args_SIZE 28u
#define PJRT_Error_GetCode_Args_OLDEST 28u
_Static_assert(sizeof(struct PJRT_Error_GetCode_Args) == 32, "PJRT_Error_GetCode_Args");
_Static_assert(offsetof(struct PJRT_Error_GetCode_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_Error_GetCode_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_Error_GetCode_Args, error) == 16, "error");
_Static_assert(offsetof(struct PJRT_Error_GetCode_Args, code) == 24, "code");

struct PJRT_Error_ForEachPayload_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	const struct PJRT_Error *error;
	void *visitor;
	void *user_arg;
};
#define PJRT_Error_ForEachPayload_Args_SIZE 40u
#define PJRT_Error_ForEachPayload_Args_OLDEST 40u
_Static_assert(sizeof(struct PJRT_Error_ForEachPayload_Args) == 40, "PJRT_Error_ForEachPayload_Args");
_Static_assert(offsetof(struct PJRT_Error_ForEachPayload_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_Error_ForEachPayload_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_Error_ForEachPayload_Args, error) == 16, "error");
_Static_assert(offsetof(struct PJRT_Error_ForEachPayload_Args, visitor) == 24, "visitor");
_Static_assert(offsetof(struct PJRT_Error_ForEachPayload_Args, user_arg) == 32, "user_arg");

struct PJRT_NamedValue {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	const char *name;
	size_t name_size;
	int type;
	union {
		const char *string_value;
		int64_t int64_value;
		const int64_t *int64_array_value;
		float float_value;
		_Bool bool_value;
	};
	size_t value_size;
};
#define PJRT_NamedValue_SIZE 56u
_Static_assert(sizeof(struct PJRT_NamedValue) == 56, "PJRT_NamedValue");
_Static_assert(offsetof(struct PJRT_NamedValue, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_NamedValue, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_NamedValue, name) == 16, "name");
_Static_assert(offsetof(struct PJRT_NamedValue, name_size) == 24, "name_size");
_Static_assert(offsetof(struct PJRT_NamedValue, type) == 32, "type");
_Static_assert(offsetof(struct PJRT_NamedValue, string_value) == 40, "string_value");
_Static_assert(offsetof(struct PJRT_NamedValue, int64_value) == 40, "int64_value");
_Static_assert(offsetof(struct PJRT_NamedValue, int64_array_value) == 40, "int64_array_value");
_Static_assert(offsetof(struct PJRT_NamedValue, float_value) == 40, "float_value");
_Static_assert(offsetof(struct PJRT_NamedValue, bool_value) == 40, "bool_value");
_Static_assert(offsetof(struct PJRT_NamedValue, value_size) == 48, "value_size");

struct PJRT_Plugin_Initialize_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
};
#define PJRT_Plugin_Initialize_Args_SIZE 16u
#define PJRT_Plugin_Initialize_Args_OLDEST 16u
_Static_assert(sizeof(struct PJRT_Plugin_Initialize_Args) == 16, "PJRT_Plugin_Initialize_Args");
_Static_assert(offsetof(struct PJRT_Plugin_Initialize_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_Plugin_Initialize_Args, extension_start) == 8, "extension_start");

struct PJRT_Plugin_Attributes_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	const struct PJRT_NamedValue *attributes;
	size_t num_attributes;
};
#define PJRT_Plugin_Attributes_Args_SIZE 32u
#define PJRT_Plugin_Attributes_Args_OLDEST 32u
_Static_assert(sizeof(struct PJRT_Plugin_Attributes_Args) == 32, "PJRT_Plugin_Attributes_Args");
_Static_assert(offsetof(struct PJRT_Plugin_Attributes_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_Plugin_Attributes_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_Plugin_Attributes_Args, attributes) == 16, "attributes");
_Static_assert(offsetof(struct PJRT_Plugin_Attributes_Args, num_attributes) == 24, "num_attributes");

struct PJRT_Event_Destroy_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	struct PJRT_Event *event;
};
#define PJRT_Event_Destroy_Args_SIZE 24u
#define PJRT_Event_Destroy_Args_OLDEST 24u
_Static_assert(sizeof(struct PJRT_Event_Destroy_Args) == 24, "PJRT_Event_Destroy_Args");
_Static_assert(offsetof(struct PJRT_Event_Destroy_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_Event_Destroy_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_Event_Destroy_Args, event) == 16, "event");

struct PJRT_Event_IsReady_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	struct PJRT_Event *event;
	_Bool is_ready;
};
#define PJRT_Event_IsReady_Args_SIZE 25u
#define PJRT_Event_IsReady_Args_OLDEST 25u
_Static_assert(sizeof(struct PJRT_Event_IsReady_Args) == 32, "PJRT_Event_IsReady_Args");
_Static_assert(offsetof(struct PJRT_Event_IsReady_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_Event_IsReady_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_Event_IsReady_Args, event) == 16, "event");
_Static_assert(offsetof(struct PJRT_Event_IsReady_Args, is_ready) == 24, "is_ready");

struct PJRT_Event_Error_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	struct PJRT_Event *event;
};
#define PJRT_Event_Error_Args_SIZE 24u
#define PJRT_Event_Error_Args_OLDEST 24u
_Static_assert(sizeof(struct PJRT_Event_Error_Args) == 24, "PJRT_Event_Error_Args");
_Static_assert(offsetof(struct PJRT_Event_Error_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_Event_Error_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_Event_Error_Args, event) == 16, "event");

struct PJRT_Event_Await_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	struct PJRT_Event *event;
};
#define PJRT_Event_Await_Args_SIZE 24u
#define PJRT_Event_Await_Args_OLDEST 24u
_Static_assert(sizeof(struct PJRT_Event_Await_Args) == 24, "PJRT_Event_Await_Args");
_Static_assert(offsetof(struct PJRT_Event_Await_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_Event_Await_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_Event_Await_Args, event) == 16, "event");

struct PJRT_Event_OnReady_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	struct PJRT_Event *event;
	void *callback;
	void *user_arg;
};
#define PJRT_Event_OnReady_Args_SIZE 40u
#define PJRT_Event_OnReady_Args_OLDEST 40u
_Static_assert(sizeof(struct PJRT_Event_OnReady_Args) == 40, "PJRT_Event_OnReady_Args");
_Static_assert(offsetof(struct PJRT_Event_OnReady_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_Event_OnReady_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_Event_OnReady_Args, event) == 16, "event");
_Static_assert(offsetof(struct PJRT_Event_OnReady_Args, callback) == 24, "callback");
_Static_assert(offsetof(struct PJRT_Event_OnReady_Args, user_arg) == 32, "user_arg");

struct PJRT_Event_Create_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	struct PJRT_Event *event;
};
#define PJRT_Event_Create_Args_SIZE 24u
#define PJRT_Event_Create_Args_OLDEST 24u
_Static_assert(sizeof(struct PJRT_Event_Create_Args) == 24, "PJRT_Event_Create_Args");
_Static_assert(offsetof(struct PJRT_Event_Create_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_Event_Create_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_Event_Create_Args, event) == 16, "event");

struct PJRT_Event_Set_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	struct PJRT_Event *event;
	int error_code;
	const char *error_message;
	size_t error_message_size;
};
#define PJRT_Event_Set_Args_SIZE 48u
#define PJRT_Event_Set_Args_OLDEST 48u
_Static_assert(sizeof(struct PJRT_Event_Set_Args) == 48, "PJRT_Event_Set_Args");
_Static_assert(offsetof(struct PJRT_Event_Set_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_Event_Set_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_Event_Set_Args, event) == 16, "event");
_Static_assert(offsetof(struct PJRT_Event_Set_Args, error_code) == 24, "error_code");
_Static_assert(offsetof(struct PJRT_Event_Set_Args, error_message) == 32, "error_message");
_Static_assert(offsetof(struct PJRT_Event_Set_Args, error_message_size) == 40, "error_message_size");

struct PJRT_Memory_FunctionTable {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	size_t instance_struct_size;
	void *get_user_data;
	void *set_user_data;
};
#define PJRT_Memory_FunctionTable_SIZE 40u
_Static_assert(sizeof(struct PJRT_Memory_FunctionTable) == 40, "PJRT_Memory_FunctionTable");
_Static_assert(offsetof(struct PJRT_Memory_FunctionTable, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_Memory_FunctionTable, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_Memory_FunctionTable, instance_struct_size) == 16, "instance_struct_size");
_Static_assert(offsetof(struct PJRT_Memory_FunctionTable, get_user_data) == 24, "get_user_data");
_Static_assert(offsetof(struct PJRT_Memory_FunctionTable, set_user_data) == 32, "set_user_data");

struct PJRT_KeyValueGetCallback_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	const char *key;
	size_t key_size;
	int timeout_in_ms;
	void *callback_error;
	void *user_arg;
	char *value;
	size_t value_size;
	void *value_deleter_callback;
};
#define PJRT_KeyValueGetCallback_Args_SIZE 80u
#define PJRT_KeyValueGetCallback_Args_OLDEST 80u
_Static_assert(sizeof(struct PJRT_KeyValueGetCallback_Args) == 80, "PJRT_KeyValueGetCallback_Args");
_Static_assert(offsetof(struct PJRT_KeyValueGetCallback_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_KeyValueGetCallback_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_KeyValueGetCallback_Args, key) == 16, "key");
_Static_assert(offsetof(struct PJRT_KeyValueGetCallback_Args, key_size) == 24, "key_size");
_Static_assert(offsetof(struct PJRT_KeyValueGetCallback_Args, timeout_in_ms) == 32, "timeout_in_ms");
_Static_assert(offsetof(struct PJRT_KeyValueGetCallback_Args, callback_error) == 40, "callback_error");
_Static_assert(offsetof(struct PJRT_KeyValueGetCallback_Args, user_arg) == 48, "user_arg");
_Static_assert(offsetof(struct PJRT_KeyValueGetCallback_Args, value) == 56, "value");
_Static_assert(offsetof(struct PJRT_KeyValueGetCallback_Args, value_size) == 64, "value_size");
_Static_assert(offsetof(struct PJRT_KeyValueGetCallback_Args, value_deleter_callback) == 72, "value_deleter_callback");

struct PJRT_KeyValueTryGetCallback_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	const char *key;
	size_t key_size;
	void *callback_error;
	void *user_arg;
	char *value;
	size_t value_size;
	void *value_deleter_callback;
};
#define PJRT_KeyValueTryGetCallback_Args_SIZE 72u
#define PJRT_KeyValueTryGetCallback_Args_OLDEST 72u
_Static_assert(sizeof(struct PJRT_KeyValueTryGetCallback_Args) == 72, "PJRT_KeyValueTryGetCallback_Args");
_Static_assert(offsetof(struct PJRT_KeyValueTryGetCallback_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_KeyValueTryGetCallback_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_KeyValueTryGetCallback_Args, key) == 16, "key");
_Static_assert(offsetof(struct PJRT_KeyValueTryGetCallback_Args, key_size) == 24, "key_size");
_Static_assert(offsetof(struct PJRT_KeyValueTryGetCallback_Args, callback_error) == 32, "callback_error");
_Static_assert(offsetof(struct PJRT_KeyValueTryGetCallback_Args, user_arg) == 40, "user_arg");
_Static_assert(offsetof(struct PJRT_KeyValueTryGetCallback_Args, value) == 48, "value");
_Static_assert(offsetof(struct PJRT_KeyValueTryGetCallback_Args, value_size) == 56, "value_size");
_Static_assert(offsetof(struct PJRT_KeyValueTryGetCallback_Args, value_deleter_callback) == 64, "value_deleter_callback");

struct PJRT_KeyValuePutCallback_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	const char *key;
	size_t key_size;
	const char *value;
	size_t value_size;
	void *callback_error;
	void *user_arg;
};
#define PJRT_KeyValuePutCallback_Args_SIZE 64u
#define PJRT_KeyValuePutCallback_Args_OLDEST 64u
_Static_assert(sizeof(struct PJRT_KeyValuePutCallback_Args) == 64, "PJRT_KeyValuePutCallback_Args");
_Static_assert(offsetof(struct PJRT_KeyValuePutCallback_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_KeyValuePutCallback_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_KeyValuePutCallback_Args, key) == 16, "key");
_Static_assert(offsetof(struct PJRT_KeyValuePutCallback_Args, key_size) == 24, "key_size");
_Static_assert(offsetof(struct PJRT_KeyValuePutCallback_Args, value) == 32, "value");
_Static_assert(offsetof(struct PJRT_KeyValuePutCallback_Args, value_size) == 40, "value_size");
_Static_assert(offsetof(struct PJRT_KeyValuePutCallback_Args, callback_error) == 48, "callback_error");
_Static_assert(offsetof(struct PJRT_KeyValuePutCallback_Args, user_arg) == 56, "user_arg");

struct PJRT_Client_Create_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	const struct PJRT_NamedValue *create_options;
	size_t num_options;
	void *kv_get_callback;
	void *kv_get_user_arg;
	void *kv_put_callback;
	void *kv_put_user_arg;
	struct PJRT_Client *client;
	void *kv_try_get_callback;
	void *kv_try_get_user_arg;
};
#define PJRT_Client_Create_Args_SIZE 88u
#define PJRT_Client_Create_Args_OLDEST 88u
_Static_assert(sizeof(struct PJRT_Client_Create_Args) == 88, "PJRT_Client_Create_Args");
_Static_assert(offsetof(struct PJRT_Client_Create_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_Client_Create_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_Client_Create_Args, create_options) == 16, "create_options");
_Static_assert(offsetof(struct PJRT_Client_Create_Args, num_options) == 24, "num_options");
_Static_assert(offsetof(struct PJRT_Client_Create_Args, kv_get_callback) == 32, "kv_get_callback");
_Static_assert(offsetof(struct PJRT_Client_Create_Args, kv_get_user_arg) == 40, "kv_get_user_arg");
_Static_assert(offsetof(struct PJRT_Client_Create_Args, kv_put_callback) == 48, "kv_put_callback");
_Static_assert(offsetof(struct PJRT_Client_Create_Args, kv_put_user_arg) == 56, "kv_put_user_arg");
_Static_assert(offsetof(struct PJRT_Client_Create_Args, client) == 64, "client");
_Static_assert(offsetof(struct PJRT_Client_Create_Args, kv_try_get_callback) == 72, "kv_try_get_callback");
_Static_assert(offsetof(struct PJRT_Client_Create_Args, kv_try_get_user_arg) == 80, "kv_try_get_user_arg");

struct PJRT_Client_Destroy_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	struct PJRT_Client *client;
};
#define PJRT_Client_Destroy_Args_SIZE 24u
#define PJRT_Client_Destroy_Args_OLDEST 24u
_Static_assert(sizeof(struct PJRT_Client_Destroy_Args) == 24, "PJRT_Client_Destroy_Args");
_Static_assert(offsetof(struct PJRT_Client_Destroy_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_Client_Destroy_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_Client_Destroy_Args, client) == 16, "client");

struct PJRT_Client_PlatformName_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	struct PJRT_Client *client;
	const char *platform_name;
	size_t platform_name_size;
};
#define PJRT_Client_PlatformName_Args_SIZE 40u
#define PJRT_Client_PlatformName_Args_OLDEST 40u
_Static_assert(sizeof(struct PJRT_Client_PlatformName_Args) == 40, "PJRT_Client_PlatformName_Args");
_Static_assert(offsetof(struct PJRT_Client_PlatformName_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_Client_PlatformName_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_Client_PlatformName_Args, client) == 16, "client");
_Static_assert(offsetof(struct PJRT_Client_PlatformName_Args, platform_name) == 24, "platform_name");
_Static_assert(offsetof(struct PJRT_Client_PlatformName_Args, platform_name_size) == 32, "platform_name_size");

struct PJRT_Client_ProcessIndex_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	struct PJRT_Client *client;
	int process_index;
};
#define PJRT_Client_ProcessIndex_Args_SIZE 28u
#define PJRT_Client_ProcessIndex_Args_OLDEST 28u
_Static_assert(sizeof(struct PJRT_Client_ProcessIndex_Args) == 32, "PJRT_Client_ProcessIndex_Args");
_Static_assert(offsetof(struct PJRT_Client_ProcessIndex_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_Client_ProcessIndex_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_Client_ProcessIndex_Args, client) == 16, "client");
_Static_assert(offsetof(struct PJRT_Client_ProcessIndex_Args, process_index) == 24, "process_index");

struct PJRT_Client_PlatformVersion_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	struct PJRT_Client *client;
	const char *platform_version;
	size_t platform_version_size;
};
#define PJRT_Client_PlatformVersion_Args_SIZE 40u
#define PJRT_Client_PlatformVersion_Args_OLDEST 40u
_Static_assert(sizeof(struct PJRT_Client_PlatformVersion_Args) == 40, "PJRT_Client_PlatformVersion_Args");
_Static_assert(offsetof(struct PJRT_Client_PlatformVersion_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_Client_PlatformVersion_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_Client_PlatformVersion_Args, client) == 16, "client");
_Static_assert(offsetof(struct PJRT_Client_PlatformVersion_Args, platform_version) == 24, "platform_version");
_Static_assert(offsetof(struct PJRT_Client_PlatformVersion_Args, platform_version_size) == 32, "platform_version_size");

struct PJRT_Client_TopologyDescription_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	struct PJRT_Client *client;
	struct PJRT_TopologyDescription *topology;
};
#define PJRT_Client_TopologyDescription_Args_SIZE 32u
#define PJRT_Client_TopologyDescription_Args_OLDEST 32u
_Static_assert(sizeof(struct PJRT_Client_TopologyDescription_Args) == 32, "PJRT_Client_TopologyDescription_Args");
_Static_assert(offsetof(struct PJRT_Client_TopologyDescription_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_Client_TopologyDescription_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_Client_TopologyDescription_Args, client) == 16, "client");
_Static_assert(offsetof(struct PJRT_Client_TopologyDescription_Args, topology) == 24, "topology");

struct PJRT_Client_Devices_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	struct PJRT_Client *client;
	struct PJRT_Device * const*devices;
	size_t num_devices;
};
#define PJRT_Client_Devices_Args_SIZE 40u
#define PJRT_Client_Devices_Args_OLDEST 40u
_Static_assert(sizeof(struct PJRT_Client_Devices_Args) == 40, "PJRT_Client_Devices_Args");
_Static_assert(offsetof(struct PJRT_Client_Devices_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_Client_Devices_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_Client_Devices_Args, client) == 16, "client");
_Static_assert(offsetof(struct PJRT_Client_Devices_Args, devices) == 24, "devices");
_Static_assert(offsetof(struct PJRT_Client_Devices_Args, num_devices) == 32, "num_devices");

struct PJRT_Client_AddressableDevices_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	struct PJRT_Client *client;
	struct PJRT_Device * const*addressable_devices;
	size_t num_addressable_devices;
};
#define PJRT_Client_AddressableDevices_Args_SIZE 40u
#define PJRT_Client_AddressableDevices_Args_OLDEST 40u
_Static_assert(sizeof(struct PJRT_Client_AddressableDevices_Args) == 40, "PJRT_Client_AddressableDevices_Args");
_Static_assert(offsetof(struct PJRT_Client_AddressableDevices_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_Client_AddressableDevices_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_Client_AddressableDevices_Args, client) == 16, "client");
_Static_assert(offsetof(struct PJRT_Client_AddressableDevices_Args, addressable_devices) == 24, "addressable_devices");
_Static_assert(offsetof(struct PJRT_Client_AddressableDevices_Args, num_addressable_devices) == 32, "num_addressable_devices");

struct PJRT_Client_LookupDevice_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	struct PJRT_Client *client;
	int id;
	struct PJRT_Device *device;
};
#define PJRT_Client_LookupDevice_Args_SIZE 40u
#define PJRT_Client_LookupDevice_Args_OLDEST 40u
_Static_assert(sizeof(struct PJRT_Client_LookupDevice_Args) == 40, "PJRT_Client_LookupDevice_Args");
_Static_assert(offsetof(struct PJRT_Client_LookupDevice_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_Client_LookupDevice_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_Client_LookupDevice_Args, client) == 16, "client");
_Static_assert(offsetof(struct PJRT_Client_LookupDevice_Args, id) == 24, "id");
_Static_assert(offsetof(struct PJRT_Client_LookupDevice_Args, device) == 32, "device");

struct PJRT_Client_LookupAddressableDevice_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	struct PJRT_Client *client;
	int local_hardware_id;
	struct PJRT_Device *addressable_device;
};
#define PJRT_Client_LookupAddressableDevice_Args_SIZE 40u
#define PJRT_Client_LookupAddressableDevice_Args_OLDEST 40u
_Static_assert(sizeof(struct PJRT_Client_LookupAddressableDevice_Args) == 40, "PJRT_Client_LookupAddressableDevice_Args");
_Static_assert(offsetof(struct PJRT_Client_LookupAddressableDevice_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_Client_LookupAddressableDevice_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_Client_LookupAddressableDevice_Args, client) == 16, "client");
_Static_assert(offsetof(struct PJRT_Client_LookupAddressableDevice_Args, local_hardware_id) == 24, "local_hardware_id");
_Static_assert(offsetof(struct PJRT_Client_LookupAddressableDevice_Args, addressable_device) == 32, "addressable_device");

struct PJRT_ProcessInfo {
	size_t struct_size;
	int task_id;
	uint64_t incarnation_id;
	int state;
	int error_code;
	const char *error_message;
	size_t error_message_size;
};
#define PJRT_ProcessInfo_SIZE 48u
_Static_assert(sizeof(struct PJRT_ProcessInfo) == 48, "PJRT_ProcessInfo");
_Static_assert(offsetof(struct PJRT_ProcessInfo, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_ProcessInfo, task_id) == 8, "task_id");
_Static_assert(offsetof(struct PJRT_ProcessInfo, incarnation_id) == 16, "incarnation_id");
_Static_assert(offsetof(struct PJRT_ProcessInfo, state) == 24, "state");
_Static_assert(offsetof(struct PJRT_ProcessInfo, error_code) == 28, "error_code");
_Static_assert(offsetof(struct PJRT_ProcessInfo, error_message) == 32, "error_message");
_Static_assert(offsetof(struct PJRT_ProcessInfo, error_message_size) == 40, "error_message_size");

struct PJRT_Client_UpdateGlobalProcessInfo_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	struct PJRT_Client *client;
	struct PJRT_ProcessInfo *process_infos;
	size_t num_process_infos;
};
#define PJRT_Client_UpdateGlobalProcessInfo_Args_SIZE 40u
#define PJRT_Client_UpdateGlobalProcessInfo_Args_OLDEST 40u
_Static_assert(sizeof(struct PJRT_Client_UpdateGlobalProcessInfo_Args) == 40, "PJRT_Client_UpdateGlobalProcessInfo_Args");
_Static_assert(offsetof(struct PJRT_Client_UpdateGlobalProcessInfo_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_Client_UpdateGlobalProcessInfo_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_Client_UpdateGlobalProcessInfo_Args, client) == 16, "client");
_Static_assert(offsetof(struct PJRT_Client_UpdateGlobalProcessInfo_Args, process_infos) == 24, "process_infos");
_Static_assert(offsetof(struct PJRT_Client_UpdateGlobalProcessInfo_Args, num_process_infos) == 32, "num_process_infos");

struct PJRT_Client_AddressableMemories_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	struct PJRT_Client *client;
	struct PJRT_Memory * const*addressable_memories;
	size_t num_addressable_memories;
};
#define PJRT_Client_AddressableMemories_Args_SIZE 40u
#define PJRT_Client_AddressableMemories_Args_OLDEST 40u
_Static_assert(sizeof(struct PJRT_Client_AddressableMemories_Args) == 40, "PJRT_Client_AddressableMemories_Args");
_Static_assert(offsetof(struct PJRT_Client_AddressableMemories_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_Client_AddressableMemories_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_Client_AddressableMemories_Args, client) == 16, "client");
_Static_assert(offsetof(struct PJRT_Client_AddressableMemories_Args, addressable_memories) == 24, "addressable_memories");
_Static_assert(offsetof(struct PJRT_Client_AddressableMemories_Args, num_addressable_memories) == 32, "num_addressable_memories");

struct PJRT_Program {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	char *code;
	size_t code_size;
	const char *format;
	size_t format_size;
};
#define PJRT_Program_SIZE 48u
_Static_assert(sizeof(struct PJRT_Program) == 48, "PJRT_Program");
_Static_assert(offsetof(struct PJRT_Program, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_Program, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_Program, code) == 16, "code");
_Static_assert(offsetof(struct PJRT_Program, code_size) == 24, "code_size");
_Static_assert(offsetof(struct PJRT_Program, format) == 32, "format");
_Static_assert(offsetof(struct PJRT_Program, format_size) == 40, "format_size");

struct PJRT_Client_Compile_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	struct PJRT_Client *client;
	const struct PJRT_Program *program;
	const char *compile_options;
	size_t compile_options_size;
	struct PJRT_LoadedExecutable *executable;
};
#define PJRT_Client_Compile_Args_SIZE 56u
#define PJRT_Client_Compile_Args_OLDEST 56u
_Static_assert(sizeof(struct PJRT_Client_Compile_Args) == 56, "PJRT_Client_Compile_Args");
_Static_assert(offsetof(struct PJRT_Client_Compile_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_Client_Compile_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_Client_Compile_Args, client) == 16, "client");
_Static_assert(offsetof(struct PJRT_Client_Compile_Args, program) == 24, "program");
_Static_assert(offsetof(struct PJRT_Client_Compile_Args, compile_options) == 32, "compile_options");
_Static_assert(offsetof(struct PJRT_Client_Compile_Args, compile_options_size) == 40, "compile_options_size");
_Static_assert(offsetof(struct PJRT_Client_Compile_Args, executable) == 48, "executable");

struct PJRT_Client_Load_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	struct PJRT_Client *client;
	struct PJRT_Executable *executable;
	const char *compile_options;
	size_t compile_options_size;
	struct PJRT_LoadedExecutable *loaded_executable;
};
#define PJRT_Client_Load_Args_SIZE 56u
#define PJRT_Client_Load_Args_OLDEST 56u
_Static_assert(sizeof(struct PJRT_Client_Load_Args) == 56, "PJRT_Client_Load_Args");
_Static_assert(offsetof(struct PJRT_Client_Load_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_Client_Load_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_Client_Load_Args, client) == 16, "client");
_Static_assert(offsetof(struct PJRT_Client_Load_Args, executable) == 24, "executable");
_Static_assert(offsetof(struct PJRT_Client_Load_Args, compile_options) == 32, "compile_options");
_Static_assert(offsetof(struct PJRT_Client_Load_Args, compile_options_size) == 40, "compile_options_size");
_Static_assert(offsetof(struct PJRT_Client_Load_Args, loaded_executable) == 48, "loaded_executable");

struct PJRT_Client_DefaultDeviceAssignment_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	struct PJRT_Client *client;
	int num_replicas;
	int num_partitions;
	size_t default_assignment_size;
	int *default_assignment;
};
#define PJRT_Client_DefaultDeviceAssignment_Args_SIZE 48u
#define PJRT_Client_DefaultDeviceAssignment_Args_OLDEST 48u
_Static_assert(sizeof(struct PJRT_Client_DefaultDeviceAssignment_Args) == 48, "PJRT_Client_DefaultDeviceAssignment_Args");
_Static_assert(offsetof(struct PJRT_Client_DefaultDeviceAssignment_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_Client_DefaultDeviceAssignment_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_Client_DefaultDeviceAssignment_Args, client) == 16, "client");
_Static_assert(offsetof(struct PJRT_Client_DefaultDeviceAssignment_Args, num_replicas) == 24, "num_replicas");
_Static_assert(offsetof(struct PJRT_Client_DefaultDeviceAssignment_Args, num_partitions) == 28, "num_partitions");
_Static_assert(offsetof(struct PJRT_Client_DefaultDeviceAssignment_Args, default_assignment_size) == 32, "default_assignment_size");
_Static_assert(offsetof(struct PJRT_Client_DefaultDeviceAssignment_Args, default_assignment) == 40, "default_assignment");

struct PJRT_Client_DmaMap_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	struct PJRT_Client *client;
	void *data;
	size_t size;
};
#define PJRT_Client_DmaMap_Args_SIZE 40u
#define PJRT_Client_DmaMap_Args_OLDEST 40u
_Static_assert(sizeof(struct PJRT_Client_DmaMap_Args) == 40, "PJRT_Client_DmaMap_Args");
_Static_assert(offsetof(struct PJRT_Client_DmaMap_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_Client_DmaMap_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_Client_DmaMap_Args, client) == 16, "client");
_Static_assert(offsetof(struct PJRT_Client_DmaMap_Args, data) == 24, "data");
_Static_assert(offsetof(struct PJRT_Client_DmaMap_Args, size) == 32, "size");

struct PJRT_Client_DmaUnmap_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	struct PJRT_Client *client;
	void *data;
};
#define PJRT_Client_DmaUnmap_Args_SIZE 32u
#define PJRT_Client_DmaUnmap_Args_OLDEST 32u
_Static_assert(sizeof(struct PJRT_Client_DmaUnmap_Args) == 32, "PJRT_Client_DmaUnmap_Args");
_Static_assert(offsetof(struct PJRT_Client_DmaUnmap_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_Client_DmaUnmap_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_Client_DmaUnmap_Args, client) == 16, "client");
_Static_assert(offsetof(struct PJRT_Client_DmaUnmap_Args, data) == 24, "data");

struct PJRT_AsyncHostToDeviceTransferManager_Destroy_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	struct PJRT_AsyncHostToDeviceTransferManager *transfer_manager;
};
#define PJRT_AsyncHostToDeviceTransferManager_Destroy_Args_SIZE 24u
#define PJRT_AsyncHostToDeviceTransferManager_Destroy_Args_OLDEST 24u
_Static_assert(sizeof(struct PJRT_AsyncHostToDeviceTransferManager_Destroy_Args) == 24, "PJRT_AsyncHostToDeviceTransferManager_Destroy_Args");
_Static_assert(offsetof(struct PJRT_AsyncHostToDeviceTransferManager_Destroy_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_AsyncHostToDeviceTransferManager_Destroy_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_AsyncHostToDeviceTransferManager_Destroy_Args, transfer_manager) == 16, "transfer_manager");

struct PJRT_AsyncHostToDeviceTransferManager_TransferData_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	struct PJRT_AsyncHostToDeviceTransferManager *transfer_manager;
	int buffer_index;
	const void *data;
	int64_t offset;
	int64_t transfer_size;
	_Bool is_last_transfer;
	struct PJRT_Event *done_with_h2d_transfer;
};
#define PJRT_AsyncHostToDeviceTransferManager_TransferData_Args_SIZE 72u
#define PJRT_AsyncHostToDeviceTransferManager_TransferData_Args_OLDEST 72u
_Static_assert(sizeof(struct PJRT_AsyncHostToDeviceTransferManager_TransferData_Args) == 72, "PJRT_AsyncHostToDeviceTransferManager_TransferData_Args");
_Static_assert(offsetof(struct PJRT_AsyncHostToDeviceTransferManager_TransferData_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_AsyncHostToDeviceTransferManager_TransferData_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_AsyncHostToDeviceTransferManager_TransferData_Args, transfer_manager) == 16, "transfer_manager");
_Static_assert(offsetof(struct PJRT_AsyncHostToDeviceTransferManager_TransferData_Args, buffer_index) == 24, "buffer_index");
_Static_assert(offsetof(struct PJRT_AsyncHostToDeviceTransferManager_TransferData_Args, data) == 32, "data");
_Static_assert(offsetof(struct PJRT_AsyncHostToDeviceTransferManager_TransferData_Args, offset) == 40, "offset");
_Static_assert(offsetof(struct PJRT_AsyncHostToDeviceTransferManager_TransferData_Args, transfer_size) == 48, "transfer_size");
_Static_assert(offsetof(struct PJRT_AsyncHostToDeviceTransferManager_TransferData_Args, is_last_transfer) == 56, "is_last_transfer");
_Static_assert(offsetof(struct PJRT_AsyncHostToDeviceTransferManager_TransferData_Args, done_with_h2d_transfer) == 64, "done_with_h2d_transfer");

struct PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	struct PJRT_AsyncHostToDeviceTransferManager *transfer_manager;
	int buffer_index;
	struct PJRT_Buffer *buffer_out;
};
#define PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer_Args_SIZE 40u
#define PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer_Args_OLDEST 40u
_Static_assert(sizeof(struct PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer_Args) == 40, "PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer_Args");
_Static_assert(offsetof(struct PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer_Args, transfer_manager) == 16, "transfer_manager");
_Static_assert(offsetof(struct PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer_Args, buffer_index) == 24, "buffer_index");
_Static_assert(offsetof(struct PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer_Args, buffer_out) == 32, "buffer_out");

struct PJRT_AsyncHostToDeviceTransferManager_Device_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	struct PJRT_AsyncHostToDeviceTransferManager *transfer_manager;
	struct PJRT_Device *device_out;
};
#define PJRT_AsyncHostToDeviceTransferManager_Device_Args_SIZE 32u
#define PJRT_AsyncHostToDeviceTransferManager_Device_Args_OLDEST 32u
_Static_assert(sizeof(struct PJRT_AsyncHostToDeviceTransferManager_Device_Args) == 32, "PJRT_AsyncHostToDeviceTransferManager_Device_Args");
_Static_assert(offsetof(struct PJRT_AsyncHostToDeviceTransferManager_Device_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_AsyncHostToDeviceTransferManager_Device_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_AsyncHostToDeviceTransferManager_Device_Args, transfer_manager) == 16, "transfer_manager");
_Static_assert(offsetof(struct PJRT_AsyncHostToDeviceTransferManager_Device_Args, device_out) == 24, "device_out");

struct PJRT_AsyncHostToDeviceTransferManager_BufferCount_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	struct PJRT_AsyncHostToDeviceTransferManager *transfer_manager;
	size_t buffer_count;
};
#define PJRT_AsyncHostToDeviceTransferManager_BufferCount_Args_SIZE 32u
#define PJRT_AsyncHostToDeviceTransferManager_BufferCount_Args_OLDEST 32u
_Static_assert(sizeof(struct PJRT_AsyncHostToDeviceTransferManager_BufferCount_Args) == 32, "PJRT_AsyncHostToDeviceTransferManager_BufferCount_Args");
_Static_assert(offsetof(struct PJRT_AsyncHostToDeviceTransferManager_BufferCount_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_AsyncHostToDeviceTransferManager_BufferCount_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_AsyncHostToDeviceTransferManager_BufferCount_Args, transfer_manager) == 16, "transfer_manager");
_Static_assert(offsetof(struct PJRT_AsyncHostToDeviceTransferManager_BufferCount_Args, buffer_count) == 24, "buffer_count");

struct PJRT_AsyncHostToDeviceTransferManager_BufferSize_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	struct PJRT_AsyncHostToDeviceTransferManager *transfer_manager;
	int buffer_index;
	size_t buffer_size;
};
#define PJRT_AsyncHostToDeviceTransferManager_BufferSize_Args_SIZE 40u
#define PJRT_AsyncHostToDeviceTransferManager_BufferSize_Args_OLDEST 40u
_Static_assert(sizeof(struct PJRT_AsyncHostToDeviceTransferManager_BufferSize_Args) == 40, "PJRT_AsyncHostToDeviceTransferManager_BufferSize_Args");
_Static_assert(offsetof(struct PJRT_AsyncHostToDeviceTransferManager_BufferSize_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_AsyncHostToDeviceTransferManager_BufferSize_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_AsyncHostToDeviceTransferManager_BufferSize_Args, transfer_manager) == 16, "transfer_manager");
_Static_assert(offsetof(struct PJRT_AsyncHostToDeviceTransferManager_BufferSize_Args, buffer_index) == 24, "buffer_index");
_Static_assert(offsetof(struct PJRT_AsyncHostToDeviceTransferManager_BufferSize_Args, buffer_size) == 32, "buffer_size");

struct PJRT_AsyncHostToDeviceTransferManager_SetBufferError_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	struct PJRT_AsyncHostToDeviceTransferManager *transfer_manager;
	int buffer_index;
	int error_code;
	const char *error_message;
	size_t error_message_size;
};
#define PJRT_AsyncHostToDeviceTransferManager_SetBufferError_Args_SIZE 48u
#define PJRT_AsyncHostToDeviceTransferManager_SetBufferError_Args_OLDEST 48u
_Static_assert(sizeof(struct PJRT_AsyncHostToDeviceTransferManager_SetBufferError_Args) == 48, "PJRT_AsyncHostToDeviceTransferManager_SetBufferError_Args");
_Static_assert(offsetof(struct PJRT_AsyncHostToDeviceTransferManager_SetBufferError_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_AsyncHostToDeviceTransferManager_SetBufferError_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_AsyncHostToDeviceTransferManager_SetBufferError_Args, transfer_manager) == 16, "transfer_manager");
_Static_assert(offsetof(struct PJRT_AsyncHostToDeviceTransferManager_SetBufferError_Args, buffer_index) == 24, "buffer_index");
_Static_assert(offsetof(struct PJRT_AsyncHostToDeviceTransferManager_SetBufferError_Args, error_code) == 28, "error_code");
_Static_assert(offsetof(struct PJRT_AsyncHostToDeviceTransferManager_SetBufferError_Args, error_message) == 32, "error_message");
_Static_assert(offsetof(struct PJRT_AsyncHostToDeviceTransferManager_SetBufferError_Args, error_message_size) == 40, "error_message_size");

struct PJRT_AsyncHostToDeviceTransferManager_AddMetadata_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	struct PJRT_AsyncHostToDeviceTransferManager *transfer_manager;
	const struct PJRT_NamedValue *transfer_metadata;
	size_t num_metadata;
};
#define PJRT_AsyncHostToDeviceTransferManager_AddMetadata_Args_SIZE 40u
#define PJRT_AsyncHostToDeviceTransferManager_AddMetadata_Args_OLDEST 40u
_Static_assert(sizeof(struct PJRT_AsyncHostToDeviceTransferManager_AddMetadata_Args) == 40, "PJRT_AsyncHostToDeviceTransferManager_AddMetadata_Args");
_Static_assert(offsetof(struct PJRT_AsyncHostToDeviceTransferManager_AddMetadata_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_AsyncHostToDeviceTransferManager_AddMetadata_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_AsyncHostToDeviceTransferManager_AddMetadata_Args, transfer_manager) == 16, "transfer_manager");
_Static_assert(offsetof(struct PJRT_AsyncHostToDeviceTransferManager_AddMetadata_Args, transfer_metadata) == 24, "transfer_metadata");
_Static_assert(offsetof(struct PJRT_AsyncHostToDeviceTransferManager_AddMetadata_Args, num_metadata) == 32, "num_metadata");

struct PJRT_Buffer_MemoryLayout_Tiled {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	const int64_t *minor_to_major;
	size_t minor_to_major_size;
	const int64_t *tile_dims;
	const size_t *tile_dim_sizes;
	size_t num_tiles;
};
#define PJRT_Buffer_MemoryLayout_Tiled_SIZE 56u
_Static_assert(sizeof(struct PJRT_Buffer_MemoryLayout_Tiled) == 56, "PJRT_Buffer_MemoryLayout_Tiled");
_Static_assert(offsetof(struct PJRT_Buffer_MemoryLayout_Tiled, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_Buffer_MemoryLayout_Tiled, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_Buffer_MemoryLayout_Tiled, minor_to_major) == 16, "minor_to_major");
_Static_assert(offsetof(struct PJRT_Buffer_MemoryLayout_Tiled, minor_to_major_size) == 24, "minor_to_major_size");
_Static_assert(offsetof(struct PJRT_Buffer_MemoryLayout_Tiled, tile_dims) == 32, "tile_dims");
_Static_assert(offsetof(struct PJRT_Buffer_MemoryLayout_Tiled, tile_dim_sizes) == 40, "tile_dim_sizes");
_Static_assert(offsetof(struct PJRT_Buffer_MemoryLayout_Tiled, num_tiles) == 48, "num_tiles");

struct PJRT_Buffer_MemoryLayout_Strides {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	const int64_t *byte_strides;
	size_t num_byte_strides;
};
#define PJRT_Buffer_MemoryLayout_Strides_SIZE 32u
_Static_assert(sizeof(struct PJRT_Buffer_MemoryLayout_Strides) == 32, "PJRT_Buffer_MemoryLayout_Strides");
_Static_assert(offsetof(struct PJRT_Buffer_MemoryLayout_Strides, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_Buffer_MemoryLayout_Strides, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_Buffer_MemoryLayout_Strides, byte_strides) == 16, "byte_strides");
_Static_assert(offsetof(struct PJRT_Buffer_MemoryLayout_Strides, num_byte_strides) == 24, "num_byte_strides");

struct PJRT_Buffer_MemoryLayout {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	union {
		struct PJRT_Buffer_MemoryLayout_Tiled tiled;
		struct PJRT_Buffer_MemoryLayout_Strides strides;
	};
	int type;
};
#define PJRT_Buffer_MemoryLayout_SIZE 76u
_Static_assert(sizeof(struct PJRT_Buffer_MemoryLayout) == 80, "PJRT_Buffer_MemoryLayout");
_Static_assert(offsetof(struct PJRT_Buffer_MemoryLayout, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_Buffer_MemoryLayout, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_Buffer_MemoryLayout, tiled) == 16, "tiled");
_Static_assert(offsetof(struct PJRT_Buffer_MemoryLayout, strides) == 16, "strides");
_Static_assert(offsetof(struct PJRT_Buffer_MemoryLayout, type) == 72, "type");

struct PJRT_AsyncHostToDeviceTransferManager_TransferLiteral_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	struct PJRT_AsyncHostToDeviceTransferManager *transfer_manager;
	int buffer_index;
	const void *data;
	const int64_t *shape_dims;
	size_t shape_num_dims;
	int shape_element_type;
	struct PJRT_Buffer_MemoryLayout *shape_layout;
	struct PJRT_Event *done_with_h2d_transfer;
};
#define PJRT_AsyncHostToDeviceTransferManager_TransferLiteral_Args_SIZE 80u
#define PJRT_AsyncHostToDeviceTransferManager_TransferLiteral_Args_OLDEST 80u
_Static_assert(sizeof(struct PJRT_AsyncHostToDeviceTransferManager_TransferLiteral_Args) == 80, "PJRT_AsyncHostToDeviceTransferManager_TransferLiteral_Args");
_Static_assert(offsetof(struct PJRT_AsyncHostToDeviceTransferManager_TransferLiteral_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_AsyncHostToDeviceTransferManager_TransferLiteral_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_AsyncHostToDeviceTransferManager_TransferLiteral_Args, transfer_manager) == 16, "transfer_manager");
_Static_assert(offsetof(struct PJRT_AsyncHostToDeviceTransferManager_TransferLiteral_Args, buffer_index) == 24, "buffer_index");
_Static_assert(offsetof(struct PJRT_AsyncHostToDeviceTransferManager_TransferLiteral_Args, data) == 32, "data");
_Static_assert(offsetof(struct PJRT_AsyncHostToDeviceTransferManager_TransferLiteral_Args, shape_dims) == 40, "shape_dims");
_Static_assert(offsetof(struct PJRT_AsyncHostToDeviceTransferManager_TransferLiteral_Args, shape_num_dims) == 48, "shape_num_dims");
_Static_assert(offsetof(struct PJRT_AsyncHostToDeviceTransferManager_TransferLiteral_Args, shape_element_type) == 56, "shape_element_type");
_Static_assert(offsetof(struct PJRT_AsyncHostToDeviceTransferManager_TransferLiteral_Args, shape_layout) == 64, "shape_layout");
_Static_assert(offsetof(struct PJRT_AsyncHostToDeviceTransferManager_TransferLiteral_Args, done_with_h2d_transfer) == 72, "done_with_h2d_transfer");

struct PJRT_Client_CreateUninitializedBuffer_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	struct PJRT_Client *client;
	const int64_t *shape_dims;
	size_t shape_num_dims;
	int shape_element_type;
	struct PJRT_Buffer_MemoryLayout *shape_layout;
	struct PJRT_Device *device;
	struct PJRT_Memory *memory;
	struct PJRT_Buffer *buffer;
};
#define PJRT_Client_CreateUninitializedBuffer_Args_SIZE 80u
#define PJRT_Client_CreateUninitializedBuffer_Args_OLDEST 80u
_Static_assert(sizeof(struct PJRT_Client_CreateUninitializedBuffer_Args) == 80, "PJRT_Client_CreateUninitializedBuffer_Args");
_Static_assert(offsetof(struct PJRT_Client_CreateUninitializedBuffer_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_Client_CreateUninitializedBuffer_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_Client_CreateUninitializedBuffer_Args, client) == 16, "client");
_Static_assert(offsetof(struct PJRT_Client_CreateUninitializedBuffer_Args, shape_dims) == 24, "shape_dims");
_Static_assert(offsetof(struct PJRT_Client_CreateUninitializedBuffer_Args, shape_num_dims) == 32, "shape_num_dims");
_Static_assert(offsetof(struct PJRT_Client_CreateUninitializedBuffer_Args, shape_element_type) == 40, "shape_element_type");
_Static_assert(offsetof(struct PJRT_Client_CreateUninitializedBuffer_Args, shape_layout) == 48, "shape_layout");
_Static_assert(offsetof(struct PJRT_Client_CreateUninitializedBuffer_Args, device) == 56, "device");
_Static_assert(offsetof(struct PJRT_Client_CreateUninitializedBuffer_Args, memory) == 64, "memory");
_Static_assert(offsetof(struct PJRT_Client_CreateUninitializedBuffer_Args, buffer) == 72, "buffer");

struct PJRT_Client_CreateErrorBuffer_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	struct PJRT_Client *client;
	int error_code;
	const char *error_message;
	size_t error_message_size;
	const int64_t *shape_dims;
	size_t shape_num_dims;
	int shape_element_type;
	struct PJRT_Buffer_MemoryLayout *shape_layout;
	struct PJRT_Memory *memory;
	struct PJRT_Buffer *buffer;
	const struct PJRT_NamedValue *payload;
	size_t num_payload;
};
#define PJRT_Client_CreateErrorBuffer_Args_SIZE 112u
#define PJRT_Client_CreateErrorBuffer_Args_OLDEST 96u
_Static_assert(sizeof(struct PJRT_Client_CreateErrorBuffer_Args) == 112, "PJRT_Client_CreateErrorBuffer_Args");
_Static_assert(offsetof(struct PJRT_Client_CreateErrorBuffer_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_Client_CreateErrorBuffer_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_Client_CreateErrorBuffer_Args, client) == 16, "client");
_Static_assert(offsetof(struct PJRT_Client_CreateErrorBuffer_Args, error_code) == 24, "error_code");
_Static_assert(offsetof(struct PJRT_Client_CreateErrorBuffer_Args, error_message) == 32, "error_message");
_Static_assert(offsetof(struct PJRT_Client_CreateErrorBuffer_Args, error_message_size) == 40, "error_message_size");
_Static_assert(offsetof(struct PJRT_Client_CreateErrorBuffer_Args, shape_dims) == 48, "shape_dims");
_Static_assert(offsetof(struct PJRT_Client_CreateErrorBuffer_Args, shape_num_dims) == 56, "shape_num_dims");
_Static_assert(offsetof(struct PJRT_Client_CreateErrorBuffer_Args, shape_element_type) == 64, "shape_element_type");
_Static_assert(offsetof(struct PJRT_Client_CreateErrorBuffer_Args, shape_layout) == 72, "shape_layout");
_Static_assert(offsetof(struct PJRT_Client_CreateErrorBuffer_Args, memory) == 80, "memory");
_Static_assert(offsetof(struct PJRT_Client_CreateErrorBuffer_Args, buffer) == 88, "buffer");
_Static_assert(offsetof(struct PJRT_Client_CreateErrorBuffer_Args, payload) == 96, "payload");
_Static_assert(offsetof(struct PJRT_Client_CreateErrorBuffer_Args, num_payload) == 104, "num_payload");

struct PJRT_Client_CreateAliasBuffer_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	struct PJRT_Client *client;
	struct PJRT_Memory *memory;
	const int64_t *shape_dims;
	size_t shape_num_dims;
	int shape_element_type;
	struct PJRT_Buffer_MemoryLayout *shape_layout;
	struct PJRT_Buffer *alias_buffer;
	void *fulfill_alias_buffer_cb;
};
#define PJRT_Client_CreateAliasBuffer_Args_SIZE 80u
#define PJRT_Client_CreateAliasBuffer_Args_OLDEST 80u
_Static_assert(sizeof(struct PJRT_Client_CreateAliasBuffer_Args) == 80, "PJRT_Client_CreateAliasBuffer_Args");
_Static_assert(offsetof(struct PJRT_Client_CreateAliasBuffer_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_Client_CreateAliasBuffer_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_Client_CreateAliasBuffer_Args, client) == 16, "client");
_Static_assert(offsetof(struct PJRT_Client_CreateAliasBuffer_Args, memory) == 24, "memory");
_Static_assert(offsetof(struct PJRT_Client_CreateAliasBuffer_Args, shape_dims) == 32, "shape_dims");
_Static_assert(offsetof(struct PJRT_Client_CreateAliasBuffer_Args, shape_num_dims) == 40, "shape_num_dims");
_Static_assert(offsetof(struct PJRT_Client_CreateAliasBuffer_Args, shape_element_type) == 48, "shape_element_type");
_Static_assert(offsetof(struct PJRT_Client_CreateAliasBuffer_Args, shape_layout) == 56, "shape_layout");
_Static_assert(offsetof(struct PJRT_Client_CreateAliasBuffer_Args, alias_buffer) == 64, "alias_buffer");
_Static_assert(offsetof(struct PJRT_Client_CreateAliasBuffer_Args, fulfill_alias_buffer_cb) == 72, "fulfill_alias_buffer_cb");

struct PJRT_Client_FulfillAliasBuffer_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	struct PJRT_Client *client;
	struct PJRT_Buffer *buffer;
	int status_code;
	const char *error_message;
	size_t error_message_size;
	void *fulfill_alias_buffer_cb;
};
#define PJRT_Client_FulfillAliasBuffer_Args_SIZE 64u
#define PJRT_Client_FulfillAliasBuffer_Args_OLDEST 64u
_Static_assert(sizeof(struct PJRT_Client_FulfillAliasBuffer_Args) == 64, "PJRT_Client_FulfillAliasBuffer_Args");
_Static_assert(offsetof(struct PJRT_Client_FulfillAliasBuffer_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_Client_FulfillAliasBuffer_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_Client_FulfillAliasBuffer_Args, client) == 16, "client");
_Static_assert(offsetof(struct PJRT_Client_FulfillAliasBuffer_Args, buffer) == 24, "buffer");
_Static_assert(offsetof(struct PJRT_Client_FulfillAliasBuffer_Args, status_code) == 32, "status_code");
_Static_assert(offsetof(struct PJRT_Client_FulfillAliasBuffer_Args, error_message) == 40, "error_message");
_Static_assert(offsetof(struct PJRT_Client_FulfillAliasBuffer_Args, error_message_size) == 48, "error_message_size");
_Static_assert(offsetof(struct PJRT_Client_FulfillAliasBuffer_Args, fulfill_alias_buffer_cb) == 56, "fulfill_alias_buffer_cb");

struct PJRT_Client_BufferFromHostBuffer_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	struct PJRT_Client *client;
	const void *data;
	int type;
	const int64_t *dims;
	size_t num_dims;
	const int64_t *byte_strides;
	size_t num_byte_strides;
	int host_buffer_semantics;
	struct PJRT_Device *device;
	struct PJRT_Memory *memory;
	struct PJRT_Buffer_MemoryLayout *device_layout;
	struct PJRT_Event *done_with_host_buffer;
	struct PJRT_Buffer *buffer;
};
#define PJRT_Client_BufferFromHostBuffer_Args_SIZE 120u
#define PJRT_Client_BufferFromHostBuffer_Args_OLDEST 120u
_Static_assert(sizeof(struct PJRT_Client_BufferFromHostBuffer_Args) == 120, "PJRT_Client_BufferFromHostBuffer_Args");
_Static_assert(offsetof(struct PJRT_Client_BufferFromHostBuffer_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_Client_BufferFromHostBuffer_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_Client_BufferFromHostBuffer_Args, client) == 16, "client");
_Static_assert(offsetof(struct PJRT_Client_BufferFromHostBuffer_Args, data) == 24, "data");
_Static_assert(offsetof(struct PJRT_Client_BufferFromHostBuffer_Args, type) == 32, "type");
_Static_assert(offsetof(struct PJRT_Client_BufferFromHostBuffer_Args, dims) == 40, "dims");
_Static_assert(offsetof(struct PJRT_Client_BufferFromHostBuffer_Args, num_dims) == 48, "num_dims");
_Static_assert(offsetof(struct PJRT_Client_BufferFromHostBuffer_Args, byte_strides) == 56, "byte_strides");
_Static_assert(offsetof(struct PJRT_Client_BufferFromHostBuffer_Args, num_byte_strides) == 64, "num_byte_strides");
_Static_assert(offsetof(struct PJRT_Client_BufferFromHostBuffer_Args, host_buffer_semantics) == 72, "host_buffer_semantics");
_Static_assert(offsetof(struct PJRT_Client_BufferFromHostBuffer_Args, device) == 80, "device");
_Static_assert(offsetof(struct PJRT_Client_BufferFromHostBuffer_Args, memory) == 88, "memory");
_Static_assert(offsetof(struct PJRT_Client_BufferFromHostBuffer_Args, device_layout) == 96, "device_layout");
_Static_assert(offsetof(struct PJRT_Client_BufferFromHostBuffer_Args, done_with_host_buffer) == 104, "done_with_host_buffer");
_Static_assert(offsetof(struct PJRT_Client_BufferFromHostBuffer_Args, buffer) == 112, "buffer");

struct PJRT_Client_CreateViewOfDeviceBuffer_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	struct PJRT_Client *client;
	void *device_buffer_ptr;
	const int64_t *dims;
	size_t num_dims;
	int element_type;
	struct PJRT_Buffer_MemoryLayout *layout;
	struct PJRT_Device *device;
	void *on_delete_callback;
	void *on_delete_callback_arg;
	intptr_t stream;
	struct PJRT_Buffer *buffer;
	struct PJRT_Memory *memory;
};
#define PJRT_Client_CreateViewOfDeviceBuffer_Args_SIZE 112u
#define PJRT_Client_CreateViewOfDeviceBuffer_Args_OLDEST 112u
_Static_assert(sizeof(struct PJRT_Client_CreateViewOfDeviceBuffer_Args) == 112, "PJRT_Client_CreateViewOfDeviceBuffer_Args");
_Static_assert(offsetof(struct PJRT_Client_CreateViewOfDeviceBuffer_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_Client_CreateViewOfDeviceBuffer_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_Client_CreateViewOfDeviceBuffer_Args, client) == 16, "client");
_Static_assert(offsetof(struct PJRT_Client_CreateViewOfDeviceBuffer_Args, device_buffer_ptr) == 24, "device_buffer_ptr");
_Static_assert(offsetof(struct PJRT_Client_CreateViewOfDeviceBuffer_Args, dims) == 32, "dims");
_Static_assert(offsetof(struct PJRT_Client_CreateViewOfDeviceBuffer_Args, num_dims) == 40, "num_dims");
_Static_assert(offsetof(struct PJRT_Client_CreateViewOfDeviceBuffer_Args, element_type) == 48, "element_type");
_Static_assert(offsetof(struct PJRT_Client_CreateViewOfDeviceBuffer_Args, layout) == 56, "layout");
_Static_assert(offsetof(struct PJRT_Client_CreateViewOfDeviceBuffer_Args, device) == 64, "device");
_Static_assert(offsetof(struct PJRT_Client_CreateViewOfDeviceBuffer_Args, on_delete_callback) == 72, "on_delete_callback");
_Static_assert(offsetof(struct PJRT_Client_CreateViewOfDeviceBuffer_Args, on_delete_callback_arg) == 80, "on_delete_callback_arg");
_Static_assert(offsetof(struct PJRT_Client_CreateViewOfDeviceBuffer_Args, stream) == 88, "stream");
_Static_assert(offsetof(struct PJRT_Client_CreateViewOfDeviceBuffer_Args, buffer) == 96, "buffer");
_Static_assert(offsetof(struct PJRT_Client_CreateViewOfDeviceBuffer_Args, memory) == 104, "memory");

struct PJRT_ShapeSpec {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	const int64_t *dims;
	size_t num_dims;
	int element_type;
};
#define PJRT_ShapeSpec_SIZE 36u
_Static_assert(sizeof(struct PJRT_ShapeSpec) == 40, "PJRT_ShapeSpec");
_Static_assert(offsetof(struct PJRT_ShapeSpec, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_ShapeSpec, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_ShapeSpec, dims) == 16, "dims");
_Static_assert(offsetof(struct PJRT_ShapeSpec, num_dims) == 24, "num_dims");
_Static_assert(offsetof(struct PJRT_ShapeSpec, element_type) == 32, "element_type");

struct PJRT_Client_CreateBuffersForAsyncHostToDevice_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	struct PJRT_Client *client;
	struct PJRT_ShapeSpec *shape_specs;
	size_t num_shape_specs;
	struct PJRT_Buffer_MemoryLayout **device_layouts;
	size_t num_device_layouts;
	struct PJRT_Memory *memory;
	struct PJRT_AsyncHostToDeviceTransferManager *transfer_manager;
};
#define PJRT_Client_CreateBuffersForAsyncHostToDevice_Args_SIZE 72u
#define PJRT_Client_CreateBuffersForAsyncHostToDevice_Args_OLDEST 72u
_Static_assert(sizeof(struct PJRT_Client_CreateBuffersForAsyncHostToDevice_Args) == 72, "PJRT_Client_CreateBuffersForAsyncHostToDevice_Args");
_Static_assert(offsetof(struct PJRT_Client_CreateBuffersForAsyncHostToDevice_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_Client_CreateBuffersForAsyncHostToDevice_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_Client_CreateBuffersForAsyncHostToDevice_Args, client) == 16, "client");
_Static_assert(offsetof(struct PJRT_Client_CreateBuffersForAsyncHostToDevice_Args, shape_specs) == 24, "shape_specs");
_Static_assert(offsetof(struct PJRT_Client_CreateBuffersForAsyncHostToDevice_Args, num_shape_specs) == 32, "num_shape_specs");
_Static_assert(offsetof(struct PJRT_Client_CreateBuffersForAsyncHostToDevice_Args, device_layouts) == 40, "device_layouts");
_Static_assert(offsetof(struct PJRT_Client_CreateBuffersForAsyncHostToDevice_Args, num_device_layouts) == 48, "num_device_layouts");
_Static_assert(offsetof(struct PJRT_Client_CreateBuffersForAsyncHostToDevice_Args, memory) == 56, "memory");
_Static_assert(offsetof(struct PJRT_Client_CreateBuffersForAsyncHostToDevice_Args, transfer_manager) == 64, "transfer_manager");

struct PJRT_DeviceDescription_Id_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	struct PJRT_DeviceDescription *device_description;
	int id;
};
#define PJRT_DeviceDescription_Id_Args_SIZE 28u
#define PJRT_DeviceDescription_Id_Args_OLDEST 28u
_Static_assert(sizeof(struct PJRT_DeviceDescription_Id_Args) == 32, "PJRT_DeviceDescription_Id_Args");
_Static_assert(offsetof(struct PJRT_DeviceDescription_Id_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_DeviceDescription_Id_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_DeviceDescription_Id_Args, device_description) == 16, "device_description");
_Static_assert(offsetof(struct PJRT_DeviceDescription_Id_Args, id) == 24, "id");

struct PJRT_DeviceDescription_ProcessIndex_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	struct PJRT_DeviceDescription *device_description;
	int process_index;
};
#define PJRT_DeviceDescription_ProcessIndex_Args_SIZE 28u
#define PJRT_DeviceDescription_ProcessIndex_Args_OLDEST 28u
_Static_assert(sizeof(struct PJRT_DeviceDescription_ProcessIndex_Args) == 32, "PJRT_DeviceDescription_ProcessIndex_Args");
_Static_assert(offsetof(struct PJRT_DeviceDescription_ProcessIndex_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_DeviceDescription_ProcessIndex_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_DeviceDescription_ProcessIndex_Args, device_description) == 16, "device_description");
_Static_assert(offsetof(struct PJRT_DeviceDescription_ProcessIndex_Args, process_index) == 24, "process_index");

struct PJRT_DeviceDescription_Attributes_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	struct PJRT_DeviceDescription *device_description;
	size_t num_attributes;
	const struct PJRT_NamedValue *attributes;
};
#define PJRT_DeviceDescription_Attributes_Args_SIZE 40u
#define PJRT_DeviceDescription_Attributes_Args_OLDEST 40u
_Static_assert(sizeof(struct PJRT_DeviceDescription_Attributes_Args) == 40, "PJRT_DeviceDescription_Attributes_Args");
_Static_assert(offsetof(struct PJRT_DeviceDescription_Attributes_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_DeviceDescription_Attributes_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_DeviceDescription_Attributes_Args, device_description) == 16, "device_description");
_Static_assert(offsetof(struct PJRT_DeviceDescription_Attributes_Args, num_attributes) == 24, "num_attributes");
_Static_assert(offsetof(struct PJRT_DeviceDescription_Attributes_Args, attributes) == 32, "attributes");

struct PJRT_DeviceDescription_Kind_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	struct PJRT_DeviceDescription *device_description;
	const char *device_kind;
	size_t device_kind_size;
};
#define PJRT_DeviceDescription_Kind_Args_SIZE 40u
#define PJRT_DeviceDescription_Kind_Args_OLDEST 40u
_Static_assert(sizeof(struct PJRT_DeviceDescription_Kind_Args) == 40, "PJRT_DeviceDescription_Kind_Args");
_Static_assert(offsetof(struct PJRT_DeviceDescription_Kind_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_DeviceDescription_Kind_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_DeviceDescription_Kind_Args, device_description) == 16, "device_description");
_Static_assert(offsetof(struct PJRT_DeviceDescription_Kind_Args, device_kind) == 24, "device_kind");
_Static_assert(offsetof(struct PJRT_DeviceDescription_Kind_Args, device_kind_size) == 32, "device_kind_size");

struct PJRT_DeviceDescription_DebugString_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	struct PJRT_DeviceDescription *device_description;
	const char *debug_string;
	size_t debug_string_size;
};
#define PJRT_DeviceDescription_DebugString_Args_SIZE 40u
#define PJRT_DeviceDescription_DebugString_Args_OLDEST 40u
_Static_assert(sizeof(struct PJRT_DeviceDescription_DebugString_Args) == 40, "PJRT_DeviceDescription_DebugString_Args");
_Static_assert(offsetof(struct PJRT_DeviceDescription_DebugString_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_DeviceDescription_DebugString_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_DeviceDescription_DebugString_Args, device_description) == 16, "device_description");
_Static_assert(offsetof(struct PJRT_DeviceDescription_DebugString_Args, debug_string) == 24, "debug_string");
_Static_assert(offsetof(struct PJRT_DeviceDescription_DebugString_Args, debug_string_size) == 32, "debug_string_size");

struct PJRT_DeviceDescription_ToString_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	struct PJRT_DeviceDescription *device_description;
	const char *to_string;
	size_t to_string_size;
};
#define PJRT_DeviceDescription_ToString_Args_SIZE 40u
#define PJRT_DeviceDescription_ToString_Args_OLDEST 40u
_Static_assert(sizeof(struct PJRT_DeviceDescription_ToString_Args) == 40, "PJRT_DeviceDescription_ToString_Args");
_Static_assert(offsetof(struct PJRT_DeviceDescription_ToString_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_DeviceDescription_ToString_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_DeviceDescription_ToString_Args, device_description) == 16, "device_description");
_Static_assert(offsetof(struct PJRT_DeviceDescription_ToString_Args, to_string) == 24, "to_string");
_Static_assert(offsetof(struct PJRT_DeviceDescription_ToString_Args, to_string_size) == 32, "to_string_size");

struct PJRT_Device_GetDescription_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	struct PJRT_Device *device;
	struct PJRT_DeviceDescription *device_description;
};
#define PJRT_Device_GetDescription_Args_SIZE 32u
#define PJRT_Device_GetDescription_Args_OLDEST 32u
_Static_assert(sizeof(struct PJRT_Device_GetDescription_Args) == 32, "PJRT_Device_GetDescription_Args");
_Static_assert(offsetof(struct PJRT_Device_GetDescription_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_Device_GetDescription_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_Device_GetDescription_Args, device) == 16, "device");
_Static_assert(offsetof(struct PJRT_Device_GetDescription_Args, device_description) == 24, "device_description");

struct PJRT_Device_IsAddressable_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	struct PJRT_Device *device;
	_Bool is_addressable;
};
#define PJRT_Device_IsAddressable_Args_SIZE 25u
#define PJRT_Device_IsAddressable_Args_OLDEST 25u
_Static_assert(sizeof(struct PJRT_Device_IsAddressable_Args) == 32, "PJRT_Device_IsAddressable_Args");
_Static_assert(offsetof(struct PJRT_Device_IsAddressable_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_Device_IsAddressable_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_Device_IsAddressable_Args, device) == 16, "device");
_Static_assert(offsetof(struct PJRT_Device_IsAddressable_Args, is_addressable) == 24, "is_addressable");

struct PJRT_Device_LocalHardwareId_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	struct PJRT_Device *device;
	int local_hardware_id;
};
#define PJRT_Device_LocalHardwareId_Args_SIZE 28u
#define PJRT_Device_LocalHardwareId_Args_OLDEST 28u
_Static_assert(sizeof(struct PJRT_Device_LocalHardwareId_Args) == 32, "PJRT_Device_LocalHardwareId_Args");
_Static_assert(offsetof(struct PJRT_Device_LocalHardwareId_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_Device_LocalHardwareId_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_Device_LocalHardwareId_Args, device) == 16, "device");
_Static_assert(offsetof(struct PJRT_Device_LocalHardwareId_Args, local_hardware_id) == 24, "local_hardware_id");

struct PJRT_Device_AddressableMemories_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	struct PJRT_Device *device;
	struct PJRT_Memory * const*memories;
	size_t num_memories;
};
#define PJRT_Device_AddressableMemories_Args_SIZE 40u
#define PJRT_Device_AddressableMemories_Args_OLDEST 40u
_Static_assert(sizeof(struct PJRT_Device_AddressableMemories_Args) == 40, "PJRT_Device_AddressableMemories_Args");
_Static_assert(offsetof(struct PJRT_Device_AddressableMemories_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_Device_AddressableMemories_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_Device_AddressableMemories_Args, device) == 16, "device");
_Static_assert(offsetof(struct PJRT_Device_AddressableMemories_Args, memories) == 24, "memories");
_Static_assert(offsetof(struct PJRT_Device_AddressableMemories_Args, num_memories) == 32, "num_memories");

struct PJRT_Device_DefaultMemory_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	struct PJRT_Device *device;
	struct PJRT_Memory *memory;
};
#define PJRT_Device_DefaultMemory_Args_SIZE 32u
#define PJRT_Device_DefaultMemory_Args_OLDEST 32u
_Static_assert(sizeof(struct PJRT_Device_DefaultMemory_Args) == 32, "PJRT_Device_DefaultMemory_Args");
_Static_assert(offsetof(struct PJRT_Device_DefaultMemory_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_Device_DefaultMemory_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_Device_DefaultMemory_Args, device) == 16, "device");
_Static_assert(offsetof(struct PJRT_Device_DefaultMemory_Args, memory) == 24, "memory");

struct PJRT_Device_MemoryStats_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	struct PJRT_Device *device;
	int64_t bytes_in_use;
	int64_t peak_bytes_in_use;
	_Bool peak_bytes_in_use_is_set;
	int64_t num_allocs;
	_Bool num_allocs_is_set;
	int64_t largest_alloc_size;
	_Bool largest_alloc_size_is_set;
	int64_t bytes_limit;
	_Bool bytes_limit_is_set;
	int64_t bytes_reserved;
	_Bool bytes_reserved_is_set;
	int64_t peak_bytes_reserved;
	_Bool peak_bytes_reserved_is_set;
	int64_t bytes_reservable_limit;
	_Bool bytes_reservable_limit_is_set;
	int64_t largest_free_block_bytes;
	_Bool largest_free_block_bytes_is_set;
	int64_t pool_bytes;
	_Bool pool_bytes_is_set;
	int64_t peak_pool_bytes;
	_Bool peak_pool_bytes_is_set;
};
#define PJRT_Device_MemoryStats_Args_SIZE 185u
#define PJRT_Device_MemoryStats_Args_OLDEST 185u
_Static_assert(sizeof(struct PJRT_Device_MemoryStats_Args) == 192, "PJRT_Device_MemoryStats_Args");
_Static_assert(offsetof(struct PJRT_Device_MemoryStats_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_Device_MemoryStats_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_Device_MemoryStats_Args, device) == 16, "device");
_Static_assert(offsetof(struct PJRT_Device_MemoryStats_Args, bytes_in_use) == 24, "bytes_in_use");
_Static_assert(offsetof(struct PJRT_Device_MemoryStats_Args, peak_bytes_in_use) == 32, "peak_bytes_in_use");
_Static_assert(offsetof(struct PJRT_Device_MemoryStats_Args, peak_bytes_in_use_is_set) == 40, "peak_bytes_in_use_is_set");
_Static_assert(offsetof(struct PJRT_Device_MemoryStats_Args, num_allocs) == 48, "num_allocs");
_Static_assert(offsetof(struct PJRT_Device_MemoryStats_Args, num_allocs_is_set) == 56, "num_allocs_is_set");
_Static_assert(offsetof(struct PJRT_Device_MemoryStats_Args, largest_alloc_size) == 64, "largest_alloc_size");
_Static_assert(offsetof(struct PJRT_Device_MemoryStats_Args, largest_alloc_size_is_set) == 72, "largest_alloc_size_is_set");
_Static_assert(offsetof(struct PJRT_Device_MemoryStats_Args, bytes_limit) == 80, "bytes_limit");
_Static_assert(offsetof(struct PJRT_Device_MemoryStats_Args, bytes_limit_is_set) == 88, "bytes_limit_is_set");
_Static_assert(offsetof(struct PJRT_Device_MemoryStats_Args, bytes_reserved) == 96, "bytes_reserved");
_Static_assert(offsetof(struct PJRT_Device_MemoryStats_Args, bytes_reserved_is_set) == 104, "bytes_reserved_is_set");
_Static_assert(offsetof(struct PJRT_Device_MemoryStats_Args, peak_bytes_reserved) == 112, "peak_bytes_reserved");
_Static_assert(offsetof(struct PJRT_Device_MemoryStats_Args, peak_bytes_reserved_is_set) == 120, "peak_bytes_reserved_is_set");
_Static_assert(offsetof(struct PJRT_Device_MemoryStats_Args, bytes_reservable_limit) == 128, "bytes_reservable_limit");
_Static_assert(offsetof(struct PJRT_Device_MemoryStats_Args, bytes_reservable_limit_is_set) == 136, "bytes_reservable_limit_is_set");
_Static_assert(offsetof(struct PJRT_Device_MemoryStats_Args, largest_free_block_bytes) == 144, "largest_free_block_bytes");
_Static_assert(offsetof(struct PJRT_Device_MemoryStats_Args, largest_free_block_bytes_is_set) == 152, "largest_free_block_bytes_is_set");
_Static_assert(offsetof(struct PJRT_Device_MemoryStats_Args, pool_bytes) == 160, "pool_bytes");
_Static_assert(offsetof(struct PJRT_Device_MemoryStats_Args, pool_bytes_is_set) == 168, "pool_bytes_is_set");
_Static_assert(offsetof(struct PJRT_Device_MemoryStats_Args, peak_pool_bytes) == 176, "peak_pool_bytes");
_Static_assert(offsetof(struct PJRT_Device_MemoryStats_Args, peak_pool_bytes_is_set) == 184, "peak_pool_bytes_is_set");

struct PJRT_Device_ClearMemoryStats_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	struct PJRT_Device *device;
};
#define PJRT_Device_ClearMemoryStats_Args_SIZE 24u
#define PJRT_Device_ClearMemoryStats_Args_OLDEST 24u
_Static_assert(sizeof(struct PJRT_Device_ClearMemoryStats_Args) == 24, "PJRT_Device_ClearMemoryStats_Args");
_Static_assert(offsetof(struct PJRT_Device_ClearMemoryStats_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_Device_ClearMemoryStats_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_Device_ClearMemoryStats_Args, device) == 16, "device");

struct PJRT_Device_PoisonExecution_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	struct PJRT_Device *device;
	int32_t launch_id;
	int error_code;
	const char *error_message;
	size_t error_message_size;
	_Bool poisoned;
	const struct PJRT_NamedValue *payload;
	size_t num_payload;
};
#define PJRT_Device_PoisonExecution_Args_SIZE 72u
#define PJRT_Device_PoisonExecution_Args_OLDEST 49u
_Static_assert(sizeof(struct PJRT_Device_PoisonExecution_Args) == 72, "PJRT_Device_PoisonExecution_Args");
_Static_assert(offsetof(struct PJRT_Device_PoisonExecution_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_Device_PoisonExecution_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_Device_PoisonExecution_Args, device) == 16, "device");
_Static_assert(offsetof(struct PJRT_Device_PoisonExecution_Args, launch_id) == 24, "launch_id");
_Static_assert(offsetof(struct PJRT_Device_PoisonExecution_Args, error_code) == 28, "error_code");
_Static_assert(offsetof(struct PJRT_Device_PoisonExecution_Args, error_message) == 32, "error_message");
_Static_assert(offsetof(struct PJRT_Device_PoisonExecution_Args, error_message_size) == 40, "error_message_size");
_Static_assert(offsetof(struct PJRT_Device_PoisonExecution_Args, poisoned) == 48, "poisoned");
_Static_assert(offsetof(struct PJRT_Device_PoisonExecution_Args, payload) == 56, "payload");
_Static_assert(offsetof(struct PJRT_Device_PoisonExecution_Args, num_payload) == 64, "num_payload");

struct PJRT_Device_GetAttributes_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	struct PJRT_Device *device;
	const struct PJRT_NamedValue *attributes;
	size_t num_attributes;
	struct PJRT_Device_Attributes *device_attributes;
	void *attributes_deleter;
};
#define PJRT_Device_GetAttributes_Args_SIZE 56u
#define PJRT_Device_GetAttributes_Args_OLDEST 56u
_Static_assert(sizeof(struct PJRT_Device_GetAttributes_Args) == 56, "PJRT_Device_GetAttributes_Args");
_Static_assert(offsetof(struct PJRT_Device_GetAttributes_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_Device_GetAttributes_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_Device_GetAttributes_Args, device) == 16, "device");
_Static_assert(offsetof(struct PJRT_Device_GetAttributes_Args, attributes) == 24, "attributes");
_Static_assert(offsetof(struct PJRT_Device_GetAttributes_Args, num_attributes) == 32, "num_attributes");
_Static_assert(offsetof(struct PJRT_Device_GetAttributes_Args, device_attributes) == 40, "device_attributes");
_Static_assert(offsetof(struct PJRT_Device_GetAttributes_Args, attributes_deleter) == 48, "attributes_deleter");

struct PJRT_Device_CreateAsyncTrackingEvent_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	struct PJRT_Device *device;
	const char *description;
	size_t description_size;
	struct PJRT_AsyncTrackingEvent *event;
};
#define PJRT_Device_CreateAsyncTrackingEvent_Args_SIZE 48u
#define PJRT_Device_CreateAsyncTrackingEvent_Args_OLDEST 48u
_Static_assert(sizeof(struct PJRT_Device_CreateAsyncTrackingEvent_Args) == 48, "PJRT_Device_CreateAsyncTrackingEvent_Args");
_Static_assert(offsetof(struct PJRT_Device_CreateAsyncTrackingEvent_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_Device_CreateAsyncTrackingEvent_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_Device_CreateAsyncTrackingEvent_Args, device) == 16, "device");
_Static_assert(offsetof(struct PJRT_Device_CreateAsyncTrackingEvent_Args, description) == 24, "description");
_Static_assert(offsetof(struct PJRT_Device_CreateAsyncTrackingEvent_Args, description_size) == 32, "description_size");
_Static_assert(offsetof(struct PJRT_Device_CreateAsyncTrackingEvent_Args, event) == 40, "event");

struct PJRT_AsyncTrackingEvent_Destroy_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	struct PJRT_AsyncTrackingEvent *event;
};
#define PJRT_AsyncTrackingEvent_Destroy_Args_SIZE 24u
#define PJRT_AsyncTrackingEvent_Destroy_Args_OLDEST 24u
_Static_assert(sizeof(struct PJRT_AsyncTrackingEvent_Destroy_Args) == 24, "PJRT_AsyncTrackingEvent_Destroy_Args");
_Static_assert(offsetof(struct PJRT_AsyncTrackingEvent_Destroy_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_AsyncTrackingEvent_Destroy_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_AsyncTrackingEvent_Destroy_Args, event) == 16, "event");

struct PJRT_Memory_Id_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	struct PJRT_Memory *memory;
	int id;
};
#define PJRT_Memory_Id_Args_SIZE 28u
#define PJRT_Memory_Id_Args_OLDEST 28u
_Static_assert(sizeof(struct PJRT_Memory_Id_Args) == 32, "PJRT_Memory_Id_Args");
_Static_assert(offsetof(struct PJRT_Memory_Id_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_Memory_Id_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_Memory_Id_Args, memory) == 16, "memory");
_Static_assert(offsetof(struct PJRT_Memory_Id_Args, id) == 24, "id");

struct PJRT_Memory_Kind_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	struct PJRT_Memory *memory;
	const char *kind;
	size_t kind_size;
};
#define PJRT_Memory_Kind_Args_SIZE 40u
#define PJRT_Memory_Kind_Args_OLDEST 40u
_Static_assert(sizeof(struct PJRT_Memory_Kind_Args) == 40, "PJRT_Memory_Kind_Args");
_Static_assert(offsetof(struct PJRT_Memory_Kind_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_Memory_Kind_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_Memory_Kind_Args, memory) == 16, "memory");
_Static_assert(offsetof(struct PJRT_Memory_Kind_Args, kind) == 24, "kind");
_Static_assert(offsetof(struct PJRT_Memory_Kind_Args, kind_size) == 32, "kind_size");

struct PJRT_Memory_Kind_Id_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	struct PJRT_Memory *memory;
	int kind_id;
};
#define PJRT_Memory_Kind_Id_Args_SIZE 28u
#define PJRT_Memory_Kind_Id_Args_OLDEST 28u
_Static_assert(sizeof(struct PJRT_Memory_Kind_Id_Args) == 32, "PJRT_Memory_Kind_Id_Args");
_Static_assert(offsetof(struct PJRT_Memory_Kind_Id_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_Memory_Kind_Id_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_Memory_Kind_Id_Args, memory) == 16, "memory");
_Static_assert(offsetof(struct PJRT_Memory_Kind_Id_Args, kind_id) == 24, "kind_id");

struct PJRT_Memory_DebugString_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	struct PJRT_Memory *memory;
	const char *debug_string;
	size_t debug_string_size;
};
#define PJRT_Memory_DebugString_Args_SIZE 40u
#define PJRT_Memory_DebugString_Args_OLDEST 40u
_Static_assert(sizeof(struct PJRT_Memory_DebugString_Args) == 40, "PJRT_Memory_DebugString_Args");
_Static_assert(offsetof(struct PJRT_Memory_DebugString_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_Memory_DebugString_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_Memory_DebugString_Args, memory) == 16, "memory");
_Static_assert(offsetof(struct PJRT_Memory_DebugString_Args, debug_string) == 24, "debug_string");
_Static_assert(offsetof(struct PJRT_Memory_DebugString_Args, debug_string_size) == 32, "debug_string_size");

struct PJRT_Memory_ToString_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	struct PJRT_Memory *memory;
	const char *to_string;
	size_t to_string_size;
};
#define PJRT_Memory_ToString_Args_SIZE 40u
#define PJRT_Memory_ToString_Args_OLDEST 40u
_Static_assert(sizeof(struct PJRT_Memory_ToString_Args) == 40, "PJRT_Memory_ToString_Args");
_Static_assert(offsetof(struct PJRT_Memory_ToString_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_Memory_ToString_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_Memory_ToString_Args, memory) == 16, "memory");
_Static_assert(offsetof(struct PJRT_Memory_ToString_Args, to_string) == 24, "to_string");
_Static_assert(offsetof(struct PJRT_Memory_ToString_Args, to_string_size) == 32, "to_string_size");

struct PJRT_Memory_AddressableByDevices_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	struct PJRT_Memory *memory;
	struct PJRT_Device * const*devices;
	size_t num_devices;
};
#define PJRT_Memory_AddressableByDevices_Args_SIZE 40u
#define PJRT_Memory_AddressableByDevices_Args_OLDEST 40u
_Static_assert(sizeof(struct PJRT_Memory_AddressableByDevices_Args) == 40, "PJRT_Memory_AddressableByDevices_Args");
_Static_assert(offsetof(struct PJRT_Memory_AddressableByDevices_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_Memory_AddressableByDevices_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_Memory_AddressableByDevices_Args, memory) == 16, "memory");
_Static_assert(offsetof(struct PJRT_Memory_AddressableByDevices_Args, devices) == 24, "devices");
_Static_assert(offsetof(struct PJRT_Memory_AddressableByDevices_Args, num_devices) == 32, "num_devices");

struct PJRT_ExecuteContext_Create_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	struct PJRT_ExecuteContext *context;
};
#define PJRT_ExecuteContext_Create_Args_SIZE 24u
#define PJRT_ExecuteContext_Create_Args_OLDEST 24u
_Static_assert(sizeof(struct PJRT_ExecuteContext_Create_Args) == 24, "PJRT_ExecuteContext_Create_Args");
_Static_assert(offsetof(struct PJRT_ExecuteContext_Create_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_ExecuteContext_Create_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_ExecuteContext_Create_Args, context) == 16, "context");

struct PJRT_ExecuteContext_Destroy_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	struct PJRT_ExecuteContext *context;
};
#define PJRT_ExecuteContext_Destroy_Args_SIZE 24u
#define PJRT_ExecuteContext_Destroy_Args_OLDEST 24u
_Static_assert(sizeof(struct PJRT_ExecuteContext_Destroy_Args) == 24, "PJRT_ExecuteContext_Destroy_Args");
_Static_assert(offsetof(struct PJRT_ExecuteContext_Destroy_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_ExecuteContext_Destroy_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_ExecuteContext_Destroy_Args, context) == 16, "context");

struct PJRT_Executable_Destroy_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	struct PJRT_Executable *executable;
};
#define PJRT_Executable_Destroy_Args_SIZE 24u
#define PJRT_Executable_Destroy_Args_OLDEST 24u
_Static_assert(sizeof(struct PJRT_Executable_Destroy_Args) == 24, "PJRT_Executable_Destroy_Args");
_Static_assert(offsetof(struct PJRT_Executable_Destroy_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_Executable_Destroy_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_Executable_Destroy_Args, executable) == 16, "executable");

struct PJRT_LoadedExecutable_Destroy_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	struct PJRT_LoadedExecutable *executable;
};
#define PJRT_LoadedExecutable_Destroy_Args_SIZE 24u
#define PJRT_LoadedExecutable_Destroy_Args_OLDEST 24u
_Static_assert(sizeof(struct PJRT_LoadedExecutable_Destroy_Args) == 24, "PJRT_LoadedExecutable_Destroy_Args");
_Static_assert(offsetof(struct PJRT_LoadedExecutable_Destroy_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_LoadedExecutable_Destroy_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_LoadedExecutable_Destroy_Args, executable) == 16, "executable");

struct PJRT_LoadedExecutable_GetExecutable_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	struct PJRT_LoadedExecutable *loaded_executable;
	struct PJRT_Executable *executable;
};
#define PJRT_LoadedExecutable_GetExecutable_Args_SIZE 32u
#define PJRT_LoadedExecutable_GetExecutable_Args_OLDEST 32u
_Static_assert(sizeof(struct PJRT_LoadedExecutable_GetExecutable_Args) == 32, "PJRT_LoadedExecutable_GetExecutable_Args");
_Static_assert(offsetof(struct PJRT_LoadedExecutable_GetExecutable_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_LoadedExecutable_GetExecutable_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_LoadedExecutable_GetExecutable_Args, loaded_executable) == 16, "loaded_executable");
_Static_assert(offsetof(struct PJRT_LoadedExecutable_GetExecutable_Args, executable) == 24, "executable");

struct PJRT_LoadedExecutable_GetDeviceAssignment_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	struct PJRT_LoadedExecutable *executable;
	const char *serialized_bytes;
	size_t serialized_bytes_size;
	struct PJRT_DeviceAssignmentSerialized *serialized_device_assignment;
	void *serialized_device_assignment_deleter;
};
#define PJRT_LoadedExecutable_GetDeviceAssignment_Args_SIZE 56u
#define PJRT_LoadedExecutable_GetDeviceAssignment_Args_OLDEST 56u
_Static_assert(sizeof(struct PJRT_LoadedExecutable_GetDeviceAssignment_Args) == 56, "PJRT_LoadedExecutable_GetDeviceAssignment_Args");
_Static_assert(offsetof(struct PJRT_LoadedExecutable_GetDeviceAssignment_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_LoadedExecutable_GetDeviceAssignment_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_LoadedExecutable_GetDeviceAssignment_Args, executable) == 16, "executable");
_Static_assert(offsetof(struct PJRT_LoadedExecutable_GetDeviceAssignment_Args, serialized_bytes) == 24, "serialized_bytes");
_Static_assert(offsetof(struct PJRT_LoadedExecutable_GetDeviceAssignment_Args, serialized_bytes_size) == 32, "serialized_bytes_size");
_Static_assert(offsetof(struct PJRT_LoadedExecutable_GetDeviceAssignment_Args, serialized_device_assignment) == 40, "serialized_device_assignment");
_Static_assert(offsetof(struct PJRT_LoadedExecutable_GetDeviceAssignment_Args, serialized_device_assignment_deleter) == 48, "serialized_device_assignment_deleter");

struct PJRT_Executable_Name_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	struct PJRT_Executable *executable;
	const char *executable_name;
	size_t executable_name_size;
};
#define PJRT_Executable_Name_Args_SIZE 40u
#define PJRT_Executable_Name_Args_OLDEST 40u
_Static_assert(sizeof(struct PJRT_Executable_Name_Args) == 40, "PJRT_Executable_Name_Args");
_Static_assert(offsetof(struct PJRT_Executable_Name_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_Executable_Name_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_Executable_Name_Args, executable) == 16, "executable");
_Static_assert(offsetof(struct PJRT_Executable_Name_Args, executable_name) == 24, "executable_name");
_Static_assert(offsetof(struct PJRT_Executable_Name_Args, executable_name_size) == 32, "executable_name_size");

struct PJRT_Executable_NumReplicas_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	struct PJRT_Executable *executable;
	size_t num_replicas;
};
#define PJRT_Executable_NumReplicas_Args_SIZE 32u
#define PJRT_Executable_NumReplicas_Args_OLDEST 32u
_Static_assert(sizeof(struct PJRT_Executable_NumReplicas_Args) == 32, "PJRT_Executable_NumReplicas_Args");
_Static_assert(offsetof(struct PJRT_Executable_NumReplicas_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_Executable_NumReplicas_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_Executable_NumReplicas_Args, executable) == 16, "executable");
_Static_assert(offsetof(struct PJRT_Executable_NumReplicas_Args, num_replicas) == 24, "num_replicas");

struct PJRT_Executable_NumPartitions_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	struct PJRT_Executable *executable;
	size_t num_partitions;
};
#define PJRT_Executable_NumPartitions_Args_SIZE 32u
#define PJRT_Executable_NumPartitions_Args_OLDEST 32u
_Static_assert(sizeof(struct PJRT_Executable_NumPartitions_Args) == 32, "PJRT_Executable_NumPartitions_Args");
_Static_assert(offsetof(struct PJRT_Executable_NumPartitions_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_Executable_NumPartitions_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_Executable_NumPartitions_Args, executable) == 16, "executable");
_Static_assert(offsetof(struct PJRT_Executable_NumPartitions_Args, num_partitions) == 24, "num_partitions");

struct PJRT_LogicalDeviceIds {
	int replica;
	int partition;
};
#define PJRT_LogicalDeviceIds_SIZE 8u
_Static_assert(sizeof(struct PJRT_LogicalDeviceIds) == 8, "PJRT_LogicalDeviceIds");
_Static_assert(offsetof(struct PJRT_LogicalDeviceIds, replica) == 0, "replica");
_Static_assert(offsetof(struct PJRT_LogicalDeviceIds, partition) == 4, "partition");

struct PJRT_LoadedExecutable_AddressableDevices_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	struct PJRT_LoadedExecutable *executable;
	struct PJRT_Device * const*addressable_devices;
	size_t num_addressable_devices;
};
#define PJRT_LoadedExecutable_AddressableDevices_Args_SIZE 40u
#define PJRT_LoadedExecutable_AddressableDevices_Args_OLDEST 40u
_Static_assert(sizeof(struct PJRT_LoadedExecutable_AddressableDevices_Args) == 40, "PJRT_LoadedExecutable_AddressableDevices_Args");
_Static_assert(offsetof(struct PJRT_LoadedExecutable_AddressableDevices_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_LoadedExecutable_AddressableDevices_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_LoadedExecutable_AddressableDevices_Args, executable) == 16, "executable");
_Static_assert(offsetof(struct PJRT_LoadedExecutable_AddressableDevices_Args, addressable_devices) == 24, "addressable_devices");
_Static_assert(offsetof(struct PJRT_LoadedExecutable_AddressableDevices_Args, num_addressable_devices) == 32, "num_addressable_devices");

struct PJRT_LoadedExecutable_AddressableDeviceLogicalIds_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	struct PJRT_LoadedExecutable *executable;
	struct PJRT_LogicalDeviceIds *addressable_device_logical_ids;
	size_t num_addressable_device_logical_ids;
};
#define PJRT_LoadedExecutable_AddressableDeviceLogicalIds_Args_SIZE 40u
#define PJRT_LoadedExecutable_AddressableDeviceLogicalIds_Args_OLDEST 40u
_Static_assert(sizeof(struct PJRT_LoadedExecutable_AddressableDeviceLogicalIds_Args) == 40, "PJRT_LoadedExecutable_AddressableDeviceLogicalIds_Args");
_Static_assert(offsetof(struct PJRT_LoadedExecutable_AddressableDeviceLogicalIds_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_LoadedExecutable_AddressableDeviceLogicalIds_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_LoadedExecutable_AddressableDeviceLogicalIds_Args, executable) == 16, "executable");
_Static_assert(offsetof(struct PJRT_LoadedExecutable_AddressableDeviceLogicalIds_Args, addressable_device_logical_ids) == 24, "addressable_device_logical_ids");
_Static_assert(offsetof(struct PJRT_LoadedExecutable_AddressableDeviceLogicalIds_Args, num_addressable_device_logical_ids) == 32, "num_addressable_device_logical_ids");

struct PJRT_Executable_OptimizedProgram_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	struct PJRT_Executable *executable;
	struct PJRT_Program *program;
};
#define PJRT_Executable_OptimizedProgram_Args_SIZE 32u
#define PJRT_Executable_OptimizedProgram_Args_OLDEST 32u
_Static_assert(sizeof(struct PJRT_Executable_OptimizedProgram_Args) == 32, "PJRT_Executable_OptimizedProgram_Args");
_Static_assert(offsetof(struct PJRT_Executable_OptimizedProgram_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_Executable_OptimizedProgram_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_Executable_OptimizedProgram_Args, executable) == 16, "executable");
_Static_assert(offsetof(struct PJRT_Executable_OptimizedProgram_Args, program) == 24, "program");

struct PJRT_LoadedExecutable_Delete_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	struct PJRT_LoadedExecutable *executable;
};
#define PJRT_LoadedExecutable_Delete_Args_SIZE 24u
#define PJRT_LoadedExecutable_Delete_Args_OLDEST 24u
_Static_assert(sizeof(struct PJRT_LoadedExecutable_Delete_Args) == 24, "PJRT_LoadedExecutable_Delete_Args");
_Static_assert(offsetof(struct PJRT_LoadedExecutable_Delete_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_LoadedExecutable_Delete_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_LoadedExecutable_Delete_Args, executable) == 16, "executable");

struct PJRT_LoadedExecutable_IsDeleted_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	struct PJRT_LoadedExecutable *executable;
	_Bool is_deleted;
};
#define PJRT_LoadedExecutable_IsDeleted_Args_SIZE 25u
#define PJRT_LoadedExecutable_IsDeleted_Args_OLDEST 25u
_Static_assert(sizeof(struct PJRT_LoadedExecutable_IsDeleted_Args) == 32, "PJRT_LoadedExecutable_IsDeleted_Args");
_Static_assert(offsetof(struct PJRT_LoadedExecutable_IsDeleted_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_LoadedExecutable_IsDeleted_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_LoadedExecutable_IsDeleted_Args, executable) == 16, "executable");
_Static_assert(offsetof(struct PJRT_LoadedExecutable_IsDeleted_Args, is_deleted) == 24, "is_deleted");

struct PJRT_Chunk {
	void *data;
	size_t size;
	void *deleter;
	void *deleter_arg;
};
#define PJRT_Chunk_SIZE 32u
_Static_assert(sizeof(struct PJRT_Chunk) == 32, "PJRT_Chunk");
_Static_assert(offsetof(struct PJRT_Chunk, data) == 0, "data");
_Static_assert(offsetof(struct PJRT_Chunk, size) == 8, "size");
_Static_assert(offsetof(struct PJRT_Chunk, deleter) == 16, "deleter");
_Static_assert(offsetof(struct PJRT_Chunk, deleter_arg) == 24, "deleter_arg");

struct PJRT_SendCallbackInfo {
	int64_t channel_id;
	void *user_arg;
	void *send_callback;
};
#define PJRT_SendCallbackInfo_SIZE 24u
_Static_assert(sizeof(struct PJRT_SendCallbackInfo) == 24, "PJRT_SendCallbackInfo");
_Static_assert(offsetof(struct PJRT_SendCallbackInfo, channel_id) == 0, "channel_id");
_Static_assert(offsetof(struct PJRT_SendCallbackInfo, user_arg) == 8, "user_arg");
_Static_assert(offsetof(struct PJRT_SendCallbackInfo, send_callback) == 16, "send_callback");

struct PJRT_RecvCallbackInfo {
	int64_t channel_id;
	void *user_arg;
	void *recv_callback;
};
#define PJRT_RecvCallbackInfo_SIZE 24u
_Static_assert(sizeof(struct PJRT_RecvCallbackInfo) == 24, "PJRT_RecvCallbackInfo");
_Static_assert(offsetof(struct PJRT_RecvCallbackInfo, channel_id) == 0, "channel_id");
_Static_assert(offsetof(struct PJRT_RecvCallbackInfo, user_arg) == 8, "user_arg");
_Static_assert(offsetof(struct PJRT_RecvCallbackInfo, recv_callback) == 16, "recv_callback");

struct PJRT_HloOutputCallbackInfo {
	void *user_arg;
	void *callback;
	int64_t callback_id;
	size_t num_operands;
};
#define PJRT_HloOutputCallbackInfo_SIZE 32u
_Static_assert(sizeof(struct PJRT_HloOutputCallbackInfo) == 32, "PJRT_HloOutputCallbackInfo");
_Static_assert(offsetof(struct PJRT_HloOutputCallbackInfo, user_arg) == 0, "user_arg");
_Static_assert(offsetof(struct PJRT_HloOutputCallbackInfo, callback) == 8, "callback");
_Static_assert(offsetof(struct PJRT_HloOutputCallbackInfo, callback_id) == 16, "callback_id");
_Static_assert(offsetof(struct PJRT_HloOutputCallbackInfo, num_operands) == 24, "num_operands");

struct PJRT_ExecuteOptions {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	struct PJRT_SendCallbackInfo **send_callbacks;
	struct PJRT_RecvCallbackInfo **recv_callbacks;
	size_t num_send_ops;
	size_t num_recv_ops;
	int launch_id;
	const int64_t *non_donatable_input_indices;
	size_t num_non_donatable_input_indices;
	struct PJRT_ExecuteContext *context;
	const char *call_location;
	size_t num_tasks;
	int *task_ids;
	int64_t *incarnation_ids;
	struct PJRT_MultiSlice_Config *multi_slice_config;
	_Bool use_major_to_minor_data_layout_for_callbacks;
	struct PJRT_HloOutputCallbackInfo *hlo_output_callbacks;
	size_t num_hlo_output_callbacks;
};
#define PJRT_ExecuteOptions_SIZE 144u
_Static_assert(sizeof(struct PJRT_ExecuteOptions) == 144, "PJRT_ExecuteOptions");
_Static_assert(offsetof(struct PJRT_ExecuteOptions, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_ExecuteOptions, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_ExecuteOptions, send_callbacks) == 16, "send_callbacks");
_Static_assert(offsetof(struct PJRT_ExecuteOptions, recv_callbacks) == 24, "recv_callbacks");
_Static_assert(offsetof(struct PJRT_ExecuteOptions, num_send_ops) == 32, "num_send_ops");
_Static_assert(offsetof(struct PJRT_ExecuteOptions, num_recv_ops) == 40, "num_recv_ops");
_Static_assert(offsetof(struct PJRT_ExecuteOptions, launch_id) == 48, "launch_id");
_Static_assert(offsetof(struct PJRT_ExecuteOptions, non_donatable_input_indices) == 56, "non_donatable_input_indices");
_Static_assert(offsetof(struct PJRT_ExecuteOptions, num_non_donatable_input_indices) == 64, "num_non_donatable_input_indices");
_Static_assert(offsetof(struct PJRT_ExecuteOptions, context) == 72, "context");
_Static_assert(offsetof(struct PJRT_ExecuteOptions, call_location) == 80, "call_location");
_Static_assert(offsetof(struct PJRT_ExecuteOptions, num_tasks) == 88, "num_tasks");
_Static_assert(offsetof(struct PJRT_ExecuteOptions, task_ids) == 96, "task_ids");
_Static_assert(offsetof(struct PJRT_ExecuteOptions, incarnation_ids) == 104, "incarnation_ids");
_Static_assert(offsetof(struct PJRT_ExecuteOptions, multi_slice_config) == 112, "multi_slice_config");
_Static_assert(offsetof(struct PJRT_ExecuteOptions, use_major_to_minor_data_layout_for_callbacks) == 120, "use_major_to_minor_data_layout_for_callbacks");
_Static_assert(offsetof(struct PJRT_ExecuteOptions, hlo_output_callbacks) == 128, "hlo_output_callbacks");
_Static_assert(offsetof(struct PJRT_ExecuteOptions, num_hlo_output_callbacks) == 136, "num_hlo_output_callbacks");

struct PJRT_LoadedExecutable_Execute_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	struct PJRT_LoadedExecutable *executable;
	struct PJRT_ExecuteOptions *options;
	struct PJRT_Buffer * const* const*argument_lists;
	size_t num_devices;
	size_t num_args;
	struct PJRT_Buffer ** const*output_lists;
	struct PJRT_Event **device_complete_events;
	struct PJRT_Device *execute_device;
};
#define PJRT_LoadedExecutable_Execute_Args_SIZE 80u
#define PJRT_LoadedExecutable_Execute_Args_OLDEST 80u
_Static_assert(sizeof(struct PJRT_LoadedExecutable_Execute_Args) == 80, "PJRT_LoadedExecutable_Execute_Args");
_Static_assert(offsetof(struct PJRT_LoadedExecutable_Execute_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_LoadedExecutable_Execute_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_LoadedExecutable_Execute_Args, executable) == 16, "executable");
_Static_assert(offsetof(struct PJRT_LoadedExecutable_Execute_Args, options) == 24, "options");
_Static_assert(offsetof(struct PJRT_LoadedExecutable_Execute_Args, argument_lists) == 32, "argument_lists");
_Static_assert(offsetof(struct PJRT_LoadedExecutable_Execute_Args, num_devices) == 40, "num_devices");
_Static_assert(offsetof(struct PJRT_LoadedExecutable_Execute_Args, num_args) == 48, "num_args");
_Static_assert(offsetof(struct PJRT_LoadedExecutable_Execute_Args, output_lists) == 56, "output_lists");
_Static_assert(offsetof(struct PJRT_LoadedExecutable_Execute_Args, device_complete_events) == 64, "device_complete_events");
_Static_assert(offsetof(struct PJRT_LoadedExecutable_Execute_Args, execute_device) == 72, "execute_device");

struct PJRT_Executable_NumOutputs_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	struct PJRT_Executable *executable;
	size_t num_outputs;
};
#define PJRT_Executable_NumOutputs_Args_SIZE 32u
#define PJRT_Executable_NumOutputs_Args_OLDEST 32u
_Static_assert(sizeof(struct PJRT_Executable_NumOutputs_Args) == 32, "PJRT_Executable_NumOutputs_Args");
_Static_assert(offsetof(struct PJRT_Executable_NumOutputs_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_Executable_NumOutputs_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_Executable_NumOutputs_Args, executable) == 16, "executable");
_Static_assert(offsetof(struct PJRT_Executable_NumOutputs_Args, num_outputs) == 24, "num_outputs");

struct PJRT_Executable_SizeOfGeneratedCodeInBytes_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	struct PJRT_Executable *executable;
	int64_t size_in_bytes;
};
#define PJRT_Executable_SizeOfGeneratedCodeInBytes_Args_SIZE 32u
#define PJRT_Executable_SizeOfGeneratedCodeInBytes_Args_OLDEST 32u
_Static_assert(sizeof(struct PJRT_Executable_SizeOfGeneratedCodeInBytes_Args) == 32, "PJRT_Executable_SizeOfGeneratedCodeInBytes_Args");
_Static_assert(offsetof(struct PJRT_Executable_SizeOfGeneratedCodeInBytes_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_Executable_SizeOfGeneratedCodeInBytes_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_Executable_SizeOfGeneratedCodeInBytes_Args, executable) == 16, "executable");
_Static_assert(offsetof(struct PJRT_Executable_SizeOfGeneratedCodeInBytes_Args, size_in_bytes) == 24, "size_in_bytes");

struct PJRT_Executable_Fingerprint_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	struct PJRT_Executable *executable;
	const char *executable_fingerprint;
	size_t executable_fingerprint_size;
};
#define PJRT_Executable_Fingerprint_Args_SIZE 40u
#define PJRT_Executable_Fingerprint_Args_OLDEST 40u
_Static_assert(sizeof(struct PJRT_Executable_Fingerprint_Args) == 40, "PJRT_Executable_Fingerprint_Args");
_Static_assert(offsetof(struct PJRT_Executable_Fingerprint_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_Executable_Fingerprint_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_Executable_Fingerprint_Args, executable) == 16, "executable");
_Static_assert(offsetof(struct PJRT_Executable_Fingerprint_Args, executable_fingerprint) == 24, "executable_fingerprint");
_Static_assert(offsetof(struct PJRT_Executable_Fingerprint_Args, executable_fingerprint_size) == 32, "executable_fingerprint_size");

struct PJRT_Executable_GetCostAnalysis_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	struct PJRT_Executable *executable;
	size_t num_properties;
	const struct PJRT_NamedValue *properties;
};
#define PJRT_Executable_GetCostAnalysis_Args_SIZE 40u
#define PJRT_Executable_GetCostAnalysis_Args_OLDEST 40u
_Static_assert(sizeof(struct PJRT_Executable_GetCostAnalysis_Args) == 40, "PJRT_Executable_GetCostAnalysis_Args");
_Static_assert(offsetof(struct PJRT_Executable_GetCostAnalysis_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_Executable_GetCostAnalysis_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_Executable_GetCostAnalysis_Args, executable) == 16, "executable");
_Static_assert(offsetof(struct PJRT_Executable_GetCostAnalysis_Args, num_properties) == 24, "num_properties");
_Static_assert(offsetof(struct PJRT_Executable_GetCostAnalysis_Args, properties) == 32, "properties");

struct PJRT_Executable_GetCompiledMemoryStats_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	struct PJRT_Executable *executable;
	int64_t generated_code_size_in_bytes;
	int64_t argument_size_in_bytes;
	int64_t output_size_in_bytes;
	int64_t alias_size_in_bytes;
	int64_t temp_size_in_bytes;
	int64_t host_generated_code_size_in_bytes;
	int64_t host_argument_size_in_bytes;
	int64_t host_output_size_in_bytes;
	int64_t host_alias_size_in_bytes;
	int64_t host_temp_size_in_bytes;
	int64_t peak_memory_in_bytes;
	int64_t total_size_in_bytes;
	int64_t total_allocation_bytes;
	int64_t indefinite_allocations;
	int64_t peak_unpadded_heap_bytes;
};
#define PJRT_Executable_GetCompiledMemoryStats_Args_SIZE 144u
#define PJRT_Executable_GetCompiledMemoryStats_Args_OLDEST 112u
_Static_assert(sizeof(struct PJRT_Executable_GetCompiledMemoryStats_Args) == 144, "PJRT_Executable_GetCompiledMemoryStats_Args");
_Static_assert(offsetof(struct PJRT_Executable_GetCompiledMemoryStats_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_Executable_GetCompiledMemoryStats_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_Executable_GetCompiledMemoryStats_Args, executable) == 16, "executable");
_Static_assert(offsetof(struct PJRT_Executable_GetCompiledMemoryStats_Args, generated_code_size_in_bytes) == 24, "generated_code_size_in_bytes");
_Static_assert(offsetof(struct PJRT_Executable_GetCompiledMemoryStats_Args, argument_size_in_bytes) == 32, "argument_size_in_bytes");
_Static_assert(offsetof(struct PJRT_Executable_GetCompiledMemoryStats_Args, output_size_in_bytes) == 40, "output_size_in_bytes");
_Static_assert(offsetof(struct PJRT_Executable_GetCompiledMemoryStats_Args, alias_size_in_bytes) == 48, "alias_size_in_bytes");
_Static_assert(offsetof(struct PJRT_Executable_GetCompiledMemoryStats_Args, temp_size_in_bytes) == 56, "temp_size_in_bytes");
_Static_assert(offsetof(struct PJRT_Executable_GetCompiledMemoryStats_Args, host_generated_code_size_in_bytes) == 64, "host_generated_code_size_in_bytes");
_Static_assert(offsetof(struct PJRT_Executable_GetCompiledMemoryStats_Args, host_argument_size_in_bytes) == 72, "host_argument_size_in_bytes");
_Static_assert(offsetof(struct PJRT_Executable_GetCompiledMemoryStats_Args, host_output_size_in_bytes) == 80, "host_output_size_in_bytes");
_Static_assert(offsetof(struct PJRT_Executable_GetCompiledMemoryStats_Args, host_alias_size_in_bytes) == 88, "host_alias_size_in_bytes");
_Static_assert(offsetof(struct PJRT_Executable_GetCompiledMemoryStats_Args, host_temp_size_in_bytes) == 96, "host_temp_size_in_bytes");
_Static_assert(offsetof(struct PJRT_Executable_GetCompiledMemoryStats_Args, peak_memory_in_bytes) == 104, "peak_memory_in_bytes");
_Static_assert(offsetof(struct PJRT_Executable_GetCompiledMemoryStats_Args, total_size_in_bytes) == 112, "total_size_in_bytes");
_Static_assert(offsetof(struct PJRT_Executable_GetCompiledMemoryStats_Args, total_allocation_bytes) == 120, "total_allocation_bytes");
_Static_assert(offsetof(struct PJRT_Executable_GetCompiledMemoryStats_Args, indefinite_allocations) == 128, "indefinite_allocations");
_Static_assert(offsetof(struct PJRT_Executable_GetCompiledMemoryStats_Args, peak_unpadded_heap_bytes) == 136, "peak_unpadded_heap_bytes");

struct PJRT_Executable_OutputElementTypes_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	struct PJRT_Executable *executable;
	int *output_types;
	size_t num_output_types;
};
#define PJRT_Executable_OutputElementTypes_Args_SIZE 40u
#define PJRT_Executable_OutputElementTypes_Args_OLDEST 40u
_Static_assert(sizeof(struct PJRT_Executable_OutputElementTypes_Args) == 40, "PJRT_Executable_OutputElementTypes_Args");
_Static_assert(offsetof(struct PJRT_Executable_OutputElementTypes_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_Executable_OutputElementTypes_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_Executable_OutputElementTypes_Args, executable) == 16, "executable");
_Static_assert(offsetof(struct PJRT_Executable_OutputElementTypes_Args, output_types) == 24, "output_types");
_Static_assert(offsetof(struct PJRT_Executable_OutputElementTypes_Args, num_output_types) == 32, "num_output_types");

struct PJRT_Executable_OutputDimensions_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	struct PJRT_Executable *executable;
	size_t num_outputs;
	const int64_t *dims;
	const size_t *dim_sizes;
};
#define PJRT_Executable_OutputDimensions_Args_SIZE 48u
#define PJRT_Executable_OutputDimensions_Args_OLDEST 48u
_Static_assert(sizeof(struct PJRT_Executable_OutputDimensions_Args) == 48, "PJRT_Executable_OutputDimensions_Args");
_Static_assert(offsetof(struct PJRT_Executable_OutputDimensions_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_Executable_OutputDimensions_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_Executable_OutputDimensions_Args, executable) == 16, "executable");
_Static_assert(offsetof(struct PJRT_Executable_OutputDimensions_Args, num_outputs) == 24, "num_outputs");
_Static_assert(offsetof(struct PJRT_Executable_OutputDimensions_Args, dims) == 32, "dims");
_Static_assert(offsetof(struct PJRT_Executable_OutputDimensions_Args, dim_sizes) == 40, "dim_sizes");

struct PJRT_Executable_ParameterMemoryKinds_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	struct PJRT_Executable *executable;
	size_t num_parameters;
	const char * const*memory_kinds;
	const size_t *memory_kind_sizes;
};
#define PJRT_Executable_ParameterMemoryKinds_Args_SIZE 48u
#define PJRT_Executable_ParameterMemoryKinds_Args_OLDEST 48u
_Static_assert(sizeof(struct PJRT_Executable_ParameterMemoryKinds_Args) == 48, "PJRT_Executable_ParameterMemoryKinds_Args");
_Static_assert(offsetof(struct PJRT_Executable_ParameterMemoryKinds_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_Executable_ParameterMemoryKinds_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_Executable_ParameterMemoryKinds_Args, executable) == 16, "executable");
_Static_assert(offsetof(struct PJRT_Executable_ParameterMemoryKinds_Args, num_parameters) == 24, "num_parameters");
_Static_assert(offsetof(struct PJRT_Executable_ParameterMemoryKinds_Args, memory_kinds) == 32, "memory_kinds");
_Static_assert(offsetof(struct PJRT_Executable_ParameterMemoryKinds_Args, memory_kind_sizes) == 40, "memory_kind_sizes");

struct PJRT_Executable_OutputMemoryKinds_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	struct PJRT_Executable *executable;
	size_t num_outputs;
	const char * const*memory_kinds;
	const size_t *memory_kind_sizes;
};
#define PJRT_Executable_OutputMemoryKinds_Args_SIZE 48u
#define PJRT_Executable_OutputMemoryKinds_Args_OLDEST 48u
_Static_assert(sizeof(struct PJRT_Executable_OutputMemoryKinds_Args) == 48, "PJRT_Executable_OutputMemoryKinds_Args");
_Static_assert(offsetof(struct PJRT_Executable_OutputMemoryKinds_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_Executable_OutputMemoryKinds_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_Executable_OutputMemoryKinds_Args, executable) == 16, "executable");
_Static_assert(offsetof(struct PJRT_Executable_OutputMemoryKinds_Args, num_outputs) == 24, "num_outputs");
_Static_assert(offsetof(struct PJRT_Executable_OutputMemoryKinds_Args, memory_kinds) == 32, "memory_kinds");
_Static_assert(offsetof(struct PJRT_Executable_OutputMemoryKinds_Args, memory_kind_sizes) == 40, "memory_kind_sizes");

struct PJRT_Executable_Serialize_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	const struct PJRT_Executable *executable;
	const char *serialized_bytes;
	size_t serialized_bytes_size;
	struct PJRT_SerializedExecutable *serialized_executable;
	void *serialized_executable_deleter;
};
#define PJRT_Executable_Serialize_Args_SIZE 56u
#define PJRT_Executable_Serialize_Args_OLDEST 56u
_Static_assert(sizeof(struct PJRT_Executable_Serialize_Args) == 56, "PJRT_Executable_Serialize_Args");
_Static_assert(offsetof(struct PJRT_Executable_Serialize_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_Executable_Serialize_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_Executable_Serialize_Args, executable) == 16, "executable");
_Static_assert(offsetof(struct PJRT_Executable_Serialize_Args, serialized_bytes) == 24, "serialized_bytes");
_Static_assert(offsetof(struct PJRT_Executable_Serialize_Args, serialized_bytes_size) == 32, "serialized_bytes_size");
_Static_assert(offsetof(struct PJRT_Executable_Serialize_Args, serialized_executable) == 40, "serialized_executable");
_Static_assert(offsetof(struct PJRT_Executable_Serialize_Args, serialized_executable_deleter) == 48, "serialized_executable_deleter");

struct PJRT_Executable_GetCompileOptions_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	struct PJRT_Executable *executable;
	const char *serialized_bytes;
	size_t serialized_bytes_size;
	struct PJRT_SerializedCompileOptions *serialized_compile_options;
	void *serialized_compile_options_deleter;
};
#define PJRT_Executable_GetCompileOptions_Args_SIZE 56u
#define PJRT_Executable_GetCompileOptions_Args_OLDEST 56u
_Static_assert(sizeof(struct PJRT_Executable_GetCompileOptions_Args) == 56, "PJRT_Executable_GetCompileOptions_Args");
_Static_assert(offsetof(struct PJRT_Executable_GetCompileOptions_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_Executable_GetCompileOptions_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_Executable_GetCompileOptions_Args, executable) == 16, "executable");
_Static_assert(offsetof(struct PJRT_Executable_GetCompileOptions_Args, serialized_bytes) == 24, "serialized_bytes");
_Static_assert(offsetof(struct PJRT_Executable_GetCompileOptions_Args, serialized_bytes_size) == 32, "serialized_bytes_size");
_Static_assert(offsetof(struct PJRT_Executable_GetCompileOptions_Args, serialized_compile_options) == 40, "serialized_compile_options");
_Static_assert(offsetof(struct PJRT_Executable_GetCompileOptions_Args, serialized_compile_options_deleter) == 48, "serialized_compile_options_deleter");

struct PJRT_LoadOptions {
	size_t struct_size;
	const int32_t *computation_origin;
	size_t computation_origin_size;
	struct PJRT_MultiSlice_Config *multi_slice_config;
};
#define PJRT_LoadOptions_SIZE 32u
_Static_assert(sizeof(struct PJRT_LoadOptions) == 32, "PJRT_LoadOptions");
_Static_assert(offsetof(struct PJRT_LoadOptions, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_LoadOptions, computation_origin) == 8, "computation_origin");
_Static_assert(offsetof(struct PJRT_LoadOptions, computation_origin_size) == 16, "computation_origin_size");
_Static_assert(offsetof(struct PJRT_LoadOptions, multi_slice_config) == 24, "multi_slice_config");

struct PJRT_Executable_DeserializeAndLoad_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	struct PJRT_Client *client;
	const char *serialized_executable;
	size_t serialized_executable_size;
	struct PJRT_LoadedExecutable *loaded_executable;
	const char *overridden_serialized_compile_options;
	size_t overridden_serialized_compile_options_size;
	struct PJRT_LoadOptions *load_options;
};
#define PJRT_Executable_DeserializeAndLoad_Args_SIZE 72u
#define PJRT_Executable_DeserializeAndLoad_Args_OLDEST 64u
_Static_assert(sizeof(struct PJRT_Executable_DeserializeAndLoad_Args) == 72, "PJRT_Executable_DeserializeAndLoad_Args");
_Static_assert(offsetof(struct PJRT_Executable_DeserializeAndLoad_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_Executable_DeserializeAndLoad_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_Executable_DeserializeAndLoad_Args, client) == 16, "client");
_Static_assert(offsetof(struct PJRT_Executable_DeserializeAndLoad_Args, serialized_executable) == 24, "serialized_executable");
_Static_assert(offsetof(struct PJRT_Executable_DeserializeAndLoad_Args, serialized_executable_size) == 32, "serialized_executable_size");
_Static_assert(offsetof(struct PJRT_Executable_DeserializeAndLoad_Args, loaded_executable) == 40, "loaded_executable");
_Static_assert(offsetof(struct PJRT_Executable_DeserializeAndLoad_Args, overridden_serialized_compile_options) == 48, "overridden_serialized_compile_options");
_Static_assert(offsetof(struct PJRT_Executable_DeserializeAndLoad_Args, overridden_serialized_compile_options_size) == 56, "overridden_serialized_compile_options_size");
_Static_assert(offsetof(struct PJRT_Executable_DeserializeAndLoad_Args, load_options) == 64, "load_options");

struct PJRT_LoadedExecutable_Fingerprint_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	struct PJRT_LoadedExecutable *executable;
	const char *executable_fingerprint;
	size_t executable_fingerprint_size;
};
#define PJRT_LoadedExecutable_Fingerprint_Args_SIZE 40u
#define PJRT_LoadedExecutable_Fingerprint_Args_OLDEST 40u
_Static_assert(sizeof(struct PJRT_LoadedExecutable_Fingerprint_Args) == 40, "PJRT_LoadedExecutable_Fingerprint_Args");
_Static_assert(offsetof(struct PJRT_LoadedExecutable_Fingerprint_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_LoadedExecutable_Fingerprint_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_LoadedExecutable_Fingerprint_Args, executable) == 16, "executable");
_Static_assert(offsetof(struct PJRT_LoadedExecutable_Fingerprint_Args, executable_fingerprint) == 24, "executable_fingerprint");
_Static_assert(offsetof(struct PJRT_LoadedExecutable_Fingerprint_Args, executable_fingerprint_size) == 32, "executable_fingerprint_size");

struct PJRT_Buffer_Destroy_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	struct PJRT_Buffer *buffer;
};
#define PJRT_Buffer_Destroy_Args_SIZE 24u
#define PJRT_Buffer_Destroy_Args_OLDEST 24u
_Static_assert(sizeof(struct PJRT_Buffer_Destroy_Args) == 24, "PJRT_Buffer_Destroy_Args");
_Static_assert(offsetof(struct PJRT_Buffer_Destroy_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_Buffer_Destroy_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_Buffer_Destroy_Args, buffer) == 16, "buffer");

struct PJRT_Buffer_ElementType_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	struct PJRT_Buffer *buffer;
	int type;
};
#define PJRT_Buffer_ElementType_Args_SIZE 28u
#define PJRT_Buffer_ElementType_Args_OLDEST 28u
_Static_assert(sizeof(struct PJRT_Buffer_ElementType_Args) == 32, "PJRT_Buffer_ElementType_Args");
_Static_assert(offsetof(struct PJRT_Buffer_ElementType_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_Buffer_ElementType_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_Buffer_ElementType_Args, buffer) == 16, "buffer");
_Static_assert(offsetof(struct PJRT_Buffer_ElementType_Args, type) == 24, "type");

struct PJRT_Buffer_Dimensions_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	struct PJRT_Buffer *buffer;
	const int64_t *dims;
	size_t num_dims;
};
#define PJRT_Buffer_Dimensions_Args_SIZE 40u
#define PJRT_Buffer_Dimensions_Args_OLDEST 40u
_Static_assert(sizeof(struct PJRT_Buffer_Dimensions_Args) == 40, "PJRT_Buffer_Dimensions_Args");
_Static_assert(offsetof(struct PJRT_Buffer_Dimensions_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_Buffer_Dimensions_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_Buffer_Dimensions_Args, buffer) == 16, "buffer");
_Static_assert(offsetof(struct PJRT_Buffer_Dimensions_Args, dims) == 24, "dims");
_Static_assert(offsetof(struct PJRT_Buffer_Dimensions_Args, num_dims) == 32, "num_dims");

struct PJRT_Buffer_UnpaddedDimensions_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	struct PJRT_Buffer *buffer;
	const int64_t *unpadded_dims;
	size_t num_dims;
};
#define PJRT_Buffer_UnpaddedDimensions_Args_SIZE 40u
#define PJRT_Buffer_UnpaddedDimensions_Args_OLDEST 40u
_Static_assert(sizeof(struct PJRT_Buffer_UnpaddedDimensions_Args) == 40, "PJRT_Buffer_UnpaddedDimensions_Args");
_Static_assert(offsetof(struct PJRT_Buffer_UnpaddedDimensions_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_Buffer_UnpaddedDimensions_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_Buffer_UnpaddedDimensions_Args, buffer) == 16, "buffer");
_Static_assert(offsetof(struct PJRT_Buffer_UnpaddedDimensions_Args, unpadded_dims) == 24, "unpadded_dims");
_Static_assert(offsetof(struct PJRT_Buffer_UnpaddedDimensions_Args, num_dims) == 32, "num_dims");

struct PJRT_Buffer_DynamicDimensionIndices_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	struct PJRT_Buffer *buffer;
	const size_t *dynamic_dim_indices;
	size_t num_dynamic_dims;
};
#define PJRT_Buffer_DynamicDimensionIndices_Args_SIZE 40u
#define PJRT_Buffer_DynamicDimensionIndices_Args_OLDEST 40u
_Static_assert(sizeof(struct PJRT_Buffer_DynamicDimensionIndices_Args) == 40, "PJRT_Buffer_DynamicDimensionIndices_Args");
_Static_assert(offsetof(struct PJRT_Buffer_DynamicDimensionIndices_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_Buffer_DynamicDimensionIndices_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_Buffer_DynamicDimensionIndices_Args, buffer) == 16, "buffer");
_Static_assert(offsetof(struct PJRT_Buffer_DynamicDimensionIndices_Args, dynamic_dim_indices) == 24, "dynamic_dim_indices");
_Static_assert(offsetof(struct PJRT_Buffer_DynamicDimensionIndices_Args, num_dynamic_dims) == 32, "num_dynamic_dims");

struct PJRT_Buffer_GetMemoryLayout_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	struct PJRT_Buffer *buffer;
	struct PJRT_Buffer_MemoryLayout layout;
};
#define PJRT_Buffer_GetMemoryLayout_Args_SIZE 104u
#define PJRT_Buffer_GetMemoryLayout_Args_OLDEST 104u
_Static_assert(sizeof(struct PJRT_Buffer_GetMemoryLayout_Args) == 104, "PJRT_Buffer_GetMemoryLayout_Args");
_Static_assert(offsetof(struct PJRT_Buffer_GetMemoryLayout_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_Buffer_GetMemoryLayout_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_Buffer_GetMemoryLayout_Args, buffer) == 16, "buffer");
_Static_assert(offsetof(struct PJRT_Buffer_GetMemoryLayout_Args, layout) == 24, "layout");

struct PJRT_Buffer_ToHostBuffer_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	struct PJRT_Buffer *src;
	struct PJRT_Buffer_MemoryLayout *host_layout;
	void *dst;
	size_t dst_size;
	struct PJRT_Event *event;
};
#define PJRT_Buffer_ToHostBuffer_Args_SIZE 56u
#define PJRT_Buffer_ToHostBuffer_Args_OLDEST 56u
_Static_assert(sizeof(struct PJRT_Buffer_ToHostBuffer_Args) == 56, "PJRT_Buffer_ToHostBuffer_Args");
_Static_assert(offsetof(struct PJRT_Buffer_ToHostBuffer_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_Buffer_ToHostBuffer_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_Buffer_ToHostBuffer_Args, src) == 16, "src");
_Static_assert(offsetof(struct PJRT_Buffer_ToHostBuffer_Args, host_layout) == 24, "host_layout");
_Static_assert(offsetof(struct PJRT_Buffer_ToHostBuffer_Args, dst) == 32, "dst");
_Static_assert(offsetof(struct PJRT_Buffer_ToHostBuffer_Args, dst_size) == 40, "dst_size");
_Static_assert(offsetof(struct PJRT_Buffer_ToHostBuffer_Args, event) == 48, "event");

struct PJRT_Buffer_OnDeviceSizeInBytes_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	struct PJRT_Buffer *buffer;
	size_t on_device_size_in_bytes;
};
#define PJRT_Buffer_OnDeviceSizeInBytes_Args_SIZE 32u
#define PJRT_Buffer_OnDeviceSizeInBytes_Args_OLDEST 32u
_Static_assert(sizeof(struct PJRT_Buffer_OnDeviceSizeInBytes_Args) == 32, "PJRT_Buffer_OnDeviceSizeInBytes_Args");
_Static_assert(offsetof(struct PJRT_Buffer_OnDeviceSizeInBytes_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_Buffer_OnDeviceSizeInBytes_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_Buffer_OnDeviceSizeInBytes_Args, buffer) == 16, "buffer");
_Static_assert(offsetof(struct PJRT_Buffer_OnDeviceSizeInBytes_Args, on_device_size_in_bytes) == 24, "on_device_size_in_bytes");

struct PJRT_Buffer_Delete_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	struct PJRT_Buffer *buffer;
};
#define PJRT_Buffer_Delete_Args_SIZE 24u
#define PJRT_Buffer_Delete_Args_OLDEST 24u
_Static_assert(sizeof(struct PJRT_Buffer_Delete_Args) == 24, "PJRT_Buffer_Delete_Args");
_Static_assert(offsetof(struct PJRT_Buffer_Delete_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_Buffer_Delete_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_Buffer_Delete_Args, buffer) == 16, "buffer");

struct PJRT_Buffer_IsDeleted_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	struct PJRT_Buffer *buffer;
	_Bool is_deleted;
};
#define PJRT_Buffer_IsDeleted_Args_SIZE 25u
#define PJRT_Buffer_IsDeleted_Args_OLDEST 25u
_Static_assert(sizeof(struct PJRT_Buffer_IsDeleted_Args) == 32, "PJRT_Buffer_IsDeleted_Args");
_Static_assert(offsetof(struct PJRT_Buffer_IsDeleted_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_Buffer_IsDeleted_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_Buffer_IsDeleted_Args, buffer) == 16, "buffer");
_Static_assert(offsetof(struct PJRT_Buffer_IsDeleted_Args, is_deleted) == 24, "is_deleted");

struct PJRT_Buffer_CopyRawToHost_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	struct PJRT_Buffer *buffer;
	void *dst;
	int64_t offset;
	int64_t transfer_size;
	struct PJRT_Event *event;
};
#define PJRT_Buffer_CopyRawToHost_Args_SIZE 56u
#define PJRT_Buffer_CopyRawToHost_Args_OLDEST 56u
_Static_assert(sizeof(struct PJRT_Buffer_CopyRawToHost_Args) == 56, "PJRT_Buffer_CopyRawToHost_Args");
_Static_assert(offsetof(struct PJRT_Buffer_CopyRawToHost_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_Buffer_CopyRawToHost_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_Buffer_CopyRawToHost_Args, buffer) == 16, "buffer");
_Static_assert(offsetof(struct PJRT_Buffer_CopyRawToHost_Args, dst) == 24, "dst");
_Static_assert(offsetof(struct PJRT_Buffer_CopyRawToHost_Args, offset) == 32, "offset");
_Static_assert(offsetof(struct PJRT_Buffer_CopyRawToHost_Args, transfer_size) == 40, "transfer_size");
_Static_assert(offsetof(struct PJRT_Buffer_CopyRawToHost_Args, event) == 48, "event");

struct PJRT_Buffer_CopyRawToHostFuture_Callback_Args {
	size_t struct_size;
	void *callback_data;
	int error_code;
	const char *error_message;
	size_t error_message_size;
	void *dst;
};
#define PJRT_Buffer_CopyRawToHostFuture_Callback_Args_SIZE 48u
#define PJRT_Buffer_CopyRawToHostFuture_Callback_Args_OLDEST 48u
_Static_assert(sizeof(struct PJRT_Buffer_CopyRawToHostFuture_Callback_Args) == 48, "PJRT_Buffer_CopyRawToHostFuture_Callback_Args");
_Static_assert(offsetof(struct PJRT_Buffer_CopyRawToHostFuture_Callback_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_Buffer_CopyRawToHostFuture_Callback_Args, callback_data) == 8, "callback_data");
_Static_assert(offsetof(struct PJRT_Buffer_CopyRawToHostFuture_Callback_Args, error_code) == 16, "error_code");
_Static_assert(offsetof(struct PJRT_Buffer_CopyRawToHostFuture_Callback_Args, error_message) == 24, "error_message");
_Static_assert(offsetof(struct PJRT_Buffer_CopyRawToHostFuture_Callback_Args, error_message_size) == 32, "error_message_size");
_Static_assert(offsetof(struct PJRT_Buffer_CopyRawToHostFuture_Callback_Args, dst) == 40, "dst");

struct PJRT_Buffer_CopyRawToHostFuture_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	struct PJRT_Buffer *buffer;
	int64_t offset;
	int64_t transfer_size;
	struct PJRT_Event *event;
	void *callback_data;
	void *future_ready_callback;
};
#define PJRT_Buffer_CopyRawToHostFuture_Args_SIZE 64u
#define PJRT_Buffer_CopyRawToHostFuture_Args_OLDEST 64u
_Static_assert(sizeof(struct PJRT_Buffer_CopyRawToHostFuture_Args) == 64, "PJRT_Buffer_CopyRawToHostFuture_Args");
_Static_assert(offsetof(struct PJRT_Buffer_CopyRawToHostFuture_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_Buffer_CopyRawToHostFuture_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_Buffer_CopyRawToHostFuture_Args, buffer) == 16, "buffer");
_Static_assert(offsetof(struct PJRT_Buffer_CopyRawToHostFuture_Args, offset) == 24, "offset");
_Static_assert(offsetof(struct PJRT_Buffer_CopyRawToHostFuture_Args, transfer_size) == 32, "transfer_size");
_Static_assert(offsetof(struct PJRT_Buffer_CopyRawToHostFuture_Args, event) == 40, "event");
_Static_assert(offsetof(struct PJRT_Buffer_CopyRawToHostFuture_Args, callback_data) == 48, "callback_data");
_Static_assert(offsetof(struct PJRT_Buffer_CopyRawToHostFuture_Args, future_ready_callback) == 56, "future_ready_callback");

struct PJRT_Buffer_CopyToDevice_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	struct PJRT_Buffer *buffer;
	struct PJRT_Device *dst_device;
	struct PJRT_Buffer *dst_buffer;
};
#define PJRT_Buffer_CopyToDevice_Args_SIZE 40u
#define PJRT_Buffer_CopyToDevice_Args_OLDEST 40u
_Static_assert(sizeof(struct PJRT_Buffer_CopyToDevice_Args) == 40, "PJRT_Buffer_CopyToDevice_Args");
_Static_assert(offsetof(struct PJRT_Buffer_CopyToDevice_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_Buffer_CopyToDevice_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_Buffer_CopyToDevice_Args, buffer) == 16, "buffer");
_Static_assert(offsetof(struct PJRT_Buffer_CopyToDevice_Args, dst_device) == 24, "dst_device");
_Static_assert(offsetof(struct PJRT_Buffer_CopyToDevice_Args, dst_buffer) == 32, "dst_buffer");

struct PJRT_Buffer_CopyToMemory_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	struct PJRT_Buffer *buffer;
	struct PJRT_Memory *dst_memory;
	struct PJRT_Buffer *dst_buffer;
};
#define PJRT_Buffer_CopyToMemory_Args_SIZE 40u
#define PJRT_Buffer_CopyToMemory_Args_OLDEST 40u
_Static_assert(sizeof(struct PJRT_Buffer_CopyToMemory_Args) == 40, "PJRT_Buffer_CopyToMemory_Args");
_Static_assert(offsetof(struct PJRT_Buffer_CopyToMemory_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_Buffer_CopyToMemory_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_Buffer_CopyToMemory_Args, buffer) == 16, "buffer");
_Static_assert(offsetof(struct PJRT_Buffer_CopyToMemory_Args, dst_memory) == 24, "dst_memory");
_Static_assert(offsetof(struct PJRT_Buffer_CopyToMemory_Args, dst_buffer) == 32, "dst_buffer");

struct PJRT_Buffer_Bitcast_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	struct PJRT_Buffer *buffer;
	int element_type;
	const int64_t *dims;
	size_t num_dims;
	struct PJRT_Buffer_MemoryLayout *device_layout;
	struct PJRT_Buffer *out_buffer;
};
#define PJRT_Buffer_Bitcast_Args_SIZE 64u
#define PJRT_Buffer_Bitcast_Args_OLDEST 64u
_Static_assert(sizeof(struct PJRT_Buffer_Bitcast_Args) == 64, "PJRT_Buffer_Bitcast_Args");
_Static_assert(offsetof(struct PJRT_Buffer_Bitcast_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_Buffer_Bitcast_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_Buffer_Bitcast_Args, buffer) == 16, "buffer");
_Static_assert(offsetof(struct PJRT_Buffer_Bitcast_Args, element_type) == 24, "element_type");
_Static_assert(offsetof(struct PJRT_Buffer_Bitcast_Args, dims) == 32, "dims");
_Static_assert(offsetof(struct PJRT_Buffer_Bitcast_Args, num_dims) == 40, "num_dims");
_Static_assert(offsetof(struct PJRT_Buffer_Bitcast_Args, device_layout) == 48, "device_layout");
_Static_assert(offsetof(struct PJRT_Buffer_Bitcast_Args, out_buffer) == 56, "out_buffer");

struct PJRT_Buffer_IsOnCpu_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	struct PJRT_Buffer *buffer;
	_Bool is_on_cpu;
};
#define PJRT_Buffer_IsOnCpu_Args_SIZE 25u
#define PJRT_Buffer_IsOnCpu_Args_OLDEST 25u
_Static_assert(sizeof(struct PJRT_Buffer_IsOnCpu_Args) == 32, "PJRT_Buffer_IsOnCpu_Args");
_Static_assert(offsetof(struct PJRT_Buffer_IsOnCpu_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_Buffer_IsOnCpu_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_Buffer_IsOnCpu_Args, buffer) == 16, "buffer");
_Static_assert(offsetof(struct PJRT_Buffer_IsOnCpu_Args, is_on_cpu) == 24, "is_on_cpu");

struct PJRT_Buffer_Device_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	struct PJRT_Buffer *buffer;
	struct PJRT_Device *device;
};
#define PJRT_Buffer_Device_Args_SIZE 32u
#define PJRT_Buffer_Device_Args_OLDEST 32u
_Static_assert(sizeof(struct PJRT_Buffer_Device_Args) == 32, "PJRT_Buffer_Device_Args");
_Static_assert(offsetof(struct PJRT_Buffer_Device_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_Buffer_Device_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_Buffer_Device_Args, buffer) == 16, "buffer");
_Static_assert(offsetof(struct PJRT_Buffer_Device_Args, device) == 24, "device");

struct PJRT_Buffer_Memory_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	struct PJRT_Buffer *buffer;
	struct PJRT_Memory *memory;
};
#define PJRT_Buffer_Memory_Args_SIZE 32u
#define PJRT_Buffer_Memory_Args_OLDEST 32u
_Static_assert(sizeof(struct PJRT_Buffer_Memory_Args) == 32, "PJRT_Buffer_Memory_Args");
_Static_assert(offsetof(struct PJRT_Buffer_Memory_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_Buffer_Memory_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_Buffer_Memory_Args, buffer) == 16, "buffer");
_Static_assert(offsetof(struct PJRT_Buffer_Memory_Args, memory) == 24, "memory");

struct PJRT_Buffer_ReadyEvent_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	struct PJRT_Buffer *buffer;
	struct PJRT_Event *event;
};
#define PJRT_Buffer_ReadyEvent_Args_SIZE 32u
#define PJRT_Buffer_ReadyEvent_Args_OLDEST 32u
_Static_assert(sizeof(struct PJRT_Buffer_ReadyEvent_Args) == 32, "PJRT_Buffer_ReadyEvent_Args");
_Static_assert(offsetof(struct PJRT_Buffer_ReadyEvent_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_Buffer_ReadyEvent_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_Buffer_ReadyEvent_Args, buffer) == 16, "buffer");
_Static_assert(offsetof(struct PJRT_Buffer_ReadyEvent_Args, event) == 24, "event");

struct PJRT_Buffer_UnsafePointer_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	struct PJRT_Buffer *buffer;
	uintptr_t buffer_pointer;
};
#define PJRT_Buffer_UnsafePointer_Args_SIZE 32u
#define PJRT_Buffer_UnsafePointer_Args_OLDEST 32u
_Static_assert(sizeof(struct PJRT_Buffer_UnsafePointer_Args) == 32, "PJRT_Buffer_UnsafePointer_Args");
_Static_assert(offsetof(struct PJRT_Buffer_UnsafePointer_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_Buffer_UnsafePointer_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_Buffer_UnsafePointer_Args, buffer) == 16, "buffer");
_Static_assert(offsetof(struct PJRT_Buffer_UnsafePointer_Args, buffer_pointer) == 24, "buffer_pointer");

struct PJRT_Buffer_IncreaseExternalReferenceCount_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	struct PJRT_Buffer *buffer;
};
#define PJRT_Buffer_IncreaseExternalReferenceCount_Args_SIZE 24u
#define PJRT_Buffer_IncreaseExternalReferenceCount_Args_OLDEST 24u
_Static_assert(sizeof(struct PJRT_Buffer_IncreaseExternalReferenceCount_Args) == 24, "PJRT_Buffer_IncreaseExternalReferenceCount_Args");
_Static_assert(offsetof(struct PJRT_Buffer_IncreaseExternalReferenceCount_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_Buffer_IncreaseExternalReferenceCount_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_Buffer_IncreaseExternalReferenceCount_Args, buffer) == 16, "buffer");

struct PJRT_Buffer_DecreaseExternalReferenceCount_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	struct PJRT_Buffer *buffer;
};
#define PJRT_Buffer_DecreaseExternalReferenceCount_Args_SIZE 24u
#define PJRT_Buffer_DecreaseExternalReferenceCount_Args_OLDEST 24u
_Static_assert(sizeof(struct PJRT_Buffer_DecreaseExternalReferenceCount_Args) == 24, "PJRT_Buffer_DecreaseExternalReferenceCount_Args");
_Static_assert(offsetof(struct PJRT_Buffer_DecreaseExternalReferenceCount_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_Buffer_DecreaseExternalReferenceCount_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_Buffer_DecreaseExternalReferenceCount_Args, buffer) == 16, "buffer");

struct PJRT_Buffer_OpaqueDeviceMemoryDataPointer_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	struct PJRT_Buffer *buffer;
	void *device_memory_ptr;
};
#define PJRT_Buffer_OpaqueDeviceMemoryDataPointer_Args_SIZE 32u
#define PJRT_Buffer_OpaqueDeviceMemoryDataPointer_Args_OLDEST 32u
_Static_assert(sizeof(struct PJRT_Buffer_OpaqueDeviceMemoryDataPointer_Args) == 32, "PJRT_Buffer_OpaqueDeviceMemoryDataPointer_Args");
_Static_assert(offsetof(struct PJRT_Buffer_OpaqueDeviceMemoryDataPointer_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_Buffer_OpaqueDeviceMemoryDataPointer_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_Buffer_OpaqueDeviceMemoryDataPointer_Args, buffer) == 16, "buffer");
_Static_assert(offsetof(struct PJRT_Buffer_OpaqueDeviceMemoryDataPointer_Args, device_memory_ptr) == 24, "device_memory_ptr");

struct PJRT_Buffer_DonateWithControlDependency_Callback_Args {
	size_t struct_size;
	void *callback_data;
	int error_code;
	const char *error_message;
	size_t error_message_size;
};
#define PJRT_Buffer_DonateWithControlDependency_Callback_Args_SIZE 40u
#define PJRT_Buffer_DonateWithControlDependency_Callback_Args_OLDEST 40u
_Static_assert(sizeof(struct PJRT_Buffer_DonateWithControlDependency_Callback_Args) == 40, "PJRT_Buffer_DonateWithControlDependency_Callback_Args");
_Static_assert(offsetof(struct PJRT_Buffer_DonateWithControlDependency_Callback_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_Buffer_DonateWithControlDependency_Callback_Args, callback_data) == 8, "callback_data");
_Static_assert(offsetof(struct PJRT_Buffer_DonateWithControlDependency_Callback_Args, error_code) == 16, "error_code");
_Static_assert(offsetof(struct PJRT_Buffer_DonateWithControlDependency_Callback_Args, error_message) == 24, "error_message");
_Static_assert(offsetof(struct PJRT_Buffer_DonateWithControlDependency_Callback_Args, error_message_size) == 32, "error_message_size");

struct PJRT_Buffer_DonateWithControlDependency_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	struct PJRT_Buffer *buffer;
	void *callback_data;
	void *dependency_ready_callback;
	struct PJRT_Buffer *out_buffer;
};
#define PJRT_Buffer_DonateWithControlDependency_Args_SIZE 48u
#define PJRT_Buffer_DonateWithControlDependency_Args_OLDEST 48u
_Static_assert(sizeof(struct PJRT_Buffer_DonateWithControlDependency_Args) == 48, "PJRT_Buffer_DonateWithControlDependency_Args");
_Static_assert(offsetof(struct PJRT_Buffer_DonateWithControlDependency_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_Buffer_DonateWithControlDependency_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_Buffer_DonateWithControlDependency_Args, buffer) == 16, "buffer");
_Static_assert(offsetof(struct PJRT_Buffer_DonateWithControlDependency_Args, callback_data) == 24, "callback_data");
_Static_assert(offsetof(struct PJRT_Buffer_DonateWithControlDependency_Args, dependency_ready_callback) == 32, "dependency_ready_callback");
_Static_assert(offsetof(struct PJRT_Buffer_DonateWithControlDependency_Args, out_buffer) == 40, "out_buffer");

struct PJRT_CopyToDeviceStream_Destroy_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	struct PJRT_CopyToDeviceStream *stream;
};
#define PJRT_CopyToDeviceStream_Destroy_Args_SIZE 24u
#define PJRT_CopyToDeviceStream_Destroy_Args_OLDEST 24u
_Static_assert(sizeof(struct PJRT_CopyToDeviceStream_Destroy_Args) == 24, "PJRT_CopyToDeviceStream_Destroy_Args");
_Static_assert(offsetof(struct PJRT_CopyToDeviceStream_Destroy_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_CopyToDeviceStream_Destroy_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_CopyToDeviceStream_Destroy_Args, stream) == 16, "stream");

struct PJRT_CopyToDeviceStream_AddChunk_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	struct PJRT_CopyToDeviceStream *stream;
	struct PJRT_Chunk *chunk;
	struct PJRT_Event *transfer_complete;
};
#define PJRT_CopyToDeviceStream_AddChunk_Args_SIZE 40u
#define PJRT_CopyToDeviceStream_AddChunk_Args_OLDEST 40u
_Static_assert(sizeof(struct PJRT_CopyToDeviceStream_AddChunk_Args) == 40, "PJRT_CopyToDeviceStream_AddChunk_Args");
_Static_assert(offsetof(struct PJRT_CopyToDeviceStream_AddChunk_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_CopyToDeviceStream_AddChunk_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_CopyToDeviceStream_AddChunk_Args, stream) == 16, "stream");
_Static_assert(offsetof(struct PJRT_CopyToDeviceStream_AddChunk_Args, chunk) == 24, "chunk");
_Static_assert(offsetof(struct PJRT_CopyToDeviceStream_AddChunk_Args, transfer_complete) == 32, "transfer_complete");

struct PJRT_CopyToDeviceStream_TotalBytes_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	struct PJRT_CopyToDeviceStream *stream;
	int64_t total_bytes;
};
#define PJRT_CopyToDeviceStream_TotalBytes_Args_SIZE 32u
#define PJRT_CopyToDeviceStream_TotalBytes_Args_OLDEST 32u
_Static_assert(sizeof(struct PJRT_CopyToDeviceStream_TotalBytes_Args) == 32, "PJRT_CopyToDeviceStream_TotalBytes_Args");
_Static_assert(offsetof(struct PJRT_CopyToDeviceStream_TotalBytes_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_CopyToDeviceStream_TotalBytes_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_CopyToDeviceStream_TotalBytes_Args, stream) == 16, "stream");
_Static_assert(offsetof(struct PJRT_CopyToDeviceStream_TotalBytes_Args, total_bytes) == 24, "total_bytes");

struct PJRT_CopyToDeviceStream_GranuleSize_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	struct PJRT_CopyToDeviceStream *stream;
	int64_t granule_size_in_bytes;
};
#define PJRT_CopyToDeviceStream_GranuleSize_Args_SIZE 32u
#define PJRT_CopyToDeviceStream_GranuleSize_Args_OLDEST 32u
_Static_assert(sizeof(struct PJRT_CopyToDeviceStream_GranuleSize_Args) == 32, "PJRT_CopyToDeviceStream_GranuleSize_Args");
_Static_assert(offsetof(struct PJRT_CopyToDeviceStream_GranuleSize_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_CopyToDeviceStream_GranuleSize_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_CopyToDeviceStream_GranuleSize_Args, stream) == 16, "stream");
_Static_assert(offsetof(struct PJRT_CopyToDeviceStream_GranuleSize_Args, granule_size_in_bytes) == 24, "granule_size_in_bytes");

struct PJRT_CopyToDeviceStream_CurrentBytes_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	struct PJRT_CopyToDeviceStream *stream;
	int64_t current_bytes;
};
#define PJRT_CopyToDeviceStream_CurrentBytes_Args_SIZE 32u
#define PJRT_CopyToDeviceStream_CurrentBytes_Args_OLDEST 32u
_Static_assert(sizeof(struct PJRT_CopyToDeviceStream_CurrentBytes_Args) == 32, "PJRT_CopyToDeviceStream_CurrentBytes_Args");
_Static_assert(offsetof(struct PJRT_CopyToDeviceStream_CurrentBytes_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_CopyToDeviceStream_CurrentBytes_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_CopyToDeviceStream_CurrentBytes_Args, stream) == 16, "stream");
_Static_assert(offsetof(struct PJRT_CopyToDeviceStream_CurrentBytes_Args, current_bytes) == 24, "current_bytes");

struct PJRT_TopologyDescription_Create_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	const char *topology_name;
	size_t topology_name_size;
	const struct PJRT_NamedValue *create_options;
	size_t num_options;
	struct PJRT_TopologyDescription *topology;
};
#define PJRT_TopologyDescription_Create_Args_SIZE 56u
#define PJRT_TopologyDescription_Create_Args_OLDEST 56u
_Static_assert(sizeof(struct PJRT_TopologyDescription_Create_Args) == 56, "PJRT_TopologyDescription_Create_Args");
_Static_assert(offsetof(struct PJRT_TopologyDescription_Create_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_TopologyDescription_Create_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_TopologyDescription_Create_Args, topology_name) == 16, "topology_name");
_Static_assert(offsetof(struct PJRT_TopologyDescription_Create_Args, topology_name_size) == 24, "topology_name_size");
_Static_assert(offsetof(struct PJRT_TopologyDescription_Create_Args, create_options) == 32, "create_options");
_Static_assert(offsetof(struct PJRT_TopologyDescription_Create_Args, num_options) == 40, "num_options");
_Static_assert(offsetof(struct PJRT_TopologyDescription_Create_Args, topology) == 48, "topology");

struct PJRT_TopologyDescription_Destroy_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	struct PJRT_TopologyDescription *topology;
};
#define PJRT_TopologyDescription_Destroy_Args_SIZE 24u
#define PJRT_TopologyDescription_Destroy_Args_OLDEST 24u
_Static_assert(sizeof(struct PJRT_TopologyDescription_Destroy_Args) == 24, "PJRT_TopologyDescription_Destroy_Args");
_Static_assert(offsetof(struct PJRT_TopologyDescription_Destroy_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_TopologyDescription_Destroy_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_TopologyDescription_Destroy_Args, topology) == 16, "topology");

struct PJRT_TopologyDescription_PlatformVersion_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	struct PJRT_TopologyDescription *topology;
	const char *platform_version;
	size_t platform_version_size;
};
#define PJRT_TopologyDescription_PlatformVersion_Args_SIZE 40u
#define PJRT_TopologyDescription_PlatformVersion_Args_OLDEST 40u
_Static_assert(sizeof(struct PJRT_TopologyDescription_PlatformVersion_Args) == 40, "PJRT_TopologyDescription_PlatformVersion_Args");
_Static_assert(offsetof(struct PJRT_TopologyDescription_PlatformVersion_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_TopologyDescription_PlatformVersion_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_TopologyDescription_PlatformVersion_Args, topology) == 16, "topology");
_Static_assert(offsetof(struct PJRT_TopologyDescription_PlatformVersion_Args, platform_version) == 24, "platform_version");
_Static_assert(offsetof(struct PJRT_TopologyDescription_PlatformVersion_Args, platform_version_size) == 32, "platform_version_size");

struct PJRT_TopologyDescription_PlatformName_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	const struct PJRT_TopologyDescription *topology;
	const char *platform_name;
	size_t platform_name_size;
};
#define PJRT_TopologyDescription_PlatformName_Args_SIZE 40u
#define PJRT_TopologyDescription_PlatformName_Args_OLDEST 40u
_Static_assert(sizeof(struct PJRT_TopologyDescription_PlatformName_Args) == 40, "PJRT_TopologyDescription_PlatformName_Args");
_Static_assert(offsetof(struct PJRT_TopologyDescription_PlatformName_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_TopologyDescription_PlatformName_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_TopologyDescription_PlatformName_Args, topology) == 16, "topology");
_Static_assert(offsetof(struct PJRT_TopologyDescription_PlatformName_Args, platform_name) == 24, "platform_name");
_Static_assert(offsetof(struct PJRT_TopologyDescription_PlatformName_Args, platform_name_size) == 32, "platform_name_size");

struct PJRT_TopologyDescription_GetDeviceDescriptions_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	const struct PJRT_TopologyDescription *topology;
	struct PJRT_DeviceDescription * const*descriptions;
	size_t num_descriptions;
};
#define PJRT_TopologyDescription_GetDeviceDescriptions_Args_SIZE 40u
#define PJRT_TopologyDescription_GetDeviceDescriptions_Args_OLDEST 40u
_Static_assert(sizeof(struct PJRT_TopologyDescription_GetDeviceDescriptions_Args) == 40, "PJRT_TopologyDescription_GetDeviceDescriptions_Args");
_Static_assert(offsetof(struct PJRT_TopologyDescription_GetDeviceDescriptions_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_TopologyDescription_GetDeviceDescriptions_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_TopologyDescription_GetDeviceDescriptions_Args, topology) == 16, "topology");
_Static_assert(offsetof(struct PJRT_TopologyDescription_GetDeviceDescriptions_Args, descriptions) == 24, "descriptions");
_Static_assert(offsetof(struct PJRT_TopologyDescription_GetDeviceDescriptions_Args, num_descriptions) == 32, "num_descriptions");

struct PJRT_TopologyDescription_Serialize_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	struct PJRT_TopologyDescription *topology;
	const char *serialized_bytes;
	size_t serialized_bytes_size;
	struct PJRT_SerializedTopology *serialized_topology;
	void *serialized_topology_deleter;
};
#define PJRT_TopologyDescription_Serialize_Args_SIZE 56u
#define PJRT_TopologyDescription_Serialize_Args_OLDEST 56u
_Static_assert(sizeof(struct PJRT_TopologyDescription_Serialize_Args) == 56, "PJRT_TopologyDescription_Serialize_Args");
_Static_assert(offsetof(struct PJRT_TopologyDescription_Serialize_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_TopologyDescription_Serialize_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_TopologyDescription_Serialize_Args, topology) == 16, "topology");
_Static_assert(offsetof(struct PJRT_TopologyDescription_Serialize_Args, serialized_bytes) == 24, "serialized_bytes");
_Static_assert(offsetof(struct PJRT_TopologyDescription_Serialize_Args, serialized_bytes_size) == 32, "serialized_bytes_size");
_Static_assert(offsetof(struct PJRT_TopologyDescription_Serialize_Args, serialized_topology) == 40, "serialized_topology");
_Static_assert(offsetof(struct PJRT_TopologyDescription_Serialize_Args, serialized_topology_deleter) == 48, "serialized_topology_deleter");

struct PJRT_TopologyDescription_Deserialize_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	const char *serialized_topology;
	size_t serialized_topology_size;
	struct PJRT_TopologyDescription *topology;
};
#define PJRT_TopologyDescription_Deserialize_Args_SIZE 40u
#define PJRT_TopologyDescription_Deserialize_Args_OLDEST 40u
_Static_assert(sizeof(struct PJRT_TopologyDescription_Deserialize_Args) == 40, "PJRT_TopologyDescription_Deserialize_Args");
_Static_assert(offsetof(struct PJRT_TopologyDescription_Deserialize_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_TopologyDescription_Deserialize_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_TopologyDescription_Deserialize_Args, serialized_topology) == 16, "serialized_topology");
_Static_assert(offsetof(struct PJRT_TopologyDescription_Deserialize_Args, serialized_topology_size) == 24, "serialized_topology_size");
_Static_assert(offsetof(struct PJRT_TopologyDescription_Deserialize_Args, topology) == 32, "topology");

struct PJRT_TopologyDescription_Attributes_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	struct PJRT_TopologyDescription *topology;
	const struct PJRT_NamedValue *attributes;
	size_t num_attributes;
};
#define PJRT_TopologyDescription_Attributes_Args_SIZE 40u
#define PJRT_TopologyDescription_Attributes_Args_OLDEST 40u
_Static_assert(sizeof(struct PJRT_TopologyDescription_Attributes_Args) == 40, "PJRT_TopologyDescription_Attributes_Args");
_Static_assert(offsetof(struct PJRT_TopologyDescription_Attributes_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_TopologyDescription_Attributes_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_TopologyDescription_Attributes_Args, topology) == 16, "topology");
_Static_assert(offsetof(struct PJRT_TopologyDescription_Attributes_Args, attributes) == 24, "attributes");
_Static_assert(offsetof(struct PJRT_TopologyDescription_Attributes_Args, num_attributes) == 32, "num_attributes");

struct PJRT_TopologyDescription_Fingerprint_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	const struct PJRT_TopologyDescription *topology;
	uint64_t fingerprint;
};
#define PJRT_TopologyDescription_Fingerprint_Args_SIZE 32u
#define PJRT_TopologyDescription_Fingerprint_Args_OLDEST 32u
_Static_assert(sizeof(struct PJRT_TopologyDescription_Fingerprint_Args) == 32, "PJRT_TopologyDescription_Fingerprint_Args");
_Static_assert(offsetof(struct PJRT_TopologyDescription_Fingerprint_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_TopologyDescription_Fingerprint_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_TopologyDescription_Fingerprint_Args, topology) == 16, "topology");
_Static_assert(offsetof(struct PJRT_TopologyDescription_Fingerprint_Args, fingerprint) == 24, "fingerprint");

struct PJRT_TopologyDescription_MakeCanonicalShapeForMemorySpace_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	const struct PJRT_TopologyDescription *topology;
	int memory_space_kind_id;
	const int64_t *dims;
	size_t num_dims;
	int element_type;
	const struct PJRT_Buffer_MemoryLayout *layout;
	const char *serialized_shape;
	size_t serialized_shape_size;
	void *serialized_shape_deleter;
};
#define PJRT_TopologyDescription_MakeCanonicalShapeForMemorySpace_Args_SIZE 88u
#define PJRT_TopologyDescription_MakeCanonicalShapeForMemorySpace_Args_OLDEST 88u
_Static_assert(sizeof(struct PJRT_TopologyDescription_MakeCanonicalShapeForMemorySpace_Args) == 88, "PJRT_TopologyDescription_MakeCanonicalShapeForMemorySpace_Args");
_Static_assert(offsetof(struct PJRT_TopologyDescription_MakeCanonicalShapeForMemorySpace_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_TopologyDescription_MakeCanonicalShapeForMemorySpace_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_TopologyDescription_MakeCanonicalShapeForMemorySpace_Args, topology) == 16, "topology");
_Static_assert(offsetof(struct PJRT_TopologyDescription_MakeCanonicalShapeForMemorySpace_Args, memory_space_kind_id) == 24, "memory_space_kind_id");
_Static_assert(offsetof(struct PJRT_TopologyDescription_MakeCanonicalShapeForMemorySpace_Args, dims) == 32, "dims");
_Static_assert(offsetof(struct PJRT_TopologyDescription_MakeCanonicalShapeForMemorySpace_Args, num_dims) == 40, "num_dims");
_Static_assert(offsetof(struct PJRT_TopologyDescription_MakeCanonicalShapeForMemorySpace_Args, element_type) == 48, "element_type");
_Static_assert(offsetof(struct PJRT_TopologyDescription_MakeCanonicalShapeForMemorySpace_Args, layout) == 56, "layout");
_Static_assert(offsetof(struct PJRT_TopologyDescription_MakeCanonicalShapeForMemorySpace_Args, serialized_shape) == 64, "serialized_shape");
_Static_assert(offsetof(struct PJRT_TopologyDescription_MakeCanonicalShapeForMemorySpace_Args, serialized_shape_size) == 72, "serialized_shape_size");
_Static_assert(offsetof(struct PJRT_TopologyDescription_MakeCanonicalShapeForMemorySpace_Args, serialized_shape_deleter) == 80, "serialized_shape_deleter");

struct PJRT_TopologyDescription_GetMemorySpaceKindIds_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	const struct PJRT_TopologyDescription *topology;
	const int *memory_space_kind_ids;
	size_t num_memory_space_kind_ids;
};
#define PJRT_TopologyDescription_GetMemorySpaceKindIds_Args_SIZE 40u
#define PJRT_TopologyDescription_GetMemorySpaceKindIds_Args_OLDEST 40u
_Static_assert(sizeof(struct PJRT_TopologyDescription_GetMemorySpaceKindIds_Args) == 40, "PJRT_TopologyDescription_GetMemorySpaceKindIds_Args");
_Static_assert(offsetof(struct PJRT_TopologyDescription_GetMemorySpaceKindIds_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_TopologyDescription_GetMemorySpaceKindIds_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_TopologyDescription_GetMemorySpaceKindIds_Args, topology) == 16, "topology");
_Static_assert(offsetof(struct PJRT_TopologyDescription_GetMemorySpaceKindIds_Args, memory_space_kind_ids) == 24, "memory_space_kind_ids");
_Static_assert(offsetof(struct PJRT_TopologyDescription_GetMemorySpaceKindIds_Args, num_memory_space_kind_ids) == 32, "num_memory_space_kind_ids");

struct PJRT_Compile_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	const struct PJRT_TopologyDescription *topology;
	const struct PJRT_Program *program;
	const char *compile_options;
	size_t compile_options_size;
	struct PJRT_Client *client;
	struct PJRT_Executable *executable;
};
#define PJRT_Compile_Args_SIZE 64u
#define PJRT_Compile_Args_OLDEST 64u
_Static_assert(sizeof(struct PJRT_Compile_Args) == 64, "PJRT_Compile_Args");
_Static_assert(offsetof(struct PJRT_Compile_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_Compile_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_Compile_Args, topology) == 16, "topology");
_Static_assert(offsetof(struct PJRT_Compile_Args, program) == 24, "program");
_Static_assert(offsetof(struct PJRT_Compile_Args, compile_options) == 32, "compile_options");
_Static_assert(offsetof(struct PJRT_Compile_Args, compile_options_size) == 40, "compile_options_size");
_Static_assert(offsetof(struct PJRT_Compile_Args, client) == 48, "client");
_Static_assert(offsetof(struct PJRT_Compile_Args, executable) == 56, "executable");

struct PJRT_Layouts_MemoryLayout_Destroy_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	struct PJRT_Layouts_MemoryLayout *layout;
};
#define PJRT_Layouts_MemoryLayout_Destroy_Args_SIZE 24u
#define PJRT_Layouts_MemoryLayout_Destroy_Args_OLDEST 24u
_Static_assert(sizeof(struct PJRT_Layouts_MemoryLayout_Destroy_Args) == 24, "PJRT_Layouts_MemoryLayout_Destroy_Args");
_Static_assert(offsetof(struct PJRT_Layouts_MemoryLayout_Destroy_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_Layouts_MemoryLayout_Destroy_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_Layouts_MemoryLayout_Destroy_Args, layout) == 16, "layout");

struct PJRT_Layouts_MemoryLayout_Serialize_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	struct PJRT_Layouts_MemoryLayout *layout;
	const char *serialized_bytes;
	size_t serialized_bytes_size;
	struct PJRT_Layouts_SerializedLayout *serialized_layout;
	void *serialized_layout_deleter;
};
#define PJRT_Layouts_MemoryLayout_Serialize_Args_SIZE 56u
#define PJRT_Layouts_MemoryLayout_Serialize_Args_OLDEST 56u
_Static_assert(sizeof(struct PJRT_Layouts_MemoryLayout_Serialize_Args) == 56, "PJRT_Layouts_MemoryLayout_Serialize_Args");
_Static_assert(offsetof(struct PJRT_Layouts_MemoryLayout_Serialize_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_Layouts_MemoryLayout_Serialize_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_Layouts_MemoryLayout_Serialize_Args, layout) == 16, "layout");
_Static_assert(offsetof(struct PJRT_Layouts_MemoryLayout_Serialize_Args, serialized_bytes) == 24, "serialized_bytes");
_Static_assert(offsetof(struct PJRT_Layouts_MemoryLayout_Serialize_Args, serialized_bytes_size) == 32, "serialized_bytes_size");
_Static_assert(offsetof(struct PJRT_Layouts_MemoryLayout_Serialize_Args, serialized_layout) == 40, "serialized_layout");
_Static_assert(offsetof(struct PJRT_Layouts_MemoryLayout_Serialize_Args, serialized_layout_deleter) == 48, "serialized_layout_deleter");

struct PJRT_Layouts_PJRT_Buffer_MemoryLayout_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	struct PJRT_Buffer *buffer;
	struct PJRT_Layouts_MemoryLayout *layout;
};
#define PJRT_Layouts_PJRT_Buffer_MemoryLayout_Args_SIZE 32u
#define PJRT_Layouts_PJRT_Buffer_MemoryLayout_Args_OLDEST 32u
_Static_assert(sizeof(struct PJRT_Layouts_PJRT_Buffer_MemoryLayout_Args) == 32, "PJRT_Layouts_PJRT_Buffer_MemoryLayout_Args");
_Static_assert(offsetof(struct PJRT_Layouts_PJRT_Buffer_MemoryLayout_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_Layouts_PJRT_Buffer_MemoryLayout_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_Layouts_PJRT_Buffer_MemoryLayout_Args, buffer) == 16, "buffer");
_Static_assert(offsetof(struct PJRT_Layouts_PJRT_Buffer_MemoryLayout_Args, layout) == 24, "layout");

struct PJRT_Layouts_PJRT_Client_GetDefaultLayout_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	struct PJRT_Client *client;
	int type;
	const int64_t *dims;
	size_t num_dims;
	struct PJRT_Layouts_MemoryLayout *layout;
};
#define PJRT_Layouts_PJRT_Client_GetDefaultLayout_Args_SIZE 56u
#define PJRT_Layouts_PJRT_Client_GetDefaultLayout_Args_OLDEST 56u
_Static_assert(sizeof(struct PJRT_Layouts_PJRT_Client_GetDefaultLayout_Args) == 56, "PJRT_Layouts_PJRT_Client_GetDefaultLayout_Args");
_Static_assert(offsetof(struct PJRT_Layouts_PJRT_Client_GetDefaultLayout_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_Layouts_PJRT_Client_GetDefaultLayout_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_Layouts_PJRT_Client_GetDefaultLayout_Args, client) == 16, "client");
_Static_assert(offsetof(struct PJRT_Layouts_PJRT_Client_GetDefaultLayout_Args, type) == 24, "type");
_Static_assert(offsetof(struct PJRT_Layouts_PJRT_Client_GetDefaultLayout_Args, dims) == 32, "dims");
_Static_assert(offsetof(struct PJRT_Layouts_PJRT_Client_GetDefaultLayout_Args, num_dims) == 40, "num_dims");
_Static_assert(offsetof(struct PJRT_Layouts_PJRT_Client_GetDefaultLayout_Args, layout) == 48, "layout");

struct PJRT_Layouts_PJRT_Topology_GetDefaultLayout_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	struct PJRT_TopologyDescription *topology_description;
	int type;
	const int64_t *dims;
	size_t num_dims;
	struct PJRT_Layouts_MemoryLayout *layout;
};
#define PJRT_Layouts_PJRT_Topology_GetDefaultLayout_Args_SIZE 56u
#define PJRT_Layouts_PJRT_Topology_GetDefaultLayout_Args_OLDEST 56u
_Static_assert(sizeof(struct PJRT_Layouts_PJRT_Topology_GetDefaultLayout_Args) == 56, "PJRT_Layouts_PJRT_Topology_GetDefaultLayout_Args");
_Static_assert(offsetof(struct PJRT_Layouts_PJRT_Topology_GetDefaultLayout_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_Layouts_PJRT_Topology_GetDefaultLayout_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_Layouts_PJRT_Topology_GetDefaultLayout_Args, topology_description) == 16, "topology_description");
_Static_assert(offsetof(struct PJRT_Layouts_PJRT_Topology_GetDefaultLayout_Args, type) == 24, "type");
_Static_assert(offsetof(struct PJRT_Layouts_PJRT_Topology_GetDefaultLayout_Args, dims) == 32, "dims");
_Static_assert(offsetof(struct PJRT_Layouts_PJRT_Topology_GetDefaultLayout_Args, num_dims) == 40, "num_dims");
_Static_assert(offsetof(struct PJRT_Layouts_PJRT_Topology_GetDefaultLayout_Args, layout) == 48, "layout");

struct PJRT_Layouts_PJRT_Executable_GetOutputLayouts_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	struct PJRT_Executable *executable;
	size_t num_outputs;
	struct PJRT_Layouts_MemoryLayout **layouts;
};
#define PJRT_Layouts_PJRT_Executable_GetOutputLayouts_Args_SIZE 40u
#define PJRT_Layouts_PJRT_Executable_GetOutputLayouts_Args_OLDEST 40u
_Static_assert(sizeof(struct PJRT_Layouts_PJRT_Executable_GetOutputLayouts_Args) == 40, "PJRT_Layouts_PJRT_Executable_GetOutputLayouts_Args");
_Static_assert(offsetof(struct PJRT_Layouts_PJRT_Executable_GetOutputLayouts_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_Layouts_PJRT_Executable_GetOutputLayouts_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_Layouts_PJRT_Executable_GetOutputLayouts_Args, executable) == 16, "executable");
_Static_assert(offsetof(struct PJRT_Layouts_PJRT_Executable_GetOutputLayouts_Args, num_outputs) == 24, "num_outputs");
_Static_assert(offsetof(struct PJRT_Layouts_PJRT_Executable_GetOutputLayouts_Args, layouts) == 32, "layouts");

struct PJRT_Layouts_PJRT_Executable_GetParameterLayouts_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	struct PJRT_Executable *executable;
	size_t num_parameters;
	struct PJRT_Layouts_MemoryLayout **layouts;
};
#define PJRT_Layouts_PJRT_Executable_GetParameterLayouts_Args_SIZE 40u
#define PJRT_Layouts_PJRT_Executable_GetParameterLayouts_Args_OLDEST 40u
_Static_assert(sizeof(struct PJRT_Layouts_PJRT_Executable_GetParameterLayouts_Args) == 40, "PJRT_Layouts_PJRT_Executable_GetParameterLayouts_Args");
_Static_assert(offsetof(struct PJRT_Layouts_PJRT_Executable_GetParameterLayouts_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_Layouts_PJRT_Executable_GetParameterLayouts_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_Layouts_PJRT_Executable_GetParameterLayouts_Args, executable) == 16, "executable");
_Static_assert(offsetof(struct PJRT_Layouts_PJRT_Executable_GetParameterLayouts_Args, num_parameters) == 24, "num_parameters");
_Static_assert(offsetof(struct PJRT_Layouts_PJRT_Executable_GetParameterLayouts_Args, layouts) == 32, "layouts");

struct PJRT_Layouts_Extension {
	struct PJRT_Extension_Base base;
	void *PJRT_Layouts_MemoryLayout_Destroy;
	void *PJRT_Layouts_MemoryLayout_Serialize;
	void *PJRT_Layouts_PJRT_Client_GetDefaultLayout;
	void *PJRT_Layouts_PJRT_Buffer_MemoryLayout;
	void *PJRT_Layouts_PJRT_Topology_GetDefaultLayout;
	void *PJRT_Layouts_PJRT_Executable_GetOutputLayouts;
	void *PJRT_Layouts_PJRT_Executable_GetParameterLayouts;
};
#define PJRT_Layouts_Extension_SIZE 80u
_Static_assert(sizeof(struct PJRT_Layouts_Extension) == 80, "PJRT_Layouts_Extension");
_Static_assert(offsetof(struct PJRT_Layouts_Extension, base) == 0, "base");
_Static_assert(offsetof(struct PJRT_Layouts_Extension, PJRT_Layouts_MemoryLayout_Destroy) == 24, "PJRT_Layouts_MemoryLayout_Destroy");
_Static_assert(offsetof(struct PJRT_Layouts_Extension, PJRT_Layouts_MemoryLayout_Serialize) == 32, "PJRT_Layouts_MemoryLayout_Serialize");
_Static_assert(offsetof(struct PJRT_Layouts_Extension, PJRT_Layouts_PJRT_Client_GetDefaultLayout) == 40, "PJRT_Layouts_PJRT_Client_GetDefaultLayout");
_Static_assert(offsetof(struct PJRT_Layouts_Extension, PJRT_Layouts_PJRT_Buffer_MemoryLayout) == 48, "PJRT_Layouts_PJRT_Buffer_MemoryLayout");
_Static_assert(offsetof(struct PJRT_Layouts_Extension, PJRT_Layouts_PJRT_Topology_GetDefaultLayout) == 56, "PJRT_Layouts_PJRT_Topology_GetDefaultLayout");
_Static_assert(offsetof(struct PJRT_Layouts_Extension, PJRT_Layouts_PJRT_Executable_GetOutputLayouts) == 64, "PJRT_Layouts_PJRT_Executable_GetOutputLayouts");
_Static_assert(offsetof(struct PJRT_Layouts_Extension, PJRT_Layouts_PJRT_Executable_GetParameterLayouts) == 72, "PJRT_Layouts_PJRT_Executable_GetParameterLayouts");

struct PJRT_FFI_Type_Info {
	void *deleter;
	void *serialize;
	void *deserialize;
};
#define PJRT_FFI_Type_Info_SIZE 24u
_Static_assert(sizeof(struct PJRT_FFI_Type_Info) == 24, "PJRT_FFI_Type_Info");
_Static_assert(offsetof(struct PJRT_FFI_Type_Info, deleter) == 0, "deleter");
_Static_assert(offsetof(struct PJRT_FFI_Type_Info, serialize) == 8, "serialize");
_Static_assert(offsetof(struct PJRT_FFI_Type_Info, deserialize) == 16, "deserialize");

struct PJRT_FFI_Type_Register_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	const char *type_name;
	size_t type_name_size;
	int64_t type_id;
	struct PJRT_FFI_Type_Info *type_info;
};
#define PJRT_FFI_Type_Register_Args_SIZE 48u
#define PJRT_FFI_Type_Register_Args_OLDEST 48u
_Static_assert(sizeof(struct PJRT_FFI_Type_Register_Args) == 48, "PJRT_FFI_Type_Register_Args");
_Static_assert(offsetof(struct PJRT_FFI_Type_Register_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_FFI_Type_Register_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_FFI_Type_Register_Args, type_name) == 16, "type_name");
_Static_assert(offsetof(struct PJRT_FFI_Type_Register_Args, type_name_size) == 24, "type_name_size");
_Static_assert(offsetof(struct PJRT_FFI_Type_Register_Args, type_id) == 32, "type_id");
_Static_assert(offsetof(struct PJRT_FFI_Type_Register_Args, type_info) == 40, "type_info");

struct PJRT_FFI_UserData {
	int64_t type_id;
	void *data;
};
#define PJRT_FFI_UserData_SIZE 16u
_Static_assert(sizeof(struct PJRT_FFI_UserData) == 16, "PJRT_FFI_UserData");
_Static_assert(offsetof(struct PJRT_FFI_UserData, type_id) == 0, "type_id");
_Static_assert(offsetof(struct PJRT_FFI_UserData, data) == 8, "data");

struct PJRT_FFI_UserData_Add_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	struct PJRT_ExecuteContext *context;
	struct PJRT_FFI_UserData user_data;
};
#define PJRT_FFI_UserData_Add_Args_SIZE 40u
#define PJRT_FFI_UserData_Add_Args_OLDEST 40u
_Static_assert(sizeof(struct PJRT_FFI_UserData_Add_Args) == 40, "PJRT_FFI_UserData_Add_Args");
_Static_assert(offsetof(struct PJRT_FFI_UserData_Add_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_FFI_UserData_Add_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_FFI_UserData_Add_Args, context) == 16, "context");
_Static_assert(offsetof(struct PJRT_FFI_UserData_Add_Args, user_data) == 24, "user_data");

struct PJRT_FFI_Register_Handler_Args {
	size_t struct_size;
	const char *target_name;
	size_t target_name_size;
	void *handler;
	const char *platform_name;
	size_t platform_name_size;
	int traits;
};
#define PJRT_FFI_Register_Handler_Args_SIZE 52u
#define PJRT_FFI_Register_Handler_Args_OLDEST 52u
_Static_assert(sizeof(struct PJRT_FFI_Register_Handler_Args) == 56, "PJRT_FFI_Register_Handler_Args");
_Static_assert(offsetof(struct PJRT_FFI_Register_Handler_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_FFI_Register_Handler_Args, target_name) == 8, "target_name");
_Static_assert(offsetof(struct PJRT_FFI_Register_Handler_Args, target_name_size) == 16, "target_name_size");
_Static_assert(offsetof(struct PJRT_FFI_Register_Handler_Args, handler) == 24, "handler");
_Static_assert(offsetof(struct PJRT_FFI_Register_Handler_Args, platform_name) == 32, "platform_name");
_Static_assert(offsetof(struct PJRT_FFI_Register_Handler_Args, platform_name_size) == 40, "platform_name_size");
_Static_assert(offsetof(struct PJRT_FFI_Register_Handler_Args, traits) == 48, "traits");

struct PJRT_FFI_Extension {
	struct PJRT_Extension_Base base;
	struct PJRT_FFI_Type_Register *type_register;
	struct PJRT_FFI_UserData_Add *user_data_add;
	struct PJRT_FFI_Register_Handler *register_handler;
};
#define PJRT_FFI_Extension_SIZE 48u
_Static_assert(sizeof(struct PJRT_FFI_Extension) == 48, "PJRT_FFI_Extension");
_Static_assert(offsetof(struct PJRT_FFI_Extension, base) == 0, "base");
_Static_assert(offsetof(struct PJRT_FFI_Extension, type_register) == 24, "type_register");
_Static_assert(offsetof(struct PJRT_FFI_Extension, user_data_add) == 32, "user_data_add");
_Static_assert(offsetof(struct PJRT_FFI_Extension, register_handler) == 40, "register_handler");

struct JAX_CustomCallPartitioner_string {
	const char *data;
	size_t size;
};
#define JAX_CustomCallPartitioner_string_SIZE 16u
_Static_assert(sizeof(struct JAX_CustomCallPartitioner_string) == 16, "JAX_CustomCallPartitioner_string");
_Static_assert(offsetof(struct JAX_CustomCallPartitioner_string, data) == 0, "data");
_Static_assert(offsetof(struct JAX_CustomCallPartitioner_string, size) == 8, "size");

struct JAX_CustomCallPartitioner_aval {
	struct JAX_CustomCallPartitioner_string shape;
	bool has_sharding;
	struct JAX_CustomCallPartitioner_string sharding;
};
#define JAX_CustomCallPartitioner_aval_SIZE 40u
_Static_assert(sizeof(struct JAX_CustomCallPartitioner_aval) == 40, "JAX_CustomCallPartitioner_aval");
_Static_assert(offsetof(struct JAX_CustomCallPartitioner_aval, shape) == 0, "shape");
_Static_assert(offsetof(struct JAX_CustomCallPartitioner_aval, has_sharding) == 16, "has_sharding");
_Static_assert(offsetof(struct JAX_CustomCallPartitioner_aval, sharding) == 24, "sharding");

struct JAX_CustomCallPartitioner_version_and_error {
	int64_t api_version;
	void *data;
	void *cleanup_fn;
	bool has_error;
	int code;
	struct JAX_CustomCallPartitioner_string error_msg;
};
#define JAX_CustomCallPartitioner_version_and_error_SIZE 48u
_Static_assert(sizeof(struct JAX_CustomCallPartitioner_version_and_error) == 48, "JAX_CustomCallPartitioner_version_and_error");
_Static_assert(offsetof(struct JAX_CustomCallPartitioner_version_and_error, api_version) == 0, "api_version");
_Static_assert(offsetof(struct JAX_CustomCallPartitioner_version_and_error, data) == 8, "data");
_Static_assert(offsetof(struct JAX_CustomCallPartitioner_version_and_error, cleanup_fn) == 16, "cleanup_fn");
_Static_assert(offsetof(struct JAX_CustomCallPartitioner_version_and_error, has_error) == 24, "has_error");
_Static_assert(offsetof(struct JAX_CustomCallPartitioner_version_and_error, code) == 28, "code");
_Static_assert(offsetof(struct JAX_CustomCallPartitioner_version_and_error, error_msg) == 32, "error_msg");

struct JAX_CustomCallPartitioner_Partition_Args {
	struct JAX_CustomCallPartitioner_version_and_error header;
	size_t num_args;
	struct JAX_CustomCallPartitioner_aval *op_args;
	struct JAX_CustomCallPartitioner_aval op_result;
	struct JAX_CustomCallPartitioner_string backend_config;
	struct JAX_CustomCallPartitioner_string mlir_module;
	struct JAX_CustomCallPartitioner_string *args_sharding;
	struct JAX_CustomCallPartitioner_string result_sharding;
};
#define JAX_CustomCallPartitioner_Partition_Args_SIZE 160u
#define JAX_CustomCallPartitioner_Partition_Args_OLDEST 160u
_Static_assert(sizeof(struct JAX_CustomCallPartitioner_Partition_Args) == 160, "JAX_CustomCallPartitioner_Partition_Args");
_Static_assert(offsetof(struct JAX_CustomCallPartitioner_Partition_Args, header) == 0, "header");
_Static_assert(offsetof(struct JAX_CustomCallPartitioner_Partition_Args, num_args) == 48, "num_args");
_Static_assert(offsetof(struct JAX_CustomCallPartitioner_Partition_Args, op_args) == 56, "op_args");
_Static_assert(offsetof(struct JAX_CustomCallPartitioner_Partition_Args, op_result) == 64, "op_result");
_Static_assert(offsetof(struct JAX_CustomCallPartitioner_Partition_Args, backend_config) == 104, "backend_config");
_Static_assert(offsetof(struct JAX_CustomCallPartitioner_Partition_Args, mlir_module) == 120, "mlir_module");
_Static_assert(offsetof(struct JAX_CustomCallPartitioner_Partition_Args, args_sharding) == 136, "args_sharding");
_Static_assert(offsetof(struct JAX_CustomCallPartitioner_Partition_Args, result_sharding) == 144, "result_sharding");

struct JAX_CustomCallPartitioner_InferShardingFromOperands_Args {
	struct JAX_CustomCallPartitioner_version_and_error header;
	size_t num_args;
	struct JAX_CustomCallPartitioner_aval *op_args;
	struct JAX_CustomCallPartitioner_string result_shape;
	struct JAX_CustomCallPartitioner_string backend_config;
	bool has_result_sharding;
	struct JAX_CustomCallPartitioner_string result_sharding;
};
#define JAX_CustomCallPartitioner_InferShardingFromOperands_Args_SIZE 120u
#define JAX_CustomCallPartitioner_InferShardingFromOperands_Args_OLDEST 120u
_Static_assert(sizeof(struct JAX_CustomCallPartitioner_InferShardingFromOperands_Args) == 120, "JAX_CustomCallPartitioner_InferShardingFromOperands_Args");
_Static_assert(offsetof(struct JAX_CustomCallPartitioner_InferShardingFromOperands_Args, header) == 0, "header");
_Static_assert(offsetof(struct JAX_CustomCallPartitioner_InferShardingFromOperands_Args, num_args) == 48, "num_args");
_Static_assert(offsetof(struct JAX_CustomCallPartitioner_InferShardingFromOperands_Args, op_args) == 56, "op_args");
_Static_assert(offsetof(struct JAX_CustomCallPartitioner_InferShardingFromOperands_Args, result_shape) == 64, "result_shape");
_Static_assert(offsetof(struct JAX_CustomCallPartitioner_InferShardingFromOperands_Args, backend_config) == 80, "backend_config");
_Static_assert(offsetof(struct JAX_CustomCallPartitioner_InferShardingFromOperands_Args, has_result_sharding) == 96, "has_result_sharding");
_Static_assert(offsetof(struct JAX_CustomCallPartitioner_InferShardingFromOperands_Args, result_sharding) == 104, "result_sharding");

struct JAX_CustomCallPartitioner_PropagateUserSharding_Args {
	struct JAX_CustomCallPartitioner_version_and_error header;
	struct JAX_CustomCallPartitioner_string backend_config;
	struct JAX_CustomCallPartitioner_string result_shape;
	struct JAX_CustomCallPartitioner_string result_sharding;
};
#define JAX_CustomCallPartitioner_PropagateUserSharding_Args_SIZE 96u
#define JAX_CustomCallPartitioner_PropagateUserSharding_Args_OLDEST 96u
_Static_assert(sizeof(struct JAX_CustomCallPartitioner_PropagateUserSharding_Args) == 96, "JAX_CustomCallPartitioner_PropagateUserSharding_Args");
_Static_assert(offsetof(struct JAX_CustomCallPartitioner_PropagateUserSharding_Args, header) == 0, "header");
_Static_assert(offsetof(struct JAX_CustomCallPartitioner_PropagateUserSharding_Args, backend_config) == 48, "backend_config");
_Static_assert(offsetof(struct JAX_CustomCallPartitioner_PropagateUserSharding_Args, result_shape) == 64, "result_shape");
_Static_assert(offsetof(struct JAX_CustomCallPartitioner_PropagateUserSharding_Args, result_sharding) == 80, "result_sharding");

struct JAX_CustomCallPartitioner_Callbacks {
	int64_t version;
	void *private_data;
	void *dtor;
	void *partition;
	void *infer_sharding;
	void *propagate_user_sharding;
	bool can_side_effecting_have_replicated_sharding;
};
#define JAX_CustomCallPartitioner_Callbacks_SIZE 49u
_Static_assert(sizeof(struct JAX_CustomCallPartitioner_Callbacks) == 56, "JAX_CustomCallPartitioner_Callbacks");
_Static_assert(offsetof(struct JAX_CustomCallPartitioner_Callbacks, version) == 0, "version");
_Static_assert(offsetof(struct JAX_CustomCallPartitioner_Callbacks, private_data) == 8, "private_data");
_Static_assert(offsetof(struct JAX_CustomCallPartitioner_Callbacks, dtor) == 16, "dtor");
_Static_assert(offsetof(struct JAX_CustomCallPartitioner_Callbacks, partition) == 24, "partition");
_Static_assert(offsetof(struct JAX_CustomCallPartitioner_Callbacks, infer_sharding) == 32, "infer_sharding");
_Static_assert(offsetof(struct JAX_CustomCallPartitioner_Callbacks, propagate_user_sharding) == 40, "propagate_user_sharding");
_Static_assert(offsetof(struct JAX_CustomCallPartitioner_Callbacks, can_side_effecting_have_replicated_sharding) == 48, "can_side_effecting_have_replicated_sharding");

struct PJRT_Register_Custom_Partitioner_Args {
	size_t struct_size;
	const char *name;
	size_t name_size;
	struct JAX_CustomCallPartitioner_Callbacks *callbacks;
};
#define PJRT_Register_Custom_Partitioner_Args_SIZE 32u
#define PJRT_Register_Custom_Partitioner_Args_OLDEST 32u
_Static_assert(sizeof(struct PJRT_Register_Custom_Partitioner_Args) == 32, "PJRT_Register_Custom_Partitioner_Args");
_Static_assert(offsetof(struct PJRT_Register_Custom_Partitioner_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_Register_Custom_Partitioner_Args, name) == 8, "name");
_Static_assert(offsetof(struct PJRT_Register_Custom_Partitioner_Args, name_size) == 16, "name_size");
_Static_assert(offsetof(struct PJRT_Register_Custom_Partitioner_Args, callbacks) == 24, "callbacks");

struct PJRT_Custom_Partitioner_Extension {
	struct PJRT_Extension_Base base;
	struct PJRT_Register_Custom_Partitioner *register_custom_partitioner;
	struct PJRT_Register_Batch_Partitionable *register_batch_partitionable;
};
#define PJRT_Custom_Partitioner_Extension_SIZE 40u
_Static_assert(sizeof(struct PJRT_Custom_Partitioner_Extension) == 40, "PJRT_Custom_Partitioner_Extension");
_Static_assert(offsetof(struct PJRT_Custom_Partitioner_Extension, base) == 0, "base");
_Static_assert(offsetof(struct PJRT_Custom_Partitioner_Extension, register_custom_partitioner) == 24, "register_custom_partitioner");
_Static_assert(offsetof(struct PJRT_Custom_Partitioner_Extension, register_batch_partitionable) == 32, "register_batch_partitionable");

struct PJRT_Shardings_PJRT_Executable_ParameterShardings_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	struct PJRT_Executable *executable;
	size_t num_parameters;
	const char * const*shardings;
	const size_t *sharding_sizes;
};
#define PJRT_Shardings_PJRT_Executable_ParameterShardings_Args_SIZE 48u
#define PJRT_Shardings_PJRT_Executable_ParameterShardings_Args_OLDEST 48u
_Static_assert(sizeof(struct PJRT_Shardings_PJRT_Executable_ParameterShardings_Args) == 48, "PJRT_Shardings_PJRT_Executable_ParameterShardings_Args");
_Static_assert(offsetof(struct PJRT_Shardings_PJRT_Executable_ParameterShardings_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_Shardings_PJRT_Executable_ParameterShardings_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_Shardings_PJRT_Executable_ParameterShardings_Args, executable) == 16, "executable");
_Static_assert(offsetof(struct PJRT_Shardings_PJRT_Executable_ParameterShardings_Args, num_parameters) == 24, "num_parameters");
_Static_assert(offsetof(struct PJRT_Shardings_PJRT_Executable_ParameterShardings_Args, shardings) == 32, "shardings");
_Static_assert(offsetof(struct PJRT_Shardings_PJRT_Executable_ParameterShardings_Args, sharding_sizes) == 40, "sharding_sizes");

struct PJRT_Shardings_PJRT_Executable_OutputShardings_Args {
	size_t struct_size;
	struct PJRT_Extension_Base *extension_start;
	struct PJRT_Executable *executable;
	size_t num_outputs;
	const char * const*shardings;
	const size_t *sharding_sizes;
};
#define PJRT_Shardings_PJRT_Executable_OutputShardings_Args_SIZE 48u
#define PJRT_Shardings_PJRT_Executable_OutputShardings_Args_OLDEST 48u
_Static_assert(sizeof(struct PJRT_Shardings_PJRT_Executable_OutputShardings_Args) == 48, "PJRT_Shardings_PJRT_Executable_OutputShardings_Args");
_Static_assert(offsetof(struct PJRT_Shardings_PJRT_Executable_OutputShardings_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_Shardings_PJRT_Executable_OutputShardings_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct PJRT_Shardings_PJRT_Executable_OutputShardings_Args, executable) == 16, "executable");
_Static_assert(offsetof(struct PJRT_Shardings_PJRT_Executable_OutputShardings_Args, num_outputs) == 24, "num_outputs");
_Static_assert(offsetof(struct PJRT_Shardings_PJRT_Executable_OutputShardings_Args, shardings) == 32, "shardings");
_Static_assert(offsetof(struct PJRT_Shardings_PJRT_Executable_OutputShardings_Args, sharding_sizes) == 40, "sharding_sizes");

struct PJRT_Shardings_Extension {
	struct PJRT_Extension_Base base;
	void *PJRT_Shardings_PJRT_Executable_ParameterShardings;
	void *PJRT_Shardings_PJRT_Executable_OutputShardings;
};
#define PJRT_Shardings_Extension_SIZE 40u
_Static_assert(sizeof(struct PJRT_Shardings_Extension) == 40, "PJRT_Shardings_Extension");
_Static_assert(offsetof(struct PJRT_Shardings_Extension, base) == 0, "base");
_Static_assert(offsetof(struct PJRT_Shardings_Extension, PJRT_Shardings_PJRT_Executable_ParameterShardings) == 24, "PJRT_Shardings_PJRT_Executable_ParameterShardings");
_Static_assert(offsetof(struct PJRT_Shardings_Extension, PJRT_Shardings_PJRT_Executable_OutputShardings) == 32, "PJRT_Shardings_PJRT_Executable_OutputShardings");

struct PJRT_Gpu_Register_Custom_Call_Args {
	size_t struct_size;
	const char *function_name;
	size_t function_name_size;
	int api_version;
	void *handler_instantiate;
	void *handler_prepare;
	void *handler_initialize;
	void *handler_execute;
};
#define PJRT_Gpu_Register_Custom_Call_Args_SIZE 64u
#define PJRT_Gpu_Register_Custom_Call_Args_OLDEST 64u
_Static_assert(sizeof(struct PJRT_Gpu_Register_Custom_Call_Args) == 64, "PJRT_Gpu_Register_Custom_Call_Args");
_Static_assert(offsetof(struct PJRT_Gpu_Register_Custom_Call_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PJRT_Gpu_Register_Custom_Call_Args, function_name) == 8, "function_name");
_Static_assert(offsetof(struct PJRT_Gpu_Register_Custom_Call_Args, function_name_size) == 16, "function_name_size");
_Static_assert(offsetof(struct PJRT_Gpu_Register_Custom_Call_Args, api_version) == 24, "api_version");
_Static_assert(offsetof(struct PJRT_Gpu_Register_Custom_Call_Args, handler_instantiate) == 32, "handler_instantiate");
_Static_assert(offsetof(struct PJRT_Gpu_Register_Custom_Call_Args, handler_prepare) == 40, "handler_prepare");
_Static_assert(offsetof(struct PJRT_Gpu_Register_Custom_Call_Args, handler_initialize) == 48, "handler_initialize");
_Static_assert(offsetof(struct PJRT_Gpu_Register_Custom_Call_Args, handler_execute) == 56, "handler_execute");

struct PJRT_Gpu_Custom_Call {
	struct PJRT_Extension_Base base;
	struct PJRT_Gpu_Register_Custom_Call *custom_call;
};
#define PJRT_Gpu_Custom_Call_SIZE 32u
_Static_assert(sizeof(struct PJRT_Gpu_Custom_Call) == 32, "PJRT_Gpu_Custom_Call");
_Static_assert(offsetof(struct PJRT_Gpu_Custom_Call, base) == 0, "base");
_Static_assert(offsetof(struct PJRT_Gpu_Custom_Call, custom_call) == 24, "custom_call");

struct PLUGIN_Profiler_Error_Destroy_Args {
	size_t struct_size;
	void *priv;
	void *error;
};
#define PLUGIN_Profiler_Error_Destroy_Args_SIZE 24u
#define PLUGIN_Profiler_Error_Destroy_Args_OLDEST 24u
_Static_assert(sizeof(struct PLUGIN_Profiler_Error_Destroy_Args) == 24, "PLUGIN_Profiler_Error_Destroy_Args");
_Static_assert(offsetof(struct PLUGIN_Profiler_Error_Destroy_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PLUGIN_Profiler_Error_Destroy_Args, priv) == 8, "priv");
_Static_assert(offsetof(struct PLUGIN_Profiler_Error_Destroy_Args, error) == 16, "error");

struct PLUGIN_Profiler_Error_Message_Args {
	size_t struct_size;
	void *priv;
	void *error;
	const char *message;
	size_t message_size;
};
#define PLUGIN_Profiler_Error_Message_Args_SIZE 40u
#define PLUGIN_Profiler_Error_Message_Args_OLDEST 40u
_Static_assert(sizeof(struct PLUGIN_Profiler_Error_Message_Args) == 40, "PLUGIN_Profiler_Error_Message_Args");
_Static_assert(offsetof(struct PLUGIN_Profiler_Error_Message_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PLUGIN_Profiler_Error_Message_Args, priv) == 8, "priv");
_Static_assert(offsetof(struct PLUGIN_Profiler_Error_Message_Args, error) == 16, "error");
_Static_assert(offsetof(struct PLUGIN_Profiler_Error_Message_Args, message) == 24, "message");
_Static_assert(offsetof(struct PLUGIN_Profiler_Error_Message_Args, message_size) == 32, "message_size");

struct PLUGIN_Profiler_Error_GetCode_Args {
	size_t struct_size;
	void *priv;
	void *error;
	int code;
};
#define PLUGIN_Profiler_Error_GetCode_Args_SIZE 28u
#define PLUGIN_Profiler_Error_GetCode_Args_OLDEST 28u
_Static_assert(sizeof(struct PLUGIN_Profiler_Error_GetCode_Args) == 32, "PLUGIN_Profiler_Error_GetCode_Args");
_Static_assert(offsetof(struct PLUGIN_Profiler_Error_GetCode_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PLUGIN_Profiler_Error_GetCode_Args, priv) == 8, "priv");
_Static_assert(offsetof(struct PLUGIN_Profiler_Error_GetCode_Args, error) == 16, "error");
_Static_assert(offsetof(struct PLUGIN_Profiler_Error_GetCode_Args, code) == 24, "code");

struct PLUGIN_Profiler_Create_Args {
	size_t struct_size;
	const char *options;
	size_t options_size;
	void *profiler;
};
#define PLUGIN_Profiler_Create_Args_SIZE 32u
#define PLUGIN_Profiler_Create_Args_OLDEST 32u
_Static_assert(sizeof(struct PLUGIN_Profiler_Create_Args) == 32, "PLUGIN_Profiler_Create_Args");
_Static_assert(offsetof(struct PLUGIN_Profiler_Create_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PLUGIN_Profiler_Create_Args, options) == 8, "options");
_Static_assert(offsetof(struct PLUGIN_Profiler_Create_Args, options_size) == 16, "options_size");
_Static_assert(offsetof(struct PLUGIN_Profiler_Create_Args, profiler) == 24, "profiler");

struct PLUGIN_Profiler_Destroy_Args {
	size_t struct_size;
	void *profiler;
};
#define PLUGIN_Profiler_Destroy_Args_SIZE 16u
#define PLUGIN_Profiler_Destroy_Args_OLDEST 16u
_Static_assert(sizeof(struct PLUGIN_Profiler_Destroy_Args) == 16, "PLUGIN_Profiler_Destroy_Args");
_Static_assert(offsetof(struct PLUGIN_Profiler_Destroy_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PLUGIN_Profiler_Destroy_Args, profiler) == 8, "profiler");

struct PLUGIN_Profiler_Start_Args {
	size_t struct_size;
	void *profiler;
};
#define PLUGIN_Profiler_Start_Args_SIZE 16u
#define PLUGIN_Profiler_Start_Args_OLDEST 16u
_Static_assert(sizeof(struct PLUGIN_Profiler_Start_Args) == 16, "PLUGIN_Profiler_Start_Args");
_Static_assert(offsetof(struct PLUGIN_Profiler_Start_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PLUGIN_Profiler_Start_Args, profiler) == 8, "profiler");

struct PLUGIN_Profiler_Stop_Args {
	size_t struct_size;
	void *profiler;
};
#define PLUGIN_Profiler_Stop_Args_SIZE 16u
#define PLUGIN_Profiler_Stop_Args_OLDEST 16u
_Static_assert(sizeof(struct PLUGIN_Profiler_Stop_Args) == 16, "PLUGIN_Profiler_Stop_Args");
_Static_assert(offsetof(struct PLUGIN_Profiler_Stop_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PLUGIN_Profiler_Stop_Args, profiler) == 8, "profiler");

struct PLUGIN_Profiler_CollectData_Args {
	size_t struct_size;
	void *profiler;
	void *buffer;
	size_t buffer_size_in_bytes;
};
#define PLUGIN_Profiler_CollectData_Args_SIZE 32u
#define PLUGIN_Profiler_CollectData_Args_OLDEST 32u
_Static_assert(sizeof(struct PLUGIN_Profiler_CollectData_Args) == 32, "PLUGIN_Profiler_CollectData_Args");
_Static_assert(offsetof(struct PLUGIN_Profiler_CollectData_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PLUGIN_Profiler_CollectData_Args, profiler) == 8, "profiler");
_Static_assert(offsetof(struct PLUGIN_Profiler_CollectData_Args, buffer) == 16, "buffer");
_Static_assert(offsetof(struct PLUGIN_Profiler_CollectData_Args, buffer_size_in_bytes) == 24, "buffer_size_in_bytes");

struct PLUGIN_Profiler_Api {
	size_t struct_size;
	void *priv;
	void *error_destroy;
	void *error_message;
	void *error_get_code;
	void *create;
	void *destroy;
	void *start;
	void *stop;
	void *collect_data;
};
#define PLUGIN_Profiler_Api_SIZE 80u
_Static_assert(sizeof(struct PLUGIN_Profiler_Api) == 80, "PLUGIN_Profiler_Api");
_Static_assert(offsetof(struct PLUGIN_Profiler_Api, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct PLUGIN_Profiler_Api, priv) == 8, "priv");
_Static_assert(offsetof(struct PLUGIN_Profiler_Api, error_destroy) == 16, "error_destroy");
_Static_assert(offsetof(struct PLUGIN_Profiler_Api, error_message) == 24, "error_message");
_Static_assert(offsetof(struct PLUGIN_Profiler_Api, error_get_code) == 32, "error_get_code");
_Static_assert(offsetof(struct PLUGIN_Profiler_Api, create) == 40, "create");
_Static_assert(offsetof(struct PLUGIN_Profiler_Api, destroy) == 48, "destroy");
_Static_assert(offsetof(struct PLUGIN_Profiler_Api, start) == 56, "start");
_Static_assert(offsetof(struct PLUGIN_Profiler_Api, stop) == 64, "stop");
_Static_assert(offsetof(struct PLUGIN_Profiler_Api, collect_data) == 72, "collect_data");

struct PJRT_Profiler_Extension {
	struct PJRT_Extension_Base base;
	void *profiler_api;
	int64_t traceme_context_id;
};
#define PJRT_Profiler_Extension_SIZE 40u
_Static_assert(sizeof(struct PJRT_Profiler_Extension) == 40, "PJRT_Profiler_Extension");
_Static_assert(offsetof(struct PJRT_Profiler_Extension, base) == 0, "base");
_Static_assert(offsetof(struct PJRT_Profiler_Extension, profiler_api) == 24, "profiler_api");
_Static_assert(offsetof(struct PJRT_Profiler_Extension, traceme_context_id) == 32, "traceme_context_id");

/* Every slot of the function table: SLOT(name without PJRT_, byte offset). */
#define PJRT_SLOTS(SLOT) \
	SLOT(Error_Destroy, 40) \
	SLOT(Error_Message, 48) \
	SLOT(Error_GetCode, 56) \
	SLOT(Plugin_Initialize, 64) \
	SLOT(Plugin_Attributes, 72) \
	SLOT(Event_Destroy, 80) \
	SLOT(Event_IsReady, 88) \
	SLOT(Event_Error, 96) \
	SLOT(Event_Await, 104) \
	SLOT(Event_OnReady, 112) \
	SLOT(Client_Create, 120) \
	SLOT(Client_Destroy, 128) \
	SLOT(Client_PlatformName, 136) \
	SLOT(Client_ProcessIndex, 144) \
	SLOT(Client_PlatformVersion, 152) \
	SLOT(Client_Devices, 160) \
	SLOT(Client_AddressableDevices, 168) \
	SLOT(Client_LookupDevice, 176) \
	SLOT(Client_LookupAddressableDevice, 184) \
	SLOT(Client_AddressableMemories, 192) \
	SLOT(Client_Compile, 200) \
	SLOT(Client_DefaultDeviceAssignment, 208) \
	SLOT(Client_BufferFromHostBuffer, 216) \
	SLOT(DeviceDescription_Id, 224) \
	SLOT(DeviceDescription_ProcessIndex, 232) \
	SLOT(DeviceDescription_Attributes, 240) \
	SLOT(DeviceDescription_Kind, 248) \
	SLOT(DeviceDescription_DebugString, 256) \
	SLOT(DeviceDescription_ToString, 264) \
	SLOT(Device_GetDescription, 272) \
	SLOT(Device_IsAddressable, 280) \
	SLOT(Device_LocalHardwareId, 288) \
	SLOT(Device_AddressableMemories, 296) \
	SLOT(Device_DefaultMemory, 304) \
	SLOT(Device_MemoryStats, 312) \
	SLOT(Memory_Id, 320) \
	SLOT(Memory_Kind, 328) \
	SLOT(Memory_DebugString, 336) \
	SLOT(Memory_ToString, 344) \
	SLOT(Memory_AddressableByDevices, 352) \
	SLOT(Executable_Destroy, 360) \
	SLOT(Executable_Name, 368) \
	SLOT(Executable_NumReplicas, 376) \
	SLOT(Executable_NumPartitions, 384) \
	SLOT(Executable_NumOutputs, 392) \
	SLOT(Executable_SizeOfGeneratedCodeInBytes, 400) \
	SLOT(Executable_GetCostAnalysis, 408) \
	SLOT(Executable_OutputMemoryKinds, 416) \
	SLOT(Executable_OptimizedProgram, 424) \
	SLOT(Executable_Serialize, 432) \
	SLOT(LoadedExecutable_Destroy, 440) \
	SLOT(LoadedExecutable_GetExecutable, 448) \
	SLOT(LoadedExecutable_AddressableDevices, 456) \
	SLOT(LoadedExecutable_Delete, 464) \
	SLOT(LoadedExecutable_IsDeleted, 472) \
	SLOT(LoadedExecutable_Execute, 480) \
	SLOT(Executable_DeserializeAndLoad, 488) \
	SLOT(LoadedExecutable_Fingerprint, 496) \
	SLOT(Buffer_Destroy, 504) \
	SLOT(Buffer_ElementType, 512) \
	SLOT(Buffer_Dimensions, 520) \
	SLOT(Buffer_UnpaddedDimensions, 528) \
	SLOT(Buffer_DynamicDimensionIndices, 536) \
	SLOT(Buffer_GetMemoryLayout, 544) \
	SLOT(Buffer_OnDeviceSizeInBytes, 552) \
	SLOT(Buffer_Device, 560) \
	SLOT(Buffer_Memory, 568) \
	SLOT(Buffer_Delete, 576) \
	SLOT(Buffer_IsDeleted, 584) \
	SLOT(Buffer_CopyToDevice, 592) \
	SLOT(Buffer_ToHostBuffer, 600) \
	SLOT(Buffer_IsOnCpu, 608) \
	SLOT(Buffer_ReadyEvent, 616) \
	SLOT(Buffer_UnsafePointer, 624) \
	SLOT(Buffer_IncreaseExternalReferenceCount, 632) \
	SLOT(Buffer_DecreaseExternalReferenceCount, 640) \
	SLOT(Buffer_OpaqueDeviceMemoryDataPointer, 648) \
	SLOT(CopyToDeviceStream_Destroy, 656) \
	SLOT(CopyToDeviceStream_AddChunk, 664) \
	SLOT(CopyToDeviceStream_TotalBytes, 672) \
	SLOT(CopyToDeviceStream_GranuleSize, 680) \
	SLOT(CopyToDeviceStream_CurrentBytes, 688) \
	SLOT(TopologyDescription_Create, 696) \
	SLOT(TopologyDescription_Destroy, 704) \
	SLOT(TopologyDescription_PlatformName, 712) \
	SLOT(TopologyDescription_PlatformVersion, 720) \
	SLOT(TopologyDescription_GetDeviceDescriptions, 728) \
	SLOT(TopologyDescription_Serialize, 736) \
	SLOT(TopologyDescription_Attributes, 744) \
	SLOT(Compile, 752) \
	SLOT(Executable_OutputElementTypes, 760) \
	SLOT(Executable_OutputDimensions, 768) \
	SLOT(Buffer_CopyToMemory, 776) \
	SLOT(Client_CreateViewOfDeviceBuffer, 784) \
	SLOT(Executable_Fingerprint, 792) \
	SLOT(Client_TopologyDescription, 800) \
	SLOT(Executable_GetCompiledMemoryStats, 808) \
	SLOT(Memory_Kind_Id, 816) \
	SLOT(ExecuteContext_Create, 824) \
	SLOT(ExecuteContext_Destroy, 832) \
	SLOT(Buffer_CopyRawToHost, 840) \
	SLOT(AsyncHostToDeviceTransferManager_Destroy, 848) \
	SLOT(AsyncHostToDeviceTransferManager_TransferData, 856) \
	SLOT(Client_CreateBuffersForAsyncHostToDevice, 864) \
	SLOT(AsyncHostToDeviceTransferManager_RetrieveBuffer, 872) \
	SLOT(AsyncHostToDeviceTransferManager_Device, 880) \
	SLOT(AsyncHostToDeviceTransferManager_BufferCount, 888) \
	SLOT(AsyncHostToDeviceTransferManager_BufferSize, 896) \
	SLOT(AsyncHostToDeviceTransferManager_SetBufferError, 904) \
	SLOT(AsyncHostToDeviceTransferManager_AddMetadata, 912) \
	SLOT(Client_DmaMap, 920) \
	SLOT(Client_DmaUnmap, 928) \
	SLOT(Client_CreateUninitializedBuffer, 936) \
	SLOT(Client_UpdateGlobalProcessInfo, 944) \
	SLOT(TopologyDescription_Deserialize, 952) \
	SLOT(Client_CreateAliasBuffer, 960) \
	SLOT(Client_FulfillAliasBuffer, 968) \
	SLOT(LoadedExecutable_GetDeviceAssignment, 976) \
	SLOT(Client_CreateErrorBuffer, 984) \
	SLOT(AsyncHostToDeviceTransferManager_TransferLiteral, 992) \
	SLOT(Buffer_CopyRawToHostFuture, 1000) \
	SLOT(Device_PoisonExecution, 1008) \
	SLOT(Device_CreateAsyncTrackingEvent, 1016) \
	SLOT(AsyncTrackingEvent_Destroy, 1024) \
	SLOT(Executable_GetCompileOptions, 1032) \
	SLOT(Buffer_DonateWithControlDependency, 1040) \
	SLOT(Event_Create, 1048) \
	SLOT(Event_Set, 1056) \
	SLOT(Device_GetAttributes, 1064) \
	SLOT(Client_Load, 1072) \
	SLOT(LoadedExecutable_AddressableDeviceLogicalIds, 1080) \
	SLOT(Buffer_Bitcast, 1088) \
	SLOT(Error_ForEachPayload, 1096) \
	SLOT(TopologyDescription_Fingerprint, 1104) \
	SLOT(Executable_ParameterMemoryKinds, 1112) \
	SLOT(Device_ClearMemoryStats, 1120) \
	SLOT(TopologyDescription_MakeCanonicalShapeForMemorySpace, 1128) \
	SLOT(TopologyDescription_GetMemorySpaceKindIds, 1136) \

#define PJRT_API_SIZE 1144u
#define PJRT_API_MINOR 112

#endif
