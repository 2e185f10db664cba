/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_CPU_H
#define SIM_CPU_H
/*
 * What the host's CPU offers, and the paths that kernels are built for. A path is a set of
 * instructions that whole tables of kernels are compiled with; the extensions below it
 * (bf16, VNNI, AMX) are chosen for single kernels, on the widest path only.
 *
 * Found once for each struct sim and constant from then on: any thread may read it.
 */
#include <stdbool.h>
#include <stddef.h>

#include "hal/base/err.h"

/* Kernels of wider paths are built for x86-64 only. Elsewhere their names are nobody's,
 * and nothing chooses them: cpu.c finds the portable path alone. */
#ifdef __x86_64__
#define SIM_X86
#else
#define SIM_X86 __attribute__((weak))
#endif

enum sim_path { SIM_PORTABLE, SIM_AVX2, SIM_AVX512 };

#define SIM_MAX_LANES 256u

struct sim_cpu {
	enum sim_path path;	/* the widest vector path allowed */
	bool avx512_bf16, avx512_vnni;	/* with SIM_AVX512 only, as AMX */
	bool bf16_slow;		/* avx512_bf16 has half the rate of FMAs of f32 */
	bool amx_bf16, amx_int8;	/* the process was let use tiles, too */
	unsigned lanes;		/* threads of a job; the creator of the sim sets it: 1 to
				 * SIM_MAX_LANES */
	size_t l1_bytes, l3_bytes;	/* caches of one core, or a usual size if unknown */
};

/* Asks the CPU and the operating system, and the latter for leave to use AMX's tiles. Sets
 * all but lanes; the path is the widest that both support. */
void sim_cpu_detect(struct sim_cpu *cpu);
/* Takes no path wider than the one named: "portable", "avx2" or "avx512".
 * FAILED_PRECONDITION if the CPU lacks it; *cpu is then as before. */
int sim_cpu_cap(struct sim_cpu *cpu, const char *path, struct err *err);

#endif
