/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * An open file of the node: contexts are made here; one ends with its queues, and a file with its
 * contexts.
 */
#include <linux/slab.h>

#include <drm/drm_file.h>
#include <drm/drm_print.h>
#include <drm/drm_syncobj.h>

#include "tessera_drv.h"

int tessera_file_open(struct drm_device *drm, struct drm_file *file)
{
	struct tessera_file *f = kzalloc(sizeof(*f), GFP_KERNEL_ACCOUNT);
	struct tessera_usage *u = kzalloc(sizeof(*u), GFP_KERNEL_ACCOUNT);

	if (!f || !u) {
		kfree(f);
		kfree(u);
		return -ENOMEM;
	}
	kref_init(&f->ref);
	kref_init(&u->ref);
	init_waitqueue_head(&u->room);
	f->usage = u;
	f->tdev = to_tessera(drm);
	mutex_init(&f->lock);
	xa_init_flags(&f->ctxs, XA_FLAGS_ALLOC1);
	xa_init_flags(&f->queues, XA_FLAGS_ALLOC1);
	file->driver_priv = f;
	return 0;
}

/* Under f.lock, as its queues' ends are. */
static void end_ctx(struct tessera_file *f, u32 id)
{
	struct tessera_ctx *ctx = xa_erase(&f->ctxs, id);
	struct tessera_queue *q;
	unsigned long i;

	lockdep_assert_held(&f->lock);
	if (!ctx)
		return;
	xa_for_each(&f->queues, i, q) {
		if (q->ctx == ctx)
			tessera_queue_end(f, i);
	}
	tessera_trace_end(ctx);
	/* Before the device gives the context's number to another. */
	tessera_bo_revoke(ctx->wake);
	tessera_ctx_end(ctx);
}

static void file_free(struct kref *ref)
{
	struct tessera_file *f = container_of(ref, struct tessera_file, ref);

	xa_destroy(&f->ctxs);
	xa_destroy(&f->queues);
	mutex_destroy(&f->lock);
	tessera_usage_put(f->usage);
	kfree(f);
}

void tessera_file_close(struct drm_device *drm, struct drm_file *file)
{
	struct tessera_file *f = file->driver_priv;
	struct tessera_ctx *ctx;
	unsigned long i;

	mutex_lock(&f->lock);
	xa_for_each(&f->ctxs, i, ctx)
		end_ctx(f, i);
	mutex_unlock(&f->lock);
	kref_put(&f->ref, file_free);
}

/* Of an open file. A file that is being closed is in the list no more. */
static struct tessera_file *find(struct drm_device *drm, u64 client)
{
	struct tessera_file *f = NULL;
	struct drm_file *file;

	mutex_lock(&drm->filelist_mutex);
	list_for_each_entry(file, &drm->filelist, lhead) {
		if (file->client_id != client)
			continue;
		f = file->driver_priv;
		kref_get(&f->ref);
	}
	mutex_unlock(&drm->filelist_mutex);
	return f;
}

int tessera_file_reset(struct tessera_device *tdev, u64 client)
{
	struct tessera_file *f = find(&tdev->drm, client);
	unsigned int n_ctxs = 0;
	struct tessera_queue *q;
	struct tessera_ctx *ctx;
	unsigned long i;

	if (!f)
		return -ENOENT;
	mutex_lock(&f->lock);
	xa_for_each(&f->queues, i, q)
		tessera_queue_stop(q);
	xa_for_each(&f->ctxs, i, ctx) {
		if (tessera_ctx_is_lost(ctx))
			continue;
		tessera_bo_revoke(ctx->wake);
		tessera_ctx_stop(ctx);
		n_ctxs++;
	}
	mutex_unlock(&f->lock);
	kref_put(&f->ref, file_free);
	drm_info(&tdev->drm, "client %llu was reset: %u contexts ended\n", client, n_ctxs);
	return 0;
}

/* A reset that revokes wake pages finds this one, or is seen here. */
static int make_wake(struct tessera_ctx *ctx, struct drm_file *file,
		     struct drm_tessera_ctx_create *args)
{
	struct tessera_bo *bo = tessera_bo_bar0(ctx->tdev, hw_wake(ctx->hw_id));

	if (IS_ERR(bo))
		return PTR_ERR(bo);
	ctx->wake = bo;
	if (tessera_ctx_is_lost(ctx))
		return -ECANCELED;
	return tessera_bo_share(bo, file, &args->wake_handle, &args->wake_offset);
}

static int ctx_create(struct tessera_device *tdev, struct drm_file *file,
		      struct drm_tessera_ctx_create *args)
{
	struct tessera_file *f = file->driver_priv;
	struct tessera_ctx *ctx = tessera_ctx_new(tdev, f);
	u32 id;
	int ret;

	if (IS_ERR(ctx))
		return PTR_ERR(ctx);
	/* The place first, then the handles, which nobody could take back safely. */
	ret = xa_alloc(&f->ctxs, &id, NULL, xa_limit_31b, GFP_KERNEL_ACCOUNT);
	if (ret)
		goto end;
	if (args->flags & DRM_TESSERA_CTX_WAKE)
		ret = make_wake(ctx, file, args);
	if (!ret)
		ret = drm_syncobj_get_handle(file, ctx->timeline, &args->syncobj);
	if (ret)
		goto erase;
	args->id = id;
	/* From here on another thread may use or end it. */
	xa_store(&f->ctxs, id, ctx, GFP_KERNEL_ACCOUNT);
	return 0;

erase:
	if (args->wake_handle)
		drm_gem_handle_delete(file, args->wake_handle);
	args->wake_handle = 0;
	xa_erase(&f->ctxs, id);
end:
	tessera_bo_revoke(ctx->wake);
	tessera_ctx_end(ctx);
	return ret;
}

int tessera_ioctl_ctx_create(struct drm_device *drm, void *data, struct drm_file *file)
{
	struct drm_tessera_ctx_create *args = data;
	unsigned int tries = 0;
	int ret;

	if (args->flags & ~DRM_TESSERA_CTX_WAKE || args->zero || args->zero2)
		return -EINVAL;
	/* A larger page would show a neighbour's. */
	if (args->flags & DRM_TESSERA_CTX_WAKE && PAGE_SIZE != HW_WAKE_STRIDE)
		return -EOPNOTSUPP;
	/* A reset that comes between is nothing to a context that is not yet. */
	do {
		args->wake_offset = 0;
		args->wake_handle = 0;
		ret = ctx_create(to_tessera(drm), file, args);
	} while (ret == -ECANCELED && ++tries < 3);
	return ret;
}

int tessera_ioctl_ctx_destroy(struct drm_device *drm, void *data, struct drm_file *file)
{
	struct drm_tessera_ctx_destroy *args = data;
	struct tessera_file *f = file->driver_priv;
	int ret = -ENOENT;

	if (args->zero)
		return -EINVAL;
	mutex_lock(&f->lock);
	if (xa_load(&f->ctxs, args->id)) {
		end_ctx(f, args->id);
		ret = 0;
	}
	mutex_unlock(&f->lock);
	return ret;
}
