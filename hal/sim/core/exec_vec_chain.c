/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chains of VEC: what a body begins by joining inputs that lie alike, one after the other,
 * as the elements of a window are. To make each of them dense first would take longer than
 * all else. So the chain becomes one input of a shorter body, which a kernel makes from
 * where its links lie, and they are read there alone. What a body of REDUCE picks is found here,
 * too: a kernel of its own does that.
 */
#include "hal/sim/core/exec_vec.h"

#include <string.h>

/* Fewer are as well made dense. */
#define FEWEST_LINKS 3
/* A shorter row is left to what copies it. */
#define SHORTEST_ROW 16

struct finder {
	const struct vec_plan *p;
	const struct isa_body *body;
	const struct isa_uop *uops;
	unsigned uses[ISA_MAX_VALUES];	/* may be more than 255 */
	unsigned begin, end;	/* the chain's uops */
	uint8_t link[ISA_MAX_IN];
	unsigned n;
};

/* Whether input j may be a link of a chain whose first link is input `first`. What lies in
 * another chip's memory is no link, since that is asked for by input. */
static bool is_link(const struct finder *f, unsigned j, unsigned first)
{
	const struct sim_ref *ref, *like = &f->p->in[first];
	const struct isa_body *b = f->body;
	int64_t bytes, col;

	if (j >= b->n_in)
		return false;
	ref = &f->p->in[j];
	bytes = elem_bytes(ref->elem);
	col = ref->stride[b->rank - 1];
	if (f->uses[j] != 1 || ref->is_peer || (col != bytes && col != 2 * bytes))
		return false;
	for (unsigned d = 0; d < b->rank; d++)
		if (ref->stride[d] != like->stride[d] || (b->dim[d] > 1 && !ref->stride[d]))
			return false;
	return true;
}

/* The chain that begins with uop i. */
static bool follow(struct finder *f, unsigned i)
{
	const struct isa_uop *u = &f->uops[i];
	unsigned n_in = f->body->n_in;

	f->n = 0;
	f->begin = i;
	if (u->a < n_in || f->uops[u->a - n_in].op != UOP_IMM || u->b >= n_in ||
	    !is_link(f, u->b, u->b))
		return false;
	f->link[f->n++] = u->b;
	for (i++; i < f->body->n_uop && f->uops[i].op == u->op; i++) {
		if (f->uops[i].a != n_in + i - 1 || f->uses[n_in + i - 1] != 1 ||
		    !is_link(f, f->uops[i].b, u->b))
			break;
		f->link[f->n++] = f->uops[i].b;
	}
	f->end = i;
	return f->n >= FEWEST_LINKS;
}

static void count_uses(struct finder *f, const struct isa_operand *out)
{
	for (unsigned i = 0; i < f->body->n_uop; i++) {
		const struct isa_uop *u = &f->uops[i];
		const uint8_t arg[3] = { u->a, u->b, u->c };

		for (unsigned k = 0; k < isa_uop_info(u->op)->n_args; k++)
			f->uses[arg[k]]++;
	}
	for (unsigned j = 0; j < f->body->n_out; j++)
		f->uses[out[j].value] += 2;
}

/* Outputs that lie like the links have dense rows in both: there is nothing to save. */
static bool is_elementwise(const struct finder *f)
{
	for (unsigned d = 0; d < f->body->rank; d++)
		if (f->p->in[f->link[0]].stride[d] != f->p->out[0].ref.stride[d])
			return false;
	return true;
}

static sim_chain_fn *find(struct finder *f, const struct sim_load *load,
			  const struct isa_operand *out)
{
	const struct isa_body *b = f->body;

	if (!b->rank || b->row_rank || f->p->combining || b->dim[b->rank - 1] < SHORTEST_ROW)
		return NULL;
	count_uses(f, out);
	for (unsigned i = 0; i < b->n_uop; i++) {
		sim_chain_fn *fn = sim_uop_chain(load->cpu->path, f->uops[i].op,
						 f->uops[i].elem);

		if (fn && follow(f, i) && !is_elementwise(f))
			return fn;
	}
	return NULL;
}

/* The inputs that are left, and the chain behind them. map: where their values are now. */
static void rewrite_inputs(const struct finder *f, struct vec_plan *p,
			   struct vec_chain *chain, uint8_t *map)
{
	uint32_t links = 0;
	unsigned n = 0;

	for (unsigned k = 0; k < f->n; k++) {
		links |= 1u << f->link[k];
		chain->link[k] = p->in[f->link[k]];
	}
	for (unsigned j = 0; j < f->body->n_in; j++) {
		if (links >> j & 1)
			continue;
		p->in[n] = p->in[j];
		map[j] = (uint8_t)n++;
	}
	p->in[n] = chain->link[0];
	chain->input = n;
	p->n_in = n + 1;
}

static void rewrite_uops(const struct finder *f, struct vec_shorter *to, uint8_t *map)
{
	unsigned n_in = f->body->n_in, first = f->uops[f->begin].a;
	bool is_lone = f->uses[first] == 1;

	to->body.n_uop = 0;
	for (unsigned i = 0; i < f->body->n_uop; i++) {
		struct isa_uop *u = &to->uops[to->body.n_uop];
		unsigned n_args = isa_uop_info(f->uops[i].op)->n_args;

		if (i == f->begin) {
			map[n_in + f->end - 1] = (uint8_t)(to->body.n_in - 1);
			i = f->end - 1;
			continue;
		}
		if (is_lone && n_in + i == first)
			continue;
		*u = f->uops[i];
		u->a = n_args > 0 ? map[u->a] : u->a;
		u->b = n_args > 1 ? map[u->b] : u->b;
		u->c = n_args > 2 ? map[u->c] : u->c;
		map[n_in + i] = (uint8_t)(to->body.n_in + to->body.n_uop++);
	}
}

int vec_take_chain(struct sim_load *load, struct vec_plan *p, const struct isa_body *body,
		   const struct isa_operand *out, const struct isa_uop *uops,
		   const struct vec_shorter **shorter)
{
	struct finder f = { .p = p, .body = body, .uops = uops };
	sim_chain_fn *fn = find(&f, load, out);
	uint8_t map[ISA_MAX_VALUES];
	struct vec_chain *chain;
	struct vec_shorter *to;

	if (!fn)
		return 0;
	chain = arena_alloc(load->arena, sizeof(*chain));
	to = arena_alloc(load->arena, sizeof(*to));
	if (!chain || !to)
		return sim_refuse(load, HW_ST_NO_ROOM, "no memory for a chain");
	chain->fn = fn;
	chain->n = f.n;
	chain->first = uops[uops[f.begin].a - body->n_in].imm;
	rewrite_inputs(&f, p, chain, map);
	to->body = *body;
	to->body.n_in = (uint8_t)p->n_in;
	rewrite_uops(&f, to, map);
	for (unsigned j = 0; j < p->n_in; j++)
		to->in[j] = (struct isa_operand){ .elem = p->in[j].elem };
	for (unsigned j = 0; j < p->n_out; j++) {
		to->out[j] = out[j];
		to->out[j].value = map[out[j].value];
		p->out[j].value = to->out[j].value;
	}
	p->chain = chain;
	*shorter = to;
	return sim_body_check(load, &to->body, to->in, to->out, to->uops, NULL, 0, &to->facts);
}

int vec_plan_chain(struct sim_load *load, struct vec_plan *p, const struct sim_tile *tile)
{
	struct sim_box *box = arena_alloc(load->arena, sizeof(*box));

	if (!box)
		return sim_refuse(load, HW_ST_NO_ROOM, "no memory for a box");
	sim_tile_box(&p->in[p->chain->input], tile, box);
	p->chain_box = box;
	return 0;
}

void vec_run_chain(const struct vec_job *job, const struct sim_tile *tile,
		   const struct sim_box *full, char *room)
{
	const struct vec_chain *c = job->plan->chain;
	const struct sim_ref *ref = &job->plan->in[c->input];
	int64_t at[ISA_MAX_RANK] = { 0 };
	const char *src[ISA_MAX_IN];
	struct sim_plane plane = { .rows = 1, .cols = 1 };
	struct sim_box own;
	const struct sim_box *x = full;
	unsigned outer;

	if (!x) {
		sim_tile_box(ref, tile, &own);
		x = &own;
	}
	outer = x->n > 2 ? x->n - 2 : 0;
	if (x->n) {
		plane.cols = (size_t)x->count[x->n - 1];
		plane.col = x->stride[x->n - 1];
	}
	if (x->n > 1) {
		plane.rows = (size_t)x->count[x->n - 2];
		plane.row = x->stride[x->n - 2];
	}
	for (unsigned k = 0; k < c->n; k++)
		src[k] = (const char *)sim_tile_at(ref, job->link[k], tile);
	for (;;) {
		unsigned d = outer;
		int64_t step = 0;

		c->fn(room, &c->first, src, c->n, &plane);
		room += plane.rows * plane.cols * x->bytes;
		while (d-- > 0) {
			step += x->stride[d];
			if (++at[d] < x->count[d])
				break;
			step -= x->stride[d] * x->count[d];
			at[d] = 0;
		}
		if (d == UINT32_MAX)
			return;
		for (unsigned k = 0; k < c->n; k++)
			src[k] += step;
	}
}

/* ---- bodies that pick ---- */

/* How the accumulator's value x and the element's y may be to each other, a bit each. */
enum {
	X_LESS = 1, X_EQUAL = 2, X_MORE = 4, X_NAN = 8, Y_NAN = 16, BOTH_NAN = 32,
	ORDERED = X_LESS | X_EQUAL | X_MORE, UNORDERED = X_NAN | Y_NAN | BOTH_NAN,
	ANY = ORDERED | UNORDERED,
};

/* What a value of the body is, for a body that compares and selects: a truth, with those relations
 * in which it holds, or one of a result's accumulator and element, with those in which it is the
 * accumulator. */
struct meaning { enum { OTHER, TRUTH, EITHER } is; unsigned of, when; };

/* The relations in which u holds of two values, m->of telling which they are. */
static struct meaning compared(unsigned op, const struct meaning *a, const struct meaning *b)
{
	static const uint8_t holds[] = {	/* from UOP_EQ on */
		X_EQUAL, X_LESS | X_MORE, X_LESS, X_LESS | X_EQUAL, X_MORE, X_MORE | X_EQUAL,
	};
	unsigned when = holds[op - UOP_EQ], turned;
	struct meaning m = { TRUTH, a->of, 0 };

	if (a->is != EITHER || b->is != EITHER || a->of != b->of ||
	    (a->when && a->when != ANY) || (b->when && b->when != ANY))
		return (struct meaning){ OTHER, 0, 0 };
	turned = (when & X_EQUAL) | (when & X_LESS ? X_MORE : 0) | (when & X_MORE ? X_LESS : 0);
	if (a->when == b->when) {	/* with itself */
		m.when = a->when ? X_NAN | BOTH_NAN : Y_NAN | BOTH_NAN;
		if (op != UOP_NE)
			m.when = when & X_EQUAL ? ANY & ~m.when : 0;
		return m;
	}
	m.when = (a->when ? when : turned) | (op == UOP_NE ? UNORDERED : 0);
	return m;
}

static struct meaning meaning_of(const struct isa_uop *u, const struct meaning *v)
{
	const struct meaning *a = &v[u->a], *b = &v[u->b], *c = &v[u->c];
	struct meaning m = { OTHER, a->of, 0 };

	if (u->op >= UOP_EQ && u->op <= UOP_GE)
		return compared(u->op, a, b);
	if (u->op == UOP_CVT && u->elem == ELEM_BF16 && u->to == ELEM_F32)
		return *a;	/* for comparisons alone: no result is of this type then */
	/* of whole numbers that are equal it does not matter which one it is */
	if ((u->op == UOP_MAX || u->op == UOP_MIN) && elem_class(u->elem) == ELEM_CLASS_SINT &&
	    a->is == EITHER && b->is == EITHER && a->of == b->of &&
	    ((a->when == ANY && !b->when) || (b->when == ANY && !a->when))) {
		m.is = EITHER;
		m.when = u->op == UOP_MAX ? X_MORE : X_LESS;
		return m;
	}
	if (u->op == UOP_SELECT && a->is == TRUTH && b->is == EITHER && c->is == EITHER &&
	    b->of == c->of)
		return (struct meaning){ EITHER, b->of,
					 (a->when & b->when) | (~a->when & c->when) };
	if (u->elem != ELEM_PRED || a->is != TRUTH || b->is != TRUTH || a->of != b->of)
		return m;
	m.is = TRUTH;
	if (u->op == UOP_AND)
		m.when = a->when & b->when;
	else if (u->op == UOP_OR)
		m.when = a->when | b->when;
	else
		m.is = OTHER;
	return m;
}

/* Whether out, of operand `by`, and the other one are as sim_pick_fn has it for `better`. */
static bool is_pick(const struct meaning *out, unsigned by, unsigned better, unsigned possible)
{
	unsigned value = better | X_NAN | BOTH_NAN;

	return out[0].is == EITHER && out[1].is == EITHER && !out[0].of && out[1].of == 1 &&
	       out[by].when == (value & possible) &&
	       out[!by].when == ((value | X_EQUAL) & possible);
}

unsigned vec_find_pick(const struct isa_tensor *t, const struct isa_operand *out,
		       const struct isa_uop *uops, unsigned *by)
{
	struct meaning v[ISA_MAX_VALUES] = { { OTHER, 0, 0 } }, to[2];
	unsigned first = t->body.n_in, possible, asked = 0;

	if (t->body.n_out != 2)
		return 0;
	for (unsigned j = 0; j < first; j++)
		v[j] = (struct meaning){ EITHER, j % 2, j < 2 ? ANY : 0 };
	for (unsigned i = 0; i < t->body.n_uop; i++) {
		v[first + i] = meaning_of(&uops[i], v);
		if (v[first + i].is == TRUTH)
			asked |= 1u << v[first + i].of;
	}
	if (asked != 1 && asked != 2)
		return 0;
	*by = asked - 1;
	possible = elem_class(out[*by].elem) == ELEM_CLASS_FLOAT ? ANY : ORDERED;
	for (unsigned j = 0; j < 2; j++) {
		to[j] = v[out[j].value];
		to[j].when &= possible;
	}
	return is_pick(to, *by, X_MORE, possible) ? UOP_MAX :
	       is_pick(to, *by, X_LESS, possible) ? UOP_MIN : 0;
}
