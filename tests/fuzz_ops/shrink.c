/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz_ops/shrink.h"

enum { MAX_SIZES = 256 };

struct sizes {
	int64_t size[MAX_SIZES];	/* above 1, each once */
	unsigned n;
};

struct change {
	struct tc_ctx *c;
	int64_t from, to;
};

/* Calls fn on the types of all values: results, and arguments of regions. */
static void each_type(struct tc_op *op, void (*fn)(const struct tc_type **type, void *arg),
		      void *arg)
{
	for (unsigned i = 0; i < op->n_results; i++)
		fn(&op->results[i].type, arg);
	for (unsigned r = 0; r < op->n_regions; r++)
		for (unsigned i = 0; op->regions[r].block && i < op->regions[r].block->n_args; i++)
			fn(&op->regions[r].block->args[i]->type, arg);
}

static void note_sizes(const struct tc_type **type, void *arg)
{
	struct sizes *s = arg;

	for (unsigned d = 0; !(*type)->is_tuple && d < (*type)->rank; d++) {
		unsigned k = 0;

		while (k < s->n && s->size[k] != (*type)->dim[d])
			k++;
		if (k == s->n && k < MAX_SIZES && (*type)->dim[d] > 1)
			s->size[s->n++] = (*type)->dim[d];
	}
}

static void note_op(struct tc_op *op, void *arg)
{
	each_type(op, note_sizes, arg);
}

static int larger_first(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x < y) - (x > y);
}

static const struct tc_type *smaller_type(const struct change *ch, const struct tc_type *t)
{
	int64_t dim[TC_MAX_RANK];

	if (t->is_tuple)
		return t;
	for (unsigned d = 0; d < t->rank; d++)
		dim[d] = t->dim[d] == ch->from ? ch->to : t->dim[d];
	return tc_tensor(ch->c, t->elem, t->rank, dim);
}

static void change_type(const struct tc_type **type, void *arg)
{
	*type = smaller_type(arg, *type);
}

/* The first elements along each dim. */
static void crop(const struct change *ch, struct tc_attr *a)
{
	const struct tc_type *old = a->type, *t = smaller_type(ch, old);
	size_t size = elem_bytes(t->elem);
	char *data;

	a->type = t;
	if (a->is_splat || t == old)
		return;
	data = arena_array(&ch->c->arena, (size_t)t->count + 1, size);
	if (!data)
		tc_fail(ch->c, ERR_RESOURCE_EXHAUSTED, NULL, "out of memory");
	for (int64_t i = 0; i < t->count; i++) {
		int64_t left = i, from = 0, step = 1;

		for (unsigned d = t->rank; d-- > 0; step *= old->dim[d]) {
			from += left % t->dim[d] * step;
			left /= t->dim[d];
		}
		memcpy(data + (size_t)i * size, (const char *)a->data + (size_t)from * size, size);
	}
	a->data = data;
}

static bool holds_sizes(const char *key)
{
	return !strcmp(key, "limit_indices") || !strcmp(key, "slice_sizes") ||
	       !strcmp(key, "window_dimensions") || !strcmp(key, "fft_length");
}

static void change_op(struct tc_op *op, void *arg)
{
	const struct change *ch = arg;

	each_type(op, change_type, arg);
	for (unsigned i = 0; i < op->n_attrs; i++) {
		struct tc_attr *a = &op->attrs[i];
		int64_t *ints;

		if (a->kind == TC_ATTR_DENSE)
			crop(ch, a);
		if (a->kind != TC_ATTR_INTS || !holds_sizes(a->key) || !a->n)
			continue;
		ints = arena_array(&ch->c->arena, a->n, sizeof(*ints));
		if (!ints)
			tc_fail(ch->c, ERR_RESOURCE_EXHAUSTED, NULL, "out of memory");
		for (unsigned k = 0; k < a->n; k++)
			ints[k] = a->ints[k] == ch->from ? ch->to : a->ints[k];
		a->ints = ints;
	}
}

bool shrink_size(struct tc_ctx *c, unsigned n, unsigned part, bool *is_past)
{
	struct sizes sizes = { .n = 0 };
	struct change ch = { .c = c };

	tc_walk(c->module, note_op, &sizes);
	*is_past = n >= sizes.n;
	if (*is_past)
		return false;
	qsort(sizes.size, sizes.n, sizeof(*sizes.size), larger_first);
	ch.from = sizes.size[n];
	ch.to = part == 0 ? 1 : part == 1 ? ch.from / 2 : ch.from - 1;
	/* Each number once. */
	if (part > 2 || (part == 1 && ch.to == 1) || (part == 2 && ch.to <= ch.from / 2))
		return false;
	tc_walk(c->module, change_op, &ch);
	return true;
}
