/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_FILES_H
#define BASE_FILES_H

/* Standard input, output and error become /dev/null where the program was started without them, so
 * that no file which it opens later takes their place. It is open for reading only: writing fails,
 * and whoever writes knows. A program calls it first in main(). */
void files_open_standard(void);

#endif
