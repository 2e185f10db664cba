/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies, fills and time stamps (DEVICE.md#copies), on either engine.
 *
 * A range of addresses may lead to several pieces of memory. All of a descriptor's
 * ranges are checked first, under the lock, so that one that faults has written
 * nothing; noting them as used keeps them valid. Then bytes move without the lock,
 * piece by piece, in blocks, so that a reset stops a long copy soon, and others that wait for
 * the engine have their turn: the copy goes on later from where sim_engine.progress says.
 */
#include <string.h>

#include "hal/sim/sim_internal.h"

#define BLOCK ((uint64_t)1 << 20)
#define SHARED_FROM ((uint64_t)4 << 20)	/* copies this large use several lanes */
#define SHARE ((uint64_t)512 << 10)
#define NEAR 65536u	/* what comes from memory that the host is asked for */
#define PACKET ((uint64_t)8 << 20)	/* to another chip, which may want its memory back */

struct mover {
	struct sim_engine *e;
	struct sim_device *dev;
	unsigned ctx;
	struct hw_fault *f;
};

static bool is_stopped(const struct mover *m)
{
	return atomic_load_explicit(&m->e->stop, memory_order_relaxed);
}

static int stopped(const struct mover *m)
{
	return sim_fail(m->f, HW_ST_RESET, 0, 0, false);
}

/* Between blocks, on the engine's own thread: lets others go first whose turn it is. 0, or what
 * the run ends with here; with SIM_YIELDED it goes on later from `row` and `at`. */
static int pause_at(const struct mover *m, uint64_t row, uint64_t at)
{
	if (sim_turn_is_wanted(&m->e->turn))
		sim_turn_pass(&m->e->turn, &m->e->stop);
	if (is_stopped(m))
		return stopped(m);
	if (!atomic_load_explicit(&m->e->core.yield, memory_order_relaxed))
		return 0;
	m->e->progress.row = row;
	m->e->progress.at = at;
	return SIM_YIELDED;
}

/* One piece of [va, va + *bytes): *bytes becomes its length. */
static uint8_t *piece(const struct mover *m, uint64_t va, uint64_t *bytes, bool write,
		      bool *is_host)
{
	uint64_t got;
	uint8_t *p = sim_va(m->dev, m->e, m->ctx, va, *bytes, write, &got, is_host);

	*bytes = got;
	return p;
}

/* Checks a whole range; with the lock. */
static int check_range(const struct mover *m, uint64_t va, uint64_t bytes, bool write)
{
	for (uint64_t at = 0; at < bytes; ) {
		uint64_t n = bytes - at;
		uint8_t *p = bytes > UINT64_MAX - va ? NULL :
			piece(m, va + at, &n, write, NULL);

		if (!p)
			return sim_fail(m->f, HW_ST_MAP, va + at, bytes, write);
		if (!write && sim_is_poisoned(m->dev, p, n))
			return sim_fail(m->f, HW_ST_POISON, va + at, bytes, false);
		at += n;
	}
	return 0;
}

static void note(const struct mover *m, uint64_t va, uint64_t bytes)
{
	m->e->uses[m->e->n_uses++] = (struct sim_use){ va, bytes };
}

/* What goes on was checked when it began. */
static int check(const struct mover *m, uint64_t va, uint64_t bytes, bool write)
{
	int status = 0;

	pthread_mutex_lock(&m->dev->lock);
	note(m, va, bytes);
	if (!m->e->progress.at)
		status = check_range(m, va, bytes, write);
	pthread_mutex_unlock(&m->dev->lock);
	return status;
}

/* Counts a transfer; with the lock. */
static void count(struct sim_device *dev, uint64_t bytes, bool is_host, bool write)
{
	struct hw_telemetry *t = &dev->total;

	if (is_host)
		*(write ? &t->dma_out_bytes : &t->dma_in_bytes) += bytes;
	else
		*(write ? &t->hbm_write_bytes : &t->hbm_read_bytes) += bytes;
}

/* ---- moving bytes ---- */

struct shares {
	const struct mover *m;
	uint8_t *dst;
	const uint8_t *src;
};

static void copy_share(void *arg, uint64_t begin, uint64_t end, unsigned lane)
{
	const struct shares *s = arg;

	(void)lane;
	while (begin < end && !is_stopped(s->m)) {
		uint64_t n = end - begin < BLOCK ? end - begin : BLOCK;

		memcpy(s->dst + begin, s->src + begin, n);
		begin += n;
	}
}

/* Byte by byte ascending, as far as anyone can tell. */
static void move(const struct mover *m, uint8_t *dst, const uint8_t *src, uint64_t n)
{
	uint64_t ahead = (uint64_t)((uintptr_t)dst - (uintptr_t)src);
	uint64_t behind = (uint64_t)((uintptr_t)src - (uintptr_t)dst);
	struct shares s = { m, dst, src };

	if (ahead >= n && behind >= n) {
		sim_pool_run(m->dev->sim->pool, n, n < SHARED_FROM ? n : SHARE,
			     n < SHARED_FROM ? 1 : m->e->core.n_lanes, copy_share, &s);
	} else if (behind < n || ahead >= BLOCK) {
		for (uint64_t at = 0; at < n && !is_stopped(m); at += BLOCK)
			memmove(dst + at, src + at, n - at < BLOCK ? n - at : BLOCK);
	} else {
		/* The first `ahead` bytes repeat: what was written is a longer source. */
		for (uint64_t at = 0; at < n && !is_stopped(m); ) {
			uint64_t have = at + ahead;

			have = have > BLOCK ? BLOCK / ahead * ahead : have;
			have = n - at < have ? n - at : have;
			memcpy(dst + at, src, have);
			at += have;
		}
	}
}

/* n bytes at `to` were written, after `before` bytes of the same range. A page that began among
 * these is whole now: addresses are alike within a page however it is mapped. */
static void heal(struct sim_device *dev, const uint8_t *to, uint64_t n, uint64_t before)
{
	uint64_t back = (uint64_t)((uintptr_t)to - (uintptr_t)dev->hbm) % HW_PAGE;

	back = back < before ? back : before;
	sim_heal(dev, to - back, n + back);
}

/* Row number `row` of a copy, from where it is on. */
static int copy(const struct mover *m, uint64_t row, uint64_t dst, uint64_t src, uint64_t bytes)
{
	struct sim_device *dev = m->dev;
	uint64_t at = m->e->progress.at;

	m->e->progress.at = 0;
	while (at < bytes) {
		uint64_t n = bytes - at;
		bool from_host = false, to_host = false;
		const uint8_t *from;
		uint8_t *to;
		int status;

		pthread_mutex_lock(&dev->lock);
		from = piece(m, src + at, &n, false, &from_host);
		to = from ? piece(m, dst + at, &n, true, &to_host) : NULL;
		if ((m->e->turn.all || m->e->is_shared) && n > SHARED_FROM)
			n = SHARED_FROM;	/* between which others have their turn */
		if (to) {
			count(dev, n, from_host, false);
			count(dev, n, to_host, true);
		}
		pthread_mutex_unlock(&dev->lock);
		if (!to)	/* an IOMMU mapping went */
			return sim_fail(m->f, HW_ST_MAP, from ? dst + at : src + at, bytes,
				    from != NULL);
		move(m, to, from, n);
		sim_watch_copy(&dev->watch, to, from, n);
		sim_cells_wrote(&dev->cells, to, n);
		at += n;
		status = at < bytes ? pause_at(m, row, at) : is_stopped(m) ? stopped(m) : 0;
		if (status && status != SIM_YIELDED)
			return status;
		heal(dev, to, n, at - n);
		if (status)
			return status;
	}
	return 0;
}

/* Where [va, va + bytes) is in a window; NULL: it is not. */
static uint8_t *find_peer(const struct mover *m, uint64_t va, uint64_t bytes,
			  struct sim_window **w)
{
	uint8_t *p;

	pthread_mutex_lock(&m->dev->lock);
	p = sim_peer_va(m->dev, m->ctx, va, bytes, w);
	if (p)
		note(m, va, bytes);
	pthread_mutex_unlock(&m->dev->lock);
	return p;
}

/* As copy(), into another chip's window, of whose memory `to` is. What our host is asked for is
 * here before the window is used, whose owner waits for who uses it. */
static int copy_to_peer(const struct mover *m, struct sim_window *w, uint8_t *to, uint64_t src,
			uint64_t bytes)
{
	struct sim_device *dev = m->dev;
	uint64_t at = m->e->progress.at;
	uint8_t near[NEAR];
	int status = 0;

	while (at < bytes) {
		uint64_t n = bytes - at < PACKET ? bytes - at : PACKET;
		bool is_host = false, is_far;
		const uint8_t *from;
		uint32_t why;

		pthread_mutex_lock(&dev->lock);
		from = piece(m, src + at, &n, false, &is_host);
		is_far = from && is_host && sim_is_far(dev, from);
		if (is_far && n > sizeof(near))
			n = sizeof(near);
		if (from)
			count(dev, n, is_host, false);
		pthread_mutex_unlock(&dev->lock);
		if (!from)
			return sim_fail(m->f, HW_ST_MAP, src + at, bytes, false);
		if (is_far)
			from = memcpy(near, from, n);
		if (!sim_window_begin(dev, w)) {
			why = sim_window_why(dev, w);
			if (!why)	/* a link that is up again */
				why = sim_break_why(w->dev, HW_ST_LINK);
			return sim_fail(m->f, HW_ST_PEER, sim_broken_by(why), sim_broken_as(why),
				    true);
		}
		move(m, to + at, from, n);
		sim_watch_write(&w->dev->watch, to + at, n);
		sim_cells_wrote(&w->dev->cells, to + at, n);
		heal(w->dev, to + at, n, at);
		sim_window_end(dev, w, n, false);
		at += n;
		status = at < bytes ? pause_at(m, 0, at) : is_stopped(m) ? stopped(m) : 0;
		if (status)
			return status;
	}
	return 0;
}

static int run_copy(const struct mover *m, const struct hw_sqe *sqe)
{
	uint64_t n = sqe->u.copy.bytes;
	int status = check(m, sqe->u.copy.src, n, false);
	struct sim_window *w;
	uint8_t *to;

	if (status)
		return status;
	to = m->dev->sim->fabric.id ? find_peer(m, sqe->u.copy.dst, n, &w) : NULL;
	if (to)
		return copy_to_peer(m, w, to, sqe->u.copy.src, n);
	status = check(m, sqe->u.copy.dst, n, true);
	return status ? status : copy(m, 0, sqe->u.copy.dst, sqe->u.copy.src, n);
}

static void fill_words(uint8_t *dst, uint64_t pattern, uint64_t n)
{
	for (uint64_t at = 0; at + 8 <= n; at += 8)
		memcpy(dst + at, &pattern, 8);
	memcpy(dst + (n & ~7ull), &pattern, n & 7);
}

static int run_fill(const struct mover *m, const struct hw_sqe *sqe)
{
	uint64_t va = sqe->u.copy.dst, bytes = sqe->u.copy.bytes, pattern = sqe->u.copy.src;
	int status = check(m, va, bytes, true);

	for (uint64_t at = m->e->progress.at; !status && at < bytes; ) {
		uint64_t n = bytes - at;
		unsigned turn = at % 8 * 8;
		bool is_host = false;
		uint8_t *to;

		pthread_mutex_lock(&m->dev->lock);
		to = piece(m, va + at, &n, true, &is_host);
		n = n < BLOCK ? n : BLOCK;
		if (to)
			count(m->dev, n, is_host, true);
		pthread_mutex_unlock(&m->dev->lock);
		if (!to)
			return sim_fail(m->f, HW_ST_MAP, va + at, bytes, true);
		fill_words(to, turn ? pattern >> turn | pattern << (64 - turn) : pattern, n);
		sim_watch_write(&m->dev->watch, to, n);
		sim_cells_wrote(&m->dev->cells, to, n);
		at += n;
		status = at < bytes ? pause_at(m, 0, at) : is_stopped(m) ? stopped(m) : 0;
		if (status && status != SIM_YIELDED)
			return status;
		heal(m->dev, to, n, at - n);
	}
	return status;
}

static int run_timestamp(const struct mover *m, const struct hw_sqe *sqe)
{
	uint64_t va = sqe->u.copy.dst;
	bool is_far;
	uint8_t *to;

	if (va % 8)
		return sim_fail(m->f, HW_ST_ALIGNMENT, va, 8, true);
	pthread_mutex_lock(&m->dev->lock);
	to = sim_va(m->dev, m->e, m->ctx, va, 8, true, NULL, NULL);
	is_far = to && sim_is_far(m->dev, to);
	if (is_far)
		pthread_mutex_unlock(&m->dev->lock);
	if (to) {
		__atomic_store_n((uint64_t *)to, (uint64_t)(clock_ns() - m->dev->power_on),
				 __ATOMIC_RELEASE);
		sim_watch_write(&m->dev->watch, to, 8);
		sim_cells_wrote(&m->dev->cells, to, 8);
	}
	if (!is_far)
		pthread_mutex_unlock(&m->dev->lock);
	return to ? 0 : sim_fail(m->f, HW_ST_MAP, va, 8, true);
}

/* ---- COPY_2D ---- */

/* The lowest byte and the number of bytes that rows and planes cover. */
static int extent(const struct hw_copy_2d *c, uint64_t base, int64_t row, int64_t plane,
		  uint64_t *va, uint64_t *bytes)
{
	__int128 lo = 0, hi = c->row_bytes;
	__int128 rows = (__int128)(c->rows - 1) * row;
	__int128 planes = (__int128)(c->planes - 1) * plane;

	*(rows < 0 ? &lo : &hi) += rows;
	*(planes < 0 ? &lo : &hi) += planes;
	lo += base;
	hi += base;
	if (lo < 0 || hi - lo > INT64_MAX || hi > UINT64_MAX)
		return -1;
	*va = (uint64_t)lo;
	*bytes = (uint64_t)(hi - lo);
	return 0;
}

/* Where row number `row` begins, of planes of rows that are so far apart. */
static uint64_t row_at(const struct hw_copy_2d *c, uint64_t base, uint64_t row, int64_t across,
		       int64_t plane)
{
	return base + row / c->rows * (uint64_t)plane + row % c->rows * (uint64_t)across;
}

/* Calls fn for every row, from the one that is next on, until it fails or the run is to stop. */
static int each_row(const struct mover *m, const struct hw_copy_2d *c,
		    int (*fn)(const struct mover *m, uint64_t row, uint64_t dst, uint64_t src,
			      uint64_t bytes))
{
	uint64_t row = m->e->progress.row, n = c->rows * c->planes;
	int status;

	for (; row < n; row++) {
		status = fn(m, row, row_at(c, c->dst, row, c->dst_row, c->dst_plane),
			    row_at(c, c->src, row, c->src_row, c->src_plane), c->row_bytes);
		if (!status && row + 1 < n)
			status = pause_at(m, row + 1, 0);
		if (status)
			return status;
	}
	m->e->progress.row = 0;
	return 0;
}

static int check_row(const struct mover *m, uint64_t row, uint64_t dst, uint64_t src,
		     uint64_t bytes)
{
	int status;

	(void)row;
	pthread_mutex_lock(&m->dev->lock);
	status = check_range(m, src, bytes, false);
	if (!status)
		status = check_range(m, dst, bytes, true);
	pthread_mutex_unlock(&m->dev->lock);
	return status;
}

static void copy_row(uint8_t *dst, const uint8_t *src, uint64_t bytes)
{
	switch (bytes) {
	case 4: memcpy(dst, src, 4); break;
	case 8: memcpy(dst, src, 8); break;
	default: memmove(dst, src, bytes);
	}
}

/* Both sides lie in one piece each: addresses are pointers. */
static int copy_flat(const struct mover *m, const struct hw_copy_2d *c, uint8_t *dst,
		     const uint8_t *src)
{
	uint64_t moved = 0, row = m->e->progress.row, n = c->rows * c->planes;
	uint64_t z = row / c->rows, y = row % c->rows;
	int status;

	for (; row < n; row++) {
		const uint8_t *from = src + (int64_t)z * c->src_plane + (int64_t)y * c->src_row;
		uint8_t *to = dst + (int64_t)z * c->dst_plane + (int64_t)y * c->dst_row;

		copy_row(to, from, c->row_bytes);
		sim_watch_copy(&m->dev->watch, to, from, c->row_bytes);
		sim_cells_wrote(&m->dev->cells, to, c->row_bytes);
		if (++y == c->rows) {
			y = 0;
			z++;
		}
		moved += c->row_bytes + 64;
		if (moved < BLOCK)
			continue;
		status = pause_at(m, row + 1, 0);
		if (status)
			return status;
		moved = 0;
	}
	return is_stopped(m) ? stopped(m) : 0;
}

static int read_2d(const struct mover *m, uint64_t va, struct hw_copy_2d *c)
{
	const uint8_t *p;

	if (va % 8)
		return sim_fail(m->f, HW_ST_ALIGNMENT, va, sizeof(*c), false);
	pthread_mutex_lock(&m->dev->lock);
	p = sim_va(m->dev, NULL, m->ctx, va, sizeof(*c), false, NULL, NULL);
	if (p)
		memcpy(c, p, sizeof(*c));
	pthread_mutex_unlock(&m->dev->lock);
	return p ? 0 : sim_fail(m->f, HW_ST_MAP, va, sizeof(*c), false);
}

static int run_copy_2d(const struct mover *m, const struct hw_sqe *sqe)
{
	struct sim_device *dev = m->dev;
	uint64_t src_va, dst_va, src_bytes, dst_bytes, all;
	bool from_host = false, to_host = false;
	struct sim_progress *p = &m->e->progress;
	const uint8_t *src;
	uint8_t *dst;
	struct hw_copy_2d c;
	int status = p->was_read ? 0 : read_2d(m, sqe->u.copy.src, &p->rows);

	if (status)
		return status;
	p->was_read = true;
	c = p->rows;
	if (!c.rows || !c.planes || __builtin_mul_overflow(c.rows, c.planes, &all) ||
	    __builtin_mul_overflow(all, c.row_bytes, &all) ||
	    extent(&c, c.src, c.src_row, c.src_plane, &src_va, &src_bytes) ||
	    extent(&c, c.dst, c.dst_row, c.dst_plane, &dst_va, &dst_bytes))
		return sim_fail(m->f, HW_ST_BAD_DESCRIPTOR, sqe->u.copy.src, sizeof(c), false);
	m->e->moved = all;
	if (!c.row_bytes)
		return 0;
	pthread_mutex_lock(&dev->lock);
	note(m, src_va, src_bytes);
	note(m, dst_va, dst_bytes);
	src = sim_va(dev, m->e, m->ctx, src_va, src_bytes, false, NULL, &from_host);
	dst = sim_va(dev, m->e, m->ctx, dst_va, dst_bytes, true, NULL, &to_host);
	/* Rows that are longer than a block are copied in blocks, between which others have their
	 * turn; and one of which part was copied goes on there. */
	if (atomic_load(&dev->poison.n) || c.row_bytes > BLOCK || p->at)
		dst = NULL;
	if (src && dst && !p->is_checked) {
		count(dev, all, from_host, false);
		count(dev, all, to_host, true);
		p->row = 0;
		p->is_checked = true;
	}
	pthread_mutex_unlock(&dev->lock);
	if (src && dst)
		return copy_flat(m, &c, dst + (c.dst - dst_va), src + (c.src - src_va));
	status = p->is_checked ? 0 : each_row(m, &c, check_row);
	if (status)
		return status;
	p->is_checked = true;
	return each_row(m, &c, copy);
}

int sim_dma_run(struct sim_engine *e, const struct sim_queue *q, struct hw_fault *f)
{
	const struct mover m = { e, e->dev, q->info.ctx, f };
	int status;

	/* What the host stored since counts when the device looks. */
	sim_cells_wrote(&e->dev->cells, NULL, 0);
	e->moved = q->sqe.op == HW_TIMESTAMP ? 8 :
		   q->sqe.op == HW_COPY_2D ? 0 : q->sqe.u.copy.bytes;
	switch (q->sqe.op) {
	case HW_COPY: status = run_copy(&m, &q->sqe); break;
	case HW_COPY_2D: status = run_copy_2d(&m, &q->sqe); break;
	case HW_FILL: status = run_fill(&m, &q->sqe); break;
	default: return run_timestamp(&m, &q->sqe);
	}
	pthread_mutex_lock(&e->dev->lock);
	e->dev->total.n_copy += status != SIM_YIELDED;
	pthread_mutex_unlock(&e->dev->lock);
	return status;
}
