/* SPDX-License-Identifier: Apache-2.0 */
/* What the host's CPU offers the model. On x86-64 there are wider paths than the portable
 * one; on other CPUs that one is all there is (SIM_X86 in cpu.h). */
#include "hal/sim/kernels/cpu.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hal/base/files.h"

#ifdef __x86_64__
#include <asm/prctl.h>
#include <cpuid.h>
#include <sys/syscall.h>

#define ARCH_REQ_XCOMP_PERM 0x1023
#define XFEATURE_TILEDATA 18

/* Tile registers are large, so Linux hands them to a process that asks. */
static bool may_use_tiles(void)
{
	return !syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_TILEDATA);
}

/* Intel's CPUs since those with AVX512-FP16 begin a VDPBF16PS of 512 bits every other cycle and
 * two FMAs of f32 each cycle, so that these do twice as many products of the same bf16 numbers,
 * widened. Such CPUs leave bf16 to AMX, which not every machine lets a process use. */
static bool is_bf16_slow(void)
{
	unsigned a, b, c, d;

	return __builtin_cpu_is("intel") && __get_cpuid_count(7, 0, &a, &b, &c, &d) &&
	       (d >> 23 & 1);	/* AVX512-FP16 */
}

static void detect_avx512(struct sim_cpu *cpu)
{
	unsigned a, b, c, d;

	if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw") ||
	    !__builtin_cpu_supports("avx512dq") || !__builtin_cpu_supports("avx512vl") ||
	    !__builtin_cpu_supports("avx512cd"))
		return;
	cpu->path = SIM_AVX512;
	if (__get_cpuid_count(7, 0, &a, &b, &c, &d)) {
		bool tiles = (d >> 24 & 1) && may_use_tiles();

		cpu->avx512_vnni = c >> 11 & 1;
		cpu->amx_bf16 = tiles && (d >> 22 & 1);
		cpu->amx_int8 = tiles && (d >> 25 & 1);
	}
	if (__get_cpuid_count(7, 1, &a, &b, &c, &d))
		cpu->avx512_bf16 = a >> 5 & 1;
	cpu->bf16_slow = is_bf16_slow();
}

static void detect_vectors(struct sim_cpu *cpu)
{
	unsigned a, b, c, d;

	__builtin_cpu_init();
	/* Asks for what the operating system saves, too. F16C: CPUID.1:ECX.29. */
	if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") ||
	    !__builtin_cpu_supports("bmi2") || !__get_cpuid(1, &a, &b, &c, &d) ||
	    !(c >> 29 & 1))
		return;
	cpu->path = SIM_AVX2;
	detect_avx512(cpu);
}
#else
static void detect_vectors(struct sim_cpu *cpu)
{
	(void)cpu;
}
#endif

static size_t cache_bytes(int name, size_t otherwise)
{
	long n = sysconf(name);

	return n > 0 ? (size_t)n : otherwise;
}

/* Of what one core reaches: sysconf() adds up all such caches of the socket on AMD's CPUs. */
static size_t last_cache_bytes(void)
{
	static const char size[] = "/sys/devices/system/cpu/cpu0/cache/index3/size";
	char line[32], *end;
	unsigned long n;

	if (files_read_line(size, line, sizeof(line))) {
		n = strtoul(line, &end, 10);
		if (n && !strcmp(end, "K"))
			return n << 10;
	}
	return cache_bytes(_SC_LEVEL3_CACHE_SIZE, 8 << 20);
}

void sim_cpu_detect(struct sim_cpu *cpu)
{
	cpu->path = SIM_PORTABLE;
	cpu->l1_bytes = cache_bytes(_SC_LEVEL1_DCACHE_SIZE, 32 << 10);
	cpu->l3_bytes = last_cache_bytes();
	detect_vectors(cpu);
}

int sim_cpu_cap(struct sim_cpu *cpu, const char *name, struct err *err)
{
	enum sim_path wanted = !strcmp(name, "portable") ? SIM_PORTABLE :
			       !strcmp(name, "avx2") ? SIM_AVX2 : SIM_AVX512;

	if (wanted > cpu->path)
		return err_set(err, ERR_FAILED_PRECONDITION, "this CPU has no %s; leave "
			       "path= out to take the best that it has", name);
	if (wanted < SIM_AVX512)
		cpu->avx512_bf16 = cpu->avx512_vnni = cpu->amx_bf16 =
			cpu->amx_int8 = false;
	cpu->path = wanted;
	return 0;
}
