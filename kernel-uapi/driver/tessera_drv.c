/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The Tessera T1 as a DRM accel device: binding, unbinding, the node's file
 * operations. See README.md for the whole.
 */
#include <linux/ctype.h>
#include <linux/dma-mapping.h>
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/slab.h>
#include <linux/sysfs.h>
#include <linux/vmalloc.h>

#include <drm/drm_accel.h>
#include <drm/drm_drv.h>
#include <drm/drm_file.h>
#include <drm/drm_gem.h>
#include <drm/drm_ioctl.h>
#include <drm/drm_managed.h>
#include <drm/drm_print.h>

#include "tessera_compat.h"
#include "tessera_drv.h"

#ifdef __BIG_ENDIAN
#error "descriptors are little endian and not converted"
#endif

/*
 * Most calls hold the device, so that unbinding waits for them, once the core has copied their
 * arguments. Those that touch more of the caller's memory, which it can make take for ever,
 * hold it by themselves when they have (SELF).
 */
#define GUARDED(function) \
static int guarded_##function(struct drm_device *drm, void *data, struct drm_file *file) \
{ \
	int ret, idx; \
\
	if (!drm_dev_enter(drm, &idx)) \
		return -ENODEV; \
	ret = tessera_ioctl_##function(drm, data, file); \
	drm_dev_exit(idx); \
	return ret; \
}

GUARDED(ctx_create)
GUARDED(ctx_destroy)
GUARDED(bo_create)
GUARDED(bo_info)
GUARDED(unmap)
GUARDED(queue_create)
GUARDED(queue_destroy)
GUARDED(queue_reset)
GUARDED(program_destroy)
GUARDED(trace_start)
GUARDED(trace_stop)

#define IOCTL(NAME, function) \
	DRM_IOCTL_DEF_DRV(TESSERA_##NAME, guarded_##function, 0)
#define SELF(NAME, function) \
	DRM_IOCTL_DEF_DRV(TESSERA_##NAME, tessera_ioctl_##function, 0)

static const struct drm_ioctl_desc ioctls[] = {
	SELF(QUERY, query),
	IOCTL(CTX_CREATE, ctx_create),
	IOCTL(CTX_DESTROY, ctx_destroy),
	IOCTL(BO_CREATE, bo_create),
	SELF(BO_USERPTR, bo_userptr),
	IOCTL(BO_INFO, bo_info),
	SELF(MAP, map),
	IOCTL(UNMAP, unmap),
	IOCTL(QUEUE_CREATE, queue_create),
	IOCTL(QUEUE_DESTROY, queue_destroy),
	IOCTL(QUEUE_RESET, queue_reset),
	SELF(PROGRAM_CREATE, program_create),
	IOCTL(PROGRAM_DESTROY, program_destroy),
	SELF(SUBMIT, submit),
	IOCTL(TRACE_START, trace_start),
	IOCTL(TRACE_STOP, trace_stop),
};

/*
 * Core ioctls of DRM masters: an accel node has no master, and some of these follow
 * its NULL pointer (6.12 to 7.2 do).
 */
static bool is_of_master(unsigned int nr)
{
	switch (nr) {
	case DRM_IOCTL_NR(DRM_IOCTL_GET_UNIQUE):
	case DRM_IOCTL_NR(DRM_IOCTL_GET_MAGIC):
	case DRM_IOCTL_NR(DRM_IOCTL_SET_VERSION):
	case DRM_IOCTL_NR(DRM_IOCTL_AUTH_MAGIC):
	case DRM_IOCTL_NR(DRM_IOCTL_SET_MASTER):
	case DRM_IOCTL_NR(DRM_IOCTL_DROP_MASTER):
		return true;
	default:
		return false;
	}
}

static long file_ioctl(struct file *filp, unsigned int cmd, unsigned long arg)
{
	return is_of_master(DRM_IOCTL_NR(cmd)) ? -EACCES : drm_ioctl(filp, cmd, arg);
}

#ifdef CONFIG_COMPAT
static long file_compat_ioctl(struct file *filp, unsigned int cmd, unsigned long arg)
{
	return is_of_master(DRM_IOCTL_NR(cmd)) ? -EACCES : drm_compat_ioctl(filp, cmd, arg);
}
#endif

static const struct file_operations fops = {
	.owner = THIS_MODULE,
	.open = accel_open,
	.release = drm_release,
	.unlocked_ioctl = file_ioctl,
#ifdef CONFIG_COMPAT
	.compat_ioctl = file_compat_ioctl,
#endif
	.poll = drm_poll,
	.read = drm_read,
	.llseek = noop_llseek,
	.mmap = drm_gem_mmap,
	.show_fdinfo = drm_show_fdinfo,
	.fop_flags = FOP_UNSIGNED_OFFSET,
};

static const struct drm_driver driver = {
	.driver_features = DRIVER_COMPUTE_ACCEL | DRIVER_GEM | DRIVER_SYNCOBJ |
			   DRIVER_SYNCOBJ_TIMELINE,
	.open = tessera_file_open,
	.postclose = tessera_file_close,
	.gem_prime_import = tessera_bo_import,
	.gem_prime_import_sg_table = tessera_bo_import_sg_table,
	.show_fdinfo = tessera_show_fdinfo,
	.ioctls = ioctls,
	.num_ioctls = ARRAY_SIZE(ioctls),
	.fops = &fops,
	.name = TESSERA_NAME,
	.desc = "Tessera T1 accelerator",
	TESSERA_DRIVER_DATE
	.major = DRM_TESSERA_MAJOR,
	.minor = DRM_TESSERA_ABI,
};

/* With the last reference: files may have been open after unbinding. */
static void end_memory(struct drm_device *drm, void *arg)
{
	struct tessera_device *tdev = to_tessera(drm);

	if (tdev->hbm_bytes)
		drm_mm_takedown(&tdev->hbm);
	if (tdev->wq)
		destroy_workqueue(tdev->wq);
	vfree(tdev->dump.text);
	kfree(tdev->config);
	kfree(tdev->faults);
}

static int init_memory(struct tessera_device *tdev)
{
	mutex_init(&tdev->hbm_lock);
	mutex_init(&tdev->bos_lock);
	mutex_init(&tdev->ctxs_lock);
	mutex_init(&tdev->page_lock);
	mutex_init(&tdev->fault_lock);
	mutex_init(&tdev->dump.lock);
	INIT_LIST_HEAD(&tdev->bos);
	INIT_LIST_HEAD(&tdev->ctxs);
	init_waitqueue_head(&tdev->state_wait);
	tdev->generation = 1;
	tessera_reset_init(tdev);
	tdev->wq = alloc_workqueue(TESSERA_NAME, WQ_UNBOUND | WQ_MEM_RECLAIM, 0);
	tdev->dump.text = vzalloc(TESSERA_DUMP_BYTES);
	tdev->faults = kcalloc(TESSERA_FAULT_RECORDS, sizeof(*tdev->faults), GFP_KERNEL);
	if (drmm_add_action_or_reset(&tdev->drm, end_memory, NULL))
		return -ENOMEM;
	return tdev->wq && tdev->dump.text && tdev->faults ? 0 : -ENOMEM;
}

static int init_pci(struct tessera_device *tdev)
{
	struct pci_dev *pdev = tdev->pdev;
	int ret = pcim_enable_device(pdev);

	if (ret)
		return ret;
	if (pci_resource_len(pdev, 0) < HW_BAR0_BYTES || !pci_resource_len(pdev, 2)) {
		drm_err(&tdev->drm, "BAR0 has %llu bytes, BAR2 %llu: not a T1's\n",
			(u64)pci_resource_len(pdev, 0), (u64)pci_resource_len(pdev, 2));
		return -ENODEV;
	}
	tdev->regs = pcim_iomap_region(pdev, 0, TESSERA_NAME);
	if (IS_ERR(tdev->regs))
		return PTR_ERR(tdev->regs);
	ret = pcim_request_region(pdev, 2, TESSERA_NAME);
	if (ret)
		return ret;
	tdev->bar0 = pci_resource_start(pdev, 0);
	tdev->bar2 = pci_resource_start(pdev, 2);
	ret = dma_set_mask_and_coherent(&pdev->dev, DMA_BIT_MASK(64));
	if (ret)
		return ret;
	dma_set_max_seg_size(&pdev->dev, UINT_MAX);
	return tessera_bo_probe(tdev);
}

static int start(struct tessera_device *tdev)
{
	int ret = tessera_admin_init(tdev);

	if (!ret)
		ret = tessera_clear_init(tdev);
	if (!ret)
		ret = tessera_irq_init(tdev);
	if (ret)
		return ret;
	mutex_lock(&tdev->admin.lock);
	ret = tessera_bring_up(tdev);
	if (!ret)
		tdev->state = TESSERA_RUNNING;
	mutex_unlock(&tdev->admin.lock);
	if (!ret)
		ret = tessera_bo_hbm_init(tdev);
	return ret;
}

/* The reverse of start; the device may have left already. */
static void stop(struct tessera_device *tdev)
{
	tessera_irq_fini(tdev);
	tessera_bo_detach_all(tdev);
	tessera_clear_fini(tdev);
	tessera_admin_fini(tdev);
}

/*
 * The serial number, for names in /dev that stay: no character but those that a name in
 * a folder may have. PCI's own attribute serial_number (6.18) is of a capability.
 */
static ssize_t serial_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	struct tessera_device *tdev = dev_get_drvdata(dev);
	char serial[sizeof(tdev->identity.serial)], *p;

	strscpy(serial, tdev->identity.serial, sizeof(serial));
	for (p = serial; *p; p++) {
		if (!isascii(*p) || (!isalnum(*p) && !strchr("-_.", *p)))
			*p = '_';
	}
	return sysfs_emit(buf, "%s\n", serial);
}
static DEVICE_ATTR_RO(serial);

/* Root's: what one client has on the device, by its drm-client-id in fdinfo. */
static ssize_t reset_client_store(struct device *dev, struct device_attribute *attr,
				  const char *buf, size_t n)
{
	struct tessera_device *tdev = dev_get_drvdata(dev);
	u64 client;
	int ret = kstrtou64(buf, 10, &client), idx;

	if (ret)
		return ret;
	if (!drm_dev_enter(&tdev->drm, &idx))
		return -ENODEV;
	ret = tessera_file_reset(tdev, client);
	drm_dev_exit(idx);
	return ret ? ret : n;
}
static DEVICE_ATTR_WO(reset_client);

static struct attribute *attrs[] = { &dev_attr_serial.attr, &dev_attr_reset_client.attr, NULL };
static const struct attribute_group attr_group = { .attrs = attrs };

static int probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	struct tessera_device *tdev = devm_drm_dev_alloc(&pdev->dev, &driver,
							 struct tessera_device, drm);
	int ret;

	if (IS_ERR(tdev))
		return PTR_ERR(tdev);
	tdev->pdev = pdev;
	pci_set_drvdata(pdev, tdev);
	ret = init_memory(tdev);
	if (!ret)
		ret = init_pci(tdev);
	if (ret)
		return ret;
	ret = start(tdev);
	if (ret)
		goto fail;
	/* For errors of the link; resets save their own. */
	pci_save_state(pdev);
	tdev->config = pci_store_saved_state(pdev);
	ret = tdev->config ? 0 : -ENOMEM;
	if (ret)
		goto fail_reset;
	tessera_reset_start(tdev);
	tessera_debugfs_init(tdev);
	/* Before the node: its uevent makes udev read this. */
	ret = devm_device_add_group(&pdev->dev, &attr_group);
	if (!ret)
		ret = drm_dev_register(&tdev->drm, 0);
	if (ret)
		goto fail_reset;
	/* Telemetry that cannot be read elsewhere is no reason to fail. */
	if (tessera_hwmon_init(tdev))
		drm_warn(&tdev->drm, "no hwmon device\n");
	drm_info(&tdev->drm, "%s, serial %s, firmware %s, %llu MiB of HBM, %u vectors\n",
		 tdev->identity.name, tdev->identity.serial, tdev->identity.firmware,
		 tdev->hbm_bytes >> 20, tdev->n_vectors);
	return 0;

fail_reset:
	tessera_lose_all(tdev, TESSERA_GONE);
fail:
	if (tdev->admin.memory) {
		mutex_lock(&tdev->admin.lock);
		tdev->state = TESSERA_GONE;
		tessera_disable(tdev);
		mutex_unlock(&tdev->admin.lock);
	}
	tessera_reset_fini(tdev);
	stop(tdev);
	return ret;
}

/*
 * First the device is stopped and whoever waits for it is woken, then nobody can
 * enter any more, then what is ours ends. Files that are open keep the rest.
 */
static void remove(struct pci_dev *pdev)
{
	struct tessera_device *tdev = pci_get_drvdata(pdev);

	tessera_lose_all(tdev, TESSERA_GONE);
	drm_dev_unplug(&tdev->drm);
	tessera_reset_fini(tdev);
	stop(tdev);
}

static void shutdown(struct pci_dev *pdev)
{
	tessera_lose_all(pci_get_drvdata(pdev), TESSERA_GONE);
}

/* Sleeping ends contexts as a function reset does, and HBM's contents may go too. */
static int suspend(struct device *dev)
{
	tessera_sleep(dev_get_drvdata(dev));
	return 0;
}

static int resume(struct device *dev)
{
	tessera_wake(dev_get_drvdata(dev));
	return 0;
}

static DEFINE_SIMPLE_DEV_PM_OPS(pm_ops, suspend, resume);

static const struct pci_device_id ids[] = {
	{ PCI_DEVICE(HW_PCI_VENDOR, HW_PCI_DEVICE) },
	{ }
};
MODULE_DEVICE_TABLE(pci, ids);

static struct pci_driver pci_driver = {
	.name = TESSERA_NAME,
	.id_table = ids,
	.probe = probe,
	.remove = remove,
	.shutdown = shutdown,
	.err_handler = &tessera_err_handlers,
	.driver.pm = pm_sleep_ptr(&pm_ops),
};
module_pci_driver(pci_driver);

MODULE_DESCRIPTION("Tessera T1 accelerator");
MODULE_LICENSE("GPL");
TESSERA_IMPORT_DMA_BUF;
