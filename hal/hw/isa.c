/* SPDX-License-Identifier: Apache-2.0 */
/* Facts about instructions and statuses, read off the .def files. */
#include "hal/hw/isa.h"

#include <string.h>

#include "hal/base/err.h"
#include "hal/hw/desc.h"

enum { NOW = 1, LATER = 0 };

static const struct isa_insn_info insns[256] = {
#define INSN(name, number, mnemonic, layout, status, effect) \
	[number] = { mnemonic, sizeof(struct layout), status, effect },
#include "hal/hw/isa.def"
#undef INSN
};

static const struct isa_uop_info uops[256] = {
#define UOP(name, number, mnemonic, args, types, result, effect) \
	[number] = { mnemonic, args, #result[0], types, effect },
#include "hal/hw/uop.def"
#undef UOP
};

static const char *const alus[ISA_ALU_COUNT] = {
#define ALU(name, number, mnemonic, effect) [number] = mnemonic,
#include "hal/hw/alu.def"
#undef ALU
};

const struct isa_insn_info *isa_insn_info(unsigned op)
{
	return &insns[op < 256 ? op : 0];
}

const struct isa_uop_info *isa_uop_info(unsigned op)
{
	static const struct isa_uop_info none;

	return op < 256 ? &uops[op] : &none;
}

const char *isa_alu_name(unsigned fn)
{
	return fn < ISA_ALU_COUNT ? alus[fn] : NULL;
}

const struct isa_body *isa_body_of(const struct isa_insn *insn, unsigned *n_pre)
{
	const void *p = insn;

	*n_pre = 0;
	switch (insn->op) {
	case ISA_VEC:
	case ISA_REDUCE:
		return &((const struct isa_tensor *)p)->body;
	case ISA_SCATTER:
		*n_pre = ((const struct isa_scatter *)p)->body.n_in;
		return &((const struct isa_scatter *)p)->body;
	case ISA_SORT:
		*n_pre = 2u * ((const struct isa_sort *)p)->body.n_in;
		return &((const struct isa_sort *)p)->body;
	case ISA_MM:
		*n_pre = 1;
		return &((const struct isa_mm *)p)->body;
	case ISA_CONV:
		*n_pre = 1;
		return &((const struct isa_conv *)p)->body;
	default:
		return NULL;
	}
}

bool isa_fft_fits(int64_t n)
{
	if (n < 0 || n > ISA_MAX_FFT)
		return false;
	for (int64_t p = 2; p <= ISA_MAX_FFT_PRIME; p++)
		for (; n > 1 && n % p == 0; n /= p)
			;
	return n <= 1;
}

static bool is_real(unsigned elem)
{
	return elem_valid(elem) && elem_class(elem) == ELEM_CLASS_FLOAT;
}

void isa_fft_counts(const struct isa_fft *f, int64_t *src, int64_t *dst)
{
	int64_t n = f->dim[f->axis], half = n ? n / 2 + 1 : 0;

	*src = is_real(f->dst.elem) ? half : n;
	*dst = is_real(f->src.elem) ? half : n;
}

/* The letter of `elem` in the `types` column of uop.def. */
static char letter_of(unsigned elem)
{
	if (!elem_valid(elem) || !elem_bytes(elem))
		return '-';
	if (!elem_computes(elem))
		return 'x';
	switch (elem_class(elem)) {
	case ELEM_CLASS_PRED: return 'p';
	case ELEM_CLASS_SINT: return 's';
	case ELEM_CLASS_UINT: return 'u';
	case ELEM_CLASS_FLOAT: return 'f';
	default: return 'c';
	}
}

enum elem isa_uop_result(const struct isa_uop *u)
{
	const struct isa_uop_info *info = isa_uop_info(u->op);

	if (!info->mnemonic || !strchr(info->types, letter_of(u->elem)))
		return ELEM_INVALID;
	switch (info->result) {
	case 'P':
		return ELEM_PRED;
	case 'T':
		return elem_valid(u->to) && elem_bytes(u->to) ?
			(enum elem)u->to : ELEM_INVALID;
	case 'R':
		if (u->elem == ELEM_C64)
			return ELEM_F32;
		return u->elem == ELEM_C128 ? ELEM_F64 : (enum elem)u->elem;
	default:
		return (enum elem)u->elem;
	}
}

int hw_status_code(unsigned status)
{
	switch (status) {
#define FAULT(name, number, code, text) case number: return ERR_##code;
#include "hal/hw/fault.def"
#undef FAULT
	default:
		return ERR_INTERNAL;
	}
}

const char *hw_status_text(unsigned status)
{
	switch (status) {
#define FAULT(name, number, code, text) case number: return text;
#include "hal/hw/fault.def"
#undef FAULT
	default:
		return "unknown status";
	}
}

const char *hw_status_name(unsigned status)
{
	switch (status) {
#define FAULT(name, number, code, text) case number: return #name;
#include "hal/hw/fault.def"
#undef FAULT
	default:
		return "UNKNOWN";
	}
}

const char *hw_work_name(unsigned op)
{
	switch (op) {
	case HW_COPY:
		return "copy";
	case HW_COPY_2D:
		return "copy 2d";
	case HW_FILL:
		return "fill";
	case HW_TIMESTAMP:
		return "timestamp";
	default:
		return "?";
	}
}
