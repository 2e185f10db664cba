/* SPDX-License-Identifier: Apache-2.0 */
/* Resets, recovery, and what keeps one device's users from another's. */
#include <sched.h>

#include "tests/conformance/conf.h"

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

static void await_notice(struct conf *c, struct notice *n)
{
	int64_t until = SOON;

	while (!__atomic_load_n(&n->calls, __ATOMIC_ACQUIRE) && clock_ns() < until)
		sched_yield();
	EXPECT(c, n->calls == 1);
}

static uint64_t read_u64(struct conf *c, struct hal_mem *m)
{
	uint64_t x;

	OK(c, hal_copy_out(&x, m, 0, 8, SOON, &c->err));
	return x;
}

static void count_on(struct conf *c, struct hal_exe *exe, struct hal_mem *m, uint64_t from)
{
	uint64_t value;

	OK(c, hal_copy_in(m, 0, &from, 8, SOON, &c->err));
	value = conf_run(c, exe, m, 0);
	OK(c, hal_queue_wait(c->compute, value, SOON, &c->err));
	EXPECT(c, read_u64(c, m) == from + 1);
}

/* ---- a queue ---- */

void check_queue_reset_ends_what_is_pending(struct conf *c)
{
	struct hal_exe *spin = conf_load_spin(c), *count = conf_load_count(c);
	struct hal_mem *out = conf_get(c, 8), *m = conf_get(c, 64);
	uint64_t done, running, behind[10], copied;
	struct notice *n = conf_room(c, sizeof(*n));

	count_on(c, count, out, 7);
	done = conf_run(c, count, out, 0);
	running = conf_run(c, spin, out, 0);
	for (int i = 0; i < 10; i++)
		behind[i] = conf_run(c, count, out, 0);
	OK(c, hal_queue_wait(c->compute, done, SOON, &c->err));
	OK(c, hal_queue_notify(c->compute, behind[3], note, n, &c->err));
	OK(c, hal_queue_fill(c->dma, m, 0, 64, 3, &copied, &c->err));
	OK(c, hal_queue_reset(c->compute, "because it is tested", &c->err));
	OK(c, hal_queue_wait(c->compute, done, SOON, &c->err));
	REFUSED(c, ERR_ABORTED, "because it is tested",
		hal_queue_wait(c->compute, running, SOON, &c->err));
	for (int i = 0; i < 10; i++)
		REFUSED(c, ERR_ABORTED, "because it is tested",
			hal_queue_wait(c->compute, behind[i], SOON, &c->err));
	await_notice(c, n);
	EXPECT(c, n->code == ERR_ABORTED && strstr(n->msg, "because it is tested"));
	OK(c, hal_queue_wait(c->dma, copied, SOON, &c->err));
	/* Nothing of what was dropped ran, and the queue works on. */
	EXPECT(c, read_u64(c, out) == 9);
	count_on(c, count, out, 9);
	free(n);
	hal_exe_unload(spin);
	hal_exe_unload(count);
	hal_mem_free(out);
	hal_mem_free(m);
}

void check_queue_resets_while_idle_change_nothing(struct conf *c)
{
	struct hal_exe *count = conf_load_count(c);
	struct hal_mem *out = conf_get(c, 8);

	for (uint64_t i = 0; i < 30; i++) {
		OK(c, hal_queue_reset(i & 1 ? c->compute : c->dma, "idle", &c->err));
		count_on(c, count, out, i);
	}
	hal_exe_unload(count);
	hal_mem_free(out);
}

/* Resets of one queue, again and again, while the other computes. */
void check_queue_resets_do_not_reach_the_other(struct conf *c)
{
	struct hal_exe *spin = conf_load_spin(c);
	struct hal_mem *out = conf_get(c, 8), *m = conf_get(c, 100000);
	uint8_t *bytes = conf_room(c, 100000);
	uint64_t value = 0, first = 0;

	OK(c, hal_queue_fill(c->dma, m, 0, 100000, 0, &first, &c->err));
	for (uint64_t i = 0; i < 40; i++) {
		conf_run(c, spin, out, 0);
		OK(c, hal_queue_fill(c->dma, m, i * 900, 50000, i * 77, &value, &c->err));
		OK(c, hal_queue_copy(c->dma, m, 60000, m, i * 900, 30000, NULL, 0, &value,
				     &c->err));
		OK(c, hal_queue_reset(c->compute, "again", &c->err));
	}
	OK(c, hal_queue_wait(c->dma, value, SOON, &c->err));
	for (; first <= value; first++)
		OK(c, hal_queue_error(c->dma, first, &c->err));
	OK(c, hal_copy_out(bytes, m, 0, 100000, SOON, &c->err));
	see(c, bytes, 100000);
	hal_exe_unload(spin);
	hal_mem_free(out);
	hal_mem_free(m);
	free(bytes);
}

/* ---- the function ---- */

void check_function_reset_keeps_what_it_promises(struct conf *c)
{
	struct hal_exe *spin = conf_load_spin(c), *count = conf_load_count(c);
	struct hal_mem *out = conf_get(c, 8);
	struct hal_mem *host = conf_get_of(c, c->dev, HAL_MEM_HOST, 4096);
	struct hal_mem_stats before, after;
	uint64_t va = hal_mem_va(out), running, copied;
	struct notice *n = conf_room(c, sizeof(*n));

	hal_mem_stats(c->dev, HAL_MEM_HBM, &before);
	running = conf_run(c, spin, out, 0);
	OK(c, hal_queue_copy(c->dma, out, 0, out, 0, 8,
			     &(struct hal_after){ c->compute, running }, 1, &copied, &c->err));
	OK(c, hal_queue_notify(c->compute, running, note, n, &c->err));
	OK(c, hal_device_reset(c->dev, &c->err));
	REFUSED(c, ERR_ABORTED, "reset", hal_queue_wait(c->compute, running, SOON, &c->err));
	REFUSED(c, ERR_ABORTED, "reset", hal_queue_wait(c->dma, copied, SOON, &c->err));
	await_notice(c, n);
	EXPECT(c, n->code == ERR_ABORTED);
	/* Allocations and executables are as good as before; contents need not be. */
	hal_mem_stats(c->dev, HAL_MEM_HBM, &after);
	EXPECT(c, after.bytes_in_use == before.bytes_in_use && hal_mem_va(out) == va);
	count_on(c, count, out, 100);
	OK(c, hal_queue_fill(c->dma, out, 0, 8, 0x1111, &copied, &c->err));
	OK(c, hal_queue_copy(c->dma, host, 0, out, 0, 8, NULL, 0, &copied, &c->err));
	OK(c, hal_queue_wait(c->dma, copied, SOON, &c->err));
	EXPECT(c, *(uint64_t *)hal_mem_host(host) == 0x1111);
	free(n);
	hal_exe_unload(spin);
	hal_exe_unload(count);
	hal_mem_free(out);
	hal_mem_free(host);
}

void check_work_right_after_a_reset_is_good(struct conf *c)
{
	struct hal_exe *spin = conf_load_spin(c), *count = conf_load_count(c);
	struct hal_mem *out = conf_get(c, 8);

	for (uint64_t i = 0; i < 25; i++) {
		if (i % 2)
			conf_run(c, spin, out, 0);
		OK(c, hal_device_reset(c->dev, &c->err));
		OK(c, hal_device_error(c->dev, &c->err));
		count_on(c, count, out, i);
		count_on(c, count, out, i * 3);
	}
	hal_exe_unload(spin);
	hal_exe_unload(count);
	hal_mem_free(out);
}

void check_telemetry_starts_anew_after_a_reset(struct conf *c)
{
	struct hal_exe *count = conf_load_count(c);
	struct hal_mem *out = conf_get(c, 8);
	struct hw_telemetry before, after;

	for (uint64_t i = 0; i < 5; i++)
		count_on(c, count, out, i);
	conf_telemetry(c, &before);
	OK(c, hal_device_reset(c->dev, &c->err));
	conf_telemetry(c, &after);
	EXPECT(c, before.n_execute >= 5 && after.time_ns > before.time_ns);
	/* Where the kernel driver has the function, a context is reset: counters are all's. */
	if (c->info.kind == HAL_KIND_ACCEL)
		EXPECT(c, after.n_execute >= before.n_execute);
	else
		EXPECT(c, !after.n_execute && !after.n_insn);
	count_on(c, count, out, 1);
	before = after;
	conf_telemetry(c, &after);
	EXPECT(c, after.n_execute == before.n_execute + 1);
	hal_exe_unload(count);
	hal_mem_free(out);
}

/* ---- death ---- */

static void expect_death(struct conf *c, const char *first, struct hal_mem *m,
			 struct hal_exe *exe)
{
	struct hw_binding b[3] = { [2] = { hal_mem_va(m), 8 } };
	struct hal_launch l = { .exe = exe, .bindings = b };
	struct hw_telemetry t;
	struct hal_mem *other;
	struct hal_exe *loaded;
	uint64_t value;
	char x[8];

#define DEAD(call) REFUSED(c, ERR_UNAVAILABLE, first, call)
	DEAD(hal_device_error(c->dev, &c->err));
	DEAD(hal_mem_alloc(c->dev, HAL_MEM_HBM, 8, "x", &other, &c->err));
	DEAD(hal_mem_alloc(c->dev, HAL_MEM_HOST, 8, "x", &other, &c->err));
	DEAD(hal_copy_in(m, 0, x, 8, SOON, &c->err));
	DEAD(hal_copy_out(x, m, 0, 8, SOON, &c->err));
	DEAD(hal_queue_execute(c->compute, &l, &value, &c->err));
	DEAD(hal_queue_copy(c->dma, m, 0, m, 0, 8, NULL, 0, &value, &c->err));
	DEAD(hal_queue_fill(c->dma, m, 0, 8, 0, &value, &c->err));
	DEAD(hal_device_telemetry(c->dev, &t, &c->err));
	DEAD(hal_device_inject(c->dev, HW_INJECT_ECC_CORRECTED, 1, &c->err));
	DEAD(hal_exe_load(c->dev, x, 8, &loaded, &c->err));
	DEAD(hal_queue_reset(c->compute, "dead", &c->err));
#undef DEAD
}

void check_a_dead_device_fails_all_with_its_first_error(struct conf *c)
{
	struct hal_exe *spin = conf_load_spin(c), *count = conf_load_count(c);
	struct hal_mem *out = conf_get(c, 8);
	uint64_t running, behind, copied;
	struct notice *n = conf_room(c, 3 * sizeof(*n));
	char first[ERR_MSG_BYTES];
	int64_t began;

	running = conf_run(c, spin, out, 0);
	behind = conf_run(c, count, out, 0);
	OK(c, hal_queue_copy(c->dma, out, 0, out, 0, 8,
			     &(struct hal_after){ c->compute, behind }, 1, &copied, &c->err));
	OK(c, hal_queue_notify(c->compute, running, note, &n[0], &c->err));
	OK(c, hal_queue_notify(c->compute, behind, note, &n[1], &c->err));
	OK(c, hal_queue_notify(c->dma, copied, note, &n[2], &c->err));
	began = clock_ns();
	OK(c, conf_inject(c, HW_INJECT_FATAL, 0));
	/* The kernel driver has reset it already, and does not tell programs why. */
	REFUSED(c, ERR_UNAVAILABLE, c->info.kind == HAL_KIND_ACCEL ? "the device failed" : "fatal",
		hal_queue_wait(c->compute, running, SOON, &c->err));
	memcpy(first, c->err.msg, sizeof(first));
	REFUSED(c, ERR_UNAVAILABLE, first, hal_queue_wait(c->compute, behind, SOON, &c->err));
	REFUSED(c, ERR_UNAVAILABLE, first, hal_queue_wait(c->dma, copied, SOON, &c->err));
	for (int i = 0; i < 3; i++) {
		await_notice(c, &n[i]);
		EXPECT(c, n[i].code == ERR_UNAVAILABLE && !strcmp(n[i].msg, first));
	}
	expect_death(c, first, out, count);
	EXPECT(c, clock_ns() - began < 5 * SECOND);
	OK(c, hal_device_reset(c->dev, &c->err));
	OK(c, hal_device_error(c->dev, &c->err));
	count_on(c, count, out, 55);
	for (int i = 0; i < 3; i++)
		EXPECT(c, n[i].calls == 1);
	free(n);
	hal_exe_unload(spin);
	hal_exe_unload(count);
	hal_mem_free(out);
}

void check_death_is_noticed_while_idle(struct conf *c)
{
	struct hal_exe *count = conf_load_count(c);
	struct hal_mem *out = conf_get(c, 8);
	int64_t until = clock_after(5 * SECOND);

	OK(c, conf_inject(c, HW_INJECT_FATAL, 0));
	while (!hal_device_error(c->dev, &c->err) && clock_ns() < until)
		sched_yield();
	EXPECT(c, hal_device_error(c->dev, &c->err) == ERR_UNAVAILABLE);
	OK(c, hal_device_reset(c->dev, &c->err));
	count_on(c, count, out, 1);
	hal_exe_unload(count);
	hal_mem_free(out);
}

void check_a_device_dies_and_recovers_many_times(struct conf *c)
{
	struct hal_exe *count = conf_load_count(c);
	struct hal_mem *out = conf_get(c, 8);
	uint64_t value;

	for (uint64_t i = 0; i < 15; i++) {
		count_on(c, count, out, i);
		value = conf_run(c, count, out, 0);
		OK(c, conf_inject(c, HW_INJECT_FATAL, 0));
		/* It was done before, or died with the device; it does not hang. */
		if (hal_queue_wait(c->compute, value, SOON, &c->err))
			EXPECT(c, c->err.code == ERR_UNAVAILABLE);
		OK(c, hal_device_reset(c->dev, &c->err));
	}
	count_on(c, count, out, 1000);
	hal_exe_unload(count);
	hal_mem_free(out);
}

void check_closing_a_dead_device_is_quick(struct conf *c)
{
	struct hal_exe *spin = conf_load_spin(c);
	struct hal_mem *out = conf_get(c, 8);
	int64_t began;

	conf_run(c, spin, out, 0);
	OK(c, conf_inject(c, HW_INJECT_FATAL, 0));
	began = clock_ns();
	conf_close(c);
	EXPECT(c, clock_ns() - began < 4 * SECOND);
	OK(c, conf_open(c));
	hal_mem_free(conf_get(c, 64));
}

/* ---- isolation ---- */

void check_devices_share_no_memory(struct conf *c)
{
	struct hal_device *other = conf_open_other(c, 1);
	struct hal_mem *a = conf_get(c, 65536);
	struct hal_mem *b = conf_get_of(c, other, HAL_MEM_HBM, 65536);
	uint8_t *x = conf_bytes(c, 65536, 20), *y = conf_bytes(c, 65536, 21);
	uint8_t *got = conf_room(c, 65536);

	OK(c, hal_copy_in(a, 0, x, 65536, SOON, &c->err));
	OK(c, hal_copy_in(b, 0, y, 65536, SOON, &c->err));
	OK(c, hal_copy_out(got, a, 0, 65536, SOON, &c->err));
	EXPECT(c, !memcmp(got, x, 65536));
	see(c, got, 65536);
	OK(c, hal_copy_out(got, b, 0, 65536, SOON, &c->err));
	EXPECT(c, !memcmp(got, y, 65536));
	see(c, got, 65536);
	hal_mem_free(a);
	hal_device_close(other);
	free(x);
	free(y);
	free(got);
}

static const struct isa_scalar store[] = {
	{ INSN(LI), .rd = 1, .imm = 42 },
	{ INSN(ST), .rb = 1, .elem = ELEM_S64, .binding = 2 },
	{ INSN(HALT) },
};

/* Work on the other device while `harm` comes to this one. */
static void harm_one(struct conf *c, void (*harm)(struct conf *c, struct hal_mem *out))
{
	struct hal_device *other = conf_open_other(c, 1);
	struct hal_queue *q = hal_device_queue(other, HAL_QUEUE_DMA);
	struct hal_exe *exe = conf_load_on(c, other, store, COUNT(store), 0, 8);
	struct hal_mem *m = conf_get_of(c, other, HAL_MEM_HBM, 100000);
	struct hal_mem *mine = conf_get(c, 8);
	uint8_t *bytes = conf_room(c, 100000);
	uint64_t value, first;

	OK(c, hal_queue_fill(q, m, 0, 100000, 1, &first, &c->err));
	for (uint64_t i = 0; i < 60; i++) {
		OK(c, hal_queue_fill(q, m, i * 500, 60000, i * i, &value, &c->err));
		OK(c, hal_queue_copy(q, m, 70000, m, i * 500, 20000, NULL, 0, &value,
				     &c->err));
		if (i % 20 == 10)
			harm(c, mine);
	}
	OK(c, hal_queue_wait(q, value, SOON, &c->err));
	for (; first <= value; first++)
		OK(c, hal_queue_error(q, first, &c->err));
	value = conf_run_on(c, other, exe, m, 0);
	OK(c, hal_queue_wait(hal_device_queue(other, HAL_QUEUE_COMPUTE), value, SOON,
			     &c->err));
	OK(c, hal_device_error(other, &c->err));
	OK(c, hal_copy_out(bytes, m, 0, 100000, SOON, &c->err));
	see(c, bytes, 100000);
	hal_device_close(other);
	hal_mem_free(mine);
	free(bytes);
}

static void fault_here(struct conf *c, struct hal_mem *out)
{
	struct hal_exe *bad = conf_load_stray(c);
	uint64_t value = conf_run(c, bad, out, 0);

	EXPECT(c, hal_queue_wait(c->compute, value, SOON, NULL) == ERR_INVALID_ARGUMENT);
	hal_exe_unload(bad);
}

static void reset_here(struct conf *c, struct hal_mem *out)
{
	struct hal_exe *spin = conf_load_spin(c);

	conf_run(c, spin, out, 0);
	OK(c, hal_device_reset(c->dev, &c->err));
	hal_exe_unload(spin);
}

static void die_here(struct conf *c, struct hal_mem *out)
{
	struct hal_exe *spin = conf_load_spin(c);
	uint64_t value = conf_run(c, spin, out, 0);

	OK(c, conf_inject(c, HW_INJECT_FATAL, 0));
	EXPECT(c, hal_queue_wait(c->compute, value, SOON, NULL) == ERR_UNAVAILABLE);
	OK(c, hal_device_reset(c->dev, &c->err));
	hal_exe_unload(spin);
}

void check_faults_stay_on_their_device(struct conf *c)
{
	harm_one(c, fault_here);
}

void check_resets_stay_on_their_device(struct conf *c)
{
	harm_one(c, reset_here);
}

void check_death_stays_on_its_device(struct conf *c)
{
	harm_one(c, die_here);
}

/* An address of one device's memory means nothing to the other. */
void check_addresses_are_a_devices_own(struct conf *c)
{
	struct hal_device *other = conf_open_other(c, 1);
	struct hal_mem *host = conf_get_of(c, other, HAL_MEM_HOST, 4096);
	struct hal_mem *mine = conf_get_of(c, c->dev, HAL_MEM_HOST, 64 << 20);
	struct hw_copy_2d r = { hal_mem_va(host), hal_mem_va(mine), 64, 1, 1, 0, 0, 0, 0 };
	uint64_t value;

	memset(hal_mem_host(mine), 0x11, 64);
	memset(hal_mem_host(host), 0x77, 4096);
	OK(c, hal_queue_copy_2d(c->dma, &r, NULL, 0, &value, &c->err));
	hal_queue_wait(c->dma, value, SOON, NULL);
	/* Refused, or an address of its own: never the other's bytes. */
	EXPECT(c, *(uint8_t *)hal_mem_host(mine) != 0x77);
	hal_mem_free(mine);
	hal_device_close(other);
}

void check_a_new_client_sees_nothing_of_the_last(struct conf *c)
{
	enum { N = 1 << 20, MOST = 32 * N };
	struct hal_mem_stats s;
	uint64_t bytes, value;
	struct hal_mem *m;
	uint8_t *got;

	if (c->info.kind == HAL_KIND_SIM)
		not_applicable(c, "the model in a process has one client, which may look");
	if (c->info.kind == HAL_KIND_VFIO)
		not_applicable(c, "HBM keeps its content over resets (DEVICE.md)");
	got = conf_room(c, N);
	hal_mem_stats(c->dev, HAL_MEM_HBM, &s);
	bytes = s.largest_free_bytes < MOST ? s.largest_free_bytes : MOST;
	m = conf_get(c, bytes);
	OK(c, hal_queue_fill(c->dma, m, 0, bytes, 0xa5a5a5a5a5a5a5a5, &value, &c->err));
	OK(c, hal_queue_wait(c->dma, value, SOON, &c->err));
	conf_close(c);
	OK(c, conf_open(c));
	m = conf_get(c, bytes);
	for (uint64_t at = 0; at + N <= bytes; at += N) {
		OK(c, hal_copy_out(got, m, at, N, SOON, &c->err));
		for (size_t i = 0; i < N; i++)
			EXPECT(c, !got[i]);
	}
	hal_mem_free(m);
	free(got);
}
