/* SPDX-License-Identifier: Apache-2.0 */
/* Dying, disabling and resetting the function (DEVICE.md#resets, #fatal-state). */
#include <stdlib.h>
#include <string.h>

#include "hal/sim/sim_internal.h"

void sim_die(struct sim_device *dev, uint32_t why)
{
	if (dev->fatal)
		return;
	dev->fatal = why;
	dev->status = (dev->status & ~(uint32_t)HW_STATUS_READY) | HW_STATUS_FATAL;
	dev->ras.fatal++;
	sim_break(dev, 0, sim_break_why(dev, HW_ST_DEVICE_FATAL));
	for (unsigned i = 0; i < 2; i++)
		sim_engine_halt(&dev->engines[i], HW_ST_DEVICE_FATAL);
	for (unsigned i = 0; i < HW_MAX_VECTORS; i++)
		sim_irq(dev, i);
}

/* What disabling gives back: only a function reset ends the fatal state. */
static void set_defaults(struct sim_device *dev)
{
	dev->ctrl = 0;
	dev->status = dev->fatal ? HW_STATUS_FATAL : 0;
	dev->admin_tail = dev->admin_head = dev->admin_cq_tail = 0;
	dev->engines[0].hangs = dev->engines[1].hangs = false;
	dev->default_limit_ns = 0;
	dev->max_limit_ns = 0;
	dev->lies = (struct sim_lies){ 0 };
	dev->inline_ns = SIM_INLINE_NS;
}

void sim_power_on(struct sim_device *dev)
{
	dev->fatal = 0;
	set_defaults(dev);
	dev->asq = dev->acq = dev->scratch = 0;
	dev->aqsize = dev->bad_access = 0;
	dev->avector = HW_NO_VECTOR;
	dev->n_faults = 0;
	dev->drop_irqs = dev->bus_errors = 0;
	sim_poison_clear(dev);
	memset(&dev->total, 0, sizeof(dev->total));
	dev->average = (struct sim_load_average){ .time = clock_ns() };
	dev->air_mc = HW_AIR_MC;
	dev->is_throttled = false;
	for (unsigned i = 0; i < HW_MAX_VECTORS; i++) {
		dev->vectors[i].masked = true;
		dev->vectors[i].pending = false;
	}
}

void sim_clear(struct sim_device *dev)
{
	pthread_mutex_lock(&dev->lock);
	sim_queue_hear(dev);
	dev->status = (dev->status & ~(uint32_t)HW_STATUS_READY) | HW_STATUS_RESETTING;
	sim_break(dev, 0, sim_break_why(dev, HW_ST_RESET));
	for (unsigned i = 1; i < HW_MAX_QUEUES; i++) {
		struct sim_queue *q = &dev->queues[i];

		if (q->state == SIM_QUEUE_NONE)
			continue;
		sim_queue_clear(dev, q, false);
		sim_queue_part(dev, q);
		q->state = SIM_QUEUE_NONE;
	}
	sim_break_wait(dev);
	for (unsigned i = 0; i < dev->room_programs; i++)
		if (dev->programs[i])
			sim_program_free(dev->programs[i]);
	free(dev->programs);
	dev->programs = NULL;
	dev->room_programs = dev->program_hint = 0;
	dev->program_bytes = 0;
	for (unsigned i = 0; i < HW_MAX_CONTEXTS; i++)
		sim_ctx_free(&dev->contexts[i]);
	set_defaults(dev);
	pthread_mutex_unlock(&dev->lock);
}

void sim_flr(struct sim_device *dev)
{
	pthread_mutex_lock(&dev->admin_lock);
	sim_clear(dev);
	pthread_mutex_lock(&dev->lock);
	dev->ras.function_resets++;
	sim_power_on(dev);
	sim_links_clear(dev);
	pthread_mutex_unlock(&dev->lock);
	pthread_mutex_unlock(&dev->admin_lock);
}
