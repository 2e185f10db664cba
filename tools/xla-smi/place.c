/* SPDX-License-Identifier: Apache-2.0 */
/* Where a device is: its PCI function in sysfs, the link, the port above, the way to others. */
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hal/base/files.h"
#include "tools/xla-smi/smi.h"

bool smi_read_line(char *out, size_t bytes, const char *fmt, ...)
{
	char path[SMI_PATH];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(path, sizeof(path), fmt, ap);
	va_end(ap);
	return files_read_line(path, out, bytes);
}

static struct smi_num read_num(const char *dir, const char *file)
{
	char text[64], *end;
	unsigned long long n;

	if (!smi_read_line(text, sizeof(text), "%s/%s", dir, file) || *text == '-')
		return (struct smi_num){ 0 };
	n = strtoull(text, &end, 10);
	return end == text ? (struct smi_num){ 0 } : smi_known(n);
}

/* Lanes. A function without a link says 0 and 255. */
static struct smi_num read_width(const char *dir, const char *file)
{
	struct smi_num n = read_num(dir, file);

	return n.n == 0 || n.n == 255 ? (struct smi_num){ 0 } : n;
}

/* "16.0 GT/s PCIe"; "Unknown" where the link is down. */
static double read_gts(const char *dir, const char *file)
{
	char text[64], *end;
	double value;

	if (!smi_read_line(text, sizeof(text), "%s/%s", dir, file))
		return NAN;
	value = strtod(text, &end);
	return end == text ? NAN : value;
}

/* The sum of the lines of an AER file that hold `word`; unknown if there is no such file. */
static struct smi_num read_aer(const char *dir, const char *file, const char *word)
{
	char path[SMI_PATH], line[256];
	struct smi_num sum = { 0 };
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, file);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f)) {
		const char *number = strrchr(line, ' ');

		if (strstr(line, word) && number)
			sum = smi_known(sum.n + strtoull(number, NULL, 10));
	}
	if (f)
		fclose(f);
	return sum;
}

static struct smi_num read_group(const char *dir)
{
	char path[SMI_PATH], target[PATH_MAX];
	ssize_t n;

	snprintf(path, sizeof(path), "%s/iommu_group", dir);
	n = readlink(path, target, sizeof(target) - 1);
	if (n <= 0)
		return (struct smi_num){ 0 };
	target[n] = 0;
	return smi_known(strtoull(strrchr(target, '/') ? strrchr(target, '/') + 1 : target, NULL,
				  10));
}

static bool find_dir(const char *root, const char *pci, char out[PATH_MAX])
{
	char path[SMI_PATH];

	snprintf(path, sizeof(path), "%s/sys/bus/pci/devices/%s", root, pci);
	return *pci && realpath(path, out);
}

void smi_place(const char *root, struct smi_device *d)
{
	struct smi_num fatal, other;
	char dir[PATH_MAX];

	if (!find_dir(root, d->pci, dir))
		return;
	d->numa_node = read_num(dir, "numa_node");
	smi_read_line(d->cpus, sizeof(d->cpus), "%s/local_cpulist", dir);
	d->iommu_group = read_group(dir);
	d->link_gts = read_gts(dir, "current_link_speed");
	d->link_width = read_width(dir, "current_link_width");
	d->link_max_gts = read_gts(dir, "max_link_speed");
	d->link_max_width = read_width(dir, "max_link_width");
	d->pcie_correctable = read_aer(dir, "aer_dev_correctable", "TOTAL_ERR_COR");
	d->pcie_replay = read_aer(dir, "aer_dev_correctable", "Rollover");
	other = read_aer(dir, "aer_dev_correctable", "Timeout");
	if (other.is_known)
		d->pcie_replay = smi_known(d->pcie_replay.n + other.n);
	fatal = read_aer(dir, "aer_dev_fatal", "TOTAL_ERR_FATAL");
	other = read_aer(dir, "aer_dev_nonfatal", "TOTAL_ERR_NONFATAL");
	if (fatal.is_known || other.is_known)
		d->pcie_uncorrectable = smi_known(fatal.n + other.n);
	*strrchr(dir, '/') = 0;
	d->port_max_gts = read_gts(dir, "max_link_speed");
	d->port_max_width = read_width(dir, "max_link_width");
}

void smi_place_of_node(const char *root, const char *name, char pci[16])
{
	char path[SMI_PATH], real[PATH_MAX];
	const char *last;

	*pci = 0;
	snprintf(path, sizeof(path), "%s/sys/class/accel/%s/device", root, name);
	last = realpath(path, real) ? strrchr(real, '/') + 1 : "";
	if (strlen(last) == 12 && last[4] == ':' && last[7] == ':' && last[10] == '.')
		memcpy(pci, last, 13);
}

/* ---- the way from one to another ---- */

/* The folders of a path from "pciDDDD:BB" on; how many. */
static unsigned split(char *path, char **part, unsigned room)
{
	unsigned n = 0;
	char *save = NULL, *start = strstr(path, "/pci");

	for (char *p = start ? strtok_r(start, "/", &save) : NULL; p && n < room;
	     p = strtok_r(NULL, "/", &save))
		part[n++] = p;
	return n;
}

static void find_way(const char *root, const struct smi_device *a, const struct smi_device *b,
		     struct smi_path *out)
{
	char x[PATH_MAX], y[PATH_MAX], *px[32], *py[32];
	unsigned nx, ny, same = 0, hops;

	if (!find_dir(root, a->pci, x) || !find_dir(root, b->pci, y))
		return;
	nx = split(x, px, 32);
	ny = split(y, py, 32);
	while (same < nx && same < ny && !strcmp(px[same], py[same]))
		same++;
	if (!same && a->numa_node.is_known && b->numa_node.is_known) {
		snprintf(out->relation, sizeof(out->relation), "%s",
			 a->numa_node.n == b->numa_node.n ? "NODE" : "SYS");
		return;
	}
	if (!same)
		return;
	/* Bridges on the way: those below the common one, and that. */
	hops = nx - same - (nx > same) + ny - same - (ny > same) + 1;
	out->hops = smi_known(hops);
	snprintf(out->relation, sizeof(out->relation), "%s", same == 1 ? "PHB" :
		 hops == 1 ? "PIX" : "PXB");
}

void smi_add_paths(const char *root, struct smi_node *node)
{
	unsigned n = SMI_COUNT(node, devices);

	for (unsigned i = 0; i < n; i++)
		for (unsigned k = 0; k < n; k++) {
			const struct smi_device *a = &SMI_GET(node, devices, smi_device)[i];
			const struct smi_device *b = &SMI_GET(node, devices, smi_device)[k];
			struct smi_path *p;

			if (i == k || !*a->pci || !*b->pci)
				continue;
			p = smi_add(node, SMI_paths);
			if (!p)
				return;
			snprintf(p->from, sizeof(p->from), "%s", a->bus_id);
			snprintf(p->to, sizeof(p->to), "%s", b->bus_id);
			find_way(root, a, b, p);
		}
}
