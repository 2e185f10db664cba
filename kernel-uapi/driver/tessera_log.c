/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The device's log pages. Telemetry is cached for a moment, so that readers cannot keep
 * queue 0 busy.
 */
#include "tessera_drv.h"

/* got: how many bytes of records of `unit` bytes there are; NULL: all must be. */
static int read_log(struct tessera_device *tdev, u16 page, void *out, size_t bytes,
		    size_t unit, size_t *got)
{
	struct tessera_request r = {
		.sqe = { .op = HW_LOG_PAGE, .id = page },
		.out = out, .out_bytes = bytes,
	};
	int ret = tessera_request(tdev, 0, &r);

	if (ret)
		return ret;
	/* What it did not write is what an earlier request left there. */
	if (r.value > bytes || r.value % unit || (!got && r.value != bytes)) {
		tessera_reset_begin(tdev, "a log page of a length that cannot be");
		return -ECANCELED;
	}
	if (got)
		*got = r.value;
	return 0;
}

/* 0: it was never read. */
static bool is_old(unsigned long time)
{
	return !time || time_after(jiffies, time + msecs_to_jiffies(TESSERA_PAGE_AGE_MS));
}

int tessera_page_read(struct tessera_device *tdev, struct hw_telemetry *t,
		      struct hw_ras *ras)
{
	int ret = 0;

	mutex_lock(&tdev->page_lock);
	if (is_old(tdev->page_time)) {
		ret = read_log(tdev, HW_LOG_TELEMETRY, &tdev->telemetry,
			       sizeof(tdev->telemetry), sizeof(tdev->telemetry), NULL);
		if (!ret)
			ret = read_log(tdev, HW_LOG_RAS, &tdev->ras, sizeof(tdev->ras),
				       sizeof(tdev->ras), NULL);
		if (!ret)
			tdev->page_time = jiffies | 1;
	}
	if (!ret && t)
		*t = tdev->telemetry;
	if (!ret && ras)
		*ras = tdev->ras;
	mutex_unlock(&tdev->page_lock);
	return ret;
}

int tessera_links_read(struct tessera_device *tdev, struct hw_link *out, unsigned int *n)
{
	size_t got = 0;
	int ret = 0;

	*n = 0;
	if (!tdev->identity.fabric)
		return 0;
	mutex_lock(&tdev->page_lock);
	if (is_old(tdev->links_time)) {
		ret = read_log(tdev, HW_LOG_LINKS, tdev->links, sizeof(tdev->links),
			       sizeof(*tdev->links), &got);
		if (!ret) {
			tdev->n_links = got / sizeof(*tdev->links);
			tdev->links_time = jiffies | 1;
		}
	}
	if (!ret) {
		*n = tdev->n_links;
		memcpy(out, tdev->links, *n * sizeof(*out));
	}
	mutex_unlock(&tdev->page_lock);
	return ret;
}

int tessera_queues_read(struct tessera_device *tdev, unsigned int *n)
{
	size_t got = 0;
	int ret;

	lockdep_assert_held(&tdev->fault_lock);
	ret = read_log(tdev, HW_LOG_QUEUES, tdev->queue_states, sizeof(tdev->queue_states),
		       sizeof(*tdev->queue_states), &got);
	*n = got / sizeof(*tdev->queue_states);
	return ret;
}

/* Fills tdev.faults, newest first. Under fault_lock. */
int tessera_faults_read(struct tessera_device *tdev, unsigned int *n)
{
	size_t got = 0;
	int ret;

	lockdep_assert_held(&tdev->fault_lock);
	ret = read_log(tdev, HW_LOG_FAULT, tdev->faults,
		       TESSERA_FAULT_RECORDS * sizeof(*tdev->faults),
		       sizeof(*tdev->faults), &got);
	*n = got / sizeof(*tdev->faults);
	return ret;
}
