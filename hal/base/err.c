/* SPDX-License-Identifier: Apache-2.0 */
/* The error value: formatting, errno mapping, names. Allocates nothing. */
#include "hal/base/err.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static void fill(struct err *err, int code, int sysno, const char *file,
		 int line, const char *fmt, va_list ap)
{
	if (!err)
		return;
	err->code = code;
	err->sys = sysno;
	err->file = file;
	err->line = line;
	vsnprintf(err->msg, sizeof(err->msg), fmt, ap);
}

int err_set_at(struct err *err, int code, const char *file, int line,
	       const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	fill(err, code, 0, file, line, fmt, ap);
	va_end(ap);
	return code;
}

/* The one mapping of errno values to codes. */
static int code_of_errno(int sysno)
{
	switch (sysno) {
	case 0:
		return ERR_OK;
	case EINVAL: case E2BIG: case EDOM: case EFAULT: case ENOTSOCK:
	case ENAMETOOLONG: case EBADF:
		return ERR_INVALID_ARGUMENT;
	case ETIMEDOUT: case ETIME:
		return ERR_DEADLINE_EXCEEDED;
	case ENOENT: case ENODEV: case ENXIO: case ESRCH:
		return ERR_NOT_FOUND;
	case EEXIST: case EADDRINUSE:
		return ERR_ALREADY_EXISTS;
	case EPERM: case EACCES: case EROFS:
		return ERR_PERMISSION_DENIED;
	case ENOMEM: case ENOSPC: case EMFILE: case ENFILE: case EDQUOT:
		return ERR_RESOURCE_EXHAUSTED;
	case EBUSY: case ENOTEMPTY: case EISDIR: case ENOTDIR: case ENOTCONN:
		return ERR_FAILED_PRECONDITION;
	case ECANCELED:
		return ERR_CANCELLED;
	case ERANGE: case EOVERFLOW:
		return ERR_OUT_OF_RANGE;
	case ENOSYS: case EOPNOTSUPP: case ENOTTY:
		return ERR_UNIMPLEMENTED;
	case EAGAIN: case EINTR: case EPIPE: case ECONNREFUSED:
	case ECONNRESET: case EIO:
		return ERR_UNAVAILABLE;
	default:
		return ERR_UNKNOWN;
	}
}

int err_sys_at(struct err *err, int sysno, const char *file, int line,
	       const char *fmt, ...)
{
	int code = code_of_errno(sysno);
	char text[64];
	size_t used;
	va_list ap;

	va_start(ap, fmt);
	fill(err, code, sysno, file, line, fmt, ap);
	va_end(ap);
	if (err) {
		const char *why = strerror_r(sysno, text, sizeof(text));

		used = strlen(err->msg);
		snprintf(err->msg + used, sizeof(err->msg) - used, ": %s%s", why,
			 sysno == EMFILE ? " in this process: ulimit -n says how many may be, "
			 "and raises it" : "");
	}
	return code;
}

int err_add(struct err *err, const char *fmt, ...)
{
	char old[ERR_MSG_BYTES];
	size_t used;
	va_list ap;

	if (!err)
		return ERR_UNKNOWN;
	memcpy(old, err->msg, sizeof(old));
	va_start(ap, fmt);
	vsnprintf(err->msg, sizeof(err->msg), fmt, ap);
	va_end(ap);
	used = strlen(err->msg);
	snprintf(err->msg + used, sizeof(err->msg) - used, ": %s", old);
	return err->code;
}

const char *err_name(int code)
{
	switch (code) {
#define ERR(name, number, severity, meaning, next) case number: return #name;
#include "hal/base/err.def"
#undef ERR
	default:
		return "UNKNOWN";
	}
}

/* Severities by their names in err.def. */
#define NONE "none"
#define NOTE "note"
#define ERROR "error"
#define CRITICAL "critical"

const char *err_severity(int code)
{
	switch (code) {
#define ERR(name, number, severity, meaning, next) case number: return severity;
#include "hal/base/err.def"
#undef ERR
	default:
		return ERROR;
	}
}

const char *err_next(int code)
{
	switch (code) {
#define ERR(name, number, severity, meaning, next) case number: return next;
#include "hal/base/err.def"
#undef ERR
	default:
		return "";
	}
}
