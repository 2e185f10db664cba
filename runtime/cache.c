/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compiled programs on disk: a file a key, written under another name and renamed, so
 * that readers in other processes see all of it or nothing. Each file ends with the
 * hash of what is before it; one that does not fit is removed and compiled again. The
 * oldest files go when the folder holds more than LIMIT bytes. Nothing here fails a
 * compile: a folder that can't be used is reported once.
 */
#define LOG_TAG "rt/cache"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "hal/base/log.h"
#include "runtime/rt_internal.h"

#define LIMIT ((uint64_t)1 << 30)
#define HASH 64u
#define STALE_S 3600	/* a half-written file of this age has no writer any more */

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

static char *read_file(const char *path, size_t *n)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	char *p = NULL;
	size_t at = 0;

	if (fd < 0)
		return NULL;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_size < (off_t)LIMIT)
		p = malloc((size_t)st.st_size + 1);
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

int rt_cache_get(const char *key, void **out, size_t *bytes)
{
	char dir[512], path[640], hex[65];
	size_t n;
	char *p;

	if (!find_folder(dir, sizeof(dir)))
		return -1;
	snprintf(path, sizeof(path), "%s/%s", dir, key);
	p = read_file(path, &n);
	if (!p)
		return -1;
	if (n > HASH)
		rt_hash(p, n - HASH, hex);
	if (n <= HASH || memcmp(hex, p + n - HASH, HASH)) {
		log_warn("%s is damaged: removed, the program is compiled again", path);
		unlink(path);
		free(p);
		return -1;
	}
	*out = p;
	*bytes = n - HASH;
	return 0;
}

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

/* Removes the oldest entries until the folder is within its limit. */
static void trim(const char *dir)
{
	for (unsigned rounds = 0; rounds < 64; rounds++) {
		char path[1024], oldest[1024] = "";
		struct dirent *d;
		DIR *handle = opendir(dir);
		uint64_t total = 0;
		time_t when = 0;
		struct stat st;

		while (handle && (d = readdir(handle))) {
			snprintf(path, sizeof(path), "%s/%s", dir, d->d_name);
			if (lstat(path, &st) || !S_ISREG(st.st_mode))
				continue;
			if (is_temporary(d->d_name) && st.st_mtime < time(NULL) - STALE_S)
				unlink(path);
			if (!is_entry(d->d_name))
				continue;
			total += (uint64_t)st.st_size;
			if (!*oldest || st.st_mtime < when) {
				when = st.st_mtime;
				memcpy(oldest, path, sizeof(oldest));
			}
		}
		if (handle)
			closedir(handle);
		if (total <= LIMIT || !*oldest)
			return;
		unlink(oldest);
	}
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

void rt_cache_put(const char *key, const void *p, size_t n)
{
	char dir[512], path[640], temporary[700], hex[65];
	bool ok;
	int fd;

	if (!find_folder(dir, sizeof(dir)))
		return;
	make_folders(dir);
	snprintf(path, sizeof(path), "%s/%s", dir, key);
	snprintf(temporary, sizeof(temporary), "%s/.%.16s.XXXXXX", dir, key);
	fd = mkostemp(temporary, O_CLOEXEC);
	if (fd < 0) {
		complain(dir, strerror(errno));
		return;
	}
	rt_hash(p, n, hex);
	ok = write_all(fd, p, n) && write_all(fd, hex, HASH);
	if (close(fd) || !ok || rename(temporary, path)) {
		complain(dir, strerror(errno));
		unlink(temporary);
	}
	trim(dir);
}

/* ---- which build ---- */

struct search {
	uintptr_t here;
	char *out;
	size_t room;
};

static void print_note(const struct search *s, const uint8_t *p, size_t n)
{
	while (n >= sizeof(ElfW(Nhdr))) {
		const ElfW(Nhdr) *note = (const void *)p;
		size_t name = (note->n_namesz + 3u) & ~3u, desc = (note->n_descsz + 3u) & ~3u;
		const uint8_t *id = p + sizeof(*note) + name;

		if (name > n - sizeof(*note) || desc > n - sizeof(*note) - name)
			return;
		if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 &&
		    !memcmp(p + sizeof(*note), "GNU", 4)) {
			for (size_t i = 0; i < note->n_descsz && 2 * i + 2 < s->room; i++)
				snprintf(s->out + 2 * i, 3, "%02x", id[i]);
			return;
		}
		p += sizeof(*note) + name + desc;
		n -= sizeof(*note) + name + desc;
	}
}

static int look(struct dl_phdr_info *o, size_t size, void *arg)
{
	const struct search *s = arg;
	bool is_ours = false;

	(void)size;
	for (unsigned i = 0; i < o->dlpi_phnum; i++)
		is_ours |= o->dlpi_phdr[i].p_type == PT_LOAD &&
			   s->here - o->dlpi_addr - o->dlpi_phdr[i].p_vaddr <
			   o->dlpi_phdr[i].p_memsz;
	for (unsigned i = 0; is_ours && i < o->dlpi_phnum; i++)
		if (o->dlpi_phdr[i].p_type == PT_NOTE)
			print_note(s, (const uint8_t *)o->dlpi_addr + o->dlpi_phdr[i].p_vaddr,
				   o->dlpi_phdr[i].p_memsz);
	return is_ours;
}

void rt_build_id(char *out, size_t room)
{
	struct search s = { (uintptr_t)&rt_build_id, out, room };

	if (room)
		*out = '\0';
	dl_iterate_phdr(look, &s);
}
