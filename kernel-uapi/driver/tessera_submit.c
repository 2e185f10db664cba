/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * SUBMIT: copies what the caller gives, makes a job of it and queues that. All that can
 * fail and all memory comes before; what follows is in tessera_job.c.
 */
#include <linux/dma-fence-chain.h>
#include <linux/overflow.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include <drm/drm_drv.h>
#include <drm/drm_syncobj.h>

#include "tessera_drv.h"

static bool is_allowed(const struct hw_sqe *sqe)
{
	switch (sqe->op) {
	case HW_NOP:
#define CLASS_ADMIN(name)
#define CLASS_ANY(name)
#define CLASS_WORK(name) case HW_##name:
#define DESC(name, number, cls, status, effect) CLASS_##cls(name)
#include "hal/hw/desc.def"
#undef DESC
#undef CLASS_ADMIN
#undef CLASS_ANY
#undef CLASS_WORK
		/* Not WAIT: user space writes the semaphore, and would decide when the fence
		 * comes that others wait for. */
		return !(sqe->flags & ~(HW_SIGNAL | HW_INLINE));
	default:
		return false;
	}
}

static int copy_descs(struct tessera_job *job, const struct drm_tessera_submit *args)
{
	struct hw_sqe *descs;
	u32 i;

	descs = kmalloc_array(args->n_descs, sizeof(*descs), GFP_KERNEL_ACCOUNT);
	if (!descs)
		return -ENOMEM;
	job->descs = descs;
	job->n_descs = args->n_descs;
	if (copy_from_user(descs, u64_to_user_ptr(args->descs),
			   array_size(args->n_descs, sizeof(*descs))))
		return -EFAULT;
	for (i = 0; i < job->n_descs; i++) {
		if (!is_allowed(&descs[i]))
			return -EINVAL;
	}
	return 0;
}

static int copy_sync(struct drm_tessera_sync *sync, u64 user, u32 bytes, u32 i)
{
	int ret = tessera_copy_records(sync, sizeof(*sync), user + (u64)i * bytes, bytes, 1);

	return ret ? ret : sync->zero ? -EINVAL : 0;
}

static int copy_deps(struct tessera_job *job, struct drm_file *file,
		     const struct drm_tessera_submit *args)
{
	u32 i;
	int ret;

	if (!args->n_in)
		return 0;
	job->deps = kcalloc(args->n_in, sizeof(struct dma_fence *), GFP_KERNEL_ACCOUNT);
	if (!job->deps)
		return -ENOMEM;
	for (i = 0; i < args->n_in; i++) {
		struct drm_tessera_sync sync;

		ret = copy_sync(&sync, args->in_syncs, args->sync_bytes, i);
		if (ret)
			return ret;
		ret = drm_syncobj_find_fence(file, sync.handle, sync.point, 0,
					     &job->deps[i]);
		if (ret)
			return ret;
		job->n_deps++;
	}
	return 0;
}

/* A fence of out_syncs, ready to be published. */
struct out_sync {
	struct drm_syncobj *syncobj;
	struct dma_fence_chain *chain;	/* NULL: a binary syncobj */
	u64 point;
};

static void free_outs(struct out_sync *outs, u32 n)
{
	u32 i;

	for (i = 0; outs && i < n; i++) {
		if (outs[i].syncobj)
			drm_syncobj_put(outs[i].syncobj);
		dma_fence_chain_free(outs[i].chain);
	}
	kfree(outs);
}

/* outs[n_out] is the context's timeline. */
static int copy_outs(struct tessera_ctx *ctx, struct drm_file *file,
		     const struct drm_tessera_submit *args, struct out_sync *outs)
{
	u32 i;
	int ret;

	for (i = 0; i < args->n_out; i++) {
		struct drm_tessera_sync sync;

		ret = copy_sync(&sync, args->out_syncs, args->sync_bytes, i);
		if (ret)
			return ret;
		outs[i].syncobj = drm_syncobj_find(file, sync.handle);
		if (!outs[i].syncobj)
			return -ENOENT;
		outs[i].point = sync.point;
		if (sync.point) {
			outs[i].chain = dma_fence_chain_alloc();
			if (!outs[i].chain)
				return -ENOMEM;
		}
	}
	drm_syncobj_get(ctx->timeline);
	outs[i].syncobj = ctx->timeline;
	outs[i].chain = dma_fence_chain_alloc();
	return outs[i].chain ? 0 : -ENOMEM;
}

/*
 * The point of no return: gives the job its number and its point, both in the order
 * of the queue, and publishes its fence. fence is ours until we put it.
 */
static int enqueue(struct tessera_queue *q, struct tessera_job *job,
		   struct out_sync *outs, u32 n_out, u64 *point)
{
	struct tessera_ctx *ctx = q->ctx;
	struct dma_fence *fence = dma_fence_get(job->fence);
	int ret = 0;
	u32 i;

	mutex_lock(&ctx->submit_lock);
	spin_lock(&q->lock);
	if (q->state == TESSERA_QUEUE_LIVE || q->state == TESSERA_QUEUE_FAULTED) {
		fence->seqno = ++q->seqno;
		list_add_tail(&job->link, &q->pending);
	} else {
		ret = -ECANCELED;
	}
	spin_unlock(&q->lock);
	if (!ret) {
		outs[n_out].point = *point = ++ctx->point;
		for (i = 0; i <= n_out; i++) {
			if (outs[i].chain)
				drm_syncobj_add_point(outs[i].syncobj, outs[i].chain,
						      fence, outs[i].point);
			else
				drm_syncobj_replace_fence(outs[i].syncobj, fence);
			outs[i].chain = NULL;
		}
		queue_work(q->tdev->wq, &q->run_work);
	}
	mutex_unlock(&ctx->submit_lock);
	dma_fence_put(fence);
	return ret;
}

/* WAIT: sleeps until there is room. */
static int enter(struct tessera_queue *q, u32 flags, u32 units)
{
	int ret = tessera_job_enter(q, units);

	if (ret != -EAGAIN || !(flags & DRM_TESSERA_SUBMIT_WAIT))
		return ret;
	if (wait_event_interruptible(q->ctx->file->usage->room,
				     (ret = tessera_job_enter(q, units)) != -EAGAIN))
		return -EINTR;
	return ret;
}

static int enqueue_guarded(struct tessera_queue *q, struct tessera_job *job,
			   struct out_sync *outs, u32 n_out, u64 *point)
{
	int ret, idx;

	if (!drm_dev_enter(&q->tdev->drm, &idx))
		return -ENODEV;
	ret = enqueue(q, job, outs, n_out, point);
	drm_dev_exit(idx);
	return ret;
}

/* The device is held for the last step alone: the caller's memory may make copying it
 * take for ever, and unbinding would wait. */
static int submit(struct tessera_queue *q, struct drm_file *file,
		  struct drm_tessera_submit *args)
{
	u32 units = args->n_descs + args->n_in + args->n_out + TESSERA_JOB_UNITS;
	struct tessera_job *job;
	struct out_sync *outs;
	int ret = enter(q, args->flags, units);

	if (ret)
		return ret;
	job = tessera_job_new(q);
	if (job)
		job->units = units;
	else
		tessera_job_leave(q, units);
	outs = kcalloc(args->n_out + 1, sizeof(*outs), GFP_KERNEL_ACCOUNT);
	if (!outs || !job)
		ret = -ENOMEM;
	if (!ret)
		ret = copy_descs(job, args);
	if (!ret)
		ret = copy_deps(job, file, args);
	if (!ret)
		ret = copy_outs(q->ctx, file, args, outs);
	if (!ret)
		ret = enqueue_guarded(q, job, outs, args->n_out, &args->point);
	if (ret && job) {
		dma_fence_signal(job->fence);
		tessera_job_free(job);
	}
	free_outs(outs, args->n_out + 1);
	return ret;
}

int tessera_ioctl_submit(struct drm_device *drm, void *data, struct drm_file *file)
{
	struct drm_tessera_submit *args = data;
	struct tessera_queue *q;
	int ret;

	if (args->flags & ~DRM_TESSERA_SUBMIT_WAIT || args->zero || !args->n_descs ||
	    args->desc_bytes != sizeof(struct hw_sqe) || args->n_descs > TESSERA_SUBMIT_MAX ||
	    args->n_in > TESSERA_SYNCS_MAX || args->n_out > TESSERA_SYNCS_MAX)
		return -EINVAL;
	q = tessera_queue_get(file->driver_priv, args->queue);
	if (!q)
		return -ENOENT;
	if (q->is_user)
		ret = -ENOTTY;
	else if (args->n_descs > q->n_entries)
		ret = -EINVAL;
	else
		ret = submit(q, file, args);
	tessera_queue_put(q);
	return ret;
}
