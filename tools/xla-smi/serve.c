/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Metrics and the page by HTTP, to this machine alone. One thread; each client has a place, a
 * deadline and its bytes in flight, so who is slow keeps nobody: when all places are taken the
 * one that came first is left. A page of somebody else's may have a browser come here by a name
 * of its own (DNS rebinding), so requests whose Host is not this machine are refused.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "hal/base/clock.h"
#include "tools/xla-smi/smi.h"

#define REQUEST_NS 1000000000ll	/* for all of a request */
#define ANSWER_NS 5000000000ll	/* for taking its answer */
#define MAX_CLIENTS 32u
#define MAX_REQUEST 8192u

/* Who is connected; fd -1: the place is free. */
struct client {
	int fd;
	int64_t since, until;	/* came; is left */
	size_t n;		/* of the request, in `request` */
	char *answer;		/* NULL: the request is not there yet */
	size_t bytes, sent;	/* of the answer */
	char request[MAX_REQUEST];
};

struct server {
	const struct smi_options *o;
	int door, ends;		/* the listening socket; a signalfd */
	unsigned port;
	struct client clients[MAX_CLIENTS];
};

/* ---- answers ---- */

static void leave(struct client *c)
{
	if (c->fd >= 0)
		close(c->fd);
	free(c->answer);
	c->answer = NULL;
	c->fd = -1;
}

/* Has a text sent behind its head; n bytes of body. */
static void answer(struct client *c, const char *status, const char *type, const char *body,
		   size_t n)
{
	FILE *to = open_memstream(&c->answer, &c->bytes);

	if (to) {
		fprintf(to, "HTTP/1.1 %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n"
			"Connection: close\r\nCache-Control: no-store\r\n"
			"X-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\n"
			"Content-Security-Policy: default-src 'none'; style-src 'unsafe-inline'; "
			"frame-ancestors 'none'\r\n\r\n", status, type, n);
		fwrite(body, 1, n, to);
	}
	if (!to || fclose(to)) {
		leave(c);
		return;
	}
	c->until = clock_after(ANSWER_NS);
}

static void refuse(struct client *c, const char *status, const char *why)
{
	answer(c, status, "text/plain; charset=utf-8", why, strlen(why));
}

enum form { METRICS, JSON, PAGE };

static void answer_facts(const struct server *s, struct client *c, enum form form)
{
	static const char *const types[] = { "text/plain; version=0.0.4; charset=utf-8",
					     "application/json", "text/html; charset=utf-8" };
	const struct smi_view *v = NULL;
	unsigned n_views = smi_views("list", &v);
	struct smi_node node;
	char *text = NULL;
	size_t n = 0;
	FILE *to = open_memstream(&text, &n);

	smi_gather(s->o, &node);
	if (to && !smi_select(&node, s->o->device, s->o->n_devices)) {
		if (form == JSON)
			smi_write_json(&node, "list", v, n_views, false, to);
		else if (form == METRICS)
			smi_write_prometheus(&node, to);
		else
			smi_write_page(s->o, &node, to);
	}
	if (to && !fclose(to) && n)
		answer(c, "200 OK", types[form], text, n);
	else
		refuse(c, "503 Service Unavailable", "xla-smi: there is no such device now\n");
	free(text);
	smi_node_free(&node);
}

/* ---- requests ---- */

/* The value of a header, without the spaces around it; false: it is not there, or twice. */
static bool header(const char *request, const char *name, char *out, size_t bytes)
{
	size_t length = strlen(name);
	unsigned found = 0;

	for (const char *p = strchr(request, '\n'); p; p = strchr(p, '\n')) {
		size_t n;

		p++;
		if (strncasecmp(p, name, length) || p[length] != ':')
			continue;
		found++;
		p += length + 1;
		p += strspn(p, " \t");
		n = strcspn(p, " \t\r\n");
		snprintf(out, bytes, "%.*s", (int)(n < bytes ? n : bytes - 1), p);
	}
	return found == 1;
}

/* Whether a Host is this machine by a name that nobody else gives: "127.0.0.1:9877". */
static bool is_here(const char *host, unsigned port)
{
	static const char *const names[] = { "127.0.0.1", "localhost", "[::1]" };
	char with_port[48];

	for (unsigned i = 0; i < sizeof(names) / sizeof(*names); i++) {
		snprintf(with_port, sizeof(with_port), "%s:%u", names[i], port);
		if (!strcasecmp(host, names[i]) || !strcasecmp(host, with_port))
			return true;
	}
	return false;
}

static void serve_one(const struct server *s, struct client *c)
{
	static const char menu[] = "xla-smi: /metrics for Prometheus, /json; / with --ui\n";
	char path[256] = "", host[128] = "";

	if (!header(c->request, "Host", host, sizeof(host)) || !is_here(host, s->port))
		refuse(c, "421 Misdirected Request", "xla-smi: this serves 127.0.0.1 and localhost "
		       "alone, and the request names another host\n");
	else if (sscanf(c->request, "GET %255s HTTP/", path) != 1)
		refuse(c, "405 Method Not Allowed", "");
	else if (!strcmp(path, "/metrics"))
		answer_facts(s, c, METRICS);
	else if (!strcmp(path, "/json"))
		answer_facts(s, c, JSON);
	else if (!strcmp(path, "/") && s->o->ui)
		answer_facts(s, c, PAGE);
	else
		refuse(c, strcmp(path, "/") ? "404 Not Found" : "200 OK", menu);
}

/* Bytes came, or its end. */
static void take(const struct server *s, struct client *c)
{
	ssize_t got = recv(c->fd, c->request + c->n, MAX_REQUEST - 1 - c->n, MSG_DONTWAIT);

	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (got <= 0) {
		leave(c);
		return;
	}
	c->n += (size_t)got;
	c->request[c->n] = 0;
	if (strstr(c->request, "\r\n\r\n") || strstr(c->request, "\n\n"))
		serve_one(s, c);
	else if (c->n == MAX_REQUEST - 1)
		refuse(c, "431 Request Header Fields Too Large", "");
}

static void give(struct client *c)
{
	ssize_t sent = send(c->fd, c->answer + c->sent, c->bytes - c->sent,
			    MSG_NOSIGNAL | MSG_DONTWAIT);

	if (sent > 0)
		c->sent += (size_t)sent;
	if (c->sent == c->bytes || (sent < 0 && errno != EAGAIN && errno != EINTR))
		leave(c);
}

/* ---- places ---- */

/* A free place; where there is none, that of the one who came first. */
static struct client *place(struct server *s)
{
	struct client *oldest = &s->clients[0];

	for (unsigned i = 0; i < MAX_CLIENTS; i++) {
		if (s->clients[i].fd < 0)
			return &s->clients[i];
		if (s->clients[i].since < oldest->since)
			oldest = &s->clients[i];
	}
	leave(oldest);
	return oldest;
}

static void welcome(struct server *s)
{
	int fd = accept4(s->door, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct client *c;

	if (fd < 0)
		return;
	c = place(s);
	c->fd = fd;
	c->since = clock_ns();
	c->until = clock_after(REQUEST_NS);
	c->n = c->bytes = c->sent = 0;
}

/* Milliseconds until the first of them is to be left; -1: nobody is here. */
static int time_left(const struct server *s)
{
	int64_t now = clock_ns(), least = INT64_MAX;

	for (unsigned i = 0; i < MAX_CLIENTS; i++)
		if (s->clients[i].fd >= 0 && s->clients[i].until < least)
			least = s->clients[i].until;
	if (least == INT64_MAX)
		return -1;
	return least <= now ? 0 : (int)((least - now) / 1000000) + 1;
}

/* Once: whoever is ready, and whose time is over. False: a signal asks for the end. */
static bool turn(struct server *s)
{
	struct pollfd p[2 + MAX_CLIENTS] = { { .fd = s->door, .events = POLLIN },
					     { .fd = s->ends, .events = POLLIN } };
	int64_t now;

	for (unsigned i = 0; i < MAX_CLIENTS; i++)
		p[2 + i] = (struct pollfd){ .fd = s->clients[i].fd,
					    .events = s->clients[i].answer ? POLLOUT : POLLIN };
	if (poll(p, 2 + MAX_CLIENTS, time_left(s)) < 0)
		return errno == EINTR;
	now = clock_ns();
	for (unsigned i = 0; i < MAX_CLIENTS; i++) {
		struct client *c = &s->clients[i];

		if (c->fd < 0)
			continue;
		if (p[2 + i].revents && c->answer)
			give(c);
		else if (p[2 + i].revents)
			take(s, c);
		else if (now >= c->until)
			leave(c);
	}
	if (p[0].revents)
		welcome(s);
	return !(p[1].revents & POLLIN);
}

static int open_door(unsigned port, unsigned *got)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t bytes = sizeof(at);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), yes = 1;

	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) ||
	    bind(fd, (struct sockaddr *)&at, sizeof(at)) || listen(fd, 64) ||
	    getsockname(fd, (struct sockaddr *)&at, &bytes)) {
		fprintf(stderr, "xla-smi: port %u: %s\n", port, strerror(errno));
		if (fd >= 0)
			close(fd);
		return -1;
	}
	*got = ntohs(at.sin_port);
	return fd;
}

int smi_serve(const struct smi_options *o, int argc, char **argv)
{
	struct server *s = calloc(1, sizeof(*s));
	int status = SMI_FAILED;
	sigset_t ends;

	(void)argc;
	(void)argv;
	if (!s) {
		fprintf(stderr, "xla-smi: out of memory\n");
		return SMI_FAILED;
	}
	s->o = o;
	for (unsigned i = 0; i < MAX_CLIENTS; i++)
		s->clients[i].fd = -1;
	sigemptyset(&ends);
	sigaddset(&ends, SIGINT);
	sigaddset(&ends, SIGTERM);
	sigprocmask(SIG_BLOCK, &ends, NULL);
	s->ends = signalfd(-1, &ends, SFD_CLOEXEC);
	s->door = s->ends < 0 ? -1 : open_door(o->port, &s->port);
	if (s->door >= 0) {
		printf("http://127.0.0.1:%u/%s\n", s->port, o->ui ? "" : "metrics");
		fflush(stdout);
		while (turn(s))
			;
		status = SMI_OK;
	}
	for (unsigned i = 0; i < MAX_CLIENTS; i++)
		leave(&s->clients[i]);
	if (s->door >= 0)
		close(s->door);
	if (s->ends >= 0)
		close(s->ends);
	free(s);
	return status;
}
