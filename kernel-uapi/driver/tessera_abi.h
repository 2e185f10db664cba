/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
#ifndef TESSERA_ABI_H
#define TESSERA_ABI_H
/*
 * The device's definitions are in hal/hw; tessera_device.h has those that programs need once more,
 * so that the ABI can be had alone. What differs does not compile, here and in
 * tests/kmod/layout.c.
 */
#include "hal/hw/desc.h"
#include "hal/hw/regs.h"
#include "tessera_drm.h"

#define SIZE(ours, hw) \
	static_assert(sizeof(struct drm_tessera_##ours) == sizeof(struct hw_##hw), #ours)
#define MEMBER(ours, member, hw, theirs) \
	static_assert(offsetof(struct drm_tessera_##ours, member) == \
		      offsetof(struct hw_##hw, theirs) && \
		      sizeof(((struct drm_tessera_##ours *)0)->member) == \
		      sizeof(((struct hw_##hw *)0)->theirs), #ours "." #member)
#define SAME(ours, hw, member) MEMBER(ours, member, hw, member)
#define VALUE(ours, hw) static_assert((int)DRM_TESSERA_##ours == (int)HW_##hw, #ours)

/* Each status, and each request that is for programs. */
#define FAULT(name, number, code, text) \
	static_assert(DRM_TESSERA_STATUS_##name == (number), #name);
#include "hal/hw/fault.def"
#undef FAULT
#define ABI_OF_ADMIN(name, number)
#define ABI_OF_WORK(name, number) static_assert(DRM_TESSERA_OP_##name == (number), #name);
#define ABI_OF_ANY(name, number) ABI_OF_WORK(name, number)
#define DESC(name, number, cls, status, effect) ABI_OF_##cls(name, number)
#include "hal/hw/desc.def"
#undef DESC
#undef ABI_OF_ADMIN
#undef ABI_OF_WORK
#undef ABI_OF_ANY

#define TRACE(name, number, what, pc) \
	static_assert(DRM_TESSERA_TRACE_##name == (number), #name);
#include "hal/hw/trace.def"
#undef TRACE

VALUE(CLASS_COMPUTE, CLASS_COMPUTE);
VALUE(CLASS_DMA, CLASS_DMA);
VALUE(DESC_WAIT, WAIT);
VALUE(DESC_SIGNAL, SIGNAL);
VALUE(DESC_IRQ, IRQ);
VALUE(DESC_INLINE, INLINE);
VALUE(BIND_READ, BIND_READ);
VALUE(BIND_WRITE, BIND_WRITE);
VALUE(BIND_SCRATCH, BIND_SCRATCH);
VALUE(BIND_PEER, BIND_PEER);
VALUE(LINK_UP, LINK_UP);
VALUE(LINK_PEER_FATAL, LINK_PEER_FATAL);
VALUE(LINK_PEER_OFF, LINK_PEER_OFF);
VALUE(LINK_DOWN, LINK_DOWN);
VALUE(TRACE_MAX_RECORDS, TRACE_MAX_RECORDS);
static_assert(DRM_TESSERA_IDENTITY_MAGIC == HW_IDENTIFY_MAGIC, "magic");

SIZE(desc, sqe);
SAME(desc, sqe, op);
SAME(desc, sqe, flags);
MEMBER(desc, zero, sqe, id);
SAME(desc, sqe, tag);
SAME(desc, sqe, wait_va);
SAME(desc, sqe, wait_value);
SAME(desc, sqe, signal_va);
SAME(desc, sqe, signal_value);
SAME(desc, sqe, u.execute.bindings);
SAME(desc, sqe, u.execute.program);
SAME(desc, sqe, u.execute.n_bindings);
SAME(desc, sqe, u.execute.limit_ns);
SAME(desc, sqe, u.copy.src);
SAME(desc, sqe, u.copy.dst);
SAME(desc, sqe, u.copy.bytes);

SIZE(completion, cqe);
SAME(completion, cqe, tag);
SAME(completion, cqe, status);
SAME(completion, cqe, phase);
SAME(completion, cqe, sq_head);
SAME(completion, cqe, value);
SAME(completion, cqe, detail);

SIZE(binding, binding);
SAME(binding, binding, va);
SAME(binding, binding, bytes);

SIZE(program_binding, program_binding);
SAME(program_binding, program_binding, bytes);
SAME(program_binding, program_binding, access);

SIZE(copy_2d, copy_2d);
SAME(copy_2d, copy_2d, src);
SAME(copy_2d, copy_2d, dst);
SAME(copy_2d, copy_2d, row_bytes);
SAME(copy_2d, copy_2d, rows);
SAME(copy_2d, copy_2d, planes);
SAME(copy_2d, copy_2d, src_row);
SAME(copy_2d, copy_2d, dst_row);
SAME(copy_2d, copy_2d, src_plane);
SAME(copy_2d, copy_2d, dst_plane);

SIZE(identity, identify);
SAME(identity, identify, magic);
SAME(identity, identify, contract);
SAME(identity, identify, isa);
SAME(identity, identify, name);
SAME(identity, identify, serial);
SAME(identity, identify, firmware);
SAME(identity, identify, hbm_bytes);
SAME(identity, identify, max_contexts);
SAME(identity, identify, max_queues);
SAME(identity, identify, max_programs);
SAME(identity, identify, max_maps);
SAME(identity, identify, n_vectors);
SAME(identity, identify, cores);
SAME(identity, identify, is_model);
SAME(identity, identify, fabric);
SAME(identity, identify, chip);
SAME(identity, identify, n_chips);
SAME(identity, identify, coords);
SAME(identity, identify, shape);

SIZE(fault, fault);
SAME(fault, fault, number);
SAME(fault, fault, time_ns);
SAME(fault, fault, status);
SAME(fault, fault, queue);
SAME(fault, fault, ctx);
SAME(fault, fault, operand);
SAME(fault, fault, program);
SAME(fault, fault, tag);
SAME(fault, fault, pc);
SAME(fault, fault, va);
SAME(fault, fault, bytes);
SAME(fault, fault, binding);
SAME(fault, fault, is_write);

SIZE(trace_record, trace_record);
SAME(trace_record, trace_record, number);
SAME(trace_record, trace_record, begin_ns);
SAME(trace_record, trace_record, end_ns);
SAME(trace_record, trace_record, kind);
SAME(trace_record, trace_record, cls);
SAME(trace_record, trace_record, queue);
SAME(trace_record, trace_record, program);
SAME(trace_record, trace_record, tag);
SAME(trace_record, trace_record, pc);
SAME(trace_record, trace_record, bytes);
SAME(trace_record, trace_record, ops);
SAME(trace_record, trace_record, n_insns);
SAME(trace_record, trace_record, status);
SAME(trace_record, trace_record, op);

SIZE(telemetry, telemetry);
SAME(telemetry, telemetry, time_ns);
SAME(telemetry, telemetry, busy_compute_ns);
SAME(telemetry, telemetry, busy_dma_ns);
SAME(telemetry, telemetry, hbm_read_bytes);
SAME(telemetry, telemetry, hbm_write_bytes);
SAME(telemetry, telemetry, dma_in_bytes);
SAME(telemetry, telemetry, dma_out_bytes);
SAME(telemetry, telemetry, n_execute);
SAME(telemetry, telemetry, n_copy);
SAME(telemetry, telemetry, n_fault);
SAME(telemetry, telemetry, n_insn);
SAME(telemetry, telemetry, matrix_ops);
SAME(telemetry, telemetry, vector_ops);
SAME(telemetry, telemetry, temperature_mc);
SAME(telemetry, telemetry, power_mw);
SAME(telemetry, telemetry, clock_khz);
SAME(telemetry, telemetry, throttle);

SIZE(link, link);
SAME(link, link, peer);
SAME(link, link, dim);
SAME(link, link, is_down);
SAME(link, link, is);
SAME(link, link, tx_bytes);
SAME(link, link, rx_bytes);
SAME(link, link, n_packets);
SAME(link, link, n_errors);

SIZE(ras, ras);
SAME(ras, ras, ecc_corrected);
SAME(ras, ras, ecc_uncorrected);
SAME(ras, ras, poisoned_pages);
SAME(ras, ras, watchdog_fires);
SAME(ras, ras, queue_resets);
SAME(ras, ras, function_resets);
SAME(ras, ras, fatal);

#undef SIZE
#undef MEMBER
#undef SAME
#undef VALUE

#endif
