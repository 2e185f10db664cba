/* SPDX-License-Identifier: Apache-2.0 */
/* An executable as text for people. */
#include <inttypes.h>
#include <string.h>

#include "hal/hw/isa_print.h"
#include "tools/tessera-objdump/objdump.h"

#define NOTE_COLUMN 48

/* ---- pieces ---- */

/* Bytes of the UTF-8 sequence at p, or 0 if it is none, overlong or a control. */
static size_t utf8(const unsigned char *p)
{
	unsigned lead = *p, n = lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
	uint32_t v = n == 1 ? lead : lead & (0x7fu >> n);
	static const uint32_t least[] = { 0, 0x20, 0xa0, 0x800, 0x10000 };

	if (lead == 0x7f || (lead >= 0x80 && lead < 0xc2) || lead > 0xf4)
		return 0;
	for (unsigned i = 1; i < n; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
		v = v << 6 | (p[i] & 0x3f);
	}
	return v < least[n] || v > 0x10ffff || (v >= 0xd800 && v < 0xe000) ? 0 : n;
}

void objdump_clean(const char *text, struct str *out)
{
	const unsigned char *p = (const unsigned char *)text;

	while (*p) {
		size_t n = utf8(p);

		str_add(out, n ? (const char *)p : "?", n ? n : 1);
		p += n ? n : 1;
	}
}

void objdump_type(const struct image_shape *s, struct str *out)
{
	str_printf(out, "tensor<");
	for (unsigned d = 0; d < s->rank; d++)
		str_printf(out, "%s%" PRId64 "x", s->bounded >> d & 1 ? "<=" : "", s->dim[d]);
	str_printf(out, "%s>", elem_text(s->elem));
}

void objdump_signature(const struct image *im, struct str *out)
{
	uint32_t n_args = im->info.n_args, n = n_args + im->info.n_results;

	str_printf(out, "(");
	for (uint32_t i = 0; i < n; i++) {
		str_printf(out, "%s", i == n_args ? ") -> (" : i ? ", " : "");
		objdump_type(&im->shapes[i], out);
	}
	str_printf(out, n_args == n ? ") -> ()" : ")");
}

const char *objdump_memory_kind(const struct image_shape *s)
{
	static const char *const names[] = { "device", "pinned_host", "unpinned_host" };

	return names[s->memory_kind];	/* image_parse has looked */
}

const char *objdump_binding_kind(const struct image_binding *b)
{
	static const char *const names[] = { "constants", "temporaries", "argument", "result",
					     "random state", "mailbox", "peer", "member",
					     "peer data" };

	return b->kind <= IMAGE_PEER_DATA ? names[b->kind] : "unknown";
}

const char *objdump_access(const struct image_binding *b)
{
	static const char *const names[] = { "none", "read", "write", "read+write" };

	return names[!!(b->access & HW_BIND_READ) + 2 * !!(b->access & HW_BIND_WRITE)];
}

const struct image_shape *objdump_shape_of(const struct image *im,
					   const struct image_binding *b)
{
	if (b->kind == IMAGE_ARG && b->index < im->info.n_args)
		return &im->shapes[b->index];
	if (b->kind == IMAGE_RESULT && b->index < im->info.n_results)
		return &im->shapes[im->info.n_args + b->index];
	return NULL;
}

size_t objdump_count(const struct image *im)
{
	struct str text = { 0 };
	size_t n = 0;

	for (size_t at = 0; at < im->text_bytes; n++) {
		text.len = 0;
		at += isa_print_insn((const char *)im->text + at, im->text_bytes - at, at, &text);
	}
	str_free(&text);
	return n;
}

/* ---- the parts ---- */

static void print_fingerprint(const struct image *im, struct str *out)
{
	static const uint8_t none[sizeof(im->info.fingerprint)];

	if (!memcmp(im->info.fingerprint, none, sizeof(none)))
		return;
	str_printf(out, "  fingerprint  ");
	for (size_t i = 0; i < sizeof(im->info.fingerprint); i++)
		str_printf(out, "%02x", im->info.fingerprint[i]);
	str_printf(out, "\n");
}

static void print_transfers(const struct image *im, struct str *out)
{
	if (im->n_transfers)
		str_printf(out, "\n  %-8s %-9s %-20s %-7s %14s %14s\n", "CALL", "MOVES", "CHANNEL",
			   "BINDING", "OFFSET", "BYTES");
	for (size_t i = 0; i < im->n_transfers; i++) {
		const struct image_transfer *t = &im->transfers[i];

		str_printf(out, "  %-8u %-9s %-20" PRId64 " b%-6u %14" PRIu64 " %14" PRIu64 "\n",
			   t->call, t->way ? "from host" : "to host", t->channel, t->binding,
			   t->offset, t->bytes);
	}
}

/* Calls of the host by name. */
static void print_functions(const struct image *im, struct str *out)
{
	uint32_t call, bytes, n;
	const char *shown;
	size_t at = 0;

	if (im->functions_bytes)
		str_printf(out, "\n  %-8s %s\n", "CALL", "FUNCTION");
	while ((shown = image_next_function(im, &at, &call, &bytes))) {
		struct str name = { 0 };

		if (bytes < sizeof(n))
			continue;
		memcpy(&n, shown, sizeof(n));
		if (n > bytes - sizeof(n))
			n = bytes - (uint32_t)sizeof(n);
		str_printf(out, "  %-8u ", call);
		str_add(&name, shown + sizeof(n), n);
		objdump_clean(name.failed ? "" : name.text, out);
		out->failed |= name.failed;
		str_free(&name);
		str_printf(out, "\n");
	}
}

/* Whom each member meets, and its row. */
static void print_members(const struct image *im, struct str *out)
{
	uint32_t n = image_n_members(im);

	if (!im->n_slots && !im->n_words)
		return;
	str_printf(out, "\n  %-8s %s%s\n", "MEMBER", im->n_slots ? "PEERS" : "",
		   !im->n_words ? "" : im->n_slots ? ", ROW" : "ROW");
	for (size_t m = 0; m < n; m++) {
		str_printf(out, "  %-8zu", m);
		for (size_t k = 0; k < im->n_slots; k++)
			str_printf(out, " %" PRIu32, im->peers[m * im->n_slots + k]);
		str_printf(out, im->n_slots && im->n_words ? "," : "");
		for (size_t k = 0; k < im->n_words; k++)
			str_printf(out, " %" PRIu64, im->members[m * im->n_words + k]);
		str_printf(out, "\n");
	}
}

static void print_meetings(const struct image *im, struct str *out)
{
	if (im->n_meetings)
		str_printf(out, "\n  %-14s %-8s %14s %-5s  %s\n", "MEETING", "TYPE", "BYTES",
			   "DEPTH", "GROUPS, WHERE");
	for (size_t i = 0; i < im->n_meetings; i++) {
		const struct image_meeting *m = &im->meetings[i];

		str_printf(out, "  %-14s %-8s %14" PRIu64 " %-5u  ",
			   image_meeting_kind_text(m), elem_text(m->elem), m->bytes, m->depth);
		objdump_clean(image_string(im, m->groups), out);
		str_printf(out, " ");
		objdump_clean(image_string(im, m->where), out);
		str_printf(out, "\n");
	}
}

static void print_headers(const struct objdump_file *f, struct str *out)
{
	const struct image *im = f->image;
	const struct image_info *in = &im->info;

	str_printf(out, "  program      ");
	objdump_clean(image_string(im, in->name), out);
	str_printf(out, "\n  made by      ");
	objdump_clean(im->note, out);
	str_printf(out, "\n  signature    ");
	objdump_signature(im, out);
	str_printf(out, "\n");
	print_fingerprint(im, out);
	str_printf(out, "  file         %zu bytes, format %u, ISA %u\n", f->bytes, in->version,
		   in->isa);
	str_printf(out, "  code         %zu bytes, %zu instructions, %s\n", im->text_bytes,
		   objdump_count(im), in->flags & IMAGE_STRAIGHT ? "straight" : "with loops");
	str_printf(out, "  constants    %zu bytes\n", im->rodata_bytes);
	str_printf(out, "  temporaries  %" PRIu64 " bytes\n", in->temp_bytes);
	str_printf(out, "  debug map    %zu rows\n", im->n_debug);
	str_printf(out, "  members      %" PRIu32 ": %" PRIu32 " replicas of %" PRIu32
		   " partitions%s\n", image_n_members(im), in->n_replicas, in->n_partitions,
		   im->shardings_bytes ? ", arrays sharded" : "");
	str_printf(out, "  estimated    %" PRIu64 " ns, %.6g operations, %.6g bytes moved, %.6g "
		   "transcendentals\n", in->cost_ns, in->flops, in->bytes_accessed,
		   in->transcendentals);
	str_printf(out, "\n  %-8s %-16s %-11s %14s  %s\n", "BINDING", "HOLDS", "ACCESS", "BYTES",
		   "TYPE");
	for (size_t i = 0; i < im->n_bindings; i++) {
		const struct image_binding *b = &im->bindings[i];
		const struct image_shape *s = objdump_shape_of(im, b);
		int n = s || b->kind == IMAGE_PEER || b->kind == IMAGE_PEER_DATA ?
			(int)b->index : -1;

		str_printf(out, "  b%-7zu %-11s", i, objdump_binding_kind(b));
		str_printf(out, n >= 0 ? " %-4d" : "     ", n);
		str_printf(out, " %-11s %14" PRIu64, objdump_access(b), b->bytes);
		if (s) {
			str_printf(out, "  ");
			objdump_type(s, out);
		}
		str_printf(out, "\n");
	}
	print_transfers(im, out);
	print_functions(im, out);
	print_members(im, out);
	print_meetings(im, out);
}

static void print_shapes(const struct image *im, bool of_results, struct str *out)
{
	uint32_t from = of_results ? im->info.n_args : 0;
	uint32_t n = of_results ? im->info.n_results : im->info.n_args;

	str_printf(out, "  %u %s%s\n", n, of_results ? "result" : "argument", n == 1 ? "" : "s");
	for (uint32_t i = 0; i < n; i++) {
		const struct image_shape *s = &im->shapes[from + i];
		struct str type = { 0 };

		objdump_type(s, &type);
		str_printf(out, "  %6u  %-28s %14" PRIu64 " bytes  %s", i,
			   type.text ? type.text : "", image_shape_bytes(s),
			   objdump_memory_kind(s));
		if (s->alias >= 0)
			str_printf(out, of_results ? ", in the memory of argument %d" :
				   ", donated: its memory becomes result %d", s->alias);
		else if (!of_results && s->is_donated)
			str_printf(out, ", donated");
		str_printf(out, "\n");
		out->failed |= type.failed;
		str_free(&type);
	}
}

/* "; dot_general at f.py:3", in a column of its own where there is room. */
static void note(void *arg, uint64_t offset, struct str *out)
{
	const struct image *im = arg;
	const struct image_debug *row = image_where(im, offset);
	const char *where, *line;
	size_t used;

	if (!row)
		return;
	where = image_string(im, row->where);
	line = out->text ? memrchr(out->text, '\n', out->len) : NULL;
	used = line ? out->len - (size_t)(line + 1 - out->text) : out->len;
	str_printf(out, "%*s; ", used < NOTE_COLUMN ? (int)(NOTE_COLUMN - used) : 2, "");
	objdump_clean(image_string(im, row->op), out);
	if (*where) {
		str_printf(out, " at ");
		objdump_clean(where, out);
	}
}

static void print_verdict(const struct objdump_file *f, struct str *out)
{
	const struct image_debug *row = image_where(f->image, f->verdict.offset);

	if (!f->is_refused) {
		str_printf(out, "  verified     %zu instructions\n", objdump_count(f->image));
		return;
	}
	str_printf(out, "  REFUSED      the instruction at 0x%" PRIx64 " %s\n", f->verdict.offset,
		   f->verdict.why);
	if (!row)
		return;
	str_printf(out, "               of ");
	objdump_clean(image_string(f->image, row->op), out);
	if (*image_string(f->image, row->where)) {
		str_printf(out, " at ");
		objdump_clean(image_string(f->image, row->where), out);
	}
	str_printf(out, "\n");
}

void objdump_text(const struct objdump_file *f, unsigned parts, struct str *out)
{
	objdump_clean(f->path, out);
	str_printf(out, ": executable for the Tessera T1\n");
	if (parts & OBJDUMP_HEADERS) {
		str_printf(out, "\n");
		print_headers(f, out);
	}
	if (parts & OBJDUMP_SIGNATURE) {
		str_printf(out, "\n");
		print_shapes(f->image, false, out);
		print_shapes(f->image, true, out);
	}
	if (parts & OBJDUMP_CODE) {
		str_printf(out, "\n");
		isa_print_program(f->image->text, f->image->text_bytes, note,
				  (void *)(uintptr_t)f->image, out);
	}
	if (parts & OBJDUMP_VERIFY) {
		str_printf(out, "\n");
		print_verdict(f, out);
	}
	str_printf(out, "\n");
}
