/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_VFIO_SERVER_H
#define TESTS_VFIO_SERVER_H
/* A tessera-sim in a folder of its own, for tests of what talks to it. The program is
 * the one beside the tests: $TESSERA_BUILD/tessera-sim. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hal/base/clock.h"

#ifndef SERVED
#define SERVED 2	/* devices */
#endif

struct vfio_server {
	pid_t pid;
	char dir[64];
	char device[SERVED][112];	/* for TESSERA_DEVICES */
	char socket[SERVED][96];
};

/* Whether the line that says "serving" came. */
static inline int await_serving(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	int64_t deadline = clock_after(20000000000);
	char line[200];
	size_t n = 0;

	while (clock_ns() < deadline && n < sizeof(line) - 1) {
		if (poll(&p, 1, 1000) <= 0)
			continue;
		if (read(fd, line + n, 1) != 1)
			return -1;
		line[++n] = 0;
		if (line[n - 1] == '\n')
			return strncmp(line, "serving", 7) ? -1 : 0;
	}
	return -1;
}

/* Stops it as a debugger would; no thread of it runs when this returns. 0 or -1. */
static inline int server_freeze(const struct vfio_server *s)
{
	int status;

	if (kill(s->pid, SIGSTOP) || waitpid(s->pid, &status, WUNTRACED) != s->pid)
		return -1;
	return WIFSTOPPED(status) ? 0 : -1;
}

/* SERVED devices with 64 MiB for each of `clients`, with --client-limit `limit`. 0, or -1 with
 * a text on standard error. */
static inline int server_start_for(struct vfio_server *s, unsigned clients, const char *limit)
{
	const char *build = getenv("TESSERA_BUILD"), *tmp = getenv("TMPDIR");
	char program[300], number[16], hbm[16], count[16];
	int out[2], failed;

	snprintf(program, sizeof(program), "%s/tessera-sim", build ? build : "build/opt");
	snprintf(s->dir, sizeof(s->dir), "%.30s/tessera-XXXXXX", tmp ? tmp : "/tmp");
	if (access(program, X_OK) || !mkdtemp(s->dir) || pipe(out)) {
		fprintf(stderr, "%s: %s\n", program, strerror(errno));
		return -1;
	}
	for (int i = 0; i < SERVED; i++) {
		snprintf(s->socket[i], sizeof(s->socket[i]), "%s/%d.sock", s->dir, i);
		snprintf(s->device[i], sizeof(s->device[i]), "vfio-user:%s/%d.sock", s->dir,
			 i);
	}
	s->pid = fork();
	if (!s->pid) {
		dup2(out[1], 1);
		close(out[0]);
		close(out[1]);
		snprintf(number, sizeof(number), "%u", clients);
		snprintf(count, sizeof(count), "%d", SERVED);
		snprintf(hbm, sizeof(hbm), "%uM", 64 * clients);
		execl(program, program, "--devices", count, "--hbm", hbm, "--lanes", "2",
		      "--clients", number, "--client-limit", limit, "--socket-dir",
		      s->dir, (char *)NULL);
		_exit(127);
	}
	close(out[1]);
	failed = await_serving(out[0]);
	close(out[0]);
	if (failed)
		fprintf(stderr, "%s does not serve\n", program);
	return failed;
}

static inline int server_start_with(struct vfio_server *s, const char *limit)
{
	return server_start_for(s, 1, limit);
}

static inline int server_start(struct vfio_server *s)
{
	return server_start_with(s, "10000");
}

/* Ends it by `sig`; its wait status. */
static inline int server_stop(struct vfio_server *s, int sig)
{
	char path[128];
	int status = -1;

	if (s->pid > 0) {
		kill(s->pid, sig);
		waitpid(s->pid, &status, 0);
	}
	s->pid = 0;
	for (int i = 0; i < 2; i++)
		unlink(s->socket[i]);
	snprintf(path, sizeof(path), "%s/lock", s->dir);
	unlink(path);
	snprintf(path, sizeof(path), "%s/control.sock", s->dir);
	unlink(path);
	rmdir(s->dir);
	return status;
}

#endif
