/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMI_SMI_H
#define SMI_SMI_H
/*
 * xla-smi: facts are gathered once into tables of plain rows (a node) and then shown in one
 * of several forms. Nothing that only looks opens a device or wakes who uses one; the kernel
 * driver's nodes are asked for what it keeps anyway. `trace` asks the processes themselves.
 *
 * Files, each of which calls only those before it:
 *
 *	node.c			tables, fields, rows; which devices are meant
 *	json.c text.c		a node in each of the forms; json.c reads one back, too
 *	place.c holders.c	where hardware is: sysfs; who has a file open: /proc
 *	pages.c			telemetry pages
 *	fabric.c gather.c	chips that are linked; all there is, as a node
 *	doctor.c		what stands in the way of using devices
 *	show.c			a node by a command's views; recorded and repeated
 *	report.c reg.c		a page of HTML; registers
 *	peer.c trace_file.c	processes that tell what their devices do; that as a file
 *	trace.c			the command that has them told
 *	served.c		what tessera-sim does to a device for an operator
 *	act.c serve.c top.c	reset, inject, containers; metrics; the terminal
 *	main.c			options and commands
 *
 * One thread. A function that can fail gives an exit status (enum smi_exit) after a line on
 * standard error, if nothing else is said.
 */
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define SMI_SCHEMA "tessera-smi/2"
#define SMI_PATH 8192	/* room for a path made of two */

enum smi_exit {
#define EXIT(name, number, meaning) SMI_##name = number,
#include "tools/xla-smi/exits.def"
#undef EXIT
};

/* ---- node.c: rows ---- */
/* Whether a device of that kind is one process's alone, and another's of the same name another
 * device: a model inside of it, or the function that tessera-sim gives each client. */
static inline bool smi_is_of_process(const char *kind)
{
	return !strcmp(kind, "sim") || !strcmp(kind, "vfio-user");
}


struct smi_num {
	uint64_t n;
	bool is_known;
};

static inline struct smi_num smi_known(uint64_t n)
{
	return (struct smi_num){ n, true };
}

enum smi_type { SMI_TEXT, SMI_NUM, SMI_REAL, SMI_FLAG };
enum smi_unit { SMI_NONE, SMI_BYTES, SMI_NS, SMI_PERCENT, SMI_C, SMI_W, SMI_MHZ, SMI_GTS };
enum smi_metric { SMI_NO, SMI_LABEL, SMI_GAUGE, SMI_COUNTER };

#define SMI_MEMBER_TEXT(name, bytes) char name[bytes];
#define SMI_MEMBER_NUM(name, bytes) struct smi_num name;
#define SMI_MEMBER_REAL(name, bytes) double name;
#define SMI_MEMBER_FLAG(name, bytes) bool name;
#define SMI_MEMBER(name, type, bytes, ...) SMI_MEMBER_##type(name, bytes)

struct smi_device {
#define DEVICES SMI_MEMBER
#include "tools/xla-smi/fields.def"
};
struct smi_process {
#define PROCESSES SMI_MEMBER
#include "tools/xla-smi/fields.def"
};
struct smi_client {
#define CLIENTS SMI_MEMBER
#include "tools/xla-smi/fields.def"
};
struct smi_heap {
#define HEAPS SMI_MEMBER
#include "tools/xla-smi/fields.def"
};
struct smi_owner {
#define OWNERS SMI_MEMBER
#include "tools/xla-smi/fields.def"
};
struct smi_event {
#define EVENTS SMI_MEMBER
#include "tools/xla-smi/fields.def"
};
struct smi_path {
#define PATHS SMI_MEMBER
#include "tools/xla-smi/fields.def"
};
struct smi_link {
#define LINKS SMI_MEMBER
#include "tools/xla-smi/fields.def"
};
struct smi_hop {
#define HOPS SMI_MEMBER
#include "tools/xla-smi/fields.def"
};
struct smi_register {
#define REGISTERS SMI_MEMBER
#include "tools/xla-smi/fields.def"
};
struct smi_finding {
#define FINDINGS SMI_MEMBER
#include "tools/xla-smi/fields.def"
};

enum smi_table_id {
#define TABLE(name, structure, meaning) SMI_##name,
#include "tools/xla-smi/fields.def"
	SMI_TABLES
};

struct smi_field {
	const char *name, *heading, *meaning;
	enum smi_type type;
	enum smi_unit unit;
	enum smi_metric metric;
	size_t offset, bytes;	/* in the row; bytes: of a text with its NUL */
};

struct smi_table {
	const char *name, *one, *meaning;	/* one: a row's name */
	const struct smi_field *fields;
	unsigned n_fields;
	size_t row_bytes;
};
extern const struct smi_table smi_tables[SMI_TABLES];

/* NULL: there is none of that name. */
const struct smi_field *smi_field(const struct smi_table *t, const char *name, size_t n);

/* What is known at one moment. */
struct smi_node {
	struct { void *rows; unsigned n, room; } tables[SMI_TABLES];
	char host[72], time[32];	/* time: UTC */
	char looked[256];	/* for what, and where */
	char problem[512];	/* why this is not all there is; "": it is */
	unsigned n_unreadable;	/* pages that this user may not read */
};

/* A fresh row, all of it unknown; NULL when memory is out, of which the node then tells. It
 * stays where it is until the next row of its table. */
void *smi_add(struct smi_node *node, enum smi_table_id table);
#define SMI_GET(node, table, structure) ((struct structure *)(node)->tables[SMI_##table].rows)
#define SMI_COUNT(node, table) ((node)->tables[SMI_##table].n)
/* What is told first stands. */
void smi_note(struct smi_node *node, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
void smi_node_init(struct smi_node *node);
void smi_node_free(struct smi_node *node);
/* The device that `name` means, by number, bus id, PCI address, node or UUID; NULL. */
const struct smi_device *smi_find(const struct smi_node *node, const char *name);
/* Leaves only the devices that are named, and what is of them. NO_DEVICE. */
int smi_select(struct smi_node *node, const char *const *names, unsigned n);

/* ---- options ---- */

enum smi_form { SMI_TABLE, SMI_JSON, SMI_CSV, SMI_PROMETHEUS };

#define SMI_MAX_SELECTED 64
#define SMI_TRACE_SECONDS 3500	/* the longest trace */

struct smi_options {
	enum smi_form form;
	const char *device[SMI_MAX_SELECTED];
	unsigned n_devices;
	const char *root;	/* in front of /sys, /proc and /dev; "" */
	double interval;	/* seconds */
	uint64_t count;		/* 0: without end */
	bool force, dry_run, ui;
	unsigned long client;	/* a process; 0: none was named */
	unsigned port;
	double seconds;		/* trace: how long */
	const char *output;	/* trace: to which file; NULL: not said */
};

/* What a command shows of one table. */
struct smi_view {
	const char *command;
	enum smi_table_id table;
	enum { SMI_AS_ROWS, SMI_AS_PAIRS, SMI_AS_MATRIX } shape;
	const char *fields;	/* names with a space between; "": all */
};

/* ---- the forms; the stream is asked by the caller whether it took it all ---- */

/* The tables of n views. is_line: on one line. */
void smi_write_json(const struct smi_node *node, const char *command,
		    const struct smi_view *views, unsigned n, bool is_line, FILE *to);
/* Fills an empty node from what smi_write_json wrote. The text is anybody's. */
int smi_read_json(const char *path, struct smi_node *node);
void smi_write_schema(FILE *to);
/* All fields of one table; the heading first if it is asked for. */
void smi_write_csv(const struct smi_node *node, enum smi_table_id table, bool with_heading,
		   FILE *to);
void smi_write_prometheus(const struct smi_node *node, FILE *to);
/* The fields that a view shows, of its table; how many, at most SMI_COLUMNS. */
#define SMI_COLUMNS 80
unsigned smi_fields_of(const struct smi_view *v, const struct smi_field **out);
/* The value for people; "-": unknown. */
void smi_show_value(const struct smi_field *f, const char *row, char *out, size_t bytes);
/* Why a table that is shown has no rows. */
void smi_say_none(const struct smi_node *node, enum smi_table_id table, FILE *to);
/* The devices of the fabric that device number `first` is the first of, at most SMI_COLUMNS; how
 * many. 0: it has no fabric, or is not the first. */
unsigned smi_chips(const struct smi_node *node, unsigned first, const struct smi_device **out);
/* What a matrix has between two devices of the same fabric, or on PCI. */
void smi_show_hops(const struct smi_node *node, const struct smi_device *from,
		   const struct smi_device *to, char *out, size_t bytes);
const char *smi_show_path(const struct smi_node *node, const char *from, const char *to);
void smi_write_text(const struct smi_node *node, const struct smi_view *views, unsigned n,
		    FILE *to);

/* ---- place.c ---- */

/* What sysfs tells of the device's PCI function (d->pci), of its link and of the port above. */
void smi_place(const char *root, struct smi_device *d);
/* The function of an accel node ("accel0"); "": unknown. */
void smi_place_of_node(const char *root, const char *name, char pci[16]);
/* A line of text of a file below the root, without its end; false: there is none. */
bool smi_read_line(char *out, size_t bytes, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* Adds the rows of `paths`. */
void smi_add_paths(const char *root, struct smi_node *node);

/* ---- holders.c ---- */

/* Adds the processes that have a device's node open and did not tell of it, and what the
 * kernel driver counts for each. Of others' processes only root sees that. */
void smi_add_holders(const char *root, struct smi_node *node);
/* The kernel's numbers (drm-client-id) of what a process has open of a device's node. */
struct smi_ids {
	char (*id)[24];
	unsigned n;
};
/* Of files that several names lead to one. False: memory ran out. The caller frees ids.id. */
bool smi_ids_of(const char *root, struct smi_node *node, const struct smi_device *d,
		unsigned long pid, struct smi_ids *ids);
/* The locks of files that are held; a node of no locks if they can't be read. */
struct smi_locks {
	struct smi_lock { uint64_t major, minor, inode, pid; } *lock;
	unsigned n;
};
void smi_read_locks(const char *root, struct smi_locks *out);
/* Who has the lock, as he is called here; unknown if that can't be seen from here. */
struct smi_num smi_lock_holder(const struct smi_locks *locks, uint64_t device, uint64_t inode);
/* The name of a user, or its number. */
void smi_user_name(unsigned uid, char *out, size_t bytes);

/* ---- pages.c ---- */

struct hw_telemetry;
struct hw_ras;
struct hw_identify;
struct hw_link;
void smi_take_position(struct smi_device *d, const struct hw_identify *identity);
void smi_take_telemetry(struct smi_device *d, const struct hw_telemetry *t);
void smi_take_ras(struct smi_device *d, const struct hw_ras *r);
/* As the device says now, by its kernel driver. */
void smi_take_links(struct smi_node *node, const struct smi_device *d,
		    const struct hw_link *links, unsigned n);
/* Adds what the pages of processes tell. */
void smi_add_pages(const char *root, struct smi_node *node);
/* Calls fn for each file that has the name of a page, to read it into *page. What stands in the way
 * of finding them, the node tells. */
struct hal_page;
typedef void smi_page_fn(void *arg, const char *path, const struct smi_locks *locks,
			 struct hal_page *page);
void smi_each_page(const char *root, struct smi_node *node, smi_page_fn *fn, void *arg);

/* ---- fabric.c ---- */

/* Says of each device how its links are, or why that is not known, and of each link who is at
 * its other end. When all are gathered. */
void smi_join_links(struct smi_node *node);
/* Adds the rows of `hops`. */
void smi_add_hops(struct smi_node *node);

/* ---- gather.c ---- */

/* All there is now. What could not be had, the node tells. */
void smi_gather(const struct smi_options *o, struct smi_node *node);

/* ---- doctor.c ---- */

/* Adds the rows of `findings`: of the devices of a gathered node, and of this process's
 * surroundings. Opens devices' files for a moment. */
void smi_diagnose(const struct smi_options *o, struct smi_node *node);

/* ---- show.c ---- */

/* The views of a command; how many. 0: there is no such command, or it shows no tables. */
unsigned smi_views(const char *command, const struct smi_view **out);

/* Writes a node of which the rows are chosen, in the form that is asked for. is_again: CSV has
 * had its heading. */
void smi_write_node(const struct smi_options *o, const char *command,
		    const struct smi_node *node, bool is_again);

/* Finds out what a command shows beside what was gathered. */
void smi_complete(const struct smi_options *o, const char *command, struct smi_node *node);

/* Fills in what the kernel driver does not keep: how busy devices were since the last look. */
void smi_compare(struct smi_node *now, const struct smi_node *last);

/* ---- report.c ---- */

/* Writes a gathered node as a page of HTML that a browser asks for again after the interval, a
 * second at least. Adds the rows of `paths` and `hops`. */
void smi_write_page(const struct smi_options *o, struct smi_node *node, FILE *to);

/* ---- served.c: a device of tessera-sim, by its name vfio-user:DIR/N.sock ---- */

bool smi_is_served(const char *name);
/* Both say who uses it, and refuse where somebody does without --force. */
int smi_reset_served(const struct smi_options *o, const char *name);
int smi_inject_served(const struct smi_options *o, const char *name, unsigned what,
		      uint64_t value);

/* ---- commands, by main.c's table: argv[0] is the command ---- */

int smi_show(const struct smi_options *o, int argc, char **argv);
int smi_report(const struct smi_options *o, int argc, char **argv);
int smi_reg(const struct smi_options *o, int argc, char **argv);
int smi_reset(const struct smi_options *o, int argc, char **argv);
int smi_diag(const struct smi_options *o, int argc, char **argv);
int smi_inject(const struct smi_options *o, int argc, char **argv);
int smi_cdi(const struct smi_options *o, int argc, char **argv);
int smi_serve(const struct smi_options *o, int argc, char **argv);
int smi_top(const struct smi_options *o, int argc, char **argv);
int smi_watch(const struct smi_options *o, int argc, char **argv);
int smi_record(const struct smi_options *o, int argc, char **argv);
int smi_replay(const struct smi_options *o, int argc, char **argv);
int smi_print_schema(const struct smi_options *o, int argc, char **argv);
int smi_trace(const struct smi_options *o, int argc, char **argv);

#endif
