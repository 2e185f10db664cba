/* SPDX-License-Identifier: Apache-2.0 */
/* The send and receive callbacks of an execution, as the runtime calls them. */
#include <stdlib.h>

#include "runtime/pjrt/pjrt_wrap.h"

typedef struct PJRT_Error *error_fn(int code, const char *text, size_t n);
typedef struct PJRT_Error *send_fn(struct PJRT_Chunk *chunk, error_fn **error, size_t total,
				   bool done, void *arg);
typedef void recv_fn(struct PJRT_CopyToDeviceStream *stream, void *arg);

/* Sends first. */
struct callbacks {
	struct pjrt_run run;
	size_t n_send, n_recv;
	struct callback {
		int64_t channel;
		void *arg;
		void *fn;
	} list[];
};

static const struct callback *find(const struct callbacks *c, int64_t channel, bool is_recv)
{
	size_t from = is_recv ? c->n_send : 0, to = c->n_send + (is_recv ? c->n_recv : 0);

	for (size_t i = from; i < to; i++)
		if (c->list[i].channel == channel)
			return &c->list[i];
	return NULL;
}

static bool knows(void *arg, int64_t channel, bool is_recv)
{
	return find(arg, channel, is_recv) != NULL;
}

static struct PJRT_Error *make_error(int code, const char *text, size_t n)
{
	struct err err = pjrt_read_error(code ? code : ERR_UNKNOWN, text, n);

	return pjrt_error(&err);
}

static void free_data(void *data, void *arg)
{
	(void)arg;
	free(data);
}

static int send(void *arg, int64_t channel, void *data, uint64_t bytes, struct err *err)
{
	const struct callback *c = find(arg, channel, false);
	struct PJRT_Chunk chunk = { .data = data, .size = bytes, .deleter = (void *)free_data };
	error_fn *error = make_error;
	send_fn *fn = (send_fn *)c->fn;
	struct PJRT_Error *e = fn(&chunk, &error, bytes, true, c->arg);
	int code;

	if (!e)
		return 0;
	*err = e->err;
	code = err->code;
	pjrt_Error_Destroy(&(struct PJRT_Error_Destroy_Args){ .error = e });
	return code;
}

/* The caller fills the stream, now or later, and destroys it. */
static int recv(void *arg, int64_t channel, struct rt_stream *to, struct err *err)
{
	const struct callback *c = find(arg, channel, true);
	struct PJRT_CopyToDeviceStream *stream = malloc(sizeof(*stream));
	recv_fn *fn = (recv_fn *)c->fn;

	if (!stream) {
		rt_stream_unref(to);
		return err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory");
	}
	stream->rt = to;
	fn(stream, c->arg);
	return 0;
}

void pjrt_context_unref(struct PJRT_ExecuteContext *c)
{
	if (!c || atomic_fetch_sub(&c->refs, 1) != 1)
		return;
	while (c->data) {
		struct pjrt_user_data *d = c->data;

		c->data = d->next;
		if (d->deleter)
			d->deleter(d->data);
		free(d);
	}
	free(c);
}

static void free_callbacks(void *arg)
{
	struct callbacks *c = arg;

	pjrt_context_unref(c->run.context);
	free(c);
}

const struct pjrt_run *pjrt_run_of(const void *arg)
{
	return &((const struct callbacks *)arg)->run;
}

struct PJRT_Error *pjrt_read_callbacks(const struct PJRT_ExecuteOptions *o, int64_t id,
				       unsigned device, struct rt_host *host)
{
	size_t n_send = o ? o->num_send_ops : 0, n_recv = o ? o->num_recv_ops : 0;
	size_t n = n_send + n_recv;
	struct callbacks *c = calloc(1, sizeof(*c) + n * sizeof(*c->list));

	if (!c)
		return NO_ROOM();
	c->run.id = id;
	c->run.context = o ? o->context : NULL;
	if (c->run.context) {
		atomic_fetch_add(&c->run.context->refs, 1);
		c->run.data = c->run.context->data;
	}
	c->n_send = n_send;
	c->n_recv = n_recv;
	for (size_t i = 0; i < n_send; i++) {
		const struct PJRT_SendCallbackInfo *s = &o->send_callbacks[device][i];

		c->list[i] = (struct callback){ s->channel_id, s->user_arg, s->send_callback };
	}
	for (size_t i = 0; i < n_recv; i++) {
		const struct PJRT_RecvCallbackInfo *r = &o->recv_callbacks[device][i];

		c->list[n_send + i] = (struct callback){ r->channel_id, r->user_arg,
							 r->recv_callback };
	}
	for (size_t i = 0; i < n; i++) {
		if (c->list[i].fn)
			continue;
		n = (size_t)c->list[i].channel;
		free_callbacks(c);
		return pjrt_error_text(ERR_INVALID_ARGUMENT, "PJRT_LoadedExecutable_Execute: the "
				       "callback of channel %lld is NULL", (long long)n);
	}
	*host = (struct rt_host){ .send = send, .recv = recv, .knows = knows,
				  .free = free_callbacks, .arg = c };
	return NULL;
}
