/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Traces: the device records a context's work in memory of its owner's (DEVICE.md#traces).
 *
 * The ring is part of one mapping, and stays one: UNMAP refuses it as long as the device may
 * write there, and the context's end takes mappings away only once the device has forgotten the
 * context. Nothing of what is written is read here. All that the driver adds is the interrupt,
 * which it chooses and hands on to an eventfd.
 */
#include <linux/eventfd.h>
#include <linux/log2.h>

#include "tessera_drv.h"

void tessera_trace_wake(struct tessera_vector *v)
{
	struct tessera_trace *t;

	lockdep_assert_held(&v->lock);
	list_for_each_entry(t, &v->traces, link)
		eventfd_signal(t->eventfd);
}

/* Nobody is told any more. The eventfd that was, or NULL. Under ctx.lock. */
static struct eventfd_ctx *unlist(struct tessera_trace *t)
{
	struct eventfd_ctx *event = t->eventfd;

	if (!event)
		return NULL;
	mutex_lock(&t->vector->lock);
	list_del_init(&t->link);
	t->eventfd = NULL;
	mutex_unlock(&t->vector->lock);
	return event;
}

static void put(struct eventfd_ctx *event)
{
	if (event)
		eventfd_ctx_put(event);
}

/* 0 if the device may write there. Under ctx.lock. */
static int check_ring(struct tessera_ctx *ctx, u64 va, u64 bytes)
{
	const struct tessera_mapping *m = tessera_ctx_mapping(ctx, va, bytes);

	/* Nor in what UNMAP has begun to take back. */
	if (!m || m->gone)
		return -ENOENT;
	/* What a peer takes back the device must not write to any more. */
	if (tessera_bo_is_hbm(m->bo) || m->bo->is_peer)
		return -EINVAL;
	return m->flags & HW_MAP_WRITE ? 0 : -EACCES;
}

/* Takes event if it succeeds. Under ctx.lock. */
static int trace_start(struct tessera_ctx *ctx, const struct drm_tessera_trace_start *args,
		       struct eventfd_ctx *event)
{
	struct tessera_trace *t = &ctx->trace;
	struct tessera_vector *v = tessera_next_vector(ctx->tdev);
	struct hw_trace hw = {
		.va = args->va, .first = args->first, .n_records = args->n_records,
		.vector = event ? v->index : HW_NO_VECTOR,
	};
	struct tessera_request r = {
		.sqe = { .op = HW_TRACE_START, .id = ctx->hw_id },
		.in = &hw, .in_bytes = sizeof(hw),
	};
	u64 bytes = (u64)args->n_records * sizeof(struct hw_trace_record);
	int ret;

	if (t->is_over)
		return -ENOENT;
	if (tessera_ctx_is_lost(ctx))
		return -ECANCELED;
	if (t->bytes)
		return -EBUSY;
	ret = check_ring(ctx, args->va, bytes);
	if (ret)
		return ret;
	/* Before the device knows: the first interrupt may be there at once. */
	t->va = args->va;
	t->bytes = bytes;
	t->vector = v;
	if (event) {
		mutex_lock(&v->lock);
		t->eventfd = event;
		list_add_tail(&t->link, &v->traces);
		mutex_unlock(&v->lock);
	}
	ret = tessera_request(ctx->tdev, ctx->generation, &r);
	if (ret) {
		unlist(t);
		t->bytes = 0;
	}
	return ret;
}

int tessera_ioctl_trace_start(struct drm_device *drm, void *data, struct drm_file *file)
{
	struct drm_tessera_trace_start *args = data;
	struct eventfd_ctx *event = NULL;
	struct tessera_ctx *ctx;
	int ret;

	/* A smaller ring would raise an interrupt with each few instructions. */
	if (args->zero || args->eventfd < -1 || !args->first || args->first > S64_MAX ||
	    args->n_records < DRM_TESSERA_TRACE_MIN_RECORDS ||
	    args->n_records > DRM_TESSERA_TRACE_MAX_RECORDS ||
	    !is_power_of_2(args->n_records) || args->va % sizeof(struct hw_trace_record))
		return -EINVAL;
	ctx = tessera_ctx_get(file->driver_priv, args->ctx);
	if (!ctx)
		return -ENOENT;
	if (args->eventfd >= 0)
		event = eventfd_ctx_fdget(args->eventfd);
	ret = PTR_ERR_OR_ZERO(event);
	if (!ret) {
		mutex_lock(&ctx->lock);
		ret = trace_start(ctx, args, event);
		mutex_unlock(&ctx->lock);
		if (ret)
			put(event);
	}
	tessera_ctx_put(ctx);
	return ret;
}

/* Under ctx.lock. */
static int trace_stop(struct tessera_ctx *ctx, u64 *last)
{
	int ret;

	if (!ctx->trace.bytes || ctx->trace.is_over)
		return -ENOENT;
	ret = tessera_simple(ctx->tdev, ctx->generation, HW_TRACE_STOP, ctx->hw_id, last);
	/* Whoever knows of no trace that we know of may write on. */
	if (ret && ret != -ECANCELED && ret != -ENODEV && ret != -ETIMEDOUT) {
		tessera_reset_begin(ctx->tdev, "a trace could not be ended");
		ret = -ECANCELED;
	}
	/* If it failed the context is lost, and its mappings stay until its end. */
	put(unlist(&ctx->trace));
	ctx->trace.bytes = 0;
	return ret;
}

int tessera_ioctl_trace_stop(struct drm_device *drm, void *data, struct drm_file *file)
{
	struct drm_tessera_trace_stop *args = data;
	struct tessera_ctx *ctx;
	int ret;

	if (args->zero)
		return -EINVAL;
	ctx = tessera_ctx_get(file->driver_priv, args->ctx);
	if (!ctx)
		return -ENOENT;
	args->last = 0;
	mutex_lock(&ctx->lock);
	ret = trace_stop(ctx, &args->last);
	mutex_unlock(&ctx->lock);
	tessera_ctx_put(ctx);
	return ret;
}

void tessera_trace_end(struct tessera_ctx *ctx)
{
	mutex_lock(&ctx->lock);
	/* The ring's place is kept: until the device has forgotten the context it writes there. */
	put(unlist(&ctx->trace));
	ctx->trace.is_over = true;
	mutex_unlock(&ctx->lock);
}
