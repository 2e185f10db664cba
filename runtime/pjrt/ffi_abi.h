/* SPDX-License-Identifier: Apache-2.0 */
/* XLA's FFI 0.3, by which programs call functions of the host,
 * as laid out in memory. Made by gen_abi.py: do not edit. */
#ifndef PJRT_FFI_ABI_H
#define PJRT_FFI_ABI_H
#include <stddef.h>
#include <stdint.h>

#define XLA_FFI_MAJOR 0
#define XLA_FFI_MINOR 3

enum {
	XLA_FFI_Extension_Metadata = 1,
};

enum {
	XLA_FFI_Error_Code_OK = 0,
	XLA_FFI_Error_Code_CANCELLED = 1,
	XLA_FFI_Error_Code_UNKNOWN = 2,
	XLA_FFI_Error_Code_INVALID_ARGUMENT = 3,
	XLA_FFI_Error_Code_DEADLINE_EXCEEDED = 4,
	XLA_FFI_Error_Code_NOT_FOUND = 5,
	XLA_FFI_Error_Code_ALREADY_EXISTS = 6,
	XLA_FFI_Error_Code_PERMISSION_DENIED = 7,
	XLA_FFI_Error_Code_RESOURCE_EXHAUSTED = 8,
	XLA_FFI_Error_Code_FAILED_PRECONDITION = 9,
	XLA_FFI_Error_Code_ABORTED = 10,
	XLA_FFI_Error_Code_OUT_OF_RANGE = 11,
	XLA_FFI_Error_Code_UNIMPLEMENTED = 12,
	XLA_FFI_Error_Code_INTERNAL = 13,
	XLA_FFI_Error_Code_UNAVAILABLE = 14,
	XLA_FFI_Error_Code_DATA_LOSS = 15,
	XLA_FFI_Error_Code_UNAUTHENTICATED = 16,
};

enum {
	XLA_FFI_DataType_INVALID = 0,
	XLA_FFI_DataType_PRED = 1,
	XLA_FFI_DataType_S1 = 30,
	XLA_FFI_DataType_S2 = 26,
	XLA_FFI_DataType_S4 = 21,
	XLA_FFI_DataType_S8 = 2,
	XLA_FFI_DataType_S16 = 3,
	XLA_FFI_DataType_S32 = 4,
	XLA_FFI_DataType_S64 = 5,
	XLA_FFI_DataType_U1 = 31,
	XLA_FFI_DataType_U2 = 27,
	XLA_FFI_DataType_U4 = 22,
	XLA_FFI_DataType_U8 = 6,
	XLA_FFI_DataType_U16 = 7,
	XLA_FFI_DataType_U32 = 8,
	XLA_FFI_DataType_U64 = 9,
	XLA_FFI_DataType_F16 = 10,
	XLA_FFI_DataType_F32 = 11,
	XLA_FFI_DataType_F64 = 12,
	XLA_FFI_DataType_BF16 = 16,
	XLA_FFI_DataType_C64 = 15,
	XLA_FFI_DataType_C128 = 18,
	XLA_FFI_DataType_TOKEN = 17,
	XLA_FFI_DataType_F8E5M2 = 19,
	XLA_FFI_DataType_F8E3M4 = 29,
	XLA_FFI_DataType_F8E4M3 = 28,
	XLA_FFI_DataType_F8E4M3FN = 20,
	XLA_FFI_DataType_F8E4M3B11FNUZ = 23,
	XLA_FFI_DataType_F8E5M2FNUZ = 24,
	XLA_FFI_DataType_F8E4M3FNUZ = 25,
	XLA_FFI_DataType_F4E2M1FN = 32,
	XLA_FFI_DataType_F8E8M0FNU = 33,
};

enum {
	XLA_FFI_ArgType_BUFFER = 1,
};

enum {
	XLA_FFI_RetType_BUFFER = 1,
};

enum {
	XLA_FFI_AttrType_ARRAY = 1,
	XLA_FFI_AttrType_DICTIONARY = 2,
	XLA_FFI_AttrType_SCALAR = 3,
	XLA_FFI_AttrType_STRING = 4,
};

enum {
	XLA_FFI_ExecutionStage_INSTANTIATE = 0,
	XLA_FFI_ExecutionStage_PREPARE = 1,
	XLA_FFI_ExecutionStage_INITIALIZE = 2,
	XLA_FFI_ExecutionStage_EXECUTE = 3,
};

enum {
	XLA_FFI_HANDLER_TRAITS_COMMAND_BUFFER_COMPATIBLE = 1,
};

struct XLA_FFI_Extension_Base {
	size_t struct_size;
	int type;
	struct XLA_FFI_Extension_Base *next;
};
#define XLA_FFI_Extension_Base_SIZE 24u
_Static_assert(sizeof(struct XLA_FFI_Extension_Base) == 24, "XLA_FFI_Extension_Base");
_Static_assert(offsetof(struct XLA_FFI_Extension_Base, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct XLA_FFI_Extension_Base, type) == 8, "type");
_Static_assert(offsetof(struct XLA_FFI_Extension_Base, next) == 16, "next");

struct XLA_FFI_Api_Version {
	size_t struct_size;
	struct XLA_FFI_Extension_Base *extension_start;
	int major_version;
	int minor_version;
};
#define XLA_FFI_Api_Version_SIZE 24u
_Static_assert(sizeof(struct XLA_FFI_Api_Version) == 24, "XLA_FFI_Api_Version");
_Static_assert(offsetof(struct XLA_FFI_Api_Version, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct XLA_FFI_Api_Version, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct XLA_FFI_Api_Version, major_version) == 16, "major_version");
_Static_assert(offsetof(struct XLA_FFI_Api_Version, minor_version) == 20, "minor_version");

struct XLA_FFI_Error_Create_Args {
	size_t struct_size;
	struct XLA_FFI_Extension_Base *extension_start;
	const char *message;
	int errc;
};
#define XLA_FFI_Error_Create_Args_SIZE 28u
_Static_assert(sizeof(struct XLA_FFI_Error_Create_Args) == 32, "XLA_FFI_Error_Create_Args");
_Static_assert(offsetof(struct XLA_FFI_Error_Create_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct XLA_FFI_Error_Create_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct XLA_FFI_Error_Create_Args, message) == 16, "message");
_Static_assert(offsetof(struct XLA_FFI_Error_Create_Args, errc) == 24, "errc");

struct XLA_FFI_Error_GetMessage_Args {
	size_t struct_size;
	struct XLA_FFI_Extension_Base *extension_start;
	struct XLA_FFI_Error *error;
	const char *message;
};
#define XLA_FFI_Error_GetMessage_Args_SIZE 32u
_Static_assert(sizeof(struct XLA_FFI_Error_GetMessage_Args) == 32, "XLA_FFI_Error_GetMessage_Args");
_Static_assert(offsetof(struct XLA_FFI_Error_GetMessage_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct XLA_FFI_Error_GetMessage_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct XLA_FFI_Error_GetMessage_Args, error) == 16, "error");
_Static_assert(offsetof(struct XLA_FFI_Error_GetMessage_Args, message) == 24, "message");

struct XLA_FFI_Error_Destroy_Args {
	size_t struct_size;
	struct XLA_FFI_Extension_Base *extension_start;
	struct XLA_FFI_Error *error;
};
#define XLA_FFI_Error_Destroy_Args_SIZE 24u
_Static_assert(sizeof(struct XLA_FFI_Error_Destroy_Args) == 24, "XLA_FFI_Error_Destroy_Args");
_Static_assert(offsetof(struct XLA_FFI_Error_Destroy_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct XLA_FFI_Error_Destroy_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct XLA_FFI_Error_Destroy_Args, error) == 16, "error");

struct XLA_FFI_Buffer {
	size_t struct_size;
	struct XLA_FFI_Extension_Base *extension_start;
	int dtype;
	void *data;
	int64_t rank;
	int64_t *dims;
};
#define XLA_FFI_Buffer_SIZE 48u
_Static_assert(sizeof(struct XLA_FFI_Buffer) == 48, "XLA_FFI_Buffer");
_Static_assert(offsetof(struct XLA_FFI_Buffer, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct XLA_FFI_Buffer, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct XLA_FFI_Buffer, dtype) == 16, "dtype");
_Static_assert(offsetof(struct XLA_FFI_Buffer, data) == 24, "data");
_Static_assert(offsetof(struct XLA_FFI_Buffer, rank) == 32, "rank");
_Static_assert(offsetof(struct XLA_FFI_Buffer, dims) == 40, "dims");

struct XLA_FFI_ByteSpan {
	const char *ptr;
	size_t len;
};
#define XLA_FFI_ByteSpan_SIZE 16u
_Static_assert(sizeof(struct XLA_FFI_ByteSpan) == 16, "XLA_FFI_ByteSpan");
_Static_assert(offsetof(struct XLA_FFI_ByteSpan, ptr) == 0, "ptr");
_Static_assert(offsetof(struct XLA_FFI_ByteSpan, len) == 8, "len");

struct XLA_FFI_Scalar {
	int dtype;
	void *value;
};
#define XLA_FFI_Scalar_SIZE 16u
_Static_assert(sizeof(struct XLA_FFI_Scalar) == 16, "XLA_FFI_Scalar");
_Static_assert(offsetof(struct XLA_FFI_Scalar, dtype) == 0, "dtype");
_Static_assert(offsetof(struct XLA_FFI_Scalar, value) == 8, "value");

struct XLA_FFI_Array {
	int dtype;
	size_t size;
	void *data;
};
#define XLA_FFI_Array_SIZE 24u
_Static_assert(sizeof(struct XLA_FFI_Array) == 24, "XLA_FFI_Array");
_Static_assert(offsetof(struct XLA_FFI_Array, dtype) == 0, "dtype");
_Static_assert(offsetof(struct XLA_FFI_Array, size) == 8, "size");
_Static_assert(offsetof(struct XLA_FFI_Array, data) == 16, "data");

struct XLA_FFI_TypeId {
	int64_t type_id;
};
#define XLA_FFI_TypeId_SIZE 8u
_Static_assert(sizeof(struct XLA_FFI_TypeId) == 8, "XLA_FFI_TypeId");
_Static_assert(offsetof(struct XLA_FFI_TypeId, type_id) == 0, "type_id");

struct XLA_FFI_TypeInfo {
	size_t struct_size;
	struct XLA_FFI_Extension_Base *extension_start;
	void *deleter;
};
#define XLA_FFI_TypeInfo_SIZE 24u
_Static_assert(sizeof(struct XLA_FFI_TypeInfo) == 24, "XLA_FFI_TypeInfo");
_Static_assert(offsetof(struct XLA_FFI_TypeInfo, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct XLA_FFI_TypeInfo, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct XLA_FFI_TypeInfo, deleter) == 16, "deleter");

struct XLA_FFI_Future_Create_Args {
	size_t struct_size;
	struct XLA_FFI_Extension_Base *extension_start;
	struct XLA_FFI_Future *future;
};
#define XLA_FFI_Future_Create_Args_SIZE 16u
_Static_assert(sizeof(struct XLA_FFI_Future_Create_Args) == 24, "XLA_FFI_Future_Create_Args");
_Static_assert(offsetof(struct XLA_FFI_Future_Create_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct XLA_FFI_Future_Create_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct XLA_FFI_Future_Create_Args, future) == 16, "future");

struct XLA_FFI_Future_SetAvailable_Args {
	size_t struct_size;
	struct XLA_FFI_Extension_Base *extension_start;
	struct XLA_FFI_Future *future;
};
#define XLA_FFI_Future_SetAvailable_Args_SIZE 24u
_Static_assert(sizeof(struct XLA_FFI_Future_SetAvailable_Args) == 24, "XLA_FFI_Future_SetAvailable_Args");
_Static_assert(offsetof(struct XLA_FFI_Future_SetAvailable_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct XLA_FFI_Future_SetAvailable_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct XLA_FFI_Future_SetAvailable_Args, future) == 16, "future");

struct XLA_FFI_Future_SetError_Args {
	size_t struct_size;
	struct XLA_FFI_Extension_Base *extension_start;
	struct XLA_FFI_Future *future;
	struct XLA_FFI_Error *error;
};
#define XLA_FFI_Future_SetError_Args_SIZE 32u
_Static_assert(sizeof(struct XLA_FFI_Future_SetError_Args) == 32, "XLA_FFI_Future_SetError_Args");
_Static_assert(offsetof(struct XLA_FFI_Future_SetError_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct XLA_FFI_Future_SetError_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct XLA_FFI_Future_SetError_Args, future) == 16, "future");
_Static_assert(offsetof(struct XLA_FFI_Future_SetError_Args, error) == 24, "error");

struct XLA_FFI_Args {
	size_t struct_size;
	struct XLA_FFI_Extension_Base *extension_start;
	int64_t size;
	int *types;
	void **args;
};
#define XLA_FFI_Args_SIZE 40u
_Static_assert(sizeof(struct XLA_FFI_Args) == 40, "XLA_FFI_Args");
_Static_assert(offsetof(struct XLA_FFI_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct XLA_FFI_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct XLA_FFI_Args, size) == 16, "size");
_Static_assert(offsetof(struct XLA_FFI_Args, types) == 24, "types");
_Static_assert(offsetof(struct XLA_FFI_Args, args) == 32, "args");

struct XLA_FFI_Rets {
	size_t struct_size;
	struct XLA_FFI_Extension_Base *extension_start;
	int64_t size;
	int *types;
	void **rets;
};
#define XLA_FFI_Rets_SIZE 40u
_Static_assert(sizeof(struct XLA_FFI_Rets) == 40, "XLA_FFI_Rets");
_Static_assert(offsetof(struct XLA_FFI_Rets, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct XLA_FFI_Rets, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct XLA_FFI_Rets, size) == 16, "size");
_Static_assert(offsetof(struct XLA_FFI_Rets, types) == 24, "types");
_Static_assert(offsetof(struct XLA_FFI_Rets, rets) == 32, "rets");

struct XLA_FFI_Attrs {
	size_t struct_size;
	struct XLA_FFI_Extension_Base *extension_start;
	int64_t size;
	int *types;
	struct XLA_FFI_ByteSpan **names;
	void **attrs;
};
#define XLA_FFI_Attrs_SIZE 48u
_Static_assert(sizeof(struct XLA_FFI_Attrs) == 48, "XLA_FFI_Attrs");
_Static_assert(offsetof(struct XLA_FFI_Attrs, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct XLA_FFI_Attrs, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct XLA_FFI_Attrs, size) == 16, "size");
_Static_assert(offsetof(struct XLA_FFI_Attrs, types) == 24, "types");
_Static_assert(offsetof(struct XLA_FFI_Attrs, names) == 32, "names");
_Static_assert(offsetof(struct XLA_FFI_Attrs, attrs) == 40, "attrs");

struct XLA_FFI_CallFrame {
	size_t struct_size;
	struct XLA_FFI_Extension_Base *extension_start;
	const struct XLA_FFI_Api *api;
	struct XLA_FFI_ExecutionContext *ctx;
	int stage;
	struct XLA_FFI_Args args;
	struct XLA_FFI_Rets rets;
	struct XLA_FFI_Attrs attrs;
	struct XLA_FFI_Future *future;
};
#define XLA_FFI_CallFrame_SIZE 168u
_Static_assert(sizeof(struct XLA_FFI_CallFrame) == 176, "XLA_FFI_CallFrame");
_Static_assert(offsetof(struct XLA_FFI_CallFrame, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct XLA_FFI_CallFrame, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct XLA_FFI_CallFrame, api) == 16, "api");
_Static_assert(offsetof(struct XLA_FFI_CallFrame, ctx) == 24, "ctx");
_Static_assert(offsetof(struct XLA_FFI_CallFrame, stage) == 32, "stage");
_Static_assert(offsetof(struct XLA_FFI_CallFrame, args) == 40, "args");
_Static_assert(offsetof(struct XLA_FFI_CallFrame, rets) == 80, "rets");
_Static_assert(offsetof(struct XLA_FFI_CallFrame, attrs) == 120, "attrs");
_Static_assert(offsetof(struct XLA_FFI_CallFrame, future) == 168, "future");

struct XLA_FFI_Handler_Bundle {
	void *instantiate;
	void *prepare;
	void *initialize;
	void *execute;
};
#define XLA_FFI_Handler_Bundle_SIZE 32u
_Static_assert(sizeof(struct XLA_FFI_Handler_Bundle) == 32, "XLA_FFI_Handler_Bundle");
_Static_assert(offsetof(struct XLA_FFI_Handler_Bundle, instantiate) == 0, "instantiate");
_Static_assert(offsetof(struct XLA_FFI_Handler_Bundle, prepare) == 8, "prepare");
_Static_assert(offsetof(struct XLA_FFI_Handler_Bundle, initialize) == 16, "initialize");
_Static_assert(offsetof(struct XLA_FFI_Handler_Bundle, execute) == 24, "execute");

struct XLA_FFI_Handler_Register_Args {
	size_t struct_size;
	struct XLA_FFI_Extension_Base *extension_start;
	struct XLA_FFI_ByteSpan name;
	struct XLA_FFI_ByteSpan platform;
	struct XLA_FFI_Handler_Bundle bundle;
	uint32_t traits;
};
#define XLA_FFI_Handler_Register_Args_SIZE 84u
_Static_assert(sizeof(struct XLA_FFI_Handler_Register_Args) == 88, "XLA_FFI_Handler_Register_Args");
_Static_assert(offsetof(struct XLA_FFI_Handler_Register_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct XLA_FFI_Handler_Register_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct XLA_FFI_Handler_Register_Args, name) == 16, "name");
_Static_assert(offsetof(struct XLA_FFI_Handler_Register_Args, platform) == 32, "platform");
_Static_assert(offsetof(struct XLA_FFI_Handler_Register_Args, bundle) == 48, "bundle");
_Static_assert(offsetof(struct XLA_FFI_Handler_Register_Args, traits) == 80, "traits");

struct XLA_FFI_Type_Register_Args {
	size_t struct_size;
	struct XLA_FFI_Extension_Base *extension_start;
	struct XLA_FFI_ByteSpan name;
	struct XLA_FFI_TypeId *type_id;
	const struct XLA_FFI_TypeInfo *type_info;
};
#define XLA_FFI_Type_Register_Args_SIZE 40u
_Static_assert(sizeof(struct XLA_FFI_Type_Register_Args) == 48, "XLA_FFI_Type_Register_Args");
_Static_assert(offsetof(struct XLA_FFI_Type_Register_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct XLA_FFI_Type_Register_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct XLA_FFI_Type_Register_Args, name) == 16, "name");
_Static_assert(offsetof(struct XLA_FFI_Type_Register_Args, type_id) == 32, "type_id");
_Static_assert(offsetof(struct XLA_FFI_Type_Register_Args, type_info) == 40, "type_info");

struct XLA_FFI_ExecutionContext_Get_Args {
	size_t struct_size;
	struct XLA_FFI_Extension_Base *extension_start;
	struct XLA_FFI_ExecutionContext *ctx;
	struct XLA_FFI_TypeId *type_id;
	void *data;
};
#define XLA_FFI_ExecutionContext_Get_Args_SIZE 40u
_Static_assert(sizeof(struct XLA_FFI_ExecutionContext_Get_Args) == 40, "XLA_FFI_ExecutionContext_Get_Args");
_Static_assert(offsetof(struct XLA_FFI_ExecutionContext_Get_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct XLA_FFI_ExecutionContext_Get_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct XLA_FFI_ExecutionContext_Get_Args, ctx) == 16, "ctx");
_Static_assert(offsetof(struct XLA_FFI_ExecutionContext_Get_Args, type_id) == 24, "type_id");
_Static_assert(offsetof(struct XLA_FFI_ExecutionContext_Get_Args, data) == 32, "data");

struct XLA_FFI_State_Set_Args {
	size_t struct_size;
	struct XLA_FFI_Extension_Base *extension_start;
	struct XLA_FFI_ExecutionContext *ctx;
	int stage;
	struct XLA_FFI_TypeId *type_id;
	void *state;
};
#define XLA_FFI_State_Set_Args_SIZE 48u
_Static_assert(sizeof(struct XLA_FFI_State_Set_Args) == 48, "XLA_FFI_State_Set_Args");
_Static_assert(offsetof(struct XLA_FFI_State_Set_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct XLA_FFI_State_Set_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct XLA_FFI_State_Set_Args, ctx) == 16, "ctx");
_Static_assert(offsetof(struct XLA_FFI_State_Set_Args, stage) == 24, "stage");
_Static_assert(offsetof(struct XLA_FFI_State_Set_Args, type_id) == 32, "type_id");
_Static_assert(offsetof(struct XLA_FFI_State_Set_Args, state) == 40, "state");

struct XLA_FFI_State_Get_Args {
	size_t struct_size;
	struct XLA_FFI_Extension_Base *extension_start;
	struct XLA_FFI_ExecutionContext *ctx;
	int stage;
	struct XLA_FFI_TypeId *type_id;
	void *state;
};
#define XLA_FFI_State_Get_Args_SIZE 48u
_Static_assert(sizeof(struct XLA_FFI_State_Get_Args) == 48, "XLA_FFI_State_Get_Args");
_Static_assert(offsetof(struct XLA_FFI_State_Get_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct XLA_FFI_State_Get_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct XLA_FFI_State_Get_Args, ctx) == 16, "ctx");
_Static_assert(offsetof(struct XLA_FFI_State_Get_Args, stage) == 24, "stage");
_Static_assert(offsetof(struct XLA_FFI_State_Get_Args, type_id) == 32, "type_id");
_Static_assert(offsetof(struct XLA_FFI_State_Get_Args, state) == 40, "state");

struct XLA_FFI_Stream_Get_Args {
	size_t struct_size;
	struct XLA_FFI_Extension_Base *extension_start;
	struct XLA_FFI_ExecutionContext *ctx;
	void *stream;
};
#define XLA_FFI_Stream_Get_Args_SIZE 32u
_Static_assert(sizeof(struct XLA_FFI_Stream_Get_Args) == 32, "XLA_FFI_Stream_Get_Args");
_Static_assert(offsetof(struct XLA_FFI_Stream_Get_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct XLA_FFI_Stream_Get_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct XLA_FFI_Stream_Get_Args, ctx) == 16, "ctx");
_Static_assert(offsetof(struct XLA_FFI_Stream_Get_Args, stream) == 24, "stream");

struct XLA_FFI_DeviceMemory_Allocate_Args {
	size_t struct_size;
	struct XLA_FFI_Extension_Base *extension_start;
	struct XLA_FFI_ExecutionContext *ctx;
	size_t size;
	size_t alignment;
	void *data;
};
#define XLA_FFI_DeviceMemory_Allocate_Args_SIZE 48u
_Static_assert(sizeof(struct XLA_FFI_DeviceMemory_Allocate_Args) == 48, "XLA_FFI_DeviceMemory_Allocate_Args");
_Static_assert(offsetof(struct XLA_FFI_DeviceMemory_Allocate_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct XLA_FFI_DeviceMemory_Allocate_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct XLA_FFI_DeviceMemory_Allocate_Args, ctx) == 16, "ctx");
_Static_assert(offsetof(struct XLA_FFI_DeviceMemory_Allocate_Args, size) == 24, "size");
_Static_assert(offsetof(struct XLA_FFI_DeviceMemory_Allocate_Args, alignment) == 32, "alignment");
_Static_assert(offsetof(struct XLA_FFI_DeviceMemory_Allocate_Args, data) == 40, "data");

struct XLA_FFI_DeviceMemory_Free_Args {
	size_t struct_size;
	struct XLA_FFI_Extension_Base *extension_start;
	struct XLA_FFI_ExecutionContext *ctx;
	size_t size;
	void *data;
};
#define XLA_FFI_DeviceMemory_Free_Args_SIZE 40u
_Static_assert(sizeof(struct XLA_FFI_DeviceMemory_Free_Args) == 40, "XLA_FFI_DeviceMemory_Free_Args");
_Static_assert(offsetof(struct XLA_FFI_DeviceMemory_Free_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct XLA_FFI_DeviceMemory_Free_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct XLA_FFI_DeviceMemory_Free_Args, ctx) == 16, "ctx");
_Static_assert(offsetof(struct XLA_FFI_DeviceMemory_Free_Args, size) == 24, "size");
_Static_assert(offsetof(struct XLA_FFI_DeviceMemory_Free_Args, data) == 32, "data");

struct XLA_FFI_ThreadPool_Schedule_Args {
	size_t struct_size;
	struct XLA_FFI_Extension_Base *extension_start;
	struct XLA_FFI_ExecutionContext *ctx;
	void *task;
	void *data;
};
#define XLA_FFI_ThreadPool_Schedule_Args_SIZE 40u
_Static_assert(sizeof(struct XLA_FFI_ThreadPool_Schedule_Args) == 40, "XLA_FFI_ThreadPool_Schedule_Args");
_Static_assert(offsetof(struct XLA_FFI_ThreadPool_Schedule_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct XLA_FFI_ThreadPool_Schedule_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct XLA_FFI_ThreadPool_Schedule_Args, ctx) == 16, "ctx");
_Static_assert(offsetof(struct XLA_FFI_ThreadPool_Schedule_Args, task) == 24, "task");
_Static_assert(offsetof(struct XLA_FFI_ThreadPool_Schedule_Args, data) == 32, "data");

struct XLA_FFI_ThreadPool_NumThreads_Args {
	size_t struct_size;
	struct XLA_FFI_Extension_Base *extension_start;
	struct XLA_FFI_ExecutionContext *ctx;
	int64_t *num_threads;
};
#define XLA_FFI_ThreadPool_NumThreads_Args_SIZE 32u
_Static_assert(sizeof(struct XLA_FFI_ThreadPool_NumThreads_Args) == 32, "XLA_FFI_ThreadPool_NumThreads_Args");
_Static_assert(offsetof(struct XLA_FFI_ThreadPool_NumThreads_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct XLA_FFI_ThreadPool_NumThreads_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct XLA_FFI_ThreadPool_NumThreads_Args, ctx) == 16, "ctx");
_Static_assert(offsetof(struct XLA_FFI_ThreadPool_NumThreads_Args, num_threads) == 24, "num_threads");

struct XLA_FFI_RunId_Get_Args {
	size_t struct_size;
	struct XLA_FFI_Extension_Base *extension_start;
	struct XLA_FFI_ExecutionContext *ctx;
	int64_t run_id;
};
#define XLA_FFI_RunId_Get_Args_SIZE 32u
_Static_assert(sizeof(struct XLA_FFI_RunId_Get_Args) == 32, "XLA_FFI_RunId_Get_Args");
_Static_assert(offsetof(struct XLA_FFI_RunId_Get_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct XLA_FFI_RunId_Get_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct XLA_FFI_RunId_Get_Args, ctx) == 16, "ctx");
_Static_assert(offsetof(struct XLA_FFI_RunId_Get_Args, run_id) == 24, "run_id");

struct XLA_FFI_DeviceOrdinal_Get_Args {
	size_t struct_size;
	struct XLA_FFI_Extension_Base *extension_start;
	struct XLA_FFI_ExecutionContext *ctx;
	int32_t device_ordinal;
};
#define XLA_FFI_DeviceOrdinal_Get_Args_SIZE 28u
_Static_assert(sizeof(struct XLA_FFI_DeviceOrdinal_Get_Args) == 32, "XLA_FFI_DeviceOrdinal_Get_Args");
_Static_assert(offsetof(struct XLA_FFI_DeviceOrdinal_Get_Args, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct XLA_FFI_DeviceOrdinal_Get_Args, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct XLA_FFI_DeviceOrdinal_Get_Args, ctx) == 16, "ctx");
_Static_assert(offsetof(struct XLA_FFI_DeviceOrdinal_Get_Args, device_ordinal) == 24, "device_ordinal");

struct XLA_FFI_Metadata {
	size_t struct_size;
	struct XLA_FFI_Api_Version api_version;
	uint32_t traits;
	struct XLA_FFI_TypeId state_type_id;
};
#define XLA_FFI_Metadata_SIZE 36u
_Static_assert(sizeof(struct XLA_FFI_Metadata) == 48, "XLA_FFI_Metadata");
_Static_assert(offsetof(struct XLA_FFI_Metadata, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct XLA_FFI_Metadata, api_version) == 8, "api_version");
_Static_assert(offsetof(struct XLA_FFI_Metadata, traits) == 32, "traits");
_Static_assert(offsetof(struct XLA_FFI_Metadata, state_type_id) == 40, "state_type_id");

struct XLA_FFI_Metadata_Extension {
	struct XLA_FFI_Extension_Base extension_base;
	struct XLA_FFI_Metadata *metadata;
};
#define XLA_FFI_Metadata_Extension_SIZE 32u
_Static_assert(sizeof(struct XLA_FFI_Metadata_Extension) == 32, "XLA_FFI_Metadata_Extension");
_Static_assert(offsetof(struct XLA_FFI_Metadata_Extension, extension_base) == 0, "extension_base");
_Static_assert(offsetof(struct XLA_FFI_Metadata_Extension, metadata) == 24, "metadata");

struct XLA_FFI_Api {
	size_t struct_size;
	struct XLA_FFI_Extension_Base *extension_start;
	struct XLA_FFI_Api_Version api_version;
	const struct XLA_FFI_InternalApi *internal_api;
	void *XLA_FFI_Error_Create;
	void *XLA_FFI_Error_GetMessage;
	void *XLA_FFI_Error_Destroy;
	void *XLA_FFI_Handler_Register;
	void *XLA_FFI_Stream_Get;
	void *XLA_FFI_Type_Register;
	void *XLA_FFI_ExecutionContext_Get;
	void *XLA_FFI_State_Set;
	void *XLA_FFI_State_Get;
	void *XLA_FFI_DeviceMemory_Allocate;
	void *XLA_FFI_DeviceMemory_Free;
	void *XLA_FFI_ThreadPool_Schedule;
	void *XLA_FFI_ThreadPool_NumThreads;
	void *XLA_FFI_Future_Create;
	void *XLA_FFI_Future_SetAvailable;
	void *XLA_FFI_Future_SetError;
	void *XLA_FFI_RunId_Get;
	void *XLA_FFI_DeviceOrdinal_Get;
};
#define XLA_FFI_Api_SIZE 192u
_Static_assert(sizeof(struct XLA_FFI_Api) == 192, "XLA_FFI_Api");
_Static_assert(offsetof(struct XLA_FFI_Api, struct_size) == 0, "struct_size");
_Static_assert(offsetof(struct XLA_FFI_Api, extension_start) == 8, "extension_start");
_Static_assert(offsetof(struct XLA_FFI_Api, api_version) == 16, "api_version");
_Static_assert(offsetof(struct XLA_FFI_Api, internal_api) == 40, "internal_api");
_Static_assert(offsetof(struct XLA_FFI_Api, XLA_FFI_Error_Create) == 48, "XLA_FFI_Error_Create");
_Static_assert(offsetof(struct XLA_FFI_Api, XLA_FFI_Error_GetMessage) == 56, "XLA_FFI_Error_GetMessage");
_Static_assert(offsetof(struct XLA_FFI_Api, XLA_FFI_Error_Destroy) == 64, "XLA_FFI_Error_Destroy");
_Static_assert(offsetof(struct XLA_FFI_Api, XLA_FFI_Handler_Register) == 72, "XLA_FFI_Handler_Register");
_Static_assert(offsetof(struct XLA_FFI_Api, XLA_FFI_Stream_Get) == 80, "XLA_FFI_Stream_Get");
_Static_assert(offsetof(struct XLA_FFI_Api, XLA_FFI_Type_Register) == 88, "XLA_FFI_Type_Register");
_Static_assert(offsetof(struct XLA_FFI_Api, XLA_FFI_ExecutionContext_Get) == 96, "XLA_FFI_ExecutionContext_Get");
_Static_assert(offsetof(struct XLA_FFI_Api, XLA_FFI_State_Set) == 104, "XLA_FFI_State_Set");
_Static_assert(offsetof(struct XLA_FFI_Api, XLA_FFI_State_Get) == 112, "XLA_FFI_State_Get");
_Static_assert(offsetof(struct XLA_FFI_Api, XLA_FFI_DeviceMemory_Allocate) == 120, "XLA_FFI_DeviceMemory_Allocate");
_Static_assert(offsetof(struct XLA_FFI_Api, XLA_FFI_DeviceMemory_Free) == 128, "XLA_FFI_DeviceMemory_Free");
_Static_assert(offsetof(struct XLA_FFI_Api, XLA_FFI_ThreadPool_Schedule) == 136, "XLA_FFI_ThreadPool_Schedule");
_Static_assert(offsetof(struct XLA_FFI_Api, XLA_FFI_ThreadPool_NumThreads) == 144, "XLA_FFI_ThreadPool_NumThreads");
_Static_assert(offsetof(struct XLA_FFI_Api, XLA_FFI_Future_Create) == 152, "XLA_FFI_Future_Create");
_Static_assert(offsetof(struct XLA_FFI_Api, XLA_FFI_Future_SetAvailable) == 160, "XLA_FFI_Future_SetAvailable");
_Static_assert(offsetof(struct XLA_FFI_Api, XLA_FFI_Future_SetError) == 168, "XLA_FFI_Future_SetError");
_Static_assert(offsetof(struct XLA_FFI_Api, XLA_FFI_RunId_Get) == 176, "XLA_FFI_RunId_Get");
_Static_assert(offsetof(struct XLA_FFI_Api, XLA_FFI_DeviceOrdinal_Get) == 184, "XLA_FFI_DeviceOrdinal_Get");

#endif
