/* SPDX-License-Identifier: Apache-2.0 */
/* Links: what is sent to each neighbour arrives there, and the link that it went by counts it. By
 * copies first, then by programs of both ends that meet. */
#include <stdlib.h>
#include <string.h>

#include "tools/bringup/program.h"

#define SENT (((uint64_t)1 << 20) + 13)

/* The other end of a link, opened for the step. */
struct neighbour {
	struct hal_device *dev;
	struct hal_mem *mem, *box;
	struct hal_exe *exe;
};

static void leave(struct neighbour *n)
{
	hal_exe_unload(n->exe);
	hal_mem_free(n->box);
	hal_mem_free(n->mem);
	hal_device_close(n->dev);
	*n = (struct neighbour){ 0 };
}

/* Opens the device that is chip `chip` of the same fabric. NOT_FOUND. */
static int open_chip(struct bringup *b, unsigned chip, struct neighbour *out)
{
	struct hal_position own, p;

	hal_device_position(b->dev, &own);
	for (unsigned i = 0; i < hal_device_count(b->hal); i++) {
		struct hal_device *dev;

		if (i == b->options->index || hal_device_open(b->hal, i, &dev, &b->err))
			continue;
		hal_device_position(dev, &p);
		if (p.fabric == own.fabric && p.chip == chip) {
			out->dev = dev;
			return 0;
		}
		hal_device_close(dev);
	}
	return err_set(&b->err, ERR_NOT_FOUND, "chip %u is none of the devices here", chip);
}

/* dev's link to a chip. */
static int find_link(struct bringup *b, struct hal_device *dev, unsigned chip, struct hw_link *out)
{
	struct hw_link links[HW_MAX_LINKS];
	unsigned n;
	int code = hal_device_links(dev, links, &n, &b->err);

	for (unsigned i = 0; !code && i < n; i++)
		if (links[i].peer == chip) {
			*out = links[i];
			return 0;
		}
	return code ? code : err_set(&b->err, ERR_NOT_FOUND, "no link to chip %u any more", chip);
}

static enum bringup_result send(struct bringup *b, unsigned chip, const struct neighbour *to,
				struct hal_mem *from, const uint8_t *want, uint8_t *got)
{
	struct hw_link before, after, theirs, theirs_after;
	struct hal_position own;
	uint64_t value;
	size_t at;

	hal_device_position(b->dev, &own);
	TRY(b, find_link(b, b->dev, chip, &before));
	TRY(b, find_link(b, to->dev, own.chip, &theirs));
	if (before.is != HW_LINK_UP)
		return bringup_fail(b, "the link to chip %u is not up (%u)", chip, before.is);
	TRY(b, hal_queue_copy(b->dma, to->mem, 0, from, 0, SENT, NULL, 0, &value, &b->err));
	TRY(b, hal_queue_wait(b->dma, value, SOON, &b->err));
	TRY(b, hal_copy_out(got, to->mem, 0, SENT, SOON, &b->err));
	at = bringup_differ(got, want, SENT);
	if (at < SENT)
		return bringup_fail(b, "byte %zu at chip %u is 0x%02x instead of 0x%02x", at, chip,
				    got[at], want[at]);
	TRY(b, find_link(b, b->dev, chip, &after));
	if (after.tx_bytes - before.tx_bytes != SENT || after.n_errors != before.n_errors)
		return bringup_fail(b, "the link to chip %u counts %llu bytes of %llu, %llu "
				    "refused",
				    chip, (unsigned long long)(after.tx_bytes - before.tx_bytes),
				    (unsigned long long)SENT,
				    (unsigned long long)(after.n_errors - before.n_errors));
	TRY(b, find_link(b, to->dev, own.chip, &theirs_after));
	if (theirs_after.rx_bytes - theirs.rx_bytes != SENT || after.n_packets == before.n_packets)
		return bringup_fail(b, "of %llu bytes chip %u counts %llu received, in %llu "
				    "packets of this end", (unsigned long long)SENT, chip,
				    (unsigned long long)(theirs_after.rx_bytes - theirs.rx_bytes),
				    (unsigned long long)(after.n_packets - before.n_packets));
	return BRINGUP_PASS;
}

enum bringup_result step_links(struct bringup *b)
{
	struct hw_link links[HW_MAX_LINKS];
	uint8_t *want, *got;
	struct hal_mem *from;
	unsigned n;

	STEP_TRY(bringup_need_device(b));
	TRY(b, hal_device_links(b->dev, links, &n, &b->err));
	if (!n)
		return bringup_skip(b, "the device has no links");
	from = bringup_mem(b, HAL_MEM_HBM, SENT);
	NEED(b, from);
	want = bringup_room(b, SENT);
	NEED(b, want);
	got = bringup_room(b, SENT);
	NEED(b, got);
	for (unsigned i = 0; i < n; i++) {
		struct neighbour to = { 0 };
		enum bringup_result r;
		int code = open_chip(b, links[i].peer, &to);

		bringup_fill_random(want, SENT, i + 100);
		if (!code)
			code = hal_mem_alloc(to.dev, HAL_MEM_HBM, SENT, "bring-up", &to.mem,
					     &b->err);
		if (!code)
			code = hal_copy_in(from, 0, want, SENT, SOON, &b->err);
		r = code == ERR_NOT_FOUND ? bringup_skip(b, "%s", b->err.msg) :
		    code ? bringup_fail(b, "%s", b->err.msg) :
		    send(b, links[i].peer, &to, from, want, got);
		leave(&to);
		STEP_TRY(r);
	}
	return bringup_pass(b, "%u neighbours, %llu bytes each", n, (unsigned long long)SENT);
}

/* ---- programs ---- */

/*
 * This chip's program writes pieces into the neighbour's mailbox, behind its semaphores, each by an
 * RPUT, and raises semaphores by RSIGs. The neighbour's waits for them by RWAIT and keeps what its
 * mailbox holds then; at last it raises one here, for which this chip waits.
 */
#define SEMAPHORES 128u		/* bytes of a mailbox in front of its room */
#define ROOM (((uint64_t)1 << 18) + 13)
#define BOX (SEMAPHORES + ROOM)
#define MOST_PIECES 40u
#define NOBODY 255u
#define TOP ((uint64_t)1 << 63)

/* Bindings, of both programs alike. */
enum { KEPT = 2, MAILBOX, PEER, N_BINDINGS };

/* rows x columns elements: from offset `from` of this chip's memory to offset `to` of the room. */
struct piece {
	uint64_t elem, rows, columns, from, to;
	uint64_t from_step[2], to_step[2];	/* of rows and columns, in bytes */
};

/* In a mailbox: what counts the pieces, what was seen of it, and one for each RSIG. */
enum { COUNTED = 0, SEEN = 8, SIGNALS = 16 };
static const struct signal {
	enum isa_alu fn;
	uint64_t before, value, after;
} signals[] = {
	{ ISA_ALU_ADD, 5, UINT64_MAX, 4 },
	{ ISA_ALU_ADD, UINT32_MAX, 1, (uint64_t)UINT32_MAX + 1 },
	{ ISA_ALU_MAX, 1, TOP, TOP },		/* numbers have no sign */
	{ ISA_ALU_MAX, TOP + 5, 3, TOP + 5 },
};
static_assert(SIGNALS + 8 * COUNT(signals) < SEMAPHORES, "room for the signals");

struct exchange {
	struct bringup *b;
	unsigned chip;
	struct piece pieces[MOST_PIECES];
	unsigned n_pieces;
	/* What is in memory: before, and wanted behind; whose piece each byte of the room is. */
	uint8_t from[ROOM], box[2][BOX], want[2][BOX], got[BOX];
	uint8_t owner[ROOM];	/* NOBODY, or which piece */
	_Alignas(8) uint8_t code[32768];
	size_t n_code;
};

/* ---- what is written ---- */

static void dense(struct exchange *x, uint64_t elem, uint64_t n, uint64_t from, uint64_t to)
{
	x->pieces[x->n_pieces++] = (struct piece){ elem, 1, n, from, to, { 0, elem },
						   { 0, elem } };
}

/* First all of the room; then its last byte, pieces of sizes around those of words, lines and pages
 * at offsets that are no multiple of anything, and ones that are turned, all with gaps between. */
static void plan(struct exchange *x, unsigned round)
{
	static const uint32_t sizes[] = { 1, 2, 3, 7, 8, 9, 63, 64, 65, 4095, 4096, 4097, 65535,
					  65536, 65537 };
	static const uint8_t elems[] = { 2, 4, 8, 16 };
	uint64_t at = 1;

	x->n_pieces = 0;
	if (!round) {
		dense(x, 1, ROOM, 0, 0);
		return;
	}
	dense(x, 1, 1, 5, ROOM - 1);
	for (unsigned i = 0; i < COUNT(sizes); i++) {
		dense(x, 1, sizes[i], (at * 7 + 3) % (ROOM - sizes[i]), at);
		at += sizes[i] + 1 + i % 3;
	}
	for (unsigned i = 0; i < COUNT(elems); i++) {
		uint64_t e = elems[i];

		at = (at / e + 1) * e;	/* elements lie at multiples of their size */
		dense(x, e, 33, 5 * e, at);
		at += 34 * e;
		x->pieces[x->n_pieces++] = (struct piece){ e, 7, 9, 3 * e, at, { 11 * e, e },
							   { e, 7 * e } };
		at += 63 * e;
	}
}

static void write_piece(struct exchange *x, unsigned i)
{
	const struct piece *p = &x->pieces[i];

	for (uint64_t r = 0; r < p->rows; r++)
		for (uint64_t k = 0; k < p->columns; k++) {
			uint64_t to = p->to + r * p->to_step[0] + k * p->to_step[1];

			memcpy(x->want[1] + SEMAPHORES + to, x->from + p->from +
			       r * p->from_step[0] + k * p->from_step[1], p->elem);
			memset(x->owner + to, (int)i, p->elem);
		}
}

static void set(uint8_t *box, uint64_t at, uint64_t value)
{
	memcpy(box + at, &value, sizeof(value));
}

/* [0]: this chip's mailbox, [1]: the neighbour's. */
static void prepare(struct exchange *x, unsigned round)
{
	plan(x, round);
	memset(x->owner, NOBODY, ROOM);
	bringup_fill_random(x->from, ROOM, x->chip + 7);
	bringup_fill_random(x->box, sizeof(x->box), x->chip + 8);
	for (unsigned i = 0; i < 2; i++)
		set(x->box[i], COUNTED, 0);
	for (unsigned i = 0; i < COUNT(signals); i++)
		set(x->box[1], SIGNALS + 8 * i, signals[i].before);
	memcpy(x->want, x->box, sizeof(x->want));
	for (unsigned i = 0; i < x->n_pieces; i++)
		write_piece(x, i);
	/* What is not written is seen, byte by byte. */
	for (unsigned i = 0; i < ROOM; i++)
		if (x->owner[i] != NOBODY)
			x->box[1][SEMAPHORES + i] = (uint8_t)~x->want[1][SEMAPHORES + i];
	for (unsigned i = 0; i < 2; i++) {
		set(x->want[i], COUNTED, i ? x->n_pieces : 1);
		set(x->want[i], SEEN, i ? x->n_pieces : 1);
	}
	for (unsigned i = 0; i < COUNT(signals); i++)
		set(x->want[1], SIGNALS + 8 * i, signals[i].after);
}

/* ---- both programs ---- */

static void put(struct exchange *x, const void *insn, size_t bytes)
{
	assert(x->n_code + bytes <= sizeof(x->code));
	memcpy(x->code + x->n_code, insn, bytes);
	x->n_code += bytes;
}

#define SCALAR(x, op, ...) \
	put(x, &(struct isa_scalar){ INSN(op), __VA_ARGS__ }, sizeof(struct isa_scalar))

/* Raises a semaphore of the other end; its address by the register and the number. */
static void put_signal(struct exchange *x, unsigned at, enum isa_alu fn, uint64_t value)
{
	SCALAR(x, LI, .rd = 1, .imm = at);
	SCALAR(x, LI, .rd = 2, .imm = (int64_t)value);
	SCALAR(x, RSIG, .fn = (uint8_t)fn, .ra = 1, .rb = 2, .elem = ELEM_U64, .binding = PEER);
}

/* Waits for a semaphore here, and keeps what it was. */
static void put_wait(struct exchange *x, unsigned at, uint64_t value, bool is_kept)
{
	SCALAR(x, LI, .rd = 2, .imm = (int64_t)value);
	SCALAR(x, RWAIT, .rd = 3, .rb = 2, .elem = ELEM_U64, .binding = MAILBOX, .imm = at);
	if (is_kept)
		SCALAR(x, ST, .rb = 3, .elem = ELEM_U64, .binding = MAILBOX, .imm = SEEN);
}

static void put_copy(struct exchange *x, unsigned op, const struct piece *p, unsigned from,
		     unsigned to, uint64_t from_at, uint64_t to_at)
{
	struct isa_copy k = { .insn = { .op = (uint16_t)op, .bytes = sizeof(k) }, .rank = 2,
			      .elem_bytes = (uint8_t)p->elem };

	for (unsigned i = 0; i < ISA_MAX_RANK; i++)
		k.dim[i] = 1;
	k.dim[0] = (int64_t)p->rows;
	k.dim[1] = (int64_t)p->columns;
	k.src = (struct isa_operand){ .binding = (uint16_t)from, .offset = (int64_t)from_at,
		.stride = { (int64_t)p->from_step[0], (int64_t)p->from_step[1] } };
	k.dst = (struct isa_operand){ .binding = (uint16_t)to, .offset = (int64_t)to_at,
		.stride = { (int64_t)p->to_step[0], (int64_t)p->to_step[1] } };
	put(x, &k, sizeof(k));
}

static void make_sender(struct exchange *x)
{
	x->n_code = 0;
	for (unsigned i = 0; i < x->n_pieces; i++) {
		const struct piece *p = &x->pieces[i];

		put_copy(x, ISA_RPUT, p, KEPT, PEER, p->from, SEMAPHORES + p->to);
		put_signal(x, COUNTED, ISA_ALU_ADD, 1);
	}
	for (unsigned i = 0; i < COUNT(signals); i++)
		put_signal(x, SIGNALS + 8 * i, signals[i].fn, signals[i].value);
	put_wait(x, COUNTED, 1, true);
	SCALAR(x, HALT, .rd = 0);
}

static void make_receiver(struct exchange *x)
{
	const struct piece all = { 1, 1, ROOM, 0, 0, { 0, 1 }, { 0, 1 } };

	x->n_code = 0;
	put_wait(x, COUNTED, x->n_pieces, true);
	put_copy(x, ISA_COPY, &all, MAILBOX, KEPT, SEMAPHORES, 0);
	put_wait(x, SIGNALS + 8 * 2, TOP, false);
	put_signal(x, COUNTED, ISA_ALU_ADD, 1);
	SCALAR(x, HALT, .rd = 0);
}

static int load(struct exchange *x, struct hal_device *dev, struct hal_exe **out)
{
	static const char strings[] = "\0bring-up\0link\0bring-up:1";
	static const uint32_t peers[] = { 1, 0 };
	const uint16_t both = HW_BIND_READ | HW_BIND_WRITE;
	struct image_binding bindings[N_BINDINGS] = {
		{ .kind = IMAGE_CONSTANTS }, { .kind = IMAGE_TEMP },
		[KEPT] = { .kind = IMAGE_RESULT, .access = both, .bytes = ROOM },
		[MAILBOX] = { .kind = IMAGE_MAILBOX, .access = both, .bytes = BOX },
		[PEER] = { .kind = IMAGE_PEER, .access = HW_BIND_WRITE | HW_BIND_PEER,
			   .bytes = BOX },
	};
	struct image_shape shape = { .elem = ELEM_S8, .rank = 1, .alias = -1, .dim = { ROOM } };
	struct image_debug debug = { .offset = 0, .op = 10, .where = 15 };
	struct image im = {
		.info = { .version = IMAGE_VERSION, .isa = ISA_VERSION, .n_results = 1,
			  .name = 1, .n_replicas = 2, .n_partitions = 1 },
		.text = x->code, .text_bytes = x->n_code, .bindings = bindings,
		.n_bindings = N_BINDINGS, .shapes = &shape, .debug = &debug, .n_debug = 1,
		.peers = peers, .n_slots = 1, .strings = strings,
		.strings_bytes = sizeof(strings), .note = "bring-up",
	};
	size_t bytes;
	void *image;
	int code = image_write(&im, &image, &bytes, &x->b->err);

	if (code)
		return code;
	code = hal_exe_load(dev, image, bytes, out, &x->b->err);
	free(image);
	return code;
}

/* ---- one link ---- */

/* This chip's end and the other. */
struct ends {
	struct neighbour end[2];
	struct hal_queue *queue[2];
	uint64_t value[2];
};

static int fill_end(struct exchange *x, struct ends *e, unsigned i)
{
	struct neighbour *n = &e->end[i];
	struct err *err = &x->b->err;
	int code = hal_mem_alloc(n->dev, HAL_MEM_HBM, ROOM, "bring-up", &n->mem, err);

	e->queue[i] = hal_device_queue(n->dev, HAL_QUEUE_COMPUTE);
	if (!code)
		code = hal_mem_alloc(n->dev, HAL_MEM_HBM, BOX, "bring-up", &n->box, err);
	if (!code)
		code = hal_copy_in(n->box, 0, x->box[i], BOX, SOON, err);
	if (!code)
		code = hal_copy_in(n->mem, 0, i ? x->box[1] : x->from, ROOM, SOON, err);
	(i ? make_receiver : make_sender)(x);
	return code ? code : load(x, n->dev, &n->exe);
}

/* Both run, the one that waits first. */
static int meet(struct exchange *x, struct ends *e)
{
	struct hw_binding bindings[2][N_BINDINGS] = { 0 };
	struct err *err = &x->b->err, first;
	int code = 0, other;

	for (unsigned i = 0; !code && i < 2; i++) {
		struct neighbour *n = &e->end[i];

		bindings[i][KEPT] = (struct hw_binding){ hal_mem_va(n->mem), ROOM };
		bindings[i][MAILBOX] = (struct hw_binding){ hal_mem_va(n->box), BOX };
		bindings[i][PEER].bytes = BOX;
		code = hal_peer_va(n->dev, e->end[!i].box, &bindings[i][PEER].va, err);
	}
	for (unsigned i = 2; !code && i-- > 0;)
		code = hal_queue_execute(e->queue[i], &(struct hal_launch){
			.exe = e->end[i].exe, .bindings = bindings[i],
			.limit_ns = 20 * SECOND }, &e->value[i], err);
	if (!code)
		code = hal_queue_wait(e->queue[0], e->value[0], SOON, err);
	first = *err;
	/* It ends with the other, which its window breaks with. */
	other = e->value[1] ? hal_queue_wait(e->queue[1], e->value[1], SOON, err) : 0;
	if (code)
		*err = first;
	return code ? code : other;
}

static enum bringup_result differ(struct exchange *x, const char *of, const uint8_t *got,
				  const uint8_t *want)
{
	size_t at = bringup_differ(got, want, ROOM);
	const struct piece *p;

	if (at == ROOM)
		return BRINGUP_PASS;
	if (x->owner[at] == NOBODY)
		return bringup_fail(x->b, "rput to chip %u: byte %zu of %s, which none writes, is "
				    "0x%02x instead of 0x%02x", x->chip, at, of, got[at],
				    want[at]);
	p = &x->pieces[x->owner[at]];
	return bringup_fail(x->b, "rput to chip %u: byte %zu of %s is 0x%02x instead of 0x%02x, of "
			    "%llu x %llu elements of %llu bytes from offset %llu to %llu", x->chip,
			    at, of, got[at], want[at], (unsigned long long)p->rows,
			    (unsigned long long)p->columns, (unsigned long long)p->elem,
			    (unsigned long long)p->from, (unsigned long long)p->to);
}

/* The semaphores of an end, and what it saw of them. */
static enum bringup_result check_semaphores(struct exchange *x, unsigned end)
{
	char whose[32] = "this chip's";

	if (end)
		snprintf(whose, sizeof(whose), "chip %u's", x->chip);
	for (unsigned at = 0; at < SEMAPHORES; at += 8) {
		unsigned i = (at - SIGNALS) / 8;
		uint64_t got, want;

		memcpy(&got, x->got + at, 8);
		memcpy(&want, x->want[end] + at, 8);
		if (got != want)
			return bringup_fail(x->b, "%s: the u64 at offset %u of %s mailbox is "
					    "0x%llx instead of 0x%llx",
					    at == SEEN ? "rwait" : end && at >= SIGNALS &&
					    i < COUNT(signals) && signals[i].fn == ISA_ALU_MAX ?
					    "rsig.max" : "rsig.add", at, whose,
					    (unsigned long long)got, (unsigned long long)want);
	}
	return BRINGUP_PASS;
}

static enum bringup_result check_ends(struct exchange *x, struct ends *e)
{
	struct bringup *b = x->b;

	for (unsigned i = 0; i < 2; i++) {
		TRY(b, hal_copy_out(x->got, e->end[i].box, 0, BOX, SOON, &b->err));
		STEP_TRY(check_semaphores(x, i));
		if (i)
			STEP_TRY(differ(x, "its mailbox", x->got + SEMAPHORES,
					x->want[1] + SEMAPHORES));
		else if (memcmp(x->got, x->want[0], BOX))
			return bringup_fail(b, "rput to chip %u wrote to this chip's mailbox",
					    x->chip);
	}
	TRY(b, hal_copy_out(x->got, e->end[1].mem, 0, ROOM, SOON, &b->err));
	return differ(x, "what it saw behind its rwait", x->got, x->want[1] + SEMAPHORES);
}

static enum bringup_result run(struct exchange *x, struct ends *e)
{
	struct bringup *b = x->b;
	uint64_t n_sent = 2ull * x->n_pieces + COUNT(signals);
	struct hw_link before, after;
	int code = 0;

	for (unsigned i = 0; !code && i < 2; i++)
		code = fill_end(x, e, i);
	TRY(b, code || find_link(b, b->dev, x->chip, &before));
	code = meet(x, e);
	if (code == ERR_UNIMPLEMENTED)
		return bringup_skip(b, "%s", b->err.msg);
	if (code)
		return bringup_fail(b, "rput, rsig and rwait with chip %u: %.500s", x->chip,
				    b->err.msg);
	STEP_TRY(check_ends(x, e));
	TRY(b, find_link(b, b->dev, x->chip, &after));
	if (after.n_packets - before.n_packets != n_sent || after.n_errors != before.n_errors)
		return bringup_fail(b, "the link to chip %u counts %llu packets of %llu, %llu "
				    "refused", x->chip,
				    (unsigned long long)(after.n_packets - before.n_packets),
				    (unsigned long long)n_sent,
				    (unsigned long long)(after.n_errors - before.n_errors));
	return BRINGUP_PASS;
}

static enum bringup_result exchange(struct bringup *b, struct exchange *x, unsigned chip,
				    unsigned round)
{
	struct ends e = { .end[0].dev = b->dev };
	enum bringup_result r;
	int code = open_chip(b, chip, &e.end[1]);

	x->b = b;
	x->chip = chip;
	prepare(x, round);
	r = code == ERR_NOT_FOUND ? bringup_skip(b, "%s", b->err.msg) :
	    code ? bringup_fail(b, "%s", b->err.msg) : run(x, &e);
	leave(&e.end[1]);
	e.end[0].dev = NULL;	/* stays open */
	leave(&e.end[0]);
	return r;
}

enum bringup_result step_link_programs(struct bringup *b)
{
	struct hw_link links[HW_MAX_LINKS];
	struct exchange *x;
	unsigned n;

	STEP_TRY(bringup_need_device(b));
	TRY(b, hal_device_links(b->dev, links, &n, &b->err));
	if (!n)
		return bringup_skip(b, "the device has no links");
	x = bringup_room(b, sizeof(*x));
	NEED(b, x);
	for (unsigned i = 0; i < 2 * n; i++)
		STEP_TRY(exchange(b, x, links[i / 2].peer, i % 2));
	return bringup_pass(b, "%u neighbours: %u rputs of 1 to %llu bytes to each, seen there "
			    "behind an rwait", n, 1 + x->n_pieces, (unsigned long long)ROOM);
}
