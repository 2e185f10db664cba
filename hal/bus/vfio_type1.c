/* SPDX-License-Identifier: Apache-2.0 */
/* VFIO by groups with an IOMMU: a container of type 1, version 2. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "hal/bus/vfio.h"

#define MAX_INFO (1u << 20)

/* The ranges among the capabilities; without any, what every x86 has. */
static bool read_ranges(struct vfio *v, const uint8_t *info, size_t bytes, uint32_t at)
{
	static const struct vfio_range usual[] = { { 0, 0xfedfffff },
						   { 0xfef00000, (1ull << 39) - 1 } };
	struct vfio_range range[VFIO_MAX_RANGES];
	struct vfio_cap_ranges head;

	for (unsigned n = 0; at && n < 64; n++, at = head.cap.next) {
		if (at > bytes || bytes - at < sizeof(head.cap))
			return false;
		memcpy(&head.cap, info + at, sizeof(head.cap));
		if (head.cap.id != VFIO_CAP_IOVA_RANGES)
			continue;
		if (bytes - at < sizeof(head))
			return false;
		memcpy(&head, info + at, sizeof(head));
		if (head.n > VFIO_MAX_RANGES ||
		    (bytes - at - sizeof(head)) / sizeof(*range) < head.n)
			return false;
		memcpy(range, info + at + sizeof(head), head.n * sizeof(*range));
		return vfio_set_ranges(v->domain, range, head.n);
	}
	return vfio_set_ranges(v->domain, usual, 2);
}

static int learn_ranges(struct vfio *v, struct err *err)
{
	struct vfio_iommu_info info = { .argsz = sizeof(info) };
	uint8_t *all;
	bool ok;

	if (v->sys->ioctl(v->domain->container, VFIO_IOMMU_INFO, &info))
		return err_sys(err, errno, "VFIO_IOMMU_GET_INFO for %s", v->place.bdf);
	if (info.argsz < sizeof(info) || info.argsz > MAX_INFO)
		info.argsz = sizeof(info);
	if (info.flags & VFIO_INFO_PGSIZES && !(info.pgsizes & VFIO_PAGE))
		return err_set(err, ERR_UNIMPLEMENTED, "the IOMMU of %s has no pages of 4 KiB "
			       "(sizes 0x%llx)", v->place.bdf, (unsigned long long)info.pgsizes);
	all = calloc(1, info.argsz);
	if (!all)
		return err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory");
	memcpy(all, &(struct vfio_iommu_info){ .argsz = info.argsz }, sizeof(info));
	if (v->sys->ioctl(v->domain->container, VFIO_IOMMU_INFO, all)) {
		int sysno = errno;

		free(all);
		return err_sys(err, sysno, "VFIO_IOMMU_GET_INFO for %s", v->place.bdf);
	}
	memcpy(&info, all, sizeof(info));
	ok = read_ranges(v, all, info.argsz, info.flags & VFIO_INFO_HAS_CAPS ?
			 info.cap_offset : 0);
	free(all);
	return ok ? 0 : err_set(err, ERR_UNAVAILABLE, "the kernel's list of addresses for %s "
				"makes no sense", v->place.bdf);
}

static int attach(struct vfio *v, struct err *err)
{
	int code = vfio_group_join(v, VFIO_KIND_TYPE1V2, err);

	if (!code)
		code = learn_ranges(v, err);
	return code ? code : vfio_group_device(v, err);
}

static int map(struct vfio *v, struct vfio_area *area, struct err *err)
{
	struct vfio_dma_map m = { .argsz = sizeof(m), .flags = VFIO_DMA_READ | VFIO_DMA_WRITE,
				  .vaddr = area->host, .iova = area->iova,
				  .bytes = area->bytes };

	(void)err;
	return v->sys->ioctl(v->domain->container, VFIO_MAP, &m) ? errno : 0;
}

static int unmap(struct vfio *v, uint64_t iova, uint64_t bytes)
{
	struct vfio_dma_unmap u = { .argsz = sizeof(u), .iova = iova, .bytes = bytes };

	if (v->sys->ioctl(v->domain->container, VFIO_UNMAP, &u))
		return errno;
	return u.bytes == bytes ? 0 : EIO;
}

const struct vfio_iommu vfio_type1 = {
	.name = "group and type 1", .pins = true, .shares = true, .attach = attach,
	.detach = vfio_group_leave, .map = map, .unmap = unmap,
};
