/* SPDX-License-Identifier: Apache-2.0 */
/* Making, keeping and reading telemetry pages. device.c and memory.c fill them. */
#include "hal/telemetry.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hal/base/clock.h"

const char *hal_page_dir(void)
{
	const char *dir = getenv("TESSERA_TELEMETRY_DIR");

	return dir && *dir ? dir : "/dev/shm";
}

static void read_command(char *out, size_t n)
{
	int fd = open("/proc/self/comm", O_RDONLY | O_CLOEXEC);
	ssize_t got = fd >= 0 ? read(fd, out, n - 1) : 0;

	if (fd >= 0)
		close(fd);
	out[got > 0 ? got : 0] = 0;
	out[strcspn(out, "\n")] = 0;
}

/* Maps a new file of one page, locked; -1 with errno. */
static int make_page(const char *path, struct hal_page **out)
{
	int f, saved;

	unlink(path);
	f = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
	if (f < 0)
		return -1;
	if (!flock(f, LOCK_EX | LOCK_NB) && !ftruncate(f, sizeof(**out))) {
		*out = mmap(NULL, sizeof(**out), PROT_READ | PROT_WRITE, MAP_SHARED, f, 0);
		if (*out != MAP_FAILED)
			return f;
	}
	saved = errno;
	close(f);
	unlink(path);
	errno = saved;
	return -1;
}

int hal_page_open(struct hal_page **out, int *fd, char path[128], struct err *err)
{
	static unsigned serial;
	unsigned mine = __atomic_fetch_add(&serial, 1, __ATOMIC_RELAXED);
	char number[16] = "", fresh[160];
	struct hal_page *page;
	int f;

	if (mine)
		snprintf(number, sizeof(number), ".%u", mine);
	snprintf(path, 128, "%s/tessera-%u-%d%s", hal_page_dir(), getuid(), getpid(), number);
	/* Readers take a page that is not locked for that of a dead process and remove
	 * it: they see this one when it is locked and whole, by a name of theirs. */
	snprintf(fresh, sizeof(fresh), "%s/.tessera-%u-%d%s", hal_page_dir(), getuid(), getpid(),
		 number);
	f = make_page(fresh, &page);
	if (f < 0)
		return err_sys(err, errno, "telemetry page %s", path);
	page->version = HAL_PAGE_VERSION;
	page->bytes = sizeof(*page);
	page->pid = (uint32_t)getpid();
	page->start_ns = (uint64_t)clock_ns();
	read_command(page->command, sizeof(page->command));
	__atomic_store_n(&page->magic, HAL_PAGE_MAGIC, __ATOMIC_RELEASE);
	if (rename(fresh, path)) {
		int code = err_sys(err, errno, "telemetry page %s", path);

		munmap(page, sizeof(*page));
		close(f);
		unlink(fresh);
		return code;
	}
	*out = page;
	*fd = f;
	return 0;
}

void hal_page_close(struct hal_page *page, int fd, const char *path)
{
	if (!page)
		return;
	/* A child of fork shares the file: only its maker removes it. */
	if (page->pid == (uint32_t)getpid())
		unlink(path);
	munmap(page, sizeof(*page));
	close(fd);
}

static int copy_page(int fd, const char *path, struct hal_page *out, struct err *err)
{
	const struct hal_page *page;
	struct stat st;
	int tries = 0;

	if (fstat(fd, &st) || st.st_size != sizeof(*page))
		return err_set(err, ERR_INVALID_ARGUMENT, "%s is no telemetry page of this "
			       "version", path);
	page = mmap(NULL, sizeof(*page), PROT_READ, MAP_SHARED, fd, 0);
	if (page == MAP_FAILED)
		return err_sys(err, errno, "mapping %s", path);
	for (;;) {
		uint32_t before = __atomic_load_n(&page->sequence, __ATOMIC_ACQUIRE);

		memcpy(out, page, sizeof(*out));
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		if (!(before & 1) && before == page->sequence)
			break;
		/* A writer that died half-way leaves it odd: numbers are still whole. */
		if (++tries > 1000)
			break;
	}
	munmap((void *)(uintptr_t)page, sizeof(*page));
	if (out->magic != HAL_PAGE_MAGIC || out->version != HAL_PAGE_VERSION ||
	    out->n_devices > HAL_PAGE_DEVICES)
		return err_set(err, ERR_INVALID_ARGUMENT, "%s is no telemetry page of this "
			       "version", path);
	out->command[sizeof(out->command) - 1] = 0;
	for (unsigned i = 0; i < out->n_devices; i++) {
		struct hal_page_device *d = &out->devices[i];

		d->bus_id[sizeof(d->bus_id) - 1] = d->name[sizeof(d->name) - 1] = 0;
		d->serial[sizeof(d->serial) - 1] = d->driver[sizeof(d->driver) - 1] = 0;
		d->state[sizeof(d->state) - 1] = d->running[sizeof(d->running) - 1] = 0;
	}
	return 0;
}

int hal_page_read(const char *path, struct hal_page *out, struct err *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW), code;

	if (fd < 0)
		return err_sys(err, errno, "%s", path);
	if (!flock(fd, LOCK_SH | LOCK_NB)) {
		close(fd);
		unlink(path);
		return err_set(err, ERR_NOT_FOUND, "the process of %s is gone", path);
	}
	code = copy_page(fd, path, out, err);
	close(fd);
	return code;
}
