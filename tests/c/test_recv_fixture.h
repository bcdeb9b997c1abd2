/** A whole database up to recv/ on the memory back end, behind a tap that sees every write before
it happens and every marker, so that a test can keep the crashed image of any moment. */
#ifndef TEST_RECV_FIXTURE_H
#define TEST_RECV_FIXTURE_H

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mach.h"
#include "btr/btr_bulk.h"
#include "buf/buf_dblwr.h"
#include "recv/recv.h"

/* ---- the tap: a back end in front of a memory directory ---- */

typedef struct tap {
    os_t base;
    os_t *inner;
    struct tap_file *files; /**< open ones: a rename gives them another path */
    void (*on_write)(void *ctx, const char *path, uint64_t offset, const byte *buf, size_t len);
    void *ctx;
    void (*on_sync)(void *ctx, const char *path);
    void *sync_ctx;
} tap_t;

typedef struct tap_file {
    os_file_t base;
    os_file_t *inner;
    struct tap_file *next;
} tap_file_t;

static inline os_t *tap_inner(os_t *os)
{
    return ((tap_t *)os)->inner;
}

static inline os_file_t *tap_inner_file(os_file_t *file)
{
    return ((tap_file_t *)file)->inner;
}

static inline dberr_t tap_open(os_t *os, const char *path, os_open_mode_t mode, os_file_t **out)
{
    os_file_t *inner = NULL;
    dberr_t err = tap_inner(os)->vt->open(tap_inner(os), path, mode, &inner);
    if (err == DB_SUCCESS) {
        tap_file_t *file = calloc(1, sizeof *file);
        assert_non_null(file);
        file->base.os = os;
        snprintf(file->base.path, sizeof file->base.path, "%s", path);
        file->inner = inner;
        file->next = ((tap_t *)os)->files;
        ((tap_t *)os)->files = file;
        *out = &file->base;
    }
    return err;
}

static inline dberr_t tap_read(os_file_t *file, uint64_t offset, void *buf, size_t len, size_t *n)
{
    return tap_inner(file->os)->vt->read(tap_inner_file(file), offset, buf, len, n);
}

static inline dberr_t tap_write(os_file_t *file, uint64_t offset, const void *buf, size_t len)
{
    tap_t *tap = (tap_t *)file->os;
    if (tap->on_write != NULL) {
        tap->on_write(tap->ctx, file->path, offset, buf, len);
    }
    return tap->inner->vt->write(tap_inner_file(file), offset, buf, len);
}

static inline dberr_t tap_sync(os_file_t *file)
{
    tap_t *tap = (tap_t *)file->os;
    if (tap->on_sync != NULL) {
        tap->on_sync(tap->sync_ctx, file->path);
    }
    return tap_inner(file->os)->vt->sync(tap_inner_file(file));
}

static inline dberr_t tap_truncate(os_file_t *file, uint64_t size_bytes)
{
    return tap_inner(file->os)->vt->truncate(tap_inner_file(file), size_bytes);
}

static inline dberr_t tap_size(os_file_t *file, uint64_t *size_bytes)
{
    return tap_inner(file->os)->vt->size(tap_inner_file(file), size_bytes);
}

static inline void tap_close(os_file_t *file)
{
    tap_inner(file->os)->vt->close(tap_inner_file(file));
    tap_file_t **link = &((tap_t *)file->os)->files;
    while (&(*link)->base != file) {
        link = &(*link)->next;
    }
    *link = (*link)->next;
    free(file);
}

static inline dberr_t tap_rename(os_t *os, const char *from, const char *to)
{
    for (tap_file_t *file = ((tap_t *)os)->files; file != NULL; file = file->next) {
        if (strcmp(file->base.path, from) == 0) {
            snprintf(file->base.path, sizeof file->base.path, "%s", to);
        }
    }
    return tap_inner(os)->vt->rename(tap_inner(os), from, to);
}

static inline dberr_t tap_unlink(os_t *os, const char *path)
{
    return tap_inner(os)->vt->unlink(tap_inner(os), path);
}

static inline dberr_t tap_sync_dir(os_t *os)
{
    return tap_inner(os)->vt->sync_dir(tap_inner(os));
}

static inline dberr_t tap_exists(os_t *os, const char *path, bool *exists)
{
    return tap_inner(os)->vt->exists(tap_inner(os), path, exists);
}

static inline dberr_t tap_list(os_t *os, os_list_fn fn, void *ctx)
{
    return tap_inner(os)->vt->list(tap_inner(os), fn, ctx);
}

static const os_vtable_t tap_vtable = {.open = tap_open,
                                       .read = tap_read,
                                       .write = tap_write,
                                       .sync = tap_sync,
                                       .truncate = tap_truncate,
                                       .size = tap_size,
                                       .close = tap_close,
                                       .rename = tap_rename,
                                       .unlink = tap_unlink,
                                       .sync_dir = tap_sync_dir,
                                       .exists = tap_exists,
                                       .list = tap_list};

/* ---- the database ---- */

#define DBX_MARKS_SIZE (1U << 20)

typedef struct dbx {
    tap_t tap;
    probe_t probe;
    env_t env;
    engine_options_t options;
    log_t *log;
    fil_t *fil;
    buf_pool_t *pool;
    dict_t *dict;
    trx_sys_t *sys;
    void (*on_point)(void *ctx, const char *name);
    void *point_ctx;
    char *marks; /**< markers since the last open, one per line */
    size_t marks_len;
} dbx_t;

#define DBX_OK(db, call)                                                                           \
    do {                                                                                           \
        dberr_t ok_err_ = (call);                                                                  \
        if (ok_err_ != DB_SUCCESS) {                                                               \
            fail_msg("%s: %s: %s", #call, err_name(ok_err_), (db)->env.err.msg);                   \
        }                                                                                          \
    } while (0)

static inline void dbx_point(void *ctx, const char *name)
{
    dbx_t *db = ctx;
    if (db->on_point != NULL) {
        db->on_point(db->point_ctx, name);
    }
}

static inline void dbx_mark(void *ctx, const char *text, size_t len)
{
    dbx_t *db = ctx;
    if (db->marks_len + len + 2 < DBX_MARKS_SIZE) {
        memcpy(db->marks + db->marks_len, text, len);
        db->marks_len += len;
        db->marks[db->marks_len++] = '\n';
        db->marks[db->marks_len] = '\0';
    }
}

static inline bool dbx_marked(const dbx_t *db, const char *text)
{
    return strstr(db->marks, text) != NULL;
}

/** A handle on the directory os, which it owns from now on. Nothing is opened. */
static inline dbx_t *dbx_alloc(os_t *os)
{
    dbx_t *db = calloc(1, sizeof *db);
    assert_non_null(db);
    db->tap.base.vt = &tap_vtable;
    db->tap.inner = os;
    db->marks = calloc(1, DBX_MARKS_SIZE);
    assert_non_null(db->marks);
    db->probe.point = dbx_point;
    db->probe.mark = dbx_mark;
    db->probe.ctx = db;
    db->env.os = &db->tap.base;
    db->env.probe = &db->probe;
    atomic_store(&db->probe.armed, true);
    options_set_defaults(&db->options);
    db->options.page_size = 4096;
    db->options.log_file_size = 1U << 20;
    db->options.dblwr_pages = 8;
    db->options.buffer_pool_pages = 64;
    return db;
}

static inline os_t *dbx_os(dbx_t *db)
{
    return db->tap.inner;
}

static inline void dbx_close(dbx_t *db)
{
    trx_sys_close(db->sys);
    dict_close(db->dict);
    buf_pool_free(db->pool);
    fil_close(db->fil);
    log_close(db->log);
    db->sys = NULL;
    db->dict = NULL;
    db->pool = NULL;
    db->fil = NULL;
    db->log = NULL;
}

static inline void dbx_free(dbx_t *db)
{
    dbx_close(db);
    os_destroy(db->tap.inner);
    free(db->marks);
    free(db);
}

/** Recovery of pages only: recv_redo. */
static inline dberr_t dbx_redo(dbx_t *db)
{
    db->env.stats = (stats_t){0};
    db->env.io_failed = false;
    db->marks_len = 0;
    db->marks[0] = '\0';
    dberr_t err = log_open(&db->env, &db->log);
    if (err == DB_SUCCESS) {
        err = fil_create(&db->env, db->log, db->options.page_size, &db->fil);
    }
    if (err == DB_SUCCESS) {
        err = buf_pool_create(&db->env, db->log, db->fil, &db->options, &db->pool);
    }
    if (err == DB_SUCCESS) {
        err = recv_redo(db->log, db->fil, db->pool, &db->options);
    }
    return err;
}

/** The whole start. */
static inline dberr_t dbx_open(dbx_t *db)
{
    dberr_t err = dbx_redo(db);
    if (err == DB_SUCCESS) {
        err = dict_open(db->pool, &db->dict);
    }
    if (err == DB_SUCCESS) {
        err = trx_sys_open(db->pool, db->dict, db->options.flush_log_at_trx_commit, &db->sys);
    }
    return err == DB_SUCCESS ? recv_finish(db->sys) : err;
}

/** Log and ibdata1 with a space header, checkpointed; no catalogue when bare. Then opened. */
static inline void dbx_bootstrap(dbx_t *db, bool bare)
{
    DBX_OK(db, log_file_create(&db->env, LOG_FILE_NAME, db->options.page_size,
                               db->options.log_file_size));
    os_file_t *file = NULL;
    DBX_OK(db, env_open(&db->env, FIL_SYSTEM_PATH, OS_CREATE_NEW, &file));
    DBX_OK(db, env_truncate(&db->env, file, (uint64_t)FSP_INITIAL_PAGES * db->options.page_size));
    env_close(&db->env, file);
    DBX_OK(db, log_open(&db->env, &db->log));
    log_reader_t *reader = NULL;
    log_group_t group;
    DBX_OK(db, log_reader_create(db->log, log_last_checkpoint(db->log)->lsn, &reader));
    while (log_reader_next(reader, &group) == DB_SUCCESS) {
    }
    lsn_t end = log_reader_end_lsn(reader);
    log_reader_free(reader);
    DBX_OK(db, log_start_writing(db->log, log_last_checkpoint(db->log), end));
    DBX_OK(db, fil_create(&db->env, db->log, db->options.page_size, &db->fil));
    fil_space_t *space = NULL;
    DBX_OK(db, fil_space_open(db->fil, SPACE_SYSTEM, FIL_SYSTEM_PATH, FSP_INITIAL_PAGES, &space));
    DBX_OK(db, buf_pool_create(&db->env, db->log, db->fil, &db->options, &db->pool));
    mtr_t mtr;
    mtr_start(&mtr, db->pool, MTR_LOG_ALL);
    DBX_OK(db, fsp_header_init(&mtr, SPACE_SYSTEM, FSP_INITIAL_PAGES));
    mtr_commit(&mtr);
    if (!bare) {
        DBX_OK(db, trx_sys_bootstrap(db->pool));
        DBX_OK(db, dict_bootstrap(db->pool));
    }
    DBX_OK(db, buf_checkpoint_full(db->pool));
    dbx_close(db);
    DBX_OK(db, bare ? dbx_redo(db) : dbx_open(db));
}

static inline dbx_t *dbx_create(bool bare)
{
    os_t *os = NULL;
    assert_int_equal(os_mem_create(&os), DB_SUCCESS);
    dbx_t *db = dbx_alloc(os);
    dbx_bootstrap(db, bare);
    return db;
}

/** The image as it is now, under a new handle with the same options, not opened. */
static inline dbx_t *dbx_clone(dbx_t *db)
{
    os_t *os = NULL;
    assert_int_equal(os_mem_clone(dbx_os(db), &os), DB_SUCCESS);
    dbx_t *copy = dbx_alloc(os);
    copy->options = db->options;
    return copy;
}

static inline byte *dbx_bytes(dbx_t *db, const char *path, uint64_t *size)
{
    byte *bytes = NULL;
    uint64_t n = 0;
    assert_int_equal(os_mem_peek(dbx_os(db), path, &bytes, &n), DB_SUCCESS);
    if (size != NULL) {
        *size = n;
    }
    return bytes;
}

/** The home copy of a page. */
static inline byte *dbx_home(dbx_t *db, const char *path, page_no_t page_no)
{
    uint64_t size = 0;
    byte *bytes = dbx_bytes(db, path, &size);
    assert_true(((uint64_t)page_no + 1) * db->options.page_size <= size);
    return bytes + (size_t)page_no * db->options.page_size;
}

/** Damages the middle of a page, as a torn write does. */
static inline void dbx_tear(dbx_t *db, const char *path, page_no_t page_no)
{
    byte *page = dbx_home(db, path, page_no);
    for (uint32_t i = 0; i < SECTOR_SIZE; i++) {
        page[db->options.page_size / 2 + i] ^= 0x5A;
    }
}

/** The same, then with right checksums: a logically wrong page. */
static inline void dbx_stamp(dbx_t *db, byte *page)
{
    fil_page_stamp(page, db->options.page_size);
}

static inline void dbx_flush_log(dbx_t *db)
{
    DBX_OK(db, log_write_up_to(db->log, log_lsn(db->log), true));
}

/** Fails unless opening is refused with a message that contains text. */
static inline void dbx_assert_refused(dbx_t *db, const char *text)
{
    dberr_t err = dbx_redo(db);
    if (err != DB_UNRECOVERABLE || strstr(db->env.err.msg, text) == NULL) {
        fail_msg("expected a refusal with '%s', got %s: %s", text, err_name(err), db->env.err.msg);
    }
}

#endif
