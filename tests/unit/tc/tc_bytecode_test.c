/* SPDX-License-Identifier: Apache-2.0 */
/* Hostile MLIR bytecode: real programs cut and flipped, and files written to mislead.
 * Whatever comes, the answer is a program or an error that says where. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/compiler/tc.h"
#include "tests/fuzz/seeds.h"

/* Sanitizers slow it down tenfold: fewer programs then. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { CUT_EACH = 5, FLIP_EACH = 12, SEVERAL = 3000 };
#else
enum { CUT_EACH = 1, FLIP_EACH = 5, SEVERAL = 20000 };
#endif

static struct seed programs[SEEDS_MAX];
static unsigned n_programs;

static int load_programs(void **state)
{
	(void)state;
	n_programs = seeds_load("tests/data/programs/*.mlirbc", programs);
	return 0;
}

static int free_programs(void **state)
{
	(void)state;
	while (n_programs)
		free(programs[--n_programs].bytes);
	return 0;
}

static int compile(const void *bytes, size_t n, struct err *err)
{
	static const struct tc_options options = { .level = 1 };
	struct tc_result r;
	int code = tc_compile(&(struct tc_source){ bytes, n, "mlir" }, &options, &r, err);

	if (!code)
		tc_result_free(&r);
	return code;
}

/* The offset that the text names must lie in the bytes. */
static void check_offset(const struct err *err, size_t n)
{
	const char *at = strstr(err->msg, " at byte ");
	size_t offset, of;

	if (strncmp(err->msg, "broken program", 14))
		return;
	if (!at || sscanf(at, " at byte %zu of %zu: ", &offset, &of) != 2 || offset > n ||
	    of != n)
		fail_msg("no offset in \"%s\"", err->msg);
}

static int answered(const void *bytes, size_t n)
{
	struct err err = { 0 };
	int code = compile(bytes, n, &err);

	if (!code)
		return 0;
	if (code != err.code || !*err.msg ||
	    (code != ERR_INVALID_ARGUMENT && code != ERR_UNIMPLEMENTED &&
	     code != ERR_RESOURCE_EXHAUSTED))
		fail_msg("%s: %s", err_name(code), err.msg);
	check_offset(&err, n);
	return code;
}

/* ---- real programs ---- */

static void every_truncation_is_refused_with_an_offset(void **state)
{
	(void)state;
	for (unsigned i = 0; i < n_programs; i += CUT_EACH)
		for (size_t k = 0; k < programs[i].n; k++) {
			uint8_t *cut = malloc(k + !k);	/* so that overreads show */
			struct err err = { 0 };

			assert_non_null(cut);
			memcpy(cut, programs[i].bytes, k);
			assert_int_equal(compile(cut, k, &err), ERR_INVALID_ARGUMENT);
			if (!strstr(err.msg, " at byte "))
				fail_msg("cut to %zu: %s", k, err.msg);
			check_offset(&err, k);
			free(cut);
		}
}

static void flip(uint8_t *bytes, size_t bit)
{
	bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
}

static void every_bit_flip_is_answered(void **state)
{
	(void)state;
	for (unsigned i = 0; i < n_programs; i += FLIP_EACH) {
		size_t bits = programs[i].n * 8;

		/* Two programs of thousands of ops would take all the time. */
		for (size_t k = 0; k < bits && bits < 20000; k++) {
			flip(programs[i].bytes, k);
			answered(programs[i].bytes, programs[i].n);
			flip(programs[i].bytes, k);
		}
	}
}

static void several_flips_are_answered(void **state)
{
	uint64_t random = 12345;

	(void)state;
	for (unsigned round = 0; round < SEVERAL; round++) {
		struct seed *p = &programs[seeds_random(&random) % n_programs];
		unsigned n = 1 + seeds_random(&random) % 6;
		size_t at[6];

		for (unsigned k = 0; k < n; k++)
			flip(p->bytes, at[k] = seeds_random(&random) % (p->n * 8));
		answered(p->bytes, p->n);
		for (unsigned k = 0; k < n; k++)
			flip(p->bytes, at[k]);
	}
}

/* Also after all of the above: nothing is left behind. */
static void good_programs_still_compile(void **state)
{
	unsigned compiled = 0;

	(void)state;
	for (unsigned i = 0; i < n_programs; i++) {
		int code = answered(programs[i].bytes, programs[i].n);

		assert_true(!code || code == ERR_UNIMPLEMENTED);
		compiled += !code;
	}
	assert_true(compiled >= n_programs * 3 / 4);
}

/* ---- files written by hand ---- */

struct out {
	uint8_t *p;
	size_t n, room;
};

static void put(struct out *o, const void *p, size_t n)
{
	if (o->n + n > o->room) {
		o->room = (o->n + n) * 2;
		o->p = realloc(o->p, o->room);
		assert_non_null(o->p);
	}
	if (n)
		memcpy(o->p + o->n, p, n);
	o->n += n;
}

static void byte(struct out *o, unsigned b)
{
	put(o, &(uint8_t){ (uint8_t)b }, 1);
}

/* Always 9 bytes long: any value, one length. */
static void number(struct out *o, uint64_t v)
{
	byte(o, 0);
	put(o, &v, 8);
}

static void section(struct out *o, unsigned id, struct out *content)
{
	byte(o, id);
	number(o, content->n);
	put(o, content->p, content->n);
	free(content->p);
	*content = (struct out){ 0 };
}

/* What most tests do not change: dialects 0 builtin, 1 vhlo; ops 0 module, 1 func_v1,
 * 2 case_v1, 3 custom_call_v1, 4 return_v1, 5 other_v1. */
enum { MODULE, FUNC, CASE, CUSTOM_CALL, RETURN, OTHER, N_OPS };
static const char *const names[] = { "builtin", "vhlo", "module", "func_v1", "case_v1",
				     "custom_call_v1", "return_v1", "other_v1",
				     "mhlo.backend_config" };
enum { N_NAMES = sizeof(names) / sizeof(*names) };

static void put_strings(struct out *file)
{
	struct out s = { 0 };

	number(&s, N_NAMES);
	for (unsigned i = N_NAMES; i-- > 0;)
		number(&s, strlen(names[i]) + 1);
	for (unsigned i = 0; i < N_NAMES; i++)
		put(&s, names[i], strlen(names[i]) + 1);
	section(file, 0, &s);
	number(&s, 2);
	number(&s, 0 << 1);
	number(&s, 1 << 1);
	number(&s, N_OPS);
	number(&s, 0);
	number(&s, 1);
	number(&s, 2 << 1);
	number(&s, 1);
	number(&s, N_OPS - 1);
	for (unsigned i = 1; i < N_OPS; i++)
		number(&s, (i + 2) << 1);
	section(file, 1, &s);
}

/* The table: entry i has lengths[i] bytes of data and is of dialect builtin (0) or vhlo. */
static void put_table(struct out *file, unsigned n_attrs, unsigned n_types,
		      unsigned dialect, const size_t *lengths, struct out *data)
{
	struct out s = { 0 };

	section(file, 2, data);
	number(&s, n_attrs);
	number(&s, n_types);
	number(&s, dialect);
	number(&s, n_attrs + n_types);
	for (unsigned i = 0; i < n_attrs + n_types; i++)
		number(&s, lengths[i] << 1 | 1);
	section(file, 3, &s);
}

static void start_file(struct out *file)
{
	*file = (struct out){ 0 };
	put(file, "ML\xefR\x0d", 6);
	put_strings(file);
}

/* The head of an op without results and operands. Location: attribute 0. */
static void put_op(struct out *ir, unsigned name, unsigned mask)
{
	number(ir, name);
	byte(ir, mask);
	number(ir, 0);
}

/* Compiles what was written: the code, and a text that must hold `part`. */
static void file_gives(struct out *file, int code, const char *part)
{
	struct err err = { 0 };

	assert_int_equal(compile(file->p, file->n, &err), code);
	if (!strstr(err.msg, part))
		fail_msg("\"%s\" does not say \"%s\"", err.msg, part);
	check_offset(&err, file->n);
	free(file->p);
	*file = (struct out){ 0 };
}

/* A table of one attribute that says nothing. */
static void put_plain_table(struct out *file)
{
	struct out data = { 0 };
	size_t length = 9;

	number(&data, 15);	/* builtin: skipped */
	put_table(file, 1, 0, 0, &length, &data);
}

static void numbers_that_lie_are_refused(void **state)
{
	static const uint64_t values[] = { UINT64_MAX, 1ull << 63, UINT32_MAX, 1ull << 32 };
	struct out file, s = { 0 };

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		/* the version */
		file = (struct out){ 0 };
		put(&file, "ML\xefR", 4);
		number(&file, values[i]);
		byte(&file, 0);
		file_gives(&file, ERR_UNIMPLEMENTED, "MLIR bytecode version");
		/* a section's length, its alignment */
		file = (struct out){ 0 };
		put(&file, "ML\xefR\x0d", 6);
		byte(&file, 0);
		number(&file, values[i]);
		file_gives(&file, ERR_INVALID_ARGUMENT, "passes the end");
		put(&file, "ML\xefR\x0d", 6);
		byte(&file, 0x80);
		number(&file, 0);
		number(&file, values[i]);
		file_gives(&file, ERR_INVALID_ARGUMENT, "alignment");
		/* counts of strings, ops, values */
		start_file(&file);
		put_plain_table(&file);
		number(&s, values[i] & ~1ull);
		section(&file, 4, &s);
		file_gives(&file, ERR_INVALID_ARGUMENT, " ops");
		file = (struct out){ 0 };
		put(&file, "ML\xefR\x0d", 6);
		number(&s, values[i]);
		section(&file, 0, &s);
		for (unsigned id = 1; id < 5; id++)
			section(&file, id, &s);
		file_gives(&file, ERR_INVALID_ARGUMENT, "things in 0 bytes");
	}
}

static void sections_that_lie_are_refused(void **state)
{
	struct out file, s = { 0 };

	(void)state;
	start_file(&file);
	file_gives(&file, ERR_INVALID_ARGUMENT, "a section is missing");
	start_file(&file);
	put_strings(&file);
	file_gives(&file, ERR_INVALID_ARGUMENT, "unknown or twice");
	start_file(&file);
	section(&file, 99, &s);
	file_gives(&file, ERR_INVALID_ARGUMENT, "unknown or twice");
	start_file(&file);
	put_plain_table(&file);
	number(&s, 0);
	section(&file, 4, &s);
	file_gives(&file, ERR_INVALID_ARGUMENT, "no module");
}

/* `depth` regions inside one another in an op that the compiler does not know; each says that it
 * has so many values, and has none. */
static void put_nest(struct out *file, unsigned depth, unsigned n_values)
{
	struct out ir = { 0 };

	start_file(file);
	put_plain_table(file);
	number(&ir, 1 << 1);
	put_op(&ir, MODULE, 0x10);
	number(&ir, 1 << 1);
	for (unsigned i = 0; i < depth; i++) {
		number(&ir, 1);		/* a block of one op */
		number(&ir, n_values);
		number(&ir, 1 << 1);
		put_op(&ir, OTHER, 0x10);
		number(&ir, (i + 1 < depth) << 1);
	}
	section(file, 4, &ir);
}

static void deep_regions_are_refused(void **state)
{
	struct out file;

	(void)state;
	put_nest(&file, 3, 0);
	file_gives(&file, ERR_INVALID_ARGUMENT, "outside a function");
	put_nest(&file, 3, 1);
	file_gives(&file, ERR_INVALID_ARGUMENT, "has 1 values, and defines 0");
	put_nest(&file, 190, 0);
	file_gives(&file, ERR_INVALID_ARGUMENT, "outside a function");
	put_nest(&file, 210, 0);
	file_gives(&file, ERR_UNIMPLEMENTED, "regions nest more than 200 deep");
	put_nest(&file, 200000, 0);
	file_gives(&file, ERR_UNIMPLEMENTED, "regions nest more than 200 deep");
}

/* A module whose discardable attribute is `attr`. */
static void put_module_with(struct out *file, unsigned attr)
{
	struct out ir = { 0 };

	number(&ir, 1 << 1);
	number(&ir, MODULE);
	byte(&ir, 0x01 | 0x10);
	number(&ir, 0);
	number(&ir, attr);
	number(&ir, 1 << 1);
	number(&ir, 0);
	section(file, 4, &ir);
}

/* Attribute i is an array of attribute i + 1, n of them; the last names `last`. */
static void put_chain(struct out *file, unsigned n, unsigned last)
{
	size_t *lengths = calloc(n, sizeof(*lengths));
	struct out data = { 0 };

	assert_non_null(lengths);
	start_file(file);
	for (unsigned i = 0; i < n; i++) {
		lengths[i] = 27;
		number(&data, 0);
		number(&data, 1);
		number(&data, i + 1 < n ? i + 1 : last);
	}
	put_table(file, n, 0, 0, lengths, &data);
	put_module_with(file, 0);
	free(lengths);
}

static void attributes_that_contain_each_other_are_refused(void **state)
{
	struct out file;

	(void)state;
	put_chain(&file, 1, 0);
	file_gives(&file, ERR_INVALID_ARGUMENT, "contain each other");
	put_chain(&file, 7, 3);
	file_gives(&file, ERR_INVALID_ARGUMENT, "contain each other");
	put_chain(&file, 100000, 99999);
	file_gives(&file, ERR_UNIMPLEMENTED, "nest more than 200 deep");
	put_chain(&file, 5, 5);
	file_gives(&file, ERR_INVALID_ARGUMENT, "attribute 5 of 5");
}

/* A module whose block has an argument of type 0. */
static void put_argument(struct out *file)
{
	struct out ir = { 0 };

	number(&ir, 1 << 1);
	put_op(&ir, MODULE, 0x10);
	number(&ir, 1 << 1);
	number(&ir, 1);
	number(&ir, 1);		/* one value: the block's argument */
	number(&ir, 0 << 1 | 1);
	number(&ir, 1);
	number(&ir, 0 << 1);
	byte(&ir, 0);
	section(file, 4, &ir);
}

static void types_that_the_device_has_not_are_refused_by_name(void **state)
{
	static const struct { unsigned code; const char *says; } types[] = {
		{ 25, "type an unranked tensor do not" }, { 34, "type tf32 do not" },
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(types) / sizeof(*types); i++) {
		struct out file, data = { 0 }, s = { 0 };

		start_file(&file);
		number(&data, 15);		/* attribute 0, builtin */
		number(&data, types[i].code);	/* type 0, of VHLO */
		section(&file, 2, &data);
		number(&s, 1);
		number(&s, 1);
		for (unsigned dialect = 0; dialect < 2; dialect++) {
			number(&s, dialect);
			number(&s, 1);
			number(&s, 9 << 1 | 1);
		}
		section(&file, 3, &s);
		put_argument(&file);
		file_gives(&file, ERR_UNIMPLEMENTED, types[i].says);
	}
}

/* Type i is a tuple of type i + 1 and again type i + 1. */
static void put_types(struct out *file, unsigned n, unsigned last)
{
	size_t lengths[64] = { 9 };
	struct out data = { 0 };

	start_file(file);
	number(&data, 15);
	for (unsigned i = 0; i < n; i++) {
		lengths[1 + i] = 36;
		number(&data, 15);
		number(&data, 2);
		number(&data, i + 1 < n ? i + 1 : last);
		number(&data, i + 1 < n ? i + 1 : last);
	}
	put_table(file, 1, n, 0, lengths, &data);
	put_argument(file);
}

static void types_that_contain_each_other_are_refused(void **state)
{
	struct out file;

	(void)state;
	put_types(&file, 1, 0);
	file_gives(&file, ERR_INVALID_ARGUMENT, "contain each other");
	put_types(&file, 40, 12);
	file_gives(&file, ERR_INVALID_ARGUMENT, "contain each other");
	put_types(&file, 40, 40);
	file_gives(&file, ERR_INVALID_ARGUMENT, "type 40 of 40");
}

/* Eleven levels of arrays, each of 300 times the next: 300^10 items if all were
 * walked. They hang on a custom call, which keeps its attributes. */
static void attributes_that_multiply_are_refused(void **state)
{
	enum { LEVELS = 11, WIDE = 300 };
	struct out file, data = { 0 }, ir = { 0 };
	size_t lengths[LEVELS + 3];

	(void)state;
	start_file(&file);
	for (unsigned i = 0; i < LEVELS; i++) {
		size_t before = data.n;

		number(&data, 0);
		number(&data, WIDE);
		for (unsigned k = 0; k < WIDE; k++)
			number(&data, i + 1);
		lengths[i] = data.n - before;
	}
	lengths[LEVELS] = 9;		/* true */
	number(&data, 7);
	lengths[LEVELS + 1] = 18;	/* the name of the entry */
	number(&data, 2);
	number(&data, N_NAMES - 1);
	lengths[LEVELS + 2] = 36;	/* { name = attribute 0 } */
	number(&data, 1);
	number(&data, 1);
	number(&data, LEVELS + 1);
	number(&data, 0);
	put_table(&file, LEVELS + 3, 0, 0, lengths, &data);
	number(&ir, 1 << 1);
	put_op(&ir, MODULE, 0x10);
	number(&ir, 1 << 1);
	number(&ir, 1);
	number(&ir, 0);
	number(&ir, 1 << 1);
	put_op(&ir, CUSTOM_CALL, 0x01);
	number(&ir, LEVELS + 2);
	section(&file, 4, &ir);
	file_gives(&file, ERR_RESOURCE_EXHAUSTED, "compiling takes more than");
}

/* An op that uses value `used` in a block of `values` values, where one op follows. */
static void put_use(struct out *file, unsigned used, unsigned values)
{
	struct out ir = { 0 }, data = { 0 };
	static const size_t lengths[] = { 9, 9 };

	start_file(file);
	number(&data, 15);
	number(&data, 5);	/* f32 */
	put_table(file, 1, 1, 0, lengths, &data);
	number(&ir, 1 << 1);
	put_op(&ir, MODULE, 0x10);
	number(&ir, 1 << 1);
	number(&ir, 1);
	number(&ir, values);
	number(&ir, 2 << 1);
	put_op(&ir, OTHER, 0x04);
	number(&ir, 1);
	number(&ir, used);
	put_op(&ir, OTHER, 0x02);
	number(&ir, 1);
	number(&ir, 0);
	section(file, 4, &ir);
}

static void values_from_nowhere_are_refused(void **state)
{
	struct out file;

	(void)state;
	put_use(&file, 0, 1);
	file_gives(&file, ERR_INVALID_ARGUMENT, "used before it is defined");
	put_use(&file, 1, 1);
	file_gives(&file, ERR_INVALID_ARGUMENT, "value 1 of 1");
	put_use(&file, 0, 0);
	file_gives(&file, ERR_INVALID_ARGUMENT, "value 0 of 0");
}

static void other_formats_are_refused_by_name(void **state)
{
	struct tc_result r;
	struct err err;

	(void)state;
	assert_int_equal(compile("", 0, &err), ERR_INVALID_ARGUMENT);
	assert_int_equal(compile("module {}", 9, &err), ERR_INVALID_ARGUMENT);
	assert_int_equal(tc_compile(&(struct tc_source){ "x", 1, "spirv" }, NULL, &r, &err),
			 ERR_INVALID_ARGUMENT);
	assert_non_null(strstr(err.msg, "spirv"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_truncation_is_refused_with_an_offset),
		cmocka_unit_test(every_bit_flip_is_answered),
		cmocka_unit_test(several_flips_are_answered),
		cmocka_unit_test(numbers_that_lie_are_refused),
		cmocka_unit_test(sections_that_lie_are_refused),
		cmocka_unit_test(deep_regions_are_refused),
		cmocka_unit_test(attributes_that_contain_each_other_are_refused),
		cmocka_unit_test(types_that_contain_each_other_are_refused),
		cmocka_unit_test(types_that_the_device_has_not_are_refused_by_name),
		cmocka_unit_test(attributes_that_multiply_are_refused),
		cmocka_unit_test(values_from_nowhere_are_refused),
		cmocka_unit_test(other_formats_are_refused_by_name),
		cmocka_unit_test(good_programs_still_compile),
	};

	return cmocka_run_group_tests(tests, load_programs, free_programs);
}
