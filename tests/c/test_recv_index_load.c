/** Recovery of pages in a space with a load that the log does not have: what only the file has is
kept, and what neither has is refused. */
#include "test_recv_pages.h"

static void index_load(dbx_t *db)
{
    ASSERT_OK(db, buf_flush_space(db->pool, T1));
    mtr_t mtr;
    mtr_start(&mtr, db->pool, MTR_LOG_ALL);
    mtr_index_load(&mtr, T1, 3, 77);
    mtr_commit(&mtr);
    dbx_flush_log(db);
}

/** Records that take a batch of their own when recovery has little memory. */
static void fill_batch(dbx_t *db)
{
    for (uint32_t i = 0; i < 300; i++) {
        dbx_page_write(db, T1, 4, (byte)i, i == 0);
    }
}

/** A crash in which the page was never written, neither home nor as a copy; then several
batches. */
static dbx_t *redo_unwritten_in_batches(dbx_t *db, page_no_t page_no)
{
    db = dbx_crash(db);
    memset(dbx_home(db, T1_PATH, page_no), 0, 4096);
    lose_copies(db);
    db->options.recv_memory = 64 * 1024;
    ASSERT_OK(db, dbx_redo(db));
    assert_true(db->env.stats.recv_batches > 1);
    return db;
}

/* An INDEX_LOAD vouches for a load that initialised a freed page; but when the file has the page as
it was before it was freed, there was none. */
static void test_change_after_free_without_load(void **state)
{
    (void)state;
    dbx_t *db = page_3_create(true);
    dbx_page_free(db, (page_id_t){T1, 3});
    lsn_t freed = log_lsn(db->log);
    index_load(db);
    redo_rec_t rec = {
        .op = OP_NUMBER, .len = 1, .space = T1, .page_no = 3, .offset = 200, .value = 1};
    lsn_t changed = 0;
    log_append_rec(db->log, &rec, &changed);
    db = dbx_crash(db);
    assert_true(fil_page_get_lsn(dbx_home(db, T1_PATH, 3)) < freed);
    assert_int_equal(dbx_redo(db), DB_UNRECOVERABLE);
    char text[sizeof(db->env.err.msg)];
    snprintf(text, sizeof(text),
             "page 3 of t1.ibd: changed at %" PRIu64 " after it was freed at %" PRIu64
             ", but never initialised",
             changed, freed);
    assert_string_equal(db->env.err.msg, text);
    dbx_free(db);
}

/* The previous life: the log initialises a page number, frees it, a non-logged load fills it, and a
logged change follows. Recovery must keep the contents of the load, which only the file has. */
static void test_previous_life(void **state)
{
    (void)state;
    dbx_t *db = page_3_create(false);
    page_change(db, 3, 150, 0x11);
    dbx_page_free(db, (page_id_t){T1, 3});
    page_init(db, 3, 0xC3, MTR_LOG_NO_REDO);
    index_load(db);
    dbx_t *loaded = dbx_clone(db);
    page_change(db, 3, 200, 0xD4);
    db = dbx_crash(db);
    dbx_t *torn = dbx_clone(db);
    ASSERT_OK(db, dbx_redo(db));
    assert_true(dbx_marked(db, "recv_read space=5 page=3"));
    assert_int_equal(page_byte(db, 3, 100), 0xC3);
    assert_int_equal(page_byte(db, 3, 150), 0xC3);
    assert_int_equal(page_byte(db, 3, 200), 0xD4);
    dbx_free(db);
    /* Without a later change the page is left as the load wrote it. */
    ASSERT_OK(loaded, dbx_redo(loaded));
    assert_int_equal(page_byte(loaded, 3, 150), 0xC3);
    dbx_free(loaded);
    /* Torn and without a copy it cannot be had back: not from the first life either. */
    dbx_tear(torn, T1_PATH, 3);
    refused_without_copy(torn, "torn page 3 of t1.ibd");
}

/* In a space with an INDEX_LOAD a page is read although its initialisation is in the log, and the
page LSN decides (MDEV-12699's fallback). Only the older log, whose pages are not freed by a record
of their own, has the initialisation of the previous life as its last word: the record is written by
hand here. */
static void test_index_load_reads(void **state)
{
    (void)state;
    dbx_t *db = page_3_create(false);
    page_init(db, 3, 0xC3, MTR_LOG_NO_REDO);
    index_load(db);
    page_change(db, 3, 200, 0xD4);
    db = dbx_crash(db);
    dbx_t *torn = dbx_clone(db);
    dbx_t *zero = dbx_clone(db);
    ASSERT_OK(db, dbx_redo(db));
    assert_true(dbx_marked(db, "recv_read space=5 page=3 why=index_load"));
    assert_false(dbx_marked(db, "recv_create space=5 page=3"));
    assert_int_equal(db->env.stats.recv_index_load_reads, 1);
    assert_int_equal(page_byte(db, 3, 150), 0xC3);
    assert_int_equal(page_byte(db, 3, 200), 0xD4);
    dbx_free(db);
    dbx_tear(torn, T1_PATH, 3);
    refused_without_copy(torn, "torn page 3 of t1.ibd");
    /* A page that no file ever had holds no load: the log rebuilds it. */
    memset(dbx_home(zero, T1_PATH, 3), 0, 4096);
    lose_copies(zero);
    ASSERT_OK(zero, dbx_redo(zero));
    assert_int_equal(page_byte(zero, 3, 150), 0xA1);
    dbx_free(zero);
}

/** Page 3 is initialised behind an INDEX_LOAD of its space, is home, and changes again. */
static dbx_t *page_3_behind_index_load(void)
{
    dbx_t *db = pages_create();
    page_init(db, 4, 0xC3, MTR_LOG_NO_REDO);
    index_load(db);
    page_init(db, 3, 0xA1, MTR_LOG_ALL);
    ASSERT_OK(db, buf_flush_all(db->pool));
    page_change(db, 3, 200, 0xD4);
    return db;
}

/* An INDEX_LOAD anywhere in the log makes every page of its space be read, also one that is
initialised after it: torn, it is refused, unless a copy has restored it. */
static void test_index_load_no_mercy(void **state)
{
    (void)state;
    dbx_t *db = page_3_behind_index_load();
    db = dbx_crash(db);
    dbx_tear(db, T1_PATH, 3);
    dbx_t *torn = dbx_clone(db);
    ASSERT_OK(db, dbx_redo(db));
    assert_true(dbx_marked(db, "recv_dblwr_restore space=5 page=3"));
    assert_true(dbx_marked(db, "recv_read space=5 page=3 why=index_load"));
    assert_int_equal(page_byte(db, 3, 150), 0xA1);
    assert_int_equal(page_byte(db, 3, 200), 0xD4);
    dbx_free(db);
    refused_without_copy(torn, "torn page 3 of t1.ibd");
}

/* The same with the INDEX_LOAD behind the initialisation and the write. */
static void test_index_load_no_mercy_later(void **state)
{
    (void)state;
    dbx_t *db = page_3_create(false);
    page_init(db, 4, 0xC3, MTR_LOG_NO_REDO);
    index_load(db);
    db = dbx_crash(db);
    dbx_tear(db, T1_PATH, 3);
    refused_without_copy(db, "torn page 3 of t1.ibd");
}

/* A page that the log frees last is read where an INDEX_LOAD lies in its space, before the free or
behind it, and is left as it is: neither changed nor dirty. Torn it is refused, unless a copy has
restored it. */
static void test_index_load_freed(void **state)
{
    (void)state;
    dbx_t *db = page_3_behind_index_load();
    dbx_page_free(db, (page_id_t){T1, 3});
    db = dbx_crash(db);
    dbx_t *torn = dbx_clone(db);
    ASSERT_OK(db, dbx_redo(db));
    assert_true(dbx_marked(db, "recv_read space=5 page=3 why=index_load"));
    assert_false(dbx_marked(db, "recv_free space=5 page=3"));
    assert_int_equal(db->env.stats.recv_freed_reads, 1);
    const buf_block_t *block = buf_page_peek(db->pool, (page_id_t){T1, 3});
    assert_true(block->freed && block->oldest_modification == 0);
    assert_int_equal(block->frame[200], 0xA1);
    dbx_free(db);
    dbx_tear(torn, T1_PATH, 3);
    dbx_t *no_copy = dbx_clone(torn);
    ASSERT_OK(torn, dbx_redo(torn));
    assert_true(dbx_marked(torn, "recv_dblwr_restore space=5 page=3"));
    dbx_free(torn);
    refused_without_copy(no_copy, "torn page 3 of t1.ibd");
}

/* Redo of a page that is older than its newest initialisation begins there: what was changed before
it may build on changes that the file never got. */
static void test_index_load_read_begins_at_init(void **state)
{
    (void)state;
    dbx_t *db = page_3_create(true);
    page_change(db, 3, 150, 0x11);
    page_init(db, 3, 0xA2, MTR_LOG_ALL);
    page_init(db, 4, 0xC3, MTR_LOG_NO_REDO);
    index_load(db);
    db = dbx_crash(db);
    byte old_home[4096];
    fil_page_init(old_home, 4096, (page_id_t){T1, 3}, FIL_PAGE_TYPE_SYS);
    fil_page_set_lsn(old_home, 4096, LOG_FIRST_LSN);
    dbx_stamp(db, old_home);
    memcpy(dbx_home(db, T1_PATH, 3), old_home, sizeof(old_home));
    ASSERT_OK(db, dbx_redo(db));
    assert_int_equal(page_byte(db, 3, 150), 0xA2);
    assert_true(dbx_marked(db, "recv_read space=5 page=3 why=index_load"));
    /* INIT and MEMSET of page 3, not the MLOG_1BYTE. */
    assert_true(dbx_marked(db, "recv_apply space=5 page=3"));
    assert_int_equal(db->env.stats.recv_records, 2);
    dbx_free(db);
}

/* The same in several batches (I18): nothing is done to the page before the batch that initialises
it. */
static void test_index_load_batches(void **state)
{
    (void)state;
    dbx_t *db = page_3_create(false);
    fill_batch(db);
    page_change(db, 3, 150, 0x11);
    page_init(db, 3, 0xA2, MTR_LOG_ALL);
    page_init(db, 5, 0xC3, MTR_LOG_NO_REDO);
    index_load(db);
    db = redo_unwritten_in_batches(db, 3);
    assert_int_equal(page_byte(db, 3, 150), 0xA2);
    dbx_free(db);
}

/* A page that was never written, freed in one batch and initialised in a later one: of its earlier
life there is nothing to free, and nothing of it is written in between. */
static void test_index_load_batches_unwritten(void **state)
{
    (void)state;
    dbx_t *db = page_3_create(false);
    mtr_t mtr;
    mtr_start(&mtr, db->pool, MTR_LOG_ALL);
    mtr_page_free(&mtr, (page_id_t){T1, 6});
    mtr_commit(&mtr);
    fill_batch(db);
    page_init(db, 6, 0xA6, MTR_LOG_ALL);
    page_init(db, 5, 0xC3, MTR_LOG_NO_REDO);
    index_load(db);
    db = redo_unwritten_in_batches(db, 6);
    assert_int_equal(page_byte(db, 6, 150), 0xA6);
    dbx_free(db);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_change_after_free_without_load),
        cmocka_unit_test(test_previous_life),
        cmocka_unit_test(test_index_load_reads),
        cmocka_unit_test(test_index_load_no_mercy),
        cmocka_unit_test(test_index_load_no_mercy_later),
        cmocka_unit_test(test_index_load_freed),
        cmocka_unit_test(test_index_load_read_begins_at_init),
        cmocka_unit_test(test_index_load_batches),
        cmocka_unit_test(test_index_load_batches_unwritten),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
