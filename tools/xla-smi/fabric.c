/* SPDX-License-Identifier: Apache-2.0 */
/* Chips that are linked: who is at a link's other end, and how far chips are from each other.
 * What is told of links comes from the pages of those who have the chips open. */
#include <stdlib.h>
#include <string.h>

#include "tools/xla-smi/smi.h"

#define MAX_HOPS 65536u	/* rows; more chips than any fabric has are a stranger's */

/* The device of this number in a fabric; NULL: nobody tells of it. */
static const struct smi_device *find_chip(const struct smi_node *node, const char *fabric,
					  uint64_t chip)
{
	for (unsigned i = 0; i < SMI_COUNT(node, devices); i++) {
		const struct smi_device *d = &SMI_GET(node, devices, smi_device)[i];

		if (d->chip.is_known && d->chip.n == chip && !strcmp(d->fabric, fabric))
			return d;
	}
	return NULL;
}

static void sum_up(const struct smi_node *node, struct smi_device *d)
{
	unsigned n = 0, n_up = 0;

	for (unsigned i = 0; i < SMI_COUNT(node, links); i++) {
		const struct smi_link *l = &SMI_GET(node, links, smi_link)[i];

		if (strcmp(l->fabric, d->fabric) || strcmp(l->bus_id, d->bus_id) ||
		    (smi_is_of_process(d->kind) && l->pid.n != d->pid.n))
			continue;
		n++;
		n_up += l->up.n == 1;
	}
	if (n)
		snprintf(d->links, sizeof(d->links), "%u of %u work", n_up, n);
	else if (!strcmp(d->kind, "accel"))
		snprintf(d->links, sizeof(d->links), "unknown: the kernel driver is too old "
			 "to tell");
	else
		snprintf(d->links, sizeof(d->links), "unknown: process %llu has not told of them",
			 (unsigned long long)d->pid.n);
}

void smi_join_links(struct smi_node *node)
{
	for (unsigned i = 0; i < SMI_COUNT(node, devices); i++) {
		struct smi_device *d = &SMI_GET(node, devices, smi_device)[i];

		if (*d->fabric)
			sum_up(node, d);
		else if (!*d->links)
			snprintf(d->links, sizeof(d->links), "unknown: only who has the device "
				 "open can ask, and no process tells");
	}
	for (unsigned i = 0; i < SMI_COUNT(node, links); i++) {
		struct smi_link *l = &SMI_GET(node, links, smi_link)[i];
		const struct smi_device *peer = find_chip(node, l->fabric, l->peer_chip.n);

		if (peer)
			snprintf(l->peer_bus_id, sizeof(l->peer_bus_id), "%s", peer->bus_id);
	}
}

/* Dimension by dimension the shorter way round; unknown if a place is outside the torus. */
static struct smi_num count_hops(const struct smi_device *from, const struct smi_device *to)
{
	unsigned a[3], b[3], shape[3];
	uint64_t n = 0;

	if (sscanf(from->coords, "%u,%u,%u", &a[0], &a[1], &a[2]) != 3 ||
	    sscanf(to->coords, "%u,%u,%u", &b[0], &b[1], &b[2]) != 3 ||
	    sscanf(from->shape, "%ux%ux%u", &shape[0], &shape[1], &shape[2]) != 3 ||
	    strcmp(from->shape, to->shape))
		return (struct smi_num){ 0 };
	for (unsigned d = 0; d < 3; d++) {
		unsigned far = a[d] > b[d] ? a[d] - b[d] : b[d] - a[d];

		if (a[d] >= shape[d] || b[d] >= shape[d])
			return (struct smi_num){ 0 };
		n += far < shape[d] - far ? far : shape[d] - far;
	}
	return smi_known(n);
}

static bool add_hop(struct smi_node *node, const struct smi_device *from,
		    const struct smi_device *to)
{
	struct smi_hop *h;

	if (SMI_COUNT(node, hops) == MAX_HOPS) {
		smi_note(node, "of so many chips, not all hops are counted");
		return false;
	}
	h = smi_add(node, SMI_hops);
	if (!h)
		return false;
	snprintf(h->fabric, sizeof(h->fabric), "%s", from->fabric);
	snprintf(h->from, sizeof(h->from), "%s", from->bus_id);
	snprintf(h->to, sizeof(h->to), "%s", to->bus_id);
	h->from_chip = from->chip;
	h->to_chip = to->chip;
	h->hops = count_hops(from, to);
	return true;
}

void smi_add_hops(struct smi_node *node)
{
	const struct smi_device *d = SMI_GET(node, devices, smi_device);
	unsigned n = SMI_COUNT(node, devices);

	for (unsigned i = 0; i < n; i++)
		for (unsigned k = 0; *d[i].fabric && k < n; k++)
			if (i != k && !strcmp(d[i].fabric, d[k].fabric) &&
			    !add_hop(node, &d[i], &d[k]))
				return;
}
