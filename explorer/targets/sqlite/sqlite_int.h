/** Private to verify_sqlite.c, sqlite_schema.c and sqlite_digest.c. */
#ifndef SQLITE_SQLITE_INT_H
#define SQLITE_SQLITE_INT_H

#include <sqlite3.h>

#include "check/check.h"

#define SQL_LEN_MAX 8192U /**< bytes of a query that is put together here */
#define TABLES_LIMIT 1024U
#define KEYS_MAX COLUMNS_MAX /**< key columns of an index */

typedef struct sq_column {
    char name[NAME_LEN_MAX + 1];
    uint32_t width;   /**< bytes of a CHAR, 0 for BIGINT */
    uint32_t primary; /**< position in the primary key from 1, or 0 */
} sq_column_t;

typedef struct sq_key {
    uint32_t column;
    uint32_t prefix; /**< bytes, 0 = the whole column */
} sq_key_t;

typedef struct sq_index {
    char sql_name[2 * NAME_LEN_MAX]; /**< NAME@LINE */
    char name[NAME_LEN_MAX + 1];
    bool unique;
    uint32_t n_keys;
    sq_key_t keys[KEYS_MAX];
} sq_index_t;

typedef struct sq_table {
    char name[NAME_LEN_MAX + 1];
    uint32_t n_columns;
    sq_column_t columns[COLUMNS_MAX];
    uint32_t n_primary;
    uint32_t primary[COLUMNS_MAX]; /**< column numbers in key order */
    uint32_t n_indexes;
    sq_index_t indexes[INDEXES_MAX]; /**< by name */
} sq_table_t;

typedef struct sq {
    sqlite3 *db;
    err_sink_t *err;
} sq_t;

/** SQLite's last error as a status, with its text. */
WARN_UNUSED dberr_t sq_error(sq_t *sq);
/** Prepares a query; *stmt is NULL after an error. */
WARN_UNUSED dberr_t sq_prepare(sq_t *sq, const char *sql, sqlite3_stmt **stmt);
/** Goes to the next row; *row is false at the end. */
WARN_UNUSED dberr_t sq_step(sq_t *sq, sqlite3_stmt *stmt, bool *row);

/** The tables by name; *tables is the caller's to free(), also after an error (it may be NULL). */
WARN_UNUSED dberr_t sq_schema_read(sq_t *sq, sq_table_t **tables, uint32_t *n_tables);
/** Reads the rows of a table, and each index through itself. */
WARN_UNUSED dberr_t sq_table_digest(sq_t *sq, const sq_table_t *table, check_table_t *out);

#endif
