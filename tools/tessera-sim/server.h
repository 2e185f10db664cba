/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SERVER_H
#define SERVER_H
/*
 * tessera-sim's own structures. A `struct device` is what a client sees: a PCI function
 * around one of a device of the model. It is used by one client at a time; between
 * device_begin() and device_end() lies a session, and nothing of one session is
 * seen by the next.
 *
 * Threads: a session's messages are handled on its device's own thread (session.c), what an
 * operator asks for on one for all devices (control.c); device.lock keeps them apart.
 * Doorbells are rung on another one (bells.c), because the model may work before a
 * doorbell returns. The main thread accepts, watches for clients that went away and
 * for memory that was taken from under a mapping.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hal/base/err.h"
#include "hal/bus/vfio_user.h"
#include "hal/hw/regs.h"
#include "hal/sim/sim.h"

/* ---- say.c ---- */

/* A line for the operator, on standard error. From any thread. */
void say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* ---- config.c: PCI configuration space ---- */

#define CONFIG_BYTES 4096u

struct config {
	uint8_t bytes[256];	/* what reads give; all behind it is 0 */
	uint8_t writable[256];	/* a mask for each byte */
	uint8_t cleared[256];	/* bits that writing 1 clears */
};

enum { CONFIG_FLR = 1 };	/* what a write asks for besides */

void config_reset(struct config *c, uint64_t hbm_bytes);
/* [offset, offset + n) lies in CONFIG_BYTES. */
void config_read(const struct config *c, uint32_t offset, void *to, uint32_t n);
unsigned config_write(struct config *c, uint32_t offset, const void *from, uint32_t n);
bool config_is_master(const struct config *c);

/* ---- guard.c: memory that its owner takes away ---- */

struct guard;

/* Installs the handler; `fd` is added to when a guarded range breaks. */
int guard_start(int fd, struct err *err);
/* Accesses to [base, base + bytes) that the file behind it no longer backs find zeros
 * instead, and *broken becomes true. NULL: too many. */
struct guard *guard_add(void *base, size_t bytes, atomic_bool *broken);
void guard_remove(struct guard *g);

/* ---- dma.c: the client's memory ---- */

struct backing;
struct remote;
struct remotes;

struct mapping {
	uint64_t iova, bytes, offset;
	uint32_t flags;			/* VFU_MAP_* */
	bool in_model, in_window;
	struct backing *backing;	/* NULL: remote */
	struct remote *remote;
};

struct dma {
	struct mapping *maps;		/* ascending by iova */
	unsigned n, room;
	struct backing *backings;
	unsigned n_backings;
	_Atomic uint64_t backed_bytes;	/* of backings and of remote ranges */
	atomic_uint n_areas;		/* of the address space: of these, and in the window */
	unsigned most_areas;
	bool is_on;			/* the function is bus master */
	/* Where iova x of a file is seen at window + x, too; NULL: nowhere. */
	uint8_t *window;
	struct guard *window_guard;
};

/* ---- bells.c: doorbells ---- */

struct bells {
	struct sim_device *sim;
	int page_fd, client_fd;		/* shadow memory and its eventfd, the client's too */
	int own_fd, epoll;
	_Atomic uint64_t *slots;	/* [HW_MAX_QUEUES], then the word of BELLS_AWAKE */
	_Atomic uint64_t wakes;		/* contexts whose wake page was stored to, a bit each */
	struct remotes *_Atomic remotes;	/* to be fetched anew first; NULL: none */
	pthread_mutex_t lock;		/* held while a doorbell is rung */
	pthread_t thread;
	bool has_thread;
	int64_t spin_ns;
	atomic_bool quit;
};

/* Where in the shadow memory the server says that it needs no kick (VFU_IO_AWAKE); on a
 * cache line that no doorbell is on. */
#define BELLS_AWAKE (HW_PAGE / 2)

int bells_open(struct bells *b, struct sim_device *sim, struct err *err);
void bells_close(struct bells *b);
void bells_ring(struct bells *b, unsigned queue, uint32_t tail);
/* A store to a context's wake page. */
void bells_wake(struct bells *b, unsigned ctx);
/* From now on each doorbell and wake first has `remotes` fetched anew (remote.c). */
void bells_sync(struct bells *b, struct remotes *remotes);
/* No doorbell rings between the two; what was pending is forgotten if `drop`. */
void bells_hold(struct bells *b, bool drop);
void bells_go_on(struct bells *b);

/* ---- irq.c ---- */

struct irqs {
	pthread_mutex_t lock;		/* over the numbers; not held in the model */
	int fd[HW_MAX_VECTORS];		/* -1: none */
	bool is_relayed;		/* the model adds to these instead; remote.c
					 * passes on */
	int relay[HW_MAX_VECTORS];
};

/* ---- the device ---- */

struct device {
	struct sim_device *sim;
	unsigned index;
	pthread_mutex_t lock;		/* one command at a time: the client's, or an operator's */
	atomic_uint n_stopping;		/* operators that wait for lock to stop it: nothing is
					 * asked of its client */
	pthread_mutex_t who_lock;	/* behind lock; the next three change under both */
	bool has_client;		/* and who that is */
	int pid;
	unsigned uid;
	uint64_t hbm_bytes;
	bool is_stale;			/* HBM holds what an earlier client left */
	int64_t limit_ns;		/* for a client to join, to end a message, to take one */
	bool has_version;
	unsigned max_fds;		/* that the client takes in a message */
	uint64_t max_xfer;
	struct config config;
	struct dma dma;
	struct bells bells;
	struct irqs irqs;
	unsigned n_unreachable;	/* mappings that accesses fault on */
	atomic_bool is_broken;		/* guarded memory of this client broke */
	struct link *link;		/* to ask the client for memory; may be NULL */
	struct remotes *remotes;	/* NULL: all memory came with descriptors */
};

int device_init(struct device *d, struct sim_device *sim, unsigned index, struct err *err);
int device_begin(struct device *d, struct err *err);
void device_end(struct device *d);
/* Around what stops the model: a client may answer nothing meanwhile (link_hush). */
void device_hush(struct device *d, bool on);
/* Function reset: the model and configuration space as after power on, mappings and
 * eventfds stay. */
void device_reset(struct device *d);
/* The same, and INJECT, by an operator; whoever has the device hears of it at once. Under lock. */
void device_reset_by_force(struct device *d);
int device_inject(struct device *d, unsigned what, uint64_t value, struct err *err);

/* All return 0 or an errno. dma_map closes nothing; fd -1: none came. */
int dma_map(struct device *d, const struct vfu_dma_map *m, int fd);
int dma_unmap(struct device *d, const struct vfu_dma_unmap *m);
/* Lets the model reach the mappings, or not: the bus master bit. */
void dma_turn(struct device *d, bool on);
void dma_clear(struct device *d);
/* An area of so many bytes is no more. From any thread. */
static inline void dma_give_back(struct dma *t, uint64_t bytes)
{
	atomic_fetch_sub(&t->n_areas, 1);
	atomic_fetch_sub(&t->backed_bytes, bytes);
}

/* Before the rest: how the model adds to the client's eventfds. Not possible here: err says why. */
int irq_open(struct device *d, struct err *err);
int irq_set(struct device *d, const struct vfu_set_irqs *s, const uint8_t *data,
	    size_t n_data, int *fds, unsigned n_fds);
/* The client keeps the vector table itself: what has an eventfd is unmasked. */
void irq_unmask(struct device *d);
void irq_clear(struct device *d);
/* Has the client look at its device: adds to all of its eventfds. */
void irq_alarm(struct device *d);
/* Puts a thread of ours between the model and the client's eventfds. 0, or -1. */
int irq_relay(struct device *d);
void irq_end_relay(struct device *d);
/* On that thread: an interrupt of `vector` was raised. */
void irq_pass_on(struct device *d, unsigned vector);

/* ---- remote.c: memory without a descriptor ---- */

/* Memory at iova that is fetched from the client when the model touches it and
 * sent back when it was written. NULL: not possible here, *error says why. */
struct remote *remote_create(struct device *d, uint64_t iova, uint64_t bytes, int *error);
/* Nothing of it is asked or sent any more, what was asked is cancelled: what the model still
 * does with it ends without the client, and badly. Before it is unmapped, which waits for that. */
void remote_abandon(struct remote *r);
/* NULL is fine. The model must not use it any more. Waits for nobody. */
void remote_destroy(struct remote *r);
void *remote_base(struct remote *r);
/* Sends what was written; what the model reads next is fetched anew. */
void remote_sync(struct remotes *a);
/* After the last of its ranges. */
void remotes_stop(struct device *d);

/* ---- messages ---- */

struct message {
	struct vfu_header h;
	uint8_t *body;
	size_t bytes;			/* of body */
	int fds[VFU_MAX_FDS];		/* -1 once taken */
	unsigned n_fds;
};

struct reply {
	uint8_t *body;			/* room for VFU_MAX_BODY */
	size_t bytes;
	int fds[VFU_MAX_FDS];		/* the device's; only to be sent */
	unsigned n_fds;
};

/* ---- link.c: a client's socket ---- */

struct kept;

struct link {
	struct device *d;
	int fd;
	pthread_mutex_t send_lock, ask_lock, lock;
	pthread_cond_t moved;
	int64_t join_by;		/* for a version */
	bool is_reading, is_lost;
	unsigned n_hushed;		/* not 0: nothing is asked, the model is being stopped */
	const char *why;		/* NULL: the client left */
	struct kept *first, **last;	/* commands that came while an answer was awaited */
	unsigned n_kept, n_kept_fds;
	size_t kept_bytes;
	/* the one question */
	bool is_asking, is_answered;
	unsigned n_given_up;		/* questions whose answers are yet to come */
	uint16_t id, command;
	int error;
	void *to;
	size_t n_to;
};

void link_init(struct link *l, struct device *d, int fd);
/* Frees what was kept; `fd` is the caller's. */
void link_end(struct link *l);
/* The next command, for the session's thread; its fds and body are the caller's, who gives
 * them to link_free_message. False: the client has left, or broke the protocol. Blocks. */
bool link_next(struct link *l, struct message *m);
void link_free_message(struct message *m);
/* Sends the reply to m, or `error` instead. False: it could not be sent. */
bool link_reply(struct link *l, const struct message *m, struct reply *r, int error);
/* Nothing more is read: whoever waits for an answer waits no longer. `why` (NULL: the
 * client left) is kept if it is the first reason; it is not copied. */
void link_lose(struct link *l, const char *why);
/* Asks the client about the q->count bytes at q->iova and waits for its reply: to take `data`, or
 * to give them for `to`, of which the other is NULL. ECANCELED once *gone is true, at any time;
 * link_look_again. From any other thread than the session's. */
int link_ask(struct link *link, uint16_t command, const struct vfu_dma_access *q,
	     const void *data, void *to, const atomic_bool *gone);
/* Has whoever waits for an answer look whether it is still wanted. */
void link_look_again(struct link *l);
/* While it is on every question fails with ECANCELED, those too that wait for an answer. From the
 * session's thread, around what stops the model, also one in another; NULL is fine. */
void link_hush(struct link *l, bool on);

/* ---- message.c ---- */

/* Does what a command says. 0: `out` is the reply; else an errno to reply. */
int message_handle(struct device *d, struct message *m, struct reply *out);

/* ---- session.c ---- */

/* Serves a connected client until it leaves. Blocks. */
void session_run(struct device *d, int fd);

/* ---- control.c: what an operator asks for ---- */

#define CONTROL_DEVICES 64u

struct control {
	struct device *devices[CONTROL_DEVICES];	/* functions of one device have its index */
	unsigned n;
	char path[108];
	int listen_fd, quit_fd;
	pthread_mutex_t lock;		/* over the next two */
	int asker_fd;			/* -1: none */
	bool quit;
	pthread_t thread;
	bool has_thread;
};

/* Listens in `dir` for root and this process's user. To be zeroed but for devices. */
int control_start(struct control *c, const char *dir, struct err *err);
/* Of one that was not started, too, if it was zeroed. */
void control_stop(struct control *c);

/* ---- server.c ---- */

struct server_options {
	struct sim_options sim;
	const char *dir;
	int64_t limit_ns;		/* device.limit_ns */
	unsigned clients;		/* sim.n_functions */
	unsigned mode;			/* of the sockets */
	int group;			/* -1: as it comes */
};

/* Serves until SIGTERM or SIGINT. */
int server_run(const struct server_options *o, struct err *err);

#endif
