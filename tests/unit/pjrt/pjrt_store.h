/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_UNIT_PJRT_STORE_H
#define TESTS_UNIT_PJRT_STORE_H
/*
 * A store of keys as frameworks have one, and clients that are a job by it: each is a process of
 * the job to the plugin, with devices of its own on one server, though all are in this one.
 */
#include <pthread.h>

#include "tests/unit/pjrt/pjrt_test.h"
#include "tests/unit/vfio_server.h"

struct store {
	pthread_mutex_t lock;
	pthread_cond_t came;
	struct { char key[200]; char *value; size_t bytes; } list[256];
	unsigned n, n_live;	/* n_live: values that were given and not freed */
	/* Changes what is given, if set. */
	void (*spoil)(const char *key, char *value, size_t *bytes);
};

static struct store store = { .lock = PTHREAD_MUTEX_INITIALIZER,
			      .came = PTHREAD_COND_INITIALIZER };

typedef struct PJRT_Error *make_error_fn(int code, const char *text, size_t n);

static inline struct PJRT_Error *store_error(void *make, int code, const char *text)
{
	return (*(make_error_fn **)make)(code, text, strlen(text));
}

static inline int find_key(const char *key, size_t n)
{
	for (unsigned i = 0; i < store.n; i++)
		if (strlen(store.list[i].key) == n && !memcmp(store.list[i].key, key, n))
			return (int)i;
	return -1;
}

static inline struct PJRT_Error *store_put(struct PJRT_KeyValuePutCallback_Args *a)
{
	struct PJRT_Error *e = NULL;

	pthread_mutex_lock(&store.lock);
	if (a->user_arg != &store) {
		e = store_error(a->callback_error, PJRT_Error_Code_INTERNAL, "another's argument");
	} else if (find_key(a->key, a->key_size) >= 0) {
		e = store_error(a->callback_error, PJRT_Error_Code_ALREADY_EXISTS, "it is there");
	} else {
		unsigned i = store.n++;

		memcpy(store.list[i].key, a->key, a->key_size);
		store.list[i].key[a->key_size] = 0;
		store.list[i].value = malloc(a->value_size + 1);
		memcpy(store.list[i].value, a->value, a->value_size);
		store.list[i].bytes = a->value_size;
		pthread_cond_broadcast(&store.came);
	}
	pthread_mutex_unlock(&store.lock);
	return e;
}

static inline void free_value(char *value)
{
	pthread_mutex_lock(&store.lock);
	store.n_live--;
	pthread_mutex_unlock(&store.lock);
	free(value);
}

static inline struct PJRT_Error *store_get(struct PJRT_KeyValueGetCallback_Args *a)
{
	struct PJRT_Error *e = NULL;
	struct timespec until;
	int i, failed = 0;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += (long)(a->timeout_in_ms % 1000) * 1000000;
	until.tv_sec += a->timeout_in_ms / 1000 + until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	pthread_mutex_lock(&store.lock);
	while ((i = find_key(a->key, a->key_size)) < 0 && !failed)
		failed = pthread_cond_timedwait(&store.came, &store.lock, &until);
	if (i < 0) {
		e = store_error(a->callback_error, PJRT_Error_Code_DEADLINE_EXCEEDED, "not yet");
	} else {
		a->value = malloc(store.list[i].bytes + 4096);
		memcpy(a->value, store.list[i].value, store.list[i].bytes);
		a->value_size = store.list[i].bytes;
		a->value_deleter_callback = (void *)free_value;
		store.n_live++;
		if (store.spoil)
			store.spoil(store.list[i].key, a->value, &a->value_size);
	}
	pthread_mutex_unlock(&store.lock);
	return e;
}

/* Forgets all keys: the next clients are another job. */
static inline void store_clear(void)
{
	assert_int_equal(store.n_live, 0);
	for (unsigned i = 0; i < store.n; i++)
		free(store.list[i].value);
	store.n = 0;
	store.spoil = NULL;
}

/* A process of a job of `n`, on these devices: an error, or *out. */
struct process {
	int number, n;
	const char *devices;
	struct PJRT_Client *client;
	struct PJRT_Error *error;
	pthread_t thread;
};

static inline void *create_process(void *arg)
{
	struct process *p = arg;
	struct PJRT_NamedValue v[] = {
		{ .struct_size = PJRT_NamedValue_SIZE, .name = "node_id", .name_size = 7,
		  .type = PJRT_NamedValue_kInt64, .int64_value = p->number, .value_size = 1 },
		{ .struct_size = PJRT_NamedValue_SIZE, .name = "num_nodes", .name_size = 9,
		  .type = PJRT_NamedValue_kInt64, .int64_value = p->n, .value_size = 1 },
		{ .struct_size = PJRT_NamedValue_SIZE, .name = "devices", .name_size = 7,
		  .type = PJRT_NamedValue_kString, .string_value = p->devices,
		  .value_size = strlen(p->devices) },
	};
	struct PJRT_Client_Create_Args a;

	p->client = NULL;
	p->error = CALL_AS(&a, Client_Create, .create_options = v, .num_options = 3,
			   .kv_get_callback = (void *)store_get, .kv_get_user_arg = &store,
			   .kv_put_callback = (void *)store_put, .kv_put_user_arg = &store);
	if (!p->error)
		p->client = a.client;
	return NULL;
}

static inline void create_all(struct process *p, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		assert_int_equal(pthread_create(&p[i].thread, NULL, create_process, &p[i]), 0);
	for (unsigned i = 0; i < n; i++)
		pthread_join(p[i].thread, NULL);
}

#endif
