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
	uint64_t ns, ops;
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

/* Blocks of one product. It is cut so that every lane has some of it, at the longer side,
 * for every block packs its own panels. */
static void cut(const struct sim_load *load, struct mm_plan *p)
{
	int64_t m = p->dim[p->rank - 2], n = p->dim[p->rank - 1], mr = p->mm.panels.kernel.mr;
	int64_t lanes = load->cpu->lanes, wanted = lanes, tasks;

	/* More of long ones, of which a lane that others disturb then does fewer. */
	if (p->ns > 300000)
		wanted *= p->ns < 3000000 ? 2 : 4;
	p->m_blocks = blocks(m, p->mm.most_rows, mr, &p->mb);
	p->n_blocks = blocks(n, SIM_PRODUCT_NB, SIM_PRODUCT_LINE, &p->nb);
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
			p->m_blocks = blocks(m, p->mb / 2, mr, &p->mb);
		else
			p->n_blocks = blocks(n, p->nb / 2, SIM_PRODUCT_LINE, &p->nb);
	}
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
	p->mm.panels.a = (struct sim_side){ mm->a.elem, p->am == (int64_t)bytes &&
				     p->ak != (int64_t)bytes, row_a, lines_a };
	bytes = elem_valid(mm->b.elem) ? elem_bytes(mm->b.elem) : 0;
	p->mm.panels.b = (struct sim_side){ mm->b.elem, p->bn == (int64_t)bytes, row_b, lines_b };
	ret = sim_product_prepare(load, &p->mm, body, in, out, uops, 2);
	if (ret)
		return ret;
	work = (double)mm->k;
	p->batches = 1;
	for (unsigned d = 0; d < r; d++)
		work *= (double)body->dim[d];
	for (unsigned d = 0; d + 2 < r; d++)
		p->batches *= body->dim[d];
	p->ns = sim_product_ns(&p->mm, work);
	p->ops = work < 1e18 ? 2 * (uint64_t)work : UINT64_MAX / 2;
	cut(load, p);
	*plan = p;
	return 0;
}

static void run_blocks(void *arg, uint64_t begin, uint64_t end, unsigned lane)
{
	const struct sim_product_job *j = arg;
	const struct mm_plan *p = j->plan;
	void *scratch = sim_scratch(j->run, lane);

	for (uint64_t i = begin; i < end && !sim_stopped(j->run); i++) {
		int64_t n0 = (int64_t)(i % (uint64_t)p->n_blocks) * p->nb;
		int64_t rest = (int64_t)(i / (uint64_t)p->n_blocks);
		int64_t m0 = rest % p->m_blocks * p->mb;
		int64_t m = p->dim[p->rank - 2], n = p->dim[p->rank - 1];
		struct sim_product_task t = { .mm = &p->mm, .run = j->run, .plan = p, .a = j->a,
					      .b = j->b };
		int64_t index[ISA_MAX_RANK] = { 0 };

		rest /= p->m_blocks;
		for (unsigned d = p->rank - 2; d-- > 0;) {
			index[d] = rest % p->dim[d];
			rest /= p->dim[d];
			t.a += index[d] * p->a.stride[d];
			t.b += index[d] * p->b.stride[d];
		}
		t.a += m0 * p->am;
		t.b += n0 * p->bn;
		t.rows = (unsigned)(m - m0 < p->mb ? m - m0 : p->mb);
		t.cols = (unsigned)(n - n0 < p->nb ? n - n0 : p->nb);
		index[p->rank - 2] = m0;
		index[p->rank - 1] = n0;
		sim_product_sum(&t, scratch);
		sim_product_finish(&t, scratch, 0, t.rows, index, j->in, j->out);
	}
}

static int run_mm(struct sim_run *run, const void *plan)
{
	const struct mm_plan *p = plan;
	struct sim_product_job j;
	int ret = sim_product_bind(run, &p->mm, p, &p->a, &p->b, &j);

	if (ret)
		return ret;
	run->matrix_ops += p->ops;
	sim_parallel(run, (uint64_t)(p->batches * p->m_blocks * p->n_blocks), 1, p->ns,
		     run_blocks, &j);
	return 0;
}

const struct sim_family sim_family_mm = { prepare_mm, run_mm };
