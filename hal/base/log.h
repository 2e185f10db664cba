/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_LOG_H
#define BASE_LOG_H
/*
 * Logging to standard error, silent unless asked.
 *
 * TESSERA_LOG=warn, or TESSERA_LOG=hal:debug,sim:trace by tag prefix. Each .c
 * file that logs defines LOG_TAG ("hal/vfio") before its includes. Library code
 * never logs an error that it returns.
 */
enum log_level { LOG_NONE, LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG, LOG_TRACE };

#define log_at(level, ...) do { \
	if (log_on(LOG_TAG, (level))) \
		log_write(LOG_TAG, (level), __VA_ARGS__); \
} while (0)
#define log_error(...) log_at(LOG_ERROR, __VA_ARGS__)
#define log_warn(...)  log_at(LOG_WARN, __VA_ARGS__)
#define log_info(...)  log_at(LOG_INFO, __VA_ARGS__)
#define log_debug(...) log_at(LOG_DEBUG, __VA_ARGS__)

/* Whether `level` of `tag` is wanted. Reads TESSERA_LOG once; any thread. */
int log_on(const char *tag, enum log_level level);
/* One line: seconds, level, tag, text. */
void log_write(const char *tag, enum log_level level, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

#endif
