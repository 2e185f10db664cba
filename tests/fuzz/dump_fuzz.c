/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hostile crash dumps: the reader, and both forms in which tessera-objdump shows one.
 *
 * An input whose first byte is odd is a file. Any other is changes to one with rows in every
 * table, three bytes of where and one of what, so that most inputs get past the reader.
 */
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hal/hal.h"
#include "tests/fuzz/seeds.h"
#include "tools/tessera-objdump/objdump.h"

static uint8_t seed[HAL_DUMP_BYTES];
static size_t seed_bytes;

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void die(const char *why)
{
	fprintf(stderr, "%s\n", why);
	exit(1);
}

/* A dump with rows in every table, as the HAL would write it. */
static void make_seed(void)
{
	static uint8_t rows[65536];
	struct hal_dump d = { 0 };
	uint64_t state = 7;
	struct err err;
	void *bytes;

	for (size_t i = 0; i < sizeof(rows); i++)
		rows[i] = (uint8_t)(seeds_random(&state) % 4 ? 0 : seeds_random(&state));
#define DUMP(name, number, row, field, most, meaning) \
	d.field = (const void *)rows; \
	d.n_##field = most < 5 ? most : 5;
#include "hal/dump.def"
#undef DUMP
	d.n_code = 400;
	if (hal_dump_write(&d, &bytes, &seed_bytes, &err))
		die(err.msg);
	memcpy(seed, bytes, seed_bytes);
	free(bytes);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	make_seed();
	return 0;
}

/* Reads a file and shows it in both forms. */
static void show(const uint8_t *bytes, size_t n)
{
	struct str out = { 0 };
	struct json_object *o;
	struct hal_dump *d;
	struct err err = { 0 };

	if (hal_dump_parse(bytes, n, &d, &err)) {
		if (!*err.msg) {
			fprintf(stderr, "refused without a word\n");
			abort();
		}
		return;
	}
	objdump_dump_text("dump", d, &out);
	o = objdump_dump_json("dump", d);
	if (out.failed || !json_object_to_json_string(o))
		abort();
	json_object_put(o);
	str_free(&out);
	hal_dump_free(d);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static uint8_t changed[sizeof(seed)];

	if (!n)
		return 0;
	if (data[0] % 2) {
		show(data + 1, n - 1);
		return 0;
	}
	memcpy(changed, seed, seed_bytes);
	for (size_t i = 1; n - i >= 4; i += 4) {
		size_t at = (size_t)data[i] | (size_t)data[i + 1] << 8 | (size_t)data[i + 2] << 16;

		changed[at % seed_bytes] = data[i + 3];
	}
	show(changed, seed_bytes);
	return 0;
}
