/* SPDX-License-Identifier: Apache-2.0 */
/* A client's session: its commands one after the other, until it leaves or is cut off. */
#include <stdlib.h>
#include <sys/socket.h>

#include "tools/tessera-sim/server.h"

static void serve(struct link *l, struct reply *r)
{
	const char *why = NULL;
	struct message m;
	bool go_on = true;

	while (go_on && link_next(l, &m)) {
		int error;

		pthread_mutex_lock(&l->d->lock);
		error = message_handle(l->d, &m, r);
		pthread_mutex_unlock(&l->d->lock);
		if (!(m.h.flags & VFU_NO_REPLY))
			go_on = link_reply(l, &m, r, error);
		if (m.h.size > sizeof(m.h) + VFU_MAX_BODY) {
			/* Where the next one begins is not known. */
			why = "a message larger than any may be";
			go_on = false;
		}
		link_free_message(&m);
		go_on = go_on && !atomic_load(&l->d->is_broken);
	}
	if (!why && atomic_load(&l->d->is_broken))
		why = "it took back memory that it had shared";
	link_lose(l, why);
}

static int begin(struct device *d, struct link *l, const struct ucred *peer, struct err *err)
{
	int code;

	pthread_mutex_lock(&d->lock);
	code = device_begin(d, err);
	pthread_mutex_lock(&d->who_lock);
	d->has_client = !code;
	d->pid = peer->pid;
	d->uid = peer->uid;
	pthread_mutex_unlock(&d->who_lock);
	d->link = code ? NULL : l;
	pthread_mutex_unlock(&d->lock);
	return code;
}

static void end(struct device *d)
{
	pthread_mutex_lock(&d->lock);
	pthread_mutex_lock(&d->who_lock);
	d->has_client = false;
	pthread_mutex_unlock(&d->who_lock);
	device_end(d);
	d->link = NULL;
	pthread_mutex_unlock(&d->lock);
}

void session_run(struct device *d, int fd)
{
	struct reply *r = calloc(1, sizeof(*r));
	struct ucred peer = { 0 };
	socklen_t n = sizeof(peer);
	struct link l;
	struct err err;

	getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &n);
	link_init(&l, d, fd);
	if (r)
		r->body = malloc(VFU_MAX_BODY);
	if (!r || !r->body) {
		say("%u: no memory for a session", d->index);
	} else if (begin(d, &l, &peer, &err)) {
		say("%u: can't serve a client: %s", d->index, err.msg);
	} else {
		say("%u: client attached (pid %d, uid %d)", d->index, (int)peer.pid,
		    (int)peer.uid);
		serve(&l, r);
		/* The client learns of its end now; the model's may take a moment. */
		shutdown(fd, SHUT_RDWR);
		end(d);
		say("%u: client %s%s", d->index, l.why ? "cut off: " : "left",
		    l.why ? l.why : "");
	}
	link_end(&l);
	if (r)
		free(r->body);
	free(r);
}
