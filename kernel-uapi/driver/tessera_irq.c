/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * MSI-X. Vector 0 is queue 0's; work queues take turns on the others. Completions
 * are taken by the vector's thread, so that a burst of them does not keep a CPU's
 * interrupts off.
 *
 * A fatal device raises every vector once; vector 0's thread looks at STATUS for that
 * reason.
 */
#include <drm/drm_drv.h>
#include <drm/drm_print.h>

#include "tessera_drv.h"

static void look_at_status(struct tessera_device *tdev)
{
	u32 status = tessera_read(tdev, HW_REG_STATUS);

	if (status == ~0u)
		tessera_reset_begin(tdev, "the device does not answer");
	else if (status & HW_STATUS_FATAL)
		tessera_reset_begin(tdev, "fatal state");
}

static irqreturn_t handle(int irq, void *arg)
{
	struct tessera_vector *v = arg;
	struct tessera_device *tdev = v->tdev;
	struct tessera_queue *q;
	bool cookie;
	int idx;

	if (!drm_dev_enter(&tdev->drm, &idx))
		return IRQ_HANDLED;
	cookie = dma_fence_begin_signalling();
	mutex_lock(&v->lock);
	list_for_each_entry(q, &v->queues, vector_link)
		tessera_queue_reap(q);
	tessera_trace_wake(v);
	mutex_unlock(&v->lock);
	if (!v->index) {
		wake_up_all(&tdev->admin.wait);
		if (READ_ONCE(tdev->state) == TESSERA_RUNNING)
			look_at_status(tdev);
	}
	dma_fence_end_signalling(cookie);
	drm_dev_exit(idx);
	return IRQ_HANDLED;
}

int tessera_irq_init(struct tessera_device *tdev)
{
	struct pci_dev *pdev = tdev->pdev;
	unsigned int most = min_t(unsigned int, TESSERA_VECTORS, num_online_cpus() + 1);
	int n = pci_alloc_irq_vectors(pdev, 1, most, PCI_IRQ_MSIX);
	unsigned int i;
	int ret;

	for (i = 0; i < TESSERA_VECTORS; i++) {
		struct tessera_vector *v = &tdev->vectors[i];

		v->tdev = tdev;
		v->index = i;
		v->irq = 0;
		mutex_init(&v->lock);
		INIT_LIST_HEAD(&v->queues);
		INIT_LIST_HEAD(&v->traces);
	}
	if (n < 0) {
		drm_err(&tdev->drm, "no MSI-X vector: %d\n", n);
		return n;
	}
	tdev->n_vectors = n;
	for (i = 0; i < tdev->n_vectors; i++) {
		struct tessera_vector *v = &tdev->vectors[i];
		int irq = pci_irq_vector(pdev, i);

		ret = request_threaded_irq(irq, NULL, handle, IRQF_ONESHOT,
					   TESSERA_NAME, v);
		if (ret) {
			drm_err(&tdev->drm, "interrupt %d: %d\n", irq, ret);
			tessera_irq_fini(tdev);
			return ret;
		}
		v->irq = irq;
	}
	return 0;
}

void tessera_irq_fini(struct tessera_device *tdev)
{
	unsigned int i;

	for (i = 0; i < tdev->n_vectors; i++) {
		struct tessera_vector *v = &tdev->vectors[i];

		if (v->irq)
			free_irq(v->irq, v);
		v->irq = 0;
	}
	if (tdev->n_vectors)
		pci_free_irq_vectors(tdev->pdev);
	tdev->n_vectors = 0;
}
