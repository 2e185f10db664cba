/* SPDX-License-Identifier: Apache-2.0 */
#include "hal/base/elem.h"

#include <string.h>

const struct elem_info elem_infos[ELEM_COUNT] = {
#define ELEM(name, number, text, bytes, bits, class) \
	[number] = { text, bytes, bits, ELEM_CLASS_##class },
#include "hal/base/elem.def"
#undef ELEM
};

enum elem elem_parse(const char *text, unsigned n)
{
	for (unsigned e = 1; e < ELEM_COUNT; e++)
		if (strlen(elem_infos[e].text) == n &&
		    !memcmp(elem_infos[e].text, text, n))
			return (enum elem)e;
	return ELEM_INVALID;
}

enum elem elem_unsigned(unsigned bits)
{
	for (unsigned e = 1; e < ELEM_COUNT; e++)
		if (elem_class(e) == ELEM_CLASS_UINT && elem_bits(e) == bits)
			return (enum elem)e;
	return ELEM_INVALID;
}
