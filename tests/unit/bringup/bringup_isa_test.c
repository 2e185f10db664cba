/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The steps of the ISA: nothing in its tables is left out, and a device that does any one of them
 * wrong fails, by that name. Such a device is the model with each program changed on its way there:
 * it runs another instruction, function or operation than was asked for.
 */
#include "tests/unit/bringup/bringup_test.h"

#include "hal/hw/image.h"
#include "tools/bringup/isa/isa.h"

int __real_hal_exe_load(struct hal_device *dev, const void *image, size_t bytes,
			struct hal_exe **out, struct err *err);
int __wrap_hal_exe_load(struct hal_device *dev, const void *image, size_t bytes,
			struct hal_exe **out, struct err *err);

enum what { NOTHING, AN_INSN, A_FUNCTION, AN_OPERATION };
/* What it gets wrong of FFT. */
enum mistake { THE_SIGN, THE_SCALE, A_SCALE_OF_REAL_POINTS, THE_POINTS, MISTAKES };

/* What the device does wrong. */
static struct { enum what what; unsigned number; enum mistake mistake; } wrong;
/* What it was asked for. */
static struct { bool insn[256], function[256], operation[256]; } seen;

/* ---- a device that is wrong ---- */

/* Another operation of the same types, or a constant. */
static void spoil_uop(struct isa_uop *u)
{
	const struct isa_uop_info *info = isa_uop_info(u->op);
	enum elem result = isa_uop_result(u);

	for (unsigned k = 0; k < 256; k++) {
		struct isa_uop other = { .op = (uint8_t)k, .elem = u->elem, .a = u->a, .b = u->b,
					 .c = u->c };
		const struct isa_uop_info *with = isa_uop_info(k);

		if (k != u->op && info->n_args && with->n_args == info->n_args &&
		    u->op != UOP_SELECT && k != UOP_SELECT && k != UOP_RDPREC &&
		    with->result != 'T' && isa_uop_result(&other) == result &&
		    (k >= UOP_RADD) == (u->op >= UOP_RADD)) {
			*u = other;
			return;
		}
	}
	*u = (struct isa_uop){ .op = UOP_IMM, .elem = (uint8_t)result,
			       .imm = result == ELEM_PRED ? 1 : 3 };
}

static void spoil_scalar(struct isa_scalar *s)
{
	switch (s->insn.op) {
	case ISA_LI: s->imm++; break;
	case ISA_ALU:
	case ISA_ALUI: s->fn = s->fn == ISA_ALU_ADD ? ISA_ALU_SUB : ISA_ALU_ADD; break;
	case ISA_LD:
	case ISA_RWAIT: s->rd = 0; break;
	case ISA_ST: s->rb = 0; break;
	case ISA_JMP:
	case ISA_BZ: s->insn.op = ISA_BNZ; break;
	case ISA_BNZ: s->insn.op = ISA_BZ; break;
	case ISA_CALL: s->insn.op = ISA_JMP; break;
	case ISA_RET:
	case ISA_TRAP: *s = (struct isa_scalar){ .insn = { ISA_HALT, 0, sizeof(*s) } }; break;
	default: s->insn.op = ISA_LI;
	}
}

static void spoil_fft(struct isa_fft *f)
{
	bool is_real = f->src.elem != f->dst.elem;

	switch (wrong.mistake) {
	case THE_SIGN: f->insn.flags ^= is_real ? 0 : ISA_FLAG_INVERSE; break;
	case THE_SCALE: f->scale *= 1.0001; break;
	case A_SCALE_OF_REAL_POINTS: f->scale *= is_real ? 1.0001 : 1; break;
	default: f->src.stride[f->axis] = 0;
	}
}

static void spoil_tensor(struct isa_insn *insn)
{
	void *p = insn;
	struct isa_operand *op;
	struct isa_uop *u;

	switch (insn->op) {
	case ISA_VEC:
		op = (struct isa_operand *)((struct isa_tensor *)p + 1);
		op->stride[1] = 0;
		break;
	case ISA_REDUCE:
		op = (struct isa_operand *)((struct isa_tensor *)p + 1);
		u = (struct isa_uop *)(op + ((struct isa_tensor *)p)->body.n_in +
				       ((struct isa_tensor *)p)->body.n_out);
		spoil_uop(u);
		break;
	case ISA_COPY: ((struct isa_copy *)p)->src.stride[1] = 0; break;
	case ISA_GATHER: ((struct isa_gather *)p)->index[0].step = 0; break;
	case ISA_SCATTER: ((struct isa_scatter *)p)->index[0].limit = 0; break;
	case ISA_SORT:
		op = (struct isa_operand *)((struct isa_sort *)p + 1);
		((struct isa_uop *)(op + 4))->op = UOP_GT;
		break;
	case ISA_RNG: ((struct isa_rng *)p)->algorithm ^= 1; break;
	case ISA_FFT: spoil_fft(p); break;
	case ISA_MM: ((struct isa_mm *)p)->a_k_stride = 0; break;
	case ISA_CONV: ((struct isa_conv *)p)->pad_low[0]++; break;
	default: fail_msg("no mistake is known of opcode %u: add one", insn->op);
	}
}

static bool is_scalar(const struct isa_insn *insn)
{
	return insn->op <= ISA_TRAP || insn->op == ISA_RWAIT;
}

/* An instruction on its way. */
static void pass(struct isa_insn *insn)
{
	struct isa_scalar *s = (void *)insn;
	const struct isa_body *body;
	struct isa_uop *u;
	unsigned n_pre;

	seen.insn[insn->op & 255] = true;
	body = isa_body_of(insn, &n_pre);
	u = (struct isa_uop *)((char *)insn + insn->bytes) - (body ? body->n_uop : 0);
	for (unsigned i = 0; body && i < body->n_uop; i++) {
		seen.operation[u[i].op] = true;
		if (wrong.what == AN_OPERATION && wrong.number == u[i].op)
			spoil_uop(&u[i]);
	}
	if (insn->op == ISA_ALU || insn->op == ISA_ALUI) {
		seen.function[s->fn] = true;
		if (wrong.what == A_FUNCTION && wrong.number == s->fn)
			spoil_scalar(s);
	}
	if (wrong.what == AN_INSN && wrong.number == insn->op) {
		if (is_scalar(insn))
			spoil_scalar(s);
		else
			spoil_tensor(insn);
	}
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
		pass(insn);
	}
	im->text = text;
	assert_int_equal(image_write(im, &other, &bytes, err), 0);
	code = __real_hal_exe_load(dev, other, bytes, out, err);
	free(other);
	free(text);
	image_free(im);
	return code;
}

/* ---- the tests ---- */

static struct t_step t;

static int begin(void **state)
{
	(void)state;
	setenv("TESSERA_CRASH_DUMPS", "0", 1);
	memset(&wrong, 0, sizeof(wrong));
	t_begin(&t, "sim:hbm=64M,lanes=1");
	return 0;
}

static int end(void **state)
{
	(void)state;
	t_end(&t);
	return 0;
}

static enum bringup_result run(enum what what, unsigned number)
{
	enum bringup_result r;

	memset(&t.row, 0, sizeof(t.row));
	r = bringup_need_device(&t.b);
	if (r == BRINGUP_PASS && what == AN_INSN)
		r = isa_test_insn(&t.b, number);
	else if (r == BRINGUP_PASS)
		r = what == A_FUNCTION ? isa_test_function(&t.b, number) :
					isa_test_operation(&t.b, number);
	bringup_give_back(&t.b);
	if (r == BRINGUP_FAIL)
		bringup_close(&t.b);
	return r;
}

static const char *name_of(enum what what, unsigned number)
{
	return what == AN_INSN ? isa_insn_info(number)->mnemonic : what == A_FUNCTION ?
		isa_alu_name(number) : isa_uop_info(number)->mnemonic;
}

static bool is_built(enum what what, unsigned number)
{
	return name_of(what, number) && (what != AN_INSN || isa_insn_info(number)->built);
}

/* Calls fn for each that the tables have and that is no known exception. */
static void each(void (*fn)(enum what what, unsigned number))
{
	for (enum what what = AN_INSN; what <= AN_OPERATION; what++)
		for (unsigned k = 0; k < 256; k++)
			if (is_built(what, k) && !(what == AN_INSN && isa_why_untested(k)))
				fn(what, k);
}

static char missing[1024];

static void note_missing(enum what what, unsigned number)
{
	size_t n = strlen(missing);

	snprintf(missing + n, sizeof(missing) - n, " %s%s", what == AN_INSN ? "" :
		 what == A_FUNCTION ? "alu " : "vec ", name_of(what, number));
}

static void is_seen(enum what what, unsigned number)
{
	const bool *had = what == AN_INSN ? seen.insn : what == A_FUNCTION ? seen.function :
			  seen.operation;

	if (!had[number])
		note_missing(what, number);
}

static void the_steps_run_all_that_the_tables_have(void **state)
{
	static enum bringup_result (*const steps[])(struct bringup *b) = {
		step_scalar_unit, step_vector_operations, step_vector_unit, step_matrix_unit,
	};

	(void)state;
	memset(&seen, 0, sizeof(seen));
	*missing = '\0';
	for (unsigned i = 0; i < COUNT(steps); i++)
		if (t_step(&t, steps[i]) != BRINGUP_PASS)
			fail_msg("%s", t.row.text);
	each(is_seen);
	if (*missing)
		fail_msg("no case reaches%s: tools/bringup/isa/ir.def has operations and "
			 "functions, step.c instructions, or why one has none", missing);
}

static void what_has_no_cases_is_built_and_says_why(void **state)
{
	(void)state;
	for (unsigned op = 0; op < 256; op++) {
		if (!isa_why_untested(op))
			continue;
		assert_true(is_built(AN_INSN, op) && !isa_has_insn(op));
		assert_int_equal(run(AN_INSN, op), BRINGUP_SKIP);
		assert_non_null(strstr(t.row.text, isa_why_untested(op)));
	}
	/* What is not built, either. */
	assert_int_equal(run(AN_INSN, ISA_CHOL), BRINGUP_SKIP);
	assert_int_equal(run(AN_OPERATION, 0xff), BRINGUP_SKIP);
}

/* These send a program astray: it ends in another way, which is told. */
static bool is_way(enum what what, unsigned number)
{
	return what == AN_INSN && (number == ISA_CALL || number == ISA_RET || number == ISA_HALT ||
				 number == ISA_TRAP);
}

static void is_noticed(enum what what, unsigned number)
{
	const char *name = name_of(what, number);

	wrong.what = what;
	wrong.number = number;
	if (run(what, number) != BRINGUP_FAIL)
		fail_msg("%s is wrong and passes", name);
	if (!strstr(t.row.text, name) || (!is_way(what, number) &&
	    (!strstr(t.row.text, ": element ") || !strstr(t.row.text, " instead of 0x"))))
		fail_msg("%s is wrong: %s", name, t.row.text);
}

static void each_instruction_that_is_wrong_fails_by_its_name(void **state)
{
	(void)state;
	each(is_noticed);
}

static void each_mistake_of_a_transform_fails_by_its_name(void **state)
{
	(void)state;
	for (enum mistake m = 0; m < MISTAKES; m++) {
		wrong.mistake = m;
		is_noticed(AN_INSN, ISA_FFT);
	}
}

static void the_first_element_that_differs_is_told(void **state)
{
	(void)state;
	/* 0 and 0, then 0 and 1: it subtracts. */
	wrong.what = A_FUNCTION;
	wrong.number = ISA_ALU_ADD;
	assert_int_equal(run(A_FUNCTION, ISA_ALU_ADD), BRINGUP_FAIL);
	assert_string_equal(t.row.text, "alu add: element 1 of 225 is 0xffffffffffffffff "
			    "instead of 0x0000000000000001");
	wrong.what = AN_OPERATION;
	wrong.number = UOP_IOTA;
	assert_int_equal(run(AN_OPERATION, UOP_IOTA), BRINGUP_FAIL);
	assert_string_equal(t.row.text, "iota of i8: element 0 of 1 is 0x03 instead of 0x00");
}

static void bits_that_are_stuck_are_told_by_element(void **state)
{
	(void)state;
	assert_int_equal(run(AN_OPERATION, UOP_XOR), BRINGUP_PASS);
	for (uint64_t i = 0; i < 64; i++)
		assert_int_equal(hal_device_inject(t.b.dev, HW_INJECT_CELL,
			(uint64_t)HW_CELL_STUCK_1 << 56 | (i * 8192 + 3), &t.b.err), 0);
	assert_int_equal(run(AN_OPERATION, UOP_XOR), BRINGUP_FAIL);
	assert_non_null(strstr(t.row.text, "xor of "));
	assert_non_null(strstr(t.row.text, ": element "));
}

static void a_dead_device_fails_all_four(void **state)
{
	(void)state;
	assert_int_equal(bringup_need_device(&t.b), BRINGUP_PASS);
	assert_int_equal(hal_device_inject(t.b.dev, HW_INJECT_FATAL, 0, &t.b.err), 0);
	assert_int_equal(t_step(&t, step_scalar_unit), BRINGUP_FAIL);
	assert_int_equal(t_step(&t, step_vector_operations), BRINGUP_FAIL);
	assert_int_equal(t_step(&t, step_vector_unit), BRINGUP_FAIL);
	assert_int_equal(t_step(&t, step_matrix_unit), BRINGUP_FAIL);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_steps_run_all_that_the_tables_have),
		TEST(what_has_no_cases_is_built_and_says_why),
		TEST(each_instruction_that_is_wrong_fails_by_its_name),
		TEST(each_mistake_of_a_transform_fails_by_its_name),
		TEST(the_first_element_that_differs_is_told),
		TEST(bits_that_are_stuck_are_told_by_element),
		TEST(a_dead_device_fails_all_four),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
