/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Faulty cells of HBM (cell.def), as INJECT puts them there.
 *
 * But for class ROW, which counts accesses, what a faulty cell holds changes only when something is
 * written, so nothing looks at reads: after each store of the device HBM is made what the faults
 * make of it. A store is one event for one cell, as march tests count. One of many cells, as a
 * copy's, goes from the lowest to the highest: a victim above its aggressor is written after it was
 * disturbed, so that is not seen. Where it is not known what was written, changes tell.
 *
 * An address that reaches two cells (BOTH_*) has a cell of its own that nobody sees alone; it is
 * kept in the record, and memory holds what a read gives.
 */
#include <string.h>

#include "hal/hw/desc.h"
#include "hal/sim/core/program.h"

enum class { SAF, TF, CFIN, CFID, CFST, AF, ROW };
enum needs { ONE, TWO, NUMBER };

static const struct { uint8_t class, needs; } kinds[] = {
#define CELL(name, number, class, needs, meaning) [number] = { class, needs },
#include "hal/hw/cell.def"
#undef CELL
};
#define N_KINDS (sizeof(kinds) / sizeof(*kinds))

static bool get_bit(const struct sim_cells *c, uint64_t at)
{
	return c->hbm[at / 8] >> at % 8 & 1;
}

static void set_bit(struct sim_cells *c, uint64_t at, bool value)
{
	uint8_t mask = (uint8_t)(1u << at % 8);

	c->hbm[at / 8] = (uint8_t)(value ? c->hbm[at / 8] | mask : c->hbm[at / 8] & ~mask);
}

static uint64_t get_word(const struct sim_cells *c, uint64_t at)
{
	uint64_t value;

	memcpy(&value, c->hbm + at / 64 * 8, 8);
	return value;
}

static void set_word(struct sim_cells *c, uint64_t at, uint64_t value)
{
	memcpy(c->hbm + at / 64 * 8, &value, 8);
}

/* What one store covered; bytes 0: nobody knows. */
struct store { uint64_t from, bytes; };

static bool covers(const struct store *s, uint64_t at)
{
	return s->bytes && at / 8 >= s->from && at / 8 - s->from < s->bytes;
}

/* Whether the store went over the victim after it had been over the aggressor. */
static bool is_overwritten(const struct store *s, const struct sim_cell *f)
{
	return covers(s, f->victim) && covers(s, f->by) && f->victim / 64 > f->by / 64;
}

static void transit(struct sim_cells *c, struct sim_cell *f)
{
	bool now = get_bit(c, f->victim), rises = f->kind == HW_CELL_NO_RISE;

	if (now != f->was_victim && now == rises)
		set_bit(c, f->victim, !now);
}

/* Coupling by a change of the aggressor. */
static void disturb(struct sim_cells *c, struct sim_cell *f, const struct store *s)
{
	bool now = get_bit(c, f->by), value;
	bool by_rise = f->kind == HW_CELL_INVERT_BY_RISE || f->kind == HW_CELL_CLEAR_BY_RISE ||
		       f->kind == HW_CELL_SET_BY_RISE;

	if (now == f->was_by || now != by_rise || is_overwritten(s, f))
		return;
	if (kinds[f->kind].class == CFIN)
		value = !get_bit(c, f->victim);
	else
		value = f->kind == HW_CELL_SET_BY_RISE || f->kind == HW_CELL_SET_BY_FALL;
	set_bit(c, f->victim, value);
}

static void hold(struct sim_cells *c, struct sim_cell *f)
{
	bool when = f->kind == HW_CELL_CLEAR_WHILE_1 || f->kind == HW_CELL_SET_WHILE_1;

	if (get_bit(c, f->by) == when)
		set_bit(c, f->victim, f->kind == HW_CELL_SET_WHILE_0 ||
				      f->kind == HW_CELL_SET_WHILE_1);
}

static uint64_t join(const struct sim_cell *f, uint64_t own, uint64_t other)
{
	return f->kind == HW_CELL_BOTH_AND ? own & other : own | other;
}

/* An address that reaches another's cell, instead of its own or as well. */
static void redirect(struct sim_cells *c, struct sim_cell *f, const struct store *s)
{
	uint64_t here = get_word(c, f->victim), there = get_word(c, f->by);
	bool here_stored = covers(s, f->victim) || here != f->victim_word;
	bool there_stored = covers(s, f->by) || there != f->by_word;
	bool here_last = here_stored && (!there_stored || f->victim > f->by);

	if (here_stored)
		f->own = here;
	if (here_last) {
		there = here;
	} else if (there_stored) {
		here = f->kind == HW_CELL_ELSEWHERE ? there : join(f, f->own, there);
	}
	set_word(c, f->victim, here);
	set_word(c, f->by, there);
	f->victim_word = here;
	f->by_word = there;
}

/* ---- rows ---- */

#define STRIDE ((uint64_t)HW_HBM_ROW_BYTES * HW_HBM_BANKS)	/* to the next row of a bank */

static uint64_t row_of(uint64_t byte)
{
	return byte / STRIDE;
}

static uint64_t bank_of(uint64_t byte)
{
	return byte / HW_HBM_ROW_BYTES % HW_HBM_BANKS;
}

/* Bytes that a copy or the like stored: they refresh the cell's row if they are of it. */
static void refresh(struct sim_cell *f, const struct store *s)
{
	uint64_t row = f->victim / 8 / HW_HBM_ROW_BYTES;

	if (s->bytes && s->from / HW_HBM_ROW_BYTES <= row &&
	    (s->from + s->bytes - 1) / HW_HBM_ROW_BYTES >= row)
		f->borne = 0;
}

/* What the Nth activation of `row`, beside the cell's own, makes of it. */
static void flip(struct sim_cells *c, struct sim_cell *f)
{
	set_bit(c, f->victim, f->kind == HW_CELL_ROW_GAINS ||
			      (f->kind != HW_CELL_ROW_LOSES && !get_bit(c, f->victim)));
	f->was_victim = get_bit(c, f->victim);
}

/* Whether that row's activation does something to the cell. */
static bool is_felt(const struct sim_cells *c, const struct sim_cell *f, uint64_t row)
{
	uint64_t own = row_of(f->victim / 8);
	uint64_t at = row > own ? f->victim + STRIDE * 8 : f->victim - STRIDE * 8;
	bool is_like = get_bit(c, at) == get_bit(c, f->victim);

	return f->kind == HW_CELL_ROW_LIKE ? is_like : f->kind != HW_CELL_ROW_UNLIKE || !is_like;
}

static void activate(struct sim_cells *c, struct sim_cell *f, uint64_t byte)
{
	uint64_t row = row_of(byte), own = row_of(f->victim / 8);
	bool is_new = row != f->open;

	if (bank_of(byte) != bank_of(f->victim / 8))
		return;
	f->open = row;
	if (row == own)
		f->borne = 0;
	else if (is_new && (row == own + 1 || row + 1 == own) && is_felt(c, f, row) &&
		 ++f->borne == f->most)
		flip(c, f);
}

void sim_cells_activate(struct sim_cells *c, const void *p)
{
	const uint8_t *at = p;

	if (at < c->hbm || at >= c->hbm + c->bytes)
		return;
	pthread_mutex_lock(&c->lock);
	for (unsigned i = 0; i < c->n; i++)
		if (kinds[c->cells[i].kind].class == ROW)
			activate(c, &c->cells[i], (uint64_t)(at - c->hbm));
	pthread_mutex_unlock(&c->lock);
}

static void apply(struct sim_cells *c, struct sim_cell *f, const struct store *s)
{
	switch (kinds[f->kind].class) {
	case SAF:
		set_bit(c, f->victim, f->kind == HW_CELL_STUCK_1);
		break;
	case TF:
		transit(c, f);
		break;
	case CFIN:
	case CFID:
		disturb(c, f, s);
		break;
	case CFST:
		hold(c, f);
		break;
	case ROW:
		refresh(f, s);
		break;
	default:
		if (f->kind == HW_CELL_NOWHERE_0 || f->kind == HW_CELL_NOWHERE_1)
			set_word(c, f->victim, f->kind == HW_CELL_NOWHERE_1 ? ~0ull : 0);
		else
			redirect(c, f, s);
	}
}

static void apply_all(struct sim_cells *c, const struct store *s)
{
	for (unsigned i = 0; i < c->n; i++)
		apply(c, &c->cells[i], s);
	/* What they are now is what they were, to the next store. */
	for (unsigned i = 0; i < c->n; i++) {
		c->cells[i].was_victim = get_bit(c, c->cells[i].victim);
		c->cells[i].was_by = get_bit(c, c->cells[i].by);
	}
}

void sim_cells_settle(struct sim_cells *c, const void *p, uint64_t bytes)
{
	const uint8_t *from = p;
	struct store s = { 0 };

	if (from && (from < c->hbm || from >= c->hbm + c->bytes))
		return;
	if (from)
		s = (struct store){ (uint64_t)(from - c->hbm), bytes };
	pthread_mutex_lock(&c->lock);
	apply_all(c, &s);
	pthread_mutex_unlock(&c->lock);
}

int sim_cells_add(struct sim_cells *c, unsigned kind, uint64_t victim)
{
	static const struct store nothing;
	struct sim_cell *f;
	uint64_t by = c->by, most = by;

	if (kind >= N_KINDS || !kind || victim / 8 >= c->bytes)
		return HW_ST_BAD_FIELD;
	if (kinds[kind].needs == NUMBER && !most)
		return HW_ST_BAD_FIELD;
	if (kinds[kind].needs != TWO)
		by = victim;
	else if (by / 8 >= c->bytes || by == victim ||
		 (kinds[kind].class == AF && by / 64 == victim / 64))
		return HW_ST_BAD_FIELD;
	if (c->n == SIM_MAX_CELLS)
		return HW_ST_NO_ROOM;
	pthread_mutex_lock(&c->lock);
	f = &c->cells[c->n];
	*f = (struct sim_cell){ .kind = (uint8_t)kind, .victim = victim, .by = by,
		.was_victim = get_bit(c, victim), .was_by = get_bit(c, by),
		.victim_word = get_word(c, victim), .by_word = get_word(c, by),
		.own = get_word(c, victim), .most = most, .open = row_of(victim / 8) };
	if (kinds[kind].class == ROW)
		atomic_store(&c->has_rows, true);
	atomic_store(&c->n, c->n + 1);
	apply_all(c, &nothing);
	pthread_mutex_unlock(&c->lock);
	return 0;
}

void sim_cells_mend(struct sim_cells *c)
{
	pthread_mutex_lock(&c->lock);
	atomic_store(&c->n, 0);
	atomic_store(&c->has_rows, false);
	c->by = 0;
	pthread_mutex_unlock(&c->lock);
}
