/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * An open file of the node: a context ends with its queues, and a file with its contexts.
 */
#include <linux/slab.h>

#include <drm/drm_file.h>
#include <drm/drm_print.h>

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
		tessera_ctx_stop(ctx);
		n_ctxs++;
	}
	mutex_unlock(&f->lock);
	kref_put(&f->ref, file_free);
	drm_info(&tdev->drm, "client %llu was reset: %u contexts ended\n", client, n_ctxs);
	return 0;
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
