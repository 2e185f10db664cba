/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compiled programs on disk: a file a key, written under another name and renamed, so
 * that readers in other processes see all of it or nothing. Each ends with the key that
 * it answers (which says the build too) and the image's hash. What runs on the device
 * with the user's data must be the user's: folder and entries are taken only if they are
 * this user's, nobody else may write there, and an entry is a plain file.
 *
 * How much the folder holds is the length of its file .used, a byte a block: appending
 * is atomic between processes and costs the same however many entries there are. Only
 * when that passes LIMIT is everything looked at: the oldest entries go, and .used is
 * made true again. Nothing here fails a compile: a folder that can't be used is
 * reported once.
 */
#define LOG_TAG "rt/cache"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "hal/base/log.h"
#include "runtime/rt_internal.h"

#define LIMIT ((uint64_t)1 << 30)
#define KEPT (LIMIT / 8 * 7)	/* what is left of more than LIMIT */
#define BLOCK 4096u
#define HASH 64u
#define STALE_S 3600	/* a half-written file of this age has no writer any more */

static const char magic[16] = "TESSERA-CACHE-2\n";

/* The end of an entry. */
struct tail { char magic[16], key[HASH], hash[HASH]; };

static void complain(const char *path, const char *why)
{
	static atomic_flag once = ATOMIC_FLAG_INIT;

	if (!atomic_flag_test_and_set(&once))
		log_warn("compiled programs are not kept: %s: %s. TESSERA_CACHE_DIR names "
			 "another folder, TESSERA_CACHE=off none", path, why);
}

static bool find_folder(char *out, size_t n)
{
	const char *is = getenv("TESSERA_CACHE"), *dir = getenv("TESSERA_CACHE_DIR");
	const char *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	int used;

	if (is && !strcmp(is, "off"))
		return false;
	if (dir && *dir)
		used = snprintf(out, n, "%s", dir);
	else if (xdg && *xdg)
		used = snprintf(out, n, "%s/tessera", xdg);
	else if (home && *home)
		used = snprintf(out, n, "%s/.cache/tessera", home);
	else
		return false;
	if (used < 0 || (size_t)used >= n) {
		complain(out, "the name is too long");
		return false;
	}
	return true;
}

static void make_folders(const char *path)
{
	char copy[512];

	snprintf(copy, sizeof(copy), "%s", path);
	for (char *p = copy + 1; *p; p++)
		if (*p == '/') {
			*p = 0;
			mkdir(copy, 0700);
			*p = '/';
		}
	mkdir(copy, 0700);
}

static bool is_ours(const struct stat *st)
{
	return st->st_uid == geteuid() && !(st->st_mode & (S_IWGRP | S_IWOTH));
}

/* The folder, or -1. Entries are reached by it alone: nobody exchanges it meanwhile. */
static int open_folder(const char *path, bool must_exist)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char why[160];
	struct stat st;

	if (fd < 0 || fstat(fd, &st)) {
		if (must_exist || errno != ENOENT)
			complain(path, strerror(errno));
	} else if (is_ours(&st)) {
		return fd;
	} else {
		snprintf(why, sizeof(why), "it belongs to user %u and has mode %04o, and must "
			 "belong to user %u and be writable by nobody else", st.st_uid,
			 st.st_mode & 07777u, geteuid());
		complain(path, why);
	}
	if (fd >= 0)
		close(fd);
	return -1;
}

/* All of an entry, malloc'd. Neither follows a link nor waits for a FIFO's writer. */
static char *read_entry(int dir, const char *key, size_t *n)
{
	int fd = openat(dir, key, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	struct stat st;
	char *p = NULL;
	size_t at = 0;

	if (fd < 0)
		return NULL;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_size < (off_t)LIMIT) {
		if (is_ours(&st))
			p = malloc((size_t)st.st_size + 1);
		else
			log_warn("cached program %s is not used: user %u could have changed "
				 "it (mode %04o)", key, st.st_uid, st.st_mode & 07777u);
	}
	while (p && at < (size_t)st.st_size) {
		ssize_t got = read(fd, p + at, (size_t)st.st_size - at);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			break;
		at += (size_t)got;
	}
	close(fd);
	if (p && at != (size_t)st.st_size) {
		free(p);
		p = NULL;
	}
	*n = at;
	return p;
}

/* Whether `n` bytes are an entry of this key; *bytes of them are the image, of that hash. */
static bool is_entry_of(const char *key, const char *p, size_t n, size_t *bytes, char *hash)
{
	struct tail t;

	if (n <= sizeof(t))
		return false;
	*bytes = n - sizeof(t);
	memcpy(&t, p + *bytes, sizeof(t));
	if (memcmp(t.magic, magic, sizeof(magic)) || memcmp(t.key, key, HASH))
		return false;
	rt_hash(p, *bytes, hash);
	return !memcmp(t.hash, hash, HASH);
}

int rt_cache_get(const char *key, void **out, size_t *bytes, char hash[65])
{
	char path[512];
	size_t n;
	char *p;
	int dir;

	if (!find_folder(path, sizeof(path)))
		return -1;
	dir = open_folder(path, false);
	if (dir < 0)
		return -1;
	p = read_entry(dir, key, &n);
	if (p && !is_entry_of(key, p, n, bytes, hash)) {
		log_warn("%s/%s is damaged or another program's: removed, the program is "
			 "compiled again", path, key);
		unlinkat(dir, key, 0);
		free(p);
		p = NULL;
	}
	close(dir);
	*out = p;
	return p ? 0 : -1;
}

/* ---- how much there is ---- */

/* Only what we wrote is ours to remove: names of `n` hex digits. */
static bool is_hex(const char *name, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!strchr("0123456789abcdef", name[i]) || !name[i])
			return false;
	return true;
}

static bool is_entry(const char *name)
{
	return strlen(name) == HASH && is_hex(name, HASH);
}

static bool is_temporary(const char *name)
{
	return strlen(name) == 1 + 16 + 1 + 6 && name[0] == '.' && name[17] == '.' &&
	       is_hex(name + 1, 16);
}

static uint64_t blocks_of(uint64_t bytes)
{
	return (bytes + BLOCK - 1) / BLOCK;
}

struct entry { char name[HASH + 1]; uint64_t blocks; struct timespec when; };

static int by_age(const void *a, const void *b)
{
	const struct timespec *x = &((const struct entry *)a)->when;
	const struct timespec *y = &((const struct entry *)b)->when;

	if (x->tv_sec != y->tv_sec)
		return x->tv_sec < y->tv_sec ? -1 : 1;
	return x->tv_nsec < y->tv_nsec ? -1 : x->tv_nsec > y->tv_nsec;
}

/* Every entry; removes what writers that died left. NULL: none, or no memory. */
static struct entry *list_entries(int dir, size_t *n)
{
	int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *handle = fd < 0 ? NULL : fdopendir(fd);
	struct entry *list = NULL, *more;
	size_t room = 0;
	struct dirent *d;
	struct stat st;

	*n = 0;
	while (handle && (d = readdir(handle))) {
		bool is_stale;

		if (!is_entry(d->d_name) && !is_temporary(d->d_name))
			continue;
		if (fstatat(dir, d->d_name, &st, AT_SYMLINK_NOFOLLOW) || !S_ISREG(st.st_mode))
			continue;
		is_stale = st.st_mtime < time(NULL) - STALE_S;
		if (is_temporary(d->d_name)) {
			if (is_stale)
				unlinkat(dir, d->d_name, 0);
			continue;
		}
		if (*n == room) {
			room = room ? 2 * room : 256;
			more = realloc(list, room * sizeof(*list));
			if (!more)
				break;
			list = more;
		}
		memcpy(list[*n].name, d->d_name, HASH + 1);
		list[*n].blocks = blocks_of((uint64_t)st.st_size);
		list[(*n)++].when = st.st_mtim;
	}
	if (handle)
		closedir(handle);
	else if (fd >= 0)
		close(fd);
	return list;
}

/* Removes the oldest entries if there are too many with `total` more blocks; gives what all
 * take then. */
static uint64_t trim(int dir, uint64_t total)
{
	size_t n;
	struct entry *list = list_entries(dir, &n);

	for (size_t i = 0; i < n; i++)
		total += list[i].blocks;
	if (total > LIMIT / BLOCK) {
		qsort(list, n, sizeof(*list), by_age);
		for (size_t i = 0; i < n && total > KEPT / BLOCK; i++)
			if (!unlinkat(dir, list[i].name, 0) || errno == ENOENT)
				total -= list[i].blocks;
	}
	free(list);
	return total;
}

static bool write_all(int fd, const void *p, size_t n)
{
	for (size_t at = 0; at < n;) {
		ssize_t put = write(fd, (const char *)p + at, n - at);

		if (put < 0 && errno == EINTR)
			continue;
		if (put <= 0)
			return false;
		at += (size_t)put;
	}
	return true;
}

/* Notes `bytes` more in .used; trims when that is too much, or when nobody counted. */
static void count(int dir, uint64_t bytes)
{
	static const char zeros[1024];
	uint64_t blocks = blocks_of(bytes), left = blocks, n;
	int fd = openat(dir, ".used", O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW |
			O_NONBLOCK, 0600);
	bool is_right = false;
	struct stat st;

	if (fd >= 0 && !fstat(fd, &st) && S_ISREG(st.st_mode) && is_ours(&st) && st.st_size) {
		for (; left; left -= n) {
			n = left < sizeof(zeros) ? left : sizeof(zeros);
			if (!write_all(fd, zeros, n))
				break;
		}
		is_right = !left && !fstat(fd, &st) &&
			   (uint64_t)st.st_size <= LIMIT / BLOCK;
	}
	if (!is_right) {
		n = trim(dir, blocks);
		if (fd >= 0 && ftruncate(fd, (off_t)n))
			complain(".used", strerror(errno));
	}
	if (fd >= 0)
		close(fd);
}

/* ---- writing ---- */

/* A new file, whose name is stored; -1 and errno. */
static int make_file(int dir, const char *key, char name[32])
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz012345";
	uint8_t dice[6];
	int fd = -1;

	for (unsigned tries = 0; fd < 0 && tries < 16; tries++) {
		if (getrandom(dice, sizeof(dice), 0) != sizeof(dice))
			return -1;
		snprintf(name, 32, ".%.16s.", key);
		for (unsigned i = 0; i < sizeof(dice); i++)
			name[18 + i] = letters[dice[i] % 32];
		name[24] = 0;
		fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
		if (fd < 0 && errno != EEXIST)
			return -1;
	}
	return fd;
}

/* False and errno. */
static bool write_entry(int dir, const char *key, const void *p, size_t n, const char *hash)
{
	struct tail t;
	char name[32];
	int fd = make_file(dir, key, name), saved;
	bool ok;

	if (fd < 0)
		return false;
	memcpy(t.magic, magic, sizeof(magic));
	memcpy(t.key, key, HASH);
	memcpy(t.hash, hash, HASH);
	ok = write_all(fd, p, n) && write_all(fd, &t, sizeof(t));
	saved = errno;
	if (close(fd) && ok) {
		ok = false;
		saved = errno;
	}
	if (ok && renameat(dir, name, dir, key)) {
		ok = false;
		saved = errno;
	}
	if (!ok)
		unlinkat(dir, name, 0);
	errno = saved;
	return ok;
}

void rt_cache_put(const char *key, const void *p, size_t n, const char *hash)
{
	char path[512];
	int dir;

	/* Larger than what a full cache is trimmed to: it would push all others out. */
	if (n >= KEPT - sizeof(struct tail) || !find_folder(path, sizeof(path)))
		return;
	make_folders(path);
	dir = open_folder(path, true);
	if (dir < 0)
		return;
	/* First, so that what a writer that dies leaves behind is counted too. */
	count(dir, n + sizeof(struct tail));
	if (!write_entry(dir, key, p, n, hash))
		complain(path, strerror(errno));
	close(dir);
}
