/* SPDX-License-Identifier: Apache-2.0 */
/* Fourier transforms along one dim. */
#include <math.h>
#include <string.h>

#include "runtime/compiler/back/emit.h"

static struct isa_operand operand(const struct home *h, const struct tc_type *t)
{
	struct isa_operand op = tc_operand(h, t->elem);

	for (unsigned d = 0; d < t->rank; d++)
		op.stride[d] = t->dim[d] > 1 ? h->stride[d] : 0;
	return op;
}

void tc_emit_fft(struct emit *e, const struct tc_op *op)
{
	const struct tc_value *in = tc_in(op, 0), *v = tc_out(op, 0);
	const struct tc_type *t = v->type;
	int64_t n = tc_attr_nth(op, "fft_length", 0), kind = tc_attr_int(op, "fft_type", 0);
	struct home from = *tc_home(e, in), to;
	unsigned axis = tc_fft_first(op);
	struct isa_fft *f;
	double work;

	if (t->rank > ISA_MAX_RANK)
		tc_refuse_dims(e, "it has", t->rank);
	/* Complex numbers become others in their places. */
	if (in->type != t || !tc_take_over(e, v, in, NULL, NULL, 0, &to))
		to = *tc_place(e, v);
	if (!t->count)
		return;
	f = tc_put(e, ISA_FFT, sizeof(*f));
	if (kind == TC_FFT_IFFT || kind == TC_FFT_IRFFT)
		f->insn.flags = ISA_FLAG_INVERSE;
	f->rank = (uint8_t)t->rank;
	f->axis = (uint8_t)axis;
	memcpy(&f->scale, tc_attr(op, "scale")->data, sizeof(f->scale));
	for (unsigned d = 0; d < ISA_MAX_RANK; d++)
		f->dim[d] = d < t->rank ? t->dim[d] : 1;
	f->dim[axis] = n;
	f->src = operand(&from, in->type);
	f->dst = operand(&to, t);
	/* As fast transforms are counted: real ones take half. */
	work = 5 * (double)(t->count / t->dim[axis]) * (double)n * log2((double)n);
	if (in->type->elem != t->elem)
		work /= 2;
	e->flops += work;
	e->cost_ns += work * 0.05;
	tc_count_arrays(e, op);
}
