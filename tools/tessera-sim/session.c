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
		int error = message_handle(l->d, &m, r);

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
	} else if (device_begin(d, &err)) {
		say("%u: can't serve a client: %s", d->index, err.msg);
	} else {
		say("%u: client attached (pid %d, uid %d)", d->index, (int)peer.pid,
		    (int)peer.uid);
		d->link = &l;
		serve(&l, r);
		/* The client learns of its end now; the model's may take a moment. */
		shutdown(fd, SHUT_RDWR);
		device_end(d);
		d->link = NULL;
		say("%u: client %s%s", d->index, l.why ? "cut off: " : "left",
		    l.why ? l.why : "");
	}
	link_end(&l);
	if (r)
		free(r->body);
	free(r);
}
