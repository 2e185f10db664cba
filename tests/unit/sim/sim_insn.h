/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_SIM_INSN_H
#define TESTS_SIM_INSN_H
/*
 * Runs one instruction of any family on the model's core, over memories that are
 * exactly as large as the program may touch, on each code path.
 */
#include "tests/unit/sim/sim_vec.h"

/* The parts of an instruction, laid out one after another. */
struct in_code {
	_Alignas(8) uint8_t bytes[64 << 10];
	size_t n;
};

static inline void in_put(struct in_code *c, const void *part, size_t n)
{
	assert_true(c->n + n <= sizeof(c->bytes));
	memcpy(c->bytes + c->n, part, n);
	c->n += n;
}

/* Loads and runs what is in c: 0 or a status. */
static inline int in_run(struct vt *t, struct in_code *c, const struct vt_mem *mem,
			 unsigned n_mem, struct sim_run *run)
{
	uint32_t bytes = (uint32_t)c->n;

	memcpy(c->bytes + offsetof(struct isa_insn, bytes), &bytes, sizeof(bytes));
	return vt_run_code(t, c->bytes, c->n, mem, n_mem, run);
}

/* Calls fn for each path that this CPU has. */
static inline void in_each_path(void (*fn)(struct vt *t, const char *path))
{
	static const char *const paths[] = { "portable", "avx2", "avx512" };

	for (unsigned i = 0; i < 3; i++) {
		struct vt t;

		if (!vt_open(&t, paths[i], 2)) {
			print_message("# skipped: this CPU has no %s\n", paths[i]);
			continue;
		}
		fn(&t, paths[i]);
		vt_close(&t);
	}
}

static inline int64_t in_range(uint64_t *seed, int64_t lo, int64_t hi)
{
	return lo + (int64_t)(vt_random(seed) % (uint64_t)(hi - lo + 1));
}

/*
 * Gives an operand strides over dims that do not overlap: the dims in a random order,
 * gaps now and then, some strides negative. Returns the bytes it spans; op->offset
 * is where its first element lies. `bytes` is the element's size.
 */
static inline uint64_t in_scatter_strides(uint64_t *seed, struct isa_operand *op,
					  unsigned rank, const int64_t *dim,
					  unsigned bytes, bool plain)
{
	unsigned order[ISA_MAX_RANK];
	int64_t step = bytes;

	for (unsigned d = 0; d < rank; d++)
		order[d] = rank - 1 - d;
	for (unsigned d = 0; d < rank && !plain; d++) {
		unsigned e = d + vt_random(seed) % (rank - d), o = order[d];

		order[d] = order[e];
		order[e] = o;
	}
	op->offset = 0;
	for (unsigned i = 0; i < rank; i++) {
		unsigned d = order[i];

		if (!plain && vt_random(seed) % 6 == 0)
			step += bytes * (1 + vt_random(seed) % 3);
		op->stride[d] = step;
		if (!plain && vt_random(seed) % 8 == 0) {
			op->stride[d] = -step;
			op->offset += step * (dim[d] - 1);
		}
		step *= dim[d] ? dim[d] : 1;
	}
	return (uint64_t)step;
}

/* Calls body(at) for all points, last dim fastest. */
#define IN_EACH_POINT(rank, dim, at) \
	for (int64_t at[ISA_MAX_RANK] = { 0 }, in_go = 1; in_go; \
	     in_go = in_next((rank), (dim), at))
static inline int64_t in_next(unsigned rank, const int64_t *dim, int64_t *at)
{
	for (unsigned d = rank; d-- > 0; at[d] = 0)
		if (++at[d] < dim[d])
			return 1;
	return 0;
}

static inline int64_t in_at(const struct isa_operand *op, unsigned rank, const int64_t *at)
{
	int64_t p = op->offset;

	for (unsigned d = 0; d < rank; d++)
		p += at[d] * op->stride[d];
	return p;
}

#endif
