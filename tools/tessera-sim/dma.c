/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The client's memory. A mapping comes with a descriptor of the file that holds it; of
 * each file one mapping of ours is kept, however many pieces of it the client lets us
 * reach (a monitor with an IOMMU maps page by page). A mapping without a
 * descriptor is memory that has to be asked for: remote.c.
 *
 * What follows one another for the device must do so for the model, too, though a guest's
 * pages lie anywhere in its memory: low addresses are seen a second time in a window that
 * is laid out as the device sees them.
 *
 * Unmapping removes every mapping inside the range, were it the whole address space,
 * and is content with none: a monitor sweeps so when its guest changes domains.
 *
 * Only memory files are taken: another file system, a client's own for one, could
 * keep the model waiting in a page fault for ever.
 */
#include <errno.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "tools/tessera-sim/server.h"

/* What one client may take of the process that all share, beside its part of the areas that the
 * kernel lets a process have (dma.most_areas): without one the next client could not be served,
 * nor a SIGBUS be handled. */
#define MAX_BACKED ((uint64_t)1 << 40)	/* address space */
#define MAX_BACKINGS 1024u		/* files */
#define WINDOW ((uint64_t)64 << 30)	/* where guests put what they map for DMA */

struct backing {
	struct backing *next, **link;
	dev_t dev;
	ino_t ino;
	bool writable;
	uint8_t *base;
	uint64_t bytes;
	unsigned n_users;
	struct guard *guard;
};

/* n more areas of the process's address space, if there is room for these and `left` others. */
static bool take_areas(struct dma *t, unsigned n, unsigned left)
{
	if (atomic_load(&t->n_areas) + n + left > t->most_areas)
		return false;
	atomic_fetch_add(&t->n_areas, n);
	return true;
}

/* Areas that the window leaves: a file without one is refused, a piece that is not in the window
 * is only not seen behind its neighbour. */
static unsigned for_files(const struct dma *t)
{
	unsigned most = t->most_areas / 2 < MAX_BACKINGS ? t->most_areas / 2 : MAX_BACKINGS;

	return most > t->n_backings ? most - t->n_backings : 0;
}

static void drop_backing(struct dma *t, struct backing *b)
{
	if (--b->n_users)
		return;
	guard_remove(b->guard);
	munmap(b->base, b->bytes);
	dma_give_back(t, b->bytes);
	t->n_backings--;
	*b->link = b->next;
	if (b->next)
		b->next->link = b->link;
	free(b);
}

static bool is_memory(int fd)
{
	struct statfs fs;

	return !fstatfs(fd, &fs) &&
	       (fs.f_type == TMPFS_MAGIC || fs.f_type == HUGETLBFS_MAGIC);
}

/* One area, and its bytes. */
static bool take_area(struct dma *t, uint64_t bytes)
{
	if (bytes > MAX_BACKED - atomic_load(&t->backed_bytes) || !take_areas(t, 1, 0))
		return false;
	atomic_fetch_add(&t->backed_bytes, bytes);
	return true;
}

/* All of the file, guarded. An errno. */
static int map_backing(struct device *d, int fd, struct backing *b)
{
	int error;

	b->base = mmap(NULL, b->bytes, PROT_READ | (b->writable ? PROT_WRITE : 0),
		       MAP_SHARED | MAP_NORESERVE, fd, 0);
	if (b->base == MAP_FAILED)
		return errno;
	b->guard = guard_add(b->base, b->bytes, &d->is_broken);
	error = b->guard ? 0 : ENOSPC;
	if (error)
		munmap(b->base, b->bytes);
	return error;
}

static int make_backing(struct device *d, int fd, const struct stat *st, bool writable,
			struct backing **out)
{
	struct dma *t = &d->dma;
	struct backing *b;
	int error;

	if (t->n_backings == MAX_BACKINGS || !take_area(t, (uint64_t)st->st_size))
		return ENOSPC;
	b = calloc(1, sizeof(*b));
	error = b ? 0 : ENOMEM;
	if (b) {
		b->writable = writable;
		b->bytes = (uint64_t)st->st_size;
		error = map_backing(d, fd, b);
	}
	if (error) {
		dma_give_back(t, (uint64_t)st->st_size);
		free(b);
		return error;
	}
	b->dev = st->st_dev;
	b->ino = st->st_ino;
	b->next = t->backings;
	b->link = &t->backings;
	if (b->next)
		b->next->link = &b->next;
	t->backings = b;
	t->n_backings++;
	*out = b;
	return 0;
}

/* Our mapping of the file fd, which must reach to `end`. */
static int find_backing(struct device *d, int fd, uint64_t end, bool writable,
			struct backing **out)
{
	struct stat st;
	int error;

	if (fstat(fd, &st))
		return errno;
	if (!S_ISREG(st.st_mode) || !is_memory(fd) || st.st_size <= 0 ||
	    end > (uint64_t)st.st_size)
		return EINVAL;
	for (struct backing *b = d->dma.backings; b; b = b->next)
		if (b->dev == st.st_dev && b->ino == st.st_ino && end <= b->bytes &&
		    b->writable == writable) {
			b->n_users++;
			*out = b;
			return 0;
		}
	error = make_backing(d, fd, &st, writable, out);
	if (!error)
		(*out)->n_users = 1;
	return error;
}

/* First mapping that ends after iova. */
static unsigned find(const struct dma *t, uint64_t iova)
{
	unsigned lo = 0, hi = t->n;

	while (lo < hi) {
		unsigned mid = (lo + hi) / 2;

		if (t->maps[mid].iova + (t->maps[mid].bytes - 1) < iova)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static void *host_of(const struct mapping *m)
{
	return m->remote ? remote_base(m->remote) :
	       m->backing ? m->backing->base + m->offset : NULL;
}

static bool make_window(struct device *d)
{
	struct dma *t = &d->dma;
	void *p;

	if (t->window)
		return true;
	p = mmap(NULL, WINDOW, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED)
		return false;
	t->window_guard = guard_add(p, WINDOW, &d->is_broken);
	if (!t->window_guard) {
		munmap(p, WINDOW);
		return false;
	}
	t->window = p;
	return true;
}

/* How many areas more there are with m in the window than without: its own, and the gap that it
 * cuts in two, of which what adjoins leaves nothing. */
static unsigned areas_of(const struct dma *t, const struct mapping *m)
{
	unsigned i = find(t, m->iova), n = 2;
	unsigned next = i < t->n && t->maps[i].iova == m->iova ? i + 1 : i;

	if (i && t->maps[i - 1].in_window &&
	    t->maps[i - 1].iova + t->maps[i - 1].bytes == m->iova)
		n--;
	if (next < t->n && t->maps[next].in_window &&
	    t->maps[next].iova == m->iova + m->bytes)
		n--;
	return n;
}

static void leave_window(struct dma *t, struct mapping *m)
{
	mmap(t->window + m->iova, m->bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS |
	     MAP_NORESERVE | MAP_FIXED, -1, 0);
	atomic_fetch_sub(&t->n_areas, areas_of(t, m));
	m->in_window = false;
}

/* The place of m in the window, or where it is else. */
static void *place(struct device *d, struct mapping *m)
{
	struct dma *t = &d->dma;
	uint8_t *to, *host = host_of(m);
	unsigned n = areas_of(t, m);

	if (!m->backing || m->in_window || m->iova >= WINDOW || m->bytes > WINDOW - m->iova ||
	    !make_window(d) || !take_areas(t, n, for_files(t)))
		return m->in_window ? t->window + m->iova : host;
	to = t->window + m->iova;
	/* Of size 0: shared memory stays where it is and is seen here, too. */
	if (mremap(host, 0, m->bytes, MREMAP_MAYMOVE | MREMAP_FIXED, to) == MAP_FAILED) {
		atomic_fetch_sub(&t->n_areas, n);
		return host;
	}
	m->in_window = true;
	return to;
}

static int enter(struct device *d, struct mapping *m)
{
	void *host;
	int code;

	if (m->in_model)
		return 0;
	host = place(d, m);
	code = host ? sim_dma_map(d->sim, m->iova, host, m->bytes,
				  m->flags & VFU_MAP_WRITE, NULL) : 0;
	m->in_model = host && !code;
	return !code ? 0 : code == ERR_ALREADY_EXISTS ? EEXIST :
	       code == ERR_INVALID_ARGUMENT ? EINVAL : ENOSPC;
}

/* A run that used it is told to end, but may wait for other memory of the client's, who may answer
 * nothing before we do: what is asked meanwhile fails. */
static void leave(struct device *d, struct mapping *m)
{
	bool is_used = m->in_model && sim_dma_cut(d->sim, m->iova);

	if (is_used)
		link_hush(d->link, true);
	if (m->in_model)
		sim_dma_unmap(d->sim, m->iova, NULL);
	if (is_used)
		link_hush(d->link, false);
	m->in_model = false;
}

static void release(struct device *d, struct mapping *m)
{
	if (m->remote)
		remote_abandon(m->remote);
	leave(d, m);
	if (m->in_window)
		leave_window(&d->dma, m);
	if (m->backing)
		drop_backing(&d->dma, m->backing);
	remote_destroy(m->remote);
}

static int insert(struct dma *t, const struct mapping *m)
{
	unsigned i = find(t, m->iova);

	if (i < t->n && t->maps[i].iova <= m->iova + (m->bytes - 1))
		return EEXIST;
	if (t->n == t->room) {
		unsigned room = t->room ? t->room * 2 : 64;
		struct mapping *grown = t->n >= VFU_MAX_MAPS ? NULL :
			realloc(t->maps, room * sizeof(*grown));

		if (!grown)
			return ENOSPC;
		t->maps = grown;
		t->room = room;
	}
	memmove(&t->maps[i + 1], &t->maps[i], (t->n - i) * sizeof(*t->maps));
	t->maps[i] = *m;
	t->n++;
	return 0;
}

static void remove_range(struct dma *t, unsigned first, unsigned n)
{
	memmove(&t->maps[first], &t->maps[first + n],
		(t->n - first - n) * sizeof(*t->maps));
	t->n -= n;
}

static int find_memory(struct device *d, struct mapping *m, int fd)
{
	uint64_t end;
	int error = 0;

	if (__builtin_add_overflow(m->offset, m->bytes, &end))
		return EINVAL;
	if (fd >= 0)
		return find_backing(d, fd, end, m->flags & VFU_MAP_WRITE, &m->backing);
	if (!take_area(&d->dma, m->bytes)) {
		error = ENOSPC;
	} else {
		m->remote = remote_create(d, m->iova, m->bytes, &error);
		if (m->remote)
			bells_sync(&d->bells, d->remotes);
		else
			dma_give_back(&d->dma, m->bytes);
	}
	/* A monitor gives up its machine if its ROMs can't be mapped, which nobody
	 * would reach by DMA: keep the range, and let accesses fault. */
	if (!m->remote && !d->n_unreachable++)
		say("%u: [0x%llx, +0x%llx) came without a descriptor and can't be reached: %s; "
		    "later ones are not named",
		    d->index, (unsigned long long)m->iova, (unsigned long long)m->bytes,
		    strerror(error));
	return 0;
}

int dma_map(struct device *d, const struct vfu_dma_map *in, int fd)
{
	struct mapping m = { .iova = in->iova, .bytes = in->bytes, .offset = in->offset,
			     .flags = in->flags };
	uint64_t last;
	unsigned i;
	int error;

	if (in->argsz < sizeof(*in) || in->flags & ~(uint32_t)(VFU_MAP_READ | VFU_MAP_WRITE) ||
	    !in->flags || !in->bytes || in->iova % HW_PAGE || in->bytes % HW_PAGE ||
	    in->offset % HW_PAGE || __builtin_add_overflow(in->iova, in->bytes - 1, &last))
		return EINVAL;
	i = find(&d->dma, in->iova);
	if (i < d->dma.n && d->dma.maps[i].iova <= last)
		return EEXIST;
	error = find_memory(d, &m, fd);
	if (!error && d->dma.is_on)
		error = enter(d, &m);
	if (!error)
		error = insert(&d->dma, &m);
	if (error)
		release(d, &m);
	return error;
}

int dma_unmap(struct device *d, const struct vfu_dma_unmap *u)
{
	struct dma *t = &d->dma;
	uint64_t last;
	unsigned first, n = 0;

	if (u->argsz < sizeof(*u) || u->flags & ~(uint32_t)VFU_UNMAP_ALL)
		return EINVAL;
	if (u->flags & VFU_UNMAP_ALL) {
		if (u->iova || u->bytes)
			return EINVAL;
		dma_clear(d);
		return 0;
	}
	if (!u->bytes || u->iova % HW_PAGE || u->bytes % HW_PAGE ||
	    __builtin_add_overflow(u->iova, u->bytes - 1, &last))
		return EINVAL;
	first = find(t, u->iova);
	while (first + n < t->n && t->maps[first + n].iova <= last)
		n++;
	if (n && (t->maps[first].iova < u->iova || t->maps[first + n - 1].iova +
		  (t->maps[first + n - 1].bytes - 1) > last))
		return EINVAL;	/* half a mapping cannot be taken */
	/* From the end, so that the model moves little of its table each time. */
	for (unsigned i = n; i-- > 0; )
		release(d, &t->maps[first + i]);
	if (n)
		remove_range(t, first, n);
	return 0;
}

void dma_turn(struct device *d, bool on)
{
	struct dma *t = &d->dma;
	unsigned failed = 0;

	if (on == t->is_on)
		return;
	t->is_on = on;
	for (unsigned i = t->n; i-- > 0; ) {
		if (on)
			failed += enter(d, &t->maps[i]) != 0;
		else
			leave(d, &t->maps[i]);
	}
	if (failed)
		say("%u: %u mappings do not fit into the model and can't be reached",
		    d->index, failed);
}

void dma_clear(struct device *d)
{
	for (unsigned i = d->dma.n; i-- > 0; )
		release(d, &d->dma.maps[i]);
	free(d->dma.maps);
	d->dma.maps = NULL;
	d->dma.n = d->dma.room = 0;
	if (d->dma.window) {
		guard_remove(d->dma.window_guard);
		munmap(d->dma.window, WINDOW);
		d->dma.window = NULL;
	}
}
