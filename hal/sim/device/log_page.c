/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the device tells of itself: fault records, RAS counters, telemetry. All of
 * it follows from work done (DEVICE.md#telemetry), nothing is random.
 *
 * Utilisation of an engine is its busy time over elapsed time, smoothed:
 *	u += (busy / dt - u) * (1 - exp(-dt / tau))
 * with tau of 1 s for power and of 8 s for temperature, updated when the page is read. What was
 * computed while the clock was slower counts by as much less.
 */
#include <math.h>
#include <string.h>

#include "hal/sim/sim_internal.h"

#define TAU_POWER 1e9
#define TAU_HEAT 8e9

void sim_fault_record(struct sim_device *dev, struct hw_fault *f)
{
	f->number = ++dev->n_faults;
	f->time_ns = (uint64_t)(clock_ns() - dev->power_on);
	dev->faults[(f->number - 1) % SIM_FAULTS] = *f;
	dev->total.n_fault++;
	dev->ras.watchdog_fires += f->status == HW_ST_WATCHDOG;
	dev->ras.ecc_uncorrected += f->status == HW_ST_POISON;
}

/* An engine's busy time, what runs now included. */
static uint64_t busy_of(struct sim_device *dev, unsigned i, int64_t now)
{
	struct sim_engine *e = &dev->engines[i];
	uint64_t done = i ? dev->total.busy_dma_ns : dev->total.busy_compute_ns;

	return done + (e->queue ? sim_engine_ran(e, now) : 0);
}

static uint32_t clock_of(const struct sim_device *dev)
{
	return dev->is_throttled ? HW_CLOCK_THROTTLED_KHZ : HW_CLOCK_KHZ;
}

static void update(struct sim_device *dev, int64_t now)
{
	struct sim_load_average *a = &dev->average;
	double dt = (double)(now - a->time);

	if (dt <= 0)
		return;
	for (unsigned i = 0; i < 2; i++) {
		uint64_t busy = busy_of(dev, i, now);
		double u = (double)(busy - a->busy[i]) / dt;

		u = u > 1 ? 1 : u;
		if (!i)
			u *= (double)clock_of(dev) / HW_CLOCK_KHZ;
		a->fast[i] += (u - a->fast[i]) * -expm1(-dt / TAU_POWER);
		a->slow[i] += (u - a->slow[i]) * -expm1(-dt / TAU_HEAT);
		a->busy[i] = busy;
	}
	a->time = now;
}

static void read_telemetry(struct sim_device *dev, struct hw_telemetry *out)
{
	const struct sim_load_average *a = &dev->average;
	int64_t now = clock_ns();

	update(dev, now);
	*out = dev->total;
	out->time_ns = (uint64_t)(now - dev->power_on);
	out->busy_compute_ns = busy_of(dev, 0, now);
	out->busy_dma_ns = busy_of(dev, 1, now);
	out->power_mw = (uint32_t)(60000 + 240000 * a->fast[0] + 30000 * a->fast[1]);
	out->temperature_mc = (uint32_t)(dev->air_mc + 40000 * a->slow[0] + 5000 * a->slow[1]);
	if (out->temperature_mc >= HW_THROTTLE_ON_MC)
		dev->is_throttled = true;
	else if (out->temperature_mc <= HW_THROTTLE_OFF_MC)
		dev->is_throttled = false;
	out->clock_khz = clock_of(dev);
	out->throttle = dev->is_throttled ? HW_THROTTLE_HEAT : 0;
}

size_t sim_log_page(struct sim_device *dev, unsigned id, void *page)
{
	struct hw_fault *faults = page;
	uint64_t n = 0;

	switch (id) {
	case HW_LOG_FAULT:
		for (; n < SIM_FAULTS && n < dev->n_faults; n++)
			faults[n] = dev->faults[(dev->n_faults - 1 - n) % SIM_FAULTS];
		return n * sizeof(*faults);
	case HW_LOG_TELEMETRY:
		read_telemetry(dev, page);
		return sizeof(struct hw_telemetry);
	case HW_LOG_RAS:
		memcpy(page, &dev->ras, sizeof(dev->ras));
		return sizeof(dev->ras);
	default:
		return 0;
	}
}
