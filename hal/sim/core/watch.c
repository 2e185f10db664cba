/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A model that checks (DEVICE.md#a-model-that-checks): stops a program whose operands lie
 * on each other as ISA.md#overlap forbids, and one that reads HBM which nothing has
 * written.
 *
 * A bit for each byte of HBM says whether it was written, so the smallest allocation and
 * the last element of a row count exactly. Programs set it as their instructions
 * store, copies carry it along, allocations and scratch clear it. What an instruction
 * touches is isa_access.h's to say; here registers are known, so every access has a
 * place in the model's memory, and two bindings that are the same memory are the same
 * place. GATHER and SCATTER are followed index by index.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "hal/hw/isa_access.h"
#include "hal/hw/regs.h"
#include "hal/sim/core/program.h"

#define DROP_FROM ((uint64_t)1 << 20)	/* bytes of bits that are worth a system call */

/* ---- bits ---- */

/* Those of word w that [from, to) takes. */
static uint64_t mask_of(uint64_t w, uint64_t from, uint64_t to)
{
	uint64_t mask = ~0ull;

	if (w == from / 64)
		mask &= ~0ull << from % 64;
	if (w == (to - 1) / 64)
		mask &= ~0ull >> (63 - (to - 1) % 64);
	return mask;
}

static void set_bits(uint64_t *map, uint64_t from, uint64_t to)
{
	for (uint64_t w = from / 64; w * 64 < to; w++)
		map[w] |= mask_of(w, from, to);
}

static void clear_bits(uint64_t *map, uint64_t from, uint64_t to)
{
	uint64_t page = (uint64_t)HW_PAGE * 8, first = (from + page - 1) / page * page;
	uint64_t last = to / page * page;

	/* whole pages of bits are given back: they read as zeros */
	if (last > first && last - first >= DROP_FROM * 8 &&
	    !madvise((uint8_t *)map + first / 8, (last - first) / 8, MADV_DONTNEED)) {
		clear_bits(map, from, first);
		from = last;
	}
	for (uint64_t w = from / 64; w * 64 < to; w++)
		map[w] &= ~mask_of(w, from, to);
}

/* The first bit of [from, to) that is not set, or `to`. */
static uint64_t find_clear(const uint64_t *map, uint64_t from, uint64_t to)
{
	for (uint64_t w = from / 64; w * 64 < to; w++) {
		uint64_t clear = ~map[w] & mask_of(w, from, to);

		if (clear)
			return w * 64 + (uint64_t)__builtin_ctzll(clear);
	}
	return to;
}

/* 64 bits from bit `at` on. */
static uint64_t word_at(const uint64_t *map, uint64_t at)
{
	uint64_t low = map[at / 64] >> at % 64;

	return at % 64 ? low | map[at / 64 + 1] << (64 - at % 64) : low;
}

/* ---- memory ---- */

/* The part of [p, p + bytes) that is HBM, as offsets; false: none. */
static bool in_hbm(const struct sim_watch *w, const uint8_t *p, uint64_t bytes,
		   uint64_t *from, uint64_t *to)
{
	if (!w->written || p < w->hbm || p >= w->hbm + w->hbm_bytes || !bytes)
		return false;
	*from = (uint64_t)(p - w->hbm);
	*to = *from + bytes < w->hbm_bytes ? *from + bytes : w->hbm_bytes;
	return true;
}

int sim_watch_start(struct sim_watch *w, uint8_t *hbm, uint64_t hbm_bytes, struct err *err)
{
	/* a word more, for word_at() */
	void *p = mmap(NULL, hbm_bytes / 8 + HW_PAGE, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		return err_sys(err, errno, "the record of what is written, for %llu bytes of "
			       "HBM; ask for less: TESSERA_SIM=hbm=1G,check",
			       (unsigned long long)hbm_bytes);
	pthread_mutex_init(&w->lock, NULL);
	w->hbm = hbm;
	w->hbm_bytes = hbm_bytes;
	w->written = p;
	return 0;
}

void sim_watch_end(struct sim_watch *w)
{
	if (!w->written)
		return;
	munmap(w->written, w->hbm_bytes / 8 + HW_PAGE);
	pthread_mutex_destroy(&w->lock);
	w->written = NULL;
}

void sim_watch_discard(struct sim_watch *w, uint64_t offset, uint64_t bytes)
{
	uint64_t from, to;

	if (!w->written || offset > w->hbm_bytes ||
	    !in_hbm(w, w->hbm + offset, bytes, &from, &to))
		return;
	pthread_mutex_lock(&w->lock);
	clear_bits(w->written, from, to);
	pthread_mutex_unlock(&w->lock);
}

void sim_watch_write(struct sim_watch *w, const uint8_t *p, uint64_t bytes)
{
	uint64_t from, to;

	if (!in_hbm(w, p, bytes, &from, &to))
		return;
	pthread_mutex_lock(&w->lock);
	set_bits(w->written, from, to);
	pthread_mutex_unlock(&w->lock);
}

void sim_watch_copy(struct sim_watch *w, const uint8_t *p, const uint8_t *from,
		    uint64_t bytes)
{
	uint64_t at, end, src, src_end;

	if (!in_hbm(w, p, bytes, &at, &end))
		return;
	/* One that repeats its start comes from what it wrote itself. */
	if (!in_hbm(w, from, bytes, &src, &src_end) || (src < end && at < src_end)) {
		sim_watch_write(w, p, bytes);
		return;
	}
	pthread_mutex_lock(&w->lock);
	for (uint64_t n; at < end; at += n, src += n) {
		uint64_t *to = &w->written[at / 64], mask;

		n = 64 - at % 64 < end - at ? 64 - at % 64 : end - at;
		mask = mask_of(at / 64, at, at + n);
		*to = (*to & ~mask) | (word_at(w->written, src) << at % 64 & mask);
	}
	pthread_mutex_unlock(&w->lock);
}

void sim_watch_begin(struct sim_run *run, const struct sim_program *p)
{
	struct sim_watch *w = run->core->watch;
	uint64_t from, to;

	for (unsigned i = 0; w->written && i < p->n_bindings; i++)
		if (p->bindings[i].access & HW_BIND_SCRATCH &&
		    in_hbm(w, run->base[i], run->bytes[i], &from, &to))
			sim_watch_discard(w, from, to - from);
}

/* ---- instructions ---- */

/* One access of the instruction that is about to run. */
struct visit {
	struct sim_run *run;
	const struct isa_insn *insn;
	const struct isa_access *access, *indices;
	int64_t at, indices_at;	/* where they begin in the model's memory */
	struct sim_watch *watch;	/* of the memory: another chip's, for RPUT and RSIG */
	const uint8_t *missing;	/* the first byte found that nothing has written */
};

static bool expect_written(struct visit *v, const uint8_t *p, uint64_t bytes)
{
	struct sim_watch *w = v->watch;
	uint64_t from, to, gap;

	if (!in_hbm(w, p, bytes, &from, &to))
		return true;
	gap = find_clear(w->written, from, to);
	if (gap == to)
		return true;
	v->missing = w->hbm + gap;
	return false;
}

static bool note_written(struct visit *v, const uint8_t *p, uint64_t bytes)
{
	struct sim_watch *w = v->watch;
	uint64_t from, to;

	if (in_hbm(w, p, bytes, &from, &to))
		set_bits(w->written, from, to);
	return true;
}

typedef bool visit_fn(struct visit *v, const uint8_t *p, uint64_t bytes);

/* Calls fn for every run of an access, until it says no. */
static bool each_run(struct visit *v, const struct isa_access *a, int64_t at, visit_fn *fn)
{
	struct isa_runs r = isa_access_runs(a, at);
	int64_t i[ISA_MAX_RANK + ISA_MAX_INDEX] = { 0 }, p = r.lowest;

	for (;;) {
		unsigned k = 0;

		if (!fn(v, (const uint8_t *)(uintptr_t)p, (uint64_t)r.bytes))
			return false;
		for (; k < r.n; i[k++] = 0) {
			p += r.range[k].stride;
			if (++i[k] < r.range[k].count)
				break;
			p -= r.range[k].stride * r.range[k].count;
		}
		if (k == r.n || sim_stopped(v->run))
			return true;
	}
}

/* How GATHER and SCATTER walk their tables. */
struct tour {
	unsigned rank, n_batch, n_index, elem;
	const struct isa_index *index;
	int64_t index_stride;
	bool clamps;
};

static struct tour tour_of(const struct isa_insn *insn)
{
	const struct isa_gather *g = (const void *)insn;
	const struct isa_scatter *s = (const void *)insn;

	if (insn->op == ISA_GATHER)
		return (struct tour){ g->rank, g->n_batch, g->n_index, g->idx.elem, g->index,
				      g->index_stride, !(insn->flags & ISA_FLAG_FILL) };
	return (struct tour){ s->body.rank, s->n_batch, s->n_index, s->idx.elem, s->index,
			      s->index_stride, false };
}

/* What an index vector adds to a window's place; false: the window is skipped. */
static bool follow(const struct tour *t, int64_t indices_at, int64_t *offset)
{
	for (unsigned k = 0; k < t->n_index; k++) {
		int64_t limit = t->index[k].limit, v = sim_start_at((const uint8_t *)
			(uintptr_t)(indices_at + k * t->index_stride), t->elem,
			t->index[k].wrap);

		if (!t->clamps && (v < 0 || v > limit))
			return false;
		v = v < 0 ? 0 : v > limit ? limit : v;
		*offset += v * t->index[k].step;
	}
	return true;
}

/* As each_run for the windows that the indices name. */
static bool each_window(struct visit *v, visit_fn *fn)
{
	const struct isa_access *a = v->access;
	struct tour t = tour_of(v->insn);
	struct isa_access window = { .bytes = a->bytes, .n = t.rank - t.n_batch };
	int64_t i[ISA_MAX_RANK] = { 0 };

	memcpy(window.range, a->range + t.n_batch, window.n * sizeof(*window.range));
	for (;;) {
		int64_t at = v->at, indices_at = v->indices_at;
		unsigned d = t.n_batch;

		for (unsigned b = 0; b < t.n_batch; b++) {
			at += i[b] * a->range[b].stride;
			if (v->indices)
				indices_at += i[b] * v->indices->range[b].stride;
		}
		if (follow(&t, indices_at, &at) && !each_run(v, &window, at, fn))
			return false;
		while (d-- > 0) {
			if (++i[d] < a->range[d].count)
				break;
			i[d] = 0;
		}
		if (d == UINT32_MAX || sim_stopped(v->run))
			return true;
	}
}

static bool each(struct visit *v, visit_fn *fn)
{
	return v->access->is_table ? each_window(v, fn) :
		each_run(v, v->access, v->at, fn);
}

static int fail(struct sim_run *run, int status, const struct isa_access *a,
		const uint8_t *p, uint64_t bytes)
{
	sim_fault(run, status, NULL, (uint64_t)(p - run->base[a->binding]), bytes);
	run->fault.operand = a->operand;
	run->fault.binding = a->binding;
	run->fault.is_write = status == HW_ST_OPERANDS;
	return status;
}

/* Where an access begins in the model's memory. False: it will fault. */
static bool locate(const struct sim_run *run, const struct isa_access *a, int64_t *out)
{
	int64_t align = a->bytes > 8 ? 8 : a->bytes, lo, hi, at;

	isa_access_span(a, &lo, &hi);
	if (__builtin_add_overflow(a->offset, run->reg[a->reg], &at) ||
	    __builtin_add_overflow(at, lo, &lo) || __builtin_add_overflow(at, hi, &hi) ||
	    lo < 0 || (uint64_t)hi > run->bytes[a->binding] || at & (align - 1))
		return false;
	*out = (int64_t)(uintptr_t)run->base[a->binding] + at;
	return true;
}

/* Outputs that lie where they must not. */
static int check_overlap(struct sim_run *run, const struct isa_access *a, const int64_t *at,
			 unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		const uint8_t *p = (const uint8_t *)(uintptr_t)at[i];

		if (!a[i].is_write)
			continue;
		if (isa_repeats(&a[i]))
			return fail(run, HW_ST_OPERANDS, &a[i], p, a[i].operand);
		for (unsigned j = 0; j < n; j++)
			if (j != i && isa_conflict(&a[i], at[i], &a[j], at[j]))
				return fail(run, HW_ST_OPERANDS, &a[i], p, a[j].operand);
	}
	return 0;
}

/* What an instruction writes to another chip is written there, and what it reads has been. */
static void visit_peer(struct visit *v)
{
	const struct sim_core *core = v->run->core;
	struct sim_watch *w = core->links->watch(core->window[v->access->binding]);

	v->watch = w;
	pthread_mutex_lock(&w->lock);
	each(v, v->access->is_write ? note_written : expect_written);
	pthread_mutex_unlock(&w->lock);
}

/* Whether an access reads from another chip. */
static bool is_from_peer(const struct sim_run *run, const struct sim_program *p,
			 const struct isa_access *a)
{
	return !a->is_write && p->bindings[a->binding].access & HW_BIND_PEER &&
	       run->bytes[a->binding] && run->core->window[a->binding];
}

int sim_watch_insn(struct sim_run *run, const struct sim_program *p, const struct isa_insn *insn)
{
	struct sim_watch *w = run->core->watch;
	struct isa_access a[ISA_MAX_ACCESS];
	unsigned n = isa_accesses(insn, a);
	struct visit v = { .run = run, .insn = insn, .watch = w };
	int64_t at[ISA_MAX_ACCESS];
	int status;

	for (unsigned i = 0; i < n; i++)
		if (!locate(run, &a[i], &at[i]))
			return 0;
	for (unsigned i = 0; i < n; i++)
		a[i].is_peer |= is_from_peer(run, p, &a[i]);
	status = check_overlap(run, a, at, n);
	if (status)
		return status;
	/* indices before the table that they lead into */
	for (unsigned i = 0; i < n; i++)
		if (!a[i].is_write && a[i].operand == 1 &&
		    (insn->op == ISA_GATHER || insn->op == ISA_SCATTER)) {
			v.indices = &a[i];
			v.indices_at = at[i];
		}
	pthread_mutex_lock(&w->lock);
	for (unsigned pass = 0; pass < 3 && !v.missing; pass++)
		for (unsigned i = 0; i < n && !v.missing; i++) {
			bool reads = pass == a[i].is_table && (!a[i].is_write || a[i].is_acc);

			v.access = &a[i];
			v.at = at[i];
			if (!a[i].is_peer && (reads || (pass == 2 && a[i].is_write)))
				each(&v, pass == 2 ? note_written : expect_written);
		}
	pthread_mutex_unlock(&w->lock);
	for (unsigned i = 0; i < n && !v.missing; i++)
		if (a[i].is_peer) {
			v.access = &a[i];
			v.at = at[i];
			visit_peer(&v);
		}
	if (!v.missing)
		return 0;
	return fail(run, HW_ST_UNWRITTEN, v.access, v.missing, run->bytes[v.access->binding]);
}
