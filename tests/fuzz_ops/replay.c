/* SPDX-License-Identifier: Apache-2.0 */
/* Programs of files, on every model: what a fuzzer found once, and what a report names. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz_ops/fuzz.h"

char *fuzz_read_file(const char *path)
{
	FILE *f = fopen(path, "r");
	char *text = NULL;
	long n;

	if (!f)
		return NULL;
	if (!fseek(f, 0, SEEK_END) && (n = ftell(f)) >= 0 && !fseek(f, 0, SEEK_SET)) {
		text = malloc((size_t)n + 1);
		n = text ? (long)fread(text, 1, (size_t)n, f) : 0;
		if (text)
			text[n] = 0;
	}
	fclose(f);
	return text;
}

/* The seed that made the data: in the first line. */
static uint64_t seed_of(const char *text)
{
	const char *p = strstr(text, "// seed ");

	return p ? strtoull(p + 8, NULL, 0) : 0;
}

/* All ways, each told if it differs; the worst of them. */
static enum verdict replay_one(struct program *p, uint64_t seed, struct device *d,
			       struct jax *jax, const char *file)
{
	struct err err = { 0 };
	enum verdict is = SAME, all;

	program_fill(p, seed);
	all = run_evaluator(p, &err);
	if (all != SAME)
		printf("%s: %s: %s\n", file, verdict_names[all], err.msg);
	for (unsigned model = 0; all == SAME && is == SAME && model < DEVICE_WAYS; model++)
		is = run_device(d, model, p, &err);
	if (is != SAME)
		printf("%s: %s: %s\n", file, verdict_names[is], err.msg);
	if (all != SAME || !jax)
		return all != SAME ? all : is;
	all = is;
	is = p->is_for_jax ? run_jax(jax, p, &err) : SAME;
	if (is != SAME)
		printf("%s: %s: %s\n", file, verdict_names[is], err.msg);
	return all != SAME ? all : is;
}

enum verdict replay_file(const char *path, struct device *d, struct jax *jax)
{
	char *text = fuzz_read_file(path);
	uint64_t seed = text ? seed_of(text) : 0;
	struct err err = { .msg = "it can't be read" };
	struct program p;
	enum verdict is;

	if (!text || program_read(text, &p, &err)) {
		printf("%s: %s\n", path, err.msg);
		return INVALID;
	}
	is = replay_one(&p, seed, d, jax, path);
	program_free(&p);
	return is;
}
