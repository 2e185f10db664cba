/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Registers and queue 0. One request is on its way at a time, under admin.lock, its
 * arguments in memory that was allocated at probe: requests that end work are on the
 * way to fences, so nothing here allocates.
 *
 * Whether the device takes requests at all is decided here (state, generation); who
 * asks for something that a function reset took away gets ECANCELED.
 */
#include <linux/delay.h>
#include <linux/dma-mapping.h>
#include <linux/io.h>

#include <drm/drm_drv.h>
#include <drm/drm_print.h>

#include "tessera_drv.h"

#define PAGE ((size_t)HW_PAGE)
#define ARGS (2 * PAGE)
#define ARGS2 (3 * PAGE)
#define DISABLE_US 1000000u

/* The codes of fault.def as errnos. */
#define ERR_OK 0
#define ERR_INVALID_ARGUMENT (-EINVAL)
#define ERR_NOT_FOUND (-ENOENT)
#define ERR_RESOURCE_EXHAUSTED (-ENOSPC)
#define ERR_ALREADY_EXISTS (-EEXIST)
#define ERR_FAILED_PRECONDITION (-EBUSY)
#define ERR_UNIMPLEMENTED (-EOPNOTSUPP)
#define ERR_ABORTED (-ECANCELED)
#define ERR_INTERNAL (-EIO)
#define ERR_DEADLINE_EXCEEDED (-ETIME)
#define ERR_DATA_LOSS (-EBADMSG)
#define ERR_UNAVAILABLE (-ENODEV)

static const struct {
	int error;
	const char *name, *text;
} statuses[] = {
#define FAULT(name, number, code, text) \
	[number] = { ERR_##code, #name, text },
#include "hal/hw/fault.def"
#undef FAULT
};

int tessera_status_errno(unsigned int status)
{
	return status < ARRAY_SIZE(statuses) && statuses[status].name ?
	       statuses[status].error : -EIO;
}

const char *tessera_status_name(unsigned int status)
{
	return status < ARRAY_SIZE(statuses) && statuses[status].name ?
	       statuses[status].name : "unknown";
}

const char *tessera_status_text(unsigned int status)
{
	return status < ARRAY_SIZE(statuses) && statuses[status].text ?
	       statuses[status].text : "a status that this driver does not know";
}

u32 tessera_read(struct tessera_device *tdev, u32 offset)
{
	return readl(tdev->regs + offset);
}

u64 tessera_read64(struct tessera_device *tdev, u32 offset)
{
	u32 high = tessera_read(tdev, offset + 4), low = tessera_read(tdev, offset);
	u32 now = tessera_read(tdev, offset + 4);

	/* The low half went round between the two: it has just begun anew. */
	if (now != high)
		low = tessera_read(tdev, offset);
	return low | (u64)now << 32;
}

void tessera_write(struct tessera_device *tdev, u32 offset, u32 value)
{
	writel(value, tdev->regs + offset);
}

static void write64(struct tessera_device *tdev, u32 offset, u64 value)
{
	tessera_write(tdev, offset, lower_32_bits(value));
	tessera_write(tdev, offset + 4, upper_32_bits(value));
}

static bool has_answer(struct tessera_admin *a)
{
	struct hw_cqe *cqe = (struct hw_cqe *)(a->memory + PAGE) +
			     a->head % TESSERA_ADMIN_ENTRIES;
	u16 phase = (a->head / TESSERA_ADMIN_ENTRIES + 1) & 1;

	return (READ_ONCE(cqe->phase) & 1) == phase;
}

/* Looks every few milliseconds too: an interrupt may be lost. */
static int await_answer(struct tessera_device *tdev)
{
	struct tessera_admin *a = &tdev->admin;
	unsigned long deadline = jiffies + msecs_to_jiffies(TESSERA_ADMIN_MS);
	u32 status;

	while (!wait_event_timeout(a->wait, has_answer(a), msecs_to_jiffies(10))) {
		status = tessera_read(tdev, HW_REG_STATUS);
		if (status == ~0u || status & HW_STATUS_FATAL)
			return has_answer(a) ? 0 : -EIO;
		if (time_after(jiffies, deadline))
			return -ETIMEDOUT;
	}
	return 0;
}

static int send(struct tessera_device *tdev, struct tessera_request *r)
{
	struct tessera_admin *a = &tdev->admin;
	struct hw_sqe *sqe = &r->sqe;
	struct hw_cqe cqe;
	int ret;

	lockdep_assert_held(&a->lock);
	if (r->in_bytes > PAGE || r->in2_bytes > a->bytes - ARGS2 ||
	    r->out_bytes > a->bytes - ARGS)
		return -EINVAL;
	if (r->in)
		memcpy(a->memory + ARGS, r->in, r->in_bytes);
	if (r->in2)
		memcpy(a->memory + ARGS2, r->in2, r->in2_bytes);
	sqe->flags = HW_IRQ;
	sqe->tag = a->tail;
	sqe->u.admin.addr = a->iova + ARGS;
	if (r->out)
		sqe->u.admin.bytes = r->out_bytes;
	((struct hw_sqe *)a->memory)[a->tail % TESSERA_ADMIN_ENTRIES] = *sqe;
	a->tail++;
	/* writel orders the descriptor before the doorbell. */
	tessera_write(tdev, hw_doorbell(0), a->tail);
	ret = await_answer(tdev);
	if (ret)
		return ret;
	dma_rmb();
	cqe = ((struct hw_cqe *)(a->memory + PAGE))[a->head % TESSERA_ADMIN_ENTRIES];
	a->head++;
	if (cqe.tag != sqe->tag)
		return -EBADMSG;
	r->status = cqe.status;
	r->value = cqe.value;
	r->detail = cqe.detail;
	if (!cqe.status && r->out)
		memcpy(r->out, a->memory + ARGS, r->out_bytes);
	return tessera_status_errno(cqe.status);
}

/*
 * Ids are believed only if they are new ones of those that there can be: a queue's is a
 * page of BAR0 that its owner maps, a context's is an address map, and who has a program may
 * end it.
 */
static int note_id(struct tessera_admin *a, const struct tessera_request *r)
{
	const struct hw_queue *queue = r->in;
	const struct hw_program *program = r->in;

	switch (r->sqe.op) {
	case HW_CTX_CREATE:
		if (!r->value || r->value >= HW_MAX_CONTEXTS ||
		    __test_and_set_bit(r->value, a->ctxs))
			return -EBADR;
		return 0;
	case HW_QUEUE_CREATE:
		if (!r->value || r->value >= HW_MAX_QUEUES || a->ctx_of_queue[r->value])
			return -EBADR;
		a->ctx_of_queue[r->value] = queue->ctx;
		return 0;
	case HW_PROGRAM_CREATE:
		if (!r->value || r->value >= TESSERA_PROGRAMS || a->ctx_of_program[r->value])
			return -EBADR;
		a->ctx_of_program[r->value] = program->ctx;
		return 0;
	default:
		return 0;
	}
}

static void forget_ids(struct tessera_admin *a, const struct tessera_request *r)
{
	u64 program = r->sqe.u.admin.value;
	unsigned int i;

	if (r->sqe.op == HW_QUEUE_DESTROY && r->sqe.id < HW_MAX_QUEUES)
		a->ctx_of_queue[r->sqe.id] = 0;
	if (r->sqe.op == HW_PROGRAM_DESTROY && program < TESSERA_PROGRAMS)
		a->ctx_of_program[program] = 0;
	if (r->sqe.op != HW_CTX_DESTROY || r->sqe.id >= HW_MAX_CONTEXTS)
		return;
	__clear_bit(r->sqe.id, a->ctxs);
	for (i = 0; i < HW_MAX_QUEUES; i++) {
		if (a->ctx_of_queue[i] == r->sqe.id)
			a->ctx_of_queue[i] = 0;
	}
	for (i = 0; i < TESSERA_PROGRAMS; i++) {
		if (a->ctx_of_program[i] == r->sqe.id)
			a->ctx_of_program[i] = 0;
	}
}

/* A device that breaks its contract is reset. The errno for who asked. */
static int distrust(struct tessera_device *tdev, int ret)
{
	switch (ret) {
	case -ETIMEDOUT:
		tessera_reset_begin(tdev, "a request was not answered");
		return ret;
	case -EIO:	/* a fatal device answers nobody */
		tessera_reset_begin(tdev, "fatal state");
		return -ECANCELED;
	case -EBADMSG:
		tessera_reset_begin(tdev, "an answer to another request");
		return -ECANCELED;
	case -EPROTO:
		tessera_reset_begin(tdev, "an answer that no request has");
		return -ECANCELED;
	case -EBADR:
		tessera_reset_begin(tdev, "the device gave a number that cannot be");
		return -ECANCELED;
	default:
		return ret;
	}
}

static int refusal(struct tessera_device *tdev, u32 generation)
{
	switch (tdev->state) {
	case TESSERA_RUNNING:
		return generation && generation != tdev->generation ? -ECANCELED : 0;
	case TESSERA_STARTING:
	case TESSERA_RESET_DUE:
	case TESSERA_RESETTING:
		return -ECANCELED;
	default:
		return -ENODEV;
	}
}

/* Under admin.lock: a late answer must find nobody who waits for another. */
static int ask(struct tessera_device *tdev, u32 generation, struct tessera_request *r)
{
	int ret = refusal(tdev, generation);

	if (ret)
		return ret;
	ret = send(tdev, r);
	/* Callers take these for ours (refusal), and what they named for lost. */
	if (r->status && (ret == -ECANCELED || ret == -ENODEV)) {
		r->status = 0;
		ret = -EPROTO;
	}
	if (!ret)
		ret = note_id(&tdev->admin, r);
	if (!ret)
		forget_ids(&tdev->admin, r);
	return ret && !r->status ? distrust(tdev, ret) : ret;
}

int tessera_request(struct tessera_device *tdev, u32 generation,
		    struct tessera_request *r)
{
	int ret, idx;

	r->status = 0;
	if (!drm_dev_enter(&tdev->drm, &idx))
		return -ENODEV;
	mutex_lock(&tdev->admin.lock);
	ret = ask(tdev, generation, r);
	mutex_unlock(&tdev->admin.lock);
	drm_dev_exit(idx);
	return ret;
}

int tessera_simple(struct tessera_device *tdev, u32 generation, u8 op, u16 id,
		   u64 *value)
{
	struct tessera_request r = { .sqe = { .op = op, .id = id } };
	int ret;

	if (value)
		r.sqe.u.admin.value = *value;
	ret = tessera_request(tdev, generation, &r);
	if (!ret && value)
		*value = r.value;
	return ret;
}

int tessera_begin_end(struct tessera_device *tdev, u32 generation, u8 op, u16 id)
{
	int ret = tessera_simple(tdev, generation, op, id, NULL);

	/* Lost already, or about to be; anything else is a device that lies. */
	if (ret && ret != -ECANCELED && ret != -ENODEV && ret != -ETIMEDOUT)
		tessera_reset_begin(tdev, "something of ours could not be ended");
	return ret;
}

void tessera_make_end(struct tessera_device *tdev, u32 generation, u8 op, u16 id)
{
	if (tessera_begin_end(tdev, generation, op, id))
		tessera_settle(tdev);
}

void tessera_reset_queues(struct tessera_device *tdev, u32 generation, u16 ctx)
{
	unsigned int i;
	int idx;

	if (!drm_dev_enter(&tdev->drm, &idx))
		return;
	for (i = 1; i < HW_MAX_QUEUES; i++) {
		struct tessera_request r = { .sqe = { .op = HW_QUEUE_RESET, .id = i } };

		/* In one: a queue that ends meanwhile leaves its number to another's. */
		mutex_lock(&tdev->admin.lock);
		if (tdev->admin.ctx_of_queue[i] == ctx && !ask(tdev, generation, &r))
			atomic64_inc(&tdev->queue_resets);
		mutex_unlock(&tdev->admin.lock);
	}
	drm_dev_exit(idx);
}

void tessera_cut_off(struct tessera_device *tdev, u32 generation)
{
	mutex_lock(&tdev->admin.lock);
	/* Another generation's end has done it. */
	if (tdev->generation == generation && tdev->state != TESSERA_RUNNING)
		tessera_disable(tdev);
	mutex_unlock(&tdev->admin.lock);
}

/* Waits for bits of a register; all ones (no device) end it too. */
static int await_clear(struct tessera_device *tdev, u32 offset, u32 bits)
{
	unsigned long deadline = jiffies + usecs_to_jiffies(DISABLE_US);
	u32 value;

	for (;;) {
		value = tessera_read(tdev, offset);
		if (value == ~0u)
			return -ENODEV;
		if (!(value & bits))
			return 0;
		if (time_after(jiffies, deadline))
			return -ETIMEDOUT;
		usleep_range(50, 200);
	}
}

void tessera_disable(struct tessera_device *tdev)
{
	lockdep_assert_held(&tdev->admin.lock);
	tessera_write(tdev, HW_REG_CTRL, 0);
	await_clear(tdev, HW_REG_STATUS, HW_STATUS_READY | HW_STATUS_RESETTING);
	/* Whatever the registers said: nothing reaches memory from here on. */
	pci_clear_master(tdev->pdev);
}

/* Kept from the first time: others read it without a lock. */
static int identify(struct tessera_device *tdev)
{
	struct hw_identify it, *id = &it;
	struct tessera_request r = {
		.sqe = { .op = HW_IDENTIFY }, .out = id, .out_bytes = sizeof(*id),
	};
	int ret = send(tdev, &r);

	if (ret) {
		drm_err(&tdev->drm, "IDENTIFY failed: %d (%s)\n", ret,
			tessera_status_name(r.status));
		return ret;
	}
	if (id->magic != HW_IDENTIFY_MAGIC || id->isa != ISA_VERSION) {
		drm_err(&tdev->drm, "the device speaks ISA %u, this driver ISA %u\n",
			id->isa, ISA_VERSION);
		return -ENODEV;
	}
	if (id->max_contexts >= HW_MAX_CONTEXTS || id->max_queues > HW_MAX_QUEUES ||
	    id->max_queues < 2 || !id->max_contexts || id->max_programs >= TESSERA_PROGRAMS) {
		drm_err(&tdev->drm, "the device says: %u contexts, %u queues, %u programs\n",
			id->max_contexts, id->max_queues, id->max_programs);
		return -ENODEV;
	}
	id->name[sizeof(id->name) - 1] = 0;
	id->serial[sizeof(id->serial) - 1] = 0;
	id->firmware[sizeof(id->firmware) - 1] = 0;
	if (!tdev->identity.magic) {
		tdev->identity = *id;
	} else if (id->hbm_bytes != tdev->identity.hbm_bytes ||
		   strcmp(id->serial, tdev->identity.serial)) {
		drm_err(&tdev->drm, "%s with %llu bytes of HBM came back as %s with %llu\n",
			tdev->identity.serial, tdev->identity.hbm_bytes, id->serial,
			id->hbm_bytes);
		return -ENODEV;
	}
	return 0;
}

/* What work has that names no limit, and the most that it may name. */
static int set_limits(struct tessera_device *tdev)
{
	static const u16 features[] = { HW_FEATURE_DEFAULT_LIMIT_NS,
					HW_FEATURE_MAX_LIMIT_NS };
	unsigned int i;
	int ret = 0;

	for (i = 0; i < ARRAY_SIZE(features) && !ret; i++) {
		struct tessera_request r = {
			.sqe = { .op = HW_SET_FEATURE, .id = features[i],
				 .u.admin.value = (u64)tessera_limit_ms * NSEC_PER_MSEC },
		};

		ret = send(tdev, &r);
	}
	return ret;
}

int tessera_bring_up(struct tessera_device *tdev)
{
	struct tessera_admin *a = &tdev->admin;
	u32 status;
	int ret;

	lockdep_assert_held(&a->lock);
	if (tessera_read(tdev, HW_REG_ID) != (HW_PCI_VENDOR | HW_PCI_DEVICE << 16)) {
		drm_err(&tdev->drm, "the ID register reads 0x%08x: no T1 is there\n",
			tessera_read(tdev, HW_REG_ID));
		return -ENODEV;
	}
	memset(a->memory, 0, a->bytes);
	bitmap_zero(a->ctxs, HW_MAX_CONTEXTS);
	memset(a->ctx_of_queue, 0, sizeof(a->ctx_of_queue));
	memset(a->ctx_of_program, 0, TESSERA_PROGRAMS);
	a->tail = 0;
	a->head = 0;
	pci_set_master(tdev->pdev);
	write64(tdev, HW_REG_ASQ, a->iova);
	write64(tdev, HW_REG_ACQ, a->iova + PAGE);
	tessera_write(tdev, HW_REG_AQSIZE, TESSERA_ADMIN_ENTRIES);
	tessera_write(tdev, HW_REG_AVECTOR, tdev->n_vectors ? 0 : HW_NO_VECTOR);
	tessera_write(tdev, HW_REG_CTRL, HW_CTRL_ENABLE);
	status = tessera_read(tdev, HW_REG_STATUS);
	if (status == ~0u || !(status & HW_STATUS_READY)) {
		drm_err(&tdev->drm, "the device did not become ready: STATUS 0x%08x\n",
			status);
		return -EIO;
	}
	ret = identify(tdev);
	if (!ret)
		ret = set_limits(tdev);
	return ret;
}

/* Step 1 of the manual: whoever had the device before us left things in it. */
static int reset_by_register(struct tessera_device *tdev)
{
	tessera_write(tdev, HW_REG_CTRL, HW_CTRL_RESET);
	return await_clear(tdev, HW_REG_CTRL, HW_CTRL_RESET);
}

int tessera_admin_init(struct tessera_device *tdev)
{
	struct tessera_admin *a = &tdev->admin;
	int ret;

	mutex_init(&a->lock);
	init_waitqueue_head(&a->wait);
	a->bytes = ARGS2 + ISA_MAX_BINDINGS * sizeof(struct hw_program_binding);
	ret = reset_by_register(tdev);
	if (ret) {
		drm_err(&tdev->drm, "the function reset did not end: CTRL 0x%08x\n",
			tessera_read(tdev, HW_REG_CTRL));
		return ret;
	}
	a->ctx_of_program = kvzalloc(TESSERA_PROGRAMS, GFP_KERNEL);
	if (!a->ctx_of_program)
		return -ENOMEM;
	a->memory = dma_alloc_coherent(&tdev->pdev->dev, a->bytes, &a->iova, GFP_KERNEL);
	return a->memory ? 0 : -ENOMEM;
}

void tessera_admin_fini(struct tessera_device *tdev)
{
	struct tessera_admin *a = &tdev->admin;

	if (a->memory)
		dma_free_coherent(&tdev->pdev->dev, a->bytes, a->memory, a->iova);
	a->memory = NULL;
	kvfree(a->ctx_of_program);
	a->ctx_of_program = NULL;
}
