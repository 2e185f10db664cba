/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What processes told, in the format of chrome://tracing, which Perfetto opens: a process for each
 * process, and in it for each device a row for the compute queue (programs, waits), one for the
 * core (operations), one for the DMA queue. Events and what they say of themselves are named as
 * jax.profiler names them (runtime/trace/xspace.c).
 *
 * Events are written one by one, to a file that gets its name when all of it is there. Until then
 * it has none (O_TMPFILE), where the file system has that: a tool that is killed leaves nothing.
 */
#include <errno.h>
#include <fcntl.h>
#include <json-c/json.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "hal/base/clock.h"
#include "hal/hw/desc.h"
#include "runtime/compiler/tc.h"
#include "tools/xla-smi/trace.h"

#define PIDS (1u << 22)		/* Linux has no process id beyond */
#define FDS "/proc/self/fd"

enum row { ROW_COMPUTE, ROW_CORE, ROW_DMA, ROWS };

struct smi_trace_file {
	FILE *to;
	char name[PATH_MAX];	/* how it is to be called; "": it is copied to `copy` */
	char temporary[PATH_MAX + 32];	/* its name before that; "": none */
	const char *shown;	/* in messages */
	FILE *copy;
	const struct smi_peers *peers;
	int64_t zero_ns;	/* CLOCK_MONOTONIC: when the first began */
	uint64_t n_events;
	unsigned n_devices, n_rows;
	bool has_failed;	/* and that was said */
	bool has_any;		/* something is written, names included */
	/* The group of the core's row that may go on. */
	struct hal_wire_record group;
	bool has_group;
	const struct smi_peer *last;	/* whose name was written */
	/* As smi_mark_trace found it. */
	struct { long at; uint64_t n_events; unsigned n_devices; bool has_any; } mark;
};

/* ---- writing ---- */

static bool fail(struct smi_trace_file *f, const char *why)
{
	if (!f->has_failed)
		fprintf(stderr, "xla-smi: %s: %s\n", f->shown, why);
	f->has_failed = true;
	return false;
}

/* Writes and frees it. */
static bool write_event(struct smi_trace_file *f, struct json_object *e)
{
	const char *text = e ? json_object_to_json_string_ext(e, JSON_C_TO_STRING_PLAIN) : NULL;
	bool is_written = text && fputs(f->has_any ? ",\n" : "\n", f->to) >= 0 &&
		fputs(text, f->to) >= 0;

	json_object_put(e);
	f->has_any = true;
	f->n_events++;
	return is_written || fail(f, text ? strerror(errno) : "out of memory");
}

static void add_text(struct json_object *to, const char *name, const char *text)
{
	if (*text)
		json_object_object_add(to, name, json_object_new_string(text));
}

static void add_number(struct json_object *to, const char *name, uint64_t n)
{
	json_object_object_add(to, name, json_object_new_uint64(n));
}

/* Nanoseconds as microseconds, all digits of them. */
static void add_time(struct json_object *to, const char *name, int64_t ns)
{
	char text[32];

	snprintf(text, sizeof(text), "%lld.%03lld", (long long)(ns / 1000),
		 (long long)(ns % 1000));
	json_object_object_add(to, name, json_object_new_double_s((double)ns / 1000, text));
}

/* ---- rows ---- */

/* Processes of containers may have one id where it can't be seen who they are. */
static uint64_t pid_of(const struct smi_trace_file *f, const struct smi_peer *p)
{
	uint64_t pid = smi_peer_pid(p), more = 0;

	for (const struct smi_peer *other = f->peers->peer; other < p; other++)
		if (smi_peer_pid(other) == pid && !(other->holder.is_known && p->holder.is_known))
			more += PIDS;
	return pid + more;
}

static unsigned tid_of(const struct smi_trace_file *f, enum row row)
{
	return f->n_rows - ROWS + row + 1;
}

static bool write_name(struct smi_trace_file *f, const char *what, uint64_t pid, unsigned tid,
		       const char *name)
{
	struct json_object *e = json_object_new_object(), *args = json_object_new_object();

	add_text(e, "name", what);
	add_text(e, "ph", "M");
	add_number(e, "pid", pid);
	add_number(e, "tid", tid);
	json_object_object_add(args, "name", json_object_new_string(name));
	json_object_object_add(e, "args", args);
	f->n_events--;	/* it tells of nothing that happened */
	return write_event(f, e);
}

static bool write_rows(struct smi_trace_file *f, const struct smi_told *t)
{
	static const char *const rows[] = { "compute queue", "core", "DMA queue" };
	uint64_t pid = pid_of(f, t->peer);
	char name[128];
	bool ok = true;

	snprintf(name, sizeof(name), "%s", t->peer->command);
	if (f->last != t->peer)
		ok = write_name(f, "process_name", pid, 0, name);
	f->last = t->peer;
	for (unsigned i = 0; ok && i < ROWS; i++) {
		snprintf(name, sizeof(name), "%s %s", t->device.bus_id, rows[i]);
		ok = write_name(f, "thread_name", pid, tid_of(f, i), name);
	}
	return ok;
}

/* ---- events ---- */

static enum row row_of(const struct hal_wire_record *r)
{
	if (r->kind == HW_TRACE_GROUP || r->kind == HW_TRACE_PARKED)
		return ROW_CORE;
	return r->cls == HW_CLASS_DMA ? ROW_DMA : ROW_COMPUTE;
}

static const char *word(const struct smi_told *t, uint32_t number)
{
	return number ? t->words[number - 1] : "";
}

static bool is_wait(const struct hal_wire_record *r)
{
	return r->kind == HW_TRACE_WAIT || r->kind == HW_TRACE_PARKED;
}

static void name_event(const struct smi_told *t, const struct hal_wire_record *r, char *out,
		       size_t bytes)
{
	const char *name = *word(t, r->op) ? word(t, r->op) : word(t, r->program);

	if (!*name)
		name = hw_work_name(row_of(r) == ROW_CORE ? HW_EXECUTE : r->code);
	snprintf(out, bytes, "%s%s", is_wait(r) ? "wait: " : "", name);
}

static bool write_record(struct smi_trace_file *f, const struct smi_told *t,
			 const struct hal_wire_record *r)
{
	static const char *const kinds[] = { "", "program", "op", "wait", "copy", "wait" };
	struct json_object *e = json_object_new_object(), *args = json_object_new_object();
	char name[HAL_WIRE_TEXT + 16];

	name_event(t, r, name, sizeof(name));
	add_text(e, "name", name);
	add_text(e, "cat", kinds[r->kind]);
	add_text(e, "ph", "X");
	add_time(e, "ts", t->peer->base_ns - f->zero_ns + r->begin_ns);
	add_time(e, "dur", r->end_ns - r->begin_ns);
	add_number(e, "pid", pid_of(f, t->peer));
	add_number(e, "tid", tid_of(f, row_of(r)));
	add_text(args, "hlo_op", word(t, r->op));
	add_text(args, "hlo_module", word(t, r->program));
	add_text(args, "tf_op", word(t, r->framework));
	add_text(args, "source", word(t, r->source));
	add_number(args, "run_id", r->tag);
	if (r->bytes)
		add_number(args, "bytes_accessed", r->bytes);
	if (r->ops)
		add_number(args, "flops", r->ops);
	if (r->n_insns)
		add_number(args, "instructions", r->n_insns);
	if (r->status)
		add_text(args, "status", hw_status_name(r->status));
	json_object_object_add(e, "args", args);
	return write_event(f, e);
}

static bool is_same(const struct hal_wire_record *a, const struct hal_wire_record *b)
{
	return a->tag == b->tag && a->end_ns == b->begin_ns && a->program == b->program &&
		a->op == b->op && a->framework == b->framework && a->source == b->source;
}

static bool end_group(struct smi_trace_file *f, const struct smi_told *t)
{
	bool has_group = f->has_group;

	f->has_group = false;
	return !has_group || write_record(f, t, &f->group);
}

/* Groups of one operation that follow one another are one event. */
static bool take(struct smi_trace_file *f, const struct smi_told *t,
		 const struct hal_wire_record *r)
{
	if (r->kind != HW_TRACE_GROUP)
		return write_record(f, t, r);
	if (f->has_group && is_same(&f->group, r)) {
		f->group.end_ns = r->end_ns;
		f->group.bytes += r->bytes;
		f->group.ops += r->ops;
		f->group.n_insns += r->n_insns;
		return true;
	}
	if (!end_group(f, t))
		return false;
	f->group = *r;
	f->has_group = true;
	return true;
}

bool smi_write_trace(void *file, const struct smi_told *t, const struct hal_wire_record *records,
		     unsigned n)
{
	struct smi_trace_file *f = file;

	if (!records) {
		/* Rows are numbered as devices end; a device's events have the next numbers. */
		bool ok = end_group(f, t) && write_rows(f, t);

		f->n_devices++;
		f->n_rows += ROWS;
		return ok;
	}
	for (unsigned i = 0; i < n; i++)
		if (!take(f, t, &records[i]))
			return false;
	return true;
}

void smi_mark_trace(struct smi_trace_file *f)
{
	f->mark.at = ftell(f->to);
	f->mark.n_events = f->n_events;
	f->mark.n_devices = f->n_devices;
	f->mark.has_any = f->has_any;
}

bool smi_take_back(struct smi_trace_file *f)
{
	f->has_group = false;
	f->n_events = f->mark.n_events;
	f->n_devices = f->mark.n_devices;
	f->has_any = f->mark.has_any;
	if (f->mark.at < 0 || fflush(f->to) || fseek(f->to, f->mark.at, SEEK_SET) ||
	    ftruncate(fileno(f->to), f->mark.at))
		return fail(f, strerror(errno));
	return true;
}

uint64_t smi_trace_events(const struct smi_trace_file *f)
{
	return f->n_events;
}

unsigned smi_trace_devices(const struct smi_trace_file *f)
{
	return f->n_devices;
}

/* ---- the file ---- */

/* The folder of f->name, with its '/', or "". */
static int folder_of(const struct smi_trace_file *f)
{
	const char *slash = strrchr(f->name, '/');

	return slash ? (int)(slash - f->name) + 1 : 0;
}

/* A new file beside the one that is wanted: one without a name, or with another one. -1: errno. */
static int make_beside(struct smi_trace_file *f)
{
	int n = folder_of(f), fd;

	/* It gets its name by way of FDS. */
	if (!access(FDS, F_OK)) {
		snprintf(f->temporary, sizeof(f->temporary), "%.*s.", n, f->name);
		fd = open(f->temporary, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
		*f->temporary = 0;
		/* EISDIR: of a kernel that knows no such files. */
		if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR))
			return fd;
	}
	snprintf(f->temporary, sizeof(f->temporary), "%.*s.%s.XXXXXX", n, f->name, f->name + n);
	fd = mkostemp(f->temporary, O_CLOEXEC);
	if (fd < 0)
		*f->temporary = 0;
	return fd;
}

/* A file that is there and is no plain one is written to, any other is made anew. */
static FILE *open_target(struct smi_trace_file *f, const char *path)
{
	struct stat st;
	int fd;

	if (!strcmp(path, "-") || (!stat(path, &st) && !S_ISREG(st.st_mode))) {
		f->copy = strcmp(path, "-") ? fopen(path, "we") : stdout;
		return f->copy ? tmpfile() : NULL;
	}
	/* A link is replaced, not what it leads to: in a folder of everybody's it may be a
	 * stranger's. */
	if (snprintf(f->name, sizeof(f->name), "%s", path) >= (int)sizeof(f->name)) {
		errno = ENAMETOOLONG;
		return NULL;
	}
	fd = make_beside(f);
	return fd < 0 ? NULL : fdopen(fd, "w");
}

static bool write_head(struct smi_trace_file *f)
{
	struct json_object *o = json_object_new_object();
	char text[40];
	struct tm tm;
	time_t seconds;
	int64_t ns;
	bool ok;

	ns = clock_date_ns() - (clock_ns() - f->zero_ns);
	seconds = ns / 1000000000;
	gmtime_r(&seconds, &tm);
	strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(text + strlen(text), sizeof(text) - strlen(text), ".%03dZ",
		 (int)(ns / 1000000 % 1000));
	add_text(o, "tool", "xla-smi " TC_VERSION);
	add_text(o, "begin", text);
	add_number(o, "begin_monotonic_ns", (uint64_t)f->zero_ns);
	ok = fprintf(f->to, "{\"displayTimeUnit\":\"ns\",\"otherData\":%s,\"traceEvents\":[",
		     json_object_to_json_string_ext(o, JSON_C_TO_STRING_PLAIN)) > 0;
	json_object_put(o);
	return ok || fail(f, strerror(errno));
}

struct smi_trace_file *smi_open_trace(const char *path, const struct smi_peers *peers)
{
	struct smi_trace_file *f = calloc(1, sizeof(*f));

	if (!f) {
		fprintf(stderr, "xla-smi: out of memory\n");
		return NULL;
	}
	f->shown = strcmp(path, "-") ? path : "standard output";
	f->peers = peers;
	f->n_rows = ROWS;
	f->to = open_target(f, path);
	if (!f->to) {
		fail(f, strerror(errno));
		smi_close_trace(f, false);
		return NULL;
	}
	return f;
}

bool smi_begin_trace(struct smi_trace_file *f)
{
	f->zero_ns = INT64_MAX;
	for (unsigned i = 0; i < f->peers->n; i++)
		if (f->peers->peer[i].fd >= 0 && f->peers->peer[i].base_ns < f->zero_ns)
			f->zero_ns = f->peers->peer[i].base_ns;
	return write_head(f);
}

static bool copy_out(struct smi_trace_file *f)
{
	char bytes[65536];
	size_t n;

	/* Whoever reads a pipe may keep us waiting. */
	smi_watch_signals(false);
	rewind(f->to);
	while ((n = fread(bytes, 1, sizeof(bytes), f->to)))
		if (fwrite(bytes, 1, n, f->copy) != n)
			return fail(f, strerror(errno));
	if (ferror(f->to) || fflush(f->copy))
		return fail(f, strerror(errno));
	return true;
}

static bool link_as(const struct smi_trace_file *f, const char *name)
{
	char from[32];

	snprintf(from, sizeof(from), FDS "/%d", fileno(f->to));
	return !linkat(AT_FDCWD, from, AT_FDCWD, name, AT_SYMLINK_FOLLOW);
}

/* Gives a file that has no name the one that it is to have; or, where that is taken, the temporary
 * one: links replace nothing. */
static bool link_file(struct smi_trace_file *f)
{
	bool is_named = link_as(f, f->name);

	for (unsigned i = 0; !is_named && errno == EEXIST && i < 100; i++) {
		snprintf(f->temporary, sizeof(f->temporary), "%.*s.%s.%d-%u", folder_of(f),
			 f->name, f->name + folder_of(f), getpid(), i);
		is_named = link_as(f, f->temporary);
		if (!is_named)
			*f->temporary = 0;
	}
	return is_named;
}

static bool name_file(struct smi_trace_file *f)
{
	mode_t mask = umask(0);
	struct stat st;

	umask(mask);
	/* As any other new file, or as the one that was there. */
	if (fchmod(fileno(f->to), !lstat(f->name, &st) && S_ISREG(st.st_mode) ?
		   st.st_mode & 0777 : 0666 & ~mask) ||
	    fsync(fileno(f->to)) || (!*f->temporary && !link_file(f)) ||
	    (*f->temporary && rename(f->temporary, f->name)))
		return fail(f, strerror(errno));
	*f->temporary = 0;
	return true;
}

int smi_close_trace(struct smi_trace_file *f, bool is_wanted)
{
	int status;

	if (is_wanted && !f->has_failed && (fputs("\n]}\n", f->to) < 0 || fflush(f->to)))
		fail(f, strerror(errno));
	if (is_wanted && !f->has_failed)
		(void)(f->copy ? copy_out(f) : name_file(f));
	if (*f->temporary)
		unlink(f->temporary);
	if (f->to)
		fclose(f->to);
	if (f->copy && f->copy != stdout && fclose(f->copy) && is_wanted)
		fail(f, strerror(errno));
	status = f->has_failed ? SMI_FAILED : SMI_OK;
	free(f);
	return status;
}
