/* SPDX-License-Identifier: Apache-2.0 */
/* Printed instructions: every opcode, vector operation and scalar function by its name
 * and operands, and bytes that are no instructions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "hal/hw/isa_print.h"


static struct isa_operand operand(unsigned elem, unsigned binding, int64_t offset)
{
	return (struct isa_operand){ .elem = (uint8_t)elem, .binding = (uint16_t)binding,
				     .offset = offset, .stride = { 32, 4 } };
}

/* Prints one instruction that is all of `bytes`. */
static void expect(const void *p, size_t bytes, const char *text)
{
	struct str s = { 0 };

	assert_int_equal(isa_print_insn(p, bytes, 0x100, &s), bytes);
	assert_false(s.failed);
	assert_string_equal(s.text, text);
	str_free(&s);
}

static void scalar(struct isa_scalar s, unsigned op, const char *text)
{
	s.insn.op = (uint16_t)op;
	s.insn.bytes = sizeof(s);
	expect(&s, sizeof(s), text);
}

static void scalar_instructions_name_their_operands(void **state)
{
	struct isa_scalar s = { .rd = 1, .ra = 2, .rb = 3, .imm = -16, .binding = 7,
				.elem = ELEM_U16, .fn = ISA_ALU_SAR };

	(void)state;
	scalar(s, ISA_HALT, "halt");
	scalar(s, ISA_RET, "ret");
	scalar(s, ISA_LI, "li        r1, -16");
	scalar(s, ISA_ALU, "alu.sar   r1, r2, r3");
	scalar(s, ISA_ALUI, "alui.sar  r1, r2, -16");
	scalar(s, ISA_LD, "ld.ui16   r1, b7-16[r2]");
	scalar(s, ISA_ST, "st.ui16   b7-16[r2], r3");
	scalar(s, ISA_JMP, "jmp       000000f0");
	scalar(s, ISA_CALL, "call      000000f0");
	scalar(s, ISA_BZ, "bz        r2, 000000f0");
	scalar(s, ISA_BNZ, "bnz       r2, 000000f0");
	scalar(s, ISA_TRAP, "trap      -16");
	scalar(s, ISA_RWAIT, "rwait     r1, b7-16[r2], r3 ! type 7");
	s.elem = ELEM_U64;
	scalar(s, ISA_RWAIT, "rwait     r1, b7-16[r2], r3");
	scalar(s, ISA_RSIG, "rsig.sar  b7-16[r2], r3");
	s.fn = 200;
	s.rb = 64;
	scalar(s, ISA_ALU, "alu.!     r1, r2, r64 ! no function 200 ! registers end at r63");
	s = (struct isa_scalar){ .insn.flags = 5, .elem = 99 };
	scalar(s, ISA_LD, "ld.invalid r0, b0+0 ! flags 0x5");
}

static void every_function_of_the_scalar_unit_is_named(void **state)
{
	(void)state;
#define ALU(name, number, mnemonic, effect) { \
	struct isa_scalar s = { .fn = number, .rd = 9, .ra = 8, .rb = 7 }; \
	char want[64]; \
	snprintf(want, sizeof(want), "%-9s r9, r8, r7", "alu." mnemonic); \
	scalar(s, ISA_ALU, want); \
}
#include "hal/hw/alu.def"
#undef ALU
}

static void uop(struct isa_uop u, const char *text)
{
	struct str s = { 0 };

	isa_print_uop(&u, 200, &s);
	assert_string_equal(s.text, text);
	str_free(&s);
}

static void every_vector_operation_names_its_arguments(void **state)
{
	static const char *const args[] = { "", " v1", " v1, v2", " v1, v2, v3" };
	unsigned n = 0;

	(void)state;
#define UOP(name, number, mnemonic, n_args, types, result, effect) { \
	struct isa_uop u = { .op = number, .a = 1, .b = 2, .c = 3, .to = ELEM_C64, \
			     .elem = strchr(types, 'f') ? ELEM_F32 : \
				     strchr(types, 's') ? ELEM_S32 : ELEM_C64 }; \
	char want[128]; \
	snprintf(want, sizeof(want), "v200 = " mnemonic ".%s%s%s", elem_text(u.elem), \
		 #result[0] == 'T' ? ".complex<f32>" : "", args[n_args]); \
	struct str s = { 0 }; \
	isa_print_uop(&u, 200, &s); \
	assert_memory_equal(s.text, want, strlen(want)); \
	assert_null(strchr(s.text, '!')); \
	str_free(&s); \
	n++; \
}
#include "hal/hw/uop.def"
#undef UOP
	assert_true(n > 60);
}

static void immediates_show_their_value(void **state)
{
	(void)state;
	uop((struct isa_uop){ .op = UOP_IMM, .elem = ELEM_S8, .imm = 0xff },
	    "v200 = imm.i8 0xff (-1)");
	uop((struct isa_uop){ .op = UOP_IMM, .elem = ELEM_U64, .imm = UINT64_MAX },
	    "v200 = imm.ui64 0xffffffffffffffff (18446744073709551615)");
	uop((struct isa_uop){ .op = UOP_IMM, .elem = ELEM_F32, .imm = 0xbfc00000 },
	    "v200 = imm.f32 0xbfc00000 (-1.5)");
	uop((struct isa_uop){ .op = UOP_IMM, .elem = ELEM_F64, .imm = 0x7ff0000000000000 },
	    "v200 = imm.f64 0x7ff0000000000000 (inf)");
	uop((struct isa_uop){ .op = UOP_IOTA, .elem = ELEM_S32, .aux = 3 },
	    "v200 = iota.i32 i[3]");
	uop((struct isa_uop){ .op = UOP_SREG, .elem = ELEM_S32, .aux = 3 },
	    "v200 = sreg.i32 r3");
	uop((struct isa_uop){ .op = UOP_RDPREC, .elem = ELEM_F32, .aux = 5, .imm = 10 },
	    "v200 = rdprec.f32 v0, e5, m10");
	uop((struct isa_uop){ .op = UOP_SHL, .elem = ELEM_F32, .a = 4, .b = 5 },
	    "v200 = shl.f32 v4, v5 ! not of these types");
	uop((struct isa_uop){ .op = 0xff }, "v200 = ! no vector operation 0xff");
	uop((struct isa_uop){ .op = UOP_IMM, .elem = 0xee, .imm = 1 },
	    "v200 = imm.invalid 0x1 ! not of these types");
}

static void vec_shows_inputs_operations_and_outputs(void **state)
{
	struct {
		struct isa_tensor t;
		struct isa_operand in[2], out[2];
		struct isa_uop uop[2];
	} v = {
		.t = { .insn = { ISA_VEC, 0, sizeof(v) },
		       .body = { .rank = 2, .row_rank = 1, .n_in = 2, .n_out = 2, .n_uop = 2,
				 .dim = { 3, 8 } } },
		.in = { operand(ELEM_F32, 2, 64), operand(ELEM_BF16, 3, -8) },
		.out = { operand(ELEM_F32, 4, 0), operand(ELEM_F32, 5, 0) },
		.uop = { { .op = UOP_CVT, .elem = ELEM_BF16, .to = ELEM_F32, .a = 1 },
			 { .op = UOP_ADD, .elem = ELEM_F32, .a = 0, .b = 2 } },
	};

	(void)state;
	v.in[1].reg = 9;
	v.out[0].value = 3;
	v.out[1].value = 2;
	v.out[1].combine = ISA_COMBINE_MAX;
	v.out[1].flags = ISA_OPERAND_ACC;
	expect(&v, sizeof(v),
	       "vec       [3x8] row 1\n"
	       "            v0 = f32 b2+64 {32, 4}\n"
	       "            v1 = bf16 b3-8[r9] {32, 4}\n"
	       "            v2 = cvt.bf16.f32 v1\n"
	       "            v3 = add.f32 v0, v2\n"
	       "            f32 b4+0 {32, 4} = v3\n"
	       "            f32 b5+0 {32, 4} max += v2");
	v.t.insn.op = ISA_CHOL;
	v.t.reduce_dims = 2;
	v.t.body.n_uop = 3;
	v.out[1].combine = 99;
	v.out[1].flags = 0x80;
	expect(&v, sizeof(v),
	       "chol      [3x8] row 1 over i[1]\n"
	       "            v0 = f32 b2+64 {32, 4}\n"
	       "            v1 = bf16 b3-8[r9] {32, 4}\n"
	       "            v2 = cvt.bf16.f32 v1\n"
	       "            v3 = add.f32 v0, v2\n"
	       "            ! the instruction ends here\n"
	       "            f32 b4+0 {32, 4} = v3\n"
	       "            f32 b5+0 {32, 4} ! combine 99 = v2 ! flags 0x80 ! not built");
}

static void copy_gather_and_rng_name_their_places(void **state)
{
	struct isa_copy c = { .insn = { ISA_COPY, 0, sizeof(c) }, .rank = 2, .elem_bytes = 4,
			      .dim = { 2, 3 }, .src = operand(0, 1, 2), .dst = operand(0, 3, 4) };
	struct isa_gather g = { .insn = { ISA_GATHER, ISA_FLAG_SORTED, sizeof(g) }, .rank = 2,
				.n_batch = 1, .n_index = 1, .dim = { 2, 3 }, .index_stride = 8,
				.index = { { 10, 12, 0 } }, .src = operand(ELEM_F32, 1, 0),
				.idx = operand(ELEM_S64, 2, 0), .dst = operand(ELEM_F32, 3, 0) };
	struct isa_rng r = { .insn = { ISA_RNG, 0, sizeof(r) }, .algorithm = ISA_RNG_THREEFRY,
			     .state_words = 2, .n_words = 20, .state = operand(ELEM_U64, 1, 0),
			     .new_state = operand(ELEM_U64, 2, 0),
			     .out = operand(ELEM_U32, 3, 0) };

	(void)state;
	expect(&c, sizeof(c), "copy      [2x3] of 4 bytes\n"
	       "            src = b1+2 {32, 4}\n"
	       "            dst = b3+4 {32, 4}");
	expect(&g, sizeof(g), "gather.sorted [2x3] batch 1\n"
	       "            src = f32 b1+0 {32, 4}\n"
	       "            idx = i64 b2+0 {32} components 8 apart\n"
	       "            idx[0]: 0 to 10, step 12\n"
	       "            dst = f32 b3+0 {32, 4}");
	g.insn.flags = ISA_FLAG_FILL;
	g.index[0].wrap = 11;
	g.fill[0] = 0x7fc00000;
	expect(&g, sizeof(g), "gather.fill [2x3] batch 1\n"
	       "            src = f32 b1+0 {32, 4}\n"
	       "            idx = i64 b2+0 {32} components 8 apart\n"
	       "            idx[0]: 0 to 10, step 12, below 0 +11\n"
	       "            dst = f32 b3+0 {32, 4}\n"
	       "            outside: 0x0000000000000000 000000007fc00000");
	expect(&r, sizeof(r), "rng       threefry, state of 2 words, gives 20 words\n"
	       "            state = ui64 b1+0\n"
	       "            new_state = ui64 b2+0\n"
	       "            out = ui32 b3+0");
	r.algorithm = 7;
	r.insn.flags = 8;
	expect(&r, sizeof(r), "rng ! flags 0x8 ! algorithm 7, state of 2 words, gives 20 words\n"
	       "            state = ui64 b1+0\n"
	       "            new_state = ui64 b2+0\n"
	       "            out = ui32 b3+0");
}

static void transforms_name_their_axis_and_both_places(void **state)
{
	struct isa_fft f = { .insn = { ISA_FFT, 0, sizeof(f) }, .rank = 2, .axis = 1, .scale = 1,
			     .dim = { 3, 8 }, .src = operand(ELEM_F32, 1, 0),
			     .dst = operand(ELEM_C64, 2, 64) };

	(void)state;
	expect(&f, sizeof(f), "fft       [3x8] along i[1], scale 1\n"
	       "            src = f32 b1+0 {32, 4}\n"
	       "            dst = complex<f32> b2+64 {32, 4}");
	f.insn.flags = ISA_FLAG_INVERSE;
	f.src.elem = f.dst.elem = ELEM_C128;
	f.dst.reg = 7;
	f.axis = 0;
	f.scale = 1.0 / 3;
	expect(&f, sizeof(f), "fft.inverse [3x8] along i[0], scale 0.33333333333333331\n"
	       "            src = complex<f64> b1+0 {32, 4}\n"
	       "            dst = complex<f64> b2+64[r7] {32, 4}");
	f.insn.flags = 6;
	f.rank = 9;
	f.axis = 200;
	expect(&f, sizeof(f), "fft ! flags 0x6 [3x8x0x0x0x0x0x0] ! rank 9 along i[200], "
	       "scale 0.33333333333333331\n"
	       "            src = complex<f64> b1+0 {32, 4, 0, 0, 0, 0, 0, 0} ! rank 9\n"
	       "            dst = complex<f64> b2+64[r7] {32, 4, 0, 0, 0, 0, 0, 0} ! rank 9");
}

static void scatter_and_sort_name_the_values_of_their_family(void **state)
{
	struct {
		struct isa_scatter s;
		struct isa_operand upd, dst;
		struct isa_uop uop;
	} s = {
		.s = { .insn = { ISA_SCATTER, ISA_FLAG_UNIQUE, sizeof(s) }, .n_index = 1,
		       .n_batch = 1, .index = { { 4, 4 } }, .idx = operand(ELEM_S32, 2, 0),
		       .body = { .rank = 1, .n_in = 1, .n_out = 1, .n_uop = 1, .dim = { 5 } } },
		.upd = operand(ELEM_F32, 3, 0), .dst = operand(ELEM_F32, 4, 0),
		.uop = { .op = UOP_MUL, .elem = ELEM_F32, .a = 0, .b = 1 },
	};
	struct {
		struct isa_sort s;
		struct isa_operand in, out;
		struct isa_uop uop;
	} t = {
		.s = { .insn = { ISA_SORT, ISA_FLAG_STABLE, sizeof(t) }, .first = 2,
		       .body = { .rank = 1, .n_in = 1, .n_out = 1, .n_uop = 1, .dim = { 5 } } },
		.in = operand(ELEM_F32, 3, 0), .out = operand(ELEM_F32, 4, 0),
		.uop = { .op = UOP_LT, .elem = ELEM_F32, .a = 0, .b = 1 },
	};

	(void)state;
	s.dst.value = 2;
	expect(&s, sizeof(s), "scatter.unique [5] batch 1\n"
	       "            idx = i32 b2+0 {32} components 0 apart\n"
	       "            idx[0]: 0 to 4, step 4\n"
	       "            v0 = current element 0\n"
	       "            v1 = f32 b3+0 {32}\n"
	       "            v2 = mul.f32 v0, v1\n"
	       "            f32 b4+0 {32} = v2");
	expect(&t, sizeof(t), "sort.stable [5] along i[0], first if v2\n"
	       "            v0, v1 = two elements of in0\n"
	       "            in0 = f32 b3+0 {32}\n"
	       "            v2 = lt.f32 v0, v1\n"
	       "            f32 b4+0 {32} = sorted in0");
}

static void products_name_both_sides_and_their_sum(void **state)
{
	struct {
		struct isa_mm m;
		struct isa_operand out;
	} m = {
		.m = { .insn = { ISA_MM, 0, sizeof(m) }, .acc = ELEM_F32, .k = 7,
		       .precision = ISA_PRECISION_BF16, .a_k_stride = 4, .b_k_stride = 128,
		       .a = operand(ELEM_F32, 1, 0), .b = operand(ELEM_F32, 2, 0),
		       .body = { .rank = 2, .n_out = 1, .dim = { 8, 9 } } },
		.out = operand(ELEM_F32, 3, 0),
	};
	struct {
		struct isa_conv v;
		struct isa_operand out;
	} v = {
		.v = { .insn = { ISA_CONV, 0, sizeof(v) }, .acc = ELEM_F32, .n_spatial = 1,
		       .reversed = 1, .in_features = 3, .feature_groups = 1,
		       .batch_groups = 2, .in_size = { 9 }, .kernel = { 2 },
		       .window_stride = { 1 }, .pad_low = { -1 }, .lhs_dilation = { 1 },
		       .rhs_dilation = { 2 }, .lhs = operand(ELEM_F32, 1, 0),
		       .rhs = operand(ELEM_F32, 2, 0),
		       .body = { .rank = 3, .n_out = 1, .dim = { 1, 4, 7 } } },
		.out = operand(ELEM_F32, 3, 0),
	};

	(void)state;
	expect(&m, sizeof(m), "mm        [8x9] k 7 acc f32 precision bf16\n"
	       "            a = f32 b1+0 {32, 4} k 4\n"
	       "            b = f32 b2+0 {32, 4} k 128\n"
	       "            v0 = sum of a * b\n"
	       "            f32 b3+0 {32, 4} = v0");
	expect(&v, sizeof(v),
	       "conv      [1x4x7] features 3 feature_groups 1 batch_groups 2 acc f32\n"
	       "            in [9] kernel [2] stride [1] pad [-1] lhs_dilation [1] "
	       "rhs_dilation [2] reversed 0x1\n"
	       "            lhs = f32 b1+0 {32, 4, 0}\n"
	       "            rhs = f32 b2+0 {32, 4, 0}\n"
	       "            v0 = convolution of lhs and rhs\n"
	       "            f32 b3+0 {32, 4, 0} = v0");
}

static void every_opcode_is_named_even_without_its_parts(void **state)
{
	unsigned n = 0;

	(void)state;
#define INSN(name, number, mnemonic, layout, status, effect) { \
	struct isa_insn i = { number, 0, sizeof(i) }; \
	struct str s = { 0 }; \
	assert_int_equal(isa_print_insn(&i, sizeof(i), 0, &s), sizeof(i)); \
	assert_non_null(strstr(s.text, "! the instruction ends here")); \
	if (sizeof(struct layout) > sizeof(struct isa_scalar)) \
		assert_memory_equal(s.text, mnemonic, strlen(mnemonic)); \
	str_free(&s); \
	struct layout whole = { .insn = { number, 0, sizeof(whole) } }; \
	assert_int_equal(isa_print_insn(&whole, sizeof(whole), 0, &s), sizeof(whole)); \
	assert_memory_equal(s.text, mnemonic, strlen(mnemonic)); \
	assert_null(strstr(s.text, "ends here")); \
	str_free(&s); \
	n++; \
}
#include "hal/hw/isa.def"
#undef INSN
	assert_true(n > 20);
}

static void bytes_that_are_no_instruction_are_shown_as_bytes(void **state)
{
	static const struct { struct isa_insn insn; const char *text; } wrong[] = {
		{ { 0x99, 0, 8 }, ".bytes    9900000008000000 ! no such opcode" },
		{ { 0, 0, 8 }, ".bytes    0000000008000000 ! no such opcode" },
		{ { 0x101, 0, 8 }, ".bytes    0101000008000000 ! no such opcode" },
		{ { ISA_LI, 0, 0 }, ".bytes    0200000000000000 ! an instruction of a length "
		  "that none has" },
		{ { ISA_LI, 0, 12 }, ".bytes    020000000c000000 ! an instruction of a length "
		  "that none has" },
		{ { ISA_LI, 0, 24 }, ".bytes    0200000018000000 ! an instruction that passes "
		  "the end" },
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		expect(&wrong[i].insn, 8, wrong[i].text);
	expect("\x02\x00\x00", 3, ".bytes    020000 ! shorter than an instruction's head");
	assert_int_equal(isa_print_insn("", 0, 0, &(struct str){ 0 }), 0);
}

/* A page with nothing behind it: a byte read past the code is a crash. */
static uint8_t *guarded(size_t *page)
{
	uint8_t *p;

	*page = (size_t)sysconf(_SC_PAGESIZE);
	p = mmap(NULL, 2 * *page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(p != MAP_FAILED);
	assert_int_equal(mprotect(p + *page, *page, PROT_NONE), 0);
	return p;
}

static unsigned next_random(unsigned *s)
{
	*s = *s * 1664525u + 1013904223u;
	return *s >> 8;
}

/* Random bytes behind heads that are believable: counts, lengths and types are not. */
static void no_bytes_lead_past_their_end(void **state)
{
	static const uint16_t ops[] = {
#define INSN(name, number, mnemonic, layout, status, effect) number,
#include "hal/hw/isa.def"
#undef INSN
	};
	unsigned seed = 7;
	size_t page;
	uint8_t *p = guarded(&page);

	(void)state;
	for (unsigned round = 0; round < 4000; round++) {
		size_t n = 1 + next_random(&seed) % 2000, at = 0;
		uint8_t *code = p + page - n;
		struct isa_insn head = { ops[round % (sizeof(ops) / sizeof(*ops))], 0,
					 (uint32_t)(n & ~(size_t)7) };
		struct str s = { 0 };

		for (size_t i = 0; i < n; i++)
			code[i] = (uint8_t)(next_random(&seed) >> (round % 3 ? 0 : 5));
		if (n >= sizeof(head))
			memcpy(code, &head, sizeof(head));
		while (at < n) {
			size_t step = isa_print_insn(code + at, n - at, at, &s);

			assert_in_range(step, 1, n - at);
			at += step;
		}
		str_free(&s);
		isa_print_program(code, n, NULL, NULL, &s);
		assert_false(s.failed);
		assert_int_equal(s.text[s.len - 1], '\n');
		str_free(&s);
	}
	munmap(p, 2 * page);
}

static void note_offset(void *arg, uint64_t offset, struct str *out)
{
	(void)arg;
	str_printf(out, " ; at %u", (unsigned)offset);
}

static void a_program_is_printed_with_offsets_and_notes(void **state)
{
	struct {
		struct isa_scalar li;
		struct isa_copy copy;
		struct isa_insn wrong;
		struct isa_scalar halt;
	} code = {
		.li = { .insn = { ISA_LI, 0, sizeof(code.li) }, .rd = 4, .imm = 5 },
		.copy = { .insn = { ISA_COPY, 0, sizeof(code.copy) }, .elem_bytes = 1 },
		.halt = { .insn = { ISA_HALT, 0, sizeof(code.halt) } },
	};
	struct str s = { 0 };

	(void)state;
	isa_print_program(&code, sizeof(code), note_offset, NULL, &s);
	assert_string_equal(s.text,
		"00000000  li        r4, 5 ; at 0\n"
		"00000018  copy      [] of 1 bytes ; at 24\n"
		"            src = b0+0\n"
		"            dst = b0+0\n"
		"00000108  .bytes    0000000000000000 ! no such opcode ; at 264\n"
		"00000110  halt ; at 272\n");
	str_free(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(scalar_instructions_name_their_operands),
		cmocka_unit_test(every_function_of_the_scalar_unit_is_named),
		cmocka_unit_test(every_vector_operation_names_its_arguments),
		cmocka_unit_test(immediates_show_their_value),
		cmocka_unit_test(vec_shows_inputs_operations_and_outputs),
		cmocka_unit_test(copy_gather_and_rng_name_their_places),
		cmocka_unit_test(transforms_name_their_axis_and_both_places),
		cmocka_unit_test(scatter_and_sort_name_the_values_of_their_family),
		cmocka_unit_test(products_name_both_sides_and_their_sum),
		cmocka_unit_test(every_opcode_is_named_even_without_its_parts),
		cmocka_unit_test(bytes_that_are_no_instruction_are_shown_as_bytes),
		cmocka_unit_test(no_bytes_lead_past_their_end),
		cmocka_unit_test(a_program_is_printed_with_offsets_and_notes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
