/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the device can do now: waiting until a reset is over, and how one begins. Below
 * everything that notices that the device is lost; tessera_reset.c does the reset.
 */
#include <drm/drm_print.h>

#include "tessera_drv.h"

static bool is_settled(struct tessera_device *tdev)
{
	enum tessera_state state = READ_ONCE(tdev->state);

	return state != TESSERA_RESET_DUE && state != TESSERA_RESETTING &&
	       state != TESSERA_STARTING;
}

static int settled(struct tessera_device *tdev)
{
	return READ_ONCE(tdev->state) == TESSERA_RUNNING ? 0 : -ENODEV;
}

int tessera_settle(struct tessera_device *tdev)
{
	wait_event(tdev->state_wait, is_settled(tdev));
	return settled(tdev);
}

int tessera_settle_interruptible(struct tessera_device *tdev)
{
	int ret = wait_event_interruptible(tdev->state_wait, is_settled(tdev));

	return ret ? -EINTR : settled(tdev);
}

void tessera_reset_begin(struct tessera_device *tdev, const char *reason)
{
	/* RUNNING ends here and, under admin.lock, in tessera_lose_all(). */
	if (cmpxchg(&tdev->state, TESSERA_RUNNING, TESSERA_RESET_DUE) != TESSERA_RUNNING)
		return;
	tdev->reset_reason = reason;
	drm_err(&tdev->drm, "%s: resetting the function\n", reason);
	queue_work(tdev->wq, &tdev->reset_work);
}
