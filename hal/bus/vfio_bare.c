/* SPDX-License-Identifier: Apache-2.0 */
/*
 * VFIO without an IOMMU: the device is given physical addresses, and nothing but its own
 * maps keeps it from the rest of memory. Those maps lead to huge pages only. The kernel
 * moves ordinary pages, locked ones too, and knows nothing of who writes to the old place;
 * huge pages it leaves where they are (unless somebody orders it to move them: migratepages,
 * taking a memory module out), and takes them back into a pool of their own.
 *
 * Where a page is, /proc/self/pagemap tells; what it is, /proc/kpageflags. Both are root's.
 * Memory that is long comes in several pieces, which the device's map makes one again.
 */
#define LOG_TAG "hal/vfio"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "hal/base/log.h"
#include "hal/bus/vfio.h"

#define HUGE ((uint64_t)2 << 20)
#define POOL "/sys/kernel/mm/hugepages/hugepages-2048kB/"

#define PAGE_IS_PRESENT (1ull << 63)
#define PAGE_NUMBER ((1ull << 55) - 1)
#define NUMBERS (1ull << 40)	/* 2^52 bytes are what x86 can address */
#define FLAG_IS_HUGE (1ull << 17)

#ifndef MAP_HUGE_2MB
#define MAP_HUGE_2MB (21 << 26)
#endif
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23	/* Linux 5.14 */
#endif

/* ---- pages ---- */

static unsigned long long pool(struct vfio *v, const char *what)
{
	unsigned long long n = 0;
	char path[300];
	FILE *f;

	snprintf(path, sizeof(path), "%s" POOL "%s", v->sys->root, what);
	f = fopen(path, "re");
	if (f && fscanf(f, "%llu", &n) != 1)
		n = 0;
	if (f)
		fclose(f);
	return n;
}

static int no_pages(struct vfio *v, uint64_t bytes, struct err *err)
{
	unsigned long long all = pool(v, "nr_hugepages"), need = bytes / HUGE;

	return err_set(err, ERR_RESOURCE_EXHAUSTED, "%s has no IOMMU, so its memory is made of "
		       "huge pages, and %llu of 2 MiB can't be had: %llu of %llu are free. echo "
		       "%llu | sudo tee " POOL "nr_hugepages makes more (at boot: hugepages=%llu)",
		       v->place.bdf, need, pool(v, "free_hugepages"), all, all + need + 32,
		       all + need + 32);
}

int vfio_bare_pages(struct vfio *v, uint64_t *bytes, void **out, struct err *err)
{
	uint64_t all;
	void *p;

	if (__builtin_add_overflow(*bytes, HUGE - 1, &all))
		return err_set(err, ERR_RESOURCE_EXHAUSTED, "%llu bytes are more than any host has",
			       (unsigned long long)*bytes);
	all &= ~(HUGE - 1);
	p = v->sys->mmap(NULL, all, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS |
			 MAP_HUGETLB | MAP_HUGE_2MB, -1, 0);
	if (p == MAP_FAILED)
		return no_pages(v, all, err);
	/* A child of fork must not make them copy-on-write. */
	madvise(p, all, MADV_DONTFORK);
	*bytes = all;
	*out = p;
	return 0;
}

void vfio_bare_free(struct vfio *v, void *pages, uint64_t bytes)
{
	v->sys->munmap(pages, bytes);
}

/* ---- where they are ---- */

static int read_list(struct vfio *v, int fd, uint64_t index, const char *name, uint64_t *out,
		     struct err *err)
{
	ssize_t n = v->sys->pread(fd, out, sizeof(*out), (off_t)(index * sizeof(*out)));

	return n == sizeof(*out) ? 0 : err_sys(err, n < 0 ? errno : EIO, "%s: reading %s",
					       v->place.bdf, name);
}

static int look_up(struct vfio *v, uint64_t at, uint64_t *physical, struct err *err)
{
	const char *bdf = v->place.bdf;
	uint64_t entry = 0, number, flags = 0;
	int code = read_list(v, v->pagemap, at / VFIO_PAGE, "/proc/self/pagemap", &entry, err);

	if (code)
		return code;
	if (!(entry & PAGE_IS_PRESENT))
		return err_set(err, ERR_FAILED_PRECONDITION, "%s: there is no page at 0x%llx (a "
			       "limit of huge pages of the control group? hugetlb.2MB.max)", bdf,
			       (unsigned long long)at);
	number = entry & PAGE_NUMBER;
	if (!number)
		return err_set(err, ERR_PERMISSION_DENIED, "%s: the kernel does not tell where "
			       "memory is, which a device without an IOMMU has to know: run as "
			       "root, or with CAP_SYS_ADMIN", bdf);
	if (number >= NUMBERS)
		return err_set(err, ERR_UNAVAILABLE, "%s: a page at 2^52 or beyond (0x%llx)", bdf,
			       (unsigned long long)number);
	code = read_list(v, v->pageflags, number, "/proc/kpageflags", &flags, err);
	if (code)
		return code;
	if (!(flags & FLAG_IS_HUGE))
		return err_set(err, ERR_FAILED_PRECONDITION, "%s has no IOMMU and can't use the "
			       "memory at 0x%llx: the kernel may move ordinary pages while the "
			       "device writes them. Use memory of huge pages (mmap with "
			       "MAP_HUGETLB, aligned_alloc will not do), or have it copied", bdf,
			       (unsigned long long)at);
	*physical = number * VFIO_PAGE;
	return 0;
}

static int find_runs(struct vfio *v, struct vfio_area *area, struct err *err)
{
	uint64_t end = area->host + area->bytes, next, physical = 0;
	struct vfio_run *last;
	int code;

	for (uint64_t at = area->host; at < end; at = next) {
		next = (at | (HUGE - 1)) + 1;
		next = next < end ? next : end;
		code = look_up(v, at, &physical, err);
		if (code)
			return code;
		last = area->n_runs ? &area->runs[area->n_runs - 1] : NULL;
		if (last && last->physical + last->bytes == physical)
			last->bytes += next - at;
		else
			area->runs[area->n_runs++] = (struct vfio_run){ physical, next - at };
	}
	return 0;
}

static int map(struct vfio *v, struct vfio_area *area, struct err *err)
{
	int code, sysno;

	/* Present, and nobody's but ours: not to be copied at the next store. */
	if (madvise((void *)(uintptr_t)area->host, area->bytes, MADV_POPULATE_WRITE)) {
		sysno = errno;
		return -(sysno == EFAULT ? no_pages(v, area->bytes, err) :
			 err_sys(err, sysno, "%s: making %llu bytes at 0x%llx present for writing "
				 "(which needs Linux 5.14)", v->place.bdf,
				 (unsigned long long)area->bytes,
				 (unsigned long long)area->host));
	}
	area->runs = calloc(area->bytes / HUGE + 2, sizeof(*area->runs));
	if (!area->runs)
		return -err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory");
	code = find_runs(v, area, err);
	if (code) {
		free(area->runs);
		area->runs = NULL;
		area->n_runs = 0;
	}
	return -code;
}

/* There is nothing to take away: who maps for the device sees to it that it stopped. */
static int unmap(struct vfio *v, uint64_t iova, uint64_t bytes)
{
	(void)v;
	(void)iova;
	(void)bytes;
	return 0;
}

uint64_t vfio_bare_address(struct vfio *v, uint64_t iova, uint64_t offset, uint64_t *bytes)
{
	const struct vfio_area *a;
	uint64_t physical = 0;

	*bytes = 0;
	pthread_mutex_lock(&v->domain->lock);
	for (a = v->domain->space.areas; a && a->iova != iova; a = a->next)
		;
	for (unsigned i = 0; a && i < a->n_runs && !*bytes; i++) {
		const struct vfio_run *r = &a->runs[i];

		if (offset < r->bytes) {
			physical = r->physical + offset;
			*bytes = r->bytes - offset;
		} else {
			offset -= r->bytes;
		}
	}
	pthread_mutex_unlock(&v->domain->lock);
	return physical;
}

/* ---- opening ---- */

static int open_list(struct vfio *v, const char *name, int *out, struct err *err)
{
	char path[300];

	snprintf(path, sizeof(path), "%s%s", v->sys->root, name);
	*out = v->sys->open(path, O_RDONLY | O_CLOEXEC);
	if (*out >= 0)
		return 0;
	if (errno == EACCES || errno == EPERM)
		return vfio_not_root(&v->place, err);
	return err_sys(err, errno, "opening %s, which tells where the memory for %s is", path,
		       v->place.bdf);
}

static int attach(struct vfio *v, struct err *err)
{
	/* Where contexts see host memory; the pieces behind it are elsewhere. */
	static const struct vfio_range all = { 0, (1ull << 48) - 1 };
	int code = vfio_group_join(v, VFIO_KIND_NOIOMMU, err);

	if (!code)
		code = open_list(v, "/proc/self/pagemap", &v->pagemap, err);
	if (!code)
		code = open_list(v, "/proc/kpageflags", &v->pageflags, err);
	if (!code)
		code = vfio_group_device(v, err);
	if (code)
		return code;
	vfio_set_ranges(v->domain, &all, 1);
	log_warn("%s is used without an IOMMU, as asked: nothing keeps the device, or a fault of "
		 "its programs' maps, from any memory of this host", v->place.bdf);
	return 0;
}

static void detach(struct vfio *v)
{
	if (v->pagemap >= 0)
		v->sys->close(v->pagemap);
	if (v->pageflags >= 0)
		v->sys->close(v->pageflags);
	vfio_group_leave(v);
}

const struct vfio_iommu vfio_bare = {
	.name = "group without an IOMMU", .attach = attach, .detach = detach, .map = map,
	.unmap = unmap,
};
