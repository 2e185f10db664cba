/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * An open file of the node: a context ends with its queues, and a file with its contexts.
 */
#include <linux/slab.h>

#include <drm/drm_file.h>

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
	tessera_ctx_end(ctx);
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
	xa_destroy(&f->ctxs);
	xa_destroy(&f->queues);
	mutex_destroy(&f->lock);
	tessera_usage_put(f->usage);
	kfree(f);
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
