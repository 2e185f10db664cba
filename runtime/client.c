/* SPDX-License-Identifier: Apache-2.0 */
/* The client: its devices, and one thread for transfers that must wait. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

#include "runtime/rt_internal.h"

const char *const rt_memory_kind_names[RT_KINDS] = {
	"device", "pinned_host", "unpinned_host",
};

static void *work(void *arg)
{
	struct rt_client *c = arg;
	struct rt_job *j;

	rt_in_callback = 1;
	pthread_mutex_lock(&c->job_lock);
	for (;;) {
		while (!c->jobs && !c->quit)
			pthread_cond_wait(&c->job_cond, &c->job_lock);
		j = c->jobs;
		if (!j)
			break;
		c->jobs = j->next;
		if (!c->jobs)
			c->last_job = &c->jobs;
		pthread_mutex_unlock(&c->job_lock);
		j->fn(j->arg);
		free(j);
		pthread_mutex_lock(&c->job_lock);
	}
	pthread_mutex_unlock(&c->job_lock);
	return NULL;
}

static void enqueue(void *arg, const struct err *err)
{
	struct rt_job *j = arg;
	struct rt_client *c = j->client;

	(void)err;
	pthread_mutex_lock(&c->job_lock);
	*c->last_job = j;
	c->last_job = &j->next;
	pthread_cond_signal(&c->job_cond);
	pthread_mutex_unlock(&c->job_lock);
}

int rt_later(struct rt_client *c, void (*fn)(void *arg), void *arg, struct err *err)
{
	struct rt_job *j = malloc(sizeof(*j));

	if (!j)
		return err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory");
	*j = (struct rt_job){ .client = c, .fn = fn, .arg = arg };
	enqueue(j, NULL);
	return 0;
}

/* The job's buffer is resolved: only what is computed goes on to the thread, so that a program
 * that runs for long keeps nobody waiting who wants something else. */
static void await_content(void *arg, const struct err *err)
{
	struct rt_job *j = arg;
	struct rt_buffer *b = j->buffer;

	(void)err;
	/* A queue that can't tell says why when the job waits for it. */
	if (b->error || !b->value || hal_queue_notify(j->client->devices[b->device].queue,
						      b->value, enqueue, j, NULL))
		enqueue(j, NULL);
}

int rt_after(struct rt_buffer *b, void (*fn)(void *arg), void *arg, struct err *err)
{
	struct rt_job *j = malloc(sizeof(*j));

	if (!j)
		return err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory");
	*j = (struct rt_job){ .client = b->client, .buffer = b, .fn = fn, .arg = arg };
	if (b->resolved)
		rt_event_on_ready(b->resolved, &j->callback, await_content, j);
	else
		await_content(j, NULL);
	return 0;
}

static void free_client(struct rt_client *c)
{
	struct rt_garbage *g, *next;
	struct rt_mapping *m;

	rt_trace_leave(c);
	if (c->has_worker) {
		pthread_mutex_lock(&c->job_lock);
		c->quit = true;
		pthread_cond_signal(&c->job_cond);
		pthread_mutex_unlock(&c->job_lock);
		pthread_join(c->worker, NULL);
	}
	for (unsigned i = 0; i < c->n_devices; i++)
		rt_turns_end(&c->devices[i].turns);
	rt_world_leave(c);
	while ((m = c->mappings)) {
		c->mappings = m->next;
		for (unsigned i = 0; i < c->n_devices; i++)
			hal_mem_free(m->mems[i]);
		free(m);
	}
	for (unsigned i = 0; i < c->n_devices; i++) {
		struct rt_device *d = &c->devices[i];

		if (d->hal)
			hal_device_close(d->hal);
		for (g = d->garbage; g; g = next) {
			next = g->next;
			free(g);
		}
		for (g = d->spare; g; g = next) {
			next = g->next;
			free(g);
		}
		pthread_mutex_destroy(&d->lock);
		pthread_mutex_destroy(&d->grow_lock);
	}
	if (c->free_circles)
		c->free_circles(c);
	free(c->devices);
	hal_destroy(c->hal);
	pthread_mutex_destroy(&c->map_lock);
	pthread_mutex_destroy(&c->gang_lock);
	pthread_mutex_destroy(&c->join_lock);
	pthread_mutex_destroy(&c->job_lock);
	pthread_cond_destroy(&c->job_cond);
	free(c);
}

void rt_client_ref(struct rt_client *c)
{
	atomic_fetch_add(&c->refs, 1);
}

static void *free_elsewhere(void *arg)
{
	free_client(arg);
	return NULL;
}

void rt_client_unref(struct rt_client *c)
{
	pthread_t t;

	if (!c || atomic_fetch_sub(&c->refs, 1) != 1 || rt_is_orphan(c))
		return;
	/* Neither our thread nor the device's waiter can wait for its own end. */
	if (rt_in_callback) {
		if (!pthread_create(&t, NULL, free_elsewhere, c))
			pthread_detach(t);
		return;
	}
	free_client(c);
}

/* The environment's, or one that nobody knows. */
static int choose_seed(uint64_t *seed, struct err *err)
{
	const char *text = getenv("TESSERA_RNG_SEED");
	char *end;

	if (!text || !*text) {
		if (getrandom(seed, sizeof(*seed), 0) == (ssize_t)sizeof(*seed))
			return 0;
		return err_sys(err, errno, "getrandom for the seed of random numbers");
	}
	errno = 0;
	*seed = strtoull(text, &end, 0);
	if (errno || *end || (*text < '0' || *text > '9'))
		return err_set(err, ERR_INVALID_ARGUMENT, "TESSERA_RNG_SEED=%s: the seed of "
			       "random numbers is a whole number from 0 to 2^64 - 1", text);
	return 0;
}

int rt_client_create(const struct rt_client_options *o, struct rt_client **out,
		     struct err *err)
{
	struct hal_options options = { .devices = o->devices, .sim = o->sim };
	struct rt_client *c = calloc(1, sizeof(*c));
	int code;

	if (!c)
		return err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory");
	atomic_init(&c->refs, 1);
	pthread_mutex_init(&c->job_lock, NULL);
	pthread_mutex_init(&c->map_lock, NULL);
	pthread_mutex_init(&c->gang_lock, NULL);
	pthread_mutex_init(&c->join_lock, NULL);
	pthread_cond_init(&c->job_cond, NULL);
	c->last_job = &c->jobs;
	c->seed = o->seed ? *o->seed : 0;
	code = o->seed ? 0 : choose_seed(&c->seed, err);
	if (!code)
		code = hal_create(&options, &c->hal, err);
	if (!code) {
		c->devices = calloc(hal_device_count(c->hal), sizeof(*c->devices));
		if (!c->devices)
			code = err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory");
	}
	for (unsigned i = 0; !code && i < hal_device_count(c->hal); i++) {
		struct rt_device *d = &c->devices[i];

		c->n_devices = i + 1;
		pthread_mutex_init(&d->lock, NULL);
		pthread_mutex_init(&d->grow_lock, NULL);
		rt_turns_start(&d->turns);
		code = hal_device_open(c->hal, i, &d->hal, err);
		if (code)
			break;
		d->queue = hal_device_queue(d->hal, HAL_QUEUE_COMPUTE);
		code = hal_device_info(c->hal, i, &d->info, err);
	}
	if (!code && o->world)
		code = rt_world_join(c, o->world, err);
	if (!code && pthread_create(&c->worker, NULL, work, c))
		code = err_set(err, ERR_RESOURCE_EXHAUSTED, "could not start a thread");
	c->has_worker = !code;
	if (code) {
		if (c->world)	/* the exchange stays the caller's */
			c->world->exchange.free = NULL;
		free_client(c);
		return code;
	}
	rt_trace_join(c);
	*out = c;
	return 0;
}

bool rt_is_orphan(const struct rt_client *c)
{
	return hal_is_inherited(c->hal);
}

int rt_client_check(const struct rt_client *c, struct err *err)
{
	if (!rt_is_orphan(c))
		return 0;
	return err_set(err, ERR_FAILED_PRECONDITION, "this process was forked from one that "
		       "had the device open: devices do not survive fork; start processes by "
		       "spawn, or make the client in the child");
}

unsigned rt_device_count(const struct rt_client *c)
{
	return c->n_devices;
}

/* A device's place in the torus of links; in a row where the client's are not of one torus. */
static void device_coords(const struct rt_client *c, unsigned device, int64_t out[3])
{
	struct hal_position first, p;
	bool is_one = true;

	hal_device_position(c->devices[0].hal, &first);
	for (unsigned i = 0; i < c->n_devices; i++) {
		hal_device_position(c->devices[i].hal, &p);
		is_one &= p.fabric && p.fabric == first.fabric;
	}
	hal_device_position(c->devices[device].hal, &p);
	for (unsigned d = 0; d < 3; d++)
		out[d] = is_one ? p.coords[d] : d ? 0 : device;
}

void rt_global_device(const struct rt_client *c, unsigned id, struct rt_global *out)
{
	const struct hal_device_info *info;

	if (c->world) {
		*out = c->world->devices[id].device;
		return;
	}
	info = &c->devices[id].info;
	*out = (struct rt_global){ .local = (int)id, .cores = info->cores,
				   .is_model = info->is_model };
	device_coords(c, id, out->coords);
	snprintf(out->kind, sizeof(out->kind), "%s", info->name);
	snprintf(out->bus_id, sizeof(out->bus_id), "%s", info->bus_id);
}

void rt_client_use_partitioners(struct rt_client *c, const struct tc_partitioners *p)
{
	c->partitioners = p;
}

void rt_client_use_functions(struct rt_client *c, const struct rt_functions *f)
{
	c->functions = f;
}
