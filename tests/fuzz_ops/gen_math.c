/* SPDX-License-Identifier: Apache-2.0 */
/* Random bits. */
#include "tests/fuzz_ops/gen.h"

bool gen_rng_bits(struct gen *g)
{
	static const uint8_t elems[] = { ELEM_U32, ELEM_U32, ELEM_U64,
					 ELEM_U8,  ELEM_U16, ELEM_S32 };
	static const int64_t two[] = { 2 }, three[] = { 3 };
	static const struct fact any = { .kind = FACT_BITS };
	int64_t way = gen_one_in(g, 2) ? TC_RNG_THREE_FRY : TC_RNG_PHILOX, dim[3];
	const struct tc_type *types[2];
	struct fact facts[2] = { any, any };
	unsigned rank = gen_below(g, 4);
	struct tc_value *key;
	struct tc_op *op;

	for (unsigned d = 0; d < rank; d++) {
		dim[d] = gen_dim(g);
		if (!gen_is_small(g, d + 1, dim))
			return false;
	}
	types[0] = gen_type(g, ELEM_U64, 1,
			    way == TC_RNG_PHILOX && gen_one_in(g, 2) ? three : two);
	types[1] = gen_type(g, elems[gen_below(g, sizeof(elems))], rank, dim);
	key = gen_value(g, types[0], any);
	op = gen_op(g, TC_RNG_BIT_GENERATOR, 1, &key, 2, types, facts, 0);
	tc_set_int(g->c, op, "rng_algorithm", TC_ATTR_ENUM, way);
	return true;
}
