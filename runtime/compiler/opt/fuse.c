/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gathers ops into fusions (README.md#fusions): what one instruction can do at once.
 *
 * Requires: calls are inlined. Ensures: every elementwise op is in a fusion; the
 * results are those of before. A group grows from its last op, its root, backwards over
 * producers: one joins if all its users are in the group already, or come after the
 * root (then the fusion yields it as well), and if a register can carry it to every
 * user inside: what a member reads from memory has to be there before the instruction
 * starts, so it cannot be a member. So no cycle can arise, and the fusion stands where
 * its root stood. Constants and iotas are copied into every group that uses them.
 *
 * Values of a group are full (of the iteration shape) or narrow (of its leading dims:
 * row reductions and what is computed from them); a narrow value's dims are tied to
 * those of the iteration shape by `axis`.
 */
#include "runtime/compiler/opt/fuse.h"
#include "runtime/compiler/passes.h"

#include <string.h>

#include "hal/hw/isa.h"

#define MAX_MEMBERS 200u
#define MAX_INPUTS 16u
#define MAX_OUTPUTS 8u
#define MOST_REMADE 64u		/* members of a group that more are added to */
#define MOST_STEPS 3u		/* behind each other, of what is made again */
#define FAR_STEPS 6u		/* the same, where several arrays are */
#define MOST_CARRIED 256u	/* by a loop whose turns give what goes together */

struct member {
	struct tc_op *op;
	bool is_narrow;
	int8_t axis[ISA_MAX_RANK];	/* narrow: iteration dim of each dim; -1: size 1 */
	uint8_t spread;			/* while rows are looked at: enum spread */
};

/* How a value changes along the rows, for the device: it reduces only what is FULL. */
enum spread { UNKNOWN, EQUAL, ROW, FULL };	/* everywhere equal; of rows; of points */

struct group {
	struct tc_ctx *c;
	struct tc_op *root;
	const struct tc_type *shape;	/* the iteration shape, of any element type */
	struct member *members;
	unsigned n;
	int n_outer;			/* dims before the rows; -1: no row reduction */
	struct tc_op *anchor;		/* the dot or convolution */
	bool root_reduces;
	bool has_siblings;
	bool is_broken;			/* siblings keep out what the root's own group would take */
	struct tc_map *remade;		/* what was made again for the group, and as what */
	struct tc_made far;		/* what it reads for that besides, while it is looked for */
};

/* Of each op while the pass runs (op->side). */
struct note {
	unsigned position;
	struct group *group;
	unsigned member;
};

static struct note *note_of(const struct tc_op *op)
{
	return op->side;
}

/* ---- questions ---- */

static bool is_anchor(const struct tc_op *op)
{
	return op->op == TC_DOT_GENERAL || op->op == TC_CONVOLUTION;
}

/* Whether the vector unit runs this op at all. */
static bool is_elementwise(const struct tc_op *op)
{
	return (tc_has_trait(op, 'e') || tc_is_even_bitcast(op)) && op->n_results == 1 &&
	       op->results[0].type->rank <= ISA_MAX_RANK;
}

static bool is_root(const struct tc_op *op)
{
	if (is_elementwise(op))
		return op->op != TC_BITCAST_CONVERT;	/* alone it is nothing */
	return op->op == TC_REDUCE && tc_simple_reduce(op) != TC_OP_COUNT &&
	       tc_in(op, 0)->type->rank <= ISA_MAX_RANK && tc_in(op, 0)->type->count > 0;
}

/* ---- growing ---- */

static struct member *member_of(struct group *g, const struct tc_op *op)
{
	struct note *n = note_of(op);

	return n && n->group == g ? &g->members[n->member] : NULL;
}

static void join(struct group *g, struct tc_op *op, bool is_narrow, const int8_t *axis)
{
	struct member *m = &g->members[g->n];

	m->op = op;
	m->is_narrow = is_narrow;
	if (axis)
		memcpy(m->axis, axis, sizeof(m->axis));
	note_of(op)->group = g;
	note_of(op)->member = g->n++;
}

/* 0: some user keeps it out; 1: all users are inside; 2: others come after the root. */
static int users_of(struct group *g, const struct tc_op *op)
{
	int inside = 1;

	for (const struct tc_use *u = op->results[0].uses; u; u = u->next) {
		const struct tc_op *user = u->user;
		const struct note *n;

		/* A user in a nested region counts as the op that holds the region. */
		while (user && user->block != g->root->block)
			user = user->block ? user->block->region->parent : NULL;
		n = user ? note_of(user) : NULL;
		if (n && n->group == g)
			continue;
		if (!n || n->position < note_of(g->root)->position)
			return 0;
		inside = 2;
	}
	return inside;
}

static unsigned count_outputs(struct group *g)
{
	unsigned n = 0;

	for (unsigned i = 0; i < g->n; i++)
		n += g->members[i].op == g->root || users_of(g, g->members[i].op) == 2;
	return n;
}

static bool is_copied(const struct tc_value *v)
{
	return v->def && (tc_splat_element(v) || v->def->op == TC_IOTA);
}

/* How many values the group reads, up to one more than ISA_MAX_IN. */
static unsigned count_inputs(struct group *g)
{
	const struct tc_value *in[ISA_MAX_IN + 1];
	unsigned n = 0, at;

	for (unsigned i = 0; i < g->n; i++)
		for (unsigned k = 0; k < g->members[i].op->n_operands; k++) {
			struct tc_value *v = tc_in(g->members[i].op, k);

			if ((v->def && member_of(g, v->def)) || is_copied(v))
				continue;
			for (at = 0; at < n && in[at] != v;)
				at++;
			in[at] = v;
			n += at == n;
			if (n > ISA_MAX_IN)
				return n;
		}
	return n;
}

/* The iteration dims of operand 0 of m, which is narrow; false: m reads no such thing. */
static bool narrow_axis(const struct member *m, int8_t *axis)
{
	const int64_t *bd;
	unsigned n;

	if (m->is_narrow && m->op->op != TC_REDUCE)
		return tc_tie_operand(m->op, m->axis, axis);
	if (m->is_narrow || m->op->op != TC_BROADCAST_IN_DIM)
		return false;
	bd = tc_attr_ints(m->op, "broadcast_dimensions", &n);
	memset(axis, -1, ISA_MAX_RANK);
	for (unsigned k = 0; k < n && k < ISA_MAX_RANK; k++)
		axis[k] = tc_in(m->op, 0)->type->dim[k] == 1 ? -1 : (int8_t)bd[k];
	return true;
}

/* Whether the value of `from` can reach operand k of `to` inside of one instruction. */
static bool can_carry(const struct group *g, const struct member *from,
		      const struct member *to, unsigned k)
{
	int8_t axis[ISA_MAX_RANK];

	if (to->op == g->anchor)
		return false;		/* a product reads its operands from memory */
	if (to->op->op == TC_REDUCE)
		return k == 0 && !from->is_narrow;
	if (!is_elementwise(to->op))
		return from->is_narrow && narrow_axis(to, axis) &&
		       !memcmp(axis, from->axis, sizeof(axis));
	/* The scalars of select and clamp are broadcast only as inputs. */
	if (!tc_same_dims(tc_in(to->op, k)->type, to->op->results[0].type))
		return false;
	return from->is_narrow == to->is_narrow &&
	       (!to->is_narrow || !memcmp(from->axis, to->axis, sizeof(axis)));
}

/* The same of all that passes between m and the other members. */
static bool is_carried(struct group *g, const struct member *m)
{
	const struct member *other;

	for (unsigned k = 0; k < m->op->n_operands; k++) {
		const struct tc_op *def = tc_in(m->op, k)->def;

		other = def ? member_of(g, def) : NULL;
		if (other && !can_carry(g, other, m, k))
			return false;
	}
	for (const struct tc_use *u = m->op->results[0].uses; u; u = u->next) {
		other = member_of(g, u->user);
		if (other && !can_carry(g, m, other, (unsigned)(u - u->user->operands)))
			return false;
	}
	return true;
}

/* Whether a row reduction that fits the group lies behind a narrow value. */
static bool leads_to_rows(struct group *g, const struct tc_value *v, unsigned depth)
{
	const struct tc_op *op = v->def;
	unsigned outer;

	if (!op || depth > 8 || op->block != g->root->block)
		return false;
	if (op->op == TC_REDUCE)
		return tc_same_dims(tc_in(op, 0)->type, g->shape) &&
		       tc_simple_reduce(op) != TC_OP_COUNT && tc_reduces_trailing(op, &outer);
	if (!is_elementwise(op) && op->op != TC_RESHAPE && op->op != TC_BROADCAST_IN_DIM)
		return false;
	for (unsigned i = 0; i < op->n_operands; i++)
		if (leads_to_rows(g, tc_in(op, i), depth + 1))
			return true;
	return false;
}

/* Whether a narrow value is of row reductions and constants alone. What else it reads comes from
 * memory, of which the device knows no row values: such a value can be used in the group, but
 * stored at each point of the row alone. */
static bool is_of_rows(struct group *g, const struct tc_value *v, unsigned depth)
{
	if (is_copied(v))
		return true;
	if (!leads_to_rows(g, v, 0) || depth > 8)
		return false;
	for (unsigned i = 0; v->def->op != TC_REDUCE && i < v->def->n_operands; i++)
		if (!is_of_rows(g, tc_in(v->def, i), depth + 1))
			return false;
	return true;
}

static bool row_fits(struct group *g, const struct tc_op *op, const int8_t *axis)
{
	const struct tc_type *t = op->results[0].type;
	unsigned outer;
	int64_t row = 1;

	if (g->anchor || g->root_reduces || tc_simple_reduce(op) == TC_OP_COUNT ||
	    !tc_same_dims(tc_in(op, 0)->type, g->shape) || !tc_reduces_trailing(op, &outer) ||
	    (g->n_outer >= 0 && g->n_outer != (int)outer))
		return false;
	for (unsigned d = outer; d < g->shape->rank; d++)
		if (__builtin_mul_overflow(row, g->shape->dim[d], &row))
			return false;
	if (row < 1 || row > ISA_MAX_ROW)
		return false;
	for (unsigned d = 0; d < t->rank; d++)
		if (t->dim[d] != 1 && axis[d] != (int)d)
			return false;
	return true;
}

/* Considers the producer of a narrow value whose dims are tied by `axis`. */
static bool try_narrow(struct group *g, struct tc_value *v, const int8_t *axis)
{
	struct tc_op *op = v->def;
	struct member *m = op ? member_of(g, op) : NULL;

	if (!op || m || is_copied(v) || op->block != g->root->block || !note_of(op) ||
	    note_of(op)->group || users_of(g, op) == 0 || g->n == MAX_MEMBERS)
		return false;
	if (op->op == TC_REDUCE) {
		if (!row_fits(g, op, axis))
			return false;
		g->is_broken |= g->has_siblings;
		tc_reduces_trailing(op, &(unsigned){ 0 });
		join(g, op, true, axis);
		g->n_outer = (int)op->results[0].type->rank;
		return true;
	}
	if (!leads_to_rows(g, v, 0) || (users_of(g, op) == 2 && !is_of_rows(g, v, 0)))
		return false;
	if (!is_elementwise(op)) {
		int8_t below[ISA_MAX_RANK];

		if (!tc_tie_operand(op, axis, below))
			return false;
	}
	join(g, op, true, axis);
	return true;
}

static bool try_full(struct group *g, struct tc_value *v)
{
	struct tc_op *op = v->def;
	int users;

	if (!op || is_copied(v) || op->block != g->root->block || !note_of(op) ||
	    note_of(op)->group || !tc_same_dims(v->type, g->shape) || g->n == MAX_MEMBERS)
		return false;
	users = users_of(g, op);
	/* What is in memory has its bits there. */
	if (op->op == TC_BITCAST_CONVERT &&
	    (!tc_in(op, 0)->def || !is_root(tc_in(op, 0)->def)))
		return false;
	if (is_anchor(op)) {
		g->is_broken |= g->has_siblings;
		if (users != 1 || g->anchor || g->n_outer >= 0 || g->root_reduces ||
		    !tc_takes_epilogue(op))
			return false;
		g->anchor = op;
		join(g, op, false, NULL);
		return true;
	}
	if (!users || (!is_elementwise(op) && op->op != TC_BROADCAST_IN_DIM))
		return false;
	/* A broadcast that others want too is cheaper as a view. */
	if (op->op == TC_BROADCAST_IN_DIM && users == 2)
		return false;
	join(g, op, false, NULL);
	return true;
}

static enum spread spread_of(struct group *g, const struct tc_value *v)
{
	struct member *m = v->def ? member_of(g, v->def) : NULL;
	enum spread s = EQUAL;

	/* An iota comes along whether it is a member yet or not. */
	if (v->def && v->def->op == TC_IOTA && !(m && m->is_narrow)) {
		int64_t d = tc_attr_int(v->def, "iota_dimension", 0);

		return v->type->dim[d] == 1 ? EQUAL : d < g->n_outer ? ROW : FULL;
	}
	if (!m)
		return tc_splat_element(v) ? EQUAL : FULL;
	if (m->is_narrow)
		return ROW;
	for (unsigned i = 0; !m->spread && i < m->op->n_operands; i++) {
		enum spread in = spread_of(g, tc_in(m->op, i));

		s = in > s ? in : s;
	}
	if (!m->spread)
		m->spread = s;
	return m->spread;
}

/* Whether every row reduction has a full value to reduce: constants and what rows have
 * given make none. */
static bool rows_are_full(struct group *g)
{
	bool all = true;

	if (g->n_outer < 0)
		return true;
	for (unsigned i = 0; i < g->n; i++)
		g->members[i].spread = UNKNOWN;
	for (unsigned i = 0; all && i < g->n; i++)
		if (g->members[i].op->op == TC_REDUCE)
			all = spread_of(g, tc_in(g->members[i].op, 0)) == FULL;
	return all;
}

struct reads { struct tc_read all[ISA_MAX_VALUES + 2]; unsigned n; };

/* Operand k of m. */
static struct tc_read read_of(struct group *g, const struct member *m, unsigned k)
{
	static const int8_t straight[ISA_MAX_RANK] = { 0, 1, 2, 3, 4, 5, 6, 7 };
	struct tc_read r = { .v = tc_in(m->op, k) };

	r.elem = r.v->type->elem;
	if (r.v->def && member_of(g, r.v->def))
		return r;
	if (is_elementwise(m->op) || m->op->op == TC_REDUCE)
		memcpy(r.axis, m->is_narrow && m->op->op != TC_REDUCE ? m->axis : straight,
		       sizeof(r.axis));
	else
		narrow_axis(m, r.axis);
	return r;
}

/* Whether that is another read than those there are. */
static bool is_new(struct reads *l, const struct tc_read *r)
{
	for (unsigned i = 0; i < l->n; i++)
		if (tc_same_read(&l->all[i], r))
			return false;
	l->all[l->n++] = *r;
	return true;
}

/* Whether one instruction reads and holds all of the group and so many values `more`: counted as
 * emission makes it (back/emit_fusion.c, back/emit_body.c), or a little more. */
static bool has_room(struct group *g, unsigned more)
{
	struct reads l;
	unsigned values = more + (g->anchor ? 2 : 0), inputs = 0, most = 0;

	/* rows at each of their points (spread_over_rows) */
	if (g->n_outer >= 0)
		values += 2 + count_outputs(g);
	for (unsigned i = 0; i < g->n; i++)
		most += tc_values_for(g->members[i].op);
	/* So few operands are no more inputs. */
	if (values + most <= ISA_MAX_IN * 4)
		return true;
	l.n = 0;
	for (unsigned i = 0; i < g->n; i++) {
		const struct member *m = &g->members[i];
		unsigned n = m->op->op == TC_REDUCE ? 1 : m->op->n_operands;

		if (m->op == g->anchor)
			continue;
		values += tc_most_values(m->op);
		for (unsigned k = 0; k < n && values <= ISA_MAX_VALUES; k++) {
			struct tc_read r = read_of(g, m, k);

			if (!(r.v->def && member_of(g, r.v->def)) && is_new(&l, &r)) {
				values += tc_values_to_make(&r);
				inputs += !is_copied(r.v);
			}
			/* A select takes all as it is. */
			if (!is_elementwise(m->op) || m->op->op == TC_SELECT)
				continue;
			r.elem = (uint8_t)tc_works_in(m->op);
			if (r.elem != r.v->type->elem)
				values += is_new(&l, &r);
		}
	}
	return inputs <= ISA_MAX_IN && values <= ISA_MAX_VALUES;
}

/* Takes back the newest member if no register can carry its value or its operands, or
 * if the group has become too wide. */
static bool fits(struct group *g)
{
	struct member *m = &g->members[g->n - 1];

	if (is_carried(g, m) && rows_are_full(g)) {
		/* Siblings come to share what they read as their producers join. */
		if (count_inputs(g) <= (g->has_siblings ? ISA_MAX_IN : MAX_INPUTS) &&
		    count_outputs(g) <= MAX_OUTPUTS && has_room(g, 0))
			return true;
		g->is_broken = true;
	}
	note_of(m->op)->group = NULL;
	if (m->op == g->anchor)
		g->anchor = NULL;
	g->n--;
	if (m->op->op == TC_REDUCE) {
		g->n_outer = -1;
		for (unsigned i = 0; i < g->n; i++)
			if (g->members[i].op->op == TC_REDUCE && g->members[i].is_narrow)
				g->n_outer = (int)g->members[i].op->results[0].type->rank;
	}
	return false;
}

static bool grow_from(struct group *g, unsigned index)
{
	struct member m = g->members[index];
	int8_t axis[ISA_MAX_RANK];
	bool grew = false;

	if (m.op == g->anchor)
		return false;
	for (unsigned i = 0; i < m.op->n_operands; i++) {
		struct tc_value *v = tc_in(m.op, i);
		bool added;

		if (m.op->op == TC_REDUCE) {
			added = i == 0 && try_full(g, v);
		} else if (m.is_narrow && is_elementwise(m.op)) {
			added = try_narrow(g, v, m.axis);
		} else if (!is_elementwise(m.op)) {
			added = narrow_axis(&m, axis) && try_narrow(g, v, axis);
		} else {
			added = try_full(g, v);
		}
		grew |= added && fits(g);
	}
	return grew;
}

static void grow(struct group *g)
{
	for (unsigned rounds = 0; rounds < 12; rounds++) {
		bool grew = false;

		for (unsigned i = 0; i < g->n; i++)
			grew |= grow_from(g, i);
		if (!grew)
			break;
	}
}

/* A narrow chain that never met its reduction has no business inside: the members
 * are narrow elementwise work that leads to rows, so this drops those whose operands
 * all stayed outside. Repeats until nothing changes. */
static bool feeds_inside(struct group *g, const struct tc_op *op)
{
	for (unsigned i = 0; i < op->n_operands; i++)
		if (tc_in(op, i)->def && member_of(g, tc_in(op, i)->def))
			return true;
	return false;
}

static void drop_member(struct group *g, unsigned i)
{
	note_of(g->members[i].op)->group = NULL;
	g->members[i] = g->members[--g->n];
	if (i < g->n)
		note_of(g->members[i].op)->member = i;
}

static void drop_idle_chains(struct group *g)
{
	bool changed = true;

	while (changed) {
		changed = false;
		for (unsigned i = 0; i < g->n; i++) {
			struct member *m = &g->members[i];

			if (!m->is_narrow || m->op->op == TC_REDUCE || feeds_inside(g, m->op))
				continue;
			drop_member(g, i);
			changed = true;
			break;
		}
	}
}

/* ---- what need not be read ---- */

static bool is_read(struct group *g, const struct tc_value *v)
{
	for (const struct tc_use *u = v->uses; u; u = u->next)
		if (member_of(g, u->user))
			return true;
	for (unsigned i = 0; i < g->far.n; i++)
		if (g->far.of[i] == v)
			return true;
	return false;
}

/* Whether v is quickly made of what the group reads anyway, as it is made already. What is of
 * constants alone is no full value of rows any more (rows_are_full). */
static bool can_be_remade(struct group *g, const struct tc_value *v, unsigned steps)
{
	const struct tc_op *op = v->def;
	bool is_full = g->n_outer < 0;

	if (!steps || !op || op->block != g->root->block || !tc_is_quick(op) ||
	    note_of(op)->group || !tc_same_dims(v->type, g->shape))
		return false;
	for (unsigned k = 0; k < op->n_operands; k++) {
		const struct tc_value *in = tc_in(op, k);

		if (!is_copied(in) && (!tc_same_dims(in->type, g->shape) ||
				       (!is_read(g, in) && !can_be_remade(g, in, steps - 1))))
			return false;
		is_full |= !is_copied(in);
	}
	return is_full;
}

/* Whether others who look at v, if any, come before and could do without it, too. */
static bool is_kept_for(struct group *g, const struct tc_value *v)
{
	bool is_any = false;

	for (const struct tc_use *u = v->uses; u; u = u->next) {
		if (member_of(g, u->user)) {
			if (!is_elementwise(u->user) || u->user == g->anchor)
				return false;
			continue;
		}
		if (u->user->block != g->root->block || !is_elementwise(u->user))
			return false;
		is_any = true;
	}
	return is_any;
}

static unsigned most_steps(const struct group *g)
{
	return g->far.n ? FAR_STEPS : MOST_STEPS;
}

/* What it is made of is made again as well, as far as there is room. */
static void remake(struct group *g, struct tc_value *v)
{
	struct tc_op *op;

	if (g->n >= MOST_REMADE || !has_room(g, tc_values_for(v->def)))
		return;
	if (!g->remade)
		g->remade = tc_map_new(g->c);
	op = tc_clone(g->c, v->def, g->remade);
	tc_insert_before(v->def, op);
	op->side = arena_copy(&g->c->arena, note_of(v->def), sizeof(struct note));
	if (!op->side)
		tc_fail(g->c, ERR_RESOURCE_EXHAUSTED, NULL, "out of memory");
	for (unsigned i = 0; i < g->n; i++)
		for (unsigned k = 0; k < g->members[i].op->n_operands; k++)
			if (tc_in(g->members[i].op, k) == v)
				tc_set_operand(g->members[i].op, k, tc_out(op, 0));
	join(g, op, false, NULL);
	for (unsigned k = 0; k < op->n_operands; k++)
		if (!is_copied(tc_in(op, k)) && can_be_remade(g, tc_in(op, k), most_steps(g)))
			remake(g, tc_in(op, k));
}

/*
 * What arguments of the program would be read for all that is quickly made of nothing else, where
 * that are more bytes: these have to be there anyway. As a lookup between the elements of a grid
 * goes from a position to what is around it, which it weighs in the end by where that is.
 */
static void look_far(struct group *g)
{
	const struct tc_value *seen[ISA_MAX_IN];
	uint64_t saved = 0, added = 0;
	unsigned n = 0;

	for (unsigned i = 0; i < g->n; i++)
		for (unsigned k = 0; k < g->members[i].op->n_operands; k++) {
			struct tc_value *v = tc_in(g->members[i].op, k);
			unsigned at = 0;

			while (at < n && seen[at] != v)
				at++;
			if (at < n || n == ISA_MAX_IN || !v->def || is_copied(v) ||
			    v->def->block != g->root->block || note_of(v->def)->group ||
			    !tc_same_dims(v->type, g->shape) || !is_kept_for(g, v) ||
			    !tc_add_made(&g->far, v, FAR_STEPS))
				continue;
			seen[n++] = v;
			saved += elem_bytes(v->type->elem);
		}
	for (unsigned i = 0; i < g->far.n; i++)
		added += elem_bytes(g->far.of[i]->type->elem);
	if (added >= saved || g->far.n_ops > 2 * (saved - added))
		g->far.n = 0;
}

/*
 * What an earlier instruction makes of something in a step or two, and the group reads beside
 * that, as a gradient does of what its function went through, is made again, of the same bits:
 * nobody has to write it and keep it until here. Groups of earlier ops are built later, and leave
 * out what nobody reads any more.
 */
static void read_less(struct group *g)
{
	look_far(g);
	for (unsigned i = 0; i < g->n && g->n < MOST_REMADE; i++) {
		struct member m = g->members[i];

		for (unsigned k = 0; !m.is_narrow && is_elementwise(m.op) && k < m.op->n_operands;
		     k++) {
			struct tc_value *v = tc_in(m.op, k);

			if (!is_copied(v) && is_kept_for(g, v) &&
			    can_be_remade(g, v, most_steps(g)))
				remake(g, v);
		}
	}
	g->far.n = 0;
}

/* Whether op is made for a member alone, and could be of one group with it. */
static bool could_join(struct group *g, const struct tc_value *v, const struct tc_op *user)
{
	const struct tc_op *op = v->def;

	return op && op->block == user->block && is_elementwise(op) && is_root(op) &&
	       !is_copied(v) && !note_of(op)->group && tc_same_dims(v->type, g->shape) &&
	       tc_is_used_once(v);
}

/* Where the group had no room for more, a member may be left of which all operands are outside:
 * each is an array that is written and read again. It is better off in one group with what makes
 * them, of which its own result is all that is written. */
static void drop_far_ends(struct group *g)
{
	for (unsigned i = 0; i < g->n; i++) {
		struct member *m = &g->members[i];
		unsigned k = 0;

		if (m->op == g->root || m->is_narrow || !is_elementwise(m->op) ||
		    m->op->op == TC_BITCAST_CONVERT || users_of(g, m->op) != 1)
			continue;
		while (k < m->op->n_operands && could_join(g, tc_in(m->op, k), m->op))
			k++;
		if (k < m->op->n_operands || k < 2)
			continue;
		drop_member(g, i);
		i = UINT32_MAX;		/* from the first on */
	}
}

/* is_of_rows, of the group as it has become. */
static bool has_become_of_rows(struct group *g, const struct tc_value *v)
{
	const struct member *m = v->def ? member_of(g, v->def) : NULL;

	if (!m)
		return is_copied(v);
	for (unsigned i = 0; m->op->op != TC_REDUCE && i < m->op->n_operands; i++)
		if (!has_become_of_rows(g, tc_in(m->op, i)))
			return false;
	return m->is_narrow;
}

/* A reduction that was to come along may have found no room: then the root stays alone. */
static void drop_all_if_rows_are_missing(struct group *g)
{
	bool is_right = true;

	for (unsigned i = 0; is_right && i < g->n; i++)
		is_right = !g->members[i].is_narrow || users_of(g, g->members[i].op) != 2 ||
			   has_become_of_rows(g, tc_out(g->members[i].op, 0));
	while (!is_right && g->n > 1)
		note_of(g->members[--g->n].op)->group = NULL;
	if (!is_right)
		g->n_outer = -1;
}

/* ---- building the fusion ---- */

struct build {
	struct tc_ctx *c;
	struct tc_op *fusion;
	struct tc_block *body;
	struct tc_map *map;
	struct tc_value **inputs;
	unsigned n_inputs;
};

/* `as_input`: a product reads memory, so its operands are never copied constants. */
static void bring_in(struct build *b, struct tc_value *v, bool as_input)
{
	if (tc_map_get(b->map, v) != v)
		return;
	if (is_copied(v) && !as_input) {
		tc_append(b->body, tc_clone(b->c, v->def, b->map));
		return;
	}
	b->inputs[b->n_inputs++] = v;
	tc_map_set(b->c, b->map, v, tc_new_arg(b->c, b->body, v->type));
}

static unsigned position_of(const struct member *m)
{
	return note_of(m->op)->position;
}

static void sort_members(struct group *g)
{
	/* Insertion sort: groups are small and nearly in reverse order. */
	for (unsigned i = 1; i < g->n; i++)
		for (unsigned k = i;
		     k && position_of(&g->members[k - 1]) > position_of(&g->members[k]); k--) {
			struct member t = g->members[k];

			g->members[k] = g->members[k - 1];
			g->members[k - 1] = t;
		}
	for (unsigned i = 0; i < g->n; i++)
		note_of(g->members[i].op)->member = i;
}

static void build_fusion(struct group *g)
{
	struct tc_ctx *c = g->c;
	struct build b = { .c = c, .map = tc_map_new(c) };
	struct tc_value *outs[MAX_MEMBERS], *returned[MAX_MEMBERS];
	const struct tc_type *types[MAX_MEMBERS];
	unsigned n_outs = 0;
	struct tc_op *end;

	sort_members(g);
	for (unsigned i = 0; i < g->n; i++)
		if (g->members[i].op == g->root || users_of(g, g->members[i].op) == 2) {
			outs[n_outs] = tc_out(g->members[i].op, 0);
			types[n_outs] = outs[n_outs]->type;
			n_outs++;
		}
	b.inputs = arena_array(&c->arena, g->n * 4 + 8, sizeof(*b.inputs));
	if (!b.inputs)
		tc_fail(c, ERR_RESOURCE_EXHAUSTED, NULL, "out of memory");
	b.fusion = tc_new(c, TC_FUSION, 0, NULL, n_outs, types, 1);
	b.fusion->where = g->root->where;
	b.body = tc_new_block(c, &b.fusion->regions[0]);
	tc_set_int(c, b.fusion, "kind", TC_ATTR_ENUM,
		   g->anchor ? TC_FUSION_MATMUL : TC_FUSION_LOOP);
	if (g->anchor) {
		for (unsigned k = 0; k < 2; k++)
			bring_in(&b, tc_in(g->anchor, k), true);
		tc_append(b.body, tc_clone(c, g->anchor, b.map));
	}
	for (unsigned i = 0; i < g->n; i++) {
		struct tc_op *op = g->members[i].op;

		if (op == g->anchor)
			continue;
		for (unsigned k = 0; k < op->n_operands; k++)
			bring_in(&b, tc_in(op, k), false);
		tc_append(b.body, tc_clone(c, op, b.map));
	}
	for (unsigned i = 0; i < n_outs; i++)
		returned[i] = tc_map_get(b.map, outs[i]);
	end = tc_new(c, TC_RETURN, n_outs, returned, 0, NULL, 0);
	tc_append(b.body, end);
	tc_set_operands(c, b.fusion, b.n_inputs, b.inputs);
	tc_insert_before(g->root, b.fusion);
	b.fusion->side = arena_copy(&c->arena, note_of(g->root), sizeof(struct note));
	if (!b.fusion->side)
		tc_fail(c, ERR_RESOURCE_EXHAUSTED, NULL, "out of memory");
	note_of(b.fusion)->group = NULL;
	for (unsigned i = 0; i < n_outs; i++)
		tc_replace_uses(outs[i], tc_out(b.fusion, i));
	for (unsigned i = g->n; i-- > 0;)
		tc_erase(g->members[i].op);
}

/* ---- the pass ---- */

/* Whether op may be a member beside the root: all who look at it come after that. */
static bool is_beside(struct group *g, const struct tc_op *op)
{
	/* Bits that end no group (is_root) may stand behind the root. */
	return note_of(op) && note_of(op)->position < note_of(g->root)->position &&
	       !note_of(op)->group && op->block == g->root->block && is_elementwise(op) &&
	       tc_same_dims(op->results[0].type, g->shape) && users_of(g, op) == 2;
}

/*
 * What else a turn of a loop gives to the next one: one instruction makes it all, so that what one
 * is made of and another as well is made once, and nothing of it written.
 */
static void join_carried(struct group *g)
{
	const struct tc_block *b = g->root->block;
	const struct tc_op *end = b->last;
	bool is_carried_on = false;

	if (b->region->parent->op != TC_WHILE || g->root_reduces || g->root->n_results != 1 ||
	    end->n_operands > MOST_CARRIED)
		return;
	for (const struct tc_use *u = g->root->results[0].uses; u; u = u->next)
		is_carried_on |= u->user == end;
	for (unsigned i = 0; is_carried_on && i < end->n_operands && g->n < MAX_OUTPUTS; i++) {
		struct tc_op *op = tc_in(end, i)->def;

		if (op && op != g->root && is_beside(g, op))
			join(g, op, false, NULL);
	}
	g->has_siblings = g->n > 1;
}

/*
 * Ops whose results a concatenation joins with the root's, and which nobody else looks at: one
 * instruction writes them all where the whole lies (back/join.c). They are like producers of
 * which all users, be it views on the way there, come after the root.
 */
static void join_siblings(struct group *g)
{
	const struct tc_op *whole = tc_join_of(tc_out(g->root, 0));
	unsigned n = whole ? whole->n_operands : 0;

	if (!n || n > MAX_OUTPUTS || g->root_reduces)
		return;
	for (unsigned k = 0; k < n; k++) {
		const struct tc_value *v = tc_part_of(whole, k);
		const struct tc_op *op = v ? v->def : NULL;

		if (!op || (op != g->root && !is_beside(g, op)))
			return;
	}
	for (unsigned k = 0; k < n; k++) {
		struct tc_op *op = tc_part_of(whole, k)->def;

		if (op != g->root)
			join(g, op, false, NULL);
	}
	g->has_siblings = n > 1;
}

/* Leaves the root alone. */
static void disband(struct group *g)
{
	while (g->n > 1)
		note_of(g->members[--g->n].op)->group = NULL;
	g->members[0].op = g->root;
	note_of(g->root)->member = 0;
	g->anchor = NULL;
	g->n_outer = -1;
	g->has_siblings = false;
}

static void fuse_at(struct tc_ctx *c, struct tc_op *root)
{
	struct group *g = arena_alloc(&c->arena, sizeof(*g));

	if (g)
		g->members = arena_array(&c->arena, MAX_MEMBERS, sizeof(*g->members));
	if (!g || !g->members)
		tc_fail(c, ERR_RESOURCE_EXHAUSTED, NULL, "out of memory");
	g->c = c;
	g->root = root;
	g->n_outer = -1;
	g->root_reduces = root->op == TC_REDUCE;
	g->shape = g->root_reduces ? tc_in(root, 0)->type : root->results[0].type;
	join(g, root, false, NULL);
	join_siblings(g);
	if (g->n == 1)
		join_carried(g);
	if (g->n > 1)
		grow(g);
	/* What would have to be written and read again is not worth it. */
	if (g->has_siblings && (g->is_broken || count_inputs(g) > MAX_INPUTS))
		disband(g);
	if (g->n == 1)
		grow(g);
	read_less(g);
	if (!g->has_siblings && g->n_outer < 0)
		drop_far_ends(g);
	drop_idle_chains(g);
	drop_all_if_rows_are_missing(g);
	/* What was dropped is read. */
	if (!has_room(g, 0))
		disband(g);
	build_fusion(g);
}

void tc_fuse_block(struct tc_ctx *c, struct tc_block *b)
{
	unsigned n = 0;

	tc_take_turns(c, b);
	for (struct tc_op *op = b->first; op; op = op->next) {
		struct note *note = arena_alloc(&c->arena, sizeof(*note));

		if (!note)
			tc_fail(c, ERR_RESOURCE_EXHAUSTED, NULL, "out of memory");
		note->position = n++;
		op->side = note;
	}
	for (struct tc_op *op = b->last, *prev; op; op = prev) {
		prev = op->prev;
		if (is_root(op)) {
			struct tc_op *mark = op->next;

			fuse_at(c, op);
			/* The fusion stands where op was; go on before it. */
			prev = mark ? mark->prev->prev : b->last->prev;
		}
	}
	for (struct tc_op *op = b->first, *next; op; op = next) {
		next = op->next;
		op->side = NULL;
		/* Each fusion has made its own. Other ops that are unused now move nothing. */
		if (op->op == TC_IOTA && tc_is_unused(tc_out(op, 0))) {
			tc_erase(op);
			continue;
		}
		if (op->op == TC_WHILE || op->op == TC_CASE || op->op == TC_IF)
			for (unsigned r = 0; r < op->n_regions; r++)
				if (op->regions[r].block)
					tc_fuse_block(c, op->regions[r].block);
	}
}

void tc_pass_fuse(struct tc_ctx *c)
{
	tc_fuse_block(c, tc_main(c));
}
