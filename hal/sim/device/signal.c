/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Signals: to an engine (there may be work, and a thread is to do it), to a run (end), to the
 * host (an interrupt); and what comes before and after those that tell of stores.
 */
#include <unistd.h>

#include "hal/sim/sim_internal.h"

void sim_rouse(struct sim *sim)
{
	struct sim_crew *crew = &sim->crew;
	unsigned due = (unsigned)(__builtin_popcountll(atomic_load(&crew->ready[0])) +
				  __builtin_popcountll(atomic_load(&crew->ready[1])));
	unsigned n = atomic_load(&crew->n_looking);

	do
		if (n >= due || n >= crew->most)
			return;
	while (!atomic_compare_exchange_weak(&crew->n_looking, &n, n + 1));
	atomic_fetch_add(&crew->n_woken, 1);
	sim_futex_wake_elsewhere(&crew->n_woken);
}

/* False: it was ready. */
static bool make_ready(struct sim_engine *e)
{
	struct sim *sim = e->dev->sim;
	uint64_t bit = 1ull << (e->dev - sim->devices);

	atomic_fetch_add(&e->kick, 1);
	if (atomic_fetch_or(&sim->crew.ready[e->cls == HW_CLASS_DMA], bit) & bit)
		return false;
	atomic_fetch_add(&sim->crew.n_kicks, 1);
	return true;
}

void sim_kick(struct sim_engine *e)
{
	if (make_ready(e))
		sim_rouse(e->dev->sim);
}

void sim_kick_by(struct sim_engine *by, struct sim_engine *e)
{
	if (!by->is_lent || by->dev->is_apart || e->dev->is_apart)
		sim_kick(e);
	else if (make_ready(e))
		by->made_ready[e->cls == HW_CLASS_DMA] |= 1ull << (e->dev - e->dev->sim->devices);
}

bool sim_take_kick(struct sim *sim, unsigned cls, unsigned i)
{
	return atomic_fetch_and(&sim->crew.ready[cls], ~(1ull << i)) >> i & 1;
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

/* A full counter means that the host has not looked yet: nothing is lost. Any other failure is the
 * host's, as with a bad address in the table. */
static void add_one(int fd)
{
	uint64_t one = 1;

	if (write(fd, &one, sizeof(one)) < 0)
		return;
}

void sim_irq_by(struct sim_device *dev, void (*add)(int fd))
{
	dev->add = add;
}

void sim_irq(struct sim_device *dev, uint32_t vector)
{
	struct sim_vector *v;

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
	if (v->fd >= 0)
		(dev->add ? dev->add : add_one)(v->fd);
}

void sim_waits_for_host(struct sim_device *dev)
{
	for (unsigned i = 0; i < 2; i++)
		sim_turn_lend(&dev->engines[i].turn);
}

void sim_keep_apart(struct sim_device *dev)
{
	dev->is_apart = true;
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
