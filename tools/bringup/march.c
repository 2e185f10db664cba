/* SPDX-License-Identifier: Apache-2.0 */
/*
 * March tests as programs of the device (march.def). An element becomes a loop over words, of
 * loads, compares and stores; it runs over one window after the other before the next element
 * begins, so all windows are tested as one memory and an address that strays from one to another
 * is seen. What was read wrong is written to memory of the host, which is not under test.
 */
#include "tools/bringup/march.h"

#include <stdlib.h>
#include <string.h>

#include "tools/bringup/program.h"

enum { SOLID = BRINGUP_SOLID, WALK = BRINGUP_WALK, BANDS = BRINGUP_BANDS };
static const struct bringup_march marches[] = {
#define MARCH(name, data, elements) { #name, elements, data },
#define COVERS(...)
#define HAMMER(...)
#include "tools/bringup/march.def"
#undef MARCH
#undef HAMMER
};

const struct bringup_hammer bringup_hammers[] = {
#define MARCH(...)
#define HAMMER(name, even, odd) { #name, even, odd },
#include "tools/bringup/march.def"
#undef MARCH
#undef COVERS
#undef HAMMER
};
const unsigned bringup_n_hammers = COUNT(bringup_hammers);

const struct bringup_march *bringup_find_march(const char *name)
{
	for (unsigned i = 0; i < COUNT(marches); i++)
		if (!strcmp(marches[i].name, name))
			return &marches[i];
	return NULL;
}

/* ---- code ---- */

/* What a launch is told and what it tells, in a slot that is its binding 3. */
enum { AT_BYTES = 0, AT_ZERO = 8, AT_ONE = 16, AT_BASE = 24, AT_SEED = 32, AT_BAD = 40,
       AT_WORDS = 64, WORD_BYTES = 32, SLOT_WORDS = 8,
       SLOT_BYTES = AT_WORDS + WORD_BYTES * SLOT_WORDS };
/* Launches that are queued before anybody waits. */
#define BATCH 16u
/* Registers. */
enum { R_AT = 1, R_BYTES, R_ZERO, R_ONE, R_BASE, R_SEED, R_BAD, R_GOT, R_WANT, R_TEST, R_PLACE,
       R_SLOT };

#define MOST_CODE 160u

struct code {
	struct isa_scalar insn[MOST_CODE];
	unsigned n;
	bool is_full;
};

static unsigned put(struct code *c, unsigned op, struct isa_scalar s)
{
	s.insn = (struct isa_insn){ .op = (uint16_t)op, .bytes = sizeof(s) };
	if (c->n == MOST_CODE) {
		c->is_full = true;
		return 0;
	}
	c->insn[c->n] = s;
	return c->n++;
}

static void alu(struct code *c, unsigned fn, unsigned rd, unsigned ra, unsigned rb)
{
	put(c, ISA_ALU, (struct isa_scalar){ .fn = (uint8_t)fn, .rd = (uint8_t)rd,
					     .ra = (uint8_t)ra, .rb = (uint8_t)rb });
}

static void alui(struct code *c, unsigned fn, unsigned rd, unsigned ra, int64_t imm)
{
	put(c, ISA_ALUI, (struct isa_scalar){ .fn = (uint8_t)fn, .rd = (uint8_t)rd,
					      .ra = (uint8_t)ra, .imm = imm });
}

/* A word of a binding at imm + r[ra]. */
static void load(struct code *c, unsigned rd, unsigned binding, unsigned ra, int64_t imm)
{
	put(c, ISA_LD, (struct isa_scalar){ .rd = (uint8_t)rd, .ra = (uint8_t)ra, .elem = ELEM_U64,
					    .binding = (uint16_t)binding, .imm = imm });
}

static void store(struct code *c, unsigned rb, unsigned binding, unsigned ra, int64_t imm)
{
	put(c, ISA_ST, (struct isa_scalar){ .rb = (uint8_t)rb, .ra = (uint8_t)ra, .elem = ELEM_U64,
					    .binding = (uint16_t)binding, .imm = imm });
}

/* A branch whose end comes later, and its end: here. */
static unsigned branch(struct code *c, unsigned op, unsigned ra)
{
	return put(c, op, (struct isa_scalar){ .ra = (uint8_t)ra });
}

static void land(struct code *c, unsigned from, unsigned to)
{
	c->insn[from].imm = ((int64_t)to - (int64_t)from) * (int64_t)sizeof(struct isa_scalar);
}

/* R_WANT = what `data` means at this word. */
static void want(struct code *c, char data)
{
	switch (data) {
	case '0':
	case '1':
		alui(c, ISA_ALU_OR, R_WANT, data == '0' ? R_ZERO : R_ONE, 0);
		break;
	case 'A':
	case 'N':
		alu(c, ISA_ALU_ADD, R_WANT, R_AT, R_BASE);
		break;
	default:
		/* A multiplication spreads low bits upwards, a shift brings them back. */
		alu(c, ISA_ALU_ADD, R_WANT, R_AT, R_BASE);
		alu(c, ISA_ALU_ADD, R_WANT, R_WANT, R_SEED);
		alui(c, ISA_ALU_MUL, R_WANT, R_WANT, 0x1e3779b97f4a7c15);
		alui(c, ISA_ALU_SHR, R_TEST, R_WANT, 29);
		alu(c, ISA_ALU_XOR, R_WANT, R_WANT, R_TEST);
		alui(c, ISA_ALU_MUL, R_WANT, R_WANT, 0x3f58476d1ce4e5b9);
		alui(c, ISA_ALU_SHR, R_TEST, R_WANT, 32);
		alu(c, ISA_ALU_XOR, R_WANT, R_WANT, R_TEST);
	}
	if (data == 'N' || data == 'Q')
		alui(c, ISA_ALU_XOR, R_WANT, R_WANT, -1);
}

/* Reads, and tells of it if it is wrong. */
static void read_word(struct code *c, unsigned place)
{
	unsigned good, full;

	load(c, R_GOT, 2, R_AT, 0);
	alu(c, ISA_ALU_EQ, R_TEST, R_GOT, R_WANT);
	good = branch(c, ISA_BNZ, R_TEST);
	alui(c, ISA_ALU_LT, R_TEST, R_BAD, SLOT_WORDS);
	full = branch(c, ISA_BZ, R_TEST);
	alui(c, ISA_ALU_MUL, R_SLOT, R_BAD, WORD_BYTES);
	alu(c, ISA_ALU_ADD, R_TEST, R_AT, R_BASE);
	store(c, R_TEST, 3, R_SLOT, AT_WORDS);
	store(c, R_WANT, 3, R_SLOT, AT_WORDS + 8);
	store(c, R_GOT, 3, R_SLOT, AT_WORDS + 16);
	put(c, ISA_LI, (struct isa_scalar){ .rd = R_PLACE, .imm = place });
	store(c, R_PLACE, 3, R_SLOT, AT_WORDS + 24);
	land(c, full, c->n);
	alui(c, ISA_ALU_ADD, R_BAD, R_BAD, 1);
	land(c, good, c->n);
}

/* One element: `ops` is what stands in its parentheses. The number of its operations. */
static unsigned emit(struct code *c, unsigned element, bool is_down, const char *ops)
{
	unsigned n = 0, loop, out;

	load(c, R_BYTES, 3, 0, AT_BYTES);
	load(c, R_ZERO, 3, 0, AT_ZERO);
	load(c, R_ONE, 3, 0, AT_ONE);
	load(c, R_BASE, 3, 0, AT_BASE);
	load(c, R_SEED, 3, 0, AT_SEED);
	put(c, ISA_LI, (struct isa_scalar){ .rd = R_BAD });
	if (is_down)
		alui(c, ISA_ALU_SUB, R_AT, R_BYTES, 8);
	loop = c->n;
	for (const char *p = ops; *p && *p != ')'; p += p[2] == ',' ? 3 : 2, n++) {
		want(c, p[1]);
		if (*p == 'r')
			read_word(c, element << 8 | n);
		else
			store(c, R_WANT, 2, R_AT, 0);
	}
	if (is_down) {
		out = branch(c, ISA_BZ, R_AT);
		alui(c, ISA_ALU_SUB, R_AT, R_AT, 8);
		land(c, branch(c, ISA_JMP, 0), loop);
		land(c, out, c->n);
	} else {
		alui(c, ISA_ALU_ADD, R_AT, R_AT, 8);
		alu(c, ISA_ALU_LTU, R_TEST, R_AT, R_BYTES);
		land(c, branch(c, ISA_BNZ, R_TEST), loop);
	}
	store(c, R_BAD, 3, 0, AT_BAD);
	put(c, ISA_HALT, (struct isa_scalar){ 0 });
	return n;
}

#define STRIDE ((uint64_t)HW_HBM_ROW_BYTES * HW_HBM_BANKS)	/* to the next row of a bank */

/* Binding 2 begins with one row and ends with the second after it in the same bank: they are loaded
 * from in turn, AT_BYTES times, and the row between them must hold AT_ZERO. */
static void emit_hammer(struct code *c)
{
	unsigned loop;

	load(c, R_BYTES, 3, 0, AT_BYTES);
	load(c, R_WANT, 3, 0, AT_ZERO);
	load(c, R_BASE, 3, 0, AT_BASE);
	put(c, ISA_LI, (struct isa_scalar){ .rd = R_BAD });
	put(c, ISA_LI, (struct isa_scalar){ .rd = R_AT, .imm = STRIDE });
	loop = c->n;
	load(c, R_GOT, 2, 0, 0);
	load(c, R_GOT, 2, R_AT, STRIDE);
	alui(c, ISA_ALU_SUB, R_BYTES, R_BYTES, 1);
	land(c, branch(c, ISA_BNZ, R_BYTES), loop);
	loop = c->n;
	read_word(c, 0);
	alui(c, ISA_ALU_ADD, R_AT, R_AT, 8);
	alui(c, ISA_ALU_LTU, R_TEST, R_AT, STRIDE + HW_HBM_ROW_BYTES);
	land(c, branch(c, ISA_BNZ, R_TEST), loop);
	store(c, R_BAD, 3, 0, AT_BAD);
	put(c, ISA_HALT, (struct isa_scalar){ 0 });
}

/* ---- running ---- */

#define MOST_ELEMENTS 8u

/* A march, ready to run: its elements' programs, and the slots of a batch. */
struct machine {
	struct hal_exe *exes[MOST_ELEMENTS];
	bool is_down[MOST_ELEMENTS];
	unsigned n_ops[MOST_ELEMENTS], n;
	struct hal_mem *slots;
	unsigned n_queued;	/* slots that launches have, the last of which is: */
	uint64_t last;
	struct bringup_marched *out;
	uint64_t n_all;		/* operations of the whole test */
	const char *unit;	/* that they are called */
};

static int prepare_slots(struct bringup *b, struct machine *x)
{
	x->slots = bringup_mem(b, HAL_MEM_HOST, BATCH * SLOT_BYTES);
	return x->slots ? 0 : b->err.code;
}

static int prepare(struct bringup *b, const struct bringup_march *m, struct machine *x)
{
	for (const char *p = m->elements; *p && x->n < MOST_ELEMENTS; x->n++) {
		struct code *c = calloc(1, sizeof(*c));

		if (!c)
			return err_set(&b->err, ERR_RESOURCE_EXHAUSTED, "out of memory");
		x->is_down[x->n] = *p == 'v';
		x->n_ops[x->n] = emit(c, x->n, *p == 'v', p + 2);
		x->exes[x->n] = c->is_full ? NULL : bringup_scalar(b, c->insn, c->n, SLOT_BYTES);
		if (c->is_full)
			err_set(&b->err, ERR_INTERNAL, "%s is too long for a program", m->name);
		free(c);
		if (!x->exes[x->n])
			return b->err.code;
		p += strcspn(p, " ");
		p += strspn(p, " ");
	}
	return prepare_slots(b, x);
}

static uint64_t *slot(const struct machine *x, unsigned i)
{
	return (uint64_t *)hal_mem_host(x->slots) + i * (SLOT_BYTES / 8);
}

static void collect(struct bringup_marched *out, const uint64_t *slot)
{
	uint64_t n = slot[AT_BAD / 8];

	out->n_bad += n;
	for (unsigned i = 0; i < n && i < SLOT_WORDS && out->n_words < BRINGUP_BAD_WORDS; i++) {
		const uint64_t *w = &slot[(AT_WORDS + WORD_BYTES * i) / 8];

		out->words[out->n_words++] = (struct bringup_bad_word){ .va = w[0], .want = w[1],
			.got = w[2], .element = (unsigned)(w[3] >> 8), .op = w[3] & 0xff };
	}
}

/* Waits for the batch and takes what it told. */
static int finish(struct bringup *b, struct machine *x)
{
	int code = x->n_queued ?
		hal_queue_wait(b->compute, x->last, clock_after(60 * SECOND), &b->err) : 0;

	for (unsigned i = 0; !code && i < x->n_queued; i++)
		collect(x->out, slot(x, i));
	x->n_queued = 0;
	bringup_progress(b, x->n_all ? (double)x->out->n_ops / (double)x->n_all : 0,
			 (double)x->out->n_ops, x->unit);
	return code;
}

/* One run over one window; `times` is what its loop counts. */
static int run(struct bringup *b, struct machine *x, struct hal_exe *exe, uint64_t times,
	       uint64_t zero, const struct bringup_window *w)
{
	struct hw_binding data = { hal_mem_va(w->mem) + w->offset, w->bytes };
	struct hw_binding report = { .bytes = SLOT_BYTES };
	uint64_t *words;
	int code = x->n_queued == BATCH ? finish(b, x) : 0;

	if (code)
		return code;
	report.va = hal_mem_va(x->slots) + (uint64_t)x->n_queued * SLOT_BYTES;
	words = slot(x, x->n_queued);
	memset(words, 0, SLOT_BYTES);
	words[AT_BYTES / 8] = times;
	words[AT_ZERO / 8] = zero;
	words[AT_ONE / 8] = ~zero;
	words[AT_BASE / 8] = data.va;
	words[AT_SEED / 8] = 0x7e55;
	code = bringup_launch_on(b, exe, data, report, &x->last);
	x->n_queued += !code;
	return code;
}

/* One element over one window. */
static int run_element(struct bringup *b, struct machine *x, unsigned element, uint64_t zero,
		       const struct bringup_window *w)
{
	x->out->n_ops += w->bytes / 8 * x->n_ops[element];
	return run(b, x, x->exes[element], w->bytes, zero, w);
}

static int run_once(struct bringup *b, struct machine *x, uint64_t zero,
		    const struct bringup_window *windows, unsigned n)
{
	int code = 0;

	for (unsigned i = 0; i < x->n; i++)
		for (unsigned k = 0; !code && k < n; k++)
			code = run_element(b, x, i, zero,
					   &windows[x->is_down[i] ? n - 1 - k : k]);
	return code;
}

/* Loads and stores of one round. */
static uint64_t ops_of(const struct machine *x, const struct bringup_window *windows, unsigned n)
{
	uint64_t words = 0, ops = 0;

	for (unsigned i = 0; i < n; i++)
		words += windows[i].bytes / 8;
	for (unsigned i = 0; i < x->n; i++)
		ops += x->n_ops[i] * words;
	return ops;
}

/* The word for 0 in round i; false: there is no such round. */
static bool background(unsigned data, unsigned i, uint64_t *zero)
{
	static const uint64_t bands[] = { 0, 0x5555555555555555, 0x3333333333333333,
		0x0f0f0f0f0f0f0f0f, 0x00ff00ff00ff00ff, 0x0000ffff0000ffff, 0x00000000ffffffff };

	if (data == BRINGUP_WALK) {
		*zero = 1ull << i % 64;
		return i < 64;
	}
	if (data == BRINGUP_BANDS) {
		*zero = bands[i % COUNT(bands)];
		return i < COUNT(bands);
	}
	*zero = 0;
	return i < 1;
}

/* A step may march many times. */
static void give_back(struct bringup *b, unsigned n_exes, unsigned n_mems)
{
	while (b->n_exes > n_exes)
		hal_exe_unload(b->exes[--b->n_exes]);
	while (b->n_mems > n_mems)
		hal_mem_free(b->mems[--b->n_mems]);
}

int bringup_march(struct bringup *b, const struct bringup_march *m,
		  const struct bringup_window *windows, unsigned n, struct bringup_marched *out)
{
	struct machine x = { .out = out, .unit = "accesses" };
	unsigned n_exes = b->n_exes, n_mems = b->n_mems;
	uint64_t zero;
	int code;

	memset(out, 0, sizeof(*out));
	code = prepare(b, m, &x);
	for (unsigned i = 0; background(m->data, i, &zero); i++)
		x.n_all += ops_of(&x, windows, n);
	for (unsigned i = 0; !code && background(m->data, i, &zero); i++)
		code = run_once(b, &x, zero, windows, n);
	if (!code)
		code = finish(b, &x);
	give_back(b, n_exes, n_mems);
	return code;
}

/* ---- hammering ---- */

/* The rows of a block that are whole in all banks: `offset` is theirs in the block, `row` the first
 * one's number. */
struct rows { uint64_t offset, row, n; };

static struct rows rows_of(const struct hal_mem *mem)
{
	uint64_t at = hal_lent_offset(mem), begin = (at + STRIDE - 1) / STRIDE;
	uint64_t end = (at + hal_mem_bytes(mem)) / STRIDE;

	return (struct rows){ begin * STRIDE - at, begin, end > begin ? end - begin : 0 };
}

static uint64_t held(const struct bringup_hammer *h, uint64_t row)
{
	return row & 1 ? h->odd : h->even;
}

/* Queued before what comes after it. */
static int write_rows(struct bringup *b, const struct bringup_hammer *h, struct hal_mem *mem,
		      const struct rows *rows)
{
	uint64_t value;
	int code = 0;

	for (uint64_t i = 0; !code && i < rows->n; i++)
		code = hal_queue_fill(b->compute, mem, rows->offset + i * STRIDE, STRIDE,
				      held(h, rows->row + i), &value, &b->err);
	return code;
}

/* All rows between two others, of one bank after the other. */
static int hammer_rows(struct bringup *b, const struct bringup_hammer *h, struct machine *x,
		       struct hal_mem *mem, const struct rows *rows, uint64_t turns)
{
	struct bringup_window w = { .mem = mem, .bytes = 2 * STRIDE + HW_HBM_ROW_BYTES };
	int code = 0;

	for (uint64_t i = 1; i + 1 < rows->n; i++)
		for (unsigned bank = 0; !code && bank < HW_HBM_BANKS; bank++) {
			w.offset = rows->offset + (i - 1) * STRIDE + bank * HW_HBM_ROW_BYTES;
			code = run(b, x, x->exes[0], turns, held(h, rows->row + i), &w);
			x->out->n_ops += 2 * turns;
		}
	return code ? code : finish(b, x);
}

/* Where a wrong word is. */
static void place(struct bringup_marched *out, const struct hal_mem *mem)
{
	for (unsigned i = 0; i < out->n_words; i++) {
		struct bringup_bad_word *w = &out->words[i];
		uint64_t at = w->va - hal_mem_va(mem) + hal_lent_offset(mem);

		w->element = (unsigned)(at / STRIDE);
		w->op = (unsigned)(at / HW_HBM_ROW_BYTES % HW_HBM_BANKS);
	}
}

int bringup_hammer(struct bringup *b, const struct bringup_hammer *h, struct hal_mem *mem,
		   uint64_t turns, struct bringup_marched *out)
{
	unsigned n_exes = b->n_exes, n_mems = b->n_mems;
	struct machine x = { .out = out, .unit = "activations" };
	struct rows rows = rows_of(mem);
	struct code *c;
	int code;

	memset(out, 0, sizeof(*out));
	if (rows.n < 3)
		return err_set(&b->err, ERR_INVALID_ARGUMENT, "%llu bytes of HBM hold %llu rows of "
			       "a bank, 3 are the fewest to hammer", (unsigned long long)
			       hal_mem_bytes(mem), (unsigned long long)rows.n);
	c = calloc(1, sizeof(*c));
	if (!c)
		return err_set(&b->err, ERR_RESOURCE_EXHAUSTED, "out of memory");
	emit_hammer(c);
	x.exes[0] = bringup_scalar(b, c->insn, c->n, SLOT_BYTES);
	free(c);
	code = x.exes[0] ? prepare_slots(b, &x) : b->err.code;
	x.n_all = (rows.n - 2) * HW_HBM_BANKS * 2 * turns;
	if (!code)
		code = write_rows(b, h, mem, &rows);
	if (!code)
		code = hammer_rows(b, h, &x, mem, &rows, turns);
	place(out, mem);
	give_back(b, n_exes, n_mems);
	return code;
}
