/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Meetings: what members of a program need to meet each other on several devices (mailboxes of
 * hal/hw/image.h), and the numbers that each is given.
 *
 * A mailbox is written by others until the runs of all members are over, so mailboxes go when
 * the last member's executable does. They hold counts that go on from run to run, and have
 * to be zeros again when a launch failed. Whether one did is told by how often a device's memory
 * was lent: work that fails takes its device's window along, so as long as none was lent anew
 * all went well, or what is launched now fails itself. What is under way of a launch
 * that failed ends soon, since its peers hear of it; nothing is cleared before that.
 *
 * Where members are in several processes each makes the mailboxes of its own, and tells where these
 * are under a name that is made of the program and its devices; at the first launch it asks where
 * the others' are. Their counts go on, on both sides, whatever a process unloads: so such a
 * meeting is of a program on its devices, not of one load of it, and stays until the client
 * ends. Replicas may be compiled apart, so theirs is of all programs that meet alike on the same
 * devices. A member's row is of its own load in any case.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "runtime/rt_internal.h"
#include "runtime/world/order.h"

#define LEVEL_NS 1000000	/* whoever waits for others to take note looks so often */

static bool is_here(const struct rt_meeting *g, unsigned member)
{
	return g->at[member].device != RT_ELSEWHERE;
}

static struct hal_device *hal_of(const struct rt_meeting *g, unsigned member)
{
	return g->client->devices[g->at[member].device].hal;
}

void rt_meeting_unref(struct rt_meeting *g)
{
	if (!g || atomic_fetch_sub(&g->refs, 1) != 1)
		return;
	for (unsigned m = 0; m < g->n; m++) {
		hal_mem_free(g->at[m].mailbox);
		hal_mem_free(g->at[m].row);
	}
	rt_program_unref(g->program);
	pthread_mutex_destroy(&g->pair_lock);
	free(g->va);
	free(g);
}

/* A fill behind a copy to a device that fails is dropped with that (hal.h): again, then. */
static int zero(struct rt_meeting *g, unsigned member, struct err *err)
{
	struct hal_queue *q = hal_device_queue(hal_of(g, member), HAL_QUEUE_DMA);
	struct hal_mem *m = g->at[member].mailbox;
	uint64_t value;
	int code;

	do {
		code = hal_queue_fill(q, m, 0, hal_mem_bytes(m), 0, &value, err);
		if (!code)
			code = hal_queue_wait(q, value, CLOCK_FOREVER, err);
	} while (code == ERR_ABORTED && !hal_device_error(hal_of(g, member), NULL));
	return code;
}

static int write_row(struct rt_meeting *g, unsigned member, struct err *err)
{
	struct rt_place *p = &g->at[member];
	size_t n = g->image->n_words;

	if (!p->row)
		return 0;
	p->row_lent = hal_times_lent(hal_of(g, member));
	return hal_copy_in(p->row, 0, g->image->members + member * n,
			   n * sizeof(*g->image->members), CLOCK_FOREVER, err);
}

int rt_meeting_renew_row(struct rt_meeting *g, unsigned member, struct err *err)
{
	if (g->at[member].row_lent == hal_times_lent(hal_of(g, member)))
		return 0;
	return write_row(g, member, err);
}

/* Mailboxes are zeros, and rows are there, when it returns. Nothing that is queued uses them. */
static int clear(struct rt_meeting *g, struct err *err)
{
	int code = 0;

	for (unsigned m = 0; !code && m < g->n; m++) {
		if (g->at[m].mailbox)
			code = zero(g, m, err);
		if (!code)
			code = write_row(g, m, err);	/* none elsewhere */
	}
	return code;
}

/* The bytes of the mailbox binding; 0: there is none. */
static uint64_t mailbox_bytes(const struct image *im)
{
	for (size_t i = 0; i < im->n_bindings; i++)
		if (im->bindings[i].kind == IMAGE_MAILBOX)
			return im->bindings[i].bytes;
	return 0;
}

static int allocate(struct rt_meeting *g, unsigned parts, struct err *err)
{
	const struct image *im = g->image;
	uint64_t box = parts & RT_BOXES ? g->box_bytes : 0;
	uint64_t row = parts & RT_ROWS ? im->n_words * sizeof(*im->members) : 0;
	int code = 0;

	for (unsigned m = 0; !code && m < g->n; m++) {
		struct rt_place *p = &g->at[m];

		if (!is_here(g, m))
			continue;
		if (box)
			code = rt_alloc(g->client, p->device, RT_DEVICE, box, "mailbox", NULL,
					&p->mailbox, err);
		if (!code && row)
			code = rt_alloc(g->client, p->device, RT_DEVICE, row, "member's numbers",
					NULL, &p->row, err);
	}
	return code ? code : clear(g, err);
}

bool rt_meeting_is_needed(const struct image *im)
{
	return im->n_slots || im->n_words;
}

static void place(struct rt_meeting *g, unsigned member, unsigned id)
{
	const struct rt_client *c = g->client;
	unsigned first = rt_first_id(c);
	bool is_ours = id >= first && id - first < c->n_devices;

	g->at[member].id = id;
	g->at[member].device = is_ours ? id - first : RT_ELSEWHERE;
	g->n_here += is_ours;
}

int rt_meeting_new(struct rt_client *c, const struct image *im, const unsigned *ids,
		   unsigned parts, struct rt_meeting **out, struct err *err)
{
	unsigned n = image_n_members(im);
	struct rt_meeting *g;
	int code;

	g = calloc(1, sizeof(*g) + n * sizeof(*g->at));
	if (g)
		g->va = calloc(n * im->n_slots + 1, sizeof(*g->va));
	if (!g || !g->va) {
		free(g);
		return err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory");
	}
	atomic_init(&g->refs, 1);
	g->client = c;
	g->image = im;
	g->box_bytes = mailbox_bytes(im);
	pthread_mutex_init(&g->pair_lock, NULL);
	g->n = n;
	for (unsigned m = 0; m < n; m++)
		place(g, m, ids[m]);
	code = allocate(g, parts, err);
	if (code)
		rt_meeting_unref(g);
	else
		*out = g;
	return code;
}

/* Where a member sees another one's mailbox. */
static int ask(struct rt_meeting *g, unsigned member, unsigned peer, uint64_t *va,
	       struct err *err)
{
	const struct rt_place *p = &g->at[peer];
	const struct rt_far *far;
	int code;

	if (is_here(g, peer))
		return hal_peer_va(hal_of(g, member), p->mailbox, va, err);
	far = &g->world->devices[p->id];
	code = hal_borrow(hal_of(g, member), &far->lent, far->name, va, err);
	*va += p->offset;
	return code;
}

static int ask_all(struct rt_meeting *g, struct err *err)
{
	const struct image *im = g->image;
	int code = 0;

	for (unsigned m = 0; m < g->n; m++)
		for (size_t s = 0; is_here(g, m) && !code && s < im->n_slots; s++) {
			size_t i = m * im->n_slots + s;

			code = ask(g, m, im->peers[i], &g->va[i], err);
		}
	return code;
}

/* Notes how often all memory was lent; whether that is as it was. */
static bool note_lent(struct rt_meeting *g)
{
	bool same = true;

	for (unsigned m = 0; m < g->n; m++) {
		uint64_t lent = hal_times_lent(hal_of(g, m));

		same &= lent == g->at[m].lent;
		g->at[m].lent = lent;
	}
	return same;
}

void rt_meeting_settle(struct rt_meeting *g)
{
	for (unsigned m = 0; m < g->n; m++)
		if (is_here(g, m))
			hal_queue_wait(g->client->devices[g->at[m].device].queue, g->at[m].last_use,
				       CLOCK_FOREVER, NULL);
}

/* Of its devices here. 0: none has died. */
static int find_dead(const struct rt_meeting *g, struct err *err)
{
	int code = 0;

	for (unsigned m = 0; !code && m < g->n; m++)
		if (is_here(g, m))
			code = hal_device_error(hal_of(g, m), err);
	return code;
}

/* Others' devices, when all are level: one that had died is lent to nobody until its process begins
 * anew once more. Nothing else fails with that, so nobody has to begin anew for it. */
static int find_unlent(const struct rt_meeting *g, struct err *err)
{
	for (unsigned m = 0; m < g->n; m++) {
		const struct rt_far *far = &g->world->devices[g->at[m].id];

		if (!is_here(g, m) && !far->lent.key)
			return err_set(err, ERR_UNAVAILABLE, "%s had died when its process began "
				       "anew", far->name);
	}
	return 0;
}

/* With other processes: what was lent holds until the first failure, and so do addresses. */
static int begin_across(struct rt_meeting *g, uint64_t number, struct err *err)
{
	int code = rt_order_check(g->world, number, err);

	if (!code)
		code = find_dead(g, err);
	if (!code && g->is_spoilt)
		code = err_set(err, ERR_ABORTED, "%s was launched in vain before, by a part of its "
			       "processes", image_string(g->image, g->image->info.name));
	if (code || g->is_asked)
		return code;
	code = find_unlent(g, err);
	if (code)
		return code;
	code = ask_all(g, err);
	g->is_asked = !code;
	if (code) {	/* another failed since they were level: launched again it waits for that */
		pthread_mutex_lock(&g->world->order->lock);
		rt_order_break(g->world->order, err);
		pthread_mutex_unlock(&g->world->order->lock);
	}
	return code;
}

int rt_meeting_begin(struct rt_meeting *g, uint64_t number, struct err *err)
{
	bool is_asked = false;
	int code = 0;

	if (!g->image->n_slots)
		return 0;
	if (g->world)
		return begin_across(g, number, err);
	/* Until nothing was lent anew while we asked. */
	for (;;) {
		bool same = note_lent(g);

		g->is_spoilt |= !same && g->was_launched;
		if (same && is_asked)
			break;
		code = ask_all(g, err);
		if (code)
			return code;
		is_asked = true;
	}
	if (!g->is_spoilt)
		return 0;
	rt_meeting_settle(g);
	code = clear(g, err);
	g->is_spoilt = code != 0;
	return code;
}

void rt_meeting_note(struct rt_meeting *g, unsigned member, uint64_t value)
{
	g->at[member].last_use = value;
	g->was_launched = true;
}

void rt_meeting_spoil(struct rt_meeting *g)
{
	g->is_spoilt = true;
}

int rt_meeting_abandon(struct rt_meeting *g, unsigned missing)
{
	rt_meeting_spoil(g);
	return g->image->n_slots ? hal_take_back(hal_of(g, missing), NULL) : 0;
}

/* ---- with other processes ---- */

/* Where the members of one process are, as told by it. */
struct places {
	char how[64];		/* as struct rt_meeting has it */
	uint64_t box_bytes;
	uint32_t n, n_all;
	struct { uint32_t member, zero; uint64_t offset; } at[];
};

static size_t places_bytes(unsigned n)
{
	return sizeof(struct places) + n * sizeof(((struct places *)0)->at[0]);
}

/* Which program it is; of replicas, which may be compiled apart, only how they meet. */
static void say_how(const struct rt_program *p, char out[68])
{
	const struct image *im = p->image;
	uint64_t number = im->info.n_replicas > 1 ? image_meeting_number(im) : 0;

	memset(out, 0, 68);
	if (number)
		snprintf(out, 68, "meets %016llx", (unsigned long long)number);
	else
		memcpy(out, p->fingerprint, 64);
}

/* That on its devices, as one number: the same in all processes. */
static uint64_t id_of(const char how[68], const unsigned *ids, unsigned n)
{
	size_t bytes = 64 + n * sizeof(*ids);
	char hex[65], *all = malloc(bytes);

	if (!all)
		return 0;
	memcpy(all, how, 64);
	memcpy(all + 64, ids, n * sizeof(*ids));
	rt_hash(all, bytes, hex);
	free(all);
	hex[16] = 0;
	return strtoull(hex, NULL, 16);
}

static void key_of(const struct rt_meeting *g, unsigned process, char out[64])
{
	snprintf(out, 64, "tessera/meet/%016llx/%u", (unsigned long long)g->id, process);
}

static int tell(struct rt_meeting *g, struct err *err)
{
	struct places *p = calloc(1, places_bytes(g->n_here));
	char key[64];
	int code;

	if (!p)
		return err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory");
	memcpy(p->how, g->how, sizeof(p->how));
	p->box_bytes = g->box_bytes;
	p->n_all = g->n;
	for (unsigned m = 0; m < g->n; m++) {
		if (g->at[m].device == RT_ELSEWHERE)
			continue;
		p->at[p->n].member = m;
		p->at[p->n++].offset = hal_lent_offset(g->at[m].mailbox);
	}
	key_of(g, g->world->process, key);
	code = rt_world_put(g->world, key, p, places_bytes(g->n_here), err);
	free(p);
	return code;
}

/* What one process told of its members; they are checked. */
static int hear(struct rt_meeting *g, unsigned process, struct err *err)
{
	struct places *p;
	unsigned n = 0;
	size_t bytes;
	char key[64];
	void *v;
	int code;

	key_of(g, process, key);
	code = rt_world_get(g->world, key, process, &v, &bytes, err);
	if (code)
		return code;
	p = v;
	for (unsigned m = 0; m < g->n; m++)
		n += g->world->devices[g->at[m].id].device.process == process;
	if (bytes != places_bytes(n) || p->n != n || p->n_all != g->n ||
	    p->box_bytes != g->box_bytes ||
	    memcmp(p->how, g->how, sizeof(p->how)))
		code = err_set(err, ERR_FAILED_PRECONDITION, "process %u has another program than "
			       "process %u where both should have %s: what they compile has to be "
			       "the same", process, g->world->process,
			       image_string(g->image, g->image->info.name));
	for (unsigned i = 0; !code && i < n; i++) {
		uint32_t m = p->at[i].member;
		const struct rt_far *far;

		if (m >= g->n || g->world->devices[g->at[m].id].device.process != process) {
			code = err_set(err, ERR_INVALID_ARGUMENT, "process %u tells where member "
				       "%u of %u is, which it has not", process, m, g->n);
			break;
		}
		far = &g->world->devices[g->at[m].id];
		g->at[m].offset = p->at[i].offset;
		if (p->at[i].offset % HAL_MEM_ALIGN || p->box_bytes > far->lent.bytes ||
		    p->at[i].offset > far->lent.bytes - p->box_bytes)
			code = err_set(err, ERR_INVALID_ARGUMENT, "process %u says that member %u "
				       "has its mailbox at 0x%llx of %s", process, m,
				       (unsigned long long)p->at[i].offset, far->name);
	}
	free(v);
	return code;
}

int rt_across_pair(struct rt_meeting *g, struct err *err)
{
	struct rt_world *w = g->world;
	int code = 0;

	pthread_mutex_lock(&g->pair_lock);
	/* Whose chip has died cannot make the program, and never tells. */
	if (!g->is_paired)
		code = rt_anew_wait(g, err);
	for (unsigned p = 0; !g->is_paired && !code && p < w->n_processes; p++)
		if (p != w->process && g->party >> p & 1)
			code = hear(g, p, err);
	g->is_paired |= !code;
	pthread_mutex_unlock(&g->pair_lock);
	return code;
}

static struct rt_meeting *find(struct rt_world *w, uint64_t id, const unsigned *ids, unsigned n)
{
	for (struct rt_meeting *g = w->meetings; g; g = g->next) {
		bool is_it = g->id == id && g->n == n;

		for (unsigned m = 0; is_it && m < n; m++)
			is_it = g->at[m].id == ids[m];
		if (is_it)
			return g;
	}
	return NULL;
}

static void forget(struct rt_world *w)
{
	struct rt_meeting *g, *next;

	for (g = w->meetings; g; g = next) {
		next = g->next;
		rt_meeting_unref(g);
	}
	w->meetings = NULL;
}

static int make(struct rt_client *c, struct rt_program *p, const unsigned *ids, const char how[68],
		uint64_t id, struct rt_meeting **out, struct err *err)
{
	struct rt_world *w = c->world;
	struct rt_meeting *g;
	int code = rt_meeting_new(c, p->image, ids, RT_BOXES, &g, err);

	if (code)
		return code;
	g->world = w;
	g->id = id;
	memcpy(g->how, how, sizeof(g->how));
	g->program = p;
	rt_program_ref(p);
	for (unsigned m = 0; m < g->n; m++)
		g->party |= 1ull << w->devices[ids[m]].device.process;
	code = tell(g, err);
	if (code) {
		rt_meeting_unref(g);
		return code;
	}
	g->next = w->meetings;
	w->meetings = g;
	w->forget = forget;
	*out = g;
	return 0;
}

int rt_across_join(struct rt_client *c, struct rt_program *p, const unsigned *ids,
		   struct rt_meeting **out, struct err *err)
{
	const struct image *im = p->image;
	struct rt_world *w = c->world;
	unsigned n = image_n_members(im);
	struct rt_meeting *g;
	char how[68];
	uint64_t id;
	int code = 0;

	if (im->n_transfers)
		return err_set(err, ERR_UNIMPLEMENTED, "%s calls the host, and its members meet in "
			       "several processes: call the host from programs on this process's "
			       "devices", image_string(im, im->info.name));
	say_how(p, how);
	id = id_of(how, ids, n);
	if (!id)
		return err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory");
	pthread_mutex_lock(&w->lock);
	g = find(w, id, ids, n);
	if (!g)
		code = make(c, p, ids, how, id, &g, err);
	if (!code) {
		atomic_fetch_add(&g->refs, 1);
		*out = g;
	}
	pthread_mutex_unlock(&w->lock);
	return code;
}

/* ---- beginning anew, world/era.c; rt_order's lock comes after gang_lock ---- */

static int renew(struct rt_meeting *g, struct err *err)
{
	int code = 0;

	g->is_asked = false;
	g->is_spoilt = true;
	if (find_dead(g, NULL))
		return 0;	/* nothing runs there until a reset, and then it is renewed again */
	code = clear(g, err);
	g->is_spoilt = code != 0;
	return code;
}

/* What this process tells the others of a device: nothing, of one that has died. */
static int lend(struct rt_world *w, unsigned i, struct err *err)
{
	struct hal_lent *lent = &w->devices[w->processes[w->process].first + i].lent;
	struct hal_device *hal = w->client->devices[i].hal;
	int code = hal_lend(hal, lent, err);

	if (!code || !hal_device_error(hal, NULL))
		return code;
	*lent = (struct hal_lent){ 0 };
	return 0;
}

/* Under world.lock and gang_lock. */
static int clean(struct rt_order *o, const struct err *why, struct err *err)
{
	struct rt_world *w = o->world;
	int code = 0;

	rt_order_reset(o, why);
	for (struct rt_meeting *g = w->meetings; g; g = g->next)
		rt_meeting_settle(g);
	for (unsigned i = 0; !code && i < w->client->n_devices; i++)
		code = lend(w, i, err);
	for (struct rt_meeting *g = w->meetings; !code && g; g = g->next)
		code = renew(g, err);
	return code;
}

/* Of all processes. */
static void begin(struct rt_order *o, const struct err *why)
{
	struct rt_world *w = o->world;
	unsigned first = w->processes[w->process].first;
	struct state *s = &o->state;

	s->era++;
	snprintf(s->why, sizeof(s->why), "%.*s", (int)sizeof(s->why) - 1, why->msg);
	for (unsigned i = 0; i < w->client->n_devices; i++)
		s->lent[i] = w->devices[first + i].lent;
	for (unsigned p = 0; p < w->n_processes; p++) {
		if (p == w->process)
			continue;
		s->seen[p] = rt_era_of(o, p);
		s->start[p] = o->fellows[p].mine = o->n;
		o->fellows[p].is_apart = true;
	}
	for (unsigned i = 0; i < w->client->n_devices; i++)
		hal_queue_set_reason(w->client->devices[i].queue, NULL);
	for (uint64_t k = o->n_done; k < o->n; k++)
		memset(&o->values[k % LOG * w->client->n_devices], 0,
		       w->client->n_devices * sizeof(*o->values));
	o->n_void = o->n;
	o->is_broken = false;
	rt_order_forget(o);
}

/* After a failure: takes no lock before. */
static int begin_anew(struct rt_world *w, const struct err *why, struct err *err)
{
	struct rt_order *o = w->order;
	int code;

	pthread_mutex_lock(&o->lock);
	while (o->is_resetting)
		pthread_cond_wait(&o->cond, &o->lock);
	o->must_reset = false;	/* clean does */
	pthread_mutex_unlock(&o->lock);
	pthread_mutex_lock(&w->lock);
	pthread_mutex_lock(&w->client->gang_lock);
	code = clean(o, why, err);
	pthread_mutex_lock(&o->lock);
	if (!code) {
		begin(o, why);
		code = rt_era_write(o, err);
	}
	pthread_mutex_unlock(&o->lock);
	pthread_mutex_unlock(&w->client->gang_lock);
	pthread_mutex_unlock(&w->lock);
	return code;
}

/* Under lock. Whether this process has to begin anew for it; why: else NULL. */
static bool is_affected(struct rt_order *o, unsigned p, struct err *why)
{
	struct fellow *f = &o->fellows[p];

	if (!rt_era_has_begun(o, p, why))
		return false;
	if (f->last || rt_order_has_more(o, p))
		return true;
	/* They did nothing together since they were level. */
	o->state.seen[p] = rt_era_of(o, p);
	o->state.start[p] = o->n;
	f->is_apart = true;
	rt_era_write(o, NULL);
	return false;
}

int rt_anew_ask(struct rt_meeting *g, struct err *err)
{
	struct rt_world *w = g->world;
	struct rt_order *o = w->order;
	int code = rt_order_check(w, 0, err);
	struct err why;

	pthread_mutex_lock(&o->lock);
	for (unsigned p = 0; !code && p < w->n_processes; p++) {
		if (p == w->process || !(g->party >> p & 1) || !is_affected(o, p, err))
			continue;
		rt_order_break(o, err);
		code = err->code;
	}
	pthread_mutex_unlock(&o->lock);
	for (unsigned p = 0; !code && p < w->n_processes; p++)
		if (g->party >> p & 1 && !rt_order_is_alive(w, p))
			return err_set(err, ERR_UNAVAILABLE, "process %u (pid %d) has ended, so "
				       "nothing runs on its devices", p, w->processes[p].pid);
	if (code && begin_anew(w, err, &why))
		err_add(err, "it can't begin anew: %.200s", why.msg);
	return code;
}

/* What it lends is as it says now. Under gang_lock, too, as launches read it. */
static void take_lent(struct rt_order *o, unsigned p, const struct state *s)
{
	const struct rt_process *process = &o->world->processes[p];

	for (unsigned i = 0; s->era && i < process->n_devices; i++)
		o->world->devices[process->first + i].lent = s->lent[i];
}

/* Under gang_lock and lock. Whether all of a party are level, each with each. */
static bool are_level(struct rt_order *o, uint64_t party)
{
	struct rt_world *w = o->world;
	struct state a, b;

	for (unsigned p = 0; p < w->n_processes; p++) {
		if (p == w->process || !(party >> p & 1))
			continue;
		if (!rt_era_is_level(o, p) || !rt_era_read(o, p, &a))
			return false;
		take_lent(o, p, &a);
		for (unsigned q = 0; q < p; q++) {
			if (q == w->process || !(party >> q & 1))
				continue;
			if (!rt_era_read(o, q, &b) || a.seen[q] != b.era || b.seen[p] != a.era)
				return false;
		}
	}
	return true;
}

/* As far as can be told now; 0 and *wait: not yet. */
static int look(struct rt_meeting *g, bool *wait, struct err *err)
{
	struct rt_world *w = g->world;
	struct rt_order *o = w->order;
	int code = 0;

	pthread_mutex_lock(&w->client->gang_lock);
	pthread_mutex_lock(&o->lock);
	if (o->is_broken) {
		*err = o->broken;
		code = err->code;
	} else if (g->level_at != o->changes + 1) {
		*wait = !are_level(o, g->party);
		if (!*wait) {
			g->level_at = o->changes + 1;
			g->is_asked = false;
		}
	}
	if (!code && !*wait)
		code = find_unlent(g, err);
	pthread_mutex_unlock(&o->lock);
	pthread_mutex_unlock(&w->client->gang_lock);
	for (unsigned p = 0; !code && *wait && p < w->n_processes; p++)
		if (g->party >> p & 1 && rt_order_has_left(o, p, err))
			code = err->code;
		else if (g->party >> p & 1 && !rt_order_is_alive(w, p))
			code = err_set(err, ERR_UNAVAILABLE, "process %u (pid %d) has ended before "
				       "it took note that others began anew", p,
				       w->processes[p].pid);
	return code;
}

int rt_anew_wait(struct rt_meeting *g, struct err *err)
{
	bool wait = false;
	int code = look(g, &wait, err);

	while (!code && wait) {
		nanosleep(&(struct timespec){ .tv_nsec = LEVEL_NS }, NULL);
		wait = false;
		code = look(g, &wait, err);
	}
	return code;
}
