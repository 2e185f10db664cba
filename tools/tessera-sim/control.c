/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an operator asks for (tools/common/control.h): resets and injected errors of a device that
 * is served. One asker at a time, on a thread of its own, since a device may have to be waited for.
 * The socket's permissions keep others out, and who gets in by an open folder of an older server or
 * a descriptor that was handed over is asked for its credentials.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "hal/base/clock.h"
#include "hal/hw/desc.h"
#include "tools/common/control.h"
#include "tools/tessera-sim/server.h"

#define REST_MS 500	/* when askers can't be accepted */

static void fail(struct control_answer *a, enum control_outcome outcome, const char *text)
{
	a->outcome = outcome;
	snprintf(a->text, sizeof(a->text), "%.*s", (int)sizeof(a->text) - 1, text);
}

/* Whether it is one of those that are asked about; who has it goes into the answer, if there is
 * one. Waits for nothing that a client does. */
static bool is_meant(struct device *d, const struct control_ask *q, struct control_answer *a)
{
	bool is = d->index == q->device;

	pthread_mutex_lock(&d->who_lock);
	if (q->client && (!d->has_client || d->pid != q->client))
		is = false;
	if (is && a && d->has_client)
		a->clients[a->n_clients++] = (struct control_client){ d->pid, d->uid };
	pthread_mutex_unlock(&d->who_lock);
	return is;
}

static bool look(struct control *c, const struct control_ask *q, struct control_answer *a)
{
	unsigned n = 0;

	a->n_clients = 0;
	for (unsigned i = 0; i < c->n; i++)
		n += is_meant(c->devices[i], q, a);
	return n;
}

/* The client's command may wait for memory that the client is asked for, and keeps back. What is
 * stopped needs it no more (link_hush). */
static void take(struct device *d, const struct control_ask *q)
{
	bool stops = q->step == CONTROL_RESET || q->what == HW_INJECT_FATAL;

	atomic_fetch_add(&d->n_stopping, stops);
	pthread_mutex_lock(&d->lock);
	atomic_fetch_sub(&d->n_stopping, stops);
}

static bool is_refused(const struct control_ask *q, unsigned n_clients,
		       struct control_answer *a)
{
	if (!n_clients || q->is_forced)
		return false;
	fail(a, CONTROL_IN_USE, "somebody has it");
	return true;
}

/* Under the device's lock. */
static int act_on(struct device *d, const struct control_ask *q, struct control_answer *a)
{
	struct err err;

	if (is_refused(q, d->has_client, a))
		return -1;
	if (q->step == CONTROL_RESET) {
		device_reset_by_force(d);
	} else if (device_inject(d, q->what, q->value, &err)) {
		fail(a, CONTROL_FAILED, err.msg);
		return -1;
	}
	return 0;
}

/* One function after the other: none waits for another one's client. */
static void act(struct control *c, const struct control_ask *q, const struct ucred *asker,
		struct control_answer *a)
{
	int code = 0;

	if (is_refused(q, a->n_clients, a))
		return;
	say("%u: %s by an operator (pid %d, uid %u)", q->device, q->step == CONTROL_RESET ?
	    "reset" : "an error is injected", (int)asker->pid, (unsigned)asker->uid);
	for (unsigned i = 0; !code && i < c->n; i++) {
		struct device *d = c->devices[i];

		if (!is_meant(d, q, NULL))
			continue;
		take(d, q);
		/* It may be another's by now. */
		if (is_meant(d, q, NULL))
			code = act_on(d, q, a);
		pthread_mutex_unlock(&d->lock);
	}
	if (code && a->outcome == CONTROL_IN_USE)
		look(c, q, a);
}

static void answer(struct control *c, const struct control_ask *q, const struct ucred *asker,
		   struct control_answer *a)
{
	unsigned last = c->devices[c->n - 1]->index;

	*a = (struct control_answer){ .magic = CONTROL_MAGIC, .version = CONTROL_VERSION,
				      .outcome = CONTROL_DONE };
	if (asker->uid && asker->uid != geteuid()) {
		fail(a, CONTROL_NOT_ALLOWED, "root and the server's user may");
	} else if (q->magic != CONTROL_MAGIC || q->version != CONTROL_VERSION) {
		fail(a, CONTROL_FAILED, "it does not know this version of the request: install "
		     "xla-smi and tessera-sim of one release");
	} else if (q->step < CONTROL_LOOK || q->step > CONTROL_INJECT || q->is_forced > 1 ||
		   q->zero || q->client < 0) {
		fail(a, CONTROL_FAILED, "the request makes no sense");
	} else if (q->device > last) {
		fail(a, CONTROL_NO_DEVICE, "");
		snprintf(a->text, sizeof(a->text), "it serves the devices 0 to %u", last);
	} else {
		if (!look(c, q, a))
			fail(a, CONTROL_NO_CLIENT, "the process has nothing of it");
		else if (q->step != CONTROL_LOOK)
			act(c, q, asker, a);
	}
}

static void serve(struct control *c, int fd)
{
	struct control_answer a;
	struct control_ask q;
	struct ucred asker = { .pid = 0, .uid = (uid_t)-1 };
	socklen_t n = sizeof(asker);
	struct iovec v = { &a, sizeof(a) };

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &asker, &n)) {
		say("an operator's credentials: %s", strerror(errno));
		return;
	}
	if (vfu_receive(fd, &q, sizeof(q), clock_after(CONTROL_ASK_NS))) {
		say("pid %d, uid %u came as an operator and asked for nothing%s", (int)asker.pid,
		    (unsigned)asker.uid, errno == EAGAIN ? " in time" : "");
		return;
	}
	answer(c, &q, &asker, &a);
	/* Who has gone meanwhile need not be told. */
	vfu_send(fd, &v, 1, NULL, 0, clock_after(CONTROL_ASK_NS));
}

/* Who comes while the server ends is not waited for. */
static void set_asker(struct control *c, int fd)
{
	pthread_mutex_lock(&c->lock);
	c->asker_fd = fd;
	if (fd >= 0 && c->quit)
		shutdown(fd, SHUT_RD);
	pthread_mutex_unlock(&c->lock);
}

static void *listen_for_operators(void *arg)
{
	struct control *c = arg;
	struct pollfd p[2] = { { .fd = c->quit_fd, .events = POLLIN },
			       { .fd = c->listen_fd, .events = POLLIN } };

	for (;;) {
		int fd;

		if (poll(p, 2, -1) < 0 && errno != EINTR)
			return NULL;
		if (p[0].revents)
			return NULL;
		fd = accept4(c->listen_fd, NULL, NULL, SOCK_CLOEXEC);
		if (fd >= 0) {
			set_asker(c, fd);
			serve(c, fd);
			set_asker(c, -1);
			close(fd);
		} else if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) {
			say("an operator can't be accepted yet: %s", strerror(errno));
			poll(p, 1, REST_MS);
		}
	}
}

int control_start(struct control *c, const char *dir, struct err *err)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };

	pthread_mutex_init(&c->lock, NULL);
	c->asker_fd = -1;
	snprintf(c->path, sizeof(c->path), "%s/" CONTROL_SOCKET, dir);
	memcpy(a.sun_path, c->path, sizeof(a.sun_path));
	/* As with those of the devices: the lock on the folder is ours. */
	unlink(c->path);
	c->listen_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	c->quit_fd = eventfd(0, EFD_CLOEXEC);
	/* Nobody can connect before it listens. */
	if (c->listen_fd < 0 || c->quit_fd < 0 ||
	    bind(c->listen_fd, (struct sockaddr *)&a, sizeof(a)) || chmod(c->path, 0600) ||
	    listen(c->listen_fd, 16))
		return err_sys(err, errno, "the socket %s", c->path);
	if (pthread_create(&c->thread, NULL, listen_for_operators, c))
		return err_set(err, ERR_RESOURCE_EXHAUSTED, "could not start a thread");
	c->has_thread = true;
	return 0;
}

void control_stop(struct control *c)
{
	uint64_t one = 1;

	if (!c->path[0])
		return;
	/* What was asked for by now is answered; who says nothing is not waited for. */
	pthread_mutex_lock(&c->lock);
	c->quit = true;
	if (c->asker_fd >= 0)
		shutdown(c->asker_fd, SHUT_RD);
	pthread_mutex_unlock(&c->lock);
	if (c->has_thread && write(c->quit_fd, &one, sizeof(one)) == sizeof(one))
		pthread_join(c->thread, NULL);
	if (c->listen_fd >= 0) {
		close(c->listen_fd);
		unlink(c->path);
	}
	if (c->quit_fd >= 0)
		close(c->quit_fd);
	pthread_mutex_destroy(&c->lock);
}
