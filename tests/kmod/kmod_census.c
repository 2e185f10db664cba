/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts what is in use, by the driver's own telling and by the kernel's. Contexts and
 * queues of the device are counted by what is left: as many as a new file can still
 * make. Before slabs are counted, caches that the kernel may drop are dropped, grace
 * periods waited for, and what each processor keeps for itself is given back.
 */
#define _GNU_SOURCE		/* CPU sets */
#include "tests/kmod/kmod_census.h"

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/membarrier.h>

#define SERIES_MAX 512
#define ROUNDS_MAX 8
/* Cycles for a growth of one. Beside other work a cache of the kernel's own grew by 1 in 7. */
#define SLACK 4
#define SLACK_OF_SUM 2		/* the same of all slabs: many caches fill at once */

enum { HBM_USED, HBM_LARGEST, SYSTEM_USED, CONTEXTS_FREE, QUEUES_FREE, QUEUES_SHOWN,
       HBM_SHOWN, MODULE_USES, DMA_BUFS };
static const char *const exact_names[CENSUS_EXACT] = {
	"hbm-used", "hbm-largest-free", "system-used", "contexts-free", "queues-free",
	"queues-shown", "hbm-blocks-shown", "module-uses", "dma-bufs",
};

static const char *const trends[] = { "slab-objects", "pages", "vmalloc-areas" };

static char text[1 << 20];

/* The whole of a file into text; false if there is none. */
static bool read_text(const char *path)
{
	int f = open(path, O_RDONLY);
	size_t n = 0;
	ssize_t got;

	if (f < 0)
		return false;
	while ((got = read(f, text + n, sizeof(text) - 1 - n)) > 0)
		n += (size_t)got;
	close(f);
	text[n] = 0;
	return got == 0;
}

static uint64_t count_word(const char *word)
{
	uint64_t n = 0;

	for (const char *p = text; (p = strstr(p, word)); p++)
		n++;
	return n;
}

/* How often a word is in one of the device's files of debugfs. */
static uint64_t count_shown(const char *name, const char *word)
{
	char path[512];

	debug_path(path, sizeof(path), name);
	if (!read_text(path))
		fail(__LINE__, "%s: errno %d", path, errno);
	return count_word(word);
}

/* As many as a new file can make of each; with it they go. First the driver gets what it
 * clears memory with, which it may have given up: it is its own, and not free. */
static void count_free(uint64_t *contexts, uint64_t *queues)
{
	struct drm_tessera_ctx_create c = { 0 }, first;
	struct drm_tessera_queue_create q;
	int saved = fd;

	fd = open(NODE, O_RDWR | O_CLOEXEC);
	CHECK(fd >= 0);
	CHECK(!bo_close(bo_create(1 << 20, DRM_TESSERA_BO_HBM, 0).handle));
	first = ctx_create();
	for (*contexts = 1; !ioctl(fd, DRM_IOCTL_TESSERA_CTX_CREATE, &c); c.flags = 0)
		++*contexts;
	SAME(errno, ENOSPC);
	for (*queues = 0;; ++*queues) {
		q = (struct drm_tessera_queue_create){ .ctx = first.id, .cls = HW_CLASS_DMA,
						       .n_entries = 2, .eventfd = -1 };
		if (ioctl(fd, DRM_IOCTL_TESSERA_QUEUE_CREATE, &q))
			break;
	}
	SAME(errno, ENOSPC);
	CHECK(!close(fd));
	fd = saved;
}

/* From the last line; one for each of them says "Total", too. */
static uint64_t count_dma_bufs(void)
{
	static const char path[] = "/sys/kernel/debug/dma_buf/bufinfo";
	const char *total = NULL;

	CHECK(read_text(path));
	for (const char *p = text; (p = strstr(p, "\nTotal ")); p++)
		total = p;
	if (!total || !strstr(total, " objects,"))
		fail(__LINE__, "%s has no line with the total", path);
	return strtoull(total + 7, NULL, 10);
}

/* What needs nothing made to be counted. */
static void count_quiet(uint64_t *exact)
{
	struct drm_tessera_memory m;

	query_all(DRM_TESSERA_QUERY_MEMORY, 0, &m, sizeof(m));
	exact[HBM_USED] = m.hbm_used;
	exact[HBM_LARGEST] = m.hbm_largest_free;
	exact[SYSTEM_USED] = m.system_used;
	exact[QUEUES_SHOWN] = count_shown("queues", "queue ");
	exact[HBM_SHOWN] = count_shown("hbm", ": used");
	/* Open files, dma-bufs. */
	exact[MODULE_USES] = strtoull(read_from("/sys/module/tessera/refcnt", ""), NULL, 10);
	exact[DMA_BUFS] = count_dma_bufs();
}

static unsigned count_exact(struct census *c, uint64_t *exact, char *found, size_t n)
{
	int64_t deadline = now_ns() + (*found ? 0 : 10 * SECOND);
	unsigned wrong = 0;

	do {
		count_quiet(exact);
		exact[CONTEXTS_FREE] = c->exact[CONTEXTS_FREE];
		exact[QUEUES_FREE] = c->exact[QUEUES_FREE];
		if (!c->n || !memcmp(exact, c->exact, sizeof(c->exact)))
			break;
		usleep(10000);
	} while (now_ns() < deadline);
	count_free(&exact[CONTEXTS_FREE], &exact[QUEUES_FREE]);
	if (!c->n)
		memcpy(c->exact, exact, sizeof(c->exact));
	for (unsigned i = 0; i < CENSUS_EXACT; i++) {
		if (exact[i] == c->exact[i])
			continue;
		wrong++;
		if (strstr(found, exact_names[i]))
			continue;
		printf("# %s is %llu, was %llu\n", exact_names[i],
		       (unsigned long long)exact[i], (unsigned long long)c->exact[i]);
		snprintf(found + strlen(found), n - strlen(found), "%s ", exact_names[i]);
	}
	return wrong;
}

/* Gives back what can be given back. */
static void settle(void)
{
	static const char dir[] = "/sys/kernel/slab";
	DIR *d = opendir(dir);
	struct dirent *e;
	char path[512];

	if (!d)
		fail(__LINE__, "%s: errno %d", dir, errno);
	write_file("/proc/sys/vm/drop_caches", "3");
	/* A kernel without it: by then a grace period is over, too. */
	if (syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0)) {
		SAME(errno, ENOSYS);
		usleep(200000);
	}
	while ((e = readdir(d))) {
		if (e->d_type != DT_DIR || *e->d_name == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s/shrink", dir, e->d_name);
		write_file(path, "1");
	}
	closedir(d);
}

static struct census_series *series_of(struct census *c, const char *name)
{
	for (unsigned i = 0; i < c->n_series; i++)
		if (!strcmp(c->series[i].name, name))
			return &c->series[i];
	if (c->n_series == SERIES_MAX)
		return NULL;
	snprintf(c->series[c->n_series].name, sizeof(c->series->name), "%s", name);
	return &c->series[c->n_series++];
}

static void put(struct census *c, const char *name, uint64_t value)
{
	struct census_series *s = series_of(c, name);

	CHECK(s);
	s->value[c->n] = value;
	s->n = c->n + 1;
}

/*
 * Active objects of each cache; their sum. Areas of vmalloc are freed late, when there
 * are thousands, and nothing makes the kernel do it now: of them those that are in use
 * are counted, without the ones whose memory is gone.
 */
static uint64_t read_slabs(struct census *c)
{
	uint64_t sum;
	char *line, *rest = text;

	CHECK(read_text("/proc/vmallocinfo"));
	sum = count_word("\n") - count_word("unpurged");
	put(c, trends[2], sum);
	CHECK(read_text("/proc/slabinfo"));
	while ((line = strsep(&rest, "\n"))) {
		unsigned long long active;
		char name[32];

		if (*line == '#' || sscanf(line, "%31s %llu", name, &active) != 2 ||
		    !strcmp(name, "vmap_area"))
			continue;
		put(c, name, active);
		sum += active;
	}
	CHECK(sum);
	return sum;
}

static uint64_t meminfo(const char *word)
{
	const char *at = read_from("/proc/meminfo", word);

	CHECK(*at);
	return strtoull(at + strlen(word), NULL, 10);
}

/* Neither free nor kept by a processor to be given out, which MemAvailable leaves out. */
static uint64_t pages_in_use(void)
{
	uint64_t kept = 0, total = meminfo("MemTotal:") / 4;

	CHECK(read_text("/proc/zoneinfo"));
	for (const char *p = text; (p = strstr(p, "count:")); p++)
		kept += strtoull(p + 6, NULL, 10);
	return total - meminfo("MemFree:") / 4 - kept;
}

/*
 * Settles until there is no less: what is freed late is freed in a few rounds. On one
 * processor, as each keeps a slab of every cache that it uses, all of which counts.
 */
static void count_kernel(struct census *c)
{
	uint64_t last = UINT64_MAX, now;
	cpu_set_t all, one;

	CPU_ZERO(&one);
	CPU_SET(0, &one);
	CHECK(!sched_getaffinity(0, sizeof(all), &all));
	CHECK(!sched_setaffinity(0, sizeof(one), &one));
	for (unsigned i = 0; i < ROUNDS_MAX; i++) {
		settle();
		now = read_slabs(c);
		if (now >= last)
			break;
		last = now;
	}
	put(c, trends[0], now);
	put(c, trends[1], pages_in_use());
	CHECK(!sched_setaffinity(0, sizeof(all), &all));
}

static void print_counts(struct census *c, const uint64_t *exact)
{
	printf("# %u:", c->cycle[c->n]);
	for (unsigned i = 0; i < CENSUS_EXACT; i++)
		printf(" %s %llu", exact_names[i], (unsigned long long)exact[i]);
	for (unsigned i = 0; i < sizeof(trends) / sizeof(*trends); i++)
		printf(" %s %llu", trends[i],
		       (unsigned long long)series_of(c, trends[i])->value[c->n]);
	printf("; MemAvailable %llu, Slab %llu, SUnreclaim %llu kB\n",
	       (unsigned long long)meminfo("MemAvailable:"),
	       (unsigned long long)meminfo("Slab:"),
	       (unsigned long long)meminfo("SUnreclaim:"));
}

unsigned census_take(struct census *c, unsigned cycle, char *found, size_t n)
{
	uint64_t exact[CENSUS_EXACT];
	unsigned wrong;

	CHECK(c->n < CENSUS_SAMPLES);
	if (!c->series) {
		c->series = calloc(SERIES_MAX, sizeof(*c->series));
		CHECK(c->series);
		write_file("/proc/sys/vm/drop_caches", "4");	/* without a line in the log */
	}
	wrong = count_exact(c, exact, found, n);
	count_kernel(c);
	c->cycle[c->n] = cycle;
	print_counts(c, exact);
	c->n++;
	return wrong;
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static uint64_t median(const uint64_t *values, unsigned n)
{
	uint64_t sorted[CENSUS_SAMPLES];

	memcpy(sorted, values, n * sizeof(*values));
	qsort(sorted, n, sizeof(*sorted), by_value);
	return sorted[n / 2];
}

static bool grows(uint64_t from, uint64_t to, uint64_t apart, unsigned slack)
{
	return to > from && (to - from) * slack > apart;
}

unsigned census_judge(const struct census *c, unsigned first, char *found, size_t n)
{
	unsigned from = 0, third, growing = 0;
	uint64_t apart, m[3];

	while (from < c->n && c->cycle[from] < first)
		from++;
	third = (c->n - from) / 3;
	CHECK(third >= 3);
	from = c->n - 3 * third;
	apart = c->cycle[from + third] - c->cycle[from];
	for (unsigned i = 0; i < c->n_series; i++) {
		const struct census_series *s = &c->series[i];
		unsigned slack = strcmp(s->name, trends[0]) ? SLACK : SLACK_OF_SUM;

		for (unsigned k = 0; k < 3; k++)
			m[k] = median(s->value + from + k * third, third);
		if (s->n != c->n || m[2] <= m[0])
			continue;
		printf("# %s: %llu, %llu, %llu, %llu cycles apart\n", s->name,
		       (unsigned long long)m[0], (unsigned long long)m[1],
		       (unsigned long long)m[2], (unsigned long long)apart);
		if (!grows(m[0], m[1], apart, slack) || !grows(m[1], m[2], apart, slack))
			continue;
		growing++;
		snprintf(found + strlen(found), n - strlen(found), "%s ", s->name);
	}
	return growing;
}
