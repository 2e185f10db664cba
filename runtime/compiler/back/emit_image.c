/* SPDX-License-Identifier: Apache-2.0 */
/* From code, constants and shapes to the ELF image. */
#include <stdio.h>
#include <string.h>

#include "runtime/compiler/back/link.h"
#include "runtime/compiler/tc.h"

static void set_shape(struct image_shape *s, const struct tc_type *t, int32_t alias)
{
	*s = (struct image_shape){ .elem = t->elem, .rank = t->rank, .alias = alias };
	memcpy(s->dim, t->dim, t->rank * sizeof(*t->dim));
}

static void check_memory(struct emit *e, const struct tc_block *main)
{
	uint64_t limit = e->c->options->memory_limit, args = 0, results = 0;
	uint64_t temps = e->rooms[0].most + e->links->bytes;

	for (unsigned i = 0; i < e->n_args; i++)
		args += (uint64_t)main->args[i]->type->bytes;
	for (unsigned i = 0; i < e->n_results; i++)
		if (e->result_alias[i] < 0)
			results += (uint64_t)tc_in(main->last, i)->type->bytes;
	if (!limit || args + results + temps + e->rodata.len <= limit)
		return;
	if (e->c->ahead)
		e->c->ahead->is_short = true;
	tc_fail(e->c, ERR_RESOURCE_EXHAUSTED, NULL, "the program needs %llu bytes of "
		"device memory (arguments %llu, results %llu, temporaries %llu, "
		"constants %zu), more than the %llu that are there: out of memory; the "
		"largest free block cannot be larger",
		(unsigned long long)(args + results + temps + e->rodata.len),
		(unsigned long long)args, (unsigned long long)results,
		(unsigned long long)temps, e->rodata.len,
		(unsigned long long)limit);
}

/* A program that fails here would have given wrong numbers: it is ours to mend. */
static void verify(struct emit *e, const struct image *im)
{
	struct tc_evidence ev = { .notes = e->notes, .n = e->n_notes };
	struct tc_branch_note *b;
	const struct image_debug *d;
	struct tc_verdict why;
	const char *dump = e->c->dump_dir;
	int code;

	for (const struct fixup *f = e->fixups; f; f = f->next)
		ev.n_branches++;
	b = arena_array(&e->c->arena, ev.n_branches + 1, sizeof(*b));
	if (!b)
		tc_fail(e->c, ERR_RESOURCE_EXHAUSTED, NULL, "out of memory");
	ev.branches = b;
	for (const struct fixup *f = e->fixups; f; f = f->next)
		*b++ = (struct tc_branch_note){ f->at, f->label->notes };
	code = tc_verify(im, &ev, &why);
	if (!code)
		return;
	if (code != ERR_INTERNAL)
		tc_fail(e->c, code, NULL, "out of memory for checking the program");
	d = image_where(im, why.offset);
	tc_fail(e->c, code, NULL, "%s%s%s: the instruction at 0x%llx %s. " TC_OUR_BUG
		"%s%s", d ? image_string(im, d->op) : "program",
		d && d->where ? " at " : "", d ? image_string(im, d->where) : "",
		(unsigned long long)why.offset, why.why,
		dump ? "the files in " : "the folder that it leaves there when run with "
		"TESSERA_DUMP=", dump ? dump : "FOLDER");
}

/* How the arrays of the framework lie on the members, as the image has it. */
static void put_shardings(struct emit *e, struct image *im)
{
	const struct tc_ctx *c = e->c;
	size_t bytes = 0;
	uint8_t *to;

	for (uint32_t i = 0; i < c->n_shardings; i++)
		bytes += sizeof(uint32_t) + (c->shardings[i].bytes ? c->shardings[i].n : 0);
	if (!bytes || e->links->n_partitions == 1)
		return;
	if (c->n_shardings != (uint32_t)e->n_args + e->n_results)
		tc_fail(e->c, ERR_INTERNAL, NULL, "%u shardings of %u arrays", c->n_shardings,
			(uint32_t)e->n_args + e->n_results);
	to = arena_array(&e->c->arena, bytes, 1);
	if (!to)
		tc_fail(e->c, ERR_RESOURCE_EXHAUSTED, NULL, "out of memory");
	im->shardings = to;
	im->shardings_bytes = bytes;
	for (uint32_t i = 0; i < c->n_shardings; i++) {
		uint32_t n = c->shardings[i].bytes ? (uint32_t)c->shardings[i].n : 0;

		memcpy(to, &n, sizeof(n));
		if (n)
			memcpy(to + sizeof(n), c->shardings[i].bytes, n);
		to += sizeof(n) + n;
	}
}

void tc_emit_image(struct emit *e, void **out, size_t *bytes)
{
	const struct tc_block *main = tc_main(e->c);
	const struct tc_op *func = main->region->parent;
	unsigned n_shapes = e->n_args + e->n_results, n = 2;
	struct image_binding *b = arena_array(&e->c->arena, n_shapes + 3u +
					      tc_count_link_bindings(e), sizeof(*b));
	struct image_shape *shapes = arena_array(&e->c->arena, n_shapes + 1u, sizeof(*shapes));
	const char *name = tc_attr_str(e->c->module, "sym_name");
	struct image im = { 0 };
	char note[128];

	if (!b || !shapes)
		tc_fail(e->c, ERR_RESOURCE_EXHAUSTED, NULL, "out of memory");
	check_memory(e, main);
	b[0] = (struct image_binding){ .kind = IMAGE_CONSTANTS, .access = HW_BIND_READ,
				       .bytes = e->rodata.len };
	b[1] = (struct image_binding){ .kind = IMAGE_TEMP,
		.access = HW_BIND_READ | HW_BIND_WRITE, .bytes = e->rooms[0].most };
	for (unsigned i = 0; i < e->n_args; i++) {
		set_shape(&shapes[i], main->args[i]->type, e->arg_alias[i]);
		tc_layout_order(e, func->arg_info, false, i, main->args[i]->type,
				shapes[i].order);
		shapes[i].is_donated = e->arg_alias[i] >= 0;
		if (func->arg_info) {
			shapes[i].memory_kind = func->arg_info[i].memory_kind;
			shapes[i].bounded = func->arg_info[i].bounded;
		}
		b[n++] = (struct image_binding){ .kind = IMAGE_ARG, .index = i,
			.access = HW_BIND_READ | (e->arg_alias[i] >= 0 ? HW_BIND_WRITE : 0),
			.bytes = (uint64_t)main->args[i]->type->bytes };
	}
	for (unsigned i = 0; i < e->n_results; i++) {
		const struct tc_type *t = tc_in(main->last, i)->type;

		set_shape(&shapes[e->n_args + i], t, e->result_alias[i]);
		tc_layout_order(e, func->res_info, true, i, t, shapes[e->n_args + i].order);
		if (func->res_info) {
			shapes[e->n_args + i].memory_kind = func->res_info[i].memory_kind;
			shapes[e->n_args + i].bounded = func->res_info[i].bounded;
		}
		if (e->result_alias[i] < 0)
			b[n++] = (struct image_binding){ .kind = IMAGE_RESULT, .index = i,
				.access = HW_BIND_READ | HW_BIND_WRITE,
				.bytes = (uint64_t)t->bytes };
	}
	put_shardings(e, &im);
	tc_put_links(e, &im, b, &n);
	if (e->has_random)
		b[n++] = (struct image_binding){ .kind = IMAGE_RANDOM,
			.access = HW_BIND_READ | HW_BIND_WRITE, .bytes = IMAGE_RANDOM_WORDS * 8 };
	tc_put_views(e, b, &n);
	im.info = (struct image_info){
		.version = IMAGE_VERSION, .isa = ISA_VERSION, .n_args = e->n_args,
		.n_results = e->n_results,
		.flags = e->has_loop ? 0 : IMAGE_STRAIGHT,
		.name = tc_string(e, name && *name ? name : "main"),
		.temp_bytes = e->rooms[0].most,
		.cost_ns = (uint64_t)(e->cost_ns < 1e18 ? e->cost_ns : 1e18) + 1,
		.flops = e->flops, .bytes_accessed = e->bytes,
		.transcendentals = e->transcendentals,
		.n_replicas = e->links->n_members / e->links->n_partitions,
		.n_partitions = e->links->n_partitions,
	};
	snprintf(note, sizeof(note), "tessera compiler %s, level %u", TC_VERSION,
		 e->c->options->level);
	im.text = e->code.text;
	im.text_bytes = e->code.len;
	im.rodata = e->rodata.text;
	im.rodata_bytes = e->rodata.len;
	im.bindings = b;
	im.n_bindings = n;
	im.shapes = shapes;
	im.debug = e->debug;
	im.n_debug = e->n_debug;
	im.transfers = e->transfers;
	im.n_transfers = e->n_transfers;
	im.meetings = e->meetings;
	im.n_meetings = e->n_meetings;
	im.functions = (const uint8_t *)e->functions.text;
	im.functions_bytes = e->functions.len;
	im.strings = e->strings.text;
	im.strings_bytes = e->strings.len;
	im.note = note;
	if (e->code.failed || e->rodata.failed || e->strings.failed)
		tc_fail(e->c, ERR_RESOURCE_EXHAUSTED, NULL, "out of memory for the image");
	verify(e, &im);
	if (image_write(&im, out, bytes, e->c->err))
		longjmp(*e->c->boundary, 1);
}
