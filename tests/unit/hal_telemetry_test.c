/* SPDX-License-Identifier: Apache-2.0 */
/* Telemetry pages under readers, who remove what nobody holds. */
#include <dirent.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_page_that_is_made_under_readers_is_seen),
		cmocka_unit_test(the_page_of_a_dead_process_is_removed),
	};
	int failed;

	if (!mkdtemp(dir) || setenv("TESSERA_TELEMETRY_DIR", dir, 1))
		return 1;
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	rmdir(dir);
	return failed;
}
