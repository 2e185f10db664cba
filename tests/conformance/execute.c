/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Executables: loading, refusing, running. Float programs compute on small whole numbers,
 * so that every order of summation gives the same bytes.
 */
#include "tests/conformance/conf.h"

#define MAIN(args) "module() {sym_name = \"checked\"} () {\n" \
	"  func() {sym_name = \"main\"} (" args ") {\n"
#define END "  }\n}\n"

/* ---- programs that the compiler makes ---- */

static float *whole_floats(struct conf *c, size_t n, uint64_t seed)
{
	float *p = conf_room(c, n * sizeof(*p));

	for (size_t i = 0; i < n; i++)
		p[i] = (float)((int)(conf_random(&seed) % 17) - 8);
	return p;
}

static void *whole_bf16(struct conf *c, size_t n, uint64_t seed)
{
	float *x = whole_floats(c, n, seed);
	uint16_t *p = conf_room(c, n * sizeof(*p));

	for (size_t i = 0; i < n; i++) {
		uint32_t bits;

		memcpy(&bits, &x[i], 4);
		p[i] = (uint16_t)(bits >> 16);
	}
	free(x);
	return p;
}

static void run_two(struct conf *c, const char *text, void *a, size_t a_bytes, void *b,
		    size_t b_bytes)
{
	const void *args[] = { a, b };
	size_t bytes[] = { a_bytes, b_bytes };

	conf_program(c, text, args, bytes, b ? 2 : 1);
	free(a);
	free(b);
}

void check_vector_program_on_integers(struct conf *c)
{
	static const char text[] = MAIN("%0: tensor<37x129xi32>, %1: tensor<37x129xi32>")
		"    %2 = multiply(%0, %1) : tensor<37x129xi32>\n"
		"    %3 = xor(%2, %0) : tensor<37x129xi32>\n"
		"    %4 = subtract(%3, %1) : tensor<37x129xi32>\n"
		"    %5 = maximum(%4, %0) : tensor<37x129xi32>\n"
		"    return(%5, %2)\n" END;
	size_t n = 37 * 129 * 4;

	run_two(c, text, conf_bytes(c, n, 30), n, conf_bytes(c, n, 31), n);
}

void check_vector_program_on_floats(struct conf *c)
{
	static const char text[] = MAIN("%0: tensor<100x33xf32>, %1: tensor<33xf32>")
		"    %2 = broadcast_in_dim(%1) {broadcast_dimensions = [1]} : tensor<100x33xf32>\n"
		"    %3 = multiply(%0, %2) : tensor<100x33xf32>\n"
		"    %4 = add(%3, %0) : tensor<100x33xf32>\n"
		"    %5 = negate(%4) : tensor<100x33xf32>\n"
		"    %6 = abs(%4) : tensor<100x33xf32>\n"
		"    %7 = compare(%5, %6) {compare_type = <FLOAT>, comparison_direction = <LT>} "
		": tensor<100x33xi1>\n"
		"    %8 = select(%7, %3, %6) : tensor<100x33xf32>\n"
		"    return(%8, %7)\n" END;

	run_two(c, text, whole_floats(c, 3300, 32), 3300 * 4, whole_floats(c, 33, 33), 33 * 4);
}

void check_conversions_between_types(struct conf *c)
{
	static const char text[] = MAIN("%0: tensor<1000xi8>, %1: tensor<1000xi32>")
		"    %2 = convert(%0) : tensor<1000xf32>\n"
		"    %3 = convert(%0) : tensor<1000xbf16>\n"
		"    %4 = convert(%1) : tensor<1000xi16>\n"
		"    %5 = convert(%1) : tensor<1000xi64>\n"
		"    %6 = convert(%1) : tensor<1000xf64>\n"
		"    %7 = convert(%0) : tensor<1000xi1>\n"
		"    return(%2, %3, %4, %5, %6, %7)\n" END;

	run_two(c, text, conf_bytes(c, 1000, 34), 1000, conf_bytes(c, 4000, 35), 4000);
}

void check_reductions(struct conf *c)
{
	static const char text[] = MAIN("%0: tensor<61x83xi32>, %1: tensor<i32>")
		"    %2 = reduce(%0, %1) {dimensions = [0]} : tensor<83xi32> "
		"(%10: tensor<i32>, %11: tensor<i32>) {\n"
		"      %12 = add(%10, %11) : tensor<i32>\n"
		"      return(%12)\n    }\n"
		"    %3 = reduce(%0, %1) {dimensions = [1]} : tensor<61xi32> "
		"(%20: tensor<i32>, %21: tensor<i32>) {\n"
		"      %22 = maximum(%20, %21) : tensor<i32>\n"
		"      return(%22)\n    }\n"
		"    %4 = reduce(%0, %1) {dimensions = [0, 1]} : tensor<i32> "
		"(%30: tensor<i32>, %31: tensor<i32>) {\n"
		"      %32 = add(%30, %31) : tensor<i32>\n"
		"      return(%32)\n    }\n"
		"    return(%2, %3, %4)\n" END;

	run_two(c, text, conf_bytes(c, 61 * 83 * 4, 36), 61 * 83 * 4, conf_room(c, 4), 4);
}

void check_copy_program_that_moves_elements(struct conf *c)
{
	static const char text[] = MAIN("%0: tensor<24x31xi32>, %1: tensor<24x31xi32>")
		"    %2 = transpose(%0) {permutation = [1, 0]} : tensor<31x24xi32>\n"
		"    %3 = reverse(%0) {dimensions = [0, 1]} : tensor<24x31xi32>\n"
		"    %4 = concatenate(%0, %1) {dimension = 0} : tensor<48x31xi32>\n"
		"    %5 = slice(%4) {limit_indices = [40, 30], start_indices = [3, 2], "
		"strides = [2, 3]} : tensor<19x10xi32>\n"
		"    %6 = reshape(%1) : tensor<31x24xi32>\n"
		"    return(%2, %3, %4, %5, %6)\n" END;
	size_t n = 24 * 31 * 4;

	run_two(c, text, conf_bytes(c, n, 37), n, conf_bytes(c, n, 38), n);
}

#define DOT(in, out) \
	MAIN("%0: tensor<70x90x" in ">, %1: tensor<90x50x" in ">") \
	"    %2 = dot_general(%0, %1) {lhs_batching_dimensions = [], " \
	"lhs_contracting_dimensions = [1], precision_config = [0, 0], " \
	"rhs_batching_dimensions = [], rhs_contracting_dimensions = [0]} : " \
	"tensor<70x50x" out ">\n    return(%2)\n" END

void check_matrix_program_on_f32(struct conf *c)
{
	run_two(c, DOT("f32", "f32"), whole_floats(c, 6300, 39), 6300 * 4,
		whole_floats(c, 4500, 40), 4500 * 4);
}

void check_matrix_program_on_bf16(struct conf *c)
{
	run_two(c, DOT("bf16", "f32"), whole_bf16(c, 6300, 41), 6300 * 2,
		whole_bf16(c, 4500, 42), 4500 * 2);
}

void check_matrix_program_on_s8(struct conf *c)
{
	run_two(c, DOT("i8", "i32"), conf_bytes(c, 6300, 43), 6300, conf_bytes(c, 4500, 44),
		4500);
}

void check_convolution_program(struct conf *c)
{
	static const char text[] = MAIN("%0: tensor<2x3x9x9xf32>, %1: tensor<4x3x3x3xf32>")
		"    %2 = convolution(%0, %1) {batch_group_count = 1, feature_group_count = 1, "
		"input_batch_dimension = 0, input_feature_dimension = 1, "
		"input_spatial_dimensions = [2, 3], kernel_input_feature_dimension = 1, "
		"kernel_output_feature_dimension = 0, kernel_spatial_dimensions = [2, 3], "
		"lhs_dilation = [1, 1], output_batch_dimension = 0, "
		"output_feature_dimension = 1, output_spatial_dimensions = [2, 3], "
		"padding = [1, 1, 1, 1], precision_config = [0, 0], rhs_dilation = [1, 1], "
		"window_reversal = [0, 0], window_strides = [2, 1]} : "
		"tensor<2x4x5x9xf32>\n    return(%2)\n" END;

	run_two(c, text, whole_floats(c, 486, 45), 486 * 4, whole_floats(c, 108, 46), 108 * 4);
}

void check_sort_program(struct conf *c)
{
	static const char text[] = MAIN("%0: tensor<50x77xi32>")
		"    %2 = sort(%0) {dimension = 1, is_stable = true} : tensor<50x77xi32> "
		"(%8: tensor<i32>, %9: tensor<i32>) {\n"
		"      %11 = compare(%8, %9) {compare_type = <SIGNED>, "
		"comparison_direction = <LT>} : tensor<i1>\n      return(%11)\n    }\n"
		"    return(%2)\n" END;

	run_two(c, text, conf_bytes(c, 50 * 77 * 4, 47), 50 * 77 * 4, NULL, 0);
}

void check_program_that_loops(struct conf *c)
{
	static const char text[] = MAIN("%2: tensor<i32>, %1: tensor<100xi32>")
		"    %4 = constant() {value = dense<0x00000000> : tensor<i32>} : tensor<i32>\n"
		"    %6 = constant() {value = dense<0x01000000> : tensor<i32>} : tensor<i32>\n"
		"    %10, %11 = while(%4, %1) : tensor<i32>, tensor<100xi32> "
		"(%12: tensor<i32>, %13: tensor<100xi32>) {\n"
		"      %15 = compare(%12, %2) {compare_type = <SIGNED>, "
		"comparison_direction = <LT>} : tensor<i1>\n      return(%15)\n"
		"    } (%17: tensor<i32>, %18: tensor<100xi32>) {\n"
		"      %20 = add(%17, %6) : tensor<i32>\n"
		"      %22 = broadcast_in_dim(%20) {broadcast_dimensions = []} : tensor<100xi32>\n"
		"      %24 = multiply(%18, %22) : tensor<100xi32>\n"
		"      %25 = add(%24, %18) : tensor<100xi32>\n"
		"      return(%20, %25)\n    }\n    return(%10, %11)\n" END;
	int32_t *n = conf_room(c, 4);

	*n = 57;
	run_two(c, text, n, 4, conf_bytes(c, 400, 48), 400);
}

void check_program_with_constants(struct conf *c)
{
	static const char text[] = MAIN("%0: tensor<4xi32>")
		"    %1 = constant() {value = dense<0x01020304050607080910111213141516> : "
		"tensor<4xi32>} : tensor<4xi32>\n"
		"    %2 = add(%0, %1) : tensor<4xi32>\n"
		"    return(%2, %1)\n" END;

	run_two(c, text, conf_bytes(c, 16, 49), 16, NULL, 0);
	OK(c, hal_device_reset(c->dev, &c->err));
	run_two(c, text, conf_bytes(c, 16, 50), 16, NULL, 0);
}

void check_program_that_updates_in_place(struct conf *c)
{
	static const char text[] = "module() {sym_name = \"checked\"} () {\n"
		"  func() {sym_name = \"main\"} (%0: tensor<1000xi32> {alias = 0}) {\n"
		"    %2 = add(%0, %0) : tensor<1000xi32>\n    return(%2)\n" END;

	run_two(c, text, conf_bytes(c, 4000, 51), 4000, NULL, 0);
}

void check_program_of_no_elements(struct conf *c)
{
	static const char text[] = MAIN("%0: tensor<5xi32>")
		"    %1 = slice(%0) {limit_indices = [2], start_indices = [2], strides = [1]} : "
		"tensor<0xi32>\n"
		"    %2 = concatenate(%1, %0) {dimension = 0} : tensor<5xi32>\n"
		"    return(%2)\n" END;

	run_two(c, text, conf_bytes(c, 20, 52), 20, NULL, 0);
}

/* ---- programs by hand ---- */

void check_scalar_program_counts_and_branches(struct conf *c)
{
	/* 64-bit words 0..15 get the squares of 0..15 by repeated addition. */
	static const struct isa_scalar code[] = {
		{ INSN(LI), .rd = 1, .imm = 0 },			/* 0: i */
		{ INSN(LI), .rd = 2, .imm = 0 },			/* 1: square */
		{ INSN(ALUI), .fn = ISA_ALU_SHL, .rd = 3, .ra = 1, .imm = 3 },
		{ INSN(ST), .ra = 3, .rb = 2, .elem = ELEM_S64, .binding = 2 },
		{ INSN(ALU), .fn = ISA_ALU_ADD, .rd = 2, .ra = 2, .rb = 1 },
		{ INSN(ALU), .fn = ISA_ALU_ADD, .rd = 2, .ra = 2, .rb = 1 },
		{ INSN(ALUI), .fn = ISA_ALU_ADD, .rd = 2, .ra = 2, .imm = 1 },
		{ INSN(ALUI), .fn = ISA_ALU_ADD, .rd = 1, .ra = 1, .imm = 1 },
		{ INSN(ALUI), .fn = ISA_ALU_LT, .rd = 4, .ra = 1, .imm = 16 },
		{ INSN(BNZ), .ra = 4, .imm = -7 * (int)sizeof(struct isa_scalar) },
		{ INSN(HALT) },
	};
	struct hal_exe *exe = conf_load(c, code, COUNT(code), 0, 128);
	struct hal_mem *out = conf_get(c, 128);
	uint64_t value = conf_run(c, exe, out, 0), got[16];

	OK(c, hal_queue_wait(c->compute, value, SOON, &c->err));
	OK(c, hal_copy_out(got, out, 0, 128, SOON, &c->err));
	for (uint64_t i = 0; i < 16; i++)
		EXPECT(c, got[i] == i * i);
	see(c, got, 128);
	hal_exe_unload(exe);
	hal_mem_free(out);
}

void check_narrow_loads_and_stores(struct conf *c)
{
	static const struct isa_scalar code[] = {
		{ INSN(LI), .rd = 1, .imm = -2 },
		{ INSN(ST), .rb = 1, .elem = ELEM_S8, .binding = 2, .imm = 0 },
		{ INSN(ST), .rb = 1, .elem = ELEM_U16, .binding = 2, .imm = 2 },
		{ INSN(ST), .rb = 1, .elem = ELEM_S32, .binding = 2, .imm = 4 },
		{ INSN(LD), .rd = 2, .elem = ELEM_S8, .binding = 2, .imm = 0 },
		{ INSN(LD), .rd = 3, .elem = ELEM_U8, .binding = 2, .imm = 0 },
		{ INSN(LD), .rd = 4, .elem = ELEM_U16, .binding = 2, .imm = 2 },
		{ INSN(LD), .rd = 5, .elem = ELEM_U32, .binding = 2, .imm = 4 },
		{ INSN(ST), .rb = 2, .elem = ELEM_S64, .binding = 2, .imm = 8 },
		{ INSN(ST), .rb = 3, .elem = ELEM_S64, .binding = 2, .imm = 16 },
		{ INSN(ST), .rb = 4, .elem = ELEM_S64, .binding = 2, .imm = 24 },
		{ INSN(ST), .rb = 5, .elem = ELEM_S64, .binding = 2, .imm = 32 },
		{ INSN(HALT) },
	};
	struct hal_exe *exe = conf_load(c, code, COUNT(code), IMAGE_STRAIGHT, 40);
	struct hal_mem *out = conf_get(c, 40);
	int64_t got[5];
	uint64_t value;

	OK(c, hal_queue_fill(c->dma, out, 0, 40, 0, &value, &c->err));
	OK(c, hal_queue_wait(c->dma, value, SOON, &c->err));
	value = conf_run(c, exe, out, 0);
	OK(c, hal_queue_wait(c->compute, value, SOON, &c->err));
	OK(c, hal_copy_out(got, out, 0, 40, SOON, &c->err));
	EXPECT(c, got[1] == -2 && got[2] == 0xfe && got[3] == 0xfffe && got[4] == 0xfffffffe);
	see(c, got, 40);
	hal_exe_unload(exe);
	hal_mem_free(out);
}

/* The same with the hint to run it at once and without. */
void check_hints_change_no_results(struct conf *c)
{
	static const struct isa_scalar code[] = {
		{ INSN(LD), .rd = 1, .elem = ELEM_S64, .binding = 2 },
		{ INSN(ALUI), .fn = ISA_ALU_MUL, .rd = 1, .ra = 1, .imm = 6364136223846793005 },
		{ INSN(ALUI), .fn = ISA_ALU_ADD, .rd = 1, .ra = 1, .imm = 1442695040888963407 },
		{ INSN(ST), .rb = 1, .elem = ELEM_S64, .binding = 2 },
		{ INSN(HALT) },
	};
	uint64_t got[2];

	for (uint32_t hint = 0; hint < 2; hint++) {
		struct hal_exe *exe = conf_load(c, code, COUNT(code),
						hint ? IMAGE_STRAIGHT : 0, 8);
		struct hal_mem *out = conf_get(c, 8);
		uint64_t value = 1;

		OK(c, hal_copy_in(out, 0, &value, 8, SOON, &c->err));
		for (int i = 0; i < 1500; i++)
			value = conf_run(c, exe, out, 0);
		OK(c, hal_queue_wait(c->compute, value, SOON, &c->err));
		OK(c, hal_copy_out(&got[hint], out, 0, 8, SOON, &c->err));
		hal_exe_unload(exe);
		hal_mem_free(out);
	}
	EXPECT(c, got[0] == got[1]);
	see(c, got, 16);
}

/* ---- what does not load ---- */

void check_broken_images_are_refused(struct conf *c)
{
	static const struct isa_scalar code[] = { { INSN(HALT) } };
	struct hal_exe *exe;
	struct hal_mem *out = conf_get(c, 64);
	uint8_t *image, *copy;
	uint64_t seed = 60;
	size_t bytes;
	unsigned refused = 0;

	conf_image(c, code, COUNT(code), 0, 8, (void **)&image, &bytes);
	for (size_t n = 0; n < bytes; n += 1 + bytes / 60) {
		copy = conf_room(c, n);
		memcpy(copy, image, n);
		if (!hal_exe_load(c->dev, copy, n, &exe, &c->err))
			conf_fail(c, "%zu of %zu bytes load", n, bytes);
		free(copy);
	}
	copy = conf_room(c, bytes);
	for (int i = 0; i < 300; i++) {
		memcpy(copy, image, bytes);
		for (int k = 0; k < 3; k++)
			copy[conf_random(&seed) % bytes] ^= (uint8_t)(1 << conf_random(&seed) % 8);
		if (hal_exe_load(c->dev, copy, bytes, &exe, &c->err)) {
			EXPECT(c, c->err.code && *c->err.msg);
			refused++;
		} else {
			hal_exe_unload(exe);
		}
	}
	EXPECT(c, refused > 20);
	OK(c, hal_exe_load(c->dev, image, bytes, &exe, &c->err));
	hal_exe_unload(exe);
	hal_mem_free(out);
	free(image);
	free(copy);
}

void check_illegal_instructions_name_their_offset(struct conf *c)
{
	static const struct isa_scalar bad[] = {
		{ .insn = { .op = 0x77, .bytes = sizeof(struct isa_scalar) } },
		{ INSN(ALU), .fn = 200, .rd = 1 },
		{ INSN(LI), .rd = ISA_N_REG, .imm = 1 },
		{ INSN(ST), .rb = 1, .elem = ELEM_F32, .binding = 2 },	/* a type it lacks */
		{ INSN(LD), .rd = 1, .elem = 255, .binding = 2 },
		{ INSN(ST), .rb = 1, .elem = ELEM_S64, .binding = 3 },
		{ INSN(ST), .rb = 1, .elem = ELEM_S64, .binding = 2, .imm = 8 },
		{ INSN(JMP), .imm = 4 },
		{ INSN(JMP), .imm = 1 << 20 },
		{ .insn = { .op = ISA_LI, .bytes = 16 } },
		{ .insn = { .op = ISA_LI, .flags = 1, .bytes = sizeof(struct isa_scalar) } },
	};

	for (size_t i = 0; i < COUNT(bad); i++) {
		const struct isa_scalar code[] = { { INSN(LI), .rd = 1, .imm = 7 }, bad[i],
						   { INSN(HALT) } };
		struct hal_exe *exe;
		size_t bytes;
		void *image;

		conf_image(c, code, COUNT(code), 0, 8, &image, &bytes);
		if (!hal_exe_load(c->dev, image, bytes, &exe, &c->err))
			conf_fail(c, "illegal instruction %zu loads", i);
		EXPECT(c, c->err.code == ERR_INVALID_ARGUMENT);
		if (!strstr(c->err.msg, "0x18"))
			conf_fail(c, "illegal instruction %zu: no offset in: %s", i, c->err.msg);
		free(image);
	}
}

void check_reserved_instructions_are_not_there(struct conf *c)
{
	static const uint16_t later[] = { ISA_CHOL, ISA_TRSM, ISA_EIGH };

	for (size_t i = 0; i < COUNT(later); i++) {
		const struct isa_scalar code[] = {
			{ .insn = { .op = later[i], .bytes = sizeof(struct isa_scalar) } },
			{ INSN(HALT) },
		};
		struct hal_exe *exe;
		size_t bytes;
		void *image;

		conf_image(c, code, COUNT(code), 0, 8, &image, &bytes);
		EXPECT(c, hal_exe_load(c->dev, image, bytes, &exe, &c->err));
		EXPECT(c, c->err.code == ERR_UNIMPLEMENTED ||
			  c->err.code == ERR_INVALID_ARGUMENT);
		free(image);
	}
}

void check_hundreds_of_programs_at_once(struct conf *c)
{
	enum { N = 300 };
	struct hal_exe **exe = conf_room(c, N * sizeof(*exe));
	struct hal_mem *out = conf_get(c, 8);
	uint64_t got[N], value;

	for (int i = 0; i < N; i++) {
		const struct isa_scalar code[] = {
			{ INSN(LI), .rd = 1, .imm = i * 1000003 },
			{ INSN(ST), .rb = 1, .elem = ELEM_S64, .binding = 2 },
			{ INSN(HALT) },
		};

		exe[i] = conf_load(c, code, COUNT(code), IMAGE_STRAIGHT, 8);
	}
	for (int i = 0; i < N; i++) {
		value = conf_run(c, exe[i * 7 % N], out, 0);
		OK(c, hal_queue_wait(c->compute, value, SOON, &c->err));
		OK(c, hal_copy_out(&got[i], out, 0, 8, SOON, &c->err));
		EXPECT(c, got[i] == (uint64_t)(i * 7 % N) * 1000003);
	}
	see(c, got, sizeof(got));
	for (int i = 0; i < N; i++)
		hal_exe_unload(exe[i]);
	hal_exe_unload(NULL);
	hal_mem_free(out);
	free(exe);
}

void check_unloading_waits_for_runs(struct conf *c)
{
	struct hal_mem *out = conf_get(c, 8);
	uint64_t value = 0, x = 0;

	OK(c, hal_copy_in(out, 0, &x, 8, SOON, &c->err));
	for (int i = 0; i < 20; i++) {
		struct hal_exe *exe = conf_load_count(c);

		for (int k = 0; k < 30; k++)
			value = conf_run(c, exe, out, 0);
		hal_exe_unload(exe);
	}
	OK(c, hal_queue_wait(c->compute, value, 0, &c->err));
	OK(c, hal_copy_out(&x, out, 0, 8, SOON, &c->err));
	EXPECT(c, x == 600);
	see(c, &x, 8);
	hal_mem_free(out);
}
