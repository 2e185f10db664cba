/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel's VFIO in user space, in front of two devices of the model: nodes, groups,
 * containers, iommufd, DMA, MSI-X and reset, as strict as the kernel where a driver could
 * go wrong. sysfs, /dev and /proc are a folder. Without an IOMMU (fake_set_bare) memory has
 * physical addresses, huge pages far from each other, and the device has a view of its own
 * on them. For one test program; included once.
 *
 *	fake_start();		vfio_sys is the fake from now on
 *	fake.viable = false;	what the kernel is to be like
 *	fake_stop();
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hal/bus/vfio.h"
#include "hal/hw/regs.h"
#include "hal/sim/sim.h"
#include "tests/fake/fork_at.h"

#define FAKE_DEVICES 2u
#define FAKE_FDS 1024
#define FAKE_MAPS 512
#define FAKE_HUGE ((uint64_t)2 << 20)
#define FAKE_HUGE_PAGES 256u
#define FAKE_SLOTS 4096u	/* where huge pages can be */
#define FAKE_FIRST_SLOT ((uint64_t)4 << 30)
#define FAKE_HBM ((uint64_t)64 << 20)
#define FAKE_REGION(offset) ((unsigned)((uint64_t)(offset) >> 40))
#define FAKE_OFFSET(offset) ((uint32_t)((uint64_t)(offset) & 0xffffffff))

enum fake_kind {
	FAKE_NONE, FAKE_CONTAINER, FAKE_GROUP, FAKE_IOMMUFD, FAKE_DEVICE, FAKE_PAGEMAP,
	FAKE_PAGEFLAGS,
};

struct fake_file {
	enum fake_kind kind;
	unsigned device;	/* of a group or device */
	int container;		/* of a group or bound device; -1: none */
	unsigned reaches;	/* of a container or iommufd: who sees what is mapped, a bit each */
	unsigned n_members;	/* of a container: groups */
	bool set, attached;
	uint32_t ioas;
};

struct fake_map { bool used; int container; uint64_t vaddr, iova, bytes; };

struct fake_huge { uint8_t *host; uint64_t physical; };	/* host: NULL: unused */

static struct fake {
	char root[64];
	struct sim *sim;
	pthread_mutex_t lock;
	struct fake_file file[FAKE_FDS];
	struct fake_map map[FAKE_MAPS];
	struct {
		uint16_t command;
		int irq[HW_MAX_VECTORS], err_fd, req_fd;	/* duplicates; -1: none */
		unsigned n_irqs;
	} device[FAKE_DEVICES];
	atomic_int n_files, n_mmaps, n_maps;	/* what is held */
	pthread_mutex_t huge_lock;	/* innermost */
	struct fake_huge huge[FAKE_HUGE_PAGES];
	int ram_fd;
	uint8_t *ram;		/* what is at FAKE_FIRST_SLOT */
	unsigned n_given;	/* huge pages, ever */
	unsigned n_left_on;	/* devices without an IOMMU that were closed as bus master */

	/* What the kernel is like. */
	bool viable, type1, can_reset, resizes, sparse;
	bool apart;		/* devices have IOMMUs that can't share a space */
	int version, set_iommu_errno, open_errno, map_errno, bind_errno, attach_errno;
	int busy_resets;	/* how often a reset is put off */
	uint64_t memlock, bar0_bytes;
	uint32_t id;
	bool bare;		/* no IOMMU: groups are of that kind */
	bool is_root, admin, mode_on, absent;
	unsigned max_huge;

	/* The nth call fails; 0: none. */
	atomic_long calls, fail_at;
	int fail_errno;
} fake;

static bool fake_fails(void)
{
	if (atomic_fetch_add(&fake.calls, 1) + 1 != atomic_load(&fake.fail_at))
		return false;
	errno = fake.fail_errno;
	return true;
}

static int fake_refuse(int sysno)
{
	errno = sysno;
	return -1;
}

static struct sim_device *fake_sim(unsigned i)
{
	return sim_device(fake.sim, i);
}

static int fake_new(enum fake_kind kind, unsigned device)
{
	int fd = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (fd < 0 || fd >= FAKE_FDS)
		abort();
	fake.file[fd] = (struct fake_file){ .kind = kind, .device = device, .container = -1 };
	atomic_fetch_add(&fake.n_files, 1);
	return fd;
}

/* Whether the device is open by a group (or by its own file). */
static bool fake_is_open(enum fake_kind kind, unsigned device)
{
	for (int i = 0; i < FAKE_FDS; i++)
		if (fake.file[i].kind == kind && fake.file[i].device == device)
			return true;
	return false;
}

static int fake_open_node(const char *node)
{
	char file[64];

	if (!strcmp(node, "/proc/self/pagemap"))
		return fake_new(FAKE_PAGEMAP, 0);
	if (!strcmp(node, "/proc/kpageflags"))
		return fake.is_root ? fake_new(FAKE_PAGEFLAGS, 0) : fake_refuse(EACCES);
	if (fake.open_errno && strcmp(node, "/dev/vfio/vfio"))
		return fake_refuse(fake.open_errno);
	if (!strcmp(node, "/dev/vfio/vfio"))
		return fake_new(FAKE_CONTAINER, 0);
	if (!strcmp(node, "/dev/iommu"))
		return fake_new(FAKE_IOMMUFD, 0);
	for (unsigned i = 0; i < FAKE_DEVICES; i++) {
		snprintf(file, sizeof(file), "/dev/vfio/%s%u", fake.bare ? "noiommu-" : "",
			 12 + i);
		if (!strcmp(node, file) && fake.bare && !fake.is_root)
			return fake_refuse(EPERM);
		if (!strcmp(node, file))
			return fake_is_open(FAKE_GROUP, i) ? fake_refuse(EBUSY) :
							     fake_new(FAKE_GROUP, i);
		snprintf(file, sizeof(file), "/dev/vfio/devices/vfio%u", i);
		if (!strcmp(node, file))
			return fake_is_open(FAKE_GROUP, i) ? fake_refuse(EBUSY) :
							     fake_new(FAKE_DEVICE, i);
	}
	return fake_refuse(ENOENT);
}

static int fake_open(const char *path, int flags)
{
	int fd;

	if (fake_fails())
		return -1;
	if (!(flags & O_CLOEXEC) || strncmp(path, fake.root, strlen(fake.root)) ||
	    access(path, F_OK))
		return fake_refuse(ENOENT);
	pthread_mutex_lock(&fake.lock);
	fd = fake_open_node(path + strlen(fake.root));
	pthread_mutex_unlock(&fake.lock);
	/* Lists of pages hold nothing. */
	if (fd >= 0 && fake.file[fd].kind < FAKE_PAGEMAP)
		fork_at(fd, NULL);
	return fd;
}

/* ---- DMA ---- */

static bool fake_may_map(uint64_t vaddr, uint64_t iova, uint64_t bytes)
{
	return bytes && !(vaddr % 4096) && !(iova % 4096) && !(bytes % 4096) &&
	       iova + bytes > iova && iova + bytes <= 1ull << 48 &&
	       (iova + bytes <= 0xfee00000 || iova >= 0xfef00000);
}

/* Device `d` sees one mapping more, or no more. */
static bool fake_see(unsigned d, const struct fake_map *m, bool on)
{
	if (!on)
		return !sim_dma_unmap(fake_sim(d), m->iova, NULL);
	return !sim_dma_map(fake_sim(d), m->iova, (void *)(uintptr_t)m->vaddr, m->bytes, true,
			    NULL);
}

/* Device `d` comes into the container, or leaves it. */
static void fake_reach_all(int container, unsigned d, bool on)
{
	unsigned *reaches = &fake.file[container].reaches;

	if (!(*reaches & 1u << d) == !on)
		return;
	*reaches ^= 1u << d;
	for (struct fake_map *m = fake.map; m < fake.map + FAKE_MAPS; m++)
		if (m->used && m->container == container && !fake_see(d, m, on))
			abort();
}

/* Maps for every device of the container or address space. */
static int fake_dma_map(int container, uint64_t vaddr, uint64_t iova, uint64_t bytes)
{
	struct fake_map *m = fake.map, new = { true, container, vaddr, iova, bytes };

	if (fake.map_errno)
		return fake_refuse(fake.map_errno);
	if (!fake_may_map(vaddr, iova, bytes))
		return fake_refuse(EINVAL);
	while (m < fake.map + FAKE_MAPS && m->used)
		m++;
	if (m == fake.map + FAKE_MAPS)
		return fake_refuse(ENOSPC);
	for (struct fake_map *o = fake.map; o < fake.map + FAKE_MAPS; o++)
		if (o->used && o->container == container && o->iova < iova + bytes &&
		    iova < o->iova + o->bytes)
			return fake_refuse(EEXIST);
	for (unsigned d = 0; d < FAKE_DEVICES; d++)
		if (fake.file[container].reaches & 1u << d && !fake_see(d, &new, true))
			abort();
	*m = new;
	atomic_fetch_add(&fake.n_maps, 1);
	return 0;
}

static uint64_t fake_dma_unmap(int container, uint64_t iova, uint64_t bytes)
{
	uint64_t n = 0;

	for (struct fake_map *m = fake.map; m < fake.map + FAKE_MAPS; m++) {
		if (!m->used || m->container != container || m->iova < iova ||
		    m->iova - iova + m->bytes > bytes)
			continue;
		for (unsigned d = 0; d < FAKE_DEVICES; d++)
			if (fake.file[container].reaches & 1u << d && !fake_see(d, m, false))
				abort();
		n += m->bytes;
		m->used = false;
		atomic_fetch_sub(&fake.n_maps, 1);
	}
	return n;
}

#include "tests/fake/vfio_huge.c"

/* ---- interrupts ---- */

static void fake_set_vector(unsigned device, unsigned vector, int fd)
{
	int *old = &fake.device[device].irq[vector];

	sim_irq_fd(fake_sim(device), vector, fd, NULL);
	sim_mmio_write(fake_sim(device), HW_MSIX_TABLE + 16 * vector + 12, 4, fd < 0);
	if (*old >= 0)
		close(*old);
	*old = fd;
}

static int fake_set_notice(int *at, const struct vfio_irqs *s)
{
	if (s->start || s->count > 1)
		return fake_refuse(EINVAL);
	if (*at >= 0)
		close(*at);
	*at = s->flags & VFIO_IRQ_EVENTFD && s->count ? dup(s->fd[0]) : -1;
	return 0;
}

static int fake_set_irqs(unsigned device, const struct vfio_irqs *s)
{
	unsigned n = fake.device[device].n_irqs, end = s->start + s->count;

	if (s->index == VFIO_ERR)
		return fake_set_notice(&fake.device[device].err_fd, s);
	if (s->index == VFIO_REQ)
		return fake_set_notice(&fake.device[device].req_fd, s);
	if (s->index != VFIO_MSIX || end > HW_MAX_VECTORS)
		return fake_refuse(EINVAL);
	if (s->flags == (VFIO_IRQ_TRIGGER | VFIO_IRQ_NONE) && !s->count) {
		for (unsigned i = 0; i < HW_MAX_VECTORS; i++)
			fake_set_vector(device, i, -1);
		fake.device[device].n_irqs = 0;
		return 0;
	}
	if (s->flags != (VFIO_IRQ_TRIGGER | VFIO_IRQ_EVENTFD) || !s->count ||
	    s->argsz != sizeof(*s) + s->count * 4 || (n && end > n && !fake.resizes))
		return fake_refuse(EINVAL);
	for (unsigned i = 0; i < s->count; i++)
		fake_set_vector(device, s->start + i, s->fd[i] < 0 ? -1 : dup(s->fd[i]));
	if (end > n)
		fake.device[device].n_irqs = end;
	return 0;
}

static int fake_reset(unsigned device)
{
	if (!fake.can_reset)
		return fake_refuse(EINVAL);
	if (fake.busy_resets) {
		fake.busy_resets--;
		return fake_refuse(EAGAIN);
	}
	sim_flr(fake_sim(device));
	fake_set_command(device, 0);
	for (unsigned i = 0; i < HW_MAX_VECTORS; i++)
		if (fake.device[device].irq[i] >= 0)
			sim_mmio_write(fake_sim(device), HW_MSIX_TABLE + 16 * i + 12, 4, 0);
	return 0;
}

/* ---- requests ---- */

static int fake_container(int fd, unsigned long request, void *arg)
{
	struct {
		struct vfio_iommu_info info;
		struct vfio_cap_ranges head;
		struct vfio_range range[2];
	} all = { .head = { { VFIO_CAP_IOVA_RANGES, 1, 0 }, 2, 0 },
		  .range = { { 0, 0xfedfffff }, { 0xfef00000, (1ull << 48) - 1 } } };
	struct vfio_iommu_info *info = arg;
	struct vfio_dma_map *m = arg;
	struct vfio_dma_unmap *u = arg;
	struct fake_file *f = &fake.file[fd];
	uint32_t room;

	switch (request) {
	case VFIO_API_VERSION:
		return fake.version;
	case VFIO_CHECK_EXT:
		return ((uintptr_t)arg == VFIO_KIND_TYPE1V2 && fake.type1) ||
		       ((uintptr_t)arg == VFIO_KIND_NOIOMMU && fake.mode_on);
	case VFIO_SET_IOMMU_KIND:
		if (fake.set_iommu_errno)
			return fake_refuse(fake.set_iommu_errno);
		if (!f->n_members || f->set)
			return fake_refuse(EINVAL);
		if ((uintptr_t)arg != (fake.bare ? VFIO_KIND_NOIOMMU : VFIO_KIND_TYPE1V2))
			return fake_refuse(ENODEV);
		f->set = true;
		return 0;
	case VFIO_IOMMU_INFO:
		if (fake.bare)
			return fake_refuse(ENOTTY);
		if (!f->set || info->argsz < sizeof(*info))
			return fake_refuse(EINVAL);
		room = info->argsz;
		all.info = (struct vfio_iommu_info){ sizeof(all), VFIO_INFO_PGSIZES |
			VFIO_INFO_HAS_CAPS, 0x40201000, 0, 0 };
		if (room >= sizeof(all))
			all.info.cap_offset = sizeof(all.info);
		memcpy(arg, &all, room < sizeof(all) ? sizeof(all.info) : sizeof(all));
		return 0;
	case VFIO_MAP:
		if (fake.bare)
			return fake_refuse(ENOTTY);
		if (!f->set || m->argsz != sizeof(*m) || m->flags != 3)
			return fake_refuse(EINVAL);
		return fake_dma_map(fd, m->vaddr, m->iova, m->bytes);
	case VFIO_UNMAP:
		if (!f->set || u->argsz != sizeof(*u) || u->flags)
			return fake_refuse(EINVAL);
		u->bytes = fake_dma_unmap(fd, u->iova, u->bytes);
		return 0;
	}
	return fake_refuse(ENOTTY);
}

static int fake_group(int fd, unsigned long request, void *arg)
{
	struct fake_file *f = &fake.file[fd];
	struct vfio_group_status *s = arg;
	char bdf[16];
	int c, device;

	switch (request) {
	case VFIO_GROUP_STATUS:
		s->flags = fake.viable ? VFIO_GROUP_VIABLE : 0;
		return 0;
	case VFIO_GROUP_CONTAINER:
		c = *(int *)arg;
		if (!fake.viable)
			return fake_refuse(EPERM);
		if (c < 0 || c >= FAKE_FDS || fake.file[c].kind != FAKE_CONTAINER)
			return fake_refuse(EBADF);
		if (fake.file[c].set && fake.apart)
			return fake_refuse(EINVAL);
		f->container = c;
		fake.file[c].n_members++;
		if (!fake.bare)
			fake_reach_all(c, f->device, true);
		return 0;
	case VFIO_GROUP_DEVICE_FD:
		snprintf(bdf, sizeof(bdf), "0000:%02x:00.0", f->device + 1);
		if (f->container < 0 || !fake.file[f->container].set)
			return fake_refuse(EINVAL);
		if (strcmp(arg, bdf))
			return fake_refuse(ENODEV);
		device = fake_new(FAKE_DEVICE, f->device);
		fake.file[device].attached = true;
		fork_at(device, NULL);
		return device;
	}
	return fake_refuse(ENOTTY);
}

static int fake_iommufd(int fd, unsigned long request, void *arg)
{
	struct fake_file *f = &fake.file[fd];
	struct iommufd_ioas *a = arg;
	struct iommufd_destroy *d = arg;
	struct iommufd_ranges *r = arg;
	struct iommufd_map *m = arg;
	struct iommufd_unmap *u = arg;
	struct vfio_range *range;

	switch (request) {
	case IOMMUFD_IOAS_ALLOC:
		if (a->size != sizeof(*a) || a->flags)
			return fake_refuse(EINVAL);
		a->id = f->ioas = 7;
		return 0;
	case IOMMUFD_DESTROY:
		if (d->id != f->ioas)
			return fake_refuse(ENOENT);
		for (int i = 0; i < FAKE_FDS; i++)
			if (fake.file[i].kind == FAKE_DEVICE && fake.file[i].container == fd)
				return fake_refuse(EBUSY);
		fake_dma_unmap(fd, 0, UINT64_MAX);
		return 0;
	case IOMMUFD_IOVA_RANGES:
		if (r->ioas != f->ioas || r->n < 2)
			return fake_refuse(r->n < 2 ? EMSGSIZE : ENOENT);
		range = (void *)(uintptr_t)r->ranges;
		range[0] = (struct vfio_range){ 0, 0xfedfffff };
		range[1] = (struct vfio_range){ 0xfef00000, UINT64_MAX };
		r->n = 2;
		r->alignment = 4096;
		return 0;
	case IOMMUFD_MAP:
		if (m->size != sizeof(*m) || m->ioas != f->ioas || m->flags != 7 || m->pad)
			return fake_refuse(EINVAL);
		return fake_dma_map(fd, m->vaddr, m->iova, m->bytes);
	case IOMMUFD_UNMAP:
		u->bytes = fake_dma_unmap(fd, u->iova, u->bytes);
		return u->bytes ? 0 : fake_refuse(ENOENT);
	}
	return fake_refuse(ENOTTY);
}

static int fake_attach(struct fake_file *f, unsigned long request, void *arg)
{
	struct vfio_bind *b = arg;
	struct vfio_attach *a = arg;

	if (request == VFIO_BIND_IOMMUFD) {
		if (fake.bind_errno)
			return fake_refuse(fake.bind_errno);
		if (b->argsz != sizeof(*b) || b->flags || b->iommufd < 0 ||
		    fake.file[b->iommufd].kind != FAKE_IOMMUFD)
			return fake_refuse(EINVAL);
		for (int i = 0; i < FAKE_FDS; i++)
			if (fake.file[i].kind == FAKE_DEVICE && fake.file[i].container >= 0 &&
			    fake.file[i].device == f->device)
				return fake_refuse(EINVAL);
		f->container = b->iommufd;
		return 0;
	}
	if (fake.attach_errno)
		return fake_refuse(fake.attach_errno);
	if (f->container < 0 || a->argsz != sizeof(*a) || a->id != fake.file[f->container].ioas ||
	    (fake.apart && fake.file[f->container].reaches))
		return fake_refuse(EINVAL);
	f->attached = true;
	fake_reach_all(f->container, f->device, true);
	return 0;
}

static int fake_region_info(struct vfio_region *r)
{
	struct {
		struct vfio_cap cap;
		uint32_t n, pad;
		uint64_t area[2];
	} *sparse = (void *)(r + 1);
	bool cut = fake.sparse && r->index == VFIO_BAR2;
	uint32_t room = r->argsz;

	if (room < sizeof(*r) || r->index > 8)
		return fake_refuse(EINVAL);
	r->argsz = sizeof(*r);
	r->flags = r->index == VFIO_BAR2 ? 7 : 3;
	r->bytes = r->index == VFIO_BAR0 ? fake.bar0_bytes :
		   r->index == VFIO_BAR2 ? FAKE_HBM : r->index == VFIO_CONFIG ? 4096 : 0;
	r->offset = (uint64_t)r->index << 40;
	r->cap_offset = 0;
	if (!cut)
		return 0;
	r->flags |= VFIO_REGION_HAS_CAPS;
	r->argsz = sizeof(*r) + sizeof(*sparse);
	if (room < r->argsz)
		return 0;
	r->cap_offset = sizeof(*r);
	memset(sparse, 0, sizeof(*sparse));
	sparse->cap = (struct vfio_cap){ VFIO_CAP_SPARSE, 1, 0 };
	sparse->n = 1;
	sparse->area[1] = FAKE_HBM / 2;
	return 0;
}

static int fake_device(int fd, unsigned long request, void *arg)
{
	struct fake_file *f = &fake.file[fd];
	struct vfio_device_info *info = arg;
	struct vfio_irq_info *irq = arg;

	if (request == VFIO_BIND_IOMMUFD || request == VFIO_ATTACH)
		return fake_attach(f, request, arg);
	if (!f->attached)
		return fake_refuse(EINVAL);
	switch (request) {
	case VFIO_DEVICE_INFO:
		*info = (struct vfio_device_info){ sizeof(*info), VFIO_DEVICE_PCI |
			(fake.can_reset ? VFIO_DEVICE_CAN_RESET : 0), 9, 5 };
		return 0;
	case VFIO_REGION_INFO:
		return fake_region_info(arg);
	case VFIO_IRQ_INFO:
		irq->count = irq->index == VFIO_MSIX ? HW_MAX_VECTORS :
			     irq->index == VFIO_ERR || irq->index == VFIO_REQ;
		irq->flags = VFIO_IRQ_CAN_EVENTFD | (fake.resizes ? 0 : VFIO_IRQ_NO_RESIZE);
		return 0;
	case VFIO_IRQ_SET:
		return fake_set_irqs(f->device, arg);
	case VFIO_RESET:
		return fake_reset(f->device);
	}
	return fake_refuse(ENOTTY);
}

static int fake_ioctl(int fd, unsigned long request, void *arg)
{
	static int (*const of_kind[])(int, unsigned long, void *) = {
		[FAKE_CONTAINER] = fake_container, [FAKE_GROUP] = fake_group,
		[FAKE_IOMMUFD] = fake_iommufd, [FAKE_DEVICE] = fake_device,
	};
	int result;

	if (fake_fails())
		return -1;
	if (fd < 0 || fd >= FAKE_FDS || !fake.file[fd].kind)
		return fake_refuse(EBADF);
	pthread_mutex_lock(&fake.lock);
	result = of_kind[fake.file[fd].kind](fd, request, arg);
	pthread_mutex_unlock(&fake.lock);
	return result;
}

static void fake_release_device(unsigned device)
{
	for (unsigned i = 0; i < HW_MAX_VECTORS; i++)
		fake_set_vector(device, i, -1);
	fake.device[device].n_irqs = 0;
	if (fake.device[device].err_fd >= 0)
		close(fake.device[device].err_fd);
	if (fake.device[device].req_fd >= 0)
		close(fake.device[device].req_fd);
	fake.device[device].err_fd = fake.device[device].req_fd = -1;
	fake.n_left_on += fake_is_master(device);
	fake_set_command(device, 0);
	sim_flr(fake_sim(device));
}

static int fake_close(int fd)
{
	bool fails = fake_fails();

	if (fd < 0 || fd >= FAKE_FDS || !fake.file[fd].kind)
		abort();	/* a driver that closes what is not its own */
	if (fake.file[fd].kind < FAKE_PAGEMAP)
		fork_at(fd, NULL);
	pthread_mutex_lock(&fake.lock);
	if (fake.file[fd].kind == FAKE_DEVICE && fake.file[fd].attached) {
		fake_release_device(fake.file[fd].device);
		if (fake.file[fd].container >= 0)
			fake_reach_all(fake.file[fd].container, fake.file[fd].device, false);
	}
	if (fake.file[fd].kind == FAKE_GROUP && fake.file[fd].container >= 0) {
		fake.file[fake.file[fd].container].n_members--;
		fake_reach_all(fake.file[fd].container, fake.file[fd].device, false);
	}
	if (fake.file[fd].kind == FAKE_CONTAINER || fake.file[fd].kind == FAKE_IOMMUFD)
		fake_dma_unmap(fd, 0, UINT64_MAX);
	fake.file[fd].kind = FAKE_NONE;
	atomic_fetch_sub(&fake.n_files, 1);
	pthread_mutex_unlock(&fake.lock);
	close(fd);
	return fails ? fake_refuse(fake.fail_errno) : 0;
}

/* ---- memory and registers ---- */

static void *fake_mmap(void *at, size_t bytes, int prot, int flags, int fd, off_t offset)
{
	void *p;

	if (fake_fails())
		return MAP_FAILED;
	if (fd < 0 && flags & MAP_HUGETLB) {
		p = fake_mmap_huge(bytes);
		if (p != MAP_FAILED)
			atomic_fetch_add(&fake.n_mmaps, 1);
		return p;
	}
	if (fd < 0 || fd >= FAKE_FDS || fake.file[fd].kind != FAKE_DEVICE ||
	    !fake.file[fd].attached || FAKE_REGION(offset) != VFIO_BAR2 || bytes != FAKE_HBM) {
		errno = EINVAL;
		return MAP_FAILED;
	}
	p = mmap(at, bytes, prot, flags, sim_hbm_fd(fake_sim(fake.file[fd].device)), 0);
	if (p == MAP_FAILED)
		return p;
	atomic_fetch_add(&fake.n_mmaps, 1);
	fork_at(-1, p);
	return p;
}

static int fake_munmap(void *at, size_t bytes)
{
	bool fails = fake_fails();

	forks_join();
	atomic_fetch_sub(&fake.n_mmaps, 1);
	fake_munmap_huge(at, bytes);
	munmap(at, bytes);
	return fails ? fake_refuse(fake.fail_errno) : 0;
}

static ssize_t fake_pread(int fd, void *to, size_t n, off_t offset)
{
	unsigned device = fake.file[fd].device;
	uint32_t at = FAKE_OFFSET(offset), value;

	if (fake_fails())
		return -1;
	if (fake.file[fd].kind == FAKE_PAGEMAP || fake.file[fd].kind == FAKE_PAGEFLAGS)
		return fake_read_list(fake.file[fd].kind, to, n, offset);
	if (!fake.file[fd].attached || n > 4)
		return fake_refuse(EINVAL);
	if (FAKE_REGION(offset) == VFIO_BAR0) {
		if (n != 4 || at >= HW_BAR0_BYTES || !(fake.device[device].command & 2))
			return fake_refuse(EIO);
		value = (uint32_t)sim_mmio_read(fake_sim(device), at, 4);
	} else if (FAKE_REGION(offset) == VFIO_CONFIG) {
		value = at == 0 ? fake.id : at == 4 ? fake.device[device].command : 0;
	} else {
		return fake_refuse(EINVAL);
	}
	memcpy(to, &value, n);
	return (ssize_t)n;
}

static ssize_t fake_pwrite(int fd, const void *from, size_t n, off_t offset)
{
	unsigned device = fake.file[fd].device;
	uint32_t at = FAKE_OFFSET(offset), value = 0;

	if (fake_fails())
		return -1;
	if (!fake.file[fd].attached || n > 4)
		return fake_refuse(EINVAL);
	memcpy(&value, from, n);
	if (FAKE_REGION(offset) == VFIO_CONFIG && at == 4 && n == 2) {
		fake_set_command(device, (uint16_t)value);
	} else if (FAKE_REGION(offset) == VFIO_BAR0) {
		/* The vector table is the kernel's. */
		if (n != 4 || at >= HW_BAR0_BYTES || !(fake.device[device].command & 2) ||
		    (at >= HW_MSIX_TABLE && at < HW_MSIX_TABLE + 16 * HW_MAX_VECTORS))
			return fake_refuse(EIO);
		/* Without bus mastering nothing can be fetched. */
		if (at < HW_DOORBELL_BASE || fake.device[device].command & 4)
			sim_mmio_write(fake_sim(device), at, 4, value);
	} else {
		return fake_refuse(EINVAL);
	}
	return (ssize_t)n;
}

static uint64_t fake_memlock(void)
{
	return fake.memlock;
}

/* ---- sysfs and the rest ---- */

static const char *fake_path(const char *format, unsigned i)
{
	static char path[300];
	int n = snprintf(path, sizeof(path), "%s", fake.root);

	snprintf(path + n, sizeof(path) - (size_t)n, format, i);
	return path;
}

/* A file below the root with its folders; "" for an empty one. */
static void fake_write(const char *path, const char *text)
{
	char copy[300];
	FILE *f;

	snprintf(copy, sizeof(copy), "%s", path);
	for (char *p = copy + strlen(fake.root) + 1; (p = strchr(p, '/')); p++) {
		*p = 0;
		mkdir(copy, 0755);
		*p = '/';
	}
	f = fopen(copy, "w");
	if (!f || fputs(text, f) < 0 || fclose(f))
		abort();
}

static void fake_link(const char *target, const char *path)
{
	unlink(path);
	if (symlink(target, path))
		abort();
}

static void fake_run(const char *command)
{
	if (system(command))
		abort();
}

static void fake_make_tree(void)
{
	char target[100];

	for (unsigned i = 0; i < FAKE_DEVICES; i++) {
		fake_write(fake_path("/sys/bus/pci/devices/0000:%02x:00.0/vendor", i + 1),
			   "0x1234\n");
		fake_write(fake_path("/sys/bus/pci/devices/0000:%02x:00.0/device", i + 1),
			   "0x7e55\n");
		fake_write(fake_path("/sys/bus/pci/devices/0000:%02x:00.0/class", i + 1),
			   "0x120000\n");
		fake_write(fake_path("/sys/bus/pci/devices/0000:%02x:00.0/irq", i + 1), "0\n");
		fake_write(fake_path("/sys/bus/pci/devices/0000:%02x:00.0/numa_node", i + 1),
			   "0\n");
		fake_write(fake_path("/sys/bus/pci/devices/0000:%02x:00.0/resource", i + 1),
			   "0x00000000f0000000 0x00000000f007ffff 0x0000000000040200\n");
		fake_write(fake_path("/sys/bus/pci/devices/0000:%02x:00.0/vfio-dev/none", i + 1),
			   "");
		fake_write(fake_path("/sys/kernel/iommu_groups/%u/devices/.none", 12 + i), "");
		snprintf(target, sizeof(target), "../../../../kernel/iommu_groups/%u", 12 + i);
		fake_link(target, fake_path("/sys/bus/pci/devices/0000:%02x:00.0/iommu_group",
					    i + 1));
		fake_link("../../../../bus/pci/drivers/vfio-pci",
			  fake_path("/sys/bus/pci/devices/0000:%02x:00.0/driver", i + 1));
		fake_write(fake_path("/dev/vfio/%u", 12 + i), "");
	}
	fake_write(fake_path("/sys/bus/pci/drivers/vfio-pci/new_id", 0), "");
	fake_write(fake_path("/dev/vfio/vfio", 0), "");
	fake_write(fake_path("/proc/1/comm", 0), "init\n");
}

/* Device files and iommufd, as kernels with CONFIG_IOMMUFD have them, or none. */
static void fake_set_cdev(bool on)
{
	for (unsigned i = 0; i < FAKE_DEVICES; i++) {
		char dir[300];

		snprintf(dir, sizeof(dir), "%s/sys/bus/pci/devices/0000:%02x:00.0/vfio-dev/vfio%u",
			 fake.root, i + 1, i);
		if (on)
			mkdir(dir, 0755);
		else
			rmdir(dir);
		if (on)
			fake_write(fake_path("/dev/vfio/devices/vfio%u", i), "");
		else
			unlink(fake_path("/dev/vfio/devices/vfio%u", i));
	}
	if (on)
		fake_write(fake_path("/dev/iommu", 0), "");
	else
		unlink(fake_path("/dev/iommu", 0));
}

/* No memory is taken before somebody writes there. */
static void fake_make_ram(void)
{
	const size_t bytes = FAKE_SLOTS * FAKE_HUGE;

	fake.ram_fd = memfd_create("ram", MFD_CLOEXEC);
	if (fake.ram_fd < 0 || ftruncate(fake.ram_fd, (off_t)bytes))
		abort();
	fake.ram = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE,
			fake.ram_fd, 0);
	if (fake.ram == MAP_FAILED)
		abort();
}

/* Without an IOMMU, and with that allowed, or with one. */
static inline void fake_set_bare(bool on)
{
	char from[300];

	fake.bare = on;
	if (on && !fake.ram)
		fake_make_ram();
	for (unsigned i = 0; i < FAKE_DEVICES; i++) {
		snprintf(from, sizeof(from), "%s", fake_path(on ? "/dev/vfio/%u" :
							     "/dev/vfio/noiommu-%u", 12 + i));
		if (rename(from, fake_path(on ? "/dev/vfio/noiommu-%u" : "/dev/vfio/%u",
					   12 + i)))
			abort();
		if (on)
			fake_write(fake_path("/sys/kernel/iommu_groups/%u/name", 12 + i),
				   "vfio-noiommu\n");
		else
			unlink(fake_path("/sys/kernel/iommu_groups/%u/name", 12 + i));
	}
	fake_write(fake_path("/sys/module/vfio/parameters/enable_unsafe_noiommu_mode", 0),
		   on ? "Y\n" : "N\n");
	fake_write(fake_path("/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", 0),
		   "64\n");
	fake_write(fake_path("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages", 0),
		   "3\n");
	fake_write(fake_path("/proc/self/pagemap", 0), "");
	fake_write(fake_path("/proc/kpageflags", 0), "");
}

/* A kernel on which all is well. */
static void fake_be_good(void)
{
	fake.viable = fake.type1 = fake.can_reset = fake.resizes = true;
	fake.sparse = fake.apart = false;
	fake.version = fake.set_iommu_errno = fake.open_errno = fake.map_errno = 0;
	fake.bind_errno = fake.attach_errno = fake.busy_resets = 0;
	fake.memlock = UINT64_MAX;
	fake.is_root = fake.admin = fake.mode_on = true;
	fake.absent = false;
	fake.max_huge = FAKE_HUGE_PAGES;
	fake.bar0_bytes = HW_BAR0_BYTES;
	fake.id = HW_PCI_VENDOR | (uint32_t)HW_PCI_DEVICE << 16;
	fake.fail_at = 0;
	fake.fail_errno = EIO;
}

static int fake_start(void)
{
	static struct vfio_sys table = {
		.open = fake_open, .close = fake_close, .ioctl = fake_ioctl, .mmap = fake_mmap,
		.munmap = fake_munmap, .pread = fake_pread, .pwrite = fake_pwrite,
		.memlock = fake_memlock,
	};
	struct sim_options o = { .n_devices = FAKE_DEVICES, .hbm_bytes = FAKE_HBM, .lanes = 2,
				 .hbm_file = true };
	struct err err;

	snprintf(fake.root, sizeof(fake.root), "/tmp/tessera-vfio-XXXXXX");
	if (!mkdtemp(fake.root) || sim_create(&o, &fake.sim, &err))
		return -1;
	pthread_mutex_init(&fake.lock, NULL);
	pthread_mutex_init(&fake.huge_lock, NULL);
	for (unsigned i = 0; i < FAKE_DEVICES; i++) {
		fake.device[i].err_fd = fake.device[i].req_fd = -1;
		for (unsigned v = 0; v < HW_MAX_VECTORS; v++)
			fake.device[i].irq[v] = -1;
	}
	fake_be_good();
	fake_make_tree();
	table.root = fake.root;
	vfio_sys = &table;
	return 0;
}

static void fake_stop(void)
{
	char command[100];

	snprintf(command, sizeof(command), "rm -rf %s", fake.root);
	fake_run(command);
	sim_destroy(fake.sim);
	if (fake.ram) {
		munmap(fake.ram, FAKE_SLOTS * FAKE_HUGE);
		close(fake.ram_fd);
		fake.ram = NULL;
	}
	pthread_mutex_destroy(&fake.lock);
	pthread_mutex_destroy(&fake.huge_lock);
}
