/* SPDX-License-Identifier: Apache-2.0 */
/* The executable format: hostile ELF files and tables that lie are refused by name. */
#include <elf.h>

#include "tests/unit/hw/hw_image.h"

static void takes_what_it_wrote(void **state)
{
	struct parts p;
	struct image *im;
	struct err err;
	size_t n;
	uint8_t *bytes;

	(void)state;
	make(&p);
	bytes = write_image(&p, &n);
	assert_int_equal(image_parse(bytes, n, &im, &err), 0);
	free(bytes);
	assert_int_equal(im->n_bindings, 4);
	assert_memory_equal(im->shapes, p.shapes, sizeof(p.shapes));
	assert_int_equal(im->n_transfers, 3);
	assert_memory_equal(im->transfers, p.transfers, sizeof(p.transfers));
	assert_string_equal(image_string(im, im->info.name), "name");
	assert_string_equal(image_string(im, UINT32_MAX), "");
	assert_string_equal(im->note, "note");
	assert_int_equal(image_where(im, 15)->where, 9);
	assert_int_equal(image_where(im, UINT64_MAX)->where, 0);
	image_free(im);
	image_free(NULL);
}

static void where_a_row_comes_from_is_told_in_parts(void **state)
{
	static const struct { const char *where, *name, *source; } cases[] = {
		{ "jit(f)/add at f.py:3 (add)", "jit(f)/add", "f.py:3" },
		{ "jit(f)/add at f.py:3", "jit(f)/add", "f.py:3" },
		{ "jit(f)/add", "jit(f)/add", "" }, { "", "", "" },
		{ " at f.py:3 (add)", "", "f.py:3" },
		{ "look at it at g.py:7 (a (b))", "look at it", "g.py:7" },
	};
	const char *source;
	size_t n_name, n_source;

	(void)state;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		image_split(cases[i].where, &n_name, &source, &n_source);
		assert_int_equal(n_name, strlen(cases[i].name));
		assert_memory_equal(cases[i].where, cases[i].name, n_name);
		assert_int_equal(n_source, strlen(cases[i].source));
		assert_memory_equal(source, cases[i].source, n_source);
	}
}

static void a_view_leaves_code_and_constants_where_they_are(void **state)
{
	struct image *whole, *view;
	struct parts p;
	struct err err;
	size_t n;
	uint8_t *bytes;

	(void)state;
	make(&p);
	bytes = write_image(&p, &n);
	assert_int_equal(image_parse(bytes, n, &whole, &err), 0);
	assert_int_equal(image_view(bytes, n, &view, &err), 0);
	assert_in_range((uintptr_t)view->text, (uintptr_t)bytes, (uintptr_t)bytes + n);
	assert_in_range((uintptr_t)view->rodata, (uintptr_t)bytes, (uintptr_t)bytes + n);
	assert_not_in_range((uintptr_t)whole->text, (uintptr_t)bytes, (uintptr_t)bytes + n);
	assert_int_equal(view->text_bytes, whole->text_bytes);
	assert_memory_equal(view->text, whole->text, whole->text_bytes);
	assert_int_equal(view->rodata_bytes, whole->rodata_bytes);
	assert_memory_equal(view->rodata, whole->rodata, whole->rodata_bytes);
	assert_memory_equal(view->shapes, p.shapes, sizeof(p.shapes));
	assert_string_equal(image_string(view, view->info.name), "name");
	image_free(view);
	image_free(whole);
	free(bytes);
}

static void refuses_every_truncation(void **state)
{
	struct parts p;
	struct image *im;
	struct err err;
	size_t n;
	uint8_t *bytes;

	(void)state;
	make(&p);
	bytes = write_image(&p, &n);
	for (size_t k = 0; k < n; k++) {
		uint8_t *cut = malloc(k + !k);	/* of its own: overreads show */

		assert_non_null(cut);
		memcpy(cut, bytes, k);
		assert_int_equal(image_parse(cut, k, &im, &err), ERR_INVALID_ARGUMENT);
		assert_non_null(strstr(err.msg, "not a Tessera executable"));
		free(cut);
	}
	free(bytes);
}

static void survives_every_bit_flip(void **state)
{
	struct parts p;
	struct image *im;
	struct err err;
	unsigned taken = 0;
	size_t n;
	uint8_t *bytes;

	(void)state;
	make(&p);
	bytes = write_image(&p, &n);
	for (size_t k = 0; k < n * 8; k++) {
		bytes[k / 8] ^= (uint8_t)(1u << k % 8);
		if (!image_parse(bytes, n, &im, &err)) {
			taken++;
			image_free(im);
		} else {
			assert_int_equal(err.code, ERR_INVALID_ARGUMENT);
		}
		bytes[k / 8] ^= (uint8_t)(1u << k % 8);
	}
	/* Code, constants and texts may hold anything. */
	assert_in_range(taken, sizeof(p.text) * 8, n * 8);
	free(bytes);
}

static void refuses_another_machine(void **state)
{
	struct parts p;
	Elf64_Ehdr *eh;
	size_t n;
	uint8_t *bytes;

	(void)state;
	make(&p);
	bytes = write_image(&p, &n);
	eh = (void *)bytes;
	eh->e_machine = EM_X86_64;
	refused(bytes, n, "no ELF header of this machine");
	eh->e_machine = IMAGE_MACHINE;
	eh->e_type = ET_DYN;
	refused(bytes, n, "no ELF header of this machine");
	eh->e_type = ET_EXEC;
	eh->e_ident[EI_CLASS] = ELFCLASS32;
	refused(bytes, n, "no ELF header of this machine");
	eh->e_ident[EI_CLASS] = ELFCLASS64;
	eh->e_ident[EI_DATA] = ELFDATA2MSB;
	refused(bytes, n, "no ELF header of this machine");
	free(bytes);
	refused("#!/bin/sh\n", 10, "no ELF header");
	refused("", 0, "no ELF header");
}

static Elf64_Shdr *section(uint8_t *bytes, unsigned i)
{
	Elf64_Ehdr *eh = (void *)bytes;

	return (Elf64_Shdr *)(void *)(bytes + eh->e_shoff) + i;
}

/* Section headers of the written file: 1 .text, 2 .rodata, 3 info, 4 bindings, 5 shapes,
 * 6 debug, 7 host, 8 strings, 9 note, 10 names. */
static void refuses_sections_that_pass_the_end(void **state)
{
	static const uint64_t offsets[] = { UINT64_MAX, UINT64_MAX - 63, 1ull << 63, 1u << 30 };
	struct parts p;
	struct image *im;
	struct err err;
	size_t n;
	uint8_t *bytes, *copy;

	(void)state;
	make(&p);
	bytes = write_image(&p, &n);
	copy = malloc(n);
	assert_non_null(copy);
	for (unsigned s = 1; s <= 10; s++)
		for (unsigned i = 0; i < 4; i++) {
			memcpy(copy, bytes, n);
			section(copy, s)->sh_offset = offsets[i];
			assert_int_equal(image_parse(copy, n, &im, &err),
					 ERR_INVALID_ARGUMENT);
			memcpy(copy, bytes, n);
			section(copy, s)->sh_size = offsets[i];
			assert_int_equal(image_parse(copy, n, &im, &err),
					 ERR_INVALID_ARGUMENT);
		}
	memcpy(copy, bytes, n);
	section(copy, 1)->sh_offset = n - 8;
	refused(copy, n, "a section passes the end of the file");
	memcpy(copy, bytes, n);
	section(copy, 2)->sh_name = section(copy, 1)->sh_name;
	refused(copy, n, "a section is there twice");
	memcpy(copy, bytes, n);
	section(copy, 3)->sh_type = SHT_NOBITS;
	refused(copy, n, "code or information is missing");
	memcpy(copy, bytes, n);
	section(copy, 4)->sh_size -= 1;
	refused(copy, n, "not a multiple of its rows");
	memcpy(copy, bytes, n);
	((Elf64_Ehdr *)(void *)copy)->e_shstrndx = 200;
	refused(copy, n, "not a Tessera executable");
	memcpy(copy, bytes, n);
	((Elf64_Ehdr *)(void *)copy)->e_shnum = 0xfeff;
	refused(copy, n, "not a Tessera executable");
	memcpy(copy, bytes, n);
	((Elf64_Ehdr *)(void *)copy)->e_shoff = UINT64_MAX - 7;
	refused(copy, n, "not a Tessera executable");
	free(copy);
	free(bytes);
}

static void refuses_counts_that_lie(void **state)
{
	struct parts p;
	size_t n;
	uint8_t *bytes;
	struct image_info *info;

	(void)state;
	make(&p);
	p.im.n_bindings = 3;
	refused_parts(&p, "an argument or result has no binding");
	make(&p);
	p.im.n_bindings = 1;
	refused_parts(&p, "the first bindings");
	/* More arguments or results than there are shapes. */
	make(&p);
	bytes = write_image(&p, &n);
	info = (void *)(bytes + section(bytes, 3)->sh_offset);
	info->n_args = 2;
	refused(bytes, n, "not as many shapes");
	info->n_args = UINT32_MAX;
	info->n_results = 4;
	refused(bytes, n, "not as many shapes");
	info->n_args = 0;
	info->n_results = 3;
	refused(bytes, n, "not a Tessera executable");
	free(bytes);
	make(&p);
	p.im.info.version++;
	refused_parts(&p, "format 7");
	make(&p);
	p.im.info.isa++;
	refused_parts(&p, "compile it again");
	make(&p);
	p.im.info.name = 15;
	refused_parts(&p, "a count is out of range");
	make(&p);
	p.im.info.temp_bytes = 1ull << 63;
	refused_parts(&p, "a count is out of range");
}

static void refuses_transfers_that_lie(void **state)
{
	static const char order[] = "its calls of the host are out of order";
	static const char place[] = "a call of the host moves what is not there";
	struct parts p;

	(void)state;
	make(&p);
	p.transfers[0].call = 0;
	refused_parts(&p, order);
	make(&p);
	p.transfers[2].call = 3;
	refused_parts(&p, order);
	make(&p);
	p.transfers[2].call = 1;	/* a send behind a receive */
	refused_parts(&p, order);
	make(&p);
	p.transfers[1].way = IMAGE_WAYS;
	refused_parts(&p, order);
	make(&p);
	p.transfers[1].only = 1;	/* and the other of the call each member's */
	refused_parts(&p, "a call of the host is nobody's");
	make(&p);
	p.transfers[2].only = 2;	/* of one partition */
	refused_parts(&p, "a call of the host is nobody's");
	make(&p);
	p.transfers[1].binding = 4;
	refused_parts(&p, "names no binding");
	make(&p);
	p.transfers[1].offset = 65;
	refused_parts(&p, place);
	make(&p);
	p.transfers[1].offset = UINT64_MAX;
	refused_parts(&p, place);
	make(&p);
	p.transfers[0].bytes = UINT64_MAX;
	refused_parts(&p, place);
	make(&p);	/* constants are not to be written */
	p.transfers[1] = (struct image_transfer){ 1, 1, 0, 0, 0, 8, 8 };
	refused_parts(&p, place);
	make(&p);
	p.bindings[1].bytes = 7;
	p.im.n_transfers = 1;
	refused_parts(&p, "no room for the call's number");
}

/* Rows of .tessera.functions: u32 call, u32 n, n bytes. */
static const uint8_t named[] = { 1, 0, 0, 0, 3, 0, 0, 0, 'a', 'b', 'c', 2, 0, 0, 0, 0, 0, 0, 0 };

static void functions_come_back(void **state)
{
	uint32_t call, n;
	const void *shown;
	struct parts p;
	struct image *im;
	struct err err;
	size_t bytes, at = 0;
	uint8_t *file;

	(void)state;
	make(&p);
	p.im.functions = named;
	p.im.functions_bytes = sizeof(named);
	file = write_image(&p, &bytes);
	assert_int_equal(image_parse(file, bytes, &im, &err), 0);
	free(file);
	shown = image_next_function(im, &at, &call, &n);
	assert_int_equal(call, 1);
	assert_int_equal(n, 3);
	assert_memory_equal(shown, "abc", 3);
	assert_non_null(image_next_function(im, &at, &call, &n));
	assert_int_equal(call, 2);
	assert_int_equal(n, 0);
	assert_null(image_next_function(im, &at, &call, &n));
	image_free(im);
}

static void refuses_functions_that_lie(void **state)
{
	static const char order[] = "its calls by name are out of order", cut[] = "is cut off";
	uint8_t rows[sizeof(named)];
	struct parts p;

	(void)state;
	make(&p);
	p.im.functions = rows;
	p.im.functions_bytes = sizeof(rows);
	memcpy(rows, named, sizeof(rows));
	rows[11] = 3;		/* there are two calls */
	refused_parts(&p, order);
	rows[11] = 1;
	refused_parts(&p, order);
	rows[11] = 2;
	rows[0] = 0;
	refused_parts(&p, order);
	rows[0] = 1;
	rows[15] = 1;		/* a byte more than there is */
	refused_parts(&p, cut);
	rows[15] = 0;
	p.im.functions_bytes--;
	refused_parts(&p, cut);
	p.im.functions_bytes = sizeof(rows);
	memset(rows + 4, 0xff, 4);
	refused_parts(&p, cut);
}

static void refuses_shapes_that_lie(void **state)
{
	struct parts p;

	(void)state;
	make(&p);
	p.shapes[0].elem = 255;
	refused_parts(&p, "a shape has a wrong type");
	/* The partner of an alias is looked at after it was checked itself. */
	make(&p);
	p.shapes[1].elem = 255;
	refused_parts(&p, "a shape has a wrong type");
	make(&p);
	p.shapes[1].rank = 33;
	refused_parts(&p, "a shape has a wrong type");
	make(&p);
	p.shapes[0].order[0] = 1;	/* 1, 0 */
	free(write_image(&p, &(size_t){ 0 }));
	p.shapes[0].order[1] = 1;
	refused_parts(&p, "a shape's order is none of its dims");
	make(&p);
	p.shapes[0].order[0] = 2;
	refused_parts(&p, "a shape's order is none of its dims");
	make(&p);
	p.shapes[0].order[31] = 1;
	refused_parts(&p, "a shape's order is none of its dims");
	make(&p);
	p.shapes[2].memory_kind = 3;
	refused_parts(&p, "a shape has a wrong type");
	make(&p);
	p.shapes[0].dim[1] = -1;
	refused_parts(&p, "negative dim");
	make(&p);
	p.shapes[0].dim[0] = p.shapes[0].dim[1] = 1ll << 40;
	refused_parts(&p, "a shape overflows");
	make(&p);
	p.shapes[0].alias = 2;
	refused_parts(&p, "an alias is out of range");
	make(&p);
	p.shapes[0].alias = INT32_MIN;
	refused_parts(&p, "an alias is out of range");
	make(&p);
	p.shapes[0].alias = 1;
	refused_parts(&p, "an alias joins what does not fit");
	make(&p);
	p.shapes[1].dim[0] = 4;
	refused_parts(&p, "an alias joins what does not fit");
}

/* The second result has the sizes of the first. */
static void make_bounded(struct parts *p)
{
	make(p);
	p->shapes[1].bounded = 1;
	p->shapes[2] = (struct image_shape){ .elem = ELEM_S32, .rank = 1, .alias = -1,
					     .dim = { 1 } };
	p->bindings[3].bytes = 4;
}

static void bounds_have_sizes(void **state)
{
	struct parts p;
	struct image *im;
	struct err err;
	uint8_t *bytes;
	size_t n;

	(void)state;
	make_bounded(&p);
	bytes = write_image(&p, &n);
	assert_int_equal(image_parse(bytes, n, &im, &err), 0);
	assert_int_equal(im->shapes[1].bounded, 1);
	assert_int_equal(image_n_result_sizes(im), 1);
	assert_int_equal(image_n_arg_sizes(im), 0);
	image_free(im);
	free(bytes);
}

static void refuses_bounds_that_lie(void **state)
{
	static const char *const no_list = "the sizes of a shape with bounds are no list";
	struct parts p;

	(void)state;
	make_bounded(&p);
	p.shapes[1].bounded = 2;	/* rank 1 */
	refused_parts(&p, "a dim has a bound, and is none of its shape's");
	make_bounded(&p);
	p.shapes[1].bounded = UINT32_MAX;
	refused_parts(&p, "a dim has a bound, and is none of its shape's");
	make_bounded(&p);
	p.shapes[2].bounded = 1;
	refused_parts(&p, "a shape has bounds and no sizes");
	make_bounded(&p);
	p.shapes[0].bounded = 1;	/* the only argument */
	refused_parts(&p, "a shape has bounds and no sizes");
	make_bounded(&p);
	p.shapes[0].dim[0] = p.shapes[1].dim[0] = 0;
	refused_parts(&p, "a bound is 0 or above 2^31 - 1");
	make_bounded(&p);
	p.shapes[2].dim[0] = 2;
	refused_parts(&p, no_list);
	make_bounded(&p);
	p.shapes[2].elem = ELEM_U32;
	refused_parts(&p, no_list);
	make_bounded(&p);
	p.shapes[2].rank = 0;
	refused_parts(&p, no_list);
	make_bounded(&p);
	p.shapes[2].memory_kind = 1;
	refused_parts(&p, no_list);
	make_bounded(&p);
	p.im.info.n_partitions = 2;
	refused_parts(&p, "a shape of a program for several partitions has bounds");
}

static void refuses_bindings_that_lie(void **state)
{
	struct parts p;

	(void)state;
	make(&p);
	p.bindings[0].bytes = 65;
	refused_parts(&p, "smaller than bound");
	make(&p);
	p.bindings[1].bytes = UINT64_MAX;
	refused_parts(&p, "smaller than bound");
	make(&p);
	p.bindings[2].bytes = 25;
	refused_parts(&p, "larger than its shape");
	make(&p);
	p.bindings[2].access = 1u << 15;
	refused_parts(&p, "unknown bits");
	make(&p);
	p.bindings[2].index = 1;
	refused_parts(&p, "out of order");
	make(&p);
	p.bindings[2].kind = 77;
	refused_parts(&p, "out of order");
	make(&p);
	p.bindings[3].index = 0;
	refused_parts(&p, "out of order");
	make(&p);
	p.bindings[3] = p.bindings[2];
	refused_parts(&p, "not a Tessera executable");
}

static void random_state_is_bound_last(void **state)
{
	const struct image_binding random = { IMAGE_RANDOM, 0, HW_BIND_READ, 0, 24 };
	struct image *im;
	struct parts p;
	struct err err;
	uint8_t *bytes;
	size_t n;

	(void)state;
	make(&p);
	p.bindings[4] = random;
	p.im.n_bindings = 5;
	bytes = write_image(&p, &n);
	assert_int_equal(image_parse(bytes, n, &im, &err), 0);
	assert_true(image_draws(im));
	image_free(im);
	free(bytes);
	p.im.n_bindings = 4;
	assert_false(image_draws(&p.im));
	p.im.n_bindings = 5;
	p.bindings[4].bytes = 25;
	refused_parts(&p, "more random state");
	p.bindings[4] = random;
	p.bindings[4].index = 1;
	refused_parts(&p, "more random state");
	p.bindings[4] = random;
	p.bindings[4].access = 4;
	refused_parts(&p, "unknown bits");
	make(&p);
	p.bindings[3] = random;
	refused_parts(&p, "has no binding");
	p.bindings[4] = (struct image_binding){ IMAGE_RESULT, 0, HW_BIND_WRITE, 1, 8 };
	p.im.n_bindings = 5;
	refused_parts(&p, "out of order");
}

static void members_have_peers_rows_and_shardings(void **state)
{
	struct gang g;
	struct image *im;
	struct err err;
	const uint8_t *p;
	uint8_t *bytes;
	uint32_t len;
	size_t n, at = 0;

	(void)state;
	make_gang(&g);
	taken(&g);
	bytes = write_image(&g.p, &n);
	assert_int_equal(image_view(bytes, n, &im, &err), 0);
	assert_true(image_draws(im));
	p = image_next_sharding(im, &at, &len);
	assert_true(p && len == 2 && p[0] == 8 && p[1] == 1);
	p = image_next_sharding(im, &at, &len);
	assert_true(p && len == 0);
	p = image_next_sharding(im, &at, &len);
	assert_true(p && len == 3 && p[2] == 3);
	assert_null(image_next_sharding(im, &at, &len));
	image_free(im);
	free(bytes);
	/* each may be there alone */
	g.p.im.shardings_bytes = 0;
	g.b[7] = g.b[8];
	g.p.im.n_bindings = 8;
	g.p.im.n_words = 0;
	taken(&g);
	make_gang(&g);
	g.b[4] = g.b[7];
	g.p.im.n_bindings = 5;
	g.p.im.n_slots = 0;
	taken(&g);
	g.p.im.n_bindings = 4;
	g.p.im.n_words = 0;
	taken(&g);
}

/* Every bit of the image's tables, too. */
static void members_say_how_they_meet(void **state)
{
	struct image_meeting meetings[2];
	struct gang g;
	struct image *im;
	struct err err;
	uint8_t *bytes;
	size_t n;

	(void)state;
	make_meeting_gang(&g, meetings);
	bytes = write_image(&g.p, &n);
	assert_int_equal(image_parse(bytes, n, &im, &err), 0);
	assert_int_equal(im->n_meetings, 2);
	assert_memory_equal(im->meetings, meetings, sizeof(meetings));
	expect_unlike(im, &g.p.im, -1);
	/* by what names the framework knows them is nobody's matter */
	meetings[1].where = 1;
	expect_unlike(im, &g.p.im, -1);
	meetings[1].kind = IMAGE_PARTS;
	expect_unlike(im, &g.p.im, 1);
	make_meeting_gang(&g, meetings);
	meetings[1].elem = ELEM_U8;
	expect_unlike(im, &g.p.im, 1);
	make_meeting_gang(&g, meetings);
	meetings[1].depth = 0;
	expect_unlike(im, &g.p.im, 1);
	make_meeting_gang(&g, meetings);
	meetings[0].bytes = 60;
	expect_unlike(im, &g.p.im, 0);
	make_meeting_gang(&g, meetings);
	meetings[0].groups = 6;
	expect_unlike(im, &g.p.im, 0);
	make_meeting_gang(&g, meetings);
	g.p.im.n_meetings = 1;
	expect_unlike(im, &g.p.im, 1);
	expect_unlike(&g.p.im, im, 1);
	/* the same meetings elsewhere */
	make_meeting_gang(&g, meetings);
	g.peers[0][0] = 3;
	expect_unlike(im, &g.p.im, 2);
	/* who does not say it meets nobody but itself */
	make_gang(&g);
	expect_unlike(im, &g.p.im, 0);
	assert_int_equal(image_meets_otherwise(&g.p.im, &g.p.im), 0);
	assert_int_equal(image_meeting_number(&g.p.im), 0);
	image_free(im);
	free(bytes);
}

static void refuses_meetings_that_lie(void **state)
{
	static const char text[] = "a meeting has a wrong kind, type or text";
	struct image_meeting meetings[2];
	struct gang g;
	struct parts p;

	(void)state;
	make_meeting_gang(&g, meetings);
	meetings[1].kind = IMAGE_MEETING_KINDS;
	refused_parts(&g.p, text);
	make_meeting_gang(&g, meetings);
	meetings[0].elem = 255;
	refused_parts(&g.p, text);
	make_meeting_gang(&g, meetings);
	meetings[0].groups = (uint32_t)g.p.im.strings_bytes;
	refused_parts(&g.p, text);
	make_meeting_gang(&g, meetings);
	meetings[1].where = (uint32_t)g.p.im.strings_bytes;
	refused_parts(&g.p, text);
	make_meeting_gang(&g, meetings);
	make(&p);
	p.im.meetings = meetings;
	p.im.n_meetings = 2;
	refused_parts(&p, "members meet that have no peers");
}

static void survives_every_bit_flip_of_members(void **state)
{
	struct image_meeting meetings[2];
	struct image *im;
	struct gang g;
	struct err err;
	size_t n;
	uint8_t *bytes;

	(void)state;
	make_meeting_gang(&g, meetings);
	bytes = write_image(&g.p, &n);
	for (size_t k = 0; k < n * 8; k++) {
		bytes[k / 8] ^= (uint8_t)(1u << k % 8);
		if (!image_parse(bytes, n, &im, &err)) {
			for (size_t i = 0; i < image_n_members(im) * im->n_slots; i++)
				assert_true(im->peers[i] < image_n_members(im));
			for (size_t i = 0; i < im->n_meetings; i++)
				assert_true(im->meetings[i].kind < IMAGE_MEETING_KINDS);
			image_free(im);
		} else {
			assert_int_equal(err.code, ERR_INVALID_ARGUMENT);
		}
		bytes[k / 8] ^= (uint8_t)(1u << k % 8);
	}
	free(bytes);
}

static void mailboxes_peers_and_rows_come_last_in_order(void **state)
{
	static const char order[] = "the mailbox, the peers or the member's row are out of order";
	const uint16_t both = HW_BIND_READ | HW_BIND_WRITE;
	struct gang g;

	(void)state;
	make_gang(&g);
	g.b[5].index = 1;
	refused_parts(&g.p, order);
	make_gang(&g);
	g.b[6].index = 2;
	refused_parts(&g.p, order);
	g.b[6].index = 0;
	refused_parts(&g.p, order);
	make_gang(&g);
	g.b[6].access = both;
	refused_parts(&g.p, order);
	g.b[6] = g.b[4];
	refused_parts(&g.p, order);
	g.b[6] = g.b[2];
	refused_parts(&g.p, "the bindings are out of order");
	make_gang(&g);
	g.b[4].index = 1;
	refused_parts(&g.p, order);
	make_gang(&g);
	g.b[4].access |= HW_BIND_PEER;
	refused_parts(&g.p, "unknown bits");
	make_gang(&g);
	g.b[4] = g.b[5];
	refused_parts(&g.p, order);
	make_gang(&g);
	g.b[7].access = both;
	refused_parts(&g.p, order);
	make_gang(&g);
	g.b[7].index = 1;
	refused_parts(&g.p, order);
	make_gang(&g);
	g.b[7] = g.b[8];		/* random state before the last */
	refused_parts(&g.p, "the bindings are out of order");
	make_gang(&g);
	g.b[6] = g.b[7];		/* two rows */
	refused_parts(&g.p, order);
	make_gang(&g);
	g.b[7].kind = IMAGE_PEER_DATA + 1;
	refused_parts(&g.p, "the bindings are out of order");
}

static void refuses_members_that_lie(void **state)
{
	struct gang g;

	(void)state;
	make_gang(&g);
	g.p.im.info.n_replicas = 0;
	g.p.im.n_slots = g.p.im.n_words = 0;
	refused_parts(&g.p, "a count of members is out of range");
	g.p.im.info.n_replicas = g.p.im.info.n_partitions = 1u << 16;	/* 0 of 32 bits */
	refused_parts(&g.p, "a count of members is out of range");
	g.p.im.info.n_replicas = IMAGE_MAX_MEMBERS / 2 + 1;
	g.p.im.info.n_partitions = 2;
	refused_parts(&g.p, "a count of members is out of range");
	make_gang(&g);
	g.peers[2][1] = 4;
	refused_parts(&g.p, "a peer is no other member");
	g.peers[2][1] = 2;
	refused_parts(&g.p, "a peer is no other member");
	make_gang(&g);
	g.b[6].bytes = 4097;
	refused_parts(&g.p, "larger than its own");
	make_gang(&g);
	g.p.im.n_slots = 1;
	refused_parts(&g.p, "not as many slots of peers as are bound");
	g.p.im.n_slots = 0;
	refused_parts(&g.p, "not as many slots of peers as are bound");
	make_gang(&g);
	memmove(&g.b[5], &g.b[7], 2 * sizeof(*g.b));
	g.p.im.n_bindings = 7;
	g.p.im.n_slots = 0;
	refused_parts(&g.p, "out of order");
	make_gang(&g);
	g.p.im.n_bindings = 5;
	g.p.im.n_slots = g.p.im.n_words = 0;
	refused_parts(&g.p, "a mailbox that nobody writes to");
	make_gang(&g);
	g.b[4].bytes = g.b[5].bytes = g.b[6].bytes = 0;
	refused_parts(&g.p, "a mailbox that nobody writes to");
	make_gang(&g);	/* a peer's mailbox is nowhere that the host sees */
	g.p.transfers[0].binding = 5;
	refused_parts(&g.p, "moves what is another device's");
	make_gang(&g);
	g.p.im.n_words = 0;
	refused_parts(&g.p, "the rows of the members");
	make_gang(&g);
	g.b[7].bytes = 25;
	refused_parts(&g.p, "the rows of the members");
	make_gang(&g);
	g.p.im.n_words = 1;
	g.b[7].bytes = 8;
	refused_parts(&g.p, "the rows of the members");
	make_gang(&g);
	g.b[7] = g.b[8];
	g.p.im.n_bindings = 8;
	refused_parts(&g.p, "the rows of the members");
	make_gang(&g);
	g.members[3][0] = 0;
	refused_parts(&g.p, "of another member");
	make_gang(&g);
	g.members[2][1] = 1;
	refused_parts(&g.p, "of another member");
}

static void refuses_tables_of_members_that_lie(void **state)
{
	struct gang g;
	size_t n;
	uint8_t *bytes;

	(void)state;
	make_gang(&g);
	bytes = write_image(&g.p, &n);
	section(bytes, 8)->sh_size -= 4;	/* peers */
	refused(bytes, n, "a table has not a row for each member");
	section(bytes, 8)->sh_size += 4;
	section(bytes, 9)->sh_size -= 8;	/* members */
	refused(bytes, n, "a table has not a row for each member");
	section(bytes, 9)->sh_size += 8;
	for (unsigned less = 1; less < 17; less++) {
		section(bytes, 10)->sh_size = 17 - less;
		refused(bytes, n, "not as many shardings");
	}
	free(bytes);
	g.p.im.info.n_results = 1;	/* one sharding too many */
	g.shardings[0] = 255;
	refused_parts(&g.p, "not a Tessera executable");
	make_gang(&g);
	g.shardings[3] = 255;
	refused_parts(&g.p, "not as many shardings");
	make_gang(&g);
	g.shardings[0] = 3;
	refused_parts(&g.p, "not as many shardings");
	make_gang(&g);
	g.p.im.info.n_replicas = 4;
	g.p.im.info.n_partitions = 1;
	for (unsigned m = 0; m < 4; m++) {
		g.members[m][0] = m;
		g.members[m][1] = 0;
	}
	refused_parts(&g.p, "it shards, and has one partition");
}

static void refuses_texts_and_rows_that_lie(void **state)
{
	struct parts p;

	(void)state;
	make(&p);
	p.im.strings_bytes = 14;	/* no NUL at the end */
	refused_parts(&p, "strings");
	make(&p);
	p.strings[0] = 'x';
	refused_parts(&p, "strings");
	make(&p);
	p.debug[1].offset = 0;
	refused_parts(&p, "debug map");
	make(&p);
	p.debug[0].where = 15;
	refused_parts(&p, "debug map");
	make(&p);
	p.im.text_bytes = 0;
	refused_parts(&p, "code or information is missing");
	make(&p);
	p.im.text_bytes = 31;
	refused_parts(&p, "not a multiple of its rows");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(takes_what_it_wrote),
		cmocka_unit_test(where_a_row_comes_from_is_told_in_parts),
		cmocka_unit_test(a_view_leaves_code_and_constants_where_they_are),
		cmocka_unit_test(refuses_every_truncation),
		cmocka_unit_test(survives_every_bit_flip),
		cmocka_unit_test(refuses_another_machine),
		cmocka_unit_test(refuses_sections_that_pass_the_end),
		cmocka_unit_test(refuses_counts_that_lie),
		cmocka_unit_test(refuses_transfers_that_lie),
		cmocka_unit_test(refuses_shapes_that_lie),
		cmocka_unit_test(bounds_have_sizes),
		cmocka_unit_test(refuses_bounds_that_lie),
		cmocka_unit_test(refuses_bindings_that_lie),
		cmocka_unit_test(random_state_is_bound_last),
		cmocka_unit_test(members_have_peers_rows_and_shardings),
		cmocka_unit_test(survives_every_bit_flip_of_members),
		cmocka_unit_test(members_say_how_they_meet),
		cmocka_unit_test(refuses_meetings_that_lie),
		cmocka_unit_test(mailboxes_peers_and_rows_come_last_in_order),
		cmocka_unit_test(functions_come_back),
		cmocka_unit_test(refuses_functions_that_lie),
		cmocka_unit_test(refuses_members_that_lie),
		cmocka_unit_test(refuses_tables_of_members_that_lie),
		cmocka_unit_test(refuses_texts_and_rows_that_lie),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
