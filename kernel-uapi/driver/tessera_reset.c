/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * When the device is lost, and how it comes back. The function reset is the PCI
 * core's (FLR), so that it keeps and restores the configuration; our part is what
 * comes before (reset_prepare: stop, fail everything) and after (reset_done: bring
 * up). The same two serve a reset that somebody asks for in sysfs.
 *
 * Order before the reset: DMA ends, then fences are signalled, then doorbells are
 * taken back. A fence that is signalled thus promises that the device no longer
 * touches memory, whatever went wrong.
 *
 * The tick looks once a second for what no interrupt tells.
 */
#include <linux/capability.h>
#include <linux/delay.h>
#include <linux/devcoredump.h>
#include <linux/vmalloc.h>

#include <drm/drm_drv.h>
#include <drm/drm_file.h>
#include <drm/drm_print.h>

#include "tessera_compat.h"
#include "tessera_drv.h"

#define TICK HZ
#define LOCK_TRIES 50		/* for the device's lock, 100 ms apart */

static const char *const state_names[] = {
	[TESSERA_STARTING] = "starting", [TESSERA_RUNNING] = "running",
	[TESSERA_RESETTING] = "resetting", [TESSERA_WEDGED] = "wedged",
	[TESSERA_GONE] = "gone",
};

void tessera_print_registers(struct tessera_device *tdev, struct drm_printer *p)
{
	int idx;

	drm_printf(p, "state %s, generation %u\n", state_names[READ_ONCE(tdev->state)],
		   READ_ONCE(tdev->generation));
	if (!drm_dev_enter(&tdev->drm, &idx))
		return;
#define REG(name, offset, bytes, access, reset, meaning) \
	drm_printf(p, "%-9s 0x%0*llx\n", #name, (bytes) * 2, (bytes) == 8 ? \
		   tessera_read64(tdev, offset) : (u64)tessera_read(tdev, offset));
#include "hal/hw/regs.def"
#undef REG
	drm_dev_exit(idx);
}

static void print_descriptor(struct tessera_queue *q, u32 at, struct drm_printer *p)
{
	const struct hw_sqe *s = &q->sq[at & (q->n_entries - 1)];

	drm_printf(p, "  %u: op 0x%02x flags 0x%x tag %u", at, s->op, s->flags, s->tag);
	drm_printf(p, " wait 0x%llx >= %llu signal 0x%llx = %llu", s->wait_va,
		   s->wait_value, s->signal_va, s->signal_value);
	drm_printf(p, " args 0x%llx 0x%llx 0x%llx\n", s->u.admin.addr, s->u.admin.value,
		   s->u.admin.bytes);
}

static void print_queue(struct tessera_queue *q, struct drm_printer *p)
{
	u32 at;

	spin_lock(&q->lock);
	drm_printf(p, "queue %u (%s): %s, state %u, priority %u, entries %u, head %u, tail %u\n",
		   q->hw_id, q->name, q->is_user ? "user" : "kernel", q->state,
		   q->priority, q->n_entries, q->head, q->tail);
	/* The oldest few that have no completion. */
	for (at = q->head; q->state != TESSERA_QUEUE_DEAD && !q->is_user &&
	     at != q->tail && at - q->head < 8; at++)
		print_descriptor(q, at, p);
	spin_unlock(&q->lock);
}

void tessera_print_queues(struct tessera_device *tdev, struct drm_printer *p)
{
	unsigned int i;

	for (i = 0; i < TESSERA_VECTORS; i++) {
		struct tessera_vector *v = &tdev->vectors[i];
		struct tessera_queue *q;

		mutex_lock(&v->lock);
		list_for_each_entry(q, &v->queues, vector_link)
			print_queue(q, p);
		mutex_unlock(&v->lock);
	}
}

/*
 * Keeps what there is to see, in memory that is there already; send_dump makes a
 * device dump of it when there is memory. The first reason stays until then. guilty:
 * only that queue.
 */
void tessera_dump(struct tessera_device *tdev, const char *reason,
		  struct tessera_queue *guilty)
{
	struct drm_print_iterator it = { .data = tdev->dump.text,
					 .remain = TESSERA_DUMP_BYTES };
	struct drm_printer p = drm_coredump_printer(&it);

	mutex_lock(&tdev->dump.lock);
	if (!tdev->dump.bytes) {
		drm_printf(&p, "tessera device dump 1\nreason: %s\ndevice: %s %s firmware %s\n",
			   reason, tdev->identity.name, tdev->identity.serial,
			   tdev->identity.firmware);
		tessera_print_registers(tdev, &p);
		if (guilty)
			print_queue(guilty, &p);
		else
			tessera_print_queues(tdev, &p);
		tdev->dump.bytes = TESSERA_DUMP_BYTES - it.remain;
	}
	mutex_unlock(&tdev->dump.lock);
	schedule_work(&tdev->dump.work);
}

static void send_dump(struct work_struct *work)
{
	struct tessera_device *tdev = container_of(work, struct tessera_device, dump.work);
	void *copy = vmalloc(TESSERA_DUMP_BYTES);
	size_t bytes;

	mutex_lock(&tdev->dump.lock);
	bytes = tdev->dump.bytes;
	if (copy)
		memcpy(copy, tdev->dump.text, bytes);
	tdev->dump.bytes = 0;
	mutex_unlock(&tdev->dump.lock);
	if (copy && bytes)
		dev_coredumpv(&tdev->pdev->dev, copy, bytes, GFP_KERNEL);
	else
		vfree(copy);
}

static bool is_settled(struct tessera_device *tdev)
{
	enum tessera_state state = READ_ONCE(tdev->state);

	return state != TESSERA_RESETTING && state != TESSERA_STARTING;
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

void tessera_make_end(struct tessera_device *tdev, u32 generation, u8 op, u16 id)
{
	int ret = tessera_simple(tdev, generation, op, id, NULL);

	if (!ret)
		return;
	/* Lost already, or about to be; anything else is a device that lies. */
	if (ret != -ECANCELED && ret != -ENODEV && ret != -ETIMEDOUT)
		tessera_reset_begin(tdev, "something of ours could not be ended");
	tessera_settle(tdev);
}

/* Doorbells that are mapped: they lead to a page of memory from now on. */
static void revoke_doorbells(struct tessera_vector *v)
{
	struct tessera_queue *q, *found;

	do {
		found = NULL;
		mutex_lock(&v->lock);
		list_for_each_entry(q, &v->queues, vector_link) {
			if (q->doorbell && !READ_ONCE(q->doorbell->is_revoked)) {
				kref_get(&q->ref);
				found = q;
				break;
			}
		}
		mutex_unlock(&v->lock);
		if (found) {
			tessera_bo_revoke(found->doorbell);
			tessera_queue_put(found);
		}
	} while (found);
}

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
		mutex_unlock(&v->lock);
	}
	dma_fence_end_signalling(cookie);
	for (i = 0; i < TESSERA_VECTORS; i++)
		revoke_doorbells(&tdev->vectors[i]);
	wake_up_all(&tdev->state_wait);
}

static void set_state(struct tessera_device *tdev, enum tessera_state state)
{
	lockdep_assert_held(&tdev->admin.lock);
	WRITE_ONCE(tdev->state, state);
	wake_up_all(&tdev->state_wait);
}

static void wedge(struct tessera_device *tdev, const char *why, int error)
{
	drm_err(&tdev->drm, "%s (%d): the device is out of use until the driver is bound again\n",
		why, error);
	tessera_lose_all(tdev, TESSERA_WEDGED);
	tessera_send_wedged(&tdev->drm);
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
	ret = tessera_bring_up(tdev);
	if (!ret) {
		atomic64_inc(&tdev->function_resets);
		set_state(tdev, TESSERA_RUNNING);
	}
	mutex_unlock(&tdev->admin.lock);
	if (ret)
		wedge(tdev, "the device did not come back from a function reset", ret);
	else
		drm_info(&tdev->drm, "the device is back after a function reset\n");
}

const struct pci_error_handlers tessera_err_handlers = {
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

	/* Whoever holds the device's lock may be about to unbind us: do not insist. */
	for (i = 0; i < LOCK_TRIES && is_resetting(tdev); i++) {
		ret = pci_try_reset_function(tdev->pdev);
		if (ret != -EAGAIN)
			break;
		msleep(100);
	}
	/* Somebody else's reset may have come first; then all is well. */
	if (is_resetting(tdev))
		wedge(tdev, "the function reset failed", ret);
}

void tessera_reset_begin(struct tessera_device *tdev, const char *reason)
{
	/* RUNNING to RESETTING happens here and, under admin.lock, in prepare(). */
	if (cmpxchg(&tdev->state, TESSERA_RUNNING, TESSERA_RESETTING) != TESSERA_RUNNING)
		return;
	tdev->reset_reason = reason;
	drm_err(&tdev->drm, "%s: resetting the function\n", reason);
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
		mutex_unlock(&v->lock);
	}
	dma_fence_end_signalling(cookie);
	drm_dev_exit(idx);
	queue_delayed_work(tdev->wq, &tdev->tick, TICK);
}

int tessera_ioctl_reset(struct drm_device *drm, void *data, struct drm_file *file)
{
	struct tessera_device *tdev = to_tessera(drm);
	struct drm_tessera_reset *args = data;

	if (args->flags || args->zero)
		return -EINVAL;
	if (!capable(CAP_SYS_ADMIN))
		return -EACCES;
	tessera_reset_begin(tdev, "asked for by ioctl");
	/* What bring-up has proved: IDENTIFY was answered. */
	return tessera_settle_interruptible(tdev);
}

void tessera_reset_init(struct tessera_device *tdev)
{
	INIT_WORK(&tdev->reset_work, reset_work);
	INIT_DELAYED_WORK(&tdev->tick, tick);
	INIT_WORK(&tdev->dump.work, send_dump);
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
	cancel_work_sync(&tdev->dump.work);
}
