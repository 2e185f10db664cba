/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs the conformance checks on what TESSERA_DEVICES names:
 *
 *	conformance [--quick] [--list] [--only WORD]...
 *	conformance --busy ROUNDS	(busy.c; 0: until it is killed)
 *	conformance --recovery ROUNDS	(recover.c: times)
 *
 * One line a check, fields separated by tabs: area, name, result (ok, FAIL, n.a.), digest
 * of the bytes seen or "-", milliseconds, reason. Exits 1 if a check failed, 2 if it
 * could not begin.
 */
#include "tests/conformance/conf.h"

struct check {
	const char *area, *name;
	unsigned flags;
	uint64_t digest;
	void (*run)(struct conf *c);
};

static const struct check checks[] = {
#define CHECK(area, name, flags, digest) { #area, #name, flags, digest, check_##name },
#include "tests/conformance/checks.def"
#undef CHECK
};

struct state {
	struct hal_mem_stats hbm, host;
};

static void take_state(struct conf *c, struct state *s)
{
	hal_mem_stats(c->dev, HAL_MEM_HBM, &s->hbm);
	hal_mem_stats(c->dev, HAL_MEM_HOST, &s->host);
}

/* What a check must leave as it was. */
static void compare_state(struct conf *c, const struct state *before)
{
	struct state now;

	OK(c, hal_device_error(c->dev, &c->err));
	take_state(c, &now);
	EXPECT(c, now.hbm.bytes_in_use == before->hbm.bytes_in_use);
	EXPECT(c, now.hbm.n_allocs == before->hbm.n_allocs);
	EXPECT(c, now.hbm.largest_free_bytes == before->hbm.largest_free_bytes);
	EXPECT(c, now.host.bytes_in_use == before->host.bytes_in_use);
	EXPECT(c, now.host.n_allocs == before->host.n_allocs);
}

static void run(struct conf *c, const struct check *check)
{
	struct state before;

	take_state(c, &before);
	check->run(c);
	compare_state(c, &before);
	if (check->digest != (c->n_seen ? c->digest : 0))
		conf_fail(c, "the digest of %llu bytes seen is not 0x%016llx",
			  (unsigned long long)c->n_seen, (unsigned long long)check->digest);
}

/* "ok", "FAIL" or "n.a.". */
static const char *run_one(struct conf *c, const struct check *check)
{
	c->digest = c->n_seen = 0;
	c->is_not_applicable = false;
	c->why[0] = 0;
	if (!setjmp(c->end)) {
		run(c, check);
		return "ok";
	}
	/* Whatever it left behind goes with the device. */
	conf_close(c);
	if (conf_open(c))
		fprintf(stderr, "opening %s again: %s\n", c->devices, c->err.msg);
	return c->is_not_applicable ? "n.a." : "FAIL";
}

static bool is_wanted(const struct check *check, int argc, char **argv)
{
	bool all = true;

	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--quick") && check->flags & CHECK_SLOW)
			return false;
		if (strcmp(argv[i], "--only") || i + 1 >= argc)
			continue;
		all = false;
		i++;
		if (strstr(check->name, argv[i]) || !strcmp(check->area, argv[i]))
			return true;
	}
	return all;
}

static int list(void)
{
	for (size_t i = 0; i < COUNT(checks); i++)
		printf("%s\t%s\t%s\n", checks[i].area, checks[i].name,
		       checks[i].flags & CHECK_SLOW ? "slow" : "");
	return 0;
}

static int use(const char *word)
{
	fprintf(stderr, "conformance: \"%s\"?\nuse: conformance [--quick] [--list] "
		"[--only WORD]...\n     conformance --busy ROUNDS\n     conformance --recovery "
		"ROUNDS\n", word);
	return 2;
}

int main(int argc, char **argv)
{
	static struct conf c;
	unsigned failed = 0, passed = 0, other = 0;
	const char *rounds = NULL, *times = NULL;

	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--list"))
			return list();
		if (!strcmp(argv[i], "--busy") && i + 1 < argc) {
			rounds = argv[++i];
			continue;
		}
		if (!strcmp(argv[i], "--recovery") && i + 1 < argc) {
			times = argv[++i];
			continue;
		}
		if (!strcmp(argv[i], "--only") && i + 1 < argc)
			i++;
		else if (strcmp(argv[i], "--quick"))
			return use(argv[i]);
	}
	c.devices = getenv("TESSERA_DEVICES");
	if (conf_open(&c)) {
		fprintf(stderr, "conformance: %s\n", c.err.msg);
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (rounds)
		return conf_busy(&c, strtoul(rounds, NULL, 10));
	if (times)
		return conf_recovery(&c, strtoul(times, NULL, 10));
	for (size_t i = 0; i < COUNT(checks); i++) {
		int64_t began = clock_ns();
		char digest[24] = "-";
		const char *result;

		if (!is_wanted(&checks[i], argc, argv))
			continue;
		result = run_one(&c, &checks[i]);
		failed += *result == 'F';
		passed += *result == 'o';
		other += *result == 'n';
		if (c.n_seen && *result != 'n')
			snprintf(digest, sizeof(digest), "%016llx",
				 (unsigned long long)c.digest);
		printf("%s\t%s\t%s\t%s\t%lld\t%s\n", checks[i].area, checks[i].name, result,
		       digest, (long long)((clock_ns() - began) / MS), c.why);
		if (!c.dev)
			return 1;
	}
	fprintf(stderr, "%s: %u ok, %u failed, %u not applicable\n", c.info.bus_id, passed,
		failed, other);
	conf_close(&c);
	return failed ? 1 : 0;
}
