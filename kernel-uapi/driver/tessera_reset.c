/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * When the device is lost, and how it comes back. The function reset is the PCI
 * core's (FLR), so that it keeps and restores the configuration; our part is what
 * comes before (reset_prepare: stop, fail everything) and after (reset_done: bring
 * up). The same two serve a reset that somebody asks for in sysfs.
 *
 * Order before the reset: DMA ends, then fences are signalled, then doorbells and wake
 * pages are taken back, and from other devices what they have of HBM. A fence that is
 * signalled thus promises that the device no longer touches memory, whatever went wrong.
 *
 * The tick looks once a second for what no interrupt tells.
 */
#include <linux/delay.h>

#include <drm/drm_drv.h>
#include <drm/drm_file.h>
#include <drm/drm_print.h>

#include "tessera_drv.h"

#define TICK HZ
#define LOCK_TRIES 50		/* for the device's lock, 100 ms apart */
#define LINK_LIMIT (75 * HZ)	/* the PCI core waits for 60 s for what is behind a link */

void tessera_lose_all(struct tessera_device *tdev, enum tessera_state state)
{
	struct tessera_queue *q;
	unsigned int i;
	bool cookie = dma_fence_begin_signalling();

	mutex_lock(&tdev->admin.lock);
	WRITE_ONCE(tdev->state, state);
	WRITE_ONCE(tdev->generation, tdev->generation + 1);
	tessera_disable(tdev);
	mutex_unlock(&tdev->admin.lock);
	for (i = 0; i < TESSERA_VECTORS; i++) {
		struct tessera_vector *v = &tdev->vectors[i];

		mutex_lock(&v->lock);
		list_for_each_entry(q, &v->queues, vector_link)
			tessera_queue_lose(q);
		tessera_trace_wake(v);
		mutex_unlock(&v->lock);
	}
	dma_fence_end_signalling(cookie);
	tessera_bo_revoke_all(tdev);
	tessera_peer_revoke_all(tdev);
	wake_up_all(&tdev->state_wait);
}

static void set_state(struct tessera_device *tdev, enum tessera_state state)
{
	lockdep_assert_held(&tdev->admin.lock);
	WRITE_ONCE(tdev->state, state);
	wake_up_all(&tdev->state_wait);
}

/*
 * The uevent of drm_dev_wedged_event(), which sends it for the primary node: a device that has
 * an accel node has no other, and the kernel (6.15 to 7.2) follows a NULL pointer.
 */
static void tell_wedged(struct tessera_device *tdev)
{
	struct device *node = tdev->drm.accel ? tdev->drm.accel->kdev : NULL;
	char *env[] = { "WEDGED=rebind", NULL };

	if (node && device_is_registered(node))
		kobject_uevent_env(&node->kobj, KOBJ_CHANGE, env);
}

static void wedge(struct tessera_device *tdev, const char *why, int error)
{
	drm_err(&tdev->drm, "%s (%d): the device is out of use until the driver is bound again\n",
		why, error);
	tessera_lose_all(tdev, TESSERA_WEDGED);
	tell_wedged(tdev);
}

static void prepare(struct pci_dev *pdev)
{
	struct tessera_device *tdev = pci_get_drvdata(pdev);

	if (READ_ONCE(tdev->state) == TESSERA_GONE)
		return;
	tessera_dump(tdev, tdev->reset_reason ? tdev->reset_reason :
		     "asked for from outside", NULL);
	tessera_lose_all(tdev, TESSERA_RESETTING);
}

static void done(struct pci_dev *pdev)
{
	struct tessera_device *tdev = pci_get_drvdata(pdev);
	int ret;

	if (READ_ONCE(tdev->state) == TESSERA_GONE)
		return;
	mutex_lock(&tdev->admin.lock);
	tdev->reset_reason = NULL;
	tdev->link_deadline = 0;
	ret = tessera_bring_up(tdev);
	if (!ret) {
		atomic64_inc(&tdev->function_resets);
		pci_save_state(pdev);	/* for slot_reset() */
		set_state(tdev, TESSERA_RUNNING);
	}
	mutex_unlock(&tdev->admin.lock);
	if (ret)
		wedge(tdev, "the device did not come back from a function reset", ret);
	else
		drm_info(&tdev->drm, "the device is back after a function reset\n");
}

/*
 * An error on the link (AER). One that is not fatal may have damaged what was on its way to or from
 * any context, and nobody can say which: everything ends, as in a function reset, and the link's
 * reset brings the device back. If that fails 7.2 says so and 6.12 does not: the tick looks.
 */
static pci_ers_result_t error_detected(struct pci_dev *pdev, pci_channel_state_t state)
{
	struct tessera_device *tdev = pci_get_drvdata(pdev);

	if (READ_ONCE(tdev->state) == TESSERA_GONE)
		return PCI_ERS_RESULT_DISCONNECT;
	if (state == pci_channel_io_perm_failure) {
		wedge(tdev, "the PCI core gave the link up", -EIO);
		return PCI_ERS_RESULT_DISCONNECT;
	}
	tessera_dump(tdev, "an error on the PCI link", NULL);
	/* 0 is none. */
	WRITE_ONCE(tdev->link_deadline, (jiffies + LINK_LIMIT) | 1);
	tessera_lose_all(tdev, TESSERA_RESETTING);
	return PCI_ERS_RESULT_NEED_RESET;
}

static pci_ers_result_t slot_reset(struct pci_dev *pdev)
{
	struct tessera_device *tdev = pci_get_drvdata(pdev);

	pci_restore_state(pdev);
	done(pdev);
	return READ_ONCE(tdev->state) == TESSERA_RUNNING ? PCI_ERS_RESULT_RECOVERED :
	       PCI_ERS_RESULT_DISCONNECT;
}

const struct pci_error_handlers tessera_err_handlers = {
	.error_detected = error_detected,
	.slot_reset = slot_reset,
	.reset_prepare = prepare,
	.reset_done = done,
};

static bool is_resetting(struct tessera_device *tdev)
{
	return READ_ONCE(tdev->state) == TESSERA_RESETTING;
}

static void reset_work(struct work_struct *work)
{
	struct tessera_device *tdev = container_of(work, struct tessera_device, reset_work);
	int ret = -EAGAIN, i;

	/* The reset of the link may have cleared the configuration that this one would keep. */
	if (tdev->is_link_lost)
		pci_restore_state(tdev->pdev);
	tdev->is_link_lost = false;
	/* Whoever holds the device's lock may be about to unbind us: do not insist. */
	for (i = 0; i < LOCK_TRIES; i++) {
		/* Somebody else's reset may have come first; then all is well. */
		if (!is_resetting(tdev))
			return;
		ret = pci_try_reset_function(tdev->pdev);
		if (ret != -EAGAIN)
			break;
		msleep(100);
	}
	/* After one that succeeded it is the next that has begun, and its work is queued. */
	if (ret && is_resetting(tdev))
		wedge(tdev, "the function reset failed", ret);
}

/* Whether the PCI core has had its time to reset the link: then our own reset has to do. */
static void check_link(struct tessera_device *tdev)
{
	unsigned long deadline = READ_ONCE(tdev->link_deadline);

	if (!deadline || !is_resetting(tdev) || time_before(jiffies, deadline))
		return;
	WRITE_ONCE(tdev->link_deadline, 0);
	tdev->is_link_lost = true;
	drm_err(&tdev->drm, "the PCI core has not reset the link: resetting the function\n");
	queue_work(tdev->wq, &tdev->reset_work);
}

static void tick(struct work_struct *work)
{
	struct tessera_device *tdev = container_of(to_delayed_work(work),
						   struct tessera_device, tick);
	struct tessera_queue *q;
	unsigned int i;
	bool cookie;
	u32 status;
	int idx;

	if (!drm_dev_enter(&tdev->drm, &idx))
		return;
	cookie = dma_fence_begin_signalling();
	if (READ_ONCE(tdev->state) == TESSERA_RUNNING) {
		status = tessera_read(tdev, HW_REG_STATUS);
		if (status == ~0u)
			tessera_reset_begin(tdev, "the device does not answer");
		else if (status & HW_STATUS_FATAL)
			tessera_reset_begin(tdev, "fatal state");
	}
	for (i = 0; i < TESSERA_VECTORS; i++) {
		struct tessera_vector *v = &tdev->vectors[i];

		mutex_lock(&v->lock);
		list_for_each_entry(q, &v->queues, vector_link)
			tessera_queue_check(q);
		tessera_trace_wake(v);
		mutex_unlock(&v->lock);
	}
	dma_fence_end_signalling(cookie);
	check_link(tdev);
	drm_dev_exit(idx);
	queue_delayed_work(tdev->wq, &tdev->tick, TICK);
}

void tessera_reset_init(struct tessera_device *tdev)
{
	INIT_WORK(&tdev->reset_work, reset_work);
	INIT_DELAYED_WORK(&tdev->tick, tick);
	tessera_dump_init(tdev);
}

void tessera_reset_start(struct tessera_device *tdev)
{
	queue_delayed_work(tdev->wq, &tdev->tick, TICK);
}

/* After GONE is set and the device is unplugged: nothing begins any more. */
void tessera_reset_fini(struct tessera_device *tdev)
{
	cancel_delayed_work_sync(&tdev->tick);
	cancel_work_sync(&tdev->reset_work);
	tessera_dump_fini(tdev);
}
