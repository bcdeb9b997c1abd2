/** Files of lines, read one by one. */
#ifndef EXPLORER_LINES_H
#define EXPLORER_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/** What becomes of a line, whose end is in it; it is gone with the next one. False: no more. */
typedef bool line_fn(void *of, char *line, size_t length);

/** Every line in turn, from where the file stands to its end. False: `each` wanted no more, or the
file cannot be read. */
bool lines_each(FILE *file, line_fn *each, void *of);

#endif
