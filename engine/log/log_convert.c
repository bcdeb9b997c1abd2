/* From one format of the redo log to another. Beside log_file.c; before anything else is opened.

    ib_logfile0 (old)  --empty behind C-->  ib_logfile101 (new, starts behind the old end), synced
    | directory synced | renamed to ib_logfile0 | directory synced

1. A log that tells of changes is not converted: what they mean is for the recovery that knows its
   format. Nor is one that names a file: what an unlogged load writes there now may be torn, and
   recovery restores it in files that the log names.
2. Until the rename the old log is in force, and untouched.
3. Pages keep their LSNs: the new log starts behind all of them. */
#include "base/check.h"
#include "log/log_int.h"

/** Reads from the checkpoint to the end, which there must be, with no more than its markers on the
way. */
static dberr_t log_check_unchanged(log_t *log, lsn_t *end_lsn)
{
    log_reader_t *reader = NULL;
    bool changed = false;
    bool marked = false;
    dberr_t err = log_reader_create(log, log->ckpt.lsn, &reader);

    while (err == DB_SUCCESS && !changed) {
        log_group_t group;

        err = log_reader_next(reader, &group);
        if (err == DB_SUCCESS) {
            changed = group.n_recs != 1 || group.recs[0].op != OP_CHECKPOINT;
            marked |= log_group_is_marker(&group, &log->ckpt);
        }
    }
    if (err == DB_NOT_FOUND && marked) {
        *end_lsn = log_reader_end_lsn(reader);
        err = DB_SUCCESS;
    } else if (err == DB_SUCCESS || err == DB_NOT_FOUND || err == DB_CORRUPTION) {
        err = err_set(&log->env->err, DB_UNSUPPORTED,
                      "%s: redo format %s, and the log may hold changes: start the database as it "
                      "was, close it cleanly, and convert it then",
                      log->file->path, log->format->name);
    }
    log_reader_free(reader);
    return err;
}

static dberr_t log_replace(log_t *log, uint32_t format_id, lsn_t end_lsn)
{
    env_t *env = log->env;
    log_file_info_t info = log->info;
    info.format_id = format_id;
    info.start_lsn = lsn_block(end_lsn) + LOG_BLOCK_SIZE;
    bool stays =
        log->ckpt.loads == LOG_LOADS_UNLOGGED && log_format_find(format_id)->unlogged_loads;
    TRY(log_file_create(env, LOG_FILE_TMP_NAME, &info,
                        stays ? LOG_LOADS_UNLOGGED : LOG_LOADS_LOGGED));
    TRY(env_sync_dir(env));
    TRY(env_rename(env, LOG_FILE_TMP_NAME, LOG_FILE_NAME));
    return env_sync_dir(env);
}

dberr_t log_convert(env_t *env, uint32_t format_id)
{
    log_t *log = NULL;
    TRY(log_open_any(env, LOG_FILE_NAME, true, &log));
    dberr_t err = DB_SUCCESS;
    if (format_id == 0) {
        format_id = log->format->encode != NULL ? log->info.format_id : log_format_10_4.id;
    }
    lsn_t end_lsn = 0;
    if (format_id != log->info.format_id) {
        err = log_check_unchanged(log, &end_lsn);
        AND_THEN(err, log_replace(log, format_id, end_lsn));
        env->stats.log_converted += err == DB_SUCCESS;
    }
    log_close(log);
    return err;
}
