/* ADD INDEX, one or several in one statement.

Place: ddl/, above ddl_build.c and ddl_load.c.

    begin   rows INCOMPLETE, durable; empty trees
    ...     the steps of a load
    commit  all READY in one durable transaction

Invariants
1. The new indexes are in the cached table object from the first commit on, INCOMPLETE: nobody uses
   or keeps them, recovery drops them.
2. As in InnoDB, pages of an interrupted load leave the flush list first; INDEX_LOAD follows; then
   the tree is freed, in many mtrs, amid checkpoints. So those pages stay that have a logged change
   which is not home (buf_observer_drop()): the root, made by a logged mtr, without which a crash
   would leave segments that nobody can free. */
#include <stdlib.h>

#include "base/check.h"
#include "ddl/ddl_online.h"

/** A copy of the table object with the new indexes behind the old ones, laid out and with ids. */
static dberr_t ddl_add_index_define(ddl_build_t *build, const ddl_alter_t *alter)
{
    dict_t *dict = trx_sys_dict(build->sys);
    err_sink_t *sink = &build_env(build)->err;
    dict_table_t *table = build->source;
    build->table = table;
    build->indexes = &table->indexes[table->n_indexes];
    TRY(ddl_alter_define(alter, table, sink));
    build->n = alter->n_defs;
    TRY(dict_table_layout(table, buf_page_size(build_pool(build)), sink));
    for (uint32_t i = 0; i < build->n; i++) {
        TRY(dict_new_index_id(dict, &build->indexes[i].id));
        build->indexes[i].tree.id = build->indexes[i].id;
    }
    return DB_SUCCESS;
}

static dberr_t ddl_add_index_commit(ddl_build_t *build)
{
    for (uint32_t i = 0; i < build->n; i++) {
        build->indexes[i].status = DICT_READY;
    }
    const ddl_change_t rows = {ddl_rows_update_indexes, .indexes = build->indexes, .n = build->n};
    TRY(ddl_build_commit(build, &rows));
    PROBE_POINT(build_env(build)->probe, "ddl.committed");
    return DB_SUCCESS;
}

static dberr_t ddl_add_index_discard(ddl_build_t *build)
{
    return ddl_indexes_remove(build->sys, build->indexes, build->n);
}

static dberr_t ddl_undo_trees(trx_sys_t *sys, void *ctx)
{
    const ddl_build_t *build = ctx;
    return ddl_indexes_remove(sys, build->indexes, build->n);
}

static dberr_t ddl_add_index_begin(ddl_build_t *build, const ddl_alter_t *alter)
{
    TRY(ddl_add_index_define(build, alter));
    TRY(ddl_load_prepare(build, alter));
    build->unlogged = buf_load_unlogged(build_pool(build), build->table->space);
    const ddl_change_t rows = {ddl_rows_insert_indexes, .indexes = build->indexes, .n = build->n};
    TRY(ddl_build_commit(build, &rows));
    PROBE_POINT(build_env(build)->probe, "ddl.create_logged");
    dberr_t err = ddl_trees_create(build->sys, build->indexes, build->n);
    return err == DB_SUCCESS ? err : ddl_undo(build->sys, err, ddl_undo_trees, build);
}

const ddl_statement_t DDL_ADD_INDEX = {
    .begin = ddl_add_index_begin,
    .steps =
        {
            {EACH_SCAN, ddl_step_scan, .share = 3, .position = ddl_scan_position},
            {EACH_INDEX, ddl_step_merge, .share = 3, .position = ddl_merge_position},
            {EACH_INDEX, ddl_step_load, .share = 4, .position = ddl_load_position,
             .undo = ddl_load_undo},
            {EACH_INDEX, ddl_step_flush, .wanted = build_is_unlogged, .undo = ddl_load_undo},
            {EACH_INDEX, ddl_step_sync, .wanted = build_is_unlogged, .undo = ddl_load_undo},
            {EACH_INDEX, ddl_step_index_load, .wanted = build_is_unlogged, .undo = ddl_load_undo},
            {EACH_INDEX, ddl_step_apply, .wanted = build_is_online, .share = 2},
            {UNTIL_COMMIT, ddl_step_catch_up, .wanted = ddl_online_is_behind, .share = 2,
             .position = ddl_online_position},
        },
    .commit = ddl_add_index_commit,
    .discard = ddl_add_index_discard,
};
