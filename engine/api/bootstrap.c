/* Creation of a database.

Place: api/, beside engine.c.

    ib_logfile101 created, synced | directory synced | ibdata1, ib_dblwr, undo tablespaces, system
    pages, checkpoint | ib_logfile101 renamed to ib_logfile0 | directory synced

Rules
1. The final name of the redo log is the last thing to appear: with it the database is whole,
   without it nothing was acknowledged, and creation starts again from nothing.
2. The temporary log is durable in the directory before any other file exists, so a data file
   without any log was not left by an interrupted creation: it is refused, never overwritten (I30).
3. Space 0 has no FILE_CREATE record: redo never creates it, recovery always opens it by name. */
#include <stdlib.h>
#include <string.h>

#include "api/api_int.h"
#include "backup/backup_info.h"
#include "base/check.h"
#include "buf/buf_dblwr.h"
#include "trx/trx.h"

#define LOCK_FILE_NAME "engine.lock"

/* ---- what is in the directory ---- */

typedef struct dir_contents {
    bool log;
    bool log_tmp;
    bool system;
    bool tables;
    bool dblwr;
    bool backup;
    bool other;
} dir_contents_t;

static dberr_t dir_see(void *ctx, const char *name)
{
    dir_contents_t *dir = ctx;
    size_t len = strlen(name);
    if (strcmp(name, LOG_FILE_NAME) == 0) {
        dir->log = true;
    } else if (strcmp(name, LOG_FILE_TMP_NAME) == 0) {
        dir->log_tmp = true;
    } else if (strcmp(name, FIL_SYSTEM_PATH) == 0 || fil_path_is_undo(name, len)) {
        dir->system = true;
    } else if (strcmp(name, DBLWR_FILE_NAME) == 0) {
        dir->dblwr = true;
    } else if (strcmp(name, BACKUP_INFO_NAME) == 0 || strcmp(name, BACKUP_LOG_NAME) == 0) {
        dir->backup = true;
    } else if (fil_path_is_space(name, len)) {
        dir->tables = true;
    } else if (strcmp(name, LOCK_FILE_NAME) != 0) {
        dir->other = true;
    }
    return DB_SUCCESS;
}

dberr_t engine_dir_inspect(env_t *env, dir_kind_t *out)
{
    dir_contents_t dir = {.log = false};
    TRY(env_list(env, dir_see, &dir));
    backup_info_t backup = {.state = BACKUP_NONE};
    if (dir.backup) {
        TRY(backup_info_read(env, &backup));
    }
    if (backup.state == BACKUP_COPIED || backup.state == BACKUP_UNFINISHED) {
        *out = DIR_BACKUP;
    } else if (dir.log) {
        *out = dir.log_tmp ? DIR_CONVERTING : DIR_DATABASE;
    } else if (dir.tables || ((dir.system || dir.dblwr) && !dir.log_tmp)) {
        *out = DIR_NO_LOG;
    } else if (dir.log_tmp) {
        *out = DIR_UNFINISHED;
    } else {
        *out = dir.other ? DIR_FOREIGN : DIR_EMPTY;
    }
    return DB_SUCCESS;
}

/* ---- creation ---- */

typedef struct bootstrap {
    env_t *env;
    const engine_options_t *options;
    log_t *log;
    fil_t *fil;
    buf_pool_t *pool;
} bootstrap_t;

static dberr_t remove_leftover(env_t *env, const char *path, bool *removed)
{
    bool exists = false;
    dberr_t err = env_exists(env, path, &exists);
    if (err == DB_SUCCESS && exists) {
        err = env_unlink(env, path);
        *removed = true;
    }
    return err;
}

/** Leftovers go while the temporary log is still there to tell what they are. */
static dberr_t bootstrap_clean(env_t *env)
{
    bool removed = false;
    TRY(remove_leftover(env, FIL_SYSTEM_PATH, &removed));
    TRY(remove_leftover(env, DBLWR_FILE_NAME, &removed));
    for (uint32_t number = 1; number <= UNDO_SPACES_MAX; number++) {
        char path[PATH_LEN_MAX + 1];
        fil_path_of_undo(number, path);
        TRY(remove_leftover(env, path, &removed));
    }
    return removed ? env_sync_dir(env) : DB_SUCCESS;
}

static dberr_t bootstrap_log(bootstrap_t *boot)
{
    env_t *env = boot->env;
    const log_file_info_t info = {
        .format_id = boot->options->log_format,
        .page_size = boot->options->page_size,
        .extent_pages = boot->options->extent_pages,
        .file_size = boot->options->log_file_size,
        .start_lsn = LOG_START_LSN,
    };
    TRY(log_file_create(env, LOG_FILE_TMP_NAME, &info, LOG_LOADS_LOGGED));
    TRY(env_sync_dir(env));
    TRY(log_open_path(env, LOG_FILE_TMP_NAME, &boot->log));
    log_reader_t *reader = NULL;
    log_group_t group;
    dberr_t err = log_reader_create(boot->log, LOG_FIRST_LSN, &reader);
    while (err == DB_SUCCESS) {
        err = log_reader_next(reader, &group);
    }
    if (err == DB_NOT_FOUND) {
        lsn_t end = log_reader_end_lsn(reader);
        log_reader_free(reader);
        return log_start_writing(boot->log, log_last_checkpoint(boot->log), end);
    }
    log_reader_free(reader);
    return err;
}

static dberr_t bootstrap_system_file(bootstrap_t *boot)
{
    env_t *env = boot->env;
    os_file_t *file = NULL;
    TRY(env_open(env, FIL_SYSTEM_PATH, OS_CREATE_NEW, &file));
    dberr_t err = env_truncate(env, file, (uint64_t)FSP_INITIAL_PAGES * boot->options->page_size);
    env_close(env, file);
    TRY(err);
    TRY(fil_create(env, boot->log, boot->options->page_size, boot->options->open_files,
                   &boot->fil));
    fil_space_t *space = NULL;
    return fil_space_open(boot->fil, SPACE_SYSTEM, FIL_SYSTEM_PATH, FSP_INITIAL_PAGES, &space);
}

static dberr_t bootstrap_pages(bootstrap_t *boot)
{
    TRY(buf_pool_create(boot->env, boot->log, boot->fil, boot->options, &boot->pool));
    mtr_t mtr;
    mtr_start(&mtr, boot->pool, MTR_LOG_ALL);
    dberr_t err = fsp_header_init(&mtr, SPACE_SYSTEM, FSP_INITIAL_PAGES);
    if (err != DB_SUCCESS) {
        mtr_abort(&mtr);
        return err;
    }
    mtr_commit(&mtr);
    TRY(trx_sys_bootstrap(boot->pool, boot->options->undo_tablespaces));
    TRY(dict_bootstrap(boot->pool));
    return buf_checkpoint_full(boot->pool);
}

dberr_t engine_bootstrap(env_t *env, const engine_options_t *options)
{
    bootstrap_t boot = {.env = env, .options = options};
    dberr_t err = bootstrap_clean(env);
    AND_THEN(err, bootstrap_log(&boot));
    AND_THEN(err, bootstrap_system_file(&boot));
    AND_THEN(err, bootstrap_pages(&boot));
    buf_pool_free(boot.pool);
    fil_close(boot.fil);
    log_close(boot.log);
    TRY(err);
    TRY(env_sync_dir(env));
    TRY(env_rename(env, LOG_FILE_TMP_NAME, LOG_FILE_NAME));
    return env_sync_dir(env);
}
