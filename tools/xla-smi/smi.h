/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMI_SMI_H
#define SMI_SMI_H
/* xla-smi: facts are gathered once into plain structs (facts.c) and shown in one of
 * several forms (out.c). Nothing here opens a device. */
#include <stdbool.h>
#include <stdio.h>

#include "hal/telemetry.h"

#define SMI_MAX_DEVICES 256
#define SMI_MAX_PROCESSES 256

struct smi_device {
	char bus_id[64], name[32], driver[32], state[96];
	bool is_model;
	unsigned pid;		/* of the process whose page tells of it; 0: found by us */
	uint64_t memory_total, memory_used;
	double utilisation;	/* 0 to 100; -1: unknown */
	unsigned temperature_c, power_w;
};

struct smi_process {
	unsigned pid;
	char command[64], running[64];
	char devices[96];	/* bus ids */
	uint64_t memory_used;
};

struct smi_facts {
	struct smi_device devices[SMI_MAX_DEVICES];
	struct smi_process processes[SMI_MAX_PROCESSES];
	unsigned n_devices, n_processes;
	char looked[256];	/* where */
};

void smi_gather(struct smi_facts *out);
void smi_table(const struct smi_facts *f, FILE *to);
int smi_json(const struct smi_facts *f, FILE *to);

#endif
