/* FLUSH TABLES ... FOR EXPORT: a table's file as a thing of its own, until UNLOCK TABLES.

Place: ddl/, above ddl_build.c and ddl_cfg.c. A build that builds nothing and has the lock of one:
the rows can be read, not changed.

    begin   purge to its end, and stopped | all pages of the table home, fsynced | NAME.cfg, durable
    end     NAME.cfg gone, durably | purge goes on

Invariants
1. While it lasts nothing writes the file: no row changes, no definition does, purge rests, and no
   page is dirty.
2. The file has no history: no delete mark, no id of a transaction, no long value of an older
   version. So an import needs no undo log. That is why it is refused while purge rests: a
   transaction is open, or another table is exported. (InnoDB exports what is not purged, and lets
   the import clean up.)
3. The lock ends with the database handle: a .cfg that a crash leaves is removed by recovery. */
#include "ddl/ddl_build.h"
#include "ddl/ddl_cfg.h"

static dberr_t ddl_export_purge(trx_sys_t *sys)
{
    if (trx_sys_n_active(sys) > 0) {
        return err_set(&ddl_env(sys)->err, DB_TABLE_LOCKED,
                       "a table is exported without history: %u transaction(s) are open",
                       trx_sys_n_active(sys));
    }
    if (trx_purge_is_stopped(sys)) {
        return err_set(&ddl_env(sys)->err, DB_TABLE_LOCKED,
                       "a table is exported without history: another one is, and purge rests");
    }
    bool done = false;
    while (!done) {
        TRY(trx_purge_step(sys, 1000, &done));
    }
    return DB_SUCCESS;
}

static dberr_t ddl_export_end(ddl_build_t *build)
{
    TRY(ddl_cfg_remove(build_env(build), build->source->name));
    TRY(ddl_build_make_durable(build));
    trx_purge_resume(build->sys);
    return DB_SUCCESS;
}

static dberr_t ddl_undo_export(trx_sys_t *sys, void *ctx)
{
    (void)sys;
    return ddl_export_end(ctx);
}

static dberr_t ddl_export_begin(ddl_build_t *build, const ddl_alter_t *alter)
{
    buf_pool_t *pool = build_pool(build);
    build->table = build->source;
    (void)alter;
    TRY(ddl_refuse_in_system(build->sys, build->source));
    TRY(ddl_export_purge(build->sys));
    trx_purge_stop(build->sys);
    dberr_t err = buf_flush_for_export(pool, build->source->space);
    if (err == DB_SUCCESS) {
        const fil_space_t *space = fil_space_get(buf_fil(pool), build->source->space);
        const ddl_cfg_t cfg = {.page_size = buf_page_size(pool),
                               .size_pages = space->size_pages,
                               .table = build->source};
        PROBE_POINT(build_env(build)->probe, "ddl.export_flushed");
        err = ddl_cfg_write(build_env(build), &cfg);
    }
    if (err != DB_SUCCESS) {
        return ddl_undo(build->sys, err, ddl_undo_export, build);
    }
    build_env(build)->stats.tables_exported++;
    return DB_SUCCESS;
}

const ddl_statement_t DDL_EXPORT = {
    .begin = ddl_export_begin, .commit = ddl_export_end, .discard = ddl_export_end};
