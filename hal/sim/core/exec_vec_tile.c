/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A tile of VEC or of a fold: its inputs are made dense, the body runs, outputs are stored.
 */
#include "hal/sim/core/exec_vec.h"

#include <string.h>

static bool is_full(const struct vec_plan *p, const struct sim_tile *tile)
{
	return tile->rows == p->tiling.rows && tile->cols == p->tiling.cols;
}

void vec_load(const struct vec_job *job, struct sim_tile *tile, struct vec_last *last,
	      char *scratch)
{
	const struct vec_plan *p = job->plan;
	bool full = is_full(p, tile), same;

	same = last->rows == tile->rows && last->cols == tile->cols;
	last->rows = tile->rows;
	last->cols = tile->cols;
	for (unsigned j = 0; j < p->n_in; j++) {
		const uint8_t *at = sim_tile_at(&p->in[j], job->in[j], tile);
		unsigned kind = full ? p->in_kind[j] : SIM_TILE_ANY;
		char *room = scratch + p->in_room[j];

		if (kind != SIM_TILE_ANY) {
			tile->in[j] = at;
			tile->in_spread &= ~(1u << j);
			tile->in_row &= ~(1u << j);
			tile->in_spread |= (uint32_t)(kind == SIM_TILE_SPREAD) << j;
			tile->in_row |= (uint32_t)(kind == SIM_TILE_ROW) << j;
			continue;
		}
		/* a row that all tiles share is copied once */
		if (same && last->at[j] == at) {
			tile->in[j] = room;
			tile->in_spread &= ~(1u << j);
			tile->in_row &= ~(1u << j);
			continue;
		}
		sim_tile_in(&p->in[j], job->in[j], tile, j, room);
		last->at[j] = tile->in[j] == room && !(tile->in_row >> j & 1) ? at : NULL;
		if (p->copied >> j & 1)
			sim_tile_keep(tile, j, elem_bytes(p->in[j].elem), room);
	}
}

/* A row value has no points along the row. */
static void store_row_value(const struct vec_out *out, uint8_t *first,
			    const struct sim_tile *tile, const void *value,
			    bool is_spread, unsigned combine)
{
	struct sim_tile rows = *tile;

	rows.cols = 1;
	for (unsigned k = 0; k < rows.col_dims; k++)
		rows.col_dim[k] = 1;
	sim_tile_out(&out->ref, first, &rows, value, is_spread, false, combine);
}

static void store(const struct vec_job *job, unsigned j, const struct sim_tile *tile,
		  char *scratch, const void *done)
{
	const struct vec_out *out = &job->plan->out[j];
	bool is_spread, is_row;
	const void *value = sim_body_value(job->plan->body, out->value, tile, scratch,
					   &is_spread, &is_row);

	if (value == done)
		return;
	if (out->row_value)
		store_row_value(out, job->out[j], tile, value, is_spread, out->combine);
	else
		sim_tile_out(&out->ref, job->out[j], tile, value, is_spread, is_row,
			     out->combine);
}

void vec_body(const struct vec_job *job, const struct sim_tile *tile, char *scratch)
{
	const struct vec_plan *p = job->plan;
	void *direct[ISA_MAX_OUT] = { NULL };
	bool full = is_full(p, tile);

	for (unsigned j = 0; j < p->n_out; j++) {
		const struct sim_ref *ref = &p->out[j].ref;

		if (!(p->direct >> j & 1))
			continue;
		if (full || sim_tile_kind(ref, tile) == SIM_TILE_DENSE)
			direct[j] = sim_tile_at(ref, job->out[j], tile);
	}
	sim_body_run_into(p->body, job->run, tile, scratch, direct);
	for (unsigned j = 0; j < p->n_out; j++)
		if (p->out[j].combine == ISA_STORE || !p->uniform)
			store(job, j, tile, scratch, direct[j]);
}
