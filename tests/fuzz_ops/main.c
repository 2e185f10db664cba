/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_ops: makes programs and runs them three ways until the time is over.
 *
 *	fuzz_ops [--sharded] [--seconds S] [--until FILE [--least N]] [--programs N]
 *		[--seed SEED] [--jobs N] [--jax PERCENT] [--python PATH] [--out DIR]
 *	fuzz_ops [--sharded] --one SEED		one program of that seed, and smaller if it fails
 *	fuzz_ops --replay FILE...		programs of files: tests/data/fuzz_ops
 *	fuzz_ops [--sharded] --print SEED
 *	fuzz_ops --stablehlo FILE
 *
 * The time is over after S seconds, or once FILE is there and N programs were begun; that ends
 * reductions too, at what they have. With --sharded programs are for several devices (gen_shard.c),
 * and JAX gets none of them.
 * Programs run in a child, so that a crash costs one program: the child notes its seed in
 * shared memory, and the parent reports it and goes on behind it. Exits 1 if anything differed,
 * was refused, or crashed, 2 if no program was run, or a child died between two.
 */
#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/fuzz_ops/fuzz.h"

#define MOST_REPORTS 60u	/* failures that are reduced and saved */
#define PROGRAM_SECONDS 60	/* longer, and it hangs */
#define TRIAL_SECONDS 10
#define MOST_JOBS 64

struct options {
	unsigned seconds, jax, jobs;
	bool is_sharded;
	uint64_t programs, least, seed;
	const char *python, *out, *until;
};

/* Shared with the child. */
struct state {
	uint64_t next;		/* seed */
	uint64_t running[MOST_JOBS];	/* each job's seed */
	bool is_running[MOST_JOBS];	/* between programs it runs none */
	uint64_t n[VERDICTS], with_jax;
	char reports[MOST_REPORTS][64];	/* signatures of what was saved */
	unsigned n_reports;
	struct coverage coverage;
};

struct session {
	const struct options *o;
	struct state *state;
	struct device *device;
	struct jax *jax;
	double end;
};

static void add(uint64_t *n, uint64_t more)
{
	__atomic_fetch_add(n, more, __ATOMIC_RELAXED);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Someone made the file of --until. */
static bool is_told_to_end(const struct options *o)
{
	return o->until && !access(o->until, F_OK);
}

/* All ways of one program; `jax` may be NULL. */
static enum verdict run_ways(struct program *p, uint64_t seed, unsigned model, struct device *d,
			     struct jax *jax, struct err *err)
{
	enum verdict is;

	alarm(PROGRAM_SECONDS);
	program_fill(p, seed);
	is = run_evaluator(p, err);
	if (is == SAME)
		is = run_device(d, model, p, err);
	alarm(0);
	if (is == SAME && jax && p->is_for_jax)
		is = run_jax(jax, p, err);
	return is;
}

/* ---- failures ---- */

static char *copy(const char *text)
{
	char *p = malloc(strlen(text) + 1);

	return p ? strcpy(p, text) : NULL;
}

enum { SIGNATURE = 64 };
struct search {
	const struct options *o;
	enum verdict is;
	uint64_t seed;
	struct device *device;
	struct jax *jax;
	char first[SIGNATURE];
};

/* What tells a failure from others: the end of its message without names, places and numbers,
 * which change with the program. */
static void sign(const struct err *err, enum verdict is, char out[SIGNATURE])
{
	const char *from = strstr(err->msg, "the instruction at"), *p;
	unsigned n = 0;

	if (!from)
		from = strstr(err->msg, "the device refused");
	for (p = from ? from : err->msg; *p && n + 1 < SIGNATURE; p++)
		if (strchr(" :(),", *p) || (p > err->msg && isalpha(*p) && !isxdigit(p[-1])))
			out[n++] = *p;
	out[is == REFUSED || is == NO_ORACLE ? n : 0] = 0;
}

/* In a child: a smaller program may crash, or loop for ever. */
static enum verdict try_apart(struct search *s, struct program *p)
{
	struct err err = { 0 };
	enum verdict is;
	char own[SIGNATURE];
	int status;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (!pid) {
		alarm(TRIAL_SECONDS);
		is = run_evaluator(p, &err);
		if (is == SAME)
			is = run_device(device_new(), (unsigned)s->seed, p, &err);
		sign(&err, is, own);
		_exit(is == s->is && strcmp(own, s->first) ? INVALID : (int)is);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return INVALID;
	if (WIFSIGNALED(status))
		return WTERMSIG(status) == SIGALRM ? INVALID : CRASHED;
	return (enum verdict)WEXITSTATUS(status);
}

static bool still_fails(const char *text, void *arg)
{
	struct search *s = arg;
	struct err err = { 0 };
	struct program p;
	enum verdict is;

	if (is_told_to_end(s->o) || program_read(copy(text), &p, &err))
		return false;
	program_fill(&p, s->seed);
	is = try_apart(s, &p);
	if (is == SAME && s->is == JAX_DIFFERENT && run_evaluator(&p, &err) == SAME)
		is = run_jax(s->jax, &p, &err);
	program_free(&p);
	return is == s->is;
}

static void save(const struct options *o, uint64_t seed, const char *kind, const char *text,
		 const char *why)
{
	struct err err;
	struct program p;
	char path[600];
	FILE *f;

	mkdir(o->out, 0777);
	snprintf(path, sizeof(path), "%s/%" PRIx64 "%s.ir", o->out, seed, kind);
	f = fopen(path, "w");
	if (!f)
		return;
	fprintf(f, "// seed 0x%" PRIx64 "\n// %s\n%s", seed, why, text);
	fclose(f);
	printf("  %s\n  again: build/opt/fuzz_ops/fuzz_ops --jax 100 --replay %s\n", path,
	       path);
	if (program_read(copy(text), &p, &err))
		return;
	if (!program_stablehlo(&p, &err)) {
		snprintf(path, sizeof(path), "%s/%" PRIx64 "%s.mlir", o->out, seed, kind);
		f = fopen(path, "w");
		if (f) {
			fputs(p.stablehlo, f);
			fclose(f);
		}
		if (*kind)
			printf("%s", p.stablehlo);
	}
	program_free(&p);
}

/* Refusals in the same words are reduced but twice. */
static bool is_known(struct state *state, const char *signature)
{
	unsigned n = 0;

	for (unsigned i = 0; i < state->n_reports; i++)
		n += *signature && !strcmp(state->reports[i], signature);
	if (n < 2)
		snprintf(state->reports[state->n_reports++], SIGNATURE, "%s", signature);
	return n >= 2;
}

static void report(struct session *s, uint64_t seed, const char *text, enum verdict is,
		   const struct err *why)
{
	struct search search = { .o = s->o, .is = is, .seed = seed, .device = s->device,
				 .jax = s->jax };
	char *small, line[300];

	snprintf(line, sizeof(line), "%s: %.250s", verdict_names[is], why->msg);
	for (char *p = line; *p; p++)
		if (*p == '\n')
			*p = ' ';
	printf("seed 0x%" PRIx64 ": %s\n", seed, line);
	sign(why, is, search.first);
	if (s->state->n_reports < MOST_REPORTS && !is_known(s->state, search.first)) {
		save(s->o, seed, "", text, line);
		small = reduce_program(text, still_fails, &search);
		if (small)
			save(s->o, seed, ".small", small, line);
		else
			printf("%s", text);
		free(small);
	}
	fflush(stdout);
}

/* ---- the child: programs one after another ---- */

static void run_seed(struct session *s, uint64_t seed)
{
	struct err err = { 0 };
	struct program p;
	enum verdict is;
	uint64_t dice = seed ^ 0x5bd1e995;
	bool with_jax = s->jax && fuzz_next(&dice) % 100 < s->o->jax;

	alarm(PROGRAM_SECONDS);
	if (program_generate(seed, s->o->is_sharded, &p, &err)) {
		printf("seed 0x%" PRIx64 ": the generator made no program: %s\n", seed,
		       err.msg);
		add(&s->state->n[INVALID], 1);
		return;
	}
	is = run_ways(&p, seed, (unsigned)seed, s->device, with_jax ? s->jax : NULL, &err);
	add(&s->state->n[is], 1);
	if (with_jax && p.is_for_jax && (is == SAME || is == JAX_DIFFERENT))
		add(&s->state->with_jax, 1);
	program_count(&p, &s->state->coverage);
	if (is == JAX_REFUSED && getenv("FUZZ_OPS_VERBOSE"))
		printf("seed 0x%" PRIx64 ": JAX refused: %s\n", seed, err.msg);
	if (is != SAME && is != JAX_REFUSED)
		report(s, seed, p.text, is, &err);
	program_free(&p);
}

static bool has_begun_least(const struct session *s)
{
	return __atomic_load_n(&s->state->next, __ATOMIC_RELAXED) - s->o->seed >= s->o->least;
}

static void child(struct session *s, unsigned job)
{
	uint64_t seed;

	s->device = device_new();
	s->jax = s->o->jax ? jax_start(s->o->python) : NULL;
	if (s->o->jax && !s->jax) {
		printf("no Python at %s\n", s->o->python);
		exit(2);
	}
	while (now() < s->end && !(is_told_to_end(s->o) && has_begun_least(s))) {
		seed = __atomic_fetch_add(&s->state->next, 1, __ATOMIC_RELAXED);
		if (seed - s->o->seed >= s->o->programs)
			break;
		s->state->running[job] = seed;
		s->state->is_running[job] = true;
		run_seed(s, seed);
		alarm(0);
		s->state->is_running[job] = false;
	}
	jax_stop(s->jax);
	device_free(s->device);
	fflush(stdout);
	exit(0);
}

static void report_crash(struct session *s, uint64_t seed, int status)
{
	struct err why = { .msg = "" };
	struct program p;

	add(&s->state->n[CRASHED], 1);
	err_set(&why, ERR_INTERNAL, "signal %d (%s)", WTERMSIG(status),
		strsignal(WTERMSIG(status)));
	if (!program_generate(seed, s->o->is_sharded, &p, &why)) {
		report(s, seed, p.text, CRASHED, &why);
		program_free(&p);
	}
}

static pid_t start_job(struct session *s, unsigned job)
{
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (!pid)
		child(s, job);
	return pid;
}

/* Another job would end like this one, which ran no program. */
static bool is_job_at_fault(const struct state *state, unsigned job, int status)
{
	if (WIFEXITED(status) && WEXITSTATUS(status))
		printf("a job ended with status %d\n", WEXITSTATUS(status));
	else if (WIFSIGNALED(status) && !state->is_running[job])
		printf("a job got signal %d (%s) while it ran no program\n", WTERMSIG(status),
		       strsignal(WTERMSIG(status)));
	else
		return false;
	return true;
}

/* Keeps the jobs going until the time is over; false: they can't run. */
static bool keep_jobs(struct session *s, pid_t pids[MOST_JOBS])
{
	unsigned left = s->o->jobs, job;
	int status;
	pid_t pid;

	for (job = 0; job < left; job++)
		pids[job] = start_job(s, job);
	while (left) {
		pid = waitpid(-1, &status, 0);
		if (pid < 0) {
			printf("no job is left: %s\n", strerror(errno));
			return false;
		}
		for (job = 0; job < MOST_JOBS && pids[job] != pid; job++)
			;
		if (job == MOST_JOBS)
			continue;
		pids[job] = 0;
		if (is_job_at_fault(s->state, job, status))
			return false;
		if (!WIFSIGNALED(status)) {
			left--;
			continue;
		}
		report_crash(s, s->state->running[job], status);
		s->state->is_running[job] = false;
		pids[job] = start_job(s, job);
	}
	return true;
}

static bool run_jobs(struct session *s)
{
	pid_t pids[MOST_JOBS] = { 0 };
	bool is_well = keep_jobs(s, pids);

	for (unsigned job = 0; job < MOST_JOBS; job++)
		if (pids[job] > 0 && !kill(pids[job], SIGKILL))
			waitpid(pids[job], NULL, 0);
	return is_well;
}

/* What happened, in numbers; gives the exit status. */
static int sum_up(const struct options *o, const struct state *t, double seconds)
{
	uint64_t all = 0, bad, refused = t->n[JAX_REFUSED];

	for (unsigned i = 0; i < VERDICTS; i++)
		all += t->n[i];
	if (!all) {
		printf("no program was run: %s\n", is_told_to_end(o) ? "it was told to end before "
		       "the first one" : "there was no time");
		return 2;
	}
	coverage_print(&t->coverage);
	printf("seed 0x%" PRIx64 ": %" PRIu64 " programs in %.0f s, %.0f a second; %" PRIu64
	       " with JAX too\n", o->seed, all, seconds, (double)all / seconds, t->with_jax);
	for (unsigned i = 0; i < VERDICTS; i++)
		printf("%s%s %" PRIu64, i ? ", " : "", verdict_names[i], t->n[i]);
	printf("\n");
	bad = all - t->n[SAME] - refused;
	/* a few types it does not run; many, and what is sent is no StableHLO */
	if (refused > 20 && refused > t->with_jax / 2) {
		printf("JAX refuses too much\n");
		return 1;
	}
	return bad ? 1 : 0;
}

static int run_many(const struct options *o)
{
	struct session s = { .o = o, .end = now() + o->seconds };
	double start = now();

	s.state = mmap(NULL, sizeof(*s.state), PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (s.state == MAP_FAILED)
		return 2;
	s.state->next = o->seed;
	printf("fuzz_ops: seed 0x%" PRIx64 ", %u s, %u jobs, %u %% with JAX\n", o->seed,
	       o->seconds, o->jobs, o->jax);
	if (!run_jobs(&s))
		return 2;
	return sum_up(o, s.state, now() - start);
}

/* ---- single programs ---- */

static int replay(const struct options *o, char **files, int n)
{
	struct device *d = device_new();
	struct jax *jax = o->jax ? jax_start(o->python) : NULL;
	int bad = 0;

	for (int i = 0; i < n; i++)
		bad += replay_file(files[i], d, jax) != SAME;
	printf("%d of %d programs are the same\n", n - bad, n);
	jax_stop(jax);
	device_free(d);
	return bad ? 1 : 0;
}

static int print_seed(uint64_t seed, bool is_sharded)
{
	struct err err;
	struct program p;

	if (program_generate(seed, is_sharded, &p, &err)) {
		printf("%s\n", err.msg);
		return 1;
	}
	printf("// seed 0x%" PRIx64 "\n%s", seed, p.text);
	program_free(&p);
	return 0;
}

static int print_stablehlo(const char *path)
{
	char *text = fuzz_read_file(path);
	struct err err = { .msg = "it can't be read" };
	struct program p;

	if (!text || program_read(text, &p, &err) || program_stablehlo(&p, &err)) {
		printf("%s: %s\n", path, err.msg);
		return 1;
	}
	printf("%s", p.stablehlo);
	program_free(&p);
	return 0;
}

/* Of an option; ends the program if the text is no number, or one beyond `least` to `most`. */
static uint64_t number(const char *text, uint64_t least, uint64_t most)
{
	char *end;
	uint64_t n;

	errno = 0;
	n = strtoull(text, &end, 0);
	if (isdigit((unsigned char)*text) && !*end && !errno && n >= least && n <= most)
		return n;
	printf("\"%s\" is no number from %" PRIu64 " to %" PRIu64 "\n", text, least, most);
	exit(2);
}

int main(int argc, char **argv)
{
	static const struct option longs[] = {
		{ "seconds", 1, NULL, 's' },
		{ "programs", 1, NULL, 'n' },
		{ "until", 1, NULL, 'u' }, { "least", 1, NULL, 'l' },
		{ "seed", 1, NULL, 'r' },
		{ "jobs", 1, NULL, 'J' }, { "jax", 1, NULL, 'j' },
		{ "python", 1, NULL, 'p' },
		{ "out", 1, NULL, 'o' },
		{ "one", 1, NULL, '1' },
		{ "replay", 0, NULL, 'f' },
		{ "print", 1, NULL, 'P' },
		{ "sharded", 0, NULL, 'm' },
		{ "stablehlo", 1, NULL, 'S' },
		{ 0 },
	};
	struct options o = { .seconds = 60, .jobs = 1,
			     .programs = UINT64_MAX,
			     .python = "build/venv/bin/python",
			     .out = "build/fuzz-ops" };
	bool is_replay = false;
	int c;

	o.seed = (uint64_t)time(NULL) << 20 ^ (uint64_t)getpid() << 40;
	while ((c = getopt_long(argc, argv, "", longs, NULL)) != -1) {
		switch (c) {
		case 's': o.seconds = (unsigned)number(optarg, 0, UINT_MAX); break;
		case 'n': o.programs = number(optarg, 1, UINT64_MAX); break;
		case 'u': o.until = optarg; break;
		case 'l': o.least = number(optarg, 0, UINT64_MAX); break;
		case 'r': o.seed = number(optarg, 0, UINT64_MAX); break;
		case 'J': o.jobs = (unsigned)number(optarg, 1, UINT_MAX); break;
		case 'j': o.jax = (unsigned)number(optarg, 0, 100); break;
		case 'p': o.python = optarg; break;
		case 'o': o.out = optarg; break;
		case '1':
			o.seed = number(optarg, 0, UINT64_MAX);
			o.programs = 1;
			break;
		case 'f': is_replay = true; break;
		case 'm': o.is_sharded = true; break;
		case 'P': return print_seed(number(optarg, 0, UINT64_MAX), o.is_sharded);
		case 'S': return print_stablehlo(optarg);
		default: return 2;
		}
	}
	if (o.jobs > MOST_JOBS)
		o.jobs = MOST_JOBS;
	if (o.least && !o.until) {
		printf("--least goes with --until\n");
		return 2;
	}
	return is_replay ? replay(&o, argv + optind, argc - optind) : run_many(&o);
}
