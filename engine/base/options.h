/** Options of one database handle. Sizes in bytes unless the name says otherwise. */
#ifndef BASE_OPTIONS_H
#define BASE_OPTIONS_H

#include "base/err.h"
#include "base/types.h"

typedef struct engine_options {
    uint32_t page_size;     /**< 4096 ... 65536; fixed at creation, 0 = as the directory has it
                                           (4096 for a new one) */
    uint32_t extent_pages;  /**< 8 ... 256, a power of 2; fixed at creation, 0 = as the directory
                                           has it (InnoDB's for a new one: 256 pages of 4k) */
    uint64_t log_file_size; /**< whole redo file; fixed at creation, 0 = as the directory has it
                                           (1 MiB or 64 pages for a new one, whichever is more) */
    uint32_t buffer_pool_pages; /**< at least 32 */
    bool log_optimize_ddl;      /**< ON: index loads are not logged, then flushed (WL#7277) */
    bool doublewrite;
    uint32_t dblwr_pages;      /**< pages of the doublewrite batch region; 4 ... 256 */
    uint32_t cleaner_interval; /**< N: the page cleaner takes a step at every N-th yield point;
                                          0: never, pages are written when somebody needs it */
    uint32_t flush_log_at_trx_commit; /**< 0: neither, 1: write and fsync, 2: write only */
    bool
        log_write_through; /**< ON: each record group is written (not fsynced) as it is appended, so that a
                                 crash may end the log at any of them */
    uint64_t sort_buffer_size; /**< memory of an index build, at least 64 KiB */
    uint64_t recv_memory;      /**< memory for parsed redo records in recovery, at least 64 KiB */
    uint32_t open_files;       /**< data files open at the same time, at least 2 */
} engine_options_t;

#define LOG_FILE_SIZE_MIN_PAGES 64U /**< log_file_size is at least this many pages */

/** Defaults: 0, 0, 0, 256 pages, ON, ON, 64 pages, 0, 1, OFF, 1 MiB, 4 MiB, 32 files. */
void options_set_defaults(engine_options_t *options);

/** Checks every range; DB_ERROR and a message that names the option and its range. */
WARN_UNUSED dberr_t options_validate(const engine_options_t *options, err_sink_t *err);

/** Sets one option from text, as options_parse(o, "page_size", "16k", err): sizes take k, m, g;
booleans take on, off, 1, 0. Names are the fields' names. DB_ERROR for an unknown name or bad value. */
WARN_UNUSED dberr_t options_parse(engine_options_t *options, const char *name, const char *value,
                                  err_sink_t *err);

#endif
