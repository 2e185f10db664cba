/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hostile text of the IR against the compiler, from the parser to the image.
 *
 * The mutator works on tokens and lines of printed programs: a name, number, value or
 * type is replaced by another from the same text or another program's, so that most
 * inputs parse and break rules further down. What is read must print as a text that reads
 * back as itself; what compiles must be an image that the reader takes, with nothing in
 * its code that the printer of instructions marks.
 */
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hal/hw/image.h"
#include "hal/hw/isa_print.h"
#include "runtime/compiler/tc.h"
#include "tests/fuzz/compiled.h"

#define MAX_SEEDS 256u

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t n, size_t max, unsigned seed);
size_t LLVMFuzzerMutate(uint8_t *data, size_t n, size_t max);

struct piece { const char *p; size_t n; };

static struct piece seeds[MAX_SEEDS];
static unsigned n_seeds;

/* ---- programs to start from ---- */

static void add_seed(const char *path, const struct tc_options *o)
{
	static const char *const stages[] = { "read", "final" };
	static char bytes[1 << 20];
	FILE *f = fopen(path, "rb");
	size_t n = f ? fread(bytes, 1, sizeof(bytes), f) : 0;
	struct tc_source source = { bytes, n, "mlir" };

	if (f)
		fclose(f);
	for (unsigned i = 0; i < 2 && n_seeds < MAX_SEEDS; i++) {
		char *text;

		if (!tc_print(&source, o, stages[i], &text, NULL))
			seeds[n_seeds++] = (struct piece){ text, strlen(text) };
	}
}

static void add_seeds(const char *pattern, const struct tc_options *o)
{
	glob_t found = { 0 };
	unsigned before = n_seeds;

	glob(pattern, 0, NULL, &found);
	for (size_t i = 0; i < found.gl_pathc; i++)
		add_seed(found.gl_pathv[i], o);
	globfree(&found);
	if (n_seeds == before) {
		fprintf(stderr, "no seeds at %s: run from the top of the tree\n", pattern);
		exit(1);
	}
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	add_seeds("tests/data/spmd/captured/*.mlirbc", &(struct tc_options){ .partitions = 8 });
	add_seeds("tests/data/programs/*.mlirbc", NULL);
	add_seeds("tests/data/dynamic/*.mlirbc", NULL);
	return 0;
}

/* ---- mutating ---- */

static size_t choose(uint64_t *state, size_t below)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return below ? (*state >> 11) % below : 0;
}

static bool is_of_word(char ch)
{
	return (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') || (ch >= '0' && ch <= '9') ||
	       ch == '_' || ch == '.' || ch == '%' || ch == '-';
}

/* The word, or the single sign, that stands at `at`. */
static struct piece token_at(const char *text, size_t n, size_t at)
{
	size_t from = at, to = at;

	if (!is_of_word(text[at]))
		return (struct piece){ text + at, 1 };
	while (from && is_of_word(text[from - 1]))
		from--;
	while (to < n && is_of_word(text[to]))
		to++;
	return (struct piece){ text + from, to - from };
}

static struct piece line_at(const char *text, size_t n, size_t at)
{
	size_t from = at, to = at;

	while (from && text[from - 1] != '\n')
		from--;
	while (to < n && text[to] != '\n')
		to++;
	return (struct piece){ text + from, to < n ? to + 1 - from : to - from };
}

/* Puts `with` in the place of [at, at + n_old); the text's new length. */
static size_t replace(char *text, size_t n, size_t max, size_t at, size_t n_old,
		      struct piece with)
{
	char copy[4096];

	if (with.n > sizeof(copy) || n - n_old + with.n > max)
		return n;
	memcpy(copy, with.p, with.n);
	memmove(text + at + with.n, text + at + n_old, n - at - n_old);
	memcpy(text + at, copy, with.n);
	return n - n_old + with.n;
}

static size_t change(char *text, size_t n, size_t max, uint64_t *state)
{
	const struct piece *other = &seeds[choose(state, n_seeds)];
	struct piece old = token_at(text, n, choose(state, n)), with;

	switch (choose(state, 8)) {
	case 0:		/* a line goes */
		old = line_at(text, n, choose(state, n));
		with = (struct piece){ "", 0 };
		break;
	case 1:		/* a line comes again, from here or elsewhere */
		old = line_at(text, n, choose(state, n));
		with = choose(state, 2) ? line_at(text, n, choose(state, n)) :
		       line_at(other->p, other->n, choose(state, other->n));
		old.n = 0;
		break;
	case 2:
		with = token_at(other->p, other->n, choose(state, other->n));
		break;
	case 3:
		with = choose(state, 2) ? (struct piece){ "0", 1 } :
		       (struct piece){ "9223372036854775807", 19 };
		break;
	default:
		with = token_at(text, n, choose(state, n));
		break;
	}
	return replace(text, n, max, (size_t)(old.p - text), old.n, with);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t n, size_t max, unsigned seed)
{
	uint64_t state = seed * 0x9e3779b97f4a7c15ull + 1;
	size_t rounds = 1 + choose(&state, 4);

	if (n < 32 || !choose(&state, 64)) {
		const struct piece *s = &seeds[choose(&state, n_seeds)];

		if (s->n <= max) {
			memcpy(data, s->p, s->n);
			n = s->n;
		}
	}
	if (!n || !choose(&state, 16))
		return LLVMFuzzerMutate(data, n, max);
	while (rounds-- && n)
		n = change((char *)data, n, max, &state);
	return n;
}

/* ---- what must hold ---- */

static _Noreturn void found_text(const char *what, const char *text)
{
	fprintf(stderr, "%s: %s\n", what, text);
	abort();
}

static void check_text(const struct tc_source *source)
{
	struct tc_source printed = { .format = "mlir" };
	char *first, *second;
	struct err err;

	if (tc_print(source, NULL, "read", &first, &err)) {
		if (err.code == ERR_INTERNAL || !*err.msg)
			found_text("not a program's fault", err.msg);
		return;
	}
	printed.code = first;
	printed.bytes = strlen(first);
	if (tc_print(&printed, NULL, "read", &second, &err))
		found_text("what was printed is not read", err.msg);
	if (strcmp(first, second))
		found_text("it reads back as another text", second);
	free(first);
	free(second);
}

static void check_code(const struct tc_source *source, const struct tc_options *options)
{
	struct tc_result r;
	struct image *im;
	struct str code = { 0 };
	struct err err;

	if (tc_compile(source, options, &r, &err)) {
		if (err.code == ERR_INTERNAL || !*err.msg)
			found_text("not a program's fault", err.msg);
		return;
	}
	if (image_parse(r.image, r.image_bytes, &im, &err))
		found_text("an image that is not taken", err.msg);
	isa_print_program(im->text, im->text_bytes, NULL, NULL, &code);
	if (code.failed || !code.text || strchr(code.text, '!'))
		found_text("an instruction that no device takes", code.text ? code.text : "");
	str_free(&code);
	image_free(im);
	tc_result_free(&r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct tc_options options = { .level = n % 4 != 3, .verify = n % 2,
				      .memory_limit = 64u << 20 };
	struct tc_source source = { data, n, "mlir" };

	check_text(&source);
	check_code(&source, &options);
	options.partitions = 8;
	if (is_for_several(&source))
		check_code(&source, &options);
	return 0;
}
