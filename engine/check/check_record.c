/** Records: their layout, and the values in them.

Place: check/, below check_rows.c. FORMAT.md, "Rows"; shares nothing with dict/.

Bytes of a row for the digest: the columns in the order of definition, in front of each that may be
NULL a byte, 0 = NULL, which has nothing more, 1 = a value; of VARCHAR its length in 2 bytes; the
value. */
#include <string.h>

#include "base/mach.h"
#include "check/check_table.h"
#include "page/page_index.h"

/* ---- layout ---- */

static bool chk_layout_index(const chk_table_t *table, chk_index_t *index)
{
    uint32_t len = 0;
    for (uint32_t i = 0; i < index->n_fields; i++) {
        if (index->fields[i].col >= table->n_cols) {
            return false;
        }
        const chk_col_t *col = &table->cols[index->fields[i].col];
        uint32_t prefix_len = index->fields[i].prefix_len;
        if (prefix_len == 0 || prefix_len > col->len
            || (prefix_len < col->len && (index->clustered || col->type == CHK_TYPE_BIGINT))
            || (index->clustered && (col->nullable || col->type == CHK_TYPE_VARCHAR))) {
            return false;
        }
        len += prefix_len + (col->nullable ? 1 : 0);
    }
    index->key_len = index->clustered ? len : len + table->pk_len;
    return index->n_fields > 0 && index->key_len <= CHK_KEY_LEN_MAX;
}

static bool chk_layout_columns(chk_table_t *table)
{
    uint32_t n_nullable = 0;
    uint32_t row_size = 0;
    for (uint32_t i = 0; i < table->n_cols; i++) {
        chk_col_t *col = &table->cols[i];
        bool ok =
            (col->type == CHK_TYPE_BIGINT && col->len == 8)
            || (col->type == CHK_TYPE_CHAR && col->len >= 1 && col->len <= CHAR_LEN_MAX)
            || (col->type == CHK_TYPE_VARCHAR && col->len >= 1 && col->len <= VARCHAR_LEN_MAX);
        if (!ok) {
            return false;
        }
        row_size += col->len + (col->type == CHK_TYPE_VARCHAR ? CHK_LEN_SIZE : 0);
        col->null_bit = col->nullable ? n_nullable++ : 0;
        col->primary = false;
        col->rec_offset = 0;
    }
    return table->n_cols > 0 && table->n_indexes > 0
           && row_size + (n_nullable + 7) / 8 <= ROW_SIZE_MAX;
}

/** Of the first n columns. */
static uint32_t chk_n_nullable(const chk_table_t *table, uint32_t n)
{
    uint32_t n_nullable = 0;
    for (uint32_t i = 0; i < n; i++) {
        n_nullable += table->cols[i].nullable ? 1 : 0;
    }
    return n_nullable;
}

/** Offsets in the clustered record, and its size if that is always the same. */
static bool chk_layout_record(chk_table_t *table, uint32_t page_size)
{
    chk_index_t *primary = &table->indexes[0];
    uint32_t size = 1;
    for (uint32_t i = 0; i < primary->n_fields; i++) {
        chk_col_t *col = &table->cols[primary->fields[i].col];
        if (col->primary) {
            return false; /* twice in the primary key */
        }
        col->primary = true;
        col->rec_offset = size;
        size += col->len;
    }
    table->n_core = table->n_cols;
    for (uint32_t i = table->n_cols; i-- > 0;) {
        table->n_core = table->cols[i].instant ? i : table->n_core;
    }
    size += CHK_TRX_ID_LEN + CHK_ROLL_PTR_LEN + (chk_n_nullable(table, table->n_cols) + 7) / 8;
    size += table->n_core < table->n_cols ? CHK_COUNT_SIZE : 0;
    bool core = table->n_core > 0;
    for (uint32_t i = table->n_core; i < table->n_cols; i++) {
        core = core && table->cols[i].instant && !table->cols[i].primary;
    }
    bool varies = false;
    for (uint32_t i = 0; i < table->n_cols; i++) {
        chk_col_t *col = &table->cols[i];
        if (!col->primary) {
            varies = varies || col->nullable || col->type == CHK_TYPE_VARCHAR;
            col->rec_offset = size;
            size += col->len;
            if (col->type == CHK_TYPE_VARCHAR) { /* what is longer can have pages of its own */
                size += CHK_LEN_SIZE;
                size -= col->len > CHK_LOCAL_MAX ? col->len - CHK_LOCAL_MAX : 0;
            }
        }
    }
    primary->rec_size = varies ? PAGE_REC_VARIES : size;
    if (!core || (!varies && table->n_core < table->n_cols)) {
        return false; /* instant columns that are not the last ones of records of any size */
    }
    return varies ? size <= page_rec_max(page_size) : page_capacity(page_size, size) >= 2;
}

bool chk_table_layout(chk_table_t *table, uint32_t page_size)
{
    if (!chk_layout_columns(table) || !chk_layout_index(table, &table->indexes[0])
        || !chk_layout_record(table, page_size)) {
        return false;
    }
    table->pk_len = table->indexes[0].key_len;
    for (uint32_t i = 1; i < table->n_indexes; i++) {
        chk_index_t *index = &table->indexes[i];
        if (!chk_layout_index(table, index) || page_capacity(page_size, 1 + index->key_len) < 2) {
            return false;
        }
        index->rec_size = 1 + index->key_len;
    }
    return true;
}

/* ---- values ---- */

static bool chk_null_bit(const byte *nulls, uint32_t bit)
{
    return (nulls[bit / 8] >> (bit % 8) & 1U) != 0;
}

/** Are the NULL bits that belong to no column zero? n: those that do. */
static bool chk_nulls_are_valid(const byte *nulls, uint32_t n)
{
    for (uint32_t bit = n; bit % 8 != 0; bit++) {
        if (chk_null_bit(nulls, bit)) {
            return false;
        }
    }
    return true;
}

bool chk_row_read(const chk_table_t *table, const byte *rec, uint32_t len, const chk_value_t *meta,
                  chk_value_t *values)
{
    uint32_t at = 1 + table->pk_len + CHK_TRX_ID_LEN + CHK_ROLL_PTR_LEN;
    uint32_t n = table->n_core;
    if ((rec[0] & REC_INFO_INSTANT) != 0) {
        n = len > at ? rec[at] : 0;
        at += CHK_COUNT_SIZE;
        if (n <= table->n_core || n > table->n_cols) {
            return false;
        }
    }
    const byte *nulls = rec + at;
    uint32_t n_nullable = chk_n_nullable(table, n);
    at += (n_nullable + 7) / 8;
    if (len < at || !chk_nulls_are_valid(nulls, n_nullable)
        || (n < table->n_cols && meta == NULL)) {
        return false;
    }
    for (uint32_t i = 0; i < table->n_cols; i++) {
        const chk_col_t *col = &table->cols[i];
        if (i >= n) {
            values[i] = meta[i];
            continue;
        }
        values[i] = (chk_value_t){.at = rec + col->rec_offset, .len = col->len};
        if (col->primary) {
            continue;
        }
        if (col->nullable && chk_null_bit(nulls, col->null_bit)) {
            values[i].at = NULL;
            continue;
        }
        if (col->type == CHK_TYPE_VARCHAR) {
            if (len - at < CHK_LEN_SIZE) {
                return false;
            }
            values[i].len = mach_read_2(rec + at);
            values[i].external = values[i].len == CHK_LEN_EXTERNAL;
            at += CHK_LEN_SIZE;
        }
        if (values[i].external) {
            values[i].len = CHK_REF_SIZE;
        }
        if ((values[i].len > col->len && !values[i].external) || values[i].len > len - at) {
            return false;
        }
        values[i].at = rec + at;
        at += values[i].len;
    }
    return at == len;
}

uint32_t chk_row_bytes(const chk_table_t *table, const chk_value_t *values, byte *to)
{
    const byte *start = to;
    for (uint32_t i = 0; i < table->n_cols; i++) {
        const chk_col_t *col = &table->cols[i];
        if (col->nullable) {
            *to++ = values[i].at != NULL ? 1 : 0;
        }
        if (values[i].at == NULL) {
            continue;
        }
        if (col->type == CHK_TYPE_VARCHAR) {
            mach_write_2(to, values[i].len);
            to += CHK_LEN_SIZE;
        }
        memcpy(to, values[i].at, values[i].len);
        to += values[i].len;
    }
    return (uint32_t)(to - start);
}

static byte *chk_key_column(const chk_col_t *col, const chk_value_t *value, uint32_t prefix_len,
                            byte *to)
{
    uint32_t len = value->len < prefix_len ? value->len : prefix_len;
    if (col->nullable) {
        *to++ = value->at != NULL ? 1 : 0;
    }
    if (value->at == NULL) {
        memset(to, 0, prefix_len);
    } else {
        memcpy(to, value->at, len);
        memset(to + len, ' ', prefix_len - len);
    }
    return to + prefix_len;
}

void chk_entry_bytes(const chk_table_t *table, const chk_index_t *index, const chk_value_t *values,
                     byte *to)
{
    const chk_index_t *primary = &table->indexes[0];
    for (uint32_t i = 0; i < index->n_fields; i++) {
        uint32_t col = index->fields[i].col;
        to = chk_key_column(&table->cols[col], &values[col], index->fields[i].prefix_len, to);
    }
    for (uint32_t i = 0; i < primary->n_fields; i++) {
        uint32_t col = primary->fields[i].col;
        to = chk_key_column(&table->cols[col], &values[col], table->cols[col].len, to);
    }
}

bool chk_key_has_null(const chk_table_t *table, const chk_index_t *index, const byte *key)
{
    for (uint32_t i = 0; i < index->n_fields; i++) {
        const chk_col_t *col = &table->cols[index->fields[i].col];
        if (col->nullable && *key == 0) {
            return true;
        }
        key += index->fields[i].prefix_len + (col->nullable ? 1 : 0);
    }
    return false;
}
