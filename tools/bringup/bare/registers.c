/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Steps on a device that has no driver yet: registers, queue 0 by hand, interrupts
 * (DEVICE.md#registers, #interrupts). Each begins with a function reset.
 */
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "hal/base/cpu.h"
#include "hal/hw/regs.h"
#include "tools/bringup/bare/admin.h"

static const struct reg {
	const char *name, *access, *reset;
	uint32_t offset;
	unsigned bytes;
} regs[] = {
#define REG(name, offset, bytes, access, reset, meaning) \
	{ #name, #access, #reset, offset, bytes },
#include "hal/hw/regs.def"
#undef REG
};

static bool is_own(const struct reg *r)
{
	return !strcmp(r->reset, "OWN");
}

/* CTRL acts on what is written; it has its own steps. */
static bool is_plain(const struct reg *r)
{
	return !strcmp(r->access, "RW") && r->offset != HW_REG_CTRL;
}

static uint64_t read_reg(struct bringup *b, const struct reg *r)
{
	uint64_t value = hal_bare_read(b->bare, r->offset);

	if (r->bytes == 8)
		value |= (uint64_t)hal_bare_read(b->bare, r->offset + 4) << 32;
	return value;
}

static void write_reg(struct bringup *b, const struct reg *r, uint64_t value)
{
	hal_bare_write(b->bare, r->offset, (uint32_t)value);
	if (r->bytes == 8)
		hal_bare_write(b->bare, r->offset + 4, (uint32_t)(value >> 32));
}

static enum bringup_result begin(struct bringup *b)
{
	STEP_TRY(bringup_need_bare(b));
	TRY(b, hal_bare_reset(b->bare, &b->err));
	return BRINGUP_PASS;
}

/* ---- listed, and there ---- */

enum bringup_result step_enumeration(struct bringup *b)
{
	unsigned n = hal_device_count(b->hal), index = b->options->index;
	struct hal_device_info info, other;

	if (!n)
		return bringup_fail(b, "no device is listed; xla-smi doctor says why");
	TRY(b, hal_device_info(b->hal, index, &info, &b->err));
	if (!*info.bus_id)
		return bringup_fail(b, "device %u has no address", index);
	for (unsigned i = 0; i < n; i++)
		if (i != index && !hal_device_info(b->hal, i, &other, NULL) &&
		    !strcmp(info.bus_id, other.bus_id))
			return bringup_fail(b, "devices %u and %u are both %s", index, i,
					    info.bus_id);
	if (!info.can_open)
		return bringup_fail(b, "%s can't be opened: %s", info.bus_id, info.state);
	return bringup_pass(b, "%s, %u of %u, driver %s, %s", info.bus_id, index, n, info.driver,
			    info.state);
}

/* Whether a register, half a register, or the MSI-X table is at this offset. */
static bool is_named(uint32_t offset)
{
	if (offset >= HW_MSIX_TABLE && offset < HW_MSIX_TABLE + HW_MAX_VECTORS * 16)
		return true;
	for (unsigned i = 0; i < COUNT(regs); i++)
		if (offset >= regs[i].offset && offset < regs[i].offset + regs[i].bytes)
			return true;
	return offset == HW_MSIX_PBA;
}

enum bringup_result step_bar(struct bringup *b)
{
	unsigned n = 0;
	uint32_t id, value;

	STEP_TRY(begin(b));
	id = hal_bare_read(b->bare, HW_REG_ID);
	if (id == 0xffffffffu)
		return bringup_fail(b, "BAR0 reads as all ones: the link is down, memory accesses "
				    "are off in the command register, or the BAR has no address");
	if (id != (HW_PCI_VENDOR | HW_PCI_DEVICE << 16))
		return bringup_fail(b, "ID reads 0x%08x instead of 0x%08x", id,
				    HW_PCI_VENDOR | HW_PCI_DEVICE << 16);
	/* All of the first page, then once a page, the last word at the end. */
	for (uint32_t at = 0; at < HW_BAR0_BYTES; at += at < HW_PAGE ? 4 : HW_PAGE / 2) {
		value = hal_bare_read(b->bare, at);
		n++;
		if (!is_named(at) && value)
			return bringup_fail(b, "offset 0x%x, which no table names, reads 0x%08x",
					    at, value);
	}
	value = hal_bare_read(b->bare, HW_BAR0_BYTES - 4);
	if (value)
		return bringup_fail(b, "the last word of BAR0 reads 0x%08x", value);
	if (hal_bare_read(b->bare, HW_REG_ID) != id)
		return bringup_fail(b, "ID reads otherwise after other reads");
	value = hal_bare_read(b->bare, HW_REG_BADACC);
	if (value)
		return bringup_fail(b, "%u aligned accesses were counted as refused (BADACC)",
				    value);
	return bringup_pass(b, "%u words of %u KiB answer", n + 1, HW_BAR0_BYTES >> 10);
}

/* The reset has ended when CTRL reads 0. */
static enum bringup_result reset_by_ctrl(struct bringup *b)
{
	uint32_t ctrl;

	hal_bare_write(b->bare, HW_REG_CTRL, HW_CTRL_RESET);
	ctrl = bringup_settle(b, HW_REG_CTRL, UINT32_MAX);
	return ctrl ? bringup_fail(b, "20 s after a reset by CTRL it reads 0x%x", ctrl) :
		      BRINGUP_PASS;
}

enum bringup_result step_reset_values(struct bringup *b)
{
	unsigned n = 0;

	STEP_TRY(begin(b));
	for (unsigned round = 0; round < 2; round++) {
		for (unsigned i = 0; i < COUNT(regs); i++) {
			uint64_t want = is_own(&regs[i]) ? 0 : strtoull(regs[i].reset, NULL, 0);
			uint64_t got = read_reg(b, &regs[i]);

			if (is_own(&regs[i]))
				continue;
			n += !round;
			if (got != want)
				return bringup_fail(b, "%s reads 0x%llx after a reset instead of "
						    "0x%llx", regs[i].name,
						    (unsigned long long)got,
						    (unsigned long long)want);
		}
		/* The second reset comes when they are not what they were. */
		for (unsigned i = 0; i < COUNT(regs); i++)
			if (is_plain(&regs[i]))
				write_reg(b, &regs[i], 0x5a5a5a5a5a5a5a5a);
		STEP_TRY(reset_by_ctrl(b));
	}
	return bringup_pass(b, "%u registers, by a function reset and by CTRL", n);
}

/* Patterns that tell each bit from its neighbours, and stuck from open. */
static uint64_t pattern(unsigned i)
{
	return i < 64 ? 1ull << i : i < 128 ? ~(1ull << (i - 64)) :
	       i == 128 ? 0 : i == 129 ? ~0ull : i == 130 ? 0xaaaaaaaaaaaaaaaa : 0x5555555555555555;
}
#define N_PATTERNS 132u

static enum bringup_result keeps(struct bringup *b, const struct reg *r)
{
	uint64_t mask = r->bytes == 8 ? ~0ull : 0xffffffffull;

	for (unsigned i = 0; i < N_PATTERNS; i++) {
		uint64_t want = pattern(i) & mask, got;

		write_reg(b, r, want);
		got = read_reg(b, r);
		if (got != want)
			return bringup_fail(b, "%s reads 0x%llx after 0x%llx was written", r->name,
					    (unsigned long long)got, (unsigned long long)want);
	}
	return BRINGUP_PASS;
}

static enum bringup_result is_read_only(struct bringup *b, const struct reg *r)
{
	uint64_t before = read_reg(b, r), after;

	write_reg(b, r, ~before);
	after = read_reg(b, r);
	/* CLOCK goes on by itself, a second at most here. */
	if (r->offset == HW_REG_CLOCK ? after - before > SECOND : after != before)
		return bringup_fail(b, "%s, which is read only, reads 0x%llx after 0x%llx was "
				    "written over 0x%llx", r->name, (unsigned long long)after,
				    (unsigned long long)~before, (unsigned long long)before);
	return BRINGUP_PASS;
}

/* A write to one register must not reach another, before it or behind it. */
static enum bringup_result keep_apart(struct bringup *b, bool is_downward)
{
	for (unsigned k = 0; k < COUNT(regs); k++) {
		unsigned i = is_downward ? COUNT(regs) - 1 - k : k;

		if (is_plain(&regs[i]))
			write_reg(b, &regs[i], pattern(i) ^ pattern(i + 80));
	}
	for (unsigned i = 0; i < COUNT(regs); i++) {
		uint64_t mask = regs[i].bytes == 8 ? ~0ull : 0xffffffffull;

		if (is_plain(&regs[i]) &&
		    read_reg(b, &regs[i]) != ((pattern(i) ^ pattern(i + 80)) & mask))
			return bringup_fail(b, "%s changed when others were written", regs[i].name);
	}
	return BRINGUP_PASS;
}

enum bringup_result step_register_masks(struct bringup *b)
{
	unsigned n[2] = { 0 };

	STEP_TRY(begin(b));
	for (unsigned i = 0; i < COUNT(regs); i++) {
		if (is_plain(&regs[i]))
			STEP_TRY(keeps(b, &regs[i]));
		else if (regs[i].offset != HW_REG_CTRL)
			STEP_TRY(is_read_only(b, &regs[i]));
		n[is_plain(&regs[i])] += regs[i].offset != HW_REG_CTRL;
	}
	STEP_TRY(keep_apart(b, false));
	/* Others than before: what stays would not be seen. */
	for (unsigned i = 0; i < COUNT(regs); i++)
		if (is_plain(&regs[i]))
			write_reg(b, &regs[i], 0);
	STEP_TRY(keep_apart(b, true));
	hal_bare_write(b->bare, HW_REG_BADACC + 4, 0xffffffff);
	if (hal_bare_read(b->bare, HW_REG_BADACC + 4))
		return bringup_fail(b, "what is no register keeps what is written");
	return bringup_pass(b, "%u writable registers by %u patterns, %u others", n[1], N_PATTERNS,
			    n[0]);
}

enum bringup_result step_scratch(struct bringup *b)
{
	static const struct reg scratch = { "SCRATCH", "RW", "0", HW_REG_SCRATCH, 8 };

	STEP_TRY(begin(b));
	STEP_TRY(keeps(b, &scratch));
	write_reg(b, &scratch, 0x0123456789abcdef);
	hal_bare_write(b->bare, HW_REG_CTRL, 0);
	if (read_reg(b, &scratch) != 0x0123456789abcdef)
		return bringup_fail(b, "SCRATCH is lost when the device is disabled");
	TRY(b, hal_bare_reset(b->bare, &b->err));
	if (read_reg(b, &scratch))
		return bringup_fail(b, "SCRATCH outlives a function reset");
	return bringup_pass(b, "%u patterns", N_PATTERNS);
}

enum bringup_result step_clock(struct bringup *b)
{
	int64_t before[2], after[2], least, most, took;
	uint64_t clock[2];

	STEP_TRY(begin(b));
	for (unsigned i = 0; i < 2; i++) {
		before[i] = clock_ns();
		clock[i] = bringup_read64(b, HW_REG_CLOCK);
		after[i] = clock_ns();
		/* What is measured is this time itself. */
		while (!i && clock_ns() < after[0] + SECOND / 50)
			cpu_relax();
		if (!i)
			TRY(b, hal_bare_reset(b->bare, &b->err));
	}
	took = (int64_t)(clock[1] - clock[0]);
	least = before[1] - after[0];
	most = after[1] - before[0];
	if (took < least - least / 100 || took > most + most / 100)
		return bringup_fail(b, "CLOCK went on by %lld ns in %lld to %lld ns of the host's",
				    (long long)took, (long long)least, (long long)most);
	return bringup_pass(b, "%lld ns in %lld to %lld of the host's, over a reset",
			    (long long)took, (long long)least, (long long)most);
}

/* ---- queue 0, by hand ---- */

static enum bringup_result identify(struct bringup *b, struct hw_identify *id)
{
	struct admin a;

	STEP_TRY(bringup_admin_start(b, &a, HW_NO_VECTOR));
	memset(a.args, 0xee, sizeof(*id) + 8);
	STEP_TRY(bringup_admin_ask(b, &a, HW_IDENTIFY, 0));
	memcpy(id, a.args, sizeof(*id));
	if (a.args[sizeof(*id)] != 0xee)
		return bringup_fail(b, "IDENTIFY wrote past its structure");
	/* More laps than one of the rings. */
	for (unsigned i = 0; i < 3 * BRINGUP_ENTRIES; i++)
		STEP_TRY(bringup_admin_ask(b, &a, HW_NOP, 0));
	return BRINGUP_PASS;
}

enum bringup_result step_versions(struct bringup *b)
{
	struct hw_identify id;
	uint32_t contract;

	STEP_TRY(identify(b, &id));
	contract = hal_bare_read(b->bare, HW_REG_VERSION);
	if (id.magic != HW_IDENTIFY_MAGIC)
		return bringup_fail(b, "IDENTIFY begins with 0x%llx instead of 0x%llx",
				    (unsigned long long)id.magic, HW_IDENTIFY_MAGIC);
	if (id.contract != contract)
		return bringup_fail(b, "IDENTIFY says contract 0x%x, VERSION 0x%x", id.contract,
				    contract);
	if (id.isa != ISA_VERSION)
		return bringup_fail(b, "the device speaks ISA %u, this build ISA %u: install "
				    "versions that match", id.isa, ISA_VERSION);
	return bringup_pass(b, "contract %u.%u, ISA %u, firmware %.32s", contract >> 16,
			    contract & 0xffff, id.isa, id.firmware);
}

/* Text, then zeros to the end. */
static bool is_text(const char *p, size_t n)
{
	size_t len = strnlen(p, n);

	for (size_t i = 0; i < len; i++)
		if (p[i] < 32 || p[i] > 126)
			return false;
	for (size_t i = len; i < n; i++)
		if (p[i])
			return false;
	return len && len < n;
}

enum bringup_result step_identity(struct bringup *b)
{
	struct hw_identify id;
	uint64_t cap, hbm;

	STEP_TRY(identify(b, &id));
	cap = bringup_read64(b, HW_REG_CAP);
	hbm = bringup_read64(b, HW_REG_HBM_BYTES);
	if (!is_text(id.name, sizeof(id.name)) || !is_text(id.serial, sizeof(id.serial)) ||
	    !is_text(id.firmware, sizeof(id.firmware)))
		return bringup_fail(b, "name, serial number or firmware are no text");
	if (id.hbm_bytes != hbm || !hbm || hbm % HW_PAGE)
		return bringup_fail(b, "IDENTIFY says %llu bytes of HBM, the register %llu",
				    (unsigned long long)id.hbm_bytes, (unsigned long long)hbm);
	if (id.max_queues != (cap & 0xffff) || id.n_vectors != (cap >> 16 & 0xffff) ||
	    !!id.is_model != (cap >> 48 & 1))
		return bringup_fail(b, "IDENTIFY says %u queues, %u vectors, model %llu, "
				    "CAP 0x%llx", id.max_queues, id.n_vectors,
				    (unsigned long long)id.is_model,
				    (unsigned long long)cap);
	if (id.max_queues < 3 || !id.max_contexts || !id.max_programs || !id.cores)
		return bringup_fail(b, "%u queues, %u contexts, %u programs, %u cores are too few",
				    id.max_queues, id.max_contexts, id.max_programs, id.cores);
	if (id.fabric && id.chip >= id.n_chips)
		return bringup_fail(b, "chip %u of %u", id.chip, id.n_chips);
	return bringup_pass(b, "%s, serial %s, %llu MiB of HBM, %u queues, %u vectors, %u cores%s",
			    id.name, id.serial, (unsigned long long)hbm >> 20, id.max_queues,
			    id.n_vectors, id.cores, id.is_model ? ", a model" : "");
}

/* ---- interrupts ---- */

/* How many came; waits for the first if one must. */
static uint64_t take_irqs(int fd, bool must)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	uint64_t n = 0;

	if (poll(&p, 1, must ? 20000 : 0) != 1 || read(fd, &n, sizeof(n)) != sizeof(n))
		return 0;
	return n;
}

static enum bringup_result try_vector(struct bringup *b, struct admin *a, unsigned v,
				      const int *fds, unsigned n)
{
	uint32_t control = HW_MSIX_TABLE + 16 * v + 12;
	bool is_ours;

	STEP_TRY(bringup_admin_disable(b));
	STEP_TRY(bringup_admin_enable(b, a, v));
	/* VFIO keeps the table for itself: there a vector is masked by having no eventfd. */
	is_ours = hal_bare_read(b->bare, control) & 1;
	if (!is_ours)
		TRY(b, hal_bare_irq(b->bare, v, -1, &b->err));
	STEP_TRY(bringup_admin_ask(b, a, HW_NOP, HW_IRQ));
	if (take_irqs(fds[v], false))
		return bringup_fail(b, "vector %u came although it is masked", v);
	if (hal_bare_read(b->bare, HW_MSIX_PBA) != 1u << v)
		return bringup_fail(b, "vector %u is masked and raised: pending bits 0x%x", v,
				    hal_bare_read(b->bare, HW_MSIX_PBA));
	if (!is_ours)
		TRY(b, hal_bare_irq(b->bare, v, fds[v], &b->err));
	hal_bare_write(b->bare, control, 0);
	if (take_irqs(fds[v], true) != 1)
		return bringup_fail(b, "vector %u did not come once when it was unmasked", v);
	if (hal_bare_read(b->bare, HW_MSIX_PBA))
		return bringup_fail(b, "vector %u is still pending after it came", v);
	STEP_TRY(bringup_admin_ask(b, a, HW_NOP, HW_IRQ));
	if (take_irqs(fds[v], true) != 1)
		return bringup_fail(b, "vector %u did not come once for one completion", v);
	STEP_TRY(bringup_admin_ask(b, a, HW_NOP, 0));
	for (unsigned i = 0; i < n; i++)
		if (take_irqs(fds[i], false))
			return bringup_fail(b, "vector %u came where %u was raised, or none", i, v);
	return BRINGUP_PASS;
}

static enum bringup_result try_vectors(struct bringup *b, const int *fds, unsigned n)
{
	struct admin a;

	STEP_TRY(bringup_admin_start(b, &a, HW_NO_VECTOR));
	for (unsigned i = 0; i < n; i++)
		TRY(b, hal_bare_irq(b->bare, i, fds[i], &b->err));
	for (unsigned v = 0; v < n; v++)
		STEP_TRY(try_vector(b, &a, v, fds, n));
	return BRINGUP_PASS;
}

enum bringup_result step_interrupts(struct bringup *b)
{
	enum bringup_result r = BRINGUP_PASS;
	int fds[HW_MAX_VECTORS];
	unsigned n;

	STEP_TRY(begin(b));
	n = (unsigned)(bringup_read64(b, HW_REG_CAP) >> 16 & 0xffff);
	if (!n || n > HW_MAX_VECTORS)
		return bringup_fail(b, "CAP says %u vectors, at most %u can be", n, HW_MAX_VECTORS);
	for (unsigned i = 0; i < n; i++) {
		fds[i] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		if (fds[i] < 0)
			r = bringup_fail(b, "no eventfd for vector %u", i);
	}
	if (r == BRINGUP_PASS)
		r = try_vectors(b, fds, n);
	for (unsigned i = 0; b->bare && i < n; i++)
		hal_bare_irq(b->bare, i, -1, NULL);
	for (unsigned i = 0; i < n; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	return r == BRINGUP_PASS ? bringup_pass(b, "%u vectors", n) : r;
}

/* ---- with the HAL ---- */

enum bringup_result step_bring_up(struct bringup *b)
{
	struct hw_telemetry t;
	struct hal_mem *m;
	uint64_t value, word = 0;

	STEP_TRY(bringup_need_device(b));
	m = bringup_mem(b, HAL_MEM_HBM, 8);
	NEED(b, m);
	TRY(b, hal_queue_fill(b->dma, m, 0, 8, 0x7e55, &value, &b->err));
	TRY(b, hal_queue_wait(b->dma, value, SOON, &b->err));
	TRY(b, hal_queue_copy(b->compute, m, 0, m, 0, 0, NULL, 0, &value, &b->err));
	TRY(b, hal_queue_wait(b->compute, value, SOON, &b->err));
	TRY(b, hal_copy_out(&word, m, 0, 8, SOON, &b->err));
	if (word != 0x7e55)
		return bringup_fail(b, "a word filled with 0x7e55 reads 0x%llx",
				    (unsigned long long)word);
	TRY(b, hal_device_telemetry(b->dev, &t, &b->err));
	return bringup_pass(b, "%s, %llu MiB, %u.%u C, %u.%u W", b->info.name,
			    (unsigned long long)b->info.hbm_bytes >> 20, t.temperature_mc / 1000,
			    t.temperature_mc / 100 % 10, t.power_mw / 1000, t.power_mw / 100 % 10);
}
