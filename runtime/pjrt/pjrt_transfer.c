/* SPDX-License-Identifier: Apache-2.0 */
/* Content that comes later: transfers in pieces, aliases, donations after an event, raw
 * copies to a place that is not known yet, and streams. */
#include <stdlib.h>

#include "runtime/pjrt/pjrt_wrap.h"

/* ---- transfers in pieces ---- */

/* A spec's struct_size and extension_start are not read: XLA's own callers leave them unset
 * in places. */
static struct PJRT_Error *read_specs(
	const struct PJRT_Client_CreateBuffersForAsyncHostToDevice_Args *args,
	struct rt_shape *shapes)
{
	struct PJRT_Error *e = NULL;

	if (args->num_device_layouts && (args->num_device_layouts != args->num_shape_specs ||
					 !args->device_layouts))
		return pjrt_error_text(ERR_INVALID_ARGUMENT, "%zu layouts for %zu buffers",
				       args->num_device_layouts, args->num_shape_specs);
	for (size_t i = 0; !e && i < args->num_shape_specs; i++) {
		const struct PJRT_ShapeSpec *s = &args->shape_specs[i];

		e = pjrt_read_shape(s->element_type, s->dims, s->num_dims, &shapes[i]);
		if (!e && args->num_device_layouts)
			e = pjrt_read_layout(args->device_layouts[i], &shapes[i]);
	}
	return e;
}

struct PJRT_Error *pjrt_Client_CreateBuffersForAsyncHostToDevice(
	struct PJRT_Client_CreateBuffersForAsyncHostToDevice_Args *args)
{
	size_t n = args->num_shape_specs;
	struct PJRT_AsyncHostToDeviceTransferManager *m = calloc(1, sizeof(*m));
	struct rt_shape *shapes = calloc(n ? n : 1, sizeof(*shapes));
	enum rt_memory_kind kind = RT_DEVICE;
	struct PJRT_Error *e = m && shapes ? NULL : NO_ROOM();
	unsigned device = 0;
	struct err err;

	if (!e)
		e = pjrt_find_place(args->client, args->memory, NULL, &device, &kind);
	if (!e && n)
		e = read_specs(args, shapes);
	if (!e && rt_transfer_create(args->client->rt, device, kind, shapes, n, &m->rt, &err))
		e = pjrt_error(&err);
	free(shapes);
	if (e) {
		free(m);
		return e;
	}
	m->client = args->client;
	m->device = &args->client->own[device];
	args->transfer_manager = m;
	return NULL;
}

struct PJRT_Error *pjrt_AsyncHostToDeviceTransferManager_Destroy(
	struct PJRT_AsyncHostToDeviceTransferManager_Destroy_Args *args)
{
	if (args->transfer_manager)
		rt_transfer_destroy(args->transfer_manager->rt);
	free(args->transfer_manager);
	return NULL;
}

struct PJRT_Error *pjrt_AsyncHostToDeviceTransferManager_TransferData(
	struct PJRT_AsyncHostToDeviceTransferManager_TransferData_Args *args)
{
	struct err err;

	if (args->offset < 0 || args->transfer_size < 0 ||
	    (!args->data && args->transfer_size))
		return pjrt_error_text(ERR_INVALID_ARGUMENT, "invalid offset %lld, transfer "
				       "size %lld from %p", (long long)args->offset,
				       (long long)args->transfer_size, args->data);
	if (rt_transfer_data(args->transfer_manager->rt, args->buffer_index,
			     (uint64_t)args->offset, args->data,
			     (uint64_t)args->transfer_size, args->is_last_transfer, &err))
		return pjrt_error(&err);
	return pjrt_give_event(rt_event_done(NULL), &args->done_with_h2d_transfer);
}

struct PJRT_Error *pjrt_AsyncHostToDeviceTransferManager_TransferLiteral(
	struct PJRT_AsyncHostToDeviceTransferManager_TransferLiteral_Args *args)
{
	struct rt_transfer *t = args->transfer_manager->rt;
	const struct rt_shape *want;
	struct rt_shape shape;
	struct PJRT_Error *e = pjrt_read_shape(args->shape_element_type, args->shape_dims,
					       args->shape_num_dims, &shape);
	uint64_t bytes;
	struct err err;

	if (!e)
		e = pjrt_read_layout(args->shape_layout, &shape);
	if (e)
		return e;
	if (rt_transfer_bytes(t, args->buffer_index, &bytes, &err))
		return pjrt_error(&err);
	want = rt_transfer_shape(t, (size_t)args->buffer_index);
	if (shape.elem != want->elem || shape.rank != want->rank ||
	    memcmp(shape.dim, want->dim, shape.rank * sizeof(*shape.dim)) ||
	    memcmp(shape.order, want->order, sizeof(shape.order)) ||
	    (!args->data && bytes))
		return pjrt_error_text(ERR_INVALID_ARGUMENT, "a literal of %s rank %u at %p for "
				       "buffer %d, which is of %s rank %u",
				       elem_text(shape.elem), shape.rank, args->data,
				       args->buffer_index, elem_text(want->elem), want->rank);
	if (rt_transfer_data(t, args->buffer_index, 0, args->data, bytes, true, &err))
		return pjrt_error(&err);
	return pjrt_give_event(rt_event_done(NULL), &args->done_with_h2d_transfer);
}

struct PJRT_Error *pjrt_AsyncHostToDeviceTransferManager_RetrieveBuffer(
	struct PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer_Args *args)
{
	struct rt_buffer *b;
	struct err err;

	if (rt_transfer_buffer(args->transfer_manager->rt, args->buffer_index, &b, &err))
		return pjrt_error(&err);
	return pjrt_give_buffer(args->transfer_manager->client, b, &args->buffer_out);
}

struct PJRT_Error *pjrt_AsyncHostToDeviceTransferManager_Device(
	struct PJRT_AsyncHostToDeviceTransferManager_Device_Args *args)
{
	args->device_out = args->transfer_manager->device;
	return NULL;
}

struct PJRT_Error *pjrt_AsyncHostToDeviceTransferManager_BufferCount(
	struct PJRT_AsyncHostToDeviceTransferManager_BufferCount_Args *args)
{
	args->buffer_count = rt_transfer_count(args->transfer_manager->rt);
	return NULL;
}

struct PJRT_Error *pjrt_AsyncHostToDeviceTransferManager_BufferSize(
	struct PJRT_AsyncHostToDeviceTransferManager_BufferSize_Args *args)
{
	uint64_t bytes;
	struct err err;

	if (rt_transfer_bytes(args->transfer_manager->rt, args->buffer_index, &bytes, &err))
		return pjrt_error(&err);
	args->buffer_size = (size_t)bytes;
	return NULL;
}

struct PJRT_Error *pjrt_AsyncHostToDeviceTransferManager_SetBufferError(
	struct PJRT_AsyncHostToDeviceTransferManager_SetBufferError_Args *args)
{
	struct err err, why = pjrt_read_error(args->error_code, args->error_message,
					      args->error_message_size);

	if (!why.code)
		why.code = ERR_UNKNOWN;
	return rt_transfer_fail(args->transfer_manager->rt, args->buffer_index, &why, &err) ?
	       pjrt_error(&err) : NULL;
}

struct PJRT_Error *pjrt_AsyncHostToDeviceTransferManager_AddMetadata(
	struct PJRT_AsyncHostToDeviceTransferManager_AddMetadata_Args *args)
{
	/* Hints for tracing, of which this device has no use. */
	(void)args;
	return NULL;
}

/* ---- aliases ---- */

struct PJRT_FulfillAliasBufferCallback { struct rt_buffer *alias; };

struct PJRT_Error *pjrt_Client_CreateAliasBuffer(
	struct PJRT_Client_CreateAliasBuffer_Args *args)
{
	struct PJRT_FulfillAliasBufferCallback *cb = malloc(sizeof(*cb));
	enum rt_memory_kind kind = RT_DEVICE;
	struct rt_shape shape;
	struct PJRT_Error *e = pjrt_read_shape(args->shape_element_type, args->shape_dims,
					       args->shape_num_dims, &shape);
	struct rt_buffer *b = NULL;
	unsigned device = 0;
	struct err err;

	if (!e)
		e = pjrt_read_layout(args->shape_layout, &shape);
	if (!e)
		e = pjrt_find_place(args->client, args->memory, NULL, &device, &kind);
	if (!e && !cb)
		e = NO_ROOM();
	if (!e && rt_buffer_alias(args->client->rt, device, kind, &shape, &b, &err))
		e = pjrt_error(&err);
	if (!e) {
		rt_buffer_ref(b);
		cb->alias = b;
		e = pjrt_give_buffer(args->client, b, &args->alias_buffer);
		if (e)
			rt_buffer_unref(b);
	}
	if (e) {
		free(cb);
		return e;
	}
	args->fulfill_alias_buffer_cb = cb;
	return NULL;
}

struct PJRT_Error *pjrt_Client_FulfillAliasBuffer(
	struct PJRT_Client_FulfillAliasBuffer_Args *args)
{
	struct PJRT_FulfillAliasBufferCallback *cb = args->fulfill_alias_buffer_cb;
	struct err err, why = pjrt_read_error(args->status_code, args->error_message,
					      args->error_message_size);
	int code = 0;

	if (!args->buffer && !why.code)
		return pjrt_error_text(ERR_INVALID_ARGUMENT, "PJRT_Client_FulfillAliasBuffer: "
				       "neither `buffer` nor an error");
	if (why.code)
		rt_alias_fail(cb->alias, &why);
	else
		code = rt_alias_fulfill(cb->alias, args->buffer->rt, &err);
	rt_buffer_unref(cb->alias);
	free(cb);
	return code ? pjrt_error(&err) : NULL;
}

/* ---- donation after an event ---- */

static void dependency_ready(struct PJRT_Buffer_DonateWithControlDependency_Callback_Args *args)
{
	struct err why = pjrt_read_error(args->error_code, args->error_message,
					 args->error_message_size);
	struct rt_event *after = args->callback_data;

	rt_event_set(after, why.code ? &why : NULL);
	rt_event_unref(after);
}

struct PJRT_Error *pjrt_Buffer_DonateWithControlDependency(
	struct PJRT_Buffer_DonateWithControlDependency_Args *args)
{
	struct rt_event *after = rt_event_new();
	struct PJRT_Error *e;
	struct rt_buffer *b;
	struct err err, why = { .code = ERR_RESOURCE_EXHAUSTED };

	if (!after)
		return NO_ROOM();
	if (rt_buffer_donate(args->buffer->rt, after, &b, &err)) {
		rt_event_unref(after);
		return pjrt_error(&err);
	}
	e = pjrt_give_buffer(args->buffer->client, b, &args->out_buffer);
	if (e) {
		rt_event_set(after, &why);
		rt_event_unref(after);
		return e;
	}
	args->callback_data = after;
	args->dependency_ready_callback = (void *)dependency_ready;
	return NULL;
}

/* ---- raw copies to a place that is not known yet ---- */

static void place_ready(struct PJRT_Buffer_CopyRawToHostFuture_Callback_Args *args)
{
	struct err why = pjrt_read_error(args->error_code, args->error_message,
					 args->error_message_size);

	if (!why.code && !args->dst)
		err_set(&why, ERR_INVALID_ARGUMENT, "a raw copy to NULL");
	if (why.code)
		rt_fetch_fail(args->callback_data, &why);
	else
		rt_fetch_start(args->callback_data, args->dst);
}

struct PJRT_Error *pjrt_Buffer_CopyRawToHostFuture(
	struct PJRT_Buffer_CopyRawToHostFuture_Args *args)
{
	struct rt_event *done;
	struct PJRT_Error *e;
	struct rt_fetch *f;
	struct err err, why = { .code = ERR_RESOURCE_EXHAUSTED };

	if (args->offset < 0 || args->transfer_size < 0)
		return pjrt_error_text(ERR_INVALID_ARGUMENT, "invalid offset %lld, transfer "
				       "size %lld", (long long)args->offset,
				       (long long)args->transfer_size);
	if (rt_fetch_prepare(args->buffer->rt, (uint64_t)args->offset,
			     (uint64_t)args->transfer_size, &f, &done, &err))
		return pjrt_error(&err);
	e = pjrt_give_event(done, &args->event);
	if (e) {
		rt_fetch_fail(f, &why);
		return e;
	}
	args->callback_data = f;
	args->future_ready_callback = (void *)place_ready;
	return NULL;
}

/* ---- streams ---- */

struct PJRT_Error *pjrt_CopyToDeviceStream_Destroy(
	struct PJRT_CopyToDeviceStream_Destroy_Args *args)
{
	if (args->stream)
		rt_stream_unref(args->stream->rt);
	free(args->stream);
	return NULL;
}

struct PJRT_Error *pjrt_CopyToDeviceStream_AddChunk(
	struct PJRT_CopyToDeviceStream_AddChunk_Args *args)
{
	struct PJRT_Chunk *k = args->chunk;
	void (*deleter)(void *data, void *arg) = (void (*)(void *, void *))k->deleter;
	struct err err;
	int code = k->data || !k->size ?
		   rt_stream_add(args->stream->rt, k->data, k->size, &err) :
		   err_set(&err, ERR_INVALID_ARGUMENT, "a chunk of %zu bytes at NULL", k->size);

	/* Copied or refused: the chunk is ours, and not needed any more. */
	if (deleter)
		deleter(k->data, k->deleter_arg);
	if (code)
		return pjrt_error(&err);
	return pjrt_give_event(rt_event_done(NULL), &args->transfer_complete);
}

struct PJRT_Error *pjrt_CopyToDeviceStream_TotalBytes(
	struct PJRT_CopyToDeviceStream_TotalBytes_Args *args)
{
	args->total_bytes = (int64_t)rt_stream_total(args->stream->rt);
	return NULL;
}

struct PJRT_Error *pjrt_CopyToDeviceStream_GranuleSize(
	struct PJRT_CopyToDeviceStream_GranuleSize_Args *args)
{
	args->granule_size_in_bytes = (int64_t)rt_stream_granule(args->stream->rt);
	return NULL;
}

struct PJRT_Error *pjrt_CopyToDeviceStream_CurrentBytes(
	struct PJRT_CopyToDeviceStream_CurrentBytes_Args *args)
{
	args->current_bytes = (int64_t)rt_stream_current(args->stream->rt);
	return NULL;
}
