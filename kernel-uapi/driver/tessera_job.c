/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A submission between its ioctl and its signal. It waits in its queue until its fences are
 * signalled and the ring has room; run_work, one work item a queue, moves them on in
 * order. It and all that follows to the signal allocate nothing.
 *
 * There is no drm_sched between: the device has its own scheduler, its own per-queue
 * reset and answers every descriptor, so all that is left of one is a list.
 */
#include <linux/dma-fence-chain.h>
#include <linux/slab.h>

#include <drm/drm_drv.h>

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

int tessera_job_enter(struct tessera_queue *q, u32 units)
{
	if (atomic_inc_return(&q->n_jobs) <= q->n_entries + TESSERA_QUEUE_WAITING &&
	    !tessera_use(q->ctx->file->usage, TESSERA_USE_PENDING, units))
		return 0;
	atomic_dec(&q->n_jobs);
	return -EAGAIN;
}

void tessera_job_leave(struct tessera_queue *q, u32 units)
{
	struct tessera_usage *u = q->ctx->file->usage;

	atomic_dec(&q->n_jobs);
	tessera_unuse(u, TESSERA_USE_PENDING, units);
	wake_up_interruptible_all(&u->room);
}

struct tessera_job *tessera_job_new(struct tessera_queue *q)
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
	/* Number 0 until it is queued: then tessera_job_free may drop it at any time. */
	dma_fence_init(&fence->base, &fence_ops, &fence->lock, q->fence_context, 0);
	job->fence = &fence->base;
	return job;
}

static void drop_deps(struct tessera_job *job)
{
	unsigned int i;

	for (i = 0; i < job->n_deps; i++)
		dma_fence_put(job->deps[i]);
	job->n_deps = 0;
}

/* Of a job that was never queued, or whose fence is signalled. */
void tessera_job_free(struct tessera_job *job)
{
	drop_deps(job);
	if (job->units)
		tessera_job_leave(job->queue, job->units);
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
	tessera_job_free(job);
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

		sqe->tag = tessera_tag(q->tail);
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
