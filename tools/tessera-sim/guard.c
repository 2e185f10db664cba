/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client may shrink the file behind memory that it shared. The access that then
 * fails (SIGBUS) belongs to a thread of the model and cannot be undone; the handler puts
 * zeros in the range's place, says so, and the access goes on. The server then cuts the
 * client off. Any other SIGBUS ends the process as it should.
 *
 * The table is one for the process because the handler is. Entries are atomic: the
 * handler takes no lock.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tools/tessera-sim/server.h"

#define GUARDS 65536u	/* MAX_BACKINGS of every device */

struct guard {
	_Atomic uintptr_t base;		/* 0: free */
	atomic_size_t bytes;
	_Atomic(atomic_bool *) broken;
};

static struct guard guards[GUARDS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned hint;
static int wake_fd = -1;

static struct guard *find(uintptr_t at)
{
	for (unsigned i = 0; i < GUARDS; i++) {
		uintptr_t base = atomic_load(&guards[i].base);

		if (base && at >= base && at - base < atomic_load(&guards[i].bytes))
			return &guards[i];
	}
	return NULL;
}

static void handle(int sig, siginfo_t *info, void *context)
{
	struct guard *g = find((uintptr_t)info->si_addr);
	int saved = errno;
	uint64_t one = 1;

	(void)context;
	if (!g || mmap((void *)atomic_load(&g->base), atomic_load(&g->bytes),
		       PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS |
		       MAP_NORESERVE | MAP_FIXED, -1, 0) == MAP_FAILED) {
		signal(sig, SIG_DFL);
		raise(sig);
		return;
	}
	atomic_store(atomic_load(&g->broken), true);
	if (write(wake_fd, &one, sizeof(one)) < 0 && errno != EAGAIN)
		signal(sig, SIG_DFL);
	errno = saved;
}

int guard_start(int fd, struct err *err)
{
	struct sigaction a;

	memset(&a, 0, sizeof(a));
	a.sa_sigaction = handle;
	a.sa_flags = SA_SIGINFO | SA_RESTART;
	sigemptyset(&a.sa_mask);
	wake_fd = fd;
	if (sigaction(SIGBUS, &a, NULL))
		return err_sys(err, errno, "sigaction");
	return 0;
}

struct guard *guard_add(void *base, size_t bytes, atomic_bool *broken)
{
	struct guard *g = NULL;

	pthread_mutex_lock(&lock);
	for (unsigned i = 0; i < GUARDS && !g; i++)
		if (!atomic_load(&guards[(hint + i) % GUARDS].base))
			g = &guards[(hint + i) % GUARDS];
	if (g) {
		hint = (unsigned)(g - guards) + 1;
		atomic_store(&g->broken, broken);
		atomic_store(&g->bytes, bytes);
		atomic_store(&g->base, (uintptr_t)base);
	}
	pthread_mutex_unlock(&lock);
	return g;
}

void guard_remove(struct guard *g)
{
	if (g)
		atomic_store(&g->base, 0);
}
