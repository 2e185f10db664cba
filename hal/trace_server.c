/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tells another process what this one's devices do (trace_wire.h): a thread that sleeps at the
 * socket beside the telemetry page, so that being told of costs nothing until somebody asks.
 *
 * Who asks has this user or is root, and may still be wrong: what is read is one small request
 * of a fixed size, everything that is waited for has an end, and one asker is let in at a time.
 * In a child of fork the parent's sockets are closed, or it would answer, by silence, for a
 * parent that is gone.
 */
#define LOG_TAG "hal/trace"
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "hal/base/log.h"
#include "hal/base/str.h"
#include "hal/hal_internal.h"
#include "hal/trace_wire.h"

#define DEAF_NS 1000000000ll	/* after nobody could be let in, for want of files or memory */

/* A trace that ended; or why a device that came while others were traced has none. */
struct kept {
	struct hal_wire_device device;
	struct hal_trace *trace;	/* owned; NULL: with device.code */
};

/* From hal_server_start to hal_server_stop. The thread's, but for what says so. */
struct hal_server {
	struct hal *hal;
	pthread_t thread;
	int wake_fd;		/* an eventfd, readable once the thread is to end */
	int64_t deaf_until;
	struct ucred asker;
	/* Under `sockets`; read by the thread without. -1: closed. */
	int listen_fd, fd;	/* fd: the asker's */
	struct hal_server *next;	/* of `servers` */
	/* Under hal.lock while is_on, which is written under it. */
	bool is_on;		/* devices that come are traced, too */
	int64_t at;		/* since when */
	struct kept *kept;	/* [n] */
	unsigned n, room;
	uint64_t n_dropped;
};

/* ---- fork ---- */

static pthread_mutex_t sockets = PTHREAD_MUTEX_INITIALIZER;
static struct hal_server *servers;	/* those of this process; under `sockets` */
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void before_fork(void)
{
	pthread_mutex_lock(&sockets);
}

static void after_fork(void)
{
	pthread_mutex_unlock(&sockets);
}

/* Under `sockets`, here and below. */
static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static void after_fork_in_child(void)
{
	for (; servers; servers = servers->next) {
		close_fd(&servers->listen_fd);
		close_fd(&servers->fd);
	}
	pthread_mutex_unlock(&sockets);
}

static void watch_forks(void)
{
	pthread_atfork(before_fork, after_fork, after_fork_in_child);
}

/* ---- waiting; nobody who asks can make it last ---- */

enum seen { SEEN_END, SEEN_ASKER, SEEN_NEWCOMER };

/* What comes first: the asker is ready, somebody else knocks, or it is over: by the deadline, or
 * since the server is to end. */
static enum seen look(struct hal_server *s, short events, int64_t deadline)
{
	for (;;) {
		int64_t now = clock_ns(), until = deadline;
		bool is_deaf = now < s->deaf_until;
		struct pollfd p[] = { { .fd = s->wake_fd, .events = POLLIN },
				      { .fd = s->fd, .events = events },
				      { .fd = is_deaf ? -1 : s->listen_fd, .events = POLLIN } };

		if (is_deaf && s->deaf_until < until)
			until = s->deaf_until;
		if (now >= deadline)
			return SEEN_END;
		/* A day is as good as for ever, and is an int. */
		if (until - now > 86400000000000)
			until = now + 86400000000000;
		if (poll(p, 3, (int)((until - now + 999999) / 1000000)) < 0 && errno != EINTR) {
			log_error("poll: %s", strerror(errno));
			return SEEN_END;
		}
		if (p[0].revents)
			return SEEN_END;
		if (p[1].revents)
			return SEEN_ASKER;
		if (p[2].revents)
			return SEEN_NEWCOMER;
	}
}

static void put(struct str *out, enum hal_wire_kind kind, const void *p, size_t n)
{
	struct hal_wire_head head = { kind, (uint32_t)n };

	str_add(out, (const char *)&head, sizeof(head));
	if (n)
		str_add(out, p, n);
}

/* Says why not to whoever is at fd, if that takes no waiting. */
static void refuse(int fd, int code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
static void refuse(int fd, int code, const char *fmt, ...)
{
	struct {
		struct hal_wire_head head;
		struct hal_wire_refused is;
	} m = { { HAL_WIRE_REFUSED, sizeof(m.is) }, { .code = (uint32_t)code } };
	va_list args;

	va_start(args, fmt);
	vsnprintf(m.is.text, sizeof(m.is.text), fmt, args);
	va_end(args);
	if (send(fd, &m, sizeof(m), MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
		log_debug("refusing: %s", strerror(errno));
}

static bool is_allowed(int fd, struct ucred *who)
{
	socklen_t n = sizeof(*who);

	return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, who, &n) &&
	       (!who->uid || who->uid == geteuid());
}

/* Lets the next one in, as the asker, or turns him away. */
static void answer_door(struct hal_server *s)
{
	struct ucred who = { 0 };
	int fd;

	pthread_mutex_lock(&sockets);
	fd = accept4(s->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd < 0) {
		if (errno != EAGAIN && errno != ECONNABORTED && errno != EINTR)
			s->deaf_until = clock_after(DEAF_NS);
	} else if (!is_allowed(fd, &who)) {
		refuse(fd, ERR_PERMISSION_DENIED, "process %d is user %u's: only that user and "
		       "root may trace it", getpid(), geteuid());
		close(fd);
	} else if (s->fd >= 0) {
		refuse(fd, ERR_ALREADY_EXISTS, "process %d is traced already, by process %d: end "
		       "that first", getpid(), s->asker.pid);
		close(fd);
	} else {
		s->fd = fd;
		s->asker = who;
	}
	pthread_mutex_unlock(&sockets);
}

/* Whether the asker is ready before the deadline. Others are turned away meanwhile. */
static bool await(struct hal_server *s, short events, int64_t deadline)
{
	enum seen seen;

	while ((seen = look(s, events, deadline)) == SEEN_NEWCOMER)
		answer_door(s);
	return seen == SEEN_ASKER;
}

static bool send_all(struct hal_server *s, const void *p, size_t n)
{
	int64_t deadline = clock_after(HAL_WIRE_SEND_NS);
	const char *from = p;

	while (n) {
		ssize_t sent = send(s->fd, from, n, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (sent > 0) {
			from += sent;
			n -= (size_t)sent;
			deadline = clock_after(HAL_WIRE_SEND_NS);
		} else if (errno != EINTR &&
			   (errno != EAGAIN || !await(s, POLLOUT, deadline))) {
			return false;
		}
	}
	return true;
}

/* Sends and empties it. */
static bool flush(struct hal_server *s, struct str *out)
{
	bool is_sent = !out->failed && send_all(s, out->text, out->len);

	str_free(out);
	return is_sent;
}

/* The next request, which is to be `step`. False: the asker has gone, or is turned away. */
static bool read_ask(struct hal_server *s, enum hal_wire_step step, int64_t deadline,
		     struct hal_wire_ask *out)
{
	size_t n = 0;

	while (n < sizeof(*out)) {
		ssize_t got;

		if (!await(s, POLLIN, deadline))
			return false;
		got = recv(s->fd, (char *)out + n, sizeof(*out) - n, MSG_DONTWAIT);
		if (!got || (got < 0 && errno != EAGAIN && errno != EINTR))
			return false;
		n += got > 0 ? (size_t)got : 0;
	}
	if (out->magic == HAL_WIRE_MAGIC && out->version == HAL_WIRE_VERSION && out->step == step)
		return true;
	refuse(s->fd, ERR_INVALID_ARGUMENT, "step %u of version %u was asked for, not step %u of "
	       "version %u: use the xla-smi of the same release as process %d", out->step,
	       out->version, step, HAL_WIRE_VERSION, getpid());
	return false;
}

/* ---- traces; under hal.lock ---- */

static void describe(const struct hal_device *dev, struct hal_wire_device *out)
{
	*out = (struct hal_wire_device){ .index = dev->index };
	snprintf(out->bus_id, sizeof(out->bus_id), "%s", dev->entry->info.bus_id);
	snprintf(out->name, sizeof(out->name), "%s", dev->entry->info.name);
}

static void begin_one(struct hal_device *dev, struct hal_wire_device *out)
{
	struct err why;

	describe(dev, out);
	out->code = (uint32_t)hal_trace_start(dev, &why);
	dev->is_told = !out->code;
	if (out->code)
		snprintf(out->text, sizeof(out->text), "%s", why.msg);
}

/* Takes the trace, which may be NULL. */
static void keep(struct hal_server *s, const struct hal_wire_device *device,
		 struct hal_trace *trace)
{
	unsigned room = s->room ? s->room * 2 : 8;
	struct kept *grown;

	if (s->n == s->room) {
		grown = s->n == HAL_WIRE_TRACES ? NULL : realloc(s->kept, room * sizeof(*grown));
		if (!grown) {
			s->n_dropped++;
			hal_trace_free(trace);
			return;
		}
		s->kept = grown;
		s->room = room;
	}
	s->kept[s->n++] = (struct kept){ *device, trace };
}

static void end_one(struct hal_server *s, struct hal_device *dev)
{
	struct hal_wire_device device;
	struct hal_trace *trace;
	struct err why;

	if (!dev->is_told)
		return;
	dev->is_told = false;
	describe(dev, &device);
	device.code = (uint32_t)hal_trace_stop(dev, &trace, &why);
	if (device.code)
		snprintf(device.text, sizeof(device.text), "%s", why.msg);
	keep(s, &device, device.code ? NULL : trace);
}

void hal_server_join(struct hal_device *dev)
{
	struct hal_server *s = dev->hal->server;
	struct hal_wire_device device;

	if (!s || !s->is_on)
		return;
	begin_one(dev, &device);
	if (device.code)
		keep(s, &device, NULL);
}

void hal_server_leave(struct hal_device *dev)
{
	if (dev->hal->server && dev->hal->server->is_on)
		end_one(dev->hal->server, dev);
}

/* ---- what is told of a trace ---- */

/* Words are known by where their text is, and which part of it they are. */
enum part { PART_ALL, PART_NAME, PART_SOURCE };
struct slot {
	const char *text;	/* NULL: free */
	enum part part;
	uint32_t number;
};

struct teller {
	struct hal_server *s;
	const struct hal_trace *trace;
	struct slot *slots;	/* [n_slots], open addressing */
	size_t n_slots, n_used;
	uint32_t n_words;
	size_t word_bytes;
	struct str out;		/* words of the batch, then the batch */
	struct hal_wire_record batch[HAL_WIRE_BATCH];
	unsigned n;
};

static struct slot *find(struct slot *slots, size_t n, const char *text, enum part part)
{
	uint64_t h = ((uintptr_t)text * 3 + part) * 0x9e3779b97f4a7c15u;
	size_t at = (size_t)(h ^ h >> 29) & (n - 1);

	while (slots[at].text && (slots[at].text != text || slots[at].part != part))
		at = (at + 1) & (n - 1);
	return &slots[at];
}

static bool grow(struct teller *t)
{
	size_t n = t->n_slots ? t->n_slots * 2 : 256;
	struct slot *slots = calloc(n, sizeof(*slots));

	if (!slots)
		return false;
	for (size_t i = 0; i < t->n_slots; i++)
		if (t->slots[i].text)
			*find(slots, n, t->slots[i].text, t->slots[i].part) = t->slots[i];
	free(t->slots);
	t->slots = slots;
	t->n_slots = n;
	return true;
}

/* The number of a word, which is told first where it is new; 0: it is empty, or there is no room
 * for it. The text is the trace's. */
static uint32_t word(struct teller *t, const char *text, enum part part)
{
	const char *source;
	struct slot *slot;
	size_t n, n_source;

	if (!*text || (t->n_used * 2 >= t->n_slots && !grow(t)))
		return 0;
	slot = find(t->slots, t->n_slots, text, part);
	if (slot->text)
		return slot->number;
	*slot = (struct slot){ text, part, 0 };
	t->n_used++;
	n = strlen(text);
	if (part != PART_ALL)
		image_split(text, &n, &source, &n_source);
	if (part == PART_SOURCE) {
		text = source;
		n = n_source;
	}
	n = n < HAL_WIRE_TEXT ? n : HAL_WIRE_TEXT;
	if (!n || t->n_words == HAL_WIRE_WORDS || t->word_bytes + n > HAL_WIRE_WORD_BYTES)
		return 0;
	put(&t->out, HAL_WIRE_WORD, text, n);
	t->word_bytes += n;
	return slot->number = ++t->n_words;
}

static bool tell_batch(struct teller *t)
{
	if (t->n)
		put(&t->out, HAL_WIRE_RECORDS, t->batch, t->n * sizeof(*t->batch));
	t->n = 0;
	return flush(t->s, &t->out);
}

static bool tell_record(struct teller *t, const struct hw_trace_record *r, int64_t ended)
{
	int64_t begin = hal_trace_time(t->trace, r->begin_ns) - t->s->at;
	int64_t end = hal_trace_time(t->trace, r->end_ns) - t->s->at;
	struct hal_trace_words w;

	/* Looks at a clock far away are not exact. */
	end = end < 0 ? 0 : end > ended ? ended : end;
	begin = begin < 0 ? 0 : begin > end ? end : begin;
	hal_trace_tell(t->trace, r, &w);
	t->batch[t->n++] = (struct hal_wire_record){
		.begin_ns = begin, .end_ns = end, .bytes = r->bytes, .ops = r->ops,
		.tag = r->tag, .n_insns = r->n_insns, .program = word(t, w.program, PART_ALL),
		.op = word(t, w.op, PART_ALL), .framework = word(t, w.where, PART_NAME),
		.source = word(t, w.where, PART_SOURCE), .kind = r->kind, .cls = r->cls,
		.code = r->op, .status = r->status, .queue = r->queue,
	};
	return t->n < HAL_WIRE_BATCH || tell_batch(t);
}

static bool tell_trace(struct hal_server *s, const struct kept *k)
{
	struct teller *t = calloc(1, sizeof(*t));
	struct hal_wire_trace head = { 0 };
	bool is_told;

	if (!t)
		return false;
	t->s = s;
	t->trace = k->trace;
	put(&t->out, HAL_WIRE_DEVICE, &k->device, sizeof(k->device));
	if (k->trace) {
		head = (struct hal_wire_trace){ k->trace->n_records, k->trace->n_lost,
						k->trace->ended - s->at };
		put(&t->out, HAL_WIRE_TRACE, &head, sizeof(head));
	}
	is_told = tell_batch(t);
	for (size_t i = 0; is_told && k->trace && i < k->trace->n_records; i++)
		is_told = tell_record(t, &k->trace->records[i], head.ended_ns);
	is_told = is_told && (!t->n || tell_batch(t));
	str_free(&t->out);
	free(t->slots);
	free(t);
	return is_told;
}

/* ---- the asker's steps; false: it is over ---- */

static bool do_start(struct hal_server *s)
{
	struct hal_wire_moment started = { 0 };
	struct hal *hal = s->hal;
	struct str out = { 0 };

	pthread_mutex_lock(&hal->lock);
	s->at = started.at_ns = clock_ns();
	s->is_on = true;
	for (unsigned i = 0; i < hal->n_entries; i++) {
		struct hal_wire_device device;

		if (!hal->entries[i].open)
			continue;
		begin_one(hal->entries[i].open, &device);
		started.n_devices += !device.code;
		put(&out, HAL_WIRE_DEVICE, &device, sizeof(device));
	}
	pthread_mutex_unlock(&hal->lock);
	put(&out, HAL_WIRE_STARTED, &started, sizeof(started));
	return flush(s, &out) && started.n_devices;
}

static void do_stop(struct hal_server *s)
{
	struct hal *hal = s->hal;

	pthread_mutex_lock(&hal->lock);
	for (unsigned i = 0; s->is_on && i < hal->n_entries; i++)
		if (hal->entries[i].open)
			end_one(s, hal->entries[i].open);
	s->is_on = false;
	pthread_mutex_unlock(&hal->lock);
}

static bool do_fetch(struct hal_server *s)
{
	struct hal_wire_end end = { s->n_dropped };
	struct str out = { 0 };

	for (unsigned i = 0; i < s->n; i++) {
		if (!tell_trace(s, &s->kept[i]))
			return false;
		hal_trace_free(s->kept[i].trace);
		s->kept[i].trace = NULL;
	}
	put(&out, HAL_WIRE_END, &end, sizeof(end));
	return flush(s, &out);
}

static void attend(struct hal_server *s)
{
	struct hal_wire_hello hello = { HAL_WIRE_MAGIC, HAL_WIRE_VERSION, (uint32_t)getpid(), 0 };
	struct hal_wire_moment stopped = { 0 };
	struct hal_wire_ask ask;
	struct str out = { 0 };
	uint32_t limit_ms;

	put(&out, HAL_WIRE_HELLO, &hello, sizeof(hello));
	if (!flush(s, &out) ||
	    !read_ask(s, HAL_WIRE_START, clock_after(HAL_WIRE_ASK_NS), &ask) || !do_start(s))
		return;
	limit_ms = ask.limit_ms < HAL_WIRE_LIMIT_MS ? ask.limit_ms : HAL_WIRE_LIMIT_MS;
	if (!read_ask(s, HAL_WIRE_STOP, clock_after(limit_ms * 1000000ll), &ask))
		return;
	do_stop(s);
	stopped.at_ns = clock_ns();
	put(&out, HAL_WIRE_STOPPED, &stopped, sizeof(stopped));
	if (flush(s, &out) &&
	    read_ask(s, HAL_WIRE_FETCH, clock_after(HAL_WIRE_KEEP_NS), &ask))
		do_fetch(s);
}

/* However it ended. */
static void let_go(struct hal_server *s)
{
	do_stop(s);
	for (unsigned i = 0; i < s->n; i++)
		hal_trace_free(s->kept[i].trace);
	free(s->kept);
	s->kept = NULL;
	s->n = s->room = 0;
	s->n_dropped = 0;
	pthread_mutex_lock(&sockets);
	close_fd(&s->fd);
	pthread_mutex_unlock(&sockets);
}

static void *serve(void *arg)
{
	struct hal_server *s = arg;

	while (look(s, 0, CLOCK_FOREVER) == SEEN_NEWCOMER) {
		answer_door(s);
		if (s->fd < 0)
			continue;
		attend(s);
		let_go(s);
	}
	return NULL;
}

/* ---- life ---- */

/* Its thread takes none of the program's signals. */
static int start_thread(struct hal_server *s)
{
	sigset_t all, before;
	int sysno;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	sysno = pthread_create(&s->thread, NULL, serve, s);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (!sysno)
		pthread_setname_np(s->thread, "tessera-trace");
	return sysno;
}

static void free_server(struct hal_server *s)
{
	pthread_mutex_lock(&sockets);
	for (struct hal_server **p = &servers; *p; p = &(*p)->next)
		if (*p == s) {
			*p = s->next;
			break;
		}
	close_fd(&s->listen_fd);
	close_fd(&s->fd);
	pthread_mutex_unlock(&sockets);
	if (s->wake_fd >= 0)
		close(s->wake_fd);
	free(s);
}

static int open_server(struct hal_server *s, struct err *err)
{
	int code, sysno;

	s->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (s->wake_fd < 0)
		return err_sys(err, errno, "eventfd");
	pthread_mutex_lock(&sockets);
	code = hal_page_listen(s->hal->page, s->hal->page_path, &s->listen_fd, err);
	s->next = servers;
	servers = s;
	pthread_mutex_unlock(&sockets);
	if (code)
		return code;
	sysno = start_thread(s);
	return sysno ? err_sys(err, sysno, "a thread for traces") : 0;
}

void hal_server_start(struct hal *hal)
{
	struct hal_server *s = calloc(1, sizeof(*s));
	struct err why;

	if (!s) {
		log_warn("not to be traced by xla-smi: out of memory");
		return;
	}
	pthread_once(&once, watch_forks);
	s->hal = hal;
	s->wake_fd = s->listen_fd = s->fd = -1;
	if (!open_server(s, &why)) {
		hal->server = s;
		return;
	}
	log_warn("not to be traced by xla-smi: %s", why.msg);
	free_server(s);
}

void hal_server_stop(struct hal *hal)
{
	struct hal_server *s = hal->server;
	uint64_t one = 1;

	if (!s)
		return;
	/* In a child of fork there is no such thread. */
	if (!hal_is_inherited(hal)) {
		if (write(s->wake_fd, &one, sizeof(one)) < 0)
			log_error("ending a thread: %s", strerror(errno));
		pthread_join(s->thread, NULL);
	}
	hal->server = NULL;
	free_server(s);
}
