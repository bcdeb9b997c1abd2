/* The steps of a hot backup.

Place: above buf/ (whose yield points it works at), fil/ and log/; below api/.

    begun   log followed from the checkpoint in force on | files copied, page by page, as they are
            found
    finish  files that are new, and the rest | log to its end, sealed | loads in it: those files
            again | log to its end, sealed | copies get their names | directory synced |
            backup_info, synced | directory synced

Rules
1. The copy of the log holds everything from a checkpoint before the first page to an LSN behind the
   last one, so a page may be as old as that checkpoint and as new as that end.
2. A load without redo is in the file and nowhere else. Its INDEX_LOAD comes when the file has it: a
   copy that began later has it too; any other is made again at the end, when no load can follow
   (10.4; a 10.5 log has none). With no_lock nothing is copied again, and the backup fails instead.
3. The names are those at the end; what the log says of files before is repeated on them without
   effect.
4. backup_info comes last: with it the backup is whole.
5. What fails in the target is the backup's own affair: the database goes on. */
#include "backup/backup.h"

#include <stdlib.h>
#include <string.h>

#include "backup/backup_int.h"
#include "base/check.h"

/** Keeps the first failure. */
static dberr_t backup_fail(backup_t *backup, dberr_t err)
{
    if (backup->failure == DB_SUCCESS) {
        backup->failure = err;
    }
    return err;
}

/* ---- at yield points ---- */

static void backup_at_yield(void *ctx)
{
    backup_t *backup = ctx;
    sched_t *sched = &buf_env(backup->pool)->sched;
    uint32_t interval = backup->config.interval;

    if (backup->failure != DB_SUCCESS || backup->finishing || interval == 0
        || sched_draw(sched, interval) != 0) {
        return;
    }
    (void)!backup_step(backup, 1 + sched_draw(sched, BACKUP_YIELD_PAGES));
}

static void backup_before_slot(void *ctx)
{
    backup_t *backup = ctx;

    if (backup->failure == DB_SUCCESS) {
        (void)backup_fail(backup, log_copy_follow(backup->log));
    }
}

/* ---- begin and end ---- */

static dberr_t see_entry(void *ctx, const char *name)
{
    (void)name;
    *(bool *)ctx = true;
    return DB_SUCCESS;
}

static dberr_t backup_check_empty(env_t *env)
{
    bool found = false;
    TRY(env_list(env, see_entry, &found));
    return found ? err_set(&env->err, DB_ALREADY_EXISTS, "the target of the backup is not empty")
                 : DB_SUCCESS;
}

dberr_t backup_start(buf_pool_t *pool, os_t *target, const backup_config_t *config, err_sink_t *err,
                     backup_t **out)
{
    backup_t *backup = calloc(1, sizeof(*backup));
    byte *page = malloc(buf_page_size(pool));

    if (backup == NULL || page == NULL) {
        free(backup);
        free(page);
        return err_set(err, DB_OUT_OF_MEMORY, "no memory for a backup");
    }
    *backup = (backup_t){.env = {.os = target, .probe = buf_env(pool)->probe},
                         .pool = pool,
                         .config = *config,
                         .page = page};
    dberr_t e = backup_check_empty(&backup->env);
    AND_THEN(e, log_copy_create(buf_log(pool), &backup->env, BACKUP_LOG_NAME, &backup->log));
    AND_THEN(e, backup_files_list(backup));
    AND_THEN(e, env_sync_dir(&backup->env));
    if (e != DB_SUCCESS) {
        err_copy(err, &backup->env.err);
        if (backup->log != NULL) {
            backup_discard(backup);
        }
        backup_free(backup);
        return e;
    }
    buf_set_copier(
        pool,
        &(buf_copier_t){.step = backup_at_yield, .before_slot = backup_before_slot, .ctx = backup});
    *out = backup;
    return DB_SUCCESS;
}

void backup_free(backup_t *backup)
{
    if (backup != NULL) {
        buf_set_copier(backup->pool, NULL);
        backup_files_free(backup);
        log_copy_free(backup->log);
        free(backup->page);
        free(backup);
    }
}

void backup_discard(backup_t *backup)
{
    log_copy_free(backup->log);
    backup->log = NULL;
    dberr_t err = backup_files_remove(backup);
    if (err == DB_SUCCESS) {
        /* Last: it is what tells an unfinished backup from other files. */
        (void)!env_unlink(&backup->env, BACKUP_LOG_NAME);
    }
    (void)backup_fail(backup, DB_BACKUP_ABORTED);
}

const err_sink_t *backup_error(const backup_t *backup)
{
    return &backup->env.err;
}

/** Of a finished one. */
static lsn_t backup_end_lsn(const backup_t *backup)
{
    return log_copy_end_lsn(backup->log);
}

/* ---- steps ---- */

dberr_t backup_step(backup_t *backup, uint32_t n_pages)
{
    dberr_t err = backup->failure;

    AND_THEN(err, log_copy_follow(backup->log));
    AND_THEN(err, backup_files_copy(backup, &n_pages));
    return backup_fail(backup, err);
}

/** Everything that was logged until now. */
static dberr_t backup_log_end(backup_t *backup)
{
    log_t *log = buf_log(backup->pool);
    TRY(log_write_up_to(log, log_lsn(log), true));
    TRY(log_copy_follow(backup->log));
    return log_copy_seal(backup->log);
}

/** Looks for loads without redo in the copied log. */
static dberr_t backup_see_loads(backup_t *backup)
{
    log_t *log = NULL;
    log_reader_t *reader = NULL;
    dberr_t err = log_open_path(&backup->env, BACKUP_LOG_NAME, &log);

    AND_THEN(err, log_reader_create(log, log_copy_start_lsn(backup->log), &reader));
    log_group_t group;
    while (err == DB_SUCCESS) {
        err = log_reader_next(reader, &group);
        for (uint32_t i = 0; err == DB_SUCCESS && i < group.n_recs; i++) {
            if (group.recs[i].op == OP_INDEX_LOAD) {
                err = backup_file_loaded(backup, group.recs[i].space, group.end_lsn);
            }
        }
    }
    if (err == DB_NOT_FOUND) {
        err = log_reader_end_lsn(reader) == log_copy_end_lsn(backup->log)
                  ? DB_SUCCESS
                  : err_set(&backup->env.err, DB_CORRUPTION,
                            "the copied log cannot be read to its end");
    }
    log_reader_free(reader);
    log_close(log);
    return err;
}

static dberr_t backup_complete(backup_t *backup)
{
    env_t *env = &backup->env;
    const backup_info_t info = {.state = BACKUP_COPIED,
                                .start_lsn = log_copy_start_lsn(backup->log),
                                .end_lsn = log_copy_end_lsn(backup->log)};
    TRY(backup_files_name(backup));
    TRY(env_sync_dir(env));
    PROBE_POINT(env->probe, "backup.named");
    TRY(backup_info_write(env, &info));
    PROBE_POINT(env->probe, "backup.info_synced");
    return env_sync_dir(env);
}

dberr_t backup_finish(backup_t *backup)
{
    stats_t *stats = &buf_env(backup->pool)->stats;
    dberr_t err = backup->failure;

    backup->finishing = true;
    AND_THEN(err, backup_files_list(backup));
    AND_THEN(err, backup_files_finish(backup));
    AND_THEN(err, backup_log_end(backup));
    AND_THEN(err, backup_see_loads(backup));
    AND_THEN(err, backup_files_finish(backup));
    AND_THEN(err, backup_log_end(backup));
    /* At a yield point a checkpoint could not let the log's copy follow. */
    AND_THEN(err, backup->failure);
    if (err == DB_SUCCESS) {
        PROBE_POINT(backup->env.probe, "backup.sealed");
        err = backup_complete(backup);
    }
    if (err == DB_SUCCESS) {
        stats->backups_finished++;
        stats->backup_log_wraps += backup_end_lsn(backup) - log_copy_start_lsn(backup->log)
                                   > log_info(buf_log(backup->pool))->file_size;
    }
    return backup_fail(backup, err);
}
