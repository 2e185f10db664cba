/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Injected errors, whoever owns the device: through the HAL, or, where the kernel driver
 * does and programs may not, as root through its debugfs. Poison is placed in the HBM that
 * this process has, which in debugfs is a block of the card's.
 */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "tests/conformance/conf.h"

/* A file of the device in debugfs; n.a. where we may not. */
static int open_debug(struct conf *c, const char *name, int flags)
{
	char link[300], address[300], path[700];
	const char *node = c->info.bus_id + strlen("accel:"), *base;
	ssize_t n;
	int fd;

	snprintf(link, sizeof(link), "/sys/class/accel/%s/device", node);
	n = readlink(link, address, sizeof(address) - 1);
	if (n < 0)
		conf_fail(c, "%s: %s", link, strerror(errno));
	address[n] = 0;
	base = strrchr(address, '/');
	snprintf(path, sizeof(path), "/sys/kernel/debug/accel/%s/%s",
		 base ? base + 1 : address, name);
	fd = open(path, flags | O_CLOEXEC);
	if (fd < 0)
		not_applicable(c, "errors are injected by root, through debugfs: %s: %s", path,
			       strerror(errno));
	return fd;
}

/* Where on the card the HBM of this process begins, which has taken all of it in one block. */
static uint64_t hbm_begins(struct conf *c)
{
	FILE *f = fdopen(open_debug(c, "hbm", O_RDONLY), "r");
	unsigned long long first, end, bytes;
	char line[200], what[16];
	bool found = false;

	while (f && !found && fgets(line, sizeof(line), f))
		found = sscanf(line, "%llx-%llx: %llu: %15s", &first, &end, &bytes, what) == 4 &&
			!strcmp(what, "used") && bytes == c->info.hbm_bytes;
	if (f)
		fclose(f);
	EXPECT(c, found);
	return first;
}

int conf_inject(struct conf *c, unsigned what, uint64_t value)
{
	char text[48];
	ssize_t wrote;
	int fd, n, sysno;

	if (c->info.kind != HAL_KIND_ACCEL)
		return hal_device_inject(c->dev, what, value, &c->err);
	REFUSED(c, ERR_UNIMPLEMENTED, "/sys/kernel/debug/accel/",
		hal_device_inject(c->dev, what, value, &c->err));
	/* What lies past all of it is past the card's, too. */
	if (what == HW_INJECT_POISON && value < c->info.hbm_bytes)
		value += hbm_begins(c);
	fd = open_debug(c, "inject", O_WRONLY);
	n = snprintf(text, sizeof(text), "%u %llu", what, (unsigned long long)value);
	wrote = write(fd, text, (size_t)n);
	sysno = errno;
	close(fd);
	return wrote == n ? 0 : err_sys(&c->err, sysno, "injecting %s", text);
}
