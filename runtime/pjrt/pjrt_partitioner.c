/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Custom Partitioner extension: functions of the framework that share out calls of programs
 * for several devices (JAX's custom_partitioning). Who registers them gives a table of three
 * callbacks, of version 0, for a call's target; here they become those that the compiler asks
 * (struct tc_partitioners): shapes and shardings go there and back as XLA's protobufs.
 *
 * What is registered is the process's and stays; of several for one target the last counts. What
 * callbacks give is theirs until their cleanup function is called, which is here, before it is
 * used. Any thread; a callback may block, and no lock is held then.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/compiler/tc.h"
#include "runtime/pjrt/pjrt_wrap.h"

#define MAX_NAME 1000u

typedef struct JAX_CustomCallPartitioner_string text;
typedef struct JAX_CustomCallPartitioner_version_and_error header;
typedef struct JAX_CustomCallPartitioner_Callbacks callbacks;

struct target {
	struct target *next;
	callbacks *callbacks;
	size_t n;
	char name[];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;	/* over the list, newest first */
static struct target *targets;

static struct target *first_target(void)
{
	struct target *t;

	pthread_mutex_lock(&lock);
	t = targets;
	pthread_mutex_unlock(&lock);
	return t;
}

static const struct target *find(const char *name)
{
	for (const struct target *t = first_target(); t; t = t->next)
		if (strlen(name) == t->n && !memcmp(t->name, name, t->n))
			return t;
	return NULL;
}

/* ---- messages ---- */

/* Bytes that grow; `failed`: out of memory. */
struct bytes {
	char *p;
	size_t n, room;
	bool failed;
};

static void put(struct bytes *b, const void *p, size_t n)
{
	size_t room = b->room ? b->room : 64;
	char *grown;

	while (room < b->n + n)
		room *= 2;
	if (!b->failed && room != b->room) {
		grown = realloc(b->p, room);
		b->failed = !grown;
		if (grown) {
			b->p = grown;
			b->room = room;
		}
	}
	if (b->failed)
		return;
	if (n)
		memcpy(b->p + b->n, p, n);
	b->n += n;
}

static void put_varint(struct bytes *b, uint64_t v)
{
	uint8_t byte;

	do {
		byte = (uint8_t)((v & 0x7f) | (v > 0x7f ? 0x80 : 0));
		put(b, &byte, 1);
		v >>= 7;
	} while (v);
}

enum { XLA_TUPLE = 13, SHAPE_PARTS = 4, OP_SHARDING_TUPLE = 2, SHARDING_PARTS = 5 };

static void put_message(struct bytes *b, unsigned field, const void *p, size_t n)
{
	put_varint(b, field << 3 | 2);
	put_varint(b, n);
	put(b, p, n);
}

static void put_kind(struct bytes *b, unsigned field, unsigned value)
{
	put_varint(b, field << 3);
	put_varint(b, value);
}

static int shape_of(const struct tc_partition_array *a, void **out, size_t *n, struct err *err)
{
	struct rt_shape s = { .elem = a->elem, .rank = (uint8_t)a->rank };

	for (unsigned d = 0; d < a->rank; d++)
		s.dim[d] = a->dim[d];
	return rt_shape_proto(&s, RT_DEVICE, out, n, err);
}

/* ---- a call of a callback ---- */

/* What it is shown, as one block of bytes each: of operands, then of the result, which is a
 * tuple's if there is not just one. */
struct shown {
	struct JAX_CustomCallPartitioner_aval *avals;	/* [n_operands + 1] */
	struct bytes *made;	/* [2 * (n_operands + 1)]: their shapes and shardings */
	unsigned n;
};

static void hide(struct shown *s)
{
	for (unsigned i = 0; s->made && i < 2 * s->n; i++)
		free(s->made[i].p);
	free(s->made);
	free(s->avals);
}

static int put_array(struct bytes *shape, struct bytes *sharding,
		     const struct tc_partition_array *a, bool is_part, struct err *err)
{
	void *p;
	size_t n;
	int code = shape_of(a, &p, &n, err);

	if (code)
		return code;
	if (is_part) {
		put_message(shape, SHAPE_PARTS, p, n);
		put_message(sharding, SHARDING_PARTS, a->sharding.p, a->sharding.n);
	} else {
		put(shape, p, n);
		put(sharding, a->sharding.p, a->sharding.n);
	}
	free(p);
	return 0;
}

static int show(const struct tc_partition_call *call, struct shown *out, struct err *err)
{
	unsigned n_in = call->n_operands, n_out = call->n_results;
	bool is_tuple = n_out != 1, failed = false;
	struct shown s = { .n = n_in + 1, .avals = calloc(n_in + 1, sizeof(*s.avals)),
			   .made = calloc(2 * (n_in + 1), sizeof(*s.made)) };
	int code = s.avals && s.made ? 0 : err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory");

	if (!code && is_tuple) {
		put_kind(&s.made[2 * n_in], 2, XLA_TUPLE);
		put_kind(&s.made[2 * n_in + 1], 1, OP_SHARDING_TUPLE);
	}
	for (unsigned t = 0; !code && t < n_in + n_out; t++) {
		struct bytes *to = &s.made[2 * (t < n_in ? t : n_in)];

		code = put_array(&to[0], &to[1], &call->arrays[t], t >= n_in && is_tuple, err);
	}
	for (unsigned i = 0; !code && i < s.n; i++) {
		const struct bytes *b = &s.made[2 * i];

		failed |= b[0].failed || b[1].failed;
		s.avals[i] = (struct JAX_CustomCallPartitioner_aval){
			.shape = { b[0].p ? b[0].p : "", b[0].n }, .has_sharding = true,
			.sharding = { b[1].p ? b[1].p : "", b[1].n } };
	}
	if (failed)
		code = err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory");
	if (code)
		hide(&s);
	else
		*out = s;
	return code;
}

/* 0 if the callback succeeded; its error goes with it otherwise. */
static int check(header *h, struct err *err)
{
	int code;

	if (!h->has_error)
		return 0;
	code = h->code > 0 && h->code <= 16 ? h->code : ERR_UNKNOWN;
	*err = pjrt_read_error(code, h->error_msg.data, h->error_msg.data ? h->error_msg.size : 0);
	return code;
}

static void clean_up(const header *h)
{
	if (h->cleanup_fn)
		((void (*)(void *data))h->cleanup_fn)(h->data);
}

/* Copies of n texts, and a list of them, in one piece of memory, malloc'd. */
static int copy(unsigned n, const text *from, void **memory, struct err *err)
{
	size_t all = n * sizeof(struct tc_bytes);
	struct tc_bytes *list;
	char *p;

	for (unsigned i = 0; i < n; i++)
		if (from[i].size &&
		    (!from[i].data || __builtin_add_overflow(all, from[i].size, &all)))
			return err_set(err, ERR_INVALID_ARGUMENT, "a partitioner gave %zu bytes "
				       "that are nowhere", from[i].size);
	list = *memory = malloc(all);
	if (!list)
		return err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory for the %zu bytes that "
			       "a partitioner gave", all);
	p = (char *)(list + n);
	for (unsigned i = 0; i < n; i++) {
		if (from[i].size)
			memcpy(p, from[i].data, from[i].size);
		list[i] = (struct tc_bytes){ p, from[i].size };
		p += from[i].size;
	}
	return 0;
}

static int take(const struct JAX_CustomCallPartitioner_Partition_Args *args, unsigned n_in,
		struct tc_partition_answer *out, struct err *err)
{
	const struct tc_bytes *list;
	text *from;
	void *memory;
	int code;

	if (n_in && !args->args_sharding)
		return err_set(err, ERR_INVALID_ARGUMENT, "a partitioner does not say how it wants "
			       "its %u operands", n_in);
	from = calloc(n_in + 2, sizeof(*from));
	if (!from)
		return err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory");
	from[0] = args->mlir_module;
	from[1] = args->result_sharding;
	for (unsigned i = 0; i < n_in; i++)
		from[2 + i] = args->args_sharding[i];
	code = copy(n_in + 2, from, &memory, err);
	free(from);
	if (code)
		return code;
	list = memory;
	*out = (struct tc_partition_answer){ .program = list[0], .results = list[1],
					     .operands = list + 2, .memory = memory };
	return 0;
}

/* Of a callback that only says how results lie. */
static int take_results(const text *said, struct tc_partition_answer *out, struct err *err)
{
	void *memory;
	int code = copy(1, said, &memory, err);

	if (!code)
		*out = (struct tc_partition_answer){ .memory = memory,
						     .results = *(struct tc_bytes *)memory };
	return code;
}

/* ---- what the compiler asks ---- */

static bool may_be_in(void *arg, const void *code, size_t bytes)
{
	(void)arg;
	for (const struct target *t = first_target(); t; t = t->next)
		if (memmem(code, bytes, t->name, t->n))
			return true;
	return false;
}

static bool has(void *arg, const char *target)
{
	(void)arg;
	return find(target);
}

static int partition(void *arg, const struct tc_partition_call *call,
		     struct tc_partition_answer *out, struct err *err)
{
	const struct target *t = find(call->target);
	struct JAX_CustomCallPartitioner_Partition_Args args = {
		.num_args = call->n_operands,
		.backend_config = { call->config.p ? call->config.p : "", call->config.n } };
	struct shown s;
	int code = show(call, &s, err);

	(void)arg;
	if (code)
		return code;
	args.op_args = s.avals;
	args.op_result = s.avals[call->n_operands];
	((void (*)(callbacks *, struct JAX_CustomCallPartitioner_Partition_Args *))
	 t->callbacks->partition)(t->callbacks, &args);
	code = check(&args.header, err);
	if (!code)
		code = take(&args, call->n_operands, out, err);
	clean_up(&args.header);
	hide(&s);
	return code;
}

static int infer(void *arg, const struct tc_partition_call *call,
		 struct tc_partition_answer *out, struct err *err)
{
	const struct target *t = find(call->target);
	struct JAX_CustomCallPartitioner_InferShardingFromOperands_Args args = {
		.num_args = call->n_operands,
		.backend_config = { call->config.p ? call->config.p : "", call->config.n } };
	struct shown s;
	int code = show(call, &s, err);

	(void)arg;
	if (code)
		return code;
	args.op_args = s.avals;
	args.result_shape = s.avals[call->n_operands].shape;
	((void (*)(callbacks *, struct JAX_CustomCallPartitioner_InferShardingFromOperands_Args *))
	 t->callbacks->infer_sharding)(t->callbacks, &args);
	code = check(&args.header, err);
	if (!code)
		code = take_results(args.has_result_sharding ? &args.result_sharding :
				    &(text){ "", 0 }, out, err);
	clean_up(&args.header);
	hide(&s);
	return code;
}

static int propagate(void *arg, const struct tc_partition_call *call,
		     struct tc_partition_answer *out, struct err *err)
{
	const struct target *t = find(call->target);
	struct JAX_CustomCallPartitioner_PropagateUserSharding_Args args = {
		.backend_config = { call->config.p ? call->config.p : "", call->config.n } };
	struct shown s;
	int code = show(call, &s, err);

	(void)arg;
	if (code)
		return code;
	args.result_shape = s.avals[call->n_operands].shape;
	args.result_sharding = s.avals[call->n_operands].sharding;
	((void (*)(callbacks *, struct JAX_CustomCallPartitioner_PropagateUserSharding_Args *))
	 t->callbacks->propagate_user_sharding)(t->callbacks, &args);
	code = check(&args.header, err);
	if (!code)
		code = take_results(&args.result_sharding, out, err);
	clean_up(&args.header);
	hide(&s);
	return code;
}

const struct tc_partitioners *pjrt_partitioners(void)
{
	static const struct tc_partitioners ours = { may_be_in, has, partition, infer, propagate,
						     NULL };

	return &ours;
}

/* ---- the extension ---- */

static struct PJRT_Error *register_partitioner(struct PJRT_Register_Custom_Partitioner_Args *args)
{
	const callbacks *c;
	struct target *t;

	if (!args || args->struct_size < PJRT_Register_Custom_Partitioner_Args_SIZE ||
	    !args->name || !args->name_size || args->name_size > MAX_NAME || !args->callbacks)
		return pjrt_error_text(ERR_INVALID_ARGUMENT, "PJRT_Register_Custom_Partitioner_"
				       "Args: it has to have struct_size, a name of 1 to %u bytes "
				       "and callbacks", MAX_NAME);
	c = args->callbacks;
	if (c->version)
		return pjrt_error_text(ERR_UNIMPLEMENTED, "the callbacks of partitioner %.*s are "
				       "of version %lld, this plugin calls those of version 0",
				       (int)args->name_size, args->name, (long long)c->version);
	if (!c->partition || !c->infer_sharding || !c->propagate_user_sharding)
		return pjrt_error_text(ERR_INVALID_ARGUMENT, "partitioner %.*s has not all of the "
				       "three callbacks", (int)args->name_size, args->name);
	t = calloc(1, sizeof(*t) + args->name_size + 1);
	if (!t)
		return NO_ROOM();
	t->callbacks = args->callbacks;
	t->n = args->name_size;
	memcpy(t->name, args->name, t->n);
	pthread_mutex_lock(&lock);
	t->next = targets;
	targets = t;
	pthread_mutex_unlock(&lock);
	return NULL;
}

/* Calls of functions of the host are not shared out by batch: they run whole, which gives the
 * same. */
static struct PJRT_Error *register_batch(const void *args)
{
	(void)args;
	return NULL;
}

struct PJRT_Extension_Base *pjrt_partitioner_extension(struct PJRT_Extension_Base *next)
{
	static struct PJRT_Custom_Partitioner_Extension ours = {
		.base = { .struct_size = PJRT_Custom_Partitioner_Extension_SIZE,
			  .type = PJRT_Extension_Type_Custom_Partitioner },
		.register_custom_partitioner = (void *)register_partitioner,
		.register_batch_partitionable = (void *)register_batch,
	};

	ours.base.next = next;
	return &ours.base;
}
