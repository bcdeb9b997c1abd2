/** The kinds of statements of a script, by line. Crash points in statements of a rare kind, as a
defragmentation among thousands of inserts, get their share of the states (order.h). */
#ifndef EXPLORER_KINDS_H
#define EXPLORER_KINDS_H

#include "base/err.h"

#define KINDS_MAX 64U /**< kinds beyond that count as the last one */

typedef struct kinds {
    uint8_t *of_line; /**< kind of lines 0 (before the first) ... n_lines - 1 */
    uint32_t n_lines;
    uint32_t n; /**< kinds, at least 1 */
} kinds_t;

/** Reads one line of text per line of the script: any word for its kind. NULL: all are of one kind.
DB_ERROR and a message. Caller: kinds_free(). */
WARN_UNUSED dberr_t kinds_load(const char *path, kinds_t *kinds, err_sink_t *err);
void kinds_free(kinds_t *kinds);

/** The kind of a line; 0 for lines that there are not. */
uint32_t kinds_of(const kinds_t *kinds, uint32_t line);

#endif
