/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Devices that are linked: where one sees another's HBM (DEVICE.md#links).
 *
 * Each device lends all of its HBM, by one window, to those that this process has; what they
 * write there is the programs' business, as it is with a device's own. A window breaks when
 * work that others rely on fails. Then it is lent anew, and mapped at another address: a
 * launch that was made with the old one fails whenever it begins, instead of waiting for
 * somebody who waits no more. An old address is used again when all that may name it is done.
 *
 * Through the kernel driver there are no windows: a block of HBM is mapped for the other card,
 * which reaches it over PCI, for copies alone. There the place of device n begins at n << 48.
 *
 * hal.links is over all of it, and is held while the devices answer.
 */
#include <stdio.h>
#include <string.h>

#include "hal/hal_internal.h"
#include "hal/hw/regs.h"

#define SLOT_BYTES (1ull << 45)
#define HEAR_NS 1000000000ll	/* a window that broke is heard of sooner */
#define TRIES 4		/* another one may break meanwhile */

void hal_device_position(const struct hal_device *dev, struct hal_position *out)
{
	const struct hw_identify *id = &dev->identity;

	*out = (struct hal_position){ .fabric = id->fabric, .chip = id->chip,
				      .n_chips = id->n_chips };
	for (unsigned d = 0; d < 3; d++) {
		out->coords[d] = id->coords[d];
		out->shape[d] = id->shape[d];
	}
}

static int refuse(const struct hal_device *dev, const struct hal_device *peer, struct err *err)
{
	const char *a = dev->entry->info.bus_id, *b = peer->entry->info.bus_id;

	if (dev->hal != peer->hal)
		return err_set(err, ERR_UNIMPLEMENTED, "%s and %s were opened by two HALs: open "
			       "both by one", a, b);
	if (!dev->t->ops->link || !peer->t->ops->link)
		return err_set(err, ERR_UNIMPLEMENTED, "%s and %s: through the kernel driver a "
			       "device's memory is another's for copies alone; for programs over "
			       "several devices own them by VFIO "
			       "(TESSERA_DEVICES=vfio:ADDRESS,ADDRESS)", a, b);
	if (!dev->identity.fabric || dev->identity.fabric != peer->identity.fabric)
		return err_set(err, ERR_UNIMPLEMENTED, "%s and %s are not linked: links join the "
			       "chips of one machine, or of one tessera-sim (--devices N)", a, b);
	if (dev->identity.chip >= HAL_CHIPS || peer->identity.chip >= HAL_CHIPS)
		return err_set(err, ERR_UNIMPLEMENTED, "%s and %s: chips from number %u on", a, b,
			       HAL_CHIPS);
	return 0;
}

bool hal_is_linked(const struct hal_device *dev, const struct hal_device *peer)
{
	return !refuse(dev, peer, NULL);
}

/* By the driver's sharing of memory, if it finds a way. */
static bool is_shared(const struct hal_device *dev, const struct hal_device *peer)
{
	return dev->hal == peer->hal && dev->t->ops->hbm_show &&
	       dev->t->ops == peer->t->ops;
}

bool hal_may_copy(const struct hal_device *dev, const struct hal_device *peer)
{
	return hal_is_linked(dev, peer) || is_shared(dev, peer);
}

/* Under hal.links. */
static int share(struct hal_device *dev, const struct hal_mem *mem, uint64_t *base,
		 struct err *err)
{
	struct hal_device *peer = mem->dev;
	int code;

	*base = HAL_PEER_VA + ((uint64_t)peer->index << 48);
	/* Its blocks of HBM come and go. */
	pthread_mutex_lock(&peer->lock);
	code = peer->t->ops->hbm_show(peer->t, mem->va - HAL_HBM_VA, mem->bytes, dev->t, *base,
				      err);
	pthread_mutex_unlock(&peer->lock);
	return code;
}

static int ask(struct hal_device *dev, struct hw_sqe sqe, const void *in, size_t bytes,
	       uint64_t *value, struct err *err)
{
	return dev->t->ops->link(dev->t, sqe, in, bytes, value, err);
}

static int close_window(struct hal_device *dev, struct err *err)
{
	return ask(dev, (struct hw_sqe){ .op = HW_WINDOW_CLOSE, .u.admin.value = dev->window },
		   NULL, 0, NULL, err);
}

/* Work that failed breaks the windows that are open then, and the HAL hears of it later: it may
 * have lent anew meanwhile, for an earlier failure. Whether this one is whole a device is told,
 * its own too, that asks for what lies behind its end. */
static bool is_whole(struct hal_device *dev)
{
	struct hw_peer_map m = { .va = HAL_PEER_VA, .offset = dev->identity.hbm_bytes,
				 .bytes = HW_PAGE, .key = dev->window,
				 .chip = dev->identity.chip };

	return ask(dev, (struct hw_sqe){ .op = HW_PEER_MAP }, &m, sizeof(m), NULL, NULL) ==
	       ERR_INVALID_ARGUMENT;
}

/* A window that is whole, as far as is known: key. Others may be using one that is. Under
 * hal.links. */
static int lend(struct hal_device *dev, struct err *err)
{
	struct hw_window w = { HAL_HBM_VA, dev->identity.hbm_bytes };
	bool is_stale = atomic_exchange(&dev->is_window_stale, false);

	if (dev->window && (!is_stale || is_whole(dev)))
		return 0;
	if (dev->window)	/* it is broken, if not by the device then now */
		close_window(dev, NULL);
	dev->window = 0;
	atomic_fetch_add(&dev->n_lent, 1);
	return ask(dev, (struct hw_sqe){ .op = HW_WINDOW_OPEN }, &w, sizeof(w), &dev->window,
		   err);
}

uint64_t hal_times_lent(const struct hal_device *dev)
{
	return atomic_load(&dev->n_lent);
}

int hal_take_back(struct hal_device *dev, struct err *err)
{
	int code = hal_check(dev, err);

	if (code)
		return code;
	pthread_mutex_lock(&dev->hal->links);
	if (dev->window)
		code = close_window(dev, err);
	if (code == ERR_NOT_FOUND)	/* it was broken */
		code = 0;
	if (!code)
		dev->window = 0;
	pthread_mutex_unlock(&dev->hal->links);
	return code;
}

static bool is_done(struct hal_device *dev, const struct hal_view *v)
{
	for (unsigned i = 0; i < 2; i++)
		if (atomic_load(&dev->queues[i]->done) < v->last_use[i])
			return false;
	return true;
}

static uint64_t place_of(unsigned chip, unsigned view)
{
	return HAL_PEER_VA + ((uint64_t)chip << 48) + view * SLOT_BYTES;
}

/* A place for one more view of the peer: one that was never used, or not any more. */
static struct hal_view *find_room(struct hal_device *dev, unsigned chip, uint64_t *va)
{
	for (unsigned i = 0; i < HAL_VIEWS; i++) {
		struct hal_view *v = &dev->views[chip][i];
		struct hw_peer_map m = { .va = place_of(chip, i) };

		*va = m.va;
		if (!v->key)
			return v;
		if (is_done(dev, v) && !ask(dev, (struct hw_sqe){ .op = HW_UNMAP }, &m, sizeof(m),
					    NULL, NULL)) {
			v->key = 0;
			return v;
		}
	}
	return NULL;
}

/* Under hal.links. The owner's name stays where it is. */
static int look_at(struct hal_device *dev, const struct hal_lent *lent, const char *owner,
		   uint64_t *base, struct err *err)
{
	unsigned chip = lent->chip;
	struct hw_peer_map m = { .bytes = lent->bytes, .key = lent->key, .chip = chip };
	struct hal_view *v;
	int code;

	for (unsigned i = 0; i < HAL_VIEWS; i++) {
		v = &dev->views[chip][i];
		if (v->key == lent->key) {
			*base = place_of(chip, i);
			return 0;
		}
		/* What is queued already may be of the old one. */
		for (unsigned q = 0; v->key && !v->is_old && q < 2; q++)
			v->last_use[q] = atomic_load(&dev->queues[q]->submitted);
		v->is_old = true;
	}
	v = find_room(dev, chip, &m.va);
	if (!v)
		return err_set(err, ERR_RESOURCE_EXHAUSTED, "%s failed its peers %u times, and "
			       "%s has work queued from before each: wait for it",
			       owner, HAL_VIEWS, dev->entry->info.bus_id);
	code = ask(dev, (struct hw_sqe){ .op = HW_PEER_MAP }, &m, sizeof(m), NULL, err);
	if (code)
		return code;
	*v = (struct hal_view){ .key = lent->key };
	atomic_store(&dev->chips[chip], owner);
	*base = m.va;
	return 0;
}

/* What is lent of it; under hal.links, peer->window is whole. */
static struct hal_lent lent_of(const struct hal_device *peer)
{
	return (struct hal_lent){ .fabric = peer->identity.fabric, .key = peer->window,
				  .bytes = peer->identity.hbm_bytes,
				  .chip = peer->identity.chip };
}

/* The device has broken its window, since work failed there or it died, and the HAL has yet to
 * hear of it: until then the same window would be lent. One that is broken for no such reason is
 * lent anew all the same. Under hal.links. */
static int await_failure(struct hal_device *dev, struct err *err)
{
	int code = hal_queue_await_failure(dev->queues[HAL_QUEUE_COMPUTE], clock_after(HEAR_NS),
					   err);

	atomic_store(&dev->is_window_stale, true);
	return code;
}

/* Where dev sees all of the peer's HBM. Under hal.links. */
static int see(struct hal_device *dev, struct hal_device *peer, uint64_t *base, struct err *err)
{
	int code = ERR_NOT_FOUND;

	for (unsigned i = 0; code == ERR_NOT_FOUND && i < TRIES; i++) {
		code = i ? await_failure(peer, err) : 0;
		if (!code)
			code = lend(peer, err);
		if (!code) {
			const struct hal_lent lent = lent_of(peer);

			code = look_at(dev, &lent, peer->entry->info.bus_id, base, err);
		}
	}
	return code;
}

int hal_peer_va(struct hal_device *dev, const struct hal_mem *mem, uint64_t *va,
		struct err *err)
{
	struct hal_device *peer = mem->dev;
	struct hal *hal = dev->hal;
	uint64_t base = 0;
	int code = hal_check(dev, err);

	if (!code)
		code = hal_check(peer, err);
	if (code)
		return code;
	if (mem->kind != HAL_MEM_HBM)
		return err_set(err, ERR_INVALID_ARGUMENT, "links lead to HBM; this is host memory "
			       "of %s", peer->entry->info.bus_id);
	if (dev == peer) {
		*va = mem->va;
		return 0;
	}
	code = is_shared(dev, peer) ? 0 : refuse(dev, peer, err);
	if (code)
		return code;
	pthread_mutex_lock(&hal->links);
	code = is_shared(dev, peer) ? share(dev, mem, &base, err) : see(dev, peer, &base, err);
	pthread_mutex_unlock(&hal->links);
	if (code)
		return err_add(err, "linking %s to %s", dev->entry->info.bus_id,
			       peer->entry->info.bus_id);
	*va = base + (mem->va - HAL_HBM_VA);
	return 0;
}

/* ---- other processes ---- */

/* Whether it has links that somebody else could be at the other end of. */
static int refuse_alone(const struct hal_device *dev, struct err *err)
{
	const char *a = dev->entry->info.bus_id;

	if (!dev->t->ops->link)
		return err_set(err, ERR_UNIMPLEMENTED, "%s: through the kernel driver other "
			       "devices' memory is for copies alone; for programs of several "
			       "processes own the devices by VFIO, or serve models by tessera-sim "
			       "--devices N", a);
	if (!dev->identity.fabric || dev->identity.chip >= HAL_CHIPS)
		return err_set(err, ERR_UNIMPLEMENTED, "%s has no links, so it meets no device of "
			       "another process: serve linked chips by tessera-sim --devices N, "
			       "and give each process its own of them "
			       "(TESSERA_DEVICES=vfio-user:DIR/0.sock)", a);
	return 0;
}

int hal_lend(struct hal_device *dev, struct hal_lent *out, struct err *err)
{
	int code = hal_check(dev, err);

	if (!code)
		code = refuse_alone(dev, err);
	if (code)
		return code;
	pthread_mutex_lock(&dev->hal->links);
	code = lend(dev, err);
	if (!code)
		*out = lent_of(dev);
	pthread_mutex_unlock(&dev->hal->links);
	return code ? err_add(err, "lending %s to other processes", dev->entry->info.bus_id) : 0;
}

uint64_t hal_lent_offset(const struct hal_mem *mem)
{
	return mem->va - HAL_HBM_VA;
}

bool hal_is_lent(struct hal_device *dev, const struct hal_lent *lent)
{
	bool is;

	pthread_mutex_lock(&dev->hal->links);
	is = dev->window == lent->key && !atomic_load(&dev->is_window_stale);
	pthread_mutex_unlock(&dev->hal->links);
	return is && !hal_device_error(dev, NULL);
}

static int check_lent(const struct hal_device *dev, const struct hal_lent *lent,
		      const char *owner, struct err *err)
{
	const char *a = dev->entry->info.bus_id;
	int code = refuse_alone(dev, err);

	if (code)
		return code;
	if (lent->fabric != dev->identity.fabric)
		return err_set(err, ERR_UNIMPLEMENTED, "%s and %s are not linked: links join the "
			       "chips of one machine, or of one tessera-sim (--devices N)", a,
			       owner);
	if (lent->chip >= HAL_CHIPS || lent->chip == dev->identity.chip)
		return err_set(err, ERR_INVALID_ARGUMENT, "%s is said to be chip %u of the fabric "
			       "in which %s is chip %u of at most %u", owner, lent->chip, a,
			       dev->identity.chip, HAL_CHIPS);
	if (!lent->key || !lent->bytes || lent->bytes > SLOT_BYTES || lent->bytes % HW_PAGE)
		return err_set(err, ERR_INVALID_ARGUMENT, "%s lends %llu bytes by key 0x%llx",
			       owner, (unsigned long long)lent->bytes,
			       (unsigned long long)lent->key);
	return 0;
}

/* Under hal.links. The first name stays, since texts may be read at any time. */
static const char *name_owner(struct hal_device *dev, unsigned chip, const char *owner)
{
	if (!dev->owners[chip][0])
		snprintf(dev->owners[chip], sizeof(dev->owners[0]), "%s", owner);
	return dev->owners[chip];
}

void hal_name_lender(struct hal_device *dev, const struct hal_lent *lent, const char *owner)
{
	if (check_lent(dev, lent, owner, NULL))
		return;
	pthread_mutex_lock(&dev->hal->links);
	atomic_store(&dev->chips[lent->chip], name_owner(dev, lent->chip, owner));
	pthread_mutex_unlock(&dev->hal->links);
}

int hal_borrow(struct hal_device *dev, const struct hal_lent *lent, const char *owner,
	       uint64_t *va, struct err *err)
{
	int code = hal_check(dev, err);

	if (!code)
		code = check_lent(dev, lent, owner, err);
	if (code)
		return code;
	pthread_mutex_lock(&dev->hal->links);
	code = look_at(dev, lent, name_owner(dev, lent->chip, owner), va, err);
	pthread_mutex_unlock(&dev->hal->links);
	if (!code)
		return 0;
	return err_add(err, "linking %s to %s, which may have ended", dev->entry->info.bus_id,
		       owner);
}

static void name_chip(struct hal_device *dev, const struct hal_device *peer)
{
	if (peer->identity.chip < HAL_CHIPS)
		atomic_store(&dev->chips[peer->identity.chip], peer->entry->info.bus_id);
}

void hal_links_join(struct hal_device *dev)
{
	for (unsigned i = 0; i < dev->hal->n_entries; i++) {
		struct hal_device *peer = dev->hal->entries[i].open;

		if (!peer || peer == dev || !dev->identity.fabric ||
		    peer->identity.fabric != dev->identity.fabric)
			continue;
		name_chip(dev, peer);
		name_chip(peer, dev);
	}
}

void hal_links_forget(struct hal_device *dev)
{
	dev->window = 0;
	atomic_store(&dev->is_window_stale, false);
	memset(dev->views, 0, sizeof(dev->views));
}
