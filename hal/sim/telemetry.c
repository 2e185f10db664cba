/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the device tells of itself, derived from work done (DEVICE.md#telemetry):
 * utilisation u is busy compute time over time since reset, in parts of a thousand;
 * temperature = 35 C + 40 C * u, power = 60 W + 240 W * u, the clock is constant.
 */
#include "hal/sim/sim_internal.h"

void sim_telemetry(struct sim_device *dev, struct hw_telemetry *out)
{
	uint64_t now = (uint64_t)(clock_ns() - dev->power_on);
	uint64_t u = now ? dev->total.busy_compute_ns * 1000 / now : 0;

	if (u > 1000)
		u = 1000;
	*out = dev->total;
	out->time_ns = now;
	out->temperature_mc = (uint32_t)(35000 + 40 * u);
	out->power_mw = (uint32_t)(60000 + 240 * u);
	out->clock_khz = 1000000;
	out->throttle = 0;
}
