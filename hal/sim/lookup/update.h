/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_UPDATE_H
#define SIM_UPDATE_H
/*
 * Short windows of a table that updates change where their indices lead: what most scatters come
 * to. Private to hal/sim.
 */
#include <stdint.h>

#include "hal/hw/isa.h"
#include "hal/sim/kernels/cpu.h"

/* A line of points: where it begins, and how far it is from one to the next. */
struct sim_update_line {
	const uint8_t *idx;
	uint8_t *to[ISA_MAX_SORT], *from[ISA_MAX_SORT];
	int64_t place;		/* of the first, before its indices: to[0] is there */
	unsigned count;		/* elements of a window that is one run */
	int64_t idx_step, to_step[ISA_MAX_SORT], from_step[ISA_MAX_SORT];
};
typedef void sim_update_fn(const struct sim_update_line *l, int64_t n, struct isa_index comp);

/* A point of a line, and where its indices lead. */
struct sim_hit { int64_t i, at; };
typedef void sim_update_hits_fn(const struct sim_update_line *l, const struct sim_hit *hits,
				unsigned n);

/* What short windows become, of elements `old` and `new`; I is passed on. */
#define SIM_UPDATES(DO, I) \
	DO(put_1, uint8_t, I, new) DO(put_2, uint16_t, I, new) DO(put_4, uint32_t, I, new) \
	DO(put_8, uint64_t, I, new) DO(put_16, struct pair, I, new) \
	DO(add_f32, float, I, old + new) DO(add_f64, double, I, old + new) \
	DO(add_32, uint32_t, I, old + new) DO(add_64, uint64_t, I, old + new) \
	DO(mul_f32, float, I, old * new) \
	DO(max_f32, float, I, EXTREME_OF(max, old, new)) \
	DO(min_f32, float, I, EXTREME_OF(min, old, new)) \
	DO(add_bf16, uint16_t, I, bf16_encoded(bits_of(WIDE_BF16(old) + WIDE_BF16(new)))) \
	DO(mul_bf16, uint16_t, I, bf16_encoded(bits_of(WIDE_BF16(old) * WIDE_BF16(new)))) \
	DO(max_bf16, uint16_t, I, bf16_encoded(bits_of(EXTREME_OF(max, WIDE_BF16(old), \
								  WIDE_BF16(new))))) \
	DO(min_bf16, uint16_t, I, bf16_encoded(bits_of(EXTREME_OF(min, WIDE_BF16(old), \
								  WIDE_BF16(new))))) \
	DO(max_s32, int32_t, I, old > new ? old : new) \
	DO(min_s32, int32_t, I, old < new ? old : new)

#define SIM_UPDATE(name, T, I, result) SIM_UPDATE_##name,
enum sim_update { SIM_UPDATES(SIM_UPDATE, ) SIM_N_UPDATES };
#undef SIM_UPDATE

/* Windows are runs of elements side by side on both sides, which do not meet. */
struct sim_update_fns {
	/* Of n points of a line, by an index each of s32, s64 or u32; those outside stay out. */
	sim_update_fn *by_index[3][SIM_N_UPDATES];
	/* Of points whose places are known. */
	sim_update_hits_fn *by_hits[SIM_N_UPDATES];
};
extern const struct sim_update_fns sim_update_portable;
extern SIM_X86 const struct sim_update_fns sim_update_avx2, sim_update_avx512;

#endif
