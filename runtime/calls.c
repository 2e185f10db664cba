/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls of the host: a program that makes them ends where it calls (hal/hw/image.h). What it
 * sends is handed to the framework's functions, what it is to receive is waited for, and it is
 * launched again; other work runs on the device meanwhile.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/rt_internal.h"

static int out_of_memory(const struct image_transfer *t, struct err *err)
{
	return err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory for %" PRIu64 " bytes that "
		       "go between the program and a function of the host", t->bytes);
}

static int send(const struct rt_calls *k, const struct image_transfer *t, struct err *err)
{
	void *data = malloc(t->bytes ? t->bytes : 1);
	int code = 0;

	if (!data)
		return out_of_memory(t, err);
	if (t->bytes)
		code = hal_copy_out(data, k->mems[t->binding], t->offset, t->bytes,
				    CLOCK_FOREVER, err);
	if (code) {
		free(data);
		return code;
	}
	rt_turn_begin_function();
	code = k->host->send(k->host->arg, t->channel, data, t->bytes, err);
	rt_turn_end_function();
	return code;
}

/* Asks for an array; *out is ours to wait for. */
static int ask(const struct rt_calls *k, const struct image_transfer *t, struct rt_stream **out,
	       struct err *err)
{
	struct rt_stream *s = rt_stream_new(t->bytes, 1);
	int code;

	if (!s)
		return out_of_memory(t, err);
	rt_stream_ref(s);
	rt_turn_begin_function();
	code = k->host->recv(k->host->arg, t->channel, s, err);
	rt_turn_end_function();
	if (code)
		rt_stream_unref(s);
	else
		*out = s;
	return code;
}

static int put(const struct rt_calls *k, const struct image_transfer *t, const void *from,
	       struct err *err)
{
	return hal_copy_in_elems(k->mems[t->binding], t->offset, from, t->bytes,
				 t->way == IMAGE_FROM_HOST_TRUTH, CLOCK_FOREVER, err);
}

static int receive(const struct rt_calls *k, const struct image_transfer *t,
		   struct rt_stream *s, struct err *err)
{
	int code;

	rt_turn_begin_function();
	code = rt_stream_wait(s, err);
	rt_turn_end_function();
	if (code) {
		err_add(err, "receiving from the host by channel %" PRId64, t->channel);
		return code;
	}
	return t->bytes ? put(k, t, rt_stream_data(s), err) : 0;
}

static bool is_of(const struct rt_exe *x, const struct image_transfer *t)
{
	return !t->only || t->only - 1u == x->member % x->image->info.n_partitions;
}

/* What another member receives. */
static int receive_zeros(const struct rt_calls *k, const struct image_transfer *t,
			 struct err *err)
{
	void *zeros;
	int code;

	if (t->way == IMAGE_TO_HOST || !t->bytes)
		return 0;
	zeros = calloc(1, t->bytes);
	if (!zeros)
		return out_of_memory(t, err);
	code = hal_copy_in(k->mems[t->binding], t->offset, zeros, t->bytes, CLOCK_FOREVER, err);
	free(zeros);
	return code;
}

/* ---- functions by name ---- */

/* Memory for each array of a function; a result may lie in an operand's. */
static int make_arrays(const struct rt_function *f, void **data, struct err *err)
{
	for (uint32_t i = 0; i < f->n_in + f->n_out; i++) {
		const struct rt_function_array *a = &f->arrays[i];

		if (a->elem == ELEM_TOKEN)
			continue;
		data[i] = a->alias >= 0 ? data[a->alias] :
			  aligned_alloc(64, (a->bytes + 64) & ~(uint64_t)63);
		if (!data[i])
			return err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory for %" PRIu64
				       " bytes that go between the program and the function \"%s\" "
				       "of the host", a->bytes, f->name);
		/* No other memory of the host is a program's to see. */
		if (a->alias < 0)
			memset(data[i], 0, (a->bytes + 64) & ~(uint64_t)63);
	}
	return 0;
}

static void free_arrays(const struct rt_function *f, void **data)
{
	for (uint32_t i = 0; data && i < f->n_in + f->n_out; i++)
		if (f->arrays[i].alias < 0)
			free(data[i]);
	free(data);
}

/* Operands out of the device's memory, or results into it; t: the first transfer of the call. */
static int move_arrays(const struct rt_calls *k, const struct image_transfer *t,
		       const struct rt_function *f, void *const *data, bool is_recv,
		       struct err *err)
{
	int code = 0;

	for (uint32_t i = 0; !code && i < f->n_in + f->n_out; i++) {
		if (f->arrays[i].elem == ELEM_TOKEN)
			continue;
		if ((t->way != IMAGE_TO_HOST) == is_recv && t->bytes)
			code = is_recv ? put(k, t, data[i], err) :
					 hal_copy_out(data[i], k->mems[t->binding], t->offset,
						      t->bytes, CLOCK_FOREVER, err);
		t++;
	}
	return code;
}

static int call_function(const struct rt_calls *k, const struct image_transfer *t,
			 unsigned which, struct err *err)
{
	const struct rt_called *called = k->x->called;
	const struct rt_function *f = &called->calls[which].function;
	void **data = calloc((size_t)f->n_in + f->n_out + 1, sizeof(*data));
	int code = data ? make_arrays(f, data, err) :
			  err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory");

	if (!code)
		code = move_arrays(k, t, f, data, false, err);
	if (!code) {
		rt_turn_begin_function();
		code = called->by->call(k->runs[which], data, err);
		rt_turn_end_function();
	}
	if (!code)
		code = move_arrays(k, t, f, data, true, err);
	free_arrays(f, data);
	return code;
}

/* ---- calls ---- */

/* All of call `number`: sends, then receives, which are all asked for before one is waited
 * for. */
static int serve(const struct rt_calls *k, uint64_t number, struct err *err)
{
	const struct image *im = k->x->image;
	size_t first = 0, n = 0, n_asked = 0;
	struct rt_stream **asked;
	int code = 0, which;

	while (first < im->n_transfers && im->transfers[first].call != number)
		first++;
	while (first + n < im->n_transfers && im->transfers[first + n].call == number)
		n++;
	if (!n)
		return err_set(err, ERR_INTERNAL, "the program stopped for call %" PRIu64 " of "
			       "the host, which it does not have", number);
	which = rt_called_find(k->x->called, number);
	if (which >= 0)
		return call_function(k, &im->transfers[first], (unsigned)which, err);
	asked = calloc(n, sizeof(*asked));
	if (!asked)
		return err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory");
	for (size_t i = 0; !code && i < n; i++) {
		const struct image_transfer *t = &im->transfers[first + i];

		if (!is_of(k->x, t))
			code = receive_zeros(k, t, err);
		else if (t->way == IMAGE_TO_HOST)
			code = send(k, t, err);
		else
			code = ask(k, t, &asked[i], err);
		n_asked = i + 1;
	}
	for (size_t i = 0; i < n_asked; i++) {
		if (asked[i] && !code)
			code = receive(k, &im->transfers[first + i], asked[i], err);
		rt_stream_unref(asked[i]);
	}
	free(asked);
	return code;
}

int rt_check_host(const struct rt_exe *x, const struct rt_host *host, struct err *err)
{
	const struct image *im = x->image;

	for (size_t i = 0; i < im->n_transfers; i++) {
		const struct image_transfer *t = &im->transfers[i];
		bool is_recv = t->way != IMAGE_TO_HOST;

		if (host && rt_called_find(x->called, t->call) >= 0)
			continue;
		if (!host || (is_of(x, t) && !host->knows(host->arg, t->channel, is_recv)))
			return err_set(err, ERR_INVALID_ARGUMENT, "the program %s the host by "
				       "channel %" PRId64 ", for which no function was given",
				       is_recv ? "receives from" : "sends to", t->channel);
	}
	return 0;
}

static bool is_stopped(const struct rt_calls *k)
{
	return k->stop && atomic_load(k->stop);
}

/* Who waits for room in the queue does not hold the lock: what keeps the ring full may be a member
 * that waits for another one's function, and the lock be what that needs. */
static int submit_again(const struct rt_calls *k, uint64_t *value, struct err *err)
{
	struct rt_device *d = &k->x->client->devices[k->x->device];
	struct hal_launch launch = { .exe = k->x->hal, .bindings = k->bindings };
	bool has_room = false;
	int code = 0;

	while (!code && !has_room) {
		pthread_mutex_lock(&d->lock);
		has_room = hal_queue_has_room(d->queue, 1, k->x->image->n_bindings);
		if (has_room)
			code = hal_queue_execute(d->queue, &launch, value, err);
		if (has_room && !code)
			atomic_store(&k->x->last_use, *value);
		pthread_mutex_unlock(&d->lock);
		if (!has_room)
			code = hal_queue_await_room(d->queue, err);
	}
	return code;
}

static int run(const struct rt_calls *k, uint64_t *value, struct err *err)
{
	struct rt_device *d = &k->x->client->devices[k->x->device];
	uint64_t number;
	int code;

	for (;;) {
		code = hal_queue_wait(d->queue, *value, CLOCK_FOREVER, err);
		if (!code)
			code = hal_copy_out(&number, k->mems[1], 0, sizeof(number),
					    CLOCK_FOREVER, err);
		if (code || !number)
			return code;
		if (!is_stopped(k))
			code = serve(k, number, err);
		if (!code && is_stopped(k))
			code = err_set(err, ERR_ABORTED, "another member of the program failed");
		if (code)
			return code;
		code = submit_again(k, value, err);
		if (code)
			return code;
	}
}

int rt_run_calls(const struct rt_calls *k, uint64_t *value, struct err *err)
{
	const struct rt_called *called = k->x->called;
	struct rt_calls all = *k;
	int code = 0;

	if (called) {
		rt_turn_begin_function();
		code = rt_called_begin(called, k->host, k->x->device, &all.runs, err);
		rt_turn_end_function();
	}
	if (!code)
		code = run(&all, value, err);
	if (called && all.runs)
		rt_called_end(called, all.runs);
	return code;
}
