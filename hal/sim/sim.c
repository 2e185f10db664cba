/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A simulation's life: options, devices with their HBM and
 * threads, function reset. Nothing here is on a hot path.
 */
#include "hal/sim/sim.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "hal/sim/sim_internal.h"

#define MAX_DEVICES 64u
#define HBM_UNIT ((uint64_t)2 << 20)
#define HBM_DEFAULT ((uint64_t)4 << 30)
#define HBM_MOST ((uint64_t)1 << 44)

/* ---- options ---- */

/* "8G", "512M", "4096": bytes; 0 if it is no size. */
static uint64_t parse_size(const char *text)
{
	char *end;
	unsigned long long n;
	int shift = 0;

	errno = 0;
	n = strtoull(text, &end, 10);
	if (end == text || errno)
		return 0;
	switch (*end) {
	case 'K': shift = 10; end++; break;
	case 'M': shift = 20; end++; break;
	case 'G': shift = 30; end++; break;
	case 'T': shift = 40; end++; break;
	default: break;
	}
	return *end || n > UINT64_MAX >> shift ? 0 : n << shift;
}

static int parse_word(const char *word, struct sim_options *out, struct err *err)
{
	static const char *const paths[] = { "portable", "avx2", "avx512" };
	uint64_t n;

	if (!strncmp(word, "devices=", 8)) {
		n = parse_size(word + 8);
		if (n < 1 || n > MAX_DEVICES)
			return err_set(err, ERR_INVALID_ARGUMENT,
				       "\"%s\": give 1 to %u devices", word, MAX_DEVICES);
		out->n_devices = (unsigned)n;
	} else if (!strncmp(word, "hbm=", 4)) {
		n = parse_size(word + 4);
		if (n < HBM_UNIT || n > HBM_MOST || n % HBM_UNIT)
			return err_set(err, ERR_INVALID_ARGUMENT, "\"%s\": give a multiple "
				       "of 2M, such as hbm=4G", word);
		out->hbm_bytes = n;
	} else if (!strncmp(word, "lanes=", 6)) {
		n = parse_size(word + 6);
		if (n < 1 || n > SIM_MAX_LANES)
			return err_set(err, ERR_INVALID_ARGUMENT,
				       "\"%s\": give 1 to %u lanes", word, SIM_MAX_LANES);
		out->lanes = (unsigned)n;
	} else if (!strcmp(word, "check")) {
		out->check = true;
	} else if (!strncmp(word, "path=", 5)) {
		for (unsigned i = 0; i < 3; i++)
			if (!strcmp(word + 5, paths[i])) {
				out->isa_path = paths[i];
				return 0;
			}
		return err_set(err, ERR_INVALID_ARGUMENT,
			       "\"%s\": give portable, avx2 or avx512", word);
	} else {
		return err_set(err, ERR_INVALID_ARGUMENT, "\"%s\" is no option of the "
			       "model: devices=N, hbm=SIZE, lanes=N, path=NAME, check",
			       word);
	}
	return 0;
}

int sim_options_parse(const char *text, struct sim_options *out, struct err *err)
{
	struct sim_options got = { 0 };
	char copy[256], *save = NULL;
	int code;

	if (text && strlen(text) >= sizeof(copy))
		return err_set(err, ERR_INVALID_ARGUMENT, "the model's options are longer "
			       "than %zu characters", sizeof(copy) - 1);
	snprintf(copy, sizeof(copy), "%s", text ? text : "");
	for (char *w = strtok_r(copy, ",", &save); w; w = strtok_r(NULL, ",", &save)) {
		code = parse_word(w, &got, err);
		if (code)
			return code;
	}
	*out = got;
	return 0;
}

/* ---- the host ---- */

static unsigned usable_cpus(void)
{
	cpu_set_t set;
	int n;

	if (sched_getaffinity(0, sizeof(set), &set))
		return 1;
	n = CPU_COUNT(&set);
	return n < 1 ? 1 : n > (int)SIM_MAX_LANES ? SIM_MAX_LANES : (unsigned)n;
}

/* ---- devices ---- */

/* Stops runs that passed their deadline, and sees to turns. Sleeps until the earliest time at
 * which there is something to do; begin() wakes it for one that is earlier still. A run that
 * ends leaves it to wake for nothing once. */
static void *watch(void *arg)
{
	struct sim_device *dev = arg;

	pthread_mutex_lock(&dev->lock);
	while (!dev->quit) {
		int64_t next = CLOCK_FOREVER, now = clock_ns();
		struct timespec t;

		sim_runs_look(dev, now, &next);
		dev->watch_until = next;
		t = clock_spec(next);
		if (next == CLOCK_FOREVER)
			pthread_cond_wait(&dev->timer, &dev->lock);
		else
			pthread_cond_timedwait(&dev->timer, &dev->lock, &t);
	}
	pthread_mutex_unlock(&dev->lock);
	return NULL;
}

/* A memfd of fixed size, so that whom it is handed cannot take pages from under us. */
static int make_hbm_fd(uint64_t bytes, int *out, struct err *err)
{
	int code = 0, fd = memfd_create("tessera-hbm", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0)
		return err_sys(err, errno, "memfd for the model's HBM");
	if (ftruncate(fd, (off_t)bytes) ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
		code = err_sys(err, errno, "%llu bytes of HBM for the model",
			       (unsigned long long)bytes);
	if (code)
		close(fd);
	else
		*out = fd;
	return code;
}

/* Puts new, zeroed HBM where dev->hbm is: the file, or without one (-1) memory of this process. */
static int map_hbm(struct sim_device *dev, int fd, struct err *err)
{
	int kind = fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;

	if (mmap(dev->hbm, dev->hbm_bytes, PROT_READ | PROT_WRITE,
		 kind | MAP_NORESERVE | MAP_FIXED, fd, 0) == MAP_FAILED)
		return err_sys(err, errno, "mapping %llu bytes of HBM; ask for less: "
			       "TESSERA_SIM=hbm=1G", (unsigned long long)dev->hbm_bytes);
	madvise(dev->hbm, dev->hbm_bytes, MADV_HUGEPAGE);
	/* The device writes here: a child of fork must not make it copy-on-write. */
	if (fd < 0)
		madvise(dev->hbm, dev->hbm_bytes, MADV_DONTFORK);
	return 0;
}

static int make_hbm(struct sim_device *dev, uint64_t bytes, bool has_file, struct err *err)
{
	int code = has_file ? make_hbm_fd(bytes, &dev->hbm_fd, err) : 0;
	uint64_t before;
	uint8_t *room;

	if (code)
		return code;
	/* Huge pages begin at multiples of HBM_UNIT. */
	room = mmap(NULL, bytes + HBM_UNIT, has_file ? PROT_NONE : PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	/* A process may be limited in what memory it can come to use, and not in files. */
	if (room == MAP_FAILED && !has_file)
		return make_hbm(dev, bytes, true, err);
	if (room == MAP_FAILED)
		return err_sys(err, errno, "room for %llu bytes of HBM; ask for less: "
			       "TESSERA_SIM=hbm=1G", (unsigned long long)bytes);
	before = -(uintptr_t)room % HBM_UNIT;
	if (before)
		munmap(room, before);
	munmap(room + before + bytes, HBM_UNIT - before);
	dev->hbm = room + before;
	dev->hbm_bytes = bytes;
	return map_hbm(dev, dev->hbm_fd, err);
}

int sim_hbm_renew(struct sim_device *dev, struct err *err)
{
	int fd = -1, code = 0;

	pthread_mutex_lock(&dev->admin_lock);
	if (dev->hbm_fd >= 0)
		code = make_hbm_fd(dev->hbm_bytes, &fd, err);
	if (!code)
		code = map_hbm(dev, fd, err);
	if (!code) {
		if (dev->hbm_fd >= 0)
			close(dev->hbm_fd);
		dev->hbm_fd = fd;
		sim_discard(dev, 0, dev->hbm_bytes);
		sim_cells_mend(&dev->cells);
	} else if (fd >= 0) {
		close(fd);
	}
	pthread_mutex_unlock(&dev->admin_lock);
	return code;
}

static int make_device(struct sim *sim, unsigned number, uint64_t hbm_bytes,
		       const struct sim_options *options, struct err *err)
{
	struct sim_device *dev = &sim->devices[number];
	unsigned index = number / sim->n_functions;
	struct sim_turns *turns = sim->turns ? &sim->turns[2 * index] : NULL;
	pthread_condattr_t attr;
	int code;

	dev->sim = sim;
	dev->index = index;
	dev->hbm_fd = -1;
	pthread_mutex_init(&dev->admin_lock, NULL);
	pthread_mutex_init(&dev->lock, NULL);
	pthread_mutex_init(&dev->cells.lock, NULL);
	pthread_mutex_init(&dev->poison.lock, NULL);
	pthread_cond_init(&dev->idle, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&dev->timer, &attr);
	pthread_condattr_destroy(&attr);
	for (unsigned i = 0; i < HW_MAX_VECTORS; i++)
		dev->vectors[i].fd = -1;
	dev->watch_until = CLOCK_FOREVER;
	dev->power_on = clock_ns();
	sim_power_on(dev);
	code = make_hbm(dev, hbm_bytes, options->hbm_file, err);
	dev->cells.hbm = dev->hbm;
	dev->cells.bytes = code ? 0 : hbm_bytes;
	if (!code && options->check)
		code = sim_watch_start(&dev->watch, dev->hbm, dev->hbm_bytes, err);
	if (code)
		return code;
	if (sim_engine_init(dev, &dev->engines[0], HW_CLASS_COMPUTE, turns) ||
	    sim_engine_init(dev, &dev->engines[1], HW_CLASS_DMA, turns ? turns + 1 : NULL) ||
	    pthread_create(&dev->watchdog, NULL, watch, dev))
		return err_set(err, ERR_RESOURCE_EXHAUSTED,
			       "could not start the watchdog of model device %u", index);
	dev->has_watchdog = true;
	return 0;
}

/* Nothing runs on any device. */
static void free_device(struct sim_device *dev)
{
	if (!dev->sim)
		return;
	pthread_mutex_lock(&dev->lock);
	dev->quit = true;
	pthread_cond_broadcast(&dev->timer);
	pthread_mutex_unlock(&dev->lock);
	sim_engine_free(&dev->engines[0]);
	sim_engine_free(&dev->engines[1]);
	if (dev->has_watchdog)
		pthread_join(dev->watchdog, NULL);
	sim_dma_free(dev);
	sim_poison_clear(dev);
	sim_watch_end(&dev->watch);
	if (dev->hbm)
		munmap(dev->hbm, dev->hbm_bytes);
	if (dev->hbm_fd >= 0)
		close(dev->hbm_fd);
	pthread_mutex_destroy(&dev->admin_lock);
	pthread_mutex_destroy(&dev->lock);
	pthread_mutex_destroy(&dev->cells.lock);
	pthread_mutex_destroy(&dev->poison.lock);
	pthread_cond_destroy(&dev->idle);
	pthread_cond_destroy(&dev->timer);
}

static int make_turns(struct sim *sim, struct err *err)
{
	sim->turns = calloc(sim->n_cards, 2 * sizeof(*sim->turns));
	if (!sim->turns)
		return err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory for the model");
	for (unsigned i = 0; i < 2 * sim->n_cards; i++)
		sim_turns_init(&sim->turns[i]);
	return 0;
}

int sim_create(const struct sim_options *options, struct sim **out, struct err *err)
{
	unsigned n_cards = options->n_devices ? options->n_devices : 1;
	unsigned n_functions = options->n_functions ? options->n_functions : 1;
	unsigned n = n_cards * n_functions;
	uint64_t hbm = options->hbm_bytes ? options->hbm_bytes : HBM_DEFAULT;
	struct sim *sim;
	int code;

	if (n_cards > MAX_DEVICES || n_functions > MAX_DEVICES || n > MAX_DEVICES ||
	    hbm % (n_functions * HBM_UNIT) || hbm > HBM_MOST || options->lanes > SIM_MAX_LANES)
		return err_set(err, ERR_INVALID_ARGUMENT, "a model of %u devices with %u "
			       "functions, %llu bytes of HBM and %u lanes", n_cards, n_functions,
			       (unsigned long long)hbm, options->lanes);
	sim = calloc(1, sizeof(*sim));
	if (!sim)
		return err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory for the model");
	/* A card that is shared is linked with none: whose work would its peers wait for? */
	sim_fabric_init(sim, n_functions > 1 ? 1 : n_cards);
	sim_cpu_detect(&sim->cpu);
	sim->cpu.lanes = options->lanes ? options->lanes : usable_cpus();
	sim->spins = usable_cpus() > 1;
	/* Who looks takes a CPU from those who work. */
	sim->crew.most = usable_cpus() > 3 ? usable_cpus() / 2 : 1;
	sim->n_cards = n_cards;
	sim->n_functions = n_functions;
	code = options->isa_path ? sim_cpu_cap(&sim->cpu, options->isa_path, err) : 0;
	if (!code)
		code = sim_pool_create(sim->cpu.lanes, sim->spins, &sim->pool, err);
	if (!code && n_functions > 1)
		code = make_turns(sim, err);
	sim->devices = code ? NULL : aligned_alloc(_Alignof(struct sim_device),
						   n * sizeof(*sim->devices));
	if (sim->devices)
		memset(sim->devices, 0, n * sizeof(*sim->devices));
	if (!code && !sim->devices)
		code = err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory for the model");
	for (unsigned i = 0; !code && i < n; i++) {
		sim->n_devices = i + 1;
		code = make_device(sim, i, hbm / n_functions, options, err);
	}
	for (unsigned i = 0; !code && i < n; i++)
		sim_links_init(&sim->devices[i]);
	if (!code && sim_crew_start(sim))
		code = err_set(err, ERR_RESOURCE_EXHAUSTED,
			       "could not start the threads of %u model devices", n);
	if (code) {
		sim_destroy(sim);
		return code;
	}
	*out = sim;
	return 0;
}

void sim_destroy(struct sim *sim)
{
	if (!sim)
		return;
	/* All of them first: they write to each other's memory. */
	for (unsigned i = 0; i < sim->n_devices; i++)
		if (sim->devices[i].sim)
			sim_clear(&sim->devices[i]);
	sim_crew_stop(sim);
	for (unsigned i = 0; i < sim->n_devices; i++)
		free_device(&sim->devices[i]);
	for (unsigned i = 0; sim->turns && i < 2 * sim->n_cards; i++)
		sim_turns_destroy(&sim->turns[i]);
	free(sim->turns);
	sim_fabric_free(sim);
	sim_pool_destroy(sim->pool);
	free(sim->devices);
	free(sim);
}

unsigned sim_device_count(const struct sim *sim)
{
	return sim->n_cards;
}

unsigned sim_function_count(const struct sim *sim)
{
	return sim->n_functions;
}

struct sim_device *sim_device(struct sim *sim, unsigned index)
{
	return sim_function(sim, index, 0);
}

struct sim_device *sim_function(struct sim *sim, unsigned index, unsigned function)
{
	return index < sim->n_cards && function < sim->n_functions ?
	       &sim->devices[index * sim->n_functions + function] : NULL;
}

void *sim_hbm(struct sim_device *dev, uint64_t *bytes)
{
	*bytes = dev->hbm_bytes;
	return dev->hbm;
}

int sim_hbm_fd(struct sim_device *dev)
{
	return dev->hbm_fd;
}

bool sim_is_checked(const struct sim_device *dev)
{
	return dev->watch.written;
}

void sim_discard(struct sim_device *dev, uint64_t offset, uint64_t bytes)
{
	sim_watch_discard(&dev->watch, offset, bytes);
}
