/* SPDX-License-Identifier: Apache-2.0 */
/* Other users' processes, and two devices. */
#include "tests/kmod/kmod_tenants.h"

#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

char pci[2][64];

pid_t tenant(unsigned n, int (*fn)(void *arg), void *arg)
{
	pid_t child = fork();

	CHECK(child >= 0);
	if (child)
		return child;
	if (setjmp(test_end))
		_exit(1);
	if (setgroups(0, NULL) || setgid(1000 + n) || setuid(1000 + n))
		_exit(2);
	fd = open(NODE, O_RDWR | O_CLOEXEC);
	_exit(fd < 0 ? 3 : fn(arg));
}

int end_of(pid_t child, int64_t ns)
{
	int64_t end = now_ns() + ns;
	int status;

	while (!waitpid(child, &status, WNOHANG)) {
		if (now_ns() > end) {
			kill(child, SIGKILL);
			waitpid(child, &status, 0);
			return -1;
		}
		usleep(2000);
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void *shared(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	CHECK(p != MAP_FAILED);
	return p;
}

uint64_t function_resets(void)
{
	struct drm_tessera_device d;

	query_all(DRM_TESSERA_QUERY_DEVICE, 0, &d, sizeof(d));
	return d.function_resets;
}

void await_reset(uint64_t resets)
{
	int64_t end = now_ns() + 30 * SECOND;

	while (function_resets() < resets && now_ns() < end)
		usleep(10000);
	SAME(function_resets(), resets);
}

void find_devices(void)
{
	for (unsigned i = 0; i < 2; i++) {
		char path[128], link[256];
		ssize_t n;

		snprintf(path, sizeof(path), "/sys/class/accel/accel%u/device", i);
		n = readlink(path, link, sizeof(link) - 1);
		link[n < 0 ? 0 : n] = 0;
		if (strrchr(link, '/'))
			snprintf(pci[i], sizeof(pci[i]), "%s", strrchr(link, '/') + 1);
	}
}

void bind_driver(unsigned device, bool on)
{
	write_file(on ? "/sys/bus/pci/drivers/tessera/bind" :
		   "/sys/bus/pci/drivers/tessera/unbind", pci[device]);
}

void await_node(const char *node)
{
	for (unsigned i = 0; i < 1000 && access(node, R_OK | W_OK); i++)
		usleep(10000);
	chmod(node, 0666);
}
