/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TC_BACK_LINK_H
#define TC_BACK_LINK_H
/*
 * How the members of a program meet: what of it is known before code is written. Private to
 * back/.
 *
 * All ops among the same rows, or pairs, share a *channel*: a part of each member's mailbox.
 *
 *	u64 turn, arrived, credit	of what goes by mailboxes
 *	u64 turn, arrived, credit	of what goes directly
 *	u64 turn, arrived		of what is lent
 *	u64 turn, arrived		of what goes directly after that
 *	area				where others write, and the member its own part
 *
 * A turn is how often this member has met so here, ever. Each sender raises `arrived` once a
 * turn, and each receiver `credit`. In a row of n members, the one at place i sends to the one
 * at place (i + k) mod n as k, which counts from 1; of a permutation there is k = 1 alone.
 * Semaphores only grow, from the zeros that a mailbox begins with. So a channel works in loops
 * and from run to run, and nobody sets anything back.
 *
 * One count for all n - 1 others tells as much as one for each, as long as nobody raises it for
 * a turn while somebody still waits with it for the turn before: then none of them is counted
 * twice for one that is missing, and turns * (n - 1) is reached when all have raised it in each.
 * That holds for each of the two ways by itself:
 *
 * - By mailboxes, credit is given at the end of a turn, when all has arrived, so after all
 *   others have waited for their credits of it. A part is sent when the receiver has given its
 *   credit of the turn before, so after it has waited for the parts of that.
 * - Directly, credit is given as a turn begins, so when all of the turn before has arrived, whose
 *   senders had waited for their credits of that. A part is sent when the receiver has given its
 *   credit of this turn, so after it has waited for the parts of the one before.
 *
 * It does not hold for both together: credit for a turn by mailboxes that follows a direct one
 * is there already, so a quick member's part of it may arrive before a slow one's of the direct
 * turn. Hence counts for each way.
 *
 * What is large goes straight to where the receiver has its result, if the options allow that
 * (tc_is_direct): peers' data is bound for that, *views*. Then a receiver gives its credit when
 * that memory may be written, which is before it has anything, and the sender waits for that of
 * this turn.
 *
 * What an exchange of parts gives may be *lent* (opt/lend.c): nothing moves, and a VEC reads each
 * part where its member has it, by views for reading. Before that all of a row have to have come,
 * each with its operand whole: everybody raises a semaphore of all others and waits for all of
 * them. Here somebody who is quick may be counted twice for one whose raise is under way: who
 * leaves a turn first has heard of it from all, none of whom has raised it for the next one, so
 * all have come when anybody leaves, and no more is asked. What was lent stays as it is until
 * another exchange of the row ends, which has it among its operands: no member takes part in that
 * before it has read.
 *
 * If that exchange goes directly and there is no loop or branch on the way to it, its result has
 * its memory from the one that lends on, and to have come there is the credit: it is *ready*. A
 * part is sent when all have come, so after they have waited for the parts of the last such turn;
 * these have a count of their own.
 *
 * All members run the same code. What differs is in slots, whose mailbox a peer binding is,
 * and in words of the member's row; both are lists by member, and equal ones are one.
 */
#include <limits.h>

#include "runtime/compiler/back/emit.h"

#define LINK_NO_WORD UINT_MAX

/* In the mailbox, from channel.state on: of each way, its counts. */
enum { LINK_BY_MAILBOX = 0, LINK_DIRECTLY = 32, LINK_LENT = 64, LINK_READY = 96,
       LINK_STATE_BYTES = 128 };
enum { LINK_TURN = 0, LINK_ARRIVED = 8, LINK_CREDIT = 16 };
enum { LINK_WORD_REPLICA, LINK_WORD_PARTITION };
/* Words of a permutation. */
enum { LINK_ZEROS, LINK_OTHER, LINK_SELF };
/* Slots of a permutation. */
enum { LINK_TARGET = 1, LINK_SOURCE = 2 };

struct channel {
	const int64_t *ids;	/* members: rows of `size`, or pairs */
	unsigned n_ids;
	unsigned size;		/* 0: a permutation */
	bool meets;		/* somebody sends to another one */
	uint64_t state, area;	/* offsets in the mailbox */
	uint64_t bytes;		/* of the area, which what is direct does not need */
	int64_t *place, *length; /* by member: where in its row, and members of that */
	uint16_t *slot;		/* rows: k: who is k places on; else LINK_* */
	/* Words, or LINK_NO_WORD where all members have the same. */
	unsigned place_word, length_word;
	unsigned *to_word;	/* k: the place k places on; NULL: not asked for */
	uint16_t *at_slot;	/* k: who is at place k, itself too; NULL: nothing is lent */
	unsigned sends_word, takes_word;
	uint32_t groups;	/* string: who meets, as struct image_meeting has it */
	bool sends[3], takes[3]; /* LINK_*: some member does; a sender has no ZEROS */
	struct channel *next;
};

/* Peers' data: what binding `of` is for them. */
struct view { uint16_t slot, of; };

struct links {
	unsigned n_members, n_partitions;
	struct channel *channels;
	int64_t **slots;	/* by member: a member, or -1: whoever */
	unsigned n_slots, room_slots;
	int64_t **places;	/* as slots, behind them: of whom it reads, itself too */
	unsigned n_places, room_places;
	int64_t **words;	/* by member */
	unsigned n_words, room_words;
	bool has_row;		/* the row is bound */
	bool is_direct;		/* what is large goes straight */
	struct view *views;
	unsigned n_views, room_views;
	uint64_t bytes;		/* of a mailbox; 0: none */
	uint16_t mailbox, first_peer, row;	/* bindings */
};

/* Before any code: finds what meets, lays the mailbox out. INTERNAL for groups that are not
 * settled. */
void tc_plan_links(struct emit *e);
/* Takes binding numbers from *next on. */
void tc_number_links(struct emit *e, unsigned *next);
/* The channel of an op. */
const struct channel *tc_channel(const struct emit *e, const struct tc_op *op);
/* Whether the op writes straight into the peers' results. */
bool tc_is_direct(const struct emit *e, const struct tc_op *op);
/* Whether nothing of an exchange is moved, but its parts are read where others have them. */
bool tc_is_lent(const struct emit *e, const struct tc_op *op);
/* Gives what an exchange lends its home: that of what it is given, or of a copy. */
struct home tc_place_lent(struct emit *e, const struct tc_op *op);
/* Of a value that is a part of what was lent: makes *op, its operand as it lies here, that of
 * the member who lends it. false: it is none. */
bool tc_find_lent(struct emit *e, const struct tc_value *v, struct isa_operand *op);
/* Whether v, an exchange's, lies in the order of another value: of the transposition that alone
 * looks at it, so that parts arrive where they are to end. stride: of v, then; or NULL. */
bool tc_is_turned(const struct emit *e, const struct tc_value *v, int64_t *stride);
/* The exchange that ends what op lends, if its result can be given a home now, for peers to write
 * to from here on; or NULL. */
const struct tc_op *tc_find_ready(struct emit *e, const struct tc_op *op);
/* Gives v a dense home that peers can write to from the op being emitted on: as tc_place_from(),
 * or in the temporaries. */
struct home *tc_place_for_peers(struct emit *e, const struct tc_value *v);
/* The peer's place of what is at `own` here. */
struct home tc_at_peer(struct emit *e, unsigned slot, const struct home *own);
/* Reads a word of the member's row. */
uint8_t tc_load_word(struct emit *e, unsigned word);
/* A place from the row, times `step` bytes. Held to 0..most, which it is anyway, so that the
 * check of the code knows it. */
uint8_t tc_load_place(struct emit *e, unsigned word, int64_t most, int64_t step);
/* The bindings, and the tables for all members. */
unsigned tc_count_link_bindings(const struct emit *e);
void tc_put_links(struct emit *e, struct image *im, struct image_binding *b, unsigned *n);
/* The last bindings of all, behind e->random_binding. */
void tc_put_views(const struct emit *e, struct image_binding *b, unsigned *n);

#endif
