/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Running a checked program: the scalar unit's loop, which hands what is not its own to
 * the families. One core belongs to one engine, so one program runs on it at a time.
 */
#include <string.h>

#include "hal/base/clock.h"
#include "hal/base/cpu.h"
#include "hal/sim/core/program.h"

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

static inline int64_t compute(unsigned fn, int64_t a, int64_t b)
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

/* By sizes the compiler knows: a copy of so many bytes goes through memory. */
#define LOAD(T) do { T x; memcpy(&x, p, sizeof(x)); return (int64_t)x; } while (0)
static int64_t load_int(const uint8_t *p, unsigned elem)
{
	bool is_signed = elem_class(elem) == ELEM_CLASS_SINT;
	int64_t value = 0;

	switch (elem_bytes(elem)) {
	case 1:
		if (is_signed)
			LOAD(int8_t);
		LOAD(uint8_t);
	case 2:
		if (is_signed)
			LOAD(int16_t);
		LOAD(uint16_t);
	case 4:
		if (is_signed)
			LOAD(int32_t);
		LOAD(uint32_t);
	default:
		memcpy(&value, p, sizeof(value));
		return value;
	}
}
#undef LOAD

/* In one piece, for hosts and other chips may look at it while the program runs. Addresses are
 * aligned, and what lies there may have been written as any type. */
#define STORE_AT(T, p, value) do { typedef T __attribute__((may_alias)) cell; \
				   __atomic_store_n((cell *)(void *)(p), (cell)(value), \
						    __ATOMIC_RELAXED); } while (0)
static void store_int(uint8_t *p, int64_t value, unsigned bytes)
{
	switch (bytes) {
	case 1: STORE_AT(uint8_t, p, value); break;
	case 2: STORE_AT(uint16_t, p, value); break;
	case 4: STORE_AT(uint32_t, p, value); break;
	default: STORE_AT(uint64_t, p, value); break;
	}
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
	sim_cells_access(run->core->cells, p);
	if (in->s.insn.op == ISA_LD)
		set_reg(run, in->s.rd, load_int(p, in->s.elem));
	else
		store_int(p, run->reg[in->s.rb], elem_bytes(in->s.elem));
	if (in->s.insn.op == ISA_ST)
		sim_cells_wrote(run->core->cells, p, elem_bytes(in->s.elem));
	return 0;
}

/* Whether to ask for the time, which takes as long as many a scalar instruction. */
static bool may_pass(const struct sim_run *run, bool was_long)
{
	return run->core->turn && sim_turn_is_wanted(run->core->turn) &&
	       (was_long || !(run->core->n_insns & 63));
}

static int raise(struct sim_run *run, const struct sim_insn *in)
{
	const struct sim_core *core = run->core;
	const struct sim_ref *ref = in->plan;
	struct sim_window *w = core->window[ref->binding];
	uint8_t *p = sim_at(run, ref);

	if (!p)
		return run->fault.status;
	return core->links->raise(core->link, w, (void *)p, in->s.fn,
				  (uint64_t)run->reg[in->s.rb]) ? 0 :
		sim_peer_fault(run, ref, w);
}

/* RWAIT. A semaphore that is there counts, whatever became of those who raised it. */
static int await(struct sim_run *run, const struct sim_insn *in)
{
	const struct sim_core *core = run->core;
	const uint8_t *p = sim_at(run, in->plan);
	const struct sim_window *broken;
	uint64_t value;

	if (!p)
		return run->fault.status;
	if (p < core->hbm || p >= core->hbm + core->hbm_bytes)
		return sim_fault(run, HW_ST_BINDING, in->plan, 0, 8);
	run->sem = (const void *)p;
	run->until = (uint64_t)run->reg[in->s.rb];
	value = __atomic_load_n(run->sem, __ATOMIC_ACQUIRE);
	if (value < run->until) {
		broken = core->links->broken(core->link);
		return broken ? sim_peer_fault(run, NULL, broken) : SIM_PARKED;
	}
	core->links->hear(core->link);
	set_reg(run, in->s.rd, (int64_t)value);
	return 0;
}

/* A group of instructions has ended with `in`, which counts if it is `done`. */
static void trace_group(struct sim_run *run, const struct sim_insn *in, unsigned op, bool done)
{
	struct sim_tracer *t = run->core->tracer;
	int64_t now = clock_ns();
	uint64_t insns = run->core->n_insns + done, bytes = run->read_bytes + run->write_bytes;
	uint64_t ops = 2 * run->matrix_ops + run->vector_ops;
	struct hw_trace_record *r = &t->records[t->n++];

	*r = t->like;
	r->kind = HW_TRACE_GROUP;
	r->begin_ns = (uint64_t)(t->last - t->epoch);
	r->end_ns = (uint64_t)(now - t->epoch);
	r->pc = in->offset;
	r->op = (uint8_t)op;
	r->n_insns = (uint32_t)(insns - t->n_insns);
	r->bytes = bytes - t->bytes;
	r->ops = ops - t->ops;
	t->last = now;
	t->n_insns = insns;
	t->bytes = bytes;
	t->ops = ops;
	if (t->n == SIM_TRACED)
		t->take(t);
}

/* Scalar instructions that no tensor instruction follows. */
static void trace_rest(struct sim_run *run, const struct sim_insn *in)
{
	if (run->core->tracer && run->core->n_insns != run->core->tracer->n_insns)
		trace_group(run, in, in->s.insn.op, false);
}

static inline bool wants_to_yield(const struct sim_core *core)
{
	return atomic_load_explicit(&core->yield, memory_order_relaxed) ||
	       core->n_insns >= core->most_insns;
}

/* Whether nobody wants to know of each quick instruction, or to stop before the next. */
static inline bool is_quiet(const struct sim_run *run)
{
	const struct sim_core *core = run->core;

	return !sim_stopped(run) && !core->watch->written && !core->tracer &&
	       !wants_to_yield(core) &&
	       !(core->turn && sim_turn_is_wanted(core->turn)) &&
	       !(core->cells && atomic_load_explicit(&core->cells->n, memory_order_relaxed));
}

#define LOAD(T) do { T x; memcpy(&x, base[s->binding] + s->imm, sizeof(x)); \
		     reg[s->rd] = (int64_t)x; } while (0)
#define STORE(T) STORE_AT(T, base[s->binding] + s->imm, reg[s->rb])
/* One that faults is left to who records that. */
#define MOVE(n) do { const struct sim_move *m = in->plan; \
		     const uint8_t *from = sim_at_quietly(run, &m->src); \
		     uint8_t *to = sim_at_quietly(run, &m->dst); \
		     if (!from || !to) \
			     goto give_up; \
		     memmove(to, from, (n)); \
		     moved += (n); } while (0)
#define GO_TO_TARGET do { in = insns + in->target; \
			  if (n >= most || !is_quiet(run)) goto out; \
			  goto next; } while (0)

/*
 * Runs quick instructions from pc on; returns the index of the next, which is another,
 * one to which a branch was taken while somebody wanted something, or one that faults. *status is
 * a fault's that the one before has recorded. is_quiet() when it begins.
 */
static unsigned run_quick(struct sim_run *run, const struct sim_insn *insns, unsigned pc,
			  int *status)
{
	const struct sim_insn *in = insns + pc;
	uint8_t *const *base = run->base;
	int64_t *reg = run->reg;
	uint64_t n = 0, moved = 0, most = run->core->most_insns - run->core->n_insns;

	for (;; in++) {
		const struct isa_scalar *s;

next:		s = &in->s;
		n++;
		switch (in->quick) {
		case SIM_NOT_QUICK:
			goto give_up;
		case SIM_LI: reg[s->rd] = s->imm; break;
		case SIM_LD_S8: LOAD(int8_t); break;
		case SIM_LD_S16: LOAD(int16_t); break;
		case SIM_LD_S32: LOAD(int32_t); break;
		case SIM_LD_U8: LOAD(uint8_t); break;
		case SIM_LD_U16: LOAD(uint16_t); break;
		case SIM_LD_U32: LOAD(uint32_t); break;
		case SIM_LD_64: LOAD(uint64_t); break;
		case SIM_ST_8: STORE(uint8_t); break;
		case SIM_ST_16: STORE(uint16_t); break;
		case SIM_ST_32: STORE(uint32_t); break;
		case SIM_ST_64: STORE(uint64_t); break;
		case SIM_MOVE_4: MOVE(4); break;
		case SIM_MOVE_8: MOVE(8); break;
		case SIM_MOVE: MOVE(m->bytes); break;
		case SIM_BRIEFLY:
			*status = in->family->run(run, in->plan);
			if (*status) {
				run->fault.pc = in->offset;
				goto give_up;
			}
			in++;
			if (!is_quiet(run))
				goto out;
			goto next;
		case SIM_JMP:
			GO_TO_TARGET;
		case SIM_BZ:
			if (!reg[s->ra])
				GO_TO_TARGET;
			break;
		case SIM_BNZ:
			if (reg[s->ra])
				GO_TO_TARGET;
			break;
#define ALU(name, number, mnemonic, effect) \
		case SIM_ALU + ISA_ALU_##name: \
			reg[s->rd] = compute(ISA_ALU_##name, reg[s->ra], reg[s->rb]); \
			break; \
		case SIM_ALUI + ISA_ALU_##name: \
			reg[s->rd] = compute(ISA_ALU_##name, reg[s->ra], s->imm); \
			break;
#include "hal/hw/alu.def"
#undef ALU
		default:
			__builtin_unreachable();
		}
	}
give_up:
	n--;
out:
	run->core->n_insns += n;
	run->read_bytes += moved;
	run->write_bytes += moved;
	return (unsigned)(in - insns);
}
#undef LOAD
#undef STORE
#undef MOVE
#undef GO_TO_TARGET

/* Who waits for its turn leaves its lane to others. */
static void pass_turn(struct sim_run *run)
{
	sim_pool_end_run(run->core->pool);
	sim_turn_pass(run->core->turn, run->stop);
	sim_pool_begin_run(run->core->pool);
}

/* The interpreter loop. It may run for ever, so it looks at `stop` each time. */
static int run_program(struct sim_run *run, const struct sim_program *p)
{
	uint32_t *stack = run->stack;
	unsigned depth = run->depth, pc = run->pc;
	bool was_long = false;

	for (;; run->core->n_insns++) {
		const struct sim_insn *in;
		const struct isa_scalar *s;
		int status = 0;

		if (p->insns[pc].quick && is_quiet(run)) {
			pc = run_quick(run, p->insns, pc, &status);
			if (status)
				return status;
			was_long = false;
		}
		in = &p->insns[pc];
		s = &in->s;
		if (pc == p->n_insns) {
			run->fault.pc = p->code_bytes;
			return sim_fault(run, HW_ST_PC, NULL, 0, 0);
		}
		run->fault.pc = in->offset;
		if (may_pass(run, was_long))
			pass_turn(run);
		if (sim_stopped(run))
			return HW_ST_RESET;
		if (wants_to_yield(run->core)) {
			trace_rest(run, in);
			run->pc = pc;
			run->depth = depth;
			return SIM_YIELDED;
		}
		was_long = in->family;
		pc++;
		if (run->core->watch->written)
			status = sim_watch_insn(run, p, (const void *)
						((const char *)p->code + in->offset));
		if (status)
			return status;
		if (in->family) {
			status = in->family->run(run, in->plan);
			sim_cells_wrote(run->core->cells, NULL, 0);
			if (status)
				return status;
			if (in->forgets && run->kept)
				sim_forget_keeps(run);
			if (run->core->tracer)
				trace_group(run, in, ((const struct isa_insn *)(const void *)
					((const char *)p->code + in->offset))->op, true);
			continue;
		}
		switch (s->insn.op) {
		case ISA_HALT:
			trace_rest(run, in);
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
			if (in->forgets && run->kept)
				sim_forget_keeps(run);
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
		case ISA_RSIG:
			status = raise(run, in);
			break;
		case ISA_RWAIT:
			status = await(run, in);
			if (status == SIM_PARKED)
				trace_rest(run, in);
			run->pc = pc - 1;
			run->depth = depth;
			break;
		default:	/* TRAP */
			return sim_fault(run, HW_ST_PROGRAM_TRAP, NULL, (uint64_t)s->imm, 0);
		}
		if (status)
			return status;
	}
}

static int go_on(const struct sim_program *p, struct sim_run *run)
{
	struct sim_tracer *t = run->core->tracer;
	unsigned saved = cpu_enter_arithmetic();
	int status;

	if (t) {
		t->last = clock_ns();
		t->n_insns = t->ops = t->bytes = 0;
	}
	sim_pool_begin_run(run->core->pool);
	status = run_program(run, p);
	sim_pool_end_run(run->core->pool);
	cpu_leave_arithmetic(saved);
	/* A family that ended early because of `stop` may report success. */
	if (!status && sim_stopped(run))
		status = HW_ST_RESET;
	if (status > 0 && !run->fault.status)
		sim_fault(run, status, NULL, 0, 0);
	return status;
}

int sim_core_resume(struct sim_core *core, const struct sim_program *p, atomic_bool *stop,
		    struct sim_run *run)
{
	run->stop = stop;
	run->n_reached = 0;
	core->n_insns = 0;
	if (sim_core_reserve(core, p))
		return sim_fault(run, HW_ST_NO_MEMORY, NULL, 0, p->scratch + p->shared);
	run->shared = core->shared;
	sim_begin_keeps(run, p);
	atomic_flag_clear(&core->faulting);
	return go_on(p, run);
}

int sim_core_run(struct sim_core *core, const struct sim_program *p, atomic_bool *stop,
		 struct sim_run *run)
{
	run->cpu = core->cpu;
	run->core = core;
	run->base = core->base;
	run->bytes = core->bytes;
	run->all_bytes = 0;
	for (unsigned i = 0; i < p->n_bindings; i++)
		run->all_bytes += core->bytes[i];
	run->stop = stop;
	run->n_reached = 0;
	core->n_insns = 0;
	atomic_flag_clear(&core->faulting);
	if (sim_core_reserve(core, p))
		return sim_fault(run, HW_ST_NO_MEMORY, NULL, 0, p->scratch + p->shared);
	run->shared = core->shared;
	sim_begin_keeps(run, p);
	memset(run->reg, 0, sizeof(run->reg));
	run->pc = run->depth = 0;
	sim_watch_begin(run, p);
	sim_cells_wrote(core->cells, NULL, 0);
	return go_on(p, run);
}
