/* SPDX-License-Identifier: Apache-2.0 */
/* Buffers that are there, and copies of them. What comes later is pjrt_transfer.c's. */
#include <stdlib.h>

#include "runtime/pjrt/pjrt_wrap.h"

static struct PJRT_Error *check_host(const struct PJRT_Client_BufferFromHostBuffer_Args *args,
				     const struct rt_shape *shape)
{
	size_t n = args->num_byte_strides;
	int how = args->host_buffer_semantics;

	if (how < PJRT_HostBufferSemantics_kImmutableOnlyDuringCall ||
	    how > PJRT_HostBufferSemantics_kMutableZeroCopy)
		return pjrt_error_text(ERR_INVALID_ARGUMENT, "no host buffer semantics have "
				       "number %d", how);
	if (args->byte_strides && n && n != args->num_dims)
		return pjrt_error_text(ERR_INVALID_ARGUMENT, "%zu strides for %zu dims", n,
				       args->num_dims);
	if (!args->data && rt_shape_bytes(shape))
		return pjrt_error_text(ERR_INVALID_ARGUMENT, "%llu bytes of `data` at NULL",
				       (unsigned long long)rt_shape_bytes(shape));
	return NULL;
}

struct PJRT_Error *pjrt_Client_BufferFromHostBuffer(
	struct PJRT_Client_BufferFromHostBuffer_Args *args)
{
	struct PJRT_Client *c = args->client;
	enum rt_memory_kind kind = RT_DEVICE;
	struct PJRT_Buffer *buffer;
	struct PJRT_Event *event;
	struct rt_shape shape;
	struct PJRT_Error *e;
	struct rt_buffer *b;
	unsigned device = 0;
	struct err err;

	e = pjrt_read_shape(args->type, args->dims, args->num_dims, &shape);
	if (!e)
		e = pjrt_read_layout(args->device_layout, &shape);
	if (!e)
		e = check_host(args, &shape);
	if (!e)
		e = pjrt_find_place(c, args->memory, args->device, &device, &kind);
	if (e)
		return e;
	if (rt_buffer_from_host(c->rt, device, kind, &shape, args->data,
				args->num_byte_strides ? args->byte_strides : NULL, &b, &err))
		return pjrt_error(&err);
	/* The bytes were copied: the caller may have its memory back. */
	buffer = pjrt_buffer(c, b);
	event = pjrt_event(rt_event_done(NULL));
	if (!buffer || !event) {
		if (event)
			rt_event_unref(event->event);
		free(event);
		if (buffer)
			rt_buffer_unref(buffer->rt);
		free(buffer);
		return NO_ROOM();
	}
	args->done_with_host_buffer = event;
	args->buffer = buffer;
	return NULL;
}

struct PJRT_Error *pjrt_Client_CreateUninitializedBuffer(
	struct PJRT_Client_CreateUninitializedBuffer_Args *args)
{
	enum rt_memory_kind kind = RT_DEVICE;
	struct rt_shape shape;
	struct PJRT_Error *e = pjrt_read_shape(args->shape_element_type, args->shape_dims,
					       args->shape_num_dims, &shape);
	struct rt_buffer *b;
	unsigned device = 0;
	struct err err;

	if (!e)
		e = pjrt_read_layout(args->shape_layout, &shape);
	if (!e)
		e = pjrt_find_place(args->client, args->memory, args->device, &device, &kind);
	if (e)
		return e;
	if (rt_buffer_uninitialized(args->client->rt, device, kind, &shape, &b, &err))
		return pjrt_error(&err);
	return pjrt_give_buffer(args->client, b, &args->buffer);
}

struct PJRT_Error *pjrt_Client_CreateErrorBuffer(
	struct PJRT_Client_CreateErrorBuffer_Args *args)
{
	struct err err, why = pjrt_read_error(args->error_code, args->error_message,
					      args->error_message_size);
	enum rt_memory_kind kind = RT_DEVICE;
	struct rt_shape shape;
	struct PJRT_Error *e = pjrt_read_shape(args->shape_element_type, args->shape_dims,
					       args->shape_num_dims, &shape);
	struct rt_buffer *b;
	unsigned device = 0;

	if (!why.code)
		why.code = ERR_UNKNOWN;
	if (!e)
		e = pjrt_read_layout(args->shape_layout, &shape);
	if (!e)
		e = pjrt_find_place(args->client, args->memory, NULL, &device, &kind);
	if (e)
		return e;
	if (rt_buffer_of_error(args->client->rt, device, kind, &shape, &why, &b, &err))
		return pjrt_error(&err);
	return pjrt_give_buffer(args->client, b, &args->buffer);
}

struct deleter {
	void (*fn)(void *pointer, void *arg);
	void *arg;
};

static void call_deleter(void *pointer, void *arg)
{
	struct deleter d = *(struct deleter *)arg;

	free(arg);
	if (d.fn)
		d.fn(pointer, d.arg);
}

struct PJRT_Error *pjrt_Client_CreateViewOfDeviceBuffer(
	struct PJRT_Client_CreateViewOfDeviceBuffer_Args *args)
{
	struct deleter *d = NULL;
	enum rt_memory_kind kind = RT_DEVICE;
	struct rt_shape shape;
	struct PJRT_Error *e = pjrt_read_shape(args->element_type, args->dims, args->num_dims,
					       &shape);
	struct rt_buffer *b;
	unsigned device = 0;
	struct err err;

	if (!e)
		e = pjrt_read_layout(args->layout, &shape);
	if (!e)
		e = pjrt_find_place(args->client, args->memory, args->device, &device, &kind);
	if (!e && args->stream)
		e = pjrt_error_text(ERR_INVALID_ARGUMENT, "PJRT_Client_CreateViewOfDeviceBuffer: "
				    "a stream was named, the device has none");
	if (!e && args->on_delete_callback) {
		d = malloc(sizeof(*d));
		e = d ? NULL : NO_ROOM();
	}
	if (e)
		return e;
	if (d)
		*d = (struct deleter){ NULL, args->on_delete_callback_arg };
	if (rt_buffer_view(args->client->rt, device, kind, &shape, args->device_buffer_ptr,
			   d ? call_deleter : NULL, d, &b, &err)) {
		free(d);
		return pjrt_error(&err);
	}
	e = pjrt_give_buffer(args->client, b, &args->buffer);
	/* Not before: a caller whose call fails has its memory still. */
	if (!e && d)
		d->fn = (void (*)(void *, void *))args->on_delete_callback;
	return e;
}

struct PJRT_Error *pjrt_Client_DmaMap(struct PJRT_Client_DmaMap_Args *args)
{
	struct err err;

	return rt_dma_map(args->client->rt, args->data, args->size, &err) ? pjrt_error(&err) :
									     NULL;
}

struct PJRT_Error *pjrt_Client_DmaUnmap(struct PJRT_Client_DmaUnmap_Args *args)
{
	struct err err;

	return rt_dma_unmap(args->client->rt, args->data, &err) ? pjrt_error(&err) : NULL;
}

struct PJRT_Error *pjrt_Buffer_Destroy(struct PJRT_Buffer_Destroy_Args *args)
{
	if (args->buffer)
		rt_buffer_unref(args->buffer->rt);
	free(args->buffer);
	return NULL;
}

struct PJRT_Error *pjrt_Buffer_ElementType(struct PJRT_Buffer_ElementType_Args *args)
{
	args->type = (int)rt_buffer_shape(args->buffer->rt)->elem;
	return NULL;
}

struct PJRT_Error *pjrt_Buffer_Dimensions(struct PJRT_Buffer_Dimensions_Args *args)
{
	args->dims = rt_buffer_shape(args->buffer->rt)->dim;
	args->num_dims = rt_buffer_shape(args->buffer->rt)->rank;
	return NULL;
}

struct PJRT_Error *pjrt_Buffer_UnpaddedDimensions(
	struct PJRT_Buffer_UnpaddedDimensions_Args *args)
{
	struct err err;

	args->num_dims = rt_buffer_shape(args->buffer->rt)->rank;
	return rt_buffer_unpadded(args->buffer->rt, &args->unpadded_dims, &err) ?
	       pjrt_error(&err) : NULL;
}

struct PJRT_Error *pjrt_Buffer_DynamicDimensionIndices(
	struct PJRT_Buffer_DynamicDimensionIndices_Args *args)
{
	args->dynamic_dim_indices = args->buffer->n_dynamic ? args->buffer->dynamic : NULL;
	args->num_dynamic_dims = args->buffer->n_dynamic;
	return NULL;
}

struct PJRT_Error *pjrt_Buffer_GetMemoryLayout(struct PJRT_Buffer_GetMemoryLayout_Args *args)
{
	args->layout = (struct PJRT_Buffer_MemoryLayout){
		.struct_size = PJRT_Buffer_MemoryLayout_SIZE,
		.tiled = { .struct_size = PJRT_Buffer_MemoryLayout_Tiled_SIZE,
			   .minor_to_major = args->buffer->minor_to_major,
			   .minor_to_major_size = rt_buffer_shape(args->buffer->rt)->rank },
		.type = PJRT_Buffer_MemoryLayout_Type_Tiled };
	return NULL;
}

struct PJRT_Error *pjrt_Buffer_OnDeviceSizeInBytes(
	struct PJRT_Buffer_OnDeviceSizeInBytes_Args *args)
{
	args->on_device_size_in_bytes =
		(size_t)rt_shape_bytes(rt_buffer_shape(args->buffer->rt));
	return NULL;
}

struct PJRT_Error *pjrt_Buffer_Device(struct PJRT_Buffer_Device_Args *args)
{
	args->device = &args->buffer->client->own[rt_buffer_device(args->buffer->rt)];
	return NULL;
}

struct PJRT_Error *pjrt_Buffer_Memory(struct PJRT_Buffer_Memory_Args *args)
{
	const struct rt_buffer *b = args->buffer->rt;

	args->memory = &args->buffer->client->own[rt_buffer_device(b)]
			.memories[rt_buffer_kind(b)];
	return NULL;
}

struct PJRT_Error *pjrt_Buffer_Delete(struct PJRT_Buffer_Delete_Args *args)
{
	rt_buffer_delete(args->buffer->rt);
	return NULL;
}

struct PJRT_Error *pjrt_Buffer_IsDeleted(struct PJRT_Buffer_IsDeleted_Args *args)
{
	args->is_deleted = rt_buffer_is_deleted(args->buffer->rt);
	return NULL;
}

struct PJRT_Error *pjrt_Buffer_IsOnCpu(struct PJRT_Buffer_IsOnCpu_Args *args)
{
	args->is_on_cpu = false;
	return NULL;
}

struct PJRT_Error *pjrt_Buffer_ReadyEvent(struct PJRT_Buffer_ReadyEvent_Args *args)
{
	return pjrt_give_event(rt_buffer_ready(args->buffer->rt), &args->event);
}

/* What counts of an array whose dims have bounds, dense, in the order of dims of `host`. */
static struct PJRT_Error *to_host_unpadded(struct PJRT_Buffer_ToHostBuffer_Args *args,
					   struct rt_shape host)
{
	int64_t stride[IMAGE_MAX_RANK];
	const int64_t *dim;
	uint64_t bytes;
	struct err err;

	if (rt_buffer_unpadded(args->src->rt, &dim, &err))
		return pjrt_error(&err);
	memcpy(host.dim, dim, host.rank * sizeof(*dim));
	bytes = rt_shape_bytes(&host);
	if (!args->dst) {
		args->dst_size = (size_t)bytes;
		args->event = NULL;
		return NULL;
	}
	if (bytes > args->dst_size)
		return pjrt_error_text(ERR_INVALID_ARGUMENT, "`dst_size` must be >= %llu, got "
				       "%zu.", (unsigned long long)bytes, args->dst_size);
	rt_dense_strides(&host, stride);
	if (rt_buffer_to_host_unpadded(args->src->rt, args->dst, stride, &err))
		return pjrt_error(&err);
	return pjrt_give_event(rt_event_done(NULL), &args->event);
}

struct PJRT_Error *pjrt_Buffer_ToHostBuffer(struct PJRT_Buffer_ToHostBuffer_Args *args)
{
	const struct rt_shape *s = rt_buffer_shape(args->src->rt);
	struct rt_shape host = *s;
	uint64_t bytes = rt_shape_bytes(s);
	int64_t stride[IMAGE_MAX_RANK];
	struct PJRT_Error *e = NULL;
	struct rt_event *done;
	struct err err;

	/* No layout: as the array lies on the device. */
	if (args->host_layout)
		e = pjrt_read_layout(args->host_layout, &host);

	if (e)
		return e;
	if (args->src->n_dynamic && (!args->dst || args->dst_size < bytes))
		return to_host_unpadded(args, host);
	if (!args->dst) {
		args->dst_size = (size_t)bytes;
		args->event = NULL;
		return NULL;
	}
	if (args->dst_size < bytes)
		return pjrt_error_text(ERR_INVALID_ARGUMENT, "`dst_size` must be >= %llu, got "
				       "%zu.", (unsigned long long)bytes, args->dst_size);
	rt_dense_strides(&host, stride);
	if (memcmp(host.order, s->order, sizeof(s->order)) ?
	    rt_buffer_to_host_strided(args->src->rt, args->dst, stride, &done, &err) :
	    rt_buffer_to_host(args->src->rt, 0, args->dst, bytes, &done, &err))
		return pjrt_error(&err);
	return pjrt_give_event(done, &args->event);
}

struct PJRT_Error *pjrt_Buffer_CopyRawToHost(struct PJRT_Buffer_CopyRawToHost_Args *args)
{
	struct rt_event *done;
	struct err err;

	if (args->offset < 0 || args->transfer_size < 0 ||
	    (!args->dst && args->transfer_size))
		return pjrt_error_text(ERR_INVALID_ARGUMENT, "invalid offset %lld, transfer "
				       "size %lld to %p", (long long)args->offset,
				       (long long)args->transfer_size, args->dst);
	if (rt_buffer_to_host(args->buffer->rt, (uint64_t)args->offset, args->dst,
			      (uint64_t)args->transfer_size, &done, &err))
		return pjrt_error(&err);
	return pjrt_give_event(done, &args->event);
}

static struct PJRT_Error *copy_to(struct PJRT_Buffer *b, const struct PJRT_Device *d,
				  const struct PJRT_Memory *m, struct PJRT_Buffer **out)
{
	enum rt_memory_kind kind = RT_DEVICE;
	unsigned device = 0;
	struct PJRT_Error *e = pjrt_find_place(b->client, m, d, &device, &kind);
	struct rt_buffer *to;
	struct err err;

	if (e)
		return e;
	if (rt_buffer_copy(b->rt, device, kind, &to, &err))
		return pjrt_error(&err);
	return pjrt_give_buffer(b->client, to, out);
}

struct PJRT_Error *pjrt_Buffer_CopyToDevice(struct PJRT_Buffer_CopyToDevice_Args *args)
{
	return copy_to(args->buffer, args->dst_device, NULL, &args->dst_buffer);
}

struct PJRT_Error *pjrt_Buffer_CopyToMemory(struct PJRT_Buffer_CopyToMemory_Args *args)
{
	return copy_to(args->buffer, NULL, args->dst_memory, &args->dst_buffer);
}

struct PJRT_Error *pjrt_Buffer_Bitcast(struct PJRT_Buffer_Bitcast_Args *args)
{
	struct rt_shape shape;
	struct PJRT_Error *e = pjrt_read_shape(args->element_type, args->dims, args->num_dims,
					       &shape);
	struct rt_buffer *b;
	struct err err;

	if (!e)
		e = pjrt_read_layout(args->device_layout, &shape);
	if (e)
		return e;
	if (rt_buffer_bitcast(args->buffer->rt, &shape, &b, &err))
		return pjrt_error(&err);
	return pjrt_give_buffer(args->buffer->client, b, &args->out_buffer);
}

struct PJRT_Error *pjrt_Buffer_UnsafePointer(struct PJRT_Buffer_UnsafePointer_Args *args)
{
	struct err err;
	uint64_t va;

	if (rt_buffer_address(args->buffer->rt, &va, &err))
		return pjrt_error(&err);
	args->buffer_pointer = (uintptr_t)va;
	return NULL;
}

struct PJRT_Error *pjrt_Buffer_IncreaseExternalReferenceCount(
	struct PJRT_Buffer_IncreaseExternalReferenceCount_Args *args)
{
	rt_buffer_ref_external(args->buffer->rt);
	return NULL;
}

struct PJRT_Error *pjrt_Buffer_DecreaseExternalReferenceCount(
	struct PJRT_Buffer_DecreaseExternalReferenceCount_Args *args)
{
	struct err err;

	return rt_buffer_unref_external(args->buffer->rt, &err) ? pjrt_error(&err) : NULL;
}

struct PJRT_Error *pjrt_Buffer_OpaqueDeviceMemoryDataPointer(
	struct PJRT_Buffer_OpaqueDeviceMemoryDataPointer_Args *args)
{
	struct err err;

	return rt_buffer_pointer(args->buffer->rt, &args->device_memory_ptr, &err) ?
	       pjrt_error(&err) : NULL;
}
