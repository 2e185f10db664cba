/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_LAY_H
#define TESTS_LAY_H
/*
 * How the arguments and results of a program for several devices are cut: the parts of each
 * partition, as the program's shardings say and what is found from them.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/compiler/passes.h"
#include "runtime/compiler/spmd/propagate.h"

enum { LAY_ARRAYS = 64, LAY_DEVICES = 64 };	/* arguments, or results; partitions */

/* How a tensor is cut, for each partition. */
struct lay {
	unsigned rank;
	uint8_t elem;
	int64_t dim[TC_MAX_RANK];
	uint32_t parts[TC_MAX_RANK];
	uint32_t index[TC_MAX_RANK][LAY_DEVICES];
};

struct lays {
	unsigned partitions, n_args, n_results;
	struct lay arg[LAY_ARRAYS], result[LAY_ARRAYS];
};

static inline void lay_find(struct lay *l, const struct tc_type *t,
			    const struct spmd_sharding *h)
{
	const struct spmd_mesh *m = h->mesh;

	*l = (struct lay){ .rank = t->rank, .elem = t->elem };
	for (unsigned d = 0; d < t->rank; d++) {
		const struct spmd_axes *a = &h->dim[d].axes;

		l->dim[d] = t->dim[d];
		l->parts[d] = 1;
		for (unsigned i = 0; i < a->n; i++)
			l->parts[d] *= a->at[i].size;
		for (unsigned place = 0; place < m->devices; place++) {
			unsigned at[SPMD_MAX_AXES], rest = place, index = 0;

			for (unsigned k = m->n_axes; k-- > 0; rest /= m->axis[k].size)
				at[k] = rest % m->axis[k].size;
			for (unsigned i = 0; i < a->n; i++) {
				struct spmd_piece p = a->at[i];
				unsigned below = m->axis[p.axis].size / p.pre / p.size;

				index = index * p.size + at[p.axis] / below % p.size;
			}
			l->index[d][m->ids ? m->ids[place] : place] = index;
		}
	}
}

/* For tc_enter() with a struct lays whose `partitions` is set. */
static inline void lay_find_all(struct tc_ctx *c, void *arg)
{
	struct lays *l = arg;
	struct spmd_shardings *p;
	struct tc_block *b;
	struct spmd *s;

	tc_pass_inline(c);
	tc_set_int(c, c->module, "num_partitions", TC_ATTR_INT, l->partitions);
	s = spmd_open(c);
	spmd_prepare(s);
	p = spmd_propagate(s);
	b = tc_main(c);
	l->n_args = b->n_args;
	l->n_results = p->n_results;
	if (l->n_args > LAY_ARRAYS || l->n_results > LAY_ARRAYS || l->partitions > LAY_DEVICES)
		tc_fail(c, ERR_UNIMPLEMENTED, NULL, "more arrays or partitions than are laid out");
	for (unsigned i = 0; i < l->n_args; i++)
		lay_find(&l->arg[i], b->args[i]->type, p->ordered[i] ? p->ordered[i] :
			 p->of[b->args[i]->id]);
	for (unsigned i = 0; i < l->n_results; i++)
		lay_find(&l->result[i], tc_in(b->last, i)->type, p->ordered[l->n_args + i] ?
			 p->ordered[l->n_args + i] : p->result[i]);
}

/* Calls for each element of the partition's part that is in the whole. */
static inline void lay_each(const struct lay *l, unsigned partition,
				void (*fn)(int64_t whole, int64_t part, void *arg), void *arg)
{
	int64_t size[TC_MAX_RANK + 1], n = 1;

	for (unsigned d = 0; d < l->rank; d++) {
		size[d] = (l->dim[d] + l->parts[d] - 1) / l->parts[d];
		n *= size[d];
	}
	for (int64_t i = 0; i < n; i++) {
		int64_t rest = i, whole = 0, step = 1;
		bool is_in = true;

		for (unsigned d = l->rank; d-- > 0; rest /= size[d]) {
			int64_t at = rest % size[d] + size[d] * l->index[d][partition];

			is_in &= at < l->dim[d];
			whole += at * step;
			step *= l->dim[d];
		}
		if (is_in)
			fn(whole, i, arg);
	}
}

struct lay_copy { char *to; const char *from; size_t bytes; };

static inline void lay_copy_one(int64_t whole, int64_t part, void *arg)
{
	struct lay_copy *k = arg;

	memcpy(k->to + part * (int64_t)k->bytes, k->from + whole * (int64_t)k->bytes, k->bytes);
}

struct lay_putting { char *whole, *part; size_t bytes; };

/* For lay_each(): from the part to the whole. */
static inline void lay_put_one(int64_t whole, int64_t part, void *arg)
{
	struct lay_putting *k = arg;

	memcpy(k->whole + whole * (int64_t)k->bytes, k->part + part * (int64_t)k->bytes, k->bytes);
}

/* The partition's part, zeros where it goes beyond the whole; .data is the caller's, NULL: out of
 * memory. */
static inline struct tc_array lay_cut(const struct lay *l, const struct tc_array *whole,
				  unsigned partition)
{
	struct tc_array a = { .elem = l->elem, .rank = l->rank };
	struct lay_copy k = { NULL, whole->data, elem_bytes(l->elem) };

	a.bytes = k.bytes;
	for (unsigned d = 0; d < l->rank; d++) {
		a.dim[d] = (l->dim[d] + l->parts[d] - 1) / l->parts[d];
		a.bytes *= (size_t)a.dim[d];
	}
	a.data = k.to = calloc(1, a.bytes + 1);
	if (k.to)
		lay_each(l, partition, lay_copy_one, &k);
	return a;
}

#endif
