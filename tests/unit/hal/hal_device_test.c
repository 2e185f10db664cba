/* SPDX-License-Identifier: Apache-2.0 */
/* The HAL over the in-process model, or what TESSERA_DEVICES names: memory, copies,
 * queues, executables, faults, deadlines, death and reset. */
#include <glob.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <pthread.h>

#include "hal/hal.h"
#include "hal/hw/image.h"
#include "hal/telemetry.h"

/* Another program may include this one to run its tests on other devices. */
static const char *devices = "sim:hbm=64M,lanes=2";
static struct hal *hal;
static struct hal_device *dev;

/* Opens a device of `where`; NULL with the error. */
static struct hal_device *open_at(const char *where, unsigned index, struct hal **h,
				  struct err *err)
{
	struct hal_device *d;

	if (hal_create(&(struct hal_options){ .devices = where }, h, err))
		return NULL;
	if (!hal_device_open(*h, index, &d, err))
		return d;
	hal_destroy(*h);
	return NULL;
}

static int open_device(void **state)
{
	struct err err;

	(void)state;
	dev = open_at(devices, 0, &hal, &err);
	if (!dev)
		fprintf(stderr, "%s\n", err.msg);
	return dev ? 0 : -1;
}

static int close_device(void **state)
{
	(void)state;
	hal_device_close(dev);
	hal_destroy(hal);
	return 0;
}

/* An image with one 8-byte result, from scalar instructions. */
static void make_image(const struct isa_scalar *code, size_t n, uint32_t flags, void **out,
		       size_t *bytes)
{
	static const char strings[] = "\0test\0store\0here";
	struct image_binding b[] = {
		{ .kind = IMAGE_CONSTANTS }, { .kind = IMAGE_TEMP },
		{ .kind = IMAGE_RESULT, .access = HW_BIND_READ | HW_BIND_WRITE, .bytes = 8 },
	};
	struct image_shape shape = { .elem = ELEM_S64, .alias = -1 };
	struct image_debug debug = { .offset = 0, .op = 6, .where = 12 };
	struct image im = {
		.info = { .version = IMAGE_VERSION, .isa = ISA_VERSION, .n_results = 1,
			  .flags = flags, .name = 1, .cost_ns = flags ? 100 : 0,
			  .n_replicas = 1, .n_partitions = 1 },
		.text = code, .text_bytes = n * sizeof(*code), .bindings = b,
		.n_bindings = 3, .shapes = &shape, .debug = &debug, .n_debug = 1,
		.strings = strings, .strings_bytes = sizeof(strings), .note = "test",
	};
	struct err err;

	if (image_write(&im, out, bytes, &err))
		fail_msg("%s", err.msg);
}

#define INSN(code) .insn = { .op = ISA_##code, .bytes = sizeof(struct isa_scalar) }

static const struct isa_scalar store_42[] = {
	{ INSN(LI), .rd = 1, .imm = 42 },
	{ INSN(ST), .rb = 1, .elem = ELEM_S64, .binding = 2 },
	{ INSN(HALT) },
};
static const struct isa_scalar spin[] = {
	{ INSN(JMP), .imm = 0 },
	{ INSN(HALT) },
};
static const struct isa_scalar stray[] = {
	{ INSN(LI), .rd = 1, .imm = 4096 },
	{ INSN(ST), .rb = 1, .ra = 1, .elem = ELEM_S64, .binding = 2 },
	{ INSN(HALT) },
};

static struct hal_exe *load(const struct isa_scalar *code, size_t n, uint32_t flags)
{
	struct hal_exe *exe;
	struct err err;
	size_t bytes;
	void *image;

	make_image(code, n, flags, &image, &bytes);
	if (hal_exe_load(dev, image, bytes, &exe, &err))
		fail_msg("%s", err.msg);
	free(image);
	return exe;
}

static uint64_t run(struct hal_exe *exe, struct hal_mem *out, uint64_t limit_ns)
{
	struct hw_binding b[3] = { { 0, 0 }, { 0, 0 },
				   { hal_mem_va(out), hal_mem_bytes(out) } };
	struct hal_launch l = { .exe = exe, .bindings = b, .limit_ns = limit_ns };
	struct err err;
	uint64_t value;

	if (hal_queue_execute(hal_device_queue(dev, HAL_QUEUE_COMPUTE), &l, &value, &err))
		fail_msg("%s", err.msg);
	return value;
}

static struct hal_mem *get(uint64_t bytes)
{
	struct hal_mem *m;
	struct err err;

	if (hal_mem_alloc(dev, HAL_MEM_HBM, bytes, "test", &m, &err))
		fail_msg("%s", err.msg);
	return m;
}

static void executes_inline_and_on_the_engine(void **state)
{
	struct hal_queue *q = hal_device_queue(dev, HAL_QUEUE_COMPUTE);

	(void)state;
	for (uint32_t flags = 0; flags <= IMAGE_STRAIGHT; flags++) {
		struct hal_exe *exe = load(store_42, 3, flags);
		struct hal_mem *out = get(8);
		int64_t got = 0;
		struct err err;

		for (int i = 0; i < 3000; i++) {
			uint64_t value = run(exe, out, 0);

			if (i % 1000 == 999)
				assert_int_equal(hal_queue_wait(q, value,
						 clock_after(5000000000), &err), 0);
		}
		hal_copy_out(&got, out, 0, 8, CLOCK_FOREVER, &err);
		assert_int_equal(got, 42);
		hal_mem_free(out);
		hal_exe_unload(exe);
	}
}

static void fault_names_everything_and_the_queue_recovers(void **state)
{
	struct hal_queue *q = hal_device_queue(dev, HAL_QUEUE_COMPUTE);
	struct hal_exe *bad = load(stray, 3, 0), *good = load(store_42, 3, 0);
	struct hal_mem *out = get(8);
	uint64_t a = run(bad, out, 0), b = run(good, out, 0), c;
	struct err err;

	(void)state;
	assert_int_equal(hal_queue_wait(q, a, clock_after(5000000000), &err),
			 ERR_INVALID_ARGUMENT);
	assert_non_null(strstr(err.msg, "BOUNDS"));
	assert_non_null(strstr(err.msg, "test"));
	assert_non_null(strstr(err.msg, "st at 0x18"));
	assert_non_null(strstr(err.msg, "store"));
	hal_queue_wait(q, b, clock_after(5000000000), &err);
	c = run(good, out, 0);
	assert_int_equal(hal_queue_wait(q, c, clock_after(5000000000), &err), 0);
	hal_exe_unload(bad);
	hal_exe_unload(good);
	hal_mem_free(out);
}

/* However few there are. */
static void everything_behind_a_fault_fails(void **state)
{
	/* long enough for all to be queued: then it strays */
	static const struct isa_scalar late[] = {
		{ INSN(LI), .rd = 1, .imm = 20000000 },
		{ INSN(ALUI), .fn = ISA_ALU_SUB, .rd = 1, .ra = 1, .imm = 1 },
		{ INSN(BNZ), .ra = 1, .imm = -24 },
		{ INSN(LI), .rd = 1, .imm = 4096 },
		{ INSN(ST), .rb = 1, .ra = 1, .elem = ELEM_S64, .binding = 2 },
		{ INSN(HALT) },
	};
	struct hal_queue *q = hal_device_queue(dev, HAL_QUEUE_COMPUTE);
	struct hal_exe *bad = load(late, 6, 0), *good = load(store_42, 3, 0);
	struct hal_mem *out = get(8);
	struct err err;

	(void)state;
	for (unsigned behind = 0; behind < 4; behind++) {
		uint64_t first = run(bad, out, 0), value = first;

		for (unsigned i = 0; i < behind; i++)
			value = run(good, out, 0);
		assert_int_equal(hal_queue_wait(q, value, clock_after(20000000000), &err),
				 behind ? ERR_ABORTED : ERR_INVALID_ARGUMENT);
		assert_int_equal(hal_queue_error(q, first, &err), ERR_INVALID_ARGUMENT);
		for (uint64_t v = first + 1; v <= value; v++) {
			assert_int_equal(hal_queue_error(q, v, &err), ERR_ABORTED);
			assert_non_null(strstr(err.msg, "BOUNDS"));
		}
		assert_int_equal(hal_queue_wait(q, run(good, out, 0), clock_after(5000000000),
						&err), 0);
	}
	hal_exe_unload(bad);
	hal_exe_unload(good);
	hal_mem_free(out);
}

static void endless_program_meets_its_watchdog(void **state)
{
	struct hal_queue *q = hal_device_queue(dev, HAL_QUEUE_COMPUTE);
	struct hal_exe *exe = load(spin, 2, 0);
	struct hal_mem *out = get(8);
	uint64_t value = run(exe, out, 20000000);
	struct err err;

	(void)state;
	assert_int_equal(hal_queue_wait(q, value, clock_after(5000000000), &err),
			 ERR_DEADLINE_EXCEEDED);
	assert_non_null(strstr(err.msg, "jmp"));
	/* Without a watchdog the wait's own deadline reports, and a reset ends it. */
	value = run(exe, out, 0);
	assert_int_equal(hal_queue_wait(q, value, clock_after(30000000), &err),
			 ERR_DEADLINE_EXCEEDED);
	assert_non_null(strstr(err.msg, "test"));
	assert_int_equal(hal_queue_reset(q, "test", &err), 0);
	assert_int_equal(hal_queue_wait(q, value, clock_after(5000000000), &err), ERR_ABORTED);
	hal_exe_unload(exe);
	hal_mem_free(out);
}

static void what_came_behind_is_not_stopped(void **state)
{
	struct hal_queue *q = hal_device_queue(dev, HAL_QUEUE_COMPUTE);
	struct hal_exe *exe = load(spin, 2, 0);
	struct hal_mem *out = get(8);
	uint64_t first = run(exe, out, 1000000), second;
	struct err err;

	(void)state;
	assert_int_equal(hal_queue_wait(q, first, clock_after(5000000000), &err),
			 ERR_DEADLINE_EXCEEDED);
	second = run(exe, out, 0);
	assert_int_equal(hal_queue_stop(q, first, "too late", &err), 0);
	assert_int_equal(hal_queue_wait(q, second, clock_after(30000000), &err),
			 ERR_DEADLINE_EXCEEDED);
	assert_true(hal_queue_done(q) < second);
	assert_int_equal(hal_queue_stop(q, second, "in time", &err), 0);
	assert_int_equal(hal_queue_wait(q, second, clock_after(5000000000), &err), ERR_ABORTED);
	assert_non_null(strstr(err.msg, "in time"));
	hal_exe_unload(exe);
	hal_mem_free(out);
}

static void note(void *arg, const struct err *err)
{
	__atomic_store_n((int *)arg, err ? err->code : -1, __ATOMIC_RELEASE);
}

static void notices_come_once_with_the_error(void **state)
{
	struct hal_queue *q = hal_device_queue(dev, HAL_QUEUE_COMPUTE);
	struct hal_exe *exe = load(spin, 2, 0);
	struct hal_mem *out = get(8);
	uint64_t value = run(exe, out, 10000000);
	int got = 0;
	int64_t until = clock_after(5000000000);
	struct err err;

	(void)state;
	assert_int_equal(hal_queue_notify(q, value, note, &got, &err), 0);
	while (!__atomic_load_n(&got, __ATOMIC_ACQUIRE) && clock_ns() < until)
		;
	assert_int_equal(got, ERR_DEADLINE_EXCEEDED);
	got = 0;
	assert_int_equal(hal_queue_notify(q, value, note, &got, &err), 0);
	assert_int_equal(got, ERR_DEADLINE_EXCEEDED);
	hal_exe_unload(exe);
	hal_mem_free(out);
}

/* What the page of this process's HAL says: it has one, all others are closed. */
static uint64_t used_in_page(void)
{
	struct hal_page *page = calloc(1, sizeof(*page));
	char pattern[200];
	struct err err;
	uint64_t used;
	glob_t found;

	snprintf(pattern, sizeof(pattern), "%s/tessera-%u-%d-*", hal_page_dir(), getuid(),
		 getpid());
	assert_non_null(page);
	assert_int_equal(glob(pattern, 0, NULL, &found), 0);
	assert_int_equal(found.gl_pathc, 1);
	if (hal_page_read(found.gl_pathv[0], page, &err))
		fail_msg("%s: %s", found.gl_pathv[0], err.msg);
	globfree(&found);
	used = page->devices[0].used_bytes;
	free(page);
	return used;
}

/* In a child: what gives back gives nothing back, what asks is refused, nothing waits. */
static int use_as_a_child(struct hal_queue *q, uint64_t running, struct hal_exe *exe,
			  struct hal_mem *mem)
{
	struct hal_mem_stats stats;
	int got = 0, bad = 0;
	struct hal_mem *view;

	alarm(20);
	bad |= hal_queue_done(q) >= running;
	bad |= hal_queue_wait(q, running, CLOCK_FOREVER, NULL) != ERR_FAILED_PRECONDITION;
	bad |= hal_queue_error(q, 1, NULL) != ERR_FAILED_PRECONDITION;
	bad |= hal_queue_notify(q, running, note, &got, NULL) != ERR_FAILED_PRECONDITION;
	bad |= hal_queue_reset(q, "child", NULL) != ERR_FAILED_PRECONDITION;
	bad |= hal_mem_view(dev, hal_mem_va(mem), 8, &view, NULL) != ERR_FAILED_PRECONDITION;
	hal_mem_stats(dev, HAL_MEM_HBM, &stats);
	hal_mem_clear_peak(dev);
	bad |= stats.limit_bytes != 0 || got != 0;
	hal_exe_unload(exe);
	hal_mem_free(mem);
	hal_device_close(dev);
	return bad;
}

static void a_child_of_fork_leaves_the_device_alone(void **state)
{
	struct hal_queue *q = hal_device_queue(dev, HAL_QUEUE_COMPUTE);
	struct hal_exe *exe = load(spin, 2, 0);
	struct hal_mem *out = get(8), *large = get(1 << 20);
	uint64_t value = run(exe, out, 0), used = used_in_page();
	struct err err;
	int status;
	pid_t pid = fork();

	(void)state;
	if (!pid)
		_exit(use_as_a_child(q, value, exe, large));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(used_in_page(), used);
	assert_true(hal_queue_done(q) < value);
	assert_int_equal(hal_queue_reset(q, "test", &err), 0);
	assert_int_equal(hal_queue_wait(q, value, clock_after(5000000000), &err), ERR_ABORTED);
	hal_exe_unload(exe);
	hal_mem_free(out);
	hal_mem_free(large);
}

static void notices_of_what_was_never_submitted_are_refused(void **state)
{
	struct hal_queue *q = hal_device_queue(dev, HAL_QUEUE_DMA);
	struct hal_mem *m = get(64);
	uint64_t value;
	int got = 0;
	struct err err;

	(void)state;
	assert_int_equal(hal_queue_fill(q, m, 0, 64, 0, &value, &err), 0);
	assert_int_equal(hal_queue_notify(q, value + 1, note, &got, &err),
			 ERR_INVALID_ARGUMENT);
	assert_int_equal(hal_queue_wait(q, value, clock_after(5000000000), &err), 0);
	assert_int_equal(got, 0);
	hal_mem_free(m);
}

static void copies_move_bytes_on_the_queue_and_by_hand(void **state)
{
	struct hal_queue *q = hal_device_queue(dev, HAL_QUEUE_DMA);
	struct hal_mem *a = get(1 << 20), *b = get(1 << 20);
	uint8_t *x = malloc(1 << 20), *y = malloc(1 << 20);
	uint64_t value;
	struct err err;

	(void)state;
	for (int i = 0; i < 1 << 20; i++)
		x[i] = (uint8_t)(i * 7 + i / 256);
	assert_int_equal(hal_copy_in(a, 0, x, 1 << 20, CLOCK_FOREVER, &err), 0);
	assert_int_equal(hal_queue_copy(q, b, 64, a, 128, 1000, NULL, 0, &value, &err), 0);
	assert_int_equal(hal_queue_wait(q, value, clock_after(5000000000), &err), 0);
	assert_int_equal(hal_copy_out(y, b, 64, 1000, CLOCK_FOREVER, &err), 0);
	assert_memory_equal(y, x + 128, 1000);
	assert_int_equal(hal_copy_in(a, (1 << 20) - 4, x, 5, CLOCK_FOREVER, &err),
			 ERR_OUT_OF_RANGE);
	for (unsigned over = 0; over < 2; over++) {
		uint64_t n = hal_mem_bytes(b) - 64 + over;

		assert_int_equal(hal_queue_copy(q, b, 64, a, 0, n, NULL, 0, &value, &err),
				 over ? ERR_OUT_OF_RANGE : 0);
		assert_int_equal(hal_queue_copy(q, a, 0, b, 64, n, NULL, 0, &value, &err),
				 over ? ERR_OUT_OF_RANGE : 0);
	}
	assert_int_equal(hal_queue_fill(q, b, 0, 20, 0x0807060504030201, &value, &err), 0);
	hal_queue_wait(q, value, clock_after(5000000000), &err);
	hal_copy_out(y, b, 0, 20, CLOCK_FOREVER, &err);
	assert_memory_equal(y, "\1\2\3\4\5\6\7\10\1\2\3\4\5\6\7\10\1\2\3\4", 20);
	hal_mem_free(a);
	hal_mem_free(b);
	free(x);
	free(y);
}

static void strided_copies_follow_any_strides(void **state)
{
	struct hal_mem *m = get(4096);
	int32_t x[6][5], got[30];
	const int64_t dim[] = { 5, 6 }, stride[] = { -4, 20 };
	struct hal_strided s = { 2, 4, dim, stride, false };
	struct err err;

	(void)state;
	for (int i = 0; i < 6; i++)
		for (int j = 0; j < 5; j++)
			x[i][j] = i * 10 + j;
	assert_int_equal(hal_copy_in_strided(m, 0, &x[0][4], &s, CLOCK_FOREVER, &err), 0);
	hal_copy_out(got, m, 0, sizeof(got), CLOCK_FOREVER, &err);
	for (int j = 0; j < 5; j++)
		for (int i = 0; i < 6; i++)
			assert_int_equal(got[j * 6 + i], i * 10 + 4 - j);
	memset(x, 0, sizeof(x));
	assert_int_equal(hal_copy_out_strided(&x[0][4], m, 0, &s, CLOCK_FOREVER, &err), 0);
	assert_int_equal(x[3][2], 32);
	hal_mem_free(m);
}

static void exhaustion_names_request_and_owners(void **state)
{
	struct hal_mem *a = get(1 << 20), *b;
	struct err err;

	(void)state;
	assert_int_equal(hal_mem_alloc(dev, HAL_MEM_HBM, 1ull << 40, "weights", &b, &err),
			 ERR_RESOURCE_EXHAUSTED);
	assert_non_null(strstr(err.msg, "1099511627776"));
	assert_non_null(strstr(err.msg, "weights"));
	assert_non_null(strstr(err.msg, "test 1048576 bytes in 1"));
	assert_non_null(strstr(err.msg, "largest free block"));
	hal_mem_free(a);
}

static void heap_survives_random_use(void **state)
{
	enum { N = 300 };
	struct hal_mem *held[N] = { 0 };
	struct hal_mem_stats before, after;
	unsigned seed = 1;

	(void)state;
	hal_mem_stats(dev, HAL_MEM_HBM, &before);
	for (int i = 0; i < 20000; i++) {
		unsigned k = (unsigned)rand_r(&seed) % N;

		if (held[k]) {
			hal_mem_free(held[k]);
			held[k] = NULL;
		} else {
			held[k] = get(1 + (uint64_t)rand_r(&seed) % 200000);
			assert_int_equal(hal_mem_va(held[k]) % HAL_MEM_ALIGN, 0);
		}
	}
	for (int i = 0; i < N; i++)
		for (int j = 0; j < i; j++)
			if (held[i] && held[j])
				assert_true(hal_mem_va(held[i]) >= hal_mem_va(held[j]) +
					    hal_mem_bytes(held[j]) ||
					    hal_mem_va(held[j]) >= hal_mem_va(held[i]) +
					    hal_mem_bytes(held[i]));
	for (int i = 0; i < N; i++)
		hal_mem_free(held[i]);
	hal_mem_stats(dev, HAL_MEM_HBM, &after);
	assert_int_equal(after.bytes_in_use, before.bytes_in_use);
	assert_int_equal(after.largest_free_bytes, before.largest_free_bytes);
}

/* Where a kernel driver owns the device, errors are root's to inject. */
static bool make_fatal(void)
{
	struct hal_device_info info;
	struct err err;
	char path[120], link[300];
	ssize_t n;
	FILE *f;
	bool done;

	if (hal_device_inject(dev, HW_INJECT_FATAL, 0, &err) != ERR_UNIMPLEMENTED)
		return true;
	hal_device_info(hal, 0, &info, &err);
	/* debugfs knows the device by its PCI address. */
	snprintf(path, sizeof(path), "/sys/class/accel/%.40s/device", info.bus_id + 6);
	n = readlink(path, link, sizeof(link) - 1);
	link[n > 0 ? n : 0] = 0;
	snprintf(path, sizeof(path), "/sys/kernel/debug/accel/%.40s/inject",
		 strrchr(link, '/') ? strrchr(link, '/') + 1 : "none");
	f = fopen(path, "w");
	done = f && fprintf(f, "%d 0", HW_INJECT_FATAL) > 0;
	return f && !fclose(f) && done;
}

static void killed_device_fails_everything_with_its_first_error(void **state)
{
	struct hal_queue *q = hal_device_queue(dev, HAL_QUEUE_COMPUTE);
	struct hal_exe *exe = load(spin, 2, 0), *good = load(store_42, 3, 0);
	struct hal_mem *out = get(8), *m;
	uint64_t value = run(exe, out, 0);
	struct err err, first;

	(void)state;
	if (!make_fatal()) {
		hal_queue_reset(q, "no error can be injected", &err);
		skip();
	}
	assert_int_equal(hal_queue_wait(q, value, clock_after(5000000000), &first),
			 ERR_UNAVAILABLE);
	assert_int_equal(hal_mem_alloc(dev, HAL_MEM_HBM, 8, "x", &m, &err), ERR_UNAVAILABLE);
	assert_string_equal(err.msg, first.msg);
	if (hal_device_reset(dev, &err))
		fail_msg("%s", err.msg);
	value = run(good, out, 0);
	assert_int_equal(hal_queue_wait(q, value, clock_after(5000000000), &err), 0);
	hal_exe_unload(exe);
	hal_exe_unload(good);
	hal_mem_free(out);
}

static void the_request_that_kills_is_answered(void **state)
{
	struct hal_mem *m = get(8);
	struct err err;

	(void)state;
	for (int i = 0; i < 30; i++) {
		int code = hal_device_inject(dev, HW_INJECT_FATAL, 0, &err);

		if (code == ERR_UNIMPLEMENTED) {
			/* The request is not ours to make where a kernel has the device. */
			hal_mem_free(m);
			skip();
		}
		if (code)
			fail_msg("round %d: %s", i, err.msg);
		assert_int_equal(hal_device_reset(dev, &err), 0);
	}
	hal_mem_free(m);
}

/* A late answer to one request must not be taken for the next one's. */
static void an_answer_to_another_request_is_none(void **state)
{
	struct hal_device_info info;
	struct err err;
	int code = 0;

	(void)state;
	hal_device_info(hal, 0, &info, &err);
	if (info.kind == HAL_KIND_ACCEL)
		skip();		/* queue 0 is the kernel's */
	/* The HAL asks for its telemetry page too, and may be the one who gets that answer:
	 * then ours is refused, and the next round's may come through. */
	for (int i = 0; i < 20 && code != ERR_INTERNAL; i++) {
		assert_int_equal(hal_device_reset(dev, &err), 0);
		assert_int_equal(hal_device_inject(dev, HW_INJECT_WRONG_TAG, 1, &err), 0);
		code = hal_device_inject(dev, HW_INJECT_ECC_CORRECTED, 0, &err);
		assert_non_null(strstr(err.msg, "reset it"));
	}
	assert_int_equal(code, ERR_INTERNAL);
	assert_int_equal(hal_device_inject(dev, HW_INJECT_ECC_CORRECTED, 0, &err),
			 ERR_UNAVAILABLE);
	assert_non_null(strstr(err.msg, "reset it"));
	assert_int_equal(hal_device_reset(dev, &err), 0);
	assert_int_equal(hal_device_inject(dev, HW_INJECT_ECC_CORRECTED, 0, &err), 0);
}

struct submitter {
	struct hal_exe *exe;
	struct hal_mem *out;
	void *image;
	size_t image_bytes;
	int quit, wrong;
	unsigned noted, asked;
};

static void count_notice(void *arg, const struct err *err)
{
	(void)err;
	__atomic_fetch_add((unsigned *)arg, 1, __ATOMIC_ACQ_REL);
}

/* Submits all the time; only a reset may be the reason why something fails. */
static void *submit_on_and_on(void *arg)
{
	struct submitter *s = arg;
	struct hal_queue *q = hal_device_queue(dev, HAL_QUEUE_COMPUTE);
	struct hw_binding b[3] = { [2] = { hal_mem_va(s->out), 8 } };
	struct hal_launch l = { .exe = s->exe, .bindings = b };

	while (!__atomic_load_n(&s->quit, __ATOMIC_ACQUIRE)) {
		uint64_t value;
		struct err err;
		int code = hal_queue_execute(q, &l, &value, &err);

		if (!code && !hal_queue_notify(q, value, count_notice, &s->noted, NULL))
			s->asked++;
		if (!code)
			code = hal_queue_wait(q, value, clock_after(5000000000), &err);
		if (code && code != ERR_ABORTED) {
			fprintf(stderr, "%s\n", err.msg);
			s->wrong = code;
		}
	}
	return NULL;
}

static void resets_meet_submissions_of_other_threads(void **state)
{
	struct submitter s = { .exe = load(store_42, 3, 0), .out = get(8) };
	pthread_t thread;
	int64_t until;
	uint64_t value;
	struct err err;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, submit_on_and_on, &s), 0);
	for (int i = 0; i < 60; i++)
		if (hal_device_reset(dev, &err))
			fail_msg("round %d: %s", i, err.msg);
	__atomic_store_n(&s.quit, 1, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
	assert_int_equal(s.wrong, 0);
	value = run(s.exe, s.out, 0);
	assert_int_equal(hal_queue_wait(hal_device_queue(dev, HAL_QUEUE_COMPUTE), value,
					clock_after(5000000000), &err), 0);
	until = clock_after(5000000000);
	while (__atomic_load_n(&s.noted, __ATOMIC_ACQUIRE) < s.asked && clock_ns() < until)
		;
	assert_int_equal(s.noted, s.asked);
	hal_exe_unload(s.exe);
	hal_mem_free(s.out);
}

/* What a reset loads again may be unloaded meanwhile. */
static void *load_on_and_on(void *arg)
{
	struct submitter *s = arg;
	struct hal_exe *exe[32] = { NULL };

	for (unsigned i = 0; !__atomic_load_n(&s->quit, __ATOMIC_ACQUIRE); ) {
		struct err err;
		int code;

		hal_exe_unload(exe[i]);
		exe[i] = NULL;
		code = hal_exe_load(dev, s->image, s->image_bytes, &exe[i], &err);
		if (!code) {
			__atomic_fetch_add(&s->asked, 1, __ATOMIC_RELAXED);
			i = (i + 1) % 32;
		}
		if (code && code != ERR_ABORTED) {
			fprintf(stderr, "%s\n", err.msg);
			s->wrong = code;
		}
	}
	for (unsigned i = 0; i < 32; i++)
		hal_exe_unload(exe[i]);
	return NULL;
}

static void resets_meet_loads_of_other_threads(void **state)
{
	int64_t until = clock_after(30000000000);
	struct submitter s = { 0 };
	pthread_t thread;
	struct err err;

	(void)state;
	make_image(store_42, 3, 0, &s.image, &s.image_bytes);
	assert_int_equal(pthread_create(&thread, NULL, load_on_and_on, &s), 0);
	/* A busy machine may let the other thread run seldom. */
	for (int i = 0; i < 60 || (!__atomic_load_n(&s.asked, __ATOMIC_RELAXED) &&
				   clock_ns() < until); i++)
		if (hal_device_reset(dev, &err))
			fail_msg("round %d: %s", i, err.msg);
	__atomic_store_n(&s.quit, 1, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
	assert_int_equal(s.wrong, 0);
	assert_true(s.asked > 0);
	free(s.image);
}

static void closing_delivers_what_was_asked_for(void **state)
{
	(void)state;
	for (int i = 0; i < 100; i++) {
		struct hal_device *saved = dev;
		unsigned noted = 0;
		struct hal *h;
		struct err err;

		assert_int_equal(hal_create(&(struct hal_options){
			.devices = "sim:hbm=16M" }, &h, &err), 0);
		assert_int_equal(hal_device_open(h, 0, &dev, &err), 0);
		for (int k = 0; k < 5; k++)
			assert_int_equal(hal_queue_notify(
				hal_device_queue(dev, HAL_QUEUE_COMPUTE),
				run(load(spin, 2, 0), get(8), 0), count_notice, &noted,
				&err), 0);
		/* Whoever died is told of as well. */
		if (i % 2)
			hal_device_inject(dev, HW_INJECT_FATAL, 0, &err);
		else
			hal_queue_reset(hal_device_queue(dev, HAL_QUEUE_COMPUTE), "end",
					&err);
		hal_destroy(h);
		assert_int_equal(noted, 5);
		dev = saved;
	}
}

static void resets_leave_allocations_and_programs_usable(void **state)
{
	struct hal_queue *dma = hal_device_queue(dev, HAL_QUEUE_DMA);
	struct hal_queue *q = hal_device_queue(dev, HAL_QUEUE_COMPUTE);
	const uint64_t bytes = 3 << 20;
	struct hal_exe *exe = load(store_42, 3, 0);
	struct hal_mem *m = get(bytes), *out = get(8), *host, *back;
	uint64_t value;
	struct err err;

	(void)state;
	assert_int_equal(hal_mem_alloc(dev, HAL_MEM_HOST, bytes, "in", &host, &err), 0);
	assert_int_equal(hal_mem_alloc(dev, HAL_MEM_HOST, bytes, "out", &back, &err), 0);
	for (int round = 0; round < 3; round++) {
		int64_t got = 0;

		if (hal_device_reset(dev, &err))
			fail_msg("%s", err.msg);
		for (uint64_t i = 0; i < bytes; i++)
			((uint8_t *)hal_mem_host(host))[i] = (uint8_t)(i * 31 + i / 4096 + round);
		assert_int_equal(hal_queue_copy(dma, m, 0, host, 0, bytes, NULL, 0, &value, &err),
				 0);
		assert_int_equal(hal_queue_copy(dma, back, 0, m, 0, bytes, NULL, 0, &value, &err),
				 0);
		assert_int_equal(hal_queue_wait(dma, value, clock_after(5000000000), &err), 0);
		assert_memory_equal(hal_mem_host(host), hal_mem_host(back), bytes);
		value = run(exe, out, 0);
		assert_int_equal(hal_queue_wait(q, value, clock_after(5000000000), &err), 0);
		hal_copy_out(&got, out, 0, 8, CLOCK_FOREVER, &err);
		assert_int_equal(got, 42);
	}
	hal_mem_free(host);
	hal_mem_free(back);
	hal_mem_free(m);
	hal_mem_free(out);
	hal_exe_unload(exe);
}

/* Runs exe on out and expects the model to stop it, with all of these words. */
static void expect_stop(struct hal_exe *exe, struct hal_mem *out, const char *const *words)
{
	struct hal_queue *q = hal_device_queue(dev, HAL_QUEUE_COMPUTE);
	struct err err;

	assert_int_equal(hal_queue_wait(q, run(exe, out, 0), clock_after(5000000000), &err),
			 ERR_INTERNAL);
	for (; *words; words++)
		if (!strstr(err.msg, *words))
			fail_msg("no \"%s\" in \"%s\"", *words, err.msg);
}

/* Whoever trains has taken all of it when a device dies. */
static void a_reset_needs_no_free_memory(void **state)
{
	struct hal_exe *exe = load(store_42, 3, 0);
	struct hal_mem *all, *out;
	struct hal_mem_stats s;
	struct err err;

	(void)state;
	hal_mem_stats(dev, HAL_MEM_HBM, &s);
	all = get(s.largest_free_bytes);
	for (int round = 0; round < 2; round++) {
		int64_t got = 0;
		uint64_t value;

		if (hal_device_reset(dev, &err))
			fail_msg("%s", err.msg);
		assert_int_equal(hal_mem_view(dev, hal_mem_va(all), 8, &out, &err), 0);
		value = run(exe, out, 0);
		assert_int_equal(hal_queue_wait(hal_device_queue(dev, HAL_QUEUE_COMPUTE), value,
						clock_after(5000000000), &err), 0);
		hal_copy_out(&got, out, 0, 8, CLOCK_FOREVER, &err);
		assert_int_equal(got, 42);
		hal_mem_free(out);
	}
	hal_exe_unload(exe);
	hal_mem_free(all);
}

static void a_model_that_checks_names_the_op(void **state)
{
	static const struct isa_scalar read[] = {
		{ INSN(LD), .rd = 1, .elem = ELEM_S32, .binding = 2, .imm = 4 },
		{ INSN(HALT) },
	};
	struct {
		struct isa_copy copy;
		struct isa_scalar halt;
	} move = { .copy = { .insn = { ISA_COPY, 0, sizeof(move.copy) }, .elem_bytes = 2,
			     .rank = 1, .dim = { 3, 1, 1, 1, 1, 1, 1, 1 },
			     .src = { .binding = 2, .stride = { 2 } },
			     .dst = { .binding = 2, .stride = { 2 }, .offset = 2 } },
		   .halt = { INSN(HALT) } };
	struct hal_device *saved = dev;
	struct hal_exe *exe, *good;
	struct hal_queue *q;
	struct hal_mem *out;
	struct hal *h;
	struct err err;
	uint64_t va;

	(void)state;
	dev = open_at("sim:hbm=64M,lanes=1,check", 0, &h, &err);
	assert_non_null(dev);
	q = hal_device_queue(dev, HAL_QUEUE_COMPUTE);
	exe = load(read, 2, 0);
	good = load(store_42, 3, 0);
	out = get(8);
	va = hal_mem_va(out);
	expect_stop(exe, out, (const char *[]){ "UNWRITTEN", "instruction ld at 0x0",
		    "op store from here", "operand 0, binding 2, address 0x4", NULL });
	/* half of it written by the host, then all by a program */
	assert_int_equal(hal_copy_in(out, 0, "abcd", 4, CLOCK_FOREVER, &err), 0);
	expect_stop(exe, out, (const char *[]){ "UNWRITTEN", NULL });
	run(good, out, 0);
	assert_int_equal(hal_queue_wait(q, run(exe, out, 0), clock_after(5000000000), &err), 0);
	/* the same memory for somebody else */
	hal_mem_free(out);
	out = get(8);
	assert_int_equal(hal_mem_va(out), va);
	expect_stop(exe, out, (const char *[]){ "UNWRITTEN", NULL });
	hal_exe_unload(exe);
	exe = load((const void *)&move, sizeof(move) / sizeof(*read), 0);
	expect_stop(exe, out, (const char *[]){ "OPERANDS", "instruction copy at 0x0",
		    "op store from here", "operand 1, binding 2, address 0x2, on operand 0",
		    NULL });
	hal_destroy(h);
	dev = saved;
}

static void unknown_selections_say_what_to_do(void **state)
{
	struct hal *h;
	struct err err;

	(void)state;
	assert_int_equal(hal_create(&(struct hal_options){ .devices = "gpu" }, &h, &err),
			 ERR_INVALID_ARGUMENT);
	assert_non_null(strstr(err.msg, "sim"));
	assert_int_equal(hal_create(&(struct hal_options){ .devices = "vfio:ffff:1f:1f.7" },
				    &h, &err), ERR_NOT_FOUND);
	assert_non_null(strstr(err.msg, "lspci"));
	assert_int_equal(hal_create(&(struct hal_options){ .devices = "sim:hbm=1" }, &h,
				    &err), ERR_INVALID_ARGUMENT);
}

static void a_limit_that_is_no_number_is_refused(void **state)
{
	static const char *const bad[] = { "abc", "10s", "-1", "1.5", "18446744073710" };
	struct hal_device *d;
	struct hal *h;
	struct err err;

	(void)state;
	assert_int_equal(hal_create(&(struct hal_options){ .devices = "sim:hbm=16M" }, &h, &err),
			 0);
	for (unsigned i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		setenv("TESSERA_LIMIT_MS", bad[i], 1);
		assert_int_equal(hal_device_open(h, 0, &d, &err), ERR_INVALID_ARGUMENT);
		assert_non_null(strstr(err.msg, bad[i]));
	}
	unsetenv("TESSERA_LIMIT_MS");
	assert_int_equal(hal_device_open(h, 0, &d, &err), 0);
	hal_destroy(h);
}

static void opens_and_closes_a_hundred_times(void **state)
{
	(void)state;
	for (int i = 0; i < 100; i++) {
		struct hal *h;
		struct hal_device *d;
		struct hal_mem *m;
		struct err err;

		assert_int_equal(hal_create(&(struct hal_options){
			.devices = "sim:devices=2,hbm=16M" }, &h, &err), 0);
		assert_int_equal(hal_device_open(h, 1, &d, &err), 0);
		assert_int_equal(hal_mem_alloc(d, HAL_MEM_HBM, 100, "x", &m, &err), 0);
		hal_destroy(h);
	}
}

/* Every test, as a list. */
struct asker {
	pthread_t thread;
	int code;
};

static void *ask_on_and_on(void *arg)
{
	struct asker *a = arg;
	struct hw_telemetry t;
	struct err err;

	for (int i = 0; i < 3000 && !a->code; i++)
		a->code = hal_device_telemetry(dev, &t, &err);
	return NULL;
}

static void requests_of_many_threads_get_their_answers(void **state)
{
	struct asker askers[3] = { 0 };

	(void)state;
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&askers[i].thread, NULL, ask_on_and_on,
						&askers[i]), 0);
	for (unsigned i = 0; i < 3; i++)
		pthread_join(askers[i].thread, NULL);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(askers[i].code, 0);
}

#define DEVICE_TESTS \
	cmocka_unit_test(requests_of_many_threads_get_their_answers), \
	cmocka_unit_test(executes_inline_and_on_the_engine), \
	cmocka_unit_test(fault_names_everything_and_the_queue_recovers), \
	cmocka_unit_test(everything_behind_a_fault_fails), \
	cmocka_unit_test(endless_program_meets_its_watchdog), \
	cmocka_unit_test(what_came_behind_is_not_stopped), \
	cmocka_unit_test(notices_come_once_with_the_error), \
	cmocka_unit_test(a_child_of_fork_leaves_the_device_alone), \
	cmocka_unit_test(notices_of_what_was_never_submitted_are_refused), \
	cmocka_unit_test(copies_move_bytes_on_the_queue_and_by_hand), \
	cmocka_unit_test(strided_copies_follow_any_strides), \
	cmocka_unit_test(exhaustion_names_request_and_owners), \
	cmocka_unit_test(heap_survives_random_use), \
	cmocka_unit_test(killed_device_fails_everything_with_its_first_error), \
	cmocka_unit_test(the_request_that_kills_is_answered), \
	cmocka_unit_test(an_answer_to_another_request_is_none), \
	cmocka_unit_test(resets_meet_submissions_of_other_threads), \
	cmocka_unit_test(resets_meet_loads_of_other_threads), \
	cmocka_unit_test(closing_delivers_what_was_asked_for), \
	cmocka_unit_test(resets_leave_allocations_and_programs_usable), \
	cmocka_unit_test(a_reset_needs_no_free_memory), \
	cmocka_unit_test(a_model_that_checks_names_the_op), \
	cmocka_unit_test(unknown_selections_say_what_to_do), \
	cmocka_unit_test(a_limit_that_is_no_number_is_refused), \
	cmocka_unit_test(opens_and_closes_a_hundred_times)

#ifndef DEVICE_TESTS_ONLY
#include "tests/unit/hal/hal_accel_cases.c"

int main(void)
{
	const struct CMUnitTest tests[] = { DEVICE_TESTS };
	const struct CMUnitTest accel_tests[] = {
		DEVICE_TESTS,
		cmocka_unit_test(neighbours_do_not_notice_one_another),
		cmocka_unit_test(a_neighbours_reset_is_not_noticed),
	};

	if (getenv("TESSERA_DEVICES"))
		devices = getenv("TESSERA_DEVICES");
	if (!strncmp(devices, "accel:", 6))
		return cmocka_run_group_tests(accel_tests, open_device, close_device);
	return cmocka_run_group_tests(tests, open_device, close_device);
}
#endif
