/* SPDX-License-Identifier: Apache-2.0 */
/* vfio-user messages on a socket, as the client and the server both send and receive them.
 * A deadline is one for the whole of a piece: neither signals nor single bytes extend it. */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "hal/base/clock.h"
#include "hal/bus/vfio_user.h"

/* Room for what one message may carry; the kernel closes what does not fit. */
union control {
	struct cmsghdr head;
	char bytes[CMSG_SPACE(VFU_MAX_FDS * sizeof(int))];
};

int vfu_await(int fd, short events, int64_t deadline)
{
	for (;;) {
		struct pollfd p = { .fd = fd, .events = events };
		int64_t left = deadline - clock_ns();
		int n, ms = deadline == CLOCK_FOREVER ? -1 :
			    left > 1000000000 ? 1000 : (int)(left / 1000000) + 1;

		if (left <= 0) {
			errno = EAGAIN;
			return -1;
		}
		n = poll(&p, 1, ms);
		if (n > 0)
			return 0;
		if (n < 0 && errno != EINTR)
			return -1;
	}
}

int vfu_send(int fd, struct iovec *vec, unsigned n, const int *fds, unsigned n_fds,
	     int64_t deadline)
{
	union control control = { .bytes = { 0 } };
	struct msghdr h = { .msg_iov = vec, .msg_iovlen = n };
	struct cmsghdr *c;

	if (n_fds) {
		h.msg_control = &control;
		h.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
		c = CMSG_FIRSTHDR(&h);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(n_fds * sizeof(int));
		memcpy(CMSG_DATA(c), fds, n_fds * sizeof(int));
	}
	while (h.msg_iovlen) {
		ssize_t sent = sendmsg(fd, &h, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (sent < 0 && errno == EINTR)
			continue;
		if (sent < 0 && (errno != EAGAIN || vfu_await(fd, POLLOUT, deadline)))
			return -1;
		if (sent < 0)
			continue;
		h.msg_control = NULL;
		h.msg_controllen = 0;
		while (h.msg_iovlen && (size_t)sent >= h.msg_iov->iov_len) {
			sent -= (ssize_t)h.msg_iov->iov_len;
			h.msg_iov++;
			h.msg_iovlen--;
		}
		if (h.msg_iovlen) {
			h.msg_iov->iov_base = (char *)h.msg_iov->iov_base + sent;
			h.msg_iov->iov_len -= (size_t)sent;
		}
	}
	return 0;
}

int vfu_receive(int fd, void *to, size_t bytes, int64_t deadline)
{
	char *p = to;

	while (bytes) {
		ssize_t n = recv(fd, p, bytes, MSG_DONTWAIT);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && (errno != EAGAIN || vfu_await(fd, POLLIN, deadline)))
			return -1;
		if (n < 0)
			continue;
		if (!n) {
			errno = ECONNRESET;
			return -1;
		}
		p += n;
		bytes -= (size_t)n;
	}
	return 0;
}

static unsigned take_fds(struct msghdr *h, int *fds)
{
	unsigned n = 0;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(h); c; c = CMSG_NXTHDR(h, c)) {
		size_t k = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t i = 0; i < k; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof(fd), sizeof(fd));
			if (n < VFU_MAX_FDS)
				fds[n++] = fd;
			else
				close(fd);
		}
	}
	return n;
}

ssize_t vfu_begin(int fd, struct vfu_header *header, int *fds, unsigned *n_fds, int64_t deadline)
{
	int flags = MSG_CMSG_CLOEXEC | (deadline == CLOCK_FOREVER ? 0 : MSG_DONTWAIT);
	union control control;
	struct iovec vec = { header, sizeof(*header) };
	struct msghdr h;
	ssize_t n;

	*n_fds = 0;
	for (;;) {
		h = (struct msghdr){ .msg_iov = &vec, .msg_iovlen = 1, .msg_control = &control,
				     .msg_controllen = sizeof(control) };
		n = recvmsg(fd, &h, flags);
		if (n >= 0)
			break;
		if (errno != EINTR && (errno != EAGAIN || vfu_await(fd, POLLIN, deadline)))
			return -1;
	}
	if (!n) {
		errno = ECONNRESET;
		return -1;
	}
	*n_fds = take_fds(&h, fds);
	if (h.msg_flags & MSG_CTRUNC) {
		errno = EMSGSIZE;
		return -1;
	}
	return n;
}
