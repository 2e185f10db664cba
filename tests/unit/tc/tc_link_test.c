/* SPDX-License-Identifier: Apache-2.0 */
/* Programs whose members meet, as they are emitted: on linked devices of the model, against
 * plain loops. */
#include <stdio.h>

#include "tests/unit/gang.h"

#define N GANG_DEVICES
#define SECOND 1000000000ll
#define MODULE(arguments, lines) \
	"module() {sym_name = \"test\"} () {\nfunc() {sym_name = \"main\"} (" arguments \
	") {\n" lines "}\n}\n"

static uint8_t byte_of(unsigned m, size_t i, unsigned salt)
{
	uint64_t x = (m + 1) * 0x9e3779b97f4a7c15u + i * 0xbf58476d1ce4e5b9u + salt * 77777u;

	return (uint8_t)(x >> 29 ^ x >> 47);
}

static uint8_t *room(size_t bytes)
{
	uint8_t *p = malloc(bytes + 1);

	assert_non_null(p);
	return p;
}

/* ---- exchanges ---- */

struct rows {
	unsigned replicas, partitions, size, n;
	int ids[2 * N];
};

static const struct rows all_rows[] = {
	{ 1, 2, 2, 2, { 0, 1 } },
	{ 2, 1, 2, 2, { 1, 0 } },
	{ 1, 3, 3, 3, { 0, 1, 2 } },
	{ 3, 1, 3, 3, { 2, 0, 1 } },
	{ 2, 2, 4, 4, { 0, 1, 2, 3 } },
	{ 2, 2, 2, 4, { 0, 1, 2, 3 } },		/* by partition */
	{ 2, 2, 2, 4, { 0, 2, 1, 3 } },		/* by replica */
	{ 2, 2, 2, 4, { 3, 0, 1, 2 } },
	{ 1, 8, 8, 8, { 0, 1, 2, 3, 4, 5, 6, 7 } },
	{ 8, 1, 8, 8, { 3, 1, 4, 0, 5, 7, 2, 6 } },
	{ 2, 4, 4, 8, { 0, 2, 4, 6, 1, 3, 5, 7 } },
	{ 4, 2, 2, 8, { 0, 7, 1, 6, 2, 5, 3, 4 } },
	{ 1, 4, 1, 4, { 0, 1, 2, 3 } },		/* each for itself */
};

/* Rows with places that are nobody's: of exchanges of the same. */
static const struct rows short_rows[] = {
	{ 1, 3, 2, 4, { 0, 2, 1, -1 } },
	{ 1, 8, 3, 9, { 5, 0, 1, 7, 2, 6, 4, 3, -1 } },
	{ 2, 4, 5, 10, { 0, 1, 2, 3, 4, 5, 6, 7, -1, -1 } },
	{ 1, 7, 4, 16, { 0, 1, 2, 3, 4, 5, -1, -1, 6, -1, -1, -1, -1, -1, -1, -1 } },
};

static void write_ids(char *out, size_t room_for, const int *ids, unsigned n)
{
	size_t at = 0;

	for (unsigned i = 0; i < n; i++)
		at += (size_t)snprintf(out + at, room_for - at, "%s%d", i ? ", " : "", ids[i]);
	out[at] = 0;
}

/* What member m has at place j after an exchange of parts of `bytes`: whose, from where. */
static void find_part(const struct rows *r, unsigned m, unsigned j, int *from, unsigned *place)
{
	for (unsigned i = 0; i < r->n; i++)
		if (r->ids[i] == (int)m) {
			*place = i % r->size;
			*from = r->ids[i - *place + j];
			return;
		}
	fail_msg("no row has %u", m);
}

static void check_exchange(const struct gang *g, const struct rows *r, size_t part, bool is_same,
			   unsigned salt)
{
	uint8_t *got = room(part * r->size);
	unsigned place = 0;
	int from = -1;

	for (unsigned m = 0; m < g->n; m++) {
		gang_get(g, m, 0, got);
		for (unsigned j = 0; j < r->size; j++) {
			find_part(r, m, j, &from, &place);
			for (size_t i = 0; i < part; i++) {
				uint8_t want = from < 0 ? 0 :
					byte_of((unsigned)from, i + (is_same ? 0 : place * part),
						salt);

				if (got[j * part + i] != want)
					fail_msg("member %u, part %u, byte %zu of %zu: %u, not %u",
						 m, j, i, part, got[j * part + i], want);
			}
		}
	}
	free(got);
}

static void set_args(const struct gang *g, unsigned salt)
{
	for (unsigned a = 0; a < g->n_args; a++) {
		size_t bytes = image_shape_bytes(&g->image->shapes[a]);
		uint8_t *data = room(bytes);

		for (unsigned m = 0; m < g->n; m++) {
			for (size_t i = 0; i < bytes; i++)
				data[i] = byte_of(m, i, salt + a);
			gang_set(g, m, a, data);
		}
		free(data);
	}
}

/* `elem` has `unit` bytes; a part is 5 x `each`. */
static void try_exchange(const struct rows *r, const char *elem, size_t unit, unsigned each,
			 bool is_same, unsigned level)
{
	char text[1024], ids[128], in[64];
	struct gang g;

	write_ids(ids, sizeof(ids), r->ids, r->n);
	if (is_same)
		snprintf(in, sizeof(in), "tensor<5x%ux%s>", each, elem);
	else
		snprintf(in, sizeof(in), "tensor<%ux5x%ux%s>", r->size, each, elem);
	snprintf(text, sizeof(text), MODULE("%%0: %s",
		 "%%1 = tc.exchange(%%0) {replica_groups = [%s], group_size = %u, is_same = %s} : "
		 "tensor<%ux5x%ux%s>\nreturn(%%1)\n"), in, ids, r->size,
		 is_same ? "true" : "false", r->size, each, elem);
	gang_make(&g, text, r->replicas, r->partitions, level);
	for (unsigned round = 0; round < 3; round++) {
		set_args(&g, round);
		gang_run(&g);
		check_exchange(&g, r, 5 * each * unit, is_same, round);
	}
	gang_drop(&g);
}

static void exchanges_bring_each_part_to_its_place(void **state)
{
	(void)state;
	for (unsigned i = 0; i < sizeof(all_rows) / sizeof(*all_rows); i++)
		for (unsigned k = 0; k < 4; k++)
			try_exchange(&all_rows[i], "f32", 4, 3 + 13 * i, k & 1, k / 2);
}

static void places_that_a_row_does_not_have_are_zeros(void **state)
{
	(void)state;
	for (unsigned i = 0; i < sizeof(short_rows) / sizeof(*short_rows); i++)
		for (unsigned k = 0; k < 2; k++)
			try_exchange(&short_rows[i], "f32", 4, 7, true, k);
}

static void elements_of_every_size_are_exchanged(void **state)
{
	static const struct { const char *elem; size_t unit; } cases[] = {
		{ "i8", 1 }, { "ui8", 1 }, { "bf16", 2 }, { "f16", 2 }, { "i16", 2 },
		{ "f64", 8 }, { "i64", 8 }, { "complex<f32>", 8 }, { "complex<f64>", 16 },
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		for (unsigned k = 0; k < 2; k++)
			try_exchange(&all_rows[4 + i % 5], cases[i].elem, cases[i].unit, 9, k, 1);
}

/* On both sides of a line of memory and of a packet of a link. */
static void parts_may_be_small_and_large(void **state)
{
	static const unsigned sizes[] = { 1, 63, 64, 65, 8 << 20, (8 << 20) - 1, (8 << 20) + 1 };
	const struct rows pair = { 1, 2, 2, 2, { 1, 0 } };
	char text[1024];
	struct gang g;

	(void)state;
	for (unsigned i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
		for (unsigned is_same = 0; is_same < 2; is_same++) {
			snprintf(text, sizeof(text), MODULE("%%0: tensor<%s%uxi8>",
				 "%%1 = tc.exchange(%%0) {replica_groups = [1, 0], group_size = 2, "
				 "is_same = %s} : tensor<2x%uxi8>\nreturn(%%1)\n"),
				 is_same ? "" : "2x", sizes[i], is_same ? "true" : "false",
				 sizes[i]);
			gang_make(&g, text, 1, 2, 1);
			set_args(&g, i);
			gang_run(&g);
			check_exchange(&g, &pair, sizes[i], is_same, i);
			gang_drop(&g);
		}
}

/* Nothing is moved, and the program's other exchange meets. */
static void empty_arrays_meet_nobody(void **state)
{
	static const char text[] = MODULE("%0: tensor<2x0xf32>, %1: tensor<3xf32>",
		"%2 = tc.exchange(%0) {replica_groups = [0, 1], group_size = 2, is_same = false} : "
		"tensor<2x0xf32>\n"
		"%3 = tc.exchange(%1) {replica_groups = [0, 1], group_size = 2, is_same = true} : "
		"tensor<2x3xf32>\n"
		"%4 = collective_permute(%0) {source_target_pairs = [0, 1], "
		"use_global_device_ids = true} : tensor<2x0xf32>\n"
		"return(%3, %2, %4)\n");
	const struct rows rows = { 1, 2, 2, 2, { 0, 1 } };
	struct gang g;

	(void)state;
	gang_make(&g, text, 1, 2, 1);
	set_args(&g, 6);
	gang_run(&g);
	check_exchange(&g, &rows, 12, true, 7);	/* the second argument's */
	gang_drop(&g);
}

/* ---- permutations ---- */

struct pairs {
	unsigned replicas, partitions, n;	/* n: of ids, two a pair */
	int ids[2 * N];
};

static const struct pairs all_pairs[] = {
	{ 1, 2, 4, { 0, 1, 1, 0 } },
	{ 2, 1, 2, { 1, 0 } },		/* who takes is told from who sends, and from replicas */
	{ 1, 2, 2, { 0, 1 } },
	{ 1, 2, 0, { 0 } },		/* zeros everywhere */
	{ 1, 2, 4, { 0, 0, 1, 1 } },
	{ 1, 2, 2, { 1, 1 } },
	{ 3, 1, 6, { 0, 1, 1, 2, 2, 0 } },
	{ 1, 3, 4, { 0, 1, 1, 2 } },
	{ 2, 2, 6, { 0, 0, 1, 2, 2, 1 } },	/* all three kinds */
	{ 2, 2, 6, { 0, 1, 1, 2, 3, 3 } },
	{ 1, 8, 16, { 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 0 } },
	{ 8, 1, 14, { 7, 6, 6, 5, 5, 4, 4, 3, 3, 2, 2, 1, 1, 0 } },
	{ 2, 4, 6, { 7, 0, 0, 7, 3, 3 } },
};

static void check_permutation(const struct gang *g, const struct pairs *p, size_t bytes,
			      unsigned result, unsigned salt)
{
	uint8_t *got = room(bytes);

	for (unsigned m = 0; m < g->n; m++) {
		int from = -1;

		for (unsigned i = 0; i < p->n; i += 2)
			if (p->ids[i + 1] == (int)m)
				from = p->ids[i];
		gang_get(g, m, result, got);
		for (size_t i = 0; i < bytes; i++)
			if (got[i] != (from < 0 ? 0 : byte_of((unsigned)from, i, salt)))
				fail_msg("member %u has byte %zu not of %d", m, i, from);
	}
	free(got);
}

static void try_permutation(const struct pairs *p, unsigned each, unsigned level,
			    bool is_donated)
{
	char text[1024], ids[128];
	struct gang g;

	write_ids(ids, sizeof(ids), p->ids, p->n);
	snprintf(text, sizeof(text), MODULE("%%0: tensor<%uxi16>%s", "%%1 = "
		 "collective_permute(%%0) {source_target_pairs = [%s], use_global_device_ids = "
		 "true} : tensor<%uxi16>\nreturn(%%1)\n"), each,
		 is_donated ? " {alias = 0}" : "", ids, each);
	gang_make(&g, text, p->replicas, p->partitions, level);
	for (unsigned round = 0; round < 3; round++) {
		set_args(&g, round);
		gang_run(&g);
		check_permutation(&g, p, 2 * each, 0, round);
	}
	gang_drop(&g);
}

static void permutations_bring_what_was_sent_or_zeros(void **state)
{
	(void)state;
	for (unsigned i = 0; i < sizeof(all_pairs) / sizeof(*all_pairs); i++)
		for (unsigned k = 0; k < 4; k++)
			try_permutation(&all_pairs[i], 5 + 31 * i, k & 1, k / 2);
}

/* ---- in another order ---- */

static unsigned count_moves(const struct image *im)
{
	unsigned n = 0;

	for (size_t at = 0; at < im->text_bytes;) {
		const struct isa_insn *insn = (const void *)((const char *)im->text + at);

		n += insn->op == ISA_COPY;
		at += insn->bytes;
	}
	return n;
}

/* Members gather [3, c] bytes each along the inner dim; used: other ops look at that. */
static void try_turned(unsigned n, unsigned c, bool is_used, unsigned level)
{
	const unsigned all = 3 * n * c;
	uint8_t *got = room(all);
	char text[1024], row[64];
	struct gang g;

	snprintf(row, sizeof(row), "tensor<3x%uxui8>", n * c);
	snprintf(text, sizeof(text), MODULE("%%0: tensor<3x%uxui8>",
		 "%%1 = tc.exchange(%%0) {replica_groups = [%s], group_size = %u, is_same = "
		 "true} : tensor<%ux3x%uxui8>\n"
		 "%%2 = transpose(%%1) {permutation = [1, 0, 2]} : tensor<3x%ux%uxui8>\n"
		 "%%3 = reshape(%%2) : %s\n"
		 "%%4 = add(%%3, %%3) : %s\nreturn(%%%c)\n"), c, n == 2 ? "1, 0" : "2, 0, 1", n, n,
		 c, n, c, row, row, is_used ? '4' : '3');
	gang_make(&g, text, 1, n, level);
	/* Its own part to where it is to end; by a mailbox, all from there as well. A row that is
	 * not worth a packet is moved then, but that an op reads a single element where it is. */
	assert_int_equal(count_moves(g.image), !gang_direct || gang_direct > all ||
			 (c < 256 && (c > 1 || !is_used)) ? 2 : 1);
	for (unsigned round = 0; round < 2; round++) {
		set_args(&g, round);
		gang_run(&g);
		for (unsigned m = 0; m < n; m++) {
			gang_get(&g, m, 0, got);
			for (unsigned i = 0; i < all; i++) {
				unsigned place = i / c % n;
				unsigned from = n == 2 ? 1 - place : (place + 2) % 3;
				uint8_t x = byte_of(from, i / (n * c) * c + i % c, round);

				assert_int_equal(got[i], (uint8_t)(is_used ? x + x : x));
			}
		}
	}
	gang_drop(&g);
	free(got);
}

/* Rows on both sides of what is worth a packet. */
static void parts_arrive_in_the_order_of_their_transposition(void **state)
{
	static const unsigned rows[] = { 1, 7, 255, 256, 257, 4096 };

	(void)state;
	for (unsigned i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		for (unsigned k = 0; k < 8; k++)
			try_turned(k & 1 ? 2 : 3, rows[i], k & 2, k >> 2);
}

/* ---- in the middle of programs ---- */

/* Operands that are views, constants or other ops' results; results that others look at; one
 * that is donated; and members' own numbers. */
static void exchanges_are_ops_like_others(void **state)
{
	static const char text[] = MODULE(
		"%0: tensor<3x4xui32> {alias = 0}, %1: tensor<4x3xui32> {alias = 3}",
		/* result 3: in the memory of what it takes */
		"%40 = tc.exchange(%1) {replica_groups = [0, 1, 2, 3], group_size = 4, "
		"is_same = false} : tensor<4x3xui32>\n"
		"%2 = transpose(%0) {permutation = [1, 0]} : tensor<4x3xui32>\n"
		"%3 = tc.exchange(%2) {replica_groups = [0, 1, 2, 3], group_size = 4, "
		"is_same = false} : tensor<4x3xui32>\n"
		"%4 = transpose(%3) {permutation = [1, 0]} : tensor<3x4xui32>\n"
		"%5 = add(%4, %0) : tensor<3x4xui32>\n"
		"%6 = partition_id() : tensor<ui32>\n"
		"%7 = replica_id() : tensor<ui32>\n"
		"%8 = constant() {value = dense<0x0a000000> : tensor<ui32>} : tensor<ui32>\n"
		"%9 = multiply(%7, %8) : tensor<ui32>\n"
		"%10 = add(%9, %6) : tensor<ui32>\n"
		"%11 = tc.exchange(%10) {replica_groups = [0, 1, 2, 3], group_size = 4, "
		"is_same = true} : tensor<4xui32>\n"
		"%12 = constant() {value = dense<splat 0x07000000> : tensor<2x5xui32>} : "
		"tensor<2x5xui32>\n"
		"%13 = tc.exchange(%12) {replica_groups = [0, 3, 1, 2], group_size = 2, "
		"is_same = false} : tensor<2x5xui32>\n"
		"%14 = collective_permute(%11) {source_target_pairs = [0, 1, 2, 2], "
		"use_global_device_ids = true} : tensor<4xui32>\n"
		"return(%5, %11, %13, %40, %14)\n");
	uint32_t in[4][12], more[4][12], got[12];
	struct gang g;

	(void)state;
	for (unsigned level = 0; level < 2; level++) {
		gang_make(&g, text, 2, 2, level);
		for (unsigned m = 0; m < 4; m++) {
			for (unsigned i = 0; i < 12; i++) {
				in[m][i] = m * 1000 + i;
				more[m][i] = m * 77777 + i * i;
			}
			gang_set(&g, m, 0, in[m]);
			gang_set(&g, m, 1, more[m]);
		}
		gang_run(&g);
		for (unsigned m = 0; m < 4; m++) {
			gang_get(&g, m, 0, got);
			for (unsigned i = 0; i < 12; i++)
				assert_int_equal(got[i], in[i % 4][i / 4 * 4 + m] + in[m][i]);
			gang_get(&g, m, 1, got);
			for (unsigned i = 0; i < 4; i++)
				assert_int_equal(got[i], i / 2 * 10 + i % 2);
			gang_get(&g, m, 2, got);
			for (unsigned i = 0; i < 10; i++)
				assert_int_equal(got[i], 7);
			gang_get(&g, m, 3, got);
			for (unsigned i = 0; i < 12; i++)
				assert_int_equal(got[i], more[i / 3][m * 3 + i % 3]);
			gang_get(&g, m, 4, got);
			for (unsigned i = 0; i < 4; i++)
				assert_int_equal(got[i], m == 1 || m == 2 ? i / 2 * 10 + i % 2 :
						 0);
		}
		gang_drop(&g);
	}
}

/* x = 3 * (x of the member before) + 1, and y goes to and fro between all, 1000 times. */
static const char loop_text[] = MODULE(
	"%0: tensor<5xui32> {alias = 0}, %1: tensor<@Mx2xui32>, %2: tensor<i32>",
	"%3 = constant() {value = dense<0x00000000> : tensor<i32>} : tensor<i32>\n"
	"%4 = constant() {value = dense<0x01000000> : tensor<i32>} : tensor<i32>\n"
	"%5 = constant() {value = dense<splat 0x03000000> : tensor<5xui32>} : tensor<5xui32>\n"
	"%6 = constant() {value = dense<splat 0x01000000> : tensor<5xui32>} : tensor<5xui32>\n"
	"%7, %8, %9 = while(%3, %0, %1) : tensor<i32>, tensor<5xui32>, tensor<@Mx2xui32> "
	"(%10: tensor<i32>, %11: tensor<5xui32>, %12: tensor<@Mx2xui32>) {\n"
	"%13 = compare(%10, %2) {compare_type = <SIGNED>, comparison_direction = <LT>} : "
	"tensor<i1>\nreturn(%13)\n"
	"} (%20: tensor<i32>, %21: tensor<5xui32>, %22: tensor<@Mx2xui32>) {\n"
	"%23 = collective_permute(%21) {source_target_pairs = [@P], use_global_device_ids = true} "
	": tensor<5xui32>\n"
	"%24 = multiply(%23, %5) : tensor<5xui32>\n"
	"%25 = add(%24, %6) : tensor<5xui32>\n"
	"%26 = tc.exchange(%22) {replica_groups = [@G], group_size = @M, is_same = false} : "
	"tensor<@Mx2xui32>\n"
	"%27 = add(%26, %22) : tensor<@Mx2xui32>\n"
	"%28 = add(%20, %4) : tensor<i32>\n"
	"return(%28, %25, %27)\n}\n"
	"return(%8, %9)\n");

static void write_loop(char *out, size_t room_for, unsigned n)
{
	char pairs[128], all[64];
	int ids[2 * N] = { 0 };
	size_t at = 0;

	for (unsigned m = 0; m < n; m++) {
		ids[2 * m] = (int)m;
		ids[2 * m + 1] = (int)(m + 1) % (int)n;
	}
	write_ids(pairs, sizeof(pairs), ids, 2 * n);
	for (unsigned m = 0; m < n; m++)
		ids[m] = (int)m;
	write_ids(all, sizeof(all), ids, n);
	for (const char *p = loop_text; *p; p++) {
		if (*p != '@') {
			out[at++] = *p;
			continue;
		}
		p++;
		if (*p == 'M')
			at += (size_t)snprintf(out + at, room_for - at, "%u", n);
		else
			at += (size_t)snprintf(out + at, room_for - at, "%s",
					       *p == 'P' ? pairs : all);
		assert_true(at + 2 < room_for);
	}
	out[at] = 0;
}

static void turn_loop(unsigned n, unsigned turns, uint32_t (*x)[5], uint32_t (*y)[N][2])
{
	uint32_t old_x[N][5], old_y[N][N][2];

	while (turns--) {
		memcpy(old_x, x, sizeof(old_x));
		memcpy(old_y, y, sizeof(old_y));
		for (unsigned m = 0; m < n; m++) {
			for (unsigned i = 0; i < 5; i++)
				x[m][i] = old_x[(m + n - 1) % n][i] * 3 + 1;
			for (unsigned j = 0; j < n; j++)
				for (unsigned i = 0; i < 2; i++)
					y[m][j][i] = old_y[j][m][i] + old_y[m][j][i];
		}
	}
}

static void try_loop(unsigned n, unsigned turns, unsigned rounds)
{
	uint32_t x[N][5], y[N][N][2], got[N * 2];
	char text[4096];
	struct gang g;

	write_loop(text, sizeof(text), n);
	gang_make(&g, text, 1, n, 1);
	for (unsigned round = 0; round < rounds; round++) {
		for (unsigned m = 0; m < n; m++) {
			for (unsigned i = 0; i < 5; i++)
				x[m][i] = m * 100 + i + round;
			for (unsigned i = 0; i < 2 * n; i++)
				y[m][i / 2][i % 2] = m * 10 + i;
			gang_set(&g, m, 0, x[m]);
			gang_set(&g, m, 1, y[m]);
			gang_set(&g, m, 2, &turns);
		}
		turn_loop(n, turns, x, y);
		gang_run(&g);
		for (unsigned m = 0; m < n; m++) {
			gang_get(&g, m, 0, got);
			assert_memory_equal(got, x[m], 20);
			gang_get(&g, m, 1, got);
			assert_memory_equal(got, y[m], 8 * n);
		}
	}
	gang_drop(&g);
}

static void loops_meet_in_every_turn(void **state)
{
	(void)state;
	for (unsigned n = 2; n <= N; n += n < 4 ? 1 : 4) {
		try_loop(n, 1000, 1);
		try_loop(n, 0, 1);
		try_loop(n, 3, 20);
	}
}

/* Member 0 hears from nobody: only credit keeps it from sending before the others have taken. */
static void nobody_is_overrun(void **state)
{
	static const char text[] = MODULE("%0: tensor<300xui32>, %2: tensor<i32>",
		"%3 = constant() {value = dense<0x00000000> : tensor<i32>} : tensor<i32>\n"
		"%4 = constant() {value = dense<0x01000000> : tensor<i32>} : tensor<i32>\n"
		"%5 = constant() {value = dense<splat 0x03000000> : tensor<300xui32>} : "
		"tensor<300xui32>\n"
		"%6 = constant() {value = dense<splat 0x00000000> : tensor<300xui32>} : "
		"tensor<300xui32>\n"
		"%7, %8, %9 = while(%3, %0, %6) : tensor<i32>, tensor<300xui32>, tensor<300xui32> "
		"(%10: tensor<i32>, %11: tensor<300xui32>, %12: tensor<300xui32>) {\n"
		"%13 = compare(%10, %2) {compare_type = <SIGNED>, comparison_direction = <LT>} : "
		"tensor<i1>\nreturn(%13)\n"
		"} (%20: tensor<i32>, %21: tensor<300xui32>, %22: tensor<300xui32>) {\n"
		"%23 = collective_permute(%21) {source_target_pairs = [0, 1], "
		"use_global_device_ids = true} : tensor<300xui32>\n"
		"%24 = multiply(%21, %5) : tensor<300xui32>\n"
		"%25 = multiply(%22, %5) : tensor<300xui32>\n"
		"%26 = add(%25, %23) : tensor<300xui32>\n"
		"%27 = add(%26, %26) : tensor<300xui32>\n"
		"%28 = add(%20, %4) : tensor<i32>\n"
		"return(%28, %24, %27)\n}\nreturn(%9)\n");
	uint32_t x[300], got[300], turns = 2000;
	struct gang g;

	(void)state;
	gang_make(&g, text, 2, 1, 1);
	for (unsigned m = 0; m < 2; m++) {
		for (unsigned i = 0; i < 300; i++)
			x[i] = m ? 0 : i * 2 + 1;
		gang_set(&g, m, 0, x);
		gang_set(&g, m, 1, &turns);
	}
	gang_run(&g);
	gang_get(&g, 1, 0, got);
	for (unsigned i = 0; i < 300; i++) {
		uint32_t sum = 0, sent = i * 2 + 1;

		for (unsigned k = 0; k < turns; k++, sent *= 3)
			sum = 2 * (sum * 3 + sent);
		assert_int_equal(got[i], sum);
	}
	gang_drop(&g);
}

/* One area for all of them, and another one behind it. */
static void sizes_may_change_among_the_same_members(void **state)
{
	static const char text[] = MODULE("%0: tensor<3xui8>, %1: tensor<2x5000xui8>, "
		"%2: tensor<7xui8>, %3: tensor<4000xui8>",
		"%10 = tc.exchange(%0) {replica_groups = [1, 0], group_size = 2, is_same = true} : "
		"tensor<2x3xui8>\n"
		"%11 = collective_permute(%2) {source_target_pairs = [0, 1, 1, 0], "
		"use_global_device_ids = true} : tensor<7xui8>\n"
		"%12 = tc.exchange(%1) {replica_groups = [1, 0], group_size = 2, "
		"is_same = false} : tensor<2x5000xui8>\n"
		"%13 = collective_permute(%3) {source_target_pairs = [0, 1, 1, 0], "
		"use_global_device_ids = true} : tensor<4000xui8>\n"
		"return(%10, %11, %12, %13)\n");
	uint8_t got[10000];
	struct gang g;

	(void)state;
	gang_make(&g, text, 1, 2, 1);
	for (unsigned round = 0; round < 20; round++) {
		set_args(&g, round);
		gang_run(&g);
		for (unsigned m = 0; m < 2; m++) {
			gang_get(&g, m, 0, got);
			for (unsigned i = 0; i < 6; i++)
				assert_int_equal(got[i], byte_of(1 - i / 3, i % 3, round));
			gang_get(&g, m, 1, got);
			for (unsigned i = 0; i < 7; i++)
				assert_int_equal(got[i], byte_of(1 - m, i, round + 2));
			gang_get(&g, m, 2, got);
			for (unsigned i = 0; i < 10000; i++)
				assert_int_equal(got[i], byte_of(1 - i / 5000, i % 5000 +
						 (1 - m) * 5000, round + 1));
			gang_get(&g, m, 3, got);
			for (unsigned i = 0; i < 4000; i++)
				assert_int_equal(got[i], byte_of(1 - m, i, round + 3));
		}
	}
	gang_drop(&g);
}

/* What is large may go directly and what is small by the mailbox: whoever has all of the first
 * sends of the second at once, to members to whom a slower one still sends. */
static void try_large_before_small(unsigned n, unsigned large, unsigned rounds)
{
	uint8_t got[N * 8];
	char text[1024], all[64];
	int ids[N];
	struct gang g;

	for (unsigned m = 0; m < n; m++)
		ids[m] = (int)m;
	write_ids(all, sizeof(all), ids, n);
	snprintf(text, sizeof(text), MODULE("%%0: tensor<%ux%uxui8>, %%1: tensor<5xui8>",
		 "%%2 = tc.exchange(%%0) {replica_groups = [%s], group_size = %u, is_same = false} "
		 ": tensor<%ux%uxui8>\n"
		 "%%3 = slice(%%2) {start_indices = [0, %u], limit_indices = [%u, %u], strides = "
		 "[1, 1]} : tensor<%ux8xui8>\n%%4 = add(%%3, %%3) : tensor<%ux8xui8>\n"
		 "%%5 = tc.exchange(%%1) {replica_groups = [%s], group_size = %u, is_same = true} "
		 ": tensor<%ux5xui8>\nreturn(%%4, %%5)\n"), n, large, all, n, n, large, large - 8,
		 n, large, n, n, all, n, n);
	gang_make(&g, text, 1, n, 1);
	for (unsigned round = 0; round < rounds; round++) {
		set_args(&g, round);
		gang_run(&g);
		for (unsigned m = 0; m < n; m++) {
			gang_get(&g, m, 0, got);
			for (unsigned i = 0; i < n * 8; i++) {
				size_t at = m * (size_t)large + large - 8 + i % 8;

				assert_int_equal(got[i], (uint8_t)(2 * byte_of(i / 8, at, round)));
			}
			gang_get(&g, m, 1, got);
			for (unsigned i = 0; i < n * 5; i++)
				assert_int_equal(got[i], byte_of(i / 5, i % 5, round + 1));
		}
	}
	gang_drop(&g);
}

static void ways_may_change_among_the_same_members(void **state)
{
	(void)state;
	try_large_before_small(3, 2 << 20, 20);
	try_large_before_small(8, 1 << 18, 20);
	try_large_before_small(8, 100, 200);
}

/* The same choice everywhere, made by data. */
static void branches_meet(void **state)
{
	static const char text[] = MODULE("%0: tensor<i1>, %1: tensor<6xi32>",
		"%2 = if(%0) : tensor<2x6xi32> () {\n"
		"%3 = tc.exchange(%1) {replica_groups = [0, 1, 2, -1], group_size = 2, is_same = "
		"true} : tensor<2x6xi32>\nreturn(%3)\n} () {\n"
		"%4 = collective_permute(%1) {source_target_pairs = [0, 2, 2, 0], "
		"use_global_device_ids = true} : tensor<6xi32>\n"
		"%5 = broadcast_in_dim(%4) {broadcast_dimensions = [1]} : tensor<2x6xi32>\n"
		"return(%5)\n}\nreturn(%2)\n");
	const int want[2][3][2] = { { { 2, 2 }, { -1, -1 }, { 0, 0 } },
				    { { 0, 1 }, { 0, 1 }, { 2, -1 } } };
	int32_t in[6], got[12];
	struct gang g;

	(void)state;
	gang_make(&g, text, 3, 1, 1);
	for (unsigned round = 0; round < 20; round++) {
		uint8_t choice = (round * 7 / 3) & 1;

		for (unsigned m = 0; m < 3; m++) {
			for (unsigned i = 0; i < 6; i++)
				in[i] = (int32_t)(100 * m + i + 1 + round);
			gang_set(&g, m, 0, &choice);
			gang_set(&g, m, 1, in);
		}
		gang_run(&g);
		for (unsigned m = 0; m < 3; m++) {
			gang_get(&g, m, 0, got);
			for (unsigned i = 0; i < 12; i++) {
				int from = want[choice][m][i / 6];

				assert_int_equal(got[i], from < 0 ? 0 : 100 * from + (int)i % 6 +
						 1 + (int)round);
			}
		}
	}
	gang_drop(&g);
}

/* ---- many launches ---- */

/* Launched over and over, with nobody waiting between: x is donated, and goes on. */
static void launches_may_be_queued_behind_each_other(void **state)
{
	enum { ROUNDS = 10000 };
	uint32_t x[N][5], y[N][N][2] = { 0 }, got[5], one = 1;
	char text[4096];
	struct gang g;
	struct err err;

	(void)state;
	write_loop(text, sizeof(text), 4);
	gang_make(&g, text, 1, 4, 1);
	for (unsigned m = 0; m < 4; m++) {
		for (unsigned i = 0; i < 5; i++)
			x[m][i] = m * 5 + i;
		gang_set(&g, m, 0, x[m]);
		gang_set(&g, m, 1, y[m]);
		gang_set(&g, m, 2, &one);
	}
	for (unsigned i = 0; i < ROUNDS; i++)
		if (gang_launch(&g, N, &err))
			fail_msg("launch %u: %s", i, err.msg);
	for (unsigned m = 0; m < 4; m++)
		if (gang_wait(&g, m, &err))
			fail_msg("%s", err.msg);
	turn_loop(4, ROUNDS, x, y);
	for (unsigned m = 0; m < 4; m++) {
		gang_get(&g, m, 0, got);
		assert_memory_equal(got, x[m], 20);
	}
	gang_drop(&g);
}

/* Two of different members and rows, in turns, on the same devices. */
static void different_programs_take_turns(void **state)
{
	struct rows a = { 1, 8, 4, 8, { 0, 2, 4, 6, 1, 3, 5, 7 } };
	struct pairs b = { 1, 3, 4, { 0, 1, 1, 2 } };
	struct gang g, h;
	struct err err;

	(void)state;
	gang_make(&g, MODULE("%0: tensor<9xui8>",
		"%1 = tc.exchange(%0) {replica_groups = [0, 2, 4, 6, 1, 3, 5, 7], group_size = 4, "
		"is_same = true} : tensor<4x9xui8>\nreturn(%1)\n"), 1, 8, 1);
	gang_make(&h, MODULE("%0: tensor<100xui8>",
		"%1 = collective_permute(%0) {source_target_pairs = [0, 1, 1, 2], "
		"use_global_device_ids = true} : tensor<100xui8>\nreturn(%1)\n"), 1, 3, 1);
	for (unsigned i = 0; i < 200; i++) {
		set_args(&g, i);
		set_args(&h, i);
		for (unsigned k = 0; k < 5; k++)
			if (gang_launch(&g, N, &err) || gang_launch(&h, N, &err))
				fail_msg("%s", err.msg);
		for (unsigned m = 0; m < 8; m++)
			if (gang_wait(&g, m, &err) || (m < 3 && gang_wait(&h, m, &err)))
				fail_msg("%s", err.msg);
		check_exchange(&g, &a, 9, true, i);
		check_permutation(&h, &b, 100, 0, i);
	}
	gang_drop(&g);
	gang_drop(&h);
}

struct user {
	pthread_t thread;
	unsigned number, failed;
	const void *image;
	size_t bytes;
};

static void *use(void *arg)
{
	uint32_t x[5] = { 0 }, y[6] = { 0 }, turns = 2;
	struct user *u = arg;
	struct gang g;
	struct err err;

	gang_load(&g, u->image, u->bytes, u->number, 1 + 2 * (u->number % 2));
	for (unsigned m = 0; m < g.n; m++) {
		gang_set(&g, m, 0, x);
		gang_set(&g, m, 1, y);
		gang_set(&g, m, 2, &turns);
	}
	for (unsigned i = 0; i < 32; i++) {
		u->failed += gang_launch(&g, N, &err) != 0;
		for (unsigned m = 0; i % 8 == 7 && m < g.n; m++)
			u->failed += gang_wait(&g, m, &err) != 0;
	}
	for (unsigned m = 0; m < g.n; m++) {
		u->failed += gang_wait(&g, m, &err) != 0;
		gang_get(&g, m, 0, x);
		/* (3^64 - 1) / 2 from 0, for all members are alike */
		for (unsigned i = 0; i < 5; i++)
			u->failed += x[i] != x[0];
	}
	gang_drop(&g);
	return NULL;
}

static void threads_launch_over_devices_they_share(void **state)
{
	const struct tc_options o = { .level = 1, .replicas = 1, .partitions = 3 };
	struct user u[8] = { 0 };
	struct tc_result r;
	char text[4096];
	struct err err;

	(void)state;
	write_loop(text, sizeof(text), 3);
	if (tc_compile(&(struct tc_source){ text, strlen(text), "mlir" }, &o, &r, &err))
		fail_msg("%s", err.msg);
	for (unsigned i = 0; i < 8; i++) {
		u[i].number = i;
		u[i].image = r.image;
		u[i].bytes = r.image_bytes;
		assert_int_equal(pthread_create(&u[i].thread, NULL, use, &u[i]), 0);
	}
	for (unsigned i = 0; i < 8; i++) {
		pthread_join(u[i].thread, NULL);
		assert_int_equal(u[i].failed, 0);
	}
	tc_result_free(&r);
}

/* ---- failures ---- */

static void start_loop(struct gang *g, unsigned n, unsigned turns)
{
	uint32_t x[5] = { 1 }, y[2 * N] = { 2 };
	char text[4096];

	write_loop(text, sizeof(text), n);
	gang_make(g, text, 1, n, 1);
	for (unsigned m = 0; m < n; m++) {
		gang_set(g, m, 0, x);
		gang_set(g, m, 1, y);
		gang_set(g, m, 2, &turns);
	}
}

/* Those but `at` fail within a second, and name its device. */
static void others_hear(const struct gang *g, unsigned at)
{
	int64_t began = clock_ns();
	struct err err;
	char part[32];

	snprintf(part, sizeof(part), "peer sim:%u failed", g->at[at]);
	for (unsigned m = 0; m < g->n; m++) {
		if (m == at)
			continue;
		assert_int_equal(gang_wait(g, m, &err), ERR_UNAVAILABLE);
		if (!strstr(err.msg, part))
			fail_msg("member %u: no \"%s\" in: %s", m, part, err.msg);
	}
	assert_true(clock_ns() - began < SECOND);
}

static void runs_again(struct gang *g)
{
	uint32_t x[N][5] = { 0 }, y[N][N][2] = { 0 }, turns = 7, got[5];

	gang_begin_anew(g);
	for (unsigned m = 0; m < g->n; m++) {
		x[m][0] = m;
		gang_set(g, m, 0, x[m]);
		gang_set(g, m, 1, y[m]);
		gang_set(g, m, 2, &turns);
	}
	gang_run(g);
	turn_loop(g->n, turns, x, y);
	for (unsigned m = 0; m < g->n; m++) {
		gang_get(g, m, 0, got);
		assert_memory_equal(got, x[m], 20);
	}
}

/* The one stays away, or is amid an endless loop, when its device or queue fails. */
static void a_member_that_fails_fails_all_by_its_name(void **state)
{
	uint32_t endless = 0x7fffffff;
	struct gang g;
	struct err err;

	(void)state;
	start_loop(&g, 8, 3);
	gang_run(&g);
	for (unsigned i = 0; i < 9; i++) {
		unsigned at = (i * 5 + 3) % 8;
		bool stays_away = i & 1;

		for (unsigned m = 0; m < 8; m++)
			gang_set(&g, m, 2, &endless);
		if (gang_launch(&g, stays_away ? at : N, &err))
			fail_msg("%s", err.msg);
		switch (i % 3) {
		case 0:
			assert_int_equal(hal_device_inject(gang_dev[g.at[at]], HW_INJECT_FATAL, 0,
							   &err), 0);
			others_hear(&g, at);
			while (!hal_device_error(gang_dev[g.at[at]], &err))
				hal_queue_wait(gang_queue(&g, at), UINT64_MAX, 0, NULL);
			assert_int_equal(hal_device_reset(gang_dev[g.at[at]], &err), 0);
			break;
		case 1:
			assert_int_equal(hal_device_reset(gang_dev[g.at[at]], &err), 0);
			others_hear(&g, at);
			break;
		default:
			/* One that stays away would not fail by this. */
			if (stays_away) {
				assert_int_equal(hal_device_reset(gang_dev[g.at[at]], &err), 0);
			} else {
				assert_int_equal(hal_queue_reset(gang_queue(&g, at), "a test",
								 &err), 0);
				assert_int_equal(gang_wait(&g, at, &err), ERR_ABORTED);
			}
			others_hear(&g, at);
		}
		runs_again(&g);
	}
	gang_drop(&g);
}

/* ---- texts that are wrong ---- */

static void groups_of_others_are_refused_by_name(void **state)
{
	static const struct { const char *line, *says; unsigned replicas, partitions; } cases[] = {
		{ "%1 = tc.exchange(%0) {replica_groups = [0, 2], group_size = 2, is_same = false} "
		  ": tensor<2x3xf32>", "names member 2 of a program", 1, 2 },
		{ "%1 = tc.exchange(%0) {replica_groups = [0, 1], group_size = 2, is_same = false} "
		  ": tensor<2x3xf32>", "leaves out member 2", 2, 2 },
		{ "%1 = collective_permute(%0) {source_target_pairs = [0, 3], "
		  "use_global_device_ids = true} : tensor<2x3xf32>", "names member 3", 3, 1 },
		{ "%1 = tc.copy(%0) : tensor<2x3xf32>", "at most 65536 devices", 65537, 1 },
		{ "%1 = tc.copy(%0) : tensor<2x3xf32>", "at most 65536 devices", 65536, 65536 },
	};
	char text[1024];
	struct err err;

	(void)state;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const struct tc_options o = { .level = 1, .replicas = cases[i].replicas,
					      .partitions = cases[i].partitions };
		struct tc_result r;

		snprintf(text, sizeof(text), MODULE("%%0: tensor<2x3xf32>", "%s\nreturn(%%1)\n"),
			 cases[i].line);
		if (!tc_compile(&(struct tc_source){ text, strlen(text), "mlir" }, &o, &r, &err))
			fail_msg("case %u is taken", i);
		if (!strstr(err.msg, cases[i].says))
			fail_msg("case %u: no \"%s\" in: %s", i, cases[i].says, err.msg);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exchanges_bring_each_part_to_its_place),
		cmocka_unit_test(places_that_a_row_does_not_have_are_zeros),
		cmocka_unit_test(elements_of_every_size_are_exchanged),
		cmocka_unit_test(parts_may_be_small_and_large),
		cmocka_unit_test(empty_arrays_meet_nobody),
		cmocka_unit_test(permutations_bring_what_was_sent_or_zeros),
		cmocka_unit_test(parts_arrive_in_the_order_of_their_transposition),
		cmocka_unit_test(exchanges_are_ops_like_others),
		cmocka_unit_test(loops_meet_in_every_turn),
		cmocka_unit_test(nobody_is_overrun),
		cmocka_unit_test(sizes_may_change_among_the_same_members),
		cmocka_unit_test(ways_may_change_among_the_same_members),
		cmocka_unit_test(branches_meet),
		cmocka_unit_test(launches_may_be_queued_behind_each_other),
		cmocka_unit_test(different_programs_take_turns),
		cmocka_unit_test(threads_launch_over_devices_they_share),
		cmocka_unit_test(a_member_that_fails_fails_all_by_its_name),
		cmocka_unit_test(groups_of_others_are_refused_by_name),
	};

	static const uint64_t direct[] = { 0, 1, 64 };	/* none, all, those that are larger */
	int n_failed = 0;

	for (unsigned i = 0; i < 3; i++) {
		gang_direct = direct[i];
		n_failed += cmocka_run_group_tests(tests, gang_start, gang_stop);
	}
	return n_failed;
}
