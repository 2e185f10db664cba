/* SPDX-License-Identifier: Apache-2.0 */
/* The framework's store of keys, as the runtime asks it: by functions that came with a client's
 * options. They make errors by a function of ours, which they are given. */
#include <stdlib.h>

#include "runtime/pjrt/pjrt_wrap.h"

typedef struct PJRT_Error *error_fn(int code, const char *text, size_t n);
typedef struct PJRT_Error *get_fn(struct PJRT_KeyValueGetCallback_Args *args);
typedef struct PJRT_Error *put_fn(struct PJRT_KeyValuePutCallback_Args *args);
typedef void free_fn(char *value);

struct pjrt_store {
	get_fn *get;
	put_fn *put;
	void *get_arg, *put_arg;
};

static struct PJRT_Error *make_error(int code, const char *text, size_t n)
{
	struct err err = pjrt_read_error(code ? code : ERR_UNKNOWN, text, n);

	return pjrt_error(&err);
}

/* Its code; e is gone. */
static int take_error(struct PJRT_Error *e, struct err *err)
{
	int code = e->err.code;

	if (err)
		*err = e->err;
	pjrt_Error_Destroy(&(struct PJRT_Error_Destroy_Args){ .error = e });
	return code;
}

static int put(void *arg, const char *key, const void *value, size_t bytes, struct err *err)
{
	const struct pjrt_store *s = arg;
	error_fn *error = make_error;
	struct PJRT_KeyValuePutCallback_Args a = {
		.struct_size = sizeof(a), .key = key, .key_size = strlen(key), .value = value,
		.value_size = bytes, .callback_error = &error, .user_arg = s->put_arg };
	struct PJRT_Error *e = s->put(&a);

	return e ? take_error(e, err) : 0;
}

static int get(void *arg, const char *key, int ms, void **value, size_t *bytes, struct err *err)
{
	const struct pjrt_store *s = arg;
	error_fn *error = make_error;
	struct PJRT_KeyValueGetCallback_Args a = {
		.struct_size = sizeof(a), .key = key, .key_size = strlen(key),
		.timeout_in_ms = ms, .callback_error = &error, .user_arg = s->get_arg };
	struct PJRT_Error *e = s->get(&a);
	void *copy;

	if (e)
		return take_error(e, err);
	copy = malloc(a.value_size + 1);
	if (copy && a.value_size)
		memcpy(copy, a.value, a.value_size);
	if (a.value_deleter_callback)
		((free_fn *)a.value_deleter_callback)(a.value);
	if (!copy)
		return err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory");
	*value = copy;
	*bytes = a.value_size;
	return 0;
}

struct PJRT_Error *pjrt_read_store(const struct PJRT_Client_Create_Args *args,
				   struct pjrt_store **out)
{
	struct pjrt_store *s;

	if (!args->kv_get_callback || !args->kv_put_callback)
		return pjrt_error_text(ERR_INVALID_ARGUMENT, "PJRT_Client_Create: `num_nodes` asks "
				       "for several processes, which find each other by "
				       "kv_get_callback and kv_put_callback; these are NULL");
	s = malloc(sizeof(*s));
	if (!s)
		return NO_ROOM();
	*s = (struct pjrt_store){ (get_fn *)args->kv_get_callback,
				  (put_fn *)args->kv_put_callback, args->kv_get_user_arg,
				  args->kv_put_user_arg };
	*out = s;
	return NULL;
}

struct rt_exchange pjrt_exchange(struct pjrt_store *s)
{
	return (struct rt_exchange){ .put = put, .get = get, .free = free, .arg = s };
}
