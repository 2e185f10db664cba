/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_UNIT_PJRT_TEST_H
#define TESTS_UNIT_PJRT_TEST_H
/*
 * What the PJRT suites share: the plugin, loaded as a framework loads it, and calls
 * through its table alone.
 *
 *	struct PJRT_Error *e = CALL(Buffer_Delete, .buffer = b);
 *
 * The plugin is $TESSERA_BUILD/pjrt_plugin_tessera.so; programs come from
 * tests/data/programs.
 */
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/pjrt/pjrt_abi.h"

enum {
#define OFFSET(name, offset) OFFSET_##name = offset,
	PJRT_SLOTS(OFFSET)
#undef OFFSET
};

/* Requests that no memory can serve are part of the tests. */
#if defined(__SANITIZE_ADDRESS__)
#define SANITIZER_OPTIONS __asan_default_options
#elif defined(__SANITIZE_THREAD__)
#define SANITIZER_OPTIONS __tsan_default_options
#endif
#ifdef SANITIZER_OPTIONS
const char *SANITIZER_OPTIONS(void);
__attribute__((visibility("default"))) const char *SANITIZER_OPTIONS(void)
{
	return "allocator_may_return_null=1";
}
#endif

static const char *api;	/* the table's bytes */

typedef struct PJRT_Error *slot_fn(void *args);

static inline slot_fn *slot_at(unsigned offset)
{
	slot_fn *fn;

	memcpy(&fn, api + offset, sizeof(fn));
	return fn;
}

/* Calls with args that are zero but for what is named; the args stay in `a`. */
#define CALL_AS(a, name, ...) \
	(*(a) = (struct PJRT_##name##_Args){ .struct_size = PJRT_##name##_Args_SIZE, \
					     ##__VA_ARGS__ }, \
	 slot_at(OFFSET_##name)(a))
#define CALL(name, ...) ({ \
	struct PJRT_##name##_Args args_; \
	CALL_AS(&args_, name, ##__VA_ARGS__); \
})
/* The same, expecting success, and giving an output. */
#define GET(name, out, ...) ({ \
	struct PJRT_##name##_Args get_; \
	assert_ok(CALL_AS(&get_, name, ##__VA_ARGS__)); \
	get_.out; \
})

static inline int error_code(struct PJRT_Error *e)
{
	struct PJRT_Error_GetCode_Args a;

	if (!e)
		return 0;
	assert_null(CALL_AS(&a, Error_GetCode, .error = e));
	return a.code;
}

/* The text, copied to a buffer that the next call overwrites. */
static inline const char *error_text(struct PJRT_Error *e)
{
	static _Thread_local char text[1 << 17];
	struct PJRT_Error_Message_Args a;

	CALL_AS(&a, Error_Message, .error = e);
	assert_true(a.message_size < sizeof(text));
	memcpy(text, a.message, a.message_size);
	text[a.message_size] = 0;
	return text;
}

static inline void drop_error(struct PJRT_Error *e)
{
	if (e)
		CALL(Error_Destroy, .error = e);
}

static inline void expect_ok(struct PJRT_Error *e, const char *what)
{
	if (!e)
		return;
	print_error("%s: %s\n", what, error_text(e));
	drop_error(e);
	fail();
}

/* Fails unless the error has this code and its text contains `part`. */
static inline void expect_error(struct PJRT_Error *e, int want, const char *part,
				const char *what)
{
	bool is_right = e && error_code(e) == want && strstr(error_text(e), part);

	if (!is_right)
		print_error("%s: code %d, \"%s\"; wanted %d, \"%s\"\n", what, error_code(e),
			    e ? error_text(e) : "", want, part);
	drop_error(e);
	assert_true(is_right);
}

#define assert_ok(call) expect_ok(call, #call)
#define assert_error(call, want, part) expect_error(call, want, part, #call)

#define INVALID PJRT_Error_Code_INVALID_ARGUMENT

static inline int load_plugin(void **state)
{
	const char *build = getenv("TESSERA_BUILD");
	const void *(*get)(void);
	char path[512];
	void *so;

	(void)state;
	setenv("TESSERA_CACHE", "off", 0);
	snprintf(path, sizeof(path), "%s/pjrt_plugin_tessera.so", build ? build : "build/opt");
	so = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
	if (!so) {
		fprintf(stderr, "%s\n", dlerror());
		return -1;
	}
	*(void **)&get = dlsym(so, "GetPjrtApi");
	if (!get)
		return -1;
	api = get();
	return 0;
}

/* A client on the model; `sim` as TESSERA_SIM. */
static inline struct PJRT_Client *new_client(const char *sim)
{
	char devices[64];
	struct PJRT_NamedValue option = {
		.struct_size = PJRT_NamedValue_SIZE, .name = "devices", .name_size = 7,
		.type = PJRT_NamedValue_kString, .string_value = devices,
	};

	snprintf(devices, sizeof(devices), "sim:%s", sim);
	option.value_size = strlen(devices);
	return GET(Client_Create, client, .create_options = &option, .num_options = 1);
}

static inline void drop_client(struct PJRT_Client *c)
{
	assert_ok(CALL(Client_Destroy, .client = c));
}

static inline struct PJRT_Device *device_of(struct PJRT_Client *c, int id)
{
	return GET(Client_LookupDevice, device, .client = c, .id = id);
}

static inline struct PJRT_Memory *memory_of(struct PJRT_Device *d, int kind)
{
	struct PJRT_Memory *const *list;

	list = (void *)GET(Device_AddressableMemories, memories, .device = d);
	return list[kind];
}

static inline void drop_event(struct PJRT_Event *e)
{
	assert_ok(CALL(Event_Destroy, .event = e));
}

/* Waits, destroys, and gives the error (NULL: none). */
static inline struct PJRT_Error *finish(struct PJRT_Event *event)
{
	struct PJRT_Error *e = CALL(Event_Await, .event = event);

	drop_event(event);
	return e;
}

static inline void drop_buffer(struct PJRT_Buffer *b)
{
	assert_ok(CALL(Buffer_Destroy, .buffer = b));
}

static inline struct PJRT_Buffer *put_as(struct PJRT_Client *c, const void *data, int type,
					 const int64_t *dims, size_t n)
{
	struct PJRT_Client_BufferFromHostBuffer_Args a;

	assert_ok(CALL_AS(&a, Client_BufferFromHostBuffer, .client = c, .data = data,
			  .type = type, .dims = dims, .num_dims = n));
	assert_ok(finish(a.done_with_host_buffer));
	return a.buffer;
}

static inline struct PJRT_Buffer *put_floats(struct PJRT_Client *c, const float *data,
					     int64_t n)
{
	return put_as(c, data, PJRT_Buffer_Type_F32, &n, 1);
}

static inline struct PJRT_Error *fetch(struct PJRT_Buffer *b, void *dst, size_t n)
{
	struct PJRT_Buffer_ToHostBuffer_Args a;
	struct PJRT_Error *e = CALL_AS(&a, Buffer_ToHostBuffer, .src = b, .dst = dst,
				       .dst_size = n);

	return e ? e : finish(a.event);
}

static inline bool is_deleted(struct PJRT_Buffer *b)
{
	return GET(Buffer_IsDeleted, is_deleted, .buffer = b);
}

/* ---- programs ---- */

struct bytes { char *p; size_t n; };

static inline struct bytes read_bytes(const char *name)
{
	struct bytes b = { malloc(1 << 20), 0 };
	char path[256];
	FILE *f;

	snprintf(path, sizeof(path), "tests/data/programs/%s", name);
	f = fopen(path, "rb");
	assert_non_null(f);
	assert_non_null(b.p);
	b.n = fread(b.p, 1, 1 << 20, f);
	fclose(f);
	return b;
}

static inline struct PJRT_Program program_of(struct bytes b)
{
	return (struct PJRT_Program){ .struct_size = PJRT_Program_SIZE, .code = b.p,
		.code_size = b.n, .format = "mlir", .format_size = 4 };
}

/* CompileOptionsProto for one device: build options with a 1x1 assignment. */
static inline size_t options_for(unsigned device, char out[32])
{
	static const unsigned char head[] = { 0x1a, 14, 0x20, 1, 0x28, 1, 0x4a, 8, 8, 1, 16, 1,
					      0x1a, 3, 0x0a, 1 };

	memcpy(out, head, sizeof(head));
	out[sizeof(head)] = (char)device;
	out[1] = sizeof(head) - 2 + 1;
	out[7] = sizeof(head) - 8 + 1;
	return sizeof(head) + 1;
}

static inline struct PJRT_LoadedExecutable *compile_on(struct PJRT_Client *c, const char *name,
						       unsigned device)
{
	struct bytes b = read_bytes(name);
	struct PJRT_Program p = program_of(b);
	char options[32];
	size_t n = options_for(device, options);
	struct PJRT_LoadedExecutable *x;

	x = GET(Client_Compile, executable, .client = c, .program = &p,
		.compile_options = options, .compile_options_size = n);
	free(b.p);
	return x;
}

static inline void drop_exe(struct PJRT_LoadedExecutable *x)
{
	assert_ok(CALL(LoadedExecutable_Destroy, .executable = x));
}

/* Runs on the executable's device. *done may be NULL: not wanted. */
static inline struct PJRT_Error *run_exe(struct PJRT_LoadedExecutable *x,
					 struct PJRT_Buffer *const *args, size_t n,
					 struct PJRT_Buffer **outs, struct PJRT_Event **done)
{
	struct PJRT_ExecuteOptions o = { .struct_size = PJRT_ExecuteOptions_SIZE };

	return CALL(LoadedExecutable_Execute, .executable = x, .options = &o,
		    .argument_lists = (void *)&args, .num_devices = 1, .num_args = n,
		    .output_lists = (void *)&outs, .device_complete_events = done);
}

#endif
