/** Changes as the 10.5 format logs them: by bytes, none where nothing changes, and the same page
again from them (I27). */
#include "base/mach.h"
#include "page/page_index.h"
#include "test_mtr_fixture.h"
#include "test_random.h"

static int setup_physical(void **state)
{
    os_t *os = image_os_create();
    *state = fx_create_in(os, 4096, 64, true, LOG_FORMAT_10_5);
    return 0;
}

/** What was logged from an LSN on, applied to a page of garbage, checksums compared on the way. */
static void replay(buf_fixture_t *fx, lsn_t from, page_id_t id, byte page[4096], uint32_t *n_moves)
{
    memset(page, 0xEE, 4096);
    FX_OK(fx, log_write_up_to(fx->base.log, log_lsn(fx->base.log), true));
    log_reader_t *reader = NULL;
    FX_OK(fx, log_reader_create(fx->base.log, from, &reader));
    log_group_t group;
    while (log_reader_next(reader, &group) == DB_SUCCESS) {
        bool changed = false;
        for (uint32_t i = 0; i < group.n_recs; i++) {
            const redo_rec_t *rec = &group.recs[i];
            if (redo_op_is_page(rec->op) && page_id_eq((page_id_t){rec->space, rec->page_no}, id)) {
                assert_int_equal(log_rec_apply(rec, page, 4096), DB_SUCCESS);
                changed = true;
                *n_moves += rec->op == OP_MOVE;
            }
        }
        if (changed) {
            fil_page_set_lsn(page, 4096, group.end_lsn);
        }
    }
    log_reader_free(reader);
}

/** Inserts, deletes, updates and list deletes at random; the log alone makes the same page. */
static void test_replay(void **state)
{
    buf_fixture_t *fx = *state;
    const page_id_t id = fx_id(1, 3);
    mtr_t mtr;
    lsn_t from = log_lsn(fx->base.log);
    mtr_start(&mtr, fx->pool, MTR_LOG_ALL);
    buf_block_t *block = NULL;
    FX_OK(fx, mtr_page_create(&mtr, id, FIL_PAGE_INDEX, &block));
    FX_OK(fx, mtr_index_create(&mtr, block, 0, 77, 40, 8));
    mtr_write_4(&mtr, block, FIL_PAGE_PREV, 9);
    mtr_commit(&mtr);
    uint64_t seed = 4;
    uint32_t n_moves = 0;
    for (uint32_t i = 0; i < 1500; i++) {
        mtr_start(&mtr, fx->pool, MTR_LOG_ALL);
        FX_OK(fx, mtr_page_get(&mtr, id, &block));
        uint32_t n = page_n_recs(block->frame);
        uint32_t at = n > 0 ? (uint32_t)(random_next(&seed) % n) : 0;
        byte rec[40] = {0};
        mach_write_8(rec + 1, random_next(&seed));
        mach_write_8(rec + 20, random_next(&seed));
        bool exact = false;
        uint32_t slot = page_search(block->frame, 4096, rec + 1, 8, &exact);
        if (page_has_room(block->frame, 4096, page_rec_size(block->frame))) {
            FX_OK(fx, mtr_rec_insert(&mtr, block, slot, rec, sizeof(rec)));
        } else if (i % 2 == 0) {
            FX_OK(fx, mtr_list_end_delete(&mtr, block, at));
        } else {
            FX_OK(fx, mtr_list_start_delete(&mtr, block, at));
        }
        if (i % 5 == 4 && page_n_recs(block->frame) > 0) {
            FX_OK(fx, mtr_rec_delete(&mtr, block, at % page_n_recs(block->frame)));
        }
        if (i % 3 == 2 && page_n_recs(block->frame) > 0) {
            FX_OK(fx, mtr_rec_update(&mtr, block, 0, 12, (const byte *)"abcd", 4));
        }
        mtr_commit(&mtr);
        FX_OK(fx, buf_log_free_check(fx->pool));
        if (i % 100 == 99) {
            FX_OK(fx, buf_page_get(fx->pool, id, &block));
            assert_int_equal(page_index_validate(block->frame, 4096, NULL), DB_SUCCESS);
            byte page[4096];
            replay(fx, from, id, page, &n_moves);
            assert_memory_equal(page, block->frame, 4096);
            buf_block_unfix(fx->pool, block);
        }
    }
    assert_true(n_moves > 0);
}

/** A write of what is there is none: no record, and the page is as clean as it was. */
static void test_noop(void **state)
{
    buf_fixture_t *fx = *state;
    const page_id_t id = fx_id(1, 3);
    fx_mtr_create(fx, MTR_LOG_ALL, 0, id);
    fx_mtr_write(fx, MTR_LOG_ALL, id, 7);
    FX_OK(fx, buf_flush_all(fx->pool));
    lsn_t lsn = log_lsn(fx->base.log);
    mtr_t mtr;
    mtr_start(&mtr, fx->pool, MTR_LOG_ALL);
    buf_block_t *block = NULL;
    FX_OK(fx, mtr_page_get(&mtr, id, &block));
    mtr_write_1(&mtr, block, 100, 7);
    mtr_write_4(&mtr, block, 97, 7);
    mtr_write_8(&mtr, block, 200, 0);
    mtr_write_string(&mtr, block, 99, (const byte *)"\0\7", 2);
    mtr_memset(&mtr, block, 101, 50, 0);
    assert_false(mtr_page_is_changed(&mtr, id));
    mtr_commit(&mtr);
    assert_int_equal(log_lsn(fx->base.log), lsn);
    assert_int_equal(buf_dirty_pages(fx->pool), 0);
    mtr_start(&mtr, fx->pool, MTR_LOG_ALL);
    FX_OK(fx, mtr_page_get(&mtr, id, &block));
    mtr_write_4(&mtr, block, 97, 8); /* its last byte changes */
    mtr_commit(&mtr);
    assert_true(log_lsn(fx->base.log) > lsn);
    assert_int_equal(buf_dirty_pages(fx->pool), 1);
}

/** A change that the page cannot take is refused with page and log as they were. */
static void test_refused(void **state)
{
    buf_fixture_t *fx = *state;
    const page_id_t id = fx_id(1, 3);
    mtr_t mtr;
    mtr_start(&mtr, fx->pool, MTR_LOG_ALL);
    buf_block_t *block = NULL;
    FX_OK(fx, mtr_page_create(&mtr, id, FIL_PAGE_INDEX, &block));
    FX_OK(fx, mtr_index_create(&mtr, block, 0, 77, 24, 8));
    mtr_commit(&mtr);
    lsn_t lsn = log_lsn(fx->base.log);
    mtr_start(&mtr, fx->pool, MTR_LOG_ALL);
    FX_OK(fx, mtr_page_get(&mtr, id, &block));
    byte before[4096];
    memcpy(before, block->frame, sizeof(before));
    assert_int_equal(mtr_list_end_delete(&mtr, block, 1), DB_CORRUPTION);
    assert_int_equal(mtr_rec_update(&mtr, block, 0, 5, (const byte *)"a", 1), DB_CORRUPTION);
    assert_non_null(strstr(fx->base.env.err.msg, "page 3 of space 1 cannot take a WRITE"));
    assert_int_equal(mtr_rec_delete(&mtr, block, 0), DB_CORRUPTION);
    mtr_abort(&mtr);
    assert_memory_equal(block->frame, before, sizeof(before));
    assert_int_equal(log_lsn(fx->base.log), lsn);
    assert_false(fx->base.env.io_failed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_replay, setup_physical, fx_teardown),
        cmocka_unit_test_setup_teardown(test_noop, setup_physical, fx_teardown),
        cmocka_unit_test_setup_teardown(test_refused, setup_physical, fx_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
