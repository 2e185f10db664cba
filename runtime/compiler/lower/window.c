/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Windows (reduce_window) of few elements, and those over padding.
 *
 * A window of few elements becomes its taps: each is a part of the padded arrays, and joined to
 * what is there so far, in the order in which a fold takes them. All of them are elementwise
 * work on operands with strides, a long row at a time, and one instruction with what is done
 * before and after; a fold has but the window to stream over. Over padding they would be parts
 * of a copy with it; windows of large arrays are left to emission, which needs no copy.
 *
 * Emission writes the padding and the holes of a dilated input as initial values, which
 * is right if these change nothing. Else an array of marks goes along, false there and for
 * the initial value; two elements of which one is not marked give the other. Whatever was
 * found is joined with the initial value afterwards.
 *
 * A window of many elements along several dims is one along each of them in turn, if that is
 * less work, 5 + 5 elements instead of 25, or if the turns are of few elements. Along one dim,
 * one of many elements that no other window shares is one of some, and then one of those: of 32
 * elements 16 times 2. Sums of floats of less than 32 bits are made in f32 then, for each turn
 * rounds.
 *
 * One instruction reduces as many arrays as it has outputs. Where there are more, the marks
 * among them, the window becomes its taps too, joined to what is there so far where their place
 * is not padding.
 */
#include <string.h>

#include "runtime/compiler/lower/decompose.h"
#include "runtime/compiler/opt/fuse.h"

enum {
	MOST_MARKED = 8,	/* arrays reduced together, the marks among them */
	MOST_TAPS = 256,	/* of a window over more */
	FEW_TAPS = 20,		/* inputs that one instruction surely has */
	LEAST_FEW = 4,		/* of a long window, worth a turn */
	LEAST_ROW = 5,		/* elements side by side that are worth a reduction */
};

static bool has_padding(const struct tc_op *op)
{
	const struct tc_type *in = tc_in(op, 0)->type;
	const int64_t *padding, *base;
	unsigned n;

	padding = tc_attr_ints(op, "padding", &n);
	base = tc_attr_ints(op, "base_dilations", &n);
	for (unsigned d = 0; d < in->rank; d++)
		if (padding[2 * d] > 0 || padding[2 * d + 1] > 0 ||
		    (base[d] > 1 && in->dim[d] > 1))
			return true;
	return false;
}

void tc_settle_initial(const struct tc_build *b, struct tc_op *op)
{
	for (unsigned i = 0; i < op->n_results; i++) {
		const struct tc_value *v = tc_in(op, op->n_results + i);
		const void *element = NULL;

		if (v->def && v->def->op == TC_BROADCAST_IN_DIM)
			element = tc_splat_element(tc_in(v->def, 0));
		if (element)
			tc_set_operand(op, op->n_results + i,
				       tc_splat(b->c, b->before, v->type, element));
	}
}

bool tc_starts_with_identity(const struct tc_op *op)
{
	const struct tc_block *b = op->regions[0].block;
	const struct tc_op *f = b->first;
	const void *init = tc_splat_element(tc_in(op, op->n_results));

	return op->n_results == 1 && init && f->n_operands == 2 && f->next == b->last &&
	       tc_in(b->last, 0) == tc_out(f, 0) && tc_in(f, 0) != tc_in(f, 1) &&
	       tc_is_identity((enum tc_opcode)f->op, tc_in(op, 0)->type->elem, init);
}

/* The body on (so far..., mark, element..., mark). */
static void build_marked(const struct tc_build *outer, struct tc_op *marked,
			 const struct tc_region *body)
{
	struct tc_build b = { .c = outer->c, .where = outer->where,
			      .block = tc_new_block(outer->c, &marked->regions[0]) };
	unsigned k = marked->n_results - 1;
	struct tc_value *arg[2 * MOST_MARKED], *plain[2 * MOST_MARKED], *out[MOST_MARKED];

	for (unsigned i = 0; i < 2 * k + 2; i++)
		arg[i] = tc_new_arg(b.c, b.block, tc_in(marked, k + 1 + i % (k + 1))->type);
	for (unsigned i = 0; i < 2 * k; i++)
		plain[i] = arg[i < k ? i : i + 1];
	tc_build_on_arrays(&b, body->block, plain, arg[k]->type, out);
	for (unsigned i = 0; i < k; i++) {
		out[i] = tc_build_select(&b, arg[k], out[i], plain[k + i]);
		out[i] = tc_build_select(&b, arg[2 * k + 1], out[i], arg[i]);
	}
	out[k] = tc_build2(&b, TC_OR, arg[k], arg[2 * k + 1]);
	tc_build_return(&b, k + 1, out);
}

/* The reduction of what is marked alone: its results, and whether anything was. */
static struct tc_op *reduce_marked(const struct tc_build *b, const struct tc_op *op)
{
	const struct tc_type *types[MOST_MARKED];
	struct tc_value *v[2 * MOST_MARKED];
	unsigned k = op->n_results;
	const uint8_t yes = 1, no = 0;
	struct tc_op *marked;

	for (unsigned i = 0; i < k; i++) {
		types[i] = op->results[i].type;
		v[i] = tc_in(op, i);
		v[k + 1 + i] = tc_in(op, k + i);
	}
	types[k] = tc_with_elem(b->c, types[0], ELEM_PRED);
	v[k] = tc_splat(b->c, b->before, tc_with_elem(b->c, v[0]->type, ELEM_PRED), &yes);
	v[2 * k + 1] = tc_splat(b->c, b->before, tc_tensor(b->c, ELEM_PRED, 0, NULL), &no);
	marked = tc_new(b->c, TC_REDUCE_WINDOW, 2 * k + 2, v, k + 1, types, 1);
	marked->attrs = op->attrs;
	marked->n_attrs = op->n_attrs;
	build_marked(b, marked, &op->regions[0]);
	return tc_build_place(b, marked);
}

static struct tc_value *padded(const struct tc_build *b, const struct tc_op *op,
			       struct tc_value *x, struct tc_value *by)
{
	int64_t low[TC_MAX_RANK], high[TC_MAX_RANK], interior[TC_MAX_RANK];
	unsigned n;
	const int64_t *padding = tc_attr_ints(op, "padding", &n);
	const int64_t *base = tc_attr_ints(op, "base_dilations", &n);

	for (unsigned d = 0; d < x->type->rank; d++) {
		low[d] = padding[2 * d];
		high[d] = padding[2 * d + 1];
		interior[d] = base[d] - 1;
	}
	return tc_build_pad(b, x, by, low, high, interior);
}

/* MOST_TAPS + 1: more than MOST_TAPS. */
static int64_t count_taps(const struct tc_op *op)
{
	unsigned n;
	const int64_t *size = tc_attr_ints(op, "window_dimensions", &n);
	int64_t taps = 1;

	for (unsigned d = 0; d < n; d++)
		if (__builtin_mul_overflow(taps, size[d], &taps) || taps > MOST_TAPS)
			return MOST_TAPS + 1;
	return taps;
}

/* Which element of the padded arrays the first window has at its tap of this number. */
static void place_tap(const struct tc_op *op, int64_t tap, int64_t *start)
{
	unsigned n;
	const int64_t *size = tc_attr_ints(op, "window_dimensions", &n);
	const int64_t *dilation = tc_attr_ints(op, "window_dilations", &n);

	for (unsigned d = n; d-- > 0; tap /= size[d])
		start[d] = tap % size[d] * dilation[d];
}

/* Where each element of the padded arrays is one of the arrays'. */
static struct tc_value *mark_arrays(const struct tc_build *b, const struct tc_op *op)
{
	const struct tc_type *t = tc_with_elem(b->c, tc_in(op, 0)->type, ELEM_PRED);
	const uint8_t yes = 1, no = 0;

	return padded(b, op, tc_splat(b->c, b->before, t, &yes),
		      tc_splat(b->c, b->before, tc_tensor(b->c, ELEM_PRED, 0, NULL), &no));
}

/* The results, of op's types. */
static void join_taps(const struct tc_build *b, const struct tc_op *op, int64_t taps,
		      struct tc_value *marks, struct tc_value **out)
{
	unsigned k = op->n_results, n;
	const int64_t *stride = tc_attr_ints(op, "window_strides", &n), none = 0;
	int64_t start[TC_MAX_RANK];
	struct tc_value **v = arena_array(&b->c->arena, 3 * (size_t)k, sizeof(*v)), *mark;
	struct tc_value **so_far = v, **element = v + k, **in = v + 2 * k;

	if (!v)
		tc_fail(b->c, ERR_RESOURCE_EXHAUSTED, op, "out of memory");
	for (unsigned i = 0; i < k; i++) {
		so_far[i] = tc_build_broadcast(b, tc_in(op, k + i), op->results[i].type, &none);
		in[i] = padded(b, op, tc_in(op, i), tc_in(op, k + i));
	}
	for (int64_t t = 0; t < taps; t++) {
		place_tap(op, t, start);
		for (unsigned i = 0; i < k; i++)
			element[i] = tc_build_steps(b, in[i], start, stride, op->results[i].type);
		tc_build_on_arrays(b, op->regions[0].block, v, op->results[0].type, out);
		mark = !marks ? NULL :
			tc_build_steps(b, marks, start, stride,
				       tc_with_elem(b->c, op->results[0].type, ELEM_PRED));
		for (unsigned i = 0; i < k; i++)
			so_far[i] = !mark ? out[i] : tc_build_select(b, mark, out[i], so_far[i]);
	}
	memcpy(out, so_far, k * sizeof(*out));
}

bool tc_window_by_taps(const struct tc_build *b, const struct tc_op *op, struct tc_value **out)
{
	int64_t taps = count_taps(op);

	if (taps > MOST_TAPS || taps * op->n_results > FEW_TAPS ||
	    tc_only_for_scalars(op->regions[0].block))
		return false;
	join_taps(b, op, taps, NULL, out);
	return true;
}

static void replace_all(struct tc_op *op, struct tc_value *const *by)
{
	for (unsigned i = 0; i < op->n_results; i++)
		tc_replace_uses(tc_out(op, i), by[i]);
	tc_erase(op);
}

static void reduce_many(const struct tc_build *b, struct tc_op *op)
{
	int64_t taps = count_taps(op);
	struct tc_value **out = arena_array(&b->c->arena, op->n_results, sizeof(*out));

	if (!out)
		tc_fail(b->c, ERR_RESOURCE_EXHAUSTED, op, "out of memory");
	if (taps > MOST_TAPS)
		tc_fail(b->c, ERR_UNIMPLEMENTED, op, "a window of more than %d elements over "
			"%u arrays, which are more than %d with the marks of padding, does "
			"not run yet: reduce fewer arrays together", MOST_TAPS,
			op->n_results, MOST_MARKED);
	join_taps(b, op, taps, mark_arrays(b, op), out);
	replace_all(op, out);
}

static void reduce_with_marks(const struct tc_build *b, struct tc_op *op)
{
	struct tc_value *args[2 * MOST_MARKED], *out[MOST_MARKED];
	struct tc_op *marked = reduce_marked(b, op);
	unsigned k = op->n_results;
	const int64_t none = 0;

	for (unsigned i = 0; i < k; i++) {
		args[i] = tc_build_broadcast(b, tc_in(op, k + i), op->results[i].type, &none);
		args[k + i] = tc_out(marked, i);
	}
	tc_build_on_arrays(b, op->regions[0].block, args, op->results[0].type, out);
	for (unsigned i = 0; i < k; i++)
		tc_replace_uses(tc_out(op, i),
				tc_build_select(b, tc_out(marked, k), out[i], args[i]));
	tc_erase(op);
}

/* No window: the padded arrays may have less than nothing, too. */
static void replace_by_initial(const struct tc_build *b, struct tc_op *op)
{
	const int64_t none = 0;

	for (unsigned i = 0; i < op->n_results; i++)
		tc_replace_uses(tc_out(op, i),
				tc_build_broadcast(b, tc_in(op, op->n_results + i),
						   op->results[i].type, &none));
	tc_erase(op);
}

/* ---- along one dim after the other ---- */

/* Whether elements may be joined by parts. */
static bool joins_by_parts(const struct tc_op *op)
{
	enum elem elem = (enum elem)op->results[0].type->elem;
	unsigned join = op->regions[0].block->first->op;

	if (join == TC_ADD || join == TC_MULTIPLY)
		return elem_class(elem) == ELEM_CLASS_SINT || elem_class(elem) == ELEM_CLASS_UINT ||
		       (join == TC_ADD && (elem_bytes(elem) >= 2));
	return join == TC_MAXIMUM || join == TC_MINIMUM || join == TC_AND || join == TC_OR ||
	       join == TC_XOR;
}

/* The dim with a window that leaves the fewest elements, of those not yet `done`; rank: none. */
static unsigned next_dim(const struct tc_op *op, unsigned done)
{
	const struct tc_type *in = tc_in(op, 0)->type, *out = op->results[0].type;
	unsigned found = in->rank;
	double least = 0, left;

	for (unsigned d = 0; d < in->rank; d++) {
		if (done >> d & 1 || tc_attr_nth(op, "window_dimensions", d) == 1)
			continue;
		left = (double)out->dim[d] / (double)in->dim[d];
		if (found == in->rank || left < least) {
			found = d;
			least = left;
		}
	}
	return found;
}

/* Elements that are joined along one dim after the other, as a part of those of op. */
static double part_of_work(const struct tc_op *op)
{
	const struct tc_type *in = tc_in(op, 0)->type, *out = op->results[0].type;
	double whole = (double)out->count, work = 0, count = (double)in->count, size;
	unsigned done = 0;

	for (unsigned d; (d = next_dim(op, done)) < in->rank; done |= 1u << d) {
		size = (double)tc_attr_nth(op, "window_dimensions", d);
		count = count / (double)in->dim[d] * (double)out->dim[d];
		work += count * size;
		whole *= size;
	}
	return work / whole;
}

/* Its body as one of another type. */
static void set_body(struct tc_ctx *c, struct tc_op *op, enum elem elem)
{
	struct tc_block *body = op->regions[0].block;
	const struct tc_type *scalar = tc_tensor(c, elem, 0, NULL);

	for (unsigned i = 0; i < body->n_args; i++)
		body->args[i]->type = scalar;
	for (struct tc_op *o = body->first; o; o = o->next)
		for (unsigned i = 0; i < o->n_results; i++)
			tc_out(o, i)->type = scalar;
}

/* Of a window along dim d, how many neighbours no two windows cut; 1: no few that divide it. */
static int64_t few_together(const struct tc_op *op, unsigned d)
{
	int64_t size = tc_attr_nth(op, "window_dimensions", d);
	int64_t stride = tc_attr_nth(op, "window_strides", d), few = FEW_TAPS;

	if (tc_attr_nth(op, "window_dilations", d) != 1 ||
	    tc_attr_nth(op, "base_dilations", d) != 1)
		return 1;
	while (few > 1 && (size % few || stride % few))
		few--;
	return few;
}

/* Whether windows along dim d are some runs of as many elements as it is from one to the next,
 * which had better be reduced as rows of their own. */
static bool is_of_rows(const struct tc_op *op, unsigned d)
{
	const struct tc_type *in = tc_in(op, 0)->type;
	int64_t size = tc_attr_nth(op, "window_dimensions", d);
	int64_t stride = tc_attr_nth(op, "window_strides", d);

	return size % stride == 0 && in->rank < TC_MAX_RANK &&
	       tc_attr_nth(op, "window_dilations", d) == 1 &&
	       tc_attr_nth(op, "base_dilations", d) == 1 &&
	       stride >= (d + 1 == in->rank ? LEAST_ROW : FEW_TAPS) &&
	       (d + 1 == in->rank || few_together(op, d) < LEAST_FEW);
}

/* The part of op along dim d, of x. */
static struct tc_op *part_along(const struct tc_build *b, const struct tc_op *op, unsigned d,
				struct tc_value *x, int64_t results)
{
	static const char *const lists[] = { "window_dimensions", "window_strides",
					     "window_dilations", "base_dilations" };
	const struct tc_type *in = x->type;
	struct tc_op *part = tc_clone(b->c, op, tc_map_new(b->c));
	int64_t dim[TC_MAX_RANK];

	memcpy(dim, in->dim, in->rank * sizeof(*dim));
	dim[d] = results;
	for (unsigned k = 0; k < in->rank; k++) {
		for (unsigned i = 0; i < 4 && k != d; i++)
			tc_set_nth(b->c, part, lists[i], k, 1);
		for (unsigned side = 0; side < 2 && k != d; side++)
			tc_set_nth(b->c, part, "padding", 2 * k + side, 0);
	}
	tc_set_operand(part, 0, x);
	if (in->elem != op->results[0].type->elem) {
		tc_set_operand(part, 1, tc_build_convert(b, tc_in(op, 1), (enum elem)in->elem));
		set_body(b->c, part, (enum elem)in->elem);
	}
	part->results[0].type = tc_tensor(b->c, (enum elem)in->elem, in->rank, dim);
	return part;
}

/* What op's region makes of x over the dims whose bits are set. */
static struct tc_value *reduce_dims(const struct tc_build *b, const struct tc_op *op,
				    struct tc_value *x, uint64_t dims)
{
	enum tc_opcode join = (enum tc_opcode)op->regions[0].block->first->op;
	struct tc_value *init = tc_build_convert(b, tc_in(op, 1), (enum elem)x->type->elem);
	struct tc_value *all = tc_build_fold(b, join, x, 0, dims);

	tc_set_operand(all->def, 1, init);
	return all;
}

/* Of x along dim d each `size` elements of which none are in two windows, joined. */
static struct tc_value *join_apart(const struct tc_build *b, const struct tc_op *op, unsigned d,
				   struct tc_value *x, int64_t size)
{
	int64_t low[TC_MAX_RANK] = { 0 }, high[TC_MAX_RANK] = { 0 }, dim[TC_MAX_RANK + 1];
	const struct tc_type *t = x->type;
	int64_t before = tc_attr_nth(op, "padding", 2 * d), padded, n;

	padded = t->dim[d] + before + tc_attr_nth(op, "padding", 2 * d + 1);
	n = padded / size;
	memcpy(dim, t->dim, t->rank * sizeof(*dim));
	dim[d] = n * size;
	low[d] = before;
	high[d] = n * size - t->dim[d] - before;
	if (low[d] > 0 || high[d] > 0) {
		const int64_t none[TC_MAX_RANK] = { 0 };

		x = tc_build_pad(b, x, tc_build_convert(b, tc_in(op, 1), (enum elem)t->elem), low,
				 high, none);
	} else {
		low[d] = -before;
		x = tc_build_slice(b, x, low, tc_tensor(b->c, (enum elem)t->elem, t->rank, dim));
	}
	memmove(dim + d + 1, dim + d, (t->rank - d) * sizeof(*dim));
	dim[d] = n;
	dim[d + 1] = size;
	return reduce_dims(b, op, tc_build_reshape(b, x, t->rank + 1, dim),
			   (uint64_t)1 << (d + 1));
}

/* What op's windows along dim d make of x; long ones, and rows of the last dim, in two turns, if
 * that goes, of which the second may become two again. */
static struct tc_value *reduce_along(const struct tc_build *b, const struct tc_op *op, unsigned d,
				     struct tc_value *x)
{
	int64_t size = tc_attr_nth(op, "window_dimensions", d), few = few_together(op, d);
	int64_t results = op->results[0].type->dim[d];
	int64_t stride = tc_attr_nth(op, "window_strides", d);
	struct tc_op *rest, *first;

	if (is_of_rows(op, d) ? size <= FEW_TAPS && d + 1 < x->type->rank :
				size <= FEW_TAPS || few == 1)
		return tc_out(tc_build_place(b, part_along(b, op, d, x, results)), 0);
	if (is_of_rows(op, d)) {
		few = stride;
		x = join_apart(b, op, d, x, few);
	} else {
		int64_t padded = x->type->dim[d] + tc_attr_nth(op, "padding", 2 * d) +
				 tc_attr_nth(op, "padding", 2 * d + 1);

		first = part_along(b, op, d, x, padded / few);
		tc_set_nth(b->c, first, "window_dimensions", d, few);
		tc_set_nth(b->c, first, "window_strides", d, few);
		x = tc_out(tc_build_place(b, first), 0);
	}
	if (size == few)
		return x;
	rest = part_along(b, op, d, x, results);
	tc_set_nth(b->c, rest, "window_dimensions", d, size / few);
	tc_set_nth(b->c, rest, "window_strides", d, stride / few);
	tc_set_nth(b->c, rest, "padding", 2 * d, 0);
	tc_set_nth(b->c, rest, "padding", 2 * d + 1, 0);
	return tc_out(tc_build_place(b, rest), 0);
}

/* What a dim without a window but with strides, padding or holes becomes is no window's. */
static bool is_idle(const struct tc_op *op, unsigned d)
{
	return tc_attr_nth(op, "window_strides", d) == 1 &&
	       tc_attr_nth(op, "base_dilations", d) == 1 &&
	       !tc_attr_nth(op, "padding", 2 * d) && !tc_attr_nth(op, "padding", 2 * d + 1);
}

bool tc_window_by_dims(struct tc_ctx *c, struct tc_op *op)
{
	struct tc_build b = tc_build_at(c, op);
	struct tc_value *x = tc_in(op, 0);
	unsigned rank = x->type->rank, done = 0, windows = 0;
	bool is_few = true, is_whole = true;
	uint64_t all = 0;

	tc_settle_initial(&b, op);
	if (!tc_starts_with_identity(op) || !joins_by_parts(op) || !x->type->count ||
	    !op->results[0].type->count || x->type->elem != op->results[0].type->elem ||
	    count_taps(op) <= FEW_TAPS)
		return false;
	for (unsigned d = 0; d < rank; d++) {
		int64_t size = tc_attr_nth(op, "window_dimensions", d);

		windows += size > 1;
		is_few &= size <= FEW_TAPS || few_together(op, d) > 1 || is_of_rows(op, d);
		all |= size > 1 ? (uint64_t)1 << d : 0;
		is_whole &= size == 1 || (size == x->type->dim[d] &&
					  op->results[0].type->dim[d] == 1 &&
					  !tc_attr_nth(op, "padding", 2 * d) &&
					  tc_attr_nth(op, "window_dilations", d) == 1 &&
					  tc_attr_nth(op, "base_dilations", d) == 1);
		if (size == 1 && !is_idle(op, d))
			return false;
	}
	if (!is_whole && !is_few && (windows < 2 || part_of_work(op) > 0.75))
		return false;
	if (elem_class(x->type->elem) == ELEM_CLASS_FLOAT && elem_bytes(x->type->elem) < 4 &&
	    op->regions[0].block->first->op == TC_ADD)
		x = tc_build_convert(&b, x, ELEM_F32);
	if (is_whole) {
		x = reduce_dims(&b, op, x, all);
		x = tc_build_reshape(&b, x, rank, op->results[0].type->dim);
	}
	for (unsigned d; !is_whole && (d = next_dim(op, done)) < rank; done |= 1u << d)
		x = reduce_along(&b, op, d, x);
	x = tc_build_convert(&b, x, (enum elem)op->results[0].type->elem);
	replace_all(op, &x);
	return true;
}

void tc_decompose_window(struct tc_ctx *c, struct tc_op *op)
{
	struct tc_build b = tc_build_at(c, op);
	const struct tc_op *scalar = tc_only_for_scalars(op->regions[0].block);
	struct tc_value *out[MOST_MARKED];
	bool is_marked;

	tc_settle_initial(&b, op);
	if (!op->results[0].type->count) {
		replace_by_initial(&b, op);
		return;
	}
	is_marked = has_padding(op) && !tc_starts_with_identity(op);
	if (!is_marked && op->n_results <= MOST_MARKED) {
		if (!(tc_starts_with_identity(op) && tc_window_in_parts(op)) &&
		    tc_window_by_taps(&b, op, out))
			replace_all(op, out);
		return;
	}
	if (scalar)
		tc_fail(c, ERR_UNIMPLEMENTED, scalar, "it does not run yet in the region of a "
			"window with padding that starts with a value that counts, nor of one "
			"over more than %d arrays; elementwise operations and constants do, or "
			"pad first", MOST_MARKED);
	if (op->n_results + is_marked > MOST_MARKED)
		reduce_many(&b, op);
	else
		reduce_with_marks(&b, op);
}
