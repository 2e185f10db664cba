/* SPDX-License-Identifier: Apache-2.0 */
/* tessera-objdump on what the compiler makes of real programs, and on files that are
 * no executables. */
#include <dirent.h>
#include <math.h>
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
#include <json-c/json.h>

#include "hal/hal.h"
#include "hal/hw/image.h"
#include "runtime/compiler/tc.h"

#define FOLDER "tests/data/programs"
#define MAX_OUT ((size_t)8 << 20)

static char tool[600], dir[] = "/tmp/tessera-objdump.XXXXXX", file[64];
static char *output;

static int start(void **state)
{
	ssize_t n = readlink("/proc/self/exe", tool, 512);

	(void)state;
	if (n <= 0 || !mkdtemp(dir))
		return -1;
	tool[n] = 0;
	*strrchr(tool, '/') = 0;
	strcpy(strrchr(tool, '/'), "/tessera-objdump");
	snprintf(file, sizeof(file), "%s/image.elf", dir);
	output = malloc(MAX_OUT);
	return output ? 0 : -1;
}

static int stop(void **state)
{
	(void)state;
	unlink(file);
	rmdir(dir);
	free(output);
	return 0;
}

static void write_file(const void *p, size_t n)
{
	FILE *f = fopen(file, "wb");

	assert_non_null(f);
	assert_int_equal(fwrite(p, 1, n, f), n);
	assert_int_equal(fclose(f), 0);
}

/* What the tool prints, errors too; its exit status. */
static int run(const char *arguments, const char *path)
{
	/* As tests/run.sh runs this program, for another architecture. */
	const char *emulator = getenv("TESSERA_EMULATOR");
	char command[1024];
	size_t n;
	FILE *f;
	int status;

	snprintf(command, sizeof(command), "%s %s %s %s 2>&1", emulator ? emulator : "",
		 tool, arguments, path);
	f = popen(command, "r");
	assert_non_null(f);
	n = fread(output, 1, MAX_OUT - 1, f);
	output[n] = 0;
	status = pclose(f);
	assert_true(WIFEXITED(status));
	if (strstr(output, "Sanitizer") || strstr(output, "runtime error:"))
		fail_msg("%s", output);
	return WEXITSTATUS(status);
}

static void *read_program(const char *name, size_t *n)
{
	char path[512];
	void *p = malloc(1 << 20);
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", FOLDER, name);
	f = fopen(path, "rb");
	assert_non_null(p);
	assert_non_null(f);
	*n = fread(p, 1, 1 << 20, f);
	fclose(f);
	return p;
}

/* No image: the program holds something that does not run. */
static struct tc_result compile(const void *p, size_t n)
{
	struct tc_source s = { p, n, "mlir" };
	struct tc_result r = { 0 };
	struct err err = { 0 };
	int code = tc_compile(&s, NULL, &r, &err);

	if (code && code != ERR_UNIMPLEMENTED)
		fail_msg("%s", err.msg);
	return r;
}

static struct tc_result compile_program(const char *name)
{
	size_t n;
	void *p = read_program(name, &n);
	struct tc_result r = compile(p, n);

	free(p);
	return r;
}

/* An operand's address as it stands in the text. */
static void has_operand(const char *from, const char *to, const struct isa_operand *o)
{
	char want[64], *at;

	snprintf(want, sizeof(want), "b%u%+lld", o->binding, (long long)o->offset);
	if (o->reg)
		snprintf(want + strlen(want), 16, "[r%u]", o->reg);
	at = strstr(from, want);
	if (!at || at >= to)
		fail_msg("no %s in: %.*s", want, (int)(to - from), from);
}

static void has_body(const char *from, const char *to, const struct isa_insn *insn)
{
	unsigned n_pre;
	const struct isa_body *b = isa_body_of(insn, &n_pre);
	const struct isa_operand *o;
	const struct isa_uop *u;

	if (!b)
		return;
	o = (const void *)((const char *)insn + isa_insn_info(insn->op)->head_bytes);
	for (unsigned i = 0; i < b->n_in + b->n_out; i++)
		has_operand(from, to, &o[i]);
	u = (const void *)(o + b->n_in + b->n_out);
	for (unsigned i = 0; i < b->n_uop; i++) {
		const struct isa_uop_info *info = isa_uop_info(u[i].op);
		char want[64], *at;

		snprintf(want, sizeof(want), " = %s.%s", info->mnemonic, elem_text(u[i].elem));
		at = strstr(from, want);
		if (!at || at >= to)
			fail_msg("no %s in: %.*s", want, (int)(to - from), from);
	}
}

/* Every instruction of the image, found by its length, is in the tool's output. */
static void has_code(const struct image *im, unsigned *n_insns)
{
	for (size_t at = 0; at < im->text_bytes;) {
		const struct isa_insn *insn = (const void *)((const char *)im->text + at);
		const struct image_debug *row = image_where(im, at);
		char want[64], next[16], note[600];
		const char *from, *to;

		snprintf(want, sizeof(want), "\n%08zx  %s", at, isa_insn_info(insn->op)->mnemonic);
		from = strstr(output, want);
		if (!from)
			fail_msg("no line \"%s\"", want + 1);
		snprintf(next, sizeof(next), "\n%08zx", at + insn->bytes);
		to = strstr(from, next);
		if (!to)
			to = from + strlen(from);
		snprintf(note, sizeof(note), "; %s%s%s\n", image_string(im, row->op),
			 *image_string(im, row->where) ? " at " : "",
			 image_string(im, row->where));
		assert_non_null(strstr(from, note));
		assert_true(strstr(from, note) < to);
		has_body(from, to, insn);
		at += insn->bytes;
		++*n_insns;
	}
}

static void each_instruction_is_printed_with_mnemonic_operands_and_origin(void **state)
{
	unsigned n_insns = 0, n = 0;
	struct dirent *d;
	DIR *folder = opendir(FOLDER);

	(void)state;
	assert_non_null(folder);
	while ((d = readdir(folder))) {
		struct tc_result r;
		struct image *im;

		if (!strstr(d->d_name, ".mlirbc"))
			continue;
		r = compile_program(d->d_name);
		if (!r.image)
			continue;
		write_file(r.image, r.image_bytes);
		assert_int_equal(run("-d", file), 0);
		assert_null(strstr(output, " ! "));
		assert_int_equal(image_parse(r.image, r.image_bytes, &im, NULL), 0);
		has_code(im, &n_insns);
		image_free(im);
		tc_result_free(&r);
		n++;
	}
	closedir(folder);
	assert_true(n >= 10);
	assert_true(n_insns >= 5 * n);
}

static const char donating[] =
	"module() {sym_name = \"jit_step\"} () {\n"
	"  func() {sym_name = \"main\"} (%0: tensor<16x4xf32> {alias = 0}, "
	"%1: tensor<4xf32>) {\n"
	"    %2 = broadcast_in_dim(%1) {broadcast_dimensions = [1]} : tensor<16x4xf32>\n"
	"    %3 = add(%0, %2) : tensor<16x4xf32> # jit(step)/add at f.py:3\\1b[31m\\ff\n"
	"    return(%3)\n"
	"  }\n"
	"}\n";

static void headers_and_signature_tell_the_memory_plan_and_donation(void **state)
{
	struct tc_result r = compile(donating, strlen(donating));

	(void)state;
	write_file(r.image, r.image_bytes);
	assert_int_equal(run("", file), 0);
	assert_non_null(strstr(output, "  program      jit_step\n"));
	assert_non_null(strstr(output, "(tensor<16x4xf32>, tensor<4xf32>) -> (tensor<16x4xf32>)"));
	assert_non_null(strstr(output, "  b2       argument    0    read+write"));
	assert_non_null(strstr(output, "  b3       argument    1    read "));
	assert_null(strstr(output, "\n  b4"));
	assert_int_equal(run("-s", file), 0);
	assert_non_null(strstr(output, "256 bytes  device, donated: its memory becomes result "
			       "0\n"));
	assert_non_null(strstr(output, "256 bytes  device, in the memory of argument 0\n"));
	tc_result_free(&r);
}

static void texts_of_a_file_cannot_steer_the_terminal(void **state)
{
	struct tc_result r = compile(donating, strlen(donating));

	(void)state;
	write_file(r.image, r.image_bytes);
	assert_int_equal(run("-d", file), 0);
	assert_non_null(strstr(output, "jit(step)/add at f.py:3?[31m?\n"));
	assert_int_equal(run("-d --json", file), 0);
	assert_non_null(strstr(output, "jit(step)/add at f.py:3?[31m?\""));
	tc_result_free(&r);
}

static const char summing[] =
	"module() {sym_name = \"sum\"} () {\n"
	"  func() {sym_name = \"main\"} (%0: tensor<4xf32>) {\n"
	"    %1 = all_reduce(%0) {replica_groups = [0, 1], group_size = 2} : tensor<4xf32> "
	"(%2: tensor<f32>, %3: tensor<f32>) {\n"
	"      %4 = add(%2, %3) : tensor<f32>\n"
	"      return(%4)\n"
	"    } # meets at f.py:5\\1b[31m\\ff\n"
	"    return(%1)\n"
	"  }\n"
	"}\n";

/* Replaces a text of the image by one of the same length. */
static void replace(struct tc_result *r, const char *text, const char *by)
{
	char *at = memmem(r->image, r->image_bytes, text, strlen(text));

	assert_non_null(at);
	assert_int_equal(strlen(text), strlen(by));
	memcpy(at, by, strlen(by));
}

static struct tc_result compile_sum(void)
{
	struct tc_source s = { summing, strlen(summing), "mlir" };
	struct tc_options o = { .level = 1, .replicas = 2 };
	struct tc_result r = { 0 };
	struct err err = { 0 };

	if (tc_compile(&s, &o, &r, &err))
		fail_msg("%s", err.msg);
	return r;
}

static void meetings_cannot_steer_the_terminal_nor_break_json(void **state)
{
	struct tc_result r = compile_sum();
	struct json_object *o, *f, *m;
	struct image_info *info;
	char groups[64], was[64];
	struct image *im;

	(void)state;
	assert_int_equal(image_parse(r.image, r.image_bytes, &im, NULL), 0);
	assert_int_not_equal(im->n_meetings, 0);
	snprintf(was, sizeof(was), "%s", image_string(im, im->meetings[0].groups));
	snprintf(groups, sizeof(groups), "%s", was);
	groups[0] = '\x1b';
	groups[1] = '\xff';
	info = memmem(r.image, r.image_bytes, &im->info, sizeof(im->info));
	assert_non_null(info);
	info->flops = NAN;
	info->bytes_accessed = INFINITY;
	image_free(im);
	replace(&r, was, groups);
	write_file(r.image, r.image_bytes);
	assert_int_equal(run("-h", file), 0);
	assert_non_null(strstr(output, "meets at f.py:5?[31m?\n"));
	assert_null(strpbrk(output, "\x1b\xff"));
	assert_int_equal(run("-h --json", file), 0);
	assert_null(strstr(output, "NaN"));
	assert_null(strstr(output, "Infinity"));
	o = json_tokener_parse(output);
	f = json_object_array_get_idx(json_object_object_get(o, "files"), 0);
	m = json_object_array_get_idx(json_object_object_get(f, "meetings"), 0);
	assert_string_equal(json_object_get_string(json_object_object_get(m, "where")),
			    "meets at f.py:5?[31m?");
	groups[0] = groups[1] = '?';
	assert_string_equal(json_object_get_string(json_object_object_get(m, "groups")), groups);
	assert_null(json_object_object_get(f, "operations"));
	assert_null(json_object_object_get(f, "bytes_moved"));
	json_object_put(o);
	tc_result_free(&r);
}

static void names_of_functions_are_shown_as_they_are_and_clean(void **state)
{
	static const char calling[] =
		"module() {sym_name = \"calls\"} () {\n"
		"  func() {sym_name = \"main\"} (%1: tensor<4xf32>) {\n"
		"    %2 = custom_call(%1) {call_target_name = \"f\\c3\\a4_abcdef\", frame = {}} : "
		"tensor<4xf32>\n"
		"    return(%2)\n"
		"  }\n"
		"}\n";
	struct tc_result r = compile(calling, strlen(calling));

	(void)state;
	assert_non_null(r.image);
	write_file(r.image, r.image_bytes);
	assert_int_equal(run("-h", file), 0);
	assert_non_null(strstr(output, " f\xc3\xa4_abcdef\n"));
	replace(&r, "f\xc3\xa4_abcdef", "f\xc3\x1b_\xff\x7f" "cdef");
	write_file(r.image, r.image_bytes);
	assert_int_equal(run("-h", file), 0);
	assert_non_null(strstr(output, " f\?\?_\?\?cdef\n"));
	tc_result_free(&r);
}

static void json_says_the_same(void **state)
{
	struct tc_result r = compile(donating, strlen(donating));
	struct json_object *o, *list, *f, *code;
	struct image *im;
	uint64_t at = 0;

	(void)state;
	write_file(r.image, r.image_bytes);
	assert_int_equal(run("-hsd --json", file), 0);
	o = json_tokener_parse(output);
	assert_non_null(o);
	assert_string_equal(json_object_get_string(json_object_object_get(o, "schema")),
			    "tessera-objdump/1");
	list = json_object_object_get(o, "files");
	assert_int_equal(json_object_array_length(list), 1);
	f = json_object_array_get_idx(list, 0);
	assert_int_equal(image_parse(r.image, r.image_bytes, &im, NULL), 0);
	assert_int_equal(json_object_get_int(json_object_object_get(f, "code_bytes")),
			 im->text_bytes);
	assert_int_equal(json_object_array_length(json_object_object_get(f, "bindings")),
			 im->n_bindings);
	assert_int_equal(json_object_array_length(json_object_object_get(f, "arguments")), 2);
	code = json_object_object_get(f, "code");
	assert_int_equal(json_object_get_int(json_object_object_get(f, "instructions")),
			 json_object_array_length(code));
	for (size_t i = 0; i < json_object_array_length(code); i++) {
		struct json_object *line = json_object_array_get_idx(code, i);

		assert_int_equal(json_object_get_int(json_object_object_get(line, "offset")), at);
		at += json_object_get_uint64(json_object_object_get(line, "bytes"));
	}
	assert_int_equal(at, im->text_bytes);
	image_free(im);
	json_object_put(o);
	tc_result_free(&r);
}

static void an_entry_of_the_cache_is_read_too(void **state)
{
	struct tc_result r = compile(donating, strlen(donating));
	char *entry = malloc(r.image_bytes + 64);

	(void)state;
	assert_non_null(entry);
	memcpy(entry, r.image, r.image_bytes);
	memset(entry + r.image_bytes, 'a', 64);	/* its hash, at the end */
	write_file(entry, r.image_bytes + 64);
	assert_int_equal(run("-h", file), 0);
	assert_non_null(strstr(output, "jit_step"));
	free(entry);
	tc_result_free(&r);
}

static void verify_names_what_is_wrong_with_code_and_where(void **state)
{
	struct tc_result r = compile(donating, strlen(donating));
	struct isa_operand *in, *out;
	struct isa_tensor *vec;
	struct json_object *o, *refused;
	struct image *im;
	uint64_t stride;

	(void)state;
	write_file(r.image, r.image_bytes);
	assert_int_equal(run("--verify", file), 0);
	assert_non_null(strstr(output, "  verified     2 instructions\n"));
	/* The sum is written over the argument: now from behind. */
	assert_int_equal(image_parse(r.image, r.image_bytes, &im, NULL), 0);
	vec = memmem(r.image, r.image_bytes, im->text, im->text_bytes);
	image_free(im);
	assert_non_null(vec);
	assert_int_equal(vec->insn.op, ISA_VEC);
	in = (void *)(vec + 1);
	assert_int_equal(vec->body.n_in, 2);
	out = in + 2;
	assert_int_equal(out->binding, in[1].binding);
	stride = (uint64_t)out->stride[0];
	out->offset = 240;
	out->stride[0] = -(int64_t)stride;
	write_file(r.image, r.image_bytes);
	assert_int_equal(run("--verify", file), 1);
	assert_non_null(strstr(output, "  REFUSED      the instruction at 0x0 writes operand 2 "
			       "over an input otherwise than element for element, operand 1\n"));
	assert_non_null(strstr(output, "of fusion(broadcast_in_dim,add) at jit(step)/add at "
			       "f.py:3"));
	assert_int_equal(run("--verify --json", file), 1);
	o = json_tokener_parse(output);
	refused = json_object_array_get_idx(json_object_object_get(o, "files"), 0);
	refused = json_object_object_get(refused, "refused");
	assert_int_equal(json_object_get_int(json_object_object_get(refused, "offset")), 0);
	assert_string_equal(json_object_get_string(json_object_object_get(refused, "op")),
			    "fusion(broadcast_in_dim,add)");
	json_object_put(o);
	tc_result_free(&r);
}

static void refused(const void *p, size_t n, const char *says)
{
	write_file(p, n);
	assert_int_equal(run("-hsd", file), 1);
	if (!strstr(output, says))
		fail_msg("no \"%s\" in: %s", says, output);
}

static void files_of_others_are_named_for_what_they_are(void **state)
{
	size_t n;
	void *p = read_program("argmin_bool_15.mlirbc", &n);

	(void)state;
	refused("", 0, "image.elf: an empty file, not an executable\n");
	refused("#!/bin/sh\n", 10, "not a Tessera executable: no ELF header");
	refused(p, n, "a program in MLIR bytecode, not compiled yet");
	free(p);
	assert_int_equal(run("-d", tool), 1);
	assert_non_null(strstr(output, "an ELF file for machine 0x"));
	assert_int_equal(run("-d", "/no/such/file"), 1);
	assert_non_null(strstr(output, "/no/such/file: No such file or directory\n"));
	assert_int_equal(run("-d", "/tmp"), 1);
	assert_non_null(strstr(output, "/tmp: Is a directory\n"));
	assert_int_equal(run("", ""), 2);
	assert_non_null(strstr(output, "which file?"));
	assert_int_equal(run("-x", file), 2);
	assert_int_equal(run("--help", ""), 0);
	assert_int_equal(run("--version", ""), 0);
	assert_int_equal(run("-d", "/no/such/file /no/such/file"), 1);
}

/* Runs the program with its second argument nowhere; the dump's path. */
static void crash(const struct tc_result *r, char path[300])
{
	struct hal_options o = { .devices = "sim", .sim = "hbm=64M,lanes=1" };
	struct hw_binding b[4] = { { 0 } };
	struct hal_launch l = { .bindings = b };
	struct hal_device *dev;
	struct hal_exe *exe;
	struct hal_mem *m;
	struct err err;
	struct hal *hal;
	uint64_t value;

	setenv("TESSERA_DUMP_DIR", dir, 1);
	if (hal_create(&o, &hal, &err) || hal_device_open(hal, 0, &dev, &err) ||
	    hal_exe_load(dev, r->image, r->image_bytes, &exe, &err) ||
	    hal_mem_alloc(dev, HAL_MEM_HBM, 256, "the sums", &m, &err))
		fail_msg("%s", err.msg);
	b[2] = (struct hw_binding){ hal_mem_va(m), 256 };
	b[3] = (struct hw_binding){ 1ull << 40, 16 };
	l.exe = exe;
	if (hal_queue_execute(hal_device_queue(dev, HAL_QUEUE_COMPUTE), &l, &value, &err))
		fail_msg("%s", err.msg);
	assert_int_not_equal(hal_queue_wait(hal_device_queue(dev, HAL_QUEUE_COMPUTE), value,
					    clock_after(10000000000), &err), 0);
	assert_non_null(strstr(err.msg, "tessera-objdump --dump: "));
	snprintf(path, 300, "%s", strstr(err.msg, "--dump: ") + strlen("--dump: "));
	hal_destroy(hal);
}

static void a_crash_dump_tells_what_was_at_fault(void **state)
{
	struct tc_result r = compile(donating, strlen(donating));
	struct json_object *o, *d, *code, *row;
	unsigned n_at_fault = 0;
	char path[300];

	(void)state;
	crash(&r, path);
	assert_int_equal(run("--dump", path), 0);
	assert_non_null(strstr(output, "  program      jit_step, made by "));
	assert_non_null(strstr(output, "; fusion(broadcast_in_dim,add) at jit(step)/add at "
			       "f.py:3?[31m?\n  => 00000000  vec "));
	assert_non_null(strstr(output, "=> b3       argument    1    read        "
			       "0x0000010000000000"));
	assert_non_null(strstr(output, "256             256  the sums\n") ||
			strstr(output, "  the sums\n"));
	assert_non_null(strstr(output, "  ID           0x0000   0x7e551234\n"));
	assert_int_equal(run("--dump --json", path), 0);
	o = json_tokener_parse(output);
	assert_string_equal(json_object_get_string(json_object_object_get(o, "schema")),
			    "tessera-dump/1");
	d = json_object_array_get_idx(json_object_object_get(o, "files"), 0);
	row = json_object_object_get(d, "fault");
	assert_int_equal(json_object_get_int(json_object_object_get(row, "binding")), 3);
	code = json_object_object_get(d, "code");
	for (size_t i = 0; i < json_object_array_length(code); i++) {
		row = json_object_array_get_idx(code, i);
		n_at_fault += json_object_get_boolean(json_object_object_get(row, "is_at_fault"));
	}
	assert_int_equal(n_at_fault, 1);
	json_object_put(o);
	/* What is the other kind of file is named. */
	assert_int_equal(run("-h", path), 1);
	assert_non_null(strstr(output, "a crash dump: tessera-objdump --dump shows it"));
	write_file(r.image, r.image_bytes);
	assert_int_equal(run("--dump", file), 1);
	assert_non_null(strstr(output, "no crash dump of this version"));
	assert_int_equal(run("--dump -d", path), 2);
	unlink(path);
	tc_result_free(&r);
}

/* Cut or changed images are shown or refused; the tool ends by itself every time. */
static void broken_executables_are_shown_or_refused(void **state)
{
	struct tc_result r = compile_program("scatter_int8_1_int8.mlirbc");
	unsigned seed = 3, n_refused = 0;
	char *copy = malloc(r.image_bytes);

	(void)state;
	assert_non_null(copy);
	for (unsigned i = 0; i < 60; i++) {
		size_t n = r.image_bytes;
		int status;

		memcpy(copy, r.image, n);
		if (i < 20) {
			n = n * i / 20;
		} else {
			for (unsigned k = 0; k < i; k++) {
				seed = seed * 1664525u + 1013904223u;
				copy[(seed >> 4) % n] = (char)(seed >> 24);
			}
		}
		write_file(copy, n);
		status = run(i % 2 ? "-hsd" : "-hsd --json", file);
		assert_in_range(status, 0, 1);
		n_refused += status == 1;
	}
	assert_true(n_refused >= 20);
	free(copy);
	tc_result_free(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_instruction_is_printed_with_mnemonic_operands_and_origin),
		cmocka_unit_test(headers_and_signature_tell_the_memory_plan_and_donation),
		cmocka_unit_test(texts_of_a_file_cannot_steer_the_terminal),
		cmocka_unit_test(meetings_cannot_steer_the_terminal_nor_break_json),
		cmocka_unit_test(names_of_functions_are_shown_as_they_are_and_clean),
		cmocka_unit_test(json_says_the_same),
		cmocka_unit_test(an_entry_of_the_cache_is_read_too),
		cmocka_unit_test(verify_names_what_is_wrong_with_code_and_where),
		cmocka_unit_test(files_of_others_are_named_for_what_they_are),
		cmocka_unit_test(a_crash_dump_tells_what_was_at_fault),
		cmocka_unit_test(broken_executables_are_shown_or_refused),
	};

	return cmocka_run_group_tests(tests, start, stop);
}
