/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESSERA_BRINGUP_PROGRESS_H
#define TESSERA_BRINGUP_PROGRESS_H
/* How far a run is, for who waits: a bar on a terminal, and a desktop's launcher. */
#include "tools/bringup/bringup.h"

struct launcher;

struct progress {
	FILE *to;		/* a terminal; NULL: there is none, and no bar */
	struct launcher *launcher;	/* NULL: no desktop listens */
	int64_t began;
	bool is_shown;		/* the bar's line is on the terminal */
};

/* With a bar if `to` is a terminal that can move its cursor. */
void progress_begin(struct progress *p, FILE *to);
void progress_show(struct progress *p, const struct bringup_progress *at);
/* Takes the bar's line off the terminal: something else is to be written. */
void progress_clear(struct progress *p);
/* A step failed: the launcher says that it is urgent. */
void progress_alarm(struct progress *p);
void progress_end(struct progress *p);

#endif
