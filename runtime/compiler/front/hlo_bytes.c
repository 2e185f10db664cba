/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes into messages, in the compile's arena (hlo.h). */
#include <inttypes.h>

#include "runtime/compiler/front/hlo.h"

#define MAX_MESSAGES 100u	/* of messages in messages */

static uint64_t varint(struct hlo *r, const uint8_t *base, const uint8_t **p,
		       const uint8_t *end)
{
	uint64_t v = 0;

	for (unsigned shift = 0; shift < 70; shift += 7) {
		uint8_t byte;

		if (*p >= end)
			break;
		byte = *(*p)++;
		v |= shift < 64 ? (uint64_t)(byte & 0x7f) << shift : 0;
		if (!(byte & 0x80))
			return v;
	}
	hlo_bad(r, "broken program at byte %zu: a number passes the end", (size_t)(*p - base));
}

/*
 * protobuf-c reads messages in messages by recursion without a bound, and says nothing of
 * where bytes are wrong. This walks the same bytes first.
 */
static void check_bytes(struct hlo *r, const ProtobufCMessageDescriptor *d,
			const uint8_t *base, const uint8_t *p, const uint8_t *end,
			unsigned depth)
{
	if (depth > MAX_MESSAGES)
		hlo_refuse(r, "the program's shapes or literals nest more than %u deep",
			   MAX_MESSAGES);
	while (p < end) {
		const uint8_t *at = p;
		uint64_t tag = varint(r, base, &p, end), n = 0;
		const ProtobufCFieldDescriptor *f = tag >> 3 > UINT32_MAX ? NULL :
			protobuf_c_message_descriptor_get_field(d, (unsigned)(tag >> 3));

		switch (tag & 7) {
		case 0: varint(r, base, &p, end); break;
		case 1: n = 8; break;
		case 2: n = varint(r, base, &p, end); break;
		case 5: n = 4; break;
		default:
			hlo_bad(r, "broken program at byte %zu: a field of wire type %u",
				(size_t)(at - base), (unsigned)(tag & 7));
		}
		if (n > (uint64_t)(end - p))
			hlo_bad(r, "broken program at byte %zu: a field of %" PRIu64 " bytes "
				"passes the end", (size_t)(at - base), n);
		if ((tag & 7) == 2 && f && f->type == PROTOBUF_C_TYPE_MESSAGE)
			check_bytes(r, f->descriptor, base, p, p + n, depth + 1);
		p += n;
	}
}

static void *take(void *arena, size_t n)
{
	return arena_alloc(arena, n);
}

static void leave(void *arena, void *p)
{
	(void)arena;
	(void)p;
}

void *hlo_unpack(struct hlo *r, const ProtobufCMessageDescriptor *d, const void *p,
		    size_t n, const char *what)
{
	ProtobufCAllocator memory = { take, leave, &r->c->arena };
	void *m;

	check_bytes(r, d, p, p, (const uint8_t *)p + n, 0);
	m = protobuf_c_message_unpack(d, &memory, n, p);
	if (!m)
		hlo_bad(r, "the program's %zu bytes are no %s", n, what);
	return m;
}

const Hlo__ModuleWithConfig *hlo_unpack_with_config(struct hlo *r, const void *p, size_t n)
{
	const Hlo__ModuleWithConfig *w = hlo_unpack(r, &hlo__module_with_config__descriptor, p,
						    n, "HloModuleProtoWithConfig");

	if (!w->has_module)
		hlo_bad(r, "the program's %zu bytes of HloModuleProtoWithConfig hold no module",
			n);
	return w;
}
