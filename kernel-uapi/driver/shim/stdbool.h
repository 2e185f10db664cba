/* SPDX-License-Identifier: GPL-2.0-only */
/* For the headers of the device's contract, which are C11 of userspace. */
#include <linux/types.h>
