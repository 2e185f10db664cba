/* SPDX-License-Identifier: Apache-2.0 */
/* The cache of compiled programs: hits, damage, several processes, folders that can't be
 * used, trimming. Programs compile without a device here. */
#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "runtime/rt.h"

static char dir[256];
static char *code[2];	/* two programs */
static size_t code_bytes[2];

static int read_programs(void **state)
{
	static const char *const names[] = { "scale_add", "two_results" };

	(void)state;
	for (int i = 0; i < 2; i++) {
		char path[128];
		FILE *f;

		snprintf(path, sizeof(path), "tests/data/programs/%s.mlirbc", names[i]);
		f = fopen(path, "rb");
		code[i] = malloc(1 << 16);
		if (!f || !code[i])
			return -1;
		code_bytes[i] = fread(code[i], 1, 1 << 16, f);
		fclose(f);
	}
	unsetenv("TESSERA_CACHE");
	setenv("TESSERA_LOG", "warn", 1);
	return 0;
}

static int free_programs(void **state)
{
	(void)state;
	free(code[0]);
	free(code[1]);
	return 0;
}

static int make_folder(void **state)
{
	(void)state;
	strcpy(dir, "/tmp/tessera-cache-XXXXXX");
	if (!mkdtemp(dir))
		return -1;
	return setenv("TESSERA_CACHE_DIR", dir, 1);
}

static void each_file(void (*fn)(const char *path, const char *name, void *arg), void *arg)
{
	DIR *d = opendir(dir);
	struct dirent *e;
	char path[1024];

	while (d && (e = readdir(d)))
		if (strcmp(e->d_name, ".") && strcmp(e->d_name, "..")) {
			snprintf(path, sizeof(path), "%s/%s", dir, e->d_name);
			fn(path, e->d_name, arg);
		}
	if (d)
		closedir(d);
}

static void remove_one(const char *path, const char *name, void *arg)
{
	(void)name;
	(void)arg;
	remove(path);
}

static int drop_folder(void **state)
{
	(void)state;
	each_file(remove_one, NULL);
	return rmdir(dir);
}

static int compile(int which, char fingerprint[65])
{
	struct rt_target target = { .cores = 2, .memory_bytes = 1 << 30, .has_all = true };
	struct rt_program *p;
	struct err err;
	int status = rt_program_compile(&target, code[which], code_bytes[which], "mlir", NULL, 0,
					&p, &err);

	if (status)
		return status;
	strcpy(fingerprint, rt_program_fingerprint(p));
	rt_program_unref(p);
	return 0;
}

struct found { unsigned entries, others; char name[2][256]; };

static void note(const char *path, const char *name, void *arg)
{
	struct found *f = arg;

	if (strlen(name) == 64 && f->entries < 2)
		strcpy(f->name[f->entries++], path);
	else if (strcmp(name, ".used"))
		f->others++;
}

static struct found look(void)
{
	struct found f = { 0 };

	each_file(note, &f);
	return f;
}

static char *slurp(const char *path, size_t *n)
{
	FILE *f = fopen(path, "rb");
	char *p = malloc(1 << 20);

	assert_non_null(f);
	assert_non_null(p);
	*n = fread(p, 1, 1 << 20, f);
	fclose(f);
	return p;
}

static void spill(const char *path, const void *p, size_t n)
{
	FILE *f = fopen(path, "wb");

	assert_non_null(f);
	assert_int_equal(fwrite(p, 1, n, f), n);
	fclose(f);
}

/* A file ends with a magic of 16 bytes, its own name, and the hash of what is before. */
enum { TAIL = 16 + 64 + 64 };

static bool is_whole(const char *path)
{
	size_t n;
	char *p = slurp(path, &n), hex[65] = "";
	bool is;

	if (n > TAIL)
		rt_hash(p, n - TAIL, hex);
	is = n > TAIL && !memcmp(hex, p + n - 64, 64) &&
	     !memcmp(strrchr(path, '/') + 1, p + n - 128, 64);
	free(p);
	return is;
}

/* Makes what lies there whole again after a change: its own name and the right hash. */
static void seal(const char *path, char *p, size_t n)
{
	char hex[65];

	rt_hash(p, n - TAIL, hex);
	memcpy(p + n - 128, strrchr(path, '/') + 1, 64);
	memcpy(p + n - 64, hex, 64);
}

static void a_program_is_kept_and_found(void **state)
{
	char first[65], again[65], other[65], swapped[65];
	struct found f;
	size_t n;
	char *p;

	(void)state;
	assert_int_equal(compile(0, first), 0);
	f = look();
	assert_int_equal(f.entries, 1);
	assert_int_equal(f.others, 0);
	assert_true(is_whole(f.name[0]));
	assert_int_equal(compile(0, again), 0);
	assert_string_equal(first, again);
	p = slurp(f.name[0], &n);
	unlink(f.name[0]);
	assert_int_equal(compile(1, other), 0);
	assert_string_not_equal(first, other);
	/* What an entry of this name says is what comes: nothing was compiled. */
	f = look();
	assert_int_equal(f.entries, 1);
	seal(f.name[0], p, n);
	spill(f.name[0], p, n);
	assert_int_equal(compile(1, swapped), 0);
	assert_string_equal(swapped, first);
	free(p);
}

static void an_entry_under_another_name_is_not_taken(void **state)
{
	char first[65], other[65], again[65], aside[300];
	struct found f;

	(void)state;
	assert_int_equal(compile(0, first), 0);
	assert_int_equal(compile(1, other), 0);
	f = look();
	assert_int_equal(f.entries, 2);
	/* Whole files, exchanged. */
	snprintf(aside, sizeof(aside), "%s/aside", dir);
	assert_int_equal(rename(f.name[0], aside), 0);
	assert_int_equal(rename(f.name[1], f.name[0]), 0);
	assert_int_equal(rename(aside, f.name[1]), 0);
	assert_int_equal(compile(0, again), 0);
	assert_string_equal(again, first);
	assert_int_equal(compile(1, again), 0);
	assert_string_equal(again, other);
	assert_true(is_whole(f.name[0]));
	assert_true(is_whole(f.name[1]));
}

static void what_decides_the_code_decides_the_key(void **state)
{
	static const uint8_t two[] = { 0x1a, 2, 0x28, 2 };	/* partitions */
	struct rt_target target = { .cores = 2, .memory_bytes = 1 << 30, .has_all = true };
	struct rt_program *p;
	char name[65];

	(void)state;
	assert_int_equal(compile(0, name), 0);
	target.memory_bytes = 1 << 29;
	assert_int_equal(rt_program_compile(&target, code[0], code_bytes[0], "mlir", NULL, 0, &p,
					    NULL), 0);
	rt_program_unref(p);
	assert_int_equal(look().entries, 2);
	for (unsigned i = 0; i < 2; i++) {
		target.has_all = i;
		assert_int_equal(rt_program_compile(&target, code[0], code_bytes[0], "mlir", two,
						    sizeof(two), &p, NULL), 0);
		rt_program_unref(p);
		assert_int_equal(look().others, 1 + i);	/* more than it names */
	}
}

static void damage_is_compiled_again(void **state)
{
	char first[65], again[65];
	struct found f;
	size_t n;
	char *p;

	(void)state;
	assert_int_equal(compile(0, first), 0);
	f = look();
	p = slurp(f.name[0], &n);
	/* Of the image, some bits break what is read first, and some break only results. */
	for (size_t at = 0; at < n; at += n / 61) {
		p[at] ^= 1;
		spill(f.name[0], p, n);
		p[at] ^= 1;
		assert_int_equal(compile(0, again), 0);
		assert_string_equal(first, again);
		assert_true(is_whole(f.name[0]));
	}
	for (int how = 0; how < 8; how++) {
		char *bad = malloc(n);

		assert_non_null(bad);
		memcpy(bad, p, n);
		bad[n / 2] ^= 1;
		if (how == 0)
			spill(f.name[0], bad, n);		/* a bit */
		else if (how == 1)
			spill(f.name[0], p, n / 2);		/* cut */
		else if (how == 2)
			spill(f.name[0], p, 0);			/* empty */
		else if (how == 3)
			spill(f.name[0], p, 64);		/* a hash of nothing */
		else if (how == 4)
			truncate(f.name[0], 32 << 20);		/* large and hollow */
		else if (how == 6)
			spill(f.name[0], p + n - TAIL, TAIL);	/* an end of nothing */
		else if (how == 7) {
			bad[n / 2] ^= 1;
			bad[n - TAIL] ^= 1;			/* another format */
			spill(f.name[0], bad, n);
		}
		if (how == 5) {
			/* Whole, but no image: another build's, or a liar's. */
			memset(bad, 'x', n - TAIL);
			seal(f.name[0], bad, n);
			spill(f.name[0], bad, n);
		}
		assert_int_equal(compile(0, again), 0);
		assert_string_equal(first, again);
		assert_true(is_whole(f.name[0]));
		free(bad);
	}
	free(p);
}

/* Runs fn in another process with stderr in a file; its text is malloc'd. */
static char *in_child(int (*fn)(void), int *status)
{
	char path[] = "/tmp/tessera-stderr-XXXXXX";
	int fd = mkstemp(path);
	pid_t pid;
	size_t n;
	char *text;

	assert_true(fd >= 0);
	fflush(stdout);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		dup2(fd, 2);
		_exit(fn());
	}
	close(fd);
	assert_int_equal(waitpid(pid, status, 0), pid);
	text = slurp(path, &n);
	text[n] = 0;
	unlink(path);
	return text;
}

static int compile_in_child(void)
{
	char name[65];

	return compile(0, name) ? 1 : 0;
}

static void a_folder_in_an_entrys_place_is_left_alone(void **state)
{
	char first[65], *text;
	struct found f;
	int status;

	(void)state;
	assert_int_equal(compile(0, first), 0);
	f = look();
	unlink(f.name[0]);
	assert_int_equal(mkdir(f.name[0], 0700), 0);
	/* Complaints come once a process: they are to be had later too. */
	text = in_child(compile_in_child, &status);
	assert_int_equal(status, 0);
	assert_non_null(strstr(text, "Is a directory"));
	assert_int_equal(look().others, 0);
	free(text);
}

/* Plain files of this user, which nobody else may write, are entries: all else is passed
 * over and replaced. Nothing is followed or waited for. */
static void only_plain_files_of_ours_are_entries(void **state)
{
	char first[65], second[65], again[65], elsewhere[300];
	struct found f;
	struct stat st;
	size_t n;
	char *p;

	(void)state;
	assert_int_equal(compile(0, first), 0);
	f = look();
	assert_int_equal(stat(f.name[0], &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	/* An image that loads but is another's, so that taking it would show. */
	assert_int_equal(compile(1, second), 0);
	f = look();
	p = slurp(f.name[1], &n);
	seal(f.name[0], p, n);
	snprintf(elsewhere, sizeof(elsewhere), "%s/elsewhere", dir);
	for (int how = 0; how < 5; how++) {
		unlink(f.name[0]);
		unlink(elsewhere);
		spill(how == 1 ? elsewhere : f.name[0], p, n);
		if (how == 0)
			assert_int_equal(chmod(f.name[0], 0620), 0);
		else if (how == 1)
			assert_int_equal(symlink(elsewhere, f.name[0]), 0);
		else if (how == 2)
			assert_int_equal(chmod(f.name[0], 0602), 0);
		else if (how == 3 && geteuid() == 0)
			assert_int_equal(chown(f.name[0], 65534, (gid_t)-1), 0);
		else if (unlink(f.name[0]) || mkfifo(f.name[0], 0600))
			fail();
		alarm(20);	/* a FIFO without a writer must not be waited for */
		for (int which = 0; which < 2; which++) {
			assert_int_equal(compile(which, again), 0);
			assert_string_equal(again, which ? second : first);
		}
		alarm(0);
		assert_int_equal(lstat(f.name[0], &st), 0);
		assert_true(S_ISREG(st.st_mode));
		assert_int_equal(st.st_uid, geteuid());
		assert_int_equal(st.st_mode & 07777, 0600);
		assert_true(is_whole(f.name[0]));
	}
	free(p);
}

static int compile_in_a_folder_for_all(void)
{
	return chmod(dir, 0777) || compile_in_child();
}

static int compile_in_anothers_folder(void)
{
	return chmod(dir, 0700) || chown(dir, 65534, (gid_t)-1) || compile_in_child();
}

static void a_folder_that_others_may_write_is_not_used(void **state)
{
	int status;
	char *text = in_child(compile_in_a_folder_for_all, &status);

	(void)state;
	assert_int_equal(status, 0);
	assert_non_null(strstr(text, "has mode 0777"));
	assert_int_equal(look().entries, 0);
	free(text);
	if (geteuid())
		return;
	text = in_child(compile_in_anothers_folder, &status);
	assert_int_equal(status, 0);
	assert_non_null(strstr(text, "belongs to user 65534"));
	assert_int_equal(look().entries, 0);
	free(text);
}

static void several_processes_write_one_key(void **state)
{
	enum { N = 6 };
	pid_t pids[N];
	int go[2], status;
	char c;

	(void)state;
	for (int round = 0; round < 5; round++) {
		struct found f;

		each_file(remove_one, NULL);
		assert_int_equal(pipe(go), 0);
		for (int i = 0; i < N; i++) {
			pids[i] = fork();
			assert_true(pids[i] >= 0);
			if (pids[i])
				continue;
			/* All start when the pipe closes. */
			close(go[1]);
			_exit(read(go[0], &c, 1) == 0 ? compile_in_child() : 1);
		}
		close(go[0]);
		close(go[1]);
		for (int i = 0; i < N; i++) {
			assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
			assert_int_equal(status, 0);
		}
		f = look();
		assert_int_equal(f.entries, 1);
		assert_int_equal(f.others, 0);
		assert_true(is_whole(f.name[0]));
	}
}

static int compile_under_a_file(void)
{
	setenv("TESSERA_CACHE_DIR", "/dev/null/cache", 1);
	return compile_in_child() || compile_in_child();
}

static int compile_in_a_long_folder(void)
{
	char *name = malloc(2000);

	if (!name)
		return 1;
	memset(name, 'a', 1999);
	name[1999] = 0;
	setenv("TESSERA_CACHE_DIR", name, 1);
	free(name);
	return compile_in_child();
}

static size_t room;	/* for a file */

static int compile_on_a_full_disk(void)
{
	struct rlimit most = { room, room };

	signal(SIGXFSZ, SIG_IGN);
	return setrlimit(RLIMIT_FSIZE, &most) ? 1 : compile_in_child();
}

static void a_folder_that_cant_be_used_is_a_warning(void **state)
{
	int status;
	char *text = in_child(compile_under_a_file, &status), *again;

	(void)state;
	assert_int_equal(status, 0);
	again = strstr(text, "/dev/null/cache: Not a directory");
	assert_non_null(again);
	assert_non_null(strstr(text, "TESSERA_CACHE_DIR"));
	/* Once, not for each program. */
	assert_null(strstr(again + 1, "/dev/null/cache: Not a directory"));
	free(text);
	text = in_child(compile_in_a_long_folder, &status);
	assert_int_equal(status, 0);
	assert_non_null(strstr(text, "too long"));
	free(text);
	/* Room for the image, which the compiler writes, but not for all of the entry. */
	free(in_child(compile_in_child, &status));
	free(slurp(look().name[0], &room));
	room -= 10;
	each_file(remove_one, NULL);
	text = in_child(compile_on_a_full_disk, &status);
	assert_int_equal(status, 0);
	assert_non_null(strstr(text, "File too large"));
	assert_int_equal(look().entries, 0);
	assert_int_equal(look().others, 0);
	free(text);
}

static int compile_with_the_cache_off(void)
{
	setenv("TESSERA_CACHE", "off", 1);
	return compile_in_child();
}

static void the_cache_can_be_off(void **state)
{
	int status;
	char *text = in_child(compile_with_the_cache_off, &status);

	(void)state;
	assert_int_equal(status, 0);
	assert_string_equal(text, "");
	assert_int_equal(look().entries, 0);
	free(text);
}

static void put_file(const char *name, off_t bytes, time_t age)
{
	struct timespec when[2] = { { time(NULL) - age, 0 }, { time(NULL) - age, 0 } };
	char path[512];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	spill(path, "x", 1);
	assert_int_equal(truncate(path, bytes), 0);
	assert_int_equal(utimensat(AT_FDCWD, path, when, 0), 0);
}

static bool has(const char *name)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return !access(path, F_OK);
}

static void only_old_files_of_ours_go(void **state)
{
	static const char old[] =
		"00000000000000000000000000000000000000000000000000000000000000aa";
	static const char young[] =
		"00000000000000000000000000000000000000000000000000000000000000bb";
	char name[65];

	(void)state;
	/* Hollow files: together more than the limit of 1 GiB. */
	put_file(old, 600 << 20, 9000);
	put_file(young, 600 << 20, 100);
	put_file("holiday-pictures.tar", 600 << 20, 99999);
	put_file(".profile", 10, 99999);
	put_file(".0123456789abcdef.Xy12zQ", 10, 9000);
	put_file(".0123456789abcdef.Yy12zQ", 10, 100);
	assert_int_equal(compile(0, name), 0);
	assert_false(has(old));
	assert_true(has(young));
	assert_true(has("holiday-pictures.tar"));
	assert_true(has(".profile"));
	/* What a writer that died left; another may still be at it. */
	assert_false(has(".0123456789abcdef.Xy12zQ"));
	assert_true(has(".0123456789abcdef.Yy12zQ"));
}

static off_t counted(void)
{
	struct stat st;
	char path[512];

	snprintf(path, sizeof(path), "%s/.used", dir);
	return stat(path, &st) ? -1 : st.st_size;
}

/* A put costs the same however many entries there are: everything is looked at when the
 * count says so, not before. What is stale is removed then, and tells. */
static void entries_are_looked_at_only_when_the_count_says_so(void **state)
{
	static const char stale[] = ".0123456789abcdef.Xy12zQ";
	char path[512], name[65];
	off_t one, both;

	(void)state;
	assert_int_equal(compile(0, name), 0);
	one = counted();
	assert_true(one > 0);
	put_file(stale, 10, 9000);
	assert_int_equal(compile(1, name), 0);
	both = counted();
	assert_true(both > one);
	assert_true(has(stale));
	/* 1 GiB in blocks of 4 KiB are counted: too many, wrongly. */
	each_file(remove_one, NULL);
	assert_int_equal(compile(0, name), 0);
	put_file(stale, 10, 9000);
	snprintf(path, sizeof(path), "%s/.used", dir);
	assert_int_equal(truncate(path, 262144 - (both - one)), 0);
	assert_int_equal(compile(1, name), 0);
	assert_true(has(stale));
	assert_int_equal(counted(), 262144);
	unlink(look().name[0]);
	unlink(look().name[0]);
	assert_int_equal(compile(0, name), 0);
	assert_false(has(stale));
	assert_int_equal(counted(), one);
	/* Nor is it followed or waited for. */
	unlink(path);
	assert_int_equal(mkfifo(path, 0600), 0);
	unlink(look().name[0]);
	alarm(20);
	assert_int_equal(compile(0, name), 0);
	alarm(0);
	assert_int_equal(look().entries, 1);
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, make_folder, drop_folder)

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_FOLDER(a_program_is_kept_and_found),
		IN_FOLDER(what_decides_the_code_decides_the_key),
		IN_FOLDER(damage_is_compiled_again),
		IN_FOLDER(a_folder_in_an_entrys_place_is_left_alone),
		IN_FOLDER(several_processes_write_one_key),
		IN_FOLDER(a_folder_that_cant_be_used_is_a_warning),
		IN_FOLDER(the_cache_can_be_off),
		IN_FOLDER(an_entry_under_another_name_is_not_taken),
		IN_FOLDER(only_plain_files_of_ours_are_entries),
		IN_FOLDER(a_folder_that_others_may_write_is_not_used),
		IN_FOLDER(only_old_files_of_ours_go),
		IN_FOLDER(entries_are_looked_at_only_when_the_count_says_so),
	};

	return cmocka_run_group_tests(tests, read_programs, free_programs);
}
