/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HAL_BASE_CPU_H
#define HAL_BASE_CPU_H
/*
 * What C has no word for and each kind of CPU spells in its own way. The one place in
 * the HAL that tells x86 from arm64; hal/sim has instruction sets of its own besides.
 */
#if defined(__x86_64__)
#include <immintrin.h>
#elif !defined(__aarch64__)
#error "x86-64 and arm64 are known; another CPU needs its words here"
#endif

/* In a loop that waits for another CPU or the device: lets the sibling thread run. */
static inline void cpu_relax(void)
{
#if defined(__x86_64__)
	_mm_pause();
#else
	__asm__ volatile("yield" ::: "memory");
#endif
}

/* Stores before it, write-combined ones too, reach the device before those after it. */
static inline void cpu_store_fence(void)
{
#if defined(__x86_64__)
	_mm_sfence();
#else
	__asm__ volatile("dmb oshst" ::: "memory");
#endif
}

/* Floating point of this thread as the device computes: to nearest, subnormal inputs and
 * results are zero, nothing traps. Gives what cpu_leave_arithmetic puts back. */
static inline unsigned long cpu_enter_arithmetic(void)
{
#if defined(__x86_64__)
	unsigned long saved = _mm_getcsr();

	/* Exceptions masked, FTZ (bit 15) and DAZ (bit 6). */
	_mm_setcsr(0x1f80u | 0x8040u);
	return saved;
#else
	unsigned long saved, flush = 1ul << 24;	/* FPCR.FZ: both */

	__asm__ volatile("mrs %0, fpcr" : "=r"(saved));
	__asm__ volatile("msr fpcr, %0" : : "r"(flush));
	return saved;
#endif
}

static inline void cpu_leave_arithmetic(unsigned long saved)
{
#if defined(__x86_64__)
	_mm_setcsr((unsigned)saved);
#else
	__asm__ volatile("msr fpcr, %0" : : "r"(saved));
#endif
}

#endif
