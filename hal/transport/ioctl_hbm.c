/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HBM through the kernel driver: buffers of it that are mapped in the context and, of a model,
 * for the CPU; what may be had; and who has the rest, as far as /proc tells.
 *
 * The CPU sees HBM write-combined: a load waits for the bus each time. That is nothing on
 * a model, whose memory is the host's; of a real device the copies of hal/copy.c go by DMA,
 * both ways, as over VFIO.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hal/base/files.h"
#include "hal/base/str.h"
#include "hal/hw/regs.h"
#include "hal/transport.h"
#include "hal/transport/ioctl.h"
#include "kernel-uapi/include/tessera_drm.h"

#define PAGE ((uint64_t)HW_PAGE)
#define LEAST_HBM ((uint64_t)1 << 20)
#define MOST_NAMED 2u		/* holders in a text */
#define MOST_HOLDERS 256u	/* looked at */
#define MOST_CLIENTS 16u	/* of one process: an open node is a client */

struct accel_block {
	struct accel_block *next;
	uint64_t offset, bytes;
	uint32_t handle;
	void *host;
};

static uint64_t floor_page(uint64_t n)
{
	return n & ~(PAGE - 1);
}

/* 0, or an errno. */
static int call(struct accel_hbm *h, unsigned long request, void *arg)
{
	return accel_sys->ioctl(h->fd, request, arg) ? errno : 0;
}

static void close_handle(struct accel_hbm *h, uint32_t handle)
{
	struct drm_gem_close c = { .handle = handle };

	if (handle)
		call(h, DRM_IOCTL_GEM_CLOSE, &c);
}

/* ---- what may be had ---- */

/* "3G", "512M", "4096"; 0 if it is no size. */
static uint64_t read_size(const char *text)
{
	static const char units[] = "KMGT";
	const char *unit;
	char *end;
	unsigned long long n;
	uint64_t bytes;

	errno = 0;
	n = strtoull(text, &end, 10);
	if (errno || end == text || *text == '-')
		return 0;
	unit = *end ? strchr(units, *end) : NULL;
	if (*end && (!unit || end[1]))
		return 0;
	return __builtin_mul_overflow(n, 1ull << (unit ? 10 * (unit - units + 1) : 0), &bytes) ?
	       0 : bytes;
}

/* What the driver says, or its errno. */
static int ask_memory(struct accel_hbm *h, struct drm_tessera_memory *m)
{
	uint64_t bytes = sizeof(*m);
	int sysno;

	memset(m, 0, sizeof(*m));
	sysno = accel_query(h->fd, DRM_TESSERA_QUERY_MEMORY, 0, m, &bytes);
	/* A driver of before ABI 2 says 0: it has none. */
	if (!m->hbm_limit_of_file || m->hbm_limit_of_file > m->hbm_total)
		m->hbm_limit_of_file = m->hbm_total;
	return sysno;
}

int accel_hbm_start(struct accel_hbm *h, const char *path, int fd, struct hw_identify *identity,
		    struct err *err)
{
	const char *text = getenv("TESSERA_HBM_BYTES");
	struct drm_tessera_memory m;
	int sysno;

	*h = (struct accel_hbm){ .path = path, .fd = fd, .is_seen = identity->is_model,
				 .most = UINT64_MAX };
	sysno = ask_memory(h, &m);
	if (sysno)
		return accel_refused(path, fd, sysno, "asking how much HBM there is", err);
	if (text && *text) {
		h->most = read_size(text);
		if (h->most < LEAST_HBM)
			return err_set(err, ERR_INVALID_ARGUMENT, "TESSERA_HBM_BYTES=\"%s\": "
				       "say how much HBM this process may take, at least 1M: "
				       "512M, 3G or a number of bytes", text);
		h->most = h->most > UINT64_MAX - PAGE ? UINT64_MAX : floor_page(h->most + PAGE - 1);
		if (h->most > m.hbm_limit_of_file && m.hbm_limit_of_file < m.hbm_total)
			return err_set(err, ERR_RESOURCE_EXHAUSTED, "TESSERA_HBM_BYTES=\"%s\": a "
				       "process may have %llu bytes of HBM of %s. Ask for less, or "
				       "let it have more, as root: echo MIB > "
				       "/sys/module/tessera/parameters/file_hbm_mib", text,
				       (unsigned long long)m.hbm_limit_of_file, path);
	}
	identity->hbm_bytes = floor_page(h->most < m.hbm_limit_of_file ? h->most :
					 m.hbm_limit_of_file);
	return 0;
}

void accel_hbm_room(struct accel_hbm *h, struct hal_room *out)
{
	struct drm_tessera_memory m;
	uint64_t most, mine, free, left;

	if (ask_memory(h, &m))
		return;
	mine = m.hbm_used_by_file;
	most = h->most < m.hbm_limit_of_file ? h->most : m.hbm_limit_of_file;
	left = most > mine ? floor_page(most - mine) : 0;
	free = m.hbm_total - m.hbm_used;
	*out = (struct hal_room){
		.limit = mine + (left < free ? left : free),
		.largest = left < m.hbm_largest_free ? left : m.hbm_largest_free,
		.others = m.hbm_used > mine ? m.hbm_used - mine : 0,
	};
}

/* ---- blocks ---- */

int accel_hbm_map_all(struct accel_hbm *h, uint32_t ctx, struct err *err)
{
	for (const struct accel_block *b = h->blocks; b; b = b->next) {
		int sysno = accel_map(h->fd, ctx, b->handle, HAL_HBM_VA + b->offset);

		if (sysno)
			return accel_refused(h->path, h->fd, sysno, "mapping HBM in the context",
					     err);
	}
	return 0;
}

static void free_block(struct accel_hbm *h, struct accel_block *b)
{
	if (b->host)
		accel_sys->munmap(b->host, b->bytes);
	close_handle(h, b->handle);
	free(b);
}

void accel_hbm_end(struct accel_hbm *h)
{
	struct accel_block *b;

	while ((b = h->blocks)) {
		h->blocks = b->next;
		free_block(h, b);
	}
}

/* As large as can be between `least` and `wanted`, of which one is tried and then the other. */
static int create(struct accel_hbm *h, uint64_t least, uint64_t wanted,
		  struct drm_tessera_bo_create *bo)
{
	uint64_t left = h->most;
	int sysno = EMFILE;

	for (const struct accel_block *b = h->blocks; b; b = b->next)
		left -= b->bytes < left ? b->bytes : left;
	left = floor_page(left);
	if (wanted > left)
		wanted = left;
	for (; wanted >= least; wanted = least) {
		*bo = (struct drm_tessera_bo_create){ .size = wanted, .flags = DRM_TESSERA_BO_HBM };
		sysno = call(h, DRM_IOCTL_TESSERA_BO_CREATE, bo);
		if ((sysno != ENOSPC && sysno != EMFILE) || wanted == least)
			break;
	}
	return sysno;
}

int accel_hbm_take(struct accel_hbm *h, uint32_t ctx, uint64_t offset, uint64_t least,
		   uint64_t wanted, uint64_t *bytes, void **host, struct err *err)
{
	struct accel_block *b = calloc(1, sizeof(*b));
	struct drm_tessera_bo_create bo;
	int sysno, code = 0;

	if (!b)
		return err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory");
	sysno = create(h, least, wanted, &bo);
	if (sysno) {
		free(b);
		/* The caller knows best what to tell of these. */
		if (sysno == ENOSPC || sysno == EMFILE)
			return err_set(err, ERR_RESOURCE_EXHAUSTED, "%s has no %llu bytes of HBM",
				       h->path, (unsigned long long)least);
		return accel_refused(h->path, h->fd, sysno, "allocating HBM", err);
	}
	*b = (struct accel_block){ .next = h->blocks, .offset = offset, .bytes = bo.size,
				   .handle = bo.handle };
	if (h->is_seen)
		code = accel_map_cpu(h->path, h->fd, bo.mmap_offset, bo.size,
				     PROT_READ | PROT_WRITE, "mapping HBM", &b->host, err);
	sysno = code ? 0 : accel_map(h->fd, ctx, b->handle, HAL_HBM_VA + offset);
	if (sysno)
		code = accel_refused(h->path, h->fd, sysno, "mapping HBM in the context", err);
	if (code) {
		free_block(h, b);
		return code;
	}
	h->blocks = b;
	*bytes = b->bytes;
	*host = b->host;
	return 0;
}

int accel_hbm_give(struct accel_hbm *h, uint32_t ctx, uint64_t offset, struct err *err)
{
	struct drm_tessera_unmap u = { .ctx = ctx, .va = HAL_HBM_VA + offset };
	struct accel_block **link = &h->blocks, *b;
	int sysno;

	while (*link && (*link)->offset != offset)
		link = &(*link)->next;
	b = *link;
	if (!b)
		return err_set(err, ERR_NOT_FOUND, "no HBM of %s is at 0x%llx", h->path,
			       (unsigned long long)u.va);
	sysno = accel_peer_drop(h, b->handle);
	if (!sysno && ctx)
		sysno = call(h, DRM_IOCTL_TESSERA_UNMAP, &u);
	/* What the device may still reach stays ours; a context that is lost reaches nothing. */
	if (sysno == EBUSY || sysno == EINTR || sysno == ETIMEDOUT)
		return err_set(err, ERR_FAILED_PRECONDITION, "HBM of %s at 0x%llx is not given "
			       "back yet: %s", h->path, (unsigned long long)u.va, strerror(sysno));
	*link = b->next;
	free_block(h, b);
	return 0;
}

int accel_hbm_show(struct accel_hbm *h, uint64_t offset, uint64_t bytes, struct accel_hbm *by,
		   uint32_t ctx, uint64_t base, struct err *err)
{
	int code = 0;

	for (const struct accel_block *b = h->blocks; b && !code; b = b->next)
		if (b->offset < offset + bytes && offset < b->offset + b->bytes)
			code = accel_peer_map(h, b->handle, by, ctx, base + b->offset, err);
	return code;
}

/* ---- who has the rest ---- */

struct holder {
	unsigned long pid;
	uint64_t bytes;
	char command[32];
};

/* Adds a client's HBM to *bytes unless it is among those that were seen. */
static void read_fdinfo(const char *path, char seen[MOST_CLIENTS][24], unsigned *n,
			uint64_t *bytes)
{
	FILE *f = fopen(path, "re");
	char line[256], id[24] = "", unit[8];
	unsigned long long held;

	while (f && fgets(line, sizeof(line), f)) {
		*unit = 0;
		if (sscanf(line, "drm-client-id: %23s", id) == 1) {
			unsigned i = 0;

			while (i < *n && strcmp(seen[i], id))
				i++;
			if (i < *n || *n == MOST_CLIENTS)
				break;
			memcpy(seen[(*n)++], id, sizeof(id));
		} else if (sscanf(line, "drm-total-hbm: %llu %7s", &held, unit) >= 1) {
			*bytes += held << (!strcmp(unit, "KiB") ? 10 :
					   !strcmp(unit, "MiB") ? 20 : 0);
		}
	}
	if (f)
		fclose(f);
}

/* Whether an open file is this node; in a container it may have another path. */
static bool is_node(const char *link, const struct stat *node)
{
	struct stat st;

	if (stat(link, &st))
		return false;
	return S_ISCHR(node->st_mode) ? S_ISCHR(st.st_mode) && st.st_rdev == node->st_rdev :
	       st.st_dev == node->st_dev && st.st_ino == node->st_ino;
}

static void read_command(unsigned long pid, char *out, size_t bytes)
{
	char path[300];

	snprintf(path, sizeof(path), "%s/proc/%lu/comm", accel_sys->root, pid);
	if (!files_read_line(path, out, bytes))
		snprintf(out, bytes, "?");
	for (char *c = out; *c; c++)
		*c = isprint((unsigned char)*c) ? *c : '?';
}

/* What the process holds of the node; `own` is our own client, not to be counted. */
static uint64_t held_by(unsigned long pid, const struct stat *node, const char *own)
{
	char path[300], fd[300], seen[MOST_CLIENTS][24];
	unsigned n = 1;
	uint64_t bytes = 0;
	struct dirent *e;
	DIR *d;

	snprintf(seen[0], sizeof(seen[0]), "%s", own);
	snprintf(path, sizeof(path), "%s/proc/%lu/fd", accel_sys->root, pid);
	d = opendir(path);
	while (d && (e = readdir(d))) {
		unsigned long k = strtoul(e->d_name, NULL, 10);

		snprintf(fd, sizeof(fd), "%s/proc/%lu/fd/%lu", accel_sys->root, pid, k);
		if (!isdigit((unsigned char)*e->d_name) || !is_node(fd, node))
			continue;
		snprintf(fd, sizeof(fd), "%s/proc/%lu/fdinfo/%lu", accel_sys->root, pid, k);
		read_fdinfo(fd, seen, &n, &bytes);
	}
	if (d)
		closedir(d);
	return bytes;
}

static void read_own_client(int fd, char id[24])
{
	char path[300], line[256];
	FILE *f;

	*id = 0;
	snprintf(path, sizeof(path), "%s/proc/self/fdinfo/%d", accel_sys->root, fd);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "drm-client-id: %23s", id) == 1)
			break;
	if (f)
		fclose(f);
}

static int by_bytes(const void *a, const void *b)
{
	const struct holder *x = a, *y = b;

	return x->bytes < y->bytes ? 1 : x->bytes > y->bytes ? -1 : 0;
}

static unsigned find_holders(struct accel_hbm *h, struct holder *out)
{
	char path[300], own[24];
	struct dirent *e;
	struct stat node;
	unsigned n = 0;
	DIR *d;

	read_own_client(h->fd, own);
	if (fstat(h->fd, &node))
		return 0;
	snprintf(path, sizeof(path), "%s/proc", accel_sys->root);
	d = opendir(path);
	while (d && n < MOST_HOLDERS && (e = readdir(d))) {
		struct holder *x = &out[n];

		if (!isdigit((unsigned char)*e->d_name))
			continue;
		x->pid = strtoul(e->d_name, NULL, 10);
		x->bytes = held_by(x->pid, &node, own);
		n += x->bytes > 0;
	}
	if (d)
		closedir(d);
	qsort(out, n, sizeof(*out), by_bytes);
	return n;
}

void accel_hbm_holders(struct accel_hbm *h, uint64_t others, struct str *out)
{
	struct holder *all = calloc(MOST_HOLDERS, sizeof(*all));
	unsigned n = all ? find_holders(h, all) : 0, i;

	for (i = 0; i < n && i < MOST_NAMED; i++) {
		read_command(all[i].pid, all[i].command, sizeof(all[i].command));
		str_printf(out, "%sprocess %lu (%s) %llu", i ? ", " : "", all[i].pid,
			   all[i].command, (unsigned long long)all[i].bytes);
		others -= all[i].bytes < others ? all[i].bytes : others;
	}
	/* Those of other users, unless root asks, and those past the few. */
	if (others)
		str_printf(out, "%sprocesses that are not named here %llu; sudo xla-smi proc "
			   "shows all", i ? ", " : "", (unsigned long long)others);
	free(all);
}
