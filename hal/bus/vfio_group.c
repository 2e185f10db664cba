/* SPDX-License-Identifier: Apache-2.0 */
/* VFIO by groups: the function's group in its domain's container, of one kind or another. */
#include <errno.h>
#include <stdio.h>

#include "hal/bus/vfio.h"

#define CONTAINER "/dev/vfio/vfio"

static int open_container(struct vfio *v, int kind, struct err *err)
{
	int code = vfio_open_node(&v->place, CONTAINER, &v->domain->own,
				  &v->domain->container, err);

	if (code)
		return code;
	if (v->sys->ioctl(v->domain->container, VFIO_API_VERSION, NULL))
		return err_set(err, ERR_FAILED_PRECONDITION, "the kernel's VFIO is of another "
			       "version than this build knows (0)");
	if (v->sys->ioctl(v->domain->container, VFIO_CHECK_EXT, (void *)(uintptr_t)kind) == 1)
		return 0;
	if (kind == VFIO_KIND_NOIOMMU)
		return vfio_mode_off(&v->place, err);
	return err_set(err, ERR_FAILED_PRECONDITION, "the kernel has no IOMMU support for VFIO "
		       "loaded: sudo modprobe vfio_iommu_type1");
}

static int set_kind(struct vfio *v, int kind, struct err *err)
{
	int sysno;

	if (!v->sys->ioctl(v->domain->container, VFIO_SET_IOMMU_KIND, (void *)(uintptr_t)kind))
		return 0;
	sysno = errno;
	if (sysno == EPERM)
		return kind == VFIO_KIND_NOIOMMU ? vfio_not_root(&v->place, err) :
			vfio_unsafe(&v->place, "vfio_iommu_type1", err);
	return err_sys(err, sysno, "VFIO_SET_IOMMU for %s", v->place.bdf);
}

static int set_container(struct vfio *v, int kind, struct err *err)
{
	if (!v->sys->ioctl(v->group, VFIO_GROUP_CONTAINER, &v->domain->container))
		return 0;
	if (errno != EPERM)
		return err_sys(err, errno, "VFIO_GROUP_SET_CONTAINER for %s", v->place.bdf);
	return kind == VFIO_KIND_NOIOMMU ? vfio_not_root(&v->place, err) :
		vfio_not_viable(&v->place, err);
}

int vfio_group_join(struct vfio *v, int kind, struct err *err)
{
	struct vfio_group_status status = { .argsz = sizeof(status) };
	int code = v->domain->container < 0 ? open_container(v, kind, err) : 0;

	if (!code)
		code = vfio_open_node(&v->place, v->place.node, &v->own_group, &v->group, err);
	if (code)
		return code;
	if (v->sys->ioctl(v->group, VFIO_GROUP_STATUS, &status))
		return err_sys(err, errno, "VFIO_GROUP_GET_STATUS for %s", v->place.bdf);
	if (!(status.flags & VFIO_GROUP_VIABLE))
		return vfio_not_viable(&v->place, err);
	code = set_container(v, kind, err);
	/* The kind is the first group's to set. */
	return code || v->domain->n_functions > 1 ? code : set_kind(v, kind, err);
}

int vfio_group_device(struct vfio *v, struct err *err)
{
	int sysno;

	files_own_begin();
	v->device = v->sys->ioctl(v->group, VFIO_GROUP_DEVICE_FD, v->place.bdf);
	sysno = errno;
	files_own_end(&v->own_device, &v->device);
	return v->device < 0 ? err_sys(err, sysno, "VFIO_GROUP_GET_DEVICE_FD for %s",
				       v->place.bdf) : 0;
}

void vfio_group_leave(struct vfio *v)
{
	/* The device keeps the group, the group the container. */
	files_close(&v->own_device, &v->device, v->sys->close);
	files_close(&v->own_group, &v->group, v->sys->close);
	if (v->domain->n_functions == 1)
		files_close(&v->domain->own, &v->domain->container, v->sys->close);
}
