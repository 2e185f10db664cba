/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Contexts: the address map, the programs, the timeline. A mapping keeps its buffer,
 * so memory never goes while the device can reach it. ctx.lock is held across the
 * requests that change the map: nothing on the way to a fence takes it.
 */
#include <linux/dma-buf.h>
#include <linux/dma-resv.h>
#include <linux/overflow.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include <drm/drm_drv.h>
#include <drm/drm_print.h>
#include <drm/drm_syncobj.h>

#include "tessera_drv.h"

#define CUT_TRIES 64u

/* A piece of a buffer as the device sees it. */
struct piece {
	u64 pa, bytes;
};

/*
 * The piece at `offset` of bo, at most `most` bytes long. sg and at are a cursor that
 * the caller zeroes; offsets only grow.
 */
static int piece_at(struct tessera_bo *bo, u64 offset, u64 most,
		    struct scatterlist **sg, u64 *at, struct piece *out)
{
	struct scatterlist *next;

	if (bo->kind == TESSERA_BO_HBM) {
		out->pa = bo->hbm.start + offset;
		out->bytes = most;
		return 0;
	}
	if (!*sg)
		*sg = bo->sgt->sgl;
	while (*sg && offset - *at >= sg_dma_len(*sg)) {
		*at += sg_dma_len(*sg);
		*sg = sg_next(*sg);
	}
	if (!*sg || !sg_dma_len(*sg))
		return -EINVAL;
	out->pa = sg_dma_address(*sg) + (offset - *at);
	out->bytes = sg_dma_len(*sg) - (offset - *at);
	/* What follows at once is of the same piece: an entry of the list has 32 bits. */
	for (next = sg_next(*sg); next && out->bytes < most && sg_dma_len(next) &&
	     sg_dma_address(next) == out->pa + out->bytes; next = sg_next(next))
		out->bytes += sg_dma_len(next);
	out->bytes = min(most, out->bytes);
	return 0;
}

/* Takes back [gone, bytes) of a mapping, remembering how far it came. */
static int device_unmap(struct tessera_ctx *ctx, struct tessera_mapping *m, u64 bytes)
{
	struct scatterlist *sg = NULL;
	u64 at = 0;
	int ret;

	while (m->gone < bytes) {
		struct hw_map map = { .va = m->node.start + m->gone };
		struct tessera_request r = {
			.sqe = { .op = HW_UNMAP, .id = ctx->hw_id },
			.in = &map, .in_bytes = sizeof(map),
		};
		struct piece p;

		ret = piece_at(m->bo, m->offset + m->gone, bytes - m->gone, &sg, &at, &p);
		if (!ret)
			ret = tessera_request(ctx->tdev, ctx->generation, &r);
		if (ret)
			return ret;
		m->gone += p.bytes;
	}
	return 0;
}

static int device_map(struct tessera_ctx *ctx, struct tessera_mapping *m)
{
	struct scatterlist *sg = NULL;
	u64 done = 0, at = 0;
	int ret = 0;

	while (!ret && done < m->bytes) {
		struct hw_map map = {
			.va = m->node.start + done,
			.flags = m->flags | (tessera_bo_is_hbm(m->bo) ? 0 : HW_MAP_HOST),
		};
		struct tessera_request r = {
			.sqe = { .op = HW_MAP, .id = ctx->hw_id },
			.in = &map, .in_bytes = sizeof(map),
		};
		struct piece p;

		ret = piece_at(m->bo, m->offset + done, m->bytes - done, &sg, &at, &p);
		if (ret)
			break;
		map.pa = p.pa;
		map.bytes = p.bytes;
		ret = tessera_request(ctx->tdev, ctx->generation, &r);
		if (!ret)
			done += p.bytes;
	}
	if (ret) {
		m->bytes = done;
		device_unmap(ctx, m, done);
	}
	return ret;
}

/*
 * Out of the map, under ctx.lock; free_all does the rest without it: the last reference of a
 * peer's memory takes its reservation lock, under which ctx.lock is taken.
 */
static void mapping_remove(struct tessera_mapping *m, struct list_head *removed)
{
	drm_mm_remove_node(&m->node);
	list_add(&m->link, removed);
}

static void free_all(struct list_head *removed)
{
	struct tessera_mapping *m, *next;

	list_for_each_entry_safe(m, next, removed, link) {
		tessera_bo_put(m->bo);
		kfree(m);
	}
}

static void remove_all(struct tessera_ctx *ctx, struct list_head *removed)
{
	struct drm_mm_node *node, *next;

	drm_mm_for_each_node_safe(node, next, &ctx->va)
		mapping_remove(container_of(node, struct tessera_mapping, node), removed);
}

/* An exporter that may take its memory back gives addresses of it while it is still moved there. */
int tessera_ctx_fetch(struct tessera_bo *bo)
{
	struct dma_buf_attachment *attach = bo->base.import_attach;
	struct sg_table *sgt;
	long left;

	if (bo->sgt)
		return 0;
	if (bo->is_detached)
		return -ENODEV;
	sgt = dma_buf_map_attachment(attach, DMA_BIDIRECTIONAL);
	if (IS_ERR(sgt))
		return PTR_ERR(sgt);
	left = dma_resv_wait_timeout(attach->dmabuf->resv, DMA_RESV_USAGE_KERNEL, true,
				     MAX_SCHEDULE_TIMEOUT);
	if (left < 0) {
		dma_buf_unmap_attachment(attach, sgt, DMA_BIDIRECTIONAL);
		return left;
	}
	bo->sgt = sgt;
	return 0;
}

/* From here to the unlock a peer's memory is not taken back; it is fetched if it was. */
static int lock_peer(struct tessera_bo *bo)
{
	struct dma_buf_attachment *attach = bo->base.import_attach;
	int ret;

	if (!bo->is_peer)
		return 0;
	ret = dma_resv_lock_interruptible(attach->dmabuf->resv, NULL);
	if (ret)
		return ret;
	ret = tessera_ctx_fetch(bo);
	if (ret)
		dma_resv_unlock(attach->dmabuf->resv);
	return ret;
}

static void unlock_peer(struct tessera_bo *bo)
{
	if (bo->is_peer)
		dma_resv_unlock(bo->base.import_attach->dmabuf->resv);
}

static int place(struct tessera_ctx *ctx, struct tessera_mapping *m, u64 va)
{
	/* Large pages of an IOMMU stay large if the address allows it. */
	u64 align = m->bytes >= SZ_2M ? SZ_2M : HW_PAGE;

	if (!va)
		return drm_mm_insert_node_in_range(&ctx->va, &m->node, m->bytes, align, 0,
						   TESSERA_VA_FIRST, TESSERA_VA_END,
						   DRM_MM_INSERT_BEST);
	m->node.start = va;
	m->node.size = m->bytes;
	/* ENOSPC: in the way, or outside; the caller has checked the range. */
	if (!drm_mm_reserve_node(&ctx->va, &m->node))
		return 0;
	/* What UNMAP was refused for, because the context is lost, is still there; and that it is
	 * lost is what its owner has to know. */
	return tessera_ctx_is_lost(ctx) ? -ECANCELED : -EEXIST;
}

int tessera_ctx_map(struct tessera_ctx *ctx, struct tessera_bo *bo, u64 offset,
		    u64 bytes, u32 flags, u64 *va)
{
	struct tessera_mapping *m;
	LIST_HEAD(removed);
	u64 end;
	int ret;

	if (!bytes && offset < bo->base.size)
		bytes = bo->base.size - offset;
	if (!bytes || (offset | bytes | *va) % HW_PAGE ||
	    check_add_overflow(offset, bytes, &end) || end > bo->base.size)
		return -EINVAL;
	if (*va && (check_add_overflow(*va, bytes, &end) || end > S64_MAX))
		return -EINVAL;
	if (bo->is_private)
		return -EINVAL;
	if (bo->is_read_only && flags & HW_MAP_WRITE)
		return -EACCES;
	m = kzalloc(sizeof(*m), GFP_KERNEL_ACCOUNT);
	if (!m)
		return -ENOMEM;
	m->bo = bo;
	m->offset = offset;
	m->bytes = bytes;
	m->flags = flags;
	ret = lock_peer(bo);
	if (ret) {
		kfree(m);
		return ret;
	}
	drm_gem_object_get(&bo->base);
	mutex_lock(&ctx->lock);
	ret = place(ctx, m, *va);
	if (ret) {
		tessera_bo_put(bo);
		kfree(m);
	} else {
		ret = device_map(ctx, m);
		if (!ret)
			*va = m->node.start;
		/* What could not be taken back stays until UNMAP or the context's end. */
		else if (m->gone == m->bytes)
			mapping_remove(m, &removed);
	}
	mutex_unlock(&ctx->lock);
	unlock_peer(bo);
	free_all(&removed);
	return ret;
}

struct tessera_mapping *tessera_ctx_mapping(struct tessera_ctx *ctx, u64 va, u64 bytes)
{
	struct drm_mm_node *node;
	u64 end;

	lockdep_assert_held(&ctx->lock);
	/* Past the end of the map the iterator would go round for ever. */
	if (va > S64_MAX - HW_PAGE || check_add_overflow(va, bytes, &end))
		return NULL;
	drm_mm_for_each_node_in_range(node, &ctx->va, va, va + 1) {
		if (drm_mm_node_allocated(node) && node->start <= va &&
		    end <= node->start + node->size)
			return container_of(node, struct tessera_mapping, node);
	}
	return NULL;
}

/* Whether the device records into it. */
static bool is_traced_into(struct tessera_ctx *ctx, const struct tessera_mapping *m)
{
	const struct tessera_trace *t = &ctx->trace;

	return t->bytes && t->va < m->node.start + m->node.size &&
	       m->node.start < t->va + t->bytes;
}

int tessera_ctx_unmap(struct tessera_ctx *ctx, u64 va, struct tessera_bo *bo)
{
	struct tessera_mapping *m;
	LIST_HEAD(removed);
	int ret = -ENOENT;

	mutex_lock(&ctx->lock);
	m = tessera_ctx_mapping(ctx, va, 1);
	if (m && m->node.start == va && (!bo || m->bo == bo)) {
		ret = is_traced_into(ctx, m) ? -EBUSY : device_unmap(ctx, m, m->bytes);
		if (!ret)
			mapping_remove(m, &removed);
	}
	mutex_unlock(&ctx->lock);
	free_all(&removed);
	return ret;
}

/*
 * Under ctx.lock. Work that runs keeps a mapping: it fails, and if the context begins more as fast
 * as that, all of the device does.
 */
static void cut(struct tessera_ctx *ctx, struct tessera_mapping *m)
{
	struct tessera_device *tdev = ctx->tdev;
	unsigned int tries = 0;
	int ret = -ECANCELED;

	if (ctx->hw_id)
		ret = device_unmap(ctx, m, m->bytes);
	while (ret == -EBUSY && tries++ < CUT_TRIES) {
		tessera_reset_queues(tdev, ctx->generation, ctx->hw_id);
		ret = device_unmap(ctx, m, m->bytes);
	}
	if (ret && ret != -ECANCELED && ret != -ENODEV && ret != -ETIMEDOUT)
		tessera_reset_begin(tdev, "another device's memory could not be given back");
	/* Not asked, or not heard: it is lost, or about to be. */
	if (ret)
		tessera_cut_off(tdev, ctx->generation);
	m->gone = m->bytes;
}

void tessera_ctx_cut(struct tessera_device *tdev, struct tessera_bo *bo)
{
	struct drm_mm_node *node;
	struct tessera_ctx *ctx;

	mutex_lock(&tdev->ctxs_lock);
	list_for_each_entry(ctx, &tdev->ctxs, link) {
		mutex_lock(&ctx->lock);
		drm_mm_for_each_node(node, &ctx->va) {
			struct tessera_mapping *m = container_of(node, struct tessera_mapping,
								 node);

			if (m->bo == bo && m->gone < m->bytes)
				cut(ctx, m);
		}
		mutex_unlock(&ctx->lock);
	}
	mutex_unlock(&tdev->ctxs_lock);
}

static void ctx_free(struct kref *ref)
{
	struct tessera_ctx *ctx = container_of(ref, struct tessera_ctx, ref);
	LIST_HEAD(removed);

	remove_all(ctx, &removed);
	free_all(&removed);
	drm_mm_takedown(&ctx->va);
	xa_destroy(&ctx->programs);
	tessera_bo_put(ctx->wake);
	if (ctx->timeline)
		drm_syncobj_put(ctx->timeline);
	kfree(ctx);
}

void tessera_ctx_put(struct tessera_ctx *ctx)
{
	kref_put(&ctx->ref, ctx_free);
}

struct tessera_ctx *tessera_ctx_get(struct tessera_file *f, u32 id)
{
	struct tessera_ctx *ctx;

	xa_lock(&f->ctxs);
	ctx = xa_load(&f->ctxs, id);
	if (ctx)
		kref_get(&ctx->ref);
	xa_unlock(&f->ctxs);
	return ctx;
}

bool tessera_ctx_is_lost(struct tessera_ctx *ctx)
{
	return READ_ONCE(ctx->tdev->generation) != READ_ONCE(ctx->generation) ||
	       READ_ONCE(ctx->tdev->state) != TESSERA_RUNNING;
}

/* Waits without ctx.lock for a reset that is to end it: that of another device may need it. */
static void end_on_device(struct tessera_ctx *ctx)
{
	int ret;

	mutex_lock(&ctx->lock);
	ret = tessera_begin_end(ctx->tdev, ctx->generation, HW_CTX_DESTROY, ctx->hw_id);
	ctx->hw_id = 0;
	mutex_unlock(&ctx->lock);
	if (ret)
		tessera_settle(ctx->tdev);
}

void tessera_ctx_stop(struct tessera_ctx *ctx)
{
	end_on_device(ctx);
	mutex_lock(&ctx->lock);
	/* The id may be another's by now; nobody asks for it in this generation. */
	WRITE_ONCE(ctx->generation, TESSERA_NO_GENERATION);
	mutex_unlock(&ctx->lock);
}

/*
 * Mappings go only when the device has forgotten the context, or was reset, or has
 * lost its bus mastering. Other threads may still hold ctx; what they ask for fails
 * on the device, because hw_id is 0 then and no context.
 */
void tessera_ctx_end(struct tessera_ctx *ctx)
{
	struct tessera_usage *usage = ctx->file->usage;
	LIST_HEAD(removed);
	unsigned long i;
	void *program;

	end_on_device(ctx);
	mutex_lock(&ctx->tdev->ctxs_lock);
	list_del_init(&ctx->link);
	mutex_unlock(&ctx->tdev->ctxs_lock);
	mutex_lock(&ctx->lock);
	xa_for_each(&ctx->programs, i, program) {
		xa_erase(&ctx->programs, i);
		tessera_unuse(usage, TESSERA_USE_PROGRAMS, 1);
	}
	tessera_unuse(usage, TESSERA_USE_CONTEXTS, 1);
	remove_all(ctx, &removed);
	mutex_unlock(&ctx->lock);
	free_all(&removed);
	tessera_ctx_put(ctx);
}

static struct tessera_ctx *ctx_alloc(struct tessera_device *tdev, struct tessera_file *f)
{
	struct tessera_ctx *ctx = kzalloc(sizeof(*ctx), GFP_KERNEL_ACCOUNT);

	if (!ctx)
		return NULL;
	kref_init(&ctx->ref);
	ctx->tdev = tdev;
	ctx->file = f;
	mutex_init(&ctx->lock);
	mutex_init(&ctx->submit_lock);
	spin_lock_init(&ctx->error_lock);
	xa_init(&ctx->programs);
	INIT_LIST_HEAD(&ctx->link);
	INIT_LIST_HEAD(&ctx->trace.link);
	drm_mm_init(&ctx->va, HW_PAGE, (u64)S64_MAX - HW_PAGE);
	return ctx;
}

static int ctx_start(struct tessera_ctx *ctx)
{
	struct tessera_device *tdev = ctx->tdev;
	u64 id = 0;
	int ret;

	ctx->generation = READ_ONCE(tdev->generation);
	ret = tessera_simple(tdev, ctx->generation, HW_CTX_CREATE, 0, &id);
	if (ret)
		return ret;
	ctx->hw_id = id;
	ctx->born_ns = tessera_read64(tdev, HW_REG_CLOCK);
	mutex_lock(&tdev->ctxs_lock);
	list_add(&ctx->link, &tdev->ctxs);
	mutex_unlock(&tdev->ctxs_lock);
	return 0;
}

struct tessera_ctx *tessera_ctx_new(struct tessera_device *tdev, struct tessera_file *f)
{
	int ret = tessera_use(f->usage, TESSERA_USE_CONTEXTS, 1);
	struct tessera_ctx *ctx;

	if (ret)
		return ERR_PTR(ret);
	ctx = ctx_alloc(tdev, f);
	ret = ctx ? drm_syncobj_create(&ctx->timeline, 0, NULL) : -ENOMEM;
	if (!ret)
		ret = tessera_settle_interruptible(tdev);
	if (!ret)
		ret = ctx_start(ctx);
	if (!ret)
		return ctx;
	tessera_unuse(f->usage, TESSERA_USE_CONTEXTS, 1);
	if (ctx)
		tessera_ctx_put(ctx);
	return ERR_PTR(ret);
}

static int map_one(struct tessera_ctx *ctx, struct drm_file *file,
		   struct drm_tessera_map_op *op)
{
	struct drm_gem_object *obj;
	int ret;

	if (op->flags & ~DRM_TESSERA_MAP_WRITE)
		return -EINVAL;
	obj = drm_gem_object_lookup(file, op->handle);
	if (!obj)
		return -ENOENT;
	ret = tessera_ctx_map(ctx, to_bo(obj), op->offset, op->bytes,
			      op->flags & DRM_TESSERA_MAP_WRITE ? HW_MAP_WRITE : 0, &op->va);
	drm_gem_object_put(obj);
	return ret;
}

/* The device is held between the two copies alone, since the caller's memory may make them take
 * for ever. */
static int map_all(struct tessera_ctx *ctx, struct drm_file *file,
		   struct drm_tessera_map_op *ops, u32 n, u32 *n_done)
{
	int ret = 0, idx;

	if (!drm_dev_enter(&ctx->tdev->drm, &idx))
		return -ENODEV;
	while (!ret && *n_done < n) {
		ret = map_one(ctx, file, &ops[*n_done]);
		*n_done += !ret;
		cond_resched();
	}
	drm_dev_exit(idx);
	return ret;
}

int tessera_ioctl_map(struct drm_device *drm, void *data, struct drm_file *file)
{
	struct drm_tessera_map *args = data;
	struct drm_tessera_map_op *ops;
	struct tessera_ctx *ctx;
	u64 __user *va;
	int ret;
	u32 i;

	if (args->n_done || !args->n_ops || args->n_ops > TESSERA_MAPS_MAX)
		return -EINVAL;
	/* An op without va could not be told where it is. */
	if (args->op_bytes < sizeof(*ops))
		return -EINVAL;
	ops = kcalloc(args->n_ops, sizeof(*ops), GFP_KERNEL_ACCOUNT);
	if (!ops)
		return -ENOMEM;
	ret = tessera_copy_records(ops, sizeof(*ops), args->ops, args->op_bytes, args->n_ops);
	ctx = ret ? NULL : tessera_ctx_get(file->driver_priv, args->ctx);
	if (ctx) {
		ret = map_all(ctx, file, ops, args->n_ops, &args->n_done);
		for (i = 0; i < args->n_done; i++) {
			va = u64_to_user_ptr(args->ops + (u64)i * args->op_bytes +
					     offsetof(struct drm_tessera_map_op, va));
			if (put_user(ops[i].va, va))
				ret = -EFAULT;
		}
		tessera_ctx_put(ctx);
	} else if (!ret) {
		ret = -ENOENT;
	}
	kfree(ops);
	return ret;
}

int tessera_ioctl_unmap(struct drm_device *drm, void *data, struct drm_file *file)
{
	struct drm_tessera_unmap *args = data;
	struct tessera_ctx *ctx;
	int ret;

	if (args->zero || args->va % HW_PAGE)
		return -EINVAL;
	ctx = tessera_ctx_get(file->driver_priv, args->ctx);
	if (!ctx)
		return -ENOENT;
	ret = tessera_ctx_unmap(ctx, args->va, NULL);
	tessera_ctx_put(ctx);
	return ret;
}

static int program_create(struct tessera_ctx *ctx, const void *bindings,
			  struct drm_tessera_program_create *args)
{
	struct tessera_device *tdev = ctx->tdev;
	struct hw_program p = {
		.code_va = args->code_va, .code_bytes = args->code_bytes,
		.bindings_iova = tdev->admin.iova + 3 * HW_PAGE,
		.n_bindings = args->n_bindings, .ctx = ctx->hw_id,
	};
	struct tessera_request r = {
		.sqe = { .op = HW_PROGRAM_CREATE },
		.in = &p, .in_bytes = sizeof(p), .in2 = bindings,
		.in2_bytes = args->n_bindings * sizeof(struct hw_program_binding),
	};
	struct tessera_usage *usage = ctx->file->usage;
	int ret = tessera_use(usage, TESSERA_USE_PROGRAMS, 1);

	if (ret)
		return ret;
	ret = tessera_request(tdev, ctx->generation, &r);
	args->status = r.status;
	args->detail = r.detail;
	if (ret) {
		tessera_unuse(usage, TESSERA_USE_PROGRAMS, 1);
		return ret;
	}
	args->id = r.value;
	ret = xa_insert(&ctx->programs, args->id, xa_mk_value(1), GFP_KERNEL_ACCOUNT);
	if (ret) {
		r = (struct tessera_request){
			.sqe = { .op = HW_PROGRAM_DESTROY, .u.admin.value = args->id },
		};
		tessera_request(tdev, ctx->generation, &r);
		tessera_unuse(usage, TESSERA_USE_PROGRAMS, 1);
	}
	return ret;
}

int tessera_ioctl_program_create(struct drm_device *drm, void *data,
				 struct drm_file *file)
{
	struct drm_tessera_program_create *args = data;
	struct tessera_ctx *ctx;
	void *bindings = NULL;
	int ret, idx;

	if (args->zero || args->n_bindings > ISA_MAX_BINDINGS)
		return -EINVAL;
	args->status = 0;
	args->detail = 0;
	/* The device checks the code in queue 0's time, which is everybody's. */
	if (args->code_bytes > (u64)READ_ONCE(tessera_program_mib) << 20)
		return -E2BIG;
	if (args->n_bindings) {
		bindings = kvcalloc(args->n_bindings, sizeof(struct hw_program_binding),
				    GFP_KERNEL_ACCOUNT);
		if (!bindings)
			return -ENOMEM;
		ret = tessera_copy_records(bindings, sizeof(struct hw_program_binding),
					   args->bindings, args->binding_bytes, args->n_bindings);
		if (ret) {
			kvfree(bindings);
			return ret;
		}
	}
	ctx = tessera_ctx_get(file->driver_priv, args->ctx);
	ret = ctx ? -ENODEV : -ENOENT;
	/* Not before the bindings were copied: unbinding would wait for the caller's memory. */
	if (ctx && drm_dev_enter(drm, &idx)) {
		mutex_lock(&ctx->lock);
		ret = program_create(ctx, bindings, args);
		mutex_unlock(&ctx->lock);
		drm_dev_exit(idx);
	}
	if (ctx)
		tessera_ctx_put(ctx);
	kvfree(bindings);
	return ret;
}

int tessera_ioctl_program_destroy(struct drm_device *drm, void *data,
				  struct drm_file *file)
{
	struct drm_tessera_program_destroy *args = data;
	struct tessera_request r = {
		.sqe = { .op = HW_PROGRAM_DESTROY, .u.admin.value = args->id },
	};
	struct tessera_ctx *ctx = tessera_ctx_get(file->driver_priv, args->ctx);
	int ret = -ENOENT;

	if (!ctx)
		return -ENOENT;
	mutex_lock(&ctx->lock);
	if (xa_erase(&ctx->programs, args->id)) {
		tessera_unuse(ctx->file->usage, TESSERA_USE_PROGRAMS, 1);
		ret = tessera_request(ctx->tdev, ctx->generation, &r);
	}
	mutex_unlock(&ctx->lock);
	tessera_ctx_put(ctx);
	return ret;
}
