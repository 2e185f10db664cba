/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What joins the chips of a model (DEVICE.md#links): the torus, and the windows that contexts
 * lend to other chips.
 *
 * One lock, the fabric's, is over all windows and counters of all chips; it is a leaf, taken
 * under any chip's `lock` or under none, and nothing is copied under it. So no chip ever
 * takes another one's lock: whoever has to look is kicked, which needs none.
 *
 * A window breaks once and for good. Who wants to read or write asks first and says when it is
 * done, so that whoever takes memory back can wait for what is under way.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "hal/sim/sim_internal.h"

/* ---- the torus ---- */

static uint64_t random_word(void)
{
	uint64_t word = 0;

	while (!word)
		if (getrandom(&word, sizeof(word), 0) != sizeof(word))
			word = 0;
	return word;
}

/* As square as n allows: 8 is 4 x 2. */
static void make_shape(unsigned n, uint16_t shape[3])
{
	unsigned y = 1;

	for (unsigned d = 2; d * d <= n; d++)
		if (n % d == 0)
			y = d;
	shape[0] = (uint16_t)(n / y);
	shape[1] = (uint16_t)y;
	shape[2] = 1;
}

static struct sim_device *chip_at(struct sim *sim, const uint16_t at[3])
{
	const uint16_t *shape = sim->fabric.shape;

	return &sim->devices[at[0] + shape[0] * (at[1] + shape[1] * at[2])];
}

static struct sim_port *port_of(struct sim_device *dev, unsigned dim, bool is_down)
{
	for (unsigned i = 0; i < dev->n_ports; i++)
		if (dev->ports[i].dim == dim && dev->ports[i].is_down == is_down)
			return &dev->ports[i];
	return NULL;
}

static void add_port(struct sim_device *dev, unsigned dim, bool is_down)
{
	const uint16_t *shape = dev->sim->fabric.shape;
	uint16_t at[3];

	memcpy(at, dev->coords, sizeof(at));
	at[dim] = (uint16_t)((at[dim] + (is_down ? shape[dim] - 1 : 1)) % shape[dim]);
	dev->ports[dev->n_ports++] = (struct sim_port){
		.peer = (uint16_t)chip_at(dev->sim, at)->index, .dim = (uint8_t)dim,
		.is_down = is_down };
}

void sim_fabric_init(struct sim *sim, unsigned n_devices)
{
	pthread_mutex_init(&sim->fabric.lock, NULL);
	pthread_cond_init(&sim->fabric.quiet, NULL);
	sim->fabric.id = n_devices > 1 ? random_word() : 0;
	make_shape(n_devices, sim->fabric.shape);
}

void sim_fabric_free(struct sim *sim)
{
	pthread_mutex_destroy(&sim->fabric.lock);
	pthread_cond_destroy(&sim->fabric.quiet);
}

void sim_links_init(struct sim_device *dev)
{
	const uint16_t *shape = dev->sim->fabric.shape;

	dev->coords[0] = (uint16_t)(dev->index % shape[0]);
	dev->coords[1] = (uint16_t)(dev->index / shape[0] % shape[1]);
	dev->coords[2] = (uint16_t)(dev->index / shape[0] / shape[1]);
	for (unsigned dim = 0; dim < 3; dim++) {
		if (shape[dim] > 1)
			add_port(dev, dim, false);
		/* Between two chips there is one link, not two. */
		if (shape[dim] > 2)
			add_port(dev, dim, true);
	}
}

/* The port by which a packet from a chip at `at` leaves for `to`: dimension by dimension, the
 * shorter way round. at moves on. NULL: it has arrived. */
static struct sim_port *next_hop(struct sim *sim, uint16_t at[3], const uint16_t to[3])
{
	struct sim_device *here = chip_at(sim, at);

	for (unsigned dim = 0; dim < 3; dim++) {
		unsigned n = sim->fabric.shape[dim];
		unsigned up = (unsigned)(to[dim] + n - at[dim]) % n;
		bool is_down = n > 2 && n - up < up;

		if (!up)
			continue;
		at[dim] = (uint16_t)((at[dim] + (is_down ? n - 1 : 1)) % n);
		return port_of(here, dim, is_down);
	}
	return NULL;
}

/* The neighbour's end of a link. */
static struct sim_port *other_end(struct sim *sim, const struct sim_port *p)
{
	return port_of(&sim->devices[p->peer], p->dim,
		       sim->fabric.shape[p->dim] > 2 && !p->is_down);
}

/* Whether a link is dead on the way of what dev sends. */
static bool is_cut_off(struct sim_device *dev, const struct sim_device *to)
{
	uint16_t at[3];
	struct sim_port *out;

	if (!atomic_load(&dev->sim->fabric.n_dead))
		return false;
	memcpy(at, dev->coords, sizeof(at));
	while ((out = next_hop(dev->sim, at, to->coords)))
		if (atomic_load(&out->is_dead))
			return true;
	return false;
}

/* Counts a packet on all links of its way; with the fabric's lock. */
static void count(struct sim_device *from, const struct sim_device *to, uint64_t bytes)
{
	struct sim *sim = from->sim;
	uint16_t at[3];
	struct sim_port *out;

	memcpy(at, from->coords, sizeof(at));
	while ((out = next_hop(sim, at, to->coords))) {
		out->tx_bytes += bytes;
		out->n_packets++;
		other_end(sim, out)->rx_bytes += bytes;
	}
}

static void count_error(struct sim_device *from, const struct sim_device *to)
{
	uint16_t at[3];
	struct sim_port *out;

	memcpy(at, from->coords, sizeof(at));
	out = next_hop(from->sim, at, to->coords);
	if (out)
		out->n_errors++;
}

unsigned sim_link_states(struct sim_device *dev, struct hw_link *out)
{
	struct sim_fabric *fabric = &dev->sim->fabric;

	pthread_mutex_lock(&fabric->lock);
	for (unsigned i = 0; i < dev->n_ports; i++) {
		const struct sim_port *p = &dev->ports[i];
		/* Read without its lock, as a link sees its other end. */
		uint32_t status = atomic_load_explicit(&dev->sim->devices[p->peer].status,
						       memory_order_relaxed);

		out[i] = (struct hw_link){
			.peer = p->peer, .dim = p->dim, .is_down = p->is_down,
			.is = atomic_load(&p->is_dead) ? HW_LINK_DOWN :
			      status & HW_STATUS_FATAL ? HW_LINK_PEER_FATAL :
			      status & HW_STATUS_READY ? HW_LINK_UP : HW_LINK_PEER_OFF,
			.tx_bytes = p->tx_bytes, .rx_bytes = p->rx_bytes,
			.n_packets = p->n_packets, .n_errors = p->n_errors };
	}
	pthread_mutex_unlock(&fabric->lock);
	return dev->n_ports;
}

/* Both ends; with the fabric's lock. */
static void set_dead(struct sim_device *dev, struct sim_port *p, bool is_dead)
{
	if (atomic_load(&p->is_dead) == is_dead)
		return;
	atomic_store(&p->is_dead, is_dead);
	atomic_store(&other_end(dev->sim, p)->is_dead, is_dead);
	if (is_dead)
		atomic_fetch_add(&dev->sim->fabric.n_dead, 1);
	else
		atomic_fetch_sub(&dev->sim->fabric.n_dead, 1);
}

/* Those who wait for another chip look at once. */
static void wake_all(struct sim_device *dev)
{
	for (unsigned i = 0; i < dev->sim->n_devices; i++)
		sim_kick(&dev->sim->devices[i].engines[0]);
}

void sim_links_clear(struct sim_device *dev)
{
	struct sim_fabric *fabric = &dev->sim->fabric;

	pthread_mutex_lock(&fabric->lock);
	for (unsigned i = 0; i < dev->n_ports; i++) {
		dev->ports[i].tx_bytes = dev->ports[i].rx_bytes = dev->ports[i].n_packets =
			dev->ports[i].n_errors = 0;
		set_dead(dev, &dev->ports[i], false);
	}
	pthread_mutex_unlock(&fabric->lock);
}

int sim_link_kill(struct sim_device *dev, uint64_t port)
{
	struct sim_fabric *fabric = &dev->sim->fabric;

	if (port >= dev->n_ports)
		return HW_ST_BAD_FIELD;
	pthread_mutex_lock(&fabric->lock);
	set_dead(dev, &dev->ports[port], true);
	pthread_mutex_unlock(&fabric->lock);
	wake_all(dev);
	return 0;
}

/* ---- windows ---- */

/* With the fabric's lock, as drop(). */
static struct sim_window *find(struct sim_device *dev, uint64_t key)
{
	for (struct sim_window *w = dev->windows; w; w = w->next)
		if (w->key == key && !w->broken)
			return w;
	return NULL;
}

int sim_window_add(struct sim_device *dev, const struct sim_window *like, uint64_t *key)
{
	struct sim_fabric *fabric = &dev->sim->fabric;
	struct sim_window *w = calloc(1, sizeof(*w));

	if (!w)
		return HW_ST_NO_ROOM;
	*w = *like;
	w->dev = dev;
	w->refs = 1;
	pthread_mutex_lock(&fabric->lock);
	do
		w->key = random_word();
	while (find(dev, w->key));
	w->next = dev->windows;
	dev->windows = w;
	*key = w->key;
	pthread_mutex_unlock(&fabric->lock);
	return 0;
}

struct sim_window *sim_window_get(struct sim_device *dev, uint64_t key)
{
	struct sim_fabric *fabric = &dev->sim->fabric;
	struct sim_window *w;

	pthread_mutex_lock(&fabric->lock);
	w = find(dev, key);
	if (w)
		w->refs++;
	pthread_mutex_unlock(&fabric->lock);
	return w;
}

/* With the fabric's lock. */
static void drop(struct sim_window *w)
{
	struct sim_window **at = &w->dev->windows;

	if (--w->refs)
		return;
	while (*at != w)
		at = &(*at)->next;
	*at = w->next;
	free(w);
}

void sim_window_put(struct sim_window *w)
{
	struct sim_fabric *fabric = &w->dev->sim->fabric;

	pthread_mutex_lock(&fabric->lock);
	drop(w);
	pthread_mutex_unlock(&fabric->lock);
}

/* Breaks one; with the fabric's lock. Its owner's reference goes, so w may. */
static void break_one(struct sim_window *w, uint32_t why)
{
	atomic_store(&w->broken, why);
	drop(w);
}

void sim_break(struct sim_device *dev, unsigned ctx, uint32_t why)
{
	struct sim_fabric *fabric = &dev->sim->fabric;
	struct sim_window *next;
	bool any = false;

	if (!fabric->id)
		return;
	pthread_mutex_lock(&fabric->lock);
	for (struct sim_window *w = dev->windows; w; w = next) {
		next = w->next;
		if (w->broken || (ctx && w->ctx != ctx))
			continue;
		break_one(w, why);
		any = true;
	}
	pthread_mutex_unlock(&fabric->lock);
	if (any)
		wake_all(dev);
}

static bool has_users(const struct sim_device *dev)
{
	for (const struct sim_window *w = dev->windows; w; w = w->next)
		if (w->broken && w->users)
			return true;
	return false;
}

void sim_break_wait(struct sim_device *dev)
{
	struct sim_fabric *fabric = &dev->sim->fabric;

	if (!fabric->id)
		return;
	pthread_mutex_unlock(&dev->lock);
	pthread_mutex_lock(&fabric->lock);
	while (has_users(dev))
		pthread_cond_wait(&fabric->quiet, &fabric->lock);
	pthread_mutex_unlock(&fabric->lock);
	pthread_mutex_lock(&dev->lock);
}

int sim_window_close(struct sim_device *dev, uint64_t key)
{
	struct sim_fabric *fabric = &dev->sim->fabric;
	struct sim_window *w;

	pthread_mutex_lock(&fabric->lock);
	w = find(dev, key);
	if (w)
		break_one(w, sim_break_why(dev, HW_ST_RESET));
	pthread_mutex_unlock(&fabric->lock);
	if (!w)
		return HW_ST_NO_SUCH_ID;
	wake_all(dev);
	sim_break_wait(dev);
	return 0;
}

bool sim_is_lent(struct sim_device *dev, unsigned ctx, uint64_t va, uint64_t bytes)
{
	struct sim_fabric *fabric = &dev->sim->fabric;
	bool is_lent = false;

	pthread_mutex_lock(&fabric->lock);
	for (const struct sim_window *w = dev->windows; w; w = w->next)
		is_lent |= !w->broken && w->ctx == ctx && w->va < va + bytes &&
			   va < w->va + w->bytes;
	pthread_mutex_unlock(&fabric->lock);
	return is_lent;
}

/* ---- reading and writing ---- */

uint32_t sim_window_why(struct sim_device *dev, const struct sim_window *w)
{
	uint32_t why = atomic_load(&w->broken);

	return why || !is_cut_off(dev, w->dev) ? why : sim_break_why(w->dev, HW_ST_LINK);
}

bool sim_window_begin(struct sim_device *dev, struct sim_window *w)
{
	struct sim_fabric *fabric = &dev->sim->fabric;
	bool is_whole;

	pthread_mutex_lock(&fabric->lock);
	is_whole = !sim_window_why(dev, w);
	if (is_whole)
		w->users++;
	else
		count_error(dev, w->dev);
	pthread_mutex_unlock(&fabric->lock);
	return is_whole;
}

void sim_window_end(struct sim_device *dev, struct sim_window *w, uint64_t bytes, bool is_read)
{
	struct sim_fabric *fabric = &dev->sim->fabric;

	pthread_mutex_lock(&fabric->lock);
	count(is_read ? w->dev : dev, is_read ? dev : w->dev, bytes);
	if (!--w->users && w->broken)
		pthread_cond_broadcast(&fabric->quiet);
	pthread_mutex_unlock(&fabric->lock);
}

static void apply(uint64_t *sem, unsigned fn, uint64_t value)
{
	uint64_t old;

	if (fn == ISA_ALU_ADD) {
		__atomic_fetch_add(sem, value, __ATOMIC_SEQ_CST);
		return;
	}
	old = __atomic_load_n(sem, __ATOMIC_RELAXED);
	while (old < value && !__atomic_compare_exchange_n(sem, &old, value, true,
							   __ATOMIC_SEQ_CST,
							   __ATOMIC_RELAXED))
		;
}

/* Kicks the engine if any of its queues waits for what a semaphore has come to. It said so
 * before it looked there a last time: if any of that is not seen here yet, it sees the new
 * value. */
static void kick_if_due(struct sim_engine *by, struct sim_engine *e, const uint64_t *sem,
			uint64_t value)
{
	for (uint64_t w = atomic_load(&e->waiting); w; w &= w - 1) {
		struct sim_queue *q = &e->dev->queues[__builtin_ctzll(w)];

		if (atomic_load(&q->sem) != sem || atomic_load(&q->until) > value)
			continue;
		sim_kick_by(by, e);
		return;
	}
}

bool sim_window_raise(struct sim_engine *by, struct sim_window *w, uint64_t *sem, unsigned fn,
		      uint64_t value)
{
	struct sim_device *dev = by->dev;
	struct sim_fabric *fabric = &dev->sim->fabric;
	bool is_whole;

	pthread_mutex_lock(&fabric->lock);
	is_whole = !sim_window_why(dev, w);
	if (is_whole) {
		apply(sem, fn, value);
		value = __atomic_load_n(sem, __ATOMIC_SEQ_CST);
		count(dev, w->dev, sizeof(*sem));
	} else {
		count_error(dev, w->dev);
	}
	pthread_mutex_unlock(&fabric->lock);
	for (unsigned i = 0; is_whole && i < 2; i++)
		kick_if_due(by, &w->dev->engines[i], sem, value);
	return is_whole;
}
