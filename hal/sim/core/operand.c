/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the families of instructions call (core.h). Operands: checked when a program is
 * loaded, turned into addresses and faults when it runs. The lanes of a core: their working
 * memory, and the sharing of a family's work among them.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "hal/sim/core/program.h"

#define MAX_SPAN ((int64_t)1 << 60)	/* from the lowest to the highest address */
#define MAX_POINTS ((int64_t)1 << 56)	/* of an iteration space */

/* ---- for prepare() ---- */

int sim_refuse(struct sim_load *load, int status, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(load->why, sizeof(load->why), fmt, ap);
	va_end(ap);
	return status;
}

void sim_need_scratch(struct sim_load *load, size_t bytes)
{
	if (bytes > load->scratch)
		load->scratch = bytes;
}

void sim_need_shared(struct sim_load *load, size_t bytes)
{
	if (bytes > load->shared)
		load->shared = bytes;
}

/* Widens [*lo, *hi] by a range of `count` steps; -1 if it passes MAX_SPAN. */
static int widen(int64_t *lo, int64_t *hi, int64_t count, int64_t stride)
{
	int64_t span;

	if (count <= 1)
		return 0;
	if (__builtin_mul_overflow(count - 1, stride, &span) || span > MAX_SPAN ||
	    span < -MAX_SPAN)
		return -1;
	if (span < 0)
		*lo += span;
	else
		*hi += span;
	return *lo < -MAX_SPAN || *hi > MAX_SPAN ? -1 : 0;
}

bool sim_is_countable(unsigned rank, const int64_t *dim)
{
	int64_t points = 1;

	for (unsigned d = 0; d < rank; d++)
		if (dim[d] < 0 || dim[d] > MAX_POINTS ||
		    __builtin_mul_overflow(points, dim[d] ? dim[d] : 1, &points) ||
		    points > MAX_POINTS)
			return false;
	return true;
}

/* Whether a stride keeps elements of `align` bytes aligned. */
static bool is_aligned(int64_t value, unsigned align)
{
	return (value & (int64_t)(align - 1)) == 0;
}

/* need: HW_BIND_*; a peer's memory is for whom asks for a peer's. */
static int check_binding(struct sim_load *load, unsigned operand, unsigned need,
			 unsigned binding)
{
	if (binding >= load->n_bindings)
		return sim_refuse(load, HW_ST_BAD_PROGRAM,
				  "operand %u names binding %u of %u", operand, binding,
				  load->n_bindings);
	if ((load->bindings[binding].access & (need | HW_BIND_PEER)) != need)
		return sim_refuse(load, HW_ST_BAD_PROGRAM,
				  "operand %u %s binding %u, which is not declared so",
				  operand, need == (HW_BIND_WRITE | HW_BIND_PEER) ?
				  "writes to a peer by" : need & HW_BIND_WRITE ? "writes" : "reads",
				  binding);
	return 0;
}

/* [first, last) of an operand without a register lies in its binding. */
static int check_static(struct sim_load *load, const struct isa_operand *op,
			unsigned operand, int64_t first, int64_t last)
{
	uint64_t room = load->bindings[op->binding].bytes;

	if (first >= 0 && (uint64_t)last <= room)
		return 0;
	return sim_refuse(load, HW_ST_BAD_PROGRAM,
			  "operand %u reaches [%lld, %lld) of binding %u's %llu bytes",
			  operand, (long long)first, (long long)last, op->binding,
			  (unsigned long long)room);
}

/* A type as large as a COPY's element: what counts there is size and alignment. */
static unsigned elem_of_size(unsigned bytes)
{
	switch (bytes) {
	case 1: return ELEM_U8;
	case 2: return ELEM_U16;
	case 4: return ELEM_U32;
	case 8: return ELEM_U64;
	case 16: return ELEM_C128;
	default: return ELEM_INVALID;
	}
}

static int refer(struct sim_load *load, const struct isa_operand *op, unsigned operand,
		 unsigned need, unsigned elem_size, unsigned rank, const int64_t *dim,
		 const struct sim_range *extra, unsigned n_extra, struct sim_ref *ref)
{
	unsigned elem = elem_size ? elem_of_size(elem_size) : op->elem;
	unsigned bytes = elem_valid(elem) ? elem_bytes(elem) : 0;
	unsigned align = bytes > 8 ? 8 : bytes;
	int64_t lo = 0, hi = bytes, first, last;
	bool is_empty = false;

	if (!bytes)
		return sim_refuse(load, HW_ST_BAD_PROGRAM, "operand %u has no type %u",
				  operand, elem_size ? elem_size : op->elem);
	if (rank > ISA_MAX_RANK || op->reg >= ISA_N_REG || op->zero ||
	    (op->flags & ~ISA_OPERAND_ACC))
		return sim_refuse(load, HW_ST_BAD_PROGRAM,
				  "operand %u has a field out of range", operand);
	if (!sim_is_countable(rank, dim))
		return sim_refuse(load, HW_ST_BAD_PROGRAM,
				  "operand %u runs over too many points", operand);
	if (check_binding(load, operand, need, op->binding))
		return HW_ST_BAD_PROGRAM;
	if (!is_aligned(op->offset, align))
		return sim_refuse(load, HW_ST_BAD_PROGRAM, "operand %u is misaligned",
				  operand);
	for (unsigned d = 0; d < rank; d++) {
		is_empty |= dim[d] == 0;
		if (!is_aligned(op->stride[d], align) ||
		    widen(&lo, &hi, dim[d], op->stride[d]))
			return sim_refuse(load, HW_ST_BAD_PROGRAM,
					  "operand %u: dim %u is out of range", operand, d);
	}
	for (unsigned i = 0; i < n_extra; i++) {
		is_empty |= extra[i].count == 0;
		if (extra[i].count < 0 || !is_aligned(extra[i].stride, align) ||
		    widen(&lo, &hi, extra[i].count, extra[i].stride))
			return sim_refuse(load, HW_ST_BAD_PROGRAM,
					  "operand %u: range %u is out of range", operand, i);
	}
	if (is_empty)
		lo = hi = 0;
	if (__builtin_add_overflow(op->offset, lo, &first) ||
	    __builtin_add_overflow(op->offset, hi, &last))
		return sim_refuse(load, HW_ST_BAD_PROGRAM, "operand %u overflows", operand);
	if (!op->reg && !is_empty && check_static(load, op, operand, first, last))
		return HW_ST_BAD_PROGRAM;
	*ref = (struct sim_ref){ .binding = op->binding, .reg = op->reg,
				 .elem = (uint8_t)elem, .write = need & HW_BIND_WRITE,
				 .is_peer = need & HW_BIND_PEER,
				 .operand = (uint8_t)operand,
				 .offset = is_empty && !op->reg ? 0 : op->offset,
				 .lo = lo, .hi = hi };
	/* Nothing bounds the stride of a dim without a second element, nor any if there
	 * are no elements: it is none. */
	for (unsigned d = 0; d < rank; d++)
		ref->stride[d] = dim[d] > 1 && !is_empty ? op->stride[d] : 0;
	return !ref->write || !sim_note_write(load, ref) ? 0 :
	       sim_refuse(load, HW_ST_NO_ROOM, "out of memory");
}

int sim_ref(struct sim_load *load, const struct isa_operand *op, unsigned operand,
	    bool write, unsigned elem_size, unsigned rank, const int64_t *dim,
	    const struct sim_range *extra, unsigned n_extra, struct sim_ref *ref)
{
	return refer(load, op, operand, write ? HW_BIND_WRITE : HW_BIND_READ, elem_size, rank,
		     dim, extra, n_extra, ref);
}

int sim_peer_ref(struct sim_load *load, const struct isa_operand *op, unsigned operand,
		 unsigned elem_size, unsigned rank, const int64_t *dim, struct sim_ref *ref)
{
	return refer(load, op, operand, HW_BIND_WRITE | HW_BIND_PEER, elem_size, rank, dim,
		     NULL, 0, ref);
}

int sim_input_ref(struct sim_load *load, const struct isa_operand *op, unsigned operand,
		  unsigned rank, const int64_t *dim, struct sim_ref *ref)
{
	bool is_peer = op->binding < load->n_bindings &&
		       load->bindings[op->binding].access & HW_BIND_PEER;

	return refer(load, op, operand, HW_BIND_READ | (is_peer ? HW_BIND_PEER : 0), 0, rank, dim,
		     NULL, 0, ref);
}

/* ---- for run() ---- */

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
	int64_t at;
	int status = 0;

	if (ref->lo == ref->hi)
		return run->base[ref->binding];
	if (!sim_is_inside(run, ref, &at))
		status = HW_ST_BOUNDS;
	else if (!sim_is_aligned(ref, at))
		status = HW_ST_ALIGNMENT;
	if (!status)
		return run->base[ref->binding] + at;
	/* What it adds up to, be it past 64 bits. */
	sim_fault(run, status, ref, (uint64_t)ref->offset + (uint64_t)run->reg[ref->reg], bytes);
	return NULL;
}

int sim_peer_fault(struct sim_run *run, const struct sim_ref *ref, const struct sim_window *w)
{
	uint64_t chip, status;

	run->core->links->why(run->core->link, w, &chip, &status);
	return sim_fault(run, HW_ST_PEER, ref, chip, status);
}

/* What is read of this chip's own HBM is in no window: there is nothing to ask. */
bool sim_reach_begin(struct sim_run *run, const struct sim_ref *ref)
{
	struct sim_core *core = run->core;
	struct sim_window *w = core->window[ref->binding];
	uint64_t bytes = run->bytes[ref->binding];

	if (!w)
		return true;
	if (!core->links->begin(core->link, w)) {
		sim_peer_fault(run, ref, w);
		return false;
	}
	if (ref->write || !core->links->is_poisoned(w, run->base[ref->binding], bytes)) {
		if (!run->n_reached)
			atomic_store_explicit(&core->cut, NULL, memory_order_relaxed);
		run->reached[run->n_reached++] = ref;
		return true;
	}
	core->links->end(core->link, w, 0, true);
	sim_fault(run, HW_ST_POISON, ref, 0, bytes);
	return false;
}

bool sim_is_cut(const struct sim_run *run)
{
	struct sim_core *core = run->core;

	if (atomic_load_explicit(&core->cut, memory_order_relaxed))
		return true;
	for (unsigned i = 0; i < run->n_reached; i++) {
		const struct sim_ref *ref = run->reached[i];

		if (!core->links->is_broken(core->link, core->window[ref->binding]))
			continue;
		atomic_store_explicit(&core->cut, ref, memory_order_relaxed);
		return true;
	}
	return false;
}

/* Operands end together, so whichever is the first to do so ends what the lanes polled for. */
bool sim_reach_end(struct sim_run *run, const struct sim_ref *ref, uint64_t bytes)
{
	struct sim_core *core = run->core;
	struct sim_window *w = core->window[ref->binding];
	const struct sim_ref *cut;

	if (!w)
		return true;
	run->n_reached = 0;
	cut = atomic_load_explicit(&core->cut, memory_order_relaxed);
	core->links->end(core->link, w, cut ? 0 : bytes, !ref->write);
	if (cut == ref)
		sim_peer_fault(run, ref, w);
	return !cut;
}

/* ---- lanes ---- */

#define HUGE_PAGE ((size_t)2 << 20)

static size_t round_up(size_t n)
{
	size_t unit = n < HUGE_PAGE ? 64 : HUGE_PAGE;

	return (n + unit - 1) / unit * unit;
}

/* Memory of round_up(n) bytes, on huge pages if there are some and it fills one; NULL. */
static void *room(size_t n)
{
	size_t bytes = round_up(n);
	void *p = aligned_alloc(bytes < HUGE_PAGE ? 64 : HUGE_PAGE, bytes);

	if (p && bytes >= HUGE_PAGE)
		madvise(p, bytes, MADV_HUGEPAGE);
	return p;
}

int sim_core_init(struct sim_core *core, const struct sim_cpu *cpu, struct sim_pool *pool,
		  struct sim_watch *watch)
{
	*core = (struct sim_core){ .cpu = cpu, .pool = pool, .watch = watch,
				   .n_lanes = cpu->lanes, .most_insns = UINT64_MAX };
	core->scratch = calloc(cpu->lanes, sizeof(*core->scratch));
	core->base = calloc(ISA_MAX_BINDINGS, sizeof(*core->base));
	core->bytes = calloc(ISA_MAX_BINDINGS, sizeof(*core->bytes));
	core->window = calloc(ISA_MAX_BINDINGS, sizeof(*core->window));
	return core->scratch && core->base && core->bytes && core->window ? 0 : -1;
}

void sim_core_free(struct sim_core *core)
{
	for (unsigned i = 0; core->scratch && i < core->n_lanes; i++)
		free(core->scratch[i]);
	free(core->scratch);
	free(core->shared);
	free(core->kept);
	free(core->base);
	free(core->bytes);
	free(core->window);
	memset(core, 0, sizeof(*core));
}

int sim_core_reserve(struct sim_core *core, const struct sim_program *p)
{
	if (p->shared > core->shared_bytes) {
		void *grown = room(p->shared);

		if (!grown)
			return -1;
		free(core->shared);
		core->shared = grown;
		core->shared_bytes = round_up(p->shared);
	}
	if (p->kept > core->kept_bytes) {
		void *grown = room(p->kept);

		if (grown) {
			free(core->kept);
			core->kept = grown;
			core->kept_bytes = round_up(p->kept);
		}
	}
	if (p->scratch <= core->scratch_bytes)
		return 0;
	for (unsigned i = 0; i < core->n_lanes; i++) {
		void *grown = room(p->scratch);

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
	sim_pool_run(run->core->pool, n, grain, (unsigned)lanes, fn, arg);
}
