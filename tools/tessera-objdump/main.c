/* SPDX-License-Identifier: Apache-2.0 */
/* tessera-objdump: what is in an executable for the T1, or in a crash dump. Exit: 0, 1 failure,
 * 2 usage. */
#include <elf.h>
#include <errno.h>
#include <getopt.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hal/base/files.h"
#include "runtime/compiler/tc.h"
#include "tools/tessera-objdump/objdump.h"

#define MAX_FILE ((size_t)2 << 30)

static const char usage[] =
	"usage: tessera-objdump [-h] [-s] [-d] [--verify] [--json] FILE...\n"
	"       tessera-objdump --dump [--json] FILE...\n"
	"Shows executables of the Tessera T1: images that the compiler wrote (TESSERA_DUMP)\n"
	"and entries of the cache of compiled programs. Needs no device.\n"
	"  -h, --headers      name, sizes, memory plan (what is shown if nothing is asked for)\n"
	"  -s, --signature    arguments and results, and which of them share memory\n"
	"  -d, --disassemble  the code, with the operation that each instruction is of\n"
	"  --verify           check the code as the compiler does: what it writes and reads\n"
	"  --dump             files are crash dumps, which errors name: all that they tell\n"
	"  --json             the same as JSON, schema tessera-objdump/1; of dumps tessera-dump/1\n"
	"  --version          the version\n"
	"  --help             this text\n";

static int complain(const char *path, const char *what)
{
	struct str name = { 0 };

	objdump_clean(path, &name);
	fprintf(stderr, "tessera-objdump: %s: %s\n", name.text ? name.text : "", what);
	str_free(&name);
	return 1;
}

static int read_file(const char *path, struct str *out)
{
	FILE *f = fopen(path, "rb");
	char part[65536];
	size_t n;

	if (!f)
		return complain(path, strerror(errno));
	errno = 0;
	while (!out->failed && out->len <= MAX_FILE && (n = fread(part, 1, sizeof(part), f)))
		str_add(out, part, n);
	if (ferror(f)) {
		complain(path, strerror(errno));
		fclose(f);
		return 1;
	}
	fclose(f);
	if (out->failed)
		return complain(path, "out of memory");
	if (out->len > MAX_FILE)
		return complain(path, "larger than 2 GiB, which no executable is");
	return 0;
}

/* What a file is that is no executable of ours, where that can be told. */
static int explain(const char *path, const struct str *file, const struct err *err)
{
	const unsigned char *p = (const unsigned char *)file->text;
	char text[160];
	Elf64_Ehdr eh;

	if (!file->len)
		return complain(path, "an empty file, not an executable");
	if (file->len >= 8 && !memcmp(p, &(uint64_t){ HAL_DUMP_MAGIC }, 8))
		return complain(path, "a crash dump: tessera-objdump --dump shows it");
	if (file->len >= 4 && !memcmp(p, "ML\xefR", 4))
		return complain(path, "a program in MLIR bytecode, not compiled yet: compile it "
				"with TESSERA_DUMP=DIR and look at DIR/*/image.elf");
	if (file->len >= sizeof(eh) && !memcmp(p, ELFMAG, SELFMAG)) {
		memcpy(&eh, p, sizeof(eh));
		if (eh.e_machine != IMAGE_MACHINE) {
			snprintf(text, sizeof(text), "an ELF file for machine 0x%x, not for the "
				 "T1 (0x%x)", eh.e_machine, IMAGE_MACHINE);
			return complain(path, text);
		}
	}
	return complain(path, err->msg);
}

/* Runs the check; 1 if it refuses the code or can't be done. */
static int verify(struct objdump_file *f)
{
	int code = tc_verify(f->image, NULL, &f->verdict);

	f->is_refused = code == ERR_INTERNAL;
	if (code && !f->is_refused)
		complain(f->path, "out of memory");
	return code != 0;
}

static int show(const char *path, unsigned parts, struct json_object *list)
{
	struct objdump_file f = { .path = path };
	struct str file = { 0 }, out = { 0 };
	struct image *im = NULL;
	struct err err = { 0 };
	int code = read_file(path, &file), verdict = 0;

	if (!code && image_parse(file.text ? file.text : "", file.len, &im, &err))
		code = explain(path, &file, &err);
	f.bytes = file.len;
	f.image = im;
	str_free(&file);
	if (!code && parts & OBJDUMP_VERIFY) {
		verdict = verify(&f);
		code = verdict && !f.is_refused;
	}
	if (!code && list) {
		struct json_object *o = objdump_json(&f, parts);

		if (!o || json_object_array_add(list, o))
			code = complain(path, "out of memory");
	} else if (!code) {
		objdump_text(&f, parts, &out);
		if (out.failed)
			code = complain(path, "out of memory");
		else
			fwrite(out.text, 1, out.len, stdout);
	}
	str_free(&out);
	image_free(im);
	return code || verdict;
}

/* A crash dump, as show does an executable. */
static int show_dump(const char *path, struct json_object *list)
{
	struct str file = { 0 }, out = { 0 };
	struct hal_dump *dump = NULL;
	struct err err = { 0 };
	int code = read_file(path, &file);

	if (!code && hal_dump_parse(file.text ? file.text : "", file.len, &dump, &err))
		code = complain(path, err.msg);
	if (!code && list) {
		if (json_object_array_add(list, objdump_dump_json(path, dump)))
			code = complain(path, "out of memory");
	} else if (!code) {
		objdump_dump_text(path, dump, &out);
		if (out.failed)
			code = complain(path, "out of memory");
		else
			fwrite(out.text, 1, out.len, stdout);
	}
	str_free(&file);
	str_free(&out);
	hal_dump_free(dump);
	return code;
}

static const struct option options[] = {
	{ "headers", no_argument, NULL, 'h' }, { "signature", no_argument, NULL, 's' },
	{ "disassemble", no_argument, NULL, 'd' }, { "json", no_argument, NULL, 'j' },
	{ "verify", no_argument, NULL, 'c' }, { "dump", no_argument, NULL, 'D' },
	{ "version", no_argument, NULL, 'v' }, { "help", no_argument, NULL, '?' + 256 },
	{ 0 },
};

/* The exit status: what was printed must have arrived. */
static int end(int status)
{
	return fflush(stdout) || ferror(stdout) ? complain("standard output", strerror(errno)) :
						  status;
}

static int print_json(struct json_object *list, const char *schema)
{
	struct json_object *o = json_object_new_object();

	json_object_object_add(o, "schema", json_object_new_string(schema));
	json_object_object_add(o, "files", list);
	printf("%s\n", json_object_to_json_string_ext(o, JSON_C_TO_STRING_PRETTY |
						      JSON_C_TO_STRING_NOSLASHESCAPE));
	json_object_put(o);
	return 0;
}

int main(int argc, char **argv)
{
	struct json_object *list = NULL;
	unsigned parts = 0;
	bool as_json = false, are_dumps = false;
	int code = 0, ch;

	files_open_standard();
	while ((ch = getopt_long(argc, argv, "hsd", options, NULL)) >= 0) {
		switch (ch) {
		case 'h': parts |= OBJDUMP_HEADERS; break;
		case 's': parts |= OBJDUMP_SIGNATURE; break;
		case 'd': parts |= OBJDUMP_CODE; break;
		case 'j': as_json = true; break;
		case 'c': parts |= OBJDUMP_VERIFY; break;
		case 'D': are_dumps = true; break;
		case 'v': puts("tessera-objdump " TC_VERSION); return end(0);
		case '?' + 256: fputs(usage, stdout); return end(0);
		default: fputs(usage, stderr); return 2;
		}
	}
	if (are_dumps && parts) {
		fprintf(stderr, "tessera-objdump: --dump shows all of a crash dump, and takes "
			"--json alone\n%s", usage);
		return 2;
	}
	if (optind == argc) {
		fprintf(stderr, "tessera-objdump: which file?\n%s", usage);
		return 2;
	}
	if (as_json)
		list = json_object_new_array();
	for (int i = optind; i < argc; i++)
		code |= are_dumps ? show_dump(argv[i], list) :
			show(argv[i], parts ? parts : OBJDUMP_HEADERS, list);
	if (as_json)
		code |= print_json(list, are_dumps ? "tessera-dump/1" : "tessera-objdump/1");
	return end(code);
}
