/* SPDX-License-Identifier: Apache-2.0 */
/* TESSERA_LOG is parsed once into a short table of tag prefixes. */
#include "hal/base/log.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hal/base/clock.h"

#define MAX_RULES 16

struct rule {
	char prefix[32];	/* empty: every tag */
	enum log_level level;
};

static const char *const level_names[] = {
	"none", "error", "warn", "info", "debug", "trace",
};
static struct rule rules[MAX_RULES];
static int n_rules;
static enum log_level most;	/* the most that any rule asks for */
static pthread_once_t once = PTHREAD_ONCE_INIT;

static int level_of(const char *text)
{
	for (int i = 0; i <= LOG_TRACE; i++)
		if (!strcmp(text, level_names[i]))
			return i;
	return -1;
}

static void add_rule(char *word)
{
	char *colon = strchr(word, ':');
	struct rule *r = &rules[n_rules];
	int level = level_of(colon ? colon + 1 : word);

	if (level < 0) {
		fprintf(stderr, "tessera: TESSERA_LOG: \"%s\" is not [tag:]level "
			"with a level of none, error, warn, info, debug, trace\n",
			word);
		return;
	}
	if (colon)
		*colon = 0;
	snprintf(r->prefix, sizeof(r->prefix), "%s", colon ? word : "");
	r->level = (enum log_level)level;
	if (r->level > most)
		most = r->level;
	n_rules++;
}

static void parse_environment(void)
{
	const char *text = getenv("TESSERA_LOG");
	char copy[512], *save = NULL;

	if (!text)
		return;
	snprintf(copy, sizeof(copy), "%s", text);
	for (char *w = strtok_r(copy, ",", &save); w && n_rules < MAX_RULES;
	     w = strtok_r(NULL, ",", &save))
		add_rule(w);
}

int log_on(const char *tag, enum log_level level)
{
	int best = -1;
	enum log_level wanted = LOG_NONE;

	pthread_once(&once, parse_environment);
	if (level > most)
		return 0;
	for (int i = 0; i < n_rules; i++) {
		int len = (int)strlen(rules[i].prefix);

		if (len > best && !strncmp(tag, rules[i].prefix, (size_t)len)) {
			best = len;
			wanted = rules[i].level;
		}
	}
	return level <= wanted;
}

void log_write(const char *tag, enum log_level level, const char *fmt, ...)
{
	char line[1024];
	double now = (double)clock_ns() * 1e-9;
	int used = snprintf(line, sizeof(line), "%.6f %-5s %s: ", now,
			    level_names[level], tag);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line + used, sizeof(line) - (size_t)used, fmt, ap);
	va_end(ap);
	fprintf(stderr, "%s\n", line);
}
