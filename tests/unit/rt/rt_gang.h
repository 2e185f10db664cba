/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_UNIT_RT_GANG_H
#define TESTS_UNIT_RT_GANG_H
/*
 * Programs for several members that meet, written by hand, and how they are loaded: for tests of
 * launches on several devices.
 *
 *	load(&gang, 3, (const unsigned[]){ 5, 0, 7 }, IN_PLACE);
 *
 * All take one array, f32[ELEMENTS], and give two: the sum of all members' arrays, and the
 * member's number, u32[1].
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <pthread.h>

#include "hal/hw/isa.h"
#include "runtime/compile_options.pb-c.h"
#include "runtime/rt_internal.h"
#include "tests/unit/ring.h"

enum { N = 8, ELEMENTS = 96, BYTES = 4 * ELEMENTS };

static struct rt_client *client;	/* of N linked devices */

/* For a group of tests, which has to end within so many seconds. */
static inline int start_client(const char *devices, unsigned seconds)
{
	struct rt_client_options o = { .devices = devices };
	struct err err;

	alarm(seconds);	/* a deadlock ends the test, not the day */
	setenv("TESSERA_CACHE", "off", 1);
	if (!rt_client_create(&o, &client, &err))
		return 0;
	fprintf(stderr, "%s\n", err.msg);
	return -1;
}

static inline int stop_devices(void **state)
{
	(void)state;
	rt_client_unref(client);
	return 0;
}

/* ---- programs ---- */

/* Bindings. Peers follow, one for each of the others; then the member's row. */
enum { WINDOWS = 8 };	/* so many windows of another a device can see, old ones included */
enum { ARG = 2, SUM, WHO, BOX, PEERS };
/* Where the sum lies in its argument's memory there is no SUM. */
enum { IN_PLACE = 1, ALONE = 2,
       REPLICAS = 4,	/* instead of partitions; they say how they meet */
       APART = 8 };	/* compiled apart: its members have numbers 100 higher */

/* In a mailbox. */
enum { ARRIVED = 0, FREE = 64, RUN = 128, SLOTS = 4096 };

static inline void rwait(struct ring_code *c, unsigned box, int64_t at, int64_t more)
{
	ring_alui(c, ISA_ALU_ADD, RING_R_T, RING_R_WANT, more);
	ring_scalar(c, ISA_RWAIT, (struct isa_scalar){ .elem = ELEM_U64,
		.binding = (uint16_t)box, .rb = RING_R_T, .imm = at });
}

static inline void put(struct ring_code *c, unsigned from, unsigned peer, uint64_t to)
{
	ring_copy(c, ISA_RPUT, from, 0, peer, to, ELEMENTS);
	ring_rsig(c, peer, ARRIVED);
}

/* sum = from + a slot of the mailbox */
static inline void add(struct ring_code *c, unsigned sum, unsigned from, unsigned box,
		       uint64_t slot)
{
	struct {
		struct isa_tensor t;
		struct isa_operand op[3];
		struct isa_uop add;
	} v = { .t = { .insn = { .op = ISA_VEC, .bytes = sizeof(v) },
		       .body = { .rank = 1, .n_in = 2, .n_out = 1, .n_uop = 1 } },
		.add = { .op = UOP_ADD, .elem = ELEM_F32, .a = 0, .b = 1 } };

	for (unsigned d = 0; d < ISA_MAX_RANK; d++)
		v.t.body.dim[d] = 1;
	v.t.body.dim[0] = ELEMENTS;
	v.op[0] = (struct isa_operand){ .elem = ELEM_F32, .binding = (uint16_t)from,
					.stride = { 4 } };
	v.op[1] = (struct isa_operand){ .elem = ELEM_F32, .binding = (uint16_t)box,
					.offset = (int64_t)slot, .stride = { 4 } };
	v.op[2] = (struct isa_operand){ .elem = ELEM_F32, .binding = (uint16_t)sum,
					.stride = { 4 }, .value = 2 };
	ring_put(c, &v, sizeof(v));
}

/* Everybody sends its argument to everybody, and adds what it gets; who = its number. */
static inline void meet(struct ring_code *c, unsigned n, unsigned sum, unsigned box)
{
	unsigned who = box - 1, peers = box + 1;

	c->bytes = 0;
	ring_scalar(c, ISA_LI, (struct isa_scalar){ .rd = RING_R_ONE, .imm = 1 });
	ring_scalar(c, ISA_LD, (struct isa_scalar){ .rd = RING_R_RUN, .elem = ELEM_U64,
		.binding = (uint16_t)box, .imm = RUN });
	ring_alui(c, ISA_ALU_MUL, RING_R_WANT, RING_R_RUN, n - 1);
	rwait(c, box, FREE, 0);
	/* Slot k leads to the member k + 1 further on, who sees us in its slot n - 2 - k. */
	for (unsigned k = 0; k + 1 < n; k++)
		put(c, ARG, peers + k, SLOTS + (n - 2 - k) * BYTES);
	rwait(c, box, ARRIVED, n - 1);
	for (unsigned k = 0; k + 1 < n; k++)
		add(c, sum, k ? sum : ARG, box, SLOTS + k * BYTES);
	for (unsigned k = 0; k + 1 < n; k++)
		ring_rsig(c, peers + k, FREE);
	ring_scalar(c, ISA_LD, (struct isa_scalar){ .rd = RING_R_T, .elem = ELEM_U64,
		.binding = (uint16_t)(peers + n - 1), .imm = 16 });
	ring_scalar(c, ISA_ST, (struct isa_scalar){ .rb = RING_R_T, .elem = ELEM_U32,
		.binding = (uint16_t)who });
	ring_alui(c, ISA_ALU_ADD, RING_R_RUN, RING_R_RUN, 1);
	ring_scalar(c, ISA_ST, (struct isa_scalar){ .rb = RING_R_RUN, .elem = ELEM_U64,
		.binding = (uint16_t)box, .imm = RUN });
	ring_scalar(c, ISA_HALT, (struct isa_scalar){ 0 });
}

/* Meets nobody: who = its number, and the sum is not written but lies in the argument. */
static inline void stay_alone(struct ring_code *c)
{
	c->bytes = 0;
	ring_scalar(c, ISA_LD, (struct isa_scalar){ .rd = RING_R_T, .elem = ELEM_U64,
		.binding = WHO, .imm = 16 });
	ring_scalar(c, ISA_ST, (struct isa_scalar){ .rb = RING_R_T, .elem = ELEM_U32,
		.binding = SUM });
	ring_scalar(c, ISA_HALT, (struct isa_scalar){ 0 });
}

/* Waits until the u64 that its argument begins with is not 0. */
static inline void wait_at_gate(struct ring_code *c)
{
	c->bytes = 0;
	ring_scalar(c, ISA_LI, (struct isa_scalar){ .rd = RING_R_ONE, .imm = 1 });
	ring_scalar(c, ISA_RWAIT, (struct isa_scalar){ .elem = ELEM_U64, .binding = ARG,
		.rb = RING_R_ONE });
	ring_scalar(c, ISA_HALT, (struct isa_scalar){ 0 });
}

/* A device assignment as framework's options: devices[replicas * partitions], by member. */
static inline size_t options_of(const unsigned *devices, unsigned replicas, unsigned partitions,
				uint8_t out[256])
{
	Rt__CompileOptions o = RT__COMPILE_OPTIONS__INIT;
	Rt__BuildOptions b = RT__BUILD_OPTIONS__INIT;
	Rt__DeviceAssignment a = RT__DEVICE_ASSIGNMENT__INIT;
	Rt__ComputationDevices part[N], *list[N];
	int64_t ids[N][N];

	for (unsigned p = 0; p < partitions; p++) {
		rt__computation_devices__init(&part[p]);
		for (unsigned r = 0; r < replicas; r++)
			ids[p][r] = devices[r * partitions + p];
		part[p].n_replica_device_ids = replicas;
		part[p].replica_device_ids = ids[p];
		list[p] = &part[p];
	}
	a.n_computation_devices = partitions;
	a.computation_devices = list;
	b.device_assignment = &a;
	b.has_num_replicas = b.has_num_partitions = true;
	b.num_replicas = replicas;
	b.num_partitions = partitions;
	o.executable_build_options = &b;
	assert_in_range(rt__compile_options__get_packed_size(&o), 1, 256);
	return rt__compile_options__pack(&o, out);
}

/* Of one replica. */
static inline size_t options_for(const unsigned *devices, unsigned n, uint8_t out[256])
{
	return options_of(devices, 1, n, out);
}

/* An image as a program, in the form that rt_program_serialize writes. */
static inline struct rt_program *program_of(const struct image *im, const void *options, size_t n)
{
	struct {
		char magic[16], format[16];
		uint64_t image, source, options;
		char hash[64];
	} h = { .magic = "TESSERA-EXE-2\n", .format = "mlir", .options = n };
	struct rt_program *p;
	struct err err;
	char hex[65], *all;
	void *bytes;
	size_t n_bytes;

	if (image_write(im, &bytes, &n_bytes, &err))
		fail_msg("%s", err.msg);
	h.image = n_bytes;
	all = malloc(sizeof(h) + n_bytes + n);
	assert_non_null(all);
	memcpy(all + sizeof(h), bytes, n_bytes);
	memcpy(all + sizeof(h) + n_bytes, options, n);
	rt_hash(all + sizeof(h), n_bytes + n, hex);
	memcpy(h.hash, hex, 64);
	memcpy(all, &h, sizeof(h));
	if (rt_program_deserialize(all, sizeof(h) + n_bytes + n, &p, &err))
		fail_msg("%s", err.msg);
	free(bytes);
	free(all);
	return p;
}

static inline struct rt_program *make_program(unsigned n, const unsigned *devices, unsigned how)
{
	static _Thread_local struct ring_code c;
	const uint16_t both = HW_BIND_READ | HW_BIND_WRITE;
	struct image_binding b[PEERS + N + 2] = { { .kind = IMAGE_CONSTANTS },
						  { .kind = IMAGE_TEMP } };
	struct image_shape shapes[3] = {
		{ .elem = ELEM_F32, .rank = 1, .dim = { ELEMENTS } },
		{ .elem = ELEM_F32, .rank = 1, .dim = { ELEMENTS } },
		{ .elem = ELEM_U32, .rank = 1, .alias = -1, .dim = { 1 } },
	};
	uint32_t peers[N][N - 1], *row = &peers[0][0];
	const struct image_meeting meeting = { IMAGE_WHOLE, ELEM_F32, 0, 6, n * BYTES, 0, 0 };
	uint64_t rows[N][3], box = SLOTS + (n - 1) * BYTES;
	bool in_place = how & (IN_PLACE | ALONE), replicas = how & REPLICAS;
	struct image im = {
		.info = { .version = IMAGE_VERSION, .isa = ISA_VERSION, .n_args = 1,
			  .n_results = 2, .name = 1, .n_replicas = replicas ? n : 1,
			  .n_partitions = replicas ? 1 : n },
		.text = c.text, .bindings = b, .shapes = shapes, .members = &rows[0][0],
		.meetings = &meeting, .n_meetings = replicas, .n_words = 3,
		.strings = "\0gang\0all", .strings_bytes = 10, .note = "by hand",
	};
	uint8_t options[256];
	unsigned at = 2;

	shapes[0].alias = shapes[1].alias = in_place ? 0 : -1;
	b[at++] = (struct image_binding){ IMAGE_ARG, 0, both, 0, BYTES };
	if (!in_place)
		b[at++] = (struct image_binding){ IMAGE_RESULT, 0, both, 0, BYTES };
	b[at++] = (struct image_binding){ IMAGE_RESULT, 0, both, 1, 4 };
	if (how & ALONE) {
		stay_alone(&c);
	} else {
		meet(&c, n, in_place ? ARG : SUM, at);
		b[at++] = (struct image_binding){ IMAGE_MAILBOX, 0, both, 0, box };
		for (unsigned k = 0; k + 1 < n; k++)
			b[at++] = (struct image_binding){ IMAGE_PEER, 0,
				HW_BIND_WRITE | HW_BIND_PEER, k, box };
		im.peers = row;
		im.n_slots = n - 1;
	}
	b[at++] = (struct image_binding){ IMAGE_MEMBER, 0, HW_BIND_READ, 0, 24 };
	for (unsigned m = 0; m < n; m++) {
		rows[m][0] = replicas ? m : 0;
		rows[m][1] = replicas ? 0 : m;
		rows[m][2] = m + (how & APART ? 100 : 0);
		for (unsigned k = 0; k + 1 < n; k++)
			*row++ = (m + 1 + k) % n;
	}
	im.text_bytes = c.bytes;
	im.n_bindings = at;
	return program_of(&im, options, options_of(devices, im.info.n_replicas,
						   im.info.n_partitions, options));
}

static inline void load(struct rt_gang *g, unsigned n, const unsigned *devices, unsigned how)
{
	struct rt_program *p = make_program(n, devices, how);
	struct err err;

	if (rt_load_gang(client, p, NULL, 0, g, &err))
		fail_msg("%s", err.msg);
	assert_int_equal(g->n, n);
	rt_program_unref(p);
}

/* A program of one device that waits for its argument to be written to. */
static inline struct rt_exe *load_gate(unsigned device)
{
	static _Thread_local struct ring_code c;
	struct image_binding b[3] = { { .kind = IMAGE_CONSTANTS }, { .kind = IMAGE_TEMP },
		{ IMAGE_ARG, 0, HW_BIND_READ, 0, 8 } };
	struct image_shape shape = { .elem = ELEM_U64, .rank = 1, .alias = -1, .dim = { 1 } };
	struct image im = {
		.info = { .version = IMAGE_VERSION, .isa = ISA_VERSION, .n_args = 1, .name = 1,
			  .n_replicas = 1, .n_partitions = 1 },
		.text = c.text, .bindings = b, .n_bindings = 3, .shapes = &shape,
		.strings = "\0gate", .strings_bytes = 6, .note = "by hand",
	};
	struct rt_program *p;
	struct rt_exe *x;
	uint8_t options[256];
	struct err err;

	wait_at_gate(&c);
	im.text_bytes = c.bytes;
	p = program_of(&im, options, options_for(&device, 1, options));
	if (rt_load(client, p, NULL, 0, &x, &err))
		fail_msg("%s", err.msg);
	rt_program_unref(p);
	return x;
}

#endif
