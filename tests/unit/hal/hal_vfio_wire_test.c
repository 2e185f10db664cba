/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tessera-sim's messages, byte by byte: what each command answers, and what interrupts and
 * mappings do. What it survives is in hal_vfio_hostile_test.c, memory that it has to ask for in
 * hal_vfio_far_test.c.
 */
#include "tests/unit/vfio_client.h"

/* ---- what it says ---- */

static void version_fits_the_smallest_client(void **state)
{
	int fd = join();

	(void)state;
	assert_true(got.h.size <= 194);		/* QEMU's buffer for it */
	assert_int_equal(got.body[got.n - 1], 0);
	assert_memory_equal(got.body, "\0\0\0", 4);
	assert_non_null(strstr((char *)got.body + 4, "\"write_multiple\":true"));
	assert_int_equal(ask(fd, VFU_VERSION, offer, sizeof(offer), NULL, 0), EINVAL);
	close(fd);
	fd = dial();
	assert_int_equal(ask(fd, VFU_VERSION, "\1\0\0\0", 4, NULL, 0), ENOTSUP);
	assert_int_equal(ask(fd, VFU_VERSION, "\0\0\0\0{\"capabilities\"", 20, NULL, 0), EINVAL);
	assert_int_equal(ask(fd, VFU_VERSION, "\0\0\0\0", 4, NULL, 0), 0);
	close(fd);
}

/* As stock servers do: refused, and the next offer may be better. */
static void offers_that_make_no_sense_are_refused(void **state)
{
	static const char *const texts[] = {
		"[]", "\"x\"", "{\"capabilities\":23}", "{\"capabilities\":[]}",
		"{\"capabilities\":null}",
		"{\"capabilities\":{\"max_msg_fds\":\"foo\"}}",
		"{\"capabilities\":{\"max_msg_fds\":1.5}}",
		"{\"capabilities\":{\"max_msg_fds\":-1}}",
		"{\"capabilities\":{\"max_msg_fds\":0}}",
		"{\"capabilities\":{\"max_data_xfer_size\":0}}",
		"{\"capabilities\":{\"max_data_xfer_size\":[]}}",
		"{\"capabilities\":{\"max_data_xfer_size\":1e30}}",
		"{\"capabilities\":{\"migration\":\"23\"}}",
		"{\"capabilities\":{\"migration\":{\"pgsize\":\"foo\"}}}",
		"{\"capabilities\":{\"twin_socket\":1}}",
		"{{{{{{{{{{{{", "{\"a\":[[[[[[[[[[[[]]]]]]]]]]]]}",
	};
	static const char *const good[] = {
		"{}", "{\"other\":1}", "{\"capabilities\":{}}",
		"{\"capabilities\":{\"max_msg_fds\":1}}",
		"{\"capabilities\":{\"max_data_xfer_size\":9223372036854775807}}",
		"{\"capabilities\":{\"max_data_xfer_size\":18446744073709551615}}",
	};
	char body[200] = { 0 };
	int fd = dial(), e;

	(void)state;
	assert_int_equal(ask(fd, VFU_VERSION, NULL, 0, NULL, 0), EINVAL);
	assert_int_equal(ask(fd, VFU_VERSION, body, 3, NULL, 0), EINVAL);
	assert_int_equal(ask(fd, VFU_VERSION, "\0\0\0\0{}", 6, NULL, 0), EINVAL);	/* no NUL */
	assert_int_equal(ask(fd, VFU_VERSION, "\1\0\0\0{}", 7, NULL, 0), ENOTSUP);
	for (unsigned i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		strcpy(body + 4, texts[i]);
		if (ask(fd, VFU_VERSION, body, 5 + strlen(texts[i]), NULL, 0) != EINVAL)
			fail_msg("taken: %s", texts[i]);
	}
	e = eventfd(0, EFD_CLOEXEC);
	assert_int_equal(ask(fd, VFU_VERSION, offer, sizeof(offer), &e, 1), EINVAL);
	close(e);
	assert_int_equal(ask(fd, VFU_VERSION, offer, sizeof(offer), NULL, 0), 0);
	close(fd);
	for (unsigned i = 0; i < sizeof(good) / sizeof(*good); i++) {
		fd = dial();
		strcpy(body + 4, good[i]);
		if (ask(fd, VFU_VERSION, body, 5 + strlen(good[i]), NULL, 0))
			fail_msg("refused: %s", good[i]);
		close(fd);
	}
}

static void a_client_gets_no_more_than_it_takes(void **state)
{
	static const char few[] = "\0\0\0\0{\"capabilities\":{\"max_msg_fds\":1,"
		"\"max_data_xfer_size\":64}}";
	struct vfu_region_access a = { 0, 2, 65 };
	struct vfu_io_fds io = { .argsz = 4096 };
	int fd = dial();

	(void)state;
	assert_int_equal(ask(fd, VFU_VERSION, few, sizeof(few), NULL, 0), 0);
	assert_int_equal(ask(fd, VFU_REGION_READ, &a, sizeof(a), NULL, 0), EINVAL);
	a.count = 64;
	assert_int_equal(ask(fd, VFU_REGION_READ, &a, sizeof(a), NULL, 0), 0);
	/* Doorbells are two descriptors. */
	assert_int_equal(ask(fd, VFU_GET_REGION_IO_FDS, &io, sizeof(io), NULL, 0), 0);
	assert_int_equal(got.n_fds, 0);
	memcpy(&io, got.body, sizeof(io));
	assert_int_equal(io.count, 0);
	close(fd);
}

static void regions_and_interrupts_are_described(void **state)
{
	struct vfu_info i = { .argsz = sizeof(i) };
	struct vfu_region_info r = { .argsz = sizeof(r) };
	struct vfu_irq_info q = { .argsz = sizeof(q), .index = VFU_IRQ_MSIX };
	struct vfu_sparse s;
	int fd = join();

	(void)state;
	assert_int_equal(ask(fd, VFU_GET_INFO, &i, sizeof(i), NULL, 0), 0);
	memcpy(&i, got.body, sizeof(i));
	assert_int_equal(i.flags, VFU_INFO_PCI | VFU_INFO_RESET);
	assert_int_equal(i.n_regions, 9);
	assert_int_equal(i.n_irqs, 5);
	for (r.index = 0; r.index < 9; r.index++) {
		static const uint64_t sizes[] = { HW_BAR0_BYTES, 0, 64 << 20, 0, 0, 0, 0, 4096 };
		struct vfu_region_info a;

		assert_int_equal(ask(fd, VFU_GET_REGION_INFO, &r, sizeof(r), NULL, 0), 0);
		memcpy(&a, got.body, sizeof(a));
		assert_int_equal(a.bytes, r.index < 8 ? sizes[r.index] : 0);
		/* What does not fit is not there; a stock client asks again by argsz. */
		assert_int_equal(a.flags, r.index == 2 ? 7 : r.index == 0 || r.index == 7 ? 3 : 0);
		assert_int_equal(got.n_fds, 0);
		assert_int_equal(a.argsz, r.index == 2 ? 64 : 32);
		assert_int_equal(a.cap_offset, 0);
		assert_int_equal(got.n, 32);
	}
	r = (struct vfu_region_info){ .argsz = 63, .index = 2 };
	assert_int_equal(ask(fd, VFU_GET_REGION_INFO, &r, sizeof(r), NULL, 0), 0);
	assert_int_equal(got.n, 32);
	assert_int_equal(got.n_fds, 0);
	for (r.argsz = 0; r.argsz < 32; r.argsz++)
		assert_int_equal(ask(fd, VFU_GET_REGION_INFO, &r, sizeof(r), NULL, 0), EINVAL);
	r = (struct vfu_region_info){ .argsz = 32, .index = 9 };
	assert_int_equal(ask(fd, VFU_GET_REGION_INFO, &r, sizeof(r), NULL, 0), EINVAL);
	r = (struct vfu_region_info){ .argsz = 64, .index = 2 };
	assert_int_equal(ask(fd, VFU_GET_REGION_INFO, &r, sizeof(r), NULL, 0), 0);
	assert_int_equal(got.n, 64);
	assert_int_equal(got.n_fds, 1);
	memcpy(&r, got.body, sizeof(r));
	assert_int_equal(r.argsz, 64);
	assert_int_equal(r.cap_offset, 32);
	memcpy(&s, got.body + r.cap_offset, sizeof(s));
	assert_int_equal(r.flags, 15);
	assert_int_equal(s.id, 1);
	assert_int_equal(s.n_areas, 1);
	assert_int_equal(s.bytes, 64 << 20);
	assert_int_equal(ftruncate(got.fds[0], 4096), -1);	/* sealed */
	close(got.fds[0]);
	assert_int_equal(ask(fd, VFU_GET_IRQ_INFO, &q, sizeof(q), NULL, 0), 0);
	memcpy(&q, got.body, sizeof(q));
	assert_int_equal(q.count, HW_MAX_VECTORS);
	assert_int_equal(q.flags, VFU_IRQ_EVENTFD);
	q.index = 5;
	assert_int_equal(ask(fd, VFU_GET_IRQ_INFO, &q, sizeof(q), NULL, 0), EINVAL);
	assert_int_equal(ask(fd, VFU_FEATURE, &q, 8, NULL, 0), ENOTSUP);
	assert_int_equal(ask(fd, 99, NULL, 0, NULL, 0), ENOSYS);
	close(fd);
}

static void configuration_space_is_that_of_an_endpoint(void **state)
{
	int fd = join();
	unsigned at, id, seen = 0;

	(void)state;
	assert_int_equal(read_at(fd, 7, 0, 4), HW_PCI_VENDOR | HW_PCI_DEVICE << 16);
	assert_int_equal(read_at(fd, 7, 8, 4) >> 8, HW_PCI_CLASS);
	assert_int_equal(read_at(fd, 7, 0x3d, 1), 0);
	read_at(fd, 7, 0, 4096);
	for (at = (unsigned)read_at(fd, 7, 0x34, 1); at; at = (unsigned)read_at(fd, 7, at + 1, 1)) {
		id = (unsigned)read_at(fd, 7, at, 1);
		seen |= 1u << id;
		if (id == 0x11) {
			assert_int_equal(read_at(fd, 7, at + 2, 2), HW_MAX_VECTORS - 1);
			assert_int_equal(read_at(fd, 7, at + 4, 4), HW_MSIX_TABLE);
			assert_int_equal(read_at(fd, 7, at + 8, 4), HW_MSIX_PBA);
		}
		if (id == 0x10)
			assert_true(read_at(fd, 7, at + 4, 4) & 1u << 28);
	}
	assert_int_equal(seen, 1u << 1 | 1u << 0x11 | 1u << 0x10);
	/* BARs tell their sizes and keep their type bits. */
	write32(fd, 7, 0x10, 0xffffffff);
	write32(fd, 7, 0x18, 0xffffffff);
	write32(fd, 7, 0x1c, 0xffffffff);
	assert_int_equal(read_at(fd, 7, 0x10, 4), (uint32_t)~(HW_BAR0_BYTES - 1));
	assert_int_equal(read_at(fd, 7, 0x18, 8), ~((uint64_t)(64 << 20) - 1) | 0xc);
	write32(fd, 7, 0, 0);
	assert_int_equal(read_at(fd, 7, 0, 2), HW_PCI_VENDOR);
	close(fd);
}

static void flr_is_a_write_to_device_control(void **state)
{
	int fd = join();
	uint16_t flr = 0x8000;
	unsigned at;

	(void)state;
	for (at = (unsigned)read_at(fd, 7, 0x34, 1); read_at(fd, 7, at, 1) != 0x10; )
		at = (unsigned)read_at(fd, 7, at + 1, 1);
	write32(fd, 0, HW_REG_SCRATCH, 77);
	be_master(fd);
	assert_int_equal(read_at(fd, 0, HW_REG_SCRATCH, 8), 77);
	assert_int_equal(write_at(fd, 7, at + 8, &flr, 2), 0);
	assert_int_equal(read_at(fd, 7, at + 8, 2) & 0x8000, 0);
	assert_int_equal(read_at(fd, 0, HW_REG_SCRATCH, 8), 0);
	assert_int_equal(read_at(fd, 7, 4, 2), 0);
	write32(fd, 0, HW_REG_SCRATCH, 78);
	assert_int_equal(ask(fd, VFU_RESET, NULL, 0, NULL, 0), 0);
	assert_int_equal(read_at(fd, 0, HW_REG_SCRATCH, 8), 0);
	close(fd);
}

static void registers_take_words_and_posted_writes(void **state)
{
	struct vfu_region_access a = { HW_REG_SCRATCH, 0, 8 };
	struct vfu_write_one w[2] = { { HW_REG_SCRATCH, 0, 4, { 1 } },
				      { HW_REG_SCRATCH + 4, 0, 4, { 2 } } };
	uint8_t body[64] = { 0 };
	uint64_t n = 2;
	int fd = join();

	(void)state;
	memcpy(body, &a, sizeof(a));
	body[16] = 5;
	body[20] = 6;
	assert_true(send_command(fd, VFU_REGION_WRITE, VFU_NO_REPLY, body, 24, NULL, 0));
	assert_int_equal(read_at(fd, 0, HW_REG_SCRATCH, 8), 6ull << 32 | 5);
	assert_int_equal(read_at(fd, 0, HW_REG_SCRATCH, 1), 0xff);
	assert_int_equal(read_at(fd, 0, HW_REG_SCRATCH + 2, 4), 0xffffffff);
	memcpy(body, &n, 8);
	memcpy(body + 8, w, sizeof(w));
	assert_int_equal(ask(fd, VFU_WRITE_MULTI, body, 8 + sizeof(w), NULL, 0), 0);
	assert_int_equal(got.n, 8);
	assert_int_equal(read_at(fd, 0, HW_REG_SCRATCH, 8), 2ull << 32 | 1);
	n = 3;
	memcpy(body, &n, 8);
	assert_int_equal(ask(fd, VFU_WRITE_MULTI, body, 8 + sizeof(w), NULL, 0), EINVAL);
	/* All or none. */
	n = 2;
	memcpy(body, &n, 8);
	w[0].data[0] = 9;
	w[1].region = 9;
	memcpy(body + 8, w, sizeof(w));
	assert_int_equal(ask(fd, VFU_WRITE_MULTI, body, 8 + sizeof(w), NULL, 0), EINVAL);
	w[1].region = 0;
	w[1].count = 9;
	memcpy(body + 8, w, sizeof(w));
	assert_int_equal(ask(fd, VFU_WRITE_MULTI, body, 8 + sizeof(w), NULL, 0), EINVAL);
	assert_int_equal(read_at(fd, 0, HW_REG_SCRATCH, 8), 2ull << 32 | 1);
	/* More and less data than it says. */
	a.count = 4;
	memcpy(body, &a, sizeof(a));
	assert_int_equal(ask(fd, VFU_REGION_WRITE, body, sizeof(a) + 3, NULL, 0), EINVAL);
	assert_int_equal(ask(fd, VFU_REGION_WRITE, body, sizeof(a) + 5, NULL, 0), EINVAL);
	/* Past the end, of other regions, of nothing. */
	for (unsigned i = 0; i < 5; i++) {
		static const struct vfu_region_access bad[] = {
			{ HW_BAR0_BYTES - 2, 0, 4 }, { 0, 1, 4 }, { 0, 9, 4 },
			{ UINT64_MAX - 1, 2, 4 }, { 0, 2, 0 } };

		assert_int_equal(ask(fd, VFU_REGION_READ, &bad[i], sizeof(a), NULL, 0), EINVAL);
	}
	write32(fd, 2, 4096, 0xabcd);
	assert_int_equal(read_at(fd, 2, 4094, 4), 0xabcd0000);
	close(fd);
}

static void eventfds_are_given_and_taken_by_sub_ranges(void **state)
{
	const uint32_t give = VFU_SET_EVENTFD | VFU_SET_TRIGGER,
		       fire = VFU_SET_NONE | VFU_SET_TRIGGER;
	int fd = join(), e[8], pipes[2];

	(void)state;
	for (int i = 0; i < 8; i++)
		e[i] = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	assert_int_equal(set_irqs(fd, give, 0, 1, NULL, 0), 0);	/* QEMU's first */
	assert_int_equal(set_irqs(fd, give, 0, 8, e, 8), 0);
	assert_int_equal(set_irqs(fd, fire, 0, 8, NULL, 0), 0);
	for (int i = 0; i < 8; i++)
		assert_int_equal(count_of(e[i]), 1);
	/* 2 and 3 go, 5 is replaced. */
	assert_int_equal(set_irqs(fd, give, 2, 2, NULL, 0), 0);
	assert_int_equal(set_irqs(fd, give, 5, 1, e + 2, 1), 0);
	assert_int_equal(set_irqs(fd, fire, 0, 8, NULL, 0), 0);
	for (int i = 0; i < 8; i++)
		assert_int_equal(count_of(e[i]), i != 3 && i != 5);
	assert_int_equal(set_irqs(fd, fire, 0, 0, NULL, 0), 0);	/* all */
	assert_int_equal(set_irqs(fd, fire, 0, 8, NULL, 0), 0);
	for (int i = 0; i < 8; i++)
		assert_int_equal(count_of(e[i]), 0);
	assert_int_equal(set_irqs(fd, give, 30, 3, e, 3), EINVAL);
	assert_int_equal(set_irqs(fd, give, 0, 3, e, 2), EINVAL);
	assert_int_equal(set_irqs(fd, give, UINT32_MAX, 2, e, 2), EINVAL);
	assert_int_equal(set_irqs(fd, VFU_SET_NONE | VFU_SET_MASK, 0, 1, NULL, 0), ENOTTY);
	/* A byte for each vector, no more and no fewer. */
	assert_int_equal(set_irqs(fd, give, 0, 2, e, 2), 0);
	for (unsigned n = 0; n < 4; n++) {
		struct vfu_set_irqs s = { sizeof(s) + n, VFU_SET_BOOL | VFU_SET_TRIGGER,
					  VFU_IRQ_MSIX, 0, 2 };
		uint8_t body[sizeof(s) + 4] = { 0 };

		memcpy(body, &s, sizeof(s));
		body[sizeof(s) + 1] = 1;
		assert_int_equal(ask(fd, VFU_SET_IRQS, body, sizeof(s) + n, NULL, 0),
				 n == 2 ? 0 : EINVAL);
	}
	assert_int_equal(count_of(e[0]), 0);
	assert_int_equal(count_of(e[1]), 1);
	assert_int_equal(pipe(pipes), 0);
	assert_int_equal(set_irqs(fd, give, 0, 1, pipes + 1, 1), EINVAL);
	close(pipes[0]);
	close(pipes[1]);
	for (int i = 0; i < 8; i++)
		close(e[i]);
	close(fd);
}

static void unmap_takes_all_inside_and_minds_nothing(void **state)
{
	const uint64_t unit = 4096;
	int fd = join(), memory = make_memory(64 * unit, NULL);

	(void)state;
	assert_int_equal(unmap_at(fd, 1ull << 32, unit, 0), 0);
	be_master(fd);
	for (uint64_t i = 0; i < 64; i++)
		assert_int_equal(map_at(fd, 0x100000 + i * unit, unit, i * unit, memory), 0);
	assert_int_equal(map_at(fd, 0x100000, unit, 0, memory), EEXIST);
	assert_int_equal(map_at(fd, 0xff000, 3 * unit, 0, memory), EEXIST);
	assert_int_equal(unmap_at(fd, 1ull << 46, 1ull << 46, 0), 0);
	assert_int_equal(got.n, sizeof(struct vfu_dma_unmap));
	assert_int_equal(unmap_at(fd, 0x100000 + 8 * unit, 8 * unit, 0), 0);
	assert_int_equal(map_at(fd, 0x100000 + 8 * unit, 8 * unit, 0, memory), 0);
	assert_int_equal(unmap_at(fd, 0x100000 + 9 * unit, unit, 0), EINVAL);
	assert_int_equal(unmap_at(fd, 0, 1ull << 47, 0), 0);
	assert_int_equal(map_at(fd, 0x100000, 64 * unit, 0, memory), 0);
	assert_int_equal(unmap_at(fd, 0, 0, VFU_UNMAP_ALL), 0);
	assert_int_equal(map_at(fd, 0x100000, 64 * unit, 0, memory), 0);
	assert_int_equal(unmap_at(fd, 0, 0, 0), EINVAL);
	assert_int_equal(unmap_at(fd, 0xfffffffffffff000, 2 * unit, 0), EINVAL);
	assert_int_equal(map_at(fd, 0x200001, unit, 0, memory), EINVAL);
	assert_int_equal(map_at(fd, 0x200000, 65 * unit, 0, memory), EINVAL);
	assert_int_equal(map_at(fd, 0x200000, unit, 1ull << 63, memory), EINVAL);
	assert_int_equal(map_at(fd, 0xfffffffffffff000, 2 * unit, 0, memory), EINVAL);
	close(memory);
	close(fd);
}

static void work_reaches_memory_and_interrupts(void **state)
{
	struct vfu_io_fds io = { .argsz = 4096, .index = 0 };
	uint64_t one = 1;
	uint64_t *bells;
	struct rig r;

	(void)state;
	set_up(&r);
	assert_int_equal(read_at(r.fd, 0, HW_REG_STATUS, 4), HW_STATUS_READY);
	put_identify(&r);
	write32(r.fd, 0, hw_doorbell(0), r.tail);
	assert_true(identified(&r));
	/* The same through shared memory, which the last client's must not reach. */
	assert_int_equal(ask(r.fd, VFU_GET_REGION_IO_FDS, &io, sizeof(io), NULL, 0), 0);
	assert_int_equal(got.n_fds, 2);
	bells = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, got.fds[1], 0);
	assert_ptr_not_equal(bells, MAP_FAILED);
	for (int i = 0; i < 100; i++) {
		put_identify(&r);
		__atomic_store_n(&bells[0], VFU_BELL_RUNG | r.tail, __ATOMIC_SEQ_CST);
		assert_int_equal(write(got.fds[0], &one, 8), 8);
		assert_true(identified(&r));
	}
	/* Interrupts go on after a reset of the function, as the client's table does. */
	assert_int_equal(ask(r.fd, VFU_RESET, NULL, 0, NULL, 0), 0);
	memset(r.page, 0, 8192);
	start_rings(&r);
	put_identify(&r);
	write32(r.fd, 0, hw_doorbell(0), r.tail);
	assert_true(identified(&r));
	munmap(bells, 4096);
	take_down(&r);
}

/* The kick is left out where the server says so: no doorbell may wait for ever. */
static void an_awake_server_needs_no_kick(void **state)
{
	struct vfu_io_fds io = { .argsz = 4096, .index = 0 };
	struct vfu_io_fd first;
	uint64_t one = 1, *bells, *awake;
	unsigned kicks = 0;
	struct rig r;

	(void)state;
	set_up(&r);
	assert_int_equal(ask(r.fd, VFU_GET_REGION_IO_FDS, &io, sizeof(io), NULL, 0), 0);
	memcpy(&first, got.body + sizeof(io), sizeof(first));
	assert_int_equal(first.flags, VFU_IO_AWAKE);
	assert_true(first.datamatch % 8 == 0 && first.datamatch < 4096);
	bells = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, got.fds[1], 0);
	assert_ptr_not_equal(bells, MAP_FAILED);
	awake = bells + first.datamatch / 8;
	for (int i = 0; i < 2000; i++) {
		put_identify(&r);
		__atomic_store_n(&bells[0], VFU_BELL_RUNG | r.tail, __ATOMIC_SEQ_CST);
		if (!__atomic_load_n(awake, __ATOMIC_SEQ_CST)) {
			assert_int_equal(write(got.fds[0], &one, 8), 8);
			kicks++;
		}
		assert_true(identified(&r));
		/* About as long as the server looks, so that it falls asleep now and then. */
		for (int64_t until = clock_after(i % 32 * 1000); clock_ns() < until; )
			;
	}
	assert_true(kicks > 0);
	munmap(bells, 4096);
	take_down(&r);
}

/* Stores to a context's wake page are messages of any size, alone or many in one. */
static void a_message_wakes_who_waits(void **state)
{
	static const struct { uint32_t at, bytes; } stores[] = {
		{ 0, 4 }, { 0, 8 }, { 7, 1 }, { 2, 2 }, { 0xffc, 4 }, { 0, 4096 }, { 0xfff, 1 },
	};
	struct hw_map map = { .va = 1ull << 32, .pa = RIG_IOVA + 8192, .bytes = 4096,
			      .flags = HW_MAP_HOST };
	struct hw_queue queue = { .sq_iova = RIG_IOVA + 1024, .cq_iova = RIG_IOVA + 4096 + 1024,
				  .n_entries = 16, .cls = HW_CLASS_DMA, .vector = HW_NO_VECTOR };
	struct vfu_region_access a = { .region = 0 };
	uint8_t body[sizeof(a) + 4096] = { 0 };
	uint64_t *sem, bad;
	int64_t until;
	struct rig r;
	uint16_t ctx;
	unsigned id;

	(void)state;
	set_up(&r);
	sem = (uint64_t *)(void *)(r.page + 8192 + 2048);
	queue.ctx = ctx = (uint16_t)request(&r, HW_CTX_CREATE, 0, NULL, 0);
	request(&r, HW_MAP, ctx, &map, sizeof(map));
	id = (unsigned)request(&r, HW_QUEUE_CREATE, 0, &queue, sizeof(queue));
	bad = read_at(r.fd, 0, HW_REG_BADACC, 4);
	for (uint32_t i = 0; i < 3 * sizeof(stores) / sizeof(stores[0]); i++) {
		uint32_t n = stores[i / 3].bytes;
		struct hw_queue_state *s = (void *)(r.page + 8192);

		((struct hw_sqe *)(r.page + 1024))[i % 16] = (struct hw_sqe){
			.op = HW_SEMAPHORE, .flags = HW_WAIT, .wait_va = map.va + 2048,
			.wait_value = i + 1 };
		write32(r.fd, 0, hw_doorbell(id), i + 1);
		until = clock_after(5000000000);
		do
			request(&r, HW_LOG_PAGE, HW_LOG_QUEUES, NULL, 0);
		while (s->is != HW_QUEUE_WAITING && clock_ns() < until);
		__atomic_store_n(sem, i + 1, __ATOMIC_SEQ_CST);
		request(&r, HW_LOG_PAGE, HW_LOG_QUEUES, NULL, 0);
		assert_int_equal(s->is, HW_QUEUE_WAITING);
		a.offset = hw_wake(ctx) + stores[i / 3].at;
		a.count = n;
		memcpy(body, &a, sizeof(a));
		assert_int_equal(ask(r.fd, VFU_REGION_WRITE, body, sizeof(a) + n, NULL, 0), 0);
		assert_int_equal(completion(&r, 4096 + 1024, i).status, 0);
	}
	/* A store that leaves the page is none to it. */
	assert_int_equal(read_at(r.fd, 0, HW_REG_BADACC, 4), bad);
	write_at(r.fd, 0, hw_wake(ctx) + 0xffe, &bad, 4);
	assert_int_equal(read_at(r.fd, 0, HW_REG_BADACC, 4), bad + 1);
	take_down(&r);
}

static void dma_waits_for_the_bus_master_bit(void **state)
{
	uint16_t none = 0;
	struct rig r;

	(void)state;
	set_up(&r);
	write32(r.fd, 0, HW_REG_CTRL, 0);
	assert_int_equal(write_at(r.fd, VFU_REGION_CONFIG, 4, &none, 2), 0);
	write32(r.fd, 0, HW_REG_CTRL, HW_CTRL_ENABLE);
	assert_int_equal(read_at(r.fd, 0, HW_REG_STATUS, 4), 0);
	assert_int_equal(read_at(r.fd, 0, HW_REG_BADACC, 4), 1);
	be_master(r.fd);
	write32(r.fd, 0, HW_REG_CTRL, HW_CTRL_ENABLE);
	assert_int_equal(read_at(r.fd, 0, HW_REG_STATUS, 4), HW_STATUS_READY);
	take_down(&r);
}

/* A guest's pages lie in any order: what follows one another in iova must do. */
static void rings_may_lie_on_scattered_pages(void **state)
{
	enum { N = 10, ENTRIES = 256 };
	struct hw_identify id;
	struct hw_sqe sqe = { .op = HW_IDENTIFY,
			      .u.admin = { RIG_IOVA + 8 * 4096, 0, 4096 } };
	int64_t until = clock_after(5000000000);
	struct rig r = { .fd = join() };
	void *at;

	(void)state;
	r.memory = make_memory(N * 4096, &at);
	r.irq = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	r.page = at;
	for (unsigned i = 0; i < N; i++)
		assert_int_equal(map_at(r.fd, RIG_IOVA + i * 4096, 4096, (N - 1 - i) * 4096,
					r.memory), 0);
	bring_up(&r);
	write32(r.fd, 0, HW_REG_CTRL, 0);
	write32(r.fd, 0, HW_REG_ACQ, RIG_IOVA + 4 * 4096);
	write32(r.fd, 0, HW_REG_AQSIZE, ENTRIES);
	write32(r.fd, 0, HW_REG_CTRL, HW_CTRL_ENABLE);
	assert_int_equal(read_at(r.fd, 0, HW_REG_STATUS, 4), HW_STATUS_READY);
	/* Up to the second page of the ring: no operations, then one that answers. */
	for (unsigned i = 0; i < 64; i++)
		((struct hw_sqe *)(r.page + (N - 1) * 4096))[i] = (struct hw_sqe){ .op = HW_NOP };
	((struct hw_sqe *)(r.page + (N - 2) * 4096))[0] = sqe;
	write32(r.fd, 0, hw_doorbell(0), 65);
	do
		memcpy(&id, r.page + 4096, sizeof(id));
	while (id.magic != HW_IDENTIFY_MAGIC && clock_ns() < until);
	assert_int_equal(id.magic, HW_IDENTIFY_MAGIC);
	/* A page that goes takes its place with it. */
	assert_int_equal(unmap_at(r.fd, RIG_IOVA + 4096, 4096, 0), 0);
	write32(r.fd, 0, HW_REG_CTRL, 0);
	write32(r.fd, 0, HW_REG_CTRL, HW_CTRL_ENABLE);
	assert_int_equal(read_at(r.fd, 0, HW_REG_STATUS, 4), 0);
	assert_int_equal(map_at(r.fd, RIG_IOVA + 4096, 4096, (N - 2) * 4096, r.memory), 0);
	write32(r.fd, 0, HW_REG_CTRL, HW_CTRL_ENABLE);
	assert_int_equal(read_at(r.fd, 0, HW_REG_STATUS, 4), HW_STATUS_READY);
	close(r.fd);
	close(r.memory);
	close(r.irq);
	munmap(at, N * 4096);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(version_fits_the_smallest_client),
		cmocka_unit_test(offers_that_make_no_sense_are_refused),
		cmocka_unit_test(a_client_gets_no_more_than_it_takes),
		cmocka_unit_test(regions_and_interrupts_are_described),
		cmocka_unit_test(configuration_space_is_that_of_an_endpoint),
		cmocka_unit_test(flr_is_a_write_to_device_control),
		cmocka_unit_test(registers_take_words_and_posted_writes),
		cmocka_unit_test(eventfds_are_given_and_taken_by_sub_ranges),
		cmocka_unit_test(unmap_takes_all_inside_and_minds_nothing),
		cmocka_unit_test(work_reaches_memory_and_interrupts),
		cmocka_unit_test(an_awake_server_needs_no_kick),
		cmocka_unit_test(a_message_wakes_who_waits),
		cmocka_unit_test(dma_waits_for_the_bus_master_bit),
		cmocka_unit_test(rings_may_lie_on_scattered_pages),
	};

	return cmocka_run_group_tests(tests, start_server, stop_server);
}
