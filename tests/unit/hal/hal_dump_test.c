/* SPDX-License-Identifier: Apache-2.0 */
/* Crash dumps: what a fault and a death leave behind, where, how much of it, and that hostile
 * files are refused. tc_objdump_test reads one as people do. */
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
#include <unistd.h>

#include <cmocka.h>

#include "hal/dump.h"
#include "hal/hal.h"
#include "hal/hw/image.h"
#include "hal/hw/isa.h"
#include "hal/hw/regs.h"

#define SECONDS 1000000000ll

static struct hal *hal;
static struct hal_device *dev;
static char folder[64];

static void open_device(const char *most)
{
	struct hal_options o = { .devices = "sim", .sim = "hbm=64M,lanes=1" };
	struct err err;

	setenv("TESSERA_DUMP_DIR", folder, 1);
	if (most)
		setenv("TESSERA_CRASH_DUMPS", most, 1);
	else
		unsetenv("TESSERA_CRASH_DUMPS");
	if (hal_create(&o, &hal, &err) || hal_device_open(hal, 0, &dev, &err))
		fail_msg("%s", err.msg);
}

/* Waits for what is being written, too. */
static void close_device(void)
{
	hal_destroy(hal);
	hal = NULL;
}

static int make_folder(void **state)
{
	(void)state;
	snprintf(folder, sizeof(folder), "/tmp/tessera-dumps.XXXXXX");
	return mkdtemp(folder) ? 0 : -1;
}

static int drop_folder(void **state)
{
	char command[100];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", folder);
	return system(command);
}

static unsigned count_files(const char *prefix)
{
	DIR *d = opendir(folder);
	struct dirent *e;
	unsigned n = 0;

	while (d && (e = readdir(d)))
		n += !strncmp(e->d_name, prefix, strlen(prefix));
	if (d)
		closedir(d);
	return n;
}

#define INSN(code) .insn = { .op = ISA_##code, .bytes = sizeof(struct isa_scalar) }

static const struct isa_scalar stray[] = {
	{ INSN(LI), .rd = 1, .imm = 4096 },
	{ INSN(ST), .rb = 1, .ra = 1, .elem = ELEM_S64, .binding = 2 },
	{ INSN(HALT) },
};
static const struct isa_scalar spin[] = {
	{ INSN(JMP), .imm = 0 },
	{ INSN(HALT) },
};

static struct hal_exe *load(const struct isa_scalar *code, size_t n)
{
	static const char strings[] = "\0test\0load\0first\0store\0second, at a line far behind";
	struct image_binding b[] = {
		{ .kind = IMAGE_CONSTANTS }, { .kind = IMAGE_TEMP },
		{ .kind = IMAGE_RESULT, .access = HW_BIND_READ | HW_BIND_WRITE, .bytes = 8 },
	};
	struct image_shape shape = { .elem = ELEM_S64, .alias = -1 };
	struct image_debug debug[] = { { .offset = 0, .op = 6, .where = 11 },
				       { .offset = 0x18, .op = 17, .where = 23 } };
	struct image im = {
		.info = { .version = IMAGE_VERSION, .isa = ISA_VERSION, .n_results = 1,
			  .name = 1, .n_replicas = 1, .n_partitions = 1 },
		.text = code, .text_bytes = n * sizeof(*code), .bindings = b,
		.n_bindings = 3, .shapes = &shape, .debug = debug, .n_debug = 2,
		.strings = strings, .strings_bytes = sizeof(strings), .note = "by hand",
	};
	struct hal_exe *exe;
	struct err err;
	size_t bytes;
	void *image;

	if (image_write(&im, &image, &bytes, &err) ||
	    hal_exe_load(dev, image, bytes, &exe, &err))
		fail_msg("%s", err.msg);
	free(image);
	return exe;
}

static uint64_t launch(struct hal_exe *exe, uint64_t va)
{
	struct hw_binding b[3] = { { 0, 0 }, { 0, 0 }, { va, 8 } };
	struct hal_launch l = { .exe = exe, .bindings = b };
	struct err err;
	uint64_t value;

	if (hal_queue_execute(hal_device_queue(dev, HAL_QUEUE_COMPUTE), &l, &value, &err))
		fail_msg("%s", err.msg);
	return value;
}

/* Fails once; the error's text. */
static void fault(struct hal_exe *exe, uint64_t va, struct err *err)
{
	struct hal_queue *q = hal_device_queue(dev, HAL_QUEUE_COMPUTE);

	assert_int_equal(hal_queue_wait(q, launch(exe, va), clock_after(10 * SECONDS), err),
			 ERR_INVALID_ARGUMENT);
	assert_non_null(strstr(err->msg, "BOUNDS"));
}

static struct hal_mem *get(const char *tag)
{
	struct hal_mem *m;
	struct err err;

	if (hal_mem_alloc(dev, HAL_MEM_HBM, 8, tag, &m, &err))
		fail_msg("%s", err.msg);
	return m;
}

/* The file that an error's text names; "" if it names none. */
static const char *file_of(const struct err *err)
{
	const char *at = strstr(err->msg, folder);

	return at ? at : "";
}

static void *read_all(const char *path, size_t *n)
{
	int fd = open(path, O_RDONLY);
	void *p = malloc(HAL_DUMP_BYTES + 1);
	ssize_t got = fd >= 0 && p ? read(fd, p, HAL_DUMP_BYTES + 1) : -1;

	if (got < 0)
		fail_msg("%s can't be read", path);
	close(fd);
	*n = (size_t)got;
	return p;
}

static struct hal_dump *read_dump(const char *path)
{
	struct hal_dump *d;
	struct err err;
	size_t n;
	void *p = read_all(path, &n);

	if (hal_dump_parse(p, n, &d, &err))
		fail_msg("%s", err.msg);
	free(p);
	return d;
}

static const struct hal_dump_register *register_at(const struct hal_dump *d, uint32_t offset)
{
	for (size_t i = 0; i < d->n_registers; i++)
		if (d->registers[i].offset == offset)
			return &d->registers[i];
	fail_msg("no register at 0x%x", offset);
	return NULL;
}

static const struct hal_dump_block *block_at(const struct hal_dump *d, uint64_t va)
{
	for (size_t i = 0; i < d->n_memory; i++)
		if (d->memory[i].va == va)
			return &d->memory[i];
	return NULL;
}

static void a_fault_leaves_its_evidence(void **state)
{
	struct hal_dump *d;
	struct stat st;
	struct err err;
	uint64_t va;

	(void)state;
	open_device(NULL);
	va = hal_mem_va(get("the weights"));
	launch(load(spin, 2), va);	/* something runs before, which a reset ends */
	hal_queue_reset(hal_device_queue(dev, HAL_QUEUE_COMPUTE), "the test goes on", &err);
	fault(load(stray, 3), va, &err);
	close_device();
	assert_int_equal(stat(file_of(&err), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_in_range(st.st_size, 1, HAL_DUMP_BYTES);
	d = read_dump(file_of(&err));
	assert_int_equal(d->about->reason, HAL_DUMP_FAULT);
	assert_int_equal(d->about->code, ERR_INVALID_ARGUMENT);
	assert_int_equal(d->about->pid, getpid());
	assert_int_equal(d->about->isa, ISA_VERSION);
	assert_string_equal(d->about->bus_id, "sim:0");
	/* The text is the error's, up to where it names the file. */
	assert_int_equal(strncmp(err.msg, d->about->text, strlen(d->about->text)), 0);
	assert_int_equal(register_at(d, HW_REG_ID)->value, 0x7e551234);
	assert_int_equal(register_at(d, HW_REG_STATUS)->value, HW_STATUS_READY);
	assert_int_equal(d->n_faults, 1);
	assert_int_equal(d->faults->status, HW_ST_BOUNDS);
	assert_int_equal(d->faults->pc, 0x18);
	assert_int_equal(d->n_place, 1);
	assert_string_equal(d->place->program, "test");
	assert_string_equal(d->place->made_by, "by hand");
	assert_int_equal(d->place->pc, 0x18);
	assert_int_equal(d->n_code, sizeof(stray));
	assert_memory_equal(d->code, stray, sizeof(stray));
	assert_int_equal(d->n_ops, 2);
	assert_string_equal(d->ops[1].op, "store");
	assert_string_equal(d->ops[1].where, "second, at a line far behind");
	assert_int_equal(d->n_bindings, 3);
	assert_int_equal(d->bindings[2].va, va);
	assert_int_equal(d->bindings[2].kind, IMAGE_RESULT);
	assert_int_equal(d->descriptor->op, HW_EXECUTE);
	assert_non_null(block_at(d, va));
	assert_string_equal(block_at(d, va)->owner, "the weights");
	assert_true(d->n_queues >= 2);
	assert_int_equal(d->n_rings, 2);
	assert_int_equal(d->work[0].number, d->rings[0].done + 1);
	assert_string_equal(d->work[0].name, "test");
	/* The reset before it. */
	assert_true(d->n_events >= 1);
	assert_non_null(strstr(d->events[0].text, "the test goes on"));
	hal_dump_free(d);
}

/* xla-smi log has less room for a text than an error, but names the file, too. */
static void events_name_the_file_of_a_fault_before(void **state)
{
	struct err first, err;
	struct hal_exe *exe;
	struct hal_dump *d;
	uint64_t va;

	(void)state;
	open_device(NULL);
	exe = load(stray, 3);
	va = hal_mem_va(get("x"));
	fault(exe, va, &first);
	fault(exe, va, &err);
	close_device();
	d = read_dump(file_of(&err));
	assert_in_range(strlen(first.msg), sizeof(d->events[0].text), sizeof(first.msg));
	assert_int_equal(strlen(d->events[0].text), sizeof(d->events[0].text) - 1);
	assert_non_null(strstr(d->events[0].text, file_of(&first)));
	hal_dump_free(d);
}

static void a_copys_fault_tells_its_addresses(void **state)
{
	struct hw_copy_2d what = { .src = 1ull << 40, .dst = 1ull << 41, .row_bytes = 64,
				   .rows = 1, .planes = 1 };
	struct hal_dump *d;
	struct err err;
	uint64_t value;

	(void)state;
	open_device(NULL);
	assert_int_equal(hal_queue_copy_2d(hal_device_queue(dev, HAL_QUEUE_DMA), &what, NULL, 0,
					   &value, &err), 0);
	assert_int_not_equal(hal_queue_wait(hal_device_queue(dev, HAL_QUEUE_DMA), value,
					    clock_after(10 * SECONDS), &err), 0);
	close_device();
	d = read_dump(file_of(&err));
	assert_int_equal(d->descriptor->op, HW_COPY_2D);
	assert_int_equal(d->faults->va, 1ull << 40);
	assert_int_equal(d->n_place, 0);
	assert_int_equal(d->rings[0].cls, HAL_QUEUE_DMA);
	assert_int_equal(d->work[0].is_program, 0);
	hal_dump_free(d);
}

static void a_death_leaves_its_evidence(void **state)
{
	struct hal_exe *exe;
	struct hal_dump *d;
	struct err err;
	uint64_t value;

	(void)state;
	open_device(NULL);
	exe = load(spin, 2);
	value = launch(exe, hal_mem_va(get("x")));
	assert_int_equal(hal_device_inject(dev, HW_INJECT_FATAL, 0, &err), 0);
	assert_int_equal(hal_queue_wait(hal_device_queue(dev, HAL_QUEUE_COMPUTE), value,
					clock_after(10 * SECONDS), &err), ERR_UNAVAILABLE);
	close_device();
	d = read_dump(file_of(&err));
	assert_int_equal(d->about->reason, HAL_DUMP_DEATH);
	assert_int_equal(d->about->code, ERR_UNAVAILABLE);
	assert_true(register_at(d, HW_REG_STATUS)->value & HW_STATUS_FATAL);
	assert_int_equal(d->n_faults, 0);
	assert_int_equal(d->rings[0].submitted, value);
	assert_int_equal(count_files(HAL_DUMP_PREFIX), 1);
	hal_dump_free(d);
}

static void a_process_writes_so_many(void **state)
{
	struct hal_exe *exe;
	struct err err;
	uint64_t va;

	(void)state;
	open_device("2");
	exe = load(stray, 3);
	va = hal_mem_va(get("x"));
	for (unsigned i = 0; i < 5; i++) {
		fault(exe, va, &err);
		assert_int_equal(*file_of(&err) != 0, i < 2);
	}
	close_device();
	assert_int_equal(count_files(""), 2 + 2);	/* with "." and ".." */
}

static void nought_writes_none(void **state)
{
	struct err err;

	(void)state;
	open_device("0");
	fault(load(stray, 3), hal_mem_va(get("x")), &err);
	close_device();
	assert_null(strstr(err.msg, "tessera-objdump"));
	assert_int_equal(count_files(HAL_DUMP_PREFIX), 0);
}

static void the_oldest_go(void **state)
{
	struct timespec t[2] = { { 0, 0 }, { 0, 0 } };
	char path[128];
	struct err err;

	(void)state;
	for (unsigned i = 0; i < HAL_DUMP_FILES + 4; i++) {
		snprintf(path, sizeof(path), "%s/" HAL_DUMP_PREFIX "%u-1-%016x", folder, geteuid(),
			 i);
		t[1].tv_sec = 1000 + i;
		close(open(path, O_CREAT | O_WRONLY, 0600));
		assert_int_equal(utimensat(AT_FDCWD, path, t, 0), 0);
	}
	/* What is another user's, or no dump, is left alone. */
	snprintf(path, sizeof(path), "%s/" HAL_DUMP_PREFIX "%u-1-0", folder, geteuid() + 1);
	close(open(path, O_CREAT | O_WRONLY, 0600));
	snprintf(path, sizeof(path), "%s/mine", folder);
	close(open(path, O_CREAT | O_WRONLY, 0600));
	open_device(NULL);
	fault(load(stray, 3), hal_mem_va(get("x")), &err);
	close_device();
	assert_int_equal(count_files(HAL_DUMP_PREFIX), HAL_DUMP_FILES + 1);
	assert_int_equal(count_files("mine"), 1);
	hal_dump_free(read_dump(file_of(&err)));
	snprintf(path, sizeof(path), HAL_DUMP_PREFIX "%u-1-%016x", geteuid(), 4);
	assert_int_equal(count_files(path), 0);
	snprintf(path, sizeof(path), HAL_DUMP_PREFIX "%u-1-%016x", geteuid(), 5);
	assert_int_equal(count_files(path), 1);
}

/* Neither folder nor room: the error is what it would have been, and the queue goes on. */
static void what_cannot_be_written_fails_nobody(void **state)
{
	struct rlimit before, none;
	char kept[sizeof(folder)];
	struct err err;

	(void)state;
	memcpy(kept, folder, sizeof(kept));
	snprintf(folder, sizeof(folder), "%.40s/a/b", kept);
	open_device(NULL);
	fault(load(stray, 3), hal_mem_va(get("x")), &err);
	assert_string_equal(file_of(&err), "");
	close_device();
	memcpy(folder, kept, sizeof(kept));
	open_device(NULL);
	getrlimit(RLIMIT_FSIZE, &before);
	/* More than this program says, less than a dump. */
	none = (struct rlimit){ 2500, before.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
	fault(load(stray, 3), hal_mem_va(get("x")), &err);
	close_device();
	setrlimit(RLIMIT_FSIZE, &before);
	assert_int_equal(count_files(HAL_DUMP_PREFIX), 0);
}

/* A path that leaves the text no room for the fault. */
static void long_texts_still_name_the_file(void **state)
{
	char kept[sizeof(folder)], deep[160];
	struct err err;
	size_t n;

	(void)state;
	memcpy(kept, folder, sizeof(kept));
	memset(deep, 'd', sizeof(deep));
	n = (size_t)snprintf(deep, sizeof(deep), "%s/", folder);
	deep[n] = 'd';
	deep[150] = 0;
	open_device(NULL);
	hal_destroy(hal);
	setenv("TESSERA_DUMP_DIR", deep, 1);
	{
		struct hal_options o = { .devices = "sim", .sim = "hbm=64M,lanes=1" };

		if (hal_create(&o, &hal, &err) || hal_device_open(hal, 0, &dev, &err))
			fail_msg("%s", err.msg);
	}
	fault(load(stray, 3), hal_mem_va(get("x")), &err);
	close_device();
	hal_dump_free(read_dump(file_of(&err)));
	memcpy(folder, kept, sizeof(kept));
}

static void more_blocks_than_rows_keep_those_around(void **state)
{
	struct hal_mem *m[3000];
	struct hal_dump *d;
	struct err err;
	uint64_t va;

	(void)state;
	open_device(NULL);
	for (unsigned i = 0; i < 3000; i++)
		m[i] = get("one of many");
	va = hal_mem_va(m[1500]);
	fault(load(stray, 3), va, &err);
	close_device();
	d = read_dump(file_of(&err));
	assert_int_equal(d->n_memory, 1024);
	assert_non_null(block_at(d, va));
	assert_non_null(block_at(d, va - 300 * HAL_MEM_ALIGN));
	assert_non_null(block_at(d, va + 300 * HAL_MEM_ALIGN));
	for (size_t i = 1; i < d->n_memory; i++)
		assert_true(d->memory[i - 1].va < d->memory[i].va);
	hal_dump_free(d);
}

static void hostile_files_are_refused_or_lie_within(void **state)
{
	uint64_t dice = 1;
	struct hal_dump *d;
	struct err err;
	uint8_t *p, *q;
	size_t n;

	(void)state;
	open_device(NULL);
	fault(load(stray, 3), hal_mem_va(get("x")), &err);
	close_device();
	p = read_all(file_of(&err), &n);
	for (size_t cut = 0; cut < n; cut += cut < 200 ? 1 : 97) {
		q = malloc(cut ? cut : 1);
		memcpy(q, p, cut);
		assert_int_equal(hal_dump_parse(q, cut, &d, &err), ERR_INVALID_ARGUMENT);
		free(q);
	}
	q = malloc(n);
	for (unsigned i = 0; i < 20000; i++) {
		memcpy(q, p, n);
		for (unsigned k = 0; k < 3; k++) {
			dice = dice * 6364136223846793005u + 1442695040888963407u;
			q[(dice >> 20) % (i % 2 ? n : 2000)] = (uint8_t)(dice >> 56);
		}
		if (hal_dump_parse(q, n, &d, &err))
			continue;
		assert_non_null(d->about);
		assert_true(memchr(d->about->text, 0, sizeof(d->about->text)));
		for (size_t k = 0; k < d->n_memory; k++)
			assert_true(memchr(d->memory[k].owner, 0, sizeof(d->memory[k].owner)));
		hal_dump_free(d);
	}
	free(q);
	free(p);
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, make_folder, drop_folder)
	const struct CMUnitTest tests[] = {
		CASE(a_fault_leaves_its_evidence),
		CASE(events_name_the_file_of_a_fault_before),
		CASE(a_copys_fault_tells_its_addresses),
		CASE(a_death_leaves_its_evidence),
		CASE(a_process_writes_so_many),
		CASE(nought_writes_none),
		CASE(the_oldest_go),
		CASE(what_cannot_be_written_fails_nobody),
		CASE(long_texts_still_name_the_file),
		CASE(more_blocks_than_rows_keep_those_around),
		CASE(hostile_files_are_refused_or_lie_within),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
