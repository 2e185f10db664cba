/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What can be read: QUERY, the device's log pages, fdinfo. Pages are cached for a
 * moment, so that readers cannot keep queue 0 busy.
 */
#include <linux/slab.h>
#include <linux/uaccess.h>

#include <drm/drm_drv.h>
#include <drm/drm_gem.h>
#include <drm/drm_print.h>

#include "tessera_drv.h"

static int read_log(struct tessera_device *tdev, u16 page, void *out, size_t bytes,
		    size_t *got)
{
	struct tessera_request r = {
		.sqe = { .op = HW_LOG_PAGE, .id = page },
		.out = out, .out_bytes = bytes,
	};
	int ret = tessera_request(tdev, 0, &r);

	if (!ret && got)
		*got = min_t(u64, r.value, bytes);
	return ret;
}

int tessera_page_read(struct tessera_device *tdev, struct hw_telemetry *t,
		      struct hw_ras *ras)
{
	int ret = 0;

	mutex_lock(&tdev->page_lock);
	if (!tdev->page_time || time_after(jiffies, tdev->page_time +
					   msecs_to_jiffies(TESSERA_PAGE_AGE_MS))) {
		ret = read_log(tdev, HW_LOG_TELEMETRY, &tdev->telemetry,
			       sizeof(tdev->telemetry), NULL);
		if (!ret)
			ret = read_log(tdev, HW_LOG_RAS, &tdev->ras, sizeof(tdev->ras),
				       NULL);
		if (!ret)
			tdev->page_time = jiffies | 1;
	}
	if (!ret && t)
		*t = tdev->telemetry;
	if (!ret && ras)
		*ras = tdev->ras;
	mutex_unlock(&tdev->page_lock);
	return ret;
}

/* Fills tdev.faults, newest first. Under fault_lock. */
int tessera_faults_read(struct tessera_device *tdev, unsigned int *n)
{
	size_t got = 0;
	int ret;

	lockdep_assert_held(&tdev->fault_lock);
	ret = read_log(tdev, HW_LOG_FAULT, tdev->faults,
		       TESSERA_FAULT_RECORDS * sizeof(*tdev->faults), &got);
	*n = got / sizeof(*tdev->faults);
	return ret;
}

/* Copies what fits; args->size becomes what there is. */
static int give(struct drm_tessera_query *args, const void *data, size_t bytes,
		size_t unit)
{
	size_t n = min_t(size_t, args->size, bytes);

	n -= n % unit;
	args->size = bytes;
	if (args->data && copy_to_user(u64_to_user_ptr(args->data), data, n))
		return -EFAULT;
	return 0;
}

/* What one file may have of what the device has. */
static u64 most(enum tessera_use what, u64 there)
{
	u64 limit = tessera_use_limit(what);

	return limit ? min(limit, there) : there;
}

static int give_device(struct tessera_device *tdev, struct drm_tessera_query *args)
{
	struct drm_tessera_device d = {
		.abi = DRM_TESSERA_ABI,
		.is_usable = READ_ONCE(tdev->state) != TESSERA_WEDGED,
		.queue_entries_max = TESSERA_RING_MAX,
		.submit_max = TESSERA_SUBMIT_MAX,
		.hbm_bytes = tdev->identity.hbm_bytes,
		.va_first = TESSERA_VA_FIRST, .va_end = TESSERA_VA_END,
		.function_resets = atomic64_read(&tdev->function_resets),
		.queue_resets = atomic64_read(&tdev->queue_resets),
		.lost_interrupts = atomic64_read(&tdev->lost_interrupts),
		.limit_ns = (u64)tessera_limit_ms * NSEC_PER_MSEC,
		.contexts_of_file = most(TESSERA_USE_CONTEXTS, tdev->identity.max_contexts),
		.queues_of_file = most(TESSERA_USE_QUEUES, tdev->identity.max_queues - 1),
		.programs_of_file = most(TESSERA_USE_PROGRAMS, tdev->identity.max_programs),
	};

	return give(args, &d, sizeof(d), 1);
}

/* A file's buffers by where they are: [0] HBM, [1] system memory. */
static void sum_file(struct drm_file *file, struct drm_memory_stats sums[2])
{
	struct drm_gem_object *obj;
	int id;

	memset(sums, 0, 2 * sizeof(*sums));
	spin_lock(&file->table_lock);
	idr_for_each_entry(&file->object_idr, obj, id) {
		struct tessera_bo *bo = to_bo(obj);
		struct drm_memory_stats *sum = &sums[!tessera_bo_is_hbm(bo)];

		if (bo->kind == TESSERA_BO_DOORBELL)
			continue;
		if (obj->handle_count > 1 || obj->dma_buf)
			sum->shared += obj->size;
		else
			sum->private += obj->size;
		sum->resident += obj->size;
	}
	spin_unlock(&file->table_lock);
}

static int give_memory(struct tessera_device *tdev, struct drm_tessera_query *args,
		       struct drm_file *file)
{
	struct tessera_file *f = file->driver_priv;
	struct drm_memory_stats sums[2];
	struct drm_tessera_memory m = {
		.hbm_largest_free = tessera_bo_largest_free(tdev),
		.system_used = atomic64_read(&tdev->system_used),
	};

	sum_file(file, sums);
	m.hbm_used_by_file = atomic64_read(&f->usage->n[TESSERA_USE_HBM]);
	m.hbm_limit_of_file = most(TESSERA_USE_HBM, tdev->hbm_bytes);
	m.system_used_by_file = sums[1].resident;
	mutex_lock(&tdev->hbm_lock);
	m.hbm_total = tdev->hbm_bytes;
	m.hbm_used = tdev->hbm_used;
	mutex_unlock(&tdev->hbm_lock);
	return give(args, &m, sizeof(m), 1);
}

static int give_error(struct tessera_ctx *ctx, struct drm_tessera_query *args)
{
	struct drm_tessera_error e;

	spin_lock(&ctx->error_lock);
	e = ctx->error;
	spin_unlock(&ctx->error_lock);
	e.state = tessera_ctx_is_lost(ctx) ? DRM_TESSERA_CTX_LOST : DRM_TESSERA_CTX_OK;
	return give(args, &e, sizeof(e), 1);
}

/* The device's records are of all contexts: only this one's are handed out. */
static int give_faults(struct tessera_ctx *ctx, struct drm_tessera_query *args)
{
	struct tessera_device *tdev = ctx->tdev;
	struct hw_fault *mine;
	unsigned int n, i, kept = 0;
	int ret;

	mine = kcalloc(TESSERA_FAULT_RECORDS, sizeof(*mine), GFP_KERNEL);
	if (!mine)
		return -ENOMEM;
	mutex_lock(&tdev->fault_lock);
	ret = tessera_ctx_is_lost(ctx) ? -ECANCELED : tessera_faults_read(tdev, &n);
	for (i = 0; !ret && i < n; i++) {
		if (tdev->faults[i].ctx == ctx->hw_id &&
		    tdev->faults[i].time_ns >= ctx->born_ns)
			mine[kept++] = tdev->faults[i];
	}
	mutex_unlock(&tdev->fault_lock);
	if (!ret)
		ret = give(args, mine, kept * sizeof(*mine), sizeof(*mine));
	kfree(mine);
	return ret;
}

static int give_of_ctx(struct drm_tessera_query *args, struct drm_file *file)
{
	struct tessera_ctx *ctx = tessera_ctx_get(file->driver_priv, args->ctx);
	int ret;

	if (!ctx)
		return -ENOENT;
	ret = args->type == DRM_TESSERA_QUERY_ERROR ? give_error(ctx, args) :
	      give_faults(ctx, args);
	tessera_ctx_put(ctx);
	return ret;
}

int tessera_ioctl_query(struct drm_device *drm, void *data, struct drm_file *file)
{
	struct tessera_device *tdev = to_tessera(drm);
	struct drm_tessera_query *args = data;
	struct hw_telemetry t;
	struct hw_ras ras;
	int ret;

	if (args->zero)
		return -EINVAL;
	if (args->type == DRM_TESSERA_QUERY_ERROR || args->type == DRM_TESSERA_QUERY_FAULTS)
		return give_of_ctx(args, file);
	if (args->ctx)
		return -EINVAL;
	if (args->type == DRM_TESSERA_QUERY_TELEMETRY ||
	    args->type == DRM_TESSERA_QUERY_RAS) {
		ret = tessera_settle_interruptible(tdev);
		if (ret)
			return ret;
	}
	switch (args->type) {
	case DRM_TESSERA_QUERY_DEVICE:
		return give_device(tdev, args);
	case DRM_TESSERA_QUERY_IDENTIFY:
		return give(args, &tdev->identity, sizeof(tdev->identity), 1);
	case DRM_TESSERA_QUERY_MEMORY:
		return give_memory(tdev, args, file);
	case DRM_TESSERA_QUERY_TELEMETRY:
		ret = tessera_page_read(tdev, &t, NULL);
		return ret ? ret : give(args, &t, sizeof(t), 1);
	case DRM_TESSERA_QUERY_RAS:
		ret = tessera_page_read(tdev, NULL, &ras);
		return ret ? ret : give(args, &ras, sizeof(ras), 1);
	default:
		return -EINVAL;
	}
}

static void look_at_queues(struct tessera_file *f)
{
	struct tessera_queue *q;
	unsigned long i;

	mutex_lock(&f->lock);
	xa_for_each(&f->queues, i, q)
		tessera_queue_look(q);
	mutex_unlock(&f->lock);
}

void tessera_show_fdinfo(struct drm_printer *p, struct drm_file *file)
{
	struct tessera_file *f = file->driver_priv;
	struct drm_memory_stats sums[2];

	look_at_queues(f);
	drm_printf(p, "drm-engine-compute:\t%lld ns\n",
		   atomic64_read(&f->busy_ns[HW_CLASS_COMPUTE]));
	drm_printf(p, "drm-engine-dma:\t%lld ns\n",
		   atomic64_read(&f->busy_ns[HW_CLASS_DMA]));
	sum_file(file, sums);
	drm_print_memory_stats(p, &sums[0], DRM_GEM_OBJECT_RESIDENT, "hbm");
	drm_print_memory_stats(p, &sums[1], DRM_GEM_OBJECT_RESIDENT, "system");
}
