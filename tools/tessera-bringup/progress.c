/* SPDX-License-Identifier: Apache-2.0 */
/* One line on a terminal, written again and again. */
#include "tools/tessera-bringup/progress.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "hal/base/clock.h"
#include "tools/tessera-bringup/launcher.h"

enum { MOST_COLUMNS = 200, BAR = 24 };

void progress_begin(struct progress *p, FILE *to)
{
	const char *term = getenv("TERM");
	bool can = isatty(fileno(to)) && term && *term && strcmp(term, "dumb") != 0;

	*p = (struct progress){ .to = can ? to : NULL, .launcher = launcher_open(),
				.began = clock_ns() };
}

/* "12.3 M accesses/s" */
static void say_rate(char *text, size_t room, const struct bringup_progress *at)
{
	static const char *const units[] = { "", "k ", "M ", "G " };
	double rate = at->seconds > 0 ? at->amount / at->seconds : 0;
	unsigned unit = 0;

	*text = 0;
	if (!at->unit || !(rate > 0))
		return;
	for (; unit < 3 && rate >= 1000; unit++)
		rate /= 1000;
	snprintf(text, room, ", %.3g %s%s/s", rate, units[unit], at->unit);
}

/* "1:02:03 left" */
static void say_left(char *text, size_t room, const struct progress *p, double done)
{
	double passed = (double)(clock_ns() - p->began) / 1e9;
	double left = done > 0 ? passed * (1 - done) / done : 0;
	unsigned s = left < 1e8 ? (unsigned)(left + 0.5) : 100000000;

	*text = 0;
	/* The first seconds tell nothing of the rest. */
	if (passed < 0.5 || done < 0.01)
		return;
	if (s >= 3600)
		snprintf(text, room, ", %u:%02u:%02u left", s / 3600, s / 60 % 60, s % 60);
	else
		snprintf(text, room, ", %u:%02u left", s / 60, s % 60);
}

static unsigned columns(FILE *to)
{
	struct winsize w;

	if (ioctl(fileno(to), TIOCGWINSZ, &w) || !w.ws_col)
		return 80;
	return w.ws_col < MOST_COLUMNS ? w.ws_col : MOST_COLUMNS;
}

static void draw(struct progress *p, const struct bringup_progress *at)
{
	static const char full[] = "########################", none[] = "........................";
	char line[2 * MOST_COLUMNS], rate[64], left[32];
	int n = (int)(at->done * BAR);

	say_rate(rate, sizeof(rate), at);
	say_left(left, sizeof(left), p, at->done);
	snprintf(line, sizeof(line), "[%.*s%.*s] %3.0f %%, step %u of %u, %s%s%s", n, full, BAR - n,
		 none, 100 * at->done, at->n, at->of, at->row->step->name, rate, left);
	/* A line that is wrapped could not be taken back. */
	fprintf(p->to, "\r\033[K%.*s", (int)columns(p->to) - 1, line);
	fflush(p->to);
	p->is_shown = true;
}

void progress_show(struct progress *p, const struct bringup_progress *at)
{
	if (p->to)
		draw(p, at);
	launcher_progress(p->launcher, at->done);
}

void progress_clear(struct progress *p)
{
	if (!p->is_shown)
		return;
	fputs("\r\033[K", p->to);
	fflush(p->to);
	p->is_shown = false;
}

void progress_alarm(struct progress *p)
{
	launcher_urgent(p->launcher);
}

void progress_end(struct progress *p)
{
	progress_clear(p);
	launcher_close(p->launcher);
	p->launcher = NULL;
}
