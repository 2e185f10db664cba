/* SPDX-License-Identifier: Apache-2.0 */
/* Identity, limits, opening and closing, what the device tells of itself. */
#include <dirent.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hal/hw/regs.h"
#include "tests/conformance/conf.h"

#ifdef __SANITIZE_ADDRESS__
#define IS_KEEPING_FREED true
#else
#define IS_KEEPING_FREED false
#endif

void check_devices_are_listed_and_can_be_opened(struct conf *c)
{
	EXPECT(c, hal_device_count(c->hal) >= 1);
	for (unsigned i = 0; i < hal_device_count(c->hal); i++) {
		struct hal_device_info info;

		OK(c, hal_device_info(c->hal, i, &info, &c->err));
		EXPECT(c, info.can_open);
		EXPECT(c, !strcmp(info.state, "ready"));
		EXPECT(c, !strcmp(info.name, "Tessera T1"));
		EXPECT(c, *info.bus_id && *info.driver);
	}
	EXPECT(c, hal_device_index(c->dev) == 0);
}

void check_identity_is_known_once_open(struct conf *c)
{
	EXPECT(c, *c->info.serial && *c->info.firmware);
	EXPECT(c, c->info.cores >= 1);
	EXPECT(c, c->info.hbm_bytes >= (2 << 20));
	/* The kernel driver gives a process a part of the card. */
	if (c->info.kind == HAL_KIND_ACCEL)
		EXPECT(c, !(c->info.hbm_bytes % HW_PAGE));
	else
		EXPECT(c, !(c->info.hbm_bytes & (c->info.hbm_bytes - 1)));
}

void check_limits_are_what_identity_says(struct conf *c)
{
	struct hal_mem_stats hbm, host;

	hal_mem_stats(c->dev, HAL_MEM_HBM, &hbm);
	hal_mem_stats(c->dev, HAL_MEM_HOST, &host);
	EXPECT(c, hbm.limit_bytes == c->info.hbm_bytes);
	EXPECT(c, hbm.largest_free_bytes <= hbm.limit_bytes - hbm.bytes_in_use);
	EXPECT(c, hbm.peak_bytes >= hbm.bytes_in_use);
	EXPECT(c, host.bytes_in_use > 0);
}

void check_index_past_the_end_is_refused(struct conf *c)
{
	unsigned n = hal_device_count(c->hal);
	struct hal_device_info info;
	struct hal_device *d;

	REFUSED(c, ERR_OUT_OF_RANGE, "device", hal_device_info(c->hal, n, &info, &c->err));
	REFUSED(c, ERR_OUT_OF_RANGE, "device", hal_device_open(c->hal, n, &d, &c->err));
	REFUSED(c, ERR_OUT_OF_RANGE, "device",
		hal_device_open(c->hal, 0xffffffffu, &d, &c->err));
}

void check_wrong_selections_say_what_to_do(struct conf *c)
{
	static const char *const wrong[] = { "gpu", "sim:hbm=1", "sim:colour=red",
					     "vfio-user:", "sim:devices=0x", "," };

	for (size_t i = 0; i < COUNT(wrong); i++) {
		struct hal *h;

		REFUSED(c, ERR_INVALID_ARGUMENT, "", hal_create(
			&(struct hal_options){ .devices = wrong[i] }, &h, &c->err));
		EXPECT(c, strlen(c->err.msg) > 20);
	}
}

void check_open_is_exclusive_in_a_process(struct conf *c)
{
	struct hal_device *d;

	REFUSED(c, ERR_FAILED_PRECONDITION, c->info.bus_id,
		hal_device_open(c->hal, 0, &d, &c->err));
}

/* In a child: what opening gives, as its exit status. */
static int open_in_child(const char *devices)
{
	struct hal_device *d;
	struct hal *h;
	struct err err;
	pid_t pid = fork();
	int status = -1;

	if (!pid) {
		int code = hal_create(&(struct hal_options){ .devices = devices }, &h, &err);

		_exit(code ? 100 : hal_device_open(h, 0, &d, &err));
	}
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

void check_open_is_exclusive_between_processes(struct conf *c)
{
	if (c->info.kind == HAL_KIND_SIM)
		not_applicable(c, "each process has a model of its own");
	if (c->info.kind == HAL_KIND_ACCEL)
		not_applicable(c, "the kernel shares the device");
	EXPECT(c, open_in_child(c->devices) == ERR_FAILED_PRECONDITION);
	OK(c, hal_device_error(c->dev, &c->err));
}

void check_child_of_fork_is_refused(struct conf *c)
{
	struct hal_mem *m = conf_get(c, 64);
	int status = -1;
	pid_t pid = fork();

	if (!pid) {
		struct hal_mem *other;
		uint64_t value;
		char bytes[64];
		int ok = hal_device_error(c->dev, NULL) == ERR_FAILED_PRECONDITION &&
			hal_mem_alloc(c->dev, HAL_MEM_HBM, 64, "child", &other, NULL) ==
				ERR_FAILED_PRECONDITION &&
			hal_copy_out(bytes, m, 0, 64, SOON, NULL) ==
				ERR_FAILED_PRECONDITION &&
			hal_queue_fill(c->dma, m, 0, 64, 1, &value, NULL) ==
				ERR_FAILED_PRECONDITION;

		hal_device_close(c->dev);
		_exit(ok ? 0 : 1);
	}
	waitpid(pid, &status, 0);
	EXPECT(c, WIFEXITED(status) && !WEXITSTATUS(status));
	OK(c, hal_device_error(c->dev, &c->err));
	hal_mem_free(m);
}

static unsigned count_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned n = 0;

	while (dir && readdir(dir))
		n++;
	if (dir)
		closedir(dir);
	return n;
}

static unsigned count_lines(const char *path)
{
	FILE *f = fopen(path, "r");
	unsigned n = 0;
	int ch;

	while (f && (ch = getc(f)) != EOF)
		n += ch == '\n';
	if (f)
		fclose(f);
	return n;
}

static uint64_t resident_bytes(void)
{
	unsigned long long pages = 0;
	FILE *f = fopen("/proc/self/statm", "r");

	if (f && fscanf(f, "%*u %llu", &pages) != 1)
		pages = 0;
	if (f)
		fclose(f);
	return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void use_once(struct conf *c)
{
	struct hal_mem *m = conf_get(c, 100000), *h;
	struct hal_exe *exe = conf_load_count(c);
	uint64_t value;

	h = conf_get_of(c, c->dev, HAL_MEM_HOST, 100000);
	OK(c, hal_queue_fill(c->dma, m, 0, 100000, 7, &value, &c->err));
	OK(c, hal_queue_copy(c->compute, h, 0, m, 0, 100000,
			     &(struct hal_after){ c->dma, value }, 1, &value, &c->err));
	value = conf_run(c, exe, m, 0);
	OK(c, hal_queue_wait(c->compute, value, SOON, &c->err));
	EXPECT(c, *(uint64_t *)hal_mem_host(h) == 7);
}

void check_hundred_opens_leak_nothing(struct conf *c)
{
	unsigned fds = 0, maps = 0;
	uint64_t resident = 0;

	for (int i = 0; i < 100; i++) {
		conf_close(c);
		if (i == 10) {
			fds = count_fds();
			maps = count_lines("/proc/self/maps");
			resident = resident_bytes();
		}
		if (conf_open(c))
			conf_fail(c, "round %d: %s", i, c->err.msg);
		use_once(c);
	}
	conf_close(c);
	EXPECT(c, count_fds() == fds);
	/* AddressSanitizer keeps what was freed, and looks for leaks itself. */
	if (!IS_KEEPING_FREED) {
		EXPECT(c, count_lines("/proc/self/maps") <= maps + 2);
		EXPECT(c, resident_bytes() < resident + (8 << 20));
	}
	OK(c, conf_open(c));
}

static void note(void *arg, const struct err *err)
{
	__atomic_store_n((int *)arg, err ? err->code : -1, __ATOMIC_RELEASE);
}

void check_closing_stops_what_runs_for_ever(struct conf *c)
{
	struct hal_exe *exe = conf_load_spin(c);
	struct hal_mem *out = conf_get(c, 8);
	uint64_t value = conf_run(c, exe, out, 0);
	int64_t began = clock_ns();
	int *got = conf_room(c, sizeof(*got));

	OK(c, hal_queue_notify(c->compute, value, note, got, &c->err));
	conf_close(c);
	EXPECT(c, clock_ns() - began < 15 * SECOND);
	EXPECT(c, __atomic_load_n(got, __ATOMIC_ACQUIRE) == ERR_ABORTED);
	free(got);
	OK(c, conf_open(c));
}

/* Every notice comes, also when nobody waits before the device is closed. */
void check_closing_delivers_every_notice(struct conf *c)
{
	for (int i = 0; i < 30; i++) {
		struct hal_exe *exe = conf_load_count(c);
		struct hal_mem *out = conf_get(c, 8);
		int *got = conf_room(c, 20 * sizeof(*got));

		for (size_t k = 0; k < 20; k++) {
			uint64_t value = conf_run(c, exe, out, 0);

			OK(c, hal_queue_notify(c->compute, value, note, &got[k], &c->err));
		}
		conf_close(c);
		for (size_t k = 0; k < 20; k++)
			EXPECT(c, __atomic_load_n(&got[k], __ATOMIC_ACQUIRE) == -1);
		free(got);
		OK(c, conf_open(c));
	}
}

void check_closing_frees_what_was_left(struct conf *c)
{
	struct hal_mem_stats before, after;

	hal_mem_stats(c->dev, HAL_MEM_HBM, &before);
	for (int i = 0; i < 50; i++)
		conf_get(c, 10000);
	conf_load_store(c);
	conf_close(c);
	OK(c, conf_open(c));
	hal_mem_stats(c->dev, HAL_MEM_HBM, &after);
	EXPECT(c, before.bytes_in_use == after.bytes_in_use);
	EXPECT(c, before.limit_bytes == after.limit_bytes);
}

/* ---- telemetry ---- */

/* Counters that were read after this began: the kernel driver keeps them for a moment. */
void conf_telemetry(struct conf *c, struct hw_telemetry *t)
{
	struct hw_telemetry old;
	int64_t until = SOON;

	OK(c, hal_device_telemetry(c->dev, &old, &c->err));
	do {
		sched_yield();
		OK(c, hal_device_telemetry(c->dev, t, &c->err));
	} while (t->time_ns == old.time_ns && clock_ns() < until);
	EXPECT(c, t->time_ns != old.time_ns);
}

void check_counters_count_the_work(struct conf *c)
{
	struct hal_exe *exe = conf_load_count(c);
	struct hal_mem *a = conf_get(c, 1 << 20), *b = conf_get(c, 1 << 20);
	struct hal_mem *h = conf_get_of(c, c->dev, HAL_MEM_HOST, 1 << 20);
	struct hw_telemetry before, after;
	uint64_t value, last = 0;

	conf_telemetry(c, &before);
	for (int i = 0; i < 10; i++)
		last = conf_run(c, exe, a, 0);
	OK(c, hal_queue_wait(c->compute, last, SOON, &c->err));
	OK(c, hal_queue_copy(c->dma, b, 0, a, 0, 1 << 20, NULL, 0, &value, &c->err));
	OK(c, hal_queue_copy(c->dma, h, 0, a, 0, 1 << 20, NULL, 0, &value, &c->err));
	OK(c, hal_queue_copy(c->dma, a, 0, h, 0, 1 << 19, NULL, 0, &value, &c->err));
	OK(c, hal_queue_wait(c->dma, value, SOON, &c->err));
	conf_telemetry(c, &after);
	EXPECT(c, after.n_execute - before.n_execute == 10);
	EXPECT(c, after.n_copy - before.n_copy == 3);
	EXPECT(c, after.n_insn - before.n_insn == 30);
	EXPECT(c, after.dma_out_bytes - before.dma_out_bytes == 1 << 20);
	EXPECT(c, after.dma_in_bytes - before.dma_in_bytes == 1 << 19);
	EXPECT(c, after.hbm_read_bytes - before.hbm_read_bytes == 2 << 20);
	EXPECT(c, after.hbm_write_bytes - before.hbm_write_bytes == 3 << 19);
	EXPECT(c, after.n_fault == before.n_fault);
	hal_exe_unload(exe);
	hal_mem_free(a);
	hal_mem_free(b);
	hal_mem_free(h);
}

void check_counters_never_go_back(struct conf *c)
{
	struct hal_exe *exe = conf_load_count(c);
	struct hal_mem *out = conf_get(c, 8);
	struct hw_telemetry last, now;

	conf_telemetry(c, &last);
	for (int i = 0; i < 50; i++) {
		uint64_t value = conf_run(c, exe, out, 0);

		OK(c, hal_queue_wait(c->compute, value, SOON, &c->err));
		conf_telemetry(c, &now);
		EXPECT(c, now.time_ns > last.time_ns);
		EXPECT(c, now.busy_compute_ns >= last.busy_compute_ns);
		EXPECT(c, now.busy_dma_ns >= last.busy_dma_ns);
		EXPECT(c, now.n_execute == last.n_execute + 1);
		EXPECT(c, now.n_insn == last.n_insn + 3);
		EXPECT(c, now.hbm_read_bytes >= last.hbm_read_bytes);
		EXPECT(c, now.busy_compute_ns - last.busy_compute_ns <=
			  now.time_ns - last.time_ns);
		last = now;
	}
	hal_exe_unload(exe);
	hal_mem_free(out);
}

void check_busy_time_is_the_time_it_ran(struct conf *c)
{
	struct hal_exe *exe = conf_load_spin(c);
	struct hal_mem *out = conf_get(c, 8);
	struct hw_telemetry before, after;
	uint64_t value, busy;

	conf_telemetry(c, &before);
	value = conf_run(c, exe, out, 30 * MS);
	EXPECT(c, hal_queue_wait(c->compute, value, SOON, NULL) == ERR_DEADLINE_EXCEEDED);
	conf_telemetry(c, &after);
	busy = after.busy_compute_ns - before.busy_compute_ns;
	EXPECT(c, busy >= 29 * MS && busy <= after.time_ns - before.time_ns);
	EXPECT(c, after.n_fault == before.n_fault + 1);
	hal_exe_unload(exe);
	hal_mem_free(out);
}

void check_sensors_read_within_their_limits(struct conf *c)
{
	struct hw_telemetry t;

	conf_telemetry(c, &t);
	EXPECT(c, t.temperature_mc >= 35000 && t.temperature_mc <= 80000);
	EXPECT(c, t.power_mw >= 60000 && t.power_mw <= 330000);
	EXPECT(c, t.clock_khz == 1000000);
	EXPECT(c, !t.throttle);
}

/* The page of this process whose first device runs `what`. */
static void find_page(struct conf *c, const char *what, struct hal_page *page)
{
	DIR *dir = opendir(hal_page_dir());
	char name[64], path[600];
	bool found = false;
	struct dirent *d;

	snprintf(name, sizeof(name), "tessera-%u-%d-", (unsigned)getuid(), (int)getpid());
	while (dir && !found && (d = readdir(dir))) {
		if (strncmp(d->d_name, name, strlen(name)))
			continue;
		snprintf(path, sizeof(path), "%s/%s", hal_page_dir(), d->d_name);
		OK(c, hal_page_read(path, page, &c->err));
		found = !strcmp(page->devices[0].running, what);
	}
	if (dir)
		closedir(dir);
	EXPECT(c, found);
}

void check_the_process_can_be_watched(struct conf *c)
{
	struct hal_mem *m = conf_get(c, 1 << 20);
	struct hal_page *page = conf_room(c, sizeof(*page));

	hal_note_executable(c->dev, "a thing to see");
	find_page(c, "a thing to see", page);
	EXPECT(c, page->pid == (uint32_t)getpid());
	EXPECT(c, page->n_devices >= 1);
	EXPECT(c, !strcmp(page->devices[0].bus_id, c->info.bus_id));
	EXPECT(c, !strcmp(page->devices[0].serial, c->info.serial));
	EXPECT(c, page->devices[0].used_bytes >= 1 << 20);
	EXPECT(c, page->devices[0].hbm_bytes == c->info.hbm_bytes);
	free(page);
	hal_mem_free(m);
}

/* Busy time restarts with the function; what is told of it does not run over. */
void check_a_reset_is_no_busy_time(struct conf *c)
{
	struct hal_exe *spin = conf_load_spin(c), *count = conf_load_count(c);
	struct hal_mem *out = conf_get(c, 8);
	struct hal_page *page = conf_room(c, sizeof(*page));
	int64_t reset_at, until = clock_after(5 * SECOND);

	hal_note_executable(c->dev, "a reset to see");
	for (int i = 0; i < 12; i++) {
		uint64_t value = conf_run(c, spin, out, 20 * MS);

		EXPECT(c, hal_queue_wait(c->compute, value, SOON, NULL));
	}
	OK(c, hal_device_reset(c->dev, &c->err));
	reset_at = clock_ns();
	do {
		uint64_t value = conf_run(c, count, out, 0);

		OK(c, hal_queue_wait(c->compute, value, SOON, &c->err));
		find_page(c, "a reset to see", page);
	} while (page->devices[0].read_at_ns <= (uint64_t)reset_at && clock_ns() < until);
	EXPECT(c, page->devices[0].read_at_ns > (uint64_t)reset_at);
	EXPECT(c, page->devices[0].busy_ns <= page->devices[0].window_ns);
	free(page);
	hal_exe_unload(spin);
	hal_exe_unload(count);
	hal_mem_free(out);
}
