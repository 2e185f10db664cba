/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMI_SMI_H
#define SMI_SMI_H
/* xla-smi: facts are gathered once into plain structs (facts.c) and shown in one of
 * several forms (out.c). Nothing here opens a device. */
#include <stdbool.h>
#include <stdio.h>

#include "hal/telemetry.h"

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
	struct smi_device *devices;
	struct smi_process *processes;
	unsigned n_devices, n_processes;
	char looked[256];	/* where */
	char problem[512];	/* why this is not all there is; "": it is */
	unsigned n_unreadable;	/* pages that this user may not read */
};

void smi_gather(struct smi_facts *out);
void smi_free(struct smi_facts *f);
/* Whether the stream took it all is the caller's to ask. */
void smi_table(const struct smi_facts *f, FILE *to);
void smi_json(const struct smi_facts *f, FILE *to);

#endif
