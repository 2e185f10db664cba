/* SPDX-License-Identifier: Apache-2.0 */
/* A device's sessions and resets: what one client did is gone before the next. */
#include <string.h>

#include "hal/hw/desc.h"
#include "tools/tessera-sim/server.h"

int device_init(struct device *d, struct sim_device *sim, unsigned index, struct err *err)
{
	memset(d, 0, sizeof(*d));
	d->sim = sim;
	d->index = index;
	sim_hbm(sim, &d->hbm_bytes);
	sim_keep_apart(sim);
	pthread_mutex_init(&d->lock, NULL);
	pthread_mutex_init(&d->who_lock, NULL);
	pthread_mutex_init(&d->irqs.lock, NULL);
	for (unsigned i = 0; i < HW_MAX_VECTORS; i++)
		d->irqs.fd[i] = d->irqs.relay[i] = -1;
	return irq_open(d, err);
}

void device_hush(struct device *d, bool on)
{
	/* What the model wrote until it stopped is not sent afterwards: its memory may be another's
	 * by then. */
	if (!on && d->remotes)
		remote_sync(d->remotes);
	link_hush(d->link, on);
}

void device_reset(struct device *d)
{
	device_hush(d, true);
	/* Bells that rang before the reset must not ring after it. */
	bells_hold(&d->bells, true);
	sim_flr(d->sim);
	config_reset(&d->config, d->hbm_bytes);
	dma_turn(d, false);
	irq_unmask(d);
	device_hush(d, false);
	bells_go_on(&d->bells);
}

void device_reset_by_force(struct device *d)
{
	/* A session has bells. */
	if (d->has_client)
		device_reset(d);
	else
		sim_flr(d->sim);
	irq_alarm(d);
}

int device_inject(struct device *d, unsigned what, uint64_t value, struct err *err)
{
	bool stops = what == HW_INJECT_FATAL;
	int code;

	if (stops)
		device_hush(d, true);
	code = sim_inject(d->sim, what, value, err);
	if (stops)
		device_hush(d, false);
	return code;
}

int device_begin(struct device *d, struct err *err)
{
	d->has_version = false;
	d->n_unreachable = 0;
	d->max_fds = 1;
	d->max_xfer = VFU_MAX_XFER;
	config_reset(&d->config, d->hbm_bytes);
	if (d->is_stale) {
		int code = sim_hbm_renew(d->sim, err);

		if (code)
			return code;
		d->is_stale = false;
	}
	return bells_open(&d->bells, d->sim, err);
}

void device_end(struct device *d)
{
	struct err err;

	bells_close(&d->bells);
	sim_flr(d->sim);
	dma_clear(d);
	remotes_stop(d);
	irq_clear(d);
	irq_end_relay(d);
	d->dma.is_on = false;
	/* The next client is not to blame for this one's memory. */
	atomic_store(&d->is_broken, false);
	d->is_stale = sim_hbm_renew(d->sim, &err) != 0;
	if (d->is_stale)
		say("%u: HBM of the last client is still there: %s", d->index, err.msg);
}
