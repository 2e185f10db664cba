/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_BRINGUP_TEST_H
#define TESTS_BRINGUP_TEST_H
/* One step at a time, on the model in the process, which a test may spoil before. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "hal/hal_internal.h"
#include "tools/bringup/context.h"

struct t_step {
	struct bringup b;
	struct bringup_options options;
	struct bringup_row row;
};

static inline void t_begin(struct t_step *t, const char *devices)
{
	struct hal_options o = { .devices = devices };

	memset(t, 0, sizeof(*t));
	t->options.devices = devices;
	t->options.level = 2;
	t->b.options = &t->options;
	t->b.row = &t->row;
	if (hal_create(&o, &t->b.hal, &t->b.err))
		fail_msg("%s", t->b.err.msg);
}

static inline void t_end(struct t_step *t)
{
	bringup_close(&t->b);
	hal_destroy(t->b.hal);
}

static inline enum bringup_result t_step(struct t_step *t,
					 enum bringup_result (*step)(struct bringup *b))
{
	enum bringup_result r;

	memset(&t->row, 0, sizeof(t->row));
	r = step(&t->b);
	bringup_give_back(&t->b);
	return r;
}

#endif
