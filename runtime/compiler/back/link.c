/* SPDX-License-Identifier: Apache-2.0 */
/* The plan of who meets whom (link.h). */
#include <string.h>

#include "runtime/compiler/back/link.h"
#include "runtime/compiler/tc.h"

#define LEAST_ROW 256		/* bytes in one piece that are worth a packet */
#define MOST_VIEWS 64		/* of arguments and results: each is bound at each launch */

static int64_t *new_list(struct emit *e, int64_t value)
{
	int64_t *list = tc_get(e, e->links->n_members, sizeof(*list));

	for (unsigned m = 0; m < e->links->n_members; m++)
		list[m] = value;
	return list;
}

static unsigned append(struct emit *e, int64_t ***lists, unsigned *n, unsigned *room,
		       int64_t *list)
{
	if (*n == *room) {
		int64_t **grown = tc_get(e, *room * 2 + 16, sizeof(*grown));

		if (*n)
			memcpy(grown, *lists, *n * sizeof(*grown));
		*lists = grown;
		*room = *room * 2 + 16;
	}
	(*lists)[*n] = list;
	return (*n)++;
}

/* ---- slots and words ---- */

static bool is_like(const int64_t *slot, const int64_t *list, unsigned n)
{
	for (unsigned m = 0; m < n; m++)
		if (slot[m] >= 0 && list[m] >= 0 && slot[m] != list[m])
			return false;
	return true;
}

/* The slot where each member finds list[m], or whoever if that is negative. */
static uint16_t slot_for(struct emit *e, int64_t *list)
{
	struct links *l = e->links;

	for (unsigned s = 0; s < l->n_slots; s++) {
		if (!is_like(l->slots[s], list, l->n_members))
			continue;
		for (unsigned m = 0; m < l->n_members; m++)
			if (list[m] >= 0)
				l->slots[s][m] = list[m];
		return (uint16_t)s;
	}
	if (l->n_slots == ISA_MAX_BINDINGS)
		tc_refuse(e, "members meet more others than an instruction can name");
	return (uint16_t)append(e, &l->slots, &l->n_slots, &l->room_slots, list);
}

static unsigned word_for(struct emit *e, int64_t *list)
{
	struct links *l = e->links;

	l->has_row = true;
	for (unsigned w = 0; w < l->n_words; w++)
		if (!memcmp(l->words[w], list, l->n_members * sizeof(*list)))
			return w;
	return append(e, &l->words, &l->n_words, &l->room_words, list);
}

/* LINK_NO_WORD if all members have the same. */
static unsigned word_if_needed(struct emit *e, int64_t *list)
{
	for (unsigned m = 1; m < e->links->n_members; m++)
		if (list[m] != list[0])
			return word_for(e, list);
	return LINK_NO_WORD;
}

/* ---- channels ---- */

static struct channel *find(const struct emit *e, const struct tc_op *op)
{
	bool is_rows = op->op == TC_EXCHANGE;
	unsigned n, size = is_rows ? (unsigned)tc_attr_int(op, "group_size", 0) : 0;
	const int64_t *ids = tc_attr_ints(op, is_rows ? "replica_groups" : "source_target_pairs",
					  &n);

	for (struct channel *ch = e->links->channels; ch; ch = ch->next)
		if (ch->size == size && ch->n_ids == n &&
		    (!n || !memcmp(ch->ids, ids, n * sizeof(*ids))))
			return ch;
	return NULL;
}

const struct channel *tc_channel(const struct emit *e, const struct tc_op *op)
{
	return find(e, op);
}

static void check_member(struct emit *e, const struct tc_op *op, int64_t id)
{
	if (id < 0 || id >= e->links->n_members)
		tc_fail(e->c, ERR_INTERNAL, op, "it names member %lld of a program for %u",
			(long long)id, e->links->n_members);
}

/* Where each member stands; all are in one row, at its front. */
static void find_places(struct emit *e, const struct tc_op *op, struct channel *ch)
{
	unsigned found = 0;

	ch->place = new_list(e, -1);
	ch->length = new_list(e, 0);
	for (unsigned row = 0; row < ch->n_ids; row += ch->size) {
		unsigned n = 0;

		while (n < ch->size && ch->ids[row + n] >= 0)
			n++;
		for (unsigned i = 0; i < ch->size; i++) {
			int64_t id = ch->ids[row + i];

			if (i >= n && id < 0)
				continue;
			check_member(e, op, id);
			if (i >= n || ch->place[id] >= 0)
				tc_fail(e->c, ERR_INTERNAL, op, "its groups are not settled: "
					"member %lld", (long long)id);
			ch->place[id] = i;
			ch->length[id] = n;
			found++;
		}
		ch->meets |= n > 1;
	}
	if (found != e->links->n_members)
		tc_fail(e->c, ERR_INTERNAL, op, "its groups have %u of %u members", found,
			e->links->n_members);
}

/* For each member who is k places on in its row, -1 if that is shorter; or at what place. */
static int64_t *places_on(struct emit *e, const struct channel *ch, unsigned k, bool is_member)
{
	int64_t *list = new_list(e, is_member ? -1 : 0);

	for (unsigned i = 0; i < ch->n_ids; i++) {
		int64_t id = ch->ids[i], place;

		if (id < 0 || k >= ch->length[id])
			continue;
		place = (ch->place[id] + k) % ch->length[id];
		list[id] = is_member ? ch->ids[i - ch->place[id] + place] : place;
	}
	return list;
}

static void plan_rows(struct emit *e, const struct tc_op *op, struct channel *ch)
{
	find_places(e, op, ch);
	if (!ch->meets)
		return;
	ch->slot = tc_get(e, ch->size, sizeof(*ch->slot));
	for (unsigned k = 1; k < ch->size; k++)
		ch->slot[k] = slot_for(e, places_on(e, ch, k, true));
	ch->place_word = word_for(e, ch->place);
	ch->length_word = word_if_needed(e, ch->length);
}

/* Who sends to whom, and who has from whom. */
static void plan_pairs(struct emit *e, const struct tc_op *op, struct channel *ch)
{
	int64_t *target = new_list(e, -1), *source = new_list(e, -1);
	int64_t *sends = new_list(e, LINK_ZEROS), *takes = new_list(e, LINK_ZEROS);

	for (unsigned i = 0; i < ch->n_ids; i += 2) {
		int64_t from = ch->ids[i], to = ch->ids[i + 1];

		check_member(e, op, from);
		check_member(e, op, to);
		sends[from] = takes[to] = from == to ? LINK_SELF : LINK_OTHER;
		ch->meets |= from != to;
		if (from == to)
			continue;
		target[from] = to;
		source[to] = from;
	}
	for (unsigned m = 0; m < e->links->n_members; m++)
		ch->sends[sends[m]] = ch->takes[takes[m]] = true;
	ch->sends_word = word_if_needed(e, sends);
	ch->takes_word = word_if_needed(e, takes);
	if (!ch->meets)
		return;
	ch->slot = tc_get(e, 3, sizeof(*ch->slot));
	ch->slot[LINK_TARGET] = slot_for(e, target);
	ch->slot[LINK_SOURCE] = slot_for(e, source);
}

/* A comma between members; braces around rows and pairs, and around all. */
static uint32_t name_groups(struct emit *e, const struct channel *ch)
{
	unsigned size = ch->size ? ch->size : 2;
	struct str s = { 0 };
	uint32_t at;

	for (unsigned row = 0; row < ch->n_ids; row += size) {
		str_printf(&s, row ? ",{" : "{{");
		for (unsigned i = 0; i < size && ch->ids[row + i] >= 0; i++)
			str_printf(&s, i ? ",%lld" : "%lld", (long long)ch->ids[row + i]);
		str_printf(&s, "}");
	}
	str_printf(&s, "}");
	at = s.failed ? 0 : tc_string(e, s.text);
	if (s.failed)
		e->strings.failed = true;
	str_free(&s);
	return at;
}

static struct channel *new_channel(struct emit *e, const struct tc_op *op)
{
	struct channel *ch = tc_get(e, 1, sizeof(*ch)), **end = &e->links->channels;
	bool is_rows = op->op == TC_EXCHANGE;

	ch->ids = tc_attr_ints(op, is_rows ? "replica_groups" : "source_target_pairs",
			       &ch->n_ids);
	if (is_rows) {
		ch->size = (unsigned)tc_attr_int(op, "group_size", 0);
		plan_rows(e, op, ch);
	} else {
		plan_pairs(e, op, ch);
	}
	if (ch->meets)
		ch->groups = name_groups(e, ch);
	while (*end)
		end = &(*end)->next;
	*end = ch;
	return ch;
}

/* Who is at each place of the own row; of rows that are all as long. */
static void plan_places(struct emit *e, struct channel *ch)
{
	struct links *l = e->links;

	ch->at_slot = tc_get(e, ch->size, sizeof(*ch->at_slot));
	for (unsigned k = 0; k < ch->size; k++) {
		int64_t *list = new_list(e, 0);

		for (unsigned i = 0; i < ch->n_ids; i++)
			list[ch->ids[i]] = ch->ids[i - i % ch->size + k];
		ch->at_slot[k] = (uint16_t)append(e, &l->places, &l->n_places, &l->room_places,
						  list);
	}
}

/* The place of each part that a member keeps for another one. */
static void plan_parts(struct emit *e, struct channel *ch)
{
	ch->to_word = tc_get(e, ch->size, sizeof(*ch->to_word));
	for (unsigned k = 1; k < ch->size; k++)
		ch->to_word[k] = word_for(e, places_on(e, ch, k, false));
}

/* ---- the plan ---- */

/* The exchange that has what op lends among its operands, behind its first: the pass `lend` says
 * so. NULL: op is not to lend. */
static const struct tc_op *find_end(const struct tc_op *op)
{
	for (const struct tc_use *u = op->op == TC_EXCHANGE ? op->results[0].uses : NULL; u;
	     u = u->next)
		if (u->user->op == TC_EXCHANGE && tc_in(u->user, 0) != u->value)
			return u->user;
	return NULL;
}

static void plan_op(struct tc_op *op, void *arg)
{
	struct emit *e = arg;
	struct channel *ch;

	if (op->op == TC_PARTITION_ID || op->op == TC_REPLICA_ID)
		e->links->has_row = true;
	if (op->op == TC_DRAW && op->results[0].type->count)
		e->has_random = true;
	if (op->op != TC_EXCHANGE && op->op != TC_COLLECTIVE_PERMUTE)
		return;
	e->op = op;
	ch = find(e, op);
	if (!ch)
		ch = new_channel(e, op);
	if (ch->size && ch->meets && !ch->to_word && !tc_attr_int(op, "is_same", 0))
		plan_parts(e, ch);
	if (ch->size && ch->meets && !ch->at_slot && ch->length_word == LINK_NO_WORD &&
	    find_end(op))
		plan_places(e, ch);
}

/* The area is for all that goes through it. */
static void plan_area(struct tc_op *op, void *arg)
{
	struct emit *e = arg;
	struct channel *ch;

	if ((op->op != TC_EXCHANGE && op->op != TC_COLLECTIVE_PERMUTE) || tc_is_direct(e, op))
		return;
	ch = find(e, op);
	for (unsigned i = 0; i < op->n_results; i++)
		if (ch->bytes < (uint64_t)op->results[i].type->bytes)
			ch->bytes = (uint64_t)op->results[i].type->bytes;
}

/* Whether there are binding numbers for views, of the temporaries in any case. */
static bool has_room_for_views(const struct emit *e)
{
	return (unsigned)e->n_args + e->n_results + 2 * e->links->n_slots + e->links->n_places +
	       MOST_VIEWS + 5 <= ISA_MAX_BINDINGS;
}

/* All semaphores, then the areas, so that what is raised lies close together. */
static void lay_out(struct emit *e)
{
	uint64_t at = 0;

	for (struct channel *ch = e->links->channels; ch; ch = ch->next) {
		if (!ch->meets)
			continue;
		ch->state = at;
		at += LINK_STATE_BYTES;
	}
	for (struct channel *ch = e->links->channels; ch; ch = ch->next) {
		if (!ch->meets)
			continue;
		ch->area = at;
		if (__builtin_add_overflow(at, (ch->bytes + 63) / 64 * 64, &at) ||
		    at > (uint64_t)TC_MAX_BYTES << 8)
			tc_fail(e->c, ERR_RESOURCE_EXHAUSTED, NULL, "mailboxes overflow");
	}
	e->links->bytes = at;
}

void tc_plan_links(struct emit *e)
{
	const struct tc_options *o = e->c->options;
	uint64_t replicas = o->replicas ? o->replicas : 1;
	uint64_t partitions = o->partitions ? o->partitions : 1;
	struct links *l = tc_get(e, 1, sizeof(*l));
	int64_t *replica, *partition;

	if (replicas * partitions > IMAGE_MAX_MEMBERS)
		tc_fail(e->c, ERR_INVALID_ARGUMENT, NULL, "%llu replicas of %llu partitions: a "
			"program is for at most %u devices", (unsigned long long)replicas,
			(unsigned long long)partitions, IMAGE_MAX_MEMBERS);
	e->links = l;
	l->n_members = (unsigned)(replicas * partitions);
	l->n_partitions = (unsigned)partitions;
	replica = new_list(e, 0);
	partition = new_list(e, 0);
	for (unsigned m = 0; m < l->n_members; m++) {
		replica[m] = m / l->n_partitions;
		partition[m] = m % l->n_partitions;
	}
	append(e, &l->words, &l->n_words, &l->room_words, replica);
	append(e, &l->words, &l->n_words, &l->room_words, partition);
	tc_walk(tc_main(e->c)->region->parent, plan_op, e);
	l->is_direct = o->direct_bytes && has_room_for_views(e);
	tc_walk(tc_main(e->c)->region->parent, plan_area, e);
	lay_out(e);
}

/* ---- straight into results ---- */

/* Of a permutation all members have to do the same: so that the code has no path by which
 * something is received but nothing sent. */
bool tc_is_direct(const struct emit *e, const struct tc_op *op)
{
	const struct channel *ch = find(e, op);

	if (!e->links->is_direct || !ch->meets || op->n_results != 1 ||
	    (uint64_t)op->results[0].type->bytes < e->c->options->direct_bytes)
		return false;
	return ch->size || (ch->sends_word == LINK_NO_WORD && ch->takes_word == LINK_NO_WORD);
}

bool tc_is_turned(const struct emit *e, const struct tc_value *v, int64_t *stride)
{
	int64_t turned[TC_MAX_RANK];
	const int64_t *from;
	unsigned n, inner;

	if (!v->def || v->def->op != TC_EXCHANGE || !tc_turned_strides(v, turned))
		return false;
	from = tc_attr_ints(v->uses->user, "permutation", &n);
	/* The dims that stay innermost are a row. */
	for (inner = n; inner && from[inner - 1] == inner - 1; inner--)
		;
	if (!inner || (tc_is_direct(e, v->def) && turned[from[inner - 1]] < LEAST_ROW))
		return false;
	if (stride)
		memcpy(stride, turned, n * sizeof(*stride));
	return true;
}

bool tc_is_lent(const struct emit *e, const struct tc_op *op)
{
	return find_end(op) && find(e, op)->at_slot && tc_is_direct(e, op);
}

static bool has_regions_of_ops(const struct tc_op *op)
{
	return op->op == TC_WHILE || op->op == TC_CASE || op->op == TC_IF;
}

const struct tc_op *tc_find_ready(struct emit *e, const struct tc_op *op)
{
	const struct tc_op *end = find_end(op), *at = op->next;

	if (!end || !tc_is_direct(e, end) || tc_is_lent(e, end) ||
	    tc_home(e, tc_out(end, 0))->buf || !tc_may_place_from(e, tc_out(end, 0), op))
		return NULL;
	while (at && at != end && !has_regions_of_ops(at))
		at = at->next;
	return at == end ? end : NULL;
}

static int find_view(const struct links *l, unsigned slot, unsigned of)
{
	for (unsigned i = 0; i < l->n_views; i++)
		if (l->views[i].slot == slot && l->views[i].of == of)
			return (int)i;
	return -1;
}

static bool is_hbm(const struct emit *e, unsigned binding)
{
	const struct tc_op *func = tc_main(e->c)->region->parent;

	for (unsigned i = 0; i < e->n_results; i++)
		if (e->result_binding[i] == binding)
			return (!func->res_info || !func->res_info[i].memory_kind) &&
			       (e->result_alias[i] < 0 || !func->arg_info ||
				!func->arg_info[e->result_alias[i]].memory_kind);
	return binding == BIND_TEMP;
}

struct home *tc_place_for_peers(struct emit *e, const struct tc_value *v)
{
	const struct links *l = e->links;
	struct home *h = tc_place_from(e, v, e->op);
	unsigned of = h->buf->binding, n_views = 0, n_others = 0;

	for (unsigned i = 0; i < l->n_views; i++) {
		n_views += l->views[i].of == of;
		n_others += l->views[i].of != BIND_TEMP;
	}
	if (of != BIND_TEMP && (!is_hbm(e, of) ||
				n_others - n_views + l->n_slots > MOST_VIEWS))
		h = tc_place_temp(e, v);
	return h;
}

/* The binding of another member's `of`; slots from n_slots on are places. */
static uint16_t view_of(struct emit *e, unsigned slot, unsigned of)
{
	struct links *l = e->links;
	int i = find_view(l, slot, of);

	if (i < 0) {
		if (l->n_views == l->room_views) {
			struct view *grown = tc_get(e, l->room_views * 2 + 16, sizeof(*grown));

			if (l->n_views)
				memcpy(grown, l->views, l->n_views * sizeof(*grown));
			l->views = grown;
			l->room_views = l->room_views * 2 + 16;
		}
		i = (int)l->n_views++;
		l->views[i] = (struct view){ (uint16_t)slot, (uint16_t)of };
	}
	return (uint16_t)(e->random_binding + e->has_random + (unsigned)i);
}

struct home tc_at_peer(struct emit *e, unsigned slot, const struct home *own)
{
	struct buffer *b = tc_get(e, 1, sizeof(*b));
	struct home h = *own;

	*b = *own->buf;
	b->binding = view_of(e, slot, own->buf->binding);
	b->is_temp = false;
	h.buf = b;
	return h;
}

/* ---- what is lent ---- */

/* Whether an argument's memory is the device's. */
static bool is_hbm_argument(const struct emit *e, unsigned binding)
{
	const struct tc_op *func = tc_main(e->c)->region->parent;
	unsigned i = binding - BIND_FIRST_ARG;

	return binding >= BIND_FIRST_ARG && i < e->n_args &&
	       (!func->arg_info || !func->arg_info[i].memory_kind);
}

struct home tc_place_lent(struct emit *e, const struct tc_op *op)
{
	const struct links *l = e->links;
	const struct tc_value *v = tc_out(op, 0);
	struct home h = *tc_home(e, tc_in(op, 0)), copy;
	unsigned of = h.buf->binding, n_others = 0;

	for (unsigned i = 0; i < l->n_views; i++)
		n_others += l->views[i].of != BIND_TEMP && l->views[i].of != of;
	if (!h.reg && (of == BIND_TEMP || ((is_hbm(e, of) || is_hbm_argument(e, of)) &&
					   n_others + l->n_slots + find(e, op)->size <=
					   MOST_VIEWS)))
		return *tc_view(e, v, &h);
	copy = *tc_place_temp(e, v);
	tc_copy_value(e, v->type, &h, &copy);
	tc_note_held(e, &copy, v->type);
	return copy;
}

bool tc_find_lent(struct emit *e, const struct tc_value *v, struct isa_operand *op)
{
	const struct tc_op *def = v->def, *part = NULL;
	const struct channel *ch;
	int64_t step, k;

	for (; def && (def->op == TC_RESHAPE || def->op == TC_SLICE); def = tc_in(def, 0)->def)
		part = def;
	if (!def || !part || part->op != TC_SLICE || !tc_is_lent(e, def))
		return false;
	ch = find(e, def);
	step = tc_home(e, tc_out(def, 0))->stride[0];
	k = tc_attr_ints(part, "start_indices", &(unsigned){ 0 })[0];
	op->binding = view_of(e, e->links->n_slots + ch->at_slot[k], op->binding);
	op->offset -= k * step;
	op->reg = tc_load_place(e, ch->place_word, ch->size - 1, step);
	return true;
}

/* ---- bindings ---- */

void tc_number_links(struct emit *e, unsigned *next)
{
	struct links *l = e->links;
	unsigned first = *next;

	*next += tc_count_link_bindings(e);
	if (*next > ISA_MAX_BINDINGS)
		tc_fail(e->c, ERR_UNIMPLEMENTED, NULL, "%u arguments and results, and %u other "
			"members to meet; at most %d together", first - BIND_FIRST_ARG,
			l->n_slots, ISA_MAX_BINDINGS - 4);
	l->mailbox = (uint16_t)first;
	l->first_peer = (uint16_t)(first + 1);
	l->row = (uint16_t)(*next - 1);
}

uint8_t tc_load_word(struct emit *e, unsigned word)
{
	uint8_t r = tc_reg(e);

	tc_put_scalar(e, (struct isa_scalar){ .rd = r, .elem = ELEM_U64,
		.binding = e->links->row, .imm = 8ll * word }, ISA_LD);
	return r;
}

uint8_t tc_load_place(struct emit *e, unsigned word, int64_t most, int64_t step)
{
	uint8_t r = tc_load_word(e, word);

	tc_put_scalar(e, (struct isa_scalar){ .fn = ISA_ALU_MAX, .rd = r, .ra = r, .imm = 0 },
		      ISA_ALUI);
	tc_put_scalar(e, (struct isa_scalar){ .fn = ISA_ALU_MIN, .rd = r, .ra = r, .imm = most },
		      ISA_ALUI);
	tc_put_scalar(e, (struct isa_scalar){ .fn = ISA_ALU_MUL, .rd = r, .ra = r, .imm = step },
		      ISA_ALUI);
	return r;
}

unsigned tc_count_link_bindings(const struct emit *e)
{
	const struct links *l = e->links;

	return (l->n_slots ? 1 + l->n_slots : 0) + l->has_row + l->n_views;
}

static void put_peers(struct emit *e, struct image *im)
{
	const struct links *l = e->links;
	unsigned n = l->n_slots + l->n_places;
	uint32_t *peers = tc_get(e, (size_t)l->n_members * n, sizeof(*peers));

	im->peers = peers;
	im->n_slots = n;
	for (unsigned m = 0; m < l->n_members; m++) {
		for (unsigned s = 0; s < l->n_slots; s++)
			*peers++ = (uint32_t)(l->slots[s][m] >= 0 ? l->slots[s][m] :
					      (m + 1) % l->n_members);
		for (unsigned s = 0; s < l->n_places; s++)
			*peers++ = (uint32_t)l->places[s][m];
	}
}

static void put_rows(struct emit *e, struct image *im)
{
	const struct links *l = e->links;
	uint64_t *rows = tc_get(e, (size_t)l->n_members * l->n_words, sizeof(*rows));

	im->members = rows;
	im->n_words = l->n_words;
	for (unsigned m = 0; m < l->n_members; m++)
		for (unsigned w = 0; w < l->n_words; w++)
			*rows++ = (uint64_t)l->words[w][m];
}

void tc_put_links(struct emit *e, struct image *im, struct image_binding *b, unsigned *n)
{
	const struct links *l = e->links;

	if (l->n_slots) {
		b[(*n)++] = (struct image_binding){ .kind = IMAGE_MAILBOX,
			.access = HW_BIND_READ | HW_BIND_WRITE, .bytes = l->bytes };
		put_peers(e, im);
	}
	for (unsigned s = 0; s < l->n_slots; s++)
		b[(*n)++] = (struct image_binding){ .kind = IMAGE_PEER, .index = s,
			.access = HW_BIND_WRITE | HW_BIND_PEER, .bytes = l->bytes };
	if (l->has_row) {
		b[(*n)++] = (struct image_binding){ .kind = IMAGE_MEMBER,
			.access = HW_BIND_READ, .bytes = 8ull * l->n_words };
		put_rows(e, im);
	}
}

void tc_put_views(const struct emit *e, struct image_binding *b, unsigned *n)
{
	const struct links *l = e->links;

	for (unsigned i = 0; i < l->n_views; i++) {
		const struct view *v = &l->views[i];

		b[(*n)++] = (struct image_binding){ .kind = IMAGE_PEER_DATA,
			.access = HW_BIND_PEER |
				  (v->slot < l->n_slots ? HW_BIND_WRITE : HW_BIND_READ),
			.index = v->slot + (uint32_t)(l->n_slots + l->n_places) * v->of,
			.bytes = b[v->of].bytes };
	}
}
