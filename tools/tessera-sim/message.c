/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What each command of vfio-user does. A message is hostile bytes: every size is
 * checked before it is believed. Nothing here reads or writes a socket, and
 * nothing runs the device's work: doorbells and wakes go to their thread.
 *
 * What asks for nonsense gets an errno, as stock servers give it; whether the stream can
 * go on behind it is the session's to say.
 */
#include <errno.h>
#include <json-c/json.h>
#include <string.h>
#include <unistd.h>

#include "tools/tessera-sim/server.h"

/* No longer than QEMU's own offer, whose buffer the answer goes into. */
static const char capabilities[] =
	"{\"capabilities\":{\"max_msg_fds\":16,\"max_data_xfer_size\":1048576,"
	"\"max_dma_maps\":65535,\"pgsizes\":4096,\"write_multiple\":true}}";

static void answer(struct reply *out, const void *from, size_t bytes)
{
	memcpy(out->body + out->bytes, from, bytes);
	out->bytes += bytes;
}

/* Copies the fixed part of a command, if the body has it. */
static bool take(const struct message *m, void *to, size_t bytes)
{
	if (m->bytes < bytes)
		return false;
	memcpy(to, m->body, bytes);
	return true;
}

/* ---- version ---- */

/* A capability of `type` into *v; NULL: it is not said. False: it is of another type. */
static bool find(json_object *caps, const char *key, json_type type, json_object **v)
{
	if (!json_object_object_get_ex(caps, key, v)) {
		*v = NULL;
		return true;
	}
	return json_object_is_type(*v, type);
}

/* A limit that is said replaces *n, if it is lower. False: it is none. */
static bool read_limit(json_object *caps, const char *key, uint64_t otherwise, uint64_t *n)
{
	json_object *v;
	int64_t said;

	if (!find(caps, key, json_type_int, &v))
		return false;
	said = v ? json_object_get_int64(v) : (int64_t)otherwise;
	if (said < 1)
		return false;
	*n = (uint64_t)said < *n ? (uint64_t)said : *n;
	return true;
}

static int read_capabilities(struct device *d, json_object *caps)
{
	uint64_t fds = VFU_MAX_FDS, xfer = VFU_MAX_XFER;
	json_object *migration = NULL, *v;

	if (!json_object_is_type(caps, json_type_object) ||
	    !read_limit(caps, "max_msg_fds", 1, &fds) ||
	    !read_limit(caps, "max_data_xfer_size", VFU_MAX_XFER, &xfer) ||
	    !find(caps, "twin_socket", json_type_object, &v) ||
	    !find(caps, "migration", json_type_object, &migration) ||
	    (migration && !find(migration, "pgsize", json_type_int, &v)))
		return EINVAL;
	d->max_fds = (unsigned)fds;
	d->max_xfer = xfer;
	return 0;
}

/* `text` ends in NUL. */
static int read_offer(struct device *d, const char *text)
{
	json_tokener *t = json_tokener_new_ex(8);
	json_object *offer, *caps;
	int error = 0;

	if (!t)
		return ENOMEM;
	offer = json_tokener_parse_ex(t, text, -1);
	if (!json_object_is_type(offer, json_type_object))
		error = EINVAL;
	else if (json_object_object_get_ex(offer, "capabilities", &caps))
		error = read_capabilities(d, caps);
	json_object_put(offer);
	json_tokener_free(t);
	return error;
}

static int negotiate(struct device *d, const struct message *m, struct reply *out)
{
	struct vfu_version v;
	int error = 0;

	if (d->has_version || !take(m, &v, sizeof(v)) ||
	    (m->bytes > sizeof(v) && m->body[m->bytes - 1]))
		return EINVAL;
	d->max_fds = 1;
	d->max_xfer = VFU_MAX_XFER;
	if (v.major != 0)
		return ENOTSUP;
	if (m->bytes > sizeof(v) + 1)
		error = read_offer(d, (const char *)m->body + sizeof(v));
	if (error)
		return error;
	d->has_version = true;
	v.minor = 0;
	answer(out, &v, sizeof(v));
	answer(out, capabilities, sizeof(capabilities));
	return 0;
}

/* ---- what there is ---- */

static int get_info(const struct message *m, struct reply *out)
{
	struct vfu_info i;

	if (!take(m, &i, sizeof(i)) || i.argsz < sizeof(i))
		return EINVAL;
	i = (struct vfu_info){ sizeof(i), VFU_INFO_RESET | VFU_INFO_PCI, VFU_N_REGIONS,
			       VFU_N_IRQS };
	answer(out, &i, sizeof(i));
	return 0;
}

static uint64_t region_bytes(const struct device *d, uint32_t region)
{
	return region == VFU_REGION_BAR0 ? HW_BAR0_BYTES :
	       region == VFU_REGION_BAR2 ? d->hbm_bytes :
	       region == VFU_REGION_CONFIG ? CONFIG_BYTES : 0;
}

static int get_region_info(struct device *d, const struct message *m, struct reply *out)
{
	struct vfu_region_info r;
	struct vfu_sparse s = { .id = VFU_CAP_SPARSE, .version = 1, .n_areas = 1,
				.bytes = d->hbm_bytes };
	uint32_t room;

	if (!take(m, &r, sizeof(r)) || r.argsz < sizeof(r) || r.index >= VFU_N_REGIONS)
		return EINVAL;
	room = r.argsz;
	r = (struct vfu_region_info){ .argsz = sizeof(r), .index = r.index,
				      .bytes = region_bytes(d, r.index) };
	if (r.bytes)
		r.flags = VFU_REGION_CAN_READ | VFU_REGION_CAN_WRITE;
	if (r.index == VFU_REGION_BAR2) {
		r.flags |= VFU_REGION_CAN_MAP;
		r.argsz = sizeof(r) + sizeof(s);
	}
	/* What does not fit is not spoken of but for argsz: who reads that asks again, and
	 * only then has room for a descriptor. */
	if (r.argsz == sizeof(r) || room < r.argsz) {
		answer(out, &r, sizeof(r));
		return 0;
	}
	r.flags |= VFU_REGION_HAS_CAPS;
	r.cap_offset = sizeof(r);
	answer(out, &r, sizeof(r));
	answer(out, &s, sizeof(s));
	out->fds[0] = sim_hbm_fd(d->sim);
	out->n_fds = 1;
	return 0;
}

static int get_io_fds(struct device *d, const struct message *m, struct reply *out)
{
	struct vfu_io_fds r;
	uint32_t room;

	if (!take(m, &r, sizeof(r)) || r.argsz < sizeof(r) || r.flags || r.count ||
	    r.index >= VFU_N_REGIONS)
		return EINVAL;
	room = r.argsz;
	r.argsz = sizeof(r);
	if (r.index != VFU_REGION_BAR0 || d->max_fds < 2) {
		answer(out, &r, sizeof(r));
		return 0;
	}
	r.argsz += HW_MAX_QUEUES * sizeof(struct vfu_io_fd);
	r.count = HW_MAX_QUEUES;
	answer(out, &r, sizeof(r));
	if (room < r.argsz)
		return 0;
	for (unsigned q = 0; q < HW_MAX_QUEUES; q++) {
		struct vfu_io_fd io = { .offset = hw_doorbell(q), .bytes = 8,
					.type = VFU_IO_SHADOW, .flags = VFU_IO_AWAKE,
					.shadow_fd = 1, .shadow_offset = q * 8,
					.datamatch = BELLS_AWAKE };

		answer(out, &io, sizeof(io));
	}
	out->fds[0] = d->bells.client_fd;
	out->fds[1] = d->bells.page_fd;
	out->n_fds = 2;
	return 0;
}

static int get_irq_info(const struct message *m, struct reply *out)
{
	struct vfu_irq_info i;

	if (!take(m, &i, sizeof(i)) || i.argsz < sizeof(i) || i.index >= VFU_N_IRQS)
		return EINVAL;
	i.argsz = sizeof(i);
	i.flags = i.index == VFU_IRQ_MSIX ? VFU_IRQ_EVENTFD : 0;
	i.count = i.index == VFU_IRQ_MSIX ? HW_MAX_VECTORS : 0;
	answer(out, &i, sizeof(i));
	return 0;
}

static int set_irqs(struct device *d, struct message *m)
{
	struct vfu_set_irqs s;

	if (!take(m, &s, sizeof(s)) || s.argsz < sizeof(s))
		return EINVAL;
	return irq_set(d, &s, m->body + sizeof(s), m->bytes - sizeof(s), m->fds, m->n_fds);
}

/* ---- registers and memory ---- */

static void write_control(struct device *d, uint32_t value)
{
	bool ends = value & HW_CTRL_RESET || !(value & HW_CTRL_ENABLE);

	if (ends)
		device_hush(d, true);
	bells_hold(&d->bells, ends);
	sim_mmio_write(d->sim, HW_REG_CTRL, 4, value);
	if (value & HW_CTRL_RESET)
		irq_unmask(d);
	if (ends)
		device_hush(d, false);
	bells_go_on(&d->bells);
}

static void write_word(struct device *d, uint32_t offset, uint32_t value)
{
	uint32_t bell = offset - HW_DOORBELL_BASE;
	unsigned ctx = hw_woken(offset, 4);

	if (ctx)
		bells_wake(&d->bells, ctx);
	else if (offset == HW_REG_CTRL)
		write_control(d, value);
	else if (offset < HW_DOORBELL_BASE)
		sim_mmio_write(d->sim, offset, 4, value);
	else if (bell % HW_DOORBELL_STRIDE == 0 && bell / HW_DOORBELL_STRIDE < HW_MAX_QUEUES)
		bells_ring(&d->bells, bell / HW_DOORBELL_STRIDE, value);
}

/* Registers take aligned words; the model answers and counts anything else. Wake pages take any
 * store. */
/* What is longer than a word is one word after the other, as the kernel's VFIO has it. */
static void access_bar0(struct device *d, uint32_t offset, uint8_t *data, uint32_t n,
			bool write)
{
	if (write && hw_woken(offset, n)) {
		bells_wake(&d->bells, hw_woken(offset, n));
		return;
	}
	if (offset % 4 || n % 4) {
		if (write)
			sim_mmio_write(d->sim, offset, 0, 0);
		else
			sim_mmio_read(d->sim, offset, 0);
		if (!write)
			memset(data, 0xff, n);
		return;
	}
	for (uint32_t at = 0; at < n; at += 4) {
		uint32_t word;

		if (write) {
			memcpy(&word, data + at, 4);
			write_word(d, offset + at, word);
		} else {
			word = (uint32_t)sim_mmio_read(d->sim, offset + at, 4);
			memcpy(data + at, &word, 4);
		}
	}
}

static void write_config(struct device *d, uint32_t offset, const uint8_t *data, uint32_t n)
{
	unsigned asks = config_write(&d->config, offset, data, n);
	bool stops;

	if (asks & CONFIG_FLR)
		device_reset(d);
	stops = d->dma.is_on && !config_is_master(&d->config);
	if (stops)
		device_hush(d, true);
	dma_turn(d, config_is_master(&d->config));
	if (stops)
		device_hush(d, false);
}

/* [offset, offset + n) was checked. */
static void access_region(struct device *d, uint32_t region, uint64_t offset, uint8_t *data,
			  uint32_t n, bool write)
{
	uint64_t bytes;
	uint8_t *hbm;

	if (region == VFU_REGION_BAR0) {
		access_bar0(d, (uint32_t)offset, data, n, write);
	} else if (region == VFU_REGION_BAR2) {
		hbm = sim_hbm(d->sim, &bytes);
		memcpy(write ? hbm + offset : data, write ? data : hbm + offset, n);
	} else if (write) {
		write_config(d, (uint32_t)offset, data, n);
	} else {
		config_read(&d->config, (uint32_t)offset, data, n);
	}
}

static int check_access(const struct device *d, uint64_t offset, uint32_t region,
			uint32_t count)
{
	uint64_t bytes = region < VFU_N_REGIONS ? region_bytes(d, region) : 0;

	if (offset > bytes || count > bytes - offset || !count || count > VFU_MAX_XFER)
		return EINVAL;
	return 0;
}

static int read_region(struct device *d, const struct message *m, struct reply *out)
{
	struct vfu_region_access a;
	int error;

	if (!take(m, &a, sizeof(a)))
		return EINVAL;
	error = check_access(d, a.offset, a.region, a.count);
	if (!error && a.count > d->max_xfer)
		error = EINVAL;
	if (error)
		return error;
	answer(out, &a, sizeof(a));
	access_region(d, a.region, a.offset, out->body + sizeof(a), a.count, false);
	out->bytes += a.count;
	return 0;
}

static int write_region(struct device *d, const struct message *m, struct reply *out)
{
	struct vfu_region_access a;
	int error;

	if (!take(m, &a, sizeof(a)) || m->bytes - sizeof(a) != a.count)
		return EINVAL;
	error = check_access(d, a.offset, a.region, a.count);
	if (error)
		return error;
	access_region(d, a.region, a.offset, m->body + sizeof(a), a.count, true);
	answer(out, &a, sizeof(a));
	return 0;
}

static int write_multi(struct device *d, const struct message *m, struct reply *out)
{
	struct vfu_write_one one;
	uint64_t n;

	if (!take(m, &n, sizeof(n)) || n > (m->bytes - sizeof(n)) / sizeof(one))
		return EINVAL;
	/* All or none: a write that is refused must not follow ones that were done. */
	for (unsigned pass = 0; pass < 2; pass++)
		for (uint64_t i = 0; i < n; i++) {
			memcpy(&one, m->body + sizeof(n) + i * sizeof(one), sizeof(one));
			if (one.count > sizeof(one.data) ||
			    check_access(d, one.offset, one.region, one.count))
				return EINVAL;
			if (pass)
				access_region(d, one.region, one.offset, one.data,
					      one.count, true);
		}
	answer(out, &n, sizeof(n));
	return 0;
}

/* ---- DMA ---- */

static int map_memory(struct device *d, const struct message *m)
{
	struct vfu_dma_map in;

	if (!take(m, &in, sizeof(in)) || m->n_fds > 1)
		return EINVAL;
	return dma_map(d, &in, m->n_fds ? m->fds[0] : -1);
}

static int unmap_memory(struct device *d, const struct message *m, struct reply *out)
{
	struct vfu_dma_unmap in;
	int error;

	if (!take(m, &in, sizeof(in)))
		return EINVAL;
	error = dma_unmap(d, &in);
	if (!error)
		answer(out, &in, sizeof(in));
	return error;
}

int message_handle(struct device *d, struct message *m, struct reply *out)
{
	out->bytes = 0;
	out->n_fds = 0;
	if (m->h.flags & VFU_TYPE || m->h.size != sizeof(m->h) + m->bytes)
		return EINVAL;
	if (m->h.command != VFU_VERSION && !d->has_version)
		return EINVAL;
	if (m->n_fds && m->h.command != VFU_DMA_MAP && m->h.command != VFU_SET_IRQS)
		return EINVAL;
	switch (m->h.command) {
	case VFU_VERSION: return negotiate(d, m, out);
	case VFU_DMA_MAP: return map_memory(d, m);
	case VFU_DMA_UNMAP: return unmap_memory(d, m, out);
	case VFU_GET_INFO: return get_info(m, out);
	case VFU_GET_REGION_INFO: return get_region_info(d, m, out);
	case VFU_GET_REGION_IO_FDS: return get_io_fds(d, m, out);
	case VFU_GET_IRQ_INFO: return get_irq_info(m, out);
	case VFU_SET_IRQS: return set_irqs(d, m);
	case VFU_REGION_READ: return read_region(d, m, out);
	case VFU_REGION_WRITE: return write_region(d, m, out);
	case VFU_WRITE_MULTI: return write_multi(d, m, out);
	case VFU_RESET:
		device_reset(d);
		return 0;
	case VFU_FEATURE: case VFU_MIG_READ: case VFU_MIG_WRITE: case VFU_DIRTY_PAGES:
		return ENOTSUP;	/* no migration */
	case VFU_DMA_READ: case VFU_DMA_WRITE:
		return EINVAL;	/* only a server sends them */
	default:
		return ENOSYS;
	}
}
