/** Options of one database handle. Sizes in bytes unless the name says otherwise. */
#ifndef BASE_OPTIONS_H
#define BASE_OPTIONS_H

#include "base/err.h"
#include "base/types.h"

/** What each one means, its range and its default: OPTION_DEFS in options.c, printed by `engine
options`. */
typedef struct engine_options {
    uint32_t page_size;
    uint32_t extent_pages;
    uint64_t log_file_size;
    uint32_t log_format; /**< its number in the header of the log, or 0 */
    uint32_t buffer_pool_pages;
    bool log_optimize_ddl;
    bool optimize_ddl_drain;
    bool doublewrite;
    uint32_t atomic_write_unit;
    uint32_t dblwr_pages;
    uint32_t cleaner_interval;
    uint32_t purge_interval;
    uint32_t undo_tablespaces;
    uint64_t max_undo_log_size;
    uint32_t backup_interval;
    bool scrub;
    uint32_t page_compression; /**< page_algorithm_t */
    uint32_t schedule_seed;
    uint32_t flush_log_at_trx_commit;
    bool log_write_through;
    bool log_page_checksums;
    uint64_t sort_buffer_size;
    uint64_t online_alter_log_max_size;
    uint32_t defragment_interval;
    uint32_t defragment_n_pages;
    uint32_t defragment_fill_factor;
    uint32_t defragment_fill_factor_n_recs;
    uint64_t recv_memory;
    uint32_t open_files;
} engine_options_t;

/** Numbers of redo formats: edition, version of MariaDB. */
#define LOG_FORMAT_10_4 204U
#define LOG_FORMAT_10_5 205U

/** Numbers of page compression algorithms, as MariaDB has them; zstd's is ours. */
#define PAGE_COMPRESSION_NONE 0U
#define PAGE_COMPRESSION_LZ4 2U
#define PAGE_COMPRESSION_ZSTD 7U

#define LOG_FILE_SIZE_MIN_PAGES 64U /**< log_file_size is at least this many pages */

void options_set_defaults(engine_options_t *options);

/** Checks every range; DB_ERROR and a message that names the option and its range. */
WARN_UNUSED dberr_t options_validate(const engine_options_t *options, err_sink_t *err);

/** Sets one option from text, as options_parse(o, "page_size", "16k", err): sizes take k, m, g;
booleans take on, off, 1, 0; log_format takes 10.4, 10.5, 0; page_compression none, lz4, zstd. Names
are the fields' names. DB_ERROR for an unknown name or bad value. */
WARN_UNUSED dberr_t options_parse(engine_options_t *options, const char *name, const char *value,
                                  err_sink_t *err);

#define OPTION_TEXT_MAX 64 /**< of a range or a value as text, with the final 0 */

/** An option for people. The texts take what options_parse() takes. */
typedef struct option_text {
    const char *name;
    const char *what;
    char values[OPTION_TEXT_MAX];
    char by_default[OPTION_TEXT_MAX];
} option_text_t;

/** Option number i, from 0. False: there are no more. */
bool options_describe(size_t i, option_text_t *out);

#endif
