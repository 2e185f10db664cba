/* SPDX-License-Identifier: Apache-2.0 */
/* The check of code that writes to peers' data, and reads it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "hal/base/elem.h"
#include "hal/base/err.h"
#include "runtime/compiler/back/verify.h"

/* What members write to each other's data they have of each other, in the same places. */
static void what_goes_to_peers_data_comes_from_peers(void **state)
{
	static const struct image_binding bindings[] = {
		{ IMAGE_CONSTANTS, 0, HW_BIND_READ, 0, 64 },
		{ IMAGE_TEMP, 0, HW_BIND_READ | HW_BIND_WRITE, 0, 256 },
		{ IMAGE_ARG, 0, HW_BIND_READ, 0, 64 },
		{ IMAGE_RESULT, 0, HW_BIND_READ | HW_BIND_WRITE, 0, 64 },
		{ IMAGE_MAILBOX, 0, HW_BIND_READ | HW_BIND_WRITE, 0, 256 },
		{ IMAGE_PEER, 0, HW_BIND_WRITE | HW_BIND_PEER, 0, 256 },
		{ IMAGE_PEER_DATA, 0, HW_BIND_WRITE | HW_BIND_PEER, 1, 256 },
	};
	static const struct {
		unsigned src, dst;
		int64_t at, then;	/* where it is put, and what is read afterwards */
		const char *says;
	} cases[] = {
		{ 2, 6, 64, 64, NULL },
		{ 2, 6, 64, 128, "nothing has written" },
		{ 2, 5, 64, 64, "nothing has written" },
		{ 1, 6, 64, 64, NULL },
		{ 1, 6, 32, 32, "peers may have written over" },
		{ 1, 6, 0, 0, "peers may have written over" },
		{ 2, 6, 224, 0, "goes outside of binding 6" },
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct isa_copy copy = { .insn = { ISA_COPY, 0, sizeof(copy) }, .rank = 1,
			.elem_bytes = 8, .dim = { 8, 1, 1, 1, 1, 1, 1, 1 },
			.src = { .stride = { 8 } }, .dst = { .stride = { 8 } } };
		struct {
			struct isa_copy first, put, last;
			struct isa_scalar halt;
		} text = { copy, copy, copy, { .insn = { ISA_HALT, 0, sizeof(text.halt) } } };
		struct image im = { .text = &text, .text_bytes = sizeof(text), .n_slots = 1,
				    .bindings = bindings, .n_bindings = 7 };
		struct tc_verdict why;
		int got;

		text.first.src.binding = 2;
		text.first.dst.binding = 1;
		text.put.insn.op = ISA_RPUT;
		text.put.src.binding = (uint16_t)cases[i].src;
		text.put.dst.binding = (uint16_t)cases[i].dst;
		text.put.dst.offset = cases[i].at;
		text.last.src.binding = 1;
		text.last.src.offset = cases[i].then;
		text.last.dst.binding = 3;
		got = tc_verify(&im, NULL, &why);
		if (got != (cases[i].says ? ERR_INTERNAL : 0) ||
		    (got && !strstr(why.why, cases[i].says)))
			fail_msg("program %u: %d, %s", i, got, got ? why.why : "");
	}
}

/* What a VEC reads of peers, they read here in the same places. */
static void what_is_read_from_peers_is_there(void **state)
{
	static const struct image_binding bindings[] = {
		{ IMAGE_CONSTANTS, 0, HW_BIND_READ, 0, 64 },
		{ IMAGE_TEMP, 0, HW_BIND_READ | HW_BIND_WRITE, 0, 256 },
		{ IMAGE_ARG, 0, HW_BIND_READ, 0, 64 },
		{ IMAGE_RESULT, 0, HW_BIND_READ | HW_BIND_WRITE, 0, 64 },
		{ IMAGE_MAILBOX, 0, HW_BIND_READ | HW_BIND_WRITE, 0, 256 },
		{ IMAGE_PEER, 0, HW_BIND_WRITE | HW_BIND_PEER, 0, 256 },
		{ IMAGE_PEER_DATA, 0, HW_BIND_READ | HW_BIND_PEER, 1, 256 },
		{ IMAGE_PEER_DATA, 0, HW_BIND_READ | HW_BIND_PEER, 2, 64 },
		{ IMAGE_PEER_DATA, 0, HW_BIND_WRITE | HW_BIND_PEER, 1, 256 },
	};
	static const struct {
		unsigned op, src, dst;
		int64_t from, to;
		const char *says;
	} cases[] = {
		{ ISA_VEC, 6, 3, 64, 0, NULL },
		{ ISA_VEC, 7, 3, 0, 0, NULL },
		{ ISA_VEC, 6, 1, 64, 128, NULL },
		{ ISA_VEC, 6, 3, 72, 0, "nothing has written" },
		{ ISA_VEC, 6, 3, 0, 0, "nothing has written" },
		{ ISA_VEC, 6, 1, 64, 64, "over an input that is not read point by point" },
		{ ISA_VEC, 6, 1, 64, 120, "over an input otherwise than element for element" },
		{ ISA_VEC, 6, 3, 200, 0, "goes outside of binding 6" },
		{ ISA_VEC, 8, 3, 64, 0, "reads binding 8, which is not declared so" },
		{ ISA_VEC, 2, 8, 0, 64, "VEC alone reads from them" },
		{ ISA_COPY, 6, 3, 64, 0, "VEC alone reads from them" },
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct isa_copy copy = { .insn = { ISA_COPY, 0, sizeof(copy) }, .rank = 1,
			.elem_bytes = 8, .dim = { 8, 1, 1, 1, 1, 1, 1, 1 },
			.src = { .stride = { 8 } }, .dst = { .stride = { 8 } } };
		struct {
			struct isa_copy first;
			struct isa_tensor vec;
			struct isa_operand op[2];
			struct isa_copy last;
			struct isa_scalar halt;
		} text = { copy, { .insn = { ISA_VEC, 0, sizeof(text.vec) + sizeof(text.op) },
				   .body = { .rank = 1, .n_in = 1, .n_out = 1,
					     .dim = { 8, 1, 1, 1, 1, 1, 1, 1 } } },
			   { { .elem = ELEM_U64, .stride = { 8 } },
			     { .elem = ELEM_U64, .stride = { 8 } } }, copy,
			   { .insn = { ISA_HALT, 0, sizeof(text.halt) } } };
		struct image im = { .text = &text, .text_bytes = sizeof(text), .n_slots = 1,
				    .bindings = bindings, .n_bindings = 9 };
		struct tc_verdict why;
		int got;

		text.first.src.binding = 2;
		text.first.dst.binding = 1;
		text.first.dst.offset = 64;
		text.op[0].binding = (uint16_t)cases[i].src;
		text.op[0].offset = cases[i].from;
		text.op[1].binding = (uint16_t)cases[i].dst;
		text.op[1].offset = cases[i].to;
		text.last.src.binding = 2;
		text.last.dst.binding = 3;
		if (cases[i].op == ISA_COPY) {
			text.last.src.binding = (uint16_t)cases[i].src;
			text.last.src.offset = cases[i].from;
			text.op[0].binding = 2;
			text.op[0].offset = 0;
		}
		got = tc_verify(&im, NULL, &why);
		if (got != (cases[i].says ? ERR_INTERNAL : 0) ||
		    (got && !strstr(why.why, cases[i].says)))
			fail_msg("program %u: %d, %s", i, got, got ? why.why : "");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_goes_to_peers_data_comes_from_peers),
		cmocka_unit_test(what_is_read_from_peers_is_there),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
