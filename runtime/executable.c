/* SPDX-License-Identifier: Apache-2.0 */
/* Executables: a program loaded on one device, until the last run of it is over. */
#include <stdlib.h>

#include "runtime/rt_internal.h"

/* ---- life ---- */

static void free_exe(struct rt_exe *x)
{
	struct rt_client *c = x->client;

	hal_exe_unload(x->hal);
	rt_scratch_leave(x);
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

/* A device that refuses what was just compiled for it: nothing is wrong with the source. */
static int not_the_users(int status, struct err *err)
{
	if (status != ERR_INVALID_ARGUMENT)
		return status;
	if (err)
		err->code = ERR_INTERNAL;
	return ERR_INTERNAL;
}

static int compile(struct rt_client *c, unsigned device, const void *code, size_t code_bytes,
		   const char *format, const void *options, size_t options_bytes,
		   struct rt_exe **out, struct err *err)
{
	struct rt_target target;
	struct rt_program *p;
	bool was_cached = false;
	int status;

	target.cores = c->devices[device].info.cores;
	target.memory_bytes = c->devices[device].info.hbm_bytes;
	status = rt_program_make(&target, code, code_bytes, format, options, options_bytes,
				 &was_cached, &p, err);
	if (status)
		return status;
	status = load(c, device, p, out, err);
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
	status = load(c, device, p, out, err);
	rt_program_unref(p);
	return not_the_users(status, err);
}

/* The devices that the options name, malloc'd; NULL and an error. */
static unsigned *find_devices(const struct rt_client *c, const void *options, size_t bytes,
			      unsigned *n, int *code, struct err *err)
{
	unsigned *devices = malloc(c->n_devices * sizeof(*devices));

	*code = devices ? rt_parse_options(c->n_devices, options, bytes, devices, n, err) :
			  err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory");
	if (!*code)
		return devices;
	free(devices);
	return NULL;
}

int rt_compile(struct rt_client *c, const void *code, size_t code_bytes, const char *format,
	       const void *options, size_t options_bytes, struct rt_exe **out,
	       struct err *err)
{
	unsigned n, *devices;
	int status;

	devices = find_devices(c, options, options_bytes, &n, &status, err);
	if (devices)
		status = compile(c, devices[0], code, code_bytes, format, options,
				 options_bytes, out, err);
	free(devices);
	return status;
}

int rt_load(struct rt_client *c, struct rt_program *p, const void *options,
	    size_t options_bytes, struct rt_exe **out, struct err *err)
{
	unsigned n, *devices;
	int code;

	if (!options_bytes) {
		options = p->options;
		options_bytes = p->options_bytes;
	}
	devices = find_devices(c, options, options_bytes, &n, &code, err);
	if (devices)
		code = load(c, devices[0], p, out, err);
	free(devices);
	return code;
}

/* ---- replicas ---- */

void rt_free_replicas(struct rt_replicas *r)
{
	for (unsigned i = 0; i < r->n; i++)
		rt_exe_unref(r->exe[i]);
	free(r->exe);
	*r = (struct rt_replicas){ 0 };
}

/* The first replica's executable, of which it takes the reference, and the others. */
static int load_others(struct rt_client *c, struct rt_exe *first, const unsigned *devices,
		       unsigned n, struct rt_replicas *out, struct err *err)
{
	struct rt_replicas r = { .n = 1, .exe = calloc(n, sizeof(*r.exe)) };
	int code = 0;

	if (!r.exe) {
		rt_exe_unref(first);
		return err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory");
	}
	r.exe[0] = first;
	while (!code && r.n < n) {
		code = load(c, devices[r.n], first->program, &r.exe[r.n], err);
		r.n += !code;
	}
	if (code)
		rt_free_replicas(&r);
	else
		*out = r;
	return code;
}

int rt_compile_replicas(struct rt_client *c, const void *code, size_t code_bytes,
			const char *format, const void *options, size_t options_bytes,
			struct rt_replicas *out, struct err *err)
{
	unsigned n, *devices;
	struct rt_exe *first;
	int status;

	devices = find_devices(c, options, options_bytes, &n, &status, err);
	if (devices)
		status = compile(c, devices[0], code, code_bytes, format, options,
				 options_bytes, &first, err);
	if (!status)
		status = load_others(c, first, devices, n, out, err);
	free(devices);
	return status;
}

int rt_load_replicas(struct rt_client *c, struct rt_program *p, const void *options,
		     size_t options_bytes, struct rt_replicas *out, struct err *err)
{
	unsigned n, *devices;
	struct rt_exe *first;
	int code;

	if (!options_bytes) {
		options = p->options;
		options_bytes = p->options_bytes;
	}
	devices = find_devices(c, options, options_bytes, &n, &code, err);
	if (devices)
		code = load(c, devices[0], p, &first, err);
	if (!code)
		code = load_others(c, first, devices, n, out, err);
	free(devices);
	return code;
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
