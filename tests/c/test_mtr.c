/** mtr: atomic groups, stamping, init_on_flush, freeing, NO_REDO, do == redo. */
#include "base/mach.h"
#include "page/page_index.h"
#include "test_mtr_fixture.h"

/** FILE_NAME stands in front of the first group that touches a space since a checkpoint, and only
there; the system space needs none. */
static void test_groups_and_names(void **state)
{
    buf_fixture_t *fx = *state;
    fil_space_t *system = NULL;
    FX_OK(fx, fil_space_create(fx->base.fil, 0, "ibdata1", 8, &system));
    lsn_t from = log_lsn(fx->base.log);
    fx_mtr_create(fx, MTR_LOG_ALL, 0, fx_id(0, 3)); /* single record */
    fx_mtr_create(fx, MTR_LOG_ALL, 0, fx_id(1, 3)); /* name + record */
    fx_mtr_write(fx, MTR_LOG_ALL, fx_id(1, 3), 7);  /* single */
    mtr_t mtr;
    mtr_start(&mtr, fx->pool, MTR_LOG_ALL);
    buf_block_t *a = NULL;
    FX_OK(fx, mtr_page_get(&mtr, fx_id(1, 3), &a));
    buf_block_t *b = NULL;
    FX_OK(fx, mtr_page_create(&mtr, fx_id(2, 4), FIL_PAGE_TYPE_SYS, &b));
    mtr_write_2(&mtr, a, 60, 0x1234);
    mtr_write_8(&mtr, b, 60, 0x0102030405060708);
    mtr_commit(&mtr);
    char text[2000];
    fx_log_text(fx, from, text, sizeof(text));
    assert_string_equal(text, "MLOG_INIT_FILE_PAGE2 0 3; | "
                              "MLOG_FILE_NAME 1 0; MLOG_INIT_FILE_PAGE2 1 3; | "
                              "MLOG_1BYTE 1 3; | "
                              "MLOG_FILE_NAME 2 0; MLOG_INIT_FILE_PAGE2 2 4; MLOG_2BYTES 1 3; "
                              "MLOG_8BYTES 2 4; | ");
    assert_int_equal(mtr.end_lsn, log_lsn(fx->base.log));
    assert_int_equal(fx->t1->max_lsn, mtr.end_lsn);
    assert_int_equal(fx->t2->max_lsn, mtr.end_lsn);

    /* After a checkpoint beyond a space's last change, its name comes again. */
    fx_mtr_write(fx, MTR_LOG_ALL, fx_id(0, 3), 1);
    FX_OK(fx, buf_checkpoint_full(fx->pool));
    assert_false(fx->t1->named);
    from = log_lsn(fx->base.log);
    fx_mtr_write(fx, MTR_LOG_ALL, fx_id(1, 3), 8);
    fx_log_text(fx, from, text, sizeof(text));
    assert_string_equal(text, "MLOG_FILE_NAME 1 0; MLOG_1BYTE 1 3; | ");
}

/** Commit stamps header and trailer LSN with the group's end and keeps the oldest modification. */
static void test_commit_stamps(void **state)
{
    buf_fixture_t *fx = *state;
    lsn_t start = log_lsn(fx->base.log);
    buf_block_t *block = fx_mtr_create(fx, MTR_LOG_ALL, 0, fx_id(1, 3));
    lsn_t end = log_lsn(fx->base.log);
    assert_int_equal(fil_page_get_lsn(block->frame), end);
    assert_int_equal(mach_read_4(block->frame + 4096 - 4), (uint32_t)end);
    assert_int_equal(block->oldest_modification, start);
    assert_int_equal(block->newest_modification, end);
    assert_int_equal(block->init_lsn, end);
    assert_int_equal(block->fix_count, 0);
    fx_mtr_write(fx, MTR_LOG_ALL, fx_id(1, 3), 7);
    assert_int_equal(block->oldest_modification, start);
    assert_int_equal(block->newest_modification, log_lsn(fx->base.log));
    assert_int_equal(block->init_lsn, end);
    /* Reading alone changes nothing. */
    lsn_t lsn = log_lsn(fx->base.log);
    mtr_t mtr;
    mtr_start(&mtr, fx->pool, MTR_LOG_ALL);
    FX_OK(fx, mtr_page_get(&mtr, fx_id(1, 3), &block));
    mtr_commit(&mtr);
    assert_int_equal(log_lsn(fx->base.log), lsn);
    assert_int_equal(mtr.end_lsn, lsn);
}

/** A group of one record carries the flag instead of an end record: not a byte more than the
record. */
static void test_single_flag(void **state)
{
    buf_fixture_t *fx = *state;
    fx_mtr_create(fx, MTR_LOG_ALL, 0, fx_id(1, 3)); /* its name is in the log now */
    redo_rec_t rec = {
        .op = OP_NUMBER, .len = 1, .space = 1, .page_no = 3, .offset = 100, .value = 7};
    redo_group_t group;
    redo_group_init(&group, log_format(fx->base.log));
    redo_group_add(&group, &rec);
    size_t len = group.len;
    redo_group_free(&group);
    lsn_t lsn = log_lsn(fx->base.log);
    fx_mtr_write(fx, MTR_LOG_ALL, fx_id(1, 3), 7);
    assert_int_equal(log_lsn(fx->base.log), lsn + len);
    lsn = log_lsn(fx->base.log);
    mtr_t mtr;
    mtr_start(&mtr, fx->pool, MTR_LOG_ALL);
    buf_block_t *block = NULL;
    FX_OK(fx, mtr_page_get(&mtr, fx_id(1, 3), &block));
    mtr_write_1(&mtr, block, 100, 7);
    mtr_write_1(&mtr, block, 100, 7);
    mtr_commit(&mtr);
    assert_int_equal(log_lsn(fx->base.log), lsn + 2 * len + 1);
}

/** A second get gives the same block with one pin. */
static void test_memo(void **state)
{
    buf_fixture_t *fx = *state;
    fx_mtr_create(fx, MTR_LOG_ALL, 0, fx_id(1, 3));
    mtr_t mtr;
    mtr_start(&mtr, fx->pool, MTR_LOG_ALL);
    buf_block_t *a = NULL;
    FX_OK(fx, mtr_page_get(&mtr, fx_id(1, 3), &a));
    buf_block_t *b = NULL;
    FX_OK(fx, mtr_page_get(&mtr, fx_id(1, 3), &b));
    assert_ptr_equal(a, b);
    assert_int_equal(a->fix_count, 1);
    /* A page in use is not given out again, by this mtr or another. */
    assert_int_equal(mtr_page_create(&mtr, fx_id(1, 3), FIL_PAGE_TYPE_SYS, &b), DB_CORRUPTION);
    mtr_t other;
    mtr_start(&other, fx->pool, MTR_LOG_ALL);
    assert_int_equal(mtr_page_create(&other, fx_id(1, 3), FIL_PAGE_TYPE_SYS, &b), DB_CORRUPTION);
    mtr_abort(&other);
    mtr_commit(&mtr);
    assert_int_equal(a->fix_count, 0);
    assert_false(fx->base.env.io_failed);
}

/** I13: who is marked init_on_flush: a logged initialisation with log_optimize_ddl off. */
static void assert_init_flag(bool optimize, mtr_mode_t mode, bool expected)
{
    buf_fixture_t *fx = fx_create(4096, 64, true);
    FX_OK(fx, buf_set_log_optimize_ddl(fx->pool, optimize, false));
    buf_block_t *block = fx_mtr_create(fx, mode, mode == MTR_LOG_NO_REDO ? 20 : 0, fx_id(1, 3));
    assert_int_equal(block->init_on_flush, expected);
    FX_OK(fx, buf_flush_all(fx->pool));
    uint32_t at = rec_find(&fx->base.rec, 0, "# page_write space=1 page=3");
    assert_non_null(
        strstr(fx->base.rec.lines[at], expected ? "dblwr=skip why=init" : "dblwr=used why=batch"));
    fx_destroy(fx);
}

static void test_init_on_flush(void **state)
{
    (void)state;
    assert_init_flag(false, MTR_LOG_ALL, true);
    assert_init_flag(true, MTR_LOG_ALL, false);
    assert_init_flag(false, MTR_LOG_NO_REDO, false);
    assert_init_flag(true, MTR_LOG_NO_REDO, false);
}

/** I13: the flag's life: kept by logged changes, gone with the write, the free, the frame and with
every next initialisation that is not logged; each logged initialisation sets it again. */
static void test_flag_life(void **state)
{
    buf_fixture_t *fx = *state;
    FX_OK(fx, buf_set_log_optimize_ddl(fx->pool, false, false));
    buf_block_t *block = fx_mtr_create(fx, MTR_LOG_ALL, 0, fx_id(1, 3));
    fx_mtr_write(fx, MTR_LOG_ALL, fx_id(1, 3), 7);
    assert_true(block->init_on_flush);
    FX_OK(fx, buf_flush_all(fx->pool));
    assert_false(block->init_on_flush);
    fx_mtr_write(fx, MTR_LOG_ALL, fx_id(1, 3), 8);
    assert_false(block->init_on_flush);
    fx_mtr_free(fx, fx_id(1, 3));
    block = fx_mtr_create(fx, MTR_LOG_ALL, 0, fx_id(1, 3));
    assert_true(block->init_on_flush);
    fx_mtr_free(fx, fx_id(1, 3));
    assert_false(block->init_on_flush);
    fx_mtr_create(fx, MTR_LOG_ALL, 0, fx_id(1, 3));
    block = fx_mtr_create(fx, MTR_LOG_NO_REDO, 20, fx_id(1, 3));
    assert_false(block->init_on_flush);
    block = fx_mtr_create(fx, MTR_LOG_ALL, 0, fx_id(1, 3));
    FX_OK(fx, buf_flush_and_evict_all(fx->pool));
    FX_OK(fx, buf_page_get(fx->pool, fx_id(1, 3), &block));
    assert_false(block->init_on_flush);
    buf_block_unfix(fx->pool, block);
}

/** NO_REDO: no log, the current LSN in the page, the observer's stamp until the write. */
static void test_no_redo(void **state)
{
    buf_fixture_t *fx = *state;
    buf_block_t *block = fx_mtr_create(fx, MTR_LOG_ALL, 0, fx_id(1, 3));
    lsn_t lsn = log_lsn(fx->base.log);
    uint32_t from = fx->base.rec.n;
    mtr_t mtr;
    mtr_start(&mtr, fx->pool, MTR_LOG_NO_REDO);
    mtr_set_observer(&mtr, 21);
    FX_OK(fx, mtr_page_get(&mtr, fx_id(1, 3), &block));
    mtr_memset(&mtr, block, 100, 8, 9);
    mtr_commit(&mtr);
    assert_int_equal(log_lsn(fx->base.log), lsn);
    assert_int_equal(mtr.end_lsn, lsn);
    assert_int_equal(fil_page_get_lsn(block->frame), lsn);
    assert_int_equal(block->newest_modification, lsn);
    assert_int_equal(block->observer, 21);
    assert_true(fx->t1->max_lsn >= lsn);
    rec_assert_order(&fx->base.rec, from, "# page_noredo space=1 page=3", NULL);
    FX_OK(fx, buf_flush_space(fx->pool, 1));
    assert_int_equal(block->observer, 0);
}

/** A free is one record; a dirty page stays where it is on the flush list; reuse needs an
initialisation. */
static void test_free_page(void **state)
{
    buf_fixture_t *fx = *state;
    FX_OK(fx, buf_set_log_optimize_ddl(fx->pool, false, false));
    buf_block_t *block = fx_mtr_create(fx, MTR_LOG_ALL, 0, fx_id(1, 3));
    lsn_t oldest = block->oldest_modification;
    lsn_t from = log_lsn(fx->base.log);
    fx_mtr_free(fx, fx_id(1, 3));
    assert_true(block->freed);
    assert_int_equal(block->oldest_modification, oldest);
    assert_int_equal(block->newest_modification, from);
    fx_mtr_free(fx, fx_id(1, 99)); /* not in the pool: the record only */
    char text[1000];
    fx_log_text(fx, from, text, sizeof(text));
    assert_string_equal(text, "MLOG_INIT_FREE_PAGE 1 3; | MLOG_INIT_FREE_PAGE 1 99; | ");
    assert_null(buf_page_peek(fx->pool, fx_id(1, 99)));
    mtr_t mtr;
    mtr_start(&mtr, fx->pool, MTR_LOG_ALL);
    assert_int_equal(mtr_page_get(&mtr, fx_id(1, 3), &block), DB_CORRUPTION);
    FX_OK(fx, mtr_page_create(&mtr, fx_id(1, 3), FIL_PAGE_TYPE_SYS, &block));
    mtr_commit(&mtr);
    assert_false(block->freed);
    assert_int_equal(block->oldest_modification, oldest);
    FX_OK(fx, buf_flush_all(fx->pool));
    assert_int_equal(rec_count(&fx->base.rec, 0, "# page_write space=1 page=3"), 1);
}

/** Freeing does not make a page dirty: its bytes are what they were. */
static void test_free_clean_page(void **state)
{
    buf_fixture_t *fx = *state;
    fx_mtr_create(fx, MTR_LOG_ALL, 0, fx_id(1, 3));
    FX_OK(fx, buf_flush_all(fx->pool));
    mtr_t mtr;
    mtr_start(&mtr, fx->pool, MTR_LOG_ALL);
    buf_block_t *block = NULL;
    FX_OK(fx, mtr_page_get(&mtr, fx_id(1, 3), &block));
    mtr_page_free(&mtr, fx_id(1, 3));
    assert_true(mtr_page_is_freed(&mtr, fx_id(1, 3)));
    buf_block_t *again = NULL;
    assert_int_equal(mtr_page_get(&mtr, fx_id(1, 3), &again), DB_CORRUPTION);
    mtr_commit(&mtr);
    assert_true(block->freed);
    assert_int_equal(buf_dirty_pages(fx->pool), 0);
}

/** I23: an mtr that gives up after a change poisons the handle; before a change it does not. */
static void test_abort(void **state)
{
    buf_fixture_t *fx = *state;
    fx_mtr_create(fx, MTR_LOG_ALL, 0, fx_id(1, 3));
    lsn_t lsn = log_lsn(fx->base.log);
    mtr_t mtr;
    mtr_start(&mtr, fx->pool, MTR_LOG_ALL);
    buf_block_t *block = NULL;
    FX_OK(fx, mtr_page_get(&mtr, fx_id(1, 3), &block));
    byte rec[5] = {0};
    assert_int_equal(mtr_rec_insert(&mtr, block, 0, rec, sizeof(rec)), DB_CORRUPTION);
    assert_non_null(strstr(fx->base.env.err.msg, "page 3 of space 1"));
    mtr_abort(&mtr);
    assert_false(fx->base.env.io_failed);
    mtr_start(&mtr, fx->pool, MTR_LOG_ALL);
    FX_OK(fx, mtr_page_get(&mtr, fx_id(1, 3), &block));
    mtr_write_1(&mtr, block, 100, 1);
    mtr_abort(&mtr);
    assert_true(fx->base.env.io_failed);
    assert_int_equal(log_lsn(fx->base.log), lsn);
    assert_int_equal(block->fix_count, 0);
    assert_int_equal(buf_flush_all(fx->pool), DB_IO_ERROR);
}

/** Do == redo: replaying the log onto empty pages gives the same bytes, LSN included. */
static void test_redo_gives_the_same_bytes(void **state)
{
    buf_fixture_t *fx = *state;
    page_id_t id = fx_id(1, 3);
    lsn_t from = log_lsn(fx->base.log);
    mtr_t mtr;
    mtr_start(&mtr, fx->pool, MTR_LOG_ALL);
    buf_block_t *block = NULL;
    FX_OK(fx, mtr_page_create(&mtr, id, FIL_PAGE_INDEX, &block));
    FX_OK(fx, mtr_index_create(&mtr, block, 0, 77, 24, 8));
    mtr_write_4(&mtr, block, FIL_PAGE_PREV, 9);
    mtr_commit(&mtr);
    for (uint32_t i = 0; i < 50; i++) {
        byte rec[24] = {0};
        mach_write_8(rec + 1, i * 7919 % 1000);
        mtr_start(&mtr, fx->pool, MTR_LOG_ALL);
        FX_OK(fx, mtr_page_get(&mtr, id, &block));
        bool exact = false;
        uint32_t slot = page_search(block->frame, 4096, rec + 1, 8, &exact);
        FX_OK(fx, mtr_rec_insert(&mtr, block, slot, rec, sizeof(rec)));
        if (i % 5 == 4) {
            FX_OK(fx, mtr_rec_delete(&mtr, block, i % page_n_recs(block->frame)));
        }
        if (i % 3 == 2) {
            FX_OK(fx, mtr_rec_update(&mtr, block, 0, 12, (const byte *)"abcd", 4));
        }
        mtr_commit(&mtr);
    }
    mtr_start(&mtr, fx->pool, MTR_LOG_ALL);
    FX_OK(fx, mtr_page_get(&mtr, id, &block));
    FX_OK(fx, mtr_list_end_delete(&mtr, block, 30));
    FX_OK(fx, mtr_list_start_delete(&mtr, block, 3));
    mtr_commit(&mtr);

    byte page[4096];
    memset(page, 0xEE, sizeof(page));
    FX_OK(fx, log_write_up_to(fx->base.log, log_lsn(fx->base.log), true));
    log_reader_t *reader = NULL;
    FX_OK(fx, log_reader_create(fx->base.log, from, &reader));
    log_group_t group;
    while (log_reader_next(reader, &group) == DB_SUCCESS) {
        for (uint32_t i = 0; i < group.n_recs; i++) {
            if (redo_op_is_page(group.recs[i].op)) {
                assert_int_equal(log_rec_apply(&group.recs[i], page, 4096), DB_SUCCESS);
            }
        }
        fil_page_set_lsn(page, 4096, group.end_lsn);
    }
    log_reader_free(reader);
    assert_memory_equal(page, block->frame, 4096);
}

/** INDEX_LOAD counts as a change of its space: named in front, durable with the group. */
static void test_index_load(void **state)
{
    buf_fixture_t *fx = *state;
    lsn_t from = log_lsn(fx->base.log);
    mtr_t mtr;
    mtr_start(&mtr, fx->pool, MTR_LOG_ALL);
    mtr_index_load(&mtr, 2, 5, 33);
    mtr_commit(&mtr);
    char text[500];
    fx_log_text(fx, from, text, sizeof(text));
    assert_string_equal(text, "MLOG_FILE_NAME 2 0; MLOG_INDEX_LOAD 2 5; | ");
    assert_int_equal(fx->t2->max_lsn, mtr.end_lsn);
    assert_int_equal(buf_dirty_pages(fx->pool), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_groups_and_names, fx_setup, fx_teardown),
        cmocka_unit_test_setup_teardown(test_commit_stamps, fx_setup, fx_teardown),
        cmocka_unit_test_setup_teardown(test_single_flag, fx_setup, fx_teardown),
        cmocka_unit_test_setup_teardown(test_memo, fx_setup, fx_teardown),
        cmocka_unit_test(test_init_on_flush),
        cmocka_unit_test_setup_teardown(test_flag_life, fx_setup, fx_teardown),
        cmocka_unit_test_setup_teardown(test_no_redo, fx_setup, fx_teardown),
        cmocka_unit_test_setup_teardown(test_free_page, fx_setup, fx_teardown),
        cmocka_unit_test_setup_teardown(test_free_clean_page, fx_setup, fx_teardown),
        cmocka_unit_test_setup_teardown(test_abort, fx_setup, fx_teardown),
        cmocka_unit_test_setup_teardown(test_redo_gives_the_same_bytes, fx_setup, fx_teardown),
        cmocka_unit_test_setup_teardown(test_index_load, fx_setup, fx_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
