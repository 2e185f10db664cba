/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OBJDUMP_OBJDUMP_H
#define OBJDUMP_OBJDUMP_H
/* tessera-objdump: an executable is read and checked once (main.c, hal/hw/image.h) and
 * shown as text (text.c) or JSON (json.c); a crash dump (hal/dump.h) as either by dump.c. Texts
 * of the file are shown cleaned. */
#include <stdbool.h>
#include <stddef.h>

#include "hal/base/str.h"
#include "hal/dump.h"
#include "hal/hw/image.h"
#include "runtime/compiler/back/verify.h"

struct json_object;

struct objdump_file {
	const char *path;
	size_t bytes;
	const struct image *image;
	bool is_refused;		/* OBJDUMP_VERIFY: the check found this */
	struct tc_verdict verdict;
};

enum { OBJDUMP_HEADERS = 1u << 0, OBJDUMP_SIGNATURE = 1u << 1, OBJDUMP_CODE = 1u << 2,
       OBJDUMP_VERIFY = 1u << 3 };

/* Appends what `parts` (OBJDUMP_*) asks for. */
void objdump_text(const struct objdump_file *f, unsigned parts, struct str *out);
/* The same as an object, the caller's; NULL: out of memory. */
struct json_object *objdump_json(const struct objdump_file *f, unsigned parts);

/* ---- crash dumps (dump.c) ---- */

/* Appends all that a crash dump tells. */
void objdump_dump_text(const char *path, const struct hal_dump *dump, struct str *out);
/* The same as an object, the caller's. */
struct json_object *objdump_dump_json(const char *path, const struct hal_dump *dump);

/* ---- pieces that both forms share (text.c) ---- */

/* Appends text whose bytes are no control characters and form UTF-8; others are "?". */
void objdump_clean(const char *text, struct str *out);
/* "tensor<8x4xf32>" */
void objdump_type(const struct image_shape *s, struct str *out);
/* "(tensor<8x4xf32>, tensor<i32>) -> (tensor<8xf32>)" */
void objdump_signature(const struct image *im, struct str *out);
const char *objdump_memory_kind(const struct image_shape *s);
const char *objdump_binding_kind(const struct image_binding *b);
const char *objdump_access(const struct image_binding *b);
/* The shape of an argument's or result's binding, or NULL. */
const struct image_shape *objdump_shape_of(const struct image *im,
					   const struct image_binding *b);
size_t objdump_count(const struct image *im);	/* instructions */

#endif
