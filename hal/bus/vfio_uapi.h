/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HAL_BUS_VFIO_UAPI_H
#define HAL_BUS_VFIO_UAPI_H
/*
 * The part of the kernel's VFIO and iommufd interfaces that the bus uses. Defined here
 * because headers of distributions in use lack device files and iommufd; sizes are those
 * of the first kernels that had them, which later ones accept.
 */
#include <stdint.h>

#define VFIO_IOCTL(n) (0x3b64u + (n))	/* _IO(';', 100 + n) */
#define IOMMUFD_IOCTL(n) (0x3b80u + (n))	/* _IO(';', 0x80 + n) */

enum vfio_ioctl {
	/* container */
	VFIO_API_VERSION = VFIO_IOCTL(0), VFIO_CHECK_EXT = VFIO_IOCTL(1),
	VFIO_SET_IOMMU_KIND = VFIO_IOCTL(2), VFIO_IOMMU_INFO = VFIO_IOCTL(12),
	VFIO_MAP = VFIO_IOCTL(13), VFIO_UNMAP = VFIO_IOCTL(14),
	/* group */
	VFIO_GROUP_STATUS = VFIO_IOCTL(3), VFIO_GROUP_CONTAINER = VFIO_IOCTL(4),
	VFIO_GROUP_DEVICE_FD = VFIO_IOCTL(6),
	/* device */
	VFIO_DEVICE_INFO = VFIO_IOCTL(7), VFIO_REGION_INFO = VFIO_IOCTL(8),
	VFIO_IRQ_INFO = VFIO_IOCTL(9), VFIO_IRQ_SET = VFIO_IOCTL(10),
	VFIO_RESET = VFIO_IOCTL(11), VFIO_BIND_IOMMUFD = VFIO_IOCTL(18),
	VFIO_ATTACH = VFIO_IOCTL(19),
	/* iommufd */
	IOMMUFD_DESTROY = IOMMUFD_IOCTL(0), IOMMUFD_IOAS_ALLOC = IOMMUFD_IOCTL(1),
	IOMMUFD_IOVA_RANGES = IOMMUFD_IOCTL(4), IOMMUFD_MAP = IOMMUFD_IOCTL(5),
	IOMMUFD_UNMAP = IOMMUFD_IOCTL(6),
};

enum {
	VFIO_KIND_TYPE1V2 = 3, VFIO_KIND_NOIOMMU = 8,
	VFIO_GROUP_VIABLE = 1u << 0,
	VFIO_DEVICE_CAN_RESET = 1u << 0, VFIO_DEVICE_PCI = 1u << 1,
	VFIO_REGION_CAN_MAP = 1u << 2, VFIO_REGION_HAS_CAPS = 1u << 3,
	VFIO_INFO_PGSIZES = 1u << 0, VFIO_INFO_HAS_CAPS = 1u << 1,
	VFIO_CAP_SPARSE = 1, VFIO_CAP_IOVA_RANGES = 1,
	VFIO_DMA_READ = 1u << 0, VFIO_DMA_WRITE = 1u << 1,
	VFIO_IRQ_CAN_EVENTFD = 1u << 0, VFIO_IRQ_NO_RESIZE = 1u << 3,
	VFIO_IRQ_NONE = 1u << 0, VFIO_IRQ_EVENTFD = 1u << 2, VFIO_IRQ_TRIGGER = 1u << 5,
	IOMMUFD_FIXED = 1u << 0, IOMMUFD_WRITE = 1u << 1, IOMMUFD_READ = 1u << 2,
};

/* Regions and interrupt indexes of a PCI function. */
enum {
	VFIO_BAR0 = 0, VFIO_BAR2 = 2, VFIO_CONFIG = 7,
	VFIO_MSI = 1, VFIO_MSIX = 2, VFIO_ERR = 3, VFIO_REQ = 4,
};

struct vfio_group_status { uint32_t argsz, flags; };
struct vfio_device_info { uint32_t argsz, flags, n_regions, n_irqs; };
struct vfio_region { uint32_t argsz, flags, index, cap_offset; uint64_t bytes, offset; };
struct vfio_irq_info { uint32_t argsz, flags, index, count; };
struct vfio_irqs { uint32_t argsz, flags, index, start, count; int32_t fd[]; };
struct vfio_cap { uint16_t id, version; uint32_t next; };
struct vfio_iommu_info {
	uint32_t argsz, flags;
	uint64_t pgsizes;
	uint32_t cap_offset, pad;
};
struct vfio_cap_ranges { struct vfio_cap cap; uint32_t n, pad; };
struct vfio_range { uint64_t first, last; };
struct vfio_dma_map { uint32_t argsz, flags; uint64_t vaddr, iova, bytes; };
struct vfio_dma_unmap { uint32_t argsz, flags; uint64_t iova, bytes; };

struct vfio_bind { uint32_t argsz, flags; int32_t iommufd; uint32_t id; };
struct vfio_attach { uint32_t argsz, flags, id; };
struct iommufd_destroy { uint32_t size, id; };
struct iommufd_ioas { uint32_t size, flags, id; };
struct iommufd_ranges { uint32_t size, ioas, n, pad; uint64_t ranges, alignment; };
struct iommufd_map { uint32_t size, flags, ioas, pad; uint64_t vaddr, bytes, iova; };
struct iommufd_unmap { uint32_t size, ioas; uint64_t iova, bytes; };

#endif
