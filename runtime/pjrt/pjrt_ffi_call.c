/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls of functions of the host: what the runtime knows of one, as XLA's FFI shows it. A call of a
 * loaded program is instantiated once; a run of it is prepared and initialized, and executed as
 * often as the program gets there.
 */
#include <stdatomic.h>
#include <stdlib.h>

#include "hal/base/arena.h"
#include "hal/base/elem.h"
#include "runtime/pjrt/pjrt_ffi.h"

/* XLA's numbers of element types, by ours. */
static const uint8_t dtypes[] = {
	[ELEM_PRED] = XLA_FFI_DataType_PRED, [ELEM_S2] = XLA_FFI_DataType_S2,
	[ELEM_S4] = XLA_FFI_DataType_S4, [ELEM_S8] = XLA_FFI_DataType_S8,
	[ELEM_S16] = XLA_FFI_DataType_S16, [ELEM_S32] = XLA_FFI_DataType_S32,
	[ELEM_S64] = XLA_FFI_DataType_S64, [ELEM_U2] = XLA_FFI_DataType_U2,
	[ELEM_U4] = XLA_FFI_DataType_U4, [ELEM_U8] = XLA_FFI_DataType_U8,
	[ELEM_U16] = XLA_FFI_DataType_U16, [ELEM_U32] = XLA_FFI_DataType_U32,
	[ELEM_U64] = XLA_FFI_DataType_U64, [ELEM_F16] = XLA_FFI_DataType_F16,
	[ELEM_F32] = XLA_FFI_DataType_F32, [ELEM_F64] = XLA_FFI_DataType_F64,
	[ELEM_BF16] = XLA_FFI_DataType_BF16, [ELEM_C64] = XLA_FFI_DataType_C64,
	[ELEM_C128] = XLA_FFI_DataType_C128, [ELEM_TOKEN] = XLA_FFI_DataType_TOKEN,
	[ELEM_F8E5M2] = XLA_FFI_DataType_F8E5M2, [ELEM_F8E3M4] = XLA_FFI_DataType_F8E3M4,
	[ELEM_F8E4M3] = XLA_FFI_DataType_F8E4M3, [ELEM_F8E4M3FN] = XLA_FFI_DataType_F8E4M3FN,
	[ELEM_F8E4M3B11FNUZ] = XLA_FFI_DataType_F8E4M3B11FNUZ,
	[ELEM_F8E5M2FNUZ] = XLA_FFI_DataType_F8E5M2FNUZ,
	[ELEM_F8E4M3FNUZ] = XLA_FFI_DataType_F8E4M3FNUZ,
	[ELEM_F4E2M1FN] = XLA_FFI_DataType_F4E2M1FN,
	[ELEM_F8E8M0FNU] = XLA_FFI_DataType_F8E8M0FNU,
};

/* A call of a loaded program. */
struct call {
	struct XLA_FFI_ExecutionContext context;
	const struct pjrt_ffi_target *target;
	const struct rt_function *function;
	struct arena arena;	/* of the attributes */
	struct XLA_FFI_Attrs attrs;
	atomic_uint refs;	/* its owner, and each run */
};

struct run {
	struct XLA_FFI_ExecutionContext context;
	struct call *call;
};

/* ---- attributes ---- */

static void *take(struct arena *a, uint64_t n, size_t each, bool *failed)
{
	void *p = arena_array(a, n + 1, each);

	*failed |= !p;
	return p;
}

static struct XLA_FFI_Attrs make_attrs(struct arena *a, const struct rt_attributes *from,
				       bool *failed);

static void *make_value(struct arena *a, const struct rt_attribute *from, int *type,
			bool *failed)
{
	struct XLA_FFI_Scalar *scalar;
	struct XLA_FFI_Array *array;
	struct XLA_FFI_ByteSpan *text;
	struct XLA_FFI_Attrs *list;

	switch (from->kind) {
	case IMAGE_ATTRIBUTE_SCALAR:
		scalar = take(a, 1, sizeof(*scalar), failed);
		*type = XLA_FFI_AttrType_SCALAR;
		if (scalar)
			*scalar = (struct XLA_FFI_Scalar){ dtypes[from->elem],
							   (void *)(uintptr_t)from->data };
		return scalar;
	case IMAGE_ATTRIBUTE_ARRAY:
		array = take(a, 1, sizeof(*array), failed);
		*type = XLA_FFI_AttrType_ARRAY;
		if (array)
			*array = (struct XLA_FFI_Array){ dtypes[from->elem], from->n,
							 (void *)(uintptr_t)from->data };
		return array;
	case IMAGE_ATTRIBUTE_TEXT:
		text = take(a, 1, sizeof(*text), failed);
		*type = XLA_FFI_AttrType_STRING;
		if (text)
			*text = (struct XLA_FFI_ByteSpan){ from->data, from->n };
		return text;
	default:
		list = take(a, 1, sizeof(*list), failed);
		*type = XLA_FFI_AttrType_DICTIONARY;
		if (list)
			*list = make_attrs(a, &from->list, failed);
		return list;
	}
}

static struct XLA_FFI_Attrs make_attrs(struct arena *a, const struct rt_attributes *from,
				       bool *failed)
{
	struct XLA_FFI_Attrs to = {
		.struct_size = XLA_FFI_Attrs_SIZE, .size = (int64_t)from->n,
		.types = take(a, from->n, sizeof(*to.types), failed),
		.names = take(a, from->n, sizeof(*to.names), failed),
		.attrs = take(a, from->n, sizeof(*to.attrs), failed),
	};

	for (uint64_t i = 0; !*failed && i < from->n; i++) {
		to.names[i] = take(a, 1, sizeof(**to.names), failed);
		if (to.names[i])
			*to.names[i] = (struct XLA_FFI_ByteSpan){ from->at[i].name,
								  from->at[i].name_bytes };
		to.attrs[i] = make_value(a, &from->at[i], &to.types[i], failed);
	}
	return to;
}

/* ---- stages ---- */

static struct XLA_FFI_CallFrame make_frame(const struct call *k,
					   struct XLA_FFI_ExecutionContext *c, int stage)
{
	c->stage = stage;
	return (struct XLA_FFI_CallFrame){
		.struct_size = XLA_FFI_CallFrame_SIZE, .api = pjrt_ffi_api(), .ctx = c,
		.stage = stage, .args.struct_size = XLA_FFI_Args_SIZE,
		.rets.struct_size = XLA_FFI_Rets_SIZE, .attrs = k->attrs,
	};
}

static int invoke(void *handler, struct XLA_FFI_CallFrame *frame, struct err *err)
{
	struct XLA_FFI_Error *e = ((pjrt_ffi_handler *)handler)(frame);
	int code = 0;

	if (frame->future)
		code = pjrt_ffi_await(frame->future, err);
	return e ? pjrt_ffi_take_error(e, err) : code;
}

/* With arrays. data: NULL: in a stage that may not look at them. */
static int invoke_with_arrays(struct run *r, void *handler, int stage, void *const *data,
			      struct err *err)
{
	const struct rt_function *f = r->call->function;
	size_t n = (size_t)f->n_in + f->n_out;
	struct XLA_FFI_CallFrame frame = make_frame(r->call, &r->context, stage);
	struct XLA_FFI_Buffer *buffers = calloc(n + 1, sizeof(*buffers));
	void **list = calloc(n + 1, sizeof(*list));
	int *kinds = calloc(n + 1, sizeof(*kinds));
	int code;

	for (size_t i = 0; buffers && list && kinds && i < n; i++) {
		const struct rt_function_array *a = &f->arrays[i];

		buffers[i] = (struct XLA_FFI_Buffer){
			.struct_size = XLA_FFI_Buffer_SIZE, .dtype = dtypes[a->elem],
			.data = data ? data[i] : NULL, .rank = a->rank,
			.dims = (int64_t *)(uintptr_t)a->dim,
		};
		list[i] = &buffers[i];
		kinds[i] = XLA_FFI_ArgType_BUFFER;	/* the same number for results */
	}
	frame.args.size = f->n_in;
	frame.args.types = kinds;
	frame.args.args = list;
	frame.rets.size = f->n_out;
	frame.rets.types = kinds ? kinds + f->n_in : NULL;
	frame.rets.rets = list ? list + f->n_in : NULL;
	code = buffers && list && kinds ? invoke(handler, &frame, err) :
	       err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory");
	free(kinds);
	free(list);
	free(buffers);
	return code;
}

static void unref_call(struct call *k)
{
	if (atomic_fetch_sub(&k->refs, 1) != 1)
		return;
	pjrt_ffi_clear(&k->context);
	arena_free(&k->arena);
	free(k);
}

static void unload(void *state)
{
	unref_call(state);
}

static int load(const struct rt_function *f, void **state, struct err *err)
{
	const struct pjrt_ffi_target *t = pjrt_ffi_find(f->name, strlen(f->name));
	struct XLA_FFI_CallFrame frame;
	bool failed = false;
	struct call *k;
	int code = 0;

	if (!t)
		return err_set(err, ERR_NOT_FOUND, "the target \"%.120s\" is neither a call that "
			       "the compiler knows nor a function of the host that was registered: "
			       "register it for this platform, in JAX by jax.ffi."
			       "register_ffi_target(..., platform=\"tessera\")", f->name);
	k = calloc(1, sizeof(*k));
	if (!k)
		return err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory");
	atomic_init(&k->refs, 1);
	k->target = t;
	k->function = f;
	k->attrs = make_attrs(&k->arena, &f->attributes, &failed);
	if (failed)
		code = err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory");
	if (!code && t->bundle.instantiate) {
		frame = make_frame(k, &k->context, XLA_FFI_ExecutionStage_INSTANTIATE);
		code = invoke(t->bundle.instantiate, &frame, err);
	}
	if (code)
		unref_call(k);
	else
		*state = k;
	return code;
}

static int begin(void *state, void *host, unsigned device, void **out, struct err *err)
{
	struct call *k = state;
	struct run *r = calloc(1, sizeof(*r));

	if (!r)
		return err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory");
	atomic_fetch_add(&k->refs, 1);
	r->call = k;
	r->context.call = &k->context;
	r->context.run = pjrt_run_of(host);
	r->context.device = device;
	*out = r;
	return k->target->bundle.prepare ?
	       invoke_with_arrays(r, k->target->bundle.prepare, XLA_FFI_ExecutionStage_PREPARE,
				  NULL, err) : 0;
}

static int initialize(void *run, struct err *err)
{
	struct run *r = run;
	void *handler = r->call->target->bundle.initialize;

	return handler ? invoke_with_arrays(r, handler, XLA_FFI_ExecutionStage_INITIALIZE, NULL,
					    err) : 0;
}

static int call(void *run, void *const *data, struct err *err)
{
	struct run *r = run;

	return invoke_with_arrays(r, r->call->target->bundle.execute,
				  XLA_FFI_ExecutionStage_EXECUTE, data, err);
}

static void end(void *run)
{
	struct run *r = run;

	pjrt_ffi_clear(&r->context);
	unref_call(r->call);
	free(r);
}

const struct rt_functions *pjrt_ffi_functions(void)
{
	static const struct rt_functions functions = { load, unload, begin, initialize, call,
						       end };

	return &functions;
}
