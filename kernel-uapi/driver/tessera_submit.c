/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * SUBMIT: from user descriptors to the ring. A submission waits in its queue until
 * its fences are signalled and the ring has room; run_work, one work item a queue,
 * moves them on in order. It and all that follows to the signal allocate nothing.
 *
 * There is no drm_sched between: the device has its own scheduler, its own per-queue
 * reset and answers every descriptor, so all that is left of one is a list.
 */
#include <linux/dma-fence-chain.h>
#include <linux/overflow.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include <drm/drm_drv.h>
#include <drm/drm_syncobj.h>

#include "tessera_drv.h"

/* First member: the core frees a fence by its own address. */
struct tessera_fence {
	struct dma_fence base;
	spinlock_t lock;
	char name[24];		/* its queue's, which may end before it */
};

static const char *driver_name(struct dma_fence *fence)
{
	return TESSERA_NAME;
}

static const char *timeline_name(struct dma_fence *fence)
{
	return container_of(fence, struct tessera_fence, base)->name;
}

static const struct dma_fence_ops fence_ops = {
	.get_driver_name = driver_name,
	.get_timeline_name = timeline_name,
};

static void drop_deps(struct tessera_job *job)
{
	unsigned int i;

	for (i = 0; i < job->n_deps; i++)
		dma_fence_put(job->deps[i]);
	job->n_deps = 0;
}

/* Of a job that was never queued, or whose fence is signalled. */
static void job_free(struct tessera_job *job)
{
	drop_deps(job);
	kfree(job->deps);
	kfree(job->descs);
	dma_fence_put(job->fence);
	kfree(job);
}

void tessera_job_end(struct tessera_job *job, int error)
{
	if (error)
		dma_fence_set_error(job->fence, error);
	dma_fence_signal(job->fence);
	job_free(job);
}

static void wake(struct dma_fence *fence, struct dma_fence_cb *cb)
{
	struct tessera_queue *q = container_of(cb, struct tessera_job, cb)->queue;

	queue_work(q->tdev->wq, &q->run_work);
}

/*
 * Whether all fences are signalled; if not, run_work is queued when one is. Removing
 * the callback takes the fence's lock, under which wake runs: after it, wake is over
 * and the queue may end.
 */
static bool is_ready(struct tessera_job *job)
{
	while (job->next_dep < job->n_deps) {
		struct dma_fence *fence = job->deps[job->next_dep];

		if (!dma_fence_is_signaled(fence)) {
			if (job->is_armed)
				return false;
			job->is_armed = true;
			if (!dma_fence_add_callback(fence, &job->cb, wake))
				return false;
		}
		if (job->is_armed)
			dma_fence_remove_callback(fence, &job->cb);
		job->is_armed = false;
		/* A point of a timeline does not take over its fence's error. */
		if (dma_fence_chain_contained(fence)->error && !job->error)
			job->error = -ECANCELED;
		job->next_dep++;
	}
	return true;
}

/* Writes the descriptors and rings. Under q.lock; there is room. */
static void push(struct tessera_queue *q, struct tessera_job *job)
{
	u32 i;

	if (q->head == q->tail)
		q->moved = jiffies;
	for (i = 0; i < job->n_descs; i++) {
		struct hw_sqe *sqe = &job->descs[i];

		sqe->tag = q->tail;
		if (i == job->n_descs - 1)
			sqe->flags |= HW_IRQ;
		q->sq[q->tail & (q->n_entries - 1)] = *sqe;
		q->tail++;
	}
	job->n_left = job->n_descs;
	list_move_tail(&job->link, &q->running);
	tessera_write(q->tdev, hw_doorbell(q->hw_id), q->tail);
}

/* One step; false: nothing more to do now. */
static bool run_one(struct tessera_queue *q)
{
	struct tessera_job *job;
	bool is_more = false;

	spin_lock(&q->lock);
	job = list_first_entry_or_null(&q->pending, struct tessera_job, link);
	spin_unlock(&q->lock);
	/* Only this work takes jobs from pending: it stays. */
	if (!job || !is_ready(job))
		return false;
	spin_lock(&q->lock);
	if (q->state != TESSERA_QUEUE_LIVE)
		goto out;
	if (job->error) {
		/* Fences of a queue are signalled in order. */
		if (q->head != q->tail)
			goto out;
		list_del(&job->link);
		tessera_job_end(job, job->error);
		is_more = true;
	} else if (q->n_entries - (q->tail - q->head) >= job->n_descs) {
		push(q, job);
		is_more = true;
	}
out:
	spin_unlock(&q->lock);
	return is_more;
}

void tessera_drain_pending(struct tessera_queue *q)
{
	struct tessera_job *job;

	for (;;) {
		spin_lock(&q->lock);
		job = list_first_entry_or_null(&q->pending, struct tessera_job, link);
		if (job)
			list_del_init(&job->link);
		spin_unlock(&q->lock);
		if (!job)
			return;
		if (job->is_armed)
			dma_fence_remove_callback(job->deps[job->next_dep], &job->cb);
		tessera_job_end(job, -ECANCELED);
	}
}

void tessera_run_work(struct work_struct *work)
{
	struct tessera_queue *q = container_of(work, struct tessera_queue, run_work);
	bool cookie = dma_fence_begin_signalling();
	bool is_dead;
	int idx;

	if (drm_dev_enter(&q->tdev->drm, &idx)) {
		while (run_one(q))
			;
		drm_dev_exit(idx);
	}
	spin_lock(&q->lock);
	is_dead = q->state == TESSERA_QUEUE_DEAD;
	spin_unlock(&q->lock);
	if (is_dead)
		tessera_drain_pending(q);
	dma_fence_end_signalling(cookie);
}

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
		return !(sqe->flags & ~(HW_WAIT | HW_SIGNAL | HW_INLINE));
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

static int copy_deps(struct tessera_job *job, struct drm_file *file,
		     const struct drm_tessera_submit *args)
{
	const struct drm_tessera_sync __user *user = u64_to_user_ptr(args->in_syncs);
	u32 i;
	int ret;

	if (!args->n_in)
		return 0;
	job->deps = kcalloc(args->n_in, sizeof(struct dma_fence *), GFP_KERNEL_ACCOUNT);
	if (!job->deps)
		return -ENOMEM;
	for (i = 0; i < args->n_in; i++) {
		struct drm_tessera_sync sync;

		if (copy_from_user(&sync, user + i, sizeof(sync)))
			return -EFAULT;
		if (sync.zero)
			return -EINVAL;
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
	const struct drm_tessera_sync __user *user = u64_to_user_ptr(args->out_syncs);
	u32 i;

	for (i = 0; i < args->n_out; i++) {
		struct drm_tessera_sync sync;

		if (copy_from_user(&sync, user + i, sizeof(sync)))
			return -EFAULT;
		if (sync.zero)
			return -EINVAL;
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

static struct tessera_job *job_new(struct tessera_queue *q)
{
	struct tessera_job *job = kzalloc(sizeof(*job), GFP_KERNEL_ACCOUNT);
	struct tessera_fence *fence = kzalloc(sizeof(*fence), GFP_KERNEL_ACCOUNT);

	if (!job || !fence) {
		kfree(job);
		kfree(fence);
		return NULL;
	}
	spin_lock_init(&fence->lock);
	memcpy(fence->name, q->name, sizeof(fence->name));
	INIT_LIST_HEAD(&job->link);
	job->queue = q;
	/* Number 0 until it is queued: then job_free may drop it at any time. */
	dma_fence_init(&fence->base, &fence_ops, &fence->lock, q->fence_context, 0);
	job->fence = &fence->base;
	return job;
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

static int submit(struct tessera_queue *q, struct drm_file *file,
		  struct drm_tessera_submit *args)
{
	struct out_sync *outs = kcalloc(args->n_out + 1, sizeof(*outs), GFP_KERNEL);
	struct tessera_job *job = job_new(q);
	int ret = outs && job ? 0 : -ENOMEM;

	if (!ret)
		ret = copy_descs(job, args);
	if (!ret)
		ret = copy_deps(job, file, args);
	if (!ret)
		ret = copy_outs(q->ctx, file, args, outs);
	if (!ret)
		ret = enqueue(q, job, outs, args->n_out, &args->point);
	if (ret && job) {
		dma_fence_signal(job->fence);
		job_free(job);
	}
	free_outs(outs, args->n_out + 1);
	return ret;
}

int tessera_ioctl_submit(struct drm_device *drm, void *data, struct drm_file *file)
{
	struct drm_tessera_submit *args = data;
	struct tessera_queue *q;
	int ret;

	if (args->flags || args->desc_bytes != sizeof(struct hw_sqe) || !args->n_descs ||
	    args->n_descs > TESSERA_SUBMIT_MAX || args->n_in > TESSERA_SYNCS_MAX ||
	    args->n_out > TESSERA_SYNCS_MAX)
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
