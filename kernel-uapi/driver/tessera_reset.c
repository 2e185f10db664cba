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

static bool is_due(struct tessera_device *tdev)
{
	return READ_ONCE(tdev->state) == TESSERA_RESET_DUE;
}

static bool is_over(struct tessera_device *tdev)
{
	return READ_ONCE(tdev->state) >= TESSERA_WEDGED;
}

/* due: only if a reset is still due, of that generation; 0: whatever there is. */
static bool begin_loss(struct tessera_device *tdev, enum tessera_state state, u32 due)
{
	bool ret;

	mutex_lock(&tdev->admin.lock);
	ret = due ? is_due(tdev) && tdev->generation == due :
	      !is_over(tdev) || state == TESSERA_GONE;
	if (ret) {
		WRITE_ONCE(tdev->state, state);
		WRITE_ONCE(tdev->generation, tdev->generation + 1);
		tessera_disable(tdev);
	}
	mutex_unlock(&tdev->admin.lock);
	return ret;
}

static bool lose(struct tessera_device *tdev, enum tessera_state state, u32 due)
{
	struct tessera_queue *q;
	unsigned int i;
	bool cookie = dma_fence_begin_signalling();
	bool ret = begin_loss(tdev, state, due);

	for (i = 0; i < TESSERA_VECTORS && ret; i++) {
		struct tessera_vector *v = &tdev->vectors[i];

		mutex_lock(&v->lock);
		list_for_each_entry(q, &v->queues, vector_link)
			tessera_queue_lose(q);
		tessera_trace_wake(v);
		mutex_unlock(&v->lock);
	}
	dma_fence_end_signalling(cookie);
	if (!ret)
		return false;
	tessera_bo_revoke_all(tdev);
	tessera_peer_revoke_all(tdev);
	wake_up_all(&tdev->state_wait);
	return true;
}

void tessera_lose_all(struct tessera_device *tdev, enum tessera_state state)
{
	lose(tdev, state, 0);
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

/* due: as in begin_loss(). */
static void wedge(struct tessera_device *tdev, u32 due, const char *why, int error)
{
	if (!lose(tdev, TESSERA_WEDGED, due))
		return;
	drm_err(&tdev->drm, "%s (%d): the device is out of use until the driver is bound again\n",
		why, error);
	tell_wedged(tdev);
}

/*
 * From here on whoever holds the device's lock brings it back, and reset_work does not. reason:
 * of the dump; NULL: nothing is wrong, and there is none.
 */
static void take_over(struct tessera_device *tdev, const char *reason)
{
	/* Somebody did before, under this lock, and nothing has begun since. */
	if (READ_ONCE(tdev->state) == TESSERA_RESETTING || is_over(tdev))
		return;
	if (reason)
		tessera_dump(tdev, reason, NULL);
	tessera_lose_all(tdev, TESSERA_RESETTING);
}

static void prepare(struct pci_dev *pdev)
{
	struct tessera_device *tdev = pci_get_drvdata(pdev);

	take_over(tdev, tdev->reset_reason ? tdev->reset_reason : "asked for from outside");
}

static void done(struct pci_dev *pdev)
{
	struct tessera_device *tdev = pci_get_drvdata(pdev);
	int ret;

	mutex_lock(&tdev->admin.lock);
	if (is_over(tdev)) {
		mutex_unlock(&tdev->admin.lock);
		return;
	}
	tdev->reset_reason = NULL;
	tdev->link_deadline = 0;
	tdev->is_link_lost = false;
	ret = tessera_bring_up(tdev);
	if (!ret) {
		atomic64_inc(&tdev->function_resets);
		WRITE_ONCE(tdev->state, TESSERA_RUNNING);
		wake_up_all(&tdev->state_wait);
	}
	mutex_unlock(&tdev->admin.lock);
	if (ret)
		wedge(tdev, 0, "the device did not come back from a function reset", ret);
	else
		drm_info(&tdev->drm, "the device is back after a function reset\n");
}

/* Both halves and the reset between them. Under the device's lock. */
static void reset_function(struct tessera_device *tdev)
{
	u32 generation = READ_ONCE(tdev->generation);
	int ret = is_over(tdev) ? 0 : pci_reset_function_locked(tdev->pdev);

	/* One that was made and failed done() has judged; this was none. */
	if (ret && generation == READ_ONCE(tdev->generation) &&
	    READ_ONCE(tdev->state) != TESSERA_RUNNING)
		wedge(tdev, 0, "the function reset failed", ret);
}

/* What a reset of the link has cleared. */
static void restore_config(struct tessera_device *tdev)
{
	pci_load_saved_state(tdev->pdev, tdev->config);
	pci_restore_state(tdev->pdev);
}

/* check_link() is to act when that has passed, or if it was not there before, when it is back. */
static void give_time(struct tessera_device *tdev, bool is_absent)
{
	mutex_lock(&tdev->admin.lock);
	tdev->is_absent = is_absent;
	/* 0 is none. */
	tdev->link_deadline = (jiffies + LINK_LIMIT) | 1;
	mutex_unlock(&tdev->admin.lock);
}

/*
 * An error on the link (AER). One that is not fatal may have damaged what was on its way to or from
 * any context, and nobody can say which: everything ends, as in a function reset, and the link's
 * reset brings the device back. If that fails 7.2 says so and 6.12 does not: the tick looks.
 */
static pci_ers_result_t error_detected(struct pci_dev *pdev, pci_channel_state_t state)
{
	struct tessera_device *tdev = pci_get_drvdata(pdev);

	if (is_over(tdev))
		return PCI_ERS_RESULT_DISCONNECT;
	if (state == pci_channel_io_perm_failure) {
		wedge(tdev, 0, "the PCI core gave the link up", -EIO);
		return PCI_ERS_RESULT_DISCONNECT;
	}
	take_over(tdev, "an error on the PCI link");
	give_time(tdev, false);
	return PCI_ERS_RESULT_NEED_RESET;
}

/*
 * For an error that is not fatal 6.12 has reset nothing, and a reset of the link may not have been
 * one of the function: it is reset itself.
 */
static pci_ers_result_t slot_reset(struct pci_dev *pdev)
{
	struct tessera_device *tdev = pci_get_drvdata(pdev);

	restore_config(tdev);
	reset_function(tdev);
	return READ_ONCE(tdev->state) == TESSERA_RUNNING ? PCI_ERS_RESULT_RECOVERED :
	       PCI_ERS_RESULT_DISCONNECT;
}

const struct pci_error_handlers tessera_err_handlers = {
	.error_detected = error_detected,
	.slot_reset = slot_reset,
	.reset_prepare = prepare,
	.reset_done = done,
};

/*
 * It does not answer on the bus, and resetting it would keep a configuration of all ones: it is
 * lost, and the PCI core has the time of an error of the link to bring it back.
 */
static void await_device(struct tessera_device *tdev)
{
	drm_err(&tdev->drm, "the device is not on the bus: waiting for it\n");
	take_over(tdev, "the device is not on the bus");
	give_time(tdev, true);
}

/* Under the device's lock. */
static void make_reset(struct tessera_device *tdev)
{
	bool is_last;

	if (!is_due(tdev))
		return;
	/* From here to the end of our own reset nobody else writes it. */
	is_last = tdev->is_link_lost;
	tdev->is_link_lost = false;
	if (pci_device_is_present(tdev->pdev)) {
		if (is_last)
			restore_config(tdev);
		reset_function(tdev);
	} else if (is_last) {
		wedge(tdev, 0, "the device has not come back to the bus", -ENODEV);
	} else {
		await_device(tdev);
	}
}

static void reset_work(struct work_struct *work)
{
	struct tessera_device *tdev = container_of(work, struct tessera_device, reset_work);
	u32 generation = READ_ONCE(tdev->generation);
	int i;

	/* Whoever holds the device's lock may be about to unbind us: do not insist. */
	for (i = 0; i < LOCK_TRIES; i++) {
		/* Somebody else's reset may have come first, or be under way. */
		if (!is_due(tdev))
			return;
		if (pci_dev_trylock(tdev->pdev)) {
			make_reset(tdev);
			pci_dev_unlock(tdev->pdev);
			return;
		}
		msleep(100);
	}
	wedge(tdev, generation, "who holds the device's lock does not reset it", -EAGAIN);
}

/*
 * Whether the PCI core has had its time to reset the link, or a device that was not on the bus is
 * there again: then our own reset has to do. Under admin.lock: what is due before done() begins
 * done() brings back, and it finds nothing of it left.
 */
static bool is_link_due(struct tessera_device *tdev, bool *is_back)
{
	if (!tdev->link_deadline || tdev->state != TESSERA_RESETTING)
		return false;
	*is_back = tdev->is_absent && pci_device_is_present(tdev->pdev);
	return *is_back || !time_before(jiffies, tdev->link_deadline);
}

/* Whoever has admin.lock may be bringing the device back: the next tick looks again. */
static void check_link(struct tessera_device *tdev)
{
	bool is_back = false, due;

	if (READ_ONCE(tdev->state) != TESSERA_RESETTING || !mutex_trylock(&tdev->admin.lock))
		return;
	due = is_link_due(tdev, &is_back);
	if (due) {
		tdev->link_deadline = 0;
		tdev->is_link_lost = true;
		WRITE_ONCE(tdev->state, TESSERA_RESET_DUE);
		queue_work(tdev->wq, &tdev->reset_work);
	}
	mutex_unlock(&tdev->admin.lock);
	if (due)
		drm_err(&tdev->drm, "%s: resetting the function\n", is_back ?
			"the device is back on the bus" : "the PCI core has not reset the link");
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

/* Under the device's lock, as what follows. */
void tessera_sleep(struct tessera_device *tdev)
{
	/* First: nothing that take_over() ends becomes due again. */
	mutex_lock(&tdev->admin.lock);
	tdev->link_deadline = 0;
	mutex_unlock(&tdev->admin.lock);
	/* Of a reset that is due, if one is. */
	take_over(tdev, tdev->reset_reason);
	/* It finds that nothing is due: later it would reset what is asleep. */
	cancel_work_sync(&tdev->reset_work);
}

/* Nobody tells whether its power was off: it may be what it was. */
void tessera_wake(struct tessera_device *tdev)
{
	reset_function(tdev);
}

/* After GONE is set and the device is unplugged: nothing begins any more. */
void tessera_reset_fini(struct tessera_device *tdev)
{
	cancel_delayed_work_sync(&tdev->tick);
	cancel_work_sync(&tdev->reset_work);
	tessera_dump_fini(tdev);
}
