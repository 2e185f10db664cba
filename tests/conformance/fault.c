/* SPDX-License-Identifier: Apache-2.0 */
/* Faults: each with its full record, and nobody else the worse for it. */
#include "tests/conformance/conf.h"

#define IN(word) EXPECT(c, strstr(c->err.msg, word))

/* Runs `code`, which must fault with this code and a text holding `name`; a good
 * program works afterwards. */
static void fault(struct conf *c, const struct isa_scalar *code, size_t n, int wanted,
		  const char *name)
{
	struct hal_exe *bad = conf_load(c, code, n, 0, 64), *good = conf_load_store(c);
	struct hal_mem *out = conf_get(c, 64);
	uint64_t value = conf_run(c, bad, out, 0), x = 0;

	REFUSED(c, wanted, name, hal_queue_wait(c->compute, value, SOON, &c->err));
	IN("checked");
	EXPECT(c, hal_queue_error(c->compute, value, &c->err) == wanted);
	value = conf_run(c, good, out, 0);
	OK(c, hal_queue_wait(c->compute, value, SOON, &c->err));
	OK(c, hal_copy_out(&x, out, 0, 8, SOON, &c->err));
	EXPECT(c, x == 42);
	hal_exe_unload(bad);
	hal_exe_unload(good);
	hal_mem_free(out);
}

void check_bounds_fault_has_a_full_record(struct conf *c)
{
	struct hal_exe *exe = conf_load_stray(c);
	struct hal_mem *out = conf_get(c, 8), *next = conf_get(c, 8192);
	uint64_t value, x = 0;

	OK(c, hal_queue_fill(c->dma, next, 0, 8192, 0, &value, &c->err));
	OK(c, hal_queue_wait(c->dma, value, SOON, &c->err));
	value = conf_run(c, exe, out, 0);
	REFUSED(c, ERR_INVALID_ARGUMENT, "BOUNDS",
		hal_queue_wait(c->compute, value, SOON, &c->err));
	IN("checked");
	IN("st at 0x18");
	IN("doing");
	IN("here:1");
	IN("binding 2");
	IN("0x1000");
	/* The memory beside it was not touched. */
	for (uint64_t at = 0; at < 8192; at += 8) {
		OK(c, hal_copy_out(&x, next, at, 8, SOON, &c->err));
		EXPECT(c, !x);
	}
	hal_exe_unload(exe);
	hal_mem_free(out);
	hal_mem_free(next);
}

void check_bounds_hold_at_both_ends(struct conf *c)
{
	static const int64_t at[] = { 64, 57, -1, -8, INT64_MAX, INT64_MIN, 1ll << 48 };

	for (size_t i = 0; i < COUNT(at); i++) {
		const struct isa_scalar code[] = {
			{ INSN(LI), .rd = 1, .imm = at[i] & ~7ll },
			{ INSN(LD), .rd = 2, .ra = 1, .elem = ELEM_S64, .binding = 2 },
			{ INSN(HALT) },
		};

		if (at[i] == 57)
			continue;
		fault(c, code, COUNT(code), ERR_INVALID_ARGUMENT, "BOUNDS");
	}
}

void check_misaligned_access_faults(struct conf *c)
{
	static const struct isa_scalar code[] = {
		{ INSN(LI), .rd = 1, .imm = 4 },
		{ INSN(LD), .rd = 2, .ra = 1, .elem = ELEM_S64, .binding = 2 },
		{ INSN(HALT) },
	};

	fault(c, code, COUNT(code), ERR_INVALID_ARGUMENT, "ALIGNMENT");
}

void check_call_stack_ends_in_a_fault(struct conf *c)
{
	static const struct isa_scalar deep[] = { { INSN(CALL), .imm = 0 }, { INSN(HALT) } };
	static const struct isa_scalar empty[] = { { INSN(RET) }, { INSN(HALT) } };

	fault(c, deep, COUNT(deep), ERR_INVALID_ARGUMENT, "STACK");
	fault(c, empty, COUNT(empty), ERR_INVALID_ARGUMENT, "STACK");
}

void check_running_past_the_end_faults(struct conf *c)
{
	static const struct isa_scalar code[] = { { INSN(LI), .rd = 1, .imm = 1 } };

	fault(c, code, COUNT(code), ERR_INVALID_ARGUMENT, "PC");
}

void check_a_trap_tells_its_number(struct conf *c)
{
	static const struct isa_scalar code[] = { { INSN(TRAP), .imm = 0x1234 }, { INSN(HALT) } };

	fault(c, code, COUNT(code), ERR_INTERNAL, "PROGRAM_TRAP");
	fault(c, code, COUNT(code), ERR_INTERNAL, "1234");
}

void check_the_watchdog_stops_an_endless_program(struct conf *c)
{
	struct hal_exe *exe = conf_load_spin(c);
	struct hal_mem *out = conf_get(c, 8);
	int64_t began = clock_ns(), took;
	uint64_t value = conf_run(c, exe, out, 20 * MS);

	REFUSED(c, ERR_DEADLINE_EXCEEDED, "WATCHDOG",
		hal_queue_wait(c->compute, value, SOON, &c->err));
	took = clock_ns() - began;
	EXPECT(c, took >= 20 * MS && took < 5 * SECOND);
	IN("checked");
	IN("jmp at 0x0");
	IN("here:1");
	hal_exe_unload(exe);
	hal_mem_free(out);
}

void check_a_binding_outside_memory_faults(struct conf *c)
{
	struct hal_exe *exe = conf_load_store(c);
	struct hal_mem *all, *m = conf_get(c, 64);
	struct hal_mem_stats s;
	uint64_t bad[4], value;

	hal_mem_stats(c->dev, HAL_MEM_HBM, &s);
	all = conf_get(c, s.largest_free_bytes);
	bad[0] = 64;
	bad[1] = hal_mem_va(all) + s.limit_bytes;
	bad[2] = 1ull << 63;
	bad[3] = UINT64_MAX - 63;
	for (size_t i = 0; i < COUNT(bad); i++) {
		struct hw_binding b[3] = { [2] = { bad[i], 64 } };
		struct hal_launch l = { .exe = exe, .bindings = b };

		OK(c, hal_queue_execute(c->compute, &l, &value, &c->err));
		REFUSED(c, ERR_INVALID_ARGUMENT, "MAP",
			hal_queue_wait(c->compute, value, SOON, &c->err));
	}
	value = conf_run(c, exe, m, 0);
	OK(c, hal_queue_wait(c->compute, value, SOON, &c->err));
	hal_exe_unload(exe);
	hal_mem_free(all);
	hal_mem_free(m);
}

void check_bindings_that_do_not_fit_are_refused(struct conf *c)
{
	struct hal_exe *exe = conf_load_store(c);
	struct hal_mem *m = conf_get(c, 256);
	struct hw_binding b[3] = { [2] = { hal_mem_va(m), 7 } };
	struct hal_launch l = { .exe = exe, .bindings = b };
	uint64_t value;

	REFUSED(c, ERR_INVALID_ARGUMENT, "binding 2",
		hal_queue_execute(c->compute, &l, &value, &c->err));
	b[2] = (struct hw_binding){ hal_mem_va(m) + 8, 64 };
	REFUSED(c, ERR_INVALID_ARGUMENT, "multiple of 64",
		hal_queue_execute(c->compute, &l, &value, &c->err));
	b[2] = (struct hw_binding){ hal_mem_va(m), 0 };
	REFUSED(c, ERR_INVALID_ARGUMENT, "needs 8 bytes",
		hal_queue_execute(c->compute, &l, &value, &c->err));
	hal_exe_unload(exe);
	hal_mem_free(m);
}

/* One at fault, some behind it, and another queue with work of its own. */
void check_only_the_faulting_queue_notices(struct conf *c)
{
	struct hal_exe *bad = conf_load_stray(c), *good = conf_load_count(c);
	struct hal_exe *spin = conf_load_spin(c);
	struct hal_mem *out = conf_get(c, 8), *m = conf_get(c, 65536);
	uint64_t copies[40], behind[5], at, value, x;
	uint8_t *bytes = conf_room(c, 65536);

	OK(c, hal_queue_fill(c->dma, m, 0, 65536, 0, &value, &c->err));
	OK(c, hal_queue_fill(c->dma, out, 0, 8, 0, &value, &c->err));
	OK(c, hal_queue_wait(c->dma, value, SOON, &c->err));
	/* Holds the queue until all the others are in it, on a slow and busy machine too. */
	conf_run(c, spin, out, 300 * MS);
	for (uint64_t i = 0; i < 20; i++)
		OK(c, hal_queue_fill(c->dma, m, i * 1000, 2000, i, &copies[i], &c->err));
	at = conf_run(c, bad, out, 0);
	for (int i = 0; i < 5; i++)
		behind[i] = conf_run(c, good, out, 0);
	for (uint64_t i = 20; i < 40; i++)
		OK(c, hal_queue_fill(c->dma, m, i * 1000, 2000, i, &copies[i], &c->err));
	for (int i = 0; i < 5; i++)
		REFUSED(c, ERR_ABORTED, "WATCHDOG",
			hal_queue_wait(c->compute, behind[i], SOON, &c->err));
	REFUSED(c, ERR_ABORTED, "checked", hal_queue_error(c->compute, at, &c->err));
	for (int i = 0; i < 40; i++) {
		OK(c, hal_queue_wait(c->dma, copies[i], SOON, &c->err));
		OK(c, hal_queue_error(c->dma, copies[i], &c->err));
	}
	OK(c, hal_copy_out(bytes, m, 0, 65536, SOON, &c->err));
	see(c, bytes, 65536);
	OK(c, hal_copy_out(&x, out, 0, 8, SOON, &c->err));
	EXPECT(c, !x);
	value = conf_run(c, good, out, 0);
	OK(c, hal_queue_wait(c->compute, value, SOON, &c->err));
	hal_exe_unload(bad);
	hal_exe_unload(good);
	hal_exe_unload(spin);
	hal_mem_free(out);
	hal_mem_free(m);
	free(bytes);
}

/* Work of the other queue that waits for what failed is not stuck. */
void check_who_waits_for_a_failure_goes_on(struct conf *c)
{
	struct hal_exe *bad = conf_load_stray(c), *good = conf_load_count(c);
	struct hal_mem *out = conf_get(c, 8), *m = conf_get(c, 64);
	uint64_t value, aborted;

	for (int i = 0; i < 30; i++) {
		struct hal_after after = { c->compute, conf_run(c, bad, out, 0) };

		aborted = conf_run(c, good, out, 0);
		OK(c, hal_queue_copy(c->dma, m, 0, m, 0, 64, &after, 1, &value, &c->err));
		OK(c, hal_queue_wait(c->dma, value, SOON, &c->err));
		after.value = aborted;
		OK(c, hal_queue_copy(c->dma, m, 0, m, 0, 64, &after, 1, &value, &c->err));
		OK(c, hal_queue_wait(c->dma, value, SOON, &c->err));
		EXPECT(c, hal_queue_error(c->compute, after.value, NULL) == ERR_ABORTED ||
			  !hal_queue_error(c->compute, after.value, NULL));
	}
	hal_exe_unload(bad);
	hal_exe_unload(good);
	hal_mem_free(out);
	hal_mem_free(m);
}

void check_errors_are_kept_for_later(struct conf *c)
{
	struct hal_exe *bad = conf_load_stray(c), *good = conf_load_store(c);
	struct hal_mem *out = conf_get(c, 8);
	uint64_t failed[60], passed[60];

	for (int i = 0; i < 60; i++) {
		failed[i] = conf_run(c, bad, out, 0);
		EXPECT(c, hal_queue_wait(c->compute, failed[i], SOON, NULL));
		passed[i] = conf_run(c, good, out, 0);
		OK(c, hal_queue_wait(c->compute, passed[i], SOON, &c->err));
	}
	for (int i = 0; i < 60; i++) {
		REFUSED(c, ERR_INVALID_ARGUMENT, "BOUNDS",
			hal_queue_error(c->compute, failed[i], &c->err));
		OK(c, hal_queue_error(c->compute, passed[i], &c->err));
	}
	hal_exe_unload(bad);
	hal_exe_unload(good);
	hal_mem_free(out);
}

struct notice {
	int calls, code;
	char msg[ERR_MSG_BYTES];
};

static void note(void *arg, const struct err *err)
{
	struct notice *n = arg;

	n->code = err ? err->code : 0;
	if (err)
		memcpy(n->msg, err->msg, sizeof(n->msg));
	__atomic_fetch_add(&n->calls, 1, __ATOMIC_ACQ_REL);
}

void check_notices_carry_the_error(struct conf *c)
{
	struct hal_exe *spin = conf_load_spin(c), *good = conf_load_store(c);
	struct hal_mem *out = conf_get(c, 8);
	struct notice *n = conf_room(c, 2 * sizeof(*n));
	int64_t until = SOON;
	uint64_t a, b;

	a = conf_run(c, spin, out, 20 * MS);
	b = conf_run(c, good, out, 0);
	OK(c, hal_queue_notify(c->compute, b, note, &n[1], &c->err));
	OK(c, hal_queue_notify(c->compute, a, note, &n[0], &c->err));
	while ((!__atomic_load_n(&n[0].calls, __ATOMIC_ACQUIRE) ||
		!__atomic_load_n(&n[1].calls, __ATOMIC_ACQUIRE)) && clock_ns() < until)
		;
	EXPECT(c, n[0].calls == 1 && n[1].calls == 1);
	EXPECT(c, n[0].code == ERR_DEADLINE_EXCEEDED && strstr(n[0].msg, "jmp"));
	EXPECT(c, n[1].code == ERR_ABORTED && strstr(n[1].msg, "WATCHDOG"));
	free(n);
	hal_exe_unload(spin);
	hal_exe_unload(good);
	hal_mem_free(out);
}

/* ---- injected ones ---- */

void check_poisoned_memory_is_reported_and_healed(struct conf *c)
{
	struct hal_mem_stats s;
	struct hal_mem *all, *host = conf_get_of(c, c->dev, HAL_MEM_HOST, 8192);
	uint64_t at = 1 << 20, value;

	hal_mem_stats(c->dev, HAL_MEM_HBM, &s);
	if (s.bytes_in_use)
		conf_fail(c, "HBM is not empty");
	/* The block is all of HBM: offsets in it are the device's. */
	all = conf_get(c, s.largest_free_bytes);
	OK(c, hal_queue_fill(c->dma, all, at, 8192, 9, &value, &c->err));
	OK(c, hal_queue_wait(c->dma, value, SOON, &c->err));
	OK(c, conf_inject(c, HW_INJECT_POISON, at));
	OK(c, hal_queue_copy(c->dma, host, 0, all, at, 8192, NULL, 0, &value, &c->err));
	REFUSED(c, ERR_DATA_LOSS, "POISON", hal_queue_wait(c->dma, value, SOON, &c->err));
	OK(c, hal_queue_copy(c->dma, host, 0, all, at + 4096, 4096, NULL, 0, &value, &c->err));
	OK(c, hal_queue_wait(c->dma, value, SOON, &c->err));
	/* Overwriting the whole page heals it. */
	OK(c, hal_queue_fill(c->dma, all, at, 4096, 5, &value, &c->err));
	OK(c, hal_queue_copy(c->dma, host, 0, all, at, 8192, NULL, 0, &value, &c->err));
	OK(c, hal_queue_wait(c->dma, value, SOON, &c->err));
	see(c, hal_mem_host(host), 8192);
	hal_mem_free(all);
	hal_mem_free(host);
}

void check_lost_interrupts_lose_no_work(struct conf *c)
{
	struct hal_exe *spin = conf_load_spin(c);
	struct hal_mem *out = conf_get(c, 8);
	uint64_t value;

	OK(c, conf_inject(c, HW_INJECT_DROP_IRQ, 3));
	for (int i = 0; i < 4; i++) {
		value = conf_run(c, spin, out, 5 * MS);
		EXPECT(c, hal_queue_wait(c->compute, value, SOON, NULL) ==
			  ERR_DEADLINE_EXCEEDED);
	}
	hal_exe_unload(spin);
	hal_mem_free(out);
}

void check_corrected_errors_disturb_nobody(struct conf *c)
{
	struct hal_exe *exe = conf_load_store(c);
	struct hal_mem *out = conf_get(c, 8);
	uint64_t value;

	OK(c, conf_inject(c, HW_INJECT_ECC_CORRECTED, 1000));
	value = conf_run(c, exe, out, 0);
	OK(c, hal_queue_wait(c->compute, value, SOON, &c->err));
	REFUSED(c, ERR_INVALID_ARGUMENT, "", conf_inject(c, 99, 0));
	/* The kernel driver's card may have more than we. */
	REFUSED(c, ERR_INVALID_ARGUMENT, "",
		conf_inject(c, HW_INJECT_POISON, c->info.kind == HAL_KIND_ACCEL ?
			    1ull << 62 : c->info.hbm_bytes));
	OK(c, hal_device_error(c->dev, &c->err));
	hal_exe_unload(exe);
	hal_mem_free(out);
}
