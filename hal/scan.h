/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HAL_SCAN_H
#define HAL_SCAN_H
/*
 * What hardware this machine has, without opening it: PCI functions, and nodes of the kernel
 * driver. Knows neither the model nor how a device is used, so that a tool which only looks
 * links nothing else. enumerate.c makes a HAL's list of it.
 *
 * Any thread may call; nothing here keeps state. Functions read sysfs, and a node is opened
 * for one query (bounded); no work of a device is disturbed. A device that can't be reached
 * is listed all the same: info.can_open is false and info.state says why.
 */
#include "hal/bus/vfio.h"
#include "hal/hal.h"

/* A device that is not open: what is known of it, and what opening it needs (the PCI
 * address, behind "noiommu:" if so; the path of a node or socket; the model's index). */
struct hal_found {
	struct hal_device_info info;
	char where[128];
};

/* A T1 of which nothing but this is known. */
void hal_found_init(struct hal_found *out, enum hal_kind kind, const char *bus_id);

/* All of them, nodes first; a function that has a node is listed as that. *out is the
 * caller's to free(), NULL if there is none. RESOURCE_EXHAUSTED: out of memory. */
int hal_scan(struct hal_found **out, unsigned *n, struct err *err);
/* The function `bdf`, which is a T1, as it would be reached this way. */
void hal_scan_function(const char *bdf, enum vfio_way way, struct hal_found *out);
/* The node `path` of the kernel driver. */
void hal_scan_node(const char *path, struct hal_found *out);

#endif
