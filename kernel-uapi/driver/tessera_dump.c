/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What there is to see of a device that is lost or a queue that hangs: registers and queues,
 * for debugfs and for the device dump in /sys/class/devcoredump/.
 */
#include <linux/devcoredump.h>
#include <linux/vmalloc.h>

#include <drm/drm_drv.h>
#include <drm/drm_print.h>

#include "tessera_drv.h"

#define CUT "the rest does not fit\n"

/* What is kept: tdev.dump.text. */
struct text {
	char *at;
	size_t bytes;
	bool is_cut;
};

static const char *const state_names[] = {
	[TESSERA_STARTING] = "starting", [TESSERA_RUNNING] = "running",
	[TESSERA_RESET_DUE] = "reset due", [TESSERA_RESETTING] = "resetting",
	[TESSERA_WEDGED] = "wedged", [TESSERA_GONE] = "gone",
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
 * drm_coredump_printer() allocates when a line does not fit. Here that would be on the way to
 * fences, with a queue's spinlock held: whole lines as far as there is room, and that it was so.
 */
static void print_text(struct drm_printer *p, struct va_format *what)
{
	struct text *t = p->arg;
	size_t room = TESSERA_DUMP_BYTES - sizeof(CUT) - t->bytes;
	size_t n;

	if (t->is_cut)
		return;
	n = snprintf(t->at + t->bytes, room, "%pV", what);
	if (n < room) {
		t->bytes += n;
		return;
	}
	t->is_cut = true;
	while (t->bytes && t->at[t->bytes - 1] != '\n')
		t->bytes--;
	memcpy(t->at + t->bytes, CUT, sizeof(CUT));
	t->bytes += strlen(CUT);
}

/*
 * Keeps what there is to see, in memory that is there already; send_dump makes a
 * device dump of it when there is memory. The first reason stays until then. guilty:
 * only that queue.
 */
void tessera_dump(struct tessera_device *tdev, const char *reason,
		  struct tessera_queue *guilty)
{
	struct text text = { .at = tdev->dump.text };
	struct drm_printer p = { .printfn = print_text, .arg = &text };

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
		tdev->dump.bytes = text.bytes;
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

void tessera_dump_init(struct tessera_device *tdev)
{
	INIT_WORK(&tdev->dump.work, send_dump);
}

void tessera_dump_fini(struct tessera_device *tdev)
{
	/* A fault_work that still runs may ask for one more. */
	disable_work_sync(&tdev->dump.work);
}
