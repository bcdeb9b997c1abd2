/** A small database below the pool for tests: a back end behind a recorder, log, registry.

The recorder turns each changing file operation into one line ("write t1.ibd 4096 512", "sync
t1.ibd", "syncdir", ...) and puts probe markers ("# page_write ...") between them, so that tests
assert the real order of I/O. It can fail the n-th operation that starts with a given text. */
#ifndef TEST_FIL_FIXTURE_H
#define TEST_FIL_FIXTURE_H

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fil/fil.h"

#define REC_LINES_MAX 20000U
#define REC_LINE_LEN 300U

typedef struct recorder {
    os_t base;
    os_t *inner;
    char (*lines)[REC_LINE_LEN];
    uint32_t n;
    const char *fail_prefix; /**< NULL: nothing fails */
    uint32_t fail_after;     /**< that many matching operations still succeed */
} recorder_t;

typedef struct recorder_file {
    os_file_t base;
    os_file_t *inner;
    char path[PATH_LEN_MAX + 1];
} recorder_file_t;

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

static inline recorder_t *rec_of(os_t *os)
{
    return (recorder_t *)os;
}

static inline recorder_file_t *rec_file(os_file_t *file)
{
    return (recorder_file_t *)file;
}

static inline dberr_t rec_open(os_t *os, const char *path, os_open_mode_t mode, os_file_t **out)
{
    recorder_t *rec = rec_of(os);
    if (mode != OS_OPEN) {
        dberr_t err = rec_line(rec, "create %s", path);
        if (err != DB_SUCCESS) {
            return err;
        }
    }
    os_file_t *inner = NULL;
    dberr_t err = rec->inner->vt->open(rec->inner, path, mode, &inner);
    if (err != DB_SUCCESS) {
        return err;
    }
    recorder_file_t *file = calloc(1, sizeof *file);
    assert_non_null(file);
    file->base.os = os;
    file->inner = inner;
    snprintf(file->path, sizeof file->path, "%s", path);
    *out = &file->base;
    return DB_SUCCESS;
}

static inline dberr_t rec_read(os_file_t *file, uint64_t offset, void *buf, size_t len, size_t *n)
{
    os_file_t *inner = rec_file(file)->inner;
    return inner->os->vt->read(inner, offset, buf, len, n);
}

static inline dberr_t rec_write(os_file_t *file, uint64_t offset, const void *buf, size_t len)
{
    os_file_t *inner = rec_file(file)->inner;
    dberr_t err =
        rec_line(rec_of(file->os), "write %s %" PRIu64 " %zu", rec_file(file)->path, offset, len);
    return err != DB_SUCCESS ? err : inner->os->vt->write(inner, offset, buf, len);
}

static inline dberr_t rec_sync(os_file_t *file)
{
    os_file_t *inner = rec_file(file)->inner;
    dberr_t err = rec_line(rec_of(file->os), "sync %s", rec_file(file)->path);
    return err != DB_SUCCESS ? err : inner->os->vt->sync(inner);
}

static inline dberr_t rec_truncate(os_file_t *file, uint64_t size_bytes)
{
    os_file_t *inner = rec_file(file)->inner;
    dberr_t err =
        rec_line(rec_of(file->os), "truncate %s %" PRIu64, rec_file(file)->path, size_bytes);
    return err != DB_SUCCESS ? err : inner->os->vt->truncate(inner, size_bytes);
}

static inline dberr_t rec_size(os_file_t *file, uint64_t *size_bytes)
{
    os_file_t *inner = rec_file(file)->inner;
    return inner->os->vt->size(inner, size_bytes);
}

static inline void rec_close(os_file_t *file)
{
    os_file_t *inner = rec_file(file)->inner;
    inner->os->vt->close(inner);
    free(file);
}

static inline dberr_t rec_rename(os_t *os, const char *from, const char *to)
{
    dberr_t err = rec_line(rec_of(os), "rename %s %s", from, to);
    os_t *inner = rec_of(os)->inner;
    return err != DB_SUCCESS ? err : inner->vt->rename(inner, from, to);
}

static inline dberr_t rec_unlink(os_t *os, const char *path)
{
    dberr_t err = rec_line(rec_of(os), "unlink %s", path);
    os_t *inner = rec_of(os)->inner;
    return err != DB_SUCCESS ? err : inner->vt->unlink(inner, path);
}

static inline dberr_t rec_sync_dir(os_t *os)
{
    dberr_t err = rec_line(rec_of(os), "syncdir");
    os_t *inner = rec_of(os)->inner;
    return err != DB_SUCCESS ? err : inner->vt->sync_dir(inner);
}

static inline dberr_t rec_exists(os_t *os, const char *path, bool *exists)
{
    os_t *inner = rec_of(os)->inner;
    return inner->vt->exists(inner, path, exists);
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

static const os_vtable_t rec_vtable = {.open = rec_open,
                                       .read = rec_read,
                                       .write = rec_write,
                                       .sync = rec_sync,
                                       .truncate = rec_truncate,
                                       .size = rec_size,
                                       .close = rec_close,
                                       .rename = rec_rename,
                                       .unlink = rec_unlink,
                                       .sync_dir = rec_sync_dir,
                                       .exists = rec_exists};

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

#define ASSERT_OK(fx, call)                                                                        \
    do {                                                                                           \
        dberr_t ok_err_ = (call);                                                                  \
        if (ok_err_ != DB_SUCCESS) {                                                               \
            fail_msg("%s: %s: %s", #call, err_name(ok_err_), (fx)->env.err.msg);                   \
        }                                                                                          \
    } while (0)

/** Opens the log of fx->os for writing, behind its last group, and an empty registry. */
static inline void base_attach(base_fixture_t *fx)
{
    ASSERT_OK(fx, log_open(&fx->env, &fx->log));
    log_checkpoint_t ckpt[2];
    uint32_t n = 0;
    log_checkpoints(fx->log, ckpt, &n);
    log_reader_t *reader = NULL;
    ASSERT_OK(fx, log_reader_create(fx->log, ckpt[0].lsn, &reader));
    log_group_t group;
    dberr_t err;
    do {
        err = log_reader_next(reader, &group);
    } while (err == DB_SUCCESS);
    assert_int_equal(err, DB_NOT_FOUND);
    lsn_t end = log_reader_end_lsn(reader);
    log_reader_free(reader);
    ASSERT_OK(fx, log_start_writing(fx->log, &ckpt[0], end));
    ASSERT_OK(fx, fil_create(&fx->env, fx->log, fx->page_size, &fx->fil));
}

/** Sets up recorder and environment over the empty directory fx->os, with a new log. */
static inline void base_open(base_fixture_t *fx, uint32_t page_size)
{
    fx->page_size = page_size;
    fx->rec.base.vt = &rec_vtable;
    fx->rec.inner = fx->os;
    fx->rec.lines = calloc(REC_LINES_MAX, sizeof *fx->rec.lines);
    assert_non_null(fx->rec.lines);
    fx->probe.point = rec_point;
    fx->probe.mark = rec_mark;
    fx->probe.ctx = &fx->rec;
    fx->env.os = &fx->rec.base;
    fx->env.probe = &fx->probe;
    ASSERT_OK(fx, log_file_create(&fx->env, LOG_FILE_NAME, page_size, 256ULL * page_size));
    base_attach(fx);
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
