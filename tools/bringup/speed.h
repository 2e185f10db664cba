/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BRINGUP_SPEED_H
#define BRINGUP_SPEED_H
/* Expected values. Private to tools/bringup. */
#include "tools/bringup/context.h"

/* Checks a file of expected values, NULL: none. INVALID_ARGUMENT names the line. */
int bringup_check_expected(const char *path, struct err *err);

#endif
