/* Catalogue rows of tables and indexes, changed by ordinary transactions.

Place: ddl/, between dict/ (which knows what the rows hold) and the statements.

Rules
1. Every step of a DDL is one transaction whose commit is durable on return, whatever
   flush_log_at_trx_commit says: recovery decides by the catalogue what to finish and what to undo.
2. A change that fails leaves nothing: its transaction is rolled back. */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "ddl/ddl_int.h"
#include "dict/dict_sys.h"

#define ROW_COLS_MAX 2U /**< columns that one DDL step updates in a row */

env_t *ddl_env(const trx_sys_t *sys)
{
    return buf_env(trx_sys_pool(sys));
}

dberr_t ddl_commit(trx_sys_t *sys, const ddl_change_t *changes, uint32_t n)
{
    trx_t *trx = NULL;
    TRY(trx_begin(sys, &trx));
    dberr_t err = DB_SUCCESS;
    for (uint32_t i = 0; err == DB_SUCCESS && i < n; i++) {
        err = changes[i].rows(trx, trx_sys_dict(sys), &changes[i]);
    }
    if (err == DB_SUCCESS) {
        return trx_commit_durable(trx);
    }
    bool held = env_hold(ddl_env(sys));
    dberr_t rollback_err = trx_rollback(trx);
    env_release(ddl_env(sys), held);
    TRY(rollback_err);
    return err;
}

dberr_t ddl_commit_put(trx_sys_t *sys, const ddl_change_t *change, dict_table_t *table)
{
    dberr_t err = ddl_commit(sys, change, 1);
    if (err != DB_SUCCESS) {
        free(table);
        return err;
    }
    dict_table_put(trx_sys_dict(sys), table);
    return DB_SUCCESS;
}

dberr_t ddl_undo(trx_sys_t *sys, dberr_t err, ddl_undo_fn undo, void *ctx)
{
    env_t *env = ddl_env(sys);
    if (env->io_failed) {
        return err;
    }
    bool held = env_hold(env);
    dberr_t undo_err = undo(sys, ctx);
    env_release(env, held);
    TRY(undo_err);
    return err;
}

static dberr_t ddl_row_delete(trx_t *trx, dict_t *dict, sys_table_t which, const byte *row)
{
    dict_table_t *sys_table = dict_sys_table(dict, which);
    byte pk[SYS_ROW_MAX];
    dict_row_to_pk(sys_table, row, pk);
    return row_delete(trx, sys_table, pk);
}

static dberr_t ddl_row_update(trx_t *trx, dict_t *dict, sys_table_t which, const byte *row,
                              const uint32_t *cols, uint32_t n)
{
    dict_table_t *sys_table = dict_sys_table(dict, which);
    CHECK(n <= ROW_COLS_MAX);
    row_upd_t upd[ROW_COLS_MAX];
    for (uint32_t i = 0; i < n; i++) {
        upd[i].col = cols[i];
        upd[i].value = row + sys_table->cols[cols[i]].row_offset;
    }
    byte pk[SYS_ROW_MAX];
    dict_row_to_pk(sys_table, row, pk);
    return row_update(trx, sys_table, pk, upd, n);
}

static dberr_t ddl_index_insert(trx_t *trx, dict_t *dict, const dict_index_t *index)
{
    byte row[SYS_ROW_MAX];
    dict_sys_indexes_row(index, row);
    TRY(row_insert(trx, dict_sys_table(dict, SYS_INDEXES), row));
    for (uint32_t pos = 0; pos < index->n_fields; pos++) {
        dict_sys_fields_row(index, pos, row);
        TRY(row_insert(trx, dict_sys_table(dict, SYS_FIELDS), row));
    }
    return DB_SUCCESS;
}

dberr_t ddl_rows_insert_indexes(trx_t *trx, dict_t *dict, const ddl_change_t *change)
{
    for (uint32_t i = 0; i < change->n; i++) {
        TRY(ddl_index_insert(trx, dict, &change->indexes[i]));
    }
    return DB_SUCCESS;
}

static dberr_t ddl_index_delete(trx_t *trx, dict_t *dict, const dict_index_t *index)
{
    byte row[SYS_ROW_MAX];
    for (uint32_t pos = 0; pos < index->n_fields; pos++) {
        dict_sys_fields_row(index, pos, row);
        TRY(ddl_row_delete(trx, dict, SYS_FIELDS, row));
    }
    dict_sys_indexes_row(index, row);
    return ddl_row_delete(trx, dict, SYS_INDEXES, row);
}

dberr_t ddl_rows_delete_indexes(trx_t *trx, dict_t *dict, const ddl_change_t *change)
{
    for (uint32_t i = 0; i < change->n; i++) {
        TRY(ddl_index_delete(trx, dict, &change->indexes[i]));
    }
    return DB_SUCCESS;
}

dberr_t ddl_rows_update_indexes(trx_t *trx, dict_t *dict, const ddl_change_t *change)
{
    static const uint32_t COLS[] = {SYS_INDEXES_COL_NAME, SYS_INDEXES_COL_STATUS};
    for (uint32_t i = 0; i < change->n; i++) {
        byte row[SYS_ROW_MAX];
        dict_sys_indexes_row(&change->indexes[i], row);
        TRY(ddl_row_update(trx, dict, SYS_INDEXES, row, COLS, 2));
    }
    return DB_SUCCESS;
}

dberr_t ddl_rows_add_column(trx_t *trx, dict_t *dict, const ddl_change_t *change)
{
    static const uint32_t COLS[] = {SYS_TABLES_COL_N_COLS};
    const dict_table_t *table = change->table;
    byte row[SYS_ROW_MAX];
    if (table->cols[table->n_cols - 1].instant) {
        TRY(row_set_metadata(trx, table, change->row));
    }
    dict_sys_columns_row(table, table->n_cols - 1, row);
    TRY(row_insert(trx, dict_sys_table(dict, SYS_COLUMNS), row));
    dict_sys_tables_row(table, row);
    return ddl_row_update(trx, dict, SYS_TABLES, row, COLS, 1);
}

dberr_t ddl_rows_update_column(trx_t *trx, dict_t *dict, const ddl_change_t *change)
{
    static const uint32_t COLS[] = {SYS_COLUMNS_COL_NAME, SYS_COLUMNS_COL_LEN};
    byte row[SYS_ROW_MAX];
    dict_sys_columns_row(change->table, change->col, row);
    return ddl_row_update(trx, dict, SYS_COLUMNS, row, COLS, 2);
}

dberr_t ddl_rows_update_parts(trx_t *trx, dict_t *dict, const ddl_change_t *change)
{
    const dict_table_t *to = change->table;
    const dict_table_t *from = dict_table_by_id(dict, to->id);
    CHECK(from->n_cols == to->n_cols && from->n_indexes == to->n_indexes);
    for (uint32_t i = 0; i < to->n_cols; i++) {
        const ddl_change_t column = {.table = to, .col = i};
        if (strcmp(from->cols[i].name, to->cols[i].name) != 0) {
            TRY(ddl_rows_update_column(trx, dict, &column));
        }
    }
    for (uint32_t i = 0; i < to->n_indexes; i++) {
        const dict_index_t *index = &to->indexes[i];
        const ddl_change_t one = {.indexes = index, .n = 1};
        if (from->indexes[i].status != index->status
            || strcmp(from->indexes[i].name, index->name) != 0) {
            TRY(ddl_rows_update_indexes(trx, dict, &one));
        }
    }
    return DB_SUCCESS;
}

/** All indexes of a table. */
static ddl_change_t ddl_indexes_of(const dict_table_t *table)
{
    return (ddl_change_t){.indexes = table->indexes, .n = table->n_indexes};
}

dberr_t ddl_rows_insert_table(trx_t *trx, dict_t *dict, const ddl_change_t *change)
{
    const dict_table_t *table = change->table;
    const ddl_change_t indexes = ddl_indexes_of(table);
    byte row[SYS_ROW_MAX];
    dict_sys_tables_row(table, row);
    TRY(row_insert(trx, dict_sys_table(dict, SYS_TABLES), row));
    for (uint32_t pos = 0; pos < table->n_cols; pos++) {
        dict_sys_columns_row(table, pos, row);
        TRY(row_insert(trx, dict_sys_table(dict, SYS_COLUMNS), row));
    }
    return ddl_rows_insert_indexes(trx, dict, &indexes);
}

dberr_t ddl_rows_delete_table(trx_t *trx, dict_t *dict, const ddl_change_t *change)
{
    const dict_table_t *table = change->table;
    const ddl_change_t indexes = ddl_indexes_of(table);
    TRY(ddl_rows_delete_indexes(trx, dict, &indexes));
    byte row[SYS_ROW_MAX];
    for (uint32_t pos = 0; pos < table->n_cols; pos++) {
        dict_sys_columns_row(table, pos, row);
        TRY(ddl_row_delete(trx, dict, SYS_COLUMNS, row));
    }
    dict_sys_tables_row(table, row);
    return ddl_row_delete(trx, dict, SYS_TABLES, row);
}

dberr_t ddl_rows_update_table(trx_t *trx, dict_t *dict, const ddl_change_t *change)
{
    static const uint32_t COLS[] = {SYS_TABLES_COL_NAME, SYS_TABLES_COL_STATUS};
    byte row[SYS_ROW_MAX];
    dict_sys_tables_row(change->table, row);
    return ddl_row_update(trx, dict, SYS_TABLES, row, COLS, 2);
}
