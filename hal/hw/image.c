/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading and writing the executable format through libelf.
 *
 * The reader copies what it needs into one block and checks every rule of image.h, so
 * that what it returns can be used without looking again. The bytes are hostile.
 */
#include "hal/hw/image.h"

#include <errno.h>
#include <gelf.h>
#include <libelf.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "hal/base/elem.h"

#define MAX_ARGS 65536u

enum section {
	TEXT, RODATA, INFO, BINDINGS, SHAPES, DEBUG, HOST, FUNCTIONS, PEERS, MEMBERS, MEETINGS,
	SHARDINGS, STRINGS, NOTE, N_SECTIONS
};

static const char *const names[N_SECTIONS] = {
	".text", ".rodata", ".tessera.info", ".tessera.bindings", ".tessera.shapes",
	".tessera.debug", ".tessera.host", ".tessera.functions", ".tessera.peers",
	".tessera.members", ".tessera.meetings", ".tessera.shardings", ".tessera.strings",
	".tessera.note",
};
static const size_t units[N_SECTIONS] = {
	8, 1, sizeof(struct image_info), sizeof(struct image_binding),
	sizeof(struct image_shape), sizeof(struct image_debug),
	sizeof(struct image_transfer), 1, sizeof(uint32_t), sizeof(uint64_t),
	sizeof(struct image_meeting), 1, 1, 1,
};

static pthread_once_t once = PTHREAD_ONCE_INIT;

static void start_libelf(void)
{
	elf_version(EV_CURRENT);
}

static int bad(struct err *err, const char *what)
{
	return err_set(err, ERR_INVALID_ARGUMENT, "not a Tessera executable: %s; compile "
		       "the program again", what);
}

/* ---- reading ---- */

struct parts {
	const void *p[N_SECTIONS];
	size_t n[N_SECTIONS];
};

static int find_sections(Elf *elf, size_t names_index, size_t file_bytes,
			 const void *file, struct parts *out, struct err *err)
{
	Elf_Scn *scn = NULL;

	while ((scn = elf_nextscn(elf, scn))) {
		GElf_Shdr sh;
		const char *name;

		if (!gelf_getshdr(scn, &sh))
			return bad(err, "a section header is broken");
		name = elf_strptr(elf, names_index, sh.sh_name);
		for (unsigned i = 0; name && i < N_SECTIONS; i++) {
			if (strcmp(name, names[i]) || sh.sh_type == SHT_NOBITS)
				continue;
			if (sh.sh_offset > file_bytes ||
			    sh.sh_size > file_bytes - sh.sh_offset)
				return bad(err, "a section passes the end of the file");
			if (out->p[i])
				return bad(err, "a section is there twice");
			out->p[i] = (const char *)file + sh.sh_offset;
			out->n[i] = sh.sh_size;
		}
	}
	return 0;
}

/* Of what starts every version's information. */
static int check_version(const struct parts *s, struct err *err)
{
	struct { uint32_t version, isa; } is = { 0 };

	if (s->n[INFO] < sizeof(is))
		return bad(err, "code or information is missing");
	memcpy(&is, s->p[INFO], sizeof(is));
	if (is.version == IMAGE_VERSION && is.isa == ISA_VERSION)
		return 0;
	return err_set(err, ERR_INVALID_ARGUMENT, "the executable is of format %u and ISA %u, "
		       "this build reads %u and %u; compile it again", is.version, is.isa,
		       IMAGE_VERSION, ISA_VERSION);
}

static int check_units(const struct parts *s, struct err *err)
{
	for (unsigned i = 0; i < N_SECTIONS; i++)
		if (s->n[i] % units[i])
			return bad(err, "a section's size is not a multiple of its rows");
	if (s->n[INFO] != sizeof(struct image_info) || !s->n[TEXT])
		return bad(err, "code or information is missing");
	if (!s->n[STRINGS] || ((const char *)s->p[STRINGS])[0] ||
	    ((const char *)s->p[STRINGS])[s->n[STRINGS] - 1])
		return bad(err, "the strings do not start and end with NUL");
	if (s->n[NOTE] && ((const char *)s->p[NOTE])[s->n[NOTE] - 1])
		return bad(err, "the note has no end");
	return 0;
}

uint64_t image_shape_bytes(const struct image_shape *s)
{
	uint64_t n = elem_bytes(s->elem);

	for (unsigned d = 0; d < s->rank; d++)
		if (__builtin_mul_overflow(n, (uint64_t)s->dim[d], &n))
			return UINT64_MAX;
	return n;
}

/* All 0, or each dim once. */
static bool is_order(const struct image_shape *s)
{
	uint64_t seen = 0, any = 0;

	for (unsigned k = 0; k < IMAGE_MAX_RANK; k++) {
		any |= s->order[k];
		if (k < s->rank && s->order[k] < s->rank)
			seen |= 1ull << s->order[k];
		else if (s->order[k])
			return false;
	}
	return !any || seen == (1ull << s->rank) - 1;
}

static int check_shapes(const struct image *im, struct err *err)
{
	uint32_t n_args = im->info.n_args, n = n_args + im->info.n_results;

	for (uint32_t i = 0; i < n; i++) {
		const struct image_shape *s = &im->shapes[i];

		if (!elem_valid(s->elem) || s->rank > IMAGE_MAX_RANK || s->memory_kind > 2)
			return bad(err, "a shape has a wrong type, rank or memory kind");
		for (unsigned d = 0; d < s->rank; d++)
			if (s->dim[d] < 0)
				return bad(err, "a shape has a negative dim");
		if (image_shape_bytes(s) > INT64_MAX)
			return bad(err, "a shape overflows");
		if (!is_order(s))
			return bad(err, "a shape's order is none of its dims");
	}
	for (uint32_t i = 0; i < n; i++) {
		const struct image_shape *s = &im->shapes[i], *other;
		uint32_t limit = i < n_args ? im->info.n_results : n_args;

		if (s->alias < -1 || (s->alias >= 0 && (uint32_t)s->alias >= limit))
			return bad(err, "an alias is out of range");
		if (s->alias < 0)
			continue;
		other = &im->shapes[i < n_args ? n_args + (uint32_t)s->alias :
					       (uint32_t)s->alias];
		if (other->alias != (int32_t)(i < n_args ? i : i - n_args) ||
		    image_shape_bytes(other) != image_shape_bytes(s))
			return bad(err, "an alias joins what does not fit");
	}
	return 0;
}

static uint32_t count_sizes(const struct image_shape *s, uint32_t n)
{
	uint32_t n_sizes = 0;

	for (uint32_t i = 0; i < n; i++)
		n_sizes += s[i].bounded != 0;
	return n_sizes;
}

uint32_t image_n_arg_sizes(const struct image *im)
{
	return count_sizes(im->shapes, im->info.n_args);
}

uint32_t image_n_result_sizes(const struct image *im)
{
	return count_sizes(im->shapes + im->info.n_args, im->info.n_results);
}

/* Of the arguments, or of the results. */
static int check_bounds(const struct image *im, const struct image_shape *s, uint32_t n,
			struct err *err)
{
	static const uint8_t in_order[IMAGE_MAX_RANK];
	uint32_t n_sizes = count_sizes(s, n), at = n - n_sizes;

	if (n_sizes > n / 2)
		return bad(err, "a shape has bounds and no sizes");
	if (n_sizes && im->info.n_partitions != 1)
		return bad(err, "a shape of a program for several partitions has bounds");
	for (uint32_t i = 0; i < n; i++) {
		uint32_t beyond = s[i].rank < IMAGE_MAX_RANK ? s[i].bounded >> s[i].rank : 0;

		if (!s[i].bounded)
			continue;
		if (beyond || i >= n - n_sizes)
			return bad(err, "a dim has a bound, and is none of its shape's");
		for (unsigned d = 0; d < s[i].rank; d++)
			if (s[i].bounded >> d & 1 && (!s[i].dim[d] || s[i].dim[d] > INT32_MAX))
				return bad(err, "a bound is 0 or above 2^31 - 1");
		if (s[at].elem != ELEM_S32 || s[at].rank != 1 || s[at].dim[0] != s[i].rank ||
		    s[at].memory_kind || s[at].is_donated || s[at].alias >= 0 ||
		    memcmp(s[at].order, in_order, sizeof(in_order)))
			return bad(err, "the sizes of a shape with bounds are no list of them");
		at++;
	}
	return 0;
}

/* What stands behind arguments and results, each kind behind the one before. */
static bool is_tail(const struct image_binding *b)
{
	return b->kind >= IMAGE_RANDOM && b->kind <= IMAGE_MEMBER;
}

/* The mailbox, peers behind it by slot, the member's row. */
static bool is_in_its_place(const struct image_binding *b)
{
	const struct image_binding *before = b - 1;

	switch (b->kind) {
	case IMAGE_MAILBOX:
		return !b->index && !is_tail(before);
	case IMAGE_PEER:
		return b->access == (HW_BIND_WRITE | HW_BIND_PEER) &&
		       ((before->kind == IMAGE_MAILBOX && !b->index) ||
			(before->kind == IMAGE_PEER && b->index == before->index + 1));
	default:
		return !b->index && b->access == HW_BIND_READ &&
		       (before->kind == IMAGE_PEER || !is_tail(before));
	}
}

/* Bindings but those of peers' data, which are last. */
static size_t count_own(const struct image *im)
{
	size_t n = im->n_bindings;

	while (n && im->bindings[n - 1].kind == IMAGE_PEER_DATA)
		n--;
	return n;
}

/* Of what is written by peers: the kind of memory that it lies in. */
static uint8_t memory_of(const struct image *im, const struct image_binding *b)
{
	if (b->kind == IMAGE_TEMP)
		return 0;
	return im->shapes[(b->kind == IMAGE_RESULT ? im->info.n_args : 0) + b->index].memory_kind;
}

/* Nobody writes to itself as to a peer. */
static bool may_be_own(const struct image *im, const struct image_binding *b)
{
	size_t slot = b->index % im->n_slots;

	for (size_t m = 0; b->access & HW_BIND_WRITE && m < image_n_members(im); m++)
		if (im->peers[m * im->n_slots + slot] == m)
			return false;
	return true;
}

static int check_peer_data(const struct image *im, struct err *err)
{
	size_t n = count_own(im);

	for (size_t i = n; i < im->n_bindings; i++) {
		const struct image_binding *b = &im->bindings[i], *of;
		size_t k = im->n_slots ? b->index / im->n_slots : n;

		of = k < n ? &im->bindings[k] : NULL;
		if (b->zero || !of || (b->access != (HW_BIND_WRITE | HW_BIND_PEER) &&
				       b->access != (HW_BIND_READ | HW_BIND_PEER)) ||
		    (of->kind != IMAGE_TEMP && of->kind != IMAGE_ARG &&
		     of->kind != IMAGE_RESULT) ||
		    (b->access & ~of->access & HW_BIND_WRITE) || of->bytes != b->bytes ||
		    memory_of(im, of) || !may_be_own(im, b))
			return bad(err, "a peer's data is none that it could reach");
	}
	return 0;
}

static int check_bindings(const struct image *im, struct err *err)
{
	uint32_t args = 0, results = 0;
	size_t n = count_own(im), n_own = n;

	if (image_draws(im)) {
		n--;
		if (im->bindings[n].index || im->bindings[n].bytes > IMAGE_RANDOM_WORDS * 8)
			return bad(err, "more random state is bound than there is");
	}
	if (n < 2 || im->bindings[0].kind != IMAGE_CONSTANTS ||
	    im->bindings[1].kind != IMAGE_TEMP)
		return bad(err, "the first bindings are not constants and temporaries");
	if (im->bindings[0].bytes > im->rodata_bytes ||
	    im->bindings[1].bytes > im->info.temp_bytes)
		return bad(err, "the constants or temporaries are smaller than bound");
	for (size_t i = 0; i < n_own; i++) {
		const struct image_binding *b = &im->bindings[i];
		const struct image_shape *s;

		if (b->zero || b->access & ~(HW_BIND_READ | HW_BIND_WRITE |
					     (b->kind == IMAGE_PEER ? HW_BIND_PEER : 0)))
			return bad(err, "a binding has unknown bits");
		if (i < 2 || i == n)
			continue;
		if (b->kind > IMAGE_RANDOM && b->kind <= IMAGE_MEMBER) {
			if (!is_in_its_place(b))
				return bad(err, "the mailbox, the peers or the member's row are "
					   "out of order");
			continue;
		}
		if (is_tail(b - 1))
			return bad(err, "the bindings are out of order");
		if (b->kind == IMAGE_ARG ? b->index != args++ || results :
		    b->kind != IMAGE_RESULT)
			return bad(err, "the bindings are out of order");
		if (b->kind == IMAGE_RESULT) {
			while (results < im->info.n_results &&
			       im->shapes[im->info.n_args + results].alias >= 0)
				results++;
			if (b->index != results++ || b->index >= im->info.n_results)
				return bad(err, "the bindings are out of order");
		}
		if (b->kind == IMAGE_ARG && b->index >= im->info.n_args)
			return bad(err, "a binding is of no argument");
		s = &im->shapes[b->kind == IMAGE_ARG ? b->index :
						       im->info.n_args + b->index];
		if (b->bytes > image_shape_bytes(s))
			return bad(err, "a binding is larger than its shape");
	}
	while (results < im->info.n_results &&
	       im->shapes[im->info.n_args + results].alias >= 0)
		results++;
	if (args != im->info.n_args || results != im->info.n_results)
		return bad(err, "an argument or result has no binding");
	return 0;
}

static int check_transfers(const struct image *im, struct err *err)
{
	uint32_t call = 0;
	bool is_receiving = false;

	if (im->n_transfers && im->bindings[1].bytes < 8)
		return bad(err, "it calls the host and has no room for the call's number");
	for (size_t i = 0; i < im->n_transfers; i++) {
		const struct image_transfer *t = &im->transfers[i];
		const struct image_binding *b;

		if (t->call != call) {
			is_receiving = false;
			call++;
		}
		if (!call || t->call != call || t->way >= IMAGE_WAYS || (is_receiving && !t->way))
			return bad(err, "its calls of the host are out of order");
		if (t->only > im->info.n_partitions || (i && t[-1].call == call &&
							t[-1].only != t->only))
			return bad(err, "a call of the host is nobody's");
		is_receiving = t->way != IMAGE_TO_HOST;
		if (t->binding >= im->n_bindings)
			return bad(err, "a call of the host names no binding");
		b = &im->bindings[t->binding];
		if (b->kind == IMAGE_PEER || b->kind == IMAGE_PEER_DATA)
			return bad(err, "a call of the host moves what is another device's");
		if (t->bytes > b->bytes || t->offset > b->bytes - t->bytes ||
		    (t->bytes && !(b->access & (t->way ? HW_BIND_WRITE : HW_BIND_READ))))
			return bad(err, "a call of the host moves what is not there");
	}
	return 0;
}

/* Ascending, each of a call that is there. */
static int check_functions(const struct image *im, struct err *err)
{
	uint32_t last = im->n_transfers ? im->transfers[im->n_transfers - 1].call : 0;
	uint32_t call, bytes, before = 0;
	size_t at = 0;

	while (image_next_function(im, &at, &call, &bytes)) {
		if (call <= before || call > last)
			return bad(err, "its calls by name are out of order");
		before = call;
	}
	return at == im->functions_bytes ? 0 : bad(err, "a call by name is cut off");
}

/* A mailbox with peers or neither; the peers' mailboxes are like this one. */
static int check_peers(const struct image *im, struct err *err)
{
	uint32_t n_members = image_n_members(im);
	const struct image_binding *box = NULL;
	size_t n_slots = 0;

	for (size_t i = 0; i < im->n_bindings; i++) {
		const struct image_binding *b = &im->bindings[i];

		if (b->kind == IMAGE_MAILBOX)
			box = b;
		if (b->kind != IMAGE_PEER)
			continue;
		n_slots++;
		if (b->bytes > box->bytes)	/* is_in_its_place: there is one */
			return bad(err, "a peer's mailbox is larger than its own");
	}
	if (!box != !n_slots || (box && !box->bytes))
		return bad(err, "it has a mailbox that nobody writes to");
	if (n_slots > im->n_slots || (!n_slots && im->n_slots))
		return bad(err, "there are not as many slots of peers as are bound");
	for (size_t i = 0; i < im->n_slots * n_members; i++)
		if (im->peers[i] >= n_members ||
		    (i % im->n_slots < n_slots && im->peers[i] == i / im->n_slots))
			return bad(err, "a peer is no other member");
	return 0;
}

static int check_members(const struct image *im, struct err *err)
{
	uint32_t n_members = image_n_members(im);
	const struct image_binding *row = NULL;

	for (size_t i = 0; i < im->n_bindings; i++)
		if (im->bindings[i].kind == IMAGE_MEMBER)
			row = &im->bindings[i];
	if (!row != !im->n_words || (row && (im->n_words < 2 || row->bytes > im->n_words * 8)))
		return bad(err, "the rows of the members are not what is bound");
	for (size_t m = 0; row && m < n_members; m++)
		if (im->members[m * im->n_words] != m / im->info.n_partitions ||
		    im->members[m * im->n_words + 1] != m % im->info.n_partitions)
			return bad(err, "a member's row is of another member");
	return 0;
}

static int check_meetings(const struct image *im, struct err *err)
{
	if (im->n_meetings && !im->n_slots)
		return bad(err, "members meet that have no peers");
	for (size_t i = 0; i < im->n_meetings; i++) {
		const struct image_meeting *m = &im->meetings[i];

		if (m->kind >= IMAGE_MEETING_KINDS || !elem_valid(m->elem) ||
		    m->groups >= im->strings_bytes || m->where >= im->strings_bytes)
			return bad(err, "a meeting has a wrong kind, type or text");
	}
	return 0;
}

static int check_shardings(const struct image *im, struct err *err)
{
	uint32_t n = im->info.n_args + im->info.n_results, bytes;
	size_t at = 0;

	if (!im->shardings_bytes)
		return 0;
	if (im->info.n_partitions == 1)
		return bad(err, "it shards, and has one partition");
	while (n && image_next_sharding(im, &at, &bytes))
		n--;
	if (n || at != im->shardings_bytes)
		return bad(err, "there are not as many shardings as arguments and results");
	return 0;
}

static int check(const struct image *im, struct err *err)
{
	int code;

	if (im->info.n_args > MAX_ARGS || im->info.n_results > MAX_ARGS ||
	    im->n_bindings > ISA_MAX_BINDINGS || im->info.name >= im->strings_bytes ||
	    im->info.temp_bytes > INT64_MAX)
		return bad(err, "a count is out of range");
	code = check_shapes(im, err);
	if (!code)
		code = check_bounds(im, im->shapes, im->info.n_args, err);
	if (!code)
		code = check_bounds(im, im->shapes + im->info.n_args, im->info.n_results, err);
	if (!code)
		code = check_bindings(im, err);
	if (!code)
		code = check_peers(im, err);
	if (!code)
		code = check_peer_data(im, err);
	if (!code)
		code = check_members(im, err);
	if (!code)
		code = check_meetings(im, err);
	if (!code)
		code = check_shardings(im, err);
	if (!code)
		code = check_transfers(im, err);
	if (!code)
		code = check_functions(im, err);
	for (size_t i = 0; !code && i < im->n_debug; i++)
		if (im->debug[i].op >= im->strings_bytes ||
		    im->debug[i].where >= im->strings_bytes ||
		    (i && im->debug[i].offset <= im->debug[i - 1].offset))
			code = bad(err, "the debug map is out of order");
	return code;
}

/* How wide the tables are that have a row for each member. */
static int count_members(const struct parts *s, struct image *im, struct err *err)
{
	uint64_t n = (uint64_t)im->info.n_replicas * im->info.n_partitions;
	size_t peers = s->n[PEERS] / units[PEERS], words = s->n[MEMBERS] / units[MEMBERS];

	if (!n || n > IMAGE_MAX_MEMBERS)
		return bad(err, "a count of members is out of range");
	if (peers % n || words % n)
		return bad(err, "a table has not a row for each member");
	im->n_slots = peers / n;
	im->n_words = words / n;
	return 0;
}

/* All sections, but code and constants (the large ones) only if `is_whole`. */
static int copy_parts(const struct parts *s, bool is_whole, struct image *im,
		      struct err *err)
{
	size_t at[N_SECTIONS], total = 0;
	char *block;

	for (unsigned i = 0; i < N_SECTIONS; i++) {
		at[i] = total;
		if (is_whole || (i != TEXT && i != RODATA))
			total += (s->n[i] + 63) & ~(size_t)63;
	}
	block = aligned_alloc(64, total + 64);
	if (!block)
		return err_set(err, ERR_RESOURCE_EXHAUSTED,
			       "out of memory for an executable of %zu bytes", total);
	for (unsigned i = 0; i < N_SECTIONS; i++)
		if (s->n[i] && (is_whole || (i != TEXT && i != RODATA)))
			memcpy(block + at[i], s->p[i], s->n[i]);
	im->owned = block;
	memcpy(&im->info, block + at[INFO], sizeof(im->info));
	im->text = is_whole ? block + at[TEXT] : s->p[TEXT];
	im->text_bytes = s->n[TEXT];
	im->rodata = is_whole ? block + at[RODATA] : s->p[RODATA];
	im->rodata_bytes = s->n[RODATA];
	im->bindings = (const void *)(block + at[BINDINGS]);
	im->n_bindings = s->n[BINDINGS] / units[BINDINGS];
	im->shapes = (const void *)(block + at[SHAPES]);
	im->debug = (const void *)(block + at[DEBUG]);
	im->n_debug = s->n[DEBUG] / units[DEBUG];
	im->transfers = (const void *)(block + at[HOST]);
	im->n_transfers = s->n[HOST] / units[HOST];
	im->functions = (const void *)(block + at[FUNCTIONS]);
	im->functions_bytes = s->n[FUNCTIONS];
	im->peers = (const void *)(block + at[PEERS]);
	im->members = (const void *)(block + at[MEMBERS]);
	im->meetings = (const void *)(block + at[MEETINGS]);
	im->n_meetings = s->n[MEETINGS] / units[MEETINGS];
	im->shardings = (const void *)(block + at[SHARDINGS]);
	im->shardings_bytes = s->n[SHARDINGS];
	im->strings = block + at[STRINGS];
	im->strings_bytes = s->n[STRINGS];
	im->note = s->n[NOTE] ? block + at[NOTE] : "";
	if (s->n[SHAPES] / units[SHAPES] !=
	    (size_t)im->info.n_args + im->info.n_results)
		return bad(err, "there are not as many shapes as arguments and results");
	return count_members(s, im, err);
}

static int open_elf(const void *bytes, size_t n, Elf **elf, struct parts *s,
		    struct err *err)
{
	GElf_Ehdr eh;
	size_t names_index;

	*elf = elf_memory((char *)(uintptr_t)bytes, n);
	if (!*elf || elf_kind(*elf) != ELF_K_ELF || gelf_getclass(*elf) != ELFCLASS64 ||
	    !gelf_getehdr(*elf, &eh) || eh.e_machine != IMAGE_MACHINE ||
	    eh.e_ident[EI_DATA] != ELFDATA2LSB || eh.e_type != ET_EXEC)
		return bad(err, "no ELF header of this machine");
	if (elf_getshdrstrndx(*elf, &names_index))
		return bad(err, "no section names");
	return find_sections(*elf, names_index, n, bytes, s, err);
}

static int parse(const void *bytes, size_t n, bool is_whole, struct image **out,
		 struct err *err)
{
	struct parts s = { 0 };
	struct image *im;
	Elf *elf = NULL;
	int code;

	pthread_once(&once, start_libelf);
	if (n < sizeof(Elf64_Ehdr) || memcmp(bytes, ELFMAG, SELFMAG))
		return bad(err, "no ELF header");
	im = calloc(1, sizeof(*im));
	if (!im)
		return err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory");
	code = open_elf(bytes, n, &elf, &s, err);
	if (!code)
		code = check_version(&s, err);
	if (!code)
		code = check_units(&s, err);
	if (!code)
		code = copy_parts(&s, is_whole, im, err);
	if (!code)
		code = check(im, err);
	elf_end(elf);
	if (code) {
		image_free(im);
		return code;
	}
	*out = im;
	return 0;
}

int image_parse(const void *bytes, size_t n, struct image **out, struct err *err)
{
	return parse(bytes, n, true, out, err);
}

int image_view(const void *bytes, size_t n, struct image **out, struct err *err)
{
	return parse(bytes, n, false, out, err);
}

void image_free(struct image *im)
{
	if (!im)
		return;
	free(im->owned);
	free(im);
}

uint32_t image_n_members(const struct image *im)
{
	return im->info.n_replicas * im->info.n_partitions;
}

const void *image_next_sharding(const struct image *im, size_t *at, uint32_t *bytes)
{
	size_t left = im->shardings_bytes - *at;
	const uint8_t *p;

	if (left < sizeof(*bytes))
		return NULL;
	p = im->shardings + *at;
	memcpy(bytes, p, sizeof(*bytes));
	if (*bytes > left - sizeof(*bytes))
		return NULL;
	*at += sizeof(*bytes) + *bytes;
	return p + sizeof(*bytes);
}

const void *image_next_function(const struct image *im, size_t *at, uint32_t *call,
				uint32_t *bytes)
{
	size_t left = im->functions_bytes - *at, head = sizeof(*call) + sizeof(*bytes);
	const uint8_t *p;

	if (left < head)
		return NULL;
	p = im->functions + *at;
	memcpy(call, p, sizeof(*call));
	memcpy(bytes, p + sizeof(*call), sizeof(*bytes));
	if (*bytes > left - head)
		return NULL;
	*at += head + *bytes;
	return p + head;
}

bool image_draws(const struct image *im)
{
	size_t n = count_own(im);

	return n && im->bindings[n - 1].kind == IMAGE_RANDOM;
}

bool image_is_for_one_process(const struct image *im)
{
	return count_own(im) < im->n_bindings;
}

const char *image_string(const struct image *im, uint32_t offset)
{
	return offset < im->strings_bytes ? im->strings + offset : "";
}

const char *image_meeting_kind_text(const struct image_meeting *m)
{
	static const char *const texts[IMAGE_MEETING_KINDS] = {
		[IMAGE_WHOLE] = "all to each", [IMAGE_PARTS] = "parts to each",
		[IMAGE_PAIRS] = "pairs",
	};

	return texts[m->kind];
}

static bool is_same_meeting(const struct image *a, const struct image *b, size_t i)
{
	const struct image_meeting *x = &a->meetings[i], *y = &b->meetings[i];

	return x->kind == y->kind && x->elem == y->elem && x->depth == y->depth &&
	       x->bytes == y->bytes &&
	       !strcmp(image_string(a, x->groups), image_string(b, y->groups));
}

static uint64_t mailbox_bytes(const struct image *im)
{
	for (size_t i = 0; i < im->n_bindings; i++)
		if (im->bindings[i].kind == IMAGE_MAILBOX)
			return im->bindings[i].bytes;
	return 0;
}

static bool is_same_code(const struct image *a, const struct image *b)
{
	return a->text_bytes == b->text_bytes && a->n_bindings == b->n_bindings &&
	       (!a->text_bytes || !memcmp(a->text, b->text, a->text_bytes)) &&
	       !memcmp(a->bindings, b->bindings, a->n_bindings * sizeof(*a->bindings));
}

int64_t image_meets_otherwise(const struct image *a, const struct image *b)
{
	size_t n = a->n_meetings < b->n_meetings ? a->n_meetings : b->n_meetings;
	size_t peers = image_n_members(a) * a->n_slots * sizeof(*a->peers);

	for (size_t i = 0; i < n; i++)
		if (!is_same_meeting(a, b, i))
			return (int64_t)i;
	if ((image_is_for_one_process(a) || image_is_for_one_process(b)) && !is_same_code(a, b))
		return (int64_t)n;
	if (a->n_meetings != b->n_meetings || (a->n_slots && !n) ||
	    a->info.n_replicas != b->info.n_replicas ||
	    a->info.n_partitions != b->info.n_partitions || a->n_slots != b->n_slots ||
	    (peers && memcmp(a->peers, b->peers, peers)) || mailbox_bytes(a) != mailbox_bytes(b))
		return (int64_t)n;
	return -1;
}

static uint64_t mix(uint64_t h, const void *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		h = (h ^ ((const uint8_t *)p)[i]) * 1099511628211u;
	return h;
}

uint64_t image_meeting_number(const struct image *im)
{
	const uint64_t head[] = { im->info.n_replicas, im->info.n_partitions, im->n_slots,
				  im->n_meetings, mailbox_bytes(im) };
	uint64_t h = mix(14695981039346656037u, head, sizeof(head));

	if (im->n_slots && !im->n_meetings)
		return 0;
	h = mix(h, im->peers, image_n_members(im) * im->n_slots * sizeof(*im->peers));
	if (image_is_for_one_process(im))
		h = mix(mix(h, im->text, im->text_bytes), im->bindings,
			im->n_bindings * sizeof(*im->bindings));
	for (size_t i = 0; i < im->n_meetings; i++) {
		const struct image_meeting *m = &im->meetings[i];
		const uint64_t words[] = { m->kind, m->elem, m->depth, m->bytes };
		const char *groups = image_string(im, m->groups);

		h = mix(mix(h, words, sizeof(words)), groups, strlen(groups) + 1);
	}
	return h ? h : 1;
}

const struct image_debug *image_where(const struct image *im, uint64_t offset)
{
	size_t lo = 0, hi = im->n_debug;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (im->debug[mid].offset <= offset)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo ? &im->debug[lo - 1] : NULL;
}

void image_split(const char *where, size_t *name_bytes, const char **source, size_t *source_bytes)
{
	const char *at = NULL, *end;

	for (const char *p = where; (p = strstr(p, " at ")); p++)
		at = p;
	*name_bytes = at ? (size_t)(at - where) : strlen(where);
	*source = at ? at + 4 : where + *name_bytes;
	end = strstr(*source, " (");
	*source_bytes = end ? (size_t)(end - *source) : strlen(*source);
}

/* ---- writing ---- */

/* What is written is right, and goes to memory: libelf fails where there is none left, and
 * does not always say so. */
static int fail(struct err *err)
{
	return err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory for the image (libelf: %s)",
		       elf_errmsg(-1));
}

static int add_section(Elf *elf, const void *p, size_t n, uint32_t name, bool is_code,
		       bool is_loaded, struct err *err)
{
	Elf_Scn *scn = elf_newscn(elf);
	Elf_Data *d = scn ? elf_newdata(scn) : NULL;
	Elf64_Shdr *sh = d ? elf64_getshdr(scn) : NULL;

	if (!sh)
		return fail(err);
	d->d_buf = (void *)(uintptr_t)p;
	d->d_size = n;
	d->d_align = 64;
	d->d_type = ELF_T_BYTE;
	sh->sh_name = name;
	sh->sh_type = SHT_PROGBITS;
	sh->sh_flags = is_code ? SHF_ALLOC | SHF_EXECINSTR : is_loaded ? SHF_ALLOC : 0;
	return 0;
}

/* The section names, NUL-separated; offsets[i] is where name i starts. */
static size_t section_names(char *text, uint32_t *offsets)
{
	size_t at = 1;

	text[0] = 0;
	for (unsigned i = 0; i < N_SECTIONS; i++) {
		offsets[i] = (uint32_t)at;
		strcpy(text + at, names[i]);
		at += strlen(names[i]) + 1;
	}
	strcpy(text + at, ".shstrtab");
	offsets[N_SECTIONS] = (uint32_t)at;
	return at + sizeof(".shstrtab");
}

static int build(Elf *elf, const struct image *im, char *text, struct err *err)
{
	const void *p[N_SECTIONS] = {
		im->text, im->rodata, &im->info, im->bindings, im->shapes, im->debug,
		im->transfers, im->functions, im->peers, im->members, im->meetings, im->shardings,
		im->strings, im->note,
	};
	size_t n_members = image_n_members(im);
	size_t n[N_SECTIONS] = {
		im->text_bytes, im->rodata_bytes, sizeof(im->info),
		im->n_bindings * sizeof(*im->bindings),
		((size_t)im->info.n_args + im->info.n_results) * sizeof(*im->shapes),
		im->n_debug * sizeof(*im->debug), im->n_transfers * sizeof(*im->transfers),
		im->functions_bytes,
		n_members * im->n_slots * sizeof(*im->peers),
		n_members * im->n_words * sizeof(*im->members),
		im->n_meetings * sizeof(*im->meetings), im->shardings_bytes, im->strings_bytes,
		im->note ? strlen(im->note) + 1 : 0,
	};
	uint32_t at[N_SECTIONS + 1];
	size_t names_bytes = section_names(text, at);
	Elf64_Ehdr *eh = elf64_newehdr(elf);
	Elf_Scn *scn;
	Elf64_Shdr *sh;

	if (!eh)
		return fail(err);
	eh->e_ident[EI_DATA] = ELFDATA2LSB;
	eh->e_machine = IMAGE_MACHINE;
	eh->e_type = ET_EXEC;
	eh->e_version = EV_CURRENT;
	for (unsigned i = 0; i < N_SECTIONS; i++)
		if (n[i] && add_section(elf, p[i], n[i], at[i], i == TEXT, i == RODATA, err))
			return ERR_RESOURCE_EXHAUSTED;
	if (add_section(elf, text, names_bytes, at[N_SECTIONS], false, false, err))
		return ERR_RESOURCE_EXHAUSTED;
	scn = NULL;
	for (Elf_Scn *s = NULL; (s = elf_nextscn(elf, s));)
		scn = s;
	sh = elf64_getshdr(scn);
	sh->sh_type = SHT_STRTAB;
	eh->e_shstrndx = (Elf64_Half)elf_ndxscn(scn);
	return elf_update(elf, ELF_C_WRITE) < 0 ? fail(err) : 0;
}

/* libelf writes to a descriptor: a memfd, read back whole. */
static int read_back(int fd, void **out, size_t *out_bytes, struct err *err)
{
	off_t n = lseek(fd, 0, SEEK_END);
	char *p = n > 0 ? malloc((size_t)n) : NULL;

	if (!p)
		return err_set(err, ERR_RESOURCE_EXHAUSTED, "out of memory for the image");
	for (off_t at = 0; at < n;) {
		ssize_t got = pread(fd, p + at, (size_t)(n - at), at);

		if (got <= 0) {
			free(p);
			return err_sys(err, errno, "reading the image back");
		}
		at += got;
	}
	*out = p;
	*out_bytes = (size_t)n;
	return 0;
}

int image_write(const struct image *im, void **out, size_t *out_bytes, struct err *err)
{
	char text[320];
	Elf *elf;
	int fd, code;

	pthread_once(&once, start_libelf);
	fd = memfd_create("tessera-image", MFD_CLOEXEC);
	if (fd < 0)
		return err_sys(err, errno, "memfd for an image");
	elf = elf_begin(fd, ELF_C_WRITE, NULL);
	code = elf ? build(elf, im, text, err) : fail(err);
	elf_end(elf);
	if (!code)
		code = read_back(fd, out, out_bytes, err);
	close(fd);
	return code;
}
