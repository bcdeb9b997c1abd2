/** Private to api/: the handle, creation of a database, what a data directory holds before it is
opened. */
#ifndef API_API_INT_H
#define API_API_INT_H

#include "api/engine.h"

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
    bool locked;
    bool recovered;
};

/** A message for a failure that has none yet. Returns err. */
dberr_t engine_explain(engine_t *engine, dberr_t err);

typedef enum dir_kind {
    DIR_EMPTY,      /**< no file, or nothing but a lock */
    DIR_DATABASE,   /**< a redo log under its final name */
    DIR_UNFINISHED, /**< a creation was interrupted: nothing was ever acknowledged in it */
    DIR_NO_LOG,     /**< data files, but no redo log */
    DIR_FOREIGN     /**< other files only */
} dir_kind_t;

WARN_UNUSED dberr_t engine_dir_inspect(env_t *env, dir_kind_t *out);

/** Creates a database in a directory that is DIR_EMPTY or DIR_UNFINISHED. page_size and
log_file_size of options are resolved (not 0). A crash at any point leaves DIR_EMPTY, DIR_UNFINISHED
or the finished database. */
WARN_UNUSED dberr_t engine_bootstrap(env_t *env, const engine_options_t *options);

#endif
