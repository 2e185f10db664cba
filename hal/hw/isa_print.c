/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints instructions as they are laid out in memory (isa.h).
 *
 * One idea: a cursor that gives the bytes of one instruction piece by piece, copied out
 * and never past their end. Every count and every number in them may be wrong; a piece
 * that is not there ends the instruction's text. Nothing is judged that the printing does
 * not need: hal/sim/core/program.c does that when a program loads.
 */
#include "hal/hw/isa_print.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define BODY_INDENT "\n            "

enum layout {
	isa_scalar, isa_tensor, isa_copy, isa_gather, isa_scatter, isa_sort, isa_rng, isa_fft,
	isa_mm, isa_conv,
};

static const uint8_t layouts[256] = {
#define INSN(name, number, mnemonic, layout, status, effect) [number] = layout,
#include "hal/hw/isa.def"
#undef INSN
};

static const char *const combines[ISA_COMBINE_COUNT] = {
	[ISA_COMBINE_ADD] = "add", [ISA_COMBINE_MUL] = "mul", [ISA_COMBINE_MIN] = "min",
	[ISA_COMBINE_MAX] = "max", [ISA_COMBINE_AND] = "and", [ISA_COMBINE_OR] = "or",
	[ISA_COMBINE_XOR] = "xor",
};

struct cursor {
	const uint8_t *p, *end;
	struct str *out;
	bool is_cut;
};

/* The next n bytes, or false, said once. */
static bool take(struct cursor *c, void *to, size_t n)
{
	if (n > (size_t)(c->end - c->p)) {
		if (!c->is_cut)
			str_printf(c->out, BODY_INDENT "! the instruction ends here");
		c->is_cut = true;
		return false;
	}
	memcpy(to, c->p, n);
	c->p += n;
	return true;
}

/* ---- pieces ---- */

static void print_list(struct str *out, const char *open, const char *comma,
		       const char *close, unsigned n, const int64_t *list)
{
	str_printf(out, "%s", open);
	for (unsigned i = 0; i < n && i < ISA_MAX_RANK; i++)
		str_printf(out, "%s%" PRId64, i ? comma : "", list[i]);
	str_printf(out, "%s", close);
	if (n > ISA_MAX_RANK)
		str_printf(out, " ! rank %u", n);
}

static void print_address(struct str *out, unsigned binding, int64_t offset, unsigned reg)
{
	str_printf(out, "b%u%s%" PRId64, binding, offset < 0 ? "" : "+", offset);
	if (reg)
		str_printf(out, "[r%u]", reg);
}

static void print_place(struct str *out, const struct isa_operand *o, unsigned rank)
{
	print_address(out, o->binding, o->offset, o->reg);
	if (rank)
		print_list(out, " {", ", ", "}", rank, o->stride);
	if (o->zero)
		str_printf(out, " ! zero is 0x%x", o->zero);
}

/* A named operand: NAME = TYPE ADDRESS {STRIDES}. */
static void print_named(struct cursor *c, const char *name, const struct isa_operand *o,
			unsigned rank)
{
	str_printf(c->out, BODY_INDENT "%s = %s ", name, elem_text(o->elem));
	print_place(c->out, o, rank);
}

/* Input i, which is a value of the body, or (SORT) gives pairs of them. */
static void print_input(struct cursor *c, const char *letter, unsigned i, unsigned rank)
{
	struct isa_operand o;

	if (!take(c, &o, sizeof(o)))
		return;
	str_printf(c->out, BODY_INDENT "%s%u = %s ", letter, i, elem_text(o.elem));
	print_place(c->out, &o, rank);
}

static void print_output(struct cursor *c, bool has_value, unsigned i, unsigned rank)
{
	struct isa_operand o;

	if (!take(c, &o, sizeof(o)))
		return;
	str_printf(c->out, BODY_INDENT "%s ", elem_text(o.elem));
	print_place(c->out, &o, rank);
	if (o.combine)
		str_printf(c->out, " %s", o.combine < ISA_COMBINE_COUNT ?
			   combines[o.combine] : "! combine");
	if (o.combine >= ISA_COMBINE_COUNT)
		str_printf(c->out, " %u", o.combine);
	str_printf(c->out, o.flags & ISA_OPERAND_ACC ? " += " : " = ");
	str_printf(c->out, has_value ? "v%u" : "sorted in%u", has_value ? o.value : i);
	if (o.flags & ~ISA_OPERAND_ACC)
		str_printf(c->out, " ! flags 0x%x", o.flags);
}

/* The bits of an immediate, and what they are where that is short to say. */
static void print_bits(struct str *out, unsigned elem, uint64_t bits)
{
	unsigned width = elem_valid(elem) ? 8 * elem_bytes(elem) : 64;
	uint32_t half = (uint32_t)bits;
	double d;
	float f;

	str_printf(out, " 0x%" PRIx64, bits);
	switch (elem_valid(elem) ? elem_class(elem) : ELEM_CLASS_NONE) {
	case ELEM_CLASS_SINT:
		if (width && width <= 64)
			str_printf(out, " (%" PRId64 ")",
				   (int64_t)(bits << (64 - width)) >> (64 - width));
		break;
	case ELEM_CLASS_UINT:
		str_printf(out, " (%" PRIu64 ")", bits);
		break;
	case ELEM_CLASS_FLOAT:
		memcpy(&d, &bits, 8);
		memcpy(&f, &half, 4);
		if (elem == ELEM_F64 || elem == ELEM_F32)
			str_printf(out, " (%.9g)", elem == ELEM_F64 ? d : (double)f);
		break;
	default:
		break;
	}
}

void isa_print_uop(const struct isa_uop *u, unsigned value, struct str *out)
{
	const struct isa_uop_info *info = isa_uop_info(u->op);
	const uint8_t args[] = { u->a, u->b, u->c };

	str_printf(out, "v%u = ", value);
	if (!info->mnemonic) {
		str_printf(out, "! no vector operation 0x%02x", u->op);
		return;
	}
	str_printf(out, "%s.%s", info->mnemonic, elem_text(u->elem));
	if (info->result == 'T')
		str_printf(out, ".%s", elem_text(u->to));
	for (unsigned i = 0; i < info->n_args && i < 3; i++)
		str_printf(out, "%s v%u", i ? "," : "", args[i]);
	if (u->op == UOP_IMM)
		print_bits(out, u->elem, u->imm);
	else if (u->op == UOP_IOTA)
		str_printf(out, " i[%u]", u->aux);
	else if (u->op == UOP_SREG)
		str_printf(out, " r%u", u->aux);
	else if (u->op == UOP_RDPREC)
		str_printf(out, ", e%u, m%" PRIu64, u->aux, u->imm);
	if (isa_uop_result(u) == ELEM_INVALID)
		str_printf(out, " ! not of these types");
}

static void print_uops(struct cursor *c, unsigned first, unsigned n)
{
	struct isa_uop u;

	for (unsigned i = 0; i < n && take(c, &u, sizeof(u)); i++) {
		str_printf(c->out, BODY_INDENT);
		isa_print_uop(&u, first + i, c->out);
	}
}

/* The iteration space, for the instruction's first line. */
static void print_space(struct cursor *c, const struct isa_body *b)
{
	print_list(c->out, " [", "x", "]", b->rank, b->dim);
	if (b->row_rank)
		str_printf(c->out, " row %u", b->row_rank);
}

/* Inputs, uops, outputs: in the order in which they compute, not that of memory.
 * has_inputs: the inputs are values of the body, after the n_pre of the family. */
static void print_body(struct cursor *c, const struct isa_body *b, unsigned n_pre,
		       bool has_inputs)
{
	size_t outs = b->n_out * sizeof(struct isa_operand);
	struct cursor out;

	for (unsigned i = 0; i < b->n_in && !c->is_cut; i++)
		print_input(c, has_inputs ? "v" : "in", has_inputs ? n_pre + i : i, b->rank);
	if (c->is_cut)
		return;
	out = *c;
	if (outs <= (size_t)(c->end - c->p)) {
		c->p += outs;
		print_uops(c, n_pre + (has_inputs ? b->n_in : 0), b->n_uop);
		out.end = out.p + outs;
	}
	for (unsigned i = 0; i < b->n_out && !out.is_cut; i++)
		print_output(&out, has_inputs, i, b->rank);
	c->is_cut |= out.is_cut;
}

/* ---- instructions ---- */

static void print_scalar(struct cursor *c, const struct isa_insn *insn,
			 const struct isa_insn_info *info, uint64_t offset)
{
	const char *fn;
	struct isa_scalar s;
	char name[24];

	if (!take(c, &s, sizeof(s)))
		return;
	fn = isa_alu_name(s.fn);
	if (insn->op == ISA_ALU || insn->op == ISA_ALUI || insn->op == ISA_RSIG)
		snprintf(name, sizeof(name), "%s.%s", info->mnemonic, fn ? fn : "!");
	else if (insn->op == ISA_LD || insn->op == ISA_ST)
		snprintf(name, sizeof(name), "%s.%.13s", info->mnemonic, elem_text(s.elem));
	else
		snprintf(name, sizeof(name), "%s", info->mnemonic);
	str_printf(c->out, insn->op == ISA_HALT || insn->op == ISA_RET ? "%s" : "%-9s ", name);
	switch (insn->op) {
	case ISA_HALT:
	case ISA_RET:
		break;
	case ISA_LI:
		str_printf(c->out, "r%u, %" PRId64, s.rd, s.imm);
		break;
	case ISA_ALU:
		str_printf(c->out, "r%u, r%u, r%u", s.rd, s.ra, s.rb);
		break;
	case ISA_ALUI:
		str_printf(c->out, "r%u, r%u, %" PRId64, s.rd, s.ra, s.imm);
		break;
	case ISA_LD:
		str_printf(c->out, "r%u, ", s.rd);
		print_address(c->out, s.binding, s.imm, s.ra);
		break;
	case ISA_RWAIT:
		str_printf(c->out, "r%u, ", s.rd);
		/* fall through */
	case ISA_ST:
	case ISA_RSIG:
		print_address(c->out, s.binding, s.imm, s.ra);
		str_printf(c->out, ", r%u", s.rb);
		break;
	case ISA_BZ:
	case ISA_BNZ:
		str_printf(c->out, "r%u, ", s.ra);
		/* fall through */
	case ISA_JMP:
	case ISA_CALL:
		str_printf(c->out, "%08" PRIx64, offset + (uint64_t)s.imm);
		break;
	case ISA_TRAP:
		str_printf(c->out, "%" PRId64, s.imm);
		break;
	default:
		str_printf(c->out, "r%u, r%u, r%u, %" PRId64, s.rd, s.ra, s.rb, s.imm);
		break;
	}
	if ((insn->op == ISA_ALU || insn->op == ISA_ALUI || insn->op == ISA_RSIG) && !fn)
		str_printf(c->out, " ! no function %u", s.fn);
	if ((insn->op == ISA_RSIG || insn->op == ISA_RWAIT) && s.elem != ELEM_U64)
		str_printf(c->out, " ! type %u", s.elem);
	if (s.rd >= ISA_N_REG || s.ra >= ISA_N_REG || s.rb >= ISA_N_REG)
		str_printf(c->out, " ! registers end at r%d", ISA_N_REG - 1);
}

static void print_tensor(struct cursor *c)
{
	struct isa_tensor t;

	if (!take(c, &t, sizeof(t)))
		return;
	print_space(c, &t.body);
	for (unsigned d = 0; d < 32 && t.reduce_dims; d++)
		if (t.reduce_dims >> d & 1)
			str_printf(c->out, " over i[%u]", d);
	print_body(c, &t.body, 0, true);
}

static void print_copy(struct cursor *c)
{
	struct isa_copy k;

	if (!take(c, &k, sizeof(k)))
		return;
	print_list(c->out, " [", "x", "]", k.rank, k.dim);
	str_printf(c->out, " of %u bytes", k.elem_bytes);
	str_printf(c->out, BODY_INDENT "src = ");
	print_place(c->out, &k.src, k.rank);
	str_printf(c->out, BODY_INDENT "dst = ");
	print_place(c->out, &k.dst, k.rank);
}

static void print_index(struct cursor *c, const struct isa_operand *idx, unsigned n_batch,
			int64_t stride, unsigned n, const struct isa_index *list)
{
	print_named(c, "idx", idx, n_batch);
	str_printf(c->out, " components %" PRId64 " apart", stride);
	for (unsigned i = 0; i < n && i < ISA_MAX_INDEX; i++) {
		str_printf(c->out, BODY_INDENT "idx[%u]: 0 to %" PRId64 ", step %" PRId64, i,
			   list[i].limit, list[i].step);
		if (list[i].wrap)
			str_printf(c->out, ", below 0 %+" PRId64, list[i].wrap);
	}
	if (n > ISA_MAX_INDEX)
		str_printf(c->out, BODY_INDENT "! %u components", n);
}

static void print_gather(struct cursor *c)
{
	struct isa_gather g;

	if (!take(c, &g, sizeof(g)))
		return;
	print_list(c->out, " [", "x", "]", g.rank, g.dim);
	str_printf(c->out, " batch %u", g.n_batch);
	print_named(c, "src", &g.src, g.rank);
	print_index(c, &g.idx, g.n_batch, g.index_stride, g.n_index, g.index);
	print_named(c, "dst", &g.dst, g.rank);
	if (g.insn.flags & ISA_FLAG_FILL || g.fill[0] || g.fill[1])
		str_printf(c->out, BODY_INDENT "outside: 0x%016" PRIx64 " %016" PRIx64, g.fill[1],
			   g.fill[0]);
}

static void print_scatter(struct cursor *c)
{
	struct isa_scatter s;

	if (!take(c, &s, sizeof(s)))
		return;
	print_space(c, &s.body);
	str_printf(c->out, " batch %u", s.n_batch);
	print_index(c, &s.idx, s.n_batch, s.index_stride, s.n_index, s.index);
	for (unsigned i = 0; i < s.body.n_in && i < ISA_MAX_IN; i++)
		str_printf(c->out, BODY_INDENT "v%u = current element %u", i, i);
	print_body(c, &s.body, s.body.n_in, true);
}

static void print_sort(struct cursor *c)
{
	struct isa_sort s;

	if (!take(c, &s, sizeof(s)))
		return;
	print_space(c, &s.body);
	str_printf(c->out, " along i[%u], first if v%u", s.sort_dim, s.first);
	for (unsigned i = 0; i < s.body.n_in && i < ISA_MAX_IN; i++)
		str_printf(c->out, BODY_INDENT "v%u, v%u = two elements of in%u", 2 * i,
			   2 * i + 1, i);
	print_body(c, &s.body, 2u * s.body.n_in, false);
}

static void print_rng(struct cursor *c)
{
	struct isa_rng r;

	if (!take(c, &r, sizeof(r)))
		return;
	if (r.algorithm > ISA_RNG_THREEFRY)
		str_printf(c->out, " ! algorithm %u", r.algorithm);
	else
		str_printf(c->out, "%s", r.algorithm == ISA_RNG_PHILOX ? " philox" : " threefry");
	str_printf(c->out, ", state of %u words, gives %" PRIu64 " words", r.state_words,
		   r.n_words);
	print_named(c, "state", &r.state, 0);
	print_named(c, "new_state", &r.new_state, 0);
	print_named(c, "out", &r.out, 0);
}

static void print_fft(struct cursor *c)
{
	struct isa_fft f;

	if (!take(c, &f, sizeof(f)))
		return;
	print_list(c->out, " [", "x", "]", f.rank, f.dim);
	str_printf(c->out, " along i[%u], scale %.17g", f.axis, f.scale);
	print_named(c, "src", &f.src, f.rank);
	print_named(c, "dst", &f.dst, f.rank);
}

static void print_sum(struct cursor *c, unsigned acc, unsigned precision)
{
	static const char *const names[] = {
		[ISA_PRECISION_DEFAULT] = "", [ISA_PRECISION_HIGH] = " precision high",
		[ISA_PRECISION_BF16] = " precision bf16",
	};

	str_printf(c->out, " acc %s", elem_text(acc));
	if (precision <= ISA_PRECISION_BF16)
		str_printf(c->out, "%s", names[precision]);
	else
		str_printf(c->out, " ! precision %u", precision);
}

static void print_mm(struct cursor *c)
{
	struct isa_mm m;

	if (!take(c, &m, sizeof(m)))
		return;
	print_space(c, &m.body);
	str_printf(c->out, " k %" PRId64, m.k);
	print_sum(c, m.acc, m.precision);
	print_named(c, "a", &m.a, m.body.rank);
	str_printf(c->out, " k %" PRId64, m.a_k_stride);
	print_named(c, "b", &m.b, m.body.rank);
	str_printf(c->out, " k %" PRId64, m.b_k_stride);
	str_printf(c->out, BODY_INDENT "v0 = sum of a * b");
	print_body(c, &m.body, 1, true);
}

static void print_conv(struct cursor *c)
{
	struct isa_conv v;
	unsigned n;

	if (!take(c, &v, sizeof(v)))
		return;
	n = v.n_spatial < ISA_MAX_SPATIAL ? v.n_spatial : ISA_MAX_SPATIAL;
	print_space(c, &v.body);
	str_printf(c->out, " features %" PRId64, v.in_features);
	if (v.feature_groups != 1 || v.batch_groups != 1)
		str_printf(c->out, " feature_groups %" PRId64 " batch_groups %" PRId64,
			   v.feature_groups, v.batch_groups);
	print_sum(c, v.acc, v.precision);
	if (v.n_spatial > ISA_MAX_SPATIAL)
		str_printf(c->out, " ! %u spatial dims", v.n_spatial);
	print_list(c->out, BODY_INDENT "in [", "x", "]", n, v.in_size);
	print_list(c->out, " kernel [", "x", "]", n, v.kernel);
	print_list(c->out, " stride [", ", ", "]", n, v.window_stride);
	print_list(c->out, " pad [", ", ", "]", n, v.pad_low);
	print_list(c->out, " lhs_dilation [", ", ", "]", n, v.lhs_dilation);
	print_list(c->out, " rhs_dilation [", ", ", "]", n, v.rhs_dilation);
	if (v.reversed)
		str_printf(c->out, " reversed 0x%x", v.reversed);
	print_named(c, "lhs", &v.lhs, 2 + n);
	print_named(c, "rhs", &v.rhs, 2 + n);
	str_printf(c->out, BODY_INDENT "v0 = convolution of lhs and rhs");
	print_body(c, &v.body, 1, true);
}

/* ---- the doors ---- */

/* The mnemonic with its flags, in the width of a column. */
static void print_name(struct str *out, const struct isa_insn *insn)
{
	unsigned left = insn->flags;
	size_t from = out->len;

	str_printf(out, "%s", isa_insn_info(insn->op)->mnemonic);
	if (insn->op == ISA_SORT && left & ISA_FLAG_STABLE)
		str_printf(out, ".stable");
	if (insn->op == ISA_FFT && left & ISA_FLAG_INVERSE)
		str_printf(out, ".inverse");
	if (insn->op == ISA_SCATTER && left & ISA_FLAG_UNIQUE)
		str_printf(out, ".unique");
	if ((insn->op == ISA_SCATTER || insn->op == ISA_GATHER) && left & ISA_FLAG_SORTED)
		str_printf(out, ".sorted");
	if (insn->op == ISA_GATHER && left & ISA_FLAG_FILL)
		str_printf(out, ".fill");
	left &= ~(insn->op == ISA_SORT ? ISA_FLAG_STABLE :
		  insn->op == ISA_FFT ? ISA_FLAG_INVERSE :
		  insn->op == ISA_SCATTER ? ISA_FLAG_UNIQUE | ISA_FLAG_SORTED :
		  insn->op == ISA_GATHER ? ISA_FLAG_SORTED | ISA_FLAG_FILL : 0u);
	if (left)
		str_printf(out, " ! flags 0x%x", left);
	str_printf(out, "%*s", out->len - from < 9 ? (int)(9 - (out->len - from)) : 0, "");
}

static void print_by_layout(struct cursor *c, const struct isa_insn *insn, uint64_t offset)
{
	const struct isa_insn_info *info = isa_insn_info(insn->op);

	if (layouts[insn->op] == isa_scalar) {
		print_scalar(c, insn, info, offset);
		if (insn->flags)
			str_printf(c->out, " ! flags 0x%x", insn->flags);
	} else {
		print_name(c->out, insn);
	}
	switch (layouts[insn->op]) {
	case isa_tensor: print_tensor(c); break;
	case isa_copy: print_copy(c); break;
	case isa_gather: print_gather(c); break;
	case isa_scatter: print_scatter(c); break;
	case isa_sort: print_sort(c); break;
	case isa_rng: print_rng(c); break;
	case isa_fft: print_fft(c); break;
	case isa_mm: print_mm(c); break;
	case isa_conv: print_conv(c); break;
	default: break;
	}
	if (!info->built)
		str_printf(c->out, " ! not built");
	if (!c->is_cut && c->p < c->end)
		str_printf(c->out, BODY_INDENT "! %zu bytes more than it has parts",
			   (size_t)(c->end - c->p));
}

/* Bytes that are no instruction: eight of them, and why. */
static size_t print_bytes(const void *p, size_t n, struct str *out, const char *why)
{
	const uint8_t *b = p;
	size_t step = n < 8 ? n : 8;

	str_printf(out, ".bytes    ");
	for (size_t i = 0; i < step; i++)
		str_printf(out, "%02x", b[i]);
	if (step)
		str_printf(out, " ! %s", why);
	return step;
}

size_t isa_print_insn(const void *p, size_t n, uint64_t offset, struct str *out)
{
	struct isa_insn insn;
	struct cursor c = { .p = p, .out = out };

	if (n < sizeof(insn))
		return n ? print_bytes(p, n, out, "shorter than an instruction's head") : 0;
	memcpy(&insn, p, sizeof(insn));
	if (!isa_insn_info(insn.op)->mnemonic)
		return print_bytes(p, n, out, "no such opcode");
	if (insn.bytes < sizeof(insn) || insn.bytes % 8)
		return print_bytes(p, n, out, "an instruction of a length that none has");
	if (insn.bytes > n)
		return print_bytes(p, n, out, "an instruction that passes the end");
	c.end = c.p + insn.bytes;
	print_by_layout(&c, &insn, offset);
	return insn.bytes;
}

void isa_print_program(const void *p, size_t n, isa_note_fn *note, void *arg,
		       struct str *out)
{
	struct str text = { 0 };

	for (size_t at = 0, step; at < n && !out->failed; at += step) {
		const char *rest;

		text.len = 0;
		step = isa_print_insn((const char *)p + at, n - at, at, &text);
		if (text.failed || !text.text) {
			out->failed = true;
			break;
		}
		rest = strchr(text.text, '\n');
		str_printf(out, "%08zx  %.*s", at, (int)(rest ? rest - text.text : (long)text.len),
			   text.text);
		if (note)
			note(arg, at, out);
		str_printf(out, "%s\n", rest ? rest : "");
	}
	str_free(&text);
}
