/* SPDX-License-Identifier: Apache-2.0 */
/* Executables: a program loaded on one device, or on one for each of its members, until the
 * last run of it is over. */
#include <stdlib.h>
#include <string.h>

#include "runtime/rt_internal.h"

/* ---- life ---- */

static void free_exe(struct rt_exe *x)
{
	struct rt_client *c = x->client;

	hal_exe_unload(x->hal);
	rt_scratch_leave(x);
	rt_meeting_unref(x->meeting);
	rt_meeting_unref(x->across);
	rt_called_unref(x->called);
	rt_program_unref(x->program);
	free(x);
	rt_client_unref(c);
}

static void free_job(void *arg)
{
	free_exe(arg);
}

/* On the device's waiter thread, which must not wait. */
static void is_idle(void *arg, const struct err *err)
{
	struct rt_exe *x = arg;

	(void)err;
	if (rt_later(x->client, free_job, x, NULL)) {
		rt_in_callback++;
		free_exe(x);
		rt_in_callback--;
	}
}

void rt_exe_ref(struct rt_exe *x)
{
	atomic_fetch_add(&x->refs, 1);
}

void rt_exe_unref(struct rt_exe *x)
{
	struct hal_queue *q;
	uint64_t last;

	if (!x || atomic_fetch_sub(&x->refs, 1) != 1 || rt_is_orphan(x->client))
		return;
	q = x->client->devices[x->device].queue;
	last = atomic_load(&x->last_use);
	rt_scratch_leave(x);
	/* Its queued runs need it, however long they take; its owner need not wait. */
	if (!last || hal_queue_done(q) >= last || hal_queue_notify(q, last, is_idle, x, NULL))
		free_exe(x);
}

static int load(struct rt_client *c, unsigned device, struct rt_program *p,
		struct rt_exe **out, struct err *err)
{
	struct rt_exe *x = calloc(1, sizeof(*x));
	int code;

	if (!x)
		return err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory");
	atomic_init(&x->refs, 1);
	x->client = c;
	rt_client_ref(c);
	x->device = device;
	x->program = p;
	rt_program_ref(p);
	x->image = p->image;
	code = image_draws(p->image) ? rt_need_random(c, device, err) : 0;
	if (!code)
		code = hal_exe_load_kept(c->devices[device].hal, p->bytes, p->n_bytes, &x->hal,
					 err);
	if (code == ERR_RESOURCE_EXHAUSTED) {
		rt_make_room(c, device);
		code = hal_exe_load_kept(c->devices[device].hal, p->bytes, p->n_bytes,
					 &x->hal, err);
	}
	if (code) {
		free_exe(x);
		return code;
	}
	rt_scratch_join(x);
	*out = x;
	return 0;
}

/* ---- all members ---- */

void rt_free_gang(struct rt_gang *g)
{
	for (unsigned i = 0; i < g->n; i++)
		rt_exe_unref(g->exe[i]);
	free(g->exe);
	free(g->ids);
	*g = (struct rt_gang){ 0 };
}

/* Where a program is to run, by options. */
struct place {
	struct rt_counts members;
	unsigned *ids;		/* of each; malloc'd */
	unsigned n_here;	/* so many are this process's */
};

/* The number that a device has in this process; -1: it is another's. */
static int local_of(const struct rt_client *c, unsigned id)
{
	unsigned first = rt_first_id(c);

	return id >= first && id - first < c->n_devices ? (int)(id - first) : -1;
}

static int find_place(const struct rt_client *c, const void *options, size_t bytes,
		      struct place *out, struct err *err)
{
	const struct rt_ids all = { rt_global_count(c), rt_first_id(c), c->n_devices };
	int code;

	out->ids = malloc(all.n * sizeof(*out->ids));
	code = out->ids ? rt_parse_options(all, options, bytes, out->ids, &out->members, err) :
			  err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory");
	out->n_here = 0;
	for (unsigned m = 0; !code && m < out->members.replicas * out->members.partitions; m++)
		out->n_here += local_of(c, out->ids[m]) >= 0;
	if (!code && !out->n_here)
		code = err_set(err, ERR_INVALID_ARGUMENT, "none of the devices that the program is "
			       "for, %u and so on, is this process's: those are %u to %u",
			       out->ids[0], all.first, all.first + all.n_own - 1);
	if (code)
		free(out->ids);
	return code;
}

/* What they need to meet, a reference for each. */
static int join(struct rt_client *c, const struct rt_gang *g, const struct place *at,
		struct err *err)
{
	struct rt_program *p = g->exe[0]->program;
	bool is_across = p->image->n_slots && g->n < image_n_members(p->image);
	struct rt_meeting *m, *across = NULL;
	int code;

	if (!rt_meeting_is_needed(p->image))
		return 0;
	code = rt_meeting_new(c, p->image, at->ids, is_across ? RT_ROWS : RT_BOXES | RT_ROWS, &m,
			      err);
	if (code)
		return code;
	if (is_across)
		code = rt_across_join(c, p, at->ids, &across, err);
	for (unsigned i = 0; !code && i < g->n; i++) {
		atomic_fetch_add(&m->refs, 1);
		g->exe[i]->meeting = m;
		if (across)
			atomic_fetch_add(&across->refs, 1);
		g->exe[i]->across = across;
	}
	rt_meeting_unref(m);
	rt_meeting_unref(across);
	return code;
}

/* The functions that it calls by name, which all members share. Errors are the functions' own. */
static int find_functions(struct rt_client *c, struct rt_gang *g, struct err *err)
{
	struct rt_called *called;
	int code = rt_called_new(c, g->exe[0]->image, &called, err);

	if (code) {
		rt_free_gang(g);
		return code;
	}
	for (unsigned i = 0; called && i < g->n; i++) {
		atomic_fetch_add(&called->refs, 1);
		g->exe[i]->called = called;
	}
	rt_called_unref(called);
	return 0;
}

/* Whether the program was compiled for so many. */
static int check_members(const struct rt_program *p, struct rt_counts n, struct err *err)
{
	const struct image_info *i = &p->image->info;

	if (i->n_replicas == n.replicas && i->n_partitions == n.partitions)
		return 0;
	return err_set(err, ERR_INVALID_ARGUMENT, "%s was compiled for %u replicas of %u "
		       "partitions; the options that it is loaded with ask for %u of %u: compile "
		       "it for these", image_string(p->image, i->name), i->n_replicas,
		       i->n_partitions, n.replicas, n.partitions);
}

static int load_all(struct rt_client *c, const struct place *at, struct rt_program *p,
		    struct rt_gang *out, struct err *err)
{
	unsigned n = at->members.replicas * at->members.partitions;
	struct rt_gang g = { .members = at->members, .exe = calloc(at->n_here, sizeof(*g.exe)),
			     .ids = malloc(n * sizeof(*g.ids)) };
	int code = g.exe && g.ids ? check_members(p, at->members, err) :
				    err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory");

	if (g.ids)
		memcpy(g.ids, at->ids, n * sizeof(*g.ids));
	for (unsigned m = 0; !code && m < n; m++) {
		int device = local_of(c, at->ids[m]);

		if (device < 0)
			continue;
		code = load(c, (unsigned)device, p, &g.exe[g.n], err);
		if (!code)
			g.exe[g.n++]->member = m;
	}
	if (!code)
		code = join(c, &g, at, err);
	if (code)
		rt_free_gang(&g);
	else
		*out = g;
	return code;
}

/* A device that refuses what was just compiled for it: nothing is wrong with the source. */
static int not_the_users(int status, struct err *err)
{
	if (status != ERR_INVALID_ARGUMENT)
		return status;
	if (err)
		err->code = ERR_INTERNAL;
	return ERR_INTERNAL;
}

/* Of the first device that is here; those of other processes are like it. */
static const struct hal_device_info *device_info(const struct rt_client *c,
						 const struct place *at)
{
	unsigned m = 0;

	while (local_of(c, at->ids[m]) < 0)
		m++;
	return &c->devices[local_of(c, at->ids[m])].info;
}

static bool has_all(const struct place *at)
{
	return at->n_here == at->members.replicas * at->members.partitions;
}

static struct rt_target target_of(const struct rt_client *c, const struct place *at)
{
	const struct hal_device_info *info = device_info(c, at);

	return (struct rt_target){ info->cores, info->hbm_bytes, has_all(at), c->partitioners };
}

static int compile(struct rt_client *c, const struct place *at, const void *code,
		   size_t code_bytes, const char *format, const void *options,
		   size_t options_bytes, struct rt_gang *out, struct err *err)
{
	const struct rt_target target = target_of(c, at);
	struct rt_program *p;
	bool was_cached = false;
	int status;

	status = rt_program_make(&target, code, code_bytes, format, options, options_bytes,
				 &was_cached, &p, err);
	if (status)
		return status;
	status = load_all(c, at, p, out, err);
	rt_program_unref(p);
	if (!was_cached)
		return not_the_users(status, err);
	if (status != ERR_INVALID_ARGUMENT && status != ERR_UNIMPLEMENTED)
		return status;
	/* It was whole but this device refuses it: written by another build. */
	status = rt_program_make(&target, code, code_bytes, format, options, options_bytes,
				 &was_cached, &p, err);
	if (status)
		return status;
	status = load_all(c, at, p, out, err);
	rt_program_unref(p);
	return not_the_users(status, err);
}

int rt_compile_gang(struct rt_client *c, const void *code, size_t code_bytes,
		    const char *format, const void *options, size_t options_bytes,
		    struct rt_gang *out, struct err *err)
{
	struct place at;
	int status = find_place(c, options, options_bytes, &at, err);

	if (status)
		return status;
	status = compile(c, &at, code, code_bytes, format, options, options_bytes, out, err);
	free(at.ids);
	return status ? status : find_functions(c, out, err);
}

int rt_load_gang(struct rt_client *c, struct rt_program *p, const void *options,
		 size_t options_bytes, struct rt_gang *out, struct err *err)
{
	struct place at;
	int code;

	if (!options_bytes) {
		options = p->options;
		options_bytes = p->options_bytes;
	}
	code = find_place(c, options, options_bytes, &at, err);
	if (code)
		return code;
	if (image_is_for_one_process(p->image) && !has_all(&at))
		code = compile(c, &at, p->source, p->source_bytes, p->format, p->options,
			       p->options_bytes, out, err);
	else
		code = load_all(c, &at, p, out, err);
	free(at.ids);
	return code ? code : find_functions(c, out, err);
}

/* ---- one device ---- */

/* The only member's reference; the gang is empty then. */
static int take_only(struct rt_gang *g, struct rt_exe **out, struct err *err)
{
	unsigned n = g->members.replicas * g->members.partitions;

	if (n == 1) {
		*out = g->exe[0];
		rt_exe_ref(*out);
	}
	rt_free_gang(g);
	return n == 1 ? 0 : err_set(err, ERR_INVALID_ARGUMENT, "the options ask for %u devices, "
				    "the caller for a program on one", n);
}

int rt_compile(struct rt_client *c, const void *code, size_t code_bytes, const char *format,
	       const void *options, size_t options_bytes, struct rt_exe **out,
	       struct err *err)
{
	struct rt_gang g;
	int status = rt_compile_gang(c, code, code_bytes, format, options, options_bytes, &g, err);

	return status ? status : take_only(&g, out, err);
}

int rt_load(struct rt_client *c, struct rt_program *p, const void *options,
	    size_t options_bytes, struct rt_exe **out, struct err *err)
{
	struct rt_gang g;
	int code = rt_load_gang(c, p, options, options_bytes, &g, err);

	return code ? code : take_only(&g, out, err);
}

/* ---- asking ---- */

struct rt_program *rt_exe_program(const struct rt_exe *x)
{
	return x->program;
}

unsigned rt_exe_device(const struct rt_exe *x)
{
	return x->device;
}

unsigned rt_exe_member(const struct rt_exe *x)
{
	return x->member;
}

void rt_exe_delete(struct rt_exe *x)
{
	atomic_store(&x->is_deleted, true);
	if (!rt_is_orphan(x->client))
		rt_scratch_leave(x);
}

bool rt_exe_is_deleted(struct rt_exe *x)
{
	return atomic_load(&x->is_deleted);
}
