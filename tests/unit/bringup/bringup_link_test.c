/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs that meet over a link, with a link, a neighbour or an instruction that is wrong. A
 * device that does one instruction wrong is the model with each program changed on its way there.
 */
#include "tests/unit/bringup/bringup_test.h"

#include "hal/hw/image.h"

int __real_hal_exe_load(struct hal_device *dev, const void *image, size_t bytes,
			struct hal_exe **out, struct err *err);
int __wrap_hal_exe_load(struct hal_device *dev, const void *image, size_t bytes,
			struct hal_exe **out, struct err *err);

/* What is done wrong, to the nth instruction of this kind of those that are loaded. */
enum fault {
	NONE, SHORT, FROM_BESIDE, TO_BESIDE, TURNED, NOT_SENT, ADDS_MORE, MAX_ADDS, NO_SIGNAL,
	READS_NOTHING, WAITS_FOR_NOTHING, CUT, DIES,
};
static struct { enum fault fault; unsigned nth; } wrong;

static struct t_step t;

/* ---- a device that is wrong ---- */

static void spoil_copy(struct isa_copy *k)
{
	int64_t step = k->src.stride[0];

	switch (wrong.fault) {
	case SHORT: k->dim[1]--; break;
	case FROM_BESIDE: k->src.offset += k->src.offset ? -k->elem_bytes : k->elem_bytes; break;
	case TO_BESIDE: k->dst.offset -= k->elem_bytes; break;
	case TURNED:
		k->src.stride[0] = k->src.stride[1];
		k->src.stride[1] = step;
		break;
	case NOT_SENT: k->dim[0] = 0; break;
	default: fail();
	}
}

static void spoil_scalar(struct isa_scalar *s)
{
	switch (wrong.fault) {
	case ADDS_MORE: s->imm++; break;	/* the LI before it */
	case MAX_ADDS: s->fn = ISA_ALU_ADD; break;
	case NO_SIGNAL: s->insn.op = ISA_LI; break;
	case READS_NOTHING: s->rd = 0; break;
	case WAITS_FOR_NOTHING: s->insn.op = ISA_LI; s->imm = 99; break;
	default: fail();
	}
}

/* Whether the fault is one of this instruction; it is followed by `next`. */
static bool is_for(const struct isa_insn *insn, const struct isa_insn *next)
{
	const struct isa_scalar *s = (const void *)insn, *then = (const void *)next;

	switch (wrong.fault) {
	case NONE: case CUT: case DIES: return false;
	case SHORT: case FROM_BESIDE: case TO_BESIDE: case TURNED: case NOT_SENT:
		return insn->op == ISA_RPUT;
	case ADDS_MORE:
		return insn->op == ISA_LI && s->rd == 2 && next->op == ISA_RSIG &&
			then->fn == ISA_ALU_ADD;
	case MAX_ADDS: return insn->op == ISA_RSIG && s->fn == ISA_ALU_MAX;
	case NO_SIGNAL: return insn->op == ISA_RSIG;
	case READS_NOTHING: case WAITS_FOR_NOTHING: return insn->op == ISA_RWAIT;
	}
	return false;
}

int __wrap_hal_exe_load(struct hal_device *dev, const void *image, size_t bytes,
			struct hal_exe **out, struct err *err)
{
	struct image *im;
	void *other;
	char *text;
	int code;

	assert_int_equal(image_parse(image, bytes, &im, err), 0);
	text = malloc(im->text_bytes);
	assert_non_null(text);
	memcpy(text, im->text, im->text_bytes);
	for (size_t at = 0; at < im->text_bytes;) {
		struct isa_insn *insn = (struct isa_insn *)(text + at);

		at += insn->bytes;
		if (at == im->text_bytes || !is_for(insn, (void *)(text + at)) || wrong.nth--)
			continue;
		if (insn->op == ISA_RPUT)
			spoil_copy((void *)insn);
		else
			spoil_scalar((void *)insn);
		wrong.fault = NONE;
	}
	im->text = text;
	assert_int_equal(image_write(im, &other, &bytes, err), 0);
	code = __real_hal_exe_load(dev, other, bytes, out, err);
	if ((wrong.fault == CUT || wrong.fault == DIES) && !wrong.nth--) {
		assert_int_equal(hal_device_inject(dev, wrong.fault == CUT ? HW_INJECT_LINK_DOWN :
						   HW_INJECT_FATAL, 0, err), 0);
		wrong.fault = NONE;
	}
	free(other);
	free(text);
	image_free(im);
	return code;
}

/* ---- the tests ---- */

static int begin(void **state)
{
	(void)state;
	setenv("TESSERA_CRASH_DUMPS", "0", 1);
	memset(&wrong, 0, sizeof(wrong));
	t_begin(&t, "sim:devices=2,hbm=64M,lanes=1");
	assert_int_equal(bringup_need_device(&t.b), BRINGUP_PASS);
	return 0;
}

static int end(void **state)
{
	(void)state;
	t_end(&t);
	return 0;
}

static void must_fail(const char *says)
{
	if (t_step(&t, step_link_programs) != BRINGUP_FAIL || !strstr(t.row.text, says))
		fail_msg("wanted \"%s\": %s", says, t.row.text);
}

static void must_pass(void)
{
	if (t_step(&t, step_link_programs) != BRINGUP_PASS)
		fail_msg("%s", t.row.text);
}

static void each_instruction_that_is_wrong_is_found(void **state)
{
	static const struct { enum fault fault; unsigned nth; const char *says; } faults[] = {
		/* of all; of the last byte; of 1 to 65537; of wide ones in a row, and turned */
		{ SHORT, 0, "rput to chip 1: byte 262156 of its mailbox" },
		{ SHORT, 1, "rput to chip 1: byte 262156 of its mailbox" },
		{ SHORT, 2, "rput to chip 1: byte 1 of its mailbox" },
		{ SHORT, 16, "1 x 65537 elements of 1 bytes" },
		{ SHORT, 23, "1 x 33 elements of 16 bytes" },
		{ FROM_BESIDE, 1, "rput to chip 1: byte 262156" },
		{ FROM_BESIDE, 2, "rput to chip 1: byte 1 " },
		{ FROM_BESIDE, 17, "33 elements of 2 bytes" },
		{ TO_BESIDE, 1, "rput to chip 1: byte 262155 of its mailbox, which none writes" },
		{ TO_BESIDE, 2, "rput to chip 1: byte 0 of its mailbox, which none writes" },
		{ TO_BESIDE, 23, "rput to chip 1: byte " },
		{ TURNED, 18, "7 x 9 elements of 2 bytes" },
		{ TURNED, 24, "7 x 9 elements of 16 bytes" },
		{ NOT_SENT, 0, "rput to chip 1: byte 0 " },
		{ NOT_SENT, 1, "rput to chip 1: byte 262156 " },
		{ NOT_SENT, 24, "7 x 9 elements of 16 bytes" },
		/* what counts pieces, then those that are looked at each, then the answer */
		{ ADDS_MORE, 0, "rsig.add: the u64 at offset 0 of chip 1's mailbox is 0x2" },
		{ ADDS_MORE, 1, "rsig.add: the u64 at offset 16 of chip 1's mailbox" },
		{ ADDS_MORE, 2, "rsig.add: the u64 at offset 24 of chip 1's mailbox" },
		{ ADDS_MORE, 3, "rsig.add: the u64 at offset 0 of this chip's mailbox is 0x2" },
		{ MAX_ADDS, 0, "rsig.max: the u64 at offset 32 of chip 1's mailbox" },
		{ MAX_ADDS, 1, "rsig.max: the u64 at offset 40 of chip 1's mailbox" },
		{ NO_SIGNAL, 1, "rsig.add: the u64 at offset 16 of chip 1's mailbox" },
		{ READS_NOTHING, 0, "rwait: the u64 at offset 8 of this chip's mailbox" },
		{ READS_NOTHING, 1, "rwait: the u64 at offset 8 of chip 1's mailbox" },
		{ WAITS_FOR_NOTHING, 0, "rwait: the u64 at offset 8 of this chip's mailbox" },
		{ WAITS_FOR_NOTHING, 1, "rwait: the u64 at offset 8 of chip 1's mailbox" },
	};

	(void)state;
	must_pass();
	for (unsigned i = 0; i < COUNT(faults); i++) {
		wrong.fault = faults[i].fault;
		wrong.nth = faults[i].nth;
		must_fail(faults[i].says);
		assert_int_equal(wrong.fault, NONE);
	}
	must_pass();
}

/* The neighbour, which steps open, too. */
static struct hal_device *open_neighbour(void)
{
	struct hal_device *dev;

	assert_int_equal(hal_device_open(t.b.hal, 1, &dev, &t.b.err), 0);
	return dev;
}

/* Opening a neighbour resets it, which brings links up: what fails does so in the middle. This
 * chip's program is loaded first, then the neighbour's. */
static void a_link_that_goes_down_is_found(void **state)
{
	(void)state;
	for (unsigned end = 0; end < 2; end++) {
		wrong.fault = CUT;
		wrong.nth = end;
		must_fail("rput, rsig and rwait with chip 1: ");
		assert_non_null(strstr(t.row.text, "(LINK)"));
		must_pass();
	}
}

static void a_neighbour_that_dies_is_found(void **state)
{
	(void)state;
	wrong.fault = DIES;
	wrong.nth = 1;
	must_fail("rput, rsig and rwait with chip 1: ");
	assert_non_null(strstr(t.row.text, "sim:1"));
	must_pass();
}

static void a_stuck_bit_of_a_neighbour_is_found(void **state)
{
	struct hal_device *other = open_neighbour();

	(void)state;
	for (uint64_t i = 0; i < 64; i++)
		assert_int_equal(hal_device_inject(other, HW_INJECT_CELL,
			(uint64_t)HW_CELL_STUCK_1 << 56 | ((8 + i) * 8192 + 30), &t.b.err), 0);
	hal_device_close(other);
	must_fail("instead of 0x");
}

static void a_device_without_links_is_skipped(void **state)
{
	(void)state;
	t_end(&t);
	t_begin(&t, "sim:hbm=64M,lanes=1");
	assert_int_equal(t_step(&t, step_link_programs), BRINGUP_SKIP);
	assert_string_equal(t.row.text, "the device has no links");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(each_instruction_that_is_wrong_is_found),
		TEST(a_link_that_goes_down_is_found),
		TEST(a_neighbour_that_dies_is_found),
		TEST(a_stuck_bit_of_a_neighbour_is_found),
		TEST(a_device_without_links_is_skipped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
