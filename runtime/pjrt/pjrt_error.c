/* SPDX-License-Identifier: Apache-2.0 */
/* Errors: made here, asked and destroyed by their holder. */
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "runtime/pjrt/pjrt_wrap.h"

static struct PJRT_Error out_of_memory;

static void destroy_error(struct PJRT_Error *e)
{
	/* XLA's client destroys NULL, too. */
	if (!e || e == &out_of_memory)
		return;
	free(e->whole);
	free(e);
}

static void error_message(const struct PJRT_Error *e, const char **text, size_t *n)
{
	*text = e->whole ? e->whole : e->err.msg;
	*n = strlen(*text);
}

static int error_code(const struct PJRT_Error *e)
{
	return e->err.code;
}

static void no_payloads(const struct PJRT_Error *e, void *visitor, void *arg)
{
	(void)e;
	(void)visitor;
	(void)arg;
}

static const struct PJRT_Error_FunctionTable error_table = {
	.struct_size = PJRT_Error_FunctionTable_SIZE,
	.instance_size = sizeof(struct PJRT_Error),
	.destroy = (void *)destroy_error, .message = (void *)error_message,
	.get_code = (void *)error_code, .for_each_payload = (void *)no_payloads,
};

static struct PJRT_Error out_of_memory = {
	.vtable = &error_table,
	.err = { .code = ERR_RESOURCE_EXHAUSTED, .msg = "out of host memory" },
};

/*
 * Texts that are too long for struct err, which goes through events and buffers by value: the
 * newest of them, found by what was left of them. A Python traceback is one.
 */
enum { KEPT = 32, MOST_TEXT = 65536 };
static struct { char cut[ERR_MSG_BYTES], *whole; } kept[KEPT];
static unsigned next_kept;
static pthread_mutex_t kept_lock = PTHREAD_MUTEX_INITIALIZER;

static void keep(const char *cut, const char *text, size_t n)
{
	char *whole = n <= MOST_TEXT ? strndup(text, n) : NULL;

	if (!whole)
		return;
	pthread_mutex_lock(&kept_lock);
	free(kept[next_kept].whole);
	kept[next_kept].whole = whole;
	memcpy(kept[next_kept].cut, cut, ERR_MSG_BYTES);
	next_kept = (next_kept + 1) % KEPT;
	pthread_mutex_unlock(&kept_lock);
}

/* A copy of the whole text, or NULL. The newest first: others may have been cut to the same. */
static char *find_whole(const char *cut)
{
	char *whole = NULL;

	if (strlen(cut) < ERR_MSG_BYTES - 16)
		return NULL;
	pthread_mutex_lock(&kept_lock);
	for (unsigned i = KEPT; i-- > 0 && !whole;) {
		unsigned k = (next_kept + i) % KEPT;

		if (kept[k].whole && !strcmp(kept[k].cut, cut))
			whole = strdup(kept[k].whole);
	}
	pthread_mutex_unlock(&kept_lock);
	return whole;
}

struct PJRT_Error *pjrt_error(const struct err *err)
{
	struct PJRT_Error *e = malloc(sizeof(*e));

	if (!e)
		return &out_of_memory;
	e->vtable = &error_table;
	e->err = *err;
	e->whole = find_whole(err->msg);
	return e;
}

struct PJRT_Error *pjrt_error_text(int code, const char *fmt, ...)
{
	struct err err = { .code = code };
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(err.msg, sizeof(err.msg), fmt, ap);
	va_end(ap);
	return pjrt_error(&err);
}

struct PJRT_Error *pjrt_part(enum pjrt_part part)
{
	static const struct { const char *where, *what, *why; } parts[] = {
#define PART(id, where, what, why) [PART_##id] = { where, what, why },
#include "runtime/pjrt/unimplemented.def"
#undef PART
	};

	return pjrt_error_text(ERR_UNIMPLEMENTED, "%s: %s are not implemented (%s)",
			       parts[part].where, parts[part].what, parts[part].why);
}

struct err pjrt_read_error(int code, const char *text, size_t n)
{
	enum { ROOM = ERR_MSG_BYTES - 1 };
	struct err err = { .code = code };
	size_t head = 80, from;

	if (!text)
		n = 0;
	if (n <= ROOM) {
		if (n)
			memcpy(err.msg, text, n);
		return err;
	}
	from = n - (ROOM - head - strlen(" ... "));
	/* Between characters of UTF-8. */
	while (head && ((unsigned char)text[head] & 0xc0) == 0x80)
		head--;
	while (from < n && ((unsigned char)text[from] & 0xc0) == 0x80)
		from++;
	snprintf(err.msg, sizeof(err.msg), "%.*s ... %.*s", (int)head, text, (int)(n - from),
		 text + from);
	keep(err.msg, text, n);
	return err;
}

struct PJRT_Error *pjrt_Error_Destroy(struct PJRT_Error_Destroy_Args *args)
{
	destroy_error(args->error);
	return NULL;
}

struct PJRT_Error *pjrt_Error_Message(struct PJRT_Error_Message_Args *args)
{
	error_message(args->error, &args->message, &args->message_size);
	return NULL;
}

struct PJRT_Error *pjrt_Error_GetCode(struct PJRT_Error_GetCode_Args *args)
{
	args->code = args->error->err.code;
	return NULL;
}

struct PJRT_Error *pjrt_Error_ForEachPayload(struct PJRT_Error_ForEachPayload_Args *args)
{
	(void)args;
	return NULL;
}
