/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arrays with dims of which a buffer's shape says only the bound. The sizes are a buffer of their
 * own beside it, s32[rank], which a program gives and takes as results and arguments of its own
 * (hal/hw/image.h); whoever launches by rt_sized_begin() knows nothing of these.
 */
#include <stdlib.h>
#include <string.h>

#include "runtime/rt_internal.h"

/* ---- what a buffer's sizes are ---- */

struct rt_buffer *rt_buffer_sizes(const struct rt_buffer *b)
{
	return b->sizes;
}

void rt_buffer_give_sizes(struct rt_buffer *b, struct rt_buffer *sizes)
{
	b->sizes = sizes;
	if (sizes)
		rt_buffer_ref(sizes);
}

/* From the device; waits for what computes them. */
static int fetch_sizes(struct rt_buffer *b, int64_t *dim, struct err *err)
{
	int32_t size[IMAGE_MAX_RANK];
	struct rt_event *done;
	int code = rt_buffer_to_host(b->sizes, 0, size, b->shape.rank * sizeof(*size), &done, err);

	if (code)
		return code;
	code = rt_event_wait(done, err);
	rt_event_unref(done);
	for (unsigned d = 0; !code && d < b->shape.rank; d++) {
		if (!(b->shape.bounded >> d & 1)) {
			dim[d] = b->shape.dim[d];
			continue;
		}
		dim[d] = size[d];
		if (size[d] < 0 || size[d] > b->shape.dim[d])
			code = err_set(err, ERR_INTERNAL, "dim %u of an array, of at most %lld, "
				       "is %d", d, (long long)b->shape.dim[d], size[d]);
	}
	return code;
}

int rt_buffer_unpadded(struct rt_buffer *b, const int64_t **dim, struct err *err)
{
	int64_t fetched[IMAGE_MAX_RANK];
	bool is_known;
	int code;

	if (!b->sizes) {
		*dim = b->shape.dim;
		return 0;
	}
	pthread_mutex_lock(&b->lock);
	is_known = b->is_unpadded_known;
	pthread_mutex_unlock(&b->lock);
	if (!is_known) {
		code = fetch_sizes(b, fetched, err);
		if (code)
			return code;
		pthread_mutex_lock(&b->lock);
		if (!b->is_unpadded_known)
			memcpy(b->unpadded, fetched, sizeof(fetched));
		b->is_unpadded_known = true;
		pthread_mutex_unlock(&b->lock);
	}
	*dim = b->unpadded;
	return 0;
}

/* ---- copies of what counts ---- */

/* Elements of `bytes` each: so many of each dim, the others' strides being in bytes. */
static void copy_dims(uint8_t *to, const int64_t *to_stride, const uint8_t *from,
		      const int64_t *from_stride, const int64_t *dim, unsigned rank, size_t bytes)
{
	if (!rank) {
		memcpy(to, from, bytes);
		return;
	}
	for (int64_t i = 0; i < *dim; i++)
		copy_dims(to + i * *to_stride, to_stride + 1, from + i * *from_stride,
			  from_stride + 1, dim + 1, rank - 1, bytes);
}

/* All of it, as it lies on the device; malloc'd. */
static int fetch_all(struct rt_buffer *b, uint8_t **out, struct err *err)
{
	uint64_t bytes = rt_shape_bytes(&b->shape);
	uint8_t *p = malloc(bytes + 1);
	struct rt_event *done;
	int code;

	if (!p)
		return err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory for %llu bytes",
			       (unsigned long long)bytes);
	code = rt_buffer_to_host(b, 0, p, bytes, &done, err);
	if (!code) {
		code = rt_event_wait(done, err);
		rt_event_unref(done);
	}
	if (code)
		free(p);
	else
		*out = p;
	return code;
}

int rt_buffer_to_host_unpadded(struct rt_buffer *b, void *dst, const int64_t *strides,
			       struct err *err)
{
	int64_t from[IMAGE_MAX_RANK];
	const int64_t *dim;
	uint8_t *all = NULL;
	int code = rt_buffer_unpadded(b, &dim, err);

	if (!code)
		code = fetch_all(b, &all, err);
	if (code)
		return code;
	rt_dense_strides(&b->shape, from);
	copy_dims(dst, strides, all, from, dim, b->shape.rank, elem_bytes(b->shape.elem));
	free(all);
	return 0;
}

/* ---- launches ---- */

/* An array that is shorter than `want`, which it fits, as one that is as long. */
static int padded(struct rt_buffer *b, const struct rt_shape *want, struct rt_buffer **out,
		  struct err *err)
{
	int64_t from[IMAGE_MAX_RANK], to[IMAGE_MAX_RANK];
	uint64_t bytes = rt_shape_bytes(want);
	uint8_t *all = NULL, *more = calloc(1, bytes + 1);
	int code = more ? fetch_all(b, &all, err) :
		   err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory");

	if (!code) {
		rt_dense_strides(&b->shape, from);
		rt_dense_strides(want, to);
		copy_dims(more, to, all, from, b->shape.dim, want->rank, elem_bytes(want->elem));
		code = rt_buffer_from_host(b->client, b->device, b->kind, want, more, to, out, err);
	}
	free(all);
	free(more);
	return code;
}

static int sizes_of_shape(struct rt_buffer *b, struct rt_buffer **out, struct err *err)
{
	const struct rt_shape shape = { .elem = ELEM_S32, .rank = 1, .dim = { b->shape.rank } };
	int32_t size[IMAGE_MAX_RANK];

	for (unsigned d = 0; d < b->shape.rank; d++)
		size[d] = (int32_t)b->shape.dim[d];
	return rt_buffer_from_host(b->client, b->device, RT_DEVICE, &shape, size, NULL, out, err);
}

/* Whether argument i, of the kind that the program takes, is no longer than it may be. */
static int check_bounds(const struct rt_buffer *b, const struct image_shape *want, unsigned i,
			struct err *err)
{
	for (unsigned d = 0; d < b->shape.rank; d++) {
		bool may_be_less = want->bounded >> d & 1;

		if (may_be_less ? b->shape.dim[d] > want->dim[d] : b->shape.dim[d] != want->dim[d])
			return err_set(err, ERR_INVALID_ARGUMENT, "dim %u of argument %u is %lld: "
				       "the program takes %s%lld", d, i,
				       (long long)b->shape.dim[d], may_be_less ? "at most " : "",
				       (long long)want->dim[d]);
		if (b->sizes && may_be_less && b->shape.dim[d] != want->dim[d])
			return err_set(err, ERR_INVALID_ARGUMENT, "dim %u of argument %u has a "
				       "bound of %lld: the program takes arrays with one of %lld, "
				       "or such as are as long as they say", d, i,
				       (long long)b->shape.dim[d], (long long)want->dim[d]);
	}
	return 0;
}

/* Argument i, which has bounds in the program: the array and its sizes. What is no array of the
 * kind at all is left to the launch to refuse. */
static int fit(struct rt_sized *s, const struct image_shape *want, unsigned i,
	       struct rt_buffer *b, struct rt_buffer **sizes, struct err *err)
{
	struct rt_buffer *made = NULL;
	struct rt_shape shape;
	int code;

	*sizes = b;
	if (b->shape.elem != want->elem || b->shape.rank != want->rank)
		return 0;
	code = check_bounds(b, want, i, err);
	if (!code && b->sizes) {
		*sizes = b->sizes;
		return 0;
	}
	if (!code)
		code = sizes_of_shape(b, sizes, err);
	if (code)
		return code;
	s->made[s->n_made++] = *sizes;
	rt_shape_of(want, &shape);
	shape.bounded = 0;
	if (!memcmp(shape.dim, b->shape.dim, shape.rank * sizeof(*shape.dim)))
		return 0;
	code = padded(b, &shape, &made, err);
	if (code)
		return code;
	s->in[i] = made;
	s->made[s->n_made++] = made;
	return 0;
}

int rt_sized_begin(const struct rt_exe *x, struct rt_buffer *const *args, size_t n_args,
		   const bool *keep, struct rt_sized *s, struct err *err)
{
	const struct image *im = x->image;
	uint32_t n_in = im->info.n_args, n_sizes = image_n_arg_sizes(im), at = n_in - n_sizes;
	int code = 0;

	*s = (struct rt_sized){ .n_args = n_in, .n_outs = im->info.n_results,
				.n_seen = im->info.n_results - image_n_result_sizes(im),
				.image = im };
	if (n_args != at)
		return err_set(err, ERR_INVALID_ARGUMENT, "%s takes %u arguments, not %zu",
			       image_string(im, im->info.name), at, n_args);
	s->in = calloc(n_in + 1u, sizeof(*s->in));
	s->out = calloc(s->n_outs + 1u, sizeof(*s->out));
	s->keep = calloc(n_in + 1u, sizeof(*s->keep));
	s->made = calloc(2 * (size_t)n_sizes + 1, sizeof(*s->made));
	if (!s->in || !s->out || !s->keep || !s->made)
		code = err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory");
	for (unsigned i = 0; !code && i < n_args; i++) {
		s->in[i] = args[i];
		s->keep[i] = keep && keep[i];
		if (im->shapes[i].bounded)
			code = fit(s, &im->shapes[i], i, args[i], &s->in[at++], err);
	}
	if (code)
		rt_sized_end(s, false, NULL);
	return code;
}

void rt_sized_end(struct rt_sized *s, bool has_run, struct rt_buffer **outs)
{
	unsigned at = s->n_seen;

	for (unsigned i = 0; has_run && i < s->n_seen; i++) {
		outs[i] = s->out[i];
		if (s->image->shapes[s->image->info.n_args + i].bounded)
			rt_buffer_give_sizes(outs[i], s->out[at++]);
	}
	for (unsigned i = s->n_seen; has_run && i < s->n_outs; i++)
		rt_buffer_unref(s->out[i]);
	while (s->n_made)
		rt_buffer_unref(s->made[--s->n_made]);
	free(s->in);
	free(s->out);
	free(s->keep);
	free(s->made);
}
