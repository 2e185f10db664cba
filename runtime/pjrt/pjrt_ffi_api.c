/* SPDX-License-Identifier: Apache-2.0 */
/* What functions of the host may ask while they run: the table of XLA's FFI. */
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "runtime/pjrt/pjrt_ffi.h"

/* ---- errors ---- */

static struct XLA_FFI_Error no_memory = { .code = ERR_RESOURCE_EXHAUSTED };

static struct XLA_FFI_Error *make_error(int code, const char *text)
{
	size_t n = text ? strlen(text) : 0;
	struct XLA_FFI_Error *e = malloc(sizeof(*e) + n + 1);

	if (!e)
		return &no_memory;
	e->code = code;
	memcpy(e->text, text ? text : "", n);
	e->text[n] = 0;
	return e;
}

static struct XLA_FFI_Error *error_of(const struct err *err)
{
	return make_error(err->code, err->msg);
}

static struct XLA_FFI_Error *say(int code, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
static struct XLA_FFI_Error *say(int code, const char *fmt, ...)
{
	char text[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return make_error(code, text);
}

static struct XLA_FFI_Error *error_create(struct XLA_FFI_Error_Create_Args *args)
{
	return make_error(args->errc, args->message);
}

static void error_message(struct XLA_FFI_Error_GetMessage_Args *args)
{
	args->message = args->error == &no_memory ? "out of host memory" : args->error->text;
}

static void free_error(struct XLA_FFI_Error *e)
{
	if (e != &no_memory)
		free(e);
}

static void error_destroy(struct XLA_FFI_Error_Destroy_Args *args)
{
	free_error(args->error);
}

int pjrt_ffi_take_error(struct XLA_FFI_Error *e, struct err *err)
{
	const char *text = e == &no_memory ? "out of host memory" : e->text;
	int code = e->code > 0 && e->code <= ERR_UNAUTHENTICATED ? e->code : ERR_UNKNOWN;

	*err = pjrt_read_error(code, text, strlen(text));
	free_error(e);
	return code;
}

/* ---- results that come later ---- */

struct XLA_FFI_Future {
	pthread_mutex_t lock;
	pthread_cond_t cond;
	bool is_set;
	struct XLA_FFI_Error *error;
};

static struct XLA_FFI_Error *future_create(struct XLA_FFI_Future_Create_Args *args)
{
	struct XLA_FFI_Future *f = calloc(1, sizeof(*f));

	if (!f)
		return &no_memory;
	pthread_mutex_init(&f->lock, NULL);
	pthread_cond_init(&f->cond, NULL);
	args->future = f;
	return NULL;
}

static struct XLA_FFI_Error *set_future(struct XLA_FFI_Future *f, struct XLA_FFI_Error *e)
{
	bool was_set;

	pthread_mutex_lock(&f->lock);
	was_set = f->is_set;
	if (!was_set) {
		f->is_set = true;
		f->error = e;
		/* Under the lock: who waits frees it. */
		pthread_cond_signal(&f->cond);
	}
	pthread_mutex_unlock(&f->lock);
	if (!was_set)
		return NULL;
	if (e)
		free_error(e);
	return say(ERR_FAILED_PRECONDITION, "the future is set already");
}

static struct XLA_FFI_Error *future_available(struct XLA_FFI_Future_SetAvailable_Args *args)
{
	return set_future(args->future, NULL);
}

static struct XLA_FFI_Error *future_error(struct XLA_FFI_Future_SetError_Args *args)
{
	return set_future(args->future, args->error);
}

int pjrt_ffi_await(struct XLA_FFI_Future *f, struct err *err)
{
	struct XLA_FFI_Error *e;

	pthread_mutex_lock(&f->lock);
	while (!f->is_set)
		pthread_cond_wait(&f->cond, &f->lock);
	e = f->error;
	pthread_mutex_unlock(&f->lock);
	pthread_cond_destroy(&f->cond);
	pthread_mutex_destroy(&f->lock);
	free(f);
	return e ? pjrt_ffi_take_error(e, err) : 0;
}

/* ---- what is registered ---- */

/* Which version it was compiled for; handlers answer this instead of doing anything. */
static int check_version(const char *name, size_t n, void *handler, struct err *err)
{
	struct XLA_FFI_Metadata is = {
		.struct_size = sizeof(is),
		.api_version.struct_size = XLA_FFI_Api_Version_SIZE,
	};
	struct XLA_FFI_Metadata_Extension ask = {
		.extension_base = { .struct_size = XLA_FFI_Metadata_Extension_SIZE,
				    .type = XLA_FFI_Extension_Metadata },
		.metadata = &is,
	};
	struct XLA_FFI_CallFrame frame = {
		.struct_size = XLA_FFI_CallFrame_SIZE, .extension_start = &ask.extension_base,
		.api = pjrt_ffi_api(), .stage = XLA_FFI_ExecutionStage_EXECUTE,
		.args.struct_size = XLA_FFI_Args_SIZE, .rets.struct_size = XLA_FFI_Rets_SIZE,
		.attrs.struct_size = XLA_FFI_Attrs_SIZE,
	};
	struct XLA_FFI_Error *e = ((pjrt_ffi_handler *)handler)(&frame);

	if (e)
		return pjrt_ffi_take_error(e, err);
	if (is.api_version.major_version == XLA_FFI_MAJOR &&
	    is.api_version.minor_version <= XLA_FFI_MINOR)
		return 0;
	return err_set(err, ERR_INVALID_ARGUMENT, "the function \"%.*s\" was compiled for version "
		       "%d.%d of XLA's FFI, this is %d.%d: compile it with older headers", (int)n,
		       name, is.api_version.major_version, is.api_version.minor_version,
		       XLA_FFI_MAJOR, XLA_FFI_MINOR);
}

int pjrt_ffi_register(const char *name, size_t n, const struct XLA_FFI_Handler_Bundle *bundle,
		      struct err *err)
{
	void *const stages[] = { bundle->instantiate, bundle->prepare, bundle->initialize,
				 bundle->execute };
	int code = 0;

	if (!name || !n || memchr(name, 0, n) || !bundle->execute)
		return err_set(err, ERR_INVALID_ARGUMENT, "a function of the host is registered "
			       "without %s", bundle->execute ? "a name" : "a handler of stage "
			       "`execute`");
	for (unsigned i = 0; !code && i < 4; i++)
		if (stages[i])
			code = check_version(name, n, stages[i], err);
	return code ? code : pjrt_ffi_add(name, n, bundle, err);
}

static struct XLA_FFI_Error *handler_register(struct XLA_FFI_Handler_Register_Args *args)
{
	struct err err;

	return pjrt_ffi_check_platform(args->platform.ptr, args->platform.len, &err) ||
	       pjrt_ffi_register(args->name.ptr, args->name.len, &args->bundle, &err) ?
	       error_of(&err) : NULL;
}

static struct XLA_FFI_Error *type_register(struct XLA_FFI_Type_Register_Args *args)
{
	struct err err;
	int64_t id = pjrt_ffi_type(args->name.ptr, args->name.len, args->type_id->type_id,
				   args->type_info ?
				   (void (*)(void *))args->type_info->deleter : NULL, &err);

	if (!id)
		return error_of(&err);
	args->type_id->type_id = id;
	return NULL;
}

/* ---- of a call, and of a run ---- */

static struct XLA_FFI_Error *user_data(struct XLA_FFI_ExecutionContext_Get_Args *args)
{
	const struct pjrt_run *run = args->ctx->run;
	int64_t type = args->type_id->type_id;
	const char *name = pjrt_ffi_type_name(type);

	for (const struct pjrt_user_data *d = run ? run->data : NULL; d; d = d->next)
		if (d->type == type) {
			args->data = d->data;
			return NULL;
		}
	return say(ERR_NOT_FOUND, "the execution was given no user data of type %.100s (number "
		   "%lld): add it to the context of its options by PJRT_FFI_UserData_Add",
		   name ? name : "that nobody registered", (long long)type);
}

static struct pjrt_ffi_state *state_of(struct XLA_FFI_ExecutionContext *c, int stage)
{
	if (stage < XLA_FFI_ExecutionStage_INSTANTIATE || stage > XLA_FFI_ExecutionStage_INITIALIZE)
		return NULL;
	if (stage == XLA_FFI_ExecutionStage_INSTANTIATE && c->call)
		c = c->call;
	return &c->states[stage];
}

static struct XLA_FFI_Error *state_set(struct XLA_FFI_State_Set_Args *args)
{
	struct pjrt_ffi_state *s = state_of(args->ctx, args->stage);
	void (*deleter)(void *object);

	if (!s || args->stage != args->ctx->stage)
		return say(ERR_INVALID_ARGUMENT, "a state of stage %d can't be set in stage %d",
			   args->stage, args->ctx->stage);
	if (s->type)
		return say(ERR_FAILED_PRECONDITION, "the state of stage %d is set already",
			   args->stage);
	if (!pjrt_ffi_find_type(args->type_id->type_id, &deleter))
		return say(ERR_NOT_FOUND, "type %lld of a state was not registered",
			   (long long)args->type_id->type_id);
	*s = (struct pjrt_ffi_state){ args->type_id->type_id, args->state, deleter };
	return NULL;
}

static struct XLA_FFI_Error *state_get(struct XLA_FFI_State_Get_Args *args)
{
	const struct pjrt_ffi_state *s = state_of(args->ctx, args->stage);

	if (!s || !s->type)
		return say(ERR_NOT_FOUND, "no state of stage %d is set", args->stage);
	if (s->type != args->type_id->type_id)
		return say(ERR_INVALID_ARGUMENT, "the state of stage %d is of type %lld, not %lld",
			   args->stage, (long long)s->type, (long long)args->type_id->type_id);
	args->state = s->data;
	return NULL;
}

static struct XLA_FFI_Error *stream_get(struct XLA_FFI_Stream_Get_Args *args)
{
	(void)args;
	return say(ERR_UNIMPLEMENTED, "functions run on the host, on copies of their arrays: there "
		   "is no stream of the device");
}

/* Where a function's arrays lie: on the host. */
static struct XLA_FFI_Error *allocate(struct XLA_FFI_DeviceMemory_Allocate_Args *args)
{
	struct pjrt_ffi_block *b;
	size_t align = args->alignment > 64 ? args->alignment : 64;

	if (!args->ctx->run)
		return say(ERR_FAILED_PRECONDITION, "there is no memory before the program runs");
	if (align & (align - 1) || args->size > SIZE_MAX - align)
		return say(ERR_INVALID_ARGUMENT, "%zu bytes aligned to %zu", args->size,
			   args->alignment);
	b = malloc(sizeof(*b));
	if (b)
		b->data = aligned_alloc(align, (args->size + align) & ~(align - 1));
	if (!b || !b->data) {
		free(b);
		return &no_memory;
	}
	b->next = args->ctx->blocks;
	args->ctx->blocks = b;
	args->data = b->data;
	return NULL;
}

static struct XLA_FFI_Error *deallocate(struct XLA_FFI_DeviceMemory_Free_Args *args)
{
	for (struct pjrt_ffi_block **b = &args->ctx->blocks; *b; b = &(*b)->next) {
		struct pjrt_ffi_block *gone = *b;

		if (gone->data != args->data)
			continue;
		*b = gone->next;
		free(gone->data);
		free(gone);
		return NULL;
	}
	return args->data ? say(ERR_INVALID_ARGUMENT, "%p is no memory of this function",
				args->data) : NULL;
}

void pjrt_ffi_clear(struct XLA_FFI_ExecutionContext *c)
{
	while (c->blocks) {
		struct pjrt_ffi_block *b = c->blocks;

		c->blocks = b->next;
		free(b->data);
		free(b);
	}
	for (unsigned i = 0; i < 3; i++)
		if (c->states[i].type && c->states[i].deleter)
			c->states[i].deleter(c->states[i].data);
	memset(c->states, 0, sizeof(c->states));
}

/* The function's own thread is the pool: tasks have run when this returns. */
static struct XLA_FFI_Error *schedule(struct XLA_FFI_ThreadPool_Schedule_Args *args)
{
	((void (*)(void *))args->task)(args->data);
	return NULL;
}

static struct XLA_FFI_Error *count_threads(struct XLA_FFI_ThreadPool_NumThreads_Args *args)
{
	*args->num_threads = 1;
	return NULL;
}

static struct XLA_FFI_Error *run_id(struct XLA_FFI_RunId_Get_Args *args)
{
	if (!args->ctx->run)
		return say(ERR_FAILED_PRECONDITION, "the program does not run yet");
	args->run_id = args->ctx->run->id;
	return NULL;
}

static struct XLA_FFI_Error *device_ordinal(struct XLA_FFI_DeviceOrdinal_Get_Args *args)
{
	if (!args->ctx->run)
		return say(ERR_FAILED_PRECONDITION, "the program does not run yet");
	args->device_ordinal = (int32_t)args->ctx->device;
	return NULL;
}

const struct XLA_FFI_Api *pjrt_ffi_api(void)
{
	static const struct XLA_FFI_Api api = {
		.struct_size = XLA_FFI_Api_SIZE,
		.api_version = { .struct_size = XLA_FFI_Api_Version_SIZE,
				 .major_version = XLA_FFI_MAJOR, .minor_version = XLA_FFI_MINOR },
		.XLA_FFI_Error_Create = (void *)error_create,
		.XLA_FFI_Error_GetMessage = (void *)error_message,
		.XLA_FFI_Error_Destroy = (void *)error_destroy,
		.XLA_FFI_Handler_Register = (void *)handler_register,
		.XLA_FFI_Stream_Get = (void *)stream_get,
		.XLA_FFI_Type_Register = (void *)type_register,
		.XLA_FFI_ExecutionContext_Get = (void *)user_data,
		.XLA_FFI_State_Set = (void *)state_set,
		.XLA_FFI_State_Get = (void *)state_get,
		.XLA_FFI_DeviceMemory_Allocate = (void *)allocate,
		.XLA_FFI_DeviceMemory_Free = (void *)deallocate,
		.XLA_FFI_ThreadPool_Schedule = (void *)schedule,
		.XLA_FFI_ThreadPool_NumThreads = (void *)count_threads,
		.XLA_FFI_Future_Create = (void *)future_create,
		.XLA_FFI_Future_SetAvailable = (void *)future_available,
		.XLA_FFI_Future_SetError = (void *)future_error,
		.XLA_FFI_RunId_Get = (void *)run_id,
		.XLA_FFI_DeviceOrdinal_Get = (void *)device_ordinal,
	};

	return &api;
}
