/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Signals: to an engine's thread (there may be work), to a run (end), to the host (an
 * interrupt); and what comes before and after those that tell of stores.
 */
#include <limits.h>
#include <unistd.h>

#include "hal/sim/sim_internal.h"

void sim_kick(struct sim_engine *e)
{
	atomic_fetch_add(&e->kick, 1);
	if (atomic_load(&e->is_asleep))
		sim_futex_wake(&e->kick, INT_MAX);
}

void sim_engine_halt(struct sim_engine *e, int status)
{
	if (!e->queue || e->stop_status)
		return;
	e->stop_status = status;
	atomic_store(&e->stop, true);
	sim_turn_wake(&e->turn);
	pthread_cond_broadcast(&e->dev->idle);	/* one that hangs */
}

void sim_irq(struct sim_device *dev, uint32_t vector)
{
	struct sim_vector *v;
	uint64_t one = 1;

	if (vector >= HW_MAX_VECTORS)
		return;
	v = &dev->vectors[vector];
	if (dev->drop_irqs) {
		dev->drop_irqs--;
		return;
	}
	if (v->masked) {
		v->pending = true;
		return;
	}
	/* A full counter means that the host has not looked yet: nothing is lost.
	 * Any other failure is the host's, as with a bad address in the table. */
	if (v->fd >= 0 && write(v->fd, &one, sizeof(one)) < 0)
		return;
}

void sim_set_far(struct sim_device *dev, struct sim_far *far)
{
	atomic_store(&dev->far, far);
}

static struct sim_far *far_of(struct sim_device *dev)
{
	return atomic_load_explicit(&dev->far, memory_order_acquire);
}

/* Memory that something was stored to and not sent; NULL: none. */
static struct sim_far *unsent(struct sim_device *dev)
{
	struct sim_far *far = far_of(dev);

	return far && atomic_load(&far->is_unsent) ? far : NULL;
}

/* Memory of which something is kept that may be old; NULL: none. */
static struct sim_far *kept(struct sim_device *dev)
{
	struct sim_far *far = far_of(dev);

	return far && atomic_load(&far->is_kept) ? far : NULL;
}

void sim_send(struct sim_device *dev)
{
	struct sim_far *far = unsent(dev);

	if (far)
		far->send(far);
}

void sim_forget(struct sim_device *dev)
{
	struct sim_far *far = kept(dev);

	if (far)
		far->forget(far);
}

unsigned sim_far_failures(struct sim_device *dev)
{
	struct sim_far *far = far_of(dev);

	return far ? atomic_load(&far->n_failed) : 0;
}

bool sim_is_far(struct sim_device *dev, const void *p)
{
	struct sim_far *far = far_of(dev);

	return far && far->holds(far, p);
}

bool sim_far_is_bad(struct sim_device *dev)
{
	struct sim_far *far = far_of(dev);

	return far && atomic_load(&far->n_failed) != atomic_load(&far->n_forgotten);
}

void sim_send_first(struct sim_device *dev)
{
	if (!unsent(dev))
		return;
	pthread_mutex_unlock(&dev->lock);
	sim_send(dev);
	pthread_mutex_lock(&dev->lock);
}

void sim_forget_first(struct sim_device *dev)
{
	if (!kept(dev))
		return;
	pthread_mutex_unlock(&dev->lock);
	sim_forget(dev);
	pthread_mutex_lock(&dev->lock);
}
