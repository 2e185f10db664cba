/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_TORCH_H
#define TESTS_TORCH_H
/*
 * The programs of tests/data/torch: HLO modules as torch_xla sends them, with what its CPU
 * backend took and gave. README.md there has the form of the files.
 */
#include <glob.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hal/base/elem.h"
#include "runtime/compiler/tc.h"

#define TORCH_DIR "tests/data/torch"
#define TORCH_COUNT 420u	/* programs: none may be lost */
/* Of four replicas: arrays have one more dim in front, the replica's. */
#define TORCH_REPLICATED TORCH_DIR "/replicated"
#define TORCH_REPLICATED_COUNT 35u
#define TORCH_REPLICAS 4u

struct torch_program {
	char name[128];
	struct tc_source source;
	struct tc_source mlir;	/* the same program as MLIR; code NULL: there is none */
	/* NULL and 0: no results are known. Freed with tc_array_free. */
	struct tc_array *in, *out;
	size_t n_in, n_out;
	bool is_random;		/* results: types and shapes count alone */
};

static inline char *torch_read_file(const char *path, size_t *bytes)
{
	FILE *f = fopen(path, "rb");
	char *p;
	long n;

	if (!f)
		return NULL;
	fseek(f, 0, SEEK_END);
	n = ftell(f);
	rewind(f);
	p = malloc((size_t)n + 1);
	*bytes = p ? fread(p, 1, (size_t)n, f) : 0;
	fclose(f);
	if (p)
		p[*bytes] = '\0';
	return p;
}

static inline uint8_t torch_elem(const char *text)
{
	static const struct { const char *text; enum elem elem; } names[] = {
		{ "pred", ELEM_PRED }, { "s8", ELEM_S8 }, { "s16", ELEM_S16 },
		{ "s32", ELEM_S32 }, { "s64", ELEM_S64 }, { "u8", ELEM_U8 },
		{ "u16", ELEM_U16 }, { "u32", ELEM_U32 }, { "u64", ELEM_U64 },
		{ "f16", ELEM_F16 }, { "bf16", ELEM_BF16 }, { "f32", ELEM_F32 },
		{ "f64", ELEM_F64 }, { "c64", ELEM_C64 }, { "c128", ELEM_C128 },
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (!strcmp(names[i].text, text))
			return (uint8_t)names[i].elem;
	return ELEM_INVALID;
}

/* A line "in f32 3 4" as an array, its data from *at on. */
static inline bool torch_take_array(struct torch_program *p, char *line, char **at,
				    const char *end)
{
	char *save, *kind = strtok_r(line, " ", &save), *word = strtok_r(NULL, " ", &save);
	bool is_in = kind && !strcmp(kind, "in");
	struct tc_array **list = is_in ? &p->in : &p->out, *a;
	size_t *n = is_in ? &p->n_in : &p->n_out;

	if (!word || (!is_in && strcmp(kind, "out")))
		return false;
	*list = realloc(*list, (*n + 1) * sizeof(**list));
	a = &(*list)[(*n)++];
	*a = (struct tc_array){ .elem = torch_elem(word) };
	if (!elem_valid(a->elem))
		return false;
	a->bytes = elem_bytes(a->elem);
	while ((word = strtok_r(NULL, " ", &save)) && a->rank < 32) {
		a->dim[a->rank] = atoll(word);
		a->bytes *= (size_t)a->dim[a->rank++];
	}
	a->data = malloc(a->bytes + 1);
	if (!a->data || a->bytes > (size_t)(end - *at))
		return false;
	memcpy(a->data, *at, a->bytes);
	*at += a->bytes;
	return true;
}

static inline bool torch_read_arrays(struct torch_program *p, const char *path)
{
	size_t bytes = 0;
	char *text = torch_read_file(path, &bytes), *data, *line, *next;
	bool ok = true;

	if (!text)
		return true;
	data = strstr(text, "\n\n");
	ok = data;
	if (ok) {
		*data = '\0';
		data += 2;
	}
	for (line = text; ok && line; line = next) {
		next = strchr(line, '\n');
		if (next)
			*next++ = '\0';
		if (!strcmp(line, "random"))
			p->is_random = true;
		else
			ok = torch_take_array(p, line, &data, text + bytes);
	}
	ok = ok && data == text + bytes;
	free(text);
	return ok;
}

static inline void torch_free(struct torch_program *p)
{
	free((void *)p->source.code);
	free((void *)p->mlir.code);
	tc_array_free(p->in, p->n_in);
	tc_array_free(p->out, p->n_out);
}

/* Calls fn for every program of the folder whose name contains `only` (NULL: all); how many
 * there were, -1: a file can't be read. Runs from the top of the tree. */
static inline int torch_each_in(const char *dir, const char *only,
				void (*fn)(const struct torch_program *p, void *arg), void *arg)
{
	glob_t found = { 0 };
	char path[256];
	int n = 0;

	snprintf(path, sizeof(path), "%s/*.hlo", dir);
	glob(path, 0, NULL, &found);
	for (size_t i = 0; n >= 0 && i < found.gl_pathc; i++) {
		const char *base = found.gl_pathv[i] + strlen(dir) + 1;
		struct torch_program p = { .source.format = "hlo", .mlir.format = "mlir" };

		snprintf(p.name, sizeof(p.name), "%.*s", (int)strlen(base) - 4, base);
		if (only && !strstr(p.name, only))
			continue;
		p.source.code = torch_read_file(found.gl_pathv[i], &p.source.bytes);
		snprintf(path, sizeof(path), "%s/%s.mlirbc", dir, p.name);
		p.mlir.code = torch_read_file(path, &p.mlir.bytes);
		snprintf(path, sizeof(path), "%s/%s.arrays", dir, p.name);
		n++;
		if (p.source.code && torch_read_arrays(&p, path))
			fn(&p, arg);
		else
			n = -1;
		if (n < 0)
			fprintf(stderr, "%s: cannot be read\n", p.name);
		torch_free(&p);
	}
	globfree(&found);
	return n;
}

/* Of those of one device. */
static inline int torch_each(const char *only,
			     void (*fn)(const struct torch_program *p, void *arg), void *arg)
{
	return torch_each_in(TORCH_DIR, only, fn, arg);
}

#endif
