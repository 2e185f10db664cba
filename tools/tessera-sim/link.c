/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client's socket: whole messages in, replies out, and the server's own questions.
 *
 * Who reads the socket changes. Mostly the session's thread does. But it may wait for
 * the model, and the model for memory that has to be asked from the client: then the
 * thread that asks reads, keeps the commands that come before its answer, and the
 * session finds them afterwards. `is_reading` says that somebody does; under `lock`.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "hal/base/clock.h"
#include "tools/tessera-sim/server.h"

#define ASK_NS 60000000000ll	/* for a client to answer; one that left is noticed at once */
#define LOOK_NS 5000000ll	/* between looks whether the answer is still wanted */
/* What a client that is asked may send before it answers. */
#define MAX_KEPT 1024u
#define MAX_KEPT_BYTES (8u << 20)
#define MAX_KEPT_FDS 256u

struct kept {
	struct message m;
	struct kept *next;
};

/* ---- messages ---- */

void link_free_message(struct message *m)
{
	for (unsigned i = 0; i < m->n_fds; i++)
		if (m->fds[i] >= 0)
			close(m->fds[i]);
	m->n_fds = 0;
	free(m->body);
	m->body = NULL;
}

/* Why the stream ended, by errno: `late` is what the client did not do in time. */
static const char *why_of(const char *late)
{
	return errno == EAGAIN ? late :
	       errno == EMSGSIZE ? "more descriptors than a message may have" : NULL;
}

/* One whole message; of one of impossible size the header alone. False: the stream has
 * ended; *why if the client is to blame. */
static bool receive(struct link *l, struct message *m, const char **why)
{
	int64_t limit = l->d->limit_ns;
	size_t bytes;
	ssize_t n;

	memset(m, 0, sizeof(*m));
	/* Who has the device may be idle for as long as it likes, but not before. */
	n = vfu_begin(l->fd, &m->h, m->fds, &m->n_fds,
		      l->d->has_version ? CLOCK_FOREVER : l->join_by);
	if (n < 0) {
		*why = why_of("it agreed on no version in time");
		return false;
	}
	limit = clock_after(limit);
	if (vfu_receive(l->fd, (char *)&m->h + n, sizeof(m->h) - (size_t)n, limit)) {
		*why = why_of("it did not finish a message in time");
		return false;
	}
	if (m->h.size < sizeof(m->h) || m->h.size > sizeof(m->h) + VFU_MAX_BODY)
		return true;
	bytes = m->h.size - sizeof(m->h);
	m->body = malloc(bytes ? bytes : 1);
	if (!m->body) {
		*why = "no memory for its message";
		return false;
	}
	if (vfu_receive(l->fd, m->body, bytes, limit)) {
		*why = why_of("it did not finish a message in time");
		return false;
	}
	m->bytes = bytes;
	return true;
}

/* ---- who reads ---- */

/* Under lock. Gives a message to whom it is for; false: it breaks the protocol. What is
 * neither a command nor awaited is refused like a command. */
static bool deliver(struct link *l, struct message *m, bool *is_command)
{
	bool is_awaited = l->is_asking && !l->is_answered && m->h.id == l->id;

	*is_command = false;
	/* An answer that nobody wanted any more. */
	if ((m->h.flags & VFU_TYPE) == VFU_IS_REPLY && !is_awaited && l->n_given_up) {
		l->n_given_up--;
		return true;
	}
	*is_command = (m->h.flags & VFU_TYPE) != VFU_IS_REPLY || !l->is_asking ||
		      l->is_answered;
	if (*is_command)
		return true;
	if (m->h.id != l->id || m->h.command != l->command || m->n_fds ||
	    m->h.size != sizeof(m->h) + m->bytes) {
		l->why = "a reply to something else";
		return false;
	}
	l->error = m->h.flags & VFU_ERROR ? m->h.error ? (int)m->h.error : EIO : 0;
	if (!l->error && m->bytes < sizeof(struct vfu_dma_access) + l->n_to)
		l->error = EIO;
	if (!l->error && l->n_to)
		memcpy(l->to, m->body + sizeof(struct vfu_dma_access), l->n_to);
	l->is_answered = true;
	return true;
}

/* Under lock, which it gives up meanwhile: reads one message. False: the stream ended. */
static bool read_one(struct link *l, struct message *m, bool *is_command)
{
	const char *why = NULL;
	bool ok;

	l->is_reading = true;
	pthread_mutex_unlock(&l->lock);
	ok = receive(l, m, &why);
	pthread_mutex_lock(&l->lock);
	l->is_reading = false;
	if (!ok && why)
		l->why = why;
	if (!ok || !deliver(l, m, is_command))
		l->is_lost = true;
	pthread_cond_broadcast(&l->moved);
	if (l->is_lost)
		link_free_message(m);
	return !l->is_lost;
}

static bool take_kept(struct link *l, struct message *m)
{
	struct kept *k = l->first;

	if (!k)
		return false;
	*m = k->m;
	l->first = k->next;
	if (!l->first)
		l->last = &l->first;
	l->n_kept--;
	l->n_kept_fds -= m->n_fds;
	l->kept_bytes -= m->bytes;
	free(k);
	return true;
}

static void keep(struct link *l, const struct message *m)
{
	struct kept *k = l->n_kept < MAX_KEPT && l->kept_bytes + m->bytes <= MAX_KEPT_BYTES &&
			 l->n_kept_fds + m->n_fds <= MAX_KEPT_FDS ? malloc(sizeof(*k)) : NULL;

	if (!k) {
		struct message dropped = *m;

		link_free_message(&dropped);
		l->why = "too many commands while an answer was awaited";
		l->is_lost = true;
		return;
	}
	*k = (struct kept){ .m = *m };
	*l->last = k;
	l->last = &k->next;
	l->n_kept++;
	l->n_kept_fds += m->n_fds;
	l->kept_bytes += m->bytes;
}

/* The next command for the session's thread. */
bool link_next(struct link *l, struct message *m)
{
	bool is_command = false, ok = true;

	pthread_mutex_lock(&l->lock);
	while (ok && !is_command) {
		if (l->is_lost)
			ok = false;
		else if (take_kept(l, m))
			is_command = true;
		else if (l->is_reading)
			pthread_cond_wait(&l->moved, &l->lock);
		else if ((ok = read_one(l, m, &is_command)) && !is_command)
			link_free_message(m);
	}
	pthread_mutex_unlock(&l->lock);
	return ok;
}

static void give_up(struct link *l)
{
	l->is_lost = true;
	l->why = "it does not answer";
}

/* Under lock: whether what is asked for `gone` is still wanted. */
static bool is_wanted(const struct link *l, const atomic_bool *gone)
{
	return !l->n_hushed && !atomic_load(&l->d->n_stopping) && !atomic_load(gone);
}

/* Under lock: until the question is answered. */
static void await_answer(struct link *l, const atomic_bool *gone)
{
	int64_t deadline = clock_after(ASK_NS);
	struct timespec t = clock_spec(deadline);
	struct message m;
	bool is_command, can_read;
	int64_t look;

	while (!l->is_answered && !l->is_lost && is_wanted(l, gone)) {
		if (l->is_reading) {
			if (pthread_cond_timedwait(&l->moved, &l->lock, &t) == ETIMEDOUT)
				give_up(l);
			continue;
		}
		l->is_reading = true;
		pthread_mutex_unlock(&l->lock);
		look = clock_after(LOOK_NS);
		can_read = !vfu_await(l->fd, POLLIN, look < deadline ? look : deadline);
		pthread_mutex_lock(&l->lock);
		l->is_reading = false;
		if (!can_read) {
			if (clock_ns() >= deadline)
				give_up(l);
		} else if (read_one(l, &m, &is_command)) {
			if (is_command)
				keep(l, &m);
			else
				link_free_message(&m);
		}
	}
	pthread_cond_broadcast(&l->moved);
}

int link_ask(struct link *l, uint16_t command, const struct vfu_dma_access *q,
	     const void *data, void *to, const atomic_bool *gone)
{
	struct vfu_header h = { .command = command,
				.size = (uint32_t)(sizeof(h) + sizeof(*q)) };
	struct iovec v[] = { { &h, sizeof(h) }, { (void *)(uintptr_t)q, sizeof(*q) },
			     { (void *)(uintptr_t)data, q->count } };
	bool sent, is_lost;
	int error;

	if (data)
		h.size += (uint32_t)q->count;
	pthread_mutex_lock(&l->ask_lock);
	pthread_mutex_lock(&l->lock);
	if (!is_wanted(l, gone)) {
		pthread_mutex_unlock(&l->lock);
		pthread_mutex_unlock(&l->ask_lock);
		return ECANCELED;
	}
	h.id = ++l->id;
	l->command = command;
	l->to = to;
	l->n_to = to ? q->count : 0;
	l->is_asking = true;
	l->is_answered = false;
	pthread_mutex_unlock(&l->lock);
	pthread_mutex_lock(&l->send_lock);
	sent = !vfu_send(l->fd, v, data ? 3 : 2, NULL, 0, clock_after(l->d->limit_ns));
	pthread_mutex_unlock(&l->send_lock);
	pthread_mutex_lock(&l->lock);
	if (!sent)
		l->is_lost = true;
	await_answer(l, gone);
	error = l->is_answered ? l->error : l->is_lost ? EIO : ECANCELED;
	l->n_given_up += !l->is_answered && !l->is_lost;
	l->is_asking = false;
	is_lost = l->is_lost;
	pthread_mutex_unlock(&l->lock);
	pthread_mutex_unlock(&l->ask_lock);
	if (is_lost)
		shutdown(l->fd, SHUT_RDWR);
	return error;
}

/*
 * A client may answer nothing while it waits for a reply of ours, as QEMU does that holds its lock
 * for an access to a register; and a reply may have to wait until the model stops, which waits for
 * the client's memory. What is stopped needs that memory no more.
 */
void link_hush(struct link *l, bool on)
{
	if (!l)
		return;
	pthread_mutex_lock(&l->lock);
	l->n_hushed += on ? 1 : -1u;
	pthread_cond_broadcast(&l->moved);
	pthread_mutex_unlock(&l->lock);
}

void link_look_again(struct link *l)
{
	pthread_mutex_lock(&l->lock);
	pthread_cond_broadcast(&l->moved);
	pthread_mutex_unlock(&l->lock);
}

/* ---- replies and the end ---- */

void link_lose(struct link *l, const char *why)
{
	pthread_mutex_lock(&l->lock);
	if (!l->why)
		l->why = why;
	l->is_lost = true;
	pthread_cond_broadcast(&l->moved);
	pthread_mutex_unlock(&l->lock);
}

bool link_reply(struct link *l, const struct message *m, struct reply *r, int error)
{
	struct vfu_header h = { .id = m->h.id, .command = m->h.command,
				.flags = VFU_IS_REPLY | (error ? VFU_ERROR : 0),
				.error = (uint32_t)error };
	struct iovec v[] = { { &h, sizeof(h) }, { r->body, error ? 0 : r->bytes } };
	const char *why = NULL;
	bool ok;

	h.size = (uint32_t)(sizeof(h) + v[1].iov_len);
	pthread_mutex_lock(&l->send_lock);
	ok = !vfu_send(l->fd, v, v[1].iov_len ? 2 : 1, r->fds, error ? 0 : r->n_fds,
		       clock_after(l->d->limit_ns));
	if (!ok)
		why = why_of("it did not take a reply in time");
	pthread_mutex_unlock(&l->send_lock);
	if (!ok)
		link_lose(l, why);
	return ok;
}

/* ---- life ---- */

void link_init(struct link *l, struct device *d, int fd)
{
	pthread_condattr_t attr;

	memset(l, 0, sizeof(*l));
	l->d = d;
	l->fd = fd;
	l->last = &l->first;
	l->join_by = clock_after(d->limit_ns);
	pthread_mutex_init(&l->send_lock, NULL);
	pthread_mutex_init(&l->ask_lock, NULL);
	pthread_mutex_init(&l->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&l->moved, &attr);
	pthread_condattr_destroy(&attr);
}

void link_end(struct link *l)
{
	struct message m;

	while (take_kept(l, &m))
		link_free_message(&m);
	pthread_mutex_destroy(&l->send_lock);
	pthread_mutex_destroy(&l->ask_lock);
	pthread_mutex_destroy(&l->lock);
	pthread_cond_destroy(&l->moved);
}
