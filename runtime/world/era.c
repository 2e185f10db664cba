/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Eras of processes, by which launches with others go on after one has failed.
 *
 * What a process has queued of such launches fails then, and the next one that it is asked for is
 * refused with the reason: whoever asks knows by that where to go on. With the refusal the process
 * begins anew (meeting.c): it lends its devices by new keys, its mailboxes are zeros, and what it
 * was asked for before is void. It says so by a number in its log, its era, and by the eras of the
 * others that it has taken note of.
 *
 * Two processes are level when each has taken note of the other's era; they count their launches
 * from there. A process that was level with one that began anew does so itself, if they have
 * launched anything together. So a failure goes through all whose launches depend on each
 * other, once, and to no others. A launch begins when all that take part in it are level, each
 * with each; who has ended never is.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "runtime/world/order.h"

uint64_t rt_order_sum(const void *bytes, size_t n)
{
	const unsigned char *p = bytes;
	uint64_t h = 14695981039346656037u;

	for (size_t i = 0; i < n; i++)
		h = (h ^ p[i]) * 1099511628211u;
	return h;
}

static uint64_t sum(const struct state *s)
{
	return rt_order_sum(s, offsetof(struct state, check));
}

int rt_era_write(struct rt_order *o, struct err *err)
{
	o->state.check = sum(&o->state);
	o->changes++;
	if (pwrite(o->fd, &o->state, sizeof(o->state), STATE) == sizeof(o->state))
		return 0;
	return err_sys(err, errno, "writing this process's log of launches");
}

bool rt_era_read(const struct rt_order *o, unsigned p, struct state *s)
{
	static const struct state none;

	if (pread(o->fellows[p].fd, s, sizeof(*s), STATE) != sizeof(*s))
		return false;
	s->why[sizeof(s->why) - 1] = 0;
	return !memcmp(s, &none, sizeof(none)) || s->check == sum(s);
}

uint64_t rt_era_of(const struct rt_order *o, unsigned p)
{
	uint64_t era = 0;

	pread(o->fellows[p].fd, &era, sizeof(era), STATE + offsetof(struct state, era));
	return era;
}

bool rt_era_is_level(struct rt_order *o, unsigned p)
{
	struct fellow *f = &o->fellows[p];
	unsigned me = o->world->process;
	struct state s;

	if (!f->is_apart)
		return true;
	if (!rt_era_read(o, p, &s))
		return false;
	if (s.era != o->state.seen[p]) {
		o->state.seen[p] = s.era;
		rt_era_write(o, NULL);
	}
	if (s.seen[me] != o->state.era)
		return false;
	f->mine = o->state.start[p];
	f->theirs = s.start[me];
	f->last = 0;
	f->is_apart = false;
	o->changes++;
	return true;
}

bool rt_era_has_begun(struct rt_order *o, unsigned p, struct err *why)
{
	struct state s;

	if (o->fellows[p].is_apart || rt_era_of(o, p) == o->state.seen[p] || !rt_era_read(o, p, &s))
		return false;
	err_set(why, ERR_ABORTED, "process %u (pid %d) began anew: %s", p,
		o->world->processes[p].pid, s.why);
	return true;
}
