/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Work queues: rings, completions, faults.
 *
 * A queue that the kernel runs is an ordered list of submissions; completions come
 * in the order of descriptors, so the oldest submission that runs owns the next one.
 * A fault stops the queue on the device: fault_work reads why, resets the queue and
 * lets it go on. Every descriptor that the device took gets a completion, also
 * through a queue reset; only a function reset loses them, and tells (DEAD).
 *
 * A USER queue is the caller's: we look at its completions (which the caller can
 * read but not write) to count engine time and to wake sleepers.
 */
#include <linux/capability.h>
#include <linux/delay.h>
#include <linux/dma-fence.h>
#include <linux/dma-mapping.h>
#include <linux/eventfd.h>
#include <linux/log2.h>
#include <linux/slab.h>

#include <drm/drm_drv.h>
#include <drm/drm_print.h>
#include <drm/drm_vma_manager.h>

#include "tessera_drv.h"

#define ACCUSED_LOOKS 8u

static struct tessera_job *first_running(struct tessera_queue *q)
{
	return list_first_entry_or_null(&q->running, struct tessera_job, link);
}

/* A completion of the oldest submission that runs. Under q.lock. */
static void complete_one(struct tessera_queue *q, const struct hw_cqe *cqe)
{
	struct tessera_job *job = first_running(q);

	atomic64_add(cqe->value, &q->ctx->file->busy_ns[q->cls]);
	if (!job || cqe->tag != tessera_tag(q->head - 1)) {
		tessera_reset_begin(q->tdev, "a completion that nobody waits for");
		return;
	}
	if (cqe->status && !job->error)
		job->error = tessera_status_errno(cqe->status);
	if (cqe->status >= HW_ST_FAULTS && q->state == TESSERA_QUEUE_LIVE) {
		q->state = TESSERA_QUEUE_FAULTED;
		q->fault_status = cqe->status;
		q->fault_record = cqe->detail;
		queue_work(q->tdev->wq, &q->fault_work);
	}
	if (!--job->n_left) {
		list_del(&job->link);
		tessera_job_end(job, job->error);
	}
}

/* The next completion of a queue that the kernel runs, or NULL. Under q.lock. */
static struct hw_cqe *next_completion(struct tessera_queue *q)
{
	struct hw_cqe *cqe = &q->cq[q->head & (q->n_entries - 1)];
	u16 phase = (q->head / q->n_entries + 1) & 1;

	lockdep_assert_held(&q->lock);
	if (q->state == TESSERA_QUEUE_DEAD || q->head == q->tail ||
	    (READ_ONCE(cqe->phase) & 1) != phase)
		return NULL;
	dma_rmb();
	return cqe;
}

static void reap_kernel(struct tessera_queue *q)
{
	struct hw_cqe *cqe;
	bool any = false;

	while ((cqe = next_completion(q))) {
		struct hw_cqe copy = *cqe;

		q->head++;
		q->moved = jiffies;
		complete_one(q, &copy);
		any = true;
	}
	if (any)
		queue_work(q->tdev->wq, &q->run_work);
}

/*
 * Counts completions since the last look by their sq_head, which is right however
 * far the caller has come; entries that were overwritten meanwhile cannot be counted,
 * so engine time is a lower bound. Under q.lock.
 */
static bool look_user(struct tessera_queue *q)
{
	u64 now = ktime_get_ns(), busy = 0;
	u32 newest = q->head, i;

	lockdep_assert_held(&q->lock);
	if (q->state == TESSERA_QUEUE_DEAD)
		return false;
	for (i = 0; i < q->n_entries; i++) {
		const struct hw_cqe *cqe = &q->cq[i];
		u32 head = READ_ONCE(cqe->sq_head);

		if ((s32)(head - q->head) <= 0)
			continue;
		busy += READ_ONCE(cqe->value);
		if ((s32)(head - newest) > 0)
			newest = head;
	}
	if (newest == q->head)
		return false;
	atomic64_add(min(busy, now - q->looked_ns), &q->ctx->file->busy_ns[q->cls]);
	q->looked_ns = now;
	q->head = newest;
	q->moved = jiffies;
	return true;
}

void tessera_queue_reap(struct tessera_queue *q)
{
	if (q->is_user) {
		/* Looking at the whole ring at each interrupt would cost too much. */
		if (q->eventfd)
			eventfd_signal(q->eventfd);
		return;
	}
	spin_lock(&q->lock);
	reap_kernel(q);
	spin_unlock(&q->lock);
}

void tessera_queue_look(struct tessera_queue *q)
{
	if (!q->is_user)
		return;
	spin_lock(&q->lock);
	look_user(q);
	spin_unlock(&q->lock);
}

/* The tick: what an interrupt should have told, and what does not move at all. */
void tessera_queue_check(struct tessera_queue *q)
{
	struct tessera_device *tdev = q->tdev;
	bool any = false;

	spin_lock(&q->lock);
	if (q->is_user) {
		any = look_user(q);
	} else if (next_completion(q)) {
		atomic64_inc(&tdev->lost_interrupts);
		reap_kernel(q);
	}
	if (!q->is_user && tessera_hang_ms && q->head != q->tail &&
	    q->state == TESSERA_QUEUE_LIVE &&
	    time_after(jiffies, q->moved + msecs_to_jiffies(tessera_hang_ms))) {
		q->is_hung = true;
		queue_work(q->tdev->wq, &q->fault_work);
	}
	spin_unlock(&q->lock);
	if (any && q->eventfd)
		eventfd_signal(q->eventfd);
}

/* How far it is, by what there is to see now. */
static u32 head_now(struct tessera_queue *q)
{
	bool any = false;
	u32 head;

	spin_lock(&q->lock);
	if (q->is_user)
		any = look_user(q);
	else
		reap_kernel(q);
	head = q->head;
	spin_unlock(&q->lock);
	if (any && q->eventfd)
		eventfd_signal(q->eventfd);
	return head;
}

/*
 * q has work and has not moved for hang_ms: which queue is to be reset for it? By what the
 * device says: the one that has run one descriptor for so long, or q itself if what keeps
 * it is its own. 0: none, it is its turn soon.
 */
static unsigned int find_culprit(struct tessera_queue *q)
{
	struct tessera_device *tdev = q->tdev;
	const struct hw_queue_state *mine = NULL, *runs = NULL;
	unsigned int n = 0, i, id = 0;

	mutex_lock(&tdev->fault_lock);
	if (tessera_queues_read(tdev, &n))
		goto out;	/* a reset ends it anyhow */
	for (i = 0; i < n; i++) {
		const struct hw_queue_state *s = &tdev->queue_states[i];

		if (s->queue == q->hw_id)
			mine = s;
		if (s->is == HW_QUEUE_RUNNING && s->cls == q->cls)
			runs = s;
	}
	if (!mine || (mine->is != HW_QUEUE_READY && mine->is != HW_QUEUE_RUNNING))
		id = q->hw_id;
	else if (runs && runs->run_ns >= (u64)tessera_hang_ms * NSEC_PER_MSEC)
		id = runs->queue;
	else if (!runs && ++q->n_idle_looks == 3)	/* once it may be between two */
		id = q->hw_id;
out:
	mutex_unlock(&tdev->fault_lock);
	return id;
}

/* Whether it runs now, and has run one descriptor for hang_ms. */
static bool keeps_engine(struct tessera_queue *q)
{
	struct tessera_device *tdev = q->tdev;
	unsigned int n = 0, i;
	bool ret = false;

	mutex_lock(&tdev->fault_lock);
	if (!tessera_queues_read(tdev, &n)) {
		for (i = 0; i < n; i++) {
			const struct hw_queue_state *s = &tdev->queue_states[i];

			if (s->queue == q->hw_id)
				ret = s->is == HW_QUEUE_RUNNING &&
				      s->run_ns >= (u64)tessera_hang_ms * NSEC_PER_MSEC;
		}
	}
	mutex_unlock(&tdev->fault_lock);
	return ret;
}

static void accuse(struct tessera_device *tdev, unsigned int hw_id)
{
	struct tessera_queue *q;
	unsigned int i;

	for (i = 0; i < TESSERA_VECTORS; i++) {
		struct tessera_vector *v = &tdev->vectors[i];

		mutex_lock(&v->lock);
		list_for_each_entry(q, &v->queues, vector_link) {
			if (q->hw_id != hw_id)
				continue;
			spin_lock(&q->lock);
			q->is_accused = q->state != TESSERA_QUEUE_DEAD;
			spin_unlock(&q->lock);
			/* Does nothing if its end has begun. */
			queue_work(tdev->wq, &q->fault_work);
		}
		mutex_unlock(&v->lock);
	}
}

/* Condemns q, or accuses another, if it is the fault of that that q does not move. */
static void judge(struct tessera_queue *q)
{
	u32 head = head_now(q);
	unsigned int id = find_culprit(q);
	bool is_it;

	spin_lock(&q->lock);
	reap_kernel(q);
	/* What the device said is of before a completion that has come since. */
	if (q->head != head)
		id = 0;
	is_it = id == q->hw_id && q->head != q->tail && q->state == TESSERA_QUEUE_LIVE;
	q->is_condemned |= is_it;
	q->moved = jiffies;
	if (is_it)
		q->n_idle_looks = 0;
	spin_unlock(&q->lock);
	if (id && id != q->hw_id)
		accuse(q->tdev, id);
}

/* Another has seen q keep the engine, and by now its number or its work may be others. */
static void judge_accused(struct tessera_queue *q)
{
	u32 head = head_now(q);
	unsigned int looks = 0;
	bool is_it;

	/* It may be another's turn. */
	while (!(is_it = keeps_engine(q)) && ++looks < ACCUSED_LOOKS)
		msleep(2);
	is_it &= head_now(q) == head;
	spin_lock(&q->lock);
	q->is_condemned |= is_it && q->state != TESSERA_QUEUE_DEAD;
	spin_unlock(&q->lock);
}

static void note_hang(struct tessera_queue *q)
{
	drm_warn(&q->tdev->drm, "queue %u (%s) has kept %s for %u ms: resetting it\n",
		 q->hw_id, q->name, q->is_user ? "an engine" : "an engine or itself",
		 tessera_hang_ms);
	tessera_dump(q->tdev, "a queue does not move", q);
	spin_lock(&q->ctx->error_lock);
	q->ctx->error.n_hangs++;
	spin_unlock(&q->ctx->error_lock);
}

/* The device's record of a fault, kept as the context's newest error. */
static void note_fault(struct tessera_queue *q, u64 record, u16 status)
{
	struct tessera_device *tdev = q->tdev;
	struct tessera_ctx *ctx = q->ctx;
	unsigned int n, i;

	spin_lock(&ctx->error_lock);
	ctx->error.n_faults++;
	ctx->error.last_status = status;
	ctx->error.last_record = record;
	ctx->error.last_queue = q->hw_id;
	spin_unlock(&ctx->error_lock);
	mutex_lock(&tdev->fault_lock);
	if (!tessera_faults_read(tdev, &n)) {
		for (i = 0; i < n && tdev->faults[i].number != record; i++)
			;
		if (i < n)
			drm_dbg(&tdev->drm, "queue %u (%s): %s at pc 0x%llx va 0x%llx: %s\n",
				q->hw_id, q->name, tessera_status_name(status),
				tdev->faults[i].pc, tdev->faults[i].va,
				tessera_status_text(status));
	}
	mutex_unlock(&tdev->fault_lock);
}

static void fault_work(struct work_struct *work)
{
	struct tessera_queue *q = container_of(work, struct tessera_queue, fault_work);
	bool cookie = dma_fence_begin_signalling();
	struct tessera_device *tdev = q->tdev;
	bool is_hung, is_accused, is_condemned, is_faulted;
	u64 record;
	u16 status;
	int ret;

	spin_lock(&q->lock);
	is_hung = q->is_hung && q->state == TESSERA_QUEUE_LIVE;
	q->is_hung = false;
	is_accused = q->is_accused;
	q->is_accused = false;
	spin_unlock(&q->lock);
	if (is_hung)
		judge(q);
	if (is_accused)
		judge_accused(q);
	spin_lock(&q->lock);
	status = q->fault_status;
	record = q->fault_record;
	q->fault_status = 0;
	is_condemned = q->is_condemned;
	q->is_condemned = false;
	if (is_condemned && !q->is_user && q->state == TESSERA_QUEUE_LIVE) {
		q->state = TESSERA_QUEUE_FAULTED;
		/* Whatever the device says of it when it drops it. */
		if (first_running(q))
			first_running(q)->error = -ETIME;
	}
	is_faulted = q->state == TESSERA_QUEUE_FAULTED;
	spin_unlock(&q->lock);
	if (!is_condemned && !is_faulted)
		goto out;
	if (is_condemned)
		note_hang(q);
	if (status)
		note_fault(q, record, status);
	ret = tessera_simple(tdev, q->ctx->generation, HW_QUEUE_RESET, q->hw_id, NULL);
	atomic64_inc(&tdev->queue_resets);
	spin_lock(&q->lock);
	if (!q->is_user)
		reap_kernel(q);
	q->moved = jiffies;
	if (!ret && q->state == TESSERA_QUEUE_FAULTED)
		q->state = TESSERA_QUEUE_LIVE;
	spin_unlock(&q->lock);
	/* If that failed, a function reset ends the queue. */
	if (ret && ret != -ECANCELED && ret != -ENODEV && ret != -ETIMEDOUT)
		tessera_reset_begin(tdev, "a queue could not be reset");
out:
	if (!q->is_user)
		queue_work(tdev->wq, &q->run_work);
	dma_fence_end_signalling(cookie);
}

void tessera_queue_lose(struct tessera_queue *q)
{
	struct tessera_job *job;

	spin_lock(&q->lock);
	if (!q->is_user)
		reap_kernel(q);
	q->state = TESSERA_QUEUE_DEAD;
	while ((job = first_running(q))) {
		list_del(&job->link);
		tessera_job_end(job, job->error ? job->error : -ENODEV);
	}
	spin_unlock(&q->lock);
	/* What has not begun waits for other fences; run_work takes it off them. */
	queue_work(q->tdev->wq, &q->run_work);
	if (q->eventfd)
		eventfd_signal(q->eventfd);
}

static void queue_free(struct kref *ref)
{
	struct tessera_queue *q = container_of(ref, struct tessera_queue, ref);

	tessera_bo_put(q->sq_bo);
	tessera_bo_put(q->cq_bo);
	tessera_bo_put(q->doorbell);
	if (q->eventfd)
		eventfd_ctx_put(q->eventfd);
	if (q->ctx)
		tessera_ctx_put(q->ctx);
	kfree(q);
}

void tessera_queue_put(struct tessera_queue *q)
{
	kref_put(&q->ref, queue_free);
}

struct tessera_queue *tessera_queue_get(struct tessera_file *f, u32 id)
{
	struct tessera_queue *q;

	xa_lock(&f->queues);
	q = xa_load(&f->queues, id);
	if (q)
		kref_get(&q->ref);
	xa_unlock(&f->queues);
	return q;
}

/* Ends the queue on the device, then every submission. */
static void queue_stop(struct tessera_queue *q)
{
	struct tessera_job *job;

	spin_lock(&q->lock);
	if (q->state != TESSERA_QUEUE_DEAD)
		q->state = TESSERA_QUEUE_ENDING;
	spin_unlock(&q->lock);
	/* Nothing names hw_id after it was given back: it may be another's then. So its owner
	 * loses the doorbell before. */
	disable_work_sync(&q->fault_work);
	tessera_bo_revoke(q->doorbell);
	if (q->hw_id)
		tessera_make_end(q->tdev, q->ctx->generation, HW_QUEUE_DESTROY, q->hw_id);
	if (q->is_listed) {
		mutex_lock(&q->vector->lock);
		list_del(&q->vector_link);
		mutex_unlock(&q->vector->lock);
	}
	spin_lock(&q->lock);
	if (!q->is_user)
		reap_kernel(q);
	else
		look_user(q);
	q->state = TESSERA_QUEUE_DEAD;
	while ((job = first_running(q))) {
		list_del(&job->link);
		tessera_job_end(job, job->error ? job->error : -ECANCELED);
	}
	spin_unlock(&q->lock);
	disable_work_sync(&q->run_work);
	tessera_drain_pending(q);
	q->is_stopped = true;
}

void tessera_queue_stop(struct tessera_queue *q)
{
	lockdep_assert_held(&q->ctx->file->lock);
	if (q->is_stopped)
		return;
	queue_stop(q);
	/* Whoever waits for completions asks what became of the context. */
	if (q->eventfd)
		eventfd_signal(q->eventfd);
}

static void queue_end(struct tessera_queue *q)
{
	if (!q->is_stopped)
		queue_stop(q);
	tessera_unuse(q->ctx->file->usage, TESSERA_USE_QUEUES, 1);
	tessera_queue_put(q);
}

void tessera_queue_end(struct tessera_file *f, u32 id)
{
	struct tessera_queue *q = xa_erase(&f->queues, id);

	lockdep_assert_held(&f->lock);
	if (q)
		queue_end(q);
}

static int rings_create(struct tessera_queue *q)
{
	struct tessera_device *tdev = q->tdev;
	struct tessera_bo *bo;

	bo = tessera_bo_ring(tdev, PAGE_ALIGN(q->n_entries * sizeof(struct hw_sqe)));
	if (IS_ERR(bo))
		return PTR_ERR(bo);
	q->sq_bo = bo;
	q->sq = bo->cpu;
	bo = tessera_bo_ring(tdev, PAGE_ALIGN(q->n_entries * sizeof(struct hw_cqe)));
	if (IS_ERR(bo))
		return PTR_ERR(bo);
	bo->is_read_only = true;
	q->cq_bo = bo;
	q->cq = bo->cpu;
	return 0;
}

static struct tessera_queue *queue_new(struct tessera_ctx *ctx,
				       const struct drm_tessera_queue_create *args)
{
	struct tessera_device *tdev = ctx->tdev;
	struct tessera_queue *q = kzalloc(sizeof(*q), GFP_KERNEL_ACCOUNT);

	if (!q)
		return NULL;
	kref_init(&q->ref);
	spin_lock_init(&q->lock);
	INIT_LIST_HEAD(&q->pending);
	INIT_LIST_HEAD(&q->running);
	INIT_WORK(&q->run_work, tessera_run_work);
	INIT_WORK(&q->fault_work, fault_work);
	q->tdev = tdev;
	kref_get(&ctx->ref);
	q->ctx = ctx;
	q->n_entries = args->n_entries;
	q->limit_ns = args->limit_ns;
	q->cls = args->cls;
	q->priority = args->priority;
	q->is_user = args->flags & DRM_TESSERA_QUEUE_USER;
	q->is_uncapped = capable(CAP_SYS_NICE);
	q->moved = jiffies;
	q->looked_ns = ktime_get_ns();
	q->state = TESSERA_QUEUE_DEAD;	/* until the device has it */
	q->fence_context = dma_fence_context_alloc(1);
	q->vector = tessera_next_vector(tdev);
	snprintf(q->name, sizeof(q->name), "%s/%u", q->cls == HW_CLASS_DMA ? "dma" :
		 "compute", ctx->hw_id);
	return q;
}

/* Under ctx.lock, which keeps hw_id. */
static int queue_start(struct tessera_queue *q)
{
	struct hw_queue hw = {
		.sq_iova = q->sq_bo->iova, .cq_iova = q->cq_bo->iova,
		.n_entries = q->n_entries, .ctx = q->ctx->hw_id, .cls = q->cls,
		.priority = q->priority, .vector = q->vector->index,
		.limit_ns = q->limit_ns,
		.flags = q->is_uncapped ? HW_QUEUE_UNCAPPED : 0,
	};
	struct tessera_request r = {
		.sqe = { .op = HW_QUEUE_CREATE }, .in = &hw, .in_bytes = sizeof(hw),
	};
	int ret = tessera_request(q->tdev, q->ctx->generation, &r);

	if (ret)
		return ret;
	q->hw_id = r.value;
	q->state = TESSERA_QUEUE_LIVE;
	return 0;
}

/* A reset that revokes doorbells finds this one, or is seen here. */
static int make_doorbell(struct tessera_queue *q)
{
	struct tessera_bo *bo = tessera_bo_bar0(q->tdev, hw_doorbell(q->hw_id));

	if (IS_ERR(bo))
		return PTR_ERR(bo);
	q->doorbell = bo;
	return tessera_ctx_is_lost(q->ctx) ? -ECANCELED : 0;
}

static int share_all(struct tessera_queue *q, struct drm_file *file,
		     struct drm_tessera_queue_create *args)
{
	int ret;

	ret = tessera_bo_share(q->sq_bo, file, &args->sq_handle, &args->sq_offset);
	if (!ret)
		ret = tessera_bo_share(q->cq_bo, file, &args->cq_handle, &args->cq_offset);
	if (!ret)
		ret = tessera_bo_share(q->doorbell, file, &args->doorbell_handle,
				       &args->doorbell_offset);
	return ret;
}

static void unshare(struct drm_file *file, const struct drm_tessera_queue_create *args)
{
	if (args->sq_handle)
		drm_gem_handle_delete(file, args->sq_handle);
	if (args->cq_handle)
		drm_gem_handle_delete(file, args->cq_handle);
	if (args->doorbell_handle)
		drm_gem_handle_delete(file, args->doorbell_handle);
}

static int queue_create(struct tessera_ctx *ctx, struct drm_tessera_queue_create *args,
			struct tessera_queue **out)
{
	struct tessera_usage *usage = ctx->file->usage;
	int ret = tessera_use(usage, TESSERA_USE_QUEUES, 1);
	struct tessera_queue *q;

	if (ret)
		return ret;
	q = queue_new(ctx, args);
	if (!q) {
		tessera_unuse(usage, TESSERA_USE_QUEUES, 1);
		return -ENOMEM;
	}
	*out = q;
	if (args->eventfd >= 0) {
		q->eventfd = eventfd_ctx_fdget(args->eventfd);
		if (IS_ERR(q->eventfd)) {
			ret = PTR_ERR(q->eventfd);
			q->eventfd = NULL;
			return ret;
		}
	}
	ret = rings_create(q);
	if (ret)
		return ret;
	mutex_lock(&ctx->lock);
	ret = queue_start(q);
	mutex_unlock(&ctx->lock);
	if (ret)
		return ret;
	mutex_lock(&q->vector->lock);
	list_add_tail(&q->vector_link, &q->vector->queues);
	q->is_listed = true;
	mutex_unlock(&q->vector->lock);
	if (q->is_user)
		ret = make_doorbell(q);
	if (ret)
		return ret;
	/* A function reset that came before the queue was in the list. */
	return tessera_ctx_is_lost(ctx) ? -ECANCELED : 0;
}

static int check_args(const struct drm_tessera_queue_create *args)
{
	if (args->zero || args->zero2 || args->flags & ~DRM_TESSERA_QUEUE_USER ||
	    (args->cls != HW_CLASS_COMPUTE && args->cls != HW_CLASS_DMA) ||
	    args->priority > 3 || args->n_entries < 2 ||
	    args->n_entries > TESSERA_RING_MAX || !is_power_of_2(args->n_entries))
		return -EINVAL;
	if (args->eventfd < -1 ||
	    (args->eventfd >= 0 && !(args->flags & DRM_TESSERA_QUEUE_USER)))
		return -EINVAL;
	/* What is above normal goes before all that others have queued. */
	if (args->priority > 1 && !capable(CAP_SYS_NICE))
		return -EACCES;
	/* A larger page would show a neighbour's doorbell. */
	if (args->flags & DRM_TESSERA_QUEUE_USER && PAGE_SIZE != HW_DOORBELL_STRIDE)
		return -EOPNOTSUPP;
	return 0;
}

int tessera_ioctl_queue_create(struct drm_device *drm, void *data, struct drm_file *file)
{
	struct drm_tessera_queue_create *args = data;
	struct tessera_file *f = file->driver_priv;
	struct tessera_queue *q = NULL;
	struct tessera_ctx *ctx;
	u32 id;
	int ret = check_args(args);

	if (ret)
		return ret;
	args->sq_handle = 0;
	args->cq_handle = 0;
	args->doorbell_handle = 0;
	/* f.lock keeps the context from ending before its queue is known. */
	mutex_lock(&f->lock);
	ctx = xa_load(&f->ctxs, args->ctx);
	ret = ctx ? xa_alloc(&f->queues, &id, NULL, xa_limit_31b, GFP_KERNEL_ACCOUNT) : -ENOENT;
	if (ret)
		goto out;
	ret = queue_create(ctx, args, &q);
	if (!ret && q->is_user)
		ret = share_all(q, file, args);
	if (ret) {
		unshare(file, args);
		xa_erase(&f->queues, id);
		if (q)
			queue_end(q);
	} else {
		args->id = id;
		xa_store(&f->queues, id, q, GFP_KERNEL_ACCOUNT);
	}
out:
	mutex_unlock(&f->lock);
	return ret;
}

int tessera_ioctl_queue_destroy(struct drm_device *drm, void *data,
				struct drm_file *file)
{
	struct drm_tessera_queue_id *args = data;
	struct tessera_file *f = file->driver_priv;
	int ret = -ENOENT;

	if (args->zero)
		return -EINVAL;
	mutex_lock(&f->lock);
	if (xa_load(&f->queues, args->id)) {
		tessera_queue_end(f, args->id);
		ret = 0;
	}
	mutex_unlock(&f->lock);
	return ret;
}

static int reset_user(struct tessera_queue *q)
{
	int ret = tessera_simple(q->tdev, q->ctx->generation, HW_QUEUE_RESET, q->hw_id,
				 NULL);

	atomic64_inc(&q->tdev->queue_resets);
	return ret;
}

int tessera_ioctl_queue_reset(struct drm_device *drm, void *data, struct drm_file *file)
{
	struct drm_tessera_queue_id *args = data;
	struct tessera_file *f = file->driver_priv;
	struct tessera_queue *q;
	int ret = 0;

	if (args->zero)
		return -EINVAL;
	/* hw_id is the queue's as long as its end waits for f.lock. */
	mutex_lock(&f->lock);
	q = xa_load(&f->queues, args->id);
	if (!q) {
		ret = -ENOENT;
	} else if (q->is_user) {
		ret = reset_user(q);
	} else {
		spin_lock(&q->lock);
		if (q->state == TESSERA_QUEUE_DEAD)
			ret = -ECANCELED;
		else
			q->state = TESSERA_QUEUE_FAULTED;	/* nothing new until then */
		spin_unlock(&q->lock);
		if (!ret) {
			queue_work(q->tdev->wq, &q->fault_work);
			flush_work(&q->fault_work);
		}
	}
	mutex_unlock(&f->lock);
	return ret;
}
