/* SPDX-License-Identifier: Apache-2.0 */
/* GetPjrtApi: the table, errors, plugin attributes, events. */
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "runtime/pjrt/wrap.h"

/* ---- errors ---- */

static struct PJRT_Error out_of_memory;

static void destroy_error(struct PJRT_Error *e)
{
	if (e != &out_of_memory)
		free(e);
}

static void error_message(const struct PJRT_Error *e, const char **text, size_t *n)
{
	*text = e->err.msg;
	*n = strlen(e->err.msg);
}

static int error_code(const struct PJRT_Error *e)
{
	return e->err.code;
}

static void no_payloads(const struct PJRT_Error *e, void *visitor, void *arg)
{
	(void)e;
	(void)visitor;
	(void)arg;
}

static const struct PJRT_Error_FunctionTable error_table = {
	.struct_size = PJRT_Error_FunctionTable_SIZE,
	.instance_size = sizeof(struct PJRT_Error),
	.destroy = (void *)destroy_error, .message = (void *)error_message,
	.get_code = (void *)error_code, .for_each_payload = (void *)no_payloads,
};

static struct PJRT_Error out_of_memory = {
	.vtable = &error_table,
	.err = { .code = ERR_RESOURCE_EXHAUSTED, .msg = "out of host memory" },
};

struct PJRT_Error *pjrt_error(const struct err *err)
{
	struct PJRT_Error *e = malloc(sizeof(*e));

	if (!e)
		return &out_of_memory;
	e->vtable = &error_table;
	e->err = *err;
	return e;
}

struct PJRT_Error *pjrt_error_text(int code, const char *fmt, ...)
{
	struct err err = { .code = code };
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(err.msg, sizeof(err.msg), fmt, ap);
	va_end(ap);
	return pjrt_error(&err);
}

struct PJRT_Error *pjrt_part(enum pjrt_part part)
{
	static const struct { const char *where, *what, *why; } parts[] = {
#define PART(id, where, what, why) [PART_##id] = { where, what, why },
#include "runtime/pjrt/unimplemented.def"
#undef PART
	};

	return pjrt_error_text(ERR_UNIMPLEMENTED, "%s: %s are not implemented (%s)",
			       parts[part].where, parts[part].what, parts[part].why);
}

struct err pjrt_read_error(int code, const char *text, size_t n)
{
	struct err err = { .code = code };

	if (!text)
		n = 0;
	if (n > sizeof(err.msg) - 1)
		n = sizeof(err.msg) - 1;
	if (n)
		memcpy(err.msg, text, n);
	return err;
}

struct PJRT_Error *pjrt_Error_Destroy(struct PJRT_Error_Destroy_Args *args)
{
	destroy_error(args->error);
	return NULL;
}

struct PJRT_Error *pjrt_Error_Message(struct PJRT_Error_Message_Args *args)
{
	error_message(args->error, &args->message, &args->message_size);
	return NULL;
}

struct PJRT_Error *pjrt_Error_GetCode(struct PJRT_Error_GetCode_Args *args)
{
	args->code = args->error->err.code;
	return NULL;
}

struct PJRT_Error *pjrt_Error_ForEachPayload(struct PJRT_Error_ForEachPayload_Args *args)
{
	(void)args;
	return NULL;
}

/* ---- plugin ---- */

struct PJRT_Error *pjrt_Plugin_Initialize(struct PJRT_Plugin_Initialize_Args *args)
{
	(void)args;
	return NULL;
}

struct PJRT_Error *pjrt_Plugin_Attributes(struct PJRT_Plugin_Attributes_Args *args)
{
	static const int64_t current[] = { 1, 17, 0 }, minimum[] = { 1, 10, 0 };
	static const struct PJRT_NamedValue values[] = {
		{ .struct_size = PJRT_NamedValue_SIZE, .name = "xla_version", .name_size = 11,
		  .type = PJRT_NamedValue_kInt64, .int64_value = 2, .value_size = 1 },
		{ .struct_size = PJRT_NamedValue_SIZE, .name = "stablehlo_current_version",
		  .name_size = 25, .type = PJRT_NamedValue_kInt64List,
		  .int64_array_value = current, .value_size = 3 },
		{ .struct_size = PJRT_NamedValue_SIZE, .name = "stablehlo_minimum_version",
		  .name_size = 25, .type = PJRT_NamedValue_kInt64List,
		  .int64_array_value = minimum, .value_size = 3 },
	};

	args->attributes = values;
	args->num_attributes = sizeof(values) / sizeof(*values);
	return NULL;
}

/* ---- events ---- */

struct PJRT_Event *pjrt_event(struct rt_event *e)
{
	struct PJRT_Event *p = e ? malloc(sizeof(*p)) : NULL;

	if (!p) {
		rt_event_unref(e);
		return NULL;
	}
	p->event = e;
	return p;
}

struct PJRT_Error *pjrt_give_event(struct rt_event *e, struct PJRT_Event **out)
{
	struct PJRT_Event *p = pjrt_event(e);

	if (!p)
		return NO_ROOM();
	*out = p;
	return NULL;
}

struct PJRT_Error *pjrt_Event_Destroy(struct PJRT_Event_Destroy_Args *args)
{
	if (args->event)
		rt_event_unref(args->event->event);
	free(args->event);
	return NULL;
}

struct PJRT_Error *pjrt_Event_IsReady(struct PJRT_Event_IsReady_Args *args)
{
	args->is_ready = rt_event_is_ready(args->event->event);
	return NULL;
}

struct PJRT_Error *pjrt_Event_Error(struct PJRT_Event_Error_Args *args)
{
	struct err err;

	if (!rt_event_is_ready(args->event->event) ||
	    !rt_event_error(args->event->event, &err))
		return NULL;
	return pjrt_error(&err);
}

struct PJRT_Error *pjrt_Event_Await(struct PJRT_Event_Await_Args *args)
{
	struct err err;

	return rt_event_wait(args->event->event, &err) ? pjrt_error(&err) : NULL;
}

struct ready {
	void (*callback)(struct PJRT_Error *error, void *arg);
	void *arg;
	struct rt_callback place;
};

static void on_ready(void *arg, const struct err *err)
{
	struct ready r = *(struct ready *)arg;

	free(arg);
	r.callback(err ? pjrt_error(err) : NULL, r.arg);
}

struct PJRT_Error *pjrt_Event_OnReady(struct PJRT_Event_OnReady_Args *args)
{
	struct ready *r = malloc(sizeof(*r));
	struct rt_event *e = args->event->event;

	if (!r)
		return NO_ROOM();
	r->callback = (void (*)(struct PJRT_Error *, void *))args->callback;
	r->arg = args->user_arg;
	/* The callback may destroy the event. */
	rt_event_ref(e);
	rt_event_on_ready(e, &r->place, on_ready, r);
	rt_event_unref(e);
	return NULL;
}

struct PJRT_Error *pjrt_Event_Create(struct PJRT_Event_Create_Args *args)
{
	struct PJRT_Event *e = pjrt_event(rt_event_new());

	if (!e)
		return NO_ROOM();
	args->event = e;
	return NULL;
}

struct PJRT_Error *pjrt_Event_Set(struct PJRT_Event_Set_Args *args)
{
	struct err err = pjrt_read_error(args->error_code, args->error_message,
					 args->error_message_size);

	rt_event_set(args->event->event, err.code ? &err : NULL);
	return NULL;
}

/* ---- the table ---- */

static struct PJRT_Error *refuse_size(const char *name, size_t least, size_t size)
{
	return pjrt_error_text(ERR_INVALID_ARGUMENT, "Unexpected %s size: expected %zu, got %zu. "
			       "The caller was built for an API older than 0.75, or did not "
			       "set struct_size", name, least, size);
}

static struct PJRT_Error *refuse_null(const char *name, const char *field)
{
	return pjrt_error_text(ERR_INVALID_ARGUMENT, "%s: `%s` is NULL", name, field);
}

/* What the table points to: looks at the struct, then calls. */
#define NEED(field) \
	if (!args->field) \
		return is_mute ? NULL : refuse_null(name, #field);
#define OURS(client_rt) \
	if (rt_client_check(client_rt, &err)) \
		return pjrt_error(&err);
#define CHECKED(slot, needs, mute) \
	static struct PJRT_Error *checked_##slot(struct PJRT_##slot##_Args *args) \
	{ \
		static const char name[] = "PJRT_" #slot "_Args"; \
		const bool is_mute = mute; \
		struct err err; \
		(void)err; \
		if (!args) \
			return is_mute ? NULL : refuse_null("PJRT_" #slot, "args"); \
		if (args->struct_size < PJRT_##slot##_Args_OLDEST) \
			return is_mute ? NULL : refuse_size(name, \
				PJRT_##slot##_Args_OLDEST, args->struct_size); \
		needs \
		return pjrt_##slot(args); \
	}
#define SLOT(slot, needs) CHECKED(slot, needs, false)
#define MUTE(slot, needs) CHECKED(slot, needs, true)
#include "runtime/pjrt/slots.def"
#undef SLOT
#undef MUTE

/* Clients look at late slots without asking for the table's size. */
static union {
	struct {
		size_t struct_size;
		struct PJRT_Extension_Base *extension_start;
		struct PJRT_Api_Version version;
	} head;
	void *slots[512];
} api;

static void fill_api(void)
{
	static const struct { unsigned offset; void *fn; } slots[] = {
#define FILL(name, offset) { offset, (void *)checked_##name },
		PJRT_SLOTS(FILL)
#undef FILL
	};

	for (size_t i = 0; i < sizeof(slots) / sizeof(*slots); i++)
		api.slots[slots[i].offset / sizeof(void *)] = slots[i].fn;
	api.head.extension_start = pjrt_extensions();
	api.head.version = (struct PJRT_Api_Version){
		.struct_size = PJRT_Api_Version_SIZE, .minor_version = PJRT_API_MINOR };
	api.head.struct_size = PJRT_API_SIZE;
}

__attribute__((visibility("default"))) const void *GetPjrtApi(void);

const void *GetPjrtApi(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, fill_api);
	return &api;
}
