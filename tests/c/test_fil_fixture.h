/** A small database below the pool for tests: a back end behind a recorder, log, registry.

The recorder turns each changing file operation into one line ("write t1.ibd 4096 512", "sync
t1.ibd", "syncdir", ...) and puts probe markers ("# page_write ...") between them, so that tests
assert the real order of I/O. It can fail the n-th operation that starts with a given text. */
#ifndef TEST_FIL_FIXTURE_H
#define TEST_FIL_FIXTURE_H

#include "fil/fil.h"
#include "test_env_fixture.h"
#include "test_tap_os.h"

#define FX_OPEN_FILES 2U           /* few: closed and opened again all the time */
#define FX_LOG_RESERVE (64U << 10) /* for file operations without a pool that makes room */
#define REC_LINES_MAX 20000U
#define REC_LINE_LEN 300U

typedef struct recorder {
    tap_t tap;
    char (*lines)[REC_LINE_LEN];
    uint32_t n;
    const char *fail_prefix; /**< NULL: nothing fails */
    uint32_t fail_after;     /**< that many matching operations still succeed */
} recorder_t;

__attribute__((format(printf, 2, 3))) static inline dberr_t rec_line(recorder_t *rec,
                                                                     const char *format, ...)
{
    assert_true(rec->n < REC_LINES_MAX);
    char *line = rec->lines[rec->n++];
    va_list args;
    va_start(args, format);
    vsnprintf(line, REC_LINE_LEN, format, args);
    va_end(args);
    if (rec->fail_prefix == NULL
        || strncmp(line, rec->fail_prefix, strlen(rec->fail_prefix)) != 0) {
        return DB_SUCCESS;
    }
    if (rec->fail_after > 0) {
        rec->fail_after--;
        return DB_SUCCESS;
    }
    return DB_IO_ERROR;
}

static inline dberr_t rec_before(void *ctx, const tap_op_t *op)
{
    switch (op->kind) {
    case TAP_CREATE:
        return rec_line(ctx, "create %s", op->path);
    case TAP_WRITE:
        return rec_line(ctx, "write %s %" PRIu64 " %zu", op->path, op->offset, op->len);
    case TAP_SYNC:
        return rec_line(ctx, "sync %s", op->path);
    case TAP_TRUNCATE:
        return rec_line(ctx, "truncate %s %" PRIu64, op->path, op->offset);
    case TAP_PUNCH:
        return rec_line(ctx, "punch %s %" PRIu64 " %zu", op->path, op->offset, op->len);
    case TAP_RENAME:
        return rec_line(ctx, "rename %s %s", op->path, op->to);
    case TAP_UNLINK:
        return rec_line(ctx, "unlink %s", op->path);
    case TAP_SYNC_DIR:
        return rec_line(ctx, "syncdir");
    }
    fail_msg("no such operation: %d", (int)op->kind);
    return DB_ERROR;
}

static inline void rec_point(void *ctx, const char *name)
{
    (void)ctx;
    (void)name;
}

static inline void rec_mark(void *ctx, const char *text, size_t len)
{
    assert_int_equal(rec_line(ctx, "# %.*s", (int)len, text), DB_SUCCESS);
}

/** Position of the first line at or after `from` that starts with prefix; UINT32_MAX if none. */
static inline uint32_t rec_find(const recorder_t *rec, uint32_t from, const char *prefix)
{
    for (uint32_t i = from; i < rec->n; i++) {
        if (strncmp(rec->lines[i], prefix, strlen(prefix)) == 0) {
            return i;
        }
    }
    return UINT32_MAX;
}

static inline uint32_t rec_count(const recorder_t *rec, uint32_t from, const char *prefix)
{
    uint32_t n = 0;
    for (uint32_t i = rec_find(rec, from, prefix); i != UINT32_MAX;
         i = rec_find(rec, i + 1, prefix)) {
        n++;
    }
    return n;
}

/** Asserts that lines with these prefixes occur in this order from `from` on. End with NULL. */
static inline void rec_assert_order(const recorder_t *rec, uint32_t from, ...)
{
    va_list args;
    va_start(args, from);
    for (const char *prefix = va_arg(args, const char *); prefix != NULL;
         prefix = va_arg(args, const char *)) {
        uint32_t at = rec_find(rec, from, prefix);
        if (at == UINT32_MAX) {
            for (uint32_t i = from; i < rec->n; i++) {
                print_message("  %s\n", rec->lines[i]);
            }
            fail_msg("no \"%s\" in the lines above", prefix);
        }
        from = at + 1;
    }
    va_end(args);
}

/** Opens the log of the directory for writing, behind its last group, and an empty registry. */
static inline void files_open(env_t *env, uint32_t page_size, log_t **log, fil_t **fil)
{
    *log = efx_log_start(env);
    log_reserve(*log, FX_LOG_RESERVE);
    ENV_OK(env, fil_create(env, *log, page_size, FX_OPEN_FILES, fil));
}

/** The same in a directory that has no log: it gets one. */
static inline void files_create(env_t *env, uint32_t page_size, uint32_t extent_pages,
                                uint64_t log_size_bytes, uint32_t log_format, log_t **log,
                                fil_t **fil)
{
    const log_file_info_t info = {.format_id = log_format,
                                  .page_size = page_size,
                                  .extent_pages = extent_pages,
                                  .file_size = log_size_bytes,
                                  .start_lsn = LOG_START_LSN};
    ENV_OK(env, log_file_create(env, LOG_FILE_NAME, &info, LOG_LOADS_LOGGED));
    files_open(env, page_size, log, fil);
}

#define FX_EXTENT_PAGES 8U /**< small, so that tests reach lists, extents and descriptor pages */

/** The fixture proper. */
typedef struct base_fixture {
    os_t *os;
    recorder_t rec;
    probe_t probe;
    env_t env;
    log_t *log;
    fil_t *fil;
    uint32_t page_size;
} base_fixture_t;

/** Sets up recorder and environment over the empty directory fx->os, with a new log. */
static inline void base_open(base_fixture_t *fx, uint32_t page_size, uint32_t log_format)
{
    fx->page_size = page_size;
    fx->rec.tap = tap_of(fx->os);
    fx->rec.tap.before = rec_before;
    fx->rec.tap.ctx = &fx->rec;
    fx->rec.lines = calloc(REC_LINES_MAX, sizeof(*fx->rec.lines));
    assert_non_null(fx->rec.lines);
    fx->probe.point = rec_point;
    fx->probe.mark = rec_mark;
    fx->probe.ctx = &fx->rec;
    fx->env.os = &fx->rec.tap.base;
    fx->env.probe = &fx->probe;
    files_create(&fx->env, page_size, FX_EXTENT_PAGES, 256ULL * page_size, log_format, &fx->log,
                 &fx->fil);
    fx->env.stats = (stats_t){0};
    fx->rec.n = 0;
    atomic_store(&fx->probe.armed, true);
}

static inline void base_close(base_fixture_t *fx)
{
    fil_close(fx->fil);
    log_close(fx->log);
    os_destroy(fx->os);
    free(fx->rec.lines);
}

#endif
