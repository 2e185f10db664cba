/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_KERNELS_PATH_H
#define SIM_KERNELS_PATH_H
/*
 * Sources that are the same on each path of the host: Make compiles them once for each
 * (EACH_PATH), with its instruction sets and SIM_PATH=portable, avx2 or avx512.
 * PATH(name) is name_avx2 and so on. Private to hal/sim/kernels.
 */
#ifndef SIM_PATH
#define SIM_PATH portable	/* for a reader of the file alone */
#endif
#define PATH_JOIN(name, path) name##_##path
#define PATH_NAME(name, path) PATH_JOIN(name, path)
#define PATH(name) PATH_NAME(name, SIM_PATH)

#endif
