/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_SIM_VEC_H
#define TESTS_SIM_VEC_H
/*
 * Runs a single tensor instruction on the model's core, without queues: builds the
 * program from its parts, loads it, binds memory, runs it. For the tests of the
 * vector unit.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "hal/sim/sim_internal.h"

struct vt {
	struct sim *sim;
	struct sim_core core;
};

static inline bool vt_open(struct vt *t, const char *path, unsigned lanes)
{
	struct err err = { 0 };

	if (!strcmp(path, "avx2") && !__builtin_cpu_supports("avx2"))
		return false;
	if (!strcmp(path, "avx512") && !__builtin_cpu_supports("avx512bw"))
		return false;
	assert_int_equal(sim_create(&(struct sim_options){
		.n_devices = 1, .lanes = lanes, .isa_path = path }, &t->sim, &err), 0);
	assert_int_equal(sim_core_init(&t->core, &t->sim->cpu, t->sim->pool,
				       &sim_device(t->sim, 0)->watch), 0);
	return true;
}

static inline void vt_close(struct vt *t)
{
	sim_core_free(&t->core);
	sim_destroy(t->sim);
}

/* Pulls the vector unit out of the library. */
static const struct sim_family *const vt_family __attribute__((used)) =
	&sim_family_tensor;

/* One memory: its bytes are exactly what the program may touch. */
struct vt_mem { void *p; uint64_t bytes; };

struct vt_insn {
	struct isa_tensor head;
	struct isa_operand op[ISA_MAX_IN + ISA_MAX_OUT];
	struct isa_uop uop[ISA_MAX_VALUES];
};

/* Lays the parts out as in memory; returns bytes. Room: sizeof(struct vt_insn). */
static inline size_t vt_encode(const struct vt_insn *in, void *room)
{
	const struct isa_body *b = &in->head.body;
	size_t ops = (b->n_in + b->n_out) * sizeof(in->op[0]);
	size_t uops = b->n_uop * sizeof(in->uop[0]), bytes = sizeof(in->head) + ops + uops;
	struct isa_tensor head = in->head;

	head.insn.bytes = (uint32_t)bytes;
	memcpy(room, &head, sizeof(head));
	memcpy((char *)room + sizeof(head), in->op, ops);
	memcpy((char *)room + sizeof(head) + ops, in->uop, uops);
	return bytes;
}

/* Loads and runs code; 0 or a status. */
static inline int vt_run_code(struct vt *t, const void *code, size_t bytes,
			      const struct vt_mem *mem, unsigned n_mem, struct sim_run *run)
{
	struct hw_program_binding bind[64] = { 0 };
	struct sim_program *p;
	atomic_bool stop = false;
	uint64_t detail;
	int status;

	for (unsigned i = 0; i < n_mem; i++)
		bind[i] = (struct hw_program_binding){ .bytes = mem[i].bytes,
			.access = HW_BIND_READ | HW_BIND_WRITE };
	status = sim_program_load(&t->sim->cpu, code, bytes, bind, n_mem, &p, &detail);
	if (status)
		return status;
	for (unsigned i = 0; i < n_mem; i++) {
		t->core.base[i] = mem[i].p;
		t->core.bytes[i] = mem[i].bytes;
	}
	memset(run, 0, sizeof(*run));
	status = sim_core_run(&t->core, p, &stop, run);
	sim_program_free(p);
	/* there is no halt: the program runs past its end, as it should here */
	return status == HW_ST_PC ? 0 : status;
}

/* An instruction alone. */
static inline int vt_run(struct vt *t, const struct vt_insn *in, const struct vt_mem *mem,
			 unsigned n_mem, struct sim_run *run)
{
	static _Thread_local uint64_t code[sizeof(struct vt_insn) / 8 + 16];

	return vt_run_code(t, code, vt_encode(in, code), mem, n_mem, run);
}

static inline uint32_t vt_random(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(*seed >> 33);
}

static inline struct isa_uop vt_uop(unsigned op, unsigned elem, unsigned a, unsigned b,
				    unsigned c)
{
	return (struct isa_uop){ .op = (uint8_t)op, .elem = (uint8_t)elem, .a = (uint8_t)a,
				 .b = (uint8_t)b, .c = (uint8_t)c };
}

#endif
