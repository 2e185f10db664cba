/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lanes of a core: their working memory, and the sharing of a family's work among
 * them (core.h).
 */
#include <stdlib.h>
#include <string.h>

#include "hal/sim/core/program.h"

static size_t round_up(size_t n)
{
	return (n + 63) & ~(size_t)63;
}

int sim_core_init(struct sim_core *core, const struct sim_cpu *cpu, struct sim_pool *pool,
		  struct sim_watch *watch)
{
	*core = (struct sim_core){ .cpu = cpu, .pool = pool, .watch = watch,
				   .n_lanes = cpu->lanes };
	core->scratch = calloc(cpu->lanes, sizeof(*core->scratch));
	core->base = calloc(ISA_MAX_BINDINGS, sizeof(*core->base));
	core->bytes = calloc(ISA_MAX_BINDINGS, sizeof(*core->bytes));
	core->window = calloc(ISA_MAX_BINDINGS, sizeof(*core->window));
	return core->scratch && core->base && core->bytes && core->window ? 0 : -1;
}

void sim_core_free(struct sim_core *core)
{
	for (unsigned i = 0; core->scratch && i < core->n_lanes; i++)
		free(core->scratch[i]);
	free(core->scratch);
	free(core->shared);
	free(core->base);
	free(core->bytes);
	free(core->window);
	memset(core, 0, sizeof(*core));
}

int sim_core_reserve(struct sim_core *core, const struct sim_program *p)
{
	if (p->shared > core->shared_bytes) {
		void *grown = aligned_alloc(64, round_up(p->shared));

		if (!grown)
			return -1;
		free(core->shared);
		core->shared = grown;
		core->shared_bytes = round_up(p->shared);
	}
	if (p->scratch <= core->scratch_bytes)
		return 0;
	for (unsigned i = 0; i < core->n_lanes; i++) {
		void *grown = aligned_alloc(64, round_up(p->scratch));

		if (!grown)
			return -1;
		free(core->scratch[i]);
		core->scratch[i] = grown;
	}
	core->scratch_bytes = round_up(p->scratch);
	return 0;
}

void *sim_scratch(struct sim_run *run, unsigned lane)
{
	return run->core->scratch[lane];
}

/*
 * Every part runs even if the run is to stop: what follows in a family may rely on
 * what its parts computed. Parts poll `stop` themselves.
 */
void sim_parallel(struct sim_run *run, uint64_t n, uint64_t grain, uint64_t ns,
		  void (*fn)(void *arg, uint64_t begin, uint64_t end, unsigned lane),
		  void *arg)
{
	uint64_t lanes = run->core->n_lanes, units, parts;

	if (!n)
		return;
	if (!grain)
		grain = 1;
	if (ns < SIM_PARALLEL_NS || lanes == 1 || n <= grain) {
		fn(arg, 0, n, 0);
		return;
	}
	/* A lane for each 10 us; a few parts for each, to balance. */
	units = n / grain + !!(n % grain);
	if (lanes > ns / (SIM_PARALLEL_NS / 2))
		lanes = ns / (SIM_PARALLEL_NS / 2);
	if (lanes > units)
		lanes = units;
	parts = lanes * 4 > units ? units : lanes * 4;
	grain *= (units + parts - 1) / parts;
	sim_pool_run(run->core->pool, n, grain, (unsigned)lanes, fn, arg);
}
