/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_CORE_INDEX_H
#define SIM_CORE_INDEX_H
/*
 * What GATHER and SCATTER share (ISA.md): batch points are walked line by line, along the
 * innermost of their dims, and each has a window of a table, placed by an index vector. Private
 * to hal/sim/core; functions are exec_index.c's. A plan's walk is made when a program is loaded:
 * sim_walk_check, sim_walk_table, sim_walk_split, sim_walk_join, sim_walk_tail, in this order.
 */
#include <string.h>

#include "hal/sim/core/core.h"
#include "hal/sim/lookup/lookup.h"

#define SIM_WALK_LARGE 4096	/* points of a window that is worth a lane of its own */
#define SIM_WALK_STRETCH 1024	/* runs of a window between two looks whether to stop, at most */

struct sim_walk {
	unsigned rank, n_batch, n_index;
	int64_t dim[ISA_MAX_RANK];
	struct isa_index comp[ISA_MAX_INDEX];
	int64_t index_stride;
	uint64_t batches;
	int64_t window;		/* points of one */
	unsigned end;		/* dims from here on are one run on both sides */
	size_t tail;		/* its bytes */
	int64_t stretch;	/* of such runs, copied between two looks whether to stop */
};

/* Checks rank, n_batch, n_index and index_stride, which are set, dims, components and the operand
 * of indices; sets the rest but end, tail and stretch. 0, or a fault status. */
int sim_walk_check(struct sim_load *load, struct sim_walk *w, const int64_t *dim,
		   const struct isa_index *comp, const struct isa_operand *idx,
		   struct sim_ref *ref);
/* The table's operand reaches further by what the components add. */
int sim_walk_table(struct sim_load *load, const struct sim_walk *w, const struct isa_operand *op,
		   unsigned number, bool write, struct sim_ref *ref);
/* Few large windows become many small ones, for the lanes to share: a leading dim of the window, or
 * a factor of it, is one of the batch along which the indices stand still. refs: all operands. */
void sim_walk_split(const struct sim_load *load, struct sim_walk *w, struct sim_ref *const *refs,
		    unsigned n);
/* Drops batch dims of one point, and makes one of two that all operands walk as one. */
void sim_walk_join(struct sim_walk *w, struct sim_ref *const *refs, unsigned n);
/* Finds the trailing dims that lie in one run on both sides, by the strides of both. */
void sim_walk_tail(struct sim_walk *w, const int64_t *ts, const int64_t *fs, unsigned bytes);
/* Which of the loops for one index, of s32, s64 and u32, a point takes; -1: none. */
int sim_walk_loops(const struct sim_walk *w, const struct sim_ref *idx);

/* Coordinates of batch point b as offsets of three operands, by their strides. */
void sim_walk_offsets(const struct sim_walk *w, uint64_t b, const int64_t *s0, const int64_t *s1,
		      const int64_t *s2, int64_t *o0, int64_t *o1, int64_t *o2);
/* Copies a window, from its dim d on, between two strided places; ends early when the run is to
 * stop. The sides may overlap: then what arrives is undefined, but the copy is not. */
void sim_walk_copy(const struct sim_run *run, const struct sim_walk *w, unsigned d, uint8_t *to,
		   const int64_t *ts, const uint8_t *from, const int64_t *fs);

/* How long all windows take on one lane, about. */
static inline double sim_walk_ns(const struct sim_walk *w)
{
	return (double)w->batches * (10 + (double)w->window);
}

/* Of all index vectors, as the program has them: before the walk is split. */
static inline uint64_t sim_walk_index_bytes(const struct sim_walk *w, unsigned elem)
{
	return w->batches * w->n_index * elem_bytes(elem);
}

/* From batch point b on, at most `most` points along the innermost dim; 1 if there is none. */
static inline int64_t sim_walk_line(const struct sim_walk *w, uint64_t b, uint64_t most)
{
	uint64_t dim = w->n_batch ? (uint64_t)w->dim[w->n_batch - 1] : 1, n = dim - b % dim;

	return (int64_t)(n < most ? n : most);
}

/* How far it is from point to point of a line. */
static inline int64_t sim_walk_step(const struct sim_walk *w, const struct sim_ref *ref)
{
	return w->n_batch ? ref->stride[w->n_batch - 1] : 0;
}

/* One run of a window; the sides may overlap. */
static inline void sim_walk_run(uint8_t *to, const uint8_t *from, size_t bytes)
{
	switch (bytes) {
	case 1: *to = *from; break;
	case 2: memmove(to, from, 2); break;
	case 4: memmove(to, from, 4); break;
	case 8: memmove(to, from, 8); break;
	case 16: memmove(to, from, 16); break;
	default: memmove(to, from, bytes);
	}
}

static inline bool sim_all_zero(const uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (p[i])
			return false;
	return true;
}

#endif
