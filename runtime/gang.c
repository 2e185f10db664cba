/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Launches by all their members: of a program for one device, or for several that may meet.
 *
 * Nothing is submitted before all can be: arguments taken, results and scratch made, all
 * devices locked, all addresses asked. Members that meet wait for each other on their devices, so
 * two launches that share devices have to be in one order on all of these: client.gang_lock
 * is held from the first address to the last submission. What is queued then is always whole
 * launches, of which the oldest waits for nobody that is not running, or that the host serves;
 * that takes the same locks. So who has to wait, for a full ring or temporaries, holds none.
 */
#include <stdlib.h>

#include "runtime/rt_internal.h"

static void unlock_all(struct rt_launch *l, unsigned n)
{
	while (n)
		rt_launch_unlock(&l[--n]);
}

static int of_member(const struct rt_launch *l, unsigned n, int code, struct err *err)
{
	if (n > 1)
		err_add(err, "member %u, on device %u", l->x->member, l->x->device);
	return code;
}

/* In the devices' order. Not *is_ready: it would have to wait, and nothing is locked. */
static int lock_all(struct rt_launch *l, unsigned n, bool *is_ready, struct err *err)
{
	for (unsigned i = 0; i < n; i++) {
		int code = rt_launch_lock(&l[i], err);

		*is_ready = !code && rt_launch_is_ready(&l[i]);
		if (*is_ready)
			continue;
		unlock_all(l, code ? i : i + 1);
		return code ? of_member(&l[i], n, code, err) : 0;
	}
	return 0;
}

/* The client's thread, which makes what was deferred, does not wait for room: what keeps a ring
 * full may be a member that waits for a function of the host, and that for the thread. */
static int get_ready(const struct rt_launch *l, unsigned n, struct rt_event **held,
		     struct err *err)
{
	bool may_come_later = l->was_deferred && !l->host;

	for (unsigned i = 0; i < n; i++) {
		int code = rt_launch_get_ready(&l[i], may_come_later ? held : NULL, err);

		if (code)
			return of_member(&l[i], n, code, err);
	}
	return 0;
}

/* Some were submitted, l[missing] was not: those would wait for it. */
static void abandon(struct rt_launch *l, unsigned missing, const struct err *why)
{
	struct rt_client *c = l->x->client;
	struct rt_meeting *g = l->meeting;

	if (!g || !rt_meeting_abandon(g, l[missing].x->member))
		return;
	/* Earlier launches, also on devices that are not reset, may hear of the resets first. */
	for (unsigned i = 0; i < c->n_devices; i++)
		hal_queue_blame(c->devices[i].queue, why->msg);
	for (unsigned i = 0; i < missing; i++)
		hal_queue_reset(l[i].x->client->devices[l[i].x->device].queue, why->msg, NULL);
}

/* Under all locks. */
static int submit_all(struct rt_launch *l, unsigned n, struct err *err)
{
	struct err why;
	int code = 0;

	for (unsigned i = 0; !code && i < n; i++)
		code = rt_launch_bind(&l[i], err);
	for (unsigned i = 0; !code && i < n; i++)
		code = rt_launch_bind_peers(&l[i], l, n, err);
	for (unsigned i = 0; !code && i < n; i++) {
		code = rt_launch_submit(&l[i], &why);
		if (code && err)
			*err = why;
		if (code && i)
			abandon(l, i, &why);
	}
	return code;
}

static void note_failures(struct rt_launch *l, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		l[i].n_failures = hal_queue_failures(l[i].x->client->devices[l[i].x->device].queue);
}

static bool has_failed(const struct rt_launch *l, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (hal_queue_failures(l[i].x->client->devices[l[i].x->device].queue) !=
		    l[i].n_failures)
			return true;
	return false;
}

/*
 * Members in this process that meet. What fails after addresses were asked for leaves counts in a
 * mailbox by which its member would take old content for what the others are yet to send: then all
 * is asked anew, or, where only the submission finds it, the launch fails.
 */
static bool may_ask_anew(const struct rt_launch *l)
{
	return l->meeting && !l->meeting->world && l->meeting->image->n_slots;
}

/* Under client.gang_lock. hold, or NULL: holds the devices from then on. Not *is_ready: it
 * would have to wait, and nothing is launched. */
static int launch_meeting(struct rt_launch *l, unsigned n, struct rt_event **held,
			  struct rt_event *hold, bool *is_ready, struct err *err)
{
	struct rt_meeting *g = l->meeting;
	int code;

	if (g && g->image->n_slots) {
		*held = rt_find_hold(l, n);
		if (*held)
			return err_set(err, ERR_ABORTED, "a program that calls the host holds "
				       "a device");
	}
	if (may_ask_anew(l))
		note_failures(l, n);
	code = g ? rt_meeting_begin(g, l->number, err) : 0;
	/* Who has a program of its own has a row of its own. */
	for (unsigned i = 0; !code && i < n; i++)
		if (l[i].x->meeting != g)
			code = rt_meeting_renew_row(l[i].x->meeting, l[i].x->member, err);
	if (!code)
		code = lock_all(l, n, is_ready, err);
	if (code || !*is_ready)
		return code;
	*is_ready = !may_ask_anew(l) || !has_failed(l, n);
	if (*is_ready)
		code = submit_all(l, n, err);
	unlock_all(l, n);
	if (!*is_ready)
		return 0;
	if (!code && hold)
		rt_hold(l, n, hold);
	return code;
}

static int launch_all(struct rt_launch *l, unsigned n, struct rt_event **held,
		      struct rt_event *hold, struct err *err)
{
	struct rt_meeting *g = l->meeting;
	struct rt_client *c = l->x->client;
	bool is_ready = false;
	int code = 0;

	for (unsigned i = 0; !code && i < n; i++)
		code = rt_launch_make_results(&l[i], err);
	while (!code && !is_ready) {
		if (g)
			pthread_mutex_lock(&c->gang_lock);
		code = launch_meeting(l, n, held, hold, &is_ready, err);
		if (g)
			pthread_mutex_unlock(&c->gang_lock);
		if (!code && !is_ready)
			code = get_ready(l, n, held, err);
	}
	return code;
}

/* The first error that a member's argument holds; all of them compute with it. */
static int argument_error(const struct rt_launch *l, unsigned n, struct err *why)
{
	int code = 0;

	for (unsigned i = 0; !code && i < n; i++)
		code = rt_launch_argument_error(&l[i], why);
	return code;
}

/* Launches, and serves the host's part, if there is one. */
static int launch_and_serve(struct rt_launch *l, unsigned n, struct rt_event **held,
			    struct err *err)
{
	struct rt_event *hold;
	int code;

	if (!l->host || n == 1) {
		code = launch_all(l, n, held, NULL, err);
		return !code && l->host ? rt_launch_run_calls(l, NULL, err) : code;
	}
	hold = rt_event_new();
	if (!hold)
		return err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory");
	code = launch_all(l, n, held, hold, err);
	if (!code) {
		code = rt_run_all_calls(l, n, hold, err);
		rt_end_hold(l, n, hold);
	}
	rt_event_unref(hold);
	return code;
}

static int run(const struct rt_run *r, struct rt_launch *l, struct err *err)
{
	unsigned n = r->n;
	struct err why;
	bool is_spoilt;
	int code = 0;

	note_failures(l, n);
	if (argument_error(l, n, &why)) {
		if (r->unmade)
			*r->unmade = why;
		for (unsigned i = 0; !code && i < n; i++)
			code = rt_launch_spread(&l[i], &why, err);
		return code;
	}
	code = launch_and_serve(l, n, r->held, err);
	/* What failed behind its submission may run yet. */
	for (unsigned i = 0; i < n; i++)
		if (l[i].value)
			rt_launch_finish(&l[i]);
	if (code)
		return code;
	/* What wrote an argument may have failed just before this was submitted. */
	is_spoilt = argument_error(l, n, &why);
	for (unsigned i = 0; !code && i < n; i++)
		code = is_spoilt ? rt_launch_spoil(&l[i], &why, err) : rt_launch_tell(&l[i], err);
	return code;
}

/* Fills in the members, in the order of their devices. */
static void list_members(const struct rt_run *r, struct rt_buffer **const *outs,
			 struct rt_event **done, struct rt_launch *l)
{
	for (unsigned i = 0; i < r->n; i++) {
		unsigned at = i;

		for (; at && l[at - 1].x->device > r->x[i]->device; at--)
			l[at] = l[at - 1];
		done[i] = NULL;
		l[at] = (struct rt_launch){ .x = r->x[i], .args = r->args[i], .outs = outs[i],
					    .done = &done[i],
					    .keep = r->keep_of ? r->keep_of[i] : r->keep,
					    .was_deferred = r->was_deferred,
					    .meeting = r->meeting ? r->meeting :
						       r->x[i]->across ? r->x[i]->across :
						       r->x[i]->meeting,
					    .number = r->ticket ? r->ticket->number : 0,
					    .host = r->hosts ? &r->hosts[i] : NULL };
	}
}

int rt_launch_now(const struct rt_run *r, struct rt_buffer **const *outs,
		  struct rt_event **done, struct err *err)
{
	struct rt_launch one, *l = r->n == 1 ? &one : calloc(r->n, sizeof(*l));
	struct rt_launch_room few;
	unsigned n = 0;
	int code = 0;

	if (!l)
		return err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory");
	list_members(r, outs, done, l);
	while (!code && n < r->n)
		code = rt_launch_take(&l[n++], l == &one ? &few : NULL, err);
	if (!code)
		code = run(r, l, err);
	for (unsigned i = 0; i < n; i++)
		rt_launch_end(&l[i], code != 0);
	for (unsigned i = 0; code && i < r->n; i++) {
		rt_event_unref(done[i]);
		done[i] = NULL;
	}
	if (l != &one)
		free(l);
	return code;
}
