/* SPDX-License-Identifier: Apache-2.0 */
/* Forks that another thread does at the moment of a call which opens, maps or closes a file: what
 * their children have of it. */
#ifndef FAKE_FORK_AT_H
#define FAKE_FORK_AT_H

#include <assert.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define FORKS 64u
#define FORK_LOOKS 20	/* of a millisecond each: for a fork that nothing holds up */

struct fork_at {
	pthread_t thread;
	int fd;			/* what the child looks for; -1: `at` */
	struct stat file;	/* of fd, whose number may be another's by then */
	void *at;		/* stays, as munmap joins first */
	atomic_bool has_forked;
	int n_kept;		/* 1: the child had it */
};

static struct { bool on; unsigned n, n_joined; struct fork_at at[FORKS]; } forks;

static bool fork_has(const struct fork_at *f)
{
	unsigned char there;
	struct stat is;

	if (f->fd < 0)
		return !mincore(f->at, 1, &there);
	return !fstat(f->fd, &is) && is.st_dev == f->file.st_dev && is.st_ino == f->file.st_ino;
}

static void *fork_beside(void *arg)
{
	struct fork_at *f = arg;
	pid_t pid = fork();
	int status;

	if (!pid)
		_exit(fork_has(f));
	atomic_store(&f->has_forked, true);
	f->n_kept = pid < 0 || waitpid(pid, &status, 0) != pid || status;
	return NULL;
}

/* In the call, while the file is open (fd) or mapped (at): waits for the fork unless it is held. */
static void fork_at(int fd, void *at)
{
	struct fork_at *f = &forks.at[forks.n];

	if (!forks.on || (fd < 0 && !at))
		return;
	assert(forks.n < FORKS);
	forks.n++;
	*f = (struct fork_at){ .fd = fd, .at = at };
	if (fd >= 0 && fstat(fd, &f->file))
		assert(!"no file");
	if (pthread_create(&f->thread, NULL, fork_beside, f))
		assert(!"no thread");
	for (unsigned i = 0; i < FORK_LOOKS && !atomic_load(&f->has_forked); i++)
		poll(NULL, 0, 1);
}

/* Outside of such calls: those that were held are over. */
static inline void forks_join(void)
{
	for (; forks.n_joined < forks.n; forks.n_joined++)
		pthread_join(forks.at[forks.n_joined].thread, NULL);
}

/* How many forks there were since `on`; *n_kept: how many of their children had what they looked
 * for. */
static inline unsigned forks_end(unsigned *n_kept)
{
	unsigned n = forks.n;

	forks.on = false;
	*n_kept = 0;
	forks_join();
	for (unsigned i = 0; i < n; i++)
		*n_kept += (unsigned)forks.at[i].n_kept;
	forks.n = forks.n_joined = 0;
	return n;
}

#endif
