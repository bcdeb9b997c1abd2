/* Logical digests of a SQLite database: rows in the engine's row format, summed as check/check.h
says.

Above sqlite_schema.c. Rules:
 1. A table is read from its own tree (NOT INDEXED), an index in its own order: each digest is of
    the tree that it is named after, as far as SQLite lets one ask. The keys of an expression index
    are computed again from the row that its entry leads to; that they equal the entry is
    integrity_check's business.
 2. A value that its column may not hold is damage, not something to be converted. */
#include <stdio.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "explorer/targets/sqlite/sqlite_int.h"

#define PARTS_MAX (KEYS_MAX + COLUMNS_MAX)
#define BIGINT_BYTES 8U

/** A query under construction; what does not fit makes it full, and SQLite is never asked. */
typedef struct sql_text {
    char text[SQL_LEN_MAX];
    size_t len;
    bool full;
} sql_text_t;

__attribute__((format(printf, 2, 3))) static void sql_add(sql_text_t *sql, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    size_t left = sizeof(sql->text) - sql->len;
    int added = vsnprintf(sql->text + sql->len, left, format, args);
    va_end(args);
    if (added < 0 || (size_t)added >= left) {
        sql->full = true;
    } else {
        sql->len += (size_t)added;
    }
}

/** A row's columns: their widths in bytes, 0 for BIGINT. */
typedef struct row_format {
    uint32_t n;
    uint32_t widths[PARTS_MAX];
} row_format_t;

/** Appends one value to the row image. */
static dberr_t value_encode(sq_t *sq, sqlite3_stmt *stmt, int column, uint32_t width, byte *to)
{
    if (width == 0) {
        if (sqlite3_column_type(stmt, column) != SQLITE_INTEGER) {
            return err_set(sq->err, DB_UNRECOVERABLE, "a BIGINT column holds no integer");
        }
        uint64_t value = (uint64_t)sqlite3_column_int64(stmt, column) ^ ((uint64_t)1 << 63);
        for (uint32_t i = 0; i < BIGINT_BYTES; i++) {
            to[i] = (byte)(value >> (56 - 8 * i));
        }
        return DB_SUCCESS;
    }
    if (sqlite3_column_type(stmt, column) != SQLITE_TEXT) {
        return err_set(sq->err, DB_UNRECOVERABLE, "a CHAR(%u) column holds no text", width);
    }
    const void *text = sqlite3_column_text(stmt, column);
    size_t len = (size_t)sqlite3_column_bytes(stmt, column);
    if (text == NULL || len > width) {
        return err_set(sq->err, DB_UNRECOVERABLE, "%zu bytes in a CHAR(%u) column", len, width);
    }
    memcpy(to, text, len);
    memset(to + len, ' ', width - len);
    return DB_SUCCESS;
}

static dberr_t rows_digest(sq_t *sq, const sql_text_t *sql, const row_format_t *format,
                           uint64_t *rows, uint64_t *hash)
{
    if (sql->full) {
        return err_set(sq->err, DB_UNRECOVERABLE, "the schema has too many or too long columns");
    }
    byte image[PARTS_MAX * (CHAR_LEN_MAX + 1)];
    sqlite3_stmt *stmt;
    dberr_t err = sq_prepare(sq, sql->text, &stmt);
    bool row = true;
    while (err == DB_SUCCESS) {
        err = sq_step(sq, stmt, &row);
        if (err != DB_SUCCESS || !row) {
            break;
        }
        size_t at = 0;
        for (uint32_t i = 0; err == DB_SUCCESS && i < format->n; i++) {
            err = value_encode(sq, stmt, (int)i, format->widths[i], image + at);
            at += format->widths[i] != 0 ? format->widths[i] : BIGINT_BYTES;
        }
        *rows += 1;
        *hash += XXH64(image, at, 0);
    }
    sqlite3_finalize(stmt);
    return err;
}

static void keys_add(sql_text_t *sql, const sq_table_t *table, const sq_index_t *index)
{
    for (uint32_t i = 0; i < index->n_keys; i++) {
        const sq_key_t *key = &index->keys[i];
        const char *name = table->columns[key->column].name;
        const char *comma = i > 0 ? "," : "";
        if (key->prefix > 0) {
            sql_add(sql, "%ssubstr(\"%s\",1,%u)", comma, name, key->prefix);
        } else {
            sql_add(sql, "%s\"%s\"", comma, name);
        }
    }
}

static dberr_t index_digest(sq_t *sq, const sq_table_t *table, const sq_index_t *index,
                            check_index_t *out)
{
    row_format_t format = {.n = 0};
    for (uint32_t i = 0; i < index->n_keys; i++) {
        const sq_key_t *key = &index->keys[i];
        uint32_t width = key->prefix > 0 ? key->prefix : table->columns[key->column].width;
        format.widths[format.n++] = width;
    }
    sql_text_t sql = {.len = 0};
    sql_add(&sql, "SELECT ");
    keys_add(&sql, table, index);
    for (uint32_t i = 0; i < table->n_primary; i++) {
        const sq_column_t *column = &table->columns[table->primary[i]];
        sql_add(&sql, ",\"%s\"", column->name);
        format.widths[format.n++] = column->width;
    }
    sql_add(&sql, " FROM \"%s\" INDEXED BY \"%s\" ORDER BY ", table->name, index->sql_name);
    keys_add(&sql, table, index);
    memcpy(out->name, index->name, sizeof(out->name));
    dberr_t err = rows_digest(sq, &sql, &format, &out->entries, &out->hash);
    out->hash += index->unique ? 1 : 0;
    return err;
}

dberr_t sq_table_digest(sq_t *sq, const sq_table_t *table, check_table_t *out)
{
    memcpy(out->name, table->name, sizeof(out->name));
    sql_text_t sql = {.len = 0};
    sql_add(&sql, "SELECT ");
    row_format_t format = {.n = 0};
    char names[COLUMNS_MAX * (NAME_LEN_MAX + 1) + 1];
    size_t names_len = 0;
    for (uint32_t i = 0; i < table->n_columns; i++) {
        names_len += (size_t)snprintf(names + names_len, sizeof(names) - names_len, "%s,",
                                      table->columns[i].name);
        sql_add(&sql, "%s\"%s\"", i > 0 ? "," : "", table->columns[i].name);
        format.widths[format.n++] = table->columns[i].width;
    }
    sql_add(&sql, " FROM \"%s\" NOT INDEXED", table->name);
    dberr_t err = rows_digest(sq, &sql, &format, &out->rows, &out->hash);
    out->hash += XXH64(names, names_len, 0);
    TRY(err);
    for (uint32_t i = 0; i < table->n_indexes; i++) {
        err = index_digest(sq, table, &table->indexes[i], &out->indexes[i]);
        out->n_indexes = i + 1;
        TRY(err);
    }
    return err;
}
