/** Recovery of single pages: what is created, read, restored, skipped or refused. Spaces are bare:
pages made by mini-transactions, no catalogue. */
#include "test_recv_pages.h"

static void lsn_beyond_log(dbx_t *db, byte *page)
{
    fil_page_set_lsn(page, 4096, 1U << 30);
    dbx_stamp(db, page);
}

/* A page whose initialisation is in the log is rebuilt without being read, even if its home copy is
torn (I14). */
static void test_init_is_never_read(void **state)
{
    (void)state;
    dbx_t *db = pages_create();
    page_init(db, 3, 0x11, MTR_LOG_ALL);
    page_change(db, 3, 201, 0x22);
    page_init(db, 3, 0xA1, MTR_LOG_ALL);
    page_change(db, 3, 200, 0xB2);
    db = dbx_crash(db);
    memset(dbx_home(db, T1_PATH, 3), 0xEE, 4096);
    ASSERT_OK(db, dbx_redo(db));
    assert_true(dbx_marked(db, "recv_create space=5 page=3"));
    assert_false(dbx_marked(db, "recv_read space=5 page=3"));
    assert_int_equal(page_byte(db, 3, 100), 0xA1);
    assert_int_equal(page_byte(db, 3, 200), 0xB2);
    assert_int_equal(db->env.stats.recv_pages_created, 1);
    /* INIT, MEMSET, and one byte: nothing from before the last initialisation. */
    assert_int_equal(db->env.stats.recv_records, 3);
    dbx_free(db);
}

/* Changes of a page that is not initialised in the log are applied to what the file has, once. */
static void test_change_is_applied_once(void **state)
{
    (void)state;
    dbx_t *db = page_3_create(true);
    page_change(db, 3, 200, 1);
    ASSERT_OK(db, buf_flush_all(db->pool));
    page_change(db, 3, 200, 2);
    db = dbx_crash_and_redo(db);
    assert_true(dbx_marked(db, "recv_read space=5 page=3 why=redo"));
    assert_int_equal(page_byte(db, 3, 200), 2);
    assert_int_equal(db->env.stats.recv_records, 1);
    dbx_free(db);
}

/* A torn page with neither copy nor initialisation is refused, and the message names page and file
(I5, I30). */
static void test_torn_page_is_refused(void **state)
{
    (void)state;
    dbx_t *db = page_3_create(true);
    page_change(db, 3, 200, 1);
    db = dbx_crash(db);
    dbx_tear(db, T1_PATH, 3);
    refused_without_copy(db, "torn page 3 of t1.ibd: no doublewrite copy");
}

/** A database in which page 3 was flushed through doublewrite after the checkpoint, and then torn.
*/
static dbx_t *torn_after_flush(bool second_flush)
{
    dbx_t *db = pages_create();
    page_init(db, 3, 0xA1, MTR_LOG_ALL);
    page_init(db, 4, 0xA1, MTR_LOG_ALL); /* so that the copies of these are older than C */
    ASSERT_OK(db, buf_checkpoint_full(db->pool));
    page_change(db, 3, 200, 1);
    ASSERT_OK(db, buf_flush_all(db->pool));
    if (second_flush) {
        page_change(db, 3, 200, 2); /* its copy goes into a single-page slot */
        buf_page_peek(db->pool, (page_id_t){T1, 3})->observer = 77;
        ASSERT_OK(db, flush_load(db->pool, T1, 77));
    }
    page_change(db, 3, 201, 9);
    db = dbx_crash(db);
    dbx_tear(db, T1_PATH, 3);
    return db;
}

static dberr_t note_sync(void *ctx, const tap_op_t *op)
{
    if (op->kind == TAP_SYNC) {
        dbx_mark(ctx, "sync ", 5);
        dbx_mark(ctx, op->path, strlen(op->path));
    }
    return DB_SUCCESS;
}

/* A torn page is restored from its copy, fsynced before anything can use the doublewrite area again
(I22), and redo goes on from there. */
static void test_dblwr_restores(void **state)
{
    (void)state;
    dbx_t *db = torn_after_flush(false);
    db->tap.before = note_sync;
    db->tap.ctx = db;
    ASSERT_OK(db, dbx_redo(db));
    const char *restore = strstr(db->marks, "recv_dblwr_restore space=5 page=3");
    const char *sync = restore != NULL ? strstr(restore, T1_PATH) : NULL;
    assert_true(sync != NULL && sync < strstr(db->marks, "point name=recv.dblwr_restored"));
    assert_true(dbx_marked(db, "recv_dblwr_restore space=5 page=3"));
    assert_int_equal(db->env.stats.recv_dblwr_restored, 1);
    assert_int_equal(page_byte(db, 3, 200), 1);
    assert_int_equal(page_byte(db, 3, 201), 9);
    dbx_free(db);
}

/* Of two copies of a page the newer one is taken; a damaged copy does not count. */
static void test_dblwr_newest_copy(void **state)
{
    (void)state;
    dbx_t *db = torn_after_flush(true);
    byte *area = dbx_bytes(db, DBLWR_FILE_NAME, NULL);
    byte *slots[2] = {area, area + 8 * 4096};
    lsn_t lsn[2] = {fil_page_get_lsn(slots[0]), fil_page_get_lsn(slots[1])};
    assert_int_equal(fil_page_get_id(slots[0]).page_no, 3);
    assert_int_equal(fil_page_get_id(slots[1]).page_no, 3);
    char text[100];
    uint32_t newer = lsn[1] > lsn[0];
    snprintf(text, sizeof(text), "recv_dblwr_restore space=5 page=3 lsn=%" PRIu64 "\n", lsn[newer]);
    dbx_t *other = dbx_clone(db);
    ASSERT_OK(db, dbx_redo(db));
    assert_true(dbx_marked(db, text));
    assert_int_equal(page_byte(db, 3, 200), 2);
    dbx_free(db);
    dbx_bytes(other, DBLWR_FILE_NAME, NULL)[newer * 8 * 4096 + 300] ^= 1;
    snprintf(text, sizeof(text), "recv_dblwr_restore space=5 page=3 lsn=%" PRIu64 "\n",
             lsn[!newer]);
    ASSERT_OK(other, dbx_redo(other));
    assert_true(dbx_marked(other, text));
    assert_int_equal(page_byte(other, 3, 200), 2);
    dbx_free(other);
}

/* A copy from beyond the end of the log is of a batch that never reached its home writes: it is
ignored. */
static void test_dblwr_copy_beyond_end(void **state)
{
    (void)state;
    dbx_t *db = torn_after_flush(false);
    byte *copy = dbx_bytes(db, DBLWR_FILE_NAME, NULL);
    while (fil_page_get_id(copy).page_no != 3 || fil_page_get_id(copy).space != T1) {
        copy += 4096;
    }
    lsn_beyond_log(db, copy);
    dbx_assert_refused(db, "torn page 3 of t1.ibd");
    dbx_free(db);
}

/** Fills the doublewrite file with copies of pages that differ from each other, and more than the
area can hold; the one of page 3 lies at this position. */
static void overfill_area(dbx_t *db, uint32_t position)
{
    enum { POSITIONS = 600 };
    byte copy[4096];
    memcpy(copy, dbx_bytes(db, DBLWR_FILE_NAME, NULL), sizeof(copy));
    assert_int_equal(fil_page_get_id(copy).page_no, 3);
    byte *area = malloc((size_t)POSITIONS * 4096);
    assert_non_null(area);
    for (uint32_t i = 0; i < POSITIONS; i++) {
        byte *page = area + (size_t)i * 4096;
        fil_page_init(page, 4096, (page_id_t){T1, 1000 + i}, FIL_PAGE_TYPE_SYS);
        fil_page_set_lsn(page, 4096, fil_page_get_lsn(copy));
        dbx_stamp(db, page);
    }
    memcpy(area + (size_t)position * 4096, copy, sizeof(copy));
    os_file_t *file = NULL;
    ASSERT_OK(db, env_open(&db->env, DBLWR_FILE_NAME, OS_OPEN, &file));
    ASSERT_OK(db, env_write(&db->env, file, 0, area, (size_t)POSITIONS * 4096));
    env_close(&db->env, file);
    free(area);
}

/* As many copies count as the area can hold at its largest, 264; what lies behind them was never
written. */
static void test_dblwr_area_too_long(void **state)
{
    (void)state;
    dbx_t *db = torn_after_flush(false);
    dbx_t *behind = dbx_clone(db);
    overfill_area(db, DBLWR_POSITIONS_MAX - 1);
    ASSERT_OK(db, dbx_redo(db));
    assert_int_equal(db->env.stats.recv_dblwr_restored, 1);
    assert_int_equal(page_byte(db, 3, 200), 1);
    dbx_free(db);
    overfill_area(behind, DBLWR_POSITIONS_MAX);
    dbx_assert_refused(behind, "torn page 3 of t1.ibd: no doublewrite copy");
    dbx_free(behind);
}

/* An undamaged home page is left alone, whatever the copies say. */
static void test_dblwr_leaves_valid_home(void **state)
{
    (void)state;
    dbx_t *db = torn_after_flush(false);
    dbx_tear(db, T1_PATH, 3); /* twice is not at all */
    ASSERT_OK(db, dbx_redo(db));
    assert_int_equal(db->env.stats.recv_dblwr_restored, 0);
    assert_int_equal(page_byte(db, 3, 201), 9);
    dbx_free(db);
}

/* A torn page 0 is found by the ids of the pages behind it, and restored. */
static void test_torn_page_0(void **state)
{
    (void)state;
    dbx_t *db = page_3_create(false);
    mtr_t mtr;
    mtr_start(&mtr, db->pool, MTR_LOG_ALL);
    buf_block_t *block = NULL;
    ASSERT_OK(db, fseg_create(&mtr, T1, FIL_PAGE_TYPE_SYS, 100, &block));
    mtr_commit(&mtr);
    ASSERT_OK(db, buf_flush_all(db->pool));
    db = dbx_crash(db);
    dbx_tear(db, T1_PATH, 0);
    dbx_t *no_copy = dbx_clone(db);
    dbx_t *moved = dbx_clone(db);
    /* Under a name that the log does not know, the pages behind page 0 tell whose file it is. */
    ASSERT_OK(moved, env_rename(&moved->env, T1_PATH, "moved.ibd"));
    ASSERT_OK(moved, dbx_redo(moved));
    assert_string_equal(fil_space_get(moved->fil, T1)->path, "moved.ibd");
    dbx_free(moved);
    ASSERT_OK(db, dbx_redo(db));
    assert_true(dbx_marked(db, "recv_dblwr_restore space=5 page=0"));
    assert_int_equal(fil_space_get(db->fil, T1)->size_pages, FX_EXTENT_PAGES);
    dbx_free(db);
    refused_without_copy(no_copy, "torn page 0 of t1.ibd");
}

/* A page that the log frees last is not read (I15), torn or not: an empty one of the LSN of the
free goes home. */
static void test_freed_page(void **state)
{
    (void)state;
    dbx_t *db = page_3_create(true);
    page_change(db, 3, 200, 1);
    dbx_page_free(db, (page_id_t){T1, 3});
    lsn_t freed = log_lsn(db->log);
    db = dbx_crash(db);
    dbx_tear(db, T1_PATH, 3);
    ASSERT_OK(db, dbx_redo(db));
    assert_true(dbx_marked(db, "recv_free space=5 page=3"));
    assert_false(dbx_marked(db, "recv_read space=5 page=3"));
    ASSERT_OK(db, buf_flush_all(db->pool));
    const byte *home = dbx_home(db, T1_PATH, 3);
    assert_int_equal(fil_page_verify(home, 4096, (page_id_t){T1, 3}), PAGE_OK);
    assert_int_equal(fil_page_get_lsn(home), freed);
    assert_int_equal(home[200], 0);
    dbx_free(db);
}

/* A change of a page that was freed and not initialised again is refused (I15, I30). */
static void test_change_after_free(void **state)
{
    (void)state;
    dbx_t *db = page_3_create(true);
    dbx_page_free(db, (page_id_t){T1, 3});
    redo_rec_t rec = {
        .op = OP_NUMBER, .len = 1, .space = T1, .page_no = 3, .offset = 200, .value = 1};
    log_append_rec(db->log, &rec, NULL);
    db = dbx_crash(db);
    dbx_assert_refused(db, "page 3 of t1.ibd: changed at");
    dbx_free(db);
}

/* A page that recovery made from its initialisation is as fresh as it was in the run: with
log_optimize_ddl off its first write skips doublewrite again, and only that one. */
static void test_created_page_skips(void **state)
{
    (void)state;
    for (int optimize = 0; optimize < 2; optimize++) {
        dbx_t *db = page_3_create(false);
        db->options.log_optimize_ddl = optimize;
        db = dbx_crash_and_redo(db);
        ASSERT_OK(db, buf_flush_all(db->pool));
        const char *write = strstr(db->marks, "page_write space=5 page=3");
        assert_non_null(write);
        char text[300];
        snprintf(text, sizeof(text), "%s", write);
        *strchr(text, '\n') = '\0';
        assert_true((strstr(text, "dblwr=skip why=init") != NULL) == !optimize);
        assert_non_null(strstr(strstr(db->marks, "recv_create space=5 page=3"), "recv_apply"));
        dbx_free(db);
    }
}

/* A page LSN beyond the end of the log refuses the start (I4). */
static void test_page_beyond_log(void **state)
{
    (void)state;
    dbx_t *db = page_3_create(true);
    page_change(db, 3, 200, 1);
    db = dbx_crash(db);
    byte *page = dbx_home(db, T1_PATH, 3);
    lsn_beyond_log(db, page);
    dbx_assert_refused(db, "page 3 of t1.ibd: LSN 1073741824 is beyond the end of the log");
    dbx_free(db);
}

/* A record that its page cannot take refuses the start instead of changing something else. */
static void test_impossible_record(void **state)
{
    (void)state;
    dbx_t *db = page_3_create(false);
    redo_rec_t rec = {.op = OP_REC_DELETE, .space = T1, .page_no = 3, .slot = 7};
    log_append_rec(db->log, &rec, NULL);
    db = dbx_crash(db);
    dbx_assert_refused(db, "page 3 of t1.ibd cannot take the MLOG_COMP_REC_DELETE");
    dbx_free(db);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_init_is_never_read),   cmocka_unit_test(test_change_is_applied_once),
        cmocka_unit_test(test_torn_page_is_refused), cmocka_unit_test(test_dblwr_restores),
        cmocka_unit_test(test_dblwr_newest_copy),    cmocka_unit_test(test_dblwr_copy_beyond_end),
        cmocka_unit_test(test_dblwr_area_too_long),  cmocka_unit_test(test_dblwr_leaves_valid_home),
        cmocka_unit_test(test_torn_page_0),          cmocka_unit_test(test_freed_page),
        cmocka_unit_test(test_change_after_free),    cmocka_unit_test(test_created_page_skips),
        cmocka_unit_test(test_page_beyond_log),      cmocka_unit_test(test_impossible_record),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
