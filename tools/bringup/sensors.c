/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the device says of its power, heat and clock, against what it is made to do. Times are the
 * device's own, as telemetry tells them; a bound by the host's clock stands behind each wait.
 */
#include <string.h>

#include "tools/bringup/compute.h"

#define MS 1000000ll

/* ---- load and readings ---- */

/* Work in bursts of about BURST. AHEAD of them are queued at most, so that a host that is busy with
 * something else for a while does not leave the device without work. */
#define BURST (5 * MS)
#define AHEAD 10u
#define MOST_RUNS 16u

struct load {
	struct bringup_work work;
	unsigned n_runs;	/* of a burst */
	uint64_t last[AHEAD];	/* runs of the bursts before, of burst n at n % AHEAD; 0: none */
	unsigned n;
};

static int wait_for(struct bringup *b, uint64_t *run)
{
	uint64_t value = *run;

	*run = 0;
	return value ? hal_queue_wait(b->compute, value, SOON, &b->err) : 0;
}

static int drain(struct bringup *b, struct load *l)
{
	int code = 0;

	for (unsigned i = 0; !code && i < AHEAD; i++)
		code = wait_for(b, &l->last[i]);
	return code;
}

static int burst(struct bringup *b, struct load *l)
{
	uint64_t *last = &l->last[l->n++ % AHEAD];
	int code = wait_for(b, last);

	for (unsigned i = 0; !code && i < l->n_runs; i++)
		code = bringup_launch_work(b, &l->work, last);
	return code;
}

/* The first run makes pages and caches; then as many as take long enough. */
static int begin_load(struct bringup *b, struct load *l)
{
	int code;

	*l = (struct load){ .n_runs = 1 };
	code = bringup_product(b, &l->work);
	if (!code)
		code = burst(b, l);
	while (!code) {
		int64_t begin = clock_ns();

		code = drain(b, l);
		if (!code)
			code = burst(b, l);
		if (!code)
			code = drain(b, l);
		if (clock_ns() - begin >= BURST / 2 || l->n_runs >= MOST_RUNS)
			break;
		l->n_runs *= 2;
	}
	return code;
}

/* There is no event for a device that cools: who waits for that looks again a little later. */
static void pause_a_little(void)
{
	nanosleep(&(struct timespec){ .tv_nsec = 2 * MS }, NULL);
}

/* Works for `share` of the time, 0 to 1, until so many ns of the device's have passed. What the
 * sensors read then is in *out. */
static enum bringup_result work_for(struct bringup *b, struct load *l, double share,
				    int64_t ns, struct hw_telemetry *out)
{
	int64_t deadline = clock_after(20 * ns + 10 * SECOND);
	struct hw_telemetry begin;

	TRY(b, hal_device_telemetry(b->dev, &begin, &b->err));
	for (;;) {
		double passed, busy;

		TRY(b, hal_device_telemetry(b->dev, out, &b->err));
		passed = (double)(int64_t)(out->time_ns - begin.time_ns);
		busy = (double)(int64_t)(out->busy_compute_ns - begin.busy_compute_ns);
		if (passed >= (double)ns)
			break;
		bringup_progress(b, passed / (double)ns, 0, NULL);
		if (clock_ns() > deadline)
			return bringup_fail(b, "the device's clock went on by %.3f s in %.0f s of "
					    "the host's", passed / SECOND, (double)(20 * ns + 10 *
					    SECOND) / SECOND);
		if (share > 0 && busy < share * passed)
			TRY(b, burst(b, l));
		else if (share < 1)
			pause_a_little();
	}
	if (share > 0)
		TRY(b, drain(b, l));
	return BRINGUP_PASS;
}

/* ---- the ramp ---- */

static const struct sensor {
	const char *name, *unit;
	double drift;	/* in half a second: less, and it has settled */
	double rise;	/* by a stage, at least */
	double back;	/* how much of its rise may be left when it counts as back */
} sensors[] = {
	{ "power", "W", 0.6, 5, 0.25 },
	{ "temperature", "C", 0.15, 0.3, 0.5 },
};
#define N_SENSORS COUNT(sensors)
#define STAGE (1500 * MS)
static const double stages[] = { 0.25, 0.5, 0.75, 1 };

static double value_of(const struct hw_telemetry *t, unsigned sensor)
{
	return (sensor ? t->temperature_mc : t->power_mw) / 1e3;
}

/* Whether either falls still, after what ran before. */
static bool falls(const struct hw_telemetry *a, const struct hw_telemetry *z)
{
	for (unsigned i = 0; i < N_SENSORS; i++)
		if (value_of(a, i) - value_of(z, i) > sensors[i].drift)
			return true;
	return false;
}

static enum bringup_result settle(struct bringup *b, struct hw_telemetry *idle)
{
	enum { TIMES = 120 };
	struct hw_telemetry before;

	TRY(b, hal_device_telemetry(b->dev, &before, &b->err));
	for (unsigned i = 0; i < TIMES; i++, before = *idle) {
		STEP_TRY(work_for(b, NULL, 0, 500 * MS, idle));
		if (!falls(&before, idle))
			return BRINGUP_PASS;
	}
	return bringup_fail(b, "without load power and temperature fall still after %d s: %.1f W, "
			    "%.1f C", TIMES / 2, value_of(idle, 0), value_of(idle, 1));
}

/* Load of this kind throttles nothing. */
static enum bringup_result check_clock(struct bringup *b, const struct hw_telemetry *idle,
				       const struct hw_telemetry *now)
{
	if (now->throttle && now->temperature_mc < HW_THROTTLE_OFF_MC)
		return bringup_fail(b, "throttle reads 0x%x at %.1f C, where nothing throttles",
				    now->throttle, value_of(now, 1));
	if (!now->throttle && now->clock_khz < idle->clock_khz)
		return bringup_fail(b, "the clock fell from %u to %u kHz, and throttle reads 0",
				    idle->clock_khz, now->clock_khz);
	return BRINGUP_PASS;
}

static enum bringup_result check_rise(struct bringup *b, const struct hw_telemetry *before,
				      const struct hw_telemetry *after, unsigned stage)
{
	double busy = (double)(after->busy_compute_ns - before->busy_compute_ns) /
		      (double)(after->time_ns - before->time_ns);

	for (unsigned i = 0; i < N_SENSORS; i++) {
		const struct sensor *s = &sensors[i];
		double rise = value_of(after, i) - value_of(before, i);
		char name[48];

		snprintf(name, sizeof(name), "%s_at_%.0f", s->name, 100 * stages[stage]);
		if (value_of(before, i) > 0)
			bringup_number(b, name, s->unit, value_of(after, i), 0, false);
		if (value_of(before, i) > 0 && !(rise >= s->rise))
			return bringup_fail(b, "%s went from %.2f to %.2f %s by a load of %.0f %% "
					    "(busy for %.0f %%): %.1f %s more is the least",
					    s->name, value_of(before, i), value_of(after, i),
					    s->unit, 100 * stages[stage], 100 * busy, s->rise,
					    s->unit);
	}
	return BRINGUP_PASS;
}

/* Seconds of the device's until both are back. */
static enum bringup_result come_back(struct bringup *b, const struct hw_telemetry *idle,
				     const struct hw_telemetry *peak, double *seconds)
{
	struct hw_telemetry now;

	for (unsigned i = 0; i < N_SENSORS; i++) {
		double limit = value_of(idle, i) + sensors[i].back *
			       (value_of(peak, i) - value_of(idle, i));

		do {
			STEP_TRY(work_for(b, NULL, 0, 100 * MS, &now));
			STEP_TRY(check_clock(b, idle, &now));
			*seconds = (double)(int64_t)(now.time_ns - peak->time_ns) / SECOND;
			if (*seconds > 30)
				return bringup_fail(b, "%s is %.1f %s 30 s after the load: it was "
						    "%.1f before it, %.1f at its end, and "
						    "should be back at %.1f", sensors[i].name,
						    value_of(&now, i), sensors[i].unit,
						    value_of(idle, i), value_of(peak, i), limit);
		} while (value_of(&now, i) > limit);
	}
	return BRINGUP_PASS;
}

/* Neither of the two that a ramp is about. */
static bool has_none(const struct hw_telemetry *t)
{
	return !t->temperature_mc && !t->power_mw;
}

enum bringup_result step_load_ramp(struct bringup *b)
{
	struct hw_telemetry idle, before, now;
	struct load load;
	double seconds;

	STEP_TRY(bringup_need_device(b));
	TRY(b, hal_device_telemetry(b->dev, &now, &b->err));
	if (has_none(&now))
		return bringup_skip(b, "the device has sensors of neither power nor temperature: "
				    "both read 0");
	TRY(b, begin_load(b, &load));
	bringup_hold(b, 0);
	STEP_TRY(settle(b, &idle));
	before = idle;
	for (unsigned i = 0; i < COUNT(stages); i++, before = now) {
		/* Coming back takes about as long. */
		bringup_part(b, i, 2 * COUNT(stages));
		STEP_TRY(work_for(b, &load, stages[i], STAGE, &now));
		STEP_TRY(check_clock(b, &idle, &now));
		STEP_TRY(check_rise(b, &before, &now, i));
	}
	bringup_hold(b, 0.5);
	STEP_TRY(come_back(b, &idle, &before, &seconds));
	bringup_number(b, "back_after", "s", seconds, 0, true);
	return bringup_pass(b, "from %.1f W, %.1f C without load to %.1f W, %.1f C after %zu "
			    "stages, and back in %.1f s; %u kHz, never throttled",
			    value_of(&idle, 0), value_of(&idle, 1), value_of(&before, 0),
			    value_of(&before, 1), COUNT(stages), seconds, before.clock_khz);
}

/* ---- throttling ---- */

static int read_in_air(struct bringup *b, uint32_t air_mc, struct hw_telemetry *out)
{
	int code = hal_device_inject(b->dev, HW_INJECT_AIR, air_mc, &b->err);

	return code ? code : hal_device_telemetry(b->dev, out, &b->err);
}

/* One reading against the data sheet; was: whether it was throttled before. */
static enum bringup_result check_throttle(struct bringup *b, const struct hw_telemetry *t,
					  bool was)
{
	bool is = t->throttle & HW_THROTTLE_HEAT;
	bool should = t->temperature_mc >= HW_THROTTLE_ON_MC ||
		      (was && t->temperature_mc > HW_THROTTLE_OFF_MC);
	uint32_t khz = should ? HW_CLOCK_THROTTLED_KHZ : HW_CLOCK_KHZ;

	if (is != should)
		return bringup_fail(b, "at %.2f C throttle reads 0x%x: the data sheet has it "
				    "throttled from %.0f C on, until %.0f C",
				    t->temperature_mc / 1e3, t->throttle, HW_THROTTLE_ON_MC / 1e3,
				    HW_THROTTLE_OFF_MC / 1e3);
	if (t->clock_khz != khz)
		return bringup_fail(b, "at %.2f C, throttle 0x%x, the clock is %u kHz, not %u",
				    t->temperature_mc / 1e3, t->throttle, t->clock_khz, khz);
	return BRINGUP_PASS;
}

/* Up, then down, a degree at a time, with work that goes on. */
static enum bringup_result warm_and_cool(struct bringup *b, struct load *l, double *on,
					 double *off)
{
	enum { K = 1000 };
	struct hw_telemetry t = { 0 };
	uint32_t air = HW_AIR_MC;
	bool was = false;

	for (; !was && air <= HW_MAX_AIR_MC; air += K) {
		TRY(b, read_in_air(b, air, &t));
		STEP_TRY(check_throttle(b, &t, was));
		was = t.throttle;
		TRY(b, burst(b, l));
	}
	*on = t.temperature_mc / 1e3;
	if (!was)
		return bringup_fail(b, "in air of %.0f C the device is %.1f C warm and never was "
				    "throttled", HW_MAX_AIR_MC / 1e3, *on);
	for (air -= K; was && air >= HW_AIR_MC; air -= K) {
		TRY(b, read_in_air(b, air, &t));
		STEP_TRY(check_throttle(b, &t, was));
		was = t.throttle;
		TRY(b, burst(b, l));
	}
	*off = t.temperature_mc / 1e3;
	if (was)
		return bringup_fail(b, "in air of %.0f C the device is %.1f C warm and throttled "
				    "still", HW_AIR_MC / 1e3, *off);
	return BRINGUP_PASS;
}

enum bringup_result step_throttle(struct bringup *b)
{
	struct hw_telemetry t;
	enum bringup_result r;
	struct load load;
	double on = 0, off = 0;
	int code;

	STEP_TRY(bringup_need_device(b));
	TRY(b, hal_device_telemetry(b->dev, &t, &b->err));
	if (!t.temperature_mc || !t.clock_khz)
		return bringup_skip(b, "the device has no sensor of %s: it reads 0",
				    t.temperature_mc ? "its clock" : "temperature");
	TRY(b, begin_load(b, &load));
	code = read_in_air(b, HW_AIR_MC, &t);
	if (code == ERR_UNIMPLEMENTED || code == ERR_INVALID_ARGUMENT)
		return bringup_skip(b, "load alone does not make the device %.0f C warm, and it "
				    "can't be told that its air is: %.400s",
				    HW_THROTTLE_ON_MC / 1e3, b->err.msg);
	TRY(b, code);
	r = warm_and_cool(b, &load, &on, &off);
	if (hal_device_inject(b->dev, HW_INJECT_AIR, HW_AIR_MC, &b->err) && r == BRINGUP_PASS)
		r = bringup_fail(b, "%s", b->err.msg);
	STEP_TRY(r);
	bringup_number(b, "throttled_at", "C", on, 0, false);
	bringup_number(b, "throttled_until", "C", off, 0, false);
	return bringup_pass(b, "throttled to %u kHz at %.1f C, at its %u kHz again at %.1f C",
			    HW_CLOCK_THROTTLED_KHZ, on, HW_CLOCK_KHZ, off);
}
