/* SPDX-License-Identifier: Apache-2.0 */
/* HLO modules as frameworks want them back (hlo.h). */
#include <stdlib.h>
#include <string.h>

#include "hal/hw/image.h"
#include "runtime/compiler/front/hlo.h"
#include "runtime/compiler/passes.h"

/* The shape with layouts that say row-major. */
static Hlo__Shape *row_major(struct hlo *r, const Hlo__Shape *from)
{
	Hlo__Shape *s = hlo_get(r, 1, sizeof(*s));
	const struct tc_type *t = hlo_type(r, from);

	*s = *from;
	s->layout = NULL;
	if (t->is_tuple) {
		s->tuple_shapes = hlo_get(r, s->n_tuple_shapes, sizeof(*s->tuple_shapes));
		for (size_t i = 0; i < s->n_tuple_shapes; i++)
			s->tuple_shapes[i] = row_major(r, from->tuple_shapes[i]);
	} else if (t->elem != ELEM_TOKEN) {
		s->layout = hlo_get(r, 1, sizeof(*s->layout));
		hlo__layout__init(s->layout);
		s->layout->n_minor_to_major = t->rank;
		s->layout->minor_to_major = hlo_get(r, t->rank, sizeof(int64_t));
		for (unsigned d = 0; d < t->rank; d++)
			s->layout->minor_to_major[d] = t->rank - 1u - d;
	}
	return s;
}

static Hlo__Sharding *read_sharding(struct hlo *r, const void *p, uint32_t n)
{
	Hlo__Sharding *s = hlo_get(r, 1, sizeof(*s));

	if (n)
		return hlo_unpack(r, &hlo__sharding__descriptor, p, n, "OpSharding");
	hlo__sharding__init(s);
	s->has_type = true;
	s->type = HLO_REPLICATED;
	return s;
}

/* How the results lie that the image makes; NULL: whole on every device. */
static Hlo__Sharding *output_sharding(struct hlo *r, const struct image *im, bool is_tuple)
{
	Hlo__Sharding *s = hlo_get(r, 1, sizeof(*s)), **part;
	size_t at = 0, i = 0;
	const void *p;
	uint32_t n;

	if (!im || !im->shardings_bytes || !im->info.n_results)
		return NULL;
	part = hlo_get(r, im->info.n_results, sizeof(*part));
	while ((p = image_next_sharding(im, &at, &n)))
		if (i++ >= im->info.n_args)
			part[i - 1 - im->info.n_args] = read_sharding(r, p, n);
	if (!is_tuple)
		return part[0];
	hlo__sharding__init(s);
	s->has_type = true;
	s->type = HLO_TUPLE;
	s->n_tuple_shardings = im->info.n_results;
	s->tuple_shardings = part;
	return s;
}

static const Hlo__Computation *entry_of(const Hlo__Module *m)
{
	for (size_t i = 0; i < m->n_computations; i++)
		if (m->computations[i]->id == m->entry_computation_id)
			return m->computations[i];
	return NULL;
}

/* Arguments and result of main, which is known to be right. */
static void describe(struct hlo *r, const Hlo__Computation *entry, Hlo__ProgramShape *out)
{
	static char none[] = "";
	size_t n = entry->n_instructions;

	out->parameters = hlo_get(r, n, sizeof(*out->parameters));
	out->parameter_names = hlo_get(r, n, sizeof(*out->parameter_names));
	for (size_t i = 0; i < n; i++) {
		const Hlo__Instruction *p = entry->instructions[i];

		if (p->id == entry->root_id)
			out->result = row_major(r, p->shape);
		if (!p->opcode || strcmp(p->opcode, "parameter"))
			continue;
		out->parameters[p->parameter_number] = row_major(r, p->shape);
		out->parameter_names[p->parameter_number] = p->name ? p->name : none;
		out->n_parameters++;
	}
	out->n_parameter_names = out->n_parameters;
}

/* The module says how its results lie, and nothing else than it came with. */
static void say_sharding(struct hlo *r, Hlo__Module *m, Hlo__Sharding *s,
			 ProtobufCBinaryData *bytes)
{
	if (!s && !m->spmd_output_sharding)
		return;
	m->spmd_output_sharding = s;
	bytes->data = hlo_get(r, hlo__module__get_packed_size(m), 1);
	bytes->len = hlo__module__pack(m, bytes->data);
}

void tc_write_hlo_config(struct tc_ctx *c, const struct tc_source *source,
			 const struct image *image, void **out, size_t *bytes)
{
	struct hlo r = { .c = c };
	Hlo__ProgramShape shape = HLO__PROGRAM_SHAPE__INIT;
	Hlo__Config config = HLO__CONFIG__INIT;
	Hlo__ModuleWithConfig all = HLO__MODULE_WITH_CONFIG__INIT;
	const Hlo__Computation *entry;
	Hlo__Module *m;
	uint8_t *p;

	all.module = (ProtobufCBinaryData){ source->bytes, (uint8_t *)(uintptr_t)source->code };
	if (!strcmp(source->format, "hlo_with_config"))
		all.module = hlo_unpack_with_config(&r, source->code, source->bytes)->module;
	m = hlo_unpack(&r, &hlo__module__descriptor, all.module.data, all.module.len,
		       "HloModuleProto");
	entry = entry_of(m);
	if (!entry)
		hlo_bad(&r, "the module has no entry");
	describe(&r, entry, &shape);
	say_sharding(&r, m, output_sharding(&r, image, hlo_type(&r, shape.result)->is_tuple),
		     &all.module);
	config.entry_computation_layout = &shape;
	config.has_replica_count = config.has_num_partitions = true;
	config.replica_count = c->options->replicas ? c->options->replicas : 1;
	config.num_partitions = c->options->partitions ? c->options->partitions : 1;
	all.has_module = true;
	all.config = &config;
	p = malloc(hlo__module_with_config__get_packed_size(&all) + 1);
	if (!p)
		tc_fail(c, ERR_RESOURCE_EXHAUSTED, NULL, "out of memory");
	*bytes = hlo__module_with_config__pack(&all, p);
	*out = p;
}
