/* SPDX-License-Identifier: Apache-2.0 */
/* Making, keeping and reading telemetry pages. state.c, device.c, memory.c and queue.c
 * fill them. */
#include "hal/telemetry.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "hal/base/clock.h"

const char *hal_page_dir(void)
{
	const char *dir = getenv("TESSERA_TELEMETRY_DIR");

	return dir && *dir ? dir : "/dev/shm";
}

/* ---- reading others' pages: any file may be there, and change meanwhile ---- */

/* All of `bytes`; false: they are not there. A mapping would raise SIGBUS instead. */
static bool read_at(int fd, void *to, size_t bytes, off_t at)
{
	char *p = to;

	while (bytes) {
		ssize_t n = pread(fd, p, bytes, at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		p += n;
		at += n;
		bytes -= (size_t)n;
	}
	return true;
}

/* Bytes of the character of UTF-8 at p, which ends in NUL; 0: it is none, or one that
 * controls a terminal. */
static unsigned character(const unsigned char *p)
{
	unsigned n = p[0] < 0x80 ? 1 : p[0] >= 0xc2 && p[0] < 0xe0 ? 2 :
		     p[0] >= 0xe0 && p[0] < 0xf0 ? 3 : p[0] >= 0xf0 && p[0] < 0xf5 ? 4 : 0;

	if (p[0] < 0x20 || p[0] == 0x7f || (p[0] == 0xc2 && p[1] < 0xa0) ||
	    (p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f) ||
	    (p[0] == 0xf0 && p[1] < 0x90) || (p[0] == 0xf4 && p[1] > 0x8f))
		return 0;
	for (unsigned i = 1; i < n; i++)
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	return n;
}

void hal_text_clean(char *text, size_t n)
{
	unsigned step;

	text[n - 1] = 0;
	for (unsigned char *p = (unsigned char *)text; *p; p += step) {
		step = character(p);
		if (!step) {
			*p = '?';
			step = 1;
		}
	}
}

static void clean_device(struct hal_page_device *d)
{
	hal_text_clean(d->bus_id, sizeof(d->bus_id));
	hal_text_clean(d->name, sizeof(d->name));
	hal_text_clean(d->serial, sizeof(d->serial));
	hal_text_clean(d->driver, sizeof(d->driver));
	hal_text_clean(d->state, sizeof(d->state));
	hal_text_clean(d->running, sizeof(d->running));
	if (d->heap.n_owners > HAL_PAGE_OWNERS)
		d->heap.n_owners = HAL_PAGE_OWNERS;
	if (d->n_links > HW_MAX_LINKS)
		d->n_links = HW_MAX_LINKS;
	for (unsigned i = 0; i < d->heap.n_owners; i++)
		hal_text_clean(d->heap.owners[i].tag, sizeof(d->heap.owners[i].tag));
}

static bool copy_page(int fd, struct hal_page *out)
{
	const off_t at = offsetof(struct hal_page, sequence);
	uint32_t before, after;

	/* A writer that is stopped half-way leaves it odd: numbers are still whole. */
	for (unsigned tries = 0; tries < 1000; tries++) {
		if (!read_at(fd, &before, sizeof(before), at))
			return false;
		if (before & 1)
			continue;
		if (!read_at(fd, out, sizeof(*out), 0) || !read_at(fd, &after, sizeof(after), at))
			return false;
		if (before == after)
			return true;
	}
	return read_at(fd, out, sizeof(*out), 0);
}

static int no_page(const char *path, struct err *err)
{
	return err_set(err, ERR_INVALID_ARGUMENT, "%s is no telemetry page of this version",
		       path);
}

/* Opens a file of any kind, which a FIFO without a writer must not hold up. */
static int open_file(const char *path)
{
	return open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
}

static bool is_page(int fd)
{
	struct stat st;
	uint64_t magic;

	return !fstat(fd, &st) && S_ISREG(st.st_mode) && read_at(fd, &magic, sizeof(magic), 0) &&
	       magic == HAL_PAGE_MAGIC;
}

static bool is_page_name(const char *path)
{
	const char *name = strrchr(path, '/');
	unsigned uid, pid;
	int end = 0;

	return name && sscanf(name, "/tessera-%u-%u-%*16[0-9a-f]%n", &uid, &pid, &end) == 2 &&
	       end && !name[end];
}

/* A page that is being made, or whose maker died over it. */
static bool is_begun(int fd, const char *path)
{
	struct stat st;
	uint64_t magic;

	return is_page_name(path) && !fstat(fd, &st) && S_ISREG(st.st_mode) &&
	       (!st.st_size || (st.st_size == sizeof(struct hal_page) &&
				read_at(fd, &magic, sizeof(magic), 0) && !magic));
}

/* The path of a page's socket; false: it is too long, or the page has another name. */
static bool name_socket(const char *page, uint32_t number, char *out, size_t n)
{
	const char *name = strrchr(page, '/');

	return name && !strncmp(name, "/tessera-", 9) &&
	       snprintf(out, n, "%.*s/" HAL_PAGE_SOCKET "%s-%08x", (int)(name - page), page,
			name + 9, number) < (int)n;
}

/* What a dead process of this page's owner left. */
static void remove_socket(int fd, const char *page)
{
	struct stat of_page, st;
	char path[PATH_MAX];
	uint32_t number;

	if (!fstat(fd, &of_page) && of_page.st_size == sizeof(struct hal_page) &&
	    read_at(fd, &number, sizeof(number), offsetof(struct hal_page, socket)) && number &&
	    name_socket(page, number, path, sizeof(path)) && !lstat(path, &st) &&
	    S_ISSOCK(st.st_mode) && st.st_uid == of_page.st_uid)
		unlink(path);
}

/* Whatever its version, the page of a process that is gone is nobody's. One that is taken away
 * from a process that has not locked it yet is made again (hal_page_open). */
static bool remove_dead(int fd, const char *path)
{
	if (flock(fd, LOCK_SH | LOCK_NB))
		return false;
	remove_socket(fd, path);
	unlink(path);
	return true;
}

static int read_page(int fd, const char *path, struct hal_page *out, struct err *err)
{
	struct stat st;

	memset(out, 0, sizeof(*out));
	if (!is_page(fd) && !is_begun(fd, path))
		return no_page(path, err);
	if (remove_dead(fd, path))
		return err_set(err, ERR_NOT_FOUND, "the process of %s is gone", path);
	if (fstat(fd, &st) || st.st_size != sizeof(*out) || !copy_page(fd, out) ||
	    out->magic != HAL_PAGE_MAGIC || out->version != HAL_PAGE_VERSION ||
	    out->n_devices > HAL_PAGE_DEVICES)
		return no_page(path, err);
	hal_text_clean(out->command, sizeof(out->command));
	for (unsigned i = 0; i < HAL_PAGE_EVENTS; i++)
		hal_text_clean(out->events[i].text, sizeof(out->events[i].text));
	for (unsigned i = 0; i < out->n_devices; i++)
		clean_device(&out->devices[i]);
	return 0;
}

int hal_page_read(const char *path, struct hal_page *out, struct err *err)
{
	int fd = open_file(path), code;

	if (fd < 0 && (errno == ELOOP || errno == ENXIO))	/* a link, a socket */
		return no_page(path, err);
	if (fd < 0)
		return err_sys(err, errno, "%s", path);
	code = read_page(fd, path, out, err);
	close(fd);
	return code;
}

/* ---- this process's page ---- */

/* A socket of this user's without its page: that was taken away by a program that knows of no
 * sockets, or its maker died before the page told of it. */
static void remove_orphan(const char *name)
{
	char mine[40], path[PATH_MAX], page[PATH_MAX];
	size_t n = strlen(name);
	struct stat st;

	snprintf(mine, sizeof(mine), HAL_PAGE_SOCKET "%u-", getuid());
	if (strncmp(name, mine, strlen(mine)) || n < strlen(mine) + 9 || name[n - 9] != '-')
		return;
	snprintf(path, sizeof(path), "%s/%.255s", hal_page_dir(), name);
	snprintf(page, sizeof(page), "%s/tessera-%.*s", hal_page_dir(),
		 (int)(n - 9 - strlen(HAL_PAGE_SOCKET)), name + strlen(HAL_PAGE_SOCKET));
	if (access(page, F_OK) && errno == ENOENT && !lstat(path, &st) && S_ISSOCK(st.st_mode))
		unlink(path);
}

/* Nobody may look at this machine's pages for months: a process takes its user's away. */
static void remove_dead_pages(void)
{
	DIR *dir = opendir(hal_page_dir());
	char mine[32], path[PATH_MAX];
	struct dirent *d;
	int fd;

	snprintf(mine, sizeof(mine), "tessera-%u-", getuid());
	while (dir && (d = readdir(dir))) {
		remove_orphan(d->d_name);
		if (strncmp(d->d_name, mine, strlen(mine)) ||
		    snprintf(path, sizeof(path), "%s/%s", hal_page_dir(), d->d_name) >=
		    (int)sizeof(path))
			continue;
		fd = open_file(path);
		if (fd < 0)
			continue;
		if (is_page(fd) || is_begun(fd, path))
			remove_dead(fd, path);
		close(fd);
	}
	if (dir)
		closedir(dir);
}

static void read_command(char *out, size_t n)
{
	int fd = open("/proc/self/comm", O_RDONLY | O_CLOEXEC);
	ssize_t got = fd >= 0 ? read(fd, out, n - 1) : 0;

	if (fd >= 0)
		close(fd);
	out[got > 0 ? got : 0] = 0;
	out[strcspn(out, "\n")] = 0;
}

/* A new file, locked; -1 with errno. Without its magic yet, it is no page to readers. EBUSY:
 * before the lock it was taken for a dead process's, and is given up. */
static int make_file(const char *path)
{
	int f = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
	struct stat st;

	if (f < 0 || (!flock(f, LOCK_EX | LOCK_NB) && !fstat(f, &st) && st.st_nlink))
		return f;
	close(f);
	unlink(path);
	errno = EBUSY;
	return -1;
}

/* By a file of its own: the lock on f lasts as long as a mapping of f, of which a child of fork has
 * one. MAP_FAILED with errno. */
static void *map_page(const char *path, int f)
{
	int again = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW), saved;
	struct stat a, b;
	void *p = MAP_FAILED;

	if (again < 0)
		return p;
	errno = EBUSY;
	if (!fstat(f, &a) && !fstat(again, &b) && a.st_dev == b.st_dev && a.st_ino == b.st_ino)
		p = mmap(NULL, sizeof(struct hal_page), PROT_READ | PROT_WRITE, MAP_SHARED, again,
			 0);
	saved = errno;
	close(again);
	errno = saved;
	return p;
}

/* Maps a new file of one page; -1 with errno. */
static int make_page(const char *path, struct hal_page **out)
{
	int f = make_file(path), saved;

	if (f < 0)
		return -1;
	/* With its room: a file system that is full would end the process at its first store. */
	saved = posix_fallocate(f, 0, sizeof(**out));
	if (!saved) {
		*out = map_page(path, f);
		if (*out != MAP_FAILED)
			return f;
		saved = errno;
	}
	close(f);
	unlink(path);
	errno = saved;
	return -1;
}

static int make_name(char path[128], struct err *err)
{
	uint64_t dice;
	int n;

	if (getrandom(&dice, sizeof(dice), 0) != sizeof(dice))
		return err_sys(err, errno, "a name for the telemetry page");
	n = snprintf(path, 128, "%s/tessera-%u-%d-%016" PRIx64, hal_page_dir(), getuid(),
		     getpid(), dice);
	return n < 128 ? 0 :
	       err_set(err, ERR_INVALID_ARGUMENT, "TESSERA_TELEMETRY_DIR=%s is too long: a page's "
		       "path has at most 127 characters", hal_page_dir());
}

int hal_page_open(struct hal_page **out, int *fd, char path[128], struct err *err)
{
	struct hal_page *page;
	int code, tries = 100, f;

	remove_dead_pages();
	do {
		/* Each under a name of its own: whoever takes one away may do it late. */
		code = make_name(path, err);
		if (code)
			return code;
		f = make_page(path, &page);
	} while (f < 0 && errno == EBUSY && --tries);
	if (f < 0)
		return err_sys(err, errno, "telemetry page %s", path);
	page->version = HAL_PAGE_VERSION;
	page->bytes = sizeof(*page);
	page->pid = (uint32_t)getpid();
	page->start_ns = (uint64_t)clock_ns();
	read_command(page->command, sizeof(page->command));
	__atomic_store_n(&page->magic, HAL_PAGE_MAGIC, __ATOMIC_RELEASE);
	*out = page;
	*fd = f;
	return 0;
}

void hal_page_close(struct hal_page *page, int fd, const char *path)
{
	if (!page)
		return;
	/* A child of fork shares the file: only its maker removes it. */
	if (page->pid == (uint32_t)getpid()) {
		remove_socket(fd, path);
		unlink(path);
	}
	munmap(page, sizeof(*page));
	close(fd);
}

/* ---- its socket ---- */

/* An address has less room than a path may need: then it goes by the folder, open as *dir, which
 * else is -1. False: it can't be said, with errno. */
static bool find_address(const char *path, struct sockaddr_un *out, int *dir)
{
	const char *name = strrchr(path, '/');
	char folder[PATH_MAX];

	*out = (struct sockaddr_un){ .sun_family = AF_UNIX };
	*dir = -1;
	if (strlen(path) < sizeof(out->sun_path)) {
		memcpy(out->sun_path, path, strlen(path));
		return true;
	}
	snprintf(folder, sizeof(folder), "%.*s/", (int)(name - path), path);
	*dir = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return *dir >= 0 && snprintf(out->sun_path, sizeof(out->sun_path), "/proc/self/fd/%d%s",
				     *dir, name) < (int)sizeof(out->sun_path);
}

static int make_socket(const char *path, int fd)
{
	struct sockaddr_un a;
	int dir, code, saved;

	/* Of the file that bind makes; umask takes from it. */
	code = !find_address(path, &a, &dir) || fchmod(fd, 0600) ||
		bind(fd, (struct sockaddr *)&a, sizeof(a)) ? -1 : 0;
	saved = errno;
	if (dir >= 0)
		close(dir);
	errno = saved;
	return code;
}

int hal_page_listen(struct hal_page *page, const char *path, int *out, struct err *err)
{
	char name[PATH_MAX] = "a socket";
	int fd, code = -1, saved;

	for (unsigned tries = 0; tries < 100; tries++) {
		uint32_t number;

		fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		if (fd < 0)
			break;
		if (getrandom(&number, sizeof(number), 0) != sizeof(number) || !number ||
		    !name_socket(path, number, name, sizeof(name))) {
			close(fd);
			continue;
		}
		code = make_socket(name, fd);
		if (!code) {
			/* Before anybody can connect: whoever removes the page finds it. */
			__atomic_store_n(&page->socket, number, __ATOMIC_RELEASE);
			code = listen(fd, 8);
		}
		if (!code) {
			*out = fd;
			return 0;
		}
		saved = errno;
		close(fd);
		errno = saved;
		if (saved != EADDRINUSE)
			break;
	}
	return err_sys(err, errno, "%s", name);
}

int hal_page_connect(const char *path, uint32_t number, int64_t limit_ns, int *out,
		     struct err *err)
{
	struct timeval limit = { .tv_sec = limit_ns / 1000000000,
				 .tv_usec = limit_ns / 1000 % 1000000 };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), dir = -1, code = -1;
	char name[PATH_MAX] = "";
	struct sockaddr_un a;

	if (fd < 0)
		return err_sys(err, errno, "a socket");
	errno = ENAMETOOLONG;
	/* It waits while too many others do. */
	if (name_socket(path, number, name, sizeof(name)) && find_address(name, &a, &dir) &&
	    !setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)) &&
	    !connect(fd, (struct sockaddr *)&a, sizeof(a)) && !fcntl(fd, F_SETFL, O_NONBLOCK))
		code = 0;
	else if (errno == EAGAIN)
		code = err_set(err, ERR_DEADLINE_EXCEEDED, "%s: more wait there than its process "
			       "lets in", name);
	else if (errno == ECONNREFUSED)
		code = err_set(err, ERR_UNAVAILABLE, "%s: nobody listens there", name);
	else
		code = err_sys(err, errno, "%s", *name ? name : path);
	if (dir >= 0)
		close(dir);
	if (code)
		close(fd);
	else
		*out = fd;
	return code;
}
