/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the machine under a device takes by itself: system calls, the ways from one
 * thread to another, memory. Figures of a transport are held against these.
 */
#include <errno.h>
#include <immintrin.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/bench/transport_bench.h"

enum { CALLS = 100 };

static void calls(void)
{
	struct figure f;
	int pipes[2], waiting = 1;
	int64_t began;

	figure_begin(&f, SYSTEM_CALL, NULL, 0);
	while (figure_more(&f)) {
		began = clock_ns();
		for (int i = 0; i < CALLS; i++)
			if (getppid() < 0)
				bench_die("getppid");
		figure_add(&f, (double)(clock_ns() - began) / CALLS);
	}
	figure_end(&f);
	if (pipe(pipes))
		bench_die("pipe: %s", strerror(errno));
	figure_begin(&f, "ioctl, FIONREAD of a pipe", SYSTEM_CALL, 0);
	while (figure_more(&f)) {
		began = clock_ns();
		for (int i = 0; i < CALLS; i++)
			if (ioctl(pipes[0], FIONREAD, &waiting) || waiting)
				bench_die("FIONREAD: %d waiting", waiting);
		figure_add(&f, (double)(clock_ns() - began) / CALLS);
	}
	figure_end(&f);
	close(pipes[0]);
	close(pipes[1]);
	figure_begin(&f, "clock_gettime", SYSTEM_CALL, 0);
	while (figure_more(&f)) {
		int64_t last = began = clock_ns();

		for (int i = 0; i < CALLS; i++)
			last = clock_ns();
		figure_add(&f, (double)(last - began) / CALLS);
	}
	figure_end(&f);
}

/* ---- there and back between two threads ---- */

struct pair {
	_Alignas(64) atomic_ulong there;
	_Alignas(64) atomic_ulong back;
	int fd[2];	/* ours to write and theirs to read; the other way round */
	bool is_socket;
};

static void *spin_back(void *arg)
{
	struct pair *p = arg;

	for (unsigned long i = 1; i; i++) {
		unsigned long got;

		while ((got = atomic_load(&p->there)) < i)
			_mm_pause();
		if (got == ~0ul)
			return NULL;
		atomic_store(&p->back, i);
	}
	return NULL;
}

/* Both have 8 bytes a message. */
static void *write_back(void *arg)
{
	struct pair *p = arg;
	uint64_t word;

	while (read(p->fd[p->is_socket], &word, 8) == 8 && word != ~1ull)
		if (write(p->fd[1], &word, 8) != 8)
			break;
	return NULL;
}

static void start(pthread_t *t, void *(*fn)(void *), struct pair *p)
{
	if (pthread_create(t, NULL, fn, p))
		bench_die("a second thread");
}

static void shared_memory(void)
{
	enum { TRIPS = 20 };
	struct pair p = { 0 };
	unsigned long at = 0;
	struct figure f;
	pthread_t t;

	start(&t, spin_back, &p);
	figure_begin(&f, SHARED_MEMORY, SYSTEM_CALL, 0);
	while (figure_more(&f)) {
		int64_t began = clock_ns();

		for (int i = 0; i < TRIPS; i++) {
			atomic_store(&p.there, ++at);
			while (atomic_load(&p.back) != at)
				_mm_pause();
		}
		figure_add(&f, (double)(clock_ns() - began) / TRIPS);
	}
	figure_end(&f);
	atomic_store(&p.there, ~0ul);
	pthread_join(t, NULL);
}

static void by_kernel(const char *name, bool is_socket)
{
	struct pair p = { .is_socket = is_socket };
	uint64_t word = 0, sent = 0, end = ~1ull;
	struct figure f;
	pthread_t t;

	if (is_socket) {
		if (socketpair(AF_UNIX, SOCK_STREAM, 0, p.fd))
			bench_die("socketpair: %s", strerror(errno));
	} else {
		p.fd[0] = eventfd(0, 0);
		p.fd[1] = eventfd(0, 0);
	}
	start(&t, write_back, &p);
	figure_begin(&f, name, SYSTEM_CALL, 0);
	while (figure_more(&f)) {
		int64_t began = clock_ns();

		sent++;
		if (write(p.fd[0], &sent, 8) != 8 || read(p.fd[!is_socket], &word, 8) != 8 ||
		    word != sent)
			bench_die("%s: %llu came back for %llu", name,
				  (unsigned long long)word, (unsigned long long)sent);
		figure_add(&f, (double)(clock_ns() - began));
	}
	figure_end(&f);
	if (write(p.fd[0], &end, 8) != 8)
		bench_die("%s: %s", name, strerror(errno));
	pthread_join(t, NULL);
	close(p.fd[0]);
	close(p.fd[1]);
}

void bench_floors(void)
{
	calls();
	shared_memory();
	by_kernel(EVENTFD, false);
	by_kernel("UNIX socket, two threads, round trip", true);
}

/* ---- memory ---- */

static unsigned char *take(uint64_t bytes)
{
	unsigned char *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		bench_die("mmap of %llu bytes: %s", (unsigned long long)bytes, strerror(errno));
	for (uint64_t at = 0; at < bytes; at += 4096)
		p[at] = 1;
	return p;
}

bool bench_floor_memory(uint64_t bytes)
{
	static struct figure fresh, in, out;
	unsigned char *p;
	bool may = true;

	figure_begin(&fresh, figure_sized("mmap, touch, munmap", bytes), SYSTEM_CALL, bytes);
	while (figure_more(&fresh)) {
		int64_t began = clock_ns();

		p = take(bytes);
		munmap(p, bytes);
		figure_add(&fresh, (double)(clock_ns() - began));
	}
	figure_end(&fresh);
	figure_begin(&in, figure_sized("mlock", bytes), SYSTEM_CALL, bytes);
	figure_begin(&out, figure_sized("munlock", bytes), SYSTEM_CALL, bytes);
	p = take(bytes);
	while (may && figure_more(&in)) {
		int64_t began = clock_ns();

		may = !mlock(p, bytes);
		if (!may)
			break;
		figure_add(&in, (double)(clock_ns() - began));
		began = clock_ns();
		if (munlock(p, bytes))
			bench_die("munlock: %s", strerror(errno));
		figure_add(&out, (double)(clock_ns() - began));
	}
	if (may) {
		figure_end(&in);
		figure_end(&out);
	} else {
		fprintf(stderr, "mlock of %llu bytes: %s; no such figure\n",
			(unsigned long long)bytes, strerror(errno));
	}
	munmap(p, bytes);
	return may;
}
