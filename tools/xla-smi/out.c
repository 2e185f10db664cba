/* SPDX-License-Identifier: Apache-2.0 */
/* The facts as a table and as JSON. */
#include <json-c/json.h>

#include "tools/xla-smi/smi.h"

static const double mib = 1 << 20;

void smi_table(const struct smi_facts *f, FILE *to)
{
	if (!f->n_devices && !f->n_processes) {
		/* With a problem, nobody knows that. */
		if (!*f->problem)
			fprintf(to, "No device and no process that uses one. Looked for: %s.\n",
				f->looked);
		return;
	}
	fprintf(to, "%-14s %-12s %-9s %-11s %20s %6s %5s %6s  %s\n", "BUS ID", "DEVICE", "KIND",
		"DRIVER", "MEMORY (MiB)", "UTIL", "TEMP", "POWER", "STATE");
	for (unsigned i = 0; i < f->n_devices; i++) {
		const struct smi_device *d = &f->devices[i];
		char memory[32], util[16];

		snprintf(memory, sizeof(memory), "%.1f / %.0f", (double)d->memory_used / mib,
			 (double)d->memory_total / mib);
		snprintf(util, sizeof(util), d->utilisation < 0 ? "?" : "%.0f%%",
			 d->utilisation);
		fprintf(to, "%-14s %-12s %-9s %-11s %20s %6s %4uC %5uW  %s\n", d->bus_id,
			d->name, d->is_model ? "model" : "hardware", d->driver, memory, util,
			d->temperature_c, d->power_w, d->state);
	}
	fprintf(to, "\n%8s  %-16s %-20s %13s  %s\n", "PID", "COMMAND", "DEVICES", "MEMORY (MiB)",
		"RUNNING");
	for (unsigned i = 0; i < f->n_processes; i++) {
		const struct smi_process *p = &f->processes[i];

		fprintf(to, "%8u  %-16s %-20s %13.1f  %s\n", p->pid, p->command, p->devices,
			(double)p->memory_used / mib, p->running);
	}
	if (!f->n_processes)
		fputs(*f->problem ? "processes could not be looked for\n" :
		      "no process uses a device\n", to);
}

static void add(struct json_object *to, const char *key, struct json_object *value)
{
	json_object_object_add(to, key, value);
}

static struct json_object *device(const struct smi_device *d)
{
	struct json_object *o = json_object_new_object();

	add(o, "bus_id", json_object_new_string(d->bus_id));
	add(o, "name", json_object_new_string(d->name));
	add(o, "is_model", json_object_new_boolean(d->is_model));
	add(o, "driver", json_object_new_string(d->driver));
	add(o, "state", json_object_new_string(d->state));
	add(o, "memory_total_bytes", json_object_new_uint64(d->memory_total));
	add(o, "memory_used_bytes", json_object_new_uint64(d->memory_used));
	add(o, "utilisation_percent", d->utilisation < 0 ? NULL :
	    json_object_new_double(d->utilisation));
	add(o, "temperature_c", json_object_new_int64(d->temperature_c));
	add(o, "power_w", json_object_new_int64(d->power_w));
	add(o, "pid", d->pid ? json_object_new_int64(d->pid) : NULL);
	return o;
}

static struct json_object *process(const struct smi_process *p)
{
	struct json_object *o = json_object_new_object();

	add(o, "pid", json_object_new_int64(p->pid));
	add(o, "command", json_object_new_string(p->command));
	add(o, "devices", json_object_new_string(p->devices));
	add(o, "memory_used_bytes", json_object_new_uint64(p->memory_used));
	add(o, "running", json_object_new_string(p->running));
	return o;
}

void smi_json(const struct smi_facts *f, FILE *to)
{
	struct json_object *o = json_object_new_object();
	struct json_object *devices = json_object_new_array();
	struct json_object *processes = json_object_new_array();

	add(o, "schema", json_object_new_string("tessera-smi/1"));
	for (unsigned i = 0; i < f->n_devices; i++)
		json_object_array_add(devices, device(&f->devices[i]));
	for (unsigned i = 0; i < f->n_processes; i++)
		json_object_array_add(processes, process(&f->processes[i]));
	add(o, "devices", devices);
	add(o, "processes", processes);
	add(o, "looked_for", json_object_new_string(f->looked));
	add(o, "problem", *f->problem ? json_object_new_string(f->problem) : NULL);
	fprintf(to, "%s\n", json_object_to_json_string_ext(o, JSON_C_TO_STRING_PRETTY));
	json_object_put(o);
}
