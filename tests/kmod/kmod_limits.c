/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of what one open file may have: each limit is met, named by its errno, and no
 * trouble of another file's. kmod_test.c runs them.
 */
#include "tests/kmod/kmod.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define MiB (1ull << 20)

static void set_limit(const char *name, unsigned value)
{
	char path[128], text[16];

	snprintf(path, sizeof(path), "/sys/module/tessera/parameters/file_%s", name);
	snprintf(text, sizeof(text), "%u", value);
	write_file(path, text);
}

/* The errno of making one of `what`; 0: it was made, and *id is its id. */
static int make(const char *what, uint32_t ctx, uint32_t *id)
{
	struct drm_tessera_ctx_create c = { 0 };
	struct drm_tessera_queue_create q = { .ctx = ctx, .cls = HW_CLASS_DMA, .n_entries = 2,
					      .eventfd = -1 };
	struct drm_tessera_program_create p = { .ctx = ctx, .code_va = 1ull << 40,
						.code_bytes = sizeof(struct isa_scalar) };
	int r;

	if (!strcmp(what, "contexts")) {
		r = ioctl(fd, DRM_IOCTL_TESSERA_CTX_CREATE, &c);
		*id = c.id;
	} else if (!strcmp(what, "queues")) {
		r = ioctl(fd, DRM_IOCTL_TESSERA_QUEUE_CREATE, &q);
		*id = q.id;
	} else {
		r = ioctl(fd, DRM_IOCTL_TESSERA_PROGRAM_CREATE, &p);
		*id = p.id;
	}
	return r ? errno : 0;
}

static void end(const char *what, uint32_t ctx, uint32_t id)
{
	struct drm_tessera_program_destroy p = { .ctx = ctx, .id = id };

	if (!strcmp(what, "contexts"))
		CHECK(!ctx_destroy(id));
	else if (!strcmp(what, "queues"))
		CHECK(!queue_call(DRM_IOCTL_TESSERA_QUEUE_DESTROY, id));
	else
		CHECK(!ioctl(fd, DRM_IOCTL_TESSERA_PROGRAM_DESTROY, &p));
}

/* A context with a program's code at 1 << 40. */
static uint32_t ctx_with_code(void)
{
	struct drm_tessera_ctx_create ctx = ctx_create();
	struct drm_tessera_bo_create b = bo_create(PAGE, DRM_TESSERA_BO_HBM, 0);
	uint64_t va = 1ull << 40, *p = map_at(b.mmap_offset, PAGE);
	struct isa_scalar halt = { .insn = { .op = ISA_HALT, .bytes = sizeof(halt) } };

	memcpy(p, &halt, sizeof(halt));
	munmap(p, PAGE);
	CHECK(!map(ctx.id, b.handle, &va, 0));
	CHECK(!bo_close(b.handle));
	return ctx.id;
}

/* Five of `what` may be: the fixture's context is one of its kind. */
static void check_limit(const char *what, unsigned normal)
{
	unsigned has = !strcmp(what, "contexts");
	uint32_t ctx = ctx_with_code(), id[8], theirs, other_ctx;
	int mine = fd;

	set_limit(what, 5);
	for (unsigned i = has; i < 5; i++)
		SAME(make(what, ctx, &id[i]), 0);
	SAME(make(what, ctx, &theirs), EMFILE);
	SAME(make(what, ctx, &theirs), EMFILE);
	fd = open(NODE, O_RDWR);
	other_ctx = ctx_with_code();
	SAME(make(what, other_ctx, &theirs), 0);
	close(fd);
	fd = mine;
	end(what, ctx, id[4]);
	SAME(make(what, ctx, &id[4]), 0);
	SAME(make(what, ctx, &theirs), EMFILE);
	/* The context's end gives all of its own back. */
	if (!has) {
		CHECK(!ctx_destroy(ctx));
		ctx = ctx_with_code();
		for (unsigned i = 0; i < 5; i++)
			SAME(make(what, ctx, &id[i]), 0);
		SAME(make(what, ctx, &theirs), EMFILE);
	}
	set_limit(what, normal);
	SAME(make(what, ctx, &theirs), 0);
}

void a_file_has_only_so_many_of_each(void)
{
	struct drm_tessera_device d;

	query_all(DRM_TESSERA_QUERY_DEVICE, 0, &d, sizeof(d));
	SAME(d.contexts_of_file, 16);
	SAME(d.queues_of_file, 32);
	SAME(d.programs_of_file, 16384);
	check_limit("contexts", 16);
	check_limit("queues", 32);
	check_limit("programs", 16384);
}

void a_device_that_is_used_up_says_so(void)
{
	struct drm_tessera_device d;
	uint32_t id[64], more;
	int mine = fd, other, r = 0;
	unsigned n = 0;

	set_limit("contexts", 0);
	query_all(DRM_TESSERA_QUERY_DEVICE, 0, &d, sizeof(d));
	while (n < 64 && !(r = make("contexts", 0, &id[n])))
		n++;
	set_limit("contexts", 16);
	SAME(r, ENOSPC);
	/* One may be the driver's own. */
	CHECK(n == d.contexts_of_file || n == d.contexts_of_file - 1);
	other = open(NODE, O_RDWR);
	fd = other;
	SAME(make("contexts", 0, &more), ENOSPC);
	fd = mine;
	end("contexts", 0, id[0]);
	fd = other;
	SAME(make("contexts", 0, &more), 0);
	close(fd);
	fd = mine;
}

static int take(uint64_t bytes, uint32_t flags, uint32_t ctx, uint32_t *handle)
{
	struct drm_tessera_bo_create b = { .size = bytes, .flags = flags, .ctx = ctx };
	int r = ioctl(fd, DRM_IOCTL_TESSERA_BO_CREATE, &b);

	*handle = b.handle;
	return r ? errno : 0;
}

void a_file_has_only_so_much_hbm(void)
{
	uint32_t ctx = ctx_create().id, first, second;
	struct drm_prime_handle prime = { .fd = -1, .flags = DRM_CLOEXEC };
	struct drm_tessera_memory m;
	int mine = fd;

	set_limit("hbm_mib", 8);
	SAME(take(6 * MiB, DRM_TESSERA_BO_HBM, ctx, &first), 0);
	SAME(take(4 * MiB, DRM_TESSERA_BO_HBM, 0, &second), EMFILE);
	SAME(take(16 * MiB, DRM_TESSERA_BO_HBM, 0, &second), EMFILE);
	query_all(DRM_TESSERA_QUERY_MEMORY, 0, &m, sizeof(m));
	SAME(m.hbm_limit_of_file, 8 * MiB);
	SAME(m.hbm_used_by_file, 6 * MiB);
	/* A mapping holds it as a handle does, and so does a dma-buf. */
	prime.handle = first;
	CHECK(!ioctl(fd, DRM_IOCTL_PRIME_HANDLE_TO_FD, &prime));
	CHECK(!bo_close(first));
	SAME(take(4 * MiB, DRM_TESSERA_BO_HBM, 0, &second), EMFILE);
	CHECK(!ctx_destroy(ctx));
	SAME(take(4 * MiB, DRM_TESSERA_BO_HBM, 0, &second), EMFILE);
	/* The other file is not charged for what it is given. */
	fd = open(NODE, O_RDWR);
	SAME(take(8 * MiB, DRM_TESSERA_BO_HBM, 0, &second), 0);
	CHECK(!ioctl(fd, DRM_IOCTL_PRIME_FD_TO_HANDLE, &prime));
	query_all(DRM_TESSERA_QUERY_MEMORY, 0, &m, sizeof(m));
	SAME(m.hbm_used_by_file, 8 * MiB);
	close(fd);
	fd = mine;
	close(prime.fd);
	SAME(take(8 * MiB, DRM_TESSERA_BO_HBM, 0, &second), 0);
	set_limit("hbm_mib", 0);
	SAME(take(8 * MiB, DRM_TESSERA_BO_HBM, 0, &second), 0);
	query_all(DRM_TESSERA_QUERY_MEMORY, 0, &m, sizeof(m));
	SAME(m.hbm_limit_of_file, m.hbm_total);
}

/* ---- cgroups, of a kernel with the dmem controller ---- */

#define CGROUPS "/sys/fs/cgroup/"

static void cgroup_path(char *out, size_t n, const char *group, const char *file)
{
	snprintf(out, n, CGROUPS "%s/%s", group, file);
}

/* The first card's HBM, as dmem calls it. */
static const char *region(void)
{
	static char name[128];
	char line[128];

	snprintf(line, sizeof(line), "%s", read_from(CGROUPS "dmem.capacity", "drm/"));
	snprintf(name, sizeof(name), "%s", strtok(line, " \n"));
	return name;
}

static uint64_t charged(const char *group)
{
	const char *name = region(), *at;
	char path[128];

	cgroup_path(path, sizeof(path), group, "dmem.current");
	at = read_from(path, name);
	return *at ? strtoull(at + strlen(name), NULL, 10) : 0;
}

static void await_charge(const char *group, uint64_t bytes)
{
	/* The last of a file goes after close() has returned. */
	for (unsigned i = 0; i < 500 && charged(group) != bytes; i++)
		usleep(10000);
	SAME(charged(group), bytes);
}

static void mount_cgroups(void)
{
	if (access(CGROUPS "cgroup.procs", F_OK))
		CHECK(!mount("none", CGROUPS, "cgroup2", 0, NULL));
	write_file(CGROUPS "cgroup.subtree_control", "+dmem");
}

static void make_cgroup(const char *group, const char *most)
{
	char path[128], text[192];

	cgroup_path(path, sizeof(path), group, "");
	CHECK(!mkdir(path, 0755));
	cgroup_path(path, sizeof(path), group, "dmem.max");
	snprintf(text, sizeof(text), "%s %s", region(), most);
	write_file(path, text);
}

/* From now on this process is in the group. */
static void enter_cgroup(const char *group)
{
	char path[128];

	cgroup_path(path, sizeof(path), group, "cgroup.procs");
	write_file(path, "0");
}

static void leave_cgroup(const char *group)
{
	char path[128];

	write_file(CGROUPS "cgroup.procs", "0");
	cgroup_path(path, sizeof(path), group, "");
	CHECK(!rmdir(path));
}

void a_cgroup_has_only_so_much_hbm(void)
{
	uint32_t first, second, handle;
	struct drm_prime_handle prime = { .flags = DRM_CLOEXEC };
	int mine = fd, pipe_fd[2];
	char byte;
	pid_t child;

	mount_cgroups();
	make_cgroup("small", "8388608");
	make_cgroup("other", "max");
	enter_cgroup("small");
	SAME(take(6 * MiB, DRM_TESSERA_BO_HBM, 0, &first), 0);
	SAME(charged("small"), 6 * MiB);
	SAME(take(4 * MiB, DRM_TESSERA_BO_HBM, 0, &second), EMFILE);
	SAME(charged("small"), 6 * MiB);
	SAME(take(4 * MiB, DRM_TESSERA_BO_SYSTEM, 0, &handle), 0);
	/* It is the group's, whatever file it is of. */
	fd = open(NODE, O_RDWR);
	SAME(take(4 * MiB, DRM_TESSERA_BO_HBM, 0, &second), EMFILE);
	SAME(take(2 * MiB, DRM_TESSERA_BO_HBM, 0, &second), 0);
	SAME(charged("small"), 8 * MiB);
	close(fd);
	fd = mine;
	await_charge("small", 6 * MiB);
	/* Who made it has it, whoever holds it last, and wherever he is then. */
	enter_cgroup("other");
	prime.handle = first;
	CHECK(!ioctl(fd, DRM_IOCTL_PRIME_HANDLE_TO_FD, &prime));
	CHECK(!bo_close(first));
	SAME(take(16 * MiB, DRM_TESSERA_BO_HBM, 0, &second), 0);
	SAME(charged("small"), 6 * MiB);
	SAME(charged("other"), 16 * MiB);
	close(prime.fd);
	await_charge("small", 0);
	CHECK(!bo_close(second));
	await_charge("other", 0);
	/* What a process that was killed had is given back. */
	CHECK(!pipe(pipe_fd));
	child = fork();
	CHECK(child >= 0);
	if (!child) {
		enter_cgroup("small");
		fd = open(NODE, O_RDWR);
		byte = take(8 * MiB, DRM_TESSERA_BO_HBM, 0, &first) == 0;
		_exit(write(pipe_fd[1], &byte, 1) == 1 && pause());
	}
	CHECK(read(pipe_fd[0], &byte, 1) == 1 && byte);
	SAME(charged("small"), 8 * MiB);
	CHECK(!kill(child, SIGKILL));
	CHECK(waitpid(child, NULL, 0) == child);
	await_charge("small", 0);
	close(pipe_fd[0]);
	close(pipe_fd[1]);
	leave_cgroup("other");
	leave_cgroup("small");
}

/* A card's HBM is charged to a group while its driver goes, and comes back. */
void a_cgroup_outlives_its_cards_driver(void)
{
	char link[256], *pci;
	uint32_t handle;
	ssize_t got = readlink("/sys/class/accel/accel0/device", link, sizeof(link) - 1);

	CHECK(got > 0);
	link[got] = 0;
	pci = strrchr(link, '/') + 1;
	mount_cgroups();
	make_cgroup("late", "8388608");
	enter_cgroup("late");
	SAME(take(6 * MiB, DRM_TESSERA_BO_HBM, 0, &handle), 0);
	write_file("/sys/bus/pci/drivers/tessera/unbind", pci);
	close(fd);
	write_file("/sys/bus/pci/drivers/tessera/bind", pci);
	for (unsigned i = 0; i < 1000 && access(NODE, R_OK | W_OK); i++)
		usleep(10000);
	fd = open(NODE, O_RDWR | O_CLOEXEC);
	CHECK(fd >= 0);
	await_charge("late", 0);
	SAME(take(16 * MiB, DRM_TESSERA_BO_HBM, 0, &handle), 0);
	leave_cgroup("late");
}

/* In a process that may lock 1 MiB and is not root: its errors one after the other. */
static int lock_memory(void)
{
	struct rlimit limit = { MiB, MiB };
	void *p = mmap(NULL, MiB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct drm_tessera_bo_userptr u = { .address = P(p), .size = MiB / 2 };
	uint32_t contiguous = DRM_TESSERA_BO_SYSTEM | DRM_TESSERA_BO_CONTIGUOUS, a, b, ctx;

	if (setrlimit(RLIMIT_MEMLOCK, &limit) || setuid(65534))
		return 1;
	if (take(2 * MiB, DRM_TESSERA_BO_SYSTEM, 0, &a) != ENOMEM ||
	    take(2 * MiB, contiguous, 0, &a) != ENOMEM)
		return 2;
	if (take(MiB / 2, DRM_TESSERA_BO_SYSTEM, 0, &a) || take(MiB / 2, contiguous, 0, &b))
		return 3;
	if (take(PAGE, DRM_TESSERA_BO_SYSTEM, 0, &ctx) != ENOMEM ||
	    !ioctl(fd, DRM_IOCTL_TESSERA_BO_USERPTR, &u) || errno != ENOMEM ||
	    make("contexts", 0, &ctx) || make("queues", ctx, &b) != ENOMEM)
		return 4;
	if (bo_close(a) || ioctl(fd, DRM_IOCTL_TESSERA_BO_USERPTR, &u))
		return 5;
	if (take(PAGE, DRM_TESSERA_BO_SYSTEM, 0, &a) != ENOMEM || bo_close(u.handle))
		return 6;
	/* HBM is none of the system's. */
	return take(4 * MiB, DRM_TESSERA_BO_HBM, 0, &a) ||
	       take(PAGE, DRM_TESSERA_BO_SYSTEM, 0, &a) || make("queues", ctx, &b) ? 7 : 0;
}

void memory_that_stays_counts_as_locked(void)
{
	struct drm_tessera_memory before, after;
	int status = -1;
	pid_t child;

	query_all(DRM_TESSERA_QUERY_MEMORY, 0, &before, sizeof(before));
	child = fork();
	CHECK(child >= 0);
	if (!child) {
		fd = open(NODE, O_RDWR);
		_exit(lock_memory());
	}
	CHECK(waitpid(child, &status, 0) == child);
	SAME(status, 0);
	query_all(DRM_TESSERA_QUERY_MEMORY, 0, &after, sizeof(after));
	SAME(after.system_used, before.system_used);
	SAME(after.hbm_used, before.hbm_used);
}
