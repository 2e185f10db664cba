/* SPDX-License-Identifier: Apache-2.0 */
/* The HAL through the kernel driver, which tests/fake plays: everything that it does in
 * process, what it tells people, resets that others ask for, and every call failing. */
#define DEVICE_TESTS_ONLY
#include "hal/hal.h"

static int inject_by_hal(struct hal_device *d, unsigned what, uint64_t value, struct err *err)
{
	return hal_device_inject(d, what, value, err);
}

/* Programs can't inject errors here; the card can. */
static int inject_on_card(struct hal_device *d, unsigned what, uint64_t value, struct err *err);
#define hal_device_inject inject_on_card
#include "tests/unit/hal/hal_device_test.c"
#undef hal_device_inject
#include "tests/unit/hal/hal_accel_cases.c"

#include <sys/resource.h>

#include "tests/fake/accel_fake.h"

#define SECOND 1000000000ll
#define NODE "accel:/dev/accel/accel0"

static int inject_on_card(struct hal_device *d, unsigned what, uint64_t value, struct err *err)
{
	int code = inject_by_hal(d, what, value, err);

	if (code != ERR_UNIMPLEMENTED)
		return code;
	pthread_mutex_lock(&fake.lock);
	fake_request((struct hw_sqe){ .op = HW_INJECT, .id = (uint16_t)what,
				      .u.admin.value = value }, NULL, 0, NULL);
	/* The driver looks at the device once a second. */
	if (what == HW_INJECT_FATAL)
		fake_function_reset();
	pthread_mutex_unlock(&fake.lock);
	return 0;
}

static int start_card(void **state)
{
	unsetenv("TESSERA_HBM_BYTES");
	if (fake_open_card(64 << 20))
		return -1;
	devices = NODE;
	return open_device(state);
}

static int stop_card(void **state)
{
	close_device(state);
	if (!fake_is_empty())
		return -1;
	fake_close_card();
	return 0;
}

static int start_silicon(void **state)
{
	fake.is_silicon = true;
	return start_card(state);
}

static int stop_silicon(void **state)
{
	fake.is_silicon = false;
	return stop_card(state);
}

#define SAYS(err, text) do { \
	if (!strstr((err)->msg, (text))) \
		fail_msg("\"%s\" is not in: %s", (text), (err)->msg); \
} while (0)

/* Opening fails with this code and with texts that say what to do. */
static void expect_refusal(int code, const char *one, const char *other)
{
	struct err err = { 0 };
	struct hal *h;

	if (open_at(NODE, 0, &h, &err)) {
		hal_destroy(h);
		fail_msg("it opened; \"%s\" was to be said", one);
	}
	SAYS(&err, one);
	SAYS(&err, other);
	SAYS(&err, "/dev/accel/accel0");
	assert_int_equal(err.code, code);
	assert_true(strlen(err.msg) < ERR_MSG_BYTES - 1);
}

static void identity_is_the_cards(void **state)
{
	struct hal_device_info info;
	struct err err;

	(void)state;
	assert_int_equal(hal_device_info(hal, 0, &info, &err), 0);
	assert_int_equal(info.kind, HAL_KIND_ACCEL);
	assert_true(info.is_model && info.can_open);
	assert_string_equal(info.bus_id, "accel:accel0");
	assert_string_equal(info.driver, "tessera");
	assert_string_equal(info.serial, "SIM00000");
	assert_string_equal(info.state, "ready");
	assert_int_equal(info.numa_node, 0);
	/* All that could be had; nothing of it is taken yet. */
	assert_int_equal(info.hbm_bytes, 64 << 20);
}

/* ---- memory ---- */

static void check_copies(struct hal_device *d, struct hal_mem *host, struct hal_mem *back,
			 unsigned seed)
{
	struct hal_queue *q = hal_device_queue(d, HAL_QUEUE_DMA);
	uint64_t value, bytes = hal_mem_bytes(host);
	struct hal_mem *m;
	struct err err;

	assert_int_equal(hal_mem_alloc(d, HAL_MEM_HBM, bytes, "m", &m, &err), 0);
	for (uint64_t i = 0; i < bytes; i++)
		((uint8_t *)hal_mem_host(host))[i] = (uint8_t)(i * 31 + i / 4096 + seed);
	assert_int_equal(hal_queue_copy(q, m, 0, host, 0, bytes, NULL, 0, &value, &err), 0);
	assert_int_equal(hal_queue_copy(q, back, 0, m, 0, bytes, NULL, 0, &value, &err), 0);
	assert_int_equal(hal_queue_wait(q, value, clock_after(5 * SECOND), &err), 0);
	assert_memory_equal(hal_mem_host(host), hal_mem_host(back), bytes);
	hal_mem_free(m);
}

static void pinned_memory_is_reached_by_dma(void **state)
{
	struct hal_mem *host, *back, *mine;
	uint64_t bytes = 5 << 20;
	struct err err;
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)state;
	assert_int_equal(hal_mem_alloc(dev, HAL_MEM_HOST, bytes, "in", &host, &err), 0);
	assert_int_equal(hal_mem_alloc(dev, HAL_MEM_HOST, bytes, "out", &back, &err), 0);
	check_copies(dev, host, back, 1);
	assert_int_equal(hal_mem_map(dev, p, bytes, &mine, &err), 0);
	check_copies(dev, mine, back, 2);
	hal_mem_free(mine);
	hal_mem_free(host);
	hal_mem_free(back);
	munmap(p, bytes);
}

static bool cpu_sees_hbm(void)
{
	for (const struct fake_view *v = fake.views; v; v = v->next)
		if (v->bo->kind == FAKE_HBM)
			return true;
	return false;
}

static uint64_t n_copies(void)
{
	struct hw_telemetry t = { 0 };
	struct err err;

	assert_int_equal(hal_device_telemetry(dev, &t, &err), 0);
	return t.n_copy;
}

/* 9 MiB and a bit, in and out, whole and strided: right, and moved by whom it should. */
static void check_who_copies(bool is_cpu)
{
	enum { ROWS = 300, COLUMNS = 70 };
	const struct hal_strided turned = { .elem_bytes = 4, .rank = 2,
					    .dim = (int64_t[]){ COLUMNS, ROWS },
					    .stride = (int64_t[]){ 4, COLUMNS * 4 } };
	const uint64_t bytes = (9 << 20) + 40;
	uint8_t *in = malloc(bytes), *out = calloc(1, bytes);
	struct hal_mem *m = get(bytes);
	uint64_t before = n_copies();
	struct err err;

	assert_int_equal(cpu_sees_hbm(), is_cpu);
	assert_int_equal(hal_mem_host(m) != NULL, is_cpu);
	for (uint64_t i = 0; i < bytes; i++)
		in[i] = (uint8_t)(i * 7 + i / 4099);
	assert_int_equal(hal_copy_in(m, 0, in, bytes, CLOCK_FOREVER, &err), 0);
	assert_int_equal(hal_copy_out(out, m, 0, bytes, CLOCK_FOREVER, &err), 0);
	assert_memory_equal(in, out, bytes);
	assert_int_equal(hal_copy_out(out, m, 12345, 99, CLOCK_FOREVER, &err), 0);
	assert_memory_equal(in + 12345, out, 99);
	assert_int_equal(hal_copy_in_strided(m, 64, in, &turned, CLOCK_FOREVER, &err), 0);
	memset(out, 0, bytes);
	assert_int_equal(hal_copy_out_strided(out, m, 64, &turned, CLOCK_FOREVER, &err), 0);
	assert_memory_equal(in, out, ROWS * COLUMNS * 4);
	assert_int_equal(hal_copy_out(out, m, 64, 8, CLOCK_FOREVER, &err), 0);
	assert_memory_equal(in, out, 4);
	assert_memory_equal(in + COLUMNS * 4, out + 4, 4);
	if (is_cpu)
		assert_int_equal(n_copies(), before);
	else
		assert_true(n_copies() >= before + 9);
	hal_mem_free(m);
	free(in);
	free(out);
}

static void the_cpu_copies_to_a_model(void **state)
{
	(void)state;
	check_who_copies(true);
}

static void a_real_device_copies_by_itself(void **state)
{
	struct hal_device_info info;
	struct err err;

	(void)state;
	assert_int_equal(hal_device_info(hal, 0, &info, &err), 0);
	assert_false(info.is_model);
	check_who_copies(false);
	/* Nor does a reset change who does. */
	assert_int_equal(hal_device_reset(dev, &err), 0);
	check_who_copies(false);
}

static void hbm_is_as_large_as_asked_for(void **state)
{
	static const struct { const char *text; uint64_t bytes; } sizes[] = {
		{ "2M", 2 << 20 }, { "1048577", (1 << 20) + 4096 }, { "3072K", 3 << 20 },
	};
	struct hal_device_info info;
	struct hal *h;
	struct err err;

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		setenv("TESSERA_HBM_BYTES", sizes[i].text, 1);
		assert_non_null(open_at(NODE, 0, &h, &err));
		assert_int_equal(hal_device_info(h, 0, &info, &err), 0);
		assert_int_equal(info.hbm_bytes, sizes[i].bytes);
		hal_destroy(h);
	}
	/* More than there is, or no more than that. */
	setenv("TESSERA_HBM_BYTES", "1T", 1);
	assert_non_null(open_at(NODE, 0, &h, &err));
	assert_int_equal(hal_device_info(h, 0, &info, &err), 0);
	assert_int_equal(info.hbm_bytes, 64 << 20);
	hal_destroy(h);
	unsetenv("TESSERA_HBM_BYTES");
}

static void wrong_sizes_are_refused(void **state)
{
	static const char *const bad[] = { "many", "-1", "0", "4095", "1X", "2MB", "1M ",
					   "99999999999999999999", "99999999T", " " };
	struct hal *h;
	struct err err;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		setenv("TESSERA_HBM_BYTES", bad[i], 1);
		assert_null(open_at(NODE, 0, &h, &err));
		assert_int_equal(err.code, ERR_INVALID_ARGUMENT);
		SAYS(&err, "TESSERA_HBM_BYTES");
		SAYS(&err, bad[i]);
	}
	unsetenv("TESSERA_HBM_BYTES");
}

static void a_limit_of_the_driver_is_kept_and_named(void **state)
{
	struct hal_device_info info;
	struct hal_mem_stats stats;
	struct hal_device *d;
	struct hal_mem *m;
	struct hal *h;
	struct err err;

	(void)state;
	fake.hbm_limit = 8 << 20;
	d = open_at(NODE, 0, &h, &err);
	assert_non_null(d);
	assert_int_equal(hal_device_info(h, 0, &info, &err), 0);
	assert_int_equal(info.hbm_bytes, 8 << 20);
	hal_mem_stats(d, HAL_MEM_HBM, &stats);
	assert_int_equal(stats.limit_bytes, 8 << 20);
	assert_int_equal(hal_mem_alloc(d, HAL_MEM_HBM, (8 << 20) + 1, "x", &m, &err),
			 ERR_RESOURCE_EXHAUSTED);
	assert_int_equal(hal_mem_alloc(d, HAL_MEM_HBM, 8 << 20, "x", &m, &err), 0);
	hal_destroy(h);
	setenv("TESSERA_HBM_BYTES", "8M", 1);
	assert_non_null(open_at(NODE, 0, &h, &err));
	hal_destroy(h);
	setenv("TESSERA_HBM_BYTES", "9M", 1);
	expect_refusal(ERR_RESOURCE_EXHAUSTED, "a process may have 8388608", "file_hbm_mib");
	unsetenv("TESSERA_HBM_BYTES");
	/* Root lowers and raises it while the device is open. */
	d = open_at(NODE, 0, &h, &err);
	assert_non_null(d);
	fake.hbm_limit = 4 << 20;
	hal_mem_stats(d, HAL_MEM_HBM, &stats);
	assert_int_equal(stats.limit_bytes, 4 << 20);
	assert_int_equal(hal_mem_alloc(d, HAL_MEM_HBM, 5 << 20, "x", &m, &err),
			 ERR_RESOURCE_EXHAUSTED);
	SAYS(&err, "free are 4194304 of 8388608");
	fake.hbm_limit = 8 << 20;
	assert_int_equal(hal_mem_alloc(d, HAL_MEM_HBM, 5 << 20, "x", &m, &err), 0);
	hal_destroy(h);
	/* A larger limit than the card is none, nor is one of an older driver. */
	fake.hbm_limit = 1ull << 40;
	assert_non_null(open_at(NODE, 0, &h, &err));
	assert_int_equal(hal_device_info(h, 0, &info, &err), 0);
	assert_int_equal(info.hbm_bytes, 64 << 20);
	hal_destroy(h);
	fake.hbm_limit = 0;
	fake.fail_errno = EMFILE;
	fake.fail_request = DRM_IOCTL_TESSERA_QUEUE_CREATE;
	expect_refusal(ERR_RESOURCE_EXHAUSTED, "making a queue", "parameters/file_*");
	fake.fail_request = 0;
}

static void memory_that_cannot_be_pinned_says_why(void **state)
{
	struct rlimit old, low;
	struct hal_mem *m;
	struct err err;
	void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)state;
	getrlimit(RLIMIT_MEMLOCK, &old);
	low = (struct rlimit){ 8 << 20, old.rlim_max };
	setrlimit(RLIMIT_MEMLOCK, &low);
	fake.pin_limit = 8 << 20;
	assert_int_equal(hal_mem_alloc(dev, HAL_MEM_HOST, 64 << 20, "x", &m, &err),
			 ERR_RESOURCE_EXHAUSTED);
	SAYS(&err, "may lock 8388608");
	SAYS(&err, "ulimit -l");
	fake.pin_limit = 0;
	/* Rings stay in memory too. */
	fake.fail_request = DRM_IOCTL_TESSERA_QUEUE_CREATE;
	fake.fail_errno = ENOMEM;
	expect_refusal(ERR_RESOURCE_EXHAUSTED, "may lock 8388608", "ulimit -l");
	fake.fail_request = 0;
	setrlimit(RLIMIT_MEMLOCK, &old);
	munmap(p, 4096);
	assert_int_equal(hal_mem_map(dev, p, 4096, &m, &err), ERR_INVALID_ARGUMENT);
	SAYS(&err, "not all of it is writable memory");
	fake.fail_request = DRM_IOCTL_TESSERA_MAP;
	fake.fail_errno = ENOSPC;
	assert_int_equal(hal_mem_alloc(dev, HAL_MEM_HOST, 64 << 20, "x", &m, &err),
			 ERR_RESOURCE_EXHAUSTED);
	SAYS(&err, "intel_iommu=on");
	fake.fail_request = 0;
}

/* ---- names and nodes ---- */

static void wrong_names_say_what_to_do(void **state)
{
	static const struct { const char *devices; int code; const char *says; } names[] = {
		{ "accel:/dev/accel/accel9", ERR_NOT_FOUND, "lspci -k -d 1234:7e55" },
		{ "accel:9", ERR_NOT_FOUND, "/dev/accel/accel9" },
		{ "accel:", ERR_INVALID_ARGUMENT, "accel:/dev/accel/accel0" },
		{ "accel:accel0", ERR_INVALID_ARGUMENT, "path of a node" },
		{ NODE ",sim", ERR_INVALID_ARGUMENT, "say accel: again" },
		{ NODE "," NODE "/x", ERR_NOT_FOUND, "ls /dev/accel" },
	};
	char module[100], aside[100], both[200];
	struct hal *h;
	struct err err;

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		assert_int_equal(hal_create(&(struct hal_options){ .devices = names[i].devices },
					    &h, &err), names[i].code);
		SAYS(&err, names[i].says);
	}
	snprintf(module, sizeof(module), "%s/sys/module/tessera", fake.root);
	snprintf(aside, sizeof(aside), "%s/sys/module/aside", fake.root);
	assert_int_equal(rename(module, aside), 0);
	assert_int_equal(hal_create(&(struct hal_options){ .devices = "accel:1" }, &h, &err),
			 ERR_NOT_FOUND);
	SAYS(&err, "sudo modprobe tessera");
	assert_int_equal(rename(aside, module), 0);
	fake_put_node(1, "tessera");
	snprintf(both, sizeof(both), "%s,accel:1", NODE);
	assert_int_equal(hal_create(&(struct hal_options){ .devices = both }, &h, &err), 0);
	assert_int_equal(hal_device_count(h), 2);
	hal_destroy(h);
}

/* What its parent has of the card would stay as long as it lives. */
static void a_child_of_fork_has_no_file_of_the_card(void **state)
{
	int status, n_left = 0;
	pid_t pid;

	(void)state;
	assert_true(fake.file[0].fd);
	pid = fork();
	if (!pid) {
		for (unsigned i = 0; i < FAKE_FILES; i++)
			n_left += fake.file[i].fd && fcntl(fake.file[i].fd, F_GETFD) >= 0;
		_exit(n_left);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* Nor has one that a thread forks while another opens, maps or closes it. */
static void a_child_of_the_moment_has_no_file_of_the_card(void **state)
{
	struct hal_device *got;
	unsigned n, n_kept;
	struct err err;
	struct hal *h;

	(void)state;
	forks.on = true;
	got = open_at(NODE, 0, &h, &err);
	hal_destroy(h);
	n = forks_end(&n_kept);
	assert_non_null(got);
	assert_true(n >= 4);
	assert_int_equal(n_kept, 0);
}

static void nodes_that_may_not_be_opened_name_the_group(void **state)
{
	char node[100];

	(void)state;
	snprintf(node, sizeof(node), "%s/dev/accel/accel0", fake.root);
	fake.open_errno = EACCES;
	if (!chown(node, (uid_t)-1, 0))
		expect_refusal(ERR_PERMISSION_DENIED, "70-tessera.rules", "by root alone");
	if (!chown(node, (uid_t)-1, 1))
		expect_refusal(ERR_PERMISSION_DENIED, "sudo usermod -aG", "log in again");
	fake.open_errno = ENODEV;
	expect_refusal(ERR_UNAVAILABLE, "lspci", "is gone");
	fake.open_errno = ENXIO;
	expect_refusal(ERR_NOT_FOUND, "lspci", "no node");
	fake.open_errno = EMFILE;
	expect_refusal(ERR_RESOURCE_EXHAUSTED, "opening /dev/accel", "Too many open files");
	fake.open_errno = 0;
}

static void nodes_of_others_are_refused(void **state)
{
	(void)state;
	fake.driver = "ivpu";
	expect_refusal(ERR_FAILED_PRECONDITION, "\"ivpu\"", "ls -l /sys/class/accel");
	fake.driver = NULL;
	expect_refusal(ERR_FAILED_PRECONDITION, "no accelerator's node", "ls /dev/accel");
	fake.driver = "tessera";
}

static void versions_must_fit(void **state)
{
	struct hal *h;
	struct err err;

	(void)state;
	fake.abi = 0;
	expect_refusal(ERR_FAILED_PRECONDITION, "too old", "dkms install");
	/* A newer driver only has more. */
	fake.abi = DRM_TESSERA_ABI + 5;
	assert_non_null(open_at(NODE, 0, &h, &err));
	hal_destroy(h);
	fake.abi = DRM_TESSERA_ABI;
	fake.card->identity.isa = ISA_VERSION + 1;
	expect_refusal(ERR_FAILED_PRECONDITION, "newer release", "runs programs of version");
	fake.card->identity.isa = ISA_VERSION - 1;
	expect_refusal(ERR_FAILED_PRECONDITION, "firmware", "runs programs of version");
	fake.card->identity.isa = ISA_VERSION;
	fake.card->is_usable = 0;
	expect_refusal(ERR_UNAVAILABLE, "Bind it again", "dmesg");
	fake.card->is_usable = 1;
}

static void exhausted_tables_name_who_may_hold_them(void **state)
{
	(void)state;
	fake.fail_errno = ENOSPC;
	fake.fail_request = DRM_IOCTL_TESSERA_CTX_CREATE;
	expect_refusal(ERR_RESOURCE_EXHAUSTED, "no context left", "fuser -v");
	fake.fail_request = DRM_IOCTL_TESSERA_QUEUE_CREATE;
	expect_refusal(ERR_RESOURCE_EXHAUSTED, "no queue left", "fuser -v");
	fake.fail_errno = ETIMEDOUT;
	expect_refusal(ERR_UNAVAILABLE, "did not answer", "making a queue");
	fake.fail_request = 0;
}

static void hardware_comes_before_the_model(void **state)
{
	struct hal_device_info info;
	struct hal_device *d;
	struct hal *h;
	struct err err;
	unsigned n = 0;

	(void)state;
	unsetenv("TESSERA_DEVICES");
	fake_put_node(10, "tessera");
	fake_put_node(2, "tessera");
	fake_put_node(3, "ivpu");
	assert_int_equal(hal_create(NULL, &h, &err), 0);
	for (unsigned i = 0; i < hal_device_count(h); i++) {
		static const char *const want[] = { "accel:accel0", "accel:accel1",
						    "accel:accel2", "accel:accel10" };

		assert_int_equal(hal_device_info(h, i, &info, &err), 0);
		assert_int_not_equal(info.kind, HAL_KIND_SIM);
		if (info.kind != HAL_KIND_ACCEL)
			continue;
		assert_true(n < 4);
		assert_string_equal(info.bus_id, want[n++]);
		assert_true(info.can_open);
	}
	assert_int_equal(n, 4);
	hal_destroy(h);
	/* It is there and cannot be opened: that is said, and the model stays away. */
	fake.open_errno = EACCES;
	assert_int_equal(hal_create(NULL, &h, &err), 0);
	assert_int_equal(hal_device_info(h, 0, &info, &err), 0);
	assert_int_equal(info.kind, HAL_KIND_ACCEL);
	assert_false(info.can_open);
	assert_non_null(strstr(info.state, "/dev/accel/accel0"));
	assert_int_equal(hal_device_open(h, 0, &d, &err), ERR_PERMISSION_DENIED);
	fake.open_errno = 0;
	hal_destroy(h);
}

/* ---- resets ---- */

static void a_reset_by_another_process_is_told_and_survived(void **state)
{
	struct hal_queue *q = hal_device_queue(dev, HAL_QUEUE_COMPUTE);
	struct hal_exe *exe = load(spin, 2, 0), *good = load(store_42, 3, 0);
	struct hal_mem *out = get(8), *host, *back, *m;
	unsigned resets;
	uint64_t value, va;
	int64_t got = 0;
	char kept[5] = "";
	struct err err, first;
	int noted = 0;

	(void)state;
	assert_int_equal(hal_mem_alloc(dev, HAL_MEM_HOST, 3 << 20, "in", &host, &err), 0);
	assert_int_equal(hal_mem_alloc(dev, HAL_MEM_HOST, 3 << 20, "out", &back, &err), 0);
	va = hal_mem_va(host);
	m = get(4096);
	assert_int_equal(hal_copy_in(m, 0, "kept", 5, CLOCK_FOREVER, &err), 0);
	value = run(exe, out, 0);
	assert_int_equal(hal_queue_notify(q, value, note, &noted, &err), 0);
	pthread_mutex_lock(&fake.lock);
	fake_function_reset();
	pthread_mutex_unlock(&fake.lock);
	assert_int_equal(hal_queue_wait(q, value, clock_after(5 * SECOND), &first),
			 ERR_UNAVAILABLE);
	SAYS(&first, "a reset of /dev/accel/accel0");
	SAYS(&first, "start it again");
	/* Who only waits to be told is told too. */
	for (int64_t until = clock_after(5 * SECOND);
	     !__atomic_load_n(&noted, __ATOMIC_ACQUIRE) && clock_ns() < until;)
		sched_yield();
	assert_int_equal(noted, ERR_UNAVAILABLE);
	assert_int_equal(hal_device_error(dev, &err), ERR_UNAVAILABLE);
	assert_string_equal(err.msg, first.msg);
	/* The device is fresh: nobody else's work shall end because of us. */
	resets = fake.n_resets;
	assert_int_equal(hal_device_reset(dev, &err), 0);
	assert_int_equal(fake.n_resets, resets);
	assert_int_equal(hal_mem_va(host), va);
	assert_int_equal(hal_copy_out(kept, m, 0, 5, CLOCK_FOREVER, &err), 0);
	assert_string_equal(kept, "kept");
	check_copies(dev, host, back, 3);
	value = run(good, out, 0);
	assert_int_equal(hal_queue_wait(q, value, clock_after(5 * SECOND), &err), 0);
	hal_copy_out(&got, out, 0, 8, CLOCK_FOREVER, &err);
	assert_int_equal(got, 42);
	/* Nor without a reason but ours. */
	assert_int_equal(hal_device_reset(dev, &err), 0);
	assert_int_equal(fake.n_resets, resets);
	value = run(good, out, 0);
	assert_int_equal(hal_queue_wait(q, value, clock_after(5 * SECOND), &err), 0);
	hal_mem_free(host);
	hal_mem_free(back);
	hal_mem_free(out);
	hal_mem_free(m);
	hal_exe_unload(exe);
	hal_exe_unload(good);
}

static void a_device_that_is_given_up_says_so(void **state)
{
	struct err err;

	(void)state;
	pthread_mutex_lock(&fake.lock);
	fake_function_reset();
	fake.card->is_usable = 0;
	pthread_mutex_unlock(&fake.lock);
	assert_int_equal(hal_device_reset(dev, &err), ERR_UNAVAILABLE);
	SAYS(&err, "Bind it again");
	fake.card->is_usable = 1;
	assert_int_equal(hal_device_reset(dev, &err), 0);
}

/* A device that has not its programs back takes no work: it must not look alive. */
static void a_reset_that_loads_not_all_again_leaves_it_dead(void **state)
{
	struct hal_queue *q = hal_device_queue(dev, HAL_QUEUE_COMPUTE);
	struct hal_exe *exe = load(store_42, 3, 0);
	struct hal_mem *out = get(8);
	struct err err;

	(void)state;
	fake.fail_request = DRM_IOCTL_TESSERA_PROGRAM_CREATE;
	fake.fail_errno = ENOSPC;
	assert_int_equal(hal_device_reset(dev, &err), ERR_UNAVAILABLE);
	SAYS(&err, "again after a reset");
	assert_int_equal(hal_device_error(dev, &err), ERR_UNAVAILABLE);
	SAYS(&err, "again after a reset");
	fake.fail_request = 0;
	assert_int_equal(hal_device_reset(dev, &err), 0);
	assert_int_equal(hal_device_error(dev, &err), 0);
	assert_int_equal(hal_queue_wait(q, run(exe, out, 0), clock_after(5 * SECOND), &err), 0);
	hal_exe_unload(exe);
	hal_mem_free(out);
}

/* One queue fails, the other waits for it. */
static void fail_what_another_waits_for(void)
{
	struct hal_queue *compute = hal_device_queue(dev, HAL_QUEUE_COMPUTE);
	struct hal_queue *dma = hal_device_queue(dev, HAL_QUEUE_DMA);
	struct hal_exe *endless = load(spin, 2, 0);
	struct hal_mem *out = get(8);
	struct hal_after after = { compute, run(endless, out, 20000000) };
	uint64_t value;
	struct err err;

	assert_int_equal(hal_queue_copy(dma, out, 0, out, 0, 8, &after, 1, &value, &err), 0);
	assert_int_equal(hal_queue_wait(dma, value, clock_after(5 * SECOND), &err), 0);
	assert_int_equal(hal_queue_error(compute, after.value, &err), ERR_DEADLINE_EXCEEDED);
	hal_exe_unload(endless);
	hal_mem_free(out);
}

/* By the context's wake page; with a driver of before there were any, by doorbells. */
static void who_waits_for_what_failed_is_woken(void **state)
{
	int64_t until = clock_after(5 * SECOND);
	unsigned n = fake.n_wakes;
	struct err err;

	(void)state;
	fail_what_another_waits_for();
	while (__atomic_load_n(&fake.n_wakes, __ATOMIC_SEQ_CST) == n && clock_ns() < until)
		sched_yield();
	assert_true(fake.n_wakes > n);
	/* The next context has another page. */
	assert_int_equal(hal_device_reset(dev, &err), 0);
	fail_what_another_waits_for();
	fake.abi = 5;
	assert_int_equal(hal_device_reset(dev, &err), 0);
	n = fake.n_wakes;
	for (unsigned i = 0; i < 3; i++)
		fail_what_another_waits_for();
	assert_int_equal(fake.n_wakes, n);
	fake.abi = DRM_TESSERA_ABI;
	assert_int_equal(hal_device_reset(dev, &err), 0);
}

static void requests_of_the_kernel_are_refused_by_name(void **state)
{
	struct hw_telemetry t = { 0 };
	struct err err;

	(void)state;
	assert_int_equal(hal_device_inject(dev, HW_INJECT_DROP_IRQ, 2, &err),
			 ERR_UNIMPLEMENTED);
	SAYS(&err, "INJECT");
	SAYS(&err, "echo \"4 2\" > /sys/kernel/debug/accel");
	executes_inline_and_on_the_engine(NULL);
	assert_int_equal(hal_device_telemetry(dev, &t, &err), 0);
	assert_true(t.time_ns && t.n_execute);
}

static void links_are_the_drivers_word(void **state)
{
	struct hw_link told[HW_MAX_LINKS];
	struct hal_device *linked;
	struct hal *h;
	struct err err;
	unsigned n = 7;

	(void)state;
	/* What is alone has none, and is not asked. */
	fake.fail_request = DRM_IOCTL_TESSERA_QUERY;
	assert_int_equal(hal_device_links(dev, told, &n, &err), 0);
	fake.fail_request = 0;
	assert_int_equal(n, 0);
	fake.card->identity.fabric = 5;
	fake.card->identity.n_chips = 2;
	fake.n_links = 2;
	for (unsigned i = 0; i < 2; i++)
		fake.links[i] = (struct hw_link){ .peer = 1, .is_down = (uint8_t)i,
						  .is = HW_LINK_UP, .tx_bytes = 100 + i };
	linked = open_at(NODE, 0, &h, &err);
	assert_non_null(linked);
	assert_int_equal(hal_device_links(linked, told, &n, &err), 0);
	assert_int_equal(n, 2);
	assert_memory_equal(told, fake.links, sizeof(*told) * 2);
	fake.abi = 4;
	assert_int_equal(hal_device_links(linked, told, &n, &err), ERR_UNIMPLEMENTED);
	assert_int_equal(n, 0);
	SAYS(&err, "version 4, links need 5");
	fake.abi = DRM_TESSERA_ABI;
	hal_destroy(h);
	fake.n_links = 0;
	fake.card->identity.fabric = fake.card->identity.n_chips = 0;
}

/* Work goes on with the driver of the release before; traces say what they want. */
static void a_driver_of_before_traces_says_so(void **state)
{
	struct hal_trace *trace;
	struct err err;

	(void)state;
	fake.abi = 4;
	assert_int_equal(hal_trace_start(dev, &err), ERR_UNIMPLEMENTED);
	SAYS(&err, "/dev/accel/accel0");
	SAYS(&err, "version 4, traces need 5");
	SAYS(&err, "dkms install");
	assert_int_equal(hal_trace_stop(dev, &trace, &err), ERR_FAILED_PRECONDITION);
	executes_inline_and_on_the_engine(NULL);
	fake.abi = DRM_TESSERA_ABI;
	assert_int_equal(hal_trace_start(dev, &err), 0);
	assert_int_equal(hal_trace_stop(dev, &trace, &err), 0);
	hal_trace_free(trace);
}

/* The driver refuses: nothing is left, and the next one works. */
static void a_trace_that_is_refused_leaves_nothing(void **state)
{
	struct hal_trace *trace;
	struct err err;

	(void)state;
	fake.fail_request = DRM_IOCTL_TESSERA_TRACE_START;
	fake.fail_errno = EBUSY;
	assert_int_not_equal(hal_trace_start(dev, &err), 0);
	SAYS(&err, "tracing what this process runs");
	fake.fail_request = 0;
	assert_int_equal(hal_trace_start(dev, &err), 0);
	assert_int_equal(hal_trace_stop(dev, &trace, &err), 0);
	hal_trace_free(trace);
}

/* ---- every call fails once ---- */

/* One process's life with a device; 0, or the first error. */
static int live(struct err *err)
{
	struct hal_device *saved = dev;
	struct hal_mem *host = NULL, *small, *large;
	struct hal_trace *trace = NULL;
	struct hal *h;
	uint64_t value;
	int code = hal_create(&(struct hal_options){ .devices = NODE }, &h, err);

	if (code)
		return code;
	code = hal_device_open(h, 0, &dev, err);
	if (!code)
		code = hal_mem_alloc(dev, HAL_MEM_HOST, 5 << 20, "x", &host, err);
	if (!code)
		code = hal_mem_alloc(dev, HAL_MEM_HBM, 4096, "x", &small, err);
	if (!code)
		code = hal_mem_alloc(dev, HAL_MEM_HBM, 20 << 20, "x", &large, err);
	if (!code)
		hal_mem_free(large);
	if (!code)
		code = hal_queue_fill(hal_device_queue(dev, HAL_QUEUE_DMA), host, 0, 4096, 7,
				      &value, err);
	if (!code)
		code = hal_queue_wait(hal_device_queue(dev, HAL_QUEUE_DMA), value,
				      clock_after(5 * SECOND), err);
	if (!code)
		code = hal_trace_start(dev, err);
	if (!code)
		code = hal_device_reset(dev, err);
	if (!code)
		code = hal_trace_stop(dev, &trace, err);
	hal_trace_free(trace);
	hal_destroy(h);
	dev = saved;
	return code;
}

static unsigned count_files(void)
{
	unsigned n = 0;

	for (int i = 0; i < 1024; i++)
		n += fcntl(i, F_GETFD) >= 0;
	return n;
}

static void failures_leave_nothing_behind(void **state)
{
	static const int why[] = { ENOMEM, ENODEV, ECANCELED };
	const struct fake_view *views = fake.views;
	const struct fake_bo *bos = fake.bos;
	unsigned files = count_files(), opens = fake.n_opens, left = fake.n_left_behind, n_bad = 0;
	struct err err;
	long n = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(why) / sizeof(*why); i++) {
		n = 0;
		do {
			fake.fail_errno = why[i];
			fake.fail_at = ++n;
			err.code = 0;
			if (live(&err)) {
				assert_true(err.code && strlen(err.msg) > 10);
				n_bad++;
			}
			assert_int_equal(fake.n_opens, opens);
			assert_int_equal(fake.n_left_behind, left);
			assert_ptr_equal(fake.views, views);
			assert_ptr_equal(fake.bos, bos);
			assert_int_equal(count_files(), files);
		} while (!fake.fail_at);
		fake.fail_at = 0;
	}
	fake.fail_errno = ENOMEM;
	assert_true(n > 25 && n_bad > 60);
	assert_int_equal(live(&err), 0);
	executes_inline_and_on_the_engine(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(identity_is_the_cards),
		DEVICE_TESTS,
		cmocka_unit_test(the_cpu_copies_to_a_model),
		cmocka_unit_test(pinned_memory_is_reached_by_dma),
		cmocka_unit_test(hbm_is_as_large_as_asked_for),
		cmocka_unit_test(wrong_sizes_are_refused),
		cmocka_unit_test(a_limit_of_the_driver_is_kept_and_named),
		cmocka_unit_test(memory_that_cannot_be_pinned_says_why),
		cmocka_unit_test(wrong_names_say_what_to_do),
		cmocka_unit_test(a_child_of_fork_has_no_file_of_the_card),
		cmocka_unit_test(a_child_of_the_moment_has_no_file_of_the_card),
		cmocka_unit_test(nodes_that_may_not_be_opened_name_the_group),
		cmocka_unit_test(nodes_of_others_are_refused),
		cmocka_unit_test(versions_must_fit),
		cmocka_unit_test(exhausted_tables_name_who_may_hold_them),
		cmocka_unit_test(hardware_comes_before_the_model),
		cmocka_unit_test(a_reset_by_another_process_is_told_and_survived),
		cmocka_unit_test(a_device_that_is_given_up_says_so),
		cmocka_unit_test(a_reset_that_loads_not_all_again_leaves_it_dead),
		cmocka_unit_test(who_waits_for_what_failed_is_woken),
		cmocka_unit_test(requests_of_the_kernel_are_refused_by_name),
		cmocka_unit_test(links_are_the_drivers_word),
		cmocka_unit_test(a_driver_of_before_traces_says_so),
		cmocka_unit_test(a_trace_that_is_refused_leaves_nothing),
		cmocka_unit_test(failures_leave_nothing_behind),
		cmocka_unit_test(neighbours_do_not_notice_one_another),
		cmocka_unit_test(a_neighbours_reset_is_not_noticed),
	};
	const struct CMUnitTest silicon[] = {
		cmocka_unit_test(a_real_device_copies_by_itself),
		DEVICE_TESTS,
		cmocka_unit_test(pinned_memory_is_reached_by_dma),
		cmocka_unit_test(a_reset_by_another_process_is_told_and_survived),
		cmocka_unit_test(failures_leave_nothing_behind),
		cmocka_unit_test(neighbours_do_not_notice_one_another),
	};
	int failed = cmocka_run_group_tests(tests, start_card, stop_card);

	return failed + cmocka_run_group_tests(silicon, start_silicon, stop_silicon);
}
