/* The database handle: opens the layers below in the right order, and lets go of them again.

Place: top of the engine, beside engine_calls.c; cli/ and tests are above it.

    open    directory | lock | redo log header | fil, buf | recv_redo | dict, trx | recv_finish |
            drain if log_optimize_ddl, or optimize_ddl_drain, is not what it was
    close   end the backup, abort builds, roll back | full checkpoint | trx, dict, buf, fil, log |
            unlock

Rules
1. What is fixed at creation (page, extent and redo size) is read from the redo log's header, which
   no torn data page can damage, the number of undo tablespaces from the TRX_SYS page; an option
   that says otherwise is refused, never adapted; the log alone can be converted.
2. What is no data directory is left as it is, without even a lock file.
3. (I23) A poisoned handle cannot be closed cleanly: it lets go, and the next open recovers. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "api/api_int.h"
#include "recv/recv.h"

#define PAGE_SIZE_DEFAULT 4096U
#define LOG_FILE_SIZE_DEFAULT (1ULL << 20)

/* ---- open ---- */

static dberr_t engine_resolve_new(engine_t *engine)
{
    engine_options_t *o = &engine->options;
    if (o->page_size == 0) {
        o->page_size = PAGE_SIZE_DEFAULT;
    }
    if (o->log_format == 0) {
        o->log_format = LOG_FORMAT_10_4;
    }
    if (o->extent_pages == 0) {
        o->extent_pages = extent_pages_default(o->page_size);
    }
    uint64_t least = (uint64_t)LOG_FILE_SIZE_MIN_PAGES * o->page_size;
    if (o->log_file_size == 0) {
        o->log_file_size = least > LOG_FILE_SIZE_DEFAULT ? least : LOG_FILE_SIZE_DEFAULT;
    }
    return options_validate(o, &engine->env.err);
}

static dberr_t engine_resolve_existing(engine_t *engine)
{
    engine_options_t *o = &engine->options;
    const log_file_info_t *info = log_info(engine->log);
    if (o->page_size != 0 && o->page_size != info->page_size) {
        return err_set(&engine->env.err, DB_ERROR, "page_size is %u in this directory, not %u",
                       info->page_size, o->page_size);
    }
    if (o->extent_pages != 0 && o->extent_pages != info->extent_pages) {
        return err_set(&engine->env.err, DB_ERROR, "extent_pages is %u in this directory, not %u",
                       info->extent_pages, o->extent_pages);
    }
    if (o->log_file_size != 0 && o->log_file_size != info->file_size) {
        return err_set(&engine->env.err, DB_ERROR,
                       "log_file_size is %" PRIu64 " in this directory, not %" PRIu64,
                       info->file_size, o->log_file_size);
    }
    o->log_format = info->format_id;
    o->page_size = info->page_size;
    o->extent_pages = info->extent_pages;
    o->log_file_size = info->file_size;
    return DB_SUCCESS;
}

/** Refuses what is no database and must not become one. */
static dberr_t engine_check_kind(env_t *env, bool create, dir_kind_t *kind)
{
    err_sink_t *sink = &env->err;
    dberr_t err = engine_dir_inspect(env, kind);
    if (err != DB_SUCCESS || *kind == DIR_DATABASE || *kind == DIR_CONVERTING) {
        return err;
    }
    if (*kind == DIR_BACKUP) {
        return err_refuse(sink, DB_UNRECOVERABLE, REFUSAL_BACKUP_UNPREPARED,
                          "a backup that is not prepared: `engine prepare` makes it a database");
    }
    if (*kind == DIR_NO_LOG) {
        return err_refuse(sink, DB_UNRECOVERABLE, REFUSAL_LOG_MISSING,
                          "redo log missing: there are data files, but no %s", LOG_FILE_NAME);
    }
    if (*kind == DIR_FOREIGN) {
        return err_set(sink, DB_NOT_FOUND, "not a data directory: it holds other files");
    }
    if (create) {
        return DB_SUCCESS;
    }
    return err_set(sink, DB_NOT_FOUND,
                   *kind == DIR_EMPTY ? "not a data directory: it is empty"
                                      : "no database here: its creation was interrupted");
}

dberr_t engine_check_dir(os_t *os, err_sink_t *err)
{
    probe_t probe = {.point = NULL};
    env_t env = {.os = os, .probe = &probe};
    dir_kind_t kind = DIR_EMPTY;
    dberr_t e = engine_check_kind(&env, false, &kind);
    err_copy(err, &env.err);
    return e;
}

/** Removes the log that was to take the place of the one in force. */
static dberr_t engine_drop_leftover(env_t *env)
{
    TRY(env_unlink(env, LOG_FILE_TMP_NAME));
    return env_sync_dir(env);
}

/** Locks the directory and creates the database if there is none. */
static dberr_t engine_open_dir(engine_t *engine, bool create)
{
    /* Looked at before the lock, which creates a file: what is no database is left as it is. */
    dir_kind_t kind = DIR_EMPTY;
    dberr_t err = engine_check_kind(&engine->env, create, &kind);
    if (err == DB_SUCCESS) {
        err = env_lock(&engine->env);
        engine->locked = err == DB_SUCCESS;
    }
    if (err == DB_SUCCESS && kind != DIR_DATABASE) {
        err = engine_check_kind(&engine->env, create, &kind);
    }
    if (err == DB_SUCCESS && kind == DIR_CONVERTING) {
        return engine_drop_leftover(&engine->env);
    }
    if (err != DB_SUCCESS || kind == DIR_DATABASE) {
        return err;
    }
    engine_options_t asked = engine->options;
    err = engine_resolve_new(engine);
    AND_THEN(err, engine_bootstrap(&engine->env, &engine->options));
    engine->options = asked;
    return err;
}

static bool engine_was_recovered(const stats_t *stats)
{
    return stats->recv_records > 0 || stats->recv_dblwr_restored > 0
           || stats->recv_pages_created > 0 || stats->recv_trx_rolled_back > 0
           || stats->recv_indexes_dropped > 0 || stats->recv_tables_dropped > 0
           || stats->recv_swaps_finished > 0;
}

/** Opens the log. One of another format than wanted, or of an earlier engine, is converted first,
if nothing has to be recovered from it. */
static dberr_t engine_open_log(engine_t *engine)
{
    env_t *env = &engine->env;
    uint32_t wanted = engine->options.log_format;
    dberr_t err = log_open(env, &engine->log);
    bool other = err == DB_SUCCESS && wanted != 0 && wanted != log_info(engine->log)->format_id;
    if (err != DB_UNSUPPORTED && !other) {
        return err;
    }
    log_close(engine->log);
    engine->log = NULL;
    TRY(log_convert(env, wanted));
    return log_open(env, &engine->log);
}

static dberr_t engine_open_layers(engine_t *engine)
{
    env_t *env = &engine->env;
    dberr_t err = engine_open_log(engine);
    AND_THEN(err, engine_resolve_existing(engine));
    if (err == DB_SUCCESS) {
        log_set_write_through(engine->log, engine->options.log_write_through);
        err = fil_create(env, engine->log, engine->options.page_size, engine->options.open_files,
                         &engine->fil);
    }
    if (err == DB_SUCCESS) {
        /* The log that is there was written in this mode, and so are recovery's changes. */
        engine_options_t recovery = engine->options;
        recovery.log_optimize_ddl = log_last_checkpoint(engine->log)->loads == LOG_LOADS_UNLOGGED;
        err = buf_pool_create(env, engine->log, engine->fil, &recovery, &engine->pool);
    }
    AND_THEN(err, recv_redo(engine->log, engine->fil, engine->pool, &engine->options));
    AND_THEN(err, dict_open(engine->pool, &engine->dict));
    AND_THEN(err, trx_sys_open(engine->pool, engine->dict, engine->options.flush_log_at_trx_commit,
                               &engine->sys));
    TRY(err);
    /* Loads the user tables, after the catalogue's own transactions were rolled back. */
    TRY(recv_finish(engine->sys));
    uint32_t wanted = engine->options.undo_tablespaces;
    if (wanted != 0 && wanted != trx_sys_n_undo_spaces(engine->sys)) {
        return err_set(&env->err, DB_ERROR, "there are no undo tablespaces in this directory");
    }
    trx_sys_set_purge(engine->sys, engine->options.purge_interval,
                      engine->options.max_undo_log_size);
    return buf_set_log_optimize_ddl(engine->pool, engine->options.log_optimize_ddl,
                                    !engine->options.optimize_ddl_drain);
}

static void engine_free(engine_t *engine)
{
    engine_end_backup(engine, false);
    engine_free_builds(engine);
    trx_sys_close(engine->sys);
    dict_close(engine->dict);
    buf_pool_free(engine->pool);
    fil_close(engine->fil);
    log_close(engine->log);
    if (engine->locked) {
        env_unlock(&engine->env);
    }
    free(engine->open);
    free(engine);
}

/** Takes a backup whose log is in place for the database that it is becoming. */
static dberr_t engine_open_prepared_dir(engine_t *engine)
{
    dberr_t err = env_lock(&engine->env);
    engine->locked = err == DB_SUCCESS;
    return err;
}

static dberr_t engine_open_any(os_t *os, probe_t *probe, const engine_options_t *options,
                               bool create, bool backup, engine_t **out, err_sink_t *err)
{
    engine_t *engine = calloc(1, sizeof(*engine));
    if (engine == NULL) {
        return err_set(err, DB_OUT_OF_MEMORY, "no memory for a database handle");
    }
    engine->env.os = os;
    engine->env.probe = probe;
    engine->env.err.probe = probe;
    engine->env.sched.state = options->schedule_seed;
    engine->options = *options;
    dberr_t e = options_validate(options, &engine->env.err);
    AND_THEN(e, backup ? engine_open_prepared_dir(engine) : engine_open_dir(engine, create));
    AND_THEN(e, engine_open_layers(engine));
    if (e != DB_SUCCESS) {
        e = engine_explain(engine, e);
        err_copy(err, &engine->env.err);
        engine_free(engine);
        return e;
    }
    engine->recovered = engine_was_recovered(&engine->env.stats);
    *out = engine;
    return DB_SUCCESS;
}

dberr_t engine_open(os_t *os, probe_t *probe, const engine_options_t *options, bool create,
                    engine_t **out, err_sink_t *err)
{
    return engine_open_any(os, probe, options, create, false, out, err);
}

dberr_t engine_open_backup(os_t *os, probe_t *probe, const engine_options_t *options,
                           engine_t **out, err_sink_t *err)
{
    return engine_open_any(os, probe, options, false, true, out, err);
}

dberr_t engine_close(engine_t *engine, bool clean, err_sink_t *message)
{
    dberr_t err = clean && engine->env.io_failed ? DB_IO_ERROR : DB_SUCCESS;
    if (clean) {
        engine_end_backup(engine, err == DB_SUCCESS);
        AND_THEN(err, engine_abort_builds(engine));
        while (err == DB_SUCCESS && engine->n_open > 0) {
            err = trx_rollback(engine->open[--engine->n_open]);
        }
        AND_THEN(err, buf_checkpoint_last(engine->pool));
    }
    if (err != DB_SUCCESS) {
        err = engine_explain(engine, err);
        err_copy(message, &engine->env.err);
    }
    engine_free(engine);
    return err;
}

const char *engine_error(const engine_t *engine)
{
    return engine->env.err.msg;
}

void engine_get_status(const engine_t *engine, engine_status_t *status)
{
    ddl_progress_t progress;
    engine_builds_progress(engine, &progress);
    *status = (engine_status_t){
        .ignores_log_optimize_ddl = !log_format(engine->log)->unlogged_loads,
        .page_size = engine->options.page_size,
        .log_file_size = engine->options.log_file_size,
        .lsn_current = log_lsn(engine->log),
        .lsn_flushed = log_flushed_lsn(engine->log),
        .lsn_last_checkpoint = log_checkpoint_lsn(engine->log),
        .checkpoint_age = log_lsn(engine->log) - log_checkpoint_lsn(engine->log),
        .dirty_pages = buf_dirty_pages(engine->pool),
        .history_len = trx_sys_history_len(engine->sys),
        .active_trx = trx_sys_n_active(engine->sys),
        .onlineddl_rowlog_rows = progress.rowlog_records,
        .onlineddl_rowlog_pct_used = progress.rowlog_pct_used,
        .onlineddl_pct_progress = progress.pct_progress,
        .recovered = engine->recovered,
        .poisoned = engine->env.io_failed,
        .stats = engine->env.stats,
    };
}
