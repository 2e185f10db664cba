/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TC_BACK_LINK_H
#define TC_BACK_LINK_H
/*
 * How the members of a program meet: what of it is known before code is written. Private to
 * back/.
 *
 * All ops among the same rows, or pairs, share a *channel*: a part of each member's mailbox.
 *
 *	u64 turn		of this member: how often it has met here, ever
 *	u64 arrived[k]		raised by the sender of area k, once a turn
 *	u64 credit[k]		raised by the receiver to whom this member sends as k, once a turn
 *	area			where others write, and the member its own part
 *
 * k counts from 1. In a row of n members, the one at place i sends to the one at place
 * (i + k) mod n as k; of a permutation there is k = 1 alone. Semaphores only grow, from the
 * zeros that a mailbox begins with; a sender waits for `turn` credits before it writes. So a
 * channel works in loops and from run to run, and nobody sets anything back.
 *
 * What is large goes straight to where the receiver has its result, if the options allow that
 * (tc_is_direct): peers' data is bound for that, *views*. Then a receiver gives its credit when
 * that memory may be written, which is before it has anything, and the sender waits for that of
 * this turn.
 *
 * All members run the same code. What differs is in slots, whose mailbox a peer binding is,
 * and in words of the member's row; both are lists by member, and equal ones are one.
 */
#include <limits.h>

#include "runtime/compiler/back/emit.h"

#define LINK_NO_WORD UINT_MAX

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
static inline uint64_t tc_arrived(const struct channel *ch, unsigned k)
{
	return ch->state + 8ull * k;
}
static inline uint64_t tc_credit(const struct channel *ch, unsigned k)
{
	return ch->state + 8ull * ((ch->size ? ch->size - 1 : 1) + k);
}
/* Whether the op writes straight into the peers' results. */
bool tc_is_direct(const struct emit *e, const struct tc_op *op);
/* Gives v a dense home that peers can write to: as tc_place(), or in the temporaries. */
struct home tc_place_for_peers(struct emit *e, const struct tc_value *v);
/* The peer's place of what is at `own` here. */
struct home tc_at_peer(struct emit *e, unsigned slot, const struct home *own);
/* Reads a word of the member's row. */
uint8_t tc_load_word(struct emit *e, unsigned word);
/* The bindings, and the tables for all members. */
unsigned tc_count_link_bindings(const struct emit *e);
void tc_put_links(struct emit *e, struct image *im, struct image_binding *b, unsigned *n);
/* The last bindings of all, behind e->random_binding. */
void tc_put_views(const struct emit *e, struct image_binding *b, unsigned *n);

#endif
