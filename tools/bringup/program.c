/* SPDX-License-Identifier: Apache-2.0 */
/* Images of scalar instructions, and running them. */
#include "tools/bringup/program.h"

struct hal_exe *bringup_scalar(struct bringup *b, const struct isa_scalar *code, size_t n,
			       uint64_t other_bytes)
{
	static const char strings[] = "\0bring-up\0scalar\0bring-up:1";
	struct image_binding bindings[] = {
		{ .kind = IMAGE_CONSTANTS }, { .kind = IMAGE_TEMP },
		{ .kind = IMAGE_RESULT, .access = HW_BIND_READ | HW_BIND_WRITE, .bytes = 8 },
		{ .kind = IMAGE_RESULT, .access = HW_BIND_READ | HW_BIND_WRITE, .index = 1,
		  .bytes = other_bytes },
	};
	struct image_shape shape = { .elem = ELEM_S64, .rank = 1, .alias = -1, .dim = { 1 } };
	struct image_shape shapes[] = { shape, shape };
	struct image_debug debug = { .offset = 0, .op = 10, .where = 17 };
	struct image im = {
		.info = { .version = IMAGE_VERSION, .isa = ISA_VERSION, .n_results = 2,
			  .name = 1, .n_replicas = 1, .n_partitions = 1 },
		.text = code, .text_bytes = n * sizeof(*code), .bindings = bindings,
		.n_bindings = COUNT(bindings), .shapes = shapes, .debug = &debug, .n_debug = 1,
		.strings = strings, .strings_bytes = sizeof(strings), .note = "bring-up",
	};
	size_t bytes;
	void *image;

	shapes[1].dim[0] = (int64_t)other_bytes / 8;
	if (image_write(&im, &image, &bytes, &b->err))
		return NULL;
	return bringup_load(b, image, bytes);
}

static int launch(struct bringup *b, struct hal_exe *exe, const struct hw_binding *data,
		  const struct hw_binding *other, const struct hal_after *after, unsigned n_after,
		  uint64_t *value)
{
	struct hw_binding bindings[] = { { 0 }, { 0 }, *data, *other };
	struct hal_launch l = { .exe = exe, .bindings = bindings, .after = after,
				.n_after = n_after };

	return hal_queue_execute(b->compute, &l, value, &b->err);
}

int bringup_launch(struct bringup *b, struct hal_exe *exe, struct hal_mem *m,
		   const struct hal_after *after, unsigned n_after, uint64_t *value)
{
	struct hw_binding binding = { hal_mem_va(m), hal_mem_bytes(m) };

	return launch(b, exe, &binding, &binding, after, n_after, value);
}

int bringup_launch_on(struct bringup *b, struct hal_exe *exe, struct hw_binding data,
		      struct hw_binding other, uint64_t *value)
{
	return launch(b, exe, &data, &other, NULL, 0, value);
}
