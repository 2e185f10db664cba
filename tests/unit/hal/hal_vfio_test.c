/* SPDX-License-Identifier: Apache-2.0 */
/* The HAL through VFIO, on a kernel in user space: its device checks by groups, by device
 * files and without an IOMMU, each text that people meet, and every system call failing
 * once. */
#define DEVICE_TESTS_ONLY
#include "tests/unit/hal/hal_device_test.c"

#include <dirent.h>
#include <sys/eventfd.h>

#include "tests/fake/vfio.c"

#define SECOND 1000000000ll
#define A "0000:01:00.0"
#define B "0000:02:00.0"

static const char *kind = "vfio:";	/* how devices are named, and opened by that */
static enum vfio_way way = VFIO_WITH_IOMMU;
static struct vfio_domain *domains;	/* of functions that are opened without a HAL */

/* ---- the ways ---- */

static int begin_group(void **state)
{
	if (fake_start())
		return -1;
	devices = "vfio:" A;
	return open_device(state);
}

static int begin_cdev(void **state)
{
	if (fake_start())
		return -1;
	fake_set_cdev(true);
	devices = "vfio:" A;
	return open_device(state);
}

static int end(void **state)
{
	close_device(state);
	if (fake.n_files || fake.n_mmaps || fake.n_maps) {
		fprintf(stderr, "%d files, %d mmaps, %d DMA mappings are left\n", fake.n_files,
			fake.n_mmaps, fake.n_maps);
		return -1;
	}
	fake_stop();
	return 0;
}

static void identity_is_the_functions(void **state)
{
	struct hal_device_info info;
	struct err err;

	(void)state;
	assert_int_equal(hal_device_info(hal, 0, &info, &err), 0);
	assert_int_equal(info.kind, HAL_KIND_VFIO);
	assert_true(info.is_model);
	assert_true(info.can_open);
	assert_int_equal(info.hbm_bytes, FAKE_HBM);
	assert_string_equal(info.bus_id, A);
	assert_string_equal(info.driver, "vfio-pci");
	assert_string_equal(info.state, "ready");
	assert_int_equal(info.numa_node, 0);
}

static void pinned_memory_is_reached_by_dma(void **state)
{
	struct hal_queue *q = hal_device_queue(dev, HAL_QUEUE_DMA);
	struct hal_mem *host, *m = get(5 << 20);
	uint64_t value, bytes = 5 << 20;
	uint8_t *got = malloc(bytes);
	struct err err;

	(void)state;
	assert_int_equal(hal_mem_alloc(dev, HAL_MEM_HOST, bytes, "in", &host, &err), 0);
	for (uint64_t i = 0; i < bytes; i++)
		((uint8_t *)hal_mem_host(host))[i] = (uint8_t)(i * 31 + i / 4096);
	assert_int_equal(hal_queue_copy(q, m, 0, host, 0, bytes, NULL, 0, &value, &err), 0);
	assert_int_equal(hal_queue_wait(q, value, clock_after(5 * SECOND), &err), 0);
	assert_int_equal(hal_copy_out(got, m, 0, bytes, CLOCK_FOREVER, &err), 0);
	assert_memory_equal(hal_mem_host(host), got, bytes);
	free(got);
	hal_mem_free(host);
	hal_mem_free(m);
}

static void two_functions_work_side_by_side(void **state)
{
	char both[2][100];
	struct hal_device_info info;
	struct hal_device *d;
	struct hal *h;
	struct err err;

	(void)state;
	snprintf(both[0], sizeof(both[0]), "%s" A "," B, kind);
	snprintf(both[1], sizeof(both[1]), "%s" A ",%s" B, kind, kind);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(hal_create(&(struct hal_options){ .devices = both[i] }, &h,
					    &err), 0);
		assert_int_equal(hal_device_count(h), 2);
		if (hal_device_open(h, 1, &d, &err))
			fail_msg("%s", err.msg);
		assert_int_equal(hal_device_info(h, 1, &info, &err), 0);
		assert_string_equal(info.bus_id, B);
		hal_destroy(h);
	}
}

static void unnamed_functions_are_found(void **state)
{
	struct hal_device_info info;
	struct hal *h;
	struct err err;

	(void)state;
	assert_int_equal(hal_create(&(struct hal_options){ .devices = "" }, &h, &err), 0);
	assert_int_equal(hal_device_count(h), 2);
	assert_int_equal(hal_device_info(h, 0, &info, &err), 0);
	assert_string_equal(info.bus_id, A);
	assert_true(info.can_open);
	hal_destroy(h);
	/* Another device of our vendor, and ours of another's, are not. */
	for (unsigned i = 0; i < 2; i++) {
		const char *file = i ? "/sys/bus/pci/devices/0000:%02x:00.0/vendor" :
				       "/sys/bus/pci/devices/0000:%02x:00.0/device";

		fake_write(fake_path(file, 2), "0x4321\n");
		assert_int_equal(hal_create(&(struct hal_options){ .devices = "" }, &h, &err), 0);
		assert_int_equal(hal_device_count(h), 1);
		hal_destroy(h);
		fake_write(fake_path(file, 2), i ? "0x1234\n" : "0x7e55\n");
	}
}

/* What libpci can't read hides nothing else, and is given back (LeakSanitizer sees to it). */
static void a_function_that_goes_hides_no_other(void **state)
{
	static const char *const files[] = { "vendor", "device", "resource" };
	static const char *const strange[] = { "nonsense", "0000:00:1f" };
	char file[300], folder[300], command[700];
	struct hal *h;
	struct err err;

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		snprintf(file, sizeof(file), "/sys/bus/pci/devices/" A "/%s", files[i]);
		snprintf(file, sizeof(file), "%s", fake_path(file, 0));
		assert_int_equal(rename(file, fake_path("/hidden", 0)), 0);
		assert_int_equal(hal_create(&(struct hal_options){ .devices = "" }, &h, &err), 0);
		assert_int_equal(hal_device_count(h), 1);
		hal_destroy(h);
		assert_int_equal(rename(fake_path("/hidden", 0), file), 0);
	}
	for (unsigned i = 0; i < 2; i++) {
		snprintf(file, sizeof(file), "/sys/bus/pci/devices/%s/vendor", strange[i]);
		fake_write(fake_path(file, 0), "0x1234\n");
	}
	assert_int_equal(hal_create(&(struct hal_options){ .devices = "" }, &h, &err), 0);
	assert_int_equal(hal_device_count(h), 2);
	hal_destroy(h);
	/* A machine without PCI has the model. */
	snprintf(folder, sizeof(folder), "%s", fake_path("/sys/bus/pci/devices", 0));
	assert_int_equal(rename(folder, fake_path("/hidden", 0)), 0);
	assert_int_equal(hal_create(&(struct hal_options){ .devices = "" }, &h, &err), 0);
	assert_int_equal(hal_device_count(h), 1);
	hal_destroy(h);
	assert_int_equal(rename(fake_path("/hidden", 0), folder), 0);
	snprintf(command, sizeof(command), "cd %s && rm -r %s %s", folder, strange[0], strange[1]);
	fake_run(command);
}

static void a_kernel_that_cannot_add_vectors_is_fine(void **state)
{
	struct vfio *v;
	struct err err;
	int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

	(void)state;
	for (int resizes = 0; resizes < 2; resizes++) {
		fake.resizes = resizes;
		assert_int_equal(vfio_open(&domains, B, way, &v, &err), 0);
		for (unsigned i = 0; i < HW_MAX_VECTORS; i += 3)
			if (vfio_irq_fd(v, VFIO_MSIX, i, fd, &err))
				fail_msg("vector %u: %s", i, err.msg);
		for (unsigned i = 0; i < HW_MAX_VECTORS; i++)
			assert_int_equal(fake.device[1].irq[i] >= 0, i % 3 == 0);
		assert_int_equal(vfio_irq_fd(v, VFIO_MSIX, HW_MAX_VECTORS, fd, &err),
				 ERR_OUT_OF_RANGE);
		for (unsigned i = 0; i < HW_MAX_VECTORS; i++)
			assert_int_equal(vfio_irq_fd(v, VFIO_MSIX, i, -1, &err), 0);
		assert_int_equal(fake.device[1].n_irqs, 0);
		vfio_close(v);
	}
	close(fd);
	fake_be_good();
}

static void addresses_come_from_the_ranges(void **state)
{
	static uint8_t memory[64 * 4096] __attribute__((aligned(4096)));
	uint64_t iova[3];
	struct vfio *v;
	struct err err;

	(void)state;
	assert_int_equal(vfio_open(&domains, B, VFIO_WITH_IOMMU, &v, &err), 0);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(vfio_dma_map(v, memory + 16 * 4096 * i, 16 * 4096, &iova[i],
					      &err), 0);
	assert_true(iova[0] >= 1 << 20);
	assert_int_equal(iova[1], iova[0] + 16 * 4096);
	assert_int_equal(vfio_dma_unmap(v, iova[0] + 4096, &err), ERR_NOT_FOUND);
	assert_int_equal(vfio_dma_unmap(v, iova[1], &err), 0);
	assert_int_equal(vfio_dma_map(v, memory, 4096, &iova[0], &err), 0);
	assert_int_equal(iova[0], iova[1]);
	assert_int_equal(vfio_dma_map(v, memory, 100, &iova[0], &err), ERR_INVALID_ARGUMENT);
	vfio_close(v);
	assert_int_equal(fake.n_maps > 0, dev != NULL);
}

static void spaces_avoid_holes(void **state)
{
	const struct vfio_range ranges[] = { { 0, 0x1fffff }, { 0x80000000, 0x80ffffff } };
	const struct vfio_range wrong[] = { { 0, 0x1fffff }, { 0x100000, 0x80ffffff } };
	struct vfio_area a[3];
	struct vfio_space s = { .n_ranges = 0 };
	struct err err;

	(void)state;
	assert_false(vfio_space_set(&s, wrong, 2));
	assert_true(vfio_space_set(&s, ranges, 2));
	assert_int_equal(vfio_space_take(&s, &a[0], 0x100000, 0, &err), 0);
	assert_int_equal(a[0].iova, 0x100000);
	assert_int_equal(vfio_space_take(&s, &a[1], 0x400000, 0x7f0000123000, &err), 0);
	assert_int_equal(a[1].iova, 0x80123000);
	assert_int_equal(vfio_space_take(&s, &a[2], 0x1000000, 0, &err), ERR_RESOURCE_EXHAUSTED);
	assert_int_equal(vfio_space_take(&s, &a[2], ~4095ull, 0, &err), ERR_RESOURCE_EXHAUSTED);
	assert_ptr_equal(vfio_space_drop(&s, 0x100000), &a[0]);
	assert_ptr_equal(vfio_space_drop(&s, 0x80123000), &a[1]);
	assert_int_equal(vfio_space_take(&s, &a[0], 4096, 0x1000, &err), 0);
	assert_int_equal(a[0].iova, 0x100000);
	assert_int_equal(vfio_space_take(&s, &a[1], 0x400000, 0x7f0000123000, &err), 0);
	assert_int_equal(a[1].iova, 0x80123000);
	assert_ptr_equal(vfio_space_drop(&s, 0x100000), &a[0]);
	assert_null(vfio_space_drop(&s, 0x100000));
	assert_ptr_equal(vfio_space_drop(&s, 0x80123000), &a[1]);
	/* One behind the other, and a range that ends within a page. */
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(vfio_space_take(&s, &a[i], 4096, 0x5000 + 4096 * i, &err), 0);
		assert_int_equal(a[i].iova, 0x100000 + 4096 * i);
	}
	s = (struct vfio_space){ 0 };
	assert_true(vfio_space_set(&s, &(struct vfio_range){ 0x100000, 0x101ffe }, 1));
	assert_int_equal(vfio_space_take(&s, &a[0], 0x2000, 0, &err), ERR_RESOURCE_EXHAUSTED);
	assert_int_equal(vfio_space_take(&s, &a[0], 0x1000, 0, &err), 0);
}

/* The limit counts what is mapped now, all of it, and the kernel's refusals are heard. */
static void pinned_memory_is_counted(void **state)
{
	static uint8_t memory[2 * 4096] __attribute__((aligned(4096)));
	uint64_t iova;
	struct vfio *v;
	struct err err;

	(void)state;
	assert_int_equal(vfio_open(&domains, B, way, &v, &err), 0);
	/* What others of this process have pinned, and a page. */
	for (fake.memlock = 4096; vfio_dma_map(v, memory, 4096, &iova, &err);
	     fake.memlock += 4096)
		assert_true(fake.memlock < 1ull << 32);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(vfio_dma_unmap(v, iova, &err), 0);
		assert_int_equal(vfio_dma_map(v, memory, 8192, &iova, &err),
				 ERR_RESOURCE_EXHAUSTED);
		assert_non_null(strstr(err.msg, "RLIMIT_MEMLOCK"));
		assert_int_equal(vfio_dma_map(v, memory, 4096, &iova, &err), 0);
	}
	/* A mapping that is not there any more. */
	assert_int_equal(fake_dma_unmap(v->domain->container, iova, 4096), 4096);
	assert_int_not_equal(vfio_dma_unmap(v, iova, &err), 0);
	vfio_close(v);
	fake_be_good();
}

/* Who holds addresses must find the memory there after a reset. */
static void memory_keeps_its_address_over_resets(void **state)
{
	struct hal_queue *q = hal_device_queue(dev, HAL_QUEUE_DMA);
	struct hal_mem *host[3], *m = get(3 << 20);
	uint64_t value, bytes = 3 << 20;
	uint8_t *got = malloc(bytes);
	struct err err;

	(void)state;
	for (int i = 0; i < 3; i++)
		assert_int_equal(hal_mem_alloc(dev, HAL_MEM_HOST, bytes, "in", &host[i], &err),
				 0);
	memset(hal_mem_host(host[2]), 0x6b, bytes);
	hal_mem_free(host[0]);
	hal_mem_free(host[1]);
	assert_int_equal(hal_device_reset(dev, &err), 0);
	assert_int_equal(hal_queue_copy(q, m, 0, host[2], 0, bytes, NULL, 0, &value, &err), 0);
	if (hal_queue_wait(q, value, clock_after(5 * SECOND), &err))
		fail_msg("%s", err.msg);
	assert_int_equal(hal_copy_out(got, m, 0, bytes, CLOCK_FOREVER, &err), 0);
	assert_memory_equal(hal_mem_host(host[2]), got, bytes);
	free(got);
	hal_mem_free(host[2]);
	hal_mem_free(m);
}

static void a_busy_kernel_resets_later(void **state)
{
	struct err err;

	(void)state;
	fake.busy_resets = 3;
	assert_int_equal(hal_device_reset(dev, &err), 0);
	assert_int_equal(fake.busy_resets, 0);
	executes_inline_and_on_the_engine(NULL);
}

/* What the kernel tells while a program spins. */
static void hear(int fd, const char *word, int reset_code)
{
	struct hal_queue *q = hal_device_queue(dev, HAL_QUEUE_COMPUTE);
	struct hal_exe *exe = load(spin, 2, 0);
	struct hal_mem *out = get(8);
	uint64_t value = run(exe, out, 0), one = 1;
	struct err err;

	assert_int_equal(write(fd, &one, sizeof(one)), sizeof(one));
	assert_int_equal(hal_queue_wait(q, value, clock_after(5 * SECOND), &err),
			 ERR_UNAVAILABLE);
	if (!strstr(err.msg, word) || !strstr(err.msg, A))
		fail_msg("%s", err.msg);
	assert_int_equal(hal_device_reset(dev, &err), reset_code);
	hal_exe_unload(exe);
	hal_mem_free(out);
}

static void a_link_error_ends_with_a_reset(void **state)
{
	(void)state;
	hear(fake.device[0].err_fd, "AER", 0);
	executes_inline_and_on_the_engine(NULL);
}

/* As by sysfs, behind which the kernel restores configuration space. No interrupt tells of it: work
 * that is pending is looked after once a second. */
static void a_reset_by_somebody_else_ends_what_runs(void **state)
{
	struct hal_queue *q = hal_device_queue(dev, HAL_QUEUE_COMPUTE);
	struct hal_exe *exe = load(spin, 2, 0);
	struct hal_mem *out = get(8);
	uint64_t value = run(exe, out, 0);
	struct err err;

	(void)state;
	sim_flr(fake_sim(0));
	assert_int_equal(hal_queue_wait(q, value, clock_after(5 * SECOND), &err), ERR_ABORTED);
	if (!strstr(err.msg, "somebody else reset the function") || !strstr(err.msg, A))
		fail_msg("%s", err.msg);
	assert_int_equal(hal_device_error(dev, &err), ERR_ABORTED);
	assert_int_equal(hal_device_reset(dev, &err), 0);
	hal_exe_unload(exe);
	hal_mem_free(out);
	executes_inline_and_on_the_engine(NULL);
}

static void a_device_that_is_wanted_back_is_lost(void **state)
{
	hear(fake.device[0].req_fd, "wants the device back", ERR_UNAVAILABLE);
	close_device(state);
	assert_int_equal(open_device(state), 0);
	executes_inline_and_on_the_engine(NULL);
}

static void without_mapped_memory_copies_are_staged(void **state)
{
	struct hal_mem *m;

	close_device(state);
	fake.sparse = true;
	assert_int_equal(open_device(state), 0);
	m = get(4096);
	assert_null(hal_mem_host(m));
	hal_mem_free(m);
	copies_move_bytes_on_the_queue_and_by_hand(NULL);
	strided_copies_follow_any_strides(NULL);
	close_device(state);
	fake_be_good();
	assert_int_equal(open_device(state), 0);
}

/* ---- what people are told ---- */

/* Opening `where` fails with `code`, and the text has the words. */
static void expect(const char *where, int code, const char *first, const char *second)
{
	struct hal *h;
	struct err err = { 0 };

	assert_null(open_at(where, 0, &h, &err));
	if (err.code != code || !strstr(err.msg, first) || !strstr(err.msg, second) ||
	    strlen(err.msg) >= ERR_MSG_BYTES - 1)
		fail_msg("%s: %s", err_name(err.code), err.msg);
	fake_be_good();
}

static void wrong_names_say_what_to_do(void **state)
{
	(void)state;
	expect("vfio:", ERR_INVALID_ARGUMENT, "lspci", "0000:01:00.0");
	expect("vfio:banana", ERR_INVALID_ARGUMENT, "banana", "lspci");
	expect("vfio:0000:09:00.0", ERR_NOT_FOUND, "0000:09:00.0", "lspci");
	expect("vfio:" A ",sim", ERR_INVALID_ARGUMENT, "sim", "lspci");
	fake_write(fake_path("/sys/bus/pci/devices/0000:09:00.0/vendor", 0), "0x8086\n");
	expect("vfio:0000:09:00.0", ERR_INVALID_ARGUMENT, "8086", "1234:7e55");
	fake.id = 0xffffffff;
	expect("vfio:" B, ERR_FAILED_PRECONDITION, "ffff:ffff", "1234:7e55");
}

static void drivers_that_are_in_the_way_are_named(void **state)
{
	char link[300], module[300];

	(void)state;
	snprintf(link, sizeof(link), "%s",
		 fake_path("/sys/bus/pci/devices/0000:%02x:00.0/driver", 2));
	fake_link("../../../../bus/pci/drivers/tessera", link);
	expect("vfio:" B, ERR_FAILED_PRECONDITION, "driver tessera",
	       "sudo tessera-vfio-bind 0000:02:00.0");
	unlink(link);
	expect("vfio:" B, ERR_FAILED_PRECONDITION, "no driver",
	       "sudo tessera-vfio-bind 0000:02:00.0");
	snprintf(module, sizeof(module), "%s", fake_path("/sys/bus/pci/drivers/vfio-pci", 0));
	assert_int_equal(rename(module, fake_path("/hidden", 0)), 0);
	expect("vfio:" B, ERR_FAILED_PRECONDITION, "sudo modprobe vfio-pci", "CONFIG_VFIO_PCI");
	assert_int_equal(rename(fake_path("/hidden", 0), module), 0);
	fake_link("../../../../bus/pci/drivers/vfio-pci", link);
}

static void a_missing_iommu_is_named(void **state)
{
	char link[300], target[100];
	ssize_t n;

	(void)state;
	snprintf(link, sizeof(link), "%s",
		 fake_path("/sys/bus/pci/devices/0000:%02x:00.0/iommu_group", 2));
	n = readlink(link, target, sizeof(target) - 1);
	assert_true(n > 0);
	target[n] = 0;
	unlink(link);
	expect("vfio:" B, ERR_FAILED_PRECONDITION, "VT-d", "intel_iommu=on");
	fake_link(target, link);
	/* A group without one counts as none, and only its own name opens it. */
	fake_write(fake_path("/sys/kernel/iommu_groups/%u/name", 13), "vfio-noiommu\n");
	expect("vfio:" B, ERR_FAILED_PRECONDITION, "VT-d", "intel_iommu=on");
	unlink(fake_path("/sys/kernel/iommu_groups/%u/name", 13));
	expect("vfio-noiommu:" B, ERR_FAILED_PRECONDITION, "has an IOMMU", "vfio:0000:02:00.0");
}

/* By one that is left open nobody else could open the function after its parent's end. */
static void a_child_of_fork_has_no_file_of_the_function(void **state)
{
	unsigned n_open = 0, n_left = 0;
	int status;
	pid_t pid;

	(void)state;
	for (int fd = 0; fd < FAKE_FDS; fd++)
		n_open += fake.file[fd].kind && fake.file[fd].kind < FAKE_PAGEMAP;
	assert_true(n_open);
	pid = fork();
	if (!pid) {
		for (int fd = 0; fd < FAKE_FDS; fd++)
			n_left += fake.file[fd].kind && fake.file[fd].kind < FAKE_PAGEMAP &&
				  fcntl(fd, F_GETFD) >= 0;
		_exit((int)n_left);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* Nor has one that a thread forks while another opens, maps or closes them. */
static void a_child_of_the_moment_has_no_file_of_the_function(void **state)
{
	struct hal_device *got;
	unsigned n, n_kept;
	struct err err;
	char where[40];
	struct hal *h;

	(void)state;
	snprintf(where, sizeof(where), "%s" B, kind);
	forks.on = true;
	got = open_at(where, 0, &h, &err);
	hal_destroy(h);
	n = forks_end(&n_kept);
	assert_non_null(got);
	assert_true(n >= 3);
	assert_int_equal(n_kept, 0);
}

static void permissions_are_named(void **state)
{
	(void)state;
	fake.open_errno = EACCES;
	expect("vfio:" B, ERR_PERMISSION_DENIED, "70-tessera.rules", "usermod -aG render");
	fake.open_errno = ENOENT;
	expect("vfio:" B, ERR_FAILED_PRECONDITION, "is missing", "modprobe -a vfio");
}

static void holders_are_named(void **state)
{
	char path[300], self[100];

	(void)state;
	fake.open_errno = EBUSY;
	expect("vfio:" B, ERR_FAILED_PRECONDITION, "another process", "fuser");
	fake_write(fake_path("/proc/4321/comm", 0), "trainer\n");
	fake_write(fake_path("/proc/4321/fd/none", 0), "");
	snprintf(path, sizeof(path), "%s", fake_path("/proc/4321/fd/7", 0));
	fake_link(fake_path("/dev/vfio/%u", 13), path);
	fake.open_errno = EBUSY;
	if (!access(fake_path("/dev/iommu", 0), F_OK))
		fake_link(fake_path("/dev/vfio/devices/vfio%u", 1), path);
	expect("vfio:" B, ERR_FAILED_PRECONDITION, "process 4321 (trainer)", "kill 4321");
	snprintf(self, sizeof(self), "rm -rf %s/proc/4321", fake.root);
	fake_run(self);
}

static void kernels_that_lack_something_are_named(void **state)
{
	bool cdev = !access(fake_path("/dev/iommu", 0), F_OK);

	(void)state;
	fake.can_reset = false;
	expect("vfio:" B, ERR_FAILED_PRECONDITION, "reset", "reset_method");
	fake.bar0_bytes = 4096;
	expect("vfio:" B, ERR_FAILED_PRECONDITION, "BAR0", "pci=realloc");
	fake.memlock = 64 << 10;
	expect("vfio:" B, ERR_RESOURCE_EXHAUSTED, "RLIMIT_MEMLOCK is 64 KiB",
	       "ulimit -l unlimited");
	fake.map_errno = ENOSPC;
	expect("vfio:" B, ERR_RESOURCE_EXHAUSTED, B, "dma_entry_limit");
	fake.map_errno = ENOMEM;
	fake.memlock = 1ull << 40;
	expect("vfio:" B, ERR_RESOURCE_EXHAUSTED, "limits.d", "LimitMEMLOCK=infinity");
	if (cdev) {
		fake.bind_errno = EINVAL;
		expect("vfio:" B, ERR_FAILED_PRECONDITION, "another process", "fuser");
		fake.bind_errno = EPERM;
		expect("vfio:" B, ERR_FAILED_PRECONDITION, "not viable", "tessera-vfio-bind");
		fake.attach_errno = EPERM;
		expect("vfio:" B, ERR_FAILED_PRECONDITION, "remap interrupts",
		       "iommufd/parameters/allow_unsafe_interrupts");
		return;
	}
	fake.version = 1;
	expect("vfio:" B, ERR_FAILED_PRECONDITION, "version", "0");
	fake.type1 = false;
	expect("vfio:" B, ERR_FAILED_PRECONDITION, "modprobe", "vfio_iommu_type1");
	fake.set_iommu_errno = EPERM;
	expect("vfio:" B, ERR_FAILED_PRECONDITION, "remap interrupts",
	       "vfio_iommu_type1/parameters/allow_unsafe_interrupts");
}

static void neighbours_in_the_group_are_named(void **state)
{
	char dir[300];

	(void)state;
	if (!access(fake_path("/dev/iommu", 0), F_OK))
		return;
	fake.viable = false;
	expect("vfio:" B, ERR_FAILED_PRECONDITION, "not viable", "tessera-vfio-bind");
	snprintf(dir, sizeof(dir), "%s",
		 fake_path("/sys/kernel/iommu_groups/%u/devices/0000:02:00.1/none", 13));
	fake_write(dir, "");
	fake_link("../../../../../bus/pci/drivers/snd_hda_intel",
		  fake_path("/sys/kernel/iommu_groups/%u/devices/0000:02:00.1/driver", 13));
	fake.viable = false;
	expect("vfio:" B, ERR_FAILED_PRECONDITION, "0000:02:00.1 of snd_hda_intel",
	       "sudo tessera-vfio-bind 0000:02:00.1");
}

static void a_second_opening_is_refused(void **state)
{
	struct hal *h;
	struct err err;

	(void)state;
	assert_null(open_at(devices, 0, &h, &err));
	assert_int_equal(err.code, ERR_FAILED_PRECONDITION);
	assert_non_null(strstr(err.msg, A));
}

/* ---- every call failing once ---- */

static unsigned count_files(void)
{
	DIR *d = opendir("/proc/self/fd");
	unsigned n = 0;

	while (d && readdir(d))
		n++;
	closedir(d);
	return n;
}

/* A short life of a device; 0, or the error. */
static int live(struct err *err)
{
	struct hal_mem *out = NULL, *host = NULL;
	struct hal *h = NULL;
	char where[40];
	uint64_t value;
	int code;

	snprintf(where, sizeof(where), "%s" B, kind);
	code = hal_create(&(struct hal_options){ .devices = where }, &h, err);
	if (code)
		return code;
	code = hal_device_open(h, 0, &dev, err);
	if (!code)
		code = hal_mem_alloc(dev, HAL_MEM_HBM, 4096, "x", &out, err);
	if (!code)
		code = hal_mem_alloc(dev, HAL_MEM_HOST, 5 << 20, "y", &host, err);
	if (!code)
		code = hal_queue_fill(hal_device_queue(dev, HAL_QUEUE_DMA), out, 0, 4096, 1,
				      &value, err);
	if (!code)
		code = hal_queue_wait(hal_device_queue(dev, HAL_QUEUE_DMA), value,
				      clock_after(5 * SECOND), err);
	if (!code)
		code = hal_device_reset(dev, err);
	if (!code)
		hal_mem_free(host);
	hal_destroy(h);
	return code;
}

static void any_call_may_fail(void **state)
{
	static const int errors[] = { EIO, ENOMEM, EINVAL };
	struct hal_device *saved = dev;
	int files = fake.n_files, mmaps = fake.n_mmaps, maps = fake.n_maps, failed = 0;
	unsigned open_files;
	struct err err;
	long n;

	(void)state;
	dev = NULL;
	assert_int_equal(live(&err), 0);
	open_files = count_files();
	for (n = 1; ; n++) {
		long before = atomic_load(&fake.calls);
		int64_t began = clock_ns();
		int code;

		err = (struct err){ 0 };
		fake.fail_errno = errors[n % 3];
		atomic_store(&fake.fail_at, before + n);
		code = live(&err);
		atomic_store(&fake.fail_at, 0);
		if (code && (code != err.code || !*err.msg))
			fail_msg("call %ld: code %d, \"%s\"", n, code, err.msg);
		if (fake.n_files != files || fake.n_mmaps != mmaps || fake.n_maps != maps ||
		    count_files() != open_files)
			fail_msg("call %ld leaves %d files, %d mmaps, %d maps (%s)", n,
				 fake.n_files - files, fake.n_mmaps - mmaps, fake.n_maps - maps,
				 err.msg);
		if (clock_ns() - began > 8 * SECOND)
			fail_msg("call %ld: no end before a deadline (%s)", n, err.msg);
		failed += code != 0;
		if (atomic_load(&fake.calls) - before < n)
			break;
	}
	/* All that comes before the device runs, and much behind it. */
	assert_true(n > 60);
	assert_true(failed > 40);
	dev = NULL;
	assert_int_equal(live(&err), 0);
	dev = saved;
}

#include "tests/unit/hal/hal_vfio_bare_cases.c"

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(identity_is_the_functions),
		DEVICE_TESTS,
		cmocka_unit_test(pinned_memory_is_reached_by_dma),
		cmocka_unit_test(two_functions_work_side_by_side),
		cmocka_unit_test(unnamed_functions_are_found),
		cmocka_unit_test(a_function_that_goes_hides_no_other),
		cmocka_unit_test(a_kernel_that_cannot_add_vectors_is_fine),
		cmocka_unit_test(addresses_come_from_the_ranges),
		cmocka_unit_test(spaces_avoid_holes),
		cmocka_unit_test(pinned_memory_is_counted),
		cmocka_unit_test(memory_keeps_its_address_over_resets),
		cmocka_unit_test(a_busy_kernel_resets_later),
		cmocka_unit_test(a_link_error_ends_with_a_reset),
		cmocka_unit_test(a_reset_by_somebody_else_ends_what_runs),
		cmocka_unit_test(a_device_that_is_wanted_back_is_lost),
		cmocka_unit_test(without_mapped_memory_copies_are_staged),
		cmocka_unit_test(wrong_names_say_what_to_do),
		cmocka_unit_test(drivers_that_are_in_the_way_are_named),
		cmocka_unit_test(a_missing_iommu_is_named),
		cmocka_unit_test(permissions_are_named),
		cmocka_unit_test(holders_are_named),
		cmocka_unit_test(kernels_that_lack_something_are_named),
		cmocka_unit_test(neighbours_in_the_group_are_named),
		cmocka_unit_test(a_second_opening_is_refused),
		cmocka_unit_test(a_child_of_fork_has_no_file_of_the_function),
		cmocka_unit_test(a_child_of_the_moment_has_no_file_of_the_function),
		cmocka_unit_test(any_call_may_fail),
	};
	const struct CMUnitTest bare_tests[] = {
		cmocka_unit_test(identity_is_the_functions),
		DEVICE_TESTS,
		cmocka_unit_test(pinned_memory_is_reached_by_dma),
		cmocka_unit_test(two_functions_work_side_by_side),
		cmocka_unit_test(a_kernel_that_cannot_add_vectors_is_fine),
		cmocka_unit_test(memory_keeps_its_address_over_resets),
		cmocka_unit_test(a_busy_kernel_resets_later),
		cmocka_unit_test(a_link_error_ends_with_a_reset),
		cmocka_unit_test(a_reset_by_somebody_else_ends_what_runs),
		cmocka_unit_test(a_device_that_is_wanted_back_is_lost),
		cmocka_unit_test(without_mapped_memory_copies_are_staged),
		cmocka_unit_test(a_second_opening_is_refused),
		cmocka_unit_test(a_child_of_fork_has_no_file_of_the_function),
		cmocka_unit_test(a_child_of_the_moment_has_no_file_of_the_function),
		BARE_TESTS,
		cmocka_unit_test(any_call_may_fail),
	};
	int failed = cmocka_run_group_tests_name("group and type 1", tests, begin_group, end);

	failed += cmocka_run_group_tests_name("device file and iommufd", tests, begin_cdev, end);
	kind = "vfio-noiommu:";
	way = VFIO_WITHOUT_IOMMU;
	return failed + cmocka_run_group_tests_name("without an IOMMU", bare_tests, begin_bare,
						    end);
}
