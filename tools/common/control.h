/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOLS_CONTROL_H
#define TOOLS_CONTROL_H
/*
 * How an operator has tessera-sim reset a device that it serves, or make an error happen on it:
 * over the socket beside those of the devices. xla-smi asks (served.c), tessera-sim answers
 * (control.c). vfio-user has no words for it: there a device has one client, which may do to its
 * function what it likes, and nobody else anything.
 *
 * Numbers are the machine's own. The asker connects, sends one struct control_ask and is sent one
 * struct control_answer, within CONTROL_ASK_NS and CONTROL_ANSWER_NS. Root and the user that the
 * server runs as may ask, others are not allowed.
 */
#include <assert.h>
#include <stdint.h>

#define CONTROL_SOCKET "control.sock"
#define CONTROL_MAGIC 0x54535343u	/* "TSSC" */
#define CONTROL_VERSION 1u
#define CONTROL_CLIENTS 64u
#define CONTROL_ASK_NS 2000000000ll
/* An error that stops nothing waits for the command that is under way, and that maybe for its
 * client's memory. */
#define CONTROL_ANSWER_NS 90000000000ll

enum control_step {
	CONTROL_LOOK = 1,	/* who has the device */
	CONTROL_RESET,		/* its function, of all clients */
	CONTROL_INJECT,		/* error `what` (enum hw_inject) with `value` */
};

struct control_ask {
	uint32_t magic, version;
	uint32_t step;		/* enum control_step */
	uint32_t device;	/* as its socket is numbered */
	uint32_t is_forced;	/* 1: though somebody has it; else 0 */
	int32_t client;		/* what this process has of it alone; 0: all of it */
	uint32_t what, zero;
	uint64_t value;
};

enum control_outcome {
	CONTROL_DONE = 1,
	CONTROL_IN_USE,		/* by the clients; nothing was done */
	CONTROL_NO_DEVICE,
	CONTROL_NO_CLIENT,	/* the process that was named has nothing of it */
	CONTROL_NOT_ALLOWED,
	CONTROL_FAILED,		/* as text says */
};

struct control_client {
	int32_t pid;		/* as the server sees it; 0: it can't */
	uint32_t uid;
};

struct control_answer {
	uint32_t magic, version;
	uint32_t outcome;	/* enum control_outcome */
	uint32_t n_clients;	/* those of the device, or the one that was named */
	char text[256];		/* ends in NUL; what is wrong, else empty */
	struct control_client clients[CONTROL_CLIENTS];
};

static_assert(sizeof(struct control_ask) == 40, "wire size");
static_assert(sizeof(struct control_answer) == 784, "wire size");

#endif
