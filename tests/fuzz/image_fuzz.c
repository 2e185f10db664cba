/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hostile executables: the ELF reader, what tessera-objdump shows of them in both forms, its
 * check of the code, the loader, the device's check of a program, and a short run of what is left.
 *
 * Seeds are compiled at the start from tests/data/programs; the mutator brings them in
 * and then changes code, tables and headers in place. A run that the device neither ends
 * nor stops at its limit is a finding. TESSERA_DEVICES names another device than a model of
 * one lane: one of another code path, say.
 */
#include <elf.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hal/hal.h"
#include "hal/hw/image.h"
#include "runtime/compiler/tc.h"
#include "tests/fuzz/seeds.h"
#include "tools/tessera-objdump/objdump.h"

#define MEMORY (256u << 10)
#define MAX_BINDINGS 64u
#define LIMIT_NS 300000u	/* of a run, by the device's watchdog */
#define ANSWER_NS 10000000000ll

static struct hal_device *dev;
static struct hal_mem *memory;
static struct seed images[SEEDS_MAX];
static unsigned n_images;

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t n, size_t max, unsigned seed);
size_t LLVMFuzzerMutate(uint8_t *data, size_t n, size_t max);

/* Of two members that meet: with a mailbox, peers and rows. */
static const char gang[] = "module() () {\nfunc() {sym_name = \"main\"} (%0: tensor<2x4xf32>) {\n"
	"%1 = tc.exchange(%0) {replica_groups = [1, 0], group_size = 2, is_same = false} : "
	"tensor<2x4xf32>\n"
	"%2 = collective_permute(%1) {source_target_pairs = [0, 1], use_global_device_ids = true} "
	": tensor<2x4xf32>\nreturn(%2)\n}\n}\n";

static void add_image(const void *code, size_t bytes, unsigned partitions)
{
	struct tc_options options = { .level = 1, .partitions = partitions };
	struct tc_source s = { code, bytes, "mlir" };
	struct tc_result r;
	struct err err;

	if (n_images < SEEDS_MAX && !tc_compile(&s, &options, &r, &err))
		images[n_images++] = (struct seed){ r.image, r.image_bytes };
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	struct hal_options o = { .devices = getenv("TESSERA_DEVICES") ? NULL :
				 "sim:hbm=64M,lanes=1" };
	struct seed programs[SEEDS_MAX];
	unsigned n = seeds_load("tests/data/programs/*.mlirbc", programs);
	struct err err;
	struct hal *hal;

	(void)argc;
	(void)argv;
	add_image(gang, sizeof(gang) - 1, 2);
	for (unsigned i = 0; i < n; i++) {
		add_image(programs[i].bytes, programs[i].n, 1);
		free(programs[i].bytes);
	}
	if (!n_images || hal_create(&o, &hal, &err) || hal_device_open(hal, 0, &dev, &err) ||
	    hal_mem_alloc(dev, HAL_MEM_HBM, MEMORY, "fuzz", &memory, &err)) {
		fprintf(stderr, "%s\n", err.msg);
		exit(1);
	}
	return 0;
}

/* ---- mutation ---- */

struct range { size_t at, n; };

/* A section by chance, code most often; the headers now and then. */
static struct range choose(const uint8_t *data, size_t n, uint64_t *state)
{
	struct range whole = { 0, n }, headers = { 0, sizeof(Elf64_Ehdr) };
	unsigned what = seeds_random(state) % 16, want;
	Elf64_Ehdr eh;
	Elf64_Shdr sh;
	size_t at;

	if (n < sizeof(eh))
		return whole;
	memcpy(&eh, data, sizeof(eh));
	if (what == 0)
		return headers;
	if (!eh.e_shnum || eh.e_shoff > n ||
	    eh.e_shnum > (n - eh.e_shoff) / sizeof(sh))
		return whole;
	if (what == 1)
		return (struct range){ eh.e_shoff, eh.e_shnum * sizeof(sh) };
	want = what < 10 ? 1 : seeds_random(state) % eh.e_shnum;
	at = eh.e_shoff + want % eh.e_shnum * sizeof(sh);
	memcpy(&sh, data + at, sizeof(sh));
	if (sh.sh_offset >= n || !sh.sh_size || sh.sh_size > n - sh.sh_offset)
		return whole;
	return (struct range){ sh.sh_offset, sh.sh_size };
}

static void change(uint8_t *p, size_t n, uint64_t *state)
{
	static const uint64_t words[] = { 0, 1, 2, 7, 8, 9, 64, 255, 4096, 65536, UINT32_MAX,
					  INT64_MAX, 1ull << 63, UINT64_MAX, 1ull << 48 };
	size_t at = seeds_random(state) % n, width = 1u << seeds_random(state) % 4;
	uint64_t v = words[seeds_random(state) % (sizeof(words) / sizeof(*words))];

	at = at / width * width;
	if (width > n - at)
		width = n - at;
	switch (seeds_random(state) % 6) {
	case 0: p[at] = (uint8_t)seeds_random(state); break;
	case 1: p[at] ^= (uint8_t)(1u << seeds_random(state) % 8); break;
	case 2: memcpy(p + at, &v, width); break;
	case 3: memmove(p + at, p + seeds_random(state) % (n - width + 1), width); break;
	default: p[at] = (uint8_t)(p[at] + (seeds_random(state) % 2 ? 1 : -1)); break;
	}
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t n, size_t max, unsigned seed)
{
	uint64_t state = seed * 0x9e3779b97f4a7c15u + 1;
	unsigned what = seeds_random(&state) % 32, changes = 1 + seeds_random(&state) % 4;
	const struct seed *s = &images[seeds_random(&state) % n_images];

	if (what == 0)
		return LLVMFuzzerMutate(data, n, max);
	if ((what == 1 || n < 512) && s->n <= max) {
		memcpy(data, s->bytes, s->n);
		n = s->n;
	}
	if (what == 2 && n)
		n = seeds_random(&state) % n;	/* cut off */
	while (n && changes--) {
		struct range r = choose(data, n, &state);

		change(data + r.at, r.n, &state);
	}
	return n;
}

/* ---- shown, as tessera-objdump does ---- */

static void show(const uint8_t *data, size_t n)
{
	const unsigned parts = OBJDUMP_HEADERS | OBJDUMP_SIGNATURE | OBJDUMP_CODE | OBJDUMP_VERIFY;
	struct objdump_file f = { .path = "image", .bytes = n };
	struct err err = { 0 };
	struct str out = { 0 };
	struct json_object *o;
	struct image *im;
	int code;

	if (image_parse(data, n, &im, &err)) {
		if (!*err.msg) {
			fprintf(stderr, "refused without a word\n");
			abort();
		}
		return;
	}
	f.image = im;
	code = tc_verify(im, NULL, &f.verdict);
	f.is_refused = code == ERR_INTERNAL;
	if (f.is_refused && !*f.verdict.why) {
		fprintf(stderr, "the check refuses the code without a word\n");
		abort();
	}
	objdump_text(&f, parts, &out);
	o = objdump_json(&f, parts);
	if (out.failed || !o || !json_object_to_json_string(o))
		abort();
	json_object_put(o);
	str_free(&out);
	image_free(im);
}

/* ---- the run ---- */

/* Gives every binding its part of the memory. False: it needs more than there is. */
static bool bind_all(const struct hal_exe *exe, struct hw_binding *out)
{
	const struct image *im = hal_exe_image(exe);
	uint64_t at = 0;

	if (im->n_bindings > MAX_BINDINGS)
		return false;
	for (size_t i = 0; i < im->n_bindings; i++) {
		uint64_t bytes = im->bindings[i].bytes;

		out[i] = (struct hw_binding){ 0, 0 };
		if (i == 0 && bytes)
			out[i] = (struct hw_binding){ hal_mem_va(hal_exe_constants(exe)), bytes };
		if (i == 0 || !bytes)
			continue;
		if (bytes > MEMORY - at)
			return false;
		out[i] = (struct hw_binding){ hal_mem_va(memory) + at, bytes };
		at += (bytes + 63) / 64 * 64;
		if (at > MEMORY)
			at = MEMORY;
	}
	memset(hal_mem_host(memory), 0x3f, at);
	return true;
}

static void run(struct hal_exe *exe)
{
	struct hal_queue *q = hal_device_queue(dev, HAL_QUEUE_COMPUTE);
	struct hw_binding bindings[MAX_BINDINGS];
	struct hal_launch l = { .exe = exe, .bindings = bindings, .limit_ns = LIMIT_NS };
	struct err err;
	uint64_t value;

	if (!bind_all(exe, bindings))
		return;
	if (hal_queue_execute(q, &l, &value, &err))
		return;
	hal_queue_wait(q, value, clock_after(ANSWER_NS), &err);
	if (hal_queue_done(q) < value || hal_device_error(dev, &err)) {
		fprintf(stderr, "the run does not end, or ends the device: %s\n", err.msg);
		abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct hal_exe *exe;
	struct err err;

	show(data, n);
	if (hal_exe_load(dev, data, n, &exe, &err)) {
		if (!*err.msg || hal_device_error(dev, &err)) {
			fprintf(stderr, "code %d: %s\n", err.code, err.msg);
			abort();
		}
		return 0;
	}
	run(exe);
	hal_exe_unload(exe);
	return 0;
}
