/* SPDX-License-Identifier: Apache-2.0 */
/* Pages of HBM whose content is lost. Linked chips look at one another's, and their hosts must not
 * wait for one another: the lock is not the device's, which is held while a host is waited for. */
#include <stdlib.h>

#include "hal/sim/sim_internal.h"

#define MAX_POISONED 4096u	/* as DEVICE.md#ras says */

int sim_poison_add(struct sim_device *dev, uint64_t page)
{
	struct sim_poison *x = &dev->poison;
	uint64_t *grown = NULL;
	bool is_known = false;
	int status = 0;

	pthread_mutex_lock(&x->lock);
	for (unsigned i = 0; !is_known && i < x->n; i++)
		is_known = x->pages[i] == page;
	if (page % HW_PAGE || page >= dev->hbm_bytes)
		status = HW_ST_BAD_FIELD;
	else if (!is_known && x->n < MAX_POISONED)
		grown = realloc(x->pages, (x->n + 1) * sizeof(*grown));
	if (!status && !is_known && !grown)
		status = HW_ST_NO_ROOM;
	if (grown) {
		x->pages = grown;
		x->pages[x->n++] = page;
	}
	pthread_mutex_unlock(&x->lock);
	return status;
}

void sim_poison_clear(struct sim_device *dev)
{
	struct sim_poison *x = &dev->poison;

	pthread_mutex_lock(&x->lock);
	free(x->pages);
	x->pages = NULL;
	x->n = 0;
	pthread_mutex_unlock(&x->lock);
}

bool sim_is_poisoned(struct sim_device *dev, const uint8_t *p, uint64_t bytes)
{
	struct sim_poison *x = &dev->poison;
	uint64_t at = (uint64_t)(p - dev->hbm);
	bool is = false;

	if (!atomic_load(&x->n) || p < dev->hbm || at >= dev->hbm_bytes)
		return false;
	pthread_mutex_lock(&x->lock);
	for (unsigned i = 0; !is && i < x->n; i++)
		is = x->pages[i] < at + bytes && at < x->pages[i] + HW_PAGE;
	pthread_mutex_unlock(&x->lock);
	return is;
}

void sim_heal(struct sim_device *dev, const uint8_t *p, uint64_t bytes)
{
	struct sim_poison *x = &dev->poison;
	uint64_t at = (uint64_t)(p - dev->hbm);
	unsigned kept = 0;

	if (!atomic_load(&x->n) || p < dev->hbm || at >= dev->hbm_bytes)
		return;
	pthread_mutex_lock(&x->lock);
	for (unsigned i = 0; i < x->n; i++) {
		uint64_t page = x->pages[i];

		if (page < at || page + HW_PAGE > at + bytes)
			x->pages[kept++] = page;
	}
	x->n = kept;
	pthread_mutex_unlock(&x->lock);
}
