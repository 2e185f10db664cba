/* SPDX-License-Identifier: Apache-2.0 */
/* Links, and what reaches another device without: copies between devices, programs that meet, and
 * one that fails the other. */
#include "tests/conformance/conf.h"
#include "tests/unit/ring.h"

enum { ELEMENTS = 30000, DATA = 4 * ELEMENTS };

/* The second device; not applicable where no copy gets there, which has to be said. */
static struct hal_device *open_copied(struct conf *c)
{
	struct hal_device *other = conf_open_other(c, 1);
	struct hal_mem *there = conf_get_of(c, other, HAL_MEM_HBM, 4096);
	uint64_t va;
	int code = hal_peer_va(c->dev, there, &va, &c->err);

	EXPECT(c, code || hal_may_copy(c->dev, other));
	hal_mem_free(there);
	if (!code)
		return other;
	hal_device_close(other);
	if (code != ERR_UNIMPLEMENTED || !strstr(c->err.msg, c->info.bus_id))
		conf_fail(c, "code %d: %s", code, c->err.msg);
	not_applicable(c, "%s", c->err.msg);
}

/* The same, where it is linked. */
static struct hal_device *open_peer(struct conf *c)
{
	struct hal_device *other = open_copied(c);
	struct hal_lent lent;

	if (hal_is_linked(c->dev, other))
		return other;
	/* Nothing that runs there meets anything. */
	hal_device_close(other);
	REFUSED(c, ERR_UNIMPLEMENTED, c->info.bus_id, hal_lend(c->dev, &lent, &c->err));
	not_applicable(c, "%s", c->err.msg);
}

/* `bytes` of it, between offsets that are no multiples; what is around them stays. */
static void cross(struct conf *c, struct hal_mem *from, struct hal_mem *to, struct hal_device *by,
		  uint64_t bytes)
{
	struct hal_queue *q = hal_device_queue(by, HAL_QUEUE_DMA);
	uint8_t *x = conf_bytes(c, bytes + 192, bytes), *got = conf_room(c, bytes + 192);
	uint64_t value;

	memset(got, 0xa5, bytes + 192);
	OK(c, hal_copy_in(from, 0, x, bytes + 192, SOON, &c->err));
	OK(c, hal_copy_in(to, 0, got, bytes + 192, SOON, &c->err));
	OK(c, hal_queue_copy(q, to, 61, from, 131, bytes, NULL, 0, &value, &c->err));
	OK(c, hal_queue_wait(q, value, SOON, &c->err));
	OK(c, hal_copy_out(got, to, 0, bytes + 192, SOON, &c->err));
	EXPECT(c, !memcmp(got + 61, x + 131, bytes));
	see(c, got, bytes + 192);
	for (unsigned i = 0; i < 61; i++)
		EXPECT(c, got[i] == 0xa5 && got[61 + bytes + i] == 0xa5);
	free(x);
	free(got);
}

void check_copies_reach_the_other_device(struct conf *c)
{
	static const uint64_t sizes[] = { 1, 64, 4095, 4096, 4097, 300001 };
	struct hal_device *other = open_copied(c);
	struct hal_mem *here = conf_get(c, 300193);
	struct hal_mem *there = conf_get_of(c, other, HAL_MEM_HBM, 300193);

	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		cross(c, here, there, c->dev, sizes[i]);
		cross(c, there, here, other, sizes[i]);
	}
	hal_mem_free(here);
	hal_device_close(other);
}

void check_copies_between_devices_go_by_links(struct conf *c)
{
	struct hal_device *other = open_peer(c);
	struct hal_mem *from = conf_get(c, 3 << 20), *mail = conf_get(c, 4096);
	struct hal_mem *to = conf_get_of(c, other, HAL_MEM_HBM, 3 << 20);
	uint8_t *x = conf_bytes(c, 3 << 20, 5), *got = conf_room(c, 3 << 20);
	struct hw_link before[HW_MAX_LINKS], after[HW_MAX_LINKS];
	uint64_t value;
	unsigned n;

	OK(c, hal_copy_in(from, 0, x, 3 << 20, SOON, &c->err));
	OK(c, hal_device_links(c->dev, before, &n, &c->err));
	EXPECT(c, n == 1);
	OK(c, hal_queue_copy(c->dma, to, 0, from, 0, 3 << 20, NULL, 0, &value, &c->err));
	OK(c, hal_queue_wait(c->dma, value, SOON, &c->err));
	OK(c, hal_copy_out(got, to, 0, 3 << 20, SOON, &c->err));
	EXPECT(c, !memcmp(got, x, 3 << 20));
	see(c, got, 3 << 20);
	OK(c, hal_device_links(c->dev, after, &n, &c->err));
	EXPECT(c, after->tx_bytes - before->tx_bytes == 3 << 20);
	REFUSED(c, ERR_INVALID_ARGUMENT, "copies only write over links",
		hal_queue_copy(c->dma, mail, 0, to, 0, 64, NULL, 0, &value, &c->err));
	hal_mem_free(from);
	hal_mem_free(mail);
	hal_device_close(other);
	free(x);
	free(got);
}

/* Two members of a sum. */
struct pair {
	struct hal_device *dev[2];
	struct hal_exe *exe[2];
	struct hal_mem *data[2], *box[2];
	uint64_t value[2];
};

static struct pair *make_pair(struct conf *c)
{
	struct pair *p = conf_room(c, sizeof(*p));
	struct ring_code *code = conf_room(c, sizeof(*code));

	p->dev[0] = c->dev;
	p->dev[1] = open_peer(c);
	for (unsigned r = 0; r < 2; r++) {
		size_t bytes;
		void *image;

		*code = (struct ring_code){ .n = 2, .member = r, .elements = ELEMENTS };
		ring_all_reduce(code);
		OK(c, ring_image(code, &image, &bytes, &c->err));
		OK(c, hal_exe_load(p->dev[r], image, bytes, &p->exe[r], &c->err));
		free(image);
		p->data[r] = conf_get_of(c, p->dev[r], HAL_MEM_HBM, DATA);
		p->box[r] = conf_get_of(c, p->dev[r], HAL_MEM_HBM, RING_MAILBOX(2, ELEMENTS));
	}
	free(code);
	return p;
}

/* Both from the beginning: mailboxes of zeros, small whole numbers as data. */
static void fill(struct conf *c, struct pair *p)
{
	static const uint8_t zeros[RING_SLOTS];
	float *x = conf_room(c, DATA);

	for (unsigned r = 0; r < 2; r++) {
		uint8_t *bytes = conf_bytes(c, ELEMENTS, 90 + r);

		for (unsigned i = 0; i < ELEMENTS; i++)
			x[i] = bytes[i];
		OK(c, hal_copy_in(p->data[r], 0, x, DATA, SOON, &c->err));
		OK(c, hal_copy_in(p->box[r], 0, zeros, sizeof(zeros), SOON, &c->err));
		free(bytes);
	}
	free(x);
}

static void start(struct conf *c, struct pair *p, unsigned n)
{
	struct hw_binding b[2][RING_BINDINGS(2)] = { 0 };

	for (unsigned r = 0; r < 2; r++)
		for (unsigned k = 0; k < 2; k++) {
			unsigned at = k == r ? 2 : 4 + 2 * k;

			b[r][at].bytes = hal_mem_bytes(p->data[k]);
			b[r][at + 1].bytes = hal_mem_bytes(p->box[k]);
			OK(c, hal_peer_va(p->dev[r], p->data[k], &b[r][at].va, &c->err));
			OK(c, hal_peer_va(p->dev[r], p->box[k], &b[r][at + 1].va, &c->err));
		}
	for (unsigned r = 0; r < n; r++)
		OK(c, hal_queue_execute(hal_device_queue(p->dev[r], HAL_QUEUE_COMPUTE),
					&(struct hal_launch){ .exe = p->exe[r],
					.bindings = b[r] }, &p->value[r], &c->err));
}

static void meet(struct conf *c, struct pair *p)
{
	float *got = conf_room(c, DATA), *same = conf_room(c, DATA);

	fill(c, p);
	start(c, p, 2);
	for (unsigned r = 0; r < 2; r++)
		OK(c, hal_queue_wait(hal_device_queue(p->dev[r], HAL_QUEUE_COMPUTE), p->value[r],
				     SOON, &c->err));
	OK(c, hal_copy_out(got, p->data[0], 0, DATA, SOON, &c->err));
	OK(c, hal_copy_out(same, p->data[1], 0, DATA, SOON, &c->err));
	EXPECT(c, !memcmp(got, same, DATA));
	see(c, got, DATA);
	free(got);
	free(same);
}

static void drop_pair(struct pair *p)
{
	hal_exe_unload(p->exe[0]);
	hal_mem_free(p->data[0]);
	hal_mem_free(p->box[0]);
	hal_device_close(p->dev[1]);
	free(p);
}

void check_programs_meet_on_two_devices(struct conf *c)
{
	struct pair *p = make_pair(c);

	for (unsigned i = 0; i < 20; i++)
		meet(c, p);
	drop_pair(p);
}

void check_a_device_that_fails_fails_those_that_wait_for_it(struct conf *c)
{
	struct pair *p = make_pair(c);
	int64_t began;

	meet(c, p);
	for (unsigned i = 0; i < 3; i++) {
		start(c, p, 1);
		began = clock_ns();
		if (i == 0)
			OK(c, hal_device_inject(p->dev[1], HW_INJECT_FATAL, 0, &c->err));
		else
			OK(c, hal_device_reset(p->dev[1], &c->err));
		REFUSED(c, ERR_UNAVAILABLE, "failed: ", hal_queue_wait(c->compute, p->value[0],
								       SOON, &c->err));
		EXPECT(c, strstr(c->err.msg, i ? "(RESET)" : "(DEVICE_FATAL)"));
		EXPECT(c, clock_ns() - began < SECOND);
		if (i == 0)
			OK(c, hal_device_reset(p->dev[1], &c->err));
		meet(c, p);
	}
	drop_pair(p);
}

/* Copies within a device, which need no link; they go on beside what fails. */
static uint64_t churn(struct conf *c, struct hal_device *dev, struct hal_mem *m, bool is_first)
{
	struct hal_queue *q = hal_device_queue(dev, HAL_QUEUE_DMA);
	uint64_t value = 0;

	if (is_first)
		OK(c, hal_queue_fill(q, m, 0, 100000, 1, &value, &c->err));
	for (uint64_t i = 0; i < 30; i++) {
		OK(c, hal_queue_fill(q, m, i * 500, 60000, i * i, &value, &c->err));
		OK(c, hal_queue_copy(q, m, 70000, m, i * 500, 20000, NULL, 0, &value, &c->err));
	}
	return value;
}

static void look(struct conf *c, struct hal_device *dev, struct hal_mem *m, uint64_t last,
		 uint8_t *got)
{
	OK(c, hal_queue_wait(hal_device_queue(dev, HAL_QUEUE_DMA), last, SOON, &c->err));
	OK(c, hal_copy_out(got, m, 0, 100000, SOON, &c->err));
}

void conf_cut_link(struct conf *c, int64_t ns[2])
{
	struct pair *p = make_pair(c);
	uint8_t *expected = conf_room(c, 100000), *got = conf_room(c, 100000);
	struct hal_mem *m[2];
	struct hw_link l[HW_MAX_LINKS];
	uint64_t last[2];
	int64_t injected;
	unsigned n;

	meet(c, p);
	for (unsigned r = 0; r < 2; r++) {
		m[r] = conf_get_of(c, p->dev[r], HAL_MEM_HBM, 100000);
		churn(c, p->dev[r], m[r], true);
		look(c, p->dev[r], m[r], churn(c, p->dev[r], m[r], false), expected);
	}
	/* The device that waits for the other is the one whose link it is not told of. */
	for (unsigned r = 0; r < 2; r++)
		churn(c, p->dev[r], m[r], true);
	start(c, p, 1);
	injected = clock_ns();
	OK(c, hal_device_inject(p->dev[1], HW_INJECT_LINK_DOWN, 0, &c->err));
	REFUSED(c, ERR_UNAVAILABLE, "(LINK)", hal_queue_wait(c->compute, p->value[0], SOON,
							     &c->err));
	ns[0] = clock_ns() - injected;
	OK(c, hal_device_links(c->dev, l, &n, &c->err));
	EXPECT(c, n == 1 && l->is == HW_LINK_DOWN);
	for (unsigned r = 0; r < 2; r++)
		last[r] = churn(c, p->dev[r], m[r], false);
	for (unsigned r = 0; r < 2; r++) {
		look(c, p->dev[r], m[r], last[r], got);
		EXPECT(c, !memcmp(got, expected, 100000));
		see(c, got, 100000);
	}
	/* The one that is reset is the one that was told. */
	OK(c, hal_device_reset(p->dev[1], &c->err));
	meet(c, p);
	ns[1] = clock_ns() - injected;
	OK(c, hal_device_links(c->dev, l, &n, &c->err));
	EXPECT(c, n == 1 && l->is == HW_LINK_UP);
	hal_mem_free(m[0]);
	free(expected);
	free(got);
	drop_pair(p);
}

void check_a_dead_link_costs_those_it_joined(struct conf *c)
{
	int64_t ns[2];

	for (unsigned i = 0; i < 3; i++)
		conf_cut_link(c, ns);
}
