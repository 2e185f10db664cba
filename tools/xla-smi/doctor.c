/* SPDX-License-Identifier: Apache-2.0 */
/* Why there is no device, or why it does not start: each cause with what was seen and the
 * command that mends it. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <grp.h>
#include <limits.h>
#include <pwd.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hal/hal.h"
#include "hal/hw/regs.h"
#include "hal/scan.h"
#include "hal/telemetry.h"
#include "hal/transport/ioctl.h"
#include "runtime/compiler/tc.h"
#include "tools/xla-smi/smi.h"

#define LEAST_PINNED ((uint64_t)64 << 20)
#define LEAST_HUGE 6	/* pages of 2 MiB that a device in use takes without an IOMMU */

enum cause {
#define CAUSE(code, severity, meaning) code,
#include "tools/xla-smi/causes.def"
#undef CAUSE
};
static const struct {
	const char *code, *severity;
} causes[] = {
#define CAUSE(code, severity, meaning) { #code, #severity },
#include "tools/xla-smi/causes.def"
#undef CAUSE
};

struct doctor {
	const struct smi_options *o;
	struct smi_node *node;
	unsigned n_functions;
};

#define SEEN(f, ...) snprintf((f)->evidence, sizeof((f)->evidence), __VA_ARGS__)
#define MEND(f, ...) snprintf((f)->fix, sizeof((f)->fix), __VA_ARGS__)

static struct smi_finding *found(struct doctor *d, enum cause c, const char *subject)
{
	static struct smi_finding nowhere;
	struct smi_finding *f = smi_add(d->node, SMI_findings);

	if (!f)
		return &nowhere;
	snprintf(f->code, sizeof(f->code), "%s", causes[c].code);
	snprintf(f->severity, sizeof(f->severity), "%s", causes[c].severity);
	snprintf(f->subject, sizeof(f->subject), "%s", subject);
	return f;
}

/* ---- a device's file ---- */

static const char *my_name(void)
{
	const struct passwd *p = getpwuid(geteuid());

	return p ? p->pw_name : "$USER";
}

static bool am_in(gid_t group)
{
	gid_t list[256];
	int n = getgroups(256, list);

	for (int i = 0; i < n; i++)
		if (list[i] == group)
			return true;
	return getegid() == group;
}

static void blame_permission(struct doctor *d, const char *subject, const char *node,
			     const struct stat *st)
{
	const struct group *g = getgrgid(st->st_gid);
	bool has_group = st->st_gid && (st->st_mode & 060) == 060;
	struct smi_finding *f;

	if (has_group && !am_in(st->st_gid)) {
		f = found(d, NOT_IN_GROUP, subject);
		SEEN(f, "%s is of group %s (%u), mode %o; %s is not in it", node, g ? g->gr_name :
		     "?", st->st_gid, st->st_mode & 0777, my_name());
		MEND(f, "sudo usermod -aG %s %s, then log in again", g ? g->gr_name : "render",
		     my_name());
		return;
	}
	f = found(d, NODE_PERMISSION, subject);
	SEEN(f, "%s is of user %u, group %u, mode %o", node, st->st_uid, st->st_gid,
	     st->st_mode & 0777);
	MEND(f, "sudo install -m 644 udev/70-tessera.rules /etc/udev/rules.d/ && sudo udevadm "
	     "control --reload && sudo udevadm trigger; sudo usermod -aG render %s", my_name());
}

/* Whether the permissions of a file allow reading and writing, whatever else forbids it. */
static bool would_do(const struct stat *st)
{
	unsigned bits = geteuid() == st->st_uid ? st->st_mode >> 6 : am_in(st->st_gid) ?
			st->st_mode >> 3 : st->st_mode;

	return !geteuid() || (bits & 06) == 06;
}

/* True: it opens, or somebody has it, which is another finding's. */
static bool check_node(struct doctor *d, const char *subject, const char *node)
{
	char path[SMI_PATH];
	struct smi_finding *f;
	struct stat st;
	int fd, why;

	snprintf(path, sizeof(path), "%s%s", d->o->root, node);
	if (stat(path, &st)) {
		f = found(d, NODE_MISSING, subject);
		SEEN(f, "%s: %s", node, strerror(errno));
		MEND(f, "in a container: start it with --device %s, or with the spec that xla-smi "
		     "cdi writes; else: sudo udevadm trigger, and sudo dmesg | grep -i -e vfio -e "
		     "tessera", node);
		return false;
	}
	fd = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
	why = errno;
	if (fd >= 0) {
		close(fd);
		return true;
	}
	if (why != EACCES && why != EPERM)
		return true;
	if (!would_do(&st)) {
		blame_permission(d, subject, node, &st);
		return false;
	}
	f = found(d, CGROUP, subject);
	SEEN(f, "%s has mode %o and is of user %u, group %u, which would do; opening it: %s", node,
	     st.st_mode & 0777, st.st_uid, st.st_gid, strerror(why));
	MEND(f, "allow the device in the container's cgroup: podman and docker by --device %s, "
	     "systemd by DeviceAllow=%s rw", node, node);
	return false;
}

/* ---- a function ---- */

static bool has_word(const struct doctor *d, const char *path)
{
	char full[SMI_PATH];

	snprintf(full, sizeof(full), "%s%s", d->o->root, path);
	return !access(full, F_OK);
}

static void check_kernel_driver(struct doctor *d, const struct vfio_place *p)
{
	char pattern[SMI_PATH], node[64];
	struct hw_identify identity;
	struct smi_finding *f;
	struct err err;
	glob_t nodes;
	int fd, code;

	snprintf(pattern, sizeof(pattern), "%s/sys/bus/pci/devices/%s/accel/accel*", d->o->root,
		 p->bdf);
	if (glob(pattern, 0, NULL, &nodes)) {
		f = found(d, DRIVER_FAILED, p->bdf);
		SEEN(f, "%s is bound to tessera, and there is no accel node of it", p->bdf);
		MEND(f, "see what the driver said: sudo dmesg | grep tessera; then echo %s | sudo "
		     "tee /sys/bus/pci/drivers/tessera/unbind /sys/bus/pci/drivers/tessera/bind",
		     p->bdf);
		return;
	}
	snprintf(node, sizeof(node), "/dev/accel/%.40s", strrchr(nodes.gl_pathv[0], '/') + 1);
	globfree(&nodes);
	if (!check_node(d, p->bdf, node))
		return;
	code = accel_open(node, &fd, &identity, &err);
	if (!code) {
		accel_sys->close(fd);
		return;
	}
	f = found(d, code == ERR_UNAVAILABLE ? GIVEN_UP : VERSION_SKEW, p->bdf);
	SEEN(f, "%.390s", err.msg);
	if (code == ERR_UNAVAILABLE)
		MEND(f, "echo %s | sudo tee /sys/bus/pci/drivers/tessera/unbind, then the same to "
		     ".../bind", p->bdf);
	else
		MEND(f, "sudo make -C kernel-uapi dkms-tree && sudo dkms install "
		     "tessera/" TC_VERSION " && sudo modprobe -r tessera && sudo modprobe tessera");
}

static void check_huge_pages(struct doctor *d, const struct vfio_place *p)
{
	struct smi_finding *f;
	char text[32];

	smi_read_line(text, sizeof(text), "%s/sys/kernel/mm/hugepages/hugepages-2048kB/"
		      "free_hugepages", d->o->root);
	if (strtoul(text, NULL, 10) >= LEAST_HUGE)
		return;
	f = found(d, HUGE_PAGES, p->bdf);
	SEEN(f, "%s has no IOMMU; free huge pages of 2 MiB: %s, needed: %d and what is pinned",
	     p->bdf, *text ? text : "none", LEAST_HUGE);
	MEND(f, "echo 128 | sudo tee /sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages");
}

/* Other functions of the group that drivers of the host have. */
static void check_group(struct doctor *d, const struct vfio_place *p)
{
	char path[SMI_PATH], driver[SMI_PATH], others[200] = "", first[16] = "";
	struct dirent *e;
	DIR *dir;

	snprintf(path, sizeof(path), "%s/sys/kernel/iommu_groups/%d/devices", d->o->root,
		 p->group);
	dir = opendir(path);
	while (dir && (e = readdir(dir))) {
		struct vfio_place other;
		size_t n = strlen(others);

		if (*e->d_name == '.' || !strcmp(e->d_name, p->bdf) ||
		    vfio_find(e->d_name, &other, NULL))
			continue;
		snprintf(driver, sizeof(driver), "%s", other.driver);
		if (!*driver || strstr(driver, "vfio") || !strcmp(driver, "pcieport"))
			continue;
		if (!*first)
			snprintf(first, sizeof(first), "%s", other.bdf);
		snprintf(others + n, sizeof(others) - n, "%s%s of %.31s", n ? ", " : "", other.bdf,
			 driver);
	}
	if (dir)
		closedir(dir);
	if (*first) {
		struct smi_finding *f = found(d, GROUP_NOT_VIABLE, p->bdf);

		SEEN(f, "IOMMU group %d also has %s", p->group, others);
		MEND(f, "sudo tessera-vfio-bind %s, which takes the whole group; or move the card "
		     "to another slot", first);
	}
}

static void check_vfio(struct doctor *d, const struct vfio_place *p)
{
	struct smi_finding *f;

	if (p->no_iommu) {
		check_huge_pages(d, p);
	} else if (p->group < 0) {
		f = found(d, IOMMU_OFF, p->bdf);
		SEEN(f, "%s is with %s and has no IOMMU group%s", p->bdf, p->driver,
		     has_word(d, "/sys/class/iommu") ? "" : "; /sys/class/iommu is missing");
		MEND(f, "turn on VT-d or AMD-Vi in the firmware and boot with intel_iommu=on or "
		     "amd_iommu=on; or give it to the kernel driver: sudo tessera-vfio-bind "
		     "--unbind %s", p->bdf);
		return;
	} else {
		check_group(d, p);
	}
	/* Its own file is enough where there is one, as with iommufd. */
	check_node(d, p->bdf, *p->cdev ? p->cdev : p->node);
}

static void check_function(struct doctor *d, const struct vfio_place *p)
{
	struct smi_finding *f;

	d->n_functions++;
	if (!*p->driver) {
		f = found(d, NO_DRIVER, p->bdf);
		SEEN(f, "/sys/bus/pci/devices/%s has no driver%s", p->bdf,
		     has_word(d, "/sys/module/tessera") ? "" :
		     "; the module tessera is not loaded");
		MEND(f, "sudo modprobe tessera, or without the kernel driver: sudo "
		     "tessera-vfio-bind %s", p->bdf);
	} else if (!strcmp(p->driver, "tessera")) {
		check_kernel_driver(d, p);
	} else if (strstr(p->driver, "vfio")) {
		check_vfio(d, p);
	} else {
		f = found(d, OTHER_DRIVER, p->bdf);
		SEEN(f, "%s is bound to %s", p->bdf, p->driver);
		MEND(f, "sudo tessera-vfio-bind %s, or for the kernel driver: echo %s | sudo tee "
		     "/sys/bus/pci/drivers/%s/unbind && sudo modprobe tessera", p->bdf, p->bdf,
		     p->driver);
	}
}

static void check_bus(struct doctor *d)
{
	const char *selection = getenv("TESSERA_DEVICES");
	bool wants_none = selection && (!strncmp(selection, "sim", 3) ||
					!strncmp(selection, "vfio-user:", 10));
	char path[SMI_PATH];
	struct smi_finding *f;
	struct dirent **e;
	int n;

	snprintf(path, sizeof(path), "%s/sys/bus/pci/devices", d->o->root);
	n = scandir(path, &e, NULL, versionsort);
	for (int i = 0; i < n; i++) {
		struct vfio_place p;

		if (*e[i]->d_name != '.' && !vfio_find(e[i]->d_name, &p, NULL) &&
		    p.vendor == HW_PCI_VENDOR && p.device == HW_PCI_DEVICE)
			check_function(d, &p);
		free(e[i]);
	}
	if (n >= 0)
		free(e);
	if (d->n_functions || wants_none)
		return;
	f = found(d, NOT_ON_BUS, "this machine");
	if (n < 0)
		SEEN(f, "%.300s: %s", path, strerror(errno));
	else
		SEEN(f, "none of %d PCI functions is 1234:7e55", n < 2 ? 0 : n - 2);
	MEND(f, "seat the card and its power, then: echo 1 | sudo tee /sys/bus/pci/rescan; in a "
	     "virtual machine pass it through; to use the model: export TESSERA_DEVICES=sim");
}

/* ---- devices as they are ---- */

static double least(double a, double b)
{
	return isnan(a) ? b : isnan(b) || a < b ? a : b;
}

static void check_link(struct doctor *d, const struct smi_device *s)
{
	double gts = least(s->link_max_gts, s->port_max_gts);
	uint64_t lanes = s->link_max_width.n;
	struct smi_finding *f;

	if (s->port_max_width.is_known && s->port_max_width.n < lanes)
		lanes = s->port_max_width.n;
	if ((isnan(s->link_gts) || isnan(gts) || s->link_gts >= gts) &&
	    (!s->link_width.is_known || s->link_width.n >= lanes))
		return;
	f = found(d, LINK_DEGRADED, s->bus_id);
	SEEN(f, "%g GT/s x%llu, where the device can %g GT/s x%llu and the port %g GT/s x%llu",
	     s->link_gts, (unsigned long long)s->link_width.n, s->link_max_gts,
	     (unsigned long long)s->link_max_width.n, s->port_max_gts,
	     (unsigned long long)s->port_max_width.n);
	MEND(f, "an idle link may be slow on purpose: look again under load; else seat the card "
	     "again, try another slot or riser, and see sudo lspci -vv -s %s", s->pci);
}

/* ---- links between chips ---- */

static const char *name_of_peer(const struct smi_link *l, char out[96])
{
	if (*l->peer_bus_id)
		snprintf(out, 96, "%s", l->peer_bus_id);
	else
		snprintf(out, 96, "chip %llu of fabric %s", (unsigned long long)l->peer_chip.n,
			 l->fabric);
	return out;
}

static const char *who_says(const struct smi_link *l, char out[80])
{
	if (l->pid.is_known)
		snprintf(out, 80, "as process %llu read it %.1f s ago",
			 (unsigned long long)l->pid.n, (double)l->age_ns.n / 1e9);
	else
		snprintf(out, 80, "as the kernel driver says");
	return out;
}

static bool is_neighbour_told(const struct doctor *d, const struct smi_link *l)
{
	for (unsigned i = 0; i < SMI_COUNT(d->node, devices); i++) {
		const struct smi_device *s = &SMI_GET(d->node, devices, smi_device)[i];

		if (!strcmp(s->fabric, l->fabric) && s->chip.n != l->chip.n)
			return true;
	}
	return false;
}

static void blame_link(struct doctor *d, const struct smi_link *l)
{
	bool is_off = !strcmp(l->state, "neighbour off");
	char peer[96], says[80];
	struct smi_finding *f;

	/* Who uses one chip of many misses nobody at the other ends. */
	if (is_off && !is_neighbour_told(d, l))
		return;
	f = found(d, is_off ? LINK_UNUSED : LINK_DOWN, l->bus_id);
	SEEN(f, "link %s to %s: %s, %s", l->port, name_of_peer(l, peer), l->state,
	     who_says(l, says));
	if (is_off && !l->pid.is_known)
		MEND(f, "bind %s to its kernel driver, as this one is: lspci -Dk -d 1234:7e55 "
		     "shows who has it", peer);
	else if (is_off)
		MEND(f, "programs over several chips need all of them in one process: name them "
		     "in its TESSERA_DEVICES, or leave that unset");
	else if (!l->pid.is_known)
		MEND(f, "see what failed: sudo dmesg | grep tessera; as root xla-smi reset %s, or "
		     "%s, brings it up", l->bus_id, peer);
	else
		MEND(f, "see what failed: xla-smi log; restart the process that has %s, or as root "
		     "xla-smi reset, and look again when process %llu works", peer,
		     (unsigned long long)l->pid.n);
}

static void check_chip_link(struct doctor *d, const struct smi_link *l)
{
	struct smi_finding *f;
	char peer[96], says[80];

	if (l->up.is_known && !l->up.n)
		blame_link(d, l);
	if (!l->n_refused.n)
		return;
	f = found(d, LINK_REFUSES, l->bus_id);
	SEEN(f, "link %s to %s refused %llu writes since this chip's reset and sent %llu packets, "
	     "%s; the chip that failed may be one behind it", l->port, name_of_peer(l, peer),
	     (unsigned long long)l->n_refused.n, (unsigned long long)l->n_packets.n,
	     who_says(l, says));
	MEND(f, "what failed first is in xla-smi log; if it comes again without a fault of the "
	     "program's: xla-smi record node.json, for a report");
}

/* ---- where it is near to ---- */

/* Whether a list as "0-3,8" names a processor that this process may run on. */
static bool may_run_on(const char *cpus)
{
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof(set), &set))
		return true;
	while (*cpus) {
		char *end;
		unsigned long first = strtoul(cpus, &end, 10), last = first;

		if (end == cpus)
			return true;
		if (*end == '-')
			last = strtoul(end + 1, &end, 10);
		for (unsigned long i = first; i <= last && i < CPU_SETSIZE; i++)
			if (CPU_ISSET(i, &set))
				return true;
		cpus = *end ? end + 1 : end;
	}
	return false;
}

/* A process that has a device's VFIO file has it alone. */
static void check_holders(struct doctor *d, const struct smi_device *s)
{
	for (unsigned i = 0; i < SMI_COUNT(d->node, clients); i++) {
		const struct smi_client *c = &SMI_GET(d->node, clients, smi_client)[i];
		char comm[64], line[64] = "", path[SMI_PATH];
		struct smi_finding *f;
		FILE *status;

		if (strcmp(c->bus_id, s->bus_id))
			continue;
		smi_read_line(comm, sizeof(comm), "%s/proc/%llu/comm", d->o->root,
			      (unsigned long long)c->pid.n);
		snprintf(path, sizeof(path), "%s/proc/%llu/status", d->o->root,
			 (unsigned long long)c->pid.n);
		status = fopen(path, "re");
		while (status && fgets(line, sizeof(line), status))
			if (!strncmp(line, "State:", 6))
				break;
		if (status)
			fclose(status);
		line[strcspn(line, "\n")] = 0;
		for (char *p = line; *p; p++)
			*p = *p == '\t' ? ' ' : *p;
		/* "State:	T (stopped)" */
		f = found(d, *line && strchr("TtDZX", line[strcspn(line, "\t ") + 1]) ?
			  STALE_HOLDER : HELD, s->bus_id);
		SEEN(f, "process %llu (%s) has %s open%s%s", (unsigned long long)c->pid.n, comm,
		     s->node, *line ? "; " : "", line);
		MEND(f, "end it if it is not wanted: kill %llu, or kill -9",
		     (unsigned long long)c->pid.n);
	}
}

static void check_device(struct doctor *d, const struct smi_device *s)
{
	struct smi_finding *f;

	if (!strcmp(s->kind, "vfio"))
		check_holders(d, s);
	if (!strncmp(s->state, "dead", 4)) {
		f = found(d, DEAD, s->bus_id);
		SEEN(f, "process %llu says: %s", (unsigned long long)s->pid.n, s->state);
		MEND(f, "end or restart process %llu; see xla-smi log",
		     (unsigned long long)s->pid.n);
	}
	if (s->ecc_uncorrected.n || s->fatal.n) {
		f = found(d, MEMORY_ERRORS, s->bus_id);
		SEEN(f, "%llu uncorrected errors, %llu poisoned pages, %llu fatal states since "
		     "power on", (unsigned long long)s->ecc_uncorrected.n,
		     (unsigned long long)s->poisoned_pages.n, (unsigned long long)s->fatal.n);
		MEND(f, "sudo xla-smi reset %s heals poisoned pages; if they come back, replace "
		     "the card", s->bus_id);
	}
	if (!*s->pci)
		return;
	check_link(d, s);
	if (*s->cpus && !may_run_on(s->cpus)) {
		f = found(d, NUMA_MISMATCH, s->bus_id);
		SEEN(f, "it is near to processors %s, none of which this shell may run on",
		     s->cpus);
		MEND(f, "taskset -c %s COMMAND, or numactl --cpunodebind=%llu COMMAND", s->cpus,
		     (unsigned long long)s->numa_node.n);
	}
}

/* ---- this user's surroundings ---- */

static void check_memlock(struct doctor *d)
{
	uint64_t limit = vfio_sys->memlock();
	struct smi_finding *f;

	if (!d->n_functions || limit >= LEAST_PINNED)
		return;
	f = found(d, MEMLOCK, "RLIMIT_MEMLOCK");
	SEEN(f, "%llu bytes may be pinned, at least %llu are needed",
	     (unsigned long long)limit, (unsigned long long)LEAST_PINNED);
	MEND(f, "ulimit -l unlimited; for good: a line \"* - memlock unlimited\" in "
	     "/etc/security/limits.d/tessera.conf, LimitMEMLOCK=infinity in a unit, --ulimit "
	     "memlock=-1 for a container");
}

static void check_selection(struct doctor *d)
{
	const char *selection = getenv("TESSERA_DEVICES");
	char *copy = selection ? strdup(selection) : NULL, *save = NULL;

	for (char *w = copy ? strtok_r(copy, ",", &save) : NULL; w;
	     w = strtok_r(NULL, ",", &save)) {
		bool is_socket = !strncmp(w, "vfio-user:", 10), is_node = !strncmp(w, "accel:/", 7);
		bool is_function = !strncmp(w, "vfio:", 5) || !strncmp(w, "vfio-noiommu:", 13);
		char path[SMI_PATH];
		struct smi_finding *f;

		if (!is_socket && !is_node && !is_function)
			continue;
		snprintf(path, sizeof(path), is_function ? "%s/sys/bus/pci/devices/%s" : is_node ?
			 "%s%s" : "%.0s%s", d->o->root, strchr(w, ':') + 1);
		if (!access(path, F_OK))
			continue;
		f = found(d, SELECTION, "TESSERA_DEVICES");
		SEEN(f, "it names %.100s; %.200s: %s", w, path, strerror(errno));
		if (is_socket)
			MEND(f, "start the server: tessera-sim --socket-dir DIR; or unset "
			     "TESSERA_DEVICES");
		else
			MEND(f, "unset TESSERA_DEVICES, or name one of xla-smi list");
	}
	free(copy);
}

static void check_pages(struct doctor *d)
{
	const char *dir = hal_page_dir();
	struct smi_finding *f;

	if (!*d->node->problem && !d->node->n_unreadable && !access(dir, W_OK))
		return;
	f = found(d, TELEMETRY, dir);
	if (d->node->n_unreadable)
		SEEN(f, "the pages of %u processes may not be read", d->node->n_unreadable);
	else
		SEEN(f, "%.390s", *d->node->problem ? d->node->problem : "it may not be written");
	MEND(f, "ls -ld %.100s; a container needs the host's /dev/shm (--ipc=host) to be seen from "
	     "it, or TESSERA_TELEMETRY_DIR elsewhere", dir);
}

/* The version of a package in a folder of packages, as "0.1.0"; false: it is not there. */
static bool version_of(const char *packages, const char *name, char *out, size_t bytes)
{
	char pattern[SMI_PATH];
	const char *at;
	glob_t g;

	snprintf(pattern, sizeof(pattern), "%s/%s-*.dist-info", packages, name);
	if (glob(pattern, 0, NULL, &g))
		return false;
	at = strrchr(g.gl_pathv[0], '/') + strlen(name) + 2;
	snprintf(out, bytes, "%.*s", (int)strcspn(at, "d") - 1, at);
	globfree(&g);
	return true;
}

static void check_packages(struct doctor *d, const char *packages)
{
	static const struct { const char *name, *tested; } frameworks[] = {
		{ "jax", "0.10." }, { "jaxlib", "0.10." }, { "torch_xla", "2.9." },
	};
	struct smi_finding *f;
	char version[32];

	if (!version_of(packages, "tessera_pjrt", version, sizeof(version)))
		return;
	if (strncmp(version, TC_VERSION ".", sizeof(TC_VERSION))) {
		f = found(d, PACKAGE_SKEW, "tessera_pjrt");
		SEEN(f, "%.200s has tessera_pjrt %s, this is release " TC_VERSION, packages,
		     version);
		MEND(f, "make wheel && pip install --force-reinstall build/opt/wheel/*.whl");
	}
	for (unsigned i = 0; i < sizeof(frameworks) / sizeof(*frameworks); i++) {
		if (!version_of(packages, frameworks[i].name, version, sizeof(version)) ||
		    !strncmp(version, frameworks[i].tested, strlen(frameworks[i].tested)))
			continue;
		f = found(d, FRAMEWORK, frameworks[i].name);
		SEEN(f, "%.200s has %s %s; the tests run with %sx", packages, frameworks[i].name,
		     version, frameworks[i].tested);
		MEND(f, "if it does not work: pip install '%s==%s*'", frameworks[i].name,
		     frameworks[i].tested);
	}
}

static void check_python(struct doctor *d)
{
	const char *venv = getenv("VIRTUAL_ENV");
	char pattern[SMI_PATH];
	glob_t g;

	snprintf(pattern, sizeof(pattern), "%s%s/lib/python3*/*-packages", d->o->root,
		 venv ? venv : "/usr/local");
	if (glob(pattern, 0, NULL, &g))
		return;
	for (size_t i = 0; i < g.gl_pathc; i++)
		check_packages(d, g.gl_pathv[i]);
	globfree(&g);
}

void smi_diagnose(const struct smi_options *o, struct smi_node *node)
{
	struct doctor d = { .o = o, .node = node };

	check_bus(&d);
	for (unsigned i = 0; i < SMI_COUNT(node, devices); i++)
		check_device(&d, &SMI_GET(node, devices, smi_device)[i]);
	for (unsigned i = 0; i < SMI_COUNT(node, links); i++)
		check_chip_link(&d, &SMI_GET(node, links, smi_link)[i]);
	check_selection(&d);
	check_memlock(&d);
	check_pages(&d);
	check_python(&d);
}
