/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loading a program: every static rule of ISA.md is checked here or in a family's
 * prepare(), once, on a copy of the code that nobody else can change. What is left
 * for run time is what only registers know. Programs are hostile input.
 */
#define LOG_TAG "sim/program"
#include <stdlib.h>
#include <string.h>

#include "hal/base/log.h"
#include "hal/sim/core/program.h"

#define MAX_PLANS ((size_t)1 << 30)	/* bytes of one program's plans */
#define MAX_SCRATCH ((size_t)256 << 20)	/* of a lane */
#define MAX_SHARED ((size_t)4 << 30)

/* An instruction's family follows from its layout. */
#define FAMILY_isa_scalar NULL
#define FAMILY_isa_tensor &sim_family_tensor
#define FAMILY_isa_copy &sim_family_copy
#define FAMILY_isa_gather &sim_family_gather
#define FAMILY_isa_scatter &sim_family_scatter
#define FAMILY_isa_sort &sim_family_sort
#define FAMILY_isa_fft &sim_family_fft
#define FAMILY_isa_rng &sim_family_rng
#define FAMILY_isa_mm &sim_family_mm
#define FAMILY_isa_conv &sim_family_conv

static const struct sim_family *const families[256] = {
#define INSN(name, number, mnemonic, layout, status, effect) [number] = FAMILY_##layout,
#include "hal/hw/isa.def"
#undef INSN
};

static bool is_branch(unsigned op)
{
	return op == ISA_JMP || op == ISA_BZ || op == ISA_BNZ || op == ISA_CALL;
}

static bool is_integer(unsigned elem)
{
	unsigned cls = elem_valid(elem) ? elem_class(elem) : ELEM_CLASS_NONE;

	return cls == ELEM_CLASS_PRED || cls == ELEM_CLASS_SINT || cls == ELEM_CLASS_UINT;
}

static bool has_address(unsigned op)
{
	return op == ISA_LD || op == ISA_ST || op == ISA_RSIG || op == ISA_RWAIT;
}

/* Scalar ones with an address: it becomes the plan. */
static int prepare_access(struct sim_load *load, struct sim_insn *out)
{
	const struct isa_scalar *s = &out->s;
	struct isa_operand op = { .elem = s->elem, .reg = s->ra, .binding = s->binding,
				  .offset = s->imm };
	struct sim_ref *ref = arena_alloc(load->arena, sizeof(*ref));

	if (!ref)
		return sim_refuse(load, HW_ST_NO_ROOM, "out of memory");
	if (!is_integer(s->elem))
		return sim_refuse(load, HW_ST_BAD_PROGRAM, "type %u is not an integer's",
				  s->elem);
	out->plan = ref;
	if (s->insn.op == ISA_LD || s->insn.op == ISA_ST)
		return sim_ref(load, &op, 0, s->insn.op == ISA_ST, 0, 0, NULL, NULL, 0, ref);
	if (s->elem != ELEM_U64)
		return sim_refuse(load, HW_ST_BAD_PROGRAM, "type %u is no semaphore's", s->elem);
	if (s->insn.op == ISA_RSIG && s->fn != ISA_ALU_ADD && s->fn != ISA_ALU_MAX)
		return sim_refuse(load, HW_ST_BAD_PROGRAM, "rsig by function %u; add or max",
				  s->fn);
	return s->insn.op == ISA_RSIG ? sim_peer_ref(load, &op, 0, 0, 0, NULL, ref) :
		sim_ref(load, &op, 0, false, 0, 0, NULL, NULL, 0, ref);
}

static enum sim_quick quick_access(const struct isa_scalar *s)
{
	bool is_signed = elem_class(s->elem) == ELEM_CLASS_SINT, is_load = s->insn.op == ISA_LD;

	switch (elem_bytes(s->elem)) {
	case 1: return !is_load ? SIM_ST_8 : is_signed ? SIM_LD_S8 : SIM_LD_U8;
	case 2: return !is_load ? SIM_ST_16 : is_signed ? SIM_LD_S16 : SIM_LD_U16;
	case 4: return !is_load ? SIM_ST_32 : is_signed ? SIM_LD_S32 : SIM_LD_U32;
	default: return is_load ? SIM_LD_64 : SIM_ST_64;
	}
}

static enum sim_quick quick_of(const struct isa_scalar *s)
{
	switch (s->insn.op) {
	case ISA_JMP: return SIM_JMP;
	case ISA_BZ: return SIM_BZ;
	case ISA_BNZ: return SIM_BNZ;
	case ISA_ST: return s->ra ? SIM_NOT_QUICK : quick_access(s);
	default: break;
	}
	if (!s->rd)
		return SIM_NOT_QUICK;
	switch (s->insn.op) {
	case ISA_LI: return SIM_LI;
	case ISA_LD: return s->ra ? SIM_NOT_QUICK : quick_access(s);
	case ISA_ALU: return SIM_ALU + s->fn;
	case ISA_ALUI: return SIM_ALUI + s->fn;
	default: return SIM_NOT_QUICK;
	}
}

static int prepare_scalar(struct sim_load *load, const struct isa_insn *insn,
			  struct sim_insn *out)
{
	int status;

	memcpy(&out->s, insn, sizeof(out->s));
	if (out->s.rd >= ISA_N_REG || out->s.ra >= ISA_N_REG || out->s.rb >= ISA_N_REG ||
	    out->s.zero)
		return sim_refuse(load, HW_ST_BAD_PROGRAM, "a field is out of range");
	if ((insn->op == ISA_ALU || insn->op == ISA_ALUI) && !isa_alu_name(out->s.fn))
		return sim_refuse(load, HW_ST_BAD_PROGRAM, "no function %u", out->s.fn);
	status = has_address(insn->op) ? prepare_access(load, out) : 0;
	/* Whose type there is, if it has one. */
	if (!status)
		out->quick = (uint8_t)quick_of(&out->s);
	return status;
}

/* The instruction that starts at `offset`, or -1. insns ascend by offset. */
static long find_insn(const struct sim_program *p, uint64_t offset)
{
	unsigned lo = 0, hi = p->n_insns;

	while (lo < hi) {
		unsigned mid = (lo + hi) / 2;

		if (p->insns[mid].offset < offset)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < p->n_insns && p->insns[lo].offset == offset ? (long)lo : -1;
}

static int resolve_branches(struct sim_load *load, struct sim_program *p)
{
	p->is_straight = true;
	for (unsigned i = 0; i < p->n_insns; i++) {
		struct sim_insn *in = &p->insns[i];
		int64_t to;
		long target;

		if (!in->family && in->s.insn.op == ISA_RWAIT)
			p->waits = true;
		if (in->family || !is_branch(in->s.insn.op))
			continue;
		load->offset = in->offset;
		if (__builtin_add_overflow((int64_t)in->offset, in->s.imm, &to) || to < 0)
			return sim_refuse(load, HW_ST_BAD_PROGRAM, "a branch overflows");
		target = find_insn(p, (uint64_t)to);
		if (target < 0)
			return sim_refuse(load, HW_ST_BAD_PROGRAM,
					  "a branch to %lld, where no instruction starts",
					  (long long)to);
		in->target = (uint32_t)target;
		if (target <= (long)i || in->s.insn.op == ISA_CALL)
			p->is_straight = false;
	}
	return 0;
}

static unsigned flags_of(unsigned op)
{
	switch (op) {
	case ISA_SORT: return ISA_FLAG_STABLE;
	case ISA_FFT: return ISA_FLAG_INVERSE;
	case ISA_GATHER: return ISA_FLAG_SORTED | ISA_FLAG_FILL;
	case ISA_SCATTER: return ISA_FLAG_SORTED | ISA_FLAG_UNIQUE;
	default: return 0;
	}
}

/* The length that an instruction's own counts ask for. */
static int check_length(struct sim_load *load, const struct isa_insn *insn,
			const struct isa_insn_info *info)
{
	const struct isa_body *b;
	uint64_t want = info->head_bytes;
	unsigned n_pre;

	if (insn->bytes < want)
		return sim_refuse(load, HW_ST_BAD_PROGRAM, "%s of %u bytes, at least %u",
				  info->mnemonic, insn->bytes, info->head_bytes);
	b = isa_body_of(insn, &n_pre);
	if (b)
		want += (b->n_in + b->n_out) * sizeof(struct isa_operand) +
			b->n_uop * sizeof(struct isa_uop);
	if (b && (b->n_in > ISA_MAX_IN || b->n_out > ISA_MAX_OUT ||
		  b->rank > ISA_MAX_RANK || b->row_rank > b->rank || b->zero))
		return sim_refuse(load, HW_ST_BAD_PROGRAM, "a field of the body is out of range");
	if (b && !sim_is_countable(ISA_MAX_RANK, b->dim))
		return sim_refuse(load, HW_ST_BAD_PROGRAM, "%s has too many points",
				  info->mnemonic);
	if (insn->bytes != want)
		return sim_refuse(load, HW_ST_BAD_PROGRAM, "%s of %u bytes, its counts say %llu",
				  info->mnemonic, insn->bytes, (unsigned long long)want);
	return 0;
}

/* Of a family's, which has just been prepared. */
static enum sim_quick quick_family(const struct sim_load *load, const struct sim_insn *out)
{
	const struct sim_move *move = out->plan;

	if (load->brief != SIM_BRIEF_MOVE)
		return load->brief == SIM_BRIEF ? SIM_BRIEFLY : SIM_NOT_QUICK;
	return move->bytes == 4 ? SIM_MOVE_4 : move->bytes == 8 ? SIM_MOVE_8 : SIM_MOVE;
}

static int prepare(struct sim_load *load, const struct isa_insn *insn,
		   struct sim_insn *out)
{
	const struct isa_insn_info *info = isa_insn_info(insn->op);
	int status;

	out->offset = (uint32_t)load->offset;
	if (!info->mnemonic)
		return sim_refuse(load, HW_ST_BAD_PROGRAM, "no opcode 0x%x", insn->op);
	if (!info->built)
		return sim_refuse(load, HW_ST_NOT_BUILT, "%s is not built", info->mnemonic);
	if (insn->flags & ~flags_of(insn->op))
		return sim_refuse(load, HW_ST_BAD_PROGRAM, "%s has flags 0x%x",
				  info->mnemonic, insn->flags);
	status = check_length(load, insn, info);
	if (status)
		return status;
	out->family = families[insn->op];
	if (!out->family)
		return prepare_scalar(load, insn, out);
	load->brief = SIM_NOT_BRIEF;
	status = out->family->prepare(load, insn, &out->plan);
	out->quick = status ? SIM_NOT_QUICK : (uint8_t)quick_family(load, out);
	return status;
}

/* Walks the code; with insns NULL only counts and checks lengths. */
static int walk(struct sim_load *load, const uint8_t *code, size_t bytes,
		struct sim_program *p)
{
	unsigned n = 0;
	size_t at = 0;

	while (at < bytes) {
		const struct isa_insn *insn = (const void *)(code + at);
		int status;

		load->offset = at;
		/* None is shorter than a scalar one. */
		if (bytes - at < sizeof(struct isa_scalar) ||
		    insn->bytes < sizeof(struct isa_scalar) || insn->bytes % 8 ||
		    insn->bytes > bytes - at)
			return sim_refuse(load, HW_ST_BAD_PROGRAM,
					  "an instruction passes the end or has no length");
		load->insn = n;
		if (p->insns) {
			status = prepare(load, insn, &p->insns[n]);
			if (status)
				return status;
		}
		at += insn->bytes;
		n++;
	}
	p->n_insns = n;
	return 0;
}

static int load_code(struct sim_load *load, struct sim_program *p, const uint8_t *code,
		     size_t bytes)
{
	int status = walk(load, code, bytes, p);

	if (status)
		return status;
	load->offset = 0;
	if (!p->n_insns)
		return sim_refuse(load, HW_ST_BAD_PROGRAM, "an empty program");
	p->insns = arena_array(&p->arena, p->n_insns + (size_t)1, sizeof(*p->insns));
	if (!p->insns)
		return sim_refuse(load, HW_ST_NO_ROOM, "out of memory");
	status = walk(load, code, bytes, p);
	if (!status)
		status = resolve_branches(load, p);
	if (!status)
		sim_settle_keeps(load, p);
	return status;
}

/* A program with its own copy of what it was made from. */
static struct sim_program *copy_in(const void *code, size_t bytes,
				   const struct hw_program_binding *bindings, unsigned n)
{
	struct sim_program *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->refs = 1;
	p->arena.limit = p->small.limit = MAX_PLANS;
	p->code = malloc(bytes);
	p->code_bytes = bytes;
	p->bindings = arena_array(&p->arena, n, sizeof(*p->bindings));
	p->n_bindings = n;
	if (!p->code || !p->bindings) {
		sim_program_free(p);
		return NULL;
	}
	memcpy(p->code, code, bytes);
	if (n)
		memcpy(p->bindings, bindings, n * sizeof(*bindings));
	for (unsigned i = 0; i < n; i++)
		p->is_joint |= (bindings[i].access & HW_BIND_PEER) != 0;
	return p;
}

int sim_program_load(const struct sim_cpu *cpu, const void *code, size_t bytes,
		     const struct hw_program_binding *bindings, unsigned n_bindings,
		     struct sim_program **out, uint64_t *detail)
{
	struct sim_load load = { .cpu = cpu, .n_bindings = n_bindings };
	struct sim_program *p;
	int status;

	*detail = 0;
	if (!bytes || bytes > SIM_MAX_CODE || bytes % 8)
		return HW_ST_BAD_FIELD;
	p = copy_in(code, bytes, bindings, n_bindings);
	if (!p)
		return HW_ST_NO_ROOM;
	load.arena = &p->arena;
	load.small = &p->small;
	load.bindings = p->bindings;
	status = load_code(&load, p, p->code, bytes);
	free(load.writes);
	if (!status && (load.scratch > MAX_SCRATCH || load.shared > MAX_SHARED))
		status = sim_refuse(&load, HW_ST_NO_ROOM, "needs %zu bytes of working memory "
				    "for each lane and %zu for all", load.scratch, load.shared);
	if (status) {
		log_info("refused at 0x%llx: %s", (unsigned long long)load.offset, load.why);
		*detail = load.offset;
		sim_program_free(p);
		return status;
	}
	p->scratch = load.scratch;
	p->shared = load.shared;
	p->bytes = bytes + p->arena.total + p->small.total;
	*out = p;
	return 0;
}

void sim_program_free(struct sim_program *p)
{
	if (!p)
		return;
	arena_free(&p->arena);
	arena_free(&p->small);
	free(p->code);
	free(p);
}
