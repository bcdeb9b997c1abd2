/** A whole database up to recv/ on the simulated disk, behind a tap that sees every write before
it happens and every marker, so that a test can keep the crashed image of any moment. */
#ifndef TEST_RECV_FIXTURE_H
#define TEST_RECV_FIXTURE_H

#include "base/mach.h"
#include "btr/btr_bulk.h"
#include "buf/buf_dblwr.h"
#include "recv/recv.h"
#include "test_fsp_fixture.h"

#define DBX_MARKS_SIZE (1U << 20)

/** The space of the tests of recv/. */
#define T1 5U
#define T1_PATH "t1.ibd"

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
    dbx_t *db = calloc(1, sizeof(*db));
    assert_non_null(db);
    db->tap = tap_of(os);
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

/** As a clean shutdown: with a full checkpoint. */
static inline void dbx_close_clean(dbx_t *db)
{
    dberr_t err = buf_checkpoint_full(db->pool);
    if (err != DB_SUCCESS) {
        fail_msg("%s: %s", err_name(err), db->env.err.msg);
    }
    dbx_close(db);
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
    db->env.err = (err_sink_t){.msg = ""};
    db->marks_len = 0;
    db->marks[0] = '\0';
    TRY(log_open(&db->env, &db->log));
    TRY(fil_create(&db->env, db->log, db->options.page_size, db->options.open_files, &db->fil));
    TRY(buf_pool_create(&db->env, db->log, db->fil, &db->options, &db->pool));
    return recv_redo(db->log, db->fil, db->pool, &db->options);
}

/** The whole start. */
static inline dberr_t dbx_open(dbx_t *db)
{
    TRY(dbx_redo(db));
    TRY(dict_open(db->pool, &db->dict));
    TRY(trx_sys_open(db->pool, db->dict, db->options.flush_log_at_trx_commit, &db->sys));
    return recv_finish(db->sys);
}

/** Log and ibdata1 with a space header, checkpointed; no catalogue when bare. Then opened. */
static inline void dbx_bootstrap(dbx_t *db, bool bare)
{
    files_create(&db->env, db->options.page_size, FX_EXTENT_PAGES, db->options.log_file_size,
                 LOG_FORMAT_10_4, &db->log, &db->fil);
    system_create(&db->env, db->log, db->fil, &db->options, &db->pool);
    if (!bare) {
        ASSERT_OK(db, trx_sys_bootstrap(db->pool, 0));
        ASSERT_OK(db, dict_bootstrap(db->pool));
    }
    ASSERT_OK(db, buf_checkpoint_full(db->pool));
    dbx_close(db);
    ASSERT_OK(db, bare ? dbx_redo(db) : dbx_open(db));
}

static inline dbx_t *dbx_create(bool bare)
{
    os_t *os = image_os_create();
    dbx_t *db = dbx_alloc(os);
    dbx_bootstrap(db, bare);
    return db;
}

/** The image as it is now, under a new handle with the same options, not opened. */
static inline dbx_t *dbx_clone(dbx_t *db)
{
    os_t *os = image_os_clone(dbx_os(db));
    dbx_t *copy = dbx_alloc(os);
    copy->options = db->options;
    return copy;
}

static inline byte *dbx_bytes(dbx_t *db, const char *path, uint64_t *size)
{
    uint64_t n = 0;
    byte *bytes = image_os_bytes(dbx_os(db), path, &n);
    assert_non_null(bytes);
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
    ASSERT_OK(db, log_write_up_to(db->log, log_lsn(db->log), true));
}

/** A crash now: the image under a new handle. */
static inline dbx_t *dbx_crash(dbx_t *db)
{
    dbx_flush_log(db);
    dbx_t *image = dbx_clone(db);
    dbx_free(db);
    return image;
}

/** A crash now, and the recovery of the pages. */
static inline dbx_t *dbx_crash_and_redo(dbx_t *db)
{
    db = dbx_crash(db);
    ASSERT_OK(db, dbx_redo(db));
    return db;
}

static inline void dbx_space_create(dbx_t *db, space_id_t id, const char *path)
{
    space_create(&db->env, db->fil, db->pool, id, path);
}

static inline void dbx_page_free(dbx_t *db, page_id_t id)
{
    mtr_t mtr;
    mtr_start(&mtr, db->pool, MTR_LOG_ALL);
    mtr_page_free(&mtr, id);
    mtr_commit(&mtr);
}

/** A byte of a page as a reader gets it. */
static inline byte dbx_page_byte(dbx_t *db, page_id_t id, uint32_t offset)
{
    buf_block_t *block = NULL;
    ASSERT_OK(db, buf_page_get(db->pool, id, &block));
    byte value = block->frame[offset];
    buf_block_unfix(db->pool, block);
    return value;
}

/** Fails unless opening is refused with a message that contains text. */
static inline void dbx_assert_refused(dbx_t *db, const char *text)
{
    dberr_t err = dbx_redo(db);
    if (err != DB_UNRECOVERABLE || strstr(db->env.err.msg, text) == NULL) {
        fail_msg("expected a refusal with '%s', got %s: %s", text, err_name(err), db->env.err.msg);
    }
}

/** Fills 300 bytes of a page from 100 on, in a mini-transaction of its own; @return its end LSN. */
static inline lsn_t dbx_page_write(dbx_t *db, space_id_t space, page_no_t page_no, byte value,
                                   bool init)
{
    mtr_t mtr;
    buf_block_t *block = NULL;
    page_id_t id = {space, page_no};
    ASSERT_OK(db, buf_log_free_check(db->pool));
    mtr_start(&mtr, db->pool, MTR_LOG_ALL);
    if (init) {
        ASSERT_OK(db, mtr_page_create(&mtr, id, FIL_PAGE_TYPE_SYS, &block));
    } else {
        ASSERT_OK(db, mtr_page_get(&mtr, id, &block));
    }
    byte bytes[300];
    memset(bytes, value, sizeof(bytes));
    mtr_write_string(&mtr, block, 100, bytes, sizeof(bytes));
    mtr_commit(&mtr);
    return mtr.end_lsn;
}

/** A bare database with one table space, whose page 3 is changed after the checkpoint. */
static inline dbx_t *dbx_create_t1(void)
{
    dbx_t *db = dbx_create(true);
    dbx_space_create(db, T1, T1_PATH);
    dbx_page_write(db, T1, 3, 1, true);
    ASSERT_OK(db, buf_checkpoint_full(db->pool));
    dbx_page_write(db, T1, 3, 2, false);
    return db;
}

/** The bytes of the slot of checkpoint no. */
static inline byte *dbx_slot(dbx_t *db, uint64_t no)
{
    return dbx_bytes(db, LOG_FILE_NAME, NULL) + (no % 2 == 0 ? 512 : 1536);
}

/** Number of the newest checkpoint; both slots are valid. */
static inline uint64_t dbx_newest_slot(dbx_t *db)
{
    log_checkpoint_t a = {.no = 0};
    log_checkpoint_t b = {.no = 0};
    bool a_ok = log_checkpoint_decode(dbx_slot(db, 0), &a);
    bool b_ok = log_checkpoint_decode(dbx_slot(db, 1), &b);
    assert_true(a_ok && b_ok);
    return a.no > b.no ? a.no : b.no;
}

/** The bytes of the log block that holds lsn. */
static inline byte *dbx_log_block(dbx_t *db, lsn_t lsn)
{
    uint64_t area = db->options.log_file_size - LOG_FILE_HDR_SIZE;
    return dbx_bytes(db, LOG_FILE_NAME, NULL) + LOG_FILE_HDR_SIZE
           + (lsn - LOG_START_LSN) % area / LOG_BLOCK_SIZE * LOG_BLOCK_SIZE;
}

/** At this fault point the image is kept. */
typedef struct dbx_keeper {
    dbx_t *db;
    const char *point;
    dbx_t *image;
} dbx_keeper_t;

static inline void dbx_keep(void *ctx, const char *name)
{
    dbx_keeper_t *k = ctx;
    if (k->image == NULL && strcmp(name, k->point) == 0) {
        k->image = dbx_clone(k->db);
    }
}

static inline void dbx_keep_at(dbx_keeper_t *k, dbx_t *db, const char *point)
{
    *k = (dbx_keeper_t){.db = db, .point = point};
    db->on_point = dbx_keep;
    db->point_ctx = k;
}

/** All of it, as the steps of a build do. */
static inline dberr_t flush_load(buf_pool_t *pool, space_id_t space, index_id_t observer)
{
    bool over = false;
    while (!over) {
        TRY(buf_observer_flush(pool, space, observer, 8, &over));
    }
    return buf_observer_sync(pool, space);
}

#endif
