/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libunity tells launchers by com.canonical.Unity.LauncherEntry's signal Update, from GLib's main
 * loop. There is none here: a thread gives it a turn whenever there is something to tell. A
 * launcher is who owns com.canonical.Unity on the bus, which libunity learns in such turns, too.
 */
#include "tools/tessera-bringup/launcher.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LIBRARY "libunity.so.9"	/* brings GLib and GIO */
#define DESKTOP_ID "tessera-bringup.desktop"
enum { G_BUS_TYPE_SESSION = 2, ANSWER_MS = 1000, TURNS = 1000, PATIENCE_S = 10 };

/* FUNCTION(result, name, arguments): GLib's types are int for gboolean, void for the rest. */
#define FUNCTIONS \
	FUNCTION(void *, unity_launcher_entry_get_for_desktop_id, (const char *id)) \
	FUNCTION(void, unity_launcher_entry_set_progress, (void *entry, double value)) \
	FUNCTION(void, unity_launcher_entry_set_progress_visible, (void *entry, int is)) \
	FUNCTION(void, unity_launcher_entry_set_urgent, (void *entry, int is)) \
	FUNCTION(void *, g_bus_get_sync, (int type, void *cancel, void *error)) \
	FUNCTION(void, g_dbus_connection_set_exit_on_close, (void *bus, int is)) \
	FUNCTION(void *, g_dbus_connection_call_sync, \
		 (void *bus, const char *name, const char *path, const char *interface, \
		  const char *method, void *arguments, void *type, int flags, int timeout_ms, \
		  void *cancel, void *error)) \
	FUNCTION(int, g_dbus_connection_flush_sync, (void *bus, void *cancel, void *error)) \
	FUNCTION(void *, g_log_set_default_handler, \
		 (void (*log)(const char *, int, const char *, void *), void *arg)) \
	FUNCTION(void, g_variant_unref, (void *value)) \
	FUNCTION(int, g_main_context_iteration, (void *context, int may_block))

struct launcher {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	/* Under lock: what is to be told; whether the thread is to end, and has. */
	double done;
	bool is_urgent, must_end, has_ended;
	/* The thread's own. */
#define FUNCTION(result, name, arguments) result (*name) arguments;
	FUNCTIONS
#undef FUNCTION
	void *library, *bus, *entry;
};

/* ---- the thread ---- */

/* What has come in is dealt with, and what it leads to. */
static void take_turns(struct launcher *l)
{
	for (unsigned i = 0; i < TURNS && l->g_main_context_iteration(NULL, 0); i++)
		;
}

/* Waits for the bus to answer something: it has answered all before that then. */
static void meet_bus(struct launcher *l)
{
	void *answer = l->g_dbus_connection_call_sync(l->bus, "org.freedesktop.DBus",
		"/org/freedesktop/DBus", "org.freedesktop.DBus", "GetId", NULL, NULL, 0, ANSWER_MS,
		NULL, NULL);

	if (answer)
		l->g_variant_unref(answer);
}

/* Whether all functions are there. POSIX has pointers to functions come from dlsym this way. */
static bool find_all(struct launcher *l)
{
	void *at;

#define FUNCTION(result, name, arguments) \
	at = dlsym(l->library, #name); \
	if (!at) \
		return false; \
	memcpy(&l->name, &at, sizeof(at));
	FUNCTIONS
#undef FUNCTION
	return true;
}

/* libunity complains on standard error when the desktop ends, which is no matter of the card's. */
static void say_nothing(const char *domain, int level, const char *text, void *arg)
{
	(void)domain;
	(void)level;
	(void)text;
	(void)arg;
}

static bool meet_desktop(struct launcher *l)
{
	/* What libunity asks for one after the other until it knows whether a launcher is there. */
	enum { QUESTIONS = 4 };

	/* Never unloaded: GLib's threads stay. */
	l->library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
	if (!l->library || !find_all(l))
		return false;
	l->g_log_set_default_handler(say_nothing, NULL);
	l->bus = l->g_bus_get_sync(G_BUS_TYPE_SESSION, NULL, NULL);
	if (!l->bus)
		return false;
	/* A desktop that ends takes no test of a card with it. */
	l->g_dbus_connection_set_exit_on_close(l->bus, 0);
	l->entry = l->unity_launcher_entry_get_for_desktop_id(DESKTOP_ID);
	for (unsigned i = 0; i < QUESTIONS; i++) {
		take_turns(l);
		meet_bus(l);
	}
	take_turns(l);
	l->unity_launcher_entry_set_progress_visible(l->entry, 1);
	take_turns(l);
	return true;
}

/* Waits for news; false: there is none, and it is to end. *done and *is_urgent are
 * what was told last, and then the news. */
static bool listen_to(struct launcher *l, double *done, bool *is_urgent)
{
	bool is_new;

	pthread_mutex_lock(&l->lock);
	while (l->done == *done && l->is_urgent == *is_urgent && !l->must_end)
		pthread_cond_wait(&l->changed, &l->lock);
	is_new = l->done != *done || l->is_urgent != *is_urgent;
	*done = l->done;
	*is_urgent = l->is_urgent;
	pthread_mutex_unlock(&l->lock);
	return is_new;
}

static void talk(struct launcher *l)
{
	bool is_urgent = false;
	double done = -1;

	while (listen_to(l, &done, &is_urgent)) {
		l->unity_launcher_entry_set_progress(l->entry, done);
		if (is_urgent)
			l->unity_launcher_entry_set_urgent(l->entry, 1);
		take_turns(l);
	}
	l->unity_launcher_entry_set_progress_visible(l->entry, 0);
	take_turns(l);
	l->g_dbus_connection_flush_sync(l->bus, NULL, NULL);
}

static void *live(void *arg)
{
	struct launcher *l = arg;

	if (meet_desktop(l))
		talk(l);
	pthread_mutex_lock(&l->lock);
	l->has_ended = true;
	pthread_cond_broadcast(&l->changed);
	pthread_mutex_unlock(&l->lock);
	return NULL;
}

/* ---- whoever has something to tell ---- */

struct launcher *launcher_open(void)
{
	const char *address = getenv("DBUS_SESSION_BUS_ADDRESS");
	struct launcher *l = address && *address ? calloc(1, sizeof(*l)) : NULL;
	pthread_condattr_t monotonic;

	if (!l)
		return NULL;
	pthread_mutex_init(&l->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&l->changed, &monotonic);
	pthread_condattr_destroy(&monotonic);
	if (pthread_create(&l->thread, NULL, live, l)) {
		free(l);
		return NULL;
	}
	return l;
}

void launcher_progress(struct launcher *l, double done)
{
	if (!l)
		return;
	pthread_mutex_lock(&l->lock);
	/* A launcher is a few dozen pixels wide. */
	if (done >= 1 || done - l->done >= 0.005) {
		l->done = done;
		pthread_cond_broadcast(&l->changed);
	}
	pthread_mutex_unlock(&l->lock);
}

void launcher_urgent(struct launcher *l)
{
	if (!l)
		return;
	pthread_mutex_lock(&l->lock);
	l->is_urgent = true;
	pthread_cond_broadcast(&l->changed);
	pthread_mutex_unlock(&l->lock);
}

void launcher_close(struct launcher *l)
{
	struct timespec deadline;
	bool has_ended;

	if (!l)
		return;
	clock_gettime(CLOCK_MONOTONIC, &deadline);
	deadline.tv_sec += PATIENCE_S;
	pthread_mutex_lock(&l->lock);
	l->must_end = true;
	pthread_cond_broadcast(&l->changed);
	while (!l->has_ended && !pthread_cond_timedwait(&l->changed, &l->lock, &deadline))
		;
	has_ended = l->has_ended;
	pthread_mutex_unlock(&l->lock);
	/* A bus that hangs keeps the thread, and what that uses. */
	if (!has_ended) {
		pthread_detach(l->thread);
		return;
	}
	pthread_join(l->thread, NULL);
	pthread_cond_destroy(&l->changed);
	pthread_mutex_destroy(&l->lock);
	free(l);
}
