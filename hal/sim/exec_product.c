/* SPDX-License-Identifier: Apache-2.0 */
/* MM: a batch of matrix products with an epilogue (isa.h, product.h). */
#include <string.h>

#include "hal/sim/product.h"

struct mm_plan {
	struct sim_product mm;
	struct sim_ref a, b;
	unsigned rank;
	int64_t dim[ISA_MAX_RANK];
	int64_t am, ak, bn, bk;		/* byte strides */
	int64_t m_blocks, n_blocks, mb, nb, batches;
	uint64_t ns;
};

struct job {
	struct sim_run *run;
	const struct mm_plan *p;
	const uint8_t *a, *b;
	const uint8_t *in[ISA_MAX_IN];
	uint8_t *out[ISA_MAX_OUT];
};

static struct sim_run_of run_a(const struct sim_product_task *t, unsigned i, int64_t k)
{
	const struct mm_plan *p = t->plan;

	return (struct sim_run_of){ t->a + i * p->am + k * p->ak, p->ak, UINT32_MAX };
}

static struct sim_run_of run_b(const struct sim_product_task *t, unsigned i, int64_t k)
{
	const struct mm_plan *p = t->plan;

	return (struct sim_run_of){ t->b + i * p->bn + k * p->bk, p->bk, UINT32_MAX };
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
	int64_t m, n;
	double work;
	int ret;

	if (!p)
		return sim_refuse(load, HW_ST_NO_ROOM, "no memory for a plan");
	if (insn->bytes != bytes || insn->flags || mm->k < 0 || r < 2 || r > ISA_MAX_RANK ||
	    mm->precision > ISA_PRECISION_BF16)
		return sim_refuse(load, HW_ST_BAD_PROGRAM, "mm of %u bytes, rank %u, k %lld",
				  insn->bytes, r, (long long)mm->k);
	for (unsigned d = 0; d < ISA_MAX_RANK; d++)
		if (d < r ? body->dim[d] < 0 : body->dim[d] != 1)
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
	p->mm.a = (struct sim_side){ mm->a.elem, run_a, p->am };
	p->mm.b = (struct sim_side){ mm->b.elem, run_b, p->bn };
	ret = sim_product_prepare(load, &p->mm, body, in, out, uops, 2);
	if (ret)
		return ret;
	m = body->dim[r - 2];
	n = body->dim[r - 1];
	p->m_blocks = blocks(m, SIM_PRODUCT_MB, p->mm.mr, &p->mb);
	p->n_blocks = blocks(n, SIM_PRODUCT_NB, SIM_PRODUCT_LINE, &p->nb);
	p->batches = 1;
	work = 2.0 * (double)m * (double)n * (double)mm->k;
	for (unsigned d = 0; d + 2 < r; d++) {
		p->batches *= body->dim[d];
		work *= (double)body->dim[d];
	}
	/* One large product is cut so that every lane has some of it. */
	while (p->batches * p->m_blocks * p->n_blocks < 4 * (int64_t)load->cpu->lanes &&
	       p->mb > 4 * (int64_t)p->mm.mr && work > 1e6) {
		p->mb = (p->mb / 2 + p->mm.mr - 1) / p->mm.mr * p->mm.mr;
		p->m_blocks = (m + p->mb - 1) / p->mb;
	}
	work *= mm->acc == ELEM_F32 ? 0.012 : 0.3;
	p->ns = work < 1e18 ? (uint64_t)work : UINT64_MAX / 2;
	*plan = p;
	return 0;
}

static void run_blocks(void *arg, uint64_t begin, uint64_t end, unsigned lane)
{
	const struct job *j = arg;
	const struct mm_plan *p = j->p;
	void *scratch = sim_scratch(j->run, lane);

	for (uint64_t i = begin; i < end && !sim_stopped(j->run); i++) {
		int64_t n0 = (int64_t)(i % (uint64_t)p->n_blocks) * p->nb;
		int64_t rest = (int64_t)(i / (uint64_t)p->n_blocks);
		int64_t m0 = rest % p->m_blocks * p->mb;
		int64_t m = p->dim[p->rank - 2], n = p->dim[p->rank - 1];
		struct sim_product_task t = { .mm = &p->mm, .run = j->run, .plan = p, .a = j->a,
					 .b = j->b, .extra = { 0, 0, 0, p->rank } };
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
	struct job j = { .run = run, .p = p };

	j.a = sim_at(run, &p->a);
	j.b = j.a ? sim_at(run, &p->b) : NULL;
	if (!j.b)
		return run->fault.status;
	for (unsigned i = 0; i < p->mm.n_in; i++)
		if (!(j.in[i] = sim_at(run, &p->mm.in[i])))
			return run->fault.status;
	for (unsigned i = 0; i < p->mm.n_out; i++)
		if (!(j.out[i] = sim_at(run, &p->mm.out[i])))
			return run->fault.status;
	run->matrix_ops += p->ns * 80;
	sim_parallel(run, (uint64_t)(p->batches * p->m_blocks * p->n_blocks), 1, p->ns,
		     run_blocks, &j);
	return 0;
}

const struct sim_family sim_family_mm = { prepare_mm, run_mm };
