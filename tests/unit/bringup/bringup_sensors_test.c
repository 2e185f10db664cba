/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Steps of sensors on devices whose sensors are wrong. The work is the model's; the readings are
 * made here, with heat and power by DEVICE.md's formulas and one fault. Time goes by readings:
 * each is a TICK after the one before, which the engine was busy for if work was submitted in
 * between.
 */
#include <math.h>

#include "tests/unit/bringup/bringup_test.h"

int __real_hal_device_telemetry(struct hal_device *dev, struct hw_telemetry *out, struct err *err);
int __wrap_hal_device_telemetry(struct hal_device *dev, struct hw_telemetry *out, struct err *err);
int __wrap_hal_device_inject(struct hal_device *dev, unsigned what, uint64_t value,
			     struct err *err);

int __real_hal_queue_execute(struct hal_queue *q, const struct hal_launch *l, uint64_t *value,
			     struct err *err);
int __wrap_hal_queue_execute(struct hal_queue *q, const struct hal_launch *l, uint64_t *value,
			     struct err *err);

#define TICK 0.05	/* seconds */

enum fault {
	NONE, NO_SENSORS, NO_POWER, NO_HEAT, NO_CLOCK, POWER_STUCK, HEAT_STUCK, POWER_STAYS,
	HEAT_STAYS, POWER_LATE, POWER_DRIFTS, THROTTLES_COLD, SLOW_UNTOLD, NEVER, EARLY, LATE, EVER,
	NO_HYSTERESIS, FULL_CLOCK, SLOW_EVER, NO_AIR, NO_INJECT,
};

static struct t_step t;
static struct {
	enum fault fault;
	uint64_t n_ticks, n_busy;
	bool is_busy;
	double fast, slow;		/* averages */
	double most_w, most_c;
	uint32_t air_mc;
	bool is_throttled;
} device;

static uint32_t most(double now, double *before)
{
	*before = now > *before ? now : *before;
	return (uint32_t)(*before * 1e3);
}

static void throttle(struct hw_telemetry *out)
{
	uint32_t on = HW_THROTTLE_ON_MC, off = HW_THROTTLE_OFF_MC;

	on += device.fault == EARLY ? -3000u : device.fault == LATE ? 3000 : 0;
	off = device.fault == NO_HYSTERESIS ? on - 1 : off;
	if (out->temperature_mc >= on && device.fault != NEVER)
		device.is_throttled = true;
	else if (out->temperature_mc <= off && device.fault != EVER)
		device.is_throttled = false;
	out->throttle = device.is_throttled;
	out->clock_khz = device.is_throttled && device.fault != FULL_CLOCK ? 500000 : 1000000;
}

static void spoil(struct hw_telemetry *out, double watts, double degrees)
{
	switch (device.fault) {
	case POWER_STUCK: out->power_mw = 71000; break;
	case HEAT_STUCK: out->temperature_mc = 41000; break;
	case POWER_STAYS: out->power_mw = most(watts, &device.most_w); break;
	case HEAT_STAYS: out->temperature_mc = most(degrees, &device.most_c); break;
	/* It knows of load or none. */
	case POWER_LATE: out->power_mw = device.fast > 0.05 ? 200000 : 60000; break;
	case POWER_DRIFTS: out->power_mw = 400000 - 100 * (uint32_t)device.n_ticks; break;
	case THROTTLES_COLD: out->throttle = device.fast > 0.5 ? 2 : 0; break;
	case SLOW_UNTOLD: out->clock_khz = device.fast > 0.5 ? 900000 : 1000000; break;
	case SLOW_EVER: out->clock_khz = 500000; break;
	case NO_SENSORS: out->temperature_mc = out->power_mw = out->clock_khz = 0; break;
	case NO_POWER: out->power_mw = 0; break;
	case NO_HEAT: out->temperature_mc = 0; break;
	case NO_CLOCK: out->clock_khz = 0; break;
	default: break;
	}
}

int __wrap_hal_device_telemetry(struct hal_device *dev, struct hw_telemetry *out, struct err *err)
{
	int code = __real_hal_device_telemetry(dev, out, err);
	double watts, degrees;

	if (code)
		return code;
	device.n_ticks++;
	device.n_busy += device.is_busy;
	device.fast += (device.is_busy - device.fast) * -expm1(-TICK);
	device.slow += (device.is_busy - device.slow) * -expm1(-TICK / 8);
	device.is_busy = false;
	watts = 60 + 240 * device.fast;
	degrees = device.air_mc / 1e3 + 40 * device.slow;
	out->time_ns = (uint64_t)((double)device.n_ticks * TICK * SECOND);
	out->busy_compute_ns = (uint64_t)((double)device.n_busy * TICK * SECOND);
	out->power_mw = (uint32_t)(watts * 1e3);
	out->temperature_mc = (uint32_t)(degrees * 1e3);
	throttle(out);
	spoil(out, watts, degrees);
	return 0;
}

int __wrap_hal_device_inject(struct hal_device *dev, unsigned what, uint64_t value,
			     struct err *err)
{
	(void)dev;
	if (device.fault == NO_INJECT)
		return err_set(err, ERR_UNIMPLEMENTED, "the kernel driver keeps that");
	if (device.fault == NO_AIR)
		return err_set(err, ERR_INVALID_ARGUMENT, "there is no such error");
	assert_int_equal(what, HW_INJECT_AIR);
	assert_true(value <= HW_MAX_AIR_MC);
	device.air_mc = (uint32_t)value;
	return 0;
}

int __wrap_hal_queue_execute(struct hal_queue *q, const struct hal_launch *l, uint64_t *value,
			     struct err *err)
{
	device.is_busy = true;
	return __real_hal_queue_execute(q, l, value, err);
}

static enum bringup_result with(enum fault fault, enum bringup_result (*step)(struct bringup *b))
{
	memset(&device, 0, sizeof(device));
	device.fault = fault;
	device.air_mc = HW_AIR_MC;
	return t_step(&t, step);
}

struct outcome {
	enum fault fault;
	enum bringup_result result;
	const char *says;
};

static void comes_out(const struct outcome *o, unsigned n,
		      enum bringup_result (*step)(struct bringup *b))
{
	for (unsigned i = 0; i < n; i++) {
		enum bringup_result r = with(o[i].fault, step);

		if (r != o[i].result || !strstr(t.row.text, o[i].says))
			fail_msg("fault %u: %s, \"%s\" instead of %s, \"%s\"", o[i].fault,
				 bringup_result_name(r), t.row.text,
				 bringup_result_name(o[i].result), o[i].says);
	}
}

static double number(const char *name)
{
	for (unsigned i = 0; i < t.row.n_numbers; i++)
		if (!strcmp(t.row.numbers[i].name, name))
			return t.row.numbers[i].measured;
	fail_msg("no number %s", name);
	return 0;
}

static void a_ramp_finds_sensors_that_do_not_follow(void **state)
{
	static const struct outcome outcomes[] = {
		{ NONE, BRINGUP_PASS, "and back in " },
		{ NO_SENSORS, BRINGUP_SKIP, "sensors of neither power nor temperature" },
		{ NO_POWER, BRINGUP_PASS, "and back in " },
		{ NO_HEAT, BRINGUP_PASS, "and back in " },
		{ POWER_STUCK, BRINGUP_FAIL, "power went from 71.00 to 71.00 W by a load of 25 %" },
		{ HEAT_STUCK, BRINGUP_FAIL, "temperature went from 41.00 to 41.00 C" },
		{ POWER_STAYS, BRINGUP_FAIL, "30 s after the load" },
		{ HEAT_STAYS, BRINGUP_FAIL, "30 s after the load" },
		{ POWER_LATE, BRINGUP_FAIL, "from 200.00 to 200.00 W by a load of 50 %" },
		{ POWER_DRIFTS, BRINGUP_FAIL, "fall still after" },
		{ THROTTLES_COLD, BRINGUP_FAIL, "throttle reads 0x2 at" },
		{ SLOW_UNTOLD, BRINGUP_FAIL, "the clock fell from 1000000 to 900000 kHz" },
	};

	(void)state;
	comes_out(outcomes, COUNT(outcomes), step_load_ramp);
	assert_int_equal(with(NONE, step_load_ramp), BRINGUP_PASS);
	assert_true(number("power_at_25") < number("power_at_50"));
	assert_true(number("power_at_75") < number("power_at_100"));
	assert_true(number("temperature_at_75") < number("temperature_at_100"));
	assert_true(number("back_after") > 0);
}

static void throttling_is_held_to_the_data_sheet(void **state)
{
	static const struct outcome outcomes[] = {
		{ NONE, BRINGUP_PASS, "throttled to 500000 kHz at 9" },
		{ NO_HEAT, BRINGUP_SKIP, "no sensor of temperature" },
		{ NO_CLOCK, BRINGUP_SKIP, "no sensor of its clock" },
		{ NO_AIR, BRINGUP_SKIP, "load alone does not" },
		{ NO_INJECT, BRINGUP_SKIP, "the kernel driver keeps that" },
		{ NEVER, BRINGUP_FAIL, "C throttle reads 0x0: the data sheet has it" },
		{ EARLY, BRINGUP_FAIL, "C throttle reads 0x1: the data sheet has it" },
		{ LATE, BRINGUP_FAIL, "C throttle reads 0x0: the data sheet has it" },
		{ EVER, BRINGUP_FAIL, "C throttle reads 0x1: the data sheet has it" },
		{ NO_HYSTERESIS, BRINGUP_FAIL, "C throttle reads 0x0: the data sheet has it" },
		{ FULL_CLOCK, BRINGUP_FAIL, "the clock is 1000000 kHz, not 500000" },
		{ SLOW_EVER, BRINGUP_FAIL, "the clock is 500000 kHz, not 1000000" },
		{ HEAT_STUCK, BRINGUP_FAIL, "at 41.00 C throttle reads 0x1: " },
	};

	(void)state;
	comes_out(outcomes, COUNT(outcomes), step_throttle);
	assert_int_equal(with(NONE, step_throttle), BRINGUP_PASS);
	assert_true(number("throttled_at") >= 90);
	assert_true(number("throttled_until") <= 85);
	assert_int_equal(device.air_mc, HW_AIR_MC);
}

static int setup(void **state)
{
	(void)state;
	t_begin(&t, "sim:hbm=64M,lanes=1");
	assert_int_equal(bringup_need_device(&t.b), BRINGUP_PASS);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	t_end(&t);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_ramp_finds_sensors_that_do_not_follow),
		cmocka_unit_test(throttling_is_held_to_the_data_sheet),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
