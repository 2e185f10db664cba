/* SPDX-License-Identifier: Apache-2.0 */
#include "hal/base/files.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void files_open_standard(void)
{
	for (int fd = 0; fd <= 2; fd++)
		if (fcntl(fd, F_GETFD) < 0 && errno == EBADF && open("/dev/null", O_RDONLY) < 0)
			return;
}

bool files_read_line(const char *path, char *out, size_t bytes)
{
	FILE *f = fopen(path, "re");
	bool ok = f && fgets(out, (int)bytes, f);

	if (f)
		fclose(f);
	if (ok)
		out[strcspn(out, "\n")] = 0;
	else
		*out = 0;
	return ok;
}

/* ---- descriptors that no child of fork keeps ---- */

static pthread_mutex_t owned_lock = PTHREAD_MUTEX_INITIALIZER;
static struct files_own *owned;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void before_fork(void)
{
	pthread_mutex_lock(&owned_lock);
}

static void after_fork(void)
{
	pthread_mutex_unlock(&owned_lock);
}

static void after_fork_in_child(void)
{
	for (; owned; owned = owned->next) {
		close(*owned->fd);
		*owned->fd = -1;
	}
	pthread_mutex_unlock(&owned_lock);
}

static void watch_forks(void)
{
	pthread_atfork(before_fork, after_fork, after_fork_in_child);
}

void files_hold_forks(void)
{
	pthread_once(&once, watch_forks);
	pthread_mutex_lock(&owned_lock);
}

void files_let_forks(void)
{
	pthread_mutex_unlock(&owned_lock);
}

void files_own_begin(void)
{
	files_hold_forks();
}

void files_own_end(struct files_own *f, int *fd)
{
	if (*fd >= 0) {
		*f = (struct files_own){ .next = owned, .fd = fd };
		owned = f;
	}
	files_let_forks();
}

static void take_out(const struct files_own *f)
{
	for (struct files_own **at = &owned; *at; at = &(*at)->next)
		if (*at == f) {
			*at = f->next;
			break;
		}
}

void files_close(struct files_own *f, int *fd, int (*close)(int fd))
{
	files_hold_forks();
	take_out(f);
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
	files_let_forks();
}

void files_disown(struct files_own *f)
{
	files_hold_forks();
	take_out(f);
	files_let_forks();
}
