/* ALTER TABLE with ALGORITHM=COPY: a table as the statement wants it is made, and gets the rows of
the old one by ordinary inserts, with undo and redo and in no order but that of the scan.

Place: ddl/, beside ddl_rebuild.c, whose swap ends it.

    begin    rows of the new table INCOMPLETE | its file, page 0, empty trees | its indexes READY
    steps    a transaction each: rows of the old table are inserted
    commit   the swap of a rebuild

Invariants
1. A step is a transaction of its own, as MySQL has committed after each 10,000 rows: a crash rolls
   back one step, not the whole statement, and then recovery drops the table. No transaction is open
   between two steps.
2. The indexes are READY before the first row, so that inserts, rollback and purge keep them; the
   table is INCOMPLETE, so that nobody sees it and recovery drops it.
3. Rows of the new table have history, which purge visits like any other, before the swap too: it
   resets their ids (MDEV-12288), so each page is dirtied twice (I25).
4. The new table may have texts of other lengths (MODIFY COLUMN): a value that is too long ends the
   statement. */
#include <stdlib.h>

#include "base/check.h"
#include "ddl/ddl_build.h"

/** Invariant 2. */
static dberr_t ddl_copy_ready(ddl_build_t *build)
{
    for (uint32_t i = 0; i < build->table->n_indexes; i++) {
        build->table->indexes[i].status = DICT_READY;
    }
    const ddl_change_t rows = {ddl_rows_update_indexes, .indexes = build->table->indexes,
                               .n = build->table->n_indexes};
    TRY(ddl_build_commit(build, &rows));
    PROBE_POINT(build_env(build)->probe, "ddl.copy_begin");
    return DB_SUCCESS;
}

/* ---- steps ---- */

/** Where the rows go. */
typedef struct ddl_copy_to {
    trx_t *trx;
    dict_table_t *table;
} ddl_copy_to_t;

static dberr_t ddl_copy_row(ddl_build_t *build, void *ctx, const byte *row)
{
    const ddl_copy_to_t *to = ctx;
    TRY(ddl_build_row(build, row));
    return row_insert(to->trx, to->table, build->row);
}

static dberr_t ddl_step_copy(ddl_build_t *build, uint32_t max_rows, bool *over)
{
    env_t *env = build_env(build);
    trx_t *trx = NULL;
    TRY(trx_begin(build->sys, &trx));
    ddl_copy_to_t to = {.trx = trx,
                        .table = dict_table_by_id(trx_sys_dict(build->sys), build->table->id)};
    dberr_t err = ddl_scan_rows(build, max_rows, ddl_copy_row, &to, over);
    if (err == DB_SUCCESS) {
        err = trx_commit(trx);
        PROBE_POINT(env->probe, "ddl.copied");
        return err;
    }
    const dict_index_t *refused = trx_error_index(trx);
    bool held = env_hold(env);
    dberr_t undo_err = trx_rollback(trx);
    env_release(env, held);
    if (err == DB_DUPLICATE_KEY && undo_err == DB_SUCCESS) {
        const char *name = refused != NULL ? refused->name : build->table->indexes[0].name;
        build->duplicate = dict_index_get(build->table, name)->name;
        return DB_SUCCESS;
    }
    TRY(undo_err);
    return err;
}

/* ---- begin and commit ---- */

static dberr_t ddl_copy_commit(ddl_build_t *build)
{
    return ddl_rebuild_swap(build, &build_env(build)->stats.tables_copied);
}

static dberr_t ddl_copy_begin(ddl_build_t *build, const ddl_alter_t *alter)
{
    TRY(ddl_rebuild_define(build, alter, COPY_PREFIX));
    TRY(ddl_scan_prepare(build, 1));
    TRY(ddl_rebuild_make(build, 0));
    dberr_t err = ddl_copy_ready(build);
    return err == DB_SUCCESS ? err : ddl_table_undo(build->sys, build->table, err);
}

const ddl_statement_t DDL_COPY = {
    .begin = ddl_copy_begin,
    .steps = {{ONCE, ddl_step_copy, .share = 1, .position = ddl_scan_position}},
    .commit = ddl_copy_commit,
    .discard = ddl_rebuild_discard,
};
