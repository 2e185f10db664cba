/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Our own extension: who runs programs on a device by itself, a rank or a process, says when it
 * begins and when it will launch no more, and why. PJRT has no word for that, and others may wait
 * for it (rt.h, rt_device_leave). The entry points of torch_xla and JAX call it, which have no
 * handle of a client: what they say holds for all clients of this process.
 */
#include <pthread.h>
#include <stdlib.h>

#include "runtime/pjrt/pjrt_wrap.h"

struct ranks_extension {
	struct PJRT_Extension_Base base;
	/* device: its id, or -1: all of this process's, which enter as rt_client_return says;
	 * `why`: a text. Other numbers than those of a client's own devices say nothing. */
	void (*enter)(int device);
	void (*leave)(int device, const char *why);
	/* Before the process ends, whose memory others may still write to. Waits, 5 s at most. */
	void (*settle)(void);
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;	/* over the list of clients */
static struct PJRT_Client *clients;

void pjrt_list_client(struct PJRT_Client *c)
{
	pthread_mutex_lock(&lock);
	c->next = clients;
	clients = c;
	pthread_mutex_unlock(&lock);
}

void pjrt_unlist_client(struct PJRT_Client *c)
{
	struct PJRT_Client **at = &clients;

	pthread_mutex_lock(&lock);
	while (*at && *at != c)
		at = &(*at)->next;
	if (*at)
		*at = c->next;
	pthread_mutex_unlock(&lock);
}

/* The clients that there are, a reference each, malloc'd; their number. */
static size_t take_clients(struct rt_client ***out)
{
	size_t n = 0;

	pthread_mutex_lock(&lock);
	for (struct PJRT_Client *c = clients; c; c = c->next)
		n++;
	*out = calloc(n + 1, sizeof(**out));
	n = 0;
	for (struct PJRT_Client *c = clients; c && *out; c = c->next) {
		rt_client_ref(c->rt);
		(*out)[n++] = c->rt;
	}
	pthread_mutex_unlock(&lock);
	return n;
}

static void tell_client(struct rt_client *c, int device, const struct err *why)
{
	if (device == -1 && !why)
		rt_client_return(c);
	for (unsigned d = 0; d < rt_device_count(c); d++) {
		bool is_meant = (unsigned)device == rt_first_id(c) + d;

		if (why && (is_meant || device == -1))
			rt_device_leave(c, d, why);
		else if (is_meant)
			rt_device_enter(c, d);
	}
}

/* why NULL: it enters. No lock is held: who waits is told. */
static void tell(int device, const struct err *why)
{
	struct rt_client **list;
	size_t n = take_clients(&list);

	for (size_t i = 0; i < n; i++) {
		if (!rt_client_check(list[i], NULL))
			tell_client(list[i], device, why);
		rt_client_unref(list[i]);
	}
	free(list);
}

static void enter(int device)
{
	tell(device, NULL);
}

static void leave(int device, const char *why)
{
	struct err err;

	err_set(&err, ERR_CANCELLED, "%.300s", why ? why : "its function ended");
	tell(device, &err);
}

static void settle(void)
{
	struct rt_client **list;
	size_t n = take_clients(&list);

	for (size_t i = 0; i < n; i++) {
		if (!rt_client_check(list[i], NULL))
			rt_client_settle(list[i]);
		rt_client_unref(list[i]);
	}
	free(list);
}

struct PJRT_Extension_Base *pjrt_ranks_extension(void)
{
	static struct ranks_extension ranks = {
		.base = { .struct_size = sizeof(ranks), .type = PJRT_RANKS_EXTENSION },
		.enter = enter,
		.leave = leave,
		.settle = settle,
	};

	return &ranks.base;
}
