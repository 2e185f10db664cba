/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that is not ours: the caller's pages, mapped for every device. A mapping lives as
 * long as its user or a view on it wants it; a page is mapped once.
 */
#include <stdlib.h>
#include <unistd.h>

#include "runtime/rt_internal.h"

/* Under map_lock. */
static void drop(struct rt_client *c, struct rt_mapping *m)
{
	struct rt_mapping **link = &c->mappings;

	if (--m->refs)
		return;
	while (*link != m)
		link = &(*link)->next;
	*link = m->next;
	for (unsigned i = 0; i < c->n_devices; i++)
		hal_mem_free(m->mems[i]);
	free(m);
}

void rt_mapping_unref(struct rt_client *c, struct rt_mapping *m)
{
	if (!m)
		return;
	pthread_mutex_lock(&c->map_lock);
	drop(c, m);
	pthread_mutex_unlock(&c->map_lock);
}

/* Under map_lock. */
static int add(struct rt_client *c, void *data, uint64_t bytes, void *asked,
	       struct rt_mapping **out, struct err *err)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), at = (uintptr_t)data, end;
	struct rt_mapping *m;
	int code = 0;

	if (!data || !bytes || __builtin_add_overflow(at, bytes, &end) ||
	    end > UINTPTR_MAX - page)
		return err_set(err, ERR_INVALID_ARGUMENT, "%llu bytes at %p can't be mapped",
			       (unsigned long long)bytes, data);
	at -= at % page;
	end = (end + page - 1) / page * page;
	m = calloc(1, sizeof(*m) + c->n_devices * sizeof(*m->mems));
	if (!m)
		return err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory");
	m->host = (uint8_t *)at;
	m->bytes = end - at;
	m->asked = asked;
	m->refs = 1;
	for (unsigned i = 0; !code && i < c->n_devices; i++)
		code = hal_mem_map(c->devices[i].hal, m->host, m->bytes, &m->mems[i], err);
	m->next = c->mappings;
	c->mappings = m;
	if (code)
		drop(c, m);
	else
		*out = m;
	return code;
}

int rt_dma_map(struct rt_client *c, void *data, size_t bytes, struct err *err)
{
	struct rt_mapping *m;
	int code;

	pthread_mutex_lock(&c->map_lock);
	code = add(c, data, bytes, data, &m, err);
	pthread_mutex_unlock(&c->map_lock);
	return code;
}

int rt_dma_unmap(struct rt_client *c, void *data, struct err *err)
{
	struct rt_mapping *m;

	pthread_mutex_lock(&c->map_lock);
	for (m = c->mappings; m && !(data && m->asked == data); m = m->next)
		;
	if (m) {
		m->asked = NULL;
		drop(c, m);
	}
	pthread_mutex_unlock(&c->map_lock);
	return m ? 0 : err_set(err, ERR_NOT_FOUND, "no mapping was made for %p", data);
}

/* The mapping that holds all of [at, + bytes), with a reference, or NULL. */
static struct rt_mapping *find(struct rt_client *c, uintptr_t at, uint64_t bytes)
{
	struct rt_mapping *m;

	for (m = c->mappings; m; m = m->next) {
		uint64_t offset = at - (uintptr_t)m->host;

		if (at >= (uintptr_t)m->host && offset <= m->bytes &&
		    bytes <= m->bytes - offset)
			break;
	}
	if (m)
		m->refs++;
	return m;
}

int rt_mapping_reach(struct rt_client *c, unsigned device, enum rt_memory_kind kind,
		     void *pointer, uint64_t bytes, struct rt_storage *s, struct err *err)
{
	struct hal_device *hal = c->devices[device].hal;
	int code;

	pthread_mutex_lock(&c->map_lock);
	s->mapping = find(c, (uintptr_t)pointer, bytes);
	code = hal_mem_view(hal, (uintptr_t)pointer, bytes, &s->mem, err);
	if (code == ERR_NOT_FOUND && kind != RT_DEVICE && !s->mapping) {
		code = add(c, pointer, bytes, NULL, &s->mapping, err);
		if (!code)
			code = hal_mem_view(hal, (uintptr_t)pointer, bytes, &s->mem, err);
	}
	if (!code && (hal_mem_kind(s->mem) == HAL_MEM_HBM) != (kind == RT_DEVICE)) {
		code = err_set(err, ERR_INVALID_ARGUMENT, "%p is %s memory, the buffer is to "
			       "be of kind %s", pointer, hal_mem_kind(s->mem) == HAL_MEM_HBM ?
			       "device" : "host", rt_memory_kind_names[kind]);
		hal_mem_free(s->mem);
	}
	if (code && s->mapping)
		drop(c, s->mapping);
	pthread_mutex_unlock(&c->map_lock);
	return code;
}
