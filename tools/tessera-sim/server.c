/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sockets and seats. Each device has a listening socket, DIR/N.sock, and for each of its
 * functions a seat: a thread that serves one client after another. The main thread accepts:
 * a client that comes while all seats are taken is told EBUSY in answer to its VERSION,
 * unless one that sits has hung up already and is just being cleaned up after.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "hal/base/clock.h"
#include "hal/base/files.h"
#include "tools/tessera-sim/server.h"

#define MAX_SEATS 64u
#define MAX_TURNED 32u		/* clients that are being told of a busy device */
#define TURN_NS 1000000000ll	/* how long such a one may take to say VERSION */
#define MAX_RESTS 16u		/* what it says beside is read so often */
#define REST_NS 500000000ll	/* when clients can't be accepted */
#define MOST_AREAS 65530ul	/* of memory that a process has, where the kernel does not say */
#define OWN_AREAS 8192ul	/* of these, not for clients */

struct seat {
	struct device d;
	pthread_t thread;
	bool has_thread;
	pthread_mutex_t lock;
	pthread_cond_t moved;
	int fd, next;			/* the client and the one after it; -1: none */
	bool has_hung_up, quit;
	int listen_fd, wake_fd;		/* listen_fd, path: the first of a device's */
	char path[108];
};

struct turned {
	int fd;
	int64_t deadline;
	struct vfu_header h;
	size_t got;
};

struct server {
	const struct server_options *o;
	struct sim *sim;
	unsigned n, of_device;		/* seats in all, and neighbours of one device */
	unsigned most_areas;		/* of each seat's client */
	struct seat *seats;
	int lock_fd, signal_fd, guard_fd, wake_fd;
	struct turned turned[MAX_TURNED];
	unsigned n_turned;
	int64_t rest_until;		/* no client is accepted before; 0: now */
	struct control control;
};

/* ---- a seat's thread ---- */

static void *serve_seat(void *arg)
{
	struct seat *s = arg;
	uint64_t one = 1;

	pthread_mutex_lock(&s->lock);
	while (!s->quit) {
		if (s->fd < 0) {
			pthread_cond_wait(&s->moved, &s->lock);
			continue;
		}
		pthread_mutex_unlock(&s->lock);
		session_run(&s->d, s->fd);
		pthread_mutex_lock(&s->lock);
		close(s->fd);
		s->fd = s->next;
		s->next = -1;
		s->has_hung_up = false;
		if (write(s->wake_fd, &one, sizeof(one)) < 0)
			say("waking the main thread: %s", strerror(errno));
	}
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

/* ---- who is turned away ---- */

static void turn_away(struct server *s, int fd)
{
	if (s->n_turned == MAX_TURNED) {
		close(fd);
		return;
	}
	s->turned[s->n_turned++] = (struct turned){ .fd = fd,
						    .deadline = clock_after(TURN_NS) };
}

/* Whether it has been told, or gave up. */
static bool tell_busy(struct turned *t, short events)
{
	char rest[4096];
	ssize_t n;

	if (clock_ns() > t->deadline)
		return true;
	if (!events)
		return false;
	n = recv(t->fd, (char *)&t->h + t->got, sizeof(t->h) - t->got, MSG_DONTWAIT);
	if (n <= 0)
		return n == 0 || (errno != EAGAIN && errno != EINTR);
	t->got += (size_t)n;
	if (t->got < sizeof(t->h))
		return false;
	/* One that sends without end is not read to the end. */
	for (unsigned i = 0; i < MAX_RESTS && recv(t->fd, rest, sizeof(rest), MSG_DONTWAIT) > 0;
	     i++)
		;
	t->h.flags = VFU_IS_REPLY | VFU_ERROR;
	t->h.size = sizeof(t->h);
	t->h.error = EBUSY;
	/* One that has gone meanwhile need not be told. */
	(void)!send(t->fd, &t->h, sizeof(t->h), MSG_NOSIGNAL | MSG_DONTWAIT);
	return true;
}

static void look_at_turned(struct server *s, const struct pollfd *p)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < s->n_turned; i++) {
		if (tell_busy(&s->turned[i], p[i].revents))
			close(s->turned[i].fd);
		else
			s->turned[kept++] = s->turned[i];
	}
	s->n_turned = kept;
}

/* ---- the main thread ---- */

static bool hung_up(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLRDHUP };

	return poll(&p, 1, 0) > 0;
}

/* Gives the client a seat that is free, or, unless is_free, will be in a moment. */
static bool take_seat(struct seat *seat, bool is_free, int fd)
{
	bool has = false;

	pthread_mutex_lock(&seat->lock);
	if (seat->next >= 0 && hung_up(seat->next)) {
		close(seat->next);
		seat->next = -1;
	}
	/* Also where it has become so since the first look. */
	if (seat->fd < 0) {
		seat->fd = fd;
		pthread_cond_signal(&seat->moved);
		has = true;
	} else if (!is_free && seat->next < 0 &&
		   (seat->has_hung_up || hung_up(seat->fd))) {
		seat->next = fd;
		has = true;
	}
	pthread_mutex_unlock(&seat->lock);
	return has;
}

/* `seat` is the first of the device's. */
static void accept_client(struct server *s, struct seat *seat)
{
	int fd = accept4(seat->listen_fd, NULL, NULL, SOCK_CLOEXEC);
	bool has_seat = false;

	if (fd < 0) {
		if (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED)
			return;
		/* It stays in the queue, and poll would tell of it again at once. */
		say("%u: a client can't be accepted yet: %s", seat->d.index, strerror(errno));
		s->rest_until = clock_after(REST_NS);
		return;
	}
	for (unsigned i = 0; !has_seat && i < s->of_device; i++)
		has_seat = take_seat(&seat[i], true, fd);
	for (unsigned i = 0; !has_seat && i < s->of_device; i++)
		has_seat = take_seat(&seat[i], false, fd);
	if (!has_seat) {
		say("%u: busy; another client was turned away", seat->d.index);
		turn_away(s, fd);
	}
}

/* Clients whose memory broke are cut off. */
static void sweep(struct server *s)
{
	for (unsigned i = 0; i < s->n; i++) {
		struct seat *seat = &s->seats[i];

		pthread_mutex_lock(&seat->lock);
		if (seat->fd >= 0 && atomic_load(&seat->d.is_broken))
			shutdown(seat->fd, SHUT_RDWR);
		seat->has_hung_up = seat->fd >= 0 && (seat->has_hung_up || hung_up(seat->fd));
		pthread_mutex_unlock(&seat->lock);
	}
}

static void empty(int fd)
{
	uint64_t count;

	if (read(fd, &count, sizeof(count)) < 0 && errno != EAGAIN)
		say("reading an eventfd: %s", strerror(errno));
}

/* One wait; false when it is time to stop. */
static bool step(struct server *s)
{
	struct pollfd p[3 + 2 * MAX_SEATS + MAX_TURNED];
	unsigned n = s->n, first_turned = 3 + 2 * n;
	bool rests = clock_ns() < s->rest_until;

	sweep(s);
	p[0] = (struct pollfd){ .fd = s->signal_fd, .events = POLLIN };
	p[1] = (struct pollfd){ .fd = s->guard_fd, .events = POLLIN };
	p[2] = (struct pollfd){ .fd = s->wake_fd, .events = POLLIN };
	for (unsigned i = 0; i < n; i++) {
		struct seat *seat = &s->seats[i];

		pthread_mutex_lock(&seat->lock);
		p[3 + i] = (struct pollfd){ .fd = rests ? -1 : seat->listen_fd,
					    .events = POLLIN };
		p[3 + n + i] = (struct pollfd){ .events = POLLRDHUP,
			.fd = seat->has_hung_up ? -1 : seat->fd };
		pthread_mutex_unlock(&seat->lock);
	}
	for (unsigned i = 0; i < s->n_turned; i++)
		p[first_turned + i] = (struct pollfd){ .fd = s->turned[i].fd,
						       .events = POLLIN };
	if (poll(p, first_turned + s->n_turned, s->n_turned || rests ? 200 : -1) < 0)
		return errno == EINTR;
	if (p[1].revents)
		empty(s->guard_fd);
	if (p[2].revents)
		empty(s->wake_fd);
	look_at_turned(s, p + first_turned);
	for (unsigned i = 0; i < n; i++)
		if (p[3 + i].revents)
			accept_client(s, &s->seats[i]);
	return !p[0].revents;
}

/* ---- starting and stopping ---- */

static int listen_at(struct server *s, struct seat *seat, struct err *err)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };

	snprintf(seat->path, sizeof(seat->path), "%s/%u.sock", s->o->dir, seat->d.index);
	memcpy(a.sun_path, seat->path, sizeof(a.sun_path));
	/* The lock on the folder is ours: a socket that is there is nobody's. */
	unlink(seat->path);
	seat->listen_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (seat->listen_fd < 0 || bind(seat->listen_fd, (struct sockaddr *)&a, sizeof(a)) ||
	    (s->o->group >= 0 && chown(seat->path, (uid_t)-1, (gid_t)s->o->group)) ||
	    chmod(seat->path, s->o->mode) || listen(seat->listen_fd, 16))
		return err_sys(err, errno, "the socket %s", seat->path);
	return 0;
}

static int take_folder(struct server *s, struct err *err)
{
	char path[200];

	if (strlen(s->o->dir) > 90)
		return err_set(err, ERR_INVALID_ARGUMENT, "--socket-dir %s is longer than the "
			       "90 characters that a socket's path leaves for it", s->o->dir);
	if (mkdir(s->o->dir, 0755) && errno != EEXIST)
		return err_sys(err, errno, "the folder %s (--socket-dir)", s->o->dir);
	snprintf(path, sizeof(path), "%s/lock", s->o->dir);
	s->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (s->lock_fd < 0)
		return err_sys(err, errno, "%s", path);
	if (flock(s->lock_fd, LOCK_EX | LOCK_NB))
		return err_set(err, ERR_FAILED_PRECONDITION, "another tessera-sim serves %s; "
			       "stop it or give another --socket-dir", s->o->dir);
	return 0;
}

static int open_seat(struct server *s, unsigned i, struct err *err)
{
	struct seat *seat = &s->seats[i];
	int code;

	pthread_mutex_init(&seat->lock, NULL);
	pthread_cond_init(&seat->moved, NULL);
	code = device_init(&seat->d, sim_function(s->sim, i / s->of_device, i % s->of_device),
			   i / s->of_device, err);
	seat->d.limit_ns = s->o->limit_ns;
	seat->d.dma.most_areas = s->most_areas;
	seat->fd = seat->next = seat->listen_fd = -1;
	seat->wake_fd = s->wake_fd;
	if (!code && !(i % s->of_device))
		code = listen_at(s, seat, err);
	if (code)
		return code;
	if (pthread_create(&seat->thread, NULL, serve_seat, seat))
		return err_set(err, ERR_RESOURCE_EXHAUSTED, "could not start a thread");
	seat->has_thread = true;
	return 0;
}

/* Tells a service manager, if there is one, that clients may come. */
static void tell_ready(void)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	size_t n = path ? strlen(path) : 0;
	int fd;

	if (!n || n >= sizeof(a.sun_path))
		return;
	memcpy(a.sun_path, path, n);
	if (*path == '@')
		a.sun_path[0] = 0;
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || sendto(fd, "READY=1", 7, MSG_NOSIGNAL, (struct sockaddr *)&a,
			     (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n)) < 0)
		say("telling the service manager: %s", strerror(errno));
	if (fd >= 0)
		close(fd);
}

static void end_seat(struct seat *seat)
{
	pthread_mutex_lock(&seat->lock);
	seat->quit = true;
	if (seat->fd >= 0)
		shutdown(seat->fd, SHUT_RDWR);
	pthread_cond_signal(&seat->moved);
	pthread_mutex_unlock(&seat->lock);
}

static void close_seat(struct seat *seat)
{
	if (seat->has_thread)
		pthread_join(seat->thread, NULL);
	if (seat->fd >= 0)
		close(seat->fd);
	if (seat->next >= 0)
		close(seat->next);
	if (seat->listen_fd >= 0) {
		close(seat->listen_fd);
		unlink(seat->path);
	}
}

/* A device takes some hundred descriptors: its client's and its own for vectors. */
static void raise_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return;
	limit.rlim_cur = limit.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &limit))
		say("raising the limit of descriptors: %s", strerror(errno));
}

/* What each of the clients may have of the areas that are the process's. */
static unsigned share_areas(unsigned seats)
{
	unsigned long n = MOST_AREAS;
	char word[24];

	if (files_read_line("/proc/sys/vm/max_map_count", word, sizeof(word)))
		n = strtoul(word, NULL, 10);
	n = n > UINT32_MAX ? UINT32_MAX : n;
	return (unsigned)((n > 2 * OWN_AREAS ? n - OWN_AREAS : n / 2) / seats);
}

static int start(struct server *s, struct err *err)
{
	struct sim_options options = s->o->sim;
	unsigned seats;
	sigset_t set;
	int code;

	raise_limit();
	signal(SIGPIPE, SIG_IGN);
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	/* Before there is any thread, so that all have it. */
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	s->signal_fd = signalfd(-1, &set, SFD_CLOEXEC);
	s->guard_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	s->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (s->signal_fd < 0 || s->guard_fd < 0 || s->wake_fd < 0)
		return err_sys(err, errno, "eventfd");
	code = guard_start(s->guard_fd, err);
	if (!code)
		code = take_folder(s, err);
	options.hbm_file = true;
	if (!code)
		code = sim_create(&options, &s->sim, err);
	if (code)
		return code;
	s->of_device = sim_function_count(s->sim);
	seats = sim_device_count(s->sim) * s->of_device;
	s->most_areas = share_areas(seats);
	s->seats = calloc(seats, sizeof(*s->seats));
	if (!s->seats)
		return err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory");
	for (unsigned i = 0; !code && i < seats; i++) {
		s->n = s->control.n = i + 1;
		s->control.devices[i] = &s->seats[i].d;
		code = open_seat(s, i, err);
	}
	return code ? code : control_start(&s->control, s->o->dir, err);
}

static void stop(struct server *s)
{
	const int fds[] = { s->lock_fd, s->signal_fd, s->guard_fd, s->wake_fd };

	/* First: an operator may wait for a client that keeps an answer back. */
	for (unsigned i = 0; i < s->n; i++)
		end_seat(&s->seats[i]);
	control_stop(&s->control);
	for (unsigned i = 0; i < s->n; i++)
		close_seat(&s->seats[i]);
	for (unsigned i = 0; i < s->n_turned; i++)
		close(s->turned[i].fd);
	sim_destroy(s->sim);
	free(s->seats);
	for (unsigned i = 0; i < 4; i++)
		if (fds[i] >= 0)
			close(fds[i]);
}

int server_run(const struct server_options *o, struct err *err)
{
	struct server s = { .o = o, .lock_fd = -1, .signal_fd = -1, .guard_fd = -1,
			    .wake_fd = -1 };
	int code = start(&s, err);

	if (!code) {
		printf("serving %s/0.sock", o->dir);
		if (s.n > s.of_device)
			printf(" to %u.sock", s.n / s.of_device - 1);
		printf("\n");
		fflush(stdout);
		tell_ready();
		while (step(&s))
			;
	}
	stop(&s);
	return code;
}
