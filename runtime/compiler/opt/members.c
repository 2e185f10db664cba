/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who meets whom in a collective. StableHLO names groups in four ways (its specification, under
 * "process groups"): by replicas, in each partition; by partitions, in each replica; by
 * replicas, with all their partitions; by members. They end in the last one.
 */
#include <inttypes.h>
#include <string.h>

#include "runtime/compiler/opt/devices.h"

#define MOST_MEMBERS 65536

enum way { BY_REPLICA, BY_PARTITION, BY_REPLICA_WITH_PARTITIONS, BY_MEMBER };
static const char *const counted[] = { "replica", "partition", "replica", "member" };

struct settling {
	struct tc_ctx *c;
	struct tc_op *op;
	struct tc_members of;
	enum way way;
	int64_t n_members, n_ids;	/* ids: what the attribute's numbers count */
	uint8_t *seen;			/* by id */
};

/* Rows as they are named, -1 left out. */
struct rows {
	const int64_t *id;
	int64_t n, width;		/* of rows; of the longest */
	int64_t *length;		/* by row */
	int64_t stride;			/* in the attribute */
};

static void *need(struct tc_ctx *c, size_t count, size_t size)
{
	void *p = arena_array(&c->arena, count + 1, size);

	if (!p)
		tc_fail(c, ERR_RESOURCE_EXHAUSTED, NULL, "out of memory");
	return p;
}

static enum way way_of(const struct tc_op *op)
{
	bool has_channel = tc_attr_int(op, "channel_id", 0) > 0;

	if (op->op == TC_EXCHANGE || tc_attr_int(op, "use_global_device_ids", 0))
		return BY_MEMBER;
	if (!has_channel)
		return BY_REPLICA;
	return op->op == TC_ALL_TO_ALL || op->op == TC_COLLECTIVE_PERMUTE ||
	       op->op == TC_COLLECTIVE_BROADCAST ? BY_PARTITION : BY_REPLICA_WITH_PARTITIONS;
}

static void check_id(const struct settling *s, const char *list, int64_t id)
{
	if (id < s->n_ids)
		return;
	if (s->n_members == 1)
		tc_fail(s->c, ERR_INVALID_ARGUMENT, s->op, "%s names device %" PRId64 " of a "
			"program for one: say in the compile options how many there are",
			list, id);
	tc_fail(s->c, ERR_INVALID_ARGUMENT, s->op, "%s names %s %" PRId64 " of a program for %"
		PRId64 " replicas and %" PRId64 " partitions", list, counted[s->way], id,
		s->of.replicas, s->of.partitions);
}

/* All in one group. */
static void add_all(struct settling *s, struct rows *r)
{
	int64_t *all = need(s->c, (size_t)s->n_ids, sizeof(*all));

	for (int64_t i = 0; i < s->n_ids; i++)
		all[i] = i;
	*r = (struct rows){ all, 1, s->n_ids, need(s->c, 1, sizeof(*r->length)), s->n_ids };
	r->length[0] = s->n_ids;
}

static void read_rows(struct settling *s, struct rows *r)
{
	unsigned n;
	const int64_t *ids = tc_attr_ints(s->op, "replica_groups", &n);
	int64_t size = tc_attr_int(s->op, "group_size", 0), *list, *at;

	if (!n) {
		add_all(s, r);
		return;
	}
	list = at = need(s->c, n, sizeof(*list));
	*r = (struct rows){ list, n / size, 0, need(s->c, (size_t)(n / size), sizeof(*at)),
			    size };
	for (int64_t k = 0; k < r->n; k++) {
		at = list + k * size;
		for (int64_t i = 0; i < size; i++) {
			int64_t id = ids[k * size + i];

			if (id < 0)
				continue;
			check_id(s, "replica_groups", id);
			s->seen[id] = 1;
			at[r->length[k]++] = id;
		}
		if (r->length[k] > r->width)
			r->width = r->length[k];
	}
}

/* Only a broadcast may leave some out, and only in a reduction may groups differ. */
static void check_rows(struct settling *s, const struct rows *r)
{
	unsigned n;

	tc_attr_ints(s->op, "replica_groups", &n);
	for (int64_t i = 0; n && i < s->n_ids && s->op->op != TC_COLLECTIVE_BROADCAST; i++)
		if (!s->seen[i])
			tc_fail(s->c, ERR_INVALID_ARGUMENT, s->op, "replica_groups leaves out "
				"%s %" PRId64 ": each of %" PRId64 " belongs to a group",
				counted[s->way], i, s->n_ids);
	if (s->op->op == TC_ALL_REDUCE || s->op->op == TC_COLLECTIVE_BROADCAST ||
	    tc_attr_int(s->op, "is_same", 0))
		return;
	for (int64_t k = 0; k < r->n; k++)
		if (r->length[k] != r->width)
			tc_fail(s->c, ERR_INVALID_ARGUMENT, s->op, "replica_groups has groups "
				"of %" PRId64 " and of %" PRId64 " members: they have to be "
				"equal", r->length[k], r->width);
}

/* The members of row k as they meet in one of `copy`; returns how many. */
static int64_t list_members(const struct settling *s, const struct rows *r, int64_t k,
			    int64_t copy, int64_t *out)
{
	const int64_t *id = r->id + k * r->stride;
	int64_t p = s->of.partitions, n = 0;

	for (int64_t i = 0; i < r->length[k] && s->way != BY_REPLICA_WITH_PARTITIONS; i++)
		out[n++] = s->way == BY_REPLICA ? id[i] * p + copy :
			   s->way == BY_PARTITION ? copy * p + id[i] : id[i];
	for (int64_t j = 0; j < p && s->way == BY_REPLICA_WITH_PARTITIONS; j++)
		for (int64_t i = 0; i < r->length[k]; i++)
			out[n++] = id[i] * p + j;
	return n;
}

static int64_t count_copies(const struct settling *s)
{
	return s->way == BY_REPLICA ? s->of.partitions :
	       s->way == BY_PARTITION ? s->of.replicas : 1;
}

static void settle_groups(struct settling *s)
{
	int64_t copies = count_copies(s), width, n, *out;
	struct rows r;
	size_t at = 0;

	read_rows(s, &r);
	check_rows(s, &r);
	width = r.width * (s->way == BY_REPLICA_WITH_PARTITIONS ? s->of.partitions : 1);
	/* Rows are many only if they are narrow, but short ones may be both. */
	if (width && r.n * copies > ((int64_t)1 << 24) / width)
		tc_fail(s->c, ERR_UNIMPLEMENTED, s->op, "%" PRId64 " groups of up to %" PRId64
			" members", r.n * copies, width);
	out = need(s->c, (size_t)(r.n * copies * width), sizeof(*out));
	for (int64_t k = 0; k < r.n; k++) {
		for (int64_t copy = 0; copy < copies && r.length[k]; copy++) {
			n = list_members(s, &r, k, copy, out + at);
			for (; n < width; n++)
				out[at + (size_t)n] = -1;
			at += (size_t)width;
		}
	}
	tc_set_ints(s->c, s->op, "replica_groups", out, (unsigned)at);
	tc_set_int(s->c, s->op, "group_size", TC_ATTR_INT, width);
}

static void settle_pairs(struct settling *s)
{
	int64_t copies = count_copies(s), p = s->of.partitions, *out;
	unsigned n;
	const int64_t *id = tc_attr_ints(s->op, "source_target_pairs", &n);
	size_t at = 0;

	for (unsigned i = 0; i < n; i++)
		check_id(s, "source_target_pairs", id[i]);
	out = need(s->c, n * (size_t)copies, sizeof(*out));
	for (int64_t copy = 0; copy < copies; copy++)
		for (unsigned i = 0; i < n; i++)
			out[at++] = s->way == BY_REPLICA ? id[i] * p + copy :
				    s->way == BY_PARTITION ? copy * p + id[i] : id[i];
	tc_set_ints(s->c, s->op, "source_target_pairs", out, (unsigned)at);
}

void tc_settle_members(struct tc_ctx *c, struct tc_op *op, struct tc_members of)
{
	struct settling s = { .c = c, .op = op, .of = of, .way = way_of(op) };

	if (of.replicas > MOST_MEMBERS || of.partitions > MOST_MEMBERS / of.replicas)
		tc_fail(c, ERR_UNIMPLEMENTED, op, "a program for %" PRId64 " replicas and %"
			PRId64 " partitions: at most %d devices", of.replicas, of.partitions,
			MOST_MEMBERS);
	s.n_members = of.replicas * of.partitions;
	s.n_ids = s.way == BY_MEMBER ? s.n_members : s.way == BY_PARTITION ? of.partitions :
		  of.replicas;
	s.seen = need(c, (size_t)s.n_ids, 1);
	if (op->op == TC_COLLECTIVE_PERMUTE)
		settle_pairs(&s);
	else
		settle_groups(&s);
	tc_set_int(c, op, "use_global_device_ids", TC_ATTR_BOOL, 1);
}
