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

/* Tells user space that only rebinding the driver helps; needs 6.15. */
static inline void tessera_send_wedged(struct drm_device *drm)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 17, 0)
	drm_dev_wedged_event(drm, DRM_WEDGE_RECOVERY_REBIND, NULL);
#elif LINUX_VERSION_CODE >= KERNEL_VERSION(6, 15, 0)
	drm_dev_wedged_event(drm, DRM_WEDGE_RECOVERY_REBIND);
#endif
}

#endif
