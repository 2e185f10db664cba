/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Addresses of the device: first fit, lowest first, in the ranges that the IOMMU has. Zero
 * is never given out, and nothing from 2^48 on, where contexts see HBM.
 */
#include "hal/bus/vfio.h"

#define LOWEST (1ull << 20)
#define LIMIT (1ull << 48)
#define LARGE ((uint64_t)2 << 20)	/* page of the IOMMU */

bool vfio_space_set(struct vfio_space *s, const struct vfio_range *range, unsigned n)
{
	s->n_ranges = 0;
	for (unsigned i = 0; i < n; i++) {
		struct vfio_range r = range[i];

		if (r.first > r.last || (i && r.first <= range[i - 1].last))
			return false;
		if (r.first < LOWEST)
			r.first = LOWEST;
		if (r.last >= LIMIT)
			r.last = LIMIT - 1;
		if (r.first < r.last && s->n_ranges < VFIO_MAX_RANGES)
			s->range[s->n_ranges++] = r;
	}
	return s->n_ranges > 0;
}

bool vfio_set_ranges(struct vfio_domain *d, const struct vfio_range *range, unsigned n)
{
	bool ok;

	pthread_mutex_lock(&d->lock);
	ok = vfio_space_set(&d->space, range, n);
	pthread_mutex_unlock(&d->lock);
	return ok;
}

/* The lowest address >= at that is good for host memory there. Large pages of the IOMMU
 * need the same offset in both. At most LIMIT + LARGE: no overflow. */
static uint64_t align(uint64_t at, uint64_t bytes, uint64_t host)
{
	uint64_t unit = bytes >= LARGE ? LARGE : VFIO_PAGE;
	uint64_t offset = host & (unit - 1) & ~(uint64_t)(VFIO_PAGE - 1);

	return at + ((offset - at) & (unit - 1));
}

/* The lowest fit in a range from `at` on; *link is where the area comes in the list. */
static bool fit(struct vfio_space *s, uint64_t at, uint64_t last, uint64_t bytes,
		uint64_t host, struct vfio_area ***link, uint64_t *out)
{
	for (*link = &s->areas; **link && (**link)->iova < at + bytes; *link = &(**link)->next)
		if ((**link)->iova + (**link)->bytes > at)
			at = align((**link)->iova + (**link)->bytes, bytes, host);
	*out = at;
	return at <= last && last - at >= bytes - 1;
}

int vfio_space_take(struct vfio_space *s, struct vfio_area *area, uint64_t bytes,
		    uint64_t host, struct err *err)
{
	struct vfio_area **link;
	bool found = false;
	uint64_t at;

	for (unsigned i = 0; !found && i < s->n_ranges && bytes <= LIMIT; i++)
		found = fit(s, align(s->range[i].first, bytes, host), s->range[i].last, bytes,
			    host, &link, &at);
	if (!found)
		return err_set(err, ERR_RESOURCE_EXHAUSTED, "the IOMMU has no free range of %llu "
			       "bytes for the device: map less at once, or unmap something",
			       (unsigned long long)bytes);
	*area = (struct vfio_area){ .next = *link, .iova = at, .bytes = bytes, .host = host };
	*link = area;
	return 0;
}

struct vfio_area *vfio_space_drop(struct vfio_space *s, uint64_t iova)
{
	struct vfio_area **link = &s->areas, *area;

	while (*link && (*link)->iova != iova)
		link = &(*link)->next;
	area = *link;
	if (area)
		*link = area->next;
	return area;
}

struct vfio_area *vfio_space_find(struct vfio_space *s, uint64_t host, uint64_t bytes)
{
	struct vfio_area *a = s->areas;

	while (a && (a->host != host || a->bytes != bytes))
		a = a->next;
	return a;
}
