/* SPDX-License-Identifier: Apache-2.0 */
/* Events: waited for, called back, and those that the caller sets itself. */
#include <stdlib.h>

#include "runtime/pjrt/pjrt_wrap.h"

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
