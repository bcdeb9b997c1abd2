/* ALTER TABLE ... FORCE: a table is built anew, with all of its indexes, and takes the old one's
place. TRUNCATE TABLE: the same without rows, so that there are no steps between beginning and
commit.

Place: ddl/, above ddl_build.c, ddl_load.c and ddl_table.c.

    begin    rows of the new table INCOMPLETE, under an intermediate name | its file, page 0, empty
             trees
    ...      the steps of a load
    commit   in one transaction: the new table READY under the name, the old one DROPPING under
             #sql2-ID
             | old file renamed to #sql2-ID.ibd | new file renamed to NAME.ibd | old file deleted |
             old rows gone

Invariants
1. (I12) The bars are durable. Until the commit the catalogue has the old table and something
   INCOMPLETE; from then on the new one and something DROPPING. Recovery deletes what is not READY,
   then makes file names follow the catalogue, so that a crash anywhere leaves the old table or the
   new one, never two, never none.
2. The old file gives its name away before the new one takes it: at no time do two files want one
   name.
3. Rows of the new table have no history: their ids are 0. No open transaction has changed the old
   table, and the undo records of those that have are about a table that is gone (I25).
4. An interrupted build has nothing to give back page by page: its file is deleted, dirty pages and
   all.
5. A table of the system tablespace stays there, as with innodb_file_per_table=OFF: no file is made,
   renamed or deleted. What goes, old or unfinished, is freed tree by tree while its rows say that
   it is not READY, and a load that goes no further is undone as that of an index. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ddl/ddl_online.h"

static void ddl_intermediate_name(dict_table_t *table, const char *prefix)
{
    (void)snprintf(table->name, sizeof(table->name), "%s%" PRIu64, prefix, table->id);
}

/** What rows of the source become. */
static dberr_t ddl_map_rows(ddl_build_t *build, const ddl_alter_t *alter)
{
    const dict_col_t *col = alter->col;
    uint32_t row_size = build->table->row_size;
    uint32_t value_size = col != NULL ? col->row_offset + dict_col_row_len(col) : 0;
    build->row = malloc(row_size + value_size);
    if (build->row == NULL) {
        return err_set(&build_env(build)->err, DB_OUT_OF_MEMORY, "no memory for a row");
    }
    if (col != NULL) {
        build->map.added = *col;
        memcpy(build->row + row_size, alter->value, value_size);
    }
    build->map.from = build->source;
    build->map.value = build->row + row_size;
    ddl_alter_map(alter, build->source, build->table, build->map.cols);
    return DB_SUCCESS;
}

dberr_t ddl_rebuild_define(ddl_build_t *build, const ddl_alter_t *alter, const char *prefix)
{
    err_sink_t *sink = &build_env(build)->err;
    TRY(dict_table_copy(trx_sys_dict(build->sys), build->source, &build->table));
    TRY(ddl_alter_define(alter, build->table, sink));
    for (uint32_t i = 0; i < build->table->n_cols; i++) {
        build->table->cols[i].instant = false; /* its records have all of them */
    }
    TRY(dict_table_layout(build->table, buf_page_size(build_pool(build)), sink));
    TRY(ddl_table_identify(build->sys, build->table));
    ddl_intermediate_name(build->table, prefix);
    return ddl_map_rows(build, alter);
}

dberr_t ddl_rebuild_discard(ddl_build_t *build)
{
    return ddl_table_remove(build->sys, build->table);
}

/** Are rows in the order of the new primary key when they are in that of the old one? So they are
if one of the two begins with the other: the old one has no two rows of the same key. */
static bool ddl_order_stays(const ddl_build_t *build)
{
    const dict_index_t *from = &build->source->indexes[0];
    const dict_index_t *to = &build->table->indexes[0];
    for (uint32_t i = 0; i < from->n_fields && i < to->n_fields; i++) {
        if (build->map.cols[to->fields[i].col] != from->fields[i].col) {
            return false;
        }
    }
    return true;
}

/* ---- the swap ---- */

/** Both tables as they are from the commit on. */
static dberr_t ddl_swap_define(ddl_build_t *build, dict_table_t **old_table,
                               dict_table_t **new_table)
{
    dict_t *dict = trx_sys_dict(build->sys);
    dict_table_t *table = build->table;
    memcpy(table->name, build->source->name, sizeof(table->name));
    table->status = DICT_READY;
    for (uint32_t i = 0; i < table->n_indexes; i++) {
        table->indexes[i].status = DICT_READY;
    }
    TRY(dict_table_copy(dict, build->source, old_table));
    TRY(dict_table_copy(dict, table, new_table));
    (*old_table)->status = DICT_DROPPING;
    ddl_intermediate_name(*old_table, REPLACED_PREFIX);
    return DB_SUCCESS;
}

static dberr_t ddl_swap_file(trx_sys_t *sys, const dict_table_t *table)
{
    if (table->in_system) {
        return DB_SUCCESS;
    }
    char path[PATH_LEN_MAX + 1];
    fil_path_of_table(table->name, path);
    return ddl_file_rename(sys, fil_space_get(buf_fil(trx_sys_pool(sys)), table->space), path);
}

dberr_t ddl_rebuild_swap(ddl_build_t *build, uint64_t *counter)
{
    dict_t *dict = trx_sys_dict(build->sys);
    dict_table_t *old_table = NULL;
    dict_table_t *new_table = NULL;
    dberr_t err = ddl_swap_define(build, &old_table, &new_table);
    if (err == DB_SUCCESS) {
        const ddl_change_t rows[] = {
            {ddl_rows_update_table, .table = old_table},
            {ddl_rows_update_table, .table = new_table},
            {ddl_rows_update_indexes, .indexes = new_table->indexes, .n = new_table->n_indexes}};
        err = ddl_commit(build->sys, rows, 3);
    }
    if (err != DB_SUCCESS) {
        free(old_table);
        free(new_table);
        return err;
    }
    build->committed = true;
    dict_table_put(dict, old_table);
    dict_table_put(dict, new_table);
    PROBE_POINT(build_env(build)->probe, "ddl.committed");
    TRY(ddl_swap_file(build->sys, old_table));
    TRY(ddl_swap_file(build->sys, new_table));
    PROBE_POINT(build_env(build)->probe, "ddl.swapped");
    err = ddl_table_remove(build->sys, old_table);
    stats_t *stats = &build_env(build)->stats;
    *counter += err == DB_SUCCESS;
    uint32_t n_added = 0;
    for (uint32_t i = 0; i < build->table->n_cols; i++) {
        n_added += build->map.cols[i] == build->source->n_cols;
    }
    stats->columns_added += n_added;
    stats->columns_dropped += build->source->n_cols + n_added - build->table->n_cols;
    stats->primary_keys_changed +=
        build->source->indexes[0].n_fields != build->table->indexes[0].n_fields
        || !ddl_order_stays(build);
    return err;
}

static dberr_t ddl_rebuild_commit(ddl_build_t *build)
{
    return ddl_rebuild_swap(build, &build_env(build)->stats.tables_rebuilt);
}

/* ---- beginning ---- */

dberr_t ddl_rebuild_make(ddl_build_t *build, uint32_t size_pages)
{
    const ddl_change_t rows = {ddl_rows_insert_table, .table = build->table};
    TRY(ddl_build_commit(build, &rows));
    PROBE_POINT(build_env(build)->probe, "ddl.create_logged");
    dberr_t err = ddl_table_create_file(build->sys, build->table, size_pages);
    return err == DB_SUCCESS ? err : ddl_table_undo(build->sys, build->table, err);
}

static dberr_t ddl_rebuild_begin(ddl_build_t *build, const ddl_alter_t *alter)
{
    TRY(ddl_rebuild_define(build, alter, REBUILD_PREFIX));
    build->clustered = &build->table->indexes[0];
    build->resorted = !ddl_order_stays(build);
    build->indexes = &build->table->indexes[build->resorted ? 0 : 1];
    build->n = build->table->n_indexes - (build->resorted ? 0 : 1);
    build->own = malloc(build->source->indexes[0].tree.leaf_rec_size);
    if (build->own == NULL) {
        return err_set(&build_env(build)->err, DB_OUT_OF_MEMORY, "no memory for a record");
    }
    TRY(ddl_load_prepare(build, alter));
    if (build->table->in_system) {
        build->unlogged = buf_load_unlogged(build_pool(build), SPACE_SYSTEM);
    }
    return ddl_rebuild_make(build, 0);
}

const ddl_statement_t DDL_REBUILD = {
    .begin = ddl_rebuild_begin,
    .steps =
        {
            {EACH_SCAN, ddl_step_scan, .share = 3, .position = ddl_scan_position,
             .undo = ddl_load_undo},
            {EACH_INDEX, ddl_step_merge, .share = 3, .position = ddl_merge_position,
             .undo = ddl_load_undo},
            {EACH_INDEX, ddl_step_load, .share = 4, .position = ddl_load_position,
             .undo = ddl_load_undo},
            {ONCE, ddl_step_flush, .wanted = build_is_unlogged, .undo = ddl_load_undo},
            {ONCE, ddl_step_sync, .wanted = build_is_unlogged, .undo = ddl_load_undo},
            {ONCE, ddl_step_index_load, .wanted = build_is_unlogged, .undo = ddl_load_undo},
            {UNTIL_COMMIT, ddl_step_catch_up, .wanted = ddl_online_is_behind, .share = 2,
             .position = ddl_online_position},
        },
    .commit = ddl_rebuild_commit,
    .discard = ddl_rebuild_discard,
};

/* ---- TRUNCATE ---- */

static dberr_t ddl_truncate_begin(ddl_build_t *build, const ddl_alter_t *alter)
{
    TRY(ddl_rebuild_define(build, alter, REBUILD_PREFIX));
    return ddl_rebuild_make(build, 0);
}

static dberr_t ddl_truncate_commit(ddl_build_t *build)
{
    return ddl_rebuild_swap(build, &build_env(build)->stats.tables_truncated);
}

const ddl_statement_t DDL_TRUNCATE = {
    .begin = ddl_truncate_begin, .commit = ddl_truncate_commit, .discard = ddl_rebuild_discard};
