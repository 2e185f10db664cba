/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Queue 0 (DEVICE.md#requests): requests that create and end things. They run one at a
 * time on the thread that rings queue 0's doorbell; each answers with a status and
 * changes nothing when it refuses. Requests that end things stop the runs that use
 * them and wait for that, which tiles bound.
 */
#include <stdlib.h>
#include <string.h>

#include "hal/sim/sim_internal.h"

#define MAX_RING 65536u
#define MAX_PROGRAM_BYTES ((uint64_t)4 << 30)	/* of all programs */

/* Copies a structure that a request points to. */
static int fetch(struct sim_device *dev, uint64_t iova, void *to, size_t bytes)
{
	const uint8_t *p = sim_iova(dev, NULL, iova, bytes, false);

	if (!p)
		return HW_ST_BAD_ADDRESS;
	memcpy(to, p, bytes);
	return 0;
}

static int answer(struct sim_device *dev, uint64_t iova, const void *from, size_t bytes)
{
	uint8_t *p = sim_iova(dev, NULL, iova, bytes, true);

	if (!p)
		return HW_ST_BAD_ADDRESS;
	memcpy(p, from, bytes);
	return 0;
}

static int identify(struct sim_device *dev, const struct hw_sqe *sqe)
{
	struct hw_identify id = {
		.magic = HW_IDENTIFY_MAGIC, .contract = SIM_CONTRACT, .isa = ISA_VERSION,
		.name = "Tessera T1", .firmware = "model-1.0",
		.hbm_bytes = dev->hbm_bytes, .max_contexts = HW_MAX_CONTEXTS - 1,
		.max_queues = HW_MAX_QUEUES, .max_programs = SIM_MAX_PROGRAMS - 1,
		.max_maps = SIM_MAX_MAPS, .n_vectors = HW_MAX_VECTORS,
		.cores = dev->sim->cpu.lanes, .is_model = 1,
		.fabric = dev->sim->fabric.id, .n_chips = 1,
	};

	if (id.fabric) {
		id.chip = (uint16_t)dev->index;
		id.n_chips = (uint16_t)dev->sim->n_cards;
	}

	memcpy(id.coords, dev->coords, sizeof(id.coords));
	memcpy(id.shape, dev->sim->fabric.shape, sizeof(id.shape));

	memcpy(id.serial, "SIM00000", 9);
	id.serial[6] = (char)('0' + dev->index / 10 % 10);
	id.serial[7] = (char)('0' + dev->index % 10);
	return answer(dev, sqe->u.admin.addr, &id, sizeof(id));
}

static int ctx_create(struct sim_device *dev, uint64_t *value)
{
	for (unsigned i = 1; i < HW_MAX_CONTEXTS; i++)
		if (!dev->contexts[i].used) {
			dev->contexts[i] = (struct sim_ctx){
				.used = true,
				.used_ns = { dev->engines[0].least_ns,
					     dev->engines[1].least_ns },
			};
			*value = i;
			return 0;
		}
	return HW_ST_NO_ROOM;
}

/* Ends a queue; what it had not begun is dropped. */
static void queue_end(struct sim_device *dev, struct sim_queue *q)
{
	sim_queue_clear(dev, q, true);
	sim_queue_part(dev, q);
	q->state = SIM_QUEUE_NONE;
}

static void program_end(struct sim_device *dev, uint32_t id)
{
	struct sim_program *p = dev->programs[id];

	dev->programs[id] = NULL;
	dev->program_bytes -= p->bytes;
	if (id < dev->program_hint)
		dev->program_hint = id;
	if (!--p->refs)
		sim_program_free(p);
}

static bool is_ctx(const struct sim_device *dev, unsigned ctx)
{
	return ctx && ctx < HW_MAX_CONTEXTS && dev->contexts[ctx].used;
}

static int ctx_destroy(struct sim_device *dev, unsigned ctx)
{
	if (!is_ctx(dev, ctx))
		return HW_ST_NO_SUCH_ID;
	for (unsigned i = 1; i < HW_MAX_QUEUES; i++)
		if (dev->queues[i].state != SIM_QUEUE_NONE &&
		    dev->queues[i].info.ctx == ctx)
			queue_end(dev, &dev->queues[i]);
	for (uint32_t i = 0; i < dev->room_programs; i++)
		if (dev->programs[i] && dev->programs[i]->ctx == ctx)
			program_end(dev, i);
	sim_break(dev, ctx, sim_break_why(dev, HW_ST_RESET));
	sim_break_wait(dev);
	sim_ctx_free(&dev->contexts[ctx]);
	return 0;
}

/* WINDOW_OPEN and PEER_MAP. */
static int join(struct sim_device *dev, const struct hw_sqe *sqe, uint64_t *value)
{
	union {
		struct hw_window window;
		struct hw_peer_map map;
	} in;
	size_t bytes = sqe->op == HW_PEER_MAP ? sizeof(in.map) : sizeof(in.window);
	int status;

	if (!is_ctx(dev, sqe->id))
		return HW_ST_NO_SUCH_ID;
	status = fetch(dev, sqe->u.admin.addr, &in, bytes);
	if (status)
		return status;
	return sqe->op == HW_PEER_MAP ? sim_peer_map(dev, sqe->id, &in.map) :
		sim_window_open(dev, sqe->id, &in.window, value);
}

static int map(struct sim_device *dev, const struct hw_sqe *sqe)
{
	struct hw_map m;
	int status;

	if (!is_ctx(dev, sqe->id))
		return HW_ST_NO_SUCH_ID;
	status = fetch(dev, sqe->u.admin.addr, &m, sizeof(m));
	if (status)
		return status;
	if (sqe->op == HW_MAP)
		return sim_ctx_map(dev, sqe->id, &m);
	status = sim_ctx_unmap(dev, sqe->id, m.va);
	/* Whoever waits there can't any more. */
	if (!status)
		sim_look_at_waiting(dev, sqe->id);
	return status;
}

static int trace(struct sim_device *dev, const struct hw_sqe *sqe, uint64_t *value)
{
	struct hw_trace in;
	int status;

	if (!is_ctx(dev, sqe->id))
		return HW_ST_NO_SUCH_ID;
	if (sqe->op == HW_TRACE_STOP)
		return sim_trace_stop(dev, sqe->id, value);
	status = fetch(dev, sqe->u.admin.addr, &in, sizeof(in));
	return status ? status : sim_trace_start(dev, sqe->id, &in);
}

static int queue_create(struct sim_device *dev, const struct hw_sqe *sqe, uint64_t *value)
{
	struct hw_queue in;
	int status = fetch(dev, sqe->u.admin.addr, &in, sizeof(in));
	unsigned id = 1;

	if (status)
		return status;
	if (!is_ctx(dev, in.ctx))
		return HW_ST_NO_SUCH_ID;
	if (in.n_entries < 2 || in.n_entries > MAX_RING ||
	    in.n_entries & (in.n_entries - 1) || in.flags & ~(uint32_t)HW_QUEUE_UNCAPPED ||
	    in.priority > 3 ||
	    (in.cls != HW_CLASS_COMPUTE && in.cls != HW_CLASS_DMA) ||
	    (in.vector != HW_NO_VECTOR && in.vector >= HW_MAX_VECTORS) ||
	    in.sq_iova % 64 || in.cq_iova % 64)
		return HW_ST_BAD_FIELD;
	if (!sim_iova_reaches(dev, in.sq_iova, in.n_entries * sizeof(struct hw_sqe), false) ||
	    !sim_iova_reaches(dev, in.cq_iova, in.n_entries * sizeof(struct hw_cqe), true))
		return HW_ST_BAD_ADDRESS;
	while (id < HW_MAX_QUEUES && dev->queues[id].state != SIM_QUEUE_NONE)
		id++;
	if (id == HW_MAX_QUEUES)
		return HW_ST_NO_ROOM;
	memset(&dev->queues[id], 0, sizeof(dev->queues[id]));
	dev->queues[id].info = in;
	dev->queues[id].state = SIM_QUEUE_READY;
	sim_queue_join(dev, &dev->queues[id]);
	*value = id;
	return 0;
}

static struct sim_queue *find_queue(struct sim_device *dev, unsigned id)
{
	return id && id < HW_MAX_QUEUES && dev->queues[id].state != SIM_QUEUE_NONE ?
		&dev->queues[id] : NULL;
}

static int queue_destroy(struct sim_device *dev, unsigned id)
{
	struct sim_queue *q = find_queue(dev, id);

	if (!q)
		return HW_ST_NO_SUCH_ID;
	queue_end(dev, q);
	return 0;
}

static int queue_reset(struct sim_device *dev, unsigned id)
{
	struct sim_queue *q = find_queue(dev, id);

	if (!q)
		return HW_ST_NO_SUCH_ID;
	sim_queue_clear(dev, q, true);
	dev->ras.queue_resets++;
	return 0;
}

/* ---- programs ---- */

static int program_room(struct sim_device *dev, uint32_t *id)
{
	uint32_t i = dev->program_hint ? dev->program_hint : 1;

	while (i < dev->room_programs && dev->programs[i])
		i++;
	if (i >= dev->room_programs) {
		unsigned room = dev->room_programs ? dev->room_programs * 2 : 64;
		struct sim_program **grown = room > SIM_MAX_PROGRAMS ? NULL :
			realloc(dev->programs, room * sizeof(*grown));

		if (!grown)
			return HW_ST_NO_ROOM;
		memset(grown + dev->room_programs, 0,
		       (room - dev->room_programs) * sizeof(*grown));
		dev->programs = grown;
		dev->room_programs = room;
	}
	dev->program_hint = i;
	*id = i;
	return 0;
}

static bool is_access(uint32_t access)
{
	return access & HW_BIND_PEER ? access == (HW_BIND_PEER | HW_BIND_WRITE) ||
				       access == (HW_BIND_PEER | HW_BIND_READ) :
		!(access & ~(uint32_t)(HW_BIND_READ | HW_BIND_WRITE | HW_BIND_SCRATCH));
}

/* The code and the bindings, copied under the lock. */
static int program_fetch(struct sim_device *dev, const struct hw_program *in, void **code,
			 struct hw_program_binding **bindings)
{
	const uint8_t *p;
	int status;

	if (in->zero || in->n_bindings > ISA_MAX_BINDINGS || !in->code_bytes ||
	    in->code_bytes > SIM_MAX_CODE || in->code_va % 8)
		return HW_ST_BAD_FIELD;
	p = sim_va(dev, NULL, in->ctx, in->code_va, in->code_bytes, false, NULL, NULL);
	if (!p)
		return HW_ST_BAD_ADDRESS;
	*code = malloc(in->code_bytes);
	*bindings = malloc((in->n_bindings + 1) * sizeof(**bindings));
	if (!*code || !*bindings)
		return HW_ST_NO_ROOM;
	memcpy(*code, p, in->code_bytes);
	if (!in->n_bindings)
		return 0;
	status = fetch(dev, in->bindings_iova, *bindings,
		       in->n_bindings * sizeof(**bindings));
	for (unsigned i = 0; !status && i < in->n_bindings; i++)
		if ((*bindings)[i].zero || (*bindings)[i].bytes > INT64_MAX ||
		    !is_access((*bindings)[i].access))
			status = HW_ST_BAD_FIELD;
	return status;
}

static int program_create(struct sim_device *dev, const struct hw_sqe *sqe,
			  uint64_t *value, uint64_t *detail)
{
	struct hw_program in;
	struct hw_program_binding *bindings = NULL;
	struct sim_program *p = NULL;
	void *code = NULL;
	uint32_t id;
	int status = fetch(dev, sqe->u.admin.addr, &in, sizeof(in));

	if (!status && !is_ctx(dev, in.ctx))
		status = HW_ST_NO_SUCH_ID;
	if (!status)
		status = program_fetch(dev, &in, &code, &bindings);
	if (!status) {
		/* Checking takes a while: queues go on meanwhile. */
		pthread_mutex_unlock(&dev->lock);
		status = sim_program_load(&dev->sim->cpu, code, in.code_bytes, bindings,
					  in.n_bindings, &p, detail);
		pthread_mutex_lock(&dev->lock);
	}
	free(code);
	free(bindings);
	if (status)
		return status;
	status = p->bytes > MAX_PROGRAM_BYTES - dev->program_bytes ? HW_ST_NO_ROOM :
		 program_room(dev, &id);
	if (status) {
		sim_program_free(p);
		return status;
	}
	p->ctx = in.ctx;
	dev->programs[id] = p;
	dev->program_bytes += p->bytes;
	*value = id;
	return 0;
}

static int program_destroy(struct sim_device *dev, uint64_t id)
{
	if (id >= dev->room_programs || !dev->programs[id])
		return HW_ST_NO_SUCH_ID;
	program_end(dev, (uint32_t)id);
	return 0;
}

/* ---- logs, features, errors on purpose ---- */

static int log_page(struct sim_device *dev, const struct hw_sqe *sqe, uint64_t *value)
{
	union {
		struct hw_fault faults[SIM_FAULTS];
		struct hw_telemetry telemetry;
		struct hw_ras ras;
		struct hw_queue_state queues[HW_MAX_QUEUES];
		struct hw_link links[HW_MAX_LINKS];
	} page;
	uint64_t n;

	if (sqe->id < HW_LOG_FAULT || sqe->id > HW_LOG_LINKS)
		return HW_ST_BAD_FIELD;
	n = sqe->id == HW_LOG_QUEUES ? sim_queue_states(dev, page.queues) * sizeof(*page.queues) :
	    sqe->id == HW_LOG_LINKS ? sim_link_states(dev, page.links) * sizeof(*page.links) :
	    sim_log_page(dev, sqe->id, &page);
	if (n > sqe->u.admin.bytes)
		n = sqe->u.admin.bytes;
	*value = n;
	return n ? answer(dev, sqe->u.admin.addr, &page, n) : 0;
}

static int feature(struct sim_device *dev, const struct hw_sqe *sqe, uint64_t *value)
{
	uint64_t *f = sqe->id == HW_FEATURE_INLINE_NS ? &dev->inline_ns :
		      sqe->id == HW_FEATURE_DEFAULT_LIMIT_NS ? &dev->default_limit_ns :
		      sqe->id == HW_FEATURE_MAX_LIMIT_NS ? &dev->max_limit_ns : NULL;

	if (!f)
		return HW_ST_BAD_FIELD;
	if (sqe->op == HW_SET_FEATURE)
		*f = sqe->u.admin.value;
	*value = *f;
	return 0;
}

static int inject_lie(struct sim_device *dev, unsigned what, uint64_t value)
{
	switch (what) {
	case HW_INJECT_WRONG_VALUE:
		dev->lies.has_value = true;
		dev->lies.value = value;
		return 0;
	case HW_INJECT_WRONG_STATUS:
		dev->lies.has_status = true;
		dev->lies.status = (uint16_t)value;
		return 0;
	case HW_INJECT_WRONG_TAG:
		dev->lies.wrong_tags = value;
		return 0;
	case HW_INJECT_NO_ANSWER:
		dev->lies.no_answers = value;
		return 0;
	case HW_INJECT_DOORBELL:
		if (!find_queue(dev, (uint32_t)value))
			return HW_ST_NO_SUCH_ID;
		sim_queue_ring_by_itself(dev, (uint32_t)value, (uint32_t)(value >> 32));
		return 0;
	default:
		return HW_ST_BAD_FIELD;
	}
}

static int inject(struct sim_device *dev, const struct hw_sqe *sqe)
{
	uint64_t value = sqe->u.admin.value;
	int status;

	switch (sqe->id) {
	case HW_INJECT_ECC_CORRECTED:
		dev->ras.ecc_corrected += value;
		return 0;
	case HW_INJECT_POISON:
		status = sim_poison_add(dev, value);
		dev->ras.poisoned_pages += !status;
		return status;
	case HW_INJECT_FATAL:
		sim_die(dev, value >= HW_FATAL_THERMAL && value <= HW_FATAL_PCIE ?
			(uint32_t)value : HW_FATAL_INJECTED);
		return 0;
	case HW_INJECT_DROP_IRQ:
		dev->drop_irqs = value;
		return 0;
	case HW_INJECT_HANG:
		if (value != HW_CLASS_COMPUTE && value != HW_CLASS_DMA)
			return HW_ST_BAD_FIELD;
		sim_engine_of(dev, (uint8_t)value)->hangs = true;
		return 0;
	case HW_INJECT_BUS:
		dev->bus_errors = value;
		return 0;
	case HW_INJECT_AIR:
		if (value > HW_MAX_AIR_MC)
			return HW_ST_BAD_FIELD;
		dev->air_mc = (uint32_t)value;
		return 0;
	case HW_INJECT_LINK_DOWN:
		return sim_link_kill(dev, value);
	case HW_INJECT_CELL:
		return sim_cells_add(&dev->cells, (unsigned)(value >> 56), value << 8 >> 8);
	case HW_INJECT_CELL_BY:
		dev->cells.by = value;
		return 0;
	case HW_INJECT_MEND:
		sim_cells_mend(&dev->cells);
		return 0;
	default:
		return inject_lie(dev, sqe->id, value);
	}
}

int sim_inject(struct sim_device *dev, unsigned what, uint64_t value, struct err *err)
{
	const struct hw_sqe sqe = { .id = (uint16_t)what, .u.admin.value = value };
	int status = HW_ST_BAD_FIELD;

	pthread_mutex_lock(&dev->admin_lock);
	pthread_mutex_lock(&dev->lock);
	if (what == sqe.id)
		status = inject(dev, &sqe);
	pthread_mutex_unlock(&dev->lock);
	pthread_mutex_unlock(&dev->admin_lock);
	return status ? err_set(err, hw_status_code((unsigned)status), "error %u can't be injected "
				"with value %llu: %s", what, (unsigned long long)value,
				hw_status_text((unsigned)status)) : 0;
}

static int request(struct sim_device *dev, const struct hw_sqe *sqe, uint64_t *value,
		   uint64_t *detail)
{
	if (sqe->flags & ~HW_IRQ || sqe->wait_va || sqe->signal_va || sqe->wait_value ||
	    sqe->signal_value)
		return HW_ST_BAD_FIELD;
	switch (sqe->op) {
	case HW_NOP: return 0;
	case HW_IDENTIFY: return identify(dev, sqe);
	case HW_CTX_CREATE: return ctx_create(dev, value);
	case HW_CTX_DESTROY: return ctx_destroy(dev, sqe->id);
	case HW_MAP:
	case HW_UNMAP: return map(dev, sqe);
	case HW_QUEUE_CREATE: return queue_create(dev, sqe, value);
	case HW_QUEUE_DESTROY: return queue_destroy(dev, sqe->id);
	case HW_QUEUE_RESET: return queue_reset(dev, sqe->id);
	case HW_PROGRAM_CREATE: return program_create(dev, sqe, value, detail);
	case HW_PROGRAM_DESTROY: return program_destroy(dev, sqe->u.admin.value);
	case HW_LOG_PAGE: return log_page(dev, sqe, value);
	case HW_SET_FEATURE:
	case HW_GET_FEATURE: return feature(dev, sqe, value);
	case HW_INJECT: return inject(dev, sqe);
	case HW_WINDOW_OPEN:
	case HW_PEER_MAP: return join(dev, sqe, value);
	case HW_WINDOW_CLOSE: return sim_window_close(dev, sqe->u.admin.value);
	case HW_TRACE_START:
	case HW_TRACE_STOP: return trace(dev, sqe, value);
	case HW_CTX_RESET:
	case HW_FIRMWARE: return HW_ST_NOT_BUILT;
	default: return HW_ST_BAD_OPCODE;
	}
}

static void complete(struct sim_device *dev, const struct hw_sqe *sqe, int status,
		     uint64_t value, uint64_t detail)
{
	uint32_t n = dev->aqsize, at = dev->admin_cq_tail & (n - 1);
	struct hw_cqe cqe = { .tag = sqe->tag, .status = (uint16_t)status,
			      .phase = (dev->admin_cq_tail / n + 1) & 1,
			      .sq_head = dev->admin_head, .value = value,
			      .detail = detail };
	uint8_t *to = sim_iova(dev, NULL, dev->acq + at * sizeof(cqe), sizeof(cqe), true);

	dev->admin_cq_tail++;
	if (!to) {
		sim_die(dev, HW_FATAL_RINGS);
		return;
	}
	sim_cqe_write(to, &cqe);
	if (sqe->flags & HW_IRQ)
		sim_irq(dev, dev->avector);
}

/* As complete(), with what was injected before this request came. */
static void answer_with(struct sim_device *dev, const struct sim_lies *lies, struct hw_sqe *sqe,
			int status, uint64_t value, uint64_t detail)
{
	if (lies->no_answers) {
		dev->lies.no_answers--;
		return;
	}
	if (lies->wrong_tags) {
		dev->lies.wrong_tags--;
		sqe->tag--;
	}
	if (lies->has_value) {
		dev->lies.has_value = false;
		value = lies->value;
	}
	if (lies->has_status) {
		dev->lies.has_status = false;
		status = lies->status;
	}
	complete(dev, sqe, status, value, detail);
}

void sim_admin_ring(struct sim_device *dev, uint32_t tail)
{
	pthread_mutex_lock(&dev->admin_lock);
	pthread_mutex_lock(&dev->lock);
	sim_queue_hear(dev);
	if (!(dev->status & HW_STATUS_READY) || tail - dev->admin_head > dev->aqsize)
		dev->bad_access++;
	else
		dev->admin_tail = tail;
	while (dev->admin_head != dev->admin_tail && !dev->fatal) {
		uint64_t value = 0, detail = 0;
		uint32_t at = dev->admin_head & (dev->aqsize - 1);
		const uint8_t *p = sim_iova(dev, NULL, dev->asq + at * sizeof(struct hw_sqe),
					    sizeof(struct hw_sqe), false);
		struct sim_lies lies = dev->lies;
		unsigned n_failed = sim_far_failures(dev);
		struct hw_sqe sqe;
		int status;

		dev->admin_head++;
		if (p)
			sim_sqe_read(p, &sqe);
		if (!p || sim_far_failures(dev) != n_failed) {
			sim_die(dev, HW_FATAL_RINGS);
			break;
		}
		status = request(dev, &sqe, &value, &detail);
		sim_send_first(dev);
		if (sim_far_failures(dev) != n_failed)
			status = HW_ST_MAP;
		answer_with(dev, &lies, &sqe, status, value, detail);
	}
	pthread_mutex_unlock(&dev->lock);
	pthread_mutex_unlock(&dev->admin_lock);
}
