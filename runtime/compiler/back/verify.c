/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The check of finished code (verify.h).
 *
 * All bindings but the constants and the random state are laid into one line of bytes. The
 * state at a point of the program says for runs of bytes what lies there: nothing, a value,
 * what the current op has written, or one thing on one path and another on another.
 * Instructions are run in the order of the code; a branch hands its state to its target,
 * where paths join. A jump back that brings something new to its target goes on from there.
 * States only lose knowledge by joining, so that ends.
 *
 * Strided accesses count as everything from their first to their last byte. For reads this
 * is strict, and holds because values are views of buffers that belong to one value
 * whole. For writes it is generous; so the bytes that an op writes are counted, too.
 *
 * This runs with every compile and may take 3 % of it. Most of that went into finding runs,
 * so places where a run was seen (`first`, `written`, `places`) are tried before a search,
 * and what an op's notes have just found is not looked up again (`taken`).
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
#define N_PLACES 64		/* where values were put: a power of two, few of them */

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
	int64_t *base;		/* of each binding in the line of bytes; -1: not there */
	uint32_t *first;	/* of each: its first run in `now` when it started */
	void *tables;		/* the block that all pointers here but `now`'s point into */
	uint64_t *offset;	/* by instruction */
	bool *is_checked;	/* by instruction: what does not depend on paths */
	uint32_t *goes_to;	/* by branch in the code: its label, at its instruction */
	uint32_t *branch_notes;	/* the same: what the evidence says of it */
	uint32_t n_insns;
	struct label *labels;
	uint32_t n_labels;
	uint32_t *branches;	/* the instructions that are one, ascending */
	uint32_t n_branches;
	uint32_t n_calls;	/* of the host */
	bool has_calls;
	struct state now;
	unsigned n_writes;	/* of the current op */
	uint64_t at;		/* the offset of instruction i */
	uint32_t i, note, label;	/* the next of each */
	uint32_t next_read;	/* of the current op: where its next operand may be */
	uint32_t places[N_PLACES];	/* by content: a run of `now` where it may be */
	size_t written;		/* a run of `now`: where the last write began */
	uint32_t taken;		/* the op whose operands were found in place, as long as
				 * nothing is written; else NO_OP */
	/* From here on nothing is set before it is used. */
	struct tc_regs regs;
	struct write writes[MAX_WRITES];
};

static int refuse(struct check *c, uint64_t offset, const char *fmt, ...)
	__attribute__((cold, format(printf, 3, 4)));

static int refuse(struct check *c, uint64_t offset, const char *fmt, ...)
{
	va_list ap;

	c->why->offset = offset;
	va_start(ap, fmt);
	vsnprintf(c->why->why, sizeof(c->why->why), fmt, ap);
	va_end(ap);
	return ERR_INTERNAL;
}

static const struct isa_insn *insn_from(const struct check *c, uint64_t offset)
{
	return (const void *)((const char *)c->im->text + offset);
}

/* The instruction that the walk is at. */
static const struct isa_insn *insn(const struct check *c)
{
	return insn_from(c, c->at);
}

static void go_on(struct check *c)
{
	c->at += insn(c)->bytes;
	c->i++;
}

/* ---- states ---- */

static int __attribute__((cold)) grow_to(struct state *s, size_t n)
{
	size_t room = s->room ? s->room : 64;
	struct run *grown;

	while (room < n)
		room *= 2;
	grown = realloc(s->runs, room * sizeof(*grown));
	if (!grown)
		return ERR_RESOURCE_EXHAUSTED;
	s->runs = grown;
	s->room = room;
	return 0;
}

static int grow(struct state *s, size_t n)
{
	return n <= s->room ? 0 : grow_to(s, n);
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

static int64_t run_end(const struct state *s, size_t i)
{
	return i + 1 < s->n ? s->runs[i + 1].at : INT64_MAX;
}

static bool is_in_run(const struct state *s, size_t i, int64_t at)
{
	return i < s->n && s->runs[i].at <= at && at < run_end(s, i);
}

/* The run that `at`, a place of the binding, lies in: often the one with which the binding
 * began, as an argument seldom has another and runs before it seldom come or go; or the one
 * where the last write began. */
static size_t find_run(const struct check *c, unsigned binding, int64_t at)
{
	const struct run *runs = c->now.runs;
	size_t i = c->first[binding], n = c->now.n;

	if (is_in_run(&c->now, i, at))
		return i;
	if (is_in_run(&c->now, c->written, at))
		return c->written;
	if (i >= n || runs[i].at > at)
		i = 0;
	for (n -= i; n > 1; n -= n / 2)
		i += runs[i + n / 2].at <= at ? n / 2 : 0;
	return i;
}

/* [lo, hi) of the line holds `what` from now on; lo lies in the run `first`. */
static int set(struct check *c, size_t first, int64_t lo, int64_t hi, uint32_t what)
{
	struct state *s = &c->now;
	size_t last = first, n = 0;
	struct run put[3];

	c->taken = NO_OP;
	if (s->runs[first].at == lo && run_end(s, first) == hi) {
		s->runs[first].holds = what;
		c->written = first;
		return 0;
	}
	while (run_end(s, last) < hi)
		last++;
	if (first == last && s->runs[first].holds == what)
		return 0;
	c->written = first + (s->runs[first].at < lo);
	if (s->runs[first].at < lo)
		put[n++] = s->runs[first];
	put[n++] = (struct run){ lo, what };
	if (run_end(s, last) > hi)
		put[n++] = (struct run){ hi, s->runs[last].holds };
	if (grow(s, s->n + 2))
		return ERR_RESOURCE_EXHAUSTED;
	if (n != last + 1 - first)
		memmove(s->runs + first + n, s->runs + last + 1,
			(s->n - last - 1) * sizeof(*s->runs));
	for (size_t k = 0; k < n; k++)
		s->runs[first + k] = put[k];
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

/* Whether the op takes this value. A program's results, which may be thousands, are asked for
 * in the order of its last op's operands: the search goes on where the last one ended. */
static bool takes(struct check *c, uint32_t op, uint32_t holds)
{
	const struct tc_note *r;
	uint32_t from = c->next_read, k = from;

	for (; (r = read_of(c, op, k)); k++)
		if (VALUE + r->content == holds) {
			c->next_read = k + 1;
			return true;
		}
	for (k = 0; k < from && (r = read_of(c, op, k)); k++)
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

/* Everything in a value's range, [lo, hi) of the line, is the value. */
static int check_reads(struct check *c, const struct tc_note *note, int64_t lo, int64_t hi)
{
	const struct state *s = &c->now;
	size_t i = c->places[note->content % N_PLACES];

	if (!is_in_run(s, i, lo))
		i = find_run(c, note->binding, lo);
	for (; s->runs[i].holds == VALUE + note->content; i++)
		if (run_end(s, i) >= hi)
			return 0;
	return refuse(c, c->at, "takes a value from binding %u, bytes %lld to %lld, where %s",
		      note->binding, (long long)note->lo, (long long)note->hi,
		      s->runs[i].holds == NOTHING ? "nothing has written it on some path" :
						    "another value has been put since");
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

/* What an op has left in [lo, hi) of the line, from the run `first` on, is its result. */
static int check_parts(struct check *c, const struct tc_note *note, size_t first, int64_t lo,
		       int64_t hi)
{
	const struct state *s = &c->now;
	uint64_t at = s->op == NO_OP ? c->at : c->ev->notes[s->op].at;
	bool is_all_new = true;

	for (size_t i = first; i < s->n && s->runs[i].at < hi; i++) {
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
	return 0;
}

static int check_holds(struct check *c, const struct tc_note *note, int64_t lo, int64_t hi)
{
	size_t first = find_run(c, note->binding, lo);
	int code = check_parts(c, note, first, lo, hi);

	if (!code)
		code = set(c, first, lo, hi, VALUE + note->content);
	c->places[note->content % N_PLACES] = (uint32_t)c->written;
	return code;
}

static int take_note(struct check *c, uint32_t k)
{
	const struct tc_note *note = &c->ev->notes[k];
	int64_t base, lo, hi;

	if (note->kind == TC_NOTE_OP) {
		c->now.op = c->taken = k;
		c->n_writes = c->next_read = 0;
		return 0;
	}
	/* What is below 0 is large without its sign. */
	if (note->binding >= c->im->n_bindings || (uint64_t)note->lo > (uint64_t)note->hi ||
	    (uint64_t)note->hi > c->im->bindings[note->binding].bytes)
		return refuse(c, c->at, "has a value outside of binding %u", note->binding);
	base = c->base[note->binding];
	if (base < 0 || note->lo == note->hi)
		return 0;
	lo = base + note->lo;
	hi = base + note->hi;
	if (note->kind == TC_NOTE_READS)
		return check_reads(c, note, lo, hi);
	if (note->kind == TC_NOTE_EMPTY)
		return set(c, find_run(c, note->binding, lo), lo, hi, VALUE + note->content);
	return check_holds(c, note, lo, hi);
}

/* ---- one instruction ---- */

/* The quick answer; tc_alias has the exact one. */
static bool are_apart(const struct tc_access *a, const struct tc_access *b)
{
	return a->is_known && b->is_known && (a->hi <= b->lo || b->hi <= a->lo);
}

/* What holds on every path: it is in its binding, of whose bytes a->lo and hi are set. */
static int check_access(struct check *c, struct tc_access *a)
{
	const struct image_binding *b = c->im->bindings + a->walk.binding;
	bool writes = a->role >= TC_STORED;
	bool is_remote = insn(c)->op == ISA_RPUT || insn(c)->op == ISA_RSIG;

	if (a->walk.binding >= c->im->n_bindings)
		return refuse(c, c->at, "names binding %u of %zu as operand %u",
			      a->walk.binding, c->im->n_bindings, a->operand);
	if (!(b->access & (writes ? HW_BIND_WRITE : HW_BIND_READ)))
		return refuse(c, c->at, "%s binding %u, which is not declared so, as operand "
			      "%u", writes ? "writes" : "reads", a->walk.binding, a->operand);
	if (writes ? !(b->access & HW_BIND_PEER) != !is_remote :
		     b->access & HW_BIND_PEER && insn(c)->op != ISA_VEC)
		return refuse(c, c->at, "%s binding %u as operand %u: RPUT and RSIG write to "
			      "peers, nothing else does, and to nothing else; VEC alone reads "
			      "from them", writes ? "writes" : "reads", a->walk.binding,
			      a->operand);
	if (!a->is_known || a->walk.is_empty) {
		a->lo = a->hi = 0;
		return 0;
	}
	if (!tc_walk_span(&a->walk, &a->lo, &a->hi) || a->lo < 0 ||
	    (uint64_t)a->hi > b->bytes)
		return refuse(c, c->at, "goes outside of binding %u's %llu bytes with "
			      "operand %u", a->walk.binding, (unsigned long long)b->bytes,
			      a->operand);
	return 0;
}

/* Others write at any time from here on: not over what is still to be sent. */
static int check_mirror(struct check *c, const struct tc_access *a, const struct tc_access *mirror)
{
	if (a->walk.binding != mirror->walk.binding || are_apart(a, mirror) ||
	    tc_alias(&a->walk, &mirror->walk) == TC_APART)
		return 0;
	return refuse(c, c->at, "sends what peers may have written over, operand %u", a->operand);
}

/* Each output against what stands before it: the inputs, and outputs once a pair. */
static int check_insn(struct check *c, const struct tc_access *a, unsigned n_in, unsigned n)
{
	for (unsigned i = n_in; i < n; i++)
		for (unsigned k = 0; k < i; k++) {
			const char *what;

			if (a[k].walk.binding != a[i].walk.binding || are_apart(&a[i], &a[k]))
				continue;
			what = tc_clash(&a[i], &a[k]);
			if (what)
				return refuse(c, c->at, "writes operand %u over %s, operand "
					      "%u", a[i].operand, what, a[k].operand);
		}
	return 0;
}

/* Whether the access stays within an operand that has just been found in its place. */
static bool is_taken(const struct check *c, const struct tc_access *a)
{
	const struct tc_note *r;

	for (uint32_t k = 0; (r = read_of(c, c->taken, k)) && c->taken + k + 1 < c->note; k++)
		if (r->binding == a->walk.binding && r->lo <= a->lo && a->hi <= r->hi)
			return true;
	return false;
}

static int read_bytes(struct check *c, const struct tc_access *a, int64_t lo, int64_t hi)
{
	const struct state *s = &c->now;

	for (size_t i = find_run(c, a->walk.binding, lo); i < s->n && s->runs[i].at < hi; i++) {
		uint32_t holds = s->runs[i].holds;
		int64_t from = s->runs[i].at > lo ? s->runs[i].at : lo;
		int64_t to = run_end(s, i) < hi ? run_end(s, i) : hi;

		if (holds == NOTHING)
			return refuse(c, c->at, "reads bytes of binding %u that on some path "
				      "nothing has written, as operand %u", a->walk.binding,
				      a->operand);
		if (!c->ev)
			continue;
		if (s->op != NO_OP && holds == (WRITING | s->op)) {
			if (!is_operand_of(c, s->op, from, to))
				continue;
			return refuse(c, c->at, "reads operand %u where the same operation "
				      "has written already", a->operand);
		}
		if (!takes(c, s->op, holds))
			return refuse(c, c->at, "reads bytes of binding %u that belong to "
				      "another value, as operand %u", a->walk.binding,
				      a->operand);
	}
	return 0;
}

static int write_bytes(struct check *c, const struct tc_access *a, int64_t lo, int64_t hi)
{
	uint32_t what = c->ev && c->now.op != NO_OP ? WRITING | c->now.op : SOMETHING;

	if (c->n_writes < MAX_WRITES)
		c->writes[c->n_writes++] = (struct write){ lo, hi, tc_bytes_of_walk(&a->walk) };
	return set(c, find_run(c, a->walk.binding, lo), lo, hi, what);
}

static int run_read(struct check *c, const struct tc_access *a)
{
	int64_t base = c->base[a->walk.binding];

	/* What could be anywhere the device keeps in its binding. */
	if (base < 0 || a->walk.is_empty || !a->is_known || is_taken(c, a))
		return 0;
	return read_bytes(c, a, base + a->lo, base + a->hi);
}

static int run_write(struct check *c, const struct tc_access *a)
{
	int64_t base = c->base[a->walk.binding];

	if (base < 0 || a->walk.is_empty)
		return 0;
	if (a->is_known)
		return write_bytes(c, a, base + a->lo, base + a->hi);
	/* It could be anywhere: the device checks that it stays in its binding. What the
	 * op has found or written around it is what the evidence is about. */
	if (!c->im->bindings[a->walk.binding].bytes || c->ev)
		return 0;
	return set(c, find_run(c, a->walk.binding, base), base,
		   base + (int64_t)c->im->bindings[a->walk.binding].bytes, SOMETHING);
}

/* The instruction's accesses, inputs first, each within its binding. */
static int get_accesses(struct check *c, struct tc_access *a, unsigned *n_in, unsigned *n)
{
	int code = 0;

	*n = tc_add_lent(c->im, a, tc_accesses(insn(c), &c->regs, a));
	*n_in = 0;
	for (unsigned i = 0; i < *n && !code; i++) {
		*n_in += a[i].role < TC_STORED;
		code = check_access(c, &a[i]);
	}
	return code;
}

static int run_insn(struct check *c)
{
	struct tc_access a[TC_MAX_ACCESSES], mirror;
	unsigned n, n_in;
	int code = get_accesses(c, a, &n_in, &n);
	bool has_mirror = !code && tc_mirror(c->im, insn(c), a, n, &mirror);

	if (!code && !(c->n_branches && c->is_checked[c->i]))
		code = check_insn(c, a, n_in, n);
	if (!code && has_mirror)
		code = check_mirror(c, a, &mirror);
	if (c->n_branches)
		c->is_checked[c->i] = true;
	for (unsigned i = 0; i < n_in && !code; i++)
		code = run_read(c, &a[i]);
	for (unsigned i = n_in; i < n && a[i].role == TC_CHANGED && !code; i++)
		code = run_read(c, &a[i]);
	for (unsigned i = n_in; i < n && !code; i++)
		code = run_write(c, &a[i]);
	if (!code && has_mirror)
		code = run_write(c, &mirror);
	return code;
}

/* ---- calls of the host ---- */

/* Where the program goes on after call n; n_insns: it does not make that call. */
static uint32_t after_call(const struct check *c, uint32_t n)
{
	return n < c->n_calls ? c->labels[c->goes_to[2 + 2 * n]].insn : c->n_insns;
}

/* Whether the HALT that the walk is at ends the run for call *n, counted from 0. */
static bool is_stop(const struct check *c, uint32_t *n)
{
	return c->n_calls && c->i >= 2 && tc_is_stop(insn_from(c, c->offset[c->i - 2]),
						     insn_from(c, c->offset[c->i - 1]), n) &&
	       after_call(c, *n) == c->i + 1;
}

/* The host reads and writes as an instruction would, all reads first. */
static int run_call(struct check *c, uint32_t n)
{
	const struct image_transfer *t = c->im->transfers, *end = t + c->im->n_transfers;
	int code = 0;

	for (; t < end && !code; t++) {
		struct tc_access a = { .role = t->way ? TC_STORED : TC_AT_POINT,
				       .operand = (unsigned)(t - c->im->transfers),
				       .is_known = true };

		if (t->call != n + 1 || !t->bytes)
			continue;
		tc_walk_start(&a.walk, t->binding, 0, (int64_t)t->offset, 1);
		tc_walk_dim(&a.walk, (int64_t)t->bytes, 1);
		code = check_access(c, &a);
		if (!code)
			code = t->way ? run_write(c, &a) : run_read(c, &a);
	}
	return code;
}

/* A program that calls the host begins with a branch for each call (emit_host.c), taken only
 * when the run before has stopped for it: memory there is what it was then. So the walk
 * begins behind them, and goes on from each stop. */
static int check_beginning(struct check *c)
{
	uint64_t at = 0, most;
	uint32_t call;

	if (!c->im->n_transfers)
		return 0;
	c->n_calls = c->im->transfers[c->im->n_transfers - 1].call;
	most = 2 * (uint64_t)c->n_calls + 1;
	while (at < most && at < c->n_insns && c->n_branches &&
	       tc_begins_calls(insn_from(c, c->offset[at]), (uint32_t)at))
		at++;
	if (at < most || at >= c->n_insns || c->labels->insn < at)
		return refuse(c, 0, "begins a program with %u calls of the host otherwise than "
			      "such a program does", c->n_calls);
	for (uint32_t n = 0; n < c->n_calls; n++) {
		c->i = after_call(c, n) - 1;
		if (insn_from(c, c->offset[c->i])->op != ISA_HALT || !is_stop(c, &call) ||
		    call != n)
			return refuse(c, c->offset[c->i], "does not stop for call %u of the "
				      "host", n + 1);
	}
	c->i = (uint32_t)at;
	c->at = c->offset[at];
	return 0;
}

/* HALT hands the results out. */
static int check_results(struct check *c)
{
	for (size_t b = 0; b < c->im->n_bindings; b++) {
		int64_t lo = c->base[b], hi = lo + (int64_t)c->im->bindings[b].bytes;

		if (c->im->bindings[b].kind != IMAGE_RESULT)
			continue;
		for (size_t i = find_run(c, (unsigned)b, lo); i < c->now.n && hi > lo &&
		     c->now.runs[i].at < hi; i++)
			if (c->now.runs[i].holds == NOTHING)
				return refuse(c, c->at, "ends the program while nothing has "
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

/* Paths join here. */
static int arrive(struct check *c, struct label *l)
{
	bool changed;

	if (c->now.n && join(&l->in, &c->now, &changed))
		return ERR_RESOURCE_EXHAUSTED;
	c->taken = NO_OP;
	tc_forget_regs(&c->regs);
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
	c->taken = NO_OP;
	c->i = l->insn;
	c->at = c->offset[c->i];
	c->note = l->notes;
	c->label = (uint32_t)(l - c->labels) + 1;
	tc_forget_regs(&c->regs);
	return copy_state(&c->now, &l->in);
}

/* Runs instruction c->i and goes on to the next one. */
static int step(struct check *c)
{
	const struct isa_scalar *s = (const void *)insn(c);
	unsigned op = s->insn.op;
	uint32_t call = c->n_insns;
	bool back = false;
	int code = 0;

	if (is_branch(op))
		code = take_branch(c, &back);
	else if (op == ISA_HALT)
		code = is_stop(c, &call) ? run_call(c, call) : check_results(c);
	else if (op != ISA_LI && op != ISA_ALU && op != ISA_ALUI)
		code = run_insn(c);
	if (code || back)
		return code;
	if (op == ISA_JMP || op == ISA_TRAP || (op == ISA_HALT && call == c->n_insns))
		c->now.n = 0;
	else if (op == ISA_LI || op == ISA_ALU || op == ISA_ALUI || op == ISA_LD ||
		 op == ISA_RWAIT)
		tc_step_regs(s, &c->regs);
	go_on(c);
	return 0;
}

/* All notes from the next one to `end` that stand here. */
static int take_notes(struct check *c, size_t end)
{
	int code = 0;

	while (!code && c->note < end && c->ev->notes[c->note].at <= c->at) {
		if (c->now.n)
			code = take_note(c, c->note);
		c->note++;
	}
	return code;
}

static int walk(struct check *c)
{
	size_t n_notes = c->ev ? c->ev->n : 0;
	int code = 0;

	while (!code) {
		const struct label *l = &c->labels[c->label];

		if (c->label < c->n_labels && l->insn == c->i && l->notes <= c->note)
			code = arrive(c, &c->labels[c->label++]);
		else if (c->note < n_notes && c->ev->notes[c->note].at <= c->at)
			code = take_notes(c, c->label < c->n_labels && l->insn == c->i ?
					     l->notes : n_notes);
		else if (c->i == c->n_insns)
			return 0;
		else if (!c->now.n)
			go_on(c);
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

/* Checks form and counts. */
static int count_insns(struct check *c)
{
	for (uint64_t at = 0; at < c->im->text_bytes; at += insn_from(c, at)->bytes) {
		unsigned op;

		if (!tc_is_well_formed(c->im->text, c->im->text_bytes, at))
			return refuse(c, at, "has counts that do not hold together");
		op = insn_from(c, at)->op;
		c->n_insns++;
		c->n_branches += is_branch(op);
		c->has_calls |= op == ISA_CALL || op == ISA_RET;
	}
	return 0;
}

/* Memory for all tables: one block, as most programs are small, and those without branches
 * need no table of their code. */
static int get_tables(struct check *c)
{
	size_t n_bindings = c->im->n_bindings + 1, n_branches = c->n_branches;
	size_t n_insns = n_branches ? c->n_insns + 1u : 0;
	size_t bytes = n_bindings * (sizeof(*c->base) + sizeof(*c->first)) +
		       n_insns * (sizeof(*c->offset) + sizeof(*c->goes_to) +
				  sizeof(*c->branch_notes) + sizeof(*c->is_checked)) +
		       n_branches * (sizeof(*c->labels) + sizeof(*c->branches));

	c->tables = calloc(1, bytes);
	if (!c->tables)
		return ERR_RESOURCE_EXHAUSTED;
	/* The widest first, so each is aligned. */
	c->labels = c->tables;
	c->base = (void *)(c->labels + n_branches);
	c->offset = (void *)(c->base + n_bindings);
	c->first = (void *)(c->offset + n_insns);
	c->goes_to = c->first + n_bindings;
	c->branch_notes = c->goes_to + n_insns;
	c->branches = c->branch_notes + n_insns;
	c->is_checked = (void *)(c->branches + n_branches);
	return 0;
}

static void find_insns(struct check *c)
{
	uint32_t i = 0, n = 0;

	for (uint64_t at = 0; at < c->im->text_bytes; at += insn_from(c, at)->bytes, i++) {
		c->offset[i] = at;
		if (is_branch(insn_from(c, at)->op))
			c->branches[n++] = i;
	}
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
	const struct isa_scalar *s = (const void *)insn_from(c, c->offset[i]);
	int64_t to;

	if (__builtin_add_overflow((int64_t)c->offset[i], s->imm, &to) || to < 0)
		return c->n_insns;
	return insn_at(c, (uint64_t)to);
}

/* What the evidence says of each branch, by its instruction. */
static void take_branch_notes(struct check *c)
{
	for (size_t k = 0; c->ev && k < c->ev->n_branches; k++) {
		const struct tc_branch_note *b = &c->ev->branches[k];

		c->branch_notes[insn_at(c, b->at)] = b->notes;
	}
}

static int find_labels(struct check *c)
{
	struct label *found = c->labels;

	if (!c->n_branches)
		return 0;
	find_insns(c);
	take_branch_notes(c);
	for (uint32_t k = 0; k < c->n_branches; k++) {
		uint32_t i = c->branches[k];

		found[k] = (struct label){ .insn = target_of(c, i), .notes = c->branch_notes[i],
					   .in = { .op = NO_OP } };
		if (found[k].insn == c->n_insns)
			return refuse(c, c->offset[i], "branches to where none starts");
	}
	qsort(found, c->n_branches, sizeof(*found), by_place);
	for (uint32_t k = 0; k < c->n_branches; k++)
		if (!c->n_labels || by_place(&found[k], &found[c->n_labels - 1]))
			found[c->n_labels++] = found[k];
	for (uint32_t k = 0; k < c->n_branches; k++) {
		uint32_t i = c->branches[k];
		struct label key = { .insn = target_of(c, i), .notes = c->branch_notes[i] }, *l;

		l = bsearch(&key, found, c->n_labels, sizeof(*found), by_place);
		l->is_loop |= l->insn <= i;
		c->goes_to[i] = (uint32_t)(l - found);
	}
	return 0;
}

/* Lays binding b out behind the others and says what it holds at first. */
static int lay_out(struct check *c, size_t b, uint64_t *at)
{
	const struct image_binding *ib = &c->im->bindings[b];
	uint32_t holds = NOTHING;

	c->base[b] = -1;
	/* Nobody here writes the one; the others are written by other programs or chips, too. */
	if (ib->kind == IMAGE_CONSTANTS || ib->kind >= IMAGE_RANDOM)
		return 0;
	if (ib->bytes > MOST_BYTES - *at)
		return refuse(c, 0, "needs more memory than there can be");
	if (ib->kind == IMAGE_ARG)
		holds = c->ev ? VALUE + ib->index + 1 : SOMETHING;
	c->base[b] = (int64_t)*at;
	c->first[b] = (uint32_t)c->now.n;
	if (ib->bytes)
		c->now.runs[c->now.n++] = (struct run){ (int64_t)*at, holds };
	*at += ib->bytes;
	return 0;
}

/* Temporaries, whose runs come and go, are last: so other bindings' stay where they are. An
 * image has them at its front. */
static int start(struct check *c)
{
	uint64_t at = 0;
	int code = grow(&c->now, c->im->n_bindings + 1);

	for (size_t b = c->im->n_bindings; b-- > 0 && !code;)
		code = lay_out(c, b, &at);
	if (code)
		return code;
	/* A state without runs is one that no path leads to. */
	if (!c->now.n)
		c->now.runs[c->now.n++] = (struct run){ 0, NOTHING };
	c->now.op = c->taken = NO_OP;
	tc_forget_regs(&c->regs);
	return check_beginning(c);
}

/* Calls go where this does not follow: what holds on every path is all that is checked. */
static int check_each(struct check *c)
{
	struct tc_access a[TC_MAX_ACCESSES];
	unsigned n, n_in;
	int code = 0;

	for (; c->i < c->n_insns && !code; go_on(c)) {
		code = get_accesses(c, a, &n_in, &n);
		if (!code)
			code = check_insn(c, a, n_in, n);
	}
	return code;
}

int tc_verify(const struct image *im, const struct tc_evidence *evidence,
	      struct tc_verdict *why)
{
	struct check c;
	int code;

	memset(&c, 0, offsetof(struct check, regs));
	c.im = im;
	c.ev = evidence;
	c.why = why;
	*why->why = '\0';
	why->offset = 0;
	code = count_insns(&c);
	if (!code)
		code = get_tables(&c);
	if (!code)
		code = find_labels(&c);
	if (!code)
		code = start(&c);
	if (!code)
		code = c.has_calls ? check_each(&c) : walk(&c);
	for (uint32_t i = 0; i < c.n_labels; i++)
		free(c.labels[i].in.runs);
	free(c.now.runs);
	free(c.tables);
	return code;
}
