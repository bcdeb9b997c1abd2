/* Where the bytes of a row lie: layout of table objects and conversions between row and records.

1. Whatever table object comes in, from a user or from catalogue pages, comes out with offsets that
   stay inside of a record that fits a page at least twice, or is refused with the reason.
2. Conversions copy column by column with those offsets and cannot fail. */
#include <inttypes.h>
#include <string.h>

#include "base/check.h"
#include "base/mach.h"
#include "dict/dict.h"

#define BIGINT_LEN 8U

/** As InnoDB: 768 bytes for 4k pages, 1536 for 8k, 3072 from 16k; at least 5 node pointers fit a
page. */
static uint32_t dict_key_len_max(uint32_t page_size)
{
    uint32_t max = page_size / 16 * 3;

    return max < BTR_KEY_LEN_MAX ? max : BTR_KEY_LEN_MAX;
}

static bool dict_char_is_valid(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_'
           || c == '$' || c == '#' || c == '-';
}

/** A name becomes part of a file name: no separator, no dot, no blank. */
static dberr_t dict_check_name(const char *what, const char *name, err_sink_t *err)
{
    size_t len = strnlen(name, NAME_LEN_MAX + 1);

    if (len == 0) {
        return err_set(err, DB_ERROR, "a %s has no name", what);
    }
    if (len > NAME_LEN_MAX) {
        return err_set(err, DB_ERROR, "name of a %s is longer than %u bytes", what, NAME_LEN_MAX);
    }
    for (size_t i = 0; i < len; i++) {
        if (!dict_char_is_valid(name[i])) {
            return err_set(err, DB_ERROR,
                           "name of a %s: only letters, digits, _ $ # - are possible", what);
        }
    }
    return DB_SUCCESS;
}

static dberr_t dict_check_column(const dict_table_t *table, uint32_t pos, err_sink_t *err)
{
    const dict_col_t *col = &table->cols[pos];
    dberr_t status = dict_check_name("column", col->name, err);

    if (status != DB_SUCCESS) {
        return status;
    }
    for (uint32_t i = 0; i < pos; i++) {
        if (strcmp(table->cols[i].name, col->name) == 0) {
            return err_set(err, DB_ERROR, "table %s: two columns are named %s", table->name,
                           col->name);
        }
    }
    if (col->type == DICT_BIGINT && col->len == BIGINT_LEN) {
        return DB_SUCCESS;
    }
    if (col->type == DICT_CHAR && col->len >= 1 && col->len <= CHAR_LEN_MAX) {
        return DB_SUCCESS;
    }
    return err_set(err, DB_ERROR, "table %s: column %s must be BIGINT or CHAR(1) to CHAR(%u)",
                   table->name, col->name, CHAR_LEN_MAX);
}

static dberr_t dict_layout_row(dict_table_t *table, err_sink_t *err)
{
    dberr_t status = dict_check_name("table", table->name, err);

    if (status != DB_SUCCESS) {
        return status;
    }
    if (table->n_cols == 0 || table->n_cols > COLUMNS_MAX) {
        return err_set(err, DB_ERROR, "table %s: %" PRIu32 " columns, 1 to %u are possible",
                       table->name, table->n_cols, COLUMNS_MAX);
    }
    table->row_size = 0;
    for (uint32_t i = 0; i < table->n_cols; i++) {
        status = dict_check_column(table, i, err);
        if (status != DB_SUCCESS) {
            return status;
        }
        table->cols[i].row_offset = table->row_size;
        table->cols[i].rec_offset = 0;
        table->row_size += table->cols[i].len;
    }
    return DB_SUCCESS;
}

static dberr_t dict_check_field(const dict_table_t *table, const dict_index_t *index, uint32_t pos,
                                err_sink_t *err)
{
    const dict_field_t *field = &index->fields[pos];
    const dict_col_t *col;

    if (field->col >= table->n_cols) {
        return err_set(err, DB_ERROR, "index %s: no column %" PRIu32 " in table %s", index->name,
                       field->col, table->name);
    }
    col = &table->cols[field->col];
    for (uint32_t i = 0; i < pos; i++) {
        if (index->fields[i].col == field->col) {
            return err_set(err, DB_ERROR, "index %s: column %s occurs twice", index->name,
                           col->name);
        }
    }
    if (field->prefix_len > col->len) {
        return err_set(err, DB_ERROR,
                       "index %s: prefix of %" PRIu32 " bytes is longer than column %s",
                       index->name, field->prefix_len, col->name);
    }
    if (field->prefix_len < col->len && (index->clustered || col->type != DICT_CHAR)) {
        return err_set(err, DB_ERROR, "index %s: a prefix of column %s is not possible: %s",
                       index->name, col->name,
                       index->clustered ? "it is the primary key" : "it is not CHAR");
    }
    return DB_SUCCESS;
}

/** Checks name and fields; *len is the length of the user's key columns. */
static dberr_t dict_layout_fields(dict_table_t *table, dict_index_t *index, uint32_t *len,
                                  err_sink_t *err)
{
    dberr_t status = dict_check_name("index", index->name, err);

    if (status != DB_SUCCESS) {
        return status;
    }
    for (const dict_index_t *other = table->indexes; other < index; other++) {
        if (strcmp(other->name, index->name) == 0) {
            return err_set(err, DB_ERROR, "table %s: two indexes are named %s", table->name,
                           index->name);
        }
    }
    if (index->n_fields == 0 || index->n_fields > COLUMNS_MAX) {
        return err_set(err, DB_ERROR, "index %s: %" PRIu32 " key columns, 1 to %u are possible",
                       index->name, index->n_fields, COLUMNS_MAX);
    }
    *len = 0;
    for (uint32_t i = 0; i < index->n_fields; i++) {
        dict_field_t *field = &index->fields[i];

        if (field->prefix_len == 0 && field->col < table->n_cols) {
            field->prefix_len = table->cols[field->col].len;
        }
        status = dict_check_field(table, index, i, err);
        if (status != DB_SUCCESS) {
            return status;
        }
        *len += field->prefix_len;
    }
    return DB_SUCCESS;
}

static dberr_t dict_check_sizes(const dict_index_t *index, uint32_t page_size, err_sink_t *err)
{
    if (index->tree.key_len > dict_key_len_max(page_size)) {
        return err_set(err, DB_ERROR,
                       "index %s: key of %" PRIu32 " bytes, primary key included, is longer than "
                       "the %" PRIu32 " that pages of %" PRIu32 " bytes allow",
                       index->name, index->tree.key_len, dict_key_len_max(page_size), page_size);
    }
    if (page_capacity(page_size, index->tree.leaf_rec_size) < 2) {
        return err_set(err, DB_ERROR,
                       "table %s: two records of %" PRIu32 " bytes do not fit a page of %" PRIu32
                       " bytes",
                       index->table->name, index->tree.leaf_rec_size, page_size);
    }
    return DB_SUCCESS;
}

/** Record offsets: primary key, system columns, the rest in order of definition. */
static void dict_layout_record(dict_table_t *table)
{
    const dict_index_t *primary = &table->indexes[0];
    uint32_t offset = 1;

    for (uint32_t i = 0; i < primary->n_fields; i++) {
        dict_col_t *col = &table->cols[primary->fields[i].col];

        col->rec_offset = offset;
        offset += col->len;
    }
    offset += DATA_TRX_ID_LEN + DATA_ROLL_PTR_LEN;
    for (uint32_t i = 0; i < table->n_cols; i++) {
        if (table->cols[i].rec_offset == 0) {
            table->cols[i].rec_offset = offset;
            offset += table->cols[i].len;
        }
    }
}

dberr_t dict_table_layout(dict_table_t *table, uint32_t page_size, err_sink_t *err)
{
    dberr_t status = dict_layout_row(table, err);

    if (status != DB_SUCCESS) {
        return status;
    }
    if (table->n_indexes == 0 || table->n_indexes > INDEXES_MAX) {
        return err_set(err, DB_ERROR,
                       "table %s: %" PRIu32 " indexes, 1 to %u are possible, the primary key "
                       "included",
                       table->name, table->n_indexes, INDEXES_MAX);
    }
    for (uint32_t i = 0; i < table->n_indexes; i++) {
        dict_index_t *index = &table->indexes[i];
        uint32_t len = 0;

        index->table = table;
        index->clustered = i == 0;
        status = dict_layout_fields(table, index, &len, err);
        if (status != DB_SUCCESS) {
            return status;
        }
        index->unique_len = len;
        if (index->clustered) {
            table->pk_len = len;
            index->tree.key_len = len;
            index->tree.leaf_rec_size = 1 + table->row_size + DATA_TRX_ID_LEN + DATA_ROLL_PTR_LEN;
        } else {
            index->tree.key_len = len + table->pk_len;
            index->tree.leaf_rec_size = 1 + index->tree.key_len;
        }
        status = dict_check_sizes(index, page_size, err);
        if (status != DB_SUCCESS) {
            return status;
        }
    }
    dict_layout_record(table);
    return DB_SUCCESS;
}

uint32_t dict_rec_trx_id_offset(const dict_table_t *table)
{
    return 1 + table->pk_len;
}

void dict_row_to_rec(const dict_table_t *table, const byte *row, trx_id_t trx_id,
                     roll_ptr_t roll_ptr, byte *rec)
{
    byte *sys_cols = rec + dict_rec_trx_id_offset(table);

    rec[0] = 0;
    for (uint32_t i = 0; i < table->n_cols; i++) {
        const dict_col_t *col = &table->cols[i];

        memcpy(rec + col->rec_offset, row + col->row_offset, col->len);
    }
    mach_write_6(sys_cols, trx_id);
    mach_write_7(sys_cols + DATA_TRX_ID_LEN, roll_ptr);
}

void dict_rec_to_row(const dict_table_t *table, const byte *rec, byte *row)
{
    for (uint32_t i = 0; i < table->n_cols; i++) {
        const dict_col_t *col = &table->cols[i];

        memcpy(row + col->row_offset, rec + col->rec_offset, col->len);
    }
}

/** Appends the first prefix_len bytes of each field's column. */
static byte *dict_copy_fields(const dict_index_t *index, const byte *row, byte *to)
{
    for (uint32_t i = 0; i < index->n_fields; i++) {
        const dict_field_t *field = &index->fields[i];

        memcpy(to, row + index->table->cols[field->col].row_offset, field->prefix_len);
        to += field->prefix_len;
    }
    return to;
}

void dict_row_to_pk(const dict_table_t *table, const byte *row, byte *pk)
{
    (void)dict_copy_fields(&table->indexes[0], row, pk);
}

void dict_row_to_sec(const dict_index_t *index, const byte *row, byte *rec)
{
    CHECK(!index->clustered);
    rec[0] = 0;
    dict_row_to_pk(index->table, row, dict_copy_fields(index, row, rec + 1));
}

trx_id_t dict_rec_trx_id(const dict_table_t *table, const byte *rec)
{
    return mach_read_6(rec + dict_rec_trx_id_offset(table));
}

roll_ptr_t dict_rec_roll_ptr(const dict_table_t *table, const byte *rec)
{
    return mach_read_7(rec + dict_rec_trx_id_offset(table) + DATA_TRX_ID_LEN);
}
