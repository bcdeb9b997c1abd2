/* Rows of new work.

Place: below work.c. The digest is computed by its definition in check/check.h, from values
alone. */
#include "explorer/targets/engine/work_row.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <stdlib.h>
#include <string.h>

#include "base/mach.h"

#define NULL_IN 8U /**< one of so many values of a column that may be NULL is */

void work_draw_value(stream_t *stream, const dict_col_t *col, byte *row)
{
    uint32_t len = col->len;
    if (col->nullable && stream_below(stream, NULL_IN) == 0) {
        dict_col_set(col, row, NULL);
        return;
    }
    if (col->type == DICT_VARCHAR) {
        len = (uint32_t)stream_below(stream, (uint64_t)col->len + 1);
    }
    byte value[VARCHAR_LEN_MAX];
    for (uint32_t i = 0; i < len; i++) {
        uint64_t drawn = stream_next(stream);
        value[i] = col->type == DICT_BIGINT ? (byte)drawn : (byte)('a' + drawn % 26);
    }
    dict_col_put(col, row, value, len);
}

/** The bytes of a column that the digest is over; @return their end */
static byte *put_value(const dict_col_t *col, const byte *row, byte *to)
{
    bool null = dict_col_is_null(col, row);
    if (col->nullable) {
        *to++ = null ? 0 : 1;
    }
    if (null) {
        return to;
    }
    uint32_t len = 0;
    const byte *value = dict_col_value(col, row, &len);
    if (col->type == DICT_VARCHAR) {
        mach_write_2(to, len);
        to += 2;
    }
    memcpy(to, value, len);
    return to + len;
}

uint64_t work_row_hash(const dict_table_t *table, const byte *row)
{
    byte *bytes = mem_alloc((size_t)table->row_size + table->n_cols);
    byte *to = bytes;
    for (uint32_t i = 0; i < table->n_cols; i++) {
        to = put_value(&table->cols[i], row, to);
    }
    uint64_t hash = XXH64(bytes, (size_t)(to - bytes), 0);
    free(bytes);
    return hash;
}

uint64_t work_entry_hash(const dict_index_t *index, const byte *row)
{
    byte *rec = mem_alloc(index->tree.leaf_rec_size);
    dict_row_to_sec(index, row, rec);
    uint64_t hash = XXH64(rec + 1, index->tree.leaf_rec_size - 1, 0);
    free(rec);
    return hash;
}
