/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_RING_H
#define TESTS_RING_H
/*
 * Programs over several chips, written by hand: what chips do that meet. For tests of the
 * model and of the HAL, and for figures.
 *
 *	struct ring_code c = { .n = 8, .member = r, .elements = 1024 };
 *	ring_all_reduce(&c);		c.text, c.bytes
 *
 * All members run the same with other numbers. Bindings (their count is RING_BINDINGS(n)):
 * 0 constants and 1 temporaries, both empty; 2 the member's data, f32[elements], which becomes
 * the sum over all members; 3 its mailbox; 4 + 2k member k's data and 5 + 2k its mailbox, both
 * peers', the own ones empty. Mailboxes are RING_MAILBOX(n, elements) bytes, zero at first.
 *
 * Every member binds all members, whether it writes to them or not: so it hears when one of
 * them fails.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "hal/hw/image.h"

#define RING_BINDINGS(n) (4 + 2 * (n))
#define RING_SLOTS 4096u	/* where in the mailbox what others send begins */
#define RING_MAILBOX(n, elements) (RING_SLOTS + 4ull * (n) * (elements))

/* In a mailbox. Semaphores count from the first run on; the run's number is kept. */
enum { RING_ARRIVED = 0, RING_FREE = 64, RING_RUN = 128 };
/* Registers. */
enum { RING_R_RUN = 10, RING_R_WANT = 11, RING_R_ONE = 12, RING_R_T = 13 };

struct ring_code {
	unsigned n, member;
	uint64_t elements;	/* a multiple of n */
	uint64_t text[32768];
	size_t bytes;
};

static inline void ring_put(struct ring_code *c, const void *insn, size_t bytes)
{
	if (c->bytes + bytes > sizeof(c->text))
		abort();
	memcpy((char *)c->text + c->bytes, insn, bytes);
	c->bytes += bytes;
}

static inline void ring_scalar(struct ring_code *c, unsigned op, struct isa_scalar s)
{
	s.insn = (struct isa_insn){ .op = (uint16_t)op, .bytes = sizeof(s) };
	ring_put(c, &s, sizeof(s));
}

static inline void ring_alui(struct ring_code *c, unsigned fn, unsigned rd, unsigned ra,
			     int64_t imm)
{
	ring_scalar(c, ISA_ALUI, (struct isa_scalar){ .fn = (uint8_t)fn, .rd = (uint8_t)rd,
						      .ra = (uint8_t)ra, .imm = imm });
}

/* COPY or RPUT of `elements` f32, from and to offsets of bindings. */
static inline void ring_copy(struct ring_code *c, unsigned op, unsigned src, uint64_t from,
			     unsigned dst, uint64_t to, uint64_t elements)
{
	struct isa_copy k = { .insn = { .op = (uint16_t)op, .bytes = sizeof(k) }, .rank = 1,
			      .elem_bytes = 4 };

	for (unsigned d = 0; d < ISA_MAX_RANK; d++)
		k.dim[d] = 1;
	k.dim[0] = (int64_t)elements;
	k.src = (struct isa_operand){ .binding = (uint16_t)src, .offset = (int64_t)from,
				      .stride = { 4 } };
	k.dst = (struct isa_operand){ .binding = (uint16_t)dst, .offset = (int64_t)to,
				      .stride = { 4 } };
	ring_put(c, &k, sizeof(k));
}

static inline void ring_rsig(struct ring_code *c, unsigned peer, int64_t at)
{
	ring_scalar(c, ISA_RSIG, (struct isa_scalar){ .fn = ISA_ALU_ADD, .elem = ELEM_U64,
		.binding = (uint16_t)peer, .rb = RING_R_ONE, .imm = at });
}

/* Until `more` came besides those of earlier runs; waits are in order. */
static inline void ring_rwait(struct ring_code *c, int64_t at, unsigned want, int64_t more)
{
	ring_alui(c, ISA_ALU_ADD, RING_R_T, want, more);
	ring_scalar(c, ISA_RWAIT, (struct isa_scalar){ .elem = ELEM_U64, .binding = 3,
		.rb = RING_R_T, .imm = at });
}

/* data[at..] = binding[from..] + mailbox[slot..] */
static inline void ring_sum(struct ring_code *c, uint64_t at, unsigned binding, uint64_t from,
			    uint64_t slot, uint64_t elements)
{
	struct {
		struct isa_tensor t;
		struct isa_operand op[3];
		struct isa_uop add;
	} v = { .t = { .insn = { .op = ISA_VEC, .bytes = sizeof(v) },
		       .body = { .rank = 1, .n_in = 2, .n_out = 1, .n_uop = 1 } },
		.add = { .op = UOP_ADD, .elem = ELEM_F32, .a = 0, .b = 1 } };

	for (unsigned d = 0; d < ISA_MAX_RANK; d++)
		v.t.body.dim[d] = 1;
	v.t.body.dim[0] = (int64_t)elements;
	v.op[0] = (struct isa_operand){ .elem = ELEM_F32, .binding = (uint16_t)binding,
					.offset = (int64_t)from, .stride = { 4 } };
	v.op[1] = (struct isa_operand){ .elem = ELEM_F32, .binding = 3,
					.offset = (int64_t)slot, .stride = { 4 } };
	v.op[2] = (struct isa_operand){ .elem = ELEM_F32, .binding = 2, .offset = (int64_t)at,
					.stride = { 4 }, .value = 2 };
	ring_put(c, &v, sizeof(v));
}

/* The number of the run, and how many signals came before it: `per_run` a run. */
static inline void ring_begin(struct ring_code *c, int64_t per_run)
{
	c->bytes = 0;
	ring_scalar(c, ISA_LI, (struct isa_scalar){ .rd = RING_R_ONE, .imm = 1 });
	ring_scalar(c, ISA_LD, (struct isa_scalar){ .rd = RING_R_RUN, .elem = ELEM_U64,
		.binding = 3, .imm = RING_RUN });
	ring_alui(c, ISA_ALU_MUL, RING_R_WANT, RING_R_RUN, per_run);
}

static inline void ring_end(struct ring_code *c)
{
	ring_alui(c, ISA_ALU_ADD, RING_R_RUN, RING_R_RUN, 1);
	ring_scalar(c, ISA_ST, (struct isa_scalar){ .rb = RING_R_RUN, .elem = ELEM_U64,
		.binding = 3, .imm = RING_RUN });
	ring_scalar(c, ISA_HALT, (struct isa_scalar){ 0 });
}

/* A ring: n - 1 steps in which sums grow, n - 1 in which they go round. A mailbox has a slot
 * for each of the first; its owner tells the member before when they are free again. */
static inline void ring_all_reduce(struct ring_code *c)
{
	unsigned n = c->n, r = c->member, right = (r + 1) % n, left = (r + n - 1) % n;
	uint64_t each = c->elements / n, bytes = 4 * each, at;

	ring_begin(c, 2 * (n - 1));
	ring_rwait(c, RING_FREE, RING_R_RUN, 0);
	for (unsigned s = 0; s + 1 < n; s++) {
		ring_copy(c, ISA_RPUT, 2, (r + n - s) % n * bytes, 5 + 2 * right,
			  RING_SLOTS + s * bytes, each);
		ring_rsig(c, 5 + 2 * right, RING_ARRIVED);
		ring_rwait(c, RING_ARRIVED, RING_R_WANT, s + 1);
		at = (r + 2 * n - s - 1) % n * bytes;
		ring_sum(c, at, 2, at, RING_SLOTS + s * bytes, each);
	}
	ring_rsig(c, 5 + 2 * left, RING_FREE);
	for (unsigned s = 0; s + 1 < n; s++) {
		at = (r + 1 + n - s) % n * bytes;
		ring_copy(c, ISA_RPUT, 2, at, 4 + 2 * right, at, each);
		ring_rsig(c, 5 + 2 * right, RING_ARRIVED);
		ring_rwait(c, RING_ARRIVED, RING_R_WANT, n + s);
	}
	ring_end(c);
}

/* All pairs: everybody sends everything to everybody, and adds in the order of members. Slots
 * are free once all have said that they are done with the run before. */
static inline void ring_all_pairs(struct ring_code *c)
{
	unsigned n = c->n;
	uint64_t bytes = 4 * c->elements;

	ring_begin(c, n - 1);
	ring_rwait(c, RING_FREE, RING_R_WANT, 0);
	ring_copy(c, ISA_COPY, 2, 0, 3, RING_SLOTS + c->member * bytes, c->elements);
	for (unsigned k = 0; k < n; k++) {
		if (k == c->member)
			continue;
		ring_copy(c, ISA_RPUT, 2, 0, 5 + 2 * k, RING_SLOTS + c->member * bytes,
			  c->elements);
		ring_rsig(c, 5 + 2 * k, RING_ARRIVED);
	}
	ring_rwait(c, RING_ARRIVED, RING_R_WANT, n - 1);
	for (unsigned k = 1; k < n; k++)
		ring_sum(c, 0, k > 1 ? 2 : 3, k > 1 ? 0 : RING_SLOTS, RING_SLOTS + k * bytes,
			 c->elements);
	for (unsigned k = 0; k < n; k++)
		if (k != c->member)
			ring_rsig(c, 5 + 2 * k, RING_FREE);
	ring_end(c);
}

/* The program as an image; *out is malloc'd. Needs libelf, so not for tests of the model.
 * Members bind each other's data, too, which images have no word for: as peers like any. */
static inline int ring_image(const struct ring_code *c, void **out, size_t *bytes,
			     struct err *err)
{
	static const char strings[] = "\0ring\0sum\0here:1";
	const uint16_t both = HW_BIND_READ | HW_BIND_WRITE;
	uint64_t data = 4 * c->elements, box = RING_MAILBOX(c->n, c->elements);
	struct image_binding b[RING_BINDINGS(64)] = {
		{ .kind = IMAGE_CONSTANTS }, { .kind = IMAGE_TEMP },
		{ .kind = IMAGE_RESULT, .access = both, .bytes = data },
		{ .kind = IMAGE_MAILBOX, .access = both, .bytes = box },
	};
	uint32_t peers[64][2 * 64], *row = &peers[0][0];
	struct image_shape shape = { .elem = ELEM_F32, .rank = 1, .alias = -1,
				     .dim = { (int64_t)c->elements } };
	struct image_debug debug = { .offset = 0, .op = 6, .where = 10 };
	struct image im = {
		.info = { .version = IMAGE_VERSION, .isa = ISA_VERSION, .n_results = 1,
			  .name = 1, .n_replicas = c->n, .n_partitions = 1 },
		.text = c->text, .text_bytes = c->bytes, .bindings = b,
		.n_bindings = RING_BINDINGS(c->n), .shapes = &shape, .debug = &debug,
		.n_debug = 1, .peers = row, .n_slots = 2 * c->n,
		.strings = strings, .strings_bytes = sizeof(strings),
		.note = "by hand",
	};

	for (unsigned k = 0; k < c->n; k++) {
		uint64_t some = k != c->member;

		b[4 + 2 * k] = (struct image_binding){ IMAGE_PEER, 0,
			HW_BIND_WRITE | HW_BIND_PEER, 2 * k, some * data };
		b[5 + 2 * k] = (struct image_binding){ IMAGE_PEER, 0,
			HW_BIND_WRITE | HW_BIND_PEER, 2 * k + 1, some * box };
	}
	for (unsigned m = 0; m < c->n; m++)
		for (unsigned k = 0; k < 2 * c->n; k++)
			*row++ = k / 2 == m ? (m + 1) % c->n : k / 2;
	return image_write(&im, out, bytes, err);
}

#endif
