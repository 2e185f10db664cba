/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a program can read: QUERY, and fdinfo.
 */
#include <linux/slab.h>
#include <linux/uaccess.h>

#include <drm/drm_drv.h>
#include <drm/drm_gem.h>
#include <drm/drm_print.h>

#include "tessera_abi.h"
#include "tessera_drv.h"

/* What is to be copied out once the device is let go. */
struct answer {
	union {
		struct drm_tessera_device device;
		struct drm_tessera_memory memory;
		struct drm_tessera_error error;
		struct drm_tessera_clock clock;
		struct hw_telemetry telemetry;
		struct hw_ras ras;
		struct hw_link links[HW_MAX_LINKS];
	};
	const void *data;
	size_t bytes, unit;	/* of all; of a record, 0: it is none */
	void *owned;		/* to be freed, or NULL */
};

static int set_answer(struct answer *a, const void *data, size_t bytes, size_t unit)
{
	a->data = data;
	a->bytes = bytes;
	a->unit = unit;
	return 0;
}

/* Records of the caller's size, as many as there is room for. */
static int give_records(struct drm_tessera_query *args, const struct answer *a)
{
	u32 bytes = args->record_bytes ? args->record_bytes : a->unit;
	u32 n = min_t(u32, a->bytes / a->unit, args->size / bytes), i;
	void __user *to = u64_to_user_ptr(args->data);

	args->size = a->bytes / a->unit * bytes;
	args->record_bytes = a->unit;
	for (i = 0; args->data && i < n; i++, to += bytes) {
		if (copy_to_user(to, a->data + i * a->unit, min_t(size_t, bytes, a->unit)) ||
		    (bytes > a->unit && clear_user(to + a->unit, bytes - a->unit)))
			return -EFAULT;
	}
	return 0;
}

/* Copies what fits; args->size becomes what there is. */
static int give(struct drm_tessera_query *args, const struct answer *a)
{
	size_t n = min_t(size_t, args->size, a->bytes);

	if (a->unit)
		return give_records(args, a);
	args->size = a->bytes;
	if (args->data && copy_to_user(u64_to_user_ptr(args->data), a->data, n))
		return -EFAULT;
	return 0;
}

/* What one file may have of what the device has. */
static u64 most(enum tessera_use what, u64 there)
{
	u64 limit = tessera_use_limit(what);

	return limit ? min(limit, there) : there;
}

static int ask_device(struct tessera_device *tdev, struct answer *a)
{
	a->device = (struct drm_tessera_device){
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
		.pending_of_file = tessera_use_limit(TESSERA_USE_PENDING),
		.program_bytes = (u64)READ_ONCE(tessera_program_mib) << 20,
		.page_bytes = HW_PAGE, .maps_max = TESSERA_MAPS_MAX,
	};
	return set_answer(a, &a->device, sizeof(a->device), 0);
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

		if (bo->kind == TESSERA_BO_BAR0)
			continue;
		if (obj->handle_count > 1 || obj->dma_buf)
			sum->shared += obj->size;
		else
			sum->private += obj->size;
		sum->resident += obj->size;
	}
	spin_unlock(&file->table_lock);
}

static int ask_memory(struct tessera_device *tdev, struct answer *a, struct drm_file *file)
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
	a->memory = m;
	return set_answer(a, &a->memory, sizeof(m), 0);
}

static int ask_clock(struct tessera_device *tdev, struct answer *a)
{
	a->clock.device_ns = tessera_read64(tdev, HW_REG_CLOCK);
	/* Read in a reset it may be anything. */
	if (READ_ONCE(tdev->state) != TESSERA_RUNNING || a->clock.device_ns == ~0ull)
		return -ECANCELED;
	return set_answer(a, &a->clock, sizeof(a->clock), 0);
}

static int ask_error(struct tessera_ctx *ctx, struct answer *a)
{
	spin_lock(&ctx->error_lock);
	a->error = ctx->error;
	spin_unlock(&ctx->error_lock);
	a->error.state = tessera_ctx_is_lost(ctx) ? DRM_TESSERA_CTX_LOST : DRM_TESSERA_CTX_OK;
	return set_answer(a, &a->error, sizeof(a->error), 0);
}

/* The device's records are of all contexts: only this one's are handed out. */
static int ask_faults(struct tessera_ctx *ctx, struct answer *a)
{
	struct tessera_device *tdev = ctx->tdev;
	struct hw_fault *mine;
	unsigned int n, i, kept = 0;
	int ret;

	mine = kcalloc(TESSERA_FAULT_RECORDS, sizeof(*mine), GFP_KERNEL);
	if (!mine)
		return -ENOMEM;
	/* Its number stays its own until they are read, or it is lost by then. */
	mutex_lock(&ctx->lock);
	mutex_lock(&tdev->fault_lock);
	ret = tessera_ctx_is_lost(ctx) || !ctx->hw_id ? -ECANCELED :
	      tessera_faults_read(tdev, &n);
	if (!ret && tessera_ctx_is_lost(ctx))
		ret = -ECANCELED;
	for (i = 0; !ret && i < n; i++) {
		if (tdev->faults[i].ctx == ctx->hw_id &&
		    tdev->faults[i].time_ns >= ctx->born_ns)
			mine[kept++] = tdev->faults[i];
	}
	mutex_unlock(&tdev->fault_lock);
	mutex_unlock(&ctx->lock);
	a->owned = mine;
	return ret ? ret : set_answer(a, mine, kept * sizeof(*mine), sizeof(*mine));
}

static int ask_of_ctx(struct drm_tessera_query *args, struct answer *a, struct drm_file *file)
{
	struct tessera_ctx *ctx = tessera_ctx_get(file->driver_priv, args->ctx);
	int ret;

	if (!ctx)
		return -ENOENT;
	ret = args->type == DRM_TESSERA_QUERY_ERROR ? ask_error(ctx, a) : ask_faults(ctx, a);
	tessera_ctx_put(ctx);
	return ret;
}

static int ask(struct tessera_device *tdev, struct drm_tessera_query *args, struct answer *a,
	       struct drm_file *file)
{
	unsigned int n;
	int ret;

	if (args->type == DRM_TESSERA_QUERY_ERROR || args->type == DRM_TESSERA_QUERY_FAULTS)
		return ask_of_ctx(args, a, file);
	if (args->ctx)
		return -EINVAL;
	if (args->type == DRM_TESSERA_QUERY_TELEMETRY ||
	    args->type == DRM_TESSERA_QUERY_RAS ||
	    args->type == DRM_TESSERA_QUERY_CLOCK ||
	    args->type == DRM_TESSERA_QUERY_LINKS) {
		ret = tessera_settle_interruptible(tdev);
		if (ret)
			return ret;
	}
	switch (args->type) {
	case DRM_TESSERA_QUERY_DEVICE:
		return ask_device(tdev, a);
	case DRM_TESSERA_QUERY_IDENTIFY:
		return set_answer(a, &tdev->identity, sizeof(tdev->identity), 0);
	case DRM_TESSERA_QUERY_MEMORY:
		return ask_memory(tdev, a, file);
	case DRM_TESSERA_QUERY_TELEMETRY:
		ret = tessera_page_read(tdev, &a->telemetry, NULL);
		return ret ? ret : set_answer(a, &a->telemetry, sizeof(a->telemetry), 0);
	case DRM_TESSERA_QUERY_RAS:
		ret = tessera_page_read(tdev, NULL, &a->ras);
		return ret ? ret : set_answer(a, &a->ras, sizeof(a->ras), 0);
	case DRM_TESSERA_QUERY_CLOCK:
		return ask_clock(tdev, a);
	case DRM_TESSERA_QUERY_LINKS:
		ret = tessera_links_read(tdev, a->links, &n);
		return ret ? ret : set_answer(a, a->links, n * sizeof(*a->links),
					      sizeof(*a->links));
	default:
		return -EINVAL;
	}
}

/* The device is let go before the answer is copied: the caller's memory may take for ever. */
int tessera_ioctl_query(struct drm_device *drm, void *data, struct drm_file *file)
{
	struct drm_tessera_query *args = data;
	struct answer a = { };
	int ret, idx;

	if (args->record_bytes &&
	    ((args->type != DRM_TESSERA_QUERY_FAULTS &&
	      args->type != DRM_TESSERA_QUERY_LINKS) || args->record_bytes < 8 ||
	     args->record_bytes > TESSERA_RECORD_MAX || args->record_bytes % 8))
		return -EINVAL;
	if (!drm_dev_enter(drm, &idx))
		return -ENODEV;
	ret = ask(to_tessera(drm), args, &a, file);
	drm_dev_exit(idx);
	if (!ret)
		ret = give(args, &a);
	kfree(a.owned);
	return ret;
}

static void look_at_queues(struct tessera_file *f)
{
	struct tessera_queue *q;
	unsigned long i;

	/* Not under f.lock, whose owner may wait for the device, and a monitor for it. */
	xa_for_each(&f->queues, i, q) {
		q = tessera_queue_get(f, i);
		if (!q)
			continue;
		tessera_queue_look(q);
		tessera_queue_put(q);
	}
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
