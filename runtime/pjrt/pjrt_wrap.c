/* SPDX-License-Identifier: Apache-2.0 */
/* What several sections of the ABI need: reading what callers hand over, and wrapping what
 * they get. */
#include <stdio.h>
#include <stdlib.h>

#include "runtime/pjrt/pjrt_wrap.h"

const char pjrt_version[] = "tessera 0.1 (ISA 1)";

struct PJRT_Error *pjrt_read_platform(const char **out)
{
	static const char *const names[] = { "tessera", "tpu" };
	const char *asked = getenv("TESSERA_PLATFORM_NAME");

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (!strcmp(asked && *asked ? asked : names[0], names[i])) {
			*out = names[i];
			return NULL;
		}
	return pjrt_error_text(ERR_INVALID_ARGUMENT, "TESSERA_PLATFORM_NAME=\"%.64s\": say tpu, "
			       "for callers that insist on it, or unset it", asked);
}

/* ---- what callers hand over ---- */

struct PJRT_Error *pjrt_read_shape(int type, const int64_t *dims, size_t n,
				   struct rt_shape *out)
{
	if (!elem_valid((unsigned)type))
		return type == PJRT_Buffer_Type_INVALID || type < 0 ?
		       pjrt_error_text(ERR_INVALID_ARGUMENT, "arrays of PJRT type %d", type) :
		       pjrt_part(PART_TYPES);
	if (n > IMAGE_MAX_RANK || (n && !dims))
		return pjrt_error_text(ERR_INVALID_ARGUMENT, "an array of %zu dims at %p, at "
				       "most %d", n, (const void *)dims, IMAGE_MAX_RANK);
	memset(out, 0, sizeof(*out));
	out->elem = (enum elem)type;
	out->rank = (unsigned)n;
	for (size_t d = 0; d < n; d++) {
		if (dims[d] < 0)
			return pjrt_error_text(ERR_INVALID_ARGUMENT, "dim %zu is %lld", d,
					       (long long)dims[d]);
		out->dim[d] = dims[d];
	}
	return NULL;
}

/* XLA's client leaves struct_size and extension_start of a layout and its parts unset:
 * they are not read. */
struct PJRT_Error *pjrt_read_layout(const struct PJRT_Buffer_MemoryLayout *l,
				    struct rt_shape *s)
{
	uint64_t seen = 0;
	bool is_row_major = true;
	size_t n;

	memset(s->order, 0, sizeof(s->order));
	if (!l)
		return NULL;
	if (l->type != PJRT_Buffer_MemoryLayout_Type_Tiled || l->tiled.num_tiles)
		return pjrt_error_text(ERR_INVALID_ARGUMENT, "strided and tiled layouts are not "
				       "taken here: say the order of the dims, and no tiles");
	n = l->tiled.minor_to_major_size;
	if (n && (n != s->rank || !l->tiled.minor_to_major))
		return pjrt_error_text(ERR_INVALID_ARGUMENT, "a layout of %zu dims at %p for an "
				       "array of %u", n, (const void *)l->tiled.minor_to_major,
				       s->rank);
	for (size_t i = 0; i < n; i++) {
		int64_t d = l->tiled.minor_to_major[i];

		if (d < 0 || d >= (int64_t)n || seen >> d & 1)
			return pjrt_error_text(ERR_INVALID_ARGUMENT, "a layout with dim %lld, "
					       "out of range or twice", (long long)d);
		seen |= 1ull << d;
		s->order[n - 1 - i] = (uint8_t)d;
		is_row_major &= d == (int64_t)(n - 1 - i);
	}
	if (is_row_major)
		memset(s->order, 0, sizeof(s->order));
	return NULL;
}

struct PJRT_Error *pjrt_check_own(const struct PJRT_Device *d)
{
	if (d->local >= 0)
		return NULL;
	return pjrt_error_text(ERR_INVALID_ARGUMENT, "%s is a device of process %u, this is "
			       "process %u: only its own process reaches it and its memory",
			       d->description.text, d->description.process,
			       rt_process(d->client->rt));
}

struct PJRT_Error *pjrt_find_place(const struct PJRT_Client *c, const struct PJRT_Memory *m,
				   const struct PJRT_Device *d, unsigned *device,
				   enum rt_memory_kind *kind)
{
	if (m)
		d = m->device;
	if (d && d->client != c)
		return pjrt_error_text(ERR_INVALID_ARGUMENT, "the device or memory belongs to "
				       "another client");
	if (d) {
		struct PJRT_Error *e = pjrt_check_own(d);

		if (e)
			return e;
	}
	*device = d ? (unsigned)d->local : 0;
	*kind = m ? m->kind : RT_DEVICE;
	return NULL;
}

/* ---- what they get ---- */

struct PJRT_Event *pjrt_event(struct rt_event *e)
{
	struct PJRT_Event *p = e ? malloc(sizeof(*p)) : NULL;

	if (!p) {
		rt_event_unref(e);
		return NULL;
	}
	p->event = e;
	return p;
}

struct PJRT_Error *pjrt_give_event(struct rt_event *e, struct PJRT_Event **out)
{
	struct PJRT_Event *p = pjrt_event(e);

	if (!p)
		return NO_ROOM();
	*out = p;
	return NULL;
}

struct PJRT_Buffer *pjrt_buffer(struct PJRT_Client *c, struct rt_buffer *b)
{
	struct PJRT_Buffer *p = calloc(1, sizeof(*p));
	unsigned rank;

	if (!p) {
		rt_buffer_unref(b);
		return NULL;
	}
	p->rt = b;
	p->client = c;
	rank = rt_buffer_shape(b)->rank;
	for (unsigned i = 0; i < rank; i++)
		p->minor_to_major[i] = rt_minor_to_major(rt_buffer_shape(b), i);
	for (unsigned i = 0; i < rank; i++)
		if (rt_buffer_shape(b)->bounded >> i & 1)
			p->dynamic[p->n_dynamic++] = i;
	return p;
}

struct PJRT_Error *pjrt_give_buffer(struct PJRT_Client *c, struct rt_buffer *b,
				    struct PJRT_Buffer **out)
{
	struct PJRT_Buffer *p = pjrt_buffer(c, b);

	if (!p)
		return NO_ROOM();
	*out = p;
	return NULL;
}

/* `name` is not copied. */
static struct PJRT_NamedValue int_value(const char *name, int64_t v)
{
	return (struct PJRT_NamedValue){ .struct_size = PJRT_NamedValue_SIZE, .name = name,
		.name_size = strlen(name), .type = PJRT_NamedValue_kInt64,
		.int64_value = v, .value_size = 1 };
}

void pjrt_describe(struct PJRT_DeviceDescription *t, unsigned id, const struct rt_global *d)
{
	t->id = (int)id;
	t->process = d->process;
	snprintf(t->kind, sizeof(t->kind), "%s", d->kind);
	/* One slice. Who finds slice_index takes it that there are several. */
	memcpy(t->coords, d->coords, sizeof(t->coords));
	t->attributes[0] = (struct PJRT_NamedValue){ .struct_size = PJRT_NamedValue_SIZE,
		.name = "coords", .name_size = 6, .type = PJRT_NamedValue_kInt64List,
		.int64_array_value = t->coords, .value_size = 3 };
	t->attributes[1] = int_value("core_on_chip", 0);
	t->attributes[2] = int_value("num_cores", d->cores);
	snprintf(t->text, sizeof(t->text), "TesseraDevice(id=%u, %.40s)", id, d->bus_id);
	snprintf(t->debug, sizeof(t->debug), "TESSERA_%u(%.40s, %s)", id, d->bus_id,
		 d->is_model ? "model" : "hardware");
}

void pjrt_layout_init(struct pjrt_layout *l, const struct rt_shape *s)
{
	size_t n = 0;

	l->rank = s->rank;
	n += (size_t)snprintf(l->text, sizeof(l->text), "{");
	for (unsigned i = 0; i < s->rank; i++)
		n += (size_t)snprintf(l->text + n, sizeof(l->text) - n, "%s%u", i ? "," : "",
				      rt_minor_to_major(s, i));
	snprintf(l->text + n, sizeof(l->text) - n, "}");
}
