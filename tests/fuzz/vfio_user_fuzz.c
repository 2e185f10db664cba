/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hostile vfio-user messages against the server, without a socket.
 *
 * An input is a list of messages: command, a byte that says which descriptors come
 * along, two bytes of length, the body. Each input is a session: what it leaves must be
 * gone afterwards, so an input also proves that a session can end at any point.
 * The version is agreed on first if the input's first byte is odd.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tools/tessera-sim/server.h"

#define MEMORY (64u << 10)

static struct device device;
static struct reply reply;
static unsigned long long n_messages;

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void tell(void)
{
	fprintf(stderr, "handled %llu messages\n", n_messages);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	struct sim_options options = { .n_devices = 1, .hbm_bytes = 4u << 20, .lanes = 1,
				       .hbm_file = true };
	struct sim *sim;
	struct err err;

	(void)argc;
	(void)argv;
	reply.body = malloc(VFU_MAX_BODY);
	if (!reply.body || sim_create(&options, &sim, &err) ||
	    guard_start(eventfd(0, EFD_NONBLOCK), &err) ||
	    device_init(&device, sim_device(sim, 0), 0, &err)) {
		fprintf(stderr, "%s\n", err.msg);
		exit(1);
	}
	atexit(tell);
	return 0;
}

static int make_fd(unsigned kind)
{
	int fd;

	if (kind == 1)
		return eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (kind == 2)
		return open("/dev/null", O_RDWR | O_CLOEXEC);
	fd = memfd_create("fuzz", MFD_CLOEXEC);
	if (kind == 0 && ftruncate(fd, MEMORY))
		abort();
	return fd;
}

/* The low bits say how many, the next ones of what kind. */
static void add_fds(struct message *m, unsigned how)
{
	m->n_fds = how & 7;
	for (unsigned i = 0; i < m->n_fds; i++)
		m->fds[i] = make_fd(how >> 3 & 3);
}

/* One message of the input, in a block of its own size; bytes used. */
static size_t take_one(const uint8_t *data, size_t n)
{
	struct message m = { .h.command = data[0] % 20 };
	size_t bytes = data[2] | (size_t)data[3] << 8;
	int error;

	bytes = bytes < n - 4 ? bytes : n - 4;
	m.bytes = bytes;
	m.h.size = (uint32_t)(sizeof(m.h) + bytes);
	m.body = malloc(bytes ? bytes : 1);
	if (!m.body)
		abort();
	memcpy(m.body, data + 4, bytes);
	add_fds(&m, data[1]);
	n_messages++;
	error = message_handle(&device, &m, &reply);
	if (error < 0)
		abort();
	if (!error && reply.bytes > VFU_MAX_BODY)
		abort();
	for (unsigned i = 0; i < m.n_fds; i++)
		if (m.fds[i] >= 0)
			close(m.fds[i]);
	free(m.body);
	return 4 + bytes;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct err err;

	if (!n)
		return 0;
	if (device_begin(&device, &err)) {
		fprintf(stderr, "%s\n", err.msg);
		abort();
	}
	device.has_version = data[0] & 1;
	for (size_t at = 1; n - at >= 4; )
		at += take_one(data + at, n - at);
	device_end(&device);
	return 0;
}
