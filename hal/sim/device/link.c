/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Windows as a driver asks for them (DEVICE.md#links), and what RPUT, RSIG, RWAIT and the inputs
 * of VEC do with those that a run has bound.
 */
#include "hal/sim/sim_internal.h"

/* ---- requests ---- */

int sim_window_open(struct sim_device *dev, unsigned ctx, const struct hw_window *in,
		    uint64_t *key)
{
	bool is_host = false;
	uint8_t *p;

	if (!dev->sim->fabric.id)
		return HW_ST_NOT_BUILT;
	if (in->va % HW_PAGE || in->bytes % HW_PAGE || !in->bytes)
		return HW_ST_BAD_FIELD;
	p = sim_va(dev, NULL, ctx, in->va, in->bytes, true, NULL, &is_host);
	if (!p || is_host)
		return HW_ST_BAD_ADDRESS;
	return sim_window_add(dev, &(struct sim_window){ .ctx = ctx, .va = in->va,
							 .bytes = in->bytes, .memory = p }, key);
}

int sim_peer_map(struct sim_device *dev, unsigned ctx, const struct hw_peer_map *in)
{
	struct sim_window *w;
	int status;

	if (!dev->sim->fabric.id)
		return HW_ST_NOT_BUILT;
	if (in->va % HW_PAGE || in->offset % HW_PAGE || in->bytes % HW_PAGE || !in->bytes ||
	    in->va + in->bytes < in->va || in->zero)
		return HW_ST_BAD_FIELD;
	w = in->chip < dev->sim->n_cards ?
		sim_window_get(&dev->sim->devices[in->chip], in->key) : NULL;
	if (!w)
		return HW_ST_NO_SUCH_ID;
	status = in->bytes > w->bytes || in->offset > w->bytes - in->bytes ? HW_ST_BAD_FIELD :
		 sim_ctx_add(dev, ctx, &(struct sim_map){ .va = in->va, .pa = in->offset,
							  .bytes = in->bytes, .window = w });
	if (status)
		sim_window_put(w);
	return status;
}

/* ---- what a run binds ---- */

/* Reads what is in HBM: this chip's own. */
static int bind_own(struct sim_device *dev, struct sim_engine *e, unsigned i,
		    const struct hw_binding *b, struct hw_fault *f)
{
	bool is_host = false;

	e->core.window[i] = NULL;
	e->core.base[i] = sim_va(dev, e, e->queue->info.ctx, b->va, b->bytes, false, NULL,
				 &is_host);
	if (!e->core.base[i] || is_host)
		return sim_fail(f, HW_ST_MAP, b->va, b->bytes, false);
	if (sim_is_poisoned(dev, e->core.base[i], b->bytes))
		return sim_fail(f, HW_ST_POISON, b->va, b->bytes, false);
	return 0;
}

int sim_bind_peer(struct sim_device *dev, struct sim_engine *e, unsigned i,
		  const struct hw_binding *b, bool write, struct hw_fault *f)
{
	struct sim_window *w;
	uint32_t why;
	uint8_t *p = sim_peer_va(dev, e->queue->info.ctx, b->va, b->bytes, &w);
	unsigned k = 0;

	if (!p && !write)
		return bind_own(dev, e, i, b, f);
	if (!p)
		return sim_fail(f, HW_ST_MAP, b->va, b->bytes, true);
	while (k < e->n_peers && e->peers[k] != w)
		k++;
	if (k == SIM_MAX_PEERS)
		return sim_fail(f, HW_ST_NO_MEMORY, b->va, b->bytes, write);
	e->peers[k] = w;
	e->n_peers += k == e->n_peers;
	e->core.base[i] = p;
	e->core.window[i] = w;
	why = sim_window_why(dev, w);
	if (why)
		return sim_fail(f, HW_ST_PEER, sim_broken_by(why), sim_broken_as(why), write);
	return 0;
}

/* ---- what a run does with them ---- */

static bool begin(void *link, struct sim_window *w)
{
	const struct sim_engine *e = link;

	return sim_window_begin(e->dev, w);
}

static void end(void *link, struct sim_window *w, uint64_t bytes, bool is_read)
{
	const struct sim_engine *e = link;

	sim_window_end(e->dev, w, bytes, is_read);
}

static bool is_poisoned(struct sim_window *w, const uint8_t *p, uint64_t bytes)
{
	return sim_is_poisoned(w->dev, p, bytes);
}

static bool raise(void *link, struct sim_window *w, uint64_t *sem, unsigned fn, uint64_t value)
{
	struct sim_engine *e = link;

	sim_send(e->dev);
	return sim_window_raise(e, w, sem, fn, value);
}

static void hear(void *link)
{
	const struct sim_engine *e = link;

	sim_forget(e->dev);
}

static struct sim_window *find_broken(void *link)
{
	const struct sim_engine *e = link;

	for (unsigned i = 0; i < e->n_peers; i++)
		if (sim_window_why(e->dev, e->peers[i]))
			return e->peers[i];
	return NULL;
}

static bool is_broken(void *link, const struct sim_window *w)
{
	const struct sim_engine *e = link;

	return sim_window_why(e->dev, w);
}

static void say_why(void *link, const struct sim_window *w, uint64_t *chip, uint64_t *status)
{
	const struct sim_engine *e = link;
	uint32_t why = sim_window_why(e->dev, w);

	/* Its link may have come up meanwhile. */
	if (!why)
		why = sim_break_why(w->dev, HW_ST_LINK);
	*chip = sim_broken_by(why);
	*status = sim_broken_as(why);
}

static struct sim_watch *watch_of(struct sim_window *w)
{
	return &w->dev->watch;
}

const struct sim_links sim_links = {
	.begin = begin, .end = end, .is_poisoned = is_poisoned, .raise = raise, .hear = hear,
	.broken = find_broken, .is_broken = is_broken, .why = say_why, .watch = watch_of,
};
