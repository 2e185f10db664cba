/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of a client's that came without a descriptor, which tessera-sim has to ask for: what is
 * told of has arrived, what is read is as new as what told of it, and a client may keep an answer
 * back as long as it waits for a reply.
 */
#include "tests/unit/vfio_client.h"

#define LATE_NS 5000000		/* that writes are answered late */
#define FAR_IOVA 0x20000000ull
#define FAR_PAGES 3u
#define FAR_BYTES (FAR_PAGES * 4096)
#define OTHER_IOVA (FAR_IOVA + FAR_BYTES)
#define NEAR_VA (1ull << 32)		/* the rig's third page */
#define FAR_VA (2ull << 32)		/* all of far_memory */
#define SEM 2048u			/* where in the third page semaphores are */
#define RECORDS 3072u			/* and the ring of a trace */

/* Of FAR_IOVA, and behind it a page of OTHER_IOVA. */
static uint8_t far_memory[FAR_BYTES + 4096];
static unsigned n_reads, n_writes;
static struct got asked;
static int64_t late_ns = LATE_NS;

/* ---- a client that is asked ---- */

/* Takes a question. */
static void hear_question(int fd)
{
	assert_true(receive(fd, &asked));
	assert_int_equal(asked.h.flags & VFU_TYPE, 0);
	assert_true(asked.n >= sizeof(struct vfu_dma_access));
}

static uint8_t reply[sizeof(struct vfu_header) + 16 + 4096];

/* Makes its answer, about memory that begins at iova; how long that is. */
static size_t find_answer(uint64_t iova)
{
	struct vfu_header h = asked.h;
	struct vfu_dma_access a;
	uint64_t at;

	memcpy(&a, asked.body, sizeof(a));
	at = a.iova - iova;
	assert_true(at < sizeof(far_memory) && a.count <= sizeof(far_memory) - at);
	memcpy(reply + sizeof(h), &a, sizeof(a));
	h.flags = VFU_IS_REPLY;
	h.size = sizeof(h) + sizeof(a);
	if (h.command == VFU_DMA_READ) {
		memcpy(reply + sizeof(h) + sizeof(a), far_memory + at, a.count);
		h.size += (uint32_t)a.count;
		n_reads++;
	} else {
		assert_int_equal(h.command, VFU_DMA_WRITE);
		assert_int_equal(asked.n, sizeof(a) + a.count);
		memcpy(far_memory + at, asked.body + sizeof(a), a.count);
		n_writes++;
	}
	memcpy(reply, &h, sizeof(h));
	return h.size;
}

static void answer_question(int fd, uint64_t iova)
{
	assert_true(send_raw(fd, reply, find_answer(iova), NULL, 0));
}

static bool is_asked(int fd, int ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, ms) > 0;
}

/* ---- a device that works on such memory; what tells of the work is in shared memory ---- */

struct far {
	struct rig r;
	uint16_t ctx;
	unsigned queue;
	uint32_t tail;		/* of that */
	uint64_t *sem;		/* [8], of NEAR_VA + SEM */
};

static void far_open(struct far *f)
{
	struct hw_map near = { NEAR_VA, RIG_IOVA + 8192, 4096, HW_MAP_HOST | HW_MAP_WRITE, 0 };
	struct hw_map far = { FAR_VA, FAR_IOVA, FAR_BYTES, HW_MAP_HOST | HW_MAP_WRITE, 0 };
	struct hw_queue queue = { .sq_iova = RIG_IOVA + 1024, .cq_iova = RIG_IOVA + 4096 + 1024,
				  .n_entries = 16, .cls = HW_CLASS_DMA, .vector = HW_NO_VECTOR };

	memset(far_memory, 0, sizeof(far_memory));
	memset(f, 0, sizeof(*f));
	set_up(&f->r);
	assert_int_equal(map_at(f->r.fd, FAR_IOVA, FAR_BYTES, 0, -1), 0);
	f->sem = (uint64_t *)(void *)(f->r.page + 8192 + SEM);
	queue.ctx = f->ctx = (uint16_t)request(&f->r, HW_CTX_CREATE, 0, NULL, 0);
	request(&f->r, HW_MAP, f->ctx, &near, sizeof(near));
	request(&f->r, HW_MAP, f->ctx, &far, sizeof(far));
	f->queue = (unsigned)request(&f->r, HW_QUEUE_CREATE, 0, &queue, sizeof(queue));
}

static void put(struct far *f, struct hw_sqe sqe)
{
	((struct hw_sqe *)(f->r.page + 1024))[f->tail++ % 16] = sqe;
}

static void ring(struct far *f)
{
	post(&f->r, hw_doorbell(f->queue), f->tail);
}

static struct hw_sqe fill_far(uint64_t pattern)
{
	return (struct hw_sqe){ .op = HW_FILL, .u.copy = { pattern, FAR_VA, FAR_BYTES } };
}

typedef bool (*look_fn)(const struct far *f);

static bool is_completed(const struct far *f)
{
	return is_complete(&f->r, 4096 + 1024, f->tail - 1);
}

static bool is_signalled(const struct far *f)
{
	return __atomic_load_n(f->sem, __ATOMIC_ACQUIRE) >= f->tail;
}

static bool is_answered(const struct far *f)
{
	return is_complete(&f->r, 4096, f->r.tail - 1);
}

/* Record n is that of descriptor n. */
static bool is_recorded(const struct far *f)
{
	const struct hw_trace_record *r = (const void *)(f->r.page + 8192 + RECORDS);

	return __atomic_load_n(&r[(f->tail - 1) % 16].number, __ATOMIC_ACQUIRE) == f->tail;
}

static bool is_filled(const struct far *f)
{
	for (unsigned i = 0; i < FAR_BYTES; i++)
		if (far_memory[i] != f->tail)
			return false;
	return true;
}

static bool is_far_signalled(const struct far *f)
{
	uint64_t value;

	memcpy(&value, far_memory + 4096, 8);
	return value == f->tail;
}

static bool is_stamped(const struct far *f)
{
	uint64_t value;

	(void)f;
	memcpy(&value, far_memory + 8192, 8);
	return value;
}

static bool is_identified(const struct far *f)
{
	struct hw_identify id;

	(void)f;
	memcpy(&id, far_memory, sizeof(id));
	return id.magic == HW_IDENTIFY_MAGIC;
}

static bool always(const struct far *f)
{
	(void)f;
	return true;
}

/* Answers until `is_told`, writes late; whatever is told of has come then, and all of it.
 * Messages are answered meanwhile. */
static void serve_until(struct far *f, look_fn is_told, look_fn has_come)
{
	int64_t until, end = clock_after(20 * SECOND);

	while (!is_told(f)) {
		assert_true(clock_ns() < end);
		if (!is_asked(f->r.fd, 1))
			continue;
		hear_question(f->r.fd);
		if (asked.h.command == VFU_DMA_WRITE) {
			assert_int_equal(read_at(f->r.fd, 0, HW_REG_STATUS, 4), HW_STATUS_READY);
			for (until = clock_after(late_ns); clock_ns() < until; )
				assert_false(is_told(f));
		}
		answer_question(f->r.fd, FAR_IOVA);
	}
	assert_true(has_come(f));
	assert_false(is_asked(f->r.fd, 20));
}

/* ---- order ---- */

static void what_is_told_of_has_arrived(void **state)
{
	const struct { struct hw_sqe sqe; look_fn is_told, has_come; } cases[] = {
		{ fill_far(0), is_completed, is_filled },
		{ fill_far(0), is_signalled, is_filled },
		{ { .op = HW_SEMAPHORE, .flags = HW_SIGNAL, .signal_va = FAR_VA + 4096 },
		  is_completed, is_far_signalled },
		{ { .op = HW_TIMESTAMP, .u.copy.dst = FAR_VA + 8192 }, is_completed, is_stamped },
	};
	struct far f;

	(void)state;
	far_open(&f);
	for (unsigned i = 0; i < 40; i++) {
		struct hw_sqe d = cases[i % 4].sqe;

		memset(far_memory, 0, sizeof(far_memory));
		d.signal_value = f.tail + 1;
		if (cases[i % 4].is_told == is_signalled) {
			d.flags = HW_SIGNAL;
			d.signal_va = NEAR_VA + SEM;
		}
		if (d.op == HW_FILL)
			d.u.copy.src = (f.tail + 1) * 0x0101010101010101;
		put(&f, d);
		ring(&f);
		serve_until(&f, cases[i % 4].is_told, cases[i % 4].has_come);
		if (!is_completed(&f))
			serve_until(&f, is_completed, always);
	}
	take_down(&f.r);
}

/* Also what was being sent already when the work ended: by then it writes elsewhere. */
static void what_is_being_sent_has_arrived(void **state)
{
	struct hw_map hbm = { FAR_VA + FAR_BYTES, 0, 16u << 20, HW_MAP_WRITE, 0 };
	struct hw_sqe d = fill_far(0);
	struct far f;

	(void)state;
	far_open(&f);
	request(&f.r, HW_MAP, f.ctx, &hbm, sizeof(hbm));
	d.u.copy.bytes = FAR_BYTES + hbm.bytes;
	late_ns = SECOND / 5;
	for (unsigned i = 0; i < 2; i++) {
		d.u.copy.src = (f.tail + 1) * 0x0101010101010101;
		put(&f, d);
		ring(&f);
		serve_until(&f, is_completed, is_filled);
	}
	late_ns = LATE_NS;
	take_down(&f.r);
}

static void what_a_request_answers_has_arrived(void **state)
{
	struct far f;

	(void)state;
	far_open(&f);
	for (unsigned i = 0; i < 20; i++) {
		memset(far_memory, 0, sizeof(far_memory));
		((struct hw_sqe *)f.r.page)[f.r.tail++ % 16] = (struct hw_sqe){
			.op = HW_IDENTIFY, .u.admin = { FAR_IOVA, 0, 4096 } };
		post(&f.r, hw_doorbell(0), f.r.tail);
		serve_until(&f, is_answered, is_identified);
	}
	take_down(&f.r);
}

static void what_a_trace_tells_of_has_arrived(void **state)
{
	struct hw_trace trace = { NEAR_VA + RECORDS, 1, 16, HW_NO_VECTOR };
	struct far f;

	(void)state;
	far_open(&f);
	request(&f.r, HW_TRACE_START, f.ctx, &trace, sizeof(trace));
	for (unsigned i = 0; i < 20; i++) {
		put(&f, fill_far((f.tail + 1) * 0x0101010101010101));
		ring(&f);
		serve_until(&f, is_recorded, is_filled);
		serve_until(&f, is_completed, is_filled);
	}
	take_down(&f.r);
}

/* A queue that is reset writes nothing more: its memory is somebody else's then. */
static void what_a_reset_queue_wrote_has_arrived(void **state)
{
	struct far f;

	(void)state;
	far_open(&f);
	for (unsigned i = 0; i < 10; i++) {
		put(&f, fill_far(i));
		ring(&f);
		hear_question(f.r.fd);
		((struct hw_sqe *)f.r.page)[f.r.tail++ % 16] = (struct hw_sqe){
			.op = HW_QUEUE_RESET, .id = (uint16_t)f.queue };
		post(&f.r, hw_doorbell(0), f.r.tail);
		answer_question(f.r.fd, FAR_IOVA);
		serve_until(&f, is_answered, always);
		assert_true(is_completed(&f));
	}
	take_down(&f.r);
}

/* What the host stored before it raised a semaphore is what is read after it was seen, though an
 * older copy has been fetched since the doorbell. */
static void what_a_semaphore_tells_of_is_read(void **state)
{
	struct hw_map hbm = { 3ull << 32, 0, 64u << 20, HW_MAP_WRITE, 0 };
	unsigned n_old = 0;
	struct far f;
	size_t n;

	(void)state;
	far_open(&f);
	request(&f.r, HW_MAP, f.ctx, &hbm, sizeof(hbm));
	for (uint64_t i = 1; i < 20; i++) {
		/* While it runs the doorbell's thread falls asleep, which drops what is kept. */
		put(&f, (struct hw_sqe){ .op = HW_FILL, .u.copy = { 0, hbm.va, hbm.bytes } });
		put(&f, (struct hw_sqe){ .op = HW_COPY,
			.u.copy = { FAR_VA, NEAR_VA + SEM + 16, 8 } });
		put(&f, (struct hw_sqe){ .op = HW_COPY, .flags = HW_WAIT,
			.wait_va = NEAR_VA + SEM + 8, .wait_value = i,
			.u.copy = { FAR_VA, NEAR_VA + SEM + 24, 8 } });
		ring(&f);
		hear_question(f.r.fd);
		assert_int_equal(asked.h.command, VFU_DMA_READ);
		n = find_answer(FAR_IOVA);
		memcpy(far_memory, &i, 8);
		__atomic_store_n(&f.sem[1], i, __ATOMIC_RELEASE);
		assert_true(send_raw(f.r.fd, reply, n, NULL, 0));
		serve_until(&f, is_completed, always);
		n_old += f.sem[2] == i - 1;
		assert_int_equal(f.sem[3], i);
	}
	assert_true(n_old > 0);
	take_down(&f.r);
}

/* ---- clients that keep an answer back ---- */

/* Has the device do it, and takes its question: the first of `command`. */
static void make_it_ask(struct far *f, struct hw_sqe sqe, uint16_t command)
{
	put(f, sqe);
	ring(f);
	for (;;) {
		hear_question(f->r.fd);
		if (asked.h.command == command)
			return;
		answer_question(f->r.fd, FAR_IOVA);
	}
}

static void what_stops_a_device_takes_its_writes_back(void **state)
{
	uint32_t none = 0;
	struct far f;

	(void)state;
	for (unsigned i = 0; i < 9; i++) {
		far_open(&f);
		make_it_ask(&f, fill_far(1), VFU_DMA_WRITE);
		if (i % 3 == 0)
			assert_int_equal(ask(f.r.fd, VFU_RESET, NULL, 0, NULL, 0), 0);
		else if (i % 3 == 1)
			write32(f.r.fd, 0, HW_REG_CTRL, none);
		else
			assert_int_equal(write_at(f.r.fd, VFU_REGION_CONFIG, 4, &none, 2), 0);
		answer_question(f.r.fd, FAR_IOVA);
		assert_false(is_asked(f.r.fd, 20));
		take_down(&f.r);
		is_served();
	}
}

static struct hw_sqe copy_from_far(void)
{
	return (struct hw_sqe){ .op = HW_COPY, .u.copy = { FAR_VA, NEAR_VA, 1024 } };
}

/* A copy that was not given what it read must not be told of as if it had been. */
static void what_stops_a_device_lets_no_read_end_well(void **state)
{
	uint32_t none = 0;
	struct far f;

	(void)state;
	for (unsigned i = 0; i < 30; i++) {
		far_open(&f);
		make_it_ask(&f, copy_from_far(), VFU_DMA_READ);
		if (i % 3 == 0)
			assert_int_equal(ask(f.r.fd, VFU_RESET, NULL, 0, NULL, 0), 0);
		else if (i % 3 == 1)
			write32(f.r.fd, 0, HW_REG_CTRL, none);
		else
			assert_int_equal(write_at(f.r.fd, VFU_REGION_CONFIG, 4, &none, 2), 0);
		if (is_complete(&f.r, 4096 + 1024, 0))
			assert_int_not_equal(place_of(&f.r, 4096 + 1024, 0)->status, 0);
		answer_question(f.r.fd, FAR_IOVA);
		take_down(&f.r);
		is_served();
	}
}

static void refuse_question(int fd)
{
	struct vfu_header h = asked.h;

	h.flags = VFU_IS_REPLY | VFU_ERROR;
	h.error = EFAULT;
	h.size = sizeof(h);
	assert_true(send_raw(fd, &h, sizeof(h), NULL, 0));
}

/* Descriptors and what a request is about. */
static void what_a_client_refuses_is_not_done(void **state)
{
	struct hw_queue queue = { .sq_iova = FAR_IOVA, .cq_iova = RIG_IOVA + 4096 + 2048,
				  .n_entries = 16, .cls = HW_CLASS_DMA, .vector = HW_NO_VECTOR };
	struct hw_cqe c;
	struct far f;

	(void)state;
	far_open(&f);
	((struct hw_sqe *)f.r.page)[f.r.tail++ % 16] = (struct hw_sqe){
		.op = HW_MAP, .id = f.ctx, .u.admin = { FAR_IOVA, 0, 4096 } };
	post(&f.r, hw_doorbell(0), f.r.tail);
	hear_question(f.r.fd);
	refuse_question(f.r.fd);
	c = completion(&f.r, 4096, f.r.tail - 1);
	assert_int_equal(c.status, HW_ST_MAP);
	queue.ctx = f.ctx;
	f.queue = (unsigned)request(&f.r, HW_QUEUE_CREATE, 0, &queue, sizeof(queue));
	f.tail = 1;
	ring(&f);
	hear_question(f.r.fd);
	refuse_question(f.r.fd);
	c = completion(&f.r, 4096 + 2048, 0);
	assert_int_equal(c.status, HW_ST_MAP);
	take_down(&f.r);
}

static void what_a_client_refuses_fails(void **state)
{
	struct hw_cqe c;
	struct far f;

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		far_open(&f);
		make_it_ask(&f, i ? fill_far(1) : copy_from_far(),
			    i ? VFU_DMA_WRITE : VFU_DMA_READ);
		refuse_question(f.r.fd);
		/* The rest of the pages. */
		serve_until(&f, is_completed, always);
		c = completion(&f.r, 4096 + 1024, 0);
		assert_int_equal(c.status, HW_ST_MAP);
		/* Nothing is left of what was not given. */
		request(&f.r, HW_QUEUE_RESET, (uint16_t)f.queue, NULL, 0);
		memset(far_memory, 0x5a, sizeof(far_memory));
		put(&f, copy_from_far());
		ring(&f);
		serve_until(&f, is_completed, always);
		c = completion(&f.r, 4096 + 1024, f.tail - 1);
		assert_int_equal(c.status, 0);
		assert_memory_equal(f.r.page + 8192, far_memory, 1024);
		take_down(&f.r);
	}
}

/* As a monitor does that holds its lock until the mapping is gone. */
static void memory_that_goes_takes_its_questions_along(void **state)
{
	struct hw_cqe c;
	struct far f;

	(void)state;
	for (unsigned i = 0; i < 8; i++) {
		far_open(&f);
		make_it_ask(&f, fill_far(1), i % 2 ? VFU_DMA_WRITE : VFU_DMA_READ);
		assert_int_equal(unmap_at(f.r.fd, FAR_IOVA, FAR_BYTES, 0), 0);
		c = completion(&f.r, 4096 + 1024, f.tail - 1);
		assert_int_equal(c.status, HW_ST_MAP);
		answer_question(f.r.fd, FAR_IOVA);
		assert_false(is_asked(f.r.fd, 20));
		/* It comes back as another one. */
		assert_int_equal(map_at(f.r.fd, FAR_IOVA, FAR_BYTES, 0, -1), 0);
		request(&f.r, HW_QUEUE_RESET, (uint16_t)f.queue, NULL, 0);
		put(&f, fill_far((f.tail + 1) * 0x0101010101010101));
		ring(&f);
		serve_until(&f, is_completed, is_filled);
		take_down(&f.r);
	}
}

/* A page of which little changes here and there goes by several questions. */
static void memory_that_goes_takes_later_questions_along(void **state)
{
	struct hw_sqe d = { .op = HW_COPY, .u.copy = { NEAR_VA, FAR_VA, 1024 } };
	struct far f;

	(void)state;
	for (unsigned i = 0; i < 8; i++) {
		far_open(&f);
		memset(f.r.page + 8192, 0, 1024);
		for (unsigned at = 0; at < 1024; at += 64)
			f.r.page[8192 + at] = 1;
		make_it_ask(&f, d, VFU_DMA_WRITE);
		for (unsigned k = 0; k < i; k++) {
			answer_question(f.r.fd, FAR_IOVA);
			hear_question(f.r.fd);
		}
		assert_int_equal(asked.h.command, VFU_DMA_WRITE);
		assert_int_equal(unmap_at(f.r.fd, FAR_IOVA, FAR_BYTES, 0), 0);
		completion(&f.r, 4096 + 1024, f.tail - 1);
		assert_false(is_asked(f.r.fd, 20));
		take_down(&f.r);
	}
}

/* While a request waits for its answer, or a doorbell for an older one's. */
static void memory_that_comes_waits_for_no_answer(void **state)
{
	struct far f;

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		far_open(&f);
		if (i) {
			((struct hw_sqe *)f.r.page)[f.r.tail++ % 16] = (struct hw_sqe){
				.op = HW_IDENTIFY, .u.admin = { FAR_IOVA, 0, 4096 } };
			post(&f.r, hw_doorbell(0), f.r.tail);
			for (hear_question(f.r.fd); asked.h.command != VFU_DMA_WRITE;
			     hear_question(f.r.fd))
				answer_question(f.r.fd, FAR_IOVA);
		} else {
			make_it_ask(&f, fill_far(1), VFU_DMA_WRITE);
			ring(&f);
		}
		assert_int_equal(map_at(f.r.fd, OTHER_IOVA, 4096, 0, -1), 0);
		answer_question(f.r.fd, FAR_IOVA);
		serve_until(&f, i ? is_answered : is_completed, always);
		take_down(&f.r);
	}
}

/* Nor does the model keep what stops it waiting while it stores a word. */
static void memory_that_goes_waits_for_no_word(void **state)
{
	const struct hw_sqe words[] = {
		{ .op = HW_SEMAPHORE, .flags = HW_SIGNAL, .signal_va = FAR_VA, .signal_value = 1 },
		{ .op = HW_TIMESTAMP, .u.copy.dst = FAR_VA },
	};
	struct far f;

	(void)state;
	for (unsigned i = 0; i < 6; i++) {
		far_open(&f);
		make_it_ask(&f, words[i / 3], VFU_DMA_READ);
		read_at(f.r.fd, 0, HW_REG_BADACC, 4);
		if (i % 3 == 0)
			assert_int_equal(unmap_at(f.r.fd, FAR_IOVA, FAR_BYTES, 0), 0);
		else if (i % 3 == 1)
			assert_int_equal(ask(f.r.fd, VFU_RESET, NULL, 0, NULL, 0), 0);
		else
			assert_int_equal(map_at(f.r.fd, OTHER_IOVA, 4096, 0, -1), 0);
		take_down(&f.r);
		is_served();
	}
}

static void memory_that_goes_waits_for_no_other(void **state)
{
	struct hw_map map = { 3ull << 32, OTHER_IOVA, 4096, HW_MAP_HOST | HW_MAP_WRITE, 0 };
	struct far f;

	(void)state;
	far_open(&f);
	request(&f.r, HW_MAP, f.ctx, &map, sizeof(map));
	for (unsigned i = 0; i < 8; i++) {
		assert_int_equal(map_at(f.r.fd, OTHER_IOVA, 4096, 0, -1), 0);
		/* So that some of it is kept. */
		put(&f, (struct hw_sqe){ .op = HW_FILL, .u.copy = { 7, map.va, 4096 } });
		ring(&f);
		serve_until(&f, is_completed, always);
		put(&f, fill_far((f.tail + 1) * 0x0101010101010101));
		ring(&f);
		hear_question(f.r.fd);
		assert_int_equal(unmap_at(f.r.fd, OTHER_IOVA, 4096, 0), 0);
		answer_question(f.r.fd, FAR_IOVA);
		serve_until(&f, is_completed, is_filled);
	}
	take_down(&f.r);
}

/* Nor for what a run that used it reads elsewhere. */
static void memory_that_goes_waits_for_no_run(void **state)
{
	struct hw_map map = { 3ull << 32, OTHER_IOVA, 4096, HW_MAP_HOST | HW_MAP_WRITE, 0 };
	struct hw_sqe copy = { .op = HW_COPY, .u.copy = { FAR_VA, map.va, 4096 } };
	struct far f;
	void *other;
	int memory = make_memory(4096, &other);

	(void)state;
	far_open(&f);
	request(&f.r, HW_MAP, f.ctx, &map, sizeof(map));
	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(map_at(f.r.fd, OTHER_IOVA, 4096, 0, memory), 0);
		make_it_ask(&f, copy, VFU_DMA_READ);
		assert_int_equal(unmap_at(f.r.fd, OTHER_IOVA, 4096, 0), 0);
		assert_int_equal(completion(&f.r, 4096 + 1024, f.tail - 1).status, HW_ST_MAP);
		answer_question(f.r.fd, FAR_IOVA);
		request(&f.r, HW_QUEUE_RESET, (uint16_t)f.queue, NULL, 0);
		put(&f, fill_far((f.tail + 1) * 0x0101010101010101));
		ring(&f);
		serve_until(&f, is_completed, is_filled);
	}
	take_down(&f.r);
	munmap(other, 4096);
	close(memory);
}

/* As long as a client keeps an answer back, what it takes back is still in the server's address
 * space, which has to do for its neighbours. */
static void memory_that_goes_is_counted_until_it_is_gone(void **state)
{
	const uint64_t iova = 1ull << 40, bytes = 1ull << 39;
	int memory = make_memory(bytes, NULL);
	struct far mute, other;

	(void)state;
	far_open(&mute);
	far_open(&other);
	make_it_ask(&mute, copy_from_far(), VFU_DMA_READ);
	for (unsigned i = 0; i < 500; i++) {
		assert_int_equal(map_at(mute.r.fd, iova, bytes, 0, -1), 0);
		assert_int_equal(unmap_at(mute.r.fd, iova, bytes, 0), 0);
	}
	assert_int_equal(map_at(other.r.fd, iova, bytes, 0, memory), 0);
	answer_question(mute.r.fd, FAR_IOVA);
	serve_until(&mute, is_completed, always);
	take_down(&mute.r);
	take_down(&other.r);
	close(memory);
}

/* Who shares the card has its engine while a client keeps its own run waiting. */
static void a_client_that_does_not_answer_holds_up_no_other(void **state)
{
	struct hw_sqe fill = { .op = HW_FILL, .u.copy = { 5, NEAR_VA, 64 } };
	struct far mute, other;

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		far_open(&mute);
		far_open(&other);
		make_it_ask(&mute, i ? fill_far(1) : copy_from_far(),
			    i ? VFU_DMA_WRITE : VFU_DMA_READ);
		for (unsigned k = 0; k < 20; k++) {
			put(&other, fill);
			ring(&other);
			assert_int_equal(completion(&other.r, 4096 + 1024, k).status, 0);
		}
		/* And it goes on with its own. */
		answer_question(mute.r.fd, FAR_IOVA);
		serve_until(&mute, is_completed, always);
		take_down(&mute.r);
		take_down(&other.r);
	}
}

static void memory_without_a_descriptor_is_asked_for(void **state)
{
	struct rig r = { .page = far_memory, .memory = -1 };

	(void)state;
	memset(far_memory, 0, sizeof(far_memory));
	n_reads = n_writes = 0;
	r.fd = join();
	r.irq = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	assert_int_equal(map_at(r.fd, RIG_IOVA, 3 * 4096, 0, -1), 0);
	bring_up(&r);
	for (int i = 0; i < 40; i++) {
		const struct hw_cqe *cqe = (void *)(far_memory + 4096 + i % 16 * 32);
		struct pollfd p[2] = { { .fd = r.irq, .events = POLLIN },
				       { .fd = r.fd, .events = POLLIN } };

		put_identify(&r);
		post(&r, hw_doorbell(0), r.tail);
		while (!(p[0].revents & POLLIN)) {
			assert_true(poll(p, 2, 5000) > 0);
			if (p[0].revents)
				continue;
			hear_question(r.fd);
			answer_question(r.fd, RIG_IOVA);
		}
		/* Whatever the interrupt is about is there. */
		assert_int_equal(cqe->phase & 1, i / 16 % 2 == 0);
		assert_true(identified(&r));
	}
	assert_true(n_reads >= 80 && n_writes >= 80);
	close(r.fd);
	close(r.irq);
	is_served();
}

static void a_client_that_dies_while_asked_frees_the_device(void **state)
{
	struct far f;

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		far_open(&f);
		make_it_ask(&f, fill_far(1), i % 2 ? VFU_DMA_WRITE : VFU_DMA_READ);
		take_down(&f.r);
		is_served();
	}
}

static int start_for_two(void **state)
{
	(void)state;
	signal(SIGPIPE, SIG_IGN);
	return server_start_for(&server, 2, "10000");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(memory_without_a_descriptor_is_asked_for),
		cmocka_unit_test(what_is_told_of_has_arrived),
		cmocka_unit_test(what_is_being_sent_has_arrived),
		cmocka_unit_test(what_a_request_answers_has_arrived),
		cmocka_unit_test(what_a_trace_tells_of_has_arrived),
		cmocka_unit_test(what_a_reset_queue_wrote_has_arrived),
		cmocka_unit_test(what_a_semaphore_tells_of_is_read),
		cmocka_unit_test(what_stops_a_device_takes_its_writes_back),
		cmocka_unit_test(what_stops_a_device_lets_no_read_end_well),
		cmocka_unit_test(what_a_client_refuses_is_not_done),
		cmocka_unit_test(what_a_client_refuses_fails),
		cmocka_unit_test(memory_that_goes_takes_its_questions_along),
		cmocka_unit_test(memory_that_goes_takes_later_questions_along),
		cmocka_unit_test(memory_that_goes_waits_for_no_word),
		cmocka_unit_test(memory_that_goes_waits_for_no_other),
		cmocka_unit_test(memory_that_goes_waits_for_no_run),
		cmocka_unit_test(memory_that_goes_is_counted_until_it_is_gone),
		cmocka_unit_test(a_client_that_does_not_answer_holds_up_no_other),
		cmocka_unit_test(memory_that_comes_waits_for_no_answer),
		cmocka_unit_test(a_client_that_dies_while_asked_frees_the_device),
	};

	return cmocka_run_group_tests(tests, start_for_two, stop_server);
}
