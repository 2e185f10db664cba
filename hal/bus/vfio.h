/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HAL_BUS_VFIO_H
#define HAL_BUS_VFIO_H
/*
 * A PCI function through the kernel's VFIO: registers, DMA, interrupts, reset. Knows
 * nothing of the T1; vfio.c makes a bus of it. Private to hal/, and to tests that drive
 * other functions.
 *
 * Two ways in, of which the system decides: the function's own device file with iommufd,
 * or its group with a type 1 container. Without an IOMMU only by a name of its own.
 *
 * Functions may be called from any thread, but one at a time for one vector; vfio_open and
 * vfio_close one at a time for functions of one list of domains, and the latter comes last and
 * alone. None blocks but for these two and vfio_reset (bounded), and a mapping, which waits for
 * another one's pages to be pinned.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "hal/base/err.h"
#include "hal/base/files.h"
#include "hal/bus/vfio_uapi.h"

#define VFIO_MAX_RANGES 64u
#define VFIO_MAX_VECTORS 64u
#define VFIO_PAGE 4096u

/* The kernel, as the bus calls it. Tests put their own in the place of vfio_sys. */
struct vfio_sys {
	const char *root;	/* in front of /sys, /dev and /proc; "" */
	int (*open)(const char *path, int flags);
	int (*close)(int fd);
	int (*ioctl)(int fd, unsigned long request, void *arg);
	void *(*mmap)(void *at, size_t bytes, int prot, int flags, int fd, off_t offset);
	int (*munmap)(void *at, size_t bytes);
	ssize_t (*pread)(int fd, void *to, size_t bytes, off_t offset);
	ssize_t (*pwrite)(int fd, const void *from, size_t bytes, off_t offset);
	/* Bytes that this process may pin; UINT64_MAX: no limit. */
	uint64_t (*memlock)(void);
};
extern const struct vfio_sys *vfio_sys;

/* What sysfs says of a function. */
struct vfio_place {
	char bdf[16];		/* "0000:01:00.0" */
	unsigned vendor, device;
	char driver[32];	/* "": none is bound */
	int group;		/* -1: none */
	int numa_node;		/* -1: unknown */
	bool no_iommu;		/* its group is one without an IOMMU */
	char node[280];		/* of the group, below the root; "": none */
	char cdev[280];		/* the function's own device file; "": none */
};

enum vfio_way { VFIO_WITH_IOMMU, VFIO_WITHOUT_IOMMU };

/* A piece of memory at one stretch of physical addresses. */
struct vfio_run { uint64_t physical, bytes; };

/* Addresses that the device may use, and those in use. */
struct vfio_area {
	struct vfio_area *next;	/* ascending */
	uint64_t iova, bytes, host;
	unsigned n_uses;	/* mappings of functions that are this one */
	struct vfio_run *runs;	/* without an IOMMU: what is behind it, in order */
	unsigned n_runs;
};

struct vfio_space {
	struct vfio_range range[VFIO_MAX_RANGES];	/* ascending */
	unsigned n_ranges;
	struct vfio_area *areas;
};

/* An address space and the functions that are in it: each reaches all that is mapped there. */
struct vfio_domain {
	struct vfio_domain *next;
	const struct vfio_iommu *iommu;
	unsigned n_functions;	/* the domain goes with the last */
	int container;		/* /dev/iommu for iommufd */
	struct files_own own;	/* container */
	uint32_t ioas;
	pthread_mutex_t lock;	/* over the space, and what functions use of it */
	struct vfio_space space;
};

/* One mapping of a function's. */
struct vfio_use { struct vfio_use *next; struct vfio_area *area; };

struct vfio;

/* How a function comes to its address space. */
struct vfio_iommu {
	const char *name;
	bool pins;	/* what is mapped counts towards the limit of pinned memory */
	bool shares;	/* several functions may be in one domain */
	/* Opens what is needed and not there, and sets device, and the ranges of the space of
	 * v->domain. What it leaves behind on failure, detach frees, which ends the domain for its
	 * last function. */
	int (*attach)(struct vfio *v, struct err *err);
	void (*detach)(struct vfio *v);
	/* These give an errno; map may set `err` itself and give minus its code. */
	int (*map)(struct vfio *v, struct vfio_area *area, struct err *err);
	int (*unmap)(struct vfio *v, uint64_t iova, uint64_t bytes);
};
extern const struct vfio_iommu vfio_type1, vfio_iommufd, vfio_bare;

struct vfio {
	const struct vfio_sys *sys;
	const struct vfio_iommu *iommu;
	struct vfio_place place;
	struct vfio_domain *domain, **domains;	/* NULL: in none yet; and the list that it is of */
	struct vfio_use *uses;	/* under the domain's lock */
	int group, device;
	struct files_own own_group, own_device;	/* others may open them once they are closed */
	int pagemap, pageflags;	/* without an IOMMU: the kernel's lists of pages */
	uint64_t config;	/* offset of configuration space */
	bool can_reset;
	pthread_mutex_t lock;	/* over the interrupts, and why it is lost */
	struct { uint32_t index, n, count, flags; int fd[VFIO_MAX_VECTORS]; } irq;
	/* The kernel's own notices, and who hears of them. */
	int err_fd, req_fd, quit_fd;
	pthread_t watcher;
	bool has_watcher;
	atomic_bool is_lost;
	bool wanted_back;	/* lost, and no reset helps; under lock */
	struct err why;		/* under lock; set before is_lost */
};

/* Opens function `bdf` for this process alone, in a domain of the list `domains` where it can be
 * (which memory is then pinned once for all of), else in one of its own, which the list gets. The
 * list stays, at the same place, until the function is closed. NOT_FOUND: there is none;
 * FAILED_PRECONDITION: something must be done first, and the text says what;
 * PERMISSION_DENIED; UNAVAILABLE. */
int vfio_open(struct vfio_domain **domains, const char *bdf, enum vfio_way way,
	      struct vfio **out, struct err *err);
void vfio_close(struct vfio *v);

/* A BAR in our address space, or NULL where the kernel does not give it (the error is
 * set only if it failed to). Unmapped by the caller with sys->munmap. */
int vfio_map_bar(struct vfio *v, unsigned bar, void **out, uint64_t *bytes, uint64_t *offset,
		 struct err *err);
int vfio_config_read(struct vfio *v, uint32_t offset, void *to, size_t n, struct err *err);
/* Turns memory accesses and bus mastering on; a reset turns them off. */
int vfio_enable(struct vfio *v, struct err *err);
/* What another function of the domain maps, the same bytes, has one address and is pinned once. */
int vfio_dma_map(struct vfio *v, void *host, uint64_t bytes, uint64_t *iova, struct err *err);
/* NOT_FOUND if no mapping of this function starts there. */
int vfio_dma_unmap(struct vfio *v, uint64_t iova, struct err *err);
/* An eventfd (-1: none) for `vector` of VFIO_MSI or VFIO_MSIX; one index in use at a time. */
int vfio_irq_fd(struct vfio *v, unsigned index, unsigned vector, int fd, struct err *err);
/* Turns bus mastering off: the device reaches no memory until a reset, and is lost till
 * then (vfio_health). */
void vfio_cut(struct vfio *v, const char *why);
int vfio_reset(struct vfio *v, struct err *err);
int vfio_health(struct vfio *v, struct err *err);
/* From now on vfio_health() says `what`, until a reset unless `for_good`; wakes those who
 * wait for an interrupt. */
void vfio_lose(struct vfio *v, bool for_good, const char *what);

/* ---- vfio_place.c: what sysfs knows, and what to tell people ---- */

int vfio_find(const char *bdf, struct vfio_place *out, struct err *err);
/* 0 if `way` could be tried, or what stands against it. */
int vfio_check(const struct vfio_place *p, enum vfio_way way, struct err *err);
/* Opens the node for the function; no child of fork keeps it, and files_close ends it. */
int vfio_open_node(const struct vfio_place *p, const char *node, struct files_own *own, int *out,
		   struct err *err);
int vfio_busy(const struct vfio_place *p, const char *path, struct err *err);
/* Interrupts are not remapped, and `module` refuses the device for that. */
int vfio_unsafe(const struct vfio_place *p, const char *module, struct err *err);
int vfio_not_viable(const struct vfio_place *p, struct err *err);
/* Doing without an IOMMU is not allowed in this kernel; for root alone. */
int vfio_mode_off(const struct vfio_place *p, struct err *err);
int vfio_not_root(const struct vfio_place *p, struct err *err);

/* ---- vfio_group.c: what ways by the group have in common ---- */

/* The group in a container of `kind`. */
int vfio_group_join(struct vfio *v, int kind, struct err *err);
int vfio_group_device(struct vfio *v, struct err *err);
void vfio_group_leave(struct vfio *v);

/* ---- vfio_bare.c: without an IOMMU ---- */

/* Huge pages, which vfio_dma_map takes there; *bytes is rounded up to whole ones.
 * RESOURCE_EXHAUSTED: there are none, and how to get some. */
int vfio_bare_pages(struct vfio *v, uint64_t *bytes, void **out, struct err *err);
void vfio_bare_free(struct vfio *v, void *pages, uint64_t bytes);
/* The physical address of byte `offset` of the mapping that starts at iova, and how many
 * bytes are in one piece from there on (0: no such mapping). */
uint64_t vfio_bare_address(struct vfio *v, uint64_t iova, uint64_t offset, uint64_t *bytes);

/* ---- vfio_space.c ---- */

/* A free place of `bytes`, congruent to `host` in large pages where that is large.
 * RESOURCE_EXHAUSTED. `area` becomes the space's. */
int vfio_space_take(struct vfio_space *s, struct vfio_area *area, uint64_t bytes,
		    uint64_t host, struct err *err);
/* The area that starts at iova, the caller's again; NULL: none. */
struct vfio_area *vfio_space_drop(struct vfio_space *s, uint64_t iova);
/* The area that is just these bytes, or NULL. */
struct vfio_area *vfio_space_find(struct vfio_space *s, uint64_t host, uint64_t bytes);
/* Takes over ranges as reported; false if they make no sense. */
bool vfio_space_set(struct vfio_space *s, const struct vfio_range *range, unsigned n);
/* The same for a domain that others may be using. */
bool vfio_set_ranges(struct vfio_domain *d, const struct vfio_range *range, unsigned n);

#endif
