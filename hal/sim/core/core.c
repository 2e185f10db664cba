/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Running a checked program: the scalar unit's loop, and what families ask for while
 * they run. One core belongs to one engine, so one program runs on it at a time.
 */
#include <stdlib.h>
#include <string.h>

#include "hal/base/cpu.h"
#include "hal/sim/sim_internal.h"

static size_t round_up(size_t n)
{
	return (n + 63) & ~(size_t)63;
}

int sim_core_init(struct sim_core *core, struct sim_device *dev, unsigned lanes)
{
	*core = (struct sim_core){ .dev = dev, .n_lanes = lanes };
	core->scratch = calloc(lanes, sizeof(*core->scratch));
	core->base = calloc(ISA_MAX_BINDINGS, sizeof(*core->base));
	core->bytes = calloc(ISA_MAX_BINDINGS, sizeof(*core->bytes));
	core->uses = calloc(ISA_MAX_BINDINGS, sizeof(*core->uses));
	return core->scratch && core->base && core->bytes && core->uses ? 0 : -1;
}

void sim_core_free(struct sim_core *core)
{
	for (unsigned i = 0; core->scratch && i < core->n_lanes; i++)
		free(core->scratch[i]);
	free(core->scratch);
	free(core->shared);
	free(core->base);
	free(core->bytes);
	free(core->uses);
	memset(core, 0, sizeof(*core));
}

/* Grows the lanes' scratch to what p wants. */
static int reserve(struct sim_core *core, const struct sim_program *p)
{
	if (p->shared > core->shared_bytes) {
		void *grown = aligned_alloc(64, round_up(p->shared));

		if (!grown)
			return -1;
		free(core->shared);
		core->shared = grown;
		core->shared_bytes = round_up(p->shared);
	}
	if (p->scratch <= core->scratch_bytes)
		return 0;
	for (unsigned i = 0; i < core->n_lanes; i++) {
		void *grown = aligned_alloc(64, round_up(p->scratch));

		if (!grown)
			return -1;
		free(core->scratch[i]);
		core->scratch[i] = grown;
	}
	core->scratch_bytes = round_up(p->scratch);
	return 0;
}

void *sim_scratch(struct sim_run *run, unsigned lane)
{
	return run->core->scratch[lane];
}

/* Lanes may fault at once: the first is the run's. */
int sim_fault(struct sim_run *run, int status, const struct sim_ref *ref, uint64_t va,
	      uint64_t bytes)
{
	if (atomic_flag_test_and_set(&run->core->faulting))
		return status;
	run->fault.status = (uint16_t)status;
	run->fault.operand = ref ? ref->operand : 0xffff;
	run->fault.binding = ref ? ref->binding : 0xffffffffu;
	run->fault.is_write = ref && ref->write;
	run->fault.va = va;
	run->fault.bytes = bytes;
	return status;
}

uint8_t *sim_at_dynamic(struct sim_run *run, const struct sim_ref *ref)
{
	uint64_t bytes = run->bytes[ref->binding];
	unsigned size = elem_bytes(ref->elem);
	int64_t at, lo, hi;

	if (ref->lo == ref->hi)
		return run->base[ref->binding];
	if (__builtin_add_overflow(ref->offset, run->reg[ref->reg], &at) ||
	    __builtin_add_overflow(at, ref->lo, &lo) ||
	    __builtin_add_overflow(at, ref->hi, &hi) || lo < 0 || (uint64_t)hi > bytes) {
		at = (int64_t)((uint64_t)ref->offset + (uint64_t)run->reg[ref->reg]);
		sim_fault(run, HW_ST_BOUNDS, ref, (uint64_t)at, bytes);
		return NULL;
	}
	if (at & (int64_t)((size > 8 ? 8 : size) - 1)) {
		sim_fault(run, HW_ST_ALIGNMENT, ref, (uint64_t)at, bytes);
		return NULL;
	}
	return run->base[ref->binding] + at;
}

/*
 * Every part runs even if the run is to stop: what follows in a family may rely on
 * what its parts computed. Parts poll `stop` themselves.
 */
void sim_parallel(struct sim_run *run, uint64_t n, uint64_t grain, uint64_t ns,
		  void (*fn)(void *arg, uint64_t begin, uint64_t end, unsigned lane),
		  void *arg)
{
	uint64_t lanes = run->core->n_lanes, units, parts;

	if (!n)
		return;
	if (!grain)
		grain = 1;
	if (ns < SIM_PARALLEL_NS || lanes == 1 || n <= grain) {
		fn(arg, 0, n, 0);
		return;
	}
	/* A lane for each 10 us; a few parts for each, to balance. */
	units = n / grain + !!(n % grain);
	if (lanes > ns / (SIM_PARALLEL_NS / 2))
		lanes = ns / (SIM_PARALLEL_NS / 2);
	if (lanes > units)
		lanes = units;
	parts = lanes * 4 > units ? units : lanes * 4;
	grain *= (units + parts - 1) / parts;
	sim_pool_run(run->core->dev->sim->pool, n, grain, (unsigned)lanes, fn, arg);
}

static int64_t divide(int64_t a, int64_t b)
{
	if (!b)
		return -1;
	return b == -1 ? (int64_t)(0 - (uint64_t)a) : a / b;
}

static int64_t remain(int64_t a, int64_t b)
{
	if (!b)
		return a;
	return b == -1 ? 0 : a % b;
}

static int64_t compute(unsigned fn, int64_t a, int64_t b)
{
	uint64_t ua = (uint64_t)a, ub = (uint64_t)b;

	switch (fn) {
	case ISA_ALU_ADD: return (int64_t)(ua + ub);
	case ISA_ALU_SUB: return (int64_t)(ua - ub);
	case ISA_ALU_MUL: return (int64_t)(ua * ub);
	case ISA_ALU_DIV: return divide(a, b);
	case ISA_ALU_REM: return remain(a, b);
	case ISA_ALU_MIN: return a < b ? a : b;
	case ISA_ALU_MAX: return a > b ? a : b;
	case ISA_ALU_AND: return a & b;
	case ISA_ALU_OR: return a | b;
	case ISA_ALU_XOR: return a ^ b;
	case ISA_ALU_SHL: return ub < 64 ? (int64_t)(ua << ub) : 0;
	case ISA_ALU_SHR: return ub < 64 ? (int64_t)(ua >> ub) : 0;
	case ISA_ALU_SAR: return a >> (ub < 64 ? ub : 63);
	case ISA_ALU_EQ: return a == b;
	case ISA_ALU_NE: return a != b;
	case ISA_ALU_LT: return a < b;
	case ISA_ALU_LE: return a <= b;
	default: return ua < ub;
	}
}

static int64_t load_int(const uint8_t *p, unsigned elem)
{
	int64_t value = 0;
	unsigned bits = elem_bytes(elem) * 8;

	memcpy(&value, p, elem_bytes(elem));
	if (elem_class(elem) == ELEM_CLASS_SINT && bits < 64)
		value = (int64_t)((uint64_t)value << (64 - bits)) >> (64 - bits);
	return value;
}

static void set_reg(struct sim_run *run, unsigned r, int64_t value)
{
	if (r)
		run->reg[r] = value;
}

/* One load or store; 0 or a fault. */
static int access_memory(struct sim_run *run, const struct sim_insn *in)
{
	uint8_t *p = sim_at(run, in->plan);

	if (!p)
		return run->fault.status;
	if (in->s.insn.op == ISA_LD)
		set_reg(run, in->s.rd, load_int(p, in->s.elem));
	else
		memcpy(p, &run->reg[in->s.rb], elem_bytes(in->s.elem));
	return 0;
}

/* The interpreter loop. It may run for ever, so it looks at `stop` each time. */
static int run_program(struct sim_run *run, const struct sim_program *p)
{
	uint32_t stack[ISA_CALL_DEPTH];
	unsigned depth = 0, pc = 0;

	for (;; run->core->n_insns++) {
		const struct sim_insn *in = &p->insns[pc];
		const struct isa_scalar *s = &in->s;
		int status = 0;

		if (pc == p->n_insns) {
			run->fault.pc = p->code_bytes;
			return sim_fault(run, HW_ST_PC, NULL, 0, 0);
		}
		run->fault.pc = in->offset;
		if (sim_stopped(run))
			return HW_ST_RESET;
		pc++;
		if (run->core->dev->written)
			status = sim_watch_insn(run, (const void *)((const char *)p->code +
								     in->offset));
		if (status)
			return status;
		if (in->family) {
			status = in->family->run(run, in->plan);
			if (status)
				return status;
			continue;
		}
		switch (s->insn.op) {
		case ISA_HALT:
			return 0;
		case ISA_LI:
			set_reg(run, s->rd, s->imm);
			break;
		case ISA_ALU:
			set_reg(run, s->rd, compute(s->fn, run->reg[s->ra], run->reg[s->rb]));
			break;
		case ISA_ALUI:
			set_reg(run, s->rd, compute(s->fn, run->reg[s->ra], s->imm));
			break;
		case ISA_LD:
		case ISA_ST:
			status = access_memory(run, in);
			break;
		case ISA_JMP:
			pc = in->target;
			break;
		case ISA_BZ:
			pc = run->reg[s->ra] ? pc : in->target;
			break;
		case ISA_BNZ:
			pc = run->reg[s->ra] ? in->target : pc;
			break;
		case ISA_CALL:
			if (depth == ISA_CALL_DEPTH)
				return sim_fault(run, HW_ST_STACK, NULL, 0, 0);
			stack[depth++] = pc;
			pc = in->target;
			break;
		case ISA_RET:
			if (!depth)
				return sim_fault(run, HW_ST_STACK, NULL, 0, 0);
			pc = stack[--depth];
			break;
		default:	/* TRAP */
			return sim_fault(run, HW_ST_PROGRAM_TRAP, NULL, (uint64_t)s->imm, 0);
		}
		if (status)
			return status;
	}
}

int sim_core_run(struct sim_core *core, const struct sim_program *p, atomic_bool *stop,
		 struct sim_run *run)
{
	unsigned saved;
	int status;

	run->cpu = &core->dev->sim->cpu;
	run->core = core;
	run->base = core->base;
	run->bytes = core->bytes;
	run->stop = stop;
	core->n_insns = 0;
	atomic_flag_clear(&core->faulting);
	if (reserve(core, p))
		return sim_fault(run, HW_ST_NO_MEMORY, NULL, 0, p->scratch + p->shared);
	run->shared = core->shared;
	memset(run->reg, 0, sizeof(run->reg));
	sim_watch_begin(run, p);
	saved = cpu_enter_arithmetic();
	status = run_program(run, p);
	cpu_leave_arithmetic(saved);
	/* A family that ended early because of `stop` may report success. */
	if (!status && sim_stopped(run))
		status = HW_ST_RESET;
	if (status && !run->fault.status)
		sim_fault(run, status, NULL, 0, 0);
	return status;
}
