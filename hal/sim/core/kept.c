/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an instruction makes of memory that stays as it is, kept from one turn of a loop to the
 * next.
 *
 * A loop's products pack the same weights turn after turn, which for few rows takes as long as a
 * quarter of the sums. So an instruction may ask for room in which what it made stays for the run
 * (sim_keep). That nothing changes meanwhile is found in three steps. When the program is loaded,
 * each instruction that may write what is kept of is marked, and forgets all that is kept when it
 * runs. When a run begins, a binding that is written may turn out to be the same memory as one
 * that is kept of: then it keeps nothing. And a run that was away, while others had the core,
 * starts anew. What others write meanwhile is for programs that wait for it: such keep nothing.
 */
#include <stdlib.h>
#include <string.h>

#include "hal/sim/core/program.h"

#define MOST_KEPT ((size_t)16 << 20)	/* bytes of one program */

/* ---- loading ---- */

unsigned sim_keep(struct sim_load *load, const struct sim_ref *ref, size_t bytes, size_t *at)
{
	size_t room = load->kept ? load->kept : SIM_MAX_KEPT;

	if (ref->reg || ref->is_peer || load->n_keeps == SIM_MAX_KEPT ||
	    bytes > MOST_KEPT - room)
		return 0;
	load->keeps[load->n_keeps++] = (struct sim_span){ .binding = ref->binding,
		.lo = ref->offset + ref->lo, .hi = ref->offset + ref->hi };
	*at = room;
	load->kept = room + (bytes + 63) / 64 * 64;
	return load->n_keeps;
}

int sim_note_write(struct sim_load *load, const struct sim_ref *ref)
{
	size_t more = load->room_writes ? 2 * load->room_writes : 64;
	struct sim_write *grown;

	if (load->n_writes == load->room_writes) {
		grown = realloc(load->writes, more * sizeof(*grown));
		if (!grown)
			return -1;
		load->writes = grown;
		load->room_writes = more;
	}
	load->writes[load->n_writes++] = (struct sim_write){ load->insn, {
		.binding = ref->binding,
		.lo = ref->reg ? INT64_MIN : ref->offset + ref->lo,
		.hi = ref->reg ? INT64_MAX : ref->offset + ref->hi } };
	return 0;
}

void sim_settle_keeps(struct sim_load *load, struct sim_program *p)
{
	if (p->is_straight || p->waits || !load->n_keeps)
		return;
	p->keeps = arena_copy(load->arena, load->keeps, load->n_keeps * sizeof(*load->keeps));
	if (!p->keeps)
		return;
	p->n_keeps = load->n_keeps;
	p->kept = load->kept;
	for (size_t i = 0; i < load->n_writes; i++) {
		const struct sim_write *w = &load->writes[i];
		struct sim_insn *in = &p->insns[w->insn];

		for (unsigned k = 0; k < p->n_keeps && !in->forgets; k++)
			in->forgets = p->keeps[k].binding == w->to.binding &&
				      p->keeps[k].lo < w->to.hi && w->to.lo < p->keeps[k].hi;
		if (in->forgets)
			in->quick = SIM_NOT_QUICK;
	}
}

/* ---- running ---- */

/* Whether another binding that the program may write lies over what it keeps of. */
static bool is_written_elsewhere(const struct sim_run *run, const struct sim_program *p,
				 const struct sim_span *kept)
{
	const uint8_t *lo = run->base[kept->binding] + kept->lo;
	const uint8_t *hi = run->base[kept->binding] + kept->hi;

	for (unsigned i = 0; i < p->n_bindings; i++)
		if (i != kept->binding && p->bindings[i].access & HW_BIND_WRITE &&
		    run->bytes[i] && run->base[i] < hi && lo < run->base[i] + run->bytes[i])
			return true;
	return false;
}

void sim_begin_keeps(struct sim_run *run, const struct sim_program *p)
{
	run->kept = NULL;
	if (!p->kept || run->core->kept_bytes < p->kept)
		return;
	for (unsigned k = 0; k < p->n_keeps; k++)
		if (p->keeps[k].lo < p->keeps[k].hi && is_written_elsewhere(run, p, &p->keeps[k]))
			return;
	run->kept = run->core->kept;
	sim_forget_keeps(run);
}

uint8_t *sim_kept_flag(struct sim_run *run, unsigned n)
{
	const struct sim_cells *cells = run->core->cells;

	if (!run->kept)
		return NULL;
	/* Faulty cells change by themselves, and what they changed stays when they are mended. */
	if (cells && atomic_load_explicit(&cells->n, memory_order_relaxed)) {
		sim_forget_keeps(run);
		return NULL;
	}
	return &run->kept[n - 1];
}
