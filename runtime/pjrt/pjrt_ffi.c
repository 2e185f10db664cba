/* SPDX-License-Identifier: Apache-2.0 */
/* The FFI extension, and the one by which GPU plugins take handlers of all stages: functions of
 * the host, types and user data are registered by these. */
#include <stdlib.h>

#include "runtime/pjrt/pjrt_ffi.h"

#define CHECK(args, type, field) CHECK_FROM(args, type, field, type##_SIZE)
#define CHECK_FROM(args, type, field, least) do { \
	if (!(args) || (args)->struct_size < (least)) \
		return pjrt_error_text(ERR_INVALID_ARGUMENT, #type ": unexpected struct_size"); \
	if (!(args)->field) \
		return pjrt_error_text(ERR_INVALID_ARGUMENT, #type ": `" #field "` is NULL"); \
} while (0)

static struct PJRT_Error *register_handler(struct PJRT_FFI_Register_Handler_Args *args)
{
	const struct XLA_FFI_Handler_Bundle bundle = { .execute = args ? args->handler : NULL };
	struct err err;

	CHECK(args, PJRT_FFI_Register_Handler_Args, target_name);
	return pjrt_ffi_check_platform(args->platform_name, args->platform_name_size, &err) ||
	       pjrt_ffi_register(args->target_name, args->target_name_size, &bundle, &err) ?
	       pjrt_error(&err) : NULL;
}

static struct PJRT_Error *register_bundle(struct PJRT_Gpu_Register_Custom_Call_Args *args)
{
	struct err err;

	CHECK(args, PJRT_Gpu_Register_Custom_Call_Args, function_name);
	if (args->api_version != 1)
		return pjrt_part(PART_UNTYPED_CALL);
	return pjrt_ffi_register(args->function_name, args->function_name_size,
				 &(struct XLA_FFI_Handler_Bundle){
					.instantiate = args->handler_instantiate,
					.prepare = args->handler_prepare,
					.initialize = args->handler_initialize,
					.execute = args->handler_execute,
				 }, &err) ? pjrt_error(&err) : NULL;
}

static struct PJRT_Error *register_type(struct PJRT_FFI_Type_Register_Args *args)
{
	void (*deleter)(void *object) = NULL;
	struct err err;
	int64_t id;

	/* In 0.75 there is no type_info. */
	CHECK_FROM(args, PJRT_FFI_Type_Register_Args, type_name,
		   offsetof(struct PJRT_FFI_Type_Register_Args, type_info));
	if (args->struct_size >= PJRT_FFI_Type_Register_Args_SIZE && args->type_info)
		deleter = (void (*)(void *))args->type_info->deleter;
	id = pjrt_ffi_type(args->type_name, args->type_name_size, args->type_id, deleter, &err);
	if (!id)
		return pjrt_error(&err);
	args->type_id = id;
	return NULL;
}

/* In 0.75 user data has a function more, by which it goes with its context. */
struct user_data_75 { struct PJRT_FFI_UserData_Add_Args args; void (*deleter)(void *data); };

static struct PJRT_Error *add_user_data(struct PJRT_FFI_UserData_Add_Args *args)
{
	struct PJRT_ExecuteContext *c;
	struct pjrt_user_data *d;
	const char *name;

	CHECK(args, PJRT_FFI_UserData_Add_Args, context);
	c = args->context;
	for (d = c->data; d && d->type != args->user_data.type_id; d = d->next)
		;
	if (d) {
		name = pjrt_ffi_type_name(d->type);
		return pjrt_error_text(ERR_ALREADY_EXISTS, "the context has user data of type "
				       "%.100s (number %lld) already", name ? name :
				       "that nobody registered", (long long)d->type);
	}
	d = malloc(sizeof(*d));
	if (!d)
		return NO_ROOM();
	*d = (struct pjrt_user_data){
		.next = c->data, .type = args->user_data.type_id, .data = args->user_data.data,
		.deleter = args->struct_size == sizeof(struct user_data_75) ?
			   ((struct user_data_75 *)args)->deleter : NULL,
	};
	c->data = d;
	return NULL;
}

struct PJRT_Extension_Base *pjrt_ffi_extensions(struct PJRT_Extension_Base *next)
{
	static struct PJRT_Gpu_Custom_Call bundles = {
		.base = { .struct_size = PJRT_Gpu_Custom_Call_SIZE,
			  .type = PJRT_Extension_Type_Gpu_Custom_Call },
		.custom_call = (void *)register_bundle,
	};
	static struct PJRT_FFI_Extension ffi = {
		.base = { .struct_size = PJRT_FFI_Extension_SIZE,
			  .type = PJRT_Extension_Type_FFI, .next = &bundles.base },
		.type_register = (void *)register_type,
		.user_data_add = (void *)add_user_data,
		.register_handler = (void *)register_handler,
	};

	bundles.base.next = next;
	return &ffi.base;
}
