/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hostile HLO modules: whatever the bytes are, a clear error or an image that the loader
 * takes. Most mutations change a module's messages by their descriptors and write them
 * again, so that they get past protobuf's own reading.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/compiler/front/hlo.pb-c.h"
#include "runtime/compiler/tc.h"
#include "tests/fuzz/compiled.h"
#include "tests/fuzz/seeds.h"

size_t LLVMFuzzerMutate(uint8_t *data, size_t n, size_t max);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t n, size_t max, unsigned seed);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* ---- memory of one mutation ---- */

static uint8_t room[1 << 22];
static size_t used;

static void *take(void *arg, size_t n)
{
	void *p = room + used;

	(void)arg;
	if (n > sizeof(room) - used - 16)
		return NULL;
	used += (n + 15) & ~(size_t)15;
	return p;
}

static void leave(void *arg, void *p)
{
	(void)arg;
	(void)p;
}

static ProtobufCAllocator memory = { take, leave, NULL };

/* ---- changing messages ---- */

static const char *const opcodes[] = {
#define HLO(name, op, fn) name,
#define REGION(name, op, fn) name,
#include "runtime/compiler/front/hlo.def"
#undef HLO
#undef REGION
	"parameter", "send", "topk",
};

static int64_t change(int64_t v, uint64_t *state)
{
	uint64_t u = (uint64_t)v;	/* which wraps */

	switch (seeds_random(state) % 8) {
	case 0: return (int64_t)(u + 1);
	case 1: return (int64_t)(u - 1);
	case 2: return 0;
	case 3: return (int64_t)(seeds_random(state) % 40);
	case 4: return (int64_t)(0 - u);
	case 5: return (int64_t)(u * 2);
	case 6: return (int64_t)1 << seeds_random(state) % 63;
	default: return INT64_MAX - (int64_t)(seeds_random(state) % 3);
	}
}

static size_t size_of(unsigned type)
{
	switch (type) {
	case PROTOBUF_C_TYPE_INT64:
	case PROTOBUF_C_TYPE_UINT64:
	case PROTOBUF_C_TYPE_DOUBLE: return 8;
	case PROTOBUF_C_TYPE_STRING:
	case PROTOBUF_C_TYPE_MESSAGE: return sizeof(void *);
	case PROTOBUF_C_TYPE_BYTES: return sizeof(ProtobufCBinaryData);
	default: return 4;
	}
}

static void change_message(ProtobufCMessage *m, uint64_t *state, unsigned depth);

static void change_one(const ProtobufCFieldDescriptor *f, void *at, uint64_t *state,
		       unsigned depth)
{
	ProtobufCBinaryData *bytes = at;
	int64_t v = 0;

	switch (f->type) {
	case PROTOBUF_C_TYPE_MESSAGE:
		if (*(ProtobufCMessage **)at)
			change_message(*(ProtobufCMessage **)at, state, depth + 1);
		break;
	case PROTOBUF_C_TYPE_STRING:
		*(const char **)at = strcmp(f->name, "opcode") ? "GT" :
			opcodes[seeds_random(state) % (sizeof(opcodes) / sizeof(*opcodes))];
		break;
	case PROTOBUF_C_TYPE_BYTES:
		bytes->len = bytes->len ? seeds_random(state) % bytes->len : 0;
		break;
	case PROTOBUF_C_TYPE_BOOL:
		*(protobuf_c_boolean *)at = !*(protobuf_c_boolean *)at;
		break;
	default:
		memcpy(&v, at, size_of(f->type));
		v = change(v, state);
		memcpy(at, &v, size_of(f->type));
		break;
	}
}

/* A list: one element changes, goes, comes again, or two change places. */
static void change_list(const ProtobufCFieldDescriptor *f, ProtobufCMessage *m, uint64_t *state,
			unsigned depth)
{
	size_t *n = (size_t *)((char *)m + f->quantifier_offset), unit = size_of(f->type);
	char **list = (char **)((char *)m + f->offset), *grown, some[64];
	size_t i = *n ? seeds_random(state) % *n : 0, k = *n ? seeds_random(state) % *n : 0;
	unsigned what = seeds_random(state) % 8;

	if (what == 0 && *n) {
		memmove(*list + i * unit, *list + (i + 1) * unit, (*n - i - 1) * unit);
		--*n;
	} else if (what == 1 && *n) {
		memcpy(some, *list + i * unit, unit);
		memcpy(*list + i * unit, *list + k * unit, unit);
		memcpy(*list + k * unit, some, unit);
	} else if (what == 2 && (*n || f->type == PROTOBUF_C_TYPE_INT64)) {
		grown = take(NULL, (*n + 1) * unit);
		if (!grown)
			return;
		memset(grown, 0, (*n + 1) * unit);
		if (*n) {
			memcpy(grown, *list, *n * unit);
			memcpy(grown + *n * unit, *list + i * unit, unit);
		}
		*list = grown;
		++*n;
	} else if (*n) {
		change_one(f, *list + i * unit, state, depth);
	}
}

static void change_message(ProtobufCMessage *m, uint64_t *state, unsigned depth)
{
	const ProtobufCMessageDescriptor *d = m->descriptor;

	if (depth > 8)
		return;
	/* Fields that are there matter most. */
	for (unsigned tries = 0; tries < 40; tries++) {
		const ProtobufCFieldDescriptor *f = &d->fields[seeds_random(state) % d->n_fields];
		char *at = (char *)m + f->offset;
		bool is_there;

		if (f->label == PROTOBUF_C_LABEL_REPEATED)
			is_there = *(size_t *)((char *)m + f->quantifier_offset);
		else if (f->type == PROTOBUF_C_TYPE_MESSAGE || f->type == PROTOBUF_C_TYPE_STRING)
			is_there = *(void **)at;
		else
			is_there = *(protobuf_c_boolean *)((char *)m + f->quantifier_offset);
		if (!is_there && seeds_random(state) % 32)
			continue;
		if (f->label == PROTOBUF_C_LABEL_REPEATED) {
			change_list(f, m, state, depth);
			return;
		}
		if (f->type == PROTOBUF_C_TYPE_MESSAGE && seeds_random(state) % 64 == 0) {
			*(void **)at = NULL;
			return;
		}
		if (f->type != PROTOBUF_C_TYPE_MESSAGE && f->type != PROTOBUF_C_TYPE_STRING)
			*(protobuf_c_boolean *)((char *)m + f->quantifier_offset) = 1;
		change_one(f, at, state, depth);
		return;
	}
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t n, size_t max, unsigned seed)
{
	uint64_t state = seed * 0x9e3779b97f4a7c15u + 1;
	unsigned changes = 1 + seeds_random(&state) % 4;
	ProtobufCMessage *m;
	size_t bytes;

	used = 0;
	m = seeds_random(&state) % 16 ?
		protobuf_c_message_unpack(&hlo__module__descriptor, &memory, n, data) : NULL;
	if (!m)
		return LLVMFuzzerMutate(data, n, max);
	while (changes--) {
		Hlo__Module *module = (Hlo__Module *)m;
		Hlo__Computation *c = module->n_computations ? module->computations[
			seeds_random(&state) % module->n_computations] : NULL;

		if (c && c->n_instructions && seeds_random(&state) % 4)
			change_message(&c->instructions[seeds_random(&state) %
							c->n_instructions]->base, &state, 0);
		else
			change_message(m, &state, 0);
	}
	bytes = protobuf_c_message_get_packed_size(m);
	if (bytes > max)
		return LLVMFuzzerMutate(data, n, max);
	return protobuf_c_message_pack(m, data);
}

/* ---- the target ---- */

/* One input in FUZZ_SHARE goes on to be compiled, the others are read and verified only: millions
 * of runs for the readers in an hour. Always the same ones, as libFuzzer asks. */
static bool goes_on(const uint8_t *data, size_t n)
{
	static long share;
	uint64_t hash = n;

	if (!share) {
		const char *text = getenv("FUZZ_SHARE");

		share = text ? atol(text) : 1;
		share = share > 0 ? share : 1;
	}
	for (size_t i = 0; share > 1 && i < n; i++)
		hash = (hash ^ data[i]) * 0x100000001b3u;
	return (hash >> 20) % (uint64_t)share == 0;
}

/* What compiles must be shown, too, and compile as it is shown. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct tc_options options = { .level = n % 4 != 3, .memory_limit = 64u << 20 };
	struct tc_source source = { data, n, n % 16 == 5 ? "hlo_with_config" : "hlo" };
	bool is_compiled = goes_on(data, n);
	struct tc_result again;
	struct err err;
	size_t bytes;
	char *text;
	void *shown;

	if ((n % 8 == 5 || !is_compiled) && !tc_print(&source, &options, "read", &text, &err))
		free(text);
	if (!is_compiled)
		return 0;
	compiles_for_several(&source, options);
	if (!compiles(&source, options))
		return 0;
	options.verify = true;
	if (tc_hlo_with_config(&source, &options, NULL, &shown, &bytes, &err))
		found("it is not shown", &err);
	source = (struct tc_source){ shown, bytes, "hlo_with_config" };
	if (tc_compile(&source, &options, &again, &err))
		found("what is shown does not compile", &err);
	tc_result_free(&again);
	free(shown);
	return 0;
}
