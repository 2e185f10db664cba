/* SPDX-License-Identifier: Apache-2.0 */
/* GetPjrtApi: the table, and what it checks before a slot's function is called. */
#include <pthread.h>

#include "runtime/pjrt/pjrt_wrap.h"

static struct PJRT_Error *refuse_size(const char *name, size_t least, size_t size)
{
	return pjrt_error_text(ERR_INVALID_ARGUMENT, "Unexpected %s size: expected %zu, got %zu. "
			       "The caller was built for an API older than 0.75, or did not "
			       "set struct_size", name, least, size);
}

static struct PJRT_Error *refuse_null(const char *name, const char *field)
{
	return pjrt_error_text(ERR_INVALID_ARGUMENT, "%s: `%s` is NULL", name, field);
}

/* What the table points to: looks at the struct, then calls. */
#define NEED(field) \
	if (!args->field) \
		return is_mute ? NULL : refuse_null(name, #field);
#define OURS(client_rt) \
	if (rt_client_check(client_rt, &err)) \
		return pjrt_error(&err);
#define CHECKED(slot, needs, mute) \
	static struct PJRT_Error *checked_##slot(struct PJRT_##slot##_Args *args) \
	{ \
		static const char name[] = "PJRT_" #slot "_Args"; \
		const bool is_mute = mute; \
		struct err err; \
		(void)err; \
		if (!args) \
			return is_mute ? NULL : refuse_null("PJRT_" #slot, "args"); \
		if (args->struct_size < PJRT_##slot##_Args_OLDEST) \
			return is_mute ? NULL : refuse_size(name, \
				PJRT_##slot##_Args_OLDEST, args->struct_size); \
		needs \
		return pjrt_##slot(args); \
	}
#define SLOT(slot, needs) CHECKED(slot, needs, false)
#define MUTE(slot, needs) CHECKED(slot, needs, true)
#include "runtime/pjrt/slots.def"
#undef SLOT
#undef MUTE

/* Clients look at late slots without asking for the table's size. */
static union {
	struct {
		size_t struct_size;
		struct PJRT_Extension_Base *extension_start;
		struct PJRT_Api_Version version;
	} head;
	void *slots[512];
} api;

static void fill_api(void)
{
	static const struct { unsigned offset; void *fn; } slots[] = {
#define FILL(name, offset) { offset, (void *)checked_##name },
		PJRT_SLOTS(FILL)
#undef FILL
	};

	for (size_t i = 0; i < sizeof(slots) / sizeof(*slots); i++)
		api.slots[slots[i].offset / sizeof(void *)] = slots[i].fn;
	api.head.extension_start = pjrt_extensions();
	api.head.version = (struct PJRT_Api_Version){
		.struct_size = PJRT_Api_Version_SIZE, .minor_version = PJRT_API_MINOR };
	api.head.struct_size = PJRT_API_SIZE;
}

__attribute__((visibility("default"))) const void *GetPjrtApi(void);

const void *GetPjrtApi(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, fill_api);
	return &api;
}
