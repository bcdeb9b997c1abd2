/* ALTER TABLE with ALGORITHM=COPY: a table as the statement wants it is made, and gets the rows of the old one by
ordinary inserts, with undo and redo and in no order but that of the scan.

Place: ddl/, beside ddl_rebuild.c, whose swap ends it.

    begin    rows of the new table INCOMPLETE | its file, page 0, empty trees | its indexes READY
    steps    a transaction each: rows of the old table are inserted
    commit   the swap of a rebuild

Invariants
1. A step is a transaction of its own, as MySQL has committed after each 10,000 rows: a crash rolls back one step,
   not the whole statement, and then recovery drops the table. No transaction is open between two steps.
2. The indexes are READY before the first row, so that inserts, rollback and purge keep them; the table is INCOMPLETE, so
   that nobody sees it and recovery drops it.
3. Rows of the new table have history, which purge visits like any other, before the swap too: it resets their ids
   (MDEV-12288), so each page is dirtied twice (I25). */
#include <stdlib.h>

#include "ddl/ddl_build.h"

static dberr_t ddl_copy_ready_rows(trx_t *trx, void *ctx)
{
    const ddl_build_t *build = ctx;
    dberr_t err = DB_SUCCESS;
    for (uint32_t i = 0; err == DB_SUCCESS && i < build->table->n_indexes; i++) {
        err = ddl_rows_update_index(trx, trx_sys_dict(build->sys), &build->table->indexes[i]);
    }
    return err;
}

/** Invariant 2. */
static dberr_t ddl_copy_ready(ddl_build_t *build)
{
    dict_t *dict = trx_sys_dict(build->sys);
    dict_table_t *cached = NULL;
    for (uint32_t i = 0; i < build->table->n_indexes; i++) {
        build->table->indexes[i].status = DICT_READY;
    }
    dberr_t err = dict_table_copy(dict, build->table, &cached);
    if (err == DB_SUCCESS) {
        err = ddl_commit(build->sys, ddl_copy_ready_rows, build);
    }
    if (err != DB_SUCCESS) {
        free(cached);
        return err;
    }
    dict_table_put(dict, cached);
    PROBE_POINT(build_env(build)->probe, "ddl.copy_begin");
    return DB_SUCCESS;
}

/* ---- steps ---- */

/** Which unique index has refused a row? The first that is new; the others had no duplicates. */
static void ddl_copy_duplicate(ddl_build_t *build)
{
    build->phase = DDL_DUPLICATE;
    build->duplicate = "";
    for (uint32_t i = build->source->n_indexes; i < build->table->n_indexes; i++) {
        if (build->table->indexes[i].unique) {
            build->duplicate = build->table->indexes[i].name;
            return;
        }
    }
}

static dberr_t ddl_copy_rows(ddl_build_t *build, trx_t *trx, uint32_t max_rows)
{
    dict_table_t *to = dict_table_by_id(trx_sys_dict(build->sys), build->table->id);
    dberr_t end = DB_SUCCESS;
    for (uint32_t n = 0; n < max_rows && end == DB_SUCCESS; n += BATCH_ROWS) {
        uint32_t left = max_rows - n;
        end = ddl_build_fetch(build, left < BATCH_ROWS ? left : BATCH_ROWS);
        dberr_t err = end == DB_NOT_FOUND ? DB_SUCCESS : end;
        for (uint32_t i = 0; err == DB_SUCCESS && i < build->n_rows; i++) {
            err = row_insert(trx, to, build->batch + (size_t)i * build->source->row_size);
        }
        if (err != DB_SUCCESS) {
            return err;
        }
    }
    return end;
}

dberr_t ddl_step_copy(ddl_build_t *build, uint32_t max_rows)
{
    env_t *env = build_env(build);
    trx_t *trx = NULL;
    dberr_t err = trx_begin(build->sys, &trx);
    if (err != DB_SUCCESS) {
        return err;
    }
    err = ddl_copy_rows(build, trx, max_rows);
    if (err == DB_SUCCESS || err == DB_NOT_FOUND) {
        build->phase = err == DB_NOT_FOUND ? DDL_COMMIT : DDL_COPY;
        err = trx_commit(trx);
        PROBE_POINT(env->probe, "ddl.copied");
        return err;
    }
    bool held = env_hold(env);
    dberr_t undo_err = trx_rollback(trx);
    env_release(env, held);
    if (err == DB_DUPLICATE_KEY && undo_err == DB_SUCCESS) {
        ddl_copy_duplicate(build);
        return DB_SUCCESS;
    }
    return undo_err == DB_SUCCESS ? err : undo_err;
}

/* ---- begin and commit ---- */

static dberr_t ddl_copy_commit(ddl_build_t *build)
{
    dberr_t err = ddl_rebuild_swap(build);
    build_env(build)->stats.tables_copied += err == DB_SUCCESS;
    return err;
}

static const ddl_build_kind_t COPY = {.commit = ddl_copy_commit, .discard = ddl_rebuild_discard};

static dberr_t ddl_copy_start(ddl_build_t *build, const ddl_alter_t *alter)
{
    env_t *env = build_env(build);
    dberr_t err = ddl_rebuild_define(build, alter, COPY_PREFIX);
    if (err == DB_SUCCESS) {
        err = ddl_build_prepare(build, DDL_COPY);
    }
    if (err == DB_SUCCESS) {
        err = ddl_rebuild_make(build);
    }
    if (err != DB_SUCCESS) {
        return err;
    }
    err = ddl_copy_ready(build);
    if (err != DB_SUCCESS && !env->io_failed) {
        bool held = env_hold(env);
        dberr_t undo_err = ddl_rebuild_discard(build);
        env_release(env, held);
        err = undo_err == DB_SUCCESS ? err : undo_err;
    }
    return err;
}

dberr_t ddl_copy_begin(trx_sys_t *sys, const ddl_alter_t *alter, const dict_table_t *table,
                       ddl_build_t **out)
{
    ddl_build_t *build = NULL;
    dberr_t err = ddl_build_create(sys, &COPY, table, 0, &build);
    if (err == DB_SUCCESS) {
        err = ddl_copy_start(build, alter);
    }
    if (err != DB_SUCCESS) {
        ddl_build_free(build);
        return err;
    }
    dict_table_set_building(trx_sys_dict(sys), build->source->id, true);
    *out = build;
    return DB_SUCCESS;
}
