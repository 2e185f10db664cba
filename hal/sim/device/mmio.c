/* SPDX-License-Identifier: Apache-2.0 */
/*
 * BAR0: registers (regs.def), doorbells, wake pages, the MSI-X table. Registers of 64 bits
 * are two of 32 to the bus. What regs.def does not name reads as 0 and ignores writes; what
 * is misaligned or of another size reads as all ones and is counted.
 */
#include "hal/sim/sim_internal.h"

#define CAP_LARGEST_RING 16u	/* log2 */

static uint64_t capabilities(void)
{
	return HW_MAX_QUEUES | (uint64_t)HW_MAX_VECTORS << 16 |
	       (uint64_t)CAP_LARGEST_RING << 32 | 1ull << 48;
}

/* The 64-bit value that a register's low and high half are taken from. */
static uint64_t read_register(struct sim_device *dev, uint32_t offset)
{
	switch (offset) {
	case HW_REG_ID: return HW_PCI_VENDOR | (uint64_t)HW_PCI_DEVICE << 16;
	case HW_REG_VERSION: return SIM_CONTRACT;
	case HW_REG_CAP: return capabilities();
	case HW_REG_CTRL: return dev->ctrl;
	case HW_REG_STATUS: return dev->status;
	case HW_REG_ASQ: return dev->asq;
	case HW_REG_ACQ: return dev->acq;
	case HW_REG_AQSIZE: return dev->aqsize;
	case HW_REG_AVECTOR: return dev->avector;
	case HW_REG_HBM_BYTES: return dev->hbm_bytes;
	case HW_REG_SCRATCH: return dev->scratch;
	case HW_REG_CLOCK: return (uint64_t)(clock_ns() - dev->power_on);
	case HW_REG_FATAL: return dev->fatal;
	case HW_REG_BADACC: return dev->bad_access;
	default: return 0;
	}
}

/* The register that the 32-bit word at `offset` belongs to, and how far in. */
static uint32_t register_of(uint32_t offset, unsigned *shift)
{
	*shift = 0;
#define REG(name, at, bytes, access, reset, meaning) \
	if (bytes == 8 && offset == at + 4) { \
		*shift = 32; \
		return at; \
	}
#include "hal/hw/regs.def"
#undef REG
	return offset;
}

static void set_half(uint64_t *reg, unsigned shift, uint32_t value)
{
	*reg = (*reg & ~(0xffffffffull << shift)) | (uint64_t)value << shift;
}

/* Whether the device works and queue 0's rings are good and can be reached. */
static bool is_enabled_sanely(struct sim_device *dev)
{
	uint32_t n = dev->aqsize;

	return !dev->fatal && n >= 2 && n <= 1u << CAP_LARGEST_RING && !(n & (n - 1)) &&
	       dev->asq % 64 == 0 && dev->acq % 64 == 0 &&
	       sim_iova_reaches(dev, dev->asq, n * sizeof(struct hw_sqe), false) &&
	       sim_iova_reaches(dev, dev->acq, n * sizeof(struct hw_cqe), true);
}

static void enable(struct sim_device *dev)
{
	pthread_mutex_lock(&dev->lock);
	if (!(dev->ctrl & HW_CTRL_ENABLE) && is_enabled_sanely(dev)) {
		dev->ctrl = HW_CTRL_ENABLE;
		dev->admin_head = dev->admin_tail = dev->admin_cq_tail = 0;
		dev->status |= HW_STATUS_READY;
	} else if (!(dev->ctrl & HW_CTRL_ENABLE)) {
		dev->bad_access++;
	}
	pthread_mutex_unlock(&dev->lock);
}

static void disable(struct sim_device *dev)
{
	pthread_mutex_lock(&dev->admin_lock);
	sim_clear(dev);
	pthread_mutex_unlock(&dev->admin_lock);
}

static void write_control(struct sim_device *dev, uint32_t value)
{
	if (value & HW_CTRL_RESET)
		sim_flr(dev);
	else if (value & HW_CTRL_ENABLE)
		enable(dev);
	else
		disable(dev);
}

static void write_register(struct sim_device *dev, uint32_t offset, uint32_t value)
{
	unsigned shift;
	uint32_t reg = register_of(offset, &shift);

	if (reg == HW_REG_CTRL) {
		write_control(dev, value);
		return;
	}
	pthread_mutex_lock(&dev->lock);
	if (reg == HW_REG_SCRATCH)
		set_half(&dev->scratch, shift, value);
	else if (dev->ctrl & HW_CTRL_ENABLE)
		dev->bad_access += reg == HW_REG_ASQ || reg == HW_REG_ACQ ||
				   reg == HW_REG_AQSIZE || reg == HW_REG_AVECTOR;
	else if (reg == HW_REG_ASQ)
		set_half(&dev->asq, shift, value);
	else if (reg == HW_REG_ACQ)
		set_half(&dev->acq, shift, value);
	else if (reg == HW_REG_AQSIZE)
		dev->aqsize = value;
	else if (reg == HW_REG_AVECTOR)
		dev->avector = value;
	pthread_mutex_unlock(&dev->lock);
}

/* A word of the MSI-X table: address low, high, data, control (bit 0 masks). */
static void write_msix(struct sim_device *dev, uint32_t offset, uint32_t value)
{
	struct sim_vector *v = &dev->vectors[offset / 16];
	unsigned word = offset % 16 / 4;

	pthread_mutex_lock(&dev->lock);
	if (word < 3) {
		v->table[word] = value;
	} else {
		v->masked = value & 1;
		if (!v->masked && v->pending) {
			v->pending = false;
			sim_irq(dev, offset / 16);
		}
	}
	pthread_mutex_unlock(&dev->lock);
}

static uint32_t read_msix(struct sim_device *dev, uint32_t offset)
{
	const struct sim_vector *v = &dev->vectors[offset / 16];
	unsigned word = offset % 16 / 4;

	return word < 3 ? v->table[word] : v->masked;
}

static uint32_t pending_bits(struct sim_device *dev)
{
	uint32_t bits = 0;

	for (unsigned i = 0; i < HW_MAX_VECTORS; i++)
		bits |= (uint32_t)dev->vectors[i].pending << i;
	return bits;
}

static uint32_t read_word(struct sim_device *dev, uint32_t offset)
{
	unsigned shift;
	uint32_t reg;

	if (offset >= HW_MSIX_TABLE && offset < HW_MSIX_TABLE + HW_MAX_VECTORS * 16)
		return read_msix(dev, offset - HW_MSIX_TABLE);
	if (offset == HW_MSIX_PBA)
		return pending_bits(dev);
	reg = register_of(offset, &shift);
	return (uint32_t)(read_register(dev, reg) >> shift);
}

static bool is_refused(struct sim_device *dev, uint32_t offset, unsigned bytes)
{
	if ((bytes == 4 || bytes == 8) && offset % bytes == 0 && offset < HW_BAR0_BYTES)
		return false;
	pthread_mutex_lock(&dev->lock);
	dev->bad_access++;
	pthread_mutex_unlock(&dev->lock);
	return true;
}

uint64_t sim_mmio_read(struct sim_device *dev, uint32_t offset, unsigned bytes)
{
	uint64_t value;

	if (is_refused(dev, offset, bytes))
		return bytes == 4 ? 0xffffffffu : ~0ull;
	pthread_mutex_lock(&dev->lock);
	sim_queue_hear(dev);
	value = read_word(dev, offset);
	if (bytes == 8)
		value |= (uint64_t)read_word(dev, offset + 4) << 32;
	pthread_mutex_unlock(&dev->lock);
	return value;
}

static void write_word(struct sim_device *dev, uint32_t offset, uint32_t value)
{
	uint32_t bell = offset - HW_DOORBELL_BASE;

	if (offset >= HW_DOORBELL_BASE) {
		if (bell % HW_DOORBELL_STRIDE || bell / HW_DOORBELL_STRIDE >= HW_MAX_QUEUES)
			return;
		if (bell)
			sim_queue_ring(dev, bell / HW_DOORBELL_STRIDE, value);
		else
			sim_admin_ring(dev, value);
	} else if (offset >= HW_MSIX_TABLE && offset < HW_MSIX_TABLE + HW_MAX_VECTORS * 16) {
		write_msix(dev, offset - HW_MSIX_TABLE, value);
	} else {
		write_register(dev, offset, value);
	}
}

void sim_mmio_write(struct sim_device *dev, uint32_t offset, unsigned bytes, uint64_t value)
{
	unsigned ctx = hw_woken(offset, bytes);

	if (ctx) {
		sim_wake(dev, ctx);
		return;
	}
	if (is_refused(dev, offset, bytes))
		return;
	write_word(dev, offset, (uint32_t)value);
	if (bytes == 8)
		write_word(dev, offset + 4, (uint32_t)(value >> 32));
}

/* Masking is the driver's, by the table; see write_msix(). */
int sim_irq_fd(struct sim_device *dev, unsigned vector, int fd, struct err *err)
{
	if (vector >= HW_MAX_VECTORS)
		return err_set(err, ERR_OUT_OF_RANGE, "vector %u of %u", vector,
			       HW_MAX_VECTORS);
	pthread_mutex_lock(&dev->lock);
	dev->vectors[vector].fd = fd;
	pthread_mutex_unlock(&dev->lock);
	return 0;
}
