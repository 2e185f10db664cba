/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_FILES_H
#define BASE_FILES_H

#include <stdbool.h>
#include <stddef.h>

/* Standard input, output and error become /dev/null where the program was started without them, so
 * that no file which it opens later takes their place. It is open for reading only: writing fails,
 * and whoever writes knows. A program calls it first in main(). */
void files_open_standard(void);

/* The first line of a file of text, as of sysfs, without its end and cut to `bytes`; "" and false
 * if there is none. */
bool files_read_line(const char *path, char *out, size_t bytes);

/* Descriptors that no child of fork keeps: by each that is open whoever is at the other end, a
 * server, the kernel, who asks for a lock, takes this process for alive. In a child they are
 * closed, and *fd is -1. */
struct files_own { struct files_own *next; int *fd; };

/* What is opened in between is in the list before a child can have it: no fork begins meanwhile,
 * so nothing in between waits for another thread. *fd < 0: it was not opened. */
void files_own_begin(void);
void files_own_end(struct files_own *f, int *fd);
/* Ends one by `close`, before a fork can begin whose child would keep it; *fd is -1 then. One that
 * is not open, as in a child, is fine. */
void files_close(struct files_own *f, int *fd, int (*close)(int fd));
/* Children of fork keep it from here on. One that is in no list is fine. */
void files_disown(struct files_own *f);

/* No fork begins in between, for memory that a file is mapped into and that no child is to have:
 * it is mapped and kept from them at once. */
void files_hold_forks(void);
void files_let_forks(void);

#endif
