/* Options: defaults, ranges and the text form. Lowest layer.

1. One table gives each option's name, type, range and meaning; all that is said of options reads
   it.
2. Zero in log_format, page_size, extent_pages and log_file_size means "as in the directory" and
   is always in range. */
#include "base/options.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

typedef enum option_kind {
    OPTION_BOOL,
    OPTION_U32,
    OPTION_U64,
    OPTION_LOG_FORMAT,
    OPTION_COMPRESSION
} option_kind_t;

typedef struct option_def {
    const char *name;
    option_kind_t kind;
    size_t offset;
    bool is_size; /* takes k, m, g */
    bool zero_ok;
    uint64_t min;
    uint64_t max;
    const char *what;
} option_def_t;

#define KIB ((uint64_t)1024)
#define MIB (1024 * KIB)
#define GIB (1024 * MIB)

#define OPTION(field, kind, is_size, zero_ok, min, max, what)                                      \
    {                                                                                              \
#field, kind, offsetof(engine_options_t, field), is_size, zero_ok, min, max, what          \
    }
#define AS_CREATED "fixed at creation, 0: as in the directory, "

static const option_def_t OPTION_DEFS[] = {
    OPTION(page_size, OPTION_U32, true, true, PAGE_SIZE_MIN, PAGE_SIZE_MAX,
           "bytes of a page; " AS_CREATED "4k for a new one"),
    OPTION(extent_pages, OPTION_U32, false, true, EXTENT_PAGES_MIN, EXTENT_PAGES_MAX,
           "pages of an extent, a power of 2; " AS_CREATED "InnoDB's for a new one"),
    OPTION(log_file_size, OPTION_U64, true, true, LOG_FILE_SIZE_MIN_PAGES *PAGE_SIZE_MIN,
           1024 * GIB,
           "the whole redo file, at least 64 pages; " AS_CREATED
           "the larger of 1m and 64 pages for a new one"),
    OPTION(log_format, OPTION_LOG_FORMAT, false, true, LOG_FORMAT_10_4, LOG_FORMAT_10_5,
           "format of the redo log, 10.5: physical, with all of a load (MDEV-12353); 0: as in the "
           "directory, 10.4 for a new one; a different one: converted after a clean close, else "
           "refused"),
    OPTION(buffer_pool_pages, OPTION_U32, false, false, 32, 1024 * 1024,
           "pages of the buffer pool"),
    OPTION(log_optimize_ddl, OPTION_BOOL, false, true, 0, 1,
           "on: index loads are not logged, but flushed at their end (WL#7277); a 10.5 log ignores "
           "it (MDEV-19747)"),
    OPTION(optimize_ddl_drain, OPTION_BOOL, false, true, 0, 1,
           "on: SET log_optimize_ddl flushes everything and takes a full checkpoint; off: it does "
           "not, and each tablespace avoids the conflict by itself (MDEV-19747)"),
    OPTION(doublewrite, OPTION_BOOL, false, true, 0, 1,
           "on: pages are written to the doublewrite file, then to their place"),
    OPTION(
        atomic_write_unit, OPTION_U32, true, true, SECTOR_SIZE, PAGE_SIZE_MAX,
        "aligned bytes that the storage promises to write whole or not at all; pages of this size "
        "or less are not doublewritten; 0: no promise"),
    OPTION(dblwr_pages, OPTION_U32, false, false, 4, 256, "pages of a doublewrite batch"),
    OPTION(
        cleaner_interval, OPTION_U32, false, true, 0, 1000 * 1000,
        "N: the page cleaner takes a step at one yield point in N; 0: pages are written on demand"),
    OPTION(purge_interval, OPTION_U32, false, true, 0, 1000 * 1000,
           "N: purge works while one commit in N waits for its log; 0: only on request"),
    OPTION(undo_tablespaces, OPTION_U32, false, true, UNDO_SPACES_MAX, UNDO_SPACES_MAX,
           "2: undo logs are in two files of their own, undo001 and undo002; " AS_CREATED
           "none for a new one"),
    OPTION(max_undo_log_size, OPTION_U64, true, true, 0, 64 * GIB,
           "bytes beyond which an undo tablespace is truncated when purge has emptied it; 0: never "
           "(innodb_undo_log_truncate=OFF)"),
    OPTION(backup_interval, OPTION_U32, false, true, 0, 1000 * 1000,
           "N: a running backup copies some pages at one yield point in N; 0: only on request"),
    OPTION(scrub, OPTION_BOOL, false, true, 0, 1,
           "on: freed pages are later overwritten with zeros; a 10.4 log ignores it "
           "(MDEV-15528)"),
    OPTION(page_compression, OPTION_COMPRESSION, false, true, PAGE_COMPRESSION_NONE,
           PAGE_COMPRESSION_ZSTD,
           "pages of tables, except page 0, are written compressed, and holes are punched behind "
           "them; reading accepts both kinds"),
    OPTION(schedule_seed, OPTION_U32, false, true, 0, UINT32_MAX,
           "draws at which yield points the page cleaner, purge and backup work, and what they do"),
    OPTION(flush_log_at_trx_commit, OPTION_U32, false, true, 0, 2,
           "a commit writes the log and fsyncs it (1), writes it (2), neither (0)"),
    OPTION(log_write_through, OPTION_BOOL, false, true, 0, 1,
           "on: each record group is written, not fsynced, as it is appended, so that a crash may "
           "end the log at any of them"),
    OPTION(log_page_checksums, OPTION_BOOL, false, true, 0, 1,
           "on: each group of a 10.5 log holds checksums of the pages it changes, which recovery "
           "compares (I27)"),
    OPTION(sort_buffer_size, OPTION_U64, true, false, 64 * KIB, 64 * GIB,
           "memory of an index build"),
    OPTION(
        online_alter_log_max_size, OPTION_U64, true, false, 64 * KIB, 64 * GIB,
        "limit of the changes during a build with LOCK=NONE: bytes of each log of row changes, in "
        "whole blocks"),
    OPTION(defragment_interval, OPTION_U32, false, true, 0, 1000 * 1000,
           "N: a defragmentation that was started takes a step after each N commits; 0: only on "
           "request"),
    OPTION(defragment_n_pages, OPTION_U32, false, false, 2, 32,
           "leaves packed by one step of a defragmentation"),
    OPTION(defragment_fill_factor, OPTION_U32, false, false, 70, 100,
           "how full a defragmentation packs a page, in percent"),
    OPTION(defragment_fill_factor_n_recs, OPTION_U32, false, false, 1, 100,
           "at most this many records of room are left in a packed page"),
    OPTION(recv_memory, OPTION_U64, true, false, 64 * KIB, 64 * GIB,
           "memory for parsed redo records in recovery"),
    OPTION(open_files, OPTION_U32, false, false, 2, 65536, "data files open at the same time"),
};

#define N_OPTIONS (sizeof(OPTION_DEFS) / sizeof(OPTION_DEFS[0]))

static const struct {
    const char *name;
    uint64_t value;
} COMPRESSIONS[] = {
    {"none", PAGE_COMPRESSION_NONE},
    {"lz4", PAGE_COMPRESSION_LZ4},
    {"zstd", PAGE_COMPRESSION_ZSTD},
};

#define N_COMPRESSIONS (sizeof(COMPRESSIONS) / sizeof(COMPRESSIONS[0]))

void options_set_defaults(engine_options_t *options)
{
    *options = (engine_options_t){
        .log_format = 0,
        .page_size = 0,
        .extent_pages = 0,
        .log_file_size = 0,
        .buffer_pool_pages = 256,
        .log_optimize_ddl = true,
        .optimize_ddl_drain = true,
        .doublewrite = true,
        .atomic_write_unit = 0,
        .dblwr_pages = 64,
        .cleaner_interval = 0,
        .purge_interval = 0,
        .undo_tablespaces = 0,
        .max_undo_log_size = 0,
        .backup_interval = 0,
        .scrub = false,
        .page_compression = PAGE_COMPRESSION_NONE,
        .schedule_seed = 0,
        .flush_log_at_trx_commit = 1,
        .log_write_through = false,
        .log_page_checksums = false,
        .sort_buffer_size = 1 * MIB,
        .online_alter_log_max_size = 1 * MIB,
        .defragment_interval = 0,
        .defragment_n_pages = 7,
        .defragment_fill_factor = 90,
        .defragment_fill_factor_n_recs = 20,
        .recv_memory = 4 * MIB,
        .open_files = 32,
    };
}

static uint64_t option_get(const engine_options_t *options, const option_def_t *def)
{
    const char *field = (const char *)options + def->offset;
    uint32_t v32;
    bool flag;

    switch (def->kind) {
    case OPTION_BOOL:
        memcpy(&flag, field, sizeof(flag));
        return flag ? 1 : 0;
    case OPTION_U32:
    case OPTION_LOG_FORMAT:
    case OPTION_COMPRESSION:
        memcpy(&v32, field, sizeof(v32));
        return v32;
    case OPTION_U64:
        break;
    }
    uint64_t v64;
    memcpy(&v64, field, sizeof(v64));
    return v64;
}

static void option_put(engine_options_t *options, const option_def_t *def, uint64_t value)
{
    char *field = (char *)options + def->offset;
    uint32_t v32 = (uint32_t)value;
    bool flag = value != 0;

    switch (def->kind) {
    case OPTION_BOOL:
        memcpy(field, &flag, sizeof(flag));
        break;
    case OPTION_U32:
    case OPTION_LOG_FORMAT:
    case OPTION_COMPRESSION:
        memcpy(field, &v32, sizeof(v32));
        break;
    case OPTION_U64:
        memcpy(field, &value, sizeof(value));
        break;
    }
}

static dberr_t option_check(const option_def_t *def, uint64_t value, err_sink_t *err)
{
    if ((value == 0 && def->zero_ok) || (value >= def->min && value <= def->max)) {
        return DB_SUCCESS;
    }
    return err_set(err, DB_ERROR, "%s must be %s%" PRIu64 " to %" PRIu64 ", not %" PRIu64,
                   def->name, def->zero_ok && def->min > 0 ? "0 or " : "", def->min, def->max,
                   value);
}

static bool compression_is_known(uint64_t value)
{
    bool known = false;

    for (size_t i = 0; i < N_COMPRESSIONS; i++) {
        known = known || COMPRESSIONS[i].value == value;
    }
    return known;
}

dberr_t options_validate(const engine_options_t *options, err_sink_t *err)
{
    uint32_t page_size = options->page_size != 0 ? options->page_size : PAGE_SIZE_MIN;
    uint64_t log_min = (uint64_t)LOG_FILE_SIZE_MIN_PAGES * page_size;

    for (size_t i = 0; i < N_OPTIONS; i++) {
        TRY(option_check(&OPTION_DEFS[i], option_get(options, &OPTION_DEFS[i]), err));
    }
    if (!page_size_is_valid(page_size)) {
        return err_set(err, DB_ERROR, "page_size must be 4096, 8192, 16384, 32768 or 65536, not %u",
                       page_size);
    }
    if (options->extent_pages != 0 && !extent_pages_is_valid(options->extent_pages)) {
        return err_set(err, DB_ERROR, "extent_pages must be 8, 16, 32, 64, 128 or 256, not %u",
                       options->extent_pages);
    }
    if (options->log_file_size != 0
        && (options->log_file_size < log_min || options->log_file_size % SECTOR_SIZE != 0)) {
        return err_set(err, DB_ERROR,
                       "log_file_size must be a multiple of %u and at least %u pages "
                       "(%" PRIu64 " bytes), not %" PRIu64,
                       SECTOR_SIZE, LOG_FILE_SIZE_MIN_PAGES, log_min, options->log_file_size);
    }
    if (!compression_is_known(options->page_compression)) {
        return err_set(err, DB_ERROR, "page_compression: there is no algorithm %" PRIu32,
                       options->page_compression);
    }
    if (options->atomic_write_unit != 0
        && !atomic_write_unit_is_valid(options->atomic_write_unit)) {
        return err_set(err, DB_ERROR,
                       "atomic_write_unit must be 0 or a power of two from 512 to 65536, not %u",
                       options->atomic_write_unit);
    }
    return DB_SUCCESS;
}

static bool parse_bool(const char *text, uint64_t *value)
{
    if (strcmp(text, "on") == 0 || strcmp(text, "ON") == 0 || strcmp(text, "1") == 0) {
        *value = 1;
        return true;
    }
    *value = 0;
    return strcmp(text, "off") == 0 || strcmp(text, "OFF") == 0 || strcmp(text, "0") == 0;
}

static bool parse_log_format(const char *text, uint64_t *value)
{
    *value = strcmp(text, "10.4") == 0   ? LOG_FORMAT_10_4
             : strcmp(text, "10.5") == 0 ? LOG_FORMAT_10_5
                                         : 0;
    return *value != 0 || strcmp(text, "0") == 0;
}

static bool parse_compression(const char *text, uint64_t *value)
{
    for (size_t i = 0; i < N_COMPRESSIONS; i++) {
        if (strcmp(COMPRESSIONS[i].name, text) == 0) {
            *value = COMPRESSIONS[i].value;
            return true;
        }
    }
    return false;
}

/** Decimal digits, then for a size at most one of k, m, g in either case. */
static bool parse_number(const char *text, bool is_size, uint64_t *value)
{
    uint64_t v = 0;
    const char *s = text;

    for (; *s >= '0' && *s <= '9'; s++) {
        uint64_t digit = (uint64_t)(*s - '0');

        if (v > (UINT64_MAX - digit) / 10) {
            return false;
        }
        v = v * 10 + digit;
    }
    if (s == text) {
        return false;
    }
    uint64_t unit = 1;
    if (is_size && *s != '\0') {
        unit = *s == 'k' || *s == 'K'   ? KIB
               : *s == 'm' || *s == 'M' ? MIB
               : *s == 'g' || *s == 'G' ? GIB
                                        : 0;
        s++;
    }
    if (*s != '\0' || unit == 0 || v > UINT64_MAX / unit) {
        return false;
    }
    *value = v * unit;
    return true;
}

dberr_t options_parse(engine_options_t *options, const char *name, const char *value,
                      err_sink_t *err)
{
    const option_def_t *def = NULL;
    for (size_t i = 0; i < N_OPTIONS && def == NULL; i++) {
        if (strcmp(OPTION_DEFS[i].name, name) == 0) {
            def = &OPTION_DEFS[i];
        }
    }
    if (def == NULL) {
        return err_set(err, DB_ERROR, "unknown option '%s'", name);
    }
    uint64_t v = 0;
    if (def->kind == OPTION_BOOL) {
        if (!parse_bool(value, &v)) {
            return err_set(err, DB_ERROR, "%s must be on or off, not '%s'", name, value);
        }
    } else if (def->kind == OPTION_LOG_FORMAT) {
        if (!parse_log_format(value, &v)) {
            return err_set(err, DB_ERROR, "%s must be 10.4, 10.5 or 0, not '%s'", name, value);
        }
    } else if (def->kind == OPTION_COMPRESSION) {
        if (!parse_compression(value, &v)) {
            return err_set(err, DB_ERROR, "%s must be none, lz4 or zstd, not '%s'", name, value);
        }
    } else if (!parse_number(value, def->is_size, &v)) {
        return err_set(err, DB_ERROR, "%s must be a number%s, not '%s'", name,
                       def->is_size ? " with k, m or g at most" : "", value);
    }
    TRY(option_check(def, v, err));
    if (def->offset == offsetof(engine_options_t, page_size) && v != 0
        && !page_size_is_valid((uint32_t)v)) {
        return err_set(err, DB_ERROR, "%s must be 0, 4k, 8k, 16k, 32k or 64k, not '%s'", name,
                       value);
    }
    if (def->offset == offsetof(engine_options_t, atomic_write_unit) && v != 0
        && !atomic_write_unit_is_valid((uint32_t)v)) {
        return err_set(err, DB_ERROR, "%s must be 0 or a power of two from 512 to 64k, not '%s'",
                       name, value);
    }
    if (def->offset == offsetof(engine_options_t, extent_pages) && v != 0
        && !extent_pages_is_valid((uint32_t)v)) {
        return err_set(err, DB_ERROR, "extent_pages must be 8, 16, 32, 64, 128 or 256, not '%s'",
                       value);
    }
    option_put(options, def, v);
    return DB_SUCCESS;
}

/** As options_parse() takes it, in the largest unit that fits. */
static void option_print(const option_def_t *def, uint64_t value, char *to, size_t room)
{
    static const char UNITS[] = "kmg";
    if (def->kind == OPTION_BOOL) {
        (void)snprintf(to, room, "%s", value != 0 ? "on" : "off");
        return;
    }
    if (def->kind == OPTION_LOG_FORMAT && value != 0) {
        (void)snprintf(to, room, "10.%" PRIu64, value % 100);
        return;
    }
    for (size_t i = 0; def->kind == OPTION_COMPRESSION && i < N_COMPRESSIONS; i++) {
        if (COMPRESSIONS[i].value == value) {
            (void)snprintf(to, room, "%s", COMPRESSIONS[i].name);
            return;
        }
    }
    char unit[2] = "";
    for (size_t i = 0; def->is_size && UNITS[i] != '\0' && value != 0 && value % KIB == 0; i++) {
        value /= KIB;
        unit[0] = UNITS[i];
    }
    (void)snprintf(to, room, "%" PRIu64 "%s", value, unit);
}

bool options_describe(size_t i, option_text_t *out)
{
    if (i >= N_OPTIONS) {
        return false;
    }
    const option_def_t *def = &OPTION_DEFS[i];
    *out = (option_text_t){.name = def->name, .what = def->what};
    engine_options_t defaults;
    options_set_defaults(&defaults);
    option_print(def, option_get(&defaults, def), out->by_default, sizeof(out->by_default));
    char min[OPTION_TEXT_MAX / 4];
    option_print(def, def->min, min, sizeof(min));
    char max[OPTION_TEXT_MAX / 4];
    option_print(def, def->max, max, sizeof(max));
    if (def->kind == OPTION_BOOL) {
        (void)snprintf(out->values, sizeof(out->values), "%s, %s", max, min);
    } else if (def->kind == OPTION_LOG_FORMAT) {
        (void)snprintf(out->values, sizeof(out->values), "0, %s, %s", min, max);
    } else if (def->kind == OPTION_COMPRESSION) {
        (void)snprintf(out->values, sizeof(out->values), "%s, %s, %s", COMPRESSIONS[0].name,
                       COMPRESSIONS[1].name, COMPRESSIONS[2].name);
    } else {
        (void)snprintf(out->values, sizeof(out->values), "%s%s to %s",
                       def->zero_ok && def->min > 0 ? "0, " : "", min, max);
    }
    return true;
}
