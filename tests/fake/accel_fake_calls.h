/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_FAKE_ACCEL_FAKE_CALLS_H
#define TESTS_FAKE_ACCEL_FAKE_CALLS_H
/* The calls of struct accel_sys, and the card's life; included by accel_fake_peers.h. */
#include "tests/fake/accel_fake.h"

/* ---- queries ---- */

static int fake_give(struct drm_tessera_query *a, const void *data, size_t bytes)
{
	if (a->data)
		memcpy((void *)(uintptr_t)a->data, data, a->size < bytes ? a->size : bytes);
	a->size = (uint32_t)bytes;
	return 0;
}

/* Reads a log page to admin page 2; its bytes. */
static int fake_log(uint16_t page, uint64_t *bytes)
{
	struct hw_cqe cqe = { 0 };
	int sysno = fake_request((struct hw_sqe){ .op = HW_LOG_PAGE, .id = page,
		.u.admin.bytes = FAKE_ADMIN_BYTES - 2 * FAKE_PAGE }, NULL, 0, &cqe);

	*bytes = cqe.value;
	return sysno;
}

static int fake_give_of_ctx(struct fake_file *f, struct drm_tessera_query *a)
{
	struct hw_fault *records = (void *)(fake.now->admin + 2 * FAKE_PAGE), mine[64];
	struct drm_tessera_error e = { 0 };
	struct fake_ctx *c = fake_ctx(f, a->ctx);
	uint64_t bytes, n = 0;
	int sysno;

	if (!c)
		return ENOENT;
	e.state = fake_is_lost(c) ? DRM_TESSERA_CTX_LOST : DRM_TESSERA_CTX_OK;
	if (a->type == DRM_TESSERA_QUERY_ERROR)
		return fake_give(a, &e, sizeof(e));
	if (fake_is_lost(c))
		return ECANCELED;
	sysno = fake_log(HW_LOG_FAULT, &bytes);
	for (uint64_t i = 0; !sysno && i < bytes / sizeof(*records); i++)
		if (records[i].ctx == c->hw_id)
			mine[n++] = records[i];
	return sysno ? sysno : fake_give(a, mine, n * sizeof(*mine));
}

static int fake_query(struct fake_file *f, struct drm_tessera_query *a)
{
	struct drm_tessera_device d = {
		.abi = fake.abi, .is_usable = fake.now->is_usable, .queue_entries_max = 65536,
		.submit_max = 1024, .hbm_bytes = fake.now->identity.hbm_bytes,
		.va_first = 1ull << 32, .va_end = 1ull << 47, .function_resets = fake.n_resets,
	};
	struct drm_tessera_clock clock;
	struct drm_tessera_memory m;
	uint64_t bytes;
	int sysno;

	if (a->record_bytes != (a->type == DRM_TESSERA_QUERY_FAULTS ? sizeof(struct hw_fault) :
				a->type == DRM_TESSERA_QUERY_LINKS ? sizeof(struct hw_link) : 0))
		return EINVAL;
	switch (a->type) {
	case DRM_TESSERA_QUERY_DEVICE:
		return a->ctx ? EINVAL : fake_give(a, &d, sizeof(d));
	case DRM_TESSERA_QUERY_IDENTIFY:
		return a->ctx ? EINVAL :
		       fake_give(a, &fake.now->identity, sizeof(fake.now->identity));
	case DRM_TESSERA_QUERY_MEMORY:
		m = fake_memory(f);
		return a->ctx ? EINVAL : fake_give(a, &m, sizeof(m));
	case DRM_TESSERA_QUERY_TELEMETRY:
	case DRM_TESSERA_QUERY_RAS:
		if (a->ctx || !fake.now->is_usable)
			return a->ctx ? EINVAL : ENODEV;
		sysno = fake_log(a->type == DRM_TESSERA_QUERY_RAS ? HW_LOG_RAS :
				 HW_LOG_TELEMETRY, &bytes);
		return sysno ? sysno : fake_give(a, fake.now->admin + 2 * FAKE_PAGE, bytes);
	case DRM_TESSERA_QUERY_LINKS:
		if (fake.abi < 5 || a->ctx)
			return EINVAL;
		return fake_give(a, fake.links, fake.n_links * sizeof(*fake.links));
	case DRM_TESSERA_QUERY_CLOCK:
		clock.device_ns = sim_mmio_read(fake.now->dev, HW_REG_CLOCK, 8);
		return a->ctx ? EINVAL : fake_give(a, &clock, sizeof(clock));
	case DRM_TESSERA_QUERY_ERROR:
	case DRM_TESSERA_QUERY_FAULTS:
		return fake_give_of_ctx(f, a);
	default:
		return EINVAL;
	}
}

/* ---- programs ---- */

static int fake_program_create(struct fake_file *f, struct drm_tessera_program_create *a)
{
	struct hw_program p = { .code_va = a->code_va, .code_bytes = a->code_bytes,
				.bindings_iova = (uintptr_t)fake.now->admin + 3 * FAKE_PAGE,
				.n_bindings = a->n_bindings };
	struct hw_cqe cqe = { 0 };
	struct fake_ctx *c;
	int sysno = fake_find(f, a->ctx, &c);

	a->status = 0;
	if (a->n_bindings > ISA_MAX_BINDINGS || a->zero ||
	    a->binding_bytes != sizeof(struct hw_program_binding))
		return EINVAL;
	if (sysno)
		return sysno;
	p.ctx = c->hw_id;
	memcpy(fake.now->admin + 3 * FAKE_PAGE, (void *)(uintptr_t)a->bindings,
	       a->n_bindings * sizeof(struct hw_program_binding));
	sysno = fake_request((struct hw_sqe){ .op = HW_PROGRAM_CREATE }, &p, sizeof(p), &cqe);
	a->status = cqe.status;
	a->detail = cqe.detail;
	a->id = (uint32_t)cqe.value;
	return sysno;
}

/* ---- traces ---- */

static int fake_trace_start(struct fake_file *f, struct drm_tessera_trace_start *a)
{
	struct hw_trace hw = { .va = a->va, .first = a->first, .n_records = a->n_records };
	uint64_t bytes = (uint64_t)a->n_records * sizeof(struct hw_trace_record);
	struct fake_ctx *c;
	unsigned i = 0;
	int sysno = fake_find(f, a->ctx, &c);

	if (a->zero || a->eventfd < 0 || a->n_records < DRM_TESSERA_TRACE_MIN_RECORDS)
		return EINVAL;
	if (sysno)
		return sysno;
	if (c->trace_event)
		return EBUSY;
	while (i < FAKE_BOS && (!c->map[i].bo || c->map[i].bo->kind == FAKE_HBM ||
				a->va < c->map[i].va ||
				a->va + bytes > c->map[i].va + c->map[i].bo->bytes))
		i++;
	if (i == FAKE_BOS)
		return ENOENT;
	hw.vector = fake_trace_vector(f, c);
	sysno = fake_request((struct hw_sqe){ .op = HW_TRACE_START, .id = c->hw_id }, &hw,
			     sizeof(hw), NULL);
	if (sysno)
		return sysno;
	c->trace_event = dup(a->eventfd);
	c->trace_va = c->map[i].va;
	sim_irq_fd(fake.now->dev, hw.vector, c->trace_event, NULL);
	return 0;
}

static int fake_trace_stop(struct fake_file *f, struct drm_tessera_trace_stop *a)
{
	struct fake_ctx *c = fake_ctx(f, a->ctx);
	struct hw_cqe cqe = { 0 };
	int sysno;

	if (a->zero || !c || !c->trace_event)
		return a->zero ? EINVAL : ENOENT;
	sysno = fake_is_lost(c) ? ECANCELED :
		fake_request((struct hw_sqe){ .op = HW_TRACE_STOP, .id = c->hw_id }, NULL, 0, &cqe);
	fake_trace_forget(f, c);
	a->last = cqe.value;
	return sysno;
}

/* ---- the calls ---- */

static struct fake_file *fake_file(int fd)
{
	for (unsigned i = 0; i < FAKE_FILES; i++)
		if (fd > 0 && fake.file[i].fd == fd)
			return &fake.file[i];
	return NULL;
}

static int fake_take_back(struct fake_file *f, unsigned long request, void *arg)
{
	switch (request) {
	case DRM_IOCTL_GEM_CLOSE:
		return fake_gem_close(f, arg);
	case DRM_IOCTL_SYNCOBJ_DESTROY:
		return ((struct drm_syncobj_destroy *)arg)->handle != 77 || !f->n_syncobj-- ?
		       EINVAL : 0;
	case DRM_IOCTL_TESSERA_CTX_DESTROY:
		if (!fake_ctx(f, ((struct drm_tessera_ctx_destroy *)arg)->id))
			return ENOENT;
		fake_ctx_end(f, ((struct drm_tessera_ctx_destroy *)arg)->id);
		return 0;
	case DRM_IOCTL_TESSERA_QUEUE_DESTROY: {
		uint32_t id = ((struct drm_tessera_queue_id *)arg)->id;

		if (!fake_queue(f, id))
			return ENOENT;
		fake_queue_end(fake_queue(f, id), id);
		return 0;
	}
	case DRM_IOCTL_TESSERA_PROGRAM_DESTROY: {
		struct drm_tessera_program_destroy *a = arg;
		struct fake_ctx *c;
		int sysno = fake_find(f, a->ctx, &c);

		return sysno ? sysno : fake_request((struct hw_sqe){ .op = HW_PROGRAM_DESTROY,
			.u.admin.value = a->id }, NULL, 0, NULL);
	}
	case DRM_IOCTL_TESSERA_TRACE_STOP:
		return fake_trace_stop(f, arg);
	case DRM_IOCTL_TESSERA_UNMAP:
		return fake_unmap(f, arg);
	default:
		return -1;
	}
}

static int fake_give_out(struct fake_file *f, unsigned long request, void *arg)
{
	switch (request) {
	case DRM_IOCTL_TESSERA_QUERY: return fake_query(f, arg);
	case DRM_IOCTL_TESSERA_CTX_CREATE: return fake_ctx_create(f, arg);
	case DRM_IOCTL_TESSERA_BO_CREATE: return fake_bo_create(f, arg);
	case DRM_IOCTL_TESSERA_BO_USERPTR: return fake_userptr(f, arg);
	case DRM_IOCTL_TESSERA_MAP: return fake_map(f, arg);
	case DRM_IOCTL_TESSERA_QUEUE_CREATE: return fake_queue_create(f, arg);
	case DRM_IOCTL_TESSERA_QUEUE_RESET: return fake_queue_reset(f, arg);
	case DRM_IOCTL_TESSERA_TRACE_START: return fake_trace_start(f, arg);
	case DRM_IOCTL_TESSERA_PROGRAM_CREATE: return fake_program_create(f, arg);
	case DRM_IOCTL_PRIME_HANDLE_TO_FD: return fake_export(f, arg);
	case DRM_IOCTL_PRIME_FD_TO_HANDLE: return fake_import(f, arg);
	default: return ENOTTY;
	}
}

static int fake_ioctl(int fd, unsigned long request, void *arg)
{
	struct fake_file *f;
	int sysno;

	pthread_mutex_lock(&fake.lock);
	f = fake_file(fd);
	if (f)
		fake.now = f->card;
	sysno = f ? fake_take_back(f, request, arg) : EBADF;
	if (sysno < 0)
		sysno = fake_fails(request) ? errno : fake_give_out(f, request, arg);
	fake.now = fake.card;
	pthread_mutex_unlock(&fake.lock);
	errno = sysno;
	return sysno ? -1 : 0;
}

static int fake_open(const char *path, int flags)
{
	unsigned i = 0, card = (unsigned)(path[strlen(path) - 1] - '0');

	if (access(path, F_OK))
		return -1;
	if (fake.open_errno || fake_fails(0)) {
		errno = fake.open_errno ? fake.open_errno : errno;
		return -1;
	}
	while (i < FAKE_FILES && fake.file[i].fd)
		i++;
	if (i == FAKE_FILES) {
		errno = EMFILE;
		return -1;
	}
	memset(&fake.file[i], 0, sizeof(fake.file[i]));
	fake.file[i].card = &fake.card[card < fake.n_cards ? card : 0];
	fake.file[i].fd = open(path, flags);
	fake.n_opens++;
	fork_at(fake.file[i].fd, NULL);
	return fake.file[i].fd;
}

/* Ends what the caller left to us, and counts it. */
static int fake_close(int fd)
{
	struct fake_file *f;
	int r;

	fork_at(fd, NULL);
	pthread_mutex_lock(&fake.lock);
	f = fake_file(fd);
	if (!f && fake_close_buf(fd)) {
		r = close(fd);
		goto out;
	}
	fake.now = f->card;
	fake.n_left_behind += f->n_syncobj;
	for (uint32_t i = 1; i <= FAKE_QUEUES; i++)
		fake.n_left_behind += fake_queue(f, i) != NULL;
	for (uint32_t i = 1; i <= FAKE_CTXS; i++)
		if (fake_ctx(f, i)) {
			fake.n_left_behind++;
			fake_ctx_end(f, i);
		}
	for (uint32_t i = 0; i < FAKE_BOS; i++) {
		fake.n_left_behind += f->handle[i] != NULL;
		fake_bo_put(f->handle[i]);
	}
	f->fd = 0;
	fake.n_opens--;
	r = close(fd);
	fake.now = fake.card;
out:
	pthread_mutex_unlock(&fake.lock);
	return r;
}

static drmVersionPtr fake_version(int fd)
{
	drmVersionPtr v;

	if (!fake.driver || !fake_file(fd) || fake_fails(0))
		return NULL;
	v = calloc(1, sizeof(*v));
	v->version_major = DRM_TESSERA_MAJOR;
	v->version_minor = (int)fake.abi;
	v->name = strdup(fake.driver);
	v->name_len = (int)strlen(fake.driver);
	return v;
}

static void *fake_mmap(void *at, size_t bytes, int prot, int flags, int fd, off_t offset)
{
	struct fake_view *view;
	struct fake_bo *bo;
	bool is_hbm;
	void *p;

	pthread_mutex_lock(&fake.lock);
	for (bo = fake.bos; bo && bo->offset != (uint64_t)offset; bo = bo->next)
		;
	p = MAP_FAILED;
	if (!fake_file(fd) || !bo || bo->card != fake_file(fd)->card || bytes != bo->bytes ||
	    flags != MAP_SHARED) {
		errno = EINVAL;
	} else if (bo->kind == FAKE_RING_READ_ONLY && prot & PROT_WRITE) {
		errno = EACCES;
	} else if (!fake_fails(0)) {
		is_hbm = bo->kind == FAKE_HBM;
		p = mmap(at, bytes, prot, MAP_SHARED, is_hbm ? sim_hbm_fd(bo->card->dev) : bo->fd,
			 is_hbm ? (off_t)bo->pa : 0);
	}
	if (p != MAP_FAILED) {
		view = malloc(sizeof(*view));
		*view = (struct fake_view){ p, bytes, bo, fake.views };
		fake.views = view;
		bo->refs++;
	}
	pthread_mutex_unlock(&fake.lock);
	fork_at(-1, p == MAP_FAILED ? NULL : p);
	return p;
}

static int fake_munmap(void *at, size_t bytes)
{
	struct fake_view **link = &fake.views, *view;
	int r = -1;

	forks_join();
	pthread_mutex_lock(&fake.lock);
	while (*link && (*link)->at != at)
		link = &(*link)->next;
	view = *link;
	if (view && view->bytes == bytes) {
		*link = view->next;
		r = munmap(at, bytes);
		fake_bo_put(view->bo);
		free(view);
	}
	pthread_mutex_unlock(&fake.lock);
	return r;
}

/* What the device sees at a page of its registers, which leads nowhere once its queue or context
 * has ended: 0. Under the lock. */
static uint32_t fake_place(const struct fake_bo *bo)
{
	for (unsigned i = 0; i < FAKE_FILES; i++) {
		struct fake_file *f = &fake.file[i];

		for (unsigned k = 0; f->fd && k < FAKE_QUEUES; k++)
			if (f->queue[k].is_used && f->queue[k].bell == bo &&
			    f->queue[k].generation == f->card->generation)
				return hw_doorbell(f->queue[k].hw_id);
		for (unsigned k = 0; f->fd && k < FAKE_CTXS; k++)
			if (f->ctx[k].is_used && f->ctx[k].wake == bo && !fake_is_lost(&f->ctx[k]))
				return hw_wake(f->ctx[k].hw_id);
	}
	return 0;
}

static void fake_store(volatile uint32_t *at, uint32_t value)
{
	struct sim_device *seen = NULL;
	struct fake_view *v;
	uint32_t place;

	*at = value;
	pthread_mutex_lock(&fake.lock);
	for (v = fake.views; v && v->at != (void *)(uintptr_t)at; v = v->next)
		;
	place = v ? fake_place(v->bo) : 0;
	if (place)
		seen = v->bo->card->dev;
	if (place >= HW_WAKE_BASE)
		fake.n_wakes++;
	pthread_mutex_unlock(&fake.lock);
	if (place)
		sim_mmio_write(seen, place, 4, value);
}

/* ---- the card ---- */

static const struct accel_sys fake_sys = {
	.root = fake.root, .open = fake_open, .close = fake_close, .ioctl = fake_ioctl,
	.version = fake_version, .free_version = drmFreeVersion, .mmap = fake_mmap,
	.munmap = fake_munmap, .store = fake_store,
};

/* A file, with its folders, below the root. */
static void fake_put(const char *path, const char *text)
{
	char full[200];
	FILE *f;

	snprintf(full, sizeof(full), "%s%s", fake.root, path);
	for (char *at = full + strlen(fake.root) + 1; (at = strchr(at, '/')); *at++ = '/') {
		*at = 0;
		mkdir(full, 0755);
	}
	f = fopen(full, "w");
	if (!f || fputs(text, f) < 0 || fclose(f))
		abort();
}

/* What the system shows of accelN, bound to `driver`. */
static void fake_put_node(unsigned n, const char *driver)
{
	char path[120], link[200], to[100];

	snprintf(path, sizeof(path), "/dev/accel/accel%u", n);
	fake_put(path, "");
	snprintf(path, sizeof(path), "/sys/class/accel/accel%u/device/numa_node", n);
	fake_put(path, "0\n");
	snprintf(link, sizeof(link), "%s/sys/class/accel/accel%u/device/driver", fake.root, n);
	snprintf(to, sizeof(to), "../../../bus/pci/drivers/%s", driver);
	unlink(link);
	if (symlink(to, link))
		abort();
}

static int fake_start_card(unsigned i, uint64_t hbm_bytes)
{
	struct sim_options o = { .hbm_bytes = hbm_bytes, .lanes = 2, .hbm_file = true };
	struct fake_card *card = &fake.card[i];
	struct err err;

	*card = (struct fake_card){ .generation = 1, .is_usable = 1 };
	if (sim_create(&o, &fake.sim[i], &err))
		return -1;
	card->dev = sim_device(fake.sim[i], 0);
	card->admin = mmap(NULL, FAKE_ADMIN_BYTES, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (card->admin == MAP_FAILED || sim_dma_map(card->dev, (uintptr_t)card->admin,
						     card->admin, FAKE_ADMIN_BYTES, true, &err))
		return -1;
	fake_put_node(i, "tessera");
	fake.now = card;
	return fake_bring_up();
}

/* Each is of a model of its own: there are no links. */
static inline int fake_open_cards(unsigned n, uint64_t hbm_bytes)
{
	int r = 0;

	snprintf(fake.root, sizeof(fake.root), "/tmp/tessera-fake-XXXXXX");
	if (n > FAKE_CARDS || !mkdtemp(fake.root))
		return -1;
	fake.driver = "tessera";
	fake.abi = DRM_TESSERA_ABI;
	fake.fail_errno = ENOMEM;
	fake_put("/sys/module/tessera/version", "0.1\n");
	for (fake.n_cards = 0; !r && fake.n_cards < n; fake.n_cards++)
		r = fake_start_card(fake.n_cards, hbm_bytes);
	fake.now = fake.card;
	accel_sys = &fake_sys;
	return r;
}

static inline int fake_open_card(uint64_t hbm_bytes)
{
	return fake_open_cards(1, hbm_bytes);
}

/* Whether the HAL has given everything back; says what it has not. */
static inline bool fake_is_empty(void)
{
	if (!fake.n_opens && !fake.views && !fake.bos && !fake.n_left_behind)
		return true;
	fprintf(stderr, "left behind: %u files, %s views, %s buffers, %u handles\n", fake.n_opens,
		fake.views ? "some" : "no", fake.bos ? "some" : "no", fake.n_left_behind);
	return false;
}

static void fake_close_card(void)
{
	char command[100];

	for (unsigned i = 0; i < fake.n_cards; i++) {
		sim_destroy(fake.sim[i]);
		munmap(fake.card[i].admin, FAKE_ADMIN_BYTES);
	}
	snprintf(command, sizeof(command), "rm -r %s", fake.root);
	if (system(command))
		fprintf(stderr, "%s failed\n", command);
}

#endif
