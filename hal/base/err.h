/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_ERR_H
#define BASE_ERR_H
/*
 * The error idiom of the tree.
 *
 * A fallible function returns int: 0, or one of the codes of err.def, and takes
 * a `struct err *err` last. The function that knows what went wrong fills it:
 *
 *	return err_set(err, ERR_NOT_FOUND, "no device at %s", bdf);
 *
 * and its callers test and unwind:
 *
 *	if (map_bar(dev, err))
 *		goto undo_open;
 *
 * Callers may put context in front with err_add(). `err` may be NULL wherever
 * the caller wants the code alone. Outputs are written on success only.
 */
#include <stdarg.h>

enum err_code {
#define ERR(name, number, severity, meaning, next) ERR_##name = number,
#include "hal/base/err.def"
#undef ERR
};

#define ERR_MSG_BYTES 480

/* A value: copy it freely. code == 0 means no error. */
struct err {
	int code;			/* enum err_code */
	int sys;			/* errno behind it, or 0 */
	const char *file;		/* where it was set: a string constant */
	int line;
	char msg[ERR_MSG_BYTES];	/* one sentence or more, no newline */
};

/* Fills *err (NULL allowed) and returns `code`. Longer texts are cut. */
#define err_set(err, code, ...) \
	err_set_at((err), (code), __FILE__, __LINE__, __VA_ARGS__)
/* As err_set with the code for `sysno`, whose text is appended. */
#define err_sys(err, sysno, ...) \
	err_sys_at((err), (sysno), __FILE__, __LINE__, __VA_ARGS__)

int err_set_at(struct err *err, int code, const char *file, int line,
	       const char *fmt, ...) __attribute__((format(printf, 5, 6)));
int err_sys_at(struct err *err, int sysno, const char *file, int line,
	       const char *fmt, ...) __attribute__((format(printf, 5, 6)));

/* Puts "text: " in front of the message. Returns err->code (UNKNOWN if NULL). */
int err_add(struct err *err, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* "RESOURCE_EXHAUSTED"; "UNKNOWN" for numbers outside err.def. */
const char *err_name(int code);
/* "critical", as err.def has it; "error" for numbers outside it. */
const char *err_severity(int code);
/* What to do about any error of this code; "" for numbers outside err.def. */
const char *err_next(int code);

#endif
