/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BRINGUP_PAGE_H
#define BRINGUP_PAGE_H
/* Pictures for the page of HTML, as SVG in it. Private to tools/bringup. */
#include "tools/bringup/bringup.h"

/* A plot for each series of points that steps took, under a heading; nothing: there are none. */
void bringup_put_curves(const struct bringup_report *r, FILE *to);
/* A map for each step that tested HBM, likewise. */
void bringup_put_maps(const struct bringup_report *r, FILE *to);

#endif
