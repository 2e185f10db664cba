/* SPDX-License-Identifier: Apache-2.0 */
/* Who has what open, from /proc: nodes of devices, and the locks of pages. */
#include <ctype.h>
#include <dirent.h>
#include <limits.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/xla-smi/smi.h"

/* ---- locks ---- */

void smi_read_locks(const char *root, struct smi_locks *out)
{
	char path[SMI_PATH], line[256];
	struct smi_lock l, *grown;
	unsigned room = 0;
	FILE *f;

	memset(out, 0, sizeof(*out));
	snprintf(path, sizeof(path), "%s/proc/locks", root);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f)) {
		unsigned long long pid, major, minor, inode;

		/* "1: FLOCK  ADVISORY  WRITE 1234 00:1a:5678 0 EOF" */
		if (sscanf(line, "%*s FLOCK %*s WRITE %llu %llx:%llx:%llu", &pid, &major, &minor,
			   &inode) != 4)
			continue;
		if (out->n == room) {
			grown = realloc(out->lock, (2 * room + 64) * sizeof(*grown));
			if (!grown)
				break;
			out->lock = grown;
			room = 2 * room + 64;
		}
		l = (struct smi_lock){ major, minor, inode, pid };
		out->lock[out->n++] = l;
	}
	if (f)
		fclose(f);
}

struct smi_num smi_lock_holder(const struct smi_locks *locks, uint64_t device, uint64_t inode)
{
	for (unsigned i = 0; i < locks->n; i++) {
		const struct smi_lock *l = &locks->lock[i];

		if (l->inode == inode && l->major == (device >> 8 & 0xfff) && l->pid &&
		    l->minor == ((device & 0xff) | (device >> 12 & 0xfff00)))
			return smi_known(l->pid);
	}
	return (struct smi_num){ 0 };
}

void smi_user_name(unsigned uid, char *out, size_t bytes)
{
	static char last[32];
	static unsigned last_uid = ~0u;

	if (uid != last_uid) {
		const struct passwd *p = getpwuid(uid);

		if (p)
			snprintf(last, sizeof(last), "%s", p->pw_name);
		else
			snprintf(last, sizeof(last), "%u", uid);
		last_uid = uid;
	}
	snprintf(out, bytes, "%s", last);
}

/* ---- nodes ---- */

/* The device whose node an open file is; NULL: none. */
static struct smi_device *node_of(const char *root, struct smi_node *node, const char *link,
				  const char *target)
{
	struct stat open_one, ours;
	char path[SMI_PATH];

	if (!strstr(target, "/accel/") && !strstr(target, "/vfio/"))
		return NULL;
	for (unsigned i = 0; i < SMI_COUNT(node, devices); i++) {
		struct smi_device *d = &SMI_GET(node, devices, smi_device)[i];

		if (!*d->node)
			continue;
		snprintf(path, sizeof(path), "%s%s", root, d->node);
		if (!strcmp(path, target))
			return d;
		/* In a container the same node may have another path. */
		if (!stat(link, &open_one) && !stat(path, &ours) && S_ISCHR(ours.st_mode) &&
		    S_ISCHR(open_one.st_mode) && open_one.st_rdev == ours.st_rdev)
			return d;
	}
	return NULL;
}

static struct smi_process *process_of(const char *root, struct smi_node *node, unsigned long pid)
{
	struct smi_process *p;
	char path[SMI_PATH];
	struct stat st;

	for (unsigned i = 0; i < SMI_COUNT(node, processes); i++) {
		p = &SMI_GET(node, processes, smi_process)[i];
		if (p->holder_pid.is_known ? p->holder_pid.n == pid : p->pid.n == pid)
			return p;
	}
	p = smi_add(node, SMI_processes);
	if (!p)
		return NULL;
	p->pid = p->holder_pid = smi_known(pid);
	smi_read_line(p->command, sizeof(p->command), "%s/proc/%lu/comm", root, pid);
	for (char *c = p->command; *c; c++)
		*c = isprint((unsigned char)*c) ? *c : '?';
	snprintf(path, sizeof(path), "%s/proc/%lu", root, pid);
	if (!stat(path, &st))
		smi_user_name(st.st_uid, p->user, sizeof(p->user));
	snprintf(p->source, sizeof(p->source), "proc");
	return p;
}

static struct smi_client *client_of(struct smi_node *node, struct smi_num pid, const char *bus_id)
{
	struct smi_client *c;

	for (unsigned i = 0; i < SMI_COUNT(node, clients); i++) {
		c = &SMI_GET(node, clients, smi_client)[i];
		if (c->pid.n == pid.n && !strcmp(c->bus_id, bus_id))
			return c;
	}
	c = smi_add(node, SMI_clients);
	if (!c)
		return NULL;
	c->pid = pid;
	snprintf(c->bus_id, sizeof(c->bus_id), "%s", bus_id);
	return c;
}

/* One kernel client may be several open files of one process. */
struct seen {
	char id[32][24];
	unsigned n;
};

static bool is_new(struct seen *seen, const char *id)
{
	for (unsigned i = 0; i < seen->n; i++)
		if (!strcmp(seen->id[i], id))
			return false;
	if (seen->n < 32)
		snprintf(seen->id[seen->n++], sizeof(seen->id[0]), "%s", id);
	return true;
}

static struct smi_num plus(struct smi_num a, uint64_t b)
{
	return smi_known(a.n + b);
}

static void read_fdinfo(const char *path, struct smi_client *c, struct seen *seen)
{
	FILE *f = fopen(path, "re");
	char line[256], id[24], unit[8];
	unsigned long long n;

	while (f && fgets(line, sizeof(line), f)) {
		*unit = 0;
		if (sscanf(line, "drm-client-id: %23s", id) == 1) {
			if (!is_new(seen, id))
				break;
		} else if (sscanf(line, "drm-engine-compute: %llu", &n) == 1) {
			c->busy_compute_ns = plus(c->busy_compute_ns, n);
		} else if (sscanf(line, "drm-engine-dma: %llu", &n) == 1) {
			c->busy_dma_ns = plus(c->busy_dma_ns, n);
		} else if (sscanf(line, "drm-total-hbm: %llu %7s", &n, unit) >= 1) {
			n <<= !strcmp(unit, "KiB") ? 10 : !strcmp(unit, "MiB") ? 20 : 0;
			c->memory_held_bytes = plus(c->memory_held_bytes, n);
		}
	}
	if (f)
		fclose(f);
}

static void add_word(char *list, size_t bytes, const char *word)
{
	size_t n = strlen(list), length = strlen(word);

	/* accel1 is none of accel10's. */
	for (const char *at = list; (at = strstr(at, word)); at++)
		if ((at == list || at[-1] == ' ') && (!at[length] || at[length] == ' '))
			return;
	if (n + strlen(word) + 2 < bytes)
		snprintf(list + n, bytes - n, "%s%s", n ? " " : "", word);
}

static void look_at_fd(const char *root, struct smi_node *node, unsigned long pid,
		       const char *fd, struct seen *seen)
{
	char link[SMI_PATH], target[PATH_MAX], path[SMI_PATH];
	struct smi_device *d;
	struct smi_process *p;
	struct smi_client *c;
	ssize_t n;

	snprintf(link, sizeof(link), "%s/proc/%lu/fd/%s", root, pid, fd);
	n = readlink(link, target, sizeof(target) - 1);
	if (n <= 0)
		return;
	target[n] = 0;
	d = node_of(root, node, link, target);
	p = d ? process_of(root, node, pid) : NULL;
	c = p ? client_of(node, p->pid, d->bus_id) : NULL;
	if (!c)
		return;
	add_word(p->devices, sizeof(p->devices), d->bus_id);
	snprintf(path, sizeof(path), "%s/proc/%lu/fdinfo/%s", root, pid, fd);
	read_fdinfo(path, c, seen);
	if (!strcmp(p->source, "proc") && c->memory_held_bytes.is_known)
		p->memory_used_bytes = c->memory_held_bytes;
}

static bool add_id(struct smi_ids *ids, const char *id)
{
	char (*grown)[24];

	for (unsigned i = 0; i < ids->n; i++)
		if (!strcmp(ids->id[i], id))
			return true;
	grown = realloc(ids->id, (ids->n + 1) * sizeof(*grown));
	if (!grown)
		return false;
	ids->id = grown;
	snprintf(ids->id[ids->n++], sizeof(*grown), "%s", id);
	return true;
}

static bool add_id_of_fd(const char *root, struct smi_node *node, const struct smi_device *d,
			 unsigned long pid, const char *fd, struct smi_ids *ids)
{
	char path[SMI_PATH], target[PATH_MAX], line[256], id[24];
	bool is_done = true;
	ssize_t n;
	FILE *f;

	snprintf(path, sizeof(path), "%s/proc/%lu/fd/%s", root, pid, fd);
	n = readlink(path, target, sizeof(target) - 1);
	target[n > 0 ? n : 0] = 0;
	if (n <= 0 || node_of(root, node, path, target) != d)
		return true;
	snprintf(path, sizeof(path), "%s/proc/%lu/fdinfo/%s", root, pid, fd);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "drm-client-id: %23s", id) == 1)
			is_done = add_id(ids, id);
	if (f)
		fclose(f);
	return is_done;
}

bool smi_ids_of(const char *root, struct smi_node *node, const struct smi_device *d,
		unsigned long pid, struct smi_ids *ids)
{
	char path[SMI_PATH];
	bool is_done = true;
	struct dirent *e;
	DIR *dir;

	snprintf(path, sizeof(path), "%s/proc/%lu/fd", root, pid);
	dir = opendir(path);
	while (dir && is_done && (e = readdir(dir)))
		if (isdigit((unsigned char)*e->d_name))
			is_done = add_id_of_fd(root, node, d, pid, e->d_name, ids);
	if (dir)
		closedir(dir);
	return is_done;
}

static bool has_nodes(const struct smi_node *node)
{
	for (unsigned i = 0; i < SMI_COUNT(node, devices); i++)
		if (*SMI_GET(node, devices, smi_device)[i].node)
			return true;
	return false;
}

static void look_at_process(const char *root, struct smi_node *node, const char *pid)
{
	struct seen seen = { .n = 0 };
	char path[SMI_PATH];
	struct dirent *e;
	DIR *d;

	snprintf(path, sizeof(path), "%s/proc/%s/fd", root, pid);
	d = opendir(path);
	while (d && (e = readdir(d)))
		if (isdigit((unsigned char)*e->d_name))
			look_at_fd(root, node, strtoul(pid, NULL, 10), e->d_name, &seen);
	if (d)
		closedir(d);
}

void smi_add_holders(const char *root, struct smi_node *node)
{
	char path[SMI_PATH];
	struct dirent *e;
	DIR *d;

	if (!has_nodes(node))
		return;
	snprintf(path, sizeof(path), "%s/proc", root);
	d = opendir(path);
	while (d && (e = readdir(d)))
		if (isdigit((unsigned char)*e->d_name) && strtol(e->d_name, NULL, 10) != getpid())
			look_at_process(root, node, e->d_name);
	if (d)
		closedir(d);
}
