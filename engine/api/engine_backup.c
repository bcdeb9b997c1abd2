/* Hot backup of an open database, and what makes a database of a backup.

Place: top of the engine, above engine_guard.c; backup/ does the copying.

    prepare   backup_info read | copied log: is its end the backup's? | backup_log renamed to
              ib_logfile0, directory synced | recovery, clean close | backup_info says PREPARED,
              synced

Rules
1. A backup that fails is discarded by the call that meets it, and the database goes on.
2. A log that ends before the backup's end is refused: what is missing was committed.
3. Prepare is repeatable: the new name of the log changes nothing of what the directory is, recovery
   can be repeated, and the last step is one sector. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "api/api_int.h"
#include "backup/backup_info.h"

/* ---- on an open database ---- */

void engine_end_backup(engine_t *engine, bool remove)
{
    if (engine->backup != NULL) {
        if (remove) {
            backup_discard(engine->backup);
            engine->env.stats.backups_aborted++;
        }
        backup_free(engine->backup);
        engine->backup = NULL;
    }
    os_destroy(engine->backup_folder);
    engine->backup_folder = NULL;
}

/** Ends a call that has met err in the backup. */
static dberr_t engine_fail_backup(engine_t *engine, dberr_t err)
{
    if (!engine->env.io_failed) {
        err =
            err_set(&engine->env.err, DB_BACKUP_ABORTED, "the backup is given up: %.400s",
                    err == DB_OUT_OF_MEMORY ? "out of memory" : backup_error(engine->backup)->msg);
    }
    bool held = env_hold(&engine->env);
    engine_end_backup(engine, true);
    env_release(&engine->env, held);
    return engine->env.io_failed ? engine_leave(engine, DB_IO_ERROR) : err;
}

static dberr_t engine_enter_backup(engine_t *engine, const char *name)
{
    TRY(engine_enter(engine));
    if (engine->backup == NULL || strcmp(engine->backup_name, name) != 0) {
        return err_set(&engine->env.err, DB_NOT_FOUND, "no backup '%s' is running", name);
    }
    return DB_SUCCESS;
}

static dberr_t engine_begin_backup(engine_t *engine, os_t *target, bool lock)
{
    const backup_config_t config = {.no_lock = !lock, .interval = engine->options.backup_interval};
    err_sink_t why = {.msg = ""};
    dberr_t err = backup_start(engine->pool, target, &config, &why, &engine->backup);
    if (err == DB_SUCCESS || err == DB_ALREADY_EXISTS) {
        return err == DB_SUCCESS ? err : err_set(&engine->env.err, err, "%s", why.msg);
    }
    return err_set(&engine->env.err, DB_BACKUP_ABORTED, "no backup could be begun: %.400s",
                   why.msg);
}

dberr_t engine_start_backup(engine_t *engine, const char *name, bool lock)
{
    TRY(engine_enter(engine));
    if (engine->backup != NULL) {
        return err_set(&engine->env.err, DB_ALREADY_EXISTS, "the backup '%s' is running",
                       engine->backup_name);
    }
    char folder[NAME_LEN_MAX + sizeof(BACKUP_FOLDER_SUFFIX)];
    (void)snprintf(folder, sizeof(folder), "%s" BACKUP_FOLDER_SUFFIX, name);
    dberr_t err = os_folder_create(engine->env.os, folder, &engine->backup_folder);
    AND_THEN(err, engine_begin_backup(engine, engine->backup_folder, lock));
    if (err != DB_SUCCESS) {
        engine_end_backup(engine, false);
        return engine_explain(engine, err);
    }
    (void)snprintf(engine->backup_name, sizeof(engine->backup_name), "%s", name);
    return DB_SUCCESS;
}

dberr_t engine_step_backup(engine_t *engine, const char *name, uint32_t n_pages)
{
    TRY(engine_enter_backup(engine, name));
    dberr_t err = backup_step(engine->backup, n_pages);
    return err == DB_SUCCESS ? err : engine_fail_backup(engine, err);
}

/** The end of the backup that runs. */
static dberr_t engine_complete_backup(engine_t *engine)
{
    dberr_t err = backup_finish(engine->backup);
    if (err != DB_SUCCESS) {
        return engine_fail_backup(engine, err);
    }
    engine_end_backup(engine, false);
    return DB_SUCCESS;
}

dberr_t engine_finish_backup(engine_t *engine, const char *name)
{
    TRY(engine_enter_backup(engine, name));
    return engine_complete_backup(engine);
}

dberr_t engine_abort_backup(engine_t *engine, const char *name)
{
    TRY(engine_enter_backup(engine, name));
    engine_end_backup(engine, true);
    return DB_SUCCESS;
}

dberr_t engine_backup(engine_t *engine, os_t *target)
{
    TRY(engine_enter(engine));
    if (engine->backup != NULL) {
        return err_set(&engine->env.err, DB_ALREADY_EXISTS, "the backup '%s' is running",
                       engine->backup_name);
    }
    TRY(engine_begin_backup(engine, target, true));
    return engine_complete_backup(engine);
}

/* ---- prepare ---- */

/** Where the log in this file ends, which need not be damaged for that to be too early. */
static dberr_t prepare_log_end(env_t *env, const char *path, lsn_t *end_lsn)
{
    log_t *log = NULL;
    log_reader_t *reader = NULL;
    dberr_t err = log_open_path(env, path, &log);
    AND_THEN(err, log_reader_create(log, log_last_checkpoint(log)->lsn, &reader));
    log_group_t group;
    while (err == DB_SUCCESS) {
        err = log_reader_next(reader, &group);
    }
    if (err == DB_NOT_FOUND && reader != NULL) {
        *end_lsn = log_reader_end_lsn(reader);
        err = DB_SUCCESS;
    }
    log_reader_free(reader);
    log_close(log);
    return err == DB_NOT_FOUND ? err_refuse(&env->err, DB_UNRECOVERABLE, REFUSAL_LOG_MISSING,
                                            "the backup has no log")
                               : err;
}

/** The log under the name that recovery looks for, if it is long enough. */
static dberr_t prepare_log(env_t *env, const backup_info_t *info)
{
    bool copied = false;
    TRY(env_exists(env, BACKUP_LOG_NAME, &copied));
    lsn_t end_lsn = 0;
    TRY(prepare_log_end(env, copied ? BACKUP_LOG_NAME : LOG_FILE_NAME, &end_lsn));
    if (end_lsn < info->end_lsn) {
        return err_refuse(&env->err, DB_UNRECOVERABLE, REFUSAL_LOG_DAMAGED,
                          "the log of the backup ends at LSN %" PRIu64 ", not at %" PRIu64, end_lsn,
                          info->end_lsn);
    }
    if (copied) {
        TRY(env_rename(env, BACKUP_LOG_NAME, LOG_FILE_NAME));
        TRY(env_sync_dir(env));
    }
    return DB_SUCCESS;
}

static dberr_t prepare_recover(os_t *os, probe_t *probe, const engine_options_t *options,
                               engine_status_t *status, err_sink_t *err)
{
    engine_options_t own = *options;
    own.log_file_size = 0;
    own.log_format = 0;
    engine_t *engine = NULL;
    TRY(engine_open_backup(os, probe, &own, &engine, err));
    engine_get_status(engine, status);
    return engine_close(engine, true, err);
}

/** Looks at the directory, and brings its log into place. */
static dberr_t prepare_begin(env_t *env, backup_info_t *info)
{
    TRY(backup_info_read(env, info));
    switch (info->state) {
    case BACKUP_NONE:
        return err_set(&env->err, DB_NOT_FOUND, "no backup: there is no %s", BACKUP_INFO_NAME);
    case BACKUP_UNFINISHED:
        return err_refuse(&env->err, DB_UNRECOVERABLE, REFUSAL_BACKUP_UNFINISHED,
                          "the backup was not finished: there is no whole %s", BACKUP_INFO_NAME);
    case BACKUP_COPIED:
        return prepare_log(env, info);
    case BACKUP_PREPARED:
        /* Whoever wrote it may have been killed before its fsync. */
        return backup_info_sync(env);
    }
    return DB_CORRUPTION;
}

dberr_t engine_prepare(os_t *os, probe_t *probe, const engine_options_t *options,
                       engine_status_t *status, err_sink_t *err)
{
    env_t env = {.os = os, .probe = probe};
    backup_info_t info = {.state = BACKUP_NONE};
    *status = (engine_status_t){.recovered = false};
    dberr_t e = env_lock(&env);
    if (e == DB_SUCCESS) {
        e = prepare_begin(&env, &info);
        env_unlock(&env);
    }
    if (e == DB_SUCCESS && info.state == BACKUP_COPIED) {
        e = prepare_recover(os, probe, options, status, &env.err);
        if (e == DB_SUCCESS) {
            info.state = BACKUP_PREPARED;
            e = backup_info_write(&env, &info);
            status->stats.backups_prepared++;
        }
    }
    if (e != DB_SUCCESS) {
        if (env.err.msg[0] == '\0') {
            (void)err_set(&env.err, e, "%s", err_name(e));
        }
        err_copy(err, &env.err);
    }
    return e == DB_CORRUPTION ? DB_UNRECOVERABLE : e;
}
