/* SPDX-License-Identifier: Apache-2.0 */
/* Sending vfio-user messages, as the client and the server both do. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "hal/bus/vfio_user.h"

int vfu_send(int fd, struct iovec *vec, unsigned n, const int *fds, unsigned n_fds)
{
	char control[CMSG_SPACE(VFU_MAX_FDS * sizeof(int))] = { 0 };
	struct msghdr h = { .msg_iov = vec, .msg_iovlen = n };
	struct cmsghdr *c;

	if (n_fds) {
		h.msg_control = control;
		h.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
		c = CMSG_FIRSTHDR(&h);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(n_fds * sizeof(int));
		memcpy(CMSG_DATA(c), fds, n_fds * sizeof(int));
	}
	while (h.msg_iovlen) {
		ssize_t sent = sendmsg(fd, &h, MSG_NOSIGNAL);

		if (sent < 0 && errno == EINTR)
			continue;
		if (sent < 0)
			return -1;
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
