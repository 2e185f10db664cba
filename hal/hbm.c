/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HBM and its heap. Where all of it is ours it is one range from the beginning. Where a kernel
 * driver deals it out among processes, ranges are taken from it as they are needed and given
 * back when nothing is in them: of such idle ranges at most a quarter of the card is kept, and
 * none for longer than IDLE_NS and the waiter's next look.
 */
#define LOG_TAG "hal/hbm"
#include <stdlib.h>

#include "hal/base/clock.h"
#include "hal/base/log.h"
#include "hal/hal_internal.h"
#include "hal/hw/regs.h"

#define IDLE_NS 1000000000ll
#define ROUND ((uint64_t)2 << 20)	/* ranges are multiples, but where only less is left */
#define MOST_GRAIN ((uint64_t)256 << 20)

/* What is taken at once for small blocks. */
static uint64_t grain_of(const struct hal_device *dev)
{
	uint64_t grain = (dev->identity.hbm_bytes / 32 + ROUND - 1) / ROUND * ROUND;

	return grain < ROUND ? ROUND : grain > MOST_GRAIN ? MOST_GRAIN : grain;
}

static bool is_dealt(const struct hal_device *dev)
{
	return dev->t->ops->hbm_take;
}

static uint64_t most_idle(const struct hal_device *dev)
{
	return dev->identity.hbm_bytes / 4;
}

/* Puts a range, which is free in the heap already or is to be, into the list. */
static struct hal_range *add_range(struct hal_device *dev, uint64_t offset, uint64_t bytes,
				   void *host)
{
	struct hal_range **link = &dev->ranges, *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	while (*link && (*link)->offset < offset)
		link = &(*link)->next;
	*r = (struct hal_range){ .next = *link, .offset = offset, .bytes = bytes, .host = host };
	*link = r;
	return r;
}

static void drop_range(struct hal_device *dev, struct hal_range *r)
{
	struct hal_range **link = &dev->ranges;

	while (*link != r)
		link = &(*link)->next;
	*link = r->next;
	free(r);
}

int hal_hbm_open(struct hal_device *dev, struct err *err)
{
	uint64_t all = is_dealt(dev) ? 0 : dev->identity.hbm_bytes, bytes;

	atomic_store(&dev->tidy_due, CLOCK_FOREVER);
	dev->heap = hal_heap_create(all);
	if (dev->heap && (!all || add_range(dev, 0, all, dev->t->ops->hbm(dev->t, &bytes))))
		return 0;
	return err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory for the heap");
}

void hal_hbm_close(struct hal_device *dev)
{
	while (dev->ranges)
		drop_range(dev, dev->ranges);
	hal_heap_destroy(dev->heap);
	dev->heap = NULL;
}

/* ---- ranges that come and go ---- */

static struct hal_range *range_at(struct hal_device *dev, uint64_t offset)
{
	struct hal_range *r = dev->ranges;

	while (r && (offset < r->offset || offset - r->offset >= r->bytes))
		r = r->next;
	return r;
}

/* From now on the waiter may give it back. */
static void begin_idle(struct hal_device *dev, struct hal_range *r, struct hal_block *whole)
{
	int64_t now = clock_ns();

	if (!r->whole)
		dev->idle_bytes += r->bytes;
	r->whole = whole;
	r->idle_since = now;
	if (now + IDLE_NS < atomic_load(&dev->tidy_due))
		atomic_store(&dev->tidy_due, now + IDLE_NS);
}

static void end_idle(struct hal_device *dev, struct hal_range *r)
{
	if (r->whole)
		dev->idle_bytes -= r->bytes;
	r->whole = NULL;
}

/* Gives an idle range back; false: the driver does not take it now. */
static bool give(struct hal_device *dev, struct hal_range *r)
{
	struct err why;

	if (dev->t->ops->hbm_give(dev->t, r->offset, &why)) {
		log_info("%s", why.msg);
		return false;
	}
	log_debug("gave %llu bytes of HBM back", (unsigned long long)r->bytes);
	hal_heap_remove(dev->heap, r->whole);
	end_idle(dev, r);
	drop_range(dev, r);
	return true;
}

/* Gives back idle ranges, those that were so before `before`, until at most `keep` bytes are. */
static bool give_idle(struct hal_device *dev, int64_t before, uint64_t keep)
{
	struct hal_range *r, *next;
	bool any = false;

	for (r = dev->ranges; r && dev->idle_bytes > keep; r = next) {
		next = r->next;
		if (r->whole && !r->n_views && r->idle_since <= before && give(dev, r))
			any = true;
	}
	return any;
}

void hal_hbm_tidy(struct hal_device *dev)
{
	int64_t now = clock_ns(), due = CLOCK_FOREVER;

	if (now < atomic_load(&dev->tidy_due))
		return;
	pthread_mutex_lock(&dev->lock);
	if (!atomic_load(&dev->is_dead))
		give_idle(dev, now - IDLE_NS, 0);
	for (const struct hal_range *r = dev->ranges; r; r = r->next)
		if (r->whole && !r->n_views && r->idle_since + IDLE_NS < due)
			due = r->idle_since + IDLE_NS;
	/* What the driver did not take is offered again, but not at once. */
	atomic_store(&dev->tidy_due, due <= now ? now + IDLE_NS : due);
	pthread_mutex_unlock(&dev->lock);
}

/* The lowest offset where `bytes` meet no range. */
static uint64_t find_place(const struct hal_device *dev, uint64_t bytes)
{
	uint64_t at = 0;

	for (const struct hal_range *r = dev->ranges; r; r = r->next) {
		if (r->offset >= at && r->offset - at >= bytes)
			break;
		at = (r->offset + r->bytes + ROUND - 1) / ROUND * ROUND;
	}
	return at;
}

/* A range in which `bytes` fit. RESOURCE_EXHAUSTED: the driver has none. */
static int grow(struct hal_device *dev, uint64_t bytes, struct err *err)
{
	uint64_t least = (bytes + HW_PAGE - 1) / HW_PAGE * HW_PAGE, got = 0, grain = grain_of(dev);
	uint64_t wanted = (bytes + ROUND - 1) / ROUND * ROUND, offset;
	struct hal_block *whole;
	struct hal_range *r;
	void *host = NULL;
	int code;

	wanted = wanted < grain ? grain : wanted;
	offset = find_place(dev, wanted);
	code = dev->t->ops->hbm_take(dev->t, offset, least, wanted, &got, &host, err);
	if (code)
		return code;
	r = add_range(dev, offset, got, host);
	whole = r ? hal_heap_add(dev->heap, offset, got) : NULL;
	if (whole) {
		begin_idle(dev, r, whole);
		return 0;
	}
	if (r)
		drop_range(dev, r);
	dev->t->ops->hbm_give(dev->t, offset, NULL);
	return err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory for the heap");
}

/* ---- blocks ---- */

static struct hal_block *find_block(struct hal_device *dev, uint64_t bytes, bool is_high,
				    const char *tag)
{
	return is_high ? hal_heap_alloc_high(dev->heap, bytes, tag) :
			 hal_heap_alloc(dev->heap, bytes, tag);
}

int hal_hbm_alloc(struct hal_device *dev, struct hal_mem *m, bool is_high, const char *tag,
		  struct err *err)
{
	struct hal_range *r;
	int code = 0;

	m->block = m->bytes <= dev->identity.hbm_bytes ?
		   find_block(dev, m->bytes, is_high, tag) : NULL;
	if (!m->block && is_dealt(dev) && m->bytes <= dev->identity.hbm_bytes) {
		code = grow(dev, m->bytes, err);
		/* What lies idle may stand in the way. */
		if (code == ERR_RESOURCE_EXHAUSTED && give_idle(dev, CLOCK_FOREVER, 0))
			code = grow(dev, m->bytes, err);
		if (!code)
			m->block = find_block(dev, m->bytes, is_high, tag);
	}
	if (!m->block)
		return code ? code : err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory");
	r = range_at(dev, m->block->offset);
	end_idle(dev, r);
	m->va = HAL_HBM_VA + m->block->offset;
	m->host = r->host ? r->host + (m->block->offset - r->offset) : NULL;
	if (dev->t->ops->discard)
		dev->t->ops->discard(dev->t, m->block->offset, m->block->bytes);
	return 0;
}

void hal_hbm_free(struct hal_device *dev, struct hal_block *block)
{
	struct hal_block *whole = hal_heap_free(dev->heap, block);

	if (!whole || !is_dealt(dev))
		return;
	begin_idle(dev, range_at(dev, whole->offset), whole);
	give_idle(dev, CLOCK_FOREVER, most_idle(dev));
}

bool hal_hbm_view(struct hal_device *dev, uint64_t address, uint64_t bytes, struct hal_mem *out)
{
	uint64_t at;

	for (struct hal_range *r = dev->ranges; r; r = r->next) {
		if (!hal_is_within(address, bytes, HAL_HBM_VA + r->offset, r->bytes, &at) &&
		    !hal_is_within(address, bytes, (uintptr_t)r->host, r->bytes, &at))
			continue;
		out->kind = HAL_MEM_HBM;
		out->va = HAL_HBM_VA + r->offset + at;
		out->host = r->host ? r->host + at : NULL;
		out->range = r;
		return true;
	}
	return false;
}

void hal_hbm_hold(struct hal_range *r)
{
	r->n_views++;
}

void hal_hbm_let_go(struct hal_device *dev, struct hal_range *r)
{
	if (--r->n_views || !r->whole)
		return;
	begin_idle(dev, r, r->whole);
	give_idle(dev, CLOCK_FOREVER, most_idle(dev));
}

/* ---- what there is ---- */

void hal_hbm_room(struct hal_device *dev, struct hal_room *out)
{
	uint64_t largest, held = 0;

	/* What is idle here is free, but only in one piece with what is free there. */
	give_idle(dev, CLOCK_FOREVER, 0);
	largest = hal_heap_largest(dev->heap);
	for (const struct hal_range *r = dev->ranges; r; r = r->next)
		held += r->bytes;
	*out = (struct hal_room){ .limit = held };
	/* A driver that does not answer has no more for us. */
	if (is_dealt(dev))
		dev->t->ops->hbm_room(dev->t, out);
	if (out->limit < held)
		out->limit = held;
	if (out->largest < largest)
		out->largest = largest;
}
