/* SPDX-License-Identifier: Apache-2.0 */
/* The choice of a kernel, sums of a block, and epilogues (product.h). */
#include <string.h>

#include "hal/sim/core/product.h"

/* ---- kernels ---- */

typedef uint8_t half_line __attribute__((vector_size(SIM_PRODUCT_LINE / 2), aligned(1), may_alias));

/* Of truth values: whether any two are both true. */
static void kernel_pred(const struct sim_product_step *p)
{
	for (unsigned j = 0; j < p->cols; j += SIM_PRODUCT_LINE)
		for (unsigned i = 0; i < p->rows; i++) {
			const uint8_t *x = (const uint8_t *)p->a + i * SIM_PRODUCT_PITCH;
			const uint8_t *y = (const uint8_t *)p->b + (size_t)j * p->ku;
			const uint8_t *from = (const uint8_t *)p->before +
					      (size_t)i * p->before_ld + j;
			uint8_t *out = (uint8_t *)p->sums + (size_t)i * p->ld + j;
			unsigned w = p->cols - j;
			half_line sums[2] = { { 0 } };

			if (w > SIM_PRODUCT_LINE)
				w = SIM_PRODUCT_LINE;
			if (p->before)
				memcpy(sums, from, w);
			for (unsigned k = 0; k < p->ku; k++, y += SIM_PRODUCT_LINE) {
				const half_line *line = (const half_line *)y;

				sums[0] |= x[k] & line[0];
				sums[1] |= x[k] & line[1];
			}
			memcpy(out, sums, w);
		}
}

static bool is_byte(unsigned elem)
{
	return elem == ELEM_S8 || elem == ELEM_U8;
}

static bool is_short(unsigned elem)
{
	return is_byte(elem) || elem == ELEM_S16;
}

/* A kernel of units of 4 bytes. */
static struct sim_product_kernel fast(sim_product_fn *fn, uint8_t a, uint8_t b, uint16_t speed)
{
	uint8_t group = (uint8_t)(4 / elem_bytes(a));

	return (struct sim_product_kernel){ .fn = fn, .a = a, .b = b, .group = group,
					    .unit = 4, .k_step = 1, .row_step = 1, .mr = 12,
					    .mb = SIM_PRODUCT_MB, .speed = speed };
}

/* The kernels for sums of this type on the CPU's path, beside that of panels: elements of b, or of
 * both sides, are of the sums' type. */
static void choose_others(const struct sim_cpu *cpu, struct sim_product *mm)
{
	struct sim_product_kernel *k = &mm->panels.kernel;
	const struct sim_side *a = &mm->panels.a, *b = &mm->panels.b;

#define ON_PATH(name) (cpu->path == SIM_AVX512 ? name##_avx512 : \
		       cpu->path == SIM_AVX2 ? name##_avx2 : name##_portable)
#define OF(type) do { \
		k->few = ON_PATH(sim_product_few_##type); \
		k->tiny = ON_PATH(sim_product_tiny_##type); \
		k->lone = ON_PATH(sim_product_lone_##type); \
	} while (0)
	switch (mm->acc) {
	case ELEM_F32: OF(f32); break;
	case ELEM_F64: OF(f64); break;
	case ELEM_S32:
	case ELEM_U32: OF(i32); break;
	case ELEM_S64:
	case ELEM_U64: OF(i64); break;
	default: break;
	}
#undef OF
	k->few_rows = SIM_PRODUCT_FEW;
	k->near_rows = SIM_PRODUCT_FEW_NEAR;
	k->any_pitch = k->few && k->a == mm->acc;
	/* What has no type to be converted from may be read where it lies. bf16 is part of f32, but
	 * is widened for every four rows anew. */
	if (b->elem == ELEM_BF16 && mm->acc == ELEM_F32 && k->b == ELEM_F32) {
		k->few = ON_PATH(sim_product_few_bf16);
		k->few_rows = k->near_rows = cpu->path == SIM_AVX512 ? 12 : 4;
	} else if (b->elem != k->b || b->elem != mm->acc) {
		k->few = NULL;
	}
	if (!b->by_lines)
		k->few = NULL;
	k->along |= k->few != NULL;
	if (a->elem != mm->acc || b->elem != mm->acc)
		k->tiny = NULL, k->lone = NULL;
#undef ON_PATH
}

static struct sim_product_kernel tiles(sim_product_fn *fn, uint8_t a, uint8_t b)
{
	struct sim_product_kernel k = fast(fn, a, b, elem_bytes(a) == 1 ? 1000 : 500);

	k.k_step = 16;
	k.row_step = k.mr = 32;
	/* So fast that the panels of b come from beyond L2 too slowly for fewer rows. */
	k.mb = SIM_PRODUCT_MB_TILES;
	k.begins_before = true;
	return k;
}

static struct sim_product_kernel plain(sim_product_fn *fn, uint8_t acc, uint16_t speed)
{
	return (struct sim_product_kernel){ .fn = fn, .a = acc, .b = acc, .group = 1,
					    .unit = (uint8_t)elem_bytes(acc), .k_step = 1,
					    .row_step = 1, .mr = 6, .mb = SIM_PRODUCT_MB,
					    .speed = speed };
}

static struct sim_product_kernel choose_f32(const struct sim_cpu *cpu, unsigned a, unsigned b)
{
	struct sim_product_kernel k;

	if (a == ELEM_BF16 && b == ELEM_BF16 && cpu->amx_bf16)
		return tiles(sim_product_bf16_amx, ELEM_BF16, ELEM_BF16);
	if (a == ELEM_BF16 && b == ELEM_BF16 && cpu->avx512_bf16 && !cpu->bf16_slow) {
		k = fast(sim_product_bf16_avx512bf16, ELEM_BF16, ELEM_BF16, 110);
		k.along = true;
		return k;
	}
	if (cpu->path == SIM_AVX512)
		return fast(sim_product_f32_avx512, ELEM_F32, ELEM_F32, 50);
	if (cpu->path == SIM_AVX2)
		return fast(sim_product_f32_avx2, ELEM_F32, ELEM_F32, 30);
	return fast(sim_product_f32_portable, ELEM_F32, ELEM_F32, 4);
}

/* Of whole numbers of 32 or 64 bits, of any sign. */
static struct sim_product_kernel whole(const struct sim_cpu *cpu, uint8_t acc)
{
	bool is_long = elem_bytes(acc) == 8;

	if (cpu->path == SIM_AVX512)
		return is_long ? plain(sim_product_i64_avx512, acc, 8) :
				 plain(sim_product_i32_avx512, acc, 25);
	if (cpu->path == SIM_AVX2)
		return is_long ? plain(sim_product_i64_avx2, acc, 3) :
				 plain(sim_product_i32_avx2, acc, 10);
	return is_long ? plain(sim_product_i64_portable, acc, 1) :
			 plain(sim_product_i32_portable, acc, 3);
}

static struct sim_product_kernel choose_bytes(const struct sim_cpu *cpu, uint8_t a, uint8_t b)
{
	struct sim_product_kernel k;

	if (cpu->amx_int8)
		return tiles(a == ELEM_S8 ? b == ELEM_S8 ? sim_product_ss_amx : sim_product_su_amx :
				     b == ELEM_S8 ? sim_product_us_amx : sim_product_uu_amx, a, b);
	if (b == ELEM_U8)
		return fast(sim_product_u8_avx512vnni, a, b, 200);
	k = fast(sim_product_s8_avx512vnni, a, b, 200);
	k.k_step = 16;
	k.flip_b = 0x80;
	return k;
}

static struct sim_product_kernel choose_s32(const struct sim_cpu *cpu, unsigned acc, uint8_t a,
					    uint8_t b)
{
	if (!is_short(a) || !is_short(b))
		return whole(cpu, (uint8_t)acc);
	if (is_byte(a) && is_byte(b) && (cpu->amx_int8 || (cpu->avx512_vnni && a == ELEM_S8)))
		return choose_bytes(cpu, a, b);
	return cpu->path == SIM_AVX512 ? fast(sim_product_s16_avx512, ELEM_S16, ELEM_S16, 50) :
	       cpu->path == SIM_AVX2 ? fast(sim_product_s16_avx2, ELEM_S16, ELEM_S16, 25) :
				       fast(sim_product_s16_portable, ELEM_S16, ELEM_S16, 3);
}

static int choose_kernel(struct sim_load *load, struct sim_product *mm)
{
	const struct sim_cpu *cpu = load->cpu;
	uint8_t a = mm->panels.a.elem, b = mm->panels.b.elem;
	struct sim_product_kernel *kernel = &mm->panels.kernel;

	switch (mm->acc) {
	case ELEM_F32: *kernel = choose_f32(cpu, a, b); break;
	case ELEM_F64:
		*kernel = cpu->path == SIM_AVX512 ? plain(sim_product_f64_avx512, ELEM_F64, 25) :
			     cpu->path == SIM_AVX2 ? plain(sim_product_f64_avx2, ELEM_F64, 10) :
						     plain(sim_product_f64_portable, ELEM_F64, 2);
		break;
	case ELEM_S32:
	case ELEM_U32: *kernel = choose_s32(cpu, mm->acc, a, b); break;
	case ELEM_S64:
	case ELEM_U64: *kernel = whole(cpu, mm->acc); break;
	case ELEM_C64:
		*kernel = cpu->path == SIM_AVX512 ? plain(sim_product_c64_avx512, ELEM_C64, 12) :
			  cpu->path == SIM_AVX2 ? plain(sim_product_c64_avx2, ELEM_C64, 7) :
						  plain(sim_product_c64_portable, ELEM_C64, 1);
		break;
	case ELEM_C128:
		*kernel = cpu->path == SIM_AVX512 ? plain(sim_product_c128_avx512, ELEM_C128, 6) :
			  cpu->path == SIM_AVX2 ? plain(sim_product_c128_avx2, ELEM_C128, 3) :
						  plain(sim_product_c128_portable, ELEM_C128, 1);
		break;
	case ELEM_PRED: *kernel = plain(kernel_pred, mm->acc, 2); break;
	default:
		return sim_refuse(load, HW_ST_BAD_PROGRAM, "sums in %s", elem_text(mm->acc));
	}
	mm->acc_bytes = elem_bytes(mm->acc);
	choose_others(cpu, mm);
	mm->pack_a = cpu->path == SIM_AVX512 ? sim_product_pack_a_avx512 :
		     cpu->path == SIM_AVX2 ? sim_product_pack_a_avx2 :
					     sim_product_pack_a_portable;
	mm->pack_b = cpu->path == SIM_AVX512 ? sim_product_pack_b_avx512 :
		     cpu->path == SIM_AVX2 ? sim_product_pack_b_avx2 :
					     sim_product_pack_b_portable;
	mm->panels.transpose = sim_transpose(cpu->path, kernel->unit);
	mm->turn = sim_transpose(cpu->path, mm->acc_bytes);
	return 0;
}

/* Whether elements of `elem` may be summed in acc. */
static bool fits(unsigned elem, unsigned acc)
{
	if (!elem_valid(elem) || !elem_bytes(elem))
		return false;
	switch (elem_class(acc)) {
	case ELEM_CLASS_FLOAT:
		return elem_class(elem) == ELEM_CLASS_FLOAT && elem != ELEM_F8E8M0FNU &&
		       elem != ELEM_F4E2M1FN && (elem != ELEM_F64 || acc == ELEM_F64);
	case ELEM_CLASS_COMPLEX:
	case ELEM_CLASS_PRED:
		return elem == acc;
	default:
		return elem_class(elem) == ELEM_CLASS_SINT ||
		       elem_class(elem) == ELEM_CLASS_UINT;
	}
}

/* ---- panels ---- */

static unsigned units_of(const struct sim_product *mm, unsigned n)
{
	unsigned step = mm->panels.kernel.k_step;

	n = (n + mm->panels.kernel.group - 1) / mm->panels.kernel.group;
	return (n + step - 1) / step * step;
}

/* Elements of k from panel `at` on, as many as it takes. */
static int64_t place_on_k(const struct sim_product *mm, int64_t at, unsigned *n)
{
	int64_t most = (int64_t)mm->ku * mm->panels.kernel.group, k = at * most;

	*n = (unsigned)(mm->k - k < most ? mm->k - k : most);
	return k;
}

static size_t panel_b(const struct sim_product *mm, unsigned cols)
{
	cols = (cols + SIM_PRODUCT_LINE - 1) / SIM_PRODUCT_LINE * SIM_PRODUCT_LINE;
	return (size_t)cols * mm->ku * mm->panels.kernel.unit;
}

static size_t panel_a(const struct sim_product *mm)
{
	return (mm->panels.kernel.mb + SIM_PRODUCT_LINE) * SIM_PRODUCT_PITCH *
	       (size_t)mm->panels.kernel.unit;
}

size_t sim_product_packed(const struct sim_product *mm, int64_t cols)
{
	cols = (cols + SIM_PRODUCT_LINE - 1) / SIM_PRODUCT_LINE;
	return (size_t)cols * panel_b(mm, SIM_PRODUCT_LINE) * (size_t)mm->panels_k;
}

void sim_product_pack(const struct sim_product_task *t, void *scratch, int64_t at,
		      unsigned first, unsigned cols, uint8_t *packed)
{
	const struct sim_product *mm = t->mm;
	unsigned n, ku;
	int64_t k = place_on_k(mm, at, &n);

	ku = units_of(mm, n);
	mm->pack_b(&mm->panels, t, first, cols, scratch, k, n, ku,
		   packed + (size_t)at * panel_b(mm, t->cols) +
		   (size_t)first * ku * mm->panels.kernel.unit);
}

static size_t up(size_t n)
{
	return (n + 63) & ~(size_t)63;
}

/* ---- preparing ---- */

/* Panels of one length, for one with few units costs as much around its loop as a long one. */
static void plan_k(struct sim_product *mm)
{
	const struct sim_product_kernel *kernel = &mm->panels.kernel;
	int64_t units = mm->k / kernel->group + !!(mm->k % kernel->group);
	int64_t n = units / SIM_PRODUCT_KU + !!(units % SIM_PRODUCT_KU);

	mm->ku = n ? (unsigned)(units / n + !!(units % n) + kernel->k_step - 1) /
		     kernel->k_step * kernel->k_step : kernel->k_step;
	mm->panels_k = units / mm->ku + !!(units % mm->ku);
}

static void place(struct sim_load *load, struct sim_product *mm, int64_t n)
{
	size_t at = 0, unit = mm->panels.kernel.unit, deep = SIM_PRODUCT_DEPTH;
	unsigned cols = n < SIM_PRODUCT_NB ? (unsigned)n : SIM_PRODUCT_NB;
	bool is_long = mm->panels_k > SIM_PRODUCT_DEPTH;

	if (!is_long)
		deep = mm->panels_k ? (size_t)mm->panels_k : 1;
#define ROOM(field, bytes) (mm->field = at, at += up(bytes))
	/* Where b is not packed all is one row's, instead. */
	_Static_assert(SIM_PRODUCT_NB_LONE <= SIM_PRODUCT_MB * SIM_PRODUCT_NB &&
		       SIM_PRODUCT_NB_LONE <= SIM_PRODUCT_FEW_NEAR * SIM_PRODUCT_ROOM, "");
	ROOM(sums_at, (size_t)(is_long ? mm->most_rows : mm->panels.kernel.mb) * cols *
	     mm->acc_bytes);
	ROOM(b_at, panel_b(mm, cols) * deep);
	ROOM(few_at, mm->panels.kernel.few ?
	     (size_t)SIM_PRODUCT_FEW_NEAR * SIM_PRODUCT_ROOM * mm->acc_bytes : 0);
	ROOM(panels.turn_at, SIM_PRODUCT_LINE * SIM_PRODUCT_PITCH * unit);
	ROOM(panels.raw_at, SIM_PRODUCT_KU * SIM_PRODUCT_GROUP * 16);
	ROOM(panels.lines_at, SIM_PRODUCT_KU * SIM_PRODUCT_GROUP * sizeof(void *));
	ROOM(room_at, (size_t)mm->n_in * mm->points * 16);
	ROOM(body_at, sim_body_scratch(mm->body));
	ROOM(a_at, panel_a(mm));
#undef ROOM
	sim_need_scratch(load, at);
}

void sim_product_keep_a(struct sim_load *load, struct sim_product *mm, int64_t rows)
{
	int64_t mb = mm->panels.kernel.mb, n = rows / mb + !!(rows % mb);

	if (mm->panels_k > SIM_PRODUCT_KEPT || n > SIM_PRODUCT_KEPT / mm->panels_k)
		return;
	mm->keeps_a = true;
	sim_need_scratch(load, mm->a_at + up(panel_a(mm)) * (size_t)(n * mm->panels_k));
}

/* Where a panel of the block of rows from `row` on is. */
static uint8_t *place_of_a(const struct sim_product *mm, uint8_t *scratch, unsigned row, int64_t at)
{
	size_t block = row / mm->panels.kernel.mb;

	if (!mm->keeps_a)
		return scratch + mm->a_at;
	return scratch + mm->a_at + (block * (size_t)mm->panels_k + (size_t)at) * up(panel_a(mm));
}

/* Whether an input is all that is added to the sums, which are those of one panel: a kernel adds
 * what is before to them last, as an epilogue does. */
static bool adds_alone(const struct sim_product *mm, const struct isa_body *body,
		       const struct isa_operand *in, const struct isa_operand *out,
		       const struct isa_uop *uops)
{
	return (mm->acc == ELEM_F32 || mm->acc == ELEM_F64) && mm->panels_k == 1 &&
	       !mm->panels.kernel.begins_before && body->n_uop == 1 && body->n_in == 1 &&
	       body->n_out == 1 && uops->op == UOP_ADD && uops->elem == mm->acc &&
	       uops->a + uops->b == 1 && in->elem == mm->acc && out->elem == mm->acc &&
	       out->value == 2;
}

/* Whether a kernel may pack b as it reads it: side by side, of its type, and with whole units. */
static bool packs_own_type(const struct sim_product *mm)
{
	const struct sim_product_kernel *kernel = &mm->panels.kernel;
	const struct sim_side *b = &mm->panels.b;

	_Static_assert(SIM_PRODUCT_GROUP >= 2 * 2, "room for the lines of two panels");
	return kernel->along && b->by_lines && b->elem == kernel->b && !(mm->k % kernel->group);
}

int sim_product_prepare(struct sim_load *load, struct sim_product *mm,
			const struct isa_body *body, const struct isa_operand *in,
			const struct isa_operand *out, const struct isa_uop *uops,
			unsigned first_operand)
{
	uint64_t points = 1;
	int ret;

	if (!elem_valid(mm->acc) || !fits(mm->panels.a.elem, mm->acc) ||
	    !fits(mm->panels.b.elem, mm->acc))
		return sim_refuse(load, HW_ST_BAD_PROGRAM, "products of %s and %s summed in %s",
				  elem_text(mm->panels.a.elem), elem_text(mm->panels.b.elem),
				  elem_text(mm->acc));
	ret = choose_kernel(load, mm);
	if (ret)
		return ret;
	if (body->row_rank || body->rank < 2 || body->rank > ISA_MAX_RANK ||
	    body->n_in > ISA_MAX_IN || body->n_out > ISA_MAX_OUT || !body->n_out)
		return sim_refuse(load, HW_ST_BAD_PROGRAM, "the body is out of range");
	mm->most_rows = SIM_PRODUCT_SUMS / SIM_PRODUCT_NB / mm->acc_bytes / mm->panels.kernel.mb *
			mm->panels.kernel.mb;
	mm->rank = body->rank;
	mm->points = sim_body_points(load->cpu, body);
	if (mm->points < SIM_PRODUCT_NB)
		mm->points = SIM_PRODUCT_NB;
	ret = sim_body_prepare(load, body, in, out, uops, &mm->acc, 1, mm->points, &mm->body);
	for (unsigned j = 0; !ret && j < body->n_in; j++)
		ret = sim_ref(load, &in[j], first_operand + j, false, 0, body->rank, body->dim,
			      NULL, 0, &mm->in[j]);
	for (unsigned j = 0; !ret && j < body->n_out; j++) {
		if (out[j].combine != ISA_STORE)
			ret = sim_refuse(load, HW_ST_BAD_PROGRAM, "a product's output combines");
		mm->value[j] = out[j].value;
		if (!ret)
			ret = sim_ref(load, &out[j], first_operand + body->n_in + j, true, 0,
				      body->rank, body->dim, NULL, 0, &mm->out[j]);
	}
	if (ret)
		return ret;
	for (unsigned d = 0; d < body->rank; d++)
		points *= (uint64_t)body->dim[d];
	for (unsigned j = 0; j < body->n_in; j++)
		mm->read_bytes += points * elem_bytes(in[j].elem);
	for (unsigned j = 0; j < body->n_out; j++)
		mm->write_bytes += points * elem_bytes(out[j].elem);
	mm->n_in = body->n_in;
	mm->n_out = body->n_out;
	for (unsigned j = 0; j < mm->n_out && mm->n_out > 1; j++)
		if (mm->value[j] && mm->value[j] <= mm->n_in)
			mm->copied |= 1u << (mm->value[j] - 1);
	mm->is_direct = !body->n_uop && mm->n_out == 1 && !mm->value[0] &&
			out[0].elem == mm->acc;
	mm->along = packs_own_type(mm);
	plan_k(mm);
	mm->adds = adds_alone(mm, body, in, out, uops);
	place(load, mm, body->dim[body->rank - 1]);
	return 0;
}

uint64_t sim_product_ns(const struct sim_product *mm, double macs)
{
	double ns = macs / mm->panels.kernel.speed;

	return ns < 1e18 ? (uint64_t)ns : UINT64_MAX / 2;
}

/* ---- running ---- */

int sim_product_bind(struct sim_run *run, const struct sim_product *mm, const void *plan,
		     const struct sim_ref *a, const struct sim_ref *b,
		     struct sim_product_job *out)
{
	out->run = run;
	out->plan = plan;
	out->a = sim_at(run, a);
	out->b = out->a ? sim_at(run, b) : NULL;
	if (!out->b)
		return run->fault.status;
	for (unsigned i = 0; i < mm->n_in; i++)
		if (!(out->in[i] = sim_at(run, &mm->in[i])))
			return run->fault.status;
	for (unsigned i = 0; i < mm->n_out; i++)
		if (!(out->out[i] = sim_at(run, &mm->out[i])))
			return run->fault.status;
	run->read_bytes += mm->read_bytes;
	run->write_bytes += mm->write_bytes;
	return 0;
}

void sim_product_gather(const uint8_t *from, int64_t step, int64_t n, unsigned bytes, void *to)
{
	if (step == bytes) {
		memcpy(to, from, (size_t)n * bytes);
		return;
	}
#define GATHER(type) \
	do { \
		for (int64_t i = 0; i < n; i++, from += step) \
			((type *)to)[i] = *(const type *)(const void *)from; \
	} while (0)
	switch (bytes) {
	case 1: GATHER(uint8_t); break;
	case 2: GATHER(uint16_t); break;
	case 4: GATHER(uint32_t); break;
	case 8: GATHER(uint64_t); break;
	default:
		for (int64_t i = 0; i < n; i++, from += step)
			memcpy((uint8_t *)to + i * bytes, from, bytes);
	}
#undef GATHER
}

/* ---- sums ---- */

/* Where the task's sums are in an operand, if as a kernel takes them: columns side by side, rows
 * *pitch sums apart. NULL: otherwise. */
static const uint8_t *direct(const struct sim_product_task *t, const int64_t *index,
			     const struct sim_ref *ref, const uint8_t *at, unsigned *pitch)
{
	const struct sim_product *mm = t->mm;
	int64_t bytes = mm->acc_bytes, down = ref->stride[mm->rank - 2];

	if ((t->cols > 1 && ref->stride[mm->rank - 1] != bytes) ||
	    (t->rows > 1 && (down < 0 || down % bytes || down / bytes > UINT32_MAX)))
		return NULL;
	for (unsigned d = 0; d < mm->rank; d++)
		at += index[d] * ref->stride[d];
	*pitch = t->rows > 1 ? (unsigned)(down / bytes) : t->cols;
	return at;
}

void sim_product_go_direct(struct sim_product_task *t, const int64_t *index)
{
	const struct sim_product *mm = t->mm;

	if (!mm->panels_k || !(mm->is_direct || mm->adds) ||
	    (t->rows > 1 && !mm->out[0].stride[mm->rank - 2]))
		return;
	if (mm->adds) {
		t->plus = direct(t, index, &mm->in[0], t->job->in[0], &t->plus_pitch);
		if (!t->plus)
			return;
	}
	t->direct = (uint8_t *)(uintptr_t)direct(t, index, &mm->out[0], t->job->out[0],
						 &t->pitch);
}

/* What is read once the panel of a is done with: a's next, packed or in memory. */
static void look_ahead(const struct sim_product_task *t, struct sim_product_step *x, unsigned row,
		       int64_t at, bool is_last)
{
	const struct sim_product *mm = t->mm;
	const struct sim_side *side = &mm->panels.a;
	unsigned n, rows = t->rows - row, more = mm->panels.kernel.mb;
	int64_t k;

	if (t->has_a && mm->keeps_a && !is_last) {
		x->soon = (const uint8_t *)x->a + up(panel_a(mm));
		x->soon_pitch = SIM_PRODUCT_PITCH * mm->panels.kernel.unit;
		x->soon_bytes = mm->ku * mm->panels.kernel.unit;
		x->n_soon = x->rows;
		return;
	}
	if ((t->has_a && mm->keeps_a) || !side->place || (is_last && rows <= more))
		return;
	row += is_last ? more : 0;
	rows = t->rows - row;
	k = place_on_k(mm, at, &n);
	x->soon = side->place(t, row, k);
	x->n_soon = !x->soon ? 0 : rows < more ? rows : more;
	x->soon_pitch = x->n_soon > 1 ? side->place(t, row + 1, k) - x->soon : 0;
	x->soon_bytes = n * elem_bytes(side->elem);
}

#define NEAR_BYTES (2 << 20)

/* Whether a cache is likely to hold what the task reads of b. */
static bool is_near(const struct sim_product_task *t)
{
	return t->mm->k <= NEAR_BYTES / elem_bytes(t->mm->panels.b.elem) / t->cols;
}

/* Whether the kernel reads b where it lies. */
static bool is_few(const struct sim_product_task *t)
{
	const struct sim_product_kernel *kernel = &t->mm->panels.kernel;

	return kernel->few && !t->packed && t->rows <= kernel->near_rows &&
	       (t->rows <= kernel->few_rows || is_near(t));
}

/* Whether the task packs b's panels for itself. */
static bool packs_b(const struct sim_product_task *t)
{
	return !t->packed && !is_few(t);
}

/* Whether it does so with the sums of its first rows, but for columns that fill no line. */
static bool packs_along(const struct sim_product_task *t)
{
	return t->mm->along && packs_b(t) && t->rows >= SIM_PRODUCT_ALONG;
}

#define IN_PLACE_COLS 128	/* for more, to read a packed a is worth the packing, */
#define IN_PLACE_BYTES 2048	/* unless its rows are as close to each other in memory */
#define MOST_PITCH ((int64_t)1 << 24)

/* Where the kernel reads the panel of a in memory, its rows *pitch units apart, or NULL. */
static const uint8_t *in_place(const struct sim_product_task *t, unsigned row, int64_t k,
			       unsigned *pitch)
{
	const struct sim_product *mm = t->mm;
	const struct sim_side *a = &mm->panels.a;
	const uint8_t *at;
	int64_t apart;

	if (!mm->panels.kernel.any_pitch || !a->place || a->elem != mm->panels.kernel.a ||
	    mm->keeps_a || is_few(t))
		return NULL;
	at = a->place(t, row, k);
	apart = at && row + 1 < t->rows ? a->place(t, row + 1, k) - at : 0;
	if (!at || apart < 0 || apart % mm->acc_bytes || apart / mm->acc_bytes > MOST_PITCH ||
	    (t->cols > IN_PLACE_COLS && apart > IN_PLACE_BYTES))
		return NULL;
	*pitch = (unsigned)(apart / mm->acc_bytes);
	return at;
}

/* Where b lies that the first rows of a task pack: the panel at `at`, and behind it if `more`. */
static void find_lines(const struct sim_product_task *t, uint8_t *s, int64_t at, bool more,
		       struct sim_product_step *x)
{
	const struct sim_product *mm = t->mm;
	const uint8_t **lines = (void *)(s + mm->panels.lines_at);
	unsigned n;
	int64_t k = place_on_k(mm, at, &n);

	mm->panels.b.lines(t, k, n, lines);
	x->lines = lines;
	if (!more)
		return;
	k = place_on_k(mm, at + 1, &n);
	lines += SIM_PRODUCT_KU * mm->panels.kernel.group;
	mm->panels.b.lines(t, k, n, lines);
	x->next_lines = lines;
}

/* Adds to the sums of some rows what panels from .. to along k give; b's are there, or needed
 * none, or the first rows make them. */
static void sum_rows(const struct sim_product_task *t, uint8_t *s, unsigned row, unsigned rows,
		     int64_t from, int64_t to, const uint8_t *b, uint8_t *sums)
{
	const struct sim_product *mm = t->mm;
	const uint8_t **lines = is_few(t) ? (void *)(s + mm->panels.lines_at) : NULL;
	unsigned n;

	for (int64_t at = from; at < to && !sim_stopped(t->run); at++) {
		uint8_t *a = place_of_a(mm, s, row, at);
		int64_t k = place_on_k(mm, at, &n);
		struct sim_product_step x = { .a = a, .ku = units_of(mm, n), .rows = rows,
			.b = b + (size_t)(at - from) * panel_b(mm, t->cols), .cols = t->cols,
			.before = at ? sums : NULL, .before_ld = t->cols, .sums = sums,
			.ld = t->cols, .a_pitch = SIM_PRODUCT_PITCH };
		const uint8_t *there = in_place(t, row, k, &x.a_pitch);

		if (t->direct && at == mm->panels_k - 1) {
			x.sums = t->direct + (size_t)row * t->pitch * mm->acc_bytes;
			x.ld = t->pitch;
			if (t->plus) {
				x.before = t->plus + (size_t)row * t->plus_pitch * mm->acc_bytes;
				x.before_ld = t->plus_pitch;
			}
		}
		look_ahead(t, &x, row, at + 1 < to ? at + 1 : from, at + 1 == to);
		if (there)
			x.a = there;
		else if (!t->has_a || !mm->keeps_a)
			mm->pack_a(&mm->panels, t, row, rows, s, k, n, x.ku, a);
		if (lines) {
			mm->panels.b.lines(t, k, n, lines);
			mm->panels.kernel.few(&x, lines, is_near(t), s + mm->few_at);
			continue;
		}
		if (!row && packs_along(t))
			find_lines(t, s, at, at + 1 < to, &x);
		mm->panels.kernel.fn(&x);
	}
}

/* ---- many small ones ---- */

#define TINY_COLS 16	/* of more, panels are as fast */
#define TINY_K 64
#define TINY_LEAST 64	/* rows: of fewer, panels are few */

void sim_product_choose_way(struct sim_product *mm, int64_t batches, int64_t rows, int64_t cols)
{
	const int64_t most = SIM_PRODUCT_CELLS;

	if (!mm->panels.kernel.tiny || !mm->k || !rows || !cols || mm->k > most || cols > most)
		return;
	if (batches >= SIM_PRODUCT_TINY && rows <= most && rows * mm->k <= most &&
	    mm->k * cols <= most && rows * cols <= most)
		mm->way = SIM_BY_PRODUCTS;
	else if (rows >= TINY_LEAST && cols <= TINY_COLS && mm->k <= TINY_K)
		mm->way = SIM_BY_ROWS;
	/* An epilogue that adds is one as any other. */
	mm->adds &= mm->way == SIM_BY_PANELS;
}

/* Instead of a's panel: four parts, and more behind the last one (LONG_PITCH). */
_Static_assert(5 * SIM_PRODUCT_CELLS * SIM_PRODUCT_TINY <=
	       (SIM_PRODUCT_MB + SIM_PRODUCT_LINE) * SIM_PRODUCT_PITCH, "a's panel has no room");

uint8_t *sim_product_part(const struct sim_product *mm, void *scratch, enum sim_product_part part)
{
	return (uint8_t *)scratch + mm->a_at +
	       (size_t)part * SIM_PRODUCT_CELLS * SIM_PRODUCT_TINY * mm->acc_bytes;
}

/* All of b for a task: [k][cols]. */
static void take_b(const struct sim_product_task *t, uint8_t *to, uint8_t *raw)
{
	const struct sim_product *mm = t->mm;
	unsigned bytes = mm->acc_bytes;

	for (unsigned j = 0; j < t->cols; j++) {
		const uint8_t *from = mm->panels.b.row(t, j, 0, (unsigned)mm->k, raw);

		for (unsigned k = 0; k < mm->k; k++)
			memcpy(to + ((size_t)k * t->cols + j) * bytes, from + k * bytes, bytes);
	}
}

/* Most lines are of TINY elements: copies of a size that the compiler knows. */
static void copy_line(uint8_t *to, const uint8_t *from, size_t bytes)
{
	if (bytes == SIM_PRODUCT_TINY * 4)
		memcpy(to, from, SIM_PRODUCT_TINY * 4);
	else
		memcpy(to, from, bytes);
}

/* n rows of a from `row` on: [k][TINY]. */
static void take_rows(const struct sim_product_task *t, unsigned row, unsigned n, uint8_t *to,
		      uint8_t *raw)
{
	const struct sim_product *mm = t->mm;
	const struct sim_side *side = &mm->panels.a;
	unsigned bytes = mm->acc_bytes, k = (unsigned)mm->k;
	const uint8_t *at = side->place ? side->place(t, row, 0) : NULL;
	const uint8_t *lines[TINY_K];

	if (side->by_lines) {
		side->lines(t, 0, k, lines);
		for (unsigned i = 0; i < k; i++, to += SIM_PRODUCT_TINY * bytes)
			copy_line(to, lines[i] + (size_t)row * bytes, n * bytes);
		return;
	}
	if (at && n > 1) {
		mm->turn(to, SIM_PRODUCT_TINY * bytes, at, side->place(t, row + 1, 0) - at, n, k);
		return;
	}
	for (unsigned i = 0; i < n; i++) {
		uint8_t *room = raw + (size_t)i * k * bytes;
		const void *from = side->row(t, row + i, 0, k, room);

		if (from != room)
			memcpy(room, from, (size_t)k * bytes);
	}
	mm->turn(to, SIM_PRODUCT_TINY * bytes, raw, k * bytes, n, k);
}

static void run_by_rows(const struct sim_product_task *t, void *scratch)
{
	const struct sim_product *mm = t->mm;
	uint8_t *a = sim_product_part(mm, scratch, SIM_PART_A);
	uint8_t *raw = sim_product_part(mm, scratch, SIM_PART_RAW);
	struct sim_product_tiny x = { .a = a, .b = sim_product_part(mm, scratch, SIM_PART_B),
		.sums = sim_product_part(mm, scratch, SIM_PART_SUMS), .rows = 1, .cols = t->cols,
		.k = (unsigned)mm->k, .is_shared = true };
	size_t bytes = mm->acc_bytes, pitch = (t->direct ? t->pitch : t->cols) * bytes;
	unsigned mb = mm->panels.kernel.mb;

	take_b(t, sim_product_part(mm, scratch, SIM_PART_B), raw);
	for (unsigned i = 0; i < t->rows && !sim_stopped(t->run); i += mb) {
		unsigned rows = t->rows - i < mb ? t->rows - i : mb;
		uint8_t *sums = t->direct ? t->direct + i * pitch :
					    (uint8_t *)scratch + mm->sums_at;

		for (unsigned r = 0; r < rows; r += SIM_PRODUCT_TINY) {
			unsigned n = rows - r < SIM_PRODUCT_TINY ? rows - r : SIM_PRODUCT_TINY;

			take_rows(t, i + r, n, a, raw);
			mm->panels.kernel.tiny(&x);
			mm->turn(sums + r * pitch, (int64_t)pitch, x.sums,
				 (int64_t)(SIM_PRODUCT_TINY * bytes), t->cols, n);
		}
		if (!t->direct)
			t->finish(t, scratch, sums, i, rows);
	}
}

static void run_by_panels(const struct sim_product_task *t, void *scratch)
{
	const struct sim_product *mm = t->mm;
	unsigned mb = mm->panels.kernel.mb;
	int64_t depth = t->packed ? INT64_MAX / 2 : t->rows > mb ? SIM_PRODUCT_DEPTH : 1;
	size_t line = (size_t)t->cols * mm->acc_bytes;
	uint8_t *s = scratch, *b = s + mm->b_at;
	unsigned first = packs_along(t) ? t->cols / SIM_PRODUCT_LINE * SIM_PRODUCT_LINE : 0;
	bool packs = packs_b(t) && first < t->cols;

	for (int64_t from = 0; (from < mm->panels_k || !from) && !sim_stopped(t->run);
	     from += depth) {
		int64_t to = mm->panels_k - from < depth ? mm->panels_k : from + depth;

		for (int64_t at = from; at < to && packs && !sim_stopped(t->run); at++)
			sim_product_pack(t, s, at, first, t->cols - first,
					 b - (size_t)from * panel_b(mm, t->cols));
		for (unsigned i = 0; i < t->rows; i += mb) {
			unsigned rows = t->rows - i < mb ? t->rows - i : mb;
			uint8_t *sums = s + mm->sums_at + (depth < mm->panels_k ? i * line : 0);

			if (!mm->k)
				memset(sums, 0, rows * line);
			sum_rows(t, s, i, rows, from, to, t->packed ? t->packed : b, sums);
			/* Sums that are not complete may be anything. */
			if (to == mm->panels_k && !t->direct && !sim_stopped(t->run))
				t->finish(t, s, sums, i, rows);
		}
	}
}

void sim_product_run(const struct sim_product_task *t, void *scratch)
{
	if (t->mm->way == SIM_BY_ROWS)
		run_by_rows(t, scratch);
	else
		run_by_panels(t, scratch);
}

/* ---- epilogues ---- */

#define TURN_BLOCK 64u	/* rows and columns of sums that are turned at a time */

/* n elements that are side by side, `step` bytes apart. */
static void spread(const uint8_t *from, int64_t n, unsigned bytes, uint8_t *to, int64_t step)
{
#define SPREAD(type) \
	do { \
		for (int64_t i = 0; i < n; i++, to += step) \
			*(type *)(void *)to = ((const type *)(const void *)from)[i]; \
	} while (0)
	switch (bytes) {
	case 2: SPREAD(uint16_t); break;
	case 4: SPREAD(uint32_t); break;
	case 8: SPREAD(uint64_t); break;
	default:
		for (int64_t i = 0; i < n; i++, to += step)
			memcpy(to, from + i * bytes, bytes);
	}
#undef SPREAD
}

/* Sums whose columns lie side by side in the output. */
static void store_turned(const struct sim_product_task *t, const uint8_t *sums, unsigned rows,
			 int64_t pitch, uint8_t *to)
{
	size_t bytes = t->mm->acc_bytes, line = t->cols * bytes;

	for (unsigned i = 0; i < rows; i += TURN_BLOCK)
		for (unsigned j = 0; j < t->cols; j += TURN_BLOCK)
			t->mm->turn(to + j * pitch + i * bytes, pitch,
				    sums + i * line + j * bytes, (int64_t)line,
				    rows - i < TURN_BLOCK ? rows - i : TURN_BLOCK,
				    t->cols - j < TURN_BLOCK ? t->cols - j : TURN_BLOCK);
}

static void store_direct(const struct sim_product_task *t, const uint8_t *sums, unsigned rows,
			 const int64_t *index, const struct sim_ref *ref, unsigned rank,
			 uint8_t *first)
{
	unsigned bytes = t->mm->acc_bytes;
	size_t line = (size_t)t->cols * bytes;
	int64_t across = ref->stride[rank - 1], down = ref->stride[rank - 2];

	for (unsigned d = 0; d < rank; d++)
		first += index[d] * ref->stride[d];
	if (down == bytes && across != bytes) {
		store_turned(t, sums, rows, across, first);
		return;
	}
	for (unsigned i = 0; i < rows; i++, first += down, sums += line) {
		if (across == bytes)
			memcpy(first, sums, line);
		else
			spread(sums, t->cols, bytes, first, across);
	}
}

static void finish_box(const struct sim_product_task *t, uint8_t *s, const uint8_t *sums,
		       unsigned rows, unsigned cols, const int64_t *index)
{
	const struct sim_product *mm = t->mm;
	struct sim_tile tile = { .rank = mm->rank, .rows = rows, .cols = cols, .col_dims = 1,
				 .col_dim = { cols } };

	memcpy(tile.index, index, sizeof(tile.index));
	tile.pre[0] = sums;
	for (unsigned j = 0; j < mm->n_in; j++) {
		uint8_t *room = s + mm->room_at + (size_t)j * mm->points * 16;

		sim_tile_in(&mm->in[j], t->job->in[j], &tile, j, room);
		if (mm->copied >> j & 1)
			sim_tile_keep(&tile, j, elem_bytes(mm->in[j].elem), room);
	}
	sim_body_run(mm->body, t->run, &tile, s + mm->body_at);
	for (unsigned j = 0; j < mm->n_out; j++) {
		bool is_spread, is_row;
		const void *v = sim_body_value(mm->body, mm->value[j], &tile, s + mm->body_at,
					       &is_spread, &is_row);

		sim_tile_out(&mm->out[j], t->job->out[j], &tile, v, is_spread, is_row, ISA_STORE);
	}
}

void sim_product_finish(const struct sim_product_task *t, void *scratch, uint8_t *sums,
			unsigned rows, const int64_t *index)
{
	const struct sim_product *mm = t->mm;
	unsigned cols = t->cols < mm->points ? t->cols : mm->points, most = mm->points / cols;
	int64_t at[ISA_MAX_RANK];

	if (mm->is_direct) {
		store_direct(t, sums, rows, index, &mm->out[0], mm->rank, t->job->out[0]);
		return;
	}
	memcpy(at, index, sizeof(at));
	for (unsigned i = 0; i < rows; i += most) {
		for (unsigned j = 0; j < t->cols; j += cols) {
			at[mm->rank - 1] = index[mm->rank - 1] + j;
			finish_box(t, scratch, sums + ((size_t)i * t->cols + j) * mm->acc_bytes,
				   rows - i < most ? rows - i : most,
				   t->cols - j < cols ? t->cols - j : cols, at);
		}
		at[mm->rank - 2] += most;
	}
}
