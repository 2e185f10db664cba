/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Running what body.c planned: the steps of a body on a tile.
 *
 * A value has one of three shapes in a tile: SPREAD (one element for all points), ROW
 * (one a row) or FULL. Which one depends on how the inputs of this tile lie in
 * memory, so shapes are found at run time: it costs a few operations a step and saves
 * work whenever an operand is broadcast. Where all that is known when the program is
 * loaded, as of an instruction's full tiles, it is found then (struct sim_calls): what
 * small instructions take is mostly such questions.
 */
#include "hal/sim/core/body_plan.h"

#include <string.h>

/* The shape of i[d] in a tile. */
static int iota_shape(const struct sim_tile *tile, unsigned d)
{
	unsigned first_col = tile->rank - tile->col_dims;

	if (d >= first_col)
		return tile->col_dim[d - first_col] > 1 ? FULL : SPREAD;
	return d + 1 == first_col && tile->rows > 1 ? ROW : SPREAD;
}

#define LINE 64
/* n numbers of type T, of which the first is `first`, a line at a time: each is the one before it
 * and its length, which is exact for whole numbers, and for floats that count exactly. */
#define SEQUENCE(T, first, n) do { \
	typedef T line __attribute__((vector_size(LINE))); \
	const size_t width = LINE / sizeof(T); \
	T *to = dst; \
	line now = { 0 }; \
	size_t j = 0; \
	for (; j < (n) && j < width; j++) \
		to[j] = (T)((first) + (T)j); \
	if (j == width) \
		memcpy(&now, to, sizeof(now)); \
	for (; j + width <= (n); j += width) { \
		now += (T)width; \
		memcpy(to + j, &now, sizeof(now)); \
	} \
	for (; j < (n); j++) \
		to[j] = (T)(to[j - width] + (T)width); \
} while (0)
/* Beyond 2^`bits` not all whole numbers are floats. */
#define FLOAT_SEQUENCE(T, bits, start, n) do { \
	if ((start) >= 0 && (start) <= (1ll << (bits)) - (int64_t)(n)) { \
		SEQUENCE(T, (T)(start), n); \
	} else { \
		for (size_t i = 0; i < (n); i++) \
			((T *)dst)[i] = (T)((int64_t)((start) + (int64_t)i)); \
	} \
} while (0)

/* n consecutive integers from `start` as elements. */
static void write_sequence(unsigned elem, void *dst, int64_t start, size_t n)
{
	switch (elem) {
	case ELEM_F32:
		FLOAT_SEQUENCE(float, 24, start, n);
		return;
	case ELEM_F64:
		FLOAT_SEQUENCE(double, 53, start, n);
		return;
	default:
		break;
	}
	switch (elem_bytes(elem)) {
	case 1:
		SEQUENCE(uint8_t, (uint8_t)start, n);
		return;
	case 2:
		SEQUENCE(uint16_t, (uint16_t)start, n);
		return;
	case 4:
		SEQUENCE(uint32_t, (uint32_t)start, n);
		return;
	default:
		SEQUENCE(uint64_t, (uint64_t)start, n);
		return;
	}
}

static void run_iota(const struct step *s, const struct sim_tile *tile, int shape,
		     char *dst)
{
	unsigned d = s->aux, first_col = tile->rank - tile->col_dims;
	size_t bytes = s->bytes, n = 0, inner = 1, row = tile->cols * bytes;
	char *to = dst;

	if (shape != FULL) {
		write_sequence(s->elem, dst, tile->index[d], shape == ROW ? tile->rows : 1);
		return;
	}
	for (unsigned k = d + 1 - first_col; k < tile->col_dims; k++)
		inner *= (size_t)tile->col_dim[k];
	n = (size_t)tile->col_dim[d - first_col];
	if (inner == 1)
		write_sequence(s->elem, dst, tile->index[d], n);
	for (size_t i = 0; inner > 1 && i < n; i++) {
		write_sequence(s->elem, to, tile->index[d] + (int64_t)i, 1);
		sim_fill(to, to, inner, bytes);
		to += inner * bytes;
	}
	/* the dims before it repeat what there is */
	n *= inner * bytes;
	sim_fill(dst, dst, row * tile->rows / n, n);
}

#define SHORT_ROW 16	/* bytes: several make one register */

/* Copies row values along their rows: 64 bytes at a time, past the row's end and,
 * after the last row, into the gap between buffers. */
#define SPREAD_ROWS(name, T) \
static void name(char *to, const char *from, size_t rows, size_t cols) \
{ \
	typedef T block __attribute__((vector_size(64), aligned(sizeof(T)))); \
	for (size_t r = 0; r < rows; r++, to += cols * sizeof(T)) { \
		block x = (block){ 0 } + ((const T *)from)[r]; \
		for (size_t j = 0; j < cols; j += 64 / sizeof(T)) \
			*(block *)(to + j * sizeof(T)) = x; \
	} \
}
SPREAD_ROWS(spread_rows_1, uint8_t)
SPREAD_ROWS(spread_rows_2, uint16_t)
SPREAD_ROWS(spread_rows_4, uint32_t)
SPREAD_ROWS(spread_rows_8, uint64_t)

static void spread_rows(char *to, const char *from, size_t rows, size_t cols,
			unsigned bytes)
{
	if (cols * bytes <= SHORT_ROW) {
		sim_fill_rows(to, from, rows, cols, bytes);
		return;
	}
	switch (bytes) {
	case 1:
		spread_rows_1(to, from, rows, cols);
		break;
	case 2:
		spread_rows_2(to, from, rows, cols);
		break;
	case 4:
		spread_rows_4(to, from, rows, cols);
		break;
	case 8:
		spread_rows_8(to, from, rows, cols);
		break;
	default:
		sim_fill_rows(to, from, rows, cols, bytes);
		break;
	}
}

static const void *spread_argument(const struct step *s, const struct sim_tile *tile,
				   const char *src, int shape, char *room)
{
	if (shape == ROW)
		spread_rows(room, src, tile->rows, tile->cols, s->arg_bytes[0]);
	else
		sim_fill(room, src, (size_t)tile->rows * tile->cols, s->arg_bytes[0]);
	return room;
}

/* A full result of which some arguments are row values: row by row. From the last
 * to the first, for the room may be that of a row value. */
static void run_by_rows(const struct step *s, const struct frame *f,
			const struct sim_tile *tile, char *dst)
{
	size_t cols = tile->cols;

	for (size_t r = tile->rows; r-- > 0;) {
		const char *p[3] = { NULL, NULL, NULL };
		unsigned spread = 0;

		for (unsigned k = 0; k < s->n_args; k++) {
			int shape = f->shape[s->arg[k]];

			p[k] = f->ptr[s->arg[k]];
			if (shape == FULL)
				p[k] += r * cols * s->arg_bytes[k];
			else
				spread |= 1u << k;
			if (shape == ROW)
				p[k] += r * s->arg_bytes[k];
		}
		s->fn(dst + r * cols * s->bytes, p[0], p[1], p[2], cols, spread, s->imm);
	}
}

/* Row values made full, so that one call does. At most two of three are. */
static void spread_arguments(const struct sim_body *b, const struct step *s,
			     const struct frame *f, const struct sim_tile *tile,
			     char *scratch, const void **p)
{
	unsigned used = 0;

	for (unsigned k = 0; k < s->n_args; k++) {
		char *room;

		if (f->shape[s->arg[k]] != ROW)
			continue;
		room = scratch + b->spread[used];
		spread_rows(room, p[k], tile->rows, tile->cols, s->arg_bytes[k]);
		p[k] = room;
		used++;
	}
}

/* Returns the shape of the result. *to: where it is put. */
static int run_call(const struct sim_body *b, const struct step *s, struct frame *f,
		    const struct sim_tile *tile, void *direct, char **to)
{
	size_t n[] = { [SPREAD] = 1, [ROW] = tile->rows,
		       [FULL] = (size_t)tile->rows * tile->cols };
	const void *p[3] = { NULL, NULL, NULL };
	int most = SPREAD, least = FULL;
	unsigned spread = 0;

	for (unsigned k = 0; k < s->n_args; k++) {
		int shape = f->shape[s->arg[k]];

		p[k] = f->ptr[s->arg[k]];
		most = shape > most ? shape : most;
		if (shape == SPREAD)
			spread |= 1u << k;
		else
			least = shape < least ? shape : least;
	}
	if (direct && most == FULL)
		*to = direct;
	if (most == FULL && least == ROW && tile->cols >= SHORT_COLS) {
		run_by_rows(s, f, tile, *to);
		return most;
	}
	if (most == FULL && least == ROW)
		spread_arguments(b, s, f, tile, (char *)f, p);
	s->fn(*to, p[0], p[1], p[2], n[most], spread, s->imm);
	return most;
}

static int run_fold(const struct step *s, const struct frame *f,
		    const struct sim_tile *tile, char *scratch)
{
	const void *src = f->ptr[s->arg[0]];
	int shape = f->shape[s->arg[0]];

	if (shape != FULL)
		src = spread_argument(s, tile, src, shape, scratch + s->spare);
	s->fold(scratch + s->room, src, tile->rows, tile->cols);
	return tile->rows > 1 ? ROW : SPREAD;
}

static void set_inputs(const struct sim_body *b, const struct sim_tile *tile,
		       struct frame *f)
{
	bool one = (uint64_t)tile->rows * tile->cols == 1;

	for (unsigned v = 0; v < b->n_pre; v++) {
		f->ptr[v] = tile->pre[v];
		f->own[v] = one ? SPREAD : FULL;
	}
	for (unsigned j = 0; j < b->n_in; j++) {
		int shape = FULL;

		if (tile->in_spread >> j & 1 || one)
			shape = SPREAD;
		else if (tile->in_row >> j & 1)
			shape = tile->rows > 1 ? ROW : SPREAD;
		f->ptr[b->n_pre + j] = tile->in[j];
		f->own[b->n_pre + j] = (uint8_t)shape;
	}
}

/* The next tile's inputs mostly follow this one's: fetches step i's share of them, of n. */
static void prefetch(const struct sim_body *b, const struct sim_tile *tile, unsigned i,
		     unsigned n)
{
	size_t points = (size_t)tile->rows * tile->cols;

	for (unsigned j = 0; j < b->n_in; j++) {
		size_t bytes = points * elem_bytes(b->elem[b->n_pre + j]);
		const char *next = (const char *)tile->in[j] + bytes;
		size_t begin = bytes * i / n / 64, end = bytes * (i + 1) / n / 64;

		if ((tile->in_spread | tile->in_row) >> j & 1)
			continue;
		for (size_t k = begin; k < end; k++)
			__builtin_prefetch(next + k * 64, 0, 2);
	}
}

/* ---- a tile that is known when the program is loaded ---- */

enum call_kind { CALL_ONE, CALL_BY_ROWS, CALL_SPREADING, CALL_SREG, CALL_IOTA, CALL_FOLD };

/* A step of which all is known but where things lie. */
struct call {
	sim_uop_fn *fn;
	const struct step *step;
	uint64_t imm;
	uint32_t room, n;
	uint8_t kind, value, spread;
	uint8_t arg[3];
	int8_t out;		/* as in the step; -1 too where the result is not the tile's */
};

struct sim_calls {
	const struct sim_body *body;
	unsigned n, n_constant;
	bool is_lone;		/* no tile follows */
	uint8_t shape[ISA_MAX_VALUES];
	uint8_t constant[ISA_MAX_VALUES];	/* values */
	struct call call[];
};

/* Fills in the call of a STEP_CALL; returns the shape of its result. */
static int plan_call(struct call *c, const uint8_t *shape, const struct sim_tile *tile)
{
	const struct step *s = c->step;
	int most = SPREAD, least = FULL;

	for (unsigned k = 0; k < s->n_args; k++) {
		int of = shape[s->arg[k]];

		c->arg[k] = s->arg[k];
		most = of > most ? of : most;
		if (of == SPREAD)
			c->spread |= (uint8_t)(1u << k);
		else
			least = of < least ? of : least;
	}
	/* A kernel reads no argument that it does not have. */
	for (unsigned k = s->n_args; k < 3; k++)
		c->arg[k] = c->arg[0];
	if (most == SPREAD)
		c->spread = 0;	/* arrays of one element */
	c->n = most == FULL ? tile->rows * tile->cols : most == ROW ? tile->rows : 1;
	c->out = most == FULL || (uint64_t)tile->rows * tile->cols == 1 ? s->out : -1;
	if (most == FULL && least == ROW)
		c->kind = tile->cols >= SHORT_COLS ? CALL_BY_ROWS : CALL_SPREADING;
	return most;
}

/* Returns the shape of the result of a step that is neither NONE nor IMM. */
static int plan_step(struct call *c, const struct step *s, const uint8_t *shape,
		     const struct sim_tile *tile)
{
	*c = (struct call){ .fn = s->fn, .step = s, .imm = s->imm, .room = s->room, .out = -1,
			    .kind = CALL_ONE };
	switch (s->kind) {
	case STEP_SREG:
		c->kind = CALL_SREG;
		return SPREAD;
	case STEP_IOTA:
		c->kind = CALL_IOTA;
		return iota_shape(tile, s->aux);
	case STEP_FOLD:
		c->kind = CALL_FOLD;
		return tile->rows > 1 ? ROW : SPREAD;
	default:
		return plan_call(c, shape, tile);
	}
}

const struct sim_calls *sim_body_calls(struct arena *arena, const struct sim_body *b,
				       const struct sim_tile *tile, bool is_lone)
{
	struct sim_calls *calls;
	struct frame f = { .shape = NULL };

	calls = arena_alloc(arena, sizeof(*calls) + b->n_uop * sizeof(calls->call[0]));
	if (!calls)
		return NULL;
	calls->body = b;
	calls->is_lone = is_lone || b->n_uop < 3;
	set_inputs(b, tile, &f);
	memcpy(calls->shape, f.own, sizeof(f.own));
	for (unsigned i = 0, v = b->n_pre + b->n_in; i < b->n_uop; i++, v++) {
		const struct step *s = &b->step[i];
		struct call *c = &calls->call[calls->n];

		calls->shape[v] = SPREAD;
		if (s->kind == STEP_IMM)
			calls->constant[calls->n_constant++] = (uint8_t)v;
		if (s->kind == STEP_IMM || s->kind == STEP_NONE)
			continue;
		calls->shape[v] = (uint8_t)plan_step(c, s, calls->shape, tile);
		c->value = (uint8_t)v;
		calls->n++;
	}
	return calls;
}

uint32_t sim_calls_in_place(const struct sim_calls *calls)
{
	uint32_t outs = 0;

	for (unsigned i = 0; i < calls->n; i++)
		if (calls->call[i].out >= 0)
			outs |= 1u << calls->call[i].out;
	return outs;
}

static void run_one(const struct sim_calls *calls, const struct call *c,
		    const struct sim_run *run, const struct sim_tile *tile, struct frame *f,
		    char *to)
{
	const void *p[3] = { f->ptr[c->arg[0]], f->ptr[c->arg[1]], f->ptr[c->arg[2]] };

	switch (c->kind) {
	case CALL_BY_ROWS:
		run_by_rows(c->step, f, tile, to);
		return;
	case CALL_SREG:
		c->fn(to, &run->reg[c->step->aux], NULL, NULL, 1, 1, c->imm);
		return;
	case CALL_IOTA:
		run_iota(c->step, tile, calls->shape[c->value], to);
		return;
	case CALL_FOLD:
		run_fold(c->step, f, tile, (char *)f);
		return;
	default:
		spread_arguments(calls->body, c->step, f, tile, (char *)f, p);
		c->fn(to, p[0], p[1], p[2], c->n, c->spread, c->imm);
		return;
	}
}

void sim_calls_run(const struct sim_calls *calls, const struct sim_run *run,
		   const struct sim_tile *tile, const void *const *in, void *scratch,
		   void *const *direct)
{
	const struct sim_body *b = calls->body;
	const struct step *first = b->step;
	struct frame *f = scratch;
	unsigned n_in = b->n_in;

	f->shape = calls->shape;
	for (unsigned j = 0; j < n_in; j++)
		f->ptr[j] = in[j];
	for (unsigned i = 0; i < calls->n_constant; i++)
		f->ptr[calls->constant[i]] = first[calls->constant[i] - n_in].constant;
	for (const struct call *c = calls->call, *end = c + calls->n; c < end; c++) {
		char *to = c->out >= 0 && direct[c->out] ? direct[c->out] :
			(char *)scratch + c->room;

		f->ptr[c->value] = to;
		if (c->kind == CALL_ONE)
			c->fn(to, f->ptr[c->arg[0]], f->ptr[c->arg[1]], f->ptr[c->arg[2]], c->n,
			      c->spread, c->imm);
		else
			run_one(calls, c, run, tile, f, to);
		if (!calls->is_lone)
			prefetch(b, tile, (unsigned)(c - calls->call), calls->n);
	}
}

void sim_body_run_into(const struct sim_body *b, const struct sim_run *run,
		       const struct sim_tile *tile, void *scratch,
		       void *const *direct)
{
	struct frame *f = scratch;
	unsigned value = b->n_pre + b->n_in;
	char *base = scratch;

	f->shape = f->own;
	set_inputs(b, tile, f);
	for (unsigned i = 0; i < b->n_uop; i++, value++) {
		const struct step *s = &b->step[i];
		char *to = base + s->room;
		int shape = SPREAD;

		switch (s->kind) {
		case STEP_NONE:
			continue;
		case STEP_IMM:
			to = (char *)(uintptr_t)s->constant;
			break;
		case STEP_SREG:
			s->fn(to, &run->reg[s->aux], NULL, NULL, 1, 1, s->imm);
			break;
		case STEP_IOTA:
			shape = iota_shape(tile, s->aux);
			run_iota(s, tile, shape, to);
			break;
		case STEP_FOLD:
			shape = run_fold(s, f, tile, base);
			break;
		default:
			shape = run_call(b, s, f, tile, direct && s->out >= 0 ?
					 direct[s->out] : NULL, &to);
			break;
		}
		f->ptr[value] = to;
		f->own[value] = (uint8_t)shape;
		if (b->n_uop >= 3)
			prefetch(b, tile, i, b->n_uop);
	}
}

void sim_body_run(const struct sim_body *b, const struct sim_run *run,
		  const struct sim_tile *tile, void *scratch)
{
	sim_body_run_into(b, run, tile, scratch, NULL);
}

const void *sim_body_value(const struct sim_body *b, unsigned value,
			   const struct sim_tile *tile, void *scratch,
			   bool *is_spread, bool *is_row)
{
	const struct frame *f = scratch;

	(void)b;
	(void)tile;
	*is_spread = f->shape[value] == SPREAD;
	*is_row = f->shape[value] == ROW;
	return f->ptr[value];
}
