/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_BODY_H
#define SIM_BODY_H
/*
 * What body.c and body_tile.c offer beyond core.h, to exec_vec*.c. Private to
 * hal/sim.
 */
#include "hal/sim/core.h"
#include "hal/sim/uop.h"

/*
 * Outputs (a bit each) whose value may be computed straight into memory: no uop
 * after the one that makes it reads an input, so that an output over an input's own
 * memory does not spoil it.
 */
uint32_t sim_body_direct(const struct sim_body *b);
/*
 * As sim_body_run(). direct[j], where not NULL, is dense room for the whole tile
 * for output j (of sim_body_direct()); the value is computed there if it turns out full,
 * as sim_body_value() tells by its address.
 */
void sim_body_run_into(const struct sim_body *b, const struct sim_run *run,
		       const struct sim_tile *tile, void *scratch,
		       void *const *direct);

/*
 * 0 if `out` is an output that a value of its type can be combined into: a known
 * combine whose operation exists for the type. For families with combining outputs.
 */
int sim_check_combine(struct sim_load *load, const struct isa_operand *out, unsigned j);
/* Writes the identity of `combine` to every element that `ref` touches over dims. */
void sim_out_identity(const struct sim_ref *ref, uint8_t *first, unsigned rank,
		      const int64_t *dim, unsigned combine);

/* A tile's address in an operand. */
static inline uint8_t *sim_tile_at(const struct sim_ref *ref, const uint8_t *first,
				   const struct sim_tile *tile)
{
	uint8_t *p = (uint8_t *)(uintptr_t)first;

	for (unsigned d = 0; d < tile->rank; d++)
		p += tile->index[d] * ref->stride[d];
	return p;
}
/* Whether the tile is one dense array in the operand's memory. */
bool sim_tile_is_dense(const struct sim_ref *ref, const struct sim_tile *tile);

#endif
