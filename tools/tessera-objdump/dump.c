/* SPDX-License-Identifier: Apache-2.0 */
/* A crash dump (hal/dump.h) as text and as JSON, schema tessera-dump/1. Its tables lie within the
 * file; what one says of another is looked at here. */
#include <inttypes.h>
#include <json-c/json.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "hal/hal.h"
#include "hal/hw/isa_print.h"
#include "hal/hw/regs.h"
#include "tools/tessera-objdump/objdump.h"

/* ---- what both forms say ---- */

static const char *class_text(uint32_t cls)
{
	return cls == HAL_QUEUE_COMPUTE ? "compute" : cls == HAL_QUEUE_DMA ? "DMA" : "unknown";
}

static const char *queue_class_text(unsigned cls)
{
	return cls == HW_CLASS_COMPUTE ? "compute" : cls == HW_CLASS_DMA ? "DMA" : "unknown";
}

static const char *queue_is_text(unsigned is)
{
	static const char *const names[] = { "idle", "ready", "waiting", "running", "faulted",
					     "parked" };

	return is < sizeof(names) / sizeof(*names) ? names[is] : "unknown";
}

static const char *reason_text(uint32_t reason)
{
	return reason == HAL_DUMP_FAULT ? "fault" : reason == HAL_DUMP_DEATH ? "death" : "unknown";
}

/* "STATUS", "CLOCK+4": a register, or the upper half of one; "?" if it is none. */
static void register_name(uint32_t offset, char *out, size_t n)
{
	static const struct { uint32_t offset, bytes; const char *name; } regs[] = {
#define REG(name, offset, bytes, access, reset, meaning) { offset, bytes, #name },
#include "hal/hw/regs.def"
#undef REG
	};

	snprintf(out, n, "?");
	for (unsigned i = 0; i < sizeof(regs) / sizeof(*regs); i++)
		if (offset >= regs[i].offset && offset - regs[i].offset < regs[i].bytes)
			snprintf(out, n, offset == regs[i].offset ? "%s" : "%s+%u", regs[i].name,
				 offset - regs[i].offset);
}

/* The block that holds an address; NULL: none that the dump tells of. */
static const struct hal_dump_block *block_at(const struct hal_dump *d, uint64_t va)
{
	for (size_t i = 0; i < d->n_memory; i++)
		if (va >= d->memory[i].va && va - d->memory[i].va < d->memory[i].bytes)
			return &d->memory[i];
	return NULL;
}

static const char *block_kind(const struct hal_dump_block *b)
{
	return b->is_mapped ? "mapped" : b->is_host ? "host" : "HBM";
}

/* The op that the instruction at `offset` of the program is of. */
static const struct hal_dump_op *op_at(const struct hal_dump *d, uint64_t offset)
{
	const struct hal_dump_op *found = NULL;

	for (size_t i = 0; i < d->n_ops; i++)
		if (d->ops[i].offset <= offset && (!found || d->ops[i].offset >= found->offset))
			found = &d->ops[i];
	return found;
}

static void date(uint64_t ns, struct str *out)
{
	time_t seconds = (time_t)(ns / 1000000000);
	struct tm tm;

	/* Any 64 bits are a year that fits. */
	gmtime_r(&seconds, &tm);
	str_printf(out, "%04d-%02d-%02d %02d:%02d:%02d.%03u UTC", tm.tm_year + 1900, tm.tm_mon + 1,
		   tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec,
		   (unsigned)(ns / 1000000 % 1000));
}

/* "" where no program of the compiler's was running. */
static void fingerprint(const struct hal_dump_place *p, struct str *out)
{
	for (size_t i = 0; i < sizeof(p->fingerprint); i++)
		str_printf(out, "%02x", p->fingerprint[i]);
}

static void op_text(const struct hal_dump_op *o, struct str *out)
{
	str_printf(out, "%s%s%s", o->op, *o->where ? " at " : "", o->where);
}

/* ---- text ---- */

static void print_about(const struct hal_dump *d, struct str *out)
{
	const struct hal_dump_about *a = d->about;

	str_printf(out, "  %s\n\n  error        %s, %s\n  next step    %s\n  when         ",
		   a->text, err_name((int)a->code), err_severity((int)a->code),
		   err_next((int)a->code));
	date(a->time_ns, out);
	str_printf(out, "\n  process      %u %s, on %s\n  device       %s %s%s, driver %s, serial "
		   "%s, firmware %s, %" PRIu64 " bytes of HBM\n", a->pid, a->command, a->system,
		   a->bus_id, a->name, a->is_model ? " (the model)" : "", a->driver, a->serial,
		   a->firmware, a->hbm_bytes);
	str_printf(out, "  versions     contract %u.%u, ISA %u, images %u, dump %u\n",
		   a->contract >> 16, a->contract & 0xffff, a->isa, a->image_version,
		   HAL_DUMP_VERSION);
	if (d->place)
		str_printf(out, "  program      %s, made by %s, %" PRIu64 " bytes of code\n",
			   d->place->program, d->place->made_by, d->place->text_bytes);
}

static void print_fault(const struct hal_dump *d, struct str *out)
{
	const struct hw_fault *f = d->faults;
	const struct hal_dump_block *b;

	if (!f)
		return;
	str_printf(out, "\n  fault        %s (%u), record %" PRIu64 ", queue %u, context %u\n",
		   hw_status_name(f->status), f->status, f->number, f->queue, f->ctx);
	str_printf(out, "  access       %s of %" PRIu64 " bytes at 0x%" PRIx64,
		   f->is_write ? "write" : "read", f->bytes, f->va);
	b = block_at(d, f->va);
	if (b)
		str_printf(out, ", in \"%s\"", b->owner);
	if (f->operand != 0xffff)
		str_printf(out, ", operand %u", f->operand);
	if (f->binding != UINT32_MAX)
		str_printf(out, ", binding %u", f->binding);
	str_printf(out, "\n");
}

static void print_code(const struct hal_dump *d, struct str *out)
{
	const struct hal_dump_op *before = NULL;
	size_t step;

	if (!d->place || !d->n_code)
		return;
	str_printf(out, "\n  CODE\n");
	for (size_t at = 0; at < d->n_code; at += step) {
		uint64_t offset = d->place->code_from + at;
		const struct hal_dump_op *o = op_at(d, offset);

		if (o && o != before) {
			str_printf(out, "             ; ");
			op_text(o, out);
			str_printf(out, "\n");
		}
		before = o;
		str_printf(out, "  %s %08" PRIx64 "  ", offset == d->place->pc ? "=>" : "  ",
			   offset);
		step = isa_print_insn(d->code + at, d->n_code - at, offset, out);
		str_printf(out, "\n");
	}
}

static void print_bindings(const struct hal_dump *d, struct str *out)
{
	if (d->n_bindings)
		str_printf(out, "\n  %-8s %-16s %-11s %18s %14s %14s  %s\n", "BINDING", "HOLDS",
			   "ACCESS", "ADDRESS", "BYTES", "LEAST", "OWNER");
	for (size_t i = 0; i < d->n_bindings; i++) {
		const struct hal_dump_binding *b = &d->bindings[i];
		const struct image_binding as = { .kind = (uint8_t)(b->kind > 255 ? 255 : b->kind),
						  .access = (uint16_t)b->access };
		const struct hal_dump_block *m = block_at(d, b->va);
		bool is_fault = d->faults && d->faults->binding == i;

		str_printf(out, "%s b%-7zu %-11s %-4" PRIu32 " %-11s 0x%016" PRIx64 " %14" PRIu64
			   " %14" PRIu64 "  %s\n", is_fault ? "=>" : "  ", i,
			   objdump_binding_kind(&as), b->index, objdump_access(&as), b->va,
			   b->bytes, b->least, !b->bytes ? "" : m ? m->owner : "?");
	}
}

static void print_queues(const struct hal_dump *d, struct str *out)
{
	if (d->n_queues)
		str_printf(out, "\n  %-6s %-8s %-8s %-8s %10s %10s %14s\n", "QUEUE", "CONTEXT",
			   "CLASS", "IS", "TAIL", "HEAD", "RUNS FOR NS");
	for (size_t i = 0; i < d->n_queues; i++) {
		const struct hw_queue_state *q = &d->queues[i];

		str_printf(out, "  %-6u %-8u %-8s %-8s %10u %10u %14" PRIu64 "\n", q->queue,
			   q->ctx, queue_class_text(q->cls), queue_is_text(q->is), q->tail,
			   q->head, q->run_ns);
	}
	if (d->n_rings)
		str_printf(out, "\n  %-8s %-6s %12s %12s %12s\n", "CLASS", "QUEUE", "SUBMITTED",
			   "DONE", "FAILURES");
	for (size_t i = 0; i < d->n_rings; i++) {
		const struct hal_dump_ring *r = &d->rings[i];

		str_printf(out, "  %-8s %-6u %12" PRIu64 " %12" PRIu64 " %12" PRIu64 "\n",
			   class_text(r->cls), r->id, r->submitted, r->done, r->n_failures);
	}
	if (d->n_work)
		str_printf(out, "\n  %-12s %-8s %s\n", "PENDING", "CLASS", "RUNS");
	for (size_t i = 0; i < d->n_work; i++)
		str_printf(out, "  %-12" PRIu64 " %-8s %s\n", d->work[i].number,
			   class_text(d->work[i].cls),
			   d->work[i].is_program ? d->work[i].name : "a copy, a fill or nothing");
}

static void print_registers(const struct hal_dump *d, struct str *out)
{
	char name[32];

	if (d->n_registers)
		str_printf(out, "\n  %-12s %-8s %s\n", "REGISTER", "OFFSET", "VALUE");
	for (size_t i = 0; i < d->n_registers; i++) {
		register_name(d->registers[i].offset, name, sizeof(name));
		str_printf(out, "  %-12s 0x%04x   0x%08x\n", name, d->registers[i].offset,
			   d->registers[i].value);
	}
}

static void print_memory(const struct hal_dump *d, struct str *out)
{
	if (d->n_memory)
		str_printf(out, "\n  %-18s %14s  %-6s  %s\n", "ADDRESS", "BYTES", "IN", "OWNER");
	for (size_t i = 0; i < d->n_memory; i++) {
		const struct hal_dump_block *m = &d->memory[i];

		str_printf(out, "  0x%016" PRIx64 " %14" PRIu64 "  %-6s  %s\n", m->va, m->bytes,
			   block_kind(m), m->owner);
	}
}

static void print_rest(const struct hal_dump *d, struct str *out)
{
	const struct hw_telemetry *t = d->counters;
	const struct hw_ras *r = d->ras;

	if (t)
		str_printf(out, "\n  counters     %" PRIu64 " executions, %" PRIu64 " copies, %"
			   PRIu64 " faults, %u mC, %u mW, %u kHz, throttled %u\n", t->n_execute,
			   t->n_copy, t->n_fault, t->temperature_mc, t->power_mw, t->clock_khz,
			   t->throttle);
	if (r)
		str_printf(out, "  RAS          %" PRIu64 " corrected, %" PRIu64 " uncorrected, %"
			   PRIu64 " poisoned pages, %" PRIu64 " watchdogs, %" PRIu64
			   " queue resets, %" PRIu64 " function resets\n", r->ecc_corrected,
			   r->ecc_uncorrected, r->poisoned_pages, r->watchdog_fires,
			   r->queue_resets, r->function_resets);
	if (d->n_events)
		str_printf(out, "\n  EVENTS\n");
	for (size_t i = 0; i < d->n_events; i++) {
		str_printf(out, "  ");
		date(d->events[i].time_ns, out);
		str_printf(out, "  %s  %s\n", d->events[i].code ?
			   err_name((int)d->events[i].code) : "-", d->events[i].text);
	}
}

void objdump_dump_text(const char *path, const struct hal_dump *d, struct str *out)
{
	objdump_clean(path, out);
	str_printf(out, ": crash dump of a Tessera T1 (%s)\n\n", reason_text(d->about->reason));
	print_about(d, out);
	print_fault(d, out);
	print_code(d, out);
	print_bindings(d, out);
	print_queues(d, out);
	print_registers(d, out);
	print_memory(d, out);
	print_rest(d, out);
	str_printf(out, "\n");
}

/* ---- JSON ---- */

static void add(struct json_object *to, const char *key, struct json_object *value)
{
	json_object_object_add(to, key, value);
}

static void add_number(struct json_object *to, const char *key, uint64_t v)
{
	add(to, key, json_object_new_uint64(v));
}

static void add_text(struct json_object *to, const char *key, const char *text)
{
	add(to, key, json_object_new_string(text));
}

/* Adds a list of n objects, each made by `row`. */
static void add_list(struct json_object *to, const char *key, const struct hal_dump *d, size_t n,
		     void (*row)(const struct hal_dump *d, size_t i, struct json_object *o))
{
	struct json_object *list = json_object_new_array();

	for (size_t i = 0; i < n; i++) {
		struct json_object *o = json_object_new_object();

		row(d, i, o);
		json_object_array_add(list, o);
	}
	add(to, key, list);
}

static void register_row(const struct hal_dump *d, size_t i, struct json_object *o)
{
	char name[32];

	register_name(d->registers[i].offset, name, sizeof(name));
	add_text(o, "name", name);
	add_number(o, "offset", d->registers[i].offset);
	add_number(o, "value", d->registers[i].value);
}

static void queue_row(const struct hal_dump *d, size_t i, struct json_object *o)
{
	const struct hw_queue_state *q = &d->queues[i];

	add_number(o, "queue", q->queue);
	add_number(o, "context", q->ctx);
	add_text(o, "class", queue_class_text(q->cls));
	add_text(o, "is", queue_is_text(q->is));
	add_number(o, "tail", q->tail);
	add_number(o, "head", q->head);
	add_number(o, "run_ns", q->run_ns);
}

static void ring_row(const struct hal_dump *d, size_t i, struct json_object *o)
{
	const struct hal_dump_ring *r = &d->rings[i];

	add_text(o, "class", class_text(r->cls));
	add_number(o, "queue", r->id);
	add_number(o, "submitted", r->submitted);
	add_number(o, "done", r->done);
	add_number(o, "failures", r->n_failures);
}

static void work_row(const struct hal_dump *d, size_t i, struct json_object *o)
{
	add_number(o, "number", d->work[i].number);
	add_text(o, "class", class_text(d->work[i].cls));
	add(o, "program", d->work[i].is_program ? json_object_new_string(d->work[i].name) : NULL);
}

static void binding_row(const struct hal_dump *d, size_t i, struct json_object *o)
{
	const struct hal_dump_binding *b = &d->bindings[i];
	const struct image_binding as = { .kind = (uint8_t)(b->kind > 255 ? 255 : b->kind),
					  .access = (uint16_t)b->access };
	const struct hal_dump_block *m = b->bytes ? block_at(d, b->va) : NULL;

	add_text(o, "holds", objdump_binding_kind(&as));
	add_number(o, "index", b->index);
	add_text(o, "access", objdump_access(&as));
	add_number(o, "address", b->va);
	add_number(o, "bytes", b->bytes);
	add_number(o, "least_bytes", b->least);
	add(o, "owner", m ? json_object_new_string(m->owner) : NULL);
}

static void memory_row(const struct hal_dump *d, size_t i, struct json_object *o)
{
	add_number(o, "address", d->memory[i].va);
	add_number(o, "bytes", d->memory[i].bytes);
	add_text(o, "in", block_kind(&d->memory[i]));
	add_text(o, "owner", d->memory[i].owner);
}

static void event_row(const struct hal_dump *d, size_t i, struct json_object *o)
{
	add_number(o, "number", d->events[i].number);
	add_number(o, "time_ns", d->events[i].time_ns);
	add_text(o, "code", err_name((int)d->events[i].code));
	add_text(o, "text", d->events[i].text);
}

static struct json_object *about_json(const struct hal_dump *d)
{
	const struct hal_dump_about *a = d->about;
	struct json_object *o = json_object_new_object();

	add_text(o, "reason", reason_text(a->reason));
	add_text(o, "code", err_name((int)a->code));
	add_text(o, "severity", err_severity((int)a->code));
	add_text(o, "next", err_next((int)a->code));
	add_text(o, "text", a->text);
	add_number(o, "time_ns", a->time_ns);
	add_number(o, "pid", a->pid);
	add_text(o, "command", a->command);
	add_text(o, "system", a->system);
	add_text(o, "bus_id", a->bus_id);
	add_text(o, "name", a->name);
	add_text(o, "serial", a->serial);
	add_text(o, "firmware", a->firmware);
	add_text(o, "driver", a->driver);
	add(o, "is_model", json_object_new_boolean(a->is_model != 0));
	add_number(o, "hbm_bytes", a->hbm_bytes);
	add_number(o, "contract", a->contract);
	add_number(o, "isa", a->isa);
	add_number(o, "image_version", a->image_version);
	return o;
}

/* null: the device gave no record. */
static struct json_object *fault_json(const struct hal_dump *d)
{
	const struct hw_fault *f = d->faults;
	const struct hal_dump_block *m = f ? block_at(d, f->va) : NULL;
	struct json_object *o;

	if (!f)
		return NULL;
	o = json_object_new_object();
	add_text(o, "status", hw_status_name(f->status));
	add_text(o, "meaning", hw_status_text(f->status));
	add_number(o, "number", f->number);
	add_number(o, "queue", f->queue);
	add_number(o, "context", f->ctx);
	add_number(o, "pc", f->pc);
	add_number(o, "address", f->va);
	add_number(o, "bytes", f->bytes);
	add(o, "is_write", json_object_new_boolean(f->is_write != 0));
	add(o, "operand", f->operand == 0xffff ? NULL : json_object_new_int(f->operand));
	add(o, "binding", f->binding == UINT32_MAX ? NULL : json_object_new_uint64(f->binding));
	add(o, "owner", m ? json_object_new_string(m->owner) : NULL);
	return o;
}

static struct json_object *code_json(const struct hal_dump *d)
{
	struct json_object *list = json_object_new_array();
	struct str printed = { 0 };
	size_t step;

	for (size_t at = 0; at < d->n_code && d->place; at += step) {
		uint64_t offset = d->place->code_from + at;
		const struct hal_dump_op *op = op_at(d, offset);
		struct json_object *o = json_object_new_object();

		printed.len = 0;
		step = isa_print_insn(d->code + at, d->n_code - at, offset, &printed);
		add_number(o, "offset", offset);
		add_text(o, "text", printed.failed ? "" : printed.text);
		add(o, "is_at_fault", json_object_new_boolean(offset == d->place->pc));
		add(o, "op", op ? json_object_new_string(op->op) : NULL);
		add(o, "where", op ? json_object_new_string(op->where) : NULL);
		json_object_array_add(list, o);
	}
	str_free(&printed);
	return list;
}

/* null: no program of the compiler's was at fault. */
static struct json_object *program_json(const struct hal_dump *d)
{
	struct str hex = { 0 };
	struct json_object *o;

	if (!d->place)
		return NULL;
	o = json_object_new_object();
	fingerprint(d->place, &hex);
	add_text(o, "name", d->place->program);
	add_text(o, "made_by", d->place->made_by);
	add_text(o, "fingerprint", hex.failed ? "" : hex.text);
	add_number(o, "code_bytes", d->place->text_bytes);
	add_number(o, "pc", d->place->pc);
	str_free(&hex);
	return o;
}

struct json_object *objdump_dump_json(const char *path, const struct hal_dump *d)
{
	struct json_object *o = json_object_new_object();
	struct str name = { 0 };

	objdump_clean(path, &name);
	add_text(o, "path", name.failed || !name.text ? "" : name.text);
	str_free(&name);
	add(o, "about", about_json(d));
	add(o, "program", program_json(d));
	add(o, "fault", fault_json(d));
	add(o, "code", code_json(d));
	add_list(o, "bindings", d, d->n_bindings, binding_row);
	add_list(o, "queues", d, d->n_queues, queue_row);
	add_list(o, "rings", d, d->n_rings, ring_row);
	add_list(o, "pending", d, d->n_work, work_row);
	add_list(o, "registers", d, d->n_registers, register_row);
	add_list(o, "memory", d, d->n_memory, memory_row);
	add_list(o, "events", d, d->n_events, event_row);
	return o;
}
