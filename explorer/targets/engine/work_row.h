/** Rows of new work: values that are drawn, and what they add to a digest (check/check.h). */
#ifndef EXPLORER_WORK_ROW_H
#define EXPLORER_WORK_ROW_H

#include "dict/dict.h"
#include "disk/models.h"

/** A value for a column of the row: NULL now and then where it may be, texts of any length. */
void work_draw_value(stream_t *stream, const dict_col_t *col, byte *row);

/** What the row adds to the digest of its table. */
uint64_t work_row_hash(const dict_table_t *table, const byte *row);
/** What it adds to that of a secondary index. */
uint64_t work_entry_hash(const dict_index_t *index, const byte *row);

#endif
