/* SPDX-License-Identifier: Apache-2.0 */
/* Groups of devices that differ along some axes of a grid (groups.h). */
#include "runtime/compiler/front/groups.h"

bool tc_grid_part(int64_t size, int64_t stride, int64_t pre, int64_t part,
		  struct grid_piece *out)
{
	if (pre < 1 || part < 1 || pre > size || part > size / pre || size % (pre * part))
		return false;
	*out = (struct grid_piece){ part, stride * (size / (pre * part)) };
	return true;
}

const char *tc_grid_rows(struct tc_ctx *c, const struct grid *g, const struct grid_piece *piece,
			 unsigned n, struct grid_rows *out)
{
	static const char twice[] = "an axis is named twice";
	int64_t *list = arena_array(&c->arena, (size_t)g->n, sizeof(*list)), width = 1, at = 0;

	for (unsigned i = 0; i < n; i++) {
		if (piece[i].size > g->n / width)
			return twice;
		width *= piece[i].size;
	}
	for (int64_t first = 0; first < g->n; first++) {
		bool begins = true;

		for (unsigned i = 0; i < n; i++)
			begins &= first / piece[i].stride % piece[i].size == 0;
		for (int64_t k = 0; begins && k < width; k++) {
			int64_t rest = k, place = first;

			for (unsigned i = n; i-- > 0; rest /= piece[i].size)
				place += rest % piece[i].size * piece[i].stride;
			if (place >= g->n || at == g->n)
				return twice;
			list[at++] = g->ids ? g->ids[place] : place;
		}
	}
	*out = (struct grid_rows){ list, (unsigned)at, width };
	return NULL;
}
