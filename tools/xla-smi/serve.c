/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics by HTTP, to this machine alone. One request at a time; who is slow is left. */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "hal/base/clock.h"
#include "tools/xla-smi/smi.h"

#define REQUEST_NS 1000000000ll	/* for all of a request, and for taking its answer */

static bool await(int fd, short what, int64_t until)
{
	struct pollfd p = { .fd = fd, .events = what };
	int64_t left = until - clock_ns();

	return left > 0 && poll(&p, 1, (int)(left / 1000000) + 1) > 0;
}

/* The first line of a request, without its end; false: it is none, or does not come. */
static bool read_request(int fd, char *out, size_t bytes, int64_t until)
{
	size_t n = 0;

	*out = 0;
	while (n + 1 < bytes && await(fd, POLLIN, until)) {
		ssize_t got = recv(fd, out + n, bytes - n - 1, MSG_DONTWAIT);

		if (got <= 0)
			return false;
		n += (size_t)got;
		out[n] = 0;
		if (strstr(out, "\r\n\r\n") || strstr(out, "\n\n")) {
			out[strcspn(out, "\r\n")] = 0;
			return true;
		}
	}
	return false;
}

static void send_all(int fd, const char *text, size_t n, int64_t until)
{
	while (n && await(fd, POLLOUT, until)) {
		ssize_t sent = send(fd, text, n, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (sent < 0 && errno != EAGAIN)
			return;
		if (sent > 0) {
			text += sent;
			n -= (size_t)sent;
		}
	}
}

static void answer(int fd, const char *status, const char *type, const char *body, size_t n)
{
	int64_t until = clock_after(REQUEST_NS);
	char head[256];
	int k = snprintf(head, sizeof(head), "HTTP/1.1 %s\r\nContent-Type: %s\r\nContent-Length: "
			 "%zu\r\nConnection: close\r\n\r\n", status, type, n);

	send_all(fd, head, (size_t)k, until);
	send_all(fd, body, n, until);
}

static void answer_facts(const struct smi_options *o, int fd, bool is_json)
{
	const struct smi_view *v = NULL;
	unsigned n_views = smi_views("list", &v);
	struct smi_node node;
	char *text = NULL;
	size_t n = 0;
	FILE *to = open_memstream(&text, &n);

	smi_gather(o, &node);
	if (to && !smi_select(&node, o->device, o->n_devices)) {
		if (is_json)
			smi_write_json(&node, "list", v, n_views, false, to);
		else
			smi_write_prometheus(&node, to);
	}
	if (to && !fclose(to))
		answer(fd, "200 OK", is_json ? "application/json" :
		       "text/plain; version=0.0.4; charset=utf-8", text, n);
	free(text);
	smi_node_free(&node);
}

static void serve_one(const struct smi_options *o, int fd)
{
	static const char menu[] = "xla-smi: /metrics for Prometheus, /json\n";
	char line[4096], path[256] = "";

	if (!read_request(fd, line, sizeof(line), clock_after(REQUEST_NS))) {
		answer(fd, "400 Bad Request", "text/plain", "", 0);
		return;
	}
	if (sscanf(line, "GET %255s HTTP/", path) != 1)
		answer(fd, "405 Method Not Allowed", "text/plain", "", 0);
	else if (!strcmp(path, "/metrics") || !strcmp(path, "/json"))
		answer_facts(o, fd, path[1] == 'j');
	else if (!strcmp(path, "/"))
		answer(fd, "200 OK", "text/plain", menu, sizeof(menu) - 1);
	else
		answer(fd, "404 Not Found", "text/plain", menu, sizeof(menu) - 1);
}

static int open_door(unsigned port)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t bytes = sizeof(at);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), yes = 1;

	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) ||
	    bind(fd, (struct sockaddr *)&at, sizeof(at)) || listen(fd, 16) ||
	    getsockname(fd, (struct sockaddr *)&at, &bytes)) {
		fprintf(stderr, "xla-smi: port %u: %s\n", port, strerror(errno));
		if (fd >= 0)
			close(fd);
		return -1;
	}
	printf("http://127.0.0.1:%u/metrics\n", ntohs(at.sin_port));
	fflush(stdout);
	return fd;
}

int smi_serve(const struct smi_options *o, int argc, char **argv)
{
	struct pollfd p[2] = { { .events = POLLIN }, { .events = POLLIN } };
	sigset_t ends;

	(void)argc;
	(void)argv;
	sigemptyset(&ends);
	sigaddset(&ends, SIGINT);
	sigaddset(&ends, SIGTERM);
	sigprocmask(SIG_BLOCK, &ends, NULL);
	p[1].fd = signalfd(-1, &ends, SFD_CLOEXEC);
	p[0].fd = p[1].fd < 0 ? -1 : open_door(o->port);
	if (p[0].fd < 0)
		return SMI_FAILED;
	while (!(p[1].revents & POLLIN)) {
		int fd;

		if (poll(p, 2, -1) < 0 && errno != EINTR)
			break;
		if (!(p[0].revents & POLLIN))
			continue;
		fd = accept4(p[0].fd, NULL, NULL, SOCK_CLOEXEC);
		if (fd < 0)
			continue;
		serve_one(o, fd);
		close(fd);
	}
	close(p[0].fd);
	close(p[1].fd);
	return SMI_OK;
}
