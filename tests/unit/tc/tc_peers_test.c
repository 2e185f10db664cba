/* SPDX-License-Identifier: Apache-2.0 */
/* The check of code that writes to peers' data. */
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_goes_to_peers_data_comes_from_peers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
