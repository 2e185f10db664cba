/* SPDX-License-Identifier: Apache-2.0 */
/* VFIO by device files: the function's own, bound to an address space of iommufd. */
#include <errno.h>
#include <stdio.h>

#include "hal/bus/vfio.h"

#define IOMMU "/dev/iommu"

static int bind(struct vfio *v, struct err *err)
{
	struct vfio_bind b = { .argsz = sizeof(b), .iommufd = v->domain->container };
	char path[600];
	int sysno;

	if (!v->sys->ioctl(v->device, VFIO_BIND_IOMMUFD, &b))
		return 0;
	sysno = errno;
	snprintf(path, sizeof(path), "%s%s", v->sys->root, v->place.cdev);
	/* Others may have opened the file, but only one can bind it. Ours is closed so
	 * that we are not taken for the holder. */
	if (sysno == EBUSY || sysno == EINVAL) {
		files_close(&v->own_device, &v->device, v->sys->close);
		return vfio_busy(&v->place, path, err);
	}
	if (sysno == EPERM)
		return vfio_not_viable(&v->place, err);
	return err_sys(err, sysno, "VFIO_DEVICE_BIND_IOMMUFD for %s", v->place.bdf);
}

static int learn_ranges(struct vfio *v, struct err *err)
{
	struct vfio_range range[VFIO_MAX_RANGES];
	struct iommufd_ranges r = { .size = sizeof(r), .ioas = v->domain->ioas,
				    .n = VFIO_MAX_RANGES, .ranges = (uintptr_t)range };

	if (v->sys->ioctl(v->domain->container, IOMMUFD_IOVA_RANGES, &r))
		return err_sys(err, errno, "IOMMU_IOAS_IOVA_RANGES for %s", v->place.bdf);
	if (r.alignment > VFIO_PAGE)
		return err_set(err, ERR_UNIMPLEMENTED, "the IOMMU of %s has no pages of 4 KiB "
			       "(the smallest has %llu bytes)", v->place.bdf,
			       (unsigned long long)r.alignment);
	if (r.n > VFIO_MAX_RANGES || !vfio_set_ranges(v->domain, range, r.n))
		return err_set(err, ERR_UNAVAILABLE, "the kernel's list of addresses for %s makes "
			       "no sense", v->place.bdf);
	return 0;
}

static int make_space(struct vfio *v, struct err *err)
{
	struct iommufd_ioas space = { .size = sizeof(space) };

	if (v->sys->ioctl(v->domain->container, IOMMUFD_IOAS_ALLOC, &space))
		return err_sys(err, errno, "IOMMU_IOAS_ALLOC for %s", v->place.bdf);
	v->domain->ioas = space.id;
	return 0;
}

static int attach(struct vfio *v, struct err *err)
{
	struct vfio_attach a = { .argsz = sizeof(a) };
	int sysno, code;

	code = vfio_open_node(&v->place, v->place.cdev, &v->own_device, &v->device, err);
	if (!code && v->domain->container < 0)
		code = vfio_open_node(&v->place, IOMMU, &v->domain->own,
				      &v->domain->container, err);
	if (!code)
		code = bind(v, err);
	if (!code && !v->domain->ioas)
		code = make_space(v, err);
	if (code)
		return code;
	a.id = v->domain->ioas;
	if (v->sys->ioctl(v->device, VFIO_ATTACH, &a)) {
		sysno = errno;
		if (sysno == EPERM)
			return vfio_unsafe(&v->place, "iommufd", err);
		return err_sys(err, sysno, "VFIO_DEVICE_ATTACH_IOMMUFD_PT for %s",
			       v->place.bdf);
	}
	return learn_ranges(v, err);
}

static void detach(struct vfio *v)
{
	struct iommufd_destroy d = { sizeof(d), v->domain->ioas };

	files_close(&v->own_device, &v->device, v->sys->close);
	if (v->domain->n_functions > 1)
		return;
	if (v->domain->ioas)
		v->sys->ioctl(v->domain->container, IOMMUFD_DESTROY, &d);
	files_close(&v->domain->own, &v->domain->container, v->sys->close);
}

static int map(struct vfio *v, struct vfio_area *area, struct err *err)
{
	struct iommufd_map m = { .size = sizeof(m), .ioas = v->domain->ioas, .vaddr = area->host,
				 .bytes = area->bytes, .iova = area->iova,
				 .flags = IOMMUFD_FIXED | IOMMUFD_WRITE | IOMMUFD_READ };

	(void)err;
	return v->sys->ioctl(v->domain->container, IOMMUFD_MAP, &m) ? errno : 0;
}

static int unmap(struct vfio *v, uint64_t iova, uint64_t bytes)
{
	struct iommufd_unmap u = { .size = sizeof(u), .ioas = v->domain->ioas, .iova = iova,
				   .bytes = bytes };

	if (v->sys->ioctl(v->domain->container, IOMMUFD_UNMAP, &u))
		return errno;
	return u.bytes == bytes ? 0 : EIO;
}

const struct vfio_iommu vfio_iommufd = {
	.name = "device file and iommufd", .pins = true, .shares = true, .attach = attach,
	.detach = detach, .map = map, .unmap = unmap,
};
