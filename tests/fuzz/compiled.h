/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FUZZ_COMPILED_H
#define FUZZ_COMPILED_H
/* What holds for every program that compiles, whatever its format. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hal/hw/image.h"
#include "runtime/compiler/tc.h"

/* Ends the process: the fuzzer keeps the input. */
static inline _Noreturn void found(const char *what, const struct err *err)
{
	fprintf(stderr, "%s: %s: %s\n", what, err_name(err->code), err->msg);
	abort();
}

/* Compiles as users do, without the verifier between passes, and again with it: what passes
 * made must not only happen not to hurt. False: the source is refused, in words. */
static inline bool compiles(const struct tc_source *source, struct tc_options options)
{
	struct tc_result r, again;
	struct image *im;
	struct err err;

	if (tc_compile(source, &options, &r, &err)) {
		if (err.code == ERR_INTERNAL || !*err.msg)
			found("not a program's fault", &err);
		return false;
	}
	if (image_parse(r.image, r.image_bytes, &im, &err))
		found("an image that is not taken", &err);
	image_free(im);
	options.verify = true;
	if (tc_compile(source, &options, &again, &err))
		found("a pass broke the program", &err);
	if (again.image_bytes != r.image_bytes || memcmp(again.image, r.image, r.image_bytes))
		found("two compiles, two images", &err);
	tc_result_free(&again);
	tc_result_free(&r);
	return true;
}

#endif
