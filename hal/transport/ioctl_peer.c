/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HBM of one card in the context of another, through the kernel driver: a block goes over as a
 * dma-buf, and the device then reaches it by itself.
 *
 * The kernel takes it back when its card is reset or loses its driver; the mapping stays as a
 * hole in which work faults. So views are forgotten with the context of either side, and made
 * anew when somebody asks again.
 *
 * The table is the process's, since a view is of two devices. Its lock is the last of all.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xf86drm.h>

#include "hal/base/files.h"
#include "hal/transport/ioctl.h"
#include "kernel-uapi/include/tessera_drm.h"

#define PEERS_ABI 7u	/* since when the driver has them */

struct view {
	struct view *next;
	const struct accel_hbm *owner, *by;
	uint32_t handle;	/* the owner's, of the block */
	uint32_t own_handle;	/* by's */
	uint32_t ctx;		/* by's */
	uint64_t va;
};

static struct view *views;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* 0, or an errno. */
static int call(const struct accel_hbm *h, unsigned long request, void *arg)
{
	return accel_sys->ioctl(h->fd, request, arg) ? errno : 0;
}

/* 0, or an errno: then it is mapped still. A context that is lost has nothing mapped. */
static int unmap(const struct view *v)
{
	struct drm_tessera_unmap u = { .ctx = v->ctx, .va = v->va };
	struct drm_gem_close c = { .handle = v->own_handle };
	int sysno = call(v->by, DRM_IOCTL_TESSERA_UNMAP, &u);

	if (sysno == EBUSY || sysno == EINTR || sysno == ETIMEDOUT)
		return sysno;
	call(v->by, DRM_IOCTL_GEM_CLOSE, &c);
	return 0;
}

static int import(struct view *v)
{
	struct drm_prime_handle out = { .handle = v->handle, .flags = DRM_CLOEXEC | DRM_RDWR,
					.fd = -1 };
	struct drm_prime_handle in = { 0 };
	struct drm_gem_close c;
	struct files_own own = { 0 };
	int sysno;

	/* In a child of fork it would keep the memory taken. */
	files_own_begin();
	sysno = call(v->owner, DRM_IOCTL_PRIME_HANDLE_TO_FD, &out);
	files_own_end(&own, &out.fd);
	if (sysno)
		return sysno;
	in.fd = out.fd;
	sysno = call(v->by, DRM_IOCTL_PRIME_FD_TO_HANDLE, &in);
	files_close(&own, &out.fd, accel_sys->close);
	if (sysno)
		return sysno;
	v->own_handle = c.handle = in.handle;
	c.pad = 0;
	sysno = accel_map(v->by->fd, v->ctx, v->own_handle, v->va);
	if (sysno)
		call(v->by, DRM_IOCTL_GEM_CLOSE, &c);
	return sysno;
}

int accel_peer_map(const struct accel_hbm *owner, uint32_t handle, const struct accel_hbm *by,
		   uint32_t ctx, uint64_t va, struct err *err)
{
	struct view *v;
	int sysno, code = 0;

	pthread_mutex_lock(&lock);
	for (v = views; v; v = v->next)
		if (v->owner == owner && v->by == by && v->handle == handle)
			break;
	if (v)
		goto out;
	code = accel_check_abi(by->path, by->fd, PEERS_ABI, "other cards' memory needs", err);
	v = code ? NULL : malloc(sizeof(*v));
	if (!v) {
		code = code ? code : err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory");
		goto out;
	}
	*v = (struct view){ views, owner, by, handle, 0, ctx, va };
	sysno = import(v);
	if (!sysno) {
		views = v;
		goto out;
	}
	free(v);
	code = sysno == EOPNOTSUPP || sysno == ENOTTY ?
		err_set(err, ERR_UNIMPLEMENTED, "%s does not reach the memory of %s: the kernel "
			"knows of no way for requests between the two. `dmesg | grep 'cannot reach "
			"HBM'` says why; it takes a kernel with CONFIG_PCI_P2PDMA, and cards below "
			"one switch or on a host bridge that it trusts", by->path, owner->path) :
	       sysno == EBUSY ?
		err_set(err, ERR_ABORTED, "%s is being reset, so %s does not reach its memory now",
			owner->path, by->path) :
		accel_refused(by->path, by->fd, sysno, "mapping another card's HBM", err);
out:
	pthread_mutex_unlock(&lock);
	return code;
}

int accel_peer_drop(const struct accel_hbm *owner, uint32_t handle)
{
	struct view **link = &views, *v;
	int sysno = 0;

	pthread_mutex_lock(&lock);
	while ((v = *link)) {
		if (v->owner == owner && v->handle == handle) {
			sysno = unmap(v);
			if (sysno)
				break;
			*link = v->next;
			free(v);
		} else {
			link = &v->next;
		}
	}
	pthread_mutex_unlock(&lock);
	return sysno;
}

void accel_peer_forget(const struct accel_hbm *h)
{
	struct view **link = &views, *v;

	pthread_mutex_lock(&lock);
	while ((v = *link)) {
		struct drm_gem_close c;

		if (v->owner != h && v->by != h) {
			link = &v->next;
			continue;
		}
		/* Work that runs keeps a mapping, and that the memory: until that context ends. */
		c = (struct drm_gem_close){ .handle = v->own_handle };
		if (unmap(v))
			call(v->by, DRM_IOCTL_GEM_CLOSE, &c);
		*link = v->next;
		free(v);
	}
	pthread_mutex_unlock(&lock);
}
