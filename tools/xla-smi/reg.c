/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Registers by name, through the file that sysfs has for BAR0: neither VFIO nor the kernel
 * driver is opened, so nobody's device is taken or reset. Only what regs.def calls RO is
 * read; none of those has an effect.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hal/hw/regs.h"
#include "tools/xla-smi/smi.h"

#define PCI_COMMAND 4
#define PCI_COMMAND_MEMORY 2	/* it answers in its BARs */

static const struct reg {
	const char *name, *access, *meaning;
	unsigned offset, bytes;
} regs[] = {
#define REG(name, offset, bytes, access, reset, meaning) \
	{ #name, #access, meaning, offset, bytes },
#include "hal/hw/regs.def"
#undef REG
};
#define N_REGS (sizeof(regs) / sizeof(*regs))

static bool is_readable(const struct reg *r)
{
	return !strcmp(r->access, "RO");
}

static int refuse(const char *what, const char *why)
{
	fprintf(stderr, "xla-smi: %s: %s\n", what, why);
	return SMI_REFUSED;
}

/* The register of this name, which may be read; `status` if there is none. */
static const struct reg *find_reg(const char *name, int *status)
{
	for (unsigned i = 0; i < N_REGS; i++) {
		if (strcasecmp(regs[i].name, name))
			continue;
		*status = is_readable(&regs[i]) ? SMI_OK : SMI_REFUSED;
		if (*status)
			fprintf(stderr, "xla-smi: register %s is %s, its driver's: only registers "
				"that are RO are read\n", regs[i].name, regs[i].access);
		return &regs[i];
	}
	fprintf(stderr, "xla-smi: there is no register \"%s\". Those that may be read:", name);
	for (unsigned i = 0; i < N_REGS; i++)
		if (is_readable(&regs[i]))
			fprintf(stderr, " %s", regs[i].name);
	fputc('\n', stderr);
	*status = SMI_USAGE;
	return NULL;
}

/* What has no BAR that this machine could read. */
static int refuse_kind(const struct smi_device *d)
{
	if (!strcmp(d->kind, "sim"))
		return refuse(d->bus_id, "a model inside its process has no registers that others "
			      "could read; xla-smi info has what the process tells");
	if (!strcmp(d->kind, "vfio-user"))
		return refuse(d->bus_id, "a served device answers its one client alone, so its "
			      "registers can't be read beside that");
	return refuse(d->bus_id, "the address of its PCI function is not known, so there is no BAR "
		      "to read");
}

/* A function that does not decode memory reads as all ones, and one that is off the bus. */
static int check_decoding(const char *root, const struct smi_device *d)
{
	unsigned char config[6] = { 0 };
	char path[SMI_PATH];
	int fd;

	snprintf(path, sizeof(path), "%s/sys/bus/pci/devices/%s/config", root, d->pci);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return refuse(path, strerror(errno));
	if (pread(fd, config, sizeof(config), 0) != sizeof(config))
		memset(config, 0xff, sizeof(config));
	close(fd);
	if ((config[0] | config[1] << 8) != HW_PCI_VENDOR ||
	    (config[2] | config[3] << 8) != HW_PCI_DEVICE)
		return refuse(d->bus_id, "its configuration space does not answer: it is off the "
			      "bus, or hangs");
	if (!(config[PCI_COMMAND] & PCI_COMMAND_MEMORY))
		return refuse(d->bus_id, "it does not decode memory now, because nobody has it "
			      "open; look while a program uses it");
	return SMI_OK;
}

static int map_bar(const char *root, const struct smi_device *d, const volatile char **out)
{
	char path[SMI_PATH];
	struct stat st;
	void *bar;
	int fd;

	snprintf(path, sizeof(path), "%s/sys/bus/pci/devices/%s/resource0", root, d->pci);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return refuse(path, errno == EACCES ? "Permission denied: root may read it" :
			      strerror(errno));
	if (fstat(fd, &st) || st.st_size < (off_t)HW_PAGE) {
		close(fd);
		return refuse(path, "is smaller than the registers are");
	}
	bar = mmap(NULL, HW_PAGE, PROT_READ, MAP_SHARED, fd, 0);
	if (bar == MAP_FAILED)
		refuse(path, errno == EPERM || errno == EINVAL ? "the kernel does not give what a "
		       "driver has claimed (boot with iomem=relaxed), or is locked down" :
		       strerror(errno));
	close(fd);
	*out = bar;
	return bar == MAP_FAILED ? SMI_REFUSED : SMI_OK;
}

static void add_register(struct smi_node *node, const struct smi_device *d, const struct reg *r,
			 const volatile char *bar)
{
	struct smi_register *row = smi_add(node, SMI_registers);
	const volatile void *at = bar + r->offset;

	if (!row)
		return;
	snprintf(row->bus_id, sizeof(row->bus_id), "%s", d->bus_id);
	snprintf(row->name, sizeof(row->name), "%s", r->name);
	snprintf(row->offset, sizeof(row->offset), "0x%04x", r->offset);
	if (r->bytes == 8)
		snprintf(row->value, sizeof(row->value), "0x%016" PRIx64,
			 *(const volatile uint64_t *)at);
	else
		snprintf(row->value, sizeof(row->value), "0x%08" PRIx32,
			 *(const volatile uint32_t *)at);
	snprintf(row->meaning, sizeof(row->meaning), "%s", r->meaning);
}

static int read_registers(const struct smi_options *o, struct smi_node *node,
			  const struct smi_device *d, const struct reg *only)
{
	const volatile char *bar = NULL;
	int status = *d->pci ? check_decoding(o->root, d) : refuse_kind(d);

	if (!status)
		status = map_bar(o->root, d, &bar);
	if (status)
		return status;
	for (unsigned i = 0; i < N_REGS; i++)
		if (only ? &regs[i] == only : is_readable(&regs[i]))
			add_register(node, d, &regs[i], bar);
	munmap((void *)(uintptr_t)bar, HW_PAGE);
	return SMI_OK;
}

int smi_reg(const struct smi_options *o, int argc, char **argv)
{
	const struct reg *only = NULL;
	const struct smi_device *d;
	struct smi_node node;
	int status = SMI_OK;

	if (argc > 2)
		only = find_reg(argv[2], &status);
	if (status)
		return status;
	smi_gather(o, &node);
	d = smi_find(&node, argv[1]);
	if (!d) {
		fprintf(stderr, "xla-smi: there is no device \"%s\": xla-smi list shows those "
			"that there are\n", argv[1]);
		status = SMI_NO_DEVICE;
	} else {
		status = read_registers(o, &node, d, only);
	}
	if (!status)
		smi_write_node(o, argv[0], &node, false);
	smi_node_free(&node);
	return status;
}
