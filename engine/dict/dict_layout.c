/* Where the bytes of a row lie: layout of table objects. dict_rec.c converts with it.

1. Whatever table object comes in, from a user or from catalogue pages, comes out with offsets that
   stay inside of a record that fits a page at least twice, or is refused with the reason.
2. Instant columns are the last ones, outside the primary key, of records that have their own size:
   a record without them is shorter. */
#include <inttypes.h>
#include <string.h>

#include "base/check.h"
#include "dict/dict.h"

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
    TRY(dict_check_name("column", col->name, err));
    for (uint32_t i = 0; i < pos; i++) {
        if (strcmp(table->cols[i].name, col->name) == 0) {
            return err_set(err, DB_ERROR, "table %s: two columns are named %s", table->name,
                           col->name);
        }
    }
    if (col->type == DICT_BIGINT && col->len == DICT_BIGINT_LEN) {
        return DB_SUCCESS;
    }
    if (col->type == DICT_CHAR && col->len >= 1 && col->len <= CHAR_LEN_MAX) {
        return DB_SUCCESS;
    }
    if (col->type == DICT_VARCHAR && col->len >= 1 && col->len <= VARCHAR_LEN_MAX) {
        return DB_SUCCESS;
    }
    return err_set(err, DB_ERROR,
                   "table %s: column %s must be BIGINT, CHAR(1) to CHAR(%u) or VARCHAR(1) to "
                   "VARCHAR(%u)",
                   table->name, col->name, CHAR_LEN_MAX, VARCHAR_LEN_MAX);
}

/** Row offsets: NULL bits, then the columns in order of definition. */
static void dict_layout_columns(dict_table_t *table)
{
    uint32_t n_nullable = 0;
    for (uint32_t i = 0; i < table->n_cols; i++) {
        if (table->cols[i].nullable) {
            table->cols[i].null_bit = n_nullable++;
        }
    }
    table->null_len = (n_nullable + 7) / 8;
    table->n_core = 0;
    while (table->n_core < table->n_cols && !table->cols[table->n_core].instant) {
        table->n_core++;
    }
    table->row_size = table->null_len;
    for (uint32_t i = 0; i < table->n_cols; i++) {
        table->cols[i].row_offset = table->row_size;
        table->row_size += dict_col_row_len(&table->cols[i]);
    }
}

static dberr_t dict_layout_row(dict_table_t *table, err_sink_t *err)
{
    TRY(dict_check_name("table", table->name, err));
    if (table->n_cols == 0 || table->n_cols > COLUMNS_MAX) {
        return err_set(err, DB_ERROR, "table %s: %" PRIu32 " columns, 1 to %u are possible",
                       table->name, table->n_cols, COLUMNS_MAX);
    }
    for (uint32_t i = 0; i < table->n_cols; i++) {
        TRY(dict_check_column(table, i, err));
    }
    dict_layout_columns(table);
    if (table->row_size > ROW_SIZE_MAX) {
        return err_set(err, DB_ERROR,
                       "table %s: a row of %" PRIu32 " bytes, at most %u are possible", table->name,
                       table->row_size, ROW_SIZE_MAX);
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
    if (field->prefix_len < col->len && (index->clustered || col->type == DICT_BIGINT)) {
        return err_set(err, DB_ERROR, "index %s: a prefix of column %s is not possible: %s",
                       index->name, col->name,
                       index->clustered ? "it is the primary key" : "it is not a text");
    }
    if (index->clustered && (col->nullable || col->type == DICT_VARCHAR)) {
        return err_set(err, DB_ERROR, "table %s: column %s of the primary key cannot be %s",
                       table->name, col->name, col->nullable ? "NULL" : "VARCHAR");
    }
    return DB_SUCCESS;
}

/** Checks name and fields; *len is the length of the user's key columns. An index that goes may
have the name of one that comes. */
static dberr_t dict_layout_fields(dict_table_t *table, dict_index_t *index, uint32_t *len,
                                  err_sink_t *err)
{
    TRY(dict_check_name("index", index->name, err));
    for (const dict_index_t *other = table->indexes; other < index; other++) {
        bool both = other->clustered || other->status == index->status;
        if (both && strcmp(other->name, index->name) == 0) {
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
        TRY(dict_check_field(table, index, i, err));
        *len += field->prefix_len + (table->cols[field->col].nullable ? 1 : 0);
    }
    return DB_SUCCESS;
}

/** least: of the table's records. */
static dberr_t dict_check_sizes(const dict_index_t *index, uint32_t page_size, uint32_t least,
                                err_sink_t *err)
{
    uint32_t size = index->tree.leaf_varies ? least : index->tree.leaf_rec_size;
    bool two_fit = index->tree.leaf_varies ? size <= page_rec_max(page_size)
                                           : page_capacity(page_size, size) >= 2;
    if (index->tree.key_len > dict_key_len_max(page_size)) {
        return err_set(err, DB_ERROR,
                       "index %s: key of %" PRIu32 " bytes, primary key included, is longer than "
                       "the %" PRIu32 " that pages of %" PRIu32 " bytes allow",
                       index->name, index->tree.key_len, dict_key_len_max(page_size), page_size);
    }
    if (!two_fit) {
        return err_set(err, DB_ERROR,
                       "table %s: two records of %" PRIu32 " bytes do not fit a page of %" PRIu32
                       " bytes",
                       index->table->name, size, page_size);
    }
    return DB_SUCCESS;
}

/** Record offsets: primary key, system columns, the rest in order of definition, from the first one
on whose size depends on the record unknown. Size of the longest record; *least: of the longest one
with every text in pages of its own that can be there. */
static void dict_layout_record(dict_table_t *table, uint32_t page_size, uint32_t *least)
{
    dict_index_t *primary = &table->indexes[0];
    for (uint32_t i = 0; i < table->n_cols; i++) {
        table->cols[i].primary = false;
    }
    uint32_t offset = 1;
    for (uint32_t i = 0; i < primary->n_fields; i++) {
        dict_col_t *col = &table->cols[primary->fields[i].col];
        col->primary = true;
        col->rec_offset = offset;
        offset += col->len;
    }
    offset += DATA_TRX_ID_LEN + DATA_ROLL_PTR_LEN + table->null_len;
    offset += table->n_core < table->n_cols ? DICT_COUNT_SIZE : 0;
    primary->tree.leaf_varies = false;
    *least = offset;
    for (uint32_t i = 0; i < table->n_cols; i++) {
        dict_col_t *col = &table->cols[i];
        if (!col->primary) {
            primary->tree.leaf_varies |= col->nullable || col->type == DICT_VARCHAR;
            col->rec_offset = primary->tree.leaf_varies ? 0 : offset;
            offset += dict_col_row_len(col);
            *least += col->type == DICT_VARCHAR && col->len > DICT_LOCAL_MAX
                          ? DICT_LEN_SIZE + DICT_LOCAL_MAX
                          : dict_col_row_len(col);
        }
    }
    if (primary->tree.leaf_varies && offset > page_rec_max(page_size)) {
        offset = page_rec_max(page_size);
    }
    primary->tree.leaf_rec_size = offset;
    primary->tree.instant = table->n_core < table->n_cols ? table->n_core : 0;
}

/** Rule 2. */
static dberr_t dict_check_instant(const dict_table_t *table, err_sink_t *err)
{
    bool valid =
        table->n_core == table->n_cols || (table->n_core > 0 && table->indexes[0].tree.leaf_varies);
    for (uint32_t i = table->n_core; i < table->n_cols; i++) {
        valid = valid && table->cols[i].instant && !table->cols[i].primary;
    }
    return valid ? DB_SUCCESS
                 : err_set(err, DB_ERROR, "table %s: its instant columns cannot be", table->name);
}

uint32_t dict_col_prefix(const dict_table_t *table, uint32_t col)
{
    uint32_t most = 0;
    for (uint32_t i = 1; i < table->n_indexes; i++) {
        for (uint32_t f = 0; f < table->indexes[i].n_fields; f++) {
            const dict_field_t *field = &table->indexes[i].fields[f];
            most = field->col == col && field->prefix_len > most ? field->prefix_len : most;
        }
    }
    return most;
}

/** An undo record has the values of a record and, beside it, of texts that have pages of their own
the starts that indexes look at, of instant columns that the record is without their values. It fits
a page. */
static dberr_t dict_check_undo(const dict_table_t *table, uint32_t page_size, err_sink_t *err)
{
    uint32_t room = page_size - page_rec_max(page_size) - DICT_UNDO_OVERHEAD;
    uint32_t beside = 0;
    for (uint32_t i = 0; i < table->n_cols; i++) {
        bool text = table->cols[i].type == DICT_VARCHAR && table->cols[i].len > DICT_LOCAL_MAX;
        uint32_t start = text ? dict_col_prefix(table, i) : 0;
        uint32_t value = text ? DICT_LOCAL_MAX : table->cols[i].len;
        beside += i < table->n_core || start > value ? start : value;
    }
    return beside <= room
               ? DB_SUCCESS
               : err_set(err, DB_ERROR,
                         "table %s: an undo record has up to %" PRIu32 " bytes of VARCHAR columns "
                         "that indexes look at and of instant columns, at most %" PRIu32
                         " are possible with pages of %" PRIu32 " bytes",
                         table->name, beside, room, page_size);
}

dberr_t dict_table_layout(dict_table_t *table, uint32_t page_size, err_sink_t *err)
{
    TRY(dict_layout_row(table, err));
    if (table->n_indexes == 0 || table->n_indexes > INDEXES_MAX) {
        return err_set(err, DB_ERROR,
                       "table %s: %" PRIu32 " indexes, 1 to %u are possible, the primary key "
                       "included",
                       table->name, table->n_indexes, INDEXES_MAX);
    }
    uint32_t least = 0;
    for (uint32_t i = 0; i < table->n_indexes; i++) {
        dict_index_t *index = &table->indexes[i];
        index->table = table;
        index->clustered = i == 0;
        uint32_t len = 0;
        TRY(dict_layout_fields(table, index, &len, err));
        index->unique_len = len;
        if (index->clustered) {
            table->pk_len = len;
            index->tree.key_len = len;
            dict_layout_record(table, page_size, &least);
            TRY(dict_check_instant(table, err));
        } else {
            index->tree.key_len = len + table->pk_len;
            index->tree.leaf_rec_size = 1 + index->tree.key_len;
        }
        TRY(dict_check_sizes(index, page_size, least, err));
    }
    return dict_check_undo(table, page_size, err);
}
