/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where crash dumps go. Whoever meets a fault must not wait for a disk, so each file is written
 * by a thread of its own, of which a process starts a few in its life. A file has another name
 * until it is complete. Old ones go, so that a program that fails again and again fills nothing.
 */
#define LOG_TAG "hal/dump"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hal/base/clock.h"
#include "hal/base/log.h"
#include "hal/hal_internal.h"

#define CLOSE_NS 1000000000ll	/* hal_dumps_close waits so long for what is written */

/* A file to be written; the thread's, which frees it. */
struct job {
	int dir;
	uint8_t *bytes;
	size_t n;
	char name[64];
};

/* ---- the writing thread ---- */

static int write_all(int fd, const uint8_t *p, size_t n)
{
	while (n) {
		ssize_t done = write(fd, p, n);

		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0)
			return errno;
		p += done;
		n -= (size_t)done;
	}
	return 0;
}

/* 0, or the errno; nothing is left of a file that could not be written whole. */
static int write_file(const struct job *j)
{
	char part[sizeof(j->name) + 8];
	int fd, code;

	snprintf(part, sizeof(part), "%s.part", j->name);
	fd = openat(j->dir, part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return errno;
	code = write_all(fd, j->bytes, j->n);
	if (close(fd) && !code)
		code = errno;
	if (!code && renameat(j->dir, part, j->dir, j->name))
		code = errno;
	if (code)
		unlinkat(j->dir, part, 0);
	return code;
}

/* How many dumps of this user's there are; the oldest one's name. */
static unsigned count_files(int dir, char oldest[NAME_MAX + 1])
{
	int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
	struct timespec least = { 0 };
	unsigned n = 0;
	struct dirent *e;
	char mine[40];
	struct stat st;

	if (!d && fd >= 0)
		close(fd);
	snprintf(mine, sizeof(mine), HAL_DUMP_PREFIX "%u-", geteuid());
	while (d && (e = readdir(d))) {
		if (strncmp(e->d_name, mine, strlen(mine)) ||
		    fstatat(dir, e->d_name, &st, AT_SYMLINK_NOFOLLOW) || !S_ISREG(st.st_mode) ||
		    st.st_uid != geteuid())
			continue;
		if (n++ && (st.st_mtim.tv_sec > least.tv_sec ||
			    (st.st_mtim.tv_sec == least.tv_sec &&
			     st.st_mtim.tv_nsec >= least.tv_nsec)))
			continue;
		least = st.st_mtim;
		snprintf(oldest, NAME_MAX + 1, "%s", e->d_name);
	}
	if (d)
		closedir(d);
	return n;
}

static void *write_job(void *arg)
{
	char oldest[NAME_MAX + 1];
	struct job *j = arg;
	int code = write_file(j);

	if (code)
		log_warn("no crash dump %s was written: %s", j->name, strerror(code));
	/* Others may add meanwhile: one that is gone already ends this, too. */
	while (count_files(j->dir, oldest) > HAL_DUMP_FILES)
		if (unlinkat(j->dir, oldest, 0))
			break;
	close(j->dir);
	free(j->bytes);
	free(j);
	return NULL;
}

/* ---- the process's dumps ---- */

void hal_dumps_open(struct hal_dumps *dumps)
{
	pthread_mutex_init(&dumps->lock, NULL);
	dumps->dir = -1;
}

static unsigned read_most(void)
{
	const char *text = getenv("TESSERA_CRASH_DUMPS");
	unsigned long most;
	char *end;

	if (!text || !*text)
		return HAL_DUMPS;
	most = strtoul(text, &end, 10);
	if (*end || *text == '-') {
		log_warn("TESSERA_CRASH_DUMPS=%s is no number: %u crash dumps are kept", text,
			 HAL_DUMPS);
		return HAL_DUMPS;
	}
	return most < HAL_DUMPS_MOST ? (unsigned)most : HAL_DUMPS_MOST;
}

/* The folder's absolute path; an errno. */
static int find_folder(char path[PATH_MAX])
{
	const char *named = getenv("TESSERA_DUMP_DIR");

	if (!named || !*named)
		named = hal_page_dir();
	else if (mkdir(named, 0700) && errno != EEXIST)
		return errno;
	return realpath(named, path) ? 0 : errno;
}

void hal_dumps_start(struct hal_dumps *dumps)
{
	char path[PATH_MAX];
	int code, dir = -1;

	if (dumps->dir >= 0 || !(dumps->most = read_most()))
		return;
	code = find_folder(path);
	if (!code && strlen(path) >= sizeof(dumps->path))
		code = ENAMETOOLONG;
	if (!code) {
		dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		code = dir < 0 ? errno : 0;
	}
	if (code) {
		log_warn("no crash dumps will be written: their folder: %s; TESSERA_DUMP_DIR names "
			 "another one", strerror(code));
		return;
	}
	memcpy(dumps->path, path, strlen(path) + 1);
	pthread_mutex_lock(&dumps->lock);
	dumps->dir = dir;
	pthread_mutex_unlock(&dumps->lock);
}

bool hal_dumps_want(struct hal_dumps *dumps)
{
	bool want;

	pthread_mutex_lock(&dumps->lock);
	want = dumps->dir >= 0 && dumps->n < dumps->most;
	pthread_mutex_unlock(&dumps->lock);
	return want;
}

/* Under dumps->lock. The caller's signals are not this thread's to handle. */
static bool start_thread(struct hal_dumps *dumps, struct job *j)
{
	sigset_t all, before;
	int code;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	code = pthread_create(&dumps->threads[dumps->n], NULL, write_job, j);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (!code)
		dumps->n++;
	return !code;
}

bool hal_dumps_put(struct hal_dumps *dumps, void *bytes, size_t n, char path[HAL_DUMP_PATH])
{
	struct job *j = calloc(1, sizeof(*j));
	bool put = false;
	uint64_t dice;

	if (!j || getrandom(&dice, sizeof(dice), GRND_NONBLOCK) != sizeof(dice)) {
		free(j);
		free(bytes);
		return false;
	}
	j->bytes = bytes;
	j->n = n;
	snprintf(j->name, sizeof(j->name), HAL_DUMP_PREFIX "%u-%d-%016" PRIx64, geteuid(),
		 getpid(), dice);
	pthread_mutex_lock(&dumps->lock);
	if (dumps->dir >= 0 && dumps->n < dumps->most) {
		/* Read before the thread has it, which may end first. */
		snprintf(path, HAL_DUMP_PATH, "%s/%s", dumps->path, j->name);
		j->dir = fcntl(dumps->dir, F_DUPFD_CLOEXEC, 0);
		put = j->dir >= 0 && start_thread(dumps, j);
		if (!put && j->dir >= 0)
			close(j->dir);
	}
	pthread_mutex_unlock(&dumps->lock);
	if (!put) {
		free(j->bytes);
		free(j);
	}
	return put;
}

void hal_dumps_close(struct hal_dumps *dumps)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += CLOSE_NS / 1000000000;
	for (unsigned i = 0; i < dumps->n; i++)
		if (pthread_timedjoin_np(dumps->threads[i], NULL, &until))
			pthread_detach(dumps->threads[i]);
	if (dumps->dir >= 0)
		close(dumps->dir);
	pthread_mutex_destroy(&dumps->lock);
}
