/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The processes of a job: who they are, which devices they have, and what each lends of them.
 *
 * Each puts a card into the framework's store of keys and reads those of all others. Devices
 * are numbered over all processes, in the order of these. What other processes say is not
 * trusted: a card is checked before anything is made of it, and the keys of what is lent are
 * the device's to check.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "hal/base/clock.h"
#include "hal/base/str.h"
#include "runtime/rt_internal.h"

#define MOST_DEVICES 128u	/* of a process, as of a fabric */
#define SLICE_MS 250		/* a wait for another process is looked at so often */
#define LIMIT_MS 300000		/* TESSERA_PEER_LIMIT_MS, unset */

/* A card, as it lies in the store. Processes of one host and one build: no byte order. */
struct card {
	char magic[16];
	uint32_t n_devices, pid;
	uint64_t seed;
	char host[40];		/* the kernel's boot id */
	char build[80];
	char log[RT_LOG_NAME];	/* of its launches, order.c */
	struct card_device {
		struct hal_lent lent;
		uint64_t hbm_bytes;
		int64_t coords[3];
		uint32_t cores, is_model;
		char kind[32], bus_id[64];
	} devices[];
};

static const char magic[16] = "tessera card 1";
/* In a card's place, before a text: the process ended and never had a client. From frameworks'
 * entry points (python/jax_plugins/tessera/end.py). */
static const char no_card[16] = "tessera no card";

static size_t card_bytes(unsigned n_devices)
{
	return sizeof(struct card) + n_devices * sizeof(struct card_device);
}

/* ---- the store ---- */

static int read_limit(struct rt_world *w, struct err *err)
{
	const char *text = getenv("TESSERA_PEER_LIMIT_MS");
	uint64_t ms = LIMIT_MS;

	if (text && *text && !str_read_number(text, 1, INT64_MAX / 1000000, &ms))
		return err_set(err, ERR_INVALID_ARGUMENT, "TESSERA_PEER_LIMIT_MS=%s: how long to "
			       "wait for another process is a whole number of milliseconds from 1 "
			       "to %lld", text, (long long)(INT64_MAX / 1000000));
	w->limit_ms = (int64_t)ms;
	return 0;
}

int rt_world_put(struct rt_world *w, const char *key, const void *value, size_t bytes,
		 struct err *err)
{
	int code = w->exchange.put(w->exchange.arg, key, value, bytes, err);

	return code ? err_add(err, "telling the other processes %s", key) : 0;
}

int rt_world_get(struct rt_world *w, const char *key, unsigned process, void **value,
		 size_t *bytes, struct err *err)
{
	int64_t deadline = clock_after(w->limit_ms * 1000000), left;

	for (;;) {
		bool is_alive = rt_order_is_alive(w, process);
		struct err why;
		int code;

		/* Others may have found meanwhile that nothing will come of it. */
		if (w->order && rt_order_error(w, err))
			return err->code;

		left = (deadline - clock_ns()) / 1000000;
		code = w->exchange.get(w->exchange.arg, key, left < 1 ? 1 : left < SLICE_MS ?
				       (int)left : SLICE_MS, value, bytes, &why);
		if (!code)
			return 0;
		if (code != ERR_DEADLINE_EXCEEDED && code != ERR_NOT_FOUND) {
			*err = why;
			return err_add(err, "hearing %s of process %u", key, process);
		}
		if (!is_alive)
			return err_set(err, ERR_UNAVAILABLE, "process %u (pid %d) has ended before "
				       "it told %s", process, w->processes[process].pid, key);
		if (left <= 1)
			return err_set(err, ERR_DEADLINE_EXCEEDED, "process %u of %u has not told "
				       "%s for %lld ms (TESSERA_PEER_LIMIT_MS): it has not come so "
				       "far, or ended", process, w->n_processes, key,
				       (long long)w->limit_ms);
		/* A store that does not wait is not asked all the time. */
		if (code == ERR_NOT_FOUND)
			nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	}
}

/* ---- our card ---- */

static int read_host(char out[40], struct err *err)
{
	static const char path[] = "/proc/sys/kernel/random/boot_id";
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, out, 39);
	int error = errno;

	if (fd >= 0)
		close(fd);
	if (n <= 0)
		return err_sys(err, error, "%s", path);
	out[n] = 0;
	out[strcspn(out, "\n")] = 0;
	return 0;
}

static int fill_device(struct rt_client *c, unsigned i, struct card_device *d, struct err *err)
{
	const struct hal_device_info *info = &c->devices[i].info;
	struct hal_position at;
	int code;

	/* A model in this process is nobody else's, whatever number it has. */
	if (info->kind == HAL_KIND_SIM)
		return err_set(err, ERR_UNIMPLEMENTED, "%s is a model in this process, which no "
			       "other process can meet. Serve linked chips, and give each process "
			       "its own: tessera-sim --devices 8 --socket-dir DIR, then "
			       "TESSERA_DEVICES=vfio-user:DIR/0.sock,vfio-user:DIR/1.sock",
			       info->bus_id);
	code = hal_lend(c->devices[i].hal, &d->lent, err);
	if (code)
		return code;
	hal_device_position(c->devices[i].hal, &at);
	for (unsigned k = 0; k < 3; k++)
		d->coords[k] = at.coords[k];
	d->hbm_bytes = info->hbm_bytes;
	d->cores = info->cores;
	d->is_model = info->is_model;
	snprintf(d->kind, sizeof(d->kind), "%s", info->name);
	snprintf(d->bus_id, sizeof(d->bus_id), "%s", info->bus_id);
	return 0;
}

static int put_card(struct rt_world *w, struct rt_client *c, struct err *err)
{
	size_t bytes = card_bytes(c->n_devices);
	struct card *k = calloc(1, bytes);
	char key[64];
	int code;

	if (!k)
		return err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory");
	memcpy(k->magic, magic, sizeof(magic));
	k->n_devices = c->n_devices;
	k->pid = (uint32_t)getpid();
	k->seed = c->seed;
	rt_build_id(k->build, sizeof(k->build));
	code = rt_order_open(w, k->log, err);
	if (!code)
		code = read_host(k->host, err);
	for (unsigned i = 0; !code && i < c->n_devices; i++)
		code = fill_device(c, i, &k->devices[i], err);
	snprintf(key, sizeof(key), "tessera/process/%u", w->process);
	if (!code)
		code = rt_world_put(w, key, k, bytes, err);
	free(k);
	return code;
}

/* ---- the others' ---- */

static int check_card(struct card *k, size_t bytes, unsigned process, struct err *err)
{
	size_t n = bytes < sizeof(no_card) ? 0 : bytes - sizeof(no_card);

	if (n && !memcmp(k, no_card, sizeof(no_card)))
		return err_set(err, ERR_CANCELLED, "process %u takes no part: %.*s", process,
			       (int)(n < 300 ? n : 300), (char *)k + sizeof(no_card));
	if (bytes < sizeof(*k) || memcmp(k->magic, magic, sizeof(magic)) || !k->n_devices ||
	    k->n_devices > MOST_DEVICES || bytes != card_bytes(k->n_devices))
		return err_set(err, ERR_INVALID_ARGUMENT, "what process %u told of itself, %zu "
			       "bytes, is no card of this version", process, bytes);
	k->host[sizeof(k->host) - 1] = k->build[sizeof(k->build) - 1] =
		k->log[sizeof(k->log) - 1] = 0;
	for (unsigned i = 0; i < k->n_devices; i++) {
		struct card_device *d = &k->devices[i];

		d->kind[sizeof(d->kind) - 1] = d->bus_id[sizeof(d->bus_id) - 1] = 0;
	}
	return 0;
}

/* Whether it may be in one job with us, `mine` being our card. */
static int check_fellow(const struct card *mine, const struct card *k, unsigned process,
			struct err *err)
{
	const struct card_device *a = &mine->devices[0];

	if (strcmp(mine->host, k->host))
		return err_set(err, ERR_UNIMPLEMENTED, "process %u runs on another host (boot id "
			       "%s, here %s): devices of several hosts are not joined. Start all "
			       "processes on one", process, k->host, mine->host);
	if (strcmp(mine->build, k->build))
		return err_set(err, ERR_FAILED_PRECONDITION, "process %u uses another build of the "
			       "plugin (%s, here %s), whose programs may differ: start all with "
			       "one", process, k->build, mine->build);
	for (unsigned i = 0; i < k->n_devices; i++) {
		const struct card_device *d = &k->devices[i];

		if (d->lent.fabric != a->lent.fabric)
			return err_set(err, ERR_UNIMPLEMENTED, "%s of process %u and %s here are "
				       "not linked: give all processes chips of one tessera-sim "
				       "--devices N", d->bus_id, process, a->bus_id);
		if (d->hbm_bytes != a->hbm_bytes || d->cores != a->cores ||
		    strcmp(d->kind, a->kind))
			return err_set(err, ERR_UNIMPLEMENTED, "%s of process %u is a %s with %u "
				       "cores and %llu bytes, %s here a %s with %u and %llu: "
				       "programs are compiled for one kind of device", d->bus_id,
				       process, d->kind, d->cores,
				       (unsigned long long)d->hbm_bytes, a->bus_id, a->kind,
				       a->cores, (unsigned long long)a->hbm_bytes);
	}
	return 0;
}

static int add_devices(struct rt_world *w, const struct card *k, unsigned process,
		       struct err *err)
{
	struct rt_far *list = realloc(w->devices, (w->n_devices + k->n_devices) * sizeof(*list));

	if (!list)
		return err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory");
	w->devices = list;
	w->processes[process] = (struct rt_process){ .first = w->n_devices,
						     .n_devices = k->n_devices,
						     .pid = (int)k->pid };
	for (unsigned i = 0; i < k->n_devices; i++) {
		const struct card_device *d = &k->devices[i];
		struct rt_far *far = &list[w->n_devices];

		for (unsigned o = 0; o < w->n_devices; o++)
			if (list[o].lent.chip == d->lent.chip)
				return err_set(err, ERR_INVALID_ARGUMENT, "processes %u and %u "
					       "both say that they have chip %u",
					       list[o].device.process, process, d->lent.chip);
		*far = (struct rt_far){ .lent = d->lent };
		far->device = (struct rt_global){ .process = process, .cores = d->cores,
			.local = process == w->process ? (int)i : -1,
			.is_model = d->is_model };
		memcpy(far->device.coords, d->coords, sizeof(d->coords));
		memcpy(far->device.kind, d->kind, sizeof(d->kind));
		memcpy(far->device.bus_id, d->bus_id, sizeof(d->bus_id));
		snprintf(far->name, sizeof(far->name), "%s of process %u", d->bus_id, process);
		w->n_devices++;
	}
	return 0;
}

static int get_card(struct rt_world *w, unsigned process, struct card **out, struct err *err)
{
	char key[64];
	size_t bytes;
	void *p;
	int code;

	snprintf(key, sizeof(key), "tessera/process/%u", process);
	code = rt_world_get(w, key, process, &p, &bytes, err);
	if (code)
		return code;
	code = check_card(p, bytes, process, err);
	if (code)
		free(p);
	else
		*out = p;
	return code;
}

/* A failure comes by way of others, from devices that these here never meet, too. */
static void name_devices(const struct rt_world *w, const struct rt_client *c)
{
	for (unsigned i = 0; i < c->n_devices; i++)
		for (unsigned d = 0; d < w->n_devices; d++)
			if (w->devices[d].device.process != w->process)
				hal_name_lender(c->devices[i].hal, &w->devices[d].lent,
						w->devices[d].name);
}

static int meet_all(struct rt_world *w, struct rt_client *c, struct err *err)
{
	struct card *mine, *k;
	int code = get_card(w, w->process, &mine, err);

	if (code)
		return code;
	for (unsigned p = 0; !code && p < w->n_processes; p++) {
		code = get_card(w, p, &k, err);
		if (code)
			break;
		code = check_fellow(mine, k, p, err);
		if (!code)
			code = add_devices(w, k, p, err);
		if (!code)
			code = rt_order_read(w, p, k->log, err);
		if (!code && !p)
			c->seed = k->seed;
		free(k);
	}
	free(mine);
	if (!code)
		name_devices(w, c);
	return code;
}

/* Until all have opened what they need of each other, which has a name no longer then. */
static int gather(struct rt_world *w, struct err *err)
{
	char key[64];
	size_t bytes;
	void *p;
	int code;

	snprintf(key, sizeof(key), "tessera/ready/%u", w->process);
	code = rt_world_put(w, key, "1", 1, err);
	for (unsigned i = 0; !code && i < w->n_processes; i++) {
		snprintf(key, sizeof(key), "tessera/ready/%u", i);
		code = rt_world_get(w, key, i, &p, &bytes, err);
		if (!code)
			free(p);
	}
	return code ? code : rt_order_start(w, err);
}

/* ---- life ---- */

static void free_world(struct rt_world *w)
{
	rt_order_close(w);
	if (w->forget)
		w->forget(w);
	pthread_mutex_destroy(&w->lock);
	free(w->devices);
	free(w);
}

int rt_world_join(struct rt_client *c, const struct rt_world_options *o, struct err *err)
{
	struct rt_world *w;
	int code;

	if (!o->n_processes || o->n_processes > RT_PROCESSES || o->process >= o->n_processes)
		return err_set(err, ERR_INVALID_ARGUMENT, "process %u of %u: there may be up to "
			       "%u, numbered from 0", o->process, o->n_processes, RT_PROCESSES);
	w = calloc(1, sizeof(*w));
	if (!w)
		return err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory");
	w->client = c;
	w->process = o->process;
	w->n_processes = o->n_processes;
	w->exchange = o->exchange;
	pthread_mutex_init(&w->lock, NULL);
	code = read_limit(w, err);
	if (!code)
		code = put_card(w, c, err);
	if (!code)
		code = meet_all(w, c, err);
	if (!code && w->processes[w->process].n_devices != c->n_devices)
		code = err_set(err, ERR_INVALID_ARGUMENT, "two processes say that they are number "
			       "%u of %u", w->process, w->n_processes);
	if (!code)
		code = gather(w, err);
	if (code) {
		free_world(w);
		return code;
	}
	c->world = w;
	return 0;
}

void rt_world_leave(struct rt_client *c)
{
	struct rt_world *w = c->world;

	if (!w)
		return;
	if (w->exchange.free)
		w->exchange.free(w->exchange.arg);
	free_world(w);
	c->world = NULL;
}

void rt_client_settle(struct rt_client *c)
{
	if (!c->world)
		return;
	rt_order_settle(c->world);
	if (!c->world->process)
		rt_order_outlast(c->world);
}

/* ---- asking ---- */

unsigned rt_global_count(const struct rt_client *c)
{
	return c->world ? c->world->n_devices : c->n_devices;
}

unsigned rt_first_id(const struct rt_client *c)
{
	return c->world ? c->world->processes[c->world->process].first : 0;
}

unsigned rt_process(const struct rt_client *c)
{
	return c->world ? c->world->process : 0;
}
