/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TC_FRONT_GROUPS_H
#define TC_FRONT_GROUPS_H
/*
 * Groups of devices as axes of a grid along which the members of a group differ: for both
 * readers. Everything is hostile. Memory is the compile's arena.
 */
#include "runtime/compiler/passes.h"

enum { GRID_MOST_DEVICES = 65536, GRID_MOST_AXES = 32 };

/* Places 0 to n - 1, n at most GRID_MOST_DEVICES; ids[n] (NULL: a place's own number). */
struct grid { int64_t n; const int64_t *ids; };
/* A part of an axis: so many places, so far from each other. */
struct grid_piece { int64_t size, stride; };
struct grid_rows { int64_t *ids; unsigned n; int64_t width; };

/* Of an axis of `size` places, `stride` apart, the middle dim of [pre, part, rest]. False: these
 * do not divide it. */
bool tc_grid_part(int64_t size, int64_t stride, int64_t pre, int64_t part,
		  struct grid_piece *out);
/* The devices that differ only along the pieces, the last of which is the minor one, for
 * each place where these begin. NULL, or what is wrong. */
const char *tc_grid_rows(struct tc_ctx *c, const struct grid *g, const struct grid_piece *piece,
			 unsigned n, struct grid_rows *out);

#endif
