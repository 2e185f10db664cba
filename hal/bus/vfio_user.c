/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A device in another process, over a vfio-user socket.
 *
 * One request is on its way at a time, under `lock`, and has a deadline: a server that
 * misses it, breaks the protocol or goes away is lost for good, with the first reason
 * (health). The socket is then shut, for which a thread watches: sleepers hear of the end
 * whoever found it. Nobody asks a server whether it lives but who waits for it (device.c).
 *
 * A doorbell is a store to memory that is shared with the server and, if that sleeps,
 * one write to an eventfd; where the server has no such memory it is a message without
 * reply. HBM is mapped. Host memory must be of a kind that can be shared: dma_map() moves the pages
 * that it is given into a memfd at the same address, content kept, so they must be
 * whole pages that nobody else uses meanwhile. An iova is the host address.
 */
#define LOG_TAG "hal/vfio_user"
#include "hal/bus/vfio_user.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "hal/base/clock.h"
#include "hal/base/files.h"
#include "hal/base/log.h"
#include "hal/base/str.h"
#include "hal/bus.h"
#include "hal/hw/regs.h"

#define ANSWER_MS 10000		/* for a server to answer; TESSERA_SERVER_LIMIT_MS */
#define MOST_ANSWER_MS 86400000u
#define COMMAND_MEMORY_MASTER 6
#define CONFIG_COMMAND 4

struct area {			/* memory that the device may reach */
	struct area *next;
	uint64_t iova, bytes;
};

struct vfio_user {
	struct hal_bus bus;
	int fd;
	struct files_own own;		/* fd: by it the server sees that we live */
	char path[108];
	int64_t limit_ns;		/* for an answer */
	pthread_mutex_t lock;		/* over the socket and the areas */
	uint16_t id;
	bool can_reset;
	uint8_t *hbm;
	uint64_t hbm_bytes;
	_Atomic uint64_t *bells;	/* shared doorbells; NULL: send messages */
	uint64_t bell_at[HW_MAX_QUEUES]; /* index into bells */
	uint64_t awake_at;	/* index into bells of the server's word; 0: it has none */
	int bell_fd;
	struct area *areas;
	_Atomic int irq_fd[HW_MAX_VECTORS]; /* the HAL's; -1: none */
	pthread_t watcher;
	bool has_watcher;
	int quit_fd;
	atomic_bool is_lost;
	pthread_mutex_t why_lock;
	struct err why;			/* set once, before is_lost */
};

/* What a request carries beside its header, and where its answer goes. */
struct call {
	enum vfu_command command;
	const void *body;		/* fixed part */
	size_t bytes;
	const void *data;		/* and what follows it */
	size_t n_data;
	const int *fds;
	unsigned n_fds;
	bool no_reply;
	void *answer;			/* room; answer_bytes is what came */
	size_t room, answer_bytes;
	int got_fds[VFU_MAX_FDS];	/* the caller's to close */
	unsigned n_got;
};

static struct vfio_user *of(struct hal_bus *bus)
{
	return (struct vfio_user *)bus;
}

/* ---- losing the server ---- */

static int lose(struct vfio_user *v, const struct err *why, struct err *err)
{
	pthread_mutex_lock(&v->why_lock);
	if (!atomic_load(&v->is_lost)) {
		v->why = *why;
		atomic_store(&v->is_lost, true);
		/* Wakes the watcher; a server that comes to itself sees that we left. */
		if (v->fd >= 0)
			shutdown(v->fd, SHUT_RDWR);
	}
	if (err)
		*err = v->why;
	pthread_mutex_unlock(&v->why_lock);
	return v->why.code;
}

static int health(struct hal_bus *bus, struct err *err)
{
	struct vfio_user *v = of(bus);

	if (!atomic_load(&v->is_lost))
		return 0;
	if (err)
		*err = v->why;
	return v->why.code;
}

static int lose_gone(struct vfio_user *v, struct err *err)
{
	struct err why;

	err_set(&why, ERR_UNAVAILABLE, "the device's server at %s ended or cut this process "
		"off (its log says which): start tessera-sim again, then open the device "
		"again", v->path);
	return lose(v, &why, err);
}

static int lose_late(struct vfio_user *v, struct err *err)
{
	struct err why;

	err_set(&why, ERR_UNAVAILABLE, "the device's server at %s did not answer within %.4g s "
		"(TESSERA_SERVER_LIMIT_MS): look whether it hangs or is stopped, start it again, "
		"then open the device again", v->path, (double)v->limit_ns / 1e9);
	return lose(v, &why, err);
}

static int lose_broken(struct vfio_user *v, const char *what, struct err *err)
{
	struct err why;

	err_set(&why, ERR_UNAVAILABLE, "what answers at %s breaks the vfio-user protocol "
		"(%s): install a server that matches this build", v->path, what);
	return lose(v, &why, err);
}

/* Tells sleepers of a server that goes while nobody asks it anything. */
static void *watch(void *arg)
{
	struct vfio_user *v = arg;
	struct pollfd p[2] = { { .fd = v->fd, .events = POLLRDHUP },
			       { .fd = v->quit_fd, .events = POLLIN } };
	uint64_t one = 1;

	while (poll(p, 2, -1) < 0 && errno == EINTR)
		;
	if (p[1].revents)
		return NULL;
	lose_gone(v, NULL);
	for (unsigned i = 0; i < HW_MAX_VECTORS; i++) {
		int fd = atomic_load(&v->irq_fd[i]);

		if (fd >= 0 && write(fd, &one, sizeof(one)) < 0 && errno != EAGAIN)
			log_error("waking vector %u: %s", i, strerror(errno));
	}
	return NULL;
}

/* ---- messages ---- */

/* How a socket call failed: late, out of order or gone. */
static int lose_by_errno(struct vfio_user *v, struct err *err)
{
	return errno == EAGAIN ? lose_late(v, err) :
	       errno == EMSGSIZE ? lose_broken(v, "more descriptors than a message may have",
					       err) :
	       lose_gone(v, err);
}

static int receive(struct vfio_user *v, void *to, size_t bytes, int64_t deadline,
		   struct err *err)
{
	return vfu_receive(v->fd, to, bytes, deadline) ? lose_by_errno(v, err) : 0;
}

static void close_got(struct call *c)
{
	while (c->n_got)
		close(c->got_fds[--c->n_got]);
}

/* A header and the descriptors beside it. */
static int receive_header(struct vfio_user *v, struct vfu_header *header, struct call *c,
			  int64_t deadline, struct err *err)
{
	ssize_t n = vfu_begin(v->fd, header, c->got_fds, &c->n_got, deadline);

	return n < 0 ? lose_by_errno(v, err) :
	       receive(v, (char *)header + n, sizeof(*header) - (size_t)n, deadline, err);
}

static int skip(struct vfio_user *v, size_t bytes, int64_t deadline, struct err *err)
{
	char scratch[4096];
	int code = 0;

	while (!code && bytes) {
		size_t n = bytes < sizeof(scratch) ? bytes : sizeof(scratch);

		code = receive(v, scratch, n, deadline, err);
		bytes -= n;
	}
	return code;
}

/* All our memory goes with a descriptor, so a server has no reason to ask for it: its
 * commands are refused. */
static int refuse(struct vfio_user *v, const struct vfu_header *h, int64_t deadline,
		  struct err *err)
{
	struct vfu_header no = { h->id, h->command, sizeof(no), VFU_IS_REPLY | VFU_ERROR,
				 EPERM };
	struct iovec vec = { &no, sizeof(no) };
	int code = skip(v, h->size - sizeof(*h), deadline, err);

	if (!code && !(h->flags & VFU_NO_REPLY) &&
	    vfu_send(v->fd, &vec, 1, NULL, 0, deadline))
		code = lose_by_errno(v, err);
	return code;
}

static int receive_reply(struct vfio_user *v, uint16_t id, struct call *c, int *error,
			 int64_t deadline, struct err *err)
{
	struct vfu_header h;
	int code;

	for (;;) {
		code = receive_header(v, &h, c, deadline, err);
		if (code)
			return code;
		if (h.size < sizeof(h) || h.size > sizeof(h) + VFU_MAX_BODY)
			return lose_broken(v, "a message of impossible size", err);
		if ((h.flags & VFU_TYPE) == VFU_IS_REPLY)
			break;
		close_got(c);
		code = refuse(v, &h, deadline, err);
		if (code)
			return code;
	}
	if (h.id != id || h.command != c->command)
		return lose_broken(v, "a reply to something else", err);
	*error = h.flags & VFU_ERROR ? h.error ? (int)h.error : EIO : 0;
	c->answer_bytes = h.size - sizeof(h);
	if (*error || c->answer_bytes > c->room) {
		if (!*error)
			return lose_broken(v, "a reply larger than was asked for", err);
		return skip(v, c->answer_bytes, deadline, err);
	}
	return receive(v, c->answer, c->answer_bytes, deadline, err);
}

static const char *name_of(enum vfu_command command)
{
	static const char *const names[] = {
		[VFU_VERSION] = "VERSION", [VFU_DMA_MAP] = "DMA_MAP",
		[VFU_DMA_UNMAP] = "DMA_UNMAP", [VFU_GET_INFO] = "DEVICE_GET_INFO",
		[VFU_GET_REGION_INFO] = "DEVICE_GET_REGION_INFO",
		[VFU_GET_REGION_IO_FDS] = "DEVICE_GET_REGION_IO_FDS",
		[VFU_SET_IRQS] = "DEVICE_SET_IRQS", [VFU_REGION_READ] = "REGION_READ",
		[VFU_REGION_WRITE] = "REGION_WRITE", [VFU_RESET] = "DEVICE_RESET",
	};

	return command < sizeof(names) / sizeof(*names) && names[command] ?
		names[command] : "a request";
}

/* One request and its reply; the lock is held. `error` (may be NULL) gets the server's
 * errno instead of its being an error here. */
static int call_locked(struct vfio_user *v, struct call *c, int *error, struct err *err)
{
	struct vfu_header h = { ++v->id, (uint16_t)c->command,
				(uint32_t)(sizeof(h) + c->bytes + c->n_data),
				c->no_reply ? VFU_NO_REPLY : 0, 0 };
	struct iovec vec[] = { { &h, sizeof(h) },
			       { (void *)(uintptr_t)c->body, c->bytes },
			       { (void *)(uintptr_t)c->data, c->n_data } };
	int64_t deadline = clock_after(v->limit_ns);
	int refused = 0, code = health(&v->bus, err);

	if (!code && vfu_send(v->fd, vec, 3, c->fds, c->n_fds, deadline))
		code = lose_by_errno(v, err);
	if (code || c->no_reply)
		return code;
	code = receive_reply(v, h.id, c, &refused, deadline, err);
	if (error)
		*error = refused;
	if (!code && refused && !error)
		code = err_sys(err, refused, "the device's server at %s refused %s", v->path,
			       name_of(c->command));
	if (code)
		close_got(c);
	return code;
}

static int call(struct vfio_user *v, struct call *c, int *error, struct err *err)
{
	int code;

	pthread_mutex_lock(&v->lock);
	code = call_locked(v, c, error, err);
	pthread_mutex_unlock(&v->lock);
	return code;
}

static int access_region(struct vfio_user *v, bool write, uint32_t region, uint64_t offset,
			 void *data, uint32_t n, struct err *err)
{
	struct vfu_region_access a = { offset, region, n };
	uint8_t answer[sizeof(a) + 64];
	struct call c = { .command = write ? VFU_REGION_WRITE : VFU_REGION_READ,
			  .body = &a, .bytes = sizeof(a), .data = write ? data : NULL,
			  .n_data = write ? n : 0, .answer = answer, .room = sizeof(a) + n };
	int code = call(v, &c, NULL, err);

	close_got(&c);
	if (code || write)
		return code;
	if (c.answer_bytes < sizeof(a) + n)
		return lose_broken(v, "a short REGION_READ reply", err);
	memcpy(data, answer + sizeof(a), n);
	return 0;
}

/* ---- opening ---- */

/* Connects; 0, or an errno: EAGAIN if a server that hangs has no room for one more. */
static int dial(struct vfio_user *v)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	struct timeval limit = { .tv_sec = v->limit_ns / 1000000000,
				 .tv_usec = v->limit_ns % 1000000000 / 1000 };
	int64_t deadline = clock_after(v->limit_ns);

	memcpy(a.sun_path, v->path, sizeof(a.sun_path));
	files_own_begin();
	v->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	files_own_end(&v->own, &v->fd);
	if (v->fd < 0 || setsockopt(v->fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)))
		return errno;
	while (connect(v->fd, (struct sockaddr *)&a, sizeof(a))) {
		if (errno != EINTR)
			return errno;
		/* Each try has all of the time again. */
		if (clock_ns() > deadline)
			return EAGAIN;
	}
	return 0;
}

static int attach(struct vfio_user *v, struct err *err)
{
	int error = dial(v);

	switch (error) {
	case 0:
		return 0;
	case ENOENT: case ECONNREFUSED:
		return err_set(err, ERR_NOT_FOUND, "no device server listens at %s: start one "
			       "(tessera-sim --socket-dir DIR), or correct TESSERA_DEVICES",
			       v->path);
	case EACCES:
		return err_set(err, ERR_PERMISSION_DENIED, "no permission for %s: join the "
			       "group that owns it (ls -l), or start tessera-sim with --group",
			       v->path);
	case EAGAIN:
		return lose_late(v, err);
	default:
		return err_sys(err, error, "connecting to %s", v->path);
	}
}

static int negotiate(struct vfio_user *v, struct err *err)
{
	static const char offer[] = "{\"capabilities\":{\"max_msg_fds\":16,"
		"\"max_data_xfer_size\":1048576,\"max_dma_maps\":65535,\"pgsizes\":4096}}";
	struct vfu_version version = { 0, 0 };
	char answer[4096];
	struct call c = { .command = VFU_VERSION, .body = &version,
			  .bytes = sizeof(version), .data = offer, .n_data = sizeof(offer),
			  .answer = answer, .room = sizeof(answer) };
	int error, code = call(v, &c, &error, err);

	if (code)
		return code;
	close_got(&c);
	if (error == EBUSY)
		return err_set(err, ERR_FAILED_PRECONDITION, "another process has the device "
			       "behind %s: end it (tessera-sim's log names its pid), serve more "
			       "of them (tessera-sim --clients) or use another device", v->path);
	if (error)
		return err_sys(err, error, "the device's server at %s refused this version of "
			       "vfio-user", v->path);
	memcpy(&version, answer, sizeof(version));
	/* A server's minor is at most the one that was asked for. */
	if (c.answer_bytes < sizeof(version) || version.major || version.minor)
		return lose_broken(v, "a VERSION that this build does not know", err);
	return 0;
}

static int look_at_function(struct vfio_user *v, struct err *err)
{
	struct vfu_info i = { .argsz = sizeof(i) };
	struct call c = { .command = VFU_GET_INFO, .body = &i, .bytes = sizeof(i),
			  .answer = &i, .room = sizeof(i) };
	uint32_t id = 0;
	int code = call(v, &c, NULL, err);

	if (code)
		return code;
	close_got(&c);
	if (c.answer_bytes < sizeof(i) || !(i.flags & VFU_INFO_PCI) ||
	    i.n_regions <= VFU_REGION_CONFIG || i.n_irqs <= VFU_IRQ_MSIX)
		return lose_broken(v, "a device that is no PCI function", err);
	v->can_reset = i.flags & VFU_INFO_RESET;
	code = access_region(v, false, VFU_REGION_CONFIG, 0, &id, sizeof(id), err);
	if (!code && id != (HW_PCI_VENDOR | (uint32_t)HW_PCI_DEVICE << 16))
		code = err_set(err, ERR_FAILED_PRECONDITION, "the device behind %s is %04x:%04x, "
			       "not a T1 (%04x:%04x)", v->path, id & 0xffff, id >> 16,
			       HW_PCI_VENDOR, HW_PCI_DEVICE);
	if (!code && !v->can_reset)
		code = err_set(err, ERR_FAILED_PRECONDITION, "the server at %s cannot reset its "
			       "device", v->path);
	return code;
}

/* A region and its one capability. */
struct region {
	struct vfu_region_info info;
	struct vfu_sparse sparse;
};

/* Asks with room for `argsz` bytes; what did not come is zeros. */
static int ask_region(struct vfio_user *v, uint32_t argsz, struct region *r, struct call *c,
		      struct err *err)
{
	struct vfu_region_info ask = { .argsz = argsz, .index = VFU_REGION_BAR2 };
	int code;

	memset(r, 0, sizeof(*r));
	*c = (struct call){ .command = VFU_GET_REGION_INFO, .body = &ask, .bytes = sizeof(ask),
			    .answer = r, .room = argsz };
	code = call(v, c, NULL, err);
	if (!code && c->answer_bytes < sizeof(r->info)) {
		close_got(c);
		code = lose_broken(v, "a short region description", err);
	}
	return code;
}

/* Whether all of the region can be mapped: a server lists its parts, or says nothing. */
static bool is_mappable(const struct region *r, const struct call *c)
{
	if (!c->n_got || !(r->info.flags & VFU_REGION_CAN_MAP) || !r->info.bytes)
		return false;
	if (!(r->info.flags & VFU_REGION_HAS_CAPS))
		return true;
	return r->info.cap_offset == sizeof(r->info) && r->sparse.id == VFU_CAP_SPARSE &&
	       r->sparse.n_areas == 1 && !r->sparse.offset &&
	       r->sparse.bytes == r->info.bytes;
}

/* Whether a file holds all that is to be mapped of it: stores behind its end would be SIGBUS. */
static bool holds(int fd, uint64_t offset, uint64_t bytes)
{
	struct stat st;
	uint64_t end;

	return !fstat(fd, &st) && !__builtin_add_overflow(offset, bytes, &end) &&
	       (!S_ISREG(st.st_mode) || end <= (uint64_t)st.st_size);
}

static int map_hbm(struct vfio_user *v, struct err *err)
{
	struct region r;
	struct call c;
	int code = ask_region(v, sizeof(r.info), &r, &c, err);
	void *p;

	if (!code && r.info.argsz == sizeof(r)) {
		close_got(&c);
		code = ask_region(v, sizeof(r), &r, &c, err);
	}
	if (code)
		return code;
	/* A server without it is slower: copies then go through staging memory. */
	if (is_mappable(&r, &c) && !holds(c.got_fds[0], r.info.offset, r.info.bytes)) {
		code = lose_broken(v, "HBM in a file that is shorter", err);
	} else if (is_mappable(&r, &c)) {
		p = mmap(NULL, r.info.bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE,
			 c.got_fds[0], (off_t)r.info.offset);
		if (p == MAP_FAILED) {
			code = err_sys(err, errno, "mapping %llu bytes of HBM of %s",
				       (unsigned long long)r.info.bytes, v->path);
		} else {
			madvise(p, r.info.bytes, MADV_HUGEPAGE);
			v->hbm = p;
			v->hbm_bytes = r.info.bytes;
		}
	}
	close_got(&c);
	return code;
}

/* The server's word, the same for all doorbells. */
static bool read_awake(struct vfio_user *v, const struct vfu_io_fd *io, unsigned i)
{
	uint64_t at = io->flags & VFU_IO_AWAKE ? io->datamatch / 8 : 0;

	if (io->flags & VFU_IO_AWAKE && (io->datamatch % 8 || !at || at >= HW_PAGE / 8))
		return false;
	if (!i)
		v->awake_at = at;
	return at == v->awake_at;
}

/* Reads which doorbells are shared memory; all must be, to be used. */
static bool read_bells(struct vfio_user *v, const uint8_t *answer, size_t bytes,
		       unsigned n_fds, uint32_t *kick, uint32_t *page)
{
	struct vfu_io_fds head;
	struct vfu_io_fd io;
	unsigned n = 0;

	if (bytes < sizeof(head))
		return false;
	memcpy(&head, answer, sizeof(head));
	if (head.count != HW_MAX_QUEUES || bytes < sizeof(head) + head.count * sizeof(io))
		return false;
	for (unsigned i = 0; i < head.count; i++) {
		uint64_t bell;

		memcpy(&io, answer + sizeof(head) + i * sizeof(io), sizeof(io));
		bell = (io.offset - HW_DOORBELL_BASE) / HW_DOORBELL_STRIDE;
		if (io.type != VFU_IO_SHADOW || io.flags & ~(uint32_t)VFU_IO_AWAKE ||
		    io.bytes != 8 || !read_awake(v, &io, i) ||
		    io.fd >= n_fds || io.shadow_fd >= n_fds || io.shadow_offset % 8 ||
		    io.shadow_offset > HW_PAGE - 8 || bell >= HW_MAX_QUEUES ||
		    io.offset != hw_doorbell((unsigned)bell) ||
		    (i && (io.fd != *kick || io.shadow_fd != *page)))
			return false;
		*kick = io.fd;
		*page = io.shadow_fd;
		v->bell_at[bell] = io.shadow_offset / 8;
		n++;
	}
	return n == HW_MAX_QUEUES && *kick != *page;
}

static int share_bells(struct vfio_user *v, struct err *err)
{
	uint8_t answer[sizeof(struct vfu_io_fds) + HW_MAX_QUEUES * sizeof(struct vfu_io_fd)];
	struct vfu_io_fds ask = { .argsz = sizeof(answer), .index = VFU_REGION_BAR0 };
	struct call c = { .command = VFU_GET_REGION_IO_FDS, .body = &ask,
			  .bytes = sizeof(ask), .answer = answer, .room = sizeof(answer) };
	uint32_t kick = 0, page = 0;
	int error, code = call(v, &c, &error, err);
	void *p;

	if (code)
		return code;
	if (error || !read_bells(v, answer, c.answer_bytes, c.n_got, &kick, &page) ||
	    !holds(c.got_fds[page], 0, HW_PAGE)) {
		log_info("%s shares no doorbells; they go as messages", v->path);
		close_got(&c);
		return 0;
	}
	p = mmap(NULL, HW_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, c.got_fds[page], 0);
	if (p == MAP_FAILED) {
		code = err_sys(err, errno, "mapping the doorbells of %s", v->path);
	} else {
		v->bells = p;
		v->bell_fd = c.got_fds[kick];
		c.got_fds[kick] = c.got_fds[--c.n_got];
	}
	close_got(&c);
	return code;
}

static void close_bus(struct hal_bus *bus)
{
	struct vfio_user *v = of(bus);
	uint64_t one = 1;
	struct area *next;

	if (v->has_watcher && write(v->quit_fd, &one, sizeof(one)) > 0)
		pthread_join(v->watcher, NULL);
	/* A child that is between its start and exec has the socket, too: the server must see the
	 * end. */
	if (v->fd >= 0)
		shutdown(v->fd, SHUT_RDWR);
	files_close(&v->own, &v->fd, close);
	if (v->hbm)
		munmap(v->hbm, v->hbm_bytes);
	if (v->bells)
		munmap((void *)v->bells, HW_PAGE);
	if (v->bell_fd >= 0)
		close(v->bell_fd);
	if (v->quit_fd >= 0)
		close(v->quit_fd);
	for (struct area *a = v->areas; a; a = next) {
		next = a->next;
		free(a);
	}
	pthread_mutex_destroy(&v->lock);
	pthread_mutex_destroy(&v->why_lock);
	free(v);
}

static int read_limit(struct vfio_user *v, struct err *err)
{
	const char *text = getenv("TESSERA_SERVER_LIMIT_MS");
	uint64_t ms = ANSWER_MS;

	if (text && *text && !str_read_number(text, 1, MOST_ANSWER_MS, &ms))
		return err_set(err, ERR_INVALID_ARGUMENT, "TESSERA_SERVER_LIMIT_MS=%s: how long a "
			       "device's server may take to answer is a number of milliseconds "
			       "from 1 to %u", text, MOST_ANSWER_MS);
	v->limit_ns = (int64_t)ms * 1000000;
	return 0;
}

static int open_bus(void *host, const char *where, struct hal_bus **out, struct err *err)
{
	struct vfio_user *v = calloc(1, sizeof(*v));
	int code;

	(void)host;
	if (!v)
		return err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory");
	v->bus.ops = &hal_bus_vfio_user;
	v->fd = v->bell_fd = v->quit_fd = -1;
	for (unsigned i = 0; i < HW_MAX_VECTORS; i++)
		v->irq_fd[i] = -1;
	snprintf(v->path, sizeof(v->path), "%s", where);
	pthread_mutex_init(&v->lock, NULL);
	pthread_mutex_init(&v->why_lock, NULL);
	code = read_limit(v, err);
	if (!code)
		code = attach(v, err);
	if (!code)
		code = negotiate(v, err);
	if (!code)
		code = look_at_function(v, err);
	if (!code)
		code = map_hbm(v, err);
	if (!code)
		code = share_bells(v, err);
	if (!code) {
		v->quit_fd = eventfd(0, EFD_CLOEXEC);
		if (v->quit_fd < 0)
			code = err_sys(err, errno, "eventfd");
		else if (pthread_create(&v->watcher, NULL, watch, v))
			code = err_set(err, ERR_RESOURCE_EXHAUSTED, "could not start a thread");
		else
			v->has_watcher = true;
	}
	if (code) {
		close_bus(&v->bus);
		return code;
	}
	*out = &v->bus;
	return 0;
}

/* ---- the table ---- */

static uint32_t read_register(struct hal_bus *bus, uint32_t offset)
{
	uint32_t value;

	/* All ones is what a bus gives for a device that is gone. */
	return access_region(of(bus), false, VFU_REGION_BAR0, offset, &value, 4, NULL) ?
		0xffffffffu : value;
}

/* A posted write: nobody waits for the answer. */
static void post(struct vfio_user *v, uint32_t offset, uint32_t value)
{
	struct vfu_region_access a = { offset, VFU_REGION_BAR0, sizeof(value) };
	struct call c = { .command = VFU_REGION_WRITE, .body = &a, .bytes = sizeof(a),
			  .data = &value, .n_data = sizeof(value), .no_reply = true };

	call(v, &c, NULL, NULL);
}

static void write_register(struct hal_bus *bus, uint32_t offset, uint32_t value)
{
	struct vfio_user *v = of(bus);
	uint32_t queue = (offset - HW_DOORBELL_BASE) / HW_DOORBELL_STRIDE;
	uint64_t one = 1;

	if (hw_woken(offset, sizeof(value))) {
		post(v, offset, value);
	} else if (offset < HW_DOORBELL_BASE || queue >= HW_MAX_QUEUES ||
		   offset != hw_doorbell(queue)) {
		access_region(v, true, VFU_REGION_BAR0, offset, &value, 4, NULL);
	} else if (!v->bells) {
		post(v, offset, value);
	} else {
		atomic_store(&v->bells[v->bell_at[queue]], VFU_BELL_RUNG | value);
		if (v->awake_at && atomic_load(&v->bells[v->awake_at]))
			return;
		/* A full counter means that the server has not looked yet. */
		if (write(v->bell_fd, &one, sizeof(one)) < 0 && errno != EAGAIN)
			log_error("ringing %s: %s", v->path, strerror(errno));
	}
}

static void *hbm(struct hal_bus *bus, uint64_t *bytes)
{
	*bytes = of(bus)->hbm_bytes;
	return of(bus)->hbm;
}

static bool is_zero(const uint8_t *p, size_t n)
{
	return !p[0] && !memcmp(p, p + 1, n - 1);
}

/* The pages of p that are not all zeros, each run of them with as few calls as it takes. */
static bool copy_pages(int fd, const uint8_t *p, uint64_t bytes)
{
	for (uint64_t at = 0, end; at < bytes; at = end) {
		end = at + HW_PAGE;
		if (is_zero(p + at, HW_PAGE))
			continue;
		while (end < bytes && !is_zero(p + end, HW_PAGE))
			end += HW_PAGE;
		while (at < end) {
			ssize_t n = pwrite(fd, p + at, end - at, (off_t)at);

			if (n <= 0)
				return false;
			at += (uint64_t)n;
		}
	}
	return true;
}

/* Puts a memfd with the same content in the place of [host, +bytes). Pages of zeros are
 * left out: memory that was not touched yet costs nothing. */
static int make_shared(void *host, uint64_t bytes, int *out, struct err *err)
{
	int fd = memfd_create("tessera-host", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int code;

	if (fd < 0)
		return err_sys(err, errno, "memfd for host memory");
	if (ftruncate(fd, (off_t)bytes) || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW))
		goto failed;
	if (!copy_pages(fd, host, bytes))
		goto failed;
	if (mmap(host, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) ==
	    MAP_FAILED)
		goto failed;
	/* A child of fork must not write what the device reads. */
	madvise(host, bytes, MADV_DONTFORK);
	*out = fd;
	return 0;
failed:
	code = err_sys(err, errno, "%llu bytes of host memory to share with the device's "
		       "server", (unsigned long long)bytes);
	close(fd);
	return code;
}

static int dma_map(struct hal_bus *bus, void *host, uint64_t bytes, uint64_t *iova,
		   struct err *err)
{
	struct vfio_user *v = of(bus);
	struct vfu_dma_map m = { .argsz = sizeof(m), .flags = VFU_MAP_READ | VFU_MAP_WRITE,
				 .iova = (uintptr_t)host, .bytes = bytes };
	struct call c = { .command = VFU_DMA_MAP, .body = &m, .bytes = sizeof(m), .n_fds = 1 };
	struct area *a;
	int fd, code;

	if ((uintptr_t)host % HW_PAGE || bytes % HW_PAGE || !bytes)
		return err_set(err, ERR_INVALID_ARGUMENT, "DMA mapping of %llu bytes at %p: give "
			       "whole pages", (unsigned long long)bytes, host);
	a = malloc(sizeof(*a));
	if (!a)
		return err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory");
	code = health(bus, err);
	if (!code)
		code = make_shared(host, bytes, &fd, err);
	if (code) {
		free(a);
		return code;
	}
	c.fds = &fd;
	pthread_mutex_lock(&v->lock);
	code = call_locked(v, &c, NULL, err);
	if (!code) {
		*a = (struct area){ v->areas, m.iova, bytes };
		v->areas = a;
	}
	pthread_mutex_unlock(&v->lock);
	close_got(&c);
	close(fd);
	if (code)
		free(a);
	else
		*iova = m.iova;
	return code;
}

static int dma_unmap(struct hal_bus *bus, uint64_t iova, struct err *err)
{
	struct vfio_user *v = of(bus);
	struct vfu_dma_unmap u = { .argsz = sizeof(u), .iova = iova };
	struct call c = { .command = VFU_DMA_UNMAP, .body = &u, .bytes = sizeof(u),
			  .answer = &u, .room = sizeof(u) };
	struct area **at, *a;
	int code;

	pthread_mutex_lock(&v->lock);
	for (at = &v->areas; *at && (*at)->iova != iova; at = &(*at)->next)
		;
	a = *at;
	if (!a) {
		pthread_mutex_unlock(&v->lock);
		return err_set(err, ERR_NOT_FOUND, "no DMA mapping starts at 0x%llx",
			       (unsigned long long)iova);
	}
	u.bytes = a->bytes;
	*at = a->next;
	code = call_locked(v, &c, NULL, err);
	pthread_mutex_unlock(&v->lock);
	close_got(&c);
	free(a);
	return code;
}

static int irq_fd(struct hal_bus *bus, unsigned vector, int fd, struct err *err)
{
	struct vfio_user *v = of(bus);
	struct vfu_set_irqs s = { .argsz = sizeof(s), .flags = VFU_SET_EVENTFD | VFU_SET_TRIGGER,
				  .index = VFU_IRQ_MSIX, .start = vector, .count = 1 };
	struct call c = { .command = VFU_SET_IRQS, .body = &s, .bytes = sizeof(s),
			  .fds = &fd, .n_fds = fd >= 0 };
	int code;

	if (vector >= HW_MAX_VECTORS)
		return err_set(err, ERR_OUT_OF_RANGE, "vector %u of %u", vector,
			       HW_MAX_VECTORS);
	code = call(v, &c, NULL, err);
	close_got(&c);
	if (!code || fd < 0)
		atomic_store(&v->irq_fd[vector], fd);
	return code;
}

static int reset(struct hal_bus *bus, struct err *err)
{
	struct vfio_user *v = of(bus);
	struct call c = { .command = VFU_RESET };
	uint16_t command = COMMAND_MEMORY_MASTER;
	int code = call(v, &c, NULL, err);

	close_got(&c);
	/* A reset takes the right to DMA away. */
	return code ? code : access_region(v, true, VFU_REGION_CONFIG, CONFIG_COMMAND,
					   &command, sizeof(command), err);
}

const struct hal_bus_ops hal_bus_vfio_user = {
	.open = open_bus, .close = close_bus, .read = read_register,
	.write = write_register, .hbm = hbm, .dma_map = dma_map,
	.dma_unmap = dma_unmap, .irq_fd = irq_fd, .reset = reset, .health = health,
};
