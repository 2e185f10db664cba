/* SPDX-License-Identifier: Apache-2.0 */
/* MM: a batch of matrix products with an epilogue (isa.h, product.h). */
#include <string.h>

#include "hal/sim/core/product.h"

struct mm_plan {
	struct sim_product mm;
	struct sim_ref a, b;
	unsigned rank;
	int64_t dim[ISA_MAX_RANK];
	int64_t am, ak, bn, bk;		/* byte strides */
	int64_t m_blocks, n_blocks, mb, nb, batches;
	int64_t phase;		/* b's panels are shared, of this many columns at a time; or 0 */
	int64_t piece;		/* and packed in pieces of so many */
	unsigned keep;		/* the flag of panels that are kept (kept.c), or 0 */
	size_t kept_at;
	uint64_t ns, adds;	/* adds: each with its multiplication */
	bool turns_b;		/* SIM_IN_PLACE: b's columns are brought side by side */
};

/* A plan running; where b's panels are shared or kept, where they are and what all lanes are at. */
struct mm_job {
	struct sim_product_job j;
	uint8_t *panels;
	int64_t batch, n0, n;
	int64_t *rows_of;	/* of each lane: whose a it has, if they are kept, from 1 on */
};

/* n elements `step` bytes apart, side by side: in place if they are. */
static const void *gather(const uint8_t *from, int64_t step, unsigned n, unsigned bytes,
			  void *room)
{
	if (step == bytes)
		return from;
	sim_product_gather(from, step, n, bytes, room);
	return room;
}

static const void *row_a(const struct sim_product_task *t, unsigned i, int64_t k, unsigned n,
			 void *room)
{
	const struct mm_plan *p = t->plan;
	unsigned bytes = elem_bytes(p->mm.panels.a.elem);
	const uint8_t *from = t->a + i * p->am + k * p->ak;

	/* A row to come, for no hardware foresees where it lies. */
	if (p->ak == bytes && i + 2 < t->rows)
		for (unsigned at = 0; at < n * bytes; at += 64)
			__builtin_prefetch(from + 2 * p->am + at);
	return gather(from, p->ak, n, bytes, room);
}

static const uint8_t *place_a(const struct sim_product_task *t, unsigned i, int64_t k)
{
	const struct mm_plan *p = t->plan;

	return p->ak == elem_bytes(p->mm.panels.a.elem) ? t->a + i * p->am + k * p->ak : NULL;
}

static const void *row_b(const struct sim_product_task *t, unsigned i, int64_t k, unsigned n,
			 void *room)
{
	const struct mm_plan *p = t->plan;

	return gather(t->b + i * p->bn + k * p->bk, p->bk, n,
		      elem_bytes(p->mm.panels.b.elem), room);
}

static void lines_a(const struct sim_product_task *t, int64_t k, unsigned n, const uint8_t **at)
{
	const struct mm_plan *p = t->plan;

	for (unsigned i = 0; i < n; i++)
		at[i] = t->a + (k + i) * p->ak;
}

static void lines_b(const struct sim_product_task *t, int64_t k, unsigned n, const uint8_t **at)
{
	const struct mm_plan *p = t->plan;

	for (unsigned i = 0; i < n; i++)
		at[i] = t->b + (k + i) * p->bk;
}

static int64_t blocks(int64_t n, int64_t most, int64_t line, int64_t *size)
{
	int64_t count = (n + most - 1) / most;

	if (!count) {
		*size = 1;
		return 0;
	}
	*size = ((n + count - 1) / count + line - 1) / line * line;
	if (*size > most)
		*size = most;
	return (n + *size - 1) / *size;
}

/* More tasks of long work, of which a lane that others disturb then does fewer. */
static int64_t tasks_of(uint64_t ns, int64_t lanes)
{
	return lanes * (ns <= 300000 ? 1 : ns < 3000000 ? 2 : 4);
}

/* So many columns as blocks have if there is one more of them: whole lines, fewer than nb. */
static int64_t fewer_columns(int64_t n, int64_t n_blocks, int64_t nb)
{
	int64_t few = (n + n_blocks) / (n_blocks + 1), line = SIM_PRODUCT_LINE;

	few = (few + line - 1) / line * line;
	return few < nb ? few : nb - line;
}

#define ALONG_ROWS 400		/* for each lane; of more, to pack b once is as fast, */
#define ALONG_COLS 128		/* or of fewer columns for each */

/* Whether blocks of some rows and columns pack a once for each lane, and b with the sums of their
 * first rows, each for itself: lanes need not meet, and panels do not leave a lane's caches. */
static bool packs_apart(const struct sim_load *load, const struct mm_plan *p)
{
	int64_t m = p->dim[p->rank - 2], n = p->dim[p->rank - 1], lanes = load->cpu->lanes;

	return p->mm.way == SIM_BY_PANELS && p->mm.along && p->batches == 1 &&
	       m >= SIM_PRODUCT_ALONG && m < ALONG_ROWS * lanes && n >= ALONG_COLS * lanes;
}

static int64_t parts(int64_t n, int64_t of)
{
	return (n + of - 1) / of;
}

#define TASK_ROWS 4	/* so many more rows and columns what a task begins with takes, about */
#define TASK_COLS 8

/* Of tasks that leave no lane idle the largest, since each packs and begins anew: of long work some
 * for each lane, for one that others disturb then does fewer. */
static void cut_apart(struct sim_load *load, struct mm_plan *p)
{
	int64_t m = p->dim[p->rank - 2], n = p->dim[p->rank - 1], mr = p->mm.panels.kernel.mr;
	int64_t lanes = p->ns < SIM_PARALLEL_NS ? 1 : load->cpu->lanes, best = 0;
	int64_t wanted = lanes * (p->ns < 6000000 ? 1 : p->ns < 30000000 ? 2 : 4);
	int64_t rows = parts(m, p->mm.most_rows), cols = parts(n, SIM_PRODUCT_NB);

	for (int64_t r = rows; r < rows + 4 && m / r >= SIM_PRODUCT_ALONG; r++)
		for (int64_t c = cols; c < cols + 8 * lanes && n / c >= ALONG_COLS; c++) {
			int64_t mb, m_blocks = blocks(m, parts(parts(m, r), mr) * mr, mr, &mb);
			int64_t nb, n_blocks = blocks(n, parts(parts(n, c), SIM_PRODUCT_LINE) *
						      SIM_PRODUCT_LINE, SIM_PRODUCT_LINE, &nb);
			int64_t tasks = m_blocks * n_blocks;
			int64_t cost = parts(tasks, lanes) * (mb + TASK_ROWS) * (nb + TASK_COLS);

			if (best && (tasks < wanted || cost >= best))
				continue;
			best = tasks < wanted ? INT64_MAX : cost;
			p->m_blocks = m_blocks;
			p->mb = mb;
			p->n_blocks = n_blocks;
			p->nb = nb;
		}
	if (p->n_blocks > load->cpu->lanes)
		sim_product_keep_a(load, &p->mm, p->mb);
}

/* Blocks of one product, each of which packs its own panels. It is cut so that every lane has
 * some of it, at the longer side. */
static void cut(struct sim_load *load, struct mm_plan *p)
{
	int64_t m = p->dim[p->rank - 2], n = p->dim[p->rank - 1], mr = p->mm.panels.kernel.mr;
	int64_t lanes = load->cpu->lanes, wanted = tasks_of(p->ns, lanes), tasks;

	if (packs_apart(load, p)) {
		cut_apart(load, p);
		return;
	}
	p->m_blocks = blocks(m, p->mm.most_rows, mr, &p->mb);
	/* To read lines of b as long as they are is faster, and one row's sums stay in L1. */
	p->n_blocks = blocks(n, m == 1 && p->mm.panels.kernel.few ? SIM_PRODUCT_NB_LONE :
			     SIM_PRODUCT_NB, SIM_PRODUCT_LINE, &p->nb);
	for (;;) {
		tasks = p->batches * p->m_blocks * p->n_blocks;
		/* A few tasks that the lanes cannot share evenly are cut, too. */
		if (p->ns < 20000 || (tasks >= wanted &&
				      (tasks >= 4 * lanes || !(tasks % lanes))))
			break;
		bool by_rows = p->mb > p->nb || p->nb <= SIM_PRODUCT_LINE;

		if (by_rows && p->mb <= mr)
			break;
		if (by_rows)
			p->m_blocks = blocks(m, (p->mb / 2 + mr - 1) / mr * mr, mr, &p->mb);
		else
			p->n_blocks = blocks(n, fewer_columns(n, p->n_blocks, p->nb),
					     SIM_PRODUCT_LINE, &p->nb);
	}
}

#define SHARED_BYTES ((size_t)32 << 20)	/* most of b's panels that are shared at a time */
#define SHARED_NS 1000000u	/* a product of less is not worth two meetings of the lanes */
#define FEW_ROWS 96

/* Makes the rows of several tasks one, as long as lanes have some each: within a task the rows of a
 * to come are fetched during the product before. */
static void join_rows(struct mm_plan *p, int64_t lanes)
{
	int64_t m = p->dim[p->rank - 2], times = p->m_blocks / (4 * lanes);
	int64_t most = p->mm.most_rows / p->mb;

	times = times < most ? times : most;
	if (times > 1)
		p->m_blocks = blocks(m, p->mb * times, p->mb, &p->mb);
}

/* Whether b is packed once for all lanes, which then take rows: if each has some, and the
 * product is large. */
static bool share(struct sim_load *load, struct mm_plan *p)
{
	int64_t m = p->dim[p->rank - 2], n = p->dim[p->rank - 1], lanes = load->cpu->lanes;
	int64_t step = p->mm.panels.kernel.row_step, mb = p->mm.panels.kernel.mb;
	int64_t tasks, part, most;
	uint64_t ns = p->batches ? p->ns / (uint64_t)p->batches : 0;
	size_t line;

	if (!p->mm.k || !m || !n || ns < SHARED_NS || p->batches >= tasks_of(p->ns, lanes))
		return false;
	/* Each element along k takes a byte at least; bytes of more would overflow. */
	if (p->mm.k > (int64_t)SHARED_BYTES / SIM_PRODUCT_NB)
		return false;
	line = sim_product_packed(&p->mm, SIM_PRODUCT_LINE);
	if (line > SHARED_BYTES / (SIM_PRODUCT_NB / SIM_PRODUCT_LINE))
		return false;
	if (m < FEW_ROWS * lanes || packs_apart(load, p))
		return false;
	tasks = (m + mb - 1) / mb;
	tasks = tasks < tasks_of(ns, lanes) ? tasks_of(ns, lanes) : tasks;
	/* As many for each lane, also when lanes take several at a time. */
	part = (tasks + 4 * lanes - 1) / (4 * lanes) * lanes;
	tasks = (tasks + part - 1) / part * part;
	if (tasks > m / FEW_ROWS)
		tasks = m / FEW_ROWS / lanes * lanes;
	step = step < 4 ? 4 : step;
	p->m_blocks = blocks(m, (m + tasks - 1) / tasks + step - 1, step, &p->mb);
	if (p->mb > mb)
		p->m_blocks = blocks(m, mb, step, &p->mb);
	most = (int64_t)(SHARED_BYTES / line) * SIM_PRODUCT_LINE;
	blocks(n, most, SIM_PRODUCT_NB, &p->phase);
	if (n <= most)
		p->phase = n;
	p->n_blocks = blocks(p->phase, SIM_PRODUCT_NB, SIM_PRODUCT_LINE, &p->nb);
	if (p->n_blocks > 1)
		sim_product_keep_a(load, &p->mm, p->mb);
	else
		join_rows(p, lanes);
	p->piece = p->nb;
	while (p->piece > SIM_PRODUCT_LINE &&
	       p->n_blocks * p->mm.panels_k * (p->nb / p->piece) < 4 * lanes)
		p->piece = (p->piece / 2 + SIM_PRODUCT_LINE - 1) / SIM_PRODUCT_LINE *
			   SIM_PRODUCT_LINE;
	sim_need_shared(load, sim_product_packed(&p->mm, p->phase));
	return true;
}

#define KEPT_BYTES ((int64_t)8 << 20)	/* most of one product's panels that are kept */
#define KEPT_ROWS 512	/* of more, packing is little of the product */

/* Asks for room for b's panels, if all of its rows take the same and it packs some. */
static void keep(struct sim_load *load, struct mm_plan *p)
{
	const struct sim_product_kernel *kernel = &p->mm.panels.kernel;
	int64_t m = p->dim[p->rank - 2], n = p->dim[p->rank - 1];
	size_t bytes;

	if (p->batches != 1 || !p->mm.k || !m || !n || m > KEPT_ROWS ||
	    (kernel->few && (m <= kernel->few_rows || p->mb <= kernel->few_rows)) ||
	    p->mm.k > KEPT_BYTES / SIM_PRODUCT_LINE || n > KEPT_BYTES / SIM_PRODUCT_LINE ||
	    (p->phase && p->phase < n))
		return;
	bytes = (size_t)p->n_blocks * sim_product_packed(&p->mm, p->nb);
	if (bytes > (size_t)KEPT_BYTES)
		return;
	p->keep = sim_keep(load, &p->b, bytes, &p->kept_at);
	if (!p->phase)
		p->piece = p->nb;
}

#define IN_PLACE_REGISTER 64	/* bytes: of columns at a time */
/* Of more columns or rows panels are as fast, and of lines so far apart that they fall on each
 * other in a cache, but not of few multiplications. */
#define IN_PLACE_WIDE 3		/* registers of columns */
#define IN_PLACE_PASSES 16
#define IN_PLACE_FAR 1024	/* bytes */
#define IN_PLACE_FAR_PASSES 4
#define IN_PLACE_CELLS 1024

static bool is_far(int64_t step)
{
	return step > IN_PLACE_FAR || step < -IN_PLACE_FAR;
}

/* How often the kernel goes along k: for eight rows at a time, and a register's columns. */
static int64_t passes_of(int64_t rows, int64_t cols, int64_t bytes)
{
	int64_t wide = IN_PLACE_REGISTER / bytes, n = rows / 8;

	n += (rows >> 2 & 1) + (rows >> 1 & 1) + (rows & 1);
	return n * (cols >= wide ? (cols + wide - 1) / wide : cols >= 4 ? (cols + 3) / 4 : cols);
}

/* Whether products of few rows and columns are added up where they lie. */
static bool choose_in_place(struct mm_plan *p)
{
	int64_t rows = p->dim[p->rank - 2], cols = p->dim[p->rank - 1];
	int64_t bytes = p->mm.acc_bytes, most = IN_PLACE_PASSES;

	if (!p->mm.panels.kernel.lone || !p->mm.k || !rows || !cols ||
	    rows > p->mm.panels.kernel.mb || cols > SIM_PRODUCT_NB)
		return false;
	p->turns_b = cols >= 4 && p->bk == bytes && p->bn != bytes;
	if (p->batches == 1 && rows * cols <= IN_PLACE_CELLS / p->mm.k)
		return true;
	if (cols > IN_PLACE_WIDE * IN_PLACE_REGISTER / bytes)
		return false;
	if (cols > 1 && p->bn != bytes && !p->turns_b)
		return false;
	if (is_far(p->ak) || (!p->turns_b && is_far(p->bk)))
		most = IN_PLACE_FAR_PASSES;
	return passes_of(rows, cols, bytes) <= most;
}

/* Each element of both sides, once. */
static uint64_t sides_bytes(const struct isa_mm *mm, uint64_t batches)
{
	const int64_t *dim = mm->body.dim + mm->body.rank - 2;

	return batches * (uint64_t)mm->k * ((uint64_t)dim[0] * elem_bytes(mm->a.elem) +
					    (uint64_t)dim[1] * elem_bytes(mm->b.elem));
}

/* What small products cost beside their sums, about: each element is moved. */
static uint64_t moved_ns(const struct mm_plan *p)
{
	return (p->mm.read_bytes + p->mm.write_bytes) / 8;
}

/* Of few rows each element of b is read for few products, and reading is what takes the time. */
static uint64_t product_ns(const struct mm_plan *p, double work)
{
	uint64_t ns = sim_product_ns(&p->mm, work), reading = p->mm.read_bytes / 80;

	return p->dim[p->rank - 2] <= SIM_PRODUCT_FEW && reading > ns ? reading : ns;
}

static int prepare_mm(struct sim_load *load, const struct isa_insn *insn, const void **plan)
{
	const struct isa_mm *mm = (const void *)insn;
	const struct isa_body *body = &mm->body;
	const struct isa_operand *in = (const void *)(mm + 1);
	const struct isa_operand *out = in + body->n_in;
	const struct isa_uop *uops = (const void *)(out + body->n_out);
	size_t bytes = sizeof(*mm) + (body->n_in + body->n_out) * sizeof(*in) +
		       body->n_uop * sizeof(*uops);
	struct mm_plan *p = arena_alloc(load->arena, sizeof(*p));
	struct sim_range k = { mm->k, mm->a_k_stride };
	unsigned r = body->rank;
	int64_t points = 1;
	double work;
	int ret;

	if (!p)
		return sim_refuse(load, HW_ST_NO_ROOM, "no memory for a plan");
	if (insn->bytes != bytes || insn->flags || mm->k < 0 || r < 2 || r > ISA_MAX_RANK ||
	    mm->precision > ISA_PRECISION_BF16)
		return sim_refuse(load, HW_ST_BAD_PROGRAM, "mm of %u bytes, rank %u, k %lld",
				  insn->bytes, r, (long long)mm->k);
	for (unsigned i = 0; i < sizeof(mm->zero); i++)
		if (mm->zero[i])
			return sim_refuse(load, HW_ST_BAD_PROGRAM, "mm with a reserved byte set");
	for (unsigned d = 0; d < ISA_MAX_RANK; d++)
		if (d < r ? body->dim[d] < 0 || body->dim[d] > SIM_PRODUCT_MAX_DIM ||
		    __builtin_mul_overflow(points, body->dim[d] ? body->dim[d] : 1, &points) :
		    body->dim[d] != 1)
			return sim_refuse(load, HW_ST_BAD_PROGRAM, "dim %u is %lld", d,
					  (long long)body->dim[d]);
	ret = sim_ref(load, &mm->a, 0, false, 0, r, body->dim, &k, 1, &p->a);
	k.stride = mm->b_k_stride;
	if (!ret)
		ret = sim_ref(load, &mm->b, 1, false, 0, r, body->dim, &k, 1, &p->b);
	if (ret)
		return ret;
	if (mm->a.stride[r - 1] || mm->b.stride[r - 2])
		return sim_refuse(load, HW_ST_BAD_PROGRAM, "a moves along n, or b along m");
	p->rank = r;
	memcpy(p->dim, body->dim, sizeof(p->dim));
	p->am = mm->a.stride[r - 2];
	p->bn = mm->b.stride[r - 1];
	p->ak = mm->a_k_stride;
	p->bk = mm->b_k_stride;
	p->mm.acc = mm->acc;
	p->mm.k = mm->k;
	bytes = elem_valid(mm->a.elem) ? elem_bytes(mm->a.elem) : 0;
	p->mm.panels.a = (struct sim_side){ .elem = mm->a.elem, .row = row_a, .place = place_a,
				     .by_lines = p->am == (int64_t)bytes &&
						 p->ak != (int64_t)bytes, .lines = lines_a };
	bytes = elem_valid(mm->b.elem) ? elem_bytes(mm->b.elem) : 0;
	p->mm.panels.b = (struct sim_side){ .elem = mm->b.elem, .row = row_b,
				     .by_lines = p->bn == (int64_t)bytes, .lines = lines_b };
	ret = sim_product_prepare(load, &p->mm, body, in, out, uops, 2);
	if (ret)
		return ret;
	work = (double)mm->k;
	p->batches = 1;
	for (unsigned d = 0; d < r; d++)
		work *= (double)body->dim[d];
	for (unsigned d = 0; d + 2 < r; d++)
		p->batches *= body->dim[d];
	p->mm.read_bytes += work ? sides_bytes(mm, (uint64_t)p->batches) : 0;
	p->ns = product_ns(p, work);
	p->adds = work < 1e18 ? (uint64_t)work : UINT64_MAX / 4;
	sim_product_choose_way(&p->mm, p->batches, p->dim[r - 2], p->dim[r - 1]);
	if (p->mm.way == SIM_BY_PANELS && choose_in_place(p))
		p->mm.way = SIM_IN_PLACE;
	if (p->mm.way != SIM_BY_PANELS)
		p->ns += moved_ns(p);
	if (p->mm.way != SIM_BY_PANELS || !share(load, p))
		cut(load, p);
	if (p->mm.way == SIM_BY_PANELS)
		keep(load, p);
	*plan = p;
	return 0;
}

static void finish_rows(const struct sim_product_task *t, void *scratch, uint8_t *sums,
			unsigned row, unsigned rows)
{
	int64_t at[ISA_MAX_RANK];

	memcpy(at, t->index, sizeof(at));
	at[t->mm->rank - 2] += row;
	sim_product_finish(t, scratch, sums, rows, at);
}

/* Moves a task to a batch; index is the coordinates of its first point there. */
static void find_batch(const struct mm_plan *p, int64_t batch, struct sim_product_task *t,
		       int64_t *index)
{
	for (unsigned d = p->rank - 2; d-- > 0;) {
		index[d] = batch % p->dim[d];
		batch /= p->dim[d];
		t->a += index[d] * p->a.stride[d];
		t->b += index[d] * p->b.stride[d];
	}
}

static void run_task(struct sim_product_task *t, int64_t *index, void *scratch)
{
	const struct mm_plan *p = t->plan;

	t->a += index[p->rank - 2] * p->am;
	t->b += index[p->rank - 1] * p->bn;
	t->index = index;
	sim_product_go_direct(t, index);
	sim_product_run(t, scratch);
}

/* Where the panels of the block at column n0 are: each begins with a line of its own. */
static uint8_t *panels_at(const struct mm_job *job, int64_t n0)
{
	const struct mm_plan *p = job->j.plan;

	return job->panels + (size_t)(n0 / p->nb) * sim_product_packed(&p->mm, p->nb);
}

static void run_blocks(void *arg, uint64_t begin, uint64_t end, unsigned lane)
{
	const struct mm_job *job = arg;
	const struct mm_plan *p = job->j.plan;

	for (uint64_t i = begin; i < end && !sim_stopped(job->j.run); i++) {
		int64_t n0 = (int64_t)(i % (uint64_t)p->n_blocks) * p->nb;
		int64_t rest = (int64_t)(i / (uint64_t)p->n_blocks);
		int64_t m0 = rest % p->m_blocks * p->mb;
		int64_t m = p->dim[p->rank - 2], n = p->dim[p->rank - 1];
		int64_t index[ISA_MAX_RANK] = { 0 };
		struct sim_product_task t = { .mm = &p->mm, .run = job->j.run, .plan = p,
			.job = &job->j, .a = job->j.a, .b = job->j.b, .finish = finish_rows,
			.rows = (unsigned)(m - m0 < p->mb ? m - m0 : p->mb),
			.cols = (unsigned)(n - n0 < p->nb ? n - n0 : p->nb) };

		if (job->panels)
			t.packed = panels_at(job, n0);
		find_batch(p, rest / p->m_blocks, &t, index);
		index[p->rank - 2] = m0;
		index[p->rank - 1] = n0;
		if (p->mm.keeps_a) {
			t.has_a = job->rows_of[lane] == rest + 1;
			job->rows_of[lane] = rest + 1;
		}
		run_task(&t, index, sim_scratch(job->j.run, lane));
	}
}

static void run_all_blocks(struct mm_job *job)
{
	const struct mm_plan *p = job->j.plan;
	int64_t rows_of[SIM_MAX_LANES];

	if (p->mm.keeps_a)
		memset(rows_of, 0, job->j.run->cpu->lanes * sizeof(*rows_of));
	job->rows_of = rows_of;
	sim_parallel(job->j.run, (uint64_t)(p->batches * p->m_blocks * p->n_blocks), 1, p->ns,
		     run_blocks, job);
}

/* ---- many small products ---- */

/* Some products: where they are, and where the sums go. */
struct few {
	unsigned n;
	const uint8_t *a[SIM_PRODUCT_TINY], *b[SIM_PRODUCT_TINY], *out[SIM_PRODUCT_TINY];
	int64_t index[SIM_PRODUCT_TINY][ISA_MAX_RANK];
};

static void find_few(const struct mm_job *job, uint64_t first, struct few *f)
{
	const struct mm_plan *p = job->j.plan;
	const struct sim_ref *out = &p->mm.out[0];
	uint64_t left = (uint64_t)p->batches - first;

	f->n = left < SIM_PRODUCT_TINY ? (unsigned)left : SIM_PRODUCT_TINY;
	for (unsigned i = 0; i < f->n; i++) {
		int64_t *index = f->index[i], batch = (int64_t)first + i;

		f->a[i] = job->j.a;
		f->b[i] = job->j.b;
		f->out[i] = job->j.out[0];
		index[p->rank - 2] = index[p->rank - 1] = 0;
		for (unsigned d = p->rank - 2; d-- > 0;) {
			index[d] = d ? batch % p->dim[d] : batch;
			batch = d ? batch / p->dim[d] : 0;
			f->a[i] += index[d] * p->a.stride[d];
			f->b[i] += index[d] * p->b.stride[d];
			f->out[i] += index[d] * out->stride[d];
		}
	}
}

/* Whether all are as far apart. */
static bool is_even(const uint8_t *const *at, unsigned n, int64_t *pitch)
{
	*pitch = n > 1 ? at[1] - at[0] : 0;
	for (unsigned i = 2; i < n; i++)
		if (at[i] - at[i - 1] != *pitch)
			return false;
	return true;
}

/* Matrices of so many bytes are copied to and from memory whole: sixteen streams at a time are more
 * than a CPU foresees, and may fall on each other in its caches. PITCH: of the copies. */
#define LONG_BYTES 512
#define LONG_PITCH(bytes) ((int64_t)(bytes) + 64)

/* n matrices of rows by cols, which lie `down` and `across` bytes apart, as [rows][cols][TINY]. */
static void take_few(const struct sim_product *mm, const uint8_t *const *at, unsigned n,
		     const int64_t *apart, unsigned rows, unsigned cols, uint8_t *raw, uint8_t *to)
{
	const int64_t bytes = mm->acc_bytes, line = SIM_PRODUCT_TINY * bytes;
	const int64_t down = rows > 1 ? apart[0] : cols * bytes;
	const int64_t across = cols > 1 ? apart[1] : bytes;
	bool even;
	int64_t pitch;

	even = is_even(at, n, &pitch);
	if (across == bytes && down == cols * bytes && down * rows >= LONG_BYTES) {
		pitch = LONG_PITCH(down * rows);
		for (unsigned i = 0; i < n; i++)
			memcpy(raw + i * pitch, at[i], (size_t)(down * rows));
		mm->turn(to, line, raw, pitch, n, (size_t)rows * cols);
	} else if (even && across == bytes && down == cols * bytes) {
		mm->turn(to, line, at[0], pitch, n, (size_t)rows * cols);
	} else if (even && across == bytes) {
		for (unsigned r = 0; r < rows; r++)
			mm->turn(to + r * cols * line, line, at[0] + r * down, pitch, n, cols);
	} else if (even && down == bytes) {
		for (unsigned c = 0; c < cols; c++)
			mm->turn(to + c * line, cols * line, at[0] + c * across, pitch, n, rows);
	} else {
		for (unsigned i = 0; i < n; i++)
			for (unsigned r = 0; r < rows; r++)
				sim_product_gather(at[i] + r * down, across, cols,
						   (unsigned)bytes,
						   raw + (i * rows + r) * cols * bytes);
		mm->turn(to, line, raw, rows * cols * bytes, n, (size_t)rows * cols);
	}
}

/* Sums to where they go; false: they do not lie there as they are. */
static bool put_few(const struct mm_plan *p, const struct few *f, const uint8_t *sums,
		    uint8_t *raw)
{
	const struct sim_product *mm = &p->mm;
	const int64_t bytes = mm->acc_bytes, line = SIM_PRODUCT_TINY * bytes;
	unsigned rows = (unsigned)p->dim[p->rank - 2], cols = (unsigned)p->dim[p->rank - 1];
	const int64_t *stride = mm->out[0].stride + p->rank - 2;
	uint8_t *to = (uint8_t *)(uintptr_t)f->out[0];
	size_t whole = (size_t)(rows * cols * bytes);
	int64_t pitch;

	if (!mm->is_direct || (cols > 1 && stride[1] != bytes) || !is_even(f->out, f->n, &pitch))
		return false;
	if (rows > 1 && stride[0] == cols * bytes && whole >= LONG_BYTES) {
		mm->turn(raw, LONG_PITCH(whole), sums, line, (size_t)rows * cols, f->n);
		for (unsigned i = 0; i < f->n; i++)
			memcpy(to + i * pitch, raw + i * LONG_PITCH(whole), whole);
		return true;
	}
	if (rows == 1 || stride[0] == cols * bytes) {
		mm->turn(to, pitch, sums, line, (size_t)rows * cols, f->n);
		return true;
	}
	for (unsigned r = 0; r < rows; r++)
		mm->turn(to + r * stride[0], pitch, sums + r * cols * line, line, cols, f->n);
	return true;
}

/* Their epilogues, one after the other. */
static void finish_few(const struct mm_job *job, const struct few *f, const uint8_t *sums,
		       void *scratch)
{
	const struct mm_plan *p = job->j.plan;
	const struct sim_product *mm = &p->mm;
	struct sim_product_task t = { .mm = mm, .run = job->j.run, .plan = p, .job = &job->j,
		.rows = (unsigned)p->dim[p->rank - 2], .cols = (unsigned)p->dim[p->rank - 1] };
	uint8_t *raw = sim_product_part(mm, scratch, SIM_PART_RAW);
	size_t cells = (size_t)t.rows * t.cols;

	mm->turn(raw, (int64_t)(cells * mm->acc_bytes), sums,
		 (int64_t)SIM_PRODUCT_TINY * mm->acc_bytes, cells, f->n);
	for (unsigned i = 0; i < f->n; i++)
		sim_product_finish(&t, scratch, raw + i * cells * mm->acc_bytes, t.rows,
				   f->index[i]);
}

static void run_products(void *arg, uint64_t begin, uint64_t end, unsigned lane)
{
	const struct mm_job *job = arg;
	const struct mm_plan *p = job->j.plan;
	const struct sim_product *mm = &p->mm;
	uint8_t *s = sim_scratch(job->j.run, lane), *raw = sim_product_part(mm, s, SIM_PART_RAW);
	uint8_t *a = sim_product_part(mm, s, SIM_PART_A), *b = sim_product_part(mm, s, SIM_PART_B);
	struct sim_product_tiny x = { .a = a, .b = b,
		.sums = sim_product_part(mm, s, SIM_PART_SUMS), .k = (unsigned)mm->k,
		.rows = (unsigned)p->dim[p->rank - 2], .cols = (unsigned)p->dim[p->rank - 1] };

	for (uint64_t i = begin; i < end && !sim_stopped(job->j.run); i++) {
		struct few f;

		find_few(job, i * SIM_PRODUCT_TINY, &f);
		take_few(mm, f.a, f.n, (const int64_t[]){ p->am, p->ak }, x.rows, x.k, raw, a);
		take_few(mm, f.b, f.n, (const int64_t[]){ p->bk, p->bn }, x.k, x.cols, raw, b);
		mm->panels.kernel.tiny(&x);
		if (!put_few(p, &f, x.sums, raw))
			finish_few(job, &f, x.sums, s);
	}
}

/* ---- small products that are read where they lie ---- */

/* Adds up the sums, a panel's length of k at a time, as by panels. */
static void sum_in_place(const struct sim_product_task *t, struct sim_product_lone *x,
			 uint8_t *scratch)
{
	const struct mm_plan *p = t->plan;
	const struct sim_product *mm = t->mm;
	const int64_t most = mm->ku;
	const uint8_t *b = t->b;

	for (int64_t left = mm->k; left && !sim_stopped(t->run); left -= x->k) {
		x->k = (unsigned)(left < most ? left : most);
		x->b = b;
		if (p->turns_b) {
			mm->turn(scratch + mm->b_at, x->b_k, b, p->bn, t->cols, x->k);
			x->b = scratch + mm->b_at;
		}
		mm->panels.kernel.lone(x);
		x->a += x->k * x->a_k;
		b += x->k * p->bk;
		x->before = x->sums;
		x->before_down = x->down;
	}
}

static void run_in_place(void *arg, uint64_t begin, uint64_t end, unsigned lane)
{
	const struct mm_job *job = arg;
	const struct mm_plan *p = job->j.plan;
	const struct sim_product *mm = &p->mm;
	uint8_t *s = sim_scratch(job->j.run, lane);

	for (uint64_t i = begin; i < end && !sim_stopped(job->j.run); i++) {
		int64_t index[ISA_MAX_RANK] = { 0 };
		struct sim_product_task t = { .mm = mm, .run = job->j.run, .plan = p,
			.job = &job->j, .a = job->j.a, .b = job->j.b,
			.rows = (unsigned)p->dim[p->rank - 2],
			.cols = (unsigned)p->dim[p->rank - 1] };
		struct sim_product_lone x = { .a_row = p->am, .a_k = p->ak,
			.b_k = p->turns_b ? t.cols * mm->acc_bytes : p->bk,
			.b_col = p->turns_b ? mm->acc_bytes : p->bn,
			.sums = s + mm->sums_at, .down = t.cols, .rows = t.rows, .cols = t.cols };

		find_batch(p, (int64_t)i, &t, index);
		x.a = t.a;
		sim_product_go_direct(&t, index);
		if (t.direct) {
			x.sums = t.direct;
			x.down = t.pitch;
			x.before = t.plus;
			x.before_down = t.plus_pitch;
		}
		sum_in_place(&t, &x, s);
		if (!t.direct && !sim_stopped(job->j.run))
			sim_product_finish(&t, s, x.sums, t.rows, index);
	}
}

/* ---- b's panels for all lanes ---- */

/* A task of some rows and the block at column n0 of a phase. */
static struct sim_product_task shared_task(const struct mm_job *job, int64_t n0, int64_t *index)
{
	const struct mm_plan *p = job->j.plan;
	struct sim_product_task t = { .mm = &p->mm, .run = job->j.run, .plan = p,
		.job = &job->j, .a = job->j.a, .b = job->j.b, .finish = finish_rows,
		.cols = (unsigned)(job->n - n0 < p->nb ? job->n - n0 : p->nb),
		.packed = panels_at(job, n0) };

	find_batch(p, job->batch, &t, index);
	index[p->rank - 1] = job->n0 + n0;
	return t;
}

static void pack_pieces(void *arg, uint64_t begin, uint64_t end, unsigned lane)
{
	const struct mm_job *job = arg;
	const struct mm_plan *p = job->j.plan;
	uint64_t pieces = (uint64_t)((p->nb + p->piece - 1) / p->piece);

	for (uint64_t i = begin; i < end && !sim_stopped(job->j.run); i++) {
		unsigned first = (unsigned)(i % pieces) * (unsigned)p->piece;
		uint64_t rest = i / pieces;
		int64_t at = (int64_t)(rest % (uint64_t)p->mm.panels_k);
		int64_t index[ISA_MAX_RANK] = { 0 };
		int64_t n0 = (int64_t)(rest / (uint64_t)p->mm.panels_k) * p->nb;
		struct sim_product_task t = shared_task(job, n0, index);

		t.b += index[p->rank - 1] * p->bn;
		if (first < t.cols)
			sim_product_pack(&t, sim_scratch(job->j.run, lane), at, first,
					 t.cols - first < p->piece ? t.cols - first :
					 (unsigned)p->piece, panels_at(job, n0));
	}
}

static void run_rows(void *arg, uint64_t begin, uint64_t end, unsigned lane)
{
	const struct mm_job *job = arg;
	const struct mm_plan *p = job->j.plan;
	int64_t m = p->dim[p->rank - 2];

	for (uint64_t i = begin; i < end && !sim_stopped(job->j.run); i++)
		for (int64_t n0 = 0; n0 < job->n && !sim_stopped(job->j.run); n0 += p->nb) {
			int64_t index[ISA_MAX_RANK] = { 0 }, m0 = (int64_t)i * p->mb;
			struct sim_product_task t = shared_task(job, n0, index);

			t.rows = (unsigned)(m - m0 < p->mb ? m - m0 : p->mb);
			t.has_a = n0 > 0;
			index[p->rank - 2] = m0;
			run_task(&t, index, sim_scratch(job->j.run, lane));
		}
}

/* Packs columns job->n0 .. + job->n, by all lanes; ns: of their product. */
static void pack(struct mm_job *job, uint64_t ns)
{
	const struct mm_plan *p = job->j.plan;
	int64_t pieces = (p->nb + p->piece - 1) / p->piece * p->mm.panels_k;

	sim_parallel(job->j.run, (uint64_t)(pieces * ((job->n + p->nb - 1) / p->nb)), 1, ns / 8,
		     pack_pieces, job);
}

static void run_shared(struct mm_job *job, bool is_packed)
{
	const struct mm_plan *p = job->j.plan;
	struct sim_run *run = job->j.run;
	int64_t n = p->dim[p->rank - 1], phases = (n + p->phase - 1) / p->phase;
	uint64_t ns = p->ns / (uint64_t)(p->batches * phases);

	for (int64_t i = 0; i < p->batches * phases && !sim_stopped(run); i++) {
		job->batch = i / phases;
		job->n0 = i % phases * p->phase;
		job->n = n - job->n0 < p->phase ? n - job->n0 : p->phase;
		if (!is_packed)
			pack(job, ns);
		sim_parallel(run, (uint64_t)p->m_blocks, 1, ns, run_rows, job);
	}
}

/* Where the panels of all of b are kept, made now if this is the second turn: sets job->panels. */
static bool find_kept(struct mm_job *job)
{
	const struct mm_plan *p = job->j.plan;
	struct sim_run *run = job->j.run;
	uint8_t *flag = p->keep ? sim_kept_flag(run, p->keep) : NULL;

	if (!flag)
		return false;
	if (*flag == SIM_KEPT_NEW) {
		*flag = SIM_KEPT_SEEN;
		return false;
	}
	job->panels = run->kept + p->kept_at;
	job->n = p->dim[p->rank - 1];
	if (*flag == SIM_KEPT_SEEN)
		pack(job, p->ns);
	*flag = SIM_KEPT_READY;
	return true;
}

static int run_mm(struct sim_run *run, const void *plan)
{
	const struct mm_plan *p = plan;
	struct mm_job job = { .n0 = 0 };
	int ret = sim_product_bind(run, &p->mm, p, &p->a, &p->b, &job.j);
	bool is_packed;

	if (ret)
		return ret;
	run->matrix_ops += p->adds;
	is_packed = find_kept(&job);
	if (p->phase && !is_packed)
		job.panels = run->shared;
	if (p->phase)
		run_shared(&job, is_packed);
	else if (p->mm.way == SIM_IN_PLACE)
		sim_parallel(run, (uint64_t)p->batches, 1, p->ns, run_in_place, &job);
	else if (p->mm.way == SIM_BY_PRODUCTS)
		sim_parallel(run, ((uint64_t)p->batches + SIM_PRODUCT_TINY - 1) / SIM_PRODUCT_TINY,
			     1, p->ns, run_products, &job);
	else
		run_all_blocks(&job);
	return 0;
}

const struct sim_family sim_family_mm = { prepare_mm, run_mm };
