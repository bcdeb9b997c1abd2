/** Private to api/: the handle, creation of a database, what a data directory holds before it is
opened. */
#ifndef API_API_INT_H
#define API_API_INT_H

#include "api/engine.h"
#include "backup/backup.h"

/** A running index build of the user. */
typedef struct engine_build {
    ddl_build_t *ddl;
    table_id_t table;
    struct engine_build *next;
} engine_build_t;

struct engine {
    env_t env;
    engine_options_t options; /**< page_size and log_file_size resolved */
    log_t *log;
    fil_t *fil;
    buf_pool_t *pool;
    dict_t *dict;
    trx_sys_t *sys;
    trx_t **open; /**< open transactions of the user */
    uint32_t n_open;
    uint32_t open_capacity;
    engine_build_t *builds; /**< at most one per table */
    bool defragment_off;    /**< background builds rest */
    uint32_t n_commits;     /**< since background builds have taken a step by themselves */
    backup_t *backup;       /**< the one that runs, or NULL */
    char backup_name[NAME_LEN_MAX + 1];
    os_t *backup_folder; /**< what it goes to, if that is a folder of the data directory */
    bool locked;
    bool recovered;
};

/* ---- engine_guard.c: the two ends of every call ---- */

/** A message for a failure that has none yet. Returns err. */
dberr_t engine_explain(engine_t *engine, dberr_t err);
WARN_UNUSED dberr_t engine_enter(engine_t *engine);
/** The same for a call on a table: DB_NOT_FOUND. */
WARN_UNUSED dberr_t engine_enter_table(engine_t *engine, const char *name, dict_table_t **out);
/** End of a writing call: poisons the handle if err is a fatal one. Returns err. */
dberr_t engine_leave(engine_t *engine, dberr_t err);

/* ---- engine_build.c ---- */

/** Clean close: aborts all running builds. */
WARN_UNUSED dberr_t engine_abort_builds(engine_t *engine);
/** A transaction was committed: background builds may take a step. */
WARN_UNUSED dberr_t engine_builds_go_on(engine_t *engine);
/** Of all builds: records of all, the fullest log, and the one that is least far; zeros without
any. */
void engine_builds_progress(const engine_t *engine, ddl_progress_t *out);
void engine_free_builds(engine_t *engine); /**< memory; what they have in files is recovery's */

/* ---- engine_backup.c ---- */

/** Gives up the backup that runs, if there is one: removes what it has copied, or leaves it
unfinished. */
void engine_end_backup(engine_t *engine, bool remove);

typedef enum dir_kind {
    DIR_EMPTY,      /**< no file, or nothing but a lock */
    DIR_DATABASE,   /**< a redo log under its final name */
    DIR_CONVERTING, /**< the same, and what an interrupted conversion of the log left */
    DIR_UNFINISHED, /**< a creation was interrupted: nothing was ever acknowledged in it */
    DIR_BACKUP,     /**< a backup that is not prepared, or not even finished */
    DIR_NO_LOG,     /**< data files, but no redo log */
    DIR_FOREIGN     /**< other files only */
} dir_kind_t;

WARN_UNUSED dberr_t engine_dir_inspect(env_t *env, dir_kind_t *out);

/** Creates a database in a directory that is DIR_EMPTY or DIR_UNFINISHED. page_size and
log_file_size of options are resolved (not 0). A crash at any point leaves DIR_EMPTY, DIR_UNFINISHED
or the finished database. */
WARN_UNUSED dberr_t engine_bootstrap(env_t *env, const engine_options_t *options);

/** engine_open() of a directory that may be a DIR_BACKUP whose log is in place. */
WARN_UNUSED dberr_t engine_open_backup(os_t *os, probe_t *probe, const engine_options_t *options,
                                       engine_t **out, err_sink_t *err);

#endif
