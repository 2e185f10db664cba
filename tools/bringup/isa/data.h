/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BRINGUP_ISA_DATA_H
#define BRINGUP_ISA_DATA_H
/* Numbers to compute with. Private to tools/bringup/isa. */
#include <stddef.h>

#include "hal/base/elem.h"

enum isa_data {
	ISA_ANY,	/* of any size, and those that are special; f32's of f64, too */
	ISA_WHOLE,	/* small whole numbers: sums and products of few are exact */
	ISA_EVERYDAY,	/* between -4 and 4, not near 0 */
	ISA_UNITS,	/* 1 and -1, and i and -i: products of many are exact */
	ISA_COUNTS,	/* as ISA_ANY, of integers half small and not negative: to shift by */
};

/* n elements, other ones for another seed. All are written as the ISA keeps them. */
void isa_fill(enum elem e, void *to, size_t n, enum isa_data data, uint64_t seed);

/* One element. */
enum isa_number { ISA_NOTHING, ISA_ONE, ISA_ONES, ISA_SMALLEST, ISA_LARGEST };
void isa_number(enum elem e, void *to, enum isa_number number);

#endif
