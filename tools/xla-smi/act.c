/* SPDX-License-Identifier: Apache-2.0 */
/* Commands that change something, and the specification for containers. */
#include <errno.h>
#include <fcntl.h>
#include <json-c/json.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hal/hw/desc.h"
#include "hal/hw/regs.h"
#include "hal/transport/ioctl.h"
#include "kernel-uapi/include/tessera_drm.h"
#include "tools/xla-smi/smi.h"

static int refuse(const char *why, const char *what)
{
	fprintf(stderr, "xla-smi: %s: %s\n", what, why);
	return SMI_REFUSED;
}

static int fail(const char *what, int sysno)
{
	fprintf(stderr, "xla-smi: %s: %s\n", what, strerror(sysno));
	return sysno == EACCES || sysno == EPERM ? SMI_REFUSED : SMI_FAILED;
}

/* One write, as sysfs and debugfs want it; an errno. */
static int write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC), sysno = 0;
	size_t n = strlen(text);

	if (fd < 0)
		return errno;
	if (write(fd, text, n) != (ssize_t)n)
		sysno = errno ? errno : EIO;
	if (close(fd) && !sysno)
		sysno = errno;
	return sysno;
}

/* ---- reset ---- */

/* Prints who uses the device; how many. */
static unsigned name_users(const struct smi_node *node, const struct smi_device *d)
{
	unsigned n = 0;

	for (unsigned i = 0; i < SMI_COUNT(node, clients); i++) {
		const struct smi_client *c = &SMI_GET(node, clients, smi_client)[i];
		const char *command = "";

		if (strcmp(c->bus_id, d->bus_id))
			continue;
		for (unsigned k = 0; k < SMI_COUNT(node, processes); k++)
			if (SMI_GET(node, processes, smi_process)[k].pid.n == c->pid.n)
				command = SMI_GET(node, processes, smi_process)[k].command;
		printf("%s: used by process %llu (%s)\n", d->bus_id, (unsigned long long)c->pid.n,
		       command);
		n++;
	}
	return n;
}

/* The kernel's function reset; a driver that is bound hears of it and fails the work in order. */
static int write_reset(const char *root, const struct smi_device *d)
{
	char path[SMI_PATH];
	int sysno;

	snprintf(path, sizeof(path), "%s/sys/bus/pci/devices/%s/reset", root, d->pci);
	if (access(path, F_OK))
		return refuse("the kernel knows no way to reset this function alone", d->bus_id);
	sysno = write_file(path, "1");
	return sysno ? fail(path, sysno) : SMI_OK;
}

/* And what the driver says of the device afterwards. */
static int reset_node(const char *root, const struct smi_device *d)
{
	struct hw_identify identity;
	struct err err;
	int fd, status = write_reset(root, d);

	if (status)
		return status;
	if (accel_open(d->node, &fd, &identity, &err)) {
		fprintf(stderr, "xla-smi: %s did not come back: %s\n", d->bus_id, err.msg);
		return SMI_FAILED;
	}
	accel_sys->close(fd);
	return SMI_OK;
}

/* And whether the function answers afterwards. */
static int reset_function(const char *root, const struct smi_device *d)
{
	unsigned char id[4] = { 0 };
	char path[SMI_PATH];
	int fd, status = write_reset(root, d);

	if (status)
		return status;
	snprintf(path, sizeof(path), "%s/sys/bus/pci/devices/%s/config", root, d->pci);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return fail(path, errno);
	if (pread(fd, id, sizeof(id), 0) != sizeof(id))
		memset(id, 0xff, sizeof(id));
	close(fd);
	if ((id[0] | id[1] << 8) == HW_PCI_VENDOR && (id[2] | id[3] << 8) == HW_PCI_DEVICE)
		return SMI_OK;
	fprintf(stderr, "xla-smi: %s did not come back: its configuration space reads %02x%02x:"
		"%02x%02x\n", d->bus_id, id[1], id[0], id[3], id[2]);
	return SMI_FAILED;
}

static int reset_device(const struct smi_options *o, const struct smi_node *node,
			const struct smi_device *d)
{
	bool is_node = !strcmp(d->kind, "accel");
	unsigned users;
	int status;

	if (!is_node && strcmp(d->kind, "vfio"))
		return refuse("a model inside its process belongs to that: end or restart it",
			      d->bus_id);
	printf("%s: a function reset %s: all contexts, queues and programs end, their work fails; "
	       "counters and the fault log start anew; memory keeps its contents but for poisoned "
	       "pages\n", d->bus_id, is_node ? "by the kernel driver" : "by the PCI core");
	users = name_users(node, d);
	if (o->dry_run)
		return SMI_OK;
	if (users && !o->force)
		return refuse("others use it, see above; --force resets it all the same",
			      d->bus_id);
	/* It may take a while, and may be the last that is heard. */
	fflush(stdout);
	status = is_node ? reset_node(o->root, d) : reset_function(o->root, d);
	if (!status)
		printf("%s: reset, and it answers\n", d->bus_id);
	return status;
}

/* ---- reset of one process's part ---- */

static unsigned long number_of(const struct smi_process *p)
{
	return (unsigned long)(p->holder_pid.is_known ? p->holder_pid.n : p->pid.n);
}

/* Says which other processes have one of these files open, as children have their parent's. */
static bool name_sharers(const struct smi_options *o, struct smi_node *node,
			 const struct smi_device *d, const struct smi_ids *ids)
{
	bool is_done = true;

	for (unsigned i = 0; is_done && i < SMI_COUNT(node, processes); i++) {
		const struct smi_process *p = &SMI_GET(node, processes, smi_process)[i];
		struct smi_ids theirs = { 0 };
		bool is_shared = false;

		if (number_of(p) == o->client)
			continue;
		is_done = smi_ids_of(o->root, node, d, number_of(p), &theirs);
		for (unsigned k = 0; k < ids->n * theirs.n; k++)
			is_shared |= !strcmp(ids->id[k % ids->n], theirs.id[k / ids->n]);
		if (is_shared)
			printf("%s: process %lu (%s) shares an open file with it, and loses that "
			       "part too\n", d->bus_id, number_of(p), p->command);
		free(theirs.id);
	}
	return is_done;
}

/* 0, ENOENT if it is closed meanwhile, or an errno. */
static int reset_id(const char *path, const char *id)
{
	char text[32];

	snprintf(text, sizeof(text), "%s\n", id);
	return write_file(path, text);
}

/* The device gives contexts, which a request of its queue 0 does. */
static int try_context(const struct smi_device *d)
{
	struct drm_tessera_ctx_create c = { 0 };
	struct hw_identify identity;
	struct err err;
	int fd, sysno = 0;

	if (accel_open(d->node, &fd, &identity, &err)) {
		fprintf(stderr, "xla-smi: %s does not answer: %s\n", d->bus_id, err.msg);
		return SMI_FAILED;
	}
	/* That others have them all is an answer too. */
	if (accel_sys->ioctl(fd, DRM_IOCTL_TESSERA_CTX_CREATE, &c) && errno != ENOSPC)
		sysno = errno;
	if (sysno)
		accel_refused(d->node, fd, sysno, "making a context", &err);
	accel_sys->close(fd);
	if (!sysno)
		return SMI_OK;
	fprintf(stderr, "xla-smi: %s gives no context: %s\n", d->bus_id, err.msg);
	return SMI_FAILED;
}

static int reset_ids(const struct smi_options *o, const struct smi_device *d,
		     const struct smi_ids *ids)
{
	char path[SMI_PATH];
	unsigned n = 0;
	int status;

	snprintf(path, sizeof(path), "%s/sys/class/accel/%s/device/reset_client", o->root,
		 strrchr(d->node, '/') + 1);
	if (access(path, F_OK))
		return refuse("its kernel driver can't: it is older than this xla-smi. Install "
			      "the driver of this release", d->bus_id);
	for (unsigned i = 0; i < ids->n; i++) {
		int sysno = reset_id(path, ids->id[i]);

		if (sysno && sysno != ENOENT)
			return fail(path, sysno);
		n += !sysno;
	}
	if (!n)
		printf("%s: process %lu has closed it meanwhile\n", d->bus_id, o->client);
	status = try_context(d);
	if (!status && n)
		printf("%s: all that process %lu had on it has ended, and it answers\n",
		       d->bus_id, o->client);
	return status;
}

static int reset_process(const struct smi_options *o, struct smi_node *node,
			 const struct smi_device *d, const struct smi_ids *ids)
{
	const char *command = "?";

	for (unsigned i = 0; i < SMI_COUNT(node, processes); i++) {
		const struct smi_process *p = &SMI_GET(node, processes, smi_process)[i];

		if (number_of(p) == o->client)
			command = p->command;
	}
	printf("%s: a reset of what process %lu (%s) has on it: its contexts, queues and programs "
	       "end, their work fails; its memory keeps its contents; others' work goes on\n",
	       d->bus_id, o->client, command);
	if (!name_sharers(o, node, d, ids))
		return fail("memory", ENOMEM);
	if (o->dry_run)
		return SMI_OK;
	if (!o->force)
		return refuse("the process is alive and has it open; --force resets its part all "
			      "the same", d->bus_id);
	fflush(stdout);
	return reset_ids(o, d, ids);
}

static int reset_client(const struct smi_options *o, struct smi_node *node,
			const struct smi_device *d)
{
	struct smi_ids ids = { 0 };
	int status;

	if (strcmp(d->kind, "accel"))
		return refuse("only the kernel driver and tessera-sim tell their clients apart, "
			      "and have not this device: end the process that has", d->bus_id);
	if (!smi_ids_of(o->root, node, d, o->client, &ids)) {
		status = fail("memory", ENOMEM);
	} else if (!ids.n) {
		fprintf(stderr, "xla-smi: process %lu has not opened %s, or is not this user's: "
			"sudo xla-smi proc shows who has\n", o->client, d->bus_id);
		status = SMI_REFUSED;
	} else {
		status = reset_process(o, node, d, &ids);
	}
	free(ids.id);
	return status;
}

static int with_device(const struct smi_options *o, const char *name, struct smi_node *node,
		       const struct smi_device **out)
{
	smi_gather(o, node);
	*out = smi_find(node, name);
	if (*out)
		return SMI_OK;
	fprintf(stderr, "xla-smi: there is no device \"%s\": xla-smi list shows those that there "
		"are\n", name);
	smi_node_free(node);
	return SMI_NO_DEVICE;
}

int smi_reset(const struct smi_options *o, int argc, char **argv)
{
	const struct smi_device *d;
	struct smi_node node;
	int status;

	(void)argc;
	/* One that nobody has is told of by nobody. */
	if (smi_is_served(argv[1]))
		return smi_reset_served(o, argv[1]);
	status = with_device(o, argv[1], &node, &d);
	if (status)
		return status;
	if (!strcmp(d->kind, "vfio-user"))
		status = smi_reset_served(o, d->bus_id);
	else
		status = o->client ? reset_client(o, &node, d) : reset_device(o, &node, d);
	smi_node_free(&node);
	return status;
}

/* ---- diag ---- */

/* tessera-bringup stands beside this program, or where the shell finds it. */
static void find_bringup(char path[SMI_PATH])
{
	static const char name[] = "tessera-bringup";
	ssize_t n = readlink("/proc/self/exe", path, SMI_PATH - sizeof(name) - 1);

	while (n > 0 && path[n - 1] != '/')
		n--;
	memcpy(path + (n > 0 ? n : 0), name, sizeof(name));
	if (access(path, X_OK))
		memcpy(path, name, sizeof(name));
}

/* Runs it on a device, as a program of its own: this one links no model. Its exit status. */
static int run_bringup(const struct smi_options *o, const char *devices, const char *level)
{
	char path[SMI_PATH];
	const char *argv[] = { path, "--level", level, o->form == SMI_JSON ? "--json" : NULL, "-",
			       NULL };
	int status = 0, sysno;
	pid_t child;

	find_bringup(path);
	if (setenv("TESSERA_DEVICES", devices, 1))
		return fail("the environment", errno);
	fflush(stdout);
	sysno = posix_spawnp(&child, path, NULL, NULL, (char *const *)(uintptr_t)argv, environ);
	if (sysno)
		return fail(path, sysno);
	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			return fail(path, errno);
	if (WIFEXITED(status) && !WEXITSTATUS(status))
		return SMI_OK;
	if (WIFEXITED(status) && WEXITSTATUS(status) == 1)
		return SMI_UNHEALTHY;
	fprintf(stderr, "xla-smi: tessera-bringup did not do it: %s %d\n",
		WIFEXITED(status) ? "status" : "signal",
		WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
	return SMI_FAILED;
}

static int diagnose(const struct smi_options *o, const struct smi_node *node,
		    const struct smi_device *d, const char *level)
{
	bool is_node = !strcmp(d->kind, "accel");
	char devices[SMI_PATH + 8];

	if (!is_node && strcmp(d->kind, "vfio"))
		return refuse("a model belongs to its process or server. One of your own: "
			      "TESSERA_DEVICES=sim tessera-bringup", d->bus_id);
	/* With --force and --json standard output is the report's alone. */
	if (!(o->force && o->form == SMI_JSON) && name_users(node, d) && !o->force)
		return refuse("others use it, see above, and it would be reset; --force tries all "
			      "the same", d->bus_id);
	snprintf(devices, sizeof(devices), "%s:%s", d->kind, is_node ? d->node : d->pci);
	return run_bringup(o, devices, level);
}

int smi_diag(const struct smi_options *o, int argc, char **argv)
{
	const char *level = argc > 2 ? argv[2] : "1";
	const struct smi_device *d;
	struct smi_node node;
	int status;

	if (strlen(level) != 1 || *level < '1' || *level > '4') {
		fprintf(stderr, "xla-smi: \"%s\" is no level from 1 to 4\n", level);
		return SMI_USAGE;
	}
	status = with_device(o, argv[1], &node, &d);
	if (status)
		return status;
	status = diagnose(o, &node, d, level);
	smi_node_free(&node);
	return status;
}

/* ---- inject ---- */

/* `usual` is the value where none is given; fatal's kinds take no other. */
static const struct { const char *name, *value; unsigned kind, usual; } errors[] = {
	{ "ecc", "how many memory errors are counted as corrected", HW_INJECT_ECC_CORRECTED, 1 },
	{ "poison", "offset in device memory of a page that can't be read any more",
	  HW_INJECT_POISON, 0 },
	{ "hang", "whose next run makes no progress: 1 computing, 2 copying", HW_INJECT_HANG, 1 },
	{ "bus", "how many copies fail on the bus", HW_INJECT_BUS, 1 },
	{ "drop-irq", "how many interrupts get lost", HW_INJECT_DROP_IRQ, 1 },
	{ "link-down", "number of the link, as xla-smi topo lists a device's, from 0",
	  HW_INJECT_LINK_DOWN, 0 },
	{ "air", "how warm the air is, in thousandths of a degree; 90 C throttle", HW_INJECT_AIR,
	  90000 },
	{ "fatal", "nothing: the device stops", HW_INJECT_FATAL, HW_FATAL_INJECTED },
	{ "thermal", "nothing: it stops as one that is too hot", HW_INJECT_FATAL,
	  HW_FATAL_THERMAL },
	{ "firmware", "nothing: it stops as one whose firmware died", HW_INJECT_FATAL,
	  HW_FATAL_FIRMWARE },
	{ "pcie", "nothing: it stops as one whose link to the host failed", HW_INJECT_FATAL,
	  HW_FATAL_PCIE },
};

static int inject_served(const struct smi_options *o, const char *name, unsigned which,
			 const char *value)
{
	int status;

	if (!o->force)
		return refuse("this breaks work on the device: --force does it", name);
	status = smi_inject_served(o, name, errors[which].kind, strtoull(value, NULL, 0));
	if (!status && !o->dry_run)
		printf("%s: %s %s\n", name, errors[which].name, value);
	return status;
}

static int inject(const struct smi_options *o, const struct smi_device *d, unsigned which,
		  const char *value)
{
	char path[SMI_PATH], text[64];
	int sysno;

	if (!strcmp(d->kind, "vfio-user"))
		return inject_served(o, d->bus_id, which, value);
	if (strcmp(d->kind, "accel") || !*d->pci)
		return refuse("errors are injected through the kernel driver or tessera-sim, which "
			      "have not this device; a program's own by hal_device_inject",
			      d->bus_id);
	if (o->client)
		return refuse("the kernel driver injects into all of a device: leave --client out",
			      d->bus_id);
	if (!o->force)
		return refuse("this breaks work on the device: --force does it", d->bus_id);
	snprintf(path, sizeof(path), "%s/sys/kernel/debug/accel/%s/inject", o->root, d->pci);
	snprintf(text, sizeof(text), "%u %s", errors[which].kind, value);
	sysno = write_file(path, text);
	if (sysno)
		return fail(path, sysno);
	printf("%s: %s %s\n", d->bus_id, errors[which].name, value);
	return SMI_OK;
}

int smi_inject(const struct smi_options *o, int argc, char **argv)
{
	unsigned which = 0, n = sizeof(errors) / sizeof(*errors);
	char usual[16];
	const char *value = argc > 3 ? argv[3] : usual;
	const struct smi_device *d;
	struct smi_node node;
	char *end;
	int status;

	while (which < n && strcmp(errors[which].name, argv[2]))
		which++;
	snprintf(usual, sizeof(usual), "%u", which < n ? errors[which].usual : 0);
	strtoull(value, &end, 0);
	if (which == n || (argc > 3 && errors[which].kind == HW_INJECT_FATAL) || *end ||
	    *value < '0' || *value > '9') {
		fprintf(stderr, "xla-smi: usage: xla-smi inject DEVICE ERROR [VALUE]\n");
		for (unsigned i = 0; i < n; i++)
			fprintf(stderr, "  %-9s VALUE: %s\n", errors[i].name, errors[i].value);
		return SMI_USAGE;
	}
	if (smi_is_served(argv[1]))
		return inject_served(o, argv[1], which, value);
	status = with_device(o, argv[1], &node, &d);
	if (status)
		return status;
	status = inject(o, d, which, value);
	smi_node_free(&node);
	return status;
}

/* ---- containers ---- */

static void add(struct json_object *to, const char *key, struct json_object *value)
{
	json_object_object_add(to, key, value);
}

static void add_node(struct json_object *nodes, const char *path)
{
	struct json_object *o = json_object_new_object();

	add(o, "path", json_object_new_string(path));
	add(o, "permissions", json_object_new_string("rw"));
	json_object_array_add(nodes, o);
}

/* The files that using a device takes. */
static void add_nodes(struct json_object *nodes, const struct smi_device *d)
{
	add_node(nodes, d->node);
	if (!strcmp(d->kind, "vfio"))
		add_node(nodes, strstr(d->node, "/devices/") ? "/dev/iommu" : "/dev/vfio/vfio");
}

static struct json_object *container_device(const char *name, const struct smi_device *d,
					    unsigned n)
{
	struct json_object *o = json_object_new_object(), *edits = json_object_new_object();
	struct json_object *nodes = json_object_new_array();

	for (unsigned i = 0; i < n; i++)
		if (*d[i].node)
			add_nodes(nodes, &d[i]);
	add(o, "name", json_object_new_string(name));
	add(edits, "deviceNodes", nodes);
	add(o, "containerEdits", edits);
	return o;
}

int smi_cdi(const struct smi_options *o, int argc, char **argv)
{
	struct json_object *spec = json_object_new_object(), *list = json_object_new_array();
	const struct smi_device *d;
	struct smi_node node;
	unsigned n, given = 0;
	int status;

	(void)argc;
	(void)argv;
	smi_gather(o, &node);
	status = smi_select(&node, o->device, o->n_devices);
	d = SMI_GET(&node, devices, smi_device);
	n = status ? 0 : SMI_COUNT(&node, devices);
	for (unsigned i = 0; i < n; i++) {
		char name[24];

		if (!*d[i].node)
			continue;
		given++;
		snprintf(name, sizeof(name), "%llu", (unsigned long long)d[i].index.n);
		json_object_array_add(list, container_device(name, &d[i], 1));
		if (*d[i].uuid)
			json_object_array_add(list, container_device(d[i].uuid, &d[i], 1));
	}
	if (given)
		json_object_array_add(list, container_device("all", d, n));
	add(spec, "cdiVersion", json_object_new_string("0.6.0"));
	add(spec, "kind", json_object_new_string("tessera/accel"));
	add(spec, "devices", list);
	if (!status)
		printf("%s\n", json_object_to_json_string_ext(spec, JSON_C_TO_STRING_PRETTY |
							      JSON_C_TO_STRING_NOSLASHESCAPE));
	json_object_put(spec);
	if (!status && *node.problem) {
		fprintf(stderr, "xla-smi: %s\n", node.problem);
		status = SMI_FAILED;
	}
	smi_node_free(&node);
	return status;
}
