/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * HBM that other devices reach by themselves (peer-to-peer DMA), from both sides.
 *
 * As exporter: a dma-buf of HBM is the buffer's range of BAR2, mapped for each device that
 * attaches as a resource, without pages, where the PCI core says that requests get from there
 * to here. HBM does not move, so pinning is nothing. It is taken back when the device is lost,
 * unbound or reset: importers are told, and what they have not let go of by then is taken from
 * their IOMMU. After a reset it may be mapped again.
 *
 * As importer: memory of a device that may take it back is pinned, since queues that the kernel
 * does not see use it at any time; when it is taken back it leaves all contexts before the
 * exporter goes on. Their mappings stay as holes until UNMAP: work that uses them faults.
 *
 * All of it is under the dma-buf's reservation lock, which for HBM is the buffer's own.
 */
#include <linux/dma-buf.h>
#include <linux/dma-mapping.h>
#include <linux/dma-resv.h>
#include <linux/pci-p2pdma.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>

#include <drm/drm_drv.h>
#include <drm/drm_prime.h>
#include <drm/drm_print.h>

#include "tessera_compat.h"
#include "tessera_drv.h"

#define PIECE_BYTES ((u64)SZ_1G)	/* of a scatterlist's entry, which has 32 bits */
#define REVOKE_MS 10000u		/* for importers that let go by a fence */

/* A mapping of HBM for another device. */
struct peer_map {
	struct sg_table sgt;
	struct list_head link;		/* of bo.peers */
	struct dma_buf_attachment *attach;
	enum dma_data_direction dir;
	dma_addr_t iova;
	bool is_cut;			/* taken back: there is no address any more */
};

static struct tessera_device *bo_device(struct tessera_bo *bo)
{
	return to_tessera(bo->base.dev);
}

/* ---- as exporter ---- */

/* Why another device can't have it; NULL: it can. */
static const char *refusal(struct tessera_device *tdev, struct dma_buf_attachment *attach)
{
	if (!attach->peer2peer)
		return "its driver takes no memory of other devices";
	if (!IS_ENABLED(CONFIG_PCI_P2PDMA))
		return "this kernel is built without PCI_P2PDMA";
	if (pci_p2pdma_distance(tdev->pdev, attach->dev, false) < 0)
		return "the PCI core knows of no way between the two: put both below one switch, "
		       "or on a host bridge that it trusts";
	return NULL;
}

static int peer_attach(struct dma_buf *buf, struct dma_buf_attachment *attach)
{
	struct tessera_bo *bo = to_bo(buf->priv);
	struct tessera_device *tdev = bo_device(bo);
	const char *why = refusal(tdev, attach);

	if (!why)
		return 0;
	dev_err_ratelimited(&tdev->pdev->dev, "%s cannot reach HBM: %s\n",
			    dev_name(attach->dev), why);
	return -EOPNOTSUPP;
}

static int peer_pin(struct dma_buf_attachment *attach)
{
	return 0;
}

static void peer_unpin(struct dma_buf_attachment *attach)
{
}

static void cut(struct peer_map *m)
{
	if (!m->is_cut)
		dma_unmap_resource(m->attach->dev, m->iova, m->attach->dmabuf->size, m->dir, 0);
	m->is_cut = true;
	list_del_init(&m->link);
}

static int fill_table(struct sg_table *sgt, dma_addr_t iova, u64 bytes)
{
	int ret = sg_alloc_table(sgt, DIV_ROUND_UP_ULL(bytes, PIECE_BYTES), GFP_KERNEL);
	struct scatterlist *sg;
	unsigned int i;

	if (ret)
		return ret;
	for_each_sgtable_sg(sgt, sg, i) {
		u64 n = min(bytes, PIECE_BYTES);

		sg_set_page(sg, NULL, n, 0);
		sg_dma_address(sg) = iova;
		sg_dma_len(sg) = n;
		iova += n;
		bytes -= n;
	}
	return 0;
}

static struct sg_table *peer_map(struct dma_buf_attachment *attach, enum dma_data_direction dir)
{
	struct tessera_bo *bo = to_bo(attach->dmabuf->priv);
	struct tessera_device *tdev = bo_device(bo);
	enum tessera_state state = READ_ONCE(tdev->state);
	struct peer_map *m;
	int ret;

	/* A loss that begins now finds this mapping, or is seen here. */
	if (state != TESSERA_RUNNING)
		return ERR_PTR(state == TESSERA_RESET_DUE || state == TESSERA_RESETTING ?
			       -EBUSY : -ENODEV);
	m = kzalloc(sizeof(*m), GFP_KERNEL);
	if (!m)
		return ERR_PTR(-ENOMEM);
	m->attach = attach;
	m->dir = dir;
	m->iova = dma_map_resource(attach->dev, tdev->bar2 + bo->hbm.start, bo->base.size, dir, 0);
	ret = dma_mapping_error(attach->dev, m->iova);
	if (ret)
		goto free;
	ret = fill_table(&m->sgt, m->iova, bo->base.size);
	if (ret)
		goto unmap;
	list_add(&m->link, &bo->peers);
	return &m->sgt;

unmap:
	dma_unmap_resource(attach->dev, m->iova, bo->base.size, dir, 0);
free:
	kfree(m);
	return ERR_PTR(ret);
}

static void peer_unmap(struct dma_buf_attachment *attach, struct sg_table *sgt,
		       enum dma_data_direction dir)
{
	struct peer_map *m = container_of(sgt, struct peer_map, sgt);

	cut(m);
	sg_free_table(sgt);
	kfree(m);
}

static const struct dma_buf_ops peer_ops = {
	.attach = peer_attach,
	.pin = peer_pin,
	.unpin = peer_unpin,
	.map_dma_buf = peer_map,
	.unmap_dma_buf = peer_unmap,
	.release = drm_gem_dmabuf_release,
	.mmap = drm_gem_dmabuf_mmap,
};

struct dma_buf *tessera_peer_export(struct tessera_bo *bo, int flags)
{
	struct drm_device *drm = bo->base.dev;
	struct dma_buf_export_info info = {
		.exp_name = TESSERA_NAME,
		.owner = drm->driver->fops->owner,
		.ops = &peer_ops,
		.size = bo->base.size,
		.flags = flags,
		.priv = &bo->base,
		.resv = bo->base.resv,
	};

	WRITE_ONCE(bo->is_exported, true);
	return drm_gem_dmabuf_export(drm, &info);
}

struct tessera_bo *tessera_peer_own(struct drm_device *drm, struct dma_buf *buf)
{
	struct drm_gem_object *obj = buf->ops == &peer_ops ? buf->priv : NULL;

	return obj && obj->dev == drm ? to_bo(obj) : NULL;
}

static void revoke(struct tessera_bo *bo)
{
	struct peer_map *m, *next;

	dma_resv_lock(bo->base.resv, NULL);
	m = list_first_entry_or_null(&bo->peers, struct peer_map, link);
	if (m) {
		/* Who has a mapping holds the dma-buf. */
		tessera_invalidate_mappings(m->attach->dmabuf);
		dma_resv_wait_timeout(bo->base.resv, DMA_RESV_USAGE_BOOKKEEP, false,
				      msecs_to_jiffies(REVOKE_MS));
		list_for_each_entry_safe(m, next, &bo->peers, link)
			cut(m);
	}
	dma_resv_unlock(bo->base.resv);
}

/* One that pass has not seen yet, and a reference to it; or NULL. */
static struct tessera_bo *find_exported(struct tessera_device *tdev, int pass)
{
	struct tessera_bo *bo, *found = NULL;

	mutex_lock(&tdev->bos_lock);
	list_for_each_entry(bo, &tdev->bos, link) {
		if (tessera_bo_is_hbm(bo) && READ_ONCE(bo->is_exported) && bo->pass != pass &&
		    kref_get_unless_zero(&bo->base.refcount)) {
			bo->pass = pass;
			found = bo;
			break;
		}
	}
	mutex_unlock(&tdev->bos_lock);
	return found;
}

void tessera_peer_revoke_all(struct tessera_device *tdev)
{
	int pass = atomic_inc_return(&tdev->peer_pass);
	struct tessera_bo *bo;

	while ((bo = find_exported(tdev, pass))) {
		revoke(bo);
		tessera_bo_put(bo);
	}
}

/* ---- as importer ---- */

static void drop(struct tessera_bo *bo)
{
	if (bo->sgt)
		dma_buf_unmap_attachment(bo->base.import_attach, bo->sgt, DMA_BIDIRECTIONAL);
	bo->sgt = NULL;
}

/* The exporter waits for this, and holds the reservation lock. */
static void taken_back(struct dma_buf_attachment *attach)
{
	struct tessera_bo *bo = attach->importer_priv;

	/* Before the import is done nobody has it mapped. */
	if (!bo->sgt)
		return;
	tessera_ctx_cut(bo_device(bo), bo);
	drop(bo);
}

static const struct dma_buf_attach_ops attach_ops = {
	.allow_peer2peer = true,
	.TESSERA_INVALIDATED = taken_back,
};

bool tessera_peer_may_go(const struct dma_buf *buf)
{
	return buf->ops->pin;
}

int tessera_peer_attach(struct tessera_bo *bo, struct dma_buf *buf)
{
	struct dma_buf_attachment *attach;
	int ret;

	attach = dma_buf_dynamic_attach(buf, &bo_device(bo)->pdev->dev, &attach_ops, bo);
	if (IS_ERR(attach))
		return PTR_ERR(attach);
	get_dma_buf(buf);
	dma_resv_lock(buf->resv, NULL);
	bo->is_peer = true;
	bo->base.import_attach = attach;
	ret = dma_buf_pin(attach);
	bo->is_pinned = !ret;
	if (!ret)
		ret = tessera_ctx_fetch(bo);
	dma_resv_unlock(buf->resv);
	return ret;
}

void tessera_peer_let_go(struct tessera_bo *bo)
{
	struct dma_buf_attachment *attach = bo->base.import_attach;

	dma_resv_lock(attach->dmabuf->resv, NULL);
	drop(bo);
	if (bo->is_pinned)
		dma_buf_unpin(attach);
	bo->is_pinned = false;
	dma_resv_unlock(attach->dmabuf->resv);
}
