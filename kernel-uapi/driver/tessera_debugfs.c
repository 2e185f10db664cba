/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * /sys/kernel/debug/accel/ADDRESS/: registers, queues, HBM, faults, telemetry, RAS to
 * read; `inject`, which takes "KIND VALUE" (enum hw_inject), and `reset` to write.
 */
#include <linux/debugfs.h>
#include <linux/seq_file.h>
#include <linux/uaccess.h>

#include <drm/drm_debugfs.h>
#include <drm/drm_drv.h>
#include <drm/drm_print.h>

#include "tessera_drv.h"

static struct tessera_device *shown(struct seq_file *m)
{
	struct drm_debugfs_entry *entry = m->private;

	return to_tessera(entry->dev);
}

static int show_registers(struct seq_file *m, void *data)
{
	struct drm_printer p = drm_seq_file_printer(m);

	tessera_print_registers(shown(m), &p);
	return 0;
}

static int show_queues(struct seq_file *m, void *data)
{
	struct drm_printer p = drm_seq_file_printer(m);

	tessera_print_queues(shown(m), &p);
	return 0;
}

static int show_hbm(struct seq_file *m, void *data)
{
	struct drm_printer p = drm_seq_file_printer(m);
	struct tessera_device *tdev = shown(m);

	mutex_lock(&tdev->hbm_lock);
	drm_mm_print(&tdev->hbm, &p);
	mutex_unlock(&tdev->hbm_lock);
	tessera_clear_print(tdev, &p);
	return 0;
}

static int show_faults(struct seq_file *m, void *data)
{
	struct tessera_device *tdev = shown(m);
	unsigned int n, i;
	int ret;

	mutex_lock(&tdev->fault_lock);
	ret = tessera_faults_read(tdev, &n);
	for (i = 0; !ret && i < n; i++) {
		const struct hw_fault *f = &tdev->faults[i];

		seq_printf(m, "%llu at %llu ns: %s: queue %u ctx %u tag %u", f->number,
			   f->time_ns, tessera_status_name(f->status), f->queue, f->ctx,
			   f->tag);
		seq_printf(m, " program %u pc 0x%llx operand %u binding %d", f->program,
			   f->pc, f->operand, (int)f->binding);
		seq_printf(m, " va 0x%llx bytes %llu %s\n", f->va, f->bytes,
			   f->is_write ? "write" : "read");
	}
	mutex_unlock(&tdev->fault_lock);
	return ret;
}

static int show_telemetry(struct seq_file *m, void *data)
{
	struct hw_telemetry t;
	struct hw_ras ras;
	int ret = tessera_page_read(shown(m), &t, &ras);

	if (ret)
		return ret;
	seq_printf(m, "time_ns %llu\nbusy_compute_ns %llu\nbusy_dma_ns %llu\n",
		   t.time_ns, t.busy_compute_ns, t.busy_dma_ns);
	seq_printf(m, "hbm_read_bytes %llu\nhbm_write_bytes %llu\n", t.hbm_read_bytes,
		   t.hbm_write_bytes);
	seq_printf(m, "dma_in_bytes %llu\ndma_out_bytes %llu\n", t.dma_in_bytes,
		   t.dma_out_bytes);
	seq_printf(m, "n_execute %llu\nn_copy %llu\nn_fault %llu\nn_insn %llu\n",
		   t.n_execute, t.n_copy, t.n_fault, t.n_insn);
	seq_printf(m, "matrix_ops %llu\nvector_ops %llu\n", t.matrix_ops, t.vector_ops);
	seq_printf(m, "temperature_mc %u\npower_mw %u\nclock_khz %u\nthrottle %u\n",
		   t.temperature_mc, t.power_mw, t.clock_khz, t.throttle);
	seq_printf(m, "ecc_corrected %llu\necc_uncorrected %llu\npoisoned_pages %llu\n",
		   ras.ecc_corrected, ras.ecc_uncorrected, ras.poisoned_pages);
	seq_printf(m, "watchdog_fires %llu\nqueue_resets %llu\nfunction_resets %llu\nfatal %llu\n",
		   ras.watchdog_fires, ras.queue_resets, ras.function_resets, ras.fatal);
	return 0;
}

static ssize_t write_inject(struct file *file, const char __user *user, size_t n,
			    loff_t *pos)
{
	struct tessera_device *tdev = file->private_data;
	struct tessera_request r = { .sqe = { .op = HW_INJECT } };
	unsigned long long value;
	unsigned int kind;
	char text[48];
	int ret;

	if (n >= sizeof(text))
		return -EINVAL;
	if (copy_from_user(text, user, n))
		return -EFAULT;
	text[n] = 0;
	if (sscanf(text, "%u %lli", &kind, &value) != 2 || kind > U16_MAX)
		return -EINVAL;
	r.sqe.id = kind;
	r.sqe.u.admin.value = value;
	ret = tessera_request(tdev, 0, &r);
	return ret ? ret : n;
}

static ssize_t write_reset(struct file *file, const char __user *user, size_t n,
			   loff_t *pos)
{
	struct tessera_device *tdev = file->private_data;
	int ret;

	tessera_reset_begin(tdev, "asked for in debugfs");
	ret = tessera_settle_interruptible(tdev);
	return ret ? ret : n;
}

static const struct file_operations inject_fops = {
	.owner = THIS_MODULE, .open = simple_open, .write = write_inject,
};

static const struct file_operations reset_fops = {
	.owner = THIS_MODULE, .open = simple_open, .write = write_reset,
};

static const struct drm_debugfs_info infos[] = {
	{ "registers", show_registers },
	{ "queues", show_queues },
	{ "hbm", show_hbm },
	{ "faults", show_faults },
	{ "telemetry", show_telemetry },
};

/* Before drm_dev_register, which ends them again. */
void tessera_debugfs_init(struct tessera_device *tdev)
{
	drm_debugfs_add_files(&tdev->drm, infos, ARRAY_SIZE(infos));
	debugfs_create_file("inject", 0200, tdev->drm.debugfs_root, tdev, &inject_fops);
	debugfs_create_file("reset", 0200, tdev->drm.debugfs_root, tdev, &reset_fops);
}
