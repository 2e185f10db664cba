/* SPDX-License-Identifier: Apache-2.0 */
/*
 * In a guest: the HAL's device checks on a T1 that the kernel's VFIO gives us, and what only
 * a real PCI function has: an IOMMU, a holder, resets by the kernel.
 *
 *	hal [KIND] ADDRESS [ADDRESS...]
 *
 * KIND is "vfio" or "vfio-noiommu".
 */
#define DEVICE_TESTS_ONLY
#include "tests/unit/hal/hal_device_test.c"

#include <sys/wait.h>
#include <unistd.h>

#define SECOND 1000000000ll

static const char *kind = "vfio";
static char all[200];
static unsigned n_devices;

static void identity_is_the_models(void **state)
{
	struct hal_device_info info;
	struct err err;

	(void)state;
	assert_int_equal(hal_device_info(hal, 0, &info, &err), 0);
	assert_int_equal(info.kind, HAL_KIND_VFIO);
	assert_true(info.is_model);
	assert_string_equal(info.bus_id, devices + strlen(kind) + 1);
	assert_string_equal(info.driver, "vfio-pci");
	assert_string_equal(info.state, "ready");
	assert_int_equal(info.hbm_bytes, 256 << 20);
}

static void unnamed_devices_are_found(void **state)
{
	struct hal *h;
	struct err err;

	(void)state;
	assert_int_equal(hal_create(&(struct hal_options){ .devices = "" }, &h, &err), 0);
	assert_int_equal(hal_device_count(h), n_devices);
	for (unsigned i = 0; i < n_devices; i++) {
		struct hal_device_info info;

		assert_int_equal(hal_device_info(h, i, &info, &err), 0);
		assert_int_equal(info.kind, HAL_KIND_VFIO);
		/* Without an IOMMU a device has to be asked for by name. */
		assert_int_equal(info.can_open, !strcmp(kind, "vfio"));
	}
	hal_destroy(h);
}

static void pinned_memory_is_reached_by_dma(void **state)
{
	struct hal_queue *q = hal_device_queue(dev, HAL_QUEUE_DMA);
	struct hal_mem *host, *back, *m = get(5 << 20);
	uint64_t value, bytes = 5 << 20;
	struct err err;

	(void)state;
	for (int round = 0; round < 3; round++) {
		assert_int_equal(hal_mem_alloc(dev, HAL_MEM_HOST, bytes, "in", &host, &err), 0);
		assert_int_equal(hal_mem_alloc(dev, HAL_MEM_HOST, bytes, "out", &back, &err), 0);
		for (uint64_t i = 0; i < bytes; i++)
			((uint8_t *)hal_mem_host(host))[i] = (uint8_t)(i * 31 + i / 4096);
		assert_int_equal(hal_queue_copy(q, m, 0, host, 0, bytes, NULL, 0, &value, &err),
				 0);
		assert_int_equal(hal_queue_copy(q, back, 0, m, 0, bytes, NULL, 0, &value, &err),
				 0);
		assert_int_equal(hal_queue_wait(q, value, clock_after(30 * SECOND), &err), 0);
		assert_memory_equal(hal_mem_host(host), hal_mem_host(back), bytes);
		hal_mem_free(host);
		hal_mem_free(back);
	}
	hal_mem_free(m);
}

static void another_process_is_told_who_has_the_device(void **state)
{
	char expected[60];
	int status;
	pid_t pid;

	(void)state;
	snprintf(expected, sizeof(expected), "process %d (", getpid());
	pid = fork();
	if (!pid) {
		struct err err = { 0 };
		struct hal *h;
		struct hal_device *d = open_at(devices, 0, &h, &err);

		fprintf(stderr, "it says: %s\n", err.msg);
		_exit(d || err.code != ERR_FAILED_PRECONDITION ||
		      !strstr(err.msg, expected));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void function_resets_give_a_working_device(void **state)
{
	struct hal_queue *q;
	struct hal_mem *out = get(8);
	struct hal_exe *exe = load(store_42, 3, 0);
	struct err err;

	(void)state;
	for (int i = 0; i < 5; i++) {
		assert_int_equal(hal_device_reset(dev, &err), 0);
		q = hal_device_queue(dev, HAL_QUEUE_COMPUTE);
		assert_int_equal(hal_queue_wait(q, run(exe, out, 0), clock_after(30 * SECOND),
						&err), 0);
	}
	hal_exe_unload(exe);
	hal_mem_free(out);
}

/* Dies with work in flight: the kernel must take everything from it. */
static void a_killed_process_leaves_the_device_usable(void **state)
{
	struct hal_device *saved = dev;
	struct hal *h;
	struct err err;
	int status;

	(void)state;
	close_device(NULL);
	for (int i = 0; i < 2; i++) {
		pid_t pid = fork();

		if (!pid) {
			dev = open_at(devices, 0, &h, &err);
			if (dev)
				run(load(spin, 2, 0), get(8), 0);
			kill(getpid(), dev ? SIGKILL : SIGUSR1);
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFSIGNALED(status));
		assert_int_equal(WTERMSIG(status), SIGKILL);
	}
	dev = saved;
	assert_int_equal(open_device(NULL), 0);
	executes_inline_and_on_the_engine(NULL);
}

static void all_devices_work_at_once(void **state)
{
	struct hal_device *saved = dev;
	struct hal *saved_hal = hal, *h;
	struct hal_device *d[8];
	uint8_t got[4096];
	struct hal_mem *m[8];
	uint64_t value[8];
	struct err err;

	(void)state;
	if (n_devices < 2)
		return;
	close_device(NULL);
	if (hal_create(&(struct hal_options){ .devices = all }, &h, &err))
		fail_msg("%s", err.msg);
	assert_int_equal(hal_device_count(h), n_devices);
	for (unsigned i = 0; i < n_devices; i++) {
		if (hal_device_open(h, i, &d[i], &err))
			fail_msg("%u: %s", i, err.msg);
		dev = d[i];
		m[i] = get(4096);
		assert_int_equal(hal_queue_fill(hal_device_queue(d[i], HAL_QUEUE_DMA), m[i], 0,
						4096, 0x0101010101010101ull * (i + 1),
						&value[i], &err), 0);
	}
	for (unsigned i = 0; i < n_devices; i++) {
		assert_int_equal(hal_queue_wait(hal_device_queue(d[i], HAL_QUEUE_DMA), value[i],
						clock_after(30 * SECOND), &err), 0);
		assert_int_equal(hal_copy_out(got, m[i], 0, 4096, CLOCK_FOREVER, &err), 0);
		for (unsigned k = 0; k < 4096; k++)
			assert_int_equal(got[k], i + 1);
	}
	hal_destroy(h);
	hal = saved_hal;
	dev = saved;
	assert_int_equal(open_device(NULL), 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(identity_is_the_models),
		cmocka_unit_test(unnamed_devices_are_found),
		DEVICE_TESTS,
		cmocka_unit_test(pinned_memory_is_reached_by_dma),
		cmocka_unit_test(another_process_is_told_who_has_the_device),
		cmocka_unit_test(function_resets_give_a_working_device),
		cmocka_unit_test(a_killed_process_leaves_the_device_usable),
		cmocka_unit_test(all_devices_work_at_once),
	};
	static char first[40];

	if (argc > 1 && !strncmp(argv[1], "vfio", 4)) {
		kind = argv[1];
		argc--;
		argv++;
	}
	if (argc < 2 || argc > 9) {
		fputs("usage: hal [vfio|vfio-noiommu] ADDRESS...\n", stderr);
		return 2;
	}
	snprintf(first, sizeof(first), "%s:%s", kind, argv[1]);
	devices = first;
	n_devices = (unsigned)argc - 1;
	for (unsigned i = 1; i <= n_devices; i++)
		snprintf(all + strlen(all), sizeof(all) - strlen(all), "%s%s%s",
			 i == 1 ? kind : ",", i == 1 ? ":" : "", argv[i]);
	return cmocka_run_group_tests(tests, open_device, close_device);
}
