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

static void spread_rows(const struct sim_body *b, char *to, const char *from, size_t rows,
			size_t cols, unsigned bytes)
{
	sim_repeat_fn *repeat = sim_repeat(b->path, bytes);

	if (repeat && cols > 1 && cols < SIM_LEAST_FILL) {
		repeat(to, from, rows, cols);
		return;
	}
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

static const void *spread_argument(const struct sim_body *b, const struct step *s,
				   const struct sim_tile *tile, const char *src, int shape,
				   char *room)
{
	if (shape == ROW)
		spread_rows(b, room, src, tile->rows, tile->cols, s->arg_bytes[0]);
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
		spread_rows(b, room, p[k], tile->rows, tile->cols, s->arg_bytes[k]);
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

static int run_fold(const struct sim_body *b, const struct step *s, const struct frame *f,
		    const struct sim_tile *tile, char *scratch)
{
	const void *src = f->ptr[s->arg[0]];
	int shape = f->shape[s->arg[0]];

	if (shape != FULL)
		src = spread_argument(b, s, tile, src, shape, scratch + s->spare);
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
	if (most == FULL && least == ROW && s->by_row && shape[s->arg[0]] == FULL &&
	    tile->cols >= LEAST_COLS && (!s->mixed || is_mixed_row(tile->cols))) {
		c->fn = s->by_row;
		c->n = tile->rows;
		c->imm = s->mixed ? s->imm | (uint64_t)tile->cols << SIM_MIXED_COLS : tile->cols;
		return most;
	}
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
		run_fold(calls->body, c->step, f, tile, (char *)f);
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
		if (c->step->still && tile->goes_on)
			continue;
		if (c->kind == CALL_ONE)
			c->fn(to, f->ptr[c->arg[0]], f->ptr[c->arg[1]], f->ptr[c->arg[2]], c->n,
			      c->spread, c->imm);
		else
			run_one(calls, c, run, tile, f, to);
		if (!calls->is_lone)
			prefetch(b, tile, (unsigned)(c - calls->call), calls->n);
	}
}

/* ---- a tile whose operands lie where they are used ---- */

/* An operand. */
struct flat_place {
	union { int64_t offset; const struct sim_ref *ref; } at;	/* ref: with a register */
	uint16_t binding;
	bool is_dynamic;
};

struct flat_value { uint64_t bits[2]; };

/* Arrays by number: the places, the constants, what is made in scratch. */
struct flat_call {
	sim_uop_fn *fn;
	uint64_t imm;
	uint32_t room, n;	/* room: of a result in scratch */
	uint8_t to, arg[3], spread;
	bool is_room;
};

struct flat_copy {
	uint32_t bytes, room;
	uint8_t to, from;
	bool is_room;
};

#define FLAT_SLOTS 256u
_Static_assert(ISA_MAX_VALUES + ISA_MAX_OUT <= FLAT_SLOTS, "slots are bytes");

static inline void flat_copy(const struct flat_copy *c, void **slot, char *scratch)
{
	if (c->is_room)
		slot[c->to] = scratch + c->room;
	if (c->bytes == 4)
		memcpy(slot[c->to], slot[c->from], 4);
	else
		memmove(slot[c->to], slot[c->from], c->bytes);
}

static int flat_run(struct sim_run *run, const void *plan)
{
	const struct sim_flat *f = plan;
	char *scratch = sim_scratch(run, 0);
	void *slot[FLAT_SLOTS], **next = slot;

	for (const struct flat_place *p = f->places, *end = p + f->n_places; p < end; p++) {
		*next = p->is_dynamic ? sim_at_dynamic(run, p->at.ref) :
			run->base[p->binding] + p->at.offset;
		if (!*next++)
			return run->fault.status;
	}
	for (unsigned i = 0; i < f->n_constants; i++)
		*next++ = &f->constants[i];
	for (unsigned i = 0; i < f->n_early; i++)
		flat_copy(&f->copies[i], slot, scratch);
	for (const struct flat_call *c = f->calls, *end = c + f->n_calls; c < end; c++) {
		if (c->is_room)
			slot[c->to] = scratch + c->room;
		c->fn(slot[c->to], slot[c->arg[0]], slot[c->arg[1]], slot[c->arg[2]], c->n,
		      c->spread, c->imm);
	}
	for (unsigned i = f->n_early; i < f->n_early + f->n_late; i++)
		flat_copy(&f->copies[i], slot, scratch);
	run->vector_ops += f->ops;
	run->read_bytes += f->read_bytes;
	run->write_bytes += f->write_bytes;
	return 0;
}

/* The slots of a body's values, as they are given out. */
struct flat_slots { uint8_t of[ISA_MAX_VALUES]; unsigned n; };

static void flat_operand(struct sim_flat *f, const struct sim_ref *ref, struct sim_ref **copies)
{
	struct flat_place *p = &f->places[f->n_places++];

	p->binding = ref->binding;
	p->is_dynamic = ref->reg;
	if (ref->reg) {
		**copies = *ref;
		p->at.ref = (*copies)++;
	} else {
		p->at.offset = ref->offset;
	}
}

static void flat_step(struct sim_flat *f, const struct sim_calls *calls, const struct call *c,
		      const struct sim_flat_out *out, struct flat_slots *slots)
{
	struct flat_call *to = &f->calls[f->n_calls++];
	bool in_place = c->out >= 0 && out[c->out].direct;

	*to = (struct flat_call){ .fn = c->fn, .imm = c->imm, .room = c->room, .n = c->n,
				  .spread = c->spread, .is_room = !in_place };
	for (unsigned k = 0; k < 3; k++)
		to->arg[k] = slots->of[c->arg[k]];
	/* outputs come behind the inputs */
	slots->of[c->value] = (uint8_t)(in_place ? calls->body->n_in + c->out : (int)slots->n++);
	to->to = slots->of[c->value];
}

/* Whether the calls and stores are all that the body does. */
static bool is_flat(const struct sim_calls *calls, const struct sim_flat_out *out, unsigned n_out,
		    uint64_t points)
{
	for (unsigned i = 0; i < calls->n; i++)
		if (calls->call[i].kind != CALL_ONE)
			return false;
	for (unsigned j = 0; j < n_out; j++)
		if (points > 1 && calls->shape[out[j].value] != FULL)
			return false;
	return calls->is_lone &&
	       2u * calls->body->n_in + calls->body->n_uop + n_out <= FLAT_SLOTS;
}

/* Room for all that a body may need; *refs for its dynamic operands. NULL: no memory. */
static struct sim_flat *flat_alloc(struct arena *arena, const struct sim_calls *calls,
				   const struct sim_ref *in, const struct sim_flat_out *out,
				   unsigned n_out, struct sim_ref **refs)
{
	unsigned n_in = calls->body->n_in, n = calls->n, dynamic = 0;
	struct sim_flat *f;

	for (unsigned j = 0; j < n_in; j++)
		dynamic += in[j].reg != 0;
	for (unsigned j = 0; j < n_out; j++)
		dynamic += out[j].ref->reg != 0;
	f = arena_alloc(arena, sizeof(*f) + (n_in + n_out) * sizeof(*f->places) +
			calls->n_constant * sizeof(*f->constants) + n * sizeof(*f->calls) +
			dynamic * sizeof(**refs) + (n_in + n_out) * sizeof(*f->copies));
	if (!f)
		return NULL;
	f->run = flat_run;
	f->places = (void *)(f + 1);
	f->constants = (void *)(f->places + n_in + n_out);
	f->calls = (void *)(f->constants + calls->n_constant);
	*refs = (void *)(f->calls + n);
	f->copies = (void *)(*refs + dynamic);
	return f;
}

struct sim_flat *sim_body_flat(struct arena *arena, const struct sim_calls *calls,
			       const struct sim_ref *in, uint32_t copied, const size_t *in_room,
			       const struct sim_flat_out *out, unsigned n_out, uint64_t points)
{
	const struct sim_body *b = calls->body;
	struct flat_slots slots = { .n = b->n_in + n_out };
	struct sim_ref *refs;
	struct sim_flat *f;

	if (!is_flat(calls, out, n_out, points))
		return NULL;
	f = flat_alloc(arena, calls, in, out, n_out, &refs);
	if (!f)
		return NULL;
	for (unsigned j = 0; j < b->n_in; j++) {
		slots.of[j] = (uint8_t)j;
		flat_operand(f, &in[j], &refs);
	}
	for (unsigned j = 0; j < n_out; j++)
		flat_operand(f, out[j].ref, &refs);
	for (unsigned i = 0; i < calls->n_constant; i++) {
		const struct step *s = &b->step[calls->constant[i] - b->n_in];

		memcpy(f->constants[i].bits, s->constant, sizeof(s->constant));
		slots.of[calls->constant[i]] = (uint8_t)slots.n++;
	}
	f->n_constants = (uint8_t)calls->n_constant;
	for (unsigned j = 0; j < b->n_in; j++)
		if (copied >> j & 1) {
			f->copies[f->n_early++] = (struct flat_copy){
				.bytes = (uint32_t)points * elem_bytes(in[j].elem),
				.room = (uint32_t)in_room[j], .from = (uint8_t)j,
				.to = (uint8_t)slots.n, .is_room = true };
			slots.of[j] = (uint8_t)slots.n++;
		}
	for (unsigned i = 0; i < calls->n; i++)
		flat_step(f, calls, &calls->call[i], out, &slots);
	for (unsigned j = 0; j < n_out; j++)
		if (slots.of[out[j].value] != b->n_in + j)
			f->copies[f->n_early + f->n_late++] = (struct flat_copy){
				.bytes = (uint32_t)points * elem_bytes(out[j].ref->elem),
				.to = (uint8_t)(b->n_in + j), .from = slots.of[out[j].value] };
	return f;
}

/* ---- any tile ---- */

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
			shape = run_fold(b, s, f, tile, base);
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
