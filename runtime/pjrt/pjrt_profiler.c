/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Profiler extension: sessions that frameworks start and stop around work. The device
 * keeps no record of what it ran when, so that what they collect is empty and a trace holds
 * the host's events. Without the extension torch_xla 2.9 calls through NULL when a trace is
 * started.
 */
#include <stdlib.h>

#include "runtime/pjrt/pjrt_wrap.h"

/* One caller at a time uses a session, as the C API asks. */
struct profiler {
	bool runs;
};

/* XLA's client leaves struct_size of these structs unset: it is not read. */
#define CHECK(args, type, field) do { \
	if (!(args)->field) \
		return pjrt_error_text(ERR_INVALID_ARGUMENT, #type ": `" #field "` is NULL"); \
} while (0)

static void error_destroy(struct PLUGIN_Profiler_Error_Destroy_Args *args)
{
	struct PJRT_Error_Destroy_Args a = { .struct_size = PJRT_Error_Destroy_Args_SIZE,
					     .error = args->error };

	if (a.error)
		pjrt_Error_Destroy(&a);
}

static void error_message(struct PLUGIN_Profiler_Error_Message_Args *args)
{
	struct PJRT_Error_Message_Args a = { .struct_size = PJRT_Error_Message_Args_SIZE,
					     .error = args->error };

	pjrt_Error_Message(&a);
	args->message = a.message;
	args->message_size = a.message_size;
}

static struct PJRT_Error *error_code(struct PLUGIN_Profiler_Error_GetCode_Args *args)
{
	struct PJRT_Error_GetCode_Args a = { .struct_size = PJRT_Error_GetCode_Args_SIZE };

	CHECK(args, PLUGIN_Profiler_Error_GetCode_Args, error);
	a.error = args->error;
	pjrt_Error_GetCode(&a);
	args->code = a.code;
	return NULL;
}

static struct PJRT_Error *create(struct PLUGIN_Profiler_Create_Args *args)
{
	args->profiler = calloc(1, sizeof(struct profiler));
	return args->profiler ? NULL : NO_ROOM();
}

static struct PJRT_Error *destroy(struct PLUGIN_Profiler_Destroy_Args *args)
{
	free(args->profiler);
	return NULL;
}

static struct PJRT_Error *turn(struct profiler *p, bool on)
{
	if (p->runs == on)
		return pjrt_error_text(ERR_FAILED_PRECONDITION, "the profiler %s",
				       on ? "runs already" : "was not started");
	p->runs = on;
	return NULL;
}

static struct PJRT_Error *start(struct PLUGIN_Profiler_Start_Args *args)
{
	CHECK(args, PLUGIN_Profiler_Start_Args, profiler);
	return turn(args->profiler, true);
}

static struct PJRT_Error *stop(struct PLUGIN_Profiler_Stop_Args *args)
{
	CHECK(args, PLUGIN_Profiler_Stop_Args, profiler);
	return turn(args->profiler, false);
}

/* An XSpace without planes has no bytes. */
static struct PJRT_Error *collect(struct PLUGIN_Profiler_CollectData_Args *args)
{
	CHECK(args, PLUGIN_Profiler_CollectData_Args, profiler);
	args->buffer_size_in_bytes = 0;
	return NULL;
}

struct PJRT_Extension_Base *pjrt_profiler_extension(void)
{
	static struct PLUGIN_Profiler_Api calls = {
		.struct_size = PLUGIN_Profiler_Api_SIZE,
		.error_destroy = (void *)error_destroy,
		.error_message = (void *)error_message,
		.error_get_code = (void *)error_code,
		.create = (void *)create,
		.destroy = (void *)destroy,
		.start = (void *)start,
		.stop = (void *)stop,
		.collect_data = (void *)collect,
	};
	static struct PJRT_Profiler_Extension profiler = {
		.base = { .struct_size = PJRT_Profiler_Extension_SIZE,
			  .type = PJRT_Extension_Type_Profiler },
		.profiler_api = &calls,
	};

	return &profiler.base;
}
