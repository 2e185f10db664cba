/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Merges equal pure ops of one block.
 *
 * Requires: nothing. Ensures: of ops with the same code, operands, types and attributes
 * the first is left. Ops with regions are kept apart, as are collectives
 * of several replicas, of which each may run a program of its own (ir/ops.def).
 */
#include <string.h>

#include "runtime/compiler/passes.h"

struct table {
	struct tc_op **slots;
	size_t room;		/* a power of two */
};

static uint64_t mix(uint64_t h, uint64_t v)
{
	h ^= v + 0x9e3779b97f4a7c15u + (h << 6) + (h >> 2);
	h *= 0xff51afd7ed558ccdu;
	/* A product hands bits upwards alone, and the lowest are a slot's number. */
	return h ^ h >> 32;
}

/* All of them: constants that differ late would all be compared with each other. */
static uint64_t hash_bytes(const void *bytes, size_t n)
{
	const uint8_t *p = bytes;
	uint64_t h = n, word;

	for (; n >= sizeof(word); n -= sizeof(word), p += sizeof(word)) {
		memcpy(&word, p, sizeof(word));
		h = mix(h, word);
	}
	for (; n; n--)
		h = mix(h, *p++);
	return h;
}

static uint64_t hash_attr(const struct tc_attr *a)
{
	uint64_t h = mix((uintptr_t)a->key, a->kind);
	size_t n;

	h = mix(h, (uint64_t)a->i);
	for (uint32_t i = 0; a->kind == TC_ATTR_INTS && i < a->n; i++)
		h = mix(h, (uint64_t)a->ints[i]);
	if (a->kind == TC_ATTR_DENSE) {
		n = a->is_splat ? elem_bytes(a->type->elem) : (size_t)a->type->bytes;
		h = mix(h, hash_bytes(a->data, n));
	}
	return h;
}

static uint64_t hash_op(const struct tc_op *op)
{
	uint64_t h = mix(op->op, op->n_operands);

	for (unsigned i = 0; i < op->n_operands; i++)
		h = mix(h, op->operands[i].value->id);
	for (unsigned i = 0; i < op->n_results; i++)
		h = mix(h, (uintptr_t)op->results[i].type);
	for (unsigned i = 0; i < op->n_attrs; i++)
		h ^= hash_attr(&op->attrs[i]);
	return h;
}

static bool is_same_attr(const struct tc_attr *a, const struct tc_attr *b)
{
	if (a->kind != b->kind || a->i != b->i || a->n != b->n ||
	    a->is_splat != b->is_splat || a->type != b->type)
		return false;
	switch (a->kind) {
	case TC_ATTR_INTS:
		return !a->n || !memcmp(a->ints, b->ints, a->n * sizeof(*a->ints));
	case TC_ATTR_STR:
		return !strcmp(a->text, b->text);
	case TC_ATTR_DENSE:
		return !memcmp(a->data, b->data, a->is_splat ? elem_bytes(a->type->elem) :
			       (size_t)a->type->bytes);
	case TC_ATTR_ATTRS:
		return a->attrs == b->attrs;
	default:
		return true;
	}
}

static bool is_same(const struct tc_op *a, const struct tc_op *b)
{
	if (a->op != b->op || a->n_operands != b->n_operands ||
	    a->n_results != b->n_results || a->n_attrs != b->n_attrs)
		return false;
	for (unsigned i = 0; i < a->n_operands; i++)
		if (a->operands[i].value != b->operands[i].value)
			return false;
	for (unsigned i = 0; i < a->n_results; i++)
		if (a->results[i].type != b->results[i].type)
			return false;
	for (unsigned i = 0; i < a->n_attrs; i++) {
		const struct tc_attr *x = &a->attrs[i], *y = tc_attr(b, x->key);

		if (!y || !is_same_attr(x, y))
			return false;
	}
	return true;
}

static void merge_block(struct tc_ctx *c, struct tc_block *b)
{
	struct table t = { NULL, 64 };
	struct tc_op *next;
	size_t n = 0;

	for (struct tc_op *op = b->first; op; op = op->next)
		n++;
	while (t.room < n * 2)
		t.room *= 2;
	t.slots = arena_array(&c->arena, t.room, sizeof(*t.slots));
	if (!t.slots)
		tc_fail(c, ERR_RESOURCE_EXHAUSTED, NULL, "out of memory");
	for (struct tc_op *op = b->first; op; op = next) {
		size_t k;

		next = op->next;
		for (unsigned r = 0; r < op->n_regions; r++)
			if (op->regions[r].block)
				merge_block(c, op->regions[r].block);
		if (!tc_has_trait(op, 'p') || op->n_regions || !op->n_results ||
		    (c->options->replicas > 1 && tc_is_collective(op)))
			continue;
		for (k = hash_op(op) & (t.room - 1); t.slots[k]; k = (k + 1) & (t.room - 1))
			if (is_same(t.slots[k], op))
				break;
		if (!t.slots[k]) {
			t.slots[k] = op;
			continue;
		}
		for (unsigned i = 0; i < op->n_results; i++)
			tc_replace_uses(tc_out(op, i), tc_out(t.slots[k], i));
		tc_erase(op);
	}
}

void tc_pass_cse(struct tc_ctx *c)
{
	merge_block(c, tc_main(c));
}
