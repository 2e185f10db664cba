/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A HAL's and a device's life, on top of all other files here: opening, the waiter
 * thread, resetting, closing.
 */
#define LOG_TAG "hal/device"
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "hal/base/log.h"
#include "hal/hal_internal.h"
#include "hal/hw/regs.h"
#include "hal/sim/sim.h"

/* ---- the waiter ---- */

#define LOOK_MS 1000	/* between looks at a device that work is pending on */

static bool has_pending(struct hal_device *dev)
{
	for (unsigned i = 0; i < 2; i++) {
		const struct hal_queue *q = dev->queues[i];

		if (q && atomic_load(&q->done) < atomic_load(&q->submitted))
			return true;
	}
	return false;
}

/* Has the device look again at the semaphores that its queues wait for. */
static void wake(struct hal_device *dev)
{
	for (unsigned i = 0; i < 2; i++)
		pthread_mutex_lock(&dev->queues[i]->lock);
	if (!atomic_load(&dev->is_dead))
		dev->t->ops->wake(dev->t);
	for (unsigned i = 2; i--;)
		pthread_mutex_unlock(&dev->queues[i]->lock);
}

static void *wait_for_events(void *arg)
{
	struct hal_device *dev = arg;

	while (!atomic_load(&dev->quit)) {
		struct pollfd p = { .fd = dev->irq_fd, .events = POLLIN };
		uint64_t count;
		int n = poll(&p, 1, LOOK_MS);

		if (n < 0 && errno != EINTR)
			break;
		hal_hbm_tidy(dev);
		/* A device that hangs sends no interrupt: whoever waits for one hears of
		 * it by this look. */
		if (!n && !has_pending(dev)) {
			if (dev->page)
				hal_page_update(dev, false);
			continue;
		}
		if (read(dev->irq_fd, &count, sizeof(count)) < 0 && errno != EAGAIN)
			break;
		hal_check_alive(dev, NULL);
		pthread_mutex_lock(&dev->life);
		if (atomic_load(&dev->is_dead))
			for (unsigned i = 0; i < 2; i++)
				hal_queue_fail_all(dev->queues[i], &dev->death);
		pthread_mutex_unlock(&dev->life);
		for (unsigned i = 0; i < 2; i++)
			hal_queue_reap(dev->queues[i]);
		hal_trace_drain(dev);
		hal_tell_of_death(dev);
		/* Where a queue failed, others may wait for it. */
		if (atomic_exchange(&dev->must_wake, false))
			wake(dev);
		if (dev->page)
			hal_page_update(dev, true);
	}
	return NULL;
}

/* ---- the telemetry page ---- */

static void place_page(struct hal_device *dev)
{
	struct hal_position p;

	hal_device_position(dev, &p);
	dev->page->fabric = p.fabric;
	dev->page->chip = p.chip;
	dev->page->n_chips = p.n_chips;
	for (unsigned d = 0; d < 3; d++) {
		dev->page->coords[d] = p.coords[d];
		dev->page->shape[d] = p.shape[d];
	}
}

static void join_page(struct hal_device *dev)
{
	struct hal *hal = dev->hal;
	struct err why;

	if (!hal->page) {
		int code;

		files_own_begin();
		code = hal_page_open(&hal->page, &hal->page_fd, hal->page_path, &why);
		if (code)
			hal->page_fd = -1;
		files_own_end(&hal->page_own, &hal->page_fd);
		if (code) {
			log_warn("not visible to xla-smi: %s", why.msg);
			return;
		}
		hal_server_start(hal);
	}
	if (dev->index >= HAL_PAGE_DEVICES)
		return;
	dev->page_head = hal->page;
	dev->told_submitted = UINT64_MAX;	/* nothing yet: the first look asks */
	dev->page = &hal->page->devices[dev->index];
	*dev->page = (struct hal_page_device){ .is_model = dev->identity.is_model != 0,
		.kind = dev->entry->info.kind, .hbm_bytes = dev->identity.hbm_bytes };
	snprintf(dev->page->bus_id, sizeof(dev->page->bus_id), "%s", dev->entry->info.bus_id);
	snprintf(dev->page->name, sizeof(dev->page->name), "%s", dev->entry->info.name);
	snprintf(dev->page->serial, sizeof(dev->page->serial), "%s", dev->entry->info.serial);
	snprintf(dev->page->driver, sizeof(dev->page->driver), "%s", dev->entry->info.driver);
	snprintf(dev->page->state, sizeof(dev->page->state), "ready");
	place_page(dev);
	if (hal->page->n_devices <= dev->index)
		hal->page->n_devices = dev->index + 1;
}

/* ---- opening and closing ---- */

static int read_limit(struct hal_device *dev, struct err *err)
{
	const char *text = getenv("TESSERA_LIMIT_MS");
	uint64_t ms = 0;

	if (text && *text && !str_read_number(text, 0, UINT64_MAX / 1000000, &ms))
		return err_set(err, ERR_INVALID_ARGUMENT, "TESSERA_LIMIT_MS=%s: how long a program "
			       "may run is a whole number of milliseconds; 0: as long as it likes",
			       text);
	dev->default_limit_ns = ms * 1000000;
	return 0;
}

/* Ends the waiter, perhaps before it told all: whoever asked is told now. With no lock held,
 * because this runs callbacks. */
static void stop_waiter(struct hal_device *dev)
{
	struct err why;

	atomic_store(&dev->quit, true);
	hal_wake_waiter(dev);
	pthread_join(dev->waiter, NULL);
	if (!hal_check(dev, &why))
		err_set(&why, ERR_ABORTED, "%s was closed", dev->entry->info.bus_id);
	for (unsigned i = 0; i < 2; i++) {
		hal_queue_reap(dev->queues[i]);
		hal_queue_fail_all(dev->queues[i], &why);
		hal_queue_reap(dev->queues[i]);
	}
}

/* Under hal.lock; the waiter has ended, or never was. */
static void free_device(struct hal_device *dev)
{
	struct hal_trace *trace;

	hal_server_leave(dev);
	if (dev->tracing && !hal_trace_stop(dev, &trace, NULL))
		hal_trace_free(trace);
	while (dev->exes)
		hal_exe_unload(dev->exes);
	for (unsigned i = 0; i < 2; i++)
		hal_queue_close(dev->queues[i]);
	if (dev->t) {
		hal_memory_close(dev);
		dev->t->ops->close(dev->t);
	}
	if (dev->irq_fd >= 0)
		close(dev->irq_fd);
	if (dev->page)
		memset(dev->page, 0, sizeof(*dev->page));
	pthread_mutex_destroy(&dev->lock);
	pthread_mutex_destroy(&dev->life);
	pthread_mutex_destroy(&dev->exes_lock);
	pthread_mutex_destroy(&dev->trace_lock);
	pthread_mutex_destroy(&dev->death_lock);
	dev->entry->open = NULL;
	free(dev);
}

static int start(struct hal_device *dev, struct err *err)
{
	struct hal_entry *e = dev->entry;
	int code;

	dev->irq_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (dev->irq_fd < 0)
		return err_sys(err, errno, "eventfd");
	if (e->info.kind == HAL_KIND_SIM) {
		code = hal_sim_start(dev->hal, err);
		if (code)
			return code;
		e->host.host = dev->hal->sim;
	}
	code = e->transport->open(&e->host, e->where, dev->irq_fd, &dev->t, &dev->identity,
				  err);
	if (code)
		return code;
	e->info.hbm_bytes = dev->identity.hbm_bytes;
	e->info.cores = dev->identity.cores;
	e->info.is_model = dev->identity.is_model != 0;
	memcpy(e->info.serial, dev->identity.serial, sizeof(e->info.serial) - 1);
	memcpy(e->info.firmware, dev->identity.firmware, sizeof(e->info.firmware) - 1);
	code = hal_hbm_open(dev, err);
	for (unsigned i = 0; !code && i < 2; i++)
		code = hal_queue_open(dev, (enum hal_queue_class)i, err);
	if (code)
		return code;
	join_page(dev);
	if (pthread_create(&dev->waiter, NULL, wait_for_events, dev))
		return err_set(err, ERR_RESOURCE_EXHAUSTED, "could not start a thread");
	return 0;
}

int hal_device_open(struct hal *hal, unsigned index, struct hal_device **out,
		    struct err *err)
{
	struct hal_entry *e;
	struct hal_device *dev;
	int code;

	/* The model's threads, and who has hal.lock, may be the parent's. */
	if (hal_is_inherited(hal))
		return hal_refuse_child(err);
	if (index >= hal->n_entries)
		return err_set(err, ERR_OUT_OF_RANGE, "device %u of %u", index,
			       hal->n_entries);
	e = &hal->entries[index];
	dev = calloc(1, sizeof(*dev));
	if (!dev)
		return err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory");
	pthread_mutex_lock(&hal->lock);
	if (e->open || e->is_bare) {
		pthread_mutex_unlock(&hal->lock);
		free(dev);
		return err_set(err, ERR_FAILED_PRECONDITION, "%s is open already in this "
			       "process", e->info.bus_id);
	}
	dev->hal = hal;
	dev->entry = e;
	dev->index = index;
	dev->irq_fd = -1;
	pthread_mutex_init(&dev->lock, NULL);
	pthread_mutex_init(&dev->life, NULL);
	pthread_mutex_init(&dev->exes_lock, NULL);
	pthread_mutex_init(&dev->trace_lock, NULL);
	pthread_mutex_init(&dev->death_lock, NULL);
	hal_dumps_start(&hal->dumps);
	code = read_limit(dev, err);
	if (!code)
		code = start(dev, err);
	if (code) {
		err_add(err, "opening %s", e->info.bus_id);
		free_device(dev);
	} else {
		e->open = dev;
		hal_links_join(dev);
		hal_server_join(dev);
		*out = dev;
	}
	pthread_mutex_unlock(&hal->lock);
	return code;
}

void hal_device_close(struct hal_device *dev)
{
	struct hal *hal;
	struct err why;

	if (!dev)
		return;
	hal = dev->hal;
	if (hal->generation != hal_generation())
		return;	/* the parent's device: nothing here is ours to end */
	for (unsigned i = 0; i < 2; i++) {
		struct hal_queue *q = dev->queues[i];

		if (hal_queue_wait(q, q->submitted, clock_after(HAL_CLOSE_NS), &why) ==
		    ERR_DEADLINE_EXCEEDED)
			hal_queue_reset(q, "the device is being closed", NULL);
	}
	stop_waiter(dev);
	pthread_mutex_lock(&hal->lock);
	free_device(dev);
	pthread_mutex_unlock(&hal->lock);
}

/* Under every lock of the device: nothing is submitted, reaped or allocated meanwhile. */
static int reset_locked(struct hal_device *dev, struct err *err)
{
	/* What is mapped for DMA stays; the context is new. */
	int code = dev->t->ops->reset(dev->t, err);

	for (struct hal_host_chunk *c = dev->chunks; !code && c; c = c->next)
		code = dev->t->ops->host_again(dev->t, c->va, c->bytes, err);
	for (unsigned i = 0; !code && i < 2; i++)
		code = hal_queue_reopen(dev->queues[i], err);
	if (!code)
		code = hal_trace_renew(dev, err);
	/* The device forgot their programs; hal_exe_reload brings them back. */
	hal_trace_reset(dev);
	for (struct hal_exe *x = dev->exes; x; x = x->next)
		x->program = 0;
	if (!code)
		atomic_store(&dev->is_dead, false);
	if (!code && dev->page)
		snprintf(dev->page->state, sizeof(dev->page->state), "ready");
	if (!code)
		hal_page_tell(dev, 0, "the function was reset");
	return code;
}

int hal_device_reset(struct hal_device *dev, struct err *err)
{
	struct err why, dead;
	int code;

	err_set(&why, ERR_ABORTED, "%s was reset", dev->entry->info.bus_id);
	if (hal_check(dev, NULL) == ERR_FAILED_PRECONDITION)
		return hal_check(dev, err);
	pthread_mutex_lock(&dev->hal->links);
	pthread_mutex_lock(&dev->exes_lock);
	pthread_mutex_lock(&dev->trace_lock);
	pthread_mutex_lock(&dev->life);
	hal_say_stopped(dev, true, why.msg);
	hal_die(dev, &why);
	for (unsigned i = 0; i < 2; i++) {
		hal_queue_fail_all(dev->queues[i], &why);
		pthread_mutex_lock(&dev->queues[i]->lock);
		hal_queue_note_reset(dev->queues[i], &why);
	}
	pthread_mutex_lock(&dev->lock);
	code = reset_locked(dev, err);
	hal_links_forget(dev);
	pthread_mutex_unlock(&dev->lock);
	for (unsigned i = 2; i--;)
		pthread_mutex_unlock(&dev->queues[i]->lock);
	pthread_mutex_unlock(&dev->life);
	pthread_mutex_unlock(&dev->trace_lock);
	for (struct hal_exe *x = dev->exes; !code && x; x = x->next) {
		if (!hal_exe_reload(x, &why))
			continue;
		/* Alive without it the device would take no work of it, ever. */
		code = err_set(&dead, ERR_UNAVAILABLE, "loading %s again after a reset: %.300s",
			       x->name, why.msg);
		hal_die(dev, &dead);
		if (err)
			*err = dead;
	}
	pthread_mutex_unlock(&dev->exes_lock);
	pthread_mutex_unlock(&dev->hal->links);
	return code;
}

int hal_device_inject(struct hal_device *dev, unsigned what, uint64_t value,
		      struct err *err)
{
	int code = hal_check(dev, err);

	return code ? code : dev->t->ops->ask(dev->t, (struct hw_sqe){ .op = HW_INJECT,
		.id = (uint16_t)what, .u.admin.value = value }, NULL, 0, NULL, err);
}

int hal_device_log(struct hal_device *dev, unsigned page, void *out, uint64_t bytes,
		   uint64_t *got, struct err *err)
{
	int code = hal_check(dev, err);
	uint64_t n;

	if (!code)
		code = dev->t->ops->ask(dev->t, (struct hw_sqe){ .op = HW_LOG_PAGE,
			.id = (uint16_t)page }, out, bytes, &n, err);
	if (!code)
		*got = n < bytes ? n : bytes;
	return code;
}

int hal_device_register(struct hal_device *dev, uint32_t offset, uint32_t *value,
			struct err *err)
{
	if (hal_is_orphan(dev))
		return hal_refuse_child(err);
	if (offset % 4 || offset >= HW_MSIX_TABLE)
		return err_set(err, ERR_OUT_OF_RANGE, "0x%x is no register: they are the multiples "
			       "of 4 below 0x%x", offset, HW_MSIX_TABLE);
	if (!dev->t->ops->reg)
		return err_set(err, ERR_UNIMPLEMENTED, "the registers of %s are the kernel "
			       "driver's", dev->entry->info.bus_id);
	*value = dev->t->ops->reg(dev->t, offset);
	return 0;
}

unsigned hal_device_index(const struct hal_device *dev)
{
	return dev->index;
}

/* ---- the HAL ---- */

void hal_destroy(struct hal *hal)
{
	if (!hal)
		return;
	hal_server_stop(hal);
	for (unsigned i = 0; i < hal->n_entries; i++)
		hal_device_close(hal->entries[i].open);
	if (hal->generation == hal_generation())
		sim_destroy(hal->sim);
	files_disown(&hal->page_own);
	hal_page_close(hal->page, hal->page_fd, hal->page_path);
	pthread_mutex_destroy(&hal->lock);
	pthread_mutex_destroy(&hal->page_lock);
	pthread_mutex_destroy(&hal->stopped_lock);
	pthread_mutex_destroy(&hal->ask_lock);
	pthread_mutex_destroy(&hal->across_lock);
	pthread_mutex_destroy(&hal->links);
	if (hal->generation == hal_generation())
		hal_dumps_close(&hal->dumps);
	free(hal->entries);
	free(hal);
}

int hal_create(const struct hal_options *options, struct hal **out, struct err *err)
{
	const char *devices = options && options->devices ? options->devices :
			      getenv("TESSERA_DEVICES");
	const char *sim = options && options->sim ? options->sim : getenv("TESSERA_SIM");
	struct hal *hal = calloc(1, sizeof(*hal));
	int code;

	if (!hal)
		return err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory");
	hal->generation = hal_generation();
	pthread_mutex_init(&hal->lock, NULL);
	pthread_mutex_init(&hal->page_lock, NULL);
	pthread_mutex_init(&hal->stopped_lock, NULL);
	pthread_mutex_init(&hal->ask_lock, NULL);
	pthread_mutex_init(&hal->across_lock, NULL);
	pthread_mutex_init(&hal->links, NULL);
	hal_dumps_open(&hal->dumps);
	snprintf(hal->sim_options, sizeof(hal->sim_options), "%s", sim ? sim : "");
	code = hal_enumerate(hal, devices ? devices : "", err);
	if (code) {
		hal_destroy(hal);
		return code;
	}
	*out = hal;
	return 0;
}

unsigned hal_device_count(const struct hal *hal)
{
	return hal->n_entries;
}

int hal_device_info(const struct hal *hal, unsigned index, struct hal_device_info *out,
		    struct err *err)
{
	if (index >= hal->n_entries)
		return err_set(err, ERR_OUT_OF_RANGE, "device %u of %u", index,
			       hal->n_entries);
	*out = hal->entries[index].info;
	return 0;
}
