/* SPDX-License-Identifier: Apache-2.0 */
/* Copies by hand and on queues: awkward sizes, strides, directions, ranges. */
#include "tests/conformance/conf.h"

static const uint64_t awkward[] = { 1, 2, 3, 7, 8, 9, 31, 63, 64, 65, 127, 511, 4095, 4096,
				    4097, 65535, 65537, 262147 };
#define MOST 262147u

void check_host_round_trips_of_awkward_sizes(struct conf *c)
{
	struct hal_mem *m = conf_get(c, MOST + 64);
	uint8_t *x = conf_bytes(c, MOST, 1), *y = conf_room(c, MOST);

	for (size_t i = 0; i < COUNT(awkward); i++)
		for (uint64_t at = 0; at < 64; at += 21) {
			uint64_t n = awkward[i];

			OK(c, hal_copy_in(m, at, x + MOST - n, n, SOON, &c->err));
			memset(y, 0, n);
			OK(c, hal_copy_out(y, m, at, n, SOON, &c->err));
			EXPECT(c, !memcmp(y, x + MOST - n, n));
			see(c, y, n);
		}
	hal_mem_free(m);
	free(x);
	free(y);
}

/* What a copy leaves must be the bytes copied and nothing beside them. */
static void copy_and_compare(struct conf *c, struct hal_queue *q, struct hal_mem *dst,
			     struct hal_mem *src, const uint8_t *model_src,
			     uint8_t *model_dst, uint64_t seed)
{
	uint8_t *got = conf_room(c, MOST + 128);
	uint64_t value;

	for (size_t i = 0; i < COUNT(awkward); i++) {
		uint64_t n = awkward[i];
		uint64_t from = conf_random(&seed) % 128, to = conf_random(&seed) % 128;

		OK(c, hal_queue_copy(q, dst, to, src, from, n, NULL, 0, &value, &c->err));
		OK(c, hal_queue_wait(q, value, SOON, &c->err));
		memcpy(model_dst + to, model_src + from, n);
		OK(c, hal_copy_out(got, dst, 0, MOST + 128, SOON, &c->err));
		EXPECT(c, !memcmp(got, model_dst, MOST + 128));
	}
	see(c, got, MOST + 128);
	free(got);
}

static void copy_between(struct conf *c, struct hal_queue *q, enum hal_mem_kind to,
			 enum hal_mem_kind from)
{
	struct hal_mem *src = conf_get_of(c, c->dev, from, MOST + 128);
	struct hal_mem *dst = conf_get_of(c, c->dev, to, MOST + 128);
	uint8_t *x = conf_bytes(c, MOST + 128, 2), *y = conf_bytes(c, MOST + 128, 3);

	OK(c, hal_copy_in(src, 0, x, MOST + 128, SOON, &c->err));
	OK(c, hal_copy_in(dst, 0, y, MOST + 128, SOON, &c->err));
	copy_and_compare(c, q, dst, src, x, y, 4);
	hal_mem_free(src);
	hal_mem_free(dst);
	free(x);
	free(y);
}

void check_copies_from_device_to_device(struct conf *c)
{
	copy_between(c, c->dma, HAL_MEM_HBM, HAL_MEM_HBM);
}

void check_copies_from_host_to_device(struct conf *c)
{
	copy_between(c, c->dma, HAL_MEM_HBM, HAL_MEM_HOST);
}

void check_copies_from_device_to_host(struct conf *c)
{
	copy_between(c, c->dma, HAL_MEM_HOST, HAL_MEM_HBM);
}

void check_copies_from_host_to_host(struct conf *c)
{
	copy_between(c, c->dma, HAL_MEM_HOST, HAL_MEM_HOST);
}

void check_copies_on_the_compute_queue(struct conf *c)
{
	copy_between(c, c->compute, HAL_MEM_HBM, HAL_MEM_HOST);
}

void check_a_large_copy(struct conf *c)
{
	uint64_t n = (9 << 20) + 13, value;
	struct hal_mem *a = conf_get(c, n), *b = conf_get(c, n);
	struct hal_mem *h = conf_get_of(c, c->dev, HAL_MEM_HOST, n);
	uint8_t *x = conf_bytes(c, n, 5), *y = conf_room(c, n);

	OK(c, hal_copy_in(a, 0, x, n, SOON, &c->err));
	OK(c, hal_queue_copy(c->dma, b, 0, a, 0, n, NULL, 0, &value, &c->err));
	OK(c, hal_queue_copy(c->dma, h, 0, b, 0, n, NULL, 0, &value, &c->err));
	OK(c, hal_queue_wait(c->dma, value, SOON, &c->err));
	EXPECT(c, !memcmp(hal_mem_host(h), x, n));
	OK(c, hal_copy_out(y, b, 0, n, SOON, &c->err));
	EXPECT(c, !memcmp(x, y, n));
	see(c, y + n - 4096, 4096);
	hal_mem_free(a);
	hal_mem_free(b);
	hal_mem_free(h);
	free(x);
	free(y);
}

void check_copies_past_the_end_are_refused(struct conf *c)
{
	struct hal_mem *m = conf_get(c, 1000), *n = conf_get(c, 2000);
	static const uint64_t bad[][2] = { { 1000, 1 }, { 999, 2 }, { 0, 1001 },
		{ UINT64_MAX, 1 }, { 1, UINT64_MAX }, { UINT64_MAX, UINT64_MAX },
		{ 1001, 0 }, { 64, UINT64_MAX - 63 } };
	uint64_t value, before = 0;
	char byte[1];

	OK(c, hal_queue_copy(c->dma, m, 0, n, 0, 1000, NULL, 0, &before, &c->err));
	for (size_t i = 0; i < COUNT(bad); i++) {
		uint64_t at = bad[i][0], bytes = bad[i][1];

		REFUSED(c, ERR_OUT_OF_RANGE, "1000",
			hal_copy_in(m, at, byte, bytes, SOON, &c->err));
		REFUSED(c, ERR_OUT_OF_RANGE, "1000",
			hal_copy_out(byte, m, at, bytes, SOON, &c->err));
		REFUSED(c, ERR_OUT_OF_RANGE, "1000", hal_queue_copy(c->dma, m, at, n, 0,
			bytes, NULL, 0, &value, &c->err));
		REFUSED(c, ERR_OUT_OF_RANGE, "", hal_queue_copy(c->dma, n, 0, m, at, bytes,
			NULL, 0, &value, &c->err));
		REFUSED(c, ERR_OUT_OF_RANGE, "1000", hal_queue_fill(c->dma, m, at, bytes, 0,
			&value, &c->err));
	}
	/* None of them took a number; the HAL itself may have taken some. */
	OK(c, hal_queue_copy(c->dma, m, 0, n, 0, 0, NULL, 0, &value, &c->err));
	EXPECT(c, value > before && value <= before + 4);
	OK(c, hal_queue_wait(c->dma, value, SOON, &c->err));
	hal_mem_free(m);
	hal_mem_free(n);
}

void check_empty_copies_do_nothing(struct conf *c)
{
	struct hal_mem *m = conf_get(c, 64);
	uint8_t *x = conf_bytes(c, 64, 6), y[64];
	uint64_t value;

	OK(c, hal_copy_in(m, 0, x, 64, SOON, &c->err));
	OK(c, hal_copy_in(m, 64, NULL, 0, SOON, &c->err));
	OK(c, hal_copy_out(NULL, m, 64, 0, SOON, &c->err));
	OK(c, hal_queue_copy(c->dma, m, 64, m, 0, 0, NULL, 0, &value, &c->err));
	OK(c, hal_queue_fill(c->dma, m, 64, 0, 1, &value, &c->err));
	OK(c, hal_queue_wait(c->dma, value, SOON, &c->err));
	OK(c, hal_copy_out(y, m, 0, 64, SOON, &c->err));
	see(c, y, 64);
	hal_mem_free(m);
	free(x);
}

/* A destination within the source repeats its start, as copying ascending does. */
void check_overlapping_copies_ascend(struct conf *c)
{
	struct hal_mem *m = conf_get(c, 10000);
	uint8_t *x = conf_bytes(c, 10000, 7), *y = conf_room(c, 10000);
	uint64_t value;

	for (uint64_t step = 1; step < 300; step = step * 3 + 1) {
		OK(c, hal_copy_in(m, 0, x, 10000, SOON, &c->err));
		OK(c, hal_queue_copy(c->dma, m, step, m, 0, 8000, NULL, 0, &value, &c->err));
		OK(c, hal_queue_copy(c->dma, m, 9100, m, 9100 + step, 500, NULL, 0, &value,
				     &c->err));
		OK(c, hal_queue_wait(c->dma, value, SOON, &c->err));
		OK(c, hal_copy_out(y, m, 0, 10000, SOON, &c->err));
		for (uint64_t i = step; i < 8000 + step; i++)
			EXPECT(c, y[i] == y[i - step]);
		EXPECT(c, !memcmp(y + 9100, x + 9100 + step, 500));
		see(c, y, 10000);
	}
	hal_mem_free(m);
	free(x);
	free(y);
}

void check_fills_repeat_a_pattern(struct conf *c)
{
	static const uint64_t ranges[][2] = { { 0, 8 }, { 1, 7 }, { 3, 20 }, { 64, 1 },
		{ 8, 4096 }, { 4095, 4099 }, { 13, 65537 } };
	struct hal_mem *m = conf_get(c, 70000);
	uint8_t *want = conf_room(c, 70000), *got = conf_room(c, 70000);
	uint64_t value, pattern = 0x0807060504030201;

	OK(c, hal_queue_fill(c->dma, m, 0, 70000, 0, &value, &c->err));
	OK(c, hal_queue_wait(c->dma, value, SOON, &c->err));
	for (size_t i = 0; i < COUNT(ranges); i++) {
		pattern += 0x1010101010101010;
		OK(c, hal_queue_fill(i & 1 ? c->dma : c->compute, m, ranges[i][0],
				     ranges[i][1], pattern, &value, &c->err));
		OK(c, hal_queue_wait(i & 1 ? c->dma : c->compute, value, SOON, &c->err));
		for (uint64_t k = 0; k < ranges[i][1]; k++)
			want[ranges[i][0] + k] = (uint8_t)(pattern >> k % 8 * 8);
	}
	OK(c, hal_copy_out(got, m, 0, 70000, SOON, &c->err));
	EXPECT(c, !memcmp(got, want, 70000));
	see(c, got, 70000);
	hal_mem_free(m);
	free(want);
	free(got);
}

/* ---- rows ---- */

static const struct hw_copy_2d shapes[] = {
	/* row_bytes, rows, planes; strides of source and destination */
	{ 0, 0, 1, 1, 1, 0, 0, 0, 0 },
	{ 0, 0, 100, 7, 1, 128, 100, 0, 0 },
	{ 0, 0, 3, 50, 4, 16, 3, 1000, 150 },
	{ 0, 0, 64, 9, 3, -64, 64, 2048, 640 },
	{ 0, 0, 17, 11, 5, 0, 17, 40, 187 },
	{ 0, 0, 0, 5, 5, 3, 3, 3, 3 },
	{ 0, 0, 4096, 3, 2, 4100, 4096, 20000, 12288 },
};

static void copy_rows(const struct hw_copy_2d *r, uint8_t *dst, const uint8_t *src)
{
	for (uint64_t p = 0; p < r->planes; p++)
		for (uint64_t i = 0; i < r->rows; i++)
			memcpy(dst + (int64_t)p * r->dst_plane + (int64_t)i * r->dst_row,
			       src + (int64_t)p * r->src_plane + (int64_t)i * r->src_row,
			       r->row_bytes);
}

void check_copies_of_rows_and_planes(struct conf *c)
{
	enum { N = 65536, AT = 2000 };
	struct hal_mem *a = conf_get(c, N), *b = conf_get_of(c, c->dev, HAL_MEM_HOST, N);
	uint8_t *x = conf_bytes(c, N, 8), *y = conf_room(c, N), *got = conf_room(c, N);
	uint64_t value;

	OK(c, hal_copy_in(a, 0, x, N, SOON, &c->err));
	memset(hal_mem_host(b), 0, N);
	for (size_t i = 0; i < COUNT(shapes); i++) {
		struct hw_copy_2d r = shapes[i];

		r.src = hal_mem_va(a) + AT;
		r.dst = hal_mem_va(b) + AT;
		OK(c, hal_queue_copy_2d(c->dma, &r, NULL, 0, &value, &c->err));
		OK(c, hal_queue_wait(c->dma, value, SOON, &c->err));
		copy_rows(&r, y + AT, x + AT);
		OK(c, hal_copy_out(got, b, 0, N, SOON, &c->err));
		EXPECT(c, !memcmp(got, y, N));
		see(c, got, N);
	}
	hal_mem_free(a);
	hal_mem_free(b);
	free(x);
	free(y);
	free(got);
}

void check_rows_that_make_no_sense_fault(struct conf *c)
{
	struct hal_mem *m = conf_get(c, 4096);
	struct hw_copy_2d r = { hal_mem_va(m), hal_mem_va(m) + 2048, 64, 4, 1, 64, 64, 0, 0 };
	struct hw_copy_2d bad[5];
	uint64_t value;

	for (size_t i = 0; i < COUNT(bad); i++)
		bad[i] = r;
	bad[0].rows = 0;
	bad[1].planes = 0;
	bad[2].rows = 1ull << 62;
	bad[3].src = 0x10;
	bad[4].dst_row = INT64_MIN;
	for (size_t i = 0; i < COUNT(bad); i++) {
		OK(c, hal_queue_copy_2d(c->dma, &bad[i], NULL, 0, &value, &c->err));
		REFUSED(c, ERR_INVALID_ARGUMENT, "",
			hal_queue_wait(c->dma, value, SOON, &c->err));
		OK(c, hal_queue_copy_2d(c->dma, &r, NULL, 0, &value, &c->err));
		OK(c, hal_queue_wait(c->dma, value, SOON, &c->err));
	}
	hal_mem_free(m);
}

/* ---- strides ---- */

struct strided {
	unsigned rank, elem_bytes;
	int64_t dim[4], stride[4], at;
};

static const struct strided arrays[] = {
	{ 0, 8, { 0 }, { 0 }, 0 },
	{ 1, 1, { 1000 }, { 1 }, 0 },
	{ 1, 4, { 100 }, { 12 }, 0 },
	{ 1, 2, { 100 }, { -2 }, 198 },
	{ 1, 16, { 33 }, { 0 }, 64 },
	{ 2, 4, { 5, 6 }, { -4, 20 }, 16 },
	{ 2, 3, { 7, 9 }, { 27, 3 }, 0 },
	{ 2, 8, { 16, 16 }, { 8, 128 }, 0 },
	{ 3, 4, { 3, 1, 50 }, { 400, 77, 4 }, 0 },
	{ 3, 4, { 4, 0, 5 }, { 4, 4, 4 }, 0 },
	{ 4, 5, { 3, 4, 5, 6 }, { 600, -150, 30, 5 }, 450 },
	{ 4, 1, { 6, 5, 4, 3 }, { 1, 6, 30, 120 }, 0 },
};

static void gather(const struct strided *s, unsigned d, const uint8_t *from, uint8_t **to)
{
	if (d == s->rank) {
		memcpy(*to, from, s->elem_bytes);
		*to += s->elem_bytes;
		return;
	}
	for (int64_t i = 0; i < s->dim[d]; i++)
		gather(s, d + 1, from + i * s->stride[d], to);
}

void check_strided_arrays_go_in(struct conf *c)
{
	struct hal_mem *m = conf_get(c, 8192);
	uint8_t *x = conf_bytes(c, 8192, 9), *want = conf_room(c, 8192);
	uint8_t *got = conf_room(c, 8192);

	for (size_t i = 0; i < COUNT(arrays); i++) {
		const struct strided *s = &arrays[i];
		struct hal_strided shape = { s->rank, s->elem_bytes, s->dim, s->stride, false };
		uint8_t *end = want;

		gather(s, 0, x + s->at, &end);
		OK(c, hal_copy_in_strided(m, 3, x + s->at, &shape, SOON, &c->err));
		OK(c, hal_copy_out(got, m, 3, (uint64_t)(end - want), SOON, &c->err));
		EXPECT(c, !memcmp(got, want, (size_t)(end - want)));
		see(c, got, (size_t)(end - want));
	}
	hal_mem_free(m);
	free(x);
	free(want);
	free(got);
}

/* Bytes of `got` as those of `from` should have become, what is around them as it was. */
static void expect_truth(struct conf *c, const uint8_t *got, const uint8_t *from, size_t n)
{
	for (size_t i = 0; i < n; i++)
		EXPECT(c, got[i] == (from[i] != 0));
	EXPECT(c, got[n] == 0xee);
	see(c, got, n);
}

void check_truth_values_go_in_as_0_or_1(struct conf *c)
{
	struct hal_mem *m = conf_get(c, 8192);
	uint8_t *x = conf_bytes(c, 8192, 11), *flat = conf_room(c, 8192);
	uint8_t *got = conf_room(c, 8192), *rest = conf_room(c, 8192);

	memset(rest, 0xee, 8192);
	for (size_t i = 0; i < 8192; i += 3)
		x[i] = i % 2;
	for (size_t n = 0; n < 300; n += n < 130 ? 1 : 50) {
		OK(c, hal_copy_in(m, 0, rest, 8192, SOON, &c->err));
		OK(c, hal_copy_in_elems(m, 5, x + 3, n, true, SOON, &c->err));
		OK(c, hal_copy_out(got, m, 4, n + 2, SOON, &c->err));
		EXPECT(c, got[0] == 0xee);
		expect_truth(c, got + 1, x + 3, n);
	}
	OK(c, hal_copy_in_elems(m, 5, x, 100, false, SOON, &c->err));
	OK(c, hal_copy_out(got, m, 5, 100, SOON, &c->err));
	EXPECT(c, !memcmp(got, x, 100));
	for (size_t i = 0; i < COUNT(arrays); i++) {
		const struct strided *s = &arrays[i];
		struct hal_strided shape = { s->rank, s->elem_bytes, s->dim, s->stride, true };
		uint8_t *end = flat;

		if (s->elem_bytes != 1)
			continue;
		gather(s, 0, x + s->at, &end);
		OK(c, hal_copy_in(m, 0, rest, 8192, SOON, &c->err));
		OK(c, hal_copy_in_strided(m, 3, x + s->at, &shape, SOON, &c->err));
		OK(c, hal_copy_out(got, m, 3, (uint64_t)(end - flat) + 1, SOON, &c->err));
		expect_truth(c, got, flat, (size_t)(end - flat));
	}
	hal_mem_free(m);
	free(x);
	free(flat);
	free(got);
	free(rest);
}

/* There and back: what is gathered again from where it was put is the same. */
void check_strided_arrays_come_out(struct conf *c)
{
	struct hal_mem *m = conf_get(c, 8192);
	uint8_t *x = conf_bytes(c, 8192, 10), *y = conf_room(c, 8192);
	uint8_t *want = conf_room(c, 8192);

	OK(c, hal_copy_in(m, 0, x, 8192, SOON, &c->err));
	for (size_t i = 0; i < COUNT(arrays); i++) {
		const struct strided *s = &arrays[i];
		struct hal_strided shape = { s->rank, s->elem_bytes, s->dim, s->stride, false };
		uint8_t *end = want;

		memset(y, 0, 8192);
		OK(c, hal_copy_out_strided(y + s->at, m, 5, &shape, SOON, &c->err));
		gather(s, 0, y + s->at, &end);
		EXPECT(c, i == 4 || !memcmp(x + 5, want, (size_t)(end - want)));
		see(c, y, 8192);
	}
	hal_mem_free(m);
	free(x);
	free(y);
	free(want);
}

void check_strides_without_sense_are_refused(struct conf *c)
{
	struct hal_mem *m = conf_get(c, 64);
	int64_t dim[40], stride[40];
	uint8_t x[64] = { 0 };
	struct hal_strided bad[] = { { 1, 0, dim, stride, false }, { 1, 17, dim, stride, false },
				     { 33, 1, dim, stride, false }, { 2, 1, dim, stride, false } };

	for (int i = 0; i < 40; i++)
		dim[i] = stride[i] = 1;
	dim[1] = -1;
	for (size_t i = 0; i < COUNT(bad); i++)
		REFUSED(c, ERR_INVALID_ARGUMENT, "strided copy",
			hal_copy_in_strided(m, 0, x, &bad[i], SOON, &c->err));
	dim[0] = dim[1] = 1ll << 40;
	REFUSED(c, ERR_INVALID_ARGUMENT, "strided copy",
		hal_copy_out_strided(x, m, 0, &bad[3], SOON, &c->err));
	dim[0] = 65;
	dim[1] = 1;
	REFUSED(c, ERR_OUT_OF_RANGE, "64",
		hal_copy_in_strided(m, 0, x, &bad[3], SOON, &c->err));
	hal_mem_free(m);
}
