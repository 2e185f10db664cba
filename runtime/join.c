/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Launches by one member at a time of programs whose members meet: torch_xla runs a program for
 * each device, by a call each, from a thread each. A member's launch waits until the others' have
 * come; then all are launched as one gang (gang.c). Nobody waits inside a call: who comes gets
 * pending results, as of any launch that is put off.
 *
 * Who belongs together is told by order alone: the k-th launch of one member on a list of devices
 * goes with the k-th of each other on the same list. The programs may be compiled apart and
 * differ in all but how they meet, which is compared; where it is not the same all fail with one
 * error, whoever has yet to come too, and the order goes on behind it. So does a launch that is
 * refused count as one that came. A gang takes the mailboxes of member 0's load.
 *
 * There is no limit of time to waiting for who may still come. It ends when one is known not
 * to: its device dies, its owner says so, or the client is closed.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/rt_internal.h"

/* The launches of one place in the order of a list. Under join_lock until it is started. */
struct rt_gathering {
	atomic_uint refs;	/* the list's, and one for each launch */
	struct rt_circle *circle;
	struct rt_gathering *next;
	uint64_t number;	/* in the order, from 1 */
	unsigned n_came;
	bool is_failed;
	struct err why;		/* then */
	bool *has_come;		/* [n] */
	struct rt_deferred **member;	/* [n]; NULL: not here, or refused */
	/* Once all are here. */
	atomic_size_t waits;	/* pending arguments, and one */
	struct rt_meeting *meeting;	/* a reference, until all runs are over */
	struct rt_callback after;	/* of what holds a device */
	/* What is told to gang.c, [n] each. */
	struct rt_exe **x;
	struct rt_buffer *const **args;
	const bool **keep;
	struct rt_buffer ***outs;
	struct rt_event **done;
};

/* A list of devices on which programs with members are launched one by one. */
struct rt_circle {
	struct rt_circle *next;
	struct rt_gathering *first, **last;	/* not complete; in their order */
	uint64_t n_begun;
	unsigned n, partitions;
	unsigned device[];	/* of each member */
};

/* ---- life ---- */

static void unref(struct rt_gathering *g)
{
	if (!g || atomic_fetch_sub(&g->refs, 1) != 1)
		return;
	rt_meeting_unref(g->meeting);
	free(g->has_come);
	free(g->member);
	free(g->x);
	free(g->args);
	free(g->keep);
	free(g->outs);
	free(g->done);
	free(g);
}

/* Nothing waits any more. */
static void free_circles(struct rt_client *c)
{
	struct rt_circle *o;
	struct rt_gathering *g;

	while ((o = c->circles)) {
		c->circles = o->next;
		while ((g = o->first)) {
			o->first = g->next;
			unref(g);
		}
		free(o);
	}
}

/* At the end of the circle's; NULL: out of memory. */
static struct rt_gathering *new_gathering(struct rt_circle *o)
{
	struct rt_gathering *g = calloc(1, sizeof(*g));
	size_t n = o->n;

	if (!g)
		return NULL;
	atomic_init(&g->refs, 1);
	g->circle = o;
	g->has_come = calloc(n, sizeof(*g->has_come));
	g->member = calloc(n, sizeof(*g->member));
	g->x = calloc(n, sizeof(*g->x));
	g->args = calloc(n, sizeof(*g->args));
	g->keep = calloc(n, sizeof(*g->keep));
	g->outs = calloc(n, sizeof(*g->outs));
	g->done = calloc(n, sizeof(*g->done));
	if (!g->has_come || !g->member || !g->x || !g->args || !g->keep || !g->outs || !g->done) {
		unref(g);
		return NULL;
	}
	g->number = ++o->n_begun;
	*o->last = g;
	o->last = &g->next;
	return g;
}

/* ---- all are here ---- */

/* Launches them all. On the client's thread. */
static void run(void *arg);

static void arrive(void *arg, const struct err *err)
{
	struct rt_gathering *g = arg;

	(void)err;
	if (atomic_fetch_sub(&g->waits, 1) != 1)
		return;
	if (!rt_later(g->x[0]->client, run, g, NULL))
		return;
	rt_in_callback++;
	run(g);
	rt_in_callback--;
}

static void run(void *arg)
{
	struct rt_gathering *g = arg;
	struct rt_event *held = NULL;
	unsigned n = g->circle->n;
	const struct rt_run r = { .n = n, .x = g->x, .args = g->args, .keep_of = g->keep,
				  .was_deferred = true, .meeting = g->meeting, .held = &held };
	struct err err;
	int code = rt_launch_now(&r, g->outs, g->done, &err);

	if (held) {
		atomic_store(&g->waits, 1);
		rt_event_on_ready(held, &g->after, arrive, g);
		rt_event_unref(held);
		return;
	}
	if (code)
		rt_meeting_settle(g->meeting);
	for (unsigned m = 0; m < n; m++)
		rt_deferred_settle(g->member[m]);
	atomic_fetch_add(&g->refs, 1);	/* members may be over before the last is told */
	for (unsigned m = 0; m < n; m++) {
		if (code) {
			rt_deferred_fail(g->member[m], &err);
		} else {
			g->member[m]->done[0] = g->done[m];
			rt_deferred_finish(g->member[m]);
		}
	}
	unref(g);
}

/* They would wait for each other for ever. */
static void refuse_ring(struct rt_gathering *g)
{
	unsigned n = g->circle->n;
	struct err err;

	err_set(&err, ERR_INVALID_ARGUMENT, "%.40s on %u devices, whose members came one by one: "
		"an argument of one waits for what another gives, in this very launch, so none "
		"could begin. Give members what was there before the first came",
		image_string(g->x[0]->image, g->x[0]->image->info.name), n);
	for (unsigned m = 0; m < n; m++)
		rt_deferred_settle(g->member[m]);
	for (unsigned m = 0; m < n; m++)
		rt_deferred_fail(g->member[m], &err);
}

/* It is in no list any more. */
static void start(struct rt_gathering *g)
{
	unsigned n = g->circle->n;

	for (unsigned m = 0; m < n; m++) {
		struct rt_deferred *d = g->member[m];

		g->x[m] = d->x[0];
		g->args[m] = d->args_of[0];
		g->keep[m] = d->keep;
		g->outs[m] = d->real_of[0];
	}
	for (unsigned m = 0; m < n; m++)
		rt_needs_also(&g->member[m]->needs, &g->member[(m + 1) % n]->needs);
	if (!rt_needs_meet(&g->member[0]->needs)) {
		refuse_ring(g);
		return;
	}
	g->meeting = g->x[0]->meeting;
	atomic_fetch_add(&g->meeting->refs, 1);
	atomic_init(&g->waits, 1);
	for (unsigned m = 0; m < n; m++)
		rt_deferred_wait(g->member[m], arrive, g, &g->waits);
	arrive(g, NULL);
}

/* ---- some do not come ---- */

/* Launches that are to fail, by the error of their gatherings, once no lock is held. */
struct failing { struct rt_deferred *first; };

static void tell(struct failing *f)
{
	struct rt_deferred *d;
	struct err why;

	while ((d = f->first)) {
		f->first = d->next_failing;
		why = d->gathering->why;
		rt_deferred_fail(d, &why);
	}
}

/* Under join_lock, as what follows. Takes those who are here; who comes later is told then. */
static void fail(struct rt_gathering *g, const struct err *why, struct failing *f)
{
	if (!g->is_failed)
		g->why = *why;
	g->is_failed = true;
	for (unsigned m = 0; m < g->circle->n; m++) {
		struct rt_deferred *d = g->member[m];

		if (!d)
			continue;
		g->member[m] = NULL;
		d->next_failing = f->first;
		f->first = d;
	}
}

/* A member is here, or won't be. *full: with it all have been; the list's reference. */
static void count(struct rt_gathering *g, unsigned member, struct rt_gathering **full)
{
	struct rt_circle *o = g->circle;

	g->has_come[member] = true;
	if (++g->n_came < o->n)
		return;
	/* To those before it all came earlier. */
	o->first = g->next;
	if (!o->first)
		o->last = &o->first;
	g->next = *full;
	*full = g;
}

/* Of a member that has not come: why it will not; 0: it may. */
static int never_comes(const struct rt_client *c, const struct rt_circle *o, unsigned member,
		       struct err *why)
{
	const struct rt_device *d = &c->devices[o->device[member]];
	int code = d->has_left ? d->left.code : hal_device_error(d->hal, why);

	if (d->has_left)
		*why = d->left;
	if (code)
		err_add(why, "member %u, on device %u, does not come to the program on %u devices "
			"where others wait for it", member, o->device[member], o->n);
	return code;
}

/* The member of a circle that is on the device; n: none is. */
static unsigned member_on(const struct rt_circle *o, unsigned device)
{
	unsigned m = 0;

	while (m < o->n && o->device[m] != device)
		m++;
	return m;
}

/* All that are not complete in which the device has a part; of all devices: c->n_devices. */
static void fail_all(struct rt_client *c, unsigned device, const struct err *why,
		     struct failing *f)
{
	for (struct rt_circle *o = c->circles; o; o = o->next)
		for (struct rt_gathering *g = o->first; g; g = g->next)
			if (device == c->n_devices || member_on(o, device) < o->n)
				fail(g, why, f);
}

/* On the waiter thread of the device. */
static void died(void *arg, unsigned device, const struct err *why)
{
	struct rt_client *c = arg;
	struct failing f = { NULL };

	pthread_mutex_lock(&c->join_lock);
	fail_all(c, device, why, &f);
	pthread_mutex_unlock(&c->join_lock);
	rt_in_callback++;
	tell(&f);
	rt_in_callback--;
}

static int closed(struct err *err)
{
	return err_set(err, ERR_CANCELLED, "the client was destroyed while members of the program "
		       "had not come");
}

/* ---- coming ---- */

/* What it is, and of which op. */
static void describe(const struct image *im, size_t i, char *out, size_t room)
{
	const struct image_meeting *m = &im->meetings[i];
	const char *where;

	if (i >= im->n_meetings) {
		snprintf(out, room, "nothing more");
		return;
	}
	where = image_string(im, m->where);
	snprintf(out, room, "%.60s%s%s, %" PRIu64 " bytes, %s %.40s%s", where, *where ? ": " : "",
		 elem_text(m->elem), m->bytes, image_meeting_kind_text(m),
		 image_string(im, m->groups),
		 m->depth ? " in a loop or branch" : "");
}

/* Whether what the member runs meets as what the others run, as far as they are here. */
static int compare(const struct rt_gathering *g, const struct rt_exe *x, struct err *err)
{
	const struct rt_exe *other = NULL;
	char mine[200], theirs[200];
	int64_t i;

	for (unsigned m = 0; !other && m < g->circle->n; m++)
		other = g->member[m] && m != x->member ? g->member[m]->x[0] : NULL;
	if (!other || other->program == x->program ||
	    !strcmp(other->program->fingerprint, x->program->fingerprint))
		return 0;
	i = image_meets_otherwise(other->image, x->image);
	if (i < 0)
		return 0;
	describe(other->image, (size_t)i, theirs, sizeof(theirs));
	describe(x->image, (size_t)i, mine, sizeof(mine));
	return err_set(err, ERR_INVALID_ARGUMENT, "launch %" PRIu64 " by members one by one on %u "
		       "devices: they meet otherwise at place %" PRId64 ": member %u, on device "
		       "%u, in %.40s: %s; member %u, on device %u, in %.40s: %s. Let all launch "
		       "programs with the same collectives in the same order", g->number,
		       g->circle->n, i + 1, other->member, other->device,
		       image_string(other->image, other->image->info.name), theirs, x->member,
		       x->device, image_string(x->image, x->image->info.name), mine);
}

/* That of the devices of a load; NULL: out of memory. */
static struct rt_circle *find_circle(struct rt_client *c, const struct rt_meeting *m)
{
	unsigned partitions = m->image->info.n_partitions;
	struct rt_circle *o;

	for (o = c->circles; o; o = o->next) {
		bool same = o->n == m->n && o->partitions == partitions;

		for (unsigned i = 0; same && i < o->n; i++)
			same = o->device[i] == m->at[i].device;
		if (same)
			return o;
	}
	o = calloc(1, sizeof(*o) + m->n * sizeof(*o->device));
	if (!o)
		return NULL;
	o->n = m->n;
	o->partitions = partitions;
	for (unsigned i = 0; i < o->n; i++)
		o->device[i] = m->at[i].device;
	o->last = &o->first;
	o->next = c->circles;
	c->circles = o;
	if (!c->free_circles)
		for (unsigned i = 0; i < c->n_devices; i++)
			hal_device_on_death(c->devices[i].hal, died, c);
	c->free_circles = free_circles;
	return o;
}

/* A new one, of which those who left are no part. */
static struct rt_gathering *begin(struct rt_client *c, struct rt_circle *o)
{
	struct rt_gathering *g = new_gathering(o);

	for (unsigned m = 0; g && m < o->n; m++) {
		if (!c->devices[o->device[m]].has_left)
			continue;
		if (!g->is_failed)
			never_comes(c, o, m, &g->why);
		g->is_failed = true;
		g->has_come[m] = true;
		g->n_came++;
	}
	return g;
}

/* The first to which it has not come; NULL: out of memory. */
static struct rt_gathering *find_gathering(struct rt_exe *x)
{
	struct rt_circle *o = find_circle(x->client, x->meeting);
	struct rt_gathering *g = o ? o->first : NULL;

	while (g && g->has_come[x->member])
		g = g->next;
	return g || !o ? g : begin(x->client, o);
}

/* Why the launch can't be, as far as those who are here or missing tell; 0: it may. */
static int check(const struct rt_gathering *g, const struct rt_exe *x, struct err *why)
{
	const struct rt_circle *o = g->circle;
	int code = compare(g, x, why);

	for (unsigned m = 0; !code && m < o->n; m++)
		if (!g->has_come[m])
			code = never_comes(x->client, o, m, why);
	return code;
}

/* d: its launch, or NULL: it was refused because of `why`. */
static int come(struct rt_exe *x, struct rt_deferred *d, const struct err *why,
		struct failing *f, struct rt_gathering **full, struct err *err)
{
	struct rt_client *c = x->client;
	struct rt_gathering *g;
	struct err bad;

	c->devices[x->device].has_left = false;
	if (c->is_closed)
		return closed(err);
	g = find_gathering(x);
	if (!g)
		return err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory");
	count(g, x->member, full);
	if (d) {
		atomic_fetch_add(&g->refs, 1);
		d->gathering = g;
		d->is_over = unref;
		g->member[x->member] = d;
	}
	if (!d && !g->is_failed) {
		bad = *why;
		err_add(&bad, "member %u, on device %u, can't launch %.40s, in which %u devices "
			"meet", x->member, x->device,
			image_string(x->image, x->image->info.name), g->circle->n);
		fail(g, &bad, f);
	} else if (g->is_failed) {
		fail(g, &g->why, f);
	} else if (check(g, x, &bad)) {
		fail(g, &bad, f);
	}
	return 0;
}

/* After join_lock was let go. */
static void end_turn(struct failing *f, struct rt_gathering *full)
{
	struct rt_gathering *next;

	tell(f);
	for (; full; full = next) {
		next = full->next;
		if (!full->is_failed)
			start(full);
		unref(full);
	}
}

/* It was refused, and the others are not to wait for it. */
static void refuse(struct rt_exe *x, const struct err *why)
{
	struct rt_client *c = x->client;
	struct rt_gathering *full = NULL;
	struct failing f = { NULL };

	pthread_mutex_lock(&c->join_lock);
	come(x, NULL, why, &f, &full, NULL);
	pthread_mutex_unlock(&c->join_lock);
	end_turn(&f, full);
}

int rt_join(const struct rt_run *r, int code, struct rt_buffer **outs, struct rt_event **done,
	    struct err *err)
{
	struct rt_exe *x = r->x[0];
	struct rt_client *c = x->client;
	struct rt_gathering *full = NULL;
	struct failing f = { NULL };
	struct rt_deferred *d;
	struct err why;

	if (!code)
		code = rt_defer(r, &d, &why);
	else
		why = *err;
	if (code) {
		refuse(x, &why);
		*err = why;
		return code;
	}
	/* From when it has come it may be over at any time. */
	rt_deferred_hand_out(d, &outs, done);
	pthread_mutex_lock(&c->join_lock);
	code = come(x, d, NULL, &f, &full, &why);
	pthread_mutex_unlock(&c->join_lock);
	if (code)
		rt_deferred_fail(d, &why);
	end_turn(&f, full);
	return 0;
}

/* ---- the others ---- */

void rt_device_enter(struct rt_client *c, unsigned device)
{
	pthread_mutex_lock(&c->join_lock);
	c->devices[device].has_left = false;
	if (c->world)
		rt_order_leave(c->world, NULL);
	pthread_mutex_unlock(&c->join_lock);
}

void rt_client_return(struct rt_client *c)
{
	for (unsigned i = 0; i < c->n_devices; i++)
		rt_device_enter(c, i);
	if (c->world)
		rt_order_return(c->world);
}

void rt_device_leave(struct rt_client *c, unsigned device, const struct err *why)
{
	struct rt_gathering *full = NULL, *g, *next;
	struct failing f = { NULL };
	struct err bad;
	unsigned n = 0;

	pthread_mutex_lock(&c->join_lock);
	c->devices[device].has_left = true;
	c->devices[device].left = *why;
	for (unsigned i = 0; i < c->n_devices; i++)
		n += c->devices[i].has_left;
	if (c->world && n == c->n_devices)
		rt_order_leave(c->world, why);
	for (struct rt_circle *o = c->circles; o; o = o->next) {
		unsigned m = member_on(o, device);

		for (g = o->first; g && m < o->n; g = next) {
			next = g->next;
			if (g->has_come[m])
				continue;
			never_comes(c, o, m, &bad);
			count(g, m, &full);
			fail(g, &bad, &f);
		}
	}
	pthread_mutex_unlock(&c->join_lock);
	end_turn(&f, full);
}

void rt_device_poison(struct rt_client *c, unsigned device, const struct err *why)
{
	struct rt_device *d = &c->devices[device];
	struct failing f = { NULL };

	pthread_mutex_lock(&d->lock);
	if (!d->is_poisoned)
		d->poison = *why;
	d->is_poisoned = true;
	pthread_mutex_unlock(&d->lock);
	pthread_mutex_lock(&c->join_lock);
	fail_all(c, device, why, &f);
	pthread_mutex_unlock(&c->join_lock);
	tell(&f);
}

void rt_client_close(struct rt_client *c)
{
	struct failing f = { NULL };
	struct err why;

	if (!c || rt_is_orphan(c))
		return;
	closed(&why);
	pthread_mutex_lock(&c->join_lock);
	c->is_closed = true;
	fail_all(c, c->n_devices, &why, &f);
	pthread_mutex_unlock(&c->join_lock);
	tell(&f);
}
