/* Reads the schema of a database that the driver made, as harness/tornpage/targets/sqlite/schema.py
tells.

Above SQLite's API only. Rules:
 1. A name goes into a query only after it was seen to consist of letters, digits and _ (an index's:
    @ too).
 2. What does not look as the driver writes it is refused: the bytes come from a crash. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "explorer/targets/sqlite/sqlite_int.h"

static bool name_ok(const char *name, const char *extra, size_t len_max)
{
    size_t len = strlen(name);
    if (len == 0 || len > len_max) {
        return false;
    }
    for (const char *at = name; *at != '\0'; at++) {
        if (!isalnum((unsigned char)*at) && *at != '_' && strchr(extra, *at) == NULL) {
            return false;
        }
    }
    return true;
}

static const char *text_of(sqlite3_stmt *stmt, int column)
{
    const unsigned char *text = sqlite3_column_text(stmt, column);
    return text == NULL ? "" : (const char *)text;
}

static dberr_t foreign(sq_t *sq, const char *name, const char *what)
{
    return err_set(sq->err, DB_UNRECOVERABLE, "schema of %.80s: unexpected %.120s", name, what);
}

static dberr_t column_read(sq_t *sq, sqlite3_stmt *stmt, sq_table_t *table)
{
    const char *name = text_of(stmt, 1);
    const char *type = text_of(stmt, 2);
    int position = sqlite3_column_int(stmt, 5);
    if (table->n_columns == COLUMNS_MAX || !name_ok(name, "", NAME_LEN_MAX)) {
        return foreign(sq, table->name, name);
    }
    uint32_t width = 0;
    int end = 0;
    if (strcmp(type, "INTEGER") != 0
        && (sscanf(type, "CHAR(%3u)%n", &width, &end) != 1 || type[end] != '\0' || end == 0
            || width == 0 || width > CHAR_LEN_MAX)) {
        return foreign(sq, table->name, type);
    }
    sq_column_t *column = &table->columns[table->n_columns];
    memcpy(column->name, name, strlen(name) + 1);
    column->width = width;
    column->primary = position > 0 ? (uint32_t)position : 0;
    if (column->primary > COLUMNS_MAX) {
        return foreign(sq, table->name, "primary key");
    }
    if (column->primary > 0) {
        table->primary[column->primary - 1] = table->n_columns;
        table->n_primary++;
    }
    table->n_columns++;
    return DB_SUCCESS;
}

static dberr_t columns_read(sq_t *sq, sq_table_t *table)
{
    char sql[2 * NAME_LEN_MAX];
    snprintf(sql, sizeof(sql), "PRAGMA table_info(\"%s\")", table->name);
    sqlite3_stmt *stmt;
    dberr_t err = sq_prepare(sq, sql, &stmt);
    bool row = true;
    while (err == DB_SUCCESS) {
        err = sq_step(sq, stmt, &row);
        if (err != DB_SUCCESS || !row) {
            break;
        }
        err = column_read(sq, stmt, table);
    }
    sqlite3_finalize(stmt);
    TRY(err);
    if (table->n_primary == 0) {
        TRY(foreign(sq, table->name, "table without a primary key"));
    }
    return DB_SUCCESS;
}

static bool column_find(const sq_table_t *table, const char *name, uint32_t *column)
{
    for (uint32_t i = 0; i < table->n_columns; i++) {
        if (strcmp(table->columns[i].name, name) == 0) {
            *column = i;
            return true;
        }
    }
    return false;
}

/** Parses `"COLUMN"` or `substr("COLUMN",1,N)` and returns what follows, or NULL. */
static const char *key_parse(const sq_table_t *table, const char *at, sq_key_t *key)
{
    *key = (sq_key_t){.prefix = 0};
    char name[NAME_LEN_MAX + 1];
    int end = 0;
    if (sscanf(at, "substr(\"%63[A-Za-z0-9_]\",1,%3u)%n", name, &key->prefix, &end) == 2
        && end > 0) {
        return key->prefix > 0 && key->prefix <= CHAR_LEN_MAX
                       && column_find(table, name, &key->column)
                   ? at + end
                   : NULL;
    }
    if (sscanf(at, "\"%63[A-Za-z0-9_]\"%n", name, &end) == 1 && end > 0) {
        return column_find(table, name, &key->column) ? at + end : NULL;
    }
    return NULL;
}

static dberr_t index_read(sq_t *sq, const char *sql_name, const char *sql, sq_table_t *table)
{
    if (table->n_indexes == INDEXES_MAX || !name_ok(sql_name, "@", NAME_LEN_MAX)) {
        return foreign(sq, table->name, sql_name);
    }
    sq_index_t *index = &table->indexes[table->n_indexes];
    memset(index, 0, sizeof(*index));
    memcpy(index->sql_name, sql_name, strlen(sql_name) + 1);
    memcpy(index->name, sql_name, strcspn(sql_name, "@"));
    index->unique = strncmp(sql, "CREATE UNIQUE ", 14) == 0;
    const char *at = strstr(sql, " ON ");
    at = at != NULL ? strchr(at, '(') : NULL;
    while (at != NULL && (*at == '(' || *at == ',')) {
        if (index->n_keys == KEYS_MAX) {
            return foreign(sq, sql_name, "number of keys");
        }
        at = key_parse(table, at + 1, &index->keys[index->n_keys++]);
    }
    if (at == NULL || strcmp(at, ")") != 0) {
        return foreign(sq, sql_name, sql);
    }
    table->n_indexes++;
    return DB_SUCCESS;
}

static int compare_indexes(const void *a, const void *b)
{
    return strcmp(((const sq_index_t *)a)->name, ((const sq_index_t *)b)->name);
}

static dberr_t indexes_read(sq_t *sq, sq_table_t *table)
{
    sqlite3_stmt *stmt;
    dberr_t err = sq_prepare(sq,
                             "SELECT name, sql FROM sqlite_schema WHERE type = 'index'"
                             " AND tbl_name = ?1 AND sql IS NOT NULL",
                             &stmt);
    if (err == DB_SUCCESS && sqlite3_bind_text(stmt, 1, table->name, -1, SQLITE_STATIC) != 0) {
        err = sq_error(sq);
    }
    bool row = true;
    while (err == DB_SUCCESS) {
        err = sq_step(sq, stmt, &row);
        if (err != DB_SUCCESS || !row) {
            break;
        }
        err = index_read(sq, text_of(stmt, 0), text_of(stmt, 1), table);
    }
    sqlite3_finalize(stmt);
    qsort(table->indexes, table->n_indexes, sizeof(table->indexes[0]), compare_indexes);
    return err;
}

static dberr_t names_read(sq_t *sq, sq_table_t **tables, uint32_t *n_tables)
{
    sqlite3_stmt *stmt;
    dberr_t err =
        sq_prepare(sq, "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name", &stmt);
    bool row = true;
    while (err == DB_SUCCESS) {
        err = sq_step(sq, stmt, &row);
        if (err != DB_SUCCESS || !row) {
            break;
        }
        const char *name = text_of(stmt, 0);
        if (*n_tables == TABLES_LIMIT || !name_ok(name, "", NAME_LEN_MAX)) {
            err = foreign(sq, name, "table");
            break;
        }
        sq_table_t *grown = realloc(*tables, (*n_tables + 1) * sizeof **tables);
        if (grown == NULL) {
            err = err_set(sq->err, DB_OUT_OF_MEMORY, "no memory for the schema");
            break;
        }
        *tables = grown;
        memset(&grown[*n_tables], 0, sizeof(*grown));
        memcpy(grown[*n_tables].name, name, strlen(name) + 1);
        (*n_tables)++;
    }
    sqlite3_finalize(stmt);
    return err;
}

dberr_t sq_schema_read(sq_t *sq, sq_table_t **tables, uint32_t *n_tables)
{
    *tables = NULL;
    *n_tables = 0;
    TRY(names_read(sq, tables, n_tables));
    for (uint32_t i = 0; i < *n_tables; i++) {
        TRY(columns_read(sq, &(*tables)[i]));
        TRY(indexes_read(sq, &(*tables)[i]));
    }
    return DB_SUCCESS;
}
