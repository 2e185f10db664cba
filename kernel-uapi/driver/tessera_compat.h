/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef TESSERA_COMPAT_H
#define TESSERA_COMPAT_H
/* What differs between the kernels that this builds for, 6.12 to 7.3. */
#include <linux/version.h>

#include <drm/drm_device.h>
#include <drm/drm_drv.h>

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 12, 0)
#error "the tessera driver needs Linux 6.12 or newer"
#endif

#include <linux/err.h>
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 14, 0)
#include <linux/cgroup_dmem.h>
#endif

/* drm_driver.date ended with 6.14. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 14, 0)
#define TESSERA_DRIVER_DATE .date = "20260101",
#else
#define TESSERA_DRIVER_DATE
#endif

/* A string since 6.13. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 13, 0)
#define TESSERA_IMPORT_DMA_BUF MODULE_IMPORT_NS(DMA_BUF)
#else
#define TESSERA_IMPORT_DMA_BUF MODULE_IMPORT_NS("DMA_BUF")
#endif

/* What an importer is called by when memory is taken back, and how an exporter says so: both got
 * another name in 7.1. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(7, 1, 0)
#define TESSERA_INVALIDATED invalidate_mappings
#define tessera_invalidate_mappings dma_buf_invalidate_mappings
#else
#define TESSERA_INVALIDATED move_notify
#define tessera_invalidate_mappings dma_buf_move_notify
#endif

/*
 * Memory of the device, charged to the cgroup of whoever makes a buffer (dmem, 6.14). A region is
 * NULL, and nothing is charged, where the kernel has none of it.
 */
struct tessera_region;
struct tessera_charge;

static inline struct tessera_region *tessera_region_register(struct drm_device *drm,
							     const char *name, u64 bytes)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 14, 0)
	return (struct tessera_region *)drmm_cgroup_register_region(drm, name, bytes);
#else
	return NULL;
#endif
}

/* EMFILE: the cgroup has as much as it may. */
static inline int tessera_charge(struct tessera_region *region, u64 bytes,
				 struct tessera_charge **out)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 14, 0)
	struct dmem_cgroup_pool_state *pool = NULL;
	int ret = region ? dmem_cgroup_try_charge((struct dmem_cgroup_region *)region, bytes,
						  &pool, NULL) : 0;

	if (ret)
		return ret == -EAGAIN ? -EMFILE : ret;
	*out = (struct tessera_charge *)pool;
#endif
	return 0;
}

static inline void tessera_uncharge(struct tessera_charge *charge, u64 bytes)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 14, 0)
	if (charge)
		dmem_cgroup_uncharge((struct dmem_cgroup_pool_state *)charge, bytes);
#endif
}

#endif
