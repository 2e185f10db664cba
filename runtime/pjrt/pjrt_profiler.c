/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Profiler extension: sessions that frameworks start and stop around work, and what they
 * collect of each, a plane of XSpace for each device. Without the extension torch_xla 2.9 calls
 * through NULL when a trace is started.
 */
#include <stdlib.h>
#include <string.h>

#include "runtime/pjrt/pjrt_wrap.h"

/* One caller at a time uses a session, as the C API asks. */
struct profiler {
	struct rt_trace *trace;	/* NULL: it does not run */
	void *space;		/* of the session that ended last; owned, NULL: nothing */
	size_t bytes;
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

static void stop_trace(struct profiler *p, struct err *err)
{
	struct rt_trace *trace = p->trace;

	p->trace = NULL;
	if (rt_trace_stop(trace, &p->space, &p->bytes, err))
		p->space = NULL;
}

static struct PJRT_Error *destroy(struct PLUGIN_Profiler_Destroy_Args *args)
{
	struct profiler *p = args->profiler;

	if (p && p->trace)
		stop_trace(p, NULL);
	if (p)
		free(p->space);
	free(p);
	return NULL;
}

static struct PJRT_Error *start(struct PLUGIN_Profiler_Start_Args *args)
{
	struct profiler *p = args->profiler;
	struct err err;

	CHECK(args, PLUGIN_Profiler_Start_Args, profiler);
	if (p->trace)
		return pjrt_error_text(ERR_FAILED_PRECONDITION, "the profiler runs already");
	return rt_trace_start(&p->trace, &err) ? pjrt_error(&err) : NULL;
}

static struct PJRT_Error *stop(struct PLUGIN_Profiler_Stop_Args *args)
{
	struct profiler *p = args->profiler;
	struct err err = { 0 };

	CHECK(args, PLUGIN_Profiler_Stop_Args, profiler);
	if (!p->trace)
		return pjrt_error_text(ERR_FAILED_PRECONDITION, "the profiler was not started");
	free(p->space);
	p->space = NULL;
	p->bytes = 0;
	stop_trace(p, &err);
	return err.code ? pjrt_error(&err) : NULL;
}

/* Newer clients read the profile where it is, the profiler's; older ones call for the size and
 * then with a buffer of that size. */
static struct PJRT_Error *collect(struct PLUGIN_Profiler_CollectData_Args *args)
{
	const struct profiler *p = args->profiler;

	CHECK(args, PLUGIN_Profiler_CollectData_Args, profiler);
	if (!args->buffer)
		args->buffer = p->space;
	else if (p->space)
		memcpy(args->buffer, p->space, p->bytes);
	args->buffer_size_in_bytes = p->space ? p->bytes : 0;
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
