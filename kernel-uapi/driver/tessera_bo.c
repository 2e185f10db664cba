/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Buffer objects. A buffer's memory and its DMA addresses exist from creation to the
 * last reference, so mapping and submitting never wait for memory. The exception is
 * unbinding: DMA addresses end with the device, memory stays as long as anybody has it:
 * another device may reach it by a dma-buf.
 *
 * CPU mappings are made in the fault handler alone, so that they can be taken away: by
 * the core at unplug, by us from a doorbell whose queue has ended and a wake page whose
 * context has.
 *
 * Nothing here moves data between CPU and device: a kernel that bounces DMA, or a
 * machine whose devices do not see its caches, is refused.
 */
#include <linux/dma-buf.h>
#include <linux/dma-mapping.h>
#include <linux/dma-resv.h>
#include <linux/mm.h>
#include <linux/overflow.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include <drm/drm_drv.h>
#include <drm/drm_prime.h>
#include <drm/drm_print.h>
#include <drm/drm_vma_manager.h>

#include "tessera_compat.h"
#include "tessera_drv.h"

#define FAULT_AROUND 512ul	/* pages that one fault maps */

static const struct drm_gem_object_funcs bo_funcs;

int tessera_bo_hbm_init(struct tessera_device *tdev)
{
	u64 bytes = min_t(u64, tdev->identity.hbm_bytes,
			  pci_resource_len(tdev->pdev, 2));

	tdev->hbm_bytes = round_down(bytes, PAGE_SIZE);
	drm_mm_init(&tdev->hbm, 0, tdev->hbm_bytes);
	tdev->region = tessera_region_register(&tdev->drm, "hbm", tdev->hbm_bytes);
	return PTR_ERR_OR_ZERO(tdev->region);
}

u64 tessera_bo_largest_free(struct tessera_device *tdev)
{
	struct drm_mm_node *hole;
	u64 largest = 0, start, end;

	mutex_lock(&tdev->hbm_lock);
	drm_mm_for_each_hole(hole, &tdev->hbm, start, end)
		largest = max(largest, end - start);
	mutex_unlock(&tdev->hbm_lock);
	return largest;
}

static struct tessera_device *bo_device(struct tessera_bo *bo)
{
	return to_tessera(bo->base.dev);
}

/* Memory of the system, and ours: not HBM, registers or another device's. */
static bool is_counted(struct tessera_bo *bo)
{
	return bo->kind != TESSERA_BO_HBM && bo->kind != TESSERA_BO_BAR0 &&
	       bo->kind != TESSERA_BO_IMPORT;
}

static struct tessera_bo *bo_new(struct tessera_device *tdev, enum tessera_bo_kind kind,
				 size_t bytes)
{
	struct tessera_bo *bo = kzalloc(sizeof(*bo), GFP_KERNEL_ACCOUNT);
	int ret;

	if (!bo)
		return ERR_PTR(-ENOMEM);
	bo->kind = kind;
	bo->base.funcs = &bo_funcs;
	INIT_LIST_HEAD(&bo->peers);
	mutex_init(&bo->lock);
	if (kind == TESSERA_BO_SYSTEM) {
		ret = drm_gem_object_init(&tdev->drm, &bo->base, bytes);
		if (ret) {
			kfree(bo);
			return ERR_PTR(ret);
		}
	} else {
		drm_gem_private_object_init(&tdev->drm, &bo->base, bytes);
	}
	if (is_counted(bo))
		atomic64_add(bytes, &tdev->system_used);
	mutex_lock(&tdev->bos_lock);
	list_add_tail(&bo->link, &tdev->bos);
	mutex_unlock(&tdev->bos_lock);
	return bo;
}

/* A completion ring is read-only for the CPU: the device writes it. */
static enum dma_data_direction direction(struct tessera_bo *bo)
{
	return bo->kind == TESSERA_BO_USERPTR && bo->is_read_only ? DMA_TO_DEVICE :
								     DMA_BIDIRECTIONAL;
}

/* Ends what the device's IOMMU knows of the buffer. Under bos_lock. */
static void bo_detach(struct tessera_bo *bo)
{
	struct device *dev = &bo_device(bo)->pdev->dev;

	if (bo->is_detached)
		return;
	/* The core has not finished the import yet; freeing will see to it. */
	if (bo->kind == TESSERA_BO_IMPORT && !bo->base.import_attach)
		return;
	bo->is_detached = true;
	if (bo->is_peer) {
		tessera_peer_let_go(bo);
		return;
	}
	if (!bo->sgt)
		return;
	if (bo->kind == TESSERA_BO_IMPORT) {
		dma_buf_unmap_attachment_unlocked(bo->base.import_attach, bo->sgt,
						  DMA_BIDIRECTIONAL);
	} else {
		dma_unmap_sgtable(dev, bo->sgt, direction(bo), 0);
		sg_free_table(bo->sgt);
		kfree(bo->sgt);
	}
	bo->sgt = NULL;
}

void tessera_bo_detach_all(struct tessera_device *tdev)
{
	struct tessera_bo *bo;

	mutex_lock(&tdev->bos_lock);
	list_for_each_entry(bo, &tdev->bos, link)
		bo_detach(bo);
	mutex_unlock(&tdev->bos_lock);
}

static void free_pages_of(struct tessera_bo *bo)
{
	unsigned long n = bo->base.size >> PAGE_SHIFT, i;

	if (is_vmalloc_addr(bo->cpu))
		vunmap(bo->cpu);
	if (bo->kind == TESSERA_BO_SYSTEM && bo->pages) {
		drm_gem_put_pages(&bo->base, bo->pages, true, true);
	} else if (bo->kind == TESSERA_BO_CONTIGUOUS && bo->pages) {
		for (i = 0; i < n && bo->pages[i]; i++)
			__free_page(bo->pages[i]);
		kvfree(bo->pages);
	} else if (bo->kind == TESSERA_BO_USERPTR) {
		if (bo->pages)
			unpin_user_pages_dirty_lock(bo->pages, n, !bo->is_read_only);
		kvfree(bo->pages);
	}
}

/*
 * Counts pages that cannot be swapped out against the limit of the process, as other
 * drivers' long pins. bo_free takes them off, also when this failed.
 */
static int count_pinned(struct tessera_bo *bo)
{
	unsigned long limit = rlimit(RLIMIT_MEMLOCK) >> PAGE_SHIFT;
	unsigned long n = bo->base.size >> PAGE_SHIFT;

	bo->mm = current->mm;
	mmgrab(bo->mm);
	if (atomic64_add_return(n, &bo->mm->pinned_vm) > limit && !capable(CAP_IPC_LOCK))
		return -ENOMEM;
	return 0;
}

static void uncount_pinned(struct tessera_bo *bo)
{
	if (!bo->mm)
		return;
	atomic64_sub(bo->base.size >> PAGE_SHIFT, &bo->mm->pinned_vm);
	mmdrop(bo->mm);
}

static void bo_free(struct drm_gem_object *obj)
{
	struct tessera_bo *bo = to_bo(obj);
	struct tessera_device *tdev = bo_device(bo);

	/* At once: unbinding must find it in the list, or nothing of it in the IOMMU. */
	mutex_lock(&tdev->bos_lock);
	list_del(&bo->link);
	bo_detach(bo);
	mutex_unlock(&tdev->bos_lock);
	free_pages_of(bo);
	uncount_pinned(bo);
	if (bo->dummy)
		__free_page(bo->dummy);
	if (is_counted(bo))
		atomic64_sub(obj->size, &tdev->system_used);
	if (drm_mm_node_allocated(&bo->hbm)) {
		mutex_lock(&tdev->hbm_lock);
		drm_mm_remove_node(&bo->hbm);
		tdev->hbm_used -= obj->size;
		mutex_unlock(&tdev->hbm_lock);
	}
	tessera_uncharge(bo->charge, obj->size);
	if (bo->usage) {
		tessera_unuse(bo->usage, TESSERA_USE_HBM, obj->size);
		tessera_usage_put(bo->usage);
	}
	/* Who has a mapping of it holds it. */
	drm_WARN_ON(&tdev->drm, !list_empty(&bo->peers));
	if (bo->kind == TESSERA_BO_IMPORT && obj->import_attach)
		drm_prime_gem_destroy(obj, NULL);
	drm_gem_object_release(obj);
	mutex_destroy(&bo->lock);
	kfree(bo);
}

static struct tessera_bo *new_hbm(struct tessera_device *tdev, struct tessera_file *f,
				  size_t bytes)
{
	struct tessera_bo *bo = bo_new(tdev, TESSERA_BO_HBM, bytes);
	int ret;

	if (IS_ERR(bo))
		return bo;
	ret = tessera_use(f->usage, TESSERA_USE_HBM, bytes);
	if (!ret) {
		kref_get(&f->usage->ref);
		bo->usage = f->usage;
		ret = tessera_charge(tdev->region, bytes, &bo->charge);
	}
	if (!ret) {
		mutex_lock(&tdev->hbm_lock);
		ret = bytes < SZ_2M ? -ENOSPC :
			drm_mm_insert_node_generic(&tdev->hbm, &bo->hbm, bytes, SZ_2M, 0,
						   DRM_MM_INSERT_BEST);
		/* Better somewhere than not at all. */
		if (ret == -ENOSPC)
			ret = drm_mm_insert_node_generic(&tdev->hbm, &bo->hbm, bytes, PAGE_SIZE, 0,
							 DRM_MM_INSERT_BEST);
		if (!ret)
			tdev->hbm_used += bytes;
		mutex_unlock(&tdev->hbm_lock);
	}
	if (!ret)
		ret = tessera_clear(tdev, bo->hbm.start, bytes);
	if (!ret)
		return bo;
	tessera_bo_put(bo);
	return ERR_PTR(ret);
}

/* Whether somebody would have to carry data to and from there. */
static bool is_bounced(struct device *dev, dma_addr_t iova)
{
	/* Behind an IOMMU this option has it say so of all, to see the calls. */
	if (IS_ENABLED(CONFIG_DMA_API_DEBUG) && device_iommu_mapped(dev))
		return false;
	return dma_need_sync(dev, iova);
}

int tessera_bo_probe(struct tessera_device *tdev)
{
	struct device *dev = &tdev->pdev->dev;
	struct page *page = alloc_page(GFP_KERNEL);
	bool is_bad = false;
	dma_addr_t iova;
	int ret;

	if (!page)
		return -ENOMEM;
	iova = dma_map_page(dev, page, 0, PAGE_SIZE, DMA_BIDIRECTIONAL);
	ret = dma_mapping_error(dev, iova);
	if (!ret) {
		is_bad = is_bounced(dev, iova);
		dma_unmap_page(dev, iova, PAGE_SIZE, DMA_BIDIRECTIONAL);
	}
	__free_page(page);
	if (!is_bad)
		return ret;
	drm_err(&tdev->drm, "this kernel bounces DMA (swiotlb=force, SEV, TDX) or keeps no caches "
		"coherent with it: programs and the device share memory, which cannot work\n");
	return -EOPNOTSUPP;
}

static int map_pages(struct tessera_bo *bo)
{
	struct tessera_device *tdev = bo_device(bo);
	struct device *dev = &tdev->pdev->dev;
	unsigned int n = bo->base.size >> PAGE_SHIFT, i;
	struct sg_table *sgt = drm_prime_pages_to_sg(&tdev->drm, bo->pages, n);
	struct scatterlist *sg;
	int ret;

	if (IS_ERR(sgt))
		return PTR_ERR(sgt);
	ret = dma_map_sgtable(dev, sgt, direction(bo), 0);
	if (ret)
		goto free;
	for_each_sgtable_dma_sg(sgt, sg, i) {
		if (is_bounced(dev, sg_dma_address(sg)))
			ret = -EOPNOTSUPP;
	}
	if (!ret && bo->kind == TESSERA_BO_CONTIGUOUS && sgt->nents != 1)
		ret = -ENOMEM;
	if (ret)
		goto unmap;
	bo->sgt = sgt;
	bo->iova = sg_dma_address(sgt->sgl);
	return 0;

unmap:
	dma_unmap_sgtable(dev, sgt, direction(bo), 0);
free:
	sg_free_table(sgt);
	kfree(sgt);
	return ret;
}

static struct tessera_bo *new_system(struct tessera_device *tdev, size_t bytes)
{
	struct tessera_bo *bo = bo_new(tdev, TESSERA_BO_SYSTEM, bytes);
	struct page **pages;
	int ret;

	if (IS_ERR(bo))
		return bo;
	ret = count_pinned(bo);
	if (!ret) {
		pages = drm_gem_get_pages(&bo->base);
		ret = PTR_ERR_OR_ZERO(pages);
	}
	if (!ret) {
		bo->pages = pages;
		ret = map_pages(bo);
	}
	if (!ret)
		return bo;
	tessera_bo_put(bo);
	return ERR_PTR(ret);
}

/*
 * Pages of one piece if there are, else behind an IOMMU single ones, which it shows as one.
 * Ours, not the DMA allocator's: that takes its memory back with the device.
 */
static int get_contiguous(struct tessera_bo *bo)
{
	unsigned long n = bo->base.size >> PAGE_SHIFT, i;
	bool has_iommu = device_iommu_mapped(&bo_device(bo)->pdev->dev);
	gfp_t gfp = GFP_KERNEL_ACCOUNT | __GFP_ZERO | __GFP_NOWARN;
	void *piece = NULL;

	bo->pages = kvcalloc(n, sizeof(*bo->pages), GFP_KERNEL_ACCOUNT);
	if (!bo->pages)
		return -ENOMEM;
	if (get_order(bo->base.size) <= MAX_PAGE_ORDER)
		piece = alloc_pages_exact(bo->base.size, gfp | (has_iommu ? __GFP_NORETRY :
								__GFP_RETRY_MAYFAIL));
	if (!piece && !has_iommu)
		return -ENOMEM;
	bo->is_one_piece = piece;
	for (i = 0; i < n; i++) {
		bo->pages[i] = piece ? virt_to_page(piece + (i << PAGE_SHIFT)) : alloc_page(gfp);
		if (!bo->pages[i])
			return -ENOMEM;
	}
	return 0;
}

static struct tessera_bo *new_contiguous(struct tessera_device *tdev, size_t bytes)
{
	struct tessera_bo *bo = bo_new(tdev, TESSERA_BO_CONTIGUOUS, bytes);
	int ret;

	if (IS_ERR(bo))
		return bo;
	ret = count_pinned(bo);
	if (!ret)
		ret = get_contiguous(bo);
	if (!ret)
		ret = map_pages(bo);
	if (!ret)
		return bo;
	tessera_bo_put(bo);
	return ERR_PTR(ret);
}

struct tessera_bo *tessera_bo_ring(struct tessera_device *tdev, size_t bytes)
{
	struct tessera_bo *bo = new_contiguous(tdev, bytes);

	if (IS_ERR(bo))
		return bo;
	bo->is_private = true;
	bo->cpu = bo->is_one_piece ? page_address(bo->pages[0]) :
		  vmap(bo->pages, bytes >> PAGE_SHIFT, VM_MAP, PAGE_KERNEL);
	if (bo->cpu)
		return bo;
	tessera_bo_put(bo);
	return ERR_PTR(-ENOMEM);
}

struct tessera_bo *tessera_bo_bar0(struct tessera_device *tdev, u32 offset)
{
	struct tessera_bo *bo = bo_new(tdev, TESSERA_BO_BAR0, PAGE_SIZE);

	if (IS_ERR(bo))
		return bo;
	bo->is_private = true;
	bo->offset = offset;
	bo->dummy = alloc_page(GFP_KERNEL_ACCOUNT | __GFP_ZERO);
	if (bo->dummy)
		return bo;
	tessera_bo_put(bo);
	return ERR_PTR(-ENOMEM);
}

void tessera_bo_revoke(struct tessera_bo *bo)
{
	if (!bo)
		return;
	mutex_lock(&bo->lock);
	WRITE_ONCE(bo->is_revoked, true);
	drm_vma_node_unmap(&bo->base.vma_node, bo->base.dev->anon_inode->i_mapping);
	mutex_unlock(&bo->lock);
}

/* One that is not revoked, and a reference to it; or NULL. */
static struct tessera_bo *find_bar0(struct tessera_device *tdev)
{
	struct tessera_bo *bo, *found = NULL;

	mutex_lock(&tdev->bos_lock);
	list_for_each_entry(bo, &tdev->bos, link) {
		if (bo->kind == TESSERA_BO_BAR0 && !READ_ONCE(bo->is_revoked) &&
		    kref_get_unless_zero(&bo->base.refcount)) {
			found = bo;
			break;
		}
	}
	mutex_unlock(&tdev->bos_lock);
	return found;
}

void tessera_bo_revoke_all(struct tessera_device *tdev)
{
	struct tessera_bo *bo;

	while ((bo = find_bar0(tdev))) {
		tessera_bo_revoke(bo);
		tessera_bo_put(bo);
	}
}

static vm_fault_t fault_bar0(struct vm_fault *vmf, struct tessera_bo *bo)
{
	struct tessera_device *tdev = bo_device(bo);
	struct vm_area_struct *vma = vmf->vma;
	phys_addr_t page = tdev->bar0 + bo->offset;
	vm_fault_t ret;
	int idx;

	mutex_lock(&bo->lock);
	if (!bo->is_revoked && drm_dev_enter(&tdev->drm, &idx)) {
		ret = vmf_insert_pfn(vma, vmf->address, PHYS_PFN(page));
		drm_dev_exit(idx);
	} else {
		ret = vmf_insert_pfn_prot(vma, vmf->address, page_to_pfn(bo->dummy),
					  vm_get_page_prot(vma->vm_flags));
	}
	mutex_unlock(&bo->lock);
	return ret;
}

static unsigned long pfn_of(struct tessera_bo *bo, unsigned long page)
{
	if (bo->kind == TESSERA_BO_HBM)
		return PHYS_PFN(bo_device(bo)->bar2 + bo->hbm.start) + page;
	return page_to_pfn(bo->pages[page]);
}

/* Maps the page at fault, then its neighbours as far as they go. */
static vm_fault_t fault_pages(struct vm_fault *vmf, struct tessera_bo *bo)
{
	struct vm_area_struct *vma = vmf->vma;
	/* Relative to the buffer, also in a part of a mapping that was split. */
	unsigned long first = vma->vm_pgoff - drm_vma_node_start(&bo->base.vma_node);
	unsigned long at = (vmf->address - vma->vm_start) >> PAGE_SHIFT;
	unsigned long n = min(vma_pages(vma), (bo->base.size >> PAGE_SHIFT) - first);
	unsigned long i = round_down(at, FAULT_AROUND);
	unsigned long end = min(n, i + FAULT_AROUND);
	vm_fault_t ret;

	if (first >= bo->base.size >> PAGE_SHIFT || at >= n)
		return VM_FAULT_SIGBUS;
	ret = vmf_insert_pfn(vma, vmf->address & PAGE_MASK, pfn_of(bo, first + at));
	for (; ret == VM_FAULT_NOPAGE && i < end; i++) {
		if (vmf_insert_pfn(vma, vma->vm_start + (i << PAGE_SHIFT),
				   pfn_of(bo, first + i)) != VM_FAULT_NOPAGE)
			break;
	}
	return ret;
}

static vm_fault_t bo_fault(struct vm_fault *vmf)
{
	struct tessera_bo *bo = to_bo(vmf->vma->vm_private_data);
	vm_fault_t ret = VM_FAULT_SIGBUS;
	int idx;

	if (bo->kind == TESSERA_BO_BAR0)
		return fault_bar0(vmf, bo);
	if (bo->kind == TESSERA_BO_USERPTR || bo->kind == TESSERA_BO_IMPORT)
		return ret;
	if (drm_dev_enter(bo->base.dev, &idx)) {
		ret = fault_pages(vmf, bo);
		drm_dev_exit(idx);
	}
	return ret;
}

static const struct vm_operations_struct bo_vm_ops = {
	.fault = bo_fault,
	.open = drm_gem_vm_open,
	.close = drm_gem_vm_close,
};

static int bo_mmap(struct drm_gem_object *obj, struct vm_area_struct *vma)
{
	struct tessera_bo *bo = to_bo(obj);

	if (bo->kind == TESSERA_BO_USERPTR || bo->kind == TESSERA_BO_IMPORT)
		return -EOPNOTSUPP;
	/* A private copy of device memory would be neither. */
	if ((vma->vm_flags & (VM_SHARED | VM_MAYWRITE)) == VM_MAYWRITE)
		return -EINVAL;
	if (bo->is_read_only) {
		if (vma->vm_flags & VM_WRITE)
			return -EACCES;
		vm_flags_clear(vma, VM_MAYWRITE);
	}
	vm_flags_set(vma, VM_IO | VM_PFNMAP | VM_DONTEXPAND | VM_DONTDUMP);
	/* A queue has one driver: a child has no part of it, nor of its context's wake page. */
	if (bo->is_private)
		vm_flags_set(vma, VM_DONTCOPY);
	vma->vm_page_prot = vm_get_page_prot(vma->vm_flags);
	if (bo->kind == TESSERA_BO_HBM)
		vma->vm_page_prot = pgprot_writecombine(vma->vm_page_prot);
	else if (bo->kind == TESSERA_BO_BAR0)
		vma->vm_page_prot = pgprot_noncached(vma->vm_page_prot);
	return 0;
}

static struct dma_buf *bo_export(struct drm_gem_object *obj, int flags)
{
	struct tessera_bo *bo = to_bo(obj);

	if (bo->is_private || bo->kind == TESSERA_BO_USERPTR)
		return ERR_PTR(-EPERM);
	return tessera_bo_is_hbm(bo) ? tessera_peer_export(bo, flags) :
	       drm_gem_prime_export(obj, flags);
}

/* For other devices; HBM is tessera_peer.c's. */
static struct sg_table *bo_get_sg_table(struct drm_gem_object *obj)
{
	struct tessera_bo *bo = to_bo(obj);

	if (bo->kind != TESSERA_BO_SYSTEM && bo->kind != TESSERA_BO_CONTIGUOUS)
		return ERR_PTR(-EOPNOTSUPP);
	return drm_prime_pages_to_sg(obj->dev, bo->pages, obj->size >> PAGE_SHIFT);
}

static const struct drm_gem_object_funcs bo_funcs = {
	.free = bo_free,
	.export = bo_export,
	.get_sg_table = bo_get_sg_table,
	.mmap = bo_mmap,
	.vm_ops = &bo_vm_ops,
};

static struct drm_gem_object *import_peer(struct tessera_device *tdev, struct dma_buf *buf)
{
	struct tessera_bo *bo = bo_new(tdev, TESSERA_BO_IMPORT, PAGE_ALIGN(buf->size));
	int ret;

	if (IS_ERR(bo))
		return ERR_CAST(bo);
	ret = tessera_peer_attach(bo, buf);
	if (!ret)
		return &bo->base;
	tessera_bo_put(bo);
	return ERR_PTR(ret);
}

/* As a whole before unbinding, or not at all: the core's ioctls do not hold the device. */
struct drm_gem_object *tessera_bo_import(struct drm_device *drm, struct dma_buf *buf)
{
	struct tessera_bo *own = tessera_peer_own(drm, buf);
	struct drm_gem_object *obj;
	int idx;

	if (!drm_dev_enter(drm, &idx))
		return ERR_PTR(-ENODEV);
	if (own) {
		obj = &own->base;
		drm_gem_object_get(obj);
	} else if (tessera_peer_may_go(buf)) {
		obj = import_peer(to_tessera(drm), buf);
	} else {
		obj = drm_gem_prime_import(drm, buf);
	}
	drm_dev_exit(idx);
	return obj;
}

struct drm_gem_object *
tessera_bo_import_sg_table(struct drm_device *drm, struct dma_buf_attachment *attach,
			   struct sg_table *sgt)
{
	struct tessera_bo *bo = bo_new(to_tessera(drm), TESSERA_BO_IMPORT,
				       PAGE_ALIGN(attach->dmabuf->size));

	if (IS_ERR(bo))
		return ERR_CAST(bo);
	bo->sgt = sgt;
	return &bo->base;
}

int tessera_bo_share(struct tessera_bo *bo, struct drm_file *file, u32 *handle,
		     u64 *mmap_offset)
{
	int ret = 0;

	if (mmap_offset) {
		ret = drm_gem_create_mmap_offset(&bo->base);
		*mmap_offset = drm_vma_node_offset_addr(&bo->base.vma_node);
	}
	return ret ? ret : drm_gem_handle_create(file, &bo->base, handle);
}

static bool is_too_much(u64 bytes)
{
	return !bytes || bytes > S64_MAX - PAGE_SIZE ||
	       bytes >> PAGE_SHIFT > INT_MAX / sizeof(struct page *);
}

static struct tessera_bo *bo_create(struct tessera_device *tdev, struct tessera_file *f,
				    u32 flags, u64 bytes)
{
	switch (flags) {
	case DRM_TESSERA_BO_HBM:
	case DRM_TESSERA_BO_HBM | DRM_TESSERA_BO_CONTIGUOUS:
		return new_hbm(tdev, f, bytes);
	case DRM_TESSERA_BO_SYSTEM:
	case DRM_TESSERA_BO_SYSTEM | DRM_TESSERA_BO_CONTIGUOUS:
		/* Refused before the machine is brought to its knees. */
		if (bytes >> PAGE_SHIFT > totalram_pages())
			return ERR_PTR(-ENOMEM);
		return flags & DRM_TESSERA_BO_CONTIGUOUS ?
		       new_contiguous(tdev, bytes) : new_system(tdev, bytes);
	default:
		return ERR_PTR(-EINVAL);
	}
}

/* The handle last: what another thread may use or close by then is not taken back. */
static int map_and_give(struct tessera_bo *bo, struct drm_tessera_bo_create *args,
			struct drm_file *file)
{
	struct tessera_ctx *ctx = tessera_ctx_get(file->driver_priv, args->ctx);
	int ret;

	if (!ctx)
		return -ENOENT;
	ret = tessera_ctx_map(ctx, bo, 0, 0, HW_MAP_WRITE, &args->va);
	if (!ret) {
		ret = tessera_bo_share(bo, file, &args->handle, &args->mmap_offset);
		if (ret)
			tessera_ctx_unmap(ctx, args->va, bo);
	}
	tessera_ctx_put(ctx);
	return ret;
}

int tessera_ioctl_bo_create(struct drm_device *drm, void *data, struct drm_file *file)
{
	struct drm_tessera_bo_create *args = data;
	struct tessera_bo *bo;
	int ret;

	if (args->zero || (!args->ctx && args->va) || is_too_much(args->size))
		return -EINVAL;
	args->size = PAGE_ALIGN(args->size);
	bo = bo_create(to_tessera(drm), file->driver_priv, args->flags, args->size);
	if (IS_ERR(bo))
		return PTR_ERR(bo);
	if (args->ctx)
		ret = map_and_give(bo, args, file);
	else
		ret = tessera_bo_share(bo, file, &args->handle, &args->mmap_offset);
	tessera_bo_put(bo);
	return ret;
}

static int pin(struct tessera_bo *bo, u64 address, unsigned long n)
{
	unsigned int flags = FOLL_LONGTERM | (bo->is_read_only ? 0 : FOLL_WRITE);
	struct page **pages = kvmalloc_array(n, sizeof(*pages), GFP_KERNEL_ACCOUNT);
	unsigned long done = 0;

	if (!pages)
		return -ENOMEM;
	while (done < n) {
		int got = pin_user_pages_fast(address + (done << PAGE_SHIFT), n - done,
					      flags, pages + done);

		if (got <= 0) {
			unpin_user_pages(pages, done);
			kvfree(pages);
			return got ? got : -EFAULT;
		}
		done += got;
	}
	bo->pages = pages;
	return 0;
}

static int map_guarded(struct tessera_bo *bo)
{
	int ret, idx;

	if (!drm_dev_enter(bo->base.dev, &idx))
		return -ENODEV;
	ret = map_pages(bo);
	drm_dev_exit(idx);
	return ret;
}

int tessera_ioctl_bo_userptr(struct drm_device *drm, void *data, struct drm_file *file)
{
	struct drm_tessera_bo_userptr *args = data;
	struct tessera_bo *bo;
	u64 end;
	int ret;

	if (args->flags & ~DRM_TESSERA_BO_READ_ONLY || is_too_much(args->size) ||
	    !PAGE_ALIGNED(args->address | args->size))
		return -EINVAL;
	if (check_add_overflow(args->address, args->size, &end) ||
	    !access_ok(u64_to_user_ptr(args->address), args->size))
		return -EFAULT;
	bo = bo_new(to_tessera(drm), TESSERA_BO_USERPTR, args->size);
	if (IS_ERR(bo))
		return PTR_ERR(bo);
	bo->is_read_only = args->flags & DRM_TESSERA_BO_READ_ONLY;
	ret = count_pinned(bo);
	if (!ret)
		ret = pin(bo, args->address, args->size >> PAGE_SHIFT);
	/* The device is held for this alone: pinning may take as long as the caller's memory. */
	if (!ret)
		ret = map_guarded(bo);
	if (!ret)
		ret = tessera_bo_share(bo, file, &args->handle, NULL);
	tessera_bo_put(bo);
	return ret;
}

static u32 bo_flags(struct tessera_bo *bo)
{
	u32 flags = bo->is_read_only ? DRM_TESSERA_BO_READ_ONLY : 0;

	switch (bo->kind) {
	case TESSERA_BO_HBM:
		return flags | DRM_TESSERA_BO_HBM | DRM_TESSERA_BO_CONTIGUOUS;
	case TESSERA_BO_SYSTEM:
		return flags | DRM_TESSERA_BO_SYSTEM;
	case TESSERA_BO_CONTIGUOUS:
		return flags | DRM_TESSERA_BO_SYSTEM | DRM_TESSERA_BO_CONTIGUOUS;
	case TESSERA_BO_USERPTR:
		return flags | DRM_TESSERA_BO_USER;
	case TESSERA_BO_IMPORT:
		return flags | DRM_TESSERA_BO_IMPORTED;
	default:
		return flags;
	}
}

static u32 count_segments(struct tessera_bo *bo)
{
	struct dma_resv *resv = bo->is_peer ? bo->base.import_attach->dmabuf->resv : NULL;
	u32 n;

	if (resv)
		dma_resv_lock(resv, NULL);
	n = bo->sgt ? bo->sgt->nents : 1;
	if (resv)
		dma_resv_unlock(resv);
	return n;
}

int tessera_ioctl_bo_info(struct drm_device *drm, void *data, struct drm_file *file)
{
	struct drm_tessera_bo_info *args = data;
	struct drm_gem_object *obj;
	struct tessera_bo *bo;

	if (args->zero)
		return -EINVAL;
	obj = drm_gem_object_lookup(file, args->handle);
	if (!obj)
		return -ENOENT;
	bo = to_bo(obj);
	args->flags = bo_flags(bo);
	args->size = obj->size;
	args->mmap_offset = drm_mm_node_allocated(&obj->vma_node.vm_node) ?
			    drm_vma_node_offset_addr(&obj->vma_node) : 0;
	args->segments = count_segments(bo);
	drm_gem_object_put(obj);
	return 0;
}
