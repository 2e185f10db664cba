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

/* Whether the program may speak of several devices: those it is to be compiled for, too. */
static inline bool is_for_several(const struct tc_source *source)
{
	static const char *const words[] = {
		"sdy", "replica_groups", "source_target_pairs", "mhlo.sharding", "Sharding",
		"all-", "reduce-scatter", "collective-", "sharding = ", "manual_axes",
	};

	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
		if (memmem(source->code, source->bytes, words[i], strlen(words[i])))
			return true;
	return false;
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

/* What compiles is shown, or an op of it is refused by name. */
static inline void can_be_shown(const struct tc_source *source, struct tc_options options)
{
	struct err err;
	size_t bytes;
	char *text;

	if (!tc_member_program(source, &options, &text, &bytes, &err)) {
		if (strlen(text) != bytes)
			found("a text that ends early", &(struct err){ .code = ERR_INTERNAL });
		free(text);
	} else if (err.code != ERR_UNIMPLEMENTED || !strstr(err.msg, "can't be shown")) {
		found("a program that is not shown", &err);
	}
}

/* The same for 8 members, as partitions, replicas or both. */
static inline void compiles_for_several(const struct tc_source *source, struct tc_options options)
{
	static const unsigned replicas[] = { 1, 1, 2, 8 };

	if (!is_for_several(source))
		return;
	options.replicas = replicas[source->bytes / 4 % 4];
	options.partitions = 8 / options.replicas;
	if (compiles(source, options))
		can_be_shown(source, options);
}

#endif
