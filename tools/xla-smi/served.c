/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Resets and errors of a device that tessera-sim serves: the server does them, over the socket
 * beside the device's (tools/common/control.h). Who uses it is the server's word, which knows its
 * clients by their credentials, not that of their pages.
 */
#include <ctype.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "hal/base/clock.h"
#include "tools/common/control.h"
#include "tools/xla-smi/smi.h"

static const char prefix[] = "vfio-user:";

static int complain(const char *name, const char *why, int status)
{
	fprintf(stderr, "xla-smi: %s: %s\n", name, why);
	return status;
}

/* ---- which ---- */

/* Reads "[vfio-user:]DIR/N.sock"; the length of DIR with its slash, or 0. */
static size_t read_name(const char *name, const char **path, unsigned *n)
{
	const char *at = strncmp(name, prefix, sizeof(prefix) - 1) ? name :
			 name + sizeof(prefix) - 1;
	const char *last = strrchr(at, '/');
	unsigned long number;
	char *end;

	*path = at;
	if (*at != '/' || !isdigit((unsigned char)last[1]))
		return 0;
	number = strtoul(last + 1, &end, 10);
	*n = (unsigned)number;
	return strcmp(end, ".sock") || number > UINT32_MAX ? 0 : (size_t)(last + 1 - at);
}

bool smi_is_served(const char *name)
{
	const char *path;
	unsigned n;

	return read_name(name, &path, &n) != 0;
}

/* ---- asking ---- */

static int refuse_to_connect(const char *name, const char *socket, int sysno)
{
	char text[400];

	if (sysno == EACCES || sysno == EPERM)
		snprintf(text, sizeof(text), "only root and the user that tessera-sim runs as may "
			 "do that to a device that it serves: try again with sudo");
	else if (sysno == ENOENT || sysno == ECONNREFUSED)
		snprintf(text, sizeof(text), "nobody takes requests at %.150s: its tessera-sim has "
			 "ended, is older than this xla-smi, or in a container. A device whose "
			 "name is cut is named by its whole path, vfio-user:DIR/N.sock", socket);
	else
		snprintf(text, sizeof(text), "%.150s: %s", socket, strerror(sysno));
	return complain(name, text, sysno == EACCES || sysno == EPERM ? SMI_REFUSED : SMI_FAILED);
}

static int dial(const struct smi_options *o, const char *name, unsigned *device, int *out)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	struct timeval limit = { .tv_sec = CONTROL_ASK_NS / 1000000000 };
	char path[SMI_PATH];
	const char *at;
	size_t n = read_name(name, &at, device);
	int fd, sysno = 0;

	if (!n)
		return complain(name, "its socket is not known by this name: name it by its whole "
				"path, vfio-user:DIR/N.sock", SMI_REFUSED);
	snprintf(path, sizeof(path), "%s%.*s" CONTROL_SOCKET, o->root, (int)n, at);
	if (strlen(path) >= sizeof(a.sun_path))
		return complain(name, "its path is longer than that of a socket may be",
				SMI_FAILED);
	memcpy(a.sun_path, path, strlen(path) + 1);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)) ||
	    connect(fd, (struct sockaddr *)&a, sizeof(a)))
		sysno = errno;
	if (!sysno) {
		*out = fd;
		return SMI_OK;
	}
	if (fd >= 0)
		close(fd);
	return refuse_to_connect(name, path, sysno);
}

/* All of the answer, or false. */
static bool receive(int fd, struct control_answer *a)
{
	int64_t deadline = clock_after(CONTROL_ANSWER_NS);
	size_t got = 0;

	while (got < sizeof(*a)) {
		int64_t left = (deadline - clock_ns()) / 1000000;
		struct pollfd p = { .fd = fd, .events = POLLIN };
		ssize_t n;

		if (left <= 0)
			return false;
		if (poll(&p, 1, (int)left) <= 0)
			continue;
		n = recv(fd, (char *)a + got, sizeof(*a) - got, MSG_DONTWAIT);
		if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
			return false;
		got += n > 0 ? (size_t)n : 0;
	}
	return true;
}

/* Whether it is an answer of this version. Its texts are a stranger's. */
static bool is_sound(struct control_answer *a)
{
	a->text[sizeof(a->text) - 1] = 0;
	for (char *c = a->text; *c; c++)
		*c = isprint((unsigned char)*c) ? *c : '?';
	return a->magic == CONTROL_MAGIC && a->version == CONTROL_VERSION &&
	       a->n_clients <= CONTROL_CLIENTS && a->outcome >= CONTROL_DONE &&
	       a->outcome <= CONTROL_FAILED;
}

/* One question. What the server says of it is printed, but that it is in use. */
static int ask(const struct smi_options *o, const char *name, struct control_ask *q,
	       struct control_answer *a)
{
	int fd, status = dial(o, name, &q->device, &fd);
	bool is_answered;

	if (status)
		return status;
	q->magic = CONTROL_MAGIC;
	q->version = CONTROL_VERSION;
	q->is_forced = o->force;
	q->client = (int32_t)o->client;
	is_answered = send(fd, q, sizeof(*q), MSG_NOSIGNAL) == sizeof(*q) && receive(fd, a);
	close(fd);
	if (!is_answered)
		return complain(name, "its server did not answer: look whether it hangs, is "
				"stopped or has ended", SMI_FAILED);
	if (!is_sound(a))
		return complain(name, "its server answers what makes no sense: install xla-smi and "
				"tessera-sim of one release", SMI_FAILED);
	switch (a->outcome) {
	case CONTROL_DONE: return SMI_OK;
	case CONTROL_IN_USE: return SMI_REFUSED;
	case CONTROL_NOT_ALLOWED: return refuse_to_connect(name, "", EPERM);
	case CONTROL_NO_DEVICE: return complain(name, a->text, SMI_NO_DEVICE);
	case CONTROL_NO_CLIENT:
		fprintf(stderr, "xla-smi: process %lu has nothing of %s\n", o->client, name);
		return SMI_REFUSED;
	default: return complain(name, a->text, SMI_FAILED);
	}
}

static void name_users(const struct smi_options *o, const char *name,
		       const struct control_answer *a)
{
	for (unsigned i = 0; i < a->n_clients; i++) {
		char command[64] = "?", user[64];

		smi_read_line(command, sizeof(command), "%s/proc/%d/comm", o->root,
			      a->clients[i].pid);
		for (char *c = command; *c; c++)
			*c = isprint((unsigned char)*c) ? *c : '?';
		smi_user_name(a->clients[i].uid, user, sizeof(user));
		printf("%s: used by process %d (%s) of %s\n", name, a->clients[i].pid, command,
		       user);
	}
}

static int refuse_used(const char *name)
{
	return complain(name, "others use it, see above; --force does it all the same",
			SMI_REFUSED);
}

/* Says what is to be done to whom; then it is. */
static int act(const struct smi_options *o, const char *name, struct control_ask *q)
{
	struct control_ask look = { .step = CONTROL_LOOK };
	struct control_answer a;
	int status = ask(o, name, &look, &a);

	if (status)
		return status;
	name_users(o, name, &a);
	if (o->dry_run)
		return SMI_OK;
	if (a.n_clients && !o->force)
		return refuse_used(name);
	/* It may take a while, and may be the last that is heard. */
	fflush(stdout);
	status = ask(o, name, q, &a);
	if (status == SMI_REFUSED && a.outcome == CONTROL_IN_USE) {
		name_users(o, name, &a);	/* who came meanwhile */
		return refuse_used(name);
	}
	return status;
}

int smi_reset_served(const struct smi_options *o, const char *name)
{
	struct control_ask q = { .step = CONTROL_RESET };
	int status;

	if (o->client)
		printf("%s: a function reset by tessera-sim of what process %lu has of it: its "
		       "contexts, queues and programs end, its work fails; its memory keeps its "
		       "contents; work of other chips that meets it fails, too\n", name,
		       o->client);
	else
		printf("%s: a function reset by tessera-sim: all contexts, queues and programs "
		       "end, their work fails, and that of other chips that meets it; counters and "
		       "the fault log start anew; memory keeps its contents but for poisoned "
		       "pages\n", name);
	status = act(o, name, &q);
	if (!status && !o->dry_run)
		printf("%s: reset, and its server answers\n", name);
	return status;
}

int smi_inject_served(const struct smi_options *o, const char *name, unsigned what,
		      uint64_t value)
{
	struct control_ask q = { .step = CONTROL_INJECT, .what = what, .value = value };

	return act(o, name, &q);
}
