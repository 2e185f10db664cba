/* SPDX-License-Identifier: Apache-2.0 */
/* Processes that tell what their devices do (hal/trace_wire.h), from finding them on. Any of them
 * may be stopped, hang, end, or tell nonsense: it is dropped then, by name, and others go on. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hal/base/clock.h"
#include "hal/base/err.h"
#include "hal/hw/desc.h"
#include "hal/telemetry.h"
#include "tools/xla-smi/trace.h"

/* It tells by a thread that does nothing else. START and STOP may wait there for a device that is
 * being opened or closed. */
#define GREET_NS 5000000000ll
#define ANSWER_NS 20000000000ll
#define SLACK_NS 1000000000ll
#define BUFFER (HAL_WIRE_BATCH * sizeof(struct hal_wire_record))
#define MOST_RECORDS ((uint64_t)32 << 20)	/* of one process: so many go to the file */

static_assert(GREET_NS < HAL_WIRE_ASK_NS, "those who answered wait for those who do not");
static_assert(BUFFER >= sizeof(struct hal_wire_device) && BUFFER >= HAL_WIRE_TEXT &&
	      BUFFER >= sizeof(struct hal_wire_refused), "room for each message");

/* ---- names ---- */

uint64_t smi_peer_pid(const struct smi_peer *p)
{
	return p->holder.is_known ? p->holder.n : p->pid;
}

/* "process 4711 (train)"; until the next call. */
static const char *name_of(const struct smi_peer *p)
{
	static char name[128];

	snprintf(name, sizeof(name), "process %llu (%s)", (unsigned long long)smi_peer_pid(p),
		 p->command);
	return name;
}

/* Prints why there is no more of it, and hangs up. */
static void __attribute__((format(printf, 3, 4)))
drop(struct smi_peer *p, int status, const char *fmt, ...)
{
	va_list args;

	fprintf(stderr, "xla-smi: %s: ", name_of(p));
	va_start(args, fmt);
	vfprintf(stderr, fmt, args);
	va_end(args);
	fputc('\n', stderr);
	if (p->fd >= 0)
		close(p->fd);
	p->fd = -1;
	p->status = status;
}

/* It did not answer; if /proc shows why, that is said. */
static void drop_silent(struct smi_peer *p, const char *when)
{
	char line[512], state = 0;
	const char *end;

	if (smi_read_line(line, sizeof(line), "%s/proc/%llu/stat", p->root,
			  (unsigned long long)smi_peer_pid(p))) {
		end = strrchr(line, ')');
		state = end && end[1] ? end[2] : 0;
	}
	drop(p, SMI_SILENT, "it does not answer%s: %s", when, state == 'T' || state == 't' ?
		 "it is stopped; let it go on (kill -CONT) and try again" :
		 "it hangs, or waits for a device that does; what it recorded is lost");
}

static void drop_ended(struct smi_peer *p)
{
	drop(p, SMI_SILENT, "it ended, or hung up: what it had recorded is lost");
}

static void drop_liar(struct smi_peer *p, const char *what)
{
	drop(p, SMI_FAILED, "what it tells is no trace (%s): its records are left out", what);
}

/* ---- signals ---- */

static volatile sig_atomic_t n_signals;
static sigset_t normal;

static void note_signal(int number)
{
	(void)number;
	n_signals = n_signals < 2 ? n_signals + 1 : 2;
}

void smi_watch_signals(bool on)
{
	static const int numbers[] = { SIGINT, SIGTERM, SIGHUP };
	struct sigaction act = { .sa_handler = on ? note_signal : SIG_DFL };
	sigset_t watched;

	sigemptyset(&watched);
	for (unsigned i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
		sigaddset(&watched, numbers[i]);
		sigaction(numbers[i], &act, NULL);
	}
	if (on)
		sigprocmask(SIG_BLOCK, &watched, &normal);
	else
		sigprocmask(SIG_SETMASK, &normal, NULL);
}

/* Waits; signals come here and nowhere else. As ppoll; -1: so many signals have come, ever. */
static int wait_for(struct pollfd *fds, nfds_t n, int64_t deadline, int signals)
{
	int found = -1;

	while (n_signals < signals) {
		int64_t left = deadline - clock_ns();
		struct timespec t = clock_spec(left < 0 ? 0 : left);

		found = ppoll(fds, n, &t, &normal);
		if (found >= 0 || errno != EINTR)
			break;
	}
	return n_signals < signals ? found : -1;
}

/* ---- messages; 0 and false: the peer was dropped ---- */

static bool await(struct smi_peer *p, short events, int64_t deadline, const char *when)
{
	struct pollfd f = { .fd = p->fd, .events = events };
	int n = wait_for(&f, 1, deadline, 2);

	if (n > 0)
		return true;
	if (n < 0)
		drop(p, SMI_FAILED, "interrupted");
	else
		drop_silent(p, when);
	return false;
}

static bool read_all(struct smi_peer *p, void *to, size_t n, int64_t deadline, const char *when)
{
	char *at = to;

	while (n) {
		ssize_t got = recv(p->fd, at, n, MSG_DONTWAIT);

		if (got > 0) {
			at += got;
			n -= (size_t)got;
		} else if (!got || (errno != EAGAIN && errno != EINTR)) {
			drop_ended(p);
			return false;
		} else if (!await(p, POLLIN, deadline, when)) {
			return false;
		}
		/* One that never stops sending has an end, too. */
		if (n && clock_ns() > deadline) {
			drop_silent(p, when);
			return false;
		}
	}
	return true;
}

static bool is_size(const struct hal_wire_head *h)
{
	switch (h->kind) {
	case HAL_WIRE_HELLO:
		return h->bytes == sizeof(struct hal_wire_hello);
	case HAL_WIRE_REFUSED:
		return h->bytes == sizeof(struct hal_wire_refused);
	case HAL_WIRE_DEVICE:
		return h->bytes == sizeof(struct hal_wire_device);
	case HAL_WIRE_STARTED:
	case HAL_WIRE_STOPPED:
		return h->bytes == sizeof(struct hal_wire_moment);
	case HAL_WIRE_TRACE:
		return h->bytes == sizeof(struct hal_wire_trace);
	case HAL_WIRE_WORD:
		return h->bytes && h->bytes <= HAL_WIRE_TEXT;
	case HAL_WIRE_RECORDS:
		return h->bytes && h->bytes <= BUFFER &&
			h->bytes % sizeof(struct hal_wire_record) == 0;
	case HAL_WIRE_END:
		return h->bytes == sizeof(struct hal_wire_end);
	default:
		return false;
	}
}

static int status_of(unsigned code)
{
	return code == ERR_PERMISSION_DENIED || code == ERR_ALREADY_EXISTS ||
		code == ERR_UNIMPLEMENTED ? SMI_REFUSED : SMI_FAILED;
}

/* The kind of the next message, which is in p->buffer; *bytes of it. */
static unsigned read_message(struct smi_peer *p, int64_t deadline, const char *when,
			     uint32_t *bytes)
{
	struct hal_wire_head head;
	struct hal_wire_refused *refused = (void *)p->buffer;

	if (!read_all(p, &head, sizeof(head), deadline, when))
		return 0;
	if (!is_size(&head)) {
		drop_liar(p, "a message of no such kind or size");
		return 0;
	}
	if (!read_all(p, p->buffer, head.bytes, deadline, when))
		return 0;
	p->buffer[head.bytes] = 0;
	*bytes = head.bytes;
	if (head.kind != HAL_WIRE_REFUSED)
		return head.kind;
	hal_text_clean(refused->text, sizeof(refused->text));
	drop(p, status_of(refused->code), "%s", refused->text);
	return 0;
}

static void ask(struct smi_peer *p, enum hal_wire_step step, uint32_t limit_ms)
{
	struct hal_wire_ask a = { HAL_WIRE_MAGIC, HAL_WIRE_VERSION, step, limit_ms };

	/* There is room for 16 bytes, or it reads nothing. */
	if (p->fd >= 0 && send(p->fd, &a, sizeof(a), MSG_NOSIGNAL | MSG_DONTWAIT) != sizeof(a))
		drop_ended(p);
}

/* ---- finding ---- */

struct search {
	const char *root;
	struct smi_peers found;
	uint64_t pid;		/* that is wanted, as files' names tell it; 0: all are */
	unsigned n_old, n_closed;	/* of these: of another version; not to be read */
	bool is_full;
};

static void find_one(void *arg, const char *path, const struct smi_locks *locks,
		     struct hal_page *page)
{
	struct search *s = arg;
	struct smi_peer *grown, *p;
	unsigned uid, pid;
	struct stat st;
	struct err err;
	int code = hal_page_read(path, page, &err);
	bool is_named;

	if (code) {
		is_named = sscanf(strrchr(path, '/'), "/tessera-%u-%u-", &uid, &pid) == 2 &&
			(!s->pid || pid == s->pid);
		s->n_closed += is_named && code == ERR_PERMISSION_DENIED;
		s->n_old += is_named && code == ERR_INVALID_ARGUMENT;
		return;
	}
	if (stat(path, &st))
		return;
	grown = realloc(s->found.peer, (s->found.n + 1) * sizeof(*grown));
	if (!grown) {
		s->is_full = true;
		return;
	}
	s->found.peer = grown;
	p = &grown[s->found.n++];
	*p = (struct smi_peer){ .socket = page->socket, .uid = st.st_uid, .pid = page->pid,
				.holder = smi_lock_holder(locks, st.st_dev, st.st_ino),
				.root = s->root, .fd = -1 };
	snprintf(p->path, sizeof(p->path), "%s", path);
	snprintf(p->command, sizeof(p->command), "%s", page->command);
}

/* Leaves those of one process: the one that is called so here, else the one that calls itself so
 * where it is. More than one of these: *n_others. */
static void choose(struct smi_peers *all, uint64_t pid, unsigned *n_others)
{
	struct smi_num holder = { 0 };
	unsigned n = 0;
	bool is_here = false;

	*n_others = 0;
	for (unsigned i = 0; i < all->n; i++)
		is_here |= all->peer[i].holder.is_known && all->peer[i].holder.n == pid;
	for (unsigned i = 0; i < all->n; i++) {
		struct smi_peer *p = &all->peer[i];

		if (is_here ? !p->holder.is_known || p->holder.n != pid : p->pid != pid)
			continue;
		if (n && (!holder.is_known || !p->holder.is_known || holder.n != p->holder.n))
			++*n_others;
		holder = p->holder;
		all->peer[n++] = *p;
	}
	all->n = n;
}

static int say_none(const struct search *s, bool is_all)
{
	char comm[64], pages[SMI_PATH];

	if (is_all)
		snprintf(pages, sizeof(pages), "pages in %s are", hal_page_dir());
	else
		snprintf(pages, sizeof(pages), "page of process %llu is",
			 (unsigned long long)s->pid);
	if (s->n_closed) {
		fprintf(stderr, "xla-smi: the telemetry %s not for this user to read: ask as the "
			"owner, or as root\n", pages);
		return SMI_REFUSED;
	} else if (s->n_old) {
		fprintf(stderr, "xla-smi: the telemetry %s of another version: use the xla-smi of "
			"that release\n", pages);
		return SMI_FAILED;
	} else if (is_all) {
		fprintf(stderr, "xla-smi: no process has a telemetry page in %s, so that there "
			"is none to trace\n", hal_page_dir());
	} else if (!smi_read_line(comm, sizeof(comm), "%s/proc/%llu/comm", s->root,
				  (unsigned long long)s->pid)) {
		fprintf(stderr, "xla-smi: there is no process %llu; xla-smi proc shows those that "
			"use devices\n", (unsigned long long)s->pid);
	} else {
		hal_text_clean(comm, sizeof(comm));
		fprintf(stderr, "xla-smi: process %llu (%s) has no telemetry page in %s: it has no "
			"device open, or puts its page elsewhere (TESSERA_TELEMETRY_DIR)\n",
			(unsigned long long)s->pid, comm, hal_page_dir());
	}
	return SMI_NO_DEVICE;
}

static int make_buffers(struct smi_peers *peers)
{
	for (unsigned i = 0; i < peers->n; i++) {
		peers->peer[i].buffer = malloc(BUFFER + 1);
		if (!peers->peer[i].buffer) {
			fprintf(stderr, "xla-smi: out of memory\n");
			return SMI_FAILED;
		}
	}
	return SMI_OK;
}

int smi_find_peers(const char *root, const char *which, struct smi_peers *out)
{
	struct search s = { .root = root };
	bool is_all = !strcmp(which, "all");
	struct smi_node node;
	unsigned n_others = 0;
	char *end = NULL;

	*out = (struct smi_peers){ 0 };
	errno = 0;
	s.pid = is_all ? 0 : strtoull(which, &end, 10);
	if (!is_all && (*which < '0' || *which > '9' || *end || errno || !s.pid)) {
		fprintf(stderr, "xla-smi: \"%s\" is no process id, nor \"all\"\nusage: xla-smi "
			"trace PID|all\n", which);
		return SMI_USAGE;
	}
	smi_node_init(&node);
	smi_each_page(root, &node, find_one, &s);
	*out = s.found;
	if (*node.problem || s.is_full) {
		fprintf(stderr, "xla-smi: %s\n", s.is_full ? "out of memory" : node.problem);
		smi_node_free(&node);
		return SMI_FAILED;
	}
	smi_node_free(&node);
	if (!is_all)
		choose(out, s.pid, &n_others);
	if (!out->n)
		return say_none(&s, is_all);
	if (n_others) {
		fprintf(stderr, "xla-smi: more than one process says that it is %s: name it as it "
			"is SEEN AS in xla-smi proc\n", which);
		return SMI_REFUSED;
	}
	return make_buffers(out);
}

void smi_free_peers(struct smi_peers *peers)
{
	for (unsigned i = 0; i < peers->n; i++) {
		if (peers->peer[i].fd >= 0)
			close(peers->peer[i].fd);
		free(peers->peer[i].buffer);
	}
	free(peers->peer);
	*peers = (struct smi_peers){ 0 };
}

/* ---- steps ---- */

/* Whoever listens is who the page is of. */
static bool is_genuine(struct smi_peer *p)
{
	struct ucred who;
	socklen_t n = sizeof(who);

	if (getsockopt(p->fd, SOL_SOCKET, SO_PEERCRED, &who, &n)) {
		drop(p, SMI_FAILED, "who is at its socket can't be told: %s", strerror(errno));
		return false;
	}
	if (who.uid == p->uid && (!who.pid || !p->holder.is_known ||
				  (uint64_t)who.pid == p->holder.n))
		return true;
	drop(p, SMI_REFUSED, "at the socket of its page is process %d of user %u: a stranger, "
		 "who is not asked (the page is user %u's)", who.pid, who.uid, p->uid);
	return false;
}

static void connect_to(struct smi_peer *p, int64_t deadline)
{
	int64_t left = deadline - clock_ns();
	char user[64];
	struct err err;
	int code;

	if (!p->socket) {
		drop(p, SMI_REFUSED, "it can't be traced: its page names no socket, since it "
			 "is of an older version or could not make one (TESSERA_LOG=warn says "
			 "why)");
		return;
	}
	code = hal_page_connect(p->path, p->socket, left > 1000000 ? left : 1000000, &p->fd, &err);
	if (code == ERR_PERMISSION_DENIED) {
		smi_user_name(p->uid, user, sizeof(user));
		drop(p, SMI_REFUSED, "it is user %s's: only that user and root may trace it",
			 user);
	} else if (code == ERR_DEADLINE_EXCEEDED) {
		drop_silent(p, " within 5 s");
	} else if (code == ERR_UNAVAILABLE || code == ERR_NOT_FOUND) {
		drop(p, SMI_SILENT, "nobody is at its socket: it is ending, or it was forked "
			 "from a process that has ended");
	} else if (code) {
		drop(p, SMI_FAILED, "%s", err.msg);
	} else {
		is_genuine(p);
	}
}

static void read_hello(struct smi_peer *p, int64_t deadline)
{
	const struct hal_wire_hello *h = (const void *)p->buffer;
	unsigned kind;
	uint32_t n;

	if (p->fd < 0)
		return;
	kind = read_message(p, deadline, " within 5 s", &n);
	if (!kind)
		return;
	if (kind != HAL_WIRE_HELLO || h->magic != HAL_WIRE_MAGIC || h->pid != p->pid)
		drop_liar(p, "no greeting");
	else if (h->version != HAL_WIRE_VERSION)
		drop(p, SMI_FAILED, "it tells traces in version %u, this is %u: use the "
			 "xla-smi of its release", h->version, HAL_WIRE_VERSION);
}

void smi_greet(struct smi_peers *peers)
{
	int64_t deadline = clock_after(GREET_NS);

	for (unsigned i = 0; i < peers->n; i++)
		connect_to(&peers->peer[i], deadline);
	for (unsigned i = 0; i < peers->n; i++)
		read_hello(&peers->peer[i], deadline);
}

static void clean_device(struct hal_wire_device *d)
{
	hal_text_clean(d->bus_id, sizeof(d->bus_id));
	hal_text_clean(d->name, sizeof(d->name));
	hal_text_clean(d->text, sizeof(d->text));
}

/* A device that is not traced; what is lost is told, the others go on. */
static void say_untraced(struct smi_peer *p, const struct hal_wire_device *d)
{
	fprintf(stderr, "xla-smi: %s: %s\n", name_of(p), d->text);
	p->status = p->status ? p->status : status_of(d->code);
}

static void read_started(struct smi_peer *p, int64_t asked, int64_t deadline)
{
	struct hal_wire_device *d = (void *)p->buffer;
	const struct hal_wire_moment *m = (const void *)p->buffer;
	unsigned kind = 0, n_devices = 0;
	int64_t now;
	uint32_t n;

	while (p->fd >= 0 && (kind = read_message(p, deadline, "", &n)) == HAL_WIRE_DEVICE &&
	       n_devices++ < HAL_WIRE_TRACES) {
		clean_device(d);
		if (d->code)
			say_untraced(p, d);
	}
	if (p->fd < 0)
		return;
	if (kind != HAL_WIRE_STARTED) {
		drop_liar(p, "no begin");
		return;
	}
	/* In another time namespace the clock starts elsewhere. */
	now = clock_ns();
	p->base_ns = m->at_ns >= asked && m->at_ns <= now ? m->at_ns : asked + (now - asked) / 2;
	p->n_devices = m->n_devices;
	if (!m->n_devices)
		drop(p, p->status ? p->status : SMI_NO_DEVICE,
			 n_devices ? "none of its devices is traced" : "it has no device open");
}

void smi_start(struct smi_peers *peers, uint32_t limit_ms)
{
	int64_t asked = clock_ns(), deadline = clock_after(ANSWER_NS);

	for (unsigned i = 0; i < peers->n; i++)
		ask(&peers->peer[i], HAL_WIRE_START, limit_ms);
	for (unsigned i = 0; i < peers->n; i++)
		read_started(&peers->peer[i], asked, deadline);
}

void smi_stop(struct smi_peers *peers)
{
	int64_t deadline = clock_after(ANSWER_NS);
	unsigned kind;
	uint32_t n;

	for (unsigned i = 0; i < peers->n; i++)
		ask(&peers->peer[i], HAL_WIRE_STOP, 0);
	for (unsigned i = 0; i < peers->n; i++) {
		struct smi_peer *p = &peers->peer[i];

		if (p->fd < 0)
			continue;
		kind = read_message(p, deadline, "", &n);
		if (kind && kind != HAL_WIRE_STOPPED)
			drop_liar(p, "no end");
	}
}

/* It tells something, though nobody asked. */
static void hear(struct smi_peer *p)
{
	uint32_t n;

	if (read_message(p, clock_after(GREET_NS), "", &n))
		drop_liar(p, "it speaks without being asked");
}

void smi_record_until(struct smi_peers *peers, int64_t deadline)
{
	struct pollfd *fds = calloc(peers->n, sizeof(*fds));
	unsigned left = fds ? peers->n : 0;

	while (left) {
		int n;

		left = 0;
		for (unsigned i = 0; i < peers->n; i++) {
			fds[i] = (struct pollfd){ .fd = peers->peer[i].fd, .events = POLLIN };
			left += fds[i].fd >= 0;
		}
		n = left ? wait_for(fds, peers->n, deadline, 1) : 0;
		if (n <= 0)
			break;
		for (unsigned i = 0; i < peers->n; i++)
			if (fds[i].fd >= 0 && fds[i].revents)
				hear(&peers->peer[i]);
	}
	free(fds);
}

/* ---- reading what was recorded ---- */

static void forget_words(struct smi_told *t)
{
	for (uint32_t i = 0; i < t->n_words; i++)
		free(t->words[i]);
	t->n_words = 0;
	t->word_bytes = 0;
}

static bool add_word(struct smi_told *t, char *text, uint32_t bytes)
{
	uint32_t room = t->room ? t->room * 2 : 64;
	char **grown;

	if (t->n_words == HAL_WIRE_WORDS || t->word_bytes + bytes > HAL_WIRE_WORD_BYTES)
		return false;
	if (t->n_words == t->room) {
		grown = realloc(t->words, room * sizeof(*grown));
		if (!grown)
			return false;
		t->words = grown;
		t->room = room;
	}
	hal_text_clean(text, bytes + 1);
	t->words[t->n_words] = strdup(text);
	t->word_bytes += bytes;
	return t->words[t->n_words++] != NULL;
}

/* NULL: they may be believed. */
static const char *check_records(const struct smi_told *t, const struct hal_wire_record *r,
				 unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		if (r[i].kind < HW_TRACE_PROGRAM || r[i].kind > HW_TRACE_WAIT ||
		    (r[i].cls != HW_CLASS_COMPUTE && r[i].cls != HW_CLASS_DMA))
			return "a record of no such kind";
		if (r[i].begin_ns < 0 || r[i].end_ns < r[i].begin_ns ||
		    r[i].end_ns > t->trace.ended_ns)
			return "a time outside of the trace";
		if (r[i].program > t->n_words || r[i].op > t->n_words ||
		    r[i].framework > t->n_words || r[i].source > t->n_words)
			return "a word that was not told";
	}
	return NULL;
}

/* A reading while it goes on. */
struct reading {
	struct smi_peer *p;
	struct smi_told told;
	smi_take_fn *take;
	void *arg;
	bool has_device, has_trace;
	uint64_t left;		/* records that the trace has still to tell */
	uint64_t n_taken, n_left_out;	/* of the process */
	unsigned n_traces;
};

/* The trace that was read is whole. */
static bool end_trace(struct reading *r, const char **wrong)
{
	struct smi_told *t = &r->told;
	bool is_taken = true;

	if (r->left) {
		*wrong = "records are missing";
		return false;
	}
	if (r->has_trace) {
		is_taken = r->take(r->arg, t, NULL, 0);
		if (t->trace.n_lost)
			fprintf(stderr, "xla-smi: %s: %s: %llu records were lost, because they came"
				" faster than they were read, or were too many\n",
				name_of(r->p), t->device.bus_id,
				(unsigned long long)t->trace.n_lost);
		if (t->trace.n_lost && !r->p->status)
			r->p->status = SMI_FAILED;
	}
	forget_words(t);
	r->has_trace = r->has_device = false;
	return is_taken;
}

static bool begin_device(struct reading *r, const char **wrong)
{
	struct smi_told *t = &r->told;

	if (!end_trace(r, wrong))
		return false;
	if (r->n_traces++ == HAL_WIRE_TRACES) {
		*wrong = "too many traces";
		return false;
	}
	memcpy(&t->device, r->p->buffer, sizeof(t->device));
	clean_device(&t->device);
	r->has_device = !t->device.code;
	if (t->device.code)
		say_untraced(r->p, &t->device);
	return true;
}

static bool begin_trace(struct reading *r, const char **wrong)
{
	struct smi_told *t = &r->told;

	memcpy(&t->trace, r->p->buffer, sizeof(t->trace));
	if (!r->has_device || r->has_trace || t->trace.n_records > HAL_WIRE_MOST)
		*wrong = "a trace of no device, or of too many records";
	else if (t->trace.ended_ns < 0 ||
		 t->trace.ended_ns > clock_ns() - r->p->base_ns + SLACK_NS)
		*wrong = "a trace that ends in the future";
	r->has_trace = true;
	r->left = t->trace.n_records;
	return !*wrong;
}

static bool take_records(struct reading *r, unsigned n, const char **wrong)
{
	const struct hal_wire_record *records = (const void *)r->p->buffer;

	if (!r->has_trace || n > r->left) {
		*wrong = "more records than it said";
		return false;
	}
	*wrong = check_records(&r->told, records, n);
	if (*wrong)
		return false;
	r->left -= n;
	if (r->n_taken + n > MOST_RECORDS) {
		r->n_left_out += n;
		return true;
	}
	r->n_taken += n;
	return r->take(r->arg, &r->told, records, n);
}

/* True: there is more to come. With *wrong, what is no trace. */
static bool take_message(struct reading *r, unsigned kind, uint32_t bytes, const char **wrong)
{
	switch (kind) {
	case HAL_WIRE_DEVICE:
		return begin_device(r, wrong);
	case HAL_WIRE_TRACE:
		return begin_trace(r, wrong);
	case HAL_WIRE_WORD:
		if (!r->has_trace || !add_word(&r->told, (char *)r->p->buffer, bytes))
			*wrong = "too many words";
		return !*wrong;
	case HAL_WIRE_RECORDS:
		return take_records(r, bytes / sizeof(struct hal_wire_record), wrong);
	case HAL_WIRE_END:
		end_trace(r, wrong);
		return false;
	default:
		*wrong = "a message out of turn";
		return false;
	}
}

static void end_reading(struct reading *r)
{
	const struct hal_wire_end *end = (const void *)r->p->buffer;

	if (end->n_dropped)
		fprintf(stderr, "xla-smi: %s: the traces of %llu devices that it closed meanwhile "
			"are lost: they were too many\n", name_of(r->p),
			(unsigned long long)end->n_dropped);
	if (r->n_left_out)
		fprintf(stderr, "xla-smi: %s: %llu records are left out of the file, for which they"
			" are too many: trace for a shorter time\n", name_of(r->p),
			(unsigned long long)r->n_left_out);
	if ((end->n_dropped || r->n_left_out) && !r->p->status)
		r->p->status = SMI_FAILED;
}

bool smi_fetch(struct smi_peer *p, smi_take_fn *take, void *arg)
{
	int64_t last = clock_after(HAL_WIRE_KEEP_NS);
	struct reading r = { .p = p, .told = { .peer = p }, .take = take, .arg = arg };
	const char *wrong = NULL;
	unsigned kind = 0;
	uint32_t bytes;
	bool goes_on = true, is_whole;

	ask(p, HAL_WIRE_FETCH, 0);
	while (goes_on && p->fd >= 0) {
		int64_t soon = clock_after(ANSWER_NS);

		kind = read_message(p, soon < last ? soon : last, "", &bytes);
		goes_on = kind && take_message(&r, kind, bytes, &wrong);
	}
	if (wrong)
		drop_liar(p, wrong);
	else if (kind == HAL_WIRE_END)
		end_reading(&r);
	is_whole = kind == HAL_WIRE_END && !wrong;
	forget_words(&r.told);
	free(r.told.words);
	if (p->fd >= 0)
		close(p->fd);
	p->fd = -1;
	return is_whole;
}
