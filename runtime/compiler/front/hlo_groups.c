/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who meets in a collective, as HLO says it (hlo.h): a list of groups; a formula, the numbers
 * from 0 on as a grid whose dims change places; or axes of a mesh along which the members
 * of a group differ.
 */
#include <inttypes.h>

#include "runtime/compiler/front/groups.h"
#include "runtime/compiler/front/hlo.h"

/* Rows of equal length, the short ones filled up with -1. A row of nobody says nothing. */
static struct hlo_groups from_list(struct hlo *r, size_t n, Hlo__ReplicaGroup *const *row)
{
	struct hlo_groups g = { 0 };
	int64_t *ids;

	for (size_t k = 0; k < n; k++)
		if (row[k]->n_replica_ids > g.size)
			g.size = row[k]->n_replica_ids;
	if (g.size >> 24 || (g.size && n > ((size_t)1 << 24) / g.size))
		hlo_bad(r, "%zu groups of up to %zu", n, g.size);
	g.n = n * g.size;
	ids = hlo_get(r, g.n, sizeof(*ids));
	for (size_t k = 0; k < n; k++)
		for (size_t m = 0; m < g.size; m++)
			ids[k * g.size + m] = m < row[k]->n_replica_ids ?
					      row[k]->replica_ids[m] : -1;
	g.ids = ids;
	return g;
}

/* Steps through a grid whose dims, in `order`, are stride[] apart; each number once. */
static struct hlo_groups from_formula(struct hlo *r, const Hlo__GroupsFormula *f)
{
	int64_t total = 1, stride[GRID_MOST_AXES], at[GRID_MOST_AXES] = { 0 }, *ids;
	uint32_t seen = 0;
	size_t n = f->n_grid;

	if (n > GRID_MOST_AXES || n != f->n_order)
		hlo_bad(r, "the formula of its groups has %zu dims in an order of %zu", n,
			f->n_order);
	for (size_t d = n; d-- > 0; total *= f->grid[d]) {
		stride[d] = total;
		if (f->grid[d] < 1 || f->grid[d] > GRID_MOST_DEVICES / total)
			hlo_bad(r, "the formula of its groups has a dim of %" PRId64 ": all "
				"together have at most %d members", f->grid[d],
				GRID_MOST_DEVICES);
	}
	for (size_t d = 0; d < n; d++) {
		if (f->order[d] < 0 || (size_t)f->order[d] >= n || seen >> f->order[d] & 1)
			hlo_bad(r, "the formula of its groups has an order that is none");
		seen |= 1u << f->order[d];
	}
	if (f->n_groups < 1 || f->group_size < 1 || f->group_size > total ||
	    total % f->group_size || total / f->group_size != f->n_groups)
		hlo_bad(r, "the formula of its groups has %" PRId64 " members for %" PRId64
			" groups of %" PRId64, total, f->n_groups, f->group_size);
	ids = hlo_get(r, (size_t)total, sizeof(*ids));
	for (int64_t i = 0; i < total; i++) {
		for (size_t d = 0; d < n; d++)
			ids[i] += at[d] * stride[f->order[d]];
		for (size_t d = n; d-- > 0; at[d] = 0)
			if (++at[d] < f->grid[f->order[d]])
				break;
	}
	return (struct hlo_groups){ ids, (size_t)total, (size_t)f->group_size };
}

static struct grid_piece find_piece(struct hlo *r, const Hlo__Mesh *m, int64_t n,
				    const Hlo__AxisRef *ref)
{
	const Hlo__SubAxis *part = ref->part;
	struct grid_piece piece;
	int64_t size;

	if (ref->axis < 0 || (size_t)ref->axis >= m->n_axes)
		hlo_bad(r, "its groups are along axis %" PRId64 " of a mesh of %zu", ref->axis,
			m->n_axes);
	for (int64_t i = 0; i <= ref->axis; i++)
		n /= m->axes[i]->size;
	size = m->axes[ref->axis]->size;
	if (!tc_grid_part(size, n, part ? part->pre_size : 1, part ? part->size : size, &piece))
		hlo_bad(r, "its groups are along a part of an axis that does not divide it");
	return piece;
}

static struct hlo_groups from_mesh(struct hlo *r, const Hlo__GroupsOfMesh *g)
{
	struct grid_piece piece[GRID_MOST_AXES];
	struct grid grid = { .n = 1 };
	const Hlo__Mesh *m = g->mesh;
	struct grid_rows rows;
	const char *wrong;

	if (!m || m->n_axes > GRID_MOST_AXES || g->n_axes > GRID_MOST_AXES)
		hlo_bad(r, "its groups are along axes of no mesh, or of more than %d",
			GRID_MOST_AXES);
	for (size_t i = 0; i < m->n_axes; grid.n *= m->axes[i++]->size)
		if (m->axes[i]->size < 1 || m->axes[i]->size > GRID_MOST_DEVICES / grid.n)
			hlo_bad(r, "its groups are along axes of a mesh of more than %d devices, "
				"or none", GRID_MOST_DEVICES);
	if (m->n_device_ids && m->n_device_ids != (size_t)grid.n)
		hlo_bad(r, "its mesh has %zu ids for %" PRId64 " devices", m->n_device_ids,
			grid.n);
	grid.ids = m->n_device_ids ? m->device_ids : NULL;
	for (size_t i = 0; i < g->n_axes; i++)
		piece[i] = find_piece(r, m, grid.n, g->axes[i]);
	wrong = tc_grid_rows(r->c, &grid, piece, (unsigned)g->n_axes, &rows);
	if (wrong)
		hlo_bad(r, "its groups: %s", wrong);
	return (struct hlo_groups){ rows.ids, rows.n, (size_t)rows.width };
}

struct hlo_groups hlo_groups(struct hlo *r, const struct hlo_insn *i)
{
	const Hlo__DeviceGroups *d = i->p->device_groups;

	if (!!d + !!i->p->groups_formula + !!i->p->groups_of_mesh > 1 ||
	    (d && d->formula && d->n_replica_groups))
		hlo_bad(r, "it says in two ways who meets");
	if (i->p->groups_of_mesh)
		return from_mesh(r, i->p->groups_of_mesh);
	if (i->p->groups_formula || (d && d->formula))
		return from_formula(r, d ? d->formula : i->p->groups_formula);
	return d ? from_list(r, d->n_replica_groups, d->replica_groups) :
		   from_list(r, i->p->n_replica_groups, i->p->replica_groups);
}
