/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Executing: what is to be launched is checked, and launched now or later (deferred.c), or when
 * the other members have come (join.c). Launches with members in other processes come in the order
 * in which they are asked for (order.c), so one that is put off puts off those behind it. What is
 * stored padded to the bounds of its dims goes and comes with its sizes, which callers do not see,
 * and bytes that the program takes as truth values go as copies that are such.
 */
#include <stdlib.h>
#include <string.h>

#include "runtime/rt_internal.h"

/* Whether it meets others in other processes. */
static bool is_across(const struct rt_exe *x)
{
	return x->across;
}

/* ---- with other processes ---- */

static int check_across(const struct rt_run *r, bool *wait, struct err *err)
{
	const struct rt_exe *x = r->x[0];
	const char *name = image_string(x->image, x->image->info.name);
	int code = 0;

	if (r->n != x->across->n_here)
		return err_set(err, ERR_INVALID_ARGUMENT, "%s meets others on %u devices of this "
			       "process: it runs on all of them at once, by one call", name,
			       x->across->n_here);
	if (rt_turn_is_nested())
		return err_set(err, ERR_FAILED_PRECONDITION, "%s meets other processes, and is "
			       "launched by a function of the host, of which they know nothing: "
			       "launch it beside the program that calls the function", name);
	for (unsigned i = 0; !code && i < r->n; i++) {
		bool waits = false;

		code = rt_launch_check(r->x[i], r->args[i], r->n_args, r->keep, &waits, err);
		if (!code)
			code = rt_check_host(r->x[i], NULL, err);
		*wait |= waits;
	}
	return code;
}

/* The ticket is ended, or somebody else's. */
static int launch_in_turn(struct rt_run *r, bool wait, struct rt_ticket *t,
			  struct rt_buffer **const *outs, struct rt_event **done,
			  struct err *err)
{
	struct rt_event *held = NULL;
	struct err unmade = { 0 };
	int code;

	r->ticket = t;
	r->held = &held;
	r->unmade = &unmade;
	if (wait || (t->before && !rt_event_is_ready(t->before))) {
		code = rt_launch_later(r, outs, done, t->before, err);
	} else {
		code = rt_launch_now(r, outs, done, err);
		if (!held) {
			rt_order_end(t, code ? err : unmade.code ? &unmade : NULL);
			return code;
		}
		code = rt_launch_later(r, outs, done, held, err);
		rt_event_unref(held);
	}
	if (code)
		rt_order_end(t, err);
	return code;
}

static int launch_across(struct rt_run *r, struct rt_buffer **const *outs,
			 struct rt_event **done, struct err *err)
{
	struct rt_meeting *g = r->x[0]->across;
	struct rt_ticket t;
	bool wait = false;
	struct err why;
	const struct image *im = r->x[0]->image;
	int code = rt_anew_ask(g, err);

	if (!code)
		code = rt_order_ask(g, image_string(im, im->info.name), &t, err);
	if (code)
		return code;
	/* From here on the others count on it, or on hearing that it failed. */
	code = check_across(r, &wait, &why);
	if (!code)
		code = rt_across_pair(g, &why);
	if (!code)
		code = rt_anew_wait(g, &why);
	if (code)
		rt_order_end(&t, &why);
	else
		code = launch_in_turn(r, wait, &t, outs, done, &why);
	if (code && err)
		*err = why;
	return code;
}

/* ---- one device ---- */

/* Whoever meets others comes with all of them, or alone and waits for the others. */
static int check_whole(const struct rt_exe *x, unsigned n, struct err *err)
{
	const struct image *im = x->image;

	if (!im->n_slots || x->meeting->n == n || (n == 1 && !im->n_transfers))
		return 0;
	return err_set(err, ERR_INVALID_ARGUMENT, "%s %s on %u devices: it runs on all of them at "
		       "once, by one call", image_string(im, im->info.name), im->n_transfers ?
		       "calls the host and meets others" : "meets others", x->meeting->n);
}

/* A function of the host may not ask for what comes only when it has returned. */
static int check_caller(struct rt_exe *const *x, unsigned n, struct err *err)
{
	const struct image *im = x[0]->image;

	if (!rt_is_held_by_caller(x, n))
		return 0;
	return err_set(err, ERR_FAILED_PRECONDITION, "%s is launched by a function of the host, on "
		       "a device of the program that calls the function, or of one that may wait "
		       "for that program, where %s: it may come only when the function has "
		       "returned. Launch it after that, or on %s",
		       image_string(im, im->info.name), im->n_slots ? "both meet others" :
		       "another member may wait for the caller's", im->n_slots ? "other devices" :
		       "the device that the function is called from");
}

static bool waits_for_others(const struct rt_exe *x, unsigned n)
{
	return n == 1 && !is_across(x) && x->image->n_slots && x->meeting->n > 1;
}

static int check_one(struct rt_exe *x, struct rt_buffer *const *args, size_t n_args,
		     const bool *keep, bool *wait, struct err *err)
{
	int code = check_whole(x, 1, err);

	if (!code)
		code = check_caller(&x, 1, err);
	return code ? code : rt_launch_check(x, args, n_args, keep, wait, err);
}

static int execute_one(struct rt_exe *x, struct rt_buffer *const *args, size_t n_args,
		       const bool *keep, struct rt_buffer **outs, struct rt_event **done,
		       struct err *err)
{
	struct rt_run r = { .n = 1, .x = &x, .args = &args, .n_args = n_args, .keep = keep };
	bool wait;
	int code;

	if (is_across(x))
		return launch_across(&r, &outs, done, err);
	code = check_one(x, args, n_args, keep, &wait, err);
	if (!code)
		code = rt_check_host(x, NULL, err);
	if (waits_for_others(x, 1))
		return rt_join(&r, code, outs, done, err);
	if (code)
		return code;
	return wait ? rt_launch_later(&r, &outs, done, NULL, err) :
		      rt_launch_now(&r, &outs, done, err);
}

int rt_execute(struct rt_exe *x, struct rt_buffer *const *args, size_t n_args,
	       const bool *keep, struct rt_buffer **outs, struct rt_event **done,
	       struct err *err)
{
	int code = execute_one(x, args, n_args, keep, outs, done, err);

	rt_caller_launched(x->client, done, code ? 0 : 1);
	return code;
}

/* One member, alone. `host` is copied; on failure it is still the caller's. */
static int execute_with_host(struct rt_exe *x, struct rt_buffer *const *args, size_t n_args,
			     const bool *keep, const struct rt_host *host,
			     struct rt_buffer **outs, struct rt_event **done, struct err *err)
{
	const struct rt_run r = { .n = 1, .x = &x, .args = &args, .n_args = n_args,
				  .keep = keep, .hosts = host };
	bool wait;
	int code = is_across(x) ? 0 : check_one(x, args, n_args, keep, &wait, err);

	if (!code)
		code = rt_check_host(x, host, err);
	if (!code && x->image->n_transfers) {
		code = rt_launch_later(&r, &outs, done, NULL, err);
	} else if (!code) {	/* it has functions that it does not call */
		code = execute_one(x, args, n_args, keep, outs, done, err);
		if (!code)
			host->free(host->arg);
	}
	rt_caller_launched(x->client, done, code ? 0 : 1);
	return code;
}

/* ---- all members ---- */

static int check_all(const struct rt_gang *g, struct rt_buffer *const *const *args,
		     size_t n_args, const bool *keep, bool *wait, struct err *err)
{
	int code = check_whole(g->exe[0], g->n, err);

	if (!code)
		code = check_caller(g->exe, g->n, err);
	if (code)
		return code;
	*wait = false;
	for (unsigned m = 0; m < g->n; m++) {
		bool waits = false;

		code = rt_launch_check(g->exe[m], args[m], n_args, keep, &waits, err);
		if (code && g->n > 1)
			err_add(err, "member %u of %u", m, g->n);
		if (code)
			return code;
		*wait |= waits;
	}
	return 0;
}

/* All together, now or when they may be. hosts: as in struct rt_run. */
static int launch_gang(const struct rt_gang *g, struct rt_buffer *const *const *args,
		       size_t n_args, const bool *keep, const struct rt_host *hosts, bool wait,
		       struct rt_buffer **const *outs, struct rt_event **done, struct err *err)
{
	struct rt_event *held = NULL;
	const struct rt_run r = { .n = g->n, .x = g->exe, .args = args, .n_args = n_args,
				  .keep = keep, .hosts = hosts, .held = &held };
	int code;

	if (wait || hosts)
		return rt_launch_later(&r, outs, done, NULL, err);
	code = rt_launch_now(&r, outs, done, err);
	if (!held)
		return code;
	code = rt_launch_later(&r, outs, done, held, err);
	rt_event_unref(held);
	return code;
}

/* The only member that comes by this call; code: why it can't. */
static int join(const struct rt_gang *g, struct rt_buffer *const *const *args, size_t n_args,
		const bool *keep, int code, struct rt_buffer **const *outs, struct rt_event **done,
		struct err *err)
{
	const struct rt_run r = { .n = 1, .x = g->exe, .args = args, .n_args = n_args,
				  .keep = keep };

	return rt_join(&r, code, outs[0], done, err);
}

static int execute_gang(const struct rt_gang *g, struct rt_buffer *const *const *args,
			size_t n_args, const bool *keep, struct rt_buffer **const *outs,
			struct rt_event **done, struct err *err)
{
	bool wait;
	int code;

	if (is_across(g->exe[0])) {
		struct rt_run r = { .n = g->n, .x = g->exe, .args = args, .n_args = n_args,
				    .keep = keep };

		return launch_across(&r, outs, done, err);
	}
	code = check_all(g, args, n_args, keep, &wait, err);
	if (!code)
		code = rt_check_host(g->exe[0], NULL, err);
	if (waits_for_others(g->exe[0], g->n))
		return join(g, args, n_args, keep, code, outs, done, err);
	return code ? code : launch_gang(g, args, n_args, keep, NULL, wait, outs, done, err);
}

int rt_execute_gang(const struct rt_gang *g, struct rt_buffer *const *const *args, size_t n_args,
		    const bool *keep, struct rt_buffer **const *outs, struct rt_event **done,
		    struct err *err)
{
	int code = execute_gang(g, args, n_args, keep, outs, done, err);

	rt_caller_launched(g->exe[0]->client, done, code ? 0 : g->n);
	return code;
}

/* Members that meet: served together. Takes the hosts, if it succeeds. */
static int execute_meeting_with_hosts(const struct rt_gang *g,
				      struct rt_buffer *const *const *args, size_t n_args,
				      const bool *keep, const struct rt_host *hosts,
				      struct rt_buffer **const *outs, struct rt_event **done,
				      struct err *err)
{
	bool calls = g->exe[0]->image->n_transfers, is_far = is_across(g->exe[0]), wait;
	int code = is_far ? 0 : check_all(g, args, n_args, keep, &wait, err);

	for (unsigned m = 0; !code && calls && m < g->n; m++)
		code = rt_check_host(g->exe[m], &hosts[m], err);
	if (is_far)	/* it calls none */
		code = rt_execute_gang(g, args, n_args, keep, outs, done, err);
	else if (waits_for_others(g->exe[0], g->n))
		code = join(g, args, n_args, keep, code, outs, done, err);
	else if (!code)
		code = launch_gang(g, args, n_args, keep, calls ? hosts : NULL, wait, outs, done,
				   err);
	rt_caller_launched(g->exe[0]->client, done, code ? 0 : g->n);
	for (unsigned m = 0; !code && !calls && m < g->n; m++)
		hosts[m].free(hosts[m].arg);
	return code;
}

int rt_execute_gang_with_hosts(const struct rt_gang *g, struct rt_buffer *const *const *args,
			       size_t n_args, const bool *keep, const struct rt_host *hosts,
			       struct rt_buffer **const *outs, struct rt_event **done,
			       struct err *err)
{
	bool meets = g->exe[0]->image->n_slots, wait;
	unsigned n = 0;
	int code;

	if (meets)
		code = execute_meeting_with_hosts(g, args, n_args, keep, hosts, outs, done, err);
	else
		code = check_all(g, args, n_args, keep, &wait, err);
	while (!code && !meets && n < g->n) {
		code = execute_with_host(g->exe[n], args[n], n_args, keep, &hosts[n], outs[n],
					 &done[n], err);
		n += !code;
	}
	if (!code)
		return 0;
	rt_caller_launched(g->exe[0]->client, NULL, 0);
	for (unsigned m = n; m < g->n; m++)
		hosts[m].free(hosts[m].arg);
	while (n--) {
		for (unsigned i = 0; i < g->exe[n]->image->info.n_results; i++) {
			rt_buffer_unref(outs[n][i]);
			outs[n][i] = NULL;
		}
		rt_event_unref(done[n]);
		done[n] = NULL;
	}
	return code;
}

/* ---- sizes of arguments and results, and bytes as truth values ---- */

/* torch_xla computes some truth values as bytes (torch.sign of them). */
static bool is_truth_in_bytes(const struct rt_buffer *b, const struct image_shape *want)
{
	return want->elem == ELEM_PRED && (b->shape.elem == ELEM_U8 || b->shape.elem == ELEM_S8) &&
	       b->shape.rank == want->rank &&
	       !memcmp(b->shape.dim, want->dim, want->rank * sizeof(*want->dim));
}

bool rt_sized_is_due(const struct rt_exe *x, struct rt_buffer *const *args, size_t n_args)
{
	const struct image *im = x->image;
	bool is_due = image_n_arg_sizes(im) || image_n_result_sizes(im);

	for (size_t i = 0; !is_due && i < n_args && i < im->info.n_args; i++)
		is_due = is_truth_in_bytes(args[i], &im->shapes[i]);
	return is_due;
}

static int sizes_of_shape(struct rt_buffer *b, struct rt_buffer **out, struct err *err)
{
	const struct rt_shape shape = { .elem = ELEM_S32, .rank = 1, .dim = { b->shape.rank } };
	int32_t size[IMAGE_MAX_RANK];

	for (unsigned d = 0; d < b->shape.rank; d++)
		size[d] = (int32_t)b->shape.dim[d];
	return rt_buffer_from_host(b->client, b->device, RT_DEVICE, &shape, size, NULL, out, err);
}

/* Whether argument i, of the kind that the program takes, is no longer than it may be. */
static int check_bounds(const struct rt_buffer *b, const struct image_shape *want, unsigned i,
			struct err *err)
{
	for (unsigned d = 0; d < b->shape.rank; d++) {
		bool may_be_less = want->bounded >> d & 1;

		if (may_be_less ? b->shape.dim[d] > want->dim[d] : b->shape.dim[d] != want->dim[d])
			return err_set(err, ERR_INVALID_ARGUMENT, "dim %u of argument %u is %lld: "
				       "the program takes %s%lld", d, i,
				       (long long)b->shape.dim[d], may_be_less ? "at most " : "",
				       (long long)want->dim[d]);
		if (b->sizes && may_be_less && b->shape.dim[d] != want->dim[d])
			return err_set(err, ERR_INVALID_ARGUMENT, "dim %u of argument %u has a "
				       "bound of %lld: the program takes arrays with one of %lld, "
				       "or such as are as long as they say", d, i,
				       (long long)b->shape.dim[d], (long long)want->dim[d]);
	}
	return 0;
}

/* Argument i, which has bounds in the program: the array and its sizes. What is no array of the
 * kind at all is left to the launch to refuse. */
static int fit(struct rt_sized *s, const struct image_shape *want, unsigned i,
	       struct rt_buffer *b, struct rt_buffer **sizes, struct err *err)
{
	struct rt_buffer *made = NULL;
	struct rt_shape shape;
	int code;

	*sizes = b;
	if (b->shape.elem != want->elem || b->shape.rank != want->rank)
		return 0;
	code = check_bounds(b, want, i, err);
	if (!code && b->sizes) {
		*sizes = b->sizes;
		return 0;
	}
	if (!code)
		code = sizes_of_shape(b, sizes, err);
	if (code)
		return code;
	s->made[s->n_made++] = *sizes;
	rt_shape_of(want, &shape);
	shape.bounded = 0;
	if (!memcmp(shape.dim, b->shape.dim, shape.rank * sizeof(*shape.dim)))
		return 0;
	code = rt_buffer_padded(b, &shape, &made, err);
	if (code)
		return code;
	s->in[i] = made;
	s->made[s->n_made++] = made;
	return 0;
}

/* Argument i, of bytes that the program takes as truth values. */
static int read_truth(struct rt_sized *s, unsigned i, struct err *err)
{
	struct rt_buffer *made;
	int code = rt_buffer_as_truth(s->args[i], &made, err);

	if (!code)
		s->in[i] = s->made[s->n_made++] = made;
	return code;
}

int rt_sized_begin(const struct rt_exe *x, struct rt_buffer *const *args, size_t n_args,
		   const bool *keep, struct rt_sized *s, struct err *err)
{
	const struct image *im = x->image;
	uint32_t n_in = im->info.n_args, n_sizes = image_n_arg_sizes(im), at = n_in - n_sizes;
	int code = 0;

	*s = (struct rt_sized){ .n_args = n_in, .n_outs = im->info.n_results,
				.n_seen = im->info.n_results - image_n_result_sizes(im),
				.args = args, .image = im };
	if (n_args != at)
		return err_set(err, ERR_INVALID_ARGUMENT, "%s takes %u arguments, not %zu",
			       image_string(im, im->info.name), at, n_args);
	s->in = calloc(n_in + 1u, sizeof(*s->in));
	s->out = calloc(s->n_outs + 1u, sizeof(*s->out));
	s->keep = calloc(n_in + 1u, sizeof(*s->keep));
	s->made = calloc(n_args + 2 * (size_t)n_sizes + 1, sizeof(*s->made));
	if (!s->in || !s->out || !s->keep || !s->made)
		code = err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory");
	for (unsigned i = 0; !code && i < n_args; i++) {
		s->in[i] = args[i];
		s->keep[i] = keep && keep[i];
		if (im->shapes[i].bounded)
			code = fit(s, &im->shapes[i], i, args[i], &s->in[at++], err);
		else if (is_truth_in_bytes(args[i], &im->shapes[i]))
			code = read_truth(s, i, err);
	}
	if (code)
		rt_sized_end(s, false, NULL);
	return code;
}

void rt_sized_end(struct rt_sized *s, bool has_run, struct rt_buffer **outs)
{
	const struct image *im = s->image;
	unsigned at = s->n_seen, n_args = im->info.n_args - image_n_arg_sizes(im);

	/* The launch took the copy. */
	for (unsigned i = 0; has_run && i < n_args; i++)
		if (s->in[i] != s->args[i] && im->shapes[i].alias >= 0 && !s->keep[i])
			rt_buffer_delete(s->args[i]);
	for (unsigned i = 0; has_run && i < s->n_seen; i++) {
		outs[i] = s->out[i];
		if (im->shapes[im->info.n_args + i].bounded)
			rt_buffer_give_sizes(outs[i], s->out[at++]);
	}
	for (unsigned i = s->n_seen; has_run && i < s->n_outs; i++)
		rt_buffer_unref(s->out[i]);
	while (s->n_made)
		rt_buffer_unref(s->made[--s->n_made]);
	free(s->in);
	free(s->out);
	free(s->keep);
	free(s->made);
}
