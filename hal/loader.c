/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loading executables: constants go to HBM for good, code only for as long as the
 * device takes to check and copy it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hal/hal_internal.h"

/* Frees what could not be filled, or was read: a copy that came too late may yet write there. */
static void drop(struct hal_mem *m, int code)
{
	if (m && code == ERR_DEADLINE_EXCEEDED)
		hal_free_late(m);
	else
		hal_mem_free(m);
}

static int load_constants(struct hal_exe *exe, struct err *err)
{
	const struct image *im = exe->image;
	int code;

	if (!im->rodata_bytes)
		return 0;
	code = hal_mem_alloc(exe->dev, HAL_MEM_HBM, im->rodata_bytes, exe->name,
			     &exe->constants, err);
	if (!code)
		code = hal_copy_in(exe->constants, 0, im->rodata, im->rodata_bytes,
				   clock_after(HAL_ADMIN_NS), err);
	if (code) {
		drop(exe->constants, code);
		exe->constants = NULL;
	}
	return code;
}

/* What the device does not like, in the framework's words. */
static void blame(const struct hal_exe *exe, uint64_t at, struct err *err)
{
	const struct image_debug *where = image_where(exe->image, at);
	const char *op = where ? image_string(exe->image, where->op) : "?";
	const char *from = where ? image_string(exe->image, where->where) : "";

	err_add(err, "op %s%s%s at byte %llu of the code: either this program was compiled by "
		"another build, or the compiler has a bug, which is worth a report with what "
		"TESSERA_DUMP=FOLDER writes", op, *from ? " from " : "", from,
		(unsigned long long)at);
}

/* Where the device reads the code, once: in HBM, or where that is full, as it may be when a reset
 * comes, in host memory. */
static int place_code(struct hal_exe *exe, struct hal_mem **code, struct err *err)
{
	const struct image *im = exe->image;
	int status = hal_mem_alloc(exe->dev, HAL_MEM_HBM, im->text_bytes, exe->name, code, err);

	if (status == ERR_RESOURCE_EXHAUSTED &&
	    !hal_mem_alloc(exe->dev, HAL_MEM_HOST, im->text_bytes, exe->name, code, NULL))
		status = 0;
	return status ? status : hal_copy_in(*code, 0, im->text, im->text_bytes,
					     clock_after(HAL_ADMIN_NS), err);
}

static int load_code(struct hal_exe *exe, struct err *err)
{
	const struct image *im = exe->image;
	struct hw_program_binding *b = calloc(im->n_bindings, sizeof(*b));
	struct hal_mem *code = NULL;
	uint64_t bad = UINT64_MAX;
	uint32_t program;
	int status;

	if (!b)
		return err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory");
	for (size_t i = 0; i < im->n_bindings; i++) {
		b[i] = (struct hw_program_binding){ im->bindings[i].bytes,
						    im->bindings[i].access, 0 };
		/* Those of a program that calls the host outlive a run. */
		if (im->bindings[i].kind == IMAGE_TEMP && !im->n_transfers)
			b[i].access |= HW_BIND_SCRATCH;
		exe->is_joint |= im->bindings[i].kind == IMAGE_PEER;
	}
	status = place_code(exe, &code, err);
	exe->since = clock_ns();
	if (!status)
		status = exe->dev->t->ops->program_create(exe->dev->t, code->va,
							  im->text_bytes, b,
							  (unsigned)im->n_bindings,
							  &program, &bad, err);
	if (bad != UINT64_MAX)
		blame(exe, bad, err);
	if (!status)
		atomic_store(&exe->program, program);
	drop(code, status);
	free(b);
	return status;
}

static void free_exe(struct hal_exe *exe)
{
	hal_mem_free(exe->constants);
	image_free(exe->image);
	free(exe);
}

/* The device holds its code, and a reset finds it: both or neither. */
static int join(struct hal_exe *exe, struct err *err)
{
	struct hal_device *dev = exe->dev;
	int code;

	pthread_mutex_lock(&dev->exes_lock);
	code = load_code(exe, err);
	if (!code) {
		exe->next = dev->exes;
		exe->pprev = &dev->exes;
		if (exe->next)
			exe->next->pprev = &exe->next;
		dev->exes = exe;
	}
	pthread_mutex_unlock(&dev->exes_lock);
	return code;
}

typedef int parse_fn(const void *bytes, size_t n, struct image **out, struct err *err);

static int load(struct hal_device *dev, const void *image, size_t bytes, parse_fn *parse,
		struct hal_exe **out, struct err *err)
{
	struct hal_exe *exe;
	int code = hal_check(dev, err);

	if (code)
		return code;
	exe = calloc(1, sizeof(*exe));
	if (!exe)
		return err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory");
	exe->dev = dev;
	code = parse(image, bytes, &exe->image, err);
	if (!code) {
		const struct image_info *info = &exe->image->info;

		snprintf(exe->name, sizeof(exe->name), "%s",
			 image_string(exe->image, info->name));
		if (info->cost_ns && info->cost_ns < (info->flags & IMAGE_STRAIGHT ?
						      HAL_INLINE_NS : HAL_INLINE_LOOP_NS))
			exe->flags = HW_INLINE;
		code = load_constants(exe, err);
	}
	if (!code)
		code = join(exe, err);
	if (code) {
		err_add(err, "loading %s", exe->name);
		free_exe(exe);
		return code;
	}
	*out = exe;
	return 0;
}

int hal_exe_load(struct hal_device *dev, const void *image, size_t bytes,
		 struct hal_exe **out, struct err *err)
{
	return load(dev, image, bytes, image_parse, out, err);
}

int hal_exe_load_kept(struct hal_device *dev, const void *image, size_t bytes,
		      struct hal_exe **out, struct err *err)
{
	return load(dev, image, bytes, image_view, out, err);
}

int hal_exe_reload(struct hal_exe *exe, struct err *err)
{
	int code = 0;

	if (exe->constants)
		code = hal_copy_in(exe->constants, 0, exe->image->rodata,
				   exe->image->rodata_bytes, clock_after(HAL_ADMIN_NS), err);
	return code ? code : load_code(exe, err);
}

void hal_exe_unload(struct hal_exe *exe)
{
	struct hal_device *dev;
	struct hal_queue *q;

	if (!exe || hal_is_orphan(exe->dev))
		return;
	dev = exe->dev;
	q = dev->queues[HAL_QUEUE_COMPUTE];
	/* The queue's slots may name it in messages until its last run is done. */
	hal_queue_wait(q, atomic_load(&exe->last_use), clock_after(HAL_CLOSE_NS), NULL);
	pthread_mutex_lock(&dev->exes_lock);
	*exe->pprev = exe->next;
	if (exe->next)
		exe->next->pprev = exe->pprev;
	/* Lost in a reset and not loaded again, there is none. */
	if (exe->program) {
		hal_trace_forget(exe);
		dev->t->ops->program_destroy(dev->t, exe->program);
	}
	pthread_mutex_unlock(&dev->exes_lock);
	pthread_mutex_lock(&q->lock);
	for (unsigned i = 0; i < HAL_RING; i++)
		if (q->slots[i].exe == exe)
			q->slots[i].exe = NULL;
	pthread_mutex_unlock(&q->lock);
	free_exe(exe);
}

const struct image *hal_exe_image(const struct hal_exe *exe)
{
	return exe->image;
}

struct hal_mem *hal_exe_constants(const struct hal_exe *exe)
{
	return exe->constants;
}
