/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
#ifndef BASE_ELEM_H
#define BASE_ELEM_H
/* Element types, from elem.def: names, sizes, classes. */
#include <stdbool.h>
#include <stdint.h>

enum elem {
#define ELEM(name, number, text, bytes, bits, class) ELEM_##name = number,
#include "hal/base/elem.def"
#undef ELEM
	ELEM_COUNT
};

enum elem_class {
	ELEM_CLASS_NONE, ELEM_CLASS_PRED, ELEM_CLASS_SINT, ELEM_CLASS_UINT,
	ELEM_CLASS_FLOAT, ELEM_CLASS_COMPLEX,
};

struct elem_info {
	const char *text;	/* MLIR's spelling */
	uint8_t bytes;		/* in memory */
	uint8_t bits;		/* of value */
	uint8_t cls;		/* enum elem_class */
};

extern const struct elem_info elem_infos[ELEM_COUNT];

static inline bool elem_valid(unsigned e)
{
	return e > 0 && e < ELEM_COUNT;
}
/* The following take a valid element type. */
static inline unsigned elem_bytes(unsigned e) { return elem_infos[e].bytes; }
static inline unsigned elem_bits(unsigned e) { return elem_infos[e].bits; }
static inline unsigned elem_class(unsigned e) { return elem_infos[e].cls; }
static inline const char *elem_text(unsigned e)
{
	return e < ELEM_COUNT ? elem_infos[e].text : "invalid";
}
/* Types the vector unit computes on; the others it only loads, stores,
 * converts and selects ("storage types"). */
static inline bool elem_computes(unsigned e)
{
	return (e >= ELEM_PRED && e <= ELEM_U64) || e == ELEM_F32 ||
	       e == ELEM_F64 || e == ELEM_C64 || e == ELEM_C128;
}
/* The type whose spelling is `text` of n bytes, or ELEM_INVALID. */
enum elem elem_parse(const char *text, unsigned n);
/* The unsigned integers of so many bits, or ELEM_INVALID. */
enum elem elem_unsigned(unsigned bits);

#endif
