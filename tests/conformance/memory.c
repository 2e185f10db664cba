/* SPDX-License-Identifier: Apache-2.0 */
/* Allocation: sizes, statistics, exhaustion, fragmentation, threads. */
#include <pthread.h>

#include "tests/conformance/conf.h"

static uint64_t padded(uint64_t bytes)
{
	return (bytes + HAL_MEM_ALIGN - 1) / HAL_MEM_ALIGN * HAL_MEM_ALIGN;
}

void check_blocks_of_any_size_are_aligned(struct conf *c)
{
	static const uint64_t sizes[] = { 1, 63, 64, 65, 127, 4095, 4096, 4097, 65536,
					  100003, 1 << 20, (1 << 20) + 1, 1500000 };

	for (int kind = HAL_MEM_HBM; kind <= HAL_MEM_HOST; kind++)
		for (size_t i = 0; i < COUNT(sizes); i++) {
			struct hal_mem *m = conf_get_of(c, c->dev, (enum hal_mem_kind)kind,
							sizes[i]);

			EXPECT(c, hal_mem_bytes(m) == sizes[i]);
			EXPECT(c, hal_mem_va(m) && hal_mem_va(m) % HAL_MEM_ALIGN == 0);
			EXPECT(c, hal_mem_kind(m) == (enum hal_mem_kind)kind);
			EXPECT(c, kind == HAL_MEM_HBM || hal_mem_host(m));
			hal_mem_free(m);
		}
	hal_mem_free(NULL);
}

void check_senseless_requests_are_refused(struct conf *c)
{
	struct hal_mem *m;

	REFUSED(c, ERR_INVALID_ARGUMENT, "0 bytes",
		hal_mem_alloc(c->dev, HAL_MEM_HBM, 0, "none", &m, &c->err));
	REFUSED(c, ERR_INVALID_ARGUMENT, "kind",
		hal_mem_alloc(c->dev, (enum hal_mem_kind)7, 64, "none", &m, &c->err));
}

void check_sizes_near_the_end_of_numbers_are_refused(struct conf *c)
{
	static const uint64_t sizes[] = { UINT64_MAX, UINT64_MAX - 62, UINT64_MAX - 63,
					  1ull << 63, (1ull << 63) - 1, 1ull << 47 };

	for (int kind = HAL_MEM_HBM; kind <= HAL_MEM_HOST; kind++)
		for (size_t i = 0; i < COUNT(sizes); i++) {
			struct hal_mem *m;

			REFUSED(c, ERR_RESOURCE_EXHAUSTED, "",
				hal_mem_alloc(c->dev, (enum hal_mem_kind)kind, sizes[i],
					      "vast", &m, &c->err));
		}
}

void check_all_of_memory_can_be_had(struct conf *c)
{
	struct hal_mem_stats s;
	struct hal_mem *all, *m;

	hal_mem_stats(c->dev, HAL_MEM_HBM, &s);
	EXPECT(c, s.largest_free_bytes == s.limit_bytes - s.bytes_in_use);
	all = conf_get(c, s.largest_free_bytes);
	REFUSED(c, ERR_RESOURCE_EXHAUSTED, "largest free block",
		hal_mem_alloc(c->dev, HAL_MEM_HBM, 1, "one more", &m, &c->err));
	hal_mem_stats(c->dev, HAL_MEM_HBM, &s);
	EXPECT(c, !s.largest_free_bytes && s.bytes_in_use == s.limit_bytes);
	hal_mem_free(all);
	m = conf_get(c, 1);
	hal_mem_free(m);
}

void check_the_last_bytes_hold_data(struct conf *c)
{
	struct hal_mem_stats s;
	struct hal_mem *all;
	uint8_t *x = conf_bytes(c, 4096, 11), *y = conf_room(c, 4096);

	hal_mem_stats(c->dev, HAL_MEM_HBM, &s);
	all = conf_get(c, s.largest_free_bytes);
	OK(c, hal_copy_in(all, s.largest_free_bytes - 4096, x, 4096, SOON, &c->err));
	OK(c, hal_copy_in(all, 0, x, 64, SOON, &c->err));
	OK(c, hal_copy_out(y, all, s.largest_free_bytes - 4096, 4096, SOON, &c->err));
	EXPECT(c, !memcmp(x, y, 4096));
	see(c, y, 4096);
	hal_mem_free(all);
	free(x);
	free(y);
}

void check_exhaustion_names_request_and_owners(struct conf *c)
{
	static const char *const tags[] = { "weights", "gradients", "optimizer",
					    "activations", "batch", "crumbs" };
	struct hal_mem *held[COUNT(tags)], *m;
	char want[64];

	for (size_t i = 0; i < COUNT(tags); i++)
		OK(c, hal_mem_alloc(c->dev, HAL_MEM_HBM, (6 - i) * 65536, tags[i], &held[i],
				    &c->err));
	REFUSED(c, ERR_RESOURCE_EXHAUSTED, "1099511627776 bytes",
		hal_mem_alloc(c->dev, HAL_MEM_HBM, 1ull << 40, "logits", &m, &c->err));
	EXPECT(c, strstr(c->err.msg, "\"logits\""));
	EXPECT(c, strstr(c->err.msg, c->info.bus_id));
	EXPECT(c, strstr(c->err.msg, "largest free block"));
	EXPECT(c, strstr(c->err.msg, "weights 393216 bytes in 1"));
	EXPECT(c, strstr(c->err.msg, "gradients 327680"));
	EXPECT(c, strstr(c->err.msg, "batch 131072"));
	EXPECT(c, !strstr(c->err.msg, "crumbs"));
	snprintf(want, sizeof(want), "of %llu", (unsigned long long)c->info.hbm_bytes);
	EXPECT(c, strstr(c->err.msg, want));
	for (size_t i = 0; i < COUNT(tags); i++)
		hal_mem_free(held[i]);
}

void check_statistics_follow_every_block(struct conf *c)
{
	struct hal_mem_stats before, s;
	struct hal_mem *a, *b;

	hal_mem_clear_peak(c->dev);
	hal_mem_stats(c->dev, HAL_MEM_HBM, &before);
	EXPECT(c, before.peak_bytes == before.bytes_in_use && !before.largest_alloc_bytes);
	a = conf_get(c, 1000);
	b = conf_get(c, 65537);
	hal_mem_stats(c->dev, HAL_MEM_HBM, &s);
	EXPECT(c, s.bytes_in_use == before.bytes_in_use + padded(1000) + padded(65537));
	EXPECT(c, s.n_allocs == before.n_allocs + 2);
	EXPECT(c, s.total_allocs == before.total_allocs + 2);
	EXPECT(c, s.peak_bytes == s.bytes_in_use);
	EXPECT(c, s.largest_alloc_bytes == 65537);
	hal_mem_free(b);
	hal_mem_stats(c->dev, HAL_MEM_HBM, &s);
	EXPECT(c, s.bytes_in_use == before.bytes_in_use + padded(1000));
	EXPECT(c, s.peak_bytes == before.bytes_in_use + padded(1000) + padded(65537));
	EXPECT(c, s.n_allocs == before.n_allocs + 1);
	EXPECT(c, s.total_allocs == before.total_allocs + 2);
	hal_mem_free(a);
}

void check_host_memory_is_counted_apart(struct conf *c)
{
	struct hal_mem_stats hbm, host, s;
	struct hal_mem *m;

	hal_mem_stats(c->dev, HAL_MEM_HBM, &hbm);
	hal_mem_stats(c->dev, HAL_MEM_HOST, &host);
	m = conf_get_of(c, c->dev, HAL_MEM_HOST, 5 << 20);
	hal_mem_stats(c->dev, HAL_MEM_HOST, &s);
	EXPECT(c, s.bytes_in_use == host.bytes_in_use + (5 << 20));
	EXPECT(c, s.n_allocs == host.n_allocs + 1);
	hal_mem_stats(c->dev, HAL_MEM_HBM, &s);
	EXPECT(c, s.bytes_in_use == hbm.bytes_in_use && s.n_allocs == hbm.n_allocs);
	memset(hal_mem_host(m), 0x5a, 5 << 20);
	hal_mem_free(m);
}

void check_fragmentation_is_told_and_heals(struct conf *c)
{
	enum { N = 64 };
	struct hal_mem *held[N], *m, *rest;
	struct hal_mem_stats s, before;

	hal_mem_stats(c->dev, HAL_MEM_HBM, &before);
	for (int i = 0; i < N; i++)
		held[i] = conf_get(c, 65536);
	hal_mem_stats(c->dev, HAL_MEM_HBM, &s);
	rest = conf_get(c, s.largest_free_bytes);
	for (int i = 0; i < N; i += 2)
		hal_mem_free(held[i]);
	hal_mem_stats(c->dev, HAL_MEM_HBM, &s);
	EXPECT(c, s.limit_bytes - s.bytes_in_use >= N / 2 * 65536);
	EXPECT(c, s.largest_free_bytes < s.limit_bytes - s.bytes_in_use);
	REFUSED(c, ERR_RESOURCE_EXHAUSTED, "largest free block",
		hal_mem_alloc(c->dev, HAL_MEM_HBM, s.largest_free_bytes + 1, "x", &m,
			      &c->err));
	m = conf_get(c, s.largest_free_bytes);
	hal_mem_free(m);
	for (int i = 1; i < N; i += 2)
		hal_mem_free(held[i]);
	hal_mem_free(rest);
	hal_mem_stats(c->dev, HAL_MEM_HBM, &s);
	EXPECT(c, s.largest_free_bytes == before.largest_free_bytes);
}

/* Each block is filled with what only it has; all are read in the end. */
void check_random_blocks_keep_their_contents(struct conf *c)
{
	enum { N = 100 };
	struct hal_mem *held[N] = { 0 };
	uint64_t seeds[N], random = 3;
	uint8_t *want, *got = conf_room(c, 65536);

	for (int i = 0; i < 2000; i++) {
		unsigned k = (unsigned)(conf_random(&random) % N);
		uint64_t bytes = 1 + conf_random(&random) % (i % 10 ? 2000 : 65536);

		seeds[k] = conf_random(&random);
		hal_mem_free(held[k]);
		held[k] = conf_get(c, bytes);
		want = conf_bytes(c, bytes, seeds[k]);
		OK(c, hal_copy_in(held[k], 0, want, bytes, SOON, &c->err));
		free(want);
	}
	for (int k = 0; k < N; k++) {
		uint64_t bytes = held[k] ? hal_mem_bytes(held[k]) : 0;

		if (!held[k])
			continue;
		want = conf_bytes(c, bytes, seeds[k]);
		OK(c, hal_copy_out(got, held[k], 0, bytes, SOON, &c->err));
		EXPECT(c, !memcmp(got, want, bytes));
		see(c, got, bytes);
		free(want);
		hal_mem_free(held[k]);
	}
	free(got);
}

void check_ten_thousand_small_blocks(struct conf *c)
{
	enum { N = 10000 };
	struct hal_mem **held = conf_room(c, N * sizeof(*held));
	struct hal_mem_stats before, s;

	hal_mem_stats(c->dev, HAL_MEM_HBM, &before);
	for (int i = 0; i < N; i++)
		held[i] = conf_get(c, 1 + (uint64_t)i % 64);
	hal_mem_stats(c->dev, HAL_MEM_HBM, &s);
	EXPECT(c, s.n_allocs == before.n_allocs + N);
	EXPECT(c, s.bytes_in_use == before.bytes_in_use + N * 64);
	for (int i = 0; i < N; i++)
		hal_mem_free(held[i * 7919 % N]);
	free(held);
}

struct allocator {
	struct conf *c;
	uint64_t seed;
	const char *wrong;
};

static void *allocate(void *arg)
{
	struct allocator *a = arg;
	struct hal_mem *held[16] = { 0 };
	uint64_t *at;

	for (int i = 0; i < 1000; i++) {
		unsigned k = (unsigned)(conf_random(&a->seed) % COUNT(held));
		uint64_t bytes = 8 + conf_random(&a->seed) % 20000;
		uint64_t mark = a->seed ^ k, got;

		if (held[k]) {
			at = (void *)&got;
			if (hal_copy_out(at, held[k], 0, 8, SOON, NULL) ||
			    got != hal_mem_va(held[k]))
				a->wrong = "a block holds what another thread wrote";
			hal_mem_free(held[k]);
			held[k] = NULL;
			continue;
		}
		if (hal_mem_alloc(a->c->dev, mark & 1 ? HAL_MEM_HBM : HAL_MEM_HOST, bytes,
				  "thread", &held[k], NULL)) {
			a->wrong = "no memory";
			break;
		}
		mark = hal_mem_va(held[k]);
		if (hal_copy_in(held[k], 0, &mark, 8, SOON, NULL))
			a->wrong = "a copy failed";
	}
	for (size_t k = 0; k < COUNT(held); k++)
		hal_mem_free(held[k]);
	return NULL;
}

void check_threads_allocate_at_once(struct conf *c)
{
	struct allocator a[4];
	pthread_t threads[4];

	for (uint64_t i = 0; i < 4; i++) {
		a[i] = (struct allocator){ c, i + 1, NULL };
		EXPECT(c, !pthread_create(&threads[i], NULL, allocate, &a[i]));
	}
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < 4; i++)
		if (a[i].wrong)
			conf_fail(c, "thread %d: %s", i, a[i].wrong);
}
