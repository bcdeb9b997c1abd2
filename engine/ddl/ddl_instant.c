/* ADD COLUMN with ALGORITHM=INSTANT (MDEV-11369): no row is touched.

Place: ddl/, beside ddl_alter.c.

    undo record | metadata record and instant mark of the root | rows of the catalogue | commit

Rules
1. One transaction, one durable commit: a crash before it takes back metadata, mark and rows.
2. The metadata record has the values of all columns that came this way. Records that are written
   later have the column themselves, but for those that a rollback brings back without it.
3. What keeps records of both sorts apart is that they have sizes of their own; so a table of fixed
   columns is built anew. The values lie in one record: no long ones.
4. A table whose tree has no record needs no metadata. */
#include <stdlib.h>

#include "base/check.h"
#include "ddl/ddl_int.h"

const char *ddl_instant_why(const ddl_alter_t *alter, const dict_table_t *table)
{
    uint32_t len = 0;
    if (!table->indexes[0].tree.leaf_varies) {
        return "records of the table have one size";
    }
    if (alter->after != NULL) {
        return "the place of an instant column is the last one";
    }
    if (alter->col->type == DICT_VARCHAR && !dict_col_is_null(alter->col, alter->value)) {
        (void)dict_col_value(alter->col, alter->value, &len);
    }
    return len > DICT_LOCAL_MAX ? "the value is too long for the metadata record" : NULL;
}

/** The row of the metadata record: the values of earlier instant columns, and the new one's. */
static dberr_t instant_row(trx_sys_t *sys, const ddl_alter_t *alter, const dict_table_t *table,
                           const dict_table_t *changed, byte *old, byte *row)
{
    dict_row_map_t map = {.from = table, .added = *alter->col, .value = alter->value};
    ddl_alter_map(alter, table, changed, map.cols);
    dict_row_init(table, old);
    if (table->n_core < table->n_cols) {
        TRY(dict_meta_read(trx_sys_pool(sys), table, old));
    }
    return dict_row_convert(&map, old, changed, row, &ddl_env(sys)->err);
}

/** The table with the column. */
static dberr_t instant_define(trx_sys_t *sys, const ddl_alter_t *alter, dict_table_t *table)
{
    err_sink_t *sink = &ddl_env(sys)->err;
    bool empty = false;
    TRY(ddl_alter_define(alter, table, sink));
    TRY(btr_is_empty(trx_sys_pool(sys), &table->indexes[0].tree, &empty));
    table->cols[table->n_cols - 1].instant = !empty;
    return dict_table_layout(table, buf_page_size(trx_sys_pool(sys)), sink);
}

dberr_t ddl_add_column_instant(trx_sys_t *sys, const ddl_alter_t *alter)
{
    env_t *env = ddl_env(sys);
    dict_table_t *table = NULL;
    dict_table_t *changed = NULL;
    TRY(ddl_table_lock(sys, alter->table, &table));
    TRY(dict_table_copy(trx_sys_dict(sys), table, &changed));
    byte *rows = malloc((size_t)2 * ROW_SIZE_MAX);
    dberr_t err = rows != NULL ? instant_define(sys, alter, changed)
                               : err_set(&env->err, DB_OUT_OF_MEMORY, "no memory for a row");
    AND_THEN(err, instant_row(sys, alter, table, changed, rows, rows + ROW_SIZE_MAX));
    if (err == DB_SUCCESS) {
        const ddl_change_t change = {ddl_rows_add_column, .table = changed,
                                     .row = rows + ROW_SIZE_MAX};
        err = ddl_commit_put(sys, &change, changed);
    } else {
        free(changed);
    }
    free(rows);
    TRY(err);
    PROBE_POINT(env->probe, "ddl.committed");
    env->stats.alters_instant++;
    env->stats.columns_added_instant++;
    return DB_SUCCESS;
}
