/* SPDX-License-Identifier: Apache-2.0 */
/* What checks call: how they end, what they show, memory, numbers. */
#include "tests/conformance/conf.h"

#include <stdarg.h>

void conf_fail(struct conf *c, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vsnprintf(c->why, sizeof(c->why), format, ap);
	va_end(ap);
	longjmp(c->end, 1);
}

void not_applicable(struct conf *c, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vsnprintf(c->why, sizeof(c->why), format, ap);
	va_end(ap);
	c->is_not_applicable = true;
	longjmp(c->end, 1);
}

/* FNV-1a. */
void see(struct conf *c, const void *bytes, size_t n)
{
	const uint8_t *p = bytes;
	uint64_t h = c->n_seen ? c->digest : 0xcbf29ce484222325;

	for (size_t i = 0; i < n; i++)
		h = (h ^ p[i]) * 0x100000001b3;
	c->digest = h;
	c->n_seen += n;
}

int conf_open(struct conf *c)
{
	struct hal_options o = { .devices = c->devices };

	if (hal_create(&o, &c->hal, &c->err))
		return -1;
	if (hal_device_open(c->hal, 0, &c->dev, &c->err) ||
	    hal_device_info(c->hal, 0, &c->info, &c->err)) {
		hal_destroy(c->hal);
		c->hal = NULL;
		return -1;
	}
	c->compute = hal_device_queue(c->dev, HAL_QUEUE_COMPUTE);
	c->dma = hal_device_queue(c->dev, HAL_QUEUE_DMA);
	return 0;
}

void conf_close(struct conf *c)
{
	hal_destroy(c->hal);
	c->hal = NULL;
	c->dev = NULL;
}

struct hal_device *conf_open_other(struct conf *c, unsigned index)
{
	struct hal_device *d;

	if (index >= hal_device_count(c->hal))
		not_applicable(c, "%u device here", hal_device_count(c->hal));
	OK(c, hal_device_open(c->hal, index, &d, &c->err));
	return d;
}

struct hal_mem *conf_get_of(struct conf *c, struct hal_device *dev, enum hal_mem_kind kind,
			    uint64_t bytes)
{
	struct hal_mem *m;

	OK(c, hal_mem_alloc(dev, kind, bytes, "conformance", &m, &c->err));
	return m;
}

struct hal_mem *conf_get(struct conf *c, uint64_t bytes)
{
	return conf_get_of(c, c->dev, HAL_MEM_HBM, bytes);
}

void *conf_room(struct conf *c, size_t n)
{
	void *p = calloc(n ? n : 1, 1);

	if (!p)
		conf_fail(c, "out of host memory");
	return p;
}

/* splitmix64 */
uint64_t conf_random(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

uint8_t *conf_bytes(struct conf *c, size_t n, uint64_t seed)
{
	uint8_t *p = conf_room(c, n);

	for (size_t i = 0; i < n; i += 8) {
		uint64_t x = conf_random(&seed);

		memcpy(p + i, &x, n - i < 8 ? n - i : 8);
	}
	return p;
}
