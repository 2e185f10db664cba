/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs for the checks: images of scalar instructions written by hand, which need no
 * compiler, and those that the compiler makes of IR text, held against its evaluator.
 */
#include "runtime/compiler/tc.h"
#include "tests/conformance/conf.h"

void conf_image(struct conf *c, const struct isa_scalar *code, size_t n, uint32_t flags,
		uint64_t bytes, void **image, size_t *image_bytes)
{
	static const char strings[] = "\0checked\0doing\0here:1";
	struct image_binding b[] = {
		{ .kind = IMAGE_CONSTANTS }, { .kind = IMAGE_TEMP },
		{ .kind = IMAGE_RESULT, .access = HW_BIND_READ | HW_BIND_WRITE,
		  .bytes = bytes },
	};
	struct image_shape shape = { .elem = ELEM_S64, .rank = 1, .alias = -1,
				     .dim = { (int64_t)bytes / 8 } };
	struct image_debug debug = { .offset = 0, .op = 9, .where = 15 };
	struct image im = {
		.info = { .version = IMAGE_VERSION, .isa = ISA_VERSION, .n_results = 1,
			  .flags = flags, .name = 1, .cost_ns = flags ? 100 : 0,
			  .n_replicas = 1, .n_partitions = 1 },
		.text = code, .text_bytes = n * sizeof(*code), .bindings = b,
		.n_bindings = 3, .shapes = &shape, .debug = &debug, .n_debug = 1,
		.strings = strings, .strings_bytes = sizeof(strings), .note = "by hand",
	};

	OK(c, image_write(&im, image, image_bytes, &c->err));
}

struct hal_exe *conf_load_on(struct conf *c, struct hal_device *dev,
			     const struct isa_scalar *code, size_t n, uint32_t flags,
			     uint64_t bytes)
{
	struct hal_exe *exe;
	size_t image_bytes;
	void *image;

	conf_image(c, code, n, flags, bytes, &image, &image_bytes);
	OK(c, hal_exe_load(dev, image, image_bytes, &exe, &c->err));
	free(image);
	return exe;
}

struct hal_exe *conf_load(struct conf *c, const struct isa_scalar *code, size_t n,
			  uint32_t flags, uint64_t bytes)
{
	return conf_load_on(c, c->dev, code, n, flags, bytes);
}

struct hal_exe *conf_load_store(struct conf *c)
{
	static const struct isa_scalar code[] = {
		{ INSN(LI), .rd = 1, .imm = 42 },
		{ INSN(ST), .rb = 1, .elem = ELEM_S64, .binding = 2 },
		{ INSN(HALT) },
	};

	return conf_load(c, code, COUNT(code), IMAGE_STRAIGHT, 8);
}

struct hal_exe *conf_load_count_on(struct conf *c, struct hal_device *dev)
{
	static const struct isa_scalar code[] = {
		{ INSN(LD), .rd = 1, .elem = ELEM_S64, .binding = 2 },
		{ INSN(ALUI), .fn = ISA_ALU_ADD, .rd = 1, .ra = 1, .imm = 1 },
		{ INSN(ST), .rb = 1, .elem = ELEM_S64, .binding = 2 },
		{ INSN(HALT) },
	};

	return conf_load_on(c, dev, code, COUNT(code), 0, 8);
}

struct hal_exe *conf_load_count(struct conf *c)
{
	return conf_load_count_on(c, c->dev);
}

struct hal_exe *conf_load_spin(struct conf *c)
{
	static const struct isa_scalar code[] = { { INSN(JMP), .imm = 0 }, { INSN(HALT) } };

	return conf_load(c, code, COUNT(code), 0, 8);
}

struct hal_exe *conf_load_stray(struct conf *c)
{
	static const struct isa_scalar code[] = {
		{ INSN(LI), .rd = 1, .imm = 4096 },
		{ INSN(ST), .rb = 1, .ra = 1, .elem = ELEM_S64, .binding = 2 },
		{ INSN(HALT) },
	};

	return conf_load(c, code, COUNT(code), 0, 8);
}

static uint64_t launch(struct conf *c, struct hal_device *dev, struct hal_exe *exe,
		       struct hal_mem *out, uint64_t limit_ns, const struct hal_after *after,
		       unsigned n)
{
	struct hw_binding b[3] = { [2] = { hal_mem_va(out), hal_mem_bytes(out) } };
	struct hal_launch l = { .exe = exe, .bindings = b, .limit_ns = limit_ns,
				.after = after, .n_after = n };
	uint64_t value;

	OK(c, hal_queue_execute(hal_device_queue(dev, HAL_QUEUE_COMPUTE), &l, &value,
				&c->err));
	return value;
}

uint64_t conf_run(struct conf *c, struct hal_exe *exe, struct hal_mem *out,
		  uint64_t limit_ns)
{
	return launch(c, c->dev, exe, out, limit_ns, NULL, 0);
}

uint64_t conf_run_after(struct conf *c, struct hal_exe *exe, struct hal_mem *out,
			uint64_t limit_ns, const struct hal_after *after, unsigned n)
{
	return launch(c, c->dev, exe, out, limit_ns, after, n);
}

uint64_t conf_run_on(struct conf *c, struct hal_device *dev, struct hal_exe *exe,
		     struct hal_mem *out, uint64_t limit_ns)
{
	return launch(c, dev, exe, out, limit_ns, NULL, 0);
}

/* ---- compiled ones ---- */

void conf_compile(struct conf *c, const char *text, void **image, size_t *image_bytes)
{
	struct tc_source s = { text, strlen(text), "mlir" };
	struct tc_options o = { .level = 1, .verify = true };
	struct tc_result r;

	OK(c, tc_compile(&s, &o, &r, &c->err));
	*image = r.image;
	*image_bytes = r.image_bytes;
}

enum { MOST = 16 };

struct call {
	struct hal_mem *args[MOST], *results[MOST], *temps;
	struct hw_binding bindings[2 * MOST + 2];
	unsigned n_bindings, n_results;
};

static void bind(struct conf *c, struct hal_exe *exe, const void *const *args,
		 struct call *call)
{
	const struct image *im = hal_exe_image(exe);
	struct hal_mem *constants = hal_exe_constants(exe), *m;

	EXPECT(c, im->n_bindings <= COUNT(call->bindings));
	EXPECT(c, im->info.n_args <= MOST && im->info.n_results <= MOST);
	for (uint32_t i = 0; i < im->info.n_args; i++) {
		uint64_t bytes = image_shape_bytes(&im->shapes[i]);

		call->args[i] = conf_get(c, bytes);
		OK(c, hal_copy_in(call->args[i], 0, args[i], bytes, SOON, &c->err));
	}
	call->temps = im->info.temp_bytes ? conf_get(c, im->info.temp_bytes) : NULL;
	call->n_results = im->info.n_results;
	for (uint32_t i = 0; i < im->info.n_results; i++) {
		const struct image_shape *s = &im->shapes[im->info.n_args + i];

		call->results[i] = s->alias >= 0 ? call->args[s->alias] :
						   conf_get(c, image_shape_bytes(s));
	}
	for (size_t i = 0; i < im->n_bindings; i++) {
		const struct image_binding *b = &im->bindings[i];

		m = b->kind == IMAGE_CONSTANTS ? constants :
		    b->kind == IMAGE_TEMP ? call->temps :
		    b->kind == IMAGE_ARG ? call->args[b->index] : call->results[b->index];
		call->bindings[i] = (struct hw_binding){ m ? hal_mem_va(m) : 0,
							 m ? hal_mem_bytes(m) : 0 };
	}
}

static void release(struct call *call, const struct image *im)
{
	for (uint32_t i = 0; i < im->info.n_results; i++)
		if (im->shapes[im->info.n_args + i].alias < 0)
			hal_mem_free(call->results[i]);
	for (uint32_t i = 0; i < im->info.n_args; i++)
		hal_mem_free(call->args[i]);
	hal_mem_free(call->temps);
}

/* What the evaluator makes of it. */
static void evaluate(struct conf *c, const char *text, const struct image *im,
		     const void *const *args, const size_t *arg_bytes,
		     struct tc_array **outs, size_t *n_outs)
{
	struct tc_source s = { text, strlen(text), "mlir" };
	struct tc_array in[MOST];

	for (uint32_t i = 0; i < im->info.n_args; i++) {
		const struct image_shape *shape = &im->shapes[i];

		EXPECT(c, image_shape_bytes(shape) == arg_bytes[i]);
		in[i] = (struct tc_array){ .elem = shape->elem, .rank = shape->rank,
					   .data = (void *)(uintptr_t)args[i],
					   .bytes = arg_bytes[i] };
		memcpy(in[i].dim, shape->dim, sizeof(shape->dim));
	}
	OK(c, tc_eval(&s, in, im->info.n_args, outs, n_outs, &c->err));
}

void conf_program(struct conf *c, const char *text, const void *const *args,
		  const size_t *arg_bytes, unsigned n_args)
{
	struct call call = { 0 };
	struct hal_launch l = { .bindings = call.bindings };
	const struct image *im;
	struct tc_array *outs;
	size_t n_outs, image_bytes;
	uint64_t value;
	void *image;

	conf_compile(c, text, &image, &image_bytes);
	OK(c, hal_exe_load(c->dev, image, image_bytes, &l.exe, &c->err));
	free(image);
	im = hal_exe_image(l.exe);
	EXPECT(c, im->info.n_args == n_args);
	bind(c, l.exe, args, &call);
	evaluate(c, text, im, args, arg_bytes, &outs, &n_outs);
	EXPECT(c, n_outs == call.n_results);
	OK(c, hal_queue_execute(c->compute, &l, &value, &c->err));
	OK(c, hal_queue_wait(c->compute, value, SOON, &c->err));
	for (size_t i = 0; i < n_outs; i++) {
		void *got = conf_room(c, outs[i].bytes);

		EXPECT(c, outs[i].bytes == hal_mem_bytes(call.results[i]));
		OK(c, hal_copy_out(got, call.results[i], 0, outs[i].bytes, SOON, &c->err));
		EXPECT(c, !memcmp(got, outs[i].data, outs[i].bytes));
		see(c, got, outs[i].bytes);
		free(got);
	}
	tc_array_free(outs, n_outs);
	release(&call, im);
	hal_exe_unload(l.exe);
}
