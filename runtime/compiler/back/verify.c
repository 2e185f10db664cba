/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The check of finished code (verify.h).
 *
 * All bindings but the constants are laid into one line of bytes. The state at a point of
 * the program says for runs of bytes what lies there: nothing, a value, what the current
 * op has written, or one thing on one path and another on another. Instructions are run in
 * the order of the code; a branch hands its state to its target, where paths join. A jump
 * back that brings something new to its target goes on from there. States only lose
 * knowledge by joining, so that ends.
 *
 * Strided accesses count as everything from their first to their last byte. For reads this
 * is strict, and holds because values are views of buffers that belong to one value
 * whole. For writes it is generous; so the bytes that an op writes are counted, too.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hal/base/err.h"
#include "runtime/compiler/back/verify.h"

/* What a run of bytes holds: one of these, VALUE + content, or WRITING + an op's note. */
enum { NOTHING, MIXED, SOMETHING, VALUE };
#define WRITING 0x80000000u
#define NO_OP UINT32_MAX
#define MOST_BYTES ((uint64_t)1 << 62)
#define MAX_WRITES 256		/* of an op that are counted */

struct run { int64_t at; uint32_t holds; };	/* until the next one's `at` */

struct state {
	struct run *runs;
	size_t n, room;		/* n == 0: no path leads here */
	uint32_t op;		/* note of the op whose code runs, or NO_OP */
};

struct label {
	uint32_t insn, notes;
	bool is_loop;		/* something jumps back to it */
	struct state in;
};

struct write { int64_t lo, hi, bytes; };	/* bytes: -1: some of them */

struct check {
	const struct image *im;
	const struct tc_evidence *ev;
	struct tc_verdict *why;
	int64_t *base;		/* of each binding in the line of bytes; -1: constants */
	uint64_t *offset;	/* by instruction */
	bool *is_checked;	/* by instruction: what does not depend on paths */
	uint32_t *goes_to;	/* by branch in the code: its label, at its instruction */
	uint32_t n_insns;
	struct label *labels;
	uint32_t n_labels;
	uint32_t *branches;	/* the instructions that are one, ascending */
	uint32_t n_branches;
	bool has_calls;
	struct state now;
	unsigned n_writes;	/* of the current op */
	uint32_t i, note, label;	/* the next of each */
	/* From here on nothing is set before it is used. */
	struct tc_reg_value regs[ISA_N_REG];
	struct write writes[MAX_WRITES];
};

static int refuse(struct check *c, uint64_t offset, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static int refuse(struct check *c, uint64_t offset, const char *fmt, ...)
{
	va_list ap;

	c->why->offset = offset;
	va_start(ap, fmt);
	vsnprintf(c->why->why, sizeof(c->why->why), fmt, ap);
	va_end(ap);
	return ERR_INTERNAL;
}

static uint64_t here(const struct check *c)
{
	return c->i < c->n_insns ? c->offset[c->i] : c->im->text_bytes;
}

static const struct isa_insn *insn(const struct check *c, uint32_t i)
{
	return (const void *)((const char *)c->im->text + c->offset[i]);
}

/* ---- states ---- */

static int grow(struct state *s, size_t n)
{
	struct run *grown;
	size_t room = s->room ? s->room : 64;

	if (n <= s->room)
		return 0;
	while (room < n)
		room *= 2;
	grown = realloc(s->runs, room * sizeof(*grown));
	if (!grown)
		return ERR_RESOURCE_EXHAUSTED;
	s->runs = grown;
	s->room = room;
	return 0;
}

static int copy_state(struct state *to, const struct state *from)
{
	if (grow(to, from->n))
		return ERR_RESOURCE_EXHAUSTED;
	memcpy(to->runs, from->runs, from->n * sizeof(*to->runs));
	to->n = from->n;
	to->op = from->op;
	return 0;
}

/* The run that `at` lies in. */
static size_t find_run(const struct state *s, int64_t at)
{
	size_t lo = 0, hi = s->n;

	while (hi - lo > 1) {
		size_t mid = (lo + hi) / 2;

		if (s->runs[mid].at <= at)
			lo = mid;
		else
			hi = mid;
	}
	return lo;
}

static int64_t run_end(const struct state *s, size_t i)
{
	return i + 1 < s->n ? s->runs[i + 1].at : INT64_MAX;
}

/* [lo, hi) holds `what` from now on. */
static int set(struct state *s, int64_t lo, int64_t hi, uint32_t what)
{
	size_t first = find_run(s, lo), last = first, n = 0;
	struct run put[3];

	while (run_end(s, last) < hi)
		last++;
	if (first == last && s->runs[first].holds == what)
		return 0;
	if (first == last && s->runs[first].at == lo && run_end(s, first) == hi) {
		s->runs[first].holds = what;
		return 0;
	}
	if (s->runs[first].at < lo)
		put[n++] = s->runs[first];
	put[n++] = (struct run){ lo, what };
	if (run_end(s, last) > hi)
		put[n++] = (struct run){ hi, s->runs[last].holds };
	if (grow(s, s->n + 2))
		return ERR_RESOURCE_EXHAUSTED;
	memmove(s->runs + first + n, s->runs + last + 1,
		(s->n - last - 1) * sizeof(*s->runs));
	memcpy(s->runs + first, put, n * sizeof(*put));
	s->n = s->n - (last + 1 - first) + n;
	return 0;
}

/* What two paths leave. */
static uint32_t either(uint32_t a, uint32_t b)
{
	if (a == b)
		return a;
	return a == NOTHING || b == NOTHING ? NOTHING : MIXED;
}

/* Joins `from` into a label's state; *changed if that told it something new. */
static int join(struct state *to, const struct state *from, bool *changed)
{
	struct state out = { .op = NO_OP };
	size_t a = 0, b = 0;

	*changed = false;
	if (!to->n) {
		*changed = true;
		if (copy_state(to, from))
			return ERR_RESOURCE_EXHAUSTED;
		to->op = NO_OP;
		return 0;
	}
	if (grow(&out, to->n + from->n))
		return ERR_RESOURCE_EXHAUSTED;
	while (a < to->n) {
		int64_t at = to->runs[a].at > from->runs[b].at ? to->runs[a].at :
								 from->runs[b].at;
		uint32_t what = either(to->runs[a].holds, from->runs[b].holds);
		int64_t a_end = run_end(to, a), b_end = run_end(from, b);

		*changed |= what != to->runs[a].holds;
		if (!out.n || out.runs[out.n - 1].holds != what)
			out.runs[out.n++] = (struct run){ at, what };
		a += a_end <= b_end;
		b += b_end <= a_end;
	}
	if (*changed) {
		free(to->runs);
		*to = out;
	} else {
		free(out.runs);
	}
	return 0;
}

/* ---- evidence ---- */

static const struct tc_note *read_of(const struct check *c, uint32_t op, uint32_t k)
{
	const struct tc_evidence *ev = c->ev;

	if (op == NO_OP || op + 1 + k >= ev->n || ev->notes[op + 1 + k].kind != TC_NOTE_READS)
		return NULL;
	return &ev->notes[op + 1 + k];
}

/* Whether the op takes this value. */
static bool takes(const struct check *c, uint32_t op, uint32_t holds)
{
	const struct tc_note *r;

	for (uint32_t k = 0; (r = read_of(c, op, k)); k++)
		if (VALUE + r->content == holds)
			return true;
	return false;
}

static bool is_operand_of(const struct check *c, uint32_t op, int64_t lo, int64_t hi)
{
	const struct tc_note *r;

	for (uint32_t k = 0; (r = read_of(c, op, k)); k++)
		if (c->base[r->binding] >= 0 && c->base[r->binding] + r->lo < hi &&
		    lo < c->base[r->binding] + r->hi)
			return true;
	return false;
}

/* Everything in a value's range is the value. */
static int check_reads(struct check *c, const struct tc_note *note)
{
	const struct state *s = &c->now;
	int64_t lo = c->base[note->binding] + note->lo, hi = c->base[note->binding] + note->hi;

	for (size_t i = find_run(s, lo); i < s->n && s->runs[i].at < hi; i++) {
		if (s->runs[i].holds == VALUE + note->content)
			continue;
		return refuse(c, here(c), "takes a value from binding %u, bytes %lld to %lld, "
			      "where %s", note->binding, (long long)note->lo,
			      (long long)note->hi, s->runs[i].holds == NOTHING ?
			      "nothing has written it on some path" :
			      "another value has been put since");
	}
	return 0;
}

/* Whether all of [lo, hi) was a value that the op takes. */
static bool was_operand(const struct check *c, int64_t lo, int64_t hi)
{
	const struct tc_note *r;

	for (uint32_t k = 0; (r = read_of(c, c->now.op, k)); k++)
		if (c->base[r->binding] >= 0 && c->base[r->binding] + r->lo <= lo &&
		    hi <= c->base[r->binding] + r->hi)
			return true;
	return false;
}

/* Whether this op's code has written [lo, hi) whole. Writes are counted, not compared: an
 * op writes no byte twice but to put a part over the whole. A write to some place within
 * leaves the rest as it was, which is well if that was an operand. */
static bool is_whole(const struct check *c, int64_t lo, int64_t hi)
{
	int64_t sum = 0;

	if (c->n_writes == MAX_WRITES)
		return true;
	for (unsigned i = 0; i < c->n_writes; i++) {
		const struct write *w = &c->writes[i];

		if (w->lo < lo || w->hi > hi)
			continue;
		if (w->bytes < 0 ? was_operand(c, lo, hi) :
				   __builtin_add_overflow(sum, w->bytes, &sum))
			return true;
	}
	return sum >= hi - lo;
}

static int check_holds(struct check *c, const struct tc_note *note)
{
	struct state *s = &c->now;
	int64_t lo = c->base[note->binding] + note->lo, hi = c->base[note->binding] + note->hi;
	uint64_t at = s->op == NO_OP ? here(c) : c->ev->notes[s->op].at;
	bool is_all_new = true;

	for (size_t i = find_run(s, lo); i < s->n && s->runs[i].at < hi; i++) {
		uint32_t holds = s->runs[i].holds;

		if (s->op != NO_OP && holds == (WRITING | s->op))
			continue;
		is_all_new = false;
		if (!takes(c, s->op, holds))
			return refuse(c, at, "leaves a part of its result in binding %u, bytes "
				      "%lld to %lld, unwritten", note->binding,
				      (long long)note->lo, (long long)note->hi);
	}
	if (is_all_new && !is_whole(c, lo, hi))
		return refuse(c, at, "writes less than its result in binding %u, bytes %lld to "
			      "%lld", note->binding, (long long)note->lo,
			      (long long)note->hi);
	return set(s, lo, hi, VALUE + note->content);
}

static int take_note(struct check *c, uint32_t k)
{
	const struct tc_note *note = &c->ev->notes[k];

	if (note->kind == TC_NOTE_OP) {
		c->now.op = k;
		c->n_writes = 0;
		return 0;
	}
	if (note->binding >= c->im->n_bindings || note->lo < 0 || note->lo > note->hi ||
	    (uint64_t)note->hi > c->im->bindings[note->binding].bytes)
		return refuse(c, here(c), "has a value outside of binding %u", note->binding);
	if (c->base[note->binding] < 0 || note->lo == note->hi)
		return 0;
	return note->kind == TC_NOTE_READS ? check_reads(c, note) : check_holds(c, note);
}

/* ---- one instruction ---- */

/* The quick answer; tc_alias has the exact one. */
static bool are_apart(const struct tc_access *a, const struct tc_access *b)
{
	return a->is_known && b->is_known && (a->hi <= b->lo || b->hi <= a->lo);
}

static const char *clash(const struct tc_access *out, const struct tc_access *other)
{
	enum tc_alias meet = tc_alias(&out->walk, &other->walk);

	if (meet == TC_APART)
		return NULL;
	if (other->role >= TC_STORED)
		return "another output";
	if (meet == TC_EQUAL && out->role == TC_STORED && other->role == TC_AT_POINT)
		return NULL;
	return meet == TC_EQUAL ? "an input that is not read point by point" :
				  "an input otherwise than element for element";
}

/* What holds on every path. */
static int check_access(struct check *c, const struct tc_access *a, bool is_inside)
{
	const struct image_binding *b = c->im->bindings + a->walk.binding;
	bool writes = a->role >= TC_STORED;

	if (a->walk.binding >= c->im->n_bindings)
		return refuse(c, here(c), "names binding %u of %zu as operand %u",
			      a->walk.binding, c->im->n_bindings, a->operand);
	if (!(b->access & (writes ? HW_BIND_WRITE : HW_BIND_READ)))
		return refuse(c, here(c), "%s binding %u, which is not declared so, as operand "
			      "%u", writes ? "writes" : "reads", a->walk.binding, a->operand);
	if (!a->is_known || a->walk.is_empty)
		return 0;
	if (!is_inside || a->lo < 0 || (uint64_t)a->hi > b->bytes)
		return refuse(c, here(c), "goes outside of binding %u's %llu bytes with "
			      "operand %u", a->walk.binding, (unsigned long long)b->bytes,
			      a->operand);
	return 0;
}

static int check_insn(struct check *c, const struct tc_access *a, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		for (unsigned k = 0; a[i].role >= TC_STORED && k < n; k++) {
			const char *what;

			/* Two outputs meet once. */
			if (k == i || a[k].walk.binding != a[i].walk.binding ||
			    (a[k].role >= TC_STORED && k > i) || are_apart(&a[i], &a[k]))
				continue;
			what = clash(&a[i], &a[k]);
			if (what)
				return refuse(c, here(c), "writes operand %u over %s, operand "
					      "%u", a[i].operand, what, a[k].operand);
		}
	return 0;
}

static int read_bytes(struct check *c, const struct tc_access *a, int64_t lo, int64_t hi)
{
	const struct state *s = &c->now;

	for (size_t i = find_run(s, lo); i < s->n && s->runs[i].at < hi; i++) {
		uint32_t holds = s->runs[i].holds;
		int64_t from = s->runs[i].at > lo ? s->runs[i].at : lo;
		int64_t to = run_end(s, i) < hi ? run_end(s, i) : hi;

		if (holds == NOTHING)
			return refuse(c, here(c), "reads bytes of binding %u that on some path "
				      "nothing has written, as operand %u", a->walk.binding,
				      a->operand);
		if (!c->ev)
			continue;
		if (s->op != NO_OP && holds == (WRITING | s->op)) {
			if (!is_operand_of(c, s->op, from, to))
				continue;
			return refuse(c, here(c), "reads operand %u where the same operation "
				      "has written already", a->operand);
		}
		if (!takes(c, s->op, holds))
			return refuse(c, here(c), "reads bytes of binding %u that belong to "
				      "another value, as operand %u", a->walk.binding,
				      a->operand);
	}
	return 0;
}

static int64_t bytes_of_walk(const struct tc_walk *w)
{
	int64_t n = w->bytes;

	if (w->is_unordered)
		return -1;
	for (unsigned d = 0; d < w->n; d++)
		if (w->stride[d] && __builtin_mul_overflow(n, w->dim[d], &n))
			return INT64_MAX;
	return n;
}

static int write_bytes(struct check *c, const struct tc_access *a, int64_t lo, int64_t hi)
{
	uint32_t what = c->ev && c->now.op != NO_OP ? WRITING | c->now.op : SOMETHING;

	if (c->n_writes < MAX_WRITES)
		c->writes[c->n_writes++] = (struct write){ lo, hi, bytes_of_walk(&a->walk) };
	return set(&c->now, lo, hi, what);
}

static int run_access(struct check *c, const struct tc_access *a, bool writes)
{
	int64_t base = c->base[a->walk.binding];

	if (base < 0 || a->walk.is_empty)
		return 0;
	if (a->is_known)
		return writes ? write_bytes(c, a, base + a->lo, base + a->hi) :
				read_bytes(c, a, base + a->lo, base + a->hi);
	/* It could be anywhere: the device checks that it stays in its binding. What the
	 * op has found or written around it is what the evidence is about. */
	if (!writes || !c->im->bindings[a->walk.binding].bytes || c->ev)
		return 0;
	return set(&c->now, base, base + (int64_t)c->im->bindings[a->walk.binding].bytes,
		   SOMETHING);
}

/* The instruction's accesses, each within its binding. */
static int get_accesses(struct check *c, struct tc_access *a, unsigned *n)
{
	int code = 0;

	*n = tc_accesses(insn(c, c->i), c->regs, a);
	for (unsigned i = 0; i < *n && !code; i++) {
		a[i].lo = a[i].hi = 0;
		code = check_access(c, &a[i], a[i].walk.is_empty || !a[i].is_known ||
					      tc_walk_span(&a[i].walk, &a[i].lo, &a[i].hi));
	}
	return code;
}

static int run_insn(struct check *c)
{
	struct tc_access a[TC_MAX_ACCESSES];
	unsigned n;
	int code = get_accesses(c, a, &n);

	if (!code && !c->is_checked[c->i])
		code = check_insn(c, a, n);
	c->is_checked[c->i] = true;
	for (unsigned i = 0; i < n && !code; i++)
		if (a[i].role != TC_STORED && a[i].role != TC_FOLDED)
			code = run_access(c, &a[i], false);
	for (unsigned i = 0; i < n && !code; i++)
		if (a[i].role >= TC_STORED)
			code = run_access(c, &a[i], true);
	return code;
}

/* HALT hands the results out. */
static int check_results(struct check *c)
{
	for (size_t b = 0; b < c->im->n_bindings; b++) {
		int64_t lo = c->base[b], hi = lo + (int64_t)c->im->bindings[b].bytes;

		if (c->im->bindings[b].kind != IMAGE_RESULT)
			continue;
		for (size_t i = find_run(&c->now, lo); i < c->now.n && hi > lo &&
		     c->now.runs[i].at < hi; i++)
			if (c->now.runs[i].holds == NOTHING)
				return refuse(c, here(c), "ends the program while nothing has "
					      "written a part of result %u on some path",
					      c->im->bindings[b].index);
	}
	return 0;
}

/* ---- control flow ---- */

static bool is_branch(unsigned op)
{
	return op == ISA_JMP || op == ISA_BZ || op == ISA_BNZ;
}

static void forget_regs(struct check *c)
{
	for (unsigned i = 1; i < ISA_N_REG; i++)
		c->regs[i].kind = TC_REG_ANY;
	c->regs[0].kind = TC_REG_SUM;
	c->regs[0].base = 0;
	c->regs[0].n = 0;
}

/* Paths join here. */
static int arrive(struct check *c, struct label *l)
{
	bool changed;

	if (c->now.n && join(&l->in, &c->now, &changed))
		return ERR_RESOURCE_EXHAUSTED;
	forget_regs(c);
	if (!l->in.n) {
		c->now.n = 0;
		return 0;
	}
	if (l->is_loop)
		return copy_state(&c->now, &l->in);
	/* All of its branches have run: its state is not needed again. */
	free(c->now.runs);
	c->now = l->in;
	l->in = (struct state){ .op = NO_OP };
	return 0;
}

/* Takes a branch; *back if the walk goes on at its target. */
static int take_branch(struct check *c, bool *back)
{
	struct label *l = &c->labels[c->goes_to[c->i]];
	bool changed;

	*back = false;
	if (join(&l->in, &c->now, &changed))
		return ERR_RESOURCE_EXHAUSTED;
	if (!changed || l->insn > c->i)
		return 0;
	*back = true;
	c->i = l->insn;
	c->note = l->notes;
	c->label = (uint32_t)(l - c->labels) + 1;
	forget_regs(c);
	return copy_state(&c->now, &l->in);
}

/* Runs instruction c->i and goes on to the next one. */
static int step(struct check *c)
{
	const struct isa_scalar *s = (const void *)insn(c, c->i);
	unsigned op = s->insn.op;
	bool back = false;
	int code = 0;

	if (is_branch(op))
		code = take_branch(c, &back);
	else if (op == ISA_HALT)
		code = check_results(c);
	else
		code = run_insn(c);
	if (code || back)
		return code;
	if (op == ISA_JMP || op == ISA_HALT || op == ISA_TRAP)
		c->now.n = 0;
	else if (op == ISA_LI || op == ISA_ALU || op == ISA_ALUI || op == ISA_LD)
		tc_step_regs(s, c->regs);
	c->i++;
	return 0;
}

static int walk(struct check *c)
{
	size_t n_notes = c->ev ? c->ev->n : 0;
	int code = 0;

	while (!code) {
		const struct label *l = &c->labels[c->label];

		if (c->label < c->n_labels && l->insn == c->i && l->notes <= c->note)
			code = arrive(c, &c->labels[c->label++]);
		else if (c->note < n_notes && c->ev->notes[c->note].at <= here(c)) {
			code = c->now.n ? take_note(c, c->note) : 0;
			c->note++;
		} else if (c->i == c->n_insns)
			return 0;
		else if (!c->now.n)
			c->i++;
		else
			code = step(c);
	}
	return code;
}

/* ---- getting ready ---- */

/* The instruction that starts at an offset; n_insns: none. */
static uint32_t insn_at(const struct check *c, uint64_t offset)
{
	uint32_t lo = 0, hi = c->n_insns;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (c->offset[mid] < offset)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < c->n_insns && c->offset[lo] == offset ? lo : c->n_insns;
}

/* Checks form and counts; a second time with memory for what it finds. */
static int find_insns(struct check *c, bool is_counting)
{
	c->n_insns = c->n_branches = 0;
	for (size_t at = 0; at < c->im->text_bytes; c->n_insns++) {
		const struct isa_insn *in = (const void *)((const char *)c->im->text + at);

		if (is_counting && !tc_is_well_formed(c->im->text, c->im->text_bytes, at))
			return refuse(c, at, "has counts that do not hold together");
		if (!is_counting) {
			c->offset[c->n_insns] = at;
			if (is_branch(in->op))
				c->branches[c->n_branches] = c->n_insns;
		}
		c->n_branches += is_branch(in->op);
		c->has_calls |= in->op == ISA_CALL || in->op == ISA_RET;
		at += in->bytes;
	}
	return 0;
}

static int decode(struct check *c)
{
	int code = find_insns(c, true);

	if (code)
		return code;
	c->offset = malloc((c->n_insns + 1u) * sizeof(*c->offset));
	c->branches = malloc((c->n_branches + 1u) * sizeof(*c->branches));
	c->goes_to = malloc((c->n_insns + 1u) * sizeof(*c->goes_to));
	c->is_checked = calloc(c->n_insns + 1u, sizeof(*c->is_checked));
	if (!c->offset || !c->branches || !c->goes_to || !c->is_checked)
		return ERR_RESOURCE_EXHAUSTED;
	return find_insns(c, false);
}

static int by_place(const void *a, const void *b)
{
	const struct label *x = a, *y = b;

	if (x->insn != y->insn)
		return x->insn < y->insn ? -1 : 1;
	return (x->notes > y->notes) - (x->notes < y->notes);
}

/* The instruction a branch goes to; n_insns: none starts there. */
static uint32_t target_of(const struct check *c, uint32_t i)
{
	const struct isa_scalar *s = (const void *)insn(c, i);
	int64_t to;

	if (__builtin_add_overflow((int64_t)c->offset[i], s->imm, &to) || to < 0)
		return c->n_insns;
	return insn_at(c, (uint64_t)to);
}

/* What the evidence says of each branch, by its instruction. */
static void take_branch_notes(const struct check *c, uint32_t *notes)
{
	for (size_t k = 0; c->ev && k < c->ev->n_branches; k++) {
		const struct tc_branch_note *b = &c->ev->branches[k];

		notes[insn_at(c, b->at)] = b->notes;
	}
}

static int find_labels(struct check *c)
{
	struct label *found = calloc(c->n_branches + 1u, sizeof(*found));
	uint32_t *notes = calloc(c->n_insns + 1u, sizeof(*notes));
	int code = found && notes ? 0 : ERR_RESOURCE_EXHAUSTED;

	c->labels = found;
	if (!code)
		take_branch_notes(c, notes);
	for (uint32_t k = 0; k < c->n_branches && !code; k++) {
		uint32_t i = c->branches[k];

		found[k] = (struct label){ .insn = target_of(c, i), .notes = notes[i],
					   .in = { .op = NO_OP } };
		if (found[k].insn == c->n_insns)
			code = refuse(c, c->offset[i], "branches to where none starts");
	}
	if (!code)
		qsort(found, c->n_branches, sizeof(*found), by_place);
	for (uint32_t k = 0; k < c->n_branches && !code; k++)
		if (!c->n_labels || by_place(&found[k], &found[c->n_labels - 1]))
			found[c->n_labels++] = found[k];
	for (uint32_t k = 0; k < c->n_branches && !code; k++) {
		uint32_t i = c->branches[k];
		struct label key = { .insn = target_of(c, i), .notes = notes[i] }, *l;

		l = bsearch(&key, found, c->n_labels, sizeof(*found), by_place);
		l->is_loop |= l->insn <= i;
		c->goes_to[i] = (uint32_t)(l - found);
	}
	free(notes);
	return code;
}

/* Lays the bindings out in a line and says what they hold at first. */
static int start(struct check *c)
{
	uint64_t at = 0;

	c->base = calloc(c->im->n_bindings + 1, sizeof(*c->base));
	if (!c->base || grow(&c->now, c->im->n_bindings + 1))
		return ERR_RESOURCE_EXHAUSTED;
	for (size_t b = 0; b < c->im->n_bindings; b++) {
		const struct image_binding *ib = &c->im->bindings[b];
		uint32_t holds = NOTHING;

		c->base[b] = -1;
		if (ib->kind == IMAGE_CONSTANTS)
			continue;
		if (ib->bytes > MOST_BYTES - at)
			return refuse(c, 0, "needs more memory than there can be");
		if (ib->kind == IMAGE_ARG)
			holds = c->ev ? VALUE + ib->index + 1 : SOMETHING;
		c->base[b] = (int64_t)at;
		if (ib->bytes)
			c->now.runs[c->now.n++] = (struct run){ (int64_t)at, holds };
		at += ib->bytes;
	}
	/* A state without runs is one that no path leads to. */
	if (!c->now.n)
		c->now.runs[c->now.n++] = (struct run){ 0, NOTHING };
	c->now.op = NO_OP;
	forget_regs(c);
	return 0;
}

/* Calls go where this does not follow: what holds on every path is all that is checked. */
static int check_each(struct check *c)
{
	struct tc_access a[TC_MAX_ACCESSES];
	int code = 0;
	unsigned n;

	for (c->i = 0; c->i < c->n_insns && !code; c->i++) {
		code = get_accesses(c, a, &n);
		if (!code)
			code = check_insn(c, a, n);
	}
	return code;
}

int tc_verify(const struct image *im, const struct tc_evidence *evidence,
	      struct tc_verdict *why)
{
	struct check *c = malloc(sizeof(*c));
	int code;

	memset(why, 0, sizeof(*why));
	if (!c)
		return ERR_RESOURCE_EXHAUSTED;
	memset(c, 0, offsetof(struct check, regs));
	c->im = im;
	c->ev = evidence;
	c->why = why;
	code = decode(c);
	if (!code)
		code = find_labels(c);
	if (!code)
		code = start(c);
	if (!code)
		code = c->has_calls ? check_each(c) : walk(c);
	for (uint32_t i = 0; i < c->n_labels; i++)
		free(c->labels[i].in.runs);
	free(c->labels);
	free(c->now.runs);
	free(c->base);
	free(c->offset);
	free(c->is_checked);
	free(c->branches);
	free(c->goes_to);
	free(c);
	return code;
}
