/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TC_FRONT_PROCESSOR_H
#define TC_FRONT_PROCESSOR_H
/*
 * JAX's compute_on, which reaches both readers as the frontend attribute PROCESSOR_KEY.
 */
#include <string.h>

#define PROCESSOR_KEY "_xla_compute_type"

/* Why an op that names this processor (n bytes) does not run; NULL: it does. "dense" is the
 * device itself, and names that nobody knows are XLA's to read. */
static inline const char *processor_refused(const char *name, size_t n)
{
	if (n == 4 && !memcmp(name, "host", n))
		return "it is to be computed on the host (compute_on \"device_host\"), which "
		       "programs of this device do not do yet: leave out compute_on, or call a "
		       "function of the host (jax.pure_callback)";
	if (n == 13 && !memcmp(name, "sparseoffload", n))
		return "it is to be computed on a sparse core (compute_on \"tpu_sparsecore\"), "
		       "which this device does not have: leave out compute_on";
	return NULL;
}

#endif
