/* SPDX-License-Identifier: Apache-2.0 */
/* Without an IOMMU: memory in pieces, what memory is taken, and what people are told.
 * Part of hal_vfio_test.c. */
#include "hal/bus.h"
#include "hal/transport.h"

#define HUGE_AT_ONCE 8u
#define MANY 40u

static int begin_bare(void **state)
{
	if (fake_start())
		return -1;
	fake_set_bare(true);
	devices = "vfio-noiommu:" A;
	return open_device(state);
}

static void *huge_pages(size_t bytes)
{
	void *p = fake_mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS |
			    MAP_HUGETLB, -1, 0);

	assert_ptr_not_equal(p, MAP_FAILED);
	return p;
}

static unsigned count_huge(void)
{
	unsigned n = 0;

	for (unsigned i = 0; i < FAKE_HUGE_PAGES; i++)
		n += fake.huge[i].host != NULL;
	return n;
}

static void long_memory_is_found_piece_by_piece(void **state)
{
	uint64_t bytes = HUGE_AT_ONCE * FAKE_HUGE - 4096, iova, n, longest = 0;
	unsigned pieces = 0;
	struct vfio *v;
	struct err err;
	void *p;

	(void)state;
	assert_int_equal(vfio_open(&domains, B, VFIO_WITHOUT_IOMMU, &v, &err), 0);
	assert_int_equal(vfio_bare_pages(v, &bytes, &p, &err), 0);
	assert_int_equal(bytes, HUGE_AT_ONCE * FAKE_HUGE);
	/* It may begin and end within a page. */
	assert_int_equal(vfio_dma_map(v, (uint8_t *)p + 8192, bytes - 3 * 4096, &iova, &err), 0);
	for (uint64_t at = 0; at < bytes - 3 * 4096; at += n, pieces++) {
		uint64_t physical = vfio_bare_address(v, iova, at, &n);
		struct fake_huge *h = fake_find_huge(physical);

		assert_true(n);
		assert_non_null(h);
		assert_ptr_equal(h->host + (physical - h->physical), (uint8_t *)p + 8192 + at);
		h = fake_find_huge(physical + n - 1);
		assert_non_null(h);
		assert_ptr_equal(h->host + (physical + n - 1 - h->physical),
				 (uint8_t *)p + 8192 + at + n - 1);
		longest = n > longest ? n : longest;
	}
	assert_true(pieces > 2 && pieces < HUGE_AT_ONCE);
	assert_int_equal(longest, 2 * FAKE_HUGE);
	vfio_bare_address(v, iova, bytes - 3 * 4096, &n);
	assert_int_equal(n, 0);
	vfio_bare_address(v, iova + 4096, 0, &n);
	assert_int_equal(n, 0);
	assert_int_equal(vfio_dma_unmap(v, iova, &err), 0);
	vfio_bare_free(v, p, bytes);
	vfio_close(v);
}

/* Whoever closes it frees memory next: it does not rely on the kernel. */
static void a_closed_device_was_cut_off_before(void **state)
{
	unsigned before = fake.n_left_on;
	struct vfio *v;
	struct err err;

	(void)state;
	assert_int_equal(vfio_open(&domains, B, VFIO_WITHOUT_IOMMU, &v, &err), 0);
	assert_int_equal(vfio_enable(v, &err), 0);
	assert_int_equal(fake.device[1].command & 4, 4);
	vfio_close(v);
	assert_int_equal(fake.n_left_on, before);
}

static void copies_cross_from_piece_to_piece(void **state)
{
	uint64_t bytes = 6 * FAKE_HUGE, value = 0;
	struct hal_queue *q = hal_device_queue(dev, HAL_QUEUE_DMA);
	struct hal_mem *host, *m = get(8192);
	uint8_t *at, got[8192];
	struct err err;

	(void)state;
	assert_int_equal(hal_mem_alloc(dev, HAL_MEM_HOST, bytes, "in", &host, &err), 0);
	at = hal_mem_host(host);
	for (uint64_t i = 0; i < bytes; i++)
		at[i] = (uint8_t)(i * 31 + i / 4096);
	for (unsigned i = 1; i < 6; i++) {
		uint64_t edge = i * FAKE_HUGE;

		assert_int_equal(hal_queue_copy(q, m, 0, host, edge - 4001, 8001, NULL, 0, &value,
						&err), 0);
		assert_int_equal(hal_queue_wait(q, value, clock_after(5 * SECOND), &err), 0);
		assert_int_equal(hal_copy_out(got, m, 0, 8001, CLOCK_FOREVER, &err), 0);
		assert_memory_equal(got, at + edge - 4001, 8001);
		memset(at + edge - 100, 0, 200);
		assert_int_equal(hal_queue_copy(q, host, edge - 99, m, 4001 - 99, 198, NULL, 0,
						&value, &err), 0);
		assert_int_equal(hal_queue_wait(q, value, clock_after(5 * SECOND), &err), 0);
		assert_memory_equal(at + edge - 99, got + 4001 - 99, 198);
		assert_int_equal(at[edge - 100] | at[edge + 99], 0);
	}
	hal_mem_free(host);
	hal_mem_free(m);
}

/* A program's operand has to be in one piece; a large buffer leaves room that is not. */
static void small_buffers_are_in_one_piece(void **state)
{
	struct hal_mem *large, *m[MANY];
	struct hal_queue *q = hal_device_queue(dev, HAL_QUEUE_COMPUTE);
	struct hal_exe *exe = load(store_42, 3, 0);
	struct err err;

	(void)state;
	assert_int_equal(hal_mem_alloc(dev, HAL_MEM_HOST, 5 * FAKE_HUGE, "x", &large, &err), 0);
	hal_mem_free(large);
	for (unsigned i = 0; i < MANY; i++) {
		uint64_t first;

		assert_int_equal(hal_mem_alloc(dev, HAL_MEM_HOST, 200 << 10, "y", &m[i], &err),
				 0);
		first = (uintptr_t)hal_mem_host(m[i]);
		assert_int_equal(first / FAKE_HUGE, (first + (200 << 10) - 1) / FAKE_HUGE);
	}
	assert_int_equal(hal_queue_wait(q, run(exe, m[MANY - 1], 0), clock_after(5 * SECOND),
					&err), 0);
	assert_int_equal(*(uint64_t *)hal_mem_host(m[MANY - 1]), 42);
	for (unsigned i = 0; i < MANY; i++)
		hal_mem_free(m[i]);
	hal_exe_unload(exe);
}

static uint64_t physical_of(const uint8_t *host)
{
	for (unsigned i = 0; i < FAKE_HUGE_PAGES; i++)
		if (fake.huge[i].host && (uintptr_t)(host - fake.huge[i].host) < FAKE_HUGE)
			return fake.huge[i].physical + (uint64_t)(host - fake.huge[i].host);
	fail_msg("%p is in no huge page", (const void *)host);
	return 0;
}

/* Larger ones may be in several, which is told and hurts nobody. */
static void operands_in_several_pieces_are_refused(void **state)
{
	struct hal_queue *q = hal_device_queue(dev, HAL_QUEUE_COMPUTE);
	struct hal_exe *exe = load(store_42, 3, 0);
	struct hw_binding b[3] = { { 0, 0 }, { 0, 0 }, { 0, 0 } };
	struct hal_launch l = { .exe = exe, .bindings = b };
	uint64_t bytes = 4 * FAKE_HUGE, edge = FAKE_HUGE, value;
	struct hal_mem *m;
	uint8_t *host;
	struct err err;

	(void)state;
	assert_int_equal(hal_mem_alloc(dev, HAL_MEM_HOST, bytes, "x", &m, &err), 0);
	host = hal_mem_host(m);
	while (edge < bytes && physical_of(host + edge) == physical_of(host + edge - 1) + 1)
		edge += FAKE_HUGE;
	assert_true(edge < bytes);
	b[2] = (struct hw_binding){ hal_mem_va(m) + edge - 64, 128 };
	assert_int_equal(hal_queue_execute(q, &l, &value, &err), 0);
	assert_int_not_equal(hal_queue_wait(q, value, clock_after(5 * SECOND), &err), 0);
	if (!strstr(err.msg, "(MAP)") || !strstr(err.msg, "binding 2"))
		fail_msg("%s", err.msg);
	b[2].bytes = 64;
	assert_int_equal(hal_queue_execute(q, &l, &value, &err), 0);
	assert_int_equal(hal_queue_wait(q, value, clock_after(5 * SECOND), &err), 0);
	hal_mem_free(m);
	hal_exe_unload(exe);
}

static void memory_that_may_move_is_refused(void **state)
{
	struct hal_queue *q = hal_device_queue(dev, HAL_QUEUE_DMA);
	uint8_t *huge = huge_pages(2 * FAKE_HUGE), *p = aligned_alloc(4096, 16 << 10), got[100];
	int mmaps = fake.n_mmaps;
	struct hal_mem *m, *to = get(4096);
	uint64_t value;
	struct err err;

	(void)state;
	assert_int_equal(hal_mem_map(dev, p, 16 << 10, &m, &err), ERR_FAILED_PRECONDITION);
	if (!strstr(err.msg, "MAP_HUGETLB") || !strstr(err.msg, "may move") ||
	    strlen(err.msg) >= ERR_MSG_BYTES - 1)
		fail_msg("%s", err.msg);
	if (hal_mem_map(dev, huge + 4096, FAKE_HUGE, &m, &err))
		fail_msg("%s", err.msg);
	memset(huge + FAKE_HUGE, 0x5c, 4096);
	assert_int_equal(hal_queue_copy(q, to, 0, m, FAKE_HUGE - 4096, 100, NULL, 0, &value,
					&err), 0);
	assert_int_equal(hal_queue_wait(q, value, clock_after(5 * SECOND), &err), 0);
	assert_int_equal(hal_copy_out(got, to, 0, 100, CLOCK_FOREVER, &err), 0);
	assert_memory_equal(got, huge + FAKE_HUGE, 100);
	hal_mem_free(m);
	hal_mem_free(to);
	assert_int_equal(fake.n_mmaps, mmaps);
	/* Pages that can't be written are none to write to. */
	mprotect(p, 4096, PROT_READ);
	assert_int_not_equal(hal_mem_map(dev, p, 4096, &m, &err), 0);
	assert_non_null(strstr(err.msg, "writing"));
	mprotect(p, 4096, PROT_READ | PROT_WRITE);
	fake_munmap(huge, 2 * FAKE_HUGE);
	free(p);
}

/* Nothing but the device itself could stop it from writing to what is freed. */
static void a_device_that_does_not_let_go_is_cut_off(void **state)
{
	struct hal_queue *q = hal_device_queue(dev, HAL_QUEUE_COMPUTE);
	struct hal_exe *exe = load(spin, 2, 0);
	void *huge = huge_pages(FAKE_HUGE);
	struct hal_mem *m;
	uint64_t value;
	struct err err;

	(void)state;
	assert_int_equal(hal_mem_map(dev, huge, FAKE_HUGE, &m, &err), 0);
	value = run(exe, m, 0);
	while (hal_queue_wait(q, value, clock_after(SECOND / 100), &err) ==
	       ERR_DEADLINE_EXCEEDED && !(fake.device[0].command & 4))
		;
	assert_int_equal(fake.device[0].command & 4, 4);
	hal_mem_free(m);
	assert_int_equal(fake.device[0].command & 4, 0);
	fake_munmap(huge, FAKE_HUGE);
	assert_int_equal(hal_queue_wait(q, value, clock_after(5 * SECOND), &err),
			 ERR_UNAVAILABLE);
	if (!strstr(err.msg, "let go") || !strstr(err.msg, "reset"))
		fail_msg("%s", err.msg);
	assert_int_equal(hal_device_reset(dev, &err), 0);
	assert_int_equal(fake.device[0].command & 4, 4);
	hal_exe_unload(exe);
	executes_inline_and_on_the_engine(NULL);
}

static void lie(struct hal_transport *t, uint16_t what, uint64_t value)
{
	struct hw_sqe sqe = { .op = HW_INJECT, .id = what, .u.admin.value = value };
	struct err err;

	assert_int_equal(t->ops->ask(t, sqe, NULL, 0, NULL, &err), 0);
}

/* Who asks for a ring, or for memory to be mapped, and is told nonsense frees it next. */
static void a_device_that_may_have_taken_memory_is_cut_off(void **state)
{
	struct hal_direct_host host = { .bus = &hal_bus_vfio, .host = &domains };
	int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	const uint16_t *command = &fake.device[1].command;
	void *huge = huge_pages(FAKE_HUGE);
	struct hw_identify identity;
	struct hal_transport *t;
	struct hal_ring *ring;
	struct err err;
	uint64_t va;

	(void)state;
	assert_int_equal(hal_transport_direct.open(&host, "noiommu:" B, fd, &t, &identity, &err),
			 0);
	assert_int_equal(*command & 4, 4);
	lie(t, HW_INJECT_WRONG_VALUE, 4711);
	assert_int_equal(t->ops->ring_create(t, HW_CLASS_DMA, 8, &ring, &err), ERR_INTERNAL);
	assert_non_null(strstr(err.msg, "4711"));
	assert_int_equal(*command & 4, 0);
	assert_int_equal(t->ops->reset(t, &err), 0);
	assert_int_equal(*command & 4, 4);
	lie(t, HW_INJECT_WRONG_TAG, 1);
	assert_int_equal(t->ops->host_map(t, huge, FAKE_HUGE, &va, &err), ERR_INTERNAL);
	assert_int_equal(*command & 4, 0);
	assert_int_equal(t->ops->reset(t, &err), 0);
	/* Nor does one that died say what it took before. */
	lie(t, HW_INJECT_FATAL, 0);
	assert_int_equal(t->ops->host_map(t, huge, FAKE_HUGE, &va, &err), ERR_UNAVAILABLE);
	assert_int_equal(*command & 4, 0);
	assert_int_equal(t->ops->reset(t, &err), 0);
	assert_int_equal(*command & 4, 4);
	/* What refuses has nothing. */
	lie(t, HW_INJECT_WRONG_STATUS, HW_ST_NO_ROOM);
	assert_int_equal(t->ops->host_map(t, huge, FAKE_HUGE, &va, &err),
			 ERR_RESOURCE_EXHAUSTED);
	assert_int_equal(*command & 4, 4);
	assert_int_equal(t->ops->ring_create(t, HW_CLASS_DMA, 8, &ring, &err), 0);
	t->ops->ring_destroy(ring);
	t->ops->close(t);
	fake_munmap(huge, FAKE_HUGE);
	close(fd);
}

static void only_its_name_does_without_an_iommu(void **state)
{
	struct hal_device_info info;
	struct hal_device *d;
	struct hal *h;
	struct err err;

	(void)state;
	assert_int_equal(hal_create(&(struct hal_options){ .devices = "" }, &h, &err), 0);
	assert_int_equal(hal_device_count(h), 2);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(hal_device_info(h, i, &info, &err), 0);
		assert_false(info.can_open);
		assert_int_equal(hal_device_open(h, i, &d, &err), ERR_FAILED_PRECONDITION);
		assert_non_null(strstr(err.msg, "no IOMMU"));
	}
	hal_destroy(h);
	expect("vfio:" B, ERR_FAILED_PRECONDITION, "VT-d", "vfio-noiommu:" B);
}

static void only_root_does_without_an_iommu(void **state)
{
	(void)state;
	fake.is_root = false;
	expect("vfio-noiommu:" B, ERR_PERMISSION_DENIED, "CAP_SYS_RAWIO", B);
	fake.open_errno = EPERM;
	expect("vfio-noiommu:" B, ERR_PERMISSION_DENIED, "CAP_SYS_RAWIO", "run as root");
	fake.open_errno = EACCES;
	expect("vfio-noiommu:" B, ERR_PERMISSION_DENIED, "CAP_SYS_RAWIO", "vfio:" B);
	fake.set_iommu_errno = EPERM;
	expect("vfio-noiommu:" B, ERR_PERMISSION_DENIED, "CAP_SYS_RAWIO", "run as root");
	fake.admin = false;
	expect("vfio-noiommu:" B, ERR_PERMISSION_DENIED, "where memory is", "CAP_SYS_ADMIN");
}

static void a_mode_that_is_off_is_named(void **state)
{
	char link[300], group[300], target[100], mode[300];
	ssize_t n;

	(void)state;
	snprintf(mode, sizeof(mode), "%s",
		 fake_path("/sys/module/vfio/parameters/enable_unsafe_noiommu_mode", 0));
	snprintf(link, sizeof(link), "%s",
		 fake_path("/sys/bus/pci/devices/0000:%02x:00.0/driver", 2));
	snprintf(group, sizeof(group), "%s",
		 fake_path("/sys/bus/pci/devices/0000:%02x:00.0/iommu_group", 2));
	n = readlink(group, target, sizeof(target) - 1);
	assert_true(n > 0);
	target[n] = 0;
	unlink(group);
	/* Allowed, but the driver did not take it yet; or it lost its group. */
	expect("vfio-noiommu:" B, ERR_FAILED_PRECONDITION, "no group", "tessera-vfio-bind");
	unlink(link);
	expect("vfio-noiommu:" B, ERR_FAILED_PRECONDITION, "no driver", "tessera-vfio-bind");
	fake_write(mode, "N\n");
	expect("vfio-noiommu:" B, ERR_FAILED_PRECONDITION, "echo 1 | sudo tee /sys/module/vfio/"
	       "parameters/enable_unsafe_noiommu_mode", "tessera-vfio-bind " B);
	unlink(mode);
	expect("vfio-noiommu:" B, ERR_FAILED_PRECONDITION, "CONFIG_VFIO_NOIOMMU", "vfio:" B);
	fake_write(mode, "Y\n");
	fake_link("../../../../bus/pci/drivers/vfio-pci", link);
	fake_link(target, group);
	fake.mode_on = false;
	expect("vfio-noiommu:" B, ERR_FAILED_PRECONDITION, "allows no device", "echo 1");
}

static void a_lack_of_huge_pages_is_named(void **state)
{
	unsigned held = count_huge();

	(void)state;
	for (unsigned more = 0; more < 4; more++) {
		/* For none, for queue 0, for that and a ring, ... */
		fake.max_huge = held + more;
		expect("vfio-noiommu:" B, ERR_RESOURCE_EXHAUSTED, "3 of 64 are free",
		       "echo 97 | sudo tee /sys/kernel/mm/hugepages/hugepages-2048kB/"
		       "nr_hugepages");
	}
	fake.absent = true;
	expect("vfio-noiommu:" B, ERR_FAILED_PRECONDITION, "no page", "hugetlb.2MB.max");
}

static void a_holder_of_the_bare_group_is_named(void **state)
{
	char path[300], self[100];

	(void)state;
	fake_write(fake_path("/proc/4321/comm", 0), "trainer\n");
	fake_write(fake_path("/proc/4321/fd/none", 0), "");
	snprintf(path, sizeof(path), "%s", fake_path("/proc/4321/fd/7", 0));
	fake_link(fake_path("/dev/vfio/noiommu-%u", 13), path);
	fake.open_errno = EBUSY;
	expect("vfio-noiommu:" B, ERR_FAILED_PRECONDITION, "process 4321 (trainer)", "kill 4321");
	snprintf(self, sizeof(self), "rm -rf %s/proc/4321", fake.root);
	fake_run(self);
}

/* hal/README.md says how many pages a device takes; what counts as locked they are not. */
static void six_pages_and_no_locked_memory_are_taken(void **state)
{
	unsigned before = count_huge();
	struct hal_device *d;
	struct hal *h;
	struct err err;

	(void)state;
	fake.memlock = 64 << 10;
	d = open_at("vfio-noiommu:" B, 0, &h, &err);
	fake_be_good();
	if (!d)
		fail_msg("%s", err.msg);
	assert_int_equal(count_huge(), before + 6);
	hal_destroy(h);
	assert_int_equal(count_huge(), before);
}

#define BARE_TESTS \
	cmocka_unit_test(long_memory_is_found_piece_by_piece), \
	cmocka_unit_test(a_closed_device_was_cut_off_before), \
	cmocka_unit_test(copies_cross_from_piece_to_piece), \
	cmocka_unit_test(small_buffers_are_in_one_piece), \
	cmocka_unit_test(operands_in_several_pieces_are_refused), \
	cmocka_unit_test(memory_that_may_move_is_refused), \
	cmocka_unit_test(a_device_that_does_not_let_go_is_cut_off), \
	cmocka_unit_test(a_device_that_may_have_taken_memory_is_cut_off), \
	cmocka_unit_test(only_its_name_does_without_an_iommu), \
	cmocka_unit_test(only_root_does_without_an_iommu), \
	cmocka_unit_test(a_mode_that_is_off_is_named), \
	cmocka_unit_test(a_lack_of_huge_pages_is_named), \
	cmocka_unit_test(a_holder_of_the_bare_group_is_named), \
	cmocka_unit_test(six_pages_and_no_locked_memory_are_taken)
