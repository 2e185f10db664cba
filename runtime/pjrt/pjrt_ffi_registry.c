/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of the host and types of theirs: the process's, as a caller registers them before
 * there is a client. They are never removed. */
#include <pthread.h>
#include <stdlib.h>
#include <strings.h>

#include "runtime/pjrt/pjrt_ffi.h"

struct type {
	struct type *next;
	int64_t id;
	void (*deleter)(void *object);
	char name[];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;	/* over both lists */
static struct pjrt_ffi_target *targets;
static struct type *types;
/* XLA numbers the types of its own platforms from 1 on, and refuses a number that it has given to
 * another type. */
static int64_t next_type = (int64_t)1 << 40;

/* ---- types ---- */

int64_t pjrt_ffi_type(const char *name, size_t n, int64_t wanted, void (*deleter)(void *object),
		      struct err *err)
{
	struct type *t;
	int64_t id = 0;

	pthread_mutex_lock(&lock);
	for (t = types; t; t = t->next) {
		bool is_same = strlen(t->name) == n && !memcmp(t->name, name, n);

		if (is_same && (!wanted || wanted == t->id))
			break;
		if (!is_same && wanted != t->id)
			continue;
		pthread_mutex_unlock(&lock);
		err_set(err, ERR_INVALID_ARGUMENT, "type \"%.*s\" is registered as number %lld, "
			"and \"%s\" is number %lld already", (int)n, name, (long long)wanted,
			t->name, (long long)t->id);
		return 0;
	}
	if (!t) {
		t = calloc(1, sizeof(*t) + n + 1);
		if (t) {
			memcpy(t->name, name, n);
			t->id = wanted ? wanted : next_type++;
			t->next = types;
			types = t;
		}
	}
	if (t) {
		t->deleter = deleter ? deleter : t->deleter;
		id = t->id;
	} else {
		err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory");
	}
	pthread_mutex_unlock(&lock);
	return id;
}

static struct type *find_type(int64_t id)
{
	struct type *t;

	for (t = types; t && t->id != id; t = t->next)
		;
	return t;
}

bool pjrt_ffi_find_type(int64_t id, void (**deleter)(void *object))
{
	struct type *t;

	pthread_mutex_lock(&lock);
	t = find_type(id);
	if (t)
		*deleter = t->deleter;
	pthread_mutex_unlock(&lock);
	return t;
}

const char *pjrt_ffi_type_name(int64_t id)
{
	struct type *t;

	pthread_mutex_lock(&lock);
	t = find_type(id);
	pthread_mutex_unlock(&lock);
	return t ? t->name : NULL;
}

/* ---- handlers ---- */

const struct pjrt_ffi_target *pjrt_ffi_find(const char *name, size_t n)
{
	const struct pjrt_ffi_target *t;

	pthread_mutex_lock(&lock);
	for (t = targets; t; t = t->next)
		if (strlen(t->name) == n && !memcmp(t->name, name, n))
			break;
	pthread_mutex_unlock(&lock);
	return t;
}

static bool is_same(const struct XLA_FFI_Handler_Bundle *a, const struct XLA_FFI_Handler_Bundle *b)
{
	return a->instantiate == b->instantiate && a->prepare == b->prepare &&
	       a->initialize == b->initialize && a->execute == b->execute;
}

int pjrt_ffi_add(const char *name, size_t n, const struct XLA_FFI_Handler_Bundle *bundle,
		 struct err *err)
{
	struct pjrt_ffi_target *t;
	int code = 0;

	t = calloc(1, sizeof(*t) + n + 1);
	if (!t)
		return err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory");
	memcpy(t->name, name, n);
	t->bundle = *bundle;
	pthread_mutex_lock(&lock);
	for (const struct pjrt_ffi_target *o = targets; o; o = o->next) {
		if (strcmp(o->name, t->name))
			continue;
		if (!is_same(&o->bundle, bundle))
			code = err_set(err, ERR_ALREADY_EXISTS, "another function of the host is "
				       "registered as \"%s\"", t->name);
		free(t);
		pthread_mutex_unlock(&lock);
		return code;
	}
	t->next = targets;
	targets = t;
	pthread_mutex_unlock(&lock);
	return 0;
}

/* "tessera", whatever frameworks are told (TESSERA_PLATFORM_NAME). XLA writes names of
 * platforms with capitals. */
int pjrt_ffi_check_platform(const char *name, size_t n, struct err *err)
{
	static const char ours[] = "tessera";

	if (name && n == sizeof(ours) - 1 && !strncasecmp(name, ours, n))
		return 0;
	return err_set(err, ERR_INVALID_ARGUMENT, "a function of the host is registered for "
		       "platform \"%.*s\", this is \"%s\"", name ? (int)(n > 60 ? 60 : n) : 0,
		       name ? name : "", ours);
}
