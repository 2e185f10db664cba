/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_HW_IMAGE_H
#define TESTS_HW_IMAGE_H
/* Images made by hand, for tests of the executable format to change. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "hal/base/elem.h"
#include "hal/hw/image.h"

/* One argument that is donated to the first of two results. */
struct parts {
	struct image im;
	uint64_t text[4];
	char rodata[64];
	struct image_binding bindings[5];
	struct image_shape shapes[3];
	struct image_debug debug[2];
	struct image_transfer transfers[3];
	char strings[16];
};

static inline void make(struct parts *p)
{
	const uint16_t both = HW_BIND_READ | HW_BIND_WRITE;

	memset(p, 0, sizeof(*p));
	memcpy(p->strings, "\0name\0op\0where", 15);
	p->bindings[0] = (struct image_binding){ IMAGE_CONSTANTS, 0, HW_BIND_READ, 0, 64 };
	p->bindings[1] = (struct image_binding){ IMAGE_TEMP, 0, both, 0, 128 };
	p->bindings[2] = (struct image_binding){ IMAGE_ARG, 0, both, 0, 24 };
	p->bindings[3] = (struct image_binding){ IMAGE_RESULT, 0, both, 1, 8 };
	p->shapes[0] = (struct image_shape){ .elem = ELEM_F32, .rank = 2, .is_donated = 1,
					     .alias = 0, .dim = { 2, 3 } };
	p->shapes[1] = (struct image_shape){ .elem = ELEM_S64, .rank = 1, .alias = 0,
					     .dim = { 3 } };
	p->shapes[2] = (struct image_shape){ .elem = ELEM_F64, .alias = -1 };
	p->debug[0] = (struct image_debug){ 0, 6, 9 };
	p->debug[1] = (struct image_debug){ 16, 6, 0 };
	/* Call 1 sends the argument and receives to the temporaries, call 2 sends nothing. */
	p->transfers[0] = (struct image_transfer){ 1, 0, 0, 2, 4, 20, 7 };
	p->transfers[1] = (struct image_transfer){ 1, 1, 0, 1, 64, 64, 8 };
	p->transfers[2] = (struct image_transfer){ 2, 0, 0, 0, 64, 0, -1 };
	p->im = (struct image){
		.info = { .version = IMAGE_VERSION, .isa = ISA_VERSION, .n_args = 1,
			  .n_results = 2, .name = 1, .temp_bytes = 128, .n_replicas = 1,
			  .n_partitions = 1 },
		.text = p->text, .text_bytes = sizeof(p->text), .rodata = p->rodata,
		.rodata_bytes = sizeof(p->rodata), .bindings = p->bindings, .n_bindings = 4,
		.shapes = p->shapes, .debug = p->debug, .n_debug = 2,
		.transfers = p->transfers, .n_transfers = 3, .strings = p->strings,
		.strings_bytes = 15, .note = "note",
	};
}

static inline uint8_t *write_image(const struct parts *p, size_t *n)
{
	struct err err;
	void *out;

	if (image_write(&p->im, &out, n, &err))
		fail_msg("%s", err.msg);
	return out;
}

/* The bytes must be refused, with a text that holds `part`. */
static inline void refused(const void *bytes, size_t n, const char *part)
{
	struct image *im = NULL;
	struct err err;

	assert_int_equal(image_parse(bytes, n, &im, &err), ERR_INVALID_ARGUMENT);
	assert_null(im);
	if (!strstr(err.msg, part))
		fail_msg("\"%s\" does not say \"%s\"", err.msg, part);
}

static inline void refused_parts(const struct parts *p, const char *part)
{
	size_t n;
	uint8_t *bytes = write_image(p, &n);

	refused(bytes, n, part);
	free(bytes);
}

/* Members 0 to 3, two replicas of two partitions: each meets one other of its replica and one
 * of its partition. */
struct gang {
	struct parts p;
	struct image_binding b[10];
	uint32_t peers[4][2];
	uint64_t members[4][3];
	uint8_t shardings[3 * 4 + 5];
};

static inline void make_gang(struct gang *g)
{
	const uint16_t both = HW_BIND_READ | HW_BIND_WRITE, peer = HW_BIND_WRITE | HW_BIND_PEER;
	static const uint32_t peers[4][2] = { { 1, 2 }, { 0, 3 }, { 3, 0 }, { 2, 1 } };
	static const uint64_t members[4][3] = { { 0, 0, 9 }, { 0, 1, 8 }, { 1, 0, 7 },
						{ 1, 1, 6 } };
	/* of the argument 2 bytes, of the results none and 3 */
	static const uint8_t shardings[] = { 2, 0, 0, 0, 8, 1, 0, 0, 0, 0, 3, 0, 0, 0, 1, 2, 3 };

	make(&g->p);
	memcpy(g->b, g->p.bindings, 4 * sizeof(*g->b));
	g->b[4] = (struct image_binding){ IMAGE_MAILBOX, 0, both, 0, 4096 };
	g->b[5] = (struct image_binding){ IMAGE_PEER, 0, peer, 0, 4096 };
	g->b[6] = (struct image_binding){ IMAGE_PEER, 0, peer, 1, 64 };
	g->b[7] = (struct image_binding){ IMAGE_MEMBER, 0, HW_BIND_READ, 0, 24 };
	g->b[8] = (struct image_binding){ IMAGE_RANDOM, 0, both, 0, 24 };
	memcpy(g->peers, peers, sizeof(peers));
	memcpy(g->members, members, sizeof(members));
	memcpy(g->shardings, shardings, sizeof(shardings));
	g->p.im.info.n_replicas = g->p.im.info.n_partitions = 2;
	g->p.im.bindings = g->b;
	g->p.im.n_bindings = 9;
	g->p.im.peers = &g->peers[0][0];
	g->p.im.n_slots = 2;
	g->p.im.members = &g->members[0][0];
	g->p.im.n_words = 3;
	g->p.im.shardings = g->shardings;
	g->p.im.shardings_bytes = sizeof(g->shardings);
}

static inline void taken(const struct gang *g)
{
	struct image *im;
	struct err err;
	size_t n;
	uint8_t *bytes = write_image(&g->p, &n);

	if (image_parse(bytes, n, &im, &err))
		fail_msg("%s", err.msg);
	assert_int_equal(im->n_slots, g->p.im.n_slots);
	assert_int_equal(im->n_words, g->p.im.n_words);
	assert_int_equal(image_n_members(im), 4);
	if (im->n_slots)
		assert_memory_equal(im->peers, g->p.im.peers,
				    4 * im->n_slots * sizeof(*im->peers));
	if (im->n_words)
		assert_memory_equal(im->members, g->members, sizeof(g->members));
	image_free(im);
	free(bytes);
}

/* A gang that says how its members meet: in two places. */
static inline void make_meeting_gang(struct gang *g, struct image_meeting meetings[2])
{
	make_gang(g);
	meetings[0] = (struct image_meeting){ IMAGE_WHOLE, ELEM_F32, 0, 1, 64, 6, 0 };
	meetings[1] = (struct image_meeting){ IMAGE_PAIRS, ELEM_S8, 1, 6, 3, 9, 0 };
	g->p.im.meetings = meetings;
	g->p.im.n_meetings = 2;
}

/* They meet alike up to there, or -1: in all. */
static inline void expect_unlike(const struct image *a, const struct image *b, int64_t at)
{
	assert_int_equal(image_meets_otherwise(a, b), at);
	assert_int_equal(image_meeting_number(a) == image_meeting_number(b), at < 0);
}

#endif
