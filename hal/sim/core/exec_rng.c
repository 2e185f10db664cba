/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RNG: random words from a key and a counter. Blocks depend on their number alone,
 * so lanes take ranges of them (kernels/rng.c).
 *
 * Words and state are those of XLA's CPU backend. The state is the key, then the
 * counter, low half first. PHILOX counts in 128 bits: with a third state word that
 * is the high half; with two the high half of block i is the key, plus the carry of
 * the low half, and the state keeps the low half alone. A 64-bit number that a
 * program wants is two words, the low one first.
 */
#include <string.h>

#include "hal/sim/core/core.h"
#include "hal/sim/kernels/rng.h"

#define MAX_WORDS ((uint64_t)1 << 60)
#define GRAIN_BLOCKS 2048

struct rng_plan {
	struct sim_ref state, new_state, out;
	sim_rng_fn *fn;
	unsigned words_each;	/* of a block */
	unsigned state_words;
	bool is_philox;
	uint64_t n_words, n_blocks, ns;
};

struct rng_job {
	struct sim_run *run;
	const struct rng_plan *p;
	struct sim_rng_key key;
	uint32_t *out;
};

static void run_blocks(void *arg, uint64_t begin, uint64_t end, unsigned lane)
{
	const struct rng_job *job = arg;
	const struct rng_plan *p = job->p;

	(void)lane;
	while (begin < end && !sim_stopped(job->run)) {
		uint64_t n = end - begin < GRAIN_BLOCKS ? end - begin : GRAIN_BLOCKS;
		uint32_t *out = job->out + begin * p->words_each;
		uint64_t left = p->n_words - begin * p->words_each;

		if (left < n * p->words_each) {
			uint32_t last[4];

			/* the last block is cut */
			n--;
			p->fn(&job->key, begin + n, 1, last);
			memcpy(out + n * p->words_each, last,
			       (left - n * p->words_each) * sizeof(*out));
			end = begin + n;
		}
		p->fn(&job->key, begin, n, out);
		begin += n;
	}
}

static int check_fields(struct sim_load *load, const struct isa_rng *r)
{
	static const uint8_t none[sizeof(r->zero)];

	if (r->algorithm > ISA_RNG_THREEFRY || memcmp(r->zero, none, sizeof(none)))
		return sim_refuse(load, HW_ST_BAD_PROGRAM, "rng: no algorithm %u",
				  r->algorithm);
	if (r->state_words < 2 ||
	    r->state_words > (r->algorithm == ISA_RNG_PHILOX ? 3 : 2))
		return sim_refuse(load, HW_ST_BAD_PROGRAM, "rng: a state of %u words; "
				  "2, or 3 for philox", r->state_words);
	if (r->n_words > MAX_WORDS)
		return sim_refuse(load, HW_ST_BAD_PROGRAM, "rng: too many words");
	if (r->state.elem != ELEM_U64 || r->new_state.elem != ELEM_U64)
		return sim_refuse(load, HW_ST_BAD_PROGRAM, "rng: the state is ui64, not %s",
				  elem_text(r->state.elem != ELEM_U64 ? r->state.elem :
					    r->new_state.elem));
	return 0;
}

static int prepare(struct sim_load *load, const struct isa_insn *insn, const void **plan)
{
	const struct isa_rng *r = (const void *)insn;
	const struct sim_rng_fns *fns = load->cpu->path == SIM_AVX512 ? &sim_rng_avx512 :
		load->cpu->path == SIM_AVX2 ? &sim_rng_avx2 : &sim_rng_portable;
	struct sim_range state = { r->state_words, 8 }, out = { (int64_t)r->n_words, 4 };
	struct rng_plan *p = arena_alloc(load->arena, sizeof(*p));
	int ret = check_fields(load, r);

	if (!p)
		return sim_refuse(load, HW_ST_NO_ROOM, "no memory for a plan");
	/* words are what is stored, whatever the type they are for */
	if (!ret)
		ret = sim_ref(load, &r->state, 0, false, 8, 0, NULL, &state, 1, &p->state);
	if (!ret)
		ret = sim_ref(load, &r->new_state, 1, true, 8, 0, NULL, &state, 1,
			      &p->new_state);
	if (!ret)
		ret = sim_ref(load, &r->out, 2, true, 4, 0, NULL, &out, 1, &p->out);
	if (ret)
		return ret;
	p->is_philox = r->algorithm == ISA_RNG_PHILOX;
	p->fn = p->is_philox ? fns->philox : fns->threefry;
	p->words_each = p->is_philox ? 4 : 2;
	p->state_words = r->state_words;
	p->n_words = r->n_words;
	p->n_blocks = (r->n_words + p->words_each - 1) / p->words_each;
	p->ns = p->n_blocks * (load->cpu->path == SIM_PORTABLE ? 20 : 4);
	*plan = p;
	return 0;
}

static int run(struct sim_run *run, const void *plan)
{
	const struct rng_plan *p = plan;
	struct rng_job job = { .run = run, .p = p };
	const uint64_t *state = (const uint64_t *)sim_at(run, &p->state);
	uint64_t *new_state = state ? (uint64_t *)sim_at(run, &p->new_state) : NULL;
	uint64_t next[3];

	job.out = new_state ? (uint32_t *)sim_at(run, &p->out) : NULL;
	if (!job.out)
		return run->fault.status;
	memcpy(next, state, p->state_words * sizeof(*state));
	job.key.key = next[0];
	job.key.counter[0] = next[1];
	job.key.counter[1] = p->state_words == 3 ? next[2] : next[0];
	sim_parallel(run, p->n_blocks, GRAIN_BLOCKS, p->ns, run_blocks, &job);
	next[1] += p->n_blocks;
	if (p->state_words == 3)
		next[2] += next[1] < p->n_blocks;
	memcpy(new_state, next, p->state_words * sizeof(*state));
	run->vector_ops += p->n_words;
	run->read_bytes += p->state_words * sizeof(*state);
	run->write_bytes += p->n_words * sizeof(*job.out);
	return 0;
}

const struct sim_family sim_family_rng = { .prepare = prepare, .run = run };
