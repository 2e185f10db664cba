/* SPDX-License-Identifier: Apache-2.0 */
/* Each step on registers fails on a device whose registers are wrong in its way. */
#include "hal/bus.h"
#include "hal/hw/regs.h"
#include "tests/unit/bringup/bringup_test.h"

/* The model's bus, which lies as `fault` says. */
enum fault {
	NONE, ALL_ONES, OTHER_ID, GHOST_REGISTER, LAST_WORD, BAD_RESET_VALUE, STUCK_BIT,
	OPEN_BIT, WRITABLE_STATUS, CROSSTALK, SCRATCH_STAYS, SCRATCH_LOST, FAST_CLOCK,
	STOPPED_CLOCK, OTHER_VERSION, OTHER_CAP, OTHER_HBM, NOT_READY, OTHER_VECTOR, NOT_MASKED,
	NO_PENDING, STILL_PENDING, BADACC_STAYS, BADACC_DEAF, LAX_FIELDS, LAX_MAPS, NO_DETAIL,
	FEW_CONTEXTS, READ_ONLY_IS_NOT, NEVER_BUSY, HEAD_IS_TAIL, PRIORITY_UPSIDE_DOWN,
	OLDEST_FIRST, RESETS_UNCOUNTED, POISON_HEALS, TELEMETRY_STAYS, MANY_STATES, SLOW_TO_STOP,
};
static enum fault fault;
static unsigned stopping;	/* for how many reads of STATUS, or of CTRL, it still is */
static uint32_t kept[2];	/* of a register that is the liar's own */
static uint8_t *rings;		/* of queue 0: submissions, completions, what requests point to */

static uint32_t lie(uint32_t offset, uint32_t value)
{
	switch (fault) {
	case ALL_ONES: return 0xffffffff;
	case OTHER_ID: return offset == HW_REG_ID ? 0x7e561234 : value;
	case GHOST_REGISTER: return offset == 0x40c ? 1 : value;
	case LAST_WORD: return offset == HW_BAR0_BYTES - 4 ? 1 : value;
	case BAD_RESET_VALUE: return offset == HW_REG_AVECTOR && value == ~0u ? 0x1f : value;
	case STUCK_BIT: return offset == HW_REG_ASQ + 4 ? value & ~(1u << 9) : value;
	case OPEN_BIT: return offset == HW_REG_AQSIZE ? value | 1u << 31 : value;
	case WRITABLE_STATUS: return offset == HW_REG_STATUS ? kept[0] : value;
	case SCRATCH_STAYS:
	case SCRATCH_LOST:
		return offset == HW_REG_SCRATCH || offset == HW_REG_SCRATCH + 4 ?
			kept[offset / 4 & 1] : value;
	case FAST_CLOCK: return offset == HW_REG_CLOCK ? value + value / 16 : value;
	case STOPPED_CLOCK: return offset == HW_REG_CLOCK ? 5 : value;
	case OTHER_VERSION: return offset == HW_REG_VERSION ? value + 1 : value;
	case OTHER_CAP: return offset == HW_REG_CAP ? value - 1 : value;
	case OTHER_HBM: return offset == HW_REG_HBM_BYTES ? value + 4096 : value;
	case NOT_READY: return offset == HW_REG_STATUS ? 0 : value;
	case NO_PENDING: return offset == HW_MSIX_PBA ? 0 : value;
	case SLOW_TO_STOP:
		if ((offset != HW_REG_STATUS && offset != HW_REG_CTRL) || !stopping)
			return value;
		stopping--;
		return offset == HW_REG_STATUS ? HW_STATUS_RESETTING : HW_CTRL_RESET;
	case STILL_PENDING: return offset == HW_MSIX_PBA && !value ? 1 : value;
	case BADACC_STAYS: return offset == HW_REG_BADACC ? value + 3 : value;
	case BADACC_DEAF: return offset == HW_REG_BADACC ? 0 : value;
	default: return value;
	}
}

static uint32_t read_lying(struct hal_bus *bus, uint32_t offset)
{
	return lie(offset, hal_bus_sim.read(bus, offset));
}

/* What the device takes a request for. */
static void change_request(struct hw_sqe *sqe)
{
	struct hw_map *m = (struct hw_map *)(void *)(rings + 2 * HW_PAGE);
	struct hw_queue *q = (struct hw_queue *)(void *)(rings + 2 * HW_PAGE);

	if (fault == LAX_FIELDS)
		sqe->wait_va = 0;
	if (fault == READ_ONLY_IS_NOT && sqe->op == HW_MAP)
		m->flags |= HW_MAP_WRITE;
	if (fault == PRIORITY_UPSIDE_DOWN && sqe->op == HW_QUEUE_CREATE)
		q->priority = 3 - q->priority;
	if (fault == POISON_HEALS && sqe->op == HW_INJECT)
		sqe->op = HW_NOP;
}

static void change_states(uint64_t bytes)
{
	struct hw_queue_state *s = (void *)(rings + 2 * HW_PAGE);

	for (unsigned i = 0; i < bytes / sizeof(*s); i++)
		s[i].head = s[i].tail;
}

/* What it says of it. */
static void change_answer(const struct hw_sqe *sqe, struct hw_cqe *cqe)
{
	struct hw_fault *faults = (void *)(rings + 2 * HW_PAGE), first = faults[0];
	struct hw_telemetry *telemetry = (void *)faults;
	struct hw_ras *ras = (void *)faults;

	if (fault == LAX_MAPS && cqe->status == HW_ST_OVERLAP)
		cqe->status = HW_ST_OK;
	if (fault == NO_DETAIL)
		cqe->detail = 0;
	if (fault == FEW_CONTEXTS && sqe->op == HW_CTX_CREATE && cqe->value == 40)
		cqe->status = HW_ST_NO_ROOM;
	if (fault == NEVER_BUSY && cqe->status == HW_ST_BUSY)
		cqe->status = HW_ST_OK;
	if (sqe->op != HW_LOG_PAGE)
		return;
	if (fault == HEAD_IS_TAIL && sqe->id == HW_LOG_QUEUES)
		change_states(cqe->value);
	if (fault == MANY_STATES && sqe->id == HW_LOG_QUEUES) {
		memset(faults, 0, HW_PAGE);
		cqe->value = 1ull << 40;
	}
	if (fault == OLDEST_FIRST && sqe->id == HW_LOG_FAULT && cqe->value > sizeof(first)) {
		faults[0] = faults[1];
		faults[1] = first;
	}
	if (fault == RESETS_UNCOUNTED && sqe->id == HW_LOG_RAS)
		ras->queue_resets = 0;
	if (fault == TELEMETRY_STAYS && sqe->id == HW_LOG_TELEMETRY)
		telemetry->n_execute++;
}

/* A request of queue 0, as the device that lies has it; it is done when the store returns. */
static void ring_lying(struct hal_bus *bus, uint32_t tail)
{
	struct hw_sqe *sqe = (struct hw_sqe *)(void *)rings + (tail - 1) % 16;
	struct hw_cqe *cqe = (struct hw_cqe *)(void *)(rings + HW_PAGE) + (tail - 1) % 16;

	change_request(sqe);
	hal_bus_sim.write(bus, hw_doorbell(0), tail);
	change_answer(sqe, cqe);
}

static int map_lying(struct hal_bus *bus, void *host, uint64_t bytes, uint64_t *iova,
		     struct err *err)
{
	if (bytes == 3 * HW_PAGE)
		rings = host;
	return hal_bus_sim.dma_map(bus, host, bytes, iova, err);
}

static void write_lying(struct hal_bus *bus, uint32_t offset, uint32_t value)
{
	if (fault >= LAX_FIELDS && offset == hw_doorbell(0)) {
		ring_lying(bus, value);
		return;
	}
	if (fault == SLOW_TO_STOP && offset == HW_REG_CTRL && value == HW_CTRL_ENABLE && stopping)
		return;
	hal_bus_sim.write(bus, offset, value);
	if (fault == SLOW_TO_STOP && offset == HW_REG_CTRL && value != HW_CTRL_ENABLE)
		stopping = 3;
	if (fault == WRITABLE_STATUS && offset == HW_REG_STATUS)
		kept[0] = value;
	if (fault == CROSSTALK && offset == HW_REG_ACQ)
		hal_bus_sim.write(bus, HW_REG_AQSIZE, value);
	if (offset == HW_REG_SCRATCH || offset == HW_REG_SCRATCH + 4)
		kept[offset / 4 & 1] = value;
	if (fault == SCRATCH_LOST && offset == HW_REG_CTRL)
		kept[0] = kept[1] = 0;
	if (fault == NOT_MASKED && offset == HW_REG_AVECTOR)
		hal_bus_sim.write(bus, HW_MSIX_TABLE + 16 * value + 12, 0);
}

static int irq_lying(struct hal_bus *bus, unsigned vector, int fd, struct err *err)
{
	return hal_bus_sim.irq_fd(bus, fault == OTHER_VECTOR && vector < 2 ? !vector : vector, fd,
				  err);
}

static struct hal_bus_ops lying;

static int open_lying(void *host, const char *where, struct hal_bus **out, struct err *err)
{
	int code = hal_bus_sim.open(host, where, out, err);

	if (!code)
		(*out)->ops = &lying;
	return code;
}

static struct t_step t;

static void begin(enum fault which)
{
	fault = which;
	kept[0] = kept[1] = 0;
	stopping = 0;
	lying = hal_bus_sim;
	lying.open = open_lying;
	lying.read = read_lying;
	lying.write = write_lying;
	lying.irq_fd = irq_lying;
	lying.dma_map = map_lying;
	t_begin(&t, "sim:hbm=64M,lanes=1");
	t.b.hal->entries[0].host.bus = &lying;
}

static const struct {
	enum bringup_result (*step)(struct bringup *b);
	enum fault fault;
	const char *says;
} wrong[] = {
	{ step_bar, ALL_ONES, "all ones" },
	{ step_bar, OTHER_ID, "ID reads 0x7e561234" },
	{ step_bar, GHOST_REGISTER, "0x40c" },
	{ step_bar, LAST_WORD, "last word" },
	{ step_reset_values, BAD_RESET_VALUE, "AVECTOR reads 0x1f" },
	{ step_register_masks, STUCK_BIT, "ASQ reads 0x0 after 0x20000000000" },
	{ step_register_masks, OPEN_BIT, "AQSIZE reads 0x80000001" },
	{ step_register_masks, WRITABLE_STATUS, "STATUS, which is read only" },
	{ step_register_masks, CROSSTALK, "AQSIZE changed" },
	{ step_scratch, SCRATCH_STAYS, "outlives a function reset" },
	{ step_scratch, SCRATCH_LOST, "lost when the device is disabled" },
	{ step_clock, FAST_CLOCK, "CLOCK went on" },
	{ step_clock, STOPPED_CLOCK, "CLOCK went on" },
	{ step_versions, OTHER_VERSION, "IDENTIFY says contract" },
	{ step_versions, NOT_READY, "does not come up" },
	{ step_identity, OTHER_CAP, "CAP 0x100100020003f" },
	{ step_identity, OTHER_HBM, "bytes of HBM" },
	{ step_interrupts, OTHER_VECTOR, "vector 0 did not come" },
	{ step_interrupts, NOT_MASKED, "pending bits 0x0" },
	{ step_interrupts, NO_PENDING, "pending bits 0x0" },
	{ step_interrupts, STILL_PENDING, "still pending" },
	{ step_refusals, BADACC_STAYS, "BADACC outlives" },
	{ step_refusals, BADACC_DEAF, "doorbell 63 with tail 0x1" },
	{ step_refusals, LAX_FIELDS, "a va to wait at has status OK" },
	{ step_refusals, LAX_MAPS, "OK instead of OVERLAP" },
	{ step_refusals, NO_DETAIL, "a branch into itself at 24 has status BAD_PROGRAM at 0" },
	{ step_refusals, FEW_CONTEXTS, "context 40 of 63: status NO_ROOM" },
	{ step_contexts, READ_ONLY_IS_NOT, "read only ends with OK instead of MAP" },
	{ step_contexts, NEVER_BUSY, "UNMAP has status OK instead of BUSY" },
	{ step_contexts, HEAD_IS_TAIL, "page QUEUES" },
	{ step_contexts, PRIORITY_UPSIDE_DOWN, "priority 0 went before priority 3" },
	{ step_contexts, OLDEST_FIRST, "the newest fault is" },
	{ step_contexts, RESETS_UNCOUNTED, "counts 0 and 1" },
	{ step_contexts, POISON_HEALS, "poisoned before the device was disabled ends with OK" },
	{ step_contexts, TELEMETRY_STAYS, "after a function reset there are 1 programs" },
	{ step_contexts, MANY_STATES, "page QUEUES has 1099511627776 bytes" },
};

static void each_fault_fails_its_step(void **state)
{
	(void)state;
	for (unsigned i = 0; i < COUNT(wrong); i++) {
		begin(wrong[i].fault);
		if (t_step(&t, wrong[i].step) != BRINGUP_FAIL || !strstr(t.row.text, wrong[i].says))
			fail_msg("fault %u, wanted \"%s\": %s", wrong[i].fault, wrong[i].says,
				 t.row.text);
		t_end(&t);
	}
}

static void good_registers_pass_again_and_again(void **state)
{
	(void)state;
	begin(NONE);
	for (unsigned i = 0; i < 10 * COUNT(wrong); i++)
		if (t_step(&t, wrong[i % COUNT(wrong)].step) != BRINGUP_PASS)
			fail_msg("%s", t.row.text);
	t_end(&t);
}

/* It is disabled when STATUS says so, and reset when CTRL does, not before, and hears nothing until
 * then. */
static void a_device_may_take_its_time_to_stop(void **state)
{
	static enum bringup_result (*const steps[])(struct bringup *b) = {
		step_reset_values, step_interrupts, step_refusals, step_contexts,
	};

	(void)state;
	begin(SLOW_TO_STOP);
	for (unsigned i = 0; i < COUNT(steps); i++)
		if (t_step(&t, steps[i]) != BRINGUP_PASS)
			fail_msg("%s", t.row.text);
	t_end(&t);
}

/* ---- the door of a bare device ---- */

static void a_bare_device_is_one_owners(void **state)
{
	struct hal_bare *bare, *again;
	struct hal_device *dev;
	struct err err;

	(void)state;
	begin(NONE);
	assert_int_equal(hal_bare_open(t.b.hal, 1, &bare, &err), ERR_OUT_OF_RANGE);
	assert_int_equal(hal_bare_open(t.b.hal, 0, &bare, &err), 0);
	assert_int_equal(hal_bare_open(t.b.hal, 0, &again, &err), ERR_FAILED_PRECONDITION);
	assert_int_equal(hal_device_open(t.b.hal, 0, &dev, &err), ERR_FAILED_PRECONDITION);
	hal_bare_close(bare);
	assert_int_equal(hal_device_open(t.b.hal, 0, &dev, &err), 0);
	assert_int_equal(hal_bare_open(t.b.hal, 0, &bare, &err), ERR_FAILED_PRECONDITION);
	assert_non_null(strstr(err.msg, "sim:0 is open"));
	hal_device_close(dev);
	hal_bare_close(NULL);
	t_end(&t);
}

static void bare_accesses_stay_in_the_bar(void **state)
{
	struct hal_bare *bare;
	uint64_t iova;
	void *host;
	struct err err;

	(void)state;
	begin(NONE);
	assert_int_equal(hal_bare_open(t.b.hal, 0, &bare, &err), 0);
	assert_int_equal(hal_bare_read(bare, 2), 0xffffffff);
	assert_int_equal(hal_bare_read(bare, HW_BAR0_BYTES), 0xffffffff);
	hal_bare_write(bare, HW_BAR0_BYTES, 1);
	hal_bare_write(bare, HW_REG_SCRATCH + 1, 1);
	assert_int_equal(hal_bare_read(bare, HW_REG_BADACC), 0);
	for (unsigned i = 0; i < 8; i++)
		assert_int_equal(hal_bare_pages(bare, i * 4096 + 1, &host, &iova, &err), 0);
	assert_int_equal(hal_bare_pages(bare, 1, &host, &iova, &err), ERR_RESOURCE_EXHAUSTED);
	hal_bare_close(bare);
	assert_int_equal(hal_bare_open(t.b.hal, 0, &bare, &err), 0);
	assert_int_equal(hal_bare_pages(bare, 0, &host, &iova, &err), ERR_RESOURCE_EXHAUSTED);
	assert_int_equal(hal_bare_pages(bare, UINT64_MAX, &host, &iova, &err),
			 ERR_RESOURCE_EXHAUSTED);
	hal_bare_close(bare);
	t_end(&t);
}

static void an_open_devices_registers_can_be_read(void **state)
{
	struct hw_queue_state queues[HW_MAX_QUEUES];
	struct hal_device *dev;
	uint32_t value;
	uint64_t got;
	struct err err;

	(void)state;
	begin(NONE);
	assert_int_equal(hal_device_open(t.b.hal, 0, &dev, &err), 0);
	assert_int_equal(hal_device_register(dev, HW_REG_STATUS, &value, &err), 0);
	assert_int_equal(value, HW_STATUS_READY);
	assert_int_equal(hal_device_register(dev, 2, &value, &err), ERR_OUT_OF_RANGE);
	assert_int_equal(hal_device_register(dev, HW_MSIX_TABLE, &value, &err), ERR_OUT_OF_RANGE);
	assert_int_equal(hal_device_register(dev, HW_MSIX_TABLE - 4, &value, &err), 0);
	assert_int_equal(hal_device_log(dev, HW_LOG_QUEUES, queues, sizeof(queues), &got, &err), 0);
	assert_int_equal(got, 2 * sizeof(*queues));
	assert_int_equal(hal_device_log(dev, HW_LOG_QUEUES, queues, 24, &got, &err), 0);
	assert_int_equal(got, 24);
	assert_int_equal(hal_device_log(dev, 99, queues, 24, &got, &err), ERR_INVALID_ARGUMENT);
	/* A dead one's, too: that is when they are wanted. */
	assert_int_equal(hal_device_inject(dev, HW_INJECT_FATAL, 0, &err), 0);
	assert_int_equal(hal_device_register(dev, HW_REG_STATUS, &value, &err), 0);
	assert_int_equal(value, HW_STATUS_FATAL);
	hal_device_close(dev);
	t_end(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_fault_fails_its_step),
		cmocka_unit_test(good_registers_pass_again_and_again),
		cmocka_unit_test(a_device_may_take_its_time_to_stop),
		cmocka_unit_test(a_bare_device_is_one_owners),
		cmocka_unit_test(bare_accesses_stay_in_the_bar),
		cmocka_unit_test(an_open_devices_registers_can_be_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
