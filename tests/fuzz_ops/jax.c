/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The third way: cpu_backend.py in a process of its own, fed through a pipe.
 *
 * A request is a line of lengths (the text's, the number of arguments), the text, and for each
 * argument a line with its type, rank and dims, and its bytes. The answer is "ok N" and for
 * each result its length and bytes, or "no N" and N bytes of why. When the process dies, the
 * next program starts another.
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/fuzz_ops/fuzz.h"

#define ANSWER_MS 60000	/* some programs take LLVM long */
#define WORKER "tests/fuzz_ops/cpu_backend.py"

struct jax {
	char python[512];
	pid_t pid;
	FILE *to, *from;
};

static bool spawn(struct jax *j)
{
	int down[2], up[2];

	if (pipe(down))
		return false;
	if (pipe(up)) {
		close(down[0]);
		close(down[1]);
		return false;
	}
	fflush(NULL);
	j->pid = fork();
	if (!j->pid) {
		dup2(down[0], 0);
		dup2(up[1], 1);
		for (int fd = 3; fd < 64; fd++)
			close(fd);
		execl(j->python, j->python, WORKER, (char *)NULL);
		_exit(127);
	}
	close(down[0]);
	close(up[1]);
	j->to = fdopen(down[1], "w");
	j->from = fdopen(up[0], "r");
	return j->pid > 0 && j->to && j->from;
}

static void reap(struct jax *j)
{
	if (j->to)
		fclose(j->to);
	if (j->from)
		fclose(j->from);
	if (j->pid > 0)
		waitpid(j->pid, NULL, 0);
	j->to = j->from = NULL;
	j->pid = 0;
}

struct jax *jax_start(const char *python)
{
	struct jax *j = calloc(1, sizeof(*j));

	if (!j)
		return NULL;
	signal(SIGPIPE, SIG_IGN);
	snprintf(j->python, sizeof(j->python), "%s", python);
	if (spawn(j))
		return j;
	jax_stop(j);
	return NULL;
}

void jax_stop(struct jax *j)
{
	if (j)
		reap(j);
	free(j);
}

static void send_array(struct jax *j, const struct tc_array *a)
{
	fprintf(j->to, "%s %zu", elem_text(a->elem), a->bytes);
	for (unsigned d = 0; d < a->rank; d++)
		fprintf(j->to, " %" PRId64, a->dim[d]);
	fprintf(j->to, "\n");
	fwrite(a->data, 1, a->bytes, j->to);
}

static void send_program(struct jax *j, const struct program *p)
{
	fprintf(j->to, "%zu %u\n", strlen(p->for_jax), p->n_args + p->n_constants);
	fputs(p->for_jax, j->to);
	for (unsigned i = 0; i < p->n_args; i++)
		send_array(j, &p->in[i]);
	for (unsigned i = 0; i < p->n_constants; i++)
		send_array(j, &p->constants[i]);
	fflush(j->to);
}

static enum verdict take_results(struct jax *j, const struct program *p, unsigned n,
				 struct err *err)
{
	enum verdict worst = SAME;
	size_t bytes;

	for (unsigned i = 0; i < n; i++) {
		char line[64], *got;
		bool is_whole;

		if (!fgets(line, sizeof(line), j->from) || sscanf(line, "%zu", &bytes) != 1)
			return JAX_REFUSED;
		got = malloc(bytes + 1);
		is_whole = got && fread(got, 1, bytes, j->from) == bytes;
		if (is_whole && i < p->n_results && worst == SAME)
			worst = compare_results(p, i, got, bytes, true, "JAX", err);
		free(got);
		if (!is_whole)
			return JAX_REFUSED;
	}
	return worst;
}

static enum verdict take_answer(struct jax *j, const struct program *p, struct err *err)
{
	struct pollfd ready = { .fd = fileno(j->from), .events = POLLIN };
	char line[64], why[4096] = "";
	size_t n;

	if (poll(&ready, 1, ANSWER_MS) <= 0 || !fgets(line, sizeof(line), j->from)) {
		err_set(err, ERR_INTERNAL, "the CPU backend's process died, or gave no answer");
		kill(j->pid, SIGKILL);
		reap(j);
		return JAX_REFUSED;
	}
	if (sscanf(line, "ok %zu", &n) == 1)
		return take_results(j, p, (unsigned)n, err);
	if (sscanf(line, "no %zu", &n) == 1 && n < sizeof(why))
		n = fread(why, 1, n, j->from);
	err_set(err, ERR_UNIMPLEMENTED, "%.180s", why);
	return JAX_REFUSED;
}

enum verdict run_jax(struct jax *j, struct program *p, struct err *err)
{
	if (program_for_jax(p, err))
		return JAX_REFUSED;
	if (!j->to && !spawn(j)) {
		err_set(err, ERR_UNAVAILABLE, "no process for the CPU backend");
		return JAX_REFUSED;
	}
	send_program(j, p);
	return take_answer(j, p, err);
}
