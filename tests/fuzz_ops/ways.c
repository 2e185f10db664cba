/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two of the ways: the evaluator, and the runtime on models of the device. The models differ in
 * lanes and instruction sets, which must not show.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/rt.h"
#include "tests/fuzz_ops/fuzz.h"

const char *const verdict_names[VERDICTS] = { "same",	   "different",	    "refused",
					      "no oracle", "JAX different", "JAX refused",
					      "crashed",   "invalid" };

static const char *const models[] = {
	"sim:hbm=256M,lanes=1,path=portable", "sim:hbm=256M,lanes=2,path=portable",
	"sim:hbm=256M,lanes=1,path=avx2", "sim:hbm=256M,lanes=2,path=avx2",
	"sim:hbm=256M,lanes=1,path=avx512", "sim:hbm=256M,lanes=2,path=avx512",
};
enum { MODELS = sizeof(models) / sizeof(*models) };
_Static_assert(DEVICE_WAYS == 2 * MODELS, "each with strips and without");

struct device {
	struct rt_client *client[MODELS];
	struct rt_client *linked;	/* of FUZZ_MAX_MEMBERS devices */
	bool is_missing[MODELS];	/* the CPU has no such instructions */
	bool is_fixed;			/* TESSERA_DEVICES names the one */
};

struct device *device_new(void)
{
	struct device *d = calloc(1, sizeof(*d));

	setenv("TESSERA_CACHE", "off", 1);
	if (d)
		d->is_fixed = getenv("TESSERA_DEVICES") != NULL;
	return d;
}

void device_free(struct device *d)
{
	for (unsigned i = 0; d && i < MODELS; i++)
		if (d->client[i])
			rt_client_unref(d->client[i]);
	if (d && d->linked)
		rt_client_unref(d->linked);
	free(d);
}

static bool checks(void)
{
	const char *text = getenv("TESSERA_SIM");

	return text && strstr(text, "check");
}

static struct rt_client *client_of(struct device *d, unsigned which, struct err *err)
{
	struct rt_client_options o = { 0 };
	char options[96];

	which = d->is_fixed ? 0 : which % MODELS;
	while (which > 1 && d->is_missing[which])
		which -= 2;
	if (d->client[which])
		return d->client[which];
	/* TESSERA_SIM=check goes for all models */
	snprintf(options, sizeof(options), "%s%s", models[which], checks() ? ",check" : "");
	o.devices = d->is_fixed ? getenv("TESSERA_DEVICES") : options;
	if (!rt_client_create(&o, &d->client[which], err))
		return d->client[which];
	d->client[which] = NULL;
	if (which < 2 || d->is_fixed)
		return NULL;
	d->is_missing[which] = true;
	return client_of(d, which - 2, err);
}

static struct rt_client *linked_of(struct device *d, struct err *err)
{
	struct rt_client_options o = { .devices = d->is_fixed ? getenv("TESSERA_DEVICES") :
				       checks() ? "sim:devices=8,lanes=1,hbm=256M,check" :
				       "sim:devices=8,lanes=1,hbm=256M" };

	if (!d->linked && rt_client_create(&o, &d->linked, err))
		d->linked = NULL;
	return d->linked;
}

/* ---- the evaluator ---- */

enum verdict run_evaluator(struct program *p, struct err *err)
{
	struct tc_source source = { p->text, strlen(p->text), "mlir" };

	if (tc_eval(&source, p->in, p->n_args, &p->expected, &p->n_expected, err))
		return NO_ORACLE;
	return SAME;
}

/* ---- the device ---- */

struct launch {
	struct rt_client *client;
	struct rt_exe *exe;
	struct rt_buffer *args[FUZZ_MAX_ARGS], *outs[FUZZ_MAX_RESULTS];
};

static enum verdict load(struct launch *l, const struct program *p, struct err *err)
{
	for (unsigned i = 0; i < p->n_args; i++) {
		struct rt_shape s = { .elem = (enum elem)p->args[i].elem,
				      .rank = p->args[i].rank };

		memcpy(s.dim, p->args[i].dim, s.rank * sizeof(*s.dim));
		if (rt_buffer_from_host(l->client, 0, RT_DEVICE, &s, p->in[i].data, NULL,
					&l->args[i], err))
			return REFUSED;
	}
	return SAME;
}

static enum verdict fetch(struct launch *l, const struct program *p, unsigned i,
			  struct err *err)
{
	size_t bytes = rt_shape_bytes(rt_buffer_shape(l->outs[i]));
	enum verdict is = REFUSED;
	struct rt_event *done;
	void *got = malloc(bytes + 1);

	if (!got || rt_buffer_to_host(l->outs[i], 0, got, bytes, &done, err)) {
		free(got);
		return REFUSED;
	}
	if (!rt_event_wait(done, err))
		is = compare_results(p, i, got, bytes, false, "the device", err);
	rt_event_unref(done);
	free(got);
	return is;
}

static enum verdict execute(struct launch *l, const struct program *p, struct err *err)
{
	enum verdict is = SAME;
	struct rt_event *done;

	if (load(l, p, err))
		return REFUSED;
	if (rt_execute(l->exe, l->args, p->n_args, NULL, l->outs, &done, err))
		return REFUSED;
	if (rt_event_wait(done, err))
		is = REFUSED;
	rt_event_unref(done);
	for (unsigned i = 0; is == SAME && i < p->n_results; i++)
		is = fetch(l, p, i, err);
	return is;
}

/* The program as it is, or by turns as it is where arrays of 64 bytes count as large: those of the
 * generator are too small to be made in strips otherwise. Not if it has random bits: what passes
 * leave of these are the device's, in another order than the op's of a program. */
static int compile(struct launch *l, unsigned which, const struct program *p, struct err *err)
{
	const struct tc_options o = { .level = 1, .verify = true, .strip_bytes = 64 };
	struct tc_source source = { p->text, strlen(p->text), "mlir" };
	char *text = NULL;
	int code = 0;

	if (which / MODELS % 2 && !strstr(p->text, "rng_bit_generator"))
		code = tc_print(&source, &o, "strip", &text, err);
	if (text)
		source = (struct tc_source){ text, strlen(text), "mlir" };
	if (!code)
		code = rt_compile(l->client, source.code, source.bytes, "mlir", NULL, 0, &l->exe,
				  err);
	free(text);
	return code;
}

enum verdict run_device(struct device *d, unsigned which, const struct program *p,
			struct err *err)
{
	struct launch l = { 0 };
	enum verdict is;

	if (p->n_partitions > 1)
		return linked_of(d, err) ? run_members(d->linked, p, err) : REFUSED;
	l.client = client_of(d, which, err);
	if (!l.client)
		return REFUSED;
	if (compile(&l, which, p, err))
		return REFUSED;
	is = execute(&l, p, err);
	for (unsigned i = 0; i < FUZZ_MAX_ARGS; i++)
		rt_buffer_unref(l.args[i]);
	for (unsigned i = 0; i < FUZZ_MAX_RESULTS; i++)
		rt_buffer_unref(l.outs[i]);
	rt_exe_unref(l.exe);
	return is;
}
