/* SPDX-License-Identifier: Apache-2.0 */
/* Telemetry pages under readers, who remove what nobody holds. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "hal/telemetry.h"

#define PAGES 3000
#define READERS 2

static char dir[] = "/tmp/tessera-pages-XXXXXX";

/* Reads every page there is, as xla-smi does; gives how many there were. */
static unsigned read_all(struct hal_page *page)
{
	DIR *d = opendir(dir);
	struct dirent *e;
	unsigned n = 0;
	char path[512];

	while (d && (e = readdir(d))) {
		if (strncmp(e->d_name, "tessera-", 8))
			continue;
		snprintf(path, sizeof(path), "%s/%s", dir, e->d_name);
		n += !hal_page_read(path, page, NULL);
	}
	if (d)
		closedir(d);
	return n;
}

static unsigned count_entries(void)
{
	DIR *d = opendir(dir);
	struct dirent *e;
	unsigned n = 0;

	assert_non_null(d);
	while ((e = readdir(d)))
		n += strcmp(e->d_name, ".") && strcmp(e->d_name, "..");
	closedir(d);
	return n;
}

static void a_page_that_is_made_under_readers_is_seen(void **state)
{
	struct hal_page *page, *seen = malloc(sizeof(*seen));
	pid_t readers[READERS];
	struct err err;
	char path[128];
	int fd;

	(void)state;
	assert_non_null(seen);
	for (unsigned i = 0; i < READERS; i++) {
		readers[i] = fork();
		assert_true(readers[i] >= 0);
		if (readers[i])
			continue;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			read_all(seen);
	}
	for (unsigned i = 0; i < PAGES; i++) {
		if (hal_page_open(&page, &fd, path, &err))
			fail_msg("page %u: %s", i, err.msg);
		if (access(path, F_OK) || hal_page_read(path, seen, &err))
			fail_msg("page %u is gone", i);
		assert_int_equal(seen->pid, getpid());
		hal_page_close(page, fd, path);
		assert_int_not_equal(access(path, F_OK), 0);
	}
	for (unsigned i = 0; i < READERS; i++) {
		kill(readers[i], SIGKILL);
		assert_int_equal(waitpid(readers[i], NULL, 0), readers[i]);
	}
	assert_int_equal(count_entries(), 0);
	free(seen);
}

static void the_page_of_a_dead_process_is_removed(void **state)
{
	struct hal_page *page, *seen = malloc(sizeof(*seen));
	struct err err;
	char path[128];
	pid_t pid;
	int fd;

	(void)state;
	assert_non_null(seen);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid)
		_exit(hal_page_open(&page, &fd, path, &err) ? 1 : 0);
	assert_int_equal(waitpid(pid, &fd, 0), pid);
	assert_int_equal(fd, 0);
	assert_int_equal(count_entries(), 1);
	assert_int_equal(read_all(seen), 0);
	assert_int_equal(count_entries(), 0);
	free(seen);
}

/* Publishes as process 1 of a PID namespace of its own until it is killed. */
static int live_as_the_first(void *told)
{
	struct hal_page *page;
	char path[128], done;
	struct err err;
	int fd;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	done = getpid() == 1 && !hal_page_open(&page, &fd, path, &err);
	if (write(*(int *)told, &done, 1) != 1)
		_exit(1);
	for (;;)
		pause();
}

static void processes_of_two_pid_namespaces_share_no_page(void **state)
{
	static char stacks[2][64 << 10] __attribute__((aligned(16)));
	struct hal_page *seen = malloc(sizeof(*seen));
	int told[2];
	pid_t pids[2];
	char done = 0;

	(void)state;
	assert_non_null(seen);
	assert_int_equal(pipe(told), 0);
	for (unsigned i = 0; i < 2; i++) {
		pids[i] = clone(live_as_the_first, stacks[i] + sizeof(stacks[i]),
				CLONE_NEWUSER | CLONE_NEWPID | SIGCHLD, &told[1]);
		if (pids[i] < 0 && !i) {
			print_message("no PID namespace for this user: %s\n", strerror(errno));
			skip();
		}
		assert_true(pids[i] > 0);
		assert_int_equal(read(told[0], &done, 1), 1);
		assert_int_equal(done, 1);
	}
	assert_int_equal(read_all(seen), 2);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(kill(pids[i], SIGKILL), 0);
		assert_int_equal(waitpid(pids[i], NULL, 0), pids[i]);
		assert_int_equal(read_all(seen), 1 - i);
	}
	assert_int_equal(count_entries(), 0);
	close(told[0]);
	close(told[1]);
	free(seen);
}

static void pages_of_dead_processes_are_removed_by_the_next(void **state)
{
	struct hal_page *page;
	struct err err;
	char path[128];
	int fd, status;

	(void)state;
	for (unsigned i = 0; i < 5; i++) {
		pid_t pid = fork();

		assert_true(pid >= 0);
		if (!pid)
			_exit(hal_page_open(&page, &fd, path, &err) ? 1 : 0);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
	}
	if (hal_page_open(&page, &fd, path, &err))
		fail_msg("%s", err.msg);
	assert_int_equal(count_entries(), 1);
	hal_page_close(page, fd, path);
	assert_int_equal(count_entries(), 0);
}

/* Killed between the file's beginning and its first word. */
static void a_page_whose_maker_died_over_it_is_removed(void **state)
{
	struct hal_page *page = calloc(1, sizeof(*page));
	const off_t sizes[] = { 0, sizeof(*page) };
	char path[128], begun[200];
	struct err err;
	int fd, other;

	(void)state;
	assert_non_null(page);
	for (unsigned by_reader = 0; by_reader < 2; by_reader++) {
		for (unsigned i = 0; i < 2; i++) {
			snprintf(begun, sizeof(begun), "%s/tessera-%u-1-0123456789abcdef", dir,
				 getuid());
			other = open(begun, O_RDWR | O_CREAT | O_EXCL, 0600);
			assert_true(other >= 0);
			assert_int_equal(ftruncate(other, sizes[i]), 0);
			/* Its maker is at work, and then is not. */
			assert_int_equal(flock(other, LOCK_EX), 0);
			assert_int_equal(hal_page_read(begun, page, &err), ERR_INVALID_ARGUMENT);
			assert_int_equal(count_entries(), 1);
			close(other);
			if (by_reader) {
				assert_int_equal(hal_page_read(begun, page, &err), ERR_NOT_FOUND);
			} else {
				struct hal_page *mine;

				assert_int_equal(hal_page_open(&mine, &fd, path, &err), 0);
				assert_int_equal(count_entries(), 1);
				hal_page_close(mine, fd, path);
			}
			assert_int_equal(count_entries(), 0);
		}
	}
	free(page);
}

static void files_that_are_no_pages_are_left_alone(void **state)
{
	static const char *const names[] = { "fifo", "socket", "folder", "link", "empty", "short",
					     "long", "magic" };
	struct hal_page *seen = calloc(2, sizeof(*seen));
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	char path[200];
	struct err err;

	(void)state;
	assert_non_null(seen);
	/* Would wait for a writer. */
	alarm(20);
	for (unsigned i = 0; i < sizeof(names) / sizeof(*names); i++) {
		const char *name = names[i];
		int fd = -1;

		snprintf(path, sizeof(path), "%s/tessera-%s", dir, name);
		if (!strcmp(name, "fifo")) {
			assert_int_equal(mkfifo(path, 0600), 0);
		} else if (!strcmp(name, "socket")) {
			snprintf(a.sun_path, sizeof(a.sun_path), "%.100s", path);
			fd = socket(AF_UNIX, SOCK_STREAM, 0);
			assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
		} else if (!strcmp(name, "folder")) {
			assert_int_equal(mkdir(path, 0700), 0);
		} else if (!strcmp(name, "link")) {
			assert_int_equal(symlink("/dev/zero", path), 0);
		} else {
			fd = open(path, O_RDWR | O_CREAT, 0600);
			/* Somebody's notes, as long as a page is; not its magic. */
			memset(seen, 'x', sizeof(*seen));
			assert_true(write(fd, seen, !strcmp(name, "empty") ? 0 :
					  !strcmp(name, "short") ? 4 : sizeof(*seen)) >= 0);
		}
		if (fd >= 0)
			close(fd);
		assert_int_not_equal(hal_page_read(path, seen, &err), 0);
		assert_int_not_equal(err.code, ERR_NOT_FOUND);
		if (remove(path))
			fail_msg("%s is gone", path);
	}
	alarm(0);
	free(seen);
}

/* A page of this process, as the folder shows it to others. */
static struct hal_page *publish(char path[128], int *fd)
{
	struct hal_page *page;
	struct err err;

	if (hal_page_open(&page, fd, path, &err))
		fail_msg("%s", err.msg);
	return page;
}

static void a_page_of_another_version_is_refused_until_its_process_is_gone(void **state)
{
	struct hal_page *page, *seen = malloc(sizeof(*seen));
	char path[128], copy[160];
	struct err err;
	int fd, other;

	(void)state;
	assert_non_null(seen);
	page = publish(path, &fd);
	page->version++;
	assert_int_equal(hal_page_read(path, seen, &err), ERR_INVALID_ARGUMENT);
	page->version--;
	page->n_devices = HAL_PAGE_DEVICES + 1;
	assert_int_equal(hal_page_read(path, seen, &err), ERR_INVALID_ARGUMENT);
	page->n_devices = HAL_PAGE_DEVICES;
	assert_int_equal(hal_page_read(path, seen, &err), 0);
	/* A writer that stopped in the middle. */
	page->sequence = 7;
	assert_int_equal(hal_page_read(path, seen, &err), 0);
	assert_int_equal(ftruncate(fd, sizeof(*page) + 1), 0);
	assert_int_equal(hal_page_read(path, seen, &err), ERR_INVALID_ARGUMENT);
	assert_int_equal(access(path, F_OK), 0);
	/* One that nobody holds, of a later version: it is larger. */
	snprintf(copy, sizeof(copy), "%s/tessera-0-1", dir);
	other = open(copy, O_RDWR | O_CREAT, 0600);
	assert_int_equal(write(other, page, sizeof(*page)), sizeof(*page));
	assert_int_equal(ftruncate(other, 2 * sizeof(*page)), 0);
	close(other);
	assert_int_equal(hal_page_read(copy, seen, &err), ERR_NOT_FOUND);
	assert_int_not_equal(access(copy, F_OK), 0);
	hal_page_close(page, fd, path);
	free(seen);
}

/* A page can shrink while it is read: no signal, and never a wrong success. */
static void a_page_that_shrinks_is_no_page(void **state)
{
	struct hal_page *page, *seen = malloc(sizeof(*seen));
	char path[128];
	struct err err;
	int fd, status;
	pid_t pid;

	(void)state;
	assert_non_null(seen);
	page = publish(path, &fd);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;) {
			struct hal_page whole = { .magic = HAL_PAGE_MAGIC,
						  .version = HAL_PAGE_VERSION };

			if (ftruncate(fd, 0) || pwrite(fd, &whole, sizeof(whole), 0) < 0)
				_exit(1);
		}
	}
	for (int i = 0; i < 20000; i++) {
		int code = hal_page_read(path, seen, &err);

		assert_true(!code || code == ERR_INVALID_ARGUMENT);
		if (!code)
			assert_int_equal(seen->magic, HAL_PAGE_MAGIC);
	}
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(ftruncate(fd, sizeof(*page)), 0);
	page->pid = (uint32_t)getpid();
	hal_page_close(page, fd, path);
	free(seen);
}

static void texts_of_strangers_are_printable(void **state)
{
	static const struct { const char *told, *shown; } texts[] = {
		{ "plain", "plain" }, { "\033[2J\a\r\n\t\177", "?[2J?????" },
		{ "gr\303\274n", "gr\303\274n" }, { "\342\202\254", "\342\202\254" },
		{ "\360\237\230\200", "\360\237\230\200" },
		{ "\303", "?" }, { "\303x", "?x" }, { "\342\202", "??" }, { "\377\376", "??" },
		{ "\300\257", "??" }, { "\355\240\200", "???" }, { "\302\233A", "??A" },
		{ "\302\240", "\302\240" }, { "\364\220\200\200", "????" },
		{ "\340\200\200", "???" }, { "\360\200\200\200", "????" }, { "\200", "?" },
	};
	struct hal_page *page, *seen = malloc(sizeof(*seen));
	char path[128];
	struct err err;
	int fd;

	(void)state;
	assert_non_null(seen);
	page = publish(path, &fd);
	page->n_devices = HAL_PAGE_DEVICES;
	for (unsigned i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		struct hal_page_device *d = &page->devices[HAL_PAGE_DEVICES - 1];

		strcpy(page->command, texts[i].told);
		strcpy(d->running, texts[i].told);
		strcpy(d->state, texts[i].told);
		strcpy(d->name, texts[i].told);
		assert_int_equal(hal_page_read(path, seen, &err), 0);
		d = &seen->devices[HAL_PAGE_DEVICES - 1];
		assert_string_equal(seen->command, texts[i].shown);
		assert_string_equal(d->running, texts[i].shown);
		assert_string_equal(d->state, texts[i].shown);
		assert_string_equal(d->name, texts[i].shown);
	}
	/* Without an end, and cut in the middle of a character. */
	memset(page->command, 'x', sizeof(page->command));
	memset(page->devices[0].serial, '\342', sizeof(page->devices[0].serial));
	memset(page->devices[0].bus_id, 'y', sizeof(page->devices[0].bus_id));
	memset(page->devices[0].driver, 'z', sizeof(page->devices[0].driver));
	assert_int_equal(hal_page_read(path, seen, &err), 0);
	assert_int_equal(strlen(seen->command), sizeof(seen->command) - 1);
	assert_int_equal(strlen(seen->devices[0].bus_id), sizeof(page->devices[0].bus_id) - 1);
	assert_int_equal(strlen(seen->devices[0].driver), sizeof(page->devices[0].driver) - 1);
	assert_int_equal(strspn(seen->devices[0].serial, "?"), sizeof(page->devices[0].serial) - 1);
	hal_page_close(page, fd, path);
	free(seen);
}

static void a_forked_child_leaves_its_parents_page(void **state)
{
	struct hal_page *page;
	char path[128];
	int fd, status;
	pid_t pid;

	(void)state;
	page = publish(path, &fd);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		hal_page_close(page, fd, path);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(access(path, F_OK), 0);
	hal_page_close(page, fd, path);
	assert_int_not_equal(access(path, F_OK), 0);
}

/* A store into what has no room there would end the process. */
static void a_full_file_system_is_an_error(void **state)
{
	char full[64], path[128];
	struct hal_page *page;
	struct err err;
	int fd, code;

	(void)state;
	snprintf(full, sizeof(full), "%s/full", dir);
	assert_int_equal(mkdir(full, 0700), 0);
	if (mount("tmpfs", full, "tmpfs", 0, "size=4k")) {
		print_message("skipped: mounting a file system: %s\n", strerror(errno));
		assert_int_equal(rmdir(full), 0);
		skip();
	}
	setenv("TESSERA_TELEMETRY_DIR", full, 1);
	code = hal_page_open(&page, &fd, path, &err);
	setenv("TESSERA_TELEMETRY_DIR", dir, 1);

	assert_int_not_equal(code, 0);
	assert_non_null(strstr(err.msg, strerror(ENOSPC)));
	assert_int_equal(umount(full), 0);	/* nothing of it is open, nor mapped */
	assert_int_equal(rmdir(full), 0);
}

static void a_folder_with_too_long_a_name_is_refused(void **state)
{
	char deep[160], path[128];
	struct hal_page *page;
	struct err err;
	int fd;

	(void)state;
	snprintf(deep, sizeof(deep), "%s/%0110d", dir, 0);
	assert_int_equal(mkdir(deep, 0700), 0);
	setenv("TESSERA_TELEMETRY_DIR", deep, 1);
	assert_int_equal(hal_page_open(&page, &fd, path, &err), ERR_INVALID_ARGUMENT);
	assert_non_null(strstr(err.msg, "TESSERA_TELEMETRY_DIR"));
	setenv("TESSERA_TELEMETRY_DIR", dir, 1);
	/* Nothing was left in it. */
	assert_int_equal(rmdir(deep), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_page_that_is_made_under_readers_is_seen),
		cmocka_unit_test(the_page_of_a_dead_process_is_removed),
		cmocka_unit_test(processes_of_two_pid_namespaces_share_no_page),
		cmocka_unit_test(pages_of_dead_processes_are_removed_by_the_next),
		cmocka_unit_test(a_page_whose_maker_died_over_it_is_removed),
		cmocka_unit_test(files_that_are_no_pages_are_left_alone),
		cmocka_unit_test(a_page_of_another_version_is_refused_until_its_process_is_gone),
		cmocka_unit_test(a_page_that_shrinks_is_no_page),
		cmocka_unit_test(texts_of_strangers_are_printable),
		cmocka_unit_test(a_forked_child_leaves_its_parents_page),
		cmocka_unit_test(a_full_file_system_is_an_error),
		cmocka_unit_test(a_folder_with_too_long_a_name_is_refused),
	};
	int failed;

	if (!mkdtemp(dir) || setenv("TESSERA_TELEMETRY_DIR", dir, 1))
		return 1;
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	rmdir(dir);
	return failed;
}
