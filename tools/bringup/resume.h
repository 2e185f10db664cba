/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BRINGUP_RESUME_H
#define BRINGUP_RESUME_H
/* What was found before a run was broken off. Private to tools/bringup. */
#include "tools/bringup/bringup.h"

/* Fills rows[bringup_n_steps], in the order of the steps, with those that passed before, and the
 * one that began and did not end, as a failure; `step` of others stays NULL. A file that is not
 * there is an empty one. INVALID_ARGUMENT: it is no report, or another device's; else why it
 * can't be read. */
int bringup_resume_read(const char *path, const char *bus_id, struct bringup_row *rows,
			struct err *err);
/* Writes the report in place of what there is, and has it on the disk. An errno's code. */
int bringup_resume_write(const char *path, const struct bringup_report *r, struct err *err);

#endif
