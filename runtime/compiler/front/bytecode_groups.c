/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who meets in a collective, as bytecode says it: a matrix of numbers, or axes of a mesh along
 * which the members of a group differ. Both become rows of numbers (ir/ops.def).
 */
#include <stdlib.h>
#include <string.h>

#include "runtime/compiler/front/groups.h"
#include "runtime/compiler/front/reader.h"

/* A grid of devices; without ids the one at place p is p. */
struct mesh {
	unsigned n_axes;
	struct bc_text name[GRID_MOST_AXES];
	int64_t size[GRID_MOST_AXES];
	int64_t n_devices;
	const int64_t *ids;
	uint32_t n_ids;
};

static _Noreturn void bad(struct bc *r, const struct tc_op *op, const char *what)
{
	tc_fail(r->c, ERR_INVALID_ARGUMENT, op, "replica_groups: %s", what);
}

static void add_axis(struct bc *r, const struct tc_op *op, struct mesh *m, struct bc_text name,
		     int64_t size)
{
	if (m->n_axes == GRID_MOST_AXES || size < 1 || size > GRID_MOST_DEVICES / m->n_devices)
		bad(r, op, "a mesh of more than 32 axes or 65536 devices");
	m->name[m->n_axes] = name;
	m->size[m->n_axes++] = size;
	m->n_devices *= size;
}

static void read_mesh(struct bc *r, const struct tc_op *op, const struct bc_attr *a,
		      struct mesh *m)
{
	struct tc_attr list;
	const struct bc_attr *axes = a->items[0];

	if (axes->kind != BC_ARRAY)
		bad(r, op, "a mesh without axes");
	for (uint32_t i = 0; i < axes->n; i++) {
		if (axes->items[i]->kind != BC_AXIS || axes->items[i]->items[0]->kind != BC_STR)
			bad(r, op, "an axis of a mesh has no name");
		add_axis(r, op, m, axes->items[i]->items[0]->text, axes->items[i]->i);
	}
	if (a->n < 2)
		return;
	if (!bc_ints(r, a->items[1], &list))
		bad(r, op, "ids of devices that are no numbers");
	m->ids = list.ints;
	m->n_ids = list.n;
}

/* One of the program's, whose text is [x=4,y=2] and perhaps ids[3,2,1,0]. */
static void find_mesh(struct bc *r, const struct tc_op *op, struct bc_text name, struct mesh *m)
{
	const char *at = NULL, *end;
	int64_t *ids;

	for (uint32_t i = 0; i < r->n_meshes; i++)
		if (strlen(r->meshes[i].key) == name.n && !memcmp(r->meshes[i].key, name.p, name.n))
			at = r->meshes[i].text;
	if (!at || *at != '[')
		bad(r, op, "a mesh that the program does not have");
	while (*at != ']' && *(end = at + 1 + strcspn(at + 1, "=]")) == '=') {
		struct bc_text axis = { at + 1, (uint32_t)(end - at - 1) };
		char *next;
		int64_t size = strtoll(end + 1, &next, 10);

		add_axis(r, op, m, axis, size);
		at = next;
	}
	if (strncmp(at, "]ids[", 5))
		return;
	ids = bc_get(r, (size_t)m->n_devices, sizeof(*ids));
	for (at += 4; *at != ']' && *at && m->n_ids < m->n_devices;) {
		char *next;

		ids[m->n_ids++] = strtoll(at + 1, &next, 10);
		at = next;
	}
	m->ids = ids;
}

static struct grid_piece find_piece(struct bc *r, const struct tc_op *op, const struct mesh *m,
			       const struct bc_attr *ref)
{
	int64_t stride = m->n_devices, before = 1, size;
	struct grid_piece piece;
	struct bc_text name;

	if (ref->kind != BC_AXIS_REF || ref->items[0]->kind != BC_STR)
		bad(r, op, "an axis without a name");
	name = ref->items[0]->text;
	for (unsigned i = 0; i < m->n_axes; i++) {
		stride /= m->size[i];
		if (m->name[i].n != name.n || memcmp(m->name[i].p, name.p, name.n))
			continue;
		size = m->size[i];
		if (ref->n > 1) {
			before = ref->items[1]->i;
			size = ref->items[1]->size;
		}
		if ((ref->n > 1 && ref->items[1]->kind != BC_SUB_AXIS) ||
		    !tc_grid_part(m->size[i], stride, before, size, &piece))
			bad(r, op, "a part of an axis that does not divide it");
		return piece;
	}
	bad(r, op, "an axis that the mesh does not have");
}

static void give_axes(struct bc *r, struct tc_op *op, const struct bc_attr *a)
{
	const struct bc_attr *mesh = a->items[0], *axes = a->items[1];
	struct grid_piece piece[GRID_MOST_AXES];
	struct mesh m = { .n_devices = 1 };
	struct grid_rows rows;
	const char *wrong;

	if (mesh->kind == BC_STR)
		find_mesh(r, op, mesh->text, &m);
	else if (mesh->kind == BC_MESH)
		read_mesh(r, op, mesh, &m);
	else
		bad(r, op, "axes of no mesh");
	if (m.ids && m.n_ids != m.n_devices)
		bad(r, op, "a mesh with ids for other devices than it has");
	if (axes->kind != BC_ARRAY || axes->n > GRID_MOST_AXES)
		bad(r, op, "a list of axes that is none");
	for (uint32_t i = 0; i < axes->n; i++)
		piece[i] = find_piece(r, op, &m, axes->items[i]);
	wrong = tc_grid_rows(r->c, &(struct grid){ m.n_devices, m.ids }, piece, axes->n, &rows);
	if (wrong)
		bad(r, op, wrong);
	tc_set_ints(r->c, op, "replica_groups", rows.ids, rows.n);
	tc_set_int(r->c, op, "group_size", TC_ATTR_INT, rows.width);
}

void bc_give_groups(struct bc *r, struct tc_op *op, const struct bc_attr *a)
{
	const struct tc_type *t = a->kind == BC_TENSOR ? a->type : NULL;

	if (a->kind == BC_GROUPS) {
		give_axes(r, op, a);
		return;
	}
	if (!t || t->is_tuple || t->rank != 2 || t->dim[1] >> 31)
		bad(r, op, "neither a matrix of numbers nor axes of a mesh");
	bc_give(r, op, "replica_groups", 14, a, false);
	tc_set_int(r->c, op, "group_size", TC_ATTR_INT, t->dim[1]);
}
