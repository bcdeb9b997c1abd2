/* What needs no new table: ADD INDEX, one or several in one statement, alone or with DROP INDEX and
other names of indexes and columns.

Place: ddl/, above ddl_build.c and ddl_load.c.

    begin   rows of new indexes INCOMPLETE, durable; empty trees
    ...     the steps of a load
    commit  in one durable transaction: new indexes READY, those that go DROPPING, other names
            | of each one that goes: its tree freed, its rows gone

Invariants
1. The new indexes are in the cached table object from the first commit on, INCOMPLETE: nobody uses
   or keeps them, recovery drops them. Until the commit everything else is as it was; an index that
   goes is kept, and one that takes its name stands beside it.
2. The bar is durable: from the commit on recovery only has to free what is DROPPING.
3. As in InnoDB, pages of an interrupted load leave the flush list first; INDEX_LOAD follows; then
   the tree is freed, in many mtrs, amid checkpoints. So those pages stay that have a logged change
   which is not home (buf_observer_drop()): the root, made by a logged mtr, without which a crash
   would leave segments that nobody can free. */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "ddl/ddl_online.h"

/** A copy of the table object with the new indexes behind the old ones, with ids; own: what the
statement makes of the table. */
static dberr_t ddl_in_place_define(ddl_build_t *build, const ddl_alter_t *alter)
{
    dict_t *dict = trx_sys_dict(build->sys);
    err_sink_t *sink = &build_env(build)->err;
    dict_table_t *table = build->source;
    dict_table_t *result = NULL;
    build->table = table;
    TRY(dict_table_copy(dict, table, &result));
    build->own = result;
    TRY(ddl_alter_define(alter, result, sink));
    TRY(dict_table_layout(result, buf_page_size(build_pool(build)), sink));
    build->n = build->n_new;
    build->indexes = &table->indexes[table->n_indexes];
    for (uint32_t i = 0; i < build->n; i++) {
        dict_index_t *index = &build->indexes[i];
        *index = result->indexes[result->n_indexes - build->n + i];
        TRY(dict_new_index_id(dict, &index->id));
        index->tree.id = index->id;
        table->n_indexes++;
    }
    /* Those that go are beside the new ones until they are gone: undo records have room for all. */
    return dict_table_layout(table, buf_page_size(build_pool(build)), sink);
}

/* ---- commit ---- */

/** What the statement makes of an index that was there; NULL: it goes. */
static const dict_index_t *ddl_in_place_result(const dict_table_t *result, index_id_t id)
{
    for (uint32_t i = 0; i < result->n_indexes; i++) {
        if (result->indexes[i].id == id) {
            return &result->indexes[i];
        }
    }
    return NULL;
}

/** All of the statement, in the table object. */
static void ddl_in_place_apply(ddl_build_t *build)
{
    dict_table_t *table = build->table;
    const dict_table_t *result = build->own;
    for (uint32_t i = 0; i < table->n_cols; i++) {
        memcpy(table->cols[i].name, result->cols[i].name, sizeof(table->cols[i].name));
    }
    for (uint32_t i = 0; i < table->n_indexes - build->n; i++) {
        dict_index_t *index = &table->indexes[i];
        const dict_index_t *other = ddl_in_place_result(result, index->id);
        if (other != NULL) {
            memcpy(index->name, other->name, sizeof(index->name));
        } else {
            index->status = DICT_DROPPING;
        }
    }
    for (uint32_t i = 0; i < build->n; i++) {
        build->indexes[i].status = DICT_READY;
    }
}

static dberr_t ddl_in_place_commit(ddl_build_t *build)
{
    ddl_in_place_apply(build);
    dict_table_t *table = build->table;
    const ddl_change_t rows = {ddl_rows_update_parts, .table = table};
    TRY(ddl_build_commit(build, &rows));
    build->committed = true;
    PROBE_POINT(build_env(build)->probe, "ddl.committed");
    for (uint32_t i = 0; i < table->n_indexes; i++) {
        if (table->indexes[i].status == DICT_DROPPING) {
            build_env(build)->stats.indexes_dropped++;
            TRY(ddl_indexes_remove(build->sys, &table->indexes[i], 1));
        }
    }
    return DB_SUCCESS;
}

/* ---- beginning, and giving up ---- */

static dberr_t ddl_in_place_discard(ddl_build_t *build)
{
    return build->n > 0 ? ddl_indexes_remove(build->sys, build->indexes, build->n) : DB_SUCCESS;
}

static dberr_t ddl_undo_trees(trx_sys_t *sys, void *ctx)
{
    const ddl_build_t *build = ctx;
    return ddl_indexes_remove(sys, build->indexes, build->n);
}

static dberr_t ddl_in_place_begin(ddl_build_t *build, const ddl_alter_t *alter)
{
    TRY(ddl_in_place_define(build, alter));
    TRY(ddl_load_prepare(build, alter));
    build->unlogged = buf_load_unlogged(build_pool(build), build->table->space);
    if (build->n == 0) {
        return ddl_build_make_durable(build);
    }
    const ddl_change_t rows = {ddl_rows_insert_indexes, .indexes = build->indexes, .n = build->n};
    TRY(ddl_build_commit(build, &rows));
    PROBE_POINT(build_env(build)->probe, "ddl.create_logged");
    dberr_t err = ddl_trees_create(build->sys, build->indexes, build->n);
    return err == DB_SUCCESS ? err : ddl_undo(build->sys, err, ddl_undo_trees, build);
}

static bool ddl_has_new(const ddl_build_t *build)
{
    return build->n > 0;
}

const ddl_statement_t DDL_IN_PLACE = {
    .begin = ddl_in_place_begin,
    .steps =
        {
            {EACH_SCAN, ddl_step_scan, .wanted = ddl_has_new, .share = 3,
             .position = ddl_scan_position},
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
    .commit = ddl_in_place_commit,
    .discard = ddl_in_place_discard,
};
