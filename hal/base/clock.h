/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H
#include <stdint.h>
#include <time.h>

#define CLOCK_FOREVER INT64_MAX	/* a deadline that never comes */

#ifdef CLOCK_MONOTONIC	/* as POSIX has it, and C by itself (-std=c11) does not */
/* Nanoseconds of CLOCK_MONOTONIC. Deadlines in this tree are such times. */
static inline int64_t clock_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* The deadline `ns` from now; FOREVER stays FOREVER. */
static inline int64_t clock_after(int64_t ns)
{
	int64_t now = clock_ns();

	return ns > CLOCK_FOREVER - now ? CLOCK_FOREVER : now + ns;
}

/* A time, or a length of it that is not negative, as the system's calls take it. */
static inline struct timespec clock_spec(int64_t ns)
{
	struct timespec t = { .tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000 };

	return t;
}

/* Nanoseconds of CLOCK_REALTIME, since 1970: for dates, never for deadlines. */
static inline int64_t clock_date_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}
#endif

#endif
